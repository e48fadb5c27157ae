//! Classic Diffie-Hellman PSI (Huberman, Franklin, Hogg, EC 1999), except that the receiver removes its blinding. It obtains
//! F_a(y) = H(y)^a, for the sender's key a, without revealing y to the sender.
//!
//! Security: semi-honest, DDH, `H` a random oracle. Leakage: |X| to R, |Y| to S, the matches to R, and to S if both get them.
//! Cost: 2 |Y| points, which have 32 bytes over Curve25519, and tags of 40 + log2(|X| |Y|) bits for X, of which about log2 |X|
//! are saved by their coding (`tags.rs`); 2 |Y| exponentiations for R, |X| + |Y| for S. With payload the tags have 128 bits,
//! and S sends one row per x.
//!
//! A malicious receiver learns at most |Y| values of F_a, so it can test |Y| guesses. This bound rests on the
//! one-more gap Diffie-Hellman assumption, as in [`crate::oprf::two_hash_dh`]; it does not follow from DDH. Over
//! mqRPMT, such a receiver could test any number of guesses.
//!
//! Departures from the classic form:
//! - R permutes Y. Otherwise a sender that uses several keys, and also gets the result, would learn where the
//!   matches are in R's file;
//! - R removes its blinding instead of raising H(x)^a to its own key, so that S sends short tags instead of
//!   points;
//! - over Curve25519, H maps to the curve and never to its twist ([`crate::group::curve25519`]);
//! - the row of x is encrypted under a key derived from H(x)^a, as the tag of x is, but by a different hash.
//!
//! **Why the key stays hidden.** R has H(x)^a for the items that it blinded itself, and sees the tag of every x:
//! 16 bytes of a hash, domain-separated from the hash that derives the keys. Both hashes are random oracles, so
//! the tag reveals nothing about the key to a party that cannot query them at H(x)^a. By DDH, that value is
//! pseudorandom for every x outside Y.

use super::Matching;
use super::tags::{self, Coding, Tags};
use crate::channel::{Message, Unit, frames};
use crate::context::Context;
use crate::error::Result;
use crate::group::raised::{Raised, forged, unlucky};
use crate::group::{Group, Point};
use crate::hash::{Domain, SessionId};
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::operations::{Sealed, Terms};
use crate::oprf::Output;
use crate::ot::Pad;
use crate::params::tag_bits;
use crate::secret::Secrets;
use rayon::prelude::*;
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// Points per frame: 8192, or 256 KiB if each has 32 bytes. R buffers at most one pipe and two frames in each direction. S
/// holds all points of Y until its own tags are computed.
pub const FRAME: usize = 1 << 13;

/// The messages; their elements are points of a group.
struct Messages<G>(PhantomData<G>);

impl<G: Group> Messages<G> {
    const Y_B: Message<G::Point> = Message::new(0x61, "R->S  H(y)^b");
    const Y_BA: Message<G::Point> = Message::new(0x62, "S->R  H(y)^ba, same order");
}

/// Returns the encoding of the tags. False matches of tags are the only kind of undetected error. With payload, no two tags
/// of X may be equal.
pub(crate) fn coding(terms: &Terms, n_x: usize, n_y: usize) -> Result<Coding> {
    Ok(Coding::new(if terms.payload { 128 } else { tag_bits(terms.exponent(), n_x, n_y)? }, n_x))
}

/// Values derived from F_a: the tags of items and dummies, and the keys of their rows if rows are sent.
struct Derived {
    tags: Tags,
    keys: Secrets<Pad>,
    /// The domains of tags and of keys.
    domains: [Domain; 2],
}

impl Derived {
    /// Allocates room for `n` items and dummies.
    fn new(session: &SessionId, coding: Coding, payload: bool, n: usize) -> Self {
        let domains = ["dh-psi tag of H(x)^a", "dh-psi key of a row from H(x)^a"];
        Derived {
            tags: Tags::new(coding, n),
            keys: Secrets::zeros(if payload { n } else { 0 }),
            domains: domains.map(|purpose| Domain::new(session, purpose)),
        }
    }

    /// Derives the tags and keys of these values, the first of which has position `first`.
    fn fill(&mut self, first: usize, values: &[impl Point]) {
        let [of_tags, of_keys] = &self.domains;
        let mut hashes = Secrets::<Output>::zeros(values.len());
        hashes.par_iter_mut().zip(values).for_each(|(hash, p)| *hash = of_tags.hash(&[p.as_ref()]));
        self.tags.fill(first, &hashes);
        let keys = self.keys.par_iter_mut().skip(first).zip(values);
        keys.for_each(|(key, p)| *key = of_keys.hash(&[p.as_ref()]));
    }
}

/// Runs the receiver R with set `y`; the sender's set has `n_x` items.
pub(crate) fn receiver<'a, G: Group>(
    cx: &mut Context,
    y: &HashedSet,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, Matching>> {
    let (n_y, n) = (y.len(), y.items().len());
    let coding = coding(terms, n_x, n_y)?;
    cx.ch.stage("matching", Unit::Items, 2 * n_y);
    // 0. R permutes Y: if S gets the result too, it must not learn where in Y the matches are.
    let order = cx.rng.permutation(n_y);
    // 1. R picks b and sends H(y)^b.
    let (y_b, off) = Raised::<G>::with_inverse(y, cx.rng)?;
    let mut own = Derived::new(&cx.session, coding, terms.payload, n_y);
    cx.ch.duplex(
        |tx| {
            order.chunks(FRAME).try_for_each(|positions| {
                tx.send(Messages::<G>::Y_B, &cx.threads.run(|| y_b.points(positions)).map_err(unlucky)?)
            })
        },
        // 3. From H(y)^ba R obtains H(y)^a.
        |rx| {
            for (frame, n) in frames(n_y, FRAME).enumerate() {
                let y_ba = rx.recv(Messages::<G>::Y_BA, n)?;
                cx.threads.run(|| {
                    let y_a = Zeroizing::new(G::raise(&y_ba, &off).map_err(forged::<G>)?);
                    own.fill(frame * FRAME, &y_a);
                    Ok(())
                })?;
            }
            Ok(())
        },
    )?;
    // 5. R finds its own tags among the tags of X, and 6. decrypts their payload.
    tags::receiver(cx, own.tags, own.keys, (move |i| order[i as usize], n), n_x, terms)
}

/// Runs the sender S with set `x` and, if agreed, a payload per item, none longer than a row. The receiver's set
/// has `n_y` items. Returns the matches if both get them.
pub(crate) fn sender<'a, G: Group>(
    cx: &mut Context,
    x: &HashedSet,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Matching>>> {
    let n_x = x.len();
    let coding = coding(terms, n_x, n_y)?;
    tags::check(payloads, terms)?;
    cx.ch.stage("matching", Unit::Items, 2 * n_y);
    // 2. S picks a, and computes the tags of H(x)^a while R computes H(y)^b.
    let x_a = Raised::<G>::new(x, cx.rng)?;
    let all: Vec<u32> = (0..n_x as u32).collect();
    let (own, y_b) = cx.ch.duplex(
        |_| {
            let mut own = Derived::new(&cx.session, coding, terms.payload, n_x);
            for (frame, positions) in all.chunks(FRAME).enumerate() {
                cx.threads.run(|| {
                    own.fill(frame * FRAME, &Zeroizing::new(x_a.points(positions).map_err(unlucky)?));
                    Ok(())
                })?;
            }
            Ok(own)
        },
        // Memory grows with the received points, not with the announced size.
        |rx| {
            frames(n_y, FRAME).map(|n| rx.recv(Messages::<G>::Y_B, n)).collect::<Result<Vec<Vec<G::Point>>>>()
        },
    )?;
    // For each H(y)^b S answers H(y)^ba, in the same order.
    for y_b in y_b {
        cx.ch
            .tx
            .send(Messages::<G>::Y_BA, &cx.threads.run(|| G::raise(&y_b, x_a.key())).map_err(forged::<G>)?)?;
    }
    // 4. S sends the tags in sorted order, which hides the order of X, and the payloads in the same order.
    let Derived { tags, keys, .. } = own;
    let keys =
        |positions: &[u32]| Secrets::from(positions.iter().map(|&i| keys[i as usize]).collect::<Vec<_>>());
    tags::sender(cx, tags, keys, (payloads, x.items().len()), n_y, terms)
}

#[cfg(test)]
#[path = "dh_psi_tests.rs"]
mod tests;
