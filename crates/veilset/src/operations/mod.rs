//! The operations: what two parties compute. One file per operation and protocol family.
//!
//! They run by a protocol of [`crate::protocols`]. The roles themselves are not public.
//!
//! Errors are the same in all of them: [`Error::Peer`] if a message is not the expected one or the peer gave
//! up, [`Error::Network`] if the connection ended or stood still, [`Error::Cancelled`] if we were stopped,
//! [`Error::Bug`] for arguments that do not belong together. What only a result shows is in [`Sealed`].

pub(crate) mod both;
pub mod cost;
pub mod count;
mod facts;
pub mod intersect;
pub(crate) mod row;
pub mod sum;
pub mod union;

pub use count::COUNT;
pub use facts::{Fact, Numbers, View};
pub use intersect::INTERSECT;
pub use sum::SUM;
pub use union::UNION;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::{Dummies, Hashed};
use crate::item::{ItemSet, Items};
use crate::membership::Mqrpmt;
use cost::{Deal, Transfer};
use std::fmt;
use std::str::FromStr;

/// All operations, in the order in which users see them.
pub static ALL: [&Operation; 4] = [&INTERSECT, &UNION, &COUNT, &SUM];

/// What is computed: one static entry. Two are equal if they have the same name.
///
/// Everything else asks the entry and never which operation it is: to add one is to add a file here and a line to
/// [`ALL`].
pub struct Operation {
    /// The name as typed.
    pub name: &'static str,
    /// What it gives, in a line.
    pub summary: &'static str,
    /// The same at more length: what the receiver's and the sender's result are.
    pub about: &'static str,
    /// The terms that matter to it.
    pub uses: Uses,
    /// The kind of dummies that pad the sender's set: listed ones where others would be delivered as if they were
    /// items. They are hashed before it is known by which protocol.
    pub sender_dummies: Dummies,
    /// What a party learns, in addition to the size of the peer's set. Nothing else in the repository states it.
    pub learns: fn(Role, &Terms) -> Vec<Fact>,
    /// The form of a party's result.
    pub result: fn(Role, &Terms) -> Shape,
    /// The plain computation: what the receiver and what the sender are to learn. The oracle of tests.
    pub plain: fn(&Inputs) -> [Learned; 2],
    /// The bytes with which the receiver sends the result on, if both get it.
    pub sends_on: fn(&Deal) -> u64,
    /// How it is computed from a membership test; none if it is not.
    pub over_mqrpmt: Option<OverMqrpmt>,
}

/// How an operation is computed from an mqRPMT (CZZDL 8.1, Figure 12), whichever that is.
pub struct OverMqrpmt {
    /// What is transferred after the test for a sender's set of so many items; none if nothing is.
    pub(crate) transfer: Option<fn(&Deal, usize) -> Transfer>,
    /// Bytes that the receiver holds beside the transfer to make a result of it, and the sender after it to make its own;
    /// the sets' sizes are those in the protocol, the receiver's first.
    pub(crate) held: fn(&Deal, usize, usize) -> [usize; 2],
    /// Runs one party's part. The peer's set has so many items in the protocol.
    pub(crate) run: RunOverMqrpmt,
}

type RunOverMqrpmt = for<'a> fn(&dyn Mqrpmt, &Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>;

/// The terms that matter to an operation. Those that do not are 0 or false in the agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uses {
    /// What travels from the sender to the receiver in rows of [`Terms::max_row`] bytes.
    pub rows: Rows,
    /// Whether both may get the result ([`Terms::both`]): the receiver sends it on.
    pub both: bool,
    /// Whether the sender's items have values ([`Terms::modulus`], [`Terms::min_count`], and their decimal places).
    pub values: bool,
}

impl Uses {
    /// Whether a party's items travel to the other: the sender's, and the receiver's where it sends them on.
    pub fn items_travel(&self, role: Role, both: bool) -> bool {
        match self.rows {
            Rows::None | Rows::Payloads => false,
            Rows::Items => both || role == Role::Sender,
        }
    }
}

/// What travels in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Nothing.
    None,
    /// A payload for each item, if one was agreed.
    Payloads,
    /// The items, and a payload for each if one was agreed.
    Items,
}

/// The form of a party's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// No result.
    Nothing,
    /// Some of its own rows: [`Learned::Matching`].
    OwnRows,
    /// All of its own rows and new ones: [`Learned::New`].
    AllRows,
    /// Items: [`Learned::Union`].
    Items,
    /// The number of matches: [`Learned::Matches`].
    Matches,
    /// The number of matches, and so the size of the union if the peer's size is known: [`Learned::Matches`].
    MatchesAndUnion,
    /// A sum over the matches: [`Learned::Sum`].
    Sum,
}

impl Shape {
    /// Whether it is rows of the party's table or items, and not numbers.
    pub const fn has_items(self) -> bool {
        match self {
            Shape::OwnRows | Shape::AllRows | Shape::Items => true,
            Shape::Nothing | Shape::Matches | Shape::MatchesAndUnion | Shape::Sum => false,
        }
    }

    /// Whether it has all columns of the party's table.
    pub const fn has_rows(self) -> bool {
        match self {
            Shape::OwnRows | Shape::AllRows => true,
            Shape::Nothing | Shape::Items | Shape::Matches | Shape::MatchesAndUnion | Shape::Sum => false,
        }
    }
}

/// What the plain computation gets: all data of both parties.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The receiver's set.
    pub y: &'a ItemSet,
    /// The sender's set.
    pub x: &'a ItemSet,
    /// A value for each item of the sender, if the operation uses values.
    pub values: &'a [i128],
    /// A payload for each item of the sender, if one was agreed.
    pub payloads: &'a Items,
    /// What was agreed.
    pub terms: Terms,
}

impl Inputs<'_> {
    /// Whether the receiver has the item.
    fn in_y(&self, item: &[u8]) -> bool {
        self.y.iter().any(|other| other == item)
    }

    /// The number of items that both have.
    fn matches(&self) -> u64 {
        self.x.iter().filter(|item| self.in_y(item)).count() as u64
    }

    /// The payload of item `i` of the sender, if one was agreed.
    fn payload(&self, i: usize) -> Option<&[u8]> {
        self.terms.payload.then(|| self.payloads.get(i))
    }

    /// What the sender gets of a result that is for both.
    fn sent_on(&self, learned: Learned) -> Learned {
        if self.terms.both { learned } else { Learned::Nothing }
    }
}

/// Who learns the result of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Learns the result (in `sum`, the number of matches).
    Receiver,
    /// Contributes its set (in `sum`, its values too, and learns their sum).
    Sender,
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

/// What a party learned beside the size of the peer's set. `Debug` shows the kind only.
#[derive(Clone, PartialEq, Eq)]
pub enum Learned {
    /// The sender of intersect, union and count, unless both get the result.
    Nothing,
    /// Intersect: the items of this party's set that match.
    Matching(intersect::Matching),
    /// Receiver of union: the items that only the sender has.
    New(union::rows::New),
    /// Sender of union, if both get the result: all items of both, sorted.
    Union(Items),
    /// Count, and the receiver of sum: the number of matches.
    Matches(u64),
    /// Sender of sum; `None` if there were fewer matches than agreed.
    Sum(Option<sum::Sum>),
}

/// One party's part of an operation.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// What is computed.
    pub operation: &'static Operation,
    /// Which part is ours.
    pub role: Role,
    /// The group that the protocol works in, one of its own.
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

    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U + Send + 'a) -> Sealed<'a, U>
    where
        T: 'a,
    {
        Sealed::new(move || (self.0)().map(f))
    }
}

impl<'a> Sealed<'a, Learned> {
    /// A result that the receiver sent on, if both get it.
    pub(crate) fn sent_on(result: Option<Self>) -> Self {
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

impl Operation {
    /// The kind of dummies that pad a party's set. The receiver's are random and match nothing.
    pub fn dummies(&self, role: Role) -> Dummies {
        match role {
            Role::Receiver => Dummies::Random,
            Role::Sender => self.sender_dummies,
        }
    }
}

/// The operation of this name.
///
/// # Errors
/// The name is none, and which there are.
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
