//! The cells of a table as text: of keys, of payloads, of values and of results that are text.

use super::Table;
use super::types::{Texts, texts};
use crate::error::Result;
use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

/// The most rows whose cells are text at a time, ...
const MOST_ROWS: usize = 1 << 12;
/// ... and the most cells, if a row has less.
const MOST_CELLS: usize = 1 << 20;

/// How many rows of so many columns are text at a time.
pub(super) fn rows_at_a_time(columns: usize) -> usize {
    (MOST_CELLS / columns.max(1)).clamp(1, MOST_ROWS)
}

impl Table {
    /// Calls `each` for each of these rows, which exist: with its place among them, and its cells in these columns, which are
    /// bytes, or `None` where there is no value.
    pub(super) fn each_row(
        &self,
        rows: impl IntoIterator<Item = usize>,
        columns: &[usize],
        mut each: impl FnMut(usize, &[Option<&[u8]>]) -> Result<()>,
    ) -> Result<()> {
        self.batches.take(rows, columns, rows_at_a_time(columns.len()), &mut |before, rows, arrays| {
            let fields = columns.iter().map(|&column| &self.columns[column].field);
            each_row(fields.zip(&arrays), rows, |row, cells| each(before + row, cells))
        })
    }
}

/// Calls `each` for each of so many rows of these columns, with its cells.
pub(super) fn each_row<'c>(
    columns: impl Iterator<Item = (&'c FieldRef, &'c ArrayRef)>,
    rows: usize,
    mut each: impl FnMut(usize, &[Option<&[u8]>]) -> Result<()>,
) -> Result<()> {
    let texts: Vec<Texts> = columns.map(|(field, array)| texts(field, array)).collect();
    let mut cells = Vec::with_capacity(texts.len());
    for row in 0..rows {
        cells.clear();
        cells.extend(texts.iter().map(|texts| texts.cell(row)));
        each(row, &cells)?;
    }
    Ok(())
}
