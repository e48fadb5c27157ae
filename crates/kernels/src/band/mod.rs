//! Rows of 128 bits, each at some position in a long vector of 16-byte elements: the inner loops of an oblivious
//! key-value store over a random band matrix.
//!
//! A row is a start s and 128 bits, of which bit j selects element s + j. Constant-time in the bits and in the
//! elements, but not in the starts, which are addresses.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use crate::Backend;
use crate::backend::on_path;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = &[Backend::Avx512, Backend::Avx2, Backend::Portable];

/// Number of bits in a row.
pub const WIDTH: usize = 128;

/// Writes to `sums[i]` the sum (exclusive-or) of the elements `vector[starts[i] + j]` over the bits j that are set in
/// `bits[i]`.
///
/// # Panics
///
/// If the lengths of starts, bits and sums differ, or if a row ends beyond the vector. These are errors of the
/// caller, not of a peer.
pub fn select(starts: &[u32], bits: &[u128], vector: &[[u8; 16]], sums: &mut [[u8; 16]]) {
    select_with(Backend::best(BACKENDS), starts, bits, vector, sums);
}

/// Adds, from the last row to the first, the sum of the elements `vector[i + j]` over the bits j that are set in
/// `bits[i]` to `vector[i]`. Bit 0 is ignored.
///
/// # Panics
///
/// If the vector does not have 127 elements more than there are rows, which is an error of the caller, not of a peer.
pub fn substitute(bits: &[u128], vector: &mut [[u8; 16]]) {
    substitute_with(Backend::best(BACKENDS), bits, vector);
}

/// [`select`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`select`] does.
pub fn select_with(
    backend: Backend,
    starts: &[u32],
    bits: &[u128],
    vector: &[[u8; 16]],
    sums: &mut [[u8; 16]],
) -> Backend {
    assert!(starts.len() == bits.len() && bits.len() == sums.len(), "select: as many starts, rows and sums");
    on_path!(backend, select(starts, bits, vector, sums), { Avx512 => wide, Avx2 => narrow }).0
}

/// [`substitute`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`substitute`] does.
pub fn substitute_with(backend: Backend, bits: &[u128], vector: &mut [[u8; 16]]) -> Backend {
    assert_eq!(vector.len(), bits.len() + WIDTH - 1, "substitute: 127 elements behind the last row");
    on_path!(backend, substitute(bits, vector), { Avx512 => wide, Avx2 => narrow }).0
}

/// The elements of the row that starts at `start`.
#[inline]
fn window(vector: &[[u8; 16]], start: usize) -> &[[u8; 16]; WIDTH] {
    let row = vector.get(start..).and_then(|rest| rest.first_chunk());
    assert!(row.is_some(), "band: the row ends within the vector");
    row.unwrap_or(&[[0; 16]; WIDTH])
}
