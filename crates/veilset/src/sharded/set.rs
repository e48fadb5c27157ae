//! The set of a run, wherever it is: in memory, on disk or with workers.

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

/// Items hashed at once.
pub(super) const BATCH: usize = 1 << 9;

/// Where a party's set, or its table, is.
#[derive(Clone, Copy)]
pub enum Place<M, D, W> {
    /// In memory.
    Memory(M),
    /// On disk.
    Disk(D),
    /// With workers, each of which has a part.
    Workers(W),
}

/// The set of a run.
pub type Set<'a> = Place<&'a ItemSet, &'a Arc<DiskSet>, &'a RemoteSet>;

/// A set that is cut into shards. One that was in memory is on disk.
pub(crate) type CutSet<'a> = Place<Infallible, Arc<DiskSet>, &'a RemoteSet>;

impl<'a> From<&'a ItemSet> for Set<'a> {
    fn from(set: &'a ItemSet) -> Self {
        Set::Memory(set)
    }
}

/// 256 bits, added modulo 2^64 four times: a sum of pseudorandom numbers does not depend on their order.
pub type Sum = [u64; 4];

/// Adds two sums.
pub fn add(a: Sum, b: Sum) -> Sum {
    std::array::from_fn(|at| a[at].wrapping_add(b[at]))
}

/// The sum of the hashes of the messages with these numbers. `message` appends a message, at least one byte. All payloads together
/// have this many bytes.
pub(super) fn sum_of(
    domain: &Domain,
    numbers: Range<usize>,
    payloads: usize,
    message: impl Fn(usize, &mut Vec<u8>),
) -> Sum {
    let n = numbers.len();
    // With room for a position, a hash and a value each: a list that grows leaves copies.
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
    /// The number of its items.
    pub fn len(&self) -> usize {
        match self {
            Set::Memory(set) => set.len(),
            Set::Disk(set) => set.len(),
            Set::Workers(set) => set.items,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A keyed digest of the items, which does not depend on their order. `message` appends what is hashed of an item, given its
    /// position, its hash, and its payload if it has one. `payloads` belong to a set in memory.
    ///
    /// # Errors
    /// [`Error::Output`] if the set cannot be read from the disk.
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

    /// The sum that [`Set::digest`] hashes, of a pseudorandom number for each item. The sums of parts of a set add up to its sum.
    ///
    /// # Errors
    /// [`Error::Output`] if the set cannot be read from the disk.
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
