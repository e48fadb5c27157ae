//! A request whose set is padded: the work that depends on our data, done before there is a peer.

use super::{Input, Request};
use crate::artefact::filter::{self, FilterDraft, FilterFacts};
use crate::artefact::{self, Half, Ledger};
use crate::channel::Mesh;
use crate::error::{Error, Result};
use crate::hashed::HashedSet;
use crate::membership::encrypted_filter::Stored;
use crate::net::{Fingerprint, Identity};
use crate::operations::{Role, Terms};
use crate::rng::Prng;
use crate::session::{Approval, Hello, Party, Proposal, Spec};
use crate::sharded::disk::Distinct;
use crate::sharded::run::{self as shards, Begun, Keep};
use crate::sharded::set::{CutSet, Set};
use crate::spelling::{ENCODING, FILTER, KEY, MAX_PEER_ITEMS, NORMALIZE, setting};
use std::path::Path;

impl<'a> Request<'a> {
    /// Does the work whose duration depends on our data, or on how much of it is dummies. Best called before connecting
    /// to the peer. Takes 32 bytes of memory for each item and dummy of a set that is padded. With `vole`, one such step is left: the receiver
    /// solves for the key-value store within the session, and the sender can time it ([`crate::oprf::vole`]).
    ///
    /// # Errors
    /// Those of [`Request::check`].
    pub fn prepare(&self, rng: &mut Prng) -> Result<Prepared<'a>> {
        self.check()?;
        let ours = match self.input.set {
            Set::Memory(set) if self.spec.terms.shards == 0 => {
                Ours::Whole(self.basis_of(set).hashed(rng), None)
            }
            Set::Memory(set) => {
                let folder = std::env::temp_dir();
                let distinct = Distinct::of(set, self.input.payloads, &folder, self.spec.form())?;
                Ours::Sharded(CutSet::Disk(distinct.padded(self.announced(), rng)?.into()), None)
            }
            Set::Disk(stored) => Ours::Sharded(CutSet::Disk(stored.clone()), None),
            Set::Workers(spread) => Ours::Sharded(CutSet::Workers(spread), None),
        };
        Ok(Prepared { request: self.clone(), ours })
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
        Ok(Prepared { request: self.clone(), ours: Ours::Whole(set, Some(Attached::Half(half))) })
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
        let items = self.whole()?;
        let set = self.basis_of(items).hashed(rng);
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
        let set =
            if request.announced() > self.announced() { request.basis_of(items).hashed(rng) } else { set };
        Ok(Prepared { request, ours: Ours::Whole(set, Some(Attached::Filter(filter))) })
    }
}

/// Our set, hashed and padded, and what goes with it.
pub(in crate::session) enum Ours<'a> {
    /// For a run in one piece.
    Whole(HashedSet<'a>, Option<Attached>),
    /// For a run in shards, and what keeps its results if it is not to lose any.
    Sharded(CutSet<'a>, Option<&'a dyn Keep>),
}

/// What was prepared in advance for the protocol.
pub(in crate::session) enum Attached {
    /// Our half of the multiplications.
    Half(Half),
    /// The receiver's filter.
    Filter(filter::Opened),
}

impl Attached {
    /// The filter, as the protocol takes it.
    pub(in crate::session) fn filter(&self) -> Option<&Stored> {
        match self {
            Attached::Half(_) => None,
            Attached::Filter(filter) => Some(&filter.stored),
        }
    }
}

/// A checked request with its set hashed and padded.
pub struct Prepared<'a> {
    pub(in crate::session) request: Request<'a>,
    pub(in crate::session) ours: Ours<'a>,
}

impl<'a> Prepared<'a> {
    /// The request that it was made from.
    pub fn request(&self) -> &Request<'a> {
        &self.request
    }

    /// The same, if it is in shards, as a run that loses nothing when it breaks off, and goes on if it began before.
    #[must_use]
    pub fn keeping(self, keep: &'a dyn Keep) -> Prepared<'a> {
        let Prepared { mut request, ours } = self;
        let ours = match ours {
            Ours::Sharded(set, _) => {
                if let Some(Begun { choice, .. }) = keep.begun() {
                    (request.spec.candidates, request.local.planning) = ((*choice).into(), None);
                }
                Ours::Sharded(set, Some(keep))
            }
            whole => whole,
        };
        Prepared { request, ours }
    }

    /// Whether work of the protocol was done in advance on our side.
    pub(in crate::session) fn in_advance(&self) -> bool {
        match &self.ours {
            Ours::Whole(_, Some(Attached::Half(_))) => true,
            Ours::Whole(_, Some(Attached::Filter(_))) => self.request.spec.role == Role::Receiver,
            _ => false,
        }
    }

    fn filter(&self) -> Option<&filter::Opened> {
        match &self.ours {
            Ours::Whole(_, Some(Attached::Filter(filter))) => Some(filter),
            _ => None,
        }
    }

    /// The run that goes on, if it began before.
    pub(in crate::session) fn begun(&self) -> Option<&Begun> {
        match &self.ours {
            Ours::Sharded(_, Some(keep)) => keep.begun(),
            _ => None,
        }
    }

    /// What we say to the peer first ([`Request::hello`]).
    pub(in crate::session) fn hello(&self, check: bool) -> Hello {
        let filter = self.filter().map(|filter| filter.facts.clone());
        Hello { filter, job: self.begun().map(|begun| begun.session), ..self.request.hello(check) }
    }

    /// Refuses a filter that belongs to neither of these two parties as it should.
    pub(in crate::session) fn check_owner(
        &self,
        our: Option<Fingerprint>,
        peer: Option<Fingerprint>,
    ) -> Result<()> {
        match (self.filter().map(|filter| filter.head.owner), self.request.spec.role) {
            (Some(owner), Role::Receiver) if our != Some(owner) => {
                Err(Error::usage(format!("{FILTER} was made under another identity than this run has")))
            }
            // It showed the digest of the filter that we have, which is of somebody else.
            (Some(owner), Role::Sender) if peer != Some(owner) => {
                Err(Error::misbehaves("its filter is of another identity than its own"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses parties with which the run began otherwise, or whose sets are larger than we accept.
    pub(in crate::session) fn check_parties(&self, proposal: &Proposal) -> Result<()> {
        let (most, peer) = (self.request.local.max_peer_items, proposal.parties.peer());
        let Spec { role, terms: Terms { filter, .. }, .. } = &proposal.hello.spec;
        // What comes to us, and what we look up, follows from the capacity.
        let comes = proposal.hello.filter.as_ref().filter(|_| filter.is_some_and(|filter| !filter.held));
        if let Some(FilterFacts { capacity, .. }) = comes
            && *role == Role::Sender
            && *capacity > most
        {
            return Err(Error::refused(format!(
                "the peer's filter is for {capacity} items, but {MAX_PEER_ITEMS} is {most}. Raise it if you want to spend the \
                 time"
            )));
        }
        if let Some(party) = proposal.parties.iter().find(|party| party.announced.size > most) {
            return Err(Error::refused(format!(
                "{}'s set has {} items, but {MAX_PEER_ITEMS} is {most}. Raise it if you want to spend the time and memory",
                party.seat, party.announced.size
            )));
        }
        self.begun().map_or(Ok(()), |begun| begun.check(peer))?;
        shards::check_peer(peer, &self.request)
    }

    /// Spends the half that was prepared, if there is one, and lists the dummies that the sizes require. No message of the
    /// protocol has been sent yet, and none is sent unless this succeeds.
    pub(in crate::session) fn begin(
        &mut self,
        proposal: &Proposal,
        mesh: &mut Mesh,
        approval: &mut dyn Approval,
    ) -> Result<()> {
        let Ours::Whole(set, attachment) = &mut self.ours else { return Ok(()) };
        let Party { seat, announced, .. } = *proposal.parties.peer();
        match attachment.take() {
            Some(Attached::Half(half)) => set.take_over(
                mesh.with(seat, |channel| half.spend(&|| channel.alive(), &mut |text| approval.warn(text)))?,
            ),
            other => *attachment = other,
        }
        if self.request.spec.role == Role::Receiver {
            set.insert_listed(proposal.choice.protocol.inserted(self.request.spec.operation, announced));
        }
        Ok(())
    }
}
