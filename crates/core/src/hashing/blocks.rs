//! Parameters of a cuckoo table whose bins fall into blocks, each with a bound on its items.
//!
//! A public function gives each item a block, and three different bins in it ([`super::cuckoo::Functions::in_blocks`]).
//! The number of bins of a block is a power of two. Both parties compute all sizes from the public size of the set.

use super::bound;
use super::cuckoo::{CHOICES, EXACT, MARGIN, SMALL, fit, number, obstructed_in_blocks};
use crate::params::{ceil_log2, share};

/// The possible values of `levels` for more than one block, where a block has 2^`levels` bins.
const LEVELS: std::ops::RangeInclusive<u32> = 10..=14;
/// The maximum number of levels of a table of one block, if any other table is possible.
const ALONE: u32 = 16;

/// Parameters of a table in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// The number of blocks.
    pub number: usize,
    /// The binary logarithm of the number of bins per block.
    pub levels: u32,
    /// The maximum number of items per block; at least 1.
    pub items: usize,
}

impl Blocks {
    /// Returns a table of about the least cost for `n` items. The probability that a block gets too many items, or that
    /// the items have no placement, is at most 2^-`exponent`.
    ///
    /// Three failures are possible, each with at most a third of this probability:
    ///
    /// - A block gets more items than its bound: a binomial tail, over all blocks ([`bound`]).
    /// - The items of a block have no placement although they are within the bound. At the bound, a block has at least as
    ///   many bins as the fit of [`number`] requires for its share of the probability, over all blocks. The fit holds from
    ///   512 items on.
    /// - A few items have no placement, which the fit does not cover. The expected number of such obstructions is
    ///   bounded.
    ///
    /// A table of one block holds all items, so it cannot overflow, and is sized by [`number`].
    pub fn best(exponent: u32, n: usize, cost: impl Fn(&Blocks) -> u64) -> Blocks {
        let alone = Blocks {
            number: 1,
            levels: ceil_log2(number(share(exponent, 3), n).max(CHOICES)),
            items: n.max(1),
        };
        let several = LEVELS.filter_map(|levels| Blocks::several(share(exponent, 3), n, levels));
        let all = several.chain((alone.levels <= ALONE).then_some(alone));
        all.min_by_key(|blocks| (cost(blocks), blocks.levels)).unwrap_or(alone)
    }

    /// The smallest number, at least two, of blocks of 2^`levels` bins for `n` items; `None` if a block has too few
    /// items for the fit, or obstructions of few items are too likely.
    fn several(exponent: u32, n: usize, levels: u32) -> Option<Blocks> {
        let bins = 1 << levels;
        // The maximum number of items per block that the fit allows, which decreases with the number of blocks.
        let allowed = |number: usize| {
            let fits = |items: usize| fit(exponent + ceil_log2(number), items) <= bins;
            (0..levels)
                .rev()
                .fold(0, |items, bit| if fits(items | 1 << bit) { items | 1 << bit } else { items })
        };
        let good = |number: usize| bound(exponent, n, number) <= allowed(number);
        // With so few blocks, the mean number of items is too large, or there is only one block.
        let mut low = (n / allowed(1).max(1)).max(1);
        let mut high = low + 1;
        while !good(high) {
            (low, high) = (high, high + high / 8 + 1);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match good(middle) {
                true => high = middle,
                false => low = middle,
            }
        }
        let blocks = Blocks { number: high, levels, items: allowed(high) };
        let limit = (0..exponent).fold(1.0 - MARGIN, |limit, _| limit / 2.0);
        let few = obstructed_in_blocks(n, blocks.number, bins, SMALL);
        (blocks.items >= EXACT && few <= limit).then_some(blocks)
    }

    /// Returns the number of bins per block.
    pub fn bins(&self) -> usize {
        1 << self.levels
    }

    /// Returns the number of bins of all blocks.
    pub fn all_bins(&self) -> usize {
        self.number * self.bins()
    }

    /// Returns the number of items that the bounds of all blocks allow together.
    pub fn all_items(&self) -> usize {
        self.number * self.items
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
