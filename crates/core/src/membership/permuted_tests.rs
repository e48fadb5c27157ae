use super::*;
use crate::error::Fault;
use crate::group::curve25519::{self, Curve25519, map_and_raise};
use crate::group::ristretto255::Ristretto255;
use crate::group::{Group, Key};
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::membership::sigma::FRAME;
use crate::membership::sigma::dh::SigmaDh;
use crate::membership::sigma::tests::{Ideal as IdealSigma, plain};
use crate::rng::Prng;
use crate::testing::{Views, are_random_orders, overlapping, parts, run_pair, sizes, under, with_frames};
use crate::threads::Threads;
use curve25519_dalek::constants::EIGHT_TORSION;
use curve25519_dalek::montgomery::MontgomeryPoint;

const SESSION: SessionId = SessionId::of([5; 32]);

fn check<P: PermutedMqpmt + MqrpmtStar + Sync>(protocol: &P, y: &ItemSet, x: &ItemSet, what: &str) {
    let expected = plain(y, x);
    let matches = expected.iter().filter(|bit| **bit).count();
    let (y, x) = (&HashedSet::new(y), &HashedSet::new(x));
    let (((), bits), _) = run_pair(
        &SESSION,
        |cx| PermutedMqpmt::server(protocol, cx, y, x.len()),
        |cx| PermutedMqpmt::client(protocol, cx, x, y.len()),
    );
    assert_eq!((bits.len(), cardinality(&bits, y.len())), (x.len(), Ok(matches)), "{what}");
    let ((e, (order, count)), _) = run_pair(
        &SESSION,
        |cx| MqrpmtStar::server(protocol, cx, y, x.len()),
        |cx| MqrpmtStar::client(protocol, cx, x, y.len()),
    );
    let mut by_item = vec![false; x.len()];
    order.iter().zip(e.iter()).for_each(|(&i, &bit)| by_item[i as usize] = bit);
    assert_eq!((by_item, count), (expected, matches), "{what}");
}

#[test]
fn the_outputs_are_those_of_the_plain_computation() {
    for (n_y, n_x) in sizes(FRAME) {
        for overlap in [0.0, 0.5, 1.0] {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let what = format!("{n_y} {n_x} {overlap}");
            check(&PermuteThenTest(IdealSigma), &y, &x, &what);
            if overlap == 0.5 {
                check(&PermuteThenTest(SigmaDh(Curve25519)), &y, &x, &what);
            }
            if n_y < 100 && n_x < 100 {
                check(&PermuteThenTest(SigmaDh(Ristretto255)), &y, &x, &what);
                check(&Ideal, &y, &x, &what);
            }
        }
    }
}

/// Variants without a permutation: the client's bits in the order of its queries, and the server's bits where the client did
/// not permute its queries.
struct InOrder;

impl InOrder {
    /// A Sigma-mqPMT whose responses are not permuted.
    fn client_of_sigma(y: &HashedSet, x: &HashedSet) -> Secrets<bool> {
        let sigma = SigmaDh(Curve25519);
        let server = |cx: &mut Context| sigma::server(&sigma, cx, y, x.len());
        run_pair(&SESSION, server, |cx| sigma::client(&sigma, cx, x, y.len())).0.1
    }

    /// Figure 11 as printed: queries in the order of the set.
    fn server_of_the_printed_form(y: &HashedSet, x: &HashedSet) -> Secrets<bool> {
        let protocol = PermuteThenTest(SigmaDh(Curve25519));
        let client = |cx: &mut Context| {
            let in_order: Vec<u32> = (0..x.len() as u32).collect();
            let bits = sigma::ask(&protocol.0, cx, x, y.len(), &in_order)?;
            let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
            cx.ch.tx.send_bytes(E, &bits.chunks(8).map(byte).collect::<Vec<u8>>())
        };
        run_pair(&SESSION, |cx| MqrpmtStar::server(&protocol, cx, y, x.len()), client).0.0
    }
}

#[test]
fn the_positions_of_the_bits_carry_no_order_for_either_party() {
    // The first half of X matches.
    let n = 2000;
    let y: ItemSet = (0..n / 2).map(|i: u32| i.to_le_bytes()).collect();
    let x: ItemSet = (0..n).map(|i: u32| i.to_le_bytes()).collect();
    let (y, x) = (&HashedSet::new(&y), &HashedSet::new(&x));
    let in_first_half = |bits: &[bool]| bits[..n as usize / 2].iter().filter(|&&b| b).count();
    let protocol = PermuteThenTest(SigmaDh(Curve25519));
    // The client knows the order of its queries. It puts the bits where they would belong if responses were in order.
    let ((order, bits), _) = {
        let client = |cx: &mut Context| protocol.ask(cx, x, y.len());
        let (((), both), views) =
            run_pair(&SESSION, |cx| PermutedMqpmt::server(&protocol, cx, y, n as usize), client);
        (both, views)
    };
    let mut guessed = vec![false; n as usize];
    order.iter().zip(bits.iter()).for_each(|(&i, &bit)| guessed[i as usize] = bit);
    // 1000 matches over 2000 positions: mean 500, standard deviation 11.2.
    assert!((440..560).contains(&in_first_half(&guessed)), "{}", in_first_half(&guessed));
    assert_eq!(in_first_half(&InOrder::client_of_sigma(y, x)), 1000, "the test tells the other form apart");
    let ((e, _), _) = run_pair(
        &SESSION,
        |cx| MqrpmtStar::server(&protocol, cx, y, n as usize),
        |cx| MqrpmtStar::client(&protocol, cx, x, y.len()),
    );
    assert!((440..560).contains(&in_first_half(&e)), "{}", in_first_half(&e));
    let printed = InOrder::server_of_the_printed_form(y, x);
    assert_eq!(in_first_half(&printed), 1000, "the test tells the printed form apart");
}

fn keys(seed: u8) -> (curve25519::Key, curve25519::Key) {
    Key::with_inverse(&mut Prng::from_seed(&[seed; 32]))
}

fn run_with(y: &HashedSet, x: &HashedSet, seed: u8) -> Views {
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let protocol = PermuteThenTest(SigmaDh(Curve25519));
    run_pair(
        &SESSION,
        |cx| MqrpmtStar::server(&protocol, cx.under(rng(0)), y, x.len()),
        |cx| MqrpmtStar::client(&protocol, cx.under(rng(1)), x, y.len()),
    )
    .1
}

/// The permutation is over both frames, not within each.
#[test]
fn queries_and_responses_are_in_random_order_and_another_one_in_each_run() {
    let x: ItemSet = (0..FRAME as u32 + 2000).map(|i| i.to_le_bytes()).collect();
    let y: ItemSet = ["y"].iter().collect();
    let (mut y, mut x) = (HashedSet::new(&y), HashedSet::new(&x));
    under(&mut y, keys(7));
    under(&mut x, keys(8));
    let masked = map_and_raise(x.own(), &keys(8).0).unwrap();
    let raised = Curve25519::raise(&masked, &keys(7).0).unwrap();
    let places_of = |known: &[curve25519::Point], sent: Vec<Vec<u8>>| {
        let at: std::collections::HashMap<&[u8], usize> =
            known.iter().enumerate().map(|(i, point)| (point.as_ref(), i)).collect();
        sent.iter().map(|point| at[&point[..]]).collect::<Vec<usize>>()
    };
    let [first, second] = [1, 2].map(|seed| {
        let views = run_with(&y, &x, seed);
        let queries = places_of(&masked, parts(&views.0[0], 0x16, 32));
        let responses = places_of(&raised, parts(&views.0[1], 0x17, 32));
        // π: the position of each response among the queries.
        let mut place = vec![0; queries.len()];
        queries.iter().enumerate().for_each(|(j, &i)| place[i] = j);
        let pi: Vec<usize> = responses.iter().map(|&i| place[i]).collect();
        (queries, pi)
    });
    are_random_orders([&first.0, &second.0]);
    are_random_orders([&first.1, &second.1]);
    // Of 2000 queries after the first frame, 392 are expected in the last 2000 places, with a standard deviation of 16.
    for order in [&first.0, &first.1] {
        let stayed = order[FRAME..].iter().filter(|i| **i >= FRAME).count();
        assert!((280..510).contains(&stayed), "{stayed}");
    }
}

/// A server that responds before it has all queries cannot permute over the whole set.
#[test]
fn responses_leave_when_all_queries_have_come() {
    let (none, x) = (ItemSet::default(), (0..FRAME as u32).map(|i| i.to_le_bytes()).collect::<ItemSet>());
    let points = map_and_raise(HashedSet::new(&x).own(), &keys(7).0).unwrap();
    let frame: Vec<u8> = points.iter().flat_map(|point| *point.as_bytes()).collect();
    let mut sent = 0;
    let result = with_frames(&[(0x16, &frame)], |cx| {
        let protocol = PermuteThenTest(SigmaDh(Curve25519));
        let result = PermutedMqpmt::server(&protocol, cx, &HashedSet::new(&none), FRAME + 1);
        sent = cx.ch.bytes_sent();
        result
    });
    assert!(matches!(result, Err(Error::Network(_))), "{result:?}");
    assert_eq!(sent, 0);
}

/// Otherwise the number of matches would show whether one item matches.
#[test]
fn a_client_cannot_ask_for_the_same_item_twice() {
    let (none, x) = (ItemSet::default(), (0..3u32).map(|i| i.to_le_bytes()).collect::<ItemSet>());
    let points = map_and_raise(HashedSet::new(&x).own(), &keys(7).0).unwrap();
    let points: Vec<[u8; 32]> = points.iter().map(|point| *point.as_bytes()).collect();
    // Another abscissa, but equal under every key: the points differ by a point of small order.
    let disguised = (MontgomeryPoint(points[0]).to_edwards(0).unwrap() + EIGHT_TORSION[1]).to_montgomery().0;
    let asked = |queries: [[u8; 32]; 3]| {
        with_frames(&[(0x16, &queries.concat())], |cx| {
            PermutedMqpmt::server(&PermuteThenTest(SigmaDh(Curve25519)), cx, &HashedSet::new(&none), 3)
        })
    };
    assert_eq!(asked([points[0], points[1], points[2]]), Ok(()));
    for again in [points[0], disguised] {
        for queries in [[points[0], again, points[2]], [points[0], points[1], again]] {
            let error = asked(queries).unwrap_err();
            assert!(
                matches!(&error, Error::Peer { fault: Fault::Misbehaved, what: m, .. } if m.contains("the same item twice")),
                "{error}"
            );
        }
    }
}

#[test]
fn more_matches_than_items_and_more_bits_than_queries_are_refused() {
    assert_eq!(cardinality(&[true, false, true], 2), Ok(2));
    assert!(matches!(
        cardinality(&[true, false, true], 1),
        Err(Error::Peer { fault: Fault::Misbehaved, .. })
    ));
    let (none, x) = (ItemSet::default(), (0..3u32).map(|i| i.to_le_bytes()).collect::<ItemSet>());
    let points = map_and_raise(HashedSet::new(&x).own(), &keys(7).0).unwrap();
    let points: Vec<u8> = points.iter().flat_map(|point| *point.as_bytes()).collect();
    let ends = |bits: u8| {
        with_frames(&[(0x16, &points), (0x18, &[bits])], |cx| {
            MqrpmtStar::server(&PermuteThenTest(SigmaDh(Curve25519)), cx, &HashedSet::new(&none), 3)
        })
        .map(|bits| bits.iter().filter(|bit| **bit).count())
    };
    assert_eq!([0, 0b101, 0b111].map(ends), [Ok(0), Ok(2), Ok(3)]);
    for bits in [0b1000, 0x80] {
        assert!(matches!(ends(bits), Err(Error::Peer { fault: Fault::Misbehaved, .. })));
    }
}

#[test]
fn message_sizes_depend_on_the_sizes_of_the_sets_only() {
    let frames = |overlap| {
        let (y, x) = overlapping(30, FRAME + 1, overlap);
        let views = run_with(&HashedSet::new(&y), &HashedSet::new(&x), 1);
        // The length of the tags varies slightly with their values.
        [views.frames(0), views.frames(1).into_iter().filter(|frame| frame.0 != 0x21).collect()]
    };
    let points = |tag| vec![(tag, FRAME * 32), (tag, 32)];
    assert_eq!(frames(0.0), [[points(0x16), vec![(0x18, FRAME / 8 + 1)]].concat(), points(0x17)]);
    assert_eq!(frames(0.0), frames(1.0));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (y, x) = overlapping(1000, 700, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let views = |threads| {
        let threads = Threads::new(threads).unwrap();
        let protocol = PermuteThenTest(SigmaDh(Curve25519));
        let (_, views) = run_pair(
            &SESSION,
            |cx| MqrpmtStar::server(&protocol, &mut cx.on(&threads), &y, x.len()),
            |cx| MqrpmtStar::client(&protocol, &mut cx.on(&threads), &x, y.len()),
        );
        views.0
    };
    assert!(views(1) == views(3));
}
