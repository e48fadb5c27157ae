//! The audit log: one line of JSON when a run starts, one when it ends, so that those who answer for the data
//! see later with whom it was used, and a repeated run is noticed.
//!
//! Nothing of the data is in it. Our set stands there as a digest under a key that comes from our identity: who
//! reads the log without the identity can test no guesses against it. What a run started counts, even if it
//! failed: a peer that breaks off may have its result.

use crate::error::{Error, Result, Seat};
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::net::{Fingerprint, Identity};
use crate::places::private_parent;
use crate::secret::Secret;
use crate::session::report::{name_of, rfc3339};
use crate::session::{Party, Proposal};
use rayon::prelude::*;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Longer than any line; what is longer is not one of ours.
const LONGEST_LINE: u64 = 1 << 16;
/// How often a log may be replaced while we wait for its lock.
const ROTATIONS: usize = 8;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
pub struct Run {
    /// intersect, union, count or sum.
    pub operation: String,
    /// How it is computed.
    pub protocol: String,
    /// Our part.
    pub role: String,
    /// The other parties.
    #[serde(flatten, serialize_with = "write_parties", deserialize_with = "read_parties")]
    pub parties: Vec<Participant>,
    /// Our own fingerprint.
    pub our: Option<String>,
    /// Items of our set.
    pub items: usize,
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

/// Another party of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Participant {
    /// Which one it is.
    #[serde(rename = "party")]
    pub seat: Seat,
    /// Its fingerprint; none on a connection without protection.
    pub peer: Option<String>,
    /// Its name in our address book.
    #[serde(rename = "peer_name")]
    pub name: Option<String>,
    /// Items of its set; 0 as well if the run ended before it said so.
    #[serde(rename = "peer_items")]
    pub items: usize,
}

/// The other parties as they stand in a line: in a run of two their fields are fields of the line, in a run of more there
/// is a list. A line with neither is no entry: a program that does not know the list does not take it for a run with
/// nobody.
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
        Others::Parties { parties } if parties.is_empty() => Err(de::Error::custom("a run with nobody")),
        Others::Parties { parties } => Ok(parties),
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct End {
    /// "done", or whose fault it is that it was not: "peer", "network", ...
    pub outcome: String,
    /// What another party did, if it was one: "misbehaved" or "gave-up". Old logs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Which party that was, in a run of three or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party: Option<NonZeroU8>,
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
        set: Option<&str>,
        values: Option<&str>,
        prepared: bool,
    ) -> Run {
        let hello = &proposal.hello;
        Run {
            operation: hello.operation.name.into(),
            protocol: proposal.choice.protocol.name.into(),
            role: hello.role.name().into(),
            parties: proposal.parties.iter().map(Participant::from).collect(),
            our: our.map(|f| f.to_string()),
            items: proposal.ours.size,
            terms: proposal.terms().into_iter().map(|term| (term.key.to_string(), term.value)).collect(),
            set: set.map(Into::into),
            values: values.map(Into::into),
            prepared,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// The other parties, in words.
    pub(super) fn others(&self) -> String {
        let called: Vec<&str> = self.parties.iter().map(Participant::called).collect();
        if called.len() > 1 { format!("one of {}", called.join(", ")) } else { called.concat() }
    }

    /// Whether this and the other run have a party in common, ours aside. Names in the address book may change.
    fn shares_a_party_with(&self, other: &Run) -> bool {
        self.parties.iter().any(|here| other.parties.iter().any(|there| here.peer == there.peer))
    }

    /// How what the other parties bring to this run compares with what those of an earlier one brought.
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

impl From<&Party> for Participant {
    fn from(party: &Party) -> Participant {
        Participant {
            seat: party.seat,
            peer: party.fingerprint.map(|f| f.to_string()),
            name: party.name.clone(),
            items: party.announced.size,
        }
    }
}

impl Participant {
    /// Its name, or what else tells who it is.
    fn called(&self) -> &str {
        self.name.as_deref().or(self.peer.as_deref()).unwrap_or("somebody without TLS")
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

/// What the log says about earlier runs with a party of the one proposed: whoever took part in both can compare what it
/// learned, and so can we.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct History {
    /// How many started.
    pub runs: usize,
    /// The last of them, compared with the one proposed.
    pub last: Option<Earlier>,
    /// Whether one of them was with our very set and with the same other parties, whose sets had these sizes. Once values
    /// were sent along, only runs with the same values make another one with values known.
    pub known: bool,
    /// How many of them had no digest of our set, nor has the one proposed, and had its sizes.
    pub undigested: usize,
    /// Lines that are not entries, by number, from 1.
    pub foreign: Vec<usize>,
}

/// An earlier run, compared with the one proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Earlier {
    /// When it started.
    pub time: String,
    /// What was computed.
    pub operation: String,
    /// Whether our set was another one; none if that cannot be told, because it has no digest under the same key.
    pub our_set_differs: Option<bool>,
    /// Whether the other parties brought something else.
    pub theirs: Theirs,
}

/// What the other parties bring to a run, compared with an earlier one.
///
/// If one of them was not there then, or is not any more, that counts like another size, whoever else was there: its whole
/// set comes to or is gone from what the result is computed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Theirs {
    /// The same parties bring sets of the same sizes. Whether they are the same sets nobody tells us.
    Same,
    /// The same parties; the set of this one, by its seat in the later run, has another size. So may those of others.
    OtherSize(Seat),
    /// The parties are not the same.
    OtherParties,
}

impl History {
    /// Whether this run and an earlier one together may say more than either, as far as the log shows: there is an
    /// earlier one, and none was with our very set and the same parties, with sets of these sizes.
    pub fn changed(&self) -> bool {
        self.runs > 0 && !self.known
    }

    /// Whether nobody was told yet. Where there are no digests every run may be with another set; that is said of the
    /// second run with the same sizes and not again.
    pub fn is_news(&self) -> bool {
        self.changed() && self.undigested < 2
    }

    /// What the runs together tell, in a sentence, if the sets changed. `others` is who the other parties are.
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
            // If it differs in nothing, that our set is the same is not known: such a run would be a known one.
            (None | Some(false), Theirs::Same) => "our set may have changed".into(),
        };
        Some(format!(
            "this is run {} with {others}, and {what} since the last one ({} of {}): the difference between two results \
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

    /// What the log says about earlier runs with a party of this one, of any operation: a union shows the same
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
                Ok(Entry { time, event: Event::Start(earlier), .. }) if run.shares_a_party_with(&earlier) => {
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
