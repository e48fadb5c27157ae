use super::*;
use crate::ahe::elgamal::Scalar;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::{RistrettoPoint, constants::RISTRETTO_BASEPOINT_POINT as G, traits::Identity};
use std::collections::HashSet;

fn rng(seed: u8) -> Prng {
    Prng::from_seed(&[seed; 32])
}

/// The secret keys of n parties, and their public keys.
fn keys(n: usize, rng: &mut Prng) -> (Vec<SecretKey>, Vec<Encoding>) {
    let secret: Vec<SecretKey> = (0..n).map(|_| SecretKey::random(rng)).collect();
    let public = secret.iter().map(SecretKey::public).collect();
    (secret, public)
}

/// Uniform elements, with the identity after every three of them.
fn messages(n: usize, rng: &mut Prng) -> Vec<Element> {
    let uniform: Vec<[u8; 64]> = (0..n).map(|_| rng.bytes()).collect();
    let elements = crate::group::ristretto255::map(&uniform);
    elements.iter().enumerate().map(|(i, element)| element.or_identity(i % 4 != 3)).collect()
}

fn points(ciphertext: &Ciphertext) -> [RistrettoPoint; 2] {
    ciphertext.0.map(|part| CompressedRistretto(part).decompress().unwrap())
}

/// c2 minus the multiples of c1 by these keys, computed with another implementation.
fn opened(ciphertext: &Ciphertext, keys: &[SecretKey]) -> Encoding {
    let [first, second] = points(ciphertext);
    let key: Scalar = keys.iter().map(|key| *key.scalar()).sum();
    (second - first * key).compress().0
}

fn all_parts(lists: &[&[Ciphertext]]) -> HashSet<Encoding> {
    lists.iter().flat_map(|list| list.iter().flat_map(|c| c.0)).collect()
}

/// Sizes around the size of a batch.
const SIZES: [usize; 6] = [0, 1, 7, BATCH - 1, BATCH, BATCH + 1];

#[test]
fn what_all_encrypt_all_decrypt_in_any_order() {
    let rng = &mut rng(1);
    for n in 1..=4 {
        let (secret, public) = keys(n, rng);
        let joint = PublicKey::joint(&public).unwrap();
        for size in SIZES {
            let messages = messages(size, rng);
            let expected = encode(&messages);
            let mut list = joint.encrypt(&messages, rng);
            assert!(list.iter().zip(expected.iter()).all(|(c, m)| opened(c, &secret) == *m));
            list = joint.rerandomise(&list, rng).unwrap();
            assert!(list.iter().zip(expected.iter()).all(|(c, m)| opened(c, &secret) == *m));
            // The first party decrypts last.
            for (party, secret) in secret.iter().enumerate().skip(1) {
                let rest = PublicKey::remaining(&public, party).unwrap();
                list = secret.partially_decrypt(&list, &rest, rng).unwrap();
            }
            assert_eq!(*encode(&secret[0].decrypt(&list).unwrap()), *expected, "{n} {size}");
            let zeros = joint.encrypt_zero(size, rng);
            assert!(zeros.len() == size && zeros.iter().all(|c| opened(c, &secret) == [0; 32]));
        }
    }
    // The second party decrypts first, then the first.
    let (secret, public) = keys(3, rng);
    let list = PublicKey::joint(&public).unwrap().encrypt(&[Element::GENERATOR], rng);
    let rest = [PublicKey::joint(&[public[0], public[2]]), PublicKey::joint(&public[2..])];
    let list = secret[1].partially_decrypt(&list, rest[0].as_ref().unwrap(), rng).unwrap();
    let list = secret[0].partially_decrypt(&list, rest[1].as_ref().unwrap(), rng).unwrap();
    assert!(secret[2].decrypt(&list).unwrap()[0].equals(&Element::GENERATOR));
}

#[test]
fn remaining_keys_are_those_of_the_first_party_and_of_the_later_ones() {
    let rng = &mut rng(2);
    let (secret, public) = keys(4, rng);
    for party in 0..4 {
        let key = PublicKey::remaining(&public, party).unwrap();
        // The parts of an encryption of the identity are r G and r PK.
        let [first, second] = points(&key.encrypt_zero(1, rng)[0]);
        let later = secret[party + 1..].iter().map(|key| *key.scalar()).sum::<Scalar>();
        assert_eq!(second, first * (*secret[0].scalar() + later));
    }
}

/// With any key missing, a message stays encrypted under it.
#[test]
fn fewer_than_all_decrypt_nothing() {
    let rng = &mut rng(3);
    let (mut secret, public) = keys(3, rng);
    let messages = messages(8, rng);
    let known: HashSet<Encoding> = encode(&messages).iter().copied().collect();
    let list = PublicKey::joint(&public).unwrap().encrypt(&messages, rng);
    for _ in 0..3 {
        secret.rotate_left(1);
        for keys in [&secret[..0], &secret[..1], &secret[..2]] {
            assert!(list.iter().all(|c| !known.contains(&opened(c, keys))));
        }
    }
}

/// The randomness of a party, as seen by parties that know everything else: r G, and the matching r PK.
#[test]
fn all_ciphertexts_have_fresh_randomness_of_full_range() {
    let rng = &mut rng(4);
    let (secret, public) = keys(2, rng);
    let joint = PublicKey::joint(&public).unwrap();
    let rest = PublicKey::remaining(&public, 1).unwrap();
    let message = [Element::GENERATOR; 300];
    let list = joint.encrypt(&message, rng);
    let (a, b) = (*secret[0].scalar(), *secret[1].scalar());
    // r G of the ciphertexts of a list derived from another one, with this message and this key.
    let masks = |fresh: &[Ciphertext], old: Option<&[Ciphertext]>, key: Scalar| -> Vec<Encoding> {
        let mask = |(i, c): (usize, &Ciphertext)| {
            let [first, second] = points(c);
            assert_eq!(second - first * key, G);
            (first - old.map_or(RistrettoPoint::identity(), |old| points(&old[i])[0])).compress().0
        };
        fresh.iter().enumerate().map(mask).collect()
    };
    let fresh = [0, 1].map(|_| joint.rerandomise(&list, rng).unwrap());
    let decrypted = [0, 1].map(|_| secret[1].partially_decrypt(&list, &rest, rng).unwrap());
    let zeros = joint.encrypt_zero(300, rng);
    let mut all = masks(&list, None, a + b);
    fresh.iter().for_each(|fresh| all.extend(masks(fresh, Some(&list), a + b)));
    decrypted.iter().for_each(|fresh| all.extend(masks(fresh, Some(&list), a)));
    all.extend(zeros.iter().map(|c| points(c)[0].compress().0));
    let distinct: HashSet<Encoding> = all.iter().copied().collect();
    assert_eq!(distinct.len(), 300 * 6);
    // Not small, so that no search finds them, and not 0.
    let small: HashSet<Encoding> = (0..1000u64).map(|r| (G * Scalar::from(r)).compress().0).collect();
    assert!(distinct.is_disjoint(&small));
    // No part occurs twice in any of the lists.
    let lists = [&list[..], &fresh[0], &fresh[1], &decrypted[0], &decrypted[1], &zeros];
    assert_eq!(all_parts(&lists).len(), 2 * 300 * 6);
}

#[test]
fn blinding_leaves_the_identity_and_makes_of_others_what_is_random() {
    let rng = &mut rng(5);
    let (secret, public) = keys(3, rng);
    let rest = PublicKey::remaining(&public, 1).unwrap();
    // Pairs of equal messages; two of every eight are the identity.
    let messages: Vec<Element> = messages(300, rng).into_iter().flat_map(|m| [m; 2]).collect();
    let plain = encode(&messages);
    let list = PublicKey::joint(&public).unwrap().encrypt(&messages, rng);
    let runs = [0, 1].map(|_| secret[1].partially_decrypt_blinded(&list, &rest, rng).unwrap());
    let remaining = [&secret[0], &secret[2]].map(|key| *key.scalar()).iter().sum::<Scalar>();
    let mut seen: HashSet<Encoding> = plain.iter().copied().collect();
    let before = seen.len();
    for run in &runs {
        for (c, plain) in run.iter().zip(plain.iter()) {
            let [first, second] = points(c);
            let blinded = (second - first * remaining).compress().0;
            assert_eq!(blinded == [0; 32], *plain == [0; 32]);
            seen.insert(blinded);
        }
    }
    // 225 of 300 messages, twice in each run, all distinct.
    assert_eq!(seen.len(), before + 2 * 2 * 225);
    assert_eq!(all_parts(&[&list, &runs[0], &runs[1]]).len(), 2 * 3 * 600);
    assert!(secret[1].partially_decrypt_blinded(&[], &rest, rng).unwrap().is_empty());
}

/// A discrete logarithm of 128 bits takes 2^64 steps. A ciphertext does not reveal its factor; the test searches the
/// factor of a known message among small scalars.
#[test]
fn blinding_factors_are_not_small() {
    let rng = &mut rng(6);
    let (secret, public) = keys(2, rng);
    let list = PublicKey::joint(&public).unwrap().encrypt(&[Element::GENERATOR; 300], rng);
    let rest = PublicKey::remaining(&public, 1).unwrap();
    let blinded = secret[1].partially_decrypt_blinded(&list, &rest, rng).unwrap();
    // The multiples of the generator by the blinding factors.
    let factors: HashSet<Encoding> = blinded.iter().map(|c| opened(c, &secret[..1])).collect();
    let small: HashSet<Encoding> = (0..1000u64).map(|r| (G * Scalar::from(r)).compress().0).collect();
    assert!(factors.len() == 300 && factors.is_disjoint(&small));
}

#[test]
fn what_is_no_ciphertext_is_refused_wherever_it_stands() {
    let rng = &mut rng(7);
    let (secret, public) = keys(2, rng);
    let joint = PublicKey::joint(&public).unwrap();
    let good = joint.encrypt(&messages(2 * BATCH + 5, rng), rng);
    let (mut odd, mut high) = ([0; 32], [0xff; 32]);
    (odd[0], high[31]) = (1, 0x7f);
    for forged in [[0; 32], [0xff; 32], odd, high] {
        for at in [0, 3, BATCH - 1, BATCH, 2 * BATCH + 4] {
            for part in [0, 1] {
                let mut bad = good.clone();
                bad[at].0[part] = forged;
                let wrong = Some(Malformed(at));
                assert_eq!(joint.rerandomise(&bad, rng).err(), wrong);
                assert_eq!(secret[0].partially_decrypt(&bad, &joint, rng).err(), wrong);
                assert_eq!(secret[0].partially_decrypt_blinded(&bad, &joint, rng).err(), wrong);
                assert_eq!(secret[0].decrypt(&bad).err(), wrong);
            }
        }
        // The first of several malformed ones.
        let mut bad = good.clone();
        for at in [2 * BATCH, BATCH + 1, 2 * BATCH + 1] {
            bad[at].0[0] = forged;
        }
        assert_eq!(joint.rerandomise(&bad, rng).err(), Some(Malformed(BATCH + 1)));
        let keys = [public[0], forged, public[1]];
        assert_eq!(PublicKey::joint(&keys).err(), Some(Malformed(1)));
    }
}

/// The output is as if the input had been an encryption of the identity, each with independent randomness.
#[test]
fn in_place_of_what_is_no_ciphertext_comes_a_fresh_one_of_the_identity() {
    let rng = &mut rng(17);
    let (secret, public) = keys(2, rng);
    let joint = PublicKey::joint(&public).unwrap();
    let messages = messages(2 * BATCH + 5, rng);
    let good = joint.encrypt(&messages, rng);
    assert_eq!(joint.rerandomise_any(&good, rng).1, FirstMalformed::NONE);
    assert_eq!(joint.rerandomise_any(&[], rng), (Vec::new(), FirstMalformed::NONE));
    let (mut odd, mut high) = ([0; 32], [0xff; 32]);
    (odd[0], high[31]) = (1, 0x7f);
    let places = [(2 * BATCH + 4, [0; 32]), (BATCH, odd), (BATCH - 1, [0xff; 32]), (7, high)];
    for parts in [&[0][..], &[1], &[0, 1]] {
        let (mut bad, mut expected) = (good.clone(), encode(&messages));
        for (at, forged) in places {
            parts.iter().for_each(|part| bad[at].0[*part] = forged);
            expected[at] = [0; 32];
            // The position of the first malformed ciphertext.
            let (fresh, malformed) = joint.rerandomise_any(&bad, rng);
            assert_eq!(malformed.position(), Some(at));
            assert!(fresh.iter().zip(expected.iter()).all(|(c, m)| opened(c, &secret) == *m));
            assert_eq!(all_parts(&[&good, &fresh]).len(), 4 * good.len());
        }
    }
}

#[test]
fn keys_that_cancel_out_are_no_joint_key() {
    let rng = &mut rng(8);
    let (_, public) = keys(2, rng);
    let sum =
        public.iter().map(|key| CompressedRistretto(*key).decompress().unwrap()).sum::<RistrettoPoint>();
    let rogue = (-sum).compress().0;
    assert_eq!(PublicKey::joint(&[public[0], public[1], rogue]).err(), Some(Malformed(3)));
    assert_eq!(PublicKey::joint(&[]).err(), Some(Malformed(0)));
    assert!(PublicKey::joint(&[public[0], public[1], public[1]]).is_ok());
}

/// The attack on keys that are shown without a prior commitment.
#[test]
fn a_party_that_chooses_its_key_last_decrypts_alone() {
    let rng = &mut rng(9);
    let (_, honest) = keys(2, rng);
    let own = SecretKey::random(rng);
    let sum =
        honest.iter().map(|key| CompressedRistretto(*key).decompress().unwrap()).sum::<RistrettoPoint>();
    let rogue = (CompressedRistretto(own.public()).decompress().unwrap() - sum).compress().0;
    let keys = [honest[0], honest[1], rogue];
    let secret = messages(4, rng);
    let list = PublicKey::joint(&keys).unwrap().encrypt(&secret, rng);
    assert_eq!(*encode(&own.decrypt(&list).unwrap()), *encode(&secret));
}
