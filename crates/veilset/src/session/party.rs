//! The other parties of a run, from our point of view.

use crate::error::Seat;
use crate::net::Fingerprint;
use crate::operations::Announced;

/// Another party of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Party {
    /// Its seat in the run.
    pub seat: Seat,
    /// Its fingerprint, proven in the TLS handshake; `None` without TLS.
    pub fingerprint: Option<Fingerprint>,
    /// Our own name for it, if there is one; in a run of several, that in the list of the parties. It is never sent.
    pub name: Option<String>,
    /// What it announced about its set. The size is 0 until it has sent one.
    pub announced: Announced,
}

/// The number of a party of several, from 0.
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
    /// These parties, in this order; `None` if there are none.
    pub(crate) fn of(parties: impl IntoIterator<Item = Party>) -> Option<Parties> {
        let mut parties = parties.into_iter();
        Some(Parties { first: parties.next()?, rest: parties.collect() })
    }

    /// The seat of the party that sent what our result consists of; of several, it is unknown which did.
    pub(crate) fn seat(&self) -> Seat {
        if self.rest.is_empty() { self.first.seat } else { Seat::SOMEBODY }
    }

    /// The other party in a run of two; in a larger run, the one with the lowest seat.
    pub fn peer(&self) -> &Party {
        &self.first
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Party> + Clone {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// The same, mutable, to record what they announce.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Party> {
        std::iter::once(&mut self.first).chain(&mut self.rest)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        1 + self.rest.len()
    }
}

/// The only other party, in a run of two.
impl From<Party> for Parties {
    fn from(peer: Party) -> Parties {
        Parties { first: peer, rest: Vec::new() }
    }
}
