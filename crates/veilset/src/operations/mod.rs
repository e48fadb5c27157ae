//! The operations: what two parties compute. One file per operation and protocol family.
//!
//! All of them are called through [`run`], which checks that what a task brings belongs together. The roles
//! themselves are not public: a set with the wrong dummies would give wrong results without a word.
//!
//! Errors are the same in all of them: [`Error::Peer`] if a message is not the expected one or the peer gave
//! up, [`Error::Network`] if the connection ended or stood still, [`Error::Cancelled`] if we were stopped,
//! [`Error::Bug`] for arguments that do not belong together. What only a result shows is in [`Sealed`].

pub(crate) mod both;
pub mod count;
pub mod intersect;
pub(crate) mod row;
mod stages;
pub mod sum;
pub mod union;

pub use stages::stages;

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::hashed::{Dummies, Hashed};
use crate::item::Items;
use crate::membership::Mqrpmt;
use crate::membership::cwprf::{CwPrf, GolombTags};
use crate::membership::rpmt::Comparison;
use crate::oprf::Oprf;
use crate::oprf::multi_point::MultiPoint;
use crate::oprf::vole::Rr22;
use crate::params::MAX_SET;
use crate::rng::Prng;
use crate::vole::silent::Silent;
use std::fmt;
use std::str::FromStr;

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The receiver learns which of its items the sender has.
    Intersect,
    /// The receiver learns all items of both.
    Union,
    /// The receiver learns the number of matches and the size of the union.
    Count,
    /// Both learn the number of matches; the sender learns the sum of its values over them.
    Sum,
}

/// Who learns the result of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Learns the result (in `sum`, the number of matches).
    Receiver,
    /// Contributes its set (in `sum`, its values too, and learns their sum).
    Sender,
}

/// How it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// mqRPMT from a commutative weak PRF, and OT extension: all operations ([`crate::membership::cwprf`]).
    Dh,
    /// Classic Diffie-Hellman PSI: intersect ([`intersect::dh`]).
    DhPsi,
    /// A multi-point OPRF from oblivious transfer: intersect ([`crate::oprf::multi_point`]).
    Cm20,
    /// A multi-point OPRF from vector OLE: intersect ([`crate::oprf::vole`]).
    Vole,
    /// Membership tests in bins, from OT extension: union ([`union::krtw19`]).
    Krtw19,
    /// The same, compared in the clear.
    Krtw19Plain,
}

/// What a party says of its set before it sends anything else about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// The number of items, or the bound that the set is padded to.
    pub size: usize,
    /// Whether it is padded.
    pub padded: bool,
}

/// What both sides agreed on beside the operation. What does not matter to it is 0 or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Whether a payload travels with the sender's items (intersect, union).
    pub payload: bool,
    /// Bytes of a row: the longest item and its payload together in union, the longest payload in intersect.
    pub max_row: usize,
    /// Whether both get the result (intersect, union, count); otherwise the receiver.
    pub both: bool,
    /// The modulus of a sum.
    pub modulus: sum::Modulus,
    /// The least number of matches for which the sender of sum learns anything; 0 for no limit.
    pub min_count: u64,
    /// Whether the receiver is protected from a sender that deviates (cm20).
    pub malicious_sender: bool,
}

/// One party's part of an operation.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// What is computed.
    pub operation: Operation,
    /// Which part is ours.
    pub role: Role,
    /// How it is computed.
    pub protocol: Protocol,
    /// Our set, padded if so wished.
    pub set: &'a Hashed<'a>,
    /// For the sender of sum: a value for each item of the set, without dummies. Otherwise empty.
    pub values: &'a [i128],
    /// For a sender with payload: that of each item of the set, without dummies. Otherwise empty.
    pub payloads: &'a Items,
    /// What was agreed.
    pub terms: Terms,
}

/// What a party learned beside the size of the peer's set. `Debug` shows the kind only.
#[derive(Clone, PartialEq, Eq)]
pub enum Learned {
    /// The sender of intersect, union and count, unless both get the result.
    Nothing,
    /// Intersect: the items of this party's set that match.
    Matching(intersect::Matching),
    /// Receiver of union: the items that only the sender has.
    New(union::mqrpmt::New),
    /// Sender of union, if both get the result: all items of both, sorted.
    Union(Items),
    /// Count, and the receiver of sum: the number of matches.
    Matches(u64),
    /// Sender of sum; `None` if there were fewer matches than agreed.
    Sum(Option<sum::Sum>),
}

/// A result that the peer is not to hear of before the run is confirmed.
///
/// Whether the rows we chose to read make sense, and how long it takes to look them up, depends on bits that
/// the peer must not learn. So that verdict and that work wait in here until both sides have confirmed the
/// end: an error from [`Sealed::open`] is ours alone and is not for the peer.
pub struct Sealed<'a, T>(Box<dyn FnOnce() -> Result<T> + Send + 'a>);

/// Says that both sides have confirmed the end: [`crate::session::confirm`] gives it.
#[derive(Debug)]
pub struct Confirmed(pub(crate) ());

impl<'a, T> Sealed<'a, T> {
    /// Seals what `work` will find.
    pub fn new(work: impl FnOnce() -> Result<T> + Send + 'a) -> Self {
        Sealed(Box::new(work))
    }

    /// Does the work.
    ///
    /// # Errors
    /// [`Error::Peer`] if the peer cannot have followed the protocol. It is not to hear of that.
    pub fn open(self, _: Confirmed) -> Result<T> {
        (self.0)()
    }

    fn map<U>(self, f: impl FnOnce(T) -> U + Send + 'a) -> Sealed<'a, U>
    where
        T: 'a,
    {
        Sealed::new(move || (self.0)().map(f))
    }
}

impl<'a> Sealed<'a, Learned> {
    /// A result that the receiver sent on, if both get it.
    fn sent_on(result: Option<Self>) -> Self {
        result.unwrap_or(Sealed::new(|| Ok(Learned::Nothing)))
    }
}

/// The number of matches among the bits `e` of an mqRPMT against a set of `n_y` items.
fn matches(e: &[bool], n_y: usize) -> Result<usize> {
    let matches = e.iter().filter(|&&e| e).count();
    match matches <= n_y {
        true => Ok(matches),
        false => Err(Error::misbehaves_unseen(format!("{matches} of its items match our {n_y}"))),
    }
}

/// Runs one party's part. The peer announced its set as `peer`.
///
/// # Errors
/// Besides those of the protocols: [`Error::Usage`] for sets larger than [`MAX_SET`], [`Error::Bug`] for a set that is
/// padded with dummies of the wrong kind, or lacks the listed ones that the peer's set asks for
/// ([`Protocol::inserted`]).
pub fn run<'a>(
    task: &Task<'a>,
    ch: &mut Channel,
    session: &SessionId,
    peer: Announced,
    rng: &mut Prng,
) -> Result<Sealed<'a, Learned>> {
    let n = task.check(peer)?;
    match (task.protocol, task.operation, task.role) {
        (Protocol::Dh, ..) => over_mqrpmt(task, &CwPrf(GolombTags), ch, session, n, rng),
        (Protocol::DhPsi, Operation::Intersect, Role::Receiver) => {
            let sealed = intersect::dh::receiver(ch, session, task.set, n, &task.terms, rng)?;
            Ok(sealed.map(Learned::Matching))
        }
        (Protocol::DhPsi, Operation::Intersect, Role::Sender) => {
            let found = intersect::dh::sender(ch, session, task.set, task.payloads, n, &task.terms, rng)?;
            Ok(Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching))))
        }
        (Protocol::Cm20, Operation::Intersect, _) => {
            let protocol = MultiPoint { malicious_sender: task.terms.malicious_sender };
            over_oprf(task, &protocol, ch, session, n, rng)
        }
        (Protocol::Vole, Operation::Intersect, _) => {
            over_oprf(task, &Rr22::new(Silent::default()), ch, session, n, rng)
        }
        (Protocol::Krtw19 | Protocol::Krtw19Plain, Operation::Union, _) => {
            over_krtw19(task, ch, session, n, rng)
        }
        (protocol, operation, _) => Err(Error::Bug(format!("{operation} by {protocol}"))),
    }
}

impl Comparison {
    /// That of the protocol, of the two that differ in it. The others have none, and count as private.
    pub(crate) fn of(protocol: Protocol) -> Comparison {
        match protocol {
            Protocol::Krtw19Plain => Comparison::Plain,
            Protocol::Krtw19 | Protocol::Dh | Protocol::DhPsi | Protocol::Cm20 | Protocol::Vole => {
                Comparison::Private
            }
        }
    }
}

/// Runs one party's part of a union over membership tests in bins. The peer's set has `n` items in the protocol.
fn over_krtw19<'a>(
    task: &Task<'a>,
    ch: &mut Channel,
    session: &SessionId,
    n: usize,
    rng: &mut Prng,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, payloads, ref terms, .. } = *task;
    let comparison = Comparison::of(task.protocol);
    match task.role {
        Role::Receiver => {
            Ok(union::krtw19::receiver(comparison, ch, session, set, n, terms, rng)?.map(Learned::New))
        }
        Role::Sender => {
            let union = union::krtw19::sender(comparison, ch, session, set, payloads, n, terms, rng)?;
            Ok(Sealed::sent_on(union.map(|sealed| sealed.map(Learned::Union))))
        }
    }
}

/// Runs one party's part of an intersection over an OPRF. The peer's set has `n` items in the protocol.
fn over_oprf<'a>(
    task: &Task<'a>,
    protocol: &impl Oprf,
    ch: &mut Channel,
    session: &SessionId,
    n: usize,
    rng: &mut Prng,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, payloads, ref terms, .. } = *task;
    Ok(match task.role {
        Role::Receiver => {
            intersect::oprf::receiver(protocol, ch, session, set, n, terms, rng)?.map(Learned::Matching)
        }
        Role::Sender => {
            let found = intersect::oprf::sender(protocol, ch, session, set, payloads, n, terms, rng)?;
            Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching)))
        }
    })
}

/// Runs one party's part over an mqRPMT. The peer's set has `n` items in the protocol.
fn over_mqrpmt<'a>(
    task: &Task<'a>,
    protocol: &impl Mqrpmt,
    ch: &mut Channel,
    session: &SessionId,
    n: usize,
    rng: &mut Prng,
) -> Result<Sealed<'a, Learned>> {
    let Task { operation, role, set, values, payloads, ref terms, .. } = *task;
    Ok(match (operation, role) {
        (Operation::Intersect, Role::Receiver) => {
            intersect::mqrpmt::receiver(protocol, ch, session, set, n, terms, rng)?.map(Learned::Matching)
        }
        (Operation::Intersect, Role::Sender) => {
            let found = intersect::mqrpmt::sender(protocol, ch, session, set, payloads, n, terms, rng)?;
            Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching)))
        }
        (Operation::Union, Role::Receiver) => {
            union::mqrpmt::receiver(protocol, ch, session, set, n, terms, rng)?.map(Learned::New)
        }
        (Operation::Union, Role::Sender) => {
            let union = union::mqrpmt::sender(protocol, ch, session, set, payloads, n, terms, rng)?;
            Sealed::sent_on(union.map(|sealed| sealed.map(Learned::Union)))
        }
        (Operation::Count, Role::Receiver) => {
            count::receiver(protocol, ch, session, set, n, terms.both, rng)?.map(Learned::Matches)
        }
        (Operation::Count, Role::Sender) => {
            let matches = count::sender(protocol, ch, session, set, n, terms.both, rng)?;
            Sealed::new(move || Ok(matches.map_or(Learned::Nothing, Learned::Matches)))
        }
        (Operation::Sum, Role::Receiver) => {
            sum::receiver(protocol, ch, session, set, n, terms, rng)?.map(Learned::Matches)
        }
        (Operation::Sum, Role::Sender) => {
            sum::sender(protocol, ch, session, set, values, n, terms, rng)?.map(Learned::Sum)
        }
    })
}

impl Task<'_> {
    /// Refuses what does not belong together. Returns the size of the peer's set in the protocol.
    fn check(&self, peer: Announced) -> Result<usize> {
        self.check_dummies(peer)?;
        let n = peer.size + self.set.inserted_by_peer();
        let largest = n.max(self.set.len());
        if largest > MAX_SET {
            return Err(Error::Usage(format!("a set of {largest} items: {MAX_SET} is the most")));
        }
        let payloads =
            if self.terms.payload && self.role == Role::Sender { self.set.items().len() } else { 0 };
        if self.terms.malicious_sender && self.protocol != Protocol::Cm20 {
            return Err(Error::Bug(format!("{} against a malicious sender", self.protocol)));
        }
        match self.payloads.len() == payloads {
            true => Ok(n),
            false => Err(Error::Bug("payloads that do not belong to the items".into())),
        }
    }

    /// Refuses dummies that give wrong results: those of the sender of a union would be among the new items if the
    /// receiver did not have them, and others would match if it did.
    fn check_dummies(&self, peer: Announced) -> Result<()> {
        let Task { operation, role, protocol, set, .. } = *self;
        let (kind, due) = (protocol.dummies(operation, role), protocol.inserted(operation, peer));
        let due = if role == Role::Receiver { due } else { 0 };
        if set.dummies().is_some_and(|dummies| dummies != kind) {
            return Err(Error::Bug(format!(
                "the {role} of {operation} by {protocol} pads with dummies of another kind: {}",
                match kind {
                    Dummies::Random => "random ones (Hashed::padded)",
                    Dummies::Listed => "those of the public list (Hashed::padded_from_list)",
                }
            )));
        }
        match set.inserted() == due {
            true => Ok(()),
            false => Err(Error::Bug(format!(
                "the {role} of {operation} by {protocol} inserts {due} listed dummies for a peer's set of {} \
                 (Hashed::insert_listed, Protocol::inserted), not {}",
                peer.size,
                set.inserted()
            ))),
        }
    }
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 6] = [
        Protocol::Dh,
        Protocol::DhPsi,
        Protocol::Cm20,
        Protocol::Vole,
        Protocol::Krtw19,
        Protocol::Krtw19Plain,
    ];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Dh => "dh",
            Protocol::DhPsi => "dh-psi",
            Protocol::Cm20 => "cm20",
            Protocol::Vole => "vole",
            Protocol::Krtw19 => "krtw19",
            Protocol::Krtw19Plain => "krtw19-plain",
        }
    }

    /// The groups that protocols work in, as typed.
    pub const GROUPS: [&str; 2] = ["curve25519", "ristretto255"];

    /// The one that this works in; those from OT extension do so in the base OTs only.
    pub const fn group(self) -> &'static str {
        match self {
            Protocol::Dh | Protocol::DhPsi => Protocol::GROUPS[0],
            _ => Protocol::GROUPS[1],
        }
    }

    /// Whether it computes the operation.
    pub fn computes(self, operation: Operation) -> bool {
        match self {
            Protocol::Dh => true,
            Protocol::DhPsi | Protocol::Cm20 | Protocol::Vole => operation == Operation::Intersect,
            Protocol::Krtw19 | Protocol::Krtw19Plain => operation == Operation::Union,
        }
    }

    /// The kind of dummies that pad a set.
    ///
    /// Over mqRPMT the sender's dummies in a union are those that the receiver inserts, or they would be delivered. All
    /// others match nothing; by krtw19 the sender's count as the bottom item once they are in their bins.
    pub fn dummies(self, operation: Operation, role: Role) -> Dummies {
        match (self, operation, role) {
            (Protocol::Dh, Operation::Union, Role::Sender) => Dummies::Listed,
            (Protocol::Dh, Operation::Union, Role::Receiver) => Dummies::Random,
            (Protocol::Dh, Operation::Intersect | Operation::Count | Operation::Sum, _) => Dummies::Random,
            (Protocol::DhPsi | Protocol::Cm20 | Protocol::Vole, ..) => Dummies::Random,
            (Protocol::Krtw19 | Protocol::Krtw19Plain, ..) => Dummies::Random,
        }
    }

    /// How many listed dummies the receiver inserts in its set: as many as that of the sender can have.
    pub fn inserted(self, operation: Operation, sender: Announced) -> usize {
        match (self.dummies(operation, Role::Sender), sender.padded) {
            (Dummies::Listed, true) => sender.size,
            (Dummies::Listed, false) | (Dummies::Random, _) => 0,
        }
    }

    /// The one to take where the user named none. For intersect dh-psi sends less, and a receiver that deviates
    /// can test fewer guesses by it; both compute as much.
    pub const fn of(operation: Operation) -> Protocol {
        match operation {
            Operation::Intersect => Protocol::DhPsi,
            _ => Protocol::Dh,
        }
    }
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 4] =
        [Operation::Intersect, Operation::Union, Operation::Count, Operation::Sum];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Intersect => "intersect",
            Operation::Union => "union",
            Operation::Count => "count",
            Operation::Sum => "sum",
        }
    }
}

impl Role {
    /// Both of them.
    pub const ALL: [Role; 2] = [Role::Receiver, Role::Sender];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Receiver => "receiver",
            Role::Sender => "sender",
        }
    }

    /// The peer's role.
    #[must_use]
    pub const fn other(self) -> Role {
        match self {
            Role::Receiver => Role::Sender,
            Role::Sender => Role::Receiver,
        }
    }
}

impl fmt::Debug for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Learned::Nothing => "Nothing",
            Learned::Matching(_) => "Matching(..)",
            Learned::New(_) => "New(..)",
            Learned::Union(_) => "Union(..)",
            Learned::Matches(_) => "Matches(..)",
            Learned::Sum(_) => "Sum(..)",
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let found = Operation::ALL.into_iter().find(|o| o.name() == s);
        found.ok_or_else(|| format!("\"{s}\" is not an operation: intersect, union, count, sum"))
    }
}

impl FromStr for Protocol {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let found = Protocol::ALL.into_iter().find(|p| p.name() == s);
        found
            .ok_or_else(|| format!("\"{s}\" is not a protocol: dh, dh-psi, cm20, vole, krtw19, krtw19-plain"))
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let found = Role::ALL.into_iter().find(|r| r.name() == s);
        found.ok_or_else(|| format!("\"{s}\" is not a role: receiver, sender"))
    }
}

#[cfg(test)]
pub(crate) mod tests;
