//! The audit log: one line of JSON when a run starts, and one when it ends. A check has one line, and so has a run that ends
//! before it starts, if the peer may know our size. The log shows those responsible for the data with whom it was used, and
//! makes repeated runs noticeable.
//!
//! Of the data, the log contains only sizes and the numbers that we learned. Our set appears as a digest under a key derived
//! from our identity, so a reader without the identity cannot test guesses against it. A run counts once it has started, even
//! if it failed: a peer that breaks off may have its result.
//!
//! Each line ends with a `check` of the text before it. A line whose check is wrong, because the disk or someone changed it,
//! does not count as an entry. Lines without a check, as of earlier versions, count. The check has no key: it shows neither
//! that lines were deleted, nor a change by someone who removes the check or computes it anew.

use crate::error::{Error, Result, Seat};
use crate::hash::{ItemHash, SessionId};
use crate::item::Items;
use crate::json;
use crate::net::{Fingerprint, Identity};
use crate::operations::{self, Role};
use crate::places::{Line, PATIENCE, PAUSE, append_line, private_parent, without_check};
use crate::planner::Choices;
use crate::protocols::{self, Attachment, Protocol};
use crate::secret::Secret;
use crate::session::report::{name_of, rfc3339};
use crate::session::{Party, Proposal};
use crate::sharded::set::Set;
use crate::spelling::{AUDIT_LOG, command};
use crate::threads::Threads;
use crate::trusted::{self, Whose};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// Maximum length of a line in bytes, longer than any that we write.
const LONGEST_LINE: u64 = 1 << 16;
/// How often a log may be replaced while we wait for its lock.
const ROTATIONS: usize = 8;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The time of the event on this machine's clock: RFC 3339, UTC.
    pub time: String,
    /// The session's id, the same for all parties.
    pub session: String,
    /// The recorded event.
    #[serde(flatten)]
    pub event: Event,
}

/// The event that a line records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event {
    /// A run starts. So far the parties know only the terms, and the sizes of the sets.
    Start(Run),
    /// A job that started before is resumed, under the same session's id. Together with its start it counts as one run.
    Resume(Run),
    /// Our side allowed a check: both sides agreed on the terms, and did nothing more.
    Check(Run),
    /// Our side refused the run, or could not log its start. The peer may know our size.
    Refused(Run),
    /// The run did not start, but our side did not refuse it: the peer did, or it broke the protocol, the connection ended,
    /// or our side was stopped. The peer may know our size.
    Declined(Run),
    /// A run ended.
    End(End),
}

/// The facts about a run, including its other parties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// The operation's name, for instance `intersect`.
    pub operation: String,
    /// The protocol that computes it.
    pub protocol: String,
    /// Our role.
    pub role: String,
    /// The other parties.
    #[serde(flatten, serialize_with = "write_parties", deserialize_with = "read_parties")]
    pub parties: Vec<Participant>,
    /// Our own fingerprint.
    pub our: Option<String>,
    /// Size of our set, as announced.
    pub items: usize,
    /// The protocols, with their groups, that our side and the others allowed. Absent in old logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
    /// The reason for picking this protocol, if it was picked among several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether another party learns something about our rows although its set is small, because our side allowed that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_small: bool,
    /// Whether the run had to match an earlier check.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checked: bool,
    /// All agreed terms, by key; in old logs by description.
    pub terms: BTreeMap<String, String>,
    /// The digest of our set; `None` without an identity, from which its key is derived.
    pub set: Option<String>,
    /// The digest of our set with its values, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// Whether our offline half was prepared in advance. It is spent when the run starts.
    #[serde(default)]
    pub prepared: bool,
    /// veilset's version.
    pub version: String,
}

/// The ways to compute an operation that each side allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Allowed {
    /// The ways that our side allowed, in its order.
    pub ours: Vec<String>,
    /// The ways that the peer allowed, in its order; in a run of several, those that all parties allowed.
    pub theirs: Vec<String>,
}

/// Another party of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Participant {
    /// The party's seat in the run.
    #[serde(rename = "party", with = "super::as_number", default = "super::as_number::peer")]
    pub seat: Seat,
    /// The party's fingerprint; `None` on an unprotected connection.
    pub peer: Option<String>,
    /// The party's name in the list of the parties, or in a run without a list in our address book.
    #[serde(rename = "peer_name")]
    pub name: Option<String>,
    /// Size of the party's set, as announced; also 0 if the run ended before it announced one.
    #[serde(rename = "peer_items")]
    pub items: usize,
}

/// The other parties as written in a line. In a run of two the peer's fields are fields of the line; a larger run has a
/// list. A line with neither is not an entry. So a program that does not know the list does not read such a line as a
/// run without other parties.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Others {
    Peer { peer: Option<String>, peer_name: Option<String>, peer_items: usize },
    Parties { parties: Vec<Participant> },
}

fn write_parties<S: Serializer>(parties: &[Participant], to: S) -> Result<S::Ok, S::Error> {
    let others = match parties {
        [Participant { seat: Seat::PEER, peer, name, items }] => {
            Others::Peer { peer: peer.clone(), peer_name: name.clone(), peer_items: *items }
        }
        several => Others::Parties { parties: several.to_vec() },
    };
    others.serialize(to)
}

fn read_parties<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Participant>, D::Error> {
    match Others::deserialize(from)? {
        Others::Peer { peer, peer_name, peer_items } => {
            Ok(vec![Participant { seat: Seat::PEER, peer, name: peer_name, items: peer_items }])
        }
        Others::Parties { parties } if parties.is_empty() => Err(de::Error::custom("no other parties")),
        Others::Parties { parties } => Ok(parties),
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct End {
    /// `done`, or the kind of the error: `peer`, `network`, ...
    pub outcome: String,
    /// The fault of another party, if the error is about one: `misbehaved` or `gave-up`. Absent in old logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The number of the party at fault, in a run of three or more, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party: Option<NonZeroU8>,
    /// The numbers that we learned, as in the report.
    pub result: serde_json::Value,
    /// Bytes sent and received on the wire; `None` if the run failed.
    pub bytes: Option<(u64, u64)>,
    /// Seconds from the connection to the end.
    pub seconds: f64,
}

impl Entry {
    /// Returns an entry for an event that happens now.
    pub fn now(session_id: &SessionId, event: Event) -> Entry {
        Entry { time: rfc3339(SystemTime::now()), session: name_of(session_id), event }
    }
}

impl Run {
    /// Describes a proposed run. `set` is the [`digest`] of our set, `values` the digest of the set with its values, and
    /// `prepared` tells whether our offline half was prepared in advance.
    pub fn new(
        proposal: &Proposal,
        our: Option<Fingerprint>,
        set: Option<&str>,
        values: Option<&str>,
        prepared: bool,
    ) -> Run {
        let hello = &proposal.hello;
        Run {
            operation: hello.spec.operation.name.into(),
            protocol: proposal.choice.protocol.name.into(),
            role: hello.spec.role.name().into(),
            parties: proposal.parties.iter().map(Participant::of).collect(),
            our: our.map(|f| f.to_string()),
            items: proposal.ours.size,
            allowed: Some(Allowed { ours: names(&hello.spec.candidates), theirs: names(&proposal.theirs) }),
            why: proposal.why.clone(),
            allow_small: false,
            checked: false,
            terms: proposal.terms().into_iter().map(|term| (term.key.to_string(), term.value)).collect(),
            set: set.map(Into::into),
            values: values.map(Into::into),
            prepared,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Whether the run counts as one in which we answer to the peer's filter: by a protocol that uses filters, as the sender,
    /// and as the receiver if both get the result.
    pub fn answers_to_filter(&self) -> bool {
        let offer = |protocol: &Protocol| {
            let operation = operations::ALL.into_iter().find(|operation| operation.name == self.operation);
            operation.and_then(|operation| protocol.offer(operation))
        };
        let filters = protocols::named(&self.protocol)
            .ok()
            .and_then(offer)
            .is_some_and(|offer| offer.takes_with(Attachment::Filter));
        let both = self.terms.get("output").is_some_and(|output| output == "both");
        filters && (self.role == Role::Sender.name() || both)
    }

    /// A description of the other parties.
    pub(super) fn others(&self) -> String {
        let called: Vec<&str> = self.parties.iter().map(Participant::called).collect();
        if called.len() > 1 { format!("one of {}", called.join(", ")) } else { called.concat() }
    }

    /// Whether the two runs have a party other than us in common. Names are ignored, since the address book may change. All
    /// parties on unprotected connections count as one.
    fn shares_a_party_with(&self, other: &Run) -> bool {
        self.parties.iter().any(|here| other.parties.iter().any(|there| here.peer == there.peer))
    }

    /// Compares the other parties and the sizes of their sets with an earlier run.
    fn theirs_since(&self, earlier: &Run) -> Theirs {
        let sorted = |run: &Run| {
            let mut parties: Vec<_> = run.parties.iter().map(|p| (p.peer.clone(), p.items, p.seat)).collect();
            parties.sort_unstable();
            parties
        };
        let (now, then) = (sorted(self), sorted(earlier));
        if !now.iter().map(|party| &party.0).eq(then.iter().map(|party| &party.0)) {
            return Theirs::OtherParties;
        }
        match now.iter().zip(&then).find(|(now, then)| now.1 != then.1) {
            Some((party, _)) => Theirs::OtherSize(party.2),
            None => Theirs::Same,
        }
    }
}

fn names(choices: &Choices) -> Vec<String> {
    choices.iter().map(|choice| choice.to_string()).collect()
}

impl Participant {
    fn of(party: &Party) -> Participant {
        Participant {
            seat: party.seat,
            peer: party.fingerprint.map(|f| f.to_string()),
            name: party.name.clone(),
            items: party.announced.size,
        }
    }

    /// The party's name, or else its fingerprint if it has one.
    fn called(&self) -> &str {
        self.name.as_deref().or(self.peer.as_deref()).unwrap_or("somebody without TLS")
    }
}

/// Returns a digest of a set and its values, independent of the order of the items, under a key derived from `identity`.
///
/// # Errors
/// [`Error::Output`] if the set is on disk and cannot be read.
pub fn digest(identity: &Identity, set: Set<'_>, values: &[i128], threads: &Threads) -> Result<String> {
    digest_under(&digest_key(identity), set, values, threads)
}

/// The key of the [`digest`] of a set. It reveals nothing about the identity.
pub fn digest_key(identity: &Identity) -> Secret<[u8; 32]> {
    identity.secret_for("veilset 2026-11 audit log, digest of a set")
}

fn digest_under(key: &Secret<[u8; 32]>, set: Set<'_>, values: &[i128], threads: &Threads) -> Result<String> {
    // The sum of one pseudorandom number per item, which is independent of the order without sorting. Two sets with the same
    // sum are found only by chance, after at least 2^64 sets.
    let message = |i: u32, hash: &ItemHash, _: &[u8], to: &mut Vec<u8>| {
        to.extend_from_slice(hash);
        if let Some(value) = values.get(i as usize) {
            to.extend_from_slice(&value.to_le_bytes());
        }
    };
    Ok(set.digest(const { &Items::new() }, threads, key, message)?.to_hex().to_string())
}

/// The earlier runs in the log that have a party in common with the proposed one. That party can compare its results of both,
/// and so can we.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct History {
    /// The number of earlier runs with a common party that started.
    pub runs: usize,
    /// The last run with a common party, compared with the proposed one. If our set is [`History::known`] except for its
    /// values, the last such run whose values can be compared with ours.
    pub last: Option<Earlier>,
    /// Whether an earlier run had the same set of ours, and the same other parties with sets of the same sizes. If the proposed
    /// run has values, and earlier ones also had some, one of them must also have had the same values.
    pub known: bool,
    /// The number of runs with the same parties and sizes but no digest of our set, if the proposed run has none either.
    pub undigested: usize,
    /// Numbers of the lines that are not entries, counted from 1.
    pub foreign: Vec<usize>,
}

/// An earlier run, compared with the proposed one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Earlier {
    /// The time when it started.
    pub time: String,
    /// The operation that it computed.
    pub operation: String,
    /// Whether our set was different, or its values if both runs have some. `None` if unknown: the number of items is the same,
    /// but the digests are missing or under different keys.
    pub our_set_differs: Option<bool>,
    /// Whether the other parties, or the sizes of their sets, were different.
    pub theirs: Theirs,
}

/// The other parties of a run and the sizes of their sets, compared with an earlier run.
///
/// A party that joined or left counts as a change, whatever the sizes of the other sets: its whole set was added to the
/// computation or removed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Theirs {
    /// The same parties with sets of the same sizes. We cannot know whether they are the same sets.
    Same,
    /// The same parties, but the set of this one has a different size. The seat is the party's in the later run. Other sets may
    /// have changed in size too.
    OtherSize(Seat),
    /// The parties are different.
    OtherParties,
}

impl History {
    /// Whether, according to the log, this run and an earlier one together may reveal more than either alone. This is so if
    /// there are earlier runs, and none of them makes this one [`History::known`].
    pub fn changed(&self) -> bool {
        self.runs > 0 && !self.known
    }

    /// Whether the change is worth a new warning. Without digests, our set may have been different in any run; only the first
    /// two runs with the same parties and sizes can get the warning.
    pub fn is_news(&self) -> bool {
        self.changed() && self.undigested < 2
    }

    /// A warning about what the runs together reveal, if [`History::changed`]. `others` describes the other parties.
    pub fn warning(&self, others: &str) -> Option<String> {
        let last = self.last.as_ref().filter(|_| self.changed())?;
        let what: String = match (last.our_set_differs, last.theirs) {
            (Some(true), Theirs::OtherSize(Seat::PEER)) => "both sets have changed".into(),
            (Some(true), Theirs::OtherSize(seat)) => format!("our set and {seat}'s have changed"),
            (Some(true), Theirs::OtherParties) => "our set has changed and so have the parties".into(),
            (Some(true), Theirs::Same) => "our set has changed".into(),
            (Some(false), Theirs::OtherSize(seat)) => format!("{seat}'s set has changed in size"),
            (Some(false), Theirs::OtherParties) => "the parties have changed".into(),
            (None, Theirs::OtherSize(seat)) => format!("{seat}'s set has changed in size, and perhaps ours,"),
            (None, Theirs::OtherParties) => "the parties have changed, and perhaps our set,".into(),
            // No known difference, so our set is not known to be the same: otherwise the run would be a known one.
            (None | Some(false), Theirs::Same) => "our set may have changed".into(),
        };
        Some(format!(
            "this is run {} with {others}, and {what} since the last one ({} of {}). The difference between \
             two results shows the effect of a change, down to single items ({} \
             says what counts)",
            self.runs + 1,
            last.operation,
            last.time,
            command!("help policy-and-audit")
        ))
    }
}

/// A log file, open for appending.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    file: File,
}

impl AuditLog {
    /// Opens the log, or creates it, readable only by its owner.
    ///
    /// # Errors
    /// [`Error::Output`] if that fails, or it is not a regular file: no run may start without the log.
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

    /// A warning if other users can change the file, or if the file cannot be examined. They can hide earlier runs, so that the
    /// policy does not see them, and have runs refused because of runs that never were. They cannot allow what the policy
    /// forbids without regard to the log.
    pub(crate) fn warning(&self) -> Option<String> {
        trusted::check("the audit log", &self.path, Whose::Given, &self.file)
            .unwrap_or_else(|e| Some(e.to_string()))
    }

    /// Appends a line and syncs it to disk; on failure takes back what was written, if possible. The log is locked meanwhile,
    /// on a file system that has locks. After a rotation the line goes to the file that has the log's name, as with
    /// [`AuditLog::append_if`].
    ///
    /// # Errors
    /// [`Error::Output`] if that fails, or if another process holds the lock for too long.
    pub fn append(&self, entry: &Entry) -> Result<()> {
        let locked = self.locked()?;
        let done = match self.has_its_name() {
            true => self.write(entry),
            false => AuditLog::open(&self.path)?.append_if(entry, |_, _| Ok(())),
        };
        if locked.is_ok() {
            // Closing the file would release the lock too.
            let _ = self.file.unlock();
        }
        done
    }

    fn write(&self, entry: &Entry) -> Result<()> {
        let mut line = json::line("an audit entry", entry)? + "\n";
        let mut write = || {
            if !self.ends_a_line()? {
                // Another process stopped in the middle of a line: start a new one.
                line.insert(0, '\n');
            }
            append_line(&self.file, line.as_bytes())
        };
        write().map_err(|e| unusable(&self.path, &e))
    }

    /// Calls `allowed`, which may look at the history, and appends a line if it succeeds. The log is locked meanwhile.
    ///
    /// If the log could not be locked, for instance on a file system without locks, `allowed` receives the error. If another
    /// process holds the lock for too long, that is an error, and `allowed` is not called.
    ///
    /// On Unix, if the open file no longer has the log's name (after a rotation, say), this switches to the file that has it,
    /// where other processes look, or creates one.
    ///
    /// # Errors
    /// The error of `allowed`, and [`Error::Output`] if the log cannot be used.
    pub fn append_if(
        &mut self,
        entry: &Entry,
        allowed: impl FnOnce(&AuditLog, Option<&io::Error>) -> Result<()>,
    ) -> Result<()> {
        let locked = self.lock()?;
        let done = allowed(self, locked.as_ref().err()).and_then(|()| self.write(entry));
        if locked.is_ok() {
            let _ = self.file.unlock();
        }
        done
    }

    /// Locks the file that has the log's name. The inner error is about the lock, for instance on a file system without locks.
    fn lock(&mut self) -> Result<io::Result<()>> {
        for _ in 0..ROTATIONS {
            let locked = self.locked()?;
            // The file may have been renamed while we waited.
            if self.has_its_name() {
                return Ok(locked);
            }
            *self = AuditLog::open(&self.path)?;
        }
        Err(unusable(&self.path, &io::Error::other("it keeps being replaced")))
    }

    /// Locks the open file. The inner error is about the lock.
    fn locked(&self) -> Result<io::Result<()>> {
        let start = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(Ok(())),
                Err(TryLockError::Error(e)) => return Ok(Err(e)),
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::output(format!(
                        "the audit log {} has been locked by another process for {} seconds. Find out which process holds it, \
                         and run again",
                        self.path.display(),
                        PATIENCE.as_secs()
                    )));
                }
            }
        }
    }

    #[cfg(unix)]
    fn has_its_name(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let file = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::metadata(&self.path).map(file).ok();
        named.is_some() && named == self.file.metadata().map(file).ok()
    }

    /// Not checked on this system.
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

    /// Whether this run has started before under this id, with the same digest of our set or none both times, and the same
    /// parties with sets of the same sizes.
    ///
    /// # Errors
    /// [`Error::Output`] if the log cannot be read.
    pub fn has_start(&self, session: &SessionId, run: &Run) -> Result<bool> {
        let session = name_of(session);
        for line in self.lines()? {
            match line?.1 {
                Some(Entry { session: of, event: Event::Start(start), .. })
                    if of == session && start.set == run.set && run.theirs_since(&start) == Theirs::Same =>
                {
                    return Ok(true);
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// All non-empty lines: their numbers, from 1, and their entries, or `None` for a line that is not an entry.
    fn lines(&self) -> Result<impl Iterator<Item = Result<(usize, Option<Entry>)>>> {
        let failed = |e| unusable(&self.path, &e);
        (&self.file).seek(SeekFrom::Start(0)).map_err(failed)?;
        let (mut lines, mut number) = (BufReader::new(&self.file), 0);
        let mut next = move || {
            loop {
                let mut line = Vec::new();
                let read = lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
                if read == 0 {
                    return io::Result::Ok(None);
                }
                if read as u64 == LONGEST_LINE && line.last() != Some(&b'\n') {
                    lines.skip_until(b'\n')?;
                }
                number += 1;
                if !line.iter().all(u8::is_ascii_whitespace) {
                    return Ok(Some((number, entry_in(&line))));
                }
            }
        };
        Ok(std::iter::from_fn(move || next().map_err(failed).transpose()))
    }

    /// The number of runs in which we answered to a filter of one of these parties ([`Run::answers_to_filter`]). Also returns
    /// the number of the first line that is not an entry, which may hide such a run.
    ///
    /// # Errors
    /// [`Error::Output`] if the log cannot be read.
    pub fn filter_runs(&self, peers: &[Option<String>]) -> Result<(u64, Option<usize>)> {
        let (mut runs, mut foreign) = (0, None);
        for line in self.lines()? {
            match line? {
                (number, None) => foreign = foreign.or(Some(number)),
                (_, Some(Entry { event: Event::Start(run), .. })) => {
                    let with = run.parties.iter().any(|party| peers.contains(&party.peer));
                    runs += u64::from(with && run.answers_to_filter());
                }
                (_, Some(_)) => {}
            }
        }
        Ok((runs, foreign))
    }

    /// The earlier runs that have a party in common with this one. The operation does not matter: a union reveals the same
    /// difference as an intersection.
    pub fn history(&self, run: &Run) -> Result<History> {
        let mut history = History::default();
        // The last run with values, and whether any run had ours: a count with our set reveals nothing about values.
        let (mut valued, mut known_values) = (None, false);
        for line in self.lines()? {
            let (number, entry) = line?;
            match entry {
                None => history.foreign.push(number),
                Some(Entry { time, event: Event::Start(earlier), .. })
                    if run.shares_a_party_with(&earlier) =>
                {
                    history.runs += 1;
                    let digests = (earlier.set.as_ref(), run.set.as_ref());
                    let same_key = earlier.our == run.our && matches!(digests, (Some(_), Some(_)));
                    let values = (earlier.values.as_ref(), run.values.as_ref());
                    let other_values = matches!(values, (Some(a), Some(b)) if a != b);
                    let other_items = earlier.items != run.items;
                    let our_set_differs = match same_key {
                        true => Some(earlier.set != run.set || other_values),
                        // A different number of items means a different set.
                        false => other_items.then_some(true),
                    };
                    let theirs = run.theirs_since(&earlier);
                    let same_theirs = theirs == Theirs::Same;
                    let known = our_set_differs == Some(false) && same_theirs;
                    history.known |= known;
                    let undigested = digests == (None, None) && !other_items && same_theirs;
                    history.undigested += usize::from(undigested);
                    let operation = earlier.operation;
                    let this = Earlier { time, operation, our_set_differs, theirs };
                    if same_key && matches!(values, (Some(_), Some(_))) {
                        known_values |= known;
                        valued = Some(this.clone());
                    }
                    history.last = Some(this);
                }
                Some(_) => {}
            }
        }
        if history.known && !known_values && valued.is_some() {
            // The set is known, but not with these values: the last run with values is the one to compare with.
            (history.known, history.last) = (false, valued);
        }
        Ok(history)
    }
}

/// The entry in a line; `None` if the line was changed or is not an entry.
fn entry_in(line: &[u8]) -> Option<Entry> {
    match without_check(line) {
        Line::Unchecked => serde_json::from_slice(line).ok(),
        Line::Right(object) => serde_json::from_slice(&object).ok(),
        Line::Wrong => None,
    }
}

fn unusable(path: &Path, e: &io::Error) -> Error {
    Error::output(format!(
        "the audit log {} cannot be used: {e}. No run starts without it: free disk space, name another file \
         with {}, or disable the log with {}",
        path.display(),
        AUDIT_LOG.with("FILE"),
        AUDIT_LOG.with("none")
    ))
    .because(e)
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
