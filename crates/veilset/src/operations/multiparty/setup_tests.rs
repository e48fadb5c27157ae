//! What a party commits to, and that it has to show it.

use super::*;
use crate::error::Fault;
use crate::rng::Prng;
use crate::testing::{ANY_SESSION, run_many, split_frames};
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

/// As of one that chooses its key or its seed when it knows those of the others.
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

/// A party that commits to one seed and key with one party, and to others with another, is found out by both.
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
            // Each gets what goes with what it was told.
            let all = of_all(&session, &[theirs[0], theirs[1], ours[other]]);
            cx.ch.tx.send(OPENING, &[openings[other][0], openings[other][1], all])?;
            cx.ch.rx.recv(OPENING, 3)
        })?;
        Ok(None)
    });
    // Both name the other honest party, and say that it need not be that one.
    for (error, other) in errors[..2].iter().zip([1, 0]) {
        let error = error.as_ref().unwrap();
        assert_eq!((error.fault(), error.seat()), (Some(Fault::Misbehaved), Some(seat(other))));
        assert!(
            error.to_string().contains("one of the parties tells the others different things"),
            "{error}"
        );
    }
}

/// Whoever sees the seed or the key of another before it has committed can choose its own in view of them.
#[test]
fn nobody_shows_anything_before_all_have_committed() {
    let (_, views) = run_many(3, 1, |many| {
        if many.me < 2 {
            return Ok(Setup::agree(many).err());
        }
        let ended = many.each(|other, cx| {
            cx.ch.rx.recv(COMMITMENT, 1)?;
            // One of the others has all commitments, the other one lacks this one.
            match other {
                0 => cx.ch.tx.send(COMMITMENT, &[commitment(&cx.session, 2, &sample(1))]),
                _ => Ok(()),
            }
        });
        // What the one that lacks it has shown comes before its last words.
        let ended = ended.and_then(|_| many.with(0, |ch| ch.rx.recv(OPENING, 3)));
        assert!(ended.is_ok());
        Ok(many.with(1, |_| Err::<(), _>(Error::Cancelled)).err())
    });
    let tags = |from: usize| split_frames(&views[2][from]).iter().map(|frame| frame.0).collect::<Vec<_>>();
    assert!(tags(0).starts_with(&[0xd8, 0xd9]), "{:x?}", tags(0));
    assert!(tags(1).starts_with(&[0xd8]) && !tags(1).contains(&0xd9), "{:x?}", tags(1));
}
