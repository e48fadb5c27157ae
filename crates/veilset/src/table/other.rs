//! Files of formats that are not supported: recognised by their first bytes or their names, with the next step.

use super::compressed;
use super::format::{Encoding, Format, HAS_PARQUET};
use crate::error::{Error, Place, Result};
use crate::spelling::{FORMAT, OUTPUT, OUTPUT_FORMAT, setting};
use std::path::Path;

/// How many bytes at the start of a file are looked at.
pub(super) const HEAD: usize = 512;

const SHEET: &str = "Export the sheet as CSV (UTF-8)";
const TABLE: &str = "Export the table as CSV (UTF-8)";
const CONVERT: &str = "Convert it to Parquet or CSV";
const STATISTICS: &str = "Export the data as CSV (UTF-8) in that program, or convert it to Parquet";
const DECRYPT: &str = "Decrypt it first";
/// For what is compressed again, or is Parquet, which is not looked for behind another name.
const DECOMPRESS: &str =
    "Decompress it once; Parquet that is compressed as a whole needs a name that ends in .gz or .zst";
const UNPACK: &str = "Unpack it first";

/// What a file is, and the next step.
type Known = (&'static str, &'static str);

const ZIP: Known = (
    "this is a zip file: a workbook (xlsx, ods) or an archive",
    "Export the sheet as CSV (UTF-8), or unzip the file",
);
const FEATHER: Known = (
    "this is a Feather file of version 1, which veilset does not read",
    "Write it as version 2, or as Parquet",
);
const STATA: Known = ("this is a Stata file", STATISTICS);
const SPSS: Known = ("this is an SPSS file", STATISTICS);
const UTF16: Known = ("the file is in UTF-16, not UTF-8", UTF8);
const UTF32: Known = ("the file is in UTF-32, not UTF-8", UTF8);
const UTF8: &str = "Save it as UTF-8 (in a spreadsheet program: \"CSV UTF-8\")";
const R: Known = ("this is an R data file", STATISTICS);
const LZ4: Known = ("this is compressed by LZ4", "Decompress it first (unlz4)");

/// The first bytes of files of other kinds.
const MAGIC: [(&[u8], Known); 30] = [
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        (
            "this is an Excel workbook (xls), or one with a password",
            "Export the sheet as CSV (UTF-8), without a password",
        ),
    ),
    (b"SQLite format 3\0", ("this is an SQLite database", TABLE)),
    (b"BZh91AY&SY", ("this is compressed by bzip2", "Decompress it first (bunzip2)")),
    (b"\xfd7zXZ\0", ("this is compressed by xz", "Decompress it first (unxz)")),
    (b"\x04\x22\x4d\x18", LZ4),
    (b"\x02\x21\x4c\x18", LZ4),
    (
        b"\xff\x06\0\0sNaPpY",
        ("this is compressed by Snappy", "Decompress it first, or compress it by gzip or Zstandard"),
    ),
    (b"\x1f\x9d", ("this is compressed by compress (.Z)", "Decompress it first (uncompress)")),
    (b"\x1f\x8b", ("this is compressed by gzip", DECOMPRESS)),
    (b"\x28\xb5\x2f\xfd", ("this is compressed by Zstandard", DECOMPRESS)),
    (b"7z\xbc\xaf\x27\x1c", ("this is a 7z archive", UNPACK)),
    (b"Rar!\x1a\x07", ("this is a RAR archive", UNPACK)),
    (b"%PDF-", ("this is a PDF document", TABLE)),
    (b"ARROW1\0\0", ("this is an Arrow file", concat!("Read it with ", setting!(format, "arrow")))),
    (b"Obj\x01", ("this is an Avro file", CONVERT)),
    (b"\x89HDF\r\n\x1a\n", ("this is an HDF5 file", CONVERT)),
    (b"\x93NUMPY", ("this is a NumPy array", CONVERT)),
    (b"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60", ("this is a SAS data set", STATISTICS)),
    (b"HEADER RECORD*******", ("this is a SAS transport file", STATISTICS)),
    (b"$FL2@(#)", SPSS),
    (b"$FL3@(#)", SPSS),
    (b"<stata_dta>", STATA),
    (b"RDX2\nX\n", R),
    (b"RDX3\nX\n", R),
    (b"X\n\0\0\0", R),
    (b"\0\x01\0\0Standard ", ("this is an Access database", TABLE)),
    (b"Salted__", ("this is encrypted by OpenSSL", DECRYPT)),
    (b"age-encryption.org/", ("this is encrypted by age", DECRYPT)),
];

/// Those that are letters, which a text may begin with too: a byte that no text has comes after them.
const LETTERS: [(&[u8], Known); 3] = [
    (b"FEA1", FEATHER),
    (b"PARE", ("this is an encrypted Parquet file", "Write it without encryption")),
    (
        b"PGDMP",
        ("this is a dump of a PostgreSQL database", "Export the table as CSV (\\copy ... csv header)"),
    ),
];

/// How texts of other kinds begin, in lower case.
const TEXTS: [(&[u8], Known); 5] = [
    (b"<!doctype", HTML),
    (b"<html", HTML),
    (b"<?xml", ("this is XML, not a table", TABLE)),
    (b"-----begin ", ("this is a key, or an encrypted or signed file (PEM, PGP)", DECRYPT)),
    (b"{\\rtf", ("this is a text document (RTF)", TABLE)),
];
const HTML: Known = (
    "this is a web page (HTML), not a table",
    "Download the table itself: the link may lead to a page around it, or to a login",
);

/// The byte-order marks of UTF-8, UTF-16 and UTF-32.
const MARKS: [&[u8]; 4] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"];

/// Extensions of other kinds of files, what such a file is, and the next step for an input.
const EXTENSIONS: [(&[&str], &str, &str); 10] = [
    (&["xlsx", "xlsm", "xlsb", "xls", "ods", "numbers"], "a spreadsheet", SHEET),
    (&["json", "geojson"], "JSON", CONVERT),
    (
        &["tgz", "bz2", "xz", "lzma", "lz4", "lzo", "sz", "snappy", "z", "zip", "7z", "rar", "tar"],
        "a compressed file or an archive",
        UNPACK,
    ),
    (
        &["db", "db3", "sqlite", "sqlite3", "duckdb", "mdb", "accdb", "dbf", "sql", "dump"],
        "a database",
        TABLE,
    ),
    (&["avro", "orc"], "an Avro or ORC file", CONVERT),
    (
        &["sav", "zsav", "por", "dta", "sas7bdat", "xpt", "rds", "rda", "rdata"],
        "a file of a statistics program",
        CONVERT,
    ),
    (&["h5", "hdf5", "nc", "mat", "npy", "npz", "pkl", "pickle"], "a file of arrays or objects", CONVERT),
    (&["gpg", "pgp", "asc", "age", "pem", "p7m", "enc"], "an encrypted file or a key", DECRYPT),
    (&["pdf", "doc", "docx", "odt", "rtf", "htm", "html", "xml", "yaml", "yml"], "a document", TABLE),
    (&["delta", "iceberg"], "a table of many files", "Name the Parquet files in it"),
];

/// Extensions of files that are read and not written, and what such a file is.
const READ_ONLY: [(&[&str], &str); 2] =
    [(&["jsonl", "ndjson"], "JSON lines"), (&["gz", "zst", "zstd"], "a compressed file")];

/// Whether a file begins like Parquet: after the magic number comes a byte that no text has.
pub(super) fn is_parquet(head: &[u8]) -> bool {
    begins_binary(b"PAR1", head)
}

fn begins_binary(magic: &[u8], head: &[u8]) -> bool {
    head.strip_prefix(magic).is_some_and(|rest| rest.first().is_some_and(|&byte| is_control(byte)))
}

fn is_control(byte: u8) -> bool {
    byte < b' ' && !b"\t\r\n".contains(&byte)
}

/// What a file is that begins like this, in its first [`HEAD`] bytes or all that it has, if it is of another kind than this
/// format.
fn other(head: &[u8], format: Format) -> Option<Known> {
    let text = head.strip_prefix(MARKS[0]).unwrap_or(head);
    let text = &text[text.iter().take_while(|byte| b"\r\n".contains(byte)).count()..];
    let begins =
        |magic: &[u8]| text.get(..magic.len()).is_some_and(|start| start.eq_ignore_ascii_case(magic));
    match format {
        _ if is_parquet(head) && format != Format::Parquet => {
            Some(("this is a Parquet file", concat!("Read it with ", setting!(format, "parquet"))))
        }
        Format::Csv if is_json(text) => Some((
            "this is JSON",
            concat!(
                "If it has an object on each line, read it with ",
                setting!(format, "jsonl"),
                "; if it is one value, convert it to CSV or Parquet; if it is CSV after all, use ",
                setting!(format, "csv")
            ),
        )),
        Format::JsonLines if text.starts_with(b"[") => Some((
            "this is one JSON array, not JSON lines",
            "Write an object on each line, for instance with jq -c '.[]'",
        )),
        _ => {
            let magic = MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
            let magic = magic.or_else(|| LETTERS.iter().find(|(letters, _)| begins_binary(letters, head)));
            magic.or_else(|| TEXTS.iter().find(|(text, _)| begins(text))).map(|(_, known)| *known)
        }
    }
}

/// What a file is that is no text, by what stands at a place in it, or at its beginning with a zero byte.
fn binary(head: &[u8]) -> Option<Known> {
    let orc = head.strip_prefix(b"ORC").is_some_and(|rest| rest.iter().take(3).any(|&byte| byte == 0));
    match head {
        _ if orc => Some(("this is an ORC file", CONVERT)),
        // Before version 13: its version, its byte order and its kind.
        [0x69..=0x73, 1 | 2, 1, 0, ..] => Some(STATA),
        _ if head.get(8..12) == Some(b"DUCK") && head.contains(&0) => {
            Some(("this is a DuckDB database", TABLE))
        }
        _ if head.get(257..262) == Some(b"ustar") && head.contains(&0) => {
            Some(("this is a tar archive", UNPACK))
        }
        _ => None,
    }
}

/// Whether a text begins like JSON: an object, or a list of objects or of strings. No CSV begins so, because it quotes a cell with
/// a quote in it.
fn is_json(text: &[u8]) -> bool {
    let inside = |text: &[u8]| text.get(1..).unwrap_or_default().trim_ascii_start().first().copied();
    match text.first() {
        Some(b'{') => matches!(inside(text), Some(b'"' | b'}')),
        Some(b'[') => matches!(inside(text), Some(b'{' | b'"')),
        _ => false,
    }
}

/// The same for a text that is said to be of this format: it is, unless it has bytes that no text has.
pub(super) fn check_said(name: &str, head: &[u8], format: Format) -> Result<()> {
    match head.iter().any(|&byte| is_control(byte)).then(|| other(head, format)).flatten() {
        Some((what, next)) => Err(Error::input(name, format!("{what}, but the options say {format}"), next)),
        None => Ok(()),
    }
}

/// Refuses a file of another kind than this format by its first [`HEAD`] bytes; fewer if it is shorter.
pub(super) fn check_head(name: &str, head: &[u8], format: Format) -> Result<()> {
    let text = matches!(format, Format::Csv | Format::List | Format::JsonLines);
    match other(head, format).or_else(|| binary(head).filter(|_| !text)) {
        Some((what, next)) => Err(Error::input(name, what, next)),
        None => Ok(()),
    }
}

/// Refuses what is text of another encoding than UTF-8, or no text, by its first [`HEAD`] bytes; fewer if it is shorter.
pub(super) fn check_utf8(name: &str, head: &[u8], encoding: Encoding) -> Result<()> {
    let head = &head[..head.len().min(HEAD)];
    // Whether just these of each few bytes are zeros, as in words in the Latin alphabet.
    let zeros = |of: usize, zeros: &[usize]| {
        let units = head.chunks_exact(of);
        let fits = |unit: &&[u8]| unit.iter().enumerate().all(|(i, &byte)| (byte == 0) == zeros.contains(&i));
        units.len() > 1 && units.clone().filter(fits).count() * 10 >= units.len() * 9
    };
    let (what, next) = match head {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => UTF32,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => UTF16,
        _ if encoding != Encoding::Utf8 => return Ok(()),
        _ if zeros(4, &[1, 2, 3]) || zeros(4, &[0, 1, 2]) => UTF32,
        _ if zeros(2, &[1]) || zeros(2, &[0]) => UTF16,
        _ if head.len() >= 16
            && head.iter().all(|&byte| is_ebcdic(byte))
            // The last letter may be cut off.
            && std::str::from_utf8(head).is_err_and(|e| e.error_len().is_some()) =>
        {
            (
                "the file looks like EBCDIC, not UTF-8",
                "Convert it to UTF-8, for instance with iconv -f CP037 -t UTF-8",
            )
        }
        _ => match binary(head) {
            Some((what, next)) => return Err(Error::input(name, what, next)),
            None => return Ok(()),
        },
    };
    Err(Error::input(name, what, next).at(Place::Line(1)))
}

/// Whether letters, digits, line ends and what often separates them have this byte in EBCDIC.
fn is_ebcdic(byte: u8) -> bool {
    let signs =
        matches!(byte, 0x0d | 0x15 | 0x25 | 0x40 | 0x4b..=0x50 | 0x5a..=0x61 | 0x6b..=0x6f | 0x7a..=0x7f);
    let small = matches!(byte, 0x81..=0x89 | 0x91..=0x99 | 0xa2..=0xa9);
    signs || small || matches!(byte, 0xc1..=0xc9 | 0xd1..=0xd9 | 0xe2..=0xe9 | 0xf0..=0xf9)
}

/// Whether a text that begins with this cell, unquoted, may look like a file of another kind or like one with a
/// byte-order mark. The delimiter or line end after the cell may be part of what it looks like.
pub(super) fn may_look_other(cell: &[u8], delimiter: u8) -> bool {
    let begins = |magic: &[u8]| match magic.split_at_checked(cell.len()) {
        Some((start, [next, ..])) => {
            // After a cell that is no ordinary name, the line may end.
            let at_end = cell.len() >= 4 && *next == b'\n';
            start.eq_ignore_ascii_case(cell) && (at_end || next.eq_ignore_ascii_case(&delimiter))
        }
        _ => cell.get(..magic.len()).is_some_and(|start| start.eq_ignore_ascii_case(magic)),
    };
    let binary = |magic: &[u8]| {
        begins_binary(magic, cell)
            || cell == magic && is_control(delimiter)
            || begins(magic) && cell.len() < magic.len()
    };
    // Its zero byte may stand in the row below.
    let orc = cell.starts_with(b"ORC") && cell.len() < 5;
    let json = matches!(cell.first().unwrap_or(&delimiter), b'{' | b'[');
    let magic = MAGIC.iter().chain(&TEXTS).map(|(magic, _)| *magic);
    // What tells spreadsheet programs the delimiter.
    let hint = cell.len() <= 5 && begins(b"sep=");
    let letters = LETTERS.iter().any(|(letters, _)| binary(letters));
    orc || json || hint || letters || binary(b"PAR1") || MARKS.into_iter().chain(magic).any(begins)
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
            "{} is {what}, judging by its name. {next}. If it is in fact CSV, Parquet, Arrow, JSON lines or a list, name the \
             format with {FORMAT}",
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
            "judging by its name, {OUTPUT} {} asks for {what}, but veilset writes CSV, Parquet, Arrow and lists. \
             Give {OUTPUT} another name, or choose the format with {OUTPUT_FORMAT}",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses Parquet if this build has none.
fn check_parquet(path: &Path, format: Format) -> Result<()> {
    match format == Format::Parquet && !HAS_PARQUET {
        true => Err(Error::usage(format!(
            "{} is Parquet, judging by its name, but this build of veilset does not support Parquet. Use CSV or Arrow, or a build \
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
