//! Writing results as CSV (RFC 4180 quoting where needed, LF line ends), as a list, or as columns of values.

use super::batches::{Batches, misfit};
use super::delimiter::DELIMITERS;
use super::sent::{SentColumns, check_items};
use super::sink::Sink;
use super::typed::{self, anew};
use super::types::{text_field, texts};
use super::{Column, Encoding, Format, KeyedSet, Table, other};
use crate::error::{Error, Result};
use crate::item::{Items, decode_key};
use crate::spelling::OUTPUT_FORMAT;
use arrow_array::{ArrayRef, new_null_array};
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
}

/// The key columns of a table, for a result with keys of the other party.
#[derive(Debug, Clone, Copy)]
pub struct KeyColumns<'k> {
    /// Their positions in the table.
    pub columns: &'k [usize],
    /// The places in the key of those that become text, because a key of another part of the result is no value of their type
    /// ([`text_keys`]).
    pub as_text: &'k [usize],
}

impl<'k> KeyColumns<'k> {
    /// These columns, none of which becomes text because of other parts.
    pub fn of(columns: &'k [usize]) -> KeyColumns<'k> {
        KeyColumns { columns, as_text: &[] }
    }
}

/// Rows of the other party.
#[derive(Debug, Clone, Copy)]
pub struct NewRows<'n> {
    /// Their keys.
    pub items: &'n Items,
    /// Their other columns, if any were sent.
    pub sent: Option<SentColumns<'n>>,
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
    output.ours(table, rows, sent.map(|sent| (sent, 0)))?;
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
    key: KeyColumns<'_>,
    keyed: &KeyedSet,
    new: NewRows<'_>,
    to: impl Into<To<'a>>,
) -> Result<()> {
    let rows: Vec<usize> = keyed.rows.iter().map(|&row| row as usize).collect();
    let mut output = Output::of_union(table, key, new, to)?;
    output.ours(table, &rows, None)?;
    output.new_rows(table, key.columns, new)?;
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
        Output::start(head, columns(head, sent), to.into())
    }

    /// A union of our rows with these items, and the sent columns of these. They are checked. Key columns become text as in
    /// [`write_union`].
    pub fn of_union(
        head: &Table,
        KeyColumns { columns: key, as_text }: KeyColumns<'_>,
        NewRows { items: new_items, sent }: NewRows<'_>,
        to: impl Into<To<'a>>,
    ) -> Result<Self> {
        let to = to.into();
        check_items(new_items, key.len(), head.encoding, "an item it sent is")?;
        if let Some(sent) = sent {
            sent.check(new_items.len(), head.encoding)?;
        }
        let mut columns = columns(head, sent);
        for (place, &at) in key.iter().enumerate() {
            columns[at].key(&to, head.encoding, new_items, &InKeys { columns: key.len(), place, as_text });
        }
        if to.is(Format::List) && columns.len() == 1 {
            check_lines(first_cells(new_items, key.len()), "one of the peer's keys")?;
        }
        columns.iter_mut().for_each(OutColumn::or_null);
        Output::start(head, columns, to)
    }

    fn start(head: &Table, columns: Vec<OutColumn>, to: To<'a>) -> Result<Self> {
        let list = to.is(Format::List) && columns.len() == 1;
        Ok(Output { sink: Sink::start(columns, head, !head.headerless, to)?, list })
    }

    /// Appends rows of our table, or of a piece of it, in the order given. Payload `first + i` of the sent columns belongs to
    /// `rows[i]`; without it, the sent columns have no values. Items of a list are checked before the first of these rows is
    /// written.
    pub fn ours(&mut self, piece: &Table, rows: &[usize], sent: Option<(SentColumns, usize)>) -> Result<()> {
        if self.list {
            let ours = "one of our keys";
            piece
                .each_row(rows.iter().copied(), &[0], |_, cells| check_lines(cells.iter().copied(), ours))?;
        }
        let all: Vec<usize> = (0..piece.columns.len()).collect();
        piece.batches.take(rows.iter().copied(), &all, self.sink.most_rows(), &mut |before, rows, ours| {
            let fields = self.sink.schema.fields();
            let (of_ours, of_theirs) = fields.split_at(ours.len());
            let ours = ours.into_iter().zip(&piece.columns).zip(of_ours);
            let mut columns = ours
                .map(|((array, column), to)| as_field(array, &column.field, to))
                .collect::<Result<Vec<_>>>()?;
            columns.extend(match sent {
                Some((sent, first)) => {
                    values_of(sent.payloads, (first + before..).take(rows), sent.names.len(), of_theirs)?
                }
                None => of_theirs.iter().map(|field| new_null_array(field.data_type(), rows)).collect(),
            });
            self.sink.write(columns, rows)
        })
    }

    /// Appends a row for each item of the other party.
    pub fn new_rows(
        &mut self,
        head: &Table,
        key: &[usize],
        NewRows { items: new_items, sent }: NewRows<'_>,
    ) -> Result<()> {
        for some in sorted(new_items).chunks(self.sink.most_rows()) {
            let (of_ours, of_theirs) = self.sink.schema.fields().split_at(head.columns.len());
            let of_key: Vec<FieldRef> = key.iter().map(|&at| of_ours[at].clone()).collect();
            let mut columns: Vec<ArrayRef> =
                of_ours.iter().map(|field| new_null_array(field.data_type(), some.len())).collect();
            let values = values_of(new_items, some.iter().copied(), key.len(), &of_key)?;
            key.iter().zip(values).for_each(|(&at, values)| columns[at] = values);
            if let Some(sent) = sent {
                let theirs = values_of(sent.payloads, some.iter().copied(), sent.names.len(), of_theirs)?;
                columns.extend(theirs);
            }
            self.sink.write(columns, some.len())?;
        }
        Ok(())
    }

    /// Ends the file.
    pub fn end(self) -> Result<()> {
        self.sink.end()
    }
}

/// Writes keys under our key columns and nothing else: the union as the sender gets it, normalised and without rows.
/// Keys are sorted, and checked before the first byte is written, and columns become text, as in [`write_union`].
pub fn write_keys<'a>(
    table: &Table,
    KeyColumns { columns: key, as_text }: KeyColumns<'_>,
    items: &Items,
    to: impl Into<To<'a>>,
) -> Result<()> {
    let to = to.into();
    check_items(items, key.len(), table.encoding, "an item it sent is")?;
    let mut columns: Vec<_> = key.iter().map(|&at| OutColumn::of(&table.columns[at])).collect();
    for (place, column) in columns.iter_mut().enumerate() {
        column.key(&to, table.encoding, items, &InKeys { columns: key.len(), place, as_text });
        column.field = anew(&column.field);
    }
    if to.is(Format::List) && columns.len() == 1 {
        check_lines(first_cells(items, key.len()), "a key of the union, ours or the peer's,")?;
    }
    let mut sink = Sink::start(columns, table, !table.headerless, to)?;
    for some in sorted(items).chunks(sink.most_rows()) {
        let values = values_of(items, some.iter().copied(), key.len(), sink.schema.fields())?;
        sink.write(values, some.len())?;
    }
    sink.end()
}

/// The places in the key of the columns that become text where columns have types, because one of these keys is no value of
/// theirs. What is malformed is found when they are written.
pub fn text_keys(table: &Table, key: &[usize], items: &Items) -> Vec<usize> {
    let becomes_text =
        |&place: &usize| !OutColumn::of(&table.columns[key[place]]).holds(items, key.len(), place);
    (0..key.len()).filter(becomes_text).collect()
}

/// Writes rows of our own making under columns of these names.
pub fn write_cells<'a, const N: usize>(
    table: &Table,
    names: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
    to: impl Into<To<'a>>,
) -> Result<()> {
    let columns = names.iter().map(|name| OutColumn::of_text(name, table.encoding));
    let mut sink = Sink::start(columns.collect(), table, true, to.into())?;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let some: Vec<_> = rows.by_ref().take(sink.most_rows()).collect();
        let column =
            |(at, field): (usize, _)| as_values(field, some.iter().map(|row| Some(row[at].as_bytes())));
        let columns = sink.schema.fields().iter().enumerate().map(column).collect::<Result<_>>()?;
        sink.write(columns, some.len())?;
    }
    sink.end()
}

/// The values of these items, which were checked, in columns of these fields.
fn values_of(
    items: &Items,
    positions: impl Iterator<Item = usize>,
    columns: usize,
    fields: &[FieldRef],
) -> Result<Vec<ArrayRef>> {
    let rows: Vec<_> = positions.map(|i| decode_key(items.get(i), columns).unwrap_or_default()).collect();
    let column = |(at, field)| as_values(field, rows.iter().map(|row| row.get(at).copied()));
    fields.iter().enumerate().map(column).collect()
}

/// An array of this field whose values have these texts.
fn as_values<'c>(
    field: &FieldRef,
    cells: impl ExactSizeIterator<Item = Option<&'c [u8]>>,
) -> Result<ArrayRef> {
    let values = typed::values(field, cells);
    values.ok_or_else(|| misfit("a cell is not a value of its column's type", field.data_type()))
}

/// The values of an array in another field, which has the same ones: as they are if its type is the same.
fn as_field(array: ArrayRef, of: &FieldRef, to: &FieldRef) -> Result<ArrayRef> {
    if of.data_type() == to.data_type() {
        return Ok(array);
    }
    as_values(to, texts(of, &array).cells())
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

/// The first cell of each item.
fn first_cells(items: &Items, columns: usize) -> impl Iterator<Item = Option<&[u8]>> {
    items.iter().map(move |item| decode_key(item, columns).and_then(|cells| cells.first().copied()))
}

/// The positions of items in the order of their bytes.
fn sorted(items: &Items) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_unstable_by(|&a, &b| items.get(a).cmp(items.get(b)).then(a.cmp(&b)));
    order
}

/// Our columns and those that were sent.
fn columns<'a>(table: &'a Table, sent: Option<SentColumns<'a>>) -> Vec<OutColumn<'a>> {
    let theirs = sent.map_or(&[][..], |sent| sent.names);
    let theirs = theirs.iter().map(|name| OutColumn::of_text(name, table.encoding));
    table.columns.iter().map(OutColumn::of).chain(theirs).collect()
}

/// A column's place in the keys of the other party.
struct InKeys<'k> {
    /// The number of columns of a key.
    columns: usize,
    place: usize,
    /// See [`KeyColumns::as_text`].
    as_text: &'k [usize],
}

/// A column of a result.
pub(super) struct OutColumn<'a> {
    /// Its name in CSV.
    pub(super) raw: &'a [u8],
    pub(super) field: FieldRef,
}

impl<'a> OutColumn<'a> {
    /// Our column.
    fn of(column: &'a Column) -> Self {
        OutColumn { raw: &column.raw, field: column.field.clone() }
    }

    /// A column of text that is not ours.
    fn of_text(name: &'a str, encoding: Encoding) -> Self {
        OutColumn { raw: name.as_bytes(), field: text_field(name, encoding) }
    }

    /// Makes a key column fit for these further keys, which have a value for it at `place`. It becomes text if one of them is
    /// no value of its type, if its place says so, or if text is written. Its values are written anew if they refer to others
    /// that are there already.
    fn key(
        &mut self,
        to: &To<'_>,
        encoding: Encoding,
        items: &Items,
        InKeys { columns, place, as_text }: &InKeys<'_>,
    ) {
        let text = to.is(Format::Csv) || to.is(Format::List);
        let fits = !text && !as_text.contains(place) && self.holds(items, *columns, *place);
        self.field = match fits {
            false => text_field(self.field.name(), encoding),
            true if matches!(self.field.data_type(), DataType::Dictionary(..)) => anew(&self.field),
            true => return,
        };
    }

    /// Whether these keys, which have a value for it at `place`, are values of its type.
    fn holds(&self, items: &Items, columns: usize, place: usize) -> bool {
        let cell = |item| decode_key(item, columns).and_then(|cells| cells.get(place).copied());
        typed::fits(&anew(&self.field), items.iter().filter_map(cell))
    }

    /// Allows rows without a value.
    fn or_null(&mut self) {
        self.field = self.field.as_ref().clone().with_nullable(true).into();
    }
}

/// Writes a row of CSV. With `for_spreadsheets`, cells that these take for formulas get an apostrophe in front.
pub(super) fn write_row<'a>(
    cells: impl ExactSizeIterator<Item = &'a [u8]>,
    delimiter: u8,
    for_spreadsheets: bool,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    let only = cells.len() == 1;
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.write_all(&[delimiter])?;
        }
        let cell = match for_spreadsheets && is_formula(cell) {
            true => Cow::Owned([b"'", cell].concat()),
            false => Cow::Borrowed(cell),
        };
        // Without quotes a blank line would not be a row, and a first name like a byte-order mark or like the start of
        // another kind of file would be lost. A column might also be divided where another delimiter is guessed.
        let alone = only && (cell.is_empty() || cell.iter().any(|b| DELIMITERS.contains(b)));
        let special = alone || (i == 0 && other::may_look_other(&cell, delimiter));
        if special || cell.iter().any(|&b| b == delimiter || matches!(b, b'"' | b'\r' | b'\n')) {
            write_quoted(&cell, out)?;
        } else {
            out.write_all(&cell)?;
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
