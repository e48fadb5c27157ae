use super::*;
use crate::channel::Channel;
use crate::testing::{every_bit_is_random, parts, run_pair};
use std::collections::HashSet;

pub(super) const SESSION: SessionId = SessionId::of([9; 32]);

/// Sets up both roles, each with its end of a channel.
fn setup(purpose: &'static str, k: usize) -> Both {
    setup_at(Security::SemiHonest, purpose, k)
}

pub(super) type Both = ((Sender, Channel), (Receiver, Channel));

pub(super) fn setup_at(security: Security, purpose: &'static str, k: usize) -> Both {
    seeded(security, purpose, k, [1, 2])
}

/// Sets up both roles with these seeds of sender and receiver.
fn seeded(security: Security, purpose: &'static str, k: usize, seeds: [u8; 2]) -> Both {
    let (mut a, mut b) = Channel::pair();
    let rng = move |role: usize| Prng::from_seed(&[seeds[role]; 32]);
    std::thread::scope(|s| {
        let sender = s.spawn(move || {
            let sender =
                Sender::setup(&mut Context::new(&mut a, &SESSION, &mut rng(0)), purpose, k, security);
            (sender.unwrap(), a)
        });
        let receiver =
            Receiver::setup(&mut Context::new(&mut b, &SESSION, &mut rng(1)), purpose, k, security);
        (sender.join().unwrap(), (receiver.unwrap(), b))
    })
}

pub(super) fn random_choices(n: usize) -> Vec<bool> {
    let mut rng = Prng::from_seed(&[3; 32]);
    (0..n).map(|_| rng.below(2) == 1).collect()
}

#[test]
fn the_receiver_gets_the_chosen_pads_for_every_k() {
    for k in 1..=MAX_K {
        let ((mut sender, mut a), (mut receiver, mut b)) = setup("a", k);
        let (before, mut all) = (b.bytes_sent(), HashSet::new());
        // None, sizes around a block of 128 rows, and several frames in sequence.
        let sizes = [1, 127, 0, 128, 129, 300];
        for n in sizes {
            let choices = random_choices(n);
            let got = receiver.pads(&mut b.tx, &choices).unwrap();
            let pads = sender.pads(&mut a.rx, n).unwrap();
            let pads = [pads.of(false), pads.of(true)];
            assert_eq!([got.len(), pads[0].len(), pads[1].len()], [n; 3]);
            for (j, &c) in choices.iter().enumerate() {
                assert_eq!(got[j], pads[usize::from(c)][j], "k = {k}");
                assert!(all.insert(pads[0][j]) && all.insert(pads[1][j]));
            }
        }
        every_bit_is_random(&all.into_iter().collect::<Vec<Pad>>(), 128);
        let bytes: usize = sizes.iter().map(|&n| 6 + correction_bytes(n, k, Security::SemiHonest)).sum();
        assert_eq!(b.bytes_sent() - before, bytes as u64);
        assert_eq!(correction_bytes(129, k, Security::SemiHonest), 128usize.div_ceil(k) * 256 / 8);
    }
}

#[test]
fn rows_differ_by_delta_exactly_where_the_choice_is_one() {
    for k in [2, 6, 7] {
        let ((mut sender, mut a), (mut receiver, mut b)) = setup("a", k);
        let choices = random_choices(300);
        let v = receiver.correlated(&mut b.tx, &choices).unwrap();
        let q = sender.correlated(&mut a.rx, 300).unwrap();
        let delta = u128::from_le_bytes(*sender.delta());
        for ((q, v), &c) in q.iter().zip(v.iter()).zip(&choices) {
            assert_eq!(u128::from_le_bytes(*q) ^ u128::from_le_bytes(*v), if c { delta } else { 0 });
        }
    }
}

#[test]
fn what_the_receiver_knows_gives_no_unwanted_pad() {
    let ((mut sender, mut a), (mut receiver, mut b)) = setup("a", 6);
    let choices = random_choices(1000);
    let v = receiver.correlated(&mut b.tx, &choices).unwrap();
    let pads = sender.pads(&mut a.rx, 1000).unwrap();
    let pads = [pads.of(false), pads.of(true)];
    let unwanted: HashSet<Pad> = (0..1000).map(|j| pads[usize::from(!choices[j])][j]).collect();
    // Neither the rows nor their hashes under any tweak of the frame.
    let hash = &receiver.0.hash;
    for shift in 0..1000u128 {
        let mut tried = v.clone();
        hash.tcr_hash(shift, &mut tried);
        assert!(tried.iter().all(|pad| !unwanted.contains(pad)), "{shift}");
    }
    assert!(v.iter().all(|row| !unwanted.contains(row)));
    // With Delta, the unwanted pads can be computed, so the test looks for the right values.
    let mut other = v.clone();
    other.iter_mut().for_each(|row| xor(row, &*sender.delta));
    hash.tcr_hash(0, &mut other);
    assert!(other.iter().all(|pad| unwanted.contains(pad)));
}

#[test]
fn pads_of_another_purpose_differ() {
    let pads = |purpose| {
        let ((mut sender, mut a), (mut receiver, mut b)) = setup(purpose, 6);
        receiver.pads(&mut b.tx, &[true; 100]).unwrap();
        let pads = sender.pads(&mut a.rx, 100).unwrap();
        // Tests the extension's oracle separately from the base OTs' oracle.
        let mut fixed = [[5; 16]];
        pads.sender.common.hash.tcr_hash(0, &mut fixed);
        (fixed, pads.of(false))
    };
    let [(hash, one), (other_hash, other), (same_hash, same)] = [pads("a"), pads("b"), pads("a")];
    assert!(hash != other_hash && one.iter().zip(other.iter()).all(|(p, q)| p != q));
    assert!(hash == same_hash && *one == *same);
}

/// With equal randomness, another session or purpose encrypts the sums and checks the trees differently.
#[test]
fn what_is_sent_in_a_setup_belongs_to_one_session_and_purpose() {
    let sent = |session: u8, purpose| {
        let (session, security) = (SessionId::of([session; 32]), Security::Malicious);
        let (_, views) = run_pair(
            &session,
            |cx| Sender::setup(cx, purpose, 6, security).map(drop),
            |cx| Receiver::setup(cx, purpose, 6, security).map(drop),
        );
        (parts(&views.0[0], 0x33, 16), parts(&views.0[0], 0x35, 32))
    };
    let (sums, mut tags) = sent(1, "a");
    let hash = tags.pop();
    for (other_sums, mut other_tags) in [sent(2, "a"), sent(1, "b")] {
        assert!(sums.iter().all(|sum| !other_sums.contains(sum)));
        assert_ne!(other_tags.pop(), hash);
        // The trees are the same.
        assert_eq!(tags, other_tags);
    }
}

/// The first block of each leaf's stream, in the order of the leaves.
fn starts(trees: &[Tree]) -> Vec<Option<Pad>> {
    let start = |leaf: &Aes128| {
        let mut out = Pad::default();
        leaf.ctr(0, &mut out);
        out
    };
    trees.iter().flat_map(|tree| &tree.0).map(|leaf| leaf.as_ref().map(start)).collect()
}

#[test]
fn the_sender_gets_every_leaf_but_one_and_only_with_the_right_base_pads() {
    let rng = &mut Prng::from_seed(&[4; 32]);
    for k in [1, 3, 8] {
        let delta: [u8; 16] = rng.bytes();
        let path = path(k, &delta);
        let pairs: Secrets<[Pad; 2]> =
            (0..WIDTH).map(|_| [rng.bytes(), rng.bytes()]).collect::<Vec<_>>().into();
        let pads: Vec<Pad> = pairs.iter().zip(path.iter()).map(|(p, &b)| p[usize::from(b ^ 1)]).collect();
        let (leaves, encrypted) = plant(k, pairs, &roots(k, rng));
        let theirs = starts(&leaves.iter().map(|leaves| Tree::new(leaves)).collect::<Vec<_>>());
        // The leaves that the sender must obtain: leaf alpha + y at position y of a tree, and none at 0.
        let mut expected = Vec::new();
        for (i, depth) in depths(k).enumerate() {
            let alpha: usize =
                (0..depth).map(|l| usize::from(delta[(i * k + l) / 8] >> ((i * k + l) % 8) & 1) << l).sum();
            expected
                .extend((0..1 << depth).map(|y| (y > 0).then(|| theirs[(i << k) + (alpha ^ y)]).flatten()));
        }
        let ours = |pads: &[Pad]| {
            let seeds = punctured(k, &path, pads.to_vec().into(), &encrypted).trusted();
            starts(&seeds.iter().map(|seeds| Tree::punctured(seeds)).collect::<Vec<_>>())
        };
        assert_eq!(ours(&pads), expected);
        // Without the pads, no leaf can be computed. With one wrong pad, only leaves of its tree are wrong.
        let known: HashSet<Pad> = theirs.iter().flatten().copied().collect();
        assert_eq!(known.len(), theirs.len());
        assert!(ours(&[[0; 16]; WIDTH]).iter().flatten().all(|leaf| !known.contains(leaf)));
        for at in [0, 5, WIDTH - 1] {
            let mut wrong = pads.clone();
            wrong[at][3] ^= 1;
            let differ: Vec<usize> = ours(&wrong)
                .iter()
                .zip(&expected)
                .enumerate()
                .filter(|(_, (leaf, right))| leaf != right)
                .map(|(y, _)| y >> k)
                .collect();
            assert!(
                !differ.is_empty() && differ.iter().all(|&tree| tree == at / k),
                "k = {k}, {at}: {differ:?}"
            );
        }
    }
}

#[test]
fn folding_is_the_sum_by_its_definition() {
    for depth in [1, 2, 5, 8] {
        let leaves: Vec<Option<Aes128>> =
            (0..1usize << depth).map(|y| (y > 0).then(|| Aes128::new(&[y as u8; 16]))).collect();
        let bytes = 48;
        let (mut columns, mut all) = (vec![0; depth * bytes], vec![9; bytes]);
        fold(&leaves, 7, &mut columns, &mut all, &mut vec![9; depth * bytes]);
        let (mut expected, mut sum) = (vec![0; depth * bytes], vec![0; bytes]);
        for (y, leaf) in leaves.iter().enumerate() {
            let mut stream = vec![0; bytes];
            leaf.iter().for_each(|leaf| leaf.ctr(7, &mut stream));
            xor(&mut sum, &stream);
            let columns = expected.chunks_exact_mut(bytes).enumerate();
            columns.filter(|(l, _)| y >> l & 1 == 1).for_each(|(_, column)| xor(column, &stream));
        }
        assert!(columns == expected && all == sum, "{depth}");
    }
}

#[test]
fn a_k_out_of_range_is_an_error_before_anything_is_sent() {
    for k in [0, MAX_K + 1, usize::MAX] {
        // The peer is gone, so a setup that proceeds further fails with a different error.
        let mut ch = Channel::pair().0;
        let rng = &mut Prng::from_seed(&[1; 32]);
        assert!(matches!(
            Sender::setup(&mut Context::new(&mut ch, &SESSION, rng), "a", k, Security::SemiHonest),
            Err(Error::Bug(_))
        ));
        assert!(matches!(
            Receiver::setup(&mut Context::new(&mut ch, &SESSION, rng), "a", k, Security::SemiHonest),
            Err(Error::Bug(_))
        ));
        assert_eq!(ch.bytes_sent(), 0);
    }
}

#[test]
fn frames_share_neither_streams_nor_tweaks() {
    let choices = [true; 1000];
    let bytes = correction_bytes(1000, 6, Security::SemiHonest);
    let ((mut sender, mut a), (mut receiver, mut b)) = setup("a", 6);
    // The same choices twice: if a stream were reused, the corrections would be equal.
    receiver.pads(&mut b.tx, &choices).unwrap();
    let first = a.rx.recv_bytes(CORRECTIONS, bytes).unwrap();
    receiver.pads(&mut b.tx, &choices).unwrap();
    let second = a.rx.recv_bytes(CORRECTIONS, bytes).unwrap();
    assert_eq!((receiver.0.block, receiver.0.index), (16, 2000));
    let differ = distance(&first, &second);
    // 22,528 bits: five standard deviations are 376.
    assert!(differ.abs_diff(11_264) < 376, "{differ}");
    for at in [0, 1000] {
        b.tx.send_bytes(CORRECTIONS, &first).unwrap();
        assert_eq!(sender.pads(&mut a.rx, 1000).unwrap().tweak, at);
    }
    assert_eq!((sender.common.block, sender.common.index), (16, 2000));
}

#[test]
fn the_bytes_the_receiver_sends_look_alike_for_all_choices() {
    // Half of the bits of the corrections are set, for any choices.
    for choice in [false, true] {
        let ((_, mut a), (mut receiver, mut b)) = setup("a", 6);
        receiver.pads(&mut b.tx, &[choice; FRAME]).unwrap();
        let corrections =
            a.rx.recv_bytes(CORRECTIONS, correction_bytes(FRAME, 6, Security::SemiHonest)).unwrap();
        let ones: u32 = corrections.iter().map(|b| b.count_ones()).sum();
        // 180,224 bits: five standard deviations are 1,061.
        assert!(ones.abs_diff(90_112) < 1_061, "{ones}");
    }
}

/// The number of bits in which the two differ.
fn distance(a: &[u8], b: &[u8]) -> u32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[test]
fn delta_and_the_streams_are_others_in_every_run() {
    let run = |seeds| {
        let ((sender, mut a), (mut receiver, mut b)) = seeded(Security::SemiHonest, "a", 6, seeds);
        receiver.pads(&mut b.tx, &[true; 128]).unwrap();
        let corrections = a.rx.recv_bytes(CORRECTIONS, sender.correction_bytes(128)).unwrap();
        (*sender.delta(), corrections)
    };
    let [(delta, corrections), (other_delta, others)] = [run([1, 2]), run([3, 4])];
    for half in [0..8, 8..16] {
        // 64 bits: six standard deviations are 24.
        let distance = distance(&delta[half.clone()], &other_delta[half]);
        assert!(distance.abs_diff(32) <= 24, "{distance}");
    }
    for (a, b) in corrections.chunks(16).zip(others.chunks(16)) {
        // 128 bits: six standard deviations are 34.
        assert!(distance(a, b).abs_diff(64) <= 34, "{a:?} {b:?}");
    }
}

/// Two setups made consecutively with one generator differ in streams and Delta.
#[test]
fn every_setup_has_roots_and_a_delta_of_its_own() {
    let ((receivers, deltas), _) = run_pair(
        &SESSION,
        |cx| {
            let first = Receiver::setup(cx, "a", 6, Security::SemiHonest)?;
            Ok([first, Receiver::setup(cx, "b", 6, Security::SemiHonest)?])
        },
        |cx| {
            let first = Sender::setup(cx, "a", 6, Security::SemiHonest)?;
            Ok([*first.delta(), *Sender::setup(cx, "b", 6, Security::SemiHonest)?.delta()])
        },
    );
    assert_ne!(deltas[0], deltas[1]);
    let mut blocks = HashSet::new();
    for mut receiver in receivers {
        let (columns, _) = receiver.0.columns(16);
        blocks.extend(columns.as_chunks::<16>().0.iter().copied());
    }
    assert_eq!(blocks.len(), 2 * WIDTH);
}

/// A root reveals the receiver's choices.
#[test]
fn every_tree_has_a_root_of_its_own_that_is_another_in_every_run() {
    for k in [1, 6, 8] {
        let rng = &mut Prng::from_seed(&[4; 32]);
        let runs = [roots(k, rng), roots(k, rng), roots(k, &mut Prng::from_seed(&[5; 32]))];
        let all: HashSet<Pad> = runs.iter().flat_map(|roots| roots.to_vec()).collect();
        assert_eq!(all.len(), 3 * 128usize.div_ceil(k));
        assert!(!all.contains(&[0; 16]));
        if k == 1 {
            every_bit_is_random(&runs.iter().flat_map(|roots| roots.to_vec()).collect::<Vec<Pad>>(), 128);
        }
        // A tree is derived from its root.
        let (trees, _) = plant(k, Secrets::zeros(WIDTH), &runs[0]);
        every_bit_is_random(&trees.iter().flat_map(|leaves| leaves.to_vec()).collect::<Vec<Pad>>(), 128);
        for (i, (leaves, depth)) in trees.iter().zip(depths(k)).enumerate() {
            let grown =
                (0..depth).fold(vec![runs[0][i]].into(), |level: Secrets<Pad>, _| children(i, &level));
            assert_eq!(**leaves, *grown);
        }
    }
}

/// Trying one key on all trees gives an attacker no advantage.
#[test]
fn trees_share_no_block_even_under_equal_keys() {
    let mut seen = HashSet::new();
    let mut fresh = |blocks: &[u8]| blocks.as_chunks::<16>().0.iter().all(|block| seen.insert(*block));
    // The children of two nodes of each tree.
    for i in 0..WIDTH {
        assert!(
            fresh(children(i, &[[5; 16]]).as_flattened()) && fresh(children(i, &[[6; 16]]).as_flattened())
        );
    }
    // Streams: r_1 and r_0 + r_1 of each tree, in three frames.
    let trees = (0..WIDTH).map(|_| Tree::new(&[[7; 16], [8; 16]])).collect();
    let mut common = Common::new(&SESSION, 1, trees, None, Threads::global());
    for blocks in [1, 3, 2] {
        let (columns, sums) = common.columns(16 * blocks);
        assert!(fresh(&columns) && fresh(&sums), "{blocks}");
    }
}
