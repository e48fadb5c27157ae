use super::*;
use crate::error::{Error, Fault};
use crate::group::curve25519::{Curve25519, Key, map_and_raise};
use crate::group::p256::{P256, P256Compressed};
use crate::group::ristretto255::Ristretto255;
use crate::item::ItemSet;
use crate::operations::Confirmed;
use crate::operations::row::Layout;
use crate::ot::transfer::crypt;
use crate::rng::Prng;
use crate::testing::{
    Views, are_random_orders, overlapping, parts, places, run_pair, split_frames, under, with_frames,
};
use std::collections::HashSet;

const SESSIONS: [SessionId; 2] = [SessionId::of([4; 32]), SessionId::of([5; 32])];
const ROW: usize = 60;

/// Runs with one payload per item of X, or without payload if there are none.
fn run_with(
    session: &SessionId,
    y: &HashedSet,
    x: &HashedSet,
    payloads: &Items,
    seed: u8,
) -> (Matching, Views) {
    let terms = Terms { payload: !payloads.is_empty(), max_row: ROW, ..Terms::default() };
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let ((matching, _), views) = run_pair(
        session,
        |cx| receiver::<Curve25519>(cx.under(rng(0)), y, x.len(), &terms)?.open(Confirmed::for_tests()),
        |cx| sender::<Curve25519>(cx.under(rng(1)), x, payloads, y.len(), &terms).map(|_| ()),
    );
    (matching, views)
}

fn keys(seed: u8) -> (Key, Key) {
    Key::with_inverse(&mut Prng::from_seed(&[seed; 32]))
}

#[test]
fn the_receivers_points_are_in_random_order_and_another_one_in_each_run() {
    let (y, none) = (overlapping(300, 0, 0.0).0, ItemSet::default());
    let mut y = HashedSet::new(&y);
    under(&mut y, keys(7));
    let known: Vec<_> =
        map_and_raise(y.own(), &keys(7).0).unwrap().iter().map(|p| p.as_bytes().to_vec()).collect();
    let order = |seed| {
        let (_, views) = run_with(&SESSIONS[0], &y, &HashedSet::new(&none), &Items::new(), seed);
        places(&known, &parts(&views.0[1], 0x61, 32))
    };
    are_random_orders([&order(1), &order(2)]);
}

#[test]
fn the_keys_of_both_are_fresh_in_each_run() {
    let sets = overlapping(50, 40, 0.5);
    let (y, x) = (HashedSet::new(&sets.0), HashedSet::new(&sets.1));
    let [first, second] = [1, 2].map(|seed| run_with(&SESSIONS[0], &y, &x, &Items::new(), seed).1.0);
    let coding = coding(&Terms::default(), 40, 50).unwrap();
    for (party, tag) in [(1, 0x61), (0, 0x62), (0, 0x21)] {
        let [first, second] = [&first, &second].map(|view| match tag {
            0x21 => coding.received(&view[party], 40),
            _ => parts(&view[party], tag, 32),
        });
        let both: HashSet<_> = first.iter().chain(&second).collect();
        assert_eq!(both.len(), first.len() + second.len(), "{tag:#x}");
    }
    // With either party's key fixed, the other's fresh key still changes the answers.
    let mut fixed = [HashedSet::new(&sets.0), HashedSet::new(&sets.1)];
    fixed.iter_mut().for_each(|set| under(set, keys(7)));
    let answers = |y, x, seed| parts(&run_with(&SESSIONS[0], y, x, &Items::new(), seed).1.0[0], 0x62, 32);
    for (y, x) in [(&fixed[0], &x), (&y, &fixed[1])] {
        let (first, second) = (answers(y, x, 1), answers(y, x, 2));
        assert!(first.iter().all(|point| !second.contains(point)));
    }
}

#[test]
fn the_order_of_the_senders_set_does_not_show() {
    let (y, x) = overlapping(60, 300, 0.5);
    let reversed: ItemSet = (0..300).rev().map(|i| x.get(i)).collect();
    let payload = |i: usize| vec![i as u8; i % 50];
    let seen = |x: &ItemSet, payloads: Items| {
        let (mut y, mut x) = (HashedSet::new(&y), HashedSet::new(x));
        under(&mut y, keys(7));
        under(&mut x, keys(8));
        run_with(&SESSIONS[0], &y, &x, &payloads, 1).1.0[0].clone()
    };
    let as_it_is = seen(&x, (0..300).map(payload).collect());
    assert!(as_it_is == seen(&reversed, (0..300).rev().map(payload).collect()));
    let tags = Coding::new(128, 300).received(&as_it_is, 300);
    assert!(tags.is_sorted_by(|a, b| a < b));
}

/// R sees the tag of every x. The tag must not decrypt the row.
#[test]
fn a_tag_does_not_open_its_row() {
    let (y, x) = overlapping(40, 50, 0.0);
    let payloads: Items = (0..50).map(|_| vec![]).collect();
    let (_, views) = run_with(&SESSIONS[0], &HashedSet::new(&y), &HashedSet::new(&x), &payloads, 1);
    let tags = Coding::new(128, 50).received(&views.0[0], 50);
    let tags = tags.into_iter().map(|tag| Pad::try_from(tag).unwrap());
    let mut rows = split_frames(&views.0[0]).pop().unwrap().1;
    let width = Layout::<1>::new(ROW).width();
    crypt(&mut rows, width, 0, &tags.collect::<Vec<_>>(), |_, _| ());
    // The plaintext of each row is all zeros.
    assert!(rows.len() == 50 * width && rows.chunks(width).all(|row| row.iter().any(|&byte| byte != 0)));
}

#[test]
fn tags_and_keys_differ_for_each_value_and_session() {
    let hashes = HashedSet::new(&overlapping(30, 0, 0.0).0).own().to_vec();
    let values = map_and_raise(&hashes, &keys(7).0).unwrap();
    let (mut tags, mut keys) = (HashSet::new(), HashSet::new());
    for session in &SESSIONS {
        let mut derived = Derived::new(session, Coding::new(128, 30), true, 30);
        derived.fill(0, &values[..20]);
        derived.fill(20, &values[20..]);
        tags.extend(derived.tags.bytes());
        keys.extend(derived.keys.iter().map(|key| key.to_vec()));
    }
    // No tag is a key, and neither is the prefix of a value.
    let values: HashSet<_> = values.iter().map(|p| p.as_bytes()[..16].to_vec()).collect();
    assert_eq!([tags.len(), keys.len()], [60, 60]);
    assert!(tags.is_disjoint(&keys) && tags.is_disjoint(&values) && keys.is_disjoint(&values));
}

#[test]
fn points_of_low_order_are_refused_by_both_sides() {
    let mut one = [0u8; 32];
    one[0] = 1;
    let set: ItemSet = ["a"].iter().collect();
    let (set, none, terms) = (HashedSet::new(&set), Items::new(), Terms::default());
    for forged in [one, [0; 32], [0xff; 32]] {
        let by_receiver =
            with_frames(&[(0x62, &forged)], |cx| receiver::<Curve25519>(cx, &set, 1, &terms).map(|_| ()));
        let by_sender = with_frames(&[(0x61, &forged)], |cx| {
            sender::<Curve25519>(cx, &set, &none, 1, &terms).map(|_| ())
        });
        // In ristretto255, the first is a negative element, the second the identity, the third not reduced.
        let in_ristretto255 = [
            with_frames(&[(0x62, &forged)], |cx| receiver::<Ristretto255>(cx, &set, 1, &terms).map(|_| ())),
            with_frames(&[(0x61, &forged)], |cx| {
                sender::<Ristretto255>(cx, &set, &none, 1, &terms).map(|_| ())
            }),
        ];
        for e in [by_receiver, by_sender].into_iter().chain(in_ristretto255) {
            assert!(matches!(e, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{e:?}");
        }
    }
}

#[test]
fn what_is_no_point_of_p256_is_refused_by_both_sides() {
    fn refuses<G: Group>(forged: &[&[u8]]) {
        let set: ItemSet = ["a"].iter().collect();
        let (set, none, terms) = (HashedSet::new(&set), Items::new(), Terms::default());
        for forged in forged {
            let ends = [
                with_frames(&[(0x62, forged)], |cx| receiver::<G>(cx, &set, 1, &terms).map(|_| ())),
                with_frames(&[(0x61, forged)], |cx| sender::<G>(cx, &set, &none, 1, &terms).map(|_| ())),
            ];
            for e in ends {
                assert!(matches!(e, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{} {e:?}", G::NAME);
            }
        }
    }
    // An encoding that is not canonical, and points off the curve, which may encode the identity.
    refuses::<P256>(&[&[0xff; 64], &[0; 64], &[5; 64]]);
    let (mut one, mut four) = ([0; 32], [0; 32]);
    (one[31], four[31]) = (1, 4);
    refuses::<P256Compressed>(&[&[0xff; 32], &one, &four]);
}
