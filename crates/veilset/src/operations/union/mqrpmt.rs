//! Union from mqRPMT and one-sided OT (CZZDL 8.1, Figure 12, "union").
//!
//! Security: semi-honest, of the mqRPMT and the OT; nothing binds the receiver's choices to its bits.
//! Leakage: |X| and X \ Y to the receiver, |Y| to the sender. Cost beside the mqRPMT: ceil(128 / k) / 8
//! bytes and one row an item; if both get the result, n_x + n_y rows more, where n_y does not count the dummies that
//! the receiver inserts.
//!
//! Departure from the figure: items are as long as users' keys are, so each travels in a row of the agreed
//! width, with its payload and the true lengths inside. The width follows from the agreement, never from the
//! data. If both get the result, the sender also learns the items of Y \ X and so, unless Y is padded, the number
//! of matches, but not which of its own items are in Y.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::Hashed;
use crate::item::{ItemSet, Items, intersects};
use crate::membership::Mqrpmt;
use crate::operations::row::Layout;
use crate::operations::{Sealed, Terms, both, matches};
use crate::ot::{Security, extension, transfer};
use crate::secret::Secrets;
use rayon::prelude::*;

const PURPOSE: &str = "union by mqRPMT, OT of rows";

/// What the receiver of a union learns.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct New {
    /// The items that only the sender has, in the order of its queries, which is random but for the bins of krtw19.
    pub items: Items,
    /// The payload of each of them; none if none was agreed.
    pub payloads: Items,
}

/// The receiver, with set `y`; the sender's has `n_x` items.
pub(crate) fn receiver<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    y: &Hashed<'a>,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    match terms.payload {
        true => receive::<2>(protocol, cx, y, n_x, terms),
        false => receive::<1>(protocol, cx, y, n_x, terms),
    }
}

/// With rows of `N` parts: the item and, if agreed, its payload.
fn receive<'a, const N: usize>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    y: &Hashed<'a>,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    // 1. P1 obtains the bits e.
    let e = protocol.server(cx, y, n_x)?;
    // 2. P1 holding e_i and P2 holding (x_i, -) run one-sided OTs: P1 learns x_i where e_i = 0.
    let n_y = y.len();
    let verdict = move |e: &[bool]| matches(e, n_y).map(|_| ());
    new_rows::<N>(cx, PURPOSE, (y, n_x), e, verdict, terms)
}

/// The OTs of the rows that are not wanted where the bit is 1, and the sealed look at them. `n_x` is the size of the
/// sender's set; `verdict` says whether so many bits can be.
pub(super) fn new_rows<'a, const N: usize>(
    cx: &mut Context,
    purpose: &'static str,
    (y, n_x): (&Hashed<'a>, usize),
    e: Secrets<bool>,
    verdict: impl FnOnce(&[bool]) -> Result<()> + Send + 'a,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    let mut ot = extension::Receiver::setup(cx, purpose, extension::DEFAULT_K, Security::SemiHonest)?;
    let (mut new, mut intact) = (New::default(), true);
    let layout = Layout::<N>::new(terms.max_row);
    // The sender sees how long we take: rows are checked and copied whether they are wanted or not.
    transfer::receive(cx.ch, &mut ot, &e, false, layout.width(), |wanted, row| {
        let parts = layout.read(row);
        intact &= !wanted | parts.well_formed;
        let lists = [&mut new.items, &mut new.payloads];
        for (i, list) in lists.into_iter().enumerate().take(N) {
            let (from, length) = parts.get(i);
            list.push_if(wanted, from, length);
        }
    })?;
    let (items, announced) = (y.items(), y.announced());
    if terms.both {
        // Without a verdict: the time until here must say no more than the union does. With its size, and that of
        // X, the number of new items and of ours is one.
        let mut union: Vec<&[u8]> = items.iter().chain(new.items.iter()).collect();
        union.par_sort_unstable();
        union.dedup();
        both::send_union(cx.ch, &union, announced + n_x, terms.max_row)?;
    }
    Ok(Sealed::new(move || {
        verdict(&e)?;
        let distinct = ItemSet::keep_first(new.items);
        if !intact {
            return Err(Error::misbehaves_unseen("a row it sent does not decrypt"));
        }
        if !distinct.duplicates.is_empty() || intersects(&distinct.set, items) {
            return Err(Error::misbehaves_unseen("an item it sent as new is not"));
        }
        Ok(New { items: distinct.set.into_items(), payloads: new.payloads })
    }))
}

/// The sender, with set `x` and, if agreed, a payload for each of its items; none of them is together longer
/// than a row. The receiver's set has `n_y` items. Returns the union in sorted order if both get it.
pub(crate) fn sender<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    x: &Hashed<'a>,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Items>>> {
    match terms.payload {
        true => send::<2>(protocol, cx, [x.items(), payloads], x, n_y, terms)?,
        false => send::<1>(protocol, cx, [x.items()], x, n_y, terms)?,
    }
    match terms.both {
        true => Ok(Some(both::recv_union(cx.ch, x.items(), most(x, n_y), terms.max_row)?)),
        false => Ok(None),
    }
}

fn send<const N: usize>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    parts: [&Items; N],
    x: &Hashed,
    n_y: usize,
    terms: &Terms,
) -> Result<()> {
    check_rows(parts, terms)?;
    // 0. and 1. X in random order; P2 obtains nothing.
    let order = protocol.client(cx, x, n_y)?;
    // 2. One-sided OTs of (x_i, -).
    offer_rows(cx, PURPOSE, parts, &order, terms)
}

/// The most items that the union can have. Those that the receiver inserted in its set are among the `n_y` and never
/// in the union.
fn most(x: &Hashed, n_y: usize) -> usize {
    let inserted = if x.dummies().is_some() { x.announced() } else { 0 };
    n_y.saturating_sub(inserted) + x.len()
}

/// Refuses rows that are too long.
pub(super) fn check_rows<const N: usize>(parts: [&Items; N], terms: &Terms) -> Result<()> {
    let layout = Layout::<N>::new(terms.max_row);
    layout.check((0..parts[0].len()).map(|i| parts.map(|part| part.get(i).len())))
}

/// The OTs of the rows at these positions, which are not wanted where the receiver's bit is 1.
pub(super) fn offer_rows<const N: usize>(
    cx: &mut Context,
    purpose: &'static str,
    parts: [&Items; N],
    order: &[u32],
    terms: &Terms,
) -> Result<()> {
    let layout = Layout::<N>::new(terms.max_row);
    let mut ot = extension::Sender::setup(cx, purpose, extension::DEFAULT_K, Security::SemiHonest)?;
    transfer::send(cx.ch, &mut ot, order.len(), false, layout.width(), |i, row| {
        // The row of a dummy is empty: a receiver that follows the protocol does not read it.
        let at = order[i] as usize;
        layout.write(parts.map(|part| if at < part.len() { part.get(at) } else { &[] }), row);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;
    use crate::hash::SessionId;
    use crate::membership::Ideal;
    use crate::operations::Confirmed;
    use crate::testing::run_pair;

    #[test]
    fn rows_that_are_not_new_come_twice_or_do_not_decrypt_are_refused() {
        let (y, x): (ItemSet, ItemSet) = (["a", "b"].iter().collect(), ["c", "d"].iter().collect());
        let (y, x) = (Hashed::new(&y), Hashed::new(&x));
        let session = SessionId::of([1; 32]);
        let terms = Terms { max_row: 9, ..Terms::default() };
        // A sender that asks for c and d, of which neither is in Y, and sends these rows: a length and an item.
        let (new, intact) = ("an item it sent as new is not", "a row it sent does not decrypt");
        for (rows, verdict) in [
            ([(1, "c"), (1, "e")], None),
            ([(1, "c"), (1, "c")], Some(new)),
            ([(1, "c"), (1, "a")], Some(new)),
            // Longer than a row, and shorter than what stands there.
            ([(1, "c"), (10, "e")], Some(intact)),
            ([(0, "c"), (1, "e")], Some(intact)),
        ] {
            let ((result, ()), _) = run_pair(
                &session,
                |cx| Ok(receiver(&Ideal, cx, &y, 2, &terms)?.open(Confirmed(()))),
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
