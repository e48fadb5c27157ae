//! Reverse private membership tests of many items, in bins (KRTW19 4, Figures 6 and 7), with a corrected
//! polynomial.
//!
//! The receiver R holds a set Y, the sender S a set X. Both hash their items into bins with one hash function (simple hashing,
//! [`crate::hashing`]). S pads each of its bins to m_s + 1 *slots* with copies of the bottom item, which both parties have. For
//! each slot R learns one bit: whether its content is in R's bin or is the bottom item. S learns nothing. The slots of a bin
//! are in a secret random order.
//!
//! For each slot R picks s and sends a random polynomial. From it S computes s*, which equals s if the bit is 1,
//! and is random otherwise. R learns whether they are equal.
//!
//! Security: semi-honest, like the OPRF ([`crate::oprf::kkrt`]); AES-128 a pseudorandom function. Leakage: the sizes; and, with
//! probability 2^-40, that items had to be hashed again, and whose items.
//!
//! Without the private comparison ([`Comparison::Plain`]) R also gets s* of each slot. With s*, R can test guesses of an item
//! that is not in Y. That is acceptable only where R gets those items anyway. Even then, a run that aborts before that point
//! leaves R with s*.
//!
//! Cost, per slot: an OPRF (a code of S, 400 to 480 bits), a polynomial of m_r + 1 coefficients from R, and the
//! comparison. The comparison is an OPRF in the other direction and a tag, or an element of the field. R
//! evaluates the OPRF for each slot and each item of the bin.
//!
//! The files: `binning` has the plan of all sizes ([`Binning`]), `bins` the coin toss for the hash function and the bins of S,
//! and `opprf` the polynomials and the proof that they reveal nothing. This file has the protocol.
//!
//! Departures from the paper:
//! - The polynomial: the paper's version tells S whether x* is in the bin. See `opprf`.
//! - Separate bounds for each party on the items of a bin ([`Bins::best`](crate::hashing::Bins::best)).
//! - The bin hash comes from a coin toss that starts after the sizes, and so the inputs, are fixed. R commits to
//!   its share, so that neither party can fit the function to the inputs.
//! - Bits of a field element: L + log2(slots (m_r + 1)), with L from the error budget. It bounds two undetected
//!   errors: s* equals s by chance, or two of R's items collide in q, so that one is lost.
//!
//! **Timing of R.** The number of points of a polynomial depends on the load of its bin, and the loads depend on Y. Random
//! points pad each frame of bins to a number of points that follows from the sizes. So the numbers of OPRF evaluations and
//! random bytes for a frame also follow from the sizes. The following still shows:
//! - Interpolation takes about 1.5 k^2 + k m_r multiplications for a slot with k points. Their sum over a frame
//!   depends on how uneven the loads are, and correlates with the number of items in the frame. With 2^20 items
//!   on both sides its standard deviation is a thousandth of its mean.
//! - A thread works on a whole bin. On many threads, a frame takes as long as the threads with the fullest bins.
//!   So the largest loads show to first order.
//! - The order of memory accesses depends on the items.
//!
//! None of these is hidden. They are functions of the loads under a hash function that S knows.

mod binning;
pub(in crate::membership) mod bins;
mod opprf;

pub use binning::Binning;

use super::{BOTTOM, InBins};
use crate::channel::queue::{pipelined, queue};
use crate::channel::{Channel, Message, Rx, Tx};
use crate::context::Context;
use crate::error::Result;
use crate::hash::Domain;
use crate::oprf::kkrt::{self, Code, Coder, Keys};
use crate::oprf::{Input, Output};
use crate::secret::Secrets;
use bins::{fill_and_permute, hash_into_bins};
use opprf::{Programmer, evaluate};
use rayon::prelude::*;
use subtle::{Choice, ConditionallySelectable};

/// The number of frames by which the sender's OPRF inputs are ahead of its answers. So this many frames of polynomials, about
/// 2.3 MiB each, may be in flight. R holds the keys of an equal number of frames, 256 KiB each, and two frames of polynomials.
/// S holds the outputs of an equal number, 128 KiB each, and one frame of polynomials.
const AHEAD: usize = 4;

const OPRF: &str = "RPMT, OPRF of the items";
const PEQT: &str = "RPMT, OPRF for the private equality test";

const POLYNOMIALS: Message<[u8]> = Message::new(0xa5, "R->S  RPMT polynomials");
const TAGS: Message<[u8]> = Message::new(0xa6, "S->R  RPMT tags of s*");
const VALUES: Message<[u8]> = Message::new(0xa7, "S->R  RPMT s*");

/// How s and s* are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// With a private equality test: R inputs s to an OPRF, and S sends a part of the OPRF's value at s*.
    Private,
    /// In the clear: S sends s*.
    Plain,
}

/// Runs R with the hashes of the items of Y. Returns one bit per slot.
///
/// # Errors
/// The errors of [`crate::operations`].
pub fn receiver(cx: &mut Context, plan: &Binning, y: &[Input]) -> Result<Secrets<bool>> {
    plan.announce(cx.ch);
    let table = hash_into_bins(cx, plan, true, y)?;
    let coder = Coder::new(&cx.session, OPRF);
    let threads = cx.threads;
    let (codes, bottom) = threads.run(|| (coder.codes(y), coder.codes(&[bottom()])));
    // A generator of its own: forks of the caller's generator would repeat in another run.
    let programmer = Programmer { plan, table, codes, bottom, rng: cx.rng.split() };
    let mut oprf = kkrt::Sender::setup(cx, OPRF, plan.width)?;
    let mut peqt = plan.peqt.map(|width| kkrt::Receiver::setup(cx, PEQT, width)).transpose()?;
    let peqt_coder = Coder::new(&cx.session, PEQT);
    let mut bits = Secrets::zeros(0);
    // 1. S inputs its items to the OPRF, and R gets the keys.
    let mut keys = |rx: &mut Rx, n_bins| oprf.keys(rx, n_bins * plan.slots_of_bin());
    let mut program = |tx: &mut Tx, keys: Keys, first, n_bins| {
        // 2. and 3. R picks s and P, and sends the coefficients of P.
        let (polynomials, s) = threads.run(|| programmer.polynomials(&keys, first, n_bins));
        tx.send_bytes(POLYNOMIALS, &polynomials)?;
        // 5. PEQT: R inputs s.
        Ok(match &mut peqt {
            Some(peqt) => {
                let codes = threads.run(|| codes_of(&peqt_coder, &s));
                tags(&peqt.evaluate(tx, &codes)?, plan.tag)
            }
            None => values(&s, plan.tag),
        })
    };
    // R learns whether s = s*.
    let mut compare = |answers: &[u8], expected: &[u8]| {
        let pairs = answers.chunks_exact(plan.tag).zip(expected.chunks_exact(plan.tag));
        let differ = |a: &[u8], b: &[u8]| a.iter().zip(b).fold(0, |d, (a, b)| d | (a ^ b));
        bits.extend(&Secrets::from(pairs.map(|(a, b)| differ(a, b) == 0).collect::<Vec<_>>()));
    };
    // S's inputs are AHEAD frames ahead of its answers, so no half waits for a free place in a queue. If the other half has
    // failed, its error is reported, or the reason that the peer still sends.
    let (keys_in, keys_out) = queue::<Keys>(AHEAD);
    let (expected_in, expected_out) = queue::<Secrets<u8>>(AHEAD);
    cx.ch.duplex(
        |tx| {
            let (keys_out, expected_in) = (keys_out, expected_in);
            for (first, n_bins) in plan.frames() {
                let _ = expected_in.put(program(tx, keys_out.take()?, first, n_bins)?);
            }
            Ok(())
        },
        |rx| {
            let (keys_in, expected_out) = (keys_in, expected_out);
            let begin = |rx: &mut Rx, (_, n_bins)| {
                let _ = keys_in.put(keys(rx, n_bins)?);
                Ok(())
            };
            let end = |rx: &mut Rx, (_, n_bins), ()| {
                let answers = rx.recv_bytes(plan.answers(), n_bins * plan.slots_of_bin() * plan.tag)?;
                compare(&answers, &expected_out.take()?);
                Ok(())
            };
            pipelined(AHEAD, plan.frames(), rx, begin, end)
        },
    )?;
    Ok(bits)
}

/// Runs S with the hashes of the items and dummies of X, of which the first `real` are items. Dummies are hashed into bins like
/// items and only then count as the bottom item, which hides their number. Returns the contents of the slots: positions in X,
/// or [`BOTTOM`].
///
/// # Errors
/// The errors of [`crate::operations`].
pub fn sender(cx: &mut Context, plan: &Binning, x: &[Input], real: usize) -> Result<Secrets<u32>> {
    plan.announce(cx.ch);
    let table = hash_into_bins(cx, plan, false, x)?;
    let threads = cx.threads;
    let order = threads.run(|| fill_and_permute(plan, &table, cx.rng));
    let coder = Coder::new(&cx.session, OPRF);
    let (mut codes, bottom) = threads.run(|| (coder.codes(x), coder.codes(&[bottom()])));
    // Dummies count as the bottom item. All codes are processed alike, so that the time does not reveal the
    // number of dummies.
    let by_position = codes.par_iter_mut().enumerate();
    threads.run(|| {
        by_position.for_each(|(i, code)| {
            code.conditional_assign(&bottom[0], Choice::from(u8::from(i >= real)));
        });
    });
    let mut oprf = kkrt::Receiver::setup(cx, OPRF, plan.width)?;
    let mut peqt = plan.peqt.map(|width| kkrt::Sender::setup(cx, PEQT, width)).transpose()?;
    let peqt_coder = Coder::new(&cx.session, PEQT);
    // 1. S is the receiver of the OPRF and inputs the items of its slots.
    let begin = |ch: &mut Channel, (first, n_bins)| {
        let slots = &order[first * plan.slots_of_bin()..][..n_bins * plan.slots_of_bin()];
        let code = |&item: &u32| *codes.get(item as usize).unwrap_or(&bottom[0]);
        let codes = Secrets::from(slots.iter().map(code).collect::<Vec<_>>());
        oprf.evaluate(&mut ch.tx, &codes)
    };
    let end = |ch: &mut Channel, (_, n_bins), outputs: Secrets<Output>| {
        // 3. S gets the coefficients of P.
        let n_slots = n_bins * plan.slots_of_bin();
        let polynomials = ch.rx.recv_bytes(POLYNOMIALS, n_slots * plan.polynomial_bytes())?;
        // 4. s* = P(q*) - t*
        let s = threads.run(|| evaluate(plan, &polynomials, &outputs));
        // 5. PEQT: S has the keys.
        let answers = match &mut peqt {
            Some(peqt) => {
                let keys = peqt.keys(&mut ch.rx, n_slots)?;
                let codes = threads.run(|| codes_of(&peqt_coder, &s));
                tags(&threads.run(|| values_at(&keys, &codes)), plan.tag)
            }
            None => values(&s, plan.tag),
        };
        ch.tx.send_bytes(plan.answers(), &answers)
    };
    // In one thread, whose work is mostly that of the pool. R reads whatever S sends, so neither waits for ever.
    pipelined(AHEAD, plan.frames(), cx.ch, begin, end)?;
    Ok(order)
}

impl InBins for Binning {
    fn receiver(&self, cx: &mut Context, y: &[Input]) -> Result<Secrets<bool>> {
        receiver(cx, self, y)
    }

    fn sender(&self, cx: &mut Context, x: &[Input], real: usize) -> Result<Secrets<u32>> {
        sender(cx, self, x, real)
    }
}

/// Slots per parallel task.
const BATCH: usize = 256;

/// The bottom item, which both parties have.
fn bottom() -> Input {
    Input::from_bytes(Domain::without_session("the bottom item of KRTW19").hash(&[]))
}

/// The codes of s as inputs of the private equality test.
fn codes_of(coder: &Coder, s: &[u128]) -> Secrets<Code> {
    let input = |s: &u128| {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&s.to_le_bytes());
        Input::from_bytes(bytes)
    };
    let inputs = Secrets::from(s.iter().map(input).collect::<Vec<_>>());
    coder.codes(&inputs)
}

/// The values F_j at code j, for each instance j of a frame.
fn values_at(keys: &Keys, codes: &[Code]) -> Secrets<Output> {
    let mut outputs = Secrets::<Output>::zeros(codes.len());
    outputs.par_chunks_mut(BATCH).enumerate().for_each(|(b, outputs)| {
        let from = b * BATCH;
        let at = (from..from + outputs.len()).map(|j| (j, &codes[j]));
        outputs.copy_from_slice(&keys.evaluate_all(at));
    });
    outputs
}

/// The first `bytes` bytes of each output.
fn tags(outputs: &[Output], bytes: usize) -> Secrets<u8> {
    let mut tags = Secrets::zeros(outputs.len() * bytes);
    tags.chunks_exact_mut(bytes).zip(outputs).for_each(|(tag, output)| tag.copy_from_slice(&output[..bytes]));
    tags
}

/// The first `bytes` bytes of each element.
fn values(s: &[u128], bytes: usize) -> Secrets<u8> {
    let mut values = Secrets::zeros(s.len() * bytes);
    values.chunks_exact_mut(bytes).zip(s).for_each(|(to, s)| to.copy_from_slice(&s.to_le_bytes()[..bytes]));
    values
}

#[cfg(test)]
mod tests;
