//! Arrow data from and to Python, through the capsules of Arrow's C stream interface.

use crate::errors::exception;
use crate::run::NEXT;
use crate::stream::{NAME, Stream, taken};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use veilset::error::Error;
use veilset::table::Batches;

/// Returns the batches of an object with `__arrow_c_stream__`.
pub(crate) fn batches(of: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let given = of.call_method0("__arrow_c_stream__").map_err(|e| unhanded(of.py(), e))?;
    let capsule = given.cast_into::<PyCapsule>()?;
    taken(&capsule)
}

/// Returns the error for an object that does not hand its data over, for instance because its query is carried out only then.
/// The raised exception may name a cell, so it is neither shown nor kept as the cause.
fn unhanded(py: Python<'_>, raised: PyErr) -> PyErr {
    if !raised.is_instance_of::<PyException>(py) {
        // An interrupt is raised again.
        return raised;
    }
    let kind = raised.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
    exception(py, &Error::input("the frame", unhad("the rows", &kind), NEXT), &[])
}

/// Describes rows that could not be obtained, with the kind of the error if it is known.
pub(crate) fn unhad(what: &str, kind: &str) -> String {
    match kind {
        "" => format!("{what} could not be obtained"),
        kind => format!("{what} could not be obtained ({kind})"),
    }
}

/// Messages of the package itself about a reader, which name no cell.
const OURS: [&str; 2] = [
    "a batch has another schema than the first",
    "the reader has no rows: it was read before, for instance by a check. If there are none, give a table",
];

/// Returns the part of an Arrow stream's error message that may be shown: the kind at its beginning, such as "Conversion Error"
/// and "ValueError", or a message of the package. The rest may name a cell.
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
        // The stream interface, and some producers, put a prefix of their own in front.
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
    /// The types of the columns; `None` if there is no table.
    schema: Option<SchemaRef>,
    /// Batches of the table; none of them is empty.
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

    /// A frame cannot be changed, so it is its own copy.
    fn __copy__(this: Py<Frame>) -> Py<Frame> {
        this
    }

    fn __deepcopy__(this: Py<Frame>, _memo: &Bound<'_, PyAny>) -> Py<Frame> {
        this
    }

    /// Pickles the table as the bytes of an Arrow stream.
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
        // The interface lets a producer ignore a requested schema that would need a conversion.
        drop(requested_schema);
        let Some(schema) = &self.schema else { return Err(PyTypeError::new_err("there is no table")) };
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), NAME)
    }
}

impl Frame {
    /// Returns whether both have the same columns and rows, regardless of how the rows are split into batches.
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

    /// Returns the bytes of an Arrow stream; empty if there is no table.
    fn packed(&self) -> Result<Vec<u8>, ArrowError> {
        let Some(schema) = &self.schema else { return Ok(Vec::new()) };
        let mut stream = StreamWriter::try_new(Vec::new(), schema)?;
        self.batches.iter().try_for_each(|batch| stream.write(batch))?;
        stream.into_inner()
    }
}

/// Restores a pickled table.
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
