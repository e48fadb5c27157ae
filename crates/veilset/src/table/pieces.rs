//! Tables that are read piece by piece, because they need not fit in memory.

use super::several::input_files;
use super::{
    Format, Found, MAX_ROWS, ReadOptions, Table, Wanted, Watched, compressed, name_of, parquet, read,
};
use crate::error::{Error, Result};
use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The rows of a piece; few in tests, so that what is small has several.
pub(crate) const PIECE: usize = if cfg!(test) { 5 } else { 1 << 16 };

/// The most rows of a piece but the last, and who gets those before the last.
pub(super) type Pieces<'e> = (usize, &'e mut dyn FnMut(Table) -> Result<()>);

impl Table {
    /// Reads all of these files like [`Table::read_all`], in pieces, which `each` gets in their order: at least one. CSV, lists
    /// and Parquet come in pieces of about `rows` rows; files of other formats, and Parquet that is compressed as a whole, in
    /// one piece each. A row has the place in its file that it has in the whole table.
    ///
    /// # Errors
    /// Those of [`Table::read_all`], and of `each`. Standard input is refused: it is here once only.
    pub fn in_pieces(
        inputs: &[PathBuf],
        options: &ReadOptions,
        columns: Option<&[String]>,
        rows: usize,
        step: &dyn Fn(u64) -> Result<()>,
        each: &mut dyn FnMut(Table) -> Result<()>,
    ) -> Result<()> {
        Table::wanted_in_pieces(inputs, options, columns.into(), rows, step, each)
    }

    pub(crate) fn wanted_in_pieces(
        inputs: &[PathBuf],
        options: &ReadOptions,
        wanted: Wanted<'_>,
        rows: usize,
        step: &dyn Fn(u64) -> Result<()>,
        each: &mut dyn FnMut(Table) -> Result<()>,
    ) -> Result<()> {
        let files = input_files(inputs)?;
        let (mut first, before): (Option<Table>, _) = (None, Cell::new(0));
        let mut all = 0;
        for file in &files {
            let read = Cell::new(0);
            let step = |bytes| {
                read.set(bytes);
                step(before.get() + bytes)
            };
            let mut take = |mut piece: Table| {
                if files.len() > 1 {
                    piece.files.push((0, piece.name.clone()));
                }
                match &first {
                    None => first = Some(piece.without_rows()),
                    Some(first) => first.check_same(&piece)?,
                }
                all += piece.rows();
                if all > MAX_ROWS {
                    let what = format!("with this file there are more than {MAX_ROWS} rows");
                    return Err(piece.error(what, "Run once for each part"));
                }
                each(piece)
            };
            pieces_of(file, options, wanted, rows, &step, &mut take)?;
            before.set(before.get() + read.get());
        }
        match first {
            Some(_) => Ok(()),
            None => Err(Error::Usage("no input was named".into())),
        }
    }

    /// The same table without its rows.
    pub(crate) fn without_rows(&self) -> Table {
        Table {
            name: self.name.clone(),
            columns: self.columns.clone(),
            header: self.header.clone(),
            unread: self.unread.clone(),
            notes: self.notes.clone(),
            files: self.files.clone(),
            lines: Default::default(),
            batches: self.batches.without_rows(),
            ..*self
        }
    }

    /// Makes this the head of a table that also has the rows of a further piece: a column may lack values if it may there, and
    /// what is not read there is not read here.
    pub(crate) fn include(&mut self, piece: &Table) {
        self.columns.iter_mut().zip(&piece.columns).for_each(|(ours, theirs)| ours.include(theirs));
        for unread in &piece.unread {
            if !self.unread.iter().any(|ours| ours.name == unread.name) {
                self.unread.push(unread.clone());
            }
        }
        if self.found != piece.found {
            // That of one file is not that of all.
            self.found = Found::default();
        }
        piece.notes.iter().for_each(|note| note.clone().add(&mut self.notes));
    }

    /// Calls the table by the name of all of its files.
    pub(crate) fn name_all(&mut self, inputs: &[PathBuf]) {
        if !self.files.is_empty() {
            self.name = name_of(inputs);
        }
    }
}

fn pieces_of(
    path: &Path,
    options: &ReadOptions,
    wanted: Wanted<'_>,
    rows: usize,
    step: &dyn Fn(u64) -> Result<()>,
    each: &mut dyn FnMut(Table) -> Result<()>,
) -> Result<()> {
    if path == Path::new("-") {
        return Err(Error::Usage("standard input (-) can be read once only. Name a file".into()));
    }
    let format = options.format_of(path);
    let open = || File::open(path).map_err(|e| read::unopened(path, &e));
    let name = path.display().to_string();
    let last = match format {
        Format::Csv | Format::List => {
            let reader = compressed::decompressed(&name, Watched::new(open()?, step))?;
            read::read(&name, reader, options, wanted, MAX_ROWS, (rows, &mut *each))
        }
        Format::Parquet if path.is_file() && compressed::inner(path).is_none() => {
            parquet::read(&name, open()?, options, wanted.columns, step, (rows, &mut *each))
        }
        _ => Table::read_wanted(path, options, wanted, step),
    };
    each(last?)
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
