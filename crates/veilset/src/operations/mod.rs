//! The operations: what two parties compute. One file per operation and protocol family.
//!
//! They run by a protocol of [`crate::protocols`]. The roles themselves are not public.
//!
//! Errors are the same in all of them: [`Error::Peer`] if a message is not the expected one or the peer gave
//! up, [`Error::Network`] if the connection ended or stood still, [`Error::Cancelled`] if we were stopped,
//! [`Error::Bug`] for arguments that do not belong together. What only a result shows is in [`Sealed`].

pub(crate) mod both;
pub mod count;
pub mod intersect;
pub(crate) mod row;
pub mod sum;
pub mod union;

use crate::error::{Error, Result};
use crate::item::Items;
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

impl FromStr for Role {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let found = Role::ALL.into_iter().find(|r| r.name() == s);
        found.ok_or_else(|| format!("\"{s}\" is not a role: receiver, sender"))
    }
}

#[cfg(test)]
pub(crate) mod tests;
