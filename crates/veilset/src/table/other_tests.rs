use super::super::tests::{CSV, RAW};
use super::super::{Format, ReadOptions, Table, write_rows};
use super::*;
use crate::spelling::plain;

fn read(name: &str, bytes: &[u8], format: Option<Format>, delimiter: Option<u8>) -> Result<Table> {
    Table::from_reader(name, bytes, &ReadOptions { format, delimiter, ..RAW }, None)
}

#[test]
fn files_of_other_kinds_are_named_whatever_they_are_called() {
    let cases: [(&[u8], &str, &str); 37] = [
        (b"PK\x03\x04\x14\0", "xlsx", "Export the sheet as CSV (UTF-8), or unzip"),
        (b"PK\x05\x06", "zip", "unzip"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "xls", "without a password"),
        (b"SQLite format 3\0\x10\0", "SQLite", "Export the table as CSV"),
        (b"BZh91AY&SY12", "bzip2", "bunzip2"),
        (b"\xfd7zXZ\0\0", "xz", "unxz"),
        (b"\x04\x22\x4d\x18\x64", "LZ4", "unlz4"),
        (b"\x02\x21\x4c\x18\x64", "LZ4", "unlz4"),
        (b"\xff\x06\0\0sNaPpY", "Snappy", "Decompress"),
        (b"\x1f\x9d\x90", ".Z", "uncompress"),
        (b"7z\xbc\xaf\x27\x1c\0", "7z", "Unpack"),
        (b"Rar!\x1a\x07\x01", "RAR", "Unpack"),
        (b"%PDF-1.7\n", "PDF", "Export the table"),
        (b"ARROW1\0\0\xff", "Arrow", "`format=arrow`"),
        (b"FEA1\0\0\0\0", "Feather file of version 1", "version 2"),
        (b"Obj\x01\x04", "Avro", "Parquet or CSV"),
        (b"PARE\x15\x04", "encrypted", "without encryption"),
        (b"\x89HDF\r\n\x1a\n", "HDF5", "Convert"),
        (b"\x93NUMPY\x01\0", "NumPy", "Convert"),
        (b"\0\0\0\0\0\0\0\0\0\0\0\0\xc2\xea\x81\x60\xb3", "SAS", "Export the data"),
        (b"HEADER RECORD*******LIBRARY", "SAS", "Export the data"),
        (b"$FL2@(#) SPSS DATA FILE", "SPSS", "Export the data"),
        (b"$FL3@(#) SPSS DATA FILE", "SPSS", "Export the data"),
        (b"<stata_dta><header>", "Stata", "Export the data"),
        (b"RDX3\nX\n", "an R data file", "Export the data"),
        (b"PGDMP\x01\x0e", "dump of a PostgreSQL", "as CSV"),
        (b"X\n\0\0\0\x03", "an R data file", "Export the data"),
        (b"\0\x01\0\0Standard ACE DB", "Access", "Export the table"),
        (b"PGDMP\x01", "PostgreSQL", "copy"),
        (b"Salted__1234", "OpenSSL", "Decrypt"),
        (b"age-encryption.org/v1\n", "age", "Decrypt"),
        (b"-----BEGIN PGP MESSAGE-----\n", "PGP", "Decrypt"),
        (b"\n<!doctype HTML>\n<title>Sign in</title>", "web page", "login"),
        (b"\xef\xbb\xbf<html lang=en>", "web page", "login"),
        (b"<?xml version='1.0'?>", "XML", "Export"),
        (b"{\\rtf1\\ansi", "RTF", "Export"),
        (b"\xff\xfe\0\0a\0\0\0", "UTF-32", "UTF-8"),
    ];
    for (bytes, what, next) in cases {
        for (name, format) in [
            ("a.csv", None),
            ("a.txt", None),
            ("a.parquet", None),
            ("a.jsonl", None),
            ("a.arrow", None),
            ("a", Some(Format::List)),
        ] {
            if what == "UTF-32" && (name == "a.parquet" || name == "a.arrow")
                || what == "Arrow" && name == "a.arrow"
            {
                continue;
            }
            // A Parquet file has its footer at its end.
            let bytes = [bytes, &[0; 20]].concat();
            let Err(Error::Input(e)) = read(name, &bytes, format, None) else { panic!("{name} {what}") };
            assert!(e.what.contains(what) && plain(&e.next).contains(next), "{name}: {e:?}");
        }
    }
    // What is shorter, or only alike, is text.
    for text in [
        &b"PK"[..],
        b"PK\x03",
        b"B",
        b"SQLite format 3",
        b"Obj",
        b"%PDF",
        b"x%PDF-1.7",
        b"ORC,ORCID",
        b"FEA1",
        b"<htm",
        b"-----BEGIN",
        b"{id}",
        b"[id]",
    ] {
        let table = read("a.csv", text, None, None).unwrap();
        assert_eq!(table.rows(), 0, "{text:?}");
    }
}

#[test]
fn what_is_no_text_in_utf8_is_named_by_what_it_is() {
    let utf = |text: &str, of: usize, at: usize| -> Vec<u8> {
        text.bytes().flat_map(|byte| (0..of).map(move |i| if i == at { byte } else { 0 })).collect()
    };
    let text = "id,name\n1,ann\n2,ben\n";
    let ebcdic: Vec<u8> = b"\x89\x84\x6b\x95\x81\x94\x85\x15\xf1\x6b\x81\x95\x95\x15".repeat(3);
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"a.csv");
    tar[257..262].copy_from_slice(b"ustar");
    let cases: [(Vec<u8>, &str); 11] = [
        ([b"\xff\xfe", &utf(text, 2, 0)[..]].concat(), "UTF-16"),
        (utf(text, 2, 0), "UTF-16"),
        (utf(text, 2, 1), "UTF-16"),
        (utf(text, 4, 0), "UTF-32"),
        (utf(text, 4, 3), "UTF-32"),
        (ebcdic, "EBCDIC"),
        (tar, "tar archive"),
        (b"ORC\x0a\x0b\0\x12".to_vec(), "ORC"),
        (b"\x72\x02\x01\0\x05".to_vec(), "Stata"),
        (b"12345678DUCK\x40\0\0\0".to_vec(), "DuckDB"),
        (b"id,na\0me\n1,2\n".to_vec(), "zero byte"),
    ];
    for (bytes, what) in cases {
        for name in ["a.csv", "a.txt", "a.jsonl"] {
            if what == "zero byte" && name != "a.csv" {
                continue;
            }
            let options = CSV;
            let Err(Error::Input(e)) = Table::from_reader(name, &bytes[..], &options, None) else {
                panic!("{name} {what}")
            };
            assert!(e.what.contains(what), "{name}: {e:?}");
        }
    }
    // Text in other alphabets is none of these.
    for text in ["ключ,имя\n1,анна\n", "鍵,名\n", "äöü\n", "é"] {
        read("a.csv", text.as_bytes(), None, None).unwrap();
        let options = CSV;
        Table::from_reader("a.csv", text.as_bytes(), &options, None).unwrap();
    }
}

#[test]
fn what_is_compressed_twice_or_under_another_name_is_called_so() {
    let once = |bytes: &[u8]| {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut to, bytes).unwrap();
        to.finish().unwrap()
    };
    let twice = once(&once(b"id\n1\n"));
    let Err(Error::Input(e)) = read("a.csv.gz", &twice, None, None) else { panic!("read") };
    assert!(e.what.contains("compressed by gzip") && e.next.contains("Decompress it once"), "{e:?}");
    let zstd = zstd::encode_all(&b"id\n1\n"[..], 1).unwrap();
    let Err(Error::Input(e)) = read("a.csv.gz", &once(&zstd), None, None) else { panic!("read") };
    assert!(e.what.contains("compressed by Zstandard"), "{e:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    std::fs::write(&path, once(&[b"PAR1", &[0; 100][..]].concat())).unwrap();
    let Err(Error::Input(e)) = Table::read(&path, &ReadOptions::default(), None) else { panic!("read") };
    assert!(e.what.contains("compressed by gzip") && e.next.contains("ends in .gz"), "{e:?}");
}

#[test]
fn json_of_another_shape_is_named_with_the_step_to_lines() {
    let cases = [
        ("a.csv", "{\"id\": 1}\n", "this is JSON", "`format=jsonl`"),
        ("a.csv", "[\n  {\"id\": 1}\n]\n", "this is JSON", "convert"),
        ("a.csv", "[\"a\", \"b\"]", "this is JSON", "convert"),
        ("a.jsonl", "[{\"id\": 1}, {\"id\": 2}]", "one JSON array", "jq -c '.[]'"),
        ("a.jsonl", "\n[\n", "one JSON array", "jq -c '.[]'"),
        ("a.jsonl", "{\n  \"id\": 1\n}\n", "does not end on its line", "jq -c ."),
    ];
    for (name, text, what, next) in cases {
        let Err(Error::Input(e)) = read(name, text.as_bytes(), None, None) else { panic!("{name} {text}") };
        assert!(e.what.contains(what) && plain(&e.next).contains(next), "{name}: {e:?}");
    }
    // A list is of lines, whatever they are.
    assert_eq!(read("a.txt", b"{\"id\": 1}\n[1]\n", None, None).unwrap().rows(), 2);
}

#[test]
fn a_text_that_is_written_never_looks_like_another_file() {
    let all = MAGIC.iter().chain(&TEXTS).map(|(magic, ..)| *magic).chain(MARKS);
    let more = [&b"PAR1\x15"[..], b"FEA1\0", b"ORC", b"ORCI", b"{", b"[", b"[{", b"<!DOCTYPE html", b"<HTML"];
    for magic in all.chain(more) {
        for split in 0..=magic.len() {
            // The delimiter is a byte of what the text must not begin with, or a comma behind it.
            let (first, delimiter, second) = match magic.get(split) {
                Some(&byte) => (&magic[..split], byte, &magic[split + 1..]),
                None => (magic, b',', &b"x"[..]),
            };
            if matches!(delimiter, b'"' | b'\r' | b'\n') {
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
    for name in [
        "a.xlsx",
        "a.xlsx.GZ",
        "a.json",
        "folder/a.db",
        "a.b.sqlite3",
        "a.orc",
        "a.zip",
        "a.sas7bdat",
        "a.csv.gpg",
        "a.csv.snappy",
        "a.npy",
    ] {
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

/// What is said is not guessed at, except of what is no text.
#[test]
fn a_text_is_what_it_is_said_to_be() {
    let texts: [&[u8]; 7] = [
        b"{\"x\n1\n",
        b"[\"a\n",
        b"<html\n1\n",
        b"-----BEGIN X\n",
        b"Salted__\n",
        b"%PDF-1\n1\n",
        b"RDX2\nX\n",
    ];
    let ordinary = ReadOptions { quoting: super::super::Quoting::Ordinary, ..CSV };
    for text in texts {
        let shown = text.escape_ascii().to_string();
        let Err(Error::Input(_)) = read("a.csv", text, None, None) else { panic!("{shown}") };
        let csv = |name, options| Table::from_reader(name, text, &options, None).unwrap();
        for (table, format) in [
            (csv("a.json", ReadOptions { format: Some(Format::Csv), ..ordinary }), Format::Csv),
            (csv("a.csv", ordinary), Format::Csv),
            // Only CSV can have quotes that are ordinary characters.
            (csv("a.txt", ordinary), Format::Csv),
            (read("a.csv", text, Some(Format::List), None).unwrap(), Format::List),
        ] {
            assert_eq!(table.format(), format, "{shown}");
            let first = match format {
                Format::List => table.cell(0, 0).to_vec(),
                _ => table.columns[0].raw.clone(),
            };
            assert_eq!(first, text.split(|&b| b == b'\n').next().unwrap(), "{shown}");
        }
    }
    // Quotes that are misused are no JSON then.
    let Err(Error::Input(e)) = read("a.csv", b"{\"x\n", Some(Format::Csv), None) else { panic!("read") };
    assert!(
        e.what.contains("there is a quote") && e.next.contains(crate::spelling::NO_QUOTES.marked()),
        "{e:?}"
    );
    let binary: [(&[u8], &str); 3] = [
        (b"PAR1\x15\x04", "a Parquet file"),
        (b"PK\x03\x04", "a zip file"),
        (b"Salted__\x01\x80", "encrypted by OpenSSL"),
    ];
    for (bytes, what) in binary {
        for format in [Format::Csv, Format::List] {
            let Err(Error::Input(e)) = read("a", bytes, Some(format), None) else { panic!("{what}") };
            assert!(e.what.contains(what), "{e:?}");
            assert!(e.what.ends_with(&format!("but the options say {format}")), "{e:?}");
        }
    }
    // Ordinary quotes make no CSV of what is another format by its name.
    assert_eq!(ordinary.format_of(Path::new("a.jsonl")), Format::JsonLines);
    assert_eq!(ordinary.format_of(Path::new("a.parquet")), Format::Parquet);
    let list = ReadOptions { format: Some(Format::List), ..ordinary };
    assert_eq!(list.format_of(Path::new("a.txt")), Format::List);
}

/// Letters with which files of other kinds begin are letters.
#[test]
fn texts_that_begin_like_other_files_are_read() {
    for text in [
        "PARENT_ID,NAME\n1,a\n",
        "PAREDES\nLOPEZ\n",
        "PGDMP\n1\n",
        "FEA1,b\n1,2\n",
        "RDX2\n1\n",
        "ORCHID\n1\n",
        "PAR1\nx\n",
    ] {
        for name in ["a.csv", "a.txt"] {
            let table = read(name, text.as_bytes(), None, None).unwrap_or_else(|e| panic!("{text:?}: {e}"));
            // What is written of it is read again.
            let mut written = Vec::new();
            let rows: Vec<usize> = (0..table.rows()).collect();
            write_rows(&table, &rows, None, (table.format(), &mut written)).unwrap();
            assert_eq!(read(name, &written, None, None).unwrap().rows(), table.rows(), "{text:?}");
        }
    }
}

/// The first line of a magic number can be a whole cell. Ordinary names are not quoted for that.
#[test]
fn a_cell_that_a_magic_number_goes_on_after_is_quoted() {
    for (cell, quoted) in [("RDX2", true), ("rdx3", true), ("x", false), ("RDX", false), ("RDX4", false)] {
        assert_eq!(may_look_other(cell.as_bytes(), b','), quoted, "{cell}");
    }
}
