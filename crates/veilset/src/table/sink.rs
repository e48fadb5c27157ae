//! The destinations of a result's rows: CSV, a list, Parquet, an Arrow file, or Arrow batches in memory.

use super::batches::{Batches, batch_of, compact};
use super::cells::{each_row, rows_at_a_time};
use super::destination::unwritable;
use super::format::no_list;
use super::typed::anew;
use super::write::{OutColumn, write_row};
use super::{Format, Table, To, parquet};
use crate::error::{Error, Result};
use crate::spelling::OUTPUT_FORMAT;
use arrow_array::ArrayRef;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use std::io::Write;
use std::sync::Arc;

/// The maximum number of rows that are written at a time to Parquet and Arrow.
const BATCH_ROWS: usize = 1 << 12;

/// Writes a result batch by batch.
pub(super) struct Sink<'a> {
    /// The schema of the result.
    pub(super) schema: SchemaRef,
    to: Container<'a>,
}

enum Container<'a> {
    Csv {
        delimiter: u8,
        for_spreadsheets: bool,
        out: &'a mut (dyn Write + Send),
    },
    List(&'a mut (dyn Write + Send)),
    Parquet(parquet::Writer<'a>),
    /// An Arrow file, not compressed.
    ArrowFile(Box<FileWriter<&'a mut (dyn Write + Send)>>),
    Memory(&'a mut Batches),
}

impl<'a> Sink<'a> {
    /// Starts a result of these columns. `header` states whether CSV gets a header.
    pub(super) fn start(
        mut columns: Vec<OutColumn>,
        table: &Table,
        header: bool,
        to: To<'a>,
    ) -> Result<Self> {
        let format = match &to {
            To::File(layout, _) => Some(layout.format),
            To::Batches(_) => None,
        };
        for OutColumn { field, .. } in &mut columns {
            match (format, field.data_type()) {
                // Values that Parquet has no type for are written in the next finer one.
                (Some(Format::Parquet), of) => {
                    if let Some(finer) = parquet::finer(of) {
                        *field = anew(&field.as_ref().clone().with_data_type(finer).into());
                    }
                }
                // An Arrow file has one dictionary for each column, and batches may have several.
                (Some(Format::Arrow), DataType::Dictionary(..)) => *field = anew(field),
                _ => {}
            }
        }
        let schema: SchemaRef =
            Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()));
        let (layout, out) = match to {
            To::File(layout, out) => (layout, out),
            To::Batches(to) => {
                *to = Batches::new(schema.clone());
                return Ok(Sink { schema, to: Container::Memory(to) });
            }
        };
        let to = match layout.format {
            Format::Csv => {
                let delimiter = layout.delimiter.unwrap_or(table.delimiter());
                let for_spreadsheets = layout.for_spreadsheets;
                if header {
                    let names = columns.iter().map(|column| column.raw);
                    write_row(names, delimiter, for_spreadsheets, out)
                        .map_err(|e| unwritable("result", &e))?;
                }
                Container::Csv { delimiter, for_spreadsheets, out }
            }
            Format::List if columns.len() == 1 => Container::List(out),
            Format::List => return Err(no_list(columns.len())),
            Format::JsonLines => {
                return Err(Error::usage(format!(
                    "JSON lines are read, and not written. Use {}",
                    OUTPUT_FORMAT.with("csv")
                )));
            }
            Format::Parquet => Container::Parquet(parquet::Writer::new(out, &schema)?),
            Format::Arrow => {
                Container::ArrowFile(Box::new(FileWriter::try_new(out, &schema).map_err(unencoded)?))
            }
        };
        Ok(Sink { schema, to })
    }

    /// The maximum number of rows for [`Sink::write`].
    pub(super) fn most_rows(&self) -> usize {
        match &self.to {
            Container::Csv { .. } | Container::List(_) => rows_at_a_time(self.schema.fields().len()),
            _ => BATCH_ROWS,
        }
    }

    /// Appends rows.
    pub(super) fn write(&mut self, columns: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let fields = self.schema.fields().iter();
        let failed = |e: std::io::Error| unwritable("result", &e);
        match &mut self.to {
            Container::Csv { delimiter, for_spreadsheets, out } => {
                let (delimiter, for_spreadsheets) = (*delimiter, *for_spreadsheets);
                each_row(fields.zip(&columns), rows, |_, cells| {
                    let cells = cells.iter().map(|cell| cell.unwrap_or_default());
                    write_row(cells, delimiter, for_spreadsheets, *out).map_err(failed)
                })
            }
            Container::List(out) => each_row(fields.zip(&columns), rows, |_, cells| {
                let item = cells.first().copied().flatten().unwrap_or_default();
                out.write_all(item).and_then(|()| out.write_all(b"\n")).map_err(failed)
            }),
            Container::Parquet(writer) => writer.write(&batch_of(self.schema.clone(), columns, rows)?),
            Container::ArrowFile(writer) => {
                let columns = columns.iter().map(compact).collect();
                writer.write(&batch_of(self.schema.clone(), columns, rows)?).map_err(unencoded)
            }
            Container::Memory(batches) => {
                let columns = columns.iter().map(compact).collect();
                batches.push(batch_of(self.schema.clone(), columns, rows)?);
                Ok(())
            }
        }
    }

    /// Ends the file.
    pub(super) fn end(self) -> Result<()> {
        match self.to {
            Container::Csv { .. } | Container::List(_) | Container::Memory(_) => Ok(()),
            Container::Parquet(writer) => writer.close(),
            Container::ArrowFile(mut writer) => writer.finish().map_err(unencoded),
        }
    }
}

fn unencoded(e: ArrowError) -> Error {
    match e {
        ArrowError::IoError(_, e) => unwritable("result", &e),
        e => Error::bug(format!("the result could not be encoded as Arrow: {e}")),
    }
}
