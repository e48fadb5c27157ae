//! One party's side of a run: agree, compute, confirm, and open the result.

use super::agreement::{go, meet, predict, tell_size};
use super::choosing::{Planning, choose};
use super::shards::{self, Begun, InMemory, Job, Keep};
use super::stages::{AGREEING, CONFIRMING, OPENING, SETUP};
use super::{Approval, Hello, Parties, Party, Proposal, confirm, several, workers};
use crate::artefact::filter::{self, Draft, Facts};
use crate::artefact::{self, Basis, Half, Ledger};
use crate::channel::{Account, MessageBytes, StageTime};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::hashed::{Dummies, Hashed};
use crate::item::Items;
use crate::net::{Connected, Connection, Fingerprint, Identity, Me};
use crate::operations::sum::fits;
use crate::operations::{
    self, Announced, Confirmed, Learned, Operation, Role, Rows, Sealed, Task, Terms, Uses,
};
use crate::params::MAX_SET;
use crate::protocols::{self, Choice, Offer, Protocol};
use crate::rng::Prng;
use crate::stored::{Distinct, Form, Set, Spread, Stored};
use crate::threads::Threads;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// A request: what to compute, and our data.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The operation to compute.
    pub operation: &'static Operation,
    /// Our role in it.
    pub role: Role,
    /// The protocol that we prefer.
    pub protocol: &'static Protocol,
    /// The group that the protocol works in; `None` stands for the protocol's first.
    pub group: Option<&'static str>,
    /// Further choices that we allow, in order of preference. The receiver's order decides, unless it plans.
    pub alternatives: &'a [Choice],
    /// How the receiver picks one of those that both allow, and how fast our side is; `None` for the first of them.
    pub planning: Option<Planning>,
    /// Our set. A job in shards may have it on disk; then its payloads are there too.
    pub set: Set<'a>,
    /// Number of key columns that make up an item.
    pub key_columns: usize,
    /// How keys were normalised and encoded, as a description that must be the same on both sides.
    pub normalisation: &'a str,
    /// The largest size of the peer's set that we accept: it determines our time and memory.
    pub max_peer_items: usize,
    /// The size to which our set is padded with dummies, so that the peer learns this size instead of the real one.
    pub pad_to: Option<usize>,
    /// For intersect and union: the columns sent with the sender's items, by the sender's names.
    pub sent_columns: &'a [String],
    /// For the sender of such columns: their cells for each item, encoded like a key. Otherwise empty.
    pub payloads: &'a Items,
    /// For a sender with values (sum, and share if it shares them): a value for each item, in units of 10^-`value_scale`.
    /// Otherwise empty.
    pub values: &'a [i128],
    /// For sum and share: the decimal places of the values.
    pub value_scale: u32,
    /// The other terms that must be the same on both sides. `payload` follows from `sent_columns`.
    pub terms: Terms,
    /// The parties of a run of several, and which we are; `None` in a run of two. The leader has the role of receiver, and
    /// all others that of sender.
    pub parties: Option<&'a Me>,
    /// The threads that our side computes on, before and during the run. The peer is not told.
    pub threads: &'a Threads,
}

/// The outcome of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// What we learned.
    pub learned: Learned,
    /// The session's id.
    pub session_id: SessionId,
    /// How it was computed.
    pub choice: Choice,
    /// Why by this choice, if a planner picked it of several.
    pub why: Option<String>,
    /// When the run began, by this machine's clock.
    pub began: SystemTime,
    /// The other parties, and what they announced.
    pub parties: Parties,
    /// Whether our offline half was prepared in advance.
    pub prepared: bool,
    /// Bytes sent and received on the wire, everything included. Those that workers exchange are not.
    pub bytes: (u64, u64),
    /// The bytes of each message, without TLS, heartbeats and words of parting.
    pub messages: Vec<MessageBytes>,
    /// The time of each stage, as our side saw it.
    pub stages: Vec<StageTime>,
}

impl<'a> Request<'a> {
    /// A plain request: keys of one column, compared as they are, without payload, values or padding. Rows have at most
    /// 64 bytes. It uses the default protocol and all threads of the program, and accepts any size of the peer's set.
    pub fn new(operation: &'static Operation, role: Role, set: impl Into<Set<'a>>) -> Self {
        Request {
            operation,
            role,
            protocol: protocols::default_for(operation, &Terms::default()),
            group: None,
            alternatives: &[],
            planning: None,
            set: set.into(),
            key_columns: 1,
            normalisation: "none",
            max_peer_items: MAX_SET,
            pad_to: None,
            sent_columns: &[],
            payloads: const { &Items::new() },
            values: &[],
            value_scale: 0,
            terms: Terms { max_row: 64, ..Terms::default() },
            parties: None,
            threads: Threads::global(),
        }
    }

    /// The group that the protocol works in.
    pub fn group(&self) -> &'static str {
        self.group.unwrap_or(self.protocol.group())
    }

    /// The size that we announce to the peer.
    pub fn announced(&self) -> usize {
        self.pad_to.unwrap_or(self.set.len())
    }

    /// Makes all checks that need no contact with the peer.
    ///
    /// # Errors
    /// [`Error::Usage`] if the terms contradict each other, or the data does not fit them.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Usage(what));
        let Request { operation, ref terms, .. } = *self;
        let payload = !self.sent_columns.is_empty();
        self.check_parties()?;
        for Choice { protocol, group } in self.candidates() {
            if !protocol.works_in().any(|name| name == group) {
                return Err(protocol.refuse_group(group));
            }
            let Some(offer) = protocol.offer(operation) else {
                let those = protocols::names(|p| p.computes(operation));
                return wrong(format!(
                    "`protocol={protocol}` cannot compute {operation}. Omit it, or use one of {those}"
                ));
            };
            if terms.malicious_sender && !offer.malicious_sender {
                let those = protocols::names(|p| p.offers.iter().any(|offer| offer.malicious_sender));
                return wrong(format!(
                    "`malicious_sender` requires `protocol={those}` and does not work with {protocol}. Omit \
                     `protocol`"
                ));
            }
            self.check_revealed(protocol, offer)?;
            let ours = match terms.shards {
                0 => self.announced(),
                number => {
                    shards::check(number, operation, protocol)?;
                    shards::bound(self.announced(), number)
                }
            };
            let sizes = if self.role == Role::Receiver { [ours, 0] } else { [0, ours] };
            protocol.check_sizes(operation, sizes).map_err(Error::Usage)?;
        }
        if terms.shards > 0 && self.parties.is_some() {
            return wrong("jobs in shards are of two parties. Omit `shards`, or `parties`".into());
        }
        if terms.both && terms.reveal_count {
            return wrong(
                "`reveal_count_to_sender` is pointless with `both`: the result, which the sender then gets, shows how \
                 many items match. Omit one of them on both sides"
                    .into(),
            );
        }
        if terms.both && !operation.uses.both {
            return wrong(format!(
                "`both` is not for {operation}, in which each side has its own result. Omit it"
            ));
        }
        if payload && operation.uses.rows == Rows::None {
            let those = operations::ALL.into_iter().filter(|o| o.uses.rows != Rows::None).map(|o| o.name);
            return wrong(format!(
                "columns can be sent in {} only, not in {operation}",
                those.collect::<Vec<_>>().join(" and ")
            ));
        }
        artefact::check_size(self.set.len(), self.announced())?;
        self.check_rows()?;
        // A share is of one value; a sum, of all.
        let together = if operation.uses.shares { 1 } else { self.announced() };
        match fits(terms.modulus, together, self.values) {
            true => Ok(()),
            false if operation.uses.shares => {
                wrong("a value does not fit 64 bits. Use a smaller `scale`".into())
            }
            false => wrong(format!(
                "with {} values, including the dummies of `pad_to`, the sum could overflow. Use \
                 `modulus=128` on both sides, or a smaller `scale`",
                self.announced()
            )),
        }
    }

    /// Refuses what is not for as many parties as take part.
    fn check_parties(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Usage(what));
        let operation = self.operation;
        let Some(me) = self.parties else {
            return match self.candidates().iter().find(|choice| choice.protocol.is_of_several()) {
                Some(Choice { protocol, .. }) => wrong(format!(
                    "`protocol={protocol}` is for several parties. Name them with `parties`, or omit `protocol`"
                )),
                None => Ok(()),
            };
        };
        let Some(protocol) = protocols::of_several(operation) else {
            let those = operations::ALL.into_iter().filter(|o| protocols::of_several(o).is_some());
            let those: Vec<_> = those.map(|o| o.name).collect();
            return wrong(format!(
                "{operation} is for two parties only. Omit `parties`, or use {}",
                those.join(", ")
            ));
        };
        match self.candidates()[..] {
            [choice] if choice.protocol == protocol => {}
            _ => {
                return wrong(format!(
                    "{operation} of several parties is computed by {protocol} only. Omit `protocol`"
                ));
            }
        }
        if self.role != Role::of_several(me.leads()) {
            return Err(Error::Bug(format!("the role of {} in {}", self.role, me.own())));
        }
        let Terms { both, malicious_sender, reveal_count, .. } = self.terms;
        let not_offered = [
            (both, "`both` is for two parties: of several, the leader alone learns the result"),
            (
                malicious_sender,
                "`malicious_sender` is for two parties: several are assumed to follow the protocol",
            ),
            (
                reveal_count,
                "`reveal_count_to_sender` is for two parties: of several, only the leader learns anything",
            ),
            (
                !self.sent_columns.is_empty(),
                "columns are sent between two parties only: they would show whose they are",
            ),
        ];
        match not_offered.into_iter().find(|(asked, _)| *asked) {
            Some((_, why)) => wrong(format!("{why}. Omit it, or `parties`")),
            None => Ok(()),
        }
    }

    /// Refuses an offer that does not reveal the count to the sender though it is asked to, or does so unasked.
    fn check_revealed(&self, protocol: &Protocol, offer: &Offer) -> Result<()> {
        let operation = self.operation;
        let those = protocols::names(|p| p.offer(operation).is_some_and(|offer| offer.reveals_count));
        let wrong = match (self.terms.reveal_count, offer.reveals_count) {
            (true, true) | (false, false) => return Ok(()),
            (true, false) if those.is_empty() => {
                format!("`reveal_count_to_sender` is not for {operation}. Omit it")
            }
            (true, false) => format!(
                "`reveal_count_to_sender` requires `protocol={those}` and does not work with {protocol}. Omit `protocol`"
            ),
            (false, true) => format!(
                "by `protocol={protocol}` the sender of {operation} learns how many items match. Agree to that with \
                 `reveal_count_to_sender` on both sides, or use another protocol"
            ),
        };
        Err(Error::Usage(wrong))
    }

    /// Refuses rows longer than the agreed maximum.
    fn check_rows(&self) -> Result<()> {
        let terms = self.terms();
        let Terms { payload, max_row, .. } = terms;
        let set = match self.set {
            Set::Memory(set) => set,
            Set::Disk(_) | Set::Spread(_) if terms.shards == 0 => {
                return Err(Error::Bug("a set that is not in memory, for a run in one piece".into()));
            }
            Set::Disk(stored) if stored.form() != self.form() => {
                return Err(Error::Bug("a set on disk of another form".into()));
            }
            Set::Disk(stored) if stored.announced() != self.announced() => {
                return Err(Error::Bug("a set on disk that is not padded as it is announced".into()));
            }
            // Each row was checked when it was written, or is by a worker.
            Set::Disk(_) | Set::Spread(_) => return Ok(()),
        };
        let keys_travel = self.operation.uses.items_in_rows(self.role, &terms);
        if self.sends_payloads() && self.payloads.len() != set.len() {
            return Err(Error::Bug("the payloads do not belong to the items".into()));
        }
        let key = |i| if keys_travel { set.get(i).len() } else { 0 };
        let sent = |i| if self.payloads.is_empty() { 0 } else { self.payloads.get(i).len() };
        match (0..set.len()).map(|i| key(i) + sent(i)).max() {
            Some(longest) if longest > max_row && (keys_travel || payload) => Err(Error::Usage(format!(
                "one of our rows takes {longest} bytes, but `max_row` is {max_row}. Use a larger value on \
                 both sides"
            ))),
            _ => Ok(()),
        }
    }

    /// Whether our items have payloads.
    pub(super) fn sends_payloads(&self) -> bool {
        self.role == Role::Sender && !self.sent_columns.is_empty()
    }

    /// What a set on disk has of each item, for a job in shards.
    pub fn form(&self) -> Form {
        let terms = self.terms();
        let items = self.operation.uses.items_in_rows(self.role, &terms);
        Form { items, row: (items || self.sends_payloads()).then_some(terms.max_row) }
    }

    /// Does the work whose duration depends on our data, or on how much of it is dummies. Best called before connecting
    /// to the peer. Takes 32 bytes of memory for each item and dummy. With `vole`, one such step is left: the receiver
    /// solves for the key-value store within the session, and the sender can time it ([`crate::oprf::vole`]).
    ///
    /// # Errors
    /// Those of [`Request::check`].
    pub fn prepare(&self, rng: &mut Prng) -> Result<Prepared<'a>> {
        self.check()?;
        let set = match (self.terms.shards, self.set) {
            (0, _) => Ours::Whole(self.basis()?.hashed(rng)),
            (_, Set::Disk(stored)) => Ours::Stored(stored.clone()),
            (_, Set::Spread(spread)) => Ours::Spread(spread),
            (_, Set::Memory(set)) => {
                let folder = std::env::temp_dir();
                let distinct = Distinct::of(set, self.payloads, (&folder, self.form()), self.threads)?;
                Ours::Stored(distinct.padded(self.announced(), rng)?.into())
            }
        };
        Ok(Prepared { request: *self, set, half: None, filter: None, keep: None })
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
        Ok(Prepared { request: *self, set: Ours::Whole(set), half: Some(half), filter: None, keep: None })
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
        let Request { key_columns, normalisation, threads, .. } = *self;
        let draft = Draft { set: items, key_columns, normalisation, threads };
        let filter = match self.role {
            Role::Receiver => filter::open(path, identity, &draft, &set.own()[..items.len()])?,
            Role::Sender => filter::open_public(path, &|_| Ok(()))?,
        };
        let head = &filter.head;
        let wrong = |what: String, next: &str| Err(Error::input(path, what, next));
        if let Some(group) = self.group.filter(|group| *group != head.cipher) {
            let what = format!("it is encrypted by {}, but this run names {group}", head.cipher);
            return wrong(what, "Omit `cipher` and `group`");
        }
        if head.normalisation != normalisation || head.key_columns != key_columns {
            let what = format!(
                "it is of {} key columns normalised as {}, but this run has {key_columns}, normalised as {normalisation} \
                 (`key`, `normalize`, `encoding`)",
                head.key_columns, head.normalisation
            );
            return wrong(what, "Use the filter's");
        }
        let (most, of) = match self.role {
            Role::Receiver => (head.capacity, "`capacity`"),
            Role::Sender => (head.queries, "`for`"),
        };
        if self.announced() > most {
            let what =
                format!("it is for at most {most} items on our side, and this run has {}", self.announced());
            return wrong(what, &format!("Use a filter that was made with a larger {of}, or none"));
        }
        let request = Request { group: Some(head.cipher), ..*self };
        Ok(Prepared { request, set: Ours::Whole(set), half: None, filter: Some(filter), keep: None })
    }

    /// Refuses shards, which use nothing that was prepared.
    fn check_in_one_piece(&self) -> Result<()> {
        match self.terms.shards {
            0 => Ok(()),
            _ => Err(Error::Usage(
                "a job in shards cannot use what was prepared. Omit `prepared`, `filter` or `shards`".into(),
            )),
        }
    }

    /// Refuses protocols that cannot use a filter.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check_filter(&self) -> Result<()> {
        self.check_in_one_piece()?;
        let those = protocols::names(|p| p.offers.iter().any(|offer| offer.filters));
        let uses = |protocol: &Protocol| protocol.offer(self.operation).is_some_and(|offer| offer.filters);
        match self.candidates()[..] {
            [Choice { protocol, .. }] if uses(protocol) => Ok(()),
            _ => Err(Error::Usage(format!(
                "`filter` is for {those} only, and no other protocol may be allowed. Omit `filter` or `protocol`"
            ))),
        }
    }

    /// Refuses protocols that cannot use a prepared half.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check_prepared(&self) -> Result<()> {
        self.check_in_one_piece()?;
        for Choice { protocol, group } in self.candidates() {
            if !protocol.offer(self.operation).is_some_and(|offer| offer.prepares) {
                return Err(Error::Usage(format!(
                    "`protocol={protocol}` cannot use a prepared half. Omit `prepared` or `protocol`"
                )));
            }
            // A half consists of points of one group.
            if group != self.group() {
                return Err(Error::Usage(format!(
                    "a half is prepared in one group, but the allowed protocols work in {} and {group}. \
                     Allow only one",
                    self.group()
                )));
            }
        }
        Ok(())
    }

    /// What determines our set and its padding.
    ///
    /// # Errors
    /// [`Error::Bug`] for a set on disk.
    pub fn basis(&self) -> Result<Basis<'a>> {
        let Set::Memory(set) = self.set else {
            return Err(Error::Bug("a set that is not in memory is for a job in shards".into()));
        };
        Ok(Basis {
            set,
            key_columns: self.key_columns,
            normalisation: self.normalisation,
            pad_to: self.pad_to,
            // Among several parties no dummy has a row.
            dummies: match self.parties {
                None => self.operation.dummies(self.role),
                Some(_) => Dummies::Random,
            },
            group: self.group(),
            threads: self.threads,
        })
    }

    /// The terms, with those that the operation does not use set to 0 or their default.
    pub(super) fn terms(&self) -> Terms {
        let Terms {
            max_row, both, modulus, min_count, malicious_sender, reveal_count, shared_values, ..
        } = self.terms;
        let payload = !self.sent_columns.is_empty();
        let Uses { rows, values, shares, .. } = self.operation.uses;
        let rows = rows == Rows::Items || payload || shares;
        Terms {
            payload,
            max_row: if rows { max_row } else { 0 },
            both,
            modulus: if values { modulus } else { Default::default() },
            min_count: if values { min_count } else { 0 },
            malicious_sender,
            reveal_count,
            shared_values: shares && shared_values && self.role == Role::Sender,
            several: self.parties.is_some(),
            bare: false,
            filter: self.terms.filter,
            shards: self.terms.shards,
        }
    }

    /// All choices that we allow, in order of preference, without repetition.
    pub fn candidates(&self) -> Vec<Choice> {
        let mut all = vec![Choice { protocol: self.protocol, group: self.group() }];
        self.alternatives.iter().for_each(|choice| {
            if !all.contains(choice) {
                all.push(*choice);
            }
        });
        if self.planning.is_some() {
            // What is not for a set of our size is not picked; if nothing is left, the first says why.
            let ours = match self.terms.shards {
                0 => self.announced(),
                number => shards::bound(self.announced(), number),
            };
            let sizes = if self.role == Role::Receiver { [ours, 0] } else { [0, ours] };
            let takes = |choice: &Choice| {
                choice.protocol.offer(self.operation).is_none_or(|offer| offer.takes(sizes))
            };
            if all.iter().any(takes) {
                all.retain(takes);
            }
        }
        all
    }

    /// What is computed with this set, by what all have agreed on.
    pub(super) fn task<'s>(
        &'s self,
        proposal: &Proposal,
        set: &'s Hashed<'s>,
        filter: Option<&'s filter::Opened>,
    ) -> Task<'s> {
        Task {
            operation: self.operation,
            role: self.role,
            group: proposal.choice.group,
            set,
            values: self.values,
            payloads: self.payloads,
            terms: proposal.hello.terms,
            filter: filter.map(|filter| &filter.stored),
        }
    }

    /// What the other side must have been asked for too. With `check`, both only find out whether a run is possible.
    /// Terms that the operation does not use are 0.
    pub fn hello(&self, check: bool) -> Hello {
        Hello {
            operation: self.operation,
            role: self.role,
            check,
            candidates: self.candidates(),
            key_columns: self.key_columns as u32,
            normalisation: self.normalisation.into(),
            sent_columns: self.sent_columns.to_vec(),
            value_scale: if self.operation.uses.values || self.operation.uses.shares {
                self.value_scale
            } else {
                0
            },
            terms: self.terms(),
            padded: self.pad_to.is_some(),
            list: self.parties.map(|me| me.roster().digest()),
            filter: None,
            job: None,
            workers: matches!(self.set, Set::Spread(_)),
            speeds: self.planning.filter(|_| self.parties.is_none()).map(|planning| planning.speeds),
        }
    }
}

/// Our set, hashed and padded.
pub(super) enum Ours<'a> {
    /// For a run in one piece.
    Whole(Hashed<'a>),
    /// For a job in shards.
    Stored(Arc<Stored>),
    /// For a job in shards that workers run.
    Spread(&'a Spread),
}

impl<'a> Ours<'a> {
    pub(super) fn whole(self) -> Result<Hashed<'a>> {
        match self {
            Ours::Whole(set) => Ok(set),
            Ours::Stored(_) | Ours::Spread(_) => {
                Err(Error::Bug("a set that is to be cut, for a run in one piece".into()))
            }
        }
    }
}

/// A checked request with its set hashed and padded.
pub struct Prepared<'a> {
    pub(super) request: Request<'a>,
    pub(super) set: Ours<'a>,
    half: Option<Half>,
    filter: Option<filter::Opened>,
    keep: Option<&'a dyn Keep>,
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
            request = Request {
                protocol: choice.protocol,
                group: Some(choice.group),
                alternatives: &[],
                planning: None,
                ..request
            };
        }
        Prepared { request, keep: Some(keep), ..self }
    }

    /// What we say to the peer first ([`Request::hello`]).
    fn hello(&self, check: bool) -> Hello {
        let filter = self.filter.as_ref().map(|filter| filter.facts.clone());
        let begun = self.keep.and_then(Keep::begun).filter(|_| self.request.terms.shards > 0);
        Hello { filter, job: begun.map(|begun| begun.session), ..self.request.hello(check) }
    }
}

/// Prepares and runs our side ([`run_if`]); everything is allowed. If the time before the first message must reveal
/// nothing, prepare before connecting instead.
///
/// # Errors
/// Those of [`Request::prepare`] and [`run_if`].
pub fn run(connected: impl Into<Connected>, request: &Request, rng: &mut Prng) -> Result<Outcome> {
    let prepared = request.prepare(rng)?;
    run_if(connected, prepared, &mut (), rng)
}

/// Runs our side, if `approval` allows it once the sizes are known. The result is opened after the connection is
/// closed, so the peer sees neither an error in it nor the time that takes.
///
/// # Errors
/// Any failure before both sides have confirmed the end is reported to the peer, without details of our side. Of an
/// error of `approval` the peer is told only the kind.
pub fn run_if(
    connected: impl Into<Connected>,
    prepared: Prepared,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<Outcome> {
    match connected.into() {
        Connected::Peer(connection) => run_of_two(*connection, prepared, approval, rng),
        Connected::Parties(connections) => several::run_if(connections, prepared, approval, rng),
    }
}

fn run_of_two(
    mut connection: Connection,
    prepared: Prepared,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<Outcome> {
    let began = SystemTime::now();
    let (wire, account) = (connection.wire.clone(), connection.channel.account().clone());
    account.begin(AGREEING);
    let hello = prepared.hello(false);
    let Prepared { request, mut set, half, filter, keep } = prepared;
    let in_memory = InMemory::default();
    let keep = keep.unwrap_or(&in_memory);
    let prepared = half.is_some() || filter.is_some() && request.role == Role::Receiver;
    let owner = filter.as_ref().map(|filter| filter.head.owner);
    let proposed = approved(&mut connection, (&request, hello), (owner, keep.begun()), approval, rng)
        .and_then(|proposal| {
            approval.begins(&proposal)?;
            // No message of the protocol has been sent yet, and none is sent unless this succeeds.
            if let (Some(half), Ours::Whole(set)) = (half, &mut set) {
                set.take_over(half.spend(&|| connection.channel.alive(), &mut |text| approval.warn(text))?);
            }
            Ok(proposal)
        });
    let proposal = match proposed {
        Ok(proposal) => proposal,
        Err(error) => return finish(connection, Err(error)),
    };
    let Terms { shards, .. } = proposal.hello.terms;
    let stages = proposal.choice.protocol.stages(request.operation, &proposal.hello.terms);
    connection.channel.begins(stages * shards.max(1) as usize);
    account.begin(SETUP);
    let theirs = proposal.parties.peer().announced;
    if let (Role::Receiver, Ours::Whole(set)) = (request.role, &mut set) {
        set.insert_listed(proposal.choice.protocol.inserted(request.operation, theirs));
    }
    let seat = proposal.parties.peer().seat;
    let wrong = Mutex::default();
    let job = Job { request: &request, proposal: &proposal, keep, wrong: &wrong };
    let computed = match &set {
        Ours::Stored(set) => job.run(set, connection, rng),
        Ours::Spread(set) => workers::run(&job, set, connection, rng),
        Ours::Whole(set) => {
            let task = request.task(&proposal, set, filter.as_ref());
            let mut cx = Context {
                ch: &mut connection.channel,
                session: proposal.session_id,
                rng,
                exponent: task.terms.exponent(),
                threads: request.threads,
            };
            let computed = compute(proposal.choice.protocol, &task, &mut cx, theirs);
            finish(connection, computed)
        }
    };
    // What is wrong with a result matters more than how the job broke off after that.
    let (sealed, confirmed) = computed.map_err(|error| shards::locked(&wrong).take().unwrap_or(error))?;
    account.begin(OPENING);
    let learned = sealed.open(confirmed).map_err(|e| e.by(seat))?;
    let session_id = proposal.name();
    let Proposal { choice, why, parties, .. } = proposal;
    let bytes = (wire.sent(), wire.received());
    let (messages, stages) = (Account::messages([&account]), account.stages());
    Ok(Outcome { learned, session_id, choice, why, began, parties, prepared, bytes, messages, stages })
}

fn compute<'a>(
    protocol: &'static Protocol,
    task: &Task<'a>,
    cx: &mut Context,
    theirs: Announced,
) -> Result<(Sealed<'a, Learned>, Confirmed)> {
    let sealed = protocols::run(protocol, task, cx, theirs)?;
    cx.ch.account().begin(CONFIRMING);
    Ok((sealed, confirm(cx.ch, &cx.session)?))
}

/// The outcome of a check.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// What all parties agreed on and allow.
    pub proposal: Proposal,
    /// How long each of the other parties expects to compute, in milliseconds, at its own speed, in their order.
    pub their_milliseconds: Vec<u64>,
}

/// Agrees with a peer that also runs a check, asks `approval`, and ends. `milliseconds` returns how long our side
/// expects to compute.
///
/// # Errors
/// Those of [`run_if`]. Nothing about the data but the sizes was sent.
pub fn check(
    connected: impl Into<Connected>,
    prepared: &Prepared,
    approval: &mut dyn Approval,
    milliseconds: &dyn Fn(&Proposal) -> Result<u64>,
    rng: &mut Prng,
) -> Result<Checked> {
    let request = prepared.request();
    let mut connection = match connected.into() {
        Connected::Peer(connection) => *connection,
        Connected::Parties(connections) => {
            return several::check(connections, request, approval, milliseconds, rng);
        }
    };
    let hello = prepared.hello(true);
    let owner = prepared.filter.as_ref().map(|filter| filter.head.owner);
    let begun = prepared.keep.and_then(Keep::begun);
    let checked =
        approved(&mut connection, (request, hello), (owner, begun), approval, rng).and_then(|proposal| {
            let theirs = predict(&mut connection.channel, milliseconds(&proposal)?)?;
            Ok(Checked { proposal, their_milliseconds: vec![theirs] })
        });
    finish(connection, checked)
}

/// Closes the connection, after telling the peer if something went wrong.
pub(super) fn finish<T>(mut connection: Connection, result: Result<T>) -> Result<T> {
    let result = result.map_err(|error| {
        let error = connection.channel.explain(error).by(connection.seat);
        connection.channel.abort(&error);
        error
    });
    connection.channel.close();
    result
}

/// Agrees on the run, and returns when both sides allow it. `owner` is that of the filter that we have, if we have one, and
/// `begun` the job that is resumed.
fn approved(
    connection: &mut Connection,
    (request, hello): (&Request, Hello),
    (owner, begun): (Option<Fingerprint>, Option<&Begun>),
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<Proposal> {
    request.check()?;
    if request.parties.is_some() {
        return Err(Error::Bug("a run of several parties over one connection".into()));
    }
    let ours = Announced { size: request.announced(), padded: hello.padded };
    let met = meet(connection, &hello, ours.size, rng)?;
    let peer = Party {
        seat: connection.seat,
        fingerprint: connection.peer,
        name: connection.peer_name.clone(),
        announced: Announced { size: 0, padded: met.they_pad },
    };
    // A placeholder until the receiver has chosen; there is at least one.
    let choice = met.common[0];
    let (facts, agreed) = met.filter.clone().unzip();
    let terms =
        Terms { shared_values: met.shared_values, filter: agreed.or(hello.terms.filter), ..hello.terms };
    let hello = Hello { terms, filter: facts, ..hello };
    match (owner, request.role) {
        (Some(owner), Role::Receiver) if connection.our != Some(owner) => {
            return Err(Error::Usage("`filter` was made under another identity than this run has".into()));
        }
        // It showed the digest of the filter that we have, which is of somebody else.
        (Some(owner), Role::Sender) if connection.peer != Some(owner) => {
            return Err(Error::misbehaves("its filter is of another identity than its own"));
        }
        _ => {}
    }
    let session_id = met.session_id(choice);
    let job = hello.job;
    let (why, parties) = (None, peer.into());
    let mut proposal = Proposal { session_id, hello, choice, why, job, seat: None, ours, parties };
    let channel = &mut connection.channel;
    let sized = tell_size(channel, ours.size).and_then(|their_size| {
        let peer = proposal.parties.peer_mut();
        peer.announced.size = their_size;
        if their_size > request.max_peer_items {
            return Err(too_large(peer, request));
        }
        begun.map_or(Ok(()), |begun| begun.check(peer))?;
        shards::check_peer(peer, request)?;
        // What comes to us, and what we look up, follows from the capacity.
        let capacity = met.filter.as_ref().filter(|(_, agreed)| !agreed.held).map(|(facts, _)| facts.capacity);
        if let Some(capacity) = capacity.filter(|n| request.role == Role::Sender && *n > request.max_peer_items) {
            return Err(Error::Refused(format!(
                "the peer's filter is for {capacity} items, but `max_peer_items` is {}. Raise it if you want to spend the \
                 time",
                request.max_peer_items
            )));
        }
        let picked = choose(channel, &proposal, &met, request.planning.as_ref())?;
        (proposal.choice, proposal.why) = (picked.choice, picked.why);
        proposal.session_id = met.session_id(proposal.choice);
        within_limits(&proposal)
    });
    // A log must list every peer that may know our size.
    if let Err(error) = sized {
        approval.refused(&proposal, &error);
        return Err(error);
    }
    approval.approve(&proposal)?;
    go(&mut connection.channel)?;
    Ok(proposal)
}

/// This party's set is larger than we accept.
pub(super) fn too_large(party: &Party, request: &Request) -> Error {
    Error::Refused(format!(
        "{}'s set has {} items, but `max_peer_items` is {}. Raise it if you want to spend the time and \
         memory",
        party.seat, party.announced.size, request.max_peer_items
    ))
}

/// Refuses sets that are larger than this version or the protocol supports, counting the dummies that the protocol inserts.
fn within_limits(proposal: &Proposal) -> Result<()> {
    let (protocol, deal) = proposal.deal();
    let (n_receiver, n_sender) = protocol.sizes(&deal);
    if n_receiver.max(n_sender) > MAX_SET {
        return Err(Error::Refused(format!(
            "with dummies the sets have {n_receiver} and {n_sender} items, more than this version supports \
             ({MAX_SET}). Agree on smaller values for `pad_to`"
        )));
    }
    protocol.check_sizes(deal.operation, [n_receiver, n_sender]).map_err(Error::Refused)?;
    let Some(Facts { capacity, queries, .. }) = proposal.hello.filter else { return Ok(()) };
    if n_receiver > capacity {
        return Err(Error::Refused(format!(
            "the receiver has {n_receiver} items, and its filter is for {capacity}. Use a filter that was made with a \
             larger `capacity`"
        )));
    }
    if n_sender > queries {
        return Err(Error::Refused(format!(
            "the sender has {n_sender} items, and the receiver's filter is for {queries}. Use a filter that was made with \
             a larger `for`"
        )));
    }
    Ok(())
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
