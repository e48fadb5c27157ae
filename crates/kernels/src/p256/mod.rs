//! P-256 (SEC 2, FIPS 186): y^2 = x^3 - 3 x + b over GF(2^256 - 2^224 + 2^192 + 2^96 - 1), a group of prime order.
//!
//! A point is its two coordinates, big-endian: the uncompressed form of SEC 1 without the constant first byte. The
//! identity has no such encoding. Since the order is prime, no other point has low order.
//!
//! [`map`] maps uniform numbers to the curve, and [`lift`] finds the points of abscissae; both are implemented here, in
//! batches. [`multiply`] is aws-lc's multiplication of points, which TLS links anyway.
//!
//! All functions are constant-time in values; they reveal only the number of items, which points are valid, and whether a
//! scalar is.

mod aws_lc;
mod map;
mod modular;

#[cfg(test)]
mod tests;

use modular::{Order, Prime};

/// The coordinates x and y, 32 bytes each, big-endian.
pub type Point = [u8; 64];

/// Returns whether a big-endian number is a canonical coordinate, that is, below p. Constant-time.
pub fn is_canonical(coordinate: &[u8; 32]) -> bool {
    modular::is_below::<Prime>(coordinate)
}

/// Returns whether a big-endian number is a scalar: below the order, and not 0. Constant-time except for the result.
pub fn is_scalar(scalar: &[u8; 32]) -> bool {
    modular::is_below::<Order>(scalar) & (scalar.iter().fold(0, |any, byte| any | byte) != 0)
}

/// Returns the inverse of a scalar modulo the order. Constant-time, and slow: meant for a key, not for points.
pub fn inverse(scalar: &[u8; 32]) -> [u8; 32] {
    modular::inverse_of_scalar(scalar)
}

/// Maps each number to a point with the simplified SWU map of RFC 9380, section 6.6.2, with Z = -10.
///
/// A number is big-endian and taken modulo p. 384 uniform bits give a field element whose distance from uniform is
/// below 2^-128. 256 bits would not suffice: 2^256 is p + 2^224 - ..., so about one element in 2^32 would occur twice
/// as often as the others. The map has no exceptions: every number maps to a point.
///
/// # Panics
///
/// If the slices differ in length.
pub fn map(uniform: &[[u8; 48]], out: &mut [Point]) {
    assert_eq!(uniform.len(), out.len(), "map: as many points as numbers");
    map::map(uniform, out);
}

/// Finds the point of each abscissa, a big-endian number: of the two candidates, the one with an even ordinate.
///
/// # Errors
///
/// The position of the first number that is not canonical or, like half of all numbers, not the abscissa of a point. The
/// points must not be used in that case.
///
/// # Panics
///
/// If the slices differ in length.
pub fn lift(x: &[[u8; 32]], out: &mut [Point]) -> Result<(), usize> {
    assert_eq!(x.len(), out.len(), "lift: as many points as abscissae");
    map::lift(x, out)
}

/// Replaces each point with its multiple by the scalar, a big-endian number.
///
/// # Errors
///
/// The position of the first point whose coordinates are not canonical or that is not on the curve. The points must not
/// be used in that case.
///
/// # Panics
///
/// If the scalar is invalid ([`is_scalar`]).
pub fn multiply(scalar: &[u8; 32], points: &mut [Point]) -> Result<(), usize> {
    assert!(is_scalar(scalar), "multiply: a scalar between 1 and the order");
    let mut scalar = aws_lc::Scalar::new(scalar);
    match points.iter_mut().position(|point| !scalar.multiply(point)) {
        None => Ok(()),
        Some(position) => Err(position),
    }
}
