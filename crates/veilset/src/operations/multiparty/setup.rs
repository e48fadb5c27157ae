//! What all parties agree on before a run of several: the hash functions of the cuckoo tables, and a joint key.
//!
//! Each party commits to a random seed and a public key, and shows both when it has all commitments. So nobody
//! chooses its key in view of the others, and the seed of all is random if one party is honest. The seeds are drawn
//! after the sets are fixed: whoever knows the functions before can choose items that have no placement.
//!
//! Nothing makes sure that a party tells all others the same. One that does not is malicious, and the others then
//! have different functions or keys: the run gives a wrong result or none, and shows nothing more.

use crate::ahe::elgamal::{Encoding, Malformed, PublicKey, SecretKey};
use crate::channel::Message;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId};
use crate::hashing::cuckoo::{self, Functions, Table};
use crate::many::{Many, seat};
use crate::oprf::Input;
use crate::params::LAMBDA;

const COMMITMENT: Message<[u8; 32]> = Message::new(0xd8, "to all  commitment to a seed and a public key");
const OPENING: Message<[u8; 32]> = Message::new(0xd9, "to all  seed and public key");

/// Functions that a party tries for its table. All of them fail with a probability of 2^-120.
const TRIES: u64 = 3;

/// What the parties have agreed on.
pub(super) struct Setup {
    /// Our secret key.
    pub(super) key: SecretKey,
    /// The public keys of all parties, in their order.
    pub(super) keys: Vec<Encoding>,
    /// The domain of all hash functions.
    functions: Domain,
}

/// What commits the party with this number to its seed and key.
fn commitment(session: &SessionId, party: usize, opening: &[[u8; 32]; 2]) -> [u8; 32] {
    let domain = Domain::new(session, "run of several parties, commitment to seed and key");
    domain.numbered(party as u64).hash(&[opening.as_flattened()])
}

impl Setup {
    /// Runs one party. Its set must be fixed.
    pub(super) fn agree(many: &mut Many) -> Result<Setup> {
        let (me, session) = (many.me, many.session);
        let key = SecretKey::random(many.rng);
        let opening = [many.rng.bytes(), key.public()];
        let ours = commitment(&session, me, &opening);
        let committed = many.each(|_, cx| {
            cx.ch.tx.send(COMMITMENT, &[ours])?;
            Ok(cx.ch.rx.recv(COMMITMENT, 1)?[0])
        })?;
        // No party shows anything before all have committed.
        let mut openings = many.each(|_, cx| {
            cx.ch.tx.send(OPENING, &opening)?;
            cx.ch.rx.recv(OPENING, 2)
        })?;
        for ((party, committed), shown) in many.others().zip(&committed).zip(&openings) {
            let opens =
                matches!(shown[..], [seed, key] if commitment(&session, party, &[seed, key]) == *committed);
            if !opens {
                return Err(
                    Error::misbehaves("it shows another seed or key than it committed to").by(seat(party))
                );
            }
        }
        openings.insert(me, opening.to_vec());
        let seeds: Vec<u8> = openings.iter().flat_map(|opening| opening[0]).collect();
        let keys = openings.iter().map(|opening| opening[1]).collect();
        let seed =
            SessionId::of(Domain::new(&session, "run of several parties, the seed of all").hash(&[&seeds]));
        Ok(Setup { key, keys, functions: Domain::new(&seed, "run of several parties, cuckoo hashing") })
    }

    /// The joint key of all parties.
    pub(super) fn joint(&self) -> Result<PublicKey> {
        PublicKey::joint(&self.keys).map_err(|wrong| self.malformed(wrong))
    }

    /// The joint key of those who have not decrypted yet when we have.
    pub(super) fn remaining(&self, me: usize) -> Result<PublicKey> {
        PublicKey::remaining(&self.keys, me).map_err(|wrong| self.malformed(wrong))
    }

    fn malformed(&self, Malformed(party): Malformed) -> Error {
        Error::misbehaves("its public key is not an element of ristretto255, or its identity").by(seat(party))
    }

    /// The functions of the table of this party, for sets of up to `bound` items; of each try there are others.
    pub(super) fn functions(&self, party: usize, bound: usize, number: u64) -> Result<Functions> {
        let domain = self.functions.numbered(TRIES * party as u64 + number);
        Functions::new(domain, cuckoo::number(LAMBDA, bound))
    }

    /// Our table, and the number of the try at which it has a placement.
    pub(super) fn table(&self, me: usize, bound: usize, items: &[Input]) -> Result<(Table, u64)> {
        for number in 0..TRIES {
            if let Some(table) = Table::new(&self.functions(me, bound, number)?, items) {
                return Ok((table, number));
            }
        }
        Err(Error::Bug("a table that has no placement".into()))
    }

    /// The functions that this party says it has used.
    pub(super) fn told(&self, party: usize, bound: usize, number: u64) -> Result<Functions> {
        match number < TRIES {
            true => self.functions(party, bound, number),
            false => {
                Err(Error::misbehaves(format!("it says that it made its table at try {number} of {TRIES}")))
            }
        }
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
