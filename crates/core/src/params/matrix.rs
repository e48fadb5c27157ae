//! The matrix and the tags of CM20 (Chase and Miao, "Private Set Intersection in the Internet Setting From
//! Lightweight Oblivious PRF", CRYPTO 2020, 3.3 and 4.1): [`crate::oprf::multi_point`].

use super::ceil_log2;

/// Number of bits that hide a value of the function: the ones of D that a sender's item hits (the paper's d). In the
/// malicious mode, 2^-128 also bounds the probability that the rows of two items are equal (its lambda; see [`width`]).
const D: usize = 128;
/// Bytes of a base OT in both directions, which a column costs in addition to its bits.
const BASE_OT: usize = 96;
/// log2 of the number of evaluations of H_2 that a malicious sender may try (the paper's Q_2).
const QUERIES: u32 = 64;

/// The size of the matrix D.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix {
    /// Number of rows, the paper's m: a power of two, and at least 8, so that a column consists of whole bytes.
    pub height: usize,
    /// Number of columns, the paper's w.
    pub width: usize,
}

impl Matrix {
    /// Returns the matrix with the least traffic, base OTs included, for `n_s` items of the sender and `n_r` of the
    /// receiver. Any of the sender's items hits fewer than 128 ones with probability at most 2^-`exponent` ([`width`]).
    pub fn new(exponent: u32, n_s: usize, n_r: usize, malicious_sender: bool) -> Matrix {
        let traffic = |m: &Matrix| m.width * (m.height / 8 + BASE_OT);
        // Below n_r / 4 rows, less than one bit in 50 of D remains a one, and the width grows faster than the height
        // falls.
        let mut height = (n_r.next_power_of_two() / 4).max(8);
        let at = |height| Matrix { height, width: width(exponent, height, n_s, n_r, malicious_sender) };
        let mut best = at(height);
        // No width is below 128, so from some height on no matrix can be better.
        while D * (height / 8 + BASE_OT) < traffic(&best) {
            height *= 2;
            best = std::cmp::min_by_key(best, at(height), traffic);
        }
        best
    }
}

/// Returns the smallest width of a matrix of this height that satisfies the following conditions.
///
/// Each bit of D is a one with probability p = (1 - 1/m)^n_r. Each item that only the sender has hits w of them,
/// independently. Fewer than 128 ones would not hide its value; over all items together, this has probability at most
/// 2^-`exponent`. Against a malicious sender, in addition, two items that it did not choose have the same row of its
/// matrix with probability (1/2 + 1/(2m))^w <= 2^-128.
pub fn width(exponent: u32, height: usize, n_s: usize, n_r: usize, malicious_sender: bool) -> usize {
    // A margin of 1e-6 covers the rounding of the logarithms: 130 of them, each with a relative error below 2^-40.
    let limit = -f64::from(exponent) * std::f64::consts::LN_2 - (n_s.max(1) as f64).ln() - 1e-6;
    let enough = |w: usize| {
        let alike = w as f64 * (0.5 + 0.5 / height as f64).log2();
        ln_tail(w, height, n_r) <= limit && (!malicious_sender || alike <= -(D as f64))
    };
    // More columns are never worse, so double the width, then bisect.
    let mut high = D;
    while !enough(high) {
        high *= 2;
    }
    let mut low = D - 1; // too small
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        *if enough(middle) { &mut high } else { &mut low } = middle;
    }
    high
}

/// The natural logarithm of the probability that fewer than 128 of `w` bits of D are ones, w at least 128: the sum over
/// k < 128 of C(w, k) p^k q^(w-k), with q = 1 - p.
fn ln_tail(w: usize, height: usize, n_r: usize) -> f64 {
    let ln_p = n_r as f64 * (-1.0 / height as f64).ln_1p();
    let q = -ln_p.exp_m1();
    if q <= 0.0 {
        return f64::NEG_INFINITY; // All bits are ones, and there are at least 128.
    }
    // The last term, and the sum of all terms as a multiple of it, with Horner's rule.
    let (last, rest) = (D - 1, (w - D + 1) as f64);
    let ln_choose: f64 = (1..=last).map(|i| ((rest + i as f64) / i as f64).ln()).sum();
    let q_by_p = q / ln_p.exp();
    let sum = (0..last).fold(1.0, |sum, k| 1.0 + sum * q_by_p * (k + 1) as f64 / (w - k) as f64);
    ln_choose + last as f64 * ln_p + rest * q.ln() + f64::ln(sum)
}

/// Returns the length t in bits of the values of H_2, the tags of the sender's items (3.3). Each of the n_s n_r pairs
/// of different items has equal tags with probability 2^-t. A malicious sender has 2^64 tries to find a tag of one of
/// the receiver's items.
pub const fn tag_bits(exponent: u32, n_s: usize, n_r: usize, malicious_sender: bool) -> u32 {
    let tries = if malicious_sender && ceil_log2(n_s) < QUERIES { QUERIES } else { ceil_log2(n_s) };
    exponent + tries + ceil_log2(n_r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::LAMBDA;

    /// log2 of n, m / n, w, and both lengths of H_2.
    const TABLE_1: [(u32, f64, usize, u32, u32); 8] = [
        (16, 1.0, 609, 72, 120),
        (18, 1.0, 615, 76, 122),
        (20, 1.0, 621, 80, 124),
        (22, 1.0, 627, 84, 126),
        (24, 1.0, 633, 88, 128),
        (24, 0.9, 717, 88, 128),
        (24, 1.1, 571, 88, 128),
        (24, 2.0, 349, 88, 128),
    ];

    #[test]
    fn widths_and_lengths_are_those_of_table_1() {
        for (log_n, ratio, w, semi_honest, malicious) in TABLE_1 {
            let n = 1 << log_n;
            let m = (n as f64 * ratio) as usize;
            for malicious in [false, true] {
                assert_eq!(width(LAMBDA, m, n, n, malicious), w, "{log_n} {ratio}");
            }
            assert_eq!(tag_bits(LAMBDA, n, n, false), semi_honest);
            assert_eq!(tag_bits(LAMBDA, n, n, true), malicious);
            // Equal sets whose size is a power of two take the paper's choice, m = n.
            if ratio == 1.0 {
                assert_eq!(Matrix::new(LAMBDA, n, n, false), Matrix { height: n, width: w });
            }
        }
    }

    /// A natural number as its digits in base 2^64, least significant first.
    type Natural = Vec<u64>;

    fn add_times(sum: &mut Natural, a: &Natural, by: u64) {
        let mut carry = 0u128;
        for i in 0.. {
            if i >= a.len() && carry == 0 {
                break;
            }
            if i == sum.len() {
                sum.push(0);
            }
            let digit = a.get(i).map_or(0, |&d| u128::from(d)) * u128::from(by);
            carry += digit + u128::from(sum[i]);
            sum[i] = carry as u64;
            carry >>= 64;
        }
    }

    /// Whether `a` is at most 2^`bits`.
    fn at_most_power(a: &Natural, bits: u32) -> bool {
        let top = a.iter().rposition(|&d| d != 0);
        let length = top.map_or(0, |i| 64 * (i as u32 + 1) - a[i].leading_zeros());
        let power = top.is_some_and(|i| a[i].is_power_of_two() && a[..i].iter().all(|&d| d == 0));
        length <= bits || (length == bits + 1 && power)
    }

    /// The smallest w, computed with integers: all probabilities are multiples of 2^-(w n_r log2 m). The distribution
    /// of the ones among w bits follows from the one for w - 1.
    fn exact_width(exponent: u32, log_m: u32, n_s: u64, n_r: u32) -> usize {
        let of = |m: u64| m.pow(n_r);
        let (p, q) = (of((1 << log_m) - 1), of(1 << log_m) - of((1 << log_m) - 1));
        let mut ones: Vec<Natural> = vec![vec![]; D];
        ones[0] = vec![1];
        for w in 1.. {
            ones = (0..D)
                .map(|k| {
                    let mut next = Natural::new();
                    add_times(&mut next, &ones[k], q);
                    if k > 0 {
                        add_times(&mut next, &ones[k - 1], p);
                    }
                    next
                })
                .collect();
            let mut sum = Natural::new();
            ones.iter().for_each(|a| add_times(&mut sum, a, n_s.max(1)));
            let unit = log_m * n_r * w as u32;
            if unit >= exponent && at_most_power(&sum, unit - exponent) {
                return w;
            }
        }
        unreachable!()
    }

    #[test]
    fn widths_are_those_of_the_exact_computation() {
        let cases = [
            (40, 3, 1, 1),
            (40, 3, 0, 1),
            (40, 3, 5, 9),
            (40, 6, 1000, 3),
            (40, 9, 1 << 40, 7),
            (1, 4, 1, 15),
            (80, 5, 77, 12),
            (40, 1, 20, 1),
        ];
        for (exponent, log_m, n_s, n_r) in cases {
            let w = width(exponent, 1 << log_m, n_s as usize, n_r as usize, false);
            assert_eq!(w, exact_width(exponent, log_m, n_s, n_r), "{exponent} {log_m} {n_s} {n_r}");
        }
    }

    #[test]
    fn the_matrix_is_the_best_of_all_heights() {
        let sizes = [(0, 0), (1, 1), (3, 0), (0, 3), (1, 5000), (5000, 1), (100, 100), (3000, 3000)];
        for (n_s, n_r) in sizes.into_iter().chain([(1 << 20, 3 << 19), (50, 1 << 28), (1 << 28, 1 << 28)]) {
            for malicious in [false, true] {
                let best = Matrix::new(LAMBDA, n_s, n_r, malicious);
                assert!(best.height.is_power_of_two() && best.height >= 8 && best.width >= D);
                let traffic = |m: usize, w: usize| w * (m / 8 + BASE_OT);
                for log_m in 3..32 {
                    // If less than one bit in 400 remains a one, the width is far beyond 10,000.
                    if n_r >> log_m < 6 {
                        let w = width(LAMBDA, 1 << log_m, n_s, n_r, malicious);
                        assert!(traffic(1 << log_m, w) >= traffic(best.height, best.width), "{n_s} {n_r}");
                    }
                }
            }
        }
    }

    #[test]
    fn against_a_malicious_sender_rows_differ_in_128_bits() {
        for height in [2usize, 8, 64, 1 << 20] {
            // The receiver has no items, so that the other condition requires only 128 columns.
            let w = width(LAMBDA, height, 1, 0, true);
            let log = |w: usize| w as f64 * (0.5 + 0.5 / height as f64).log2();
            assert!(log(w) <= -128.0 && (w == 128 || log(w - 1) > -128.0), "{height}: {w}");
            assert_eq!(width(LAMBDA, height, 1, 0, false), 128);
        }
        assert_eq!([2, 8, 64].map(|m| width(LAMBDA, m, 1, 0, true)), [309, 155, 131]);
        // A malicious sender has 2^64 tries, however few items it has.
        assert_eq!(tag_bits(40, 0, 0, true), 104);
        assert_eq!(
            (tag_bits(40, 0, 0, false), tag_bits(40, 1, 1, false), tag_bits(40, 3, 5, false)),
            (40, 40, 45)
        );
    }
}
