//! Reading files of shares, as `share` writes them.
//!
//! A further computation reads a party's own file with [`read_shares`] and computes on the shares. [`open_keys`] and
//! [`open_values`] add up the files of both parties. That shows all that matches, so it is for tests, and for those who may
//! see the result.

use super::{ReadOptions, Table};
use crate::error::{Error, Result};
use crate::spelling::command;
use std::path::Path;

/// The columns of a file of shares.
pub const SHARE_COLUMNS: [&str; 2] = ["row", "share"];

/// The shares in a file, one for each row, all of the same length. A share of a key is a row of bytes, one of a value
/// the 8 bytes of a number modulo 2^64, the most significant first.
///
/// # Errors
/// [`Error::Input`] for a file that is not one of shares, with the row and the column.
pub fn read_shares(path: &Path) -> Result<Vec<Vec<u8>>> {
    let table = Table::read(path, &ReadOptions::default(), Some(&SHARE_COLUMNS.map(String::from)))?;
    let columns = table.columns(&SHARE_COLUMNS.map(String::from))?;
    let next = concat!("Read the file that ", command!("share"), " wrote, as it is");
    let mut shares: Vec<Vec<u8>> = Vec::new();
    table.each_row(0..table.rows(), &columns, |row, cells| {
        let cell = |at: usize| cells[at].unwrap_or_default();
        if cell(0) != row.to_string().as_bytes() {
            return Err(table.error_at(row, columns[0], "the rows are not numbered from 0", next));
        }
        let share =
            bytes(cell(1)).filter(|share| shares.first().is_none_or(|first| first.len() == share.len()));
        shares.push(share.ok_or_else(|| {
            table.error_at(row, columns[1], "this is not a share of the same length as the first", next)
        })?);
        Ok(())
    })?;
    Ok(shares)
}

/// The bytes that are written in hexadecimal; at least one.
fn bytes(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |c: &u8| (*c as char).to_digit(16).map(|digit| digit as u8);
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?));
    bytes.collect::<Option<Vec<u8>>>().filter(|bytes| !bytes.is_empty())
}

/// For each row, the key that the shares of both parties add up to, encoded ([`crate::item::decode_key`]); `None` where
/// there is no match.
///
/// # Errors
/// [`Error::Usage`] if the two are not the shares of one run, or not shares of keys.
pub fn open_keys(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>> {
    let open = |ours: &Vec<u8>, theirs: &Vec<u8>| {
        let row: Vec<u8> = ours.iter().zip(theirs).map(|(a, b)| a ^ b).collect();
        if row.iter().all(|&byte| byte == 0) {
            return Some(None);
        }
        // The bytes of the length depend on the agreed maximum, and so on the width.
        let prefix = match row.len() {
            0..=0x100 => 1,
            0x101..=0x1_0001 => 2,
            _ => 3,
        };
        let (length, rest) = row.split_at_checked(prefix)?;
        let length = length.iter().rev().fold(0usize, |n, &byte| n << 8 | usize::from(byte));
        let (key, padding) = rest.split_at_checked(length)?;
        padding.iter().all(|&byte| byte == 0).then(|| Some(key.to_vec()))
    };
    paired(ours, theirs)?.map(|(a, b)| open(a, b).ok_or_else(foreign)).collect()
}

/// For each row, the value that the shares of both parties add up to, in units of the smallest decimal place; 0 where
/// there is no match.
///
/// # Errors
/// [`Error::Usage`] if the two are not the shares of one run, or not shares of values.
pub fn open_values(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Result<Vec<i64>> {
    let number = |share: &Vec<u8>| Some(u64::from_be_bytes(share.as_slice().try_into().ok()?));
    let open = |a, b| Some(number(a)?.wrapping_add(number(b)?) as i64);
    paired(ours, theirs)?.map(|(a, b)| open(a, b).ok_or_else(foreign)).collect()
}

/// The shares of both parties, row by row.
fn paired<'s>(
    ours: &'s [Vec<u8>],
    theirs: &'s [Vec<u8>],
) -> Result<impl Iterator<Item = (&'s Vec<u8>, &'s Vec<u8>)>> {
    let width = |shares: &[Vec<u8>]| shares.first().map(Vec::len);
    match ours.len() == theirs.len() && width(ours) == width(theirs) {
        true => Ok(ours.iter().zip(theirs)),
        false => Err(foreign()),
    }
}

fn foreign() -> Error {
    let what =
        "these shares do not add up: they are not those of both parties of one run, or not of this kind";
    Error::Usage(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_file_of_shares_is_refused_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_shares(&path).map_err(|e| e.to_string())
        };
        assert_eq!(read("row,share\n0,00ff\n1,A012\n"), Ok(vec![vec![0, 255], vec![0xa0, 0x12]]));
        assert_eq!(read("row,share\n"), Ok(vec![]));
        for (text, words) in [
            ("row,share\n1,00\n", "line 2, column \"row\""),
            ("row,share\n0,00\n1,0000\n", "line 3, column \"share\""),
            ("row,share\n0,0\n", "line 2, column \"share\""),
            ("row,share\n0,\n", "line 2, column \"share\""),
            ("row,share\n0,0g\n", "line 2, column \"share\""),
            ("row,part\n0,00\n", "no such column"),
        ] {
            let e = read(text).unwrap_err();
            assert!(e.contains(words), "{text}: {e}");
        }
    }

    #[test]
    fn shares_that_do_not_belong_together_are_refused() {
        let shares = |rows: &[&[u8]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        let key = shares(&[b"\x01a\0", b"\0\0\0"]);
        let zero = shares(&[b"\0\0\0", b"\0\0\0"]);
        assert_eq!(open_keys(&key, &zero).unwrap(), [Some(b"a".to_vec()), None]);
        for other in [
            shares(&[b"\0\0\0"]),
            shares(&[b"\0\0", b"\0\0"]),
            shares(&[b"\x05\0\0", b"\0\0\0"]),
            shares(&[b"\0\0\x01", b"\0\0\0"]),
        ] {
            assert!(matches!(open_keys(&key, &other), Err(Error::Usage(_))), "{other:?}");
        }
        assert!(matches!(open_values(&key, &zero), Err(Error::Usage(_))));
        let five = shares(&[&5u64.to_be_bytes()]);
        let minus = shares(&[&(-7i64).to_be_bytes()]);
        assert_eq!(open_values(&five, &minus).unwrap(), [-2]);
    }
}
