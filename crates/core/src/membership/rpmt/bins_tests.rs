use super::super::tests::{SESSION, items};
use super::super::{Binning, Comparison};
use super::*;
use crate::channel::Channel;
use crate::error::Fault;
use crate::hashing::Bins;
use crate::testing::{Views, every_byte_differs, run_pair, split_frames};
use std::collections::HashSet;

/// Bits of items at fixed positions, or at the positions of another run, would reveal which item is new.
#[test]
fn items_are_at_random_places_of_their_bins() {
    let bins = Bins { number: 400, receiver: 15, sender: 15 };
    let plan = Binning::of(Comparison::Plain, (1, 1600), bins).unwrap();
    let table = SimpleTable::new(&Domain::new(&SESSION, "bins"), &items(0, 1600), 400);
    let mut rng = Prng::from_seed(&[6; 32]);
    let [order, other] = [(); 2].map(|()| fill_and_permute(&plan, &table, &mut rng));
    let mut counts = [0f64; 16];
    order.iter().enumerate().filter(|(_, item)| **item != BOTTOM).for_each(|(at, _)| counts[at % 16] += 1.0);
    // 100 at each position. With 15 degrees of freedom, a value above 55 has probability 2e-6.
    let chi2: f64 = counts.iter().map(|count| (count - 100.0).powi(2) / 100.0).sum();
    assert!(chi2 < 55.0, "{counts:?}");
    // One in 16 at the same position: 100, and eight standard deviations.
    let same = order.iter().zip(other.iter()).filter(|(a, b)| **a != BOTTOM && a == b).count();
    assert!(same < 180, "{same}");
    // The first item of a bin can be anywhere among the others.
    let ranks = (0..400).filter(|&bin| table.bin(bin).len() > 1).map(|bin| {
        let first = table.bin(bin)[0];
        let items = order[16 * bin..][..16].iter().filter(|&&item| item != BOTTOM);
        usize::from(items.into_iter().next() == Some(&first))
    });
    let (n, first) = ranks.fold((0, 0), |(n, first), rank| (n + 1, first + rank));
    assert!(n > 300 && first < n / 2, "{first} of {n}");
}

#[test]
fn the_bin_hash_follows_from_both_shares_the_session_and_the_attempt() {
    let hash = |session, attempt, first, second| {
        tossed(&SessionId::of([session; 32]), attempt, &[first; 32], &[second; 32]).hash::<32>(&[])
    };
    let all = [(1, 0, 1, 1), (2, 0, 1, 1), (1, 1, 1, 1), (1, 0, 2, 1), (1, 0, 1, 2)]
        .map(|(session, attempt, first, second)| hash(session, attempt, first, second));
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
}

#[test]
fn the_commitment_is_not_the_share_and_belongs_to_session_and_attempt() {
    let commitments = [(1, 0, 1), (2, 0, 1), (1, 1, 1), (1, 0, 2)]
        .map(|(session, attempt, share)| commitment(&SessionId::of([session; 32]), attempt, &[share; 32]));
    assert_eq!(commitments.iter().collect::<HashSet<_>>().len(), 4);
    // A short commitment would not bind.
    every_byte_differs(&commitments);
    assert!((0..=2).all(|share| !commitments.contains(&[share; 32])));
}

/// The bodies of the frames with this tag.
fn bodies(views: &Views, party: usize, tag: u16) -> Vec<Vec<u8>> {
    split_frames(&views.0[party]).into_iter().filter(|frame| frame.0 == tag).map(|frame| frame.1).collect()
}

/// If a share repeats, in another attempt or in a run under the same generator, the peer can choose the bins.
#[test]
fn shares_are_fresh_in_every_attempt_and_every_run() {
    // R's items never fit into the bins.
    let bins = Bins { number: 6, receiver: 0, sender: 6 };
    let plan = Binning { in_frame: 6, ..Binning::of(Comparison::Plain, (6, 6), bins).unwrap() };
    let (y, x) = (items(0, 6), items(3, 6));
    let twice = |cx: &mut Context, is_receiver: bool| {
        let items = if is_receiver { &y } else { &x };
        let mut run = || hash_into_bins(cx, &plan, is_receiver, items).is_err();
        Ok([run(), run()])
    };
    let (failed, views) = run_pair(&SESSION, |cx| twice(cx, true), |cx| twice(cx, false));
    assert_eq!(failed, ([true; 2], [true; 2]));
    let [commitments, shares, openings] =
        [(1, 0xa1), (0, 0xa2), (1, 0xa3)].map(|(party, tag)| bodies(&views, party, tag));
    let all: HashSet<&Vec<u8>> = commitments.iter().chain(&shares).chain(&openings).collect();
    assert_eq!(all.len(), 3 * 2 * TRIES);
    // A commitment cannot hide a share drawn from a small space.
    every_byte_differs(&shares);
    every_byte_differs(&openings);
}

/// The party that reveals its share last could choose the function, unless it is bound before. R is bound by its commitment
/// before S sends its share; S is bound by its share before the opening.
#[test]
fn no_share_is_sent_before_the_other_one_is_fixed() {
    let rng = &mut Prng::from_seed(&[7; 32]);
    // A peer that only receives.
    let deaf = || {
        let (ch, peer) = Channel::pair();
        (ch, peer.into_halves().1)
    };
    let (mut ch, _listening) = deaf();
    assert!(toss_second(&mut Context::new(&mut ch, &SESSION, rng), 0).is_err());
    assert_eq!(ch.bytes_sent(), 0);
    // The commitment and nothing else.
    let (mut ch, _listening) = deaf();
    assert!(toss_first(&mut Context::new(&mut ch, &SESSION, rng), 0).is_err());
    assert_eq!(ch.bytes_sent(), (32 + crate::channel::HEADER) as u64);
}

/// A bin above its bound has no polynomial, or reveals that it is above the bound.
#[test]
fn tables_that_are_accepted_keep_all_bounds() {
    let bins = Bins { number: 6, receiver: 2, sender: 2 };
    let plan = Binning { per_frame: 2, in_frame: 3, ..Binning::of(Comparison::Plain, (6, 6), bins).unwrap() };
    let (y, x) = (items(0, 6), items(3, 6));
    let fullest = |seed: u8| {
        let (mut a, mut b) = Channel::pair();
        let fullest = |ch: &mut Channel, is_receiver: bool| {
            let rng = &mut Prng::from_seed(&[if is_receiver { seed } else { seed + 100 }; 32]);
            let items = if is_receiver { &y } else { &x };
            let table =
                hash_into_bins(&mut Context::new(ch, &SESSION, rng), &plan, is_receiver, items).ok()?;
            Some((table.fullest(1), table.fullest(2)))
        };
        std::thread::scope(|s| {
            let ours = s.spawn(|| fullest(&mut a, true));
            let theirs = fullest(&mut b, false);
            ours.join().unwrap().zip(theirs)
        })
    };
    let accepted: Vec<_> = (0..90).filter_map(fullest).collect();
    assert!(accepted.len() > 20, "{}", accepted.len());
    for ((ours, of_frame), (theirs, _)) in accepted {
        assert!(ours <= 2 && of_frame <= 3 && theirs <= 2, "{ours} {of_frame} {theirs}");
    }
}

#[test]
fn items_that_do_not_fit_are_thrown_again() {
    // Bins so small that the first attempts fail for some seeds.
    let bins = Bins { number: 6, receiver: 2, sender: 2 };
    let plan = Binning { in_frame: 6, ..Binning::of(Comparison::Plain, (6, 6), bins).unwrap() };
    let (y, x) = (items(0, 6), items(3, 6));
    let tries = |seed: u8| {
        let (mut a, mut b) = Channel::pair();
        std::thread::scope(|s| {
            let r = s.spawn(|| {
                let rng = &mut Prng::from_seed(&[seed; 32]);
                let table = hash_into_bins(&mut Context::new(&mut a, &SESSION, rng), &plan, true, &y);
                (table.map(|_| ()), a.bytes_sent())
            });
            let rng = &mut Prng::from_seed(&[seed + 100; 32]);
            let theirs =
                hash_into_bins(&mut Context::new(&mut b, &SESSION, rng), &plan, false, &x).map(|_| ());
            let (ours, bytes) = r.join().unwrap();
            assert_eq!(ours.is_ok(), theirs.is_ok());
            if let (Err(a), Err(b)) = (&ours, &theirs) {
                let blamed = [a, b].map(|e| matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }));
                assert!(blamed != [true, true], "{a} {b}");
            }
            (ours.is_ok(), bytes as usize / (2 * 38 + 7))
        })
    };
    let all: HashSet<(bool, usize)> = (0..60).map(tries).collect();
    assert!(all.contains(&(true, 1)) && all.contains(&(true, 2)) && all.contains(&(false, TRIES)), "{all:?}");
}
