//! The field computed with big integers, for tests.

use num_bigint::BigUint;
use sha2::{Digest, Sha512};

pub(crate) fn p() -> BigUint {
    (BigUint::from(1u8) << 255) - 19u8
}

pub(crate) fn int(n: u32) -> BigUint {
    BigUint::from(n)
}

pub(crate) fn sub(a: &BigUint, b: &BigUint) -> BigUint {
    (a + p() - b % p()) % p()
}

pub(crate) fn inv(a: &BigUint) -> BigUint {
    a.modpow(&(p() - 2u8), &p())
}

/// Euler's criterion: 0, 1, or p - 1.
pub(crate) fn euler(a: &BigUint) -> BigUint {
    a.modpow(&((p() - 1u8) >> 1), &p())
}

/// A square root of a square.
pub(crate) fn sqrt(a: &BigUint) -> BigUint {
    // p = 5 (mod 8): a^((p+3)/8), or its product with the square root 2^((p-1)/4) of -1.
    let root = a.modpow(&((p() + 3u8) >> 3), &p());
    let i = int(2).modpow(&((p() - 1u8) >> 2), &p());
    [root.clone(), root * i % p()].into_iter().find(|r| r * r % p() == *a).expect("a square")
}

pub(crate) fn big(bytes: &[u8; 32]) -> BigUint {
    BigUint::from_bytes_le(bytes)
}

pub(crate) fn bytes(n: &BigUint) -> [u8; 32] {
    let mut out = [0; 32];
    let le = n.to_bytes_le();
    out[..le.len()].copy_from_slice(&le);
    out
}

/// 32 bytes from hexadecimal, in the order written.
pub(crate) fn hex(s: &str) -> [u8; 32] {
    assert_eq!(s.len(), 64);
    std::array::from_fn(|i| u8::from_str_radix(&s[2 * i..2 * i + 2], 16).unwrap())
}

/// 32 little-endian bytes from a number in hexadecimal, most significant digit first.
pub(crate) fn hex_number(s: &str) -> [u8; 32] {
    let mut b = hex(s);
    b.reverse();
    b
}

/// n numbers below p, the same in every run.
pub(crate) fn samples(n: usize) -> Vec<[u8; 32]> {
    let number = |i: usize| BigUint::from_bytes_le(&Sha512::digest(i.to_le_bytes()));
    (0..n).map(|i| bytes(&(number(i) % p()))).collect()
}

/// Numbers at the edges of the field, of its encoding and of the limbs.
pub(crate) fn edges() -> Vec<BigUint> {
    let one = || int(1);
    let mut all = vec![int(0), int(1), int(2), int(9), int(486_662), p() - 2u8, p() - 1u8, p(), p() + 1u8];
    all.extend([(one() << 255) - 1u8, one() << 255, (one() << 255) + 18u8, (one() << 255) + 19u8]);
    all.extend([(one() << 256) - 1u8, (one() << 256) - 38u8, (one() << 256) - 39u8]);
    for i in 1..5 {
        all.extend([(one() << (51 * i)) - 1u8, one() << (51 * i), p() - (one() << (51 * i))]);
    }
    all
}
