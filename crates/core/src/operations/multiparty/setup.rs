//! The agreement of all parties before a run of several: the hash functions of the cuckoo tables, and a joint key.
//!
//! Each party commits to a random seed and a public key, and opens both once it has all commitments. So no party chooses its
//! key in view of the others' keys, and the joint seed is random if one party is honest. The seeds are drawn after the sets
//! are fixed: a party that knew the functions before could choose items that have no placement.
//!
//! With its seed and key, a party sends a hash of all commitments that it holds. A party that commits to different values
//! with different parties would give them different functions or keys. The hashes then differ, and the run ends before
//! anything depends on a set; the deviating party cannot be identified. Such a party can choose its last commitment in view
//! of the others' openings, but not of the opening of the recipient of that commitment.

use crate::ahe::elgamal::{Malformed, PublicKey, SecretKey};
use crate::channel::Message;
use crate::error::{Error, Result, Seat};
use crate::hash::{Domain, SessionId};
use crate::hashing::cuckoo::{CuckooTable, Functions};
use crate::many::{Many, seat};
use crate::oprf::Input;

const COMMITMENT: Message<[u8; 32]> = Message::new(0xd8, "to all  commitment to a seed and a public key");
const OPENING: Message<[u8; 32]> = Message::new(0xd9, "to all  seed and public key, hash of all commitments");

/// The number of tries of a party for its table, each with its own functions. All of them fail with a probability of at most
/// 2^-120.
const TRIES: u64 = 3;

/// The agreed functions and keys, and our secret key.
pub(super) struct Setup {
    /// Our secret key.
    pub(super) key: SecretKey,
    /// The joint key of all parties.
    pub(super) joint: PublicKey,
    /// The joint key of the parties that have yet to decrypt when we have done so.
    pub(super) rest: PublicKey,
    /// The domain of all hash functions.
    functions: Domain,
}

/// Returns the commitment of the party with this number to its seed and key.
pub(super) fn commitment(session: &SessionId, party: usize, opening: &[[u8; 32]; 2]) -> [u8; 32] {
    let domain = Domain::new(session, "run of several parties, commitment to seed and key");
    domain.numbered(party as u64).hash(&[opening.as_flattened()])
}

/// Returns the hash of all commitments, including the party's own.
fn of_all(session: &SessionId, commitments: &[[u8; 32]]) -> [u8; 32] {
    Domain::new(session, "run of several parties, all commitments").hash(&[commitments.as_flattened()])
}

impl Setup {
    /// Runs one party. Its set must be fixed.
    pub(super) fn agree(many: &mut Many) -> Result<Setup> {
        let (me, session) = (many.me, many.session);
        let key = SecretKey::random(many.rng);
        let opening = [many.rng.bytes(), key.public()];
        let ours = commitment(&session, me, &opening);
        let mut committed = many.each(|_, cx| {
            cx.ch.tx.send(COMMITMENT, &[ours])?;
            Ok(cx.ch.rx.recv(COMMITMENT, 1)?[0])
        })?;
        committed.insert(me, ours);
        let all = of_all(&session, &committed);
        // No party opens its commitment before all have committed.
        let [seed, key_of_ours] = opening;
        let mut shown = many.each(|_, cx| {
            cx.ch.tx.send(OPENING, &[seed, key_of_ours, all])?;
            let shown = cx.ch.rx.recv(OPENING, 3)?;
            <[[u8; 32]; 3]>::try_from(shown).map_err(|_| Error::Bug("an opening of another length".into()))
        })?;
        shown.insert(me, [seed, key_of_ours, all]);
        let wrong = |what, who| Error::misbehaves(what).by(who);
        for (party, ([seed, key, _], committed)) in shown.iter().zip(&committed).enumerate() {
            if commitment(&session, party, &[*seed, *key]) != *committed {
                return Err(wrong("it shows another seed or key than it committed to", seat(party)));
            }
        }
        if shown.iter().any(|[.., theirs]| *theirs != all) {
            let what = "it tells the others different things: not all have the same commitments";
            return Err(wrong(what, Seat::SOMEBODY));
        }
        let keys: Vec<[u8; 32]> = shown.iter().map(|[_, key, _]| *key).collect();
        let cancel_out = || wrong("its key and those of others cancel out", Seat::SOMEBODY);
        let joint = PublicKey::joint(&keys).map_err(|Malformed(party)| match party < keys.len() {
            true => wrong("its key is not an element of ristretto255, or its identity", seat(party)),
            false => cancel_out(),
        })?;
        let rest = PublicKey::remaining(&keys, me).map_err(|_| cancel_out())?;
        let seeds: Vec<u8> = shown.iter().flat_map(|[seed, ..]| *seed).collect();
        let seed =
            SessionId::of(Domain::new(&session, "run of several parties, the seed of all").hash(&[&seeds]));
        let functions = Domain::new(&seed, "run of several parties, cuckoo hashing");
        Ok(Setup { key, joint, rest, functions })
    }

    /// Returns the functions for try `number` of this party's table, which has `bins` bins. Each try has its own.
    pub(super) fn functions(&self, party: usize, bins: usize, number: u64) -> Result<Functions> {
        Functions::new(self.functions.numbered(TRIES * party as u64 + number), bins)
    }

    /// Returns our table, and the number of the first try that has a placement.
    pub(super) fn table(&self, me: usize, bins: usize, items: &[Input]) -> Result<(CuckooTable, u64)> {
        for number in 0..TRIES {
            if let Some(table) = CuckooTable::new(&self.functions(me, bins, number)?, items) {
                return Ok((table, number));
            }
        }
        Err(Error::Bug("a table that has no placement".into()))
    }

    /// Returns the functions for the try that this party announced, if there is such a try.
    pub(super) fn announced(&self, party: usize, bins: usize, number: u64) -> Result<Functions> {
        match number < TRIES {
            true => self.functions(party, bins, number),
            false => {
                Err(Error::misbehaves(format!("it says that it made its table at try {number} of {TRIES}")))
            }
        }
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
