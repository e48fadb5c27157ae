//! Tests of the values that the receiver opens. In the paper's protocol, they show more than the result.

use super::*;
use crate::ahe::elgamal::lists::ElGamal;
use crate::group::ristretto255::{Element, Scalars, encode, subtract};
use crate::hash::SessionId;
use crate::hashed::HashedSet;
use crate::item::ItemSet;
use crate::membership::encrypted_filter;
use crate::testing::{overlapping, run_pair};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

type Key = <ElGamal as Cipher>::Key;
type List = <ElGamal as Cipher>::List;

const SESSION: SessionId = SessionId::of([5; 32]);
const N: usize = 300;

/// For each item of the sender, in the sender's order: the number of its empty positions, the two values that the receiver
/// opens, and the name of the kappa.
struct Opened {
    empty: Vec<u32>,
    first: Vec<Element>,
    second: Vec<Element>,
    kappa: Vec<Name>,
}

/// Runs the protocol with answers of two ciphertexts, made by `combine`, and without rows.
fn opened(
    y: &ItemSet,
    x: &ItemSet,
    combine: impl Fn(&Key, &List, &mut Prng) -> (Vec<u8>, Scalars) + Sync,
) -> Opened {
    let (y, x) = (&HashedSet::new(y), &HashedSet::new(x));
    let (agreed, shape) = (filter(&Terms::default(), y.len(), x.len()), Shape { ciphertexts: 2, width: 0 });
    let mut parts = [vec![], vec![]];
    let kappas = Mutex::new(vec![]);
    let ((owner, (order, sums)), _) = run_pair(
        &SESSION,
        |cx| {
            let owner = encrypted_filter::send::<ElGamal>(cx, y, None, agreed)?;
            let judge = |opened: [Secrets<Element>; 2]| {
                let bits = ElGamal::are_zero(&opened[1]);
                parts.iter_mut().zip(opened).for_each(|(part, opened)| part.extend(opened.iter().copied()));
                (bits, None)
            };
            receive::<ElGamal>(cx, &owner, x.len(), shape, judge, |_, _| ())?;
            Ok(owner)
        },
        |cx| {
            let sums = encrypted_filter::receive::<ElGamal>(cx, x, None, agreed)?;
            let combine = |key: &Key, list: &List, rng: &mut Prng| {
                let (answers, kappa) = combine(key, list, rng);
                kappas.lock().unwrap().extend(ElGamal::names(&kappa).iter().copied());
                (answers, None)
            };
            Ok((answer(cx, &sums, (x.len(), x.len()), shape, combine, |_, _| ())?, sums))
        },
    );
    let fresh = ElGamal::combine(&sums.key, None, None, &sums.list, &mut Prng::from_seed(&[1; 32]));
    let sums = ElGamal::open(&owner, &fresh).unwrap();
    let empty = ElGamal::quotients(&owner, &sums, &sums, agreed.filter.positions).1.to_vec();
    let kappas = kappas.into_inner().unwrap();
    let mut by_item = HashMap::new();
    by_item.extend(order.iter().enumerate().map(|(at, &item)| (item, at)));
    let at = |item: u32| by_item[&item];
    let items = || 0..x.len() as u32;
    Opened {
        empty,
        first: items().map(|i| parts[0][at(i)]).collect(),
        second: items().map(|i| parts[1][at(i)]).collect(),
        kappa: items().map(|i| kappas[at(i)]).collect(),
    }
}

/// The answers of an intersection.
fn of_intersection(key: &Key, list: &List, rng: &mut Prng) -> (Vec<u8>, Scalars) {
    let (answers, kappa) = intersect::combine::<ElGamal>(key, list, rng);
    (answers, kappa.unwrap())
}

/// The answers as printed in the paper: (r c + kappa, c).
fn as_printed(key: &Key, list: &List, rng: &mut Prng) -> (Vec<u8>, Scalars) {
    let [kappa, r] = [(); 2].map(|()| ElGamal::uniform(key, ElGamal::len(list), rng));
    let mut answers = ElGamal::combine(key, Some(&kappa), Some(&r), list, rng);
    answers.extend(ElGamal::combine(key, None, None, list, rng));
    (answers, kappa)
}

/// Answers with one factor for both parts: (r c + kappa, r c).
fn with_one_factor(key: &Key, list: &List, rng: &mut Prng) -> (Vec<u8>, Scalars) {
    let [kappa, r] = [(); 2].map(|()| ElGamal::uniform(key, ElGamal::len(list), rng));
    let mut answers = ElGamal::combine(key, Some(&kappa), Some(&r), list, rng);
    answers.extend(ElGamal::combine(key, None, Some(&r), list, rng));
    (answers, kappa)
}

/// Whether a few hundred elements look uniform: all are different, and each bit of their encodings, except in the first and the
/// last byte, is 1 in about half of them.
fn look_uniform(elements: &[Element]) -> bool {
    let names: Vec<Name> = encode(elements).to_vec();
    let balanced = |bit: usize| {
        let ones = names.iter().filter(|name| name[bit / 8] >> (bit % 8) & 1 == 1).count() as f64;
        (ones - names.len() as f64 / 2.0).abs() <= 3.5 * (names.len() as f64).sqrt()
    };
    names.iter().collect::<HashSet<_>>().len() == names.len() && (8..248).all(balanced)
}

/// The number of items that can be told from decoys by their number of empty positions, because the second answer is that
/// number.
fn told(opened: &Opened) -> usize {
    let small: Vec<[u8; 32]> =
        (0..80u8).map(|n| std::array::from_fn(|i| if i == 0 { n } else { 0 })).collect();
    let small = ElGamal::names(&Scalars::from(Secrets::from(small)));
    let names = encode(&opened.second);
    (0..names.len()).filter(|i| names[*i] == small[opened.empty[*i] as usize]).count()
}

#[test]
fn what_the_receiver_opens_for_items_that_it_lacks_is_independent_of_them() {
    let (y, x) = overlapping(40, N, 0.0);
    let ours = opened(&y, &x, of_intersection);
    let printed = opened(&y, &x, as_printed);
    assert!(ours.empty.iter().all(|empty| *empty > 0));
    // Many items have the same number of empty positions.
    assert!(ours.empty.iter().collect::<HashSet<_>>().len() < N / 5);
    assert!(look_uniform(&ours.first) && look_uniform(&ours.second));
    assert_eq!(told(&ours), 0);
    // Neither value follows from the other, and neither opens a row.
    let difference = |opened: &Opened| {
        let mut difference = opened.first.clone();
        subtract(&mut difference, &opened.second);
        difference
    };
    assert!(look_uniform(&difference(&ours)));
    assert!(!look_uniform(&printed.second) && look_uniform(&printed.first));
    assert_eq!(told(&printed), N);
    let one_factor = opened(&y, &x, with_one_factor);
    assert!(look_uniform(&one_factor.first) && look_uniform(&one_factor.second));
    let opens = |opened: &Opened| *encode(&difference(opened)) == opened.kappa;
    assert!(opens(&one_factor) && !opens(&ours));
}

#[test]
fn what_the_receiver_opens_for_items_that_it_has_is_their_kappa() {
    let (y, x) = overlapping(N, N, 1.0);
    let ours = opened(&y, &x, of_intersection);
    assert!(ours.empty.iter().all(|empty| *empty == 0));
    assert!(*encode(&ours.first) == ours.kappa && look_uniform(&ours.first));
    assert!(ours.second.iter().all(|second| second.equals(&Element::IDENTITY)));
}

#[test]
fn a_union_shows_of_matches_nothing_and_of_new_items_their_empty_positions() {
    let (y, x) = overlapping(40, N, 0.1);
    let opened = opened(&y, &x, |key, list, rng| {
        let (answers, kappa) = union::combine::<ElGamal>(key, list, rng);
        (answers, kappa.unwrap())
    });
    assert_eq!(told(&opened), N);
    let new: Vec<usize> = (0..N).filter(|i| opened.empty[*i] > 0).collect();
    assert!(new.len() < N);
    for (i, empty) in opened.empty.iter().enumerate() {
        assert_eq!(opened.first[i].equals(&Element::IDENTITY), *empty == 0);
    }
    let first: Vec<Element> = new.iter().map(|i| opened.first[*i]).collect();
    assert!(look_uniform(&first));
}

#[test]
fn a_count_shows_of_items_that_do_not_match_nothing() {
    let (y, x) = overlapping(40, N, 0.0);
    let opened = opened(&y, &x, |key, list, rng| {
        let [one, two] = [(); 2].map(|()| count::combine::<ElGamal>(key, list, rng));
        ([one.0, two.0].concat(), ElGamal::uniform(key, ElGamal::len(list), rng))
    });
    assert!(look_uniform(&opened.first) && look_uniform(&opened.second));
    assert_eq!(told(&opened), 0);
    // The factors are fresh.
    let differ = |(a, b): (&Element, &Element)| !a.equals(b);
    assert!(opened.first.iter().zip(&opened.second).all(differ));
}

/// If two numbers were equal, the values that the receiver opens for an item that it lacks could reveal a kappa.
#[test]
fn no_two_numbers_of_answers_are_the_same() {
    let rng = &mut Prng::from_seed(&[4; 32]);
    let owner = ElGamal::generate(rng);
    let key = ElGamal::key(&ElGamal::public(&owner, &SESSION, rng), &SESSION).unwrap();
    let cells = ElGamal::encrypt(&owner, &SESSION, 0, &[true; N], rng);
    let (ones, _) = ElGamal::load(&SESSION, &(0..N as u32).collect::<Vec<_>>(), &cells);
    let open = |answers: &[u8]| ElGamal::open(&owner, answers).unwrap();
    let mut seen = HashSet::<Name>::new();
    // Two frames.
    for _ in 0..2 {
        let (answers, kappa) = of_intersection(&key, &ones, rng);
        let kappa = open(&ElGamal::combine(&key, Some(&kappa), None, &ElGamal::zeros(N), rng));
        // r + kappa, and r'.
        let (first, second) = answers.split_at(N * ElGamal::CIPHERTEXT);
        let (mut r, units) = (open(first), open(second));
        subtract(&mut r, &kappa);
        seen.extend(encode(&r).iter().chain(encode(&kappa).iter()).chain(encode(&units).iter()));
        let (_, kappa) = union::combine::<ElGamal>(&key, &ones, rng);
        seen.extend(ElGamal::names(&kappa.unwrap()).iter());
    }
    assert_eq!(seen.len(), 2 * 4 * N);
}
