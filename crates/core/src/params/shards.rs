//! The sizes of the shards of a set.

use super::{LAMBDA, share};

/// Returns the size to which all shards of a set of at most `n` items are padded: some shard has more items with
/// probability at most 2^-`exponent`.
///
/// A keyed hash, whose key was drawn after the set was fixed, puts each item into one of P shards. So the number of
/// items in a shard is binomial, and at least B with probability at most exp(-n KL(B/n || 1/P)) (Chernoff). The size is
/// the smallest B at which P times this bound is at most 2^-`exponent`, or n if there is none.
pub fn size(exponent: u32, n: usize, shards: u32) -> usize {
    let p = f64::from(shards.max(1));
    let least = f64::from(exponent) * std::f64::consts::LN_2 + p.ln();
    let fits = |size: usize| n as f64 * divergence(size as f64 / n as f64, 1.0 / p) >= least;
    // The divergence increases with the size from the mean on.
    let (mut below, mut from) = (n.div_ceil(shards.max(1) as usize), n);
    while below < from {
        let middle = below + (from - below) / 2;
        if fits(middle) {
            from = middle;
        } else {
            below = middle + 1;
        }
    }
    from
}

/// Returns the size to which each shard of a set of this announced size is padded. Some shard of either side is larger
/// with probability at most 2^-40.
pub fn bound(announced: usize, number: u32) -> usize {
    size(share(LAMBDA, 2), announced, number)
}

/// The Kullback-Leibler divergence of two coins that show heads with probability `a` and `b`, 0 < b, in nats.
fn divergence(a: f64, b: f64) -> f64 {
    let term = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    term(a, b) + term(1.0 - a, 1.0 - b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::LAMBDA;

    /// The probability that a given shard has more than `size` items, from the binomial coefficients.
    fn overflow(n: usize, shards: u32, size: usize) -> f64 {
        let p = 1.0 / f64::from(shards);
        let mut log = n as f64 * (1.0 - p).ln();
        let mut sum = 0.0;
        for k in 0..=n {
            if k > size {
                sum += log.exp();
            }
            log += ((n - k) as f64 / (k + 1) as f64).ln() + (p / (1.0 - p)).ln();
        }
        sum
    }

    #[test]
    fn a_shard_overflows_with_the_probability_that_is_asked_for_at_most() {
        for exponent in [10, LAMBDA] {
            for shards in [2, 3, 16, 64, 1000] {
                for n in [1, 2, 39, 40, 100, 1000, 20_000] {
                    let size = size(exponent, n, shards);
                    let all = f64::from(shards) * overflow(n, shards, size);
                    assert!(
                        all <= f64::from(-(exponent as i32)).exp2(),
                        "{exponent} {shards} {n}: {size} {all}"
                    );
                    // The inequality is nearly tight: with a tenth less above the mean, the probability exceeds 2^-7 of the
                    // one allowed.
                    let less = size - (size - n / shards as usize) / 10 - 1;
                    let all = f64::from(shards) * overflow(n, shards, less.min(size - 1));
                    assert!(
                        all > f64::from(-(exponent as i32) - 7).exp2(),
                        "{exponent} {shards} {n}: {size} {all}"
                    );
                }
            }
        }
    }

    #[test]
    fn it_is_the_least_size_that_the_inequality_allows() {
        for (n, shards) in [(5000, 7), (100_000, 256)] {
            let bound = |size: usize| {
                let (a, b) = (size as f64 / n as f64, 1.0 / f64::from(shards));
                let exponent = a * (a / b).ln() + (1.0 - a) * ((1.0 - a) / (1.0 - b)).ln();
                f64::from(shards) * (-(n as f64) * exponent).exp()
            };
            let slow = (n / shards as usize + 1..n).find(|&size| bound(size) <= (-40f64).exp2());
            assert_eq!(Some(size(40, n, shards)), slow);
        }
    }

    #[test]
    fn large_sets_cost_little_and_small_ones_fit_anyway() {
        let more =
            |n: usize, shards: u32| size(LAMBDA, n, shards) as f64 * f64::from(shards) / n as f64 - 1.0;
        assert!((0.012..0.014).contains(&more(100_000_000, 256)), "{}", more(100_000_000, 256));
        assert!((0.003..0.005).contains(&more(1_000_000_000, 256)), "{}", more(1_000_000_000, 256));
        for n in [0, 1, 2, 20] {
            assert_eq!(size(LAMBDA, n, 1), n);
            // Few enough items that all of them may be in one shard.
            assert_eq!(size(LAMBDA, n, 3), n);
        }
        let sizes: Vec<usize> = (0..3000).map(|n| size(LAMBDA, n, 8)).collect();
        assert!(sizes.is_sorted());
    }
}
