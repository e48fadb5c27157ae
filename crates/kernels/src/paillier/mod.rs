//! Paillier's encryption, in batches (P. Paillier, "Public-key cryptosystems based on composite degree residuosity
//! classes", EUROCRYPT 1999), as operations on encrypted Bloom filters need it (A. Davidson and C. Cid, "An efficient
//! toolkit for computing private set operations", ACISP 2017).
//!
//! N = p q is the public key. An encryption of m modulo N is (1 + m N) s^N modulo N^2 for a random s. The product of
//! two ciphertexts is an encryption of the sum of their messages, and a power is one of a multiple.
//!
//! Numbers are bytes, the least significant first, of fixed width: a number modulo N has as many bits as N, a
//! ciphertext twice as many. Modular multiplication is aws-lc's, which TLS links anyway.
//!
//! # Constant time
//!
//! No branch and no address depends on a message, a weight, randomness or the secret key in [`PublicKey::combine`],
//! [`PublicKey::multiply`], [`SecretKey::encrypt`], [`SecretKey::decrypt`] and [`SecretKey::prove`]. The library's
//! division branches, so remainders of secrets are taken by Montgomery's reduction, or bit by bit. Exponents have fixed
//! width, so leading zeros do not show. What shows:
//!
//! * [`PublicKey::new`], [`PublicKey::proven`] and [`PublicKey::check`] branch on their inputs, which are public.
//! * How a key came about: how many candidates were drawn before a prime was found, and in which step each of the
//!   others was refused.
//! * Of [`SecretKey::prove`], what the proof says, and how many numbers were drawn before one had the Jacobi symbol -1.
//! * When a key first encrypts: how many primes below 2^16 divide p - 1 and q - 1, and how many small numbers do not
//!   generate the group. That is a few bits, once.
//! * That a number is below its modulus and fits its width, which the library checks by branches. It always is and
//!   does.
//!
//! # What is not protected
//!
//! * [`PublicKey::new`] does not know whether N is the product of two primes, nor whether gcd(N, phi(N)) = 1. That
//!   takes a proof, and [`PublicKey::proven`].
//! * The owner of a sound modulus may encrypt any number modulo N. One that is 0 modulo p and 1 modulo q is two messages
//!   in one ciphertext, and no proof of N rules it out.
//! * Ciphertexts are not authenticated: anyone can change their messages.
//! * Faults: a decryption that is wrong modulo one prime is not noticed.

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

/// Bytes of randomness above the width of the modulus, so that a number of that many bytes is nearly uniform modulo it.
const EXCESS: usize = 16;

/// The least and the greatest number of bits of a modulus. The least is for tests.
const BITS: std::ops::RangeInclusive<usize> = 256..=8192;

/// What is wrong with a modulus that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsound {
    /// Its length is not a multiple of 128 bits from 256 to 8192, or its top bit is not set.
    Length,
    /// It is even.
    Even,
    /// A prime below 2^16 divides it.
    SmallFactor,
    /// It is prime.
    Prime,
    /// It is the power of another integer.
    Power,
    /// It is not proven that it has two prime factors and that gcd(N, phi(N)) = 1.
    Proof,
}

/// A modulus N, for those who know N only.
pub struct PublicKey {
    n: Vec<u8>,
    modulus: Modulus,
    square: Modulus,
    /// N R modulo N^2, for products by N.
    n_in_square: Number,
}

impl PublicKey {
    /// From a modulus that was received without a proof; [`PublicKey::proven`] takes one.
    ///
    /// Not constant-time.
    ///
    /// # Errors
    ///
    /// What is wrong with it. A modulus without an error need not have two prime factors.
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
        // A root is above 2^16, and an exponent that is not prime has a prime divisor.
        let primes = small_primes().iter().map(|prime| prime.value.into());
        let mut exponents = primes.take_while(|prime| 16 * prime <= bits);
        if exponents.any(|exponent| number.vartime_is_power(exponent, bits, &mut scratch)) {
            return Err(Unsound::Power);
        }
        Ok(PublicKey::unchecked(n, &mut scratch))
    }

    /// From a modulus that is sound.
    fn unchecked(n: &[u8], scratch: &mut Scratch) -> PublicKey {
        let words = words::load(n);
        let square = words::bytes(&words::multiply_add(&[], &words, &words));
        let square = Modulus::new(&square, scratch);
        let mut n_in_square = widened(n, 2 * n.len());
        square.enter(&mut n_in_square, scratch);
        PublicKey { n: n.to_vec(), modulus: Modulus::new(n, scratch), square, n_in_square }
    }

    /// The modulus.
    pub fn n(&self) -> &[u8] {
        &self.n
    }

    /// Bits of the modulus.
    pub fn bits(&self) -> usize {
        8 * self.n.len()
    }

    /// Bytes of a ciphertext.
    pub fn width(&self) -> usize {
        2 * self.n.len()
    }

    /// Bytes of randomness for each result of [`PublicKey::combine`].
    pub fn randomness(&self) -> usize {
        self.n.len() + EXCESS
    }

    /// Whether these are ciphertexts: below N^2 and coprime to N. One greatest common divisor serves all of them.
    ///
    /// Not constant-time: ciphertexts are public.
    ///
    /// # Errors
    ///
    /// The position of the first that is not.
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
        // The first that is not a unit is in here.
        let (mut start, mut end) = (0, reduced.len());
        while end - start > 1 {
            let middle = start.midpoint(end);
            if self.are_units(&reduced[start..middle], &mut scratch) { start = middle } else { end = middle }
        }
        Err(start)
    }

    /// Whether numbers below N^2 are all coprime to N.
    fn are_units(&self, numbers: &[&[u8]], scratch: &mut Scratch) -> bool {
        // Powers of R do not matter: R is a unit.
        let (mut product, mut factor) = (widened(&[1], self.n.len()), Number::zero());
        for number in numbers {
            factor.set(number);
            self.modulus.leave(&mut factor, scratch);
            self.modulus.multiply(&mut product, &factor, scratch);
        }
        product.is_coprime_to(self.modulus.number(), scratch)
    }

    /// Multiplies each ciphertext by another, modulo N^2: their messages add up.
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
    /// If the slices differ in length, or the length is not a multiple of that width.
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
    /// k + w m where c is one of m.
    ///
    /// Constants and weights have the width of N and may be any numbers. The random numbers have
    /// [`PublicKey::randomness`] bytes each. If these are uniform, s is nearly uniform modulo N; that it is not coprime
    /// to N is as likely as a factor of N is to be guessed. 0 counts as 1.
    ///
    /// An encryption of k alone has the weight 0; the ciphertext does not matter then, if it is one.
    ///
    /// # Panics
    ///
    /// If the slices do not have a number each for as many results.
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

/// How many numbers of this width there are, without a division, which the tests of constant time do not allow.
///
/// # Panics
///
/// If the last is not whole.
fn count(length: usize, width: usize) -> usize {
    let mut count = 0;
    while count * width < length {
        count += 1;
    }
    assert!(count * width == length, "whole numbers");
    count
}

/// Whether a public number is below another of the same width.
fn is_below(number: &[u8], other: &[u8]) -> bool {
    number.iter().rev().lt(other.iter().rev())
}

/// A number of this width, with leading zeros.
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
