//! One message in each 32-bit lane of the vectors: 8 with AVX2, 16 with AVX-512.
//!
//! The compression function of BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020, section 2.2), for the only
//! block of the only chunk of a keyed hash.

use std::arch::x86_64::*;

/// The first words of the initial value.
const IV: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];

/// The flags CHUNK_START, CHUNK_END, ROOT and KEYED_HASH.
const FLAGS: u32 = 1 | 2 | 8 | 16;

/// The word of the message at each position of a round, permuted between rounds.
const SCHEDULE: [[usize; 16]; 7] = {
    const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
    let mut schedule = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]; 7];
    let mut round = 1;
    while round < 7 {
        let mut i = 0;
        while i < 16 {
            schedule[round][i] = schedule[round - 1][PERMUTATION[i]];
            i += 1;
        }
        round += 1;
    }
    schedule
};

macro_rules! path {
    (
        $path:ident, $features:literal, $register:ident, $lanes:literal, $load:ident, $store:ident, $splat:ident,
        $add:ident, $xor:ident, $rotate:ident, $interleave:ident
    ) => {
        pub(super) mod $path {
            use super::super::BLOCK;
            use super::{FLAGS, IV, SCHEDULE, $interleave, $rotate};
            use std::arch::x86_64::*;

            /// Number of messages processed at once.
            const LANES: usize = $lanes;

            #[target_feature(enable = $features)]
            pub(in super::super) fn keyed_hash(
                key: &[u8; 32],
                lengths: &[u8],
                messages: &[[u8; BLOCK]],
                out: &mut [[u8; 32]],
            ) {
                let (groups, last) = messages.as_chunks::<LANES>();
                let (lengths, last_lengths) = lengths.as_chunks::<LANES>();
                let (outs, last_out) = out.as_chunks_mut::<LANES>();
                for ((group, lengths), out) in groups.iter().zip(lengths).zip(outs) {
                    compress(key, lengths, group, out);
                }
                if !last.is_empty() {
                    let (mut group, mut lengths, mut out) =
                        ([[0; BLOCK]; LANES], [0; LANES], [[0; 32]; LANES]);
                    group[..last.len()].copy_from_slice(last);
                    lengths[..last.len()].copy_from_slice(last_lengths);
                    compress(key, &lengths, &group, &mut out);
                    last_out.copy_from_slice(&out[..last_out.len()]);
                }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn compress(
                key: &[u8; 32],
                lengths: &[u8; LANES],
                messages: &[[u8; BLOCK]; LANES],
                out: &mut [[u8; 32]; LANES],
            ) {
                let m = words(messages);
                let splat = |word: u32| $splat(word.cast_signed());
                let mut v = [splat(0); 16];
                for (v, word) in v.iter_mut().zip(key.as_chunks::<4>().0) {
                    *v = splat(u32::from_le_bytes(*word));
                }
                for (v, word) in v[8..12].iter_mut().zip(IV) {
                    *v = splat(word);
                }
                // Words 12 and 13 are the number of the chunk, 0.
                let lengths = lengths.map(u32::from);
                // SAFETY: a register is read from an array of its size; the load requires no alignment.
                v[14] = unsafe { $load(lengths.as_ptr().cast()) };
                v[15] = splat(FLAGS);
                for s in &SCHEDULE {
                    mix(&mut v, [0, 4, 8, 12], m[s[0]], m[s[1]]);
                    mix(&mut v, [1, 5, 9, 13], m[s[2]], m[s[3]]);
                    mix(&mut v, [2, 6, 10, 14], m[s[4]], m[s[5]]);
                    mix(&mut v, [3, 7, 11, 15], m[s[6]], m[s[7]]);
                    mix(&mut v, [0, 5, 10, 15], m[s[8]], m[s[9]]);
                    mix(&mut v, [1, 6, 11, 12], m[s[10]], m[s[11]]);
                    mix(&mut v, [2, 7, 8, 13], m[s[12]], m[s[13]]);
                    mix(&mut v, [3, 4, 9, 14], m[s[14]], m[s[15]]);
                }
                let mut hash: [$register; 8] = std::array::from_fn(|i| $xor(v[i], v[i + 8]));
                // From words of all messages to the words of each message.
                (0..3).for_each(|_| turn(&mut hash));
                for (out, hash) in
                    out.as_flattened_mut().as_chunks_mut::<{ 4 * LANES }>().0.iter_mut().zip(hash)
                {
                    // SAFETY: a register is written to an array of its size; the store requires no alignment.
                    unsafe { $store(out.as_mut_ptr().cast(), hash) };
                }
            }

            /// The function G of the specification on four words of the state.
            #[inline]
            #[target_feature(enable = $features)]
            fn mix(v: &mut [$register; 16], [a, b, c, d]: [usize; 4], x: $register, y: $register) {
                v[a] = $add($add(v[a], v[b]), x);
                v[d] = $rotate::<16, 16>($xor(v[d], v[a]));
                v[c] = $add(v[c], v[d]);
                v[b] = $rotate::<12, 20>($xor(v[b], v[c]));
                v[a] = $add($add(v[a], v[b]), y);
                v[d] = $rotate::<8, 24>($xor(v[d], v[a]));
                v[c] = $add(v[c], v[d]);
                v[b] = $rotate::<7, 25>($xor(v[b], v[c]));
            }

            /// The words of the messages: register i holds word i of all messages.
            #[inline]
            #[target_feature(enable = $features)]
            fn words(messages: &[[u8; BLOCK]; LANES]) -> [$register; 16] {
                let mut words = [$splat(0); 16];
                let bytes = messages.as_flattened().as_chunks::<{ 4 * LANES }>().0;
                for (words, bytes) in words.iter_mut().zip(bytes) {
                    // SAFETY: a register is read from an array of its size; the load requires no alignment.
                    *words = unsafe { $load(bytes.as_ptr().cast()) };
                }
                // From the words of each message to words of all messages.
                (0..LANES.ilog2()).for_each(|_| turn(&mut words));
                words
            }

            /// Rotates the number (register, lane) of each word left by one bit.
            #[inline]
            #[target_feature(enable = $features)]
            fn turn<const N: usize>(v: &mut [$register; N]) {
                let old = *v;
                for r in 0..N / 2 {
                    [v[2 * r], v[2 * r + 1]] = $interleave(old[r], old[r + N / 2]);
                }
            }
        }
    };
}

/// Rotates each lane right by `R` = 32 - `L`.
#[inline]
#[target_feature(enable = "avx2")]
fn rotate_256<const R: i32, const L: i32>(x: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_srli_epi32::<R>(x), _mm256_slli_epi32::<L>(x))
}

/// Rotates each lane right by `R` = 32 - `L`.
#[inline]
#[target_feature(enable = "avx512f")]
fn rotate_512<const R: i32, const L: i32>(x: __m512i) -> __m512i {
    _mm512_ror_epi32::<R>(x)
}

/// Interleaves the lanes of `a` and `b`: those of the first halves, then those of the second halves.
#[inline]
#[target_feature(enable = "avx2")]
fn interleave_256(a: __m256i, b: __m256i) -> [__m256i; 2] {
    let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    [_mm256_permute2x128_si256::<0x20>(low, high), _mm256_permute2x128_si256::<0x31>(low, high)]
}

/// Interleaves the lanes of `a` and `b`: those of the first halves, then those of the second halves.
#[inline]
#[target_feature(enable = "avx512f")]
fn interleave_512(a: __m512i, b: __m512i) -> [__m512i; 2] {
    let low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    [_mm512_permutex2var_epi32(a, low, b), _mm512_permutex2var_epi32(a, high, b)]
}

path!(
    narrow,
    "avx2",
    __m256i,
    8,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_set1_epi32,
    _mm256_add_epi32,
    _mm256_xor_si256,
    rotate_256,
    interleave_256
);
path!(
    wide,
    "avx512f",
    __m512i,
    16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_set1_epi32,
    _mm512_add_epi32,
    _mm512_xor_si512,
    rotate_512,
    interleave_512
);
