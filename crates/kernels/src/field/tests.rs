//! Compares every implementation with big integers, at the limits of its bounds.

use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

use super::pair::Pair;
use super::*;
use crate::oracle::*;

/// A test that runs on each implementation, and on pairs of it.
trait Check {
    fn check<F: Field>(&self);
}

struct Run<'a, C>(&'a C);

impl<C: Check> Kernel for Run<'_, C> {
    #[inline(always)]
    fn run<F: Field>(self) {
        self.0.check::<F>();
        self.0.check::<Pair<F>>();
    }
}

/// Runs the test on every implementation that this processor supports.
fn on_all(check: impl Check) {
    for b in BACKENDS.iter().copied().filter(|b| b.is_available()) {
        assert_eq!(run_on(b, Run(&check)), b, "the path that was forced is the one that ran");
    }
}

fn value(limbs: &[i64; 5]) -> BigUint {
    let sum = limbs.iter().rev().fold(BigInt::ZERO, |acc, limb| (acc << 51) + *limb);
    let p = BigInt::from(p());
    ((sum % &p + &p) % &p).magnitude().clone()
}

#[inline(always)]
fn values<F: Field>(a: F) -> Vec<BigUint> {
    a.limbs().iter().map(value).collect()
}

#[inline(always)]
fn raw_values<F: Field>(a: F::Raw) -> Vec<BigUint> {
    F::columns(a).iter().map(value).collect()
}

/// Carries, and checks that the limbs are within the bounds.
#[inline(always)]
fn carried<F: Field>(a: F::Raw) -> Vec<BigUint> {
    let a = F::carry(a);
    for limb in a.limbs().concat() {
        assert!((F::LIMB.0..=F::LIMB.1).contains(&limb), "{limb}");
    }
    values(a)
}

#[inline(always)]
fn assert_unit<F: Field>(a: F::Raw) {
    assert!(F::columns(a).concat().iter().all(|c| c.abs() <= F::UNIT));
}

/// Choices of limbs: 0 to 15 for the extreme values, larger ones for any value within the bounds.
struct Arithmetic(Vec<[u64; 5]>);

impl Check for Arithmetic {
    #[inline(always)]
    fn check<F: Field>(&self) {
        // The ends of the bounds, the middle, their neighbours, values at the edge of rounding, and limbs whose
        // products have the largest low and high halves with the same sign.
        let (least, most) = F::LIMB;
        let near = [(1 << 50) - 1, (1 << 50) - (1 << 25) + 1, (1 << 51) - 49_672_048, (1 << 51) - 90_666_418];
        let mut limbs = vec![least, most, 0, 1, most - 1, least + 1, (1 << 50) + 1, (1 << 49) + 1];
        limbs.extend(near.iter().flat_map(|limb| [*limb, -limb]));
        let any = |c: u64| least + (c % (most - least + 1).cast_unsigned()).cast_signed();
        let limb = |c: u64| limbs.get(c as usize).map_or_else(|| any(c), |limb| (*limb).clamp(least, most));
        let lane = |choice: &[u64; 5]| choice.map(limb);
        let n = self.0.len();
        // Each element with itself, with its neighbours and with distant elements.
        for (i, j) in (0..n).flat_map(|i| [(i, i), (i, i + 1), (i, i + 9), (i, 3 * i), (i, 5 * i + 2)]) {
            let lanes = |first: usize| -> Vec<[i64; 5]> {
                (0..F::LANES).map(|l| lane(&self.0[(first + l * l) % n])).collect()
            };
            let (a, b) = (F::from_limbs(&lanes(i)), F::from_limbs(&lanes(j)));
            // The reflection of b within the bounds.
            let opposite =
                lanes(j).iter().map(|lane| lane.map(|limb| least + most - limb)).collect::<Vec<_>>();
            let opposite = F::from_limbs(&opposite);
            let (x, y) = (values(a), values(b));
            let each = |f: &dyn Fn(&BigUint, &BigUint) -> BigUint| -> Vec<BigUint> {
                x.iter().zip(&y).map(|(x, y)| f(x, y) % p()).collect()
            };
            // Units.
            let (product, square, small) = (a.mul(b), a.square(), a.mul_small((1 << 20) - 1));
            assert_eq!(raw_values::<F>(product), each(&|x, y| x * y));
            assert_eq!(raw_values::<F>(square), each(&|x, _| x * x));
            assert_eq!(raw_values::<F>(small), each(&|x, _| x * ((1u32 << 20) - 1)));
            assert_eq!(raw_values::<F>(a.widen()), x);
            for unit in [product, square, small, a.widen()] {
                assert_unit::<F>(unit);
            }
            assert_eq!(carried::<F>(product), each(&|x, y| x * y));
            assert_eq!(carried::<F>(square), each(&|x, _| x * x));
            assert_eq!(carried::<F>(small), each(&|x, _| x * ((1u32 << 20) - 1)));
            assert_eq!(carried::<F>(a.widen()), x);
            // Three units minus three.
            let three = |unit| F::add(F::add(unit, unit), unit);
            assert_eq!(carried::<F>(three(product)), each(&|x, y| int(3) * x * y));
            let minus = each(&|x, y| sub(&(int(3) * x * x), &(int(3) * x * y)));
            assert_eq!(carried::<F>(F::sub(three(square), three(product))), minus);
            let minus = each(&|x, y| sub(&(int(3) * x * y), &(int(3) * x)));
            assert_eq!(carried::<F>(F::sub(three(product), three(a.widen()))), minus);
            let minus = each(&|x, y| sub(&(int(3) * x), &(int(3) * x * y)));
            assert_eq!(carried::<F>(F::sub(three(a.widen()), three(product))), minus);
            let minus = each(&|x, y| sub(&int(0), &(int(3) * x * y)));
            assert_eq!(carried::<F>(F::sub(F::splat(&Fe::ZERO).widen(), three(product))), minus);
            let others: Vec<BigUint> = raw_values::<F>(a.mul(opposite));
            let minus: Vec<BigUint> = each(&|x, y| int(3) * x * y)
                .iter()
                .zip(&others)
                .map(|(ab, c)| sub(ab, &(int(3) * c)))
                .collect();
            assert_eq!(carried::<F>(F::sub(three(product), three(a.mul(opposite)))), minus);
        }
    }
}

#[test]
fn arithmetic_agrees_with_big_integers_at_the_bounds() {
    // All limbs equal; one limb different; and mixtures.
    let mut choices: Vec<[u64; 5]> = (0..16).map(|c| [c; 5]).collect();
    for c in 0..16 {
        choices.extend((0..5).map(|k| std::array::from_fn(|i| if i == k { c } else { c / 2 })));
    }
    choices.extend((0..40u64).map(|i| [0, 1, 2, 3, 4].map(|k| (i * 7 + k * 3 + i * k) % 16)));
    on_all(Arithmetic(choices));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arithmetic_agrees_with_big_integers(choices: [[u64; 5]; 8]) {
        // One limb in four is an extreme one.
        let limb = |c: u64| if c.is_multiple_of(4) { c / 4 % 16 } else { c };
        on_all(Arithmetic(choices.map(|c| c.map(limb)).to_vec()));
    }
}

/// Tests loading and storing lanes, and functions of single elements.
struct Elements(Vec<[u8; 32]>);

impl Check for Elements {
    #[inline(always)]
    fn check<F: Field>(&self) {
        for bytes in self.0.chunks(F::LANES) {
            let elements: Vec<Fe> = bytes.iter().map(Fe::from_bytes).collect();
            let numbers: Vec<BigUint> = bytes.iter().map(|b| big(b) % p()).collect();
            let a = F::load(&elements);
            let (all, rest) = (values(a), F::LANES - bytes.len());
            assert_eq!(all[..bytes.len()], numbers);
            assert_eq!(all[bytes.len()..], vec![int(0); rest]);
            let stored = |a: F| -> Vec<BigUint> {
                let mut out = vec![Fe([1, 2, 3, 4, 5]); bytes.len() + 1];
                a.store(&mut out[..bytes.len()]);
                assert_eq!(out.pop().map(|f| f.0), Some([1, 2, 3, 4, 5]), "no further than there is room");
                out.iter().map(|f| big(&f.to_bytes())).collect()
            };
            let each = |f: &dyn Fn(&BigUint) -> BigUint| -> Vec<BigUint> { numbers.iter().map(f).collect() };
            assert_eq!(stored(a), numbers);
            assert_eq!(stored(inverse(a)), each(&inv));
            assert_eq!(stored(character(a)), each(&euler));
            assert_eq!(stored(F::splat(&elements[0])), vec![numbers[0].clone(); bytes.len()]);

            // The lanes that `select` takes from each argument.
            let (zero, words) =
                (F::splat(&Fe::ZERO), |l: usize| if l.is_multiple_of(3) { u64::MAX } else { 0 });
            let mask: Vec<u64> = (0..F::LANES).map(words).collect();
            let expected: Vec<BigUint> = numbers
                .iter()
                .enumerate()
                .map(|(l, x)| if words(l) == 0 { x.clone() } else { int(0) })
                .collect();
            assert_eq!(stored(a.select(zero, F::mask(&mask))), expected);
            assert_eq!(stored(a.select(zero, F::mask(&[]))), numbers);
            assert_eq!(stored(a.select(zero, F::mask_all(0))), numbers);
            assert_eq!(stored(a.select(zero, F::mask_all(u64::MAX))), vec![int(0); bytes.len()]);
        }
        let nonzero: Vec<Fe> =
            self.0.iter().filter(|b| big(b) % p() != int(0)).map(Fe::from_bytes).take(VECTORS).collect();
        for n in [1, 2, nonzero.len()] {
            let mut vectors: Vec<F> = nonzero[..n].iter().map(F::splat).collect();
            invert_all(&mut vectors);
            for (v, x) in vectors.into_iter().zip(&nonzero) {
                assert_eq!(values(v), vec![inv(&big(&x.to_bytes())); F::LANES]);
            }
        }
    }
}

#[test]
fn elements_go_in_and_come_out() {
    let mut all: Vec<[u8; 32]> = edges().iter().map(bytes).collect();
    // More elements than share an inversion.
    all.extend(samples(VECTORS + 5));
    on_all(Elements(all));
}

#[test]
fn encoding() {
    for e in edges() {
        assert_eq!(big(&Fe::from_bytes(&bytes(&e)).to_bytes()), &e % p(), "all 256 bits count");
        assert_eq!(Fe::from_bytes(&bytes(&e)).zero_mask(), if &e % p() == int(0) { u64::MAX } else { 0 });
    }
    // Limbs at the bounds.
    for limb in [(1 << 51) - 1, 1 << 51, (1 << 53) - 1, (1 << 54) - 1] {
        for k in 0..5 {
            let one: [u64; 5] = std::array::from_fn(|i| if i == k { limb } else { 0 });
            for f in [Fe([limb; 5]), Fe(one)] {
                let x = value(&f.0.map(|l| l as i64));
                assert_eq!(big(&f.to_bytes()), x);
                assert_eq!(big(&f.narrow().to_bytes()), x);
                assert!(f.narrow().0.iter().all(|l| *l < (1 << 51) + (1 << 10)));
            }
        }
    }
}
