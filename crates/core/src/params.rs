//! Security parameters, and the functions that derive lengths from them.
//!
//! Undetected wrong results (equal tags of different items, false positives of a filter) share a probability of
//! 2^-[`LAMBDA`] for a whole run. If a protocol has E kinds of such events, each gets `LAMBDA + ceil(log2 E)` bits. The
//! functions of this file take the exponent; no length is a constant from a paper, except in benchmarks
//! ([`filter::Filter::of_paper`]).

#[cfg(feature = "fhe")]
pub mod bfv;
pub mod filter;
pub mod matrix;
pub mod shards;

use crate::error::{Error, Result};

/// Exponent of the statistical error of a whole run: each of three kinds of event has probability at most 2^-40, shared
/// by all events of the kind. (1) A result is wrong, undetected. (2) A step fails detectably, and is retried or ends
/// the run. (3) An OPRF does not hide an input that only its sender has: the receiver could test guesses of it against
/// its value.
pub const LAMBDA: u32 = 40;

/// The maximum size of a set: 2^28 items. Up to this size, tags fit in 96 bits.
pub const MAX_SET: usize = 1 << 28;

/// A smaller set amounts to asking about each of its items. If its owner learns something about another party's items, that
/// party refuses it, unless it allows small sets or its policy decides (`veilset::governance::gate`). The limit prevents only
/// accidents: a party can query a few items undetected by adding others to its set.
pub const SMALL_SET: usize = 10;

/// Returns the exponent for each of `kinds` kinds of events that share 2^-`exponent`.
pub const fn share(exponent: u32, kinds: usize) -> u32 {
    exponent + ceil_log2(kinds)
}

/// Returns the smallest b with 2^b >= n; 0 for n = 0 and n = 1.
pub const fn ceil_log2(n: usize) -> u32 {
    if n <= 1 { 0 } else { usize::BITS - (n - 1).leading_zeros() }
}

/// Returns the length l in bits of random values for `comparisons` comparisons, each of which finds different values
/// equal with probability 2^-l. Any of them does with probability at most 2^-`exponent`.
pub fn value_bits(exponent: u32, comparisons: usize) -> u32 {
    exponent.saturating_add(ceil_log2(comparisons))
}

/// Returns the length in bits of tags that distinguish `queries` from `elements` (Golomb-Rice coded tags, see
/// [`crate::compact_set::golomb`]).
///
/// Each of `queries * elements` pairs of different points has equal tags with probability 2^-t, and some pair with
/// probability at most 2^-`exponent`. Different items may also have the same point, and so the same tag. Curve25519 has
/// about 2^251 points: the abscissae of the subgroup of prime order. At most 8 abscissae of the curve map to one of
/// them, each the hash of at most 4 numbers modulo p. So a pair collides with probability at most 32 / 2^255. In P-256
/// at most 8 numbers modulo p map to an abscissa, and a pair collides with a smaller probability. In all, a result is
/// wrong with probability at most 2^-`exponent` + `queries * elements` * 2^-250, and the second term is at most 2^-194.
///
/// # Errors
/// If the tags would be longer than 96 bits, which does not occur for sets of up to [`MAX_SET`] at an exponent of 40.
pub fn tag_bits(exponent: u32, queries: usize, elements: usize) -> Result<u32> {
    let t = exponent + ceil_log2(queries) + ceil_log2(elements);
    match t <= 96 {
        true => Ok(t),
        false => Err(Error::usage(format!(
            "{queries} and {elements} items at an error of 2^-{exponent} need tags of {t} bits, more than the maximum of 96. Use smaller sets"
        ))),
    }
}

/// The size of a Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BloomSize {
    /// Length of the filter in bits, a multiple of 8.
    pub bits: u64,
    /// Number of positions per element.
    pub hashes: u32,
}

/// Returns the size of a Bloom filter of `elements` elements in which `queries` queries together have a false positive
/// with probability at most 2^-`exponent`.
///
/// Each query gets f = exponent + ceil(log2 queries) bits. With k = f hashes into B bits, the number of ones has mean
/// `B (1 - (1 - 1/B)^(kn))`, and each of the kn hashes changes it by at most 1. So (McDiarmid) it exceeds its mean by
/// more than s with probability at most exp(-2 s^2 / kn). B is the smallest size tried at which this probability and
/// ((mean + s) / B)^k are both at most 2^-(f+1).
pub fn bloom(exponent: u32, queries: usize, elements: usize) -> BloomSize {
    let f = f64::from(exponent + ceil_log2(queries));
    let hashes = exponent + ceil_log2(queries);
    let (k, n) = (f64::from(hashes), elements as f64);
    if elements == 0 {
        return BloomSize { bits: 8, hashes };
    }
    let slack = (k * n * (f + 1.0) * std::f64::consts::LN_2 / 2.0).sqrt();
    let mut bits = (k * n / std::f64::consts::LN_2).ceil();
    loop {
        let mean = -(k * n * (-1.0 / bits).ln_1p()).exp_m1();
        let fraction = mean + slack / bits;
        // A margin of 1e-9 covers the rounding of the logarithms.
        if fraction < 1.0 && k * fraction.log2() <= -(f + 1.0) - 1e-9 {
            return BloomSize { bits: (bits as u64).next_multiple_of(8), hashes };
        }
        bits = (bits * 1.0005 + 1.0).ceil();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_round_up() {
        for (n, b) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 20, 20), ((1 << 20) + 1, 21)] {
            assert_eq!(ceil_log2(n), b, "{n}");
        }
        assert_eq!((share(40, 1), share(40, 2), share(40, 3)), (40, 41, 42));
    }

    #[test]
    fn values_keep_the_sum_over_all_comparisons_below_the_error() {
        for n in [0, 1, 2, 3, 1000, 1 << 20, (1 << 20) + 1, MAX_SET] {
            // log2 of n * 2^-l.
            let total = (n.max(1) as f64).log2() - f64::from(value_bits(LAMBDA, n));
            assert!(total <= -40.0, "{n}: 2^{total}");
            assert!(total > -41.0, "{n}: wasteful");
        }
        assert_eq!((value_bits(41, 1 << 20), value_bits(u32::MAX, 5)), (61, u32::MAX));
    }

    #[test]
    fn tags_keep_the_sum_over_all_pairs_below_the_error() {
        for (q, e) in [(0, 0), (0, 5), (1, 1), (3, 7), (1000, 1 << 20), (MAX_SET, MAX_SET)] {
            let t = tag_bits(LAMBDA, q, e).unwrap();
            // log2 of q * e * 2^-t, exactly where q and e are powers of two.
            let total = (q.max(1) as f64).log2() + (e.max(1) as f64).log2() - f64::from(t);
            assert!(total <= -40.0, "{q} {e}: 2^{total}");
            assert!(total > -42.0 - 1e-9, "{q} {e}: wasteful");
        }
        assert_eq!(tag_bits(LAMBDA, 1 << 20, 1 << 20).unwrap(), 80);
        assert!(tag_bits(41, MAX_SET, MAX_SET).is_err());
    }

    /// The exact error rate.
    fn exact_rate(n: usize, b: BloomSize) -> f64 {
        filter::Filter { cells: b.bits, positions: b.hashes }.rate(n)
    }

    #[test]
    fn bloom_filters_hold_their_rate_by_the_exact_computation() {
        for (exponent, queries, n) in [(10, 1, 1), (10, 8, 3), (20, 1, 5), (12, 100, 20), (40, 4, 2)] {
            let b = bloom(exponent, queries, n);
            let rate = exact_rate(n, b) * queries as f64;
            assert!(rate <= (-f64::from(exponent)).exp2(), "{exponent} {queries} {n}: {rate}");
        }
    }

    #[test]
    fn large_bloom_filters_cost_little_more_than_the_asymptotic_size() {
        let b = bloom(40, 1 << 20, 1 << 20);
        let per_item = b.bits as f64 / (1 << 20) as f64;
        // 60 bits of error rate: 1.44 * 60 = 86.6, and one more bit for the deviation.
        assert!((86.5..89.0).contains(&per_item), "{per_item}");
    }
}
