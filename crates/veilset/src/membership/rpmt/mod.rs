//! Reverse private membership tests of many items, in bins (KRTW19 4, Figures 6 and 7), with the correction of the
//! polynomial.
//!
//! The receiver R holds a set Y, the sender S a set X. Both throw their items into bins by one hash function
//! ([`crate::hashing`]), and each bin of S is filled up to m_s + 1 *slots* with copies of an item that both have, the
//! bottom item. R learns a bit for each slot, whether what S has in it is in R's bin or is the bottom item; S learns
//! nothing. The slots of a bin are in a secret random order.
//!
//! For each slot R picks s and sends a random polynomial. From it S computes s*, which is s if the bit is 1 and random
//! otherwise. R learns whether they are equal.
//!
//! Security: semi-honest, of the OPRF ([`crate::oprf::kkrt`]); AES-128 a pseudorandom function. Leakage: the sizes;
//! with a probability of 2^-40, that items had to be thrown again, and by whom. Without the private comparison
//! ([`Comparison::Plain`]) R also gets s* of each slot, on which it can test guesses of an item that is not in Y. That
//! is right only where R gets those items anyway, and even then a run that breaks off before leaves R with s*.
//! Cost: for each slot an OPRF (a code of S, 424 to 480 bits) and a polynomial of m_r + 1 coefficients of R, and the
//! comparison: an OPRF the other way and a tag, or an element of the field. R evaluates the OPRF for each slot and
//! each item of the bin.
//!
//! The files: [`plan`](Binning) has the sizes, `bins` the coin toss for the hash function and the bins of S, `opprf` the
//! polynomials and why they say nothing, this one the protocol.
//!
//! Departures from the paper:
//! - The polynomial: the printed one tells S whether x* is in the bin. See `opprf`.
//! - Bounds on the items of a bin for each party ([`Bins::best`](crate::hashing::Bins::best)).
//! - The hash function of the bins comes from a coin toss that begins after the sizes, and so the inputs, are fixed.
//!   R commits itself, so that neither party can fit the function to the inputs.
//! - Bits of an element: L + log2 of slots times m_r + 1, L from the budget: with what probability some slot is wrong
//!   because s* is s by chance, or an item is lost because two of R's meet in q.
//!
//! What time shows of R. Its polynomials go through as many points as its bins have items, and the loads of bins
//! follow from Y. Random points fill each frame of bins up to a number of points that follows from the sizes. So the
//! frames take the same number of OPRF evaluations and random bytes. What remains to be seen:
//! - Interpolation takes about 1.5 k^2 + k m_r products for a slot with k points. Their sum over a frame follows from
//!   how uneven the loads are, and correlates with the number of items in the frame. With 2^20 items on both sides its
//!   standard deviation is a thousandth of its mean.
//! - A thread works on a whole bin. On many threads a frame takes as long as the threads with the fullest bins: the
//!   largest loads show in first order.
//! - The order of memory accesses follows from the items.
//!
//! None of these is hidden. They are functions of loads under a hash function that S knows.

mod binning;
mod bins;
mod opprf;

pub use binning::Binning;

use crate::channel::Message;
use crate::channel::queue::consequence;
use crate::context::Context;
use crate::error::Result;
use crate::hash::Domain;
use crate::oprf::kkrt::{self, Code, Coder, Keys};
use crate::oprf::{Input, Output};
use crate::secret::Secrets;
use bins::{fill_and_permute, hash_into_bins};
use opprf::{Programmer, evaluate};
use rayon::prelude::*;
use std::sync::mpsc;
use subtle::{Choice, ConditionallySelectable};

/// How many frames the sender's OPRF inputs are ahead of its answers: so many frames of polynomials, about 2.3 MiB
/// each, may be under way. R holds the keys of as many frames, 256 KiB each, and two frames of polynomials; S the
/// outputs of as many, 128 KiB each, and two frames of polynomials.
const AHEAD: usize = 4;

const OPRF: &str = "RPMT, OPRF of the items";
const PEQT: &str = "RPMT, OPRF for the private equality test";

const POLYNOMIALS: Message<[u8]> = Message::new(0xa5, "R->S  RPMT polynomials");
const TAGS: Message<[u8]> = Message::new(0xa6, "S->R  RPMT tags of s*");
const VALUES: Message<[u8]> = Message::new(0xa7, "S->R  RPMT s*");

/// What stands in a slot for the bottom item, where items are numbers.
pub const BOTTOM: u32 = u32::MAX;

/// How s and s* are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// By a private equality test: R has an input s of an OPRF and S sends a part of its value at s*.
    Private,
    /// S sends s*.
    Plain,
}

/// R's part, with the hashes of the items of Y. Returns a bit for each slot.
///
/// # Errors
/// As those of [`crate::operations`].
pub fn receiver(cx: &mut Context, plan: &Binning, y: &[Input]) -> Result<Secrets<bool>> {
    plan.announce(cx.ch);
    let table = hash_into_bins(cx, plan, true, y)?;
    let coder = Coder::new(&cx.session, OPRF);
    let threads = cx.threads;
    let (codes, bottom) = threads.run(|| (coder.codes(y), coder.codes(&[bottom()])));
    // A generator of its own: forks of the caller's would be the same in another run.
    let programmer = Programmer { plan, table, codes, bottom, rng: cx.rng.split() };
    let mut oprf = kkrt::Sender::setup(cx, OPRF, plan.width)?;
    let mut peqt = match plan.peqt {
        Some(width) => Some(kkrt::Receiver::setup(cx, PEQT, width)?),
        None => None,
    };
    let peqt_coder = Coder::new(&cx.session, PEQT);
    // S is AHEAD frames of its inputs ahead of its answers, so no queue is longer.
    let (keys_in, keys_out) = mpsc::channel::<Keys>();
    let (expected_in, expected_out) = mpsc::channel::<Secrets<u8>>();
    let mut bits = Secrets::zeros(0);
    cx.ch.duplex(
        |tx| {
            let (keys_out, expected_in) = (keys_out, expected_in);
            for (first, n_bins) in plan.frames() {
                let keys = keys_out.recv().map_err(|_| consequence())?;
                // 2. and 3. R picks s and P, and sends the coefficients of P.
                let (polynomials, s) = threads.run(|| programmer.polynomials(&keys, first, n_bins));
                tx.send_bytes(POLYNOMIALS, &polynomials)?;
                // 5. PEQT: R has the input s.
                let expected = match &mut peqt {
                    Some(peqt) => {
                        let codes = threads.run(|| codes_of(&peqt_coder, &s));
                        tags(&peqt.evaluate(tx, &codes)?, plan.tag)
                    }
                    None => values(&s, plan.tag),
                };
                // If the other half has failed, its error is the one that counts.
                let _ = expected_in.send(expected);
            }
            Ok(())
        },
        |rx| {
            let keys_in = keys_in;
            let (mut asked, mut answered) = (plan.frames(), plan.frames());
            for f in 0..asked.len() + AHEAD {
                if f >= AHEAD {
                    let n_slots = answered.next().map_or(0, |(_, n_bins)| n_bins * plan.slots_of_bin());
                    let answers = rx.recv_bytes(plan.answers(), n_slots * plan.tag)?;
                    let expected = expected_out.recv().map_err(|_| consequence())?;
                    // 5. R learns whether s = s*.
                    let pairs = answers.chunks_exact(plan.tag).zip(expected.chunks_exact(plan.tag));
                    let differ = |a: &[u8], b: &[u8]| a.iter().zip(b).fold(0, |d, (a, b)| d | (a ^ b));
                    bits.extend(&Secrets::from(pairs.map(|(a, b)| differ(a, b) == 0).collect::<Vec<_>>()));
                }
                // 1. S's inputs of the OPRF, of which R gets the keys.
                if let Some((_, n_bins)) = asked.next() {
                    let _ = keys_in.send(oprf.keys(rx, n_bins * plan.slots_of_bin())?);
                }
            }
            Ok(())
        },
    )?;
    Ok(bits)
}

/// S's part, with the hashes of the items and dummies of X, of which the first `real` are items: a dummy takes part like
/// an item until it counts as the bottom item, so that the number of dummies shows nowhere. Returns what is in the
/// slots: positions in X, or [`BOTTOM`].
///
/// # Errors
/// As those of [`crate::operations`].
pub fn sender(cx: &mut Context, plan: &Binning, x: &[Input], real: usize) -> Result<Secrets<u32>> {
    plan.announce(cx.ch);
    let table = hash_into_bins(cx, plan, false, x)?;
    let threads = cx.threads;
    let order = threads.run(|| fill_and_permute(plan, &table, cx.rng));
    let coder = Coder::new(&cx.session, OPRF);
    let (mut codes, bottom) = threads.run(|| (coder.codes(x), coder.codes(&[bottom()])));
    // Dummies count as the bottom item. All codes are passed over alike, so that the time does not show how many
    // dummies there are.
    let by_position = codes.par_iter_mut().enumerate();
    threads.run(|| {
        by_position.for_each(|(i, code)| {
            code.conditional_assign(&bottom[0], Choice::from(u8::from(i >= real)));
        });
    });
    let mut oprf = kkrt::Receiver::setup(cx, OPRF, plan.width)?;
    let mut peqt = match plan.peqt {
        Some(width) => Some(kkrt::Sender::setup(cx, PEQT, width)?),
        None => None,
    };
    let peqt_coder = Coder::new(&cx.session, PEQT);
    let (outputs_in, outputs_out) = mpsc::channel::<Secrets<Output>>();
    let (answers_in, answers_out) = mpsc::channel::<Secrets<u8>>();
    cx.ch.duplex(
        |tx| {
            let (outputs_in, answers_out) = (outputs_in, answers_out);
            let asked = plan.frames();
            let count = asked.len();
            let mut frames = order.chunks(plan.per_frame * plan.slots_of_bin());
            for f in 0..count + AHEAD {
                if f >= AHEAD {
                    tx.send_bytes(plan.answers(), &answers_out.recv().map_err(|_| consequence())?)?;
                }
                // 1. S is the receiver of the OPRF, with the items of its slots.
                if let Some(slots) = frames.next() {
                    let code = |&item: &u32| *codes.get(item as usize).unwrap_or(&bottom[0]);
                    let codes = Secrets::from(slots.iter().map(code).collect::<Vec<_>>());
                    let _ = outputs_in.send(oprf.evaluate(tx, &codes)?);
                }
            }
            Ok(())
        },
        |rx| {
            let answers_in = answers_in;
            for (_, n_bins) in plan.frames() {
                let n_slots = n_bins * plan.slots_of_bin();
                let polynomials = rx.recv_bytes(POLYNOMIALS, n_slots * plan.polynomial_bytes())?;
                let keys = match &mut peqt {
                    Some(peqt) => Some(peqt.keys(rx, n_slots)?),
                    None => None,
                };
                let outputs = outputs_out.recv().map_err(|_| consequence())?;
                // 4. s* = P(q*) - t*
                let s = threads.run(|| evaluate(plan, &polynomials, &outputs));
                // 5. PEQT: S has the keys.
                let answers = match keys {
                    Some(keys) => {
                        let codes = threads.run(|| codes_of(&peqt_coder, &s));
                        tags(&threads.run(|| values_at(&keys, &codes)), plan.tag)
                    }
                    None => values(&s, plan.tag),
                };
                let _ = answers_in.send(answers);
            }
            Ok(())
        },
    )?;
    Ok(order)
}

/// Slots that are worth a task of their own.
const BATCH: usize = 256;

/// The item that both have.
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

/// F_j of code j in each instance of a frame.
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

/// The elements, of `bytes` bytes each.
fn values(s: &[u128], bytes: usize) -> Secrets<u8> {
    let mut values = Secrets::zeros(s.len() * bytes);
    values.chunks_exact_mut(bytes).zip(s).for_each(|(to, s)| to.copy_from_slice(&s.to_le_bytes()[..bytes]));
    values
}

#[cfg(test)]
mod tests;
