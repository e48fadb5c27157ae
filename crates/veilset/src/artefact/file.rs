//! The file of a half: encrypted under an identity, in frames.
//!
//! A head in the clear: magic, the version of this format and that of the protocol, a random id, the identity's
//! fingerprint. Then the contents, cut into frames of 256 KiB, the last one not longer, each sealed with
//! AES-256-GCM: its nonce is its number and whether it is the last, its associated data the head. The key is used
//! for this file only: it is derived from the identity's private key and the id. So frames that are changed,
//! exchanged, left out or put behind the last do not open, and where the file ends is part of what is sealed.
//!
//! A half that is spent is written over with zeros as far as its keys are, then deleted, both by what was opened: no
//! other name of the file leads to them, and a file that took its name meanwhile stays.

use super::{Basis, LONGEST_WORDS};
use crate::channel::PROTOCOL_VERSION;
use crate::error::{Error, Result};
use crate::hash::ItemHash;
use crate::net::{Fingerprint, Identity};
use crate::places::{beside, same_file, sync_parent};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::table::unwritable;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::fs::{File, OpenOptions, remove_file, symlink_metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Names a half, or a ledger.
pub(super) type Id = [u8; 16];

/// What it is, in messages.
const WHAT: &str = "prepared half";

const MAGIC: &[u8; 8] = b"veilset\x1a";
/// The version of this format.
const FORMAT: u16 = 2;
/// A fingerprint in letters and hyphens.
const FINGERPRINT: usize = 47;
/// Magic, two versions, id, fingerprint.
pub(super) const HEAD: usize = 8 + 2 + 2 + 16 + FINGERPRINT;
/// Bytes of a frame's contents: 256 KiB. Reader and writer hold one.
pub(super) const FRAME: usize = 1 << 18;
pub(super) const TAG: usize = 16;

/// The key of a file.
fn file_key(identity: &Identity, id: &Id) -> Result<LessSafeKey> {
    let of_all = identity.secret_for("veilset 2026-11 prepared half, key of all files");
    let key = Secret::new(*blake3::keyed_hash(&of_all, id).as_bytes());
    let key = UnboundKey::new(&AES_256_GCM, &key[..]).map_err(|_| Error::Bug("no key for AES".into()))?;
    Ok(LessSafeKey::new(key))
}

fn nonce(frame: u64, last: bool) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[..8].copy_from_slice(&frame.to_le_bytes());
    nonce[8] = last.into();
    Nonce::assume_unique_for_key(nonce)
}

/// Seals what is written to it.
pub(super) struct Writer<'o> {
    to: &'o mut dyn Write,
    key: LessSafeKey,
    head: Vec<u8>,
    frame: u64,
    /// What is not sealed yet.
    plain: Secrets<u8>,
}

impl<'o> Writer<'o> {
    pub(super) fn new(to: &'o mut dyn Write, identity: &Identity, rng: &mut Prng) -> Result<Self> {
        let id: Id = rng.bytes();
        let mut head = MAGIC.to_vec();
        head.extend(FORMAT.to_le_bytes());
        head.extend(PROTOCOL_VERSION.to_le_bytes());
        head.extend(id);
        head.extend(identity.fingerprint().to_string().as_bytes());
        to.write_all(&head).map_err(|e| unwritable(WHAT, &e))?;
        Ok(Writer { to, key: file_key(identity, &id)?, head, frame: 0, plain: Secrets::zeros(0) })
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            // A full frame waits: only if more comes it is not the last.
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
    pub(super) fn end(mut self) -> Result<()> {
        self.seal(true)
    }

    fn seal(&mut self, last: bool) -> Result<()> {
        let (nonce, head) = (nonce(self.frame, last), Aad::from(&self.head[..]));
        // Whatever comes of it, this number and these bytes are not sealed again.
        self.frame += 1;
        let sealed = self.key.seal_in_place_separate_tag(nonce, head, &mut self.plain);
        let written =
            sealed.map(|tag| self.to.write_all(&self.plain).and_then(|()| self.to.write_all(tag.as_ref())));
        self.plain.truncate(0);
        let written = written.map_err(|_| Error::Bug("a frame cannot be sealed".into()))?;
        written.map_err(|e| unwritable(WHAT, &e))
    }
}

/// The file of a half, open to be read and, when the half is spent, to be written over.
pub(super) struct Opened {
    /// As the user named it.
    pub(super) name: PathBuf,
    /// Where it is, whatever links lead to it.
    place: PathBuf,
    file: File,
    head: [u8; HEAD],
}

/// Reads what was sealed; refuses anything else.
pub(super) struct Reader {
    of: Opened,
    id: Id,
    key: LessSafeKey,
    frame: u64,
    /// Bytes of the file that were not read yet.
    left: u64,
    /// The contents of a frame, and how much of them was read.
    plain: Secrets<u8>,
    at: usize,
}

impl Reader {
    pub(super) fn open(path: &Path, identity: &Identity) -> Result<Reader> {
        let wrong = |what: String, next: &str| Error::input(path, what, next);
        let unreadable = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => wrong(
                "there is no such prepared half. One that was used is gone".into(),
                "Check its name, or prepare one with `veilset prepare`",
            ),
            _ => wrong(
                format!("the prepared half cannot be read: {e}"),
                "Check that it is a file that you can read and write: it is deleted when it is used",
            ),
        };
        let place = path.canonicalize().map_err(unreadable)?;
        // Before it is opened, which takes for ever with a pipe.
        if !place.metadata().map_err(unreadable)?.is_file() {
            return Err(unreadable(io::Error::other("it is not a regular file")));
        }
        let mut file = OpenOptions::new().read(true).write(true).open(&place).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let mut head = [0; HEAD];
        let whole = length > HEAD as u64 && file.read_exact(&mut head).is_ok();
        if whole && head == [0; HEAD] {
            return Err(wrong(
                "it was used: nothing is left in it".into(),
                "Delete it, and prepare another with `veilset prepare`",
            ));
        }
        let (magic, rest) = head.split_at(MAGIC.len());
        if !whole || magic != MAGIC {
            return Err(wrong(
                "it is not a prepared half, or only the beginning of one".into(),
                "Name one that `veilset prepare` made",
            ));
        }
        let (versions, rest) = rest.split_at(4);
        if versions != [FORMAT.to_le_bytes(), PROTOCOL_VERSION.to_le_bytes()].concat() {
            let number = |at: usize| u16::from_le_bytes([versions[at], versions[at + 1]]);
            return Err(wrong(
                format!(
                    "it is of another version of veilset (format {}, protocol {}; ours are {FORMAT} and \
                     {PROTOCOL_VERSION}), or damaged",
                    number(0),
                    number(2)
                ),
                AGAIN,
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
                    "Name that identity with `identity`, or run `veilset prepare` again with ours",
                ));
            }
            None => return Err(damaged(path)),
        }
        let left = length - HEAD as u64;
        let (key, plain) = (file_key(identity, &id)?, Secrets::zeros(0));
        let of = Opened { name: path.into(), place, file, head };
        Ok(Reader { of, id, key, frame: 0, left, plain, at: 0 })
    }

    pub(super) fn id(&self) -> Id {
        self.id
    }

    /// Fills `out` with what comes next.
    pub(super) fn read(&mut self, mut out: &mut [u8]) -> Result<()> {
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

    /// An array of what comes next.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Refuses a half of another basis than ours, whose items hash to `items`.
    pub(super) fn compare(&mut self, basis: &Basis, items: &[ItemHash]) -> Result<()> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        if length > LONGEST_WORDS {
            return Err(damaged(&self.of.name));
        }
        let mut words = vec![0; length];
        self.read(&mut words)?;
        let length = u32::from_le_bytes(self.array()?) as usize;
        if length > LONGEST_WORDS {
            return Err(damaged(&self.of.name));
        }
        let mut group = vec![0; length];
        self.read(&mut group)?;
        let columns = self.number()?;
        let [padded, listed] = self.array::<2>()?.map(|b| b == 1);
        let (announced, n) = (self.number()?, self.number()?);
        let digest: [u8; 32] = self.array()?;
        let words = String::from_utf8_lossy(&words);
        let other = |what: String| Err(Error::input(&self.of.name, what, AGAIN));
        if words != basis.normalisation {
            return other(format!(
                "it was prepared with keys as {words}, and this run has them as {} (`normalize`, `encoding`)",
                basis.normalisation
            ));
        }
        let group = String::from_utf8_lossy(&group);
        if group != basis.group {
            return other(format!(
                "it was prepared in the group {group}, and this run is in {}",
                basis.group
            ));
        }
        if columns != basis.key_columns as u64 {
            return other(format!(
                "it was prepared with {columns} key columns, and this run has {} (`key`)",
                basis.key_columns
            ));
        }
        let pad_to = |to: Option<u64>| to.map_or("no `pad_to`".into(), |to| format!("`pad_to={to}`"));
        let (theirs, ours) = (padded.then_some(announced), basis.pad_to.map(|to| to as u64));
        if theirs != ours {
            return other(format!(
                "it was prepared with {}, and this run has {}",
                pad_to(theirs),
                pad_to(ours)
            ));
        }
        if [padded, listed] != basis.padding() {
            return other(match listed {
                true => "its dummies are those for the sender of a union, and this run's have to be others (it was \
                         prepared with `union_sender`)"
                    .into(),
                false => "its dummies are not those for the sender of a union (it was prepared without \
                          `union_sender`)"
                    .into(),
            });
        }
        if n != items.len() as u64 {
            return other(format!("it was prepared for {n} keys, and the input now has {}", items.len()));
        }
        match digest == super::digest(items) {
            true => Ok(()),
            false => {
                other("it was prepared for other keys than the input has now, or for another order".into())
            }
        }
    }

    /// The file, if all was read.
    pub(super) fn end(self) -> Result<Opened> {
        match self.left == 0 && self.at == self.plain.len() {
            true => Ok(self.of),
            false => Err(damaged(&self.of.name)),
        }
    }

    fn next_frame(&mut self) -> Result<()> {
        let sealed = self.left.min((FRAME + TAG) as u64);
        self.left -= sealed;
        let mut frame = Secrets::zeros(sealed as usize);
        self.of.file.read_exact(&mut frame).map_err(|_| damaged(&self.of.name))?;
        let opened = self.key.open_in_place(
            nonce(self.frame, self.left == 0),
            Aad::from(&self.of.head[..]),
            &mut frame,
        );
        let length = opened.map_err(|_| damaged(&self.of.name))?.len();
        if length == 0 {
            return Err(damaged(&self.of.name));
        }
        frame.truncate(length);
        (self.plain, self.at, self.frame) = (frame, 0, self.frame + 1);
        Ok(())
    }
}

impl Opened {
    /// Tries what [`Opened::destroy`] needs, as far as it can be tried.
    pub(super) fn can_be_destroyed(&self) -> Result<()> {
        let tried = beside(&self.place).and_then(NamedTempFile::close);
        tried.and_then(|()| sync_parent(&self.place)).map_err(|e| {
            Error::Output(format!(
                "the prepared half {} could not be deleted, which it is when it is used: no file can be made and deleted \
                 in its folder: {e}. Move it to a folder that you can write to",
                self.name.display()
            ))
        })
    }

    /// Writes over the part that has the keys, and deletes the file. If another one has its name or its place, `warn`
    /// hears of it, and that one stays.
    pub(super) fn destroy(mut self, warn: &mut dyn FnMut(&str)) -> Result<()> {
        let overwritten = self.overwrite();
        // Also one that cannot be written over.
        let deleted = match overwritten {
            Ok(false) => Ok(false),
            _ => self.delete(),
        };
        if let Ok(false) = deleted {
            warn(&format!(
                "the prepared half {} was moved, deleted or replaced after it was read. It is spent, and its file is \
                 empty of keys wherever it is; what has its name now was left alone",
                self.name.display()
            ));
        }
        overwritten.and(deleted).map(|_| ()).map_err(|e| {
            Error::Output(format!(
                "the prepared half {} cannot be deleted: {e}. It is spent: delete it by hand, and prepare another with \
                 `veilset prepare` in a folder that you can write to",
                self.name.display()
            ))
        })
    }

    /// Whether the file still had what was read, which it has no longer.
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

    /// Whether it still had its name, which it has no longer.
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

const AGAIN: &str = "Run `veilset prepare` again, with the input and options of this run";

fn damaged(path: &Path) -> Error {
    Error::input(
        path,
        "the prepared half is damaged, or was changed",
        "Delete it, and run `veilset prepare` again",
    )
}
