//! The keyed set of a table: which rows take part in an operation, and as what.

use super::profile::Seen;
use super::{Format, NoKey, Normalise, Profile, Table};
use crate::error::{Error, Result};
use crate::item::{ItemSet, Items, MAX_ITEM, encode_key};
use crate::spelling::{MAX_ROW, setting};

/// What happens to a row with an empty key, in which at least one key column is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmptyKeys {
    /// They are an error.
    #[default]
    Error,
    /// They are skipped and counted.
    Skip,
    /// They are like any other; two empty keys are equal.
    Keep,
}

/// What happens to a row whose key occurred before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// The first row with the key stands for all of them, and the others are counted.
    #[default]
    First,
    /// They are an error.
    Error,
    /// The first row stands for them, and [`super::values()`] adds up their values.
    Add,
    /// The first row stands for them in the run, and a result of matching rows has them all.
    All,
}

/// The distinct keys of a table, and the rows they came from.
#[derive(Debug)]
pub struct KeyedSet {
    /// The items, in the order of their rows.
    pub set: ItemSet,
    /// For each item of the set, its row in the table.
    pub rows: Vec<u32>,
    /// The number of rows whose key occurred before; the first row with the key stands for them.
    pub duplicates: u64,
    /// The number of rows skipped because their key is empty.
    pub skipped: u64,
    /// What of the keys may cost matches.
    pub profile: Profile,
    /// Each row whose key occurred before, in their order, and the position of that key in the set.
    repeated: Vec<(u32, u32)>,
    /// Whether the values of such rows count ([`Duplicates::Add`]).
    add: bool,
}

impl KeyedSet {
    /// The rows whose values are added to those of an earlier row, and the positions of their keys in the set.
    pub(super) fn added(&self) -> &[(u32, u32)] {
        if self.add { &self.repeated } else { &[] }
    }

    /// Each row whose key occurred before, in their order, and the position of that key in the set.
    pub fn repeated(&self) -> &[(u32, u32)] {
        &self.repeated
    }

    /// All rows with a key that takes part, in their order, and the positions of their keys in the set.
    pub fn all_rows(&self) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> =
            self.rows.iter().zip(0..).map(|(&row, position)| (row, position)).collect();
        all.extend(&self.repeated);
        all.sort_unstable();
        all
    }
}

/// The next step for a key in CSV that has a line end.
const SEVERAL_LINES: &str =
    concat!("Look for a missing quote or one too many; if the key is right, use ", setting!(multiline_keys));

/// Makes the set of a table from its key columns, at least one. Keys are normalised before they are compared or found
/// empty. Columns whose values have no exact text are refused.
///
/// While it runs, it takes up to 52 bytes for each row, and 24 for each that repeats a key, in addition to the items
/// ([`ItemSet::keep_first`]).
pub fn keyed_set(
    table: &Table,
    key: &[usize],
    normalise: Normalise,
    empty: EmptyKeys,
    duplicates: Duplicates,
) -> Result<KeyedSet> {
    normalise.check(table.encoding)?;
    for &column in key {
        let fit = table.columns[column].check_key();
        fit.map_err(|unfit| table.error(unfit.what, unfit.next).at_column(table.label(column)))?;
        if let Some(NoKey { file, place, why }) = &table.columns[column].no_key {
            return Err(Error::input(file, why.what.as_str(), why.next)
                .at(*place)
                .at_column(table.label(column)));
        }
    }
    let mut items = Items::new();
    let mut rows: Vec<u32> = Vec::with_capacity(table.rows());
    let (mut skipped, mut profile) = (0, Profile::default());
    let (mut item, mut text) = (Vec::new(), String::new());
    // What is no text is written in one way on both sides.
    let plain = !matches!(table.format, Format::Parquet | Format::Arrow);
    let texts: Vec<bool> = key.iter().map(|&column| plain || table.columns[column].is_text()).collect();
    let one_line = table.format == Format::Csv && !table.multiline_keys;
    table.each_row(0..table.rows(), key, |row, cells| {
        item.clear();
        let (mut blank, mut found) = (None, Seen::default());
        for ((&column, &is_text), cell) in key.iter().zip(&texts).zip(cells) {
            if one_line && cell.is_some_and(|cell| cell.iter().any(|byte| matches!(byte, b'\r' | b'\n'))) {
                return Err(table.error_at(row, column, "the key spans several lines", SEVERAL_LINES));
            }
            let cell = normalise.apply(cell.unwrap_or_default(), &mut text);
            if is_text {
                found.look(cell);
            }
            if cell.is_empty() {
                blank = blank.or(Some(column));
            }
            encode_key([cell], &mut item);
        }
        if let (EmptyKeys::Error | EmptyKeys::Skip, Some(column)) = (empty, blank) {
            if empty == EmptyKeys::Error {
                let next = concat!("Fill it in, or use ", setting!(empty_keys, "skip"), " (or keep)");
                return Err(table.error_at(row, column, "the key is empty", next));
            }
            skipped += 1;
            return Ok(());
        }
        if item.len() > MAX_ITEM {
            let what =
                format!("the key has {} bytes when encoded, but the maximum is {MAX_ITEM}", item.len());
            return Err(key_error(table, key, row, what, "Shorten it, or choose other key columns"));
        }
        items.push(&item);
        rows.push(row as u32);
        profile.count(found);
        Ok(())
    })?;

    let distinct = ItemSet::keep_first(items);
    if duplicates == Duplicates::Error
        && let Some(&(again, first)) = distinct.duplicates.first()
    {
        let place = table.whereabouts(rows[first as usize] as usize);
        return Err(again_error(table, key, rows[again as usize] as usize, &place));
    }
    let repeated = distinct.duplicates.iter().map(|&(again, first)| {
        let position = distinct.positions.partition_point(|&p| p < first);
        (rows[again as usize], position as u32)
    });
    let repeated: Vec<(u32, u32)> = repeated.collect();
    for (to, &from) in distinct.positions.iter().enumerate() {
        rows[to] = rows[from as usize];
    }
    rows.truncate(distinct.positions.len());
    rows.shrink_to_fit();
    let (duplicates, add) = (repeated.len() as u64, duplicates == Duplicates::Add);
    Ok(KeyedSet { rows, duplicates, set: distinct.set, skipped, profile, repeated, add })
}

/// For each item of the set, the cells of these columns of its row, encoded like a key but not normalised. A missing
/// value travels as empty text.
pub fn payloads(table: &Table, keyed: &KeyedSet, columns: &[usize]) -> Result<Items> {
    for &column in columns {
        let fit = table.columns[column].check_sent();
        fit.map_err(|unfit| table.error(unfit.what, unfit.next).at_column(table.label(column)))?;
    }
    let mut payloads = Items::new();
    let mut payload = Vec::new();
    table.each_row(keyed.rows.iter().map(|&row| row as usize), columns, |i, cells| {
        payload.clear();
        encode_key(cells.iter().map(|cell| cell.unwrap_or_default()), &mut payload);
        if payload.len() > MAX_ITEM {
            let what = format!(
                "the columns to be sent have {} bytes when encoded, but the maximum is {MAX_ITEM}",
                payload.len()
            );
            let row = keyed.rows[i] as usize;
            return Err(table.error_in(row, what, "Shorten them, or send fewer columns"));
        }
        payloads.push(&payload);
        Ok(())
    })?;
    payloads.shrink_to_fit();
    Ok(payloads)
}

/// Refuses rows that are longer, encoded, than the parties agreed, and says how long the longest is. A row is the key if it
/// travels, and the payload if there is one.
pub fn check_max_row(
    table: &Table,
    keyed: &KeyedSet,
    key_travels: bool,
    payloads: &Items,
    max_row: usize,
) -> Result<()> {
    let key = |i: usize| if key_travels { keyed.set.get(i).len() } else { 0 };
    let payload = |i: usize| if payloads.is_empty() { 0 } else { payloads.get(i).len() };
    let row = |i: usize| key(i) + payload(i);
    match (0..keyed.set.len()).find(|&i| row(i) > max_row) {
        None => Ok(()),
        Some(i) => {
            let what = match (key_travels, payloads.is_empty()) {
                (true, true) => "the key has",
                (false, _) => "the columns to be sent have",
                (true, false) => "the key and the columns to be sent have",
            };
            let what = format!("{what} {} bytes when encoded, but the agreed maximum is {max_row}", row(i));
            // Of equal ones the first.
            let longest = (i..keyed.set.len()).rev().max_by_key(|&i| row(i)).unwrap_or(i);
            let most = row(longest);
            let others = match most > row(i) {
                true => {
                    let place = table.whereabouts(keyed.rows[longest] as usize);
                    format!("Other rows have up to {most}, the first of them on {place}. ")
                }
                false => String::new(),
            };
            let next = match most <= MAX_ITEM {
                true => format!("{others}Raise {MAX_ROW} to {most} on both sides, or shorten the rows"),
                false => format!("{others}Shorten the rows: the largest {MAX_ROW} is {MAX_ITEM}"),
            };
            Err(table.error_in(keyed.rows[i] as usize, what, next))
        }
    }
}

/// The key of a row is that of an earlier one, which is at `place`.
pub(crate) fn again_error(table: &Table, key: &[usize], row: usize, place: &str) -> Error {
    let what = format!("the key is the same as on {place}");
    let next =
        concat!("Remove one of the rows, or use ", setting!(duplicates, "first"), " (with values also add)");
    key_error(table, key, row, what, next)
}

/// An error about the key of a row; it names the column if there is only one.
fn key_error(table: &Table, key: &[usize], row: usize, what: String, next: &str) -> Error {
    match key {
        [column] => table.error_at(row, *column, what, next),
        _ => table.error_in(row, what, next),
    }
}
