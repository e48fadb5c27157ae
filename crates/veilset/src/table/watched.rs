//! A reader that can be watched, and stopped, from outside.

use crate::error::Result;
use std::io::{self, Read};

/// Reports at every read how many bytes have come in all.
pub(super) struct Watched<'a, R> {
    from: R,
    bytes: u64,
    step: &'a dyn Fn(u64) -> Result<()>,
}

impl<'a, R: Read> Watched<'a, R> {
    pub(super) fn new(from: R, step: &'a dyn Fn(u64) -> Result<()>) -> Self {
        Watched { from, bytes: 0, step }
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (self.step)(self.bytes).map_err(io::Error::other)?;
        let n = self.from.read(out)?;
        self.bytes += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::table::{Format, ReadOptions, Table};
    use std::cell::Cell;

    #[test]
    fn an_error_of_the_step_ends_the_reading() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table");
        let text = format!("id\n{}", "0123456789\n".repeat(100_000));
        std::fs::write(&path, &text).unwrap();
        for format in [Format::Csv, Format::List] {
            let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
            let heard = Cell::new(0);
            let read = |last: u64| {
                let step = |bytes: u64| {
                    assert!(bytes >= heard.replace(bytes));
                    if bytes < last { Ok(()) } else { Err(Error::Cancelled) }
                };
                Table::read_watched(&path, &options, None, &step)
            };
            assert!(read(u64::MAX).unwrap().rows() >= 100_000);
            assert_eq!(heard.take(), text.len() as u64);
            assert_eq!(read(500_000).unwrap_err(), Error::Cancelled);
            assert!(heard.take() < 600_000);
        }
    }
}
