//! What a party commits to, and that it has to show it.

use super::*;
use crate::error::Fault;
use crate::rng::Prng;
use crate::testing::{ANY_SESSION, run_many};
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
            many.each(|_, cx| {
                cx.ch.tx.send(COMMITMENT, &[ours])?;
                cx.ch.rx.recv(COMMITMENT, 1)
            })?;
            if let Some(at) = changed {
                opening[at] = other[at];
            }
            many.each(|_, cx| {
                cx.ch.tx.send(OPENING, &opening)?;
                cx.ch.rx.recv(OPENING, 2)
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
