//! Union from mqRPMT and one-sided OT (CZZDL 8.1, Figure 12, "union").
//!
//! Security: that of the semi-honest mqRPMT and OT; nothing binds the receiver's choices to its bits. Leakage: |X| and X \\ Y
//! to the receiver, |Y| to the sender. Cost in addition to the mqRPMT, per item: ceil(128 / k) / 8 bytes (for the k of
//! [`crate::ot::extension`]) and one row. If both get the result, n_x + n_y more rows, where n_y excludes the dummies that the
//! receiver inserts.
//!
//! Departure from the figure: users choose the length of items, so each item travels in a row of the agreed width
//! ([`super::rows`]). If both get the result, the sender also learns the items of Y \\ X. Hence it learns the number of
//! matches, unless Y is padded, but not which of its own items are in Y.

use super::rows::{New, check_rows, new_rows, offer_rows};
use crate::context::Context;
use crate::error::Result;
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::membership::Mqrpmt;
use crate::operations::{Sealed, Terms, both, matches};
use crate::secret::Secrets;

const PURPOSE: &str = "union by mqRPMT, OT of rows";

/// Runs the receiver with set `y`; the sender's set has `n_x` items.
pub(crate) fn receiver<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    y: &'a HashedSet<'a>,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    // 1. P1 obtains the bits e.
    let e = protocol.server(cx, y, n_x)?;
    receive(cx, PURPOSE, y, e, terms)
}

/// Continues the receiver after it has the bits `e` of the sender's queries.
pub(super) fn receive<'a>(
    cx: &mut Context,
    purpose: &'static str,
    y: &'a HashedSet<'a>,
    e: Secrets<bool>,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    // 2. P1 holding e_i and P2 holding (x_i, -) run one-sided OTs: P1 learns x_i where e_i = 0.
    let (n_y, n_x) = (y.len(), e.len());
    let verdict = move |e: &[bool]| matches(e, n_y).map(|_| ());
    new_rows(cx, purpose, (y, n_x), e, verdict, terms)
}

/// Runs the sender with set `x` and, if agreed, a payload per item; item and payload together fit into a row.
/// The receiver's set has `n_y` items. Returns the sorted union if both get it.
pub(crate) fn sender<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    x: &'a HashedSet<'a>,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Items>>> {
    check_rows(x, payloads, terms)?;
    // 0. and 1. X in random order; P2 obtains nothing.
    let order = protocol.client(cx, x, n_y)?;
    // 2. One-sided OTs of (x_i, -).
    offer_rows(cx, PURPOSE, (x, payloads), &order, terms)?;
    match terms.both {
        true => Ok(Some(both::recv_union(cx.ch, x.items(), most(x, n_y), terms)?)),
        false => Ok(None),
    }
}

/// The maximum size of the union. The dummies that the receiver inserted into its set count in `n_y`, but are
/// never in the union.
fn most(x: &HashedSet, n_y: usize) -> usize {
    without_inserted(x, n_y) + x.len()
}

/// The size that the receiver announced, given the size of its set in the protocol.
pub(super) fn without_inserted(x: &HashedSet, n_y: usize) -> usize {
    let inserted = if x.dummies().is_some() { x.announced() } else { 0 };
    n_y.saturating_sub(inserted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Fault};
    use crate::hash::SessionId;
    use crate::item::ItemSet;
    use crate::membership::Ideal;
    use crate::operations::Confirmed;
    use crate::ot::{Security, extension, transfer};
    use crate::testing::run_pair;

    #[test]
    fn rows_that_are_not_new_come_twice_or_do_not_decrypt_are_refused() {
        let (y, x): (ItemSet, ItemSet) = (["a", "b"].iter().collect(), ["c", "d"].iter().collect());
        let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
        let session = SessionId::of([1; 32]);
        let terms = Terms { max_row: 9, ..Terms::default() };
        // A sender with queries c and d, neither of which is in Y, that sends these rows: a length and an item.
        let (new, intact) = ("an item that it sent as new is not new", "a row it sent does not decrypt");
        for (rows, verdict) in [
            ([(1, "c"), (1, "e")], None),
            ([(1, "c"), (1, "c")], Some(new)),
            ([(1, "c"), (1, "a")], Some(new)),
            // A length longer than the row, and one shorter than the item.
            ([(1, "c"), (10, "e")], Some(intact)),
            ([(0, "c"), (1, "e")], Some(intact)),
        ] {
            let ((result, ()), _) = run_pair(
                &session,
                |cx| Ok(receiver(&Ideal, cx, &y, 2, &terms)?.open(Confirmed::for_tests())),
                |cx| {
                    Ideal.client(cx, &x, 2)?;
                    let mut ot =
                        extension::Sender::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
                    transfer::send(cx.ch, &mut ot, 2, false, 10, |i, row| {
                        row[..2].copy_from_slice(&[rows[i].0, rows[i].1.as_bytes()[0]]);
                    })
                },
            );
            match (result.err(), verdict) {
                (None, None) => (),
                (Some(Error::Peer { fault: Fault::Misbehaved, what: text, .. }), Some(words)) => {
                    assert!(text.contains(words), "{rows:?}: {text}")
                }
                (other, _) => panic!("{rows:?}: {other:?}"),
            }
        }
    }
}
