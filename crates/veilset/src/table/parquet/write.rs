//! Writing Parquet: Snappy, row groups of at most 2^20 rows.

use super::super::batches::misfit;
use super::super::unwritable;
use crate::error::{Error, Result};
use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};

/// A row group is written when it has about this many encoded bytes: 64 MiB.
const GROUP_BYTES: usize = 64 << 20;

/// A file that is being written.
pub(in super::super) struct Writer<'a>(Box<ArrowWriter<&'a mut (dyn Write + Send)>>);

impl<'a> Writer<'a> {
    pub(in super::super) fn new(out: &'a mut (dyn Write + Send), schema: &SchemaRef) -> Result<Writer<'a>> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(out, schema.clone(), options).map_err(failed)?;
        Ok(Writer(Box::new(writer)))
    }

    pub(in super::super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(failed)?;
        match self.0.in_progress_size() > GROUP_BYTES {
            true => self.0.flush().map_err(failed),
            false => Ok(()),
        }
    }

    pub(in super::super) fn close(self) -> Result<()> {
        self.0.close().map(|_| ()).map_err(failed)
    }
}

/// The type in which values of this type are written, if Parquet does not have it: it has no seconds.
pub(in super::super) fn finer(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            Some(DataType::Timestamp(TimeUnit::Millisecond, zone.clone()))
        }
        DataType::Time32(TimeUnit::Second) => Some(DataType::Time32(TimeUnit::Millisecond)),
        _ => None,
    }
}

/// Whether values of this type would come back as mere numbers.
fn is_lost(data_type: &DataType) -> bool {
    let lost = |field: &Field| is_lost(field.data_type());
    match data_type {
        DataType::Duration(_) | DataType::Date64 => true,
        DataType::Dictionary(_, values) => is_lost(values),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::RunEndEncoded(_, field)
        | DataType::Map(field, _) => lost(field),
        DataType::Struct(fields) => fields.iter().any(|field| lost(field)),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| lost(field)),
        other => finer(other).is_some(),
    }
}

/// Whether Parquet can hold a column, in [`finer`] values if need be. What can be written is only known from trying.
pub(in super::super) fn holds(field: &Field) -> bool {
    if is_lost(field.data_type()) && finer(field.data_type()).is_none() {
        return false;
    }
    let write = || {
        let field = field.clone().with_nullable(true);
        let nothing = new_null_array(field.data_type(), 1);
        let batch = RecordBatch::try_new(Schema::new(vec![field]).into(), vec![nothing])?;
        let mut writer = ArrowWriter::try_new(io::sink(), batch.schema(), None)?;
        writer.write(&batch).and_then(|()| writer.close())
    };
    write().is_ok()
}

fn failed(e: ParquetError) -> Error {
    let e = match e {
        ParquetError::External(e) => match e.downcast::<io::Error>() {
            Ok(e) => return unwritable("result", &e),
            Err(e) => e.to_string(),
        },
        e => e.to_string(),
    };
    misfit("the result could not be encoded as Parquet", e)
}
