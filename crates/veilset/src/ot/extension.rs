//! OT extension: SoftSpoken OT (Roy22: "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in
//! the Minicrypt Model", CRYPTO 2022), semi-honest.
//!
//! Security: semi-honest, AES a pseudorandom permutation, its fixed-key hash tweakable correlation robust
//! (GKWY20). The base OTs are secure against malicious parties; the consistency check and the check of the
//! punctured trees that would make the extension so have their place after `Corrections` and `SUMS`.
//! Leakage: the number of OTs. Cost: ceil(128 / k) bits an OT from receiver to sender, and 2^k / k times as many bits of AES on both
//! sides as IKNP.
//!
//! The sender's secret Delta has 128 bits, cut into trees of k bits: alpha_i in GF(2)^k. For each tree the
//! receiver knows all 2^k leaf seeds s_x, the sender all but s_alpha_i. With r_x the stream of seed x,
//! u_i = sum of r_x and v_i = sum of x r_x are the receiver's, and
//! w_i = sum of (alpha_i + x) r_x = v_i + alpha_i u_i is the sender's. With the correction
//! c_i = u_i + choices it becomes q_i = v_i + alpha_i * choices: row j of all trees together is
//! q_j = v_j + choice_j * Delta. The pads are H(j, q_j) and H(j, q_j + Delta), of which the receiver knows
//! the one that is H(j, v_j).

use super::{Pad, base};
use crate::channel::{Channel, Message, Rx, Tx};
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId, part};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use rayon::prelude::*;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use veilset_kernels::aes::Aes128;
use veilset_kernels::transpose::transpose_128;
use zeroize::Zeroizing;

/// Bits of Delta, and number of base OTs.
pub(crate) const WIDTH: usize = 128;
/// OTs per frame: 8192; the receiver sends 22 KiB for them at k = 6. Both parties hold 256 KiB of rows.
pub const FRAME: usize = 1 << 13;
/// The largest k: the work grows as 2^k / k, the traffic shrinks as 1 / k only.
const MAX_K: usize = 8;
/// The default k: 22 bits an OT from the receiver. One thread of a Zen 4 processor takes, on either side, 10,
/// 13, 17, 26, 37 and 60 ns an OT for k = 2, 4, 5, 6, 7 and 8: a larger k pays on links slower than about
/// 270 Mbit/s, a smaller one on those faster than about 440.
pub const DEFAULT_K: usize = 6;

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

/// Bytes of the corrections of `n` OTs, frame headers apart.
pub(crate) fn correction_bytes(n: usize, k: usize) -> usize {
    n.next_multiple_of(WIDTH) / 8 * WIDTH.div_ceil(k)
}

/// The depths of the trees: k, and what is left of 128 for the last one.
fn depths(k: usize) -> impl Iterator<Item = usize> {
    (0..WIDTH).step_by(k).map(move |at| k.min(WIDTH - at))
}

fn check(k: usize) -> Result<()> {
    match (1..=MAX_K).contains(&k) {
        true => Ok(()),
        false => Err(Error::Bug(format!("OT extension with k = {k}, which is not from 1 to {MAX_K}"))),
    }
}

fn xor(a: &mut [u8], b: &[u8]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

/// The children of all nodes of a level, each by a PRG from 16 to 32 bytes.
fn children(level: &[Pad]) -> Secrets<Pad> {
    let mut below = Secrets::zeros(2 * level.len());
    for (node, pair) in level.iter().zip(below.chunks_exact_mut(2)) {
        Aes128::new(node).ctr(0, pair.as_flattened_mut());
    }
    below
}

/// The streams of one tree's leaves, in an order in which position y has the coefficient y. The sender does
/// not know the one at position 0, which has none.
struct Tree(Vec<Option<Aes128>>);

impl Tree {
    fn new(seeds: &[Pad]) -> Tree {
        Tree(seeds.iter().map(|seed| Some(Aes128::new(seed))).collect())
    }
}

/// The sums over blocks `first..` of the streams r_y of some leaves: adds the sum of all r_y with bit l of y
/// set to column l of `columns`, writes that of all r_y to `all`. `spare` is as large as `columns`.
///
/// Depth first, so that what is worked on stays in the first-level cache.
fn fold(leaves: &[Option<Aes128>], first: u128, columns: &mut [u8], all: &mut [u8], spare: &mut [u8]) {
    match leaves {
        [Some(leaf)] => leaf.ctr(first, all),
        [None] => all.fill(0),
        _ => {
            // The upper half of the leaves is that with the highest bit set.
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

/// The state that both sides share: trees, how far their streams and the tweaks are used, the hash.
struct Common {
    k: usize,
    trees: Vec<Tree>,
    block: u128,
    index: u128,
    hash: Aes128,
}

impl Common {
    fn new(session: &SessionId, purpose: &'static str, k: usize, trees: Vec<Tree>) -> Self {
        let key = Domain::new(&part(session, purpose), "OT extension hash key").hash(&[]);
        Common { k, trees, block: 0, index: 0, hash: Aes128::new(&key) }
    }

    /// The columns v or w of the next `bytes * 8` OTs, and of each tree the sum of its streams.
    fn columns(&mut self, bytes: usize) -> (Secrets<u8>, Secrets<u8>) {
        let mut columns = Secrets::zeros(WIDTH * bytes);
        let mut sums = Secrets::zeros(self.trees.len() * bytes);
        // No chunk may be of 0 bytes.
        if bytes > 0 {
            let tree_columns = columns.par_chunks_mut(self.k * bytes);
            let rows = tree_columns.zip(sums.par_chunks_exact_mut(bytes)).zip(&self.trees);
            rows.for_each(|((columns, sum), tree)| {
                let mut spare = Secrets::zeros(columns.len());
                fold(&tree.0, self.block, columns, sum, &mut spare);
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

/// The first `n` rows of 128 columns.
fn rows(columns: &[u8], n: usize) -> Secrets<Pad> {
    let mut rows = Secrets::zeros(n.next_multiple_of(WIDTH));
    transpose_128(columns, columns.len() / WIDTH, &mut rows);
    rows.truncate(n);
    rows
}

/// The receiver of the extension: it chooses.
pub struct Receiver(Common);

impl Receiver {
    /// Runs the base OTs, as their sender, and plants the trees. `k` is from 1 to 8; `purpose`: see
    /// [`super`].
    pub fn setup(
        ch: &mut Channel,
        session: &SessionId,
        purpose: &'static str,
        k: usize,
        rng: &mut Prng,
    ) -> Result<Receiver> {
        check(k)?;
        let pads = base::sender(ch, session, purpose, WIDTH, rng)?;
        let (trees, encrypted) = plant(k, pads, rng);
        ch.tx.send(SUMS, &encrypted)?;
        Ok(Receiver(Common::new(session, purpose, k, trees)))
    }

    /// Bytes of the corrections of `n` OTs, frame headers apart.
    pub fn correction_bytes(&self, n: usize) -> usize {
        correction_bytes(n, self.0.k)
    }

    /// Random OTs with these choices, at most a [`FRAME`] of them: sends the corrections and returns the
    /// chosen pads.
    pub fn pads(&mut self, tx: &mut Tx, choices: &[bool]) -> Result<Secrets<Pad>> {
        let mut pads = self.correlated(tx, choices)?;
        let tweak = self.0.next_tweak(choices.len());
        self.0.hash.tcr_hash(tweak, &mut pads);
        Ok(pads)
    }

    /// Correlated OTs with these choices, at most a [`FRAME`] of them: sends the corrections
    /// c_i = u_i + choices and returns the rows v_j = q_j + choice_j Delta.
    pub fn correlated(&mut self, tx: &mut Tx, choices: &[bool]) -> Result<Secrets<Pad>> {
        let bytes = choices.len().next_multiple_of(WIDTH) / 8;
        let mut packed = Secrets::zeros(bytes);
        choices.iter().enumerate().for_each(|(j, &c)| packed[j / 8] |= u8::from(c) << (j % 8));
        let (columns, mut corrections) = self.0.columns(bytes);
        corrections.chunks_mut(bytes.max(1)).for_each(|u| xor(u, &packed));
        tx.send_bytes(CORRECTIONS, &corrections)?;
        Ok(rows(&columns, choices.len()))
    }
}

/// The receiver's trees, and the sums of the left and right nodes of each level, encrypted by adding them
/// to the pads.
fn plant(k: usize, mut pads: Secrets<[Pad; 2]>, rng: &mut Prng) -> (Vec<Tree>, Secrets<[Pad; 2]>) {
    let mut levels = pads.iter_mut();
    let trees = depths(k).map(|depth| {
        let mut nodes = Secrets::from(vec![rng.bytes()]);
        for sums in levels.by_ref().take(depth) {
            nodes = children(&nodes);
            for pair in nodes.chunks_exact(2) {
                xor(sums.as_flattened_mut(), pair.as_flattened());
            }
        }
        Tree::new(&nodes)
    });
    (trees.collect(), pads)
}

/// The sender of the extension: it gets both pads.
pub struct Sender {
    common: Common,
    delta: Secret<[u8; 16]>,
}

/// Both pads of a frame of OTs, to be made when asked for.
pub struct PadPairs<'a> {
    rows: Secrets<Pad>,
    tweak: u128,
    sender: &'a Sender,
}

impl Sender {
    /// Picks Delta, runs the base OTs, as their receiver, and gets the trees but for one leaf each. `k` is
    /// from 1 to 8; `purpose`: see [`super`].
    pub fn setup(
        ch: &mut Channel,
        session: &SessionId,
        purpose: &'static str,
        k: usize,
        rng: &mut Prng,
    ) -> Result<Sender> {
        check(k)?;
        let delta = Secret::new(rng.bytes::<16>());
        let path = path(k, &delta);
        let asked: Secrets<bool> = path.iter().map(|&side| side == 0).collect::<Vec<_>>().into();
        let pads = base::receiver(ch, session, purpose, &asked, rng)?;
        let encrypted = ch.rx.recv(SUMS, WIDTH)?;
        let trees = punctured(k, &path, pads, &encrypted);
        Ok(Sender { common: Common::new(session, purpose, k, trees), delta })
    }

    /// Bytes of the corrections of `n` OTs, frame headers apart.
    pub fn correction_bytes(&self, n: usize) -> usize {
        correction_bytes(n, self.common.k)
    }

    /// `n` random OTs, at most a [`FRAME`] of them: receives the corrections.
    pub fn pads(&mut self, rx: &mut Rx, n: usize) -> Result<PadPairs<'_>> {
        let rows = self.correlated(rx, n)?;
        let tweak = self.common.next_tweak(n);
        Ok(PadPairs { rows, tweak, sender: self })
    }

    /// `n` correlated OTs, at most a [`FRAME`] of them: receives the corrections and returns the rows q_j.
    pub fn correlated(&mut self, rx: &mut Rx, n: usize) -> Result<Secrets<Pad>> {
        let bytes = n.next_multiple_of(WIDTH) / 8;
        let corrections = rx.recv_bytes(CORRECTIONS, self.common.trees.len() * bytes)?;
        // q_i = w_i + alpha_i c_i
        let (mut columns, _) = self.common.columns(bytes);
        for (at, column) in columns.chunks_exact_mut(bytes.max(1)).enumerate() {
            let mask = (self.delta[at / 8] >> (at % 8) & 1).wrapping_neg();
            let c = &corrections[at / self.common.k * bytes..][..bytes];
            column.iter_mut().zip(c).for_each(|(q, c)| *q ^= c & mask);
        }
        Ok(rows(&columns, n))
    }

    /// Delta, by which the rows of correlated OTs differ. Whoever learns it has all pads too, those of the other frames
    /// included.
    pub fn delta(&self) -> &Pad {
        &self.delta
    }
}

impl PadPairs<'_> {
    /// The pads that the receiver gets for this choice.
    pub fn of(&self, choice: bool) -> Secrets<Pad> {
        let mut pads = self.rows.clone();
        if choice {
            pads.iter_mut().for_each(|q| xor(q, &*self.sender.delta));
        }
        self.sender.common.hash.tcr_hash(self.tweak, &mut pads);
        pads
    }
}

/// The way down all trees, level by level: 0 for left, 1 for right. Bit l of alpha_i is bit i k + l of
/// Delta, and a tree is descended from the highest bit of its alpha_i.
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

/// The sender's trees: of each all leaves but the one that `path` leads to, by the sum of the nodes of the
/// other side of each level. Which one it is (alpha) is secret: no branch and no address depends on it.
fn punctured(k: usize, path: &[u8], pads: Secrets<Pad>, encrypted: &[[Pad; 2]]) -> Vec<Tree> {
    let mut sums = pads;
    for ((sum, &side), pair) in sums.iter_mut().zip(path).zip(encrypted) {
        xor(sum, &Pad::conditional_select(&pair[1], &pair[0], side.into()));
    }
    path.chunks(k).zip(sums.chunks(k)).map(|(path, sums)| punctured_tree(path, sums)).collect()
}

fn punctured_tree(path: &[u8], sums: &[Pad]) -> Tree {
    let mut nodes = Secrets::zeros(1);
    let mut alpha = 0u32;
    for (&side, sum) in path.iter().zip(sums) {
        let mut below = children(&nodes);
        // Of the two children of the unknown node (now garbage) one follows from the sum of its side.
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
    // Position y holds leaf alpha + y.
    let mut seeds = Secrets::<Pad>::zeros(nodes.len());
    for (y, seed) in seeds.iter_mut().enumerate() {
        for (x, node) in nodes.iter().enumerate() {
            seed.conditional_assign(node, (x as u32).ct_eq(&(alpha ^ y as u32)));
        }
    }
    let mut tree = Tree::new(&seeds);
    tree.0[0] = None;
    tree
}

#[cfg(test)]
#[path = "extension_tests.rs"]
mod tests;
