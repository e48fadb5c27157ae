//! A set under a key of a PRF: F_k(H(x)) of its items and dummies, computed when they are asked for, or before the peer
//! was met ([`crate::artefact`]). A protocol does not see the difference.

use super::{Group, Key, Point, Unfit};
use crate::channel::Wire;
use crate::error::{Error, Result};
use crate::hashed::Hashed;
use crate::rng::Prng;
use crate::secret::Secrets;

/// A key, its inverse, and F_k(H(x)) of all items and dummies of a set, computed before the peer was met. It is kept as
/// bytes, with the name of the group that they mean something in.
///
/// For one session only, even one that fails ([`crate::hash`]): whoever makes one of these has seen to that.
pub(crate) struct Offline {
    pub(crate) group: &'static str,
    pub(crate) key: Secrets<u8>,
    pub(crate) inverse: Secrets<u8>,
    /// One after the other, in the order of the hashes; permuted when they are sent.
    pub(crate) points: Secrets<u8>,
}

/// F_k(H(x)) of a set, for its first key in a session.
pub struct Raised<'s, G: Group> {
    set: &'s Hashed<'s>,
    key: G::Key,
    /// Those that were computed before.
    points: &'s [u8],
}

/// A key of a half that was prepared.
fn prepared<K: Key>(bytes: &[u8]) -> Result<K> {
    K::of_ours(bytes).ok_or_else(|| Error::Bug("a key of another length was prepared".into()))
}

impl<'s, G: Group> Raised<'s, G> {
    /// The set under its first key of a session: the one that was prepared, otherwise a fresh one.
    ///
    /// # Errors
    /// [`Error::Bug`] if what was prepared is in another group, or is not of this set.
    pub fn new(set: &'s Hashed<'s>, rng: &mut Prng) -> Result<Self> {
        match set.offline() {
            Some(offline) => Raised::before(set, offline),
            None => Ok(Raised { set, key: G::Key::random(rng), points: &[] }),
        }
    }

    /// The same, and the key that takes the first one off again ([`Key::with_inverse`]).
    ///
    /// # Errors
    /// As those of [`Raised::new`].
    pub fn with_inverse(set: &'s Hashed<'s>, rng: &mut Prng) -> Result<(Self, G::Key)> {
        match set.offline() {
            Some(offline) => Ok((Raised::before(set, offline)?, prepared(&offline.inverse)?)),
            None => {
                let (key, inverse) = G::Key::with_inverse(rng);
                Ok((Raised { set, key, points: &[] }, inverse))
            }
        }
    }

    fn before(set: &'s Hashed<'s>, offline: &'s Offline) -> Result<Self> {
        if offline.group != G::NAME || offline.points.len() != set.announced() * G::Point::SIZE {
            return Err(Error::Bug(format!("what was prepared is in {} or of another set", offline.group)));
        }
        Ok(Raised { set, key: prepared(&offline.key)?, points: &offline.points })
    }

    /// The key.
    pub fn key(&self) -> &G::Key {
        &self.key
    }

    /// The points of the items and dummies at these positions, each below the set's `len()`.
    ///
    /// # Errors
    /// If an item hashes to an unfit point, which happens with a negligible probability.
    pub fn points(&self, positions: &[u32]) -> Result<Vec<G::Point>, Unfit> {
        // All, or of a set that was prepared the dummies that were inserted since. How many of these are among the
        // positions shows in time: it follows from a public number and from an order that knows no data.
        let known = |i: &u32| self.points.get(*i as usize * G::Point::SIZE..).filter(|rest| !rest.is_empty());
        let new = Secrets::from(positions.iter().filter(|i| known(i).is_none()).copied().collect::<Vec<_>>());
        let mut computed = G::map_and_raise(&self.set.hashes(&new), &self.key)?;
        if new.len() < positions.len() {
            let mut new = computed.into_iter();
            let before = |rest: &[u8]| G::Point::of_ours(&rest[..G::Point::SIZE]);
            let point = |i| known(i).map_or_else(|| new.next(), before);
            computed = positions.iter().filter_map(point).collect();
        }
        Ok(computed)
    }
}

/// The verdict on an item of ours that hashes to an unfit point.
pub(crate) fn unlucky(_: Unfit) -> Error {
    Error::Bug("an item hashed to a point of low order, which has probability 2^-250".into())
}

/// The verdict on a peer that sent an unfit point of this group.
pub(crate) fn forged<G: Group>(_: Unfit) -> Error {
    Error::misbehaves(format_args!("it sent {}", G::UNFIT))
}
