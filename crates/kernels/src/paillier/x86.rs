//! The selection from a column with vectors. It uses intrinsics, because the compiler turns the plain loop into
//! gathers, whose addresses the tests of constant time cannot follow.

use super::table::{Column, Group, Sums};
use std::arch::x86_64::*;

/// Adds the masked parts to the sums.
#[target_feature(enable = "avx512f")]
pub(super) fn sum_avx512(column: &[Column], masks: &Group, sums: &mut Sums) {
    let mut all = sums.map(|_| _mm512_setzero_si512());
    for (part, masks) in column.iter().zip(masks) {
        // SAFETY: a part has 64 bytes, and the load requires no alignment.
        let part = unsafe { _mm512_loadu_si512(part.as_ptr().cast()) };
        for (sum, mask) in all.iter_mut().zip(masks) {
            // sum | part & mask.
            *sum = _mm512_ternarylogic_epi32::<0xf8>(*sum, part, _mm512_set1_epi32(mask.cast_signed()));
        }
    }
    for (out, sum) in sums.iter_mut().zip(all) {
        // SAFETY: a sum has 64 bytes, and the store requires no alignment.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sum) };
    }
}

/// [`sum_avx512`] in halves.
#[target_feature(enable = "avx2")]
pub(super) fn sum_avx2(column: &[Column], masks: &Group, sums: &mut Sums) {
    let mut all = sums.map(|_| [_mm256_setzero_si256(); 2]);
    for (part, masks) in column.iter().zip(masks) {
        // SAFETY: half a part has 32 bytes, and the load requires no alignment.
        let part = [0, 1].map(|i| unsafe { _mm256_loadu_si256(part.as_chunks::<8>().0[i].as_ptr().cast()) });
        for (sum, mask) in all.iter_mut().zip(masks) {
            let mask = _mm256_set1_epi32(mask.cast_signed());
            for (sum, part) in sum.iter_mut().zip(part) {
                *sum = _mm256_or_si256(*sum, _mm256_and_si256(part, mask));
            }
        }
    }
    for (out, sum) in sums.iter_mut().zip(all) {
        for (out, sum) in out.as_chunks_mut::<8>().0.iter_mut().zip(sum) {
            // SAFETY: half a sum has 32 bytes, and the store requires no alignment.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), sum) };
        }
    }
}
