use super::super::tests::{SESSION, items};
use super::super::{Comparison, Plan};
use super::*;
use crate::hashing::Bins;
use std::collections::HashSet;

#[test]
fn items_that_do_not_fit_are_thrown_again() {
    // Bins so small that the first throws fail with some seeds.
    let bins = Bins { number: 6, receiver: 2, sender: 2 };
    let plan = Plan { in_frame: 6, ..Plan::of(Comparison::Plain, (6, 6), bins).unwrap() };
    let (y, x) = (items(0, 6), items(3, 6));
    let tries = |seed: u8| {
        let (mut a, mut b) = Channel::pair();
        std::thread::scope(|s| {
            let r = s.spawn(|| {
                let rng = &mut Prng::from_seed(&[seed; 32]);
                let table = hash_into_bins(&mut a, &SESSION, &plan, true, &y, rng);
                (table.map(|_| ()), a.bytes_sent())
            });
            let rng = &mut Prng::from_seed(&[seed + 100; 32]);
            let theirs = hash_into_bins(&mut b, &SESSION, &plan, false, &x, rng).map(|_| ());
            let (ours, bytes) = r.join().unwrap();
            assert_eq!(ours.is_ok(), theirs.is_ok());
            if let (Err(a), Err(b)) = (&ours, &theirs) {
                let blamed = [a, b].map(|e| matches!(e, Error::Peer(_)));
                assert!(blamed != [true, true], "{a} {b}");
            }
            (ours.is_ok(), bytes as usize / (2 * 38 + 7))
        })
    };
    let all: HashSet<(bool, usize)> = (0..60).map(tries).collect();
    assert!(all.contains(&(true, 1)) && all.contains(&(true, 2)) && all.contains(&(false, TRIES)), "{all:?}");
}
