//! Equality with shared output from random OTs: tables for the nibbles of the strings, and a tree of ANDs.
//!
//! R is the receiver of the OTs and has the strings w. S is their sender and has the strings s. A string is cut into nibbles of
//! four bits; above its bits it is padded with zeros.
//!
//! 1. For each nibble, R's choices in four random OTs are the bits of its nibble. From each OT, S gets two strings of 16 bits,
//!    k_t^0 and k_t^1, and R gets the string of its choice.
//! 2. S draws a bit r. For v = 0..15 it sends the bit r + [v = its nibble] + XOR_t (bit v of k_t^(v_t)). R can remove
//!    the mask at v = R's nibble and at no other v. Now r and the bit that R opens are shares of "the nibbles agree".
//! 3. For each AND, two more random OTs, with random choices a and b of R, give a triple. With pads m of one bit, S has the
//!    shares a' = m_2,0 + m_2,1 and b' = m_1,0 + m_1,1. Then a b + m_1,a + m_2,b of R and a' b' + m_1,0 + m_2,0 of S are shares
//!    of (a + a') (b + b').
//! 4. The nibbles of a string are joined by ANDs in a tree. For z = x y the parties open d = x + (a + a') and e = y +
//!    (b + b'), two bits from each party.
//!
//! Security: semi-honest, like the OT extension ([`crate::ot::extension`]). Leakage: the number of strings and their length in
//! bits. Every message is uniform to its recipient. To R, the table is masked at the other 15 places with bits of pads that R
//! does not have, and R's share is masked with r. Opened bits are masked with a triple that is used once.
//!
//! **Why strings of 16 bits.** With pads of one bit, k_t^(v_t) in all places of the table, the masks are affine in v: k_0 + sum
//! of v_t (k_t^0 + k_t^1). The table is an affine function plus a one at the nibble of S. No two of these are equal, so R reads
//! the nibble. A test reads it every time, but can only guess it in this protocol.
//!
//! Cost: a string of m nibbles takes 4 m + 2 (m - 1) OTs of ceil(128 / k) bits each from R to S, 16 m bits from S to R, and 2
//! (m - 1) bits each way. A string of 64 bits takes 94 OTs, and 345 bytes at k = 5 or 228 at k = 8: [`Nibbles::traffic`]. A
//! batch of such strings takes six messages in sequence ([`Nibbles::rounds`]). On an Intel Xeon with VAES under other load,
//! 2^20 strings of 64 bits take both parties together 5.3 s of CPU at k = 4 and 5, and 12 s at k = 8.
//!
//! Memory: strings are processed in batches of 2^20. The pads of a frame of OTs are used before the next frame is made. For a
//! batch, a party holds one bit per nibble and three per AND, and about twice as many more while it joins them: in all 22
//! bytes per string of 64 bits, or 23 MB. The share of a string takes a byte.
//!
//! Both the 16-bit strings and the single bits are cut from masks that are derived from the pads, for the reason in
//! `ot/masks.rs`.

use super::bits::Bits;
use super::{Equality, MAX_BITS};
use crate::channel::{Channel, HEADER, Message, Rx, Tx, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::ot::extension::{self, DEFAULT_K, FRAME, correction_bytes, setup_bytes};
use crate::ot::masks::many_masks;
use crate::ot::transfer::AHEAD;
use crate::ot::{Pad, Security};
use crate::params::ceil_log2;
use crate::secret::Secrets;
use rayon::prelude::*;

const TABLES: Message<[u8]> = Message::new(0xe0, "S->R  equality, a table of 16 bits for each nibble");
const OPENED_BY_R: Message<[u8]> = Message::new(0xe1, "R->S  equality, bits opened for ANDs");
const OPENED_BY_S: Message<[u8]> = Message::new(0xe2, "S->R  equality, bits opened for ANDs");

/// The purpose of the OTs.
const PURPOSE: &str = "equality of nibbles";

/// The number of bits in a nibble, and of OTs per nibble.
const NIBBLE: usize = 4;
/// Nibbles in a frame of OTs. Their tables take 4 KiB.
const TABLES_PER_FRAME: usize = FRAME / NIBBLE;
/// Triples in a frame of OTs.
const TRIPLES_PER_FRAME: usize = FRAME / 2;
/// ANDs in a frame of opened bits: 128 KiB.
const ANDS_PER_FRAME: usize = 1 << 19;
/// Strings in a batch. Each further batch costs rounds of its own ([`Nibbles::rounds`]).
const BATCH: usize = 1 << 20;

/// Bytes held for an OT of the current frame: its bits of the columns, its row, its choice, two pads and two masks.
const HELD_FOR_OT: usize = 112;
/// Bytes held for a nibble whose table has not arrived.
const HELD_FOR_TABLE: usize = 3;
/// Bits held for each nibble of a batch, including the bits of its AND, and the copies while they are joined: 16 nibbles take
/// the 22 bytes stated above.
const HELD_BITS: usize = 11;

/// For each bit t of a nibble, the places v of a table with v_t = 1.
const ONES: [u16; NIBBLE] = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];

/// Equality from tables for nibbles and a tree of ANDs. A session runs it once. To run it again, pass `part(session, ..)`
/// ([`crate::hash::part`]) with a different name each time.
pub struct Nibbles {
    k: usize,
    /// [`BATCH`]; smaller in tests.
    batch: usize,
}

impl Nibbles {
    /// The protocol over an OT extension with trees of depth `k`, from 1 to 8; see [`crate::ot::extension`].
    pub fn new(k: usize) -> Nibbles {
        Nibbles { k, batch: BATCH }
    }

    /// Bytes for `n` strings of `bits` bits, including frame headers: from receiver to sender, and back.
    pub fn traffic(&self, n: usize, bits: u32) -> (usize, usize) {
        let (mut there, mut back) = setup_bytes(self.k, Security::SemiHonest);
        let corrections = |ots| HEADER + correction_bytes(ots, self.k, Security::SemiHonest);
        for shape in self.batches(n, bits) {
            for tables in frames(shape.leaves(), TABLES_PER_FRAME) {
                there += corrections(NIBBLE * tables);
                back += HEADER + size_of::<u16>() * tables;
            }
            there += frames(shape.ands(), TRIPLES_PER_FRAME).map(|n| corrections(2 * n)).sum::<usize>();
            for n in shape.levels().flat_map(|n| frames(n, ANDS_PER_FRAME)) {
                let opened = HEADER + 2 * n.div_ceil(8);
                (there, back) = (there + opened, back + opened);
            }
        }
        (there, back)
    }

    /// The number of rounds for `n` strings of `bits` bits. The sender begins.
    pub fn rounds(&self, n: usize, bits: u32) -> usize {
        // The base OTs take one message in each direction, and R sends its corrections right after its message. Then come S's
        // tables, with its bits for the first level, and one more message for each level, because a party that has the other's
        // bits of a level sends its own bits of this level and of the next.
        let levels = ceil_log2(bits.div_ceil(4) as usize);
        match self.batches(n, bits).count() {
            0 => 2,
            // With an odd number of levels R sends last, and begins the next batch with that message.
            batches => 1 + batches * (2 + levels as usize) - (batches - 1) * (levels as usize % 2),
        }
    }

    /// The maximum number of bytes that a party holds for `n` strings of `bits` bits, including its shares, at the default
    /// depth.
    pub(crate) fn held(&self, n: usize, bits: u32) -> usize {
        let (batch, nibbles) = (n.min(self.batch), bits.div_ceil(4) as usize);
        let waiting = (batch * nibbles).min((AHEAD + 1) * TABLES_PER_FRAME) * HELD_FOR_TABLE;
        extension::SETUP_HELD + FRAME * HELD_FOR_OT + waiting + batch * nibbles * HELD_BITS / 8 + n + batch
    }

    /// The batches of `n` strings.
    fn batches(&self, n: usize, bits: u32) -> impl Iterator<Item = Shape> {
        frames(n, self.batch).map(move |strings| Shape { strings, nibbles: bits.div_ceil(4) as usize })
    }

    /// Checks the width of the strings, and announces the stage.
    fn begin(&self, ch: &Channel, n: usize, bits: u32) -> Result<()> {
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(Error::bug(format!("equality of {bits} bits, which are not from 1 to {MAX_BITS}")));
        }
        let (there, back) = self.traffic(n, bits);
        let (setup_there, setup_back) = setup_bytes(self.k, Security::SemiHonest);
        ch.stage("comparing", Unit::Bytes, there + back - setup_there - setup_back);
        Ok(())
    }
}

impl Default for Nibbles {
    fn default() -> Self {
        Nibbles::new(DEFAULT_K)
    }
}

impl Equality for Nibbles {
    fn receiver(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>> {
        self.begin(cx.ch, strings.len(), bits)?;
        let ot = extension::Receiver::setup(cx, PURPOSE, self.k, Security::SemiHonest)?;
        let mut ot = Numbered { ot, used: 0 };
        let mut shares = Secrets::with_capacity(strings.len());
        for strings in strings.chunks(self.batch) {
            let leaves = receive_leaves(cx, &mut ot, Strings { words: strings, bits })?;
            shares.extend(&join(cx, leaves, &RECEIVER)?.to_bools());
        }
        Ok(shares)
    }

    fn sender(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>> {
        self.begin(cx.ch, strings.len(), bits)?;
        let ot = extension::Sender::setup(cx, PURPOSE, self.k, Security::SemiHonest)?;
        let mut ot = Numbered { ot, used: 0 };
        let mut shares = Secrets::with_capacity(strings.len());
        for strings in strings.chunks(self.batch) {
            let leaves = send_leaves(cx, &mut ot, Strings { words: strings, bits })?;
            shares.extend(&join(cx, leaves, &SENDER)?.to_bools());
        }
        Ok(shares)
    }
}

/// The public shape of a batch, in which no number is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    strings: usize,
    /// Nibbles of a string.
    nibbles: usize,
}

impl Shape {
    /// The number of nibbles of all strings.
    fn leaves(self) -> usize {
        self.strings * self.nibbles
    }

    /// The number of ANDs of all strings.
    fn ands(self) -> usize {
        self.strings * (self.nibbles - 1)
    }

    /// The number of ANDs on each level of the tree. If a level has an odd number of bits per string, the last one moves on
    /// to the next level.
    fn levels(self) -> impl Iterator<Item = usize> {
        let wide = std::iter::successors(Some(self.nibbles), |n| Some(n.div_ceil(2)));
        wide.take_while(|n| *n > 1).map(move |n| n / 2 * self.strings)
    }
}

/// The strings of a batch.
#[derive(Clone, Copy)]
struct Strings<'a> {
    words: &'a [u128],
    bits: u32,
}

impl<'a> Strings<'a> {
    fn shape(self) -> Shape {
        Shape { strings: self.words.len(), nibbles: self.bits.div_ceil(4) as usize }
    }

    /// The first nibbles of all strings, the second ones, and so on.
    fn nibbles(self) -> impl Iterator<Item = u8> + use<'a> {
        let inside = u128::MAX >> (MAX_BITS - self.bits);
        let of_all =
            move |i: usize| self.words.iter().map(move |w| ((w & inside) >> (NIBBLE * i)) as u8 & 15);
        (0..self.shape().nibbles).flat_map(of_all)
    }
}

/// The next `n` nibbles.
fn next(nibbles: &mut impl Iterator<Item = u8>, n: usize) -> Secrets<u8> {
    let mut next = Secrets::zeros(n);
    next.iter_mut().zip(nibbles).for_each(|(next, nibble)| *next = nibble);
    next
}

/// OTs with a counter, because a mask depends on the number of its OT.
struct Numbered<Ot> {
    ot: Ot,
    used: usize,
}

impl<Ot> Numbered<Ot> {
    /// Reserves `n` OTs and returns the number of the first.
    fn number(&mut self, n: usize) -> usize {
        let first = self.used;
        self.used += n;
        first
    }
}

/// The state of a party before the tree.
struct Leaves {
    shape: Shape,
    /// Its shares of "the nibbles agree", in the order of [`Strings::nibbles`].
    equal: Bits,
    /// Its shares of a triple for each AND.
    triples: Triples,
}

/// Shares of triples (a, b, c) with c = a b.
struct Triples {
    a: Bits,
    b: Bits,
    c: Bits,
}

impl Triples {
    fn zeros(n: usize) -> Triples {
        Triples { a: Bits::zeros(n), b: Bits::zeros(n), c: Bits::zeros(n) }
    }

    fn put(&mut self, at: usize, triples: &Triples) {
        self.a.put(at, &triples.a);
        self.b.put(at, &triples.b);
        self.c.put(at, &triples.c);
    }

    fn range(&self, at: usize, n: usize) -> Triples {
        let [a, b, c] = [&self.a, &self.b, &self.c].map(|bits| bits.range(at, n));
        Triples { a, b, c }
    }
}

/// Runs R up to the tree.
fn receive_leaves(
    cx: &mut Context,
    ot: &mut Numbered<extension::Receiver>,
    strings: Strings<'_>,
) -> Result<Leaves> {
    let shape = strings.shape();
    // S answers each frame of corrections with tables, so both directions flow at once. The keys that open the tables are
    // queued. Once the queue is full, a sender that withholds tables gets no more corrections.
    let (triples, equal) = cx.ch.duplex_with_queue(
        AHEAD,
        |tx, queue| {
            let mut nibbles = strings.nibbles();
            for n in frames(shape.leaves(), TABLES_PER_FRAME) {
                // 1. R's choices are the bits of its nibbles.
                let own = next(&mut nibbles, n);
                let bit = |i: usize| own[i / NIBBLE] >> (i % NIBBLE) & 1 == 1;
                let choices = Secrets::from((0..NIBBLE * n).map(bit).collect::<Vec<_>>());
                let (first, pads) = (ot.number(choices.len()), ot.ot.pads(tx, &choices)?);
                let keys = cx.threads.run(|| chosen(&many_masks(first, &pads)));
                queue.put((keys, own))?;
            }
            let mut triples = Triples::zeros(shape.ands());
            for (f, n) in frames(shape.ands(), TRIPLES_PER_FRAME).enumerate() {
                // 3. R draws a and b,
                let (a, b) = (Bits::random(n, cx.rng), Bits::random(n, cx.rng));
                let (first, pads) = (ot.number(2 * n), ot.ot.pads(tx, &a.followed_by(&b).to_bools())?);
                let m = cx.threads.run(|| single_bits(first, &pads));
                // and has a b + m_1,a + m_2,b.
                let c = &(&(&a & &b) ^ &m.range(0, n)) ^ &m.range(n, n);
                triples.put(f * TRIPLES_PER_FRAME, &Triples { a, b, c });
            }
            Ok(triples)
        },
        |rx, queue| {
            let mut equal = Bits::zeros(shape.leaves());
            for (f, n) in frames(shape.leaves(), TABLES_PER_FRAME).enumerate() {
                // 2. R opens the bits at its nibbles.
                let tables = rx.recv_bytes(TABLES, size_of::<u16>() * n)?;
                let (keys, own) = queue.take()?;
                equal.put(f * TABLES_PER_FRAME, &cx.threads.run(|| open(&tables, &keys, &own)));
            }
            Ok(equal)
        },
    )?;
    Ok(Leaves { shape, equal, triples })
}

/// Runs S up to the tree.
fn send_leaves(
    cx: &mut Context,
    ot: &mut Numbered<extension::Sender>,
    strings: Strings<'_>,
) -> Result<Leaves> {
    let shape = strings.shape();
    let mut nibbles = strings.nibbles();
    let (mut equal, mut triples) = (Bits::zeros(shape.leaves()), Triples::zeros(shape.ands()));
    for (f, n) in frames(shape.leaves(), TABLES_PER_FRAME).enumerate() {
        // 2. S draws r and sends the tables.
        let r = Bits::random(n, cx.rng);
        let own = next(&mut nibbles, n);
        let first = ot.number(NIBBLE * n);
        let pads = ot.ot.pads(&mut cx.ch.rx, NIBBLE * n)?;
        let pads = [false, true].map(|choice| pads.of(choice));
        let tables = cx.threads.run(|| {
            let masks = pads.each_ref().map(|pads| many_masks(first, pads));
            tables(&masks, &own, &r, string)
        });
        cx.ch.tx.send_bytes(TABLES, &tables)?;
        equal.put(f * TABLES_PER_FRAME, &r);
    }
    for (f, n) in frames(shape.ands(), TRIPLES_PER_FRAME).enumerate() {
        // 3. S has a', b' and a' b' + m_1,0 + m_2,0.
        let first = ot.number(2 * n);
        let pads = ot.ot.pads(&mut cx.ch.rx, 2 * n)?;
        let pads = [false, true].map(|choice| pads.of(choice));
        let m = cx.threads.run(|| pads.each_ref().map(|pads| single_bits(first, pads)));
        let [m_1, m_2] = [0, n].map(|at| m.each_ref().map(|m| m.range(at, n)));
        let (a, b) = (&m_2[0] ^ &m_2[1], &m_1[0] ^ &m_1[1]);
        let c = &(&(&a & &b) ^ &m_1[0]) ^ &m_2[0];
        triples.put(f * TRIPLES_PER_FRAME, &Triples { a, b, c });
    }
    Ok(Leaves { shape, equal, triples })
}

/// One bit of the mask of each OT from number `first` on.
fn single_bits(first: usize, pads: &[Pad]) -> Bits {
    let masks = many_masks(first, pads);
    Bits::from_fn(pads.len(), |i| masks[i] & 1 == 1)
}

/// The 16-bit string k_t that an OT's mask gives.
fn string(mask: u128) -> u16 {
    mask as u16
}

/// A table with a one at this nibble only. Neither addresses nor time depend on the nibble.
fn only(nibble: u8) -> u16 {
    // A bit of 1 selects the places that have it, and a bit of 0 the others.
    let places = |(t, ones): (usize, &u16)| ones ^ u16::from(nibble >> t & 1).wrapping_sub(1);
    ONES.iter().enumerate().map(places).fold(u16::MAX, |only, places| only & places)
}

/// The sum of the strings of the four OTs of each nibble.
fn chosen(masks: &[u128]) -> Secrets<u16> {
    let sum = |masks: &[u128; NIBBLE]| masks.iter().fold(0, |sum, mask| sum ^ string(*mask));
    Secrets::from(masks.as_chunks::<NIBBLE>().0.iter().map(sum).collect::<Vec<_>>())
}

/// The tables for these nibbles, from the masks of the OTs for both choices.
fn tables(masks: &[Secrets<u128>; 2], nibbles: &[u8], r: &Bits, string: fn(u128) -> u16) -> Vec<u8> {
    let table = |i: usize| {
        let at_random = u16::from(r.bit(i)).wrapping_neg() ^ only(nibbles[i]);
        let table = ONES.iter().enumerate().fold(at_random, |table, (t, ones)| {
            let [zero, one] = masks.each_ref().map(|masks| string(masks[NIBBLE * i + t]));
            table ^ zero & !ones ^ one & ones
        });
        table.to_le_bytes()
    };
    (0..nibbles.len()).into_par_iter().map(table).collect::<Vec<_>>().into_flattened()
}

/// The bits of the tables at these nibbles.
fn open(tables: &[u8], keys: &[u16], nibbles: &[u8]) -> Bits {
    let tables = tables.as_chunks::<2>().0;
    let masked = |i: usize| (u16::from_le_bytes(tables[i]) ^ keys[i]) & only(nibbles[i]);
    Bits::from_fn(nibbles.len(), |i| masked(i).count_ones() & 1 == 1)
}

/// The role of a party in the tree.
struct Side {
    sends: Message<[u8]>,
    receives: Message<[u8]>,
    /// Whether it adds the opened product d e to its share, which exactly one of the two parties must do.
    leads: bool,
}

const RECEIVER: Side = Side { sends: OPENED_BY_R, receives: OPENED_BY_S, leads: false };
const SENDER: Side = Side { sends: OPENED_BY_S, receives: OPENED_BY_R, leads: true };

/// 4. The tree. Returns a share for each string of the bit that is 1 if all of its nibbles agree.
fn join(cx: &mut Context, leaves: Leaves, side: &Side) -> Result<Bits> {
    let Leaves { shape, mut equal, triples } = leaves;
    let mut used = 0;
    for n in shape.levels() {
        // Joins the first half of the nibbles with the second. If their number is odd, the last one is left over.
        let (pairs, triples) = ([0, n].map(|at| equal.range(at, n)), triples.range(used, n));
        used += n;
        let left = equal.range(2 * n, equal.len() - 2 * n);
        equal = and(cx.ch, &pairs, &triples, side)?.followed_by(&left);
    }
    Ok(equal)
}

/// Shares of x y.
fn and(ch: &mut Channel, [x, y]: &[Bits; 2], triples: &Triples, side: &Side) -> Result<Bits> {
    let (d, e) = (x ^ &triples.a, y ^ &triples.b);
    let ((), theirs) =
        ch.duplex(|tx| send_opened(tx, side.sends, &d, &e), |rx| receive_opened(rx, side.receives, x.len()))?;
    let (d, e) = (&d ^ &theirs[0], &e ^ &theirs[1]);
    // With A = a + a' and B = b + b': x y = (d + A) (e + B) = d e + d B + e A + A B.
    let z = &(&triples.c ^ &(&d & &triples.b)) ^ &(&e & &triples.a);
    Ok(if side.leads { &z ^ &(&d & &e) } else { z })
}

fn send_opened(tx: &mut Tx, message: Message<[u8]>, d: &Bits, e: &Bits) -> Result<()> {
    for (f, n) in frames(d.len(), ANDS_PER_FRAME).enumerate() {
        let part = |bits: &Bits| bits.range(f * ANDS_PER_FRAME, n).to_bytes();
        tx.send_bytes(message, &[part(d), part(e)].concat())?;
    }
    Ok(())
}

fn receive_opened(rx: &mut Rx, message: Message<[u8]>, len: usize) -> Result<[Bits; 2]> {
    let mut opened = [Bits::zeros(len), Bits::zeros(len)];
    for (f, n) in frames(len, ANDS_PER_FRAME).enumerate() {
        let bytes = rx.recv_bytes(message, 2 * n.div_ceil(8))?;
        for (all, bytes) in opened.iter_mut().zip(bytes.chunks_exact(n.div_ceil(8))) {
            let part = Bits::from_bytes(bytes, n);
            let part = part.ok_or_else(|| Error::misbehaves("it opened bits behind the last AND"))?;
            all.put(f * ANDS_PER_FRAME, &part);
        }
    }
    Ok(opened)
}

#[cfg(test)]
#[path = "nibbles_tests.rs"]
mod tests;
