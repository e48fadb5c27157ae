//! The audit log: one line of JSON when a run starts, one when it ends, so that those who answer for the data
//! see later with whom it was used, and a repeated run is noticed.
//!
//! Nothing of the data is in it. Our set stands there as a digest under a key that comes from our identity: who
//! reads the log without the identity can test no guesses against it. What a run started counts, even if it
//! failed: a peer that breaks off may have its result.

use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::net::{Fingerprint, Identity};
use crate::places::private_parent;
use crate::secret::Secret;
use crate::session::Proposal;
use crate::session::report::{name_of, rfc3339};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Longer than any line; what is longer is not one of ours.
const LONGEST_LINE: u64 = 1 << 16;
/// How often a log may be replaced while we wait for its lock.
const ROTATIONS: usize = 8;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When, by this machine's clock: RFC 3339, UTC.
    pub time: String,
    /// The session's name, the same on both sides.
    pub session: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// A run starts: nothing but the sizes was said about the data so far.
    Start(Run),
    /// Our side allowed a check: both agreed on the terms, and nothing more was asked for.
    Check(Run),
    /// Our side did not allow it; the peer knows the sizes.
    Refused(Run),
    /// Our side did not refuse it: the peer did, or it broke the protocol, or the connection ended. The peer may know
    /// our size.
    Declined(Run),
    /// A run ended.
    End(End),
}

/// What is to be run, with whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// intersect, union, count or sum.
    pub operation: String,
    /// How it is computed.
    pub protocol: String,
    /// Our part.
    pub role: String,
    /// The peer's fingerprint; none on a connection without protection.
    pub peer: Option<String>,
    /// The peer's name in our address book.
    pub peer_name: Option<String>,
    /// Our own fingerprint.
    pub our: Option<String>,
    /// Items of our set.
    pub items: usize,
    /// Items of the peer's; 0 as well if the run ended before it said so.
    pub peer_items: usize,
    /// Everything both agreed on, by the keys of the terms; in old logs by their words.
    pub terms: BTreeMap<String, String>,
    /// Our set's digest; none without an identity, whose key it is under.
    pub set: Option<String>,
    /// The digest of our set with its values, for the sender of sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// Whether our offline half was prepared before: it is spent when the run starts.
    #[serde(default)]
    pub prepared: bool,
    /// veilset's version.
    pub version: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// "done", or whose fault it is that it was not: "peer", "network", ...
    pub outcome: String,
    /// What another party did, if it was one: "misbehaved" or "gave-up". Old logs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What this party learned, in numbers, as in the report.
    pub result: serde_json::Value,
    /// On the wire, sent and received; none if the run failed.
    pub bytes: Option<(u64, u64)>,
    /// From the connection to the end.
    pub seconds: f64,
}

impl Entry {
    /// Something that happens now.
    pub fn now(session_id: &SessionId, event: Event) -> Entry {
        Entry { time: rfc3339(SystemTime::now()), session: name_of(session_id), event }
    }
}

impl Run {
    /// What is proposed, and whether our offline half is `prepared`. `set` is our set's [`digest`], and `values` that of
    /// the set with its values.
    pub fn new(
        proposal: &Proposal,
        our: Option<Fingerprint>,
        peer_name: Option<&str>,
        set: Option<&str>,
        values: Option<&str>,
        prepared: bool,
    ) -> Run {
        let hello = &proposal.hello;
        Run {
            operation: hello.operation.name.into(),
            protocol: proposal.choice.protocol.name.into(),
            role: hello.role.name().into(),
            peer: proposal.peer.map(|f| f.to_string()),
            peer_name: peer_name.map(Into::into),
            our: our.map(|f| f.to_string()),
            items: proposal.our_size,
            peer_items: proposal.their_size,
            terms: proposal.terms().into_iter().map(|term| (term.key.to_string(), term.value)).collect(),
            set: set.map(Into::into),
            values: values.map(Into::into),
            prepared,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// A digest of a set and the values that go with it, whatever their order, under a key that only `identity` has.
pub fn digest(identity: &Identity, set: &ItemSet, values: &[i128]) -> String {
    digest_under(&identity.secret_for("veilset 2026-11 audit log, digest of a set"), set, values)
}

fn digest_under(key: &Secret<[u8; 32]>, set: &ItemSet, values: &[i128]) -> String {
    // The sum of a pseudorandom number for each item: no order, and no sorting. Two sets with the same sum are
    // found by chance only, with 2^64 sets at the least.
    let number = |i: usize| {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(&(set.get(i).len() as u64).to_le_bytes());
        hasher.update(set.get(i));
        if let Some(value) = values.get(i) {
            hasher.update(&value.to_le_bytes());
        }
        let hash = *hasher.finalize().as_bytes();
        std::array::from_fn::<u64, 4, _>(|at| u64::from_le_bytes(std::array::from_fn(|i| hash[8 * at + i])))
    };
    let add = |a: [u64; 4], b: [u64; 4]| -> [u64; 4] { std::array::from_fn(|at| a[at].wrapping_add(b[at])) };
    let sum = (0..set.len()).into_par_iter().map(number).reduce(|| [0; 4], add);
    let mut all = blake3::Hasher::new_keyed(key);
    all.update(&(set.len() as u64).to_le_bytes());
    for part in sum {
        all.update(&part.to_le_bytes());
    }
    all.finalize().to_hex().to_string()
}

/// What the log says about earlier runs with the peer of the one proposed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// How many started.
    pub runs: usize,
    /// The last of them, compared with the one proposed.
    pub last: Option<Earlier>,
    /// Whether one of them was with our very set and a set of the peer of this size. Once values were sent along, only
    /// runs with the same values make another one with values known.
    pub known: bool,
    /// How many of them had no digest of our set, nor has the one proposed, and had its sizes.
    pub undigested: usize,
    /// Lines that are not entries, by number, from 1.
    pub foreign: Vec<usize>,
}

/// An earlier run, compared with the one proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// When it started.
    pub time: String,
    /// What was computed.
    pub operation: String,
    /// Whether our set was another one; none if that cannot be told, because it has no digest under the same key.
    pub our_set_differs: Option<bool>,
    /// Whether the number of items of the peer was another one.
    pub their_size_differs: bool,
}

impl History {
    /// Whether this run and an earlier one together may say more than either, as far as the log shows: there is an
    /// earlier one, and none was with our very set and a set of the peer of this size.
    pub fn changed(&self) -> bool {
        self.runs > 0 && !self.known
    }

    /// Whether nobody was told yet. Where there are no digests every run may be with another set; that is said of the
    /// second run with the same sizes and not again.
    pub fn is_news(&self) -> bool {
        self.changed() && self.undigested < 2
    }

    /// What the runs together tell, in a sentence, if the sets changed.
    pub fn warning(&self, peer: &str) -> Option<String> {
        let last = self.last.as_ref().filter(|_| self.changed())?;
        // The last run is not one of those with this very set and size: it differs in one of them.
        let what = match (last.our_set_differs, last.their_size_differs) {
            (Some(true), true) => "both sets have changed",
            (Some(true), false) => "our set has changed",
            (Some(false), _) => "the peer's set has changed in size",
            (None, true) => "the peer's set has changed in size, and perhaps ours,",
            (None, false) => "our set may have changed",
        };
        Some(format!(
            "this is run {} with {peer}, and {what} since the last one ({} of {}): the difference between two results \
             shows what a change did, down to single items (README, \"Audit log\", says what counts)",
            self.runs + 1,
            last.operation,
            last.time
        ))
    }
}

/// A log file, open to append to.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    file: File,
}

impl AuditLog {
    /// Opens the log, or makes it, readable by its owner only.
    ///
    /// # Errors
    /// [`Error::Output`]: without a log no run is to start.
    pub fn open(path: &Path) -> Result<AuditLog> {
        let unusable = |e| unusable(path, &e);
        private_parent(path).map_err(unusable)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(unusable)?;
        match file.metadata().map_err(unusable)?.is_file() {
            true => Ok(AuditLog { path: path.into(), file }),
            false => Err(unusable(io::Error::other("it is not a regular file"))),
        }
    }

    /// Appends a line; it is on the disk when this returns.
    pub fn append(&self, entry: &Entry) -> Result<()> {
        let mut line = serde_json::to_string(entry)
            .map_err(|e| Error::Bug(format!("an audit entry is not JSON: {e}")))?;
        line.push('\n');
        let mut write = || {
            if !self.ends_a_line()? {
                // A process was cut off: what it wrote stays a line of its own.
                line.insert(0, '\n');
            }
            (&self.file).write_all(line.as_bytes())?;
            self.file.sync_all()
        };
        write().map_err(|e| unusable(&self.path, &e))
    }

    /// Looks at the history and, if `allowed` by it, appends a line; no other process does so meanwhile.
    ///
    /// Where a file system has no locks, `allowed` is told why.
    ///
    /// If another file has taken the log's name since it was opened (it was rotated, say), that one is the log from now
    /// on: other processes look there.
    pub fn append_if(
        &mut self,
        entry: &Entry,
        allowed: impl FnOnce(&AuditLog, Option<&io::Error>) -> Result<()>,
    ) -> Result<()> {
        let locked = self.lock()?;
        let done = allowed(self, locked.as_ref().err()).and_then(|()| self.append(entry));
        if locked.is_ok() {
            // Closing the file would end it too.
            let _ = self.file.unlock();
        }
        done
    }

    /// Locks the file that has the log's name. The inner error is that of a file system without locks.
    fn lock(&mut self) -> Result<io::Result<()>> {
        for _ in 0..ROTATIONS {
            let locked = self.file.lock();
            // It may have been renamed while we waited.
            if self.has_its_name() {
                return Ok(locked);
            }
            *self = AuditLog::open(&self.path)?;
        }
        Err(unusable(&self.path, &io::Error::other("it is replaced again and again")))
    }

    #[cfg(unix)]
    fn has_its_name(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let file = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::metadata(&self.path).map(file).ok();
        named.is_some() && named == self.file.metadata().map(file).ok()
    }

    /// A file that is open cannot be renamed.
    #[cfg(not(unix))]
    fn has_its_name(&self) -> bool {
        true
    }

    fn ends_a_line(&self) -> io::Result<bool> {
        let mut file = &self.file;
        if file.seek(SeekFrom::End(0))? == 0 {
            return Ok(true);
        }
        let mut last = [0u8];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok(last == *b"\n")
    }

    /// What the log says about earlier runs with the same peer, of any operation: a union shows the same
    /// difference as an intersection.
    pub fn history(&self, run: &Run) -> Result<History> {
        let unusable = |e| unusable(&self.path, &e);
        (&self.file).seek(SeekFrom::Start(0)).map_err(unusable)?;
        let mut lines = BufReader::new(&self.file);
        let mut history = History::default();
        // The last run with values, and whether one had ours: a count with our set shows nothing of values.
        let (mut valued, mut known_values) = (None, false);
        for number in 1.. {
            let mut line = Vec::new();
            let read = lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(unusable)?;
            if read == 0 {
                break;
            }
            if read as u64 == LONGEST_LINE {
                lines.skip_until(b'\n').map_err(unusable)?;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice::<Entry>(&line) {
                Err(_) => history.foreign.push(number),
                Ok(Entry { time, event: Event::Start(earlier), .. }) if earlier.peer == run.peer => {
                    history.runs += 1;
                    let digests = (earlier.set.as_ref(), run.set.as_ref());
                    let same_key = earlier.our == run.our && matches!(digests, (Some(_), Some(_)));
                    let values = (earlier.values.as_ref(), run.values.as_ref());
                    let other_values = matches!(values, (Some(a), Some(b)) if a != b);
                    let other_items = earlier.items != run.items;
                    let our_set_differs = match same_key {
                        true => Some(earlier.set != run.set || other_values),
                        // Another number of items is another set.
                        false => other_items.then_some(true),
                    };
                    let their_size_differs = earlier.peer_items != run.peer_items;
                    let known = our_set_differs == Some(false) && !their_size_differs;
                    history.known |= known;
                    let undigested = digests == (None, None) && !other_items && !their_size_differs;
                    history.undigested += usize::from(undigested);
                    let operation = earlier.operation;
                    let this = Earlier { time, operation, our_set_differs, their_size_differs };
                    if same_key && matches!(values, (Some(_), Some(_))) {
                        known_values |= known;
                        valued = Some(this.clone());
                    }
                    history.last = Some(this);
                }
                Ok(_) => {}
            }
        }
        if history.known && !known_values && valued.is_some() {
            // The set is known and its values are not: they differ from those of the last run that had any.
            (history.known, history.last) = (false, valued);
        }
        Ok(history)
    }
}

fn unusable(path: &Path, e: &io::Error) -> Error {
    Error::Output(format!(
        "the audit log {} cannot be used: {e}. No run starts without it: make room, name another file with \
         `audit_log=FILE`, or have none with `audit_log=none`",
        path.display()
    ))
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
