//! Tables of several files of the same format and columns, one after the other; and of folders, which stand for the files in
//! them.

use super::{Column, MAX_ROWS, ReadOptions, Table, Wanted, shorten};
use crate::error::{Error, Result};
use crate::spelling::unmarked;
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// The files that are named: those of a folder are the files in it, in the order of their names. Names that begin with a dot
/// or an underscore are ignored, as other programs do that write tables of many files.
///
/// # Errors
/// [`Error::Input`] for a folder that cannot be read, has no files or has folders in it, or is a table of a kind that keeps
/// rows of earlier versions; [`Error::Usage`] for a file that is
/// named twice, and for standard input among others.
pub fn input_files(inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for input in inputs {
        match input.is_dir() {
            true => files.extend(in_folder(input)?),
            false => files.push(input.clone()),
        }
    }
    if files.len() > 1 && files.iter().any(|file| file == Path::new("-")) {
        return Err(Error::Usage(
            "standard input (-) is a whole table. Name it alone, or name only files".into(),
        ));
    }
    let mut places: Vec<(PathBuf, &PathBuf)> =
        files.iter().map(|file| (file.canonicalize().unwrap_or_else(|_| file.clone()), file)).collect();
    places.sort();
    if let Some(two) = places.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(Error::usage(format!("the input {} is there twice. Name it once", two[0].1.display())));
    }
    Ok(files)
}

fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |e: std::io::Error| {
        Error::input(
            folder,
            format!("the folder cannot be read: {e}"),
            "Check its permissions, or name the files",
        )
        .because(&e)
    };
    check_table_of_files(folder)?;
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name.starts_with(b".") || name.starts_with(b"_") {
            continue;
        }
        if path.is_dir() {
            let what = format!("the folder has another folder in it, {}", path.display());
            return Err(Error::input(folder, what, "Name the folders or the files themselves"));
        }
        files.push(path);
    }
    if files.is_empty() {
        return Err(Error::input(folder, "the folder has no files", "Check its name, or name the files"));
    }
    files.sort();
    Ok(files)
}

/// Refuses the folder of a table whose rows are not those of all files in it: files of earlier versions stay there.
fn check_table_of_files(folder: &Path) -> Result<()> {
    // What such a folder has, and what it is.
    const KINDS: [(&str, &str); 3] =
        [("_delta_log", "Delta Lake"), (".hoodie", "Hudi"), ("metadata/version-hint.text", "Iceberg")];
    let iceberg = || ["metadata", "data"].iter().all(|name| folder.join(name).is_dir());
    let found = KINDS.iter().find(|(name, _)| folder.join(name).exists()).map(|(_, kind)| *kind);
    match found.or_else(|| iceberg().then_some("Iceberg")) {
        Some(kind) => {
            let what = format!("this is a table of {kind}, whose folder also has rows of earlier versions");
            Err(Error::input(folder, what, "Export its rows as Parquet or CSV"))
        }
        None => Ok(()),
    }
}

/// What messages call these inputs together.
pub fn name_of(inputs: &[PathBuf]) -> String {
    match inputs {
        [] => String::new(),
        [one] => one.display().to_string(),
        [first, more @ ..] => format!("{} and {} more", first.display(), more.len()),
    }
}

impl Table {
    /// Reads all of these files, or the files in these folders, as one table. They are of the same format, and have the same
    /// columns in the same order. Messages about a row name its file.
    ///
    /// # Errors
    /// Those of [`Table::read_watched`] and of [`input_files`]; [`Error::Input`] for a file whose columns are others.
    pub fn read_all(
        inputs: &[PathBuf],
        options: &ReadOptions,
        columns: Option<&[String]>,
        step: &dyn Fn(u64) -> Result<()>,
    ) -> Result<Table> {
        Table::all_wanted(inputs, options, columns.into(), step)
    }

    pub(crate) fn all_wanted(
        inputs: &[PathBuf],
        options: &ReadOptions,
        wanted: Wanted<'_>,
        step: &dyn Fn(u64) -> Result<()>,
    ) -> Result<Table> {
        let files = input_files(inputs)?;
        let (mut whole, before): (Option<Table>, _) = (None, Cell::new(0));
        for file in &files {
            let read = Cell::new(0);
            let step = |bytes| {
                read.set(bytes);
                step(before.get() + bytes)
            };
            let table = Table::read_wanted(file, options, wanted, &step)?;
            before.set(before.get() + read.get());
            match &mut whole {
                None => whole = Some(table),
                Some(whole) => whole.append(table)?,
            }
        }
        let Some(mut whole) = whole else { return Err(Error::Usage("no input was named".into())) };
        if files.len() > 1 {
            whole.name = name_of(inputs);
        }
        Ok(whole)
    }

    /// Adds the rows of a further file.
    fn append(&mut self, further: Table) -> Result<()> {
        self.check_same(&further)?;
        if self.files.is_empty() {
            self.files.push((0, self.name.clone()));
        }
        let first = self.rows();
        if further.rows() > MAX_ROWS - first {
            let what = format!("with this file there are more than {MAX_ROWS} rows");
            return Err(further.error(what, "Run once for each part"));
        }
        self.include(&further);
        self.files.push((first, further.name));
        self.lines.append(first, &further.lines);
        self.batches.append(further.batches);
        Ok(())
    }

    /// Refuses a further file that has other columns.
    pub(super) fn check_same(&self, further: &Table) -> Result<()> {
        let first = self.files.first().map_or(&self.name, |(_, name)| name);
        if self.format != further.format {
            let what = format!("the file is {}, but {first} is {}", further.format, self.format);
            return Err(further.error(what, "Name files of one format"));
        }
        let next = "Give all files the same columns in the same order, with the same types";
        let different = |at: usize| match (self.columns.get(at), further.columns.get(at)) {
            (Some(ours), Some(theirs)) => {
                ours.raw != theirs.raw
                    || ours.field.data_type() != theirs.field.data_type()
                    || ours.field.extension_type_name() != theirs.field.extension_type_name()
            }
            _ => true,
        };
        let most = self.columns.len().max(further.columns.len());
        let Some(at) = (0..most).find(|&at| different(at)) else { return Ok(()) };
        Err(match (self.header.get(at), further.header.get(at)) {
            (Some(ours), Some(theirs)) if ours == theirs => {
                let of = |table: &Table| {
                    let field = &table.columns[at].field;
                    field.extension_type_name().map_or_else(|| field.data_type().to_string(), shorten)
                };
                let what = format!("the column is {}, but {} in {first}", of(further), of(self));
                further.error(what, next).at_column(shorten(theirs))
            }
            (Some(ours), Some(theirs)) => {
                let (ours, theirs) = (unmarked(&shorten(ours)), unmarked(&shorten(theirs)));
                let what = format!("column {} is \"{theirs}\", but \"{ours}\" in {first}", at + 1);
                further.error(what, next)
            }
            (ours, _) => {
                let (columns, theirs) = (further.header.len(), self.header.len());
                let less = if ours.is_some() { "fewer" } else { "more" };
                let what = format!("the file has {less} columns than {first}: {columns} instead of {theirs}");
                further.error(what, next)
            }
        })
    }
}

impl Column {
    /// Makes this the same column of a further file too: it allows missing values if that one does, and is no key if that is none.
    pub(super) fn include(&mut self, other: &Column) {
        if other.field.is_nullable() {
            self.field = self.field.as_ref().clone().with_nullable(true).into();
        }
        if self.no_key.is_none() {
            self.no_key.clone_from(&other.no_key);
        }
    }
}

#[cfg(test)]
#[path = "several_tests.rs"]
mod tests;
