//! A table of which each worker holds some pieces.
//!
//! An engine (Dask, Spark) holds the table, and takes the following steps. Each step works on the pieces where they are; only
//! the second and the third move rows.
//!
//! 1. [`Data::hashes`] of each piece returns the rows that have a key, and the hash of each key.
//! 2. The engine moves rows so that equal keys are in one piece, and orders each piece by hash, then by place in the whole
//!    table. [`Data::sums`] of each of these pieces returns the number of its items, and its share of the digests of the whole
//!    set.
//! 3. The coordinators run with the [sums of all pieces](crate::sharded::engine::RemoteSet). When they have the key of the
//!    shards, [`shards_of`] returns the shard of each row, and the engine moves the rows of a shard into one piece.
//! 4. Each worker gets a ticket, and runs its shards ([`Lane`](crate::sharded::workers::Lane)), whose items [`Data::part`]
//!    returns.
//! 5. When the run is complete, [`Data::batches_of`] makes the rows of a shard's result from the rows of the shard. A key
//!    column whose position [`Data::text_keys_of`] returns for any shard is text in the whole result.
//!
//! The order of the items in a shard follows from their hashes, and so do the positions in its result. So a resumed run may
//! have its table in other pieces.

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

/// The facts about a table whose pieces workers hold.
pub struct Elsewhere {
    /// The set of the table.
    pub spread: RemoteSet,
    /// The normalisation and encoding of the keys.
    pub(crate) compared: String,
    /// The number of rows of the table.
    pub rows: u64,
    /// The number of rows whose key occurred before.
    pub duplicates: u64,
    /// The number of rows that were skipped because their keys are empty.
    pub skipped: u64,
    /// The peculiarities of the keys that may cost matches.
    pub profile: Profile,
}

/// The share that one piece has in the digests and counts of the whole set.
pub struct Sums {
    /// The number of items of the piece.
    pub items: u64,
    /// The number of rows whose key occurred before.
    pub duplicates: u64,
    /// The peculiarities of the keys that may cost matches. The [counts](Profile::counts) of all pieces add up to the counts
    /// of the set.
    pub profile: Profile,
    /// The sum of the items under each of the [`keys`].
    pub sums: [Sum; 2],
}

/// The keys of the two digests of a set: for the audit log, and for a job's folder. They reveal nothing about the private key.
pub fn keys(identity: &Identity) -> [Secret<[u8; 32]>; 2] {
    [audit::digest_key(identity), crate::sharded::keep::digest_key(identity)]
}

impl Elsewhere {
    /// The table of a party, given its set and the totals of all pieces.
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
    /// The data of a party whose table workers hold.
    ///
    /// # Errors
    /// [`Error::Usage`] for a run that is not sharded, or whose result does not go to memory.
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

    /// The share of this piece in the digests of the whole set, under these [`keys`].
    ///
    /// # Errors
    /// The errors of [`Set::sum`](crate::sharded::set::Set::sum), which has none for data in memory.
    pub fn sums(&self, [for_log, for_job]: &[Secret<[u8; 32]>; 2]) -> Result<Sums> {
        let TableFacts { items, duplicates, profile, .. } = self.facts();
        let request = self.request();
        let threads = &request.local.threads;
        let sums = [
            request
                .input
                .set
                .sum(request.input.payloads, threads, for_log, |_, hash, _, to| to.extend_from_slice(hash))?,
            // Positions follow from the hashes, so they are left out.
            request.input.set.sum(request.input.payloads, threads, for_job, |_, hash, payload, to| {
                crate::sharded::keep::message(0, hash, payload, to);
            })?,
        ];
        Ok(Sums { items, duplicates, profile: profile.cloned().unwrap_or_default(), sums })
    }

    /// The items of this piece, which must be a whole shard.
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

    /// Returns the columns that become text, by their positions in the key, because a key in this encoded [result](learned) of
    /// a shard is not a value of the column's type. `self` is any piece. A column has one type in the whole result, so all
    /// shards must be asked before the rows of any are made.
    ///
    /// # Errors
    /// [`Error::Usage`] for bytes that are not a result; [`Error::Peer`] if they are an error about the peer; [`Error::Bug`]
    /// for data that are not in memory.
    pub fn text_keys_of(&self, learned: &[u8]) -> Result<Vec<usize>> {
        let KeyedTable { table, columns, .. } = &self.in_memory()?.keys;
        Ok(match learned::of_bytes(learned)?.map_err(|error| error.by(Seat::PEER))? {
            Learned::New(New { items, .. }) | Learned::Union(items) => text_keys(table, columns, &items),
            _ => Vec::new(),
        })
    }

    /// Returns the rows in this encoded [result](learned) of a shard; `self` is the piece with all rows of the shard. Returns
    /// `None` if results of this kind have no rows. `as_text` contains all positions that [`Data::text_keys_of`] returned for
    /// any shard.
    ///
    /// # Errors
    /// [`Error::Usage`] for bytes that are not a result, or a result with positions beyond this piece; [`Error::Peer`] if they
    /// are an error about the peer, or for malformed rows of the peer; [`Error::Bug`] if workers hold the data.
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

/// Returns the shard of each row with these hashes, given the key of the shards and their number.
pub fn shards_of(key: &[u8; 32], number: u32, hashes: &[[u8; 32]]) -> Vec<u32> {
    let mut shards = vec![0; hashes.len()];
    let hashes: Vec<ItemHash> = hashes.iter().copied().map(ItemHash::from_bytes).collect();
    Key::of(*key).shards(&hashes, number, &mut shards);
    shards
}

#[cfg(test)]
#[path = "elsewhere_tests.rs"]
mod tests;
