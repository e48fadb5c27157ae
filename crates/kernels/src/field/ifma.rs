//! Eight elements in vectors of 512 bits, multiplied with the 52-bit integer multipliers of AVX-512 IFMA.
//!
//! # Representation
//!
//! Limb k of all eight elements, weight 2^(51 k), is one vector of unsigned 64-bit words. The multipliers take the low
//! 52 bits of their operands, and return the low or the high 52 bits of the 104-bit product. So
//!
//! * a limb of an operand is below 2^51 + 2^16. It is reduced further only for encoding;
//! * for limbs a and b with numbers i and j, where a b = l + 2^52 h, l goes to column i + j and 2 h to column i + j + 1;
//! * column k + 5 is added to column k 19 times, as 2^255 = 19 (mod p).
//!
//! # Bounds
//!
//! An operand's limbs are below 2^51 + 2^16, so l < 2^52 and h < 2^(102.001 - 52) < 2^50.01. The largest column of a
//! product is column 0: one l, plus 19 times four l and five 2 h, in total below 2^52 + 19 (4 * 2^52 + 5 * 2^51.01) <
//! 125 * 2^52. This bounds a *unit*; elements and products with a constant below 2^20 are smaller. Three units are
//! below 375 * 2^52 < 2^61 - 2^15, and so below every limb of 2^10 p, which is added before three units are subtracted,
//! so that no limb becomes negative. A raw value is then below 375 * 2^52 + 2^61 < 2^62.
//!
//! A carry moves the bits above 51 of every limb to the next one, in all limbs at once: less than 2^11, and 19 * 2^11
//! from the last to the first. So the result's limbs are below 2^51 + 2^16.

// Nearly every line is an instruction. One SAFETY comment below covers all of them.
#![allow(clippy::undocumented_unsafe_blocks)]

use super::{Fe, Field};
use std::arch::x86_64::*;

/// Eight elements. The module documents the bounds on the limbs.
#[derive(Clone, Copy)]
pub(crate) struct Ifma([__m512i; 5]);

/// Uncarried columns. The module documents their bounds.
#[derive(Clone, Copy)]
pub(crate) struct Raw([__m512i; 5]);

const LOW: i64 = (1 << 51) - 1;

/// Strict upper bound on every limb of an operand.
const LIMB: u64 = (1 << 51) + (1 << 16);

// SAFETY, for all that follows: values of these types exist only in functions compiled for the instructions, see
// `super`. Arrays that are loaded and stored have the length of a vector, at any alignment.
#[inline(always)]
fn splat(word: i64) -> __m512i {
    unsafe { _mm512_set1_epi64(word) }
}
#[inline(always)]
fn add(a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_add_epi64(a, b) }
}
#[inline(always)]
fn sub(a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_sub_epi64(a, b) }
}
#[inline(always)]
fn and(a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_and_si512(a, b) }
}
#[inline(always)]
fn left<const N: u32>(a: __m512i) -> __m512i {
    unsafe { _mm512_slli_epi64::<N>(a) }
}
#[inline(always)]
fn right<const N: u32>(a: __m512i) -> __m512i {
    unsafe { _mm512_srli_epi64::<N>(a) }
}
/// sum + the low 52 bits of a b.
#[inline(always)]
fn lo(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_madd52lo_epu64(sum, a, b) }
}
/// sum + the high 52 bits of a b.
#[inline(always)]
fn hi(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    unsafe { _mm512_madd52hi_epu64(sum, a, b) }
}

/// Adds 19 times columns 5 to 9 to columns 0 to 4.
#[inline(always)]
fn fold(c: [__m512i; 10]) -> Raw {
    Raw(each!(K => {
        add(c[K], unsafe { _mm512_mullo_epi64(c[K + 5], splat(19)) })
    }))
}

/// Whether these are valid limbs of an operand.
#[inline(always)]
fn is_bounded(a: [__m512i; 5]) -> bool {
    let limit = splat(LIMB as i64);
    each!(K => unsafe { _mm512_cmpge_epu64_mask(a[K], limit) }) == [0; 5]
}

impl Field for Ifma {
    const LANES: usize = 8;
    type Raw = Raw;
    type Mask = __mmask8;

    #[inline(always)]
    fn splat(a: &Fe) -> Self {
        Ifma(each!(K => splat(a.0[K] as i64)))
    }

    #[inline(always)]
    fn load(from: &[Fe]) -> Self {
        let mut limbs = [[0u64; 8]; 5];
        for (lane, fe) in from.iter().take(8).enumerate() {
            for (limb, word) in limbs.iter_mut().zip(fe.narrow().0) {
                limb[lane] = word;
            }
        }
        Ifma(each!(K => unsafe { _mm512_loadu_si512(limbs[K].as_ptr().cast()) }))
    }

    #[inline(always)]
    fn store(self, to: &mut [Fe]) {
        let mut limbs = [[0u64; 8]; 5];
        for (limb, v) in limbs.iter_mut().zip(self.0) {
            unsafe { _mm512_storeu_si512(limb.as_mut_ptr().cast(), v) };
        }
        for (lane, fe) in to.iter_mut().take(8).enumerate() {
            *fe = Fe(each!(K => limbs[K][lane]));
        }
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Raw {
        let (a, b) = (self.0, b.0);
        debug_assert!(is_bounded(a) && is_bounded(b));
        let mut c = [splat(0); 10];
        // High halves first, doubled and in the next column; then the low halves are added.
        for i in 0..5 {
            for j in 0..5 {
                c[i + j + 1] = hi(c[i + j + 1], a[i], b[j]);
            }
        }
        for c in &mut c[1..] {
            *c = left::<1>(*c);
        }
        for i in 0..5 {
            for j in 0..5 {
                c[i + j] = lo(c[i + j], a[i], b[j]);
            }
        }
        fold(c)
    }

    #[inline(always)]
    fn square(self) -> Raw {
        let a = self.0;
        debug_assert!(is_bounded(a));
        let mut c = [splat(0); 10];
        // High and low halves as in `mul`, but products of two different limbs occur twice.
        for i in 0..5 {
            for j in i + 1..5 {
                c[i + j + 1] = hi(c[i + j + 1], a[i], a[j]);
            }
        }
        for c in &mut c[2..9] {
            *c = left::<1>(*c);
        }
        for i in 0..5 {
            c[2 * i + 1] = hi(c[2 * i + 1], a[i], a[i]);
        }
        for i in 0..5 {
            for j in i + 1..5 {
                c[i + j] = lo(c[i + j], a[i], a[j]);
            }
        }
        for c in &mut c[1..] {
            *c = left::<1>(*c);
        }
        for i in 0..5 {
            c[2 * i] = lo(c[2 * i], a[i], a[i]);
        }
        fold(c)
    }

    #[inline(always)]
    fn mul_small(self, k: u32) -> Raw {
        debug_assert!(is_bounded(self.0) && k < 1 << 20);
        let (a, k, zero) = (self.0, splat(k.into()), splat(0));
        let h = each!(K => left::<1>(hi(zero, a[K], k)));
        let wrapped = add(h[4], add(left::<1>(h[4]), left::<4>(h[4])));
        Raw([
            lo(wrapped, a[0], k),
            lo(h[0], a[1], k),
            lo(h[1], a[2], k),
            lo(h[2], a[3], k),
            lo(h[3], a[4], k),
        ])
    }

    #[inline(always)]
    fn widen(self) -> Raw {
        Raw(self.0)
    }

    #[inline(always)]
    fn add(a: Raw, b: Raw) -> Raw {
        Raw(each!(K => add(a.0[K], b.0[K])))
    }

    #[inline(always)]
    fn sub(a: Raw, b: Raw) -> Raw {
        // 2^10 p.
        let bias = each!(K => splat(((1 << 51) - if K == 0 { 19 } else { 1 }) << 10));
        Raw(each!(K => sub(add(a.0[K], bias[K]), b.0[K])))
    }

    #[inline(always)]
    fn carry(a: Raw) -> Self {
        let (a, low) = (a.0, splat(LOW));
        let c = each!(K => right::<51>(a[K]));
        Ifma([
            lo(and(a[0], low), c[4], splat(19)),
            add(and(a[1], low), c[0]),
            add(and(a[2], low), c[1]),
            add(and(a[3], low), c[2]),
            add(and(a[4], low), c[3]),
        ])
    }

    #[inline(always)]
    fn mask(words: &[u64]) -> __mmask8 {
        words.iter().take(8).enumerate().fold(0, |mask, (lane, word)| mask | ((word & 1) as u8) << lane)
    }

    #[inline(always)]
    fn mask_all(word: u64) -> __mmask8 {
        word as u8
    }

    #[inline(always)]
    fn select(self, b: Self, mask: __mmask8) -> Self {
        Ifma(each!(K => unsafe { _mm512_mask_blend_epi64(mask, self.0[K], b.0[K]) }))
    }

    #[cfg(test)]
    const LIMB: (i64, i64) = (0, LIMB as i64 - 1);
    #[cfg(test)]
    const UNIT: i64 = 125 << 52;
    #[cfg(test)]
    #[inline(always)]
    fn from_limbs(lanes: &[[i64; 5]]) -> Self {
        let limb = |k| std::array::from_fn::<i64, 8, _>(|lane| lanes[lane][k]);
        let limbs: [_; 5] = std::array::from_fn(limb);
        Ifma(each!(K => unsafe { _mm512_loadu_si512(limbs[K].as_ptr().cast()) }))
    }
    #[cfg(test)]
    #[inline(always)]
    fn limbs(self) -> Vec<[i64; 5]> {
        let mut limbs = [[0; 8]; 5];
        for (limb, v) in limbs.iter_mut().zip(self.0) {
            unsafe { _mm512_storeu_si512(limb.as_mut_ptr().cast(), v) };
        }
        (0..8).map(|lane| limbs.map(|limb| limb[lane])).collect()
    }
    #[cfg(test)]
    #[inline(always)]
    fn columns(a: Raw) -> Vec<[i64; 5]> {
        Ifma(a.0).limbs()
    }
}
