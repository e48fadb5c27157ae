//! Tests of the joint view of all parties but one, in runs that the result does not distinguish. They differ in which of the
//! coalition's items the honest party has too, and in their number. The checks are in `checked_tests.rs`; `flawed_tests.rs`
//! tests that they detect flaws. The one-bit pads of an equality are tested elsewhere
//! (`equality::nibbles::tests::a_table_shows_the_nibble_under_pads_of_one_bit_and_not_under_these`).

use super::checked_tests::{count_is_private, intersection_is_private, lengths, union_is_private};
use super::observed_tests::{BOUND, Run, count, generator, intersect, union};
use super::setup::{Setup, commitment};
use crate::ahe::elgamal::SecretKey;
use crate::channel::Message;
use crate::error::Fault;
use crate::hash::ItemHash;
use crate::item::ItemSet;
use crate::many::seat;
use crate::rng::Prng;
use crate::testing::run_many;
use std::collections::BTreeSet;
use veilset_testing::Draw;

/// Items that the honest party may share with the coalition: items of all other parties, and items of some of them.
struct Items {
    of_all: Vec<Vec<u8>>,
    of_some: Vec<Vec<u8>>,
}

/// Returns the coalition's items, and its sets. One item is empty, and some are longer than an element.
fn items(n: usize, honest: usize) -> (Items, Vec<Vec<Vec<u8>>>) {
    let of_all: Vec<Vec<u8>> =
        (0..8).map(|i| format!("{i} of all, {}", "x".repeat(i)).into_bytes()).collect();
    let mut sets = vec![of_all.clone(); n];
    let mut of_some = Vec::new();
    for party in (0..n).filter(|party| *party != honest) {
        // Two of three other parties have each of these.
        let next = (0..n).cycle().skip(party + 1).find(|next| *next != honest).unwrap();
        for item in (0..3).map(|i| format!("{i} of two, {party}, and much longer").into_bytes()) {
            sets[party].push(item.clone());
            if n > 3 {
                sets[next].push(item.clone());
            }
            of_some.push(item);
        }
        let mut own: Vec<Vec<u8>> = (0..5).map(|i| format!("{i} of {party}").into_bytes()).collect();
        // One client has the empty item.
        if party + 2 >= n && !of_some.contains(&Vec::new()) {
            own[0] = Vec::new();
        }
        sets[party].extend(own.clone());
        of_some.extend(own);
    }
    (Items { of_all, of_some }, sets)
}

/// The sets of three worlds. In each, the honest party has four of the items that all others have, so that the count is four,
/// and five that only it has. It has none, all, or every other one of the coalition's other items.
pub(super) fn worlds(n: usize, honest: usize) -> [Vec<ItemSet>; 3] {
    let (items, sets) = items(n, honest);
    let own = (0..5).map(|i| format!("{i} of the honest party").into_bytes());
    let own: Vec<Vec<u8>> = own.collect();
    let half: Vec<Vec<u8>> = items.of_some.iter().step_by(2).cloned().collect();
    [(&items.of_all[..4], &[][..]), (&items.of_all[4..], &items.of_some[..]), (&items.of_all[..4], &half[..])]
        .map(|(of_all, of_some)| {
            let mut sets = sets.clone();
            sets[honest] = [of_all, of_some, &own[..]].concat();
            assert!(sets.iter().all(|set| set.len() <= BOUND));
            sets.iter().map(|set| set.iter().collect()).collect()
        })
}

/// Coalitions of two of three parties and of three of four: the number of parties, and the honest one.
const COALITIONS: [(usize, usize); 7] = [(3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (4, 3)];

/// Returns one coalition among three parties and one among four, or all in the whole tier.
fn coalitions(test: &str) -> Vec<(usize, usize)> {
    Draw::new(test).of_each(1, COALITIONS, |(n, _)| *n)
}

/// Runs all worlds, each with its own number: the generators differ, and the session is the same.
pub(super) fn in_all_worlds<T>(
    (n, honest): (usize, usize),
    run: impl Fn(u8, &[ItemSet]) -> Run<T>,
) -> Vec<Run<T>> {
    let numbered = worlds(n, honest).into_iter().zip(1..);
    numbered.map(|(sets, number)| run(number, &sets)).collect()
}

/// The items of the other parties that the leader lacks.
fn expected<T>(run: &Run<T>) -> Vec<Vec<u8>> {
    let all = run.sets[1..].iter().flat_map(|set| set.iter());
    let new: BTreeSet<&[u8]> = all.filter(|item| run.sets[0].iter().all(|own| own != *item)).collect();
    new.into_iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn a_union_shows_a_coalition_nothing_but_the_result() {
    for (n, honest) in coalitions("coalitions in union") {
        let runs = in_all_worlds((n, honest), union);
        for run in &runs {
            assert_eq!(run.leader, Some(Ok(expected(run))), "{n} {honest}");
        }
        assert_eq!(union_is_private(&runs, honest), Ok(()), "{n} {honest}");
    }
}

#[test]
fn a_count_shows_a_coalition_nothing_but_the_number() {
    for (n, honest) in coalitions("coalitions in count") {
        let runs = in_all_worlds((n, honest), count);
        assert!(runs.iter().all(|run| run.leader == Some(4)), "{n} {honest}");
        assert_eq!(count_is_private(&runs, honest, &[]), Ok(()), "{n} {honest}");
    }
}

#[test]
fn an_intersection_shows_a_coalition_nothing_but_the_result() {
    for (n, honest) in coalitions("coalitions in intersect") {
        let runs = in_all_worlds((n, honest), intersect);
        for run in &runs {
            let found = run.leader.as_ref().unwrap().iter().filter(|all| **all);
            assert_eq!(found.count(), 4, "{n} {honest}");
        }
        assert_eq!(intersection_is_private(&runs, honest), Ok(()), "{n} {honest}");
    }
}

// ---- The agreement of all parties.

/// The result of the agreement at each of three parties, some of which have these generators instead of their own.
fn agreed(number: u8, others: &[(usize, Prng)]) -> Vec<[u32; 3]> {
    let agreed = run_many(3, number, |many| {
        let other = others.iter().find(|(party, _)| *party == many.me);
        *many.rng = other.map_or_else(|| generator(7, many.me), |(_, rng)| rng.fork(0));
        let setup = Setup::agree(many)?;
        Ok(setup.functions(1, 1000, 0)?.bins_of(&[ItemHash::of_item(b"an item")])[0])
    });
    agreed.0
}

/// No party chooses the functions, or its items in view of them: each party's seed counts.
#[test]
fn hash_functions_follow_from_the_seeds_of_all_parties() {
    let plain = agreed(1, &[]);
    assert!(plain.iter().all(|bins| *bins == plain[0]));
    assert_eq!(plain, agreed(1, &[]));
    for party in 0..3 {
        let other = agreed(1, &[(party, Prng::from_seed(&[9; 32]))]);
        assert!(other[0] != plain[0] && other.iter().all(|bins| *bins == other[0]), "{party}");
    }
}

/// A party that chooses its seed or its key in view of the others' openings is detected by all of them.
#[test]
fn a_party_that_shows_what_it_did_not_commit_to_is_named() {
    const COMMITMENT: Message<[u8; 32]> = Message::new(0xd8, "a commitment");
    const OPENING: Message<[u8; 32]> = Message::new(0xd9, "a seed and a key");
    let [one, other] = [1, 2].map(|seed| SecretKey::random(&mut Prng::from_seed(&[seed; 32])).public());
    // The committed seed and key, the party in the commitment, and the opening.
    let honest = (2, [[3; 32], one]);
    for (number, (as_party, shown)) in
        [honest, (2, [[4; 32], one]), (2, [[3; 32], other]), (1, honest.1)].into_iter().enumerate()
    {
        let (errors, _) = run_many(3, 1, |many| {
            if many.me != 2 {
                return Ok(Setup::agree(many).err());
            }
            let committed = commitment(&many.session, as_party, &honest.1);
            many.each(|_, cx| {
                cx.ch.tx.send(COMMITMENT, &[committed])?;
                cx.ch.rx.recv(COMMITMENT, 1)
            })?;
            // It sees the others' openings first.
            many.each(|_, cx| {
                let all = cx.ch.rx.recv(OPENING, 3)?[2];
                cx.ch.tx.send(OPENING, &[shown[0], shown[1], all])
            })?;
            Ok(None)
        });
        for error in &errors[..2] {
            match error {
                None => assert_eq!(number, 0),
                Some(error) => {
                    assert!(number > 0 && error.fault() == Some(Fault::Misbehaved), "{error}");
                    assert_eq!(error.seat(), Some(seat(2)));
                }
            }
        }
    }
}

/// The length of every message follows from the bounds, even for smaller or empty sets.
#[test]
fn lengths_follow_from_the_bounds() {
    let [some, ..] = worlds(3, 1);
    let few = [&some[0], &ItemSet::default(), &some[2]].map(Clone::clone);
    let none = [(); 3].map(|()| ItemSet::default());
    let all = [&some[..], &few[..], &none[..]];
    let numbered = || all.into_iter().zip(1..);
    let unions: Vec<_> = numbered().map(|(sets, number)| union(number, sets)).collect();
    assert_eq!(lengths(&unions), Ok(()));
    let counts: Vec<_> = numbered().map(|(sets, number)| count(number, sets)).collect();
    assert_eq!(lengths(&counts), Ok(()));
    let intersections: Vec<_> = numbered().map(|(sets, number)| intersect(number, sets)).collect();
    assert_eq!(lengths(&intersections), Ok(()));
    assert_eq!(counts[2].leader, Some(0));
}
