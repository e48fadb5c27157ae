//! A set on disk, of which only parts are in memory.
//!
//! Items are first written into 256 buckets, chosen by a hash of the item under a key that only this process has. Equal items
//! are in one bucket, so repeated items are found bucket by bucket ([`Draft::distinct`]). Then each bucket is written again in
//! one piece, without repeated items and with its share of the dummies ([`Distinct::padded`]). When the key of the shards is
//! known, each bucket is read again and written in the order of the shards ([`DiskSet::cut`]). After that the items of a shard
//! are read from all buckets ([`Cut::part`]).
//!
//! The memory holds 64 KiB for each bucket until the set is padded, and the parts that are in use. While the set is made
//! distinct, padded or cut, it also holds one bucket (about 1/256 of the set) and a copy or an index of it. The disk holds the
//! set at most twice.
//!
//! The files have no name, and each is encrypted and authenticated under a key that only the memory holds. So data that are
//! left on the disk reveal only their amount, and reading returns the data that were written, or an error. All records of a set
//! have the same length, and dummies are stored like items. So the time to cut a set follows from its announced size and the
//! number of shards, and from `max_row` if rows travel.

use crate::aead::{Key, Nonce, TAG};
use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash};
use crate::item::{ItemSet, Items};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::sharded::set::{BATCH, Sum, add, sum_of};
use crate::spelling::JOB;
use crate::threads::Threads;
use rayon::prelude::*;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroizing;

/// The number of buckets of a set.
const BUCKETS: usize = 256;
/// A bucket's records are written as soon as they have at least this many bytes.
const BLOCK: usize = 1 << 16;
/// The position that marks a dummy.
const DUMMY: u32 = u32::MAX;
/// The number of bytes of a record without a row: position and hash.
pub(super) const BARE: usize = 4 + 32;

/// A piece of a file. The tag that authenticates it is not on the disk.
#[derive(Clone, Copy)]
struct Extent {
    at: u64,
    len: u64,
    tag: [u8; TAG],
}

/// A file without a name, whose key only the memory holds. Each piece is sealed with AES-256-GCM, and its place in the file is
/// the nonce. So any other data that the disk returns are detected, even if they are from an earlier time or another place of
/// the file.
struct Scratch {
    file: Mutex<File>,
    key: Key,
    end: u64,
    folder: PathBuf,
}

impl Scratch {
    fn create(folder: &Path) -> Result<Scratch> {
        let file = tempfile::tempfile_in(folder).map_err(|e| unusable(folder, &e))?;
        let key = Key::of(&Zeroizing::new(Prng::from_os()?.bytes::<32>()))?;
        Ok(Scratch { file: Mutex::new(file), key, end: 0, folder: folder.into() })
    }

    /// Seals these bytes in place, as pieces of these lengths that can be read separately, and appends them to the file.
    fn append(&mut self, bytes: &mut [u8], lengths: impl IntoIterator<Item = usize>) -> Result<Vec<Extent>> {
        let (mut extents, mut rest, start) = (Vec::new(), &mut *bytes, self.end);
        for len in lengths {
            let (piece, behind) = rest.split_at_mut(len.min(rest.len()));
            extents.push(self.seal(self.end, piece)?);
            // Even if the piece cannot be written, its place is not used again.
            self.end += piece.len() as u64;
            rest = behind;
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.seek(SeekFrom::Start(start)).and_then(|_| file.write_all(bytes));
        written.map_err(|e| unusable(&self.folder, &e))?;
        Ok(extents)
    }

    /// Reads these pieces, and returns them joined in this order.
    fn read(&self, extents: &[Extent]) -> Result<Secrets<u8>> {
        let mut all = Secrets::zeros(extents.iter().map(|extent| extent.len as usize).sum());
        let mut rest = &mut *all;
        for extent in extents.iter().filter(|extent| extent.len > 0) {
            let (piece, behind) = rest.split_at_mut(extent.len as usize);
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            let read = file.seek(SeekFrom::Start(extent.at)).and_then(|_| file.read_exact(piece));
            drop(file);
            match read {
                // The file contained the whole piece when it was written.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Err(changed(&self.folder)),
                read => read.map_err(|e| unusable(&self.folder, &e))?,
            }
            let opened = self.key.open(nonce(extent.at), &[], &extent.tag, piece);
            opened.map_err(|_| changed(&self.folder))?;
            rest = behind;
        }
        Ok(all)
    }

    /// Seals a piece for this place, which no other piece must ever have. An empty piece is not sealed, because the next piece
    /// has the same place, and so the same nonce.
    fn seal(&self, at: u64, piece: &mut [u8]) -> Result<Extent> {
        let len = piece.len() as u64;
        let tag = if piece.is_empty() { [0; TAG] } else { self.key.seal(nonce(at), &[], piece)? };
        Ok(Extent { at, len, tag })
    }
}

fn nonce(at: u64) -> Nonce {
    let mut nonce = Nonce::default();
    nonce[..8].copy_from_slice(&at.to_le_bytes());
    nonce
}

/// The error for bytes that differ from the bytes that were written.
fn changed(folder: &Path) -> Error {
    Error::output(format!(
        "a temporary file in {} gives back other bytes than were written to it: its disk is failing, or somebody changed the \
         file. Check the disk, and run again; {JOB}, or TMPDIR without one, puts the file on another",
        folder.display()
    ))
}

fn unusable(folder: &Path, e: &io::Error) -> Error {
    let next = match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "Free disk space and run again",
        _ => "Check that it exists and can be written to",
    };
    Error::output(format!("a temporary file in {} could not be used: {e}. {next}", folder.display()))
        .because(e)
}

/// The form of a set's records: the data that they hold in addition to position and hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// Whether the item itself is included, because it travels.
    pub items: bool,
    /// The maximum number of bytes of the item, if it is included, and its payload together. `None` if neither travels.
    pub row: Option<usize>,
}

/// A record: an item or a dummy as it is on disk.
#[derive(Clone, Copy)]
struct Record<'r>(&'r [u8]);

impl Form {
    fn width(self) -> usize {
        BARE + self.row.map_or(0, |row| 8 + row)
    }

    /// Appends a record.
    fn write(self, position: u32, hash: &ItemHash, [item, payload]: [&[u8]; 2], to: &mut Vec<u8>) {
        let start = to.len();
        to.extend_from_slice(&position.to_le_bytes());
        to.extend_from_slice(hash);
        if self.row.is_some() {
            to.extend_from_slice(&(item.len() as u32).to_le_bytes());
            to.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            to.extend_from_slice(item);
            to.extend_from_slice(payload);
            to.resize(start + self.width(), 0);
        }
    }
}

impl<'r> Record<'r> {
    fn number(self, at: usize) -> u32 {
        self.0[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn position(self) -> u32 {
        self.number(0)
    }

    fn hash(self) -> ItemHash {
        ItemHash::from_bytes(self.0[4..].first_chunk().copied().unwrap_or_default())
    }

    /// The item, if it travels, and the payload. Both are empty if no rows travel.
    fn row(self, form: Form) -> [&'r [u8]; 2] {
        if form.row.is_none() {
            return [&[]; 2];
        }
        let (item, payload) = (self.number(BARE) as usize, self.number(BARE + 4) as usize);
        let row = &self.0[BARE + 8..];
        let (item, rest) = row.split_at(item.min(row.len()));
        [item, &rest[..payload.min(rest.len())]]
    }
}

/// A set that is being written.
pub struct Draft {
    scratch: Scratch,
    form: Form,
    buckets: Vec<Bucket>,
    /// The keyed hash that puts items into buckets.
    hasher: RandomState,
}

#[derive(Default)]
struct Bucket {
    extents: Vec<Extent>,
    /// Records that are not written yet. Their room is reserved at once, because a list that grows leaves copies.
    open: Zeroizing<Vec<u8>>,
}

impl Draft {
    /// An empty set, in a file in this folder.
    ///
    /// # Errors
    /// [`Error::Output`] if the file cannot be created.
    pub fn new(folder: &Path, form: Form) -> Result<Draft> {
        let buckets = (0..BUCKETS).map(|_| Bucket::default()).collect();
        Ok(Draft { scratch: Scratch::create(folder)?, form, buckets, hasher: RandomState::new() })
    }

    /// Adds items with their positions, to which results refer. Positions must ascend, also from one call to the next. `row`
    /// gives the item and the payload that belong to an index of `hashes`.
    ///
    /// # Errors
    /// [`Error::Output`] if the file cannot be written; [`Error::Bug`] for a row that is too long.
    pub fn push<'r>(
        &mut self,
        positions: impl Iterator<Item = u32>,
        hashes: &[ItemHash],
        row: impl Fn(usize) -> [&'r [u8]; 2],
    ) -> Result<()> {
        for (i, (position, hash)) in positions.zip(hashes).enumerate() {
            let row = match self.form {
                Form { row: None, .. } => [&[][..]; 2],
                Form { items: false, .. } => [&[], row(i)[1]],
                Form { items: true, .. } => row(i),
            };
            self.add(position, hash, row)?;
        }
        Ok(())
    }

    fn add(&mut self, position: u32, hash: &ItemHash, row: [&[u8]; 2]) -> Result<()> {
        if self.form.row.is_some_and(|most| row[0].len() + row[1].len() > most) {
            return Err(Error::Bug("a row that is longer than agreed".into()));
        }
        let bucket = self.hasher.hash_one(hash.as_bytes()) as usize % BUCKETS;
        let open = &mut self.buckets[bucket].open;
        if open.capacity() == 0 {
            open.reserve_exact(BLOCK + self.form.width());
        }
        self.form.write(position, hash, row, open);
        if open.len() >= BLOCK { self.flush(bucket) } else { Ok(()) }
    }

    fn flush(&mut self, bucket: usize) -> Result<()> {
        let Bucket { extents, open } = &mut self.buckets[bucket];
        let len = open.len();
        let written = self.scratch.append(open, [len]);
        // The buffer was encrypted in place, and must not be encrypted again, even if it could not be written.
        open.clear();
        extents.extend(written?);
        Ok(())
    }

    /// Finds repeated items. Returns the set without them, and for each of them the position of the first equal item and its
    /// own position, ordered by the latter.
    ///
    /// # Errors
    /// [`Error::Output`] if the file cannot be written or read, or was changed.
    pub fn distinct(mut self, threads: &Threads) -> Result<(Distinct, Vec<(u32, u32)>)> {
        let (mut repeated, mut len, mut again) = (Vec::new(), 0, Vec::new());
        for at in 0..BUCKETS {
            self.flush(at)?;
            let bytes = self.scratch.read(&self.buckets[at].extents)?;
            let records: Vec<Record<'_>> = bytes.chunks_exact(self.form.width()).map(Record).collect();
            // Items with equal hashes are equal. Hashes are compared in full only if their first 8 bytes are equal, which is
            // rare.
            let hash = |i: u32| *records[i as usize].hash().as_bytes();
            let start = |record: &Record<'_>| u64::from_le_bytes(std::array::from_fn(|i| record.hash()[i]));
            let order = records.iter().zip(0..).map(|(record, i)| (start(record), i));
            let mut order = Secrets::from(order.collect::<Vec<(u64, u32)>>());
            threads.run(|| order.par_sort_unstable());
            let mut dropped = Vec::new();
            for like in order.chunk_by_mut(|a, b| a.0 == b.0).filter(|like| like.len() > 1) {
                like.sort_unstable_by_key(|&(_, i)| (hash(i), i));
                for equal in like.chunk_by(|a, b| hash(a.1) == hash(b.1)) {
                    let first = records[equal[0].1 as usize].position();
                    for &(_, i) in &equal[1..] {
                        dropped.push(i);
                        repeated.push((first, records[i as usize].position()));
                    }
                }
            }
            dropped.sort_unstable();
            len += records.len() - dropped.len();
            again.push(dropped);
        }
        repeated.sort_unstable_by_key(|&(_, again)| again);
        Ok((Distinct { draft: self, again, len }, repeated))
    }
}

/// A set on disk whose repeated items are known, but not removed yet.
pub struct Distinct {
    draft: Draft,
    /// For each bucket, the indices of the records that repeat an earlier item, ascending.
    again: Vec<Vec<u32>>,
    len: usize,
}

impl Distinct {
    /// The set of these distinct items, in a file in this folder. Their positions are their places in `set`.
    ///
    /// # Errors
    /// The errors of [`Draft::new`] and [`Draft::push`].
    pub fn of(set: &ItemSet, payloads: &Items, folder: &Path, form: Form) -> Result<Distinct> {
        let mut draft = Draft::new(folder, form)?;
        let payload = |i: usize| if payloads.is_empty() { &[] } else { payloads.get(i) };
        draft.push(0..set.len() as u32, set.hashes(), |i| [set.get(i), payload(i)])?;
        (0..BUCKETS).try_for_each(|bucket| draft.flush(bucket))?;
        Ok(Distinct { draft, again: vec![Vec::new(); BUCKETS], len: set.len() })
    }

    /// The number of items of the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pads the set to the announced size, or leaves it at its own size if that is larger. The dummies belong to no shard: they
    /// make the time to cut the set independent of its own size. To that end every bucket is written again, as one piece,
    /// whether or not it has repeated items.
    ///
    /// # Errors
    /// [`Error::Output`] if a file cannot be created, written or read, or was changed.
    pub fn padded(self, announced: usize, rng: &mut Prng) -> Result<DiskSet> {
        let Distinct { draft: Draft { scratch: from, form, buckets, .. }, again, len } = self;
        let mut scratch = Scratch::create(&from.folder)?;
        let mut dummies = vec![0; BUCKETS];
        (len..announced).for_each(|_| dummies[usize::from(rng.bytes::<1>()[0]) % BUCKETS] += 1);
        let mut pieces = Vec::with_capacity(BUCKETS);
        for ((bucket, again), dummies) in buckets.iter().zip(&again).zip(dummies) {
            let bytes = from.read(&bucket.extents)?;
            // Room for the whole bucket is reserved at once, because a list that grows leaves copies.
            let mut all = Zeroizing::new(Vec::with_capacity(bytes.len() + dummies * form.width()));
            let mut again = again.iter().copied().peekable();
            for (record, i) in bytes.chunks_exact(form.width()).zip(0..) {
                if again.next_if_eq(&i).is_none() {
                    all.extend_from_slice(record);
                }
            }
            (0..dummies).for_each(|_| form.write(DUMMY, &ItemHash::random(rng), [&[]; 2], &mut all));
            let len = all.len();
            pieces.extend(scratch.append(&mut all, [len])?);
        }
        Ok(DiskSet { scratch, form, buckets: pieces, len, announced: announced.max(len) })
    }
}

/// A set on disk, ready to be cut.
pub struct DiskSet {
    scratch: Scratch,
    form: Form,
    /// The place of each bucket in the file.
    buckets: Vec<Extent>,
    len: usize,
    announced: usize,
}

impl DiskSet {
    /// The number of items of the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size to which the set is padded.
    pub fn announced(&self) -> usize {
        self.announced
    }

    /// The form of the set's records.
    pub fn form(&self) -> Form {
        self.form
    }

    pub(super) fn sum(
        &self,
        threads: &Threads,
        domain: &Domain,
        message: impl Fn(u32, &ItemHash, &[u8], &mut Vec<u8>) + Sync,
    ) -> Result<Sum> {
        let form = self.form;
        let mut sum = [0; 4];
        for bucket in self.buckets.chunks(1) {
            let bytes = self.scratch.read(bucket)?;
            let batches = bytes.par_chunks(BATCH * form.width()).map(|batch| {
                let records = batch.chunks_exact(form.width()).map(Record);
                let items: Vec<_> = records.filter(|record| record.position() != DUMMY).collect();
                let payloads = items.iter().map(|item| item.row(form)[1].len()).sum();
                sum_of(domain, 0..items.len(), payloads, |i, to| {
                    message(items[i].position(), &items[i].hash(), items[i].row(form)[1], to);
                })
            });
            sum = add(sum, threads.run(|| batches.reduce(|| [0; 4], add)));
        }
        Ok(sum)
    }

    /// Cuts the set into this number of parts. `parts` is given hashes, and writes the number of the part of each.
    ///
    /// # Errors
    /// [`Error::Output`] if a file cannot be created, written or read, or was changed.
    pub fn cut(
        &self,
        threads: &Threads,
        number: u32,
        parts: impl Fn(&[ItemHash], &mut [u32]) + Sync,
    ) -> Result<Cut> {
        let (form, number) = (self.form, number as usize);
        let mut scratch = Scratch::create(&self.scratch.folder)?;
        let (mut extents, mut sizes) = (Vec::new(), vec![0; number]);
        for bucket in self.buckets.chunks(1) {
            let bytes = self.scratch.read(bucket)?;
            let mut of = vec![0; bytes.len() / form.width()];
            let batches = of.par_chunks_mut(BATCH).zip(bytes.par_chunks(BATCH * form.width()));
            let batches = batches.map(|(of, batch)| {
                let records = || batch.chunks_exact(form.width()).map(Record);
                let hashes = Secrets::from(records().map(Record::hash).collect::<Vec<_>>());
                parts(&hashes, of);
                // Dummies go after all parts.
                let dummies = of.iter_mut().zip(records()).filter(|(_, record)| record.position() == DUMMY);
                dummies.for_each(|(of, _)| *of = number as u32);
            });
            threads.run(|| batches.for_each(|()| ()));
            let mut ends = vec![0; number + 1];
            of.iter().for_each(|&part| ends[part as usize] += 1);
            let counts = ends.clone();
            sizes.iter_mut().zip(&counts).for_each(|(size, count)| *size += count);
            // The index at which each part begins. When all records are in their places, it is the index at which the part
            // ends.
            let mut next = 0;
            for end in &mut ends {
                next += std::mem::replace(end, next);
            }
            let mut ordered = vec![0; bytes.len()];
            for (record, &part) in bytes.chunks_exact(form.width()).zip(&of) {
                let end = &mut ends[part as usize];
                ordered[*end * form.width()..][..record.len()].copy_from_slice(record);
                *end += 1;
            }
            let written = scratch.append(&mut ordered, counts.iter().map(|count| count * form.width()))?;
            extents.push(written);
        }
        Ok(Cut { scratch, form, extents, sizes })
    }
}

/// A set that was cut into parts.
pub struct Cut {
    scratch: Scratch,
    form: Form,
    /// For each bucket, the places of the records of each part, and of the dummies.
    extents: Vec<Vec<Extent>>,
    sizes: Vec<usize>,
}

/// The items of a part.
pub struct Part {
    /// The positions of the items.
    pub positions: Vec<u32>,
    /// The hashes of the items.
    pub hashes: Secrets<ItemHash>,
    /// The items, if they travel; otherwise their hashes in place of them.
    pub items: Items,
    /// A payload for each item, if rows travel; the payloads are empty if only the items travel. Otherwise an empty list.
    pub payloads: Items,
}

/// A source of the parts (shards) of a set.
pub trait Source: Sync {
    /// Returns the items of a part, ordered by position.
    ///
    /// # Errors
    /// An error if the items cannot be read.
    fn part(&self, part: u32) -> Result<Part>;
}

impl Part {
    /// All items of a set as one part. Their positions are their places in the set.
    pub fn of(set: &ItemSet, payloads: &Items, form: Form) -> Part {
        let hashes = Secrets::from(set.hashes().to_vec());
        let items = match form.items {
            true => set.iter().collect(),
            false => in_place_of_items(&hashes),
        };
        let payload = |i: usize| if payloads.is_empty() { &[] } else { payloads.get(i) };
        let rows = if form.row.is_some() { set.len() } else { 0 };
        let payloads = (0..rows).map(payload).collect();
        Part { positions: (0..set.len()).map(|i| i as u32).collect(), hashes, items, payloads }
    }
}

/// Returns these hashes as a list of items, for items that do not travel.
fn in_place_of_items(hashes: &[ItemHash]) -> Items {
    let mut items = Items::with_capacity(hashes.len(), 32 * hashes.len());
    hashes.iter().for_each(|hash| items.push(hash.as_bytes()));
    items
}

impl Cut {
    /// The number of items in each part.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }
}

impl Source for Cut {
    fn part(&self, part: u32) -> Result<Part> {
        let extents: Vec<Extent> =
            self.extents.iter().filter_map(|of| of.get(part as usize).copied()).collect();
        let bytes = self.scratch.read(&extents)?;
        let mut records: Vec<Record<'_>> = bytes.chunks_exact(self.form.width()).map(Record).collect();
        records.sort_unstable_by_key(|record| record.position());
        let mut hashes = Secrets::with_capacity(records.len());
        records.iter().for_each(|record| hashes.extend(&[record.hash()]));
        // Room for all cells is reserved at once, because a list that grows leaves copies.
        let column = |at: usize| {
            let cells = records.iter().map(|record| record.row(self.form)[at]);
            let mut column = Items::with_capacity(records.len(), cells.clone().map(<[u8]>::len).sum());
            cells.for_each(|cell| column.push(cell));
            column
        };
        let items = if self.form.items { column(0) } else { in_place_of_items(&hashes) };
        let payloads = if self.form.row.is_some() { column(1) } else { Items::new() };
        let positions = records.iter().map(|record| record.position()).collect();
        Ok(Part { positions, hashes, items, payloads })
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
