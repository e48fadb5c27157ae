//! Tables of Arrow batches: frames of other programs, which keep their columns as they are.

use super::types::first_without_text;
use super::{Column, Format, Head, MAX_ROWS, ReadOptions, Table, Unread, parquet, shorten, unknown};
use crate::error::{Error, Place, Result};
use crate::guarded::guarded;
use crate::spelling::setting;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampSecondType;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::interleave::interleave;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// Arrow batches of one schema.
#[derive(Clone, Default)]
pub struct Batches {
    schema: Option<SchemaRef>,
    batches: Vec<RecordBatch>,
    /// The number of each batch's first row.
    starts: Vec<usize>,
    rows: usize,
}

impl Batches {
    /// No batches yet, of this schema.
    pub fn new(schema: SchemaRef) -> Batches {
        Batches { schema: Some(schema), ..Batches::default() }
    }

    /// The schema; `None` if no result was written here.
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The batches.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub(super) fn push(&mut self, batch: RecordBatch) {
        if batch.num_rows() > 0 {
            self.starts.push(self.rows);
            self.rows += batch.num_rows();
            self.batches.push(batch);
        }
    }

    /// No batches, of the same schema.
    pub(super) fn without_rows(&self) -> Batches {
        Batches { schema: self.schema.clone(), ..Batches::default() }
    }

    /// Appends the rows of `further`, which has the same schema.
    pub(super) fn append(&mut self, further: Batches) {
        further.batches.into_iter().for_each(|batch| self.push(batch));
    }

    /// Writes them as an Arrow stream.
    pub(super) fn write(&self, to: &mut dyn Write) -> std::result::Result<(), ArrowError> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let mut stream = StreamWriter::try_new(to, schema)?;
        self.batches.iter().try_for_each(|batch| stream.write(batch))?;
        stream.finish()
    }

    /// The batch that a row is in, and the row's number in it.
    fn find(&self, row: usize) -> (usize, usize) {
        let batch = self.starts.partition_point(|&start| start <= row) - 1;
        (batch, row - self.starts[batch])
    }

    /// Calls `each` with the values in these rows, which must exist, at most `most` rows at a time. It gets the number of rows
    /// before, the number of these rows, and an array for each of the columns.
    pub(super) fn take(
        &self,
        rows: impl IntoIterator<Item = usize>,
        columns: &[usize],
        most: usize,
        each: &mut dyn FnMut(usize, usize, Vec<ArrayRef>) -> Result<()>,
    ) -> Result<()> {
        let mut rows = rows.into_iter();
        let mut done = 0;
        loop {
            let places: Vec<_> = rows.by_ref().take(most).map(|row| self.find(row)).collect();
            if places.is_empty() {
                return Ok(());
            }
            self.take_some(done, &places, columns, each)?;
            done += places.len();
        }
    }

    fn take_some(
        &self,
        before: usize,
        places: &[(usize, usize)],
        columns: &[usize],
        each: &mut dyn FnMut(usize, usize, Vec<ArrayRef>) -> Result<()>,
    ) -> Result<()> {
        let arrays: Option<Vec<_>> = columns.iter().map(|&column| self.values(places, column)).collect();
        match arrays {
            Some(arrays) => each(before, places.len(), arrays),
            None => {
                let (first, rest) = places.split_at(places.len() / 2);
                self.take_some(before, first, columns, each)?;
                self.take_some(before + first.len(), rest, columns, each)
            }
        }
    }

    /// The values of a column in these places, at least one. `None` if there are several, and they have too many bytes for one
    /// array.
    fn values(&self, places: &[(usize, usize)], column: usize) -> Option<ArrayRef> {
        let (&(batch, row), n) = (places.first()?, places.len());
        let values = self.batches[batch].column(column);
        // Consecutive rows of a batch are not copied, unless the values contain other values.
        let plain = inner(values.data_type()).is_empty() && !has_dictionary(values.data_type());
        if plain && places.iter().copied().eq((row..row + n).map(|row| (batch, row))) {
            return Some(values.slice(row, n));
        }
        let first = places.iter().map(|place| place.0).min()?;
        let last = places.iter().map(|place| place.0).max()?;
        let arrays: Vec<&dyn Array> =
            self.batches[first..=last].iter().map(|batch| batch.column(column).as_ref()).collect();
        let places: Vec<_> = places.iter().map(|&(batch, row)| (batch - first, row)).collect();
        interleave(&arrays, &places).ok().or_else(|| (n == 1).then(|| values.slice(row, 1)))
    }
}

/// Makes a batch of these columns.
pub(super) fn batch_of(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
        .map_err(|e| misfit("a batch of rows does not fit its schema", e))
}

/// The error if values that were checked do not fit their type or their file.
pub(super) fn misfit(what: &str, e: impl fmt::Display) -> Error {
    Error::bug(format!("{what}: {e}"))
}

impl fmt::Debug for Batches {
    /// Without the cells, which are confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Table {
    /// The table of these batches, which all have this schema. Their columns are kept as they are, and not copied. `name`
    /// appears in messages. `columns` are the needed ones; the others are dropped. `None` means all columns. A column
    /// whose cells have no text may be among them, but is no key, has no values and is not sent. One that is marked
    /// [`UNREAD`](super::UNREAD) is not read.
    ///
    /// # Errors
    /// [`Error::Input`] for columns that are missing and for batches that are malformed or of another schema; an error
    /// instead of a batch is passed on.
    pub fn from_batches(
        name: &str,
        schema: &SchemaRef,
        batches: impl IntoIterator<Item = Result<RecordBatch>>,
        options: &ReadOptions,
        columns: Option<&[String]>,
    ) -> Result<Table> {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let unread: Vec<Unread> = schema.fields().iter().filter_map(|field| unknown::marked(field)).collect();
        let head = Head { file: name, names: &names, line: None, format: Format::Arrow, unread: &unread };
        let mut chosen = head.choose(columns)?;
        chosen.retain(|&at| unknown::marked(schema.field(at)).is_none());
        let malformed =
            |what| Error::input(name, what, "Make it again, or write it to a file and name the file");
        let kept = schema.project(&chosen).map_err(|_| malformed("the schema is malformed"))?;
        let kept_columns: Vec<Column> = chosen
            .iter()
            .map(|&at| Column::new(names[at].clone(), schema.fields()[at].clone(), options.encoding))
            .collect();
        if let Some(&at) = chosen.iter().find(|&&at| !can_be_taken(schema.field(at).data_type())) {
            let what = format!(
                "the column has a type that veilset does not keep ({})",
                schema.field(at).data_type()
            );
            return Err(
                Error::input(name, what, "Convert or remove the column").at_column(shorten(&names[at]))
            );
        }
        let mut kept = Batches::new(kept.into());
        for batch in batches {
            let batch = batch?;
            if batch.schema_ref().fields() != schema.fields() {
                return Err(malformed("the batches have different columns"));
            }
            let batch = batch.project(&chosen).map_err(|_| malformed("a batch is malformed"))?;
            // Another program made them, and nothing has looked at their bytes yet.
            if batch.columns().iter().any(|column| column.to_data().validate_full().is_err()) {
                return Err(malformed("a batch is malformed: its values do not fit their types"));
            }
            check_texts(name, &batch, &kept_columns, kept.rows())?;
            kept.push(batch);
            if kept.rows() > MAX_ROWS {
                let what = format!("there are more than {MAX_ROWS} rows");
                return Err(Error::input(name, what, "Split them and run once for each part"));
            }
        }
        Ok(Table {
            unread: if columns.is_none() { unread } else { Vec::new() },
            ..Table::of(name, Format::Arrow, options, kept_columns, kept)
        })
    }
}

impl Table {
    /// Refuses columns whose cells have no text, for a result that is text. `next` is what to do.
    pub(super) fn check_texts(&self, next: &str) -> Result<()> {
        let unfit = |column: &Column| column.check_text().err();
        match self.columns.iter().enumerate().find_map(|(at, column)| Some((at, unfit(column)?))) {
            Some((at, unfit)) => Err(self.error(unfit.what, next).at_column(self.label(at))),
            None => Ok(()),
        }
    }

    /// Refuses columns that an Arrow file cannot hold: their cells refer to dictionaries, of which a file has one for all
    /// batches.
    pub fn check_arrow_file(&self) -> Result<()> {
        let refers = |column: &Column| column.unfit.is_some() && has_dictionary(column.field.data_type());
        match self.columns.iter().position(refers) {
            Some(at) => {
                let what = "an Arrow file cannot hold the dictionaries in the column's cells";
                Err(self.error(what, "Decode or remove the column").at_column(self.label(at)))
            }
            None => Ok(()),
        }
    }

    /// Refuses columns that Parquet cannot hold, and Parquet if this build has none.
    pub(super) fn check_parquet(&self) -> Result<()> {
        let too_large = |at: usize| {
            let seconds = |batch: &RecordBatch| {
                let seconds = batch.column(at).as_primitive_opt::<TimestampSecondType>()?;
                Some(seconds.iter().flatten().any(|second| second.checked_mul(1000).is_none()))
            };
            self.batches.batches.iter().any(|batch| seconds(batch).unwrap_or(false))
        };
        for (at, Column { field, .. }) in self.columns.iter().enumerate() {
            let what = match (parquet::holds(field), too_large(at)) {
                (true, false) => continue,
                (false, _) => format!("Parquet has no type for the column's ({})", field.data_type()),
                (true, true) => "Parquet has no room for one of the column's times".into(),
            };
            let next = concat!("Convert or remove the column, or use ", setting!(output_format, "arrow"));
            return Err(self.error(what, next).at_column(self.label(at)));
        }
        Ok(())
    }
}

/// The same values, without other values in their buffers.
pub(super) fn compact(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array.clone(),
    }
}

/// Whether a result can have values of this type. What takes them panics for types that it does not know, and a result must
/// not fail when the run is over.
fn can_be_taken(data_type: &DataType) -> bool {
    /// The most values side by side in one. Nobody has so many, but a damaged file may say so.
    const WIDEST: u64 = 1 << 24;
    if width(data_type).is_none_or(|width| width > WIDEST) {
        return false;
    }
    if !data_type.is_nested() && !matches!(data_type, DataType::Dictionary(..)) {
        return true;
    }
    let take = || interleave(&[new_null_array(data_type, 1).as_ref()], &[(0, 0)]).is_ok();
    guarded(take).unwrap_or(false)
}

/// How many bytes or values of fixed number are in one value of this type. `None` if that is impossible.
fn width(data_type: &DataType) -> Option<u64> {
    let widest = inner(data_type).into_iter().map(width).try_fold(1, |most, one| Some(one?.max(most)))?;
    match data_type {
        DataType::FixedSizeBinary(n) | DataType::FixedSizeList(_, n) => {
            u64::try_from(*n).ok()?.checked_mul(widest)
        }
        _ => Some(widest),
    }
}

/// Whether values of this type refer to a dictionary.
fn has_dictionary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..)) || inner(data_type).into_iter().any(has_dictionary)
}

/// The types of what is in a value of this type.
fn inner(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        _ => Vec::new(),
    }
}

/// Refuses values that have no text, because they are out of the range of their type. `before` is the number of rows before
/// the batch.
fn check_texts(name: &str, batch: &RecordBatch, columns: &[Column], before: usize) -> Result<()> {
    match first_without_text(batch, columns) {
        None => Ok(()),
        Some((row, column)) => {
            Err(Error::input(name, "the value is out of the range of its type", "Correct it")
                .at(Place::Row((before + row) as u64 + 1))
                .at_column(shorten(column.field.name())))
        }
    }
}

#[cfg(test)]
#[path = "batches_tests.rs"]
pub(super) mod tests;
