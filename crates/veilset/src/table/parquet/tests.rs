//! Parquet: types, codecs, row groups, damage.

use super::super::tests::texts;
use super::super::*;
use crate::item::{Items, decode_key};
use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use ::parquet::basic::{Compression, Encoding as PageEncoding};
use ::parquet::data_type::{Int32Type as Int32Parquet, Int96, Int96Type as Int96Parquet};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::extension::{EXTENSION_TYPE_NAME_KEY, Uuid};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;

#[path = "damaged_tests.rs"]
mod damaged;

const UTF8: ReadOptions = ReadOptions {
    format: Some(Format::Parquet),
    delimiter: None,
    encoding: Encoding::Utf8,
    headerless: false,
    quoting: Quoting::Doubled,
    multiline_keys: false,
};
const BYTES: ReadOptions = ReadOptions { encoding: Encoding::Bytes, ..UTF8 };
const CSV: ReadOptions = ReadOptions { format: Some(Format::Csv), ..UTF8 };

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.into()).collect()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap()
}

fn file(batch: &RecordBatch, properties: WriterProperties) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    out
}

fn parquet(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    file(&batch(columns), WriterProperties::new())
}

fn read(bytes: &[u8], options: &ReadOptions, columns: Option<&[String]>) -> Result<Table> {
    Table::from_reader("a.parquet", bytes, options, columns)
}

fn written(table: &Table, format: Format) -> Vec<u8> {
    let (rows, mut out) = ((0..table.rows()).collect::<Vec<_>>(), Vec::new());
    write_rows(table, &rows, None, (format, &mut out)).unwrap();
    out
}

/// One column of each type, each with two values and a null, and their texts.
fn all_types() -> Vec<(&'static str, ArrayRef, [&'static str; 2])> {
    let uuid = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        [Some([0x12; 16]), None, Some([0xab; 16])].into_iter(),
        16,
    );
    vec![
        ("i8", Arc::new(Int8Array::from(vec![Some(-128), None, Some(7)])) as ArrayRef, ["-128", "7"]),
        ("i16", Arc::new(Int16Array::from(vec![Some(-1), None, Some(i16::MAX)])), ["-1", "32767"]),
        ("i32", Arc::new(Int32Array::from(vec![Some(0), None, Some(i32::MIN)])), ["0", "-2147483648"]),
        (
            "i64",
            Arc::new(Int64Array::from(vec![Some(42), None, Some(i64::MIN)])),
            ["42", "-9223372036854775808"],
        ),
        ("u8", Arc::new(UInt8Array::from(vec![Some(0), None, Some(255)])), ["0", "255"]),
        ("u16", Arc::new(UInt16Array::from(vec![Some(1), None, Some(65535)])), ["1", "65535"]),
        ("u32", Arc::new(UInt32Array::from(vec![Some(1), None, Some(u32::MAX)])), ["1", "4294967295"]),
        (
            "u64",
            Arc::new(UInt64Array::from(vec![Some(1), None, Some(u64::MAX)])),
            ["1", "18446744073709551615"],
        ),
        ("bool", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])), ["true", "false"]),
        ("f32", Arc::new(Float32Array::from(vec![Some(0.1), None, Some(1e30)])), ["0.1", "1e30"]),
        ("f64", Arc::new(Float64Array::from(vec![Some(-0.0), None, Some(f64::NAN)])), ["-0.0", "NaN"]),
        ("text", Arc::new(StringArray::from(vec![Some(""), None, Some("a\n\"b\"")])), ["", "a\n\"b\""]),
        (
            "dec",
            Arc::new(
                Decimal128Array::from(vec![Some(-5), None, Some(123_450)])
                    .with_precision_and_scale(10, 2)
                    .unwrap(),
            ),
            ["-0.05", "1234.50"],
        ),
        (
            "dec0",
            Arc::new(
                Decimal128Array::from(vec![Some(-5), None, Some(0)]).with_precision_and_scale(38, 0).unwrap(),
            ),
            ["-5", "0"],
        ),
        (
            "wide",
            Arc::new(
                Decimal256Array::from(vec![
                    Some(i256::from_i128(-1)),
                    None,
                    i256::from_string("123456789012345678901234567890123456789012"),
                ])
                .with_precision_and_scale(50, 40)
                .unwrap(),
            ),
            ["-0.0000000000000000000000000000000000000001", "12.3456789012345678901234567890123456789012"],
        ),
        (
            "date",
            Arc::new(Date32Array::from(vec![Some(19_753), None, Some(-719_529)])),
            ["2024-01-31", "-0001-12-31"],
        ),
        (
            "ms",
            Arc::new(Time32MillisecondArray::from(vec![Some(0), None, Some(45_000_120)])),
            ["00:00:00", "12:30:00.12"],
        ),
        (
            "us",
            Arc::new(Time64MicrosecondArray::from(vec![Some(1), None, Some(86_399_000_000)])),
            ["00:00:00.000001", "23:59:59"],
        ),
        (
            "at",
            Arc::new(
                TimestampMicrosecondArray::from(vec![Some(-1), None, Some(1_706_659_200_000_000)])
                    .with_timezone("UTC"),
            ),
            ["1969-12-31T23:59:59.999999Z", "2024-01-31T00:00:00Z"],
        ),
        (
            "local",
            Arc::new(TimestampNanosecondArray::from(vec![Some(i64::MIN), None, Some(1)])),
            ["1677-09-21T00:12:43.145224192", "1970-01-01T00:00:00.000000001"],
        ),
        (
            "uuid",
            Arc::new(uuid.unwrap()),
            ["12121212-1212-1212-1212-121212121212", "abababab-abab-abab-abab-abababababab"],
        ),
    ]
}

fn all_types_file() -> Vec<u8> {
    let columns = all_types();
    let field = |(name, array, _): &(&str, ArrayRef, [&str; 2])| {
        let field = Field::new(*name, array.data_type().clone(), true);
        if *name == "uuid" { field.with_extension_type(Uuid) } else { field }
    };
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(_, array, _)| array.clone()).collect();
    file(&RecordBatch::try_new(schema, arrays).unwrap(), WriterProperties::new())
}

#[test]
fn every_type_has_its_text_and_comes_back_with_its_type() {
    let table = read(&all_types_file(), &UTF8, None).unwrap();
    let expected = all_types();
    let column =
        |i: usize| -> Vec<_> { expected.iter().map(|(_, _, texts)| Some(texts[i].to_string())).collect() };
    assert_eq!(texts(&table), [column(0), vec![None; expected.len()], column(1)]);
    assert!(table.cell(1, 0).is_empty() && table.place(1) == Place::Row(2));

    let again = Bytes::from(written(&table, Format::Parquet));
    let back = ParquetRecordBatchReader::try_new(again.clone(), 100).unwrap().next().unwrap().unwrap();
    for ((name, array, _), field) in expected.iter().zip(back.schema().fields()) {
        let got = back.column_by_name(name).unwrap();
        assert_eq!(got.data_type(), array.data_type(), "{name}");
        assert!(got == array, "{name}: {got:?}");
        assert_eq!(field.extension_type_name(), (*name == "uuid").then_some("arrow.uuid"));
    }
    // CSV has the same texts, and nothing for nulls.
    let csv = Table::from_reader("a.csv", &written(&table, Format::Csv)[..], &CSV, None).unwrap();
    let plain: Vec<Vec<_>> = texts(&table)
        .into_iter()
        .map(|row| row.into_iter().map(|c| Some(c.unwrap_or_default())).collect())
        .collect();
    assert_eq!(texts(&csv), plain);
}

/// A file with a column of timestamps of 96 bits: the day, counted from 1 January 1970, and nanoseconds of it.
fn old_timestamps(values: &[(i32, i64)]) -> Vec<u8> {
    const EPOCH: i32 = 2_440_588;
    let schema = Arc::new(parse_message_type("message m { REQUIRED INT32 n; REQUIRED INT96 at; }").unwrap());
    let mut out = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let old = values.iter().map(|&(day, nanoseconds)| {
        let mut old = Int96::new();
        old.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, day.wrapping_add(EPOCH) as u32);
        old
    });
    let numbers: Vec<i32> = (0..values.len() as i32).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Parquet>().write_batch(&numbers, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Parquet>().write_batch(&old.collect::<Vec<_>>(), None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    out
}

#[test]
fn timestamps_of_96_bits_are_exact_or_an_error() {
    const DAY: i64 = 86_400_000_000_000;
    // 9999-12-31, 0001-01-01, 1582-10-15, and the first and the last day of nanoseconds in 64 bits.
    let [last, first, gregorian, from, to] = [2_932_896, -719_162, -141_427, -106_752, 106_751];
    type Case<'a> = (&'a [(i32, i64)], &'a [&'a str], TimeUnit);
    let cases: [Case<'_>; 4] = [
        (
            &[(0, 0), (last, DAY - 1000), (first, 1000)],
            &["1970-01-01T00:00:00", "9999-12-31T23:59:59.999999", "0001-01-01T00:00:00.000001"],
            TimeUnit::Microsecond,
        ),
        (&[(gregorian, 5000)], &["1582-10-15T00:00:00.000005"], TimeUnit::Microsecond),
        (&[(0, 1), (to, 0)], &["1970-01-01T00:00:00.000000001", "2262-04-11T00:00:00"], TimeUnit::Nanosecond),
        (
            &[(from, DAY - 1), (0, 0)],
            &["1677-09-21T23:59:59.999999999", "1970-01-01T00:00:00"],
            TimeUnit::Nanosecond,
        ),
    ];
    for (values, expected, unit) in cases {
        let bytes = old_timestamps(values);
        let table = read(&bytes, &UTF8, None).unwrap();
        let got: Vec<_> = texts(&table).into_iter().map(|row| row[1].clone().unwrap()).collect();
        assert_eq!(got, expected);
        assert_eq!(table.columns[1].field.data_type(), &DataType::Timestamp(unit, None));
        // In a result, and where only this column is read.
        let again = read(&written(&table, Format::Parquet), &UTF8, Some(&names(&["at"]))).unwrap();
        assert_eq!(
            texts(&again).concat(),
            expected.iter().map(|text| Some(text.to_string())).collect::<Vec<_>>()
        );
        let only = read(&bytes, &UTF8, Some(&names(&["at"]))).unwrap();
        assert_eq!(texts(&only), texts(&again));
    }
    // Days that no type holds, times that none is, and a column that needs both units.
    for (values, row) in [
        (&[(0, 0), (i32::MAX - 2_440_588, 0)][..], 2),
        (&[(0, 0), (0, 0), (0, -1)], 3),
        (&[(0, 1), (last, 0)], 2),
    ] {
        let error = read(&old_timestamps(values), &UTF8, None).unwrap_err();
        let Error::Input(input) = &error else { panic!("{error}") };
        assert_eq!((input.row, input.column.as_deref()), (Some(Place::Row(row)), Some("at")), "{error}");
        // Who does not read the column is not concerned.
        assert_eq!(read(&old_timestamps(values), &UTF8, Some(&names(&["n"]))).unwrap().rows(), values.len());
    }
}

#[test]
fn what_an_extension_type_means_is_not_what_it_stores() {
    let months = Field::new("month", DataType::Int64, true).with_metadata(
        [(EXTENSION_TYPE_NAME_KEY.to_string(), "pandas.period".to_string())].into_iter().collect(),
    );
    let schema = Arc::new(Schema::new(vec![months, Field::new("k", DataType::Utf8, true)]));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![648, 649])), Arc::new(StringArray::from(vec!["a", "b"]))];
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    let handed = Table::from_batches("rows", &schema, [Ok(batch.clone())], &UTF8, None).unwrap();
    let of_file = read(&file(&batch, WriterProperties::new()), &UTF8, None).unwrap();
    let mut ipc = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut ipc, &schema).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let of_arrow =
        Table::from_reader("a.arrow", &ipc[..], &ReadOptions { format: Some(Format::Arrow), ..UTF8 }, None)
            .unwrap();
    for table in [handed, of_file, of_arrow] {
        let key = keyed_set(&table, &[0], Normalise::default(), EmptyKeys::Keep, Duplicates::First).map(drop);
        let keyed =
            keyed_set(&table, &[1], Normalise::default(), EmptyKeys::Keep, Duplicates::First).unwrap();
        let refused = [key, payloads(&table, &keyed, &[0]).map(drop), values(&table, &keyed, 0, 0).map(drop)];
        for refused in refused {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("extension type pandas.period") && error.contains("Convert"), "{error}");
        }
        // It stays in a result.
        let mut result = Batches::default();
        write_rows(&table, &[1], None, &mut result).unwrap();
        assert_eq!(result.batches()[0].column(0).as_primitive::<Int64Type>().values(), &[649]);
    }
}

#[test]
fn the_same_keys_in_csv_and_parquet_are_the_same_items() {
    let table = read(&all_types_file(), &UTF8, None).unwrap();
    let set = |table: &Table, name: &str, encoding| {
        let key = table.columns(&names(&[name])).unwrap();
        assert_eq!(table.encoding, encoding);
        keyed_set(table, &key, Normalise::default(), EmptyKeys::Keep, Duplicates::First)
    };
    for (name, _, [a, b]) in all_types() {
        let csv = format!("k\n\"{}\"\n\"\"\n\"{}\"\n", a.replace('"', "\"\""), b.replace('"', "\"\""));
        let multiline = ReadOptions { multiline_keys: true, ..CSV };
        let csv = Table::from_reader("a.csv", csv.as_bytes(), &multiline, None).unwrap();
        match set(&table, name, Encoding::Utf8) {
            Ok(keyed) => assert!(keyed.set == set(&csv, "k", Encoding::Utf8).unwrap().set, "{name}"),
            Err(Error::Input(e)) => {
                assert!(["f32", "f64", "local"].contains(&name), "{name}: {}", e.what);
                assert!(
                    e.column.as_deref() == Some(name) && e.next.contains("the same way on both sides"),
                    "{e:?}"
                );
            }
            Err(e) => panic!("{name}: {e}"),
        }
    }
    // A null key is an empty one.
    let error =
        keyed_set(&table, &[3], Normalise::default(), EmptyKeys::Error, Duplicates::First).unwrap_err();
    assert!(error.to_string().starts_with("a.parquet, row 2, column \"i64\": the key is empty"), "{error}");
    let twice = parquet(vec![("id", Arc::new(Int64Array::from(vec![5, 6, 5])))]);
    let twice = read(&twice, &UTF8, None).unwrap();
    let error =
        keyed_set(&twice, &[0], Normalise::default(), EmptyKeys::Error, Duplicates::Error).unwrap_err();
    assert!(error.to_string().contains("row 3") && error.to_string().contains("same as on row 1"), "{error}");
}

#[test]
fn dates_agree_with_counting_days() {
    let mut days = -800_000i64;
    let array = Date32Array::from((-800_000..800_000).collect::<Vec<i32>>());
    let texts = super::super::types::texts(&Field::new("d", DataType::Date32, true), &array);
    // Where counting must start to arrive at 1970-01-01.
    let (mut year, mut month, mut day) = (-221i64, 9, 4);
    while days < 800_000 {
        let text = texts.cell((days + 800_000) as usize).unwrap();
        let shown = if (0..=9999).contains(&year) { format!("{year:04}") } else { format!("{year:+05}") };
        assert_eq!(String::from_utf8_lossy(text), format!("{shown}-{month:02}-{day:02}"), "{days}");
        assert_eq!(days == 0, (year, month, day) == (1970, 1, 1));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
        days += 1;
        day += 1;
        if day > last {
            (day, month) = (1, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
}

#[test]
fn codecs_encodings_row_groups_and_dictionaries_do_not_matter() {
    let n = 10_000;
    let ids: Vec<String> = (0..n).map(|i| format!("item {}", i % 700)).collect();
    let dictionary: DictionaryArray<Int32Type> = ids.iter().map(|s| Some(s.as_str())).collect();
    let plain = StringArray::from(ids.clone());
    let numbers = Int64Array::from((0..n as i64).collect::<Vec<_>>());
    let rows = batch(vec![("d", Arc::new(dictionary)), ("s", Arc::new(plain)), ("n", Arc::new(numbers))]);
    let builder = || {
        WriterProperties::builder().set_max_row_group_row_count(Some(1234)).set_data_page_row_count_limit(100)
    };
    let mut cases = vec![
        builder().set_dictionary_enabled(false).set_writer_version(WriterVersion::PARQUET_2_0),
        builder().set_writer_version(WriterVersion::PARQUET_2_0).set_compression(Compression::SNAPPY),
    ];
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
        Compression::BROTLI(Default::default()),
    ] {
        cases.push(builder().set_compression(codec));
    }
    for encoding in [PageEncoding::DELTA_BYTE_ARRAY, PageEncoding::DELTA_LENGTH_BYTE_ARRAY] {
        let column = "s".into();
        cases.push(
            builder().set_column_dictionary_enabled("s".into(), false).set_column_encoding(column, encoding),
        );
    }
    let expected: Vec<Vec<_>> = ids
        .iter()
        .enumerate()
        .map(|(i, id)| vec![Some(id.clone()), Some(id.clone()), Some(i.to_string())])
        .collect();
    let dir = tempfile::tempdir().unwrap();
    for properties in cases {
        let properties = properties.build();
        let name = format!("{:?}", properties.compression(&"s".into()));
        let bytes = file(&rows, properties);
        assert!(texts(&read(&bytes, &UTF8, None).unwrap()) == expected, "{name}");
        let path = dir.path().join("a.PQ");
        std::fs::write(&path, &bytes).unwrap();
        let options = ReadOptions { format: None, ..UTF8 };
        let table = Table::read(&path, &options, Some(&names(&["n", "d", "n"]))).unwrap();
        assert_eq!(table.header(), ["d", "n"]);
        assert!((0..n).all(|i| table.cell(i, 0) == ids[i].as_bytes()), "{name}");
        let none = Table::read(&path, &options, Some(&[])).unwrap();
        assert_eq!((none.rows(), none.header().len()), (n, 0));
    }
}

#[test]
fn columns_without_a_text_matter_only_if_they_are_needed() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("secret")]);
    let inner = StructArray::from(batch(vec![("x", Arc::new(Int64Array::from(vec![1])))]));
    let bytes = parquet(vec![
        ("id", Arc::new(StringArray::from(vec!["a"]))),
        ("tags", Arc::new(lists.finish())),
        ("pair", Arc::new(inner)),
        ("raw", Arc::new(BinaryArray::from(vec![&b"\xff\0"[..]]))),
        ("f", Arc::new(Float64Array::from(vec![1.5]))),
    ]);
    for (column, options, what) in
        [("tags", UTF8, "nested"), ("pair", BYTES, "nested"), ("raw", UTF8, "binary, not text")]
    {
        let error = read(&bytes, &options, Some(&names(&["id", column]))).unwrap_err();
        assert!(matches!(&error, Error::Input(e) if e.column.as_deref() == Some(column)), "{error}");
        assert!(error.to_string().contains(what) && !error.to_string().contains("secret"), "{error}");
    }
    // All columns are all that have a text; that one of the others is needed may come out later.
    let table = read(&bytes, &UTF8, None).unwrap();
    let left_out: Vec<_> = table.unread().iter().map(|unread| unread.name.as_str()).collect();
    assert_eq!((table.header(), &left_out[..]), (&names(&["id", "f"])[..], &["tags", "pair", "raw"][..]));
    assert_eq!(texts(&table), [[Some("a".to_string()), Some("1.5".to_string())]]);
    let error = table.columns(&names(&["id", "tags"])).unwrap_err().to_string();
    assert!(error.starts_with("a.parquet, column \"tags\": the column is nested"), "{error}");
    assert!(read(&bytes, &BYTES, None).unwrap().unread().iter().all(|unread| unread.what.contains("nested")));
    let table = read(&bytes, &BYTES, Some(&names(&["id", "raw", "f"]))).unwrap();
    assert_eq!(
        (table.cell(0, 0), table.cell(0, 1), table.cell(0, 2)),
        (b"a"[..].into(), b"\xff\0"[..].into(), b"1.5"[..].into())
    );
    assert_eq!(texts(&read(&bytes, &UTF8, Some(&names(&["f"]))).unwrap()), [[Some("1.5".to_string())]]);

    // Columns are looked for by name, in what there is.
    let error = read(&bytes, &UTF8, Some(&names(&["ID"]))).unwrap_err().to_string();
    assert!(
        error.starts_with("a.parquet, column \"ID\": there is no such column. Did you mean \"id\"?"),
        "{error}"
    );

    // Values: exact, or not at all.
    let keyed = keyed_set(&table, &[0], Normalise::default(), EmptyKeys::Error, Duplicates::Error).unwrap();
    let error = values(&table, &keyed, 2, 1).unwrap_err().to_string();
    assert!(
        error.contains("column \"f\"") && error.contains("Convert the column to integers or decimals"),
        "{error}"
    );
    let exact = read(&all_types_file(), &UTF8, None).unwrap();
    let keyed = keyed_set(&exact, &[12], Normalise::default(), EmptyKeys::Skip, Duplicates::Error).unwrap();
    assert_eq!(values(&exact, &keyed, 12, 2).unwrap(), [-5, 123_450]);
    assert_eq!(values(&exact, &keyed, 3, 0).unwrap(), [42, i64::MIN.into()]);
}

#[test]
fn a_union_keeps_types_where_the_new_keys_have_them() {
    let bytes = parquet(vec![
        ("id", Arc::new(Int32Array::from(vec![7, 8]))),
        ("day", Arc::new(Date32Array::from(vec![19_753, 19_754]))),
        ("note", Arc::new(StringArray::from(vec![Some("x"), None]))),
    ]);
    let table = read(&bytes, &UTF8, None).unwrap();
    let keyed =
        keyed_set(&table, &[0, 1], Normalise::default(), EmptyKeys::Error, Duplicates::Error).unwrap();
    let item = |cells: &[&str]| {
        let mut out = Vec::new();
        crate::item::encode_key(cells.iter().map(|c| c.as_bytes()), &mut out);
        out
    };
    let sent_names = names(&["theirs"]);
    // (new keys, types of the key columns)
    let cases: [([[&str; 2]; 2], [DataType; 2]); 6] = [
        ([["9", "2024-02-29"], ["-5", ""]], [DataType::Int32, DataType::Date32]),
        ([["007", "2024-02-29"], ["9", "2024-01-01"]], [DataType::Utf8, DataType::Date32]),
        ([["9", "2023-02-29"], ["10", "x"]], [DataType::Int32, DataType::Utf8]),
        ([["2147483648", "2024-1-1"], ["+1", "2024-01-01"]], [DataType::Utf8, DataType::Utf8]),
        ([["9", "2024-02-30"], ["10", "2024-02-01"]], [DataType::Int32, DataType::Utf8]),
        ([["9 ", "2024-13-01"], ["1", "2024-00-01"]], [DataType::Utf8, DataType::Utf8]),
    ];
    for (new, types) in cases {
        let items: Items = new.iter().map(|cells| item(cells)).collect();
        let payloads: Items = new.iter().map(|cells| item(&[&format!("of {}", cells[0])])).collect();
        let sent = SentColumns { names: &sent_names, payloads: &payloads };
        let mut out = Vec::new();
        write_union(
            &table,
            KeyColumns::of(&[0, 1]),
            &keyed,
            NewRows { items: &items, sent: Some(sent) },
            (Format::Parquet, &mut out),
        )
        .unwrap();
        let schema =
            ParquetRecordBatchReader::try_new(Bytes::from(out.clone()), 9).unwrap().next().unwrap().unwrap();
        let got: Vec<_> = schema.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        assert_eq!(got, [&types[..], &[DataType::Utf8, DataType::Utf8]].concat(), "{new:?}");
        // Whatever the types, the cells are these; those that do not exist have no value.
        let back = texts(&read(&out, &UTF8, None).unwrap());
        let some = |s: &str| Some(s.to_string());
        assert_eq!(back[0], [some("7"), some("2024-01-31"), some("x"), None]);
        assert_eq!(back[1], [some("8"), some("2024-02-01"), None, None]);
        let mut order = [0, 1];
        order.sort_by_key(|&i| items.get(i).to_vec());
        for (row, i) in back[2..].iter().zip(order) {
            let day = Some(new[i][1].to_string()).filter(|d| !d.is_empty());
            assert_eq!(*row, [some(new[i][0]), day, None, some(&format!("of {}", new[i][0]))]);
        }
        let mut keys = Vec::new();
        write_keys(
            &table,
            KeyColumns::of(&[1, 0]),
            &new.iter().map(|[a, b]| item(&[b, a])).collect(),
            (Format::Parquet, &mut keys),
        )
        .unwrap();
        let keys = read(&keys, &UTF8, None).unwrap();
        assert_eq!((keys.header(), keys.rows()), (&names(&["day", "id"])[..], 2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_survive_the_way_through_text_and_back(
        ints in prop::collection::vec(prop::option::of(any::<i64>()), 1..50),
        floats in prop::collection::vec(any::<u64>().prop_map(f64::from_bits), 50),
        strings in prop::collection::vec(prop::option::of(".{0,5}"), 50),
    ) {
        let n = ints.len();
        let floats: Vec<f64> = floats[..n].iter().map(|f| if f.is_nan() { f64::NAN } else { *f }).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("i", Arc::new(Int64Array::from(ints.clone()))),
            ("f", Arc::new(Float64Array::from(floats.clone()))),
            ("h", Arc::new(Float32Array::from(floats.iter().map(|&f| f as f32).collect::<Vec<_>>()))),
            ("s", Arc::new(StringArray::from(strings[..n].to_vec()))),
            ("t", Arc::new(TimestampMillisecondArray::from(ints.clone()).with_timezone("UTC"))),
            ("d", Arc::new(Date32Array::from(ints.iter().map(|i| i.map(|i| i as i32)).collect::<Vec<_>>()))),
            ("m", Arc::new(Decimal128Array::from(ints.iter().map(|i| i.map(i128::from)).collect::<Vec<_>>())
                .with_precision_and_scale(19, 7).unwrap())),
        ];
        let before = batch(columns);
        let table = read(&file(&before, WriterProperties::new()), &UTF8, None).unwrap();
        let again = Bytes::from(written(&table, Format::Parquet));
        let back = ParquetRecordBatchReader::try_new(again, 100).unwrap().next().unwrap().unwrap();
        for name in ["i", "s", "t", "d", "m"] {
            prop_assert_eq!(back.column_by_name(name), before.column_by_name(name), "{}", name);
        }
        let bits = |b: &RecordBatch| b.column_by_name("f").unwrap().to_data().buffers()[0].as_slice().to_vec();
        prop_assert_eq!(bits(&back), bits(&before));
        let bits = |b: &RecordBatch| b.column_by_name("h").unwrap().to_data().buffers()[0].as_slice().to_vec();
        prop_assert_eq!(bits(&back), bits(&before));
    }

    #[test]
    fn payloads_arrive_as_they_were_sent(rows in prop::collection::vec((".{0,4}", ".{0,4}"), 1..20)) {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("a", Arc::new(StringArray::from(rows.iter().map(|r| r.0.clone()).collect::<Vec<_>>()))),
            ("b", Arc::new(StringArray::from(rows.iter().map(|r| r.1.clone()).collect::<Vec<_>>()))),
            ("i", Arc::new(Int64Array::from((0..rows.len() as i64).collect::<Vec<_>>()))),
        ];
        let table = read(&parquet(columns), &UTF8, None).unwrap();
        let keyed = keyed_set(&table, &[2], Normalise::default(), EmptyKeys::Error, Duplicates::Error).unwrap();
        let payloads = payloads(&table, &keyed, &[1, 0]).unwrap();
        for (i, (a, b)) in rows.iter().enumerate() {
            prop_assert_eq!(decode_key(payloads.get(i), 2), Some(vec![b.as_bytes(), a.as_bytes()]));
        }
    }
}

/// What is a month in one file is no number of another.
#[test]
fn files_whose_columns_mean_different_things_are_not_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let file_of = |name: &str, meaning: Option<&str>| {
        let metadata = meaning.map(|of| (EXTENSION_TYPE_NAME_KEY.to_string(), of.to_string()));
        let field = Field::new("k", DataType::Int64, true).with_metadata(metadata.into_iter().collect());
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![648]))];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), columns).unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, file(&batch, WriterProperties::new())).unwrap();
        path
    };
    let [plain, month, again] =
        [("a", None), ("b", Some("pandas.period")), ("c", None)].map(|(name, of)| file_of(name, of));
    let all = |files: &[std::path::PathBuf]| Table::read_all(files, &UTF8, None, &|_| Ok(()));
    assert_eq!(all(&[plain.clone(), again]).unwrap().rows(), 2);
    for files in [[plain.clone(), month.clone()], [month, plain]] {
        let error = all(&files).unwrap_err().to_string();
        assert!(
            error.contains("pandas.period") && error.contains("Int64") && error.contains("same types"),
            "{error}"
        );
    }
}
