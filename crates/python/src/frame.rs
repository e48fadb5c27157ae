//! Arrow data from and to Python, through the capsules of Arrow's C stream interface.

use crate::errors::exception;
use crate::run::NEXT;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
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
        let schema = schema.map_err(|e| exception(of.py(), &e, None))?;
        return Ok(Box::new(Foreign { stream, schema }));
    }
    let reader = ArrowArrayStreamReader::try_new(stream);
    let reader =
        reader.map_err(|e| PyTypeError::new_err(format!("the object gives no Arrow stream: {e}")))?;
    Ok(Box::new(reader))
}

/// The error for an object that does not hand its data over: a query is carried out only then.
fn unhanded(py: Python<'_>, raised: PyErr) -> PyErr {
    if !raised.is_instance_of::<PyException>(py) {
        // An interrupt.
        return raised;
    }
    let what = format!("the rows could not be had: {}", raised.value(py));
    let error = exception(py, &Error::input("the frame", what, NEXT), None);
    error.set_cause(py, Some(raised));
    error
}

/// A table in Arrow's format. Any library that reads Arrow streams takes it: `polars.DataFrame(frame)`,
/// `pyarrow.table(frame)`.
#[pyclass(frozen, module = "veilset")]
pub(crate) struct Frame(pub(crate) Batches);

#[pymethods]
impl Frame {
    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.rows()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let fields = self.0.schema().into_iter().flat_map(|schema| schema.fields().iter());
        fields.map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        let rows = self.0.rows();
        format!(
            "<veilset.Frame of {rows} row{} and the columns {}>",
            if rows == 1 { "" } else { "s" },
            self.columns().join(", ")
        )
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
        let Some(schema) = self.0.schema() else { return Err(PyTypeError::new_err("there is no table")) };
        let batches: Vec<_> = self.0.batches().iter().cloned().map(Ok).collect();
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
