//! Tables of Arrow batches give the same as the text of their cells, and keep the types of their columns.

use super::super::tests::{CSV, RAW, key, names};
use super::super::{
    Duplicates, EmptyKeys, Format, KeyColumns, NewRows, Normalise, ReadOptions, SentColumns, Table,
    check_output, keyed_set, payloads, values, write_keys, write_rows, write_union,
};
use super::Batches;
use crate::error::{Error, Place, Result};
use crate::item::Items;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

/// A column, and its values as text; `None` if they have no text.
type Case = (Field, ArrayRef, Option<[Option<&'static str>; 3]>);

/// Columns of many types.
fn columns() -> Vec<Case> {
    fn column(name: &str, array: impl Array + 'static, texts: Option<[Option<&'static str>; 3]>) -> Case {
        (Field::new(name, array.data_type().clone(), true), Arc::new(array), texts)
    }
    let some = |a, b, c| Some([Some(a), Some(b), Some(c)]);
    let words = ["ann", "", "bob"];
    let dictionary = |keys: [Option<i8>; 3], values: ArrayRef| {
        DictionaryArray::<Int8Type>::new(Int8Array::from(keys.to_vec()), values)
    };
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None, Some(vec![])]);
    vec![
        column("utf8", StringArray::from(words.to_vec()), some("ann", "", "bob")),
        column("large", LargeStringArray::from(words.to_vec()), some("ann", "", "bob")),
        column("view", StringViewArray::from(words.to_vec()), some("ann", "", "bob")),
        column(
            "dictionary",
            dictionary(
                [Some(1), None, Some(0)],
                Arc::new(StringArray::from(vec![Some("x"), Some("y"), None])),
            ),
            Some([Some("y"), None, Some("x")]),
        ),
        column(
            "null_in_dictionary",
            dictionary([Some(1), Some(1), Some(0)], Arc::new(LargeStringArray::from(vec![Some("x"), None]))),
            Some([None, None, Some("x")]),
        ),
        column("nulls_in_dictionary", dictionary([None; 3], Arc::new(NullArray::new(0))), Some([None; 3])),
        column("int", Int64Array::from(vec![Some(-7), None, Some(42)]), Some([Some("-7"), None, Some("42")])),
        column("bool", BooleanArray::from(vec![true, false, true]), some("true", "false", "true")),
        column("float", Float64Array::from(vec![0.1, 1e300, -0.0]), some("0.1", "1e300", "-0.0")),
        column(
            "decimal",
            Decimal128Array::from(vec![150, -5, 0]).with_precision_and_scale(10, 2).unwrap(),
            some("1.50", "-0.05", "0.00"),
        ),
        column(
            "time",
            TimestampNanosecondArray::from(vec![0, 1, 2]).with_timezone("Europe/Rome"),
            some("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000001Z", "1970-01-01T00:00:00.000000002Z"),
        ),
        column(
            "no_zone",
            TimestampSecondArray::from(vec![0, 1, 2]).with_timezone(""),
            some("1970-01-01T00:00:00", "1970-01-01T00:00:01", "1970-01-01T00:00:02"),
        ),
        column("nothing", NullArray::new(3), Some([None; 3])),
        column("list", list, None),
        column("duration", DurationSecondArray::from(vec![1, 2, 3]), None),
    ]
}

/// All of them, as two batches with an empty one between.
pub(in crate::table) fn many() -> (SchemaRef, Vec<RecordBatch>) {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns().into_iter().map(|(f, a, _)| (f, a)).unzip();
    let schema: SchemaRef = Schema::new(fields).into();
    let all = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    (schema, vec![all.slice(0, 1), all.slice(0, 0), all.slice(1, 2)])
}

fn table(
    (schema, batches): (SchemaRef, Vec<RecordBatch>),
    options: &ReadOptions,
    columns: Option<&[String]>,
) -> Result<Table> {
    Table::from_batches("frame", &schema, batches.into_iter().map(Ok), options, columns)
}

fn strings(name: &str, values: &[&str]) -> (SchemaRef, Vec<RecordBatch>) {
    let schema: SchemaRef = Schema::new(vec![Field::new(name, DataType::Utf8, true)]).into();
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(StringArray::from(values.to_vec()))]);
    (schema, vec![batch.unwrap()])
}

/// The arrays of a result, its batches put together.
fn arrays(of: &Batches) -> Vec<ArrayRef> {
    let columns: Vec<usize> = (0..of.schema().unwrap().fields().len()).collect();
    let mut taken = Vec::new();
    let take = &mut |_, _, arrays| {
        taken.push(arrays);
        Ok(())
    };
    of.take(0..of.rows(), &columns, of.rows(), take).unwrap();
    taken.pop().unwrap()
}

#[test]
fn cells_have_the_text_of_their_type_in_every_batch() {
    let table = table(many(), &CSV, None).unwrap();
    assert_eq!((table.rows(), table.header().len()), (3, columns().len()));
    for (at, (field, _, texts)) in columns().into_iter().enumerate() {
        for row in [2, 0, 1] {
            let expected = texts.and_then(|texts| texts[row]).unwrap_or_default();
            assert_eq!(table.cell(row, at), expected.as_bytes(), "{field}, row {row}");
            let text = texts.and_then(|texts| texts[row]);
            let same = |_: usize, cells: &[Option<&[u8]>]| {
                assert_eq!(cells, [text.map(str::as_bytes)], "{field}, row {row}");
                Ok(())
            };
            table.each_row([row], &[at], same).unwrap();
        }
    }
    assert_eq!(table.place(2), Place::Row(3));
}

#[test]
fn a_result_has_the_values_of_the_columns_as_they_are() {
    let (schema, batches) = many();
    let whole = arrow_select::concat::concat_batches(&schema, &batches).unwrap();
    let table = table((schema.clone(), batches), &CSV, None).unwrap();
    let mut payloads = Items::new();
    for cell in ["x", "", "z"] {
        payloads.push(&key(&[cell]));
    }
    let sent = SentColumns { names: &names(&["theirs"]), payloads: &payloads };
    for rows in [vec![], vec![1], vec![2, 0], vec![0, 1, 2]] {
        let (mut result, mut with) = (Batches::default(), Batches::default());
        write_rows(&table, &rows, None, &mut result).unwrap();
        assert_eq!(result.schema().unwrap(), &schema);
        let taken = UInt32Array::from_iter_values(rows.iter().map(|&row| row as u32));
        let expected = arrow_select::take::take_record_batch(&whole, &taken).unwrap();
        if !rows.is_empty() {
            assert_eq!(arrays(&result), expected.columns());
        }
        if rows.len() == 3 {
            write_rows(&table, &rows, Some(sent), &mut with).unwrap();
            let theirs = arrays(&with).pop().unwrap();
            assert_eq!(theirs.as_ref(), &StringArray::from(vec!["x", "", "z"]) as &dyn Array);
        }
    }
}

#[test]
fn a_union_has_empty_cells_beside_new_keys_and_text_where_a_key_is_no_value() {
    let (schema, batches) = many();
    let table = table((schema.clone(), batches), &CSV, None).unwrap();
    let at = |name: &str| schema.index_of(name).unwrap();
    for (name, new, becomes) in [
        ("int", "5", DataType::Int64),
        ("int", "five", DataType::Utf8),
        ("int", "05", DataType::Utf8),
        ("utf8", "cy", DataType::Utf8),
        ("view", "cy", DataType::Utf8View),
        ("dictionary", "cy", DataType::Utf8),
        ("null_in_dictionary", "cy", DataType::LargeUtf8),
        ("decimal", "2.25", DataType::Decimal128(10, 2)),
        ("decimal", "2.2", DataType::Utf8),
        (
            "time",
            "1970-01-01T00:00:01Z",
            DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Rome".into())),
        ),
    ] {
        let place = at(name);
        let plain = Normalise::default();
        let keyed = keyed_set(&table, &[place], plain, EmptyKeys::Keep, Duplicates::First).unwrap();
        let mut items = Items::new();
        items.push(&key(&[new]));
        let mut payload = Items::new();
        payload.push(&key(&["theirs"]));
        let sent = SentColumns { names: &names(&["sent"]), payloads: &payload };
        let mut result = Batches::default();
        write_union(
            &table,
            KeyColumns::of(&[place]),
            &keyed,
            NewRows { items: &items, sent: Some(sent) },
            &mut result,
        )
        .unwrap();
        let (ours, all) = (keyed.rows.len(), keyed.rows.len() + 1);
        assert_eq!(result.rows(), all, "{name}");
        assert_eq!(result.schema().unwrap().field(place).data_type(), &becomes, "{name}");
        let read = Table::from_batches(
            "again",
            result.schema().unwrap(),
            result.batches().iter().cloned().map(Ok),
            &CSV,
            None,
        );
        let read = read.unwrap();
        assert_eq!(read.cell(ours, place), new.as_bytes(), "{name}");
        for (i, &row) in keyed.rows.iter().enumerate() {
            assert_eq!(read.cell(i, place), table.cell(row as usize, place), "{name}");
            assert!(read.cell(i, schema.fields().len()).is_empty());
        }
        assert_eq!(&read.cell(ours, schema.fields().len())[..], b"theirs");
        for (other, array) in arrays(&result).iter().enumerate().take(schema.fields().len()) {
            if other != place {
                assert_eq!(array.data_type(), schema.field(other).data_type());
                assert!(array.logical_nulls().is_some_and(|nulls| nulls.is_null(ours)), "{name}, {other}");
            }
        }
        let mut keys = Batches::default();
        write_keys(&table, KeyColumns::of(&[place]), &items, &mut keys).unwrap();
        assert_eq!((keys.rows(), keys.schema().unwrap().field(0).data_type()), (1, &becomes), "{name}");
    }
}

#[test]
fn files_of_every_format_are_written_from_batches_and_read_again() {
    let (schema, batches) = many();
    let texts: Vec<String> = columns().iter().filter(|c| c.2.is_some()).map(|c| c.0.name().clone()).collect();
    let source = table((schema, batches), &CSV, Some(&texts)).unwrap();
    let rows = [2, 0, 1];
    for format in [Format::Csv, Format::Parquet, Format::Arrow] {
        let mut file = Vec::new();
        write_rows(&source, &rows, None, (format, &mut file)).unwrap();
        let options = ReadOptions { format: Some(format), ..CSV };
        let again = Table::from_reader("f", &file[..], &options, None).unwrap();
        assert_eq!(again.header(), source.header());
        for (i, &row) in rows.iter().enumerate() {
            for (at, name) in texts.iter().enumerate() {
                assert_eq!(again.cell(i, at), source.cell(row, at), "{format}, {name}");
            }
        }
    }
}

#[test]
fn keys_payloads_and_values_are_those_of_the_same_csv() {
    let csv = "k,n,v\na,1,1.5\nb,2,2\na,3,4\n";
    let text = Table::from_reader("a.csv", csv.as_bytes(), &CSV, None).unwrap();
    let schema: SchemaRef = Schema::new(vec![
        Field::new("k", DataType::Dictionary(DataType::Int8.into(), DataType::Utf8.into()), true),
        Field::new("n", DataType::UInt8, true),
        Field::new("v", DataType::Utf8View, true),
    ])
    .into();
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(DictionaryArray::<Int8Type>::from_iter(["a", "b", "a"])),
        Arc::new(UInt8Array::from(vec![1, 2, 3])),
        Arc::new(StringViewArray::from(vec!["1.5", "2", "4"])),
    ];
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let frame = table((schema, vec![batch.slice(0, 2), batch.slice(2, 1)]), &CSV, None).unwrap();
    let of = |table: &Table| {
        let keyed = keyed_set(table, &[0], Normalise::default(), EmptyKeys::Error, Duplicates::Add).unwrap();
        let sent = payloads(table, &keyed, &[1, 0]).unwrap();
        let sums = values(table, &keyed, 2, 1).unwrap();
        let items: Vec<_> = (0..keyed.set.len()).map(|i| keyed.set.get(i).to_vec()).collect();
        (items, sent.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), sums, keyed.rows)
    };
    assert_eq!(of(&frame), of(&text));
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    let refused = |result: Result<Table>, words: &[&str]| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Input(_)), "{error}");
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
    };
    let (schema, batches) = strings("k", &["a"]);
    refused(
        table((schema.clone(), batches.clone()), &CSV, Some(&names(&["x"]))),
        &["\"x\"", "no such column"],
    );
    let (_, others) = strings("other", &["b"]);
    refused(table((schema, [batches, others].concat()), &CSV, None), &["different columns"]);

    let whole = table(many(), &CSV, None).unwrap();
    let plain = Normalise::default();
    let at = |name: &str| whole.columns(&names(&[name])).unwrap()[0];
    for (name, words) in [("list", "nested"), ("duration", "does not read"), ("float", "floating-point")] {
        let error = keyed_set(&whole, &[at(name)], plain, EmptyKeys::Keep, Duplicates::First).unwrap_err();
        assert!(error.to_string().contains(words) && error.to_string().contains(name), "{error}");
    }
    let keyed = keyed_set(&whole, &[at("utf8")], plain, EmptyKeys::Keep, Duplicates::First).unwrap();
    for name in ["list", "duration"] {
        assert!(payloads(&whole, &keyed, &[at(name)]).unwrap_err().to_string().contains(name));
        assert!(values(&whole, &keyed, at(name), 0).unwrap_err().to_string().contains(name));
    }
    let error = keyed_set(&whole, &[at("int")], plain, EmptyKeys::Error, Duplicates::First).unwrap_err();
    assert!(error.to_string().contains("row 2, column \"int\": the key is empty"), "{error}");
    // A result of text cannot have them, and not every type is in Parquet.
    let refused_output = |table: &Table, format| check_output(table, &[], format).unwrap_err().to_string();
    assert!(refused_output(&whole, Format::Csv).contains("\"list\": the column is nested"));
    let interval: ArrayRef = Arc::new(IntervalMonthDayNanoArray::new_null(1));
    let schema: SchemaRef = Schema::new(vec![Field::new("i", interval.data_type().clone(), true)]).into();
    let batch = RecordBatch::try_new(schema.clone(), vec![interval]).unwrap();
    let strange = table((schema, vec![batch]), &CSV, None).unwrap();
    assert!(refused_output(&strange, Format::Parquet).contains("\"i\": Parquet has no type"));
    check_output(&strange, &[], Format::Arrow).unwrap();

    // A decimal with more digits than its type has, and a time that no day has.
    let wide: ArrayRef =
        Arc::new(Decimal128Array::from(vec![1, 12345]).with_data_type(DataType::Decimal128(4, 0)));
    let late: ArrayRef = Arc::new(Time32SecondArray::from(vec![0, 86_400]));
    for array in [wide, late] {
        let schema: SchemaRef = Schema::new(vec![Field::new("c", array.data_type().clone(), true)]).into();
        let batch = RecordBatch::try_new(schema.clone(), vec![array]).unwrap();
        refused(table((schema, vec![batch]), &CSV, None), &["\"c\""]);
    }
    // A failure instead of a batch is passed on.
    let (schema, _) = strings("k", &[]);
    let failure = Err(Error::Input(match whole.error("gone", "Look") {
        Error::Input(e) => e,
        e => panic!("{e}"),
    }));
    let failed = Table::from_batches("frame", &schema, [failure], &CSV, None);
    refused(failed, &["gone"]);
}

#[test]
fn bytes_are_keys_if_both_sides_say_so() {
    let array: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\xff"[..], b"a"]));
    let schema: SchemaRef = Schema::new(vec![Field::new("b", DataType::Binary, false)]).into();
    let batch = RecordBatch::try_new(schema.clone(), vec![array]).unwrap();
    let keys = |options| {
        let table = table((schema.clone(), vec![batch.clone()]), options, None)?;
        keyed_set(&table, &[0], Normalise::default(), EmptyKeys::Error, Duplicates::First)
    };
    assert_eq!(keys(&RAW).unwrap().set.len(), 2);
    assert!(keys(&CSV).unwrap_err().to_string().contains("binary"));
}

#[test]
fn seconds_are_milliseconds_in_parquet_and_what_it_has_no_type_for_is_refused() {
    let of = |array: ArrayRef| {
        let schema: SchemaRef = Schema::new(vec![Field::new("c", array.data_type().clone(), true)]).into();
        let batch = RecordBatch::try_new(schema.clone(), vec![array]).unwrap();
        table((schema, vec![batch]), &CSV, None).unwrap()
    };
    let instants = TimestampSecondArray::from(vec![Some(1), None, Some(-1)]);
    let whole: ArrayRef = Arc::new(instants.clone().with_timezone("UTC"));
    for seconds in [whole, Arc::new(instants), Arc::new(Time32SecondArray::from(vec![1, 2, 3]))] {
        let ours = of(seconds);
        check_output(&ours, &[], Format::Parquet).unwrap();
        let mut file = Vec::new();
        write_rows(&ours, &[2, 1, 0], None, (Format::Parquet, &mut file)).unwrap();
        let options = ReadOptions { format: Some(Format::Parquet), ..CSV };
        let again = Table::from_reader("f", &file[..], &options, None).unwrap();
        assert!([2, 1, 0].into_iter().enumerate().all(|(i, row)| again.cell(i, 0) == ours.cell(row, 0)));
    }
    let inside = Field::new("i", DataType::Timestamp(TimeUnit::Second, None), true);
    let refused: [ArrayRef; 3] = [
        Arc::new(DurationSecondArray::from(vec![1])),
        new_null_array(&DataType::List(inside.into()), 1),
        Arc::new(TimestampSecondArray::from(vec![i64::MAX / 1000 + 1])),
    ];
    for array in refused {
        let error = check_output(&of(array), &[], Format::Parquet).unwrap_err().to_string();
        assert!(error.contains("column \"c\": Parquet has no"), "{error}");
    }
}

#[test]
fn columns_of_an_impossible_width_are_refused_when_they_are_read() {
    let list = |inner: DataType, n| DataType::FixedSizeList(Field::new("i", inner, true).into(), n);
    let pair = |t: DataType| DataType::Struct(vec![Field::new("p", t, true)].into());
    for (data_type, kept) in [
        (DataType::FixedSizeBinary(4), true),
        (DataType::FixedSizeBinary(-1), false),
        (DataType::FixedSizeBinary(i32::MAX), false),
        (list(DataType::Int8, 3), true),
        (list(DataType::Int8, -1), false),
        (list(DataType::Int8, i32::MAX), false),
        (pair(list(list(DataType::Int32, 1 << 20), 1 << 20)), false),
        (pair(list(list(DataType::Int32, 2), 2)), true),
    ] {
        let schema: SchemaRef = Schema::new(vec![Field::new("c", data_type.clone(), true)]).into();
        let read = Table::from_batches("frame", &schema, [], &CSV, None);
        assert_eq!(read.is_ok(), kept, "{data_type}");
    }
}

#[test]
fn columns_that_cannot_be_taken_row_by_row_are_refused_when_they_are_read() {
    // Another program may let the entries of a map be missing, which what takes them does not expect.
    let entries = |nullable| {
        let fields = vec![Field::new("k", DataType::Utf8, false), Field::new("v", DataType::Int32, true)];
        Field::new("entries", DataType::Struct(fields.into()), nullable)
    };
    for (nullable, words) in
        [(false, None), (true, Some("column \"m\": the column has a type that veilset does not keep"))]
    {
        let map = DataType::Map(entries(nullable).into(), false);
        let schema: SchemaRef = Schema::new(vec![Field::new("m", map, true)]).into();
        match (Table::from_batches("frame", &schema, [], &CSV, None), words) {
            (Ok(table), None) => assert_eq!(table.rows(), 0),
            (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{error}"),
            (outcome, _) => panic!("{outcome:?}"),
        }
    }
}

/// Numbers in a dictionary have no text here, so they cannot be written anew.
#[test]
fn values_of_a_dictionary_are_written_as_they_are_or_not_at_all() {
    let numbers = |values: Vec<i64>| {
        Arc::new(DictionaryArray::new(Int8Array::from(vec![0, 1]), Arc::new(Int64Array::from(values))))
    };
    let batches = [numbers(vec![5, 6]), numbers(vec![7, 8])].map(|array| {
        let field = Field::new("d", array.data_type().clone(), true);
        RecordBatch::try_new(Schema::new(vec![field]).into(), vec![array]).unwrap()
    });
    let table = table((batches[0].schema(), batches.to_vec()), &CSV, None).unwrap();
    assert!(table.check_arrow_file().is_err());
    let (mut memory, mut file) = (Batches::default(), Vec::new());
    write_rows(&table, &[0, 3], None, &mut memory).unwrap();
    let array = arrays(&memory).remove(0);
    let array = array.as_dictionary::<Int8Type>().downcast_dict::<Int64Array>().unwrap();
    assert_eq!(array.into_iter().collect::<Vec<_>>(), [Some(5), Some(8)]);
    write_rows(&table, &[0, 3], None, (Format::Arrow, &mut file)).unwrap();
    let options = ReadOptions { format: Some(Format::Arrow), ..CSV };
    let again = Table::from_reader("f", &file[..], &options, None).unwrap();
    let array = again.batches.batches()[0].column(0).clone();
    let array = array.as_dictionary::<Int8Type>().downcast_dict::<Int64Array>().unwrap();
    assert_eq!(array.into_iter().collect::<Vec<_>>(), [Some(5), Some(8)]);
}
