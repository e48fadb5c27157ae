//! mqRPMT from a commutative weak PRF (CZZDL 5.3, Figure 5), F_k(H(x)) over Curve25519.
//!
//! Security: semi-honest, DDH, `H` a random oracle. Leakage: the sizes; the server's bits are the output.
//! Cost: n_y + n_x points of 32 bytes, and n_y tags (about 62 bits each at 2^20 items a side); each party
//! raises n_y + n_x points.
//!
//! Departures from the figure, for the reasons in DESIGN 4: H maps to the curve and never to its twist;
//! Omega is a compact set sized for the whole run, whose elements are 128-bit digests of the points; the
//! client permutes its queries before the first message; values of low order are refused.
//!
//! Y needs no permutation: the client receives F_k1(H(y)) under a key it does not know, one by one
//! indistinguishable from random points, and what it answers comes back sorted.

use super::Mqrpmt;
use crate::channel::{Channel, Message, Rx, Unit, frames};
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::Golomb;
use crate::error::{Error, Result};
use crate::group::curve25519::{Key, LowOrder, Point, hash_and_raise, raise};
use crate::hash::{Domain, SessionId};
use crate::item::ItemSet;
use crate::params::LAMBDA;
use crate::rng::Prng;
use rayon::prelude::*;

/// Points per frame: 8192, 256 KiB. Each direction holds at most a pipe and two frames.
const FRAME: usize = 1 << 13;
const Y_K1: Message<Point> = Message::new(0x11, "S->C  F_k1(H(y))");
const X_K2: Message<Point> = Message::new(0x12, "C->S  F_k2(H(x)), permuted");

/// The protocol, by the compact set it sends.
pub struct CwPrf<S = GolombTags>(pub S);

/// Chooses the compact set once the sizes are known.
pub trait MakeSet {
    /// The compact set it makes.
    type Set: CompactSet;
    /// A compact set of `elements` tested by `queries`, wrong with probability at most 2^-[`LAMBDA`].
    fn make(&self, queries: usize, elements: usize) -> Result<Self::Set>;
}

/// Sorted, Golomb-Rice coded tags: what is used.
pub struct GolombTags;

impl MakeSet for GolombTags {
    type Set = Golomb;
    fn make(&self, queries: usize, elements: usize) -> Result<Golomb> {
        Golomb::new(LAMBDA, queries, elements)
    }
}

/// A Bloom filter, as in the paper: larger.
pub struct BloomFilter;

impl MakeSet for BloomFilter {
    type Set = crate::compact_set::bloom::Bloom;
    fn make(&self, queries: usize, elements: usize) -> Result<Self::Set> {
        Ok(crate::compact_set::bloom::Bloom::new(LAMBDA, queries, elements))
    }
}

impl<S: MakeSet> Mqrpmt for CwPrf<S> {
    fn server(
        &self,
        ch: &mut Channel,
        session: &SessionId,
        y: &ItemSet,
        n_x: usize,
        rng: &mut Prng,
    ) -> Result<Vec<bool>> {
        ch.stage("matching", Unit::Items, y.len() + n_x);
        let omega = self.0.make(n_x, y.len())?;
        // 1. P1 picks k1, then computes and sends F_k1(H(y_i)).
        let k1 = Key::random(rng);
        let ((), x_k2_k1) = ch.duplex(
            |tx| {
                (0..y.len()).collect::<Vec<_>>().chunks(FRAME).try_for_each(|at| {
                    let y_k1 =
                        hash_and_raise(at.par_iter().map(|&i| y.get(i)), &k1).map_err(own_low_order)?;
                    tx.send(Y_K1, &y_k1)
                })
            },
            // 3. P1 computes F_k1(F_k2(H(x_i))), which of them are in Omega it finds out below.
            |rx| raise_digests(rx, X_K2, n_x, &k1, session),
        )?;
        ch.stage("comparing", Unit::Bytes, omega.bytes());
        // 3. e_i = 1 iff F_k1(F_k2(H(x_i))) is in Omega.
        omega.test(&mut ch.rx, &x_k2_k1)
    }

    fn client(
        &self,
        ch: &mut Channel,
        session: &SessionId,
        x: &ItemSet,
        n_y: usize,
        rng: &mut Prng,
    ) -> Result<Vec<u32>> {
        ch.stage("matching", Unit::Items, n_y + x.len());
        let omega = self.0.make(x.len(), n_y)?;
        // 0. The queries go out in random order, so that the positions of the bits tell P1 nothing.
        let order = rng.permutation(x.len());
        // 2. P2 picks k2.
        let k2 = Key::random(rng);
        let ((), y_k1_k2) = ch.duplex(
            // 2a. It computes and sends F_k2(H(x_i)).
            |tx| {
                order.chunks(FRAME).try_for_each(|at| {
                    let items = at.par_iter().map(|&i| x.get(i as usize));
                    tx.send(X_K2, &hash_and_raise(items, &k2).map_err(own_low_order)?)
                })
            },
            // 2b. It computes F_k2(F_k1(H(y_i))),
            |rx| raise_digests(rx, Y_K1, n_y, &k2, session),
        )?;
        ch.stage("comparing", Unit::Bytes, omega.bytes());
        // and sends them as Omega, which hides their order.
        omega.send(&mut ch.tx, y_k1_k2)?;
        Ok(order)
    }
}

/// Receives `n` points and returns a digest of each raised to `key`.
fn raise_digests(
    rx: &mut Rx,
    message: Message<Point>,
    n: usize,
    key: &Key,
    session: &SessionId,
) -> Result<Vec<u128>> {
    let domain = Domain::new(session, "cwPRF-mqRPMT digest of F_k1k2(H(x))");
    // Grows with what has come, not with what was announced.
    let mut digests = Vec::new();
    for n in frames(n, FRAME) {
        let points = raise(&rx.recv(message, n)?, key).map_err(|LowOrder| {
            Error::Peer("it sent a point of low order. It runs another program or misbehaves".into())
        })?;
        digests.par_extend(points.par_iter().map(|p| u128::from_be_bytes(domain.hash(&[p.as_bytes()]))));
    }
    Ok(digests)
}

fn own_low_order(LowOrder: LowOrder) -> Error {
    Error::Bug("an item hashed to a point of low order, which has probability 2^-250".into())
}

#[cfg(test)]
#[path = "cwprf_tests.rs"]
mod tests;
