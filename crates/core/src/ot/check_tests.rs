//! The malicious form: honest runs, forgeries, and the effect of the same attacks on the semi-honest form.

use super::super::check::{expand, shifted};
use super::tests::{Both, SESSION, random_choices, setup_at};
use super::*;
use crate::channel::Channel;
use crate::channel::Sink;
use crate::error::Fault;
use crate::testing::every_bit_is_random;
use std::collections::HashSet;
use veilset_kernels::gf128::multiply;

const TREE_CHECK: &str = "the check of the seed trees";
const CHECK: &str = "the check of the corrections";

fn malicious(k: usize) -> Both {
    setup_at(Security::Malicious, "a", k)
}

/// Asserts that the parties' rows are equal where the choice is 0, and differ by Delta where it is 1.
fn assert_correlated(sender: &Sender, q: &[Pad], v: &[Pad], choices: &[bool]) {
    assert_eq!([q.len(), v.len()], [choices.len(); 2]);
    for ((q, v), &c) in q.iter().zip(v).zip(choices) {
        let delta = u128::from_le_bytes(*sender.delta());
        assert_eq!(u128::from_le_bytes(*q) ^ u128::from_le_bytes(*v), if c { delta } else { 0 });
    }
}

#[test]
fn leaves_are_shifted_by_alpha() {
    for k in 0..=MAX_K as u32 {
        let from: Vec<Pad> = (0..1u128 << k).map(u128::to_le_bytes).collect();
        for alpha in 0..1 << k {
            let expected = (0..1 << k).map(|y| from[(alpha ^ y) as usize]);
            assert!(shifted(&from, alpha).iter().copied().eq(expected), "{k} {alpha}");
        }
    }
}

#[test]
fn an_honest_receiver_passes_for_every_k_and_size() {
    for k in 1..=MAX_K {
        let ((mut sender, mut a), (mut receiver, mut b)) = malicious(k);
        for n in [0, 1, 127, 128, 129, FRAME] {
            let (choices, before) = (random_choices(n), b.bytes_sent());
            let got = receiver.pads(&mut b.tx, &choices).unwrap();
            let pads = sender.pads(&mut a.rx, n).unwrap();
            let pads = [pads.of(false), pads.of(true)];
            assert_eq!([got.len(), pads[0].len(), pads[1].len()], [n; 3]);
            for (j, &c) in choices.iter().enumerate() {
                assert!(got[j] == pads[usize::from(c)][j] && pads[0][j] != pads[1][j], "k = {k}, n = {n}");
            }
            let bytes = (n.div_ceil(128) + 1) * 16 * 128usize.div_ceil(k) + 16 * 129;
            assert_eq!(frame_bytes(n, k, Security::Malicious), bytes);
            assert_eq!(b.bytes_sent() - before, bytes as u64 + 2 * 6);
        }
        let choices = random_choices(300);
        let v = receiver.correlated(&mut b.tx, &choices).unwrap();
        let q = sender.correlated(&mut a.rx, 300).unwrap();
        assert_correlated(&sender, &q, &v, &choices);
        assert_eq!((sender.common.block, sender.common.index), (receiver.0.block, receiver.0.index));
        let all = correction_bytes(FRAME + 1, k, Security::Malicious);
        assert_eq!(all, receiver.correction_bytes(FRAME) + sender.correction_bytes(1));
    }
}

#[test]
fn random_choices_are_those_of_the_pads_and_random() {
    for security in [Security::SemiHonest, Security::Malicious] {
        let ((mut sender, mut a), (mut receiver, mut b)) = setup_at(security, "a", 6);
        let rng = &mut Prng::from_seed(&[6; 32]);
        let (choices, got) = receiver.random(&mut b.tx, 4000, rng).unwrap();
        let pads = sender.pads(&mut a.rx, 4000).unwrap();
        let pads = [pads.of(false), pads.of(true)];
        assert!((0..4000).all(|j| got[j] == pads[usize::from(choices[j])][j]));
        // Five standard deviations are 158.
        let ones = choices.iter().filter(|&&c| c).count();
        assert!(ones.abs_diff(2000) < 158, "{ones}");
        // The choices differ every time, also under another seed.
        for rng in [rng, &mut Prng::from_seed(&[7; 32])] {
            let (others, _) = receiver.random(&mut b.tx, 4000, rng).unwrap();
            let differ = choices.iter().zip(others.iter()).filter(|(a, b)| a != b).count();
            assert!(differ.abs_diff(2000) < 158, "{differ}");
        }
    }
}

#[test]
fn more_than_a_frame_is_an_error_before_anything_is_sent() {
    for security in [Security::SemiHonest, Security::Malicious] {
        let ((mut sender, mut a), (mut receiver, mut b)) = setup_at(security, "a", 6);
        let before = b.bytes_sent();
        assert!(matches!(receiver.pads(&mut b.tx, &[true; FRAME + 1]), Err(Error::Bug(_))));
        assert!(matches!(sender.pads(&mut a.rx, FRAME + 1), Err(Error::Bug(_))));
        assert_eq!(b.bytes_sent(), before);
    }
}

/// Passes every frame of the receiver, with its number, to `forge`, and sends what that returns.
struct Forger<F> {
    sink: Box<dyn Sink>,
    sent: usize,
    forge: F,
}

impl<F: FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send> Sink for Forger<F> {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        self.sent += 1;
        (self.forge)(self.sent - 1, frame).into_iter().try_for_each(|frame| self.sink.send(frame))
    }
}

/// The receiver's messages for the setup and two frames of OTs, in this order.
const SENT: [(u16, &str); 7] = [
    (0x32, "base OT b G"),
    (0x33, "sums of the levels"),
    (0x35, "check of the seed trees"),
    (0x34, "u_i + choices"),
    (0x36, "check of the corrections"),
    (0x34, "u_i + choices"),
    (0x36, "check of the corrections"),
];

/// The sender's reaction to a receiver whose frames are forged in transit; the receiver sends more frames than
/// the sender receives. Returns the error, if any, and the sender's path down the trees.
fn forged(
    security: Security,
    k: usize,
    forge: impl FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
) -> (Result<()>, Secrets<u8>) {
    let (mut a, b) = Channel::pair();
    std::thread::scope(|s| {
        s.spawn(move || {
            let (sink, source) = b.into_halves();
            let mut b = Channel::from_halves(Box::new(Forger { sink, sent: 0, forge }), source);
            let rng = &mut Prng::from_seed(&[2; 32]);
            let Ok(mut receiver) =
                Receiver::setup(&mut Context::new(&mut b, &SESSION, rng), "a", k, security)
            else {
                return;
            };
            (0..4).try_for_each(|_| receiver.pads(&mut b.tx, &[true; 300]).map(drop)).ok();
        });
        // The Delta of the run below.
        let path = path(k, &Prng::from_seed(&[1; 32]).bytes());
        let rng = &mut Prng::from_seed(&[1; 32]);
        let sender = Sender::setup(&mut Context::new(&mut a, &SESSION, rng), "a", k, security);
        let run = |mut sender: Sender| (0..3).try_for_each(|_| sender.pads(&mut a.rx, 300).map(drop));
        let result = sender.and_then(run);
        drop(a);
        (result, path)
    })
}

/// Returns the frame with another body.
fn frame(of: &[u8], body: &[u8]) -> Vec<u8> {
    [&of[..2], &(body.len() as u32).to_le_bytes(), body].concat()
}

fn assert_peer(result: Result<()>, names: &str, what: &str) {
    match result {
        Err(Error::Peer { fault: Fault::Misbehaved, what: e, .. }) => {
            assert!(e.contains(names), "{what}: {e}")
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn a_frame_that_is_shortened_lengthened_omitted_or_repeated_is_named() {
    assert!(forged(Security::Malicious, 6, |_, frame| vec![frame]).0.is_ok());
    for (at, (tag, name)) in SENT.into_iter().enumerate() {
        type Forge = fn(Vec<u8>) -> Vec<Vec<u8>>;
        // The change, and the number of frames until it is detected.
        let ways: [(&str, Forge, usize); 6] = [
            ("shortened", |f| vec![frame(&f, &f[6..f.len() - 1])], 0),
            ("an element short", |f| vec![frame(&f, &f[6..f.len() - 32])], 0),
            ("lengthened", |f| vec![frame(&f, &[&f[6..], &[0]].concat())], 0),
            ("empty", |f| vec![frame(&f, &[])], 0),
            ("omitted", |_| vec![], 0),
            ("repeated", |f| vec![f.clone(), f], 1),
        ];
        for (way, forge, later) in ways {
            let forge = move |i, f: Vec<u8>| {
                if i != at {
                    return vec![f];
                }
                assert_eq!(f[..2], tag.to_le_bytes());
                forge(f)
            };
            let expected = SENT.get(at + later).map_or("u_i + choices", |sent| sent.1);
            let what = format!("{name} {way}");
            assert_peer(forged(Security::Malicious, 6, forge).0, expected, &what);
        }
    }
}

#[test]
fn a_flip_of_any_field_is_found_by_the_check_that_is_there_for_it() {
    // At k = 6 and 300 OTs there are 22 trees, and columns of 64 bytes whose last 16 are the extra group.
    let all_trees = |at: usize| (0..22).map(|tree| tree * 64 + at).collect::<Vec<_>>();
    let table: [(&str, usize, Vec<usize>, &str); 18] = [
        ("a point of the base OTs, which then is none", 0, vec![31], "base OTs"),
        ("both sums of the first level", 1, vec![3, 19], TREE_CHECK),
        ("both sums of the last level", 1, vec![127 * 32, 127 * 32 + 16], TREE_CHECK),
        ("the first tree's sum of tags", 2, vec![0], TREE_CHECK),
        ("the last tree's sum of tags", 2, vec![22 * 32 - 1], TREE_CHECK),
        ("the hash of the tags", 2, vec![22 * 32], TREE_CHECK),
        ("the hash of the tags, last byte", 2, vec![23 * 32 - 1], TREE_CHECK),
        ("a correction of the first tree", 3, vec![0], CHECK),
        ("a correction of the last tree", 3, vec![21 * 64 + 5], CHECK),
        ("a correction of the extra group", 3, vec![7 * 64 + 63], CHECK),
        ("the same correction of all trees", 3, all_trees(9), CHECK),
        ("the same correction of all trees, behind the last OT", 3, all_trees(47), CHECK),
        ("the same correction of all trees, extra group", 3, all_trees(50), CHECK),
        ("x~", 4, vec![15], CHECK),
        ("v~ of the first column", 4, vec![16], CHECK),
        ("v~ of the last column", 4, vec![128 * 16 + 15], CHECK),
        ("a correction of the second frame", 5, vec![64], CHECK),
        ("v~ of the second frame", 6, vec![77 * 16], CHECK),
    ];
    for (what, at, bytes, names) in table {
        let forge = move |i, mut frame: Vec<u8>| {
            bytes.iter().filter(|_| i == at).for_each(|byte| frame[6 + byte] ^= 0x80);
            vec![frame]
        };
        assert_peer(forged(Security::Malicious, 6, forge).0, names, what);
    }
    // Substitutes the proof of one frame for another's; then its corrections, too.
    let mut first = Vec::new();
    let swap = move |i, frame: Vec<u8>| match i {
        4 => {
            first.clone_from(&frame);
            vec![frame]
        }
        6 => vec![first.clone()],
        _ => vec![frame],
    };
    assert_peer(forged(Security::Malicious, 6, swap).0, CHECK, "the proof of another frame");
    let mut replayed = Vec::new();
    let replay = move |i, frame: Vec<u8>| match i {
        3 | 4 => {
            replayed.push(frame.clone());
            vec![frame]
        }
        5 => vec![replayed[0].clone()],
        6 => vec![replayed[1].clone()],
        _ => vec![frame],
    };
    assert_peer(forged(Security::Malicious, 6, replay).0, CHECK, "a frame again");
}

#[test]
fn every_bit_of_delta_is_checked_and_x_too() {
    let ((mut sender, mut a), (mut receiver, mut b)) = malicious(2);
    receiver.pads(&mut b.tx, &random_choices(200)).unwrap();
    let bytes = column_bytes(200, Security::Malicious);
    let corrections = a.rx.recv_bytes(CORRECTIONS, 64 * bytes).unwrap();
    let proof = a.rx.recv(PROOF, PROOF_LEN).unwrap();
    let columns = sender.columns(&corrections, bytes);
    let transcript = sender.common.transcript.as_ref().unwrap();
    let check = |proof: &[Pad]| {
        let columns = Columns::new(columns.clone());
        columns.checked(200, &mut transcript.clone(), &corrections, &sender.delta, proof).map(drop)
    };
    assert!(check(&proof).is_ok());
    for at in 0..PROOF_LEN {
        let mut forged = proof.clone();
        forged[at][at % 16] ^= 1 << (at % 8);
        assert_peer(check(&forged), CHECK, &format!("element {at}"));
    }
}

/// Like [`Receiver::correlated`], but flips choice j in tree i where `flip(i, j)`. The proof claims that nothing was
/// flipped. It passes if `guess` has the right bits of Delta for those trees.
fn cheat(
    receiver: &mut Receiver,
    tx: &mut Tx,
    choices: &[bool],
    guess: &Pad,
    flip: impl Fn(usize, usize) -> bool,
) -> Secrets<Pad> {
    let (n, k) = (choices.len(), receiver.0.k);
    let bytes = receiver.0.column_bytes(n).unwrap();
    let mut packed = vec![0; bytes];
    choices.iter().enumerate().for_each(|(j, &c)| packed[j / 8] |= u8::from(c) << (j % 8));
    let (columns, mut corrections) = receiver.0.columns(bytes);
    let v = rows(&columns, n);
    let mut claimed = columns.to_vec();
    for (tree, c) in corrections.chunks_exact_mut(bytes).enumerate() {
        xor(c, &packed);
        for j in (0..n).filter(|&j| flip(tree, j)) {
            c[j / 8] ^= 1 << (j % 8);
            for b in (tree * k..(tree * k + k).min(WIDTH)).filter(|b| guess[b / 8] >> (b % 8) & 1 == 1) {
                claimed[b * bytes + j / 8] ^= 1 << (j % 8);
            }
        }
    }
    tx.send_bytes(CORRECTIONS, &corrections).unwrap();
    if let Some(transcript) = &mut receiver.0.transcript {
        tx.send(PROOF, &transcript.prove(&corrections, &packed, &claimed)).unwrap();
    }
    v
}

#[test]
fn without_the_check_a_cheating_receiver_learns_delta_from_one_pad_of_each_ot() {
    let ((mut sender, mut a), (mut receiver, mut b)) = setup_at(Security::SemiHonest, "a", 2);
    // In OT i, the choice of tree i differs from the choice of the other trees.
    let v = cheat(&mut receiver, &mut b.tx, &[false; 64], &[0; 16], |tree, j| tree == j);
    // The sender uses the pads of choice 0, for instance to encrypt data that the receiver knows.
    let used = sender.pads(&mut a.rx, 64).unwrap().of(false);
    let mut delta = 0u128;
    for (j, (v, used)) in v.iter().zip(used.iter()).enumerate() {
        let tried = (0..4u128).map(|alpha| alpha << (2 * j)).filter(|alpha| {
            let mut pad = [(u128::from_le_bytes(*v) ^ alpha).to_le_bytes()];
            receiver.0.hash.tcr_hash(j as u128, &mut pad);
            pad[0] == *used
        });
        delta |= tried.sum::<u128>();
    }
    assert_eq!(delta, u128::from_le_bytes(*sender.delta));
    // From now on the receiver has all pads of all frames, for any choices.
    receiver.0.index += 64;
    let tweak = receiver.0.index;
    let mut other = receiver.correlated(&mut b.tx, &[false; 100]).unwrap();
    other.iter_mut().for_each(|row| xor(row, &delta.to_le_bytes()));
    receiver.0.hash.tcr_hash(tweak, &mut other);
    assert_eq!(*other, *sender.pads(&mut a.rx, 100).unwrap().of(true));
}

#[test]
fn different_choices_in_different_trees_are_found_unless_alpha_was_guessed() {
    let delta = u128::from_le_bytes(Prng::from_seed(&[1; 32]).bytes());
    let run = |guess: u128, flip: fn(usize, usize) -> bool| {
        let ((mut sender, mut a), (mut receiver, mut b)) = malicious(2);
        assert_eq!(u128::from_le_bytes(*sender.delta), delta);
        cheat(&mut receiver, &mut b.tx, &[false; 130], &guess.to_le_bytes(), flip);
        let result = sender.pads(&mut a.rx, 130).map(drop);
        if result.is_err() {
            // A second attempt at the same Delta is refused.
            receiver.pads(&mut b.tx, &[true; 5]).unwrap();
            assert!(matches!(sender.pads(&mut a.rx, 5), Err(Error::Bug(_))));
        }
        result
    };
    let alpha = |tree: usize| delta >> (2 * tree) & 3;
    // Where alpha is 0, a correction has no effect; for these fixed seeds it is not 0 in any of these trees.
    assert!([0, 5, 63].iter().all(|&tree| alpha(tree) != 0));
    assert_peer(run(0, |tree, j| tree == j), CHECK, "each tree in an OT of its own");
    assert_peer(run(0, |tree, j| tree == 0 && j == 0), CHECK, "the first tree");
    assert_peer(run(0, |tree, j| tree == 63 && j == 129), CHECK, "the last tree");
    assert_peer(run(0, |tree, _| tree == 5), CHECK, "all OTs of one tree");
    assert_peer(run(0, |tree, j| tree != 5 && j == 7), CHECK, "all trees but one");
    // The remaining attack: a cheater that guesses alpha correctly is not detected, and then knows alpha.
    let one: fn(usize, usize) -> bool = |tree, j| tree == 5 && j == 3;
    assert!(run(delta, one).is_ok());
    assert!(run(alpha(5) << 10, one).is_ok());
    assert_peer(run(delta ^ 1 << 10, one), CHECK, "a wrong guess of one bit");
    assert_peer(run(delta ^ 1 << 11, one), CHECK, "a wrong guess of the other");
    assert!(run(delta ^ 1 << 12, one).is_ok(), "a bit of another tree does not count");
    assert!(run(delta, |tree, j| tree == j).is_ok());
}

#[test]
fn a_proof_without_the_extra_group_is_found() {
    let ((mut sender, mut a), (mut receiver, mut b)) = malicious(6);
    receiver.pads(&mut b.tx, &random_choices(128)).unwrap();
    let corrections = a.rx.recv_bytes(CORRECTIONS, 22 * 32).unwrap();
    a.rx.recv(PROOF, PROOF_LEN).unwrap();
    // The same frame from a receiver that omits the extra group from its sums.
    let ((_, _), (mut receiver, _)) = malicious(6);
    let (columns, _) = receiver.0.columns(32);
    let mut packed = vec![0; 32];
    random_choices(128).iter().enumerate().for_each(|(j, &c)| packed[j / 8] |= u8::from(c) << (j % 8));
    let mut columns = columns.to_vec();
    columns.chunks_exact_mut(32).for_each(|column| column[16..].fill(0));
    let proof = receiver.0.transcript.as_mut().unwrap().prove(&corrections, &packed, &columns);
    b.tx.send_bytes(CORRECTIONS, &corrections).unwrap();
    b.tx.send(PROOF, &proof).unwrap();
    assert_peer(sender.pads(&mut a.rx, 128).map(drop), CHECK, "no extra group");
}

#[test]
fn the_proof_shows_nothing_of_the_choices() {
    for choice in [false, true] {
        let ((_, mut a), (mut receiver, mut b)) = malicious(6);
        let (mut ones, mut seen) = (0, HashSet::new());
        for _ in 0..64 {
            receiver.pads(&mut b.tx, &[choice; 3]).unwrap();
            a.rx.recv_bytes(CORRECTIONS, 22 * 32).unwrap();
            let x = a.rx.recv(PROOF, PROOF_LEN).unwrap()[0];
            ones += u128::from_le_bytes(x).count_ones();
            assert!(seen.insert(x));
        }
        // 8,192 bits: five standard deviations are 226.
        assert!(ones.abs_diff(4096) < 226, "{ones}");
    }
}

#[test]
fn a_wrong_sum_is_found_if_the_sender_uses_it_which_is_what_the_check_leaves() {
    let mut seen = [0; 2];
    for at in [0, 1, 6, 70, 126, 127] {
        for half in [0, 1] {
            let forge = move |i, mut frame: Vec<u8>| {
                if i == 1 {
                    frame[6 + at * 32 + half * 16] ^= 1;
                }
                vec![frame]
            };
            let (result, path) = forged(Security::Malicious, 6, forge);
            let used = usize::from(path[at] ^ 1);
            seen[usize::from(used == half)] += 1;
            match used == half {
                true => assert_peer(result, TREE_CHECK, "a sum that is used"),
                false => assert!(result.is_ok(), "{at}"),
            }
            // Without the check, no error is detected.
            assert!(forged(Security::SemiHonest, 6, forge).0.is_ok());
        }
    }
    assert_eq!(seen, [6, 6]);
}

#[test]
fn the_forms_do_not_mix() {
    for (sender, names) in [(Security::Malicious, SENT[2].1), (Security::SemiHonest, SENT[3].1)] {
        let (mut a, mut b) = Channel::pair();
        std::thread::scope(|s| {
            s.spawn(move || {
                let other = match sender {
                    Security::Malicious => Security::SemiHonest,
                    Security::SemiHonest => Security::Malicious,
                };
                let rng = &mut Prng::from_seed(&[2; 32]);
                let mut receiver =
                    Receiver::setup(&mut Context::new(&mut b, &SESSION, rng), "a", 6, other).unwrap();
                receiver.pads(&mut b.tx, &[true; 300]).ok();
            });
            let rng = &mut Prng::from_seed(&[1; 32]);
            let sender = Sender::setup(&mut Context::new(&mut a, &SESSION, rng), "a", 6, sender);
            let result = sender.and_then(|mut sender| sender.pads(&mut a.rx, 300).map(drop));
            assert_peer(result, names, "mixed forms");
        });
    }
}

#[test]
fn the_sums_of_a_proof_are_those_of_their_definition() {
    let ((_, mut a), (mut receiver, mut b)) = malicious(6);
    let (groups, n) = (4, 300);
    let transcript = receiver.0.transcript.clone().unwrap();
    let mut again = malicious(6).1.0;
    receiver.pads(&mut b.tx, &[false; 300]).unwrap();
    let corrections = a.rx.recv_bytes(CORRECTIONS, 22 * groups * 16).unwrap();
    let proof = a.rx.recv(PROOF, PROOF_LEN).unwrap();
    let (columns, u) = again.0.columns(column_bytes(n, Security::Malicious));
    // All choices are 0 except in the extra group, where they are u_0.
    assert_eq!(proof[0], u[48..64]);
    let chi = transcript.clone().coefficients(&corrections, groups);
    let distinct: HashSet<_> = chi.iter().collect();
    assert!(chi.len() == 4 && distinct.len() == 4 && chi[3] == 1u128.to_le_bytes());
    for (b, column) in columns.chunks_exact(64).enumerate() {
        let mut sum = Pad::default();
        for (chi, x) in chi.iter().zip(column.as_chunks::<16>().0) {
            xor(&mut sum, &multiply(chi, x));
        }
        assert_eq!(sum, proof[1 + b]);
    }
}

/// Sums of tags are sent: if a tag and a seed shared a block, the sum would reveal the missing seed.
#[test]
fn seeds_and_tags_have_no_block_in_common_even_under_equal_keys() {
    let mut seen = HashSet::new();
    for i in 0..WIDTH {
        let (seeds, tags) = expand(i, &[[5; 16], [6; 16]]);
        let blocks = seeds.as_flattened().as_chunks::<16>().0.iter();
        for block in blocks.chain(tags.as_flattened().as_chunks().0) {
            assert!(seen.insert(*block), "{i}");
        }
    }
}

/// A cheater that knows the coefficients before its messages are fixed could construct wrong messages that pass.
#[test]
fn the_coefficients_depend_on_session_trees_all_corrections_and_all_frames_before() {
    let groups = 4;
    let coefficients = |session: u8, leaf: u8, frames: &[Vec<u8>]| {
        let trees = [[[1; 16], [2; 16]], [[leaf; 16], [4; 16]]].map(|leaves| Secrets::from(leaves.to_vec()));
        let (_, message, mut transcript) = prove_trees(&SessionId::of([session; 32]), &trees);
        let mut last = Vec::new();
        frames.iter().for_each(|frame| last = transcript.coefficients(frame, groups));
        assert_eq!((last.len(), last[3]), (groups, 1u128.to_le_bytes()));
        // The hash of the tags depends on the session, too.
        (last[..3].to_vec(), *message.last().unwrap())
    };
    let frames = [vec![7; 500], vec![8; 500], vec![9; 500]];
    let flipped = |frame: usize, at: usize| {
        let mut frames = frames.clone();
        frames[frame][at] ^= 1;
        coefficients(1, 3, &frames)
    };
    let mut swapped = frames.clone();
    swapped.swap(0, 1);
    let (fixed, digest) = coefficients(1, 3, &frames);
    let others = [
        coefficients(2, 3, &frames),
        coefficients(1, 5, &frames),
        coefficients(1, 3, &frames[1..]),
        coefficients(1, 3, &frames[..2]),
        coefficients(1, 3, &swapped),
        flipped(0, 0),
        flipped(0, 499),
        flipped(1, 250),
        flipped(2, 0),
        flipped(2, 250),
        flipped(2, 499),
    ];
    let all: HashSet<Pad> = others.iter().flat_map(|(chi, _)| chi).chain(&fixed).copied().collect();
    assert_eq!(all.len(), 3 * 12);
    assert!(others[0].1 != digest && others[1].1 != digest && others[2].1 == digest);
    // 64-bit coefficients would let wrong corrections pass with probability 2^-64.
    let (_, _, mut transcript) = prove_trees(&SESSION, &[]);
    let chi: Vec<Pad> = (0..4u8).flat_map(|i| transcript.coefficients(&[i], 65)[..64].to_vec()).collect();
    every_bit_is_random(&chi, 128);
}

/// The check binds the receiver through the tags of all leaves of all trees.
#[test]
fn the_hash_of_the_tags_depends_on_every_leaf() {
    let leaves: Vec<Secrets<Pad>> =
        (1..4u8).map(|i| (0..8).map(|x| [i * 8 + x; 16]).collect::<Vec<_>>().into()).collect();
    let digest = |leaves: &[Secrets<Pad>]| *prove_trees(&SESSION, leaves).1.last().unwrap();
    let mut all = HashSet::from([digest(&leaves)]);
    for (tree, leaf) in (0..3).flat_map(|tree| (0..8).map(move |leaf| (tree, leaf))) {
        let mut others = leaves.clone();
        others[tree][leaf][0] ^= 0x80;
        assert!(all.insert(digest(&others)), "{tree} {leaf}");
    }
}
