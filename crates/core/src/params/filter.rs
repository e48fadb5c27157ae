//! The size of an encrypted Bloom filter (DC17 2.2), from the exact expectation of its error.
//!
//! The paper's equation (1) takes the expected share of ones to the power k. That underestimates the error of small
//! filters: for one item and one query, 2^-40 becomes 2^-35.1. It also covers a single query, not a run.

/// The parameters of a filter: cells, and the positions of an item among them. Both parties compute them from public
/// numbers, with additions, products and quotients only, so that all machines agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Number of cells, the paper's B: at least 1.
    pub cells: u64,
    /// Number of positions of an item, the paper's k.
    pub positions: u32,
}

/// The filter that the parties of a run agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// The parameters of the filter.
    pub filter: Filter,
    /// The hash of the owner's fingerprint, which binds a filter made in advance to the owner's identity. `None` for a
    /// filter that is made in the run, and bound to the session.
    pub owner: Option<[u8; 32]>,
    /// The required contents of a filter made in advance.
    pub contents: Option<Contents>,
    /// Whether the other party already has the filter. If not, the owner sends it.
    pub held: bool,
}

/// The required contents of a filter made in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// A hash of the filter's purpose: owner, encryption, keys and sizes.
    pub purpose: [u8; 32],
    /// The digest of the purpose and of all data in the filter.
    pub digest: [u8; 32],
}

impl Agreed {
    /// Returns the agreement on a filter that is made in the run.
    pub const fn fresh(filter: Filter) -> Agreed {
        Agreed { filter, owner: None, contents: None, held: false }
    }
}

/// Bound on the relative rounding error of a rate. Each factor has a relative error of 2^-53, a product of k of them
/// one of 2^-46, and each squaring doubles it: after 2^31 throws it is 2^-15.
const ROUNDING: f64 = 1.0 / 1024.0;

impl Filter {
    /// Returns the smallest filter of `items` items, with `exponent` + ceil(log2 `queries`) positions for each, in which
    /// any of `queries` queries is found wrongly with probability at most 2^-`exponent`, up to the allowance for rounding.
    /// 0 queries count as 1.
    pub fn new(exponent: u32, items: usize, queries: usize) -> Filter {
        let queries = queries.max(1);
        let limit = (0..exponent).fold(1.0, |limit, _| limit / 2.0) / queries as f64;
        let positions = super::value_bits(exponent, queries);
        if items == 0 {
            return Filter { cells: 1, positions };
        }
        let enough = |cells: u64| Filter { cells, positions }.rate(items) * (1.0 + ROUNDING) <= limit;
        // The search starts at equation (1), unless rounding k up made it sufficient; k n cells are always too few.
        // The steps double until the size is sufficient, and the last step is bisected.
        let throws = u64::from(positions) * items as u64;
        let by_equation = (throws as f64 * std::f64::consts::LOG2_E) as u64;
        let mut low = if enough(by_equation) { throws } else { by_equation };
        let mut step = low / 1024 + 1;
        while !enough(low + step) {
            low += step;
            step *= 2;
        }
        while step > 1 {
            let half = step / 2;
            match enough(low + half) {
                true => step = half,
                false => (low, step) = (low + half, step - half),
            }
        }
        Filter { cells: low + step, positions }
    }

    /// Returns the filter of the paper's figures (DC17 5): k = 30, and equation (1). It errs in at least 2^-30 of the
    /// queries, which is too often except for benchmarks.
    pub fn of_paper(items: usize) -> Filter {
        let cells = (30.0 * items as f64 * std::f64::consts::LOG2_E).ceil() as u64;
        Filter { cells: cells.max(1), positions: 30 }
    }

    /// Returns the probability that an item that is not in the filter is found: E[(ones / B)^k].
    ///
    /// Its k positions fall on d different cells. All of them are ones if and only if the k n positions of the items
    /// cover them. With u of them uncovered, a position covers one more with probability u / B. This is a Markov chain,
    /// of which we need the power k n. All terms are positive, so nothing cancels.
    pub fn rate(&self, items: usize) -> f64 {
        let (cells, k) = (self.cells as f64, self.positions as usize);
        let next = |from: usize| (cells - from as f64).max(0.0) / cells;
        // Row u: the probabilities that 0, 1, .. u of u cells remain uncovered, at first after one position.
        let row = |u: usize| {
            let mut row = vec![0.0; u + 1];
            row[u] = next(u);
            if u > 0 {
                row[u - 1] = (u as f64 / cells).min(1.0);
            }
            row
        };
        let mut chain: Vec<Vec<f64>> = (0..=k).map(row).collect();
        // The product of a row and the chain. Each size of a filter takes millions of these sums, and iterators take
        // ten times as long in an unoptimised program.
        let after = |row: &[f64], chain: &[Vec<f64>]| {
            let mut product = vec![0.0; row.len()];
            let to: &mut [f64] = &mut product;
            for (&p, next) in row.iter().zip(chain) {
                let (mut j, next): (usize, &[f64]) = (0, next);
                while j < next.len() {
                    to[j] += p * next[j];
                    j += 1;
                }
            }
            product
        };
        // The probabilities that all of u cells are covered, after a number of positions given by the bits of `throws`
        // so far.
        let mut covered = vec![0.0; k + 1];
        covered[0] = 1.0;
        let mut throws = items as u64 * u64::from(self.positions);
        while throws > 0 {
            if throws & 1 == 1 {
                let all = |row: &Vec<f64>| row.iter().zip(&covered).map(|(p, c)| p * c).sum();
                covered = chain.iter().map(all).collect();
            }
            throws >>= 1;
            if throws > 0 {
                chain = chain.iter().map(|row| after(row, &chain)).collect();
            }
        }
        // The probabilities of 0, 1, .. k different cells among the positions of the query.
        let mut different = vec![0.0; k + 1];
        different[0] = 1.0;
        for _ in 0..k {
            for d in (0..=k).rev() {
                let fewer = if d > 0 { different[d - 1] * next(d - 1) } else { 0.0 };
                different[d] = different[d] * (1.0 - next(d)) + fewer;
            }
        }
        different.iter().zip(&covered).map(|(d, c)| d * c).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{LAMBDA, MAX_SET};
    use crate::rng::Prng;

    /// Computed from the distribution of the number of ones: another chain, with one state per number of ones.
    fn rate_by_ones(filter: Filter, items: usize) -> f64 {
        let (cells, k) = (filter.cells as usize, filter.positions as i32);
        let mut ones = vec![0.0; cells + 1];
        ones[0] = 1.0;
        for _ in 0..items * filter.positions as usize {
            for j in (0..=cells).rev() {
                let stay = ones[j] * j as f64 / cells as f64;
                let come = if j > 0 { ones[j - 1] * (cells - j + 1) as f64 / cells as f64 } else { 0.0 };
                ones[j] = stay + come;
            }
        }
        ones.iter().enumerate().map(|(j, p)| p * (j as f64 / cells as f64).powi(k)).sum()
    }

    #[test]
    fn the_rate_is_the_exact_expectation() {
        for (cells, positions, items) in
            [(1, 3, 1), (2, 5, 1), (7, 3, 0), (58, 40, 1), (30, 4, 6), (600, 40, 10), (3000, 30, 70)]
        {
            let filter = Filter { cells, positions };
            let (ours, other) = (filter.rate(items), rate_by_ones(filter, items));
            assert!((ours - other).abs() <= 1e-9 * other, "{filter:?} {items}: {ours} {other}");
        }
        // The paper's equation for one item and one query, where 2^-40 is wanted.
        let printed = Filter { cells: 58, positions: 40 }.rate(1).log2();
        assert!((printed + 35.1).abs() < 0.05, "{printed}");
    }

    #[test]
    fn the_error_of_a_run_is_kept_by_the_least_filter() {
        for (items, queries) in [(1, 1), (1, 3), (3, 1), (10, 0), (100, 1000), (4096, 4096), (65536, 3)] {
            let filter = Filter::new(LAMBDA, items, queries);
            let error = |filter: Filter| (filter.rate(items) * queries.max(1) as f64).log2();
            assert!(error(filter) <= -40.0, "{items} {queries}: {filter:?}");
            let less = Filter { cells: filter.cells - 1 - filter.cells / 256, ..filter };
            assert!(error(less) > -40.0, "{items} {queries}: {filter:?} is wasteful");
        }
    }

    #[test]
    fn large_filters_are_hardly_larger_than_by_the_equation() {
        // The sizes of the design, from equation (1).
        for (log, by_equation) in [(12, 307_283), (16, 5_294_714), (20, 90_767_668)] {
            let cells = Filter::new(LAMBDA, 1 << log, 1 << log).cells;
            assert!((by_equation..by_equation + by_equation / 1000).contains(&cells), "{log}: {cells}");
        }
        let largest = Filter::new(LAMBDA, 1 << 24, MAX_SET);
        assert!(largest.cells < 1 << 32 && largest.positions == 68, "{largest:?}");
    }

    #[test]
    fn empty_filters_and_no_queries_have_a_size() {
        assert_eq!(Filter::new(LAMBDA, 0, 0), Filter { cells: 1, positions: 40 });
        assert_eq!(Filter::new(LAMBDA, 0, 5), Filter { cells: 1, positions: 43 });
        assert_eq!(Filter { cells: 1, positions: 40 }.rate(0), 0.0);
        assert_eq!(Filter::new(LAMBDA, 5, 0), Filter::new(LAMBDA, 5, 1));
    }

    #[test]
    fn simulated_filters_err_as_often_as_computed() {
        let mut rng = Prng::from_seed(&[1; 32]);
        for (exponent, items, queries) in [(3, 1, 1), (3, 4, 2), (4, 30, 5)] {
            let filter = Filter::new(exponent, items, queries);
            let (runs, mut wrong) = (20_000, 0usize);
            for _ in 0..runs {
                let mut cells = vec![false; filter.cells as usize];
                let mut at = || rng.below(filter.cells) as usize;
                (0..items * filter.positions as usize).for_each(|_| cells[at()] = true);
                let mut found = || (0..filter.positions).fold(true, |found, _| found & cells[at()]);
                wrong += (0..queries).filter(|_| found()).count();
            }
            let expected = filter.rate(items) * (runs * queries) as f64;
            // Six standard deviations, of twice the variance, because the queries of a run are slightly dependent.
            let far = 6.0 * (2.0 * expected).sqrt();
            assert!((wrong as f64 - expected).abs() < far, "{filter:?}: {wrong}, not {expected}");
            assert!(expected <= runs as f64 * (-f64::from(exponent)).exp2());
        }
    }
}
