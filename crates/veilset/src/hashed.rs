//! A set as it takes part in a protocol: 32 uniform bytes for each item, and for each dummy that pads it.
//!
//! It is made before the peer is met. Hashing is the one thing whose time depends on the lengths of the items, and
//! padding the one whose time depends on the number of dummies: done later, a peer could take the time of both.
//!
//! A protocol raises the set to a key of the PRF: [`Raised`]. Key and points may have been computed before, in the
//! offline half of a session ([`crate::artefact`]); a protocol does not see the difference.

use crate::group::curve25519::{Key, LowOrder, Point, map_and_raise};
use crate::hash::ItemHash;
use crate::item::ItemSet;
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;

/// A set, hashed, and padded if so wished (KRTW19 2.5).
///
/// Dummies have hashes and are no items, so they are in a domain of their own. Which kind an operation takes is said by
/// [`crate::operations::Operation::dummies`]; [`crate::protocols::run`], the only way into an operation, refuses a set
/// that is padded with the other kind.
pub struct Hashed<'a> {
    items: &'a ItemSet,
    /// Of the items, then of the dummies.
    hashes: Secrets<ItemHash>,
    /// The kind of dummies that pad it, of which there may be 0.
    dummies: Option<Dummies>,
    /// How many listed dummies were inserted behind these. They are public and hashed when they are needed: their
    /// number is the peer's word.
    inserted: usize,
    /// What was computed before, if it was.
    offline: Option<Offline>,
}

/// What a set is padded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dummies {
    /// Random hashes: they match nothing, and nobody can guess and count them.
    Random,
    /// The first hashes of a public list. The peer inserts in its own set as many as this one can have, and they match:
    /// so it neither gets them nor learns how many there are.
    Listed,
}

/// A key, its inverse, and F_k(H(x)) of all items and dummies of a set, computed before the peer was met.
///
/// For one session only, even one that fails ([`crate::hash`]): whoever makes one of these has seen to that.
pub(crate) struct Offline {
    pub(crate) key: Key,
    pub(crate) inverse: Key,
    /// In the order of the hashes; permuted when they are sent.
    pub(crate) points: Secrets<[u8; 32]>,
}

/// F_k(H(x)) of a set, for its first key in a session.
pub struct Raised<'s> {
    set: &'s Hashed<'s>,
    key: Key,
    /// Those that were computed before.
    points: &'s [[u8; 32]],
}

/// Items that a task hashes.
const BATCH: usize = 1 << 9;

impl<'a> Hashed<'a> {
    /// The set without dummies.
    pub fn new(items: &'a ItemSet) -> Self {
        let mut hashes = Secrets::zeros(items.len());
        hashes.par_chunks_mut(BATCH).enumerate().for_each(|(batch, hashes)| {
            ItemHash::of_items((batch * BATCH..).map(|i| items.get(i)).take(hashes.len()), hashes);
        });
        Hashed { items, hashes, dummies: None, inserted: 0, offline: None }
    }

    /// The set filled up to `size`, no less than it has, with random dummies.
    pub fn padded(items: &'a ItemSet, size: usize, rng: &mut Prng) -> Self {
        let dummies =
            (0..size.saturating_sub(items.len())).map(|_| ItemHash::random(rng)).collect::<Vec<_>>();
        Self::new(items).with_dummies(Dummies::Random, &Secrets::from(dummies))
    }

    fn with_dummies(mut self, kind: Dummies, dummies: &[ItemHash]) -> Self {
        self.hashes.extend(dummies);
        self.dummies = Some(kind);
        self
    }

    /// The set filled up to `size`, no less than it has, with listed dummies.
    pub fn padded_from_list(items: &'a ItemSet, size: usize) -> Self {
        // At once: how many there are is ours to hide, and later it would show in the time of every frame.
        let dummies: Vec<_> =
            (0..size.saturating_sub(items.len())).into_par_iter().map(ItemHash::listed()).collect();
        Self::new(items).with_dummies(Dummies::Listed, &Secrets::from(dummies))
    }

    /// Puts the first `n` listed dummies behind all others, those that the peer's set may have.
    pub fn insert_listed(&mut self, n: usize) {
        self.inserted = n;
    }

    /// How many listed dummies were inserted for those of the peer's set.
    pub fn inserted(&self) -> usize {
        self.inserted
    }

    /// The kind of dummies that pad it; none if it is not padded.
    pub fn dummies(&self) -> Option<Dummies> {
        self.dummies
    }

    /// The items, without dummies.
    pub fn items(&self) -> &'a ItemSet {
        self.items
    }

    /// The size of the set in the protocol: items, dummies, and those that were inserted.
    pub fn len(&self) -> usize {
        self.hashes.len() + self.inserted
    }

    /// The size that the peer is told: items, and the dummies that pad them.
    pub fn announced(&self) -> usize {
        self.hashes.len()
    }

    /// Whether it has neither.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hashes of the items and dummies at these positions, each below `len()`.
    pub fn hashes(&self, positions: &[u32]) -> Secrets<ItemHash> {
        let dummy = ItemHash::listed();
        let mut hashes = Secrets::zeros(positions.len());
        hashes.par_iter_mut().zip(positions).for_each(|(hash, &i)| {
            *hash = match self.hashes.get(i as usize) {
                Some(hash) => *hash,
                None => dummy(i as usize - self.hashes.len()),
            };
        });
        hashes
    }

    /// The hash of an item, or of a dummy that was not inserted.
    pub fn hash(&self, i: usize) -> &ItemHash {
        &self.hashes[i]
    }

    /// The hashes of the items, then of the dummies that were not inserted.
    pub(crate) fn own(&self) -> &[ItemHash] {
        &self.hashes
    }

    /// Takes over what was computed before, for as many items and dummies as there are.
    pub(crate) fn take_over(&mut self, offline: Offline) {
        debug_assert_eq!(offline.points.len(), self.hashes.len());
        self.offline = Some(offline);
    }

    /// The set under its first key of a session: the one that was prepared, otherwise a fresh one.
    pub fn raised(&self, rng: &mut Prng) -> Raised<'_> {
        match &self.offline {
            Some(offline) => Raised::before(self, offline),
            None => Raised { set: self, key: Key::random(rng), points: &[] },
        }
    }

    /// The same, and the key that takes the first one off again ([`Key::with_inverse`]).
    pub fn raised_with_inverse(&self, rng: &mut Prng) -> (Raised<'_>, Key) {
        match &self.offline {
            Some(offline) => (Raised::before(self, offline), Key::of_ours(*offline.inverse.as_bytes())),
            None => {
                let (key, inverse) = Key::with_inverse(rng);
                (Raised { set: self, key, points: &[] }, inverse)
            }
        }
    }
}

impl<'s> Raised<'s> {
    fn before(set: &'s Hashed<'s>, offline: &'s Offline) -> Self {
        Raised { set, key: Key::of_ours(*offline.key.as_bytes()), points: &offline.points }
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The points of the items and dummies at these positions, each below the set's `len()`.
    ///
    /// # Errors
    /// If an item hashes to a point of low order, which happens with probability 2^-250.
    pub fn points(&self, positions: &[u32]) -> Result<Vec<Point>, LowOrder> {
        // All, or of a set that was prepared the dummies that were inserted since. How many of these are among the
        // positions shows in time: it follows from a public number and from an order that knows no data.
        let known = |i: &u32| self.points.get(*i as usize);
        let new = Secrets::from(positions.iter().filter(|i| known(i).is_none()).copied().collect::<Vec<_>>());
        let mut computed = map_and_raise(&self.set.hashes(&new), &self.key)?;
        if new.len() < positions.len() {
            let mut new = computed.into_iter();
            let point = |i| known(i).map(|&bytes| Point::of_ours(bytes)).or_else(|| new.next());
            computed = positions.iter().filter_map(point).collect();
        }
        Ok(computed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn items_and_dummies_have_hashes_of_their_own() {
        let set: ItemSet = ["a", "b", ""].iter().collect();
        let all =
            |h: &Hashed<'_>| -> Vec<ItemHash> { h.hashes(&(0..h.len() as u32).collect::<Vec<_>>()).to_vec() };
        let mut rng = Prng::from_seed(&[1; 32]);
        let plain = Hashed::new(&set);
        let random = Hashed::padded(&set, 9, &mut rng);
        let again = Hashed::padded(&set, 9, &mut rng);
        let listed = Hashed::padded_from_list(&set, 9);
        assert_eq!([plain.len(), random.len(), listed.len()], [3, 9, 9]);
        for other in [&random, &again, &listed] {
            assert_eq!(all(other)[..3], all(&plain)[..]);
            assert!(other.items() == &set);
        }
        let mut different: HashSet<ItemHash> = all(&plain).into_iter().collect();
        for padded in [&random, &again, &listed] {
            different.extend(&all(padded)[3..]);
        }
        assert_eq!(different.len(), 3 + 3 * 6);
        // Nobody can guess those that match nothing.
        let list: HashSet<ItemHash> = (0..300).map(ItemHash::listed()).collect();
        assert!([&random, &again].iter().all(|padded| all(padded).iter().all(|hash| !list.contains(hash))));
        // The list is the same whoever has it, wherever it begins.
        let none = ItemSet::default();
        let mut receiver = Hashed::padded(&none, 4, &mut rng);
        receiver.insert_listed(6);
        assert_eq!(all(&receiver)[4..], all(&listed)[3..]);
    }
}
