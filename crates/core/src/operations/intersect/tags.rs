//! The end of an intersection with tags. S sends a tag for each of its items, and R finds its own tags among them. With
//! payload, S also sends a row per item, encrypted under a key that R has only for its own items.
//!
//! The protocol that derives the tags and keys defines them and states its assumptions ([`super::dh_psi`], [`super::oprf`]).
//! Each item and dummy has one tag. The tags are sorted over the whole set, which hides the order of X. A tag is a head of at
//! most 96 bits, Golomb-Rice coded, and a tail if that is too short: about 61.6 bits per tag of 80 bits for a million items a
//! side.
//!
//! Tags are sorted by their heads. If tails are sent, two heads are equal with probability 2^-41 for the largest sets, and
//! two such items are in the order of X. With payload, or against a malicious sender, R then ends the run.
//!
//! Memory: 16 bytes per own item plus its tail; with payload 16 or 32 more; for R, up to 15 bytes per item of S, in lists that
//! grow; for S, 4 more per own item.

use super::{Matching, sent_on, sort};
use crate::channel::{HEADER, Message, Unit, frames};
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Gaps, Golomb};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::item::Items;
use crate::operations::row::Layout;
use crate::operations::{Sealed, Terms, both};
use crate::oprf::Output;
use crate::ot::Pad;
use crate::ot::transfer::{crypt, rows_per_frame};
use crate::secret::Secrets;
use rayon::prelude::*;

/// Tags per frame.
pub(crate) const FRAME: usize = golomb::FRAME;
const TAILS: Message<[u8]> = Message::new(0x64, "S->R  tails of the tags of x, in their order");
const ROWS: Message<[u8]> = Message::new(0x65, "S->R  payloads of x, in the order of the tags");

/// The number of tags that one task looks up in sequence.
const PART: usize = 1 << 10;
/// Bits of the longest head.
const HEAD: u32 = 96;
/// Bits of the longest tag.
pub(crate) const LONGEST: u32 = 136;

/// The encoding of the tags of X on the wire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coding {
    heads: Golomb,
    /// Bytes of a tail.
    tail: usize,
}

impl Coding {
    /// Returns the encoding of tags of at least `bits` bits, at most [`LONGEST`], for `n_x` items.
    pub(crate) fn new(bits: u32, n_x: usize) -> Coding {
        Coding {
            heads: Golomb::of(n_x, bits.min(HEAD)),
            tail: bits.saturating_sub(HEAD).div_ceil(8) as usize,
        }
    }

    /// The approximate number of bytes that `n_x` tags take on the wire.
    pub(crate) fn bytes(&self, n_x: usize) -> usize {
        let messages = 1 + usize::from(self.tail > 0);
        self.heads.bytes() + n_x * self.tail + messages * n_x.div_ceil(FRAME) * HEADER
    }

    /// Bytes of an item's tag in memory.
    pub(crate) fn held(&self) -> usize {
        size_of::<u128>() + self.tail
    }
}

/// The tags of the items and dummies of a set.
pub(super) struct Tags {
    coding: Coding,
    /// Heads, each in the bits above a position, so that they sort by head.
    words: Secrets<u128>,
    /// Tails, by position.
    tails: Secrets<u8>,
}

/// The position of a word.
const fn position(word: u128) -> u32 {
    word as u32
}

impl Tags {
    /// Allocates room for `n` tags.
    pub(super) fn new(coding: Coding, n: usize) -> Tags {
        Tags { coding, words: Secrets::zeros(n), tails: Secrets::zeros(n * coding.tail) }
    }

    /// Takes the prefixes of these values as the tags at the positions from `first` on.
    pub(super) fn fill(&mut self, first: usize, values: &[Output]) {
        let Coding { heads, tail } = self.coding;
        let words = self.words[first..][..values.len()].par_iter_mut().zip(values).enumerate();
        words.for_each(|(i, (word, value))| {
            let prefix = value.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes));
            *word = heads.word(prefix, (first + i) as u32);
        });
        if tail > 0 {
            let tails = self.tails[first * tail..].par_chunks_exact_mut(tail).zip(values);
            tails.for_each(|(bytes, value)| bytes.copy_from_slice(&value[HEAD as usize / 8..][..tail]));
        }
    }

    /// The tail of the tag at this position.
    fn tail(&self, position: u32) -> &[u8] {
        &self.tails[position as usize * self.coding.tail..][..self.coding.tail]
    }

    /// Finds our tags among a part of the tags of S, whose heads are in ascending order. For each tag of S, it writes the
    /// position of our first tag with this head or a higher one, or else of our last, and whether the two tags are equal.
    fn find<'t>(&self, heads: &[u128], tail: impl Fn(usize) -> &'t [u8], places: &mut [(u32, bool)]) {
        let own = |at: usize| self.words[at] >> 32;
        let last = self.words.len().checked_sub(1);
        let mut at =
            self.words.partition_point(|word| heads.first().is_some_and(|first| word >> 32 < *first));
        for (i, (&head, place)) in heads.iter().zip(places).enumerate() {
            while last.is_some_and(|last| at < last) && own(at) < head {
                at += 1;
            }
            if let Some(last) = last {
                let word = self.words[at.min(last)];
                let differ = self.tail(position(word)).iter().zip(tail(i)).fold(0, |d, (a, b)| d | (a ^ b));
                *place = (position(word), (word >> 32 == head) & (differ == 0));
            }
        }
    }
}

/// Runs the receiver with the tags of its items and dummies and, with payload, the keys of their rows. `item(i)`
/// maps position i here to a position in the receiver's set of `n` items. The sender's set has `n_x` items.
pub(super) fn receiver<'a>(
    cx: &mut Context,
    mut own: Tags,
    pads: Secrets<Pad>,
    (item, n): (impl Fn(u32) -> u32 + Send + 'a, usize),
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, Matching>> {
    let Coding { heads: golomb, tail } = own.coding;
    cx.threads.run(|| own.words.par_sort_unstable());
    // R finds its own tags among the tags of X. If there is no match it takes the next tag, so that the work is the same: the
    // sender can time us.
    cx.ch.stage("comparing", Unit::Bytes, own.coding.bytes(n_x));
    let (mut found, mut e) = (Secrets::<u32>::zeros(0), Secrets::<bool>::zeros(0));
    let mut gaps = Gaps::new(golomb);
    let mut last = None;
    for n in frames(n_x, FRAME) {
        let heads = gaps.receive(&mut cx.ch.rx, n)?;
        let tails = if tail > 0 { cx.ch.rx.recv_bytes(TAILS, n * tail)? } else { Vec::new() };
        // Otherwise a malicious sender could send many equal tags, so that our time reveals a match.
        if terms.payload || terms.malicious_sender {
            for head in &heads {
                if last.replace(*head) == Some(*head) {
                    return Err(Error::misbehaves("two of its tags are equal"));
                }
            }
        }
        let mut places = Secrets::<(u32, bool)>::zeros(n);
        let parts = heads.par_chunks(PART).zip(places.par_chunks_mut(PART)).enumerate();
        cx.threads.run(|| {
            parts.for_each(|(part, (heads, places))| {
                own.find(heads, |i| &tails[(part * PART + i) * tail..][..tail], places)
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
        // If Y is empty, rows still arrive and decrypt to noise.
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
            // Tags may collide: two tags of the sender can equal the tag of one of our items.
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
    mut own: Tags,
    keys: impl Fn(&[u32]) -> Secrets<Pad> + Sync,
    (payloads, n): (&Items, usize),
    n_y: usize,
    terms: &Terms,
) -> Result<Option<Sealed<'a, Matching>>> {
    let n_x = own.words.len();
    // S sends the tags in sorted order, which hides the order of X.
    cx.threads.run(|| own.words.par_sort_unstable());
    cx.ch.stage("comparing", Unit::Bytes, own.coding.bytes(n_x));
    let mut gaps = Gaps::new(own.coding.heads);
    for words in own.words.chunks(FRAME) {
        gaps.send(&mut cx.ch.tx, words.iter().map(|word| word >> 32))?;
        if own.coding.tail > 0 {
            let tails = words.iter().flat_map(|word| own.tail(position(*word)));
            cx.ch.tx.send_bytes(TAILS, &tails.copied().collect::<Vec<u8>>())?;
        }
    }
    let order = Secrets::from(own.words.iter().map(|word| position(*word)).collect::<Vec<u32>>());
    drop(own);
    // The payloads follow in the same order.
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
                layout.write_item([payloads], i, i, row);
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

#[cfg(test)]
#[path = "tags_tests.rs"]
mod tests;
