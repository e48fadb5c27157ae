//! Cuckoo hashing with three hash functions and no stash (Pinkas, Schneider, Weinert and Wieder, "Efficient
//! Circuit-Based PSI via Cuckoo Hashing", EUROCRYPT 2018), and the number of bins that it needs.
//!
//! A public function gives each item three *different* bins. One party places each of its items in one of them, at most
//! one item per bin. The other party looks up each of its items in all three. As the bins differ, an item is looked up
//! at most once in a bin, and `n` items make exactly 3 n pairs of an item and a bin.
//!
//! The placement is found with augmenting paths, so it fails only if none exists. In that case another function must be
//! drawn. The function must be chosen after the items: a party that chooses items for a known function can make
//! placement fail.
//!
//! Leakage: whether another function was needed. Not protected: memory addresses, which depend on a party's items, and
//! so the total time to place them.

use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash};
use crate::secret::Secrets;
use rayon::prelude::*;

/// Number of bins per item.
pub const CHOICES: usize = 3;

/// Number of items hashed at once: 16 KiB of hashes.
const BATCH: usize = 1 << 9;
/// Marks a bin without an item.
const EMPTY: u32 = u32::MAX;

/// Returns a number of bins in which `n` items have a placement, except with probability 2^-`exponent`
/// (an exponent above 256 counts as 256).
///
/// Items have no placement if and only if some k + 1 of them have all of their bins among some k bins (Hall). The
/// result satisfies two bounds:
///
/// - At least e n bins, with e = (`exponent` + 256 + log2 n) / 240. This is a fit to simulations, published with the library
///   cryptoTools for 512 items and more. At exponents at which failures can be counted it is conservative. It does not
///   cover obstructions of few items.
/// - The expected number of obstructions is at most 2^-`exponent`: with p_k = C(k, 3) / C(bins, 3), it is the sum over
///   k >= 3 of C(n, k + 1) C(bins, k) p_k^(k + 1). Up to 512 items the sum is over all k, and for more items over k up
///   to 10: for larger k it is far too pessimistic, and the fit covers them. A table for more than 512 items also
///   satisfies the bound for 512, so that the number of bins never decreases as `n` grows.
///
/// Every machine computes the same number, from integers and from sums, products and quotients of floating-point numbers.
/// These round identically everywhere; logarithms do not.
pub fn number(exponent: u32, n: usize) -> usize {
    let exponent = exponent.min(256);
    let limit = (0..exponent).fold(1.0 - MARGIN, |limit, _| limit / 2.0);
    let few = n.min(EXACT);
    let good = |bins| obstructed(few, bins, few) <= limit && obstructed(n, bins, SMALL) <= limit;
    // From the fit's number of bins on, the sums decrease as the number of bins grows.
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

/// Subtracted from the limit to allow for rounding: a term takes fewer than 4000 floating-point operations.
pub(super) const MARGIN: f64 = 1e-9;
/// The maximum number of items for which obstructions of all sizes are counted. For more items, the fit covers the
/// larger ones.
pub(super) const EXACT: usize = 512;
/// The maximum number of bins of an obstruction for more than [`EXACT`] items.
pub(super) const SMALL: usize = 10;

/// ceil(e n), with the e of [`number`].
pub(super) fn fit(exponent: u32, n: usize) -> usize {
    let e = ((u128::from(exponent) + 256) << FRACTION) + u128::from(log2_up(n));
    (n as u128 * e).div_ceil(240 << FRACTION) as usize
}

/// Number of fractional bits of a logarithm.
const FRACTION: u32 = 10;

/// log2 of `n` in units of 2^-[`FRACTION`], rounded up, computed by squaring integers; 0 for n = 0.
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
/// Each term is a product of k + 1 factors. Its partial products first increase and then decrease, so none is smaller
/// than both the term and 1. With at most [`EXACT`] items and more bins than items, none exceeds 2^1000.
fn obstructed(n: usize, bins: usize, most: usize) -> f64 {
    obstructed_in_blocks(n, 1, bins, most)
}

/// The sum of [`obstructed`] for `blocks` blocks of `bins` bins each. The k + 1 items of an obstruction are all in one
/// block with probability `blocks`^-k.
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

/// The public functions that give each item its bins.
#[derive(Clone)]
pub struct Functions {
    domain: Domain,
    /// The number of blocks of bins. All bins of an item are in one block.
    blocks: usize,
    /// The number of bins per block.
    bins: usize,
}

impl Functions {
    /// Returns functions from this oracle into `bins` bins, of which [`number`] are enough.
    ///
    /// # Errors
    /// [`Error::Bug`] for fewer than three bins, or more than can be numbered.
    pub fn new(domain: Domain, bins: usize) -> Result<Functions> {
        Functions::in_blocks(domain, 1, bins)
    }

    /// Returns functions from this oracle into `blocks` blocks of `bins` bins each. An item has one block, and three
    /// different bins in it.
    ///
    /// # Errors
    /// [`Error::Bug`] for no blocks, for fewer than three bins per block, or for more bins than can be numbered.
    pub fn in_blocks(domain: Domain, blocks: usize, bins: usize) -> Result<Functions> {
        let all = blocks.saturating_mul(bins);
        match bins >= CHOICES && (1..EMPTY as usize).contains(&all) {
            true => Ok(Functions { domain, blocks, bins }),
            false => Err(Error::bug(format!("cuckoo hashing into {blocks} blocks of {bins} bins"))),
        }
    }

    /// Returns the number of bins of all blocks.
    pub fn bins(&self) -> usize {
        self.blocks * self.bins
    }

    /// Returns the three bins of each item.
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

    /// Returns three different bins of a block. All blocks and all triples are equally likely, up to 2^-64 for each
    /// number.
    fn different(&self, numbers: [u64; CHOICES + 1]) -> [u32; CHOICES] {
        let below = |number: u64, n: usize| ((u128::from(number) * n as u128) >> 64) as u32;
        let start = below(numbers[CHOICES], self.blocks) * self.bins as u32;
        let first = below(numbers[0], self.bins);
        // Among the bins without the first, then among the bins without the first two.
        let second = below(numbers[1], self.bins - 1);
        let second = second + u32::from(second >= first);
        let third = below(numbers[2], self.bins - 2);
        let third = third + u32::from(third >= first.min(second));
        let third = third + u32::from(third >= first.max(second));
        [start + first, start + second, start + third]
    }
}

/// A set placed in bins, at most one item per bin. Items are given by their positions in the set.
pub struct CuckooTable {
    items: Secrets<u32>,
}

impl CuckooTable {
    /// Places these items; `None` if they have no placement.
    pub fn new(functions: &Functions, hashes: &[ItemHash]) -> Option<CuckooTable> {
        placed(&functions.bins_of(hashes), functions.bins())
    }

    /// Returns the number of bins.
    pub fn bins(&self) -> usize {
        self.items.len()
    }

    /// Returns the item of a bin, if it has one.
    pub fn item(&self, bin: usize) -> Option<usize> {
        let item = self.items[bin];
        (item != EMPTY).then_some(item as usize)
    }
}

/// Places the items with these bins: a matching, found one item at a time.
fn placed(choices: &[[u32; CHOICES]], bins: usize) -> Option<CuckooTable> {
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
    Some(CuckooTable { items })
}

/// A breadth-first search from the bins of an item to an empty bin. Each step goes from a bin to the other bins of
/// the item in it.
struct Search {
    /// The last search that reached each bin, as the number of its item plus 1.
    reached: Secrets<u32>,
    /// The bin from which each bin was reached, or the bin itself if the search began there.
    from: Secrets<u32>,
    /// The full bins that the search reached, in the order in which it reached them.
    queue: Secrets<u32>,
}

impl Search {
    /// Moves items until one of the bins of `item`, which are all full, is free. Returns this bin, whose item has
    /// moved; `None` if that is impossible.
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
        // Moves each item, back along the path, into the bin that was freed.
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
