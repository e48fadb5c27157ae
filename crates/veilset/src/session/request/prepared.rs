//! A request with a padded set: the work that depends on our data, done before there is a peer.

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
    /// Does the work whose duration depends on our data, or on the number of its dummies. Best called before connecting to
    /// the peer. In a run in one piece, a padded set takes 32 bytes of memory for each item and dummy. In a run in shards, a
    /// set that is in memory is written to a temporary file. With `vole`, one such step remains: the receiver solves for the
    /// key-value store during the session, and the sender can time this ([`crate::oprf::vole`]).
    ///
    /// # Errors
    /// The errors of [`Request::check`]; [`Error::Output`] if the set of a run in shards cannot be written to disk.
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

    /// Does the same as [`Request::prepare`], with a half that was prepared in advance ([`artefact::prepare`]). The half is
    /// spent once all parties have allowed the run.
    ///
    /// # Errors
    /// The errors of [`Request::check`], [`Request::check_prepared`], [`Request::basis`] and [`artefact::open`].
    pub fn prepare_with(&self, half: &Path, ledger: &Ledger, identity: &Identity) -> Result<Prepared<'a>> {
        self.check()?;
        self.check_prepared()?;
        let (set, half) = artefact::open(half, ledger, identity, &self.basis()?)?;
        Ok(Prepared { request: self.clone(), ours: Ours::Whole(set, Some(Attached::Half(half.into()))) })
    }

    /// Does the same as [`Request::prepare`], with a filter that was made in advance: as the receiver our own, which
    /// `identity` decrypts; as the sender the public part of the peer's. Only candidates with the filter's encryption remain.
    /// The receiver's set is padded to the filter's capacity.
    ///
    /// # Errors
    /// The errors of [`Request::check`], [`Request::check_filter`] and [`Request::whole`]; as the sender, the errors of
    /// [`filter::open_public`]. [`Error::Input`], naming the file, for a filter that has another encryption or normalisation
    /// or other key columns, or is too small. The same for our own filter if it cannot be opened or was made of other items.
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
        // The receiver announces the capacity of the filter. The number of keys in it would show the peer how the filter
        // grows.
        let request = self.with(|request| {
            request.spec.candidates = candidates;
            if request.spec.role == Role::Receiver {
                request.input.pad_to = Some(head.capacity);
            }
        });
        let set =
            if request.announced() > self.announced() { request.basis_of(items).hashed(rng) } else { set };
        Ok(Prepared { request, ours: Ours::Whole(set, Some(Attached::Filter(filter.into()))) })
    }
}

/// Our set, hashed and padded, and the things that are used together with it.
pub(in crate::session) enum Ours<'a> {
    /// The set of a run in one piece, and work that was prepared in advance.
    Whole(HashedSet<'a>, Option<Attached>),
    /// The set of a run in shards, and the place that keeps its results, if the run is not to lose any.
    Sharded(CutSet<'a>, Option<&'a dyn Keep>),
}

/// Work of the protocol that was done in advance.
pub(in crate::session) enum Attached {
    /// Our prepared half.
    Half(Box<Half>),
    /// The receiver's filter.
    Filter(Box<filter::Opened>),
}

impl Attached {
    /// Returns the filter in the form in which protocols take it.
    pub(in crate::session) fn filter(&self) -> Option<&Stored> {
        match self {
            Attached::Half(_) => None,
            Attached::Filter(filter) => Some(&filter.stored),
        }
    }
}

/// A checked request, and its set, hashed and padded.
pub struct Prepared<'a> {
    pub(in crate::session) request: Request<'a>,
    pub(in crate::session) ours: Ours<'a>,
}

impl<'a> Prepared<'a> {
    /// Returns the request. A filter made in advance or an earlier job may have narrowed its candidates, and a filter of our
    /// own sets its padding.
    pub fn request(&self) -> &Request<'a> {
        &self.request
    }

    /// Makes a run in shards keep its results in `keep`, so that it loses nothing when it breaks off. If it began before, it
    /// is resumed with the same protocol. A run in one piece stays as it is.
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

    /// Whether work of the protocol was done in advance on our side: a prepared half, or as the receiver a filter.
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

    /// Returns the earlier run that is resumed, if any.
    pub(in crate::session) fn begun(&self) -> Option<&Begun> {
        match &self.ours {
            Ours::Sharded(_, Some(keep)) => keep.begun(),
            _ => None,
        }
    }

    /// Returns our hello: the hello of the request ([`Request::hello`]) with the filter and the earlier job.
    pub(in crate::session) fn hello(&self, check: bool) -> Hello {
        let filter = self.filter().map(|filter| filter.facts.clone());
        Hello { filter, job: self.begun().map(|begun| begun.session), ..self.request.hello(check) }
    }

    /// Refuses a filter that was not made under the identity of the receiver.
    pub(in crate::session) fn check_owner(
        &self,
        our: Option<Fingerprint>,
        peer: Option<Fingerprint>,
    ) -> Result<()> {
        match (self.filter().map(|filter| filter.head.owner), self.request.spec.role) {
            (Some(owner), Role::Receiver) if our != Some(owner) => {
                Err(Error::usage(format!("{FILTER} was made under another identity than this run has")))
            }
            // In its hello, the peer named the filter that we have, which belongs to another party.
            (Some(owner), Role::Sender) if peer != Some(owner) => {
                Err(Error::misbehaves("its filter is of another identity than its own"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a set or a filter that is larger than we accept, and for a resumed run a peer or a size other than at its
    /// beginning.
    pub(in crate::session) fn check_parties(&self, proposal: &Proposal) -> Result<()> {
        let (most, peer) = (self.request.local.max_peer_items, proposal.parties.peer());
        let Spec { role, terms: Terms { filter, .. }, .. } = &proposal.hello.spec;
        // If we lack the filter, all its cells are sent to us, and their number follows from the capacity.
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

    /// Spends the prepared half, if there is one, and inserts the listed dummies that the protocol requires. At this point no
    /// message of the protocol has been sent. None is sent unless this succeeds.
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
