//! Reading JSON lines into a [`Table`]: an object on each line, whose names are the columns.
//!
//! Strings are taken as text, numbers and truth values as they are written, null and missing names are no value, and a list
//! or an object is its JSON text. A key is a string, an integer or a truth value, as in all formats. Columns stand in the order in which their names first occur.

use super::builders::Builders;
use super::types::Unfit;
use super::{Column, Encoding, Format, Head, Lines, MAX_ROWS, NoKey, ReadOptions, Table, other, shorten};
use crate::error::{Error, Place, Result};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{BufRead, BufReader, Cursor, Read};

/// The longest line: 64 MiB.
const LONGEST: u64 = 64 << 20;
/// The most columns of a table.
const MOST_COLUMNS: usize = 1 << 12;
/// The most names that are kept for messages.
const MOST_NAMES: usize = 1 << 10;

/// The names and values of an object, in their order.
struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    pairs.push((name, map.next_value()?));
                }
                Ok(Object(pairs))
            }
        }
        from.deserialize_map(Pairs)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads the columns asked for.
pub(super) fn read(
    name: &str,
    mut reader: impl Read,
    options: &ReadOptions,
    columns: Option<&[String]>,
) -> Result<Table> {
    let mut head = Vec::new();
    let failed = |e: std::io::Error| super::read::unreadable(name, &e);
    reader.by_ref().take(other::HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    other::check_head(name, &head, Format::JsonLines)?;
    other::check_utf8(name, &head, Encoding::Utf8)?;
    let mut input = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(reader));
    let column = |name: &str| Column::of_text(name.as_bytes(), options.encoding);
    let mut header: Vec<Column> = columns.unwrap_or_default().iter().map(|name| column(name)).collect();
    let (mut rows, mut lines) = (Builders::new(options.encoding, header.len()), Lines::default());
    let mut places: HashMap<String, usize> = columns.unwrap_or_default().iter().cloned().zip(0..).collect();
    // Of each column, the number of the last row that had its name, from 1.
    let mut given = vec![0; header.len()];
    // Names that occur, for messages.
    let (mut names, mut known): (Vec<String>, HashSet<String>) = Default::default();
    let (mut bytes, mut line) = (Vec::new(), 0);
    loop {
        bytes.clear();
        line += 1;
        if input.by_ref().take(LONGEST).read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            break;
        }
        let wrong = |what: &str, next: &str| Error::input(name, what, next).at(Place::Line(line));
        if bytes.len() as u64 == LONGEST && !bytes.ends_with(b"\n") {
            return Err(wrong(
                "the line is longer than 64 MiB",
                "Is the file one JSON value? Write a line for each row",
            ));
        }
        let start = if line == 1 && bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let text = bytes[start..].trim_ascii();
        if text.is_empty() {
            continue;
        }
        // Its own words may quote a value.
        let Ok(Object(pairs)) = serde_json::from_slice::<Object<'_>>(text) else {
            let what = match text {
                [b'{', .., b'}'] => "this is not a JSON object",
                [b'{', ..] => "the JSON object does not end on its line",
                _ => "this is not a JSON object",
            };
            return Err(wrong(
                what,
                "Write each object on one line of its own, like {\"id\": 1}; jq -c . does so",
            ));
        };
        if rows.rows() == MAX_ROWS {
            return Err(wrong("there are too many rows", "Split the file and run once for each part"));
        }
        let row = rows.rows() + 1;
        for (key, value) in pairs {
            if names.len() < MOST_NAMES && !known.contains(key.as_ref()) {
                names.push(key.to_string());
                known.insert(key.to_string());
            }
            let at = match places.get(key.as_ref()) {
                Some(&at) => at,
                None if columns.is_some() => continue,
                None if header.len() == MOST_COLUMNS => {
                    return Err(wrong(
                        "the rows up to here have more than 4,096 different names, and JSON lines have at most as many columns",
                        "Give the rows the same names, or convert the file to CSV or Parquet",
                    ));
                }
                None => {
                    places.insert(key.to_string(), header.len());
                    header.push(column(&key));
                    given.push(0);
                    rows.add_column();
                    header.len() - 1
                }
            };
            if std::mem::replace(&mut given[at], row) == row {
                return Err(
                    wrong("the object has this name twice", "Keep one of them").at_column(shorten(&key))
                );
            }
            match value.get() {
                "null" => {}
                text if text.starts_with('"') => match serde_json::from_str::<Name<'_>>(text) {
                    Ok(Name(text)) => rows.push(at, text.as_bytes()),
                    Err(_) => return Err(wrong("this is not a JSON object", "Correct it")),
                },
                text => {
                    let no_key_yet = &mut header[at].no_key;
                    if let (None, Some(why)) = (&no_key_yet, no_key(text)) {
                        *no_key_yet = Some(NoKey { file: name.into(), place: Place::Line(line), why });
                    }
                    rows.push(at, text.as_bytes());
                }
            }
        }
        lines.push(rows.rows() as u32, line);
        rows.end_row()?;
    }
    if rows.rows() == 0 && columns.is_none() {
        return Err(Error::input(name, "the file is empty", "It needs a line for each row"));
    }
    let head = Head { file: name, names: &names, line: None, format: Format::JsonLines, unread: &[] };
    if let (Some(needed), true) = (columns, rows.rows() > 0) {
        for (name, _) in needed.iter().zip(&given).filter(|(_, given)| **given == 0) {
            head.columns(std::slice::from_ref(name))?;
        }
    }
    let batches = rows.finish(header.iter().map(|column| column.field.clone()))?;
    Ok(Table { lines, ..Table::of(name, Format::JsonLines, options, header, batches) })
}

/// Why a value that is not a string cannot be a key, if it cannot: an integer in its shortest form, true and false can.
fn no_key(value: &str) -> Option<Unfit> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    match value {
        "true" | "false" => None,
        _ if value.starts_with(['[', '{']) => Some(Unfit {
            what: "a list or an object cannot be a key".into(),
            next: "Write what is to be compared as a value of its own",
        }),
        _ if value != "-0" && digits.bytes().all(|byte| byte.is_ascii_digit()) => None,
        "-0" => Some(Unfit {
            what: "-0 cannot be a key: the same number is written 0".into(),
            next: "Write 0, or a string, the same way on both sides",
        }),
        _ => Some(Unfit {
            what: "a number with a fraction or an exponent cannot be a key: the same number is written in several ways".into(),
            next: "Write it as a string, the same way on both sides",
        }),
    }
}

#[cfg(test)]
#[path = "json_lines_tests.rs"]
mod tests;
