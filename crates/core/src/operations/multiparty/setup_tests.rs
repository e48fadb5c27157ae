//! Tests of the commitments and of their openings.

use super::*;
use crate::error::Fault;
use crate::rng::Prng;
use crate::testing::{ANY_SESSION, run_many};
use curve25519_dalek::ristretto::CompressedRistretto;
use std::collections::HashSet;

fn sample(seed: u8) -> [[u8; 32]; 2] {
    [[seed; 32], SecretKey::random(&mut Prng::from_seed(&[seed; 32])).public()]
}

#[test]
fn a_commitment_is_of_one_session_party_seed_and_key() {
    let [a, b] = [1, 2].map(sample);
    let mut all: Vec<[u8; 32]> =
        [0, 1, 2, 255, 256].map(|party| commitment(&ANY_SESSION, party, &a)).to_vec();
    all.push(commitment(&SessionId::of([7; 32]), 0, &a));
    all.extend([[a[0], b[1]], [b[0], a[1]], [a[1], a[0]]].map(|shown| commitment(&ANY_SESSION, 0, &shown)));
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
}

/// Models a party that chooses its key or its seed in view of the others' openings.
#[test]
fn another_seed_or_key_than_was_committed_to_is_refused() {
    for changed in [None, Some(0), Some(1)] {
        let (errors, _) = run_many(3, 1, |many| {
            if many.me < 2 {
                return Ok(Setup::agree(many).err());
            }
            let (mut opening, other) = (sample(1), sample(2));
            let ours = commitment(&many.session, 2, &opening);
            let theirs = many.each(|_, cx| {
                cx.ch.tx.send(COMMITMENT, &[ours])?;
                Ok(cx.ch.rx.recv(COMMITMENT, 1)?[0])
            })?;
            if let Some(at) = changed {
                opening[at] = other[at];
            }
            let all = of_all(&many.session, &[theirs[0], theirs[1], ours]);
            many.each(|_, cx| {
                cx.ch.tx.send(OPENING, &[opening[0], opening[1], all])?;
                cx.ch.rx.recv(OPENING, 3)
            })?;
            Ok(None)
        });
        for error in &errors[..2] {
            match (changed, error) {
                (None, None) => {}
                (Some(_), Some(Error::Peer { fault: Fault::Misbehaved, who, .. })) => {
                    assert_eq!(*who, seat(2))
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A party that commits to one seed and key with one party, and to others with another, is detected by both.
#[test]
fn different_commitments_for_different_parties_are_refused() {
    let (errors, _) = run_many(3, 1, |many| {
        if many.me < 2 {
            return Ok(Setup::agree(many).err());
        }
        let (openings, session) = ([sample(1), sample(2)], many.session);
        let ours = openings.map(|opening| commitment(&session, 2, &opening));
        let theirs = many.each(|other, cx| {
            cx.ch.tx.send(COMMITMENT, &[ours[other]])?;
            Ok(cx.ch.rx.recv(COMMITMENT, 1)?[0])
        })?;
        many.each(|other, cx| {
            // Each party gets the opening of the commitment that it received.
            let all = of_all(&session, &[theirs[0], theirs[1], ours[other]]);
            cx.ch.tx.send(OPENING, &[openings[other][0], openings[other][1], all])?;
            cx.ch.rx.recv(OPENING, 3)
        })?;
        Ok(None)
    });
    // Each honest party has a commitment that the other one lacks.
    for error in &errors[..2] {
        let error = error.as_ref().unwrap();
        assert_eq!((error.fault(), error.seat()), (Some(Fault::Misbehaved), Some(Seat::SOMEBODY)));
        assert!(error.to_string().contains("tells the others different things"), "{error}");
    }
}

/// If such keys were accepted, a party that removes its key would leave rows in the clear for the parties whose keys add up to
/// the identity. Which of them chose its key in this way cannot be determined.
#[test]
fn remaining_keys_that_cancel_out_are_refused() {
    let key = SecretKey::random(&mut Prng::from_seed(&[1; 32])).public();
    let negative = (-CompressedRistretto(key).decompress().unwrap()).compress().0;
    let (errors, _) = run_many(3, 1, |many| {
        let opening = match many.me {
            0 => [[1; 32], key],
            2 => [[2; 32], negative],
            _ => return Ok(Setup::agree(many).err()),
        };
        let (me, session) = (many.me, many.session);
        let ours = commitment(&session, me, &opening);
        let mut all = many.each(|_, cx| {
            cx.ch.tx.send(COMMITMENT, &[ours])?;
            Ok(cx.ch.rx.recv(COMMITMENT, 1)?[0])
        })?;
        all.insert(me, ours);
        let all = of_all(&session, &all);
        many.each(|_, cx| {
            cx.ch.tx.send(OPENING, &[opening[0], opening[1], all])?;
            cx.ch.rx.recv(OPENING, 3)
        })?;
        Ok(None)
    });
    let error = errors[1].as_ref().unwrap();
    assert_eq!((error.fault(), error.seat()), (Some(Fault::Misbehaved), Some(Seat::SOMEBODY)));
    assert!(error.to_string().contains("cancel out"), "{error}");
}

/// A party that sees the seed or the key of another before it has committed can choose its own in view of them.
#[test]
fn nobody_shows_anything_before_all_have_committed() {
    let (ends, _) = run_many(3, 1, |many| match many.me {
        1 => Ok(Setup::agree(many).err()),
        // This party has committed, and waits for the opening of the party that lacks a commitment.
        0 => Ok(many
            .with(1, |ch| {
                ch.tx.send(COMMITMENT, &[[0; 32]])?;
                ch.rx.recv(COMMITMENT, 1)?;
                ch.rx.recv(OPENING, 3)
            })
            .err()),
        // This party receives the commitment of that party and leaves.
        _ => {
            many.with(1, |ch| ch.rx.recv(COMMITMENT, 1))?;
            Ok(many.with(1, |_| Err::<(), _>(Error::Cancelled)).err())
        }
    });
    for (me, end) in ends.iter().enumerate() {
        let fault = end.as_ref().unwrap_or_else(|| panic!("party {me} sees more")).fault();
        assert_eq!(fault, (me < 2).then_some(Fault::GaveUp), "{me}");
    }
}
