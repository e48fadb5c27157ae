//! Reading Arrow files and streams into a [`Table`], compressed by LZ4 or Zstandard or not at all.
//!
//! The bytes are read into memory once; columns that are not compressed refer to them. Their content is not trusted: the
//! decoder checks it, and its panics mean a damaged file.

use super::compressed::{EXPANSION, FREE};
use super::types::check_text;
use super::unknown::{self, Known};
use super::{Format, Head, ReadOptions, Table, other};
use crate::error::{Error, Result};
use crate::guarded::guarded;
use crate::spelling::setting;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, CompressionType, Endianness, Message, MessageHeader, MetadataVersion, Schema};
use arrow_ipc::{root_as_footer, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};
use std::io::Read;

/// The beginning of a file, padded to 8 bytes.
const MAGIC: &[u8] = b"ARROW1\0\0";

/// What may stand before the length of a message's metadata.
const CONTINUATION: &[u8] = &[0xff; 4];

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
    let head = bytes[..bytes.len().min(other::HEAD)].to_vec();
    let source = Source { name, in_file: is_file(&bytes), head: &head };
    let bytes = Buffer::from_vec(bytes);
    let mut messages = source.guarded(|| match source.in_file {
        true => Messages::of_file(bytes),
        false => Messages::of_stream(bytes),
    })?;
    let fields = messages.fields.schema.fields();
    let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    let unread = messages.fields.unread(name)?;
    let head = Head { file: name, names: &names, line: None, format: Format::Arrow, unread: &unread };
    let mut chosen = head.choose(columns)?;
    chosen.retain(|&at| messages.fields.unknown(at).is_none());
    let schema = messages.project(chosen).map_err(|_| source.damaged())?;
    let batches = std::iter::from_fn(|| source.guarded(|| messages.next_batch()).transpose());
    let mut table = Table::from_batches(name, &schema, batches, options, None)?;
    table.found.columns = names.len();
    table.unread = match columns {
        None => unread,
        Some(_) => Vec::new(),
    };
    Ok(table)
}

/// The names of the columns that can be read, of a file or stream that begins like this: both begin with the schema.
pub(super) fn names(name: &str, head: Vec<u8>, options: &ReadOptions) -> Result<Vec<String>> {
    let source = Source { name, in_file: is_file(&head), head: &head[..head.len().min(other::HEAD)] };
    let known = source.guarded(|| {
        // Some writers pad the beginning of a file to more than 8 bytes.
        let begin = head.strip_prefix(MAGIC).map(|rest| rest.iter().take_while(|byte| **byte == 0).count());
        let head = &head[begin.map_or(0, |zeros| MAGIC.len() + zeros / 8 * 8)..];
        let (prefix, size) = metadata_size(head)?;
        let message = message(head.get(..prefix.saturating_add(size)).ok_or_else(|| wrong("cut off"))?)?;
        Ok(unknown::fields(message.header_as_schema().ok_or_else(|| wrong("no schema"))?)?)
    })?;
    let fields = known.schema.fields().iter().enumerate();
    let readable = fields
        .filter(|(at, field)| known.unknown(*at).is_none() && check_text(field, options.encoding).is_ok());
    Ok(readable.map(|(_, field)| field.name().clone()).collect())
}

/// Why a step of the decoder failed.
enum Failed {
    /// The bytes are not what they should be. Its own words may quote values.
    Damaged,
    /// It is a variant of the format that is not read, in these words.
    Lacks(String),
}

impl From<ArrowError> for Failed {
    fn from(_: ArrowError) -> Failed {
        Failed::Damaged
    }
}

/// The result of a step.
type Step<T> = Result<T, Failed>;

fn wrong(what: impl ToString) -> ArrowError {
    ArrowError::ParseError(what.to_string())
}

/// The messages of a file or of a stream.
struct Messages {
    bytes: Buffer,
    fields: Known,
    version: MetadataVersion,
    decoder: FileDecoder,
    /// Dictionaries and batches in their order.
    blocks: std::vec::IntoIter<Block>,
    /// How many more bytes may be decompressed, and rows be read: a row of nothing takes no bytes.
    left: u64,
}

impl Messages {
    /// The footer says where the messages of a file are. What is between them is nobody's concern.
    fn of_file(bytes: Buffer) -> Step<Messages> {
        let (before, &tail) = bytes.split_last_chunk().ok_or_else(|| wrong("no footer"))?;
        let footer = before.len().checked_sub(read_footer_length(tail)?).ok_or_else(|| wrong("no footer"))?;
        let footer = root_as_footer(&before[footer..]).map_err(wrong)?;
        let (schema, version) = (footer.schema(), footer.version());
        let (dictionaries, batches) = (footer.dictionaries(), footer.recordBatches());
        let blocks: Vec<Block> =
            dictionaries.iter().flatten().chain(batches.iter().flatten()).copied().collect();
        // Each byte belongs to one block at most, so that what is decoded is not larger than the file.
        let all = blocks.iter().try_fold(0usize, |all, block| all.checked_add(length(block)?));
        if all.is_none_or(|all| all > bytes.len()) {
            return Err(Failed::Damaged);
        }
        Messages::new(&bytes, schema, version, blocks)
    }

    /// A stream is a message with the schema, then the others. It ends with a message of length 0, or with its bytes.
    fn of_stream(bytes: Buffer) -> Step<Messages> {
        let (mut blocks, mut at) = (Vec::new(), 0);
        let mut begin = None;
        while at < bytes.len() {
            let (prefix, size) = metadata_size(&bytes[at..])?;
            if size == 0 {
                break;
            }
            let size = size.saturating_add(prefix);
            let message = message(bytes[at..].get(..size).ok_or_else(|| wrong("cut off"))?)?;
            let (metadata, body) = (i32::try_from(size).map_err(wrong)?, message.bodyLength());
            let block = Block::new(at as i64, metadata, body);
            if begin.is_none() {
                begin = Some(message);
            } else {
                blocks.push(block);
            }
            let end = length(&block).and_then(|n| at.checked_add(n)).filter(|&end| end <= bytes.len());
            at = end.ok_or_else(|| wrong("cut off"))?;
        }
        let begin = begin.ok_or_else(|| wrong("empty"))?;
        Messages::new(&bytes, begin.header_as_schema(), begin.version(), blocks)
    }

    fn new(
        bytes: &Buffer,
        schema: Option<Schema<'_>>,
        version: MetadataVersion,
        blocks: Vec<Block>,
    ) -> Step<Messages> {
        let schema = schema.ok_or_else(|| wrong("no schema"))?;
        if schema.endianness() == Endianness::Big {
            return Err(Failed::Lacks("its numbers are big-endian".into()));
        }
        if version.0 > MetadataVersion::ENUM_MAX {
            return Err(Failed::Lacks(format!("it has version {} of the format's metadata", version.0 + 1)));
        }
        let fields = unknown::fields(schema)?;
        let decoder = FileDecoder::new(fields.schema.clone(), version);
        let left = FREE.saturating_add(EXPANSION.saturating_mul(bytes.len() as u64));
        Ok(Messages { bytes: bytes.clone(), fields, version, decoder, blocks: blocks.into_iter(), left })
    }

    /// Only these columns are read. Returns their schema.
    fn project(&mut self, columns: Vec<usize>) -> Result<SchemaRef, ArrowError> {
        let schema = self.fields.schema.project(&columns)?;
        let decoder = FileDecoder::new(self.fields.schema.clone(), self.version);
        self.decoder = decoder.with_projection(columns);
        Ok(schema.into())
    }

    /// The next batch. The dictionaries before it are read.
    fn next_batch(&mut self) -> Step<Option<RecordBatch>> {
        for block in self.blocks.by_ref() {
            let place = usize::try_from(block.offset()).ok().zip(length(&block));
            let (at, n) = place
                .filter(|&(at, n)| at.checked_add(n).is_some_and(|end| end <= self.bytes.len()))
                .ok_or_else(|| wrong("a block is outside the file"))?;
            let data = self.bytes.slice_with_length(at, n);
            let (metadata, body) = data.split_at(n - block.bodyLength() as usize);
            let message = message(metadata)?;
            // The decoder allocates what a buffer says that it is when it is decompressed.
            let takes = decompressed(&message, body).ok_or_else(|| wrong("a buffer is outside its block"))?;
            self.left = self.left.checked_sub(takes).ok_or_else(|| wrong("too large"))?;
            if let Some(codec) = unknown_codec(&message) {
                return Err(Failed::Lacks(format!(
                    "its columns are compressed with codec {codec} of the format"
                )));
            }
            if message.header_type() == MessageHeader::DictionaryBatch {
                self.decoder.read_dictionary(&block, &data)?;
                continue;
            }
            let batch = self.decoder.read_record_batch(&block, &data)?;
            let batch = batch.ok_or_else(|| wrong("a block without a batch"))?;
            self.left = self.left.checked_sub(batch.num_rows() as u64).ok_or_else(|| wrong("too large"))?;
            return Ok(Some(batch));
        }
        Ok(None)
    }
}

/// The bytes of a block, if that is possible.
fn length(block: &Block) -> Option<usize> {
    let (metadata, body) = (block.metaDataLength(), block.bodyLength());
    usize::try_from(metadata).ok()?.checked_add(usize::try_from(body).ok()?)
}

/// The bytes of a message's length, and that length: the bytes of its metadata.
fn metadata_size(bytes: &[u8]) -> Result<(usize, usize), ArrowError> {
    let prefix = if bytes.starts_with(CONTINUATION) { 8 } else { 4 };
    let size = bytes.get(prefix - 4..).and_then(|rest| rest.first_chunk());
    let size = i32::from_le_bytes(*size.ok_or_else(|| wrong("no length"))?);
    Ok((prefix, usize::try_from(size).map_err(wrong)?))
}

/// The metadata of a message, behind its length.
fn message(metadata: &[u8]) -> Result<Message<'_>, ArrowError> {
    let prefix = if metadata.starts_with(CONTINUATION) { 8 } else { 4 };
    root_as_message(metadata.get(prefix..).ok_or_else(|| wrong("cut off"))?).map_err(wrong)
}

/// The number of the codec of a message's buffers, if it is none that is read: LZ4 and Zstandard.
fn unknown_codec(message: &Message<'_>) -> Option<i8> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let codec = message.header_as_record_batch().or(dictionary)?.compression()?.codec();
    (![CompressionType::LZ4_FRAME, CompressionType::ZSTD].contains(&codec)).then_some(codec.0)
}

/// How many bytes the buffers of a message say they are when they are decompressed. `None` if one is outside the body.
fn decompressed(message: &Message<'_>, body: &[u8]) -> Option<u64> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = message.header_as_record_batch().or(dictionary) else { return Some(0) };
    if batch.compression().is_none() {
        return Some(0);
    }
    let mut all = 0u64;
    for buffer in batch.buffers().iter().flatten().filter(|buffer| buffer.length() > 0) {
        // -1 for a buffer that is not compressed.
        let says = body.get(usize::try_from(buffer.offset()).ok()?..)?.first_chunk()?;
        all = all.checked_add(i64::from_le_bytes(*says).max(0) as u64)?;
    }
    Some(all)
}

/// What is read.
struct Source<'a> {
    name: &'a str,
    in_file: bool,
    /// Its first bytes.
    head: &'a [u8],
}

impl Source<'_> {
    /// Runs a step of the decoder, which may panic on what is damaged.
    fn guarded<T>(&self, step: impl FnOnce() -> Step<T>) -> Result<T> {
        match guarded(step) {
            Some(Ok(done)) => Ok(done),
            Some(Err(Failed::Lacks(lacks))) => {
                let what = format!("this is Arrow of a kind that veilset does not read: {lacks}");
                Err(Error::input(self.name, what, "Write it again with other settings, or as Parquet or CSV"))
            }
            Some(Err(Failed::Damaged)) | None => Err(self.damaged()),
        }
    }

    fn damaged(&self) -> Error {
        let what = match self.in_file {
            true => "the Arrow file is damaged or incomplete",
            false => match other::check_head(self.name, self.head, Format::Arrow) {
                Err(other) => return other,
                Ok(()) => "this is no Arrow file, and no whole Arrow stream",
            },
        };
        Error::input(
            self.name,
            what,
            concat!("Copy it again from its source, or say what it is with ", setting!(format)),
        )
    }
}

#[cfg(test)]
#[path = "arrow_read_tests.rs"]
mod tests;
