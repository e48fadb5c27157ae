//! The names of a file's columns, from a look at its beginning: for what completes them while they are typed.

use super::{Format, ReadOptions, arrow_read, compressed, json_lines, parquet, read};
use crate::error::{Error, Result};
use crate::paths::open_regular;
use std::io::Read;
use std::path::Path;

/// What is read of a file, after it is decompressed: 64 KiB.
const BEGINNING: u64 = 1 << 16;
/// The largest footer of a Parquet file that is read: 4 MiB.
const FOOTER: u64 = 4 << 20;

/// The columns of a regular file that [`Table::read`](super::Table::read) could be asked for, in their order. A list has none.
///
/// Only the beginning of the file is read, and of Parquet only the footer. Rows are neither checked nor kept, except that
/// the names of JSON lines are those of the first lines.
///
/// # Errors
/// [`Error::Input`] for what is no regular file, and where the names are not in what is read.
pub fn column_names(path: &Path, options: &ReadOptions) -> Result<Vec<String>> {
    let name = path.display().to_string();
    let file = open_regular(path).map_err(|e| read::unopened(path, &e))?;
    let format = options.format_of(path);
    if format == Format::Parquet {
        return parquet::names(&name, file, options, FOOTER);
    }
    let mut head = Vec::new();
    let reader = compressed::decompressed(&name, file)?;
    reader.take(BEGINNING).read_to_end(&mut head).map_err(|e| read::unreadable(&name, &e))?;
    match format {
        Format::Parquet | Format::List => Ok(Vec::new()),
        Format::Csv => read::names(&name, whole_lines(&name, &head)?, options),
        Format::JsonLines => {
            json_lines::read(&name, whole_lines(&name, &head)?, options, None).map(|table| table.header)
        }
        Format::Arrow => arrow_read::names(&name, head, options),
    }
}

/// What is read of a text, up to the end of its last whole line; a file that is read to its end has only whole lines.
fn whole_lines<'a>(name: &str, head: &'a [u8]) -> Result<&'a [u8]> {
    if (head.len() as u64) < BEGINNING {
        return Ok(head);
    }
    let end = head.iter().rposition(|byte| matches!(byte, b'\r' | b'\n'));
    end.map(|end| &head[..=end]).ok_or_else(|| {
        Error::input(name, "the first line is longer than 64 KiB", "Is this a table? Check its name")
    })
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
