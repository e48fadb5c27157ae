//! Properties of every cipher for lists.

use super::elgamal::lists::ElGamal;
use super::paillier::Paillier;
use super::*;
use crate::testing::every_bit_is_random;
use std::collections::HashSet;

const SEED: SessionId = SessionId::of([3; 32]);
/// A short modulus, for speed.
type Short = Paillier<512>;

fn rng(seed: u8) -> Prng {
    Prng::from_seed(&[seed; 32])
}

struct Keys<C: Cipher> {
    owner: C::Owner,
    key: C::Key,
}

impl<C: Cipher> Keys<C> {
    fn new(rng: &mut Prng) -> Self {
        let owner = C::generate(rng);
        let key = C::key(&C::public(&owner, &SEED, rng), &SEED).unwrap_or_else(|_| panic!("a key"));
        Keys { owner, key }
    }

    fn bits(&self, n: usize, rng: &mut Prng) -> (Vec<bool>, C::List) {
        let bits: Vec<bool> = (0..n).map(|_| rng.below(2) == 1).collect();
        let cells = C::encrypt(&self.owner, &SEED, 0, &bits, rng);
        assert_eq!(cells.len(), n * C::CELL);
        assert_eq!(C::check(&self.key, &cells), Ok(()));
        let (list, malformed) = C::load(&SEED, &(0..n as u32).collect::<Vec<_>>(), &cells);
        assert!(C::len(&list) == n && malformed == FirstMalformed::NONE);
        (bits, list)
    }

    fn opened(&self, answers: &[u8]) -> C::Opened {
        C::open(&self.owner, answers).unwrap_or_else(|_| panic!("answers"))
    }

    /// Opens the messages of a list, which are small.
    fn small(&self, list: &C::List, rng: &mut Prng) -> Vec<u32> {
        let opened = self.opened(&C::combine(&self.key, None, None, list, rng));
        C::quotients(&self.owner, &opened, &opened, 60).1.to_vec()
    }
}

fn opens_what_was_encrypted<C: Cipher>() {
    let rng = &mut rng(1);
    let keys = Keys::<C>::new(rng);
    for n in [0, 1, 5, 300] {
        let (bits, list) = keys.bits(n, rng);
        let answers = C::combine(&keys.key, None, None, &list, rng);
        assert_eq!(answers.len(), n * C::CIPHERTEXT);
        let zero: Vec<bool> = bits.iter().map(|bit| !bit).collect();
        assert_eq!(*C::are_zero(&keys.opened(&answers)), zero);
    }
}

fn adds_up<C: Cipher>() {
    let rng = &mut rng(2);
    let keys = Keys::<C>::new(rng);
    for (cells, sums, pairs) in [(1, 1, 3), (30, 140, 600), (300, 1, 40)] {
        let (bits, list) = keys.bits(cells, rng);
        let mut total = C::zeros(sums);
        let mut expected = vec![0u32; sums];
        for _ in 0..2 {
            let pair = |rng: &mut Prng| (rng.below(sums as u64) as u32, rng.below(cells as u64) as u32);
            let mut pairs: Vec<(u32, u32)> = (0..pairs / 2).map(|_| pair(rng)).collect();
            pairs.sort_unstable();
            C::add(&keys.key, &mut total, &list, &pairs);
            pairs.iter().for_each(|&(sum, cell)| expected[sum as usize] += u32::from(bits[cell as usize]));
        }
        assert_eq!(keys.small(&total, rng), expected);
        let order = rng.permutation(sums);
        let chosen = C::select(&total, &order, sums / 2);
        let kept = |at: &u32| if (*at as usize) < sums / 2 { expected[*at as usize] } else { 0 };
        assert_eq!(keys.small(&chosen, rng), order.iter().map(kept).collect::<Vec<_>>());
    }
}

fn combines<C: Cipher>() {
    let rng = &mut rng(3);
    let keys = Keys::<C>::new(rng);
    let n = 40;
    let (bits, list) = keys.bits(n, rng);
    let numbers = C::uniform(&keys.key, n, rng);
    let units = C::units(&keys.key, n, rng);
    let names = [&numbers, &units].map(C::names);
    assert_eq!(names.iter().flat_map(|names| names.iter()).collect::<HashSet<_>>().len(), 2 * n);
    // constant + weight * 0, and weight * 1.
    let both = keys.opened(&C::combine(&keys.key, Some(&numbers), Some(&units), &list, rng));
    let constants = keys.opened(&C::combine(&keys.key, Some(&numbers), None, &C::zeros(n), rng));
    let weighted = keys.opened(&C::combine(&keys.key, None, Some(&units), &list, rng));
    let [both, constants] = [&both, &constants].map(C::opened_names);
    let zero = C::are_zero(&weighted);
    let weighted = C::opened_names(&weighted);
    for (i, bit) in bits.iter().enumerate() {
        assert!(constants[i] == names[0][i] && zero[i] != *bit);
        assert_eq!(both[i] == names[0][i], !bit);
        assert_eq!(weighted[i] == names[1][i], *bit);
    }
    // weight * q / q.
    let mut total = C::zeros(n);
    let sums: Vec<(u32, u32)> = (0..n as u32).flat_map(|sum| (0..sum).map(move |cell| (sum, cell))).collect();
    C::add(&keys.key, &mut total, &list, &sums);
    let products = keys.opened(&C::combine(&keys.key, None, Some(&units), &total, rng));
    let q = keys.opened(&C::combine(&keys.key, None, None, &total, rng));
    let (quotients, found) = C::quotients(&keys.owner, &products, &q, 15);
    let mut ones = 0;
    for i in 0..n {
        assert_eq!(found[i], ones.min(16));
        assert_eq!(quotients[i] == names[1][i], (1..=15).contains(&ones));
        ones += u32::from(bits[i]);
    }
    assert!(ones > 16);
}

fn is_fresh<C: Cipher>() {
    let rng = &mut rng(4);
    let keys = Keys::<C>::new(rng);
    let n = 100;
    let mut seen = HashSet::new();
    for seed in [1, 2] {
        let cells = C::encrypt(&keys.owner, &SessionId::of([seed; 32]), 0, &vec![false; n], rng);
        seen.extend(cells.chunks(C::CELL).map(<[u8]>::to_vec));
    }
    let list = C::zeros(n);
    for _ in 0..2 {
        seen.extend(C::combine(&keys.key, None, None, &list, rng).chunks(C::CIPHERTEXT).map(<[u8]>::to_vec));
    }
    assert_eq!(seen.len(), 4 * n);
    let owners = [C::generate(rng), C::generate(rng)];
    let publics = [&owners[0], &owners[1], &keys.owner].map(|owner| C::public(owner, &SEED, rng));
    assert_eq!(publics.iter().collect::<HashSet<_>>().len(), 3);
    assert!(publics.iter().all(|public| public.len() == C::KEY));
    for bad in [vec![], vec![0; C::KEY], vec![0xff; C::KEY], publics[0][1..].to_vec()] {
        assert!(C::key(&bad, &SEED).is_err());
    }
    let mut answers = C::combine(&keys.key, None, None, &list, rng);
    answers[70 * C::CIPHERTEXT..][..C::CIPHERTEXT].fill(0xff);
    assert_eq!(C::open(&keys.owner, &answers).err(), Some(Malformed(70)));
}

#[test]
fn lists_are_opened_added_and_combined() {
    opens_what_was_encrypted::<ElGamal>();
    opens_what_was_encrypted::<Short>();
    adds_up::<ElGamal>();
    adds_up::<Short>();
    combines::<ElGamal>();
    combines::<Short>();
}

#[test]
fn everything_that_hides_is_fresh() {
    is_fresh::<ElGamal>();
    is_fresh::<Short>();
}

#[test]
fn lists_under_the_modulus_of_the_paper_are_opened() {
    opens_what_was_encrypted::<Paillier<1024>>();
}

fn keeps_its_key<C: Cipher>() {
    let rng = &mut rng(9);
    let keys = Keys::<C>::new(rng);
    let kept = C::save(&keys.owner);
    assert_eq!(kept.len(), C::SECRET);
    let restored = C::restore(&kept).unwrap_or_else(|| panic!("a key"));
    let (bits, list) = keys.bits(20, rng);
    let answers = C::combine(&keys.key, None, None, &list, rng);
    let opened = C::open(&restored, &answers).unwrap_or_else(|_| panic!("answers"));
    assert_eq!(*C::are_zero(&opened), bits.iter().map(|bit| !bit).collect::<Vec<_>>());
    for other in [&kept[1..], &[&kept[..], &[0]].concat(), &vec![0; C::SECRET], &vec![0xff; C::SECRET]] {
        assert!(C::restore(other).is_none());
    }
}

#[test]
fn secret_keys_can_be_kept() {
    keeps_its_key::<ElGamal>();
    keeps_its_key::<Short>();
}

/// Keys of a peer that were not generated correctly: the modulus and its proof are checked.
#[test]
fn a_modulus_needs_its_proof() {
    let rng = &mut rng(10);
    let [one, two] = [(); 2].map(|()| Short::public(&Short::generate(rng), &SEED, rng));
    let mixed = [&one[..64], &two[64..]].concat();
    assert!(Short::key(&one, &SEED).is_ok());
    for wrong in [&mixed[..], &one[..64]] {
        assert!(Short::key(wrong, &SEED).is_err());
    }
    assert!(Short::key(&one, &SessionId::of([4; 32])).is_err());
}

#[test]
fn uniform_numbers_are_below_the_modulus_and_reach_it() {
    let rng = &mut rng(11);
    let keys = Keys::<Short>::new(rng);
    let n = keys.key.n();
    let numbers = Short::uniform(&keys.key, 2000, rng);
    let below = |number: &&[u8]| number.iter().rev().lt(n.iter().rev());
    assert!(numbers.chunks_exact(n.len()).all(|number| below(&number)));
    // N is at least 9/16 of its range: some numbers are in each quarter of it.
    let top: HashSet<u8> = numbers.chunks_exact(n.len()).map(|number| number[n.len() - 1] >> 6).collect();
    assert_eq!(top.len(), 3 + usize::from(n[n.len() - 1] >= 0xc0));
}

#[test]
fn every_bit_of_a_uniform_number_is_random() {
    let keys = Keys::<Short>::new(&mut rng(12));
    let rng = &mut rng(13);
    for numbers in [Short::uniform(&keys.key, 300, rng), Short::units(&keys.key, 300, rng)] {
        let numbers: Vec<&[u8]> = numbers.chunks_exact(64).collect();
        // The top byte of a number is at most the top byte of N.
        every_bit_is_random(&numbers, 504);
    }
}

/// The owner knows the secret key and could search for short randomness.
#[test]
fn answers_under_paillier_take_all_of_their_randomness_from_the_generator() {
    let keys = Keys::<Short>::new(&mut rng(14));
    let answers = Short::combine(&keys.key, None, None, &Short::zeros(10), &mut rng(15));
    let tasks = rng(15).split();
    // Four ciphertexts per task, and two in the last one.
    for (task, answers) in answers.chunks(4 * Short::CIPHERTEXT).enumerate() {
        let n = answers.len() / Short::CIPHERTEXT;
        let mut randomness = vec![0u8; n * keys.key.randomness()];
        tasks.fork(task as u64).fill(&mut randomness);
        let constants = vec![0u8; n * 64];
        let mut weights = vec![0u8; n * 64];
        weights.iter_mut().step_by(64).for_each(|low| *low = 1);
        let mut expected = vec![0u8; answers.len()];
        keys.key.combine(&constants, &weights, &Short::zeros(n), &randomness, &mut expected);
        assert!(*answers == expected[..], "task {task}");
    }
}

/// Numbers that are each 0 but for one byte, and one that is 0.
fn of_one_byte_each() -> Secrets<u8> {
    let mut numbers = Secrets::<u8>::zeros(65 * 64);
    for at in 0..64 {
        numbers[at * 64 + at] = 1;
    }
    numbers
}

#[test]
fn every_byte_of_a_number_counts_in_its_name() {
    let numbers = of_one_byte_each();
    let names = Short::names(&numbers);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 65);
    assert!(*names == *Short::opened_names(&numbers));
}

#[test]
fn every_byte_of_an_opened_number_counts() {
    let keys = Keys::<Short>::new(&mut rng(16));
    let mut numbers = of_one_byte_each();
    let mut zero = vec![false; 65];
    zero[64] = true;
    assert_eq!(*Short::are_zero(&numbers), zero);
    let found = |numbers: &Secrets<u8>| Short::quotients(&keys.owner, numbers, numbers, 60).1.to_vec();
    let more = vec![61; 63];
    assert_eq!(found(&numbers), [vec![1], more.clone(), vec![0]].concat());
    // Small numbers, to which a large one is added.
    numbers.iter_mut().step_by(64).for_each(|low| *low = 7);
    assert_eq!(found(&numbers), [vec![7], more, vec![7]].concat());
}
