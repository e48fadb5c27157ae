//! The protocol against the definition, at lengths with and without the code; what it sends; what a peer may not send.

use super::*;
use crate::error::Error;
use crate::testing::{Garble, run_pair};
use crate::vole::tests::is_a_vole;
use std::collections::HashSet;

const SILENT: Silent = Silent { k: 2 };

#[test]
fn it_is_a_vole() {
    // None, one, frames of OTs and their neighbours; without the code and with it, also where N is no multiple of t.
    for n in [0, 1, 63, 64, 65, 200, DIRECT + 1, 6000, 7003] {
        is_a_vole(&SILENT, n);
    }
    is_a_vole(&Silent::default(), DIRECT + 50);
}

#[test]
fn blocks_cover_all_places() {
    for n in [DIRECT + 1, 5000, 12_345, 1 << 20] {
        let shape = Shape::new(&SessionId::of([1; 32]), "a", n);
        let blocks: Vec<Range<usize>> = (0..shape.trees).map(|i| shape.block(i)).collect();
        assert_eq!((blocks[0].start, blocks[shape.trees - 1].end), (0, shape.places));
        assert!(blocks.windows(2).all(|two| two[0].end == two[1].start));
        assert!(blocks.iter().all(|b| (14..=1 << shape.depth).contains(&b.len())), "{n}");
        assert!((2 * n..2 * n + 11).contains(&shape.places));
    }
}

/// The lengths of all frames, from n and k alone.
#[test]
fn lengths_depend_on_n_only() {
    for n in [100, 5000] {
        let (_, _, views) = is_a_vole(&SILENT, n);
        let (mut to_sender, mut to_receiver) =
            (vec![(0x32, 32 * 128), (0x33, 32 * 128), (0x35, 32 * 65)], vec![(0x31, 64 * 128)]);
        // With the check and its 128 OTs more.
        let correction = |n: usize| [(0x34, (n + 128).next_multiple_of(128) / 8 * 64), (0x36, 129 * 16)];
        match n {
            100 => to_sender.extend([correction(64 * 128), correction(36 * 128)].as_flattened()),
            _ => {
                // 547 trees, with 18 or 19 places each: 5 levels.
                to_sender.extend([correction(FRAME); 8].as_flattened());
                to_sender.extend([correction((547 - 512) * 128), correction(547 * 5)].as_flattened());
                to_receiver.extend([(0x91, 547 * 5 * 32), (0x92, 547 * 16)]);
            }
        }
        let bytes = |frames: &[(u16, usize)]| frames.iter().map(|(_, n)| 6 + n).sum::<usize>();
        assert_eq!(SILENT.traffic(n), (bytes(&to_sender), bytes(&to_receiver)), "{n}");
        assert_eq!(views.frames(0), to_receiver, "{n}");
        assert_eq!(views.frames(1), to_sender, "{n}");
    }
}

/// And at the default depth of the OTs' trees.
#[test]
fn traffic_is_as_measured() {
    for n in [300, 5000] {
        let (_, _, views) = is_a_vole(&Silent::default(), n);
        assert_eq!(Silent::default().traffic(n), (views.0[1].len(), views.0[0].len()), "{n}");
    }
}

#[test]
fn sessions_and_purposes_separate() {
    let run = |session: u8, purpose| {
        let session = SessionId::of([session; 32]);
        run_pair(
            |ch, rng| SILENT.receiver(ch, &session, purpose, DIRECT + 1, rng),
            |ch, rng| SILENT.sender(ch, &session, purpose, DIRECT + 1, rng),
        )
        .0
    };
    let first: HashSet<Element> = [run(1, "a"), run(2, "a"), run(1, "b")].iter().map(|r| r.0.a[7]).collect();
    assert_eq!(first.len(), 3);
    // The same randomness gives the same, however many threads there are.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| run(1, "a"));
    assert_eq!((&*one.0.c, &*one.1.b), (&*run(1, "a").0.c, &*run(1, "a").1.b));
}

/// The receiver's part against a sender whose frames of one kind are forged.
fn receiver_against(tag: u8, forge: impl Fn(&mut Vec<u8>) + Send + 'static) -> Result<Received> {
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
            SILENT
                .sender(&mut b, &SessionId::of([6; 32]), "a", 5000, &mut Prng::from_seed(&[1; 32]))
                .map(|_| ())
        });
        SILENT.receiver(&mut a, &SessionId::of([6; 32]), "a", 5000, &mut Prng::from_seed(&[2; 32]))
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
            assert!(matches!(e, Error::Peer(_)) && e.to_string().contains(name), "{e}");
        }
        let e = receiver_against(tag, |frame| frame[0] ^= 0x40).err().unwrap();
        assert!(matches!(e, Error::Peer(_)) && e.to_string().contains(name), "{e}");
    }
}

/// What is flipped on the way gives no error (nothing checks it: the protocol is semi-honest), nor a panic, but no VOLE.
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

/// The sender's only messages are those of the OTs, which are checked.
#[test]
fn wrong_corrections_are_found_out() {
    let (a, b) = Channel::pair();
    let (sink, source) = b.into_halves();
    let mut b = Channel::from_halves(Box::new(Garble { sink, tag: 0x34, at: Some(5) }), source);
    let sent = std::thread::scope(|s| {
        s.spawn(move || {
            // It is told of nothing: it sees that the other side has left.
            let _ =
                SILENT.receiver(&mut b, &SessionId::of([6; 32]), "a", 5000, &mut Prng::from_seed(&[2; 32]));
        });
        let mut a = a;
        SILENT.sender(&mut a, &SessionId::of([6; 32]), "a", 5000, &mut Prng::from_seed(&[1; 32]))
    });
    let e = sent.err().unwrap();
    assert!(matches!(e, Error::Peer(_)) && e.to_string().contains("check of the corrections"), "{e}");
}
