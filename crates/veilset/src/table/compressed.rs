//! Files that are compressed by gzip or Zstandard: recognised by their first bytes, and decompressed while they are read.

use super::other::HEAD;
use crate::error::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::cell::Cell;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What is decompressed may take this much, and beyond it ... (Less in fuzzing: files are small and many.)
pub(super) const FREE: u64 = if cfg!(fuzzing) { 16 << 20 } else { 1 << 30 };
/// ... this many times the size of the file.
pub(super) const EXPANSION: u64 = 1000;

/// The extensions of compressed files.
const EXTENSIONS: [&str; 3] = ["gz", "zst", "zstd"];

/// The name of what is in a compressed file: `a.csv` for `a.csv.gz`. `None` if the name is that of no compressed file.
pub(super) fn inner(path: &Path) -> Option<PathBuf> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    EXTENSIONS.contains(&extension.as_str()).then(|| path.with_extension(""))
}

/// What the reader gives, decompressed if it is compressed.
pub(super) fn decompressed<'a>(name: &'a str, mut reader: impl Read + 'a) -> Result<Box<dyn Read + 'a>> {
    let mut head = Vec::with_capacity(HEAD);
    reader
        .by_ref()
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(|e| super::read::unreadable(name, &e))?;
    let by = match &head[..] {
        [0x1f, 0x8b, ..] => "gzip",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "Zstandard",
        _ => return Ok(Box::new(Cursor::new(head).chain(reader))),
    };
    let taken = Rc::new(Cell::new(0));
    let whole = Counted { from: Cursor::new(head).chain(reader), bytes: taken.clone() };
    let from: Box<dyn Read + 'a> = match by {
        "gzip" => Box::new(MultiGzDecoder::new(BufReader::new(whole))),
        _ => match zstd::stream::read::Decoder::new(whole) {
            Ok(decoder) => Box::new(decoder),
            Err(_) => return Err(damaged(name, by)),
        },
    };
    Ok(Box::new(Decompressed { name, by, from, taken, given: 0 }))
}

fn damaged(name: &str, by: &str) -> Error {
    let what = format!("the file is compressed by {by}, and damaged or incomplete");
    Error::input(name, what, "Copy it again from its source, or compress it again")
}

/// Counts the bytes that it gives.
struct Counted<R> {
    from: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(out)?;
        self.bytes.set(self.bytes.get() + n as u64);
        Ok(n)
    }
}

/// What is decompressed. A file that is much larger then than any table is refused.
struct Decompressed<'a> {
    name: &'a str,
    by: &'static str,
    from: Box<dyn Read + 'a>,
    /// The compressed bytes so far.
    taken: Rc<Cell<u64>>,
    given: u64,
}

impl Read for Decompressed<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(out).map_err(|e| match Error::carried_by(&e) {
            Some(ours) => io::Error::other(ours),
            // The system's errors have a code, those of a decoder have none.
            None if e.raw_os_error().is_some() => e,
            None => io::Error::other(damaged(self.name, self.by)),
        })?;
        self.given += n as u64;
        if self.given > EXPANSION.saturating_mul(self.taken.get()).saturating_add(FREE) {
            let what = format!("the file is more than {EXPANSION} times as large when it is decompressed");
            let next = "Check where it comes from; if it is genuine, decompress it first";
            return Err(io::Error::other(Error::input(self.name, what, next)));
        }
        Ok(n)
    }
}

#[cfg(test)]
#[path = "compressed_tests.rs"]
mod tests;
