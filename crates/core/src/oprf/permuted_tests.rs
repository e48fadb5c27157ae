use super::*;
use crate::error::{Error, Fault};
use crate::group::curve25519::{self, Curve25519};
use crate::group::ristretto255::{self, Ristretto255};
use crate::group::{Key, Unfit};
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::rng::Prng;
use crate::testing::{
    Views, are_random_orders, every_bit_is_random, overlapping, parts, run_pair, sizes, under, with_frames,
};

const SESSION: SessionId = SessionId::of([5; 32]);

/// The outputs and the views of the receiver and the sender.
struct Ran {
    f_y: Secrets<u128>,
    order: Vec<u32>,
    f_x: Secrets<u128>,
    views: Views,
}

/// The receiver's inputs are Y in its own order; the sender evaluates F at all of X.
fn run_with<G: Group>(
    protocol: &PermutedOprf<G>,
    session: SessionId,
    y: &HashedSet,
    x: &HashedSet,
    seed: u8,
) -> Ran {
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let all = |set: &HashedSet| (0..set.len() as u32).collect::<Vec<_>>();
    let ((f_y, (order, f_x)), views) = run_pair(
        &session,
        |cx| protocol.receiver(cx.under(rng(0)), y, &all(y)),
        |cx| {
            let keyed = protocol.sender(cx.under(rng(1)), x, y.len())?;
            Ok((keyed.order().to_vec(), keyed.values(&all(x))?))
        },
    );
    Ran { f_y, order, f_x, views }
}

fn set(items: std::ops::Range<usize>) -> ItemSet {
    items.map(|i| i.to_string()).collect()
}

fn gives_its_values_in_the_order_of_the_permutation<G: Group>(group: G, frame: usize) {
    for (n_y, n_x) in sizes(frame) {
        // The sender has all items of the receiver, followed by some of its own.
        let (y, x) = (set(0..n_y), set(0..n_y + n_x));
        let ran = run_with(&PermutedOprf(group), SESSION, &HashedSet::new(&y), &HashedSet::new(&x), 1);
        assert_eq!((ran.f_y.len(), ran.order.len(), ran.f_x.len()), (n_y, n_y, n_y + n_x));
        for (value, &i) in ran.f_y.iter().zip(&ran.order) {
            assert_eq!(*value, ran.f_x[i as usize], "{n_y} {n_x}");
        }
        let distinct: std::collections::HashSet<u128> = ran.f_x.iter().copied().collect();
        assert_eq!(distinct.len(), n_y + n_x, "F differs at different inputs");
    }
}

#[test]
fn the_receiver_gets_the_values_in_the_order_of_the_permutation() {
    gives_its_values_in_the_order_of_the_permutation(Ristretto255, FRAME);
    gives_its_values_in_the_order_of_the_permutation(Curve25519, 60);
}

#[test]
fn the_receiver_evaluates_at_the_positions_it_names() {
    let (y, none) = (set(0..5), set(0..0));
    let (y, none) = (HashedSet::new(&y), HashedSet::new(&none));
    let ((some, keyed), _) = run_pair(
        &SESSION,
        |cx| PermutedOprf(Ristretto255).receiver(cx, &y, &[3, 1]),
        |cx| {
            let keyed = PermutedOprf(Ristretto255).sender(cx, &y, 2)?;
            Ok([keyed.order()[0], keyed.order()[1]].map(|i| keyed.values(&[[3, 1][i as usize]]).unwrap()[0]))
        },
    );
    assert_eq!(*some, keyed);
    // A sender without a set of its own still has a key.
    let ran = run_with(&PermutedOprf(Ristretto255), SESSION, &y, &none, 1);
    assert_eq!((ran.f_y.len(), ran.f_x.len()), (5, 0));
}

/// An order within frames would show the receiver in which frame of its set a match is.
#[test]
fn the_permutation_is_random_over_the_whole_set_and_another_one_in_each_run() {
    let y = set(0..FRAME + 2000);
    let (y, none) = (HashedSet::new(&y), ItemSet::default());
    let x = HashedSet::new(&none);
    let [first, second] = [1, 2].map(|seed| run_with(&PermutedOprf(Curve25519), SESSION, &y, &x, seed).order);
    let [first, second] = [first, second].map(|order| order.iter().map(|&i| i as usize).collect::<Vec<_>>());
    are_random_orders([&first, &second]);
    // Of the 2000 inputs after the first frame, 392 are expected in the last 2000 places, with a standard deviation of 16.
    let stayed = first[FRAME..].iter().filter(|i| **i >= FRAME).count();
    assert!((280..510).contains(&stayed), "{stayed}");
}

#[test]
fn the_keys_of_both_are_fresh_in_each_run() {
    let (y, x) = overlapping(50, 40, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let [first, second] = [1, 2].map(|seed| run_with(&PermutedOprf(Ristretto255), SESSION, &y, &x, seed));
    // s shows in what the sender receives, and k in F.
    let masked = |ran: &Ran| parts(&ran.views.0[1], 0x13, 32);
    assert!(masked(&first).iter().all(|point| !masked(&second).contains(point)));
    assert!(first.f_x.iter().all(|value| !second.f_x.contains(value)));
    assert!(first.f_y.iter().all(|value| !second.f_y.contains(value)));
}

/// The sender could look up an item that arrives unmasked, and the receiver would know the value of a point that comes back
/// unchanged.
#[test]
fn what_a_party_receives_is_under_the_key_of_the_other() {
    let y = set(0..200);
    let mut y = HashedSet::new(&y);
    let keys = || curve25519::Key::with_inverse(&mut Prng::from_seed(&[7; 32]));
    under(&mut y, keys());
    let none = ItemSet::default();
    let ran = run_with(&PermutedOprf(Curve25519), SESSION, &y, &HashedSet::new(&none), 1);
    // The sender's generator draws the key first.
    let k = curve25519::Key::random(&mut Prng::from_seed(&[2 + 1; 32]));
    let masked = Curve25519::map_and_raise(y.own(), &keys().0).unwrap();
    let sent: Vec<Vec<u8>> = masked.iter().map(|p| p.as_ref().to_vec()).collect();
    assert_eq!(parts(&ran.views.0[1], 0x13, 32), sent);
    let raised = Curve25519::raise(&masked, &k).unwrap();
    let back: Vec<Vec<u8>> = ran.order.iter().map(|&i| raised[i as usize].as_ref().to_vec()).collect();
    assert_eq!(parts(&ran.views.0[0], 0x14, 32), back);
}

/// The keys are the same, which never happens in practice, so that only the session differs.
#[test]
fn values_of_one_session_mean_nothing_in_another() {
    let (y, x) = overlapping(50, 40, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let [here, there] = [SESSION, SessionId::of([6; 32])]
        .map(|session| run_with(&PermutedOprf(Ristretto255), session, &y, &x, 1));
    assert!(here.views.0 == there.views.0);
    assert!(here.f_x.iter().all(|value| !there.f_x.contains(value)));
    assert!(here.f_y.iter().all(|value| !there.f_y.contains(value)));
}

#[test]
fn values_are_of_full_width_and_no_part_of_the_points() {
    let x = set(0..400);
    let x = HashedSet::new(&x);
    let none = ItemSet::default();
    let ran = run_with(&PermutedOprf(Ristretto255), SESSION, &HashedSet::new(&none), &x, 1);
    every_bit_is_random(&ran.f_x.iter().map(|value| value.to_le_bytes()).collect::<Vec<_>>(), 128);
    let key = ristretto255::Key::random(&mut Prng::from_seed(&[3; 32]));
    let points = Ristretto255::map_and_raise(x.own(), &key).unwrap();
    for (point, value) in points.iter().zip(ran.f_x.iter()) {
        let bytes = [value.to_le_bytes(), value.to_be_bytes()];
        assert!(point.as_ref().windows(16).all(|part| bytes.iter().all(|bytes| part != bytes)));
    }
}

/// A sender that answers before it has all inputs cannot permute over the whole set.
#[test]
fn the_sender_answers_when_all_inputs_have_come() {
    let none = ItemSet::default();
    let y = set(0..FRAME);
    let key = ristretto255::Key::random(&mut Prng::from_seed(&[9; 32]));
    let points = Ristretto255::map_and_raise(HashedSet::new(&y).own(), &key).unwrap();
    let frame: Vec<u8> = points.iter().flat_map(|p| p.as_ref().to_vec()).collect();
    let mut sent = 0;
    let result = with_frames(&[(0x13, &frame)], |cx| {
        let result = PermutedOprf(Ristretto255).sender(cx, &HashedSet::new(&none), FRAME + 1).map(drop);
        sent = cx.ch.bytes_sent();
        result
    });
    assert!(matches!(result, Err(Error::Network(_))), "{result:?}");
    assert_eq!(sent, 0);
}

#[test]
fn what_is_no_element_or_the_identity_is_refused_by_both_sides() {
    let y = set(0..3);
    let y = HashedSet::new(&y);
    let key = ristretto255::Key::random(&mut Prng::from_seed(&[9; 32]));
    let good: Vec<u8> = Ristretto255::map_and_raise(y.own(), &key)
        .unwrap()
        .iter()
        .flat_map(|p| p.as_ref().to_vec())
        .collect();
    let mut negative = [0; 32];
    negative[0] = 1;
    for (tag, receives) in [(0x13, false), (0x14, true)] {
        let ends = |body: &[u8]| {
            with_frames(&[(tag, body)], |cx| match receives {
                true => PermutedOprf(Ristretto255).receiver(cx, &y, &[0, 1, 2]).map(drop),
                false => PermutedOprf(Ristretto255).sender(cx, &y, 3).map(drop),
            })
        };
        assert_eq!(ends(&good), Ok(()));
        // The identity, a negative element, one that is not reduced.
        for forged in [[0; 32], negative, [0xff; 32]] {
            for at in 0..3 {
                let mut body = good.clone();
                body[32 * at..][..32].copy_from_slice(&forged);
                let e = ends(&body).unwrap_err();
                assert!(
                    matches!(e, Error::Peer { fault: Fault::Misbehaved, .. })
                        && e.to_string().contains("of ristretto255"),
                    "{e}"
                );
            }
        }
        for body in [&good[..64], &[], &[&good[..], &good[..32]].concat()] {
            assert!(matches!(ends(body), Err(Error::Peer { fault: Fault::Misbehaved, .. })));
        }
    }
}

/// The figures draw keys from all of Z_p. With a key of 0, everything is the identity, which is refused before it is sent.
#[test]
fn a_key_of_zero_sends_nothing() {
    let y = set(0..3);
    let y = HashedSet::new(&y);
    let zero = ristretto255::Key::of_ours(&[0; 32]).unwrap();
    assert!(Ristretto255::map_and_raise(y.own(), &zero) == Err(Unfit));
    let one = ristretto255::Key::random(&mut Prng::from_seed(&[9; 32]));
    let points = Ristretto255::map_and_raise(y.own(), &one).unwrap();
    assert!(Ristretto255::raise(&points, &zero) == Err(Unfit));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (y, x) = overlapping(1000, 700, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let views = |threads| {
        let threads = Threads::new(threads).unwrap();
        let order: Vec<u32> = (0..1000).collect();
        let ((values, _), views) = run_pair(
            &SESSION,
            |cx| PermutedOprf(Ristretto255).receiver(&mut cx.on(&threads), &y, &order),
            |cx| {
                PermutedOprf(Ristretto255)
                    .sender(&mut cx.on(&threads), &x, 1000)
                    .map(|keyed| keyed.order().to_vec())
            },
        );
        (values.to_vec(), views.0)
    };
    assert!(views(1) == views(3));
}
