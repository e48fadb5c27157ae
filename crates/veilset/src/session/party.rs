//! The other parties of a run, from our point of view.

use crate::error::Seat;
use crate::net::Fingerprint;
use crate::operations::Announced;

/// Another party of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Party {
    /// The party's seat in the run.
    pub seat: Seat,
    /// Its fingerprint, proven in the TLS handshake; `None` without TLS.
    pub fingerprint: Option<Fingerprint>,
    /// The party's name: its name in the list of parties, if there is a list; otherwise our own name for it, if any, which is
    /// never sent.
    pub name: Option<String>,
    /// Its announcement about its set. The size is 0 until all sizes have arrived.
    pub announced: Announced,
}

/// Returns the number of a party in a run of several, counted from 0; 0 for a seat without a number.
pub(super) fn number(seat: Seat) -> usize {
    seat.number().map_or(0, |number| usize::from(number.get()) - 1)
}

/// The other parties of a run, ordered by seat; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parties {
    first: Party,
    rest: Vec<Party>,
}

impl Parties {
    /// Wraps these parties, in this order; `None` if there are none.
    pub(crate) fn of(parties: impl IntoIterator<Item = Party>) -> Option<Parties> {
        let mut parties = parties.into_iter();
        Some(Parties { first: parties.next()?, rest: parties.collect() })
    }

    /// Returns the seat to blame for malformed rows in our result: the peer's, or [`Seat::SOMEBODY`] among several, because
    /// it is unknown who sent the rows.
    pub(crate) fn seat(&self) -> Seat {
        if self.rest.is_empty() { self.first.seat } else { Seat::SOMEBODY }
    }

    /// Returns the other party of a run of two; among several, the one with the lowest seat.
    pub fn peer(&self) -> &Party {
        &self.first
    }

    /// Iterates over all other parties, ordered by seat.
    pub fn iter(&self) -> impl Iterator<Item = &Party> + Clone {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Iterates over all other parties mutably, to record their announcements.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Party> {
        std::iter::once(&mut self.first).chain(&mut self.rest)
    }

    /// Returns the number of other parties.
    pub fn count(&self) -> usize {
        1 + self.rest.len()
    }
}

/// The only other party of a run of two.
impl From<Party> for Parties {
    fn from(peer: Party) -> Parties {
        Parties { first: peer, rest: Vec::new() }
    }
}
