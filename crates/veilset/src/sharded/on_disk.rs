//! A table of a sharded run, which is read piece by piece: once for the set, which is stored on disk, and again for a result
//! with our rows.
//!
//! The memory holds a piece of the table, a bit for each row, and 8 bytes for each row whose key occurred before. It also holds
//! the parts of the set that are in use ([`crate::sharded::disk`]), and the result: 4 bytes for each match, and the rows that
//! the peer sends.

use crate::artefact::check_size;
use crate::error::{Error, Result};
use crate::item::Items;
use crate::operations::Learned;
use crate::operations::intersect::Matching;
use crate::params::MAX_SET;
use crate::party::data::output_format;
use crate::party::{PartySpec, Phase, Watch};
use crate::rng::Prng;
use crate::sharded::disk::{DiskSet, Draft};
use crate::spelling::setting;
use crate::table::{
    Duplicates, Format, KeyColumns, NewRows, Output, PIECE, Profile, SentColumns, Table, To, Wanted,
    again_error, check_max_row, input_files, keyed_set, payloads, unopened, write_keys,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A table of which only the set is kept, which is on disk.
pub(crate) struct OnDisk {
    pub(crate) stored: Arc<DiskSet>,
    /// The table without its rows.
    pub(crate) head: Table,
    /// The positions of its key columns.
    pub(crate) key: Vec<usize>,
    pub(crate) compared: String,
    pub(crate) rows: u32,
    pub(crate) skipped: u64,
    pub(crate) profile: Profile,
    pub(crate) output_format: Format,
    /// A bit for each row: whether one of the set's items came from it.
    first: Bits,
    /// For each row whose key occurred before, the first row with that key, and the row itself; ordered by the latter.
    pub(crate) repeated: Vec<(u32, u32)>,
    files: Files,
    /// The digest of each piece as it was first read, with which the second reading is compared.
    digests: Vec<[u8; 32]>,
}

/// The files of a table, each with the stamp that it had before it was read.
struct Files(Vec<(PathBuf, Stamp)>);

/// Properties that show whether a file has changed: its length and the time of its last modification. On Unix also its device,
/// its inode number, and the time of the last change of its contents or attributes, which programs cannot set.
#[derive(PartialEq, Eq)]
struct Stamp(u64, Option<SystemTime>, [i64; 4]);

impl Stamp {
    fn of(file: &Path) -> Result<Stamp> {
        let of = file.metadata();
        let of = of.map_err(|e| unopened(file, &e))?;
        #[cfg(unix)]
        let more = {
            use std::os::unix::fs::MetadataExt;
            [of.dev().cast_signed(), of.ino().cast_signed(), of.ctime(), of.ctime_nsec()]
        };
        #[cfg(not(unix))]
        let more = [0; 4];
        Ok(Stamp(of.len(), of.modified().ok(), more))
    }
}

impl Files {
    fn of(inputs: &[PathBuf]) -> Result<Files> {
        let files = input_files(inputs)?.into_iter();
        files.map(|file| Ok((file.clone(), Stamp::of(&file)?))).collect::<Result<_>>().map(Files)
    }

    /// Returns the first of the files that has changed; `None` if none has.
    fn changed(&self) -> Result<Option<&Path>> {
        for (file, then) in &self.0 {
            if Stamp::of(file)? != *then {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }
}

/// A bit for each row.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, at: u32, to: bool) {
        let word = at as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let bit = 1 << (at % 64);
        if to { self.0[word] |= bit } else { self.0[word] &= !bit }
    }

    fn get(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

impl PartySpec {
    /// Whether our table is read piece by piece: the run is sharded, and all inputs are regular files, which can be read twice.
    pub(crate) fn in_pieces(&self) -> bool {
        let files =
            || input_files(&self.source.inputs).is_ok_and(|files| files.iter().all(|file| file.is_file()));
        self.spec.terms.shards > 0 && files()
    }

    /// The folder for the files of the set: the parent of the job's folder, or the folder for temporary files.
    fn scratch(&self) -> PathBuf {
        match self.folder.as_deref().and_then(Path::parent) {
            None => std::env::temp_dir(),
            Some(folder) if folder.as_os_str().is_empty() => ".".into(),
            Some(folder) => folder.into(),
        }
    }

    fn pieces(
        &self,
        step: &dyn Fn(u64) -> Result<()>,
        each: &mut dyn FnMut(Table) -> Result<()>,
    ) -> Result<()> {
        let source = &self.source;
        let columns = self.columns();
        let columns = columns.as_deref();
        let wanted = Wanted { columns, named: columns.unwrap_or(&source.key) };
        Table::wanted_in_pieces(&source.inputs, &source.read, wanted, PIECE, step, each)
    }
}

impl OnDisk {
    /// Reads and checks the table, and stores its set on disk, padded.
    pub(crate) fn read(party: &PartySpec, watch: &Watch<'_>) -> Result<OnDisk> {
        let (source, threads) = (&party.source, &party.local.threads);
        (watch.begins)(Phase::Reading);
        let keys_travel = party.spec.operation.uses.items_in_rows(party.spec.role, &party.spec.terms);
        let files = Files::of(&source.inputs)?;
        let mut draft = Draft::new(&party.scratch(), party.spec.form())?;
        let (mut head, mut key): (Option<(Table, Format)>, _) = (None, Vec::new());
        let (mut rows, mut skipped, mut first, mut repeated) = (0, 0, Bits::default(), Vec::new());
        let mut profile = Profile::default();
        let mut digests = Vec::new();
        party.pieces(watch.read, &mut |mut piece| {
            if let (None, Some(path)) = (source.read.delimiter, &party.output) {
                piece.written_as(path);
            }
            let format = output_format(party, &piece)?;
            match &mut head {
                None => head = Some((piece.without_rows(), format)),
                Some((head, _)) => head.include(&piece),
            }
            key = piece.columns(&source.key)?;
            // Keys that occur again in a later piece are found below.
            let (normalise, empty) = (source.normalise, source.empty_keys);
            let keyed = threads.run(|| keyed_set(&piece, &key, normalise, empty, Duplicates::First))?;
            let sent = match party.spec.sends() {
                [] => Items::new(),
                sent => payloads(&piece, &keyed, &piece.columns(sent)?)?,
            };
            check_max_row(&piece, &keyed, keys_travel, &sent, party.spec.terms.max_row)?;
            let payload = |i: usize| if sent.is_empty() { &[] } else { sent.get(i) };
            let positions = keyed.rows.iter().map(|row| rows + row);
            draft.push(positions, keyed.set.hashes(), |i| [keyed.set.get(i), payload(i)])?;
            keyed.rows.iter().for_each(|row| first.set(rows + row, true));
            let again = keyed.repeated().iter();
            repeated.extend(again.map(|&(row, at)| (rows + keyed.rows[at as usize], rows + row)));
            digests.push(piece.digest()?);
            skipped += keyed.skipped;
            profile.add(&keyed.profile);
            rows += piece.rows() as u32;
            Ok(())
        })?;
        // Rows that were added meanwhile would be missing in the run, and a receiver would run all shards for nothing: the
        // second reading refuses a changed file.
        if let Some(file) = files.changed()? {
            return Err(changed_while_read(file));
        }
        (watch.begins)(Phase::Sorting);
        let (distinct, again) = draft.distinct(threads)?;
        let (mut head, output_format) = head.ok_or_else(|| Error::Bug("a table without pieces".into()))?;
        head.name_all(&source.inputs);
        let n = distinct.len();
        if n > MAX_SET {
            let what = format!("{n} keys are more than this version supports ({MAX_SET})");
            return Err(Error::input(source.name(), what, "Split the file"));
        }
        if let Some(size) = source.pad_to {
            check_size(n, size)?;
        }
        // The first row with a key in its piece may not be the first in the table.
        let very_first = |row: u32| match again.binary_search_by_key(&row, |&(_, again)| again) {
            Ok(at) => again[at].0,
            Err(_) => row,
        };
        repeated.iter_mut().for_each(|(first, _)| *first = very_first(*first));
        again.iter().for_each(|&(_, row)| first.set(row, false));
        repeated.extend(again);
        repeated.sort_unstable_by_key(|&(_, again)| again);
        if let (Duplicates::Error, Some(&(first, again))) = (source.duplicates(false), repeated.first()) {
            return Err(same_key(party, &key, first, again));
        }
        let stored = distinct.padded(source.pad_to.unwrap_or(n), &mut Prng::from_os()?)?.into();
        Ok(OnDisk {
            stored,
            head,
            key,
            compared: source.normalise.name(source.read.encoding),
            rows,
            skipped,
            profile,
            output_format,
            first,
            repeated,
            files,
            digests,
        })
    }

    /// Writes the result, whose positions are numbers of rows.
    pub(crate) fn write(&self, party: &PartySpec, learned: &Learned, to: To<'_>) -> Result<()> {
        let sent = |payloads| {
            let names = party.received_as.as_slice();
            (!names.is_empty()).then_some(SentColumns { names, payloads })
        };
        match learned {
            Learned::Nothing => Ok(()),
            Learned::Matching(Matching { positions, payloads }) => {
                let expanded = match party.source.duplicates {
                    Some(Duplicates::All) => Some(self.with_repeated(positions)),
                    _ => None,
                };
                let all = expanded.as_ref().map(|(_, of)| match payloads.is_empty() {
                    true => Items::new(),
                    false => payloads.chosen(of),
                });
                let (rows, payloads) =
                    (expanded.as_ref().map_or(positions, |(rows, _)| rows), all.as_ref().unwrap_or(payloads));
                let sent = sent(payloads);
                let mut output = Output::of_rows(&self.head, rows.len(), sent, to)?;
                let mut done = 0;
                self.again(party, &mut |before, piece| {
                    let end = before + piece.rows() as u32;
                    let of = rows[done..].partition_point(|&row| row < end);
                    let here: Vec<usize> =
                        rows[done..done + of].iter().map(|row| (row - before) as usize).collect();
                    output.ours(piece, &here, sent.map(|sent| (sent, done)))?;
                    done += of;
                    Ok(())
                })?;
                output.end()
            }
            Learned::New(new) => {
                let theirs = NewRows { items: &new.items, sent: sent(&new.payloads) };
                let mut output = Output::of_union(&self.head, KeyColumns::of(&self.key), theirs, to)?;
                self.again(party, &mut |before, piece| {
                    let here = (0..piece.rows()).filter(|&row| self.first.get(before + row as u32));
                    output.ours(piece, &here.collect::<Vec<_>>(), None)
                })?;
                output.new_rows(&self.head, &self.key, theirs)?;
                output.end()
            }
            Learned::Union(items) => write_keys(&self.head, KeyColumns::of(&self.key), items, to),
            other => Err(Error::bug(format!("a job in shards with {other:?}"))),
        }
    }

    /// Returns all rows with the keys of these first rows, and for each row the index in `firsts` of the first row with its
    /// key.
    fn with_repeated(&self, firsts: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut all: Vec<(u32, u32)> = firsts.iter().copied().zip(0..).collect();
        let again = self
            .repeated
            .iter()
            .filter_map(|&(first, row)| firsts.binary_search(&first).ok().map(|at| (row, at as u32)));
        all.extend(again);
        all.sort_unstable();
        all.into_iter().unzip()
    }

    /// Reads the table again, and refuses it if it has changed. `each` gets each piece, and the number of rows before it.
    fn again(&self, party: &PartySpec, each: &mut dyn FnMut(u32, &Table) -> Result<()>) -> Result<()> {
        let changed = |file: &Path| {
            let what = "the file has changed since the run began";
            let next = match party.folder {
                Some(_) => concat!("Put back the file of then, and go on with ", setting!(resume)),
                None => "Run again, and leave the file as it is until the run is over",
            };
            Err(Error::input(file, what, next))
        };
        let same = || self.files.changed()?.map_or(Ok(()), changed);
        let other = |file: &str| {
            // If the file has changed by its stamp, that is the error.
            same()?;
            let what = "other bytes were read than at first, though the file says that it has not changed";
            let next = "Check the disk, or the network that it is on, and run again";
            Err(Error::input(file, what, next))
        };
        same()?;
        let (mut rows, mut digests) = (0, self.digests.iter());
        let read = party.pieces(&|_| Ok(()), &mut |piece| {
            if digests.next() != Some(&piece.digest()?) {
                return other(piece.name());
            }
            each(rows, &piece)?;
            rows += piece.rows() as u32;
            Ok(())
        });
        // If a file has changed, this is the cause of any error in the table, and is reported instead.
        same()?;
        read?;
        match digests.next().is_none() {
            true => Ok(()),
            false => other(self.head.name()),
        }
    }
}

/// The error for a file that changed during the first reading.
fn changed_while_read(file: impl AsRef<Path>) -> Error {
    Error::input(file, "the file changed while it was read", "Run again when it is complete")
}

/// Returns the error for two rows with the same key. Reads the table again, to name their places.
fn same_key(party: &PartySpec, key: &[usize], first: u32, again: u32) -> Error {
    let (mut before, mut place) = (0, String::new());
    let looked = party.pieces(&|_| Ok(()), &mut |piece| {
        let within =
            |row: u32| row.checked_sub(before).map(|row| row as usize).filter(|row| *row < piece.rows());
        if let Some(row) = within(first) {
            place = piece.whereabouts(row);
        }
        if let Some(row) = within(again) {
            return Err(again_error(&piece, key, row, &place));
        }
        before += piece.rows() as u32;
        Ok(())
    });
    looked.err().unwrap_or_else(|| changed_while_read(party.source.name()))
}

#[cfg(test)]
#[path = "on_disk_tests.rs"]
mod tests;
