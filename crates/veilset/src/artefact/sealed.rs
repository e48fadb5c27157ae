//! A sealed file: of a stated kind, and encrypted in frames under an identity.
//!
//! The file starts with a head in the clear: magic, the version of the kind's format and [`HEADS`], the kind's
//! name, a random id, and the identity's fingerprint. The contents follow, in frames of 256 KiB; the last one may be
//! shorter. Each frame is sealed with AES-256-GCM. Its nonce consists of its number and whether it is the last; its
//! associated data is the head. The key is used for this file only: it is derived from the identity's private key, the
//! kind and the id. So frames that are changed, exchanged, left out or appended do not open, and truncation is
//! detected, except in a file that is read as an incomplete one ([`Reader::open_part`]).
//!
//! When a file is used up, its head and its first frame, which holds its secrets, are overwritten with zeros. Then it
//! is deleted. Both act on the file that was opened: the secrets are gone under any other name of the file too, and a
//! file that took its name meanwhile is left alone.

use super::HEADS;
use crate::aead::{Key, Nonce, TAG};
use crate::error::{Error, Result};
use crate::net::{Fingerprint, Identity};
use crate::places::{beside, same_file, sync_parent};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::spelling::IDENTITY;
use crate::table::unwritable;
use std::fs::{File, OpenOptions, remove_file, symlink_metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The id of a file or of a ledger.
pub(crate) type Id = [u8; 16];

/// A kind of file, and how often a file may be used. Different kinds have different names and domains.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The kind's name in messages and in the head of its files: at most [`NAME`] bytes of lowercase letters, spaces and
    /// hyphens.
    pub(crate) name: &'static str,
    /// The command that makes such a file.
    pub(crate) made_by: &'static str,
    /// The advice for a file that is damaged, or that a run cannot use, unless it is to make another.
    pub(crate) damaged: Option<&'static str>,
    /// The version of the format of the contents; that of the head is [`HEADS`].
    pub(crate) format: u16,
    /// The domain from which the keys of its files are derived.
    pub(crate) domain: &'static str,
    /// How many runs may use a file, including runs that fail; the last one destroys it. `None`: any number of runs, without
    /// a ledger.
    pub(crate) uses: Option<u32>,
}

impl Kind {
    /// The kind's name as written in a head.
    fn in_head(&self) -> [u8; NAME] {
        let mut field = [0; NAME];
        field.iter_mut().zip(self.name.bytes()).for_each(|(to, byte)| *to = byte);
        field
    }

    /// The error for a file of this kind that is not as it was sealed.
    pub(crate) fn damaged(&self, path: &Path) -> Error {
        let Kind { name, made_by, .. } = self;
        let next = self.damaged.map_or_else(|| format!("Delete it, and run {made_by} again"), str::to_string);
        Error::input(path, format!("the {name} is damaged, or was changed"), next)
    }

    /// The advice for a file that cannot be used in this run.
    pub(crate) fn again(&self) -> String {
        let run = || format!("Run {} again, with the input and options of this run", self.made_by);
        self.damaged.map_or_else(run, str::to_string)
    }

    /// A word for a file that has no uses left.
    fn over(&self) -> &'static str {
        if self.uses == Some(1) { "used" } else { "used up" }
    }
}

/// The kind's name in the head of a file, if there is a valid one.
fn kind_in(field: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(field).ok()?.trim_end_matches('\0');
    let is_name = !name.is_empty() && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b' ' | b'-'));
    is_name.then_some(name)
}

/// "a" or "an" before these words.
fn article(words: &str) -> &'static str {
    if words.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

pub(crate) const MAGIC: &[u8; 8] = b"veilset\x1a";
/// Length of the field for a kind's name, in bytes.
const NAME: usize = 32;
/// Length of a fingerprint as text.
const FINGERPRINT: usize = 47;
/// Length of the head: magic, two versions, the kind's name, id, fingerprint.
pub(crate) const HEAD: usize = 8 + 2 + 2 + NAME + 16 + FINGERPRINT;
/// Length of a frame's contents: 256 KiB. Reader and writer each buffer one frame.
pub(crate) const FRAME: usize = 1 << 18;

/// The key of a file.
fn file_key(identity: &Identity, kind: &Kind, id: &Id) -> Result<Key> {
    let of_all = identity.secret_for(kind.domain);
    Key::of(&Secret::new(*blake3::keyed_hash(&of_all, id).as_bytes()))
}

fn nonce(frame: u64, last: bool) -> Nonce {
    let mut nonce = Nonce::default();
    nonce[..8].copy_from_slice(&frame.to_le_bytes());
    nonce[8] = last.into();
    nonce
}

/// Seals the bytes written to it.
pub(crate) struct Writer<'o> {
    to: &'o mut dyn Write,
    kind: &'static Kind,
    key: Key,
    head: Vec<u8>,
    frame: u64,
    /// Contents that are not sealed yet.
    plain: Secrets<u8>,
}

impl<'o> Writer<'o> {
    pub(crate) fn new(
        to: &'o mut dyn Write,
        kind: &'static Kind,
        identity: &Identity,
        rng: &mut Prng,
    ) -> Result<Self> {
        let id: Id = rng.bytes();
        let mut head = MAGIC.to_vec();
        head.extend(kind.format.to_le_bytes());
        head.extend(HEADS.to_le_bytes());
        head.extend(kind.in_head());
        head.extend(id);
        head.extend(identity.fingerprint().to_string().as_bytes());
        to.write_all(&head).map_err(|e| unwritable(kind.name, &e))?;
        let key = file_key(identity, kind, &id)?;
        Ok(Writer { to, kind, key, head, frame: 0, plain: Secrets::zeros(0) })
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            // A full frame is held back until more data shows that it is not the last.
            if self.plain.len() == FRAME {
                self.seal(false)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(FRAME - self.plain.len()));
            self.plain.extend(now);
            bytes = later;
        }
        Ok(())
    }

    /// Seals the last frame.
    pub(crate) fn end(mut self) -> Result<()> {
        self.seal(true)
    }

    fn seal(&mut self, last: bool) -> Result<()> {
        let nonce = nonce(self.frame, last);
        // Even on failure, neither is this number used again, nor are these bytes sealed again.
        self.frame += 1;
        let sealed = self.key.seal(nonce, &self.head, &mut self.plain);
        let written = sealed.map(|tag| self.to.write_all(&self.plain).and_then(|()| self.to.write_all(&tag)));
        self.plain.truncate(0);
        let written = written?;
        written.map_err(|e| unwritable(self.kind.name, &e))
    }
}

/// An open file, to be read and, when it is used up, overwritten.
pub(crate) struct Opened {
    kind: &'static Kind,
    /// The path as given by the user.
    pub(crate) name: PathBuf,
    /// The path with all links resolved.
    place: PathBuf,
    file: File,
    head: [u8; HEAD],
}

/// Reads sealed contents, and refuses anything else.
pub(crate) struct Reader {
    of: Opened,
    id: Id,
    key: Key,
    /// Whether the last frame was never written.
    part: bool,
    /// Number of bytes after the head, and of the frames that they make up.
    sealed: u64,
    frames: u64,
    /// Number of frames that have been read.
    frame: u64,
    /// The contents of the last frame read, and how much of them has been returned.
    plain: Secrets<u8>,
    at: usize,
}

impl Reader {
    /// Opens a file of a kind, sealed under this identity.
    ///
    /// # Errors
    /// [`Error::Input`], naming the file, if it cannot be read (or written, if its uses are limited), was used up, is not a
    /// sealed file, has a damaged head, or is of a different kind, version or identity.
    pub(crate) fn open(path: &Path, kind: &'static Kind, identity: &Identity) -> Result<Reader> {
        Reader::of(path, kind, identity, false)
    }

    /// Opens the beginning of a file, of which some frames were written and the last one was not.
    ///
    /// # Errors
    /// [`Error::Input`] in the same cases as [`Reader::open`].
    pub(crate) fn open_part(path: &Path, kind: &'static Kind, identity: &Identity) -> Result<Reader> {
        Reader::of(path, kind, identity, true)
    }

    fn of(path: &Path, kind: &'static Kind, identity: &Identity, part: bool) -> Result<Reader> {
        let (name, made_by, over) = (kind.name, kind.made_by, kind.over());
        let wrong = |what: String, next: String| Error::input(path, what, next);
        let is_destroyed = kind.uses.is_some();
        let unreadable = |e: &io::Error| match (e.kind(), is_destroyed) {
            (io::ErrorKind::NotFound, true) => wrong(
                format!("there is no such {name}. One that was {over} is gone"),
                format!("Check its name, or prepare one with {made_by}"),
            ),
            (io::ErrorKind::NotFound, false) => wrong(
                format!("there is no such {name}"),
                format!("Check its name, or make one with {made_by}"),
            ),
            (_, true) => wrong(
                format!("the {name} cannot be read: {e}"),
                format!(
                    "Check that it is a file that you can read and write: it is deleted when it is {over}"
                ),
            ),
            (_, false) => wrong(
                format!("the {name} cannot be read: {e}"),
                "Check that it is a file that you can read".into(),
            ),
        };
        let unreadable = |e: io::Error| unreadable(&e).because(&e);
        let place = path.canonicalize().map_err(unreadable)?;
        // Checked before opening the file: opening a pipe would block forever.
        if !place.metadata().map_err(unreadable)?.is_file() {
            return Err(unreadable(io::Error::other("it is not a regular file")));
        }
        let mut file = OpenOptions::new().read(true).write(is_destroyed).open(&place).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let mut head = [0; HEAD];
        let whole = length > HEAD as u64 && file.read_exact(&mut head).is_ok();
        if whole && head == [0; HEAD] {
            return Err(wrong(
                format!("it was {over}: nothing is left in it"),
                format!("Delete it, and prepare another with {made_by}"),
            ));
        }
        let (magic, rest) = head.split_at(MAGIC.len());
        if !whole || magic != MAGIC {
            return Err(wrong(
                format!("it is not {} {name}, or only the beginning of one", article(name)),
                format!("Name one that {made_by} made"),
            ));
        }
        let (versions, rest) = rest.split_at(4);
        let (field, rest) = rest.split_at(NAME);
        // Checked before the version, which belongs to the kind. A head without a valid name is of another version.
        if let Some(other) = kind_in(field).filter(|_| field != kind.in_head()) {
            return Err(wrong(
                format!("it is {} {other}, not {} {name}", article(other), article(name)),
                format!("Name one that {made_by} made"),
            ));
        }
        if versions != [kind.format.to_le_bytes(), HEADS.to_le_bytes()].concat() {
            let number = |at: usize| u16::from_le_bytes([versions[at], versions[at + 1]]);
            return Err(wrong(
                format!(
                    "it is of another version of veilset (format {}.{}; ours is {}.{HEADS}), or damaged",
                    number(0),
                    number(2),
                    kind.format
                ),
                kind.again(),
            ));
        }
        let (id_bytes, letters) = rest.split_at(size_of::<Id>());
        let mut id = Id::default();
        id.copy_from_slice(id_bytes);
        let theirs = std::str::from_utf8(letters).ok().and_then(|text| text.parse::<Fingerprint>().ok());
        let ours = identity.fingerprint();
        match theirs {
            Some(theirs) if theirs == ours => {}
            Some(theirs) => {
                return Err(wrong(
                    format!("it was prepared under another identity, {theirs}; ours is {ours}"),
                    format!("Name that identity with {IDENTITY}, or run {made_by} again with ours"),
                ));
            }
            None => return Err(kind.damaged(path)),
        }
        let (sealed, whole) = (length - HEAD as u64, (FRAME + TAG) as u64);
        let frames = if part { sealed / whole } else { sealed.div_ceil(whole) };
        let (key, plain) = (file_key(identity, kind, &id)?, Secrets::zeros(0));
        let of = Opened { kind, name: path.into(), place, file, head };
        Ok(Reader { of, id, key, part, sealed, frames, frame: 0, plain, at: 0 })
    }

    /// The error for contents that cannot have been sealed.
    pub(crate) fn damaged(&self) -> Error {
        self.of.damaged()
    }

    /// The error for contents that this run cannot use.
    pub(crate) fn other(&self, what: String) -> Error {
        Error::input(&self.of.name, what, self.of.kind.again())
    }

    pub(crate) fn id(&self) -> Id {
        self.id
    }

    /// Fills `out` with the next bytes.
    pub(crate) fn read(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.at == self.plain.len() {
                self.next_frame()?;
            }
            let n = out.len().min(self.plain.len() - self.at);
            let (now, later) = out.split_at_mut(n);
            now.copy_from_slice(&self.plain[self.at..self.at + n]);
            (out, self.at) = (later, self.at + n);
        }
        Ok(())
    }

    /// Reads the next bytes as an array.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the next eight bytes as a number.
    pub(crate) fn number(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a text after its length, which must be at most `longest`.
    pub(crate) fn words(&mut self, longest: usize) -> Result<String> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        if length > longest {
            return Err(self.damaged());
        }
        let mut words = vec![0; length];
        self.read(&mut words)?;
        Ok(String::from_utf8_lossy(&words).into_owned())
    }

    /// Number of bytes left in the contents of an incomplete file.
    pub(crate) fn left(&self) -> u64 {
        (self.frames - self.frame) * FRAME as u64 + (self.plain.len() - self.at) as u64
    }

    /// Returns the last `N` bytes of the contents, independently of the position.
    pub(crate) fn tail<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut end = Secrets::zeros(0);
        for frame in self.frames.saturating_sub(2)..self.frames {
            end.extend(&self.opened(frame)?);
        }
        end.last_chunk().copied().ok_or_else(|| self.damaged())
    }

    /// Returns the file if all of it was read.
    pub(crate) fn end(self) -> Result<Opened> {
        match self.frame == self.frames && self.at == self.plain.len() {
            true => Ok(self.of),
            false => Err(self.of.damaged()),
        }
    }

    fn next_frame(&mut self) -> Result<()> {
        (self.plain, self.at) = (self.opened(self.frame)?, 0);
        self.frame += 1;
        Ok(())
    }

    /// The contents of a frame.
    fn opened(&mut self, number: u64) -> Result<Secrets<u8>> {
        if number >= self.frames {
            return Err(self.of.damaged());
        }
        let at = number * (FRAME + TAG) as u64;
        let length = (self.sealed - at).min((FRAME + TAG) as u64);
        let mut frame = Secrets::zeros(length as usize);
        let file = &mut self.of.file;
        let read = file.seek(SeekFrom::Start(HEAD as u64 + at)).and_then(|_| file.read_exact(&mut frame));
        read.map_err(|_| self.of.damaged())?;
        let last = !self.part && number + 1 == self.frames;
        let (contents, tag) = frame.split_last_chunk_mut().ok_or_else(|| self.of.damaged())?;
        let opened = self.key.open(nonce(number, last), &self.of.head, tag, contents);
        opened.map_err(|_| self.of.damaged())?;
        let length = contents.len();
        if length == 0 {
            return Err(self.of.damaged());
        }
        frame.truncate(length);
        Ok(frame)
    }
}

impl Opened {
    fn damaged(&self) -> Error {
        self.kind.damaged(&self.name)
    }

    /// Tests in advance, as far as possible, whether [`Opened::destroy`] can succeed.
    pub(crate) fn can_be_destroyed(&self) -> Result<()> {
        let tried = beside(&self.place).and_then(NamedTempFile::close);
        tried.and_then(|()| sync_parent(&self.place)).map_err(|e| {
            Error::output(format!(
                "the {} {} could not be deleted once it is {}: no file can be created and deleted in its \
                 folder: {e}. Move it to a folder that you can write to",
                self.kind.name,
                self.name.display(),
                self.kind.over()
            ))
            .because(&e)
        })
    }

    /// Overwrites the part that holds the secrets, and deletes the file. If it was moved, deleted or replaced, or its head
    /// has changed, calls `warn` and leaves alone the file that has its name.
    pub(crate) fn destroy(mut self, warn: &mut dyn FnMut(&str)) -> Result<()> {
        let overwritten = self.overwrite();
        // Delete the file even if it could not be overwritten.
        let deleted = match overwritten {
            Ok(false) => Ok(false),
            _ => self.delete(),
        };
        if let Ok(false) = deleted {
            warn(&format!(
                "the {} {} was moved, deleted or replaced after it was read. It is spent, and its file no \
                 longer contains keys wherever it is; the file that has its name now was left alone",
                self.kind.name,
                self.name.display()
            ));
        }
        overwritten.and(deleted).map(|_| ()).map_err(|e| {
            Error::output(format!(
                "the {} {} cannot be deleted: {e}. It is spent: delete it by hand, and prepare another with {} in a \
                 folder that you can write to",
                self.kind.name,
                self.name.display(),
                self.kind.made_by
            ))
            .because(&e)
        })
    }

    /// Overwrites the head and the first frame if the file still has the head that was read; returns whether it had.
    fn overwrite(&mut self) -> io::Result<bool> {
        let length = self.file.metadata()?.len().min((HEAD + FRAME + TAG) as u64);
        let mut head = [0; HEAD];
        self.file.seek(SeekFrom::Start(0))?;
        if length < HEAD as u64 || self.file.read_exact(&mut head).is_err() || head != self.head {
            return Ok(false);
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&vec![0; length as usize])?;
        self.file.sync_all()?;
        Ok(true)
    }

    /// Deletes the file if it still has its name; returns whether it had.
    fn delete(&self) -> io::Result<bool> {
        match symlink_metadata(&self.place) {
            Ok(found) if same_file(&found, &self.file.metadata()?) => {
                remove_file(&self.place)?;
                sync_parent(&self.place)?;
                Ok(true)
            }
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
