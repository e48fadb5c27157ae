//! Compares the kernel with the RFCs' vectors and with a slow big-integer oracle.

use num_bigint::BigUint;
use proptest::prelude::*;
use sha2::{Digest, Sha512};

use super::*;
use crate::field::VECTORS;
use crate::oracle::*;

// ---- The oracle: affine arithmetic on v^2 = u^3 + A u^2 + u and on its twist 2 v^2 = u^3 + A u^2 + u. ----

/// u^3 + A u^2 + u.
fn curve(u: &BigUint) -> BigUint {
    (u * u * u + int(486_662) * u * u + u) % p()
}

type Affine = Option<(BigUint, BigUint)>;

/// Sum of two points of b v^2 = u^3 + A u^2 + u; `None` is the point at infinity.
fn add(b: &BigUint, s: &Affine, t: &Affine) -> Affine {
    let (Some((u1, v1)), Some((u2, v2))) = (s, t) else { return s.clone().or(t.clone()) };
    let slope = if u1 != u2 {
        sub(v2, v1) * inv(&sub(u2, u1)) % p()
    } else if v1 == v2 && *v1 != int(0) {
        (int(3) * u1 * u1 + int(2 * 486_662) * u1 + 1u8) * inv(&(int(2) * b * v1 % p())) % p()
    } else {
        return None;
    };
    let u3 = sub(&(b * &slope * &slope % p()), &(int(486_662) + u1 + u2));
    let v3 = sub(&(&slope * sub(u1, &u3) % p()), v1);
    Some((u3, v3))
}

/// Abscissa of k times a point with abscissa `u`, 0 at infinity; double-and-add.
fn multiply(k: &BigUint, u: &BigUint) -> BigUint {
    let g = curve(u);
    // b is 1 on the curve, and the non-square 2 on the twist.
    let b = if euler(&g) == p() - 1u8 { int(2) } else { int(1) };
    let v = sqrt(&(g * inv(&b) % p()));
    let point = Some((u.clone(), v));
    let mut sum = None;
    for i in (0..k.bits()).rev() {
        sum = add(&b, &sum, &sum);
        if k.bit(i) {
            sum = add(&b, &sum, &point);
        }
    }
    sum.map_or(int(0), |(u, _)| u)
}

/// Elligator2 as in RFC 9380, section 6.7.1, abscissa only.
fn elligator2_oracle(r: &BigUint) -> BigUint {
    let x1 = sub(&int(0), &(int(486_662) * inv(&((int(1) + int(2) * r * r) % p())) % p()));
    if euler(&curve(&x1)) == p() - 1u8 { sub(&sub(&int(0), &x1), &int(486_662)) } else { x1 }
}

// ---- Helpers. ----

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

fn ladder_on(b: Backend, scalar: &[u8; 32], points: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let mut out = points.to_vec();
    assert_eq!(ladder_with(b, scalar, &mut out), b, "the path that was forced is the one that ran");
    out
}

fn elligator2_on(b: Backend, r: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let mut out = vec![[0; 32]; r.len()];
    assert_eq!(elligator2_with(b, r, &mut out), b, "the path that was forced is the one that ran");
    out
}

/// The abscissae of small order: 0, and the existing abscissae of order 4 and 8 on the curve and its twist.
fn small_order() -> Vec<BigUint> {
    // Order 4: u = 1 on the curve, u = -1 on the twist. A doubling goes to (u^2 - 1)^2 / (4 (u^3 + A u^2 + u)), which
    // is 1 or -1 for order 8: (u^2 - 1)^2 = s 4 (u^3 + A u^2 + u). With w = u + 1/u this is w^2 - 4 s w - 4 s A - 4 =
    // 0.
    let mut all = vec![int(0), int(1), p() - 1u8];
    for s in [int(1), p() - 1u8] {
        for w in roots(&sub(&int(0), &(int(4) * &s)), &sub(&int(0), &(int(4 * 486_662) * &s + 4u8))) {
            all.extend(roots(&sub(&int(0), &w), &int(1)));
        }
    }
    all
}

/// The roots of x^2 + b x + c.
fn roots(b: &BigUint, c: &BigUint) -> Vec<BigUint> {
    let d = sub(&(b * b % p()), &(int(4) * c % p()));
    if euler(&d) != int(1) {
        return Vec::new();
    }
    let (s, half) = (sqrt(&d), inv(&int(2)));
    vec![sub(&s, b) * &half % p(), sub(&sub(&int(0), &s), b) * &half % p()]
}

/// The facts by which the map has no exceptions.
#[test]
fn elligator2_has_no_exceptions() {
    let minus = |n: BigUint| sub(&int(0), &n);
    assert_eq!(euler(&minus(inv(&int(2)))), p() - 1u8, "-1/2 is no square: 1 + 2 r^2 is never 0");
    let a = int(486_662);
    assert_eq!(euler(&(&a * &a - 4u8)), p() - 1u8, "u^2 + A u + 1 has no root");
}

#[test]
fn canonical() {
    for e in edges() {
        assert_eq!(is_canonical(&bytes(&e)), e < p());
    }
}

// ---- Vectors. ----

#[test]
fn rfc_7748_section_5_2() {
    let vectors = [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ];
    for b in paths() {
        for (scalar, u, out) in vectors {
            // The second u has bit 255 set, which X25519 ignores and the ladder does not.
            let mut u = hex(u);
            u[31] &= 0x7f;
            assert_eq!(ladder_on(b, &hex(scalar), &[u]), [hex(out)]);
        }
    }
}

#[test]
fn rfc_7748_iterated() {
    for b in paths() {
        let mut k = [0; 32];
        k[0] = 9;
        let mut u = k;
        for i in 1..=1000 {
            (k, u) = (ladder_on(b, &k, &[u])[0], k);
            // X25519 ignores bit 255 of a point; k is an earlier output, in which it is 0.
            assert!(is_canonical(&u));
            match i {
                1 => assert_eq!(k, hex("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079")),
                1000 => {
                    assert_eq!(k, hex("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"))
                }
                _ => {}
            }
        }
    }
}

#[test]
fn rfc_7748_section_6_1() {
    let a = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    let a_public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
    let b = hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    let b_public = hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
    let shared = hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    let mut base = [0; 32];
    base[0] = 9;
    for path in paths() {
        assert_eq!(ladder_on(path, &a, &[base, b_public]), [a_public, shared]);
        assert_eq!(ladder_on(path, &b, &[base, a_public]), [b_public, shared]);
    }
}

/// `hash_to_field` of RFC 9380, sections 5.2 and 5.3.1, for SHA-512 and this field (L = 48).
fn hash_to_field(msg: &[u8], dst: &[u8], count: usize) -> Vec<[u8; 32]> {
    let len = 48 * count;
    let dst: Vec<u8> = [dst, &[dst.len() as u8]].concat();
    let mut h = Sha512::new();
    for part in [&[0; 128], msg, &(len as u16).to_be_bytes(), &[0], &dst] {
        h.update(part);
    }
    let b0 = h.finalize();
    let (mut last, mut uniform) = ([0; 64], Vec::new());
    for i in 1..=len.div_ceil(64) {
        let xored: Vec<u8> = b0.iter().zip(last).map(|(a, b)| a ^ b).collect();
        last = Sha512::digest([&xored[..], &[i as u8], &dst].concat()).into();
        uniform.extend(last);
    }
    uniform[..len].chunks(48).map(|c| bytes(&(BigUint::from_bytes_be(c) % p()))).collect()
}

#[test]
fn rfc_9380_appendix_j_4() {
    let text = include_str!("../../vectors/rfc9380-curve25519.txt");
    let mut found = 0;
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let dst = format!("QUUX-V01-CS02-with-curve25519_XMD:SHA-512_ELL2_{}_", words[0]);
        let r: Vec<_> = words[2..].iter().step_by(2).map(|w| hex_number(w)).collect();
        let q: Vec<_> = words[3..].iter().step_by(2).map(|w| hex_number(w)).collect();
        assert_eq!(hash_to_field(words[1].trim_matches('"').as_bytes(), dst.as_bytes(), r.len()), r);
        for b in paths() {
            assert_eq!(elligator2_on(b, &r), q);
        }
        found += q.len();
    }
    assert_eq!(found, 15, "five messages: one element each for NU, two for RO");
}

// ---- Comparison with the oracle, and between paths. ----

#[test]
fn ladder_agrees_with_the_oracle() {
    // Half of the samples are on the curve, half on the twist.
    let mut points: Vec<[u8; 32]> = edges().iter().map(bytes).collect();
    points.extend(small_order().iter().map(bytes));
    points.extend(samples(8));
    let on_twist = points.iter().filter(|u| euler(&curve(&big(u))) == p() - 1u8).count();
    assert!(on_twist >= 4 && on_twist + 4 <= points.len());
    for scalar in [[0; 32], [0xff; 32], samples(1)[0]] {
        let k = big(&clamp(scalar));
        let expected: Vec<_> = points.iter().map(|u| bytes(&multiply(&k, &(big(u) % p())))).collect();
        for b in paths() {
            assert_eq!(ladder_on(b, &scalar, &points), expected);
        }
    }
}

#[test]
fn small_order_gives_zero_and_leaves_its_neighbours_alone() {
    let small: Vec<_> = small_order().iter().map(bytes).collect();
    assert_eq!(small.len(), 5, "order 2; order 4 on curve and twist; order 8, twice, on the curve alone");
    let scalar = [0x42; 32];
    // Every third point, so that all lanes of a vector get both kinds; the vectors of a lane share one inversion.
    let good = samples(51);
    let at = |i: usize| if i.is_multiple_of(3) { small[i / 3 % small.len()] } else { good[i] };
    let mixed: Vec<_> = (0..good.len()).map(at).collect();
    for b in paths() {
        let (alone, out) = (ladder_on(b, &scalar, &good), ladder_on(b, &scalar, &mixed));
        for (i, out) in out.iter().enumerate() {
            assert_eq!(*out, if i.is_multiple_of(3) { [0; 32] } else { alone[i] });
        }
    }
}

#[test]
fn elligator2_agrees_with_the_oracle() {
    let mut r: Vec<[u8; 32]> = edges().iter().map(bytes).collect();
    r.extend(samples(16));
    let expected: Vec<_> = r.iter().map(|r| bytes(&elligator2_oracle(&(big(r) % p())))).collect();
    for b in paths() {
        let out = elligator2_on(b, &r);
        assert_eq!(out, expected);
        for (r, u) in r.iter().zip(&out) {
            assert!(is_canonical(u));
            // r = 0 gives 0, the point of order 2; every other r gives a non-zero square.
            let on_curve = if big(r) % p() == int(0) { int(0) } else { int(1) };
            assert_eq!(euler(&curve(&big(u))), on_curve);
        }
    }
}

/// Every output but 0 has four preimages, and their equation has no further roots.
#[test]
fn elligator2_outputs_have_four_preimages() {
    for r in samples(20) {
        let u = elligator2_oracle(&big(&r));
        let other = inv(&(int(2) * big(&r)));
        let four = [big(&r), sub(&int(0), &big(&r)), other.clone(), sub(&int(0), &other)];
        let distinct: std::collections::HashSet<_> = four.iter().collect();
        assert_eq!(distinct.len(), 4);
        for b in paths() {
            assert_eq!(
                elligator2_on(b, &four.each_ref().map(bytes)),
                [bytes(&u), bytes(&u), bytes(&u), bytes(&u)]
            );
        }
        // u = -A / (1 + 2 r^2) or u = -A + A / (1 + 2 r^2): two values of r^2, each with two roots.
        let a = int(486_662);
        for x in [u.clone(), sub(&sub(&int(0), &u), &a)] {
            let square = sub(&(sub(&int(0), &a) * inv(&x) % p()), &int(1)) * inv(&int(2)) % p();
            assert!(four.iter().filter(|r| *r * *r % p() == square).count() == 2);
        }
    }
}

/// Lengths around a vector, around the chunk that shares an inversion, and several chunks with a remainder.
#[test]
fn every_length_agrees_with_single_items() {
    // 4 and 8 lanes, twice as many where they are paired.
    let lengths = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 4 * VECTORS - 1, 4 * VECTORS, 8 * VECTORS + 1];
    let all = samples(16 * VECTORS + 3);
    let scalar = [0x17; 32];
    let mut one_by_one = all.clone();
    one_by_one
        .chunks_mut(1)
        .for_each(|u| assert_eq!(ladder_with(Backend::Portable, &scalar, u), Backend::Portable));
    let mapped: Vec<_> = all.iter().map(|u| elligator2_on(Backend::Portable, &[*u])[0]).collect();
    for b in paths() {
        for n in lengths.into_iter().chain([all.len()]) {
            assert_eq!(ladder_on(b, &scalar, &all[..n]), one_by_one[..n]);
            assert_eq!(elligator2_on(b, &all[..n]), mapped[..n]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn ladder_commutes(a: [u8; 32], b: [u8; 32], r: [[u8; 32]; 3]) {
        for path in paths() {
            let points = elligator2_on(path, &r);
            let ab = ladder_on(path, &a, &ladder_on(path, &b, &points));
            let ba = ladder_on(path, &b, &ladder_on(path, &a, &points));
            prop_assert_eq!(&ab, &ba);
            prop_assert!(ab.iter().all(|u| *u != [0; 32]));
        }
    }
}
