//! The transfer of a union's items, for any protocol that determines which of them are new: one-sided OTs (CZZDL 8.1, Figure
//! 12; KRTW19 5.1, Figure 7).
//!
//! Each item travels in a row of the agreed width, which holds the payload and the true lengths too. The width
//! follows from the agreement, never from the data.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::operations::row::Layout;
use crate::operations::{Sealed, Terms, both};
use crate::ot::{Security, extension, transfer};
use crate::secret::Secrets;
use rayon::prelude::*;

/// The result of the receiver of a union.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct New {
    /// The items that only the sender has, in the order of its queries. That order is random, except for the
    /// bins of krtw19 and the blocks of osn.
    pub items: Items,
    /// The payload of each new item; empty if none was agreed.
    pub payloads: Items,
}

/// Runs the OTs of the rows, of which those with bit 1 are unwanted, and sends the union on if both get it. The checks of the
/// rows are sealed. `n_x` is the size of the sender's set; `verdict` checks whether these bits are possible.
pub(super) fn new_rows<'a>(
    cx: &mut Context,
    purpose: &'static str,
    of: (&'a HashedSet<'a>, usize),
    e: Secrets<bool>,
    verdict: impl FnOnce(&[bool]) -> Result<()> + Send + 'a,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    // Rows have one or two parts: the item and, if agreed, its payload.
    match terms.payload {
        true => receive::<2>(cx, purpose, of, e, verdict, terms),
        false => receive::<1>(cx, purpose, of, e, verdict, terms),
    }
}

fn receive<'a, const N: usize>(
    cx: &mut Context,
    purpose: &'static str,
    (y, n_x): (&'a HashedSet<'a>, usize),
    e: Secrets<bool>,
    verdict: impl FnOnce(&[bool]) -> Result<()> + Send + 'a,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    let mut ot = extension::Receiver::setup(cx, purpose, extension::DEFAULT_K, Security::SemiHonest)?;
    let mut came = Came::<N>::new(terms);
    // The sender can time us, so unwanted rows are checked and copied too.
    let width = came.layout.width();
    transfer::receive(cx.ch, &mut ot, &e, false, width, |wanted, row| came.take(wanted, row))?;
    came.end(cx, (y, n_x), move || verdict(&e), terms)
}

/// The rows that the receiver obtained.
pub(crate) struct Came<const N: usize> {
    layout: Layout<N>,
    new: New,
    intact: bool,
}

impl<const N: usize> Came<N> {
    /// Returns an empty list of rows.
    pub(crate) fn new(terms: &Terms) -> Self {
        Came { layout: Layout::of(terms), new: New::default(), intact: true }
    }

    /// Keeps a row if it is wanted. An unwanted row takes the same work.
    pub(crate) fn take(&mut self, wanted: bool, row: &[u8]) {
        let parts = self.layout.read(row);
        self.intact &= !wanted | parts.well_formed;
        let lists = [&mut self.new.items, &mut self.new.payloads];
        for (i, list) in lists.into_iter().enumerate().take(N) {
            let (from, length) = parts.get(i);
            list.push_if(wanted, from, length);
        }
    }

    /// Sends the union on if both get it. The checks of the rows, and the verdict on their number, are sealed.
    pub(crate) fn end<'a>(
        self,
        cx: &mut Context,
        (y, n_x): (&'a HashedSet<'a>, usize),
        verdict: impl FnOnce() -> Result<()> + Send + 'a,
        terms: &Terms,
    ) -> Result<Sealed<'a, New>> {
        let Came { new, intact, .. } = self;
        let (items, announced) = (y.items(), y.announced());
        if terms.both {
            // No verdict yet: up to here the time must reveal no more than the union does. With an honest sender, the number
            // of sorted items is the size of the union, which the sender gets.
            let mut union: Vec<&[u8]> = items.iter().chain(new.items.iter()).collect();
            cx.threads.run(|| union.par_sort_unstable());
            union.dedup();
            both::send_union(cx.ch, &union, announced + n_x, terms)?;
        }
        let threads = cx.threads.clone();
        Ok(Sealed::new(move || {
            verdict()?;
            if !intact {
                return Err(Error::misbehaves_unseen("a row it sent does not decrypt"));
            }
            if !threads.run(|| y.all_new(&new.items)) {
                return Err(Error::misbehaves_unseen("an item that it sent as new is not new"));
            }
            Ok(new)
        }))
    }
}

/// Bytes of a row.
pub(crate) fn width(terms: &Terms) -> usize {
    if terms.payload { Layout::<2>::of(terms).width() } else { Layout::<1>::of(terms).width() }
}

/// Rejects rows of these items and, if agreed, payloads that are too long.
pub(crate) fn check_rows(x: &HashedSet, payloads: &Items, terms: &Terms) -> Result<()> {
    let items = x.items().iter().map(<[u8]>::len);
    match terms.payload {
        true => {
            Layout::<2>::of(terms).check(items.enumerate().map(|(i, item)| [item, payloads.get(i).len()]))
        }
        false => Layout::<1>::of(terms).check(items.map(|item| [item])),
    }
}

/// Sends the rows of the items at these positions and, if agreed, of their payloads by OT; the receiver does not want the rows
/// with bit 1.
pub(super) fn offer_rows(
    cx: &mut Context,
    purpose: &'static str,
    (x, payloads): (&HashedSet, &Items),
    order: &[u32],
    terms: &Terms,
) -> Result<()> {
    match terms.payload {
        true => send(cx, purpose, [x.items(), payloads], order, terms),
        false => send(cx, purpose, [x.items()], order, terms),
    }
}

fn send<const N: usize>(
    cx: &mut Context,
    purpose: &'static str,
    parts: [&Items; N],
    order: &[u32],
    terms: &Terms,
) -> Result<()> {
    let layout = Layout::<N>::of(terms);
    let mut ot = extension::Sender::setup(cx, purpose, extension::DEFAULT_K, Security::SemiHonest)?;
    transfer::send(cx.ch, &mut ot, order.len(), false, layout.width(), |i, row| {
        // The row of a dummy is empty. A receiver that follows the protocol does not read it.
        layout.write_item(parts, order[i] as usize, i, row);
    })
}
