//! The names are those of the whole table, from a look at its beginning; and nothing else is opened or read.

use super::super::Table;
use super::super::batches::tests::many;
use super::*;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use std::fs;
use std::path::PathBuf;

fn at(folder: &tempfile::TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn names_are_those_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x,\"y\nz\"\n".to_string() + &"1,2\n".repeat(1 << 15);
    let lines = "{\"id\":1,\"b c\":null}\n".repeat(1 << 13);
    // (name, content, options)
    let plain = ReadOptions::default();
    let cases = [
        ("a.csv", "id,\"last, first\",city\n1,2,3\n", plain),
        ("b.csv", "\u{feff}id;name\r\n1;2\r\n", plain),
        ("c.csv", "\n\nid|name", plain),
        ("d.csv", "id;a,b\n1;2\n", ReadOptions { delimiter: Some(b';'), ..plain }),
        ("e.tsv", "id\tb,c\n", plain),
        ("f.csv", "1,2,3\n4,5,6\n", ReadOptions { headerless: true, ..plain }),
        ("g.csv", &long, plain),
        ("h.jsonl", &lines, plain),
        ("i.data", "{\"id\":1}\n{\"b\":2}", ReadOptions { format: Some(Format::JsonLines), ..plain }),
    ];
    for (name, text, options) in cases {
        let path = at(&folder, name, text);
        let table = Table::read(&path, &options, None).unwrap();
        assert_eq!(column_names(&path, &options).unwrap(), table.header(), "{name}");
        let path = at(&folder, &format!("{name}.zst"), zstd::stream::encode_all(text.as_bytes(), 3).unwrap());
        assert_eq!(column_names(&path, &options).unwrap(), table.header(), "{name}");
    }
    assert!(column_names(&at(&folder, "a.txt", "1\n2\n"), &plain).unwrap().is_empty());
}

#[test]
fn names_of_arrow_are_those_whose_cells_have_a_text() {
    let (schema, batches) = many();
    let mut file = FileWriter::try_new(Vec::new(), &schema).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    file.write(&batches[0]).unwrap();
    stream.write(&batches[0]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let expected: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let expected: Vec<_> =
        expected.into_iter().filter(|name| !["list", "duration"].contains(&name.as_str())).collect();
    for (name, bytes) in [("a.arrow", file.into_inner().unwrap()), ("b.arrows", stream.into_inner().unwrap())]
    {
        assert_eq!(column_names(&at(&folder, name, bytes), &ReadOptions::default()).unwrap(), expected);
    }
}

#[cfg(feature = "parquet")]
#[test]
fn names_of_parquet_are_in_its_footer() {
    let (schema, _) = many();
    let kept = schema.project(&(0..3).collect::<Vec<_>>()).unwrap();
    let mut out = Vec::new();
    let writer = ::parquet::arrow::ArrowWriter::try_new(&mut out, kept.clone().into(), None).unwrap();
    writer.close().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = at(&folder, "a.parquet", &out);
    let names: Vec<_> = kept.fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(column_names(&path, &ReadOptions::default()).unwrap(), names);
    let file = || fs::File::open(&path).unwrap();
    assert!(super::parquet::names("a", file(), &ReadOptions::default(), 10).is_err());
    // Its footer is cut off.
    at(&folder, "a.parquet", &out[..out.len() - 20]);
    assert!(column_names(&path, &ReadOptions::default()).is_err());
}

#[test]
fn nothing_else_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: PathBuf| column_names(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(refused(folder.path().into()).contains("not a regular file"));
    assert!(refused("/dev/zero".into()).contains("not a regular file"));
    assert!(refused(folder.path().join("none.csv")).contains("cannot be opened"));
    // A header that the beginning does not have is not taken from it.
    let endless = at(&folder, "a.csv", vec![b'x'; 1 << 17]);
    assert!(refused(endless).contains("longer than 64 KiB"));
    let quoted = ["\"", &"x\n".repeat(1 << 16), "\",y\n"].concat();
    assert!(refused(at(&folder, "b.csv", quoted)).contains("never closed"));
    assert!(refused(at(&folder, "c.jsonl", "{\"a\":\n")).contains("does not end on its line"));
    let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1 << 16));
    assert!(refused(at(&folder, "d.jsonl", long)).contains("longer than 64 KiB"));
    assert!(refused(at(&folder, "e.csv", b"\xffid,\xff\n")).contains("UTF-8"));
    assert!(refused(at(&folder, "f.arrow", b"ARROW1\0\0")).contains("damaged"));
}
