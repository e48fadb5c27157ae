//! Operations of several parties, secure against any coalition of all but one. One file per operation.
//!
//! The leader learns the result; the others learn nothing. A party learns only the bounds on the other sets. The lengths of
//! all messages follow from the bounds, regardless of the sets. So that time does too, a set with a bound is padded up to it
//! with random dummies. They take part as items that no other party has, and have no row.
//!
//! The operations run on the mesh of [`crate::many`]; [`crate::protocols::MULTIPARTY`] offers them.

pub mod cost;
pub mod count;
pub mod intersect;
mod rows;
mod setup;
pub mod union;

pub use cost::MultipartyCost;

use crate::channel::Message;
use crate::channel::queue::{Put, Take, queue};
use crate::error::{Error, Result};
use crate::hash::ItemHash;
use crate::hashed::HashedSet;
use crate::hashing::cuckoo;
use crate::many::Many;
use crate::params::{LAMBDA, share};
use crate::secret::Secrets;
use std::collections::BTreeMap;

const TRY: Message<u64> = Message::new(0xda, "owner to holder  try at which the table was made");

/// The number of bins of a table for sets of up to `bound` items. With probability at most 2^-[`LAMBDA`], one of the `tables`
/// of the run has no placement at the first try. Then the number of the try reveals something about a set.
fn bins(bound: usize, tables: usize) -> usize {
    cuckoo::number(share(LAMBDA, tables), bound)
}

/// Returns the hashes of our items, and then of our dummies.
fn hashed(many: &Many, set: &HashedSet) -> Secrets<ItemHash> {
    let positions: Vec<u32> = (0..set.len() as u32).collect();
    many.threads.run(|| set.hashes(&positions))
}

/// Rejects a run of one party, or one without a bound for each party.
fn check(many: &Many, bounds: &[usize]) -> Result<()> {
    match many.parties() > 1 && bounds.len() == many.parties() {
        true => Ok(()),
        false => Err(Error::bug(format!("{} bounds for a run of {} parties", bounds.len(), many.parties()))),
    }
}

/// The source and the destination of an owner's rows in the step with one party.
struct Hop<T> {
    from: Take<T>,
    to: Put<T>,
}

/// The hops by party.
type Hops<T> = BTreeMap<usize, Hop<T>>;

/// Returns the hops that pass `first` through these parties in turn, and the end of the chain.
fn relay<T>(first: T, parties: impl Iterator<Item = usize>) -> Result<(Hops<T>, Take<T>)> {
    let (put, mut from) = queue(1);
    put.put(first)?;
    let hops = parties.map(|party| {
        let (to, next) = queue(1);
        (party, Hop { from: std::mem::replace(&mut from, next), to })
    });
    let hops = hops.collect();
    Ok((hops, from))
}

#[cfg(test)]
mod checked_tests;
#[cfg(test)]
mod coalition_tests;
#[cfg(test)]
mod flawed_tests;
#[cfg(test)]
mod forged_tests;
#[cfg(test)]
mod observed_tests;
#[cfg(test)]
mod tests;
