use super::super::tests::{agree, is_an_equality, lists};
use super::*;
use crate::channel::Sink;
use crate::error::Fault;
use crate::rng::Prng;
use crate::testing::{ANY_SESSION, Rounds, SEEDS, Views, every_bit_is_random, parts, run_pair, split_frames};
use std::collections::HashSet;
use std::sync::mpsc;
use std::time::Duration;

const SMALL: Nibbles = Nibbles { k: 5, batch: 60 };

/// The shares of R and of S for these lists, and the parties' views, with generators from this seed.
fn run(protocol: &Nibbles, [w, s]: &[Vec<u128>; 2], bits: u32, seed: u8) -> ([Vec<bool>; 2], Views) {
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let ((r, s), views) = run_pair(
        &ANY_SESSION,
        |cx| protocol.receiver(cx.under(rng(0)), w, bits),
        |cx| protocol.sender(cx.under(rng(1)), s, bits),
    );
    ([r.to_vec(), s.to_vec()], views)
}

#[test]
fn it_is_an_equality() {
    is_an_equality(&Nibbles { k: 2, batch: 200 }, 200);
}

/// A full frame of tables, and one string more than fills a frame of tables or of triples.
#[test]
fn several_frames_are_compared() {
    for n in [TABLES_PER_FRAME / 2, TABLES_PER_FRAME / 2 + 1, TRIPLES_PER_FRAME + 1] {
        let pair = lists(n, 8);
        let ([r, s], _) = run(&Nibbles::new(2), &pair, 8, 1);
        let sums: Vec<bool> = r.iter().zip(&s).map(|(r, s)| r ^ s).collect();
        assert_eq!(sums, agree(&pair, 8), "{n}");
    }
}

#[test]
fn strings_that_are_no_strings_are_refused_before_anything_is_sent() {
    for bits in [0, 129] {
        let (mut ch, _peer) = Channel::pair();
        let mut rng = Prng::from_seed(&SEEDS[0]);
        let mut cx = Context::new(&mut ch, &ANY_SESSION, &mut rng);
        let ends = [SMALL.receiver(&mut cx, &[1], bits), SMALL.sender(&mut cx, &[1], bits)];
        assert!(ends.iter().all(|end| matches!(end, Err(Error::Bug(_)))), "{ends:?}");
        assert_eq!(cx.ch.bytes_sent(), 0);
    }
}

#[test]
fn bytes_are_as_counted() {
    for (n, bits, k) in
        [(0, 64, 5), (1, 64, 5), (1, 4, 8), (60, 12, 5), (61, 13, 5), (700, 64, 6), (70, 68, 5)]
    {
        let protocol = Nibbles { k, batch: 60 };
        let (_, views) = run(&protocol, &lists(n, bits), bits, 1);
        let there = views.0[1].len();
        let back = views.0[0].len();
        assert_eq!((there, back), protocol.traffic(n, bits), "{n} {bits} {k}");
    }
    // The costs in the module documentation, at 2^16 strings.
    for (k, bytes) in [(5, 345.0), (8, 228.0)] {
        let (there, back) = Nibbles::new(k).traffic(1 << 16, 64);
        assert_eq!(((there + back) as f64 / 65536.0).round(), bytes, "{k}");
    }
}

#[test]
fn rounds_are_as_counted() {
    for (n, bits) in [(0, 64), (3, 4), (3, 64), (61, 4), (61, 8), (61, 16)] {
        let (counted, [mut a, mut b]) = Rounds::pair();
        let [w, s] = lists(n, bits);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = Prng::from_seed(&SEEDS[0]);
                SMALL.receiver(&mut Context::new(&mut a, &ANY_SESSION, &mut rng), &w, bits).unwrap();
            });
            scope.spawn(|| {
                let mut rng = Prng::from_seed(&SEEDS[1]);
                SMALL.sender(&mut Context::new(&mut b, &ANY_SESSION, &mut rng), &s, bits).unwrap();
            });
        });
        assert_eq!(counted.count(), SMALL.rounds(n, bits), "{n} {bits}");
    }
}

#[test]
fn a_level_joins_all_that_the_one_before_left() {
    for nibbles in 1..=32 {
        let shape = Shape { strings: 7, nibbles };
        assert_eq!(shape.levels().sum::<usize>(), shape.ands());
        assert_eq!(shape.levels().count(), nibbles.next_power_of_two().ilog2() as usize);
    }
}

/// The frames with this tag that `party` received.
fn frames_of(views: &Views, party: usize, tag: u16) -> Vec<Vec<u8>> {
    split_frames(&views.0[party]).into_iter().filter(|frame| frame.0 == tag).map(|frame| frame.1).collect()
}

/// Messages are random and of the same lengths, whether the strings agree or not, and different in another run.
#[test]
fn messages_are_random_whether_strings_agree_or_not() {
    let [ours, _] = lists(640, 64);
    let others: Vec<u128> = ours.iter().map(|string| !string).collect();
    let mut seen = Vec::new();
    for theirs in [ours.clone(), others] {
        let pair = [ours.clone(), theirs];
        let both = [1, 2].map(|seed| run(&Nibbles::new(5), &pair, 64, seed));
        for ([r, s], views) in &both {
            for shares in [r, s] {
                every_bit_is_random(&shares.iter().map(|share| [u8::from(*share)]).collect::<Vec<_>>(), 1);
            }
            every_bit_is_random(&parts(&views.0[0], 0xe0, 2), 16);
            every_bit_is_random(&parts(&views.0[0], 0xe2, 1), 8);
            every_bit_is_random(&parts(&views.0[1], 0xe1, 1), 8);
            every_bit_is_random(&parts(&views.0[1], 0x34, 16), 128);
            seen.push([0, 1].map(|party| views.frames(party)));
        }
        let [one, other] = &both;
        for (party, tag) in [(0, 0xe0), (0, 0xe2), (1, 0xe1)] {
            let [one, other] = [one, other].map(|ran| frames_of(&ran.1, party, tag).concat());
            let different = one.iter().zip(&other).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
            // Half of the bits, of which there are thousands.
            assert!(different as usize > 3 * one.len(), "{tag:#x}: {different} bits of {} bytes", one.len());
        }
        assert!(one.0.iter().zip(&other.0).all(|(one, other)| one != other));
    }
    assert!(seen.iter().all(|frames| *frames == seen[0]));
}

/// The leaves of both parties, and the views of a run that goes on through the tree.
fn leaves_and_views(pair: &[Vec<u128>; 2], bits: u32, seed: u8) -> ([Leaves; 2], Views) {
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let copy = |leaves: &Leaves| Leaves {
        shape: leaves.shape,
        equal: leaves.equal.clone(),
        triples: leaves.triples.range(0, leaves.triples.a.len()),
    };
    let security = Security::SemiHonest;
    let ((r, s), views) = run_pair(
        &ANY_SESSION,
        |cx| {
            let ot = extension::Receiver::setup(cx.under(rng(0)), "test", 5, security)?;
            let strings = Strings { words: &pair[0], bits };
            let leaves = receive_leaves(cx, &mut Numbered { ot, used: 0 }, strings)?;
            join(cx, copy(&leaves), &RECEIVER)?;
            Ok(leaves)
        },
        |cx| {
            let ot = extension::Sender::setup(cx.under(rng(1)), "test", 5, security)?;
            let strings = Strings { words: &pair[1], bits };
            let leaves = send_leaves(cx, &mut Numbered { ot, used: 0 }, strings)?;
            join(cx, copy(&leaves), &SENDER)?;
            Ok(leaves)
        },
    );
    ([r, s], views)
}

/// The opened d = x + a shows the other party nothing about x, even together with its share of x. This also holds for e, and
/// for both parties.
#[test]
fn what_is_opened_says_nothing_together_with_a_share() {
    let n = 800;
    let ours = vec![0x35; n];
    for (theirs, agree) in [(0x35, [true, true]), (0x36, [false, true]), (0x95, [true, false])] {
        let (leaves, views) = leaves_and_views(&[ours.clone(), vec![theirs; n]], 8, 1);
        for (of, tag, party) in [(0, 0xe2, 1), (1, 0xe1, 0)] {
            // The bits that the other party opened, which `of` received.
            let opened = frames_of(&views, of, tag).concat();
            let share = &leaves[of].equal;
            for (which, agree) in agree.into_iter().enumerate() {
                let opened = Bits::from_bytes(&opened[which * n / 8..][..n / 8], n).unwrap();
                let guess = &opened ^ &share.range(which * n, n);
                let right = (0..n).filter(|&i| guess.bit(i) == agree).count();
                // Half, with a standard deviation of 14.
                assert!(right.abs_diff(n / 2) < 100, "party {party}, {which}, {theirs:#x}: {right} of {n}");
            }
        }
    }
}

#[test]
fn triples_are_triples_and_fresh_in_every_frame_and_run() {
    let n = TRIPLES_PER_FRAME + 400;
    let pair = [vec![0x35; n], vec![0x35; n]];
    let runs = [1, 2].map(|seed| leaves_and_views(&pair, 8, seed).0);
    for [r, s] in &runs {
        let [a, b, c] =
            [&r.triples.a ^ &s.triples.a, &r.triples.b ^ &s.triples.b, &r.triples.c ^ &s.triples.c];
        assert_eq!((&a & &b).to_bytes(), c.to_bytes());
    }
    // Each bit of a and of b of either party, and r, in two frames of two runs.
    let mut all = HashSet::new();
    for [r, s] in &runs {
        for bits in [&r.triples.a, &r.triples.b, &s.triples.a, &s.triples.b, &s.equal] {
            assert!(all.insert(bits.range(0, 400).to_bytes()));
            assert!(all.insert(bits.range(TRIPLES_PER_FRAME, 400).to_bytes()));
            every_bit_is_random(&bits.to_bytes().chunks(1).collect::<Vec<_>>(), 8);
        }
        // A frame of tables is shorter.
        assert!(all.insert(s.equal.range(TABLES_PER_FRAME, 400).to_bytes()));
    }
}

/// With x = y = 0 and triples with b = c = 0 only the bits a are opened, and in the tree x stays 0.
#[test]
fn every_triple_is_used_once() {
    let shape = Shape { strings: 50, nibbles: 13 };
    let a = Bits::random(shape.ands(), &mut Prng::from_seed(&[5; 32]));
    let leaves = |a: &Bits| Leaves {
        shape,
        equal: Bits::zeros(shape.leaves()),
        triples: Triples { a: a.range(0, a.len()), ..Triples::zeros(shape.ands()) },
    };
    let zeros = Bits::zeros(shape.ands());
    let ((r, s), views) =
        run_pair(&ANY_SESSION, |cx| join(cx, leaves(&a), &RECEIVER), |cx| join(cx, leaves(&zeros), &SENDER));
    assert_eq!((r.to_bytes(), s.to_bytes()), (Bits::zeros(50).to_bytes(), Bits::zeros(50).to_bytes()));
    let mut used = 0;
    for (opened, n) in frames_of(&views, 1, 0xe1).iter().zip(shape.levels()) {
        assert_eq!(opened[..n.div_ceil(8)], a.range(used, n).to_bytes());
        used += n;
    }
    assert_eq!(used, shape.ands());
}

/// The nibble v for which the table is closest to an affine function plus a one at v.
fn guess(table: u16) -> u8 {
    let distance = |table: u16| {
        let affine = (0..32u16).map(|f| {
            (0..NIBBLE).fold(if f >> 4 == 1 { u16::MAX } else { 0 }, |sum, t| {
                sum ^ if f >> t & 1 == 1 { ONES[t] } else { 0 }
            })
        });
        affine.map(|affine| (affine ^ table).count_ones()).min()
    };
    (0..16).min_by_key(|v| distance(table ^ 1 << v)).unwrap()
}

/// The number of times, out of 2000, that R's best guess of S's nibble is right, given everything that R knows.
fn guessed(string: fn(u128) -> u16) -> usize {
    let mut rng = Prng::from_seed(&[7; 32]);
    let right = |_: &usize| {
        let masks = [(); 2].map(|()| {
            Secrets::from((0..NIBBLE).map(|_| u128::from_le_bytes(rng.bytes())).collect::<Vec<_>>())
        });
        let [w, s] = [(); 2].map(|()| rng.below(16) as u8);
        let table = tables(&masks, &[s], &Bits::random(1, &mut rng), string);
        let mut table = u16::from_le_bytes([table[0], table[1]]);
        // R knows k_t^(w_t), and removes it from wherever it is a mask.
        for (t, ones) in ONES.iter().enumerate() {
            let bit = usize::from(w >> t & 1);
            table ^= string(masks[bit][t]) & if bit == 1 { *ones } else { !ones };
        }
        guess(table) == s
    };
    (0..2000).filter(right).count()
}

#[test]
fn a_table_shows_the_nibble_under_pads_of_one_bit_and_not_under_these() {
    assert_eq!(guessed(|mask| 0u16.wrapping_sub(mask as u16 & 1)), 2000);
    // By chance 125, with a standard deviation of 11.
    let right = guessed(string);
    assert!(right.abs_diff(125) < 80, "{right} of 2000");
}

#[test]
fn a_table_opens_at_one_place_only() {
    for v in 0..16u8 {
        assert_eq!(only(v), 1 << v);
    }
    let mut rng = Prng::from_seed(&[3; 32]);
    let masks = [(); 2].map(|()| {
        Secrets::from((0..NIBBLE * 16).map(|_| u128::from_le_bytes(rng.bytes())).collect::<Vec<_>>())
    });
    let nibbles: Vec<u8> = (0..16).collect();
    for s in 0..16u8 {
        let r = Bits::random(16, &mut rng);
        let tables = tables(&masks, &[s; 16], &r, string);
        let got = (0..NIBBLE * 16).map(|i| masks[usize::from(nibbles[i / NIBBLE] >> (i % NIBBLE) & 1)][i]);
        let opened = open(&tables, &chosen(&got.collect::<Vec<_>>()), &nibbles);
        let agree = Bits::from_fn(16, |i| nibbles[i] == s);
        assert_eq!((&opened ^ &r).to_bytes(), agree.to_bytes());
    }
}

#[test]
fn masks_are_no_pads_and_of_the_numbers_of_their_ots() {
    let pads = vec![[7; 16]; 1027];
    let [first, second] = [0, pads.len()].map(|first| many_masks(first, &pads));
    let all: HashSet<u128> = first.iter().chain(second.iter()).copied().collect();
    assert_eq!(all.len(), 2 * pads.len());
    assert!(!all.contains(&u128::from_le_bytes([7; 16])));
    // Bits for a triple come from masks, too.
    let bits = single_bits(5, &pads);
    let expected = many_masks(5, &pads);
    assert!((0..pads.len()).all(|i| bits.bit(i) == (expected[i] & 1 == 1)));
    let mut numbered = Numbered { ot: (), used: 0 };
    assert_eq!([4, 0, 3, 1].map(|n| numbered.number(n)), [0, 4, 4, 7]);
}

/// Changes the bodies of frames with one tag.
struct Forge {
    sink: Box<dyn Sink>,
    tag: u8,
    change: fn(&mut Vec<u8>),
}

impl Sink for Forge {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        let (head, body) = frame.split_at(HEADER);
        let mut body = body.to_vec();
        if head[..2] == [self.tag, 0] {
            (self.change)(&mut body);
        }
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        self.sink.send([&head[..2], &length, &body].concat())
    }
}

#[test]
fn what_no_honest_party_sends_is_refused() {
    let shorter: fn(&mut Vec<u8>) = |body| body.truncate(body.len() - 1);
    let longer: fn(&mut Vec<u8>) = |body| body.push(0);
    // 3 ANDs of one string of 16 bits: 2 and 1.
    let behind_d: fn(&mut Vec<u8>) = |body| body[0] |= 0x80;
    let behind_e: fn(&mut Vec<u8>) = |body| body[1] |= 0x80;
    let all = [shorter, longer, behind_d, behind_e];
    for (of_receiver, tag, changes, says) in [
        (true, 0x34, &all[..2], "u_i + choices"),
        (true, 0xe1, &all[..2], "bits opened for ANDs"),
        (true, 0xe1, &all[2..], "it opened bits behind the last AND"),
        (false, 0xe0, &all[..2], "a table of 16 bits"),
        (false, 0xe2, &all[..2], "bits opened for ANDs"),
        (false, 0xe2, &all[2..], "it opened bits behind the last AND"),
    ] {
        for &change in changes {
            let (mut honest, forger) = Channel::pair();
            let (sink, source) = forger.into_halves();
            let mut forger = Channel::from_halves(Box::new(Forge { sink, tag, change }), source);
            let run = |ch: &mut Channel, receives: bool| {
                let mut rng = Prng::from_seed(&SEEDS[usize::from(receives)]);
                let cx = &mut Context::new(ch, &ANY_SESSION, &mut rng);
                if receives { SMALL.receiver(cx, &[1], 16) } else { SMALL.sender(cx, &[1], 16) }
            };
            let end = std::thread::scope(|s| {
                s.spawn(move || run(&mut forger, of_receiver).is_ok());
                let end = run(&mut honest, !of_receiver);
                drop(honest);
                end
            });
            assert!(
                matches!(&end, Err(Error::Peer { fault: Fault::Misbehaved, what, .. }) if what.contains(says)),
                "{tag:#x}: {end:?}"
            );
        }
    }
}

#[test]
fn a_sender_that_withholds_tables_gets_no_more_corrections_than_the_bound() {
    let (mut a, mut b) = Channel::pair();
    let security = Security::SemiHonest;
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || {
        let mut rng = Prng::from_seed(&SEEDS[0]);
        let strings = vec![1; (AHEAD + 10) * TABLES_PER_FRAME / 16];
        let end = Nibbles::new(5).receiver(&mut Context::new(&mut b, &ANY_SESSION, &mut rng), &strings, 64);
        done.send(end.map(drop))
    });
    let mut rng = Prng::from_seed(&SEEDS[1]);
    let mut cx = Context::new(&mut a, &ANY_SESSION, &mut rng);
    let sender = extension::Sender::setup(&mut cx, PURPOSE, 5, security).unwrap();
    let corrections = Message::new(0x34, "corrections");
    // The queued frames, and the current one.
    for _ in 0..=AHEAD {
        cx.ch.rx.recv_bytes(corrections, sender.correction_bytes(FRAME)).unwrap();
    }
    // No more arrive while it waits.
    cx.ch.set_patience(Duration::from_millis(300));
    assert!(cx.ch.rx.recv_bytes(corrections, sender.correction_bytes(FRAME)).is_err());
    drop(a);
    let e = result.recv_timeout(Duration::from_secs(30)).unwrap().unwrap_err();
    assert!(e.to_string().contains("the peer closed the connection"), "{e}");
}
