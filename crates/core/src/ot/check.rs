//! Security of OT extension against malicious parties: the check of the punctured trees and the check of the
//! corrections. (Roy22: "SoftSpokenOT", the consistency checks of its GGM trees and of its subspace VOLE, here for the
//! repetition code.) Only the receiver of the extension can cheat, because the sender sends nothing after the base OTs.
//!
//! Security: malicious receivers, with AES an ideal cipher and BLAKE3 a random oracle.
//!
//! The checks allow selective failure. A cheater can make its messages valid for only some values of a tree's alpha_i,
//! and is detected if alpha_i has another value. So it learns b bits of Delta with probability 2^-b, over all frames
//! together, and is detected otherwise. One failure ends the use of this Delta, because the sender makes no pads after
//! it. The end of the run reveals to the cheater that its guess was wrong, but that Delta is discarded.
//!
//! The hash of the pads allows for this: TMMO is tweakable circular correlation robust for any Delta of high
//! min-entropy, and for rows that the attacker picks (GKWY20, section 7.4). The malicious form needs this in full: the
//! tweak, which is the number of the OT, separates two rows that a cheater makes equal.
//!
//! **Trees.** Each leaf is expanded once more, into the seed of its stream and a tag of 32 bytes. The receiver sends
//! the sum of the tags of each tree, and one hash of all tags of all trees. The sender computes the tag that it lacks
//! and compares. It reaches one verdict over all trees, which is not sent. The check binds the receiver to one seed per
//! leaf.
//!
//! **Corrections.** c_i fixes the choices x_i = c_i + u_i with which tree i is used. They must be the same in
//! all trees; otherwise rows and pads reveal alpha_i. Each frame has an extra group of 128 OTs with random
//! choices, which are discarded.
//!
//! Of the choices x, let x_1, x_2, ... now be the groups of 128, as elements of GF(2^128). The receiver sends x~ =
//! x_extra + sum chi_j x_j, and the same combination v~_b of the column v_b, for each of the 128 columns. The sender
//! checks q~_b = v~_b + Delta_b x~ for each. The extra group hides everything else: x~ is uniform, and v~ follows from
//! x~ and the sender's state. The coefficients are independent, so unequal x_i have equal x~_i with probability 2^-128.
//! (The check of KOS15, which compresses all columns into one element, has a gap in its proof.)
//!
//! The coefficients are a hash of the trees' check and of all corrections of this and earlier frames, so they
//! are known only once these are fixed (Fiat-Shamir). That saves a round per frame and keeps frames
//! one-directional. The price is that a cheater can retry offline: each evaluation of the hash succeeds with
//! probability 2^-128.
//!
//! Cost: 32 bytes per tree and another 32, once; 128 more OTs and 2,064 bytes of proof per frame.

use super::Pad;
use super::extension::{FRAME, WIDTH, first_block};
use crate::channel::Message;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId};
use crate::secret::{Secret, Secrets};
use std::ops::Deref;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use veilset_kernels::aes::Aes128;
use veilset_kernels::bytes::xor;
use veilset_kernels::gf128::sum_of_products;
use veilset_kernels::transpose::transpose_128;
use zeroize::Zeroizing;

/// The tag of a leaf, which binds to it without revealing its seed.
pub(super) type Tag = [u8; 32];

pub(super) const TREES: Message<Tag> = Message::new(0x35, "R->S  check of the seed trees");
pub(super) const PROOF: Message<Pad> = Message::new(0x36, "R->S  check of the corrections: x~, v~_b");
/// Number of elements of a proof.
pub(super) const PROOF_LEN: usize = 1 + WIDTH;
/// Length of the extra group in a column in bytes. It comes last.
pub(super) const EXTRA: usize = WIDTH / 8;

/// The leaves of the sender's trees before the check that the receiver has the same ones. Only
/// [`trusted`](Self::trusted) and [`checked`](Self::checked) return seeds.
pub(super) struct Leaves(Vec<Punctured>);

/// The leaves of one tree, in order. The unknown leaf at `alpha` is 0.
pub(super) struct Punctured {
    pub(super) leaves: Secrets<Pad>,
    pub(super) alpha: Secret<u32>,
}

impl Leaves {
    pub(super) fn new(trees: Vec<Punctured>) -> Self {
        Leaves(trees)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The semi-honest form, in which the leaves are the seeds. Position y holds the seed of leaf alpha + y, a sum in
    /// GF(2)^k; position 0 holds an unused value.
    pub(super) fn trusted(self) -> Vec<Secrets<Pad>> {
        self.0.iter().map(|tree| shifted(&tree.leaves, *tree.alpha)).collect()
    }

    /// The malicious form, which returns the seeds in the same order if the receiver's message is correct.
    pub(super) fn checked(
        self,
        session: &SessionId,
        message: &[Tag],
    ) -> Result<(Vec<Secrets<Pad>>, Transcript)> {
        let mut all = Secrets::zeros(0);
        let mut seeds = Vec::with_capacity(self.0.len());
        for (i, tree) in self.0.iter().enumerate() {
            let (expanded, mut tags) = expand(i, &tree.leaves);
            let unknown = |x: usize| (x as u32).ct_eq(&*tree.alpha);
            let mut missing = Zeroizing::new(message[i]);
            for (x, tag) in tags.iter().enumerate() {
                xor(&mut *missing, &Tag::conditional_select(tag, &[0; 32], unknown(x)));
            }
            for (x, tag) in tags.iter_mut().enumerate() {
                tag.conditional_assign(&missing, unknown(x));
            }
            all.extend(&tags);
            seeds.push(shifted(&expanded, *tree.alpha));
        }
        match bool::from(digest(session, &all).ct_eq(&message[self.0.len()])) {
            true => Ok((seeds, Transcript::new(session, message))),
            false => Err(Error::misbehaves("the check of the seed trees of its OT extension fails")),
        }
    }
}

/// The receiver's counterpart of [`Leaves::checked`]: the seeds of the trees with these leaves, and the message.
pub(super) fn prove_trees(
    session: &SessionId,
    trees: &[Secrets<Pad>],
) -> (Vec<Secrets<Pad>>, Vec<Tag>, Transcript) {
    let mut all = Secrets::zeros(0);
    let mut message = Vec::with_capacity(trees.len() + 1);
    let mut seeds = Vec::with_capacity(trees.len());
    for (i, leaves) in trees.iter().enumerate() {
        let (expanded, tags) = expand(i, leaves);
        let mut sum = Tag::default();
        tags.iter().for_each(|tag| xor(&mut sum, tag));
        message.push(sum);
        all.extend(&tags);
        seeds.push(expanded);
    }
    message.push(digest(session, &all));
    let transcript = Transcript::new(session, &message);
    (seeds, message, transcript)
}

/// The seed and the tag of each leaf of tree `i`. Sums of tags are sent, so tags share no block with the seeds.
pub(super) fn expand(i: usize, leaves: &[Pad]) -> (Secrets<Pad>, Secrets<Tag>) {
    let mut seeds = Secrets::<Pad>::zeros(leaves.len());
    let mut tags = Secrets::<Tag>::zeros(leaves.len());
    for (leaf, (seed, tag)) in leaves.iter().zip(seeds.iter_mut().zip(tags.iter_mut())) {
        let leaf = Aes128::new(leaf);
        leaf.ctr(first_block(i), seed);
        leaf.ctr(first_block(i) + 1, tag);
    }
    (seeds, tags)
}

/// Moves the element at alpha + y, a sum in GF(2)^k, to position y, for 2^k elements. No address depends on alpha: each of
/// its bits decides whether to swap all pairs of elements whose positions differ only in that bit.
pub(super) fn shifted(from: &[Pad], alpha: u32) -> Secrets<Pad> {
    let mut to = Secrets::from(from.to_vec());
    for bit in 0..from.len().trailing_zeros() {
        let swap = Choice::from((alpha >> bit & 1) as u8);
        for pairs in to.chunks_exact_mut(2 << bit) {
            let (zeros, ones) = pairs.split_at_mut(1 << bit);
            zeros.iter_mut().zip(ones).for_each(|(zero, one)| Pad::conditional_swap(zero, one, swap));
        }
    }
    to
}

fn digest(session: &SessionId, tags: &[Tag]) -> Tag {
    Domain::new(session, "OT extension tags").hash(&[tags.as_flattened()])
}

/// All earlier data on which the coefficients of the next frame depend, and whether a check has failed.
#[cfg_attr(any(test, feature = "test-util"), derive(Clone))]
pub(super) struct Transcript {
    oracle: Domain,
    state: [u8; 32],
    failed: bool,
}

impl Transcript {
    fn new(session: &SessionId, trees: &[Tag]) -> Self {
        let state = Domain::new(session, "OT extension challenge, trees").hash(&[trees.as_flattened()]);
        let oracle = Domain::new(session, "OT extension challenge");
        Transcript { oracle, state, failed: false }
    }

    /// The coefficients of the groups of a frame with these corrections. The coefficient of the last group, the extra
    /// one, is 1.
    pub(super) fn coefficients(&mut self, corrections: &[u8], groups: usize) -> Vec<Pad> {
        let hash: [u8; 32 + FRAME / WIDTH * 16] = self.oracle.hash(&[&self.state, corrections]);
        let (state, chi) = hash.split_at(32);
        self.state.copy_from_slice(state);
        let mut coefficients = chi.as_chunks().0[..groups - 1].to_vec();
        coefficients.push(1u128.to_le_bytes());
        coefficients
    }

    /// x~ and all v~_b of a frame, from its choices and its columns, both including the extra group.
    pub(super) fn prove(&mut self, corrections: &[u8], choices: &[u8], columns: &[u8]) -> Vec<Pad> {
        let chi = self.coefficients(corrections, choices.len() / 16);
        let all = [choices].into_iter().chain(columns.chunks_exact(choices.len()));
        all.map(|column| sum_of_products(&chi, column.as_chunks().0)).collect()
    }
}

/// The sender's columns q_b of a frame before the check of the corrections. Only [`trusted`](Self::trusted) and
/// [`checked`](Self::checked) return rows.
pub(super) struct Columns(Secrets<u8>);

/// The rows q_j of a frame, which has passed the check if its form has one.
pub(super) struct Rows(Secrets<Pad>);

impl Columns {
    pub(super) fn new(columns: Secrets<u8>) -> Self {
        Columns(columns)
    }

    /// The semi-honest form, which returns the first `n` rows.
    pub(super) fn trusted(self, n: usize) -> Rows {
        Rows(rows(&self.0, n))
    }

    /// The malicious form, which returns the first `n` rows if `proof` is correct: q~_b = v~_b + Delta_b x~ for every
    /// b.
    pub(super) fn checked(
        self,
        n: usize,
        transcript: &mut Transcript,
        corrections: &[u8],
        delta: &Pad,
        proof: &[Pad],
    ) -> Result<Rows> {
        if transcript.failed {
            return Err(Error::Bug("OT extension went on after a failed check".into()));
        }
        let bytes = self.0.len() / WIDTH;
        let chi = transcript.coefficients(corrections, bytes / 16);
        let (x, v) = (&proof[0], &proof[1..]);
        let mut right = Choice::from(1);
        for (b, column) in self.0.chunks_exact(bytes).enumerate() {
            let mut expected = Zeroizing::new(v[b]);
            let set = Choice::from(delta[b / 8] >> (b % 8) & 1);
            xor(&mut *expected, &Pad::conditional_select(&[0; 16], x, set));
            right &= sum_of_products(&chi, column.as_chunks().0).ct_eq(&*expected);
        }
        match bool::from(right) {
            true => Ok(Rows(rows(&self.0, n))),
            false => {
                transcript.failed = true;
                Err(Error::misbehaves("the check of the corrections of its OT extension fails"))
            }
        }
    }
}

impl Deref for Rows {
    type Target = Secrets<Pad>;
    fn deref(&self) -> &Secrets<Pad> {
        &self.0
    }
}

impl From<Rows> for Secrets<Pad> {
    fn from(rows: Rows) -> Self {
        rows.0
    }
}

/// The first `n` rows of 128 columns.
pub(super) fn rows(columns: &[u8], n: usize) -> Secrets<Pad> {
    let mut rows = Secrets::zeros(n.next_multiple_of(WIDTH));
    transpose_128(columns, columns.len() / WIDTH, &mut rows);
    rows.truncate(n);
    rows
}
