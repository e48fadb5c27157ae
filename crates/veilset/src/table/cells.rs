//! The cells of a table as text, for keys, payloads, values and results that are text.

use super::Table;
use super::types::{Texts, texts};
use crate::error::Result;
use arrow_array::ArrayRef;
use arrow_schema::FieldRef;

/// The maximum number of rows whose cells are text at a time.
const MOST_ROWS: usize = 1 << 12;
/// The maximum number of cells that are text at a time, unless one row has more.
const MOST_CELLS: usize = 1 << 20;

/// Returns the number of rows of this many columns that are text at a time.
pub(super) fn rows_at_a_time(columns: usize) -> usize {
    (MOST_CELLS / columns.max(1)).clamp(1, MOST_ROWS)
}

impl Table {
    /// Calls `each` for each of these rows, which must exist. It gets the row's place in the list, and its cells in these
    /// columns: bytes, or `None` where there is no value.
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

/// Calls `each` for each row of these columns, with the row's number and its cells.
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
