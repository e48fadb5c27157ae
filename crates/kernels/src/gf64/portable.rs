//! The specification of the kernel: products computed bit by bit.

use super::MODULUS;

pub(super) fn add_multiple(factor: &[u8; 16], x: &[[u8; 8]], sums: &mut [[u8; 16]]) {
    for (x, sum) in x.iter().zip(sums) {
        let product = multiply(u64::from_le_bytes(*x), *factor);
        *sum = (u128::from_le_bytes(*sum) ^ product).to_le_bytes();
    }
}

pub(super) fn sum_of_products(a: &[[u8; 8]], b: &[[u8; 16]]) -> [u8; 16] {
    let products = a.iter().zip(b).map(|(a, b)| multiply(u64::from_le_bytes(*a), *b));
    products.fold(0, |sum, product| sum ^ product).to_le_bytes()
}

/// Returns the product of the element and both elements of the pair.
fn multiply(mut a: u64, pair: [u8; 16]) -> u128 {
    let mut pair = u128::from_le_bytes(pair);
    // Bit i of each element, in turn, selects x^i a.
    let mut product = 0;
    for _ in 0..64 {
        let [low, high] = [pair, pair >> 64].map(|word| u128::from(a) & (word & 1).wrapping_neg());
        product ^= low | high << 64;
        a = a << 1 ^ MODULUS & (a >> 63).wrapping_neg();
        pair >>= 1;
    }
    product
}
