//! Arithmetic modulo p = 2^255 - 19, on one element or on the lanes of a vector.
//!
//! An element is five limbs of radix 2^51. [`portable::Fe`] is the specification, with one lane. The others hold
//! such limbs in vectors, and apply to every lane the operations of `Fe`. Points, maps and encodings are written once,
//! over the trait [`Field`], and compiled for each.
//!
//! # Sums before carries
//!
//! A product of limbs is much wider than a limb, and carrying it takes a third as long as computing it. So a product is
//! initially a [`Field::Raw`], raw values are added and subtracted, and [`Field::carry`] turns the result into an
//! operand. In every implementation:
//!
//! * a *unit* is a value returned by [`Field::mul`], [`Field::square`], [`Field::mul_small`] or [`Field::widen`];
//! * a raw value is a sum of at most three units, or such a sum minus another.
//!
//! The documentation of each implementation proves that its limbs can hold raw values.
//!
//! # Inlining
//!
//! Vector instructions exist only in functions compiled for them. So all functions over `Field` are `inline(always)`,
//! into functions compiled for the instructions, which the dispatcher calls after feature detection. Values of a vector
//! type are created only there.

/// Evaluates one expression for each limb.
#[cfg(target_arch = "x86_64")]
macro_rules! each {
    ($i:ident => $e:expr) => {
        [
            { const $i: usize = 0; $e },
            { const $i: usize = 1; $e },
            { const $i: usize = 2; $e },
            { const $i: usize = 3; $e },
            { const $i: usize = 4; $e },
        ]
    };
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod fma;
#[cfg(target_arch = "x86_64")]
pub(crate) mod ifma;
pub(crate) mod pair;
pub(crate) mod portable;

#[cfg(test)]
mod tests;

use crate::Backend;
pub(crate) use portable::Fe;

/// The implementations of the field, best first. Compiling the portable one for BMI2 gains nothing measurable.
pub(crate) const BACKENDS: &[Backend] = &[Backend::Ifma512, Backend::Fma, Backend::Portable];

/// An operation that is generic over the implementation.
pub(crate) trait Kernel {
    /// Runs the operation. Must be `inline(always)`.
    fn run<F: Field>(self);
}

/// Runs a kernel on the requested path if it is one of [`BACKENDS`], the processor can run it and, for [`Backend::Fma`],
/// this thread rounds and traps as usual; otherwise on the portable one. Returns the path that ran.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
pub(crate) fn run_on(backend: Backend, kernel: impl Kernel) -> Backend {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512dq,avx512ifma,bmi2")]
        fn ifma(kernel: impl Kernel) {
            kernel.run::<ifma::Ifma>();
        }
        #[target_feature(enable = "avx2,fma,bmi2")]
        fn fma(kernel: impl Kernel) {
            kernel.run::<fma::Fma>();
        }
        if backend.is_available() {
            match backend {
                // SAFETY: is_available has just confirmed that the processor supports the instructions.
                Backend::Ifma512 => unsafe { ifma(kernel) },
                // SAFETY: as for `ifma`.
                Backend::Fma if fma::is_usual_mode() => unsafe { fma(kernel) },
                _ => return run_portable(kernel),
            }
            return backend;
        }
    }
    run_portable(kernel)
}

fn run_portable(kernel: impl Kernel) -> Backend {
    kernel.run::<Fe>();
    Backend::Portable
}

/// Maximum number of lanes of any implementation.
pub(crate) const MAX_LANES: usize = 16;

/// Number of vectors that share an inversion. It then costs 4 multiplications per vector, in addition to the 3 of the
/// trick; a ladder costs 2,500.
pub(crate) const VECTORS: usize = 64;

/// [`Field::LANES`] elements modulo p, one per lane. Operations apply to all lanes.
pub(crate) trait Field: Copy {
    /// Number of elements in a value of this type.
    const LANES: usize;
    /// An uncarried sum or difference of products. The module defines its bounds.
    type Raw: Copy;
    /// A condition per lane.
    type Mask: Copy;

    /// Returns the same element in all lanes. Its limbs must be below 2^51 + 2^16.
    fn splat(a: &Fe) -> Self;
    /// Loads one element per lane, loose or not; a lane without an element is 0.
    fn load(from: &[Fe]) -> Self;
    /// Stores the elements of the lanes, loose, in `to`: as many as it has room for. The rest of `to` stays as it is.
    fn store(self, to: &mut [Fe]);

    /// Returns the product.
    fn mul(self, b: Self) -> Self::Raw;
    /// Returns the square.
    fn square(self) -> Self::Raw;
    /// Returns the product with a constant below 2^20.
    fn mul_small(self, k: u32) -> Self::Raw;
    /// Returns the element itself as a raw value, for sums.
    fn widen(self) -> Self::Raw;
    /// Returns the sum of raw values.
    fn add(a: Self::Raw, b: Self::Raw) -> Self::Raw;
    /// Returns the difference of raw values.
    fn sub(a: Self::Raw, b: Self::Raw) -> Self::Raw;
    /// Returns the element that a raw value represents.
    fn carry(a: Self::Raw) -> Self;

    /// Makes a mask from all ones or all zeros for each lane; a lane without a word gets zeros.
    fn mask(words: &[u64]) -> Self::Mask;
    /// Makes a mask from all ones or all zeros for all lanes.
    fn mask_all(word: u64) -> Self::Mask;
    /// Returns `b` where the mask is ones, `self` where it is zeros.
    fn select(self, b: Self, mask: Self::Mask) -> Self;
    /// Returns, in each lane, the last element of the table whose mask is ones, or the first argument if there is none.
    /// All limbs must be as in [`Field::splat`].
    #[inline(always)]
    fn choose<const N: usize>(none: &Fe, table: &[Fe; N], masks: &[Self::Mask; N]) -> Self {
        let mut chosen = Self::splat(none);
        for (element, mask) in table.iter().zip(masks) {
            chosen = chosen.select(Self::splat(element), *mask);
        }
        chosen
    }

    /// The smallest and the largest limb of an operand.
    #[cfg(test)]
    const LIMB: (i64, i64);
    /// A bound on the absolute value of a column of a unit.
    #[cfg(test)]
    const UNIT: i64;
    /// Returns the element with these limbs in each lane.
    #[cfg(test)]
    fn from_limbs(lanes: &[[i64; 5]]) -> Self;
    /// Returns the limbs of each lane.
    #[cfg(test)]
    fn limbs(self) -> Vec<[i64; 5]>;
    /// Returns the columns of each lane.
    #[cfg(test)]
    fn columns(a: Self::Raw) -> Vec<[i64; 5]>;
}

/// Returns the carried product.
#[inline(always)]
pub(crate) fn product<F: Field>(a: F, b: F) -> F {
    F::carry(a.mul(b))
}

/// Returns the carried square.
#[inline(always)]
pub(crate) fn squared<F: Field>(a: F) -> F {
    F::carry(a.square())
}

/// Returns a^(2^n).
#[inline(always)]
fn square_n<F: Field>(mut a: F, n: u32) -> F {
    for _ in 0..n {
        a = squared(a);
    }
    a
}

/// Returns a^(2^250 - 1) and a^11, shared by inversion, the quadratic character and square roots.
#[inline(always)]
fn pow_2_250_1<F: Field>(a: F) -> (F, F) {
    let x2 = squared(a);
    let x9 = product(square_n(x2, 2), a);
    let x11 = product(x9, x2);
    // e(n) = a^(2^n - 1), and e(m + n) = e(m)^(2^n) e(n), where n is m or an earlier exponent.
    let e5 = product(squared(x11), x9);
    let mut e = product(square_n(e5, 5), e5);
    let mut kept = e;
    for (n, keep) in [(10, true), (20, false), (10, false), (50, true), (100, false), (50, false)] {
        // 20 = 10 + 10, 40 = 20 + 20, 50 = 40 + 10, 100 = 50 + 50, 200 = 100 + 100, 250 = 200 + 50.
        if keep {
            kept = e;
        }
        let factor = if n == 20 || n == 100 { e } else { kept };
        e = product(square_n(e, n), factor);
    }
    (e, x11)
}

/// Returns a^(p-2): the inverse, and 0 for 0.
#[inline(always)]
pub(crate) fn inverse<F: Field>(a: F) -> F {
    // p - 2 = 2^255 - 21 = 2^5 (2^250 - 1) + 11.
    let (e250, x11) = pow_2_250_1(a);
    product(square_n(e250, 5), x11)
}

/// Returns a^((p-1)/2): 1 for a square, -1 for a non-square, 0 for 0.
#[inline(always)]
pub(crate) fn character<F: Field>(a: F) -> F {
    // (p - 1) / 2 = 2^254 - 10 = 2^4 (2^250 - 1) + 6.
    let (e250, _) = pow_2_250_1(a);
    let x6 = squared(product(squared(a), a));
    product(square_n(e250, 4), x6)
}

/// Returns a^((p-5)/8), from which square roots are computed.
#[inline(always)]
pub(crate) fn pow_p58<F: Field>(a: F) -> F {
    // (p - 5) / 8 = 2^252 - 3 = 2^2 (2^250 - 1) + 1.
    let (e250, _) = pow_2_250_1(a);
    product(square_n(e250, 2), a)
}

/// Replaces the elements with their inverses, using one inversion per lane (Montgomery's trick). None may be 0, and
/// there are at most [`VECTORS`].
#[inline(always)]
pub(crate) fn invert_all<F: Field>(elements: &mut [F]) {
    debug_assert!(elements.len() <= VECTORS);
    let one = F::splat(&Fe::ONE);
    let (mut before, mut all) = ([one; VECTORS], one);
    for (before, e) in before.iter_mut().zip(elements.iter()) {
        *before = all;
        all = product(all, *e);
    }
    let mut rest = inverse(all);
    for (before, e) in before.iter().zip(elements.iter_mut()).rev() {
        let this = product(rest, *before);
        rest = product(rest, *e);
        *e = this;
    }
}
