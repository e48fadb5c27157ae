//! Compares the kernel with the RFC's vectors and with curve25519-dalek, and the paths with each other.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use proptest::prelude::*;
use sha2::{Digest, Sha512};

use super::edwards;
use super::*;
use crate::oracle::*;

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

fn decoded(b: Backend, bytes: &[[u8; 32]]) -> Result<Vec<Element>, usize> {
    let mut out = vec![Element::IDENTITY; bytes.len()];
    let (ran, result) = decode_with(b, bytes, &mut out);
    assert_eq!(ran, b, "the path that was forced is the one that ran");
    result.map(|()| out)
}

fn encoded(b: Backend, elements: &[Element]) -> Vec<[u8; 32]> {
    let mut out = vec![[0; 32]; elements.len()];
    assert_eq!(encode_with(b, elements, &mut out), b);
    out
}

fn mapped(b: Backend, uniform: &[[u8; 64]]) -> Vec<Element> {
    let mut out = vec![Element::IDENTITY; uniform.len()];
    assert_eq!(map_with(b, uniform, &mut out), b);
    out
}

fn multiplied(b: Backend, elements: &[Element], scalars: &[[u8; 32]]) -> Vec<Element> {
    let mut out = elements.to_vec();
    assert_eq!(multiply_with(b, &mut out, scalars), b);
    out
}

fn small(n: u8) -> [u8; 32] {
    std::array::from_fn(|i| if i == 0 { n } else { 0 })
}

/// n times 64 pseudorandom bytes, the same in every run.
fn uniform(n: usize) -> Vec<[u8; 64]> {
    (0..n).map(|i| Sha512::digest(i.to_le_bytes()).into()).collect()
}

fn reference(uniform: &[u8; 64]) -> RistrettoPoint {
    RistrettoPoint::from_uniform_bytes(uniform)
}

/// Scalars at the ends of their range and of their digits, and random ones; all below 2^255.
fn scalars() -> Vec<[u8; 32]> {
    let order: num_bigint::BigUint =
        (int(1) << 252) + "27742317777372353535851937790883648493".parse::<num_bigint::BigUint>().unwrap();
    let mut all = vec![int(0), int(1), int(2), int(7), int(8), int(9), int(15), int(16)];
    all.extend([&order - 1u8, order.clone(), &order + 1u8, &order * 7u8 + 3u8, (int(1) << 255) - 1u8]);
    let mut all: Vec<[u8; 32]> = all.iter().map(bytes).collect();
    for nibble in [0x77, 0x78, 0x80, 0x87, 0x88, 0x99, 0x08] {
        let mut scalar = [nibble; 32];
        scalar[31] &= 0x7f;
        all.push(scalar);
    }
    all.extend(samples(5));
    all
}

#[test]
fn rfc_9496_appendix_a() {
    let text = include_str!("../../vectors/rfc9496-ristretto255.txt");
    let all = |kind: &str| -> Vec<&str> { text.lines().filter_map(|l| l.strip_prefix(kind)).collect() };
    let multiples: Vec<[u8; 32]> = all("multiple ").iter().map(|m| hex(m)).collect();
    let invalid: Vec<[u8; 32]> = all("invalid ").iter().map(|m| hex(m)).collect();
    let maps: Vec<([u8; 64], [u8; 32])> = all("map ")
        .iter()
        .map(|line| {
            let wide = [hex(&line[..64]), hex(&line[64..128])];
            (wide.as_flattened().try_into().unwrap(), hex(&line[129..]))
        })
        .collect();
    assert_eq!([multiples.len(), invalid.len(), maps.len()], [16, 29, 11]);
    let numbers: Vec<[u8; 32]> = (0..16).map(small).collect();
    for b in paths() {
        let generators = vec![Element::GENERATOR; 16];
        assert_eq!(encoded(b, &multiplied(b, &generators, &numbers)), multiples);
        let mut by_table = vec![Element::IDENTITY; 16];
        assert_eq!(Table::generator().multiply_with(b, &numbers, &mut by_table), b);
        assert_eq!(encoded(b, &by_table), multiples);
        assert_eq!(encoded(b, &decoded(b, &multiples).unwrap()), multiples);
        for bytes in &invalid {
            // Alone, and among others, as the first or the second invalid one.
            assert_eq!(decoded(b, &[*bytes]).err(), Some(0));
            let mut among = multiples.clone();
            among[11] = *bytes;
            assert_eq!(decoded(b, &among).err(), Some(11));
            among[4] = invalid[0];
            assert_eq!(decoded(b, &among).err(), Some(4));
            // Invalid encodings, and only these, become the identity.
            let mut out = vec![Element::GENERATOR; 16];
            assert_eq!(decode_with(b, &among, &mut out), (b, Err(4)));
            let mut expected = multiples.clone();
            (expected[4], expected[11]) = ([0; 32], [0; 32]);
            assert_eq!(encoded(b, &out), expected);
        }
        let (uniform, expected): (Vec<_>, Vec<_>) = maps.iter().copied().unzip();
        assert_eq!(encoded(b, &mapped(b, &uniform)), expected);
    }
}

/// Special halves for the map: 0, and unreduced numbers, whose highest bit is ignored.
#[test]
fn special_halves_are_mapped_as_by_the_reference() {
    let mut halves: Vec<[u8; 32]> = edges().iter().map(bytes).collect();
    halves.extend(halves.clone().iter().map(|half| {
        let mut half = *half;
        half[31] ^= 0x80;
        half
    }));
    let n = halves.len();
    let all: Vec<[u8; 64]> = (0..n)
        .flat_map(|i| [0, 1, 2, 5, n / 2].map(|step| [halves[i], halves[(i + step) % n]]))
        .map(|pair| pair.as_flattened().try_into().unwrap())
        .collect();
    let expected: Vec<[u8; 32]> =
        all.iter().map(|uniform| reference(uniform).compress().to_bytes()).collect();
    for b in paths() {
        assert_eq!(encoded(b, &mapped(b, &all)), expected);
    }
}

#[test]
fn the_constants_are_what_they_are_called() {
    let number = |f: Fe| big(&f.to_bytes());
    let d = sub(&int(0), &(int(121_665) * inv(&int(121_666))));
    let minus_one = p() - 1u8;
    let square = |f: Fe| number(f) * number(f) % p();
    assert_eq!(number(edwards::D), d);
    assert_eq!(square(encoding::SQRT_M1), minus_one);
    assert!(!number(encoding::SQRT_M1).bit(0));
    let minus_d_minus_one = sub(&minus_one, &d);
    assert_eq!(square(encoding::SQRT_AD_MINUS_ONE), minus_d_minus_one);
    assert_eq!(square(encoding::INVSQRT_A_MINUS_D) * &minus_d_minus_one % p(), int(1));
    assert_eq!(number(encoding::ONE_MINUS_D_SQ), sub(&int(1), &(&d * &d)));
    let d_minus_one = sub(&d, &int(1));
    assert_eq!(number(encoding::D_MINUS_ONE_SQ), &d_minus_one * &d_minus_one % p());
    let [x, y, z, t] = Element::GENERATOR.0.map(number);
    assert_eq!((z, t), (int(1), &x * &y % p()));
    assert_eq!(y * 5u8 % p(), int(4));
    assert!(!x.bit(0));
}

#[test]
fn every_operation_agrees_with_the_reference_at_every_length() {
    let (uniform, scalars) = (uniform(37), scalars());
    let one_each: Vec<[u8; 32]> = scalars.iter().cycle().take(37).copied().collect();
    let points: Vec<RistrettoPoint> = uniform.iter().map(reference).collect();
    let compress = |p: RistrettoPoint| p.compress().to_bytes();
    // The reference requires reduced scalars, which are equivalent for an element of prime order.
    let times = |p: &RistrettoPoint, s: &[u8; 32]| compress(p * Scalar::from_bytes_mod_order(*s));
    let base = points[0];
    for b in paths() {
        for n in [0, 1, 3, 4, 5, 7, 8, 9, 37] {
            let (uniform, points, one_each) = (&uniform[..n], &points[..n], &one_each[..n]);
            let elements = mapped(b, uniform);
            let bytes: Vec<[u8; 32]> = points.iter().copied().map(compress).collect();
            assert_eq!(encoded(b, &elements), bytes);
            assert_eq!(encoded(b, &decoded(b, &bytes).unwrap()), bytes);
            let products: Vec<_> = points.iter().zip(one_each).map(|(p, s)| times(p, s)).collect();
            assert_eq!(encoded(b, &multiplied(b, &elements, one_each)), products);
            // The products are the same for decoded elements, whose Z is 1.
            assert_eq!(encoded(b, &multiplied(b, &decoded(b, &bytes).unwrap(), one_each)), products);
            for scalar in &scalars {
                let mut all = elements.clone();
                assert_eq!(multiply_all_with(b, &mut all, scalar), b);
                let products: Vec<_> = points.iter().map(|p| times(p, scalar)).collect();
                assert_eq!(encoded(b, &all), products);
            }
            let others: Vec<Element> = elements.iter().rev().copied().collect();
            let pairs = || points.iter().zip(points.iter().rev());
            let mut sums = elements.clone();
            assert_eq!(combine_with(b, &mut sums, &others, 0), b);
            assert_eq!(encoded(b, &sums), pairs().map(|(p, q)| compress(p + q)).collect::<Vec<_>>());
            let mut differences = elements.clone();
            assert_eq!(combine_with(b, &mut differences, &others, u64::MAX), b);
            assert_eq!(encoded(b, &differences), pairs().map(|(p, q)| compress(p - q)).collect::<Vec<_>>());
            // An element with itself: twice the element, and the identity.
            let mut twice = elements.clone();
            add(&mut twice, &elements);
            assert_eq!(encoded(b, &twice), points.iter().map(|p| compress(p + p)).collect::<Vec<_>>());
            subtract(&mut twice, &elements);
            assert!(twice.iter().zip(&elements).all(|(a, b)| a.equals(b)));
            subtract(&mut twice, &elements);
            assert!(twice.iter().all(|a| a.equals(&Element::IDENTITY)));
            assert_eq!(encoded(b, &twice), vec![[0; 32]; n]);
        }
        let table = Table::new(&mapped(b, &uniform[..1])[0]);
        for n in [1, 4, 8, scalars.len()] {
            let mut out = vec![Element::IDENTITY; n];
            assert_eq!(table.multiply_with(b, &scalars[..n], &mut out), b);
            let expected: Vec<_> = scalars[..n].iter().map(|s| times(&base, s)).collect();
            assert_eq!(encoded(b, &out), expected);
        }
    }
}

/// Limbs have different bounds on each path, and every path accepts the output of another.
#[test]
fn elements_go_from_path_to_path() {
    let (uniform, scalars) = (uniform(9), samples(9));
    let expected: Vec<[u8; 32]> = uniform
        .iter()
        .zip(&scalars)
        .map(|(u, s)| {
            let p = reference(u);
            (p * Scalar::from_bytes_mod_order(*s) + p - p - p).compress().to_bytes()
        })
        .collect();
    for a in paths() {
        for b in paths() {
            let start = mapped(a, &uniform);
            let mut out = multiplied(b, &start, &scalars);
            assert_eq!(combine_with(a, &mut out, &start, 0), a);
            assert_eq!(combine_with(b, &mut out, &start, u64::MAX), b);
            assert_eq!(combine_with(a, &mut out, &start, u64::MAX), a);
            assert_eq!(encoded(b, &out), expected);
            assert!(out.iter().zip(decoded(a, &expected).unwrap()).all(|(x, y)| x.equals(&y)));
            let table = Table::new(&start[0]);
            let (mut first, mut second) = (vec![Element::IDENTITY; 9], vec![Element::IDENTITY; 9]);
            table.multiply_with(a, &scalars, &mut first);
            table.multiply_with(b, &scalars, &mut second);
            assert_eq!(encoded(b, &first), encoded(a, &second));
        }
    }
}

#[test]
fn the_identity_stays_what_it_is() {
    for b in paths() {
        let zero = decoded(b, &[[0; 32]]).unwrap();
        assert!(zero[0].equals(&Element::IDENTITY) && !zero[0].equals(&Element::GENERATOR));
        assert_eq!(encoded(b, &multiplied(b, &zero, &samples(1))), [[0; 32]]);
        let mut out = [Element::GENERATOR; 2];
        Table::new(&Element::IDENTITY).multiply_with(b, &scalars()[..2], &mut out);
        assert_eq!(encoded(b, &out), [[0; 32]; 2]);
        // The other representatives of the coset of (0, 1): (0, -1), (i, 0) and (-i, 0).
        let (i, minus_one) = (encoding::SQRT_M1, Fe::from_bytes(&bytes(&(p() - 1u8))));
        let minus_i = Fe::from_bytes(&bytes(&sub(&int(0), &big(&i.to_bytes()))));
        for (x, y) in [(Fe::ZERO, minus_one), (i, Fe::ZERO), (minus_i, Fe::ZERO)] {
            let other = Element([x, y, Fe::ONE, Fe::ZERO]);
            assert!(other.equals(&Element::IDENTITY));
            assert_eq!(encoded(b, &[other]), [[0; 32]]);
        }
    }
}

#[test]
fn secrets_do_not_show() {
    assert_eq!(format!("{:?}", Element::GENERATOR), "Element(..)");
}

#[test]
fn digits_make_up_the_scalar() {
    for scalar in scalars() {
        let digits = |scalar| {
            let mut out = [0; 64];
            edwards::digits(scalar, &mut out);
            out
        };
        let all = digits(&scalar);
        assert!(all.iter().all(|d| (-8..=8).contains(d)));
        let sum = all.iter().rev().fold(num_bigint::BigInt::ZERO, |acc, d| acc * 16 + *d);
        assert_eq!(sum.magnitude(), &big(&scalar));
        let mut ignored = scalar;
        ignored[31] |= 0x80;
        assert_eq!(digits(&ignored), all);
    }
}

#[test]
fn what_is_no_encoding_is_refused_as_by_the_reference() {
    // A sixteenth of all numbers of 256 bits are encodings: 25 of 400, with a standard deviation of 5.
    let candidates: Vec<[u8; 32]> =
        (0..400u32).map(|i| Sha512::digest(i.to_le_bytes())[..32].try_into().unwrap()).collect();
    let valid = candidates.iter().filter(|c| CompressedRistretto(**c).decompress().is_some()).count();
    assert!((1..50).contains(&valid));
    for b in paths() {
        for c in &candidates {
            assert_eq!(decoded(b, &[*c]).is_ok(), CompressedRistretto(*c).decompress().is_some());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn multiplication_agrees(wide: [[u8; 32]; 4], scalars: [[u8; 32]; 2]) {
        let uniform: Vec<[u8; 64]> = wide.chunks(2).map(|w| w.as_flattened().try_into().unwrap()).collect();
        let expected: Vec<[u8; 32]> = uniform.iter().zip(&scalars).map(|(u, s)| {
            let mut s = *s;
            s[31] &= 0x7f;
            (reference(u) * Scalar::from_bytes_mod_order(s)).compress().to_bytes()
        }).collect();
        for b in paths() {
            prop_assert_eq!(encoded(b, &multiplied(b, &mapped(b, &uniform), &scalars)), expected.clone());
        }
    }
}
