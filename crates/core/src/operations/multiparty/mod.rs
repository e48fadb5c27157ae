//! Operations of several parties, secure against any coalition of all but one. One file per operation.
//!
//! The leader learns the result; the others learn nothing. What a party is told about the others is the bounds on
//! their sets. All messages follow from the bounds, whatever the sets have. So that time does too, a set with a bound
//! is filled up to it with random dummies: they take part as items that nobody else has, and without a row.
//!
//! They run on the mesh of [`crate::many`]; [`crate::protocols::SEVERAL`] offers them.

pub mod cost;
pub mod count;
pub mod intersect;
mod rows;
mod setup;
pub mod union;

pub use cost::Cost;

use crate::channel::Message;
use crate::channel::queue::{Put, Take, queue};
use crate::error::{Error, Result};
use crate::hash::ItemHash;
use crate::hashed::Hashed;
use crate::hashing::cuckoo;
use crate::many::Many;
use crate::params::{LAMBDA, share};
use crate::secret::Secrets;
use std::collections::BTreeMap;

const TRY: Message<u64> = Message::new(0xda, "owner to holder  try at which the table was made");

/// Bins of a table for sets of up to `bound` items. With probability 2^-[`LAMBDA`] one of the `tables` of the run has no
/// placement at the first try. The number of the try then says something about a set.
fn bins(bound: usize, tables: usize) -> usize {
    cuckoo::number(share(LAMBDA, tables), bound)
}

/// The hashes of our items, and of the dummies behind them.
fn hashed(many: &Many, set: &Hashed) -> Secrets<ItemHash> {
    let positions: Vec<u32> = (0..set.len() as u32).collect();
    many.threads.run(|| set.hashes(&positions))
}

/// Refuses a run of one party, or one without a bound for each.
fn check(many: &Many, bounds: &[usize]) -> Result<()> {
    match many.parties() > 1 && bounds.len() == many.parties() {
        true => Ok(()),
        false => Err(Error::bug(format!("{} bounds for a run of {} parties", bounds.len(), many.parties()))),
    }
}

/// Where the rows of an owner come from and go to in the step with one party.
struct Hop<T> {
    from: Take<T>,
    to: Put<T>,
}

/// The hops by party.
type Hops<T> = BTreeMap<usize, Hop<T>>;

/// A way for `first` past these parties, and what comes out at its end.
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
