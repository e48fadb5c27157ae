//! One element per 128 bits of a vector, multiplied with the carry-less multipliers: four in 512 bits and two in 256
//! with VPCLMULQDQ, one with PCLMULQDQ.

// Nearly every line is an instruction. One SAFETY comment below covers all of them.
#![allow(clippy::undocumented_unsafe_blocks)]

use super::Kernel;
use super::algorithm::Lanes;
use super::portable::tail;
use std::arch::x86_64::*;

/// Runs a kernel on four lanes.
#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
pub(super) fn run_512<K: Kernel, const BITS: u32>(kernel: K) -> K::Output {
    kernel.run::<Four, BITS>()
}

/// Runs a kernel on two lanes.
#[target_feature(enable = "avx2,vpclmulqdq")]
pub(super) fn run_256<K: Kernel, const BITS: u32>(kernel: K) -> K::Output {
    kernel.run::<Two, BITS>()
}

/// Runs a kernel on one lane.
#[target_feature(enable = "pclmulqdq,sse2")]
pub(super) fn run_128<K: Kernel, const BITS: u32>(kernel: K) -> K::Output {
    kernel.run::<Single, BITS>()
}

// SAFETY, for all that follows: values of these types exist only in the three functions above, which are compiled for
// the instructions. Loads and stores are checked to have the length of a vector, at any alignment.
macro_rules! lanes {
    ($name:ident, $lanes:literal, $vector:ty, $wide:ident, $set:expr, $load:ident, $store:ident, $xor:ident, $and:ident,
     $clmul:ident, $left:ident, $right:ident) => {
        #[derive(Clone, Copy)]
        struct $name($vector);

        /// Terms with the weights 1, x^64 and x^128.
        #[derive(Clone, Copy)]
        struct $wide($vector, $vector, $vector);

        impl $name {
            /// The low `BITS` bits of each lane.
            #[inline(always)]
            fn low<const BITS: u32>(x: $vector) -> $vector {
                unsafe { $and(x, Self::splat((1 << BITS) - 1).0) }
            }
        }

        impl Lanes for $name {
            const LANES: usize = $lanes;
            type Wide = $wide;

            #[inline(always)]
            fn splat(bits: u128) -> Self {
                #[allow(clippy::cast_possible_truncation)] // Intended: the two words.
                $name(unsafe { $set(_mm_set_epi64x((bits >> 64) as i64, bits as i64)) })
            }
            #[inline(always)]
            fn load<const BITS: u32>(from: &[u128]) -> Self {
                let lanes = &from[..$lanes];
                $name(Self::low::<BITS>(unsafe { $load(lanes.as_ptr().cast()) }))
            }
            #[inline(always)]
            fn store(self, to: &mut [u128]) {
                let lanes = &mut to[..$lanes];
                unsafe { $store(lanes.as_mut_ptr().cast(), self.0) };
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                $name(unsafe { $xor(self.0, b.0) })
            }
            #[inline(always)]
            fn widen(self) -> $wide {
                $wide(self.0, Self::splat(0).0, Self::splat(0).0)
            }

            #[inline(always)]
            fn multiply_add<const BITS: u32>(sum: $wide, a: Self, b: Self) -> $wide {
                let ($wide(s0, s1, s2), $name(a), $name(b)) = (sum, a, b);
                unsafe {
                    let s0 = $xor(s0, $clmul::<0x00>(a, b));
                    match BITS {
                        64 => $wide(s0, s1, s2),
                        _ => {
                            let s1 = $xor(s1, $xor($clmul::<0x01>(a, b), $clmul::<0x10>(a, b)));
                            $wide(s0, s1, $xor(s2, $clmul::<0x11>(a, b)))
                        }
                    }
                }
            }

            #[inline(always)]
            fn reduce<const BITS: u32>($wide(s0, s1, s2): $wide) -> Self {
                let tail = Self::splat(u128::from(tail::<BITS>())).0;
                unsafe {
                    let low = Self::low::<BITS>($xor(s0, $left::<8>(s1)));
                    // Shifts by whole bytes, as in the specification.
                    let high = match BITS {
                        64 => $right::<8>(s0),
                        72 => $xor($right::<9>(s0), $xor($right::<1>(s1), $left::<7>(s2))),
                        _ => $xor($right::<10>(s0), $xor($right::<2>(s1), $left::<6>(s2))),
                    };
                    let upper = match BITS {
                        64 => Self::splat(0).0,
                        _ => $left::<8>($clmul::<0x01>(high, tail)),
                    };
                    let sum = $xor($xor(low, upper), $clmul::<0x00>(high, tail));
                    let above = match BITS {
                        64 => $right::<8>(sum),
                        72 => $right::<9>(sum),
                        _ => $right::<10>(sum),
                    };
                    $name($xor(Self::low::<BITS>(sum), $clmul::<0x00>(above, tail)))
                }
            }
        }
    };
}

lanes!(
    Four,
    4,
    __m512i,
    FourWide,
    |lane| _mm512_broadcast_i32x4(lane),
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_xor_si512,
    _mm512_and_si512,
    _mm512_clmulepi64_epi128,
    _mm512_bslli_epi128,
    _mm512_bsrli_epi128
);
lanes!(
    Two,
    2,
    __m256i,
    TwoWide,
    |lane| _mm256_broadcastsi128_si256(lane),
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_xor_si256,
    _mm256_and_si256,
    _mm256_clmulepi64_epi128,
    _mm256_bslli_epi128,
    _mm256_bsrli_epi128
);
lanes!(
    Single,
    1,
    __m128i,
    SingleWide,
    |lane| lane,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_xor_si128,
    _mm_and_si128,
    _mm_clmulepi64_si128,
    _mm_bslli_si128,
    _mm_bsrli_si128
);
