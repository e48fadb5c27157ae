//! This party's knowledge about the sizes of sets. Sizes that it does not know are never computed.

use super::grouped;
use std::fmt;
use veilset::operations::Announced;
use veilset::session::report::Report;

/// The degree to which a number is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Exactly(usize),
    /// An upper bound, since a set is padded.
    AtMost(usize),
    /// Less than the agreed minimum; the sum was withheld.
    BelowMinimum,
    Unknown,
}

impl Known {
    /// Returns the size of a set that was announced.
    pub(crate) fn announced(Announced { size, padded }: Announced) -> Known {
        if padded { Known::AtMost(size) } else { Known::Exactly(size) }
    }

    /// Subtracts a number, which may be unknown.
    fn less(self, without: Option<usize>) -> Known {
        match (self, without) {
            (Known::Exactly(n), Some(without)) => Known::Exactly(n.saturating_sub(without)),
            (Known::AtMost(n), Some(without)) => Known::AtMost(n.saturating_sub(without)),
            (Known::Exactly(_) | Known::AtMost(_), None) | (Known::BelowMinimum | Known::Unknown, _) => {
                Known::Unknown
            }
        }
    }

    /// Adds a number.
    fn plus(self, more: usize) -> Known {
        match self {
            Known::Exactly(n) => Known::Exactly(n + more),
            Known::AtMost(n) => Known::AtMost(n + more),
            Known::BelowMinimum | Known::Unknown => Known::Unknown,
        }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Known::Exactly(n) => f.write_str(&grouped(*n as u64)),
            Known::AtMost(n) => write!(f, "at most {}", grouped(*n as u64)),
            Known::BelowMinimum => f.write_str("fewer than the agreed minimum"),
            Known::Unknown => f.write_str("not known to this party"),
        }
    }
}

/// The three regions of two sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Regions {
    /// The items that only this party has.
    pub ours: Known,
    /// The items that both have.
    pub both: Known,
    /// The items that only the peer has.
    pub theirs: Known,
    /// The size of this party's set.
    set: usize,
}

impl Regions {
    /// Returns this party's knowledge after a run of two.
    pub(crate) fn of(report: &Report) -> Regions {
        let (set, result) = (report.sizes.ours, &report.result);
        let theirs = match (result.union_size, result.matches) {
            // This party has seen the new items, whether the peer pads or not.
            (Some(union), _) => Known::Exactly(union.saturating_sub(set)),
            (None, matches) => Known::announced(report.parties.peer().announced).less(matches),
        };
        let both = match (result.matches, result.below_minimum) {
            (Some(matches), _) => Known::Exactly(matches),
            (None, Some(true)) => Known::BelowMinimum,
            (None, _) => Known::Unknown,
        };
        Regions { ours: Known::Exactly(set).less(result.matches), both, theirs, set }
    }

    /// Returns the number of items that at least one party has.
    pub(crate) fn union(&self) -> Known {
        self.theirs.plus(self.set)
    }
}
