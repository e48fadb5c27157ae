//! A table that workers have, each of them some pieces of it.
//!
//! An engine (Dask, Spark) holds the table, and takes the following steps. Each works on a piece where it is; only the second and
//! the third move rows.
//!
//! 1. [`Data::hashes`] of each piece returns the rows that have a key, and the hash of each.
//! 2. The engine brings rows together by hash, so that equal keys are in one piece, ordered by hash and by their place in the whole
//!    table. [`Data::sums`] of each of these pieces returns the number of its items, and their part of the digests of the whole.
//! 3. The coordinators run with the [sums of all pieces](crate::sharded::engine::RemoteSet). When both have drawn the key of the
//!    shards, [`shards_of`] returns the shard of each row.
//! 4. Each worker gets a ticket, and runs its shards ([`Lane`](crate::sharded::workers::Lane)), whose items [`Data::part`] returns.
//! 5. When the run is complete, [`Data::batches_of`] makes the rows of a shard's result from the rows of the shard. Their key
//!    columns have the types that [`Data::text_keys_of`] all shards leaves them.
//!
//! The order in a shard follows from the hashes, and so do the positions in its result: a run that is resumed may have its
//! table in other pieces.

use crate::error::{Error, Result, Seat};
use crate::governance::audit;
use crate::hash::ItemHash;
use crate::net::Identity;
use crate::operations::Learned;
use crate::operations::union::rows::New;
use crate::party::data::OurTable;
use crate::party::{Data, KeyedTable, PartySpec, TableFacts};
use crate::secret::{Secret, Secrets};
use crate::sharded::disk::{Form, Part};
use crate::sharded::engine::RemoteSet;
use crate::sharded::learned;
use crate::sharded::run::Key;
use crate::sharded::set::Sum;
use crate::spelling::{OUTPUT, SHARDS};
use crate::table::{Batches, Format, Profile, text_keys};

/// The facts about a table that workers have.
pub struct Elsewhere {
    /// Its set.
    pub spread: RemoteSet,
    /// The normalisation and encoding of its keys.
    pub(crate) compared: String,
    /// The number of its rows.
    pub rows: u64,
    /// The number of rows whose key occurred before.
    pub duplicates: u64,
    /// The number of rows that were skipped because their key is empty.
    pub skipped: u64,
    /// The peculiarities of its keys that may cost matches.
    pub profile: Profile,
}

/// A part of the digests of a set.
pub struct Sums {
    /// The number of its items.
    pub items: u64,
    /// The number of rows whose key occurred before.
    pub duplicates: u64,
    /// The peculiarities of the keys that may cost matches. The [counts](Profile::counts) of all pieces add up.
    pub profile: Profile,
    /// A sum under each of the [`keys`].
    pub sums: [Sum; 2],
}

/// The keys of the two digests of a set, for the audit log and for a job's folder. They reveal nothing about the identity.
pub fn keys(identity: &Identity) -> [Secret<[u8; 32]>; 2] {
    [audit::digest_key(identity), crate::sharded::keep::digest_key(identity)]
}

impl Elsewhere {
    /// The table of a party, with the sums of all its pieces.
    pub fn new(
        party: &PartySpec,
        spread: RemoteSet,
        rows: u64,
        duplicates: u64,
        skipped: u64,
        profile: Profile,
    ) -> Elsewhere {
        Elsewhere { spread, compared: party.compared(), rows, duplicates, skipped, profile }
    }
}

impl<'a> Data<'a> {
    /// The data of a party whose table workers have.
    ///
    /// # Errors
    /// [`Error::Usage`] for a run that is not sharded, or whose result goes to a file.
    pub fn elsewhere(party: &'a PartySpec, all: Elsewhere) -> Result<Data<'a>> {
        if party.spec.terms.shards == 0 {
            return Err(Error::usage(format!(
                "workers run the shards of a job. Give their number with {SHARDS}"
            )));
        }
        if !party.in_memory || party.output.is_some() {
            return Err(Error::usage(format!("the result of workers goes to no file. Omit {OUTPUT}")));
        }
        let input = OurTable::Workers(Box::new(all));
        Ok(Data { party, input, output_format: Format::Arrow })
    }

    /// The rows of this piece that have a key, ascending, and the hash of each key.
    ///
    /// # Errors
    /// [`Error::Bug`] for data that are not in memory.
    pub fn hashes(&self) -> Result<(Vec<u32>, Secrets<ItemHash>)> {
        let keyed = &self.in_memory()?.keys.keyed;
        let (of_set, all) = (keyed.set.hashes(), keyed.all_rows());
        let mut hashes = Secrets::with_capacity(all.len());
        all.iter().for_each(|&(_, position)| hashes.extend(&[of_set[position as usize]]));
        Ok((all.into_iter().map(|(row, _)| row).collect(), hashes))
    }

    /// This piece's part of the digests of the whole set, under these [`keys`].
    ///
    /// # Errors
    /// [`Error::Bug`] for data that are not in memory.
    pub fn sums(&self, [for_log, for_job]: &[Secret<[u8; 32]>; 2]) -> Result<Sums> {
        let TableFacts { items, duplicates, profile, .. } = self.facts();
        let request = self.request();
        let threads = &request.local.threads;
        let sums = [
            request
                .input
                .set
                .sum(request.input.payloads, threads, for_log, |_, hash, _, to| to.extend_from_slice(hash))?,
            // Positions follow from the hashes.
            request.input.set.sum(request.input.payloads, threads, for_job, |_, hash, payload, to| {
                crate::sharded::keep::message(0, hash, payload, to);
            })?,
        ];
        Ok(Sums { items, duplicates, profile: profile.cloned().unwrap_or_default(), sums })
    }

    /// The items of this piece, which is a shard.
    ///
    /// # Errors
    /// [`Error::Bug`] for data that are not in memory.
    pub fn part(&self) -> Result<Part> {
        let all = self.in_memory()?;
        Ok(Part::of(&all.keys.keyed.set, &all.payloads, self.party.spec.form()))
    }

    /// The form of the items in a shard.
    pub fn form(&self) -> Form {
        self.party.spec.form()
    }

    /// The positions in the key of the columns that become text, because a key that a worker [learned](learned) is no value of
    /// their type. `self` is any piece. A column has one type in the whole result, so this is needed of all shards before the
    /// rows of any.
    ///
    /// # Errors
    /// [`Error::Usage`] for bytes of something else; [`Error::Peer`] for what the peer did wrong.
    pub fn text_keys_of(&self, learned: &[u8]) -> Result<Vec<usize>> {
        let KeyedTable { table, columns, .. } = &self.in_memory()?.keys;
        Ok(match learned::of_bytes(learned)?.map_err(|error| error.by(Seat::PEER))? {
            Learned::New(New { items, .. }) | Learned::Union(items) => text_keys(table, columns, &items),
            _ => Vec::new(),
        })
    }

    /// The rows of the result of this piece, which is a shard, from what a worker [learned](learned): `None` if there are none.
    /// `as_text` has the positions that [`Data::text_keys_of`] returns for all shards.
    ///
    /// # Errors
    /// [`Error::Usage`] for bytes of something else; [`Error::Peer`] for malformed rows of the peer.
    pub fn batches_of(&self, learned: &[u8], as_text: &[usize]) -> Result<Option<Batches>> {
        if !self.party().shape().has_items() {
            return Ok(None);
        }
        let learned = learned::of_bytes(learned)?.map_err(|error| error.by(Seat::PEER))?;
        if let Learned::Matching(matching) = &learned
            && matching.positions.last().is_some_and(|&last| u64::from(last) >= self.facts().items)
        {
            return Err(Error::Usage("this is the result of a shard with more items".into()));
        }
        self.rows_of(&learned, as_text, Seat::PEER).map(Some)
    }
}

/// The shard of each row with these hashes, of this number of shards, under this key.
pub fn shards_of(key: &[u8; 32], number: u32, hashes: &[[u8; 32]]) -> Vec<u32> {
    let mut shards = vec![0; hashes.len()];
    let hashes: Vec<ItemHash> = hashes.iter().copied().map(ItemHash::from_bytes).collect();
    Key::of(*key).shards(&hashes, number, &mut shards);
    shards
}

#[cfg(test)]
#[path = "elsewhere_tests.rs"]
mod tests;
