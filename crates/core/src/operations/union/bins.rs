//! Union from reverse private membership tests in bins and one-sided OT (KRTW19 5.1, Figure 7; A, Figure 10).
//!
//! The tests are from KRTW19 ([`crate::membership::rpmt`]), or use oblivious switching ([`crate::membership::osn`]).
//!
//! Security: that of the semi-honest tests and OT; nothing binds the receiver's choices to its bits. Leakage: that of the
//! tests; |X| and X \\ Y to the receiver, |Y| to the sender; for a padded set, the bound.
//!
//! Without the private comparison of KRTW19, the receiver holds the value s* ([`crate::membership::rpmt`]) for every item of
//! the sender. It gets the items that it lacks anyway. But if the run aborts before the rows, the receiver can still use s* to
//! test which items of a list the sender has. So this variant is not the default.
//!
//! Cost: the tests, and for each slot ceil(128 / k) / 8 bytes (for the k of [`crate::ot::extension`]) and a row; if both get
//! the result, n_x + n_y more rows. Memory: in addition to the hashed set, that of the tests; per slot, 1 byte in the receiver
//! and 4 in the sender; in the receiver, the new rows and the pads that wait for rows; and a frame of OTs.
//!
//! Departures from the paper: those of the tests; all tests run first, then one batch of OTs; items travel in rows as in
//! [`super::rows`]. The sender's set is padded with the bottom item that fills the bins (2.5): the sender hashes its dummies
//! into bins like items, since otherwise timing would reveal their number, and they then count as the bottom item. The
//! receiver's dummies are items that match nothing.
//!
//! Timing: R knows how many rows of a frame have new items. If rows of the bottom item took less time than rows of items, the
//! time of a frame would reveal how many match. So they are written from items too, and wiped.

use super::rows::{New, check_rows, new_rows, offer_rows, width};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::membership::InBins;
use crate::operations::{Sealed, Terms, both};
use crate::ot::Security;
use crate::ot::extension::{DEFAULT_K, correction_bytes};

const PURPOSE: &str = "union over tests in bins, OT of rows";

/// Bytes that the transfer takes for each slot, in both directions, rounded down.
pub(crate) fn beside(terms: &Terms) -> usize {
    width(terms) + correction_bytes(1 << 10, DEFAULT_K, Security::SemiHonest) / (1 << 10)
}

/// Runs the receiver with set `y`; the sender's set has `n_x` items.
pub(crate) fn receiver<'a>(
    tests: &impl InBins,
    cx: &mut Context,
    y: &'a HashedSet<'a>,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    // 1. to 6(a). One bit per slot.
    let e = tests.receiver(cx, y.own())?;
    let verdict = move |e: &[bool]| {
        let new = e.iter().filter(|&&e| !e).count();
        match new <= n_x {
            true => Ok(()),
            false => Err(Error::misbehaves_unseen(format!("{new} of its {n_x} items are new"))),
        }
    };
    // 6(b). One-sided OTs of the rows. R wants those where the bit is 0.
    new_rows(cx, PURPOSE, (y, n_x), e, verdict, terms)
}

/// Runs the sender with set `x` and, if agreed, a payload per item; item and payload together fit into a row.
/// The receiver's set has `n_y` items. Returns the sorted union if both get it.
pub(crate) fn sender<'a>(
    tests: &impl InBins,
    cx: &mut Context,
    x: &'a HashedSet<'a>,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Items>>> {
    check_rows(x, payloads, terms)?;
    // 1. to 6(a). The contents of the slots. Rows of the bottom item and of dummies are empty; R cannot tell
    //    them apart.
    let order = tests.sender(cx, x.own(), x.items().len())?;
    // 6(b). One-sided OTs of (x_j, -).
    offer_rows(cx, PURPOSE, (x, payloads), &order, terms)?;
    match terms.both {
        true => Ok(Some(both::recv_union(cx.ch, x.items(), n_y + x.len(), terms)?)),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;
    use crate::hash::SessionId;
    use crate::item::ItemSet;
    use crate::membership::rpmt::{Binning, Comparison};
    use crate::operations::Confirmed;
    use crate::testing::run_pair;

    /// A sender that puts items into slots that belong to the bottom item.
    #[test]
    fn more_new_rows_than_announced_are_refused() {
        let numbers =
            |range: std::ops::Range<u32>| -> ItemSet { range.map(|i| i.to_string().into_bytes()).collect() };
        let (y, x) = (numbers(0..300), numbers(1000..1300));
        let (y, x) = (HashedSet::new(&y), HashedSet::new(&x));
        let session = SessionId::of([1; 32]);
        let terms = Terms { max_row: 9, ..Terms::default() };
        for (announced, verdict) in [(300, None), (299, Some("300 of its 299 items are new"))] {
            let plan = Binning::new(Comparison::Plain, 300, announced, beside(&terms)).unwrap();
            let ((result, ()), _) = run_pair(
                &session,
                |cx| {
                    let sealed = receiver(&plan, cx, &y, announced, &terms)?;
                    Ok(sealed.open(Confirmed::for_tests()))
                },
                |cx| {
                    let order = plan.sender(cx, x.own(), 300)?;
                    offer_rows(cx, PURPOSE, (&x, &Items::new()), &order, &terms)
                },
            );
            match (result, verdict) {
                (Ok(new), None) => assert_eq!(new.items.len(), 300),
                (Err(Error::Peer { fault: Fault::Misbehaved, what: text, .. }), Some(words)) => {
                    assert!(text.contains(words), "{text}")
                }
                (result, _) => panic!("{announced}: {:?}", result.err()),
            }
        }
    }
}
