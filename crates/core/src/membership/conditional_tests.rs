use super::super::mot::tests::shares;
use super::super::mot::{self, FromOt};
use super::*;
use crate::error::Fault;
use crate::group::Key as _;
use crate::testing::{ANY_SESSION, every_byte_differs, run_pair};
use std::collections::HashSet;

fn query(i: usize) -> ItemHash {
    ItemHash::of_item(&i.to_le_bytes())
}

fn key(seed: u8) -> Key {
    Key::random(&mut Prng::from_seed(&[seed; 32]))
}

/// F(k, q).
fn value(query: ItemHash, key: &Key) -> Encoding {
    *Ristretto255::map_and_raise(&[query], key).unwrap()[0].as_bytes()
}

/// The values that a client gets for these queries from the party with this key, whose set has those that `is_member` marks.
fn asked(
    protocol: &(impl ConditionalOprf + Sync),
    queries: &[ItemHash],
    is_member: &[bool],
    key: &Key,
    seed: u8,
) -> Vec<Encoding> {
    let [s, r] = shares(is_member, seed);
    let rng = |role: u8| Prng::from_seed(&[2 * seed + role; 32]);
    let ((values, ()), _) = run_pair(
        &ANY_SESSION,
        |cx| protocol.receiver(cx.under(rng(0)), queries, r),
        |cx| protocol.sender(cx.under(rng(1)), key, s),
    );
    values.to_vec()
}

/// Checks that queries outside the set get F(k, q), and the others random elements, all different. Every protocol must pass it.
fn is_a_conditional_oprf(protocol: &(impl ConditionalOprf + Sync), sizes: &[usize]) {
    let key = key(1);
    for &n in sizes {
        let queries: Vec<ItemHash> = (0..n).map(query).collect();
        let is_member: Vec<bool> = (0..n).map(|i| i % 3 == 1).collect();
        let values = asked(protocol, &queries, &is_member, &key, 1);
        assert_eq!(values.len(), n);
        let expected = Ristretto255::map_and_raise(&queries, &key).unwrap();
        for ((got, f), is) in values.iter().zip(&expected).zip(&is_member) {
            assert_eq!(got != f.as_bytes(), *is);
        }
        assert!(decode(&values).is_ok() && values.iter().collect::<HashSet<_>>().len() == n);
    }
}

#[test]
fn the_ideal_functionality_is_one() {
    is_a_conditional_oprf(&Ideal, &[0, 1, 40]);
}

#[test]
fn it_is_a_conditional_oprf() {
    is_a_conditional_oprf(&FromMot(FromOt::default()), &[0, 1, 40]);
    is_a_conditional_oprf(&FromMot(mot::Ideal), &[2, FRAME + 1]);
}

/// Shows why the union of many sets is not built on a conditional OPRF: two clients of one party can compare their values for a
/// common item.
#[test]
fn two_clients_with_one_query_learn_whether_it_is_in_the_set() {
    let (party, queries) = (key(1), [query(7)]);
    for is_member in [true, false] {
        let clients =
            [1, 2].map(|client| asked(&FromMot(FromOt::default()), &queries, &[is_member], &party, client));
        assert_eq!(clients[0] != clients[1], is_member);
    }
    // One client that queries twice learns it too.
    for is_member in [true, false] {
        let twice = [query(7); 2];
        let values = asked(&FromMot(mot::Ideal), &twice, &[is_member; 2], &party, 1);
        assert_eq!(values[0] != values[1], is_member);
    }
}

/// The elements that S gets for equal queries, and R's outputs from the answers.
fn offered_to(is_member: bool, n: usize, seed: u8) -> (Vec<Point>, Vec<Encoding>) {
    let [s, r] = shares(&vec![is_member; n], seed);
    let key = key(1);
    let ((values, points), _) = run_pair(
        &ANY_SESSION,
        |cx| {
            let rng = Prng::from_seed(&[seed; 32]);
            FromMot(mot::Ideal).receiver(cx.under(rng), &vec![query(7); n], r)
        },
        |cx| {
            let mut points = Vec::new();
            mot::Ideal.receiver(cx, s, 32, |row| points.extend(Point::of_ours(row)))?;
            cx.ch.tx.send(W, &Ristretto255::raise(&points, &key).unwrap())?;
            Ok(points)
        },
    );
    (points, values.to_vec())
}

/// S must not see that two queries are equal, and R must not see the same v_0 come back.
#[test]
fn what_is_offered_is_fresh_for_every_query_and_run() {
    let n = 40;
    for is_member in [true, false] {
        let runs = [1, 2].map(|seed| offered_to(is_member, n, seed));
        let points: HashSet<&[u8; 32]> = runs.iter().flat_map(|run| &run.0).map(Point::as_bytes).collect();
        assert_eq!(points.len(), 2 * n);
        // R gets as many values as there are random elements, or the single value of the query.
        let values: HashSet<&Encoding> = runs.iter().flat_map(|run| &run.1).collect();
        assert_eq!(values.len(), if is_member { 2 * n } else { 1 });
        let points: Vec<&Point> = runs.iter().flat_map(|run| &run.0).collect();
        every_byte_differs(&points);
    }
}

/// v_0 is a random element, the image of uniform bytes, and no multiple of an element that R knows.
#[test]
fn the_element_for_members_is_the_image_of_uniform_bytes() {
    let all: Vec<Vec<u8>> =
        (1..=8).map(|seed| random_elements(50, &mut Prng::from_seed(&[seed; 32])).concat()).collect();
    let all: Vec<&[u8]> = all.iter().flat_map(|some| some.chunks(64)).collect();
    crate::testing::every_bit_is_random(&all, 512);
    let rng = &mut Prng::from_seed(&[1; 32]);
    let uniform = random_elements(3, rng);
    let rows = offered(&uniform, hash_to_group(&[query(0); 3]), &Scalars::random(3, rng)).unwrap();
    assert!(rows.iter().zip(encode(&map(&uniform)).iter()).all(|(row, v_0)| row[0] == *v_0));
}

#[test]
fn the_identity_is_never_offered() {
    let rng = &mut Prng::from_seed(&[1; 32]);
    let zero = Scalars::from(Secrets::from(vec![[1; 32], [0; 32]]));
    let uniform = random_elements(2, rng);
    let rows = offered(&uniform, hash_to_group(&[query(0); 2]), &zero);
    assert!(matches!(rows, Err(Error::Bug(_))));
}

/// The identity, bytes that encode no element, and unreduced bytes are refused. S's error says that the peer must not be told.
#[test]
fn what_is_no_element_or_the_identity_is_refused_by_both() {
    let mut one = [0; 32];
    one[0] = 1;
    for forged in [[0; 32], one, [0xff; 32]] {
        let (mut a, mut b) = crate::channel::Channel::pair();
        let ends = std::thread::scope(|s| {
            let of_sender = s.spawn(move || {
                let mut rng = Prng::from_seed(&[1; 32]);
                let mut cx = Context::new(&mut a, &ANY_SESSION, &mut rng);
                FromMot(mot::Ideal).sender(&mut cx, &key(1), Secrets::zeros(2))
            });
            let mut rng = Prng::from_seed(&[2; 32]);
            let mut cx = Context::new(&mut b, &ANY_SESSION, &mut rng);
            let good = value(query(1), &key(2));
            let rows = |i: usize, v_0: &mut [u8], v_1: &mut [u8]| {
                v_0.copy_from_slice(&good);
                v_1.copy_from_slice(if i == 1 { &forged } else { &good });
            };
            mot::Ideal.sender(&mut cx, Secrets::zeros(2), 32, rows).unwrap();
            // Nothing comes back, not even for the first query.
            assert!(cx.ch.rx.recv(W, 2).is_err());
            of_sender.join().unwrap()
        });
        assert!(
            matches!(&ends, Err(Error::Peer { fault: Fault::Misbehaved, what, .. }) if what.contains("do not tell")),
            "{ends:?}"
        );
        let (mut a, mut b) = crate::channel::Channel::pair();
        let of_receiver = std::thread::scope(|s| {
            s.spawn(move || {
                let mut rng = Prng::from_seed(&[1; 32]);
                let mut cx = Context::new(&mut a, &ANY_SESSION, &mut rng);
                mot::Ideal.receiver(&mut cx, Secrets::zeros(1), 32, |_| ()).unwrap();
                cx.ch.tx.send(W, &Point::of_ours(&forged).into_iter().collect::<Vec<_>>()).unwrap();
            });
            let mut rng = Prng::from_seed(&[2; 32]);
            let mut cx = Context::new(&mut b, &ANY_SESSION, &mut rng);
            FromMot(mot::Ideal).receiver(&mut cx, &[query(0)], Secrets::zeros(1)).map(drop)
        });
        let Err(Error::Peer { fault: Fault::Misbehaved, what, .. }) = of_receiver else {
            panic!("{of_receiver:?}");
        };
        assert!(!what.contains("do not tell"));
    }
}

#[test]
fn shares_of_other_queries_are_refused() {
    let (mut ch, _peer) = crate::channel::Channel::pair();
    let mut rng = Prng::from_seed(&[1; 32]);
    let mut cx = Context::new(&mut ch, &ANY_SESSION, &mut rng);
    let end = FromMot(mot::Ideal).receiver(&mut cx, &[query(0)], Secrets::zeros(2));
    assert!(matches!(end, Err(Error::Bug(_))));
    assert_eq!(cx.ch.bytes_sent(), 0);
}
