use super::*;
use crate::error::{Error, Fault};
use crate::group::Key;
use crate::group::curve25519::{self, Curve25519};
use crate::group::ristretto255::Ristretto255;
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::membership::sigma::{self, FRAME, tests::is_a_sigma_mqpmt};
use crate::rng::Prng;
use crate::testing::{
    Views, every_bit_is_random, overlapping, parts, run_pair, split_frames, under, with_frames,
};

const SESSION: SessionId = SessionId::of([5; 32]);

#[test]
fn it_is_a_sigma_mqpmt_over_every_group() {
    is_a_sigma_mqpmt(&SigmaDh(Curve25519), FRAME);
    is_a_sigma_mqpmt(&SigmaDh(Ristretto255), 60);
}

fn run_with(session: &SessionId, y: &HashedSet, x: &HashedSet, seed: u8) -> (Vec<bool>, Views) {
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let sigma = SigmaDh(Curve25519);
    let (((), bits), views) = run_pair(
        session,
        |cx| sigma::server(&sigma, cx.under(rng(0)), y, x.len()),
        |cx| sigma::client(&sigma, cx.under(rng(1)), x, y.len()),
    );
    (bits.to_vec(), views)
}

fn keys(seed: u8) -> (curve25519::Key, curve25519::Key) {
    Key::with_inverse(&mut Prng::from_seed(&[seed; 32]))
}

/// The frames of a.
fn encoding(views: &Views) -> Vec<(u16, Vec<u8>)> {
    split_frames(&views.0[1]).into_iter().filter(|frame| frame.0 == 0x21).collect()
}

/// Order invariance: under the same key a does not depend on the order of Y.
#[test]
fn the_first_message_carries_no_order() {
    let (y, x) = overlapping(500, 20, 0.5);
    let reversed: ItemSet = (0..500).rev().map(|i| y.get(i)).collect();
    let x = HashedSet::new(&x);
    let sent = [&y, &reversed].map(|y| encoding(&run_with(&SESSION, &HashedSet::new(y), &x, 1).1));
    assert!(!sent[0].is_empty() && sent[0] == sent[1]);
}

#[test]
fn the_keys_of_both_are_fresh_in_each_run() {
    let (y, x) = overlapping(50, 40, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    // The responses alone do not show whether k is fresh, because s changes them. So the check is repeated under one s.
    let [first, second] = [1, 2].map(|seed| run_with(&SESSION, &y, &x, seed).1);
    let queries = |views: &Views| parts(&views.0[0], 0x16, 32);
    assert!(queries(&first).iter().all(|query| !queries(&second).contains(query)));
    assert!(encoding(&first) != encoding(&second));
    let (_, set) = overlapping(0, 40, 0.0);
    let mut x = HashedSet::new(&set);
    under(&mut x, keys(7));
    let [first, second] = [1, 2].map(|seed| run_with(&SESSION, &y, &x, seed).1);
    assert!(queries(&first) == queries(&second));
    let responses = |views: &Views| parts(&views.0[1], 0x17, 32);
    assert!(responses(&first).iter().all(|response| !responses(&second).contains(response)));
}

/// The keys are the same, which never happens in practice, so that only the session differs.
#[test]
fn a_first_message_of_one_session_means_nothing_in_another() {
    let (y, x) = overlapping(50, 40, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let [here, there] = [SESSION, SessionId::of([6; 32])].map(|session| run_with(&session, &y, &x, 1));
    assert!(here.1.0[0] == there.1.0[0] && here.0 == there.0);
    assert!(encoding(&here.1) != encoding(&there.1));
}

#[test]
fn digests_are_of_full_width_and_no_part_of_the_points() {
    let set: ItemSet = (0..400u32).map(|i| i.to_le_bytes()).collect();
    let set = HashedSet::new(&set);
    let points = Curve25519::map_and_raise(set.own(), &keys(7).0).unwrap();
    let digests = digests(&Domain::new(&SESSION, "test"), &points);
    every_bit_is_random(&digests.iter().map(|digest| digest.to_le_bytes()).collect::<Vec<_>>(), 128);
    for (point, digest) in points.iter().zip(digests.iter()) {
        let bytes = [digest.to_le_bytes(), digest.to_be_bytes()];
        assert!(point.as_ref().windows(16).all(|part| bytes.iter().all(|bytes| part != bytes)));
    }
}

#[test]
fn unfit_points_are_refused_by_both_sides() {
    let set: ItemSet = ["a"].iter().collect();
    let set = HashedSet::new(&set);
    let mut one = [0u8; 32];
    one[0] = 1;
    for forged in [one, [0; 32], [0xff; 32]] {
        let of_server =
            with_frames(&[(0x16, &forged)], |cx| sigma::server(&SigmaDh(Curve25519), cx, &set, 1));
        let of_client =
            with_frames(&[(0x17, &forged)], |cx| sigma::client(&SigmaDh(Curve25519), cx, &set, 0).map(drop));
        let over_ristretto = with_frames(&[(0x17, &forged)], |cx| {
            sigma::client(&SigmaDh(Ristretto255), cx, &set, 0).map(drop)
        });
        for end in [of_server, of_client, over_ristretto] {
            assert!(matches!(end, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{forged:?}: {end:?}");
        }
    }
}

/// Digests of responses are compared, so queries that differ only by a point of low order count as one query.
#[test]
fn repeated_queries_are_seen_wherever_they_stand() {
    let set: ItemSet = (0..5u32).map(|i| i.to_le_bytes()).collect();
    let points = Curve25519::map_and_raise(HashedSet::new(&set).own(), &keys(7).0).unwrap();
    let repeats = |order: &[&[usize]]| {
        let frame = |some: &&[usize]| Zeroizing::new(some.iter().map(|&i| points[i]).collect::<Vec<_>>());
        SigmaDh(Curve25519).repeats(&order.iter().map(frame).collect::<Vec<_>>())
    };
    assert!(!repeats(&[]) && !repeats(&[&[0, 1, 2], &[3, 4]]));
    assert!(repeats(&[&[0, 0]]) && repeats(&[&[0, 1, 0]]) && repeats(&[&[3, 1, 2], &[4, 1]]));
}
