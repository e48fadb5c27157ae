//! What is odd in a file and not wrong: its user hears of it.

/// Something odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Odd {
    /// A row is the same as the header.
    Header,
    /// A cell begins with a byte-order mark.
    Mark,
    /// A cell contains a NUL character.
    Nul,
    /// A cell contains a line end.
    Lines,
}

/// Something odd in a file, where it was first, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    file: String,
    odd: Odd,
    line: u64,
    rows: u64,
}

impl Note {
    /// One row with something odd.
    pub(super) fn new(file: &str, odd: Odd, line: u64) -> Note {
        Note { file: file.into(), odd, line, rows: 1 }
    }

    /// In words: file, line, what, and the next step.
    pub fn text(&self) -> String {
        let (what, next) = match self.odd {
            Odd::Header => {
                ("the row repeats the header", "It is read as data: remove it if several files were joined")
            }
            Odd::Mark => (
                "a cell begins with a byte-order mark, which is invisible and part of the cell",
                "If several files were joined, remove it",
            ),
            Odd::Nul => {
                ("a cell contains a NUL character", "Check how the file was written: it may be damaged")
            }
            Odd::Lines => (
                "a cell spans several lines",
                "If it should not, a quote is missing, or there is one too many",
            ),
        };
        let more = match self.rows {
            1 => String::new(),
            rows => format!(" (and {} more)", rows - 1),
        };
        format!("{}, line {}{more}: {what}. {next}", self.file, self.line)
    }

    /// Adds a note to others; those of the same kind in the same file are one.
    pub(super) fn add(self, to: &mut Vec<Note>) {
        match to.iter_mut().find(|note| note.odd == self.odd && note.file == self.file) {
            Some(note) => note.rows += self.rows,
            None => to.push(self),
        }
    }
}
