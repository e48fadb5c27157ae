//! Compares proofs of moduli with big integers, and tests the best forgeries for unsound moduli.

use num_bigint::BigUint;
use std::iter::zip;

use super::tests::{big, bytes, draw, key, primes, stream};
use super::*;
use crate::oracle::int;

/// The number of hashed numbers, and the number of those with an N-th root in the proof.
const NUMBERS: usize = 128;
const NTH: usize = 8;

/// The purpose of the proofs.
const PURPOSE: [u8; 32] = [5; 32];

fn prove(key: &SecretKey, seed: u32) -> Vec<u8> {
    key.prove(&PURPOSE, &mut stream(seed))
}

fn refusal(n: &[u8], proof: &[u8]) -> Option<Unsound> {
    PublicKey::proven(n, &PURPOSE, proof).err()
}

/// The hashed numbers.
fn hashed(n: &[u8], w: &[u8]) -> Vec<BigUint> {
    let mut input = PURPOSE.to_vec();
    input.extend((n.len() as u64).to_le_bytes());
    input.extend([n, w].concat());
    let mut hasher = blake3::Hasher::new_derive_key("veilset 2026-11 proof of a Paillier modulus");
    let mut stream = vec![0; NUMBERS * (n.len() + 16)];
    hasher.update(&input).finalize_xof().fill(&mut stream);
    stream.chunks(n.len() + 16).map(|y| big(y) % big(n)).collect()
}

/// A proof in parts.
#[derive(Clone)]
struct Parts {
    w: BigUint,
    z: Vec<BigUint>,
    x: Vec<BigUint>,
    /// The bits a and b of each number.
    signs: Vec<[bool; 2]>,
}

impl Parts {
    fn read(proof: &[u8], width: usize) -> Parts {
        let (numbers, bits) = proof.split_at(proof.len() - 32);
        let numbers: Vec<BigUint> = numbers.chunks(width).map(big).collect();
        let bit = |i: usize| bits[i / 8] >> (i % 8) & 1 == 1;
        let signs: Vec<[bool; 2]> = (0..NUMBERS).map(|i| [bit(i), bit(NUMBERS + i)]).collect();
        assert_eq!(numbers.len(), 1 + NTH + NUMBERS);
        Parts { w: numbers[0].clone(), z: numbers[1..=NTH].to_vec(), x: numbers[1 + NTH..].to_vec(), signs }
    }

    fn write(&self, width: usize) -> Vec<u8> {
        let numbers = [std::slice::from_ref(&self.w), &self.z, &self.x].concat();
        let mut proof: Vec<u8> = numbers.iter().flat_map(|number| bytes(number, width)).collect();
        for place in 0..2 {
            let bit = |i: usize| u128::from(self.signs[i][place]) << i;
            proof.extend((0..NUMBERS).map(bit).sum::<u128>().to_le_bytes());
        }
        proof
    }

    /// Which of the equations for the N-th roots and for the fourth roots hold.
    fn equations(&self, n: &BigUint) -> [Vec<bool>; 2] {
        let width = n.bits() as usize / 8;
        let y = hashed(&bytes(n, width), &bytes(&self.w, width));
        let nth = zip(&self.z, &y).map(|(z, y)| z.modpow(n, n) == *y);
        let fourth =
            (0..NUMBERS).map(|i| self.x[i].modpow(&int(4), n) == signed(&y[i], &self.w, self.signs[i], n));
        [nth.collect(), fourth.collect()]
    }
}

/// (-1)^a w^b y modulo N.
fn signed(y: &BigUint, w: &BigUint, [a, b]: [bool; 2], n: &BigUint) -> BigUint {
    let product = if b { y * w % n } else { y.clone() };
    if a { (n - product) % n } else { product }
}

fn all(held: &[bool]) -> bool {
    held.iter().all(|held| *held)
}

fn is_prime(number: &BigUint) -> bool {
    Number::new(&bytes(number, (number.bits() as usize).div_ceil(8))).is_prime(false, &mut Scratch::new())
}

/// The smallest prime from about `from` on that is 3 modulo 4.
fn next_prime(from: &BigUint) -> BigUint {
    next_prime_in(from, 3, 4)
}

/// The smallest prime from about `from` on in this residue class.
fn next_prime_in(from: &BigUint, class: u32, modulus: u32) -> BigUint {
    let mut candidate = from - from % modulus + class;
    while !is_prime(&candidate) {
        candidate += modulus;
    }
    candidate
}

/// A prime of this many bits that is 3 modulo 4, whose four top bits are set.
fn prime(bits: u32, seed: u32) -> BigUint {
    next_prime(&((big(&draw(seed, bits as usize / 8)) >> 8u32) | int(15) << (bits - 4)))
}

// ---- Honest proofs. ----

#[test]
fn proofs_verify_and_their_equations_hold() {
    for (bits, seeds) in [(256, 4), (512, 2), (1024, 1)] {
        let (key, width) = (key(bits), bits / 8);
        let (n, [p, q]) = (big(key.public().n()), primes(&key));
        for seed in 0..seeds {
            let proof = prove(&key, seed);
            assert_eq!((proof.len(), proof_length(width)), (137 * width + 32, 137 * width + 32));
            let public = PublicKey::proven(key.public().n(), &PURPOSE, &proof).unwrap();
            assert_eq!(public.n(), key.public().n());
            let parts = Parts::read(&proof, width);
            assert_eq!(parts.write(width), proof);
            let [nth, fourth] = parts.equations(&n);
            assert_eq!((nth.len(), fourth.len()), (8, 128));
            assert!(all(&nth) && all(&fourth));
            assert!(parts.z.iter().chain(&parts.x).all(|number| *number < n));
            let is_square = |t: &BigUint, prime: &BigUint| t.modpow(&((prime - 1u8) >> 1), prime) == int(1);
            assert_ne!(is_square(&parts.w, &p), is_square(&parts.w, &q), "the Jacobi symbol of w is -1");
            // The choice of a root does not depend on a secret either.
            assert!(parts.x.iter().all(|x| is_square(x, &p) && is_square(x, &q)));
            for wanted in [[false, false], [false, true], [true, false], [true, true]] {
                assert!(parts.signs.iter().filter(|signs| **signs == wanted).count() > 8, "all bits occur");
            }
        }
    }
}

/// The computation of the exponents depends on the primes modulo 16.
#[test]
fn proofs_verify_for_primes_of_every_class() {
    let mut classes = Vec::new();
    for seed in 0..20 {
        let key = SecretKey::generate(256, &mut stream(seed));
        classes.push(primes(&key).map(|prime| (prime % 16u8).to_bytes_le()[0]));
        assert_eq!(refusal(key.public().n(), &prove(&key, seed)), None);
    }
    for class in [3, 7, 11, 15] {
        assert!((0..2).all(|prime| classes.iter().any(|both| both[prime] == class)), "{class} modulo 16");
    }
}

#[test]
fn a_proof_depends_on_all_that_is_drawn_for_w_and_on_nothing_else() {
    let key = key(256);
    let n = big(key.public().n());
    assert_eq!(prove(&key, 1), prove(&key, 1));
    let parts = [1, 2].map(|seed| Parts::read(&prove(&key, seed), 32));
    let [one, other] = parts.each_ref().map(|parts| [&parts.z[..], &parts.x].concat());
    assert_ne!(parts[0].w, parts[1].w);
    assert!(zip(one, other).all(|(one, other)| one != other));
    assert_ne!(parts[0].signs, parts[1].signs);
    // w is the last number drawn, and each byte of it matters.
    let mut drawn = Vec::new();
    let proof = key.prove(&PURPOSE, &mut |out: &mut [u8]| {
        stream(drawn.len() as u32)(out);
        drawn.push(out.to_vec());
    });
    let last = drawn.last().unwrap();
    assert_eq!((last.len(), Parts::read(&proof, 32).w), (48, big(last) % &n));
    let mut ws: Vec<Vec<u8>> = (0..20).map(|seed| prove(&key, seed)[..32].to_vec()).collect();
    ws.sort();
    ws.dedup();
    assert_eq!(ws.len(), 20);
}

/// The quarter of all draws for which w is a square modulo p only is as valid as the other.
#[test]
fn w_is_a_square_modulo_either_prime() {
    let key = key(256);
    let [p, _] = primes(&key);
    let is_square = |seed| big(&prove(&key, seed)[..32]).modpow(&((&p - 1u8) >> 1), &p) == int(1);
    let squares = (0..32).filter(|seed| is_square(*seed)).count();
    assert!((4..=28).contains(&squares), "{squares} of 32");
}

// ---- Altered proofs. ----

#[test]
fn altered_proofs_are_refused() {
    let key = key(256);
    let (n, proof) = (key.public().n(), prove(&key, 1));
    assert_eq!(refusal(n, &proof), None);
    // Each number, changed at its ends and in the middle, and each byte of the bits.
    let numbers = (0..137).flat_map(|i| [32 * i, 32 * i + 15, 32 * i + 31]);
    for at in numbers.chain(137 * 32..proof.len()) {
        for bit in [1, 0x80] {
            let mut altered = proof.clone();
            altered[at] ^= bit;
            assert_eq!(refusal(n, &altered), Some(Unsound::Proof), "byte {at}");
        }
    }
    // Swapped numbers, and 0.
    for (i, j) in [(0, 1), (1, 2), (8, 9), (9, 10), (135, 136)] {
        let mut altered = proof.clone();
        altered[32 * i..][..32].copy_from_slice(&proof[32 * j..][..32]);
        altered[32 * j..][..32].copy_from_slice(&proof[32 * i..][..32]);
        assert_eq!(refusal(n, &altered), Some(Unsound::Proof), "{i} and {j}");
        altered.copy_from_slice(&proof);
        altered[32 * i..][..32].fill(0);
        assert_eq!(refusal(n, &altered), Some(Unsound::Proof), "{i} is 0");
    }
    let bits = 137 * 32;
    let mut altered = proof.clone();
    altered[bits..].rotate_left(16);
    assert_eq!(refusal(n, &altered), Some(Unsound::Proof), "a and b in each other's place");
}

#[test]
fn proofs_of_other_lengths_and_of_other_moduli_are_refused() {
    let (key, other) = (key(256), SecretKey::generate(256, &mut stream(77)));
    let (n, proof) = (key.public().n(), prove(&key, 1));
    for length in [0, 1, 32, 32 * 9, 32 * 137, 32 * 137 + 16, proof.len() - 1] {
        assert_eq!(refusal(n, &proof[..length]), Some(Unsound::Proof), "{length}");
    }
    for more in [1, 32] {
        assert_eq!(refusal(n, &[&proof[..], &vec![0; more]].concat()), Some(Unsound::Proof));
    }
    assert_eq!(refusal(n, &[0; 137 * 32 + 32]), Some(Unsound::Proof));
    assert_eq!(refusal(n, &prove(&other, 1)), Some(Unsound::Proof));
    assert_eq!(refusal(other.public().n(), &proof), Some(Unsound::Proof));
    // Another purpose, which differs in one bit.
    for bit in [0, 7, 100, 255] {
        let mut purpose = PURPOSE;
        purpose[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(PublicKey::proven(n, &purpose, &proof).err(), Some(Unsound::Proof));
    }
    // Defects of the modulus itself are reported first.
    assert_eq!(refusal(&n[1..], &proof), Some(Unsound::Length));
    let mut even = n.to_vec();
    even[0] ^= 1;
    assert_eq!(refusal(&even, &proof), Some(Unsound::Even));
}

/// Adding N does not affect the equations.
#[test]
fn numbers_of_a_proof_are_below_the_modulus() {
    let key = key(256);
    let (n, [p, q], most) = (big(key.public().n()), primes(&key), int(1) << 256u32);
    let forger = Forger::new(&[(p, 1), (q, 1)]);
    let mut found = [false; 3];
    for seed in 0..100 {
        let parts = Parts::read(&prove(&key, seed), 32);
        let fits = |number: &BigUint| number + &n < most;
        let mut forged = Vec::new();
        if let Some(i) = parts.z.iter().position(fits) {
            let mut parts = parts.clone();
            parts.z[i] += &n;
            forged.push((0, parts));
        }
        if let Some(i) = parts.x.iter().position(fits) {
            let mut parts = parts.clone();
            parts.x[i] += &n;
            forged.push((1, parts));
        }
        if fits(&parts.w) {
            forged.push((2, forger.forge(&(&parts.w + &n))));
        }
        for (what, parts) in forged {
            assert!(parts.equations(&n).iter().all(|held| all(held)), "only the bound is violated");
            assert_eq!(refusal(key.public().n(), &parts.write(32)), Some(Unsound::Proof), "{what}");
            found[what] = true;
        }
        if found == [true; 3] {
            return;
        }
    }
    panic!("no such number in a hundred proofs: {found:?}");
}

// ---- Unsound moduli. ----

/// A party that knows the factors of a modulus, and answers as far as possible.
struct Forger {
    n: BigUint,
    /// Prime powers, and the order of the units modulo each.
    factors: Vec<[BigUint; 2]>,
}

impl Forger {
    fn new(factors: &[(BigUint, u32)]) -> Forger {
        let modulo = |(p, times): &(BigUint, u32)| [p.pow(*times), p.pow(times - 1) * (p - 1u8)];
        let factors: Vec<[BigUint; 2]> = factors.iter().map(modulo).collect();
        Forger { n: factors.iter().map(|[power, _]| power).product(), factors }
    }

    fn width(&self) -> usize {
        let bits = self.n.bits() as usize;
        assert!(bits.is_multiple_of(128), "{bits} bits");
        bits / 8
    }

    fn bytes(&self) -> Vec<u8> {
        bytes(&self.n, self.width())
    }

    /// Returns a root of this degree if there is one.
    ///
    /// The degree has no square in common with the order of the units modulo a factor, except a power of 2. So a number
    /// is a power if its own order is coprime to the degree.
    fn root(&self, number: &BigUint, degree: &BigUint) -> Option<BigUint> {
        let mut out = int(0);
        for [factor, order] in &self.factors {
            let (mut order, residue) = (order.clone(), number % factor);
            loop {
                let common = gcd(&order, degree);
                if common == int(1) {
                    break;
                }
                order /= common;
            }
            let root = residue.modpow(&degree.modinv(&order).unwrap(), factor);
            if root.modpow(degree, factor) != residue {
                return None;
            }
            let others = &self.n / factor;
            out += root * others.modinv(factor).unwrap() * others;
        }
        Some(out % &self.n)
    }

    /// A proof in which numbers without a root are replaced with 0.
    fn forge(&self, w: &BigUint) -> Parts {
        let (mut x, mut signs) = (Vec::new(), Vec::new());
        let y = hashed(&self.bytes(), &bytes(w, self.width()));
        for y in &y {
            let all = [[false, false], [true, false], [false, true], [true, true]];
            let found = all.into_iter().find_map(|bits| {
                Some((self.root(&signed(y, &(w % &self.n), bits, &self.n), &int(4))?, bits))
            });
            let (root, bits) = found.unwrap_or_default();
            x.push(root);
            signs.push(bits);
        }
        let z = y[..NTH].iter().map(|y| self.root(y, &self.n).unwrap_or_default()).collect();
        Parts { w: w.clone(), z, x, signs }
    }

    /// A number with different quadratic characters modulo some factors, so that w and -w are not equivalent.
    fn w(&self, seed: u32) -> BigUint {
        let is_square =
            |w: &BigUint, [factor, order]: &[BigUint; 2]| w.modpow(&(order >> 1), factor) == int(1);
        let characters = |w: &BigUint| self.factors.iter().map(|of| is_square(w, of)).collect::<Vec<_>>();
        let fits = |w: &BigUint| characters(w)[1..].iter().any(|character| *character != characters(w)[0]);
        (0..).map(|i| big(&draw(1000 * seed + i, self.width() + 16)) % &self.n).find(fits).unwrap()
    }

    /// Returns whether, in all of a few proofs, all numbers have N-th roots, and whether all have fourth roots. Asserts
    /// that all proofs are refused.
    fn is_refused(&self, why: Option<Unsound>) -> [bool; 2] {
        let mut could = [true; 2];
        for seed in 0..3 {
            let parts = self.forge(&self.w(seed));
            let held = parts.equations(&self.n).map(|held| all(&held));
            assert_ne!(held, [true; 2]);
            assert_eq!(refusal(&self.bytes(), &parts.write(self.width())), why);
            could = [could[0] & held[0], could[1] & held[1]];
        }
        could
    }
}

fn gcd(a: &BigUint, b: &BigUint) -> BigUint {
    let (mut a, mut b) = (a.clone(), b.clone());
    while b != int(0) {
        (a, b) = (b.clone(), a % b);
    }
    a
}

/// A prime p such that the given q divides p - 1.
fn above(q: &BigUint, bits: u32) -> BigUint {
    let least = (int(7) << (bits - 3)) / q;
    let mut k = (&least >> 2 << 2) + 2u8;
    while !is_prime(&(&k * q + 1u8)) {
        k += 4u8;
    }
    k * q + 1u8
}

/// The forger proves sound moduli, so its failures are not due to defects of its own.
#[test]
fn the_forger_proves_what_is_sound() {
    let key = key(256);
    let [p, q] = primes(&key);
    for (p, q) in [(p, q), (prime(96, 1), prime(160, 2)), (prime(24, 3), prime(232, 4))] {
        let forger = Forger::new(&[(p, 1), (q, 1)]);
        let parts = forger.forge(&forger.w(1));
        assert!(parts.equations(&forger.n).iter().all(|held| all(held)));
        assert_eq!(refusal(&forger.bytes(), &parts.write(32)), None);
    }
}

#[test]
fn three_primes_are_refused_for_the_fourth_roots() {
    let forger = Forger::new(&[(prime(80, 1), 1), (prime(80, 2), 1), (prime(96, 3), 1)]);
    assert_eq!(forger.is_refused(Some(Unsound::Proof)), [true, false]);
    let [nth, fourth] = forger.forge(&forger.w(1)).equations(&forger.n);
    assert!(all(&nth));
    let held = fourth.iter().filter(|held| **held).count();
    assert!((32..=96).contains(&held), "half of the numbers have a root: {held}");
}

#[test]
fn many_primes_of_17_bits_are_refused_for_the_fourth_roots() {
    // 23 primes above 2^16.67.
    let mut factors = vec![next_prime(&int(104_600))];
    while factors.len() < 23 {
        factors.push(next_prime(&(factors.last().unwrap() + 4u8)));
    }
    let factors: Vec<(BigUint, u32)> = factors.into_iter().map(|prime| (prime, 1)).collect();
    let forger = Forger::new(&factors);
    assert_eq!(forger.width(), 48);
    assert_eq!(forger.is_refused(Some(Unsound::Proof)), [true, false]);
}

#[test]
fn a_prime_that_is_1_modulo_4_is_refused_for_the_fourth_roots() {
    for (p, q) in [(5, 3), (3, 5), (5, 5)] {
        let of = |class, seed| next_prime_in(&prime(128, seed), class, 8);
        let forger = Forger::new(&[(of(p, 1), 1), (of(q, 2), 1)]);
        assert_eq!(forger.is_refused(Some(Unsound::Proof)), [true, false], "{p} and {q} modulo 8");
    }
}

#[test]
fn a_prime_that_divides_the_order_of_the_other_is_refused_for_the_nth_roots() {
    for (bits, of) in [(24, 232), (96, 160), (120, 136)] {
        let q = prime(bits, bits);
        let p = above(&q, of);
        assert_eq!((&p % 4u8, &p % &q), (int(3), int(1)));
        let forger = Forger::new(&[(p, 1), (q, 1)]);
        assert_eq!(forger.width(), 32);
        assert_eq!(forger.is_refused(Some(Unsound::Proof)), [false, true], "{bits} bits");
    }
}

#[test]
fn squares_of_primes_are_refused_for_the_nth_roots() {
    for (p, q) in [(80, 96), (24, 208)] {
        let forger = Forger::new(&[(prime(p, 1), 2), (prime(q, 2), 1)]);
        assert_eq!(forger.is_refused(Some(Unsound::Proof)), [false, true], "{p} and {q} bits");
    }
    assert_eq!(refusal(&bytes(&prime(128, 1).pow(2), 32), &[]), Some(Unsound::Power));
}

/// With w = 0 modulo all primes but one, or modulo all, each number has a root for a = 0 or for a = 1.
#[test]
fn a_w_that_is_not_coprime_to_the_modulus_is_refused() {
    let [p, q, r] = [prime(80, 1), prime(80, 2), prime(96, 3)];
    let forger = Forger::new(&[(p.clone(), 1), (q.clone(), 1), (r, 1)]);
    for w in [int(0), &p * &q, &p * &q * 7u8] {
        let parts = forger.forge(&w);
        assert!(parts.equations(&forger.n).iter().all(|held| all(held)), "all equations hold");
        assert_eq!(refusal(&forger.bytes(), &parts.write(32)), Some(Unsound::Proof), "{w}");
    }
}

/// Such a number would reveal a factor of the modulus. An honest proof has one only if the factor is small.
#[test]
fn a_hashed_number_that_is_not_coprime_to_the_modulus_is_refused() {
    let p = next_prime(&int(1 << 16));
    let forger = Forger::new(&[(p.clone(), 1), (prime(240, 1), 1)]);
    assert_eq!((forger.width(), &p), (32, &int(65539)));
    let n = forger.bytes();
    let place = |w: &BigUint| hashed(&n, &bytes(w, 32)).iter().position(|y| y % &p == int(0));
    let w = (0..).map(|seed| forger.w(seed)).find(|w| place(w).is_some_and(|at| at >= NTH)).unwrap();
    let parts = forger.forge(&w);
    assert!(parts.equations(&forger.n).iter().all(|held| all(held)), "all equations hold");
    assert_eq!(refusal(&n, &parts.write(32)), Some(Unsound::Proof));
}
