//! The field GF(2^64) of polynomials modulo x^64 + x^4 + x^3 + x + 1, on slices.
//!
//! An element is 8 bytes; bit i of them, as a little-endian number, is the coefficient of x^i. Sums are
//! exclusive-ors. A *pair* is 16 bytes: two elements, which an element multiplies each by itself. Constant-time in all
//! elements.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use crate::Backend;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = &[Backend::Clmul512, Backend::Clmul256, Backend::Clmul, Backend::Portable];

/// x^64 reduced.
pub const MODULUS: u64 = 0x1b;

/// The product.
pub fn multiply(a: &[u8; 8], b: &[u8; 8]) -> [u8; 8] {
    let mut pair = [0; 16];
    pair[..8].copy_from_slice(b);
    sum_of_products(&[*a], &[pair]).as_chunks().0[0]
}

/// Adds the pair `factor` times `x[i]` to the pair `sums[i]`.
///
/// # Panics
///
/// If the lengths differ, which is an error of the caller, not of a peer.
pub fn add_multiple(factor: &[u8; 16], x: &[[u8; 8]], sums: &mut [[u8; 16]]) {
    add_multiple_with(Backend::best(BACKENDS), factor, x, sums);
}

/// The sum of the products of the elements `a[i]` and the pairs `b[i]`.
///
/// # Panics
///
/// If the lengths differ, which is an error of the caller, not of a peer.
pub fn sum_of_products(a: &[[u8; 8]], b: &[[u8; 16]]) -> [u8; 16] {
    sum_of_products_with(Backend::best(BACKENDS), a, b).1
}

/// [`add_multiple`] on the path asked for; returns the path that ran.
///
/// # Panics
///
/// As [`add_multiple`].
pub fn add_multiple_with(
    backend: Backend,
    factor: &[u8; 16],
    x: &[[u8; 8]],
    sums: &mut [[u8; 16]],
) -> Backend {
    assert_eq!(x.len(), sums.len(), "add_multiple: as many sums as elements");
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Clmul512 if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            unsafe { x86::wide::add_multiple(factor, x, sums) };
            backend
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Clmul256 if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            unsafe { x86::middle::add_multiple(factor, x, sums) };
            backend
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Clmul if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            unsafe { x86::narrow::add_multiple(factor, x, sums) };
            backend
        }
        _ => {
            portable::add_multiple(factor, x, sums);
            Backend::Portable
        }
    }
}

/// [`sum_of_products`] on the path asked for; returns the path that ran, and the sum.
///
/// # Panics
///
/// As [`sum_of_products`].
pub fn sum_of_products_with(backend: Backend, a: &[[u8; 8]], b: &[[u8; 16]]) -> (Backend, [u8; 16]) {
    assert_eq!(a.len(), b.len(), "sum_of_products: as many of both factors");
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Clmul512 if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            (backend, unsafe { x86::wide::sum_of_products(a, b) })
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Clmul256 if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            (backend, unsafe { x86::middle::sum_of_products(a, b) })
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Clmul if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            (backend, unsafe { x86::narrow::sum_of_products(a, b) })
        }
        _ => (Backend::Portable, portable::sum_of_products(a, b)),
    }
}
