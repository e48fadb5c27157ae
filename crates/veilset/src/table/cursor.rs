//! The cells of a table as text, row by row.

use super::batches::Batches;
use super::store::Rows;
use super::types::{Render, render};
use super::{Store, Table};
use arrow_buffer::NullBuffer;
use std::ops::Range;

/// The cells of some columns in one row at a time. A cell is bytes, or `None` where there is no value.
pub(super) struct Cursor<'t> {
    table: &'t Table,
    /// The columns, in the order of the cells.
    columns: Vec<usize>,
    /// The cells of a row up to the last of these columns.
    needed: usize,
    cells: Cells<'t>,
}

enum Cells<'t> {
    /// They are in the table, all of a row in sequence.
    DiskSet { rows: &'t Rows, row: Vec<Option<&'t [u8]>> },
    /// They are rendered.
    Rendered { batches: &'t Batches, open: Option<Open<'t>>, text: Vec<u8>, cells: Vec<Option<Range<usize>>> },
}

/// The batch that the row is in.
struct Open<'t> {
    number: usize,
    /// For each column, how its values become text (`None`: not at all), and which are missing.
    columns: Vec<(Option<Render<'t>>, Option<NullBuffer>)>,
}

impl Table {
    /// A cursor over the cells of these columns.
    pub(super) fn cursor(&self, columns: impl IntoIterator<Item = usize>) -> Cursor<'_> {
        let cells = match &self.store {
            Store::Rows(rows) => Cells::DiskSet { rows, row: Vec::new() },
            Store::Batches(batches) => {
                Cells::Rendered { batches, open: None, text: Vec::new(), cells: Vec::new() }
            }
        };
        let columns: Vec<usize> = columns.into_iter().collect();
        let needed = columns.iter().max().map_or(0, |last| last + 1);
        Cursor { table: self, columns, needed, cells }
    }

    /// A cursor over all cells.
    pub(super) fn all_cells(&self) -> Cursor<'_> {
        self.cursor(0..self.header.len())
    }
}

impl Cursor<'_> {
    /// Goes to an existing row.
    pub(super) fn at(&mut self, at: usize) -> &Self {
        match &mut self.cells {
            Cells::DiskSet { rows, row } => {
                row.clear();
                row.extend(rows.row(at).take(self.needed));
            }
            Cells::Rendered { batches, open, text, cells } => {
                let (number, within) = batches.find(at);
                if open.as_ref().is_none_or(|open| open.number != number) {
                    let column = |&at: &usize| {
                        let array = batches.batches()[number].column(at).as_ref();
                        (render(&self.table.columns[at].kind, array), array.logical_nulls())
                    };
                    *open = Some(Open { number, columns: self.columns.iter().map(column).collect() });
                }
                text.clear();
                cells.clear();
                for (render, nulls) in open.iter().flat_map(|open| &open.columns) {
                    let start = text.len();
                    let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(within));
                    // Whether all values have a text was checked when the batch was taken in.
                    let rendered = !null && render.as_ref().is_some_and(|render| render(within, text));
                    cells.push(rendered.then_some(start..text.len()));
                }
            }
        }
        self
    }

    /// The cells of the row, in the order of the columns.
    pub(super) fn cells(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..self.columns.len()).map(|at| self.cell(at))
    }

    /// The cell in one of the columns.
    pub(super) fn cell(&self, at: usize) -> Option<&[u8]> {
        match &self.cells {
            Cells::DiskSet { row, .. } => row.get(*self.columns.get(at)?).copied().flatten(),
            Cells::Rendered { text, cells, .. } => cells.get(at)?.clone().map(|range| &text[range]),
        }
    }
}
