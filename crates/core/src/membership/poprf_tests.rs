use super::*;
use crate::channel::Channel;
use crate::error::{Error, Fault};
use crate::group::Key;
use crate::group::curve25519;
use crate::group::curve25519::Curve25519;
use crate::group::ristretto255::Ristretto255;
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::oprf::permuted::FRAME;
use crate::params::LAMBDA;
use crate::rng::Prng;
use crate::testing::{
    Views, are_random_orders, overlapping, parts, places, run_pair, sizes, under, with_frames,
};
use crate::threads::Threads;

const SESSION: SessionId = SessionId::of([5; 32]);

fn bits_by_item<M: Mqrpmt + Sync>(m: &M, y: &ItemSet, x: &ItemSet) -> (Vec<bool>, Views) {
    let (y, x) = (&HashedSet::new(y), &HashedSet::new(x));
    let ((bits, order), views) =
        run_pair(&SESSION, |cx| m.server(cx, y, x.len()), |cx| m.client(cx, x, y.len()));
    let mut by_item = vec![false; x.len()];
    order.iter().zip(bits.iter()).for_each(|(&i, &bit)| by_item[i as usize] = bit);
    (by_item, views)
}

#[test]
fn the_bits_are_those_of_the_plain_computation() {
    for (n_y, n_x) in sizes(FRAME) {
        for overlap in [0.0, 0.5, 1.0] {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let plain: std::collections::HashSet<&[u8]> = y.iter().collect();
            let expected: Vec<bool> = x.iter().map(|i| plain.contains(i)).collect();
            let what = format!("{n_y} {n_x} {overlap}");
            assert_eq!(bits_by_item(&FromPermutedOprf(Ristretto255), &y, &x).0, expected, "{what}");
            if n_y < 100 {
                assert_eq!(bits_by_item(&FromPermutedOprf(Curve25519), &y, &x).0, expected, "{what}");
            }
        }
    }
}

/// Figure 9 as printed: a client that sends its queries in the order of its set.
struct Unpermuted;

impl Mqrpmt for Unpermuted {
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>> {
        FromPermutedOprf(Ristretto255).server(cx, y, n_x)
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<u32>> {
        let keyed = PermutedOprf(Ristretto255).sender(cx, x, n_y)?;
        let order: Vec<u32> = (0..x.len() as u32).collect();
        Tags::new(cx.exponent, x.len(), n_y)?.send(&mut cx.ch.tx, F_X, &keyed.values(&order)?)?;
        Ok(Secrets::from(order))
    }
}

#[test]
fn the_positions_of_the_bits_carry_no_order() {
    // The first half of X matches. Permuting the queries spreads the matches over all positions.
    let n = 2000;
    let y: ItemSet = (0..n / 2).map(|i: u32| i.to_le_bytes()).collect();
    let x: ItemSet = (0..n).map(|i: u32| i.to_le_bytes()).collect();
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let in_first_half = |m: &(dyn Mqrpmt + Sync)| {
        let ((bits, _), _) =
            run_pair(&SESSION, |cx| m.server(cx, &y, n as usize), |cx| m.client(cx, &x, y.len()));
        bits[..n as usize / 2].iter().filter(|&&b| b).count()
    };
    // 1000 matches over 2000 positions: mean 500, standard deviation 11.2.
    let ours = in_first_half(&FromPermutedOprf(Ristretto255));
    assert!((440..560).contains(&ours), "{ours}");
    assert_eq!(in_first_half(&Unpermuted), 1000, "the test tells the printed form apart");
}

fn keys(seed: u8) -> (curve25519::Key, curve25519::Key) {
    Key::with_inverse(&mut Prng::from_seed(&[seed; 32]))
}

fn run_with(session: &SessionId, y: &HashedSet, x: &HashedSet, seed: u8) -> (Views, Vec<usize>) {
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let protocol = FromPermutedOprf(Curve25519);
    let ((_, order), views) = run_pair(
        session,
        |cx| protocol.server(cx.under(rng(0)), y, x.len()),
        |cx| protocol.client(cx.under(rng(1)), x, y.len()),
    );
    (views, order.iter().map(|&i| i as usize).collect())
}

#[test]
fn both_send_in_random_order_and_another_one_in_each_run() {
    let (y, x) = overlapping(300, 250, 0.5);
    let (mut y, mut x) = (HashedSet::new(&y), HashedSet::new(&x));
    under(&mut y, keys(7));
    under(&mut x, keys(8));
    // The messages of both parties are known up to their order.
    let known_y: Vec<Vec<u8>> = {
        let points = Curve25519::map_and_raise(y.own(), &keys(7).0).unwrap();
        points.iter().map(|p| p.as_bytes().to_vec()).collect()
    };
    let tags = Tags::new(LAMBDA, 250, 300).unwrap();
    let known_x: Vec<Vec<u8>> = {
        let mut ch = Channel::pair().0;
        let rng = &mut Prng::from_seed(&[1; 32]);
        let keyed =
            PermutedOprf(Curve25519).sender(&mut Context::new(&mut ch, &SESSION, rng), &x, 0).unwrap();
        let values = keyed.values(&(0..250).collect::<Vec<_>>()).unwrap();
        values.iter().map(|value| value.to_be_bytes()[..tags.bytes].to_vec()).collect()
    };
    let [first, second] = [1, 2].map(|seed| {
        let (views, order) = run_with(&SESSION, &y, &x, seed);
        let queries = places(&known_x, &parts(&views.0[0], 0x15, tags.bytes));
        assert_eq!(queries, order, "the client knows what it asked for");
        (queries, places(&known_y, &parts(&views.0[1], 0x13, 32)))
    });
    are_random_orders([&first.0, &second.0]);
    are_random_orders([&first.1, &second.1]);
}

#[test]
fn the_keys_of_both_are_fresh_in_each_run() {
    let (y, x) = overlapping(50, 40, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let [first, second] = [1, 2].map(|seed| run_with(&SESSION, &y, &x, seed).0.0);
    for (party, tag, size) in [(1, 0x13, 32), (0, 0x14, 32), (0, 0x15, 7)] {
        let [first, second] = [&first, &second].map(|view| parts(&view[party], tag, size));
        assert!(!first.is_empty() && first.iter().all(|part| !second.contains(part)), "{tag:#x}");
    }
}

/// Otherwise a client could query one item as often as the minimum count.
#[test]
fn a_client_cannot_ask_for_the_same_item_twice() {
    let none = ItemSet::default();
    let asked = |tags: &[u8]| {
        let body: Vec<u8> = tags.iter().flat_map(|tag| [*tag; 6]).collect();
        let server =
            |cx: &mut Context| FromPermutedOprf(Ristretto255).server(cx, &HashedSet::new(&none), tags.len());
        with_frames(&[(0x15, &body)], server).map(|bits| bits.to_vec())
    };
    assert_eq!(Tags::new(LAMBDA, 3, 0).unwrap().bytes, 6);
    assert_eq!(asked(&[1, 2, 3]), Ok(vec![false; 3]));
    for tags in [[1, 1, 2], [1, 2, 1], [2, 1, 1]] {
        let error = asked(&tags).unwrap_err();
        assert!(
            matches!(&error, Error::Peer { fault: Fault::Misbehaved, what: m, .. } if m.contains("the same item twice")),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_element_or_the_identity_is_refused_by_both_sides() {
    let set: ItemSet = ["a"].iter().collect();
    let set = HashedSet::new(&set);
    let mut negative = [0; 32];
    negative[0] = 1;
    for (tag, server) in [(0x13u16, false), (0x14, true)] {
        for forged in [[0; 32], negative, [0xff; 32]] {
            let e = with_frames(&[(tag, &forged)], |cx| match server {
                true => FromPermutedOprf(Ristretto255).server(cx, &set, 1).map(drop),
                false => FromPermutedOprf(Ristretto255).client(cx, &set, 1).map(drop),
            });
            assert!(matches!(e, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{e:?}");
        }
    }
}

#[test]
fn message_sizes_depend_on_the_sizes_of_the_sets_only() {
    let frames = |overlap| {
        let (y, x) = overlapping(FRAME + 1, 30, overlap);
        let views = bits_by_item(&FromPermutedOprf(Ristretto255), &y, &x).1;
        [views.frames(0), views.frames(1)]
    };
    let one = frames(0.0);
    // Tags of 40 + 5 + 14 bits.
    let points = |tag| vec![(tag, FRAME * 32), (tag, 32)];
    assert_eq!(one, [[points(0x14), vec![(0x15, 30 * 8)]].concat(), points(0x13)]);
    assert_eq!(one, frames(1.0));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (y, x) = overlapping(1000, 700, 0.5);
    let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
    let views = |threads| {
        let threads = Threads::new(threads).unwrap();
        let protocol = FromPermutedOprf(Ristretto255);
        let ((bits, _), views) = run_pair(
            &SESSION,
            |cx| protocol.server(&mut cx.on(&threads), &y, x.len()),
            |cx| protocol.client(&mut cx.on(&threads), &x, y.len()),
        );
        (bits.to_vec(), views.0)
    };
    assert!(views(1) == views(3));
}
