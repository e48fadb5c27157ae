//! Tables of Arrow batches: frames of other programs, which keep their columns as they are.

use super::types::{self, Kind, render};
use super::{
    Column, Format, Found, Head, Lines, MAX_ROWS, ReadOptions, Store, Table, Unread, parquet, shorten,
    unknown,
};
use crate::error::{Error, Place, Result};
use crate::guarded::guarded;
use crate::spelling::setting;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampSecondType;
use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::interleave::interleave;
use std::fmt;
use std::io::Write;

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

    /// Writes them as an Arrow stream.
    pub(super) fn write(&self, to: &mut dyn Write) -> std::result::Result<(), ArrowError> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let mut stream = StreamWriter::try_new(to, schema)?;
        self.batches.iter().try_for_each(|batch| stream.write(batch))?;
        stream.finish()
    }

    /// The batch that a row is in, and the row's number in it.
    pub(super) fn find(&self, row: usize) -> (usize, usize) {
        let batch = self.starts.partition_point(|&start| start <= row) - 1;
        (batch, row - self.starts[batch])
    }

    /// A column's values in these rows, in this order. `None` if they are too many bytes for one array.
    pub(super) fn take(&self, column: usize, rows: &[usize]) -> Option<ArrayRef> {
        let arrays: Vec<&dyn Array> = self.batches.iter().map(|b| b.column(column).as_ref()).collect();
        let places: Vec<_> = rows.iter().map(|&row| self.find(row)).collect();
        interleave(&arrays, &places).ok()
    }
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
        let kinds: Vec<Kind> =
            chosen.iter().map(|&at| Kind::of_any(&schema.fields()[at], options.encoding)).collect();
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
            check_texts(name, &batch, &kinds, kept.rows())?;
            kept.push(batch);
            if kept.rows() > MAX_ROWS {
                let what = format!("there are more than {MAX_ROWS} rows");
                return Err(Error::input(name, what, "Split them and run once for each part"));
            }
        }
        Ok(Table {
            name: name.into(),
            format: Format::Arrow,
            delimiter: options.delimiter.unwrap_or(b','),
            encoding: options.encoding,
            columns: chosen
                .iter()
                .zip(kinds)
                .map(|(&at, kind)| Column::new(names[at].clone(), kind))
                .collect(),
            header: chosen.iter().map(|&at| names[at].clone()).collect(),
            header_line: None,
            headerless: false,
            unread: if columns.is_none() { unread } else { Vec::new() },
            found: Found::default(),
            notes: Vec::new(),
            multiline_keys: false,
            lines: Lines::default(),
            store: Store::Batches(kept),
            files: Vec::new(),
            before: 0,
        })
    }
}

impl Table {
    /// Refuses columns whose cells have no text, for a result that is text. `next` is what to do.
    pub(super) fn check_texts(&self, next: &str) -> Result<()> {
        let unfit = |column: &Column| column.kind.check_text().err();
        match self.columns.iter().enumerate().find_map(|(at, column)| Some((at, unfit(column)?))) {
            Some((at, unfit)) => Err(self.error(unfit.what, next).at_column(self.label(at))),
            None => Ok(()),
        }
    }

    /// Refuses columns that an Arrow file cannot hold: their cells refer to dictionaries, of which a file has one for all
    /// batches.
    pub fn check_arrow_file(&self) -> Result<()> {
        let refers = |column: &Column| match &column.kind {
            Kind::Opaque(field, _) => has_dictionary(field.data_type()),
            Kind::Plain | Kind::Typed(_) => false,
        };
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
        let Store::Batches(Batches { schema: Some(schema), batches, .. }) = &self.store else {
            return Ok(());
        };
        let too_large = |at: usize| {
            let seconds = |batch: &RecordBatch| {
                let seconds = batch.column(at).as_primitive_opt::<TimestampSecondType>()?;
                Some(seconds.iter().flatten().any(|second| second.checked_mul(1000).is_none()))
            };
            batches.iter().any(|batch| seconds(batch).unwrap_or(false))
        };
        for (at, field) in schema.fields().iter().enumerate() {
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
fn check_texts(name: &str, batch: &RecordBatch, kinds: &[Kind], before: usize) -> Result<()> {
    let mut text = Vec::new();
    for ((array, kind), field) in batch.columns().iter().zip(kinds).zip(batch.schema_ref().fields()) {
        if let (Kind::Typed(_), Some(render)) = (kind, render(kind, array))
            && !types::all_have_text(field.data_type())
        {
            let nulls = array.logical_nulls();
            let given = |&row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            for row in (0..array.len()).filter(given) {
                text.clear();
                if !render(row, &mut text) {
                    return Err(Error::input(
                        name,
                        "the value is out of the range of its type",
                        "Correct it",
                    )
                    .at(Place::Row((before + row) as u64 + 1))
                    .at_column(shorten(field.name())));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "batches_tests.rs"]
pub(super) mod tests;
