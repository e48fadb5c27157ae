//! Files as lists of rows of cells: written with random variations of the syntax, and read back by a simple
//! parser of their own.

use std::path::Path;
use veilset::error::Result;
use veilset::rng::Prng;
use veilset::table::{Destination, Encoding, Format, ReadOptions, Table, write_rows};

/// The header and the rows.
pub type Rows = Vec<Vec<Vec<u8>>>;

/// Writes rows as a file of this format, with random line ends, quotes and byte-order mark where the format
/// allows.
pub fn write(rng: &mut Prng, path: &Path, format: Format, encoding: Encoding, rows: &Rows) -> Result<()> {
    let delimiter = if path.extension().is_some_and(|e| e == "tsv") { b'\t' } else { b',' };
    let text = match format {
        Format::List => lines(rng, rows),
        Format::JsonLines => json_lines(rng, rows),
        Format::Csv | Format::Parquet | Format::Arrow => csv(rng, delimiter, rows, encoding),
    };
    let mut output = Destination::create("input of a soak", Some(path), true)?;
    if matches!(format, Format::Parquet | Format::Arrow) {
        let options = ReadOptions {
            format: Some(Format::Csv),
            delimiter: Some(delimiter),
            encoding,
            ..ReadOptions::default()
        };
        let table = Table::from_reader("soak", text.as_slice(), &options, None)?;
        write_rows(&table, &(0..table.rows()).collect::<Vec<_>>(), None, (format, &mut output.writer()))?;
    } else {
        output.writer().write_all(&text).map_err(|e| output.unwritable(&e))?;
    }
    output.commit()
}

fn line_end(rng: &mut Prng) -> &'static [u8] {
    [&b"\n"[..], b"\r\n"][rng.below(2) as usize]
}

/// Writes the cells of a list, without the header.
fn lines(rng: &mut Prng, rows: &Rows) -> Vec<u8> {
    let end = line_end(rng);
    rows.iter().skip(1).flat_map(|row| row.iter().flatten().chain(end).copied()).collect()
}

fn csv(rng: &mut Prng, delimiter: u8, rows: &Rows, encoding: Encoding) -> Vec<u8> {
    let end = line_end(rng);
    let mark = encoding == Encoding::Utf8 && rng.below(4) == 0;
    let mut text = if mark { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
    for row in rows {
        for (i, cell) in row.iter().enumerate() {
            if i > 0 {
                text.push(delimiter);
            }
            let special = |b: &u8| [delimiter, b'"', b'\r', b'\n'].contains(b);
            // A single empty cell would be a blank line, and a cell must not begin with an unquoted byte-order
            // mark.
            let quoted =
                cell.iter().any(special) || cell.is_empty() || !cell[0].is_ascii() || rng.below(5) == 0;
            match quoted {
                true => {
                    text.push(b'"');
                    for &b in cell {
                        text.extend(std::iter::repeat_n(b, if b == b'"' { 2 } else { 1 }));
                    }
                    text.push(b'"');
                }
                false => text.extend(cell),
            }
        }
        text.extend(end);
    }
    // The last line may lack its line end.
    if rng.below(3) == 0 && rows.len() > 1 {
        text.truncate(text.len() - end.len());
    }
    text
}

/// Writes one object per row. The cells must be text.
fn json_lines(rng: &mut Prng, rows: &Rows) -> Vec<u8> {
    let (end, mark) = (line_end(rng), rng.below(4) == 0);
    let mut text = if mark && rows.len() > 1 { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
    let Some((names, rows)) = rows.split_first() else { return text };
    for (i, row) in rows.iter().enumerate() {
        let mut pairs = Vec::new();
        for (name, cell) in names.iter().zip(row) {
            let value = match cell.is_empty() {
                // The first row defines the order of the columns.
                true if i > 0 && rng.below(3) == 0 => continue,
                true if rng.below(2) == 0 => "null".into(),
                _ => json(rng, cell),
            };
            pairs.push(format!("{}:{}{value}", json_text(rng, name), ["", " "][rng.below(2) as usize]));
        }
        text.extend(format!("{{{}}}", pairs.join([",", ", "][rng.below(2) as usize])).bytes());
        text.extend(end);
    }
    // The last line may lack its line end.
    if rng.below(3) == 0 && !rows.is_empty() {
        text.truncate(text.len() - end.len());
    }
    text
}

/// Returns a JSON value that is read as this text: a string, or a number that is written the same way.
fn json(rng: &mut Prng, cell: &[u8]) -> String {
    // A number may have space around it, which is not read as part of it.
    let bare = !cell.iter().any(u8::is_ascii_whitespace);
    let number = bare && serde_json::from_slice::<serde_json::Number>(cell).is_ok();
    match number && rng.below(2) == 0 {
        true => String::from_utf8_lossy(cell).into_owned(),
        false => json_text(rng, cell),
    }
}

/// Returns a JSON string with some characters escaped.
fn json_text(rng: &mut Prng, text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let escaped = rng.below(3) == 0;
    let all = text.chars().map(|c| match escaped && !c.is_ascii() {
        true => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        false => {
            let quoted = serde_json::Value::from(c.to_string()).to_string();
            quoted[1..quoted.len() - 1].to_string()
        }
    });
    format!("\"{}\"", all.collect::<String>())
}

/// Reads a result.
pub fn read(path: &Path) -> Result<Rows, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    match path.extension().and_then(|e| e.to_str()) {
        Some("parquet" | "arrow") => {
            let options = ReadOptions { encoding: Encoding::Bytes, ..ReadOptions::default() };
            let table = Table::read(path, &options, None).map_err(|e| e.to_string())?;
            let header = table.header().iter().map(|h| h.clone().into_bytes()).collect();
            let columns = table.header().len();
            let row = |row| (0..columns).map(|column| table.cell(row, column).to_vec()).collect();
            Ok(std::iter::once(header).chain((0..table.rows()).map(row)).collect())
        }
        Some("txt") => {
            let rows = bytes.split(|&b| b == b'\n').map(|line| vec![line.to_vec()]);
            let mut rows: Rows = std::iter::once(vec![b"item".to_vec()]).chain(rows).collect();
            match rows.pop() {
                Some(last) if last == [b""] => Ok(rows),
                _ => Err("the last line does not end".into()),
            }
        }
        extension => parse(&bytes, if extension == Some("tsv") { b'\t' } else { b',' }),
    }
}

/// Parses RFC 4180 with LF, the format of results.
fn parse(text: &[u8], delimiter: u8) -> Result<Rows, String> {
    let (mut rows, mut row, mut cell) = (Rows::new(), Vec::new(), Vec::new());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if cell.is_empty() => loop {
                match (bytes.next(), bytes.peek()) {
                    (Some(b'"'), Some(b'"')) => cell.extend(bytes.next()),
                    (Some(b'"'), _) => break,
                    (Some(b), _) => cell.push(b),
                    (None, _) => return Err("a quote is not closed".into()),
                }
            },
            b if b == delimiter => row.push(std::mem::take(&mut cell)),
            b'\n' => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            b => cell.push(b),
        }
    }
    match row.is_empty() && cell.is_empty() {
        true => Ok(rows),
        false => Err("the last line does not end".into()),
    }
}
