//! Several files are one table, whose messages name the file; folders stand for their files.

use super::super::tests::{CSV, keyed_set};
use super::super::{Duplicates, EmptyKeys, Format, ReadOptions, Table, input_files, name_of, write_rows};
use crate::error::{Error, Place, Result};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with files of these names and contents.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    dir
}

fn read(inputs: &[PathBuf], options: &ReadOptions) -> Result<Table> {
    Table::read_all(inputs, options, None, &|_| Ok(()))
}

fn cells(table: &Table, column: usize) -> Vec<String> {
    (0..table.rows()).map(|row| String::from_utf8(table.cell(row, column).into()).unwrap()).collect()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T>, words: &[&str]) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Input(_) | Error::Usage(_)), "{error:?}");
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn files_follow_each_other_and_messages_name_the_file_and_its_line() {
    let dir = folder(&[
        ("b.csv", "id,city\n3,Oslo\n\n4,\n"),
        ("a.csv", "id,city\n1,Rome\n2,Bern\n"),
        ("c.csv", "id,city\n"),
        ("d.csv", "id,city\n\n\n1,Wien\n"),
    ]);
    let at = |name: &str| dir.path().join(name);
    let all = ["b.csv", "a.csv", "c.csv", "d.csv"].map(at);
    let table = read(&all, &CSV).unwrap();
    assert_eq!(cells(&table, 0), ["3", "4", "1", "2", "1"]);
    assert_eq!([0, 1, 2, 3, 4].map(|row| table.place(row)), [2, 4, 2, 3, 4].map(Place::Line));
    assert_eq!(table.name(), format!("{} and 3 more", all[0].display()));
    let of = |name: &str| at(name).display().to_string();
    refused(
        keyed_set(&table, &[1], EmptyKeys::Error, Duplicates::First),
        &[&format!("{}, line 4, column \"city\": the key is empty", of("b.csv"))],
    );
    refused(
        keyed_set(&table, &[0], EmptyKeys::Error, Duplicates::Error),
        &[&format!("{}, line 4", of("d.csv")), &format!("the same as on line 2 of {}", of("a.csv"))],
    );
    // A folder is its files in the order of their names.
    let table = read(&[dir.path().into()], &CSV).unwrap();
    assert_eq!(cells(&table, 0), ["1", "2", "3", "4", "1"]);
    let mut written = Vec::new();
    write_rows(&table, &[4, 2], None, (Format::Csv, &mut written)).unwrap();
    assert_eq!(written, b"id,city\n1,Wien\n3,Oslo\n");
    // One file is read as always.
    let one = read(&[at("a.csv")], &CSV).unwrap();
    assert_eq!((one.name(), one.place(1)), (&*of("a.csv"), Place::Line(3)));
}

#[test]
fn columns_keep_their_types_over_several_files() {
    let dir = folder(&[("a.csv", "id,n\n1,5\n2,6\n"), ("b.csv", "id,n\n3,7\n")]);
    for format in [Format::Parquet, Format::Arrow] {
        let parts: Vec<PathBuf> = ["a", "b"]
            .map(|name| {
                let table = read(&[dir.path().join(format!("{name}.csv"))], &CSV).unwrap();
                let part = dir.path().join(format!("{name}.{}", format.name()));
                let mut out = Vec::new();
                let rows: Vec<usize> = (0..table.rows()).collect();
                write_rows(&table, &rows, None, (format, &mut out)).unwrap();
                fs::write(&part, out).unwrap();
                part
            })
            .into();
        let table = read(&parts, &ReadOptions::default()).unwrap();
        assert_eq!((table.format(), cells(&table, 1)), (format, ["5", "6", "7"].map(String::from).to_vec()));
        assert_eq!([1, 2].map(|row| table.place(row)), [Place::Row(2), Place::Row(1)]);
        let mut out = Vec::new();
        write_rows(&table, &[2, 0], None, (Format::Csv, &mut out)).unwrap();
        assert_eq!(out, b"id,n\n3,7\n1,5\n", "{format}");
        refused(
            read(&[parts[0].clone(), dir.path().join("b.csv")], &CSV),
            &["b.csv", "the file is csv", "Name files"],
        );
    }
}

#[test]
fn files_of_other_columns_are_refused_and_the_column_is_named() {
    let dir = folder(&[
        ("a.csv", "id,city\n1,Rome\n"),
        ("order.csv", "city,id\nRome,1\n"),
        ("fewer.csv", "id\n1\n"),
        ("more.csv", "id,city,age\n1,Rome,5\n"),
    ]);
    let with = |name: &str| read(&[dir.path().join("a.csv"), dir.path().join(name)], &CSV);
    refused(with("order.csv"), &["order.csv", "column 1 is \"city\", but \"id\" in", "the same columns"]);
    refused(with("fewer.csv"), &["fewer.csv", "fewer columns than", "1 instead of 2"]);
    refused(with("more.csv"), &["more.csv", "more columns than", "3 instead of 2"]);
    refused(with("none.csv"), &["none.csv", "cannot be opened"]);
}

#[test]
fn folders_and_names_that_cannot_be_meant_are_refused() {
    let dir = folder(&[
        ("a/x.csv", "id\n1\n"),
        ("a/_SUCCESS", ""),
        ("a/.x.crc", ""),
        ("b/c/x.csv", ""),
        ("d/_x", ""),
    ]);
    let at = |name: &str| dir.path().join(name);
    assert_eq!(input_files(&[at("a")]).unwrap(), [at("a/x.csv")]);
    refused(input_files(&[at("b")]), &["another folder in it", "Name the folders"]);
    refused(input_files(&[at("d")]), &["the folder has no files"]);
    refused(input_files(&[at("a"), at("a/../a/x.csv")]), &["x.csv is there twice"]);
    refused(input_files(&["-".into(), at("a/x.csv")]), &["Name it alone"]);
    assert_eq!(input_files(&["-".into()]).unwrap(), [Path::new("-")]);
    assert_eq!(name_of(&["-".into()]), "-");
    refused(read(&[], &CSV), &["no input"]);
}

#[test]
fn progress_goes_over_all_files() {
    let dir = folder(&[("a.csv", "id\n1\n"), ("b.csv", "id\n2\n3\n")]);
    let last = Cell::new(0);
    let step = |bytes| {
        assert!(bytes >= last.replace(bytes));
        Ok(())
    };
    Table::read_all(&[dir.path().into()], &CSV, None, &step).unwrap();
    assert_eq!(last.get(), 12);
    let stopped = Table::read_all(&[dir.path().into()], &CSV, None, &|_| Err(Error::Cancelled));
    assert_eq!(stopped.unwrap_err(), Error::Cancelled);
}

#[test]
fn a_folder_with_rows_of_earlier_versions_is_no_table_of_ours() {
    let cases =
        [(&["_delta_log"][..], "Delta Lake"), (&[".hoodie"], "Hudi"), (&["metadata", "data"], "Iceberg")];
    for (inside, kind) in cases {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("part-0.csv"), "k\n1\n").unwrap();
        assert_eq!(input_files(&[folder.path().into()]).unwrap().len(), 1);
        for name in inside {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let e = input_files(&[folder.path().into()]).unwrap_err().to_string();
        assert!(e.contains(&format!("a table of {kind}")) && e.contains("Export its rows"), "{e}");
        // A file of it may be named.
        assert_eq!(input_files(&[folder.path().join("part-0.csv")]).unwrap().len(), 1);
    }
}
