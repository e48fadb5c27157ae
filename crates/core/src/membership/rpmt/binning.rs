//! The plan: all sizes of a run, derived from public sizes.

use super::{AHEAD, Comparison, TAGS, VALUES};
use crate::channel::{Channel, Message, frames};
use crate::error::{Error, Result};
use crate::hashing::{Bins, bound_of};
use crate::oprf::kkrt;
use crate::params::{LAMBDA, ceil_log2, share};
use veilset_kernels::polynomial::Field;

/// The maximum number of items of R and of S in a bin. Polynomials have at most 256 coefficients, and a bin fits
/// into a frame.
const LARGEST: (usize, usize) = (255, kkrt::FRAME - 1);

/// All sizes of a run, derived from public sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binning {
    pub(super) bins: Bins,
    pub(super) field: Field,
    /// Width of the OPRF's codes.
    pub(super) width: usize,
    /// Width of the codes of the private comparison.
    pub(super) peqt: Option<usize>,
    /// Bytes compared per slot.
    pub(super) tag: usize,
    /// Bins per frame.
    pub(super) per_frame: usize,
    /// The maximum number of items of R in the bins of a frame.
    pub(super) in_frame: usize,
}

impl Binning {
    /// The plan with about the least traffic for sets of these sizes. The caller sends `beside` further bytes per
    /// slot.
    ///
    /// # Errors
    /// [`Error::Usage`] if a set is too large.
    pub fn new(comparison: Comparison, n_r: usize, n_s: usize, beside: usize) -> Result<Binning> {
        let cost = |bins: &Bins| match Binning::of(comparison, (n_r, n_s), *bins) {
            Ok(plan) => {
                let slot = plan.slot_bytes();
                plan.slots() as u64 * (slot.0 + slot.1 + beside) as u64
            }
            Err(_) => u64::MAX,
        };
        // Overflow probabilities: 2^-42 that any bin of R overflows, 2^-42 that any bin of S does, 2^-41 that any frame of R
        // does. Together 2^-40.
        let bins = Bins::best(share(LAMBDA, 2), (n_r, n_s), LARGEST, cost);
        let mut plan = Binning::of(comparison, (n_r, n_s), bins)?;
        let sets = bins.number.div_ceil(plan.per_frame);
        plan.in_frame = bound_of(share(LAMBDA, 2), n_r, sets, plan.per_frame, bins.number);
        Ok(plan)
    }

    /// The plan for these bins, without the bound of frames, which is slow to compute.
    pub(super) fn of(comparison: Comparison, (n_r, n_s): (usize, usize), bins: Bins) -> Result<Binning> {
        let (slots, coefficients) = (bins.number * (bins.sender + 1), bins.receiver + 1);
        let private = comparison == Comparison::Private;
        // Undetected errors: a slot is compared wrongly because of its polynomial, or because of its tag.
        let exponent = share(LAMBDA, if private { 2 } else { 1 });
        let bits = exponent + ceil_log2(slots * coefficients);
        let too_large = || {
            Error::usage(format!(
                "sets of {n_r} and {n_s} items are too large for krtw19, which would need a field of {bits} bits"
            ))
        };
        let field = Field::ALL.into_iter().find(|field| field.bits() >= bits).ok_or_else(too_large)?;
        // For each slot, R evaluates the OPRF at each item of the bin. The codes of both OPRFs share an error probability of
        // 2^-40.
        let width = kkrt::width(exponent, (bins.sender + 1) * (n_r + bins.number))?;
        let peqt = if private { Some(kkrt::width(exponent, slots)?) } else { None };
        let tag = match private {
            true => (exponent + ceil_log2(slots)).div_ceil(8) as usize,
            false => field.bytes(),
        };
        let per_frame = (kkrt::FRAME / (bins.sender + 1)).clamp(1, bins.number);
        Ok(Binning { bins, field, width, peqt, tag, per_frame, in_frame: 0 })
    }

    /// The bins.
    pub fn bins(&self) -> &Bins {
        &self.bins
    }

    /// The number of slots, and so of tests.
    pub fn slots(&self) -> usize {
        self.bins.number * self.slots_of_bin()
    }

    /// Slots per bin.
    pub(super) fn slots_of_bin(&self) -> usize {
        self.bins.sender + 1
    }

    /// Coefficients per polynomial.
    pub(super) fn coefficients(&self) -> usize {
        self.bins.receiver + 1
    }

    /// Bytes per polynomial.
    pub(super) fn polynomial_bytes(&self) -> usize {
        self.coefficients() * self.field.bytes()
    }

    /// Bytes per slot, to the sender and to the receiver, excluding the padding of frames.
    pub(super) fn slot_bytes(&self) -> (usize, usize) {
        (self.polynomial_bytes() + self.peqt.unwrap_or(0) / 8, self.width / 8 + self.tag)
    }

    /// The first bin and the number of bins of each frame.
    pub(super) fn frames(&self) -> impl ExactSizeIterator<Item = (usize, usize)> + use<> {
        let per_frame = self.per_frame;
        frames(self.bins.number, per_frame).enumerate().map(move |(f, n_bins)| (f * per_frame, n_bins))
    }

    /// Bytes of all messages, including headers, if the items fit at the first attempt: to the sender and to the
    /// receiver.
    pub fn traffic(&self) -> (u64, u64) {
        const HEADER: usize = crate::channel::HEADER;
        // The coin toss, and the base OTs: 64 bytes from the OT receiver, 32 from the OT sender.
        let mut to_sender = 2 * (32 + HEADER) + 1 + HEADER + self.width * 64 + HEADER;
        let mut to_receiver = 32 + HEADER + 1 + HEADER + self.width * 32 + HEADER;
        let peqt = self.peqt.unwrap_or(0);
        if self.peqt.is_some() {
            to_receiver += peqt * 64 + HEADER;
            to_sender += peqt * 32 + HEADER;
        }
        for (_, n_bins) in self.frames() {
            let n_slots = n_bins * self.slots_of_bin();
            let rows = n_slots.next_multiple_of(128) / 8;
            to_sender += n_slots * self.polynomial_bytes() + HEADER;
            to_receiver += rows * self.width + HEADER + n_slots * self.tag + HEADER;
            if self.peqt.is_some() {
                to_sender += rows * peqt + HEADER;
            }
        }
        (to_sender as u64, to_receiver as u64)
    }

    /// The number of rounds, if the items fit at the first attempt. The coin toss and the fit bits are exchanged in turn. The
    /// base OTs take one message in each direction, and the private comparison adds base OTs of its own. Then S sends inputs
    /// for as many frames as it may be ahead, and R answers with polynomials. S then sends its answers with its next inputs,
    /// and so on until the last frame.
    pub fn rounds(&self) -> usize {
        let (toss, base, again) = (4, 2, if self.peqt.is_some() { 2 } else { 0 });
        // With S's last message of the OPRF's base OTs go its first inputs, or its message of the comparison's base OTs.
        toss + base + again + 2 * self.frames().len().div_ceil(AHEAD)
    }

    /// The maximum number of bytes that R and S hold for sets of these sizes: codes, places in bins and bits of all items and
    /// slots, and the frames that may be in flight.
    pub fn held(&self, n_r: usize, n_s: usize) -> [usize; 2] {
        let (slots, ahead) = (self.slots(), self.frames().len().min(AHEAD + 1));
        let in_frame = slots.min(self.per_frame * self.slots_of_bin());
        // Streams of two ciphers for each base OT, in both directions.
        let setup = 1024 * self.base_ots();
        // Two frames of polynomials; rows, columns and codes of an OPRF; data queued between the sending and the receiving
        // side.
        let frame = in_frame * (2 * self.polynomial_bytes() + 4 * 64 + 32);
        let of = |n: usize, waiting| setup + frame + 72 * n + in_frame * waiting * ahead;
        [of(n_r, 64) + 3 * slots, of(n_s, 32) + 4 * slots]
    }

    /// The number of base OTs, in both directions.
    pub fn base_ots(&self) -> usize {
        self.width + self.peqt.unwrap_or(0)
    }

    /// The message in which S answers each slot.
    pub(super) fn answers(&self) -> Message<[u8]> {
        if self.peqt.is_some() { TAGS } else { VALUES }
    }

    pub(super) fn announce(&self, ch: &Channel) {
        let slot = self.slot_bytes();
        ch.stage("matching", crate::channel::Unit::Bytes, self.slots() * (slot.0 + slot.1));
    }
}

#[cfg(test)]
#[path = "binning_tests.rs"]
mod tests;
