//! Transposition of a bit matrix with 128 columns, for oblivious-transfer extension: columns are generated one at a
//! time from seeds, and rows are used one at a time as keys.
//!
//! Constant-time in the bits.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use crate::Backend;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = &[Backend::Avx2, Backend::Portable];

/// Number of columns of the matrix.
const COLUMNS: usize = 128;

/// Writes row j of the matrix to `out[j]`.
///
/// Column c is the first `out.len() / 8` bytes of `columns[c * stride..]`. Bit j of a column is bit j % 8 of its byte j
/// / 8, and bit c of a row is bit c % 8 of its byte c / 8. The last column may end with its last row. A stride that is
/// a multiple of 4096 causes cache misses; add 64.
///
/// # Panics
///
/// If the number of rows is not a multiple of 128, if columns overlap (`stride` below `out.len() / 8`), or
/// if `columns` is shorter than 127 strides and a column. These are errors of the caller, not of a peer.
pub fn transpose_128(columns: &[u8], stride: usize, out: &mut [[u8; 16]]) {
    transpose_128_with(Backend::best(BACKENDS), columns, stride, out);
}

/// [`transpose_128`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`transpose_128`] does.
pub fn transpose_128_with(backend: Backend, columns: &[u8], stride: usize, out: &mut [[u8; 16]]) -> Backend {
    let height = out.len() / 8;
    assert!(out.len().is_multiple_of(128), "transpose_128: the number of rows is a multiple of 128");
    assert!(stride >= height, "transpose_128: a column fits into the stride");
    let needed = stride.checked_mul(COLUMNS - 1).and_then(|n| n.checked_add(height));
    assert!(
        needed.is_some_and(|n| n <= columns.len()) || height == 0,
        "transpose_128: there are 128 columns"
    );
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 if backend.is_available() => {
            // SAFETY: is_available has just confirmed that the processor supports AVX2.
            unsafe { x86::transpose_128(columns, stride, out) };
            Backend::Avx2
        }
        _ => {
            portable::transpose_128(columns, stride, out);
            Backend::Portable
        }
    }
}
