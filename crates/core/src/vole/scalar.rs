//! The two fields of a VOLE's vector A.

use super::Element;
use super::code::Symbol;
use crate::channel::Wire;
use crate::rng::Prng;
use crate::secret::Secrets;
use veilset_kernels::{gf64, gf128};

/// An element of GF(2^64).
pub type Half = [u8; 8];

/// An element of A, with its operations on elements of B and C.
pub trait VoleScalar: Symbol + Wire + 'static {
    /// Length of a scalar in bits.
    const BITS: usize;

    /// Returns the scalar in the first bytes.
    fn first(bytes: &[u8; 16]) -> Self;

    /// Returns `n` random scalars.
    fn random(n: usize, rng: &mut Prng) -> Secrets<Self>;

    /// Returns bit `i`.
    fn bit(&self, i: usize) -> bool;

    /// Adds `delta` times `a[i]` to `sums[i]`.
    fn add_multiple(delta: &Element, a: &[Self], sums: &mut [Element]);

    /// Returns the sum of x^b times row b, with one row per bit of a scalar.
    fn combined(rows: &[Element]) -> Element;

    /// Returns the product with x.
    fn times_x(self) -> Self;

    /// Returns the product of an element of B or C with x.
    fn element_times_x(element: Element) -> Element;
}

impl VoleScalar for Element {
    const BITS: usize = 128;

    fn first(bytes: &[u8; 16]) -> Element {
        *bytes
    }

    fn random(n: usize, rng: &mut Prng) -> Secrets<Element> {
        let mut elements = Secrets::<Element>::zeros(n);
        rng.fill(elements.as_flattened_mut());
        elements
    }

    fn bit(&self, i: usize) -> bool {
        self[i / 8] >> (i % 8) & 1 == 1
    }

    fn add_multiple(delta: &Element, a: &[Element], sums: &mut [Element]) {
        gf128::add_multiple(delta, a, sums);
    }

    fn combined(rows: &[Element]) -> Element {
        let powers: [Element; 128] = std::array::from_fn(|b| (1u128 << b).to_le_bytes());
        gf128::sum_of_products(&powers, rows)
    }

    #[inline(always)]
    fn times_x(self) -> Element {
        let a = u128::from_le_bytes(self);
        (a << 1 ^ 0x87 & (a >> 127).wrapping_neg()).to_le_bytes()
    }

    #[inline(always)]
    fn element_times_x(element: Element) -> Element {
        element.times_x()
    }
}

impl VoleScalar for Half {
    const BITS: usize = 64;

    fn first(bytes: &[u8; 16]) -> Half {
        bytes.as_chunks().0[0]
    }

    fn random(n: usize, rng: &mut Prng) -> Secrets<Half> {
        let mut halves = Secrets::<Half>::zeros(n);
        rng.fill(halves.as_flattened_mut());
        halves
    }

    fn bit(&self, i: usize) -> bool {
        self[i / 8] >> (i % 8) & 1 == 1
    }

    fn add_multiple(delta: &Element, a: &[Half], sums: &mut [Element]) {
        gf64::add_multiple(delta, a, sums);
    }

    fn combined(rows: &[Element]) -> Element {
        let powers: [Half; 64] = std::array::from_fn(|b| (1u64 << b).to_le_bytes());
        gf64::sum_of_products(&powers, rows)
    }

    #[inline(always)]
    fn times_x(self) -> Half {
        times_x(u64::from_le_bytes(self)).to_le_bytes()
    }

    #[inline(always)]
    fn element_times_x(element: Element) -> Element {
        let e = u128::from_le_bytes(element);
        (u128::from(times_x((e >> 64) as u64)) << 64 | u128::from(times_x(e as u64))).to_le_bytes()
    }
}

/// The product with x in GF(2^64).
#[inline(always)]
fn times_x(a: u64) -> u64 {
    a << 1 ^ gf64::MODULUS & (a >> 63).wrapping_neg()
}
