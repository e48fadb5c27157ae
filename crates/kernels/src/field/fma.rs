//! Four elements in vectors of 256 bits, multiplied with fused multiply-adds. These are the widest multipliers of AVX2
//! processors: 53 bits by 53 bits, two vectors per cycle.
//!
//! # Representation
//!
//! Limb k of all four elements, weight 2^(51 k), is one vector of doubles that are integers. A limb of an operand has
//! a sign, and an absolute value of at most 2^50 + 2^15.
//!
//! # A product of limbs, exactly
//!
//! Doubles from 2^103 to 2^104 are the multiples of 2^51, and doubles from 2^52 to 2^53 are the integers. Let C = 3 *
//! 2^102 and M = 3 * 2^51, in the middle of each. For |a b| <= 2^102,
//!
//! * h = fma(a, b, C) is C + hi, where hi is a b rounded to a multiple of 2^51;
//! * (C + M) - h = M - hi is exact: a multiple of 2^51, and below 2^103;
//! * l = fma(a, b, M - hi) is M + lo, where lo = a b - hi, at most 2^50 in size, so that l is an integer between 2^52
//!   and 2^53, and exact too.
//!
//! Within these binades, the bit patterns of consecutive doubles differ by one. So the pattern of h, as an integer, is
//! the pattern of C plus hi / 2^51, and the pattern of l is the pattern of M plus lo. Columns are therefore sums of
//! patterns, as 64-bit integers: of limb i times limb j, l goes to column i + j, and h to column i + j + 1. The
//! patterns of C and M are known constants, [`Raw::offset`], which are subtracted when the column is carried.
//!
//! Two products at once save an addition. h2 = fma(c, d, h) is C plus the rounded hi + c d, if |a b| + |c d| <=
//! 2^102. h - h2 is exact, and lo2 = fma(c, d, h - h2) is at most 2^50. l + lo2 is M plus at most 2^51, an integer
//! from 2^52 to 2^53.
//!
//! # Bounds
//!
//! Let e = 2^-33, so that (2^50 + 2^15)^2 < (1 + e) 2^100. Two products of operands are below 2^102, and so is the sum
//! of a square and a product with one limb doubled, 3 (1 + e) 2^100. The largest column is column 0: one lo, plus 19
//! times four lo and five hi / 2^51, in total below 2^50 + 19 (4 * 2^50 + 5 (1 + e) 2^49) < 125 * 2^50. This bounds a
//! *unit*; elements and products with a constant below 2^20 are smaller. Three units minus three units are less than
//! 750 * 2^50 in size, and between 0 and 2^61 after adding 2^9 p + 2^50, whose limbs are less than 2^14 below
//! 2^60 + 2^50.
//!
//! A carry moves the bits from 51 on to the next limb, in all limbs at once: from 0 to 2^10, and from the last limb to
//! the first 19 times as much, less than 2^15. The remainder is less than 2^51. The 2^50 added to each limb is
//! subtracted again, so a limb is between -2^50 and 2^50 + 2^15.
//!
//! # The processor's modes
//!
//! Rounding must be to nearest; [`is_usual_mode`] checks it. Flushing of subnormal numbers does not matter: every
//! number is 0 or has an absolute value of at least 1.
//!
//! # Why assembly
//!
//! The compiler reorders integer additions until the registers do not suffice: with intrinsics, a step of the ladder
//! takes nearly twice as long. Blocks of assembly stay in order.

// Nearly every line is an instruction. One SAFETY comment below covers all of them.
#![allow(clippy::undocumented_unsafe_blocks)]

use super::{Fe, Field};
use std::arch::asm;
use std::arch::x86_64::*;

/// Four elements. The module documents the bounds on the limbs.
#[derive(Clone, Copy)]
pub(crate) struct Fma([__m256d; 5]);

/// Uncarried columns.
#[derive(Clone, Copy)]
pub(crate) struct Raw {
    columns: [__m256i; 5],
    /// The constant to subtract from each column: the patterns of C and M, each as many times as it was added. It is
    /// known at compile time.
    offset: [u64; 5],
}

const C: f64 = (3u128 << 102) as f64;
const M: f64 = (3u64 << 51) as f64;

/// The largest absolute value of a limb of an operand.
const LIMB: f64 = ((1u64 << 50) + (1 << 15)) as f64;

/// Returns whether doubles are rounded to nearest and inexact results are not trapped, as everywhere in Rust. Code in
/// other languages may have changed this.
pub(crate) fn is_usual_mode() -> bool {
    let mut mxcsr = 0u32;
    // SAFETY: stores the control register of this thread, which every x86-64 processor has, in the four bytes given.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
    is_usual(mxcsr)
}

fn is_usual(mxcsr: u32) -> bool {
    // The rounding mode, and the mask of the exception for inexact results.
    mxcsr & 0x7000 == 0x1000
}

// SAFETY, for all that follows: values of these types exist only in functions compiled for the instructions, see
// `super`. Arrays that are loaded and stored have the length of a vector, at any alignment. The assembly only does
// arithmetic on registers, and sets the flag for inexact results.

#[inline(always)]
fn splat(word: u64) -> __m256i {
    unsafe { _mm256_set1_epi64x(word.cast_signed()) }
}

#[inline(always)]
fn splat_double(x: f64) -> __m256d {
    unsafe { _mm256_set1_pd(x) }
}

#[inline(always)]
fn add(a: __m256i, b: __m256i) -> __m256i {
    unsafe { _mm256_add_epi64(a, b) }
}

/// Whether these are valid limbs of an operand.
#[inline(always)]
fn is_bounded(a: [__m256d; 5]) -> bool {
    unsafe {
        let (sign, limit) = (splat_double(-0.0), splat_double(LIMB));
        let size = each!(K => _mm256_andnot_pd(sign, a[K]));
        each!(K => _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LE_OQ>(size[K], limit))) == [15; 5]
    }
}

/// The values l and h of a product.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn split(a: __m256d, b: __m256d, constants: [__m256d; 2]) -> (__m256i, __m256i) {
    let (l, h);
    unsafe {
        asm!(
            "vmovapd {h}, {c}",
            "vfmadd231pd {h}, {a}, {b}",
            "vsubpd {l}, {cm}, {h}",
            "vfmadd231pd {l}, {a}, {b}",
            a = in(ymm_reg) a, b = in(ymm_reg) b, c = in(ymm_reg) constants[0], cm = in(ymm_reg) constants[1],
            l = out(ymm_reg) l, h = out(ymm_reg) h,
            options(nomem, nostack)
        );
    }
    (l, h)
}

/// A column plus the l of a product, and the product's h.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn one(mut sum: __m256i, a: __m256d, b: __m256d, constants: [__m256d; 2]) -> (__m256i, __m256i) {
    let h;
    unsafe {
        asm!(
            "vmovapd {h}, {c}",
            "vfmadd231pd {h}, {a}, {b}",
            "vsubpd {l}, {cm}, {h}",
            "vfmadd231pd {l}, {a}, {b}",
            "vpaddq {sum}, {sum}, {l}",
            a = in(ymm_reg) a, b = in(ymm_reg) b, c = in(ymm_reg) constants[0], cm = in(ymm_reg) constants[1],
            sum = inout(ymm_reg) sum, l = out(ymm_reg) _, h = out(ymm_reg) h,
            options(nomem, nostack)
        );
    }
    (sum, h)
}

/// A column plus the l of two products, and the products' h.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn two(mut sum: __m256i, [a, b, c, d]: [__m256d; 4], constants: [__m256d; 2]) -> (__m256i, __m256i) {
    let h;
    unsafe {
        asm!(
            "vmovapd {h1}, {k}",
            "vfmadd231pd {h1}, {a}, {b}",
            "vsubpd {l}, {km}, {h1}",
            "vfmadd231pd {l}, {a}, {b}",
            "vmovapd {h}, {h1}",
            "vfmadd231pd {h}, {c}, {d}",
            "vsubpd {h1}, {h1}, {h}",
            "vfmadd231pd {h1}, {c}, {d}",
            "vaddpd {l}, {l}, {h1}",
            "vpaddq {sum}, {sum}, {l}",
            a = in(ymm_reg) a, b = in(ymm_reg) b, c = in(ymm_reg) c, d = in(ymm_reg) d,
            k = in(ymm_reg) constants[0], km = in(ymm_reg) constants[1],
            sum = inout(ymm_reg) sum, l = out(ymm_reg) _, h1 = out(ymm_reg) _, h = out(ymm_reg) h,
            options(nomem, nostack)
        );
    }
    (sum, h)
}

/// x + 19 y.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fold(mut x: __m256i, mut y: __m256i) -> __m256i {
    unsafe {
        asm!(
            "vpsllq {z}, {y}, 4",
            "vpaddq {x}, {x}, {y}",
            "vpaddq {y}, {y}, {y}",
            "vpaddq {x}, {x}, {z}",
            "vpaddq {x}, {x}, {y}",
            x = inout(ymm_reg) x, y = inout(ymm_reg) y, z = out(ymm_reg) _,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    let _ = y;
    x
}

/// The offset of columns with these numbers of l, and equal numbers of h in the next columns.
const fn offset(l: [u64; 9]) -> [u64; 5] {
    let mut columns = [0u64; 10];
    let mut k = 0;
    while k < 9 {
        columns[k] = columns[k].wrapping_add(l[k].wrapping_mul(M.to_bits()));
        columns[k + 1] = columns[k + 1].wrapping_add(l[k].wrapping_mul(C.to_bits()));
        k += 1;
    }
    let mut folded = [0; 5];
    k = 0;
    while k < 5 {
        folded[k] = columns[k].wrapping_add(columns[k + 5].wrapping_mul(19));
        k += 1;
    }
    folded
}

impl Field for Fma {
    const LANES: usize = 4;
    type Raw = Raw;
    type Mask = __m256d;

    #[inline(always)]
    fn splat(a: &Fe) -> Self {
        let a = a.narrow().0;
        Self::carry(Raw { columns: each!(K => splat(a[K])), offset: [0; 5] })
    }

    #[inline(always)]
    fn load(from: &[Fe]) -> Self {
        let mut limbs = [[0u64; 4]; 5];
        for (lane, fe) in from.iter().take(4).enumerate() {
            for (limb, word) in limbs.iter_mut().zip(fe.narrow().0) {
                limb[lane] = word;
            }
        }
        let columns = each!(K => unsafe { _mm256_loadu_si256(limbs[K].as_ptr().cast()) });
        Self::carry(Raw { columns, offset: [0; 5] })
    }

    #[inline(always)]
    fn store(self, to: &mut [Fe]) {
        let mut limbs = [[0u64; 4]; 5];
        let Raw { columns, offset } = self.widen();
        for k in 0..5 {
            // 2^2 p, so that no limb is negative.
            let bias = ((1 << 51) - if k == 0 { 19 } else { 1 }) << 2;
            let limb = add(columns[k], splat(u64::wrapping_sub(bias, offset[k])));
            unsafe { _mm256_storeu_si256(limbs[k].as_mut_ptr().cast(), limb) };
        }
        for (lane, fe) in to.iter_mut().take(4).enumerate() {
            *fe = Fe(each!(K => limbs[K][lane]));
        }
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Raw {
        const OFFSET: [u64; 5] = offset([1, 1, 2, 2, 3, 2, 2, 1, 1]);
        let (a, b) = (self.0, b.0);
        debug_assert!(is_bounded(a) && is_bounded(b));
        let c = [splat_double(C), splat_double(C + M)];
        // Column by column, so that few are open: l is added to column k, h begins column k + 1.
        unsafe {
            let (z0, z1) = split(a[0], b[0], c);
            let (z1, z2) = two(z1, [a[0], b[1], a[1], b[0]], c);
            let (z2, z3) = two(z2, [a[0], b[2], a[1], b[1]], c);
            let (z2, h) = one(z2, a[2], b[0], c);
            let (z3, z4) = two(add(z3, h), [a[0], b[3], a[1], b[2]], c);
            let (z3, h) = two(z3, [a[2], b[1], a[3], b[0]], c);
            let (z4, z5) = two(add(z4, h), [a[0], b[4], a[1], b[3]], c);
            let (z4, h) = two(z4, [a[2], b[2], a[3], b[1]], c);
            let (z4, i) = one(z4, a[4], b[0], c);
            let (z5, z6) = two(add(add(z5, h), i), [a[1], b[4], a[2], b[3]], c);
            let (z5, h) = two(z5, [a[3], b[2], a[4], b[1]], c);
            let z0 = fold(z0, z5);
            let (z6, z7) = two(add(z6, h), [a[2], b[4], a[3], b[3]], c);
            let (z6, h) = one(z6, a[4], b[2], c);
            let z1 = fold(z1, z6);
            let (z7, z8) = two(add(z7, h), [a[3], b[4], a[4], b[3]], c);
            let z2 = fold(z2, z7);
            let (z8, z9) = one(z8, a[4], b[4], c);
            let z3 = fold(z3, z8);
            let z4 = fold(z4, z9);
            Raw { columns: [z0, z1, z2, z3, z4], offset: OFFSET }
        }
    }

    #[inline(always)]
    fn square(self) -> Raw {
        const OFFSET: [u64; 5] = offset([1, 1, 1, 2, 2, 2, 1, 1, 1]);
        let a = self.0;
        debug_assert!(is_bounded(a));
        let c = [splat_double(C), splat_double(C + M)];
        // Products of two different limbs occur twice, so one factor is doubled. Two of these are too large for one
        // rounding.
        unsafe {
            let d = each!(K => _mm256_add_pd(a[K], a[K]));
            let (z0, z1) = split(a[0], a[0], c);
            let (z1, z2) = one(z1, d[0], a[1], c);
            let (z2, z3) = two(z2, [d[0], a[2], a[1], a[1]], c);
            let (z3, z4) = one(z3, d[0], a[3], c);
            let (z3, h) = one(z3, d[1], a[2], c);
            let (z4, z5) = two(add(z4, h), [d[0], a[4], a[2], a[2]], c);
            let (z4, h) = one(z4, d[1], a[3], c);
            let (z5, z6) = one(add(z5, h), d[1], a[4], c);
            let (z5, h) = one(z5, d[2], a[3], c);
            let z0 = fold(z0, z5);
            let (z6, z7) = two(add(z6, h), [d[2], a[4], a[3], a[3]], c);
            let z1 = fold(z1, z6);
            let (z7, z8) = one(z7, d[3], a[4], c);
            let z2 = fold(z2, z7);
            let (z8, z9) = one(z8, a[4], a[4], c);
            let z3 = fold(z3, z8);
            let z4 = fold(z4, z9);
            Raw { columns: [z0, z1, z2, z3, z4], offset: OFFSET }
        }
    }

    #[inline(always)]
    fn mul_small(self, k: u32) -> Raw {
        const OFFSET: [u64; 5] = offset([1, 1, 1, 1, 1, 0, 0, 0, 0]);
        debug_assert!(is_bounded(self.0) && k < 1 << 20);
        let (a, k) = (self.0, splat_double(k.into()));
        let c = [splat_double(C), splat_double(C + M)];
        unsafe {
            let (z0, z1) = split(a[0], k, c);
            let (z1, z2) = one(z1, a[1], k, c);
            let (z2, z3) = one(z2, a[2], k, c);
            let (z3, z4) = one(z3, a[3], k, c);
            let (z4, z5) = one(z4, a[4], k, c);
            Raw { columns: [fold(z0, z5), z1, z2, z3, z4], offset: OFFSET }
        }
    }

    #[inline(always)]
    fn widen(self) -> Raw {
        let m = splat_double(M);
        let columns = each!(K => unsafe { _mm256_castpd_si256(_mm256_add_pd(self.0[K], m)) });
        Raw { columns, offset: [M.to_bits(); 5] }
    }

    #[inline(always)]
    fn add(a: Raw, b: Raw) -> Raw {
        Raw {
            columns: each!(K => add(a.columns[K], b.columns[K])),
            offset: each!(K => a.offset[K].wrapping_add(b.offset[K])),
        }
    }

    #[inline(always)]
    fn sub(a: Raw, b: Raw) -> Raw {
        Raw {
            columns: each!(K => unsafe { _mm256_sub_epi64(a.columns[K], b.columns[K]) }),
            offset: each!(K => a.offset[K].wrapping_sub(b.offset[K])),
        }
    }

    #[inline(always)]
    fn carry(a: Raw) -> Self {
        unsafe {
            let t = each!(K => {
                let p = (1u64 << 51) - if K == 0 { 19 } else { 1 };
                add(a.columns[K], splat(((p << 9) + (1 << 50)).wrapping_sub(a.offset[K])))
            });
            let c = each!(K => _mm256_srli_epi64::<51>(t[K]));
            let c = [_mm256_mul_epu32(c[4], splat(19)), c[0], c[1], c[2], c[3]];
            // Below 2^52. Preceded by the exponent of 2^52, these bits are the number plus 2^52.
            let (low, exponent) = (splat((1 << 51) - 1), splat(((1u64 << 52) as f64).to_bits()));
            let unbias = splat_double(((1u64 << 52) + (1 << 50)) as f64);
            Fma(each!(K => {
                let limb = _mm256_or_si256(add(_mm256_and_si256(t[K], low), c[K]), exponent);
                _mm256_sub_pd(_mm256_castsi256_pd(limb), unbias)
            }))
        }
    }

    #[inline(always)]
    fn mask(words: &[u64]) -> __m256d {
        let mut mask = [0; 4];
        for (mask, word) in mask.iter_mut().zip(words) {
            *mask = *word;
        }
        unsafe { _mm256_castsi256_pd(_mm256_loadu_si256(mask.as_ptr().cast())) }
    }

    #[inline(always)]
    fn mask_all(word: u64) -> __m256d {
        unsafe { _mm256_castsi256_pd(splat(word)) }
    }

    #[inline(always)]
    fn select(self, b: Self, mask: __m256d) -> Self {
        Fma(each!(K => unsafe { _mm256_blendv_pd(self.0[K], b.0[K], mask) }))
    }

    /// Selects among the words of the limbs, then converts the selected one to doubles.
    #[inline(always)]
    fn choose<const N: usize>(none: &Fe, table: &[Fe; N], masks: &[__m256d; N]) -> Self {
        let mut columns = each!(K => splat(none.0[K]));
        for (element, mask) in table.iter().zip(masks) {
            columns = each!(K => unsafe {
                let (old, new) = (_mm256_castsi256_pd(columns[K]), _mm256_castsi256_pd(splat(element.0[K])));
                _mm256_castpd_si256(_mm256_blendv_pd(old, new, *mask))
            });
        }
        Self::carry(Raw { columns, offset: [0; 5] })
    }

    #[cfg(test)]
    const LIMB: (i64, i64) = (-LIMB as i64, LIMB as i64);
    #[cfg(test)]
    const UNIT: i64 = 125 << 50;
    #[cfg(test)]
    #[inline(always)]
    fn from_limbs(lanes: &[[i64; 5]]) -> Self {
        let limb = |k| std::array::from_fn::<f64, 4, _>(|lane| lanes[lane][k] as f64);
        let limbs: [_; 5] = std::array::from_fn(limb);
        Fma(each!(K => unsafe { _mm256_loadu_pd(limbs[K].as_ptr()) }))
    }
    #[cfg(test)]
    #[inline(always)]
    fn limbs(self) -> Vec<[i64; 5]> {
        let mut limbs = [[0f64; 4]; 5];
        for (limb, v) in limbs.iter_mut().zip(self.0) {
            unsafe { _mm256_storeu_pd(limb.as_mut_ptr(), v) };
        }
        (0..4).map(|lane| limbs.map(|limb| limb[lane] as i64)).collect()
    }
    #[cfg(test)]
    #[inline(always)]
    fn columns(a: Raw) -> Vec<[i64; 5]> {
        let mut columns = [[0u64; 4]; 5];
        for (column, v) in columns.iter_mut().zip(a.columns) {
            unsafe { _mm256_storeu_si256(column.as_mut_ptr().cast(), v) };
        }
        let value = |lane: usize, k: usize| columns[k][lane].wrapping_sub(a.offset[k]) as i64;
        (0..4).map(|lane| std::array::from_fn(|k| value(lane, k))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flushing subnormal numbers (0x8040) does not matter; rounding down, up or to zero does, and so do exceptions.
    #[test]
    fn other_modes_are_noticed() {
        assert!(is_usual_mode());
        assert!(is_usual(0x1f80) && is_usual(0x9fc0));
        for mode in [0x3f80, 0x5f80, 0x7f80, 0x0f80] {
            assert!(!is_usual(mode), "{mode:x}");
        }
    }
}
