//! Parquet in a build without it. The names of formats and files are refused before anything comes here.

use super::pieces::Pieces;
use super::{ReadOptions, Table};
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};
use std::convert::Infallible;
use std::fs::File;
use std::io::{Read, Write};
use std::marker::PhantomData;

fn missing() -> Error {
    Error::Usage(
        "this build of veilset does not support Parquet. Use CSV or Arrow files, or a build with the feature parquet"
            .into(),
    )
}

pub(super) fn read(
    _name: &str,
    _source: File,
    _options: &ReadOptions,
    _columns: Option<&[String]>,
    _step: &dyn Fn(u64) -> Result<()>,
    _pieces: Pieces<'_>,
) -> Result<Table> {
    Err(missing())
}

pub(super) fn read_stream(
    _name: &str,
    _reader: impl Read,
    _options: &ReadOptions,
    _columns: Option<&[String]>,
) -> Result<Table> {
    Err(missing())
}

pub(super) fn names(_name: &str, _source: File, _options: &ReadOptions, _footer: u64) -> Result<Vec<String>> {
    Err(missing())
}

/// There is none.
pub(super) struct Writer<'a>(Infallible, PhantomData<&'a ()>);

impl<'a> Writer<'a> {
    pub(super) fn new(_out: &'a mut (dyn Write + Send), _schema: &SchemaRef) -> Result<Writer<'a>> {
        Err(missing())
    }

    pub(super) fn write(&mut self, _batch: &RecordBatch) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn close(self) -> Result<()> {
        match self.0 {}
    }
}

pub(super) fn finer(_data_type: &DataType) -> Option<DataType> {
    None
}

pub(super) fn holds(_field: &Field) -> bool {
    false
}
