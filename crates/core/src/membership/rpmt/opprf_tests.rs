use super::super::tests::{SESSION, items};
use super::super::{Binning, Comparison};
use super::*;
use crate::hash::Domain;
use crate::hashing::Bins;
use crate::testing::every_bit_is_random;
use std::collections::HashSet;

/// S's attack on a polynomial: the number of roots of P - P(q*) in the field.
fn roots(field: Field, p: &[u128], point: u128) -> usize {
    let mut p = p.to_vec();
    p[0] ^= value(field, &p, point);
    Poly(field).roots(p)
}

fn value(field: Field, p: &[u128], x: u128) -> u128 {
    p.iter().rev().fold(0, |sum, c| Poly(field).mul(sum, x) ^ c)
}

/// Polynomials over the field: the lowest coefficient first, no trailing zeros. The kernel computes a product a
/// b as the value of b x at a.
struct Poly(Field);

impl Poly {
    fn mul(&self, a: u128, b: u128) -> u128 {
        let bytes = self.0.bytes();
        let mut p = vec![0; 2 * bytes];
        p[bytes..].copy_from_slice(&b.to_le_bytes()[..bytes]);
        let mut out = [0];
        polynomial::evaluate(self.0, 2, &p, &[a], &mut out);
        out[0]
    }

    fn inverse(&self, a: u128) -> u128 {
        // The product of a^(2^i) for i >= 1.
        let mut square = a;
        (1..self.0.bits()).fold(1, |product, _| {
            square = self.mul(square, square);
            self.mul(product, square)
        })
    }

    fn trim(mut p: Vec<u128>) -> Vec<u128> {
        while p.last() == Some(&0) {
            p.pop();
        }
        p
    }

    fn remainder(&self, mut a: Vec<u128>, b: &[u128]) -> Vec<u128> {
        let scale = self.inverse(*b.last().unwrap());
        while a.len() >= b.len() {
            let factor = self.mul(*a.last().unwrap(), scale);
            let shift = a.len() - b.len();
            for (i, b) in b.iter().enumerate() {
                a[shift + i] ^= self.mul(factor, *b);
            }
            a.pop();
            a = Self::trim(a);
        }
        a
    }

    /// The degree of gcd(p, x^(2^bits) - x); the latter is the product of all x - root.
    fn roots(&self, p: Vec<u128>) -> usize {
        let p = Self::trim(p);
        let mut power = self.remainder(vec![0, 1], &p);
        for _ in 0..self.0.bits() {
            let mut square = vec![0; (2 * power.len()).saturating_sub(1)];
            power.iter().enumerate().for_each(|(i, c)| square[2 * i] = self.mul(*c, *c));
            power = self.remainder(Self::trim(square), &p);
        }
        power.resize(power.len().max(2), 0);
        power[1] ^= 1;
        let (mut a, mut b) = (p, Self::trim(power));
        while !b.is_empty() {
            (a, b) = (b.clone(), self.remainder(a, &b));
        }
        a.len() - 1
    }

    fn product(&self, a: &[u128], b: &[u128]) -> Vec<u128> {
        let mut out = vec![0; a.len() + b.len() - 1];
        for (i, a) in a.iter().enumerate() {
            b.iter().enumerate().for_each(|(j, b)| out[i + j] ^= self.mul(*a, *b));
        }
        out
    }
}

/// The ways for R to compute the polynomial of a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Variant {
    /// Figure 6: s + prod (x - q_i), with random roots in place of missing items.
    Printed,
    /// 5.3: s + prod (x - q_i) over the real items, times a random polynomial.
    RandomFactor,
    /// The variant in use.
    Corrected,
}

/// The mean number of roots that S finds, over many slots, in polynomials with 7 coefficients through 4 real and
/// 2 random points.
fn mean_roots(variant: Variant, member: bool) -> f64 {
    let (field, slots, length, real) = (Field::Bits64, 60, 7, 4);
    let mut rng = Prng::from_seed(&[9; 32]);
    let mut number = || u128::from_le_bytes(rng.bytes()) & field.mask();
    let outputs: Vec<Output> = (0..(real + 2) * slots)
        .map(|_| <[u8; 32]>::try_from([number().to_le_bytes(), number().to_le_bytes()].concat()).unwrap())
        .collect();
    let poly = Poly(field);
    let mut out = vec![0; slots * length * field.bytes()];
    let mut s = vec![0; slots];
    random_polynomials(field, &outputs, real, &mut s, &mut out, &mut Prng::from_seed(&[10; 32]));
    let found = (0..slots).map(|slot| {
        let q: Vec<u128> = (0..real).map(|i| halves(&outputs[i * slots + slot]).0 & field.mask()).collect();
        let times_root = |p: Vec<u128>, root: &u128| poly.product(&p, &[*root, 1]);
        let p: Vec<u128> = match variant {
            Variant::Printed => {
                let padding: Vec<u128> = (real + 1..length).map(|_| number()).collect();
                q.iter().chain(&padding).fold(vec![1], times_root)
            }
            Variant::RandomFactor => {
                let factor: Vec<u128> = (real..length).map(|_| number()).collect();
                poly.product(&q.iter().fold(vec![1], times_root), &factor)
            }
            Variant::Corrected => {
                let of_slot = &out[slot * length * 8..][..length * 8];
                of_slot.chunks(8).map(|c| u128::from(u64::from_le_bytes(c.try_into().unwrap()))).collect()
            }
        };
        assert_eq!(p.len(), length);
        let point = if member { q[1] } else { number() };
        // The s of the paper's variants cancels in P - P(q*).
        roots(field, &p, point) as f64
    });
    found.sum::<f64>() / slots as f64
}

#[test]
fn the_printed_polynomial_shows_whether_the_item_matches_and_the_corrected_one_does_not() {
    // All 6 roots, or the 4 real ones and about one more, versus q* and about one more.
    for (variant, least) in [(Variant::Printed, 5.9), (Variant::RandomFactor, 4.5)] {
        let (member, other) = (mean_roots(variant, true), mean_roots(variant, false));
        assert!(member > least && other < 2.6, "{variant:?}: {member}, {other}");
    }
    // q* and about one more, with variance 1: six standard deviations of the mean of 60.
    for member in [true, false] {
        let mean = mean_roots(Variant::Corrected, member);
        assert!((mean - 2.0).abs() < 6.0 / 60f64.sqrt(), "{member}: {mean}");
    }
}

#[test]
fn polynomials_have_the_values_and_points_that_meet_are_no_harm() {
    for field in Field::ALL {
        let mut rng = Prng::from_seed(&[3; 32]);
        let (slots, length, points, real) = (5, 9, 6, 4);
        let mut outputs: Vec<Output> = (0..points * slots).map(|_| rng.bytes()).collect();
        // In slot 3 the second and the fourth point coincide: the fourth is lost.
        let (q, t) = (outputs[slots + 3], outputs[3 * slots + 3]);
        outputs[3 * slots + 3][..16].copy_from_slice(&q[..16]);
        outputs[3 * slots + 3][16..].copy_from_slice(&t[16..]);
        let mut out = vec![0; slots * length * field.bytes()];
        let mut s = vec![0; slots];
        random_polynomials(field, &outputs, real, &mut s, &mut out, &mut rng);
        assert_eq!(s.iter().collect::<HashSet<_>>().len(), slots);
        for (i, output) in outputs.iter().enumerate() {
            let (q, t) = halves(output);
            let slot = i % slots;
            let size = length * field.bytes();
            let mut value = [0];
            polynomial::evaluate(field, length, &out[slot * size..][..size], &[q], &mut value);
            let right = value[0] == (s[slot] ^ t) & field.mask();
            assert_eq!(right, i / slots < real && (i / slots, slot) != (3, 3), "{field:?} {i}");
        }
    }
}

/// P alone and P - s: a root at each padding point would reveal how many items the bin has.
#[test]
fn polynomials_have_the_roots_of_random_ones_however_full_the_bin_is() {
    let (field, slots, length) = (Field::Bits64, 60, 7);
    for (real, points) in [(1, 1), (1, 6), (3, 6), (6, 6), (7, 7)] {
        let mut rng = Prng::from_seed(&[9; 32]);
        let outputs: Vec<Output> = (0..points * slots).map(|_| rng.bytes()).collect();
        let (mut out, mut s) = (vec![0; slots * length * 8], vec![0; slots]);
        random_polynomials(field, &outputs, real, &mut s, &mut out, &mut rng);
        for shifted in [false, true] {
            let roots = out.chunks(length * 8).zip(&s).map(|(p, s)| {
                let p = p.chunks(8).map(|c| u128::from(u64::from_le_bytes(c.try_into().unwrap())));
                let mut p: Vec<u128> = p.collect();
                p[0] ^= if shifted { *s } else { 0 };
                Poly(field).roots(p) as f64
            });
            let mean = roots.sum::<f64>() / slots as f64;
            // One root, with variance 1: six standard deviations.
            assert!((mean - 1.0).abs() < 6.0 / 60f64.sqrt(), "{real} {points} {shifted}: {mean}");
        }
    }
}

/// Without t, or if S could derive t from q, P - P(q*) would reveal whether the item matches.
#[test]
fn the_halves_of_an_output_have_no_bit_in_common() {
    let zero = halves(&[0; 32]);
    for byte in 0..32 {
        let mut output = [0; 32];
        output[byte] = 0xff;
        let (q, t) = halves(&output);
        assert_eq!((q != zero.0, t != zero.1), (byte < 16, byte >= 16), "{byte}");
    }
}

/// Two sets of the same size: their frames have the same numbers of points, regardless of the loads.
#[test]
fn frames_of_all_sets_have_the_same_number_of_points() {
    let bins = Bins { number: 20, receiver: 9, sender: 7 };
    let plan =
        Binning { per_frame: 3, in_frame: 20, ..Binning::of(Comparison::Plain, (30, 40), bins).unwrap() };
    let of_set = |from: usize| {
        let table = SimpleTable::new(&Domain::new(&SESSION, "bins"), &items(from, 30), 20);
        let loads: Vec<usize> =
            plan.frames().map(|(first, n)| (first..first + n).map(|b| table.bin(b).len()).sum()).collect();
        let none = || Secrets::zeros(0);
        let rng = Prng::from_seed(&[8; 32]);
        let programmer = Programmer { plan: &plan, table, codes: none(), bottom: none(), rng };
        let points = plan.frames().map(|(first, n)| programmer.points(first, n).iter().sum()).collect();
        (loads, points)
    };
    let (one, other): ((_, Vec<usize>), (_, Vec<usize>)) = (of_set(0), of_set(1000));
    assert_ne!(one.0, other.0);
    assert_eq!(one.1, other.1);
    // 20 items, and a bottom item per bin. The last frame has two bins with at most 9 items each.
    assert_eq!(one.1, [23, 23, 23, 23, 23, 23, 20]);
}

/// Tests R, the random factor: without it the high coefficients would be zero and reveal how many items the bin
/// has.
#[test]
fn polynomials_have_full_length_whatever_the_number_of_points() {
    let (slots, length) = (400, 9);
    for field in Field::ALL {
        // One item, without and with random points; then many items, up to as many as there is room for.
        for (real, points) in [(1, 1), (1, 6), (6, 6), (6, 8), (9, 9)] {
            let mut rng = Prng::from_seed(&[4; 32]);
            let outputs: Vec<Output> = (0..points * slots).map(|_| rng.bytes()).collect();
            let (mut out, mut s) = (vec![0; slots * length * field.bytes()], vec![0; slots]);
            random_polynomials(field, &outputs, real, &mut s, &mut out, &mut rng);
            let coefficients: HashSet<&[u8]> = out.chunks(field.bytes()).collect();
            assert_eq!(coefficients.len(), slots * length, "{field:?} {real} {points}");
            assert!(!coefficients.contains(&vec![0; field.bytes()][..]), "{field:?} {real} {points}");
            let bits = field.bits() as usize;
            every_bit_is_random(&s.iter().map(|s| s.to_le_bytes()).collect::<Vec<_>>(), bits);
            for at in 0..length {
                let of_slots = out.chunks(field.bytes()).skip(at).step_by(length);
                every_bit_is_random(&of_slots.collect::<Vec<_>>(), bits);
            }
        }
    }
}

#[test]
fn bins_are_filled_up_evenly_to_one_number_of_points() {
    let mut rng = Prng::from_seed(&[5; 32]);
    let random = (0..1000).map(|_| 1 + rng.below(40) as usize).collect();
    let lists = [vec![1; 64], vec![40, 1, 1, 1], vec![1, 2, 3, 4, 5], vec![7, 1, 7, 30], vec![12], random];
    for needed in lists {
        let least: usize = needed.iter().sum();
        for more in [0, 1, 2, needed.len() - 1, needed.len(), 3 * needed.len() + 1, 500] {
            let points = filled_up(needed.clone().into(), least + more);
            assert_eq!(points.iter().sum::<usize>(), least + more);
            // As even as possible: a bin that got extra points has at most one more than any other bin.
            let lowest = points.iter().min().unwrap();
            for (points, needed) in points.iter().zip(&needed) {
                assert!(points >= needed && (points == needed || *points <= lowest + 1), "{more} {needed:?}");
            }
        }
    }
}
