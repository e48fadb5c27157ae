use super::*;
use crate::context::Context;
use crate::error::Fault;
use crate::hash::SessionId;
use crate::ot::Security;
use crate::rng::Prng;
use crate::testing::{Cut, run_pair};
use std::collections::HashSet;
use std::sync::mpsc;
use std::time::Duration;

type Both = ((Sender, Channel), (Receiver, Channel));

/// Both roles, set up with a separate channel each.
fn setup() -> Both {
    let (mut a, mut b) = Channel::pair();
    let (session, security) = (SessionId::of([4; 32]), Security::SemiHonest);
    std::thread::scope(|s| {
        let sender = s.spawn(move || {
            let rng = &mut Prng::from_seed(&[1; 32]);
            (Sender::setup(&mut Context::new(&mut a, &session, rng), "a", 6, security).unwrap(), a)
        });
        let rng = &mut Prng::from_seed(&[2; 32]);
        let receiver = Receiver::setup(&mut Context::new(&mut b, &session, rng), "a", 6, security).unwrap();
        (sender.join().unwrap(), (receiver, b))
    })
}

#[test]
fn every_row_is_under_its_own_pad_and_counter() {
    let (n, width) = (20, 40);
    let streams = |first: usize, pads: &[Pad]| {
        let mut rows = vec![0; pads.len() * width];
        crypt(&mut rows, width, first, pads, |_, _| ());
        rows
    };
    // Even under a single pad, rows of two frames have no block in common, including truncated blocks.
    let rows = [streams(0, &vec![[5; 16]; n]), streams(n, &vec![[5; 16]; n])].concat();
    let blocks: HashSet<&[u8]> = rows.chunks(width).flat_map(|row| row.chunks(16)).collect();
    assert_eq!(blocks.len(), 2 * n * 3);
    // Changing the pad of one row changes every block of this row, and no other.
    let pads: Vec<Pad> = (0..n as u8).map(|i| [i; 16]).collect();
    let rows = streams(0, &pads);
    for at in 0..n {
        let mut others = pads.clone();
        others[at][15] ^= 1;
        let others = streams(0, &others);
        for (i, (row, other)) in rows.chunks(width).zip(others.chunks(width)).enumerate() {
            let blocks = row.chunks(16).zip(other.chunks(16)).map(|(a, b)| a == b);
            assert_eq!(blocks.collect::<Vec<_>>(), [i != at; 3], "{at} {i}");
        }
    }
}

#[test]
fn rows_of_no_bytes_are_an_error_before_anything_is_sent() {
    let ((mut sender, mut a), (mut receiver, mut b)) = setup();
    let before = [a.bytes_sent(), b.bytes_sent()];
    let results = [
        send(&mut a, &mut sender, 0, true, 0, |_, _| ()),
        send_pairs(&mut a, &mut sender, 0, 0, |_, _, _| ()),
        receive(&mut b, &mut receiver, &[], true, 0, |_, _| ()),
        receive_chosen(&mut b, &mut receiver, &[], 0, |_| ()),
    ];
    assert!(results.iter().all(|result| matches!(result, Err(Error::Bug(_)))), "{results:?}");
    assert_eq!([a.bytes_sent(), b.bytes_sent()], before);
}

#[test]
fn more_frames_than_may_wait_arrive() {
    let ((mut sender, mut a), (mut receiver, mut b)) = setup();
    let choices = vec![true; (AHEAD + 2) * FRAME + 1];
    let (n, mut got) = (choices.len(), 0);
    let result = std::thread::scope(|s| {
        s.spawn(move || send(&mut a, &mut sender, n, true, 1, |i, row| row[0] = i as u8).unwrap());
        receive(&mut b, &mut receiver, &choices, true, 1, |_, row| {
            assert_eq!(row[0], got as u8);
            got += 1;
        })
    });
    assert_eq!((result, got), (Ok(()), n));
}

#[test]
fn a_sender_that_withholds_rows_gets_no_more_corrections_than_the_bound() {
    let ((sender, mut a), (mut receiver, mut b)) = setup();
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || {
        let choices = vec![true; (AHEAD + 10) * FRAME];
        done.send(receive(&mut b, &mut receiver, &choices, true, 1, |_, _| ()))
    });
    let mut corrections =
        || a.rx.recv_bytes(Message::new(0x34, "corrections"), sender.correction_bytes(FRAME));
    // The waiting frames, and the current one.
    (0..=AHEAD).for_each(|_| drop(corrections().unwrap()));
    // No more frames arrive, however long it waits.
    a.set_patience(Duration::from_millis(300));
    let more = a.rx.recv_bytes(Message::new(0x34, "corrections"), sender.correction_bytes(FRAME));
    assert!(more.is_err());
    // When the sender leaves, both halves end.
    drop(a);
    let e = result.recv_timeout(Duration::from_secs(30)).unwrap().unwrap_err();
    assert!(e.to_string().contains("the peer closed the connection"), "{e}");
}

#[test]
fn what_cut_the_connection_is_what_is_reported() {
    // The rows arrive before the corrections are sent, so that one half waits for the pads of the other.
    let ((_, mut a), (mut receiver, b)) = setup();
    a.tx.send_bytes(ROWS, &[0; 5]).unwrap();
    let (sink, source) = b.into_halves();
    let mut b = Channel::from_halves(Box::new(Cut { sink, after: 0 }), source);
    let result = receive(&mut b, &mut receiver, &[true; 5], true, 1, |_, _| ());
    assert_eq!(result, Err(Cut::error()));
}

#[test]
fn exactly_the_wanted_rows_arrive_and_the_others_are_noise() {
    let mut rng = Prng::from_seed(&[1; 32]);
    // Widths below and above a block, and one at which a frame holds only a few rows.
    for (n, width) in [(0, 5), (1, 1), (FRAME - 1, 3), (FRAME + 1, 17), (2 * FRAME + 5, 2), (9, 65_539)] {
        for wanted in [false, true] {
            let choices: Vec<bool> = (0..n).map(|_| rng.below(2) == 1).collect();
            let row = |i: usize| (0..width).map(|b| (i + 7 * b) as u8).collect::<Vec<u8>>();
            let (mut a, mut b) = Channel::pair();
            let session = SessionId::of([4; 32]);
            let (mut got, mut noise, mut alike) = (Vec::new(), 0, 0u64);
            std::thread::scope(|s| {
                s.spawn(|| {
                    let mut ot = Sender::setup(
                        &mut Context::new(&mut a, &session, &mut Prng::from_seed(&[1; 32])),
                        "a",
                        6,
                        Security::SemiHonest,
                    )
                    .unwrap();
                    send(&mut a, &mut ot, n, wanted, width, |i, out| out.copy_from_slice(&row(i))).unwrap();
                });
                let mut ot = Receiver::setup(
                    &mut Context::new(&mut b, &session, &mut Prng::from_seed(&[2; 32])),
                    "a",
                    6,
                    Security::SemiHonest,
                )
                .unwrap();
                let mut i = 0;
                receive(&mut b, &mut ot, &choices, wanted, width, |is_wanted, bytes| {
                    match is_wanted {
                        true => got.push(bytes.to_vec()),
                        false => {
                            noise += width as u64;
                            alike += bytes.iter().zip(row(i)).filter(|(a, b)| **a == *b).count() as u64;
                        }
                    }
                    i += 1;
                })
                .unwrap();
            });
            let expected: Vec<_> = (0..n).filter(|&i| choices[i] == wanted).map(row).collect();
            assert!(got == expected, "{n} {width} {wanted}");
            // A byte is right by chance with probability 1/256; the bound is six standard deviations above the mean.
            let mean = noise as f64 / 256.0;
            assert!(
                alike as f64 <= mean + 6.0 * mean.sqrt() + 6.0,
                "{n} {width} {wanted}: {alike} of {noise}"
            );
        }
    }
}

/// Transfers `n` pairs of rows. Returns the rows that the receiver took, and the tag and size of each frame that it
/// received.
fn pairs(security: Security, choices: &[bool], width: usize) -> (Vec<Vec<u8>>, Vec<(u16, usize)>) {
    let (n, session) = (choices.len(), SessionId::of([4; 32]));
    let ((_, got), views) = run_pair(
        &session,
        |cx| {
            let mut ot = Sender::setup(cx, "a", 6, security)?;
            send_pairs(cx.ch, &mut ot, n, width, |i, choice, out| out.copy_from_slice(&row(i, choice, width)))
        },
        |cx| {
            let mut ot = Receiver::setup(cx, "a", 6, security)?;
            let mut got = Vec::new();
            receive_chosen(cx.ch, &mut ot, choices, width, |row| got.push(row.to_vec()))?;
            Ok(got)
        },
    );
    (got, views.frames(1))
}

fn row(i: usize, choice: bool, width: usize) -> Vec<u8> {
    (0..width).map(|b| (i + 7 * b) as u8 ^ if choice { 0x55 } else { 0 }).collect()
}

#[test]
fn of_each_pair_the_chosen_row_arrives() {
    let mut rng = Prng::from_seed(&[1; 32]);
    for security in [Security::SemiHonest, Security::Malicious] {
        for (n, width) in [(0, 5), (1, 1), (FRAME - 1, 3), (FRAME + 1, 17), (2 * FRAME + 5, 2), (9, 65_539)] {
            let choices: Vec<bool> = (0..n).map(|_| rng.below(2) == 1).collect();
            let (got, frames) = pairs(security, &choices, width);
            let expected: Vec<_> = (0..n).map(|i| row(i, choices[i], width)).collect();
            assert!(got == expected, "{n} {width} {security:?}");
            let rows: Vec<usize> = frames.iter().filter(|f| f.0 == 0x37).map(|f| f.1).collect();
            assert_eq!(rows.iter().sum::<usize>(), 2 * n * width);
            assert!(rows.iter().all(|&bytes| bytes <= ROW_BYTES), "{rows:?}");
            // Lengths depend only on the number of pairs.
            assert_eq!(pairs(security, &vec![false; n], width).1, frames);
        }
    }
}

#[test]
fn the_row_that_was_not_chosen_is_noise_under_the_pad_of_the_other() {
    // If a receiver decrypts the wrong half, a byte is right only by chance.
    let (n, width, session) = (500, 40, SessionId::of([4; 32]));
    let ((_, alike), _) = run_pair(
        &session,
        |cx| {
            let mut ot = Sender::setup(cx, "a", 6, Security::Malicious)?;
            send_pairs(cx.ch, &mut ot, n, width, |i, choice, out| out.copy_from_slice(&row(i, choice, width)))
        },
        |cx| {
            let mut ot = Receiver::setup(cx, "a", 6, Security::Malicious)?;
            let pads = ot.pads(&mut cx.ch.tx, &vec![false; n])?;
            let mut bytes = cx.ch.rx.recv_bytes(PAIRS, 2 * n * width)?;
            let (zeros, ones) = bytes.split_at_mut(n * width);
            crypt(zeros, width, 0, &pads, |_, _| ());
            crypt(ones, width, 0, &pads, |_, _| ());
            let alike = |rows: &[u8], choice| {
                let rows = rows.chunks_exact(width).enumerate();
                rows.flat_map(|(i, r)| {
                    r.iter().zip(row(i, choice, width)).map(|(a, b)| *a == b).collect::<Vec<_>>()
                })
                .filter(|&same| same)
                .count()
            };
            Ok([alike(zeros, false), alike(ones, true)])
        },
    );
    // Of 20,000 bytes, 78 are equal by chance; six standard deviations are 53.
    assert!(alike[0] == n * width && alike[1] < 132, "{alike:?}");
}

#[test]
fn a_short_or_long_frame_of_pairs_is_an_error_that_names_it() {
    for bytes in [0, 2 * 3 * 5 - 1, 2 * 3 * 5 + 1] {
        let (mut a, mut b) = Channel::pair();
        std::thread::scope(|s| {
            s.spawn(|| {
                let rng = &mut Prng::from_seed(&[1; 32]);
                let mut ot = Sender::setup(
                    &mut Context::new(&mut a, &SessionId::of([4; 32]), rng),
                    "a",
                    6,
                    Security::SemiHonest,
                )
                .unwrap();
                ot.pads(&mut a.rx, 3).unwrap();
                a.tx.send_bytes(PAIRS, &vec![0; bytes]).unwrap();
            });
            let rng = &mut Prng::from_seed(&[2; 32]);
            let mut ot = Receiver::setup(
                &mut Context::new(&mut b, &SessionId::of([4; 32]), rng),
                "a",
                6,
                Security::SemiHonest,
            )
            .unwrap();
            let e = receive_chosen(&mut b, &mut ot, &[true; 3], 5, |_| ()).unwrap_err();
            assert!(
                matches!(&e, Error::Peer { fault: Fault::Misbehaved, what, .. } if what.contains("both rows of each pair")),
                "{e}"
            );
        });
    }
}
