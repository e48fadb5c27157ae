//! Arrow's C stream interface, as far as it needs `unsafe`: a stream is moved out of a Python capsule, and one with types that
//! Arrow's library does not know is read without that library's reader.
//!
//! Reasons for soundness:
//!
//! - *Ownership of a stream.* A capsule named `arrow_array_stream` holds a stream that its producer made, by the interface's
//!   contract. The stream is moved out and replaced by a released one, which has no functions, and which the capsule need not
//!   release. So a stream has one owner, who releases it when dropped: [`Foreign`], or Arrow's own reader.
//! - *Calls of its functions.* They are called with the stream itself, while it is not released, and by one thread at a time:
//!   they take `&mut`. A released stream has no functions, and gives no batch.
//! - *Their output.* They write to a schema or an array that was empty before, so nothing is lost that would have to be
//!   released. It is read only if the function returned 0; otherwise it is dropped unchanged, empty.
//! - *The type of an array.* It is the type in the stream's schema, except that bytes of a fixed width replace unknown types.
//!   Each unknown type has, by the definition of its format, the buffers of such bytes: one of validity, and one of values of
//!   exactly that width. A format that is not in [`known_width`] is refused before any array is read.

use crate::errors::exception;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::CStr;
use std::sync::Arc;
use veilset::error::Error;
use veilset::table::UNREAD;

/// The name of a capsule with a stream.
pub(crate) const NAME: &CStr = c"arrow_array_stream";

/// A stream of batches to read.
pub(crate) type Stream = Box<dyn RecordBatchReader + Send>;

/// Takes the stream out of a capsule, which has none from here on.
pub(crate) fn taken(capsule: &Bound<'_, PyCapsule>) -> PyResult<Stream> {
    let stream = capsule.pointer_checked(Some(NAME))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds an Arrow stream, which may be moved out of it; a released stream is left in its
    // place, as the interface requires.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    if let Some(schema) = Foreign::of(&mut stream) {
        let schema = schema.map_err(|e| exception(capsule.py(), &e, &[]))?;
        return Ok(Box::new(Foreign { stream, schema }));
    }
    let reader = ArrowArrayStreamReader::try_new(stream);
    let reader =
        reader.map_err(|e| PyTypeError::new_err(format!("the object gives no Arrow stream: {e}")))?;
    Ok(Box::new(reader))
}

/// A stream with columns of types that Arrow's library does not know here. They become bytes of the same width, marked so that
/// they are never read.
struct Foreign {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl Foreign {
    /// Returns the schema with replaced types; `None` if all types are known, or if the stream gives no schema.
    fn of(stream: &mut FFI_ArrowArrayStream) -> Option<Result<SchemaRef, Error>> {
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream comes from a capsule, and has no such function if it is released; an empty schema may be
        // overwritten.
        let got = unsafe { stream.get_schema?(stream, &mut schema) };
        if got != 0 || schema.children().all(|child| Field::try_from(child).is_ok()) {
            return None;
        }
        let field = |child: &FFI_ArrowSchema| {
            let name = child.name().unwrap_or_default();
            let format = child.format();
            match (Field::try_from(child), known_width(format)) {
                (Ok(field), _) => Ok(field),
                (Err(_), Some(width)) => {
                    let mark = (UNREAD.into(), format!("integer of {} bits, {format}", 8 * width));
                    Ok(Field::new(name, DataType::FixedSizeBinary(width), true).with_metadata([mark].into()))
                }
                (Err(_), None) => {
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

/// Returns the width in bytes of a type that Arrow's library does not know: the 128-bit integers of Polars.
fn known_width(format: &str) -> Option<i32> {
    matches!(format, "_pli128" | "_plu128").then_some(16)
}

impl Iterator for Foreign {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let failed = |what: &str| Some(Err(ArrowError::CDataInterface(what.into())));
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream comes from a capsule and is not released; an empty array may be overwritten.
        if unsafe { self.stream.get_next?(&mut self.stream, &mut array) } != 0 {
            return failed("the stream failed");
        }
        if array.is_released() {
            return None;
        }
        let of_rows = DataType::Struct(self.schema.fields().clone());
        // SAFETY: the stream promises arrays of its schema; replaced columns have the same number of buffers, of the same
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
