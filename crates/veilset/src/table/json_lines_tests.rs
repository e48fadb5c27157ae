use super::super::tests::{CSV, names, texts};
use super::super::{Duplicates, EmptyKeys, Normalise, Table, keyed_set};
use crate::error::{Error, Place};

fn read(text: &str, columns: Option<&[&str]>) -> crate::error::Result<Table> {
    Table::from_reader("a.jsonl", text.as_bytes(), &CSV, columns.map(names).as_deref())
}

fn rows(table: &Table) -> Vec<Vec<Option<String>>> {
    texts(table)
}

fn some(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|&cell| Some(cell.to_string()).filter(|cell| cell != "-")).collect()
}

#[test]
fn values_are_cells_as_they_are_written() {
    let text = "\u{feff}{\"id\": 1, \"name\": \"Ann \\\"\\u00e9\\\"\", \"x\": 1.50}\r\n\n\
                {\"x\": null, \"id\": -2e3, \"more\": true}\n{}\n  {\"name\":\"\",\"list\":[1, {\"a\":2}]}";
    let table = read(text, None).unwrap();
    assert_eq!(table.header(), names(&["id", "name", "x", "more", "list"]));
    let expected = [
        some(&["1", "Ann \"é\"", "1.50", "-", "-"]),
        some(&["-2e3", "-", "-", "true", "-"]),
        some(&["-", "-", "-", "-", "-"]),
        some(&["-", "", "-", "-", "[1, {\"a\":2}]"]),
    ];
    assert_eq!(rows(&table), expected);
    assert_eq!([0, 1, 2, 3].map(|row| table.place(row)), [1, 3, 4, 5].map(Place::Line));
    // Only what is needed, in the order asked for.
    let table = read(text, Some(&["x", "id"])).unwrap();
    assert_eq!(table.header(), names(&["x", "id"]));
    assert_eq!(rows(&table)[..2], [some(&["1.50", "1"]), some(&["-", "-2e3"])]);
    let table = read(&text.replace("-2e3", "-2"), Some(&["x", "id"])).unwrap();
    let set = keyed_set(&table, &[1], Normalise::default(), EmptyKeys::Skip, Duplicates::First).unwrap();
    assert_eq!((set.set.len(), set.skipped), (2, 2));
}

#[test]
fn many_columns_that_come_late_leave_the_earlier_rows_as_they_are() {
    let text: String = (0..300).map(|i| format!("{{\"k\": {i}, \"c{}\": \"v{i}\"}}\n", i / 3)).collect();
    let table = read(&text, None).unwrap();
    assert_eq!((table.header().len(), table.rows()), (101, 300));
    for row in 0..300 {
        assert_eq!(&table.cell(row, 0)[..], row.to_string().as_bytes());
        for column in 0..100 {
            let expected = if row / 3 == column { format!("v{row}") } else { String::new() };
            assert_eq!(&table.cell(row, column + 1)[..], expected.as_bytes(), "row {row}, column {column}");
        }
    }
}

#[test]
fn what_is_no_row_is_refused_with_its_line() {
    let cases = [
        ("{\"a\":1}\n[1]\n", 2, "not a JSON object"),
        ("{\"a\":1}\n{\"a\":1", 2, "does not end on its line"),
        ("{\n  \"a\": 1\n}\n", 1, "does not end on its line"),
        ("{\"a\":1} {\"a\":2}\n", 1, "not a JSON object"),
        ("{\"a\":1}\n\n{\"a\":1,\"a\":2}\n", 3, "twice"),
        ("{\"a\":\"\\ud800\"}\n", 1, "not a JSON object"),
        ("a,b\n1,2\n", 1, "not a JSON object"),
    ];
    for (text, line, words) in cases {
        let Err(Error::Input(e)) = read(text, None) else { panic!("{text}") };
        assert_eq!(e.row, Some(Place::Line(line)), "{text}: {e:?}");
        assert!(e.what.contains(words) && !e.what.contains("ud800"), "{text}: {e:?}");
    }
    assert!(read("", None).unwrap_err().to_string().contains("empty"));
    assert_eq!(read("", Some(&["a"])).unwrap().rows(), 0);
    let error = read("{\"a\":1}\n{\"b\":2}\n", Some(&["A"])).unwrap_err().to_string();
    assert!(error.contains("Did you mean \"a\""), "{error}");
    // No more columns than the documentation says, unless they are named.
    let most: String = (0..4096).map(|i| format!("{{\"c{i}\":1}}\n")).collect();
    assert_eq!(read(&most, None).unwrap().header().len(), 4096);
    let wide: String = (0..5000).map(|i| format!("{{\"c{i}\":1}}\n")).collect();
    assert!(read(&wide, None).unwrap_err().to_string().contains("at most as many columns"));
    assert_eq!(read(&wide, Some(&["c4999"])).unwrap().rows(), 5000);
    let invalid = [b"{\"a\":\"", &b"\xff"[..], b"\"}\n"].concat();
    assert!(matches!(Table::from_reader("a.jsonl", &invalid[..], &CSV, None), Err(Error::Input(_))));
}
