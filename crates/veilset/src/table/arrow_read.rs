//! Reading Arrow files and streams into a [`Table`].
//!
//! A file is a stream between a magic number and a footer, so both are read as a stream. The bytes are read into memory
//! once; the columns refer to them. Their content is not trusted: the decoder checks it, and its panics mean a damaged
//! file.

use super::compressed::{EXPANSION, FREE};
use super::{ReadOptions, Table};
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::ArrowError;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The beginning of a file, padded to 8 bytes; some programs pad it to more.
const MAGIC: &[u8] = b"ARROW1\0\0";

/// Whether a file that begins like this is an Arrow file. A stream has no such beginning.
pub(super) fn is_file(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Reads the columns asked for.
pub(super) fn read(
    name: &str,
    mut reader: impl Read,
    options: &ReadOptions,
    columns: Option<&[String]>,
) -> Result<Table> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|e| super::read::unreadable(name, &e))?;
    let in_file = is_file(&bytes);
    // A row of nothing takes no bytes.
    let most = FREE.saturating_add(EXPANSION.saturating_mul(bytes.len() as u64));
    let bytes = Buffer::from_vec(bytes);
    let begin = if in_file { MAGIC.len() } else { 0 };
    let padding = bytes[begin..].chunks(8).take_while(|eight| in_file && *eight == [0; 8]).count();
    let rest = bytes.slice(begin + 8 * padding);
    let mut stream = Stream { name, decoder: StreamDecoder::new(), rest, in_file, left: most };
    let first = stream.next().transpose()?;
    let Some(schema) = stream.decoder.schema() else { return Err(stream.damaged(None)) };
    Table::from_batches(name, &schema, first.map(Ok).into_iter().chain(stream), options, columns)
}

/// The batches of a stream.
struct Stream<'a> {
    name: &'a str,
    decoder: StreamDecoder,
    rest: Buffer,
    in_file: bool,
    /// The rows that may still come.
    left: u64,
}

impl Iterator for Stream<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        // The end is a message of length 0; in a file, the footer follows.
        const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let mut step = || {
            while !self.rest.is_empty() && !self.rest.starts_with(&END) {
                if let Some(batch) = self.decoder.decode(&mut self.rest)? {
                    return Ok(Some(batch));
                }
            }
            self.decoder.finish().map(|()| None)
        };
        match catch_unwind(AssertUnwindSafe(&mut step)) {
            Ok(Ok(None)) => None,
            Ok(Ok(Some(batch))) => match self.left.checked_sub(batch.num_rows() as u64) {
                Some(left) => {
                    self.left = left;
                    Some(Ok(batch))
                }
                None => Some(Err(self.damaged(None))),
            },
            Ok(Err(e)) => Some(Err(self.damaged(Some(&e)))),
            Err(_) => Some(Err(self.damaged(None))),
        }
    }
}

impl Stream<'_> {
    fn damaged(&self, e: Option<&ArrowError>) -> Error {
        // The decoder's own words may quote values. They are shown only if they name a missing feature.
        let lacks = e.map(ToString::to_string).filter(|words| words.contains("compress"));
        if let Some(lacks) = lacks {
            let what = format!("the file uses a feature that veilset does not read: {lacks}");
            return Error::input(self.name, what, "Write it again without compression");
        }
        let what = match self.in_file {
            true => "the Arrow file is damaged or incomplete",
            false => "this is no Arrow file, and no whole Arrow stream",
        };
        Error::input(self.name, what, "Copy it again from its source, or say what it is with `format`")
    }
}
