//! The map and the ladder, generic over the field.

use zeroize::Zeroize;

use super::clamp;
use crate::field::portable::mask;
use crate::field::{Fe, Field, MAX_LANES, VECTORS, character, invert_all, product, squared};

/// The A of the curve v^2 = u^3 + A u^2 + u.
const A: u32 = 486_662;

#[inline(always)]
pub(super) fn elligator2<F: Field>(r: &[[u8; 32]], out: &mut [[u8; 32]]) {
    let one = F::splat(&Fe::ONE);
    for (r, out) in r.chunks(VECTORS * F::LANES).zip(out.chunks_mut(VECTORS * F::LANES)) {
        let mut d = [one; VECTORS];
        let d = &mut d[..r.len().div_ceil(F::LANES)];
        for (d, r) in d.iter_mut().zip(r.chunks(F::LANES)) {
            // 1 + 2 r^2 is never 0: -1 is a square modulo p (p = 1 mod 4) and 2 is not (p = 5 mod 8), so -1/2 is not a
            // square.
            let square = decode::<F>(r).square();
            *d = F::carry(F::add(F::add(square, square), one.widen()));
        }
        invert_all(d);
        for (d, out) in d.iter().zip(out.chunks_mut(F::LANES)) {
            encode(from_inverse(*d), out);
        }
    }
}

/// The abscissa for 1 / (1 + 2 r^2).
#[inline(always)]
fn from_inverse<F: Field>(d: F) -> F {
    // 1. u = -A / (1 + 2 r^2).
    let (zero, one) = (F::splat(&Fe::ZERO).widen(), F::splat(&Fe::ONE).widen());
    let a = F::splat(&Fe([u64::from(A), 0, 0, 0, 0])).widen();
    let au = d.mul_small(A);
    let u = F::carry(F::sub(zero, au));
    // 2. g = u^3 + A u^2 + u = u (u (u + A) + 1).
    let g = product(F::carry(F::add(u.mul(F::carry(F::sub(a, au))), one)), u);
    // 3. If g is not a square, u = -u - A. g is not 0: u is not 0, and u^2 + A u + 1 has no root because A^2 - 4 is not
    //    a square. So the character is 1 or p - 1, of which only the first is odd.
    let mut characters = [Fe::ZERO; MAX_LANES];
    character(g).store(&mut characters);
    let even = characters.map(|c| mask(u64::from(c.to_bytes()[0] & 1) ^ 1));
    u.select(F::carry(F::sub(au, a)), F::mask(&even))
}

#[inline(always)]
pub(super) fn ladder<F: Field>(scalar: &[u8; 32], points: &mut [[u8; 32]]) {
    let mut k = clamp(*scalar);
    let (zero, one) = (F::splat(&Fe::ZERO), F::splat(&Fe::ONE));
    for points in points.chunks_mut(VECTORS * F::LANES) {
        let (mut x, mut z) = ([zero; VECTORS], [one; VECTORS]);
        let n = points.len().div_ceil(F::LANES);
        let (x, z) = (&mut x[..n], &mut z[..n]);
        for ((points, x), z) in points.chunks(F::LANES).zip(x.iter_mut()).zip(z.iter_mut()) {
            let (px, pz) = multiply(&k, decode::<F>(points));
            // A multiple at infinity has z = 0, which would spoil the inverses of its whole lane. It becomes 0 / 1.
            let mut elements = [Fe::ONE; MAX_LANES];
            pz.store(&mut elements);
            let infinity = F::mask(&elements.map(Fe::zero_mask));
            *x = px.select(zero, infinity);
            *z = pz.select(one, infinity);
        }
        invert_all(z);
        for ((points, x), z) in points.chunks_mut(F::LANES).zip(x).zip(z) {
            encode(product(*x, *z), points);
        }
    }
    k.zeroize();
}

/// The abscissae of k times the points with abscissae `u`, as x / z (RFC 7748, section 5).
///
/// The loop keeps x2 + z2, x2 - z2, x3 + z3 and x3 - z3, with which a step begins, as sums of raw products.
#[inline(always)]
fn multiply<F: Field>(k: &[u8; 32], u: F) -> (F, F) {
    let one = F::splat(&Fe::ONE);
    // (1 : 0) and (u : 1).
    let (mut a, mut b) = (one, one);
    let mut c = F::carry(F::add(u.widen(), one.widen()));
    let mut d = F::carry(F::sub(u.widen(), one.widen()));
    let mut swapped = 0;
    for t in (0..255).rev() {
        let bit = u64::from(k[t / 8] >> (t % 8) & 1);
        let swap = F::mask_all(mask(swapped ^ bit));
        swapped = bit;

        // (x2 : z2) doubled, (x3 : z3) replaced by the sum, whose difference from (x2 : z2) is always u. The sum does
        // not depend on the order of the two: swapping exchanges D A and C B, so their sum is the same and their
        // difference, which is squared, changes its sign. So only the doubling selects.
        let (a2, b2) = (a.select(c, swap), b.select(d, swap));
        let (da, cb) = (d.mul(a), c.mul(b));
        let (aa, bb) = (a2.square(), b2.square());
        let x3 = F::carry(F::add(da, cb)).square();
        let z3 = u.mul(squared(F::carry(F::sub(da, cb))));
        let e = F::carry(F::sub(aa, bb));
        let f = F::carry(F::add(aa, e.mul_small((A - 2) / 4)));
        let x2 = F::carry(aa).mul(F::carry(bb));
        let z2 = e.mul(f);
        (a, b) = (F::carry(F::add(x2, z2)), F::carry(F::sub(x2, z2)));
        (c, d) = (F::carry(F::add(x3, z3)), F::carry(F::sub(x3, z3)));
    }
    let swap = F::mask_all(mask(swapped));
    swapped.zeroize();
    // x2 + z2 and x2 - z2, or x3 + z3 and x3 - z3; then twice x and twice z.
    let (a, b) = (a.select(c, swap).widen(), b.select(d, swap).widen());
    (F::carry(F::add(a, b)), F::carry(F::sub(a, b)))
}

/// Decodes elements from all 256 bits of their encodings.
#[inline(always)]
fn decode<F: Field>(bytes: &[[u8; 32]]) -> F {
    let mut elements = [Fe::ZERO; MAX_LANES];
    for (element, bytes) in elements.iter_mut().zip(bytes) {
        *element = Fe::from_bytes(bytes);
    }
    F::load(&elements)
}

#[inline(always)]
fn encode<F: Field>(a: F, bytes: &mut [[u8; 32]]) {
    let mut elements = [Fe::ZERO; MAX_LANES];
    a.store(&mut elements);
    for (element, bytes) in elements.iter().zip(bytes) {
        *bytes = element.to_bytes();
    }
}
