//! The stated bytes compared with runs, and figures for large sets.

use super::*;
use crate::channel::Mesh;
use crate::hashed::HashedSet;
use crate::item::ItemSet;
use crate::many::{Many, seat};
use crate::operations::multiparty::tests;
use crate::testing::{Rounds, run_many, run_meshes};
use veilset_testing::Draw;

/// Checks that each party received the stated bytes from each other party.
fn is_as_run(stated: &MultipartyCost, views: &[Vec<Vec<u8>>], what: &str) {
    let n = views.len();
    assert_eq!((stated.traffic.len(), stated.parties.len()), (n, n));
    for (to, from) in (0..n).flat_map(|to| (0..n).map(move |from| (to, from))) {
        assert_eq!(stated.traffic[from][to], views[to][from].len() as u64, "{what}: from {from} to {to}");
    }
    for (party, own) in views.iter().enumerate() {
        assert_eq!(stated.parties[party].received, own.iter().map(|view| view.len() as u64).sum::<u64>());
        let sent = views.iter().map(|views| views[party].len() as u64).sum::<u64>();
        assert_eq!(stated.parties[party].sent, sent);
    }
}

const OPERATIONS: [&str; 3] = ["union", "count", "intersect"];

fn public(bounds: &[usize]) -> Public {
    Public::new(bounds.to_vec(), 20)
}

fn stated(operation: &str, bounds: &[usize]) -> MultipartyCost {
    let stated = match operation {
        "union" => union(&public(bounds)),
        "count" => count(bounds),
        _ => intersect(bounds),
    };
    stated.unwrap()
}

/// Runs one party of this operation.
fn step(operation: &str, many: &mut Many, sets: &[ItemSet], bounds: &[usize]) -> Result<()> {
    let (hashed, public) = (HashedSet::new(&sets[many.me]), public(bounds));
    match operation {
        "union" => tests::union().run(many, &hashed, &public).map(drop),
        "count" => tests::count().run(many, &hashed, bounds).map(drop),
        _ => tests::intersect().run(many, &hashed, bounds).map(drop),
    }
}

/// Runs the operation on sets of these sizes and bounds, and checks the stated bytes.
fn run(sizes: &[usize], bounds: &[usize], operation: &str) {
    let sets: Vec<ItemSet> = tests::sets(sizes);
    let (_, views) = run_many(sizes.len(), 1, |many| step(operation, many, &sets, bounds));
    is_as_run(&stated(operation, bounds), &views, &format!("{operation} {sizes:?} {bounds:?}"));
}

/// Two parties run over a transport that counts rounds.
#[test]
fn rounds_of_two_are_no_more_than_stated_and_not_many_less() {
    let mut draw = Draw::new("rounds of several");
    for operation in OPERATIONS {
        for sizes in draw.some(1, [[3, 5], [4500, 4500]]) {
            let (sets, stated) = (tests::sets(&sizes), stated(operation, &sizes).rounds);
            let (counted, channels) = Rounds::pair();
            let mesh = |(me, channel)| Mesh::new(seat(me), vec![(seat(1 - me), channel)]).unwrap();
            let meshes = channels.into_iter().enumerate().map(mesh).collect();
            run_meshes(meshes, 1, |many| step(operation, many, &sets, &sizes));
            let taken = counted.count();
            assert!((stated - 2..=stated).contains(&taken), "{operation} {sizes:?}: {taken} of {stated}");
        }
    }
}

#[test]
fn bytes_are_as_run() {
    let cases: [(&[usize], &[usize]); 5] = [
        (&[3, 5], &[3, 5]),
        (&[0, 0], &[0, 9]),
        (&[4, 0, 7], &[6, 0, 7]),
        (&[9, 3, 0, 30], &[9, 100, 1, 30]),
        (&[2, 3, 1, 4, 2], &[2, 3, 1, 4, 300]),
    ];
    for (sizes, bounds) in Draw::new("bytes of several").some(2, cases) {
        for operation in OPERATIONS {
            run(sizes, bounds, operation);
        }
    }
}

/// Enough bins for the VOLE to need its code, and for several frames of ciphertexts and of OTs.
#[test]
fn bytes_of_several_frames_are_as_run() {
    let cases: [(&[usize], &[usize], &str); 3] = [
        (&[40, 10, 30], &[7000, 60, 6000], "count"),
        (&[10, 40], &[200, 4500], "union"),
        (&[30, 40, 20], &[9000, 5000, 300], "intersect"),
    ];
    for (sizes, bounds, operation) in Draw::new("bytes of several frames").some(1, cases) {
        run(sizes, bounds, operation);
    }
}

#[test]
fn large_sets_cost_what_is_planned() {
    let megabytes = |cost: &MultipartyCost| cost.traffic.iter().flatten().sum::<u64>() / 1_000_000;
    let several = |n, most| vec![most; n];
    let four = intersect(&several(4, 1 << 20)).unwrap();
    assert!((170..=200).contains(&megabytes(&four)), "{}", megabytes(&four));
    let four = stated("union", &several(4, 1 << 16));
    assert!((250..=345).contains(&megabytes(&four)), "{}", megabytes(&four));
    // The compared strings are longer than 64 bits.
    let eight = stated("union", &several(8, 1 << 20));
    assert_eq!(eight.parties.len(), 8);
    assert!(count(&several(8, 1 << 20)).is_ok() && intersect(&several(8, 1 << 20)).is_ok());
    // All parties of a count or an intersection other than P_1 have the same cost.
    for cost in [count(&several(5, 1000)).unwrap(), intersect(&several(5, 1000)).unwrap()] {
        let of = |party: &PartyCost| (party.work, party.memory);
        assert!(cost.parties[2..].iter().all(|party| of(party) == of(&cost.parties[1])));
    }
}

#[test]
fn work_and_memory_grow_with_bounds_and_parties() {
    let most = |cost: &MultipartyCost| cost.parties.iter().map(|party| party.memory.on(2)).max().unwrap();
    let work = |cost: &MultipartyCost| {
        cost.parties
            .iter()
            .map(|p| p.work.count(Primitive::Ristretto255) + p.work.count(Primitive::CorrelatedOt))
            .sum::<u64>()
    };
    let costs = |bounds: &[usize]| OPERATIONS.map(|operation| stated(operation, bounds));
    for [small, large] in [[&[5000; 3][..], &[9000; 3]], [&[5000; 3], &[5000; 4]]] {
        for (small, large) in costs(small).iter().zip(&costs(large)) {
            assert!(most(small) < most(large) && work(small) < work(large));
            assert!(small.rounds <= large.rounds && small.parties[0].in_flight <= large.parties[0].in_flight);
        }
    }
}

#[test]
fn values_of_an_intersection_are_as_long_as_its_error_needs() {
    for (most, bytes) in [(0, 5), (1, 5), (2, 6), (256, 6), (257, 7), (1 << 20, 8), ((1 << 24) + 1, 9)] {
        assert_eq!(intersect::of_pair(&[most, 3, 4], 1, 2).bytes, bytes, "{most}");
    }
}

#[test]
fn a_run_of_one_party_is_a_bug() {
    for cost in [union(&public(&[5])), count(&[5]), intersect(&[]), count(&[])] {
        assert!(matches!(cost, Err(Error::Bug(_))), "{cost:?}");
    }
}
