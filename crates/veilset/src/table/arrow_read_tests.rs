//! Arrow files and streams, compressed or not, are read as the batches that are in them; what is damaged, or claims to be
//! larger than it can be, is refused.

use super::super::batches::tests::many;
use super::super::tests::CSV;
use super::super::{Format, ReadOptions, Table};
use super::{CONTINUATION, EXPANSION, FREE};
use crate::error::{Error, Result};
use arrow_array::types::Int8Type;
use arrow_array::{DictionaryArray, Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

fn read(bytes: &[u8]) -> Result<Table> {
    let options = ReadOptions { format: Some(Format::Arrow), ..CSV };
    Table::from_reader("f", bytes, &options, None)
}

/// What Arrow's own writer makes of batches: a file, and a stream.
fn written(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    compression: Option<CompressionType>,
    dictionaries: DictionaryHandling,
) -> [Vec<u8>; 2] {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let options = options.with_dictionary_handling(dictionaries);
    let mut file = FileWriter::try_new_with_options(Vec::new(), schema, options.clone()).unwrap();
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), schema, options).unwrap();
    for batch in batches {
        file.write(batch).unwrap();
        stream.write(batch).unwrap();
    }
    [file.into_inner().unwrap(), stream.into_inner().unwrap()]
}

const COMPRESSIONS: [Option<CompressionType>; 3] =
    [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];

fn check(bytes: &[u8], schema: &SchemaRef, batches: &[RecordBatch]) {
    let expected = Table::from_batches("frame", schema, batches.iter().cloned().map(Ok), &CSV, None).unwrap();
    let table = read(bytes).unwrap();
    assert_eq!((table.header(), table.rows()), (expected.header(), expected.rows()));
    for row in 0..table.rows() {
        for column in 0..table.header().len() {
            assert_eq!(table.cell(row, column), expected.cell(row, column), "{row} {column}");
        }
    }
}

#[test]
fn files_and_streams_hold_what_was_written_however_it_is_compressed() {
    let (schema, batches) = many();
    // Long enough that compression pays.
    let words: StringArray = (0..5000).map(|i| Some(format!("user{}@example.org", i / 7))).collect();
    let numbers: Int64Array = (0..5000).collect();
    let fields = vec![Field::new("w", DataType::Utf8, true), Field::new("n", DataType::Int64, true)];
    let long: SchemaRef = Schema::new(fields).into();
    let rows = RecordBatch::try_new(long.clone(), vec![Arc::new(words), Arc::new(numbers)]).unwrap();
    let plain = written(&long, std::slice::from_ref(&rows), None, DictionaryHandling::Resend);
    for compression in COMPRESSIONS {
        for bytes in written(&schema, &batches, compression, DictionaryHandling::Resend) {
            check(&bytes, &schema, &batches);
        }
        let rows = [rows.slice(0, 3000), rows.slice(3000, 2000)];
        for (bytes, plain) in
            written(&long, &rows, compression, DictionaryHandling::Resend).iter().zip(&plain)
        {
            check(bytes, &long, &rows);
            assert_eq!(bytes.len() * 2 < plain.len(), compression.is_some());
        }
    }
}

#[test]
fn dictionaries_may_change_and_grow_between_the_batches_of_a_stream() {
    let of = |words: &[&str], keys: &[i8]| {
        let values = Arc::new(StringArray::from(words.to_vec()));
        let array = DictionaryArray::<Int8Type>::new(keys.to_vec().into(), values);
        let field = Field::new("d", DataType::Dictionary(DataType::Int8.into(), DataType::Utf8.into()), true);
        RecordBatch::try_new(Schema::new(vec![field]).into(), vec![Arc::new(array)]).unwrap()
    };
    let grown = [of(&["a", "b"], &[1, 0]), of(&["a", "b", "c"], &[2, 1])];
    let changed = [of(&["a", "b"], &[1, 0]), of(&["x"], &[0])];
    let schema = grown[0].schema();
    for compression in COMPRESSIONS {
        // A file holds one dictionary, which may grow.
        for bytes in written(&schema, &grown, compression, DictionaryHandling::Delta) {
            check(&bytes, &schema, &grown);
        }
        for batches in [&grown, &changed] {
            let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
            let mut stream = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
            batches.iter().for_each(|batch| stream.write(batch).unwrap());
            check(&stream.into_inner().unwrap(), &schema, batches);
        }
    }
}

#[test]
fn what_is_damaged_is_refused_or_read_and_never_a_panic() {
    let (schema, batches) = many();
    for compression in COMPRESSIONS {
        let [file, stream] = written(&schema, &batches, compression, DictionaryHandling::Resend);
        for cut in [1, 6, 10, 11, 300] {
            assert!(matches!(read(&file[..file.len() - cut]), Err(Error::Input(_))), "{cut}");
        }
        for bytes in [&file, &stream] {
            let mut refused = 0;
            for at in (0..bytes.len()).step_by(7) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x55;
                refused += usize::from(read(&damaged).is_err());
                let _ = read(&bytes[..at]);
            }
            assert!(refused > 100, "{refused}");
        }
        // What is between the magic number and the first block may be anything: Polars has a schema there that is no
        // message.
        let begin = file.iter().position(|&byte| byte == 0xff).unwrap();
        let mut strange = file.clone();
        strange[begin..begin + 64].fill(0x55);
        check(&strange, &schema, &batches);
    }
    for nothing in [&b""[..], b"ARROW1\0\0", b"k,n\n1,2\n", b"\xff\xff\xff\xff\xff\xff\xff\x7f"] {
        assert!(matches!(read(nothing), Err(Error::Input(_))), "{nothing:?}");
    }
}

#[test]
fn a_stream_needs_no_end_and_may_have_the_lengths_of_old_versions() {
    let (schema, batches) = many();
    let [_, stream] = written(&schema, &batches, None, DictionaryHandling::Resend);
    let end = [CONTINUATION, &[0; 4]].concat();
    let without = stream.strip_suffix(&end[..]).unwrap();
    check(without, &schema, &batches);
    check(&[without, &[0; 4]].concat(), &schema, &batches);
    // What follows the end is not looked at.
    check(&[&stream[..], b"something else"].concat(), &schema, &batches);
    assert!(read(&[without, CONTINUATION].concat()).is_err());
    assert!(read(&[without, &[1, 0, 0]].concat()).is_err());
}

#[test]
fn a_buffer_that_claims_to_be_larger_than_anything_is_refused_before_it_is_decompressed() {
    let numbers: Int64Array = (0..1000).map(|i| i / 50).collect();
    let schema: SchemaRef = Schema::new(vec![Field::new("n", DataType::Int64, true)]).into();
    let batch = [RecordBatch::try_new(schema.clone(), vec![Arc::new(numbers)]).unwrap()];
    for compression in &COMPRESSIONS[1..] {
        for bytes in written(&schema, &batch, *compression, DictionaryHandling::Resend) {
            let says = 8000i64.to_le_bytes();
            let at = bytes.windows(8).position(|window| window == says).unwrap();
            let with = |says: i64| {
                let mut claimed = bytes.clone();
                claimed[at..at + 8].copy_from_slice(&says.to_le_bytes());
                read(&claimed)
            };
            assert_eq!(with(8000).unwrap().rows(), 1000);
            let most = FREE + EXPANSION * bytes.len() as u64;
            // An allocation of the larger ones would end the process.
            for wrong in [0, -1, -2, 7999, 8001, most as i64 + 1, i64::MAX / 2, i64::MAX, i64::MIN] {
                assert!(matches!(with(wrong), Err(Error::Input(_))), "{wrong}");
            }
        }
    }
}

#[test]
fn blocks_that_overlap_are_refused() {
    let numbers: Int64Array = (0..1000).collect();
    let schema: SchemaRef = Schema::new(vec![Field::new("n", DataType::Int64, true)]).into();
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(numbers)]).unwrap();
    let [file, _] = written(&schema, &[batch.clone(), batch], None, DictionaryHandling::Resend);
    assert_eq!(read(&file).unwrap().rows(), 2000);
    // The footer has a block for each batch: its place, the length of its metadata, and that of its body of 8,000 bytes
    // and the validity. Both are made longer, over each other.
    let footer = file.len() - 200;
    let blocks: Vec<usize> = (0..file.len() - 24)
        .filter(|&at| at > footer - 200)
        .filter(|&at| {
            let word = |k: usize| i64::from_le_bytes(file[at + 8 * k..][..8].try_into().unwrap());
            (8000..9000).contains(&word(2)) && (100..400).contains(&(word(1) as i32)) && word(0) > 0
        })
        .collect();
    assert_eq!(blocks.len(), 2);
    let mut twice = file.clone();
    twice.copy_within(blocks[0]..blocks[0] + 24, blocks[1]);
    assert_eq!(read(&twice).unwrap().rows(), 2000);
    for at in blocks {
        twice[at + 16..at + 24].copy_from_slice(&(file.len() as i64 / 2 + 100).to_le_bytes());
    }
    assert!(read(&twice).is_err());
}
