use super::*;
use crate::channel::Channel;
use crate::channel::{Sink, Source};
use crate::error::{Error, Fault};
use crate::hash::SessionId;
use crate::hashing::Bins;
use crate::rng::Prng;
use crate::testing::{SEEDS, Views, run_pair, sizes, split_frames, with_frames};
use std::collections::HashSet;

pub(super) const SESSION: SessionId = SessionId::of([8; 32]);
pub(super) const COMPARISONS: [Comparison; 2] = [Comparison::Private, Comparison::Plain];

pub(super) fn items(from: usize, n: usize) -> Vec<Input> {
    (from..from + n).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

/// One bit per item of X, in order, as the tests return it. Also checks the contents of the slots.
fn bits_by_item(plan: &Binning, y: &[Input], x: &[Input]) -> (Vec<bool>, Views) {
    let ((bits, order), views) =
        run_pair(&SESSION, |cx| receiver(cx, plan, y), |cx| sender(cx, plan, x, x.len()));
    assert_eq!([bits.len(), order.len()], [plan.slots(); 2]);
    let mut by_item = vec![None; x.len()];
    for (&item, &bit) in order.iter().zip(bits.iter()) {
        match item {
            BOTTOM => assert!(bit, "the bottom item is in every bin"),
            item => assert!(by_item[item as usize].replace(bit).is_none()),
        }
    }
    (by_item.into_iter().map(Option::unwrap).collect(), views)
}

#[test]
fn the_bits_are_those_of_the_plain_computation() {
    let others = vec![(57, 33), (57, 33), (2, 1), (255, 256), (900, 3), (3, 5000)];
    for (i, (n_y, n_x)) in [sizes(40), others].concat().into_iter().enumerate() {
        // All or some items in common, and either comparison.
        let common = n_y.min(n_x) / (1 + i / 2 % 2);
        let (y, x) = (items(0, n_y), items(n_y - common, n_x));
        let plan = Binning::new(COMPARISONS[i % 2], n_y, n_x, 20).unwrap();
        let (bits, _) = bits_by_item(&plan, &y, &x);
        assert!(bits.iter().enumerate().all(|(i, bit)| *bit == (i < common)), "{n_y} {n_x} {common}");
    }
}

/// Dummies of the sender take slots like items, but count as the bottom item, even if the receiver has their
/// hashes.
#[test]
fn dummies_count_as_the_bottom_item() {
    let (y, x) = (items(0, 40), items(30, 20));
    for real in [0, 5, 20] {
        let plan = Binning::new(Comparison::Private, 40, 20, 20).unwrap();
        let ((bits, order), _) =
            run_pair(&SESSION, |cx| receiver(cx, &plan, &y), |cx| sender(cx, &plan, &x, real));
        for (&item, &bit) in order.iter().zip(bits.iter()) {
            assert_eq!(bit, item as usize >= real || item < 10, "{item}");
        }
        assert_eq!(order.iter().filter(|&&item| item != BOTTOM).count(), 20);
    }
}

/// If values repeated across runs, the sender would learn which of its slots matched.
#[test]
fn a_second_run_under_the_same_generator_has_other_values() {
    let (y, x) = (items(0, 40), items(30, 20));
    let plan = Binning::new(Comparison::Plain, 40, 20, 20).unwrap();
    let (_, views) = run_pair(
        &SESSION,
        |cx| [(); 2].map(|()| receiver(cx, &plan, &y)).into_iter().collect::<Result<Vec<_>>>(),
        |cx| {
            let both = [(); 2].map(|()| sender(cx, &plan, &x, x.len()));
            both.into_iter().collect::<Result<Vec<_>>>()
        },
    );
    let values: HashSet<Vec<u8>> = answers(&plan, &views).into_iter().collect();
    assert_eq!(values.len(), 2 * plan.slots());
}

/// The answers of S, slot by slot.
fn answers(plan: &Binning, views: &Views) -> Vec<Vec<u8>> {
    let tag = if plan.peqt.is_some() { 0xa6 } else { 0xa7 };
    let frames = split_frames(&views.0[0]).into_iter().filter(|frame| frame.0 == tag);
    frames.flat_map(|frame| frame.1.chunks(plan.tag).map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
}

/// Equal values of s in two slots would show S that both match.
#[test]
fn no_value_comes_twice_in_all_frames_of_a_run() {
    for comparison in COMPARISONS {
        let bins = Bins { number: 21, receiver: 9, sender: 7 };
        let plan = Binning { per_frame: 3, in_frame: 20, ..Binning::of(comparison, (30, 40), bins).unwrap() };
        let (_, views) = bits_by_item(&plan, &items(0, 30), &items(20, 40));
        let answers = answers(&plan, &views);
        assert_eq!(answers.iter().collect::<HashSet<_>>().len(), plan.slots());
    }
}

/// Two worlds that differ only in the generator of S; R has the same s for each slot in both. The private comparison gives R
/// values of a function under S's key: not s*, nor a value that R can compute from a guess of s*. The plain comparison gives it
/// s*.
#[test]
fn answers_to_the_private_comparison_depend_on_the_key_of_s() {
    // All slots match.
    let (y, x) = (items(0, 40), items(10, 20));
    for comparison in COMPARISONS {
        let plan = Binning::new(comparison, 40, 20, 20).unwrap();
        let [one, other] = [1, 2].map(|seed| {
            let ((bits, _), views) = run_pair(
                &SESSION,
                |cx| receiver(cx, &plan, &y),
                |cx| sender(cx.under(Prng::from_seed(&[seed; 32])), &plan, &x, x.len()),
            );
            assert!(bits.len() > 20 && bits.iter().all(|bit| *bit));
            answers(&plan, &views)
        });
        let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        let expected = if comparison == Comparison::Plain { plan.slots() } else { 0 };
        assert_eq!(same, expected, "{comparison:?}");
    }
}

/// Recomputes the answers by definition, from the messages to S and from its generator. The two OPRFs belong to this session
/// and have different purposes.
#[test]
fn answers_are_those_of_the_definition() {
    let (y, x) = (items(0, 40), items(30, 20));
    for comparison in COMPARISONS {
        let plan = Binning::new(comparison, 40, 20, 20).unwrap();
        assert_eq!(plan.frames().len(), 1);
        let (_, views) = bits_by_item(&plan, &y, &x);
        let frames = split_frames(&views.0[1]);
        let frames: Vec<(u16, &[u8])> = frames.iter().map(|(tag, body)| (*tag, &body[..])).collect();
        let expected = with_frames(&frames, |cx| {
            cx.session = SESSION;
            *cx.rng = Prng::from_seed(&SEEDS[1]);
            let table = hash_into_bins(cx, &plan, false, &x)?;
            let order = fill_and_permute(&plan, &table, cx.rng);
            let (oprf, peqt) = ("RPMT, OPRF of the items", "RPMT, OPRF for the private equality test");
            let bottom = Input::from_bytes(Domain::without_session("the bottom item of KRTW19").hash(&[]));
            let slots: Vec<Input> = order.iter().map(|&i| *x.get(i as usize).unwrap_or(&bottom)).collect();
            let codes = Coder::new(&SESSION, oprf).codes(&slots);
            let mut oprf = kkrt::Receiver::setup(cx, oprf, plan.width)?;
            let keys = match plan.peqt {
                Some(width) => Some(kkrt::Sender::setup(cx, peqt, width)?),
                None => None,
            };
            let outputs = oprf.evaluate(&mut cx.ch.tx, &codes)?;
            let polynomials = cx.ch.rx.recv_bytes(POLYNOMIALS, plan.slots() * plan.polynomial_bytes())?;
            let s = evaluate(&plan, &polynomials, &outputs);
            let Some(mut keys) = keys else {
                return Ok(s.iter().map(|s| s.to_le_bytes()[..plan.tag].to_vec()).collect::<Vec<_>>());
            };
            let keys = keys.keys(&mut cx.ch.rx, plan.slots())?;
            let inputs = s.iter().map(|s| [s.to_le_bytes(), [0; 16]].concat().try_into().unwrap());
            let codes = Coder::new(&SESSION, peqt).codes(&inputs.map(Input::from_bytes).collect::<Vec<_>>());
            let tag = |(j, code)| keys.evaluate(j, code)[..plan.tag].to_vec();
            Ok(codes.iter().enumerate().map(tag).collect())
        });
        assert!(answers(&plan, &views) == expected.unwrap(), "{comparison:?}");
    }
}

/// Otherwise a party that has this item would miss it in a union.
#[test]
fn no_item_is_the_bottom_item() {
    let name = b"the bottom item of KRTW19";
    assert!([&b""[..], &name[..]].iter().all(|item| Input::of_item(item).as_bytes() != bottom().as_bytes()));
}

/// A prefix of a tag, or of s*, would be equal by chance too often.
#[test]
fn every_byte_of_an_answer_counts() {
    const TAG: usize = 6;
    const BYTES: usize = 8;
    // Flips a bit of a different byte in each slot.
    let tags: fn(&mut Vec<u8>) =
        |body| body.chunks_mut(TAG).enumerate().for_each(|(i, tag)| tag[i % TAG] ^= 4);
    let elements: fn(&mut Vec<u8>) =
        |body| body.chunks_mut(BYTES).enumerate().for_each(|(i, s)| s[i % BYTES] ^= 4);
    // All slots match.
    let (y, x) = (items(0, 40), items(10, 20));
    for (comparison, tag, size, change) in
        [(Comparison::Private, 0xa6, TAG, tags), (Comparison::Plain, 0xa7, BYTES, elements)]
    {
        let plan = Binning::new(comparison, 40, 20, 20).unwrap();
        assert!(plan.tag == size && plan.slots() > 2 * size, "{plan:?}");
        let ((bits, _), _) = run_pair(
            &SESSION,
            |cx| receiver(cx, &plan, &y),
            |cx| {
                forge(cx.ch, tag, change);
                sender(cx, &plan, &x, x.len())
            },
        );
        assert!(bits.iter().all(|bit| !*bit), "{comparison:?}");
    }
}

/// R compares all of s. A part of it would be equal by chance too often.
#[test]
fn every_bit_of_s_is_in_its_code() {
    let coder = Coder::new(&SESSION, PEQT);
    let s: Vec<u128> = (0..=80).map(|bit| if bit == 80 { 0 } else { 1 << bit }).collect();
    let codes = codes_of(&coder, &s);
    assert_eq!(codes.iter().collect::<HashSet<_>>().len(), 81);
}

/// More bins than a frame holds, several more frames than are in flight, and a last frame that is not full.
#[test]
fn several_frames() {
    for comparison in COMPARISONS {
        let bins = Bins { number: 21, receiver: 9, sender: 7 };
        let plan = Binning { per_frame: 3, in_frame: 20, ..Binning::of(comparison, (30, 40), bins).unwrap() };
        assert_eq!(plan.frames().len(), AHEAD + 3);
        let (bits, _) = bits_by_item(&plan, &items(0, 30), &items(20, 40));
        assert!(bits.iter().enumerate().all(|(i, bit)| *bit == (i < 10)));
    }
}

#[test]
fn lengths_and_bytes_follow_from_the_sizes() {
    for comparison in COMPARISONS {
        for (n_y, n_x) in [(0, 0), (700, 90)] {
            let plan = Binning::new(comparison, n_y, n_x, 20).unwrap();
            let mut seen = HashSet::new();
            for (common, seed) in [(0, 0), (n_y.min(n_x), 9000)] {
                let (y, x) = (items(seed, n_y), items(seed + n_y - common, n_x));
                let views = bits_by_item(&plan, &y, &x).1;
                let bytes = (views.0[1].len() as u64, views.0[0].len() as u64);
                assert_eq!(bytes, plan.traffic(), "{n_y} {n_x}");
                seen.insert([views.frames(0), views.frames(1)]);
            }
            assert_eq!(seen.len(), 1);
        }
    }
}

// ---- Malicious peers. ----

/// Changes the bodies of the frames with this tag.
struct Forge {
    sink: Box<dyn Sink>,
    tag: u8,
    change: fn(&mut Vec<u8>),
}

impl Sink for Forge {
    fn send(&mut self, mut frame: Vec<u8>) -> Result<()> {
        if frame[0] == self.tag && frame[1] == 0 {
            let mut body = frame.split_off(6);
            (self.change)(&mut body);
            frame[2..6].copy_from_slice(&(body.len() as u32).to_le_bytes());
            frame.extend(body);
        }
        self.sink.send(frame)
    }
}

fn forge(ch: &mut Channel, tag: u8, change: fn(&mut Vec<u8>)) {
    let (sink, source): (_, Box<dyn Source>) = std::mem::replace(ch, Channel::pair().0).into_halves();
    *ch = Channel::from_halves(Box::new(Forge { sink, tag, change }), source);
}

#[test]
fn forged_messages_are_errors_that_name_them() {
    let longer = |body: &mut Vec<u8>| body.push(0);
    let shorter = |body: &mut Vec<u8>| body.truncate(body.len() - 1);
    let flip = |body: &mut Vec<u8>| body[0] ^= 1;
    let two = |body: &mut Vec<u8>| body[0] = 2;
    let coefficient = |body: &mut Vec<u8>| body.truncate(body.len() - 9);
    // The forging party, the message, the change, and the other party's error.
    type Row = (bool, u8, fn(&mut Vec<u8>), &'static str);
    let table: [Row; 11] = [
        (true, 0xa1, flip, "is not the one that it committed to"),
        (true, 0xa1, shorter, "commitment to a share"),
        (true, 0xa3, flip, "is not the one that it committed to"),
        (true, 0xa3, longer, "share that was committed"),
        (false, 0xa2, shorter, "share of the bin hash"),
        (true, 0xa4, two, "neither yes nor no on whether its items fit"),
        (false, 0xa4, two, "neither yes nor no on whether its items fit"),
        (true, 0xa5, longer, "RPMT polynomials"),
        (true, 0xa5, coefficient, "RPMT polynomials"),
        (false, 0xa6, shorter, "RPMT tags"),
        (false, 0xa7, longer, "RPMT s*"),
    ];
    for (by_receiver, tag, change, words) in table {
        let comparison = if tag == 0xa7 { Comparison::Plain } else { Comparison::Private };
        let plan = Binning::new(comparison, 30, 20, 20).unwrap();
        let (y, x) = (items(0, 30), items(20, 20));
        let ((r, s), _) = run_pair(
            &SESSION,
            |cx| {
                if by_receiver {
                    forge(cx.ch, tag, change);
                }
                Ok(receiver(cx, &plan, &y).err())
            },
            |cx| {
                if !by_receiver {
                    forge(cx.ch, tag, change);
                }
                Ok(sender(cx, &plan, &x, x.len()).err())
            },
        );
        match if by_receiver { s } else { r } {
            Some(Error::Peer { fault: Fault::Misbehaved, what: text, .. }) => {
                assert!(text.contains(words), "{tag:#x}: {text}")
            }
            other => panic!("{tag:#x}: {other:?}"),
        }
    }
}
