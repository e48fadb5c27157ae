//! Oblivious switching: one party permutes the other's masks, and neither learns the other's secret (Mohassel and
//! Sadeghian, "How to Hide Circuits in MPC", EUROCRYPT 2013), with a [`BenesNetwork`] per block.
//!
//! The *masker* has a value s_j for each input j of each block. The *permuter* has a permutation pi of the inputs of each
//! block. For each wanted output i of a block, the permuter gets D_i and the masker B_i with D_i + B_i = s_pi(i).
//!
//! A switch takes one random OT, in which the permuter's choice is whether the switch exchanges its values. At each position
//! the masker has a mask and the permuter the value under that mask; initially the masks are the s_j, and the permuter has 0.
//! For a switch with masks a_0 and a_1 and pads m_0 and m_1 the masker's new masks are b_0 = a_0 + m_0 and b_1 = a_1 + m_0. It
//! sends m_1 + a_0 + b_1. If the switch goes straight, the permuter has m_0, the difference of old and new masks at both
//! positions. Otherwise it has m_1, and so a_0 + b_1 = a_1 + b_0, the differences of the exchanged masks.
//!
//! Security: semi-honest, like the OT extension ([`crate::ot::extension`]). To the permuter, each message is masked with the
//! pad that it does not have. The masker receives only corrections of OTs. **The outputs of a block obey one public relation**:
//! both masks of a switch change by the same value, so the sum of all D of a block is 0 where all outputs are wanted. So
//! neither D nor B may be opened or passed on; they may only be compared obliviously. Where a share is opened, b_0 and b_1 must
//! be independent, which takes pads of twice the length and two messages per switch. Leakage: the sizes.
//!
//! Pads are derived masks, for the reason in `ot/masks.rs`.
//!
//! Cost: per switch, an OT of ceil(128 / k) bits from the permuter to the masker, and a value back. A block of 4096 inputs, of
//! which 3085 are wanted, has 40,976 switches. Memory (`Switching::held`), besides the masker's inputs: in each party, the
//! network and the values of one block, 16 bytes per output of all blocks, and a frame of OTs; in the permuter also a byte per
//! switch and the queued pads.

mod benes;

pub use benes::BenesNetwork;

use crate::channel::{Channel, HEADER, Message, Unit, frames};
use crate::error::{Error, Result};
use crate::ot::Security;
use crate::ot::extension::{self, FRAME, Receiver, Sender, correction_bytes};
use crate::ot::masks::many_masks;
use crate::ot::transfer::{AHEAD, receive_frames};
use crate::secret::Secrets;
use subtle::{Choice, ConditionallySelectable};

const DIFFERENCES: Message<[u8]> =
    Message::new(0xe8, "masker->permuter  switching, m_1 + a_0 + b_1 of each switch");

/// A value, of which only the first [`Switching::bytes`] bytes count.
pub type SwitchedValue = [u8; 16];

/// Bytes held for an OT of the current frame: its bits of the columns, its row, two pads and two masks.
const HELD_FOR_OT: usize = 96;

/// The public parameters: networks of one shape, and the length of values.
pub struct Switching {
    /// The network of each block.
    pub network: BenesNetwork,
    /// The number of blocks.
    pub blocks: usize,
    /// The length of a value in bytes, from 1 to 16.
    pub bytes: usize,
}

impl Switching {
    /// The number of switches in all blocks, and so of OTs.
    pub fn switches(&self) -> usize {
        self.blocks * self.network.switches()
    }

    /// Bytes that the permuter and the masker send, including frame headers, without the setup of the OTs.
    pub(crate) fn traffic(&self, k: usize) -> [usize; 2] {
        let switches = self.switches();
        let headers = HEADER * switches.div_ceil(FRAME);
        [correction_bytes(switches, k, Security::SemiHonest) + headers, self.bytes * switches + headers]
    }

    /// The maximum number of bytes that the permuter and the masker hold, including their outputs, but not the masker's inputs.
    pub(crate) fn held(&self) -> [usize; 2] {
        let frame = extension::SETUP_HELD + self.switches().min(FRAME) * (HELD_FOR_OT + 2 * self.bytes);
        let block = 16 * self.network.size() + 16 * self.network.switches();
        let outputs = 16 * self.blocks * self.network.outputs();
        let waiting = 16 * self.switches().min(AHEAD * FRAME);
        [frame + block + outputs + self.switches() + waiting, frame + block + outputs]
    }

    /// Checks the length of values, and announces the stage: `corrections` bytes from the permuter, and the masker's answer.
    fn begin(&self, ch: &Channel, corrections: usize) -> Result<()> {
        if !(1..=size_of::<SwitchedValue>()).contains(&self.bytes) {
            return Err(Error::bug(format!("switching of values of {} bytes", self.bytes)));
        }
        ch.stage("switching", Unit::Bytes, corrections + self.bytes * self.switches());
        Ok(())
    }

    /// Runs the masker, with the values of all inputs of all blocks. Returns B of the outputs, block by block. Bytes after the
    /// length of a value do not count.
    ///
    /// # Errors
    /// The errors of the channel, and [`Error::Bug`] for a wrong number of inputs or length of values.
    pub fn masker(
        &self,
        ch: &mut Channel,
        ot: &mut Sender,
        inputs: &[SwitchedValue],
    ) -> Result<Secrets<SwitchedValue>> {
        if inputs.len() != self.blocks * self.network.size() {
            return Err(Error::bug(format!("{} inputs of {} blocks", inputs.len(), self.blocks)));
        }
        self.begin(ch, ot.correction_bytes(self.switches()))?;
        let (threads, mut first) = (ot.threads().clone(), 0);
        let mut walk = Walk::new(self);
        let mut blocks = inputs.chunks_exact(self.network.size());
        for n in frames(self.switches(), FRAME) {
            let pairs = ot.pads(&mut ch.rx, n)?;
            let of = |choice| threads.run(|| many_masks(first, &pairs.of(choice)));
            let (zeros, ones) = (of(false), of(true));
            let mut differences = Secrets::zeros(self.bytes * n);
            let begin = |block: &mut [u128]| {
                let inputs = blocks.next().unwrap_or(&[]);
                block.iter_mut().zip(inputs).for_each(|(at, value)| *at = u128::from_le_bytes(*value));
            };
            let mut to = differences.chunks_exact_mut(self.bytes);
            walk.switch(n, begin, |i, [a, b]| {
                let (a_new, b_new) = (a ^ zeros[i], b ^ zeros[i]);
                let difference = (ones[i] ^ a ^ b_new).to_le_bytes();
                to.by_ref().take(1).for_each(|to| to.copy_from_slice(&difference[..self.bytes]));
                [a_new, b_new]
            });
            ch.tx.send_bytes(DIFFERENCES, &differences)?;
            first += n;
        }
        Ok(walk.outputs)
    }

    /// Runs the permuter, with the choices of all blocks ([`BenesNetwork::route`]). Returns D of the outputs, block by block.
    ///
    /// # Errors
    /// The errors of the channel, and [`Error::Bug`] for a wrong number of choices or length of values.
    pub fn permuter(
        &self,
        ch: &mut Channel,
        ot: &mut Receiver,
        choices: &[bool],
    ) -> Result<Secrets<SwitchedValue>> {
        if choices.len() != self.switches() {
            return Err(Error::bug(format!("{} choices for {} switches", choices.len(), self.switches())));
        }
        self.begin(ch, ot.correction_bytes(choices.len()))?;
        let threads = ot.threads().clone();
        let mut walk = Walk::new(self);
        receive_frames(ch, ot, choices, DIFFERENCES, self.bytes, |first, choices, pads, differences| {
            let masks = threads.run(|| many_masks(first, pads));
            let differences = differences.chunks_exact(self.bytes).map(widened).collect::<Vec<_>>();
            walk.switch(
                choices.len(),
                |block| block.fill(0),
                |i, [a, b]| {
                    // No branch depends on the choice.
                    let choice = Choice::from(u8::from(choices[i]));
                    let half = u128::from(u64::conditional_select(&0, &u64::MAX, choice));
                    let exchanges = half << 64 | half;
                    let change = masks[i] ^ (differences[i] & exchanges);
                    let both = (a ^ b) & exchanges;
                    [a ^ both ^ change, b ^ both ^ change]
                },
            );
        })?;
        Ok(walk.outputs)
    }
}

/// The value with these first bytes, and zeros after them.
fn widened(first: &[u8]) -> u128 {
    first.iter().rev().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// The state of a party as it processes the switches of all blocks.
struct Walk<'a> {
    network: &'a BenesNetwork,
    /// Its values at the positions of the block.
    block: Secrets<u128>,
    /// The number of switches of the block that are done.
    done: usize,
    outputs: Secrets<SwitchedValue>,
}

impl<'a> Walk<'a> {
    fn new(switching: &'a Switching) -> Walk<'a> {
        let network = &switching.network;
        let outputs = Secrets::with_capacity(switching.blocks * network.outputs());
        Walk { network, block: Secrets::zeros(network.size()), done: 0, outputs }
    }

    /// Processes the next `n` switches. `begin` fills the positions of a block, and `new(i, values)` returns the values after
    /// number i of these switches.
    fn switch(
        &mut self,
        n: usize,
        mut begin: impl FnMut(&mut [u128]),
        mut new: impl FnMut(usize, [u128; 2]) -> [u128; 2],
    ) {
        let mut i = 0;
        while i < n {
            if self.done == 0 {
                begin(&mut self.block);
            }
            let switches = &self.network.list()[self.done..];
            for (switch, i) in switches.iter().zip(i..n) {
                let [p, q] = switch.pair.map(|at| at as usize);
                [self.block[p], self.block[q]] = new(i, [self.block[p], self.block[q]]);
            }
            let count = switches.len().min(n - i);
            (i, self.done) = (i + count, self.done + count);
            if self.done == self.network.switches() {
                let output = |i| self.block[self.network.place(i)].to_le_bytes();
                let outputs = Secrets::from((0..self.network.outputs()).map(output).collect::<Vec<_>>());
                self.outputs.extend(&outputs);
                self.done = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
