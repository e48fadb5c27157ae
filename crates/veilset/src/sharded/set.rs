//! The set of a run, which is in memory, on disk or with workers.

use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash};
use crate::item::{ItemSet, Items};
use crate::secret::Secrets;
use crate::sharded::disk::BARE;
use crate::sharded::disk::DiskSet;
use crate::sharded::engine::RemoteSet;
use crate::threads::Threads;
use rayon::prelude::*;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

/// The number of items that are hashed at a time.
pub(super) const BATCH: usize = 1 << 9;

/// The place of a party's set or table, with the data for that place.
#[derive(Clone, Copy)]
pub enum Place<M, D, W> {
    /// The set or table is in memory.
    Memory(M),
    /// The set is on disk.
    Disk(D),
    /// Each of several workers holds a part of the set or table.
    Workers(W),
}

/// The set of a run.
pub type Set<'a> = Place<&'a ItemSet, &'a Arc<DiskSet>, &'a RemoteSet>;

/// A set for a sharded run. A set that was in memory was written to disk for this.
pub(crate) type CutSet<'a> = Place<Infallible, Arc<DiskSet>, &'a RemoteSet>;

impl<'a> From<&'a ItemSet> for Set<'a> {
    fn from(set: &'a ItemSet) -> Self {
        Set::Memory(set)
    }
}

/// A sum of pseudorandom numbers of 256 bits, added as four numbers modulo 2^64. It does not depend on their order.
pub type Sum = [u64; 4];

/// Adds two sums.
pub fn add(a: Sum, b: Sum) -> Sum {
    std::array::from_fn(|at| a[at].wrapping_add(b[at]))
}

/// Returns the sum of the hashes of the messages with these numbers. `message` appends the message with the given number, at
/// least one byte, to a buffer. `payloads` is the number of bytes of all payloads together.
pub(super) fn sum_of(
    domain: &Domain,
    numbers: Range<usize>,
    payloads: usize,
    message: impl Fn(usize, &mut Vec<u8>),
) -> Sum {
    let n = numbers.len();
    // Room for a position, a hash, a value and a payload each is reserved at once, because a list that grows leaves copies.
    let mut messages = Items::with_capacity(n, n * (BARE + 16) + payloads);
    numbers.for_each(|i| messages.push_with(|to| message(i, to)));
    let mut hashes = Secrets::<[u8; 32]>::zeros(n);
    domain.hash_all(messages.iter(), &mut hashes);
    let number = |hash: &[u8; 32]| -> Sum {
        std::array::from_fn(|at| u64::from_le_bytes(std::array::from_fn(|i| hash[8 * at + i])))
    };
    hashes.iter().map(number).fold([0; 4], add)
}

impl Set<'_> {
    /// The number of items of the set.
    pub fn len(&self) -> usize {
        match self {
            Set::Memory(set) => set.len(),
            Set::Disk(set) => set.len(),
            Set::Workers(set) => set.items,
        }
    }

    /// Whether the set has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a keyed digest of the items, hashed from their number and their [sum](Set::sum).
    ///
    /// # Errors
    /// The errors of [`Set::sum`].
    pub fn digest(
        &self,
        payloads: &Items,
        threads: &Threads,
        key: &[u8; 32],
        message: impl Fn(u32, &ItemHash, &[u8], &mut Vec<u8>) + Sync,
    ) -> Result<blake3::Hash> {
        let mut all = blake3::Hasher::new_keyed(key);
        all.update(&(self.len() as u64).to_le_bytes());
        for part in self.sum(payloads, threads, key, message)? {
            all.update(&part.to_le_bytes());
        }
        Ok(all.finalize())
    }

    /// Returns the sum of a pseudorandom number for each item: the keyed hash of what `message` appends, given the item's
    /// position, its hash, and its payload, which may be empty. The sums of the parts of a set add up to its sum.
    ///
    /// `payloads` are the payloads of a set in memory, or empty; a set on disk has its own. For a set with workers, returns the
    /// sum that they computed under this key.
    ///
    /// # Errors
    /// [`Error::Output`] if the set cannot be read from the disk; [`Error::Bug`] if workers computed no sum under this key.
    pub fn sum(
        &self,
        payloads: &Items,
        threads: &Threads,
        key: &[u8; 32],
        message: impl Fn(u32, &ItemHash, &[u8], &mut Vec<u8>) + Sync,
    ) -> Result<Sum> {
        let domain = &Domain::under(key);
        let payload = |i: usize| if payloads.is_empty() { &[] } else { payloads.get(i) };
        match self {
            Set::Memory(set) => {
                let batches = (0..set.len().div_ceil(BATCH)).into_par_iter().map(|batch| {
                    let all = batch * BATCH..set.len().min((batch + 1) * BATCH);
                    let payloads = all.clone().map(|i| payload(i).len()).sum();
                    sum_of(domain, all, payloads, |i, to| {
                        message(i as u32, &set.hashes()[i], payload(i), to);
                    })
                });
                Ok(threads.run(|| batches.reduce(|| [0; 4], add)))
            }
            Set::Disk(set) => set.sum(threads, domain, message),
            Set::Workers(set) => {
                let sum = set.sums.iter().find(|(under, _)| **under == *key);
                sum.map(|(_, sum)| *sum)
                    .ok_or_else(|| Error::Bug("a set with workers, and no such sum".into()))
            }
        }
    }
}
