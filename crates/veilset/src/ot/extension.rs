//! OT extension: SoftSpoken OT (Roy22: "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in
//! the Minicrypt Model", CRYPTO 2022), semi-honest.
//!
//! Security: semi-honest, AES a pseudorandom permutation, its fixed-key hash tweakable correlation robust
//! (GKWY20). The base OTs are secure against malicious parties; the consistency check and the check of the
//! punctured trees that would make the extension so have their place after `Corrections` and `SUMS`.
//! Cost: ceil(128 / k) bits an OT from receiver to sender, and 2^k / k times as many bits of AES on both
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
use crate::hash::{Domain, SessionId};
use crate::rng::Prng;
use crate::secret::Secret;
use rayon::prelude::*;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use veilset_kernels::aes::Aes128;
use veilset_kernels::transpose::transpose_128;
use zeroize::{Zeroize, Zeroizing};

/// Bits of Delta, and number of base OTs.
const WIDTH: usize = 128;
/// OTs per frame: 8192; the receiver sends 22 KiB for them at k = 6. Both parties hold 256 KiB of rows.
pub const FRAME: usize = 1 << 13;
/// The default k: 22 bits an OT from the receiver.
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
pub fn correction_bytes(n: usize, k: usize) -> usize {
    n.next_multiple_of(WIDTH) / 8 * WIDTH.div_ceil(k)
}

/// The depths of the trees: k, and what is left of 128 for the last one.
fn depths(k: usize) -> impl Iterator<Item = usize> {
    (0..WIDTH).step_by(k).map(move |at| k.min(WIDTH - at))
}

fn xor(a: &mut [u8], b: &[u8]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

/// Both children of a node: a PRG from 16 to 32 bytes.
fn children(node: &Pad) -> [Pad; 2] {
    let mut out = [[0u8; 16]; 2];
    Aes128::new(node).ctr(0, out.as_flattened_mut());
    out
}

/// What both sides keep: the streams of one tree's leaves, in an order in which position y has the
/// coefficient y; the sender does not know the one at position 0, which has none.
struct Tree {
    leaves: Vec<Aes128>,
    depth: usize,
}

impl Tree {
    fn new(mut seeds: Vec<Pad>, depth: usize) -> Tree {
        let leaves = seeds.iter().map(Aes128::new).collect();
        seeds.zeroize();
        Tree { leaves, depth }
    }

    /// Writes bit l of sum of y r_y to column l of `columns` and returns the sum of all r_y, for blocks
    /// `first..` of the streams. `skip_zero` leaves r_0 out.
    fn fold(&self, first: u128, bytes: usize, skip_zero: bool, columns: &mut [u8]) -> Vec<u8> {
        let mut sums: Vec<Vec<u8>> = Vec::with_capacity(self.leaves.len());
        for (y, leaf) in self.leaves.iter().enumerate() {
            let mut stream = vec![0u8; bytes];
            if y > 0 || !skip_zero {
                leaf.ctr(first, &mut stream);
            }
            sums.push(stream);
        }
        // Halve the list once per bit of y: the odd half is what has this bit.
        for column in columns.chunks_exact_mut(bytes) {
            column.fill(0);
            for j in 0..sums.len() / 2 {
                xor(column, &sums[2 * j + 1]);
                let odd = std::mem::take(&mut sums[2 * j + 1]);
                xor(&mut sums[2 * j], &odd);
                sums.swap(j, 2 * j);
            }
            sums.truncate(sums.len() / 2);
        }
        sums.swap_remove(0)
    }
}

/// The state that both sides share: trees, how far their streams and the tweaks are used, the hash.
struct Common {
    trees: Vec<Tree>,
    block: u128,
    index: u128,
    hash: Aes128,
}

impl Common {
    fn new(session: &SessionId, trees: Vec<Tree>) -> Self {
        let key = Domain::new(session, "OT extension hash key").hash(&[]);
        Common { trees, block: 0, index: 0, hash: Aes128::new(&key) }
    }

    /// The rows of the next `n` OTs (rounded up to whole blocks), and each tree's sum of streams.
    fn rows(
        &mut self,
        n: usize,
        skip_zero: bool,
        adjust: impl Fn(usize, usize, &mut [u8]) + Sync,
    ) -> (Vec<Pad>, Vec<Vec<u8>>) {
        let bytes = n.next_multiple_of(WIDTH) / 8;
        let mut columns = vec![0u8; WIDTH * bytes];
        let mut rest = columns.as_mut_slice();
        let mut parts = Vec::new();
        for tree in &self.trees {
            let (part, more) = std::mem::take(&mut rest).split_at_mut(tree.depth * bytes);
            parts.push((tree, part));
            rest = more;
        }
        let first = self.block;
        let sums = parts
            .into_par_iter()
            .enumerate()
            .map(|(i, (tree, part))| {
                let sum = tree.fold(first, bytes, skip_zero, part);
                for (l, column) in part.chunks_exact_mut(bytes).enumerate() {
                    adjust(i, l, column);
                }
                sum
            })
            .collect();
        self.block += (bytes / 16) as u128;
        let mut rows = vec![[0u8; 16]; bytes * 8];
        transpose_128(&columns, bytes, &mut rows);
        rows.truncate(n);
        columns.zeroize();
        (rows, sums)
    }

    fn next_tweak(&mut self, n: usize) -> u128 {
        let first = self.index;
        self.index += n as u128;
        first
    }
}

/// The receiver of the extension: it chooses.
pub struct Receiver(Common);

impl Receiver {
    /// Runs the base OTs, as their sender, and plants the trees. `k` is from 1 to 8.
    pub fn setup(ch: &mut Channel, session: &SessionId, k: usize, rng: &mut Prng) -> Result<Receiver> {
        let pads = base::sender(ch, session, WIDTH, rng)?;
        let mut pads = pads.into_iter();
        let (mut trees, mut encrypted) = (Vec::new(), Vec::new());
        for depth in depths(k) {
            let mut level: Vec<Pad> = vec![rng.bytes()];
            for _ in 0..depth {
                let below: Vec<Pad> = level.iter().flat_map(children).collect();
                let Some(mut sums) = pads.next() else {
                    return Err(Error::Bug("fewer base OTs than levels".into()));
                };
                for pair in below.chunks_exact(2) {
                    xor(&mut sums[0], &pair[0]);
                    xor(&mut sums[1], &pair[1]);
                }
                encrypted.push(sums);
                level.zeroize();
                level = below;
            }
            trees.push(Tree::new(level, depth));
        }
        ch.tx.send(SUMS, &encrypted)?;
        Ok(Receiver(Common::new(session, trees)))
    }

    /// Random OTs with these choices, at most a [`FRAME`] of them: sends the corrections and returns the
    /// chosen pads.
    pub fn pads(&mut self, tx: &mut Tx, choices: &[bool]) -> Result<Vec<Pad>> {
        let (mut rows, mut corrections) = self.0.rows(choices.len(), false, |_, _, _| ());
        let mut packed = vec![0u8; choices.len().next_multiple_of(WIDTH) / 8];
        choices.iter().enumerate().for_each(|(j, &c)| packed[j / 8] |= u8::from(c) << (j % 8));
        corrections.iter_mut().for_each(|u| xor(u, &packed));
        packed.zeroize();
        tx.send_bytes(CORRECTIONS, &corrections.concat())?;
        let tweak = self.0.next_tweak(choices.len());
        self.0.hash.tcr_hash(tweak, &mut rows);
        Ok(rows)
    }
}

/// The sender of the extension: it gets both pads.
pub struct Sender {
    common: Common,
    delta: Secret<[u8; 16]>,
}

/// Both pads of a frame of OTs, to be made when asked for.
pub struct PadPairs<'a> {
    rows: Vec<Pad>,
    tweak: u128,
    sender: &'a Sender,
}

impl Sender {
    /// Picks Delta, runs the base OTs, as their receiver, and gets the trees but for one leaf each.
    pub fn setup(ch: &mut Channel, session: &SessionId, k: usize, rng: &mut Prng) -> Result<Sender> {
        let delta = Secret::new(rng.bytes::<16>());
        // Bit l of alpha_i is bit (start of tree i) + l of Delta; level by level a tree is descended from
        // the highest bit of alpha_i. The sender asks for the sums of the side it does *not* descend to.
        let bit = |at: usize| delta[at / 8] >> (at % 8) & 1;
        let mut path = Zeroizing::new(Vec::with_capacity(WIDTH));
        let mut start = 0;
        for depth in depths(k) {
            path.extend((0..depth).rev().map(|l| bit(start + l)));
            start += depth;
        }
        let asked: Zeroizing<Vec<bool>> = Zeroizing::new(path.iter().map(|&b| b == 0).collect());
        let pads = Zeroizing::new(base::receiver(ch, session, &asked, rng)?);
        let encrypted = ch.rx.recv(SUMS, WIDTH)?;
        let mut levels = path.iter().zip(pads.iter()).zip(&encrypted).map(|((&b, pad), pair)| {
            let mut sum = Pad::conditional_select(&pair[1], &pair[0], b.into());
            xor(&mut sum, pad);
            (b, sum)
        });
        let trees = depths(k).map(|depth| punctured(depth, &mut levels)).collect();
        Ok(Sender { common: Common::new(session, trees), delta })
    }

    /// `n` random OTs, at most a [`FRAME`] of them: receives the corrections.
    pub fn pads(&mut self, rx: &mut Rx, n: usize) -> Result<PadPairs<'_>> {
        let bytes = n.next_multiple_of(WIDTH) / 8;
        let corrections = rx.recv_bytes(CORRECTIONS, self.common.trees.len() * bytes)?;
        let depth = self.common.trees.first().map_or(1, |t| t.depth);
        let delta = &self.delta;
        // q_i = w_i + alpha_i c_i
        let (rows, _) = self.common.rows(n, true, |i, l, column| {
            let at = i * depth + l;
            let mask = (delta[at / 8] >> (at % 8) & 1).wrapping_neg();
            let c = &corrections[i * bytes..(i + 1) * bytes];
            column.iter_mut().zip(c).for_each(|(q, c)| *q ^= c & mask);
        });
        let tweak = self.common.next_tweak(n);
        Ok(PadPairs { rows, tweak, sender: self })
    }
}

impl PadPairs<'_> {
    /// The pads that the receiver gets for this choice.
    pub fn of(&self, choice: bool) -> Vec<Pad> {
        let mut pads = self.rows.clone();
        if choice {
            pads.iter_mut().for_each(|q| xor(q, &*self.sender.delta));
        }
        self.sender.common.hash.tcr_hash(self.tweak, &mut pads);
        pads
    }
}

impl Drop for PadPairs<'_> {
    fn drop(&mut self) {
        self.rows.zeroize();
    }
}

/// A tree of which all leaves but one are known, from the sum of the other side of each level. Which one
/// it is (alpha) is secret: no branch and no address depends on it.
fn punctured(depth: usize, levels: &mut impl Iterator<Item = (u8, Pad)>) -> Tree {
    let mut nodes: Vec<Pad> = vec![[0; 16]];
    let mut alpha = 0u32;
    for (side, sum) in levels.take(depth) {
        let mut below: Vec<Pad> = nodes.iter().flat_map(children).collect();
        // Of the two children of the unknown node (now garbage) one follows from the sum of its side.
        let mut missing = sum;
        for (j, pair) in below.chunks_exact(2).enumerate() {
            let known = !(j as u32).ct_eq(&alpha);
            let other = Pad::conditional_select(&pair[1], &pair[0], side.into());
            xor(&mut missing, &Pad::conditional_select(&[0; 16], &other, known));
        }
        alpha = alpha << 1 | u32::from(side);
        for (x, node) in below.iter_mut().enumerate() {
            node.conditional_assign(&[0; 16], (x as u32).ct_eq(&alpha));
            node.conditional_assign(&missing, (x as u32).ct_eq(&(alpha ^ 1)));
        }
        nodes.zeroize();
        nodes = below;
    }
    // Position y holds leaf alpha + y.
    let mut seeds = vec![[0u8; 16]; nodes.len()];
    for (y, seed) in seeds.iter_mut().enumerate() {
        for (x, node) in nodes.iter().enumerate() {
            seed.conditional_assign(node, (x as u32).ct_eq(&(alpha ^ y as u32)));
        }
    }
    nodes.zeroize();
    Tree::new(seeds, depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Per frame the sender's pairs, per frame the receiver's pads, and the bytes of the corrections.
    type Run = (Vec<Vec<[Pad; 2]>>, Vec<Vec<Pad>>, u64);

    fn run(k: usize, frames: &[Vec<bool>]) -> Run {
        let (mut a, mut b) = Channel::pair();
        let session = [9; 32];
        std::thread::scope(|s| {
            let sizes: Vec<usize> = frames.iter().map(Vec::len).collect();
            let sender = s.spawn(move || {
                let mut sender = Sender::setup(&mut a, &session, k, &mut Prng::from_seed(&[1; 32])).unwrap();
                sizes
                    .iter()
                    .map(|&n| {
                        let pads = sender.pads(&mut a.rx, n).unwrap();
                        pads.of(false).into_iter().zip(pads.of(true)).map(|(p, q)| [p, q]).collect()
                    })
                    .collect()
            });
            let mut receiver = Receiver::setup(&mut b, &session, k, &mut Prng::from_seed(&[2; 32])).unwrap();
            let before = b.bytes_sent();
            let got = frames.iter().map(|c| receiver.pads(&mut b.tx, c).unwrap()).collect();
            (sender.join().unwrap(), got, b.bytes_sent() - before)
        })
    }

    #[test]
    fn the_receiver_gets_the_chosen_pads_for_every_k() {
        let mut rng = Prng::from_seed(&[3; 32]);
        for k in 1..=8 {
            // Sizes around a block of 128 rows, and several frames in a row.
            let frames: Vec<Vec<bool>> = [1, 127, 128, 129, 300]
                .iter()
                .map(|&n| (0..n).map(|_| rng.below(2) == 1).collect())
                .collect();
            let (sent, got, bytes) = run(k, &frames);
            let mut all = std::collections::HashSet::new();
            for ((sent, got), choices) in sent.iter().zip(&got).zip(&frames) {
                assert_eq!(got.len(), choices.len());
                for ((pads, pad), &c) in sent.iter().zip(got).zip(choices) {
                    assert_eq!(pads[usize::from(c)], *pad, "k = {k}");
                    assert!(all.insert(pads[0]) && all.insert(pads[1]));
                }
            }
            let trees = 128usize.div_ceil(k);
            assert_eq!(
                bytes as usize,
                [128, 128, 128, 256, 384].map(|n| 6 + trees * n / 8).iter().sum::<usize>()
            );
        }
    }

    #[test]
    fn frames_share_neither_streams_nor_tweaks() {
        let (mut a, mut b) = Channel::pair();
        let session = [1; 32];
        std::thread::scope(|s| {
            s.spawn(|| {
                let mut r = Receiver::setup(&mut b, &session, 6, &mut Prng::from_seed(&[2; 32])).unwrap();
                // Equal choices twice: a stream used again would send equal corrections.
                let choices = vec![true; 1000];
                r.pads(&mut b.tx, &choices).unwrap();
                r.pads(&mut b.tx, &choices).unwrap();
                assert_eq!((r.0.block, r.0.index), (16, 2000));
            });
            let mut sender = Sender::setup(&mut a, &session, 6, &mut Prng::from_seed(&[1; 32])).unwrap();
            assert_eq!(sender.pads(&mut a.rx, 1000).unwrap().tweak, 0);
            let second = a.rx.recv_bytes(CORRECTIONS, 22 * 128).unwrap();
            assert_eq!((sender.common.block, sender.common.index), (8, 1000));
            // Half of the bits differ from those of a run in which this was the first frame.
            let (mut c, mut d) = Channel::pair();
            let other = s.spawn(move || {
                let mut r = Receiver::setup(&mut d, &session, 6, &mut Prng::from_seed(&[2; 32])).unwrap();
                r.pads(&mut d.tx, &vec![true; 1000]).unwrap();
            });
            let _ = Sender::setup(&mut c, &session, 6, &mut Prng::from_seed(&[1; 32])).unwrap();
            let first = c.rx.recv_bytes(CORRECTIONS, 22 * 128).unwrap();
            other.join().unwrap();
            let differ: u32 = first.iter().zip(&second).map(|(a, b)| (a ^ b).count_ones()).sum();
            // 22,528 bits: five standard deviations are 376.
            assert!(differ.abs_diff(11_264) < 376, "{differ}");
        });
    }

    #[test]
    fn no_ots_cost_nothing_but_the_setup() {
        let (sent, got, bytes) = run(6, &[]);
        assert!(sent.is_empty() && got.is_empty() && bytes == 0);
    }

    #[test]
    fn the_bytes_the_receiver_sends_look_alike_for_all_choices() {
        // Half of the bits of the corrections are set, whatever the choices are.
        for choice in [false, true] {
            let (mut a, mut b) = Channel::pair();
            let session = [1; 32];
            std::thread::scope(|s| {
                s.spawn(|| {
                    let mut r = Receiver::setup(&mut b, &session, 6, &mut Prng::from_seed(&[2; 32])).unwrap();
                    r.pads(&mut b.tx, &vec![choice; FRAME]).unwrap();
                });
                let _ = Sender::setup(&mut a, &session, 6, &mut Prng::from_seed(&[1; 32])).unwrap();
                let corrections = a.rx.recv_bytes(CORRECTIONS, 22 * FRAME / 8).unwrap();
                let ones: u32 = corrections.iter().map(|b| b.count_ones()).sum();
                // 180,224 bits: five standard deviations are 1,061.
                assert!(ones.abs_diff(90_112) < 1_061, "{ones}");
            });
        }
    }
}
