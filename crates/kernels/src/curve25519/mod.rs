//! Curve25519 on abscissae alone: v^2 = u^3 + 486662 u^2 + u over GF(2^255 - 19).
//!
//! A point is the 32-byte little-endian number u. [`elligator2`] always lands on the curve, never on its twist. Half of
//! all numbers belong to the twist, and multiplication keeps a point on its curve, so a masked item would otherwise
//! reveal one bit: which of the two it is on.
//!
//! [`ladder`] clamps its scalar to a multiple of 8, so that the first multiplication lands in the subgroup of prime
//! order (or at infinity, encoded as 0) and later ones stay there.
//!
//! All functions here are constant-time in values; they reveal only the number of items.

mod montgomery;

#[cfg(test)]
mod tests;

use crate::Backend;
use crate::field::portable::words;
use crate::field::{Field, Kernel, run_on};

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = crate::field::BACKENDS;

/// p = 2^255 - 19 as little-endian words.
const P: [u64; 4] = [u64::MAX - 18, u64::MAX, u64::MAX, u64::MAX >> 1];

/// Returns whether a number is a canonical abscissa: below p, so that the top bit is 0. Constant-time.
///
/// ```
/// let mut u = [0xff; 32];
/// u[31] = 0x7f; // 2^255 - 1
/// assert!(!veilset_kernels::curve25519::is_canonical(&u));
/// u[0] = 0xec; // p - 1
/// assert!(veilset_kernels::curve25519::is_canonical(&u));
/// ```
pub fn is_canonical(u: &[u8; 32]) -> bool {
    // u < p if and only if u - p borrows.
    let mut borrow = false;
    for (a, b) in words(u).into_iter().zip(P) {
        let (difference, first) = a.overflowing_sub(b);
        let (_, second) = difference.overflowing_sub(u64::from(borrow));
        borrow = first | second;
    }
    borrow
}

/// Returns the scalar by which [`ladder`] multiplies (RFC 7748, `decodeScalar25519`): a multiple of 8, at least 2^254
/// and below 2^255.
pub fn clamp(mut scalar: [u8; 32]) -> [u8; 32] {
    scalar[0] &= 0xf8;
    scalar[31] &= 0x7f;
    scalar[31] |= 0x40;
    scalar
}

/// Maps each r to an abscissa on the curve with x-only Elligator2, the map of RFC 9380, section 6.7.1.
///
/// r is the little-endian number in all 256 bits, taken modulo p. Every output is canonical and on the curve. It may
/// have a component of small order, which [`ladder`] removes. Only r = 0 gives 0, the point of order 2. Every other
/// output comes from exactly four numbers: r, -r, 1 / (2r) and -1 / (2r). So 1 + (p - 1) / 4 of about (p - 1) / 2
/// abscissae on the curve are outputs.
///
/// # Panics
///
/// If the slices differ in length.
pub fn elligator2(r: &[[u8; 32]], out: &mut [[u8; 32]]) {
    elligator2_with(Backend::best(BACKENDS), r, out);
}

/// [`elligator2`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// If the slices differ in length.
pub fn elligator2_with(backend: Backend, r: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    assert_eq!(r.len(), out.len(), "elligator2: as many outputs as inputs");
    run_on(backend, Map { r, out })
}

struct Map<'a> {
    r: &'a [[u8; 32]],
    out: &'a mut [[u8; 32]],
}

impl Kernel for Map<'_> {
    #[inline(always)]
    fn run<F: Field>(self) {
        montgomery::elligator2::<crate::field::pair::Pair<F>>(self.r, self.out);
    }
}

/// Replaces each point with its multiple by [`clamp`]`(scalar)`.
///
/// This is X25519 (RFC 7748) in batches, except that all 256 bits of a point are used, modulo p, where X25519 ignores
/// bit 255: callers refuse points that are not [`is_canonical`]. Outputs are canonical. The output is 0 if and only if
/// the input has order 1, 2, 4 or 8 on the curve or its twist, including 0 itself; callers that need a contribution
/// from the peer refuse 0.
pub fn ladder(scalar: &[u8; 32], points: &mut [[u8; 32]]) {
    ladder_with(Backend::best(BACKENDS), scalar, points);
}

/// [`ladder`] on the requested path; returns the path that ran.
pub fn ladder_with(backend: Backend, scalar: &[u8; 32], points: &mut [[u8; 32]]) -> Backend {
    run_on(backend, Ladder { scalar, points })
}

struct Ladder<'a> {
    scalar: &'a [u8; 32],
    points: &'a mut [[u8; 32]],
}

impl Kernel for Ladder<'_> {
    #[inline(always)]
    fn run<F: Field>(self) {
        montgomery::ladder::<F>(self.scalar, self.points);
    }
}
