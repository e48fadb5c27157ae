//! Arrow files and streams, compressed or not, are read as the batches that are in them; what is damaged, or claims to be
//! larger than it can be, is refused.

use super::super::batches::tests::many;
use super::super::tests::CSV;
use super::super::{Format, ReadOptions, Table};
use super::{CONTINUATION, EXPANSION, FREE};
use crate::error::{Error, Result};
use arrow_array::types::Int8Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StructArray};
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

/// The same bytes with another number of bits in the type of the column that is an integer of 64 bits.
fn with_bits(bytes: &[u8], bits: i32) -> Vec<u8> {
    // The type in the schema: its table ends with the number of bits and whether there is a sign.
    let typed = |of: DataType| {
        let schema: SchemaRef = Schema::new(vec![Field::new("n", of, true)]).into();
        written(&schema, &[], None, DictionaryHandling::Resend)[1].clone()
    };
    let (long, short) = (typed(DataType::Int64), typed(DataType::Int32));
    let at = (0..long.len()).find(|&at| (long[at], short[at]) == (64, 32)).unwrap();
    let table = &long[at - 4..at + 8];
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> = (0..bytes.len() - 12).filter(|&at| bytes[at..].starts_with(table)).collect();
    assert!(!places.is_empty());
    for place in places {
        bytes[place + 4..place + 8].copy_from_slice(&bits.to_le_bytes());
    }
    bytes
}

#[test]
fn a_column_of_an_unknown_type_matters_only_if_it_is_needed() {
    let wide = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let words = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let nested =
        StructArray::from(vec![(Arc::new(Field::new("n", DataType::Int64, true)), wide.clone() as ArrayRef)]);
    let fields = |inner: Field| {
        vec![Field::new("w", DataType::Utf8, true), inner, Field::new("v", DataType::Utf8, true)]
    };
    let cases: [(Field, ArrayRef, &str); 2] = [
        (Field::new("n", DataType::Int64, true), wide, "(integer of 128 bits)"),
        (
            Field::new("n", nested.data_type().clone(), true),
            Arc::new(nested),
            "(Struct with an unknown type in it)",
        ),
    ];
    for (field, array, of_type) in cases {
        let schema: SchemaRef = Schema::new(fields(field)).into();
        let batch = RecordBatch::try_new(schema.clone(), vec![words.clone(), array, words.clone()]).unwrap();
        for compression in COMPRESSIONS {
            for bytes in
                written(&schema, std::slice::from_ref(&batch), compression, DictionaryHandling::Resend)
            {
                let bytes = with_bits(&bytes, 128);
                let options = ReadOptions { format: Some(Format::Arrow), ..CSV };
                let named = |columns: &[&str]| {
                    let columns: Vec<String> = columns.iter().map(|&name| name.into()).collect();
                    Table::from_reader("f", &bytes[..], &options, Some(&columns))
                };
                let table = named(&["w"]).unwrap();
                assert_eq!((table.header().len(), table.rows(), &table.cell(2, 0)[..]), (1, 3, &b"c"[..]));
                assert_eq!(&named(&["v"]).unwrap().cell(1, 0)[..], b"b");
                let Err(Error::Input(e)) = named(&["w", "n"]) else { panic!("read") };
                assert!(e.what.contains(of_type) && e.column.as_deref() == Some("n"), "{e:?}");
                // All columns: those that can be read, and a word about the other.
                let whole = read(&bytes).unwrap();
                assert_eq!((whole.header(), whole.unread.len()), (&["w".to_string(), "v".into()][..], 1));
                assert!(whole.unread[0].what.contains(of_type), "{:?}", whole.unread);
                let names = super::names("f", bytes.clone(), &options).unwrap();
                assert_eq!(names, ["w", "v"]);
                assert!(named(&["x"]).unwrap_err().to_string().contains("no such column"));
            }
        }
    }
}

#[test]
fn a_variant_that_is_not_read_is_not_called_damaged() {
    let numbers: Int64Array = (0..1000).map(|i| i / 50).collect();
    let schema: SchemaRef = Schema::new(vec![Field::new("n", DataType::Int64, true)]).into();
    let batch = [RecordBatch::try_new(schema.clone(), vec![Arc::new(numbers)]).unwrap()];
    let [_, zstd] = written(&schema, &batch, Some(CompressionType::ZSTD), DictionaryHandling::Resend);
    // Each byte that holds 1 becomes 9: one of them is the codec, and others are versions.
    let ones = (0..zstd.len()).filter(|&at| zstd[at] == 1);
    let said: Vec<String> = ones
        .filter_map(|at| {
            let mut other = zstd.clone();
            other[at] = 9;
            read(&other).err().map(|e| e.to_string())
        })
        .collect();
    assert!(said.iter().any(|said| said.contains("compressed with codec 9 of the format")), "{said:?}");
    // The version of the metadata is a number of 16 bits, 4.
    let newer: Vec<String> = (0..zstd.len() - 1)
        .filter(|&at| zstd[at..at + 2] == [4, 0])
        .filter_map(|at| {
            let mut other = zstd.clone();
            other[at] = 5;
            read(&other).err().map(|e| e.to_string())
        })
        .collect();
    assert!(newer.iter().any(|said| said.contains("version 6 of the format's metadata")), "{newer:?}");
    for other in
        [&b"PK\x03\x04 and more of it"[..], b"FEA1\0\0\0\0 and more of it", b"PAR1\x15\x04 and more of it"]
    {
        let said = read(other).unwrap_err().to_string();
        let named = ["zip", "Feather", "Parquet"].iter().any(|name| said.contains(name));
        assert!(named && !said.contains("Arrow"), "{said}");
    }
}
