//! The simplified SWU map of RFC 9380, section 6.6.2, and square roots.

use super::Point;
use super::modular::{Prime, Residue};

type Fe = Residue<Prime>;

/// Number of elements whose powers are computed together, so that the processor overlaps multiplications which are
/// sequential within each element.
const TOGETHER: usize = 4;
/// Number of points that share an inversion.
const BATCH: usize = 64;

/// The coefficient b of the curve y^2 = x^3 - 3 x + b.
const B: [u64; 4] =
    [0x3bce_3c3e_27d2_604b, 0x651d_06b0_cc53_b0f6, 0xb3eb_bd55_7698_86bc, 0x5ac6_35d8_aa3a_93e7];

/// The constants of the map.
struct Constants {
    /// The coefficients a and b of the curve.
    a: Fe,
    b: Fe,
    /// Z = -10: Z is not a square, and g(b / (Z a)) is.
    z: Fe,
    /// A square root of -Z.
    root: Fe,
}

impl Constants {
    fn new() -> Constants {
        let ten = Fe::constant([10, 0, 0, 0]);
        let [root, ..] = times(powers([ten; TOGETHER]), [ten; TOGETHER]);
        let a = Fe::constant([3, 0, 0, 0]).negative();
        Constants { a, b: Fe::constant(B), z: ten.negative(), root }
    }
}

/// Maps numbers to points; `uniform` and `out` have the same length.
pub(super) fn map(uniform: &[[u8; 48]], out: &mut [Point]) {
    let constants = Constants::new();
    for (uniform, out) in uniform.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        // Numerators and denominators of abscissae, and ordinates.
        let mut mapped = [[Fe::ONE; 3]; BATCH];
        for (uniform, mapped) in uniform.chunks(TOGETHER).zip(mapped.chunks_mut(TOGETHER)) {
            let mut u = [Fe::ONE; TOGETHER];
            u.iter_mut().zip(uniform).for_each(|(u, bytes)| *u = Fe::from_wide(bytes));
            mapped.copy_from_slice(&map_together(&constants, u));
        }
        let inverses = inverses(mapped.map(|[_, denominator, _]| denominator));
        for ((out, [x, _, y]), inverse) in out.iter_mut().zip(mapped).zip(inverses) {
            *out = encoded(x.mul(inverse), y);
        }
    }
}

/// Returns numerator and denominator of the abscissa, and the ordinate, in the steps of RFC 9380, appendix F.2.
#[inline(always)]
fn map_together(constants: &Constants, u: [Fe; TOGETHER]) -> [[Fe; 3]; TOGETHER] {
    let Constants { a, b, z, root } = *constants;
    // x1 = n / d = -b / a (1 + 1 / (Z^2 u^4 + Z u^2)), or b / (Z a) if the division is by 0, and g(x1) = v / w.
    let zu2 = u.map(|u| z.mul(u.square()));
    let [mut n, mut d, mut v, mut w] = [[Fe::ONE; TOGETHER]; 4];
    for i in 0..TOGETHER {
        let t = zu2[i].square().add(zu2[i]);
        n[i] = b.mul(t.add(Fe::ONE));
        d[i] = a.mul(t.negative().or(z, t.equals(Fe::ZERO)));
        let d2 = d[i].square();
        w[i] = d2.mul(d[i]);
        v[i] = n[i].square().add(a.mul(d2)).mul(n[i]).add(b.mul(w[i]));
    }
    // sqrt_ratio of appendix F.2.1.2: y1 = v w (v w^3)^((p-3)/4) is a root of v / w, or y1 sqrt(-Z) is one of
    // Z v / w.
    let vw = times(v, w);
    let vw3 = times(vw, w.map(Fe::square));
    let y1 = times(vw, powers(vw3));
    std::array::from_fn(|i| {
        let is_square = y1[i].square().mul(w[i]).equals(v[i]);
        // x2 = Z u^2 x1 has the ordinate Z u^3 sqrt(Z v / w).
        let x = zu2[i].mul(n[i]).or(n[i], is_square);
        let y = zu2[i].mul(u[i]).mul(y1[i].mul(root)).or(y1[i], is_square);
        [x, d[i], y.or(y.negative(), u[i].sign() ^ y.sign())]
    })
}

/// Finds the points of abscissae, with even ordinates. The error is the position of the first number that is not below
/// p, or not the abscissa of a point.
pub(super) fn lift(x: &[[u8; 32]], out: &mut [Point]) -> Result<(), usize> {
    let Constants { a, b, .. } = Constants::new();
    let mut first = Ok(());
    let chunks = x.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER)).enumerate();
    for (chunk, (bytes, out)) in chunks {
        let mut x = [Fe::ONE; TOGETHER];
        x.iter_mut().zip(bytes).for_each(|(x, bytes)| *x = Fe::from_bytes(bytes));
        let g = x.map(|x| x.square().add(a).mul(x).add(b));
        let roots = times(powers(g), g);
        for (i, (out, bytes)) in out.iter_mut().zip(bytes).enumerate() {
            let valid = super::is_canonical(bytes) & (roots[i].square().equals(g[i]) == 1);
            // The validity of each number is public.
            if !valid && first.is_ok() {
                first = Err(chunk * TOGETHER + i);
            }
            *out = encoded(x[i], roots[i].or(roots[i].negative(), roots[i].sign()));
        }
    }
    first
}

fn encoded(x: Fe, y: Fe) -> Point {
    let mut point = [0; 64];
    point[..32].copy_from_slice(&x.to_bytes());
    point[32..].copy_from_slice(&y.to_bytes());
    point
}

#[inline(always)]
fn times(a: [Fe; TOGETHER], b: [Fe; TOGETHER]) -> [Fe; TOGETHER] {
    std::array::from_fn(|i| a[i].mul(b[i]))
}

#[inline(always)]
fn squares(a: [Fe; TOGETHER], n: usize) -> [Fe; TOGETHER] {
    (0..n).fold(a, |a, _| a.map(Fe::square))
}

/// Returns a^((p-3)/4) for each. Since p = 3 modulo 4, a times this power is a square root of a, if a is a square.
fn powers(a: [Fe; TOGETHER]) -> [Fe; TOGETHER] {
    // (p - 3) / 4 = 2^254 - 2^222 + 2^190 + 2^94 - 1: 32 ones, 31 zeros, a one, 96 zeros and 94 ones.
    // e(n) = a^(2^n - 1), and e(m + n) = e(m)^(2^n) e(n).
    let e2 = times(squares(a, 1), a);
    let e3 = times(squares(e2, 1), a);
    let e6 = times(squares(e3, 3), e3);
    let e12 = times(squares(e6, 6), e6);
    let e15 = times(squares(e12, 3), e3);
    let e30 = times(squares(e15, 15), e15);
    let e32 = times(squares(e30, 2), e2);
    let power = times(squares(e32, 32), a);
    let power = times(squares(power, 96 + 32), e32);
    let power = times(squares(power, 32), e32);
    times(squares(power, 30), e30)
}

/// Computes inverses with a single inversion (Montgomery's trick). None may be 0.
fn inverses(elements: [Fe; BATCH]) -> [Fe; BATCH] {
    let (mut before, mut all) = ([Fe::ONE; BATCH], Fe::ONE);
    for (before, e) in before.iter_mut().zip(elements) {
        *before = all;
        all = all.mul(e);
    }
    // p - 2 = 4 (p - 3) / 4 + 1.
    let [power, ..] = powers([all; TOGETHER]);
    let mut rest = power.square().square().mul(all);
    let mut inverses = elements;
    for (inverse, before) in inverses.iter_mut().zip(before).rev() {
        let this = rest.mul(before);
        rest = rest.mul(*inverse);
        *inverse = this;
    }
    inverses
}
