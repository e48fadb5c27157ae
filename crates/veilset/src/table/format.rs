//! The formats of files, and how they are read.

use super::{Quoting, Table, compressed};
use crate::error::{Error, Result};
use crate::spelling::{OUTPUT, OUTPUT_FORMAT, RECEIVE_COLUMNS, setting};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The name of the one column of a list.
pub const LIST_COLUMN: &str = "item";

/// Whether this build has Parquet: the feature `parquet`.
pub(super) const HAS_PARQUET: bool = cfg!(feature = "parquet");

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Text with a header, cells separated by a delimiter and quoted where needed.
    #[default]
    Csv,
    /// Apache Parquet.
    Parquet,
    /// An Arrow file (IPC, also called Feather version 2) or stream; also a table of Arrow batches in memory.
    Arrow,
    /// JSON lines: an object on each line. It is read and not written.
    JsonLines,
    /// One item per line, without a header and without quoting: a table of one column, [`LIST_COLUMN`].
    List,
}

impl Format {
    /// All that this build has.
    pub const ALL: &[Format] = match HAS_PARQUET {
        true => &[Format::Csv, Format::Parquet, Format::Arrow, Format::JsonLines, Format::List],
        false => &[Format::Csv, Format::Arrow, Format::JsonLines, Format::List],
    };
    /// Those that are written.
    pub const WRITTEN: &[Format] = match HAS_PARQUET {
        true => &[Format::Csv, Format::Parquet, Format::Arrow, Format::List],
        false => &[Format::Csv, Format::Arrow, Format::List],
    };

    /// Its name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::JsonLines => "jsonl",
            Format::List => "list",
        }
    }

    /// The format of an input file, by its extension: `.parquet` and `.pq`, `.arrow`, `.arrows`, `.feather` and `.ipc`, `.jsonl` and
    /// `.ndjson`, `.txt` and `.list`; otherwise CSV. Of a compressed file the extension before `.gz`, `.zst` or `.zstd`
    /// decides.
    pub fn of_input(path: &Path) -> Format {
        let inside = compressed::inner(path);
        Format::by_extension(inside.as_deref().unwrap_or(path)).unwrap_or_default()
    }

    /// The format of a result: by its extension, otherwise text like the input. A result of several columns is never
    /// a list but CSV. `None` and `-` are standard output.
    pub fn of_output(path: Option<&Path>, input: Format, columns: usize) -> Format {
        match path.and_then(Format::by_extension).unwrap_or(input) {
            Format::Parquet | Format::Arrow if path.and_then(Format::by_extension).is_none() => Format::Csv,
            Format::JsonLines => Format::Csv,
            // If the name asks for a list and the result cannot be one, `check_output` refuses it.
            Format::List if columns != 1 && path.and_then(Format::by_extension).is_none() => Format::Csv,
            format => format,
        }
    }

    /// What separates cells in a file of this name.
    pub(crate) fn delimiter_of(path: &Path) -> Option<u8> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "tab" => Some(b'\t'),
            "csv" => Some(b','),
            _ => None,
        }
    }

    fn by_extension(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "parquet" | "pq" => Some(Format::Parquet),
            "arrow" | "arrows" | "feather" | "ipc" => Some(Format::Arrow),
            "jsonl" | "ndjson" => Some(Format::JsonLines),
            "txt" | "list" => Some(Format::List),
            "csv" | "tsv" | "tab" => Some(Format::Csv),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Format::ALL.iter().find(|f| f.name() == name);
        found.copied().ok_or_else(|| {
            let all: Vec<_> = Format::ALL.iter().map(|f| f.name()).collect();
            Error::usage(format!("\"{name}\" is not a format of this build. Use one of {}", all.join(", ")))
        })
    }
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// The format. `None`: by the extension ([`Format::of_input`]).
    pub format: Option<Format>,
    /// The byte that separates the cells of CSV, read and written. `None`: a tab for `.tsv` and `.tab`; otherwise that of
    /// comma, semicolon, tab and vertical bar which divides the first rows into as many columns each, or the comma if none does.
    /// If several do, and not only one has the columns that are named, reading is an error.
    pub delimiter: Option<u8>,
    /// Whether CSV begins with the first row instead of a header. Other formats are read as always.
    pub headerless: bool,
    /// What a cell may hold.
    pub encoding: Encoding,
    /// What quotes are in CSV that is read. It is always written as RFC 4180 has it.
    pub quoting: Quoting,
    /// Whether a key in CSV may have line ends. Otherwise they are an error: a quote too many puts rows into one cell.
    pub multiline_keys: bool,
}

impl ReadOptions {
    /// The format of a file of this name: the given one, or that of its name. With quotes that are ordinary characters, which only
    /// CSV can have, a list is CSV.
    pub fn format_of(&self, path: &Path) -> Format {
        match self.format.unwrap_or_else(|| Format::of_input(path)) {
            Format::List if self.format.is_none() && self.quoting == Quoting::Ordinary => Format::Csv,
            format => format,
        }
    }

    /// Whether it was said what the file is, so that a text is not taken for anything else.
    pub(super) fn is_said(&self) -> bool {
        self.format.is_some() || self.quoting == Quoting::Ordinary
    }
}

/// What a cell may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Encoding {
    /// UTF-8; anything else is an error.
    #[default]
    Utf8,
    /// Any bytes. Both parties must use the same encoding for equal keys to be equal.
    Bytes,
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::Utf8 => "utf8",
            Encoding::Bytes => "bytes",
        })
    }
}

/// Refuses, before a run, a result that could not be written: two columns of the same name, or more columns
/// than the format has. `sent` are the names of the columns that the other party sends.
pub fn check_output(table: &Table, sent: &[String], format: Format) -> Result<()> {
    check_names(table, sent)?;
    let columns = table.header().len() + sent.len();
    if format == Format::List && columns != 1 {
        return Err(no_list(columns));
    }
    if format == Format::JsonLines {
        return Err(Error::usage(format!(
            "JSON lines are read, and not written. Use {}, or give {OUTPUT} another name",
            OUTPUT_FORMAT.with("csv")
        )));
    }
    if matches!(format, Format::Csv | Format::List) {
        table.check_texts(concat!(
            "Use ",
            setting!(output_format, "parquet"),
            " or ",
            setting!(output_format, "arrow"),
            ", or remove the column"
        ))?;
    }
    if format == Format::Parquet {
        table.check_parquet()?;
    }
    let mut names = HashMap::new();
    table.header().iter().for_each(|name| *names.entry(name).or_insert(0) += 1);
    if format == Format::Parquet
        && let Some(name) = table.header().iter().find(|name| names.get(name).is_some_and(|n| *n > 1))
    {
        let next = concat!("Rename one of them, or use ", setting!(output_format, "csv"));
        return Err(table
            .error("the header has this name twice, which Parquet does not allow", next)
            .at_column(name));
    }
    Ok(())
}

/// The error for a list of several columns.
pub(super) fn no_list(columns: usize) -> Error {
    Error::usage(format!(
        "the result has {columns} columns, but a list has one; use {} or {}",
        OUTPUT_FORMAT.with("csv"),
        OUTPUT_FORMAT.with("parquet")
    ))
}

/// Refuses names of sent columns that occur twice or that our table has too.
pub fn check_names(table: &Table, names: &[String]) -> Result<()> {
    for (i, name) in names.iter().enumerate() {
        let ours = table.header().contains(name);
        if ours || names[..i].contains(name) {
            let with = if ours { "one of our columns" } else { "another sent column" };
            return Err(Error::usage(format!(
                "the sent column \"{}\" has the same name as {with}; give it another name with \
                 {}",
                name,
                RECEIVE_COLUMNS.with(format_args!("{}=OTHER", quoted(name))),
            )));
        }
    }
    Ok(())
}

/// The name of a column as it is typed in a list of them: in quotes where it has a comma, an equals sign or a quote.
pub fn quoted(name: &str) -> String {
    match name.contains(['"', ',', '=']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.into(),
    }
}
