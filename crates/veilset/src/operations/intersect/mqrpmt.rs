//! Intersection from mqRPMT and one-sided OT (CZZDL 8.1, Figure 12, "intersection").
//!
//! Security: semi-honest, of the mqRPMT and the OT; nothing binds the receiver's choices to its bits. Leakage:
//! |X| and X n Y to the receiver, |Y| to the sender. Cost in addition to the mqRPMT, per item: ceil(128 / k) / 8
//! bytes, 16 bytes and, if agreed, one row of payload.
//!
//! Departure from the figure: S transfers a 128-bit digest of the item instead of the item, and R looks the
//! digest up in its own set. So items may have any length, no length shows, and an accidental match of tags is
//! detected. Digests of different items collide with probability n_x n_y 2^-128, and only matter where the tags
//! collide too.

use super::{Matching, sent_on, sort};
use crate::context::Context;
use crate::error::Result;
use crate::hash::{Domain, SessionId};
use crate::hashed::Hashed;
use crate::item::Items;
use crate::membership::Mqrpmt;
use crate::operations::row::Layout;
use crate::operations::{Sealed, Terms, both};
use crate::ot::{Security, extension, transfer};
use rayon::prelude::*;

pub(crate) const DIGEST: usize = 16;
const PURPOSE: &str = "intersection by mqRPMT, OT of digests";

/// The digest of an item, from its hash. Dummies have digests too; otherwise timing would reveal their number.
fn digests<'a>(session: &SessionId, x: &'a Hashed) -> impl Fn(usize) -> [u8; DIGEST] + Send + Sync + use<'a> {
    let domain = Domain::new(session, "intersection by mqRPMT, digest of an item");
    move |i| domain.hash(&[x.hash(i)])
}

/// The width of a row in bytes: the digest and, if agreed, the payload.
fn width(terms: &Terms) -> (Option<Layout<1>>, usize) {
    let layout = terms.payload.then(|| Layout::<1>::new(terms.max_row));
    (layout, DIGEST + layout.map_or(0, Layout::width))
}

/// Runs the receiver with set `y`; the sender's set has `n_x` items.
pub(crate) fn receiver<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    y: &'a Hashed<'a>,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, Matching>> {
    // 1. P1 obtains the bits e.
    let e = protocol.server(cx, y, n_x)?;
    // 2. P1 holding e_i and P2 holding (-, x_i) run one-sided OTs: P1 learns x_i where e_i = 1.
    let mut ot = extension::Receiver::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
    let (layout, width) = width(terms);
    let (mut matched, mut payloads, mut intact) = (Vec::<[u8; DIGEST]>::new(), Items::new(), true);
    // Unwanted rows take as much work as wanted ones, because the sender can time us.
    transfer::receive(cx.ch, &mut ot, &e, true, width, |wanted, row| {
        let (digest, rest) = row.split_at(DIGEST);
        let n = matched.len();
        matched.extend(<[u8; DIGEST]>::try_from(digest));
        matched.truncate(n + usize::from(wanted));
        if let Some(layout) = layout {
            let parts = layout.read(rest);
            let (from, length) = parts.get(0);
            payloads.push_if(wanted, from, length);
            intact &= !wanted | parts.well_formed;
        }
    })?;
    if terms.both {
        both::send_bits(cx.ch, &e)?;
    }
    let digest = digests(&cx.session, y);
    let threads = cx.threads.clone();
    Ok(Sealed::new(move || {
        let n = y.items().len();
        let own = threads.run(|| {
            let mut own: Vec<([u8; DIGEST], u32)> =
                (0..n as u32).into_par_iter().map(|i| (digest(i as usize), i)).collect();
            own.par_sort_unstable();
            own
        });
        let position = |d| own.binary_search_by_key(d, |o| o.0).ok().map(|at| own[at].1);
        let positions = matched.iter().map(position).collect::<Option<Vec<u32>>>().filter(|_| intact);
        sort(positions, &payloads, n)
    }))
}

/// Runs the sender with set `x` and, if agreed, a payload per item, none longer than a row. The receiver's set
/// has `n_y` items. Returns the matches if both get them.
pub(crate) fn sender<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    x: &Hashed,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Matching>>> {
    let (layout, width) = width(terms);
    if let Some(layout) = layout {
        layout.check(payloads.iter().map(|payload| [payload.len()]))?;
    }
    let digest = digests(&cx.session, x);
    // 0. and 1. X in random order; P2 obtains nothing.
    let order = protocol.client(cx, x, n_y)?;
    // 2. One-sided OTs of (-, x_i).
    let mut ot = extension::Sender::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
    transfer::send(cx.ch, &mut ot, x.len(), true, width, |i, row| {
        let at = order[i] as usize;
        let (place, rest) = row.split_at_mut(DIGEST);
        place.copy_from_slice(&digest(at));
        // A dummy has no payload. A receiver that follows the protocol does not read its row.
        if let Some(layout) = layout {
            layout.write([if at < payloads.len() { payloads.get(at) } else { &[] }], rest);
        }
    })?;
    match terms.both {
        true => Ok(Some(sent_on(order, both::recv_bits(cx.ch, x.len(), n_y)?, x.items().len()))),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::overlapping;
    use std::collections::HashSet;

    #[test]
    fn digests_are_of_the_session_and_no_part_of_the_hash() {
        let set = overlapping(20, 0, 0.0).0;
        let set = Hashed::new(&set);
        let mut all: HashSet<_> = set.own().iter().flat_map(|hash| hash.as_chunks().0.to_vec()).collect();
        for session in [1, 2] {
            let digest = digests(&SessionId::of([session; 32]), &set);
            all.extend((0..20).map(digest));
        }
        assert_eq!(all.len(), 20 * 4);
    }
}
