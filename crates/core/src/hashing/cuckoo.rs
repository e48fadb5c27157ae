//! Cuckoo hashing with three hash functions and no stash (Pinkas, Schneider, Weinert and Wieder, "Efficient
//! Circuit-Based PSI via Cuckoo Hashing", EUROCRYPT 2018), and the calculator of the number of bins.
//!
//! A public function gives each item three *different* bins. One party places each of its items in one of them, at most
//! one item in a bin. The other party looks for each of its items in all three. As the bins differ, an item is looked
//! for exactly once in a bin, and `n` items make exactly 3 n pairs of an item and a bin.
//!
//! The placement is searched by augmenting paths, so it fails only if there is none. Then another function must be
//! drawn. The function must be chosen after the items: whoever chooses items for a known function can make them fail.
//!
//! Leakage: that another function was needed. Not protected: the memory addresses of a party's items, which follow from
//! them, and so the time to place them as a whole.

use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash};
use crate::secret::Secrets;
use rayon::prelude::*;

/// Bins of an item.
pub const CHOICES: usize = 3;

/// Items hashed at once: 16 KiB of hashes.
const BATCH: usize = 1 << 9;
/// The number of a bin's item where it has none.
const EMPTY: u32 = u32::MAX;

/// The number of bins in which `n` items have a placement, except with probability 2^-`exponent` (up to 256).
///
/// Items have no placement exactly if some k + 1 of them have all of their bins among some k bins (Hall). There are two
/// bounds, and the result keeps both:
///
/// - e n bins, with e = (`exponent` + 256 + log2 n) / 240. This is a fit to simulations, published with the library
///   cryptoTools for 512 items and more. At exponents at which failures can be counted it is on the safe side. It does
///   not see the obstructions of few items.
/// - The expected number of obstructions: for k >= 3, p_k = C(k, 3) / C(bins, 3), the sum of C(n, k + 1) C(bins, k)
///   p_k^(k + 1). Up to 512 items all k count, of more items those up to 10: for larger k the sum is far too
///   pessimistic, and the fit covers them. A table for more than 512 items keeps the bound for 512 of them too, so
///   that the number of bins never falls when `n` grows.
///
/// Every machine computes the same number, from integers and products of floating-point numbers. These round in one way
/// everywhere; logarithms do not.
pub fn number(exponent: u32, n: usize) -> usize {
    let exponent = exponent.min(256);
    let limit = (0..exponent).fold(1.0 - MARGIN, |limit, _| limit / 2.0);
    let few = n.min(EXACT);
    let good = |bins| obstructed(few, bins, few) <= limit && obstructed(n, bins, SMALL) <= limit;
    // With at least as many bins as the fit has, the sums fall when the number of bins grows.
    let (mut low, mut high) = (0, fit(exponent, n).max(CHOICES));
    let least = high;
    while !good(high) {
        (low, high) = (high, 2 * high);
    }
    if high == least {
        return least;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match good(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

/// Taken from the limit, for rounding: a term is a product of less than 4000 floating-point operations.
pub(super) const MARGIN: f64 = 1e-9;
/// The most items with obstructions of all sizes. Of more items, the fit covers the larger ones.
pub(super) const EXACT: usize = 512;
/// The most bins of an obstruction of more items than that.
pub(super) const SMALL: usize = 10;

/// ceil(e n)
pub(super) fn fit(exponent: u32, n: usize) -> usize {
    let e = ((u128::from(exponent) + 256) << FRACTION) + u128::from(log2_up(n));
    (n as u128 * e).div_ceil(240 << FRACTION) as usize
}

/// Bits of a logarithm behind the point.
const FRACTION: u32 = 10;

/// log2 of `n` in units of 2^-[`FRACTION`], rounded up; 0 for n = 0. By squaring integers.
fn log2_up(n: usize) -> u64 {
    const ONE: u128 = 1 << 60;
    let mut log = u64::from(n.max(1).ilog2());
    // n / 2^log, from 1 to 2.
    let mut rest = ((n.max(1) as u128) << 64) >> (log + 4);
    for _ in 0..FRACTION {
        (log, rest) = (2 * log, (rest * rest).div_ceil(ONE));
        if rest >= 2 * ONE {
            (log, rest) = (log + 1, rest.div_ceil(2));
        }
    }
    log + u64::from(rest > ONE)
}

/// The expected number of obstructions of at most `most` bins, and so a bound on the probability that there is one.
///
/// Each term is a product of k + 1 factors, which first rise and then fall. So no intermediate product is smaller
/// than the term or 1. With at most [`EXACT`] items, none exceeds 2^1000 where there are more bins than items.
fn obstructed(n: usize, bins: usize, most: usize) -> f64 {
    obstructed_in_blocks(n, 1, bins, most)
}

/// The same for blocks of so many bins. The k + 1 items of an obstruction are in one block, with probability blocks^-k.
pub(super) fn obstructed_in_blocks(n: usize, blocks: usize, bins: usize, most: usize) -> f64 {
    let (items, all, blocks) = (n as f64, bins as f64, blocks as f64);
    let triples = |k: f64| k * (k - 1.0) * (k - 2.0);
    let largest = most.min(bins).min(n.saturating_sub(1));
    // C(n, j + 1) C(bins, j + 1) / blocks^(j + 1) against C(n, j) C(bins, j) / blocks^j.
    let ratio = |j: usize| (items - j as f64) * (all - j as f64) / ((j + 1) * (j + 1)) as f64 / blocks;
    let ratios: Vec<f64> = (0..largest).map(ratio).collect();
    let mut total = 0.0;
    for k in CHOICES..=largest {
        let inside = triples(k as f64) / triples(all);
        let product = ratios.iter().take(k).fold(1.0, |product, ratio| product * (ratio * inside));
        total += product * ((items - k as f64) / (k + 1) as f64 * inside);
    }
    total
}

/// The functions that give each item its bins. They are public.
#[derive(Clone)]
pub struct Functions {
    domain: Domain,
    /// Blocks of bins. All bins of an item are in one of them.
    blocks: usize,
    /// Bins of a block.
    bins: usize,
}

impl Functions {
    /// The functions of this oracle into so many bins: [`number`], or more.
    ///
    /// # Errors
    /// [`Error::Bug`] for fewer than three bins, or more than have numbers.
    pub fn new(domain: Domain, bins: usize) -> Result<Functions> {
        Functions::in_blocks(domain, 1, bins)
    }

    /// The functions of this oracle into so many blocks of so many bins each. An item has one block, and its three bins
    /// are different ones of this block.
    ///
    /// # Errors
    /// As [`Functions::new`], and for no block.
    pub fn in_blocks(domain: Domain, blocks: usize, bins: usize) -> Result<Functions> {
        let all = blocks.saturating_mul(bins);
        match bins >= CHOICES && (1..EMPTY as usize).contains(&all) {
            true => Ok(Functions { domain, blocks, bins }),
            false => Err(Error::bug(format!("cuckoo hashing into {blocks} blocks of {bins} bins"))),
        }
    }

    /// The number of bins of all blocks.
    pub fn bins(&self) -> usize {
        self.blocks * self.bins
    }

    /// The three bins of each item.
    pub fn bins_of(&self, hashes: &[ItemHash]) -> Secrets<[u32; CHOICES]> {
        let mut all = Secrets::<[u32; CHOICES]>::zeros(hashes.len());
        all.par_chunks_mut(BATCH).zip(hashes.par_chunks(BATCH)).for_each(|(all, hashes)| {
            let mut numbers = Secrets::<[u8; 32]>::zeros(hashes.len());
            self.domain.hash_all(hashes.iter().map(|hash| &hash[..]), &mut numbers);
            for (bins, numbers) in all.iter_mut().zip(numbers.iter()) {
                *bins = self.different(std::array::from_fn(|i| u64::from_le_bytes(numbers.as_chunks().0[i])));
            }
        });
        all
    }

    /// Three different bins of a block. All blocks and all triples are equally likely, up to 2^-64 for each number.
    fn different(&self, numbers: [u64; CHOICES + 1]) -> [u32; CHOICES] {
        let below = |number: u64, n: usize| ((u128::from(number) * n as u128) >> 64) as u32;
        let start = below(numbers[CHOICES], self.blocks) * self.bins as u32;
        let first = below(numbers[0], self.bins);
        // Among the bins without the first, then among those without the first two.
        let second = below(numbers[1], self.bins - 1);
        let second = second + u32::from(second >= first);
        let third = below(numbers[2], self.bins - 2);
        let third = third + u32::from(third >= first.min(second));
        let third = third + u32::from(third >= first.max(second));
        [start + first, start + second, start + third]
    }
}

/// A set in bins, at most one item in each. Items are numbers: positions in the set.
pub struct Table {
    items: Secrets<u32>,
}

impl Table {
    /// Places these items. `None` if they have no placement.
    pub fn new(functions: &Functions, hashes: &[ItemHash]) -> Option<Table> {
        placed(&functions.bins_of(hashes), functions.bins())
    }

    /// The number of bins.
    pub fn bins(&self) -> usize {
        self.items.len()
    }

    /// The item of a bin, if it has one.
    pub fn item(&self, bin: usize) -> Option<usize> {
        let item = self.items[bin];
        (item != EMPTY).then_some(item as usize)
    }
}

/// Places items that have these bins: a matching, found one item after the other.
fn placed(choices: &[[u32; CHOICES]], bins: usize) -> Option<Table> {
    let mut items = Secrets::from(vec![EMPTY; bins]);
    let mut search =
        Search { reached: Secrets::zeros(bins), from: Secrets::zeros(bins), queue: Secrets::zeros(bins) };
    for (item, own) in choices.iter().enumerate() {
        let free = own.iter().copied().find(|&bin| items[bin as usize] == EMPTY);
        let bin = match free {
            Some(bin) => bin,
            None => search.make_room(&mut items, choices, item)?,
        };
        items[bin as usize] = item as u32;
    }
    Some(Table { items })
}

/// A breadth-first search from the bins of an item to an empty bin. Each step goes from a bin to the other bins of its
/// item.
struct Search {
    /// The search that reached each bin last: the number of its item, plus 1.
    reached: Secrets<u32>,
    /// The bin that it came from, or the same bin where it began.
    from: Secrets<u32>,
    /// The bins that it reached, in this order. All of them are full.
    queue: Secrets<u32>,
}

impl Search {
    /// Moves items until one of the bins of `item` is free, which are all full. Returns this bin; its item has moved.
    fn make_room(&mut self, items: &mut [u32], choices: &[[u32; CHOICES]], item: usize) -> Option<u32> {
        let number = item as u32 + 1;
        let (mut next, mut end) = (0, 0);
        for &bin in &choices[item] {
            (self.reached[bin as usize], self.from[bin as usize]) = (number, bin);
            self.queue[end] = bin;
            end += 1;
        }
        let mut free = 'search: loop {
            if next == end {
                return None;
            }
            let bin = self.queue[next];
            next += 1;
            for &other in &choices[items[bin as usize] as usize] {
                if self.reached[other as usize] == number {
                    continue;
                }
                (self.reached[other as usize], self.from[other as usize]) = (number, bin);
                if items[other as usize] == EMPTY {
                    break 'search other;
                }
                self.queue[end] = other;
                end += 1;
            }
        };
        // Back along the path, each item moves into the bin that was freed.
        while self.from[free as usize] != free {
            let before = self.from[free as usize];
            items[free as usize] = items[before as usize];
            free = before;
        }
        Some(free)
    }
}

#[cfg(test)]
#[path = "cuckoo_tests.rs"]
mod tests;
