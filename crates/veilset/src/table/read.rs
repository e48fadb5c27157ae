//! Reading CSV and lists into a [`Table`].

use super::builders::{Builders, LONGEST_ROW};
use super::delimiter::{self, DELIMITERS, GUESS_BYTES, Wanted};
use super::notes::{Note, Odd};
use super::pieces::Pieces;
use super::quotes::{Misuse, Quotes, Quoting};
use super::{
    Column, Encoding, Format, Found, Head, LIST_COLUMN, Lines, ReadOptions, Table, delimiter_name, label,
    other,
};
use crate::error::{Error, Place, Result};
use crate::spelling::{DELIMITER, ESCAPE, setting};
use csv_core::ReadRecordResult;
use std::io::{BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

/// Bytes read at a time.
const BUFFER: usize = 1 << 16;
/// Room kept free for the parser to write into.
const ROOM: usize = 1 << 12;

/// Reads the columns asked for: at most `max_rows` < 2^32 rows. Those before the last piece go to `each`, in their order.
pub(super) fn read(
    name: &str,
    reader: impl Read,
    options: &ReadOptions,
    wanted: Wanted<'_>,
    max_rows: usize,
    (piece, each): Pieces<'_>,
) -> Result<Table> {
    let list = is_list(name, options);
    let headerless = options.headerless && !list;
    let (mut records, delimiter) = Records::start(name, reader, options, wanted.named)?;

    let (mut next, mut notes) = (records.next()?, Vec::new());
    if let (Some(line), false) = (next, list) {
        records.check_hint(line)?;
    }
    let (names, header_line): (Vec<Vec<u8>>, _) = match next {
        _ if list => (vec![LIST_COLUMN.into()], None),
        Some(_) if headerless => ((1..=records.fields.len()).map(|n| n.to_string().into()).collect(), None),
        Some(line) => {
            records.check_encoding(line)?;
            records.odd(false).for_each(|odd| Note::new(name, odd, line).add(&mut notes));
            let names = records.cells().map(<[u8]>::to_vec).collect();
            records.header = records.cells().map(|cell| String::from_utf8_lossy(cell).into()).collect();
            next = records.next()?;
            (names, Some(line))
        }
        None => {
            let needed = if headerless { "at least one row" } else { "a header with column names" };
            return Err(Error::input(name, "the file is empty", format!("It needs {needed}")));
        }
    };
    let header: Vec<String> = names.iter().map(|cell| String::from_utf8_lossy(cell).into()).collect();
    records.header.clone_from(&header);
    if options.encoding == Encoding::Utf8 && header.iter().any(|h| h.contains('\0')) {
        let next = concat!("Check what it is, and name a format other than CSV with ", setting!(format));
        return Err(Error::input(name, "this is no text: its header has a zero byte", next)
            .at(Place::Line(header_line.unwrap_or(1))));
    }
    let head = Head { file: name, names: &header, line: header_line, format: Format::Csv, unread: &[] };
    let chosen = head.choose(wanted.columns)?;

    let format = if list { Format::List } else { Format::Csv };
    let columns: Vec<Column> =
        chosen.iter().map(|&at| Column::of_text(&names[at], options.encoding)).collect();
    let found = match list {
        true => Found::default(),
        false => Found { columns: header.len(), delimiter: Some(delimiter) },
    };
    let mut before = 0;
    let table = |rows: Builders, lines, notes, before| {
        let batches = rows.finish(columns.iter().map(|column| column.field.clone()))?;
        let of = Table::of(name, format, options, columns.clone(), batches);
        Ok(Table { delimiter, header_line, headerless, found, notes, lines, before, ..of })
    };
    let start = || Builders::new(options.encoding, chosen.len());
    let (mut rows, mut lines) = (start(), Lines::default());
    while let Some(line) = next {
        if records.fields.len() != header.len() {
            let first = if headerless { "the first row" } else { "the header" };
            return Err(records.ragged(line, first, &header, delimiter));
        }
        if before + rows.rows() == max_rows {
            let what = format!("the file has more than {max_rows} rows");
            let next = "Split it and run once for each part";
            return Err(Error::input(name, what, next).at(Place::Line(line)));
        }
        records.check_encoding(line)?;
        records.check_length(line)?;
        if rows.rows() == piece {
            let full = std::mem::replace(&mut rows, start());
            let full = table(full, std::mem::take(&mut lines), std::mem::take(&mut notes), before)?;
            before += full.rows();
            each(full)?;
        }
        let same = header_line.is_some() && records.cells().eq(names.iter());
        records.odd(same).for_each(|odd| Note::new(name, odd, line).add(&mut notes));
        lines.push(rows.rows() as u32, line);
        chosen.iter().enumerate().for_each(|(column, &at)| rows.push(column, records.cell(at)));
        rows.end_row()?;
        next = records.next()?;
    }
    table(rows, lines, notes, before)
}

/// Whether this is a list, and otherwise CSV.
fn is_list(name: &str, options: &ReadOptions) -> bool {
    options.format_of(Path::new(name)) == Format::List
}

/// The names of the columns of CSV that begins like this.
pub(super) fn names(name: &str, head: &[u8], options: &ReadOptions) -> Result<Vec<String>> {
    let (mut records, _) = Records::start(name, head, options, &[])?;
    let Some(line) = records.next()? else { return Ok(Vec::new()) };
    if options.headerless {
        return Ok((1..=records.fields.len()).map(|n| n.to_string()).collect());
    }
    records.check_encoding(line)?;
    Ok(records.cells().map(|cell| String::from_utf8_lossy(cell).into()).collect())
}

/// The records of a file, one at a time.
struct Records<'a, R> {
    name: &'a str,
    input: Input<'a, R>,
    encoding: Encoding,
    /// `None` in a list, whose records are its lines.
    parser: Option<(csv_core::Reader, Quotes)>,
    position: Position,
    /// The names of the columns, if they are known.
    header: Vec<String>,
    /// `bytes[..used]` is the current record; the rest is room.
    bytes: Vec<u8>,
    used: usize,
    /// Where the fields of the current record are.
    fields: Vec<Range<usize>>,
    /// Where they end, one after the other, if the parser wrote them.
    ends: Vec<usize>,
    /// Whether the current record is ASCII without a NUL, as nearly all are.
    plain: bool,
}

/// A buffered file.
struct Input<'a, R> {
    name: &'a str,
    reader: BufReader<R>,
    /// Whether the bytes in the buffer are ASCII without a NUL.
    plain: bool,
}

impl<R: Read> Input<'_, R> {
    /// Returns the bytes in the buffer, which is filled if it is empty; none at the end of the file.
    fn fill(&mut self) -> Result<&[u8]> {
        while self.reader.buffer().is_empty() {
            match self.reader.fill_buf() {
                Ok(bytes) => {
                    // In one pass without branches.
                    let high = bytes.iter().fold(0, |high, byte| high | byte | byte.wrapping_sub(1));
                    self.plain = high < 0x80;
                    break;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(unreadable(self.name, &e)),
            }
        }
        Ok(self.reader.buffer())
    }
}

impl<'a, R: Read> Records<'a, Chain<Cursor<Vec<u8>>, R>> {
    /// Looks at the first bytes, drops a byte-order mark, and guesses the delimiter if it is not given; the columns named are
    /// there. Also returns the delimiter, which in a list is for its output as CSV.
    fn start(name: &'a str, mut reader: R, options: &ReadOptions, named: &[String]) -> Result<(Self, u8)> {
        let delimiter = delimiter::given(name, options)?;
        let (list, quoting) = (is_list(name, options), options.quoting);
        let guessed = delimiter.is_none() && !list;
        let looked_at = if guessed { GUESS_BYTES } else { other::HEAD };
        let mut head = Vec::new();
        reader.by_ref().take(looked_at as u64).read_to_end(&mut head).map_err(|e| unreadable(name, &e))?;
        let check = if options.is_said() { other::check_said } else { other::check_head };
        let format = if list { Format::List } else { Format::Csv };
        check(name, &head[..head.len().min(other::HEAD)], format)?;
        other::check_utf8(name, &head, options.encoding)?;
        // At the end of a file its last record ends too.
        let whole = if head.len() < GUESS_BYTES { &b"\n"[..] } else { &[] };
        if head.starts_with(b"\xef\xbb\xbf") {
            head.drain(..3);
        }
        let delimiter = if guessed {
            delimiter::guess(name, &[&head[..], whole].concat(), options, named)?
        } else {
            delimiter.unwrap_or(DELIMITERS[0])
        };
        if !list && quoting == Quoting::Escaped(delimiter) {
            return Err(Error::usage(format!(
                "{ESCAPE} and {DELIMITER} are the same character; give one of them another"
            )));
        }
        let parser = (!list).then(|| {
            let mut parser = quoting.parser(delimiter);
            // Feeds the parser a blank line first, after which it no longer looks for a byte-order mark.
            parser.read_record(b"\n", &mut [0], &mut [0]);
            (parser, Quotes::new(delimiter, quoting))
        });
        let records = Records {
            name,
            input: Input {
                name,
                reader: BufReader::with_capacity(BUFFER, Cursor::new(head).chain(reader)),
                plain: true,
            },
            encoding: options.encoding,
            parser,
            position: Position::start(),
            header: Vec::new(),
            bytes: Vec::new(),
            used: 0,
            fields: Vec::new(),
            ends: Vec::new(),
            plain: true,
        };
        Ok((records, delimiter))
    }
}

impl<R: Read> Records<'_, R> {
    /// Reads the next record over the current one; returns the line on which it starts. `None` at the end of
    /// the file.
    fn next(&mut self) -> Result<Option<u64>> {
        if !self.skip_blank_lines()? {
            return Ok(None);
        }
        let line = self.position.line;
        (self.used, self.plain) = (0, true);
        if self.parser.is_none() {
            self.rest_of_line()?;
        } else if !self.simple_record()? {
            self.parse_record(line)?;
        }
        Ok(Some(line))
    }

    /// Reads the next record if it is whole in the buffer, and no quote in it stands for itself, as in most. False otherwise:
    /// nothing is read.
    fn simple_record(&mut self) -> Result<bool> {
        let Some((_, quotes)) = &mut self.parser else { return Ok(false) };
        quotes.begin();
        let input = self.input.fill()?;
        let Some(len) = quotes.simple_record(input, &mut self.fields) else { return Ok(false) };
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self.bytes[..len].copy_from_slice(&input[..len]);
        // No byte before the last is a line end.
        self.position.advance(&input[len - 1..=len]);
        self.input.reader.consume(len + 1);
        (self.used, self.plain) = (len, self.input.plain);
        Ok(true)
    }

    /// Reads the next record, which starts on this line, whatever is in it.
    fn parse_record(&mut self, line: u64) -> Result<()> {
        let Some((parser, quotes)) = &mut self.parser else { return Ok(()) };
        let mut fields = 0;
        loop {
            if self.bytes.len() < self.used + ROOM {
                self.bytes.resize(self.used + ROOM + BUFFER, 0);
            }
            if fields == self.ends.len() {
                self.ends.resize(2 * fields + 16, 0);
            }
            let input = self.input.fill()?;
            // At the end of the file the parser closes open quotes. A line end does not: put behind the file, it ends
            // every record except one that is cut off inside quotes.
            let ended = input.is_empty();
            let input = if ended { b"\n" } else { input };
            let (result, read, written, done) =
                parser.read_record(input, &mut self.bytes[self.used..], &mut self.ends[fields..]);
            fields += done;
            self.used += written;
            if !ended {
                let followed = quotes.advance(&input[..read], &mut self.position);
                self.input.reader.consume(read);
                self.plain &= self.input.plain;
                if let Err(misuse) = followed {
                    let cell = quotes.cell;
                    return Err(self.misused(misuse, cell));
                }
            }
            if result == ReadRecordResult::Record {
                break;
            }
            if ended {
                self.ends.truncate(fields);
                return Err(self.unterminated(line));
            }
        }
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        self.fields.clear();
        self.fields.extend(starts.zip(&self.ends[..fields]).map(|(start, &end)| start..end));
        Ok(())
    }

    /// Moves to the first byte of the next record. False at the end of the file.
    fn skip_blank_lines(&mut self) -> Result<bool> {
        loop {
            let input = self.input.fill()?;
            let (len, blank) = (input.len(), input.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count());
            self.position.advance(&input[..blank]);
            self.input.reader.consume(blank);
            if blank < len || len == 0 {
                return Ok(len > 0);
            }
        }
    }

    /// Reads up to the next line end as the only field of the record.
    fn rest_of_line(&mut self) -> Result<()> {
        self.bytes.clear();
        loop {
            let input = self.input.fill()?;
            let end = input.iter().position(|b| matches!(b, b'\r' | b'\n'));
            let len = end.unwrap_or(input.len());
            self.bytes.extend_from_slice(&input[..len]);
            self.position.advance(&input[..len]);
            self.input.reader.consume(len);
            self.plain &= self.input.plain;
            if end.is_some() || len == 0 {
                break;
            }
        }
        self.used = self.bytes.len();
        self.fields.clear();
        self.fields.push(0..self.used);
        Ok(())
    }

    /// A field of the current record.
    fn cell(&self, i: usize) -> &[u8] {
        &self.bytes[self.fields[i].clone()]
    }

    fn cells(&self) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().map(|field| &self.bytes[field.clone()])
    }

    fn check_encoding(&self, line: u64) -> Result<()> {
        let record = &self.bytes[..self.used];
        if self.encoding == Encoding::Bytes || self.plain || record.is_ascii() {
            return Ok(());
        }
        for (i, cell) in self.cells().enumerate() {
            if std::str::from_utf8(cell).is_err() {
                let next = concat!(
                    "Convert the file to UTF-8, or use ",
                    setting!(encoding, "bytes"),
                    " on both sides"
                );
                return Err(Error::input(self.name, "the cell is not valid UTF-8", next)
                    .at(Place::Line(line))
                    .at_column(label(&self.header, i)));
            }
        }
        Ok(())
    }

    /// Refuses a row that is too long for a batch.
    fn check_length(&self, line: u64) -> Result<()> {
        match self.used < LONGEST_ROW {
            true => Ok(()),
            false => {
                let what = format!("the row is longer than {} GiB", LONGEST_ROW >> 30);
                Err(Error::input(self.name, what, "Is a quote missing?").at(Place::Line(line)))
            }
        }
    }

    /// Refuses a first line that only tells a spreadsheet program the delimiter.
    fn check_hint(&self, line: u64) -> Result<()> {
        let quoted = self.parser.as_ref().is_some_and(|(_, quotes)| quotes.quoted);
        let hint = !quoted
            && self.cell(0).get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"sep="))
            && match (&self.cell(0)[4..], self.fields.len()) {
                ([delimiter], 1) => !delimiter.is_ascii_alphanumeric(),
                ([], 2) => self.cell(1).is_empty(),
                _ => false,
            };
        match hint {
            true => Err(Error::input(
                self.name,
                "the line tells spreadsheet programs what separates the columns, and is neither a header nor a row",
                concat!("Delete it, and use ", setting!(delimiter)),
            )
            .at(Place::Line(line))),
            false => Ok(()),
        }
    }

    /// What is odd in the current record; `same` tells whether it is the same as the header.
    fn odd(&self, same: bool) -> impl Iterator<Item = Odd> {
        let record = &self.bytes[..self.used];
        let odd_text = self.encoding == Encoding::Utf8 && !self.plain;
        let mark = |cell: &[u8]| cell.starts_with(b"\xef\xbb\xbf");
        let found = [
            (Odd::Header, same),
            (Odd::Mark, odd_text && !record.is_ascii() && self.cells().any(mark)),
            (Odd::Nul, odd_text && record.contains(&0)),
            (Odd::Lines, self.parser.as_ref().is_some_and(|(_, quotes)| quotes.several_lines)),
        ];
        found.into_iter().filter(|(_, there)| *there).map(|(odd, _)| odd)
    }

    /// The error for quotes that are misused in this cell of the record, where the reading is.
    fn misused(&self, misuse: Misuse, cell: usize) -> Error {
        let (what, next) = misuse.words();
        let error = Error::input(self.name, what, next).at(Place::Line(self.position.line));
        error.at_column(label(&self.header, cell))
    }

    /// The error for a row that has not as many fields as the first, which is called so.
    fn ragged(&self, line: u64, first: &str, header: &[String], delimiter: u8) -> Error {
        let (fields, columns) = (self.fields.len(), header.len());
        let what = format!("the row has {}, {first} {columns}", count(fields, "field"));
        let mut next = format!(
            "Give every row as many fields as {first}, and quote those that contain {}",
            delimiter_name(delimiter)
        );
        let spanned = newlines(&self.bytes[..self.used]);
        if spanned > 0 {
            next.push_str(&format!(". The row runs to line {}: is a quote missing?", line + spanned));
        }
        Error::input(self.name, what, next)
            .at(Place::Line(line))
            .at_column(label(header, fields.min(columns)))
    }

    /// The error for a record that the end of the file cuts off inside quotes. Only quoted fields contain line ends,
    /// so the line ends of the complete fields give the line on which the last field began.
    fn unterminated(&self, line: u64) -> Error {
        let complete = self.ends.last().copied().unwrap_or(0);
        let line = line + newlines(&self.bytes[..complete]);
        let next = "Add the closing quote; a quote inside a quoted field is written twice";
        let column = self.parser.as_ref().map_or(0, |(_, quotes)| quotes.cell);
        Error::input(self.name, "the quote opened here is never closed", next)
            .at(Place::Line(line))
            .at_column(label(&self.header, column))
    }
}

/// The position in the file. LF, CRLF and CR end a line.
pub(super) struct Position {
    line: u64,
    after_cr: bool,
}

impl Position {
    /// Before the first byte.
    pub(super) fn start() -> Position {
        Position { line: 1, after_cr: false }
    }

    pub(super) fn step(&mut self, byte: u8) {
        if byte == b'\r' || (byte == b'\n' && !self.after_cr) {
            self.line += 1;
        }
        self.after_cr = byte == b'\r';
    }

    fn advance(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.step(byte));
    }
}

/// The number of line ends.
fn newlines(bytes: &[u8]) -> u64 {
    let mut position = Position { line: 0, after_cr: false };
    position.advance(bytes);
    position.line
}

/// The error for a file that cannot be opened.
pub(crate) fn unopened(path: &Path, e: &std::io::Error) -> Error {
    Error::input(path, format!("the file cannot be opened: {e}"), "Check its name and permissions").because(e)
}

pub(super) fn unreadable(name: &str, e: &std::io::Error) -> Error {
    if let Some(ours) = Error::carried_by(e) {
        return ours;
    }
    Error::input(name, format!("reading failed: {e}"), "Check that it is a readable file").because(e)
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
