//! Tables: CSV in, the keyed set and the values of its rows, CSV out.
//!
//! A [`Table`] holds all cells in one allocation. [`keyed_set`] makes the set that takes part in an
//! operation out of its key columns and remembers which row each item came from; [`values()`] reads the
//! column to be summed. After the run, [`write_rows`] and [`write_union`] write the result into an
//! [`Output`], which was opened before anything was sent to the peer.
//!
//! Messages name file, line, column and the next step. They never show the content of a cell below the header:
//! they end up in logs, and the data is confidential.

mod keys;
mod output;
mod read;
mod values;
mod write;

pub use keys::{Duplicates, EmptyKeys, KeyedSet, check_max_row, keyed_set};
pub use output::Output;
pub use read::{CsvOptions, Encoding};
pub use values::{check_sum_bound, values};
pub use write::{write_rows, write_union};

use crate::error::{Error, Result};
use std::fmt;
use std::io::Read;
use std::path::Path;

/// The most rows a table may have: positions of rows are 32-bit numbers.
const MAX_ROWS: usize = u32::MAX as usize;

/// A table in memory: a header and rows of as many cells.
///
/// It costs the bytes of its cells, 8 bytes for each cell, and 16 bytes for each row that does not start
/// on the line after the one before it.
pub struct Table {
    name: String,
    delimiter: u8,
    encoding: Encoding,
    /// The column names, readable even where they are not UTF-8.
    header: Vec<String>,
    header_line: u64,
    rows: usize,
    lines: Lines,
    /// The header's cells, then those of each row; `ends[i]` is where cell `i` ends.
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Table {
    /// Reads a CSV file; `-` is standard input.
    ///
    /// The first line is the header, a file with nothing else is a table of no rows, and an empty file is
    /// an error. Quoting is that of RFC 4180; a quote inside an unquoted cell is an ordinary character.
    /// Lines end with LF, CRLF or CR; a UTF-8 byte-order mark is dropped. Blank lines are skipped, so in a
    /// file of one column an empty cell is written `""`.
    pub fn read_csv(path: &Path, options: &CsvOptions) -> Result<Table> {
        if path == Path::new("-") {
            return Table::from_reader("-", std::io::stdin().lock(), options);
        }
        let file = std::fs::File::open(path).map_err(|e| {
            Error::input(path, format!("the file cannot be opened: {e}"), "Check its name and permissions")
        })?;
        Table::from_reader(&path.display().to_string(), file, options)
    }

    /// Reads CSV from anywhere. `name` appears in messages, and its extension chooses the delimiter if the
    /// options do not.
    pub fn from_reader(name: &str, reader: impl Read, options: &CsvOptions) -> Result<Table> {
        read::read(name, reader, options, MAX_ROWS)
    }

    /// The file as the user named it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// The number of rows, the header not counted.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The cell of a row and a column, both counted from 0; they must exist.
    pub fn cell(&self, row: usize, column: usize) -> &[u8] {
        assert!(column < self.header.len(), "column {column} of {}", self.header.len());
        self.cell_at((row + 1) * self.header.len() + column)
    }

    /// The line of the file on which a row starts, counted from 1 and including the header.
    pub fn line(&self, row: usize) -> u64 {
        self.lines.get(row)
    }

    /// The byte that separates cells.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// The positions of the columns with these names, in the order given. At least one must be named, none
    /// twice, and each must occur exactly once in the header.
    pub fn columns(&self, names: &[String]) -> Result<Vec<usize>> {
        if names.is_empty() {
            return Err(self.error("no column was named", format!("Name one or more. {}", self.choice())));
        }
        let mut found: Vec<usize> = Vec::with_capacity(names.len());
        for name in names {
            let mut at = (0..self.header.len()).filter(|&i| self.header[i] == *name);
            let Some(column) = at.next() else {
                return Err(self
                    .error("there is no such column", self.hint(name))
                    .at_row(self.header_line)
                    .at_column(name));
            };
            if let Some(again) = at.next() {
                let what =
                    format!("the header has this name twice, at columns {} and {}", column + 1, again + 1);
                return Err(self.error(what, "Rename one of them").at_row(self.header_line).at_column(name));
            }
            if found.contains(&column) {
                return Err(self
                    .error("the column was named twice", "Name it once")
                    .at_row(self.header_line)
                    .at_column(name));
            }
            found.push(column);
        }
        Ok(found)
    }

    /// The bytes of a column's name.
    fn raw_name(&self, column: usize) -> &[u8] {
        self.cell_at(column)
    }

    fn cell_at(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// An input error in this table.
    fn error(&self, what: impl Into<String>, next: impl Into<String>) -> Error {
        Error::input(&self.name, what, next)
    }

    /// An input error at a cell.
    fn error_at(&self, row: usize, column: usize, what: impl Into<String>, next: impl Into<String>) -> Error {
        self.error(what, next).at_row(self.line(row)).at_column(self.label(column))
    }

    /// What a message calls a column: its name, or its number from 1 if the name is empty.
    fn label(&self, column: usize) -> String {
        label(&self.header, column)
    }

    /// The next step for a name that is not in the header.
    fn hint(&self, name: &str) -> String {
        let plain = |s: &str| s.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let wanted = plain(name);
        if let Some(near) = self.header.iter().find(|h| !wanted.is_empty() && plain(h) == wanted) {
            return format!("Did you mean {near:?}? Case, spaces and signs count");
        }
        if let [only] = self.header.as_slice()
            && let Some(other) = [';', '\t', ',', '|'].into_iter().find(|&d| only.contains(d))
        {
            return format!(
                "The header is one column, {:?}. If {} separates the columns, say so with --delimiter",
                shorten(only),
                delimiter_name(other as u8)
            );
        }
        self.choice()
    }

    /// The columns there are.
    fn choice(&self) -> String {
        const SHOWN: usize = 20;
        let mut text: Vec<String> =
            self.header.iter().take(SHOWN).map(|h| format!("{:?}", shorten(h))).collect();
        if self.header.len() > SHOWN {
            text.push(format!("and {} more", self.header.len() - SHOWN));
        }
        format!("The columns are {}", text.join(", "))
    }
}

impl fmt::Debug for Table {
    /// Without the cells, which are confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("name", &self.name)
            .field("header", &self.header)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// The line on which each row starts. Almost always that is the line after the row before, so only the
/// rows for which it is not are stored, with their lines.
#[derive(Default)]
struct Lines(Vec<(u32, u64)>);

impl Lines {
    /// Rows are pushed in order, starting from 0.
    fn push(&mut self, row: u32, line: u64) {
        if self.0.last().is_none_or(|&(r, l)| l + u64::from(row - r) != line) {
            self.0.push((row, line));
        }
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
mod tests;
