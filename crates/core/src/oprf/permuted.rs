//! The permuted OPRF (pOPRF): F_k(x) is a hash of H(x)^k in a group (CZZDL 6, Figures 6 to 8).
//!
//! The sender gets a key k and a permutation π. The receiver gets F_k at its inputs, but in the order of π: it does
//! not learn which value belongs to which input. The sender learns nothing about the inputs.
//!
//! Security: semi-honest, DDH, with `H` and the output hash as random oracles. A malicious sender can use a different key for
//! each element. A malicious receiver gets F_k at as many points as it sends, and no more under the one-more gap Diffie-Hellman
//! assumption. Leakage: the number of inputs.
//!
//! Cost: per input of the receiver, two points (64 bytes over ristretto255) and three scalar multiplications, two of
//! them its own; per input of the sender, one. Memory: the sender holds a point and a position of 4 bytes for each
//! input of the receiver, because it permutes all of them; the receiver holds 16 bytes for each value, and up to three times
//! that while their list grows. Both hold a frame of points.
//!
//! P1 is the sender and P2 the receiver (the paper's server and client). In the mqRPMT built from it, the roles are reversed
//! ([`crate::membership::poprf`]).
//!
//! Departures from the figures:
//! - a run with k or s equal to 0, which has negligible probability, fails. The figures draw them from all of Z_p, but with
//!   s = 0 nothing can be unmasked, and F_0 is constant;
//! - F hashes the point to 128 bits, in a domain of the session. Points of one session mean nothing in another, and the output
//!   is no longer than its callers need;
//! - invalid points are rejected, as is the identity, whose F_k does not depend on k.

use crate::channel::{Message, Rx, Unit, frames};
use crate::context::Context;
use crate::error::Result;
use crate::group::Group;
use crate::group::raised::{Raised, forged, unlucky};
use crate::hash::Domain;
use crate::hashed::HashedSet;
use crate::secret::Secrets;
use crate::threads::Threads;
use rayon::prelude::*;
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// Points per frame: 8192. Over ristretto255 that is 256 KiB, and a party holds 2.5 MiB while it works on a frame.
pub const FRAME: usize = 1 << 13;

/// The messages; their elements are points of a group.
struct Messages<G>(PhantomData<G>);

impl<G: Group> Messages<G> {
    const MASKED: Message<G::Point> = Message::new(0x13, "R->S  pOPRF, H(x)^s");
    const PERMUTED: Message<G::Point> = Message::new(0x14, "S->R  pOPRF, H(x)^sk, permuted");
}

/// The permuted OPRF over a group.
pub struct PermutedOprf<G>(pub G);

/// The sender's output: the key, which it can apply to its own set, and the permutation.
pub struct Keyed<'s, G: Group> {
    own: Raised<'s, G>,
    order: Secrets<u32>,
    domain: Domain,
}

impl<G: Group> Keyed<'_, G> {
    /// The permutation π: the receiver's value i belongs to its input `order()[i]`, in the order in which it sent them.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// F_k at the sender's items and dummies at these positions, each below its set's `len()`.
    ///
    /// # Errors
    /// [`crate::error::Error::Bug`] if an item hashes to an unfit point, which has negligible probability.
    pub fn values(&self, positions: &[u32]) -> Result<Secrets<u128>> {
        let points = Zeroizing::new(self.own.points(positions).map_err(unlucky)?);
        Ok(values(&self.domain, &points))
    }
}

impl<G: Group> PermutedOprf<G> {
    /// Runs the receiver, with the items and dummies of `x` at these positions as inputs, in this order. Returns F_k
    /// at the inputs, in an order that only the sender knows.
    ///
    /// # Errors
    /// The errors of the channel and of [`Raised::new`], [`crate::error::Error::Peer`] if the sender sends an unfit point,
    /// and [`crate::error::Error::Bug`] if an item hashes to one, which has negligible probability.
    pub fn receiver(&self, cx: &mut Context, x: &HashedSet, positions: &[u32]) -> Result<Secrets<u128>> {
        cx.ch.stage("matching", Unit::Items, 2 * positions.len());
        // 1. P2 picks s,
        let (masked, unmask) = Raised::<G>::with_inverse(x, cx.rng)?;
        // then sends (H(x_1)^s, ..., H(x_n)^s). P1 answers once it has all of them.
        for positions in positions.chunks(FRAME) {
            let points = cx.threads.run(|| masked.points(positions)).map_err(unlucky)?;
            cx.ch.tx.send(Messages::<G>::MASKED, &points)?;
        }
        // 4. P2 outputs y_i = (y'_i)^(1/s).
        let domain = Self::domain(cx);
        let mut all = Secrets::zeros(0);
        for n in frames(positions.len(), FRAME) {
            let permuted = cx.ch.rx.recv(Messages::<G>::PERMUTED, n)?;
            let unmasked = cx.threads.run(|| {
                let points = Zeroizing::new(G::raise(&permuted, &unmask)?);
                Ok(values(&domain, &points))
            });
            all.extend(&unmasked.map_err(forged::<G>)?);
        }
        Ok(all)
    }

    /// Runs the sender, for `n` inputs of the receiver. The key is the one under which `own`, its own set, is used in this
    /// session.
    ///
    /// # Errors
    /// The errors of the channel and of [`Raised::new`], and [`crate::error::Error::Peer`] if the receiver sends an unfit
    /// point.
    pub fn sender<'s>(&self, cx: &mut Context, own: &'s HashedSet<'s>, n: usize) -> Result<Keyed<'s, G>> {
        cx.ch.stage("matching", Unit::Items, 2 * n);
        // 2. P1 picks k
        let own = Raised::<G>::new(own, cx.rng)?;
        // and computes (H(x_1)^sk, ..., H(x_n)^sk),
        let raised = Self::raise_all(&mut cx.ch.rx, cx.threads, n, own.key())?;
        // then picks π, over the whole set and never per frame,
        let order = cx.rng.permutation(n);
        // and sends y'_i = H(x_π(i))^sk.
        for positions in order.chunks(FRAME) {
            let points: Vec<G::Point> =
                positions.iter().map(|&i| raised[i as usize / FRAME][i as usize % FRAME]).collect();
            cx.ch.tx.send(Messages::<G>::PERMUTED, &points)?;
        }
        // 3. P1 outputs k and π.
        Ok(Keyed { own, order, domain: Self::domain(cx) })
    }

    /// Receives `n` points in frames and raises them. Memory grows with the points received, not with the number announced.
    fn raise_all(
        rx: &mut Rx,
        threads: &Threads,
        n: usize,
        key: &G::Key,
    ) -> Result<Vec<Zeroizing<Vec<G::Point>>>> {
        let raised = frames(n, FRAME).map(|n| {
            let masked = rx.recv(Messages::<G>::MASKED, n)?;
            threads.run(|| G::raise(&masked, key)).map(Zeroizing::new).map_err(forged::<G>)
        });
        raised.collect()
    }

    fn domain(cx: &Context) -> Domain {
        Domain::new(&cx.session, "pOPRF, F_k(x) of H(x)^k")
    }
}

/// The outputs for these points.
fn values<P: crate::group::Point>(domain: &Domain, points: &[P]) -> Secrets<u128> {
    let value = |point: &P| u128::from_be_bytes(domain.hash(&[point.as_ref()]));
    Secrets::from(points.par_iter().map(value).collect::<Vec<_>>())
}

#[cfg(test)]
#[path = "permuted_tests.rs"]
mod tests;
