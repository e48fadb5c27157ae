//! Every group has the properties that the protocols need, and rejects all other encodings.

use super::*;
use crate::testing::every_bit_is_random;
use std::collections::HashSet;

/// The generator of P-256 from FIPS 186-4, D.1.2.3.
const GENERATOR: [&str; 2] = [
    "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
];

/// More than two batches of a kernel.
const MANY: usize = 600;

fn is_a_group<G: Group>() {
    let mut rng = Prng::from_seed(&[7; 32]);
    let all: Vec<ItemHash> = (0..MANY).map(|_| ItemHash::random(&mut rng)).collect();
    for n in [0, 1, 255, 256, 257, MANY] {
        let hashes = &all[..n];
        let (a, inverse) = G::Key::with_inverse(&mut rng);
        let b = G::Key::random(&mut rng);
        let [under_a, under_b] = [&a, &b].map(|key| G::map_and_raise(hashes, key).unwrap());
        // The PRF commutes, and a key can be removed.
        let under_ab = G::raise(&under_a, &b).unwrap();
        assert!(under_ab == G::raise(&under_b, &a).unwrap(), "{n}");
        assert!(under_b == G::raise(&under_ab, &inverse).unwrap(), "{n}");
        // Values depend on the item and on the key.
        let values: HashSet<&[u8]> =
            [&under_a, &under_b, &under_ab].into_iter().flatten().map(|p| p.as_ref()).collect();
        assert_eq!(values.len(), 3 * n);
        // Stored or sent values can be restored.
        let again = G::Key::of_ours(b.as_bytes()).unwrap();
        assert!(G::raise(&under_a, &again).unwrap() == under_ab && b.as_bytes().len() == G::Key::BYTES);
        for point in &under_a {
            let mut sent = Vec::new();
            point.put(&mut sent);
            assert!(sent.len() == G::Point::SIZE && sent == point.as_ref());
            assert!(G::Point::get(&sent) == Ok(*point) && G::Point::of_ours(&sent) == Some(*point));
        }
    }
    assert!(G::Key::of_ours(&[1; 3]).is_none() && G::Point::of_ours(&[1; 3]).is_none());
    let keys: Vec<Vec<u8>> = (0..400).map(|_| G::Key::random(&mut rng).as_bytes().to_vec()).collect();
    every_bit_is_random(&keys, 252);
}

#[test]
fn each_is_a_group_with_a_commutative_prf() {
    is_a_group::<Curve25519>();
    is_a_group::<Ristretto255>();
    is_a_group::<P256>();
    is_a_group::<P256Compressed>();
}

#[test]
fn unfit_points_are_refused_wherever_they_stand() {
    fn refuses<G: Group>(forged: &[&[u8]]) {
        let mut rng = Prng::from_seed(&[8; 32]);
        let hashes: Vec<ItemHash> = (0..MANY).map(|_| ItemHash::random(&mut rng)).collect();
        let key = G::Key::random(&mut rng);
        let good = G::map_and_raise(&hashes, &key).unwrap();
        for bytes in forged {
            for at in [0, 63, 64, 255, 256, MANY - 1] {
                let mut points = good.clone();
                points[at] = G::Point::get(bytes).unwrap();
                assert!(G::raise(&points, &key) == Err(Unfit), "{} {bytes:?} {at}", G::NAME);
            }
        }
    }
    let (mut one, mut two) = ([0; 32], [0; 32]);
    (one[0], two[0]) = (1, 2);
    refuses::<Curve25519>(&[&one]);
    // The identity, a negative element, a non-square, and one that is not reduced.
    refuses::<Ristretto255>(&[&[0; 32], &one, &two, &[0xff; 32]]);
    let [x, y] = GENERATOR.map(hex);
    let mut beside = y;
    beside[31] ^= 1;
    // Not on the curve: a slightly changed point, swapped and repeated coordinates, and zeros, which encode the identity
    // elsewhere.
    let forged = [[x, beside], [y, x], [x, x], [[0; 32], [0; 32]]].map(|point| point.concat());
    refuses::<P256>(&forged.each_ref().map(|point| &point[..]));
    // The abscissae 1 and 4, which are on the twist.
    refuses::<P256Compressed>(&[&small(1), &small(4)]);
}

/// A number below 256 as 32 bytes, big-endian.
fn small(n: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[31] = n;
    bytes
}

fn hex(text: &str) -> [u8; 32] {
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
}

#[test]
fn what_is_not_canonical_or_of_another_length_is_no_point() {
    fn refuses<G: Group>(forged: &[Vec<u8>]) {
        for bytes in forged {
            assert!(G::Point::get(bytes).is_err(), "{} {bytes:?}", G::NAME);
        }
    }
    // p of Curve25519, p + 1, and a number with the top bit set; also the point of order 2.
    let mut p = [0xff; 32];
    (p[0], p[31]) = (0xed, 0x7f);
    let mut more = p;
    more[0] += 1;
    refuses::<Curve25519>(&[p, more, [0xff; 32], [0; 32]].map(|bytes| bytes.to_vec()));
    let p = hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff");
    let mut more = hex("ffffffff00000001000000000000000000000000000000000000000000000000");
    // p + 5, where 5 is an abscissa.
    more[16..].copy_from_slice(&[&[0, 0, 0, 1][..], &[0; 11], &[4]].concat());
    let wrong = [p, more, [0xff; 32]];
    refuses::<P256Compressed>(&wrong.map(|bytes| bytes.to_vec()));
    let [x, y] = GENERATOR.map(hex);
    for wrong in wrong {
        refuses::<P256>(&[[wrong, y].concat(), [x, wrong].concat(), [wrong; 2].concat()]);
    }
    // Each form of SEC 1, which encodes the identity as a zero.
    let even = 2 + y[31] % 2;
    let forms = [
        vec![],
        vec![0],
        [&[0], &x[..]].concat(),
        [&[even], &x[..]].concat(),
        [&[0], &x[..], &y].concat(),
        [&[4], &x[..], &y].concat(),
        [&[4 + even], &x[..], &y].concat(),
    ];
    refuses::<P256>(&forms);
    refuses::<P256Compressed>(&forms);
    refuses::<Curve25519>(&forms);
    refuses::<Ristretto255>(&forms);
    assert!(p256::Point::get(&[x, y].concat()).is_ok() && p256::Abscissa::get(&x).is_ok());
    assert!(ristretto255::Point::get(&[0; 32]).is_ok(), "refused when it is raised");
}

#[test]
fn names_are_of_groups_and_facts_are_theirs() {
    for (name, point) in [("curve25519", 32), ("p256", 64), ("p256-compressed", 32), ("ristretto255", 32)] {
        let facts = facts(name).unwrap();
        assert_eq!((facts.name, facts.key, facts.point), (name, 32, point));
    }
    assert_eq!(facts("p384"), None);
    // All groups of protocols are known here, each under one name.
    use crate::protocols::{self, groups};
    assert!(
        groups::ALL
            .iter()
            .all(|group| facts(group).unwrap().name == *group && groups::named(group) == Ok(group))
    );
    let of_protocols = protocols::ALL.into_iter().flat_map(|protocol| protocol.groups);
    assert!(of_protocols.into_iter().all(|group| groups::ALL.contains(group)));
    assert_eq!(groups::prepared(), groups::ALL);
    assert!(groups::named("p384").unwrap_err().contains("p256-compressed"));
}
