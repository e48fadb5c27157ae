//! Silent VOLE: a code expands a few correlated OTs and punctured trees into long vectors (BCGI18: Boyle, Couteau,
//! Gilboa and Ishai, "Compressing Vector OLE", CCS 2018; dual LPN with the code of RRT23, see `code.rs`).
//!
//! A' has N places, about 2 n, and is 0 except at one random place in each of t blocks, where it is random. For each block
//! the sender knows all leaves of a tree: B'. The receiver knows all leaves except the one at its place, which it gets
//! plus Delta times its A': C' = Delta A' + B'. The linear code maps these to A, B and C with n elements.
//!
//! Security: semi-honest. It rests on the OT extension's assumptions, AES as an ideal cipher (the trees), and the code
//! making noise look random. `code.rs` gives the estimate for the latter and its basis; it is only an estimate.
//!
//! The VOLE, the correlated OTs and the pads for the trees, which are hashed, share one Delta. The receiver learns
//! nothing about it from any of them. A malicious receiver learns only what the checks of `check.rs` allow: b bits with
//! probability 2^-b. Without these checks of the OTs, a receiver could make different choices in their trees and test
//! Delta in parts. For any choices, it lacks one end of each tree (`tree.rs`).
//!
//! The receiver may know masks that it did not choose: a path to an end that is not a leaf gives both sums of all lower
//! levels. So the sums are encrypted not with the pads but with masks derived from them (`ot/masks.rs`), numbered over
//! all vectors of a setup. Otherwise a guess of Delta could be tested against all of these pads at once. No further
//! security is claimed: the receiver may pick A, and errors in the sender's messages are not detected.
//!
//! The receiver's user gets A, and may send a message derived from it, before the sums of the trees have arrived: A
//! depends on none of them. The sums fit into the channel's buffer, so that the sender can always go on to read. A malicious
//! sender can choose them after it has seen the message derived from A.
//!
//! Leakage: n. Cost per vector: t is 546 to 548 for up to five million elements, and 793 at 2^28. The receiver takes
//! 128 t correlated OTs, or 64 t with A in GF(2^64), and t ceil(log2(N/t)) random ones: 22 bits each from receiver to
//! sender at k = 6, and 2.4 KB per frame. The sender sends 32 bytes per level and 16 per tree. That is 0.47 MB for a
//! million elements, or 0.36 MB with A in GF(2^64), including base OTs.
//!
//! Memory: N elements of 16 bytes, although messages take less than 1 MB. If the peer's n is not trusted, generate
//! the elements in parts. Up to 4096 elements are made from OTs alone (`gilboa.rs`), without the assumption on the
//! code: 390 or 195 bytes each.
//!
//! Vectors of one setup share Delta and the OTs. Each has its own code, tree keys, noise and roots.
//!
//! The receiver uses the places as addresses; `tree.rs` describes the consequences.

use super::code::{Code, Symbol, noise, parity};
use super::tree::{Tree, depth, sides};
use super::{Element, Vole, VoleScalar, add, gilboa};
use crate::channel::{HEADER, Message, frames};
use crate::context::Context;
use crate::error::Result;
use crate::hash::{Domain, SessionId, part};
use crate::ot::Security;
use crate::ot::extension::{self, DEFAULT_K, FRAME, correction_bytes, setup_bytes};
use crate::ot::masks::masks;
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::work::Primitive::{CorrelatedOt, VoleElement};
use crate::work::Work;
use rayon::prelude::*;
use std::ops::Range;
use subtle::ConditionallySelectable;
use veilset_kernels::aes::Aes128;

const SUMS: Message<[Element; 2]> = Message::new(0x91, "S->R  sums of the levels of the trees, encrypted");
const ENDS: Message<Element> = Message::new(0x92, "S->R  sums of the ends of the trees and b");

/// The maximum length generated without the code. For longer vectors, a block has at least 14 places.
const DIRECT: usize = 1 << 12;

/// The silent VOLE protocol.
pub struct Silent {
    /// The depth of the OT extension's trees, from 1 to 8; see [`crate::ot::extension`].
    pub k: usize,
}

impl Default for Silent {
    fn default() -> Self {
        Silent { k: DEFAULT_K }
    }
}

/// The receiver of a silent VOLE.
pub struct Receiver(Setup<extension::Receiver>);

/// The sender of a silent VOLE.
pub struct Sender(Setup<extension::Sender>);

/// A party's state between vectors: its OTs, the number of vectors made with the code so far, and the number of OTs that
/// masked a level.
struct Setup<Ot> {
    part: SessionId,
    ot: Ot,
    vectors: u64,
    levels: usize,
}

impl<Ot> Setup<Ot> {
    fn new(session: &SessionId, purpose: &'static str, ot: Ot) -> Setup<Ot> {
        Setup { part: part(session, purpose), ot, vectors: 0, levels: 0 }
    }

    /// The shape of the next vector, of `n` elements.
    fn shape(&mut self, n: usize) -> Shape {
        let shape = Shape::new(&self.part, self.vectors, n);
        self.vectors += 1;
        shape
    }

    /// Reserves `levels` levels and returns the number of the first one, counted over all vectors.
    fn number(&mut self, levels: usize) -> usize {
        let first = self.levels;
        self.levels += levels;
        first
    }
}

/// Public parameters of a vector and its trees.
struct Shape {
    n: usize,
    code: Code,
    keys: Aes128,
    /// N, t and the depth of the trees.
    places: usize,
    trees: usize,
    depth: usize,
}

impl Shape {
    /// The shape of vector `number` of the setup.
    fn new(part: &SessionId, number: u64, n: usize) -> Shape {
        let code = Code::new(n, &Domain::new(part, "VOLE code").numbered(number).hash(&[]));
        let (places, trees) = (n + parity(n), noise(n));
        let keys = Aes128::new(&Domain::new(part, "VOLE tree keys").numbered(number).hash(&[]));
        Shape { n, code, keys, places, trees, depth: depth(places.div_ceil(trees)) }
    }

    fn block(&self, tree: usize) -> Range<usize> {
        tree * self.places / self.trees..(tree + 1) * self.places / self.trees
    }

    fn tree(&self, index: usize) -> Tree<'_> {
        Tree { keys: &self.keys, index, depth: self.depth, leaves: self.block(index).len() }
    }

    /// The receiver's noise: a place in each block, and its value, which may be 0.
    fn noise<S: VoleScalar>(&self, rng: &mut Prng) -> (Secrets<u32>, Secrets<S>) {
        let place = |tree| rng.below(self.block(tree).len() as u64) as u32;
        let places = (0..self.trees).map(place).collect::<Vec<_>>();
        (Secrets::from(places), S::random(self.trees, rng))
    }

    /// Calls `grow(tree)`, which returns the leaves of a tree and another result, for all trees. Returns the leaves of
    /// the first n places, the leaves of the other places, and the other results.
    fn grow<R: Send>(
        &self,
        grow: impl Fn(usize) -> (Secrets<Element>, R) + Sync,
    ) -> ([Secrets<Element>; 2], Vec<R>) {
        let [mut first, mut second] = [self.n, self.places - self.n].map(Secrets::<Element>::zeros);
        let (mut blocks, mut rest) = (Vec::with_capacity(self.trees), [&mut first[..], &mut second[..]]);
        for tree in 0..self.trees {
            let length = self.block(tree).len();
            let in_first = length.min(rest[0].len());
            let [first, second] = rest;
            let (first, second) = (first.split_at_mut(in_first), second.split_at_mut(length - in_first));
            blocks.push([first.0, second.0]);
            rest = [first.1, second.1];
        }
        let write = |(tree, [first, second]): (usize, [&mut [Element]; 2])| {
            let (leaves, result) = grow(tree);
            let (in_first, in_second) = leaves.split_at(first.len());
            first.copy_from_slice(in_first);
            second.copy_from_slice(in_second);
            result
        };
        let results = blocks.into_par_iter().enumerate().map(write).collect();
        ([first, second], results)
    }

    /// Applies the code: adds the contribution of the other places to the `outputs`, the first n places.
    fn compress<T: Symbol>(&self, outputs: &mut [T], parity: &mut [T], times_x: impl Fn(T) -> T) {
        self.code.convolve(parity, times_x);
        self.code.expand(parity, outputs);
    }

    /// A: the noise, mapped by the code.
    fn scalars<S: VoleScalar>(&self, places: &[u32], values: &[S]) -> Secrets<S> {
        let mut all = Secrets::<S>::zeros(self.places);
        for (tree, (&place, value)) in places.iter().zip(values).enumerate() {
            all[self.block(tree).start + place as usize] = *value;
        }
        let (outputs, parity) = all.split_at_mut(self.n);
        self.compress(outputs, parity, S::times_x);
        all.truncate(self.n);
        all
    }

    /// B or C: the leaves, mapped by the code.
    fn elements<S: VoleScalar>(&self, [mut outputs, mut parity]: [Secrets<Element>; 2]) -> Secrets<Element> {
        self.compress(&mut outputs, &mut parity, S::element_times_x);
        outputs
    }
}

impl Vole for Silent {
    type Receiver = Receiver;
    type Sender = Sender;

    fn receiver(&self, cx: &mut Context, purpose: &'static str) -> Result<Receiver> {
        let ot = extension::Receiver::setup(cx, purpose, self.k, Security::Malicious)?;
        Ok(Receiver(Setup::new(&cx.session, purpose, ot)))
    }

    fn sender(&self, cx: &mut Context, purpose: &'static str) -> Result<Sender> {
        let ot = extension::Sender::setup(cx, purpose, self.k, Security::Malicious)?;
        Ok(Sender(Setup::new(&cx.session, purpose, ot)))
    }
}

impl super::Receiver for Receiver {
    fn next<S: VoleScalar>(
        &mut self,
        cx: &mut Context,
        n: usize,
        take: impl FnOnce(&mut Context, Secrets<S>) -> Result<()>,
    ) -> Result<Secrets<Element>> {
        if n <= DIRECT {
            let a = S::random(n, cx.rng);
            let c = gilboa::receiver(&mut cx.ch.tx, &mut self.0.ot, &a)?;
            take(cx, a)?;
            return Ok(c);
        }
        let shape = self.0.shape(n);
        // 1. The noise.
        let (places, a) = shape.noise::<S>(cx.rng);
        // 2. c = Delta a + b for the noise values.
        let c = gilboa::receiver(&mut cx.ch.tx, &mut self.0.ot, &a)?;
        // 3. For each level of each tree, the sum of the side that is off the path to the place.
        let mut right = Secrets::<bool>::zeros(shape.trees * shape.depth);
        for (right, &place) in right.chunks_exact_mut(shape.depth).zip(places.iter()) {
            right.iter_mut().zip(sides(place, shape.depth)).for_each(|(right, side)| *right = side);
        }
        let mut taken = Secrets::zeros(0);
        for right in right.chunks(FRAME) {
            let first = self.0.number(right.len());
            let masks = masks(first, &self.0.ot.pads(&mut cx.ch.tx, right)?);
            taken.extend(&Secrets::from(masks.iter().map(|mask| mask.to_le_bytes()).collect::<Vec<_>>()));
        }
        // 4. Apply the code to the noise. A does not depend on the sums, so the message derived from it is sent before they
        //    arrive.
        let scalars = cx.threads.run(|| shape.scalars(&places, &a));
        take(cx, scalars)?;
        let encrypted = cx.ch.rx.recv(SUMS, taken.len())?;
        for ((sum, &right), pair) in taken.iter_mut().zip(right.iter()).zip(&encrypted) {
            add(sum, &Element::conditional_select(&pair[0], &pair[1], u8::from(right).into()));
        }
        let ends = cx.ch.rx.recv(ENDS, shape.trees)?;
        // 5. C' at the place is (sum of all ends + b) + (sum of the other ends) + c.
        let open = |i: usize| {
            let (mut leaves, others) =
                shape.tree(i).regrow(places[i], &taken[i * shape.depth..][..shape.depth]);
            let missing = u128::from_le_bytes(ends[i]) ^ others ^ u128::from_le_bytes(c[i]);
            leaves[places[i] as usize] = missing.to_le_bytes();
            (leaves, ())
        };
        // 6. Apply the code.
        Ok(cx.threads.run(|| shape.elements::<S>(shape.grow(open).0)))
    }
}

impl super::Sender for Sender {
    fn delta(&self) -> &Element {
        self.0.ot.delta()
    }

    fn next<S: VoleScalar>(&mut self, cx: &mut Context, n: usize) -> Result<Secrets<Element>> {
        if n <= DIRECT {
            return gilboa::sender::<S>(&mut cx.ch.rx, &mut self.0.ot, n);
        }
        let shape = self.0.shape(n);
        // 3. All trees, and the sums of the levels, first: they need no message from the receiver, which may be
        //    computing.
        let roots = Element::random(shape.trees, cx.rng);
        let grow = |i: usize| {
            let mut offered = Secrets::zeros(shape.depth);
            let (leaves, ends) = shape.tree(i).grow(roots[i], &mut offered);
            (leaves, (offered, Secret::new(ends.to_le_bytes())))
        };
        let (leaves, trees) = cx.threads.run(|| shape.grow(grow));
        // 2. b for the noise values.
        let b = gilboa::sender::<S>(&mut cx.ch.rx, &mut self.0.ot, shape.trees)?;
        let mut offered = Secrets::zeros(0);
        trees.iter().for_each(|(sums, _)| offered.extend(sums));
        let mut at = 0;
        for n in frames(offered.len(), FRAME) {
            let first = self.0.number(n);
            let pads = self.0.ot.pads(&mut cx.ch.rx, n)?;
            for (side, pads) in [false, true].map(|side| pads.of(side)).iter().enumerate() {
                let masks = masks(first, pads);
                let sums = offered[at..].iter_mut().zip(masks.iter());
                sums.for_each(|(sums, mask)| add(&mut sums[side], &mask.to_le_bytes()));
            }
            at += n;
        }
        cx.ch.tx.send(SUMS, &offered)?;
        // For each tree, the sum of all ends and b.
        let masked =
            |((_, ends), b): (&(_, Secret<Element>), &Element)| std::array::from_fn(|i| ends[i] ^ b[i]);
        cx.ch.tx.send(ENDS, &trees.iter().zip(b.iter()).map(masked).collect::<Vec<Element>>())?;
        // 6. Apply the code.
        Ok(cx.threads.run(|| shape.elements::<S>(leaves)))
    }
}

impl Silent {
    /// Returns the bytes for vectors of these lengths, including setup and frame headers: from receiver to sender, and
    /// back.
    pub(crate) fn traffic<S: VoleScalar>(&self, lengths: impl Iterator<Item = usize>) -> (usize, usize) {
        let ots = |n: usize| -> usize {
            frames(n, FRAME).map(|n| correction_bytes(n, self.k, Security::Malicious) + 2 * HEADER).sum()
        };
        lengths.fold(setup_bytes(self.k, Security::Malicious), |(there, back), n| {
            if n <= DIRECT {
                return (there + ots(n * S::BITS), back);
            }
            let (trees, levels) = trees_and_levels(n);
            let to_receiver = 32 * levels + HEADER + 16 * trees + HEADER;
            (there + ots(trees * S::BITS) + ots(levels), back + to_receiver)
        })
    }

    /// Returns the work of each party for vectors of these lengths, after setup.
    pub fn work<S: VoleScalar>(&self, lengths: impl Iterator<Item = usize>) -> Work {
        lengths.fold(Work::default(), |work, n| {
            if n <= DIRECT {
                return work + Work::of(CorrelatedOt, n * S::BITS);
            }
            let (trees, levels) = trees_and_levels(n);
            work + Work::of(CorrelatedOt, trees * S::BITS + levels) + Work::of(VoleElement, n)
        })
    }

    /// Returns the rounds for vectors of these lengths, after the receiver's first message and up to its last. For a
    /// vector made with the code, the sums of the trees come back before the receiver begins the next.
    pub(crate) fn rounds(&self, lengths: impl ExactSizeIterator<Item = usize>) -> usize {
        let all_but_last = lengths.len().saturating_sub(1);
        2 * lengths.take(all_but_last).filter(|n| *n > DIRECT).count()
    }

    /// Returns whether the sender answers the receiver's last message, with the sums of the last vector's trees.
    pub(crate) fn answers(&self, lengths: impl Iterator<Item = usize>) -> bool {
        lengths.last().is_some_and(|n| n > DIRECT)
    }

    /// Returns the maximum number of bytes that the receiver and the sender hold for a vector of one of these lengths.
    /// If the code makes it, they hold an element of 16 bytes per place and a frame of OTs. Otherwise they hold at most the
    /// vectors, a byte per OT for the receiver's bits, and a frame of OTs.
    pub(crate) fn held<S: VoleScalar>(&self, lengths: impl Iterator<Item = usize>) -> [usize; 2] {
        let frame = OT * FRAME;
        let of = |n: usize| match n <= DIRECT {
            true => [n * (S::BITS + 16 + S::SIZE) + frame, 32 * n + frame],
            false => [16 * (n + parity(n)) + frame; 2],
        };
        lengths.map(of).fold([0; 2], |most, one| [most[0].max(one[0]), most[1].max(one[1])])
    }
}

/// The number of trees of a vector of this length with the code, and their total number of levels.
fn trees_and_levels(n: usize) -> (usize, usize) {
    let trees = noise(n);
    (trees, trees * depth((n + parity(n)).div_ceil(trees)))
}

/// Number of bytes that an OT of a frame takes while it is made.
const OT: usize = 64;

#[cfg(test)]
#[path = "silent_tests.rs"]
mod tests;
