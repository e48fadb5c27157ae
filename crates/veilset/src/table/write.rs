//! Writing results as CSV (RFC 4180 quoting where needed, LF line ends), as a list, or as columns of values.

use super::arrow_write::ArrowSink;
use super::batches::Batches;
use super::delimiter::DELIMITERS;
use super::sent::{SentColumns, check_items};
use super::types::Kind;
use super::{Format, KeyedSet, Store, Table, destination, other, typed};
use crate::error::{Error, Result};
use crate::item::{Items, decode_key};
use crate::spelling::OUTPUT_FORMAT;
use arrow_schema::{DataType, FieldRef};
use std::borrow::Cow;
use std::io::{self, Write};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The kind of file.
    pub format: Format,
    /// Whether CSV is written for spreadsheets, which take a cell for a formula if it begins with `=`, `+`, `-`, `@`,
    /// a tab or a line end. Such a cell gets an apostrophe in front, unless it is a number. Other formats mark text
    /// themselves.
    pub for_spreadsheets: bool,
    /// The column separator of CSV; `None` for that of the table.
    pub delimiter: Option<u8>,
}

impl From<Format> for Layout {
    /// With the cells exactly as they are.
    fn from(format: Format) -> Layout {
        Layout { format, for_spreadsheets: false, delimiter: None }
    }
}

/// Where a result is written.
pub enum To<'a> {
    /// As the bytes of a file.
    File(Layout, &'a mut (dyn Write + Send)),
    /// As Arrow batches, which replace those that are there.
    Batches(&'a mut Batches),
}

impl<'a, L: Into<Layout>, W: Write + Send> From<(L, &'a mut W)> for To<'a> {
    fn from((layout, out): (L, &'a mut W)) -> To<'a> {
        To::File(layout.into(), out)
    }
}

impl<'a> From<&'a mut Batches> for To<'a> {
    fn from(batches: &'a mut Batches) -> To<'a> {
        To::Batches(batches)
    }
}

impl To<'_> {
    fn is(&self, format: Format) -> bool {
        matches!(self, To::File(layout, _) if layout.format == format)
    }

    /// Whether columns of values are written, with a type for each.
    fn is_typed(&self) -> bool {
        !self.is(Format::Csv) && !self.is(Format::List)
    }
}

/// Writes the given rows of a table, in the order given, with the sent columns after ours: payload `i` belongs to
/// `rows[i]`. Payloads and items of a list are checked before the first byte is written.
pub fn write_rows<'a>(
    table: &Table,
    rows: &[usize],
    sent: Option<SentColumns>,
    to: impl Into<To<'a>>,
) -> Result<()> {
    let mut output = Output::of_rows(table, rows.len(), sent, to)?;
    output.ours(table, rows, &|i| sent.map(|sent| sent.cells(i)).unwrap_or_default())?;
    output.end()
}

/// Writes a union: our rows, then a row for each item that is new to us, with its columns under our key columns
/// and the other cells empty. The new rows are sorted by item, because they arrive in random order and two runs
/// should give the same file. Payload `i` of the sent columns belongs to `new_items[i]`; our rows have none.
///
/// Where columns have types, a key column keeps its type only if all new keys are values of it, and becomes text otherwise. It does so
/// in any case if its place in the key is in `as_text`, because a key of another part of the result is none
/// ([`text_keys`]).
///
/// All new items and payloads are checked before the first byte is written. One that does not decode into this many
/// columns, or into text where ours is text, is the peer's fault. A line break in an item of a list is an output
/// error: another format can hold it.
pub fn write_union<'a>(
    table: &Table,
    (key, as_text): (&[usize], &[usize]),
    keyed: &KeyedSet,
    (new_items, sent): (&Items, Option<SentColumns>),
    to: impl Into<To<'a>>,
) -> Result<()> {
    let rows: Vec<usize> = keyed.rows.iter().map(|&row| row as usize).collect();
    let mut output = Output::of_union(table, (key, as_text), (new_items, sent), to)?;
    let none = vec![None; sent.map_or(0, |sent| sent.names.len())];
    output.ours(table, &rows, &|_| none.clone())?;
    output.new_rows(table, key, (new_items, sent))?;
    output.end()
}

/// A result of rows while it is written: those of our table, or of its pieces one after the other, and for a union then those
/// that are new.
pub struct Output<'a> {
    sink: Sink<'a>,
    /// Whether each row is an item of a list.
    list: bool,
}

impl<'a> Output<'a> {
    /// A result of rows of ours, of which so many have a payload in the sent columns. `head` is our table, or what all of its
    /// pieces have in common. Payloads are checked.
    pub fn of_rows(
        head: &Table,
        rows: usize,
        sent: Option<SentColumns>,
        to: impl Into<To<'a>>,
    ) -> Result<Self> {
        if let Some(sent) = sent {
            sent.check(rows, head.encoding)?;
        }
        let (columns, to) = (columns(head, sent), to.into());
        let list = to.is(Format::List) && columns.len() == 1;
        Ok(Output { sink: Sink::start(columns, head, !head.headerless, to)?, list })
    }

    /// A union of our rows with these items, and the sent columns of these. They are checked. Key columns become text as in
    /// [`write_union`].
    pub fn of_union(
        head: &Table,
        (key, as_text): (&[usize], &[usize]),
        (new_items, sent): (&Items, Option<SentColumns>),
        to: impl Into<To<'a>>,
    ) -> Result<Self> {
        let to = to.into();
        check_items(new_items, key.len(), head.encoding, "an item it sent is")?;
        if let Some(sent) = sent {
            sent.check(new_items.len(), head.encoding)?;
        }
        let mut columns = columns(head, sent);
        for (column, place) in columns.iter_mut().zip(places(head, key)) {
            if let Some(place) = place {
                column.key(to.is_typed(), new_items, (key.len(), place), as_text);
            }
        }
        let list = to.is(Format::List) && columns.len() == 1;
        if list {
            check_lines(first_cells(new_items, key.len()), "one of the peer's keys")?;
        }
        columns.iter_mut().for_each(OutColumn::or_null);
        Ok(Output { sink: Sink::start(columns, head, !head.headerless, to)?, list })
    }

    /// Appends rows of our table, or of a piece of it, in the order given. `theirs` gives the cells of the sent columns of each,
    /// by its place in `rows`. Items of a list are checked before the first of these rows is written.
    pub fn ours<'b>(
        &mut self,
        piece: &Table,
        rows: &[usize],
        theirs: &dyn Fn(usize) -> Vec<Option<&'b [u8]>>,
    ) -> Result<()> {
        if self.list {
            check_rows(piece, rows.iter().copied())?;
        }
        self.sink.ours(piece, rows, theirs)
    }

    /// Appends a row for each item of the other party.
    pub fn new_rows(
        &mut self,
        head: &Table,
        key: &[usize],
        (new_items, sent): (&Items, Option<SentColumns>),
    ) -> Result<()> {
        let places = places(head, key);
        for i in sorted(new_items) {
            let cells = decode_key(new_items.get(i), key.len()).unwrap_or_default();
            let ours = places.iter().map(|place| place.and_then(|p| cells.get(p).copied()));
            let theirs = sent.map(|sent| sent.cells(i)).unwrap_or_default();
            self.sink.row(ours.chain(theirs))?;
        }
        Ok(())
    }

    /// Ends the file.
    pub fn end(self) -> Result<()> {
        self.sink.end()
    }
}

/// For each column of the table, its place in the key.
fn places(table: &Table, key: &[usize]) -> Vec<Option<usize>> {
    (0..table.header().len()).map(|column| key.iter().position(|&k| k == column)).collect()
}

/// Writes keys under our key columns and nothing else: the union as the sender gets it, normalised and without rows.
/// Keys are sorted, and checked before the first byte is written, and columns become text, as in [`write_union`].
pub fn write_keys<'a>(
    table: &Table,
    (key, as_text): (&[usize], &[usize]),
    items: &Items,
    to: impl Into<To<'a>>,
) -> Result<()> {
    let to = to.into();
    check_items(items, key.len(), table.encoding, "an item it sent is")?;
    let mut columns: Vec<_> = key.iter().map(|&at| OutColumn::of(table, at)).collect();
    for (place, column) in columns.iter_mut().enumerate() {
        column.key(to.is_typed(), items, (key.len(), place), as_text);
        column.taken = None;
    }
    if to.is(Format::List) && columns.len() == 1 {
        check_lines(first_cells(items, key.len()), "a key of the union, ours or the peer's,")?;
    }
    let mut sink = Sink::start(columns, table, !table.headerless, to)?;
    for i in sorted(items) {
        let cells = decode_key(items.get(i), key.len()).unwrap_or_default();
        sink.row(cells.into_iter().map(Some))?;
    }
    sink.end()
}

/// The places in the key of the columns that become text where columns have types, because one of these keys is no value of
/// theirs. What is malformed is found when they are written.
pub fn text_keys(table: &Table, key: &[usize], items: &Items) -> Vec<usize> {
    let becomes_text = |&place: &usize| !OutColumn::of(table, key[place]).holds(items, (key.len(), place));
    (0..key.len()).filter(becomes_text).collect()
}

/// Writes rows of our own making under columns of these names.
pub fn write_cells<'a, const N: usize>(
    table: &Table,
    names: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
    to: impl Into<To<'a>>,
) -> Result<()> {
    let columns = names.iter().map(|name| OutColumn::plain(name));
    let mut sink = Sink::start(columns.collect(), table, true, to.into())?;
    for row in rows {
        sink.row(row.iter().map(|cell| Some(cell.as_bytes())))?;
    }
    sink.end()
}

/// Refuses a cell that would become several items of a list; the user can choose another format. No file has got its name yet,
/// but the pieces before may be on standard output.
fn check_lines<'a>(mut cells: impl Iterator<Item = Option<&'a [u8]>>, whose: &str) -> Result<()> {
    if cells.any(|cell| cell.is_some_and(|cell| cell.iter().any(|b| matches!(b, b'\r' | b'\n')))) {
        return Err(Error::output(format!(
            "{whose} contains a line break, so it cannot be an item of a list. No file was written, and what is on \
             standard output is not the whole result; run again with {}",
            OUTPUT_FORMAT.with("csv")
        )));
    }
    Ok(())
}

/// Refuses such a cell in these rows of a table of one column.
fn check_rows(table: &Table, rows: impl Iterator<Item = usize>) -> Result<()> {
    let mut cursor = table.all_cells();
    for row in rows {
        check_lines(cursor.at(row).cells(), "one of our keys")?;
    }
    Ok(())
}

/// The first cell of each item.
fn first_cells(items: &Items, columns: usize) -> impl Iterator<Item = Option<&[u8]>> {
    items.iter().map(move |item| decode_key(item, columns).and_then(|cells| cells.first().copied()))
}

/// The positions of items in the order of their bytes.
fn sorted(items: &Items) -> impl Iterator<Item = usize> {
    let mut order: Vec<u32> = (0..items.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| items.get(a as usize).cmp(items.get(b as usize)).then(a.cmp(&b)));
    order.into_iter().map(|i| i as usize)
}

/// Our columns and those that were sent.
fn columns<'a>(table: &'a Table, sent: Option<SentColumns<'a>>) -> Vec<OutColumn<'a>> {
    let theirs = sent.map_or(&[][..], |sent| sent.names);
    let theirs = theirs.iter().map(|name| OutColumn::plain(name));
    (0..table.header().len()).map(|at| OutColumn::of(table, at)).chain(theirs).collect()
}

/// A column of a result.
pub(super) struct OutColumn<'a> {
    pub(super) raw: &'a [u8],
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    /// Its place in a table of batches, from which its values are taken as they are, ...
    pub(super) taken: Option<usize>,
    /// as values of this field.
    pub(super) field: Option<FieldRef>,
}

impl<'a> OutColumn<'a> {
    /// Our column.
    fn of(table: &'a Table, at: usize) -> Self {
        let column = &table.columns[at];
        let field = match (&table.store, &column.kind) {
            (Store::Batches(_), Kind::Typed(field) | Kind::Opaque(field, _)) => Some(field.clone()),
            _ => None,
        };
        OutColumn {
            raw: &column.raw,
            name: &table.header()[at],
            kind: column.kind.clone(),
            taken: field.as_ref().map(|_| at),
            field,
        }
    }

    /// A column of text that is not ours.
    fn plain(name: &'a str) -> Self {
        OutColumn { raw: name.as_bytes(), name, kind: Kind::Plain, taken: None, field: None }
    }

    /// Makes a key column fit for these further keys, which have a value for it at `place`: it becomes text if one of them
    /// is no value of its type, or if its place says so, and is written cell by cell if its type refers to values that are
    /// there already.
    fn key(&mut self, typed: bool, items: &Items, (columns, place): (usize, usize), as_text: &[usize]) {
        if !typed || !matches!(self.kind, Kind::Typed(_)) {
            return;
        }
        let fits = !as_text.contains(&place) && self.holds(items, (columns, place));
        if !fits {
            self.kind = Kind::Plain;
        }
        if !fits || self.refers() {
            self.taken = None;
        }
    }

    /// Whether its type refers to values that are there already.
    fn refers(&self) -> bool {
        self.kind.data_type().is_some_and(|of| matches!(of, DataType::Dictionary(..)))
    }

    /// Whether these keys, which have a value for it at `place`, are values of its type.
    fn holds(&self, items: &Items, (columns, place): (usize, usize)) -> bool {
        let Kind::Typed(field) = &self.kind else { return true };
        let cell = |item| decode_key(item, columns).and_then(|cells| cells.get(place).copied());
        self.refers() || typed::fits(field, items.iter().filter_map(cell))
    }

    /// Allows rows without a value.
    fn or_null(&mut self) {
        self.field = self.field.take().map(|field| field.as_ref().clone().with_nullable(true).into());
    }
}

/// A result while it is written.
enum Sink<'a> {
    Csv { delimiter: u8, for_spreadsheets: bool, out: &'a mut (dyn Write + Send) },
    List { out: &'a mut (dyn Write + Send) },
    Arrow(Box<ArrowSink<'a>>),
}

impl<'a> Sink<'a> {
    /// `header` tells whether CSV gets one.
    fn start(columns: Vec<OutColumn>, table: &Table, header: bool, to: To<'a>) -> Result<Self> {
        let (layout, out) = match to {
            To::File(layout, out) => (layout, out),
            To::Batches(to) => {
                return Ok(Sink::Arrow(Box::new(ArrowSink::memory(&columns, table.encoding, to))));
            }
        };
        match layout.format {
            Format::Csv => {
                let delimiter = layout.delimiter.unwrap_or(table.delimiter());
                let for_spreadsheets = layout.for_spreadsheets;
                let mut sink = Sink::Csv { delimiter, for_spreadsheets, out };
                if header {
                    sink.row(columns.iter().map(|column| Some(column.raw)))?;
                }
                Ok(sink)
            }
            Format::List if columns.len() == 1 => Ok(Sink::List { out }),
            Format::List => Err(Error::usage(format!(
                "the result has {} columns, but a list has one; use {} or \
                 {}",
                columns.len(),
                OUTPUT_FORMAT.with("csv"),
                OUTPUT_FORMAT.with("parquet")
            ))),
            Format::JsonLines => Err(Error::usage(format!(
                "JSON lines are read, and not written. Use {}",
                OUTPUT_FORMAT.with("csv")
            ))),
            Format::Parquet => {
                ArrowSink::parquet(columns, table.encoding, out).map(|s| Sink::Arrow(Box::new(s)))
            }
            Format::Arrow => ArrowSink::file(columns, table.encoding, out).map(|s| Sink::Arrow(Box::new(s))),
        }
    }

    /// Appends rows of our table. `theirs` gives the further cells of each, by its position in `rows`.
    fn ours<'b>(
        &mut self,
        table: &Table,
        rows: &[usize],
        theirs: &dyn Fn(usize) -> Vec<Option<&'b [u8]>>,
    ) -> Result<()> {
        if let (Store::Batches(batches), Sink::Arrow(sink)) = (&table.store, &mut *self) {
            return sink.take(table, batches, rows, theirs);
        }
        let mut cursor = table.all_cells();
        for (i, &row) in rows.iter().enumerate() {
            let theirs = theirs(i);
            self.row(cursor.at(row).cells().chain(theirs))?;
        }
        Ok(())
    }

    fn row<'b>(&mut self, cells: impl Iterator<Item = Option<&'b [u8]>>) -> Result<()> {
        let written = match self {
            Sink::Csv { delimiter, for_spreadsheets, out } => {
                let cell = |cell: Option<&'b [u8]>| match cell.unwrap_or_default() {
                    cell if *for_spreadsheets && is_formula(cell) => Cow::Owned([b"'", cell].concat()),
                    cell => Cow::Borrowed(cell),
                };
                let cells: Vec<_> = cells.map(cell).collect();
                write_row(cells.iter().map(AsRef::as_ref), *delimiter, *out)
            }
            Sink::List { out } => {
                let item = cells.into_iter().next().flatten().unwrap_or_default();
                out.write_all(item).and_then(|()| out.write_all(b"\n"))
            }
            Sink::Arrow(sink) => return sink.row(cells),
        };
        written.map_err(|e| destination::unwritable("result", &e))
    }

    fn end(self) -> Result<()> {
        match self {
            Sink::Csv { .. } | Sink::List { .. } => Ok(()),
            Sink::Arrow(sink) => sink.end(),
        }
    }
}

fn write_row<'a>(
    cells: impl ExactSizeIterator<Item = &'a [u8]>,
    delimiter: u8,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    let only = cells.len() == 1;
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.write_all(&[delimiter])?;
        }
        // Without quotes a blank line would not be a row, a first name like a byte-order mark or like the start of
        // another kind of file would be lost, and a column might be divided where another delimiter is guessed.
        let alone = only && (cell.is_empty() || cell.iter().any(|b| DELIMITERS.contains(b)));
        let special = alone || (i == 0 && other::may_look_other(cell, delimiter));
        if special || cell.iter().any(|&b| b == delimiter || matches!(b, b'"' | b'\r' | b'\n')) {
            write_quoted(cell, out)?;
        } else {
            out.write_all(cell)?;
        }
    }
    out.write_all(b"\n")
}

/// Whether a spreadsheet may take this cell for a formula. Some take the full-width forms of the signs for them too.
fn is_formula(cell: &[u8]) -> bool {
    const BEGINNINGS: [&str; 11] =
        ["=", "+", "-", "@", "\t", "\r", "\n", "\u{ff1d}", "\u{ff0b}", "\u{ff0d}", "\u{ff20}"];
    BEGINNINGS.iter().any(|beginning| cell.starts_with(beginning.as_bytes())) && !is_number(cell)
}

/// Whether this is a number as people and programs write it: `-12.5`, `+3`, `-1,5e-7`.
fn is_number(cell: &[u8]) -> bool {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let unsigned = |text: &[u8]| text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text).to_vec();
    let text = unsigned(cell);
    let mut parts = text.splitn(2, |b| matches!(b, b'e' | b'E'));
    let mantissa = parts.next().unwrap_or_default();
    mantissa.splitn(2, |b| matches!(b, b'.' | b',')).all(digits)
        && parts.next().is_none_or(|exponent| digits(&unsigned(exponent)))
}

/// Writes a cell in quotes, each quote in it twice.
fn write_quoted(cell: &[u8], out: &mut (dyn Write + Send)) -> io::Result<()> {
    out.write_all(b"\"")?;
    for part in cell.split_inclusive(|&b| b == b'"') {
        out.write_all(part)?;
        if part.ends_with(b"\"") {
            out.write_all(b"\"")?;
        }
    }
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_compute_is_told_from_text_and_numbers() {
        for formula in [
            "=1+1",
            "+cmd",
            "-",
            "+",
            "-1+2",
            "@SUM(A1)",
            "\tx",
            "\r=1",
            "\n=1",
            "\u{ff1d}1",
            "\u{ff0b}1a",
            "\u{ff0d}1",
            "\u{ff20}SUM(A1)",
            "-1e",
            "--1",
            "-1.2.3",
            "-.5",
        ] {
            assert!(is_formula(formula.as_bytes()), "{formula:?}");
        }
        for text in [
            "",
            "a=1",
            "1",
            "-1",
            "+3",
            "-12.5",
            "-12,5",
            "+1e9",
            "-1.5E-7",
            "'=1",
            " x",
            "+4930123456",
            "\u{e9}",
        ] {
            assert!(!is_formula(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn csv_for_spreadsheets_has_apostrophes_where_cells_are_formulas_and_other_csv_is_exact() {
        let csv = "id,=name,amount\n1,=1+1,-12.5\n@2,\"-a,b\",+3\n";
        let table = Table::from_reader("t.csv", csv.as_bytes(), &Default::default(), None).unwrap();
        let written = |for_spreadsheets| {
            let mut out = Vec::new();
            let layout = Layout { for_spreadsheets, ..Format::Csv.into() };
            write_rows(&table, &[0, 1], None, (layout, &mut out)).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(false), csv);
        assert_eq!(written(true), "id,'=name,amount\n1,'=1+1,-12.5\n'@2,\"'-a,b\",+3\n");
    }
}
