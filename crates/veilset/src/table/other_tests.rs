use super::super::tests::RAW;
use super::super::{Format, ReadOptions, Table, write_rows};
use super::*;

fn read(name: &str, bytes: &[u8], format: Option<Format>, delimiter: Option<u8>) -> Result<Table> {
    Table::from_reader(name, bytes, &ReadOptions { format, delimiter, ..RAW }, None)
}

#[test]
fn files_of_other_kinds_are_named_whatever_they_are_called() {
    let cases: [(&[u8], &str, &str); 10] = [
        (b"PK\x03\x04\x14\0", "xlsx", "Export the sheet as CSV (UTF-8), or unzip"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "xls", "Export the sheet"),
        (b"SQLite format 3\0\x10\0", "SQLite", "Export the table as CSV"),
        (b"BZh91AY&SY12", "bzip2", "bunzip2"),
        (b"\xfd7zXZ\0\0", "xz", "unxz"),
        (b"7z\xbc\xaf\x27\x1c\0", "7z", "Unpack"),
        (b"%PDF-1.7\n", "PDF", "Export the table"),
        (b"ARROW1\0\0\xff", "Arrow", "`format=arrow`"),
        (b"Obj\x01\x04", "Avro", "Parquet or CSV"),
        (b"PK\x05\x06", "zip", "unzip"),
    ];
    for (bytes, what, next) in cases {
        for (name, format) in
            [("a.csv", None), ("a.txt", None), ("a.parquet", None), ("a", Some(Format::List))]
        {
            // A Parquet file has its footer at its end.
            let bytes = [bytes, &[0; 20]].concat();
            let Err(Error::Input(e)) = read(name, &bytes, format, None) else { panic!("{name} {what}") };
            assert!(e.what.contains(what) && e.next.contains(next), "{name}: {e:?}");
        }
    }
    // What is shorter, or only alike, is text.
    for text in [&b"PK"[..], b"PK\x03", b"B", b"SQLite format 3", b"Obj", b"%PDF", b"x%PDF-1.7"] {
        assert_eq!(read("a.csv", text, None, None).unwrap().header().len(), 1, "{text:?}");
    }
}

#[test]
fn a_text_that_is_written_never_looks_like_another_file() {
    let all = MAGIC.iter().map(|(magic, ..)| *magic).chain(MARKS).chain([&b"PAR1\x15"[..]]);
    for magic in all {
        for split in 0..=magic.len() {
            // The delimiter is a byte of what the text must not begin with, or a comma behind it.
            let (first, delimiter, second) = match magic.get(split) {
                Some(&byte) => (&magic[..split], byte, &magic[split + 1..]),
                None => (magic, b',', &b"x"[..]),
            };
            if delimiter == b'"' {
                continue;
            }
            let quoted = |cell: &[u8]| {
                let cell: Vec<u8> =
                    cell.iter().flat_map(|&b| vec![b; if b == b'"' { 2 } else { 1 }]).collect();
                [b"\"", &cell[..], b"\""].concat()
            };
            let text = [&quoted(first)[..], &[delimiter], &quoted(second), b"\n"].concat();
            let table = read("a.csv", &text, None, Some(delimiter)).unwrap();
            let mut written = Vec::new();
            write_rows(&table, &[], None, (Format::Csv, &mut written)).unwrap();
            let again = read("a.csv", &written, None, Some(delimiter)).unwrap();
            assert_eq!(again.header(), table.header(), "{magic:?} {split}");
        }
    }
}

#[test]
fn names_that_promise_another_format_are_refused() {
    for name in
        ["a.xlsx", "a.xlsx.GZ", "a.json", "folder/a.db", "a.b.sqlite3", "a.orc", "a.zip", "a.sas7bdat"]
    {
        let (input, output) = (check_input_name(Path::new(name)), check_output_name(Path::new(name)));
        assert!(
            matches!(&input, Err(Error::Usage(m)) if m.contains(name) && m.contains("`format`")),
            "{input:?}"
        );
        assert!(
            matches!(&output, Err(Error::Usage(m)) if m.contains(name) && m.contains("`output_format`")),
            "{output:?}"
        );
    }
    for name in [
        "a",
        "a.csv",
        "a.TSV",
        "a.txt",
        "a.pq",
        "a.feather",
        "a.dat",
        "a.out",
        "-",
        "gz",
        ".json",
        "json/a",
        "a.json.csv",
    ] {
        check_input_name(Path::new(name)).unwrap();
        check_output_name(Path::new(name)).unwrap();
    }
}
