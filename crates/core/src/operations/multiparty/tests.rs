use super::count::Count;
use super::intersect::Intersect;
use super::union::{Public, Union};
use crate::equality::nibbles::Nibbles;
use crate::error::Error;
use crate::group::encoding::PIECE;
use crate::hash::Domain;
use crate::hashed::HashedSet;
use crate::hashing::cuckoo::{self, Functions};
use crate::item::{ItemSet, Items};
use crate::membership::mot::FromOt;
use crate::membership::shared::{Batch, Compared, Sizes};
use crate::operations::Confirmed;
use crate::oprf::bins::FromVole;
use crate::oprf::programmable::Programmed;
use crate::oprf::vole::Rr22;
use crate::rng::Prng;
use crate::testing::run_many;
use crate::vole::silent::Silent;
use std::collections::BTreeSet;

pub(super) type Tests = Compared<Programmed<FromVole<Silent>>, Nibbles>;

pub(super) fn tests() -> Tests {
    Compared { opprf: Programmed(FromVole::new(Silent::default())), equality: Nibbles::default() }
}

pub(super) fn union() -> Union<Tests, FromOt> {
    Union { tests: tests(), transfer: FromOt::default() }
}

pub(super) fn count() -> Count<Tests, FromOt> {
    Count { tests: tests(), transfer: FromOt::default() }
}

pub(super) fn intersect() -> Intersect<Programmed<Rr22<Silent>>> {
    Intersect { opprf: Programmed(Rr22::new(Silent::default())) }
}

/// Returns sets of these sizes. Items are from a small range, so that several sets share some; one in three items is not
/// text.
pub(super) fn sets(sizes: &[usize]) -> Vec<ItemSet> {
    let item = |party: usize, i: usize| match i % 3 {
        // Items of all sets that are large enough, of two neighbours' sets, and of one set.
        0 => format!("all {i}").into_bytes(),
        1 => format!("some {i} {}", party / 2).into_bytes(),
        _ => [format!("{party} {i}").as_bytes(), &[0xff, 0, 9][..]].concat(),
    };
    let set = |(party, &n): (usize, &usize)| (0..n).map(|i| item(party, i)).collect();
    sizes.iter().enumerate().map(set).collect()
}

/// The sizes of the sets of each run, the leader's first.
const SIZES: [&[usize]; 8] =
    [&[0, 0], &[3, 5], &[4, 0, 7], &[0, 1, 1], &[1, 1, 1], &[6, 6, 6], &[9, 3, 0, 30], &[5, 8, 2, 1, 12]];

/// Returns bounds on these sets, some of them larger than the set.
fn bounds(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().enumerate().map(|(party, n)| n + 4 * (party % 2)).collect()
}

fn of_all(sets: &[ItemSet]) -> BTreeSet<Vec<u8>> {
    sets.iter().flat_map(|set| set.iter().map(<[u8]>::to_vec)).collect()
}

fn in_all(sets: &[ItemSet]) -> Vec<bool> {
    sets[0].iter().map(|item| sets.iter().all(|set| set.iter().any(|other| other == item))).collect()
}

#[test]
fn the_leader_of_a_union_learns_the_items_of_all() {
    for sizes in SIZES {
        let sets = sets(sizes);
        let public = Public::new(bounds(sizes), 20);
        let (results, _) = run_many(sizes.len(), 1, |many| {
            let hashed = HashedSet::new(&sets[many.me]);
            let new = union().run(many, &hashed, &public)?;
            new.open(Confirmed::for_tests())
        });
        let mut results = results.into_iter();
        let new: Items = results.next().unwrap().unwrap();
        assert!(results.all(|others| others.is_none()));
        let mut all: Vec<Vec<u8>> = sets[0].iter().chain(new.iter()).map(<[u8]>::to_vec).collect();
        all.sort();
        assert_eq!(all, of_all(&sets).into_iter().collect::<Vec<_>>(), "{sizes:?}");
    }
}

/// Dummies take part as items that no other party has, and do not affect the result.
#[test]
fn dummies_change_no_result() {
    let (sets, bounds) = (sets(&[5, 8, 2]), [9, 8, 7]);
    let padded = |me: usize| {
        let rng = &mut Prng::from_seed(&[me as u8; 32]);
        HashedSet::padded(&sets[me], bounds[me], rng)
    };
    let public = Public::new(bounds.to_vec(), 20);
    let (results, _) = run_many(3, 1, |many| {
        let set = padded(many.me);
        assert_eq!(set.len(), bounds[many.me]);
        let new = union().run(many, &set, &public)?;
        Ok(new.open(Confirmed::for_tests())?.map(|new| new.len()))
    });
    assert_eq!(results[0], Some(of_all(&sets).len() - 5));
    let (results, _) = run_many(3, 2, |many| {
        let set = padded(many.me);
        let matches = count().run(many, &set, &bounds)?;
        matches.open(Confirmed::for_tests())
    });
    assert_eq!(results[0], Some(in_all(&sets).into_iter().filter(|all| *all).count() as u64));
    let (results, _) = run_many(3, 3, |many| {
        let set = padded(many.me);
        let all = intersect().run(many, &set, &bounds)?;
        all.open(Confirmed::for_tests())
    });
    assert_eq!(results[0], Some(in_all(&sets)));
}

#[test]
fn the_leader_of_a_count_learns_how_many_items_all_have() {
    for sizes in SIZES {
        let (sets, bounds) = (sets(sizes), bounds(sizes));
        let (results, _) = run_many(sizes.len(), 1, |many| {
            let hashed = HashedSet::new(&sets[many.me]);
            let matches = count().run(many, &hashed, &bounds)?;
            matches.open(Confirmed::for_tests())
        });
        let expected = in_all(&sets).into_iter().filter(|all| *all).count() as u64;
        assert_eq!(results[0], Some(expected), "{sizes:?}");
        assert!(results[1..].iter().all(Option::is_none));
    }
}

#[test]
fn the_leader_of_an_intersection_learns_which_of_its_items_all_have() {
    for sizes in SIZES {
        let (sets, bounds) = (sets(sizes), bounds(sizes));
        let (results, _) = run_many(sizes.len(), 1, |many| {
            let hashed = HashedSet::new(&sets[many.me]);
            let all = intersect().run(many, &hashed, &bounds)?;
            all.open(Confirmed::for_tests())
        });
        assert_eq!(results[0], Some(in_all(&sets)), "{sizes:?}");
        assert!(results[1..].iter().all(Option::is_none));
    }
}

/// Four parties run nine programmable OPRFs: one from each client to each other client, and one from each client to the leader.
#[test]
fn programmable_oprfs_share_the_error() {
    for (parties, exponent) in [(2, 40), (3, 42), (4, 44)] {
        let run = super::observed_tests::intersect(1, &sets(&vec![3; parties]));
        let noted = run.notes.iter().flat_map(|notes| &notes.exponents);
        assert_eq!(noted.clone().count(), 2 * (parties - 1) * (parties - 1));
        assert!(noted.into_iter().all(|noted| *noted == exponent));
    }
}

// ---- Errors of the run, against explicit numbers.

/// Returns the length of the strings that tests of these sizes compare.
fn bits(Sizes { bins, most, exponent, comparisons }: Sizes) -> u32 {
    let functions = Functions::new(Domain::without_session("tests"), bins).unwrap();
    Batch { functions, most, exponent, comparisons }.bits().unwrap()
}

/// All tests of a union share 2^-41: each party's bins are tested with each party before it. With five parties there are 10
/// tests for each bin, 857,430 in all; with 32 there are 496, 695,625,616 in all.
#[test]
fn strings_of_a_union_are_long_enough_for_the_tests_of_all_parties() {
    for (parties, bound, of_a_bin, length) in [(5, 1 << 16, 10, 64), (32, 1 << 20, 496, 72)] {
        let public = Public::new(vec![bound; parties], 20);
        for (owner, holder) in (1..parties).flat_map(|owner| (0..owner).map(move |holder| (owner, holder))) {
            let sizes = public.sizes(owner, holder);
            assert_eq!((sizes.exponent, sizes.comparisons), (41, of_a_bin * public.bins(owner)), "{parties}");
            assert_eq!(bits(sizes), length, "{parties} {owner} {holder}");
        }
    }
}

/// All tests of a count share 2^-40: the leader's bins are tested with each other party. With five parties there are 5,100
/// tests; with 32 there are 39,525.
#[test]
fn strings_of_a_count_are_long_enough_for_the_tests_of_all_parties() {
    for (parties, comparisons) in [(5, 4 * 1275), (32, 31 * 1275)] {
        let bounds = vec![1000; parties];
        for holder in 1..parties {
            let sizes = super::count::sizes(&bounds, holder);
            assert_eq!((sizes.exponent, sizes.comparisons), (40, comparisons), "{parties}");
            assert_eq!(bits(sizes), 56, "{parties} {holder}");
        }
    }
}

/// Any table without a placement reveals something about a set, so all tables of a run share 2^-40.
#[test]
fn tables_of_all_parties_share_the_error() {
    for (parties, exponent) in [(2, 40), (3, 41), (5, 42), (32, 45)] {
        let public = Public::new(vec![40; parties], 20);
        let bins: Vec<usize> = (0..parties).map(|party| public.bins(party)).collect();
        assert_eq!(bins[0], 0);
        assert!(bins[1..].iter().all(|bins| *bins == cuckoo::number(exponent, 40)), "{parties}");
        assert!(parties == 2 || bins[1] > cuckoo::number(40, 40), "{parties}");
    }
}

/// An element is decoded wrongly with a probability of 7 times 2^-85, and any element of a run with at most 2^-41.
#[test]
fn more_rows_than_can_be_decoded_without_an_error_are_refused() {
    let of = |elements: usize| Public::new(vec![1 << 28; 3], PIECE * elements - 3);
    let rows = of(4000).bins(1) + of(4000).bins(2);
    let most = (1usize << 44) / 7 / rows;
    assert_eq!([most, most + 1].map(|elements| of(elements).k()), [most, most + 1]);
    assert_eq!(of(most).rows().ok(), Some(rows));
    assert!(matches!(of(most + 1).rows(), Err(Error::Usage(_))));
}
