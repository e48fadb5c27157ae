//! Columns of text that grow while a file is read, cell by cell.

use super::Encoding;
use super::batches::{Batches, batch_of};
use crate::error::{Error, Result};
use arrow_array::builder::{ArrayBuilder, BinaryBuilder};
use arrow_array::{Array, ArrayRef, StringArray, new_null_array};
use arrow_schema::{FieldRef, Schema};
use std::sync::Arc;

/// The most bytes of a row: 1 GiB, so that the offsets of a batch fit 31 bits.
pub(super) const LONGEST_ROW: usize = 1 << 30;
/// The most rows of a batch; few in tests, so that what is small has several.
const ROWS: usize = if cfg!(test) { 7 } else { 1 << 16 };
/// A batch ends before it has so many rows if it has this many, and
const FEW: usize = 1 << 10;
/// this many bytes: 16 MiB.
const LARGE: usize = 16 << 20;

/// Text columns, of which the last rows are not in a batch yet.
pub(super) struct Builders {
    encoding: Encoding,
    columns: Vec<BinaryBuilder>,
    /// The rows that are not in a batch, and about as many bytes as they take.
    rows: usize,
    bytes: usize,
    /// The batches: their rows, and the columns that there were.
    done: Vec<(usize, Vec<ArrayRef>)>,
    /// The rows of all batches.
    before: usize,
}

impl Builders {
    pub(super) fn new(encoding: Encoding, columns: usize) -> Builders {
        let mut builders =
            Builders { encoding, columns: Vec::new(), rows: 0, bytes: 0, done: Vec::new(), before: 0 };
        (0..columns).for_each(|_| builders.add_column());
        builders
    }

    /// Adds a column, in which earlier rows have no value.
    pub(super) fn add_column(&mut self) {
        self.columns.push(BinaryBuilder::with_capacity(0, 0));
    }

    /// The number of rows that have ended.
    pub(super) fn rows(&self) -> usize {
        self.before + self.rows
    }

    /// Gives this row a cell in a column in which it has none yet. The cells of a row have at most [`LONGEST_ROW`] bytes, and in
    /// text they are UTF-8.
    pub(super) fn push(&mut self, column: usize, cell: &[u8]) {
        let builder = &mut self.columns[column];
        append_missing(builder, self.rows);
        builder.append_value(cell);
        self.bytes += cell.len();
    }

    /// Ends a row. It has no value in the columns in which it got no cell.
    pub(super) fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        let bytes = self.bytes + self.rows * self.columns.len() * size_of::<i32>();
        let large = self.rows >= FEW && bytes >= LARGE || self.bytes >= LONGEST_ROW;
        if large || self.rows == ROWS { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let end = |builder: &mut BinaryBuilder| {
            append_missing(builder, rows);
            let mut array = builder.finish();
            array.shrink_to_fit();
            Ok(match self.encoding {
                Encoding::Bytes => Arc::new(array) as ArrayRef,
                Encoding::Utf8 => Arc::new(StringArray::try_from_binary(array).map_err(unfit)?),
            })
        };
        let arrays = self.columns.iter_mut().map(end).collect::<Result<_>>()?;
        self.done.push((rows, arrays));
        self.before += rows;
        Ok(())
    }

    /// All rows, with columns of these fields.
    pub(super) fn finish(mut self, fields: impl IntoIterator<Item = FieldRef>) -> Result<Batches> {
        if self.rows > 0 {
            self.end_batch()?;
        }
        let fields: Vec<FieldRef> = fields.into_iter().collect();
        let schema = Arc::new(Schema::new(fields.clone()));
        let mut batches = Batches::new(schema.clone());
        for (rows, mut arrays) in self.done {
            let late = fields.iter().skip(arrays.len());
            arrays.extend(late.map(|field| new_null_array(field.data_type(), rows)));
            batches.push(batch_of(schema.clone(), arrays, rows)?);
        }
        Ok(batches)
    }
}

/// Appends nulls until there are so many rows.
fn append_missing(builder: &mut BinaryBuilder, rows: usize) {
    // Without any there is no bit for each row.
    if rows > builder.len() {
        builder.append_nulls(rows - builder.len());
    }
}

fn unfit(e: impl std::fmt::Display) -> Error {
    Error::bug(format!("cells that were read are no column: {e}"))
}
