use super::builders::Builders;
use super::*;
use crate::error::Fault;
use crate::item::{Items, encode_key};
use crate::operations::sum::Modulus;
use crate::spelling::plain;
use proptest::prelude::*;
use std::io::{self, Write};

pub(super) const CSV: ReadOptions = ReadOptions {
    format: None,
    delimiter: None,
    encoding: Encoding::Utf8,
    headerless: false,
    quoting: Quoting::Doubled,
    multiline_keys: false,
};
pub(super) const RAW: ReadOptions = ReadOptions { encoding: Encoding::Bytes, ..CSV };
const PLAIN: Normalise = Normalise { trim: false, casefold: false, nfc: false };

pub(super) fn keyed_set(
    table: &Table,
    key: &[usize],
    empty: EmptyKeys,
    duplicates: Duplicates,
) -> Result<KeyedSet> {
    super::keyed_set(table, key, PLAIN, empty, duplicates)
}

pub(super) fn read(csv: impl AsRef<[u8]>) -> Table {
    Table::from_reader("a.csv", csv.as_ref(), &CSV, None).unwrap()
}

pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.into()).collect()
}

pub(super) fn key(columns: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(columns.iter().map(|c| c.as_bytes()), &mut out);
    out
}

/// The header and the cells, and the line of each row.
pub(super) fn content(table: &Table) -> (Vec<Vec<String>>, Vec<u64>) {
    let row = |r| (0..table.header().len()).map(move |c| String::from_utf8(table.cell(r, c).into()).unwrap());
    let mut rows = vec![table.header().to_vec()];
    rows.extend((0..table.rows()).map(|r| row(r).collect()));
    (rows, (0..table.rows()).map(|r| line(table.place(r))).collect())
}

/// The cells of all rows; `None` where there is no value.
pub(super) fn texts(table: &Table) -> Vec<Vec<Option<String>>> {
    let (mut rows, columns): (_, Vec<usize>) = (Vec::new(), (0..table.header().len()).collect());
    let text = |cell: &Option<&[u8]>| cell.map(|cell| String::from_utf8(cell.to_vec()).unwrap());
    let push = |_: usize, cells: &[Option<&[u8]>]| {
        rows.push(cells.iter().map(text).collect());
        Ok(())
    };
    table.each_row(0..table.rows(), &columns, push).unwrap();
    rows
}

fn line(place: Place) -> u64 {
    let Place::Line(line) = place else { panic!("{place:?}") };
    line
}

/// A reader that gives `0` bytes at a time, and fails with the error it is given at the end.
pub(super) struct Slowly<'a>(pub(super) usize, pub(super) &'a [u8], pub(super) Option<io::ErrorKind>);

impl io::Read for Slowly<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.0.min(out.len()).min(self.1.len());
        if n == 0
            && let Some(kind) = self.2.take()
        {
            return Err(kind.into());
        }
        let (now, later) = self.1.split_at(n);
        out[..n].copy_from_slice(now);
        self.1 = later;
        Ok(n)
    }
}

#[test]
fn every_dialect_gives_the_table_it_means() {
    // (file, rows with the header first, lines)
    type Case = (&'static str, &'static [&'static [&'static str]], &'static [u64]);
    let cases: &[Case] = &[
        ("a,b\n1,2\n3,4\n", &[&["a", "b"], &["1", "2"], &["3", "4"]], &[2, 3]),
        ("a,b\n1,2\n3,4", &[&["a", "b"], &["1", "2"], &["3", "4"]], &[2, 3]),
        ("a,b\r\n1,2\r\n3,4\r\n", &[&["a", "b"], &["1", "2"], &["3", "4"]], &[2, 3]),
        ("a,b\r\n1,2\n3,4\r\n", &[&["a", "b"], &["1", "2"], &["3", "4"]], &[2, 3]),
        ("a,b\r1,2\r3,4\r", &[&["a", "b"], &["1", "2"], &["3", "4"]], &[2, 3]),
        (
            "a,b\r1,2\n\"3\",4\r5,\n,6\r\n7,8\r\n",
            &[&["a", "b"], &["1", "2"], &["3", "4"], &["5", ""], &["", "6"], &["7", "8"]],
            &[2, 3, 4, 5, 6],
        ),
        ("\u{feff}a,b\n1,2\n", &[&["a", "b"], &["1", "2"]], &[2]),
        ("\u{feff}\"a\",b\n1,2\n", &[&["a", "b"], &["1", "2"]], &[2]),
        ("\u{feff}\u{feff}a\n1\n", &[&["\u{feff}a"], &["1"]], &[2]),
        ("a,b\n", &[&["a", "b"]], &[]),
        ("a", &[&["a"]], &[]),
        ("a,b\n\"1,\"\"x\"\"\",2\n", &[&["a", "b"], &["1,\"x\"", "2"]], &[2]),
        ("a,b\n\"1\n\n1\",2\n3,4\n", &[&["a", "b"], &["1\n\n1", "2"], &["3", "4"]], &[2, 5]),
        ("a,b\r\n\"1\r\n1\",2\r\n3,4", &[&["a", "b"], &["1\r\n1", "2"], &["3", "4"]], &[2, 4]),
        (
            "\n\r\na,b\n\n1,2\n\n\r\n3,4\n5,6",
            &[&["a", "b"], &["1", "2"], &["3", "4"], &["5", "6"]],
            &[5, 8, 9],
        ),
        ("\"a\nb\"\nx\n", &[&["a\nb"], &["x"]], &[3]),
        ("a\n\"\"\n\n1\n", &[&["a"], &[""], &["1"]], &[2, 4]),
        ("a,b\n,\n\"\",\"\"\n", &[&["a", "b"], &["", ""], &["", ""]], &[2, 3]),
        ("a\n\"x\"", &[&["a"], &["x"]], &[2]),
        ("a\n\"x\"\"\"", &[&["a"], &["x\""]], &[2]),
        (" a ,\n 1 ,\u{e9}\n", &[&[" a ", ""], &[" 1 ", "\u{e9}"]], &[2]),
    ];
    for (csv, rows, lines) in cases {
        for step in [1, 2, 7, 1000] {
            let table = Table::from_reader("a.csv", Slowly(step, csv.as_bytes(), None), &CSV, None).unwrap();
            assert_eq!(content(&table), (rows.iter().map(|r| names(r)).collect(), lines.to_vec()), "{csv:?}");
        }
    }
}

#[test]
fn columns_without_a_header_have_numbers_for_names_and_none_is_written() {
    let options = ReadOptions { headerless: true, ..CSV };
    let csv = "ann,Rome\n\n\"b,b\",Oslo\ncleo,\n";
    for (csv, line) in
        [(csv.to_string(), 1), (format!("\n\u{feff}{csv}").replace("\n\u{feff}", "\u{feff}\n"), 2)]
    {
        let table = Table::from_reader("a.csv", csv.as_bytes(), &options, None).unwrap();
        assert_eq!(table.header(), ["1", "2"]);
        assert_eq!([0, 1, 2].map(|row| table.place(row)), [line, line + 2, line + 3].map(Place::Line));
        let mut written = Vec::new();
        write_rows(&table, &[2, 0, 1], None, (Format::Csv, &mut written)).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "cleo,\nann,Rome\n\"b,b\",Oslo\n");
        let keyed = keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::First).unwrap();
        let new: Items = [key(&["zoe"])].into_iter().collect();
        let mut written = Vec::new();
        write_union(
            &table,
            KeyColumns::of(&[0]),
            &keyed,
            NewRows { items: &new, sent: None },
            (Format::Csv, &mut written),
        )
        .unwrap();
        assert!(written.ends_with(b"cleo,\nzoe,\n") && written.starts_with(b"ann,Rome\n"));
        // A column of our own making has a name.
        let mut written = Vec::new();
        write_cells(&table, &["n"], [["5".to_string()]].into_iter(), (Format::Csv, &mut written)).unwrap();
        assert_eq!(written, b"n\n5\n");
    }
    let wanted = names(&["2"]);
    let table = Table::from_reader("a.csv", csv.as_bytes(), &options, Some(&wanted)).unwrap();
    assert_eq!((table.header(), &*table.cell(1, 0)), (&wanted[..], &b"Oslo"[..]));
    let refused = |csv: &str, columns: Option<&[String]>| {
        Table::from_reader("a.csv", csv.as_bytes(), &options, columns).unwrap_err()
    };
    assert_input(&refused(csv, Some(&names(&["3"]))), None, Some("3"), "no such column", "\"1\", \"2\"", "3");
    assert_input(&refused("", None), None, None, "the file is empty", "at least one row", "empty");
    let ragged = refused("a,b\n1\n", None);
    assert_input(&ragged, Some(2), Some("2"), "has 1 field, the first row 2", "as the first row", "ragged");
    // A list has no header in any case.
    let list = ReadOptions { format: Some(Format::List), ..options };
    assert_eq!(Table::from_reader("a", &b"x\ny\n"[..], &list, None).unwrap().header(), [LIST_COLUMN]);
}

#[test]
fn a_bad_file_is_refused_with_file_line_column_and_next_step() {
    let half = b"a,b\n1,2\n\xc3,\xa9\n"; // Valid if the cells are joined.
    // (file, line, column, what, next)
    type Case<'a> = (&'a [u8], Option<u64>, Option<&'a str>, &'a str, &'a str);
    let cases: &[Case] = &[
        (b"", None, None, "the file is empty", "header"),
        (b"\xef\xbb\xbf", None, None, "the file is empty", "header"),
        (b"\n\r\n\n", None, None, "the file is empty", "header"),
        (b"\xef\xbb\xbf\n", None, None, "the file is empty", "header"),
        (
            b"a,b\n1,2\n3\n",
            Some(3),
            Some("b"),
            "the row has 1 field, the header 2",
            "quote those that contain ','",
        ),
        (
            b"a,b\n1,2,3\n",
            Some(2),
            Some("#3"),
            "the row has 3 fields, the header 2",
            "as many fields as the header",
        ),
        (
            b"a\n1\n\"2\n3\",\n4\n",
            Some(3),
            Some("#2"),
            "2 fields, the header 1",
            "runs to line 4: is a quote missing?",
        ),
        (b"a,b\n1,2\n3,\"4\n5,6\n", Some(3), Some("b"), "quote opened here is never closed", "closing quote"),
        (
            b"a,b\n\"1\n1\",\"2\n5,6\n",
            Some(3),
            Some("b"),
            "quote opened here is never closed",
            "closing quote",
        ),
        (b"a,b\n1,\"", Some(2), Some("b"), "quote opened here is never closed", "closing quote"),
        (b"a,b\n1,\"x\"\"", Some(2), Some("b"), "quote opened here is never closed", "closing quote"),
        (b"\"a,b\n1,2\n", Some(1), Some("#1"), "quote opened here is never closed", "closing quote"),
        (b"a,b\n1,2\nx,\xff\n", Some(3), Some("b"), "not valid UTF-8", "`encoding=bytes`"),
        (half, Some(3), Some("a"), "not valid UTF-8", "`encoding=bytes`"),
        (b"a,\n1,\xff\n", Some(2), Some("#2"), "not valid UTF-8", "Convert the file"),
        (b"a,\xff\n1,2\n", Some(1), Some("#2"), "not valid UTF-8", "Convert the file"),
        (b"\xff\xfea\0\n\0", Some(1), None, "UTF-16", "Save it as UTF-8"),
        (b"\xfe\xff\0a\0\n", Some(1), None, "UTF-16", "Save it as UTF-8"),
        (b"a\0,\0b\0\n\0", Some(1), None, "UTF-16", "Save it as UTF-8"),
    ];
    for (csv, line, column, what, next) in cases {
        let shown = String::from_utf8_lossy(csv);
        for step in [1, 1000] {
            let table = Table::from_reader("a.csv", Slowly(step, csv, None), &CSV, None);
            let Err(error) = table else { panic!("accepted: {shown}") };
            assert_input(&error, *line, *column, what, next, &shown);
        }
    }
    let table = Table::from_reader("a.csv", &half[..], &RAW, None).unwrap();
    assert_eq!((table.cell(1, 0), table.cell(1, 1)), (b"\xc3"[..].into(), b"\xa9"[..].into()));
}

pub(super) fn assert_input(
    error: &Error,
    line: Option<u64>,
    column: Option<&str>,
    what: &str,
    next: &str,
    case: &str,
) {
    let Error::Input(e) = error else { panic!("{case}: {error:?}") };
    assert_eq!(e.file, "a.csv", "{case}");
    assert_eq!((e.row, e.column.as_deref()), (line.map(Place::Line), column), "{case}: {error}");
    assert!(plain(&e.what).contains(what), "{case}: {error}");
    assert!(plain(&e.next).contains(next), "{case}: {error}");
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.csv");
    let error = Table::read(&file, &CSV, None).unwrap_err();
    assert!(matches!(&error, Error::Input(e) if e.file == file.display().to_string()), "{error}");
    assert!(error.to_string().contains("cannot be opened"), "{error}");
    let error = Table::read(dir.path(), &CSV, None).unwrap_err();
    assert!(matches!(&error, Error::Input(e) if e.what.contains("reading failed")), "{error}");

    std::fs::write(&file, "id\n1\n").unwrap();
    assert_eq!(Table::read(&file, &CSV, None).unwrap().rows(), 1);

    let read = |kind| Table::from_reader("a.csv", Slowly(9, b"a\n1\n", Some(kind)), &CSV, None);
    let error = read(io::ErrorKind::UnexpectedEof).unwrap_err();
    assert!(error.to_string().contains("reading failed"), "{error}");
    assert_eq!(read(io::ErrorKind::Interrupted).unwrap().rows(), 1);
}

#[test]
fn a_file_with_too_many_rows_is_refused() {
    let read =
        |text: &str| super::read::read("a.csv", text.as_bytes(), &CSV, None.into(), 2, (9, &mut |_| Ok(())));
    assert_eq!(read("a\n1\n2\n").unwrap().rows(), 2);
    let error = read("a\n1\n2\n3\n").unwrap_err();
    assert_input(&error, Some(4), None, "more than 2 rows", "Split it", "rows");
}

#[test]
fn cells_and_rows_longer_than_every_buffer_survive() {
    let long = "x\"\n".repeat(100_000);
    let wide: Vec<String> = (0..10_000).map(|i| format!("c{i}")).collect();
    let csv = format!("{}\n\"{}\"{}\n", wide.join(","), long.replace('"', "\"\""), ",".repeat(9_999));
    let table = read(csv);
    assert_eq!(table.header(), wide);
    assert_eq!(table.cell(0, 0), long.as_bytes());
    assert_eq!((table.rows(), table.cell(0, 9_999)), (1, b""[..].into()));
}

#[test]
fn columns_are_found_by_name() {
    let table = read("\"\",id,id,e-mail, city,\u{feff}x\n");
    assert_eq!(table.columns(&names(&["e-mail", ""])).unwrap(), [3, 0]);
    // (names, column of the error, what, next)
    let cases: &[(&[&str], Option<&str>, &str, &str)] = &[
        (&[], None, "no column was named", "\"e-mail\", \" city\""),
        (&["nope"], Some("nope"), "no such column", "The columns are \"\", \"id\""),
        (&["nope"], Some("nope"), "no such column", "if that is a row, use `no_header`"),
        (&["E-Mail"], Some("E-Mail"), "no such column", "Did you mean \"e-mail\"?"),
        (&["email"], Some("email"), "no such column", "Did you mean \"e-mail\"?"),
        (&["city"], Some("city"), "no such column", "Did you mean \" city\"?"),
        (&["x"], Some("x"), "no such column", "Did you mean \"\\u{feff}x\"?"),
        (&["id"], Some("id"), "this name twice, at columns 2 and 3", "Rename one"),
        (&["e-mail", "e-mail"], Some("e-mail"), "the column was named twice", "Name it once"),
    ];
    for (given, column, what, next) in cases {
        let error = table.columns(&names(given)).unwrap_err();
        assert_input(&error, column.map(|_| 1), *column, what, next, &format!("{given:?}"));
    }
    // No delimiter fits.
    let error = read("id;name\n1;2;3\n").columns(&names(&["id"])).unwrap_err();
    assert_input(&error, Some(1), Some("id"), "no such column", "';' separates the columns", "delimiter");
    let wide: Vec<String> = (0..50).map(|i| i.to_string().repeat(100)).collect();
    let error = read(wide.join(",")).columns(&names(&["id"])).unwrap_err().to_string();
    assert!(error.contains("and 30 more") && error.len() < 2000, "{error}");
}

#[test]
fn debug_output_shows_no_cells() {
    assert!(!format!("{:?}", read("id\nsecret\n")).contains("secret"));
}

#[test]
fn the_set_of_a_table_knows_its_rows() {
    let table = read("id,n,m\nx,1,\ny,1,\n,1,\nx,1,\nz,,\nx,1,\n\"\",1,\n");
    let keyed = |e, d| keyed_set(&table, &[0, 1], e, d).unwrap();

    let skip = keyed(EmptyKeys::Skip, Duplicates::First);
    assert_eq!(skip.set.iter().collect::<Vec<_>>(), [key(&["x", "1"]), key(&["y", "1"])]);
    assert_eq!((skip.rows, skip.duplicates, skip.skipped), (vec![0, 1], 2, 3));

    let keep = keyed(EmptyKeys::Keep, Duplicates::First);
    assert_eq!((keep.rows, keep.duplicates, keep.skipped), (vec![0, 1, 2, 4], 3, 0));

    // The order of the key columns is the one given.
    let swapped = keyed_set(&table, &[1, 0], EmptyKeys::Skip, Duplicates::First).unwrap();
    assert_eq!(swapped.set.get(0), key(&["1", "x"]));

    let none = keyed_set(&read("id\n"), &[0], EmptyKeys::Error, Duplicates::Error).unwrap();
    assert!(none.set.is_empty() && none.rows.is_empty());
}

#[test]
fn keys_that_cannot_be_used_are_refused() {
    let long = "x".repeat(crate::item::MAX_ITEM - 3);
    let fits = format!("id,n\nx,1\n\n{long},2\n");
    // (file, key, line, column, what, next)
    type Case<'a> = (&'a str, &'a [usize], u64, Option<&'a str>, &'a str, &'a str);
    let cases: &[Case] = &[
        ("id,n\nx,1\n,2\n", &[0], 3, Some("id"), "the key is empty", "`empty_keys=skip`"),
        ("id,n\nx,1\ny,\n", &[0, 1], 3, Some("n"), "the key is empty", "`empty_keys=skip`"),
        ("id,n\n\nx,1\ny,\"2\n\"\nx,3\n", &[0], 6, Some("id"), "same as on line 3", "`duplicates=first`"),
        ("id,n\nx,1\nx,1\n", &[0, 1], 3, None, "same as on line 2", "Remove one of the rows"),
        (&fits, &[0, 1], 4, None, "65538 bytes when encoded, but the maximum is 65536", "Shorten it"),
    ];
    for (csv, key, line, column, what, next) in cases {
        let error = keyed_set(&read(csv), key, EmptyKeys::Error, Duplicates::Error).unwrap_err();
        assert_input(&error, Some(*line), *column, what, next, csv.lines().last().unwrap());
    }
    let table = read(&fits);
    let keyed = keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::Error).unwrap();
    assert_eq!(keyed.set.longest(), crate::item::MAX_ITEM);
    check_max_row(&table, &keyed, true, &Items::new(), 1 << 16).unwrap();
    // With a payload the limit is for both together.
    let payloads: Items = (0..keyed.set.len()).map(|_| [7; 60]).collect();
    let longest = keyed.set.longest();
    check_max_row(&table, &keyed, true, &payloads, longest + 60).unwrap();
    check_max_row(&table, &keyed, true, &payloads, longest + 59).unwrap_err();
    check_max_row(&table, &keyed, false, &payloads, 60).unwrap();
    check_max_row(&table, &keyed, false, &payloads, 59).unwrap_err();
    let error = check_max_row(&table, &keyed, true, &Items::new(), 100).unwrap_err();
    let what = "65536 bytes when encoded, but the agreed maximum is 100";
    assert_input(&error, Some(4), None, what, "Raise `max_row` to 65536 on both sides", "max-row");
}

/// Whoever asks for what the first bad row needs would be refused again by the next one.
#[test]
fn what_all_rows_need_is_said_with_the_first_that_is_refused() {
    let set = |table: &Table| keyed_set(table, &[0], EmptyKeys::Error, Duplicates::Add).unwrap();
    let many = format!("id,v\na,1.5\nb,0.{}1\n", "0".repeat(38));
    // (file, scale, line, next)
    let cases: &[(&str, u32, u64, &str)] = &[
        ("id,v\na,1\nb,1.5\nc,2.50\n", 0, 3, "Use `scale=1` on both sides, or round the value"),
        (
            "id,v\na,1\nb,1.5\n\nc,2.125\nd,0.001\ne,.25\n",
            0,
            3,
            "Other values have up to 3, the first of them on line 5. Use `scale=3` on both sides, or round the values",
        ),
        // A row whose value is added to that of an earlier one, and a row that comes before.
        ("id,v\na,1.25\nb,3\na,1.0625\n", 1, 2, "up to 4, the first of them on line 4. Use `scale=4`"),
        ("id,v\na,1.25\nb,bad\nc,\nd,1.125\n", 1, 2, "up to 3, the first of them on line 5. Use `scale=3`"),
        (&many, 0, 2, "up to 39, the first of them on line 3. Round the values: the largest `scale` is 38"),
    ];
    for (csv, scale, line, next) in cases {
        let table = read(csv);
        let error = values(&table, &set(&table), 1, *scale).unwrap_err();
        assert_input(&error, Some(*line), Some("v"), "but the agreed scale is", next, csv);
    }
    // Rows that are too long. A key has a byte more than its text.
    let table = read("id\na\nbbbb\ncccccc\ndddddd\neeeee\n");
    let error = check_max_row(&table, &set(&table), true, &Items::new(), 4).unwrap_err();
    let next = "Other rows have up to 7, the first of them on line 4. Raise `max_row` to 7 on both sides";
    assert_input(&error, Some(3), None, "5 bytes when encoded, but the agreed maximum is 4", next, "rows");
}

#[test]
fn values_follow_the_set() {
    let table = read("id,v\nx,1.5\ny, -2 \nx,3\n,bad\nz,0\nx,10\n");
    let set = |d| keyed_set(&table, &[0], EmptyKeys::Skip, d).unwrap();
    let added = set(Duplicates::Add);
    assert_eq!((added.duplicates, added.skipped), (2, 1));
    assert_eq!(values(&table, &added, 1, 1).unwrap(), [145, -20, 0]);
    assert_eq!(values(&table, &set(Duplicates::First), 1, 2).unwrap(), [150, -200, 0]);
    let error = values(&table, &added, 1, 39).unwrap_err();
    assert!(matches!(&error, Error::Usage(m) if m.contains("`scale`")), "{error}");
}

#[test]
fn values_that_cannot_be_summed_are_refused() {
    let max = i128::MAX;
    let overflow = format!("id,v\nx,{max}\n\nx,1\n");
    // (file, line, what, next)
    let cases: &[(&str, u64, &str, &str)] = &[
        ("id,v\nx,1\ny,\n", 3, "the value is empty", "Fill it in"),
        ("id,v\nx,1\ny,\"1,0\"\n", 3, "comma", "decimal point"),
        ("id,v\nx,1\nx,NaN\n", 3, "not a number", "decimal point"),
        (
            "id,v,w\nx,1,\"\n\"\ny,1.5,\n",
            4,
            "1 fractional digit, but the agreed scale is 0",
            "`scale=1` on both sides",
        ),
        (&overflow, 4, "add up to more than 128 bits", "larger units"),
    ];
    for (csv, line, what, next) in cases {
        let table = read(csv);
        let keyed = keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::Add).unwrap();
        let error = values(&table, &keyed, 1, 0).unwrap_err();
        assert_input(&error, Some(*line), Some("v"), what, next, csv);
    }
}

#[test]
fn a_sum_that_could_overflow_is_refused() {
    use Modulus::{Bits64, Bits128};
    let table = read("id,v\n");
    let half = 1i128 << 62;
    // (values, modulus, fits)
    let cases: &[(&[i128], Modulus, bool)] = &[
        (&[], Bits64, true),
        (&[0, 0], Bits64, true),
        (&[i128::from(i64::MAX)], Bits64, true),
        (&[i128::from(i64::MIN)], Bits64, true),
        (&[i128::from(i64::MIN) - 1], Bits64, false),
        (&[i128::from(i64::MAX) + 1], Bits64, false),
        (&[half - 1, 0], Bits64, true),
        (&[half, 0], Bits64, false),
        (&[-half, 0], Bits64, true),
        (&[-half - 1, 0], Bits64, false),
        (&[half, 0], Bits128, true),
        (&[i128::MAX], Bits128, true),
        (&[i128::MIN], Bits128, true),
        (&[i128::MIN, 0, 0], Bits128, false),
    ];
    for (values, modulus, fits) in cases {
        match check_sum_bound(&table, 1, values, *modulus) {
            Ok(()) => assert!(fits, "{values:?} {modulus:?}"),
            Err(error) => {
                assert!(!fits, "{values:?} {modulus:?}");
                let next =
                    if *modulus == Bits64 { "`modulus=128` on both sides" } else { "Use a smaller `scale`" };
                assert_input(&error, None, Some("v"), "the sum could overflow", next, "sum");
            }
        }
    }
}

#[test]
fn chosen_rows_are_written_in_order() {
    let table = read("id,\"a,b\"\r\nx,\"1\n\"\r\ny,\"5\"\"\"\r\nz,\r\n");
    let mut out = Vec::new();
    write_rows(&table, &[2, 0, 1], None, (Format::Csv, &mut out)).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "id,\"a,b\"\nz,\nx,\"1\n\"\ny,\"5\"\"\"\n");
}

#[test]
fn a_union_has_our_rows_and_then_the_new_items() {
    let csv = "n\tid\tm\n1\tx\ta\n1\tx\tb\n2\ty\tc\n";
    let table = Table::from_reader("a.tsv", csv.as_bytes(), &CSV, None).unwrap();
    let keyed = keyed_set(&table, &[1, 0], EmptyKeys::Error, Duplicates::First).unwrap();
    let new: Items = [key(&["p\tq", "7"]), key(&["", "8"])].iter().collect();
    let mut out = Vec::new();
    write_union(
        &table,
        KeyColumns::of(&[1, 0]),
        &keyed,
        NewRows { items: &new, sent: None },
        (Format::Csv, &mut out),
    )
    .unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "n\tid\tm\n1\tx\ta\n2\ty\tc\n8\t\t\n7\t\"p\tq\"\t\n");

    // Too few columns, trailing bytes, too many columns, no text.
    for bad in [&b""[..], b"\x01a", b"\x01a\x01bc", &key(&["a", "b", "c"]), b"\x01a\x01\xff"] {
        let new: Items = [&key(&["a", "b"])[..], bad].iter().collect();
        let mut out = Vec::new();
        let error = write_union(
            &table,
            KeyColumns::of(&[1, 0]),
            &keyed,
            NewRows { items: &new, sent: None },
            (Format::Csv, &mut out),
        )
        .unwrap_err();
        assert!(
            matches!(&error, Error::Peer { fault: Fault::Misbehaved, what: m, .. } if m.contains("is not made of 2 columns")),
            "{error}"
        );
        assert!(out.is_empty());
    }
}

#[test]
fn a_failing_destination_is_an_output_error() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let table = read("id\nx\n");
    let keyed = keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::First).unwrap();
    let rows = write_rows(&table, &[0], None, (Format::Csv, &mut Closed));
    let union = write_union(
        &table,
        KeyColumns::of(&[0]),
        &keyed,
        NewRows { items: &Items::new(), sent: None },
        (Format::Csv, &mut Closed),
    );
    for result in [rows, union] {
        assert!(matches!(&result, Err(Error::Output(m)) if m.contains("`output=FILE`")), "{result:?}");
    }
}

/// Cells made of the bytes that matter, and any others.
fn cells(delimiter: u8) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        3 => Just(b'a'),
        1 => Just(b'"'),
        1 => Just(b'\n'),
        1 => Just(b'\r'),
        1 => Just(delimiter),
        1 => any::<u8>(),
    ];
    prop_oneof![
        8 => prop::collection::vec(byte, 0..8),
        1 => prop::sample::select(vec![&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff", b" ", b"\0"])
            .prop_map(<[u8]>::to_vec),
    ]
}

/// The cells of all rows.
fn cells_of(table: &Table) -> Vec<Vec<Vec<u8>>> {
    let row = |row| (0..table.header().len()).map(|column| table.cell(row, column).into()).collect();
    (0..table.rows()).map(row).collect()
}

/// A delimiter, a number of columns and the cells of the header and some rows.
fn tables() -> impl Strategy<Value = (u8, usize, Vec<Vec<Vec<u8>>>)> {
    (prop::sample::select(b",;\t| \0\xa7a\xff\xfe\xef\xbb\xbf".to_vec()), 1usize..5).prop_flat_map(
        |(delimiter, columns)| {
            let rows = prop::collection::vec(prop::collection::vec(cells(delimiter), columns), 1..8);
            (Just(delimiter), Just(columns), rows)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back((delimiter, columns, rows) in tables(), step in 1usize..20) {
        let mut cells = Builders::new(Encoding::Bytes, columns);
        for row in &rows[1..] {
            row.iter().enumerate().for_each(|(column, cell)| cells.push(column, cell));
            cells.end_row().unwrap();
        }
        let header: Vec<_> = rows[0].iter().map(|raw| Column::of_text(raw, Encoding::Bytes)).collect();
        let batches = cells.finish(header.iter().map(|column| column.field.clone())).unwrap();
        let options = ReadOptions { delimiter: Some(delimiter), ..RAW };
        let table =
            Table { header_line: Some(1), ..Table::of("a.csv", Format::Csv, &options, header, batches) };
        let all: Vec<usize> = (0..table.rows()).collect();
        let mut csv = Vec::new();
        write_rows(&table, &all, None, (Format::Csv, &mut csv)).unwrap();
        let back = Table::from_reader("a.csv", Slowly(step, &csv, None), &options, None).unwrap();
        let names: Vec<_> = back.columns.iter().map(|column| column.raw.clone()).collect();
        prop_assert_eq!(&names, &rows[0]);
        prop_assert_eq!(cells_of(&back), &rows[1..]);
        prop_assert_eq!((back.rows(), back.header().len()), (table.rows(), columns));
        // The line of each row, counted in the plainest way: the rows before it, written.
        for row in 0..back.rows() {
            let mut before = Vec::new();
            write_rows(&table, &all[..row], None, (Format::Csv, &mut before)).unwrap();
            let text: String = before.iter().map(|&b| b as char).collect();
            let ends = text.replace("\r\n", "\n").replace('\r', "\n").matches('\n').count();
            prop_assert_eq!(line(back.place(row)), ends as u64 + 1);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(csv in prop::collection::vec(
        prop_oneof![Just(b'a'), Just(b'"'), Just(b'\n'), Just(b'\r'), Just(b','), Just(0xef), any::<u8>()], 0..60
    ), step in 1usize..20) {
        for options in [CSV, RAW] {
            let slow = Table::from_reader("a.csv", Slowly(step, &csv, None), &options, None);
            let whole = Table::from_reader("a.csv", &csv[..], &options, None);
            match (slow, whole) {
                (Ok(a), Ok(b)) => prop_assert!(cells_of(&a) == cells_of(&b) && a.header == b.header && a.lines.0 == b.lines.0),
                (a, b) => prop_assert_eq!(a.err(), b.err()),
            }
        }
    }
}
