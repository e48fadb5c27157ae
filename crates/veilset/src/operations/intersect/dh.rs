//! Diffie-Hellman PSI, the classic one [HFH99], with the receiver's key taken off again: F_k(y) = H(y)^k is
//! evaluated for the receiver without showing y.
//!
//! Security: semi-honest, DDH, `H` a random oracle. Leakage: |X| to R, |Y| to S, the matches to R. Cost: 64 |Y|
//! bytes and tags of (40 + log2 |X| |Y|) bits for X; R raises 2 |Y| points, S raises |X| + |Y|. With payload 32
//! |Y| bytes more, tags of 128 bits and a row for each x; R raises 3 |Y|, S 2 |X| + 2 |Y|. A receiver that
//! deviates learns at most |Y| values of F_a, so it can test |Y| guesses; over mqRPMT it could test any number.
//!
//! Departures from the classic form:
//! - R takes its key off instead of raising H(x)^a by it: S then sends short tags instead of points;
//! - H maps to the curve and never to its twist ([`crate::group::curve25519`]);
//! - payload is encrypted under a second key of S, H(x)^c, which R learns for its own items only. The value by
//!   which items match cannot be its key: R sees that of every x.

use super::{Matching, sort};
use crate::channel::{Channel, Message, Unit, frames};
use crate::error::{Error, Result};
use crate::group::curve25519::{Key, LowOrder, Point, hash, map_and_raise, raise};
use crate::hash::{Domain, SessionId};
use crate::item::{ItemSet, Items};
use crate::operations::row::Layout;
use crate::operations::{Sealed, Terms, both};
use crate::ot::Pad;
use crate::ot::transfer::crypt;
use crate::params::{LAMBDA, share, tag_bits};
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;

/// The exponent of the error: a tag that is wrongly equal is the only kind of undetected error.
const EXPONENT: u32 = share(LAMBDA, 1);
/// Points per frame: 8192, 256 KiB. Each direction holds at most a pipe and two frames.
pub(crate) const FRAME: usize = 1 << 13;
/// Bytes of rows per frame, at most (or one row, if it is longer).
const ROW_BYTES: usize = 1 << 18;
const Y_B: Message<Point> = Message::new(0x61, "R->S  H(y)^b");
const Y_BA: Message<Point> = Message::new(0x62, "S->R  H(y)^ba, same order");
const Y_BC: Message<Point> = Message::new(0x63, "S->R  H(y)^bc, same order");
const TAGS: Message<[u8]> = Message::new(0x64, "S->R  tags of H(x)^a, sorted");
const ROWS: Message<[u8]> = Message::new(0x65, "S->R  payloads of x under H(x)^c, in the order of the tags");

/// A tag, in the low bits.
type Tag = u128;

/// Bytes of a tag. Where payload hangs on it, two tags of X must not be equal.
pub(crate) fn tag_bytes(payload: bool, n_x: usize, n_y: usize) -> Result<usize> {
    Ok(if payload { 16 } else { tag_bits(EXPONENT, n_x, n_y)?.div_ceil(8) as usize })
}

pub(crate) fn rows_per_frame(width: usize) -> usize {
    (ROW_BYTES / width).clamp(1, FRAME)
}

/// Tags of points of the first key.
fn tagger(session: &SessionId, bytes: usize) -> impl Fn(&Point) -> Tag + Sync + use<> {
    let domain = Domain::new(session, "dh-psi tag of H(x)^a");
    move |p| u128::from_be_bytes(domain.hash(&[p.as_bytes()])) >> (128 - 8 * bytes)
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
    y: &'a ItemSet,
    n_x: usize,
    terms: &Terms,
    rng: &mut Prng,
) -> Result<Sealed<'a, Matching>> {
    let n_y = y.len();
    let tag_bytes = tag_bytes(terms.payload, n_x, n_y)?;
    let (tag, pad) = (tagger(session, tag_bytes), padder(session));
    ch.stage("matching", Unit::Items, n_y * if terms.payload { 3 } else { 2 });
    // 1. R picks b and sends H(y)^b.
    let (b, off) = Key::with_inverse(rng);
    let hashes = hash((0..n_y).into_par_iter().map(|i| y.get(i)));
    let (mut own, mut pads) = (Vec::<(Tag, u32)>::new(), Secrets::<Pad>::zeros(0));
    ch.duplex(
        |tx| hashes.chunks(FRAME).try_for_each(|h| tx.send(Y_B, &map_and_raise(h, &b).map_err(bug)?)),
        // 3. From H(y)^ba it gets H(y)^a, from H(y)^bc it gets H(y)^c.
        |rx| {
            for n in frames(n_y, FRAME) {
                let y_a = raise(&rx.recv(Y_BA, n)?, &off).map_err(low_order)?;
                let at = own.len() as u32;
                own.par_extend(y_a.par_iter().enumerate().map(|(i, p)| (tag(p), at + i as u32)));
                if terms.payload {
                    let y_c = raise(&rx.recv(Y_BC, n)?, &off).map_err(low_order)?;
                    pads.extend(&Secrets::from(y_c.par_iter().map(&pad).collect::<Vec<_>>()));
                }
            }
            Ok(())
        },
    )?;
    own.par_sort_unstable();
    // 5. R finds which tags of X are its own: for each its position in Y, or NONE.
    ch.stage("comparing", Unit::Bytes, n_x * tag_bytes);
    let mut found = Secrets::<u32>::zeros(0);
    let mut last = None;
    for n in frames(n_x, FRAME) {
        let bytes = ch.rx.recv_bytes(TAGS, n * tag_bytes)?;
        let number = |tag: &[u8]| tag.iter().fold(0, |n: Tag, &b| n << 8 | Tag::from(b));
        let tags: Vec<Tag> = bytes.chunks_exact(tag_bytes).map(number).collect();
        for tag in &tags {
            if last.is_some_and(|last| last > *tag || (last == *tag && terms.payload)) {
                return Err(Error::misbehaves("its tags are not sorted"));
            }
            last = Some(*tag);
        }
        let find = |tag: &Tag| own.binary_search_by_key(tag, |o| o.0).map_or(NONE, |at| own[at].1);
        found.extend(&Secrets::from(tags.par_iter().map(find).collect::<Vec<_>>()));
    }
    // 6. It decrypts the payload of these. The sender sees how long we take: all rows are decrypted.
    let (mut payloads, mut intact) = (Items::new(), true);
    if terms.payload {
        let layout = Layout::<1>::new(terms.max_row);
        let width = layout.width();
        ch.stage("receiving", Unit::Bytes, n_x * width);
        // The key for noise, if there is no other.
        pads.extend(&[[0; 16]]);
        let mut at = 0;
        for n in frames(n_x, rows_per_frame(width)) {
            let mut rows = ch.rx.recv_bytes(ROWS, n * width)?;
            let found = &found[at..at + n];
            let key = |&found: &u32| pads[(found as usize).min(n_y)];
            let keys = Secrets::from(found.iter().map(key).collect::<Vec<_>>());
            crypt(&mut rows, width, at, &keys, |_, _| ());
            for (row, &found) in rows.chunks_exact(width).zip(found) {
                let (parts, wanted) = (layout.read(row), found != NONE);
                let (from, length) = parts.get(0);
                payloads.push_if(wanted, from, length);
                intact &= !wanted | parts.well_formed;
            }
            at += n;
        }
    }
    if terms.both {
        both::send_bits(ch, &found.iter().map(|&f| f != NONE).collect::<Vec<_>>())?;
    }
    let payload = terms.payload;
    Ok(Sealed::new(move || {
        let mut positions: Vec<u32> = found.iter().copied().filter(|&f| f != NONE).collect();
        if !payload {
            // Tags of different items may be equal, of an item of ours and two of the sender's.
            positions.sort_unstable();
            positions.dedup();
        }
        sort(Some(positions).filter(|_| intact), &payloads)
    }))
}

/// No position.
const NONE: u32 = u32::MAX;

/// The sender S, with set `x` and, if agreed, a payload for each of its items, none longer than a row; the
/// receiver's set has `n_y` items. Returns the positions in `x` of the items that match if both get them.
pub fn sender(
    ch: &mut Channel,
    session: &SessionId,
    x: &ItemSet,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
    rng: &mut Prng,
) -> Result<Option<Vec<u32>>> {
    let n_x = x.len();
    let tag_bytes = tag_bytes(terms.payload, n_x, n_y)?;
    let (tag, pad) = (tagger(session, tag_bytes), padder(session));
    let layout = Layout::<1>::new(terms.max_row);
    if terms.payload {
        layout.check(payloads.iter().map(|payload| [payload.len()]))?;
    }
    ch.stage("matching", Unit::Items, n_y * if terms.payload { 3 } else { 2 });
    let hashes = hash((0..n_x).into_par_iter().map(|i| x.get(i)));
    // 2. S picks a and c, and makes the tags of H(x)^a while R makes H(y)^b.
    let (a, c) = (Key::random(rng), Key::random(rng));
    let (tags, y_b) = ch.duplex(
        |_| {
            let mut tags: Vec<(Tag, u32)> = Vec::with_capacity(n_x);
            for chunk in hashes.chunks(FRAME) {
                let x_a = map_and_raise(chunk, &a).map_err(bug)?;
                let at = tags.len() as u32;
                tags.par_extend(x_a.par_iter().enumerate().map(|(i, p)| (tag(p), at + i as u32)));
            }
            tags.par_sort_unstable();
            Ok(tags)
        },
        // Grows with what has come, not with what was announced.
        |rx| frames(n_y, FRAME).map(|n| rx.recv(Y_B, n)).collect::<Result<Vec<Vec<Point>>>>(),
    )?;
    // For each H(y)^b it answers H(y)^ba and, for payload, H(y)^bc, in the same order.
    for y_b in y_b {
        ch.tx.send(Y_BA, &raise(&y_b, &a).map_err(low_order)?)?;
        if terms.payload {
            ch.tx.send(Y_BC, &raise(&y_b, &c).map_err(low_order)?)?;
        }
    }
    // 4. It sends the tags in sorted order, which hides theirs,
    ch.stage("comparing", Unit::Bytes, n_x * tag_bytes);
    for tags in tags.chunks(FRAME) {
        let bytes = tags.iter().flat_map(|(tag, _)| tag.to_be_bytes().into_iter().skip(16 - tag_bytes));
        ch.tx.send_bytes(TAGS, &bytes.collect::<Vec<u8>>())?;
    }
    // and the payloads under H(x)^c in the same order.
    if terms.payload {
        let width = layout.width();
        ch.stage("sending", Unit::Bytes, n_x * width);
        let mut at = 0;
        for frame in tags.chunks(rows_per_frame(width)) {
            let hashes = Secrets::from(frame.iter().map(|t| hashes[t.1 as usize]).collect::<Vec<_>>());
            let x_c = map_and_raise(&hashes, &c).map_err(bug)?;
            let keys = Secrets::from(x_c.par_iter().map(&pad).collect::<Vec<_>>());
            let mut rows = vec![0; frame.len() * width];
            crypt(&mut rows, width, at, &keys, |j, row| {
                layout.write([payloads.get(tags[j].1 as usize)], row);
            });
            ch.tx.send_bytes(ROWS, &rows)?;
            at += frame.len();
        }
    }
    if !terms.both {
        return Ok(None);
    }
    let matched = both::recv_bits(ch, n_x, n_y)?;
    let mut positions: Vec<u32> =
        tags.iter().zip(matched.iter()).filter(|(_, m)| **m).map(|(t, _)| t.1).collect();
    positions.sort_unstable();
    Ok(Some(positions))
}
