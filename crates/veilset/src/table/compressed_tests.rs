use super::super::{Format, ReadOptions, Table};
use super::*;
use std::io::Write;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).unwrap()
}

fn read(name: &str, bytes: &[u8]) -> Result<Table> {
    Table::from_reader(name, bytes, &ReadOptions::default(), None)
}

#[test]
fn compressed_files_are_read_like_what_is_in_them() {
    let csv: String = (0..30_000).map(|i| format!("{i}\tline {i}\n")).collect();
    let csv = format!("id\ttext\n{csv}");
    let plain = read("a.tsv", csv.as_bytes()).unwrap();
    let two = [gzip(&csv.as_bytes()[..1000]), gzip(&csv.as_bytes()[1000..])].concat();
    let frames = [zstandard(&csv.as_bytes()[..1000]), zstandard(&csv.as_bytes()[1000..])].concat();
    for (name, bytes) in [
        ("a.tsv.gz", gzip(csv.as_bytes())),
        ("a.TSV.GZ", two),
        ("a.tsv.zst", zstandard(csv.as_bytes())),
        ("a.tsv", frames),
    ] {
        let table = read(name, &bytes).unwrap();
        assert_eq!((table.header(), table.rows(), table.name()), (plain.header(), plain.rows(), name));
        assert!((0..plain.rows()).all(|row| table.cell(row, 1) == plain.cell(row, 1)));
        assert_eq!(table.place(5).to_string(), "line 7");
    }
    let list = read("a.txt.gz", &gzip(b"x\ny\n")).unwrap();
    assert_eq!((list.format(), list.rows()), (Format::List, 2));
    // Through a file, whose name decides.
    let folder = tempfile::tempdir().unwrap();
    for (name, inside) in [("p.csv.gz", &b"k\n1\n"[..]), ("p.list.zst", b"1\n2\n")] {
        let path = folder.path().join(name);
        std::fs::write(&path, if name.ends_with("gz") { gzip(inside) } else { zstandard(inside) }).unwrap();
        let table = Table::read(&path, &ReadOptions::default(), None).unwrap();
        assert!(table.rows() > 0, "{name}");
    }
}

#[test]
fn damaged_and_endless_files_are_refused() {
    let csv = format!("id\n{}", (0..50_000).map(|i| format!("{}\n", i * 7919 % 10_007)).collect::<String>());
    for (name, whole) in [("a.csv.gz", gzip(csv.as_bytes())), ("a.csv.zst", zstandard(csv.as_bytes()))] {
        for cut in [5, 11, whole.len() / 2, whole.len() - 1] {
            let Err(Error::Input(e)) = read(name, &whole[..cut]) else { panic!("{name} of {cut} bytes") };
            assert!(e.what.contains("damaged or incomplete"), "{name} of {cut} bytes: {e:?}");
        }
        let mut altered = whole.clone();
        altered[whole.len() / 2] ^= 0xff;
        // What is compressed has a checksum or not; it is read or refused.
        if let Err(e) = read(name, &altered) {
            assert!(matches!(e, Error::Input(_)), "{e}");
        }
    }
    // A gigabyte and more of nothing in a few kilobytes.
    let mut bomb = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    let zeros = vec![b'x'; 1 << 20];
    (0..1100).for_each(|_| bomb.write_all(&zeros).unwrap());
    let bomb = bomb.finish().unwrap();
    let mut from = decompressed("a", &bomb[..]).unwrap();
    let error = io::copy(&mut from, &mut io::sink()).unwrap_err();
    assert!(error.to_string().contains("times as large"), "{error}");
}

#[test]
fn the_name_inside_is_that_without_the_extension() {
    for (name, inside) in [
        ("a.csv.gz", Some("a.csv")),
        ("a.b.ZST", Some("a.b")),
        ("a.csv", None),
        ("gz", None),
        ("a.gzip", None),
    ] {
        assert_eq!(inner(Path::new(name)).as_deref(), inside.map(Path::new), "{name}");
    }
}
