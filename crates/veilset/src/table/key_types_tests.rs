//! Which values can be keys, and their text, is one table for all formats: that of the documentation, which this test reads.

use super::tests::{CSV, key, keyed_set, names};
use super::*;
use arrow_array::types::Int64Type;
use arrow_array::*;
use arrow_schema::extension::Uuid;
use arrow_schema::{DataType, Field, Schema};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A value: a column that has it alone, its JSON if that has such values, and its text if it can be a key.
struct Case {
    field: Field,
    array: ArrayRef,
    json: Option<&'static str>,
    text: Option<&'static str>,
}

fn case(array: impl Array + 'static, json: Option<&'static str>, text: Option<&'static str>) -> Case {
    let array: ArrayRef = Arc::new(array);
    Case { field: Field::new("k", array.data_type().clone(), true), array, json, text }
}

/// The rows of the documented table by their first cell, with values of each.
fn cases() -> Vec<(&'static str, Vec<Case>)> {
    let uuid = FixedSizeBinaryArray::try_from_iter([[0x7f; 16]].into_iter()).unwrap();
    let uuid = case(
        uuid,
        Some("\"7f7f7f7f-7f7f-7f7f-7f7f-7f7f7f7f7f7f\""),
        Some("7f7f7f7f-7f7f-7f7f-7f7f-7f7f7f7f7f7f"),
    );
    let uuid = Case { field: uuid.field.with_extension_type(Uuid), ..uuid };
    let period = case(Int64Array::from(vec![660]), None, None);
    let meta = [("ARROW:extension:name".to_string(), "pandas.period".to_string())];
    let period = Case { field: period.field.with_metadata(meta.into()), ..period };
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
    let structure = StructArray::from(vec![(
        Arc::new(Field::new("a", DataType::Int64, true)),
        Arc::new(Int64Array::from(vec![1])) as ArrayRef,
    )]);
    let at = |seconds: i64| TimestampMillisecondArray::from(vec![seconds * 1000]);
    vec![
        (
            "integer",
            vec![
                case(Int64Array::from(vec![42]), Some("42"), Some("42")),
                case(Int8Array::from(vec![0]), Some("0"), Some("0")),
                case(
                    Int64Array::from(vec![i64::MIN]),
                    Some("-9223372036854775808"),
                    Some("-9223372036854775808"),
                ),
                case(
                    UInt64Array::from(vec![u64::MAX]),
                    Some("18446744073709551615"),
                    Some("18446744073709551615"),
                ),
            ],
        ),
        (
            "decimal",
            vec![
                case(
                    Decimal128Array::from(vec![150]).with_precision_and_scale(5, 2).unwrap(),
                    Some("\"1.50\""),
                    Some("1.50"),
                ),
                case(
                    Decimal128Array::from(vec![-5]).with_precision_and_scale(5, 2).unwrap(),
                    Some("\"-0.05\""),
                    Some("-0.05"),
                ),
            ],
        ),
        (
            "boolean",
            vec![
                case(BooleanArray::from(vec![true]), Some("true"), Some("true")),
                case(BooleanArray::from(vec![false]), Some("false"), Some("false")),
            ],
        ),
        ("date", vec![case(Date32Array::from(vec![19_753]), Some("\"2024-01-31\""), Some("2024-01-31"))]),
        (
            "time of day",
            vec![case(
                Time32MillisecondArray::from(vec![45_000_000]),
                Some("\"12:30:00\""),
                Some("12:30:00"),
            )],
        ),
        (
            "timestamp with a zone",
            vec![case(
                at(1_706_702_400).with_timezone("UTC"),
                Some("\"2024-01-31T12:00:00Z\""),
                Some("2024-01-31T12:00:00Z"),
            )],
        ),
        ("UUID", vec![uuid]),
        (
            "floating-point number; in JSON lines, a number with a fraction or an exponent",
            vec![
                case(Float64Array::from(vec![0.5]), Some("0.5"), None),
                case(Float32Array::from(vec![1e3]), Some("1e3"), None),
                case(Float64Array::from(vec![-0.0]), Some("-0"), None),
                case(Float64Array::from(vec![1.0]), Some("1.0"), None),
            ],
        ),
        ("timestamp without a zone", vec![case(at(0), None, None)]),
        ("list, struct, map", vec![case(list, Some("[1]"), None), case(structure, Some("{\"a\": 1}"), None)]),
        ("another extension type of Arrow", vec![period]),
    ]
}

/// The tables that a value is read from, and what each was.
fn tables(case: &Case) -> Vec<(&'static str, Result<Table>)> {
    let schema = Arc::new(Schema::new(vec![case.field.clone()]));
    let batch = RecordBatch::try_new(schema.clone(), vec![case.array.clone()]).unwrap();
    let key = names(&["k"]);
    let mut file = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut file, &schema).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let from = |name, bytes: &[u8]| Table::from_reader(name, bytes, &CSV, Some(&key));
    let mut all = vec![
        ("a frame", Table::from_batches("the frame", &schema, [Ok(batch.clone())], &CSV, Some(&key))),
        ("Arrow", from("a.arrow", &file)),
    ];
    #[cfg(feature = "parquet")]
    {
        let mut file = Vec::new();
        let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut file, schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        all.push(("Parquet", from("a.parquet", &file)));
    }
    if let Some(json) = case.json {
        all.push(("JSON lines", from("a.jsonl", format!("{{\"k\": {json}}}\n").as_bytes())));
    }
    if let Some(text) = case.text {
        all.push(("CSV", from("a.csv", format!("k\n{text}\n").as_bytes())));
        all.push(("quoted CSV", from("a.csv", format!("k\n\"{text}\"\n").as_bytes())));
        let list = ReadOptions { format: Some(Format::List), ..CSV };
        all.push(("a list", Table::from_reader("a.txt", text.as_bytes(), &list, None)));
    }
    all
}

#[test]
fn one_table_says_what_can_be_a_key_in_all_formats() {
    for (kind, cases) in cases() {
        for case in cases {
            for (format, table) in tables(&case) {
                let keyed =
                    table.and_then(|table| keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::Error));
                match (keyed, case.text) {
                    (Ok(keyed), Some(text)) => {
                        assert_eq!(keyed.set.get(0), key(&[text]), "{kind} in {format}")
                    }
                    (Err(Error::Input(e)), None) => {
                        // The column, what it is, and the way out.
                        assert_eq!(e.column.as_deref(), Some("k"), "{kind} in {format}: {}", e.what);
                        let next =
                            ["Convert", "Write", "Flatten"].iter().any(|word| e.next.starts_with(word));
                        assert!(next, "{kind} in {format}: {}", e.next);
                        let place = (format == "JSON lines").then_some(Place::Line(1));
                        assert_eq!(e.row, place, "{kind} in {format}");
                    }
                    (other, _) => panic!("{kind} in {format}: {other:?}"),
                }
            }
        }
    }
}

/// Parquet stores seconds as plain numbers, which would be other keys than the times that they are.
#[cfg(feature = "parquet")]
#[test]
fn what_parquet_stores_as_a_number_is_no_key() {
    let cases = [
        case(Time32SecondArray::from(vec![45_000]), None, None),
        case(TimestampSecondArray::from(vec![0]).with_timezone("UTC"), None, None),
        case(DurationMillisecondArray::from(vec![1]), None, None),
    ];
    for case in cases {
        let (_, table) = tables(&case).into_iter().find(|(format, _)| *format == "Parquet").unwrap();
        let table = table.unwrap();
        let error = keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::Error).unwrap_err().to_string();
        let name = case.array.data_type().to_string();
        assert!(error.contains(&name) && error.contains("knows only how its values are stored"), "{error}");
    }
}

/// The table of the documentation has these types, no others, and for each a text that is right.
#[test]
fn the_documented_table_is_this_one() {
    let page = include_str!("../../../../docs/guide/data.md");
    let table = page.split("| type | text | example |\n|---|---|---|\n").nth(1).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let cases = cases();
    let documented: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(documented, cases.iter().map(|(kind, _)| *kind).collect());
    for row in rows {
        let (_, cases) = cases.iter().find(|(kind, _)| *kind == row[0]).unwrap();
        match cases[0].text {
            None => assert!(row[1].starts_with("cannot be "), "{row:?}"),
            Some(text) => assert_eq!(row[2], format!("`{text}`"), "{row:?}"),
        }
    }
}
