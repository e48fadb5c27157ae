//! Tables: files in, the keyed set, the values and the payloads of their rows, files out.
//!
//! A [`Table`] is read from CSV, Parquet, Arrow or a plain list, or made of Arrow batches ([`Table::from_batches`]), whole or
//! only the columns that are needed. [`keyed_set`]
//! makes the set for an operation from the key columns, normalised as agreed ([`Normalise`]), and remembers which row
//! each item came from. [`values()`] reads the column to be summed, and [`payloads()`] the columns that are sent with
//! the items. After the run, [`write_rows`], [`write_union`], [`write_keys`] and [`write_cells`] write the result into a
//! [`Destination`], which was opened before anything was sent to the peer, or into [`Batches`].
//!
//! Cells are bytes. What is a number, a date and so on in Parquet becomes the one text that it also has in CSV:
//!
//! | type | text |
//! |---|---|
//! | string | as it is |
//! | integer | shortest decimal: `-7`, `0`, `42` |
//! | boolean | `true`, `false` |
//! | decimal | with exactly as many fractional digits as the column's scale: `1.50`, `-0.05` |
//! | date | `2024-01-31`; years beyond 0000 to 9999 with a sign, `+12024-01-31` |
//! | time of day | `12:30:00`, then a fraction without zeros at its end if there is one |
//! | timestamp | date, `T`, time, and `Z` if it is an instant (adjusted to UTC); no key without it |
//! | UUID | lower case with hyphens |
//! | float | the shortest text that reads back as the same number: `0.1`, `1e300`, `NaN`; never a key |
//! | binary | as it is, with [`Encoding::Bytes`] only |
//!
//! A missing value (null) is an empty cell, in a key too. In Parquet output it is missing again, except in columns
//! from CSV, which cannot tell the two apart, and in text columns from the peer. Lists, structs and maps have no
//! text: such a column is an error if it was asked for, and is omitted otherwise ([`Table::unread`]).
//!
//! Messages name the file, the line or row, the column and the next step. They never show a cell below the header:
//! messages end up in logs, and the data is confidential.

mod arrow_read;
mod batches;
mod builders;
mod cells;
mod compressed;
mod delimiter;
mod destination;
mod format;
mod json_lines;
mod keys;
mod names;
mod normalise;
mod notes;
mod other;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "parquet_missing.rs"]
mod parquet;
mod pieces;
mod profile;
mod quotes;
mod read;
mod sent;
mod several;
mod shares;
mod sink;
mod temporary;
mod terminal;
mod typed;
mod types;
mod unknown;
mod values;
mod watched;
mod write;

pub use batches::Batches;
use batches::misfit;
pub(crate) use delimiter::Wanted;
pub use destination::Destination;
pub(crate) use destination::unwritable;
pub use format::{Encoding, Format, LIST_COLUMN, ReadOptions, check_names, check_output, quoted};
pub(crate) use keys::again_error;
pub use keys::{Duplicates, EmptyKeys, KeyedSet, check_max_row, keyed_set, payloads};
pub use names::column_names;
pub use normalise::Normalise;
pub use notes::Note;
pub use other::{check_input_name, check_output_name};
pub(crate) use pieces::PIECE;
pub use profile::Profile;
pub use quotes::Quoting;
pub(crate) use read::unopened;
pub use sent::SentColumns;
pub use several::{input_files, name_of};
pub use shares::{SHARE_COLUMNS, open_keys, open_values, read_shares};
pub use temporary::remove_unfinished;
pub use unknown::UNREAD;
pub use values::{check_share_bound, check_sum_bound, values};
pub use write::{
    KeyColumns, Layout, NewRows, Output, To, text_keys, write_cells, write_keys, write_rows, write_union,
};

use crate::error::{Error, Place, Result};
use crate::spelling::{DELIMITER, NO_HEADER};
use arrow_schema::FieldRef;
use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::Path;
use types::Unfit;
use watched::Watched;

/// The most rows a table may have: positions of rows are 32-bit numbers.
const MAX_ROWS: usize = u32::MAX as usize;

/// A table in memory: a header, and Arrow batches of rows of as many cells.
///
/// Batches and what Parquet has are kept as they are. Otherwise a table costs the bytes of its cells, and 16 bytes for each row
/// that does not start on the line after the one before it. Each cell costs 4 bytes more, unless the lengths in its column are
/// those of the batch before.
pub struct Table {
    name: String,
    format: Format,
    delimiter: u8,
    encoding: Encoding,
    columns: Vec<Column>,
    /// The column names, readable even where they are not UTF-8.
    header: Vec<String>,
    header_line: Option<u64>,
    /// Whether the file has no header, and so the CSV of a result has none either.
    headerless: bool,
    unread: Vec<Unread>,
    /// What its file was found to be.
    found: Found,
    /// What is odd in the file.
    notes: Vec<Note>,
    /// Whether a key in CSV may have line ends.
    multiline_keys: bool,
    lines: Lines,
    batches: Batches,
    /// Of a table of several files, each file's first row and its name; empty for one file.
    files: Vec<(usize, String)>,
    /// Of a piece of a file, the rows of the file that come before it.
    before: usize,
}

/// What a file was found to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The number of its columns, whether they are in the table or not; 0 if they were not counted.
    pub columns: usize,
    /// What separates them, in CSV.
    pub delimiter: Option<u8>,
}

impl fmt::Display for Found {
    /// `3 columns separated by ';'`; nothing if the columns were not counted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.columns, self.delimiter) {
            (0, _) => Ok(()),
            (1, _) => f.write_str("1 column"),
            (columns, None) => write!(f, "{columns} columns"),
            (columns, Some(delimiter)) => {
                write!(f, "{columns} columns separated by {}", delimiter_name(delimiter))
            }
        }
    }
}

/// A column of the file that is not in the table because its cells have no text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unread {
    /// Its name.
    pub name: String,
    /// Why not.
    pub what: String,
    /// What to do if it is needed.
    pub next: &'static str,
}

/// A column.
#[derive(Clone)]
struct Column {
    /// Its name in the file.
    raw: Vec<u8>,
    /// Its name as text, and what its values are.
    field: FieldRef,
    /// Why they have no text, if so.
    unfit: Option<Unfit>,
    /// In JSON, the first of its values that cannot be a key.
    no_key: Option<NoKey>,
}

/// A value that cannot be a key, and where it is.
#[derive(Clone)]
struct NoKey {
    file: String,
    place: Place,
    why: Unfit,
}

impl Table {
    /// Reads a file; `-` is standard input. `columns` are the needed ones; the others are checked and dropped (in
    /// Parquet, not even read). A needed column must occur exactly once. `None` means all columns that can be read.
    ///
    /// CSV: the first line is the header, a file with nothing else is a table of no rows, and an empty file is
    /// an error. Without a header ([`ReadOptions::headerless`]) columns are called by their numbers, from `1`. Quotes are
    /// used as [`ReadOptions::quoting`] says, and every row has as many cells as the first; anything else is an error.
    /// Lines end with LF, CRLF or CR; a UTF-8 byte-order mark is dropped. Blank lines are skipped, so in a
    /// file of one column an empty cell is written `""`.
    ///
    /// Lists: each line is an item as it stands, quotes and delimiters included; the column is [`LIST_COLUMN`].
    /// Line ends, byte-order mark and blank lines are treated as in CSV; an empty list is a table of no rows.
    ///
    /// JSON lines: an object on each line. Its strings, numbers and truth values are cells of text; null, and a name that a
    /// line lacks, are no value.
    ///
    /// All of them may be compressed by gzip or Zstandard, which is recognised by the first bytes.
    ///
    /// Arrow: a file or a stream. It is read into memory, and its columns keep their types in the result if that is of the same
    /// format or Parquet.
    ///
    /// Parquet: compressed with Snappy, gzip, LZ4, Zstandard, Brotli or not at all. From standard input and pipes it is
    /// read into memory first. A column that is nested, or binary without [`Encoding::Bytes`], is an error if it is
    /// among `columns`, and not part of the table if `columns` is `None` ([`Table::unread`]).
    pub fn read(path: &Path, options: &ReadOptions, columns: Option<&[String]>) -> Result<Table> {
        Table::read_watched(path, options, columns, &|_| Ok(()))
    }

    /// The same. `step` is called repeatedly with the number of bytes read so far; for Parquet, the bytes that the
    /// cells take. An error from it ends the reading.
    pub fn read_watched(
        path: &Path,
        options: &ReadOptions,
        columns: Option<&[String]>,
        step: &dyn Fn(u64) -> Result<()>,
    ) -> Result<Table> {
        Table::read_wanted(path, options, columns.into(), step)
    }

    fn read_wanted(
        path: &Path,
        options: &ReadOptions,
        wanted: Wanted<'_>,
        step: &dyn Fn(u64) -> Result<()>,
    ) -> Result<Table> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            let input = Watched::new(std::io::stdin().lock(), step);
            return Table::from_wanted(&name, input, options, wanted);
        }
        let file = std::fs::File::open(path).map_err(|e| read::unopened(path, &e))?;
        match options.format_of(path) {
            // Only a regular file has an end to start from.
            Format::Parquet
                if file.metadata().is_ok_and(|m| m.is_file()) && compressed::inner(path).is_none() =>
            {
                parquet::read(&name, file, options, wanted.columns, step, (usize::MAX, &mut |_| Ok(())))
            }
            _ => Table::from_wanted(&name, Watched::new(file, step), options, wanted),
        }
    }

    /// Reads from anywhere. `name` appears in messages, and its extension chooses format and delimiter if the
    /// options do not.
    pub fn from_reader(
        name: &str,
        reader: impl Read,
        options: &ReadOptions,
        columns: Option<&[String]>,
    ) -> Result<Table> {
        Table::from_wanted(name, reader, options, columns.into())
    }

    fn from_wanted(
        name: &str,
        reader: impl Read,
        options: &ReadOptions,
        wanted: Wanted<'_>,
    ) -> Result<Table> {
        let columns = wanted.columns;
        let reader = compressed::decompressed(name, reader)?;
        match options.format_of(Path::new(name)) {
            Format::Parquet => parquet::read_stream(name, reader, options, columns),
            Format::Arrow => arrow_read::read(name, reader, options, columns),
            Format::JsonLines => json_lines::read(name, reader, options, columns),
            Format::Csv | Format::List => {
                read::read(name, reader, options, wanted, MAX_ROWS, (usize::MAX, &mut |_| Ok(())))
            }
        }
    }

    /// A table of which no more is known.
    fn of(
        name: &str,
        format: Format,
        options: &ReadOptions,
        columns: Vec<Column>,
        batches: Batches,
    ) -> Table {
        Table {
            name: name.into(),
            format,
            delimiter: options.delimiter.unwrap_or(b','),
            encoding: options.encoding,
            header: columns.iter().map(|column| column.field.name().clone()).collect(),
            columns,
            header_line: None,
            headerless: false,
            unread: Vec::new(),
            found: Found::default(),
            notes: Vec::new(),
            multiline_keys: options.multiline_keys,
            lines: Lines::default(),
            batches,
            files: Vec::new(),
            before: 0,
        }
    }

    /// The file as the user named it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format it was read from.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The names of the columns that were read.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// The columns of the file that are not in the table because their cells have no text.
    pub fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// What its file was found to be.
    pub fn found(&self) -> Found {
        self.found
    }

    /// What is odd in the file and not wrong.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The number of rows, the header not counted.
    pub fn rows(&self) -> usize {
        self.batches.rows()
    }

    /// A digest of its cells as they are stored: that of another reading of the same bytes is the same.
    ///
    /// # Errors
    /// [`Error::Bug`].
    pub(crate) fn digest(&self) -> Result<[u8; 32]> {
        let mut digest = blake3::Hasher::new();
        let written = self.batches.write(&mut digest);
        written.map_err(|e| misfit("a digest of batches", e))?;
        Ok(*digest.finalize().as_bytes())
    }

    /// The cell of a row and a column, both counted from 0; they must exist. Empty if there is no value.
    pub fn cell(&self, row: usize, column: usize) -> Cow<'_, [u8]> {
        let mut cell = Vec::new();
        // Which cells have a text was checked when they were read.
        let _ = self.each_row([row], &[column], |_, cells| {
            cell.extend_from_slice(cells[0].unwrap_or_default());
            Ok(())
        });
        cell.into()
    }

    /// Where in its file a row is.
    pub fn place(&self, row: usize) -> Place {
        let (first, _) = self.file(row);
        match self.format {
            Format::Csv | Format::JsonLines | Format::List => Place::Line(self.lines.get(row)),
            Format::Parquet | Format::Arrow => Place::Row((self.before + row - first) as u64 + 1),
        }
    }

    /// The first row of the file that a row is in, and the file's name.
    fn file(&self, row: usize) -> (usize, &str) {
        match self.files.partition_point(|(first, _)| *first <= row).checked_sub(1) {
            Some(at) => (self.files[at].0, &self.files[at].1),
            None => (0, &self.name),
        }
    }

    /// Where a row is, in words; with the file, if there are several.
    pub(crate) fn whereabouts(&self, row: usize) -> String {
        let place = self.place(row);
        match self.files[..] {
            [] => place.to_string(),
            _ => format!("{place} of {}", self.file(row).1),
        }
    }

    /// The byte that separates cells in CSV that is read or written.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Sets the delimiter for CSV output by the file's name: a tab for `.tsv` and `.tab`, and no tab for `.csv`. Other
    /// names change nothing.
    pub fn written_as(&mut self, path: &Path) {
        self.delimiter = match (Format::delimiter_of(path), self.delimiter) {
            (Some(b','), ours) if ours != b'\t' => ours,
            (Some(by_name), _) => by_name,
            (None, ours) => ours,
        };
    }

    /// The positions of the columns with these names, in the order given. At least one must be named, none
    /// twice, and each must occur exactly once in the header.
    pub fn columns(&self, names: &[String]) -> Result<Vec<usize>> {
        let head = Head {
            file: &self.name,
            names: &self.header,
            line: self.header_line,
            format: self.format,
            unread: &self.unread,
        };
        head.columns(names)
    }

    /// An input error in this table.
    fn error(&self, what: impl Into<String>, next: impl Into<String>) -> Error {
        Error::input(&self.name, what, next)
    }

    /// An input error in a row.
    fn error_in(&self, row: usize, what: impl Into<String>, next: impl Into<String>) -> Error {
        Error::input(self.file(row).1, what, next).at(self.place(row))
    }

    /// An input error at a cell.
    fn error_at(&self, row: usize, column: usize, what: impl Into<String>, next: impl Into<String>) -> Error {
        self.error_in(row, what, next).at_column(self.label(column))
    }

    /// What a message calls a column: its name, or its number from 1 if the name is empty.
    fn label(&self, column: usize) -> String {
        label(&self.header, column)
    }
}

impl fmt::Debug for Table {
    /// Without the cells, which are confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.name)
            .field("header", &self.header)
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}

/// The header of a file, in which columns are looked for.
struct Head<'a> {
    file: &'a str,
    names: &'a [String],
    line: Option<u64>,
    format: Format,
    /// The columns that have no text.
    unread: &'a [Unread],
}

impl Head<'_> {
    fn columns(&self, names: &[String]) -> Result<Vec<usize>> {
        if names.is_empty() {
            let next = format!("Name one or more. {}", self.choice());
            return Err(Error::input(self.file, "no column was named", next));
        }
        let mut found: Vec<usize> = Vec::with_capacity(names.len());
        for name in names {
            if let Some(unread) = self.unread.iter().find(|unread| unread.name == *name) {
                return Err(self.unreadable(unread));
            }
            let mut at = (0..self.names.len()).filter(|&i| self.names[i] == *name);
            let Some(column) = at.next() else {
                return Err(self.error("there is no such column", self.hint(name)).at_column(name));
            };
            if let Some(again) = at.next() {
                let what =
                    format!("the header has this name twice, at columns {} and {}", column + 1, again + 1);
                return Err(self.error(what, "Rename one of them").at_column(name));
            }
            if found.contains(&column) {
                return Err(self.error("the column was named twice", "Name it once").at_column(name));
            }
            found.push(column);
        }
        Ok(found)
    }

    /// The positions of the needed columns, in the order of the file.
    fn choose(&self, needed: Option<&[String]>) -> Result<Vec<usize>> {
        let Some(needed) = needed else { return Ok((0..self.names.len()).collect()) };
        let mut chosen = Vec::new();
        for name in needed {
            chosen.extend(self.columns(std::slice::from_ref(name))?);
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }

    /// The error for a column that is needed and has no text.
    fn unreadable(&self, unread: &Unread) -> Error {
        self.error(unread.what.as_str(), unread.next).at_column(shorten(&unread.name))
    }

    /// An input error in the header.
    fn error(&self, what: impl Into<String>, next: impl Into<String>) -> Error {
        let error = Error::input(self.file, what, next);
        match self.line {
            Some(line) => error.at(Place::Line(line)),
            None => error,
        }
    }

    /// The next step for a name that is not in the header.
    fn hint(&self, name: &str) -> String {
        let plain = |s: &str| s.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let wanted = plain(name);
        if let Some(near) = self.names.iter().find(|h| !wanted.is_empty() && plain(h) == wanted) {
            return format!("Did you mean {}? Case, spaces and punctuation count", format_args!("{near:?}"));
        }
        if self.format == Format::Csv
            && let [only] = self.names
            && let Some(other) = [';', '\t', ',', '|'].into_iter().find(|&d| only.contains(d))
        {
            return format!(
                "The header is one column, {}. If {} separates the columns, give it with {DELIMITER}",
                format_args!("{:?}", shorten(only)),
                delimiter_name(other as u8)
            );
        }
        match (self.format, self.line) {
            (Format::Csv, Some(_)) => format!("{}; if that is a row, use {NO_HEADER}", self.choice()),
            _ => self.choice(),
        }
    }

    /// The columns there are.
    fn choice(&self) -> String {
        const SHOWN: usize = 20;
        let names: Vec<&String> = self.names.iter().filter(|name| !name.starts_with(OF_FRONT_ENDS)).collect();
        let mut text: Vec<String> = names.iter().take(SHOWN).map(|h| format!("{:?}", shorten(h))).collect();
        if names.len() > SHOWN {
            text.push(format!("and {} more", names.len() - SHOWN));
        }
        format!("The columns are {}", text.join(", "))
    }
}

/// A front end's own columns begin with this. Users do not know them.
const OF_FRONT_ENDS: &str = "__veilset_";

/// The line on which each row starts. Almost always it is the line after the row before; only the other rows are
/// stored, with their lines.
#[derive(Default)]
struct Lines(Vec<(u32, u64)>);

impl Lines {
    /// Rows are pushed in order, starting from 0.
    fn push(&mut self, row: u32, line: u64) {
        if self.0.last().is_none_or(|&(r, l)| l + u64::from(row - r) != line) {
            self.0.push((row, line));
        }
    }

    /// Those of a further file, whose first row gets this number.
    fn append(&mut self, first: usize, further: &Lines) {
        further.0.iter().for_each(|&(row, line)| self.push(first as u32 + row, line));
    }

    fn get(&self, row: usize) -> u64 {
        let after = self.0.partition_point(|&(r, _)| r as usize <= row);
        let (r, l) = after.checked_sub(1).map_or((0, 0), |i| self.0[i]);
        l + (row as u64 - u64::from(r))
    }
}

fn label(header: &[String], column: usize) -> String {
    match header.get(column) {
        Some(name) if !name.is_empty() => name.clone(),
        _ => format!("#{}", column + 1),
    }
}

/// A delimiter as a message shows it.
fn delimiter_name(delimiter: u8) -> String {
    match delimiter {
        b'\t' => "a tab".into(),
        b' ' => "a space".into(),
        d if d.is_ascii_graphic() => format!("'{}'", d as char),
        d => format!("byte {d:#04x}"),
    }
}

/// A column name cut to a length that fits a message.
fn shorten(name: &str) -> String {
    const LONGEST: usize = 60;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.into(),
    }
}

#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod key_types_tests;
#[cfg(test)]
mod tests;
