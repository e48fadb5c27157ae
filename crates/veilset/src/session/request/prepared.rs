//! A request whose set is padded: the work that depends on our data, done before there is a peer.

use super::{Input, Request};
use crate::artefact::filter::{self, FilterDraft};
use crate::artefact::{self, Half, Ledger};
use crate::error::{Error, Result};
use crate::hashed::HashedSet;
use crate::net::Identity;
use crate::operations::Role;
use crate::rng::Prng;
use crate::session::Hello;
use crate::sharded::disk::{DiskSet, Distinct};
use crate::sharded::engine::RemoteSet;
use crate::sharded::run::{Begun, Keep};
use crate::sharded::set::Set;
use crate::spelling::{ENCODING, KEY, NORMALIZE, setting};
use std::path::Path;
use std::sync::Arc;

impl<'a> Request<'a> {
    /// Does the work whose duration depends on our data, or on how much of it is dummies. Best called before connecting
    /// to the peer. Takes 32 bytes of memory for each item and dummy of a set that is padded. With `vole`, one such step is left: the receiver
    /// solves for the key-value store within the session, and the sender can time it ([`crate::oprf::vole`]).
    ///
    /// # Errors
    /// Those of [`Request::check`].
    pub fn prepare(&self, rng: &mut Prng) -> Result<Prepared<'a>> {
        self.check()?;
        let set = match (self.spec.terms.shards, self.input.set) {
            (0, _) => Ours::Whole(self.basis()?.hashed(rng)),
            (_, Set::Disk(stored)) => Ours::Disk(stored.clone()),
            (_, Set::Remote(spread)) => Ours::Remote(spread),
            (_, Set::Memory(set)) => {
                let folder = std::env::temp_dir();
                let distinct = Distinct::of(set, self.input.payloads, (&folder, self.spec.form()))?;
                Ours::Disk(distinct.padded(self.announced(), rng)?.into())
            }
        };
        Ok(Prepared { request: self.clone(), set, half: None, filter: None, keep: None })
    }

    /// Like [`Request::prepare`], with a half prepared in advance ([`artefact::prepare`]). It is spent once both sides
    /// have allowed the run.
    ///
    /// # Errors
    /// Those of [`Request::check`] and [`artefact::open`].
    pub fn prepare_with(&self, half: &Path, ledger: &Ledger, identity: &Identity) -> Result<Prepared<'a>> {
        self.check()?;
        self.check_prepared()?;
        let (set, half) = artefact::open(half, ledger, identity, &self.basis()?)?;
        Ok(Prepared {
            request: self.clone(),
            set: Ours::Whole(set),
            half: Some(half),
            filter: None,
            keep: None,
        })
    }

    /// Like [`Request::prepare`], with a filter that was made in advance: as the receiver our own, which `identity` opens,
    /// and as the sender the public part of the peer's. The run uses the filter's encryption.
    ///
    /// # Errors
    /// Those of [`Request::check`], [`filter::build`] as far as they are about an existing file, and
    /// [`filter::open_public`]; [`Error::Input`] for a filter that is not as this run needs it.
    pub fn prepare_with_filter(
        &self,
        path: &Path,
        identity: &Identity,
        rng: &mut Prng,
    ) -> Result<Prepared<'a>> {
        self.check()?;
        self.check_filter()?;
        let basis = self.basis()?;
        let (set, items) = (basis.hashed(rng), basis.set);
        let Input { key_columns, normalisation, .. } = self.input;
        let threads = &self.local.threads;
        let draft = FilterDraft { set: items, key_columns, normalisation, threads };
        let filter = match self.spec.role {
            Role::Receiver => filter::open(path, identity, &draft, &set.own()[..items.len()])?,
            Role::Sender => filter::open_public(path, &|_| Ok(()))?,
        };
        let head = &filter.head;
        let wrong = |what: String, next: &str| Err(Error::input(path, what, next));
        let Some(candidates) = self.spec.candidates.kept(|choice| choice.group == head.cipher) else {
            let group = self.spec.candidates.first.group;
            let what = format!("it is encrypted by {}, but this run allows only {group}", head.cipher);
            return wrong(
                what,
                concat!("Omit ", setting!(cipher), ", ", setting!(group), " and ", setting!(assume)),
            );
        };
        if head.normalisation != normalisation || head.key_columns != key_columns {
            let what = format!(
                "it is of {} key columns normalised as {}, but this run has {key_columns}, normalised as {normalisation} \
                 ({KEY}, {NORMALIZE}, {ENCODING})",
                head.key_columns, head.normalisation
            );
            return wrong(what, "Use the filter's");
        }
        let (most, of) = match self.spec.role {
            Role::Receiver => (head.capacity, setting!(capacity)),
            Role::Sender => (head.queries, setting!(for)),
        };
        if self.announced() > most {
            let what =
                format!("it is for at most {most} items on our side, and this run has {}", self.announced());
            return wrong(what, &format!("Use a filter that was made with a larger {of}, or none"));
        }
        // Of a receiver the peer is told how many keys the filter may have, and not how many it has: that would show how it grows.
        let request = self.with(|request| {
            request.spec.candidates = candidates;
            if request.spec.role == Role::Receiver {
                request.input.pad_to = Some(head.capacity);
            }
        });
        let set = if request.announced() > self.announced() { request.basis()?.hashed(rng) } else { set };
        Ok(Prepared { request, set: Ours::Whole(set), half: None, filter: Some(filter), keep: None })
    }
}

/// Our set, hashed and padded.
pub(in crate::session) enum Ours<'a> {
    /// For a run in one piece.
    Whole(HashedSet<'a>),
    /// For a job in shards.
    Disk(Arc<DiskSet>),
    /// For a job in shards that workers run.
    Remote(&'a RemoteSet),
}

impl<'a> Ours<'a> {
    pub(in crate::session) fn whole(self) -> Result<HashedSet<'a>> {
        match self {
            Ours::Whole(set) => Ok(set),
            Ours::Disk(_) | Ours::Remote(_) => {
                Err(Error::Bug("a set that is to be cut, for a run in one piece".into()))
            }
        }
    }
}

/// A checked request with its set hashed and padded.
pub struct Prepared<'a> {
    pub(in crate::session) request: Request<'a>,
    pub(in crate::session) set: Ours<'a>,
    pub(in crate::session) half: Option<Half>,
    pub(in crate::session) filter: Option<filter::Opened>,
    pub(in crate::session) keep: Option<&'a dyn Keep>,
}

impl<'a> Prepared<'a> {
    /// The request that it was made from.
    pub fn request(&self) -> &Request<'a> {
        &self.request
    }

    /// The same as a job that loses nothing when it breaks off, and goes on if it began before.
    #[must_use]
    pub fn keeping(self, keep: &'a dyn Keep) -> Prepared<'a> {
        let mut request = self.request;
        if let Some(Begun { choice, .. }) = keep.begun() {
            (request.spec.candidates, request.local.planning) = ((*choice).into(), None);
        }
        Prepared { request, keep: Some(keep), ..self }
    }

    /// What we say to the peer first ([`Request::hello`]).
    pub(in crate::session) fn hello(&self, check: bool) -> Hello {
        let filter = self.filter.as_ref().map(|filter| filter.facts.clone());
        let begun = self.keep.and_then(Keep::begun).filter(|_| self.request.spec.terms.shards > 0);
        Hello { filter, job: begun.map(|begun| begun.session), ..self.request.hello(check) }
    }
}
