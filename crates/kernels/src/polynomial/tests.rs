//! Compares every path with the definition, with bit-by-bit multiplication.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use proptest::prelude::*;

use super::*;

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

/// The residue of x^bits, from the documentation of the field.
fn tail(field: Field) -> u128 {
    let powers: &[u32] = match field {
        Field::Bits64 => &[4, 3, 1, 0],
        Field::Bits72 => &[10, 9, 3, 0],
        Field::Bits80 => &[9, 4, 2, 0],
    };
    powers.iter().map(|p| 1 << p).sum()
}

fn double(field: Field, a: u128) -> u128 {
    let carry = a >> (field.bits() - 1) & 1;
    (a << 1 & field.mask()) ^ (carry * tail(field))
}

fn mul(field: Field, a: u128, b: u128) -> u128 {
    (0..field.bits()).rev().fold(0, |sum, i| double(field, sum) ^ ((b >> i & 1) * a))
}

fn inverse(field: Field, a: u128) -> u128 {
    // The product of a^(2^i) for i from 1 on.
    let mut square = a;
    (1..field.bits()).fold(1, |product, _| {
        square = mul(field, square, square);
        mul(field, product, square)
    })
}

/// Lagrange's formula plus V R, for each instance.
fn oracle(field: Field, q: &[u128], v: &[u128], r: &[u128]) -> Vec<u128> {
    let times_root = |p: &[u128], root: u128| -> Vec<u128> {
        (0..=p.len())
            .map(|j| {
                let here = p.get(j).map_or(0, |p| mul(field, *p, root));
                here ^ if j > 0 { p[j - 1] } else { 0 }
            })
            .collect()
    };
    let mut sum = vec![0; q.len() + r.len()];
    let mut add = |p: &[u128], factor: u128, shift: usize| {
        p.iter().enumerate().for_each(|(j, p)| sum[j + shift] ^= mul(field, *p, factor));
    };
    for (i, value) in v.iter().enumerate() {
        let others = || q.iter().enumerate().filter(move |(j, _)| *j != i).map(|(_, q)| *q);
        let weight = others().fold(1, |w, other| mul(field, w, q[i] ^ other));
        let basis = others().fold(vec![1], |p, other| times_root(&p, other));
        add(&basis, mul(field, *value, inverse(field, weight)), 0);
    }
    let vanishing = q.iter().fold(vec![1], |p, root| times_root(&p, *root));
    r.iter().enumerate().for_each(|(j, r)| add(&vanishing, *r, j));
    sum
}

fn numbers(seed: u64, n: usize) -> Vec<u128> {
    let mut state = seed << 32 | 1;
    let mut word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    (0..n).map(|_| u128::from(word()) << 64 | u128::from(word())).collect()
}

fn check(field: Field, instances: usize, points: &[u128], values: &[u128], random: &[u128]) {
    let shape =
        Shape { instances, points: points.len() / instances.max(1), free: random.len() / instances.max(1) };
    let length = shape.points + shape.free;
    let bytes = field.bytes();
    let column = |all: &[u128], j: usize| -> Vec<u128> {
        all.iter().skip(j).step_by(instances).map(|a| a & field.mask()).collect()
    };
    let expected: Vec<u128> = (0..instances)
        .flat_map(|j| oracle(field, &column(points, j), &column(values, j), &column(random, j)))
        .collect();
    let at: Vec<u128> = numbers(9, instances);
    let horner = |j: usize| {
        let coefficients = &expected[j * length..][..length];
        coefficients.iter().rev().fold(0, |sum, c| mul(field, sum, at[j] & field.mask()) ^ c)
    };
    let expected_values: Vec<u128> = (0..instances).map(horner).collect();
    for b in paths() {
        let mut out = vec![0xaa; expected.len() * bytes];
        let done = interpolate_with(b, field, &shape, points, values, random, &mut out);
        assert_eq!(done, (b, Ok(())), "the forced path ran");
        let got: Vec<u128> =
            out.chunks(bytes).map(|c| c.iter().rev().fold(0, |n, byte| n << 8 | u128::from(*byte))).collect();
        assert_eq!(got, expected, "{b:?} {field:?} {instances}");
        let mut values = vec![0xaa; instances];
        assert_eq!(evaluate_with(b, field, length, &out, &at, &mut values), b, "the forced path ran");
        assert_eq!(values, expected_values, "{b:?} {field:?} {instances}");
    }
    let mut out = vec![0xaa; expected.len() * bytes];
    assert_eq!(interpolate(field, &shape, points, values, random, &mut out), Ok(()));
    let mut values = vec![0xaa; instances];
    evaluate(field, length, &out, &at, &mut values);
    assert_eq!(values, expected_values);
}

/// Instances: none, one, a vector of every path, its neighbours, several. Points and free coefficients: none, one, odd
/// and even, around the step of the evaluation.
#[test]
fn all_shapes() {
    for field in Field::ALL {
        for instances in [0, 1, 3, 4, 5, 8, 13] {
            for (k, free) in [(0, 1), (0, 3), (1, 0), (1, 5), (2, 6), (2, 7), (5, 0), (6, 11)] {
                let all = numbers(k as u64 + 7, (2 * k + free) * instances);
                let (points, rest) = all.split_at(k * instances);
                let (values, random) = rest.split_at(k * instances);
                check(field, instances, points, values, random);
            }
        }
    }
}

/// One bit at a time, so that an error cannot be hidden by another one: P = (x - q) r.
#[test]
fn single_bits() {
    for field in Field::ALL {
        for i in 0..field.bits() {
            for j in [0, 1, 7, 31, 32, 63, field.bits() - 2, field.bits() - 1] {
                check(field, 1, &[1 << i], &[0], &[1 << j]);
            }
        }
    }
}

/// The largest numbers, and bits that are ignored.
#[test]
fn all_ones() {
    for field in Field::ALL {
        let points: Vec<u128> = (0..5).map(|i| u128::MAX ^ i).collect();
        check(field, 1, &points, &[u128::MAX; 5], &[u128::MAX; 9]);
    }
}

#[test]
fn a_point_that_comes_twice_is_refused() {
    for field in Field::ALL {
        for instances in [1, 6] {
            let shape = Shape { instances, points: 5, free: 0 };
            for at in 0..instances {
                let all = numbers(3, 5 * instances);
                let mut points = all.clone();
                // Equal in the used bits.
                points[4 * instances + at] =
                    points[instances + at] ^ if field == Field::Bits80 { 1 << 80 } else { 1 << 72 };
                let mut out = vec![0; 5 * instances * field.bytes()];
                for b in paths() {
                    let done = interpolate_with(b, field, &shape, &points, &all, &[], &mut out);
                    assert_eq!(done, (b, Err(Repeated)));
                }
            }
        }
    }
}

/// Rabin's test: f of degree n is irreducible if x^(2^n) = x modulo f, and x^(2^(n/p)) - x is coprime to f for the
/// primes p that divide n.
#[test]
fn the_moduli_are_irreducible() {
    let degree = |a: u128| 127 - a.leading_zeros();
    let gcd_is_one = |mut a: u128, mut b: u128| {
        while b != 0 {
            while a != 0 && degree(a) >= degree(b) {
                a ^= b << (degree(a) - degree(b));
            }
            (a, b) = (b, a);
        }
        a == 1
    };
    for (field, primes) in
        [(Field::Bits64, &[2][..]), (Field::Bits72, &[2, 3][..]), (Field::Bits80, &[2, 5][..])]
    {
        let x_to = |squarings: u32| (0..squarings).fold(2, |x, _| mul(field, x, x));
        assert_eq!(x_to(field.bits()), 2, "{field:?}");
        for p in primes {
            let f = 1 << field.bits() | tail(field);
            assert!(gcd_is_one(f, x_to(field.bits() / p) ^ 2), "{field:?}");
        }
    }
}

#[test]
#[should_panic(expected = "the points of all instances")]
fn instances_that_differ() {
    let shape = Shape { instances: 2, points: 2, free: 0 };
    let _ = interpolate(Field::Bits64, &shape, &[1; 3], &[1; 3], &[], &mut [0; 24]);
}

#[test]
#[should_panic(expected = "each point has a value")]
fn values_that_are_missing() {
    let shape = Shape { instances: 2, points: 2, free: 0 };
    let _ = interpolate(Field::Bits64, &shape, &[1; 4], &[1; 2], &[], &mut [0; 32]);
}

#[test]
#[should_panic(expected = "the free coefficients of all instances")]
fn free_coefficients_that_are_missing() {
    let shape = Shape { instances: 2, points: 1, free: 1 };
    let _ = interpolate(Field::Bits64, &shape, &[1; 2], &[1; 2], &[1], &mut [0; 24]);
}

#[test]
#[should_panic(expected = "room for the result")]
fn results_that_do_not_fit() {
    let shape = Shape { instances: 1, points: 3, free: 0 };
    let _ = interpolate(Field::Bits72, &shape, &[1; 3], &[1; 3], &[], &mut [0; 24]);
}

#[test]
#[should_panic(expected = "that number of coefficients")]
fn coefficients_that_are_missing() {
    evaluate(Field::Bits64, 2, &[0; 24], &[1; 2], &mut [0; 2]);
}

#[test]
#[should_panic(expected = "a value for each point")]
fn values_that_do_not_fit() {
    evaluate(Field::Bits64, 1, &[0; 16], &[1; 2], &mut [0; 1]);
}

/// The system's allocator, which inspects the memory that a thread frees on request.
struct Watching;

thread_local! {
    /// The number of freed blocks, and of their bytes that were not zero; none if not requested.
    static GIVEN_BACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

// SAFETY: every call goes to `System` with the same arguments, and its result is returned.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the conditions of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`; `block` came from `System`.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let _ = GIVEN_BACK.try_with(|given_back| {
            if let Some((blocks, bytes)) = given_back.get() {
                // SAFETY: the block is valid until it is freed, and the kernel initialises its lists as it creates
                // them.
                let block = unsafe { std::slice::from_raw_parts(block, layout.size()) };
                given_back.set(Some((blocks + 1, bytes + block.iter().filter(|byte| **byte != 0).count())));
            }
        });
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// Points, weights, values and coefficients are secrets.
#[test]
fn all_memory_is_wiped_before_it_is_given_back() {
    let shape = Shape { instances: 5, points: 6, free: 4 };
    let all = numbers(5, 2 * 30 + 20);
    for field in Field::ALL {
        for b in paths() {
            let (mut out, mut values) = (vec![0; 50 * field.bytes()], vec![0; 5]);
            let mut run = || {
                let (_, done) =
                    interpolate_with(b, field, &shape, &all[..30], &all[30..60], &all[60..], &mut out);
                evaluate_with(b, field, 10, &out, &all[..5], &mut values);
                done
            };
            // The first run may also include feature detection.
            assert_eq!(run(), Ok(()));
            GIVEN_BACK.set(Some((0, 0)));
            let done = run();
            assert_eq!((done, GIVEN_BACK.replace(None)), (Ok(()), Some((8, 0))), "{b:?} {field:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn random_points(seed in any::<u64>(), instances in 1..6_usize, k in 0..9_usize, free in 0..9_usize) {
        let all = numbers(seed, (2 * k + free) * instances);
        let (points, rest) = all.split_at(k * instances);
        let (values, random) = rest.split_at(k * instances);
        for field in Field::ALL {
            check(field, instances, points, values, random);
        }
    }
}
