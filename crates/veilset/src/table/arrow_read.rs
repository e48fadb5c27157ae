//! Reading Arrow files and streams into a [`Table`].
//!
//! The bytes are read into memory once; the columns refer to them. Their content is not trusted: the decoder checks it, and
//! its panics mean a damaged file.

use super::compressed::{EXPANSION, FREE};
use super::{ReadOptions, Table};
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, StreamDecoder, read_footer_length};
use arrow_ipc::{Block, Endianness, root_as_footer};
use arrow_schema::{ArrowError, SchemaRef};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The beginning of a file, padded to 8 bytes.
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
    let source = Source { name, in_file: is_file(&bytes) };
    // A row of nothing takes no bytes.
    let mut left = FREE.saturating_add(EXPANSION.saturating_mul(bytes.len() as u64));
    let mut bounded = |batch: Result<RecordBatch>| {
        let batch = batch?;
        left = left.checked_sub(batch.num_rows() as u64).ok_or_else(|| source.damaged(None))?;
        Ok(batch)
    };
    let bytes = Buffer::from_vec(bytes);
    if source.in_file {
        let file = source.guarded(|| File::open(bytes))?;
        let batches = (0..file.batches.len()).map(|at| source.guarded(|| file.batch(at)));
        return Table::from_batches(name, &file.schema, batches.map(bounded), options, columns);
    }
    let (mut decoder, mut rest) = (StreamDecoder::new(), bytes);
    let mut next = |decoder: &mut StreamDecoder| source.guarded(|| in_stream(decoder, &mut rest)).transpose();
    let first = next(&mut decoder).transpose()?;
    let Some(schema) = decoder.schema() else { return Err(source.damaged(None)) };
    let further = std::iter::from_fn(|| next(&mut decoder));
    let batches = first.map(Ok).into_iter().chain(further).map(&mut bounded);
    Table::from_batches(name, &schema, batches, options, columns)
}

/// The next batch of a stream.
fn in_stream(decoder: &mut StreamDecoder, rest: &mut Buffer) -> Result<Option<RecordBatch>, ArrowError> {
    /// A message of length 0.
    const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    while !rest.is_empty() && !rest.starts_with(&END) {
        if let Some(batch) = decoder.decode(rest)? {
            return Ok(Some(batch));
        }
    }
    decoder.finish().map(|()| None)
}

/// A file: its footer says where its batches are. What is between them is nobody's concern.
struct File {
    bytes: Buffer,
    schema: SchemaRef,
    decoder: FileDecoder,
    batches: Vec<Block>,
}

impl File {
    /// Reads the footer and the dictionaries.
    fn open(bytes: Buffer) -> Result<File, ArrowError> {
        let wrong = |what: &str| ArrowError::ParseError(what.into());
        let (before, &tail) = bytes.split_last_chunk().ok_or_else(|| wrong("no footer"))?;
        let footer = before.len().checked_sub(read_footer_length(tail)?).ok_or_else(|| wrong("no footer"))?;
        let footer = root_as_footer(&before[footer..]).map_err(|e| wrong(&e.to_string()))?;
        let schema = footer.schema().ok_or_else(|| wrong("no schema"))?;
        if schema.endianness() != Endianness::Little {
            return Err(wrong("big endian"));
        }
        let version = footer.version();
        let schema: SchemaRef = fb_to_schema(schema).into();
        let dictionaries: Vec<Block> = footer.dictionaries().iter().flatten().copied().collect();
        let batches: Vec<Block> = footer.recordBatches().iter().flatten().copied().collect();
        // Each byte belongs to one block at most, so that what is decoded is not larger than the file.
        let lengths = dictionaries.iter().chain(&batches).map(length);
        let all = lengths.into_iter().try_fold(0usize, |all, one| all.checked_add(one?));
        if all.is_none_or(|all| all > bytes.len()) {
            return Err(wrong("the blocks do not fit in the file"));
        }
        let decoder = FileDecoder::new(schema.clone(), version);
        let mut file = File { bytes, schema, decoder, batches };
        for block in dictionaries {
            let data = file.data(&block)?;
            file.decoder.read_dictionary(&block, &data)?;
        }
        Ok(file)
    }

    fn batch(&self, at: usize) -> Result<RecordBatch, ArrowError> {
        let block = &self.batches[at];
        let batch = self.decoder.read_record_batch(block, &self.data(block)?)?;
        batch.ok_or_else(|| ArrowError::ParseError("a block without a batch".into()))
    }

    fn data(&self, block: &Block) -> Result<Buffer, ArrowError> {
        let place = usize::try_from(block.offset()).ok().zip(length(block));
        match place {
            Some((at, n)) if at.checked_add(n).is_some_and(|end| end <= self.bytes.len()) => {
                Ok(self.bytes.slice_with_length(at, n))
            }
            _ => Err(ArrowError::ParseError("a block is outside the file".into())),
        }
    }
}

/// The bytes of a block, if that is possible.
fn length(block: &Block) -> Option<usize> {
    let (metadata, body) = (block.metaDataLength(), block.bodyLength());
    usize::try_from(metadata).ok()?.checked_add(usize::try_from(body).ok()?)
}

/// What is read.
struct Source<'a> {
    name: &'a str,
    in_file: bool,
}

impl Source<'_> {
    /// Runs a step of the decoder, which may panic on what is damaged.
    fn guarded<T>(&self, step: impl FnOnce() -> Result<T, ArrowError>) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(done) => done.map_err(|e| self.damaged(Some(&e))),
            Err(_) => Err(self.damaged(None)),
        }
    }

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
