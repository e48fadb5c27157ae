//! The owner's side: keys, encryption and decryption modulo the squares of the primes.

use super::aws_lc::{Modulus, Number, Scratch};
use super::table::{Masks, Row, Table};
use super::words::{self, Words};
use super::{BITS, EXCESS, PublicKey, count, small_primes, widened};
use std::fmt::{self, Debug, Formatter};
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// A candidate divisible by a prime below this bound is not tested further.
const SIEVE: u16 = 1 << 12;

/// Number of ciphertexts that are made at once.
const BLOCK: usize = 32;

/// The primes p > q of a modulus, and values derived from them, wiped on drop.
pub struct SecretKey {
    public: PublicKey,
    pub(super) p: Half,
    pub(super) q: Half,
    /// The inverse of q^2 modulo p^2, in Montgomery's representation.
    inverse: Number,
}

impl SecretKey {
    /// Generates a key for a modulus of this many bits from uniform bytes. The same bytes give the same key.
    ///
    /// Each prime has half as many bits, and its two top bits are set. So gcd(N, (p - 1) (q - 1)) = 1: of two odd
    /// primes of equal length, neither divides the other minus one. Their difference has fewer than 64 leading zeros.
    /// Both are 3 modulo 4, as [`SecretKey::prove`] requires.
    ///
    /// Candidates are drawn until two are prime and far enough apart, so bytes that repeat may take forever. The witnesses
    /// of the primality test come from the library's generator.
    ///
    /// # Panics
    ///
    /// If the number of bits is not a multiple of 128 from 256 to 8192.
    pub fn generate(bits: usize, fill: &mut dyn FnMut(&mut [u8])) -> SecretKey {
        assert!(BITS.contains(&bits) && bits.is_multiple_of(128), "generate: a length that moduli may have");
        let mut scratch = Scratch::new();
        loop {
            let p = prime(bits / 2, fill, &mut scratch);
            let q = prime(bits / 2, fill, &mut scratch);
            if let Some(key) =
                SecretKey::of(&p, &q, &mut scratch).or_else(|| SecretKey::of(&q, &p, &mut scratch))
            {
                return key;
            }
        }
    }

    /// Decodes the bytes of [`SecretKey::to_bytes`]. `None` unless they have the length of a modulus and are two primes
    /// of equal length that are 3 modulo 4 with their two top bits set, the greater first, whose difference is at least
    /// 2 to the power of their length minus 64.
    pub fn from_bytes(bytes: &[u8]) -> Option<SecretKey> {
        if !BITS.contains(&(8 * bytes.len())) || !bytes.len().is_multiple_of(16) {
            return None;
        }
        let mut scratch = Scratch::new();
        let (p, q) = bytes.split_at(bytes.len() / 2);
        let mut is_prime = |half: &[u8]| {
            let shaped = half[0] & 3 == 3 && half[half.len() - 1] >> 6 == 3;
            shaped && Number::new(half).is_prime(true, &mut scratch)
        };
        (is_prime(p) && is_prime(q)).then(|| SecretKey::of(p, q, &mut scratch)).flatten()
    }

    /// Makes a key from primes, unless p - q is below 2 to the power of their length minus 64.
    fn of(p: &[u8], q: &[u8], scratch: &mut Scratch) -> Option<SecretKey> {
        let [p, q] = [p, q].map(words::load);
        let mut difference = p.clone();
        if words::subtract(&mut difference, &q) || difference.last() == Some(&0) {
            return None;
        }
        let n = words::multiply_add(&[], &p, &q);
        let public = PublicKey::unchecked(&words::bytes(&n), scratch);
        let [p, q] = [Half::new(&p, &q, &n, scratch), Half::new(&q, &p, &n, scratch)];
        // x^(p (p - 1) - 1) is 1 / x modulo p^2.
        let mut exponent = words::multiply_add(&[], &p.p, &p.order);
        words::subtract(&mut exponent, &[1]);
        let mut inverse = Number::new(&words::bytes(&q.p_squared));
        p.square.power(&mut inverse, &Number::new(&words::bytes(&exponent)), scratch);
        p.square.enter(&mut inverse, scratch);
        Some(SecretKey { public, p, q, inverse })
    }

    /// Returns the primes for storage, the greater first.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        words::bytes(&Zeroizing::new([&**self.p.p, &**self.q.p].concat()))
    }

    /// Returns the public key.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the number of bytes that [`SecretKey::encrypt`] draws for each message.
    pub fn randomness(&self) -> usize {
        self.public.n.len() + 2 * EXCESS
    }

    /// Encrypts 1 for `true` and 0 for `false`, with randomness of full entropy.
    ///
    /// The N-th residues modulo p^2 are a cyclic group of order p - 1. A ciphertext modulo p^2 is (1 + m N) h^a for a
    /// fixed h in this group and a uniform a, drawn with 128 bits more than p. Modulo q^2 the form is the same, and a
    /// is independent. If h generates the group, this is distributed as (1 + m N) s^N for a uniform s.
    ///
    /// h is chosen so that no prime l below 2^16 divides the index of the subgroup of its powers. A greater l that
    /// divides p - 1 divides the index with probability 1 / l. Ciphertexts are then uniform in the subgroup of index l,
    /// which only a test for l-th powers without the factors of N could distinguish.
    ///
    /// The first call for a key computes tables of powers, which takes the time of about 130 messages, and 10 MB at
    /// 2048 bits.
    ///
    /// # Panics
    ///
    /// If the length of `out` is not that of one ciphertext per message.
    pub fn encrypt(&self, messages: &[bool], fill: &mut dyn FnMut(&mut [u8]), out: &mut [u8]) {
        let (width, half) = (self.public.width(), self.public.n.len() / 2);
        assert_eq!(out.len(), messages.len() * width, "encrypt: as many ciphertexts as messages");
        let (mut scratch, mut number) = (Scratch::new(), Number::zero());
        let (mut random, mut bytes) =
            (Zeroizing::new(vec![0; half + EXCESS]), words::bytes(&self.p.p_squared));
        for (block, messages) in messages.chunks(BLOCK).enumerate() {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for _ in messages {
                for (half, exponents) in [(&self.p, &mut a), (&self.q, &mut b)] {
                    fill(&mut random);
                    exponents.push(words::remainder(&words::load(&random), &half.order));
                }
            }
            let (p, q) =
                (self.p.encrypt(messages, &a, &mut scratch), self.q.encrypt(messages, &b, &mut scratch));
            for (i, (p, q)) in p.iter().zip(&q).enumerate() {
                // q^2 ((x - y) / q^2 mod p^2) + y is x modulo p^2 and y modulo q^2.
                words::store(&words::difference(p, q, &self.p.p_squared), &mut bytes);
                number.set(&bytes);
                self.p.square.multiply(&mut number, &self.inverse, &mut scratch);
                number.get(&mut bytes);
                let ciphertext = words::multiply_add(q, &words::load(&bytes), &self.q.p_squared);
                words::store(&ciphertext, &mut out[(block * BLOCK + i) * width..][..width]);
            }
        }
    }

    /// Decrypts to numbers modulo N. A ciphertext that [`PublicKey::check`] refuses also decrypts to some value.
    ///
    /// # Panics
    ///
    /// If the length of `out` is not that of one number, of the width of N, per ciphertext.
    pub fn decrypt(&self, ciphertexts: &[u8], out: &mut [u8]) {
        let (n, width) = (self.public.n.len(), self.public.width());
        assert_eq!(ciphertexts.len(), 2 * out.len(), "decrypt: as many numbers as ciphertexts");
        let (mut scratch, mut number) = (Scratch::new(), Number::zero());
        for i in 0..count(out.len(), n) {
            number.set(&ciphertexts[i * width..][..width]);
            // Reduces modulo N^2.
            self.public.square.enter(&mut number, &mut scratch);
            self.public.square.leave(&mut number, &mut scratch);
            let mut ciphertext = Zeroizing::new(vec![0; width]);
            number.get(&mut ciphertext);
            let [p, q] = [&self.p, &self.q].map(|half| {
                number.set(&ciphertext);
                half.decrypt(&mut number, &mut scratch)
            });
            words::store(&self.recombine(&p, &q, &mut scratch), &mut out[i * n..][..n]);
        }
    }

    /// Returns the number modulo N that is x modulo p and y modulo q.
    pub(super) fn recombine(&self, x: &[u64], y: &[u64], scratch: &mut Scratch) -> Words {
        // q ((x - y) / q mod p) + y.
        let mut number = Number::new(&words::bytes(&words::difference(x, y, &self.p.p)));
        self.p.prime.multiply(&mut number, &self.p.inverse_of_other, scratch);
        words::multiply_add(y, &self.p.residue(&number), &self.q.p)
    }
}

impl Debug for SecretKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("bits", &self.public.bits()).finish_non_exhaustive()
    }
}

/// The values for one of the primes, here p; q is the other.
pub(super) struct Half {
    pub(super) p: Words,
    p_squared: Words,
    /// p - 1.
    pub(super) order: Words,
    pub(super) prime: Modulus,
    square: Modulus,
    /// 1 and 1 + N modulo p^2.
    messages: Row,
    /// 1 / p modulo 2 to the length of p.
    pub(super) inverse: Words,
    /// 1 / q and -1 / q modulo p, in Montgomery's representation.
    inverse_of_other: Number,
    minus_inverse_of_other: Number,
    /// Powers of h, computed on first use.
    table: OnceLock<Table>,
}

impl Half {
    fn new(p: &Words, q: &Words, n: &Words, scratch: &mut Scratch) -> Half {
        let p_squared = words::multiply_add(&[], p, p);
        let mut order = p.clone();
        words::subtract(&mut order, &[1]);
        let prime = Modulus::new(&words::bytes(p), scratch);
        let square = Modulus::new(&words::bytes(&p_squared), scratch);
        let mut message = n.clone();
        words::increment(&mut message);
        let mut messages = Row::new(2, 8 * p_squared.len());
        messages.set(0, &[1, 0, 0, 0]);
        messages.set(1, &words::bytes(&words::remainder(&message, &p_squared)));
        // x^(p - 2) is 1 / x modulo p.
        let mut exponent = order.clone();
        words::subtract(&mut exponent, &[1]);
        let mut inverse_of_other = Number::new(&words::bytes(&words::remainder(q, p)));
        prime.power(&mut inverse_of_other, &Number::new(&words::bytes(&exponent)), scratch);
        prime.enter(&mut inverse_of_other, scratch);
        let mut bytes = words::bytes(p);
        inverse_of_other.get(&mut bytes);
        let minus = words::difference(&words::zero(p.len()), &words::load(&bytes), p);
        Half {
            messages,
            inverse: words::inverse(p),
            inverse_of_other,
            minus_inverse_of_other: Number::new(&words::bytes(&minus)),
            table: OnceLock::new(),
            p: p.clone(),
            p_squared,
            order,
            prime,
            square,
        }
    }

    /// Returns (1 + m N) h^a modulo p^2 for each message m and exponent a.
    fn encrypt(&self, messages: &[bool], exponents: &[Words], scratch: &mut Scratch) -> Vec<Words> {
        let width = 8 * self.p_squared.len();
        let mut bytes = Zeroizing::new(vec![0; messages.len() * width]);
        let places: Zeroizing<Vec<usize>> =
            Zeroizing::new(messages.iter().map(|m| usize::from(*m)).collect());
        self.messages.choose(&places, &mut Masks::default(), &mut bytes);
        let mut numbers: Vec<Number> =
            (0..messages.len()).map(|i| Number::new(&bytes[i * width..][..width])).collect();
        self.table.get_or_init(|| self.table()).multiply(&self.square, &mut numbers, exponents, scratch);
        let load = |number: &Number| {
            number.get(&mut bytes[..width]);
            words::load(&bytes[..width])
        };
        numbers.iter().map(load).collect()
    }

    /// Returns the table of h = g^p modulo p^2 for the smallest g whose order modulo p is p - 1, up to prime factors
    /// above 2^16.
    fn table(&self) -> Table {
        let (mut scratch, half) = (Scratch::new(), 8 * self.p.len());
        let small = small_primes().iter().filter(|l| l.remainder(&self.order) == 0);
        let exponents: Vec<Number> =
            small.map(|l| Number::new(&words::bytes(&self.order_over(l.value)))).collect();
        let mut g = 2u16;
        let generates = |g: u16, scratch: &mut Scratch| {
            exponents.iter().all(|exponent| {
                let (mut power, mut bytes) = (widened(&g.to_le_bytes(), half), vec![0; half]);
                self.prime.power(&mut power, exponent, scratch);
                power.get(&mut bytes);
                bytes[0] != 1 || bytes[1..].iter().any(|byte| *byte != 0)
            })
        };
        while !generates(g, &mut scratch) {
            g += 1;
        }
        let mut h = widened(&g.to_le_bytes(), 2 * half);
        self.square.power(&mut h, &Number::new(&words::bytes(&self.p)), &mut scratch);
        self.square.enter(&mut h, &mut scratch);
        let one = self.square.one(&mut scratch, 2 * half);
        Table::new(&self.square, &one, &mut h, 8 * half, &mut scratch)
    }

    /// Returns (p - 1) / l for a prime l that divides p - 1.
    fn order_over(&self, l: u16) -> Words {
        let mut out = self.order.clone();
        if l == 2 {
            words::shift_right(&mut out, 1);
            return out;
        }
        let mut divisor = words::zero(out.len());
        divisor[0] = l.into();
        words::low_product(&out, &words::inverse(&divisor))
    }

    /// Returns the message modulo p of a ciphertext below N^2, which it overwrites.
    fn decrypt(&self, ciphertext: &mut Number, scratch: &mut Scratch) -> Words {
        // Reduces modulo p^2.
        self.square.leave(ciphertext, scratch);
        self.square.enter(ciphertext, scratch);
        let exponent = Number::new(&words::bytes(&self.order));
        self.square.power(ciphertext, &exponent, scratch);
        // c^(p - 1) = 1 + m (p - 1) N = 1 - m q p, from which (x - 1) / p is computed with an exact division.
        let mut bytes = words::bytes(&self.p_squared);
        ciphertext.get(&mut bytes);
        let mut power = words::load(&bytes);
        words::subtract(&mut power, &[1]);
        let quotient = words::low_product(&power[..self.p.len()], &self.inverse);
        let mut number = Number::new(&words::bytes(&quotient));
        self.prime.multiply(&mut number, &self.minus_inverse_of_other, scratch);
        self.residue(&number)
    }

    /// Returns the words of a number below p.
    pub(super) fn residue(&self, number: &Number) -> Words {
        let mut bytes = words::bytes(&self.p);
        number.get(&mut bytes);
        words::load(&bytes)
    }
}

/// Draws a prime of this many bits that is 3 modulo 4 and whose two top bits are set.
fn prime(bits: usize, fill: &mut dyn FnMut(&mut [u8]), scratch: &mut Scratch) -> Zeroizing<Vec<u8>> {
    let mut candidate = Zeroizing::new(vec![0; bits / 8]);
    loop {
        fill(&mut candidate);
        candidate[0] |= 3;
        candidate[bits / 8 - 1] |= 0xc0;
        let words = words::load(&candidate);
        let mut small = small_primes().iter().take_while(|l| l.value < SIEVE);
        if small.all(|l| l.remainder(&words) != 0) && Number::new(&candidate).is_prime(true, scratch) {
            return candidate;
        }
    }
}
