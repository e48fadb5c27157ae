//! Compares the single map and its inverse with the RFC's vectors, with curve25519-dalek and with big integers.

use curve25519_dalek::ristretto::RistrettoPoint;
use num_bigint::BigUint;
use sha2::{Digest, Sha512};

use super::*;
use crate::curve25519::is_canonical;
use crate::oracle::*;

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

fn mapped(b: Backend, numbers: &[[u8; 32]]) -> Vec<Element> {
    let mut out = vec![Element::GENERATOR; numbers.len()];
    assert_eq!(map_one_with(b, numbers, &mut out), b, "the path that was forced is the one that ran");
    out
}

fn unmapped(b: Backend, elements: &[Element]) -> Vec<Preimages> {
    let mut out = vec![[[7; 32]; 8]; elements.len()];
    assert_eq!(unmap_with(b, elements, &mut out), b);
    out
}

fn encoded(elements: &[Element]) -> Vec<[u8; 32]> {
    let mut out = vec![[0; 32]; elements.len()];
    encode(elements, &mut out);
    out
}

/// The element to which dalek maps a number.
fn reference(number: &[u8; 32]) -> [u8; 32] {
    RistrettoPoint::map_to_curve(*number).compress().to_bytes()
}

/// The number modulo p, or p minus it, whichever is even.
fn absolute(number: &[u8; 32]) -> [u8; 32] {
    let mut number = *number;
    number[31] &= 0x7f;
    let t = big(&number) % p();
    bytes(&if t.bit(0) { p() - t } else { t })
}

/// The existing preimages, sorted.
fn found(of: &Preimages) -> Vec<[u8; 32]> {
    let mut found: Vec<[u8; 32]> = of.iter().copied().filter(|number| *number != NONE).collect();
    found.sort_unstable();
    found
}

/// n uniform elements, the same in every run.
fn uniform(n: usize) -> Vec<Element> {
    let uniform: Vec<[u8; 64]> = (0..n).map(|i| Sha512::digest(i.to_le_bytes()).into()).collect();
    let mut out = vec![Element::IDENTITY; n];
    map(&uniform, &mut out);
    out
}

/// All four representatives of an element.
fn representatives(element: &Element) -> [Element; 4] {
    let [x, y, z, t] = element.0;
    let minus = |a: Fe| Fe::from_bytes(&bytes(&sub(&int(0), &big(&a.to_bytes()))));
    let times_i = |a: Fe| a.mul(encoding::SQRT_M1);
    let (ix, iy, it) = (times_i(x), times_i(y), minus(t));
    [[x, y, z, t], [minus(x), minus(y), z, t], [iy, ix, z, it], [minus(iy), minus(ix), z, it]].map(Element)
}

/// Special numbers: edges, including 0, 1 and -1, and preimages of r = -1 / d and r = -d.
fn special() -> Vec<[u8; 32]> {
    let d = big(&edwards::D.to_bytes());
    let i = big(&encoding::SQRT_M1.to_bytes());
    let [a, b] = [sqrt(&(&i * &d % p())), sqrt(&(&i * inv(&d) % p()))];
    let mut all = edges();
    all.extend([p() - &a, p() - &b, a, b, i.clone(), p() - i]);
    all.iter().map(bytes).collect()
}

#[test]
fn two_single_maps_add_up_to_the_map_of_rfc_9496() {
    let text = include_str!("../../vectors/rfc9496-ristretto255.txt");
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("map ")).collect();
    assert_eq!(lines.len(), 11);
    let half = |at: usize| lines.iter().map(|line| hex(&line[at..at + 64])).collect::<Vec<_>>();
    let expected = lines.iter().map(|line| hex(&line[129..])).collect::<Vec<_>>();
    for b in paths() {
        let mut sums = mapped(b, &half(0));
        add(&mut sums, &mapped(b, &half(64)));
        assert_eq!(encoded(&sums), expected);
    }
}

#[test]
fn numbers_are_mapped_as_by_the_reference_at_every_length() {
    let all = [special(), samples(37)].concat();
    let expected: Vec<[u8; 32]> = all.iter().map(reference).collect();
    for b in paths() {
        assert_eq!(encoded(&mapped(b, &all)), expected);
        for n in [0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31] {
            assert_eq!(encoded(&mapped(b, &all[..n])), expected[..n], "{n}");
        }
    }
}

#[test]
fn a_number_comes_back_and_every_preimage_is_one() {
    let numbers = [special(), samples(3000)].concat();
    for b in paths() {
        let elements = mapped(b, &numbers);
        let all = unmapped(b, &elements);
        let mut identities = 0;
        for ((number, element), preimages) in numbers.iter().zip(&elements).zip(&all) {
            let found = found(preimages);
            if element.equals(&Element::IDENTITY) {
                assert!(found.is_empty());
                identities += 1;
                continue;
            }
            assert!(found.contains(&absolute(number)), "{number:?}");
            assert!(found.iter().all(|t| is_canonical(t) && t[0] & 1 == 0));
            assert!(found.windows(2).all(|two| two[0] < two[1]), "they are distinct");
            assert!(mapped(b, &found).iter().all(|again| again.equals(element)));
        }
        // 0, p and 2^255, and the roots of i d and i / d.
        assert!((6..20).contains(&identities), "{identities}");
        // Tested at every length, and with equal results on every path.
        assert_eq!(unmapped(Backend::Portable, &elements), all);
        for n in [0, 1, 3, 4, 5, 7, 8, 9, 17] {
            assert_eq!(unmapped(b, &elements[..n]), all[..n]);
        }
    }
}

/// All possible preimages, computed with big integers: for each representative, both roots as s, both T and both cases
/// of the map. The reference determines the actual ones.
fn by_big_integers(element: &Element) -> Vec<[u8; 32]> {
    let target = encoded(&[*element])[0];
    let number = |a: Fe| big(&a.to_bytes());
    let (one, d, i) = (int(1), number(edwards::D), number(encoding::SQRT_M1));
    let q = number(encoding::SQRT_AD_MINUS_ONE);
    let factor = (&d + &one) * inv(&sub(&d, &one)) % p();
    let mut all = Vec::new();
    for representative in representatives(element) {
        let [x, y, z, _] = representative.0.map(number);
        let z = inv(&z);
        let (x, y) = (x * &z % p(), y * &z % p());
        let ss = sub(&one, &y) * inv(&(&one + &y)) % p();
        let t = int(2) * sqrt(&ss) * inv(&(&q * &x)) % p();
        for t in [sub(&int(0), &t), t] {
            let a = (t + &one) * &factor % p();
            let (sum, difference) = ((&ss + &a) % p(), sub(&ss, &a));
            for (r, by) in [(&sum, &difference), (&difference, &sum)] {
                // t^2 = -i r
                let square = r * inv(by) * sub(&int(0), &i) % p();
                if euler(&square) == one {
                    all.push(absolute(&bytes(&sqrt(&square))));
                }
            }
        }
    }
    all.retain(|t| reference(t) == target);
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn no_preimage_is_missed() {
    let elements = [uniform(40), mapped(Backend::Portable, &samples(10)), vec![Element::GENERATOR]].concat();
    let expected: Vec<Vec<[u8; 32]>> = elements.iter().map(by_big_integers).collect();
    for b in paths() {
        let all: Vec<Vec<[u8; 32]>> = unmapped(b, &elements).iter().map(found).collect();
        assert_eq!(all, expected);
    }
}

/// (p + 1) / 2 non-negative numbers map to l elements, about p / 8.
#[test]
fn elements_have_four_preimages_on_average_and_at_most_eight() {
    let elements = uniform(4000);
    let mut out = vec![[[0; 32]; 8]; elements.len()];
    unmap(&elements, &mut out);
    let mut counts = [0; 9];
    out.iter().for_each(|of| counts[found(of).len()] += 1);
    let total: usize = counts.iter().enumerate().map(|(n, elements)| n * elements).sum();
    // 16,000 expected, with a standard deviation of about 90.
    assert!((15_500..16_500).contains(&total), "{counts:?}");
    assert!(counts.iter().all(|elements| *elements > 0), "{counts:?}");
}

/// The computation of an element determines which of the four points represents it.
#[test]
fn all_representatives_of_an_element_have_the_same_preimages() {
    let elements = uniform(20);
    for b in paths() {
        for element in &elements {
            let all = unmapped(b, &representatives(element));
            assert!(all.iter().all(|of| found(of) == found(&all[0])));
            // With a different Z.
            let z = Fe::from_bytes(&samples(1)[0]);
            let scaled = Element(element.0.map(|coordinate| coordinate.mul(z)));
            assert!(scaled.equals(element));
            assert_eq!(found(&unmapped(b, &[scaled])[0]), found(&all[0]));
        }
        let identities = representatives(&Element::IDENTITY);
        assert!(identities.iter().all(|element| element.equals(&Element::IDENTITY)));
        // Also among other elements.
        let mut beside = uniform(9);
        beside[2..6].copy_from_slice(&identities);
        let (of_all, alone) = (unmapped(b, &beside), unmapped(b, &uniform(9)));
        for (i, of) in of_all.iter().enumerate() {
            let expected = if (2..6).contains(&i) { [NONE; 8] } else { alone[i] };
            assert_eq!(*of, expected);
        }
    }
}

#[test]
fn an_element_or_the_identity_in_its_place() {
    for element in uniform(3) {
        assert!(element.or_identity(true).equals(&element));
        assert!(element.or_identity(false).equals(&Element::IDENTITY));
    }
}

/// The numbers that map to the identity, for callers whose numbers must not: 0, the roots of i d and i / d, and the
/// preimages of all four pairs of (i, 0) and (-i, 0).
#[test]
fn what_leads_to_the_identity_is_known() {
    let number = |a: Fe| big(&a.to_bytes());
    let (one, d, i) = (int(1), number(edwards::D), number(encoding::SQRT_M1));
    let q = number(encoding::SQRT_AD_MINUS_ONE);
    let mut all = vec![int(0), sqrt(&(&i * &d % p())), sqrt(&(&i * inv(&d) % p()))];
    for x in [i.clone(), p() - &i] {
        let t = int(2) * inv(&(&q * x)) % p();
        let a = (t + &one) * (&d + &one) * inv(&sub(&d, &one)) % p();
        for (r, by) in [((&one + &a) % p(), sub(&one, &a)), (sub(&one, &a), (&one + &a) % p())] {
            let square: BigUint = r * inv(&by) * (p() - &i) % p();
            if euler(&square) == one {
                all.push(sqrt(&square));
            }
        }
    }
    let mut all: Vec<[u8; 32]> = all.iter().map(|t| absolute(&bytes(t))).collect();
    all.retain(|t| reference(t) == [0; 32]);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), IDENTITIES.len(), "{all:?}");
    assert_eq!(
        all.iter().map(|t| t.map(|byte| format!("{byte:02x}")).concat()).collect::<Vec<_>>(),
        IDENTITIES
    );
}

/// The numbers that map to the identity, little-endian.
const IDENTITIES: [&str; 7] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "068c5b499d860a72cba9a67991e93e203e07f2cecac35ff78ba286490a9d647f",
    "2a6382d98d9b4fe0526bf32f2e36b1c6fb594edaadaa30f35a29566c59adfe4c",
    "40256ac5e4c73af6057c6d5120f90c4362ab4ad9015bc365598daca048bac400",
    "a2ce3011a78ef573098dfffa7c6319a2973184a23f8c7e4fb28a95abee32615f",
    "a81b5c4acb2a3075aa6dea0e2da9bccd156eeb739954347597eb7bf45855b305",
    "bced0d08ab13994b901f939d3d6f164d7d1f1b7860d5ccdbca27c4b705f23d02",
];
