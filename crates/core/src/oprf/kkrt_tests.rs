use super::*;
use crate::channel::Channel;
use crate::channel::frames;
use crate::error::Fault;
use crate::rng::Prng;
use std::collections::HashSet;

const SESSION: SessionId = SessionId::of([9; 32]);

/// Sets up both roles, and returns each with its end of the channel, in which nothing is left.
fn setup(purpose: &'static str, width: usize) -> ((Sender, Channel), (Receiver, Channel)) {
    setup_in(&SESSION, purpose, width)
}

fn setup_in(
    session: &SessionId,
    purpose: &'static str,
    width: usize,
) -> ((Sender, Channel), (Receiver, Channel)) {
    let (mut a, mut b) = Channel::pair();
    std::thread::scope(|s| {
        let sender = s.spawn(move || {
            let sender = Sender::setup(
                &mut Context::new(&mut a, session, &mut Prng::from_seed(&[1; 32])),
                purpose,
                width,
            );
            (sender.unwrap(), a)
        });
        let receiver = Receiver::setup(
            &mut Context::new(&mut b, session, &mut Prng::from_seed(&[2; 32])),
            purpose,
            width,
        );
        (sender.join().unwrap(), (receiver.unwrap(), b))
    })
}

fn inputs(n: usize) -> Vec<Input> {
    (0..n).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

fn codes(n: usize) -> Secrets<Code> {
    Coder::new(&SESSION, "code").codes(&inputs(n))
}

#[test]
fn both_have_the_same_function_and_it_is_another_one_elsewhere() {
    let codes = codes(FRAME + 2);
    for width in [128, 424, MAX_WIDTH] {
        let ((mut sender, mut a), (mut receiver, mut b)) = setup("a", width);
        let (before, mut all) = (b.bytes_sent(), HashSet::new());
        // Nothing, sizes around a block of 128 rows, a whole frame, and several frames in a row.
        let sizes = [1, 127, 0, 128, 129, FRAME, 2];
        for n in sizes {
            let outputs = receiver.evaluate(&mut b.tx, &codes[..n]).unwrap();
            let keys = sender.keys(&mut a.rx, n).unwrap();
            let same = keys.evaluate_all(codes[..n].iter().enumerate());
            assert!(*outputs == *same, "{width} {n}");
            let other = keys.evaluate_all(codes[1..=n].iter().enumerate());
            assert_eq!([outputs.len(), other.len()], [n; 2]);
            // The same input in another frame has another output.
            assert!(outputs.iter().chain(other.iter()).all(|output| all.insert(*output)), "{width} {n}");
            for j in [0, n / 2, n.saturating_sub(1)].into_iter().filter(|_| n > 0) {
                assert_eq!(keys.evaluate(j, &codes[j]), outputs[j]);
            }
        }
        let bytes: usize = sizes.iter().map(|&n| 6 + receiver.correction_bytes(n)).sum();
        assert_eq!(b.bytes_sent() - before, bytes as u64);
        assert_eq!(receiver.correction_bytes(129), width * 256 / 8);
        assert_eq!(sender.correction_bytes(129), width * 256 / 8);
        assert_eq!(a.bytes_received(), b.bytes_sent());
    }
}

/// The protocol, bit by bit, from its definition.
#[test]
fn corrections_rows_and_outputs_are_those_of_the_definition() {
    let (n, width) = (200, 136);
    let codes = codes(n);
    let ((mut sender, mut a), (mut receiver, mut b)) = setup("a", width);
    let hash = Domain::new(&part(&SESSION, "a"), "KKRT output");
    for frame in 0..2 {
        // The bits of the streams for this frame of 256 instances: 2 blocks.
        let stream = |i: usize, cipher: &Aes128| {
            let mut bytes = [0; 32];
            cipher.ctr(((i as u128) << 64) + 2 * frame, &mut bytes);
            move |j: usize| bytes[j / 8] >> (j % 8) & 1
        };
        let outputs = receiver.evaluate(&mut b.tx, &codes).unwrap();
        let corrections = a.rx.recv_bytes(CORRECTIONS, receiver.correction_bytes(n)).unwrap();
        b.tx.send_bytes(CORRECTIONS, &corrections).unwrap();
        let keys = sender.keys(&mut a.rx, n).unwrap();
        let mut t0 = vec![Row::default(); n];
        for i in 0..width {
            let streams = receiver.streams[i].each_ref().map(|cipher| stream(i, cipher));
            assert_eq!(
                stream(i, &sender.streams[i])(j_of(i)),
                streams[usize::from(bit(&sender.s, i))](j_of(i))
            );
            for j in 0..256 {
                let code = if j < n { bit(&codes[j], i) } else { 0 };
                let u = corrections[i * 32 + j / 8] >> (j % 8) & 1;
                assert_eq!(u, streams[0](j) ^ streams[1](j) ^ code, "{i} {j}");
                if j < n {
                    t0[j].as_flattened_mut()[i / 8] |= streams[0](j) << (i % 8);
                    assert_eq!(bit(&keys.rows[j], i), streams[0](j) ^ code & bit(&sender.s, i), "{i} {j}");
                }
            }
        }
        for j in 0..n {
            assert!((width..512).all(|i| bit(&keys.rows[j], i) == 0));
            let key: [u8; 32] = hash.hash(&[&(frame as u64).to_le_bytes()]);
            let mut message = t0[j].as_flattened().to_vec();
            message[60..].copy_from_slice(&(j as u32).to_le_bytes());
            assert_eq!(outputs[j], *blake3::keyed_hash(&key, &message).as_bytes());
        }
    }
    assert!((width..512).all(|i| bit(&sender.s, i) == 0));
    assert!((30..106).contains(&(0..width).filter(|&i| bit(&sender.s, i) == 1).count()));
}

/// With s the receiver could evaluate F everywhere. s must differ between senders, and between runs of one
/// sender.
#[test]
fn every_setup_has_a_random_s() {
    let of_seed = |seed: u8| {
        let (mut a, mut b) = Channel::pair();
        std::thread::scope(|scope| {
            let receiver = scope.spawn(move || {
                let rng = &mut Prng::from_seed(&[2; 32]);
                for _ in 0..2 {
                    Receiver::setup(&mut Context::new(&mut b, &SESSION, rng), "a", 424).map(drop).unwrap();
                }
            });
            let rng = &mut Prng::from_seed(&[seed; 32]);
            let s = [(); 2]
                .map(|()| *Sender::setup(&mut Context::new(&mut a, &SESSION, rng), "a", 424).unwrap().s);
            receiver.join().unwrap();
            s
        })
    };
    let all = [of_seed(1), of_seed(3)].concat();
    let ones = |s: &Row| s.as_flattened().iter().map(|byte| byte.count_ones()).sum::<u32>();
    for (i, s) in all.iter().enumerate() {
        // Six standard deviations of 424 bits.
        assert!(ones(s).abs_diff(212) < 62, "{}", ones(s));
        for other in &all[i + 1..] {
            let mut sum = *s;
            xor(sum.as_flattened_mut(), other.as_flattened());
            assert!(ones(&sum).abs_diff(212) < 62, "{}", ones(&sum));
        }
    }
}

/// Columns and frames have separate counters, so that no two streams share a block, for all keys.
#[test]
fn no_two_columns_and_no_two_frames_share_a_counter() {
    let mut common = Common::new(&SESSION, "a", Threads::global());
    let mut seen = HashSet::new();
    for n in [1, 129, FRAME, 300] {
        let first = common.next(n).0;
        for i in [0, 1, 127, 128, 423, MAX_WIDTH - 1] {
            let blocks = (0..column_bytes(n) as u128 / 16).map(|block| counter(i, first) + block);
            assert!(blocks.into_iter().all(|block| seen.insert(block)), "{n} {i}");
        }
    }
}

/// An arbitrary instance, at which the streams of a column are compared.
fn j_of(column: usize) -> usize {
    column * 7 % 256
}

#[test]
fn a_code_is_the_function_of_cm20_block_by_block() {
    let keys: [u8; 80] = Domain::new(&part(&SESSION, "code"), "KKRT keys of the code").hash(&[]);
    let g = |i: usize, x: &[u8]| {
        let mut block = [<[u8; 16]>::try_from(x).unwrap()];
        Aes128::new(keys[16 * i..][..16].try_into().unwrap()).encrypt(&mut block);
        block[0]
    };
    for n in [0, 1, BATCH, BATCH + 1] {
        let (codes, inputs) = (codes(n), inputs(n));
        assert_eq!(codes.len(), n);
        for (code, x) in codes.iter().zip(&inputs) {
            let mut mac = g(0, &x[..16]);
            xor(&mut mac, &x[16..]);
            assert_eq!(*code, [1, 2, 3, 4].map(|i| g(i, &mac)));
        }
    }
    let other = |session, purpose| Coder::new(&session, purpose).codes(&inputs(1))[0];
    assert_ne!(other(SESSION, "code"), other(SessionId::of([8; 32]), "code"));
    assert_ne!(other(SESSION, "code"), other(SESSION, "other"));
}

#[test]
fn codes_of_different_inputs_are_far_apart() {
    let codes = codes(100);
    for (i, a) in codes.iter().enumerate() {
        for b in &codes[i + 1..] {
            let (a, b) = (a.as_flattened(), b.as_flattened());
            let distance: u32 = a[..53].iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
            // A distance below 128 has probability 2^-54 per pair.
            assert!(distance >= 128, "{distance}");
        }
    }
}

#[test]
fn what_the_receiver_knows_gives_no_other_output() {
    // The receiver has t0_j and the codes, but not s. Neither adding nothing nor adding the difference of the
    // codes gives F_j(x).
    let ((mut sender, mut a), (mut receiver, mut b)) = setup("a", 424);
    let codes = codes(301);
    receiver.evaluate(&mut b.tx, &codes[..300]).unwrap();
    let keys = sender.keys(&mut a.rx, 300).unwrap();
    for j in 0..300 {
        let t0 = keys.block(j, &codes[j]);
        let elsewhere = keys.block(j, &codes[300]);
        // Within the 53 bytes of the width.
        let distance = |a: &Row, b: &Row| {
            let (a, b) = (a.as_flattened(), b.as_flattened());
            a[..53].iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
        };
        // About a quarter of 424 bits: those in which the codes differ and s is 1 (or 0). 9 standard deviations.
        assert!(distance(&t0, &elsewhere).abs_diff(106) < 80, "{j}");
        let mut guess = t0;
        xor(guess.as_flattened_mut(), codes[j].as_flattened());
        xor(guess.as_flattened_mut(), codes[300].as_flattened());
        assert!(distance(&guess, &elsewhere).abs_diff(106) < 80, "{j}");
    }
}

#[test]
fn another_purpose_or_session_gives_other_outputs() {
    let codes = codes(100);
    let run = |purpose| {
        let (_sender, (mut receiver, mut b)) = setup(purpose, 424);
        receiver.evaluate(&mut b.tx, &codes).unwrap()
    };
    let [one, other, same] = [run("a"), run("b"), run("a")];
    assert!(one.iter().zip(other.iter()).all(|(p, q)| p != q) && *one == *same);
    let hash = |session: u8, purpose| {
        Common::new(&SessionId::of([session; 32]), purpose, Threads::global()).next(0).1.hash::<32>(&[])
    };
    assert!(hash(1, "a") != hash(2, "a") && hash(1, "a") != hash(1, "b"));
}

/// All else being equal, another session or purpose gives other seeds.
#[test]
fn base_ots_belong_to_one_purpose_and_session() {
    let streams = |session: u8, purpose| {
        let (_, (receiver, _)) = setup_in(&SessionId::of([session; 32]), purpose, 128);
        receiver
            .streams
            .iter()
            .flatten()
            .map(|stream| {
                let mut block = [0; 16];
                stream.ctr(0, &mut block);
                block
            })
            .collect::<Vec<_>>()
    };
    let all = [streams(1, "a"), streams(2, "a"), streams(1, "b")].concat();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 3 * 2 * 128);
}

#[test]
fn frames_share_neither_streams_nor_hash() {
    let codes = codes(1000);
    let ((mut sender, mut a), (mut receiver, mut b)) = setup("a", 424);
    let bytes = receiver.correction_bytes(1000);
    // The same inputs twice: if a stream were reused, the corrections would be equal.
    let [one, other] = [(); 2].map(|()| receiver.evaluate(&mut b.tx, &codes).unwrap());
    let [first, second] = [(); 2].map(|()| a.rx.recv_bytes(CORRECTIONS, bytes).unwrap());
    assert!(one.iter().zip(other.iter()).all(|(p, q)| p != q));
    let differ: u32 = first.iter().zip(&second).map(|(a, b)| (a ^ b).count_ones()).sum();
    // 434,176 bits: five standard deviations are 1,648.
    assert!(differ.abs_diff(217_088) < 1_648, "{differ}");
    assert_eq!((receiver.common.block, receiver.common.frame), (16, 2));
    // Equal rows of different frames or instances have different outputs.
    b.tx.send_bytes(CORRECTIONS, &first).unwrap();
    let keys = sender.keys(&mut a.rx, 1000).unwrap();
    b.tx.send_bytes(CORRECTIONS, &second).unwrap();
    let mut later = sender.keys(&mut a.rx, 1000).unwrap();
    later.rows = Secrets::from(vec![keys.rows[0]; 1000]);
    let mut outputs: HashSet<Output> =
        later.evaluate_all((0..1000).map(|j| (j, &codes[0]))).iter().copied().collect();
    outputs.insert(keys.evaluate(0, &codes[0]));
    assert_eq!(outputs.len(), 1001);
    assert_eq!((sender.common.block, sender.common.frame), (16, 2));
}

#[test]
fn the_bytes_the_receiver_sends_look_alike_for_all_inputs() {
    for code in [[[0; 16]; 4], [[0xff; 16]; 4]] {
        let ((_, mut a), (mut receiver, mut b)) = setup("a", 424);
        receiver.evaluate(&mut b.tx, &[code; 1000]).unwrap();
        let corrections = a.rx.recv_bytes(CORRECTIONS, receiver.correction_bytes(1000)).unwrap();
        let ones: u32 = corrections.iter().map(|b| b.count_ones()).sum();
        assert!(ones.abs_diff(217_088) < 1_648, "{ones}");
    }
}

#[test]
fn corrections_that_are_too_short_or_something_else_are_refused() {
    let ((mut sender, mut a), (receiver, mut b)) = setup("a", 424);
    let right = receiver.correction_bytes(200);
    for (tag, len) in [(0x75, 0), (0x75, right - 1), (0x75, right + 1), (0x34, right)] {
        b.tx.send_bytes(Message::new(tag, "forged"), &vec![0; len]).unwrap();
        let e = sender.keys(&mut a.rx, 200).err().unwrap();
        assert!(
            matches!(&e, Error::Peer { fault: Fault::Misbehaved, what, .. } if what.contains("KKRT")),
            "{e}"
        );
        // Discard the rest of the forged message.
        (a, b) = Channel::pair();
    }
    // Wrong corrections give wrong outputs, to the party that sent them.
    b.tx.send_bytes(CORRECTIONS, &vec![0x5a; right]).unwrap();
    assert_eq!(sender.keys(&mut a.rx, 200).unwrap().rows.len(), 200);
    b.tx.send_bytes(CORRECTIONS, &[]).unwrap();
    assert!(sender.keys(&mut a.rx, 0).unwrap().evaluate_all(std::iter::empty()).is_empty());
}

#[test]
fn a_width_out_of_range_is_an_error_before_anything_is_sent() {
    for width in [0, 120, 129, 488, usize::MAX] {
        // The peer is gone, so a setup that gets further fails with a different error.
        let mut ch = Channel::pair().0;
        let rng = &mut Prng::from_seed(&[1; 32]);
        assert!(matches!(
            Sender::setup(&mut Context::new(&mut ch, &SESSION, rng), "a", width),
            Err(Error::Bug(_))
        ));
        assert!(matches!(
            Receiver::setup(&mut Context::new(&mut ch, &SESSION, rng), "a", width),
            Err(Error::Bug(_))
        ));
        assert_eq!(ch.bytes_sent(), 0);
    }
}

#[test]
fn frames_go_both_ways_at_once_while_either_party_is_sender() {
    // Each party is the sender of one OPRF and the receiver of another, over a channel that buffers 1 MiB.
    let (codes, n, width) = (codes(3 * FRAME), 11 * FRAME / 4, 440);
    let (mut a, mut b) = Channel::pair();
    let party = |ch: &mut Channel, first: bool| {
        let rng = &mut Prng::from_seed(&[u8::from(first); 32]);
        let (mut sender, mut receiver) = match first {
            true => {
                let sender = Sender::setup(&mut Context::new(ch, &SESSION, rng), "a", width).unwrap();
                (sender, Receiver::setup(&mut Context::new(ch, &SESSION, rng), "b", width).unwrap())
            }
            false => {
                let receiver = Receiver::setup(&mut Context::new(ch, &SESSION, rng), "a", width).unwrap();
                (Sender::setup(&mut Context::new(ch, &SESSION, rng), "b", width).unwrap(), receiver)
            }
        };
        let evaluated = ch.duplex(
            |tx| {
                let outputs =
                    codes[..n].chunks(FRAME).map(|codes| Ok(receiver.evaluate(tx, codes)?.to_vec()));
                outputs.collect::<Result<Vec<_>>>()
            },
            |rx| {
                let mut codes = codes.chunks(FRAME);
                let mut outputs = |n: usize| {
                    let keys = sender.keys(rx, n)?;
                    Ok(keys.evaluate_all(codes.next().unwrap()[..n].iter().enumerate()).to_vec())
                };
                frames(n, FRAME).map(&mut outputs).collect::<Result<Vec<_>>>()
            },
        );
        evaluated.unwrap()
    };
    let (ours, theirs) = std::thread::scope(|s| {
        let theirs = s.spawn(|| party(&mut b, false));
        (party(&mut a, true), theirs.join().unwrap())
    });
    assert!(ours.0 == theirs.1 && ours.1 == theirs.0 && ours.0 != ours.1);
    assert_eq!(ours.0.concat().len(), n);
}

/// 512-bit numbers, little-endian.
type Wide = [u64; 8];

fn plus(a: &Wide, b: &Wide) -> Wide {
    let mut carry = 0;
    std::array::from_fn(|i| {
        let sum = u128::from(a[i]) + u128::from(b[i]) + carry;
        carry = sum >> 64;
        sum as u64
    })
}

/// The number of bit strings with fewer than 128 ones, for each width up to the largest, by Pascal's triangle.
fn exact() -> Vec<Wide> {
    let mut line = vec![Wide::default(); 128];
    line[0][0] = 1;
    let mut sums = Vec::new();
    for _ in 0..=MAX_WIDTH {
        sums.push(line.iter().fold(Wide::default(), |sum, term| plus(&sum, term)));
        for k in (1..128).rev() {
            line[k] = plus(&line[k], &line[k - 1]);
        }
    }
    sums
}

#[test]
fn the_width_is_the_smallest_by_the_exact_computation() {
    let sums = exact();
    let bits = |sum: &Wide| 512 - sum.iter().rev().fold((0, true), leading).0;
    fn leading((zeros, all): (u32, bool), limb: &u64) -> (u32, bool) {
        if all { (zeros + limb.leading_zeros(), *limb == 0) } else { (zeros, false) }
    }
    assert_eq!((bits(&sums[0]), bits(&sums[127]), bits(&sums[128])), (1, 128, 128));
    // With 2^p pairs: sum / 2^width <= 2^-(exponent + p), where the sum is not a power of two.
    for (exponent, p) in [(40, 0), (40, 8), (40, 30), (40, 43), (42, 27), (1, 0), (80, 3)] {
        let enough = |w: &usize| bits(&sums[*w]) + exponent + p <= *w as u32;
        let expected = (128..=MAX_WIDTH).step_by(8).find(enough).unwrap();
        assert_eq!(width(exponent, 1 << p).unwrap(), expected, "{exponent} {p}");
    }
    assert!(matches!(width(40, 1 << 44), Err(Error::Usage(_))));
    assert_eq!(width(40, 0).unwrap(), width(40, 1).unwrap());
}

#[test]
fn the_widths_of_krtw19_table_2() {
    // The table uses KKRT16's widths for intersection without stating their rule. 21 or 22 pairs for each of n
    // items give the whole row; the other numbers tested do not.
    let row = [424, 432, 432, 440, 440, 448, 448, 448];
    let widths = |pairs: usize| (4..=11).map(|i| width(40, pairs << (2 * i)).unwrap()).collect::<Vec<_>>();
    assert_eq!((widths(21), widths(22)), (row.to_vec(), row.to_vec()));
    assert!([1, 3, 20, 23, 64].iter().all(|&pairs| widths(pairs) != row));
    // The union evaluates each of its beta (m + 1) instances at the m + 1 items of the bin. With the table's
    // beta and m that is 176 to 247 pairs per item, and 8 more bits except at n = 2^10, 2^14 and 2^18.
    let beta = [0.043, 0.055, 0.05, 0.053, 0.058, 0.052, 0.06, 0.051];
    let m = [63, 58, 63, 62, 60, 65, 61, 68];
    let union = (0..8).map(|i| {
        let bins = (beta[i] * f64::from(1 << (8 + 2 * i as u32))).ceil() as usize;
        width(40, bins * (m[i] + 1) * (m[i] + 1)).unwrap()
    });
    assert_eq!(union.collect::<Vec<_>>(), [432, 432, 440, 440, 448, 448, 456, 456]);
}
