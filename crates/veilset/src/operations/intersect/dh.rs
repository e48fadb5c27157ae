//! Diffie-Hellman PSI, the classic one (Huberman, Franklin, Hogg, EC 1999), with the receiver's key taken off again:
//! F_k(y) = H(y)^k is evaluated for the receiver without showing y.
//!
//! Security: semi-honest, DDH, `H` a random oracle. Leakage: |X| to R, |Y| to S, the matches to R. Cost: 64 |Y|
//! bytes and tags of (40 + log2 |X| |Y|) bits for X; R raises 2 |Y| points, S raises |X| + |Y|. With payload 32
//! |Y| bytes more, tags of 128 bits and a row for each x; R raises 3 |Y|, S 2 |X| + 2 |Y|. A receiver that
//! deviates learns at most |Y| values of F_a, so it can test |Y| guesses; over mqRPMT it could test any number.
//!
//! Departures from the classic form:
//! - R permutes Y, or a sender that uses several keys, and then gets the result too, would learn by it where in
//!   R's file its matches are;
//! - R takes its key off instead of raising H(x)^a by it: S then sends short tags instead of points;
//! - H maps to the curve and never to its twist ([`crate::group::curve25519`]);
//! - payload is encrypted under a second key of S, H(x)^c, which R learns for its own items only. The value by
//!   which items match cannot be its key: R sees that of every x.

use super::Matching;
use super::tags::{self, Placed, Tag, placed};
use crate::channel::{Channel, Message, Unit, frames};
use crate::error::{Error, Result};
use crate::group::curve25519::{Key, LowOrder, Point, map_and_raise, raise};
use crate::hash::{Domain, SessionId};
use crate::hashed::Hashed;
use crate::item::Items;
use crate::operations::{Sealed, Terms};
use crate::ot::Pad;
use crate::params::{LAMBDA, share, tag_bits};
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;
use zeroize::Zeroizing;

/// The exponent of the error: a tag that is wrongly equal is the only kind of undetected error.
const EXPONENT: u32 = share(LAMBDA, 1);
/// Points per frame: 8192, 256 KiB. Each direction holds at most a pipe and two frames.
pub(crate) const FRAME: usize = 1 << 13;
const Y_B: Message<Point> = Message::new(0x61, "R->S  H(y)^b");
const Y_BA: Message<Point> = Message::new(0x62, "S->R  H(y)^ba, same order");
const Y_BC: Message<Point> = Message::new(0x63, "S->R  H(y)^bc, same order");

/// Bytes of a tag. Where payload hangs on it, two tags of X must not be equal.
pub(crate) fn tag_bytes(payload: bool, n_x: usize, n_y: usize) -> Result<usize> {
    Ok(if payload { 16 } else { tag_bits(EXPONENT, n_x, n_y)?.div_ceil(8) as usize })
}

/// Tags of points of the first key.
fn tagger(session: &SessionId, bytes: usize) -> impl Fn(&Point) -> Tag + Sync + use<> {
    let domain = Domain::new(session, "dh-psi tag of H(x)^a");
    move |p| {
        let mut tag: Tag = domain.hash(&[p.as_bytes()]);
        tag[bytes..].fill(0);
        tag
    }
}

/// Keys of rows from points of the second key.
fn padder(session: &SessionId) -> impl Fn(&Point) -> Pad + Sync + use<> {
    let domain = Domain::new(session, "dh-psi key of a row from H(x)^c");
    move |p| domain.hash(&[p.as_bytes()])
}

fn bug(_: LowOrder) -> Error {
    Error::Bug("an item hashed to a point of low order, which has probability 2^-250".into())
}

fn low_order(_: LowOrder) -> Error {
    Error::misbehaves("it sent a point of low order")
}

/// The receiver R, with set `y`; the sender's has `n_x` items.
pub fn receiver<'a>(
    ch: &mut Channel,
    session: &SessionId,
    y: &Hashed,
    n_x: usize,
    terms: &Terms,
    rng: &mut Prng,
) -> Result<Sealed<'a, Matching>> {
    let (n_y, n) = (y.len(), y.items().len());
    let tag_bytes = tag_bytes(terms.payload, n_x, n_y)?;
    let (tag, pad) = (tagger(session, tag_bytes), padder(session));
    ch.stage("matching", Unit::Items, n_y * if terms.payload { 3 } else { 2 });
    // 0. Y in random order: if S gets the result too, it must not say where in Y the matches are.
    let order = rng.permutation(n_y);
    // 1. R picks b and sends H(y)^b.
    let (y_b, off) = y.raised_with_inverse(rng);
    let mut own = Secrets::<Placed>::zeros(n_y);
    let mut pads = Secrets::<Pad>::zeros(if terms.payload { n_y } else { 0 });
    ch.duplex(
        |tx| order.chunks(FRAME).try_for_each(|positions| tx.send(Y_B, &y_b.points(positions).map_err(bug)?)),
        // 3. From H(y)^ba it gets H(y)^a, from H(y)^bc it gets H(y)^c.
        |rx| {
            for (frame, own) in own.chunks_mut(FRAME).enumerate() {
                let (n, first) = (own.len(), frame * FRAME);
                let y_a = Zeroizing::new(raise(&rx.recv(Y_BA, n)?, &off).map_err(low_order)?);
                let places = own.par_iter_mut().zip(y_a.par_iter()).enumerate();
                places.for_each(|(i, (own, p))| *own = placed(tag(p), (first + i) as u32));
                if terms.payload {
                    let y_c = Zeroizing::new(raise(&rx.recv(Y_BC, n)?, &off).map_err(low_order)?);
                    let places = pads[first..first + n].par_iter_mut().zip(y_c.par_iter());
                    places.for_each(|(key, p)| *key = pad(p));
                }
            }
            Ok(())
        },
    )?;
    // 5. R finds which tags of X are its own, and 6. decrypts the payload of these.
    tags::receiver(ch, own, pads, tag_bytes, move |i| order[i as usize], n, n_x, terms)
}

/// The sender S, with set `x` and, if agreed, a payload for each of its items, none longer than a row; the
/// receiver's set has `n_y` items. Returns what matches if both get it.
pub fn sender<'a>(
    ch: &mut Channel,
    session: &SessionId,
    x: &Hashed,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
    rng: &mut Prng,
) -> Result<Option<Sealed<'a, Matching>>> {
    let n_x = x.len();
    let tag_bytes = tag_bytes(terms.payload, n_x, n_y)?;
    let (tag, pad) = (tagger(session, tag_bytes), padder(session));
    tags::check(payloads, terms)?;
    ch.stage("matching", Unit::Items, n_y * if terms.payload { 3 } else { 2 });
    // 2. S picks a and c, and makes the tags of H(x)^a while R makes H(y)^b.
    let (x_a, c) = (x.raised(rng), Key::random(rng));
    let all: Vec<u32> = (0..n_x as u32).collect();
    let (tags, y_b) = ch.duplex(
        |_| {
            let mut tags = Secrets::<Placed>::zeros(n_x);
            for (tags, positions) in tags.chunks_mut(FRAME).zip(all.chunks(FRAME)) {
                let points = Zeroizing::new(x_a.points(positions).map_err(bug)?);
                let places = tags.par_iter_mut().zip(points.par_iter()).zip(positions);
                places.for_each(|((place, p), &i)| *place = placed(tag(p), i));
            }
            Ok(tags)
        },
        // Grows with what has come, not with what was announced.
        |rx| frames(n_y, FRAME).map(|n| rx.recv(Y_B, n)).collect::<Result<Vec<Vec<Point>>>>(),
    )?;
    // For each H(y)^b it answers H(y)^ba and, for payload, H(y)^bc, in the same order.
    for y_b in y_b {
        ch.tx.send(Y_BA, &raise(&y_b, x_a.key()).map_err(low_order)?)?;
        if terms.payload {
            ch.tx.send(Y_BC, &raise(&y_b, &c).map_err(low_order)?)?;
        }
    }
    // 4. It sends the tags in sorted order, which hides theirs, and the payloads under H(x)^c in the same order.
    let keys = |positions: &[u32]| {
        let x_c = Zeroizing::new(map_and_raise(&x.hashes(positions), &c).map_err(bug)?);
        Ok(Secrets::from(x_c.par_iter().map(&pad).collect::<Vec<_>>()))
    };
    tags::sender(ch, tags, tag_bytes, keys, payloads, x.items().len(), n_y, terms)
}
