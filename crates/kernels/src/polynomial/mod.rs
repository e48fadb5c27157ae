//! Polynomials over GF(2^64), GF(2^72) and GF(2^80), many small ones at a time: interpolation of a random polynomial
//! through given points, and evaluation.
//!
//! A batch consists of *instances*: polynomials of equal length, each through the same number of its own points. A
//! vector holds the same coefficient of several instances.
//!
//! An element is the low [`Field::bits`] bits of a number, with bit i the coefficient of x^i; higher bits are ignored.
//! Constant-time in all elements, but not in their number.

mod algorithm;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use crate::Backend;
use algorithm::Lanes;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = &[Backend::Clmul512, Backend::Clmul256, Backend::Clmul, Backend::Portable];

/// A field of characteristic two, given by its reduction polynomial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// GF(2^64) modulo x^64 + x^4 + x^3 + x + 1.
    Bits64,
    /// GF(2^72) modulo x^72 + x^10 + x^9 + x^3 + 1.
    Bits72,
    /// GF(2^80) modulo x^80 + x^9 + x^4 + x^2 + 1.
    Bits80,
}

/// The number and length of polynomials. The kernels take these numbers and never divide, because the time of a
/// division depends on the values. So a test can reject every division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of polynomials.
    pub instances: usize,
    /// The number of points of each polynomial.
    pub points: usize,
    /// The number of free coefficients. The length of a polynomial is the number of points plus this.
    pub free: usize,
}

/// The error for an instance with a repeated point, which cannot be interpolated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated;

impl Field {
    /// All fields, the smallest first.
    pub const ALL: [Field; 3] = [Field::Bits64, Field::Bits72, Field::Bits80];

    /// Returns the length of an element in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Field::Bits64 => 64,
            Field::Bits72 => 72,
            Field::Bits80 => 80,
        }
    }

    /// Returns the length of an element in bytes.
    pub const fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    /// Returns the mask of the used bits of a number.
    pub const fn mask(self) -> u128 {
        (1 << self.bits()) - 1
    }
}

/// Interpolates for each instance the polynomial P = I + V R. I has the least degree with I(q_i) = v_i at its points, V
/// is the product of all x - q_i, and R has the given coefficients.
///
/// Point i of instance j is `points[i * shape.instances + j]`; values, and the coefficients of R from the lowest up,
/// have the same order. If the coefficients of R are uniform, P is uniform among the polynomials of its length with
/// these values. Its coefficients, as many as in I and R together, are written to `out` instance by instance, the
/// lowest first, each as [`Field::bytes`] bytes, the lowest first.
///
/// # Errors
/// [`Repeated`] if an instance has a point twice. The output is then meaningless, and the time is the same.
///
/// # Panics
///
/// If a length does not fit the shape, which is an error of the caller.
pub fn interpolate(
    field: Field,
    shape: &Shape,
    points: &[u128],
    values: &[u128],
    random: &[u128],
    out: &mut [u8],
) -> Result<(), Repeated> {
    interpolate_with(Backend::best(BACKENDS), field, shape, points, values, random, out).1
}

/// [`interpolate`] on the requested path; also returns the path that ran.
///
/// # Errors
/// [`Repeated`] if an instance has a point twice.
///
/// # Panics
///
/// Panics as [`interpolate`] does.
#[allow(clippy::too_many_arguments)] // the arguments of interpolate, and the path
pub fn interpolate_with(
    backend: Backend,
    field: Field,
    shape: &Shape,
    points: &[u128],
    values: &[u128],
    random: &[u128],
    out: &mut [u8],
) -> (Backend, Result<(), Repeated>) {
    assert_eq!(points.len(), shape.instances * shape.points, "interpolate: the points of all instances");
    assert_eq!(points.len(), values.len(), "interpolate: each point has a value");
    assert_eq!(
        random.len(),
        shape.instances * shape.free,
        "interpolate: the free coefficients of all instances"
    );
    assert_eq!(out.len(), (points.len() + random.len()) * field.bytes(), "interpolate: room for the result");
    run(backend, field, Interpolate { shape, points, values, random, out })
}

/// Evaluates each polynomial at its point. Each has `length` coefficients, in the order of [`interpolate`].
///
/// # Panics
///
/// If the number of coefficients is wrong, or if `out` and `points` differ in length, which are errors of the caller.
pub fn evaluate(field: Field, length: usize, coefficients: &[u8], points: &[u128], out: &mut [u128]) {
    evaluate_with(Backend::best(BACKENDS), field, length, coefficients, points, out);
}

/// [`evaluate`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`evaluate`] does.
pub fn evaluate_with(
    backend: Backend,
    field: Field,
    length: usize,
    coefficients: &[u8],
    points: &[u128],
    out: &mut [u128],
) -> Backend {
    let all = points.len() * length * field.bytes();
    assert_eq!(coefficients.len(), all, "evaluate: all instances have that number of coefficients");
    assert_eq!(points.len(), out.len(), "evaluate: a value for each point");
    run(backend, field, Evaluate { length, coefficients, points, out }).0
}

/// A kernel that is generic over the vectors of any path.
trait Kernel {
    type Output;
    fn run<V: Lanes, const BITS: u32>(self) -> Self::Output;
}

struct Interpolate<'a> {
    shape: &'a Shape,
    points: &'a [u128],
    values: &'a [u128],
    random: &'a [u128],
    out: &'a mut [u8],
}

impl Kernel for Interpolate<'_> {
    type Output = Result<(), Repeated>;
    #[inline(always)]
    fn run<V: Lanes, const BITS: u32>(self) -> Self::Output {
        let Interpolate { shape, points, values, random, out } = self;
        algorithm::interpolate::<V, BITS>(shape, points, values, random, out)
    }
}

struct Evaluate<'a> {
    length: usize,
    coefficients: &'a [u8],
    points: &'a [u128],
    out: &'a mut [u128],
}

impl Kernel for Evaluate<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes, const BITS: u32>(self) {
        algorithm::evaluate::<V, BITS>(self.length, self.coefficients, self.points, self.out);
    }
}

fn run<K: Kernel>(backend: Backend, field: Field, kernel: K) -> (Backend, K::Output) {
    match field {
        Field::Bits64 => run_in::<K, 64>(backend, kernel),
        Field::Bits72 => run_in::<K, 72>(backend, kernel),
        Field::Bits80 => run_in::<K, 80>(backend, kernel),
    }
}

fn run_in<K: Kernel, const BITS: u32>(backend: Backend, kernel: K) -> (Backend, K::Output) {
    match backend {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: is_available has just confirmed that the processor supports this path.
        Backend::Clmul512 if backend.is_available() => (backend, unsafe { x86::run_512::<K, BITS>(kernel) }),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for Clmul512.
        Backend::Clmul256 if backend.is_available() => (backend, unsafe { x86::run_256::<K, BITS>(kernel) }),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as for Clmul512.
        Backend::Clmul if backend.is_available() => (backend, unsafe { x86::run_128::<K, BITS>(kernel) }),
        _ => (Backend::Portable, kernel.run::<portable::One, BITS>()),
    }
}
