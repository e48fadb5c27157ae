use super::super::tests::{CSV, RAW, names, read};
use super::super::{Quoting, Table, write_rows};
use super::*;

/// What divides this text, of which columns with these names are needed.
fn of(text: &str, options: &ReadOptions, named: &[&str]) -> Result<u8> {
    let named: Vec<String> = named.iter().map(ToString::to_string).collect();
    let wanted = Wanted { columns: None, named: &named };
    Table::from_wanted("a.csv", text.as_bytes(), options, wanted).map(|table| table.delimiter())
}

#[test]
fn of_several_delimiters_the_named_columns_tell_which_it_is() {
    let headerless = ReadOptions { headerless: true, ..CSV };
    let cases: [(&str, &ReadOptions, &[&str], u8); 11] = [
        ("x,y;z\n1,2;3\n", &CSV, &["x"], b','),
        ("x,y;z\n1,2;3\n", &CSV, &["x,y"], b';'),
        ("x,y;z\n1,2;3\n", &CSV, &["z"], b';'),
        ("x;y|z\n1;2|3\n", &CSV, &["x"], b';'),
        ("x;y|z\n1;2|3\n", &CSV, &["z"], b'|'),
        ("id|x;y,z\n1|2;3,4\n", &CSV, &["x;y,z", "id"], b'|'),
        // A column of this number is there with one of them only.
        ("1,5;2,5\n3,5;4,5\n", &headerless, &["3"], b','),
        // One fits, or none: the name changes nothing.
        ("1;2,5\n3;4\n", &headerless, &["1"], b';'),
        ("a@b\nc@d\n", &headerless, &["1"], b','),
        ("x;y\n1;2\n", &CSV, &["none"], b';'),
        // With the other one, quotes would be misused.
        ("\"1;2\",3\n\"4;5\",6\n", &headerless, &["1"], b','),
    ];
    for (text, options, named, delimiter) in cases {
        match of(text, options, named) {
            Ok(found) => assert_eq!(char::from(found), char::from(delimiter), "{text:?} {named:?}"),
            Err(error) => panic!("{text:?} {named:?}: {error}"),
        }
    }
}

#[test]
fn delimiters_that_fit_equally_well_are_asked_for() {
    let headerless = ReadOptions { headerless: true, ..CSV };
    let plain = ReadOptions { quoting: Quoting::Ordinary, ..headerless };
    let cases: [(&str, &ReadOptions, &[&str], &str); 7] = [
        ("ann,Rome;Italy\nben,Oslo;Norway\n", &headerless, &["1"], "',' gives 2 columns, ';' gives 2"),
        ("1,5;2,5\n3,5;4,5\n", &headerless, &["1", "2"], "',' gives 3 columns, ';' gives 2"),
        ("1\t2|3\n", &headerless, &["2"], "a tab gives 2 columns, '|' gives 2"),
        ("1,2;3\t4\n", &headerless, &["1"], "',' gives 2 columns, ';' gives 2 columns, a tab gives 2"),
        ("\"1;2\",3\n", &plain, &["1"], "',' gives 2 columns, ';' gives 2"),
        // No name decides it, nor one that is nowhere.
        ("x,y;z\n1,2;3\n", &CSV, &[], "',' gives 2 columns, ';' gives 2"),
        ("x,y;z\n1,2;3\n", &CSV, &["none"], "',' gives 2 columns, ';' gives 2"),
    ];
    for (text, options, named, words) in cases {
        let Err(Error::Input(error)) = of(text, options, named) else { panic!("{text:?} {named:?}") };
        assert!(
            error.what.contains(words) && error.next.contains(crate::spelling::DELIMITER.marked()),
            "{text:?}: {error:?}"
        );
        // Whichever is given is taken.
        for given in [b',', b';', b'|'] {
            assert_eq!(of(text, &ReadOptions { delimiter: Some(given), ..*options }, &[]).unwrap(), given);
        }
    }
}

#[test]
fn the_delimiter_is_given_or_follows_from_the_name() {
    let given = |d| ReadOptions { delimiter: Some(d), ..CSV };
    let cases: [(&str, ReadOptions, &str); 7] = [
        ("a.csv", CSV, "x,y"),
        ("-", CSV, "x,y"),
        ("a.tsv", CSV, "x\ty"),
        ("a.TAB", CSV, "x\ty"),
        ("a.tsv", given(b','), "x,y"),
        ("a.csv", given(b';'), "x;y"),
        ("a.csv", given(0x1f), "x\x1fy"),
    ];
    for (name, options, csv) in cases {
        let table = Table::from_reader(name, csv.as_bytes(), &options, None).unwrap();
        assert_eq!(table.header(), names(&["x", "y"]), "{name}");
        assert_eq!(table.name(), name);
    }
    for bad in [b'"', b'\n', b'\r', 0xa7] {
        let error = Table::from_reader("a.csv", &b"x"[..], &given(bad), None).unwrap_err();
        assert!(matches!(&error, Error::Usage(m) if m.to_string().contains("`delimiter`")), "{error}");
    }
    let options = ReadOptions { delimiter: Some(0xa7), ..RAW };
    assert_eq!(Table::from_reader("a.csv", &b"x\xa7y"[..], &options, None).unwrap().header().len(), 2);
}

#[test]
fn a_delimiter_is_guessed_where_only_one_makes_columns() {
    let cut_off = format!("x;y\n{}", "1;2,5\n".repeat(20_000));
    // Fewer records than are looked at, and the last of them is cut off; a byte-order mark changes nothing.
    let wide = format!("\u{feff}x;y\n{}", format!("1;{}\n", "2".repeat(900)).repeat(200));
    let cases: [(&str, u8); 15] = [
        (&wide, b';'),
        ("x;y\n1;2\n", b';'),
        ("x;y", b';'),
        ("x\ty\n1\t2\n", b'\t'),
        ("x|y\n1|2\n", b'|'),
        ("x;y\n1;2,5\n1;a,b,c\n", b';'),
        ("\u{feff}x;y\r\n1;2\r\n", b';'),
        ("\"x,1\";y\n1;2\n", b';'),
        (&cut_off, b';'),
        // Of two, one would misuse quotes.
        ("\"x;1\",y\n1;2,3\n", b','),
        // The comma stands for nothing that is sure.
        ("x;y\n1;2;3\n", b','),
        ("x\n1;2\n", b','),
        ("x", b','),
        ("email\n\"a;b\"\n", b','),
        ("\n\n", b','),
    ];
    for (csv, delimiter) in cases {
        let read = Table::from_reader("-", csv.as_bytes(), &CSV, None);
        let shown = &csv[..csv.len().min(40)];
        match read {
            Ok(table) => assert_eq!(table.delimiter(), delimiter, "{shown:?}"),
            // As before, where the columns do not come out.
            Err(error) => assert!(delimiter == b',', "{shown:?}: {error}"),
        }
    }
    // What a name or the user says is not guessed.
    assert_eq!(Table::from_reader("a.tsv", &b"x;y\n"[..], &CSV, None).unwrap().header(), ["x;y"]);
    let comma = ReadOptions { delimiter: Some(b','), ..CSV };
    assert_eq!(Table::from_reader("a.csv", &b"x;y\n"[..], &comma, None).unwrap().header(), ["x;y"]);
    // It is written again, unless the name asks for tabs or for none.
    for (csv, path, written) in
        [("x;y\n", "o.csv", b';'), ("x;y\n", "o.tsv", b'\t'), ("x\ty\n", "o.csv", b',')]
    {
        let mut table = read(csv);
        table.written_as(Path::new(path));
        assert_eq!(table.delimiter(), written, "{csv:?} {path}");
    }
}

#[test]
fn one_column_stays_one_whatever_characters_are_in_it() {
    let comma = ReadOptions { delimiter: Some(b','), ..CSV };
    for csv in ["a;\n", "a;b\n1;2\n3;4\n", "x|\ny|\n", "\"x,y\"\n\"1,2\"\n", "x\ty\n"] {
        let table = Table::from_reader("a.csv", csv.as_bytes(), &comma, None).unwrap();
        let (mut out, rows) = (Vec::new(), (0..table.rows()).collect::<Vec<_>>());
        write_rows(&table, &rows, None, (Format::Csv, &mut out)).unwrap();
        let again = Table::from_reader("o.csv", &out[..], &CSV, None).unwrap();
        assert_eq!((again.header(), again.rows()), (table.header(), table.rows()), "{csv:?}");
        assert!(rows.iter().all(|&row| again.cell(row, 0) == table.cell(row, 0)), "{csv:?}");
    }
}

#[test]
fn a_delimiter_that_is_part_of_a_byte_order_mark_does_not_make_one() {
    let csvs: [(u8, &[u8]); 4] = [
        (0xff, b"\"\"\xff\xfe\n"),
        (0xfe, b"\"\xff\"\xfea\n"),
        (0xbb, b"\"\xef\"\xbb\xbf\n"),
        (0xbf, b"\"\xef\xbb\"\xbf\n"),
    ];
    for (delimiter, csv) in csvs {
        let options =
            ReadOptions { delimiter: Some(delimiter), encoding: Encoding::Bytes, ..ReadOptions::default() };
        let table = Table::from_reader("a.csv", csv, &options, None).unwrap();
        let mut written = Vec::new();
        write_rows(&table, &[], None, (Format::Csv, &mut written)).unwrap();
        assert_eq!(written, csv, "{delimiter:#x}");
    }
}
