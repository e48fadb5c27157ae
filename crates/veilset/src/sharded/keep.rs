//! Keeps the results of a job's shards in its folder, and makes sure that a job is resumed with the settings and data of its
//! start.

use crate::error::{Error, Result};
use crate::hash::{ItemHash, SessionId};
use crate::net::{Fingerprint, Identity};
use crate::operations::{Announced, Learned};
use crate::party::{Data, PartySpec};
use crate::protocols::Choice;
use crate::rng::Prng;
use crate::secret::Secret;
use crate::session::Proposal;
use crate::session::run::Request;
use crate::sharded::folder::{FolderHead, JobFolder, Leftover};
use crate::sharded::run::{Begun, Keep, Key, Results};
use crate::spelling::{PAD_TO, PEER, PROTOCOL, ROLE, SHARDS, plain};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Keeps the results of a job's shards in a folder.
pub struct InFolder<'a> {
    folder: JobFolder,
    shards: u32,
    identity: &'a Identity,
    rng: Mutex<Prng>,
    begun: Option<Begun>,
    /// The session in which the job began.
    session: OnceLock<SessionId>,
    /// The names and values of the settings that must be the same when the job is resumed.
    same: Vec<(String, String)>,
    /// The digest of our set and payloads.
    set: [u8; 32],
}

impl Data<'_> {
    /// Opens the folder of the job; returns `None` if the run has no such folder. Checks that a resumed job has the settings
    /// and data with which it began. `peer` is the party that we expect.
    ///
    /// # Errors
    /// The errors of [`JobFolder::open`] and [`Set::digest`](crate::sharded::set::Set::digest); [`Error::Usage`] for a folder
    /// without an identity, and for a job that began with other options, another input or another peer.
    pub fn keep<'a>(
        &self,
        identity: Option<&'a Identity>,
        peer: Option<Fingerprint>,
        rng: &mut Prng,
    ) -> Result<Option<InFolder<'a>>> {
        let PartySpec { folder: Some(path), resume, spec, .. } = self.party() else { return Ok(None) };
        let Some(identity) = identity else {
            return Err(Error::usage(format!(
                "what a job keeps is encrypted under an identity, but this run has none. Omit {SHARDS}, or run over TLS"
            )));
        };
        let request = self.request();
        let folder = JobFolder::open(path, *resume, identity)?;
        let (same, set) = (same(&request, peer), digest(&request, identity)?);
        let (shards, rng, session) = (spec.terms.shards, Mutex::new(rng.split()), OnceLock::new());
        let mut kept = InFolder { folder, shards, identity, rng, begun: None, session, same, set };
        if let Some(head) = kept.folder.head() {
            let begun = kept.goes_on(path, head, &request, peer)?;
            (kept.session, kept.begun) = (begun.session.into(), Some(begun));
        }
        Ok(Some(kept))
    }
}

/// Returns the names and values of all settings that must be the same when a job is resumed.
fn same(request: &Request<'_>, peer: Option<Fingerprint>) -> Vec<(String, String)> {
    let hello = request.hello(false);
    let ours = |term: &str| !matches!(term, "purpose" | "job" | "parties");
    let terms = hello.terms().into_iter().filter(|term| ours(term.key));
    let mut same: Vec<(String, String)> = terms.map(|term| (term.words.into(), term.value)).collect();
    let pad_to = request.input.pad_to.map_or("none".into(), |n| n.to_string());
    let by = if hello.workers { "workers" } else { "one machine" };
    same.push(("way to run its shards".into(), by.into()));
    same.push((ROLE.to_string(), request.spec.role.name().into()));
    same.push((PAD_TO.to_string(), pad_to));
    same.push((PEER.to_string(), peer.map_or("none".into(), |peer| peer.to_string())));
    same
}

/// Returns a digest of our set and payloads, with the positions of the items, to which results refer.
fn digest(request: &Request<'_>, identity: &Identity) -> Result<[u8; 32]> {
    let key = digest_key(identity);
    Ok(*request.input.set.digest(request.input.payloads, &request.local.threads, &key, message)?.as_bytes())
}

/// The key of the digest of a set in a job's folder.
pub(crate) fn digest_key(identity: &Identity) -> Secret<[u8; 32]> {
    identity.secret_for("veilset 2026-11 job, digest of a set")
}

/// Appends the part of an item that is hashed for the digest in a job's folder.
pub(crate) fn message(position: u32, hash: &ItemHash, payload: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(&position.to_le_bytes());
    to.extend_from_slice(hash);
    to.extend_from_slice(payload);
}

impl InFolder<'_> {
    /// Returns the state of the job, if it can be resumed with these settings and data.
    fn goes_on(
        &self,
        path: &Path,
        head: &FolderHead,
        request: &Request<'_>,
        peer: Option<Fingerprint>,
    ) -> Result<Begun> {
        let wrong = |what: String| Err(Error::usage(format!("the job in {} {what}", path.display())));
        for ((what, now), (_, then)) in self.same.iter().zip(&head.same) {
            if now != then {
                return wrong(format!(
                    "began with another {what}: {then}, and now it is {now}. A job goes on as it began: use what it began with, \
                     or begin a new job in another folder"
                ));
            }
        }
        if self.set != head.set {
            return wrong(
                "began with another input: its keys, their order, or the columns that are sent were different. Use the input of \
                 then, or begin a new job in another folder"
                    .into(),
            );
        }
        let (protocol, group) = &head.choice;
        let choice = Choice::named(protocol, group).map_err(Error::usage)?;
        if !request.candidates().contains(choice) {
            return wrong(format!(
                "began with {choice}, which is not allowed now. Use {}",
                PROTOCOL.with(protocol)
            ));
        }
        let (size, padded) = head.theirs;
        let theirs = Announced { size: usize::try_from(size).unwrap_or(usize::MAX), padded };
        let (session, key) = (SessionId::of(head.session), Key::of(head.key));
        Ok(Begun { session, key, peer, choice, theirs, kept: self.folder.kept().to_vec() })
    }

    /// The number of shards whose results were kept when the folder was opened, and the number of all shards; `None` for a new
    /// job.
    pub fn progress(&self) -> Option<(usize, usize)> {
        let kept = &self.begun.as_ref()?.kept;
        Some((kept.iter().filter(|kept| **kept).count(), kept.len()))
    }

    /// The files of the job in its folder, to be deleted once its result is written.
    pub fn leftover(&self) -> Leftover {
        self.folder.leftover(self.shards)
    }

    fn named(&self) -> Result<SessionId> {
        self.session.get().copied().ok_or_else(|| Error::Bug("a shard of a job that has not begun".into()))
    }

    fn rng(&self) -> Prng {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).split()
    }

    /// Whether the job has begun, in this session or an earlier one, and so can be resumed.
    pub fn has_begun(&self) -> bool {
        self.session.get().is_some()
    }
}

impl Results for InFolder<'_> {
    fn attempt(&self, shard: u32) -> Result<()> {
        self.folder.attempt(shard)
    }

    fn keep(&self, shard: u32, learned: Result<Learned>) -> Result<()> {
        self.folder.keep(&self.named()?, shard, learned, self.identity, &mut self.rng())
    }
}

impl Keep for InFolder<'_> {
    fn begun(&self) -> Option<&Begun> {
        self.begun.as_ref()
    }

    fn begin(&self, proposal: &Proposal, key: &Key) -> Result<()> {
        let theirs = proposal.parties.peer().announced;
        let head = FolderHead {
            session: *proposal.session_id.as_bytes(),
            key: *key.bytes(),
            shards: proposal.hello.spec.terms.shards,
            choice: (proposal.choice.protocol.name.into(), proposal.choice.group.into()),
            same: self.same.iter().map(|(what, value)| (plain(what), value.clone())).collect(),
            set: self.set,
            theirs: (theirs.size as u64, theirs.padded),
        };
        self.folder.begin(&head, self.identity, &mut self.rng())?;
        let _ = self.session.set(proposal.session_id);
        Ok(())
    }

    fn take(&self, shard: u32) -> Result<Learned> {
        self.folder.take(&self.named()?, shard, self.identity)
    }
}

#[cfg(test)]
#[path = "keep_tests.rs"]
mod tests;
