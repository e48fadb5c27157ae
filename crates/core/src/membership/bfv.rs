//! BFV without ciphertext multiplication, as [`super::sigma::fhe`] needs it (Fan and Vercauteren, "Somewhat Practical Fully
//! Homomorphic Encryption").
//!
//! The ring arithmetic comes from the crate `fhe-math`. It is constant-time except for the rounding in decryption, which
//! branches on signs; in honest responses the masks make the rounded values uniform. Sampling, encryption and serialization are
//! done here, so that all randomness comes from the run's generator, and no byte on the wire depends on the crate.
//!
//! N, t and the primes of q are in [`crate::params::bfv`]. A ciphertext (c0, c1) of the polynomial m has c0 + c1 s =
//! (q m - r) / t + e modulo q, with r = q m modulo t. The secret s and all errors e are small
//! ([`crate::params::bfv::LARGEST_SMALL`]). In ciphertexts under the secret key, c1 is uniform and comes from a public seed, so
//! only c0 is sent.
//!
//! **Slots.** A polynomial modulo t has N slots, its values at the roots of X^N + 1. X^(N/2) is one square root of -1 at half
//! of them, and the other root at the rest; each half is a component. Within a component, the slots are in the numerical order
//! of the roots. So a polynomial with one value per component has only two nonzero coefficients, and multiplying by it adds
//! little noise.

use crate::error::{Error, Result};
use crate::params::bfv::{DEGREE, MODULI, PLAIN, QUERIES, RESIDUE};
use crate::rng::Prng;
use crate::secret::Secrets;
use fhe_math::rns::ScalingFactor;
use fhe_math::rq::scaler::Scaler;
use fhe_math::rq::traits::TryConvertFrom;
use fhe_math::rq::{Context as Ring, Poly, Representation};
use fhe_math::zq::Modulus;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of a polynomial on the wire.
pub(crate) const POLYNOMIAL: usize = DEGREE * MODULI.len() * RESIDUE;

/// A polynomial modulo q, in coefficient form unless stated otherwise.
pub(crate) type Element = Zeroizing<Poly>;

/// Both halves of a ciphertext or of a public key.
pub(crate) type Pair = [Element; 2];

/// The rings modulo q and modulo t, and constants for both.
pub(crate) struct Bfv {
    q: Arc<Ring>,
    t: Arc<Ring>,
    /// round(t x / q).
    down: Scaler,
    /// q modulo t.
    rest: u64,
    /// -1 / t modulo each prime.
    inverse: Vec<u64>,
    /// The index of each slot in the crate's order.
    places: Vec<usize>,
    /// 1 / 2 and 1 / (2 X^(N/2)), the latter in the first component.
    halves: [u64; 2],
}

/// A secret key, as its values at the roots.
pub(crate) struct SecretKey(Element);

/// The error for a bug of ours: the crate refused parameters, or polynomials of different rings.
fn mismatch(e: fhe_math::Error) -> Error {
    Error::bug(format!("ring arithmetic: {e}"))
}

/// The coefficients of a polynomial.
fn coefficients(p: &Poly) -> Secrets<u64> {
    Secrets::from(Vec::<u64>::from(p))
}

/// Coefficients of a secret or of an error: each is the difference of two sums of 20 random bits.
fn small(rng: &mut Prng) -> Secrets<i64> {
    let mut random = Secrets::<[u8; 5]>::zeros(DEGREE);
    rng.fill(random.as_flattened_mut());
    let difference = |bytes: &[u8; 5]| {
        let bits = bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        i64::from((bits & 0xf_ffff).count_ones()) - i64::from((bits >> 20).count_ones())
    };
    Secrets::from(random.iter().map(difference).collect::<Vec<_>>())
}

impl Bfv {
    /// Computes the rings and the constants.
    ///
    /// # Errors
    /// [`Error::Bug`] if the crate refuses the parameters, or an inverse does not exist.
    pub(crate) fn new() -> Result<Bfv> {
        let q = Ring::new_arc(&MODULI, DEGREE).map_err(mismatch)?;
        let t = Ring::new_arc(&[PLAIN], DEGREE).map_err(mismatch)?;
        let down = Scaler::new(&q, &t, ScalingFactor::new(t.modulus(), q.modulus())).map_err(mismatch)?;
        let plain = Modulus::new(PLAIN).map_err(mismatch)?;
        let rest = MODULI.iter().fold(1, |rest, q| plain.mul(rest, plain.reduce(*q)));
        let none = || Error::Bug("parameters without inverses".into());
        let inverse = q.moduli_operators().iter().map(|q| q.inv(PLAIN).map(|inverse| q.neg(inverse)));
        let inverse = inverse.collect::<Option<Vec<u64>>>().ok_or_else(none)?;
        // The roots in the crate's order: the values of X.
        let mut x = vec![0; DEGREE];
        x[1] = 1;
        let mut x = Poly::try_convert_from(x, &t, false, Representation::PowerBasis).map_err(mismatch)?;
        x.change_representation(Representation::Ntt);
        let roots = Vec::<u64>::from(&x);
        let half = DEGREE as u64 / 2;
        let mut places: Vec<usize> = (0..DEGREE).collect();
        places.sort_by_cached_key(|&at| (plain.pow(roots[at], half), roots[at]));
        let first = plain.pow(roots[places[0]], half);
        let halves = [2, plain.mul(2, first)].map(|n| plain.inv(n));
        let [Some(two), Some(root)] = halves else { return Err(none()) };
        Ok(Bfv { q, t, down, rest, inverse, places, halves: [two, root] })
    }

    /// Arithmetic modulo t.
    pub(crate) fn plain(&self) -> &Modulus {
        &self.t.moduli_operators()[0]
    }

    fn element(&self, coefficients: Vec<u64>) -> Result<Element> {
        Poly::try_convert_from(coefficients, &self.q, false, Representation::PowerBasis)
            .map(Zeroizing::new)
            .map_err(mismatch)
    }

    fn small(&self, rng: &mut Prng) -> Result<Element> {
        let signed: &[i64] = &small(rng);
        Poly::try_convert_from(signed, &self.q, false, Representation::PowerBasis)
            .map(Zeroizing::new)
            .map_err(mismatch)
    }

    /// Zero, as its values at the roots.
    pub(crate) fn nothing(&self) -> Element {
        Zeroizing::new(Poly::zero(&self.q, Representation::Ntt))
    }

    /// The uniform polynomial with this number under a public seed.
    pub(crate) fn uniform(&self, seed: &[u8; 32], number: u64) -> Result<Element> {
        let mut rng = Prng::from_seed(seed).fork(number);
        let residues = MODULI.iter().flat_map(|q| (0..DEGREE).map(|_| *q));
        self.element(residues.map(|q| rng.below(q)).collect())
    }

    /// The product of two polynomials, the second given by its values at the roots.
    fn product(&self, a: &Element, b: &Element) -> Element {
        let mut product = a.clone();
        product.change_representation(Representation::Ntt);
        *product *= &**b;
        product.change_representation(Representation::PowerBasis);
        product
    }

    /// (q m - r) / t, for the polynomial m with these values in its slots.
    fn scaled(&self, slots: &[u64]) -> Result<Element> {
        let mut values = vec![0; DEGREE];
        self.places.iter().zip(slots).for_each(|(&at, value)| values[at] = *value);
        let m = Poly::try_convert_from(values, &self.t, false, Representation::Ntt);
        let mut m = m.map(Zeroizing::new).map_err(mismatch)?;
        m.change_representation(Representation::PowerBasis);
        let rests: Vec<u64> = coefficients(&m).iter().map(|m| self.plain().mul(*m, self.rest)).collect();
        let rests = Secrets::from(rests);
        let per_prime = self.q.moduli_operators().iter().zip(&self.inverse);
        // q is 0 modulo each prime. r is below t, and so below each prime.
        self.element(in_place(per_prime.flat_map(|(q, inverse)| rests.iter().map(|r| q.mul(*r, *inverse)))))
    }

    /// Draws a secret key.
    pub(crate) fn secret_key(&self, rng: &mut Prng) -> Result<SecretKey> {
        let mut s = self.small(rng)?;
        s.change_representation(Representation::Ntt);
        Ok(SecretKey(s))
    }

    /// The first half of the public key with this second half: b = e - a s.
    pub(crate) fn public_key(&self, key: &SecretKey, a: &Element, rng: &mut Prng) -> Result<Element> {
        let mut b = self.small(rng)?;
        *b -= &*self.product(a, &key.0);
        Ok(b)
    }

    /// The first half of a ciphertext of these slots, with this second half.
    pub(crate) fn encrypt(
        &self,
        key: &SecretKey,
        slots: &[u64],
        a: &Element,
        rng: &mut Prng,
    ) -> Result<Element> {
        let mut c = self.public_key(key, a, rng)?;
        *c += &*self.scaled(slots)?;
        Ok(c)
    }

    /// The polynomial that has the first value in all slots of the first component and the second in those of the second,
    /// given by its values at the roots. The absolute values of its coefficients are at most t / 2.
    pub(crate) fn constant(&self, values: [u64; 2]) -> Result<Element> {
        let t = self.plain();
        // In the slots, X^(N/2) is plus or minus a root of -1.
        let [sum, difference] = [t.add(values[0], values[1]), t.sub(values[0], values[1])];
        let mut signed = Secrets::<i64>::zeros(DEGREE);
        for (at, value) in [(0, t.mul(sum, self.halves[0])), (DEGREE / 2, t.mul(difference, self.halves[1]))]
        {
            let above = (PLAIN / 2).wrapping_sub(value) >> 63;
            signed[at] = value as i64 - (above * PLAIN) as i64;
        }
        let p = Poly::try_convert_from(&*signed, &self.q, false, Representation::PowerBasis);
        let mut p = p.map(Zeroizing::new).map_err(mismatch)?;
        p.change_representation(Representation::Ntt);
        Ok(p)
    }

    /// Returns `c` times `constant`. The constant and the product are given by their values at the roots.
    pub(crate) fn multiply(&self, mut c: Element, constant: &Element) -> Element {
        c.change_representation(Representation::Ntt);
        *c *= &**constant;
        c
    }

    /// Makes an evaluated ciphertext, given by its values at the roots, safe to send: adds these values in the slots, a fresh
    /// encryption of 0 under the public key, and flooding noise.
    pub(crate) fn finish(
        &self,
        [mut c0, mut c1]: Pair,
        slots: &[u64],
        public_key: &Pair,
        flood: u32,
        rng: &mut Prng,
    ) -> Result<Pair> {
        c0.change_representation(Representation::PowerBasis);
        c1.change_representation(Representation::PowerBasis);
        *c0 += &*self.scaled(slots)?;
        // The encryption of 0: (b u + e_1, a u + e_2).
        let mut u = self.small(rng)?;
        u.change_representation(Representation::Ntt);
        for (c, half) in [&mut c0, &mut c1].into_iter().zip(public_key) {
            **c += &*self.product(half, &u);
            **c += &*self.small(rng)?;
        }
        *c0 += &*self.flood(flood, rng)?;
        Ok([c0, c1])
    }

    /// Noise, with each coefficient uniform from -2^`bits` up to 2^`bits` - 1.
    fn flood(&self, bits: u32, rng: &mut Prng) -> Result<Element> {
        let mut random = Secrets::<u128>::zeros(DEGREE);
        random.iter_mut().for_each(|word| *word = u128::from_le_bytes(rng.bytes()) & ((2 << bits) - 1));
        let shifted = |q: &Modulus, word: u128| q.sub(q.reduce_u128(word), q.reduce_u128(1 << bits));
        let per_prime = self.q.moduli_operators().iter();
        self.element(in_place(per_prime.flat_map(|q| random.iter().map(|word| shifted(q, *word)))))
    }

    /// Decrypts a ciphertext to its slots.
    pub(crate) fn decrypt(&self, key: &SecretKey, [c0, c1]: &Pair) -> Result<Secrets<u64>> {
        let mut phase = self.product(c1, &key.0);
        *phase += &**c0;
        let mut m = Zeroizing::new(phase.scale(&self.down).map_err(mismatch)?);
        m.change_representation(Representation::Ntt);
        let values = coefficients(&m);
        Ok(Secrets::from(self.places.iter().map(|&at| values[at]).collect::<Vec<_>>()))
    }

    /// A polynomial as it is sent: its residues modulo the first prime, then the others, in order of the coefficients.
    pub(crate) fn write(&self, p: &Element) -> Vec<u8> {
        let residues = coefficients(p);
        residues.iter().flat_map(|residue| residue.to_le_bytes().into_iter().take(RESIDUE)).collect()
    }

    /// Reads a polynomial from the message of this name.
    ///
    /// # Errors
    /// [`Error::Peer`] for a length other than [`POLYNOMIAL`], and for residues that are not below their prime.
    pub(crate) fn read(&self, name: &str, bytes: &[u8]) -> Result<Element> {
        let expected = DEGREE * MODULI.len();
        let (residues, more) = bytes.as_chunks::<RESIDUE>();
        if residues.len() != expected || !more.is_empty() {
            let (length, expected) = (bytes.len(), expected * RESIDUE);
            return Err(Error::misbehaves(format!(
                "its {name} has a polynomial of {length} bytes, not of {expected}"
            )));
        }
        let mut coefficients = Vec::with_capacity(expected);
        for (residues, q) in residues.chunks(DEGREE).zip(MODULI) {
            for bytes in residues {
                let residue = bytes.iter().rev().fold(0, |residue, byte| residue << 8 | u64::from(*byte));
                if residue >= q {
                    return Err(Error::misbehaves(format!(
                        "its {name} has a residue that is not below its modulus: expected at most {}, received \
                         {residue}",
                        q - 1
                    )));
                }
                coefficients.push(residue);
            }
        }
        self.element(coefficients)
    }
}

/// Values in slots: all first components, then all second components.
pub(crate) fn slots(components: &[[u64; 2]]) -> Secrets<u64> {
    let mut slots = Secrets::zeros(DEGREE);
    for (i, [first, second]) in components.iter().enumerate().take(QUERIES) {
        (slots[i], slots[QUERIES + i]) = (*first, *second);
    }
    slots
}

/// Collects the residues of a polynomial in a list that does not move while it grows, and so leaves no copies behind.
fn in_place(residues: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut all = Vec::with_capacity(MODULI.len() * DEGREE);
    all.extend(residues);
    all
}

#[cfg(test)]
#[path = "bfv_tests.rs"]
pub(crate) mod tests;
