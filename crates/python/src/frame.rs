//! Arrow data from and to Python, through the capsules of Arrow's C stream interface.

use crate::errors::exception;
use crate::run::NEXT;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::ffi::CStr;
use std::sync::Arc;
use veilset::error::Error;
use veilset::table::{Batches, UNREAD};

const STREAM: &CStr = c"arrow_array_stream";

/// Batches to be read.
pub(crate) type Stream = Box<dyn RecordBatchReader + Send>;

/// The batches that an object with `__arrow_c_stream__` gives.
pub(crate) fn batches(of: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let given = of.call_method0("__arrow_c_stream__").map_err(|e| unhanded(of.py(), e))?;
    let capsule = given.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds an Arrow stream, which may be moved out of it; what is left there is a released
    // stream, as the interface asks for.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    if let Some(schema) = Foreign::of(&mut stream) {
        let schema = schema.map_err(|e| exception(of.py(), &e, &[]))?;
        return Ok(Box::new(Foreign { stream, schema }));
    }
    let reader = ArrowArrayStreamReader::try_new(stream);
    let reader =
        reader.map_err(|e| PyTypeError::new_err(format!("the object gives no Arrow stream: {e}")))?;
    Ok(Box::new(reader))
}

/// The error for an object that does not hand its data over: a query is carried out only then. What was raised may name a
/// cell, so it is neither told nor kept as the cause.
fn unhanded(py: Python<'_>, raised: PyErr) -> PyErr {
    if !raised.is_instance_of::<PyException>(py) {
        // An interrupt.
        return raised;
    }
    let kind = raised.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
    exception(py, &Error::input("the frame", unhad("the rows", &kind), NEXT), &[])
}

/// What to say of rows that could not be had, by the kind of the error if that is known.
pub(crate) fn unhad(what: &str, kind: &str) -> String {
    match kind {
        "" => format!("{what} could not be had"),
        kind => format!("{what} could not be had ({kind})"),
    }
}

/// What the package itself says of a reader, which names no cell.
const OURS: [&str; 2] = [
    "a batch has another schema than the first",
    "the reader has no rows: it was read before, for instance by a check. If there are none, give a table",
];

/// What may be shown of what Arrow's stream interface says of an error: the kind at its beginning, such as "Conversion Error" and
/// "ValueError", or what the package says. The rest may name a cell.
pub(crate) fn known_in(told: &str) -> &str {
    if let Some(ours) = OURS.into_iter().find(|ours| told.contains(ours)) {
        return ours;
    }
    let mut rest = told;
    while let Some((kind, after)) = rest.split_once(':') {
        let kind = kind.trim();
        let is_kind = (kind.ends_with("Error") || kind.ends_with("Exception"))
            && kind.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ');
        if is_kind {
            return kind;
        }
        // The stream interface, and some that give a stream, put words of their own in front.
        if !matches!(
            kind,
            "C Data interface error" | "External error" | "Invalid" | "External" | "Unknown error"
        ) {
            return "";
        }
        rest = after;
    }
    ""
}

/// A table in Arrow's format. Any library that reads Arrow streams takes it: `polars.DataFrame(frame)`,
/// `pyarrow.table(frame)`. It cannot be changed, can be pickled, and is equal to a table with the same columns and rows.
#[pyclass(frozen, module = "veilset")]
pub(crate) struct Frame {
    /// `None` if there is no table.
    schema: Option<SchemaRef>,
    /// None is empty.
    batches: Vec<RecordBatch>,
}

impl From<Batches> for Frame {
    fn from(batches: Batches) -> Frame {
        Frame { schema: batches.schema().cloned(), batches: batches.batches().to_vec() }
    }
}

#[pymethods]
impl Frame {
    /// The number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let fields = self.schema.iter().flat_map(|schema| schema.fields().iter());
        fields.map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        let rows = self.__len__();
        format!(
            "<veilset.Frame of {rows} row{} and the columns {}>",
            if rows == 1 { "" } else { "s" },
            self.columns().join(", ")
        )
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Frame>().is_ok_and(|other| self.is(other.get()))
    }

    /// It cannot be changed, so it is its own copy.
    fn __copy__(this: Py<Frame>) -> Py<Frame> {
        this
    }

    fn __deepcopy__(this: Py<Frame>, _memo: &Bound<'_, PyAny>) -> Py<Frame> {
        this
    }

    /// As the bytes of an Arrow stream.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = py.import("veilset._native")?.getattr("frame_of")?;
        let bytes = py.detach(|| self.packed()).map_err(unpacked)?;
        Ok((make, (PyBytes::new(py, &bytes),)))
    }

    /// The rows as a stream of Arrow batches.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore what it cannot give without a conversion.
        drop(requested_schema);
        let Some(schema) = &self.schema else { return Err(PyTypeError::new_err("there is no table")) };
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

/// A stream with columns whose types Arrow's library here does not know. In their place it has bytes of the same width, marked so
/// that nobody reads them.
struct Foreign {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl Foreign {
    /// `None` if all types are known, and for a stream that has no schema.
    fn of(stream: &mut FFI_ArrowArrayStream) -> Option<Result<SchemaRef, Error>> {
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is one that a capsule had, and not released; an empty schema may be written over.
        let got = unsafe { stream.get_schema?(stream, &mut schema) };
        if got != 0 || schema.children().all(|child| Field::try_from(child).is_ok()) {
            return None;
        }
        let field = |child: &FFI_ArrowSchema| {
            let name = child.name().unwrap_or_default();
            match (Field::try_from(child), child.format()) {
                (Ok(field), _) => Ok(field),
                // Those of Polars.
                (Err(_), format @ ("_pli128" | "_plu128")) => {
                    let mark = (UNREAD.into(), format!("integer of 128 bits, {format}"));
                    Ok(Field::new(name, DataType::FixedSizeBinary(16), true).with_metadata([mark].into()))
                }
                (Err(_), format) => {
                    let what = format!(
                        "the column has a type that veilset does not read (\"{format}\" in Arrow's C interface)"
                    );
                    Err(Error::input("the frame", what, "Convert or drop the column").at_column(name))
                }
            }
        };
        let fields: Result<Vec<Field>, Error> = schema.children().map(field).collect();
        Some(fields.map(|fields| Arc::new(Schema::new(fields))))
    }
}

impl Iterator for Foreign {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let failed = |what: &str| Some(Err(ArrowError::CDataInterface(what.into())));
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as for the schema.
        if unsafe { self.stream.get_next?(&mut self.stream, &mut array) } != 0 {
            return failed("the stream failed");
        }
        if array.is_released() {
            return None;
        }
        let of_rows = DataType::Struct(self.schema.fields().clone());
        // SAFETY: the stream promises arrays of its schema; the columns in the place of others have as many buffers, of the same
        // width.
        match unsafe { from_ffi_and_data_type(array, of_rows) } {
            Ok(rows) => Some(Ok(RecordBatch::from(StructArray::from(rows)))),
            Err(_) => failed("a batch does not fit its schema"),
        }
    }
}

impl RecordBatchReader for Foreign {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Frame {
    /// Whether both have the same columns and rows, in whatever batches.
    fn is(&self, other: &Frame) -> bool {
        if self.schema != other.schema || self.__len__() != other.__len__() {
            return false;
        }
        let (mut rest, mut at) = (other.batches.iter().cloned(), None);
        self.batches.iter().all(|batch| {
            let mut from = 0;
            while from < batch.num_rows() {
                let Some(theirs) = at.take().or_else(|| rest.next()) else { return false };
                let number = theirs.num_rows().min(batch.num_rows() - from);
                if batch.slice(from, number) != theirs.slice(0, number) {
                    return false;
                }
                from += number;
                let left = theirs.num_rows() - number;
                at = (left > 0).then(|| theirs.slice(number, left));
            }
            true
        })
    }

    /// As the bytes of an Arrow stream; none if there is no table.
    fn packed(&self) -> Result<Vec<u8>, ArrowError> {
        let Some(schema) = &self.schema else { return Ok(Vec::new()) };
        let mut stream = StreamWriter::try_new(Vec::new(), schema)?;
        self.batches.iter().try_for_each(|batch| stream.write(batch))?;
        stream.into_inner()
    }
}

/// Makes a table of what was pickled.
#[pyfunction]
pub(crate) fn frame_of(py: Python<'_>, bytes: &[u8]) -> PyResult<Frame> {
    let read = || -> Result<Frame, ArrowError> {
        if bytes.is_empty() {
            return Ok(Frame { schema: None, batches: Vec::new() });
        }
        let reader = StreamReader::try_new(bytes, None)?;
        let schema = Some(reader.schema());
        Ok(Frame { schema, batches: reader.collect::<Result<_, _>>()? })
    };
    py.detach(read).map_err(unpacked)
}

fn unpacked(_: ArrowError) -> PyErr {
    PyValueError::new_err("this is no pickled veilset.Frame, or it was changed")
}
