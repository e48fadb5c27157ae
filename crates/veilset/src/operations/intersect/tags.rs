//! The end of an intersection by tags. S sends a tag for each of its items, and R finds its own among them. With
//! payload, S also sends a row per item, encrypted under a key that R has only for its own items.
//!
//! The protocol that derives the tags and keys states what they are and what it assumes of them
//! ([`super::dh_psi`], [`super::oprf`]). Each item and dummy has one tag. The tags are sorted over the whole
//! set, which hides the order of X. Memory: 21 bytes per own item, with payload 16 or 32 more; for R, 5 bytes
//! per item of S.

use super::{Matching, sent_on, sort};
use crate::channel::{Message, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::item::Items;
use crate::operations::row::Layout;
use crate::operations::{Sealed, Terms, both};
use crate::ot::Pad;
use crate::ot::transfer::{crypt, rows_per_frame};
use crate::secret::Secrets;
use rayon::prelude::*;

/// Tags per frame: 8192, at most 136 KiB.
pub(crate) const FRAME: usize = 1 << 13;
const TAGS: Message<[u8]> = Message::new(0x64, "S->R  tags of x, sorted");
const ROWS: Message<[u8]> = Message::new(0x65, "S->R  payloads of x, in the order of the tags");

/// Tags that one task looks up in sequence.
const PART: usize = 1 << 10;
/// Bytes of the longest tag: 40 + 64 + 28 bits.
pub(crate) const LONGEST: usize = 17;

/// A tag; unused bytes at the end are zero.
pub(super) type Tag = [u8; LONGEST];

/// A tag and a position in 21 bytes, which sort by tag, then by position.
pub(super) type Placed = [u8; LONGEST + 4];

pub(super) fn placed(tag: Tag, position: u32) -> Placed {
    let mut placed = [0; LONGEST + 4];
    placed[..LONGEST].copy_from_slice(&tag);
    placed[LONGEST..].copy_from_slice(&position.to_be_bytes());
    placed
}

fn tag_of(placed: &Placed) -> &[u8] {
    &placed[..LONGEST]
}

/// A tag as a number: its first 16 bytes, and its last byte.
fn number(tag: &[u8]) -> (u128, u8) {
    let mut first = [0; 16];
    first.copy_from_slice(&tag[..16]);
    (u128::from_be_bytes(first), tag[16])
}

/// Whether `a < b`. The time does not depend on how many bytes they have in common.
fn less(a: (u128, u8), b: (u128, u8)) -> bool {
    (a.0 < b.0) | ((a.0 == b.0) & (a.1 < b.1))
}

/// Sorts by tag, then by position. The first word nearly always decides, so comparing it first takes two thirds
/// of the time of comparing all bytes. Distributing the tags into buckets by their first bits beforehand is no
/// faster.
fn sort_placed(list: &mut [Placed]) {
    let first = |placed: &Placed| placed.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    list.par_sort_unstable_by(|a, b| first(a).cmp(&first(b)).then_with(|| a.cmp(b)));
}

fn position(placed: &Placed) -> u32 {
    placed[LONGEST..].iter().fold(0, |n, &b| n << 8 | u32::from(b))
}

/// The tags of the items and dummies of a set.
pub(super) struct Tags {
    /// In the order of their positions.
    pub(super) placed: Secrets<Placed>,
    /// Bytes of a tag.
    pub(super) bytes: usize,
}

/// Runs the receiver with the tags of its items and dummies and, with payload, the keys of their rows. `item(i)`
/// maps position i here to a position in the receiver's set of `n` items. The sender's set has `n_x` items.
pub(super) fn receiver<'a>(
    cx: &mut Context,
    own: Tags,
    pads: Secrets<Pad>,
    (item, n): (impl Fn(u32) -> u32 + Send + 'a, usize),
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, Matching>> {
    let Tags { placed: mut own, bytes: tag_bytes } = own;
    let n_y = own.len();
    cx.threads.run(|| sort_placed(&mut own));
    // R finds its own tags among those of X. Where there is no match it takes the next tag, so that the work is
    // the same: the sender can time us.
    cx.ch.stage("comparing", Unit::Bytes, n_x * tag_bytes);
    let (mut found, mut e) = (Secrets::<u32>::zeros(0), Secrets::<bool>::zeros(0));
    let mut last = None;
    for n in frames(n_x, FRAME) {
        let bytes = cx.ch.rx.recv_bytes(TAGS, n * tag_bytes)?;
        let whole = |bytes: &[u8]| {
            let mut tag = Tag::default();
            tag[..tag_bytes].copy_from_slice(bytes);
            tag
        };
        let tags: Vec<Tag> = bytes.chunks_exact(tag_bytes).map(whole).collect();
        for tag in &tags {
            // Otherwise a malicious sender could send many equal tags, so that our time reveals a match.
            let distinct = terms.payload || terms.malicious_sender;
            if last.is_some_and(|last| last > *tag || (last == *tag && distinct)) {
                return Err(Error::misbehaves("its tags are not sorted"));
            }
            last = Some(*tag);
        }
        let mut places = Secrets::<(u32, bool)>::zeros(n);
        let parts = tags.par_chunks(PART).zip(places.par_chunks_mut(PART));
        cx.threads.run(|| {
            parts.for_each(|(tags, places)| {
                let first = number(&tags[0]);
                let mut at = own.partition_point(|own| less(number(tag_of(own)), first));
                for (tag, place) in tags.iter().zip(places) {
                    let tag = number(tag);
                    while at + 1 < n_y && less(number(tag_of(&own[at])), tag) {
                        at += 1;
                    }
                    if let Some(next) = own.get(at.min(n_y.saturating_sub(1))) {
                        let there = number(tag_of(next));
                        *place = (position(next), (there.0 == tag.0) & (there.1 == tag.1));
                    }
                }
            })
        });
        found.extend(&Secrets::from(places.iter().map(|p| p.0).collect::<Vec<_>>()));
        e.extend(&Secrets::from(places.iter().map(|p| p.1).collect::<Vec<_>>()));
    }
    // R decrypts the payload of the matches, and does the same work for the other rows.
    let (mut payloads, mut intact) = (Items::new(), true);
    if terms.payload {
        let layout = Layout::<1>::new(terms.max_row);
        let width = layout.width();
        cx.ch.stage("receiving", Unit::Bytes, n_x * width);
        // If Y is empty, rows still arrive, and decrypt to noise.
        let pad = |found: &u32| pads.get(*found as usize).copied().unwrap_or_default();
        let mut at = 0;
        for n in frames(n_x, rows_per_frame(width)) {
            let mut rows = Secrets::from(cx.ch.rx.recv_bytes(ROWS, n * width)?);
            let keys = Secrets::from(found[at..at + n].iter().map(pad).collect::<Vec<_>>());
            cx.threads.run(|| crypt(&mut rows, width, at, &keys, |_, _| ()));
            for (row, &wanted) in rows.chunks_exact(width).zip(&e[at..at + n]) {
                let parts = layout.read(row);
                let (from, length) = parts.get(0);
                payloads.push_if(wanted, from, length);
                intact &= !wanted | parts.well_formed;
            }
            at += n;
        }
    }
    if terms.both {
        both::send_bits(cx.ch, &e)?;
    }
    let payload = terms.payload;
    Ok(Sealed::new(move || {
        let matched = found.iter().zip(e.iter()).filter(|(_, e)| **e);
        let mut positions: Vec<u32> = matched.map(|(&at, _)| item(at)).collect();
        if !payload {
            // Tags may collide: two tags of the sender can equal that of one of our items.
            positions.sort_unstable();
            positions.dedup();
        }
        sort(Some(positions).filter(|_| intact), &payloads, n)
    }))
}

/// Rejects payloads that do not fit into the agreed row.
pub(super) fn check(payloads: &Items, terms: &Terms) -> Result<()> {
    match terms.payload {
        true => Layout::<1>::new(terms.max_row).check(payloads.iter().map(|payload| [payload.len()])),
        false => Ok(()),
    }
}

/// Runs the sender with the tags of its items and dummies and, if agreed, a payload for each of its `n` items,
/// none longer than a row. `keys` derives the row keys of the items at the given positions. The receiver's set
/// has `n_y` items. Returns the matches if both get them.
pub(super) fn sender<'a>(
    cx: &mut Context,
    own: Tags,
    keys: impl Fn(&[u32]) -> Secrets<Pad> + Sync,
    (payloads, n): (&Items, usize),
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Matching>>> {
    let Tags { placed: mut tags, bytes: tag_bytes } = own;
    let n_x = tags.len();
    // S sends the tags in sorted order, which hides the order of X,
    cx.threads.run(|| sort_placed(&mut tags));
    cx.ch.stage("comparing", Unit::Bytes, n_x * tag_bytes);
    for tags in tags.chunks(FRAME) {
        let bytes = tags.iter().flat_map(|placed| &placed[..tag_bytes]);
        cx.ch.tx.send_bytes(TAGS, &bytes.copied().collect::<Vec<u8>>())?;
    }
    let order = Secrets::from(tags.iter().map(position).collect::<Vec<u32>>());
    drop(tags);
    // and the payloads in the same order.
    if terms.payload {
        let layout = Layout::<1>::new(terms.max_row);
        let width = layout.width();
        cx.ch.stage("sending", Unit::Bytes, n_x * width);
        let mut at = 0;
        for positions in order.chunks(rows_per_frame(width)) {
            let keys = cx.threads.run(|| keys(positions));
            let mut rows = vec![0; positions.len() * width];
            let write = |j: usize, row: &mut [u8]| {
                // The row of a dummy is empty: R does not have its key.
                let i = order[j] as usize;
                layout.write([if i < payloads.len() { payloads.get(i) } else { &[] }], row);
            };
            cx.threads.run(|| crypt(&mut rows, width, at, &keys, write));
            cx.ch.tx.send_bytes(ROWS, &rows)?;
            at += positions.len();
        }
    }
    match terms.both {
        true => Ok(Some(sent_on(order, both::recv_bits(cx.ch, n_x, n_y)?, n))),
        false => Ok(None),
    }
}
