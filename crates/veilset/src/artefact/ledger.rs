//! The ledger: the ids of used files, one entry for each use.
//!
//! A missing or different ledger would not know of earlier uses. So each ledger has a random id, which is sealed in
//! every file made with it. Only the functions that make such files ([`prepare`](super::prepare)) create a ledger. A
//! run that does not find a file's own ledger does not use the file.

use super::sealed::{Id, Kind};
use crate::error::{Error, Result};
use crate::places::{
    Folder, PATIENCE, PAUSE, append_line, beside, check_of, private_parent, same_file, sync_parent,
};
use crate::rng::Prng;
use crate::spelling::{PREPARED, PREPARED_LEDGER, command, setting};
use crate::trusted::{self, Whose};
use std::fs::{File, OpenOptions, TryLockError, metadata, symlink_metadata};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Name of the ledger in the state folder.
const FILE: &str = "prepared.ledger";
/// The beginning of the first line; the ledger's id follows.
const HEADER: &[u8; 17] = b"veilset ledger 2 ";
/// The beginning of the first line in the first version of the format. Its lines had no check, so a bit that changed on disk
/// could make a used half look new.
const UNCHECKED: &[u8; 17] = b"veilset ledger 1 ";
/// Length of an id in hexadecimal.
const ID: usize = 2 * size_of::<Id>();
/// Length of a line in bytes: an id, its check, and a line feed.
const LINE: usize = ID + 8 + 1;

/// A file with a line for each use of an artefact. It is never truncated; a line takes 41 bytes.
#[derive(Debug, Clone)]
pub struct Ledger(PathBuf);

/// The fields that identify a file to a ledger.
#[derive(Clone, Copy)]
pub(super) struct Ticket {
    /// The file's kind, which determines how many uses it has.
    pub(super) kind: &'static Kind,
    /// The file's id.
    pub(super) file: Id,
    /// The id of the ledger that it was made with.
    pub(super) ledger: Id,
}

impl Ledger {
    /// The ledger in this file.
    pub fn at(path: impl Into<PathBuf>) -> Ledger {
        Ledger(path.into())
    }

    /// The default path of the ledger: `veilset/prepared.ledger` in `$XDG_STATE_HOME`, or in `$HOME/.local/state` if
    /// that is not set.
    pub fn default_path() -> Result<PathBuf> {
        Folder::State.file_or(FILE, "the ledger of prepared halves", setting!(prepared_ledger))
    }

    /// Returns the ledger's id, for making a file. Creates the ledger if it does not exist and syncs it to disk. An error from
    /// `stop` ends the wait for the lock.
    pub(super) fn id_or_new(&self, rng: &mut Prng, stop: &dyn Fn() -> Result<()>) -> Result<Id> {
        self.make(&rng.bytes()).map_err(|e| self.unusable(&e))?;
        self.id(&mut &self.locked(stop)?)
    }

    /// Refuses a file that was made with a different ledger or has no use left; `name` is for the message. Only
    /// [`Ledger::enter`] decides; this is an early check.
    pub(super) fn check(&self, ticket: &Ticket, name: &Path) -> Result<()> {
        self.with_use_left(ticket, name, &|| Ok(())).map(|_| ())
    }

    /// Enters a use of a file, if it has one left and unless `stop` fails. The entry is synced to disk when this
    /// returns.
    pub(super) fn enter(&self, ticket: &Ticket, name: &Path, stop: &dyn Fn() -> Result<()>) -> Result<()> {
        let file = self.with_use_left(ticket, name, stop)?;
        stop()?;
        append_line(&file, &line(&ticket.file)).map_err(|e| self.unusable(&e))
    }

    /// Creates a ledger if there is none. It appears atomically, so that no process finds a part of one.
    fn make(&self, id: &Id) -> io::Result<()> {
        private_parent(&self.0)?;
        if symlink_metadata(&self.0).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            let mut new = beside(&self.0)?;
            new.write_all(&[&HEADER[..], &line(id)].concat())?;
            new.as_file().sync_all()?;
            match new.persist_noclobber(&self.0) {
                // Another process created it first.
                Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => {}
                done => done.map(|_| ()).map_err(|e| e.error)?,
            }
        }
        // Even if it exists: the process that created it may have stopped before syncing.
        sync_parent(&self.0)
    }

    /// The ledger's file, locked until it is closed. Fails if the artefact was made with a different ledger or has no
    /// use left.
    fn with_use_left(&self, ticket: &Ticket, name: &Path, stop: &dyn Fn() -> Result<()>) -> Result<File> {
        let file = self.locked(stop)?;
        let mut lines = BufReader::new(&file);
        if self.id(&mut lines)? != ticket.ledger {
            return Err(Error::input(
                name,
                format!(
                    "it was made with a ledger other than {}, which does not know whether it was used",
                    self.0.display()
                ),
                concat!(
                    "Name the ledger that it was prepared with, with ",
                    setting!(prepared_ledger),
                    ", or delete it and prepare another \
                 with ",
                    command!("prepare")
                ),
            ));
        }
        let (mut read, entry, mut used) = ([0; LINE], line(&ticket.file), 0);
        loop {
            if ticket.kind.uses.is_none_or(|uses| used >= uses) {
                return Err(self.used_up(ticket.kind, name));
            }
            match fill(&mut lines, &mut read).map_err(|e| self.unusable(&e))? {
                0 => break,
                LINE if is_line(&read) => {}
                _ => return Err(self.damaged()),
            }
            used += u32::from(read == entry);
        }
        drop(lines);
        Ok(file)
    }

    /// The error for a file that has no use left.
    fn used_up(&self, kind: &Kind, name: &Path) -> Error {
        let (what, ledger) = (kind.name, self.0.display());
        let what = match kind.uses {
            Some(1) => format!(
                "it was used before: a {what} is for one run, even if that failed, and according to the \
                 ledger {ledger} this is a copy of a used one"
            ),
            Some(uses) => format!(
                "it was used up before: it is for {uses} runs, even if they failed, and according to the \
                 ledger {ledger} this {what} or a copy of it had them"
            ),
            None => format!("a {what} is not for a ledger"),
        };
        Error::input(name, what, format!("Delete it, and prepare another with {}", kind.made_by))
    }

    /// Reads the first line.
    fn id(&self, file: &mut impl Read) -> Result<Id> {
        let (mut header, mut read) = ([0; HEADER.len()], [0; LINE]);
        for part in [&mut header[..], &mut read[..]] {
            fill(file, part).map_err(|e| self.unusable(&e))?;
        }
        if header == *UNCHECKED {
            return Err(Error::output(format!(
                "the ledger of prepared halves {} is of an earlier version, whose entries have no check. Delete all halves \
                 prepared so far and all copies of them, then the ledger, and prepare again",
                self.0.display()
            )));
        }
        if header != *HEADER || !is_line(&read) {
            return Err(Error::output(format!(
                "{} is not a ledger of prepared halves, and is left unchanged. Check {PREPARED_LEDGER}: name \
                 a ledger that {} made",
                self.0.display(),
                command!("prepare")
            )));
        }
        let digit = |b: u8| (b as char).to_digit(16).unwrap_or_default() as u8;
        Ok(std::array::from_fn(|i| digit(read[2 * i]) << 4 | digit(read[2 * i + 1])))
    }

    /// Opens the file and locks it. Fails if `stop` does, or if others hold the lock for too long.
    fn locked(&self, stop: &dyn Fn() -> Result<()>) -> Result<File> {
        let start = Instant::now();
        loop {
            if let Some(file) = self.try_locked()? {
                return Ok(file);
            }
            stop()?;
            if start.elapsed() > PATIENCE {
                return Err(Error::output(format!(
                    "the ledger of prepared halves {} has been locked by another process for {} seconds. No \
                     half was spent: find out which process holds it, and run again",
                    self.0.display(),
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// `None` if another process holds the lock, or has replaced or removed the file.
    fn try_locked(&self) -> Result<Option<File>> {
        let file = match OpenOptions::new().read(true).append(true).open(&self.0) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(self.missing()),
            opened => opened.map_err(|e| self.unusable(&e))?,
        };
        let found = file.metadata().map_err(|e| self.unusable(&e))?;
        if !found.is_file() {
            return Err(self.unusable(&io::Error::other("it is not a regular file")));
        }
        trusted::check("the ledger", &self.0, Whose::Ours, &file)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(self.unusable(&e)),
        }
        Ok(metadata(&self.0).is_ok_and(|named| same_file(&named, &found)).then_some(file))
    }

    fn missing(&self) -> Error {
        Error::output(format!(
            "there is no ledger of prepared halves {}. A half is used only with the ledger that it was prepared with: \
             name that one with {}, or run without {PREPARED}. If it is lost, delete the half: \
             {} makes another, and a ledger for it",
            self.0.display(),
            PREPARED_LEDGER.with("FILE"),
            command!("prepare")
        ))
    }

    fn unusable(&self, e: &io::Error) -> Error {
        Error::output(format!(
            "the ledger of prepared halves {} cannot be used: {e}. Without it no half is made or used: free \
             disk space, check that you can write to it, or run without {PREPARED}",
            self.0.display()
        ))
        .because(e)
    }

    /// An entry may be lost, and with it the record that some half is spent.
    fn damaged(&self) -> Error {
        Error::output(format!(
            "the ledger of prepared halves {} is damaged: not all of it is lines of a ledger, so it no \
             longer tells which halves are spent. Delete all halves prepared so far and \
             all copies of them, then the ledger, and prepare again",
            self.0.display()
        ))
    }
}

fn line(id: &Id) -> [u8; LINE] {
    let mut line = [b'\n'; LINE];
    for (two, byte) in line.chunks_exact_mut(2).zip(id) {
        two.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    let check = check_of(&line[..ID]);
    line[ID..LINE - 1].copy_from_slice(check.as_bytes());
    line
}

fn is_line(line: &[u8; LINE]) -> bool {
    let digit = |b: &u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let check = check_of(&line[..ID]);
    line[LINE - 1] == b'\n' && line[..ID].iter().all(digit) && line[ID..LINE - 1] == *check.as_bytes()
}

/// Reads until `to` is full or the file ends.
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

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
