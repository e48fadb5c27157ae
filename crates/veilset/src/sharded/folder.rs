//! The folder of a job: the state that must not be lost when the job is interrupted.
//!
//! ```text
//! FOLDER/job         the agreement with which the job began, and the key of its shards; sealed
//! FOLDER/0000.shard  the result of a shard, one file for each complete shard; sealed
//! FOLDER/attempts    a line for each time that a shard was begun, in the clear, with a check
//! ```
//!
//! Sealed files are encrypted and authenticated under our identity. Such a file has a temporary name until it is complete and
//! synced to disk. Files with names other than these are never deleted. A shard's file contains the job and the number of the
//! shard, so exchanged files are refused. A changed file is refused too. A shard whose file is missing runs again.
//!
//! If a result shows, when it is opened, that the peer misbehaved, the error is kept in place of the result. The job goes on,
//! so that the peer does not see that we noticed. A peer that leaves when it has its result of a shard can ask for the same
//! shard again, with another set. So a shard is begun at most [`MOST_ATTEMPTS`] times.

use crate::artefact::sealed::{Kind, Reader, Writer};
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::json;
use crate::net::Identity;
use crate::operations::Learned;
use crate::places::{check_of, sync_parent};
use crate::rng::Prng;
use crate::secret::Secret;
use crate::sharded::learned;
use crate::spelling::{JOB, RESUME, setting};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, DirEntry, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// The maximum number of times that a shard is begun.
pub const MOST_ATTEMPTS: usize = 5;

static HEADED: Kind = Kind {
    name: "job",
    made_by: "`veilset`",
    damaged: Some("Delete the whole folder, and begin a new job on both sides"),
    format: 1,
    domain: "veilset 2026-11 job, key of all files",
    uses: None,
};
static SHARD: Kind = Kind {
    name: "result of a shard",
    made_by: "`veilset`",
    damaged: Some(concat!("Delete it, and go on with ", setting!(resume), ": the shard then runs again")),
    format: 1,
    domain: "veilset 2026-11 result of a shard, key of all files",
    uses: None,
};
/// The maximum length of the [`FolderHead`] in the file `job`, in bytes of JSON.
const LONGEST: usize = 1 << 20;
/// The names of the files that belong to no shard.
const HEAD: &str = "job";
const ATTEMPTS: &str = "attempts";
/// The beginning and the end of the temporary name of an incomplete file.
const PART: (&str, &str) = (".veilset-job-", ".part");

/// The state at the beginning of a job.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderHead {
    /// The id of the session in which the job began.
    pub session: [u8; 32],
    /// The key of the job's shards.
    pub key: [u8; 32],
    /// The number of the job's shards.
    pub shards: u32,
    /// The names of the protocol and the group.
    pub choice: (String, String),
    /// The names and values of the settings that must be the same when the job is resumed.
    pub same: Vec<(String, String)>,
    /// A digest of our set and payloads, with the positions of the items, under a key that is derived from our identity.
    pub set: [u8; 32],
    /// The size of the peer's set that it announced, and whether the set is padded.
    pub theirs: (u64, bool),
}

impl Drop for FolderHead {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

/// The shards that were begun, with an entry for each time.
#[derive(Default)]
pub struct Attempts(Mutex<Vec<u32>>);

impl Attempts {
    /// Records that a shard begins.
    ///
    /// # Errors
    /// [`Error::Refused`] if the shard was begun [`MOST_ATTEMPTS`] times before.
    pub fn add(&self, shard: u32) -> Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.iter().filter(|begun| **begun == shard).count();
        if before >= MOST_ATTEMPTS {
            return Err(Error::refused(format!(
                "shard {shard} was begun {before} times, and never ended on both sides. A peer that breaks off may have a \
                 result each time. Find out why, and begin a new job"
            )));
        }
        all.push(shard);
        Ok(())
    }
}

/// The folder of a job, locked against other runs if its file system has locks.
pub struct JobFolder {
    path: PathBuf,
    head: Option<FolderHead>,
    kept: Vec<bool>,
    attempts: Attempts,
    log: File,
    /// Whether opening it made the folder.
    made: bool,
}

/// If the job has not begun, removes the list of attempts, and the folder if it was made for this job.
impl Drop for JobFolder {
    fn drop(&mut self) {
        if !self.path.join(HEAD).exists() {
            let _ = std::fs::remove_file(self.path.join(ATTEMPTS));
            if self.made {
                let _ = std::fs::remove_dir(&self.path);
            }
        }
    }
}

impl JobFolder {
    /// Opens the folder of a new job, or, with `resume`, of a job that has begun, all of whose files are checked.
    ///
    /// # Errors
    /// [`Error::Usage`] for a new job in a folder that has a job or other files, for a folder without a job to resume, and for
    /// a folder that another run uses; [`Error::Input`] for files that cannot be read, were changed, or belong to another job,
    /// identity or version; [`Error::Output`] if the folder cannot be created or used.
    pub fn open(path: &Path, resume: bool, identity: &Identity) -> Result<JobFolder> {
        let place = path.display();
        let failed = |e: io::Error| unusable(path, &e);
        let usage = |what: String| Err(Error::usage(what));
        let state = path.join(HEAD);
        match (resume, state.exists()) {
            (true, false) => {
                return usage(format!(
                    "there is no job in {place} to go on with. Name its folder with {JOB}, or omit {RESUME}"
                ));
            }
            (false, true) => {
                return usage(format!(
                    "there is a job in {place} already. Go on with it with {RESUME}, or name another folder with {JOB}, or \
                     delete it"
                ));
            }
            _ => {}
        }
        let made = !path.exists();
        if made {
            let mut builder = DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(path).map_err(failed)?;
            sync_parent(path).map_err(failed)?;
        }
        if !resume {
            // A job that was killed before its head was complete leaves a list of attempts, and perhaps a part of the head.
            for entry in entries(path).map_err(failed)? {
                let name = entry.file_name();
                if !is_file(&entry) || !(name == ATTEMPTS || is_part(&name)) {
                    return usage(format!(
                        "{place} has other files ({}), and a job needs a folder of its own. Name another one with {JOB}",
                        name.display()
                    ));
                }
            }
            // An existing folder gets the mode of a new one.
            #[cfg(unix)]
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
                .map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(!resume);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let attempts = path.join(ATTEMPTS);
        let log = options.open(&attempts).map_err(failed)?;
        match log.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return usage(format!(
                    "the job in {place} is being run by another process. Wait for it, or stop it"
                ));
            }
            // The file system may have no locks.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        if !resume {
            if state.exists() {
                return usage(format!("a job has just begun in {place}. Name another folder with {JOB}"));
            }
            // These are the remains of a job that ended before its head was complete.
            log.set_len(0).map_err(failed)?;
            remove(path, is_part).map_err(failed)?;
            return Ok(JobFolder {
                path: path.into(),
                head: None,
                kept: Vec::new(),
                attempts: Attempts::default(),
                log,
                made,
            });
        }
        let head = read_head(&state, identity)?;
        let text = std::fs::read(&attempts).map_err(failed)?;
        // A flipped bit may have made the list invalid UTF-8.
        let text = String::from_utf8_lossy(&text);
        let damaged = |()| {
            let what = "it is not a list of the shards that were begun";
            Error::input(&attempts, what, "Find out who changed it. If nobody did, begin a new job")
        };
        let attempts =
            text.lines().filter_map(begun).collect::<std::result::Result<_, _>>().map_err(damaged)?;
        let attempts = Attempts(Mutex::new(attempts));
        let mut folder = JobFolder { path: path.into(), head: None, kept: Vec::new(), attempts, log, made };
        for shard in 0..head.shards {
            let there = folder.file(shard).exists();
            if there {
                // An error about the peer in place of a result is reported only when the job is complete.
                let _checked = read_shard(&folder.file(shard), &head.session, shard, identity)?;
            }
            folder.kept.push(there);
        }
        folder.head = Some(head);
        Ok(folder)
    }

    /// The state at the beginning of the job that the folder had when it was opened; `None` for a new job.
    pub fn head(&self) -> Option<&FolderHead> {
        self.head.as_ref()
    }

    /// For each shard, whether its result was in the folder when this was opened; empty for a new job.
    pub fn kept(&self) -> &[bool] {
        &self.kept
    }

    /// Writes the state at the beginning of the job.
    ///
    /// # Errors
    /// [`Error::Output`] if it cannot be written.
    pub fn begin(&self, head: &FolderHead, identity: &Identity, rng: &mut Prng) -> Result<()> {
        let json = secret_json("a job", head, LONGEST)?;
        self.write(&self.path.join(HEAD), &HEADED, identity, rng, |to| {
            to.write(&(json.len() as u32).to_le_bytes())?;
            to.write(&json)
        })
    }

    /// Records that a shard begins, and syncs this to disk.
    ///
    /// # Errors
    /// [`Error::Refused`] if the shard was begun [`MOST_ATTEMPTS`] times before; [`Error::Output`] if it cannot be recorded.
    pub fn attempt(&self, shard: u32) -> Result<()> {
        self.attempts.add(shard)?;
        // Begins with a line end, because the previous line may have been cut off.
        let mut log = &self.log;
        let written = log.write_all(format!("\n{}\n", line(shard)).as_bytes()).and_then(|()| log.sync_all());
        written.map_err(|e| unusable(&self.path, &e))
    }

    /// Keeps the result of a shard, or the error about the peer in place of it. `session` is the session in which the job
    /// began.
    ///
    /// # Errors
    /// [`Error::Output`] if it cannot be written; the errors of [`learned::write`].
    pub fn keep(
        &self,
        session: &SessionId,
        shard: u32,
        learned: Result<Learned>,
        identity: &Identity,
        rng: &mut Prng,
    ) -> Result<()> {
        self.write(&self.file(shard), &SHARD, identity, rng, |to| {
            to.write(session.as_bytes())?;
            to.write(&shard.to_le_bytes())?;
            learned::write(learned, &mut |bytes| to.write(bytes))
        })
    }

    /// Returns the result of a shard. `session` is the session in which the job began.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no result, or it was changed or belongs to another shard or job; [`Error::Peer`] if an
    /// error about the peer was kept in its place.
    pub fn take(&self, session: &SessionId, shard: u32, identity: &Identity) -> Result<Learned> {
        read_shard(&self.file(shard), session.as_bytes(), shard, identity)?
    }

    /// The files that a complete job with this number of shards leaves.
    pub fn leftover(&self, shards: u32) -> Leftover {
        Leftover { path: self.path.clone(), shards }
    }

    fn file(&self, shard: u32) -> PathBuf {
        self.path.join(shard_name(shard))
    }

    /// Writes a sealed file. It gets its name when it is complete and synced to disk.
    fn write(
        &self,
        path: &Path,
        kind: &'static Kind,
        identity: &Identity,
        rng: &mut Prng,
        contents: impl FnOnce(&mut Writer<'_>) -> Result<()>,
    ) -> Result<()> {
        let failed = |e: io::Error| unusable(&self.path, &e);
        let new = tempfile::Builder::new().prefix(PART.0).suffix(PART.1).tempfile_in(&self.path);
        let new = new.map_err(failed)?;
        let mut to = io::BufWriter::new(new.as_file());
        let mut sealed = Writer::new(&mut to, kind, identity, rng)?;
        contents(&mut sealed)?;
        sealed.end()?;
        to.flush().map_err(failed)?;
        drop(to);
        new.as_file().sync_all().map_err(failed)?;
        new.persist(path).map_err(|e| failed(e.error))?;
        sync_parent(path).map_err(failed)
    }
}

/// The remaining files of a complete job, to be deleted once its result is written.
#[derive(Debug)]
pub struct Leftover {
    path: PathBuf,
    shards: u32,
}

impl Leftover {
    /// Deletes the files that the job made. If the folder is then empty and its path is not a link, deletes the folder too.
    /// Otherwise returns a message about what is left.
    ///
    /// # Errors
    /// [`Error::Output`] if the files or the folder cannot be deleted.
    pub fn delete(self) -> Result<Option<String>> {
        let (path, place) = (&self.path, self.path.display());
        let ours: BTreeSet<OsString> = (0..self.shards).map(|shard| shard_name(shard).into()).collect();
        // Because of this order, an interrupted deletion leaves a job that can be resumed, or no job.
        let removed = remove(path, |name| ours.contains(name) || is_part(name))
            .and_then(|()| remove(path, |name| name == HEAD))
            .and_then(|()| remove(path, |name| name == ATTEMPTS))
            .and_then(|()| entries(path));
        let failed = |e: io::Error| {
            Error::output(format!("the folder of the job, {place}, could not be deleted: {e}. Delete it"))
                .because(&e)
        };
        let left: Vec<String> =
            removed.map_err(failed)?.iter().map(|entry| entry.file_name().display().to_string()).collect();
        // With a trailing slash, a link would be taken for the folder.
        let link = path.components().as_path().is_symlink();
        match (&left[..], link) {
            ([], false) => std::fs::remove_dir(path).map_err(failed).map(|()| None),
            ([], true) => {
                Ok(Some(format!("the folder of the job, {place}, is left, because this is a link to it")))
            }
            (left, _) => {
                let (some, more) = (left[..left.len().min(5)].join(", "), left.len().saturating_sub(5));
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                Ok(Some(format!(
                    "the folder of the job, {place}, is left, because the job did not make all that is in it: {some}{more}"
                )))
            }
        }
    }
}

/// The line, without its line end, that records that a shard begins. All lines have the same length.
fn line(shard: u32) -> String {
    let shard = format!("{shard:05}");
    format!("{shard} {}", check_of(shard.as_bytes()))
}

/// Reads the shard in such a line. Returns `None` for an empty line, and for a line that was cut off: its shard had not begun.
fn begun(text: &str) -> Option<std::result::Result<u32, ()>> {
    let shard = text.get(..5).and_then(|shard| shard.parse().ok());
    match shard.filter(|&shard| line(shard) == text) {
        Some(shard) => Some(Ok(shard)),
        None if text.len() < line(0).len() => None,
        None => Some(Err(())),
    }
}

fn shard_name(shard: u32) -> String {
    format!("{shard:04}.shard")
}

/// Whether this is the name of an incomplete file.
fn is_part(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PART.0.as_bytes()) && name.ends_with(PART.1.as_bytes())
}

/// Whether the entry is a regular file. A link is not, because it may lead to another user's file.
fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|of| of.is_file())
}

/// The entries of a folder, ordered by name.
fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let mut all = folder.read_dir()?.collect::<io::Result<Vec<_>>>()?;
    all.sort_by_key(DirEntry::file_name);
    Ok(all)
}

/// Deletes the regular files whose names are `ours` from a folder.
fn remove(folder: &Path, ours: impl Fn(&OsStr) -> bool) -> io::Result<()> {
    let all = entries(folder)?;
    let mut ours = all.iter().filter(|entry| is_file(entry) && ours(&entry.file_name()));
    ours.try_for_each(|entry| std::fs::remove_file(entry.path()))
}

fn read_head(path: &Path, identity: &Identity) -> Result<FolderHead> {
    let mut from = Reader::open(path, &HEADED, identity)?;
    let length = u32::from_le_bytes(from.array()?) as usize;
    if length > LONGEST {
        return Err(from.damaged());
    }
    let mut json = Zeroizing::new(vec![0; length]);
    from.read(&mut json)?;
    let head: FolderHead = serde_json::from_slice(&json).map_err(|_| from.damaged())?;
    from.end()?;
    Ok(head)
}

fn read_shard(path: &Path, session: &[u8; 32], shard: u32, identity: &Identity) -> Result<Result<Learned>> {
    let mut from = Reader::open(path, &SHARD, identity)?;
    let of = (from.array::<32>()?, u32::from_le_bytes(from.array()?));
    if of != (*session, shard) {
        let what = format!("it is the result of another shard or job, not of shard {shard} of this one");
        return Err(Error::input(path, what, "Delete it: the shard then runs again"));
    }
    let learned = learned::read(&mut |to| from.read(to))?.ok_or_else(|| from.damaged())?;
    from.end()?;
    Ok(learned)
}

/// Returns a value with secrets as JSON. `room` must be enough bytes for it, because a list that grows leaves copies. `what` is
/// the name of the value in messages.
pub(super) fn secret_json(what: &str, value: &impl Serialize, room: usize) -> Result<Secret<Vec<u8>>> {
    let mut json = Vec::with_capacity(room);
    json::made(what, serde_json::to_writer(&mut json, value))?;
    Ok(Secret::new(json))
}

fn unusable(path: &Path, e: &io::Error) -> Error {
    Error::output(format!(
        "the folder of the job, {}, cannot be used: {e}. Free disk space, or name another folder with {JOB}",
        path.display()
    ))
    .because(e)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
