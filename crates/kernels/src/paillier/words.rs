//! Fixed-length numbers as words, the least significant first: the operations of Paillier's encryption other than those of
//! `aws_lc.rs`. No branch and no address depends on a value, except that of a [`Divisor`], which is public. No division is
//! used.

use std::iter::zip;
use zeroize::Zeroizing;

/// A number that is wiped on drop.
pub(super) type Words = Zeroizing<Vec<u64>>;

/// Returns zero with this number of words.
pub(super) fn zero(length: usize) -> Words {
    Zeroizing::new(vec![0; length])
}

/// Loads a number from bytes, the least significant first, in whole words.
pub(super) fn load(bytes: &[u8]) -> Words {
    let (words, rest) = bytes.as_chunks();
    debug_assert!(rest.is_empty(), "whole words");
    let mut out = zero(words.len());
    zip(&mut *out, words).for_each(|(out, word)| *out = u64::from_le_bytes(*word));
    out
}

/// Stores a number as bytes, the inverse of [`load`].
pub(super) fn store(words: &[u64], bytes: &mut [u8]) {
    zip(bytes.as_chunks_mut().0, words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
}

/// Returns the bytes of a number.
pub(super) fn bytes(words: &[u64]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(vec![0; 8 * words.len()]);
    store(words, &mut out);
    out
}

/// Replaces a with a - b, and returns whether the result is negative. `b` is no longer than `a`; missing words are 0.
pub(super) fn subtract(a: &mut [u64], b: &[u64]) -> bool {
    let mut borrow = false;
    for (i, a) in a.iter_mut().enumerate() {
        let (difference, below) = a.overflowing_sub(b.get(i).copied().unwrap_or(0));
        let (difference, also) = difference.overflowing_sub(u64::from(borrow));
        (*a, borrow) = (difference, below | also);
    }
    borrow
}

/// Replaces a with a + b if `really`, and returns the carry.
fn add_if(really: bool, a: &mut [u64], b: &[u64]) -> bool {
    let mask = std::hint::black_box(0u64.wrapping_sub(u64::from(really)));
    let mut carry = false;
    for (a, b) in zip(a, b) {
        let (sum, above) = a.overflowing_add(b & mask);
        let (sum, also) = sum.overflowing_add(u64::from(carry));
        (*a, carry) = (sum, above | also);
    }
    carry
}

/// Replaces a with a + 1.
pub(super) fn increment(a: &mut [u64]) {
    let mut carry = true;
    for a in a {
        (*a, carry) = a.overflowing_add(u64::from(carry));
    }
}

/// Replaces 0 with 1.
pub(super) fn zero_to_one(a: &mut [u64]) {
    let any = a.iter().fold(0, |any, word| any | word);
    // The top bit of x | -x is set unless x = 0.
    a[0] |= 1 ^ ((any | any.wrapping_neg()) >> 63);
}

/// Shifts a number right by less than a word.
pub(super) fn shift_right(a: &mut [u64], bits: u32) {
    let mut above = 0u128;
    for a in a.iter_mut().rev() {
        above = above << 64 | u128::from(*a);
        *a = (above >> bits) as u64;
    }
}

/// Returns 1 if two numbers of equal length differ, else 0.
pub(super) fn differ(a: &[u64], b: &[u64]) -> u64 {
    let any = zip(a, b).fold(0, |any, (a, b)| any | (a ^ b));
    // As in `zero_to_one`.
    (any | any.wrapping_neg()) >> 63
}

/// Returns (a - b) mod m, for numbers below m.
pub(super) fn difference(a: &[u64], b: &[u64], m: &[u64]) -> Words {
    let mut out = Zeroizing::new(a.to_vec());
    let below = subtract(&mut out, b);
    add_if(below, &mut out, m);
    out
}

/// Returns a + b c, with the combined length of b and c. It must fit.
pub(super) fn multiply_add(a: &[u64], b: &[u64], c: &[u64]) -> Words {
    let mut out = zero(b.len() + c.len());
    out[..a.len()].copy_from_slice(a);
    for (i, b) in b.iter().enumerate() {
        let mut carry = 0u128;
        for (j, out) in out[i..].iter_mut().enumerate() {
            let term = u128::from(*b) * u128::from(c.get(j).copied().unwrap_or(0));
            carry += u128::from(*out) + term;
            *out = carry as u64;
            carry >>= 64;
        }
    }
    out
}

/// Returns a b modulo 2 to the length of `a` in bits.
pub(super) fn low_product(a: &[u64], b: &[u64]) -> Words {
    let mut out = zero(a.len());
    for (i, a) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (out, b) in zip(&mut out[i..], b) {
            carry += u128::from(*out) + u128::from(*a) * u128::from(*b);
            *out = carry as u64;
            carry >>= 64;
        }
    }
    out
}

/// Returns the inverse of an odd number modulo 2 to its length in bits.
pub(super) fn inverse(odd: &[u64]) -> Words {
    let mut out = zero(odd.len());
    // Each step doubles the number of correct bits; a number is its own inverse modulo 8.
    out[0] = odd[0];
    let mut right = 3;
    while right < 64 * odd.len() {
        let mut step = low_product(odd, &out);
        step.iter_mut().for_each(|word| *word = !*word);
        // 2 - x is !x + 3.
        (0..3).for_each(|_| increment(&mut step));
        out = low_product(&out, &step);
        right *= 2;
    }
    out
}

/// Returns a mod m, computed bit by bit. `m` has its top bit set and is no longer than `a`.
pub(super) fn remainder(a: &[u64], m: &[u64]) -> Words {
    let (low, high) = a.split_at(a.len() - m.len());
    let mut out = Zeroizing::new(high.to_vec());
    // Below 2 m, because of the top bit of m.
    reduce_once(false, &mut out, m);
    for word in low.iter().rev() {
        for bit in (0..64).rev() {
            let mut in_ = word >> bit & 1;
            for out in out.iter_mut() {
                (*out, in_) = (*out << 1 | in_, *out >> 63);
            }
            reduce_once(in_ == 1, &mut out, m);
        }
    }
    out
}

/// Reduces a modulo m, for a number below 2 m with top bit `carry`.
fn reduce_once(carry: bool, a: &mut [u64], m: &[u64]) {
    let below = subtract(a, m);
    add_if(below & !carry, a, m);
}

/// A public divisor from 2 to 2^16 - 1.
pub(super) struct Divisor {
    pub(super) value: u16,
    /// 2^64 / value, rounded up.
    reciprocal: u64,
}

impl Divisor {
    pub(super) fn new(value: u16) -> Divisor {
        // Bit by bit, as division instructions are not allowed anywhere in a kernel.
        let (mut rest, mut reciprocal) = (1u64, 0);
        for _ in 0..64 {
            rest *= 2;
            let fits = rest >= value.into();
            reciprocal = reciprocal << 1 | u64::from(fits);
            rest -= if fits { value.into() } else { 0 };
        }
        Divisor { value, reciprocal: reciprocal + u64::from(rest != 0) }
    }

    /// Returns the remainder of a number. Constant-time in the number.
    pub(super) fn remainder(&self, a: &[u64]) -> u16 {
        // For n below 2^48, n / d is n times the reciprocal, divided by 2^64. The result is too large by less than 2^48
        // / 2^64, which is at most 1 / d.
        let mut out = 0u64;
        for word in a.iter().rev() {
            for half in [word >> 32, word & 0xffff_ffff] {
                let n = out << 32 | half;
                let quotient = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64;
                out = n - quotient * u64::from(self.value);
            }
        }
        out as u16
    }
}
