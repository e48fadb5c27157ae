//! Columns of text that grow while a file is read, cell by cell.

use super::Encoding;
use super::batches::{Batches, batch_of};
use super::types::text_field;
use crate::error::{Error, Result};
use arrow_array::{ArrayRef, BinaryArray, StringArray, new_null_array};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{FieldRef, Schema};
use std::sync::Arc;

/// The maximum number of bytes of a row: 1 GiB, so that the offsets in a batch fit in 31 bits.
pub(super) const LONGEST_ROW: usize = 1 << 30;
/// The maximum number of rows of a batch; small in tests, so that small tables have several batches.
const ROWS: usize = if cfg!(test) { 7 } else { 1 << 16 };
/// The minimum number of rows of a batch that ends because it is [`LARGE`].
const FEW: usize = 1 << 10;
/// The number of bytes at which a batch of at least [`FEW`] rows ends: 16 MiB.
const LARGE: usize = 16 << 20;

/// Text columns that grow row by row. The last rows are not in a batch yet.
pub(super) struct Builders {
    encoding: Encoding,
    columns: Vec<TextColumn>,
    /// The number of rows that are not in a batch yet, and the bytes of their cells.
    rows: usize,
    bytes: usize,
    /// The finished batches: the number of rows, and the columns that existed then.
    done: Vec<(usize, Vec<ArrayRef>)>,
    /// The number of rows in finished batches.
    before: usize,
}

impl Builders {
    pub(super) fn new(encoding: Encoding, columns: usize) -> Builders {
        let mut builders =
            Builders { encoding, columns: Vec::new(), rows: 0, bytes: 0, done: Vec::new(), before: 0 };
        (0..columns).for_each(|_| builders.add_column());
        builders
    }

    /// Adds a column. Earlier rows have no value in it.
    pub(super) fn add_column(&mut self) {
        self.columns.push(TextColumn::new());
    }

    /// The number of rows that have ended.
    pub(super) fn rows(&self) -> usize {
        self.before + self.rows
    }

    /// Sets the current row's cell in a column, where it must not have one yet. The cells of a row must have fewer than
    /// [`LONGEST_ROW`] bytes, and be UTF-8 in columns of text.
    pub(super) fn push(&mut self, column: usize, cell: &[u8]) {
        let column = &mut self.columns[column];
        column.pad(self.rows);
        column.bytes.extend_from_slice(cell);
        column.offsets.push(column.bytes.len() as i32);
        self.bytes += cell.len();
    }

    /// Ends the current row. It has no value in columns where no cell was set.
    pub(super) fn end_row(&mut self) -> Result<()> {
        self.rows += 1;
        let bytes = self.bytes + self.rows * self.columns.len() * size_of::<i32>();
        let large = self.rows >= FEW && bytes >= LARGE || self.bytes >= LONGEST_ROW;
        if large || self.rows == ROWS { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        // Columns without a value share an array.
        let mut nothing = None;
        let encoding = self.encoding;
        let array = |column: &mut TextColumn| match column.offsets.len() {
            1 => Ok(nothing.get_or_insert_with(|| without_values(encoding, rows)).clone()),
            _ => column.end_batch(rows, encoding),
        };
        let arrays = self.columns.iter_mut().map(array).collect::<Result<_>>()?;
        self.done.push((rows, arrays));
        self.before += rows;
        Ok(())
    }

    /// Returns all rows, with these fields for the columns.
    pub(super) fn finish(mut self, fields: impl IntoIterator<Item = FieldRef>) -> Result<Batches> {
        if self.rows > 0 {
            self.end_batch()?;
        }
        let fields: Vec<FieldRef> = fields.into_iter().collect();
        let schema = Arc::new(Schema::new(fields.clone()));
        let mut batches = Batches::new(schema.clone());
        for (rows, mut arrays) in self.done {
            if arrays.len() < fields.len() {
                arrays.resize(fields.len(), without_values(self.encoding, rows));
            }
            batches.push(batch_of(schema.clone(), arrays, rows)?);
        }
        Ok(batches)
    }
}

/// A column of so many rows without values.
fn without_values(encoding: Encoding, rows: usize) -> ArrayRef {
    new_null_array(text_field("", encoding).data_type(), rows)
}

/// The rows of a column that are not in a batch yet.
struct TextColumn {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    /// Whether each row has a value, up to the last one that has none.
    nulls: NullBufferBuilder,
    /// The offsets of the last batch.
    last: Option<OffsetBuffer<i32>>,
}

impl TextColumn {
    fn new() -> TextColumn {
        TextColumn { bytes: Vec::new(), offsets: vec![0], nulls: NullBufferBuilder::new(0), last: None }
    }

    /// Fills the column up to this row with rows that have no value.
    #[inline]
    fn pad(&mut self, row: usize) {
        let rows = self.offsets.len() - 1;
        if row > rows {
            self.nulls.append_n_non_nulls(rows - self.nulls.len());
            self.nulls.append_n_nulls(row - rows);
            self.offsets.resize(row + 1, self.bytes.len() as i32);
        }
    }

    /// Returns the column of a batch of this many rows, and begins the next batch.
    fn end_batch(&mut self, rows: usize, encoding: Encoding) -> Result<ArrayRef> {
        self.pad(rows);
        self.nulls.append_n_non_nulls(rows - self.nulls.len());
        let nulls = std::mem::replace(&mut self.nulls, NullBufferBuilder::new(0)).finish();
        // The next batch is probably about as large.
        let next = Vec::with_capacity(self.bytes.len() + self.bytes.len() / 8);
        let mut bytes = std::mem::replace(&mut self.bytes, next);
        bytes.shrink_to_fit();
        // Dates, identifiers and empty cells have the same lengths in all batches, which then share their offsets.
        let offsets = match self.last.take() {
            Some(last) if last[..] == self.offsets[..] => last,
            _ => OffsetBuffer::new(self.offsets.clone().into()),
        };
        self.last = Some(offsets.clone());
        self.offsets.truncate(1);
        let bytes = bytes.into();
        match encoding {
            Encoding::Bytes => {
                BinaryArray::try_new(offsets, bytes, nulls).map(|all| Arc::new(all) as ArrayRef)
            }
            Encoding::Utf8 => {
                StringArray::try_new(offsets, bytes, nulls).map(|all| Arc::new(all) as ArrayRef)
            }
        }
        .map_err(|e| Error::bug(format!("cells that were read are no column: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Column, Format, ReadOptions, Table};
    use super::*;
    use arrow_array::cast::AsArray;

    fn table(builders: Builders, columns: usize, options: &ReadOptions) -> Table {
        let names = (0..columns).map(|at| format!("c{at}"));
        let columns: Vec<_> = names.map(|name| Column::of_text(name.as_bytes(), options.encoding)).collect();
        let batches = builders.finish(columns.iter().map(|column| column.field.clone())).unwrap();
        Table::of("a.csv", Format::Csv, options, columns, batches)
    }

    #[test]
    fn rows_come_back_over_batches_at_every_length_and_columns_that_come_late_have_no_value_before() {
        let lengths = [0, 1, 12, 13, 127, 128, 16383, 16384, LARGE / 4, 0, 5];
        let cell = |row: usize, column: usize| {
            let there = column < 3 || row >= 30;
            (there && !(row + column).is_multiple_of(4))
                .then(|| vec![(row * 3 + column) as u8; lengths[(row + 5 * column) % lengths.len()]])
        };
        let mut builders = Builders::new(Encoding::Bytes, 3);
        for row in 0..60 {
            if row == 30 {
                builders.add_column();
            }
            // In any order.
            for column in [2, 0, 3, 1] {
                if let Some(cell) = cell(row, column) {
                    builders.push(column, &cell);
                }
            }
            builders.end_row().unwrap();
            assert_eq!(builders.rows(), row + 1);
        }
        let table = table(builders, 4, &ReadOptions { encoding: Encoding::Bytes, ..ReadOptions::default() });
        assert_eq!((table.rows(), table.batches.batches().len()), (60, 60_usize.div_ceil(ROWS)));
        let same = |row: usize, cells: &[Option<&[u8]>]| {
            assert!((0..4).all(|column| cells[column] == cell(row, column).as_deref()), "row {row}");
            Ok(())
        };
        table.each_row(0..60, &[0, 1, 2, 3], same).unwrap();
        let backwards = |i: usize, cells: &[Option<&[u8]>]| {
            assert!(cells[0] == cell(59 - i, 3).as_deref() && cells[1] == cell(59 - i, 0).as_deref());
            Ok(())
        };
        table.each_row((0..60).rev(), &[3, 0], backwards).unwrap();
    }

    #[test]
    fn what_is_the_same_in_several_columns_and_batches_is_stored_once() {
        // The lengths of cells; the fourth column has none until the last batch, and the last two never.
        let lengths: [fn(usize) -> usize; 4] = [|_| 3, |row| row % ROWS, |row| row, |row| row + 1];
        let there = |row, column| column != 3 || row >= 2 * ROWS;
        let mut builders = Builders::new(Encoding::Utf8, 5);
        for row in 0..3 * ROWS {
            if row == 2 * ROWS {
                builders.add_column();
            }
            for (column, length) in lengths.iter().enumerate().filter(|(column, _)| there(row, *column)) {
                builders.push(column, "x".repeat(length(row)).as_bytes());
            }
            builders.end_row().unwrap();
        }
        let table = table(builders, 6, &ReadOptions::default());
        let offsets = |batch: usize, column: usize| {
            table.batches.batches()[batch].column(column).as_string::<i32>().offsets().inner()
        };
        let same = |one: (usize, usize), other: (usize, usize)| {
            offsets(one.0, one.1).ptr_eq(offsets(other.0, other.1))
        };
        for (column, shared) in [true, true, false].into_iter().enumerate() {
            assert_eq!(
                [same((0, column), (1, column)), same((1, column), (2, column))],
                [shared; 2],
                "{column}"
            );
        }
        assert!(
            same((0, 3), (0, 4)) && same((1, 3), (1, 4)) && !same((2, 3), (2, 4)) && same((2, 4), (2, 5))
        );
        let each = |row: usize, cells: &[Option<&[u8]>]| {
            for (column, cell) in cells.iter().enumerate() {
                let length = lengths.get(column).filter(|_| there(row, column)).map(|length| length(row));
                assert_eq!(cell.map(<[u8]>::len), length, "row {row}, column {column}");
            }
            Ok(())
        };
        table.each_row(0..table.rows(), &[0, 1, 2, 3, 4, 5], each).unwrap();
    }

    #[test]
    fn a_table_of_no_columns_has_rows() {
        let mut builders = Builders::new(Encoding::Utf8, 0);
        (0..2 * ROWS + 1).for_each(|_| builders.end_row().unwrap());
        let table = table(builders, 0, &ReadOptions::default());
        let mut rows = 0;
        let count = |row: usize, cells: &[Option<&[u8]>]| {
            assert_eq!((row, cells.len()), (rows, 0));
            rows += 1;
            Ok(())
        };
        table.each_row(0..table.rows(), &[], count).unwrap();
        assert_eq!(rows, 2 * ROWS + 1);
    }
}
