//! Simple hashing of items into bins (KRTW19 5.2), and the number and size of the bins.
//!
//! Both parties throw their items into the same bins with one public hash function. The lengths of messages follow from a
//! bound on the real items of a bin, and not from the loads. The bound must hold for all bins at once, except with a small
//! probability. If a bin exceeds it, the items are thrown again with another function.
//!
//! Leakage: whether the items had to be thrown again, and whose did not fit. Not protected: memory addresses, which depend
//! on a party's items, and so the total time to place them. How the loads show in the receiver's timing is said in
//! `crate::membership::rpmt`.

use crate::hash::{Domain, ItemHash};
use crate::params::share;
use crate::secret::Secrets;
use rayon::prelude::*;

/// Returns the smallest bound that holds for all of `bins` bins at once, except with probability 2^-`exponent`, when
/// `n` items are thrown into them: `bins Pr[Binomial(n, 1 / bins) > bound] <= 2^-exponent` (KRTW19, equation 2).
pub fn bound(exponent: u32, n: usize, bins: usize) -> usize {
    bound_of(exponent, n, bins, 1, bins)
}

/// Returns the smallest bound on the items of each of `sets` sets of `of` bins that holds for all these sets at once, except
/// with probability 2^-`exponent`, when `n` items are thrown into `bins` bins.
pub fn bound_of(exponent: u32, n: usize, sets: usize, of: usize, bins: usize) -> usize {
    if of >= bins || n == 0 {
        return n;
    }
    let ratio = ratios(n, of, bins);
    let most = -f64::from(exponent) * std::f64::consts::LN_2 - (sets.max(1) as f64).ln() - MARGIN;
    // Below the mean the probability is at least one half.
    let mut bound = (n as u128 * of as u128 / bins as u128) as usize;
    // ln Pr[Binomial = i], for i one above the bound.
    let mut first = term(n, of, bins, (bound + 1).min(n));
    while bound < n {
        // Pr[Binomial > bound], relative to its first term.
        let (mut term, mut rest, mut i) = (1.0, 0.0, bound + 1);
        while term > rest * 1e-17 {
            rest += term;
            term *= ratio(i.min(n));
            i += 1;
        }
        if first.value() + rest.ln() <= most {
            break;
        }
        bound += 1;
        first.add(ratio(bound.min(n)).ln());
    }
    bound
}

/// Subtracted from the bound on the logarithm of a probability, to allow for rounding. A ratio has a relative error of
/// at most 3 * 2^-53, and a logarithm one of at most 2 * 2^-53. With compensated additions this sums up to less than
/// 2e-7 for 2^28 items thrown into two bins or more.
const MARGIN: f64 = 1e-6;

/// Pr[Binomial(n, of / bins) = i + 1] / Pr[Binomial(n, of / bins) = i] as a function of i.
fn ratios(n: usize, of: usize, bins: usize) -> impl Fn(usize) -> f64 {
    // The odds that an item falls into the set.
    let odds = of as f64 / (bins - of) as f64;
    move |i| (n - i) as f64 / (i + 1) as f64 * odds
}

/// ln Pr[Binomial(n, of / bins) = i].
fn term(n: usize, of: usize, bins: usize, i: usize) -> Sum {
    let ratio = ratios(n, of, bins);
    let mut term = Sum::default();
    term.add(n as f64 * (-(of as f64) / bins as f64).ln_1p());
    (0..i).for_each(|i| term.add(ratio(i).ln()));
    term
}

/// A compensated sum (Neumaier). It corrects the rounding errors of its additions, which would exceed the margin for
/// 2^28 items in two bins.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        let (large, small) = if self.sum.abs() >= x.abs() { (self.sum, x) } else { (x, self.sum) };
        self.lost += (large - sum) + small;
        self.sum = sum;
    }

    fn value(&self) -> f64 {
        self.sum + self.lost
    }
}

/// The number of bins, and bounds on the real items per bin, for both parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bins {
    /// The number of bins.
    pub number: usize,
    /// The maximum number of the receiver's items in a bin.
    pub receiver: usize,
    /// The maximum number of the sender's items in a bin.
    pub sender: usize,
}

impl Bins {
    /// Returns bins of about the least cost for sets of these sizes, among those whose bounds for the receiver and the
    /// sender are at most `largest`. Some bin exceeds its bound with a probability of at most 2^-`exponent`.
    ///
    /// Each party has its own bound, from the size of its set. The sender's bound plus 1 is the number of tests per bin,
    /// the receiver's plus 1 the length of a polynomial; the bounds may differ. For sets of unequal size, the paper's
    /// single bound (n the larger size) costs many times as much.
    ///
    /// `cost` must not decrease as a bound or the number of bins grows.
    pub fn best(
        exponent: u32,
        (n_r, n_s): (usize, usize),
        largest: (usize, usize),
        cost: impl Fn(&Bins) -> u64,
    ) -> Bins {
        let exponent = share(exponent, 2);
        let of = |number| Bins {
            number,
            receiver: bound(exponent, n_r, number),
            sender: bound(exponent, n_s, number),
        };
        let allowed = |bins: &Bins| bins.receiver <= largest.0 && bins.sender <= largest.1;
        let most = n_r.max(n_s).max(1);
        // In steps of 2 %, from the number below which a bin of average load is too large. One bin per item is always
        // enough.
        let mut number = n_r.div_ceil(largest.0 + 1).max(n_s.div_ceil(largest.1 + 1)).max(1);
        let mut best = of(most);
        while number < most {
            let bins = of(number);
            if allowed(&bins) && (cost(&bins), number) < (cost(&best), best.number) {
                best = bins;
            }
            number += (number / 50).max(1);
        }
        // The smallest number of bins with these bounds.
        let (mut low, mut high) = (best.number - best.number / 40, best.number);
        while low < high {
            let middle = (low + high) / 2;
            let bins = of(middle.max(1));
            match bins.receiver <= best.receiver && bins.sender <= best.sender {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let fewer = of(high.max(1));
        if allowed(&fewer) && cost(&fewer) <= cost(&best) { fewer } else { best }
    }
}

/// A set in bins. Items are given by their positions in the set.
pub struct SimpleTable {
    /// The position of each bin's first item in `items`, and the end of the last bin.
    starts: Secrets<u32>,
    items: Secrets<u32>,
}

impl SimpleTable {
    /// Throws these items into bins. `function` must be chosen after the items. Its output has 64 bits, so the
    /// probabilities of bins differ by at most 2^-64.
    pub fn new(function: &Domain, hashes: &[ItemHash], bins: usize) -> SimpleTable {
        let bin_of = |hash: &ItemHash| {
            let number = u64::from_le_bytes(function.hash(&[hash]));
            ((u128::from(number) * bins as u128) >> 64) as u32
        };
        let bin_of = Secrets::from(hashes.par_iter().map(bin_of).collect::<Vec<_>>());
        let mut starts = Secrets::zeros(bins + 1);
        bin_of.iter().for_each(|&bin| starts[bin as usize + 1] += 1);
        (0..bins).for_each(|bin| starts[bin + 1] += starts[bin]);
        let mut next = starts.clone();
        let mut items = Secrets::zeros(hashes.len());
        for (item, &bin) in bin_of.iter().enumerate() {
            let at = &mut next[bin as usize];
            items[*at as usize] = item as u32;
            *at += 1;
        }
        SimpleTable { starts, items }
    }

    /// Returns the items of a bin.
    pub fn bin(&self, bin: usize) -> &[u32] {
        &self.items[self.starts[bin] as usize..self.starts[bin + 1] as usize]
    }

    /// Returns the number of items in the fullest of the sets of `of` consecutive bins into which the bins are cut.
    pub fn fullest(&self, of: usize) -> usize {
        let cuts = (0..self.starts.len()).step_by(of).map(|i| self.starts[i]);
        let cuts = Secrets::from(cuts.collect::<Vec<_>>());
        let last = self.items.len() as u32 - cuts.last().copied().unwrap_or(0);
        cuts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0).max(last) as usize
    }
}

#[cfg(test)]
#[path = "simple_tests.rs"]
mod tests;
