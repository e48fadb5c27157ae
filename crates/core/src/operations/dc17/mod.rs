//! Intersection, union and count from an encrypted Bloom filter (DC17 3.1, 4.1 and 4.2): the receiver sends its filter, and
//! the sender answers for each of its items with values derived from the sum c of the item's cells.
//!
//! ```text
//! R->S  the filter                      encrypted_filter.rs: c_j is 0 if R has x_j, else 1 to k
//! S->R  answers, in a random order
//!         count      Enc(r' c)
//!         intersect  Enc(r c + kappa), Enc(r' c)      and a row under the key H(kappa)
//!         union      Enc(kappa c), Enc(c)             and a row under the key H(kappa)
//! ```
//!
//! r and kappa are uniform, r' is uniform and a unit, all fresh and independent for each item.
//!
//! Security: semi-honest, the encryption is IND-CPA, H is a random oracle, AES-128. For an item that R lacks, the plaintexts
//! in count and intersect are independent of the item: r c + kappa is uniform, and r' c is a uniform unit. In a union they are
//! kappa c and c, and c follows from R's filter and the row that R gets anyway. For an item that R has, the plaintext is 0 in
//! count. In intersect the plaintexts are kappa and 0, and open the row; in a union (0, 0), which do not. Leakage: the sizes
//! and the result. An R whose filter holds only zeros opens the rows of all of X in an intersection; one whose filter holds
//! only ones, in a union.
//!
//! Cost: the B cells of the filter to the sender, unless it has them already or has no items; per item of the sender one
//! ciphertext back, or two and a row. Memory: that of the encrypted filter (`encrypted_filter.rs`), the order of the items, a
//! frame of answers, and the result.
//!
//! Departures from the paper:
//! - its intersection sends Enc(r c + x), Enc(c). So R learns c, the number of empty positions, for every item outside the
//!   intersection, and can test guesses of the items (`flawed_tests.rs`). r' hides it;
//! - each item, or in an intersection its digest, travels in a row under a key of its own, padded to the agreed width. The
//!   paper encrypts the item itself, which would have to be shorter than a message;
//! - each answer has fresh randomness of full range, and the order is fresh in each run. R knows its secret key, so it
//!   could search for short randomness;
//! - B, and the number k of an item's positions, keep the error of the whole run at 2^-40.

pub(crate) mod count;
pub(crate) mod intersect;
pub(crate) mod union;

use super::cost::framed;
use super::{Learned, Sealed, Task, Terms};
use crate::ahe::{Cipher, Name};
use crate::channel::{Message, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::Domain;
use crate::membership::encrypted_filter::{self, Sums};
use crate::ot::Pad;
use crate::ot::transfer::crypt;
use crate::params::LAMBDA;
use crate::params::filter::{Agreed, Filter};
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;

const ANSWERS: Message<[u8]> = Message::new(0xf2, "S->R  answers, shuffled");
const ROWS: Message<[u8]> = Message::new(0xf3, "S->R  rows, encrypted, in the order of the answers");

/// The most bytes of a frame of answers with their rows: 256 KiB. A larger answer gets a frame of its own.
const FRAME_BYTES: usize = 1 << 18;

/// The agreed filter, or the filter made in a run, for a receiver with `n_y` items and a sender with `n_x` queries.
pub(crate) fn filter(terms: &Terms, n_y: usize, n_x: usize) -> Agreed {
    terms.filter.unwrap_or_else(|| Agreed::fresh(Filter::new(LAMBDA, n_y, n_x)))
}

/// Steps 1 and 2: sends the receiver's filter to a sender with `n_x` items, unless it has it already. Returns the key that
/// opens the answers.
fn send_filter<C: Cipher>(task: &Task, cx: &mut Context, n_x: usize) -> Result<C::Owner> {
    let agreed = filter(&task.terms, task.set.len(), n_x);
    encrypted_filter::send::<C>(cx, task.set, task.filter, agreed)
}

/// Steps 3 and 4: receives the filter of a receiver with `n_y` items, or reads our copy, and adds up the cells of each item.
fn sums<C: Cipher>(task: &Task, cx: &mut Context, n_y: usize) -> Result<Sums<C>> {
    let agreed = filter(&task.terms, n_y, task.set.len());
    encrypted_filter::receive::<C>(cx, task.set, task.filter, agreed)
}

/// The answer for each item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The number of ciphertexts.
    pub(crate) ciphertexts: usize,
    /// Bytes of a row; 0 if there is none.
    pub(crate) width: usize,
}

impl Shape {
    /// Bytes of an answer with its row.
    pub(crate) fn answer<C: Cipher>(self) -> usize {
        self.ciphertexts * C::CIPHERTEXT + self.width
    }

    /// The number of answers in a frame.
    pub(crate) fn per_frame<C: Cipher>(self) -> usize {
        (FRAME_BYTES / self.answer::<C>()).max(1)
    }

    /// Bytes of `n` answers with their rows, including frame headers.
    pub(crate) fn bytes<C: Cipher>(self, n: usize) -> u64 {
        let per_frame = self.per_frame::<C>();
        let rows = if self.width > 0 { framed(n, per_frame, self.width) } else { 0 };
        framed(n, per_frame, self.ciphertexts * C::CIPHERTEXT) + rows
    }

    /// Announces the stage that sends or receives `n` answers.
    fn begin<C: Cipher>(self, cx: &Context, n: usize) {
        cx.ch.stage("answers", Unit::Bytes, n * self.answer::<C>());
    }
}

/// The hash function from names to the keys of rows.
fn keys(cx: &Context) -> Domain {
    Domain::new(&cx.session, "encrypted filter, key of a row")
}

fn pads(domain: &Domain, names: &[Name]) -> Secrets<Pad> {
    Secrets::from(names.par_iter().map(|name| domain.hash(&[name])).collect::<Vec<Pad>>())
}

/// Sends answers for `n` items and dummies in random order, and returns the order. Those from `genuine` on are answered like
/// a match. `combine` makes the ciphertexts, all first ones, then all second ones, and draws the kappas; `write` fills the
/// row of an item.
fn answer<C: Cipher>(
    cx: &mut Context,
    sums: &Sums<C>,
    (n, genuine): (usize, usize),
    shape: Shape,
    combine: impl Fn(&C::Key, &C::List, &mut Prng) -> (Vec<u8>, Option<C::Numbers>) + Sync,
    write: impl Fn(usize, &mut [u8]) + Sync,
) -> Result<Secrets<u32>> {
    shape.begin::<C>(cx, n);
    // 4. In random order, so that positions reveal nothing to R.
    let order = cx.rng.permutation(n);
    let (keys, mut first) = (keys(cx), 0);
    for positions in order.chunks(shape.per_frame::<C>()) {
        let mut rng = cx.rng.split();
        let (answers, rows) = cx.threads.run(|| {
            let list = C::select(&sums.list, positions, genuine);
            let (answers, kappa) = combine(&sums.key, &list, &mut rng);
            let rows = kappa.map(|kappa| {
                let mut rows = vec![0; positions.len() * shape.width];
                let pads = pads(&keys, &C::names(&kappa));
                let write = |i: usize, row: &mut [u8]| write(order[i] as usize, row);
                crypt(&mut rows, shape.width, first, &pads, write);
                rows
            });
            (answers, rows)
        });
        cx.ch.tx.send_bytes(ANSWERS, &answers)?;
        if let Some(rows) = rows {
            cx.ch.tx.send_bytes(ROWS, &rows)?;
        }
        first += positions.len();
    }
    Ok(order)
}

/// Receives `n` answers. `judge` returns which items are of interest and, if there are rows, the names of the kappas; `take`
/// gets each bit with its row. The sender can time us, so all rows are decrypted.
fn receive<C: Cipher>(
    cx: &mut Context,
    owner: &C::Owner,
    n: usize,
    shape: Shape,
    mut judge: impl FnMut([C::Opened; 2]) -> (Secrets<bool>, Option<Secrets<Name>>) + Send,
    mut take: impl FnMut(bool, &[u8]),
) -> Result<Secrets<bool>> {
    shape.begin::<C>(cx, n);
    let (mut all, keys, mut first) = (Secrets::<bool>::zeros(0), keys(cx), 0);
    for n in frames(n, shape.per_frame::<C>()) {
        let bytes = cx.ch.rx.recv_bytes(ANSWERS, n * shape.ciphertexts * C::CIPHERTEXT)?;
        let (bits, names) = cx.threads.run(|| {
            let (one, two) = bytes.split_at(n * C::CIPHERTEXT);
            let open = |bytes| {
                let malformed = |_| Error::misbehaves(format_args!("an answer holds what is {}", C::UNFIT));
                C::open(owner, bytes).map_err(malformed)
            };
            Ok::<_, Error>(judge([open(one)?, open(two)?]))
        })?;
        if let Some(names) = names {
            let mut rows = Secrets::from(cx.ch.rx.recv_bytes(ROWS, n * shape.width)?);
            cx.threads.run(|| crypt(&mut rows, shape.width, first, &pads(&keys, &names), |_, _| ()));
            rows.chunks_exact(shape.width).zip(bits.iter()).for_each(|(row, bit)| take(*bit, row));
        }
        all.extend(&bits);
        first += n;
    }
    Ok(all)
}

/// Replaces the sender's result by an error if the sender used a malformed cell.
fn unless_malformed<'a, C: Cipher>(
    sums: Option<Sums<C>>,
    result: Sealed<'a, Learned>,
) -> Sealed<'a, Learned> {
    let well_formed = sums.is_none_or(|sums| sums.well_formed);
    result.and_then(move |learned| match well_formed {
        true => Ok(learned),
        false => Err(Error::misbehaves_unseen(format!("a cell of its filter that we used is {}", C::UNFIT))),
    })
}

#[cfg(test)]
#[path = "flawed_tests.rs"]
mod flawed_tests;
#[cfg(test)]
mod tests;
