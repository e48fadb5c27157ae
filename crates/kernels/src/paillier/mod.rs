//! Paillier's encryption, in batches (P. Paillier, "Public-key cryptosystems based on composite degree residuosity
//! classes", EUROCRYPT 1999), as needed for operations on encrypted Bloom filters (A. Davidson and C. Cid, "An
//! efficient toolkit for computing private set operations", ACISP 2017).
//!
//! N = p q is the public key. An encryption of m modulo N is (1 + m N) s^N modulo N^2 for a random s. The product of
//! two ciphertexts is an encryption of the sum of their messages, and a power encrypts a multiple.
//!
//! Numbers are bytes, the least significant first, of fixed width: a number modulo N has as many bits as N, a
//! ciphertext twice as many. Modular multiplication uses aws-lc, which TLS links anyway.
//!
//! # Constant time
//!
//! No branch and no address depends on a message, a weight, randomness or the secret key in [`PublicKey::combine`],
//! [`PublicKey::multiply`], [`PublicKey::multiply_numbers`], [`SecretKey::encrypt`], [`SecretKey::decrypt`] and
//! [`SecretKey::prove`]. The library's division branches, so remainders of secrets are computed with Montgomery
//! reduction, or bit by bit. Exponents have fixed width, so leading zeros are not revealed. The following is revealed:
//!
//! * [`PublicKey::new`], [`PublicKey::proven`] and [`PublicKey::check`] branch on their inputs, which are public.
//! * Key generation reveals how many candidates were drawn before a prime was found, at which step each of the others
//!   was rejected, and which of the two primes is the greater. It and [`SecretKey::from_bytes`] sometimes reveal that a
//!   witness of the primality of a prime was drawn again.
//! * [`SecretKey::prove`] reveals the proof, and how many numbers were drawn before one had the Jacobi symbol -1.
//! * When a key first encrypts: which primes below 2^16 divide p - 1 and q - 1, how many small numbers do not generate
//!   the group, and which of these primes shows it. For each of p and q these are about 20 bits on average, revealed
//!   once.
//! * The library checks with branches that a number is below its modulus and fits its width, which always holds.
//!
//! # Limitations
//!
//! * [`PublicKey::new`] does not check that N is the product of two primes and that gcd(N, phi(N)) = 1. That takes a
//!   proof, and [`PublicKey::proven`].
//! * The owner of a sound modulus may encrypt any number modulo N. A number that is 0 modulo p and 1 modulo q puts two
//!   messages into one ciphertext, and no proof of N excludes it.
//! * Ciphertexts are not authenticated: anyone can change their messages.
//! * A fault that makes a decryption wrong modulo one prime is not detected.

mod aws_lc;
mod combine;
mod proof;
mod secret;
mod table;
mod words;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod proof_tests;
#[cfg(test)]
mod tests;

pub use proof::proof_length;
pub use secret::SecretKey;

use aws_lc::{Modulus, Number, Scratch};
use combine::Combiner;
use std::sync::OnceLock;
use words::Divisor;
use zeroize::Zeroizing;

/// Number of bytes of randomness in excess of the modulus, so that the number is nearly uniform modulo it.
const EXCESS: usize = 16;

/// The minimum and maximum length of a modulus in bits. The minimum is for tests.
const BITS: std::ops::RangeInclusive<usize> = 256..=8192;

/// The reason why a received modulus is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsound {
    /// The length is not a multiple of 128 bits from 256 to 8192, or the top bit is not set.
    Length,
    /// The modulus is even.
    Even,
    /// A prime below 2^16 divides the modulus.
    SmallFactor,
    /// The modulus is prime.
    Prime,
    /// The modulus is a power of another integer.
    Power,
    /// The proof that the modulus has two prime factors and that gcd(N, phi(N)) = 1 is invalid.
    Proof,
}

/// A modulus N without its factors.
pub struct PublicKey {
    n: Vec<u8>,
    modulus: Modulus,
    square: Modulus,
    /// N R modulo N^2, for multiplying by N.
    n_in_square: Number,
}

impl PublicKey {
    /// Makes a key from a received modulus without a proof; [`PublicKey::proven`] verifies one.
    ///
    /// Not constant-time.
    ///
    /// # Errors
    ///
    /// The defect of the modulus. A modulus without a detected defect may still not have two prime factors.
    pub fn new(n: &[u8]) -> Result<PublicKey, Unsound> {
        if !BITS.contains(&(8 * n.len())) || !n.len().is_multiple_of(16) || n[n.len() - 1] < 0x80 {
            return Err(Unsound::Length);
        }
        if n[0] & 1 == 0 {
            return Err(Unsound::Even);
        }
        let words = words::load(n);
        if small_primes().iter().any(|prime| prime.remainder(&words) == 0) {
            return Err(Unsound::SmallFactor);
        }
        let (mut scratch, number, bits) = (Scratch::new(), Number::new(n), 8 * n.len() as u32);
        if number.is_prime(false, &mut scratch) {
            return Err(Unsound::Prime);
        }
        // A root is above 2^16, and it suffices to test prime exponents.
        let primes = small_primes().iter().map(|prime| prime.value.into());
        let mut exponents = primes.take_while(|prime| 16 * prime <= bits);
        if exponents.any(|exponent| number.vartime_is_power(exponent, bits, &mut scratch)) {
            return Err(Unsound::Power);
        }
        Ok(PublicKey::unchecked(n, &mut scratch))
    }

    /// Makes a key from a modulus, without checks.
    fn unchecked(n: &[u8], scratch: &mut Scratch) -> PublicKey {
        let words = words::load(n);
        let square = words::bytes(&words::multiply_add(&[], &words, &words));
        let square = Modulus::new(&square, scratch);
        let mut n_in_square = widened(n, 2 * n.len());
        square.enter(&mut n_in_square, scratch);
        PublicKey { n: n.to_vec(), modulus: Modulus::new(n, scratch), square, n_in_square }
    }

    /// Returns the modulus, the least significant byte first.
    pub fn n(&self) -> &[u8] {
        &self.n
    }

    /// Returns the length of the modulus in bits.
    pub fn bits(&self) -> usize {
        8 * self.n.len()
    }

    /// Returns the length of a ciphertext in bytes.
    pub fn width(&self) -> usize {
        2 * self.n.len()
    }

    /// Returns the number of random bytes for each result of [`PublicKey::combine`].
    pub fn randomness(&self) -> usize {
        self.n.len() + EXCESS
    }

    /// Checks that these are ciphertexts: below N^2 and coprime to N. If they are, one greatest common divisor serves all.
    ///
    /// Not constant-time: ciphertexts are public.
    ///
    /// # Errors
    ///
    /// The position of the first number that is not a ciphertext.
    ///
    /// # Panics
    ///
    /// If the length is not a multiple of [`PublicKey::width`].
    pub fn check(&self, ciphertexts: &[u8]) -> Result<(), usize> {
        let (mut scratch, width) = (Scratch::new(), self.width());
        let all: Vec<&[u8]> =
            (0..count(ciphertexts.len(), width)).map(|i| &ciphertexts[i * width..][..width]).collect();
        let mut square = Zeroizing::new(vec![0; width]);
        self.square.number().get(&mut square);
        let reduced = all.iter().position(|number| !is_below(number, &square));
        let reduced = &all[..reduced.unwrap_or(all.len())];
        if self.are_units(reduced, &mut scratch) {
            return if reduced.len() == all.len() { Ok(()) } else { Err(reduced.len()) };
        }
        // Bisects for the first number that is not a unit.
        let (mut start, mut end) = (0, reduced.len());
        while end - start > 1 {
            let middle = start.midpoint(end);
            if self.are_units(&reduced[start..middle], &mut scratch) { start = middle } else { end = middle }
        }
        Err(start)
    }

    /// Returns whether numbers below N^2 are all coprime to N.
    fn are_units(&self, numbers: &[&[u8]], scratch: &mut Scratch) -> bool {
        // Powers of R do not matter, because R is a unit.
        let (mut product, mut factor) = (widened(&[1], self.n.len()), Number::zero());
        for number in numbers {
            factor.set(number);
            self.modulus.leave(&mut factor, scratch);
            self.modulus.multiply(&mut product, &factor, scratch);
        }
        product.is_coprime_to(self.modulus.number(), scratch)
    }

    /// Multiplies each ciphertext by another, modulo N^2, which adds their messages.
    ///
    /// # Panics
    ///
    /// If the slices differ in length, or the length is not a multiple of [`PublicKey::width`].
    pub fn multiply(&self, products: &mut [u8], by: &[u8]) {
        assert_eq!(products.len(), by.len(), "multiply: as many factors as products");
        let (mut scratch, mut a, mut b, width) =
            (Scratch::new(), Number::zero(), Number::zero(), self.width());
        for i in 0..count(products.len(), width) {
            let product = &mut products[i * width..][..width];
            a.set(product);
            b.set(&by[i * width..][..width]);
            self.square.enter(&mut a, &mut scratch);
            self.square.multiply(&mut a, &b, &mut scratch);
            a.get(product);
        }
    }

    /// Multiplies each number by another, modulo N. All have the width of N.
    ///
    /// # Panics
    ///
    /// If the slices differ in length, or the length is not a multiple of this width.
    pub fn multiply_numbers(&self, products: &mut [u8], by: &[u8]) {
        assert_eq!(products.len(), by.len(), "multiply_numbers: as many factors as products");
        let (mut scratch, mut a, mut b, width) =
            (Scratch::new(), Number::zero(), Number::zero(), self.n.len());
        for i in 0..count(products.len(), width) {
            let product = &mut products[i * width..][..width];
            a.set(product);
            b.set(&by[i * width..][..width]);
            self.modulus.enter(&mut a, &mut scratch);
            self.modulus.multiply(&mut a, &b, &mut scratch);
            a.get(product);
        }
    }

    /// Writes (1 + k N) c^w s^N modulo N^2 for each constant k, weight w, ciphertext c and random s: an encryption of
    /// k + w m if c encrypts m.
    ///
    /// Constants and weights have the width of N and may be any numbers. The random numbers have
    /// [`PublicKey::randomness`] bytes each. If these are uniform, s is nearly uniform modulo N; it is coprime to N
    /// unless it happens to reveal a factor of N. A random number 0 is replaced with 1.
    ///
    /// For an encryption of k alone, set the weight to 0; any ciphertext then serves.
    ///
    /// # Panics
    ///
    /// If the slices do not all have a number for each of the same number of results.
    pub fn combine(
        &self,
        constants: &[u8],
        weights: &[u8],
        ciphertexts: &[u8],
        randomness: &[u8],
        out: &mut [u8],
    ) {
        let (n, width, s) = (self.n.len(), self.width(), self.randomness());
        let count = count(out.len(), width);
        assert_eq!(constants.len(), count * n, "combine: as many constants as results");
        assert_eq!(weights.len(), count * n, "combine: as many weights as results");
        assert_eq!(ciphertexts.len(), count * width, "combine: as many ciphertexts as results");
        assert_eq!(randomness.len(), count * s, "combine: as many random numbers as results");
        let mut combiner = Combiner::new(self);
        for i in 0..count {
            let inputs = [
                &constants[i * n..][..n],
                &weights[i * n..][..n],
                &ciphertexts[i * width..][..width],
                &randomness[i * s..][..s],
            ];
            combiner.combine(inputs, &mut out[i * width..][..width]);
        }
    }
}

/// Returns the quotient of a length and a width, computed without a division, which the tests of constant time do not
/// allow.
///
/// # Panics
///
/// If the length is not a multiple of the width.
fn count(length: usize, width: usize) -> usize {
    let mut count = 0;
    while count * width < length {
        count += 1;
    }
    assert!(count * width == length, "whole numbers");
    count
}

/// Returns whether a public number is below another of the same width.
fn is_below(number: &[u8], other: &[u8]) -> bool {
    number.iter().rev().lt(other.iter().rev())
}

/// Returns the number with leading zeros up to this width.
fn widened(bytes: &[u8], width: usize) -> Number {
    let mut wide = Zeroizing::new(vec![0; width]);
    wide[..bytes.len()].copy_from_slice(bytes);
    Number::new(&wide)
}

/// The primes below 2^16.
fn small_primes() -> &'static [Divisor] {
    static PRIMES: OnceLock<Vec<Divisor>> = OnceLock::new();
    PRIMES.get_or_init(|| {
        let mut composite = vec![false; 1 << 16];
        let mut primes = Vec::new();
        for i in 2..1 << 16 {
            if !composite[i] {
                primes.push(Divisor::new(i as u16));
                (i * i..1 << 16).step_by(i).for_each(|multiple| composite[multiple] = true);
            }
        }
        primes
    })
}
