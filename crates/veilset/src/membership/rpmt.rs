//! Reverse private membership tests of many items, in bins (KRTW19 4, Figures 6 and 7), with the correction of the
//! polynomial.
//!
//! The receiver R holds a set Y, the sender S a set X. Both throw their items into bins by one hash function
//! ([`crate::hashing`]), and each bin of S is filled up to m_s + 1 *slots* with copies of an item that both have, the
//! bottom item. R learns a bit for each slot, whether what S has in it is in R's bin or is the bottom item; S learns
//! nothing. The slots of a bin are in a secret random order.
//!
//! Security: semi-honest, of the OPRF ([`crate::oprf::kkrt`]); AES-128 a pseudorandom function. Leakage: the sizes;
//! with a probability of 2^-40, that items had to be thrown again, and by whom. Without the private comparison
//! ([`Comparison::Plain`]) R also gets s* of each slot, on which it can test guesses of an item that is not in Y: to be
//! used only where it gets those items anyway, and even then a run that breaks off before leaves it with that.
//! Cost: for each slot an OPRF (a code of S, 424 to 480 bits) and a polynomial of m_r + 1 coefficients of R, and the
//! comparison: an OPRF the other way and a tag, or an element of the field. R evaluates the OPRF for each slot and
//! each item of the bin.
//!
//! For each slot R picks s, S has the input x*, and every output of the OPRF is cut into a pair (q, t). R sends a
//! polynomial P with P(q_i) = s + t_i for the items of its bin and the bottom item, and S computes
//! s* = P(q*) - t*, which is s if x* is one of them and random otherwise.
//!
//! Departures from the paper:
//! - Printed is P = s + the product of all x - q_i. S knows q*, and P - P(q*) splits into linear factors exactly if x*
//!   is in the bin, otherwise it has about two; with the random factor of 5.3 it has the roots of the real items. So
//!   it is built with a second half t, and P is uniform among the polynomials of its length with those values: uniform
//!   among all, whether x* is in the bin or not (DESIGN 4). A test breaks the printed ones.
//! - Bounds on the items of a bin for each party ([`Bins::best`]).
//! - The hash function of the bins comes from a coin toss that begins after the sizes, and so the inputs, are fixed.
//!   R commits itself, so that neither party can fit the function to the inputs.
//! - Bits of an element: L + log2 of slots times m_r + 1, L from the budget: with what probability some slot is wrong
//!   because s* is s by chance, or an item is lost because two of R's meet in q.
//!
//! What the time of R shows: how many points its polynomials go through follows from the loads of its bins, and these
//! from its items. So each frame of bins is filled up with random points to one number that follows from the sizes, as
//! evenly as it goes; frames take the same number of evaluations, products and random bytes but for second-order
//! differences of the interpolation between bins of unequal load. The order of memory accesses within R follows from
//! its items and is not hidden.

use crate::channel::{Channel, Message, frames};
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId};
use crate::hashing::{Bins, Table, bound_of};
use crate::oprf::kkrt::{self, Code, Coder, Keys};
use crate::oprf::{Input, Output};
use crate::params::{LAMBDA, ceil_log2, share};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use rayon::prelude::*;
use std::sync::mpsc;
use subtle::{Choice, ConditionallySelectable};
use veilset_kernels::aes::Aes128;
use veilset_kernels::polynomial::{self, Field, Shape};

/// How many frames the sender's OPRF inputs are ahead of its answers: so many frames of polynomials, about 2.3 MiB
/// each, may be under way. R holds the keys of as many frames, 256 KiB each, and two frames of polynomials; S the
/// outputs of as many, 128 KiB each, and two frames of polynomials.
const AHEAD: usize = 4;
/// The most items of R and of S in a bin: polynomials of at most 256 coefficients, and a bin fits into a frame.
const LARGEST: (usize, usize) = (255, kkrt::FRAME - 1);
/// How often items are thrown into bins, each time in vain with a probability of at most 2^-40.
const TRIES: usize = 3;

const OPRF: &str = "RPMT, OPRF of the items";
const PEQT: &str = "RPMT, OPRF for the private equality test";

const COMMITMENT: Message<[u8; 32]> = Message::new(0xa1, "R->S  commitment to a share of the bin hash");
const SHARE: Message<[u8; 32]> = Message::new(0xa2, "S->R  share of the bin hash");
const OPENING: Message<[u8; 32]> = Message::new(0xa3, "R->S  the share that was committed to");
const FIT: Message<[u8; 1]> = Message::new(0xa4, "both  whether the items fit into the bins");
const POLYNOMIALS: Message<[u8]> = Message::new(0xa5, "R->S  RPMT polynomials");
const TAGS: Message<[u8]> = Message::new(0xa6, "S->R  RPMT tags of s*");
const VALUES: Message<[u8]> = Message::new(0xa7, "S->R  RPMT s*");

/// The number of a slot's item that stands for the bottom item.
pub const BOTTOM: u32 = u32::MAX;

/// How s and s* are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// By a private equality test: R has an input s of an OPRF and S sends a part of its value at s*.
    Private,
    /// S sends s*.
    Plain,
}

/// All sizes, from public ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    bins: Bins,
    field: Field,
    /// Of the OPRF's codes.
    width: usize,
    /// Of the codes of the private comparison.
    peqt: Option<usize>,
    /// Bytes by which a slot is compared.
    tag: usize,
    /// Bins of a frame.
    per_frame: usize,
    /// The most items of R in the bins of a frame.
    in_frame: usize,
}

impl Plan {
    /// The plan of least traffic for sets of these sizes, if each slot is worth `beside` more bytes to whoever uses
    /// its bit.
    ///
    /// # Errors
    /// [`Error::Usage`] for sets that are too large.
    pub fn new(comparison: Comparison, n_r: usize, n_s: usize, beside: usize) -> Result<Plan> {
        let cost = |bins: &Bins| match Plan::of(comparison, (n_r, n_s), *bins) {
            Ok(plan) => {
                let slot = plan.slot_bytes();
                plan.slots() as u64 * (slot.0 + slot.1 + beside) as u64
            }
            Err(_) => u64::MAX,
        };
        // That a bin of R, a bin of S or a frame of R is too full are half a bit each, half a bit and one bit.
        let bins = Bins::best(share(LAMBDA, 2), (n_r, n_s), LARGEST, cost);
        let mut plan = Plan::of(comparison, (n_r, n_s), bins)?;
        let sets = bins.number.div_ceil(plan.per_frame);
        plan.in_frame = bound_of(share(LAMBDA, 2), n_r, sets, plan.per_frame, bins.number);
        Ok(plan)
    }

    /// The plan for these bins, but for the bound of frames, which is slow to find.
    fn of(comparison: Comparison, (n_r, n_s): (usize, usize), bins: Bins) -> Result<Plan> {
        let (slots, coefficients) = (bins.number * (bins.sender + 1), bins.receiver + 1);
        let private = comparison == Comparison::Private;
        // Undetected: a slot is compared wrongly by its polynomial, or by its tag.
        let exponent = share(LAMBDA, if private { 2 } else { 1 });
        let bits = exponent + ceil_log2(slots * coefficients);
        let too_large = || {
            Error::Usage(format!(
                "sets of {n_r} and {n_s} items are too large for krtw19: it takes a field of {bits} bits"
            ))
        };
        let field = Field::ALL.into_iter().find(|field| field.bits() >= bits).ok_or_else(too_large)?;
        // R evaluates the OPRF at each item of a bin for each of its slots. The codes of both OPRFs share 2^-40.
        let width = kkrt::width(exponent, (bins.sender + 1) * (n_r + bins.number))?;
        let peqt = if private { Some(kkrt::width(exponent, slots)?) } else { None };
        let tag = match private {
            true => (exponent + ceil_log2(slots)).div_ceil(8) as usize,
            false => field.bytes(),
        };
        let per_frame = (kkrt::FRAME / (bins.sender + 1)).clamp(1, bins.number);
        Ok(Plan { bins, field, width, peqt, tag, per_frame, in_frame: 0 })
    }

    /// The bins.
    pub fn bins(&self) -> &Bins {
        &self.bins
    }

    /// The number of slots: of tests.
    pub fn slots(&self) -> usize {
        self.bins.number * self.in_bin()
    }

    /// Slots of a bin.
    fn in_bin(&self) -> usize {
        self.bins.sender + 1
    }

    /// The coefficients of a polynomial.
    fn coefficients(&self) -> usize {
        self.bins.receiver + 1
    }

    /// Bytes of a polynomial.
    fn polynomial(&self) -> usize {
        self.coefficients() * self.field.bytes()
    }

    /// Bytes of a slot, to the sender and to the receiver, without what a frame fills up.
    fn slot_bytes(&self) -> (usize, usize) {
        (self.polynomial() + self.peqt.unwrap_or(0) / 8, self.width / 8 + self.tag)
    }

    /// The first bin and the number of bins of each frame.
    fn frames(&self) -> impl ExactSizeIterator<Item = (usize, usize)> + use<> {
        let per_frame = self.per_frame;
        frames(self.bins.number, per_frame).enumerate().map(move |(f, bins)| (f * per_frame, bins))
    }

    /// Bytes of all frames, headers included, if items are thrown once: to the sender and to the receiver.
    pub fn traffic(&self) -> (u64, u64) {
        const HEADER: usize = crate::channel::HEADER;
        // The toss, and the base OTs: 64 bytes from who chooses, 32 back.
        let mut to_sender = 2 * (32 + HEADER) + 1 + HEADER + self.width * 64 + HEADER;
        let mut to_receiver = 32 + HEADER + 1 + HEADER + self.width * 32 + HEADER;
        let peqt = self.peqt.unwrap_or(0);
        if self.peqt.is_some() {
            to_receiver += peqt * 64 + HEADER;
            to_sender += peqt * 32 + HEADER;
        }
        for (_, bins) in self.frames() {
            let slots = bins * self.in_bin();
            let rows = slots.next_multiple_of(128) / 8;
            to_sender += slots * self.polynomial() + HEADER;
            to_receiver += rows * self.width + HEADER + slots * self.tag + HEADER;
            if self.peqt.is_some() {
                to_sender += rows * peqt + HEADER;
            }
        }
        (to_sender as u64, to_receiver as u64)
    }

    /// What S answers with, a slot.
    fn answers(&self) -> Message<[u8]> {
        if self.peqt.is_some() { TAGS } else { VALUES }
    }

    fn announce(&self, ch: &Channel) {
        let slot = self.slot_bytes();
        ch.stage("matching", crate::channel::Unit::Bytes, self.slots() * (slot.0 + slot.1));
    }
}

/// R's part, with the hashes of the items of Y. Returns a bit for each slot.
///
/// # Errors
/// As those of [`crate::operations`].
pub fn receiver(
    ch: &mut Channel,
    session: &SessionId,
    plan: &Plan,
    y: &[Input],
    rng: &mut Prng,
) -> Result<Secrets<bool>> {
    plan.announce(ch);
    let bins = throw(ch, session, plan, true, y, rng)?;
    let coder = Coder::new(session, OPRF);
    let (codes, bottom) = (coder.codes(y), coder.codes(&[bottom()]));
    // A generator of its own: forks of the caller's would be the same in another run.
    let r = ReceiverBins { plan, bins, codes, bottom, rng: rng.split() };
    let mut oprf = kkrt::Sender::setup(ch, session, OPRF, plan.width, rng)?;
    let mut peqt = match plan.peqt {
        Some(width) => Some(kkrt::Receiver::setup(ch, session, PEQT, width, rng)?),
        None => None,
    };
    let test = Coder::new(session, PEQT);
    // S is AHEAD frames of its inputs ahead of its answers, so no queue is longer.
    let (keys_in, keys_out) = mpsc::channel::<Keys>();
    let (expected_in, expected_out) = mpsc::channel::<Secrets<u8>>();
    let mut bits = Secrets::zeros(0);
    ch.duplex(
        |tx| {
            let (keys_out, expected_in) = (keys_out, expected_in);
            for (first, bins) in plan.frames() {
                let keys = keys_out.recv().map_err(|_| gone())?;
                // 2. and 3. R picks s and P, and sends the coefficients of P.
                let (polynomials, s) = r.polynomials(&keys, first, bins);
                tx.send_bytes(POLYNOMIALS, &polynomials)?;
                // 5. PEQT: R has the input s.
                let expected = match &mut peqt {
                    Some(peqt) => tags(&peqt.evaluate(tx, &codes_of(&test, &s))?, plan.tag),
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
                    let slots = answered.next().map_or(0, |(_, bins)| bins * plan.in_bin());
                    let answers = rx.recv_bytes(plan.answers(), slots * plan.tag)?;
                    let expected = expected_out.recv().map_err(|_| gone())?;
                    // 5. R learns whether s = s*.
                    let pairs = answers.chunks_exact(plan.tag).zip(expected.chunks_exact(plan.tag));
                    let differ = |a: &[u8], b: &[u8]| a.iter().zip(b).fold(0, |d, (a, b)| d | (a ^ b));
                    bits.extend(&Secrets::from(pairs.map(|(a, b)| differ(a, b) == 0).collect::<Vec<_>>()));
                }
                // 1. S's inputs of the OPRF, of which R gets the keys.
                if let Some((_, bins)) = asked.next() {
                    let _ = keys_in.send(oprf.keys(rx, bins * plan.in_bin())?);
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
pub fn sender(
    ch: &mut Channel,
    session: &SessionId,
    plan: &Plan,
    x: &[Input],
    real: usize,
    rng: &mut Prng,
) -> Result<Secrets<u32>> {
    plan.announce(ch);
    let bins = throw(ch, session, plan, false, x, rng)?;
    let order = slots(plan, &bins, rng);
    let coder = Coder::new(session, OPRF);
    let (mut codes, bottom) = (coder.codes(x), coder.codes(&[bottom()]));
    // Dummies count as the bottom item. All codes are passed over alike, so that the time does not show how many
    // dummies there are.
    codes.par_iter_mut().enumerate().for_each(|(i, code)| {
        code.conditional_assign(&bottom[0], Choice::from(u8::from(i >= real)));
    });
    let mut oprf = kkrt::Receiver::setup(ch, session, OPRF, plan.width, rng)?;
    let mut peqt = match plan.peqt {
        Some(width) => Some(kkrt::Sender::setup(ch, session, PEQT, width, rng)?),
        None => None,
    };
    let test = Coder::new(session, PEQT);
    let (outputs_in, outputs_out) = mpsc::channel::<Secrets<Output>>();
    let (answers_in, answers_out) = mpsc::channel::<Secrets<u8>>();
    ch.duplex(
        |tx| {
            let (outputs_in, answers_out) = (outputs_in, answers_out);
            let asked = plan.frames();
            let count = asked.len();
            let mut slots = order.chunks(plan.per_frame * plan.in_bin());
            for f in 0..count + AHEAD {
                if f >= AHEAD {
                    tx.send_bytes(plan.answers(), &answers_out.recv().map_err(|_| gone())?)?;
                }
                // 1. S is the receiver of the OPRF, with the items of its slots.
                if let Some(slots) = slots.next() {
                    let code = |&item: &u32| *codes.get(item as usize).unwrap_or(&bottom[0]);
                    let codes = Secrets::from(slots.iter().map(code).collect::<Vec<_>>());
                    let _ = outputs_in.send(oprf.evaluate(tx, &codes)?);
                }
            }
            Ok(())
        },
        |rx| {
            let answers_in = answers_in;
            for (_, bins) in plan.frames() {
                let slots = bins * plan.in_bin();
                let polynomials = rx.recv_bytes(POLYNOMIALS, slots * plan.polynomial())?;
                let keys = match &mut peqt {
                    Some(peqt) => Some(peqt.keys(rx, slots)?),
                    None => None,
                };
                let outputs = outputs_out.recv().map_err(|_| gone())?;
                // 4. s* = P(q*) - t*
                let s = opened(plan, &polynomials, &outputs);
                // 5. PEQT: S has the keys.
                let answers = match keys {
                    Some(keys) => {
                        let codes = codes_of(&test, &s);
                        let mut outputs = Secrets::<Output>::zeros(slots);
                        outputs.par_chunks_mut(BATCH).enumerate().for_each(|(b, outputs)| {
                            let from = b * BATCH;
                            let at = (from..from + outputs.len()).map(|j| (j, &codes[j]));
                            outputs.copy_from_slice(&keys.evaluate_all(at));
                        });
                        tags(&outputs, plan.tag)
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

fn gone() -> Error {
    Error::Network("the other direction failed".into())
}

/// The item that both have.
fn bottom() -> Input {
    Input::from_bytes(Domain::without_session("the bottom item of KRTW19").hash(&[]))
}

/// Throws our items into bins by a function from a coin toss, again if those of either party do not fit.
fn throw(
    ch: &mut Channel,
    session: &SessionId,
    plan: &Plan,
    is_receiver: bool,
    items: &[Input],
    rng: &mut Prng,
) -> Result<Table> {
    for attempt in 0..TRIES {
        let function = match is_receiver {
            true => toss_first(ch, session, attempt, rng)?,
            false => toss_second(ch, session, attempt, rng)?,
        };
        let bins = Table::new(&function, items, plan.bins.number);
        let fits = match is_receiver {
            true => bins.fullest(1) <= plan.bins.receiver && bins.fullest(plan.per_frame) <= plan.in_frame,
            false => bins.fullest(1) <= plan.bins.sender,
        };
        ch.tx.send(FIT, &[[u8::from(fits)]])?;
        let theirs = match ch.rx.recv(FIT, 1)?[..] {
            [[0]] => false,
            [[1]] => true,
            _ => {
                return Err(Error::misbehaves(
                    "it said neither that its items fit into the bins nor that not",
                ));
            }
        };
        match (fits, theirs) {
            (true, true) => return Ok(bins),
            (false, _) if attempt + 1 == TRIES => {
                return Err(Error::Bug(format!("our items do not fit into the bins {TRIES} times")));
            }
            _ => (),
        }
    }
    Err(Error::misbehaves(format!(
        "{TRIES} times its items did not fit into the bins, each time of probability 2^-40"
    )))
}

/// R's part of the coin toss for the function of the bins.
fn toss_first(ch: &mut Channel, session: &SessionId, attempt: usize, rng: &mut Prng) -> Result<Domain> {
    let ours = rng.bytes();
    ch.tx.send(COMMITMENT, &[commitment(session, attempt, &ours)])?;
    let theirs = ch.rx.recv(SHARE, 1)?;
    ch.tx.send(OPENING, &[ours])?;
    Ok(tossed(session, attempt, &ours, &theirs[0]))
}

/// S's part: a share is worth something only once it is known to be the one that was committed to.
fn toss_second(ch: &mut Channel, session: &SessionId, attempt: usize, rng: &mut Prng) -> Result<Domain> {
    let committed = ch.rx.recv(COMMITMENT, 1)?;
    let ours = rng.bytes();
    ch.tx.send(SHARE, &[ours])?;
    let theirs = ch.rx.recv(OPENING, 1)?;
    match commitment(session, attempt, &theirs[0]) == committed[0] {
        true => Ok(tossed(session, attempt, &theirs[0], &ours)),
        false => {
            Err(Error::misbehaves("its share of the bin hash is not the one that it committed itself to"))
        }
    }
}

/// Hides the share, which is as long as a key, and binds to it.
fn commitment(session: &SessionId, attempt: usize, share: &[u8; 32]) -> [u8; 32] {
    let domain = Domain::new(session, "RPMT commitment to a share of the bin hash");
    domain.hash(&[&(attempt as u64).to_le_bytes(), share])
}

fn tossed(session: &SessionId, attempt: usize, first: &[u8; 32], second: &[u8; 32]) -> Domain {
    let domain = Domain::new(session, "RPMT coin toss for the bin hash");
    let tossed = domain.hash(&[&(attempt as u64).to_le_bytes(), first, second]);
    Domain::new(&SessionId::of(tossed), "RPMT bin hash")
}

/// Fills the bins up with the bottom item and permutes each, so that the places of the bits say nothing.
fn slots(plan: &Plan, bins: &Table, rng: &mut Prng) -> Secrets<u32> {
    let mut order = Secrets::from(vec![BOTTOM; plan.slots()]);
    let rng = rng.split();
    order.par_chunks_mut(plan.in_bin()).enumerate().for_each(|(bin, slots)| {
        let places = rng.fork(bin as u64).permutation(slots.len());
        bins.bin(bin).iter().zip(places.iter()).for_each(|(&item, &place)| slots[place as usize] = item);
    });
    order
}

/// R's bins, with what it takes to make polynomials of them.
struct ReceiverBins<'a> {
    plan: &'a Plan,
    bins: Table,
    codes: Secrets<Code>,
    bottom: Secrets<Code>,
    rng: Prng,
}

impl ReceiverBins<'_> {
    /// The polynomials of all slots of `bins` bins from `first` on, and s of each slot.
    fn polynomials(&self, keys: &Keys, first: usize, bins: usize) -> (Vec<u8>, Secrets<u128>) {
        let (plan, in_bin) = (self.plan, self.plan.in_bin());
        // Of each bin the number of points: the items, the bottom item, and random ones.
        let needed = (first..first + bins).map(|bin| self.bins.bin(bin).len() + 1).collect::<Vec<_>>();
        let points = filled_up(needed.into(), plan.in_frame.min(bins * plan.bins.receiver) + bins);
        let mut polynomials = vec![0; bins * in_bin * plan.polynomial()];
        let mut s = Secrets::zeros(bins * in_bin);
        let out = polynomials.par_chunks_mut(in_bin * plan.polynomial()).zip(s.par_chunks_mut(in_bin));
        out.zip(&*points).enumerate().for_each(|(b, ((out, s), points))| {
            let items = self.bins.bin(first + b);
            // Behind the items stands the bottom item. What random points give is thrown away, but takes as long.
            let code = |i: usize| items.get(i).map_or(&self.bottom[0], |&item| &self.codes[item as usize]);
            let at = (0..points * in_bin).map(|p| (b * in_bin + p % in_bin, code(p / in_bin)));
            let outputs = keys.evaluate_all(at);
            let mut rng = self.rng.fork((first + b) as u64);
            opprf(plan.field, &outputs, items.len() + 1, s, out, &mut rng);
        });
        (polynomials, s)
    }
}

/// How many points bins get that need so many: together `most`, those with the fewest filled up first. So the sum of
/// what follows from the numbers of points varies least.
fn filled_up(mut points: Secrets<usize>, most: usize) -> Secrets<usize> {
    let mut missing = most.saturating_sub(points.iter().sum());
    while missing > 0 {
        let lowest = points.iter().copied().min().unwrap_or(0);
        for points in points.iter_mut().filter(|points| **points == lowest).take(missing) {
            *points += 1;
            missing -= 1;
        }
    }
    points
}

/// For each of the slots of a bin, as many as there is room in `s`: a uniform s, and the coefficients of a polynomial
/// that is uniform among those with P(q_i) = s + t_i for the first `real` points of the slot. (q_i, t_i) is output i
/// of the slot; those of all slots stand together, and the others count as random.
fn opprf(field: Field, outputs: &[Output], real: usize, s: &mut [u128], out: &mut [u8], rng: &mut Prng) {
    let slots = s.len();
    let length = out.len() / field.bytes() / slots;
    let points = outputs.len() / slots;
    let shape = Shape { instances: slots, points, free: length - points };
    let stream = Aes128::new(&Secret::new(rng.bytes()));
    // s, points and their values, and the coefficients of R.
    let mut noise = Secrets::<[u8; 16]>::zeros(slots * (1 + 2 * points + shape.free));
    stream.ctr(0, noise.as_flattened_mut());
    let mut noise = noise.iter().map(|block| u128::from_le_bytes(*block) & field.mask());
    s.iter_mut().zip(&mut noise).for_each(|(s, noise)| *s = noise);
    let (mut q, mut v) = (Secrets::zeros(outputs.len()), Secrets::zeros(outputs.len()));
    for list in [&mut q, &mut v] {
        list.iter_mut().zip(&mut noise).for_each(|(element, noise)| *element = noise);
    }
    // All points are random, then those of the bin's items are theirs.
    for (i, output) in outputs.iter().enumerate().take(slots * real) {
        let (first, second) = halves(output);
        (q[i], v[i]) = (first, s[i % slots] ^ second);
    }
    let coefficients = Secrets::from(noise.collect::<Vec<_>>());
    // Two outputs of a slot meet in q with a probability that the length of the field allows for: one is lost, and
    // the time shows it.
    while polynomial::interpolate(field, &shape, &q, &v, &coefficients, out).is_err() {
        for slot in 0..slots {
            for i in 0..points {
                let at = |i: usize| i * slots + slot;
                if (0..i).any(|before| (q[at(before)] ^ q[at(i)]) & field.mask() == 0) {
                    (q[at(i)], v[at(i)]) =
                        (u128::from_le_bytes(rng.bytes()), u128::from_le_bytes(rng.bytes()));
                }
            }
        }
    }
}

/// q and t, with bits above those of an element.
fn halves(output: &Output) -> (u128, u128) {
    let number = u128::from_le_bytes;
    let (mut q, mut t) = ([0; 16], [0; 16]);
    q.copy_from_slice(&output[..16]);
    t.copy_from_slice(&output[16..]);
    (number(q), number(t))
}

/// s* = P(q*) - t* of each slot.
fn opened(plan: &Plan, polynomials: &[u8], outputs: &[Output]) -> Secrets<u128> {
    let mut s = Secrets::zeros(outputs.len());
    let chunks = s.par_chunks_mut(BATCH).zip(outputs.par_chunks(BATCH));
    chunks.zip(polynomials.par_chunks(BATCH * plan.polynomial())).for_each(|((s, outputs), polynomials)| {
        let q = Secrets::from(outputs.iter().map(|output| halves(output).0).collect::<Vec<_>>());
        polynomial::evaluate(plan.field, plan.coefficients(), polynomials, &q, s);
        s.iter_mut().zip(outputs).for_each(|(s, output)| *s ^= halves(output).1 & plan.field.mask());
    });
    s
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
#[path = "rpmt_tests.rs"]
mod tests;
