//! The columns that the other party sends: checked before anything is written.

use super::Encoding;
use crate::error::{Error, Result};
use crate::item::{Items, decode_key};

/// Columns that the other party sent, as they appear in a result.
#[derive(Debug, Clone, Copy)]
pub struct SentColumns<'a> {
    /// Their names in the result. There may be none.
    pub names: &'a [String],
    /// Their cells: one payload for each row that has any, in the order of the rows or items passed with it.
    /// [`super::payloads()`] makes them on the other side.
    pub payloads: &'a Items,
}

impl SentColumns<'_> {
    /// Refuses a wrong number of payloads, which is a bug. Refuses payloads that do not encode this many columns, or
    /// text where ours is text, which is the peer's fault.
    pub(super) fn check(&self, rows: usize, encoding: Encoding) -> Result<()> {
        if self.payloads.len() != rows {
            return Err(Error::bug(format!("{} payloads for {rows} rows", self.payloads.len())));
        }
        check_items(self.payloads, self.names.len(), encoding, "columns it sent are")
    }
}

/// Refuses items from the peer that do not encode this many columns, or text where ours is text.
pub(super) fn check_items(items: &Items, columns: usize, encoding: Encoding, what: &str) -> Result<()> {
    let text = |cell: &&[u8]| encoding == Encoding::Bytes || std::str::from_utf8(cell).is_ok();
    let good = |item: &[u8]| decode_key(item, columns).is_some_and(|cells| cells.iter().all(text));
    if !items.iter().all(good) {
        return Err(Error::misbehaves_unseen(format!("{what} not made of {columns} columns as agreed")));
    }
    Ok(())
}
