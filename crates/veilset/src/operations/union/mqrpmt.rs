//! Union from mqRPMT and one-sided OT (CZZDL 8.1, Figure 12, "union").
//!
//! Security: semi-honest, of the mqRPMT and the OT; nothing binds the receiver's choices to its bits.
//! Leakage: |X| and X \ Y to the receiver, |Y| to the sender. Cost beside the mqRPMT: ceil(128 / k) / 8
//! bytes and one row an item.
//!
//! Departure from the figure: items are as long as users' keys are, so each travels in a row of the agreed
//! width, its true length inside. The width follows from the agreement, never from the data.

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::item::{ItemSet, Items, MAX_ITEM, intersects};
use crate::membership::Mqrpmt;
use crate::operations::{Sealed, matches};
use crate::ot::{extension, transfer};
use crate::rng::Prng;

const PURPOSE: &str = "union by mqRPMT, OT of rows";

/// The bytes in front of a row that hold the true length of its item.
pub(crate) fn length_bytes(max_row: usize) -> usize {
    match max_row {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 3,
    }
}

/// The receiver, with set `y`; the sender's has `n_x` items of at most `max_row` bytes. Returns the items
/// that only the sender has, in the random order of its queries.
pub fn receiver<'a>(
    protocol: &impl Mqrpmt,
    ch: &mut Channel,
    session: &SessionId,
    y: &'a ItemSet,
    n_x: usize,
    max_row: usize,
    rng: &mut Prng,
) -> Result<Sealed<'a, Items>> {
    // 1. P1 obtains the bits e.
    let e = protocol.server(ch, session, y, n_x, rng)?;
    // 2. P1 holding e_i and P2 holding (x_i, -) run one-sided OTs: P1 learns x_i where e_i = 0.
    let mut ot = extension::Receiver::setup(ch, session, PURPOSE, extension::DEFAULT_K, rng)?;
    let (mut new, mut intact) = (Items::new(), true);
    let prefix = length_bytes(max_row);
    // The sender sees how long we take: rows are checked and copied whether they are wanted or not.
    transfer::receive(ch, &mut ot, &e, false, prefix + max_row, |wanted, row| {
        let (length, padded) = row.split_at(prefix);
        let length = length.iter().rev().fold(0usize, |n, &b| n << 8 | usize::from(b));
        let behind = |(i, &b): (usize, &u8)| b & u8::from(i >= length).wrapping_neg();
        let padding = padded.iter().enumerate().map(behind).fold(0, |all, b| all | b);
        intact &= !wanted | ((length <= max_row) & (padding == 0));
        new.push_if(wanted, padded, length);
    })?;
    Ok(Sealed::new(move || {
        matches(&e, y.len())?;
        let new = ItemSet::keep_first(new);
        if !intact {
            return Err(Error::misbehaves_unseen("a row it sent does not decrypt"));
        }
        if !new.duplicates.is_empty() || intersects(&new.set, y) {
            return Err(Error::misbehaves_unseen("an item it sent as new is not"));
        }
        Ok(new.set.into_items())
    }))
}

/// The sender, with set `x`, of whose items none is longer than `max_row`; the receiver's set has `n_y`
/// items.
pub fn sender(
    protocol: &impl Mqrpmt,
    ch: &mut Channel,
    session: &SessionId,
    x: &ItemSet,
    n_y: usize,
    max_row: usize,
    rng: &mut Prng,
) -> Result<()> {
    if x.longest() > max_row || max_row > MAX_ITEM {
        return Err(Error::Bug("an item is longer than the agreed row".into()));
    }
    // 0. and 1. X in random order; P2 obtains nothing.
    let order = protocol.client(ch, session, x, n_y, rng)?;
    // 2. One-sided OTs of (x_i, -).
    let mut ot = extension::Sender::setup(ch, session, PURPOSE, extension::DEFAULT_K, rng)?;
    let prefix = length_bytes(max_row);
    transfer::send(ch, &mut ot, x.len(), false, prefix + max_row, |i, row| {
        let item = x.get(order[i] as usize);
        row[..prefix].copy_from_slice(&item.len().to_le_bytes()[..prefix]);
        row[prefix..prefix + item.len()].copy_from_slice(item);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Ideal;
    use crate::operations::Confirmed;
    use crate::testing::run_pair;

    #[test]
    fn rows_that_are_not_new_or_come_twice_are_refused() {
        let (y, x): (ItemSet, ItemSet) = (["a", "b"].iter().collect(), ["c", "d"].iter().collect());
        let session = [1; 32];
        // A sender that asks for c and d, of which neither is in Y, and sends these rows.
        for (rows, good) in [(["c", "e"], true), (["c", "c"], false), (["c", "a"], false)] {
            let ((result, ()), _) = run_pair(
                |ch, rng| Ok(receiver(&Ideal, ch, &session, &y, 2, 9, rng)?.open(Confirmed(()))),
                |ch, rng| {
                    Ideal.client(ch, &session, &x, 2, rng)?;
                    let mut ot = extension::Sender::setup(ch, &session, PURPOSE, extension::DEFAULT_K, rng)?;
                    transfer::send(ch, &mut ot, 2, false, 10, |i, row| {
                        row[..2].copy_from_slice(&[1, rows[i].as_bytes()[0]]);
                    })
                },
            );
            assert_eq!(result.is_ok(), good, "{rows:?}: {result:?}");
        }
    }
}
