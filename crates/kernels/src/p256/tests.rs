//! Compares the kernel with the RFC's vectors and with a slow big-integer oracle.

use num_bigint::BigUint;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::iter::zip;

use super::modular::{Modulus, Residue, is_below};
use super::*;
use crate::oracle::hex;

// ---- The oracle: affine arithmetic on y^2 = x^3 - 3 x + b. ----

fn int(n: u32) -> BigUint {
    BigUint::from(n)
}

fn number(hexadecimal: &str) -> BigUint {
    BigUint::parse_bytes(hexadecimal.as_bytes(), 16).unwrap()
}

/// 2^256 - 2^224 + 2^192 + 2^96 - 1.
fn p() -> BigUint {
    (int(1) << 256u32) - (int(1) << 224u32) + (int(1) << 192u32) + (int(1) << 96u32) - 1u8
}

/// The order, from FIPS 186-4, D.1.2.3.
fn order() -> BigUint {
    number("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
}

fn b() -> BigUint {
    number("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b")
}

fn generator() -> Point {
    let x = hex("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296");
    let y = hex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5");
    [x, y].as_flattened().try_into().unwrap()
}

fn sub(a: &BigUint, b: &BigUint) -> BigUint {
    (a + p() - b % p()) % p()
}

fn neg(a: &BigUint) -> BigUint {
    sub(&int(0), a)
}

/// The inverse; 0 for 0.
fn inv(a: &BigUint) -> BigUint {
    a.modpow(&(p() - 2u8), &p())
}

fn is_square(a: &BigUint) -> bool {
    a.modpow(&((p() - 1u8) >> 1), &p()) <= int(1)
}

/// x^3 - 3 x + b.
fn g(x: &BigUint) -> BigUint {
    sub(&(x * x * x + b()), &(int(3) * x))
}

/// A square root of a square.
fn sqrt(a: &BigUint) -> BigUint {
    let root = a.modpow(&((p() + 1u8) >> 2), &p());
    assert_eq!(&root * &root % p(), *a);
    root
}

type Affine = Option<(BigUint, BigUint)>;

/// Sum of two points; `None` is the identity.
fn add(s: &Affine, t: &Affine) -> Affine {
    let (Some((x1, y1)), Some((x2, y2))) = (s, t) else { return s.clone().or(t.clone()) };
    let slope = if x1 != x2 {
        sub(y2, y1) * inv(&sub(x2, x1)) % p()
    } else if y1 == y2 && *y1 != int(0) {
        sub(&(int(3) * x1 * x1), &int(3)) * inv(&(int(2) * y1 % p())) % p()
    } else {
        return None;
    };
    let x3 = sub(&(&slope * &slope), &(x1 + x2));
    let y3 = sub(&(&slope * sub(x1, &x3)), y1);
    Some((x3, y3))
}

fn multiple(k: &BigUint, point: &Affine) -> Affine {
    let mut sum = None;
    for i in (0..k.bits()).rev() {
        sum = add(&sum, &sum);
        if k.bit(i) {
            sum = add(&sum, point);
        }
    }
    sum
}

/// The map as in RFC 9380, section 6.6.2.
fn sswu(u: &BigUint) -> (BigUint, BigUint) {
    let (a, z) = (neg(&int(3)), neg(&int(10)));
    let t = inv(&((&z * &z * u.pow(4) + &z * u.pow(2)) % p()));
    let x1 = match t == int(0) {
        true => b() * inv(&(&z * &a % p())) % p(),
        false => neg(&b()) * inv(&a) * (int(1) + t) % p(),
    };
    let x2 = z * u.pow(2) * &x1 % p();
    let x = if is_square(&g(&x1)) { x1 } else { x2 };
    let y = sqrt(&g(&x));
    let y = if y.bit(0) == u.bit(0) { y } else { neg(&y) };
    (x, y)
}

// ---- Helpers. ----

fn big(bytes: &[u8]) -> BigUint {
    BigUint::from_bytes_be(bytes)
}

fn bytes<const N: usize>(n: &BigUint) -> [u8; N] {
    let (mut out, be) = ([0; N], n.to_bytes_be());
    out[N - be.len()..].copy_from_slice(&be);
    out
}

fn encoded((x, y): &(BigUint, BigUint)) -> Point {
    [bytes::<32>(x), bytes(y)].as_flattened().try_into().unwrap()
}

fn decoded(point: &Point) -> Affine {
    Some((big(&point[..32]), big(&point[32..])))
}

/// n numbers of 512 bits, the same in every run.
fn samples(n: usize) -> Vec<BigUint> {
    let half = |i: usize, j: u8| Sha256::digest([&i.to_le_bytes()[..], &[j]].concat());
    (0..n).map(|i| big(&[half(i, 0), half(i, 1)].concat())).collect()
}

/// Numbers at the edges of the moduli and of words, below 2^256.
fn edges() -> Vec<BigUint> {
    let mut all = vec![int(0), int(1), int(2), int(3), (int(1) << 256u32) - 1u8];
    for m in [p(), order(), int(1) << 64u32, int(1) << 128u32, int(1) << 192u32, int(1) << 224u32] {
        all.extend([&m - 2u8, &m - 1u8, m.clone(), &m + 1u8]);
    }
    all
}

fn points(n: usize) -> Vec<Point> {
    let mut points = vec![[0; 64]; n];
    let uniform: Vec<[u8; 48]> = samples(n).iter().map(|s| bytes(&(s >> 128u32))).collect();
    map(&uniform, &mut points);
    points
}

// ---- Arithmetic. ----

fn agrees_with_integers<M: Modulus>(m: &BigUint) {
    type R<M> = Residue<M>;
    let mut numbers = edges();
    numbers.extend(samples(20).iter().map(|s| s >> 256u32));
    let residue = |n: &BigUint| R::<M>::from_bytes(&bytes(n));
    for a in &numbers {
        let wide = a << 128u32 | a >> 128u32;
        assert_eq!(R::<M>::from_wide(&bytes(&wide)).to_bytes(), bytes(&(&wide % m)));
        let r = residue(a);
        assert_eq!(is_below::<M>(&bytes(a)), a < m);
        assert_eq!(r.to_bytes(), bytes(&(a % m)));
        assert_eq!(r.sign() == 1, (a % m).bit(0));
        assert_eq!(r.negative().to_bytes(), bytes(&((m - a % m) % m)));
        assert_eq!(r.square().to_bytes(), bytes(&(a * a % m)));
        for b in &numbers {
            let s = residue(b);
            assert_eq!(r.mul(s).to_bytes(), bytes(&(a * b % m)));
            assert_eq!(r.add(s).to_bytes(), bytes(&((a + b) % m)));
            assert_eq!(r.equals(s) == 1, a % m == b % m);
            assert_eq!([r.or(s, 0).to_bytes(), r.or(s, 1).to_bytes()], [r.to_bytes(), s.to_bytes()]);
        }
    }
}

#[test]
fn residues_agree_with_integers() {
    agrees_with_integers::<Prime>(&p());
    agrees_with_integers::<Order>(&order());
}

#[test]
fn scalars_are_between_1_and_the_order_and_have_inverses() {
    for e in edges() {
        assert_eq!(is_scalar(&bytes(&e)), e != int(0) && e < order(), "{e}");
        assert_eq!(is_canonical(&bytes(&e)), e < p(), "{e}");
        let inverse = big(&inverse(&bytes(&e)));
        assert_eq!(inverse, (&e % order()).modpow(&(order() - 2u8), &order()));
        let one = if &e % order() == int(0) { int(0) } else { int(1) };
        assert_eq!(e * inverse % order(), one);
    }
}

// ---- The map. ----

/// `hash_to_field` of RFC 9380, sections 5.2 and 5.3.1, before the reduction, for SHA-256 and this field (L = 48).
fn expanded(msg: &[u8], dst: &[u8], count: usize) -> Vec<[u8; 48]> {
    let len = 48 * count;
    let dst: Vec<u8> = [dst, &[dst.len() as u8]].concat();
    let b0 = Sha256::digest([&[0; 64], msg, &(len as u16).to_be_bytes(), &[0], &dst].concat());
    let (mut last, mut uniform) = ([0; 32], Vec::new());
    for i in 1..=len.div_ceil(32) {
        let xored: Vec<u8> = zip(&b0, last).map(|(a, b)| a ^ b).collect();
        last = Sha256::digest([&xored[..], &[i as u8], &dst].concat()).into();
        uniform.extend(last);
    }
    uniform[..len].as_chunks().0.to_vec()
}

#[test]
fn rfc_9380_appendix_j_1() {
    let text = include_str!("../../vectors/rfc9380-p256.txt");
    let mut found = 0;
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let dst = format!("QUUX-V01-CS02-with-P256_XMD:SHA-256_SSWU_{}_", words[0]);
        let each: Vec<&[&str]> = words[2..].chunks(3).collect();
        let uniform = expanded(words[1].trim_matches('"').as_bytes(), dst.as_bytes(), each.len());
        let mut mapped = vec![[0; 64]; each.len()];
        map(&uniform, &mut mapped);
        for ((uniform, mapped), words) in zip(zip(&uniform, &mapped), each) {
            assert_eq!(Residue::<Prime>::from_wide(uniform).to_bytes(), hex(words[0]));
            assert_eq!(mapped[..], *[hex(words[1]), hex(words[2])].as_flattened());
            found += 1;
        }
    }
    assert_eq!(found, 15, "five messages: one element each for NU, two for RO");
}

/// The facts by which the map has a single exception.
#[test]
fn the_map_has_one_exception() {
    let z = neg(&int(10));
    assert!(!is_square(&z), "Z u^2 is never 1");
    assert_eq!(inv(&int(10)) * int(10) % p(), int(1));
    // Z^2 u^4 + Z u^2 = Z u^2 (Z u^2 + 1) is 0 for u = 0, and if u^2 = -1/Z = 1/10.
    assert!(is_square(&int(10)));
    assert!(is_square(&g(&(b() * inv(&(z * neg(&int(3)) % p())) % p()))));
}

/// The exceptions of either kind: u = 0, and the roots of -1/Z.
#[test]
fn the_map_agrees_with_the_oracle() {
    let root = sqrt(&inv(&int(10)));
    let mut numbers = edges();
    numbers.extend([root.clone(), neg(&root), &root + p()]);
    numbers.extend(samples(40).iter().map(|s| s >> 128u32));
    let uniform: Vec<[u8; 48]> = numbers.iter().map(bytes).collect();
    let mut mapped = vec![[0; 64]; numbers.len()];
    map(&uniform, &mut mapped);
    for (u, point) in zip(&numbers, &mapped) {
        assert_eq!(*point, encoded(&sswu(&(u % p()))), "{u}");
    }
}

/// At most four numbers map to a point: the equations for t = Z u^2 are two quadratic ones, and the point determines
/// the sign of u.
#[test]
fn no_point_has_more_than_four_numbers() {
    for u in samples(20).iter().map(|s| s % p()) {
        let ((x, y), t) = (sswu(&u), neg(&int(10)) * u.pow(2) % p());
        // x1 = -b/a (1 + 1 / (t^2 + t)), and x2 = t x1. With s = -a x / b = 3 x / b:
        let s = int(3) * &x * inv(&b()) % p();
        let by_x1 = (&t * &t + &t) * sub(&s, &int(1)) % p() == int(1);
        let by_x2 = sub(&(&t * &t + &t + 1u8), &(&s * (&t + 1u8))) == int(0);
        assert!(by_x1 != by_x2);
        assert_eq!(sswu(&neg(&u)), (x, neg(&y)));
    }
}

/// Lengths around the number computed together, around the batch that shares an inversion, and several batches with a
/// remainder.
#[test]
fn every_length_agrees_with_single_items() {
    let all: Vec<[u8; 48]> = samples(3 * 64 + 3).iter().map(|s| bytes(&(s >> 128u32))).collect();
    let single: Vec<Point> = all
        .iter()
        .map(|u| {
            let mut out = [[0; 64]];
            map(&[*u], &mut out);
            out[0]
        })
        .collect();
    let x: Vec<[u8; 32]> = single.iter().map(|p| *p.first_chunk().unwrap()).collect();
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 127, 128, 129, all.len()] {
        let (mut mapped, mut lifted) = (vec![[0; 64]; n], vec![[0; 64]; n]);
        map(&all[..n], &mut mapped);
        assert_eq!(mapped, single[..n]);
        assert_eq!(lift(&x[..n], &mut lifted), Ok(()));
        for (point, lifted) in zip(&single, &lifted) {
            let (x, y) = decoded(point).unwrap();
            let even = if y.bit(0) { neg(&y) } else { y };
            assert_eq!(*lifted, encoded(&(x, even)));
        }
    }
}

#[test]
fn numbers_without_a_point_are_refused_wherever_they_stand() {
    let good: Vec<[u8; 32]> = points(9).iter().map(|p| *p.first_chunk().unwrap()).collect();
    let on_twist = samples(40).into_iter().map(|s| s % p()).find(|x| !is_square(&g(x))).unwrap();
    // Some number below 2^224 is an abscissa; adding p to it gives a non-canonical encoding of it.
    let small = (0..100).map(int).find(|x| is_square(&g(x))).unwrap();
    let not_reduced = &small + p();
    let mut out = [[0; 64]];
    assert_eq!(lift(&[bytes(&small)], &mut out), Ok(()));
    for forged in [on_twist, not_reduced, p(), (int(1) << 256u32) - 1u8] {
        for at in 0..good.len() {
            let mut all = good.clone();
            all[at..].fill(bytes(&forged));
            assert_eq!(lift(&all, &mut [[0; 64]; 9]), Err(at), "{forged}");
        }
    }
}

// ---- Multiplication. ----

#[test]
fn multiples_agree_with_the_oracle() {
    let mut points = points(5);
    points.push(generator());
    let scalars = [int(1), int(2), int(3), order() - 1u8, order() - 2u8, int(1) << 255u32];
    for scalar in scalars.into_iter().chain(samples(3).into_iter().map(|s| s % order())) {
        let mut out = points.clone();
        assert_eq!(multiply(&bytes(&scalar), &mut out), Ok(()));
        for (point, out) in zip(&points, &out) {
            assert_eq!(Some(*out), multiple(&scalar, &decoded(point)).as_ref().map(encoded), "{scalar}");
        }
    }
}

/// The order of the group is prime, so no point but the identity has a low order.
#[test]
fn every_point_has_the_order_of_the_group() {
    for point in points(3).iter().chain([&generator()]) {
        assert_eq!(multiple(&order(), &decoded(point)), None);
    }
    // Fermat's test, for bases that no Carmichael number would all pass.
    for base in [2u32, 3, 5, 7, 11, 13] {
        assert_eq!(int(base).modpow(&(order() - 1u8), &order()), int(1));
    }
    // By Hasse's theorem, the number of points is within 2 sqrt(p) of p + 1, and the order is its only multiple there.
    let distance = p() + 1u8 - order();
    assert!(&distance * &distance <= int(4) * p() && order() * 2u8 > p() + 1u8 + (int(1) << 129u32));
}

#[test]
fn what_is_not_a_point_is_refused_wherever_it_stands() {
    let good = points(5);
    let (x, y) = decoded(&good[0]).unwrap();
    let small = (0..100).map(int).find(|x| is_square(&g(x))).unwrap();
    let root = sqrt(&g(&small));
    // An abscissa below 2^224 has a second, non-canonical encoding.
    let forged = [
        [x.clone(), neg(&y) + 1u8],
        [x.clone(), y.clone() ^ int(1)],
        [&x + 1u8, y.clone()],
        [y, x],
        [&small + p(), root],
        [small, p()],
        [p(), int(0)],
        [int(0), int(0)],
        [int(0), p()],
        [(int(1) << 256u32) - 1u8, (int(1) << 256u32) - 1u8],
    ];
    for [x, y] in forged {
        for at in 0..good.len() {
            let mut all = good.clone();
            all[at..].fill(encoded(&(x.clone(), y.clone())));
            assert_eq!(multiply(&[1; 32], &mut all), Err(at), "{x} {y}");
        }
    }
    // A refusal leaves no trace, neither in the scalar nor in the library.
    let mut again = good.clone();
    assert_eq!(multiply(&[1; 32], &mut again), Ok(()));
    assert!(zip(&good, &again).all(|(before, after)| before != after));
}

#[test]
#[should_panic(expected = "between 1 and the order")]
fn zero_is_no_scalar() {
    let _ = multiply(&[0; 32], &mut points(1));
}

#[test]
#[should_panic(expected = "between 1 and the order")]
fn the_order_is_no_scalar() {
    let _ = multiply(&bytes(&order()), &mut []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn multiplication_commutes_and_an_inverse_takes_its_scalar_off(a: [u8; 32], b: [u8; 32], n in 1usize..4) {
        prop_assume!(is_scalar(&a) && is_scalar(&b));
        let points = points(n);
        let multiplied = |points: &[Point], scalars: [&[u8; 32]; 2]| {
            let mut points = points.to_vec();
            scalars.into_iter().try_for_each(|scalar| multiply(scalar, &mut points)).map(|()| points)
        };
        let ab = multiplied(&points, [&a, &b]);
        prop_assert_eq!(&ab, &multiplied(&points, [&b, &a]));
        prop_assert!(ab != Ok(points.clone()));
        prop_assert_eq!(multiplied(&points, [&a, &inverse(&a)]), Ok(points.clone()));
        // The sign of a point does not affect the abscissae of its multiples.
        let negative = |point: &Point| encoded(&decoded(point).map(|(x, y)| (x, neg(&y))).unwrap());
        let negatives: Vec<Point> = points.iter().map(negative).collect();
        let [plus, minus] = [points, negatives].map(|points| multiplied(&points, [&a, &b]).unwrap());
        prop_assert!(zip(&plus, &minus).all(|(plus, minus)| plus[..32] == minus[..32] && plus != minus));
    }
}
