//! The specification of the kernel: products computed bit by bit.

/// The reduction of x^128.
const MODULUS: u128 = 0x87;

pub(super) fn add_multiple(factor: &[u8; 16], x: &[[u8; 16]], sums: &mut [[u8; 16]]) {
    for (x, sum) in x.iter().zip(sums) {
        let product = multiply(u128::from_le_bytes(*factor), u128::from_le_bytes(*x));
        *sum = (u128::from_le_bytes(*sum) ^ product).to_le_bytes();
    }
}

pub(super) fn sum_of_products(a: &[[u8; 16]], b: &[[u8; 16]]) -> [u8; 16] {
    let products = a.iter().zip(b).map(|(a, b)| multiply(u128::from_le_bytes(*a), u128::from_le_bytes(*b)));
    products.fold(0, |sum, product| sum ^ product).to_le_bytes()
}

/// The sum of x^i `a` over the bits i that are set in `b`.
fn multiply(mut a: u128, mut b: u128) -> u128 {
    let mut product = 0;
    for _ in 0..128 {
        product ^= a & (b & 1).wrapping_neg();
        a = a << 1 ^ MODULUS & (a >> 127).wrapping_neg();
        b >>= 1;
    }
    product
}
