use super::*;
use crate::testing::every_bit_is_random;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::{RistrettoPoint, constants::RISTRETTO_BASEPOINT_POINT as G};
use std::collections::HashSet;

fn rng(seed: u8) -> Prng {
    Prng::from_seed(&[seed; 32])
}

fn keys(rng: &mut Prng) -> (SecretKey, PublicKey) {
    let secret = SecretKey::random(rng);
    let public = PublicKey::of(&secret.public()).unwrap();
    (secret, public)
}

fn points(ciphertext: &Ciphertext) -> [RistrettoPoint; 2] {
    ciphertext.0.map(|part| CompressedRistretto(part).decompress().unwrap())
}

/// m G, computed with another implementation.
fn opened(secret: &SecretKey, ciphertext: &Ciphertext) -> RistrettoPoint {
    let [first, second] = points(ciphertext);
    second - first * *secret.scalar()
}

fn some(n: usize, rng: &mut Prng) -> Vec<Scalar> {
    (0..n).map(|_| *uniform(rng)).collect()
}

#[test]
fn ciphertexts_hold_their_messages() {
    let rng = &mut rng(1);
    let (secret, public) = keys(rng);
    assert_eq!(CompressedRistretto(secret.public()).decompress().unwrap(), G * *secret.scalar());
    let mut messages = some(5, rng);
    messages.extend([Scalar::ZERO, Scalar::ONE, -Scalar::ONE]);
    let of_owner = secret.encrypt(&messages, rng);
    assert!(secret.encrypt(&[], rng).is_empty());
    for (message, ciphertext) in messages.iter().zip(&of_owner) {
        let of_peer = public.combine(message, &[], &[], rng).unwrap();
        assert!([*ciphertext, of_peer].iter().all(|c| opened(&secret, c) == G * message));
    }
    let zero: Vec<bool> = messages.iter().map(|message| *message == Scalar::ZERO).collect();
    assert_eq!(*secret.are_zero(&of_owner).unwrap(), zero);
}

#[test]
fn combinations_are_those_of_the_messages() {
    let rng = &mut rng(2);
    let (secret, public) = keys(rng);
    for n in [0, 1, 2, 3, 4, 5, 7, 8, 64, 129, 256, 300] {
        let (messages, weights, constant) = (some(n, rng), some(n, rng), *uniform(rng));
        let ciphertexts = secret.encrypt(&messages, rng);
        let sum: Scalar = messages.iter().zip(&weights).map(|(m, w)| m * w).sum();
        let combined = public.combine(&constant, &weights, &ciphertexts, rng).unwrap();
        assert_eq!(opened(&secret, &combined), G * (constant + sum), "{n}");
        let zero = public.combine(&-sum, &weights, &ciphertexts, rng).unwrap();
        assert_eq!(*secret.are_zero(&[combined, zero]).unwrap(), [false, true], "{n}");
    }
}

/// The fresh randomness t G, as seen by the owner, who knows the randomness of its ciphertexts.
#[test]
fn combinations_have_randomness_of_their_own() {
    let rng = &mut rng(3);
    let (secret, public) = keys(rng);
    let weights = some(4, rng);
    let ciphertexts = secret.encrypt(&some(4, rng), rng);
    let stale: RistrettoPoint = weights.iter().zip(&ciphertexts).map(|(w, c)| points(c)[0] * w).sum();
    let fresh: HashSet<[u8; 32]> = (0..400)
        .map(|_| points(&public.combine(&Scalar::ONE, &weights, &ciphertexts, rng).unwrap())[0] - stale)
        .map(|t_g| t_g.compress().0)
        .collect();
    // t is never 0, never the constant, and never repeated.
    assert!(fresh.len() == 400 && !fresh.contains(&[0; 32]) && !fresh.contains(&G.compress().0));
    let small: HashSet<[u8; 32]> = (0..1000u64).map(|t| (G * Scalar::from(t)).compress().0).collect();
    assert!(fresh.is_disjoint(&small));
}

#[test]
fn keys_and_ciphertexts_are_others_each_time() {
    let rng = &mut rng(4);
    let keys: HashSet<[u8; 32]> = (0..50).map(|_| SecretKey::random(rng).public()).collect();
    assert_eq!(keys.len(), 50);
    let secret = SecretKey::random(rng);
    let ciphertexts = secret.encrypt(&[Scalar::ONE; 200], rng);
    let parts: HashSet<[u8; 32]> = ciphertexts.iter().flat_map(|c| c.0).collect();
    assert_eq!(parts.len(), 400);
}

/// A discrete logarithm of 128 bits takes 2^64 steps.
#[test]
fn scalars_are_of_full_width_and_units_are_not_0() {
    let rng = &mut rng(5);
    for draw in [uniform, unit] {
        let drawn: Vec<[u8; 32]> = (0..400).map(|_| draw(rng).to_bytes()).collect();
        every_bit_is_random(&drawn, 252);
    }
    let mut l = [0; 64];
    l[..32].copy_from_slice((-Scalar::ONE).as_bytes());
    l[0] += 1;
    let mut two = [0; 64];
    two[0] = 2;
    let mut draws = [[0; 64], l, two].into_iter().map(Zeroizing::new);
    assert_eq!(*first_unit(|| draws.next().unwrap()), Scalar::from(2u8));
}

#[test]
fn what_is_no_element_or_its_identity_is_refused_wherever_it_stands() {
    let rng = &mut rng(6);
    let (secret, public) = keys(rng);
    let (messages, weights) = (some(5, rng), some(5, rng));
    let good = secret.encrypt(&messages, rng);
    // An odd number, and one that is not reduced.
    let (mut odd, mut high) = ([0; 32], [0xff; 32]);
    (odd[0], high[31]) = (1, 0x7f);
    for forged in [[0; 32], [0xff; 32], odd, high] {
        assert_eq!(PublicKey::of(&forged).err(), Some(Malformed(0)));
        for at in [0, 3, 4] {
            for part in [0, 1] {
                let mut bad = good.clone();
                bad[at].0[part] = forged;
                assert_eq!(secret.are_zero(&bad).err(), Some(Malformed(at)));
                assert_eq!(public.combine(&Scalar::ONE, &weights, &bad, rng).err(), Some(Malformed(at)));
            }
        }
    }
    let bytes = |c: &Ciphertext| {
        let mut out = Vec::new();
        c.put(&mut out);
        out
    };
    assert_eq!(Ciphertext::get(&bytes(&good[1])), Ok(good[1]));
    assert!(Ciphertext::get(&bytes(&good[1])[1..]).is_err() && Ciphertext::get(&[0; 65]).is_err());
}
