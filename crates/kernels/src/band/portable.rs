//! The specification of the kernel: masked sums, element by element.

use super::{WIDTH, window};

pub(super) fn select(starts: &[u32], bits: &[u128], vector: &[[u8; 16]], sums: &mut [[u8; 16]]) {
    for ((&start, &bits), sum) in starts.iter().zip(bits).zip(sums) {
        *sum = sum_of(bits, window(vector, start as usize));
    }
}

pub(super) fn substitute(bits: &[u128], vector: &mut [[u8; 16]]) {
    for (i, &bits) in bits.iter().enumerate().rev() {
        let sum = sum_of(bits | 1, window(vector, i));
        vector[i] = sum;
    }
}

#[inline]
fn sum_of(mut bits: u128, elements: &[[u8; 16]; WIDTH]) -> [u8; 16] {
    let mut sum = 0;
    for element in elements {
        sum ^= u128::from_le_bytes(*element) & (bits & 1).wrapping_neg();
        bits >>= 1;
    }
    sum.to_le_bytes()
}
