//! The operations: what two parties compute. One file per operation and protocol family.
//!
//! Errors are the same in all of them: [`Error::Peer`] if a message is not the expected one or the peer gave
//! up, [`Error::Network`] if the connection ended or stood still, [`Error::Cancelled`] if we were stopped,
//! [`Error::Bug`] for arguments that do not belong together. What only a result shows is in [`Sealed`].

pub mod count;
pub mod intersect;
pub mod sum;
pub mod union;

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::item::{ItemSet, Items};
use crate::membership::Mqrpmt;
use crate::params::MAX_SET;
use crate::rng::Prng;
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

/// One party's part of an operation.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// What is computed.
    pub operation: Operation,
    /// Which part is ours.
    pub role: Role,
    /// Our set.
    pub set: &'a ItemSet,
    /// For the sender of sum: a value for each item of the set. Otherwise empty.
    pub values: &'a [i128],
    /// For union: the width of a row in bytes, at least as long as every item of the sender.
    pub max_row: usize,
    /// For sum: what was agreed.
    pub terms: sum::Terms,
}

/// What a party learned beside the size of the peer's set. `Debug` shows the kind only.
#[derive(Clone, PartialEq, Eq)]
pub enum Learned {
    /// The sender of intersect, union and count.
    Nothing,
    /// Receiver of intersect: the positions in its set of the items that match, ascending.
    Matching(Vec<u32>),
    /// Receiver of union: the items that only the sender has, in a random order of the sender's.
    New(Items),
    /// Receiver of count.
    Count(count::Count),
    /// Receiver of sum: the number of matches.
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

/// The number of matches among the bits `e` of an mqRPMT against a set of `n_y` items.
fn matches(e: &[bool], n_y: usize) -> Result<usize> {
    let matches = e.iter().filter(|&&e| e).count();
    match matches <= n_y {
        true => Ok(matches),
        false => Err(Error::misbehaves_unseen(format!("{matches} of its items match our {n_y}"))),
    }
}

/// Runs one party's part over mqRPMT. The peer's set has `n` items.
pub fn run<'a>(
    task: &Task<'a>,
    protocol: &impl Mqrpmt,
    ch: &mut Channel,
    session: &SessionId,
    n: usize,
    rng: &mut Prng,
) -> Result<Sealed<'a, Learned>> {
    let Task { operation, role, set, values, max_row, terms } = *task;
    if n.max(set.len()) > MAX_SET {
        return Err(Error::Usage(format!("a set of {} items: {MAX_SET} is the most", n.max(set.len()))));
    }
    Ok(match (operation, role) {
        (Operation::Intersect, Role::Receiver) => {
            intersect::mqrpmt::receiver(protocol, ch, session, set, n, rng)?.map(Learned::Matching)
        }
        (Operation::Intersect, Role::Sender) => {
            intersect::mqrpmt::sender(protocol, ch, session, set, n, rng)?;
            Sealed::new(|| Ok(Learned::Nothing))
        }
        (Operation::Union, Role::Receiver) => {
            union::mqrpmt::receiver(protocol, ch, session, set, n, max_row, rng)?.map(Learned::New)
        }
        (Operation::Union, Role::Sender) => {
            union::mqrpmt::sender(protocol, ch, session, set, n, max_row, rng)?;
            Sealed::new(|| Ok(Learned::Nothing))
        }
        (Operation::Count, Role::Receiver) => {
            count::receiver(protocol, ch, session, set, n, rng)?.map(Learned::Count)
        }
        (Operation::Count, Role::Sender) => {
            count::sender(protocol, ch, session, set, n, rng)?;
            Sealed::new(|| Ok(Learned::Nothing))
        }
        (Operation::Sum, Role::Receiver) => {
            sum::receiver(protocol, ch, session, set, n, terms, rng)?.map(Learned::Matches)
        }
        (Operation::Sum, Role::Sender) => {
            sum::sender(protocol, ch, session, set, values, n, terms, rng)?.map(Learned::Sum)
        }
    })
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
            Learned::Count(_) => "Count(..)",
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
mod tests;
