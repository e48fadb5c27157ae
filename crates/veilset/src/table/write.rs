//! Writing results as CSV, quoted as in RFC 4180 where needed, with LF line ends.

use super::{Encoding, KeyedSet, Table, output};
use crate::error::{Error, Result};
use crate::item::{Items, decode_key};
use std::io::{self, Write};

/// Writes the header and the given rows of a table, in the order given.
pub fn write_rows(table: &Table, rows: impl Iterator<Item = usize>, out: &mut dyn Write) -> Result<()> {
    write_table(table, rows, out).map_err(|e| output::unwritable("result", &e))
}

/// Writes a union: the header and our rows, then a row for each item that is new to us, with its columns
/// under our key columns and the other cells empty. The new rows are sorted, for they come in a random order
/// and two runs should give the same file.
///
/// All new items are checked before the first byte is written; one that is not the encoding of as many
/// columns, of text if ours is text, is the peer's fault.
pub fn write_union(
    table: &Table,
    key: &[usize],
    keyed: &KeyedSet,
    new_items: &Items,
    out: &mut dyn Write,
) -> Result<()> {
    let text = |cells: &[&[u8]]| cells.iter().all(|cell| std::str::from_utf8(cell).is_ok());
    let good = |item: &[u8]| {
        decode_key(item, key.len()).is_some_and(|cells| table.encoding == Encoding::Bytes || text(&cells))
    };
    if !new_items.iter().all(good) {
        return Err(Error::misbehaves_unseen(format!(
            "an item it sent is not made of {} columns of what was agreed",
            key.len()
        )));
    }
    let mut sorted: Vec<&[u8]> = new_items.iter().collect();
    sorted.sort_unstable();
    // For each column of the table, its place in the key.
    let places: Vec<Option<usize>> =
        (0..table.header().len()).map(|column| key.iter().position(|&k| k == column)).collect();
    write_table(table, keyed.rows.iter().map(|&row| row as usize), out)
        .and_then(|()| {
            sorted.iter().filter_map(|item| decode_key(item, key.len())).try_for_each(|cells| {
                let row = places.iter().map(|place| place.map_or(&[][..], |p| cells[p]));
                write_row(row, table.delimiter(), out)
            })
        })
        .map_err(|e| output::unwritable("result", &e))
}

fn write_table(table: &Table, rows: impl Iterator<Item = usize>, out: &mut dyn Write) -> io::Result<()> {
    let columns = 0..table.header().len();
    write_row(columns.clone().map(|column| table.raw_name(column)), table.delimiter(), out)?;
    for row in rows {
        write_row(columns.clone().map(|column| table.cell(row, column)), table.delimiter(), out)?;
    }
    Ok(())
}

fn write_row<'a>(
    cells: impl ExactSizeIterator<Item = &'a [u8]>,
    delimiter: u8,
    out: &mut dyn Write,
) -> io::Result<()> {
    let only = cells.len() == 1;
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.write_all(&[delimiter])?;
        }
        // Without quotes a blank line would be no row, and what looks like a byte-order mark at the start of
        // the file would not be part of the first name.
        let special = (only && cell.is_empty()) || (i == 0 && may_begin_a_mark(cell, delimiter));
        if special || cell.iter().any(|&b| b == delimiter || matches!(b, b'"' | b'\r' | b'\n')) {
            write_quoted(cell, out)?;
        } else {
            out.write_all(cell)?;
        }
    }
    out.write_all(b"\n")
}

/// The byte-order marks of UTF-8 and UTF-16.
const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

/// Whether a row that begins with this cell may begin with a byte-order mark. A delimiter that is not ASCII
/// may be a part of one.
fn may_begin_a_mark(cell: &[u8], delimiter: u8) -> bool {
    match delimiter.is_ascii() {
        true => MARKS.iter().any(|mark| cell.starts_with(mark)),
        false => cell.first().is_none_or(|b| !b.is_ascii()),
    }
}

/// Writes a cell in quotes, each quote in it twice.
fn write_quoted(cell: &[u8], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    for part in cell.split_inclusive(|&b| b == b'"') {
        out.write_all(part)?;
        if part.ends_with(b"\"") {
            out.write_all(b"\"")?;
        }
    }
    out.write_all(b"\"")
}
