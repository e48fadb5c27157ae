//! Shuffle&Decrypt: P_1 learns the messages of a list of ciphertexts, but not their order (GNT23 3.3, Figures 6 and 7).
//!
//! Each of the n parties holds one of the keys of a joint key ([`super::joint`]), and P_1, the leader, has a list of
//! rows of k ciphertexts under it. The leader re-randomises and permutes the list ([`Shuffle::lead`]). Then P_2 to P_n,
//! one after the other, remove their keys and permute the list again ([`Shuffle::pass`]). The last one returns it to
//! the leader, whose key is the only one left ([`Shuffle::open`]). Each party permutes the whole list, and keeps rows
//! intact.
//!
//! Output: P_1 learns the rows in an order that is random to any n - 1 parties, and the others learn nothing. After an
//! honest party, the list is fresh and shows only the multiset of the rows. So it reveals neither the origin of a row
//! nor how often it was re-randomised before. P_1 sees which rows are equal. [`ShuffleShape::blinded`] shows P_1 only
//! how many rows are the identity: P_2 to P_n also multiply each message by a fresh scalar other than 0. In a count
//! this hides nothing more from an honest P_1; it defeats one that offers distinct messages to see which of them come
//! back.
//!
//! Security: that of the joint key: semi-honest, against any n - 1 parties. Nothing proves that a party passes on the
//! messages it received. Leakage: the number of rows, which follows from bounds.
//!
//! Cost: n hops of 64 k bytes per row. For each ciphertext the leader re-randomises and decrypts, and each other party
//! decrypts partially. The parties work one after the other. Memory, in addition to the list that the leader begins with:
//! 64 k bytes per row for the list, and 4 for its order; two frames; and the memory of [`super::joint`] for a frame.
//!
//! Departures from the figures, and properties that must be kept:
//! - a row has k ciphertexts, each with independent fresh randomness;
//! - P_i sends ciphertexts that are fresh under the joint key of the remaining parties, {1, i + 1, ..., n}. Partial
//!   decryption without re-randomisation would leave c1 unchanged, which reveals the order;
//! - a party sends nothing before it has all rows. Permuting within frames would reveal in which part of the list a row
//!   was;
//! - ciphertexts with a part that is not a canonical encoding, or encodes the identity, are refused. Only the leader
//!   replaces such a ciphertext with a fresh encryption of the identity when it begins: which ones it has can depend on
//!   its set, so it may report it only after the run.

use super::elgamal::{Ciphertext, FirstMalformed, Malformed, PublicKey, SecretKey};
use crate::channel::{HEADER, Message, Rx, Tx, Wire, frames};
use crate::error::{Error, Result};
use crate::group::ristretto255::Element;
use crate::rng::Prng;
use crate::threads::Threads;

/// The maximum number of ciphertexts in a frame (256 KiB), unless a single row has more.
pub const FRAME: usize = 1 << 12;

const LIST: Message<Ciphertext> = Message::new(0xd0, "to the next party  the list, permuted");

/// Public parameters of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShuffleShape {
    rows: usize,
    k: usize,
    blinded: bool,
}

impl ShuffleShape {
    /// A list of `rows` rows, each of `k` ciphertexts, or of one if `k` is 0.
    pub const fn new(rows: usize, k: usize) -> ShuffleShape {
        ShuffleShape { rows, k: if k > 0 { k } else { 1 }, blinded: false }
    }

    /// A list of `rows` ciphertexts, of which P_1 learns only how many hold the identity.
    pub const fn blinded(rows: usize) -> ShuffleShape {
        ShuffleShape { rows, k: 1, blinded: true }
    }

    /// Returns whether P_1 learns only how many ciphertexts hold the identity.
    pub(crate) const fn is_blinded(self) -> bool {
        self.blinded
    }

    /// Number of rows in a frame.
    const fn per_frame(self) -> usize {
        if self.k < FRAME { FRAME / self.k } else { 1 }
    }

    /// Bytes that one party sends to the next.
    pub fn traffic(self) -> usize {
        self.rows * self.k * Ciphertext::SIZE + HEADER * self.rows.div_ceil(self.per_frame())
    }

    /// The error for a party that sent a malformed ciphertext in the frame that begins with row `first`.
    fn forged(self, first: usize, Malformed(at): Malformed) -> Error {
        let (row, at) = (first + at / self.k, at % self.k);
        Error::misbehaves(format_args!(
            "part of ciphertext {at} of row {row} of the list is not an element of ristretto255, or its identity"
        ))
    }
}

/// State of one party in a shuffle.
pub struct Shuffle<'a> {
    /// Public parameters of the list.
    pub shape: ShuffleShape,
    /// The generator of the party's randomness and of its order.
    pub rng: &'a mut Prng,
    /// The threads that compute.
    pub threads: &'a Threads,
}

/// The rows that a party holds, by frame.
type List = Vec<Vec<Ciphertext>>;

impl Shuffle<'_> {
    /// Begins the shuffle as P_1, with the list under this joint key of all parties. Returns the position of its first
    /// malformed ciphertext ([`PublicKey::rerandomise_any`]).
    ///
    /// # Errors
    /// [`Error::Bug`] if the list is not of the announced shape; the errors of the channel.
    pub fn lead(&mut self, all: &PublicKey, list: &[Ciphertext], tx: &mut Tx) -> Result<FirstMalformed> {
        let ShuffleShape { rows, k, .. } = self.shape;
        if list.len() != rows * k {
            return Err(Error::bug(format!("a list of {} ciphertexts for {rows} rows of {k}", list.len())));
        }
        // 1. P_1 re-randomises ct_j for all j,
        let (rng, threads, per_frame) = (&mut *self.rng, self.threads, self.shape.per_frame());
        let mut malformed = FirstMalformed::NONE;
        let fresh = list.chunks(per_frame * k).enumerate().map(|(i, rows)| {
            let (fresh, first) = threads.run(|| all.rerandomise_any(rows, rng));
            malformed = malformed.or(first.after(i * per_frame * k));
            fresh
        });
        let fresh: List = fresh.collect();
        // and sends C_1, where ct_j^1 = ct_π1(j).
        self.send(&fresh, tx)?;
        Ok(malformed)
    }

    /// Removes the key of P_i from the list received from P_(i-1), and sends the result to P_(i+1), or to P_1 if this
    /// party is the last. `rest` is the joint key of the remaining parties ([`PublicKey::remaining`]).
    ///
    /// # Errors
    /// [`Error::Peer`] for a list that an honest party never sends; the errors of the channel.
    pub fn pass(&mut self, key: SecretKey, rest: &PublicKey, rx: &mut Rx, tx: &mut Tx) -> Result<()> {
        // 2. P_i decrypts ct_j^(i-1) partially, for all j. The list grows as rows arrive.
        let (shape, rng, threads) = (self.shape, &mut *self.rng, self.threads);
        let per_frame = shape.per_frame();
        let fresh = frames(shape.rows, per_frame).enumerate().map(|(i, rows)| {
            let list = rx.recv(LIST, rows * shape.k)?;
            let fresh = threads.run(|| match shape.blinded {
                false => key.partially_decrypt(&list, rest, rng),
                true => key.partially_decrypt_blinded(&list, rest, rng),
            });
            fresh.map_err(|wrong| shape.forged(i * per_frame, wrong))
        });
        let fresh = fresh.collect::<Result<List>>()?;
        // P_i permutes them as ct_j^i = ct_πi(j), and sends C_i.
        self.send(&fresh, tx)
    }

    /// Ends the shuffle as P_1: passes the elements of the rows to `take`, some rows at a time, in random order.
    ///
    /// # Errors
    /// [`Error::Peer`] for a list that an honest party never sends; the errors of the channel and of `take`.
    pub fn open(
        &mut self,
        key: SecretKey,
        rx: &mut Rx,
        mut take: impl FnMut(&[Element]) -> Result<()>,
    ) -> Result<()> {
        // 3. P_1 decrypts ct_j^n for all j.
        let ShuffleShape { rows, k, .. } = self.shape;
        let per_frame = self.shape.per_frame();
        for (i, n) in frames(rows, per_frame).enumerate() {
            let list = rx.recv(LIST, n * k)?;
            let elements = self.threads.run(|| key.decrypt(&list));
            take(&elements.map_err(|wrong| self.shape.forged(i * per_frame, wrong))?)?;
        }
        Ok(())
    }

    /// Sends the rows in an order that is random over the whole list.
    fn send(&mut self, list: &[Vec<Ciphertext>], tx: &mut Tx) -> Result<()> {
        let (k, per_frame) = (self.shape.k, self.shape.per_frame());
        let order = self.rng.permutation(self.shape.rows);
        order.chunks(per_frame).try_for_each(|rows| {
            let row = |&row: &u32| &list[row as usize / per_frame][row as usize % per_frame * k..][..k];
            tx.send(LIST, &rows.iter().flat_map(row).copied().collect::<Vec<_>>())
        })
    }
}

#[cfg(test)]
#[path = "shuffle_tests.rs"]
mod tests;
