//! Writing results as columns of values: Parquet, Arrow files, and Arrow batches in memory.

use super::batches::Batches;
use super::destination::unwritable;
use super::parquet;
use super::typed::{Buffer, field};
use super::types::Kind;
use super::write::OutColumn;
use super::{Encoding, Table};
use crate::error::{Error, Result};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use std::io::Write;
use std::sync::Arc;

/// A batch of rows is encoded as soon as it has this many rows, or
const BATCH_ROWS: usize = 1 << 12;
/// cells of this many bytes.
const BATCH_BYTES: usize = 8 << 20;

/// A result that is being written as columns. Those that came from columns of values keep their types; the others are
/// strings, or bytes with [`Encoding::Bytes`].
pub(super) struct ArrowSink<'a> {
    schema: SchemaRef,
    /// For each column, its place in the table if its values are taken from there.
    taken: Vec<Option<usize>>,
    buffers: Vec<Buffer>,
    rows: usize,
    bytes: usize,
    /// For each column, whether an empty cell means null.
    empty_is_null: Vec<bool>,
    to: Container<'a>,
}

/// Where the columns go.
enum Container<'a> {
    /// A Parquet file.
    Parquet(parquet::Writer<'a>),
    /// An Arrow file, not compressed.
    File(Box<FileWriter<&'a mut (dyn Write + Send)>>),
    /// Memory.
    Batches(&'a mut Batches),
}

impl<'a> ArrowSink<'a> {
    /// Values that Parquet has no type for are written in the next finer one.
    pub(super) fn parquet(
        mut columns: Vec<OutColumn>,
        encoding: Encoding,
        out: &'a mut (dyn Write + Send),
    ) -> Result<ArrowSink<'a>> {
        for column in &mut columns {
            if let Kind::Typed(field) = &mut column.kind
                && let Some(finer) = parquet::finer(field.data_type())
            {
                *field = field.as_ref().clone().with_data_type(finer).into();
                column.taken = None;
            }
        }
        let columns = &columns[..];
        let schema = schema_of(columns, encoding);
        let writer = parquet::Writer::new(out, &schema)?;
        Ok(ArrowSink::start(columns, schema, Container::Parquet(writer)))
    }

    /// The file has one dictionary for each column, and batches may have several: what refers to one is written as values.
    pub(super) fn file(
        mut columns: Vec<OutColumn>,
        encoding: Encoding,
        out: &'a mut (dyn Write + Send),
    ) -> Result<ArrowSink<'a>> {
        for column in &mut columns {
            if matches!(&column.kind, Kind::Typed(field) if matches!(field.data_type(), DataType::Dictionary(..)))
            {
                column.taken = None;
            }
        }
        let columns = &columns[..];
        let schema = schema_of(columns, encoding);
        let writer = FileWriter::try_new(out, &schema).map_err(unencoded)?;
        Ok(ArrowSink::start(columns, schema, Container::File(Box::new(writer))))
    }

    pub(super) fn memory(columns: &[OutColumn], encoding: Encoding, to: &'a mut Batches) -> ArrowSink<'a> {
        let schema = schema_of(columns, encoding);
        *to = Batches::new(schema.clone());
        ArrowSink::start(columns, schema, Container::Batches(to))
    }

    fn start(columns: &[OutColumn], schema: SchemaRef, to: Container<'a>) -> ArrowSink<'a> {
        ArrowSink {
            taken: columns.iter().map(|column| column.taken).collect(),
            buffers: buffers(&schema),
            rows: 0,
            bytes: 0,
            empty_is_null: columns.iter().map(|column| column.kind.empty_is_null()).collect(),
            schema,
            to,
        }
    }

    /// Appends a row.
    pub(super) fn row<'b>(&mut self, cells: impl Iterator<Item = Option<&'b [u8]>>) -> Result<()> {
        let columns = self.buffers.iter_mut().zip(&self.empty_is_null);
        for ((buffer, &empty_is_null), cell) in columns.zip(cells) {
            self.bytes += cell.map_or(0, <[u8]>::len);
            push(buffer, cell.filter(|cell| !(empty_is_null && cell.is_empty())))?;
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Appends rows of a table of batches. `theirs` gives the further cells of each, by its position in `rows`.
    pub(super) fn take<'b>(
        &mut self,
        table: &Table,
        batches: &Batches,
        rows: &[usize],
        theirs: &dyn Fn(usize) -> Vec<Option<&'b [u8]>>,
    ) -> Result<()> {
        for (number, some) in rows.chunks(BATCH_ROWS).enumerate() {
            self.take_some(table, batches, some, &|i| theirs(number * BATCH_ROWS + i))?;
        }
        Ok(())
    }

    fn take_some<'b>(
        &mut self,
        table: &Table,
        batches: &Batches,
        rows: &[usize],
        theirs: &dyn Fn(usize) -> Vec<Option<&'b [u8]>>,
    ) -> Result<()> {
        let ours = table.header().len();
        let taken: Option<Vec<Option<ArrayRef>>> = self
            .taken
            .iter()
            .map(|from| from.map_or(Some(None), |column| batches.take(column, rows).map(Some)))
            .collect();
        let Some(taken) = taken else {
            let (first, rest) = rows.split_at(rows.len() / 2);
            if first.is_empty() {
                return Err(Error::Bug("a row cannot be taken from a batch".into()));
            }
            self.take_some(table, batches, first, theirs)?;
            return self.take_some(table, batches, rest, &|i| theirs(first.len() + i));
        };
        // The cells of the other columns: ours as text, and then theirs.
        let as_text: Vec<usize> = (0..ours).filter(|&at| self.taken[at].is_none()).collect();
        let mut cursor = table.cursor(as_text);
        let mut written: Vec<Buffer> = self
            .schema
            .fields()
            .iter()
            .zip(&self.taken)
            .filter(|(_, taken)| taken.is_none())
            .map(|(field, _)| Buffer::new(field))
            .collect();
        for (i, &row) in rows.iter().enumerate() {
            let theirs = theirs(i);
            let cells = cursor.at(row).cells().chain(theirs);
            written.iter_mut().zip(cells).try_for_each(|(buffer, cell)| push(buffer, cell))?;
        }
        let mut written = written.into_iter().map(Buffer::finish);
        let columns: Option<Vec<ArrayRef>> =
            taken.into_iter().map(|taken| taken.or_else(|| written.next())).collect();
        self.write(columns.unwrap_or_default(), rows.len())
    }

    fn flush(&mut self) -> Result<()> {
        let columns =
            std::mem::replace(&mut self.buffers, buffers(&self.schema)).into_iter().map(Buffer::finish);
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        self.write(columns.collect(), rows)
    }

    fn write(&mut self, columns: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| Error::bug(format!("a batch of rows does not fit its schema: {e}")))?;
        match &mut self.to {
            Container::Parquet(writer) => writer.write(&batch)?,
            Container::File(writer) => writer.write(&batch).map_err(unencoded)?,
            Container::Batches(batches) => batches.push(batch),
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<()> {
        if self.rows > 0 {
            self.flush()?;
        }
        match self.to {
            Container::Parquet(writer) => writer.close(),
            Container::File(mut writer) => writer.finish().map_err(unencoded),
            Container::Batches(_) => Ok(()),
        }
    }
}

fn schema_of(columns: &[OutColumn], encoding: Encoding) -> SchemaRef {
    let fields = columns.iter().map(|column| match (&column.taken, &column.field) {
        (Some(_), Some(field)) => field.clone(),
        _ => field(column.name, &column.kind, encoding),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn buffers(schema: &Schema) -> Vec<Buffer> {
    schema.fields().iter().map(Buffer::new).collect()
}

fn push(buffer: &mut Buffer, cell: Option<&[u8]>) -> Result<()> {
    match buffer.push(cell) {
        true => Ok(()),
        false => Err(Error::Bug("a cell is not a value of its column's type".into())),
    }
}

fn unencoded(e: ArrowError) -> Error {
    match e {
        ArrowError::IoError(_, e) => unwritable("result", &e),
        e => Error::bug(format!("the result could not be encoded as Arrow: {e}")),
    }
}
