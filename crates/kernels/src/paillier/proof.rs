//! A proof that a modulus is sound: N = p q for two primes congruent to 3 modulo 4, and gcd(N, phi(N)) = 1.
//!
//! This is Pi^mod, figure 16 of R. Canetti, R. Gennaro, S. Goldfeder, N. Makriyannis and U. Peled, "UC non-interactive,
//! proactive, threshold ECDSA with identifiable aborts", CCS 2020. The challenge is a hash (Fiat-Shamir):
//!
//! 1. The owner draws w below N with the Jacobi symbol -1.
//! 2. BLAKE3 of the purpose of the proof, N and w gives y_1, ..., y_128 below N.
//! 3. The owner sends z_i with z_i^N = y_i for the first 8 of them, and x_i with x_i^4 = (-1)^a_i w^b_i y_i for all.
//!    The bits a_i and b_i make the right-hand side a square, and x_i is the root that is also a square.
//!
//! A proof consists of w, the z_i and the x_i, each with the width of N, then the a_i and the b_i in 16 bytes each.
//!
//! # Soundness
//!
//! The verifier refuses the proof unless all y_i and w are coprime to N. So each y_i is a random element of the group
//! of units.
//!
//! * Let d > 1 divide gcd(N, phi(N)). A prime l that divides d divides N, so it is above 2^16: [`PublicKey::new`]
//!   refuses N otherwise. At most one unit in l is an N-th power, so all 8 are N-th powers with probability below
//!   2^-128. This also excludes that the square of a prime divides N: that prime would divide phi(N).
//! * Now N is a product of two or more different primes: [`PublicKey::new`] refuses a prime. Modulo a prime, one unit in
//!   two is a fourth power if the prime is 3 modulo 4, otherwise one in four. So unless N is as claimed, at most one unit
//!   in 8 is a fourth power modulo N. With the factors 1, -1, w and -w, at most one y in two has a root, and all 128 do
//!   with probability at most 2^-128.
//!
//! These bounds hold for each pair of N and w that is tried, with BLAKE3 as a random oracle.
//!
//! # Zero knowledge
//!
//! The proof reveals only that N is sound. A simulator that chooses the oracle's answers makes one without the primes.
//! For random units r and u, where u has the Jacobi symbol -1, and random bits, w = u^N, x = r^(2 N), y = (-1)^a w^-b
//! x^4 and z = (-1)^a u^-b r^8.
//!
//! # Departures from the paper
//!
//! * The proof has N-th roots of 8 numbers, not of all: small factors of N are excluded first, so 8 suffice.
//! * w must be coprime to N. With w = 0, b_i = 1 and x_i = 0 would satisfy every equation of x_i.
//! * The choice of x_i among the four roots is fixed, so that it does not depend on secrets.
//!
//! # Limitations
//!
//! The proof does not prove its origin: anyone can resend it for the same purpose. A proof for another purpose requires
//! the primes, as otherwise roots modulo N could be extracted without them.

use super::aws_lc::{Number, Scratch};
use super::secret::{Half, SecretKey};
use super::words::{self, Words};
use super::{EXCESS, PublicKey, Unsound, is_below};
use zeroize::Zeroizing;

/// The number of hashed numbers, each with a fourth root in the proof.
const NUMBERS: usize = 128;
/// The number of those with an N-th root in the proof, too.
const NTH_ROOTS: usize = 8;

/// Length in bytes of the bits a_i, and of the bits b_i.
const BITS: usize = NUMBERS / 8;

const CONTEXT: &str = "veilset 2026-11 proof of a Paillier modulus";

/// Returns the length of a proof in bytes, for a modulus of `n_bytes` bytes.
pub const fn proof_length(n_bytes: usize) -> usize {
    (1 + NTH_ROOTS + NUMBERS) * n_bytes + 2 * BITS
}

impl SecretKey {
    /// Proves that the modulus is sound, for [`PublicKey::proven`] with the same purpose, which names the only use of
    /// the proof. The same bytes from `fill` give the same proof.
    ///
    /// Numbers are drawn until one has the Jacobi symbol -1, as one in two has. So this may never return if `fill` repeats
    /// its bytes.
    pub fn prove(&self, purpose: &[u8; 32], fill: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        let (n, mut scratch) = (self.public().n(), Scratch::new());
        let p = Roots::new(&self.p, &self.q, &mut scratch);
        let q = Roots::new(&self.q, &self.p, &mut scratch);
        let mut random = vec![0; n.len() + EXCESS];
        let (w, mut w_p, mut w_q) = loop {
            fill(&mut random);
            let w = words::bytes(&words::remainder(&words::load(&random), &words::load(n)));
            let (w_p, w_q) = (p.fourth(&w, &mut scratch), q.fourth(&w, &mut scratch));
            // For the published w this difference is public, and the other numbers are not used.
            if w_p.sign ^ w_q.sign == 1 {
                break (w, w_p, w_q);
            }
        };
        self.p.prime.enter(&mut w_p.root, &mut scratch);
        self.q.prime.enter(&mut w_q.root, &mut scratch);
        let (mut proof, mut a_bits, mut b_bits) = (w.to_vec(), 0u128, 0u128);
        let numbers = hash(purpose, n, &w);
        for y in &numbers[..NTH_ROOTS] {
            let z = self.recombine(&p.nth(y, &mut scratch), &q.nth(y, &mut scratch), &mut scratch);
            proof.extend_from_slice(&words::bytes(&z));
        }
        for (i, y) in numbers.iter().enumerate() {
            let (mut y_p, mut y_q) = (p.fourth(y, &mut scratch), q.fourth(y, &mut scratch));
            // Both bits are published. The proof does not reveal which of the two signs of w is 1.
            let b = y_p.sign ^ y_q.sign;
            let a = y_p.sign ^ (w_p.sign & b);
            a_bits |= u128::from(a) << i;
            b_bits |= u128::from(b) << i;
            if b == 1 {
                self.p.prime.multiply(&mut y_p.root, &w_p.root, &mut scratch);
                self.q.prime.multiply(&mut y_q.root, &w_q.root, &mut scratch);
            }
            let x = self.recombine(&self.p.residue(&y_p.root), &self.q.residue(&y_q.root), &mut scratch);
            proof.extend_from_slice(&words::bytes(&x));
        }
        proof.extend_from_slice(&a_bits.to_le_bytes());
        proof.extend_from_slice(&b_bits.to_le_bytes());
        proof
    }
}

impl PublicKey {
    /// Makes a key from a received modulus, and verifies the proof, made for this purpose, that it is sound.
    ///
    /// Not constant-time.
    ///
    /// # Errors
    ///
    /// The defect of the modulus: the errors of [`PublicKey::new`], or [`Unsound::Proof`] if the proof is not valid for
    /// it.
    pub fn proven(n: &[u8], purpose: &[u8; 32], proof: &[u8]) -> Result<PublicKey, Unsound> {
        let key = PublicKey::new(n)?;
        if key.is_proven_by(purpose, proof) { Ok(key) } else { Err(Unsound::Proof) }
    }

    fn is_proven_by(&self, purpose: &[u8; 32], proof: &[u8]) -> bool {
        let width = self.n().len();
        if proof.len() != proof_length(width) {
            return false;
        }
        let (roots, bits) = proof.split_at(proof.len() - 2 * BITS);
        let all: Vec<&[u8]> = (0..=NTH_ROOTS + NUMBERS).map(|i| &roots[i * width..][..width]).collect();
        if !all.iter().all(|number| is_below(number, self.n())) {
            return false;
        }
        let (w, z, x) = (all[0], &all[1..=NTH_ROOTS], &all[1 + NTH_ROOTS..]);
        let y = hash(purpose, self.n(), w);
        let mut scratch = Scratch::new();
        let units: Vec<&[u8]> = y.iter().map(|y| &y[..]).chain([w]).collect();
        if !self.are_units(&units, &mut scratch) {
            return false;
        }
        let bit = |bytes: &[u8], i: usize| bytes[i / 8] >> (i % 8) & 1 == 1;
        let (a, b) = bits.split_at(BITS);
        z.iter().zip(&y).all(|(z, y)| self.is_nth_root(z, y, &mut scratch))
            && (0..NUMBERS).all(|i| {
                let claimed = self.claimed(&y[i], w, [bit(a, i), bit(b, i)], &mut scratch);
                self.is_fourth_root(x[i], &claimed, &mut scratch)
            })
    }

    /// Returns whether z^N = y.
    fn is_nth_root(&self, z: &[u8], y: &[u8], scratch: &mut Scratch) -> bool {
        let mut power = Number::new(z);
        self.modulus.power(&mut power, &Number::new(self.n()), scratch);
        *self.reduced(&power) == *y
    }

    /// Returns whether x^4 is this number.
    fn is_fourth_root(&self, x: &[u8], number: &[u8], scratch: &mut Scratch) -> bool {
        let mut power = Number::new(x);
        self.modulus.enter(&mut power, scratch);
        self.modulus.square(&mut power, scratch);
        self.modulus.square(&mut power, scratch);
        self.modulus.leave(&mut power, scratch);
        *self.reduced(&power) == *number
    }

    /// Returns (-1)^a w^b y.
    fn claimed(&self, y: &[u8], w: &[u8], [a, b]: [bool; 2], scratch: &mut Scratch) -> Zeroizing<Vec<u8>> {
        let mut product = Number::new(y);
        if b {
            self.modulus.enter(&mut product, scratch);
            self.modulus.multiply(&mut product, &Number::new(w), scratch);
        }
        let number = self.reduced(&product);
        if !a {
            return number;
        }
        let n = words::load(self.n());
        words::bytes(&words::difference(&words::zero(n.len()), &words::load(&number), &n))
    }

    /// Returns the bytes of a number below N.
    fn reduced(&self, number: &Number) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; self.n().len()]);
        number.get(&mut bytes);
        bytes
    }
}

/// Returns the numbers y_i for N and w, nearly uniform below N.
fn hash(purpose: &[u8; 32], n: &[u8], w: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(purpose).update(&(n.len() as u64).to_le_bytes()).update(n).update(w);
    let (mut stream, mut uniform, modulus) =
        (hasher.finalize_xof(), vec![0; n.len() + EXCESS], words::load(n));
    let number = |_| {
        stream.fill(&mut uniform);
        words::bytes(&words::remainder(&words::load(&uniform), &modulus))
    };
    (0..NUMBERS).map(number).collect()
}

/// The exponents for roots modulo one of the primes, here p; q is the other.
struct Roots<'a> {
    half: &'a Half,
    /// 1 / N modulo p - 1.
    nth: Number,
    /// The even number that is 1/4 modulo (p - 1) / 2.
    fourth: Number,
}

/// A root of a number t modulo p: root^4 = (-1)^sign t. The sign is 0 if t is a square.
struct Root {
    root: Number,
    sign: u64,
}

impl Roots<'_> {
    fn new<'a>(half: &'a Half, other: &Half, scratch: &mut Scratch) -> Roots<'a> {
        // N is q modulo p - 1. With k = 1 / (1 - p) modulo q, computed as the power q - 2, q divides 1 + k (p - 1), and
        // the quotient is 1 / q modulo p - 1. It is below p, so it can be computed with an inverse of q modulo a power
        // of 2.
        let mut one = words::zero(half.p.len());
        one[0] = 1;
        let p = words::remainder(&half.p, &other.p);
        let mut k = Number::new(&words::bytes(&words::difference(&one, &p, &other.p)));
        let mut exponent = other.order.clone();
        words::subtract(&mut exponent, &one);
        other.prime.power(&mut k, &Number::new(&words::bytes(&exponent)), scratch);
        let multiple = words::multiply_add(&one, &other.residue(&k), &half.order);
        let nth = words::low_product(&multiple[..half.p.len()], &other.inverse);
        // o = (p - 1) / 2 is odd, and so its own inverse modulo 8. With k = -o modulo 8, 8 divides k o + 1, and a
        // quarter of that is even: (k (p - 1) + 2) / 8. A square raised to o is 1.
        let k = (half.p[0] >> 1).wrapping_neg() & 7;
        let mut fourth = words::multiply_add(&[2], &half.order, &[k]);
        words::shift_right(&mut fourth, 3);
        let number = |words: &[u64]| Number::new(&words::bytes(words));
        Roots { half, nth: number(&nth), fourth: number(&fourth[..half.p.len()]) }
    }

    /// Returns the N-th root modulo p of a number below N.
    fn nth(&self, number: &[u8], scratch: &mut Scratch) -> Words {
        let mut root = self.reduced(number, scratch);
        self.half.prime.power(&mut root, &self.nth, scratch);
        self.half.residue(&root)
    }

    /// Returns a fourth root modulo p of a number below N or of its negative; the root is itself a square.
    fn fourth(&self, number: &[u8], scratch: &mut Scratch) -> Root {
        let prime = &self.half.prime;
        let mut root = self.reduced(number, scratch);
        let number = self.half.residue(&root);
        // The exponent is even, so the result is the same for the number and for its negative, one of which is a
        // square.
        prime.power(&mut root, &self.fourth, scratch);
        let mut power = Number::new(&words::bytes(&self.half.residue(&root)));
        prime.enter(&mut power, scratch);
        prime.square(&mut power, scratch);
        prime.square(&mut power, scratch);
        prime.leave(&mut power, scratch);
        Root { root, sign: words::differ(&self.half.residue(&power), &number) }
    }

    /// Returns a number below N, modulo p.
    fn reduced(&self, number: &[u8], scratch: &mut Scratch) -> Number {
        let mut number = Number::new(number);
        self.half.prime.leave(&mut number, scratch);
        self.half.prime.enter(&mut number, scratch);
        number
    }
}
