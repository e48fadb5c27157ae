//! Compares the protocol with its definition, at lengths with and without the code, and tests its messages and the
//! errors for invalid ones.

use super::*;
use crate::channel::Channel;
use crate::error::{Error, Fault};
use crate::testing::{Garble, Views, every_bit_is_random, parts, run_pair, split_frames};
use crate::threads::Threads;
use crate::vole::Half;
use crate::vole::Sender as _;
use crate::vole::tests::{Received, SenderOutput, is_a_vole, received, run_vole};
use std::collections::HashSet;

const SILENT: Silent = Silent { k: 2 };

const SESSION: SessionId = SessionId::of([6; 32]);

#[test]
fn it_is_a_vole() {
    // None, one, frames of OTs and their neighbours; without and with the code, also where t does not divide N.
    for n in [0, 1, 63, 64, 65, 200, DIRECT + 1, 6000, 7003] {
        is_a_vole::<Element>(&SILENT, &[n]);
        is_a_vole::<Half>(&SILENT, &[n]);
    }
    is_a_vole::<Element>(&Silent::default(), &[DIRECT + 50]);
    is_a_vole::<Half>(&Silent::default(), &[DIRECT + 50]);
    // Several vectors in sequence.
    is_a_vole::<Half>(&SILENT, &[DIRECT + 1, 65, DIRECT + 1]);
}

#[test]
fn blocks_cover_all_places() {
    for n in [DIRECT + 1, 5000, 12_345, 1 << 20] {
        let shape = Shape::new(&SessionId::of([1; 32]), 0, n);
        let blocks: Vec<Range<usize>> = (0..shape.trees).map(|i| shape.block(i)).collect();
        assert_eq!((blocks[0].start, blocks[shape.trees - 1].end), (0, shape.places));
        assert!(blocks.windows(2).all(|two| two[0].end == two[1].start));
        assert!(blocks.iter().all(|b| (14..=1 << shape.depth).contains(&b.len())), "{n}");
        assert!((2 * n..2 * n + 11).contains(&shape.places));
    }
}

/// The lengths of all frames depend only on n and k.
#[test]
fn lengths_depend_on_n_only() {
    for n in [100, 5000] {
        let views = is_a_vole::<Element>(&SILENT, &[n]);
        let (mut to_sender, mut to_receiver) =
            (vec![(0x32, 32 * 128), (0x33, 32 * 128), (0x35, 32 * 65)], vec![(0x31, 64 * 128)]);
        // With the check and its 128 extra OTs.
        let correction = |n: usize| [(0x34, (n + 128).next_multiple_of(128) / 8 * 64), (0x36, 129 * 16)];
        match n {
            100 => to_sender.extend([correction(64 * 128), correction(36 * 128)].as_flattened()),
            _ => {
                // 547 trees with 18 or 19 places each, and so 5 levels.
                to_sender.extend([correction(FRAME); 8].as_flattened());
                to_sender.extend([correction((547 - 512) * 128), correction(547 * 5)].as_flattened());
                to_receiver.extend([(0x91, 547 * 5 * 32), (0x92, 547 * 16)]);
            }
        }
        let bytes = |frames: &[(u16, usize)]| frames.iter().map(|(_, n)| 6 + n).sum::<usize>();
        assert_eq!(
            SILENT.traffic::<Element>([n].into_iter()),
            (bytes(&to_sender), bytes(&to_receiver)),
            "{n}"
        );
        assert_eq!(views.frames(0), to_receiver, "{n}");
        assert_eq!(views.frames(1), to_sender, "{n}");
    }
}

/// Also tested at the default depth of the OTs' trees.
#[test]
fn traffic_is_as_measured() {
    for lengths in [&[300][..], &[DIRECT], &[DIRECT + 1], &[5000], &[5000, 5000, 300]] {
        let views = is_a_vole::<Element>(&Silent::default(), lengths);
        let traffic = Silent::default().traffic::<Element>(lengths.iter().copied());
        assert_eq!(traffic, (views.0[1].len(), views.0[0].len()), "{lengths:?}");
        let views = is_a_vole::<Half>(&Silent::default(), lengths);
        let traffic = Silent::default().traffic::<Half>(lengths.iter().copied());
        assert_eq!(traffic, (views.0[1].len(), views.0[0].len()), "{lengths:?}");
    }
}

/// Work is counted in the OTs that are made, except those that fill a frame's last 128, and in elements that the code
/// makes.
#[test]
fn work_is_that_of_all_ots_and_of_elements_by_the_code() {
    fn agrees<S: VoleScalar>(lengths: &[usize]) {
        let frames = is_a_vole::<S>(&SILENT, lengths).frames(1);
        // One column per tree of two bits, with the extra OTs of the check.
        let made = frames.iter().filter(|(tag, _)| *tag == 0x34).map(|(_, bytes)| (bytes / 64 - 16) * 8);
        let (frames, made) = (made.clone().count() as u64, made.sum::<usize>() as u64);
        let work = SILENT.work::<S>(lengths.iter().copied());
        let ots = work.count(CorrelatedOt);
        assert!((ots..ots + 128 * frames).contains(&made), "{lengths:?}: {ots}, {made}");
        let by_code: usize = lengths.iter().filter(|n| **n > DIRECT).sum();
        assert_eq!(work.count(VoleElement), by_code as u64, "{lengths:?}");
    }
    for lengths in [&[300][..], &[DIRECT + 1], &[20_000, 300]] {
        agrees::<Element>(lengths);
        agrees::<Half>(lengths);
    }
}

/// Generates one vector, with parties seeded as in [`run_vole`].
fn run_one(session: u8, purpose: &'static str, n: usize) -> (Received<Half>, SenderOutput) {
    run_vole(&SILENT, &SessionId::of([session; 32]), purpose, &[n]).0.remove(0)
}

#[test]
fn sessions_and_purposes_separate() {
    let run = |session, purpose| run_one(session, purpose, DIRECT + 1);
    let first: HashSet<Half> = [run(1, "a"), run(2, "a"), run(1, "b")].iter().map(|r| r.0.a[7]).collect();
    assert_eq!(first.len(), 3);
    // The same randomness gives the same result for any number of threads.
    let (n, threads) = (DIRECT + 1, Threads::new(1).unwrap());
    let (one, _) = run_pair(
        &SessionId::of([1; 32]),
        |cx| {
            let cx = &mut cx.on(&threads);
            received::<Half>(&mut SILENT.receiver(cx, "a")?, cx, n)
        },
        |cx| {
            let cx = &mut cx.on(&threads);
            SILENT.sender(cx, "a")?.next::<Half>(cx, n)
        },
    );
    assert_eq!((&*one.0.c, &*one.1), (&*run(1, "a").0.c, &*run(1, "a").1.b));
}

/// Generates a vector from parties with these seeds, in one session.
fn run_seeded(receiver: u8, sender: u8, n: usize) -> (Received<Half>, SenderOutput, Views) {
    let rng = |seed| Prng::from_seed(&[seed; 32]);
    let ((taken, sent), views) = run_pair(
        &SESSION,
        |cx| {
            let mut party = SILENT.receiver(cx.under(rng(receiver)), "a")?;
            received(&mut party, cx.under(rng(receiver + 100)), n)
        },
        |cx| {
            let mut party = SILENT.sender(cx.under(rng(sender + 50)), "a")?;
            Ok(SenderOutput { b: party.next::<Half>(cx.under(rng(sender + 150)), n)?, delta: *party.delta() })
        },
    );
    (taken, sent, views)
}

/// Whether the lists have no element in common.
fn disjoint<T: Eq + std::hash::Hash>(a: &[T], b: &[T]) -> bool {
    let a: HashSet<&T> = a.iter().collect();
    b.iter().all(|element| !a.contains(element))
}

/// A depends on the receiver's randomness, Delta and B on the sender's; none depends on anything that the other party
/// knows.
#[test]
fn each_partys_vectors_are_fresh_in_every_run() {
    for n in [100, DIRECT + 1] {
        let [one, other_sender, other_receiver] = [(1, 1), (1, 2), (2, 1)].map(|(r, s)| run_seeded(r, s, n));
        assert_eq!(*one.0.a, *other_sender.0.a);
        assert!(disjoint(&one.0.a, &other_receiver.0.a), "{n}: A of two runs");
        assert!(disjoint(&one.1.b, &other_sender.1.b), "{n}: B of two runs");
        assert_eq!(one.1.delta, other_receiver.1.delta);
        let differ = u128::from_le_bytes(one.1.delta) ^ u128::from_le_bytes(other_sender.1.delta);
        // Mean 64 bits, standard deviation 5.7.
        assert!((25..104).contains(&differ.count_ones()), "{differ:x}");
    }
}

/// With the same code and tree keys, equal noise would give equal A, and equal roots equal B. If noise were reused
/// under two codes, the sender could solve for it, with equally many equations and unknowns.
#[test]
fn two_vectors_of_a_setup_share_neither_noise_nor_roots() {
    for n in [100, DIRECT + 1] {
        let ((taken, sent), _) = run_pair(
            &SESSION,
            |cx| {
                let mut party = SILENT.receiver(cx, "a")?;
                let first = received::<Half>(&mut party, cx, n)?;
                // As if it were the first vector again.
                party.0.vectors = 0;
                Ok([first, received::<Half>(&mut party, cx, n)?])
            },
            |cx| {
                let mut party = SILENT.sender(cx, "a")?;
                let first = party.next::<Half>(cx, n)?;
                party.0.vectors = 0;
                Ok([first, party.next::<Half>(cx, n)?])
            },
        );
        assert!(disjoint(&taken[0].a, &taken[1].a), "{n}: A of two vectors");
        assert!(disjoint(&sent[0], &sent[1]), "{n}: B of two vectors");
    }
}

/// Consecutive draws of one generator give other places and other values.
#[test]
fn noise_is_drawn_anew_each_time() {
    let (shape, mut rng) = (Shape::new(&SESSION, 0, 1 << 20), Prng::from_seed(&[1; 32]));
    let (places, values) = shape.noise::<Half>(&mut rng);
    let (other_places, other_values) = shape.noise::<Half>(&mut rng);
    // Each of 546 places is equal with probability 1 in 3841.
    let equal = places.iter().zip(other_places.iter()).filter(|(a, b)| a == b).count();
    assert!(equal < 6, "{equal} places");
    assert!(disjoint(&values, &other_values));
}

/// Two receivers see the sums of the same trees, under different pads and b.
#[test]
fn sums_of_levels_and_of_ends_are_sent_encrypted() {
    let [one, other] = [1, 2].map(|receiver| run_seeded(receiver, 1, DIRECT + 1).2);
    for tag in [0x91, 0x92] {
        let body = |views: &Views| split_frames(&views.0[0]).into_iter().find(|f| f.0 == tag).unwrap().1;
        let [one, other] = [&one, &other].map(body);
        assert!(disjoint(one.as_chunks::<16>().0, other.as_chunks::<16>().0), "{tag:#x}");
        // No two sums in one run are equal.
        assert_eq!(one.as_chunks::<16>().0.iter().collect::<HashSet<_>>().len(), one.len() / 16);
    }
}

#[test]
fn masks_of_levels_are_numbered_over_all_vectors() {
    let mut setup = Setup::new(&SESSION, "a", ());
    assert_eq!([5, 7, 1].map(|levels| setup.number(levels)), [0, 5, 12]);
    // With all other inputs equal, a setup that has already masked other levels uses different masks.
    let sums = |before: usize| {
        let (_, views) = run_pair(
            &SESSION,
            |cx| {
                let mut receiver = SILENT.receiver(cx, "a")?;
                receiver.0.levels = before;
                received::<Half>(&mut receiver, cx, DIRECT + 1).map(drop)
            },
            |cx| {
                let mut sender = SILENT.sender(cx, "a")?;
                sender.0.levels = before;
                sender.next::<Half>(cx, DIRECT + 1).map(drop)
            },
        );
        parts(&views.0[0], 0x91, 16)
    };
    let [first, later] = [0, 7].map(sums);
    assert!(first.iter().zip(&later).all(|(a, b)| a != b));
}

/// With equal randomness, another session or purpose has other base OTs and other pads.
#[test]
fn what_is_sent_belongs_to_one_session_and_purpose() {
    let sent = |session: u8, purpose| {
        let views = run_vole::<Half>(&SILENT, &SessionId::of([session; 32]), purpose, &[DIRECT + 1]).1;
        [0x33, 0x91].map(|tag| parts(&views.0[usize::from(tag == 0x33)], tag, 16))
    };
    let [one, other, another] = [sent(1, "a"), sent(2, "a"), sent(1, "b")];
    for other in [other, another] {
        for (one, other) in one.iter().zip(&other) {
            assert!(one.iter().zip(other).all(|(a, b)| a != b));
        }
    }
}

#[test]
fn places_of_the_noise_are_anywhere_in_their_blocks() {
    let shape = Shape::new(&SESSION, 0, 1 << 20);
    let runs = [1, 2, 3, 4].map(|seed| shape.noise::<Half>(&mut Prng::from_seed(&[seed; 32])).0);
    let mut counts = [0.0; 16];
    for (tree, &place) in runs.iter().flat_map(|places| places.iter().enumerate()) {
        assert!((place as usize) < shape.block(tree).len());
        counts[place as usize * 16 / shape.block(tree).len()] += 1.0;
    }
    let mean = (4 * shape.trees) as f64 / 16.0;
    let chi2: f64 = counts.iter().map(|count| (count - mean).powi(2) / mean).sum();
    // With 15 degrees of freedom, a value above 60 has probability 2e-7.
    assert!(chi2 < 60.0, "{counts:?}");
    // Each of 546 places is equal in two runs, or in neighbouring trees, with probability 1 in 3841.
    let equal = |a: &[u32], b: &[u32]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    assert!(equal(&runs[0], &runs[1]) < 6);
    assert!(equal(&runs[0], &runs[0][1..]) < 6);
}

#[test]
fn values_of_the_noise_and_roots_are_distinct_and_of_full_width() {
    let shape = Shape::new(&SESSION, 0, 1 << 20);
    let noise = |seed| shape.noise::<Element>(&mut Prng::from_seed(&[seed; 32])).1;
    let halves = |seed| shape.noise::<Half>(&mut Prng::from_seed(&[seed; 32])).1;
    let roots = |seed| Element::random(shape.trees, &mut Prng::from_seed(&[seed; 32]));
    let lists = [noise(1), noise(2), roots(3), roots(4)];
    let all: HashSet<Element> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    assert_eq!(all.len(), 4 * shape.trees);
    lists.iter().for_each(|list| every_bit_is_random(list, 128));
    let lists = [halves(1), halves(2)];
    let all: HashSet<Half> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    assert_eq!(all.len(), 2 * shape.trees);
    lists.iter().for_each(|list| every_bit_is_random(list, 64));
}

#[test]
fn each_vector_of_each_session_has_a_code_and_keys_of_its_own() {
    let shapes = |session: u8, purpose| {
        let mut setup = Setup::new(&SessionId::of([session; 32]), purpose, ());
        [setup.shape(DIRECT + 1), setup.shape(DIRECT + 1)]
    };
    let shapes = [shapes(1, "a"), shapes(2, "a"), shapes(1, "b")];
    let mut seen = HashSet::new();
    for shape in shapes.as_flattened() {
        let mut block = [[7; 16]];
        shape.keys.encrypt(&mut block);
        seen.insert(block[0].to_vec());
        // The random places that are read, and the response to a one at the start of the convolution.
        let mut places = vec![Half::default(); shape.n];
        let numbers: Vec<Half> = (0..parity(shape.n) as u64).map(u64::to_le_bytes).collect();
        shape.code.expand(&numbers, &mut places);
        seen.insert(places[..4].concat());
        let mut unit = vec![Half::default(); 200];
        unit[0] = 1u64.to_le_bytes();
        shape.code.convolve(&mut unit, Half::times_x);
        seen.insert(unit[100..110].concat());
    }
    assert_eq!(seen.len(), 3 * 6);
}

/// Runs the receiver against a sender whose frames with this tag are forged.
fn receiver_against(tag: u8, forge: impl Fn(&mut Vec<u8>) + Send + 'static) -> Result<Received<Half>> {
    struct Forge<F>(Box<dyn crate::channel::Sink>, u8, F);
    impl<F: Fn(&mut Vec<u8>) + Send> crate::channel::Sink for Forge<F> {
        fn send(&mut self, mut frame: Vec<u8>) -> Result<()> {
            if frame[0] == self.1 {
                self.2(&mut frame);
            }
            self.0.send(frame)
        }
    }
    let (mut a, b) = Channel::pair();
    let (sink, source) = b.into_halves();
    let mut b = Channel::from_halves(Box::new(Forge(sink, tag, forge)), source);
    std::thread::scope(|s| {
        s.spawn(move || {
            let rng = &mut Prng::from_seed(&[1; 32]);
            let mut cx = Context::new(&mut b, &SESSION, rng);
            SILENT.sender(&mut cx, "a")?.next::<Half>(&mut cx, 5000).map(|_| ())
        });
        let rng = &mut Prng::from_seed(&[2; 32]);
        let mut cx = Context::new(&mut a, &SESSION, rng);
        received(&mut SILENT.receiver(&mut cx, "a")?, &mut cx, 5000)
    })
}

#[test]
fn messages_of_another_length_or_kind_are_refused() {
    let set_length = |frame: &mut Vec<u8>, n: usize| {
        frame.resize(6 + n, 7);
        frame[2..6].copy_from_slice(&(n as u32).to_le_bytes());
    };
    for (tag, name, size) in [(0x91, "sums of the levels", 32), (0x92, "sums of the ends", 16)] {
        let lengths: [fn(usize, usize) -> usize; 4] =
            [|_, _| 0, |n, size| n - size, |n, _| n - 1, |n, size| n + size];
        for length in lengths {
            let e = receiver_against(tag, move |frame| {
                let n = length(frame.len() - 6, size);
                set_length(frame, n);
            });
            let e = e.err().unwrap();
            assert!(
                matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }) && e.to_string().contains(name),
                "{e}"
            );
        }
        let e = receiver_against(tag, |frame| frame[0] ^= 0x40).err().unwrap();
        assert!(
            matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }) && e.to_string().contains(name),
            "{e}"
        );
    }
}

/// Bits flipped in transit cause neither a panic nor an error, as the semi-honest protocol does not check them, but the
/// result is not a VOLE.
#[test]
fn wrong_bits_spoil_the_result_and_nothing_else() {
    let honest = receiver_against(0, |_| ()).unwrap();
    for tag in [0x91, 0x92] {
        let spoilt =
            receiver_against(tag, |frame| frame[6..].iter_mut().for_each(|byte| *byte ^= 0x80)).unwrap();
        assert_eq!(*spoilt.a, *honest.a);
        assert!(*spoilt.c != *honest.c);
    }
}

/// The receiver's only messages belong to the OTs, which are checked.
#[test]
fn wrong_corrections_are_found_out() {
    let (a, b) = Channel::pair();
    let (sink, source) = b.into_halves();
    let mut b = Channel::from_halves(Box::new(Garble { sink, tag: 0x34, at: Some(5) }), source);
    let sent = std::thread::scope(|s| {
        s.spawn(move || {
            // The receiver gets no reason: it only sees that the other side has left.
            let rng = &mut Prng::from_seed(&[2; 32]);
            let mut cx = Context::new(&mut b, &SESSION, rng);
            received::<Half>(&mut SILENT.receiver(&mut cx, "a")?, &mut cx, 5000).map(|_| ())
        });
        let (mut a, rng) = (a, &mut Prng::from_seed(&[1; 32]));
        let mut cx = Context::new(&mut a, &SESSION, rng);
        SILENT.sender(&mut cx, "a")?.next::<Half>(&mut cx, 5000)
    });
    let e = sent.err().unwrap();
    assert!(
        matches!(e, Error::Peer { fault: Fault::Misbehaved, .. })
            && e.to_string().contains("check of the corrections"),
        "{e}"
    );
}

/// The sender does not wait for the receiver to read its sums, as the receiver may be waiting for the sender to read.
#[test]
fn what_the_sender_says_fits_the_channel() {
    for n in [DIRECT + 1, 1 << 21, 1 << 28] {
        let (_, back) = Silent::default().traffic::<Element>(std::iter::once(n));
        assert!(back <= crate::channel::CAPACITY, "{n}: {back}");
    }
}
