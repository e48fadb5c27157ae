//! Writing results as Parquet.

use super::Encoding;
use super::destination::unwritable;
use super::typed::{Buffer, field};
use super::write::OutColumn;
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::sync::Arc;

/// A batch of rows is encoded as soon as it has this many rows, or
const BATCH_ROWS: usize = 1 << 12;
/// cells of this many bytes.
const BATCH_BYTES: usize = 8 << 20;
/// A row group is written when it has about this many encoded bytes: 64 MiB.
const GROUP_BYTES: usize = 64 << 20;

/// A Parquet file that is being written: Snappy, row groups of at most 2^20 rows. Columns that came from Parquet
/// keep their types; the others are strings, or bytes with [`Encoding::Bytes`].
pub(super) struct ParquetSink<'a> {
    schema: SchemaRef,
    buffers: Vec<Buffer>,
    rows: usize,
    bytes: usize,
    /// For each column, whether an empty cell means null.
    empty_is_null: Vec<bool>,
    writer: ArrowWriter<&'a mut (dyn Write + Send)>,
}

impl<'a> ParquetSink<'a> {
    pub(super) fn start(
        columns: &[OutColumn],
        encoding: Encoding,
        out: &'a mut (dyn Write + Send),
    ) -> Result<ParquetSink<'a>> {
        let schema =
            Schema::new(columns.iter().map(|c| field(c.name, &c.kind, encoding)).collect::<Vec<_>>());
        let schema = Arc::new(schema);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(out, schema.clone(), options).map_err(failed)?;
        Ok(ParquetSink {
            buffers: schema.fields().iter().map(Buffer::new).collect(),
            rows: 0,
            bytes: 0,
            empty_is_null: columns.iter().map(|c| c.kind.empty_is_null()).collect(),
            schema,
            writer,
        })
    }

    pub(super) fn row<'b>(&mut self, cells: impl Iterator<Item = Option<&'b [u8]>>) -> Result<()> {
        let columns = self.buffers.iter_mut().zip(&self.empty_is_null);
        for ((buffer, &empty_is_null), cell) in columns.zip(cells) {
            self.bytes += cell.map_or(0, <[u8]>::len);
            if !buffer.push(cell.filter(|cell| !(empty_is_null && cell.is_empty()))) {
                return Err(Error::Bug("a cell is not a value of its column's type".into()));
            }
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let fresh: Vec<Buffer> = self.schema.fields().iter().map(Buffer::new).collect();
        let columns = std::mem::replace(&mut self.buffers, fresh).into_iter().map(Buffer::finish).collect();
        (self.rows, self.bytes) = (0, 0);
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|e| Error::Bug(format!("a batch of rows does not fit its schema: {e}")))?;
        self.writer.write(&batch).map_err(failed)?;
        if self.writer.in_progress_size() > GROUP_BYTES {
            self.writer.flush().map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<()> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer.close().map(|_| ()).map_err(failed)
    }
}

fn failed(e: ParquetError) -> Error {
    let e = match e {
        ParquetError::External(e) => match e.downcast::<io::Error>() {
            Ok(e) => return unwritable("result", &e),
            Err(e) => e.to_string(),
        },
        e => e.to_string(),
    };
    Error::Bug(format!("the result could not be encoded as Parquet: {e}"))
}
