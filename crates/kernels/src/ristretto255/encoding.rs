//! Encoding, decoding and the map of RFC 9496, and the inverse of the map, generic over the field. Names follow the
//! RFC.
//!
//! # The inverse of the map
//!
//! Let q = SQRT_AD_MINUS_ONE, so q^2 = -1 - d, and r = i t^2. With T = N / v, the map gives the point
//!
//! * x = 2 s / (q T), y = (1 - s^2) / (1 + s^2), where T^2 = s^4 + 2 (1 - d) / (1 + d) s^2 + 1.
//!
//! So (s, T) is a point of a Jacobi quartic, called a pair here. Four points of the curve represent an element: (x, y),
//! (-x, -y), (i y, i x) and (-i y, -i x). Two pairs map to each of them: (s, T) and its twin (-s, -T). So an element
//! has eight pairs. Unless it is the identity, no x, y or s of these is 0.
//!
//! *From an element to its pairs.* s^2 = (1 - y) / (1 + y) and T = 2 s / (q x). For the four points in turn, with Z,
//!
//! * s = (Z - Y) / a, (Z + Y) / a, (Z - i X) / b, (Z + i X) / b, where a^2 = Z^2 - Y^2 and b^2 = Z^2 + X^2.
//!
//! By the equation of the curve, (a b)^2 = (q X Y)^2. So one inverse square root suffices, of (a X Y^2)^2. Its sign
//! does not matter, because -s occurs with -T.
//!
//! *From a pair to t.* If u / v is a square, then s^2 = u / v, T + 1 = (1 - r) (d - 1)^2 / v, and s is not negative.
//! Otherwise s^2 = r u / v, T + 1 = r (r - 1) (d - 1)^2 / v, and s is negative or 0. Let c = 1 + d, S = (1 - d) s^2 and
//! K = -c T. The quotients of s^2 and T + 1 are
//!
//! * S (r - 1) = (K - c) (r + 1) if s is not negative, and S (1 - r) = (K - c) (r + 1) otherwise.
//!
//! They determine r, and t^2 = -i r. For (s, T) with s not negative, and for its twin, this gives
//!
//! * t^2 = i (c - K - S) / (c - K + S), and t^2 = i (c + K + S) / (c + K - S).
//!
//! i is not a square, so t exists if and only if the fraction is not a square. It maps to the pair: given r, a quotient
//! is a line in S and T through (0, -1), which meets the quartic in one other point. A numerator or denominator of 0
//! would mean that r = 0 or that r does not exist, and then s is 0.

use super::edwards::{D, Extended, negated};
use crate::field::pair::Pair;
use crate::field::portable::mask;
use crate::field::{Fe, Field, MAX_LANES, pow_p58, product, squared};

/// The even square root of -1.
pub(super) const SQRT_M1: Fe =
    Fe([1718705420411056, 234908883556509, 2233514472574048, 2117202627021982, 765476049583133]);
/// The RFC's square root of -d - 1.
pub(super) const SQRT_AD_MINUS_ONE: Fe =
    Fe([2241493124984347, 425987919032274, 2207028919301688, 1220490630685848, 974799131293748]);
/// A square root of 1 / (-1 - d).
pub(super) const INVSQRT_A_MINUS_D: Fe =
    Fe([278908739862762, 821645201101625, 8113234426968, 1777959178193151, 2118520810568447]);
/// 1 - d^2.
pub(super) const ONE_MINUS_D_SQ: Fe =
    Fe([1136626929484150, 1998550399581263, 496427632559748, 118527312129759, 45110755273534]);
/// (d - 1)^2.
pub(super) const D_MINUS_ONE_SQ: Fe =
    Fe([1507062230895904, 1572317787530805, 683053064812840, 317374165784489, 1572899562415810]);

/// A word per lane, all ones or all zeros.
pub(super) type Words = [u64; MAX_LANES];

#[inline(always)]
fn both(a: &Words, b: &Words, f: impl Fn(u64, u64) -> u64) -> Words {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

/// Returns ones where an element is 0.
#[inline(always)]
pub(super) fn zeros<F: Field>(a: F) -> Words {
    let mut elements = [Fe::ONE; MAX_LANES];
    a.store(&mut elements);
    elements.map(Fe::zero_mask)
}

/// IS_NEGATIVE: returns ones where an element is negative, that is, odd.
#[inline(always)]
pub(super) fn negatives<F: Field>(a: F) -> Words {
    let mut elements = [Fe::ZERO; MAX_LANES];
    a.store(&mut elements);
    elements.map(|a| mask(u64::from(a.to_bytes()[0] & 1)))
}

/// CT_ABS: returns the absolute value.
#[inline(always)]
fn absolute<F: Field>(a: F) -> F {
    a.select(negated(a), F::mask(&negatives(a)))
}

#[inline(always)]
fn sum<F: Field>(a: F, b: F) -> F {
    F::carry(F::add(a.widen(), b.widen()))
}

#[inline(always)]
fn difference<F: Field>(a: F, b: F) -> F {
    F::carry(F::sub(a.widen(), b.widen()))
}

/// SQRT_RATIO_M1 (section 4.2): returns whether u / v is a square, and the root of it or of SQRT_M1 times it.
#[inline(always)]
fn sqrt_ratio_m1<F: Field>(u: F, v: F) -> (Words, F) {
    let i = F::splat(&SQRT_M1);
    let v3 = product(squared(v), v);
    let v7 = product(squared(v3), v);
    let r = product(product(u, v3), pow_p58(product(u, v7)));
    let check = product(v, squared(r));
    let correct = zeros(difference(check, u));
    let flipped = zeros(sum(check, u));
    let flipped_i = zeros(sum(check, product(u, i)));
    let turn = both(&flipped, &flipped_i, |a, b| a | b);
    let r = r.select(product(r, i), F::mask(&turn));
    (both(&correct, &flipped, |a, b| a | b), absolute(r))
}

/// Decodes (section 4.3.1) encodings that are canonical and not negative; also returns which ones encode a point.
#[inline(always)]
pub(super) fn decode<F: Field>(s: F) -> (Words, Extended<F>) {
    let one = F::splat(&Fe::ONE);
    let ss = s.square();
    let u1 = F::carry(F::sub(one.widen(), ss));
    let u2 = F::carry(F::add(one.widen(), ss));
    let u2_sqr = u2.square();
    // v = -(D * u1^2) - u2_sqr.
    let du1 = squared(u1).mul(F::splat(&D));
    let v = F::carry(F::sub(F::splat(&Fe::ZERO).widen(), F::add(du1, u2_sqr)));
    let (was_square, invsqrt) = sqrt_ratio_m1(one, product(v, F::carry(u2_sqr)));
    let den_x = product(invsqrt, u2);
    let den_y = product(product(invsqrt, den_x), v);
    let sx = s.mul(den_x);
    let x = absolute(F::carry(F::add(sx, sx)));
    let y = product(u1, den_y);
    let t = product(x, y);
    let wrong = both(&negatives(t), &zeros(y), |a, b| a | b);
    let valid = both(&was_square, &wrong, |square, wrong| square & !wrong);
    (valid, Extended { x, y, z: one, t })
}

/// Encodes a point (section 4.3.2).
#[inline(always)]
pub(super) fn encode<F: Field>(p: Extended<F>) -> F {
    let Extended { x: x0, y: y0, z: z0, t: t0 } = p;
    let (one, i) = (F::splat(&Fe::ONE), F::splat(&SQRT_M1));
    let u1 = product(sum(z0, y0), difference(z0, y0));
    let u2 = product(x0, y0);
    // The flag is not needed: the argument is a square, or 0.
    let (_, invsqrt) = sqrt_ratio_m1(one, product(u1, squared(u2)));
    let den1 = product(invsqrt, u1);
    let den2 = product(invsqrt, u2);
    let z_inv = product(product(den1, den2), t0);
    let enchanted_denominator = product(den1, F::splat(&INVSQRT_A_MINUS_D));
    let rotate = F::mask(&negatives(product(t0, z_inv)));
    let x = x0.select(product(y0, i), rotate);
    let y = y0.select(product(x0, i), rotate);
    let den_inv = den2.select(enchanted_denominator, rotate);
    let y = y.select(negated(y), F::mask(&negatives(product(x, z_inv))));
    absolute(product(den_inv, difference(z0, y)))
}

/// MAP (section 4.3.4): maps a number to a point.
#[inline(always)]
pub(super) fn map<F: Field>(t: F) -> Extended<F> {
    let (one, d) = (F::splat(&Fe::ONE), F::splat(&D));
    let minus_one = negated(one);
    let r = product(F::splat(&SQRT_M1), squared(t));
    let u = product(sum(r, one), F::splat(&ONE_MINUS_D_SQ));
    let v = product(F::carry(F::sub(minus_one.widen(), r.mul(d))), sum(r, d));
    let (was_square, s) = sqrt_ratio_m1(u, v);
    let was_square = F::mask(&was_square);
    let s_prime = negated(absolute(product(s, t)));
    let s = s_prime.select(s, was_square);
    let c = r.select(minus_one, was_square);
    let n = product(c, difference(r, one)).mul(F::splat(&D_MINUS_ONE_SQ));
    let n = F::carry(F::sub(n, v.widen()));
    let sv = s.mul(v);
    let w0 = F::carry(F::add(sv, sv));
    let w1 = product(n, F::splat(&SQRT_AD_MINUS_ONE));
    let ss = s.square();
    let w2 = F::carry(F::sub(one.widen(), ss));
    let w3 = F::carry(F::add(one.widen(), ss));
    Extended { x: product(w0, w3), y: product(w2, w1), z: product(w1, w3), t: product(w0, w2) }
}

/// Returns S and K of a pair for each of the four points that represent an element, using the twin whose s is not
/// negative. For the identity all are 0.
#[inline(always)]
pub(super) fn pairs<F: Field>(p: Extended<F>) -> [[F; 2]; 4] {
    let Extended { x, y, z, .. } = p;
    let (one, i, q) = (F::splat(&Fe::ONE), F::splat(&SQRT_M1), F::splat(&SQRT_AD_MINUS_ONE));
    let one_minus_d = difference(one, F::splat(&D));
    let ix = product(x, i);
    let numerators = [difference(z, y), sum(z, y), difference(z, ix), sum(z, ix)];
    let aa = product(numerators[0], numerators[1]);
    let yy = squared(y);
    // 1 / (a X Y^2), and 0 for the identity.
    let (_, root) = sqrt_ratio_m1(one, product(aa, squared(product(x, yy))));
    // 1 / (a X), and 1 / (b Y), for b = q X Y / a.
    let by_a = product(root, yy);
    let by_b = product(product(root, aa), F::splat(&INVSQRT_A_MINUS_D));
    // K = q^2 T = 2 q s / x; the x of the third point is i Y / Z.
    let factor = product(sum(q, q), z);
    let (for_a, for_b) = (product(factor, by_a), negated(product(product(factor, i), by_b)));
    let (x_by_a, y_by_b) = (product(x, by_a), product(y, by_b));
    let parts = [(x_by_a, for_a), (x_by_a, negated(for_a)), (y_by_b, for_b), (y_by_b, negated(for_b))];
    let mut pairs = [[one; 2]; 4];
    for ((pair, numerator), (for_s, for_k)) in pairs.iter_mut().zip(&numerators).zip(&parts) {
        let (s, k) = (product(*numerator, *for_s), product(*numerator, *for_k));
        let k = k.select(negated(k), F::mask(&negatives(s)));
        *pair = [product(squared(s), one_minus_d), k];
    }
    pairs
}

/// Returns the t of a pair and of its twin, computed from their S and K, and which of them exist.
#[inline(always)]
pub(super) fn preimages<F: Field>([s, k]: [F; 2]) -> (Words, Pair<F>) {
    let c = sum(F::splat(&D), F::splat(&Fe::ONE)).widen();
    let (s, k) = (s.widen(), k.widen());
    let c_minus_k_minus_s = F::carry(F::sub(c, F::add(k, s)));
    let c_minus_k_plus_s = F::carry(F::sub(F::add(c, s), k));
    let c_plus_k_plus_s = F::carry(F::add(F::add(c, k), s));
    let c_plus_k_minus_s = F::carry(F::sub(F::add(c, k), s));
    let u = Pair::of(c_minus_k_minus_s, c_plus_k_plus_s);
    let v = Pair::of(c_minus_k_plus_s, c_plus_k_minus_s);
    // For a non-square this is the root of i times it.
    let (was_square, t) = sqrt_ratio_m1(u, v);
    (was_square.map(|was_square| !was_square), t)
}
