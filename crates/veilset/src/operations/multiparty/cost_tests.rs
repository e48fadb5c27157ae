//! Bytes against those of runs, and figures for large sets.

use super::*;
use crate::hashed::Hashed;
use crate::item::ItemSet;
use crate::operations::multiparty::tests;
use crate::testing::run_many;

/// That what each party received from each other is as stated.
fn is_as_run(stated: &Cost, views: &[Vec<Vec<u8>>], what: &str) {
    let n = views.len();
    assert_eq!((stated.traffic.len(), stated.parties.len()), (n, n));
    for (to, from) in (0..n).flat_map(|to| (0..n).map(move |from| (to, from))) {
        assert_eq!(stated.traffic[from][to], views[to][from].len() as u64, "{what}: from {from} to {to}");
    }
    for (party, own) in views.iter().enumerate() {
        assert_eq!(stated.received(party), own.iter().map(|view| view.len() as u64).sum::<u64>());
        let sent = views.iter().map(|views| views[party].len() as u64).sum::<u64>();
        assert_eq!(stated.sent(party), sent);
    }
}

/// Sets of these sizes and bounds on them.
fn run(sizes: &[usize], bounds: &[usize], operation: &str) {
    let sets: Vec<ItemSet> = tests::sets(sizes);
    let public = Public { bounds: bounds.to_vec(), max_row: 20 };
    let (_, views) = run_many(sizes.len(), 1, |many| {
        let hashed = Hashed::new(&sets[many.me]);
        match operation {
            "union" => tests::union().run(many, &hashed, &public).map(drop),
            "count" => tests::count().run(many, &hashed, bounds).map(drop),
            _ => tests::intersect().run(many, &hashed, bounds).map(drop),
        }
    });
    let stated = match operation {
        "union" => union(&public),
        "count" => count(bounds),
        _ => intersect(bounds),
    };
    is_as_run(&stated.unwrap(), &views, &format!("{operation} {sizes:?} {bounds:?}"));
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
    for (sizes, bounds) in cases {
        for operation in ["union", "count", "intersect"] {
            run(sizes, bounds, operation);
        }
    }
}

/// Enough bins for the VOLE to need its code, and for several frames of ciphertexts and of OTs.
#[test]
fn bytes_of_several_frames_are_as_run() {
    run(&[40, 10, 30], &[7000, 60, 6000], "count");
    run(&[10, 40], &[200, 4500], "union");
    run(&[30, 40, 20], &[9000, 5000, 300], "intersect");
}

#[test]
fn large_sets_cost_what_is_planned() {
    let megabytes = |cost: &Cost| cost.traffic.iter().flatten().sum::<u64>() / 1_000_000;
    let several = |n, most| vec![most; n];
    let four = intersect(&several(4, 1 << 20)).unwrap();
    assert!((270..=300).contains(&megabytes(&four)), "{}", megabytes(&four));
    let public = |n, most| Public { bounds: several(n, most), max_row: 20 };
    let four = union(&public(4, 1 << 16)).unwrap();
    assert!((250..=345).contains(&megabytes(&four)), "{}", megabytes(&four));
    // Strings longer than 64 bits.
    let eight = union(&public(8, 1 << 20)).unwrap();
    assert_eq!(eight.parties.len(), 8);
    assert!(count(&several(8, 1 << 20)).is_ok() && intersect(&several(8, 1 << 20)).is_ok());
    // It is the same for all parties of a count and an intersection other than P_1.
    for cost in [count(&several(5, 1000)).unwrap(), intersect(&several(5, 1000)).unwrap()] {
        assert!(cost.parties[2..].iter().all(|party| *party == cost.parties[1]));
    }
}

#[test]
fn work_and_memory_grow_with_bounds_and_parties() {
    let most = |cost: &Cost| cost.parties.iter().map(|party| party.memory.on(2)).max().unwrap();
    let work =
        |cost: &Cost| cost.parties.iter().map(|p| p.work.multiplications + p.work.vole_items).sum::<usize>();
    let costs = |bounds: &[usize]| {
        let public = Public { bounds: bounds.to_vec(), max_row: 20 };
        [union(&public).unwrap(), count(bounds).unwrap(), intersect(bounds).unwrap()]
    };
    for [small, large] in [[&[5000; 3][..], &[9000; 3]], [&[5000; 3], &[5000; 4]]] {
        for (small, large) in costs(small).iter().zip(&costs(large)) {
            assert!(most(small) < most(large) && work(small) < work(large));
            assert!(small.rounds <= large.rounds && small.in_flight(0) <= large.in_flight(0));
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
    let public = Public { bounds: vec![5], max_row: 20 };
    for cost in [union(&public), count(&[5]), intersect(&[]), count(&[])] {
        assert!(matches!(cost, Err(Error::Bug(_))), "{cost:?}");
    }
}
