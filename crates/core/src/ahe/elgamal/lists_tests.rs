use super::*;
use crate::ahe::elgamal::Scalar;
use crate::testing::every_bit_is_random;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::{RistrettoPoint, constants::RISTRETTO_BASEPOINT_POINT as G};
use std::collections::HashSet;

const SEED: SessionId = SessionId::of([3; 32]);

fn rng(seed: u8) -> Prng {
    Prng::from_seed(&[seed; 32])
}

fn keys(rng: &mut Prng) -> (SecretKey, PublicKey) {
    let owner = ElGamal::generate(rng);
    let key = ElGamal::key(&ElGamal::public(&owner, &SEED, rng), &SEED).unwrap_or_else(|_| panic!("a key"));
    (owner, key)
}

fn random_bits(n: usize, rng: &mut Prng) -> Vec<bool> {
    (0..n).map(|_| rng.below(2) == 1).collect()
}

/// Loads all cells of a list.
fn loaded(cells: &[u8]) -> List {
    let numbers: Vec<u32> = (0..(cells.len() / ElGamal::CELL) as u32).collect();
    let (list, malformed) = ElGamal::load(&SEED, &numbers, cells);
    assert_eq!(malformed, FirstMalformed::NONE);
    list
}

fn point(bytes: &[u8]) -> RistrettoPoint {
    CompressedRistretto::from_slice(bytes).unwrap().decompress().unwrap()
}

fn scalars(numbers: &Scalars) -> Vec<Scalar> {
    let reduced = |bytes: &[u8; 32]| {
        let mut bytes = *bytes;
        bytes[31] &= 0x7f;
        Scalar::from_bytes_mod_order(bytes)
    };
    numbers.as_bytes().iter().map(reduced).collect()
}

/// The message of a ciphertext, times G, computed with another implementation.
fn message(owner: &SecretKey, ciphertext: &[u8]) -> RistrettoPoint {
    point(&ciphertext[32..]) - point(&ciphertext[..32]) * *owner.scalar()
}

#[test]
fn encrypted_bits_are_loaded_and_opened() {
    let rng = &mut rng(1);
    let (owner, key) = keys(rng);
    for n in [0, 1, 2, 255, 256, 257, 600] {
        let bits = random_bits(n, rng);
        let cells = ElGamal::encrypt(&owner, &SEED, 0, &bits, rng);
        assert_eq!(cells.len(), n * ElGamal::CELL);
        // The list in two parts.
        let (one, two) = bits.split_at(n / 3);
        let parts = [(0, one), (n / 3, two)];
        let parts = parts.map(|(first, bits)| ElGamal::encrypt(&owner, &SEED, first as u64, bits, rng));
        assert_eq!(parts.concat(), cells);
        let fresh = ElGamal::combine(&key, None, None, &loaded(&cells), rng);
        for (bit, ciphertext) in bits.iter().zip(fresh.chunks(64)) {
            assert_eq!(message(&owner, ciphertext), G * Scalar::from(u8::from(*bit)));
        }
        let opened = ElGamal::open(&owner, &fresh).unwrap();
        assert!(ElGamal::are_zero(&opened).iter().eq(bits.iter().map(|bit| !bit).collect::<Vec<_>>().iter()));
        // A selection of the bits.
        let chosen: Vec<u32> = (0..n as u32).filter(|i| i % 3 == 1).collect();
        let bytes: Vec<u8> = chosen.iter().flat_map(|&i| cells[i as usize * 32..][..32].to_vec()).collect();
        let (list, _) = ElGamal::load(&SEED, &chosen, &bytes);
        let opened = ElGamal::open(&owner, &ElGamal::combine(&key, None, None, &list, rng)).unwrap();
        let expected: Vec<bool> = chosen.iter().map(|&i| !bits[i as usize]).collect();
        assert_eq!(*ElGamal::are_zero(&opened), expected);
    }
}

/// Without the secret key, encrypted bits are pairs of unrelated elements.
#[test]
fn encrypted_bits_look_alike() {
    let rng = &mut rng(2);
    let (owner, _) = keys(rng);
    let (other, _) = keys(rng);
    let mut seen = HashSet::new();
    for (owner, seed, bit) in [(&owner, 1, false), (&owner, 2, false), (&other, 1, false), (&owner, 3, true)]
    {
        let cells = ElGamal::encrypt(owner, &SessionId::of([seed; 32]), 0, &[bit; 300], rng);
        let cells: Vec<[u8; 32]> = cells.as_chunks().0.to_vec();
        // An encoding is an even number below p.
        every_bit_is_random(&cells.iter().map(|cell| &cell[1..31]).collect::<Vec<_>>(), 240);
        seen.extend(cells);
    }
    assert_eq!(seen.len(), 4 * 300);
    let parts = |seed: u8, numbers: &[u64]| -> HashSet<[u8; 32]> {
        encode(&first_parts(&SessionId::of([seed; 32]), numbers.iter().copied())).iter().copied().collect()
    };
    // Every bit of a number matters, and so does the seed.
    let numbers: Vec<u64> = (0..64).map(|bit| 1 << bit).chain([0]).collect();
    let [one, two] = [1, 2].map(|seed| parts(seed, &numbers));
    assert!(one.len() == 65 && two.len() == 65 && one.is_disjoint(&two));
}

#[test]
fn sums_are_those_of_the_cells() {
    let rng = &mut rng(3);
    let (owner, key) = keys(rng);
    for (cells, sums, pairs) in [(1, 1, 1), (5, 3, 20), (300, 1, 40), (400, 700, 3000), (10, 300, 0)] {
        let bits = random_bits(cells, rng);
        let list = loaded(&ElGamal::encrypt(&owner, &SEED, 0, &bits, rng));
        let mut total = ElGamal::zeros(sums);
        let mut expected = vec![0u32; sums];
        // In two steps, as if received in frames.
        for _ in 0..2 {
            let mut pairs: Vec<(u32, u32)> =
                (0..pairs).map(|_| (rng.below(sums as u64) as u32, rng.below(cells as u64) as u32)).collect();
            pairs.sort_unstable();
            ElGamal::add(&key, &mut total, &list, &pairs);
            pairs.iter().for_each(|&(sum, cell)| expected[sum as usize] += u32::from(bits[cell as usize]));
        }
        assert_eq!(ElGamal::len(&total), sums);
        let fresh = ElGamal::combine(&key, None, None, &total, rng);
        for (expected, ciphertext) in expected.iter().zip(fresh.chunks(64)) {
            assert_eq!(message(&owner, ciphertext), G * Scalar::from(*expected));
        }
        // Some sums in another order, and zeros for the rest.
        let order = rng.permutation(sums);
        let chosen = ElGamal::select(&total, &order, sums / 2);
        let opened = ElGamal::open(&owner, &ElGamal::combine(&key, None, None, &chosen, rng)).unwrap();
        let names = ElGamal::opened_names(&opened);
        for (&at, name) in order.iter().zip(names.iter()) {
            let expected = if (at as usize) < sums / 2 { expected[at as usize] } else { 0 };
            assert_eq!(point(name), G * Scalar::from(expected));
        }
    }
}

#[test]
fn combinations_are_constant_and_weight_times_message() {
    let rng = &mut rng(4);
    let (owner, key) = keys(rng);
    let n = 300;
    let bits = random_bits(n, rng);
    let list = loaded(&ElGamal::encrypt(&owner, &SEED, 0, &bits, rng));
    let (constants, weights) = (ElGamal::uniform(&key, n, rng), ElGamal::units(&key, n, rng));
    let [c, w] = [&constants, &weights].map(scalars);
    assert_eq!(c.iter().chain(&w).collect::<HashSet<_>>().len(), 2 * n);
    for (constants, weights) in
        [(None, None), (Some(&constants), None), (None, Some(&weights)), (Some(&constants), Some(&weights))]
    {
        let fresh = ElGamal::combine(&key, constants, weights, &list, rng);
        for (i, ciphertext) in fresh.chunks(64).enumerate() {
            let weight = weights.map_or(Scalar::ONE, |_| w[i]);
            let expected =
                constants.map_or(Scalar::ZERO, |_| c[i]) + weight * Scalar::from(u8::from(bits[i]));
            assert_eq!(message(&owner, ciphertext), G * expected);
        }
    }
    // The owner opens an encrypted constant to the constant's name.
    let fresh = ElGamal::combine(&key, Some(&constants), None, &ElGamal::zeros(n), rng);
    let opened = ElGamal::open(&owner, &fresh).unwrap();
    assert_eq!(*ElGamal::opened_names(&opened), *ElGamal::names(&constants));
}

/// The owner knows the first parts of its cells, up to their logarithms, and everything derived from them.
#[test]
fn answers_have_randomness_of_their_own() {
    let rng = &mut rng(5);
    let (owner, key) = keys(rng);
    let n = 300;
    let list = loaded(&ElGamal::encrypt(&owner, &SEED, 0, &vec![true; n], rng));
    let first = encode(&first_parts(&SEED, 0..n as u64));
    let units = ElGamal::units(&key, n, rng);
    let weights = scalars(&units);
    let mut fresh = HashSet::new();
    for _ in 0..2 {
        let answers = ElGamal::combine(&key, None, Some(&units), &list, rng);
        for ((first, weight), answer) in first.iter().zip(&weights).zip(answers.chunks(64)) {
            fresh.insert((point(&answer[..32]) - point(first) * weight).compress().0);
        }
    }
    let small = (0..1000u64).map(|t| (G * Scalar::from(t)).compress().0).collect();
    assert!(fresh.len() == 2 * n && fresh.is_disjoint(&small));
    // The randomness is the generator's next scalars, of full range.
    let [mut one, mut two] = [1, 2].map(|_| Prng::from_seed(&[9; 32]));
    let answers = ElGamal::combine(&key, None, None, &ElGamal::zeros(n), &mut one);
    let t = ElGamal::uniform(&key, n, &mut two);
    assert!(ElGamal::names(&t).iter().zip(answers.chunks(64)).all(|(name, answer)| name == &answer[..32]));
    every_bit_is_random(&scalars(&t).iter().map(Scalar::to_bytes).collect::<Vec<_>>(), 252);
    let units = ElGamal::units(&key, 300, rng);
    every_bit_is_random(units.as_bytes(), 252);
}

#[test]
fn quotients_by_small_numbers_are_found() {
    let rng = &mut rng(6);
    let (owner, key) = keys(rng);
    let most = 50;
    let divisors: Vec<u32> = (0..=most).chain([most + 1, most + 7]).collect();
    let n = divisors.len();
    let numbers: Vec<[u8; 32]> = divisors.iter().map(|d| Scalar::from(*d).to_bytes()).collect();
    let numbers = Scalars::from(Secrets::from(numbers));
    let kappa = ElGamal::uniform(&key, n, rng);
    let products: Vec<[u8; 32]> =
        scalars(&kappa).iter().zip(&divisors).map(|(k, d)| (k * Scalar::from(*d)).to_bytes()).collect();
    let products = Scalars::from(Secrets::from(products));
    let [p, c] = [&products, &numbers].map(|numbers| {
        let fresh =
            ElGamal::combine(&key, Some(numbers), None, &ElGamal::zeros(n), &mut Prng::from_seed(&[7; 32]));
        ElGamal::open(&owner, &fresh).unwrap()
    });
    let (names, found) = ElGamal::quotients(&owner, &p, &c, most);
    let kappas = ElGamal::names(&kappa);
    for (i, divisor) in divisors.iter().enumerate() {
        assert_eq!(found[i], (*divisor).min(most + 1));
        assert_eq!(names[i] == kappas[i], (1..=most).contains(divisor), "{divisor}");
    }
}

#[test]
fn malformed_cells_count_as_zero_and_are_found() {
    let rng = &mut rng(7);
    let (owner, key) = keys(rng);
    let cells = ElGamal::encrypt(&owner, &SEED, 0, &[true; 600], rng);
    let numbers: Vec<u32> = (0..600).collect();
    for places in [vec![0], vec![599], vec![300, 5], vec![256, 257]] {
        for malformed in [[0; 32], [0xff; 32], [1; 32]] {
            let mut cells = cells.clone();
            places.iter().for_each(|&at: &usize| cells[32 * at..][..32].copy_from_slice(&malformed));
            let (list, first) = ElGamal::load(&SEED, &numbers, &cells);
            assert_eq!(first.position(), places.iter().copied().min());
            let opened = ElGamal::open(&owner, &ElGamal::combine(&key, None, None, &list, rng)).unwrap();
            let zeros = ElGamal::are_zero(&opened);
            assert!((0..600).all(|i| zeros[i] == places.contains(&i)));
        }
    }
    let mut answers = ElGamal::combine(&key, None, None, &loaded(&cells), rng);
    answers[64 * 7 + 32..][..32].fill(0xff);
    assert_eq!(ElGamal::open(&owner, &answers).err(), Some(Malformed(7)));
    assert!(ElGamal::key(&[0; 32], &SEED).is_err() && ElGamal::key(&[0xff; 32], &SEED).is_err());
}
