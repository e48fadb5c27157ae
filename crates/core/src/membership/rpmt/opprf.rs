//! The OPPRF: random polynomials with P(q_i) = s + t_i at the items of a bin (KRTW19, Figure 6, steps 2 to 4),
//! and why they differ from the paper's.
//!
//! For each slot R picks s, S has the input x*, and every output of the OPRF is split into a pair (q, t). R
//! sends a polynomial P with n = m_r + 1 coefficients such that P(q_i) = s + t_i for the k items of its bin,
//! including the bottom item. S computes s* = P(q*) - t*. It equals s if x* is one of these items, and is random
//! otherwise.
//!
//! **P reveals nothing to S.** P = I + V R, where I interpolates v_i = s + t_i at the q_i, V vanishes at the q_i, and R has n -
//! k uniform coefficients. For any distinct q_i, the map from (v_1, ..., v_k, R) to P is a bijection onto the polynomials of
//! length n. So P is uniform among them whenever the v_i are uniform and independent of S's data. S has only the pair (q*, t*)
//! of the outputs:
//! - If x* is not in the bin, all t_i are random to S, and so are the v_i.
//! - If x* is item j, the other t_i are random to S. v_j = s + t* is random too, because s is, and no other slot
//!   uses this s.
//!
//! In both cases, P is uniform given (q*, t*), and s* follows from P and that pair. This requires independent halves of each
//! output, a fresh s per slot, and random values at the random points that pad a bin. Otherwise P, P - s or P - P(q*) would
//! have more roots than a random polynomial.
//!
//! The paper has P = s + prod(x - q_i), that is t = 0 and R = 1. S knows q*, and P - P(q*) splits into linear factors if and
//! only if x* is in the bin; otherwise it has about two roots. With the random factor of 5.3, it has the roots of the real
//! items. A test breaks both variants (docs/corrections.md).

use super::{BATCH, Binning};
use crate::hashing::SimpleTable;
use crate::oprf::Output;
use crate::oprf::kkrt::{Code, Keys};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use rayon::prelude::*;
use veilset_kernels::aes::Aes128;
use veilset_kernels::polynomial::{self, Field, Shape};

/// R's items in bins, with the data needed to compute their polynomials.
pub(super) struct Programmer<'a> {
    pub(super) plan: &'a Binning,
    pub(super) table: SimpleTable,
    pub(super) codes: Secrets<Code>,
    pub(super) bottom: Secrets<Code>,
    pub(super) rng: Prng,
}

impl Programmer<'_> {
    /// The polynomials of all slots of `n_bins` bins starting at `first`, and s of each slot.
    pub(super) fn polynomials(&self, keys: &Keys, first: usize, n_bins: usize) -> (Vec<u8>, Secrets<u128>) {
        let (plan, of_bin) = (self.plan, self.plan.slots_of_bin());
        let mut polynomials = vec![0; n_bins * of_bin * plan.polynomial_bytes()];
        let mut s = Secrets::zeros(n_bins * of_bin);
        let out = polynomials.par_chunks_mut(of_bin * plan.polynomial_bytes()).zip(s.par_chunks_mut(of_bin));
        let points = self.points(first, n_bins);
        out.zip(&*points).enumerate().for_each(|(b, ((out, s), points))| {
            let items = self.table.bin(first + b);
            // The bottom item follows the items. Outputs for the random points are discarded, but take the same
            // time.
            let code = |i: usize| items.get(i).map_or(&self.bottom[0], |&item| &self.codes[item as usize]);
            let at = (0..points * of_bin).map(|p| (b * of_bin + p % of_bin, code(p / of_bin)));
            let outputs = keys.evaluate_all(at);
            let mut rng = self.rng.fork((first + b) as u64);
            random_polynomials(plan.field, &outputs, items.len() + 1, s, out, &mut rng);
        });
        (polynomials, s)
    }

    /// The number of points of each of these bins: the items, the bottom item, and random ones. Their sum
    /// follows from the sizes.
    fn points(&self, first: usize, n_bins: usize) -> Secrets<usize> {
        let plan = self.plan;
        let needed = (first..first + n_bins).map(|bin| self.table.bin(bin).len() + 1).collect::<Vec<_>>();
        filled_up(needed.into(), plan.in_frame.min(n_bins * plan.bins.receiver) + n_bins)
    }
}

/// Adds points to bins until they have `most` in total, the bins with the fewest first. This makes the sum of their squares
/// vary least. `points` holds the number that each bin needs.
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

/// A uniform s and a polynomial for each slot of a bin (`s` has one entry per slot). The polynomial is uniform among those with
/// P(q_i) = s + t_i for the slot's first `real` points. (q_i, t_i) is output i of the slot. Outputs are ordered by i, then by
/// slot; outputs from `real` on count only as random points.
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
    // s, the points and their values, and the coefficients of R.
    let mut noise = Secrets::<[u8; 16]>::zeros(n_slots * (1 + 2 * points + shape.free));
    stream.ctr(0, noise.as_flattened_mut());
    let mut noise = noise.iter().map(|block| u128::from_le_bytes(*block) & field.mask());
    s.iter_mut().zip(&mut noise).for_each(|(s, noise)| *s = noise);
    let (mut q, mut v) = (Secrets::zeros(outputs.len()), Secrets::zeros(outputs.len()));
    q.iter_mut().zip(&mut noise).for_each(|(q, noise)| *q = noise);
    v.iter_mut().zip(&mut noise).for_each(|(v, noise)| *v = noise);
    // All points start out random; the bin's items then overwrite theirs.
    for (i, output) in outputs.iter().enumerate().take(n_slots * real) {
        let (first, second) = halves(output);
        (q[i], v[i]) = (first, s[i % n_slots] ^ second);
    }
    let coefficients = Secrets::from(noise.collect::<Vec<_>>());
    // Two outputs of a slot collide in q with the probability that the field size allows for. Then one is lost,
    // and the time reveals it.
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

/// q and t, before reduction to the bits of a field element.
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
