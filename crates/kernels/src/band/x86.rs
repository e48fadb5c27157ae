//! Four elements to a register of AVX-512: four bits of a row become the mask of its eight words.
//!
//! A substitution reads elements that earlier steps have just written, which costs more than the sum itself. A load
//! waits until the stores that it covers in part have left the store buffer.

use std::arch::x86_64::*;

use super::{WIDTH, window};

/// Elements of a register.
const LANES: usize = 4;
/// Sums in flight, to cover the latency of the exclusive-or.
const SUMS: usize = 4;

#[target_feature(enable = "avx512f,bmi2")]
pub(super) fn select(starts: &[u32], bits: &[u128], vector: &[[u8; 16]], sums: &mut [[u8; 16]]) {
    for ((&start, &bits), sum) in starts.iter().zip(bits).zip(sums) {
        *sum = sum_of(bits, window(vector, start as usize));
    }
}

#[target_feature(enable = "avx512f,bmi2")]
pub(super) fn substitute(bits: &[u128], vector: &mut [[u8; 16]]) {
    for (i, &bits) in bits.iter().enumerate().rev() {
        let sum = sum_of(bits | 1, window(vector, i));
        vector[i] = sum;
    }
}

#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn sum_of(bits: u128, elements: &[[u8; 16]; WIDTH]) -> [u8; 16] {
    let mut sums = [_mm512_setzero_si512(); SUMS];
    // 32 elements at a time: a word of 64 bits is the masks of 8 registers.
    for (i, part) in elements.as_chunks::<32>().0.iter().enumerate() {
        #[allow(clippy::cast_possible_truncation)] // Meant: 32 bits of the row.
        let masks = _pdep_u64(u64::from((bits >> (32 * i)) as u32), 0x5555_5555_5555_5555) * 3;
        for (j, elements) in part.as_chunks::<LANES>().0.iter().enumerate() {
            let mask = masks.to_le_bytes()[j];
            // SAFETY: a register is read from an array of its size; the load asks for no alignment.
            let elements = unsafe { _mm512_loadu_si512(elements.as_ptr().cast()) };
            sums[j % SUMS] = _mm512_mask_xor_epi64(sums[j % SUMS], mask, sums[j % SUMS], elements);
        }
    }
    let sum = _mm512_xor_si512(_mm512_xor_si512(sums[0], sums[1]), _mm512_xor_si512(sums[2], sums[3]));
    let sum = _mm512_xor_si512(sum, _mm512_shuffle_i64x2::<0b01_00_11_10>(sum, sum));
    let sum = _mm512_xor_si512(sum, _mm512_shuffle_i64x2::<0b10_11_00_01>(sum, sum));
    let mut out = [0; 16];
    // SAFETY: 16 bytes are written to an array of 16; the store asks for no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm512_castsi512_si128(sum)) };
    out
}
