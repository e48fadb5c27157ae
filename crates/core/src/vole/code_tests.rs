use super::*;
use crate::rng::Prng;
use crate::vole::{Element, Half, VoleScalar};
use std::collections::HashSet;
use veilset_kernels::{gf64, gf128};

/// A field for codes, whose elements are the low bits of numbers.
#[derive(Clone, Copy)]
struct Field {
    bits: usize,
    product: fn(u128, u128) -> u128,
}

const WHOLE: Field = Field {
    bits: 128,
    product: |a, b| u128::from_le_bytes(gf128::multiply(&a.to_le_bytes(), &b.to_le_bytes())),
};

const HALF: Field = Field {
    bits: 64,
    product: |a, b| {
        u128::from(u64::from_le_bytes(gf64::multiply(&(a as u64).to_le_bytes(), &(b as u64).to_le_bytes())))
    },
};

impl Field {
    fn random(self, rng: &mut Prng) -> u128 {
        u128::from_le_bytes(rng.bytes()) >> (128 - self.bits)
    }

    /// Returns a^(2^squarings).
    fn power(self, mut a: u128, squarings: usize) -> u128 {
        (0..squarings).for_each(|_| a = (self.product)(a, a));
        a
    }

    /// Returns a^(2^bits - 2), computed from a^(2^k - 1) for growing k.
    fn inverse(self, a: u128) -> u128 {
        let step = |(inverse, square): (u128, u128), _| {
            let square = (self.product)(square, square);
            ((self.product)(inverse, square), square)
        };
        (1..self.bits).fold((1, a), step).0
    }
}

/// The bits of the convolution, one number per step, computed from the definition.
fn bits(code: &Code) -> Vec<u32> {
    let mut stream = vec![[0; 4]; WEIGHT * code.region];
    code.bits.ctr(0, stream.as_flattened_mut());
    stream.into_iter().map(u32::from_le_bytes).collect()
}

/// The places of each output, computed from the definition.
fn places(code: &Code, n: usize) -> Vec<Vec<usize>> {
    let mut places = vec![Vec::new(); n];
    for r in 0..WEIGHT {
        let mut stream = vec![[0; 4]; n];
        code.places.ctr((r as u128) << 64, stream.as_flattened_mut());
        for (places, place) in places.iter_mut().zip(stream) {
            let place = (u64::from(u32::from_le_bytes(place)) * code.region as u64) >> 32;
            places.push(r * code.region + place as usize);
        }
    }
    places
}

/// The outputs computed from the definition. The factor of y_(i-1) is an argument, so that the code can be tested
/// without x.
fn slow(field: Field, code: &Code, n: usize, e: &[u128], factor: u128) -> Vec<u128> {
    let bits = bits(code);
    let mut y: Vec<u128> = e[n..].to_vec();
    for i in 0..y.len() {
        for back in 1..=MEMORY.min(i) {
            let coefficient = match back {
                1 => factor,
                MEMORY => 1,
                // The oldest element has the lowest bit.
                _ => u128::from(bits[i] >> (MEMORY - 1 - back) & 1),
            };
            y[i] ^= (field.product)(coefficient, y[i - back]);
        }
    }
    places(code, n).iter().zip(e).map(|(places, e)| places.iter().fold(*e, |sum, &l| sum ^ y[l])).collect()
}

fn fast<T: Symbol>(code: &Code, n: usize, e: &[T], times_x: impl Fn(T) -> T) -> Vec<T> {
    let (mut outputs, mut y) = (e[..n].to_vec(), e[n..].to_vec());
    code.convolve(&mut y, times_x);
    code.expand(&y, &mut outputs);
    outputs
}

/// Tested in both fields, and in the two lanes of elements over the smaller one.
#[test]
fn outputs_are_those_of_the_definition() {
    let mut rng = Prng::from_seed(&[1; 32]);
    // Sizes around the memory, around one batch, and around three.
    for n in [1, 2, 11, 12, 30, BATCH, BATCH + 1, 3 * BATCH - 5] {
        let code = Code::new(n, &[n as u8; 32]);
        let e: Vec<u128> = (0..n + parity(n)).map(|_| WHOLE.random(&mut rng)).collect();
        let elements: Vec<Element> = e.iter().map(|e| e.to_le_bytes()).collect();
        let whole = fast(&code, n, &elements, <Element as VoleScalar>::times_x);
        let expected = slow(WHOLE, &code, n, &e, 2);
        assert!((0..n).all(|i| u128::from_le_bytes(whole[i]) == expected[i]), "{n}");
        let lanes = [0, 64].map(|shift| {
            let lane: Vec<u128> = e.iter().map(|e| u128::from((e >> shift) as u64)).collect();
            let halves: Vec<Half> = lane.iter().map(|e| (*e as u64).to_le_bytes()).collect();
            let half = fast(&code, n, &halves, Half::times_x);
            let expected = slow(HALF, &code, n, &lane, 2);
            assert!((0..n).all(|i| u128::from(u64::from_le_bytes(half[i])) == expected[i]), "{n}");
            expected
        });
        let both = fast(&code, n, &elements, Half::element_times_x);
        assert!((0..n).all(|i| u128::from_le_bytes(both[i]) == lanes[0][i] | lanes[1][i] << 64), "{n}");
    }
}

/// Each batch has separate bits and places, tested for more batches than above.
#[test]
fn later_batches_are_those_of_the_definition() {
    let (n, mut rng) = (5 * BATCH + 1, Prng::from_seed(&[2; 32]));
    let code = Code::new(n, &[3; 32]);
    let e: Vec<u128> = (0..n + parity(n)).map(|_| HALF.random(&mut rng)).collect();
    let halves: Vec<Half> = e.iter().map(|e| (*e as u64).to_le_bytes()).collect();
    let outputs = fast(&code, n, &halves, Half::times_x);
    let expected = slow(HALF, &code, n, &e, 2);
    assert!((0..n).all(|i| u128::from(u64::from_le_bytes(outputs[i])) == expected[i]));
}

/// In regions of more than 2^16 elements, all of y is read.
#[test]
fn places_reach_all_of_long_regions() {
    let code = Code::new(1 << 20, &[5; 32]);
    assert!(code.region > 1 << 16);
    let y: Vec<Half> = (1..=parity(1 << 20) as u64).map(u64::to_le_bytes).collect();
    let mut outputs = vec![Half::default(); BATCH];
    code.expand(&y, &mut outputs);
    for (places, output) in places(&code, BATCH).iter().zip(&outputs) {
        let expected = places.iter().fold(0, |sum, &place| sum ^ (place as u64 + 1));
        assert_eq!(u64::from_le_bytes(*output), expected);
    }
}

/// x generates the whole field, not a subfield.
#[test]
fn the_factor_is_in_no_subfield() {
    for field in [WHOLE, HALF] {
        // The largest subfield has half of the bits, and contains all others.
        assert_ne!(field.power(2, field.bits / 2), 2);
        assert_eq!(field.power(2, field.bits), 2);
    }
}

#[test]
fn bits_and_places_come_from_different_keys() {
    let code = Code::new(100, &[5; 32]);
    let seeds = [[1; 16], [2; 16]];
    let other = Code::new(100, seeds.as_flattened().first_chunk().unwrap());
    let streams = [&code.bits, &other.bits, &other.places].map(|cipher| {
        let mut block = [[0; 16]];
        cipher.encrypt(&mut block);
        block[0]
    });
    assert_eq!(HashSet::from(streams).len(), 3);
}

/// Places are within their region, nearly all of the region is used, and no output has the same place in each of the
/// first three regions.
/// [`outputs_are_those_of_the_definition`] shows that the code uses these places.
#[test]
fn places_are_anywhere_in_their_regions() {
    let (n, code) = (1 << 12, Code::new(1 << 12, &[5; 32]));
    let places = places(&code, n);
    for r in 0..WEIGHT {
        let used: HashSet<usize> = places.iter().map(|p| p[r]).collect();
        assert!(used.iter().all(|place| (r * code.region..(r + 1) * code.region).contains(place)));
        // A place is used by none of n outputs with probability e^-WEIGHT.
        assert!(used.len() + 3 >= code.region, "{r}: {} of {}", used.len(), code.region);
    }
    assert!(
        places.iter().all(|p| p[0] != p[1] - code.region || p[1] - code.region != p[2] - 2 * code.region)
    );
}

/// The rank over GF(2) of elements, taken as rows of 128 bits.
fn rank(elements: &[u128]) -> usize {
    let mut basis = [0u128; 128];
    for &element in elements {
        let mut element = element;
        while element != 0 {
            let lead = element.trailing_zeros() as usize;
            if basis[lead] == 0 {
                basis[lead] = element;
                break;
            }
            element ^= basis[lead];
        }
    }
    basis.iter().filter(|b| **b != 0).count()
}

/// The attack on binary codes in its simplest form: sums of t noise values span at most t dimensions. It distinguishes
/// the outputs of the code without the factor x from random elements, but not the outputs of this code.
#[test]
fn a_binary_code_is_broken_by_linear_algebra_and_this_one_is_not() {
    for (field, n, t) in [(WHOLE, 1000, 100), (HALF, 1000, 50)] {
        let code = Code::new(n, &[9; 32]);
        let mut rng = Prng::from_seed(&[2; 32]);
        let mut e = vec![0; n + parity(n)];
        let block = e.len() / t;
        for i in 0..t {
            e[i * block + rng.below(block as u64) as usize] = field.random(&mut rng);
        }
        assert!(rank(&slow(field, &code, n, &e, 1)) <= t);
        assert_eq!(rank(&slow(field, &code, n, &e, 2)), field.bits);
    }
}

/// The code is neither a binary code with scaled columns nor one over another subfield. In the systematic form of a
/// small instance, the cross-ratios of entries generate the field. Scaling rows or columns does not change them.
#[test]
fn no_choice_of_rows_and_columns_makes_the_code_one_over_a_subfield() {
    let n = 33;
    let code = Code::new(n, &[4; 32]);
    for field in [WHOLE, HALF] {
        let product = field.product;
        // The matrix is systematic: the identity, then the images of the unit vectors of the second half.
        let column = |j: usize| {
            let mut e = vec![0; n + parity(n)];
            e[n + j] = 1;
            slow(field, &code, n, &e, 2)
        };
        let columns: Vec<Vec<u128>> = (0..parity(n)).map(column).collect();
        let (mut outside, mut all) = (0, 0);
        for i in (0..n - 1).step_by(3) {
            for j in (0..parity(n) - 1).step_by(4) {
                let [a, b, c, d] =
                    [columns[j][i], columns[j][i + 1], columns[j + 1][i], columns[j + 1][i + 1]];
                if [a, b, c, d].iter().all(|&entry| entry != 0) {
                    let ratio = product(product(a, d), field.inverse(product(b, c)));
                    // The largest subfield has half of the bits, and contains all others.
                    outside += usize::from(field.power(ratio, field.bits / 2) != ratio);
                    all += 1;
                }
            }
        }
        assert!(all > 20 && outside > all / 2, "{outside} of {all}");
    }
}

#[test]
fn there_is_enough_noise() {
    for n in [(1 << 12) + 1, 5000, 1 << 20, 1 << 28] {
        let (t, delta) = (noise(n), distance(n));
        assert!(delta <= 0.15);
        // The blocks as actually divided. The worst word leaves the same number of places free in each.
        let places = n + parity(n);
        let blocks: Vec<usize> = (0..t).map(|i| (i + 1) * places / t - i * places / t).collect();
        assert!(blocks.iter().all(|b| [places / t, places / t + 1].contains(b)));
        let free = (1.0 - delta) * places as f64 / t as f64;
        let miss: f64 = blocks.iter().map(|&block| (free / block as f64).log2()).sum();
        assert!((-129.0..=-128.0).contains(&miss), "{n}: {t} {miss}");
    }
    assert_eq!([5000, 1 << 20, 10_000_000, 1 << 28].map(noise), [547, 546, 576, 793]);
}

/// The attack with words that have bits in the first half, and the optimal share of it on which they are 0.
#[test]
fn words_with_bits_in_the_first_half_do_not_help() {
    let exponent = |t: usize| {
        let half = (t / 2) as f64;
        let at = |s: f64| {
            // The terms of the binomial distribution up to 127, each computed from the previous one.
            let mut term = half * s.log2();
            let mut sum = term.exp2();
            for k in 0..127 {
                term += ((half - f64::from(k)) / f64::from(k + 1) * (1.0 - s) / s).log2();
                sum += term.exp2();
            }
            sum.log2() + half * (1.0 - s).log2()
        };
        (10..100).map(|i| at(f64::from(i) / 200.0)).fold(f64::NEG_INFINITY, f64::max)
    };
    assert!((-90.0..-86.0).contains(&exponent(400)), "{}", exponent(400));
    assert!((-191.0..-187.0).contains(&exponent(546)), "{}", exponent(546));
    assert!(exponent(noise(1 << 28)) < -189.0);
}

/// Single outputs, each a word of the code, are heavy enough: none has all its places near the beginning of
/// the convolution, and the contribution of an element does not die out.
#[test]
fn rows_of_the_matrix_are_heavy() {
    let n = 220;
    let code = Code::new(n, &[6; 32]);
    let mut weights = vec![1; n];
    for j in 0..parity(n) {
        let mut e = vec![0; n + parity(n)];
        e[n + j] = 1;
        for (weight, output) in weights.iter_mut().zip(slow(HALF, &code, n, &e, 2)) {
            *weight += usize::from(output != 0);
        }
    }
    let least = weights.iter().min().unwrap();
    // A row covers at least all regions of the second half but one; the polynomials in x are rarely zero.
    assert!(*least as f64 > 0.43 * (n + parity(n)) as f64, "{least} of {}", n + parity(n));
}
