//! Tests of errors that occur before a byte is sent, and of errors that are hidden from the peer.

use super::dummies::ends;
use super::*;
use crate::channel::Sink;
use crate::context::Context;
use crate::error::Fault;
use crate::membership::permuted::PermutedMqpmt;
use crate::operations::{COUNT, INTERSECT, SUM, UNION};
use crate::secret::Secrets;

const PEER: Announced = Announced { size: 7, padded: false };

#[test]
fn only_cm20_is_said_to_withstand_a_sender_that_deviates() {
    let set: ItemSet = ["a", "b", "c"].iter().collect();
    let set = HashedSet::new(&set);
    for (operation, choice, terms) in kinds().into_iter().filter(|kind| kind.1.protocol != &CM20) {
        for role in Role::ALL {
            let terms = Terms { malicious_sender: true, ..terms };
            let (end, sent) = ends((operation, choice, terms), role, &set, PEER);
            let refused = matches!(&end, Err(Error::Bug(m)) if m.contains("against a malicious sender"));
            assert!(refused && sent == 0, "{operation} {choice} {role}: {end:?}");
        }
    }
}

/// A protocol neither reveals the count without agreement, nor withholds an agreed one.
#[test]
fn the_count_is_revealed_to_the_sender_exactly_if_that_was_agreed() {
    let set: ItemSet = ["a", "b", "c"].iter().collect();
    let set = HashedSet::new(&set);
    for (operation, protocol, terms) in kinds() {
        for role in Role::ALL {
            let terms = Terms { reveal_count: !terms.reveal_count, ..terms };
            let (end, sent) = ends((operation, protocol, terms), role, &set, PEER);
            let refused = matches!(&end, Err(Error::Bug(m)) if m.contains("learn"));
            assert!(refused && sent == 0, "{operation} {protocol} {role}: {end:?}");
        }
    }
}

#[test]
fn rows_that_are_too_long_are_found_before_a_byte_is_sent() {
    let set: ItemSet = ["long", "longer"].iter().collect();
    let set = HashedSet::new(&set);
    let rows = |kind: &Kind| kind.0 == &UNION || kind.2.payload;
    for (operation, choice, terms) in kinds().into_iter().filter(rows) {
        // A payload of 7 bytes, or an item of 6.
        let terms = Terms { max_row: 5, ..terms };
        let (end, sent) = ends((operation, choice, terms), Role::Sender, &set, PEER);
        let refused = matches!(&end, Err(Error::Bug(m)) if m.contains("longer than the agreed row"));
        assert!(refused && sent == 0, "{operation} {choice} {terms:?}: {end:?}");
    }
}

#[test]
fn payloads_and_values_that_are_not_those_of_the_items_are_refused() {
    let set: ItemSet = ["a", "b"].iter().collect();
    let hashed = HashedSet::new(&set);
    for kind in
        kinds().into_iter().filter(|kind| kind.2.payload || kind.0.uses.has_values(Role::Sender, &kind.2))
    {
        for n in [0, 1, 3] {
            let (values, payloads) = (vec![1; n], (0..n).map(|_| "x").collect::<Items>());
            let (values, payloads) =
                if kind.2.payload { (&[][..], &payloads) } else { (&values[..], NO_PAYLOADS) };
            let (operation, Choice { protocol, group }, terms) = kind;
            let role = Role::Sender;
            let task = Task { operation, role, group, set: &hashed, values, payloads, terms, filter: None };
            let (mut ch, gone) = Channel::pair();
            drop(gone);
            let end = run(
                protocol,
                &task,
                &mut Context::new(&mut ch, &SESSION, &mut Prng::from_seed(&[3; 32])),
                PEER,
            )
            .map(|_| ());
            let refused = matches!(&end, Err(Error::Bug(m)) if m.contains("do not belong to the items"));
            assert!(refused && ch.bytes_sent() == 0, "{kind:?} {n}: {end:?}");
        }
    }
}

/// Replaces every query by this item.
struct Again {
    sink: Box<dyn Sink>,
    item: [u8; 32],
}

impl Sink for Again {
    fn send(&mut self, mut frame: Vec<u8>) -> Result<()> {
        if frame[..2] == 0x7001u16.to_le_bytes() {
            frame[6..].copy_from_slice(&self.item);
        }
        self.sink.send(frame)
    }
}

/// The number of matches that the sender gets is capped at the number of items: by repeating items in powers of two, it could
/// otherwise learn which ones match.
#[test]
fn a_sender_that_asks_for_one_item_again_and_again_sees_no_verdict() {
    let (y, x) = overlapping(3, 5, 0.0);
    let item = *HashedSet::new(&y).hash(0).as_bytes();
    let values = [1; 5];
    for (operation, both) in
        [(&INTERSECT, false), (&UNION, false), (&COUNT, false), (&COUNT, true), (&SUM, false)]
    {
        let values = if operation == &SUM { &values[..] } else { &[] };
        let [mut r, mut s] = tasks(operation, &y, &x, values);
        (r.terms.both, s.terms.both) = (both, both);
        let ((ours, theirs), _) = run_pair(
            &SESSION,
            |cx| r.run(|t| Ok(over(t, &Ideal, cx, 5)?.open(Confirmed::for_tests()))),
            |cx| {
                let (sink, source) = std::mem::replace(cx.ch, Channel::pair().0).into_halves();
                *cx.ch = Channel::from_halves(Box::new(Again { sink, item }), source);
                Ok(s.run(|t| over(t, &Ideal, cx, 3).map(|_| ())))
            },
        );
        assert!(matches!(ours, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{operation}: {ours:?}");
        assert_eq!(theirs, Ok(()), "{operation}");
    }
}

/// A test in which every response matches.
struct AllMatch;

impl PermutedMqpmt for AllMatch {
    fn server(&self, _: &mut Context, _: &HashedSet, _: usize) -> Result<()> {
        Ok(())
    }

    fn client(&self, _: &mut Context, x: &HashedSet, _: usize) -> Result<Secrets<bool>> {
        Ok(Secrets::from(vec![true; x.len()]))
    }
}

#[test]
fn a_sender_whose_responses_match_too_often_sees_no_verdict() {
    let (y, x) = overlapping(5, 3, 0.0);
    let Some(OverSigma::Permuted(run)) = &COUNT.over_sigma else { panic!("count over a Sigma-mqPMT") };
    for both in [false, true] {
        let [mut r, mut s] = tasks(&COUNT, &y, &x, &[]);
        (r.terms.both, s.terms.both) = (both, both);
        let ((ours, theirs), _) = run_pair(
            &SESSION,
            |cx| r.run(|t| Ok(run(&AllMatch, t, cx, 3)?.open(Confirmed::for_tests()))),
            |cx| s.run(|t| run(&AllMatch, t, cx, 5)?.open(Confirmed::for_tests())),
        );
        assert!(matches!(ours, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{ours:?}");
        // The number is capped at its number of items, 3.
        assert_eq!(theirs, if both { Learned::Matches(3) } else { Learned::Nothing });
    }
}
