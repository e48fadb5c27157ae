//! The quotes of CSV. A file must use them as it says it does: what a parser would have to guess at is refused.

use super::read::Position;
use crate::spelling::setting;
use std::ops::Range;

/// What quotes are in CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Quoting {
    /// A cell may be in quotes; a quote in it is then written twice (RFC 4180).
    #[default]
    Doubled,
    /// The same, and in a quoted cell this character makes an ordinary one of a quote, or of itself, after it.
    Escaped(u8),
    /// Ordinary characters. No cell contains a delimiter or a line end.
    Ordinary,
}

impl Quoting {
    /// A parser of such CSV. It puts wrong quotes right or misreads them; [`Quotes`] refuses them.
    pub(super) fn parser(self, delimiter: u8) -> csv_core::Reader {
        let mut parser = csv_core::ReaderBuilder::new();
        match self {
            Quoting::Doubled => {}
            Quoting::Escaped(escape) => drop(parser.escape(Some(escape))),
            Quoting::Ordinary => drop(parser.quoting(false)),
        }
        parser.delimiter(delimiter).build()
    }
}

/// How quotes are misused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misuse {
    /// A quote in a cell that does not begin with one.
    Inside,
    /// Neither a delimiter nor a line end after the closing quote; whether a backslash was before that quote.
    After { backslash: bool },
    /// An escape in a quoted cell before what is neither a quote nor an escape.
    Escape,
    /// An escape in a cell that is not quoted.
    EscapeOutside,
}

impl Misuse {
    /// What is wrong, and the next step.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Misuse::Inside => (
                "there is a quote in a cell that does not begin with one",
                concat!(
                    "Put the whole cell in quotes and double each quote inside it; if quotes are ordinary characters in this \
                     file, use ",
                    setting!(no_quotes)
                ),
            ),
            Misuse::After { backslash: false } => (
                "the cell continues after its closing quote",
                concat!(
                    "Double each quote inside a quoted cell; if quotes are ordinary characters in this file, use ",
                    setting!(no_quotes)
                ),
            ),
            Misuse::After { backslash: true } => (
                "the cell continues after its closing quote, which follows a backslash",
                concat!(
                    "Double each quote inside a quoted cell; if this file has a backslash before such quotes instead, use ",
                    setting!(escape, "\\")
                ),
            ),
            Misuse::Escape => (
                "the escape character is before a character that does not need it",
                "It may only be before a quote or before itself: double it, or remove it",
            ),
            Misuse::EscapeOutside => (
                "the escape character is in a cell that is not in quotes",
                "Write the file again with all cells in quotes",
            ),
        }
    }
}

/// Where in a cell the reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Plain,
    Quoted,
    /// After a quote in a quoted cell: its end, or the first of two.
    Closed,
    Escaped,
}

/// Follows the bytes of records, and notices where quotes are misused.
pub(super) struct Quotes {
    delimiter: u8,
    /// Which bytes mean something.
    special: [bool; 256],
    quoting: Quoting,
    state: State,
    /// Whether the byte before the last quote was a backslash.
    backslash: bool,
    /// The last byte.
    last: u8,
    /// The cell of the record, counted from 0.
    pub(super) cell: usize,
    /// Whether a cell of the record is in quotes.
    pub(super) quoted: bool,
    /// Whether a cell of the record has a line end.
    pub(super) several_lines: bool,
}

impl Quotes {
    pub(super) fn new(delimiter: u8, quoting: Quoting) -> Quotes {
        let mut special = [false; 256];
        for byte in [b'"', b'\r', b'\n', delimiter] {
            special[usize::from(byte)] = true;
        }
        if let Quoting::Escaped(escape) = quoting {
            special[usize::from(escape)] = true;
        }
        Quotes {
            delimiter,
            special,
            quoting,
            state: State::Start,
            backslash: false,
            last: 0,
            cell: 0,
            quoted: false,
            several_lines: false,
        }
    }

    /// A record begins.
    pub(super) fn begin(&mut self) {
        (self.state, self.cell) = (State::Start, 0);
        (self.quoted, self.several_lines) = (false, false);
    }

    /// Returns the length of the record that these bytes begin with, and where its cells are. `None` if it does not end here, or
    /// if a cell is more than text, or text in quotes.
    pub(super) fn simple_record(&mut self, bytes: &[u8], cells: &mut Vec<Range<usize>>) -> Option<usize> {
        cells.clear();
        let mut start = 0;
        loop {
            let quoted = bytes.get(start) == Some(&b'"') && self.quoting != Quoting::Ordinary;
            self.quoted |= quoted;
            start += usize::from(quoted);
            let ends = |&byte: &u8| self.special[usize::from(byte)] && !(quoted && byte == self.delimiter);
            let mut end = start + bytes.get(start..)?.iter().position(ends)?;
            cells.push(start..end);
            if quoted {
                if bytes[end] != b'"' {
                    return None;
                }
                end += 1;
            }
            match *bytes.get(end)? {
                byte if byte == self.delimiter => start = end + 1,
                b'\r' | b'\n' => return Some(end),
                _ => return None,
            }
        }
    }

    /// Goes on to the end of these bytes, or to the first misuse, of which [`Quotes::cell`] and `position` are the place.
    pub(super) fn advance(&mut self, bytes: &[u8], position: &mut Position) -> Result<(), Misuse> {
        if self.quoting == Quoting::Ordinary {
            for &byte in bytes {
                self.cell += usize::from(byte == self.delimiter);
                position.step(byte);
            }
            return Ok(());
        }
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            // Most bytes change nothing but in the first of a cell.
            let plain = match self.state {
                State::Plain | State::Quoted => {
                    rest.iter().position(|&byte| self.special[usize::from(byte)]).unwrap_or(rest.len())
                }
                _ => 0,
            };
            if let Some(&last) = rest[..plain].last() {
                self.last = last;
                position.step(last);
                rest = &rest[plain..];
                continue;
            }
            self.step(byte)?;
            position.step(byte);
            rest = &rest[1..];
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, byte: u8) -> Result<(), Misuse> {
        let escape = self.quoting == Quoting::Escaped(byte);
        self.state = match (self.state, byte) {
            (State::Quoted, b'"') => {
                self.backslash = self.last == b'\\';
                State::Closed
            }
            (State::Quoted, _) if escape => State::Escaped,
            (State::Quoted, _) => {
                self.several_lines |= matches!(byte, b'\r' | b'\n');
                State::Quoted
            }
            (State::Escaped, b'"') => State::Quoted,
            (State::Escaped, _) if escape => State::Quoted,
            (State::Escaped, _) => return Err(Misuse::Escape),
            (State::Start | State::Closed, b'"') => {
                self.quoted = true;
                State::Quoted
            }
            (State::Plain, b'"') => return Err(Misuse::Inside),
            (_, b'\r' | b'\n') => State::Start,
            (_, byte) if byte == self.delimiter => {
                self.cell += 1;
                State::Start
            }
            (State::Closed, _) => return Err(Misuse::After { backslash: self.backslash }),
            (State::Start | State::Plain, _) if escape => return Err(Misuse::EscapeOutside),
            (State::Start | State::Plain, _) => State::Plain,
        };
        self.last = byte;
        Ok(())
    }
}

#[cfg(test)]
#[path = "quotes_tests.rs"]
mod tests;
