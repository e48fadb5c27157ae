//! Union from reverse private membership tests in bins and one-sided OT (KRTW19 5.1, Figure 7; A, Figure 10).
//!
//! Security: semi-honest, of the tests ([`crate::membership::rpmt`]) and the OT; nothing binds the receiver's choices
//! to its bits. Leakage: |X| and X \ Y to the receiver, |Y| to the sender; of a padded set the bound. Without the
//! private comparison the receiver has s* of every item of the sender, which it is about to get where it does not have
//! it. But a run that breaks off before the rows leaves it with that, and it can test by it which items of a list
//! the sender has. So this is not the default.
//! Cost: beta (m_s + 1) tests, and for each ceil(128 / k) / 8 bytes and a row; if both get the result, n_x + n_y rows
//! more. Memory: beside its hashed set, 64 bytes for each item of its own, 5 for each test, and what is said there.
//!
//! Departures from the paper: those of the tests; all tests come first, then one batch of OTs; items travel in rows as
//! in [`super::rows`]. A set is padded with the bottom item that fills the bins (2.5): dummies of the sender are
//! thrown into bins like items, or their number would show in time, and then count as the bottom item; those of the
//! receiver are items that match nothing.
//!
//! Time: a row of an item touches a little more memory than one of the bottom item, so frames of rows show a little of
//! how many of the sender's items are in their bins together.

use super::rows::{New, check_rows, new_rows, offer_rows};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::Hashed;
use crate::item::Items;
use crate::membership::rpmt::{self, Binning, Comparison};
use crate::operations::row::Layout;
use crate::operations::{Sealed, Terms, both};
use crate::ot::Security;
use crate::ot::extension::{DEFAULT_K, correction_bytes};

const PURPOSE: &str = "union by KRTW19, OT of rows";

/// Sizes and numbers for sets of these sizes, padded bounds where padded.
///
/// # Errors
/// [`Error::Usage`] for sets that are too large.
pub fn plan(comparison: Comparison, n_y: usize, n_x: usize, terms: &Terms) -> Result<Binning> {
    Binning::new(
        comparison,
        n_y,
        n_x,
        row_width(terms) + correction_bytes(1 << 10, DEFAULT_K, Security::SemiHonest) / (1 << 10),
    )
}

/// Bytes of a row.
pub(crate) fn row_width(terms: &Terms) -> usize {
    if terms.payload {
        Layout::<2>::new(terms.max_row).width()
    } else {
        Layout::<1>::new(terms.max_row).width()
    }
}

/// The receiver, with set `y`; the sender's has `n_x` items.
pub(crate) fn receiver<'a>(
    comparison: Comparison,
    cx: &mut Context,
    y: &Hashed<'a>,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    let plan = plan(comparison, y.len(), n_x, terms)?;
    // 1. to 6(a). A bit for each slot.
    let e = rpmt::receiver(cx, &plan, y.own())?;
    let verdict = move |e: &[bool]| {
        let new = e.iter().filter(|&&e| !e).count();
        match new <= n_x {
            true => Ok(()),
            false => Err(Error::misbehaves_unseen(format!("{new} of its {n_x} items are new"))),
        }
    };
    // 6(b). One-sided OTs of the rows, which R wants where the bit is 0.
    match terms.payload {
        true => new_rows::<2>(cx, PURPOSE, (y, n_x), e, verdict, terms),
        false => new_rows::<1>(cx, PURPOSE, (y, n_x), e, verdict, terms),
    }
}

/// The sender, with set `x` and, if agreed, a payload for each of its items; none of them is together longer
/// than a row. The receiver's set has `n_y` items. Returns the union in sorted order if both get it.
pub(crate) fn sender<'a>(
    comparison: Comparison,
    cx: &mut Context,
    x: &Hashed<'a>,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Items>>> {
    match terms.payload {
        true => send(comparison, cx, [x.items(), payloads], x, n_y, terms)?,
        false => send(comparison, cx, [x.items()], x, n_y, terms)?,
    }
    match terms.both {
        true => Ok(Some(both::recv_union(cx.ch, x.items(), n_y + x.len(), terms.max_row)?)),
        false => Ok(None),
    }
}

fn send<const N: usize>(
    comparison: Comparison,
    cx: &mut Context,
    parts: [&Items; N],
    x: &Hashed,
    n_y: usize,
    terms: &Terms,
) -> Result<()> {
    check_rows(parts, terms)?;
    let plan = plan(comparison, n_y, x.len(), terms)?;
    // 1. to 6(a). What is in the slots; rows of the bottom item and of dummies, which are the same to R, are empty.
    let order = rpmt::sender(cx, &plan, x.own(), x.items().len())?;
    // 6(b). One-sided OTs of (x_j, -).
    offer_rows(cx, PURPOSE, parts, &order, terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;
    use crate::hash::SessionId;
    use crate::item::ItemSet;
    use crate::operations::Confirmed;
    use crate::testing::run_pair;

    /// A sender that puts items into slots that are the bottom item's.
    #[test]
    fn more_new_rows_than_announced_are_refused() {
        let numbers =
            |range: std::ops::Range<u32>| -> ItemSet { range.map(|i| i.to_string().into_bytes()).collect() };
        let (y, x) = (numbers(0..300), numbers(1000..1300));
        let (y, x) = (Hashed::new(&y), Hashed::new(&x));
        let session = SessionId::of([1; 32]);
        let terms = Terms { max_row: 9, ..Terms::default() };
        for (announced, verdict) in [(300, None), (299, Some("300 of its 299 items are new"))] {
            let comparison = Comparison::Plain;
            let ((result, ()), _) = run_pair(
                &session,
                |cx| {
                    let sealed = receiver(comparison, cx, &y, announced, &terms)?;
                    Ok(sealed.open(Confirmed(())))
                },
                |cx| {
                    let plan = plan(comparison, 300, announced, &terms)?;
                    let order = rpmt::sender(cx, &plan, x.own(), 300)?;
                    offer_rows(cx, PURPOSE, [x.items()], &order, &terms)
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
