//! The field GF(2^128) of polynomials modulo x^128 + x^7 + x^2 + x + 1, on slices.
//!
//! An element is 16 bytes; bit i of this little-endian number is the coefficient of x^i. Sums are exclusive-ors.
//! Constant-time in all elements.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use crate::Backend;
use crate::backend::on_path;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = &[Backend::Clmul512, Backend::Clmul256, Backend::Clmul, Backend::Portable];

/// Returns the product.
pub fn multiply(a: &[u8; 16], b: &[u8; 16]) -> [u8; 16] {
    sum_of_products(&[*a], &[*b])
}

/// Adds `factor` times `x[i]` to `sums[i]`.
///
/// # Panics
///
/// If the lengths differ, which is an error of the caller, not of a peer.
pub fn add_multiple(factor: &[u8; 16], x: &[[u8; 16]], sums: &mut [[u8; 16]]) {
    add_multiple_with(Backend::best(BACKENDS), factor, x, sums);
}

/// Returns the sum of the products `a[i] b[i]`.
///
/// # Panics
///
/// If the lengths differ, which is an error of the caller, not of a peer.
pub fn sum_of_products(a: &[[u8; 16]], b: &[[u8; 16]]) -> [u8; 16] {
    sum_of_products_with(Backend::best(BACKENDS), a, b).1
}

/// [`add_multiple`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`add_multiple`] does.
pub fn add_multiple_with(
    backend: Backend,
    factor: &[u8; 16],
    x: &[[u8; 16]],
    sums: &mut [[u8; 16]],
) -> Backend {
    assert_eq!(x.len(), sums.len(), "add_multiple: as many sums as elements");
    on_path!(backend, add_multiple(factor, x, sums), { Clmul512 => four, Clmul256 => two, Clmul => one }).0
}

/// [`sum_of_products`] on the requested path; returns the path that ran, and the sum.
///
/// # Panics
///
/// Panics as [`sum_of_products`] does.
pub fn sum_of_products_with(backend: Backend, a: &[[u8; 16]], b: &[[u8; 16]]) -> (Backend, [u8; 16]) {
    assert_eq!(a.len(), b.len(), "sum_of_products: as many of both factors");
    on_path!(backend, sum_of_products(a, b), { Clmul512 => four, Clmul256 => two, Clmul => one })
}
