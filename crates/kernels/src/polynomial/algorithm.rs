//! Interpolation and evaluation, generic over vectors of elements.
//!
//! In the notation of [`super::interpolate`], I is computed without polynomial division. With weights w_i = V'(q_i) and
//! c_i = v_i / w_i, it is the sum of c_i V / (x - q_i). Let n_l be the coefficients of V and S_r the sum of c_i q_i^r.
//! Then coefficient j of I is the sum over l > j of n_l S_(l-j-1). Each such sum of products is reduced once.

use super::{Repeated, Shape};
use std::ops::{Deref, DerefMut};
use zeroize::optimization_barrier;

/// Maximum number of lanes of any vector.
const MAX_LANES: usize = 4;

/// One element per lane. Operations apply to all lanes.
pub(super) trait Lanes: Copy {
    /// Number of elements in a value of this type.
    const LANES: usize;
    /// An unreduced sum of products.
    type Wide: Copy;

    /// Returns the element with these bits in all lanes.
    fn splat(bits: u128) -> Self;
    /// Loads one element per lane, from the low `BITS` bits of each number.
    fn load<const BITS: u32>(from: &[u128]) -> Self;
    /// Stores the element of each lane.
    fn store(self, to: &mut [u128]);
    /// Returns the sum.
    fn add(self, b: Self) -> Self;
    /// Returns the element as an unreduced sum.
    fn widen(self) -> Self::Wide;
    /// Returns sum + a b.
    fn multiply_add<const BITS: u32>(sum: Self::Wide, a: Self, b: Self) -> Self::Wide;
    /// Returns the element that a sum represents.
    fn reduce<const BITS: u32>(sum: Self::Wide) -> Self;
}

/// A list of secrets that is wiped on drop at the speed of `fill`; `zeroize` writes element by element.
struct Wiped<T: Copy> {
    list: Vec<T>,
    zero: T,
}

impl<T: Copy> Wiped<T> {
    /// Returns a list of `n` zeros.
    #[inline(always)]
    fn new(zero: T, n: usize) -> Self {
        Wiped { list: vec![zero; n], zero }
    }
}

impl<T: Copy> Deref for Wiped<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.list
    }
}

impl<T: Copy> DerefMut for Wiped<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.list
    }
}

impl<T: Copy> Drop for Wiped<T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.list.fill(self.zero);
        optimization_barrier(self.list.as_slice());
    }
}

/// Returns the product.
#[inline(always)]
fn product<V: Lanes, const BITS: u32>(a: V, b: V) -> V {
    V::reduce::<BITS>(V::multiply_add::<BITS>(V::splat(0).widen(), a, b))
}

/// Loads `V::LANES` elements of a row, from instance `first` on. Lanes beyond the end repeat the last instance, so that
/// they are valid too.
#[inline(always)]
fn load<V: Lanes, const BITS: u32>(row: &[u128], first: usize) -> V {
    match row.get(first..first + V::LANES) {
        Some(lanes) => V::load::<BITS>(lanes),
        None => {
            let mut lanes = [row[row.len() - 1]; MAX_LANES];
            lanes[..row.len() - first].copy_from_slice(&row[first..]);
            V::load::<BITS>(&lanes[..V::LANES])
        }
    }
}

#[inline(always)]
pub(super) fn interpolate<V: Lanes, const BITS: u32>(
    &Shape { instances, points: k, free }: &Shape,
    points: &[u128],
    values: &[u128],
    random: &[u128],
    out: &mut [u8],
) -> Result<(), Repeated> {
    if instances == 0 {
        return Ok(());
    }
    let zero = V::splat(0);
    // Range of element i of all instances in a list.
    let row = |i: usize| i * instances..(i + 1) * instances;
    let firsts = (0..instances).step_by(V::LANES);
    // For each vector of instances: k points, the coefficients of V except the leading 1, and k weights.
    let all = k * firsts.len();
    let (mut q, mut n, mut weights) = (Wiped::new(zero, all), Wiped::new(zero, all), Wiped::new(zero, all));
    for (v, first) in firsts.clone().enumerate() {
        let of = v * k..(v + 1) * k;
        let (q, n, weights) = (&mut q[of.clone()], &mut n[of.clone()], &mut weights[of]);
        for (i, q) in q.iter_mut().enumerate() {
            *q = load::<V, BITS>(&points[row(i)], first);
        }
        vanishing::<V, BITS>(q, n);
        derivatives::<V, BITS>(q, n, weights);
    }
    let repeated = invert_all::<V, BITS>(&mut weights);

    let (mut c, mut sums, mut r) = (Wiped::new(zero, k), Wiped::new(zero, k), Wiped::new(zero, free));
    for (v, first) in firsts.enumerate() {
        let of = v * k..(v + 1) * k;
        let (q, n, weights) = (&q[of.clone()], &n[of.clone()], &weights[of]);
        for (i, (c, w)) in c.iter_mut().zip(weights).enumerate() {
            *c = product::<V, BITS>(load::<V, BITS>(&values[row(i)], first), *w);
        }
        for sum in sums.iter_mut() {
            *sum = c.iter().fold(zero, |sum, c| sum.add(*c));
            c.iter_mut().zip(q).for_each(|(c, q)| *c = product::<V, BITS>(*c, *q));
        }
        for (i, r) in r.iter_mut().enumerate() {
            *r = load::<V, BITS>(&random[row(i)], first);
        }
        let mut lanes = [0; MAX_LANES];
        for j in 0..k + free {
            // The coefficient of x^j in I + V R. The leading 1 of V has a product in one of the two, which comes first.
            let mut sum = if j < k { sums[k - 1 - j].widen() } else { r[j - k].widen() };
            for (n, s) in n.iter().skip(j + 1).zip(sums.iter()) {
                sum = V::multiply_add::<BITS>(sum, *n, *s);
            }
            let lowest = (j + 1).saturating_sub(free);
            for (n, r) in n[lowest..k.min(j + 1)].iter().zip(r[..j + 1 - lowest].iter().rev()) {
                sum = V::multiply_add::<BITS>(sum, *n, *r);
            }
            V::reduce::<BITS>(sum).store(&mut lanes);
            let bytes = BITS as usize / 8;
            for (lane, instance) in lanes[..V::LANES].iter().zip(first..instances) {
                out[(instance * (k + free) + j) * bytes..][..bytes]
                    .copy_from_slice(&lane.to_le_bytes()[..bytes]);
            }
        }
    }
    if repeated { Err(Repeated) } else { Ok(()) }
}

/// Computes the coefficients of V, the product of all x - q_i, except the leading 1.
#[inline(always)]
fn vanishing<V: Lanes, const BITS: u32>(q: &[V], n: &mut [V]) {
    for (i, root) in q.iter().enumerate() {
        // Multiplies by x - q_i: n_j becomes n_(j-1) + q_i n_j.
        let mut below = V::splat(0);
        for n in &mut n[..i] {
            let new = V::reduce::<BITS>(V::multiply_add::<BITS>(below.widen(), *root, *n));
            below = *n;
            *n = new;
        }
        n[i] = below.add(*root);
    }
}

/// w_i = V'(q_i). The derivative has the odd coefficients of V, as a polynomial in x^2.
#[inline(always)]
fn derivatives<V: Lanes, const BITS: u32>(q: &[V], n: &[V], weights: &mut [V]) {
    for (q, w) in q.iter().zip(weights) {
        let square = product::<V, BITS>(*q, *q);
        *w = V::splat((n.len() % 2) as u128);
        for n in n.iter().skip(1).step_by(2).rev() {
            *w = V::reduce::<BITS>(V::multiply_add::<BITS>(n.widen(), *w, square));
        }
    }
}

/// Replaces all elements by their inverses, with one inversion (Montgomery's trick). Returns whether one of them is
/// zero. If so, its whole lane becomes zero; the time does not reveal it.
#[inline(always)]
fn invert_all<V: Lanes, const BITS: u32>(all: &mut [V]) -> bool {
    let mut before = Wiped::new(V::splat(0), all.len());
    let mut last = V::splat(1);
    for (a, before) in all.iter().zip(before.iter_mut()) {
        *before = last;
        last = product::<V, BITS>(last, *a);
    }
    let mut lanes = [1; MAX_LANES];
    last.store(&mut lanes);
    // The highest bit of a | -a is set if and only if a is not 0.
    let zero = lanes.iter().fold(0, |any, lane| any | (lane | lane.wrapping_neg()) >> 127 ^ 1);
    // a^(2^BITS - 2), the product of all a^(2^i) except the first.
    let (mut square, mut inverse) = (last, V::splat(1));
    for _ in 1..BITS {
        square = product::<V, BITS>(square, square);
        inverse = product::<V, BITS>(inverse, square);
    }
    for (a, before) in all.iter_mut().zip(before.iter()).rev() {
        let next = product::<V, BITS>(inverse, *a);
        *a = product::<V, BITS>(inverse, *before);
        inverse = next;
    }
    zero == 1
}

/// Number of powers of the point, from x^0 on, and of coefficients multiplied at a time.
const STEP: usize = 8;

#[inline(always)]
pub(super) fn evaluate<V: Lanes, const BITS: u32>(
    length: usize,
    coefficients: &[u8],
    points: &[u128],
    out: &mut [u128],
) {
    let bytes = BITS as usize / 8;
    // One lane per instance for each coefficient; lanes beyond the end hold zeros or the previous vector's
    // coefficients, and their results are dropped.
    let mut spread = Wiped::new([0; MAX_LANES], length);
    for first in (0..points.len()).step_by(V::LANES) {
        for (lane, instance) in (first..points.len()).take(V::LANES).enumerate() {
            let polynomial = &coefficients[instance * length * bytes..][..length * bytes];
            for (spread, coefficient) in spread.iter_mut().zip(polynomial.chunks_exact(bytes)) {
                let mut number = [0; 16];
                number[..bytes].copy_from_slice(&coefficient[..bytes]);
                spread[lane] = u128::from_le_bytes(number);
            }
        }
        let x = load::<V, BITS>(points, first);
        let mut powers = [V::splat(1); STEP];
        for i in 1..STEP {
            powers[i] = product::<V, BITS>(powers[i - 1], x);
        }
        let giant = product::<V, BITS>(powers[STEP - 1], x);
        let value = spread.chunks(STEP).rev().fold(V::splat(0), |value, part| {
            let mut sum = V::load::<BITS>(&part[0][..V::LANES]).widen();
            for (p, power) in part.iter().zip(&powers).skip(1) {
                sum = V::multiply_add::<BITS>(sum, V::load::<BITS>(&p[..V::LANES]), *power);
            }
            V::reduce::<BITS>(V::multiply_add::<BITS>(sum, value, giant))
        });
        let mut lanes = [0; MAX_LANES];
        value.store(&mut lanes);
        out[first..].iter_mut().zip(&lanes[..V::LANES]).for_each(|(out, lane)| *out = *lane);
    }
}
