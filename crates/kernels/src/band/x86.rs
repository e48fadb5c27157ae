//! Sums with several elements in a register: four with AVX-512, two with AVX2.
//!
//! With AVX-512, four bits of a row become the mask of the eight words of a register. With AVX2, the bits of a row are
//! shifted until the bits of two elements are the signs of their words.
//!
//! A substitution reads elements that earlier steps have just written, and a load waits until the stores that it
//! overlaps in part have left the store buffer. So [`ROWS`] rows, a block, are processed at a time: they read the
//! elements after the block, and write the block, in whole registers at the same places.

use crate::registers::bits128::{load as read_one, store as write_one};
use std::arch::x86_64::*;

use super::WIDTH;

/// Number of rows that a substitution processes at a time: the elements of the larger register.
const ROWS: usize = 4;
/// Number of sums in flight, to cover the latency of the exclusive-or.
const SUMS: usize = 4;

macro_rules! path {
    ($path:ident, $features:literal, $sum_of:ident, $write:ident) => {
        pub(super) mod $path {
            use super::super::window;
            use super::{ROWS, masked, read_one, write_one, $sum_of, $write};
            use std::arch::x86_64::*;

            #[target_feature(enable = $features)]
            pub(in super::super) fn select(
                starts: &[u32],
                bits: &[u128],
                vector: &[[u8; 16]],
                sums: &mut [[u8; 16]],
            ) {
                for ((&start, &bits), sum) in starts.iter().zip(bits).zip(sums) {
                    write_one(sum, $sum_of(bits, window(vector, start as usize)));
                }
            }

            #[target_feature(enable = $features)]
            pub(in super::super) fn substitute(bits: &[u128], vector: &mut [[u8; 16]]) {
                // 1. The last rows, at least one, so that 128 elements follow each block.
                let blocks = bits[..bits.len().saturating_sub(1)].as_chunks::<ROWS>().0;
                for (i, &bits) in bits.iter().enumerate().skip(ROWS * blocks.len()).rev() {
                    let row = $sum_of(bits | 1, window(vector, i));
                    write_one(&mut vector[i], row);
                }
                for (block, bits) in blocks.iter().enumerate().rev() {
                    let first = ROWS * block;
                    // 2. For each row, its own element and the sum of the elements after the block.
                    let behind = window(vector, first + ROWS);
                    let mut rows = [_mm_setzero_si128(); ROWS];
                    for (r, row) in rows.iter_mut().enumerate() {
                        let sum = $sum_of(bits[r] >> (ROWS - r), behind);
                        *row = _mm_xor_si128(read_one(&vector[first + r]), sum);
                    }
                    // 3. The elements in the block, from the last row on.
                    for r in (1..ROWS).rev() {
                        let done = rows[r];
                        for (before, row) in rows[..r].iter_mut().enumerate() {
                            *row = _mm_xor_si128(*row, masked(bits[before] >> (r - before), done));
                        }
                    }
                    if let Some(block) = vector[first..].first_chunk_mut() {
                        $write(block, rows);
                    }
                }
            }
        }
    };
}

path!(wide, "avx512f,bmi2", sum_of_512, write_512);
path!(narrow, "avx2", sum_of_256, write_256);

/// The sum of the elements whose bits are set. The first elements come last, as they may have just been written.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn sum_of_512(bits: u128, elements: &[[u8; 16]; WIDTH]) -> __m128i {
    let mut sums = [_mm512_setzero_si512(); SUMS];
    // 32 elements at a time: the masks of 8 registers make one word of 64 bits.
    for (i, part) in elements.as_chunks::<32>().0.iter().enumerate().rev() {
        #[allow(clippy::cast_possible_truncation)] // Intended: 32 bits of the row.
        let masks = _pdep_u64(u64::from((bits >> (32 * i)) as u32), 0x5555_5555_5555_5555) * 3;
        for (j, elements) in part.as_chunks::<4>().0.iter().enumerate().rev() {
            let mask = masks.to_le_bytes()[j];
            // SAFETY: a register is read from an array of its size; the load requires no alignment.
            let elements = unsafe { _mm512_loadu_si512(elements.as_ptr().cast()) };
            sums[j % SUMS] = _mm512_mask_xor_epi64(sums[j % SUMS], mask, sums[j % SUMS], elements);
        }
    }
    let sum = _mm512_xor_si512(_mm512_xor_si512(sums[0], sums[1]), _mm512_xor_si512(sums[2], sums[3]));
    let sum = _mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum));
    _mm_xor_si128(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum))
}

/// The sum of the elements whose bits are set. The first elements come last, as they may have just been written.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_256(bits: u128, elements: &[[u8; 16]; WIDTH]) -> __m128i {
    let mut sums = [_mm256_setzero_si256(); SUMS];
    for (i, part) in elements.as_chunks::<64>().0.iter().enumerate().rev() {
        #[allow(clippy::cast_possible_truncation)] // Intended: 64 bits of the row.
        let word = _mm256_set1_epi64x((bits >> (64 * i)) as i64);
        // The highest bit is the sign for the second element of a pair, the one below it for the first.
        let mut signs = _mm256_sllv_epi64(word, _mm256_set_epi64x(0, 0, 1, 1));
        // Unrolled, as the compiler keeps the sums in memory if these are loops.
        for part in part.as_chunks::<{ 2 * SUMS }>().0.iter().rev() {
            let part = part.as_chunks::<2>().0;
            sums[3] = add_signed(sums[3], &part[3], signs);
            sums[2] = add_signed(sums[2], &part[2], _mm256_slli_epi64::<2>(signs));
            sums[1] = add_signed(sums[1], &part[1], _mm256_slli_epi64::<4>(signs));
            sums[0] = add_signed(sums[0], &part[0], _mm256_slli_epi64::<6>(signs));
            signs = _mm256_slli_epi64::<8>(signs);
        }
    }
    let sum = _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3]));
    _mm_xor_si128(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum))
}

/// Adds the words whose signs are set.
#[inline]
#[target_feature(enable = "avx2")]
fn add_signed(sum: __m256i, elements: &[[u8; 16]; 2], signs: __m256i) -> __m256i {
    // SAFETY: a register is read from an array of its size; the load requires no alignment.
    let elements = unsafe { _mm256_loadu_si256(elements.as_ptr().cast()) };
    let mask = _mm256_cmpgt_epi64(_mm256_setzero_si256(), signs);
    _mm256_xor_si256(sum, _mm256_and_si256(elements, mask))
}

/// The element if the lowest bit is set, or zero.
#[inline]
#[target_feature(enable = "sse2")]
fn masked(bits: u128, element: __m128i) -> __m128i {
    #[allow(clippy::cast_possible_truncation)] // Intended: the lowest bit.
    _mm_and_si128(element, _mm_set1_epi64x(-(bits as i64 & 1)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn write_512(block: &mut [[u8; 16]; ROWS], [a, b, c, d]: [__m128i; ROWS]) {
    let (low, high) = (_mm256_set_m128i(b, a), _mm256_set_m128i(d, c));
    let all = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
    // SAFETY: 64 bytes are written to an array of 64; the store requires no alignment.
    unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), all) };
}

#[inline]
#[target_feature(enable = "avx2")]
fn write_256(block: &mut [[u8; 16]; ROWS], [a, b, c, d]: [__m128i; ROWS]) {
    let [low, high] = block.as_chunks_mut::<2>().0 else { return };
    // SAFETY: 32 bytes are written to arrays of 32 each; the stores require no alignment.
    unsafe {
        _mm256_storeu_si256(low.as_mut_ptr().cast(), _mm256_set_m128i(b, a));
        _mm256_storeu_si256(high.as_mut_ptr().cast(), _mm256_set_m128i(d, c));
    }
}
