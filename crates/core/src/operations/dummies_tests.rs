//! Padded sets: the kind of their dummies, and the messages that result.

use super::*;
use crate::context::Context;
use crate::hashed::Dummies;
use crate::operations::{COUNT, INTERSECT, UNION};
use crate::params::MAX_SET;

const SMALL: Terms = Terms { max_row: 12, ..TERMS };

/// Items `from..from + n`.
fn numbers(from: usize, n: usize) -> ItemSet {
    (from..from + n).map(|i| format!("{i:03}")).collect()
}

fn padded<'a>(set: &'a ItemSet, size: usize, dummies: Dummies) -> HashedSet<'a> {
    match dummies {
        Dummies::Random => HashedSet::padded(set, size, &mut Prng::from_seed(&[size as u8; 32])),
        Dummies::Listed => HashedSet::padded_from_list(set, size),
    }
}

fn task<'a>(
    (operation, Choice { group, .. }, terms): Kind,
    role: Role,
    set: &'a HashedSet<'a>,
    values: &'a [i128],
    payloads: &'a Items,
) -> Task<'a> {
    Task { operation, role, group, set, values, payloads, terms, filter: None }
}

/// The results and views of both parties if their padded sets contain the right dummies.
fn run_padded(
    kind: Kind,
    (y, to_y): (&ItemSet, usize),
    (x, to_x): (&ItemSet, usize),
) -> ((Learned, Learned), Views) {
    let (operation, Choice { protocol, .. }, _) = kind;
    let dummies = |role| operation.dummies(role);
    let mut y = padded(y, to_y, dummies(Role::Receiver));
    let hashed = padded(x, to_x, dummies(Role::Sender));
    let [here, there] = [to_y, to_x].map(|size| Announced { size, padded: true });
    y.insert_listed(protocol.inserted(operation, there));
    let (values, payloads) = (values_of(x), payloads_of(x, &kind.2));
    let values = if operation.uses.has_values(Role::Sender, &kind.2) { &values[..] } else { &[] };
    run_pair(
        &SESSION,
        |cx| {
            let task = task(kind, Role::Receiver, &y, &[], NO_PAYLOADS);
            run(protocol, &task, cx, there)?.open(Confirmed::for_tests())
        },
        |cx| {
            let task = task(kind, Role::Sender, &hashed, values, &payloads);
            run(protocol, &task, cx, here)?.open(Confirmed::for_tests())
        },
    )
}

/// The union takes one row for each item that either party may have, and none for the dummies that the receiver inserts.
#[test]
fn both_get_a_padded_union_in_as_many_rows_as_it_can_have() {
    let (y, x) = (numbers(0, 30), numbers(20, 25));
    for protocol in [&CWPRF, &KRTW19_PLAIN] {
        let kind = (&UNION, Choice::of(protocol), Terms { both: true, ..SMALL });
        for (to_y, to_x) in [(200, 150), (30, 150), (200, 25)] {
            let ((_, union), views) = run_padded(kind, (&y, to_y), (&x, to_x));
            assert!(union == Learned::Union(numbers(0, 45).iter().collect()));
            let rows: Vec<_> = views.frames(1).into_iter().filter(|frame| frame.0 == 0x73).collect();
            assert_eq!(rows, [(0x73, (to_y + to_x) * 13)], "{protocol}, {to_y}, {to_x}");
        }
    }
}

/// Runs our side with these dummies, given the peer's announcement. The peer is absent. Returns the result and the number of
/// bytes sent.
pub(super) fn ends(kind: Kind, role: Role, set: &HashedSet, peer: Announced) -> (Result<()>, u64) {
    let (mut ch, gone) = Channel::pair();
    drop(gone);
    let (operation, Choice { protocol, .. }, _) = kind;
    let payloads = payloads_of(set.items(), &kind.2);
    let payloads = if role == Role::Sender { &payloads } else { NO_PAYLOADS };
    let values = vec![1; if operation.uses.has_values(role, &kind.2) { set.items().len() } else { 0 }];
    let task = task(kind, role, set, &values, payloads);
    let rng = &mut Prng::from_seed(&[3; 32]);
    let result = run(protocol, &task, &mut Context::new(&mut ch, &SESSION, rng), peer).map(|_| ());
    (result, ch.bytes_sent())
}

#[test]
fn dummies_of_the_wrong_kind_are_refused() {
    let set = numbers(0, 5);
    let peer = Announced { size: 7, padded: false };
    for kind in kinds() {
        let operation = kind.0;
        for role in Role::ALL {
            for dummies in [Dummies::Random, Dummies::Listed] {
                let listed = (&UNION, Role::Sender) == (operation, role);
                let right = listed == (dummies == Dummies::Listed);
                // This holds without dummies too: their number must not show.
                for size in [5, 9] {
                    let hashed = padded(&set, size, dummies);
                    let (result, sent) = ends(kind, role, &hashed, peer);
                    let refused =
                        matches!(&result, Err(Error::Bug(m)) if m.contains("dummies of another kind"));
                    assert_eq!(refused, !right, "{kind:?} {role} {dummies:?}: {result:?}");
                    assert!(!refused || sent == 0);
                }
            }
        }
    }
}

#[test]
fn a_receiver_that_did_not_insert_what_it_should_is_refused() {
    let set = numbers(0, 5);
    for kind in kinds() {
        let (operation, Choice { protocol, .. }, _) = kind;
        for role in Role::ALL {
            for padded in [false, true] {
                let inserts =
                    [&CWPRF, &POPRF, &SIGMA_DH, &SIGMA_AHE].contains(&protocol) || is_optional(protocol);
                let union = operation == &UNION && inserts;
                let due = if union && padded && role == Role::Receiver { 7 } else { 0 };
                for inserted in [0, 5, 7, 8] {
                    let mut hashed = HashedSet::new(&set);
                    hashed.insert_listed(inserted);
                    let (result, sent) = ends(kind, role, &hashed, Announced { size: 7, padded });
                    let refused = matches!(&result, Err(Error::Bug(m)) if m.contains("listed dummies for"));
                    assert_eq!(refused, inserted != due, "{kind:?} {role} {padded} {inserted}: {result:?}");
                    assert!(!refused || sent == 0);
                }
            }
        }
    }
}

/// A regression test for silent failures: an empty item among the new ones, and dummies that were counted.
#[test]
fn dummies_are_neither_delivered_nor_counted() {
    let (y, x) = (numbers(0, 5), numbers(4, 3));
    for kind in kinds().into_iter().filter(|k| !is_krtw19(k.1.protocol) || !k.2.payload) {
        let kind = (kind.0, kind.1, Terms { max_row: 100, ..kind.2 });
        let (values, payloads) = (values_of(&x), payloads_of(&x, &kind.2));
        let [r, _] = tasks_of(&kind, &y, &x, &values, &payloads);
        let (ours, theirs) = run_padded(kind, (&y, 9), (&x, 11)).0;
        let data = Inputs { y: &y, x: &x, values: &values, payloads: &payloads, terms: r.terms };
        let [our_part, their_part] = (r.operation.plain)(&data);
        let [ours, theirs] = named([ours, theirs], [&our_part, &their_part], 9 - y.len() + 11 - x.len());
        assert!((sorted(ours), theirs) == (sorted(our_part), their_part), "{kind:?}");
    }
}

#[test]
fn a_peer_with_more_items_than_a_run_takes_is_refused_before_a_byte_is_sent() {
    let set = numbers(0, 3);
    let hashed = HashedSet::new(&set);
    for (operation, protocol) in [(&COUNT, &CWPRF), (&INTERSECT, &VOLE)] {
        for role in Role::ALL {
            let peer = Announced { size: MAX_SET + 1, padded: false };
            let (end, sent) = ends((operation, Choice::of(protocol), SMALL), role, &hashed, peer);
            assert!(matches!(&end, Err(Error::Usage(what)) if what.contains("is the most")), "{end:?}");
            assert_eq!(sent, 0);
        }
    }
    // Protocols for small sets state their limits. Dummies count, including inserted ones.
    let terms = Terms { reveal_count: true, ..SMALL };
    let kind = (&UNION, Choice::of(&SIGMA_AHE), terms);
    for (size, refused) in [(253, false), (254, true)] {
        let mut hashed = HashedSet::new(&set);
        hashed.insert_listed(size);
        let (end, sent) = ends(kind, Role::Receiver, &hashed, Announced { size, padded: true });
        let found = matches!(&end, Err(Error::Usage(what)) if what.contains("sigma-dh"));
        assert!(found == refused && sent == 0, "{size}: {end:?}");
        let hashed = padded(&set, size, Dummies::Listed);
        let (end, sent) = ends(kind, Role::Sender, &hashed, Announced { size: 3, padded: false });
        let found = matches!(&end, Err(Error::Usage(what)) if what.contains("sigma-dh"));
        assert!(found == refused && (sent == 0 || !refused), "{size}: {end:?}");
    }
}
