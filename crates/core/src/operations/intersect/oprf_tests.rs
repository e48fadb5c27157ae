use super::*;
use crate::channel::Channel;
use crate::channel::Message;
use crate::error::Fault;
use crate::item::ItemSet;
use crate::operations::Confirmed;
use crate::oprf::Ideal;
use crate::oprf::multi_point::MultiPoint;
use crate::rng::Prng;
use crate::testing::ANY_SESSION;
use crate::testing::{SEEDS, Views, overlapping, run_pair, split_frames};

const SESSION: SessionId = SessionId::of([4; 32]);

/// The tag and body of each frame.
type Frames = Vec<(u16, Vec<u8>)>;

const TERMS: Terms = Terms {
    payload: false,
    max_row: 60,
    both: false,
    modulus: crate::operations::sum::Modulus::Bits64,
    min_count: 0,
    malicious_sender: false,
    reveal_count: false,
    shared_values: false,
    several: false,
    bare: false,
    filter: None,
    shards: 0,
};

fn reordered(set: &ItemSet) -> ItemSet {
    (0..set.len()).rev().map(|i| set.get(i)).collect()
}

fn run_over(
    protocol: &(impl Oprf + Sync),
    y: &HashedSet,
    x: &HashedSet,
    payloads: &Items,
    terms: &Terms,
) -> (Matching, Views) {
    let ((matching, _), views) = run_pair(
        &SESSION,
        |cx| receiver(protocol, cx, y, x.len(), terms)?.open(Confirmed::for_tests()),
        |cx| sender(protocol, cx, x, payloads, y.len(), terms).map(|_| ()),
    );
    (matching, views)
}

#[test]
fn the_order_of_neither_set_shows() {
    let (y, x) = overlapping(300, 200, 0.5);
    let no_payloads = Items::new();
    for malicious_sender in [false, true] {
        let protocol = MultiPoint { malicious_sender };
        let terms = Terms { malicious_sender, ..TERMS };
        let views = |y: &ItemSet, x: &ItemSet| {
            run_over(&protocol, &HashedSet::new(y), &HashedSet::new(x), &no_payloads, &terms).1
        };
        let as_they_are = views(&y, &x);
        assert!(as_they_are.0 == views(&reordered(&y), &reordered(&x)).0);
        // The bytes depend on the sets: other sets give other bytes.
        let other = overlapping(301, 201, 0.5).1;
        let other: ItemSet = (0..200).map(|i| other.get(i + 1)).collect();
        assert!(as_they_are.0[0] != views(&y, &other).0[0]);
        // One tag per item, and no two of them are equal.
        let coding = coding(&terms, 200, 300).unwrap();
        assert_eq!(coding.lengths(), if malicious_sender { (96, 3) } else { (57, 0) });
        let tags = coding.received(&as_they_are.0[0], 200);
        assert!(tags.is_sorted_by(|a, b| a < b));
    }
}

#[test]
fn tags_are_as_long_as_the_sizes_ask_for() {
    let lengths = |payload, malicious_sender, n_x, n_y| {
        coding(&Terms { payload, malicious_sender, ..TERMS }, n_x, n_y).ok().map(|coding| coding.lengths())
    };
    let n = 1 << 20;
    assert_eq!([lengths(false, false, n, n), lengths(false, true, n, n)], [Some((80, 0)), Some((96, 4))]);
    assert_eq!([lengths(true, false, n, n), lengths(true, true, n, n)], [Some((96, 4)); 2]);
    let most = crate::params::MAX_SET;
    assert_eq!(
        [lengths(false, false, most, most), lengths(true, true, most, most)],
        [Some((96, 0)), Some((96, 5))]
    );
    assert_eq!(lengths(false, true, 1, 1 << 40), None);
}

/// The shards of a job share its error bound.
#[test]
fn tags_of_a_shard_are_longer() {
    let lengths = |shards| coding(&Terms { shards, ..TERMS }, 200, 300).unwrap().lengths();
    assert_eq!([0, 2, 64].map(lengths), [(57, 0), (58, 0), (63, 0)]);
}

#[test]
fn dummies_match_nothing_and_have_no_payload() {
    let (y, x) = overlapping(60, 50, 0.5);
    let payloads: Items = (0..50u8).map(|i| vec![i; usize::from(i)]).collect();
    for malicious_sender in [false, true] {
        for payload in [false, true] {
            let terms = Terms { payload, malicious_sender, ..TERMS };
            let rng = &mut Prng::from_seed(&[5; 32]);
            let y = HashedSet::padded(&y, 70, rng);
            let x = HashedSet::padded(&x, 90, rng);
            let payloads = if payload { payloads.clone() } else { Items::new() };
            let (matching, _) = run_over(&MultiPoint { malicious_sender }, &y, &x, &payloads, &terms);
            // The last 25 items of Y are the first 25 of X.
            assert!(matching.positions.iter().copied().eq(35..60));
            let expected: Items = (0..if payload { 25 } else { 0 }).map(|i| payloads.get(i)).collect();
            assert!(matching.payloads == expected);
        }
    }
}

#[test]
fn payloads_of_what_the_receiver_does_not_have_are_noise() {
    let (y, x) = overlapping(200, 200, 0.0);
    let payloads: Items = (0..200).map(|_| vec![]).collect();
    let terms = Terms { payload: true, ..TERMS };
    let (matching, views) = run_over(&Ideal, &HashedSet::new(&y), &HashedSet::new(&x), &payloads, &terms);
    assert!(matching == Matching::default());
    let (_, rows) = split_frames(&views.0[0]).pop().unwrap();
    assert_eq!(rows.len(), 200 * 61);
    // Encrypted rows of zeros: half of the bits are ones.
    let ones: u32 = rows.iter().map(|byte| byte.count_ones()).sum();
    let mean = rows.len() as f64 * 4.0;
    assert!((f64::from(ones) - mean).abs() < 6.0 * (mean / 2.0).sqrt(), "{ones} of {mean}");
}

/// R sees the tag of every x. The tag must reveal nothing about the key of its row, since R may read only the
/// rows of its own items.
#[test]
fn keys_of_rows_do_not_follow_from_tags() {
    let mut rng = Prng::from_seed(&[8; 32]);
    let values: Vec<Output> = (0..300).map(|_| rng.bytes()).collect();
    let tags = |session, payload| tags_of(&session, &values, Coding::new(128, 300), payload).bytes();
    let key = |value: &Output| padder(&SESSION)(value);
    let keys: std::collections::HashSet<Pad> = values.iter().map(key).collect();
    assert_eq!(keys.len(), 300, "keys of different items");
    for ((value, tag), plain) in values.iter().zip(tags(SESSION, true)).zip(tags(SESSION, false)) {
        // The tag itself, and the tag hashed once more.
        let mut as_value = Output::default();
        as_value[..16].copy_from_slice(&tag);
        assert!(!keys.contains(&tag[..]) && !keys.contains(&key(&as_value)));
        assert!(!keys.contains(&plain[..]) && !keys.contains(&value[16..]));
        // With payload the tag is no part of the value, from which the key is hashed.
        assert!(tag != value[..16] && tag != value[16..] && plain == value[..16]);
        // The key depends on the whole value.
        for place in [0, 15, 16, 31] {
            let mut other = *value;
            other[place] ^= 1;
            assert_ne!(key(&other), key(value), "{place}");
        }
        assert_ne!(padder(&SessionId::of([5; 32]))(value), key(value));
    }
    assert_ne!(tags(SessionId::of([5; 32]), true), tags(SESSION, true));
}

/// The rows are all zeros, so their bytes on the wire are the keystreams.
#[test]
fn no_row_can_be_read_by_tags_or_by_the_key_of_another() {
    let (y, x) = overlapping(40, 50, 0.0);
    let payloads: Items = (0..50).map(|_| vec![]).collect();
    let terms = Terms { payload: true, ..TERMS };
    let (_, views) = run_over(&Ideal, &HashedSet::new(&y), &HashedSet::new(&x), &payloads, &terms);
    let frames = split_frames(&views.0[0]);
    let (tags, rows) = (coding(&terms, 50, 40).unwrap().received(&views.0[0], 50), &frames[3].1);
    assert_eq!((tags.len(), rows.len()), (50, 50 * 61));
    let streams: std::collections::HashSet<&[u8]> = rows.chunks(61).map(|row| &row[..16]).collect();
    assert_eq!(streams.len(), 50);
    for tag in tags {
        // No row decrypts to zeros under a tag as the key.
        let mut opened = rows.clone();
        crate::ot::transfer::crypt(&mut opened, 61, 0, &[tag[..].try_into().unwrap(); 50], |_, _| ());
        assert!(opened.chunks(61).all(|row| row.iter().any(|&byte| byte != 0)));
    }
}

/// Two runs with the same session and the same sets.
#[test]
fn tags_and_rows_are_fresh_in_every_run() {
    let (y, x) = overlapping(40, 50, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let payloads: Items = (0..50).map(|_| vec![]).collect();
    for (payload, protocol) in [false, true].map(|p| (p, MultiPoint::default())) {
        let terms = Terms { payload, ..TERMS };
        let payloads = if payload { payloads.clone() } else { Items::new() };
        let seen = |seed: u8| {
            let (_, views) = run_pair(
                &SESSION,
                |cx| {
                    *cx.rng = Prng::from_seed(&[seed; 32]);
                    receiver(&protocol, cx, &y, x.len(), &terms)?.open(Confirmed::for_tests())
                },
                |cx| {
                    *cx.rng = Prng::from_seed(&[seed + 1; 32]);
                    sender(&protocol, cx, &x, &payloads, y.len(), &terms).map(|_| ())
                },
            );
            // The prefixes of tags and rows.
            let tags = coding(&terms, 50, 40).unwrap().received(&views.0[0], 50);
            let all = tags.into_iter().chain(crate::testing::parts(&views.0[0], 0x65, 61));
            all.map(|part| part[..7].to_vec()).collect::<Vec<_>>()
        };
        let [one, other] = [seen(1), seen(3)];
        assert_eq!(one.len(), if payload { 100 } else { 50 });
        assert!(one.iter().all(|part| !other.contains(part)));
    }
}

/// If tags were sorted frame by frame, a frame would reveal which items are among the first of X.
#[test]
fn tags_of_several_frames_are_sorted_over_all_of_them() {
    let (n_x, mut rng) = (2 * tags::FRAME + 60, Prng::from_seed(&[8; 32]));
    let values: Vec<Output> = (0..n_x).map(|_| rng.bytes()).collect();
    let coding = Coding::new(104, n_x);
    let (_, views) = run_pair(
        &ANY_SESSION,
        |cx| {
            // Heads and tails, with any content.
            for n in crate::channel::frames(n_x, tags::FRAME) {
                cx.ch.rx.recv_bounded(Message::new(0x21, "tags"), 1 << 20)?;
                cx.ch.rx.recv_bytes(Message::new(0x64, "tails"), n)?;
            }
            Ok(())
        },
        |cx| {
            let keys = |_: &[u32]| Secrets::zeros(0);
            let tags = tags_of(&ANY_SESSION, &values, coding, false);
            tags::sender(cx, tags, keys, (&Items::new(), n_x), 3, &TERMS).map(drop)
        },
    );
    let mut expected: Vec<&[u8]> = values.iter().map(|value| &value[..13]).collect();
    expected.sort_unstable();
    assert!(coding.received(&views.0[0], n_x) == expected);
}

#[test]
fn forged_tags_and_rows_are_errors() {
    let (y, x) = overlapping(30, 20, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let payloads: Items = (0..20u8).map(|i| vec![i; 5]).collect();
    for (payload, malicious_sender) in [(false, false), (false, true), (true, false)] {
        let terms = Terms { payload, malicious_sender, ..TERMS };
        let none = Items::new();
        let (_, views) = run_over(&Ideal, &y, &x, if payload { &payloads } else { &none }, &terms);
        let honest = split_frames(&views.0[0]);
        let fed = |frames: &[(u16, Vec<u8>)]| {
            let (mut peer, mut ch) = crate::channel::Channel::pair();
            for (tag, body) in frames {
                peer.tx.send_bytes(Message::new(*tag, "forged"), body).unwrap();
            }
            drop(peer);
            let rng = &mut Prng::from_seed(&SEEDS[0]);
            receiver(&Ideal, &mut Context::new(&mut ch, &SESSION, rng), &y, 20, &terms)?
                .open(Confirmed::for_tests())
                .map(|_| ())
        };
        assert_eq!(fed(&honest), Ok(()));
        let with = |forge: &dyn Fn(&mut Frames)| {
            let mut frames = honest.clone();
            forge(&mut frames);
            fed(&frames).unwrap_err()
        };
        let at_tags = 1;
        let coding = coding(&terms, 20, 30).unwrap();
        let rice = |n: u128| n << (coding.lengths().0 - 6);
        let mut forged = vec![
            ("short", with(&|f| f[at_tags].1.truncate(19 * 5)), "in the middle of a tag"),
            ("long", with(&|f| f[at_tags].1.push(0)), "longer than its tags"),
            ("longer", with(&|f| f[at_tags].1.extend([0xff; 1000])), "tags of a set"),
            ("other", with(&|f| f[at_tags].0 = 0x62), "tags of a set"),
        ];
        // Tags 0, 2, 3 and so on; later the first one twice.
        let mut heads: Vec<u128> = (0..20).map(|i| rice(i + u128::from(i > 0))).collect();
        let of_heads = |heads: &[u128]| {
            let mut frames = honest.clone();
            frames[at_tags].1 = coding.frame(heads);
            fed(&frames)
        };
        assert_eq!(of_heads(&heads), Ok(()));
        heads[1] = heads[0];
        let equal = of_heads(&heads);
        if payload || malicious_sender {
            forged.push(("equal", equal.unwrap_err(), "two of its tags are equal"));
            forged.push(("short tails", with(&|f| f[2].1.truncate(19)), "tails of the tags"));
        } else {
            // Equal tags are legal: tags of different items may collide.
            assert_eq!(equal, Ok(()));
        }
        if payload {
            forged.extend([
                ("short rows", with(&|f| f[3].1.truncate(100)), "payloads of x"),
                ("long rows", with(&|f| f[3].1.push(0)), "payloads of x"),
                ("rows of noise", with(&|f| f[3].1.fill(0x5a)), "does not belong to the match"),
            ]);
        }
        for (what, error, name) in forged {
            assert!(
                matches!(&error, Error::Peer { fault: Fault::Misbehaved, what: m, .. } if m.contains(name)),
                "{what}: {error}"
            );
        }
    }
}

#[test]
fn a_payload_longer_than_a_row_is_found_before_anything_is_sent() {
    let (_, x) = overlapping(0, 3, 0.0);
    let payloads: Items = [vec![0; 60], vec![0; 61], vec![]].into_iter().collect();
    let mut ch = Channel::pair().0;
    let terms = Terms { payload: true, ..TERMS };
    let result = sender(
        &MultiPoint::default(),
        &mut Context::new(&mut ch, &SESSION, &mut Prng::from_seed(&SEEDS[1])),
        &HashedSet::new(&x),
        &payloads,
        3,
        &terms,
    );
    assert!(matches!(result.map(|_| ()), Err(Error::Bug(_))));
    assert_eq!(ch.bytes_sent(), 0);
}
