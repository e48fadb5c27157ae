use super::*;
use crate::item::Items;
use crate::table::tests::{CSV, content, names};
use crate::table::{Output, SentColumns, write_rows};
use std::path::PathBuf;

/// The pieces of these files, of so many rows.
fn pieces(files: &[PathBuf], columns: Option<&[String]>, rows: usize) -> Result<Vec<Table>> {
    let mut all = Vec::new();
    Table::in_pieces(files, &CSV, columns, rows, &|_| Ok(()), &mut |piece| {
        all.push(piece);
        Ok(())
    })?;
    Ok(all)
}

fn folder(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let paths = files.iter().map(|(name, contents)| {
        let path = dir.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path
    });
    let paths = paths.collect();
    (dir, paths)
}

fn csv() -> (tempfile::TempDir, Vec<PathBuf>) {
    let second: String = (0..23).map(|i| format!("k{i},\"line\nbreak {i}\"\n")).collect();
    folder(&[
        ("a.csv", b"id,n\n\n1,2\n2,\n3,4\n"),
        ("b.csv", b"id,n\n"),
        ("c.csv", format!("id,n\n{second}").as_bytes()),
    ])
}

#[test]
fn pieces_are_the_table_with_the_places_of_its_rows() {
    let (_dir, files) = csv();
    for (files, columns) in [(&files[..], None), (&files[..1], None), (&files[2..], Some(names(&["n"])))] {
        let columns = columns.as_deref();
        let whole = Table::read_all(files, &CSV, columns, &|_| Ok(())).unwrap();
        let (all, lines) = content(&whole);
        let whereabouts: Vec<String> = (0..whole.rows()).map(|row| whole.whereabouts(row)).collect();
        for rows in [1, 2, 5, 100] {
            let pieces = pieces(files, columns, rows).unwrap();
            assert!(pieces.iter().all(|piece| piece.rows() <= rows && piece.header() == whole.header()));
            let (mut seen, mut seen_lines) = (vec![all[0].clone()], Vec::new());
            for piece in &pieces {
                let (cells, lines) = content(piece);
                seen.extend_from_slice(&cells[1..]);
                seen_lines.extend(lines);
            }
            assert_eq!((seen, seen_lines), (all.clone(), lines.clone()));
            let places = pieces.iter().flat_map(|piece| (0..piece.rows()).map(|row| piece.whereabouts(row)));
            assert!(places.eq(whereabouts.iter().cloned()));
        }
    }
}

#[test]
fn a_result_written_piece_by_piece_is_that_of_the_table() {
    let (_dir, files) = csv();
    let whole = Table::read_all(&files, &CSV, None, &|_| Ok(())).unwrap();
    let rows: Vec<usize> = (0..whole.rows()).filter(|row| row % 3 != 1).collect();
    let payloads: Items =
        rows.iter().map(|row| [&[2][..], format!("{:02}", row).as_bytes()].concat()).collect();
    let (names, payloads) = (&names(&["theirs"])[..], &payloads);
    let sent = SentColumns { names, payloads };
    let mut expected = Vec::new();
    write_rows(&whole, &rows, Some(sent), (Format::Csv, &mut expected)).unwrap();
    for size in [1, 4, 100] {
        let pieces = pieces(&files, None, size).unwrap();
        let mut head = pieces[0].without_rows();
        pieces.iter().for_each(|piece| head.include(piece));
        let mut written = Vec::new();
        let mut output = Output::of_rows(&head, rows.len(), Some(sent), (Format::Csv, &mut written)).unwrap();
        let (mut first, mut done) = (0, 0);
        for piece in &pieces {
            let of = rows.iter().filter(|row| (first..first + piece.rows()).contains(row));
            let of: Vec<usize> = of.map(|row| row - first).collect();
            output.ours(piece, &of, Some((sent, done))).unwrap();
            first += piece.rows();
            done += of.len();
        }
        output.end().unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(expected.clone()).unwrap());
    }
}

#[test]
fn other_columns_standard_input_and_nothing_are_refused() {
    let (_dir, files) = folder(&[("a.csv", b"id\n1\n"), ("b.csv", b"other\n1\n")]);
    let refused = |files: &[PathBuf], word: &str| {
        let error = pieces(files, None, 1).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    };
    refused(&files, "\"other\"");
    refused(&["-".into()], "once only");
    refused(&[], "no input");
    refused(&["missing.csv".into()], "cannot be opened");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_comes_in_pieces_with_rows_that_count_on() {
    let text: String = (0..10_000).map(|i| format!("{i},{}\n", i * i)).collect();
    let table = Table::from_reader("a.csv", format!("id,n\n{text}").as_bytes(), &CSV, None).unwrap();
    let all: Vec<usize> = (0..10_000).collect();
    let mut bytes = Vec::new();
    write_rows(&table, &all, None, (Format::Parquet, &mut bytes)).unwrap();
    let (_dir, files) = folder(&[("a.parquet", &bytes), ("b.parquet", &bytes)]);
    for (files, expected) in [(&files[..1], 3), (&files[..], 6)] {
        let pieces = pieces(files, None, 4000).unwrap();
        assert_eq!(pieces.len(), expected);
        let whole = Table::read_all(files, &CSV, None, &|_| Ok(())).unwrap();
        let mut row = 0;
        for piece in &pieces {
            for at in (0..piece.rows()).step_by(997) {
                assert_eq!(piece.cell(at, 1), whole.cell(row + at, 1));
                assert_eq!(piece.whereabouts(at), whole.whereabouts(row + at));
            }
            row += piece.rows();
        }
        assert_eq!(row, whole.rows());
    }
}
