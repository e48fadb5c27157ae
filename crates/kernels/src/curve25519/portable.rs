//! The specification of the kernel, and its path on every processor.

use zeroize::Zeroize;

use super::clamp;
use super::field::{Fe, mask};

/// Points that share one inversion: at 128 an inversion costs 2 multiplications a point against 2,800 of
/// the ladder, and the working set (15 KiB) stays in the first-level cache.
pub(super) const CHUNK: usize = 128;

/// The A of the curve v^2 = u^3 + A u^2 + u.
const A: u32 = 486_662;

pub(super) fn elligator2(r: &[[u8; 32]], out: &mut [[u8; 32]]) {
    for (r, out) in r.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
        let mut d = [Fe::ONE; CHUNK];
        let d = &mut d[..r.len()];
        for (d, r) in d.iter_mut().zip(r) {
            // 1 + 2 r^2 is never 0: -1 is a square modulo p (p = 1 mod 4) and 2 is not (p = 5 mod 8),
            // so -1/2 is no square.
            let square = Fe::from_bytes(r).square();
            *d = Fe::ONE.add(square).add(square);
        }
        invert_all(d);
        for (d, out) in d.iter().zip(out) {
            *out = from_inverse(*d).to_bytes();
        }
    }
}

/// The abscissa for 1 / (1 + 2 r^2).
fn from_inverse(d: Fe) -> Fe {
    // 1. u = -A / (1 + 2 r^2).
    let a = Fe([u64::from(A), 0, 0, 0, 0]);
    let au = d.mul_small(A);
    let u = Fe::ZERO.sub(au);
    // 2. g = u^3 + A u^2 + u = u (u (u + A) + 1).
    let g = u.mul(u.add(a)).add(Fe::ONE).mul(u);
    // 3. If g is not a square, u = -u - A. g is not 0: u is not, and u^2 + A u + 1 has no root because
    //    A^2 - 4 is no square. The character is then 1 or p - 1, of which only the first is odd.
    let odd = u64::from(g.character().to_bytes()[0] & 1);
    let other = au.sub(a);
    u.select(other, mask(odd ^ 1))
}

pub(super) fn ladder(scalar: &[u8; 32], points: &mut [[u8; 32]]) {
    let mut k = clamp(*scalar);
    for points in points.chunks_mut(CHUNK) {
        let mut x = [Fe::ZERO; CHUNK];
        let mut z = [Fe::ONE; CHUNK];
        let (x, z) = (&mut x[..points.len()], &mut z[..points.len()]);
        for ((point, x), z) in points.iter().zip(x.iter_mut()).zip(z.iter_mut()) {
            let (px, pz) = multiply(&k, Fe::from_bytes(point));
            // A multiple at infinity has z = 0, and would spoil the inverses of its whole chunk: it
            // becomes 0 / 1.
            let infinity = pz.zero_mask();
            *x = px.select(Fe::ZERO, infinity);
            *z = pz.select(Fe::ONE, infinity);
        }
        invert_all(z);
        for ((point, x), z) in points.iter_mut().zip(x).zip(z) {
            *point = x.mul(*z).to_bytes();
        }
    }
    k.zeroize();
}

/// The abscissa of k times the point with abscissa `u`, as x / z (RFC 7748, section 5).
fn multiply(k: &[u8; 32], u: Fe) -> (Fe, Fe) {
    let (mut x2, mut z2) = (Fe::ONE, Fe::ZERO);
    let (mut x3, mut z3) = (u, Fe::ONE);
    let mut swapped = 0;
    for t in (0..255).rev() {
        let bit = u64::from(k[t / 8] >> (t % 8) & 1);
        let swap = mask(swapped ^ bit);
        swapped = bit;
        x2.swap(&mut x3, swap);
        z2.swap(&mut z3, swap);

        // (x2 : z2) doubled, (x3 : z3) replaced by the sum, whose difference from (x2 : z2) is always u.
        // Neighbouring lines do not depend on one another, so that the processor can overlap them.
        let a = x2.add(z2);
        let b = x2.sub(z2);
        let da = x3.sub(z3).mul(a);
        let cb = x3.add(z3).mul(b);
        let aa = a.square();
        let bb = b.square();
        let e = aa.sub(bb);
        x3 = da.add(cb).square();
        let difference = da.sub(cb).square();
        let f = e.mul_small((A - 2) / 4).add(aa);
        x2 = aa.mul(bb);
        z3 = difference.mul(u);
        z2 = f.mul(e);
    }
    let swap = mask(swapped);
    x2.swap(&mut x3, swap);
    z2.swap(&mut z3, swap);
    swapped.zeroize();
    (x2, z2)
}

/// Replaces every element by its inverse with one inversion (Montgomery's trick). None may be 0; at most
/// [`CHUNK`] of them.
fn invert_all(elements: &mut [Fe]) {
    let mut before = [Fe::ONE; CHUNK];
    let mut product = Fe::ONE;
    for (before, e) in before.iter_mut().zip(elements.iter()) {
        *before = product;
        product = product.mul(*e);
    }
    let mut inverse = product.invert();
    for (before, e) in before.iter().zip(elements.iter_mut()).rev() {
        let this = inverse.mul(*before);
        inverse = inverse.mul(*e);
        *e = this;
    }
}
