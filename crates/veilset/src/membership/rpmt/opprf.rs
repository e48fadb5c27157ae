//! The OPPRF: random polynomials that take s + t_i at the items of a bin.

use super::{BATCH, Plan};
use crate::hashing::Table;
use crate::oprf::Output;
use crate::oprf::kkrt::{Code, Keys};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use rayon::prelude::*;
use veilset_kernels::aes::Aes128;
use veilset_kernels::polynomial::{self, Field, Shape};

/// R's bins, with what it takes to make polynomials of them.
pub(super) struct ReceiverBins<'a> {
    pub(super) plan: &'a Plan,
    pub(super) bins: Table,
    pub(super) codes: Secrets<Code>,
    pub(super) bottom: Secrets<Code>,
    pub(super) rng: Prng,
}

impl ReceiverBins<'_> {
    /// The polynomials of all slots of `bins` bins from `first` on, and s of each slot.
    pub(super) fn polynomials(&self, keys: &Keys, first: usize, bins: usize) -> (Vec<u8>, Secrets<u128>) {
        let (plan, in_bin) = (self.plan, self.plan.in_bin());
        // Of each bin the number of points: the items, the bottom item, and random ones.
        let needed = (first..first + bins).map(|bin| self.bins.bin(bin).len() + 1).collect::<Vec<_>>();
        let points = filled_up(needed.into(), plan.in_frame.min(bins * plan.bins.receiver) + bins);
        let mut polynomials = vec![0; bins * in_bin * plan.polynomial()];
        let mut s = Secrets::zeros(bins * in_bin);
        let out = polynomials.par_chunks_mut(in_bin * plan.polynomial()).zip(s.par_chunks_mut(in_bin));
        out.zip(&*points).enumerate().for_each(|(b, ((out, s), points))| {
            let items = self.bins.bin(first + b);
            // Behind the items stands the bottom item. What random points give is thrown away, but takes as long.
            let code = |i: usize| items.get(i).map_or(&self.bottom[0], |&item| &self.codes[item as usize]);
            let at = (0..points * in_bin).map(|p| (b * in_bin + p % in_bin, code(p / in_bin)));
            let outputs = keys.evaluate_all(at);
            let mut rng = self.rng.fork((first + b) as u64);
            opprf(plan.field, &outputs, items.len() + 1, s, out, &mut rng);
        });
        (polynomials, s)
    }
}

/// How many points bins get that need so many: together `most`, those with the fewest filled up first. So the sum of
/// what follows from the numbers of points varies least.
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
fn opprf(field: Field, outputs: &[Output], real: usize, s: &mut [u128], out: &mut [u8], rng: &mut Prng) {
    let slots = s.len();
    let length = out.len() / field.bytes() / slots;
    let points = outputs.len() / slots;
    let shape = Shape { instances: slots, points, free: length - points };
    let stream = Aes128::new(&Secret::new(rng.bytes()));
    // s, points and their values, and the coefficients of R.
    let mut noise = Secrets::<[u8; 16]>::zeros(slots * (1 + 2 * points + shape.free));
    stream.ctr(0, noise.as_flattened_mut());
    let mut noise = noise.iter().map(|block| u128::from_le_bytes(*block) & field.mask());
    s.iter_mut().zip(&mut noise).for_each(|(s, noise)| *s = noise);
    let (mut q, mut v) = (Secrets::zeros(outputs.len()), Secrets::zeros(outputs.len()));
    for list in [&mut q, &mut v] {
        list.iter_mut().zip(&mut noise).for_each(|(element, noise)| *element = noise);
    }
    // All points are random, then those of the bin's items are theirs.
    for (i, output) in outputs.iter().enumerate().take(slots * real) {
        let (first, second) = halves(output);
        (q[i], v[i]) = (first, s[i % slots] ^ second);
    }
    let coefficients = Secrets::from(noise.collect::<Vec<_>>());
    // Two outputs of a slot meet in q with a probability that the length of the field allows for: one is lost, and
    // the time shows it.
    while polynomial::interpolate(field, &shape, &q, &v, &coefficients, out).is_err() {
        for slot in 0..slots {
            for i in 0..points {
                let at = |i: usize| i * slots + slot;
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
pub(super) fn opened(plan: &Plan, polynomials: &[u8], outputs: &[Output]) -> Secrets<u128> {
    let mut s = Secrets::zeros(outputs.len());
    let chunks = s.par_chunks_mut(BATCH).zip(outputs.par_chunks(BATCH));
    chunks.zip(polynomials.par_chunks(BATCH * plan.polynomial())).for_each(|((s, outputs), polynomials)| {
        let q = Secrets::from(outputs.iter().map(|output| halves(output).0).collect::<Vec<_>>());
        polynomial::evaluate(plan.field, plan.coefficients(), polynomials, &q, s);
        s.iter_mut().zip(outputs).for_each(|(s, output)| *s ^= halves(output).1 & plan.field.mask());
    });
    s
}

#[cfg(test)]
#[path = "opprf_tests.rs"]
mod tests;
