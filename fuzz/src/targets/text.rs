//! The small decoders of input from people and peers: encoded keys, fingerprints, identities, networks, decimal numbers. The
//! first byte chooses one.
use crate::byte;
use std::sync::LazyLock;
use veilset::channel::Network;
use veilset::error::Result;
use veilset::item::{decode_key, encode_key};
use veilset::net::{Fingerprint, Identity};
use veilset::table::{Duplicates, EmptyKeys, Encoding, Normalise, ReadOptions, Table, keyed_set, values};

/// An encoding represents one key, and a key has one encoding.
fn key(bytes: &[u8], columns: usize) {
    if let Some(cells) = decode_key(bytes, columns) {
        assert_eq!(cells.len(), columns);
        let mut again = Vec::new();
        encode_key(cells, &mut again);
        assert_eq!(again, bytes);
    }
}

fn fingerprint(text: &str) {
    match text.parse::<Fingerprint>() {
        Ok(fingerprint) => assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint)),
        Err(e) => assert!(!e.chars().any(char::is_control), "{e:?}"),
    }
}

/// A number is parsed exactly as written, digit by digit.
fn decimal(cell: &[u8], scale: u32) {
    let quoted: Vec<u8> = cell.iter().flat_map(|&b| if b == b'"' { vec![b, b] } else { vec![b] }).collect();
    let csv = [b"key,value\nk,\"", &quoted[..], b"\"\n"].concat();
    let options = ReadOptions { encoding: Encoding::Bytes, ..ReadOptions::default() };
    let table = Table::from_reader("f.csv", &csv[..], &options, None).unwrap();
    assert_eq!(table.cell(0, 1), cell);
    let keyed = keyed_set(&table, &[0], Normalise::default(), EmptyKeys::Error, Duplicates::Error).unwrap();
    let Ok(values) = values(&table, &keyed, 1, scale) else { return };
    let text = std::str::from_utf8(cell).unwrap().trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{}{fraction:0<1$}", whole.trim_start_matches(['+', '-']), scale as usize);
    let digits = digits.trim_start_matches('0');
    assert_eq!(values[0].unsigned_abs().to_string(), if digits.is_empty() { "0" } else { digits });
    assert_eq!(values[0] < 0, text.starts_with('-') && !digits.is_empty());
}

/// Reads an identity from a file with these bytes, which only its owner can read.
fn identity(pem: &[u8]) -> Result<Identity> {
    static FILE: LazyLock<tempfile::NamedTempFile> =
        LazyLock::new(|| tempfile::NamedTempFile::new().unwrap());
    std::fs::write(FILE.path(), pem).unwrap();
    Identity::load(FILE.path())
}

/// Runs the target on an input.
pub(crate) fn run(data: &[u8]) {
    let mut data = data;
    let (kind, n) = (byte(&mut data) % 5, byte(&mut data));
    match (kind, std::str::from_utf8(data)) {
        (0, _) => key(data, usize::from(n)),
        (1, Ok(text)) => fingerprint(text),
        (2, _) => {
            let _ = identity(data);
        }
        (3, Ok(text)) => {
            let _ = text.parse::<Network>();
        }
        (4, _) => decimal(data, u32::from(n % 39)),
        _ => {}
    }
}
