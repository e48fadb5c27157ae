//! The calculator of a cuckoo table whose bins fall into blocks, each with a bound on its items.
//!
//! A public function gives each item a block, and three different bins of it ([`super::cuckoo::Functions::in_blocks`]). The
//! number of bins of a block is a power of two. Both parties compute all sizes from the public size of the set.

use super::bound;
use super::cuckoo::{CHOICES, EXACT, MARGIN, SMALL, fit, number, obstructed_in_blocks};
use crate::params::{ceil_log2, share};

/// The most bins of a block, and of a table of more than one block the fewest: 2^`levels`.
const LEVELS: std::ops::RangeInclusive<u32> = 10..=14;
/// The most levels of a table of one block.
const ALONE: u32 = 16;

/// A table in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// The number of blocks.
    pub number: usize,
    /// The logarithm of the number of bins of each.
    pub levels: u32,
    /// The most items of a block; at least 1.
    pub items: usize,
}

impl Blocks {
    /// The table of least cost for `n` items. Either a block gets too many items or they have no placement with a
    /// probability of at most 2^-`exponent`.
    ///
    /// Three things can happen, each with a third of it at most:
    ///
    /// - A block gets more items than its bound: a binomial tail, over all blocks ([`bound`]).
    /// - Its items have no placement although they are no more. At the bound, the bins of a block are as many as the fit
    ///   of [`number`] asks for at 2^-`exponent` over all blocks. The fit holds from 512 items on.
    /// - Few items have no placement, which the fit does not see. Their expected number is bounded.
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

    /// The fewest blocks of 2^`levels` bins for `n` items, if the bounds allow more than one.
    fn several(exponent: u32, n: usize, levels: u32) -> Option<Blocks> {
        let bins = 1 << levels;
        // The most items of a block that the fit allows. They become fewer as the blocks become more.
        let allowed = |number: usize| {
            let fits = |items: usize| fit(exponent + ceil_log2(number), items) <= bins;
            (0..levels)
                .rev()
                .fold(0, |items, bit| if fits(items | 1 << bit) { items | 1 << bit } else { items })
        };
        let good = |number: usize| bound(exponent, n, number) <= allowed(number);
        // With so few, the mean is too large.
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

    /// Bins of a block.
    pub fn bins(&self) -> usize {
        1 << self.levels
    }

    /// Bins of all blocks.
    pub fn all_bins(&self) -> usize {
        self.number * self.bins()
    }

    /// Items that the bounds of all blocks allow together.
    pub fn all_items(&self) -> usize {
        self.number * self.items
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
