//! Formats, needed columns, normalised keys, columns of the other side.

use super::tests::{CSV, RAW, Slowly, assert_input, content, key, keyed_set, names, read};
use super::*;
use crate::error::Fault;
use crate::item::Items;

#[test]
fn lists_are_lines_as_they_stand() {
    let options = ReadOptions { format: Some(Format::List), ..CSV };
    // (file, items, lines)
    let cases: [(&str, &[&str], &[u64]); 7] = [
        ("a\nb\n", &["a", "b"], &[1, 2]),
        ("a\r\n\r\nb,c\r\n", &["a", "b,c"], &[1, 3]),
        ("\u{feff}\"a\"\"\n\"b\rc", &["\"a\"\"", "\"b", "c"], &[1, 2, 3]),
        (" a \n\n\n\tb", &[" a ", "\tb"], &[1, 4]),
        ("", &[], &[]),
        ("\n\n", &[], &[]),
        ("\u{feff}", &[], &[]),
    ];
    for (text, items, lines) in cases {
        for step in [1, 2, 1000] {
            for (name, options) in [("a.csv", options), ("a.txt", CSV), ("a.LIST", CSV)] {
                let table =
                    Table::from_reader(name, Slowly(step, text.as_bytes(), None), &options, None).unwrap();
                let (rows, got) = content(&table);
                assert_eq!(rows.concat(), [&[LIST_COLUMN], items].concat(), "{text:?}");
                assert_eq!((&got[..], table.format()), (lines, Format::List));
            }
        }
    }
    let long = "x".repeat(65_000);
    let table = Table::from_reader("a.txt", format!("{long}\ny").as_bytes(), &CSV, None).unwrap();
    assert_eq!((table.cell(0, 0), table.cell(1, 0)), (long.as_bytes().into(), b"y"[..].into()));
    let mut out = Vec::new();
    write_rows(&table, &[1, 0], None, (Format::List, &mut out)).unwrap();
    assert_eq!(out, format!("y\n{long}\n").as_bytes());
    let error = Table::from_reader("a.csv", &b"a\n\n\xff\n"[..], &options, None).unwrap_err();
    assert_input(&error, Some(3), Some("item"), "not valid UTF-8", "`encoding=bytes`", "list");

    // What the peer sends cannot make two items of one.
    let keyed = keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::First).unwrap();
    let new: Items = [key(&["a\nb"])].iter().collect();
    let multiline = ReadOptions { multiline_keys: true, ..CSV };
    let ours = Table::from_reader("a.csv", &b"id\nx\n\"y\nz\"\n"[..], &multiline, None).unwrap();
    let our_keys = keyed_set(&ours, &[0], EmptyKeys::Error, Duplicates::First).unwrap();
    let (mut out, none) = (Vec::new(), Items::new());
    let mut refused = |written: &dyn Fn(&mut Vec<u8>) -> Result<()>, whose: &str| {
        let error = written(&mut out).unwrap_err();
        let Error::Output(message) = &error else { panic!("{error}") };
        for words in [whose, "line break", "No file was written", "standard output", "`output_format=csv`"] {
            assert!(message.contains(words), "{message}");
        }
        // Standard output cannot be taken back.
        assert!(out.is_empty());
    };
    refused(
        &|out| {
            write_union(
                &table,
                KeyColumns::of(&[0]),
                &keyed,
                NewRows { items: &new, sent: None },
                (Format::List, out),
            )
        },
        "one of the peer's keys",
    );
    refused(
        &|out| {
            write_union(
                &ours,
                KeyColumns::of(&[0]),
                &our_keys,
                NewRows { items: &none, sent: None },
                (Format::List, out),
            )
        },
        "one of our keys",
    );
    refused(&|out| write_rows(&ours, &[0, 1], None, (Format::List, out)), "one of our keys");
    refused(&|out| write_keys(&table, KeyColumns::of(&[0]), &new, (Format::List, out)), "ours or the peer's");
    // What pieces before had is written.
    let mut part = Vec::new();
    let mut output = Output::of_rows(&ours, 2, None, (Format::List, &mut part)).unwrap();
    output.ours(&ours, &[0], None).unwrap();
    assert!(
        matches!(output.ours(&ours, &[1], None), Err(Error::Output(m)) if m.contains("not the whole result"))
    );
    write_rows(&ours, &[0], None, (Format::List, &mut out)).unwrap();
    assert_eq!(out, b"x\n");
}

#[test]
fn only_the_columns_that_are_needed_are_kept() {
    let csv = "id,x,x,n\r\n1,a,b,2\r\n3,c,d,4\r\n";
    let needed = |columns: &[&str]| Table::from_reader("a.csv", csv.as_bytes(), &CSV, Some(&names(columns)));
    let table = needed(&["n", "id", "n"]).unwrap();
    assert_eq!(table.header(), names(&["id", "n"]));
    assert_eq!((table.cell(1, 0), table.cell(1, 1), table.rows()), (b"3"[..].into(), b"4"[..].into(), 2));
    assert_eq!(table.columns(&names(&["n"])).unwrap(), [1]);
    let error = needed(&["id", "x"]).unwrap_err();
    assert_input(&error, Some(1), Some("x"), "this name twice, at columns 2 and 3", "Rename one", "twice");
    let error = needed(&["ID"]).unwrap_err();
    assert_input(&error, Some(1), Some("ID"), "no such column", "Did you mean \"id\"?", "none");
    // What is dropped is checked all the same.
    let bad = Table::from_reader("a.csv", &b"id,x\n1,\xff\n"[..], &CSV, Some(&names(&["id"]))).unwrap_err();
    assert_input(&bad, Some(2), Some("x"), "not valid UTF-8", "Convert the file", "bytes");
}

#[test]
fn keys_are_normalised_before_they_are_judged() {
    let table = read("id,n\n Stra\u{df}e,1\nSTRASSE\u{a0},2\nx,3\n\u{2003},4\n");
    let all: Normalise = "trim,casefold,nfc".parse().unwrap();
    let keyed = super::keyed_set(&table, &[0], all, EmptyKeys::Skip, Duplicates::First).unwrap();
    assert!(keyed.set.iter().eq([key(&["strasse"]), key(&["x"])].iter().map(Vec::as_slice)));
    assert_eq!((keyed.rows, keyed.duplicates, keyed.skipped), (vec![0, 2], 1, 1));
    let error = super::keyed_set(&table, &[0], all, EmptyKeys::Error, Duplicates::First).unwrap_err();
    assert_input(&error, Some(5), Some("id"), "the key is empty", "`empty_keys=skip`", "empty");
    let error = super::keyed_set(&table, &[0], all, EmptyKeys::Keep, Duplicates::Error).unwrap_err();
    assert_input(&error, Some(3), Some("id"), "same as on line 2", "`duplicates=first`", "same");

    // Folding can make a key longer than is allowed, and trimming shorter.
    let sharp = "\u{390}".repeat(crate::item::MAX_ITEM / 4);
    let wide = " ".repeat(crate::item::MAX_ITEM);
    let table = read(format!("id\n{wide}y\n{sharp}\n"));
    let keyed = super::keyed_set(&table, &[0], all, EmptyKeys::Error, Duplicates::Error).unwrap();
    assert_eq!(keyed.set.len(), 2);
    let fold: Normalise = "casefold".parse().unwrap();
    let table = read(format!("id\n{sharp}\n"));
    let error = super::keyed_set(&table, &[0], fold, EmptyKeys::Error, Duplicates::Error).unwrap_err();
    assert_input(&error, Some(2), Some("id"), "the maximum is 65536", "Shorten it", "long");
    let raw = Table::from_reader("a.csv", &b"id\nx\n"[..], &RAW, None).unwrap();
    let error = super::keyed_set(&raw, &[0], fold, EmptyKeys::Error, Duplicates::Error).unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
}

#[test]
fn sent_columns_stand_behind_ours() {
    let table = read("id,n\nx,1\ny,2\nz,3\n");
    let keyed = keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::First).unwrap();
    let theirs = read("k,a,b\ny,\"p,q\",\nx,,r\nw,s,t\n");
    let their_keys = keyed_set(&theirs, &[0], EmptyKeys::Error, Duplicates::First).unwrap();
    let payloads = super::payloads(&theirs, &their_keys, &[1, 2]).unwrap();
    let sent_names = names(&["a", "b"]);
    let some: Items = [payloads.get(0), payloads.get(1)].iter().collect();
    let mut out = Vec::new();
    let sent = SentColumns { names: &sent_names, payloads: &some };
    write_rows(&table, &[1, 0], Some(sent), (Format::Csv, &mut out)).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "id,n,a,b\ny,2,\"p,q\",\nx,1,,r\n");

    let new: Items = [key(&["w"]), key(&["u"])].iter().collect();
    let some: Items = [payloads.get(2), payloads.get(0)].iter().collect();
    let mut out = Vec::new();
    let sent = SentColumns { names: &sent_names, payloads: &some };
    write_union(
        &table,
        KeyColumns::of(&[0]),
        &keyed,
        NewRows { items: &new, sent: Some(sent) },
        (Format::Csv, &mut out),
    )
    .unwrap();
    let expected = "id,n,a,b\nx,1,,\ny,2,,\nz,3,,\nu,,\"p,q\",\nw,,s,t\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);

    let mut out = Vec::new();
    write_keys(&table, KeyColumns::of(&[0]), &new, (Format::List, &mut out)).unwrap();
    write_keys(&table, KeyColumns::of(&[0]), &new, (Format::Csv, &mut out)).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "u\nw\nid\nu\nw\n");

    for bad in [&b""[..], b"\x01a", b"\x01a\x01\xff", &key(&["a", "b", "c"])] {
        let some: Items = [payloads.get(0), bad].iter().collect();
        let sent = Some(SentColumns { names: &sent_names, payloads: &some });
        for &format in Format::ALL {
            let mut out = Vec::new();
            let rows = write_rows(&table, &[0, 1], sent, (format, &mut out)).unwrap_err();
            let union = write_union(
                &table,
                KeyColumns::of(&[0]),
                &keyed,
                NewRows { items: &new, sent },
                (format, &mut out),
            )
            .unwrap_err();
            for error in [rows, union] {
                assert!(
                    matches!(&error, Error::Peer { fault: Fault::Misbehaved, what: m, .. } if m.contains("not made of 2 columns")),
                    "{error}"
                );
            }
            assert!(out.is_empty());
        }
    }
    let none = Items::new();
    let sent = Some(SentColumns { names: &sent_names, payloads: &none });
    let error = write_rows(&table, &[0], sent, (Format::Csv, &mut Vec::new())).unwrap_err();
    assert!(matches!(error, Error::Bug(_)), "{error}");

    check_names(&table, &sent_names).unwrap();
    for (sent, words) in [(["a", "n"], "one of our columns"), (["a", "a"], "another sent column")] {
        let error = check_names(&table, &names(&sent)).unwrap_err();
        assert!(matches!(&error, Error::Usage(m) if m.contains(words) && m.contains("=OTHER")), "{error}");
    }
    check_output(&table, &[], Format::Csv).unwrap();
    assert!(matches!(check_output(&table, &[], Format::List), Err(Error::Usage(_))));
    assert!(check_output(&read("a,a\n"), &[], Format::Parquet).is_err());
    check_output(&read("a,a\n"), &[], Format::Csv).unwrap();
}

#[test]
fn formats_follow_from_names() {
    use Format::{Csv, List, Parquet};
    for (path, format) in
        [("a.csv", Csv), ("-", Csv), ("a", Csv), ("a.Parquet", Parquet), ("a.pq", Parquet), ("a.txt", List)]
    {
        assert_eq!(Format::of_input(Path::new(path)), format, "{path}");
    }
    // (output, input, columns, format)
    let cases = [
        (None, Csv, 2, Csv),
        (None, Parquet, 2, Csv),
        (None, List, 1, List),
        (None, List, 2, Csv),
        (Some("a.parquet"), List, 1, Parquet),
        (Some("a.txt"), Csv, 1, List),
        (Some("a.txt"), Csv, 2, List),
        (Some("a.csv"), List, 1, Csv),
        (Some("-"), Parquet, 1, Csv),
    ];
    for (path, input, columns, format) in cases {
        assert_eq!(
            Format::of_output(path.map(Path::new), input, columns),
            format,
            "{path:?} {input} {columns}"
        );
    }
    for &format in Format::ALL {
        assert_eq!(format.name().parse::<Format>().unwrap(), format);
    }
    assert!("xml".parse::<Format>().is_err());
}
