//! Reading Parquet into a [`Table`].
//!
//! A file is read in batches of rows, and only its needed columns. Its content is not trusted. Sizes are checked
//! first ([`guard`]), a panic of the decoder means a damaged file, and cells that take far more room than the file
//! are refused.

use super::super::batches::{Batches, batch_of, compact};
use super::super::compressed::{EXPANSION, FREE};
use super::super::pieces::Pieces;
use super::super::read::unreadable;
use super::super::types::{check_text, first_without_text};
use super::super::{Column, Format, Found, Head, MAX_ROWS, ReadOptions, Table, Unread, other, shorten};
use super::guard;
use crate::error::{Error, Place, Result};
use crate::guarded::guarded;
use crate::spelling::setting;
use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampNanosecondType, TimestampSecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema};
use parquet::basic::{Compression, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::ChunkReader;
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

/// Rows decoded at a time.
const BATCH: usize = 1 << 12;
/// The largest file that is read from a stream, and so into memory: 4 GiB.
const MAX_STREAM: u64 = 4 << 30;
/// The magic number at the end, and the footer's length before it.
const TAIL: u64 = 8;

/// Reads a stream into memory, because the footer is at the end.
pub(in super::super) fn read_stream(
    name: &str,
    reader: impl Read,
    options: &ReadOptions,
    columns: Option<&[String]>,
) -> Result<Table> {
    let mut bytes = Vec::new();
    reader.take(MAX_STREAM + 1).read_to_end(&mut bytes).map_err(|e| unreadable(name, &e))?;
    if bytes.len() as u64 > MAX_STREAM {
        let what = format!("more than {} GiB of Parquet cannot be read from a stream", MAX_STREAM >> 30);
        return Err(Error::input(name, what, "Put it in a file and give its name"));
    }
    read(name, Bytes::from(bytes), options, columns, &|_| Ok(()), (usize::MAX, &mut |_| Ok(())))
}

/// Reads a file on disk or in memory. What comes before the last piece goes to `each`, in tables of `piece` rows or little more.
/// `step` is called with the number of bytes that the cells read so far take.
pub(in super::super) fn read<S: ChunkReader + 'static>(
    name: &str,
    source: S,
    options: &ReadOptions,
    columns: Option<&[String]>,
    step: &dyn Fn(u64) -> Result<()>,
    (piece, each): Pieces<'_>,
) -> Result<Table> {
    let file = File { name, source: Arc::new(source) };
    let metadata = file.metadata(u64::MAX)?;
    let mut fields = metadata.schema().fields().to_vec();
    let names: Vec<String> = fields.iter().map(|f| f.name().clone()).collect();
    let head = Head { file: name, names: &names, line: None, format: Format::Parquet, unread: &[] };
    let (mut chosen, mut unread) = (Vec::new(), Vec::new());
    for at in head.choose(columns)? {
        match check_text(&views(&fields[at]), options.encoding) {
            Ok(()) => chosen.push(at),
            Err(unfit) => unread.push(Unread { name: names[at].clone(), what: unfit.what, next: unfit.next }),
        }
    }
    // A column asked for by name is needed.
    if let (Some(_), Some(unread)) = (columns, unread.first()) {
        return Err(head.unreadable(unread));
    }

    let expected = file.check_rows(metadata.metadata())?;
    let mask = ProjectionMask::roots(metadata.parquet_schema(), chosen.iter().copied());
    file.check_chunks(metadata.metadata(), &mask, &names)?;
    file.set_units(&metadata, &mut fields, &chosen)?;
    let meanings = file.meanings(metadata.metadata());
    let column = |&at: &usize| {
        let mut field = Field::clone(&views(&fields[at])).with_nullable(true);
        if let Some(name) = meanings.get(&names[at]) {
            field.metadata_mut().insert(EXTENSION_TYPE_NAME_KEY.into(), name.clone());
        }
        let column = Column::new(names[at].clone(), field.into(), options.encoding);
        match column.unfit {
            None => Ok(column),
            Some(unfit) => Err(Error::input(name, unfit.what, unfit.next).at_column(shorten(&names[at]))),
        }
    };
    let columns = chosen.iter().map(column).collect::<Result<Vec<_>>>()?;
    let schema: SchemaRef =
        Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()).into();

    let table = |rows: Batches, unread, before| {
        let found = Found { columns: names.len(), delimiter: None };
        let of = Table::of(name, Format::Parquet, options, columns.clone(), rows);
        Table { unread, found, before, ..of }
    };
    let mut rows = Batches::new(schema.clone());
    // The rows of the pieces before, and the bytes of all.
    let (mut before, mut bytes) = (0, 0u64);
    let limit = file.source.len().saturating_mul(EXPANSION).saturating_add(FREE);
    let check = |rows: usize, bytes: u64| match bytes.saturating_add(rows as u64) > limit {
        false => Ok(()),
        true => {
            let what = format!("the cells take more than {EXPANSION} times as many bytes as the file");
            let next = "Check where the file comes from; if it is genuine, convert it to CSV";
            Err(Error::input(name, what, next))
        }
    };
    if chosen.is_empty() {
        check(expected, 0)?;
        rows.push(batch_of(schema, Vec::new(), expected)?);
    } else {
        let mut batches = file.open(&metadata, &fields, mask)?;
        while let Some(batch) = file.guarded(|| batches.next())? {
            let batch = batch.map_err(|e| file.damaged(Some(&e.into())))?;
            if rows.rows() >= piece {
                let next = rows.without_rows();
                let full = table(std::mem::replace(&mut rows, next), Vec::new(), before);
                before += full.rows();
                each(full)?;
            }
            let read = before + rows.rows();
            if let Some((row, column)) = first_without_text(&batch, &columns) {
                let (what, next) =
                    ("the value is not valid for the column's type (text must be UTF-8)", "Correct it");
                return Err(Error::input(name, what, next)
                    .at(Place::Row((read + row) as u64 + 1))
                    .at_column(shorten(column.field.name())));
            }
            bytes = bytes.saturating_add(batch.columns().iter().map(bytes_of).sum());
            if read + batch.num_rows() > expected {
                return Err(file.damaged(None));
            }
            check(read + batch.num_rows(), bytes)?;
            let arrays = batch.columns().iter().map(compact).collect();
            // A column of another type than the file promised.
            let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|_| file.damaged(None))?;
            rows.push(batch);
            step(bytes)?;
        }
        if before + rows.rows() != expected {
            return Err(file.damaged(None));
        }
    }
    Ok(table(rows, unread, before))
}

/// The bytes that the values of an array take without what else is in the pages that they are in.
fn bytes_of(array: &ArrayRef) -> u64 {
    let views = |lengths: &mut dyn Iterator<Item = u32>| {
        lengths.map(|length| u64::from(length) + size_of::<u128>() as u64).sum()
    };
    match array.data_type() {
        DataType::Utf8View => views(&mut array.as_string_view().lengths()),
        DataType::BinaryView => views(&mut array.as_binary_view().lengths()),
        _ => array.to_data().get_slice_memory_size().map_or(u64::MAX, |bytes| bytes as u64),
    }
}

/// The names of the columns that can be read, of a file whose footer has at most `footer` bytes.
pub(in super::super) fn names<S: ChunkReader + 'static>(
    name: &str,
    source: S,
    options: &ReadOptions,
    footer: u64,
) -> Result<Vec<String>> {
    let metadata = File { name, source: Arc::new(source) }.metadata(footer)?;
    let fields = metadata.schema().fields();
    let readable = fields.iter().filter(|field| check_text(&views(field), options.encoding).is_ok());
    Ok(readable.map(|field| field.name().clone()).collect())
}

/// Strings and bytes as views: a batch refers to the values of a dictionary and does not repeat them.
fn views(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        _ => return field.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// A column of timestamps, with another unit.
fn with_unit(field: &FieldRef, unit: TimeUnit) -> FieldRef {
    match field.data_type() {
        DataType::Timestamp(_, zone) => {
            Arc::new(Field::clone(field).with_data_type(DataType::Timestamp(unit, zone.clone())))
        }
        _ => field.clone(),
    }
}

/// In which units the timestamps of a column are exact.
#[derive(Clone, Default)]
struct Moments {
    /// The first row that has fractions of microseconds, or is beyond all that they hold,
    finer: Option<usize>,
    /// the first that is beyond what nanoseconds hold, and
    beyond: Option<usize>,
    /// the first that is no time.
    wrong: Option<usize>,
}

impl Moments {
    /// Adds one: its seconds, and its nanoseconds modulo 2^64.
    fn add(&mut self, row: usize, seconds: i64, nanoseconds: i64) {
        const SECOND: i64 = 1_000_000_000;
        let rest = nanoseconds.wrapping_sub(seconds.wrapping_mul(SECOND));
        if !(0..SECOND).contains(&rest) {
            self.wrong.get_or_insert(row);
        }
        let exact = i128::from(seconds) * i128::from(SECOND) + i128::from(rest);
        if exact % 1000 != 0 || i64::try_from(exact / 1000).is_err() {
            self.finer.get_or_insert(row);
        }
        if i64::try_from(exact).is_err() {
            self.beyond.get_or_insert(row);
        }
    }

    /// The unit that holds all of them, or the row that keeps it from doing so.
    fn unit(&self) -> std::result::Result<TimeUnit, usize> {
        match (self.wrong, self.finer, self.beyond) {
            (Some(row), ..) => Err(row),
            (None, None, _) => Ok(TimeUnit::Microsecond),
            (None, Some(_), None) => Ok(TimeUnit::Nanosecond),
            (None, Some(_), Some(row)) => Err(row),
        }
    }
}

/// A Parquet file and its name.
struct File<'a, S> {
    name: &'a str,
    source: Arc<S>,
}

impl<S: ChunkReader + 'static> File<'_, S> {
    /// The footer, of at most so many bytes. Columns have their Parquet types; the types that Arrow stores in addition are
    /// ignored.
    fn metadata(&self, most: u64) -> Result<ArrowReaderMetadata> {
        let next = concat!("Check its name, or say what it is with ", setting!(format));
        let no_parquet = || Error::input(self.name, "the file is not a Parquet file", next);
        let len = self.source.len();
        let Some(tail_at) = len.checked_sub(TAIL).filter(|&at| at > 0) else { return Err(no_parquet()) };
        let tail = self.bytes(tail_at, TAIL)?;
        let Some((&[a, b, c, d], magic)) = tail.split_first_chunk() else { return Err(no_parquet()) };
        match magic {
            b"PAR1" => {}
            b"PARE" => {
                return Err(Error::input(
                    self.name,
                    "the file is encrypted",
                    "Write the file without \
                     encryption",
                ));
            }
            // A truncated file still has the magic number at its start.
            _ if self.bytes(0, 4)?.as_ref() == b"PAR1" => return Err(self.damaged(None)),
            _ => {
                let head = self.bytes(0, len.min(other::HEAD as u64))?;
                other::check_head(self.name, &head, Format::Parquet)?;
                return Err(no_parquet());
            }
        }
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        let at = tail_at.checked_sub(size).ok_or_else(|| self.damaged(None))?;
        if size > most {
            let what = format!("the footer has more than {most} bytes");
            return Err(Error::input(self.name, what, "Write the file with larger row groups"));
        }
        let checked = guard::check_footer(&self.bytes(at, size)?);
        if let Some(newer) = checked.map_err(|guard::Impossible| self.damaged(None))? {
            let what = format!("the file uses a feature that veilset does not read: {newer}");
            return Err(Error::input(self.name, what, "Write it again with simpler settings"));
        }
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        self.guarded(|| ArrowReaderMetadata::load(self.source.as_ref(), options))?
            .map_err(|e| self.damaged(Some(&e)))
    }

    fn bytes(&self, at: u64, len: u64) -> Result<Bytes> {
        self.source.get_bytes(at, len as usize).map_err(|e| match e {
            ParquetError::External(e) => Error::input(self.name, format!("reading failed: {e}"), "Try again"),
            _ => self.damaged(None),
        })
    }

    /// The number of rows that the footer promises.
    fn check_rows(&self, metadata: &ParquetMetaData) -> Result<usize> {
        let counts = metadata.row_groups().iter().map(|g| u64::try_from(g.num_rows()).ok());
        let sum = counts.into_iter().try_fold(0u64, |sum, n| sum.checked_add(n?));
        match sum {
            Some(n) if i64::try_from(n) == Ok(metadata.file_metadata().num_rows()) => {
                if n > MAX_ROWS as u64 {
                    let what = format!("the file has more than {MAX_ROWS} rows");
                    return Err(Error::input(self.name, what, "Split it and run once for each part"));
                }
                Ok(n as usize)
            }
            _ => Err(self.damaged(None)),
        }
    }

    /// Checks the place, size and compression of each column chunk to be read.
    fn check_chunks(
        &self,
        metadata: &ParquetMetaData,
        mask: &ProjectionMask,
        names: &[String],
    ) -> Result<()> {
        let schema = metadata.file_metadata().schema_descr();
        for group in metadata.row_groups() {
            for leaf in (0..group.num_columns()).filter(|&leaf| mask.leaf_included(leaf)) {
                let chunk = group.column(leaf);
                match chunk.compression() {
                    Compression::UNCOMPRESSED
                    | Compression::SNAPPY
                    | Compression::GZIP(_)
                    | Compression::ZSTD(_)
                    | Compression::BROTLI(_)
                    | Compression::LZ4
                    | Compression::LZ4_RAW => {}
                    other => {
                        let what =
                            format!("the column is compressed with {other}, which veilset does not read");
                        let next = "Write the file with another compression, like Snappy or Zstandard";
                        let column = &names[schema.get_column_root_idx(leaf)];
                        return Err(Error::input(self.name, what, next).at_column(shorten(column)));
                    }
                }
                self.check_chunk(chunk).ok_or_else(|| self.damaged(None))?;
            }
        }
        Ok(())
    }

    fn check_chunk(&self, chunk: &ColumnChunkMetaData) -> Option<()> {
        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let (start, size) = (u64::try_from(start).ok()?, u64::try_from(chunk.compressed_size()).ok()?);
        start.checked_add(size).filter(|&end| end <= self.source.len())?;
        // The length before a string, or the value itself.
        let width = match chunk.column_type() {
            Type::FIXED_LEN_BYTE_ARRAY => 1,
            _ => 4,
        };
        let brotli = matches!(chunk.compression(), Compression::BROTLI(_));
        guard::check_pages(|at| self.source.get_read(start + at).ok(), size, width, brotli).ok()
    }

    /// Opens the columns for reading.
    fn open(
        &self,
        metadata: &ArrowReaderMetadata,
        fields: &[FieldRef],
        mask: ProjectionMask,
    ) -> Result<ParquetRecordBatchReader> {
        let schema = Schema::new(fields.iter().map(views).collect::<Vec<_>>());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
        self.guarded(|| {
            let metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), options)?;
            ParquetRecordBatchReaderBuilder::new_with_metadata(Shared(self.source.clone()), metadata)
                .with_projection(mask)
                .with_batch_size(BATCH)
                .build()
        })?
        .map_err(|e| self.damaged(Some(&e)))
    }

    /// Chooses the unit of timestamps of the old kind, which have 96 bits: a day, and nanoseconds of it. Of those that the decoder
    /// makes of them, nanoseconds hold years from 1677 to 2262 only, and it gives no sign of others.
    fn set_units(
        &self,
        metadata: &ArrowReaderMetadata,
        fields: &mut [FieldRef],
        chosen: &[usize],
    ) -> Result<()> {
        let schema = metadata.metadata().file_metadata().schema_descr();
        let old: Vec<usize> = (0..schema.num_columns())
            .filter(|&leaf| schema.column(leaf).physical_type() == Type::INT96)
            .map(|leaf| schema.get_column_root_idx(leaf))
            .filter(|at| chosen.contains(at))
            .collect();
        if old.is_empty() {
            return Ok(());
        }
        let in_unit = |unit: TimeUnit| {
            let mut fields = fields.to_vec();
            for &at in &old {
                fields[at] = with_unit(&fields[at], unit);
            }
            let mask = ProjectionMask::roots(metadata.parquet_schema(), old.iter().copied());
            self.open(metadata, &fields, mask)
        };
        // Seconds of all days fit into 64 bits. Nanoseconds may have wrapped around, but differ from them by less than a second.
        let (mut seconds, mut nanoseconds) = (in_unit(TimeUnit::Second)?, in_unit(TimeUnit::Nanosecond)?);
        let mut found = vec![Moments::default(); old.len()];
        let mut before = 0;
        while let (Some(whole), Some(rest)) =
            (self.guarded(|| seconds.next())?, self.guarded(|| nanoseconds.next())?)
        {
            let whole = whole.map_err(|e| self.damaged(Some(&e.into())))?;
            let rest = rest.map_err(|e| self.damaged(Some(&e.into())))?;
            for (found, (whole, rest)) in found.iter_mut().zip(whole.columns().iter().zip(rest.columns())) {
                let whole = whole.as_primitive_opt::<TimestampSecondType>();
                let rest = rest.as_primitive_opt::<TimestampNanosecondType>();
                let (Some(whole), Some(rest)) = (whole, rest) else { return Err(self.damaged(None)) };
                for (row, (whole, rest)) in whole.iter().zip(rest.iter()).enumerate() {
                    if let (Some(whole), Some(rest)) = (whole, rest) {
                        found.add(before + row, whole, rest);
                    }
                }
            }
            before += whole.num_rows();
        }
        for (&at, found) in old.iter().zip(found) {
            let unit = found.unit().map_err(|row| {
                let what = "the timestamp is of no time of day, or it is outside the years 1677 to 2262 while the column has \
                            fractions of microseconds, and no type holds both";
                Error::input(self.name, what, "Write the column with microseconds")
                    .at(Place::Row(row as u64 + 1))
                    .at_column(shorten(fields[at].name()))
            })?;
            fields[at] = with_unit(&fields[at], unit);
        }
        Ok(())
    }

    /// What the columns mean that have another meaning than what is stored, by their names: extension types, and those types of
    /// Arrow that Parquet stores as plain numbers. Only what Arrow stores in addition tells them.
    fn meanings(&self, metadata: &ParquetMetaData) -> HashMap<String, String> {
        let file = metadata.file_metadata();
        // It need not be there, or make sense.
        let schema = guarded(|| parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata()));
        let Some(Ok(schema)) = schema else { return HashMap::new() };
        let meaning = |field: &FieldRef| match (field.extension_type_name(), field.data_type()) {
            (Some(name), _) => Some(name.to_owned()),
            (
                None,
                number @ (DataType::Time32(TimeUnit::Second)
                | DataType::Timestamp(TimeUnit::Second, _)
                | DataType::Date64
                | DataType::Duration(_)),
            ) => Some(number.to_string()),
            _ => None,
        };
        let of = |field: &FieldRef| Some((field.name().clone(), meaning(field)?));
        schema.fields().iter().filter_map(of).collect()
    }

    /// Runs a step of the decoder, which may panic on a damaged file.
    fn guarded<T>(&self, step: impl FnOnce() -> T) -> Result<T> {
        guarded(step).ok_or_else(|| self.damaged(None))
    }

    /// The decoder's own words may quote cells. They are shown only if they name a missing feature.
    fn damaged(&self, e: Option<&ParquetError>) -> Error {
        match e {
            Some(ParquetError::NYI(lacks)) => {
                let what = format!("the file uses a feature that veilset does not read: {}", lacks);
                Error::input(self.name, what, "Write it again with simpler settings")
            }
            _ => Error::input(
                self.name,
                "the Parquet file is damaged or incomplete",
                "Copy it again from its source, or write it again",
            ),
        }
    }
}

/// A source that the decoder shares with us.
struct Shared<S>(Arc<S>);

impl<S: ChunkReader> parquet::file::reader::Length for Shared<S> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<S: ChunkReader> ChunkReader for Shared<S> {
    type T = S::T;

    fn get_read(&self, start: u64) -> parquet::errors::Result<S::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}
