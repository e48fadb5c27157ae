//! mqRPMT from a commutative weak PRF (CZZDL 5.3, Figure 5): F_k(H(x)) in a group ([`crate::group`]).
//!
//! Security: semi-honest, DDH, `H` a random oracle. Leakage: the sizes; the server's bits are the output. Cost: n_y + n_x
//! points, and n_y tags (about 62 bits each at 2^20 items per side). Each party does n_y + n_x scalar multiplications, and can
//! do the ones for its own set before the session. Memory, in addition to the hashed set and what was prepared: 4 bytes per
//! item of its own, up to 48 per item of the peer, and a frame of points in each direction.
//!
//! P1 is the server, called the receiver R in the operations. P2 is the client, called the sender S there.
//!
//! Departures from the figure:
//! - H maps to the curve and never to its twist. If it mapped to both, F_k would reveal one bit of each item
//!   ([`crate::group::curve25519`], [`crate::group::p256`]);
//! - Omega is a compact set of 128-bit digests of the points. It errs with probability 2^-40 per run, whereas
//!   the paper's filter errs with that probability per query;
//! - the client permutes its queries before the first message. Otherwise the positions of the bits would reveal
//!   which of its items match;
//! - invalid points and points of low order are rejected, since F_k of the latter does not depend on k;
//! - queries that collide under the keys are rejected. Otherwise a client could repeat one item as often as the
//!   minimum count and learn from the result whether Y has it. (A client that uses several keys still can, if it
//!   partitions Omega to match: a minimum count protects against semi-honest clients only.)
//!
//! Y is permuted too. A client that follows the protocol learns nothing from the order: each F_k1(H(y)) looks
//! random to it, and it answers with sorted tags. But a client that uses several keys, and then gets a result,
//! would learn where in the server's file its matches are.

use super::Mqrpmt;
use crate::channel::{Message, Rx, Tx, Unit, frames};
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::Golomb;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::group::raised::{Raised, forged, unlucky};
use crate::hash::{Domain, SessionId};
use crate::hashed::HashedSet;
use crate::secret::Secrets;
use crate::threads::Threads;
use rayon::prelude::*;
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// Points per frame: 8192, or 256 KiB at 32 bytes each. Each direction buffers at most 1 MiB in its pipe, and two frames.
pub(crate) const FRAME: usize = 1 << 13;

/// The messages; their elements are points of a group.
struct Messages<G>(PhantomData<G>);

impl<G: Group> Messages<G> {
    const Y_K1: Message<G::Point> = Message::new(0x11, "R->S  F_k1(H(y))");
    const X_K2: Message<G::Point> = Message::new(0x12, "S->R  F_k2(H(x)), permuted");
}

/// The mqRPMT over a group and a kind of compact set.
pub struct CwPrf<G, S = GolombTags>(pub G, pub S);

/// Chooses the parameters of the compact set once the sizes are known.
pub trait MakeSet {
    /// The kind of compact set.
    type Set: CompactSet;
    /// Returns a compact set for `elements` elements. The probability that any of `queries` queries is found
    /// wrongly is at most 2^-`exponent`.
    fn make(&self, exponent: u32, queries: usize, elements: usize) -> Result<Self::Set>;
}

/// Sorted, Golomb-Rice coded tags, the kind that the program uses.
pub struct GolombTags;

impl MakeSet for GolombTags {
    type Set = Golomb;
    fn make(&self, exponent: u32, queries: usize, elements: usize) -> Result<Golomb> {
        Golomb::new(exponent, queries, elements)
    }
}

/// A Bloom filter, as in the paper. It is larger.
pub struct BloomFilter;

impl MakeSet for BloomFilter {
    type Set = crate::compact_set::bloom::Bloom;
    fn make(&self, exponent: u32, queries: usize, elements: usize) -> Result<Self::Set> {
        Ok(crate::compact_set::bloom::Bloom::new(exponent, queries, elements))
    }
}

impl<G: Group, S: MakeSet> Mqrpmt for CwPrf<G, S> {
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>> {
        cx.ch.stage("matching", Unit::Items, y.len() + n_x);
        // A query wrongly found in Omega is the only kind of undetected error.
        let omega = self.1.make(cx.exponent, n_x, y.len())?;
        // 1. P1 picks k1, then computes and sends F_k1(H(y_i)).
        let y_k1 = Raised::<G>::new(y, cx.rng)?;
        let order = cx.rng.permutation(y.len());
        let ((), x_k2_k1) = cx.ch.duplex(
            |tx| send_raised(tx, cx.threads, Messages::<G>::Y_K1, &y_k1, &order),
            // 3. P1 computes F_k1(F_k2(H(x_i))). Which of them are in Omega is determined below.
            |rx| raise_digests::<G>(rx, cx.threads, Messages::<G>::X_K2, n_x, y_k1.key(), &cx.session),
        )?;
        // Honest queries collide with probability n_x^2 2^-129. The outcome depends on the queries only.
        if cx.threads.run(|| repeats(&x_k2_k1)) {
            return Err(Error::misbehaves("it asked for the same item twice"));
        }
        cx.ch.stage("comparing", Unit::Bytes, omega.bytes());
        // 3. e_i = 1 iff F_k1(F_k2(H(x_i))) is in Omega.
        omega.test(&mut cx.ch.rx, cx.threads, &x_k2_k1)
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<u32>> {
        cx.ch.stage("matching", Unit::Items, n_y + x.len());
        let omega = self.1.make(cx.exponent, x.len(), n_y)?;
        // 0. P2 sends its queries in random order, so that the positions of the bits reveal nothing to P1.
        let order = cx.rng.permutation(x.len());
        // 2. P2 picks k2.
        let x_k2 = Raised::<G>::new(x, cx.rng)?;
        let ((), y_k1_k2) = cx.ch.duplex(
            // 2a. P2 computes and sends F_k2(H(x_i)).
            |tx| send_raised(tx, cx.threads, Messages::<G>::X_K2, &x_k2, &order),
            // 2b. P2 computes F_k2(F_k1(H(y_i))),
            |rx| raise_digests::<G>(rx, cx.threads, Messages::<G>::Y_K1, n_y, x_k2.key(), &cx.session),
        )?;
        cx.ch.stage("comparing", Unit::Bytes, omega.bytes());
        // and sends them as Omega, which hides their order.
        omega.send(&mut cx.ch.tx, cx.threads, y_k1_k2)?;
        Ok(order)
    }
}

/// Sends `F_k(H(x))` for the items at these positions.
fn send_raised<G: Group>(
    tx: &mut Tx,
    threads: &Threads,
    message: Message<G::Point>,
    x_k: &Raised<G>,
    order: &[u32],
) -> Result<()> {
    order.chunks(FRAME).try_for_each(|positions| {
        let points = threads.run(|| x_k.points(positions)).map_err(unlucky)?;
        tx.send(message, &points)
    })
}

/// Receives `n` points, raises each to `key`, and returns the digests.
fn raise_digests<G: Group>(
    rx: &mut Rx,
    threads: &Threads,
    message: Message<G::Point>,
    n: usize,
    key: &G::Key,
    session: &SessionId,
) -> Result<Secrets<u128>> {
    let domain = Domain::new(session, "cwPRF-mqRPMT digest of F_k1k2(H(x))");
    // Memory grows with the points received, not with the number announced.
    let mut digests = Secrets::zeros(0);
    for n in frames(n, FRAME) {
        let received = rx.recv(message, n)?;
        let raised = threads.run(|| {
            let points = Zeroizing::new(G::raise(&received, key)?);
            let digest = |p: &G::Point| u128::from_be_bytes(domain.hash(&[p.as_ref()]));
            Ok(Secrets::from(points.par_iter().map(digest).collect::<Vec<_>>()))
        });
        digests.extend(&raised.map_err(forged::<G>)?);
    }
    Ok(digests)
}

fn repeats(digests: &[u128]) -> bool {
    let mut sorted = Secrets::from(digests.to_vec());
    sorted.par_sort_unstable();
    sorted.windows(2).any(|w| w[0] == w[1])
}

#[cfg(test)]
#[path = "cwprf_tests.rs"]
mod tests;
