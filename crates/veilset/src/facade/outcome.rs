//! What the operations return.

use super::Keys;
use crate::error::{Error, Result};
use crate::item::{Items, decode_key};
use crate::operations::share::Beside;
use crate::operations::union::rows::New;
use crate::operations::{id, intersect, share};
use crate::session::report::Report;
use crate::table::Encoding;
use std::fmt;

pub use crate::operations::id::Identifier;
pub use crate::ot::shares::Sharing;

/// What a run gave.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome<T> {
    /// The result.
    pub result: T,
    /// What was computed and how, what each party learned, and what it took.
    pub report: Report,
    /// Whether the end of the run is in the audit log, if there is one. That it is not is no reason to lose the result.
    pub logged: Result<()>,
}

/// The cells of a row: those of its key, or of the columns that were sent with it. They are bytes, and text unless the keys
/// were read as bytes.
///
/// `Debug` shows only how many there are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cells(Vec<Box<[u8]>>);

impl Cells {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The cell of a column, from 0, if there is one.
    pub fn get(&self, column: usize) -> Option<&[u8]> {
        self.0.get(column).map(AsRef::as_ref)
    }

    /// The same as text, if it is text.
    pub fn text(&self, column: usize) -> Option<&str> {
        std::str::from_utf8(self.get(column)?).ok()
    }

    /// All of them, in the order of the columns.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Those of each of these rows, which the peer sent: `columns` in each, and text where ours are.
    fn of(items: &Items, columns: usize, encoding: Encoding, what: &str) -> Result<Vec<Cells>> {
        let text = |cell: &&[u8]| encoding == Encoding::Bytes || std::str::from_utf8(cell).is_ok();
        let cells = |item| decode_key(item, columns).filter(|cells| cells.iter().all(text));
        let own = |cells: Vec<&[u8]>| Cells(cells.into_iter().map(Into::into).collect());
        let all: Option<Vec<Cells>> = items.iter().map(|item| cells(item).map(own)).collect();
        all.ok_or_else(|| Error::misbehaves_unseen(format!("{what} not made of {columns} columns as agreed")))
    }
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cells({})", self.len())
    }
}

/// What [`intersect`](crate::intersect) returns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Intersection {
    /// Our rows whose keys the peer has too, in their order; of rows with equal keys the first.
    pub rows: Vec<usize>,
    /// For the receiver of columns: the peer's cells for each of these rows. Otherwise empty.
    pub columns: Vec<Cells>,
}

impl Intersection {
    pub(super) fn of(found: &intersect::Matching, keys: &Keys, sent: usize) -> Result<Intersection> {
        let rows = found.positions.iter().map(|&i| keys.rows[i as usize] as usize).collect();
        Ok(Intersection { rows, columns: columns(&found.payloads, keys, sent)? })
    }
}

/// What [`union`](crate::union) returns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Union {
    /// The keys that only the peer has, as it normalised them. With ours they are the union.
    pub new: Vec<Cells>,
    /// For the receiver of columns: the peer's cells for each of these keys. Otherwise empty.
    pub columns: Vec<Cells>,
}

impl Union {
    pub(super) fn of_new(new: &New, keys: &Keys, sent: usize) -> Result<Union> {
        Ok(Union { new: new_keys(&new.items, keys)?, columns: columns(&new.payloads, keys, sent)? })
    }

    /// Of the keys of both, which the receiver has sent on.
    pub(super) fn of_all(all: &Items, keys: &Keys) -> Result<Union> {
        let mut ours: Vec<&[u8]> = keys.set.iter().collect();
        ours.sort_unstable();
        let new: Items = all.iter().filter(|item| ours.binary_search(item).is_err()).collect();
        Ok(Union { new: new_keys(&new, keys)?, columns: Vec::new() })
    }
}

fn new_keys(items: &Items, keys: &Keys) -> Result<Vec<Cells>> {
    Cells::of(items, keys.columns, keys.encoding, "keys it sent are")
}

fn columns(payloads: &Items, keys: &Keys, sent: usize) -> Result<Vec<Cells>> {
    Cells::of(payloads, sent, keys.encoding, "columns it sent are")
}

/// What [`sum`](crate::sum) returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Total {
    /// How many keys match. `None` for the sender if they are fewer than the agreed minimum.
    pub matches: Option<u64>,
    /// For the sender: the sum of its values over the keys that match, in the units of the values. `None` if these are fewer
    /// than the agreed minimum, and for the receiver.
    pub sum: Option<i128>,
}

/// What [`share`](crate::share) returns: a share for each key of the sender and each of its dummies, in a secret order that is
/// the same on both sides.
///
/// By itself a share is random. The two of a key add up to its row if the receiver has it too, and to zeros otherwise.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shares {
    /// The bytes of a share.
    pub width: usize,
    /// The shares, one after another.
    pub bytes: Vec<u8>,
    /// How they add up.
    pub sharing: Sharing,
    /// For the receiver: how many keys match.
    pub matches: Option<u64>,
    /// For the sender: the row of each share, `None` for a dummy's. Empty for the receiver.
    pub rows: Vec<Option<usize>>,
}

impl Shares {
    pub(super) fn of(shares: share::Shares, keys: &Keys) -> Shares {
        let share::Shares { width, shares: bytes, sharing, beside } = shares;
        let (matches, rows) = match beside {
            Beside::Matches(n) => (Some(n), Vec::new()),
            Beside::Order(order) => {
                let row = |i: &u32| keys.rows.get(*i as usize).map(|&row| row as usize);
                (None, order.iter().map(row).collect())
            }
        };
        Shares { width, bytes, sharing, matches, rows }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The share at this position, from 0, if there is one.
    pub fn get(&self, i: usize) -> Option<&[u8]> {
        self.bytes.chunks_exact(self.width.max(1)).nth(i)
    }
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shares({})", self.len())
    }
}

/// What [`id`](crate::id) returns.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identifiers {
    /// The identifier of each of our rows. Rows with equal keys have the same one.
    pub rows: Vec<Identifier>,
    /// Those of all keys and dummies of both parties, sorted: the same list on both sides.
    pub all: Vec<Identifier>,
}

impl Identifiers {
    pub(super) fn of(identifiers: id::Identifiers, keys: &Keys) -> Identifiers {
        let id::Identifiers { own, all } = identifiers;
        let mut rows = vec![Identifier::default(); keys.listed];
        for (&row, identifier) in keys.rows.iter().zip(own) {
            rows[row as usize] = identifier;
        }
        for &(again, first) in &keys.repeated {
            rows[again as usize] = rows[first as usize];
        }
        Identifiers { rows, all }
    }
}

impl fmt::Debug for Identifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identifiers({} of {})", self.rows.len(), self.all.len())
    }
}
