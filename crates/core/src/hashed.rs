//! A set as protocol input: 32 uniform bytes for each item, and for each dummy that pads it.
//!
//! It is prepared before the peer is met, unless it is a part of a larger set ([`HashedSet::part`]), or consists of
//! identifiers that the run makes. Only hashing, which is done with the [`ItemSet`], takes a time that depends on the
//! lengths of the items, and only padding takes one that depends on the number of dummies. If they were done later, a
//! peer could measure both.
//!
//! A protocol may raise the set with a key of a PRF ([`crate::group::raised`]). Key and points may come from
//! preprocessing, the offline half of a session (`veilset::artefact`).

use crate::error::{Error, Result};
use crate::group::raised::Offline;
use crate::hash::ItemHash;
use crate::item::{ItemSet, Items, hashes_of};
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::OnceLock;

/// A hashed set, padded on request (KRTW19 2.5).
///
/// Dummies have hashes but are not items, so they have a separate domain. [`crate::operations::Operation::dummies`]
/// gives the kind that an operation takes; [`crate::protocols::run_among`] and [`crate::protocols::run`], the only
/// entries to operations, refuse a set that is padded with the other kind.
pub struct HashedSet<'a> {
    items: Cow<'a, Items>,
    /// Hashes of the items, then of the dummies.
    hashes: Hashes<'a>,
    /// The kind of dummies that pad the set, of which there may be 0.
    dummies: Option<Dummies>,
    /// The number of listed dummies that were inserted after these. They are public and hashed on demand, because the
    /// peer states their number.
    inserted: usize,
    /// Prepared key and points, if any.
    offline: Option<Offline>,
    /// The identifiers of the set's items and dummies, if a run of `id` made any.
    identifiers: OnceLock<Box<HashedSet<'static>>>,
}

enum Hashes<'a> {
    /// The hashes of a set without dummies.
    OfSet(&'a [ItemHash]),
    Own(Secrets<ItemHash>),
}

/// The kind of dummies that pad a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dummies {
    /// Random hashes, which match nothing and cannot be guessed and counted.
    Random,
    /// The first hashes of a public list. The peer inserts the maximum number of these into its own set, so they match:
    /// it neither receives them nor learns their number.
    Listed,
}

/// Number of hashes that a task copies or, for dummies, computes.
const BATCH: usize = 1 << 9;

impl<'a> HashedSet<'a> {
    /// Returns the set without dummies, with its existing hashes.
    pub fn new(set: &'a ItemSet) -> Self {
        Self::of(Cow::Borrowed(&**set), Hashes::OfSet(set.hashes()), None)
    }

    fn of(items: Cow<'a, Items>, hashes: Hashes<'a>, dummies: Option<Dummies>) -> Self {
        HashedSet { items, hashes, dummies, inserted: 0, offline: None, identifiers: OnceLock::new() }
    }

    /// Returns the set padded to `size`, at least its own size, with random dummies. Takes 32 bytes of memory per item
    /// and dummy, in addition to the set's.
    pub fn padded(items: &'a ItemSet, size: usize, rng: &mut Prng) -> Self {
        Self::with_dummies(items, Dummies::Random, size, |dummies| {
            dummies.iter_mut().for_each(|dummy| *dummy = ItemHash::random(rng));
        })
    }

    fn with_dummies(
        items: &'a ItemSet,
        kind: Dummies,
        size: usize,
        fill: impl FnOnce(&mut [ItemHash]),
    ) -> Self {
        let mut hashes = Secrets::zeros(size.max(items.len()));
        let (own, dummies) = hashes.split_at_mut(items.len());
        own.copy_from_slice(items.hashes());
        fill(dummies);
        Self::of(Cow::Borrowed(&**items), Hashes::Own(hashes), Some(kind))
    }

    /// Returns the set padded to `size`, at least its own size, with listed dummies. Takes 32 bytes of memory per item
    /// and dummy, in addition to the set's.
    pub fn padded_from_list(items: &'a ItemSet, size: usize) -> Self {
        // Hashed at once: their number is our secret, and hashing later would show it in the time of every frame.
        Self::with_dummies(items, Dummies::Listed, size, |dummies| {
            let listed = ItemHash::listed();
            dummies.par_iter_mut().enumerate().for_each(|(i, dummy)| *dummy = listed(i));
        })
    }

    /// Returns a set with the hashes `own`, of these items or of the items that these replace, padded to `size`, at
    /// least their number. The number of dummies computed does not depend on the set, because a peer waits for them.
    pub fn part(
        items: Items,
        own: &[ItemHash],
        kind: Dummies,
        size: usize,
        rng: &mut Prng,
    ) -> HashedSet<'static> {
        let mut dummies = Secrets::zeros(size);
        match kind {
            Dummies::Random => dummies.iter_mut().for_each(|dummy| *dummy = ItemHash::random(rng)),
            Dummies::Listed => {
                let listed = ItemHash::listed();
                dummies.par_iter_mut().enumerate().for_each(|(i, dummy)| *dummy = listed(i));
            }
        }
        // Hashes of the set, followed by dummies.
        let mut hashes = Secrets::zeros(size);
        for (at, hash) in hashes.iter_mut().enumerate() {
            *hash = own.get(at).copied().unwrap_or_else(|| dummies[at - own.len()]);
        }
        HashedSet::of(Cow::Owned(items), Hashes::Own(hashes), Some(kind))
    }

    /// Appends the first `n` listed dummies, which match those that the peer's set may have.
    pub fn insert_listed(&mut self, n: usize) {
        self.inserted = n;
    }

    /// Returns the number of listed dummies inserted to match the peer's.
    pub fn inserted(&self) -> usize {
        self.inserted
    }

    /// Returns the kind of dummies that pad the set; `None` if it is not padded.
    pub fn dummies(&self) -> Option<Dummies> {
        self.dummies
    }

    /// Returns the items, without dummies.
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// Returns the size of the set in the protocol: items, dummies, and inserted dummies.
    pub fn len(&self) -> usize {
        self.announced() + self.inserted
    }

    /// Returns the size that is announced to the peer: items, and the dummies that pad them.
    pub fn announced(&self) -> usize {
        self.own().len()
    }

    /// Returns whether the set has neither items nor dummies.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the hashes of the items and dummies at these positions, each below `len()`.
    pub fn hashes(&self, positions: &[u32]) -> Secrets<ItemHash> {
        let (dummy, own) = (ItemHash::listed(), self.own());
        let mut hashes = Secrets::zeros(positions.len());
        let batches = hashes.par_chunks_mut(BATCH).zip(positions.par_chunks(BATCH));
        batches.for_each(|(hashes, positions)| {
            hashes.iter_mut().zip(positions).for_each(|(hash, &i)| {
                *hash = match own.get(i as usize) {
                    Some(hash) => *hash,
                    None => dummy(i as usize - own.len()),
                };
            });
        });
        hashes
    }

    /// Returns the hash of an item, or of a dummy that was not inserted.
    pub fn hash(&self, i: usize) -> &ItemHash {
        &self.own()[i]
    }

    /// Returns the hashes of the items, then of the dummies that were not inserted.
    pub fn own(&self) -> &[ItemHash] {
        match &self.hashes {
            Hashes::OfSet(hashes) => hashes,
            Hashes::Own(hashes) => hashes,
        }
    }

    /// Returns whether these items are distinct, and none is in the set. Takes 32 bytes of memory per item.
    pub fn all_new(&self, items: &Items) -> bool {
        let mut new = hashes_of(items);
        new.par_sort_unstable_by_key(|hash| *hash.as_bytes());
        let is_new =
            |hash: &ItemHash| new.binary_search_by_key(hash.as_bytes(), |hash| *hash.as_bytes()).is_err();
        let different = new.windows(2).all(|two| two[0].as_bytes() != two[1].as_bytes());
        let ours = &self.own()[..self.items.len()];
        different && ours.par_iter().all(is_new)
    }

    /// Stores the identifiers of the set's items and dummies for as long as the set itself, because a sealed result
    /// refers to them.
    ///
    /// # Errors
    /// [`Error::Bug`] if identifiers were already stored, because they belong to a single run.
    pub(crate) fn identify(&self, identifiers: ItemSet) -> Result<&HashedSet<'static>> {
        let again = || Error::Bug("a set that has identifiers from another run".into());
        let mut new = Some(identifiers);
        let kept = self.identifiers.get_or_init(|| {
            let (items, hashes) = new.take().unwrap_or_default().into_parts();
            Box::new(HashedSet::of(Cow::Owned(items), Hashes::Own(hashes), None))
        });
        if new.is_none() { Ok(kept) } else { Err(again()) }
    }

    /// Sets the prepared key and points, which must be for the set's items and dummies.
    pub fn take_over(&mut self, offline: Offline) {
        self.offline = Some(offline);
    }

    /// Returns the prepared key and points, if any.
    pub(crate) fn offline(&self) -> Option<&Offline> {
        self.offline.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn identifiers_are_of_one_run_and_have_hashes_of_their_own() {
        let set: ItemSet = ["a"].iter().collect();
        let hashed = HashedSet::new(&set);
        let some = |id: &str| [id].iter().collect::<ItemSet>();
        let identified = hashed.identify(some("1")).unwrap();
        assert!(identified.items() == &*some("1") && *identified.hash(0) == ItemHash::of_item(b"1"));
        assert!(matches!(hashed.identify(some("2")), Err(Error::Bug(_))));
    }

    #[test]
    fn a_part_has_items_of_the_set_and_dummies_of_its_own() {
        let set: ItemSet = (0..4).map(|i| format!("item {i}")).collect();
        let whole = HashedSet::new(&set);
        let mut rng = Prng::from_seed(&[2; 32]);
        for kind in [Dummies::Random, Dummies::Listed] {
            let mut make = |set: &Items, own| HashedSet::part(set.clone(), own, kind, 9, &mut rng);
            let (part, again) = (make(&set, whole.own()), make(&set, whole.own()));
            assert_eq!((part.announced(), part.dummies(), part.items()), (9, Some(kind), &*set));
            assert!(part.own()[..4] == *whole.own());
            assert_eq!(part.own()[4..] == again.own()[4..], kind == Dummies::Listed);
            let none = ItemSet::default();
            let listed = HashedSet::padded_from_list(&none, 5);
            assert_eq!(part.own()[4..] == *listed.own(), kind == Dummies::Listed);
            assert_eq!(make(&none, &[]).announced(), 9);
            let public: HashSet<ItemHash> = (0..300).map(ItemHash::listed()).collect();
            assert!(part.own()[4..].iter().all(|dummy| public.contains(dummy) == (kind == Dummies::Listed)));
        }
    }

    #[test]
    fn new_items_are_all_different_and_not_in_the_set() {
        let list = |items: &[&str]| items.iter().collect::<Items>();
        let set: ItemSet = ["a", "b"].iter().collect();
        let mut rng = Prng::from_seed(&[3; 32]);
        // The items of a part may be elsewhere; only its hashes matter.
        let part = HashedSet::part(list(&["1", "2"]), set.hashes(), Dummies::Listed, 5, &mut rng);
        for hashed in [HashedSet::new(&set), HashedSet::padded(&set, 5, &mut rng), part] {
            // (items, whether all are new)
            for (items, new) in [
                (&[][..], true),
                (&["c"], true),
                (&["c", "ab", ""], true),
                (&["b"], false),
                (&["c", "a", "d"], false),
                (&["c", "d", "c"], false),
            ] {
                assert_eq!(hashed.all_new(&list(items)), new, "{items:?}");
            }
        }
        let none = ItemSet::default();
        assert!(
            HashedSet::new(&none).all_new(&list(&["a"]))
                && !HashedSet::new(&none).all_new(&list(&["a", "a"]))
        );
    }

    #[test]
    fn items_and_dummies_have_hashes_of_their_own() {
        let set: ItemSet = ["a", "b", ""].iter().collect();
        let all = |h: &HashedSet<'_>| -> Vec<ItemHash> {
            h.hashes(&(0..h.len() as u32).collect::<Vec<_>>()).to_vec()
        };
        let mut rng = Prng::from_seed(&[1; 32]);
        let plain = HashedSet::new(&set);
        let random = HashedSet::padded(&set, 9, &mut rng);
        let again = HashedSet::padded(&set, 9, &mut rng);
        let listed = HashedSet::padded_from_list(&set, 9);
        assert_eq!([plain.len(), random.len(), listed.len()], [3, 9, 9]);
        for other in [&random, &again, &listed] {
            assert_eq!(all(other)[..3], all(&plain)[..]);
            assert!(other.items() == &*set);
        }
        let mut different: HashSet<ItemHash> = all(&plain).into_iter().collect();
        for padded in [&random, &again, &listed] {
            different.extend(&all(padded)[3..]);
        }
        assert_eq!(different.len(), 3 + 3 * 6);
        // The random dummies, which match nothing, cannot be guessed.
        let list: HashSet<ItemHash> = (0..300).map(ItemHash::listed()).collect();
        assert!([&random, &again].iter().all(|padded| all(padded).iter().all(|hash| !list.contains(hash))));
        // The list is the same for all parties, and from any starting point.
        let none = ItemSet::default();
        let mut receiver = HashedSet::padded(&none, 4, &mut rng);
        receiver.insert_listed(6);
        assert_eq!(all(&receiver)[4..], all(&listed)[3..]);
    }
}
