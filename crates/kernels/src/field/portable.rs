//! A single element: the specification of the field, and its path on every processor.
//!
//! # Bounds
//!
//! An element is five limbs of radix 2^51, which may grow between multiplications, so that sums and differences
//! need no carries:
//!
//! * *reduced*, as multiplications return it: every limb below 2^51 + 2^18. This bounds a unit.
//! * *loose*, as multiplications take it: every limb below 2^54. Three units plus 4p are smaller: 3 * 2^51 + 2^53 +
//!   2^20. Three units are below every limb of 4p, so a difference does not become negative.
//!
//! So a raw value is a loose element, and carrying it does nothing; [`Fe::widen`] carries instead.
//!
//! Loose limbs suffice: a column of a product is at most 1 + 4*19 = 77 terms below 2^108, in total below 2^114.3
//! (u128). Its carry is below 2^63.3 (u64), and 19 times a loose limb is below 2^58.3 (u64).

use super::Field;

/// A field element. The module documents the bounds on its limbs.
#[derive(Clone, Copy)]
pub(crate) struct Fe(pub(crate) [u64; 5]);

const LOW: u64 = (1 << 51) - 1;

/// Strict upper bound on every limb of an operand.
const LOOSE: u64 = 1 << 54;

/// The limbs of 4p, added before a subtraction so that no limb becomes negative.
const FOUR_P: [u64; 5] = [
    4 * ((1 << 51) - 19),
    4 * ((1 << 51) - 1),
    4 * ((1 << 51) - 1),
    4 * ((1 << 51) - 1),
    4 * ((1 << 51) - 1),
];

/// Product of two words.
#[inline(always)]
fn m(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

impl Fe {
    pub(crate) const ZERO: Fe = Fe([0; 5]);
    pub(crate) const ONE: Fe = Fe([1, 0, 0, 0, 0]);

    /// Decodes all 256 bits of a little-endian number, modulo p. Reduced.
    #[inline(always)]
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Fe {
        let [w0, w1, w2, w3] = words(bytes);
        // Bit 255 is worth 2^255 = 19 (mod p).
        Fe([
            (w0 & LOW) + 19 * (w3 >> 63),
            (w0 >> 51 | w1 << 13) & LOW,
            (w1 >> 38 | w2 << 26) & LOW,
            (w2 >> 25 | w3 << 39) & LOW,
            (w3 >> 12) & LOW,
        ])
    }

    /// Returns the canonical encoding of a loose element: below p, little-endian.
    #[inline(always)]
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        // After one pass of carries the value is below 2^255 + 2^10, so p is subtracted at most once.
        let mut l = self.narrow().0;
        // q = 1 if the value is at least p, which holds if value + 19 reaches 2^255.
        let mut q = (l[0] + 19) >> 51;
        for limb in &l[1..] {
            q = (limb + q) >> 51;
        }
        // value - q p = value + 19 q - q 2^255: add, carry, and drop bit 255.
        l[0] += 19 * q;
        for i in 0..4 {
            l[i + 1] += l[i] >> 51;
            l[i] &= LOW;
        }
        l[4] &= LOW;
        let w =
            [l[0] | l[1] << 51, l[1] >> 13 | l[2] << 38, l[2] >> 26 | l[3] << 25, l[3] >> 39 | l[4] << 12];
        let mut out = [0; 32];
        for (bytes, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(w) {
            *bytes = word.to_le_bytes();
        }
        out
    }

    /// Returns the same element with limbs 1 to 4 below 2^51 and limb 0 below 2^51 + 2^10, for limbs below 2^54.
    #[inline(always)]
    pub(crate) fn narrow(self) -> Fe {
        let mut l = self.0;
        for i in 0..4 {
            l[i + 1] += l[i] >> 51;
            l[i] &= LOW;
        }
        l[0] += 19 * (l[4] >> 51);
        l[4] &= LOW;
        Fe(l)
    }

    /// Returns all ones if the element is 0 modulo p, else all zeros.
    #[inline(always)]
    pub(crate) fn zero_mask(self) -> u64 {
        let any = words(&self.to_bytes()).into_iter().fold(0, |acc, w| acc | w);
        // The top bit of any | -any is set if and only if any is not 0.
        mask(((any | any.wrapping_neg()) >> 63) ^ 1)
    }
}

impl Field for Fe {
    const LANES: usize = 1;
    type Raw = Fe;
    type Mask = u64;

    #[inline(always)]
    fn splat(a: &Fe) -> Fe {
        *a
    }

    #[inline(always)]
    fn load(from: &[Fe]) -> Fe {
        from.first().copied().unwrap_or(Fe::ZERO)
    }

    #[inline(always)]
    fn store(self, to: &mut [Fe]) {
        if let Some(to) = to.first_mut() {
            *to = self;
        }
    }

    #[inline(always)]
    fn add(a: Fe, b: Fe) -> Fe {
        let (a, b) = (a.0, b.0);
        Fe([a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4]])
    }

    #[inline(always)]
    fn sub(a: Fe, b: Fe) -> Fe {
        let (a, b) = (a.0, b.0);
        Fe([
            a[0] + FOUR_P[0] - b[0],
            a[1] + FOUR_P[1] - b[1],
            a[2] + FOUR_P[2] - b[2],
            a[3] + FOUR_P[3] - b[3],
            a[4] + FOUR_P[4] - b[4],
        ])
    }

    #[inline(always)]
    fn widen(self) -> Fe {
        self.narrow()
    }

    #[inline(always)]
    fn carry(a: Fe) -> Fe {
        a
    }

    #[inline(always)]
    fn mask(words: &[u64]) -> u64 {
        words.first().copied().unwrap_or(0)
    }

    #[inline(always)]
    fn mask_all(word: u64) -> u64 {
        word
    }

    /// Returns the product of loose elements, reduced.
    #[inline(always)]
    fn mul(self, b: Fe) -> Fe {
        let (a, b) = (self.0, b.0);
        debug_assert!(a.iter().chain(&b).all(|limb| *limb < LOOSE));
        // 2^255 = 19: limb products of weight 5 and more are multiplied by 19.
        let (b1, b2, b3, b4) = (19 * b[1], 19 * b[2], 19 * b[3], 19 * b[4]);
        fold([
            m(a[0], b[0]) + m(a[4], b1) + m(a[3], b2) + m(a[2], b3) + m(a[1], b4),
            m(a[1], b[0]) + m(a[0], b[1]) + m(a[4], b2) + m(a[3], b3) + m(a[2], b4),
            m(a[2], b[0]) + m(a[1], b[1]) + m(a[0], b[2]) + m(a[4], b3) + m(a[3], b4),
            m(a[3], b[0]) + m(a[2], b[1]) + m(a[1], b[2]) + m(a[0], b[3]) + m(a[4], b4),
            m(a[4], b[0]) + m(a[3], b[1]) + m(a[2], b[2]) + m(a[1], b[3]) + m(a[0], b[4]),
        ])
    }

    /// Returns the square of a loose element, reduced. Takes fifteen products where a multiplication takes twenty-five.
    #[inline(always)]
    fn square(self) -> Fe {
        let a = self.0;
        debug_assert!(a.iter().all(|limb| *limb < LOOSE));
        let (d0, d1, d2) = (2 * a[0], 2 * a[1], 2 * a[2]);
        let (a3, a4) = (19 * a[3], 19 * a[4]);
        fold([
            m(a[0], a[0]) + m(d1, a4) + m(d2, a3),
            m(d0, a[1]) + m(d2, a4) + m(a[3], a3),
            m(d0, a[2]) + m(a[1], a[1]) + m(2 * a[3], a4),
            m(d0, a[3]) + m(d1, a[2]) + m(a[4], a4),
            m(d0, a[4]) + m(d1, a[3]) + m(a[2], a[2]),
        ])
    }

    /// Returns the product of a loose element and a constant below 2^20, reduced.
    #[inline(always)]
    fn mul_small(self, k: u32) -> Fe {
        let (a, k) = (self.0, u64::from(k));
        debug_assert!(a.iter().all(|limb| *limb < LOOSE) && k < 1 << 20);
        fold([m(a[0], k), m(a[1], k), m(a[2], k), m(a[3], k), m(a[4], k)])
    }

    /// Returns `b` where the mask is all ones, `self` where it is all zeros.
    #[inline(always)]
    fn select(self, b: Fe, mask: u64) -> Fe {
        let mut l = self.0;
        for (x, y) in l.iter_mut().zip(b.0) {
            *x ^= (*x ^ y) & mask;
        }
        Fe(l)
    }

    #[cfg(test)]
    const LIMB: (i64, i64) = (0, LOOSE as i64 - 1);
    #[cfg(test)]
    const UNIT: i64 = (1 << 51) + (1 << 18);
    #[cfg(test)]
    fn from_limbs(lanes: &[[i64; 5]]) -> Fe {
        Fe(lanes[0].map(|limb| limb as u64))
    }
    #[cfg(test)]
    fn limbs(self) -> Vec<[i64; 5]> {
        vec![self.0.map(|limb| limb as i64)]
    }
    #[cfg(test)]
    fn columns(a: Fe) -> Vec<[i64; 5]> {
        a.limbs()
    }
}

/// Returns all ones for 1 and all zeros for 0, hidden from the optimiser so that it makes no branch.
#[inline(always)]
pub(crate) fn mask(bit: u64) -> u64 {
    core::hint::black_box(bit).wrapping_neg()
}

/// A little-endian number as four words.
#[inline(always)]
pub(crate) fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let mut w = [0; 4];
    for (word, b) in w.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*b);
    }
    w
}

/// Carries the columns of a product; the result is reduced.
///
/// Two rounds carry from all limbs at once, where a single one would ripple through them. They need no 128-bit additions, and
/// the chain of dependent operations is short.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // Intended: a column is split into its two words.
fn fold(c: [u128; 5]) -> Fe {
    let lo = c.map(|c| c as u64);
    let hi = c.map(|c| (c >> 64) as u64);
    // Round 1. A column is its low 51 bits, plus 2^51 times lo >> 51, plus 2^51 times hi << 13. Column 4 has no terms
    // multiplied by 19, so its carry is below 2^59.4, and 19 times this carry is below 2^63.7. The two parts of a carry
    // are added separately because together they would become a double shift, which is slow on AMD processors.
    let l = [
        (lo[0] & LOW) + 19 * (lo[4] >> 51) + 19 * (hi[4] << 13),
        (lo[1] & LOW) + (lo[0] >> 51) + (hi[0] << 13),
        (lo[2] & LOW) + (lo[1] >> 51) + (hi[1] << 13),
        (lo[3] & LOW) + (lo[2] >> 51) + (hi[2] << 13),
        (lo[4] & LOW) + (lo[3] >> 51) + (hi[3] << 13),
    ];
    // Round 2. The carries are below 2^13, and 19 times one is below 2^18.
    Fe([
        (l[0] & LOW) + 19 * (l[4] >> 51),
        (l[1] & LOW) + (l[0] >> 51),
        (l[2] & LOW) + (l[1] >> 51),
        (l[3] & LOW) + (l[2] >> 51),
        (l[4] & LOW) + (l[3] >> 51),
    ])
}
