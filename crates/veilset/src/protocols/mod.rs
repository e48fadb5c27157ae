//! The protocols: what each one is, in one static entry. How it works stands in the figures' files
//! ([`crate::operations`] and below).
//!
//! An entry says what the protocol offers, what it assumes, what it costs, and how it runs. Everything else asks the
//! entry and never which protocol it is: to add one is to add a file here and a line to [`ALL`].
//!
//! All of them run through [`run`], which checks that what a task brings belongs together. The roles themselves are
//! not public: a set with the wrong dummies would give wrong results without a word.
//!
//! Errors are the same in all of them: [`Error::Peer`] if a message is not the expected one or the peer gave
//! up, [`Error::Network`] if the connection ended or stood still, [`Error::Cancelled`] if we were stopped,
//! [`Error::Bug`] for arguments that do not belong together. What only a result shows is in [`Sealed`].

mod cm20;
pub mod cost;
pub(crate) mod dh;
pub(crate) mod dh_psi;
mod krtw19;
mod vole;

pub use cm20::CM20;
pub use cost::{Cost, Deal};
pub use dh::DH;
pub use dh_psi::DH_PSI;
pub use krtw19::{KRTW19, KRTW19_PLAIN};
pub use vole::VOLE;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::{Dummies, Hashed};
use crate::item::Items;
use crate::operations::{Announced, Learned, Operation, Role, Sealed, Terms, intersect};
use crate::oprf::Oprf;
use crate::params::MAX_SET;
use std::fmt;

/// All protocols, in the order in which users see them.
pub static ALL: [&Protocol; 6] = [&DH, &DH_PSI, &CM20, &VOLE, &KRTW19, &KRTW19_PLAIN];

/// The groups that protocols work in, as typed.
pub mod groups {
    use crate::group::Group;
    use crate::group::curve25519::Curve25519;
    use crate::group::ristretto255::Ristretto255;

    /// Curve25519, abscissae only ([`crate::group::curve25519`]).
    pub const CURVE25519: &str = Curve25519::NAME;
    /// ristretto255 ([`crate::group::ristretto255`]).
    pub const RISTRETTO255: &str = Ristretto255::NAME;
}

/// A protocol: how operations are computed. Two are equal if they have the same name.
pub struct Protocol {
    /// The name as typed.
    pub name: &'static str,
    /// What it is made of, in a line.
    pub summary: &'static str,
    /// The groups it can work in, the default first; those from OT extension do so in the base OTs only.
    pub groups: &'static [&'static str],
    /// The operations it computes, each once.
    pub offers: &'static [Offer],
    /// What the secrecy rests on under these terms, in sentences.
    pub assumptions: fn(&Terms) -> Vec<&'static str>,
    /// How many stages a run announces to an [`crate::channel::Observer`], one after the other, in either role.
    pub stages: fn(Operation, &Terms) -> usize,
    /// What a run costs.
    ///
    /// # Errors
    /// [`Error::Usage`] for sets that are too large for it.
    pub cost: fn(&Deal) -> Result<Cost>,
    /// Runs one party's part of an operation that it offers. The peer's set has so many items in the protocol.
    run: Run,
}

type Run = for<'a> fn(&Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>;

/// An operation that a protocol computes, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The operation.
    pub operation: Operation,
    /// Whether it is the one to take where the user named none: exactly one protocol for each operation.
    pub preferred: bool,
    /// Whether the receiver can be protected from a sender that deviates ([`Terms::malicious_sender`]). Otherwise both
    /// parties are semi-honest.
    pub malicious_sender: bool,
    /// Whether the sender pads with dummies of the public list, which the receiver inserts in its own set.
    pub inserts_list: bool,
    /// Whether half of a party's work can be done before it meets the peer ([`crate::artefact`]).
    pub prepares: bool,
}

impl Offer {
    /// An operation against semi-honest parties, with random dummies, not preferred, and nothing to prepare.
    pub const fn of(operation: Operation) -> Offer {
        Offer { operation, preferred: false, malicious_sender: false, inserts_list: false, prepares: false }
    }
}

/// The protocol of this name.
///
/// # Errors
/// The name is none, and which there are.
pub fn named(name: &str) -> Result<&'static Protocol, String> {
    let found = ALL.into_iter().find(|p| p.name == name);
    found.ok_or_else(|| format!("\"{name}\" is not a protocol: {}", names(|_| true)))
}

/// The one to take where the user named none. For intersect dh-psi sends less than dh, and a receiver that deviates can
/// test fewer guesses by it; both compute as much.
pub fn preferred(operation: Operation) -> &'static Protocol {
    let preferred = |p: &&Protocol| p.offer(operation).is_some_and(|offer| offer.preferred);
    // A test says that there is one.
    ALL.into_iter().find(preferred).unwrap_or(&DH)
}

/// The one to take where the user wants to withstand a sender that deviates; none if there is none.
pub fn against_malicious_senders(operation: Operation) -> Option<&'static Protocol> {
    ALL.into_iter().find(|p| p.offer(operation).is_some_and(|offer| offer.malicious_sender))
}

/// The names of those that `wanted` is true of.
pub fn names(wanted: impl Fn(&Protocol) -> bool) -> String {
    let names: Vec<&str> = ALL.into_iter().filter(|p| wanted(p)).map(|p| p.name).collect();
    names.join(", ")
}

impl Protocol {
    /// What it offers for the operation, if it computes it.
    pub fn offer(&self, operation: Operation) -> Option<&'static Offer> {
        self.offers.iter().find(|offer| offer.operation == operation)
    }

    /// Whether it computes the operation.
    pub fn computes(&self, operation: Operation) -> bool {
        self.offer(operation).is_some()
    }

    /// The group it works in where none is named.
    pub const fn group(&self) -> &'static str {
        self.groups[0]
    }

    /// The verdict on a group that it does not work in.
    pub(crate) fn refuse_group(&self, group: &str) -> Error {
        Error::Usage(format!("{self} does not work in {group}, but in {}", self.groups.join(", ")))
    }

    /// The kind of dummies that pad a set.
    ///
    /// Over mqRPMT the sender's dummies in a union are those that the receiver inserts, or they would be delivered. All
    /// others match nothing; by krtw19 the sender's count as the bottom item once they are in their bins.
    pub fn dummies(&self, operation: Operation, role: Role) -> Dummies {
        let listed = self.offer(operation).is_some_and(|offer| offer.inserts_list);
        match (listed, role) {
            (true, Role::Sender) => Dummies::Listed,
            (true, Role::Receiver) => Dummies::Random,
            (false, Role::Receiver | Role::Sender) => Dummies::Random,
        }
    }

    /// How many listed dummies the receiver inserts in its set: as many as that of the sender can have.
    pub fn inserted(&self, operation: Operation, sender: Announced) -> usize {
        match (self.dummies(operation, Role::Sender), sender.padded) {
            (Dummies::Listed, true) => sender.size,
            (Dummies::Listed, false) | (Dummies::Random, _) => 0,
        }
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// One party's part of an operation.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// What is computed.
    pub operation: Operation,
    /// Which part is ours.
    pub role: Role,
    /// How it is computed.
    pub protocol: &'static Protocol,
    /// The group that it works in, one of the protocol's.
    pub group: &'static str,
    /// Our set, padded if so wished.
    pub set: &'a Hashed<'a>,
    /// For the sender of sum: a value for each item of the set, without dummies. Otherwise empty.
    pub values: &'a [i128],
    /// For a sender with payload: that of each item of the set, without dummies. Otherwise empty.
    pub payloads: &'a Items,
    /// What was agreed.
    pub terms: Terms,
}

/// Runs one party's part. The peer announced its set as `peer`.
///
/// # Errors
/// Besides those of the protocols: [`Error::Usage`] for sets larger than [`MAX_SET`] and for a group that is not one of
/// the protocol's, [`Error::Bug`] for a set that is
/// padded with dummies of the wrong kind, or lacks the listed ones that the peer's set asks for
/// ([`Protocol::inserted`]).
pub fn run<'a>(task: &Task<'a>, cx: &mut Context, peer: Announced) -> Result<Sealed<'a, Learned>> {
    let n = task.check(peer)?;
    (task.protocol.run)(task, cx, n)
}

impl Task<'_> {
    /// Refuses what does not belong together. Returns the size of the peer's set in the protocol.
    fn check(&self, peer: Announced) -> Result<usize> {
        let Some(offer) = self.protocol.offer(self.operation) else { return Err(self.not_offered()) };
        if !self.protocol.groups.contains(&self.group) {
            return Err(self.in_no_such_group());
        }
        self.check_dummies(peer)?;
        let n = peer.size + self.set.inserted_by_peer();
        let largest = n.max(self.set.len());
        if largest > MAX_SET {
            return Err(Error::Usage(format!("a set of {largest} items: {MAX_SET} is the most")));
        }
        let payloads =
            if self.terms.payload && self.role == Role::Sender { self.set.items().len() } else { 0 };
        if self.terms.malicious_sender && !offer.malicious_sender {
            return Err(Error::Bug(format!("{} against a malicious sender", self.protocol)));
        }
        match self.payloads.len() == payloads {
            true => Ok(n),
            false => Err(Error::Bug("payloads that do not belong to the items".into())),
        }
    }

    /// The verdict on a task that the protocol does not offer.
    fn not_offered(&self) -> Error {
        Error::Bug(format!("{} by {}", self.operation, self.protocol))
    }

    /// The verdict on a group that the protocol does not work in.
    fn in_no_such_group(&self) -> Error {
        self.protocol.refuse_group(self.group)
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

/// Runs one party's part of an intersection over an OPRF. The peer's set has `n` items in the protocol.
fn over_oprf<'a>(
    task: &Task<'a>,
    protocol: &impl Oprf,
    cx: &mut Context,
    n: usize,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, payloads, ref terms, .. } = *task;
    Ok(match task.role {
        Role::Receiver => intersect::oprf::receiver(protocol, cx, set, n, terms)?.map(Learned::Matching),
        Role::Sender => {
            let found = intersect::oprf::sender(protocol, cx, set, payloads, n, terms)?;
            Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching)))
        }
    })
}

/// An assumption of all protocols except those that withstand a sender that deviates.
const SEMI_HONEST: &str =
    "both parties follow the protocol (semi-honest): nothing binds a party to its true set or choices";
/// An assumption of all protocols from oblivious transfer.
const BASE_OTS: &str = "decisional Diffie-Hellman on ristretto255, for the base OTs";

#[cfg(test)]
mod tests;
