//! The ledger: the ids of the halves that are spent.

use super::file::Id;
use crate::error::{Error, Result};
use crate::session::places::{Place, private_parent, sync_parent};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Its name in the state folder.
const FILE: &str = "prepared.ledger";
/// A line: an id in hexadecimal and a line feed.
const LINE: usize = 2 * size_of::<Id>() + 1;

/// A file with a line for each half that is spent. It is never cut; a line takes 33 bytes.
#[derive(Debug, Clone)]
pub struct Ledger(PathBuf);

impl Ledger {
    /// The ledger in this file, which is made if it is not there.
    pub fn at(path: impl Into<PathBuf>) -> Ledger {
        Ledger(path.into())
    }

    /// Where the ledger is unless told otherwise: `veilset/prepared.ledger` in `$XDG_STATE_HOME`, which is
    /// `$HOME/.local/state` where it is not set.
    pub fn default_path() -> Result<PathBuf> {
        Place::State.file_or(FILE, "the ledger of prepared halves", "--prepared-ledger")
    }

    /// Refuses a half that is spent. Only [`Ledger::enter`] decides; this is to know it early.
    pub(super) fn check(&self, id: &Id, half: &Path) -> Result<()> {
        self.without(id, half).map(|_| ())
    }

    /// Enters a half that is not spent yet. It is on the disk when this returns.
    pub(super) fn enter(&self, id: &Id, half: &Path) -> Result<()> {
        let mut file = self.without(id, half)?;
        let mut write = || {
            let length = file.metadata()?.len();
            let written = file.write_all(&line(id)).and_then(|()| file.sync_all());
            if written.is_err() {
                // Part of a line would spoil the ledger. The half stays as it is.
                let _ = file.set_len(length);
            }
            written?;
            sync_parent(&self.0)
        };
        write().map_err(|e| self.unusable(&e))
    }

    /// The file, locked until it is closed, if this id is not in it.
    fn without(&self, id: &Id, half: &Path) -> Result<File> {
        let file = self.locked().map_err(|e| self.unusable(&e))?;
        let mut lines = BufReader::new(&file);
        let mut read = [0; LINE];
        loop {
            match fill(&mut lines, &mut read).map_err(|e| self.unusable(&e))? {
                0 => break,
                LINE if is_line(&read) => {}
                _ => return Err(self.damaged()),
            }
            if read == line(id) {
                return Err(Error::input(
                    half,
                    format!(
                        "it was used before: a prepared half is for one run, even if that failed, and by the ledger {} \
                         this is a copy of one that had it",
                        self.0.display()
                    ),
                    "Delete it, and prepare another with `veilset prepare`",
                ));
            }
        }
        Ok(file)
    }

    fn locked(&self) -> io::Result<File> {
        private_parent(&self.0)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.0)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        file.lock()?;
        Ok(file)
    }

    fn unusable(&self, e: &io::Error) -> Error {
        Error::Output(format!(
            "the ledger of prepared halves {} cannot be used: {e}. Without it no half is used: make room, name another \
             file with --prepared-ledger FILE (the same for all runs), or run without --prepared",
            self.0.display()
        ))
    }

    /// An entry may be lost, and with it the knowledge that some half is spent.
    fn damaged(&self) -> Error {
        Error::Output(format!(
            "the ledger of prepared halves {} has something else than its lines, so it cannot tell any more which \
             halves are spent. Delete all halves and copies of halves that were prepared so far, then the ledger, and \
             prepare again",
            self.0.display()
        ))
    }
}

fn line(id: &Id) -> [u8; LINE] {
    let mut line = [b'\n'; LINE];
    for (two, byte) in line.chunks_exact_mut(2).zip(id) {
        two.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    line
}

fn is_line(line: &[u8; LINE]) -> bool {
    let digit = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    line[LINE - 1] == b'\n' && line[..LINE - 1].iter().all(digit)
}

/// Reads as much as there is.
fn fill(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match from.read(&mut to[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
