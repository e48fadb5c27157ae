//! Files of formats that are not supported: recognised by their first bytes or their names, with the next step.

use super::compressed;
use super::format::{Format, HAS_PARQUET};
use crate::error::{Error, Result};
use std::path::Path;

/// How many bytes at the start of a file are looked at.
pub(super) const HEAD: usize = 16;

const SHEET: &str = "Export the sheet as CSV (UTF-8)";
const TABLE: &str = "Export the table as CSV (UTF-8)";
const CONVERT: &str = "Convert it to Parquet or CSV";

/// The first bytes of files of other kinds, what such a file is, and the next step.
const MAGIC: [(&[u8], &str, &str); 12] = [
    (b"PK\x03\x04", ZIP.0, ZIP.1),
    (b"PK\x05\x06", ZIP.0, ZIP.1),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "this is an Excel workbook (xls)", SHEET),
    (b"SQLite format 3\0", "this is an SQLite database", TABLE),
    (b"BZh91AY&SY", "this is compressed by bzip2", "Decompress it first (bunzip2)"),
    (b"\xfd7zXZ\0", "this is compressed by xz", "Decompress it first (unxz)"),
    (b"\x04\x22\x4d\x18", "this is compressed by LZ4", "Decompress it first (unlz4)"),
    (b"7z\xbc\xaf\x27\x1c", "this is a 7z archive", "Unpack it first"),
    (b"Rar!\x1a\x07", "this is a RAR archive", "Unpack it first"),
    (b"%PDF-", "this is a PDF document", TABLE),
    (b"ARROW1\0\0", "this is an Arrow file", "Read it with `format=arrow`"),
    (b"Obj\x01", "this is an Avro file", CONVERT),
];
const ZIP: (&str, &str) = (
    "this is a zip file: a workbook (xlsx, ods) or an archive",
    "Export the sheet as CSV (UTF-8), or unzip the file",
);

/// The byte-order marks of UTF-8 and UTF-16.
const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

/// Extensions of other kinds of files, what such a file is, and the next step for an input.
const EXTENSIONS: [(&[&str], &str, &str); 7] = [
    (&["xlsx", "xlsm", "xlsb", "xls", "ods"], "a spreadsheet", SHEET),
    (&["json", "geojson"], "JSON", CONVERT),
    (
        &["tgz", "bz2", "xz", "lz4", "zip", "7z", "rar", "tar"],
        "a compressed file or an archive",
        "Unpack it first",
    ),
    (&["db", "db3", "sqlite", "sqlite3", "duckdb", "mdb", "accdb"], "a database", TABLE),
    (&["avro", "orc"], "an Avro or ORC file", CONVERT),
    (&["sav", "dta", "sas7bdat", "rds", "rda", "rdata"], "a file of a statistics program", CONVERT),
    (&["pdf", "doc", "docx", "odt", "htm", "html", "xml", "yaml", "yml"], "a document", TABLE),
];

/// Extensions of files that are read and not written, and what such a file is.
const READ_ONLY: [(&[&str], &str); 2] =
    [(&["jsonl", "ndjson"], "JSON lines"), (&["gz", "zst", "zstd"], "a compressed file")];

/// Whether a file begins like Parquet: after the magic number comes a byte that no text has.
pub(super) fn is_parquet(head: &[u8]) -> bool {
    head.strip_prefix(b"PAR1").is_some_and(|rest| rest.first().is_some_and(|&byte| is_control(byte)))
}

fn is_control(byte: u8) -> bool {
    byte < b' ' && !b"\t\r\n".contains(&byte)
}

/// Refuses a file of another kind by its first [`HEAD`] bytes; fewer if it is shorter.
pub(super) fn check_head(name: &str, head: &[u8]) -> Result<()> {
    match MAGIC.iter().find(|(magic, ..)| head.starts_with(magic)) {
        Some((_, what, next)) => Err(Error::input(name, *what, *next)),
        None => Ok(()),
    }
}

/// Whether a text that begins with this cell, unquoted, may look like a file of another kind or like one with a
/// byte-order mark. The delimiter after the cell may be part of what it looks like.
pub(super) fn may_look_other(cell: &[u8], delimiter: u8) -> bool {
    let begins = |magic: &[u8]| match magic.strip_prefix(cell) {
        Some([next, ..]) => *next == delimiter,
        _ => cell.starts_with(magic),
    };
    let parquet =
        is_parquet(cell) || cell == b"PAR1" && is_control(delimiter) || begins(b"PAR1") && cell.len() < 4;
    parquet || MARKS.iter().copied().chain(MAGIC.iter().map(|(magic, ..)| *magic)).any(begins)
}

/// Refuses an input whose name is that of another kind of file. Not to be asked if the format was given.
///
/// # Errors
/// [`Error::Usage`].
pub fn check_input_name(path: &Path) -> Result<()> {
    let inside = compressed::inner(path);
    check_parquet(path, Format::of_input(path))?;
    match by_extension(inside.as_deref().unwrap_or(path)) {
        Some((what, next)) => Err(Error::usage(format!(
            "{} is {what}, judging by its name. {next}; or, if it is CSV, Parquet, Arrow, JSON lines or a list nevertheless, \
             name the format with `format`",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses a result whose name promises a format that is not written here. Not to be asked if the format was given.
///
/// # Errors
/// [`Error::Usage`].
pub fn check_output_name(path: &Path) -> Result<()> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    check_parquet(path, Format::of_input(path))?;
    let read_only = READ_ONLY.iter().find(|(extensions, _)| extensions.contains(&extension.as_str()));
    match by_extension(path).map(|(what, _)| what).or(read_only.map(|(_, what)| *what)) {
        Some(what) => Err(Error::usage(format!(
            "judging by its name, `output` {} asks for {what}, but veilset writes CSV, Parquet, Arrow and lists. \
             Give `output` another name, or choose the format with `output_format`",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses Parquet if this build has none.
fn check_parquet(path: &Path, format: Format) -> Result<()> {
    match format == Format::Parquet && !HAS_PARQUET {
        true => Err(Error::usage(format!(
            "{} is Parquet, judging by its name, and this build of veilset has no Parquet. Use CSV or Arrow, or a build \
             with the feature parquet",
            path.display()
        ))),
        false => Ok(()),
    }
}

fn by_extension(path: &Path) -> Option<(&'static str, &'static str)> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let known = EXTENSIONS.iter().find(|(extensions, ..)| extensions.contains(&extension.as_str()))?;
    Some((known.1, known.2))
}

#[cfg(test)]
#[path = "other_tests.rs"]
mod tests;
