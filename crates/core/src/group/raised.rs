//! A set under a key of a PRF: F_k(H(x)) of its items and dummies. The values are computed on demand, or offline before
//! the peer is met (`veilset::artefact`). The protocols treat both alike.

use super::{Group, Key, Point, Unfit};
use crate::channel::Wire;
use crate::error::{Error, Result};
use crate::hashed::HashedSet;
use crate::rng::Prng;
use crate::secret::Secrets;

/// A key, its inverse, and F_k(H(x)) of all items and dummies of a set, from preprocessing. Stored as bytes, with the
/// name of the group.
///
/// Must be used in a single session, even if that fails ([`crate::hash`]). The creator of a value of this type must
/// ensure this.
pub struct Offline {
    /// The name of the group.
    pub group: &'static str,
    /// The key's bytes.
    pub key: Secrets<u8>,
    /// The bytes of the inverse key.
    pub inverse: Secrets<u8>,
    /// The encoded points, concatenated in the order of the hashes. They are permuted when they are sent.
    pub points: Secrets<u8>,
}

/// F_k(H(x)) of a set, under its first key in a session.
pub struct Raised<'s, G: Group> {
    set: &'s HashedSet<'s>,
    key: G::Key,
    /// The prepared points; empty without preprocessing.
    points: &'s [u8],
}

/// Restores a key of a prepared half.
fn prepared<K: Key>(bytes: &[u8]) -> Result<K> {
    K::of_ours(bytes).ok_or_else(|| Error::Bug("what was prepared is no key".into()))
}

impl<'s, G: Group> Raised<'s, G> {
    /// Raises the set with its first key in a session: the prepared key if there is one, otherwise a fresh one.
    ///
    /// # Errors
    /// [`Error::Bug`] if the prepared half is for another group or a set of another size, or its keys are malformed.
    pub fn new(set: &'s HashedSet<'s>, rng: &mut Prng) -> Result<Self> {
        match set.offline() {
            Some(offline) => Raised::before(set, offline),
            None => Ok(Raised { set, key: G::Key::random(rng), points: &[] }),
        }
    }

    /// Raises the set as [`Raised::new`] does, and also returns the inverse key ([`Key::with_inverse`]).
    ///
    /// # Errors
    /// The errors of [`Raised::new`].
    pub fn with_inverse(set: &'s HashedSet<'s>, rng: &mut Prng) -> Result<(Self, G::Key)> {
        match set.offline() {
            Some(offline) => Ok((Raised::before(set, offline)?, prepared(&offline.inverse)?)),
            None => {
                let (key, inverse) = G::Key::with_inverse(rng);
                Ok((Raised { set, key, points: &[] }, inverse))
            }
        }
    }

    fn before(set: &'s HashedSet<'s>, offline: &'s Offline) -> Result<Self> {
        if offline.group != G::NAME || offline.points.len() != set.announced() * G::Point::SIZE {
            return Err(Error::bug(format!("what was prepared is in {} or of another set", offline.group)));
        }
        Ok(Raised { set, key: prepared(&offline.key)?, points: &offline.points })
    }

    /// Returns the key.
    pub fn key(&self) -> &G::Key {
        &self.key
    }

    /// Returns the points of the items and dummies at these positions, each below the set's `len()`.
    ///
    /// # Errors
    /// If an item hashes to an unfit point, which happens with negligible probability.
    pub fn points(&self, positions: &[u32]) -> Result<Vec<G::Point>, Unfit> {
        // Computes all points; or, for a prepared set, only those of dummies inserted since. The time reveals how many of
        // these are among the positions. That number depends only on a public number and on an order that is independent of
        // the data.
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

/// The error for an item of ours that hashes to an unfit point.
pub fn unlucky(_: Unfit) -> Error {
    Error::Bug("an item hashed to a point of low order, which has probability 2^-250".into())
}

/// The error for a peer that sent an unfit point of this group.
pub(crate) fn forged<G: Group>(_: Unfit) -> Error {
    Error::misbehaves(format_args!("it sent {}", G::UNFIT))
}
