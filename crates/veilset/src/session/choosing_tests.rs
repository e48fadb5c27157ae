//! What the planner picks in a run, what it measures, and what a peer cannot do to it.

use super::*;
use crate::channel::Channel;
use crate::error::Fault;
use crate::item::ItemSet;
use crate::net::Connection;
use crate::operations::{INTERSECT, Learned, Operation, UNION};
use crate::planner;
use crate::protocols::{CM20, CWPRF, DH_PSI, OSN, VOLE};
use crate::rng::Prng;
use crate::session::run::{Request, RunOutcome, run};
use crate::testing::{SEEDS, Shared, peer, proposal, split_frames, with_frames};

/// Sets of these sizes with as many items in common.
fn sets(n_y: usize, n_x: usize, common: usize) -> (ItemSet, ItemSet) {
    let items = |range: std::ops::Range<usize>| range.map(|i| format!("item {i}")).collect();
    (items(0..n_y), items(n_y - common..n_y - common + n_x))
}

fn planning(prefer: Preference) -> Option<Planning> {
    Some(Planning { speeds: Speeds::built_in(1), prefer })
}

fn plans(operation: &'static Operation) -> Vec<Choice> {
    planner::acceptable(operation, &crate::operations::Terms::default(), None, None)
}

/// What both learned, and what the receiver got.
fn both(receiver: &Request, sender: &Request, link: Option<Network>) -> ([RunOutcome; 2], Shared) {
    let (mut a, b) = Channel::pair();
    let seen = Shared::default();
    a.record(crate::channel::Recording::to_writer(seen.clone()));
    let on = |channel: Channel| match link {
        Some(link) => channel.emulate(link).unwrap(),
        None => channel,
    };
    let connection = |channel| Connection::unprotected(on(channel), Default::default());
    let outcomes = std::thread::scope(|scope| {
        let there = scope.spawn(|| run(connection(b), sender, &mut Prng::from_seed(&SEEDS[1])).unwrap());
        [run(connection(a), receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap(), there.join().unwrap()]
    });
    (outcomes, seen)
}

/// Two that plan agree on one protocol, and the result is right.
#[test]
fn both_run_what_the_receiver_picks() {
    let (y, x): (ItemSet, ItemSet) = sets(3000, 2500, 1000);
    for (operation, prefer) in
        [(&INTERSECT, Preference::Time), (&INTERSECT, Preference::Bytes), (&UNION, Preference::Time)]
    {
        let all = plans(operation);
        let request = |role, set| {
            Request::new(operation, role, set).with(|r| {
                r.spec.candidates = Choice::of(all[0].protocol).into();
                r.spec.candidates.others = all[1..].to_vec();
                r.local.planning = planning(prefer);
            })
        };
        let ([ours, theirs], _) = both(&request(Role::Receiver, &y), &request(Role::Sender, &x), None);
        assert_eq!((ours.choice, ours.session_id), (theirs.choice, theirs.session_id));
        match &ours.learned {
            Learned::Matching(matching) => assert_eq!(matching.positions.len(), 1000),
            Learned::New(new) => assert_eq!(new.items.len(), 1500),
            other => panic!("{other:?}"),
        }
    }
}

/// A fixed protocol on either side leaves nothing to pick, and nothing is measured.
#[test]
fn a_fixed_protocol_meets_a_planner() {
    let (y, x) = sets(30, 25, 10);
    let all = plans(&INTERSECT);
    let plans = |role, set| {
        Request::new(&INTERSECT, role, set).with(|r| {
            r.spec.candidates = Choice::of(all[0].protocol).into();
            r.spec.candidates.others = all[1..].to_vec();
            r.local.planning = planning(Preference::Time);
        })
    };
    let fixed = |role, set| {
        Request::new(&INTERSECT, role, set).with(|r| r.spec.candidates = Choice::of(&CM20).into())
    };
    for (receiver, sender) in [
        (plans(Role::Receiver, &y), fixed(Role::Sender, &x)),
        (fixed(Role::Receiver, &y), plans(Role::Sender, &x)),
    ] {
        let ([ours, theirs], seen) = both(&receiver, &sender, None);
        assert_eq!((ours.choice, theirs.choice), (Choice::of(&CM20), Choice::of(&CM20)));
        assert_eq!((ours.why, theirs.why), (None, None));
        assert!(split_frames(&seen.bytes()).iter().all(|(tag, _)| *tag != 7));
    }
    // Several on the receiver's side, which does not plan: its first.
    let listed = plans(Role::Receiver, &y).with(|r| r.local.planning = None);
    let ([ours, theirs], _) = both(&listed, &plans(Role::Sender, &x), None);
    assert_eq!(ours.choice, all[0]);
    let first = Some("the first that both parties allow, in the receiver's order");
    assert_eq!([&ours, &theirs].map(|side| side.why.as_deref()), [first; 2]);
}

/// What the receiver picks of these, for sets of this size and a peer that tells these speeds, and the frames that it sent.
fn picked(
    operation: &'static Operation,
    protocols: &[Choice],
    (n, told): (usize, Speeds),
    link: Network,
) -> (Picked, Vec<(u16, usize)>) {
    let all: Vec<Choice> = protocols.to_vec();
    let set = ItemSet::default();
    let request = Request::new(operation, Role::Receiver, &set).with(|r| {
        r.spec.candidates = Choice::of(all[0].protocol).into();
        r.spec.candidates.others = all[1..].to_vec();
        r.local.planning = planning(Preference::Time);
    });
    let proposal = proposal(request.hello(false), n, peer(n, false));
    let (a, mut b) = Channel::pair();
    let seen = Shared::default();
    b.record(crate::channel::Recording::to_writer(seen.clone()));
    let (mut a, mut b) = (a.emulate(link).unwrap(), b.emulate(link).unwrap());
    let ours = Speeds::built_in(1);
    let plan = Plan {
        proposal: &proposal,
        common: &proposal.hello.spec.candidates,
        ours,
        told,
        prefer: Preference::Time,
    };
    let picked = std::thread::scope(|scope| {
        scope.spawn(move || answer(&mut b).unwrap());
        plan.pick(&mut a, link.round_trip).unwrap()
    });
    (picked, split_frames(&seen.bytes()).into_iter().map(|(tag, body)| (tag, body.len())).collect())
}

/// Only what decides is measured, and what is measured decides.
#[test]
fn the_link_is_measured_where_the_choice_depends_on_it() {
    let [dh, osn, vole, dh_psi] = [&CWPRF, &OSN, &VOLE, &DH_PSI].map(Choice::of);
    let link = |bandwidth| Network { bandwidth, round_trip: Duration::from_millis(1) };
    let like_us = Speeds::built_in(1);
    // The same on all links: vole sends less and is faster.
    let (choice, sent) = picked(&INTERSECT, &[dh_psi, vole], (1 << 20, like_us), link(1e9));
    assert_eq!((choice.choice, &sent[..]), (vole, &[(6, 8)][..]));
    assert!(choice.why.unwrap().contains("on any link"));
    // The fast union on a fast link, the small one on a slow link. A machine under load measures any link as slow at times.
    for (bandwidth, expected, tries) in [(5e9, osn, 50), (2e7, dh, 1)] {
        let mut all = (0..tries).map(|_| picked(&UNION, &[dh, osn], (1 << 20, like_us), link(bandwidth)));
        let (choice, sent) = all.find(|(choice, _)| choice.choice == expected).unwrap();
        let filler: usize = sent.iter().filter(|(tag, _)| *tag == 7).map(|(_, n)| n).sum();
        assert!((LEAST..=MOST).contains(&filler), "{filler}");
        let why = choice.why.unwrap();
        assert!(why.contains("Mbit/s and 1.0 ms"), "{why}");
    }
}

/// Whatever the link seems to be, a short run is by the protocol that shows least, and nothing is measured for it.
#[test]
fn noise_decides_nothing_for_short_runs() {
    let all = plans(&INTERSECT);
    for n in [1, 100, 1 << 10] {
        for trip in [0, 1, 50, 3000] {
            for bandwidth in [1e6, 44e6, 1e10, f64::INFINITY] {
                let link = Network { bandwidth, round_trip: Duration::from_micros(trip) };
                let (choice, sent) = picked(&INTERSECT, &all, (n, Speeds::built_in(1)), link);
                assert_eq!((choice.choice, &sent[..]), (Choice::of(&DH_PSI), &[(6, 8)][..]), "{n} {link:?}");
            }
        }
    }
}

/// A peer that lies about its speed, in whatever it computes, does not choose the protocol.
#[test]
fn a_receiver_with_a_lying_peer_keeps_its_choice() {
    let link = Network { bandwidth: 1e9, round_trip: Duration::from_micros(200) };
    let honest = Speeds::built_in(1);
    let all: Vec<Choice> = planner::acceptable(&INTERSECT, &Default::default(), None, None);
    for n in [20_000, 1 << 19] {
        let choice = picked(&INTERSECT, &all, (n, honest), link).0.choice;
        for primitive in 0..crate::work::Primitive::ALL.len() {
            for claimed in [1, 100_000_000_000_000] {
                let mut times = crate::work::Primitive::ALL.map(|one| honest.picoseconds(one));
                times[primitive] = claimed;
                let lie = Speeds::new(times, 1).unwrap();
                assert_eq!(
                    picked(&INTERSECT, &all, (n, lie), link).0.choice,
                    choice,
                    "{n} {primitive} {claimed}"
                );
            }
        }
    }
    // One that says it is slow in all is believed within bounds, and the report says so.
    let slow = Speeds::new([100_000_000_000; crate::work::Primitive::ALL.len()], 1).unwrap();
    let (choice, _) = picked(&INTERSECT, &all, (1 << 20, slow), link);
    let why = choice.why.unwrap();
    assert!(
        why.contains("by what the peer says of its speed") && why.contains("with a machine like ours"),
        "{why}"
    );
    let like = honest.like(&slow);
    let one = crate::work::Primitive::Curve25519;
    assert_eq!(like.picoseconds(one), 8 * honest.picoseconds(one));
    assert_eq!(honest.like(&honest), honest);
}

#[test]
fn a_peer_cannot_measure_for_ever_nor_choose_what_was_not_offered() {
    for n in [MOST as u64 + 1, u64::MAX] {
        let e = with_frames(&[(6, &n.to_le_bytes())], |cx| answer(cx.ch)).unwrap_err();
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e}");
        assert!(e.to_string().contains(&n.to_string()), "{e}");
    }
    let five = 5u64.to_le_bytes();
    for filler in [&[0; 4][..], &[0; 6]] {
        let e = with_frames(&[(6, &five), (7, filler)], |cx| answer(cx.ch)).unwrap_err();
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e}");
    }
    let e = with_frames(&[(6, &five)], |cx| answer(cx.ch)).unwrap_err();
    assert!(matches!(e, Error::Network(_)), "{e}");
    // The sender's filler is as long as ours was.
    let e = with_frames(&[(7, &[0; 4999])], |cx| measured(cx.ch, 5000)).unwrap_err();
    assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e}");
}
