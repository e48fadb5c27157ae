//! The address book: names for peers' fingerprints.
//!
//! A TOML file with one table per peer, sorted by name. It is written in full and then renamed, so a partial book never exists.
//! It is locked during a change, so that no concurrent change is lost, if its file system has locks. On Unix, a change makes it
//! private to its owner: it names the peers, and write access to it would allow a peer to be impersonated.

use crate::front::load_identity;
use crate::near::{did_you_mean, known_key, sentence};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use veilset::error::{Error, Result};
use veilset::net::{Endpoint, Fingerprint, Identity};
use veilset::places::{Folder, private_parent, same_file};
use veilset::spelling::{BOOK, FORCE, IDENTITY, PEER, to_type};
use veilset::trusted::{self, Whose};

/// The book's file name in the configuration folder.
pub const FILE: &str = "peers.toml";
const LONGEST_NAME: usize = 64;
/// How long to wait for the lock. A process holds it only to read and rewrite the book.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(10);
const HEAD: &str =
    "# Peers of veilset. `veilset peer add` and `remove` rewrite this file, and comments are lost.\n";

/// A peer as the book lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The peer's name; `None` for a fingerprint that is not in the book.
    pub name: Option<String>,
    /// The fingerprint of the peer's identity.
    pub fingerprint: Fingerprint,
    /// The address at which the peer listens, HOST:PORT.
    pub address: Option<String>,
}

/// The named peers.
#[derive(Debug)]
pub struct Book {
    /// The path of the book; `None` if there is no folder for it.
    path: Option<PathBuf>,
    peers: BTreeMap<String, Entry>,
}

/// A peer as it is written in the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(deserialize_with = "parsed")]
    fingerprint: Fingerprint,
    address: Option<String>,
}

fn parsed<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Fingerprint, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

impl Book {
    /// Reads the book. A missing book is empty, unless it was named. Refuses a file that others can change, or adds to
    /// `warnings` ([`trusted::check`]).
    pub fn load(named: Option<&Path>, warnings: &mut Vec<String>) -> Result<Book> {
        let path = named.map(Path::to_path_buf).or_else(Book::default_path);
        let text = match path.as_deref().map(|path| Ok((path, File::open(path)?))) {
            None => String::new(),
            Some(Ok((path, file))) => read(path, file, warnings)?,
            Some(Err::<_, std::io::Error>(e)) if e.kind() == ErrorKind::NotFound && named.is_none() => {
                String::new()
            }
            Some(Err(e)) => return Err(unreadable(path.as_deref(), e)),
        };
        Book::parse(&text, path)
    }

    /// Returns the path of the book if none is named; `None` without a configuration folder.
    pub fn default_path() -> Option<PathBuf> {
        Folder::Configuration.file(FILE)
    }

    /// Parses a book with this text, read from this path.
    pub fn parse(text: &str, path: Option<PathBuf>) -> Result<Book> {
        let peers: BTreeMap<String, Entry> = toml::from_str(text).map_err(|e| {
            unreadable(path.as_deref(), format!("{}{}", e.to_string().trim_end(), known_key(&e)))
        })?;
        for (name, entry) in &peers {
            let wrong = |e: Error| unreadable(path.as_deref(), format!("[{name}]: {}", e.marked()));
            name_is_good(name).map_err(wrong)?;
            entry.address.as_deref().map_or(Ok(()), address_is_good).map_err(wrong)?;
        }
        Ok(Book { path, peers })
    }

    /// Changes the book under its lock, and creates a missing one if `make` is set. Refuses a file that others can change,
    /// or adds to `warnings`.
    fn change(
        named: Option<&Path>,
        make: bool,
        warnings: &mut Vec<String>,
        change: impl FnOnce(&mut Book) -> Result<()>,
    ) -> Result<()> {
        let path = match named.map(Path::to_path_buf).or_else(Book::default_path) {
            Some(path) => path,
            None => Folder::Configuration.file_or(FILE, "the address book", BOOK.marked())?,
        };
        trusted::check_place("the address book", &path, Whose::Ours)?;
        // The lock is released when the process that holds it ends, however it ends.
        let _locked = match make || path.exists() {
            true => Some(locked(&path)?),
            false => None,
        };
        let mut book = Book::load(named, warnings)?;
        change(&mut book)?;
        book.save(&path)
    }

    /// Returns the peer that was typed as a name or a fingerprint.
    pub fn peer(&self, typed: &str) -> Result<Peer> {
        if let Some(entry) = self.peers.get(typed) {
            return Ok(entry.peer(typed));
        }
        match typed.parse::<Fingerprint>() {
            Ok(fingerprint) => Ok(match self.peers.iter().find(|(_, e)| e.fingerprint == fingerprint) {
                Some((name, entry)) => entry.peer(name),
                None => Peer { name: None, fingerprint, address: None },
            }),
            // Text that cannot be a name was meant as a fingerprint.
            Err(e) if name_is_good(typed).is_err() => {
                Err(Error::usage(format!("{PEER} is not a fingerprint: {e}")))
            }
            Err(e) => Err(Error::usage(format!(
                "{PEER} \"{typed}\": {} Add it with {}. If it is meant to be a \
                 fingerprint: {e}",
                sentence(self.unknown(typed)),
                to_type(format_args!("peer add {typed} FINGERPRINT"))
            ))),
        }
    }

    /// Returns all peers, sorted by name.
    pub fn peers(&self) -> impl Iterator<Item = Peer> {
        self.peers.iter().map(|(name, entry)| entry.peer(name))
    }

    /// Returns the fingerprint that the book has for a name.
    pub fn fingerprint(&self, name: &str) -> Option<Fingerprint> {
        self.peers.get(name).map(|entry| entry.fingerprint)
    }

    /// The error for a name that is not in the book, with similar names that are.
    fn unknown(&self, name: &str) -> String {
        let near = did_you_mean(name, self.peers.keys().map(String::as_str));
        format!("there is no peer of this name in the address book{}{near}", self.shown())
    }

    fn shown(&self) -> String {
        self.path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default()
    }

    fn save(&self, path: &Path) -> Result<()> {
        let mut text = HEAD.to_string();
        for (name, Entry { fingerprint, address }) in &self.peers {
            // Neither names nor addresses contain anything that needs escaping.
            text += &format!("\n[\"{name}\"]\nfingerprint = \"{fingerprint}\"\n");
            if let Some(address) = address {
                text += &format!("address = \"{address}\"\n");
            }
        }
        let write = || {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            // On Unix, temporary files are created with mode 0600.
            let mut file = tempfile::Builder::new().prefix(".veilset-").tempfile_in(folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path).map_err(|e| e.error)?;
            Ok(())
        };
        write().map_err(|e: std::io::Error| unwritten(path, &e))
    }
}

/// Reads the text of a book, after checking who can change the open file: there may have been another file, or none, at
/// its path when [`Book::change`] checked that.
fn read(path: &Path, mut file: File, warnings: &mut Vec<String>) -> Result<String> {
    let unread = |e| unreadable(Some(path), e);
    warnings.extend(trusted::check("the address book", path, Whose::Ours, &file)?);
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unread)?;
    Ok(text)
}

fn unwritten(path: &Path, e: &std::io::Error) -> Error {
    Error::output(format!(
        "the address book {} cannot be written: {e}. Free disk space, or name another with {BOOK}",
        path.display()
    ))
}

/// Locks the book at this path, and creates an empty one if there is none. Saving a book renames another file to this path, so
/// the locked file must still be the one at the path.
fn locked(path: &Path) -> Result<File> {
    let start = Instant::now();
    let failed = |e: std::io::Error| unwritten(path, &e);
    private_parent(path).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    loop {
        let file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => match (file.metadata(), path.metadata()) {
                (Ok(ours), Ok(named)) if same_file(&ours, &named) => return Ok(file),
                _ => {}
            },
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            // The file system has no locks.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        if start.elapsed() > PATIENCE {
            return Err(Error::output(format!(
                "the address book {} has been locked by another process for {} seconds. Find out which process holds it, \
                 then run again",
                path.display(),
                PATIENCE.as_secs()
            )));
        }
    }
}

impl Entry {
    fn peer(&self, name: &str) -> Peer {
        Peer { name: Some(name.into()), fingerprint: self.fingerprint, address: self.address.clone() }
    }
}

fn unreadable(path: Option<&Path>, e: impl std::fmt::Display) -> Error {
    let shown = path.map(|p| p.display().to_string()).unwrap_or_default();
    Error::usage(format!(
        "the address book {shown} cannot be used: {} Correct it, or name another with {BOOK}",
        sentence(e.to_string().trim_end().into())
    ))
}

fn name_is_good(name: &str) -> Result<()> {
    let letters = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(letters) {
        return Err(Error::usage(format!(
            "\"{}\" cannot be a peer's name: use 1 to {LONGEST_NAME} letters, digits, dots, hyphens and underscores",
            name.escape_debug()
        )));
    }
    match name.parse::<Fingerprint>() {
        Ok(_) => Err(Error::usage(format!(
            "\"{name}\" cannot be a peer's name, because it is a fingerprint. Give the name first: {}",
            to_type(format_args!("peer add NAME {name}"))
        ))),
        Err(_) => Ok(()),
    }
}

fn address_is_good(address: &str) -> Result<()> {
    // The address is written to the file without escaping.
    match address.bytes().all(|c| c.is_ascii_graphic() && !matches!(c, b'"' | b'\\')) {
        true => Endpoint::connect(address).check(),
        false => Err(Error::usage(format!(
            "\"{}\" is not an address. Write HOST:PORT, for instance example.org:7000",
            address.escape_debug()
        ))),
    }
}

/// Rejects our own fingerprint, if it is known: the default identity need not exist.
fn is_not_ours(fingerprint: Fingerprint, named: Option<&Path>, warnings: &mut Vec<String>) -> Result<()> {
    let ours = match (named, Identity::default_path()) {
        (Some(path), _) => {
            let identity = load_identity(Some(path), &mut |warning| warnings.push(warning.into()))?;
            Some((path.to_path_buf(), identity))
        }
        (None, Ok(path)) => Identity::load(&path).ok().map(|identity| (path, identity)),
        (None, Err(_)) => None,
    };
    match ours {
        Some((path, identity)) if identity.fingerprint() == fingerprint => Err(Error::usage(format!(
            "this is our own fingerprint, that of the identity {}. Give the one that {} \
             prints on the other party's side. If two parties share this account, name \
             the identity to use with this peer ({IDENTITY})",
            path.display(),
            to_type("identity show")
        ))),
        _ => Ok(()),
    }
}

/// A peer to add to the address book.
#[derive(Debug)]
pub struct NewPeer {
    /// The peer's name: letters, digits, dots, hyphens and underscores.
    pub name: String,
    /// The peer's fingerprint, as text.
    pub fingerprint: String,
    /// The address at which the peer listens, HOST:PORT.
    pub address: Option<String>,
    /// Our identity file, whose fingerprint is refused; `None` for the default one, if there is one.
    pub identity: Option<PathBuf>,
    /// The address book; `None` for the default one.
    pub book: Option<PathBuf>,
    /// Whether an entry of this name may be replaced.
    pub force: bool,
}

/// Adds a peer to the address book. Refuses a book, or a named identity, that others can change, or adds to `warnings`.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Output`].
pub fn add_peer(peer: NewPeer, warnings: &mut Vec<String>) -> Result<()> {
    let NewPeer { name, fingerprint, address, identity, book, force } = peer;
    name_is_good(&name)?;
    let fingerprint: Fingerprint = fingerprint
        .parse()
        .map_err(|e| Error::usage(format!("the second argument is not a fingerprint: {e}")))?;
    address.as_deref().map_or(Ok(()), address_is_good)?;
    is_not_ours(fingerprint, identity.as_deref(), warnings)?;
    Book::change(book.as_deref(), true, warnings, |book| {
        add(book, &name, Entry { fingerprint, address }, force)
    })
}

/// Removes a peer from the address book. Refuses a book that others can change, or adds to `warnings`.
///
/// # Errors
/// [`Error::Usage`] and [`Error::Output`].
pub fn remove_peer(name: &str, book: Option<&Path>, warnings: &mut Vec<String>) -> Result<()> {
    Book::change(book, false, warnings, |book| match book.peers.remove(name) {
        Some(_) => Ok(()),
        None => Err(Error::usage(format!(
            "\"{}\": {}. {} shows them all",
            name.escape_debug(),
            book.unknown(name),
            to_type("peer list")
        ))),
    })
}

/// Adds a peer, or replaces it if `force` is set.
fn add(book: &mut Book, name: &str, new: Entry, force: bool) -> Result<()> {
    if let (Some(old), false) = (book.peers.get(name), force) {
        return Err(Error::usage(format!(
            "the address book{} already has \"{name}\": {}{}. Use {FORCE} to replace the entry, or \
             choose another name",
            book.shown(),
            old.fingerprint,
            old.address.as_ref().map(|a| format!(" at {a}")).unwrap_or_default()
        )));
    }
    let same = |(other, entry): &(&String, &Entry)| *other != name && entry.fingerprint == new.fingerprint;
    if let Some((other, _)) = book.peers.iter().find(same) {
        return Err(Error::usage(format!(
            "the address book{} already has this fingerprint, as \"{other}\". A peer has only one \
             name: use that one, or run {} first",
            book.shown(),
            to_type(format_args!("peer remove {other}"))
        )));
    }
    book.peers.insert(name.into(), new);
    Ok(())
}
