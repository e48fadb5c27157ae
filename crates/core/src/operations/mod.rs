//! The operations that two or several parties can compute. One file per operation and protocol family.
//!
//! They run over a protocol of [`crate::protocols`]. The functions of the two roles are not public:
//! [`crate::protocols::run`] calls them.
//!
//! All operations return the same errors. [`Error::Peer`]: a message was not the expected one, or the peer gave
//! up. [`Error::Network`]: the connection ended or stalled. [`Error::Cancelled`]: this side was cancelled.
//! [`Error::Usage`]: the sets are too large, or a thread cannot be started. [`Error::Input`]: the file of a filter made
//! in advance is damaged. [`Error::Output`]: a recording cannot be written. [`Error::Bug`]: the arguments are
//! inconsistent. [`Sealed`] holds verdicts that depend on the result.

pub(crate) mod both;
pub mod cost;
pub mod count;
pub mod dc17;
mod facts;
pub mod id;
pub mod intersect;
pub mod multiparty;
pub(crate) mod row;
mod sealed;
pub mod share;
pub mod sum;
pub mod union;

pub use count::COUNT;
pub use facts::{Fact, Numbers, View};
pub use id::ID;
pub use intersect::INTERSECT;
pub use sealed::{CONFIRMATION, Confirmed, Sealed, confirm};
pub use share::SHARE;
pub use sum::SUM;
pub use union::UNION;

use crate::assumption::Assumption;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::{Dummies, HashedSet};
use crate::item::{ItemSet, Items};
use crate::membership::Mqrpmt;
use crate::membership::encrypted_filter::Stored;
use crate::membership::permuted::{MqrpmtStar, PermutedMqpmt};
use crate::params::filter::Agreed;
use crate::params::{self, LAMBDA};
use cost::{Cost, Deal, Transfer};
use std::fmt;
use std::str::FromStr;

/// All operations, in the order shown to users.
pub static ALL: [&Operation; 6] = [&INTERSECT, &UNION, &COUNT, &SUM, &SHARE, &ID];

/// An operation: one static entry. Two operations are equal if their names are equal.
///
/// Protocols list the operations that they offer. All other code consults the entry and does not ask which operation it is. To
/// add an operation, add a file here, a line to [`ALL`], and an offer to each protocol that computes it.
pub struct Operation {
    /// The name as typed.
    pub name: &'static str,
    /// Its result, in one line.
    pub summary: &'static str,
    /// A longer description: the receiver's and the sender's result.
    pub about: &'static str,
    /// The terms that apply to it.
    pub uses: Uses,
    /// The kind of dummies that pad the sender's set. They are listed dummies where random ones would be
    /// delivered as if they were items. Dummies are hashed before the protocol is known.
    pub sender_dummies: Dummies,
    /// The facts that a party learns, in addition to the size of the peer's set. They are stated only here.
    pub learns: fn(Role, &Terms) -> Vec<Fact>,
    /// The form of a party's result.
    pub result: fn(Role, &Terms) -> Shape,
    /// The plain computation: the receiver's and the sender's expected result. Tests use it as the oracle.
    pub plain: fn(&Inputs) -> [Learned; 2],
    /// The bytes that the receiver sends to pass on the result, if both get it.
    pub sends_on: fn(&Deal) -> u64,
    /// How the operation is computed from a membership test, if it can be.
    pub over_mqrpmt: Option<OverMqrpmt>,
    /// How the operation is computed by permuting, then testing, if it can be.
    pub over_sigma: Option<OverSigma>,
    /// How the operation is computed from a union, if it is.
    pub over_union: Option<OverUnion>,
}

/// How an operation is computed from any mqRPMT (CZZDL 8.1, Figure 12).
pub struct OverMqrpmt {
    /// The transfer after the test, for the given number of items in the sender's set; `None` if there is none.
    pub(crate) transfer: Option<fn(&Deal, usize) -> Transfer>,
    /// Bytes that each party holds to compute its result: the receiver in addition to the transfer, the sender after it. The
    /// arguments are the sizes of the sets in the protocol, the receiver's first.
    pub(crate) held: fn(&Deal, usize, usize) -> [usize; 2],
    /// Runs one party. The last argument is the size of the peer's set in the protocol.
    pub(crate) run: RunOverMqrpmt,
}

type RunOverMqrpmt = for<'a> fn(&dyn Mqrpmt, &Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>;

/// How an operation is computed from a Sigma-mqPMT by permuting, then testing (CZZDL 7.2, Remark 7.1). The last argument
/// is the size of the peer's set in the protocol.
pub enum OverSigma {
    /// From permuted mqPMT. The receiver is the client and learns how many items match.
    Permuted(RunOverPermuted),
    /// From mqRPMT*. The receiver is the server and gets the bits; the transfer follows, as after any mqRPMT
    /// ([`OverMqrpmt`]). The sender learns how many items match.
    Star(RunOverStar),
}

type RunOverPermuted =
    for<'a> fn(&dyn PermutedMqpmt, &Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>;
type RunOverStar = for<'a> fn(&dyn MqrpmtStar, &Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>;

/// How an operation is computed from any union.
pub struct OverUnion {
    /// The assumptions in addition to the union's, in sentences.
    pub(crate) assumptions: &'static [&'static str],
    /// The hard problems behind [`OverUnion::assumptions`].
    pub(crate) rests_on: &'static [Assumption],
    /// The union that it runs.
    pub(crate) union: fn(&Deal) -> Deal,
    /// The number of stages that a run announces in addition to the union's.
    pub(crate) stages: usize,
    /// The cost, given the union's cost.
    pub(crate) cost: fn(&Deal, Cost) -> Cost,
    /// Runs one party, given a function that runs its part of the union. The last argument is the size of the peer's set.
    pub(crate) run: RunOverUnion,
}

type RunOverUnion =
    for<'a> fn(&RunUnion<'a, '_>, &Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>;
/// Runs one party of a union; the last argument is the size of the peer's set in the protocol.
type RunUnion<'a, 'u> = dyn Fn(&Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>> + 'u;

/// The terms that apply to an operation. In the agreement, all others are 0 or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uses {
    /// Data that the sender sends to the receiver in rows of [`Terms::max_row`] bytes.
    pub rows: Rows,
    /// Whether both may get the result ([`Terms::both`]). If so, the receiver sends it on.
    pub both: bool,
    /// Whether the sender's items have values ([`Terms::modulus`], [`Terms::min_count`], and their decimal places).
    pub values: bool,
    /// Whether the sender's items are shared, in rows of [`Terms::max_row`] bytes, or its values if it has any
    /// ([`Terms::shared_values`]).
    pub shares: bool,
}

impl Uses {
    /// Whether a party's items go into rows, if the operation sends or shares items: always the sender's, and the receiver's
    /// if it sends items on.
    pub fn items_in_rows(&self, role: Role, terms: &Terms) -> bool {
        match (self.rows, role) {
            (Rows::None, Role::Sender) => self.shares && !terms.shared_values,
            (Rows::None | Rows::Payloads, _) => false,
            (Rows::Items, _) => terms.both || role == Role::Sender,
        }
    }

    /// Whether a party's items have values: the sender's, if the operation uses or shares values.
    pub fn has_values(&self, role: Role, terms: &Terms) -> bool {
        role == Role::Sender && (self.values || self.shares && terms.shared_values)
    }
}

/// Data that is sent in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// No rows.
    None,
    /// A payload per item, if agreed.
    Payloads,
    /// The items, and a payload per item if agreed.
    Items,
}

/// The form of a party's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// No result.
    Nothing,
    /// Some of the party's own rows: [`Learned::Matching`].
    OwnRows,
    /// All of the party's own rows and new ones: [`Learned::New`].
    AllRows,
    /// Items: [`Learned::Union`].
    Items,
    /// The number of matches: [`Learned::Matches`].
    Matches,
    /// The number of matches, and hence the size of the union if the peer's size is known: [`Learned::Matches`].
    MatchesAndUnion,
    /// A sum over the matches: [`Learned::Sum`].
    Sum,
    /// Shares: [`Learned::Shares`].
    Shares,
    /// An identifier for each of the party's own rows, and a list of all: [`Learned::Identifiers`].
    Identifiers,
}

impl Shape {
    /// Whether the result consists of rows or items, as opposed to a line of numbers.
    pub const fn has_items(self) -> bool {
        match self {
            Shape::OwnRows | Shape::AllRows | Shape::Items | Shape::Shares | Shape::Identifiers => true,
            Shape::Nothing | Shape::Matches | Shape::MatchesAndUnion | Shape::Sum => false,
        }
    }

    /// Whether the result has all columns of the party's table.
    pub const fn has_rows(self) -> bool {
        match self {
            Shape::OwnRows | Shape::AllRows | Shape::Identifiers => true,
            Shape::Nothing
            | Shape::Items
            | Shape::Matches
            | Shape::MatchesAndUnion
            | Shape::Sum
            | Shape::Shares => false,
        }
    }
}

/// The input of the plain computation: all data of both parties.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The receiver's set.
    pub y: &'a ItemSet,
    /// The sender's set.
    pub x: &'a ItemSet,
    /// A value per item of the sender, if its items have values.
    pub values: &'a [i128],
    /// A payload per item of the sender, if agreed.
    pub payloads: &'a Items,
    /// The agreed terms.
    pub terms: Terms,
}

impl Inputs<'_> {
    /// Whether the receiver has `item`.
    fn in_y(&self, item: &[u8]) -> bool {
        self.y.iter().any(|other| other == item)
    }

    /// The number of items in both sets.
    fn matches(&self) -> u64 {
        self.x.iter().filter(|item| self.in_y(item)).count() as u64
    }

    /// The payload of the sender's item `i`, if agreed.
    fn payload(&self, i: usize) -> Option<&[u8]> {
        self.terms.payload.then(|| self.payloads.get(i))
    }

    /// The sender's result, given the receiver's.
    fn sent_on(&self, learned: Learned) -> Learned {
        if self.terms.both { learned } else { Learned::Nothing }
    }
}

/// The role of a party in an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Learns the result (in `sum`, the number of matches).
    Receiver,
    /// Contributes its set (in `sum`, also its values, whose sum over the matches it learns).
    Sender,
}

/// The announcement that a party makes about the size of its set before the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// The number of items, or the bound to which the set is padded.
    pub size: usize,
    /// Whether it is padded.
    pub padded: bool,
}

impl Announced {
    /// The size of the set in words: "5", or "at most 5".
    pub fn words(self) -> String {
        let Announced { size, padded } = self;
        if padded { format!("at most {size}") } else { size.to_string() }
    }
}

/// The terms that both sides agreed on, in addition to the operation. Terms that do not apply to it are 0 or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Whether a payload is sent with the sender's items (intersect, union).
    pub payload: bool,
    /// Bytes of a row. In union, the longest item together with its payload; in intersect, the longest payload; in share, the
    /// longest item.
    pub max_row: usize,
    /// Whether both get the result (intersect, union, count), as opposed to the receiver only.
    pub both: bool,
    /// The modulus of a sum.
    pub modulus: sum::Modulus,
    /// The least number of matches for which the sender of sum learns the count and the sum; 0 for no limit.
    pub min_count: u64,
    /// Whether the receiver is protected against a malicious sender (cm20).
    pub malicious_sender: bool,
    /// Whether the sender learns how many items match (union by sigma-dh or sigma-ahe).
    pub reveal_count: bool,
    /// In share: whether values are shared instead of items. The sender chooses.
    pub shared_values: bool,
    /// Whether this is a run of several parties: the receiver is their leader, and all others are senders.
    pub several: bool,
    /// Whether all items have exactly `max_row` bytes, so that rows hold no lengths. True only for a union of identifiers;
    /// never part of an agreement.
    pub bare: bool,
    /// The receiver's filter (dc17): one made in advance, which its hello announces, or, for benchmarks, one of a size known
    /// to both parties. If `None`, the sizes of the sets determine it.
    pub filter: Option<Agreed>,
    /// The number of shards of a job, one run for each; 0 for a run in one piece.
    pub shards: u32,
}

impl Terms {
    /// Returns e such that the result of one shard is wrong and undetected with probability at most 2^-e. The shards of a job
    /// share a total of 2^-[`LAMBDA`].
    pub fn exponent(&self) -> u32 {
        params::share(LAMBDA, self.shards as usize)
    }
}

/// The result of a party, in addition to the size of the peer's set. `Debug` shows only the kind.
#[derive(Clone, PartialEq, Eq)]
pub enum Learned {
    /// No result: the sender of intersect, union and count, unless both get the result or it learns the number of matches.
    Nothing,
    /// Intersect: the items of this party's set that match.
    Matching(intersect::Matching),
    /// The receiver of union: the items that only the sender has.
    New(union::rows::New),
    /// The sender of union, if both get the result: the items of both sets, sorted.
    Union(Items),
    /// Count, the receiver of sum, and the sender of a union that reveals the count: the number of matches.
    Matches(u64),
    /// The sender of sum; `None` if there were fewer matches than the agreed minimum.
    Sum(Option<sum::Sum>),
    /// Share: this party's shares.
    Shares(share::Shares),
    /// Id: the identifiers of this party's items, and the identifiers of both sets.
    Identifiers(id::Identifiers),
}

/// One party's part of an operation.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The operation to compute.
    pub operation: &'static Operation,
    /// Our role.
    pub role: Role,
    /// The group that the protocol works in; it must be one that the protocol supports.
    pub group: &'static str,
    /// Our set, padded if requested.
    pub set: &'a HashedSet<'a>,
    /// For a sender with values, a value per item of the set, excluding dummies. Otherwise empty.
    pub values: &'a [i128],
    /// For a sender with payload, a payload per item of the set, excluding dummies. Otherwise empty.
    pub payloads: &'a Items,
    /// The agreed terms.
    pub terms: Terms,
    /// A filter made in advance, if we have one: our own as the receiver, the peer's as the sender.
    pub filter: Option<&'a Stored>,
}

/// The number of matches among the bits `e` of an mqRPMT against a set of `n_y` items.
fn matches(e: &[bool], n_y: usize) -> Result<usize> {
    let matches = e.iter().filter(|&&e| e).count();
    match matches <= n_y {
        true => Ok(matches),
        false => Err(Error::misbehaves_unseen(format!("{matches} of its items match our {n_y}"))),
    }
}

impl Operation {
    /// The kind of dummies that pad a party's set. The receiver's are random and match nothing.
    pub fn dummies(&self, role: Role) -> Dummies {
        match role {
            Role::Receiver => Dummies::Random,
            Role::Sender => self.sender_dummies,
        }
    }

    /// Whether a party in this role learns more about the peer's items than their number. A share is random by itself and
    /// reveals nothing.
    pub fn shows(&self, role: Role, terms: &Terms) -> bool {
        (self.learns)(role, terms).iter().any(|fact| !matches!(fact, Fact::Shares { .. }))
    }
}

/// Returns the operation with this name.
///
/// # Errors
/// A message that lists all operations, if there is none with this name.
pub fn named(name: &str) -> Result<&'static Operation, String> {
    let found = ALL.into_iter().find(|o| o.name == name);
    found.ok_or_else(|| format!("\"{name}\" is not an operation: {}", ALL.map(|o| o.name).join(", ")))
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Operation {}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Role {
    /// Both roles.
    pub const ALL: [Role; 2] = [Role::Receiver, Role::Sender];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Receiver => "receiver",
            Role::Sender => "sender",
        }
    }

    /// The role of one of several parties: the leader is the receiver.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub const fn multiparty(leads: bool) -> Role {
        if leads { Role::Receiver } else { Role::Sender }
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
            Learned::Shares(_) => "Shares(..)",
            Learned::Identifiers(_) => "Identifiers(..)",
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for &'static Operation {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        named(s)
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
