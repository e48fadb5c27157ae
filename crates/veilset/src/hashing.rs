//! Simple hashing of items into bins (KRTW19 5.2), and the calculators of the number and the size of bins.
//!
//! Both parties throw their items into the same bins by one public hash function. Each fills its bins up to a bound
//! on the real items of a bin, so that the loads do not show. The bound must hold for all bins at once, except with a
//! small probability. If it does not, no harm is done: the items are thrown again by another function.
//!
//! Leakage: that the items had to be thrown again. Not protected: the memory addresses of a party's items, which
//! follow from them, and so the time to place them as a whole.

use crate::hash::{Domain, ItemHash};
use crate::params::share;
use crate::secret::Secrets;
use rayon::prelude::*;

/// The smallest bound that holds for all of `bins` bins at once, except with probability 2^-`exponent`, when `n`
/// items are thrown into them: `bins Pr[Binomial(n, 1 / bins) > bound] <= 2^-exponent` (KRTW19, equation 2).
pub fn bound(exponent: u32, n: usize, bins: usize) -> usize {
    bound_of(exponent, n, bins, 1, bins)
}

/// The same for `sets` sets of `of` bins each: a bound on the items of every set.
pub fn bound_of(exponent: u32, n: usize, sets: usize, of: usize, bins: usize) -> usize {
    if of >= bins || n == 0 {
        return n;
    }
    let ratio = ratios(n, of, bins);
    let most = -f64::from(exponent) * std::f64::consts::LN_2 - (sets.max(1) as f64).ln() - MARGIN;
    // Below the mean the probability is at least a half.
    let mut bound = (n as u128 * of as u128 / bins as u128) as usize;
    // ln Pr[Binomial = i], for i one above the bound.
    let mut first = term(n, of, bins, (bound + 1).min(n));
    while bound < n {
        // Pr[Binomial > bound] against its first term.
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

/// Subtracted from the bound on the logarithm of a probability, for rounding. A ratio has a relative error of at most
/// 3 * 2^-53, and a logarithm one of at most 2 * 2^-53. With compensated additions this sums up to less than 2e-7 for
/// 2^28 items thrown into two bins or more.
const MARGIN: f64 = 1e-6;

/// Pr[Binomial(n, of / bins) = i + 1] / Pr[Binomial(n, of / bins) = i], of i.
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

/// A compensated sum (Neumaier). It keeps the rounding errors of its additions, which exceed the margin for 2^28
/// items in two bins.
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

/// Numbers of bins and bounds on the real items in each, for both parties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bins {
    /// The number of bins.
    pub number: usize,
    /// The most items of the receiver in a bin.
    pub receiver: usize,
    /// The most items of the sender in a bin.
    pub sender: usize,
}

impl Bins {
    /// The bins of least cost for sets of these sizes, among those with at most `largest` items of the receiver and of
    /// the sender. The bounds of one party or the other fail with a probability of 2^-`exponent`.
    ///
    /// Each party has its own bound, by the size of its set. The sender's is the number of tests of a bin, the
    /// receiver's the length of a polynomial; they need not be equal. For sets of unequal size, the paper's single
    /// bound (n the larger size) costs many times as much.
    ///
    /// `cost` must not fall when a bound or the number of bins grows.
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
        // In steps of 2 %, from the number below which a bin of average load is too large. One bin for each item is
        // always enough.
        let mut number = n_r.div_ceil(largest.0 + 1).max(n_s.div_ceil(largest.1 + 1)).max(1);
        let mut best = of(most);
        while number < most {
            let bins = of(number);
            if allowed(&bins) && (cost(&bins), number) < (cost(&best), best.number) {
                best = bins;
            }
            number += (number / 50).max(1);
        }
        // The fewest bins of these sizes.
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

/// A set in bins. Items are numbers: positions in the set.
pub struct Table {
    /// Where each bin begins among the items, and where the last one ends.
    starts: Secrets<u32>,
    items: Secrets<u32>,
}

impl Table {
    /// Throws these items into bins. `function` must be chosen after the items. It has 64 bits, so the probabilities
    /// of bins differ by at most 2^-64.
    pub fn new(function: &Domain, hashes: &[ItemHash], bins: usize) -> Table {
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
        Table { starts, items }
    }

    /// The items of a bin.
    pub fn bin(&self, bin: usize) -> &[u32] {
        &self.items[self.starts[bin] as usize..self.starts[bin + 1] as usize]
    }

    /// The number of items in the fullest set, where the bins are cut into sets of `of` consecutive bins.
    pub fn fullest(&self, of: usize) -> usize {
        let cuts = (0..self.starts.len()).step_by(of).map(|i| self.starts[i]);
        let cuts = Secrets::from(cuts.collect::<Vec<_>>());
        let last = self.items.len() as u32 - cuts.last().copied().unwrap_or(0);
        cuts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0).max(last) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pr[Binomial(n, p) = i] for all i, one throw after the other.
    fn binomial(n: usize, p: f64) -> Vec<f64> {
        let mut all = vec![0.0; n + 2];
        all[0] = 1.0;
        for _ in 0..n {
            for i in (0..=n).rev() {
                all[i] = all[i] * (1.0 - p) + if i > 0 { all[i - 1] * p } else { 0.0 };
            }
        }
        all
    }

    #[test]
    fn bounds_are_the_smallest_by_the_exact_distribution() {
        for n in [0usize, 1, 2, 3, 7, 30, 64, 200] {
            for bins in [1usize, 2, 3, 8, 17, 200] {
                let probability = binomial(n, 1.0 / bins as f64);
                // Smallest terms first, so that nothing is lost.
                let above = |m: usize| bins as f64 * probability[m + 1..].iter().rev().sum::<f64>();
                for exponent in [1, 20, 40, 42] {
                    let bound = bound(exponent, n, bins);
                    let most = (-f64::from(exponent)).exp2();
                    assert!(above(bound) <= most, "{n} {bins} {exponent}: {bound}");
                    // Except for the margin.
                    let least = most * (1.0 - 2.0 * MARGIN);
                    assert!(bound == 0 || above(bound - 1) > least, "{n} {bins} {exponent}: {bound}");
                }
            }
        }
    }

    /// Against Loader's saddle-point form, which has no long sum, a little above the mean.
    #[test]
    fn rounding_is_within_the_margin_at_the_largest_sizes() {
        let stirling = |x: f64| 1.0 / (12.0 * x) - 1.0 / (360.0 * x * x * x);
        let deviance = |x: f64, mean: f64| {
            let e = (x - mean) / mean;
            mean * ((1.0 + e) * e.ln_1p() - e)
        };
        // The largest set: in few bins, and in frames as full as they can be. Bins of a large set.
        for (n, of, bins) in
            [(1usize << 28, 1usize, 8usize), (1 << 28, 1 << 12, 1 << 20), (1 << 20, 3, 1 << 12)]
        {
            let mean = n * of / bins;
            for i in [mean + 1, mean + mean / 100] {
                let [n, i, rest] = [n, i, n - i].map(|x| x as f64);
                let p = of as f64 / bins as f64;
                let expected = stirling(n)
                    - stirling(i)
                    - stirling(rest)
                    - deviance(i, n * p)
                    - deviance(rest, n * (1.0 - p))
                    - (2.0 * std::f64::consts::PI * i * rest / n).ln() / 2.0;
                let found = term(n as usize, of, bins, i as usize).value();
                assert!((found - expected).abs() < MARGIN / 4.0, "{n} {of} {bins} {i}: {found} {expected}");
            }
        }
    }

    #[test]
    fn bounds_of_sets_of_bins() {
        for (n, sets, of, bins) in [(60, 3, 4, 12), (60, 4, 4, 13), (9, 1, 5, 5), (100, 2, 3, 5)] {
            let probability = binomial(n, of as f64 / bins as f64);
            let above = |m: usize| sets as f64 * probability[m + 1..].iter().rev().sum::<f64>();
            let bound = bound_of(20, n, sets, of, bins);
            let most = (-20f64).exp2();
            assert!(above(bound) <= most && (bound == 0 || above(bound - 1) > most), "{n} {of} {bins}");
        }
    }

    /// KRTW19, Table 2: n, beta / n in thousandths, m. All rows agree with equation 2.
    #[test]
    fn table_2_of_the_paper() {
        for (n, thousandths, m) in [
            (1 << 8, 43, 63),
            (1 << 10, 55, 58),
            (1 << 12, 50, 63),
            (1 << 14, 53, 62),
            (1 << 16, 58, 60),
            (1 << 18, 52, 65),
            (1 << 20, 60, 61),
            (1 << 22, 51, 68),
        ] {
            assert_eq!(bound(40, n, (n * thousandths + 500) / 1000), m, "{n}");
        }
    }

    /// About what a run costs.
    fn cost(bins: &Bins) -> u64 {
        (bins.number * (bins.sender + 1) * (1100 + 72 * (bins.receiver + 1))) as u64
    }

    #[test]
    fn the_best_bins_are_about_the_best_of_all() {
        for (n_r, n_s) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (5, 300), (300, 5), (256, 256), (1000, 70)]
        {
            let found = Bins::best(40, (n_r, n_s), (255, 4095), cost);
            let all = (1..=n_r.max(n_s).max(1)).map(|number| Bins {
                number,
                receiver: bound(41, n_r, number),
                sender: bound(41, n_s, number),
            });
            let best = all.filter(|b| b.receiver <= 255).min_by_key(cost).unwrap();
            assert!(cost(&found) <= cost(&best) + cost(&best) / 100, "{n_r} {n_s}: {found:?}, {best:?}");
            let alone = Bins {
                number: found.number,
                receiver: bound(41, n_r, found.number),
                sender: bound(41, n_s, found.number),
            };
            assert_eq!(found, alone);
        }
        // Epsilon is in [0.04, 0.06], or a little above: the paper, which says [0.4, 0.6], slipped by a factor of ten.
        for log in [12, 16, 20, 24] {
            let found = Bins::best(40, (1 << log, 1 << log), (255, 4095), cost);
            let epsilon = found.number as f64 / f64::from(1 << log);
            assert!((0.035..0.07).contains(&epsilon), "{log}: {found:?}, {epsilon}");
        }
        // A small set against a large one takes a fraction of two large ones.
        let (large, unequal) = (1 << 24, Bins::best(40, (1 << 24, 100), (255, 4095), cost));
        assert!(
            cost(&unequal) * 10 < cost(&Bins::best(40, (large, large), (255, 4095), cost)),
            "{unequal:?}"
        );
        assert!(unequal.receiver <= 255);
    }

    #[test]
    fn of_very_many_bins_each_is_as_likely() {
        let hashes: Vec<ItemHash> = (0..1000u32).map(|i| ItemHash::of_item(&i.to_le_bytes())).collect();
        let bins = 1 << 20;
        let table = Table::new(&Domain::without_session("bins"), &hashes, bins);
        let mut ends = [0; 16];
        (0..bins).for_each(|bin| ends[bin % 16] += table.bin(bin).len());
        // 62.5 on average: five standard deviations.
        assert!(ends.iter().all(|n| (25..101).contains(n)), "{ends:?}");
    }

    #[test]
    fn every_item_is_in_its_bin() {
        let hashes: Vec<ItemHash> = (0..1000u32).map(|i| ItemHash::of_item(&i.to_le_bytes())).collect();
        let throw = |session: u8, hashes: &[ItemHash], bins| {
            let table =
                Table::new(&Domain::new(&crate::hash::SessionId::of([session; 32]), "bins"), hashes, bins);
            let loads: Vec<Vec<u32>> = (0..bins).map(|bin| table.bin(bin).to_vec()).collect();
            let mut all: Vec<u32> = loads.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..hashes.len() as u32));
            assert_eq!(table.fullest(1), loads.iter().map(Vec::len).max().unwrap());
            let sets = loads.chunks(7).map(|bins| bins.iter().map(Vec::len).sum::<usize>());
            assert_eq!(table.fullest(7), sets.max().unwrap());
            assert_eq!(table.fullest(bins), hashes.len());
            loads
        };
        for bins in [1, 2, 7, 50, 2000] {
            let loads = throw(1, &hashes, bins);
            // Another function throws them elsewhere. A part of the set goes to the same bins as in the whole.
            assert!(bins == 1 || loads != throw(2, &hashes, bins));
            for (part, whole) in throw(1, &hashes[..300], bins).iter().zip(&loads) {
                assert!(part.iter().all(|item| whole.contains(item)));
            }
            throw(1, &[], bins);
        }
        // 50 bins of 20: six standard deviations.
        assert!(throw(1, &hashes, 50).iter().all(|bin| bin.len() < 47));
    }
}
