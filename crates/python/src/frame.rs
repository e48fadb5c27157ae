//! Arrow data from and to Python, through the capsules of Arrow's C stream interface.

use crate::errors::exception;
use crate::run::NEXT;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;
use veilset::error::Error;
use veilset::table::Batches;

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
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
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
