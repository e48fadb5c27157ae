//! The other parties of a run, as our side sees them.

use crate::error::Seat;
use crate::net::Fingerprint;
use crate::operations::Announced;

/// Another party of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Party {
    /// Which one it is.
    pub seat: Seat,
    /// Its fingerprint, proven; none without TLS.
    pub fingerprint: Option<Fingerprint>,
    /// What our side calls it, if it has a name for it. Nobody else hears of the name.
    pub name: Option<String>,
    /// What it announced of its set. The size is 0 if it has not said any yet.
    pub announced: Announced,
}

/// The other parties of a run, in the order of their seats; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parties {
    first: Party,
    rest: Vec<Party>,
}

impl Parties {
    /// In this order.
    #[cfg_attr(not(test), expect(dead_code, reason = "runs of three and more are to come"))]
    pub(crate) fn new(first: Party, rest: Vec<Party>) -> Parties {
        Parties { first, rest }
    }

    /// The other party of a run of two; of a run of more, the one of the lowest seat.
    pub fn peer(&self) -> &Party {
        &self.first
    }

    /// The same, to note what it says.
    pub(super) fn peer_mut(&mut self) -> &mut Party {
        &mut self.first
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Party> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

/// The other party of a run of two.
impl From<Party> for Parties {
    fn from(peer: Party) -> Parties {
        Parties { first: peer, rest: Vec::new() }
    }
}
