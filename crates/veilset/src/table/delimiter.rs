//! The delimiter of CSV: given, by the name of the file, or by its first records. Where several divide these equally well, the
//! columns that are named tell which it is, and otherwise nobody but the user can.

use super::quotes::Quotes;
use super::read::Position;
use super::{Encoding, Format, ReadOptions, compressed, delimiter_name};
use crate::error::{Error, Result};
use crate::spelling::{DELIMITER, ENCODING};
use csv_core::ReadRecordResult;
use std::path::Path;

/// The delimiters that are guessed. The first is taken if none fits.
pub(super) const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// How many bytes at the start of a file are looked at for the delimiter, and
pub(super) const GUESS_BYTES: usize = 1 << 16;
/// how many records.
const GUESS_RECORDS: usize = 100;

/// The columns that are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// `None`: all.
    pub(crate) columns: Option<&'a [String]>,
    /// Those that the file must have, all the same. They tell its delimiter from others.
    pub(crate) named: &'a [String],
}

impl<'a> From<Option<&'a [String]>> for Wanted<'a> {
    fn from(columns: Option<&'a [String]>) -> Self {
        Wanted { columns, named: columns.unwrap_or_default() }
    }
}

/// The delimiter that was given or follows from the name, if it is one that can work. `None`: it is to be guessed.
pub(super) fn given(name: &str, options: &ReadOptions) -> Result<Option<u8>> {
    let Some(delimiter) = options.delimiter else {
        let (name, inside) = (Path::new(name), compressed::inner(Path::new(name)));
        let by_name = Format::delimiter_of(inside.as_deref().unwrap_or(name));
        return Ok(by_name.filter(|&delimiter| delimiter != DELIMITERS[0]));
    };
    if matches!(delimiter, b'"' | b'\r' | b'\n') {
        return Err(Error::usage(format!(
            "a quote or a line end cannot separate columns; give {DELIMITER} another character"
        )));
    }
    if delimiter >= 0x80 && options.encoding == Encoding::Utf8 {
        return Err(Error::usage(format!(
            "in UTF-8 the delimiter must be an ASCII character; give {DELIMITER} another one, or add {}",
            ENCODING.with("bytes")
        )));
    }
    Ok(Some(delimiter))
}

/// The delimiter of a file that begins like this: the only one that divides its first records into the same number of
/// fields each, at least two; of several, the only one that misuses no quotes, and makes columns of these names.
///
/// # Errors
/// [`Error::Input`] if several are left.
pub(super) fn guess(name: &str, head: &[u8], options: &ReadOptions, named: &[String]) -> Result<u8> {
    let mut fitting: Vec<Divided> = DELIMITERS.iter().filter_map(|&by| divided(head, by, options)).collect();
    keep(&mut fitting, |by| !by.misused);
    keep(&mut fitting, |by| named.iter().all(|name| by.columns.contains(name)));
    match &fitting[..] {
        [] => Ok(DELIMITERS[0]),
        [only] => Ok(only.delimiter),
        several => {
            let shown =
                |by: &Divided| format!("{} gives {} columns", delimiter_name(by.delimiter), by.columns.len());
            let all: Vec<String> = several.iter().map(shown).collect();
            let what = format!("more than one delimiter fits the first rows: {}", all.join(", "));
            Err(Error::input(name, what, format!("Give the right one with {DELIMITER}")))
        }
    }
}

/// Leaves only those of several that are so, if any is.
fn keep(fitting: &mut Vec<Divided>, so: impl Fn(&Divided) -> bool) {
    if fitting.len() > 1 && fitting.iter().any(&so) {
        fitting.retain(so);
    }
}

/// How a delimiter divides the first records.
struct Divided {
    delimiter: u8,
    /// The names of the columns that it makes, or their numbers without a header.
    columns: Vec<String>,
    /// Whether quotes are misused then.
    misused: bool,
}

/// `None` if the records have not as many fields each, or only one.
fn divided(head: &[u8], delimiter: u8, options: &ReadOptions) -> Option<Divided> {
    let mut parser = options.quoting.parser(delimiter);
    let mut quotes = (Quotes::new(delimiter, options.quoting), Position::start());
    let (mut rest, mut columns, mut misused): (_, Vec<String>, _) = (head, Vec::new(), false);
    let (mut out, mut ends) = (vec![0; head.len()], vec![0; head.len() + 1]);
    for _ in 0..GUESS_RECORDS {
        // The last record may be cut off.
        let (result, read, _, fields) = parser.read_record(rest, &mut out, &mut ends);
        quotes.0.begin();
        misused |= quotes.0.advance(&rest[..read], &mut quotes.1).is_err();
        rest = &rest[read..];
        if result != ReadRecordResult::Record && !columns.is_empty() {
            break;
        }
        if columns.is_empty() {
            let starts = std::iter::once(0).chain(ends[..fields].iter().copied());
            let cells = starts.zip(&ends[..fields]).map(|(start, &end)| &out[start..end]);
            columns = match options.headerless {
                true => (1..=fields).map(|n| n.to_string()).collect(),
                false => cells.map(|cell| String::from_utf8_lossy(cell).into()).collect(),
            };
        } else if columns.len() != fields {
            return None;
        }
        if result != ReadRecordResult::Record {
            break;
        }
    }
    (columns.len() > 1).then_some(Divided { delimiter, columns, misused })
}

#[cfg(test)]
#[path = "delimiter_tests.rs"]
mod tests;
