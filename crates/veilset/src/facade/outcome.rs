//! The results of the operations.

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

/// The outcome of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome<T> {
    /// The result.
    pub result: T,
    /// The report: operation and protocol, the information each party learned, and the resources used.
    pub report: Report,
    /// `Ok` if the end of the run is in the audit log, or there is no log. The result is kept even if logging it failed.
    pub logged: Result<()>,
}

/// The cells of a row: the columns of its key, or the columns sent with it. They are bytes, and text unless the keys were read
/// as bytes.
///
/// `Debug` shows only the number of cells.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cells(Vec<Box<[u8]>>);

impl Cells {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the cell of a column, counted from 0, if there is one.
    pub fn get(&self, column: usize) -> Option<&[u8]> {
        self.0.get(column).map(AsRef::as_ref)
    }

    /// Returns the cell of a column as text, if it exists and is text.
    pub fn text(&self, column: usize) -> Option<&str> {
        std::str::from_utf8(self.get(column)?).ok()
    }

    /// Iterates over all cells, in the order of the columns.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The cells of each of these rows, which the peer sent: `columns` of them in each, which are text if our keys are.
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

/// The result of [`intersect`](crate::intersect).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Intersection {
    /// Our rows whose keys the peer also has, in ascending order; among rows with equal keys only the first.
    pub rows: Vec<usize>,
    /// The peer's cells for each of these rows if we receive columns, otherwise empty.
    pub columns: Vec<Cells>,
}

impl Intersection {
    pub(super) fn of(found: &intersect::Matching, keys: &Keys, sent: usize) -> Result<Intersection> {
        let rows = found.positions.iter().map(|&i| keys.rows[i as usize] as usize).collect();
        Ok(Intersection { rows, columns: columns(&found.payloads, keys, sent)? })
    }
}

/// The result of [`union`](crate::union).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Union {
    /// The keys that only the peer has, as it normalised them. Together with our keys they are the union.
    pub new: Vec<Cells>,
    /// The peer's cells for each of these keys if we receive columns, otherwise empty.
    pub columns: Vec<Cells>,
}

impl Union {
    pub(super) fn of_new(new: &New, keys: &Keys, sent: usize) -> Result<Union> {
        Ok(Union { new: new_keys(&new.items, keys)?, columns: columns(&new.payloads, keys, sent)? })
    }

    /// The union for the sender, from the keys of both, which the receiver has sent on.
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

/// The result of [`sum`](crate::sum).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Total {
    /// Number of keys that match. `None` for the sender if it is below the agreed minimum.
    pub matches: Option<u64>,
    /// For the sender: the sum of its values over the keys that match, in the units of the values. `None` for the receiver, and
    /// if fewer keys match than the agreed minimum.
    pub sum: Option<i128>,
}

/// The result of [`share`](crate::share): a share for each key of the sender and each of its dummies, in a random order that is
/// the same on both sides and that only the sender knows.
///
/// A single share is random. If the receiver also has a key, its two shares add up to its row, or to its value if values are
/// shared; otherwise they add up to zeros.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shares {
    /// Length of a share in bytes.
    pub width: usize,
    /// The shares, one after another.
    pub bytes: Vec<u8>,
    /// The operation that combines the two shares.
    pub sharing: Sharing,
    /// Number of keys that match, for the receiver only.
    pub matches: Option<u64>,
    /// For the sender: the row of each share, or `None` for a dummy. Empty for the receiver.
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

    /// Number of shares.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width.max(1)
    }

    /// Whether there are no shares.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the share at this position, counted from 0, if there is one.
    pub fn get(&self, i: usize) -> Option<&[u8]> {
        self.bytes.chunks_exact(self.width.max(1)).nth(i)
    }
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shares({})", self.len())
    }
}

/// The result of [`id`](crate::id).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identifiers {
    /// The identifier of each of our rows. Rows with equal keys have the same one.
    pub rows: Vec<Identifier>,
    /// The identifiers of all keys and dummies of both parties, sorted. Both sides get the same list.
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
