//! Rows of 128 bits, each somewhere in a long vector of elements of 16 bytes: the inner loops of an oblivious
//! key-value store over a random band matrix.
//!
//! A row is a start s and 128 bits; bit j stands for element s + j. Constant-time in the bits and in the elements,
//! not in the starts, which are addresses.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use crate::Backend;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = &[Backend::Avx512, Backend::Avx2, Backend::Portable];

/// Bits of a row.
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

/// From the last row to the first: adds to `vector[i]` the sum of the elements `vector[i + j]` over the bits j that are
/// set in `bits[i]`, of which bit 0 does not count.
///
/// # Panics
///
/// Unless the vector has 127 elements more than there are rows, which is an error of the caller, not of a peer.
pub fn substitute(bits: &[u128], vector: &mut [[u8; 16]]) {
    substitute_with(Backend::best(BACKENDS), bits, vector);
}

/// [`select`] on the path asked for; returns the path that ran.
///
/// # Panics
///
/// As [`select`].
pub fn select_with(
    backend: Backend,
    starts: &[u32],
    bits: &[u128],
    vector: &[[u8; 16]],
    sums: &mut [[u8; 16]],
) -> Backend {
    assert!(starts.len() == bits.len() && bits.len() == sums.len(), "select: as many starts, rows and sums");
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            unsafe { x86::wide::select(starts, bits, vector, sums) };
            backend
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            unsafe { x86::narrow::select(starts, bits, vector, sums) };
            backend
        }
        _ => {
            portable::select(starts, bits, vector, sums);
            Backend::Portable
        }
    }
}

/// [`substitute`] on the path asked for; returns the path that ran.
///
/// # Panics
///
/// As [`substitute`].
pub fn substitute_with(backend: Backend, bits: &[u128], vector: &mut [[u8; 16]]) -> Backend {
    assert_eq!(vector.len(), bits.len() + WIDTH - 1, "substitute: 127 elements behind the last row");
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            unsafe { x86::wide::substitute(bits, vector) };
            backend
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 if backend.is_available() => {
            // SAFETY: the processor has what the path needs, as is_available has just said.
            unsafe { x86::narrow::substitute(bits, vector) };
            backend
        }
        _ => {
            portable::substitute(bits, vector);
            Backend::Portable
        }
    }
}

/// The elements of the row that starts at `start`.
#[inline]
fn window(vector: &[[u8; 16]], start: usize) -> &[[u8; 16]; WIDTH] {
    let row = vector.get(start..).and_then(|rest| rest.first_chunk());
    assert!(row.is_some(), "band: the row ends within the vector");
    row.unwrap_or(&[[0; 16]; WIDTH])
}
