use super::*;
use crate::channel::Channel;
use crate::error::Fault;
use crate::testing::{every_bit_is_random, run_pair, split_frames};
use std::collections::HashSet;

fn run(session: u8, purpose: &'static str, choices: &[bool]) -> (Secrets<[Pad; 2]>, Secrets<Pad>) {
    let (mut a, mut b) = Channel::pair();
    let session = SessionId::of([session; 32]);
    std::thread::scope(|s| {
        let (n, rng) = (choices.len(), &mut Prng::from_seed(&[2; 32]));
        let sender = s.spawn(move || {
            sender(&mut Context::new(&mut a, &session, &mut Prng::from_seed(&[1; 32])), purpose, n).unwrap()
        });
        let got = receiver(&mut Context::new(&mut b, &session, rng), purpose, choices).unwrap();
        (sender.join().unwrap(), got)
    })
}

#[test]
fn the_receiver_gets_the_chosen_pad_and_all_pads_differ() {
    let choices: Vec<bool> = (0..20).map(|i| i % 3 == 0).collect();
    let (sent, got) = run(7, "a", &choices);
    for ((pads, pad), &c) in sent.iter().zip(got.iter()).zip(&choices) {
        assert_eq!(pads[usize::from(c)], *pad);
    }
    let distinct: HashSet<Pad> = sent.iter().flatten().copied().collect();
    assert_eq!(distinct.len(), 40);
    assert!(run(7, "a", &[]).1.is_empty());
}

#[test]
fn under_the_same_randomness_another_session_or_purpose_gives_other_pads() {
    let pads = |session, purpose| run(session, purpose, &[true, false]).0;
    let all = [pads(7, "a"), pads(8, "a"), pads(7, "b")];
    let distinct: HashSet<Pad> = all.iter().flat_map(|pads| pads.iter().flatten()).copied().collect();
    assert_eq!(distinct.len(), 3 * 4);
    assert_eq!(*pads(7, "a"), *all[0]);
}

#[test]
fn the_oracles_depend_on_everything_they_are_given() {
    let element = |n: u8| [n; 32];
    let (r, b, shared) = ([element(1), element(2)], element(3), element(4));
    // In each list, every entry differs from the first in one input.
    let oracles = |session: u8, purpose| Oracles::new(&SessionId::of([session; 32]), purpose);
    let pads = [
        oracles(1, "a").pad(0, 0, &shared, &r, &b),
        oracles(2, "a").pad(0, 0, &shared, &r, &b),
        oracles(1, "b").pad(0, 0, &shared, &r, &b),
        oracles(1, "a").pad(1, 0, &shared, &r, &b),
        oracles(1, "a").pad(0, 1, &shared, &r, &b),
        oracles(1, "a").pad(0, 0, &element(5), &r, &b),
        oracles(1, "a").pad(0, 0, &shared, &[element(5), r[1]], &b),
        oracles(1, "a").pad(0, 0, &shared, &[r[0], element(5)], &b),
        oracles(1, "a").pad(0, 0, &shared, &r, &element(5)),
    ];
    let points = [
        oracles(1, "a").uniform(0, 0, &r[0]),
        oracles(2, "a").uniform(0, 0, &r[0]),
        oracles(1, "b").uniform(0, 0, &r[0]),
        oracles(1, "a").uniform(1, 0, &r[0]),
        oracles(1, "a").uniform(0, 1, &r[0]),
        oracles(1, "a").uniform(0, 0, &r[1]),
    ];
    assert!(pads[1..].iter().all(|p| *p != pads[0]));
    assert!(points[1..].iter().all(|p| *p != points[0]));
    let Oracles { point, key } = oracles(1, "a");
    assert_ne!(point.hash::<16>(&[&[1]]), key.hash::<16>(&[&[1]]));
}

/// The messages of both parties for these seeds of sender and receiver.
fn messages(choices: &[bool], seeds: [u8; 2]) -> (Vec<Pair>, Vec<Bytes>) {
    let session = SessionId::of([7; 32]);
    let rng = |role: usize| Prng::from_seed(&[seeds[role]; 32]);
    let (_, views) = run_pair(
        &session,
        |cx| sender(cx.under(rng(0)), "a", choices.len()),
        |cx| receiver(cx.under(rng(1)), "a", choices),
    );
    let [r, b] = [0, 1].map(|party| split_frames(&views.0[party]).remove(0).1);
    (r.as_chunks().0.iter().map(split).collect(), b.as_chunks().0.to_vec())
}

/// The elements that a sender can compute for each OT: r_0, r_1, r_0 + H_0(r_1) and r_1 + H_1(r_0). One of them is a G.
fn computed(r: &[Pair]) -> Vec<Bytes> {
    let oracles = Oracles::new(&SessionId::of([7; 32]), "a");
    let branches = (0..r.len()).flat_map(|i| [(i, 0), (i, 1)]);
    let hashed = branches.map(|(i, branch)| oracles.uniform(i, branch, &r[i][usize::from(1 - branch)]));
    let mut sums = decode(r.as_flattened()).unwrap();
    add(&mut sums, &map(&hashed.collect::<Vec<_>>()));
    r.as_flattened().iter().chain(encode(&sums).iter()).copied().collect()
}

/// An element that repeats, or is predictable, reveals which of r_0 and r_1 was picked uniformly, and so the choice.
#[test]
fn all_elements_are_fresh_in_every_ot_and_every_run() {
    let n = 20;
    let choices: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
    let runs = [[1, 2], [3, 4]].map(|seeds| messages(&choices, seeds));
    let asked: HashSet<Bytes> = runs.iter().flat_map(|(r, _)| computed(r)).collect();
    assert_eq!(asked.len(), 2 * 4 * n);
    let answers: HashSet<Bytes> = runs.iter().flat_map(|(_, b)| b).copied().collect();
    assert_eq!(answers.len(), 2 * n);
}

/// All elements are also fresh in two consecutive uses of one generator.
#[test]
fn all_elements_are_fresh_in_every_use_of_a_generator() {
    let choices: Vec<bool> = (0..20).map(|i| i % 3 == 0).collect();
    let (_, views) = run_pair(
        &SessionId::of([7; 32]),
        |cx| {
            sender(cx, "a", choices.len())?;
            sender(cx, "a", choices.len())
        },
        |cx| {
            receiver(cx, "a", &choices)?;
            receiver(cx, "a", &choices)
        },
    );
    let [asked, answers] = [0, 1].map(|party| split_frames(&views.0[party]));
    assert_eq!([asked.len(), answers.len()], [2; 2]);
    let mut seen = HashSet::new();
    for (_, body) in &asked {
        let pairs: Vec<Pair> = body.as_chunks().0.iter().map(split).collect();
        seen.extend(computed(&pairs));
    }
    assert_eq!(seen.len(), 2 * 4 * choices.len());
    let answers: HashSet<&[u8]> = answers.iter().flat_map(|(_, body)| body.chunks(32)).collect();
    assert_eq!(answers.len(), 2 * choices.len());
}

/// A party that could try all values would find the picked element and so the choice, or the pad.
#[test]
fn elements_that_are_not_picked_hashes_and_pads_are_of_full_width() {
    every_bit_is_random(&unpicked(400, &mut Prng::from_seed(&[1; 32])), 512);
    let oracles = Oracles::new(&SessionId::of([7; 32]), "a");
    every_bit_is_random(&(0..400).map(|i| oracles.uniform(i, 0, &[1; 32])).collect::<Vec<_>>(), 512);
    every_bit_is_random(run(7, "a", &[true; 200]).0.as_flattened(), 128);
}

/// Both runs use the same randomness.
#[test]
fn the_choice_decides_only_where_the_element_stands_that_is_picked() {
    let [(zeros, _), (ones, _)] = [false, true].map(|choice| messages(&[choice; 20], [1, 2]));
    for (zero, one) in zeros.iter().zip(&ones) {
        assert!(zero[1] == one[0] && zero[0] != one[1]);
    }
}

#[test]
fn who_knows_both_logarithms_has_neither_pad() {
    let (session, rng) = (SessionId::of([7; 32]), &mut Prng::from_seed(&[3; 32]));
    let (mut a, mut b) = Channel::pair();
    let scalars = Scalars::random(2, rng);
    let r = encode(&Table::generator().multiply(&scalars));
    let r: Pair = [r[0], r[1]];
    b.tx.send(R, &[joined(&r)]).unwrap();
    let pads = sender(&mut Context::new(&mut a, &session, rng), "a", 1).unwrap();
    let answer = b.rx.recv(B, 1).unwrap()[0];
    let mut shared = decode(&[answer; 2]).unwrap();
    multiply(&mut shared, &scalars);
    let oracles = Oracles::new(&session, "a");
    for shared in encode(&shared).iter() {
        for branch in [0, 1] {
            assert!(!pads[0].contains(&oracles.pad(0, branch, shared, &r, &answer)));
        }
    }
}

#[test]
fn the_sender_says_nothing_before_the_receiver_has_chosen() {
    let (mut a, mut b) = Channel::pair();
    // Another message than r_0 and r_1.
    b.tx.send(B, &[[0; 32]]).unwrap();
    let rng = &mut Prng::from_seed(&[1; 32]);
    let e = sender(&mut Context::new(&mut a, &SessionId::of([7; 32]), rng), "a", 1).unwrap_err();
    assert!(e.to_string().contains("base OT r_0, r_1"), "{e}");
    assert_eq!(a.bytes_sent(), 0);
}

/// The reason why the sender waits: here the receiver already knows b G, from a run with the same randomness.
#[test]
fn a_receiver_that_knew_the_answer_could_choose_its_pad() {
    let session = SessionId::of([7; 32]);
    let run = |r: Pair| {
        let (mut a, mut b) = Channel::pair();
        b.tx.send(R, &[joined(&r)]).unwrap();
        let rng = &mut Prng::from_seed(&[1; 32]);
        let pads = sender(&mut Context::new(&mut a, &session, rng), "a", 1).unwrap();
        (pads, b.rx.recv(B, 1).unwrap()[0])
    };
    let n = 2000;
    let a = Scalars::random(n, &mut Prng::from_seed(&[3; 32]));
    let other = encode(&Table::generator().multiply(&a))[0];
    let answer = run([other; 2]).1;
    let oracles = Oracles::new(&session, "a");
    let mut chosen = Table::generator().multiply(&a);
    subtract(&mut chosen, &map(&vec![oracles.uniform(0, 0, &other); n]));
    let chosen = encode(&chosen);
    let mut shared = decode(&vec![answer; n]).unwrap();
    multiply(&mut shared, &a);
    let shared = encode(&shared);
    let pad = |i: usize| oracles.pad(0, 0, &shared[i], &[chosen[i], other], &answer);
    let wanted = (0..n).find(|i| pad(*i)[0] == 0).unwrap();
    let (pads, again) = run([chosen[wanted], other]);
    assert_eq!((again, pads[0][0][0]), (answer, 0));
}

#[test]
fn what_is_not_a_group_element_is_refused() {
    let good = encode(&Table::generator().multiply(&Scalars::random(1, &mut Prng::from_seed(&[3; 32]))))[0];
    let mut odd = good;
    odd[31] |= 0x80;
    for bytes in [[0u8; 32], [0xff; 32], odd] {
        for pair in [[bytes, good], [good, bytes]] {
            let (mut a, mut b) = Channel::pair();
            a.tx.send_bytes(Message::new(0x31, "forged"), pair.as_flattened()).unwrap();
            let e = sender(
                &mut Context::new(&mut b, &SessionId::of([0; 32]), &mut Prng::from_seed(&[1; 32])),
                "a",
                1,
            )
            .unwrap_err();
            assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e}");
        }
        let (mut a, mut b) = Channel::pair();
        a.tx.send_bytes(Message::new(0x32, "forged"), &bytes).unwrap();
        let e = receiver(
            &mut Context::new(&mut b, &SessionId::of([0; 32]), &mut Prng::from_seed(&[1; 32])),
            "a",
            &[true],
        )
        .unwrap_err();
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e}");
    }
}
