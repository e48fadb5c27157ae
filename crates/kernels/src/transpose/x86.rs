//! Transposes 32 columns at a time with AVX2: bytes with unpacking instructions, bits by collecting the top bits of 32
//! bytes at once.

use std::arch::x86_64::*;

#[target_feature(enable = "avx2")]
pub(super) fn transpose_128(columns: &[u8], stride: usize, out: &mut [[u8; 16]]) {
    for (i, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        for quarter in 0..4 {
            // 1. Column c of this quarter in the low half of v[c], column c + 16 in the high half.
            let mut v = [_mm256_setzero_si256(); 16];
            for (c, v) in v.iter_mut().enumerate() {
                let at = (32 * quarter + c) * stride + 16 * i;
                *v = _mm256_set_m128i(load(columns, at + 16 * stride), load(columns, at));
            }
            // 2. Byte b of column c moves to byte c of v[b], in both halves.
            let v = transpose_bytes(v);
            // 3. Bit k of the 32 bytes of v[b] is row 8 b + k of the quarter, from the top bit down.
            for (v, rows) in v.into_iter().zip(out.as_chunks_mut::<8>().0) {
                let mut v = v;
                for row in rows.iter_mut().rev() {
                    row[4 * quarter..][..4].copy_from_slice(&_mm256_movemask_epi8(v).to_le_bytes());
                    v = _mm256_add_epi8(v, v);
                }
            }
        }
    }
}

/// Loads 16 bytes of `columns` from `at`; panics if they are out of range.
#[inline]
#[target_feature(enable = "avx2")]
fn load(columns: &[u8], at: usize) -> __m128i {
    let bytes = &columns[at..][..16];
    // SAFETY: the slice has the 16 bytes that are read; the load requires no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Transposes 16 x 16 bytes in both halves of the registers.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_bytes(mut v: [__m256i; 16]) -> [__m256i; 16] {
    // Each position has an 8-bit number (register, byte). Interleaving registers r and r + 8 rotates this number left
    // by one bit. Four rotations exchange register and byte.
    for _ in 0..4 {
        let mut w = v;
        for r in 0..8 {
            w[2 * r] = _mm256_unpacklo_epi8(v[r], v[r + 8]);
            w[2 * r + 1] = _mm256_unpackhi_epi8(v[r], v[r + 8]);
        }
        v = w;
    }
    v
}
