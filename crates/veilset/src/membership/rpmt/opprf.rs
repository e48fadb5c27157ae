//! The OPPRF: random polynomials with P(q_i) = s + t_i at the items of a bin (KRTW19, Figure 6, steps 2 to 4), and why
//! they are corrected.
//!
//! For each slot R picks s, S has the input x*, and every output of the OPRF is cut into a pair (q, t). R sends a
//! polynomial P of n = m_r + 1 coefficients with P(q_i) = s + t_i for the k items of its bin, the bottom item among
//! them. S computes s* = P(q*) - t*, which is s if x* is one of these items and random otherwise.
//!
//! P says nothing to S. P is I + V R, where I interpolates the values v_i = s + t_i at the q_i, V vanishes at the q_i,
//! and R has n - k uniform coefficients. For any distinct q_i, the map from (v_1, ..., v_k, R) to P is a bijection onto
//! the polynomials of length n. So P is uniform among them whenever the v_i are uniform and independent of what S has.
//! S has the pair (q*, t*) and nothing else of the outputs:
//! - x* is not in the bin. All t_i are random to S, and with them the v_i.
//! - x* is item j. The other t_i are random to S; v_j = s + t* is, because s is, which no other slot has.
//!
//! Both times P is uniform given (q*, t*), and s* follows from P and that pair. This takes independent halves of each
//! output, a fresh s in each slot, and random values at the random points that fill a bin up. Otherwise P, P - s or
//! P - P(q*) would have more roots than a random polynomial.
//!
//! Printed is P = s + the product of all x - q_i, that is t = 0 and R = 1. S knows q*, and P - P(q*) splits into linear
//! factors exactly if x* is in the bin; otherwise it has about two roots. With the random factor of 5.3 it has the roots
//! of the real items. A test breaks both (docs/corrections.md).

use super::{BATCH, Binning};
use crate::hashing::Table;
use crate::oprf::Output;
use crate::oprf::kkrt::{Code, Keys};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use rayon::prelude::*;
use veilset_kernels::aes::Aes128;
use veilset_kernels::polynomial::{self, Field, Shape};

/// R: its items in bins, and what it takes to make polynomials of them.
pub(super) struct Programmer<'a> {
    pub(super) plan: &'a Binning,
    pub(super) table: Table,
    pub(super) codes: Secrets<Code>,
    pub(super) bottom: Secrets<Code>,
    pub(super) rng: Prng,
}

impl Programmer<'_> {
    /// The polynomials of all slots of `n_bins` bins from `first` on, and s of each slot.
    pub(super) fn polynomials(&self, keys: &Keys, first: usize, n_bins: usize) -> (Vec<u8>, Secrets<u128>) {
        let (plan, of_bin) = (self.plan, self.plan.slots_of_bin());
        let mut polynomials = vec![0; n_bins * of_bin * plan.polynomial_bytes()];
        let mut s = Secrets::zeros(n_bins * of_bin);
        let out = polynomials.par_chunks_mut(of_bin * plan.polynomial_bytes()).zip(s.par_chunks_mut(of_bin));
        let points = self.points(first, n_bins);
        out.zip(&*points).enumerate().for_each(|(b, ((out, s), points))| {
            let items = self.table.bin(first + b);
            // Behind the items stands the bottom item. What random points give is thrown away, but takes as long.
            let code = |i: usize| items.get(i).map_or(&self.bottom[0], |&item| &self.codes[item as usize]);
            let at = (0..points * of_bin).map(|p| (b * of_bin + p % of_bin, code(p / of_bin)));
            let outputs = keys.evaluate_all(at);
            let mut rng = self.rng.fork((first + b) as u64);
            random_polynomials(plan.field, &outputs, items.len() + 1, s, out, &mut rng);
        });
        (polynomials, s)
    }

    /// Of each of these bins the number of points: the items, the bottom item, and random ones, so that the sum follows
    /// from the sizes.
    fn points(&self, first: usize, n_bins: usize) -> Secrets<usize> {
        let plan = self.plan;
        let needed = (first..first + n_bins).map(|bin| self.table.bin(bin).len() + 1).collect::<Vec<_>>();
        filled_up(needed.into(), plan.in_frame.min(n_bins * plan.bins.receiver) + n_bins)
    }
}

/// How many points bins get that need so many: together `most`, those with the fewest filled up first. So the sum of
/// their squares varies least.
fn filled_up(mut points: Secrets<usize>, most: usize) -> Secrets<usize> {
    let mut missing = most.saturating_sub(points.iter().sum());
    while missing > 0 {
        let lowest = points.iter().copied().min().unwrap_or(0);
        for points in points.iter_mut().filter(|points| **points == lowest).take(missing) {
            *points += 1;
            missing -= 1;
        }
    }
    points
}

/// For each of the slots of a bin, as many as there is room in `s`: a uniform s, and the coefficients of a polynomial
/// that is uniform among those with P(q_i) = s + t_i for the first `real` points of the slot. (q_i, t_i) is output i
/// of the slot; those of all slots stand together, and the others count as random.
fn random_polynomials(
    field: Field,
    outputs: &[Output],
    real: usize,
    s: &mut [u128],
    out: &mut [u8],
    rng: &mut Prng,
) {
    let n_slots = s.len();
    let length = out.len() / field.bytes() / n_slots;
    let points = outputs.len() / n_slots;
    let shape = Shape { instances: n_slots, points, free: length - points };
    let stream = Aes128::new(&Secret::new(rng.bytes()));
    // s, points and their values, and the coefficients of R.
    let mut noise = Secrets::<[u8; 16]>::zeros(n_slots * (1 + 2 * points + shape.free));
    stream.ctr(0, noise.as_flattened_mut());
    let mut noise = noise.iter().map(|block| u128::from_le_bytes(*block) & field.mask());
    s.iter_mut().zip(&mut noise).for_each(|(s, noise)| *s = noise);
    let (mut q, mut v) = (Secrets::zeros(outputs.len()), Secrets::zeros(outputs.len()));
    q.iter_mut().zip(&mut noise).for_each(|(q, noise)| *q = noise);
    v.iter_mut().zip(&mut noise).for_each(|(v, noise)| *v = noise);
    // All points are random, then those of the bin's items are theirs.
    for (i, output) in outputs.iter().enumerate().take(n_slots * real) {
        let (first, second) = halves(output);
        (q[i], v[i]) = (first, s[i % n_slots] ^ second);
    }
    let coefficients = Secrets::from(noise.collect::<Vec<_>>());
    // Two outputs of a slot meet in q with a probability that the length of the field allows for: one is lost, and
    // the time shows it.
    while polynomial::interpolate(field, &shape, &q, &v, &coefficients, out).is_err() {
        for slot in 0..n_slots {
            for i in 0..points {
                let at = |i: usize| i * n_slots + slot;
                if (0..i).any(|before| (q[at(before)] ^ q[at(i)]) & field.mask() == 0) {
                    (q[at(i)], v[at(i)]) =
                        (u128::from_le_bytes(rng.bytes()), u128::from_le_bytes(rng.bytes()));
                }
            }
        }
    }
}

/// q and t, with bits above those of an element.
fn halves(output: &Output) -> (u128, u128) {
    let number = u128::from_le_bytes;
    let (mut q, mut t) = ([0; 16], [0; 16]);
    q.copy_from_slice(&output[..16]);
    t.copy_from_slice(&output[16..]);
    (number(q), number(t))
}

/// s* = P(q*) - t* of each slot.
pub(super) fn evaluate(plan: &Binning, polynomials: &[u8], outputs: &[Output]) -> Secrets<u128> {
    let mut s = Secrets::zeros(outputs.len());
    let chunks = s.par_chunks_mut(BATCH).zip(outputs.par_chunks(BATCH));
    chunks.zip(polynomials.par_chunks(BATCH * plan.polynomial_bytes())).for_each(
        |((s, outputs), polynomials)| {
            let q = Secrets::from(outputs.iter().map(|output| halves(output).0).collect::<Vec<_>>());
            polynomial::evaluate(plan.field, plan.coefficients(), polynomials, &q, s);
            s.iter_mut().zip(outputs).for_each(|(s, output)| *s ^= halves(output).1 & plan.field.mask());
        },
    );
    s
}

#[cfg(test)]
#[path = "opprf_tests.rs"]
mod tests;
