//! Intersection from mqRPMT and one-sided OT (CZZDL 8.1, Figure 12, "intersection").
//!
//! Security: that of the semi-honest mqRPMT and OT; nothing binds the receiver's choices to its bits. Leakage: |X| and X n Y to
//! the receiver, |Y| to the sender. Cost in addition to the mqRPMT, per item: ceil(128 / k) / 8 bytes (for the k of
//! [`crate::ot::extension`]), 16 bytes and, if agreed, one row of payload.
//!
//! Departure from the figure: S transfers a 128-bit digest of the item instead of the item, and R looks the digest up in its
//! own set. Hence items may have any length, no length is revealed, and an accidental match of tags is detected. Digests of
//! different items collide with probability n_x n_y 2^-128, and only matter where the tags collide too.

use super::rows::{self, Found};
use super::{Matching, sent_on};
use crate::context::Context;
use crate::error::Result;
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::membership::Mqrpmt;
use crate::operations::{Sealed, Terms, both};
use crate::ot::{Security, extension, transfer};

const PURPOSE: &str = "intersection by mqRPMT, OT of digests";
const DIGESTS: &str = "intersection by mqRPMT, digest of an item";

/// Runs the receiver with set `y`; the sender's set has `n_x` items.
pub(crate) fn receiver<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    y: &'a HashedSet<'a>,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, Matching>> {
    // 1. P1 obtains the bits e.
    let e = protocol.server(cx, y, n_x)?;
    // 2. P1 holding e_i and P2 holding (-, x_i) run one-sided OTs: P1 learns x_i where e_i = 1.
    let mut ot = extension::Receiver::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
    let mut found = Found::new(terms);
    // Unwanted rows take as much work as wanted ones, because the sender can time us.
    transfer::receive(cx.ch, &mut ot, &e, true, rows::width(terms), |wanted, row| found.take(wanted, row))?;
    if terms.both {
        both::send_bits(cx.ch, &e)?;
    }
    Ok(found.places(cx, DIGESTS, y))
}

/// Runs the sender with set `x` and, if agreed, a payload per item, none longer than a row. The receiver's set
/// has `n_y` items. Returns the matches if both get them.
pub(crate) fn sender<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    x: &HashedSet,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Matching>>> {
    let rows = rows::Rows::new(&cx.session, DIGESTS, (x, payloads), terms)?;
    // 0. and 1. X in random order; P2 obtains nothing.
    let order = protocol.client(cx, x, n_y)?;
    // 2. One-sided OTs of (-, x_i).
    let mut ot = extension::Sender::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
    let write = |i: usize, row: &mut [u8]| rows.write(order[i] as usize, row);
    transfer::send(cx.ch, &mut ot, x.len(), true, rows::width(terms), write)?;
    match terms.both {
        true => Ok(Some(sent_on(order, both::recv_bits(cx.ch, x.len(), n_y)?, x.items().len()))),
        false => Ok(None),
    }
}
