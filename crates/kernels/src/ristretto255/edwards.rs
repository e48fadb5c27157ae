//! The curve -x^2 + y^2 = 1 + d x^2 y^2, generic over the field.
//!
//! Formulas: Hisil, Wong, Carter, Dawson, "Twisted Edwards Curves Revisited" (ASIACRYPT 2008), sections 3.1 and 3.3,
//! for a = -1. d is not a square, so the addition formula is complete.

use core::hint::black_box;

use crate::field::{Fe, Field, product};

/// The maximum number of lanes of points, because vectors are not paired here.
pub(super) const LANES: usize = 8;

/// d = -121665 / 121666.
pub(super) const D: Fe =
    Fe([929955233495203, 466365720129213, 1662059464998953, 2033849074728123, 1442794654840575]);

/// A point: x = X / Z, y = Y / Z, T = X Y / Z.
#[derive(Clone, Copy)]
pub(super) struct Extended<F> {
    pub(super) x: F,
    pub(super) y: F,
    pub(super) z: F,
    pub(super) t: F,
}

/// A point in a form for repeated additions: Y + X, Y - X, 2 Z and 2 d T.
#[derive(Clone, Copy)]
pub(super) struct Cached<F> {
    plus: F,
    minus: F,
    z: F,
    t: F,
}

/// Returns -a.
#[inline(always)]
pub(super) fn negated<F: Field>(a: F) -> F {
    F::carry(F::sub(F::splat(&Fe::ZERO).widen(), a.widen()))
}

impl<F: Field> Extended<F> {
    #[inline(always)]
    pub(super) fn identity() -> Self {
        let (zero, one) = (F::splat(&Fe::ZERO), F::splat(&Fe::ONE));
        Extended { x: zero, y: one, z: one, t: zero }
    }

    /// Returns twice the point, without T unless `with_t`.
    #[inline(always)]
    fn twice(self, with_t: bool) -> Self {
        let (xx, yy, zz) = (self.x.square(), self.y.square(), self.z.square());
        let e = F::carry(F::add(self.x.widen(), self.y.widen())).square();
        let h = F::add(yy, xx);
        let e = F::carry(F::sub(e, h));
        let f = F::carry(F::sub(F::add(F::add(zz, zz), xx), yy));
        let (g, h) = (F::carry(F::sub(yy, xx)), F::carry(h));
        let t = if with_t { product(e, h) } else { self.t };
        Extended { x: product(e, f), y: product(g, h), z: product(f, g), t }
    }

    /// Returns 2^4 times the point.
    #[inline(always)]
    pub(super) fn times_16(mut self) -> Self {
        for _ in 0..3 {
            self = self.twice(false);
        }
        self.twice(true)
    }

    #[inline(always)]
    pub(super) fn cached(self) -> Cached<F> {
        let (x, y, z) = (self.x.widen(), self.y.widen(), self.z.widen());
        let t = product(self.t, F::splat(&D)).widen();
        Cached {
            plus: F::carry(F::add(y, x)),
            minus: F::carry(F::sub(y, x)),
            z: F::carry(F::add(z, z)),
            t: F::carry(F::add(t, t)),
        }
    }

    /// Returns the sum.
    #[inline(always)]
    pub(super) fn plus(self, other: &Cached<F>) -> Self {
        let d = self.z.mul(other.z);
        self.plus_with(other, d)
    }

    /// Returns the sum with a point whose Z is 1; `other.z` is not read.
    #[inline(always)]
    pub(super) fn plus_affine(self, other: &Cached<F>) -> Self {
        let z = self.z.widen();
        self.plus_with(other, F::add(z, z))
    }

    /// Returns the sum, where d is 2 Z Z'.
    #[inline(always)]
    fn plus_with(self, other: &Cached<F>, d: F::Raw) -> Self {
        let (x, y) = (self.x.widen(), self.y.widen());
        let a = F::carry(F::sub(y, x)).mul(other.minus);
        let b = F::carry(F::add(y, x)).mul(other.plus);
        let c = self.t.mul(other.t);
        let (e, h) = (F::carry(F::sub(b, a)), F::carry(F::add(b, a)));
        let (f, g) = (F::carry(F::sub(d, c)), F::carry(F::add(d, c)));
        Extended { x: product(e, f), y: product(g, h), z: product(f, g), t: product(e, h) }
    }
}

impl<F: Field> Cached<F> {
    #[inline(always)]
    pub(super) fn identity() -> Self {
        let (zero, one) = (F::splat(&Fe::ZERO), F::splat(&Fe::ONE));
        let two = F::splat(&Fe([2, 0, 0, 0, 0]));
        Cached { plus: one, minus: one, z: two, t: zero }
    }

    /// Makes a cached point from y + x, y - x and 2 d x y.
    #[inline(always)]
    pub(super) fn affine(plus: F, minus: F, t: F) -> Self {
        Cached { plus, minus, z: F::splat(&Fe([2, 0, 0, 0, 0])), t }
    }

    #[inline(always)]
    fn select(self, other: &Self, mask: F::Mask) -> Self {
        Cached {
            plus: self.plus.select(other.plus, mask),
            minus: self.minus.select(other.minus, mask),
            z: self.z.select(other.z, mask),
            t: self.t.select(other.t, mask),
        }
    }

    /// Returns the negative where the mask is ones.
    #[inline(always)]
    pub(super) fn negate(self, mask: F::Mask) -> Self {
        Cached {
            plus: self.plus.select(self.minus, mask),
            minus: self.minus.select(self.plus, mask),
            z: self.z,
            t: self.t.select(negated(self.t), mask),
        }
    }
}

/// Writes the digits of radix 16, from -8 to 8, of a little-endian number below 2^255, least significant first.
#[inline(always)]
pub(super) fn digits(scalar: &[u8; 32], digits: &mut [i8; 64]) {
    for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(scalar) {
        *pair = [(byte & 15).cast_signed(), (byte >> 4).cast_signed()];
    }
    // Bit 255 is ignored.
    digits[63] &= 7;
    let mut carry = 0;
    for digit in &mut digits[..63] {
        *digit += carry;
        carry = (*digit + 8) >> 4;
        *digit -= carry << 4;
    }
    digits[63] += carry;
}

/// Returns the absolute value of a digit and its sign, all ones if negative.
#[inline(always)]
pub(super) fn size_and_sign(digit: i8) -> (u64, u64) {
    let digit = i64::from(digit);
    let sign = (digit >> 63).cast_unsigned();
    ((digit.cast_unsigned() ^ sign).wrapping_sub(sign), black_box(sign))
}

/// Returns all ones where a number equals `b`; all are below 2^63. Hidden from the optimiser, which would otherwise
/// turn comparisons into branches.
#[inline(always)]
pub(super) fn equal<const N: usize>(numbers: [u64; N], b: u64) -> [u64; N] {
    black_box(numbers.map(|a| (((a ^ b).wrapping_sub(1)).cast_signed() >> 63).cast_unsigned()))
}

/// Returns the multiples of the points by the scalars with these digits, one per lane.
#[inline(always)]
pub(super) fn multiply<F: Field>(p: Extended<F>, digits: &[[i8; 64]]) -> Extended<F> {
    // 1 to 8 times the point.
    let first = p.cached();
    let (mut table, mut multiple) = ([first; 8], p);
    for entry in &mut table[1..] {
        multiple = multiple.plus(&first);
        *entry = multiple.cached();
    }
    let mut sum = Extended::identity();
    for window in (0..64).rev() {
        sum = sum.times_16();
        // Not wiped, which would take a twenty-fifth of the time: only the last window's values remain.
        let (mut sizes, mut signs) = ([0; LANES], [0; LANES]);
        for ((size, sign), digits) in sizes.iter_mut().zip(&mut signs).zip(digits) {
            (*size, *sign) = size_and_sign(digits[window]);
        }
        let mut entry = Cached::identity();
        for (of_table, j) in table.iter().zip(1..) {
            entry = entry.select(of_table, F::mask(&equal(sizes, j)));
        }
        sum = sum.plus(&entry.negate(F::mask(&signs)));
    }
    sum
}
