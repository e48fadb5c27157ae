use super::*;
use crate::ahe::elgamal::lists::ElGamal;
use crate::ahe::paillier::Paillier;
use crate::error::Fault;
use crate::hash::SessionId;
use crate::hashed::HashedSet;
use crate::item::{ItemSet, Items};
use crate::membership::encrypted_filter::Seeds;
use crate::operations::tests::sorted;
use crate::operations::{COUNT, Confirmed, INTERSECT, Inputs, Operation, Role, Task, Terms, UNION};
use crate::protocols::DC17;
use crate::testing::{are_random_orders, overlapping, places, run_pair, split_frames};
use std::collections::HashSet;
use std::sync::Mutex;

const SESSION: SessionId = SessionId::of([5; 32]);
const TERMS: Terms = Terms { max_row: 3050, ..crate::testing::TERMS };

fn task<'a>(operation: &'static Operation, role: Role, set: &'a HashedSet<'a>) -> Task<'a> {
    let payloads = const { &Items::new() };
    Task { operation, role, group: DC17.group(), set, values: &[], payloads, terms: TERMS, filter: None }
}

type Run = for<'a> fn(&Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>;

fn all<C: Cipher>() -> [(&'static Operation, Run); 3] {
    [(&INTERSECT, intersect::run::<C>), (&UNION, union::run::<C>), (&COUNT, count::run::<C>)]
}

/// The offered protocols are compared with the plain computation in the tests of the operations.
#[test]
fn results_under_paillier_are_those_of_the_plain_computation() {
    for (n_y, n_x, overlap) in [(0, 0, 0.0), (0, 3, 0.0), (3, 0, 0.0), (1, 1, 1.0), (5, 7, 0.5), (30, 9, 0.5)]
    {
        let (y, x) = overlapping(n_y, n_x, overlap);
        let (hashed_y, hashed_x) = (&HashedSet::new(&y), &HashedSet::new(&x));
        for (operation, run) in all::<Paillier<512>>() {
            let (learned, _) = run_pair(
                &SESSION,
                |cx| run(&task(operation, Role::Receiver, hashed_y), cx, n_x)?.open(Confirmed::for_tests()),
                |cx| run(&task(operation, Role::Sender, hashed_x), cx, n_y)?.open(Confirmed::for_tests()),
            );
            let none = const { &Items::new() };
            let data = Inputs { y: &y, x: &x, values: &[], payloads: none, terms: TERMS };
            let [receiver, sender] = (operation.plain)(&data);
            assert!(sorted(learned.0) == sorted(receiver) && learned.1 == sender, "{operation} {n_y} {n_x}");
        }
    }
}

#[test]
fn answers_are_in_random_order() {
    let (y, x) = overlapping(0, 300, 0.0);
    let (hashed_y, hashed_x) = (&HashedSet::new(&y), &HashedSet::new(&x));
    let order = |seed: u8| {
        let (learned, _) = run_pair(
            &SESSION,
            |cx| {
                union::run::<ElGamal>(&task(&UNION, Role::Receiver, hashed_y), cx, 300)?
                    .open(Confirmed::for_tests())
            },
            |cx| {
                let cx = cx.under(Prng::from_seed(&[seed; 32]));
                union::run::<ElGamal>(&task(&UNION, Role::Sender, hashed_x), cx, 0).map(drop)
            },
        );
        let Learned::New(new) = learned.0 else { panic!("no union") };
        places(&x.iter().collect::<Vec<_>>(), &new.items.iter().collect::<Vec<_>>())
    };
    are_random_orders([&order(1), &order(2)]);
}

#[test]
fn keys_of_rows_are_of_the_session_and_of_their_names() {
    let mut seen = HashSet::new();
    let names: Vec<Name> = (0..=32u8).map(|at| std::array::from_fn(|i| u8::from(i == at as usize))).collect();
    for session in [1, 2] {
        let (domains, _) = run_pair(&SessionId::of([session; 32]), |cx| Ok(keys(cx)), |_| Ok(()));
        seen.extend(pads(&domains.0, &names).iter().copied());
    }
    assert_eq!(seen.len(), 2 * 33);
}

/// A filter without a single valid cell: the owner's view is the same as otherwise, and the sender learns of it at the end.
#[test]
fn an_owner_does_not_see_whether_a_malformed_cell_was_used() {
    let x = overlapping(0, 9, 0.0).1;
    let x = &HashedSet::new(&x);
    for (operation, run) in all::<ElGamal>() {
        let view = |spoil: bool| {
            let mut sizes = vec![];
            let (ends, views) = run_pair(
                &SESSION,
                |cx| {
                    let filter = filter(&TERMS, 9, 9).filter;
                    let owner = ElGamal::generate(cx.rng);
                    cx.ch.tx.send(Message::new(0xf0, "seed"), &[[7; 32]])?;
                    cx.ch
                        .tx
                        .send_bytes(Message::new(0xf4, "key"), &ElGamal::public(&owner, &SESSION, cx.rng))?;
                    let bits = vec![true; filter.cells as usize];
                    let mut cells = ElGamal::encrypt(
                        &owner,
                        &Seeds::of_session(&SESSION, &[7; 32]).first_parts,
                        0,
                        &bits,
                        cx.rng,
                    );
                    if spoil {
                        cells.fill(0xff);
                    }
                    cx.ch.tx.send_bytes(Message::<[u8]>::new(0xf1, "cells"), &cells)?;
                    cx.ch.rx.recv_bounded(ANSWERS, 1 << 18)?;
                    if operation != &COUNT {
                        cx.ch.rx.recv_bounded(ROWS, 1 << 18)?;
                    }
                    Ok(())
                },
                |cx| Ok(run(&task(operation, Role::Sender, x), cx, 9)?.open(Confirmed::for_tests())),
            );
            sizes.extend(split_frames(&views.0[0]).iter().map(|(tag, frame)| (*tag, frame.len())));
            (sizes, ends.1)
        };
        let (good, bad) = (view(false), view(true));
        assert_eq!(good.0, bad.0);
        assert!(good.0.iter().any(|(tag, _)| *tag == 0xf2), "{operation}");
        assert!(good.1.is_ok());
        match bad.1 {
            Err(Error::Peer { fault: Fault::Misbehaved, what, .. }) => {
                assert!(what.contains("a cell of its filter"), "{what}");
            }
            other => panic!("{operation}: {:?}", other.err()),
        }
    }
}

/// docs/protocols.md describes this deviation.
#[test]
fn an_owner_whose_filter_holds_only_zeros_gets_the_whole_set() {
    let x: ItemSet = overlapping(0, 20, 0.0).1;
    let x = &HashedSet::new(&x);
    let filter = filter(&TERMS, 20, 20).filter;
    let shape = count::SHAPE;
    let ((bits, _), _) = run_pair(
        &SESSION,
        |cx| {
            let owner = ElGamal::generate(cx.rng);
            cx.ch.tx.send(Message::new(0xf0, "seed"), &[[7; 32]])?;
            cx.ch.tx.send_bytes(Message::new(0xf4, "key"), &ElGamal::public(&owner, &SESSION, cx.rng))?;
            let bits = vec![false; filter.cells as usize];
            let cells = ElGamal::encrypt(
                &owner,
                &Seeds::of_session(&SESSION, &[7; 32]).first_parts,
                0,
                &bits,
                cx.rng,
            );
            cx.ch.tx.send_bytes(Message::<[u8]>::new(0xf1, "cells"), &cells)?;
            receive::<ElGamal>(cx, &owner, 20, shape, |[c, _]| (ElGamal::are_zero(&c), None), |_, _| ())
        },
        |cx| count::run::<ElGamal>(&task(&COUNT, Role::Sender, x), cx, 20).map(drop),
    );
    assert!(bits.iter().all(|bit| *bit));
}

/// A sender whose second answer exceeds the number of positions of an item.
#[test]
fn answers_that_no_item_can_have_are_refused() {
    let y = overlapping(3, 0, 0.0).0;
    let y = &HashedSet::new(&y);
    let shape = union::shape(&TERMS);
    for (more, refused) in [(0, false), (1, true)] {
        let (end, _) = run_pair(
            &SESSION,
            |cx| {
                Ok(union::run::<ElGamal>(&task(&UNION, Role::Receiver, y), cx, 1)?
                    .open(Confirmed::for_tests()))
            },
            |cx| {
                let none = ItemSet::default();
                let set = HashedSet::padded(&none, 1, cx.rng);
                let sums = crate::membership::encrypted_filter::receive::<ElGamal>(
                    cx,
                    &set,
                    None,
                    filter(&TERMS, 3, 1),
                )?;
                let number = |n: u32| {
                    let n = curve25519_dalek::Scalar::from(n).to_bytes();
                    crate::group::ristretto255::Scalars::from(Secrets::from(vec![n]))
                };
                let q = number(filter(&TERMS, 3, 1).filter.positions + more);
                let combine = |key: &_, _: &_, rng: &mut Prng| {
                    let both =
                        [&q, &q].map(|q| ElGamal::combine(key, Some(q), None, &ElGamal::zeros(1), rng));
                    (both.concat(), Some(number(1)))
                };
                answer::<ElGamal>(cx, &sums, (1, 1), shape, combine, |_, _| ()).map(drop)
            },
        );
        match end.0 {
            Err(Error::Peer { fault: Fault::Misbehaved, what, .. }) => {
                assert!(refused && what.contains("more empty positions"), "{what}");
            }
            other => assert!(!refused && other.is_ok(), "{:?}", other.err()),
        }
    }
}

/// A sender that answers with 0 for each of its items. The number of matches that it gets is capped at the number of items:
/// by repeating items in powers of two, it could otherwise learn which ones match.
#[test]
fn a_sender_whose_answers_match_too_often_sees_no_verdict() {
    let y = overlapping(3, 0, 0.0).0;
    let y = &HashedSet::new(&y);
    for both in [false, true] {
        let terms = Terms { both, ..TERMS };
        let (ends, _) = run_pair(
            &SESSION,
            |cx| {
                let task = Task { terms, ..task(&COUNT, Role::Receiver, y) };
                Ok(count::run::<ElGamal>(&task, cx, 5)?.open(Confirmed::for_tests()))
            },
            |cx| {
                let none = ItemSet::default();
                let set = HashedSet::padded(&none, 5, cx.rng);
                let sums = crate::membership::encrypted_filter::receive::<ElGamal>(
                    cx,
                    &set,
                    None,
                    filter(&TERMS, 3, 5),
                )?;
                let combine = |key: &_, _: &_, rng: &mut Prng| {
                    (ElGamal::combine(key, None, None, &ElGamal::zeros(5), rng), None)
                };
                answer::<ElGamal>(cx, &sums, (5, 5), count::SHAPE, combine, |_, _| ())?;
                if both { crate::operations::both::recv_count(cx.ch, 5).map(Some) } else { Ok(None) }
            },
        );
        assert!(matches!(ends.0, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{:?}", ends.0);
        assert_eq!(ends.1, both.then_some(3));
    }
}

/// A receiver that sends the sender a number of matches above the size of one of the sets.
#[test]
fn a_number_of_matches_above_a_set_is_refused() {
    for (n_y, n_x, told, refused) in [(3, 2, 2, false), (3, 2, 3, true), (2, 3, 2, false), (2, 3, 3, true)] {
        let (y, x) = overlapping(n_y, n_x, 0.0);
        let (y, x) = (&HashedSet::new(&y), &HashedSet::new(&x));
        let (ends, _) = run_pair(
            &SESSION,
            |cx| {
                let owner = send_filter::<ElGamal>(&task(&COUNT, Role::Receiver, y), cx, n_x)?;
                let shape = count::SHAPE;
                receive::<ElGamal>(
                    cx,
                    &owner,
                    n_x,
                    shape,
                    |[c, _]| (ElGamal::are_zero(&c), None),
                    |_, _| (),
                )?;
                crate::operations::both::send_count(cx.ch, told)
            },
            |cx| {
                let terms = Terms { both: true, ..TERMS };
                let task = Task { terms, ..task(&COUNT, Role::Sender, x) };
                Ok(count::run::<ElGamal>(&task, cx, n_y)
                    .and_then(|sealed| sealed.open(Confirmed::for_tests())))
            },
        );
        match ends.1 {
            Err(Error::Peer { fault: Fault::Misbehaved, what, .. }) => {
                assert!(refused && what.contains("number of matches is larger"), "{what}");
            }
            other => {
                assert!(!refused);
                assert_eq!(other, Ok(Learned::Matches(told as u64)));
            }
        }
    }
}

/// Frames of one answer each, because their rows are as long as a frame.
#[test]
fn each_frame_of_answers_has_randomness_of_its_own() {
    let (y, x) = overlapping(1, 3, 0.0);
    let (y, x) = (&HashedSet::new(&y), &HashedSet::new(&x));
    let shape = Shape { ciphertexts: 1, width: FRAME_BYTES };
    let drawn = Mutex::new(vec![]);
    run_pair(
        &SESSION,
        |cx| {
            let owner = send_filter::<ElGamal>(&task(&COUNT, Role::Receiver, y), cx, 3)?;
            receive::<ElGamal>(cx, &owner, 3, shape, |[c, _]| (ElGamal::are_zero(&c), None), |_, _| ())
                .map(drop)
        },
        |cx| {
            let sums = sums::<ElGamal>(&task(&COUNT, Role::Sender, x), cx, 1)?;
            let combine = |key: &_, _: &_, rng: &mut Prng| {
                drawn.lock().unwrap().push(rng.bytes::<32>());
                (ElGamal::combine(key, None, None, &ElGamal::zeros(1), rng), None)
            };
            answer::<ElGamal>(cx, &sums, (3, 3), shape, combine, |_, _| ()).map(drop)
        },
    );
    let drawn = drawn.into_inner().unwrap();
    assert_eq!((drawn.len(), drawn.iter().collect::<HashSet<_>>().len()), (3, 3));
}
