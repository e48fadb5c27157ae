//! mqRPMT from a permuted OPRF (CZZDL 6.3, Figure 9).
//!
//! Security: that of the permuted OPRF ([`crate::oprf::permuted`]): semi-honest, DDH, random oracles. Leakage: the sizes; the
//! server's bits are the output. Cost: 2 n_y points, and n_x tags (10 bytes each at 2^20 items per side). The server does 2 n_y
//! scalar multiplications and the client n_y + n_x. Memory: in addition to the hashed set, the server holds up to 52 bytes per
//! item of its own and 48 per query; the client, 36 bytes per item of the server and 4 per item of its own. Each also holds a
//! frame of points.
//!
//! P1 is the server: the receiver R of the operations and of the OPRF. P2 is the client: the sender S of both.
//!
//! The parties' views:
//! - P1: F_k(y) of its whole set, permuted by P2, and F_k(x) of the queries. The value of a matching query is in the first
//!   list, and P1 does not know to which of its items it belongs. All others look random. So P1 learns the bits;
//! - P2: H(y)^s, which looks random. It gets no answer.
//!
//! Departures from the figure:
//! - the client permutes its queries before the first message. Otherwise the positions of the bits would reveal which
//!   of its items match;
//! - the server permutes its set. A client that uses several keys for its points, and then gets a result, would learn
//!   where in the server's file its matches are;
//! - only a tag of F_k(x) is sent, with error probability at most 2^-40 per run. No compact set is used: P1 unmasks point by
//!   point, so points are sent whole, and the queries must stay in the order of the bits;
//! - queries with equal tags are rejected. Otherwise a client could repeat one item as often as the minimum count and
//!   learn from the result whether Y has it. (A client that uses several keys still can: a minimum count protects
//!   against semi-honest clients only);
//! - the client sends its queries after the permuted points, though it could send them first.

use super::Mqrpmt;
use super::lookup::{self, Tags};
use crate::channel::{Message, Unit};
use crate::context::Context;
use crate::error::Result;
use crate::group::Group;
use crate::hashed::HashedSet;
use crate::oprf::permuted::PermutedOprf;
use crate::secret::Secrets;

const F_X: Message<[u8]> = Message::new(0x15, "S->R  tags of F_k(x), permuted");

/// The mqRPMT from the permuted OPRF over a group.
pub struct FromPermutedOprf<G>(pub G);

impl<G: Group> Mqrpmt for FromPermutedOprf<G> {
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>> {
        // A query wrongly found among F_k(y) is the only kind of undetected error.
        let tags = Tags::new(cx.exponent, n_x, y.len())?;
        // 1. P1 acts as the pOPRF's client with inputs Y, and obtains F_k(y_π(i)).
        let order = cx.rng.permutation(y.len());
        let f_y = PermutedOprf(self.0).receiver(cx, y, &order)?;
        // 3. P1 sets e_i = 1 iff F_k(x_i) is one of them.
        cx.ch.stage("comparing", Unit::Bytes, n_x * tags.bytes);
        tags.test(&mut cx.ch.rx, F_X, n_x, f_y, cx.threads)
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<u32>> {
        let tags = Tags::new(cx.exponent, x.len(), n_y)?;
        // 0. P2 sends its queries in random order, so that the positions of the bits reveal nothing to P1.
        let order = cx.rng.permutation(x.len());
        // 1. P2 acts as the pOPRF's server, and obtains k and π.
        let keyed = PermutedOprf(self.0).sender(cx, x, n_y)?;
        // 2. P2 computes and sends F_k(x_i).
        cx.ch.stage("comparing", Unit::Bytes, x.len() * tags.bytes);
        for positions in order.chunks(lookup::FRAME) {
            let f_x = cx.threads.run(|| keyed.values(positions))?;
            tags.send(&mut cx.ch.tx, F_X, &f_x)?;
        }
        Ok(order)
    }
}

#[cfg(test)]
#[path = "poprf_tests.rs"]
mod tests;
