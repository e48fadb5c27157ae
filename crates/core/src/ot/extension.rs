//! OT extension: SoftSpoken OT (Roy22: "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the
//! Minicrypt Model", CRYPTO 2022), in its semi-honest and its malicious form.
//!
//! Use a pad as a key, with separate counters (`transfer.rs`, `masks.rs`). As a mask it has less than 128-bit strength:
//! with q pads that it did not choose, a receiver finds Delta with 2^128 / q evaluations of the fixed-key hash.
//!
//! Security: AES is assumed to be a pseudorandom permutation, its fixed-key hash tweakable correlation robust (GKWY20),
//! and the base OTs secure against malicious parties. The semi-honest form has no checks: a receiver that makes
//! different choices in different trees learns Delta from the sender's use of its pads. The malicious form has the
//! checks of `check.rs`, which states their assumptions and limits. In both forms a malicious receiver may pick its own
//! rows v_j, and with them the pads that it gets.
//!
//! Leakage: the number of OTs. Cost: ceil(128 / k) bits per OT from receiver to sender; either side computes about
//! 128 * 2^k / k bits of AES output per OT (in IKNP, the receiver 256 and the sender 128). In the malicious form, an OT
//! takes one more multiplication in GF(2^128), and a frame has 128 more OTs and 2,064 more bytes. That is 5 % of the
//! bytes of a full frame at k = 2, and 11 % at k = 6.
//!
//! The sender's secret Delta has 128 bits, split into one alpha_i in GF(2)^k per tree. For each tree the
//! receiver knows all 2^k leaf seeds s_x, the sender all but s_alpha_i. Let r_x be the stream of seed s_x:
//!
//! - the receiver knows u_i = sum of r_x and v_i = sum of x r_x;
//! - the sender knows w_i = sum of (alpha_i + x) r_x = v_i + alpha_i u_i;
//! - with the correction c_i = u_i + choices, the sender obtains q_i = w_i + alpha_i c_i = v_i + alpha_i * choices.
//!
//! Row j of all trees together is q_j = v_j + choice_j * Delta. The pads are H(j, q_j) and H(j, q_j + Delta).
//! The receiver knows one of them, which is H(j, v_j).
//!
//! Departures: Roy22 takes u_0 as the choices and sends no correction for tree 0. Here the caller supplies the
//! choices, and only the extra group of a frame takes u_0.

use super::check::{
    Columns, EXTRA, Leaves, PROOF, PROOF_LEN, Punctured, Rows, TREES, Transcript, prove_trees, rows,
};
use super::{Pad, Security, base};
use crate::channel::{HEADER, Message, Rx, Tx, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId, part};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::threads::Threads;
use rayon::prelude::*;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use veilset_kernels::aes::Aes128;
use veilset_kernels::bytes::xor;
use zeroize::Zeroizing;

/// Length of Delta in bits, and the number of base OTs.
pub const WIDTH: usize = 128;
/// Maximum OTs per frame: 8192, for which the receiver sends 22 KiB at k = 6. Each party holds 128 KiB of columns and
/// 128 KiB of rows.
pub const FRAME: usize = 1 << 13;
/// The maximum k: the work grows as 2^k / k, but the traffic shrinks only as 1 / k.
const MAX_K: usize = 8;
/// The default k, at which the receiver sends 22 bits per OT. On either side, one thread of a Zen 4 processor takes 10,
/// 13, 17, 26, 37 and 60 ns per OT for k = 2, 4, 5, 6, 7 and 8. The malicious form takes 4 to 8 ns more, and a sender
/// that computes both pads 6 ns more. A larger k pays off on links slower than about 270 Mbit/s, a smaller one on links
/// faster than about 440.
pub const DEFAULT_K: usize = 6;
/// Bytes held for the setup at the default k: base OTs, and 22 trees of 64 ciphers.
pub(crate) const SETUP_HELD: usize = 5 << 16;

const SUMS: Message<[Pad; 2]> = Message::new(0x33, "R->S  sums of the levels of the seed trees, encrypted");
const CORRECTIONS: Message<[u8]> = Message::new(0x34, "R->S  u_i + choices");

impl crate::channel::Wire for [Pad; 2] {
    const SIZE: usize = 32;
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|p| out.extend_from_slice(p));
    }
    fn get(bytes: &[u8]) -> Result<Self, &'static str> {
        let (a, b) = bytes.split_at_checked(16).ok_or("of the wrong size")?;
        Ok([Pad::get(a)?, Pad::get(b)?])
    }
}

/// Bytes of the setup, including frame headers: from receiver to sender, and back.
pub(crate) fn setup_bytes(k: usize, security: Security) -> (usize, usize) {
    let check = match security {
        Security::SemiHonest => 0,
        Security::Malicious => (WIDTH.div_ceil(k) + 1) * 32 + HEADER,
    };
    (2 * (WIDTH * 32 + HEADER) + check, WIDTH * 64 + HEADER)
}

/// Bytes that the receiver sends for `n` OTs in frames of [`FRAME`], excluding frame headers.
pub(crate) fn correction_bytes(n: usize, k: usize, security: Security) -> usize {
    frames(n, FRAME).map(|n| frame_bytes(n, k, security)).sum()
}

/// Bytes that the receiver sends for one frame of `n` OTs.
fn frame_bytes(n: usize, k: usize, security: Security) -> usize {
    let proof = match security {
        Security::SemiHonest => 0,
        Security::Malicious => 16 * PROOF_LEN,
    };
    column_bytes(n, security) * WIDTH.div_ceil(k) + proof
}

/// Bytes of a column of `n` OTs.
fn column_bytes(n: usize, security: Security) -> usize {
    let extra = match security {
        Security::SemiHonest => 0,
        Security::Malicious => EXTRA,
    };
    n.next_multiple_of(WIDTH) / 8 + extra
}

/// The depths of the trees: k, and for the last one what is left of the 128 levels.
fn depths(k: usize) -> impl Iterator<Item = usize> {
    (0..WIDTH).step_by(k).map(move |at| k.min(WIDTH - at))
}

fn check(k: usize) -> Result<()> {
    match (1..=MAX_K).contains(&k) {
        true => Ok(()),
        false => Err(Error::bug(format!("OT extension with k = {k}, which is not from 1 to {MAX_K}"))),
    }
}

/// The first counter of tree `i`. No two trees share a counter, so an attacker must try a key on each of them separately.
pub(super) fn first_block(i: usize) -> u128 {
    (i as u128) << 64
}

/// The children of all nodes on one level of tree `i`, each pair computed with a PRG from 16 to 32 bytes.
fn children(i: usize, level: &[Pad]) -> Secrets<Pad> {
    let mut below = Secrets::zeros(2 * level.len());
    for (node, pair) in level.iter().zip(below.chunks_exact_mut(2)) {
        Aes128::new(node).ctr(first_block(i), pair.as_flattened_mut());
    }
    below
}

/// The streams of one tree's leaves, ordered so that position y has coefficient y. The sender does not know the
/// stream at position 0, whose coefficient is 0.
struct Tree(Vec<Option<Aes128>>);

impl Tree {
    fn new(seeds: &[Pad]) -> Tree {
        Tree(seeds.iter().map(|seed| Some(Aes128::new(seed))).collect())
    }

    fn punctured(seeds: &[Pad]) -> Tree {
        let mut tree = Tree::new(seeds);
        tree.0[0] = None;
        tree
    }
}

/// Sums the streams r_y of some leaves over blocks `first..`. Column l of `columns` gains the sum of all r_y
/// with bit l of y set; `all` is set to the sum of all r_y. `spare` is as large as `columns`.
///
/// Depth first, to keep the working set in the first-level cache.
fn fold(leaves: &[Option<Aes128>], first: u128, columns: &mut [u8], all: &mut [u8], spare: &mut [u8]) {
    match leaves {
        [Some(leaf)] => leaf.ctr(first, all),
        [None] => all.fill(0),
        _ => {
            // The upper half of the leaves has the highest bit set.
            let (lower, upper) = leaves.split_at(leaves.len() / 2);
            let (columns, highest) = columns.split_at_mut(columns.len() - all.len());
            let (spare, sum) = spare.split_at_mut(columns.len());
            fold(lower, first, columns, all, spare);
            fold(upper, first, columns, sum, spare);
            xor(highest, sum);
            xor(all, sum);
        }
    }
}

/// The state common to both sides: the trees, the position in their streams, the next tweak, the hash, and in the
/// malicious form the state of the checks.
struct Common {
    k: usize,
    trees: Vec<Tree>,
    block: u128,
    index: u128,
    hash: Aes128,
    transcript: Option<Transcript>,
    /// The threads of the context of the setup.
    threads: Threads,
}

impl Common {
    fn new(
        part: &SessionId,
        k: usize,
        trees: Vec<Tree>,
        transcript: Option<Transcript>,
        threads: &Threads,
    ) -> Self {
        let key = Domain::new(part, "OT extension hash key").hash(&[]);
        Common { k, trees, block: 0, index: 0, hash: Aes128::new(&key), transcript, threads: threads.clone() }
    }

    fn security(&self) -> Security {
        match self.transcript {
            None => Security::SemiHonest,
            Some(_) => Security::Malicious,
        }
    }

    fn correction_bytes(&self, n: usize) -> usize {
        correction_bytes(n, self.k, self.security())
    }

    /// Bytes of a column of a frame of `n` OTs.
    fn column_bytes(&self, n: usize) -> Result<usize> {
        match n <= FRAME {
            true => Ok(column_bytes(n, self.security())),
            false => Err(Error::bug(format!("{n} OTs in a frame, which holds {FRAME}"))),
        }
    }

    /// The columns v or w of the next `bytes * 8` OTs, and the sum of the streams of each tree.
    fn columns(&mut self, bytes: usize) -> (Secrets<u8>, Secrets<u8>) {
        let mut columns = Secrets::zeros(WIDTH * bytes);
        let mut sums = Secrets::zeros(self.trees.len() * bytes);
        // Chunks must not be empty.
        if bytes > 0 {
            let tree_columns = columns.par_chunks_mut(self.k * bytes);
            let rows = tree_columns.zip(sums.par_chunks_exact_mut(bytes)).zip(&self.trees);
            let threads = &self.threads;
            threads.run(|| {
                rows.enumerate().for_each(|(i, ((columns, sum), tree))| {
                    let mut spare = Secrets::zeros(columns.len());
                    fold(&tree.0, first_block(i) + self.block, columns, sum, &mut spare);
                })
            });
        }
        self.block += (bytes / 16) as u128;
        (columns, sums)
    }

    fn next_tweak(&mut self, n: usize) -> u128 {
        let first = self.index;
        self.index += n as u128;
        first
    }
}

/// The receiver of the extension, which makes the choices.
pub struct Receiver(Common);

impl Receiver {
    /// Runs the base OTs, as their sender, and generates the trees. `k` is from 1 to 8. For `purpose` see
    /// [`super`]. `security` must match the sender's.
    pub fn setup(cx: &mut Context, purpose: &'static str, k: usize, security: Security) -> Result<Receiver> {
        check(k)?;
        let pads = base::sender(cx, purpose, WIDTH)?;
        let (leaves, encrypted) = plant(k, pads, &roots(k, cx.rng));
        cx.ch.tx.send(SUMS, &encrypted)?;
        let part = part(&cx.session, purpose);
        let (seeds, transcript) = match security {
            Security::SemiHonest => (leaves, None),
            Security::Malicious => {
                let (seeds, message, transcript) = prove_trees(&part, &leaves);
                cx.ch.tx.send(TREES, &message)?;
                (seeds, Some(transcript))
            }
        };
        let trees = seeds.iter().map(|seeds| Tree::new(seeds)).collect();
        Ok(Receiver(Common::new(&part, k, trees, transcript, cx.threads)))
    }

    /// Returns the bytes to send for `n` OTs in frames of [`FRAME`], excluding frame headers.
    pub fn correction_bytes(&self, n: usize) -> usize {
        self.0.correction_bytes(n)
    }

    /// Returns the threads that compute.
    pub(crate) fn threads(&self) -> &Threads {
        &self.0.threads
    }

    /// Makes `n` random OTs with random choices, at most a [`FRAME`] of them. Returns the choices and the chosen pads.
    pub fn random(&mut self, tx: &mut Tx, n: usize, rng: &mut Prng) -> Result<(Secrets<bool>, Secrets<Pad>)> {
        let mut bytes = Secrets::zeros(n);
        rng.fill(&mut bytes);
        let choices: Secrets<bool> = bytes.iter().map(|byte| byte & 1 == 1).collect::<Vec<_>>().into();
        let pads = self.pads(tx, &choices)?;
        Ok((choices, pads))
    }

    /// Makes random OTs with these choices, at most a [`FRAME`] of them. Sends the corrections and returns the chosen
    /// pads.
    pub fn pads(&mut self, tx: &mut Tx, choices: &[bool]) -> Result<Secrets<Pad>> {
        let mut pads = self.correlated(tx, choices)?;
        let tweak = self.0.next_tweak(choices.len());
        self.0.hash.tcr_hash(tweak, &mut pads);
        Ok(pads)
    }

    /// Makes correlated OTs with these choices, at most a [`FRAME`] of them. Sends the corrections c_i = u_i + choices
    /// and returns the rows v_j = q_j + choice_j Delta.
    pub fn correlated(&mut self, tx: &mut Tx, choices: &[bool]) -> Result<Secrets<Pad>> {
        let bytes = self.0.column_bytes(choices.len())?;
        let mut packed = Secrets::zeros(bytes);
        choices.iter().enumerate().for_each(|(j, &c)| packed[j / 8] |= u8::from(c) << (j % 8));
        let (columns, mut corrections) = self.0.columns(bytes);
        // The choices of the extra group are u_0, of which the sender does not know one summand.
        let chosen = column_bytes(choices.len(), Security::SemiHonest);
        packed[chosen..].copy_from_slice(&corrections[chosen..bytes]);
        corrections.chunks_mut(bytes.max(1)).for_each(|u| xor(u, &packed));
        tx.send_bytes(CORRECTIONS, &corrections)?;
        if let Some(transcript) = &mut self.0.transcript {
            tx.send(PROOF, &transcript.prove(&corrections, &packed, &columns))?;
        }
        Ok(rows(&columns, choices.len()))
    }
}

/// One root per tree.
fn roots(k: usize, rng: &mut Prng) -> Secrets<Pad> {
    let mut roots = Secrets::<Pad>::zeros(depths(k).count());
    rng.fill(roots.as_flattened_mut());
    roots
}

/// The leaves of the receiver's trees, and the sums of the left and the right nodes per level, encrypted by adding them
/// to the pads.
fn plant(k: usize, mut pads: Secrets<[Pad; 2]>, roots: &[Pad]) -> (Vec<Secrets<Pad>>, Secrets<[Pad; 2]>) {
    let mut levels = pads.iter_mut();
    let trees = depths(k).zip(roots).enumerate().map(|(i, (depth, root))| {
        let mut nodes = Secrets::from(vec![*root]);
        for sums in levels.by_ref().take(depth) {
            nodes = children(i, &nodes);
            for pair in nodes.chunks_exact(2) {
                xor(sums.as_flattened_mut(), pair.as_flattened());
            }
        }
        nodes
    });
    (trees.collect(), pads)
}

/// The sender of the extension, which learns both pads.
pub struct Sender {
    common: Common,
    delta: Secret<[u8; 16]>,
}

/// Both pads of a frame of OTs, computed on request. In the malicious form this value exists only if the frame has
/// passed its check.
pub struct PadPairs<'a> {
    rows: Rows,
    tweak: u128,
    sender: &'a Sender,
}

impl Sender {
    /// Picks Delta, runs the base OTs, as their receiver, and obtains the trees except for one leaf each. `k` is
    /// from 1 to 8. For `purpose` see [`super`]. `security` must match the receiver's.
    pub fn setup(cx: &mut Context, purpose: &'static str, k: usize, security: Security) -> Result<Sender> {
        check(k)?;
        let delta = Secret::new(cx.rng.bytes::<16>());
        let path = path(k, &delta);
        let asked: Secrets<bool> = path.iter().map(|&side| side == 0).collect::<Vec<_>>().into();
        let pads = base::receiver(cx, purpose, &asked)?;
        let encrypted = cx.ch.rx.recv(SUMS, WIDTH)?;
        let leaves = punctured(k, &path, pads, &encrypted);
        let part = part(&cx.session, purpose);
        let (seeds, transcript) = match security {
            Security::SemiHonest => (leaves.trusted(), None),
            Security::Malicious => {
                let message = cx.ch.rx.recv(TREES, leaves.len() + 1)?;
                let (seeds, transcript) = leaves.checked(&part, &message)?;
                (seeds, Some(transcript))
            }
        };
        let trees = seeds.iter().map(|seeds| Tree::punctured(seeds)).collect();
        Ok(Sender { common: Common::new(&part, k, trees, transcript, cx.threads), delta })
    }

    /// Returns the bytes to receive for `n` OTs in frames of [`FRAME`], excluding frame headers.
    pub fn correction_bytes(&self, n: usize) -> usize {
        self.common.correction_bytes(n)
    }

    /// Returns the threads that compute.
    pub(crate) fn threads(&self) -> &Threads {
        &self.common.threads
    }

    /// Makes `n` random OTs, at most a [`FRAME`] of them. Receives the corrections.
    pub fn pads(&mut self, rx: &mut Rx, n: usize) -> Result<PadPairs<'_>> {
        let rows = self.rows(rx, n)?;
        let tweak = self.common.next_tweak(n);
        Ok(PadPairs { rows, tweak, sender: self })
    }

    /// Makes `n` correlated OTs, at most a [`FRAME`] of them. Receives the corrections and returns the rows q_j.
    pub fn correlated(&mut self, rx: &mut Rx, n: usize) -> Result<Secrets<Pad>> {
        Ok(self.rows(rx, n)?.into())
    }

    fn rows(&mut self, rx: &mut Rx, n: usize) -> Result<Rows> {
        let bytes = self.common.column_bytes(n)?;
        let corrections = rx.recv_bytes(CORRECTIONS, self.common.trees.len() * bytes)?;
        let columns = Columns::new(self.columns(&corrections, bytes));
        match &mut self.common.transcript {
            None => Ok(columns.trusted(n)),
            Some(transcript) => {
                let proof = rx.recv(PROOF, PROOF_LEN)?;
                columns.checked(n, transcript, &corrections, &self.delta, &proof)
            }
        }
    }

    /// The columns q_b of the next `bytes * 8` OTs.
    fn columns(&mut self, corrections: &[u8], bytes: usize) -> Secrets<u8> {
        // q_i = w_i + alpha_i c_i
        let (mut columns, _) = self.common.columns(bytes);
        for (at, column) in columns.chunks_exact_mut(bytes.max(1)).enumerate() {
            let mask = (self.delta[at / 8] >> (at % 8) & 1).wrapping_neg();
            let c = &corrections[at / self.common.k * bytes..][..bytes];
            column.iter_mut().zip(c).for_each(|(q, c)| *q ^= c & mask);
        }
        columns
    }

    /// Returns Delta, the difference between the rows of correlated OTs. Delta reveals all pads of all frames.
    pub fn delta(&self) -> &Pad {
        &self.delta
    }
}

impl PadPairs<'_> {
    /// Returns the receiver's pads for this choice.
    pub fn of(&self, choice: bool) -> Secrets<Pad> {
        let mut pads = Secrets::clone(&self.rows);
        if choice {
            // Computed as numbers: byte by byte it takes longer than AES if the compiler cannot see that the lists do
            // not overlap.
            let delta = u128::from_le_bytes(*self.sender.delta);
            pads.iter_mut().for_each(|q| *q = (u128::from_le_bytes(*q) ^ delta).to_le_bytes());
        }
        self.sender.common.hash.tcr_hash(self.tweak, &mut pads);
        pads
    }
}

/// The path down all trees, level by level: 0 for left, 1 for right. Bit l of alpha_i is bit i k + l of Delta.
/// The descent starts with the highest bit of alpha_i.
fn path(k: usize, delta: &[u8; 16]) -> Secrets<u8> {
    let mut path = Secrets::zeros(WIDTH);
    for (i, sides) in path.chunks_mut(k).enumerate() {
        for (l, side) in sides.iter_mut().rev().enumerate() {
            let at = i * k + l;
            *side = delta[at / 8] >> (at % 8) & 1;
        }
    }
    path
}

/// The sender's trees: all leaves of each tree except the one at the end of `path`, computed from the sum of the nodes
/// on the other side of each level. The position of that leaf (alpha) is secret: no branch and no address depends on
/// it.
fn punctured(k: usize, path: &[u8], pads: Secrets<Pad>, encrypted: &[[Pad; 2]]) -> Leaves {
    let mut sums = pads;
    for ((sum, &side), pair) in sums.iter_mut().zip(path).zip(encrypted) {
        xor(sum, &Pad::conditional_select(&pair[1], &pair[0], side.into()));
    }
    let trees = path.chunks(k).zip(sums.chunks(k)).enumerate();
    Leaves::new(trees.map(|(i, (path, sums))| punctured_tree(i, path, sums)).collect())
}

fn punctured_tree(i: usize, path: &[u8], sums: &[Pad]) -> Punctured {
    let mut nodes = Secrets::zeros(1);
    let mut alpha = 0u32;
    for (&side, sum) in path.iter().zip(sums) {
        let mut below = children(i, &nodes);
        // Of the two children of the unknown node, which are garbage now, one is computed from the sum of its side.
        let mut missing = Zeroizing::new(*sum);
        for (j, pair) in below.chunks_exact(2).enumerate() {
            let known = !(j as u32).ct_eq(&alpha);
            let other = Zeroizing::new(Pad::conditional_select(&pair[1], &pair[0], side.into()));
            xor(&mut *missing, &Pad::conditional_select(&[0; 16], &other, known));
        }
        alpha = alpha << 1 | u32::from(side);
        for (x, node) in below.iter_mut().enumerate() {
            node.conditional_assign(&[0; 16], (x as u32).ct_eq(&alpha));
            node.conditional_assign(&missing, (x as u32).ct_eq(&(alpha ^ 1)));
        }
        nodes = below;
    }
    Punctured { leaves: nodes, alpha: Secret::new(alpha) }
}

#[cfg(test)]
#[path = "extension_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "check_tests.rs"]
mod check_tests;
