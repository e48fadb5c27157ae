//! Sum: both learn how many items match, and the sender learns the sum of its values over the matches (CZZDL
//! 8.1, Figure 12, "card-sum").
//!
//! Security: that of the semi-honest mqRPMT and OT; nothing binds the receiver's choices to its bits. Leakage: |X| and |X n Y|
//! to the receiver; |Y|, |X n Y| and the sum to the sender. A sender that chooses its values (powers of two) can encode the
//! intersection in the sum. Cost in addition to the mqRPMT, per item: ceil(128 / k) / 8 bytes (for the k of
//! [`crate::ot::extension`]) and one number modulo q.
//!
//! q is 2^64 or 2^128 by agreement, so it does not depend on the data. For every value v, -q/2 <= n_x v < q/2 must hold;
//! the sender checks it ([`fits`]).
//!
//! The figure sends r_i and r_i + v_i under two pads. Here m_0 and m_1 are masks derived from these pads (`ot/masks.rs`),
//! r_i = m_0, and S sends only d_i = r_i + v_i - m_1: half the traffic, the same distribution.
//!
//! Below the agreed minimum count the receiver sends only "below minimum". The sender then learns neither count
//! nor sum; the receiver still learns the count.

use super::cost::{Transfer, framed, transfer};
use super::{Fact, Learned, Operation, OverMqrpmt, Role, Rows, Sealed, Shape, Task, Terms, Uses, matches};
use crate::channel::{Message, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::{Dummies, HashedSet};
use crate::membership::Mqrpmt;
use crate::ot::Security;
use crate::ot::extension::{self, FRAME};
use crate::ot::masks::masks;
use crate::ot::transfer::AHEAD;
use zeroize::Zeroizing;

const PURPOSE: &str = "sum by mqRPMT, OT of terms";
const D_64: Message<[u8; 8]> = Message::new(0x51, "S->R  r_i + v_i under the second pad, modulo 2^64");
const D_128: Message<[u8; 16]> = Message::new(0x52, "S->R  r_i + v_i under the second pad, modulo 2^128");
/// Bytes of the result: a flag, the number of matches and the masked sum.
pub(crate) const RESULT_BYTES: usize = 25;

const RESULT: Message<[u8; RESULT_BYTES]> = Message::new(0x53, "R->S  number of matches and masked sum");

/// The modulus q of the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Modulus {
    /// 2^64.
    #[default]
    Bits64,
    /// 2^128.
    Bits128,
}

impl Modulus {
    /// The size of the modulus in bits: q = 2^bits.
    pub const fn bits(self) -> u32 {
        match self {
            Modulus::Bits64 => 64,
            Modulus::Bits128 => 128,
        }
    }

    /// x modulo q.
    fn reduce(self, x: u128) -> u128 {
        x & (u128::MAX >> (128 - self.bits()))
    }

    /// The signed number of least absolute value that is congruent to x modulo q.
    fn signed(self, x: u128) -> i128 {
        let shift = 128 - self.bits();
        ((x << shift) as i128) >> shift
    }
}

/// The result of the sender of sum, unless there were fewer matches than the agreed minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// The number of items in both sets.
    pub matches: u64,
    /// The sum of the sender's values over the matches.
    pub sum: i128,
}

/// Whether all sums of up to `n` values stay in the signed range of the modulus: -q/2 <= n * v < q/2 for all v.
pub fn fits(modulus: Modulus, n: usize, values: &[i128]) -> bool {
    let (above, below) = bounds(n as u64, values);
    let half = 1 << (modulus.bits() - 1);
    above.is_some_and(|above| above < half) && below.is_some_and(|below| below <= half)
}

/// Returns bounds on how far a sum of up to `n` of these values can be above 0, and how far below; `None` beyond 128 bits.
fn bounds(n: u64, values: &[i128]) -> (Option<u128>, Option<u128>) {
    let farthest = |value: fn(i128) -> i128| {
        let one = values.iter().map(|&v| value(v).unsigned_abs()).max().unwrap_or(0);
        one.checked_mul(n.into())
    };
    (farthest(|v| v.max(0)), farthest(|v| v.min(0)))
}

/// Both learn how many items match, and the sender learns the sum of its values over the matches.
pub static SUM: Operation = Operation {
    name: "sum",
    summary: "Both learn how many keys match; the sender also learns the sum of its values over them",
    about: "Both learn the number of matches. The sender, who owns the values, learns their sum over the matches; the \
            receiver does not.",
    uses: Uses { rows: Rows::None, both: false, values: true, shares: false },
    sender_dummies: Dummies::Random,
    learns: |role, terms| match (role, terms.min_count) {
        (Role::Receiver, _) => vec![Fact::HowManyMatch],
        (Role::Sender, 0) => vec![Fact::HowManyMatch, Fact::Sum],
        (Role::Sender, least) => vec![Fact::HowManyMatch, Fact::Sum, Fact::OnlyThatFewer(least)],
    },
    result: |role, _| match role {
        Role::Receiver => Shape::Matches,
        Role::Sender => Shape::Sum,
    },
    plain: |data| {
        let matches = data.matches();
        let matching = data.x.iter().zip(data.values).filter(|(item, _)| data.in_y(item));
        let sum = Sum { matches, sum: matching.map(|(_, value)| value).sum() };
        [Learned::Matches(matches), Learned::Sum((matches >= data.terms.min_count).then_some(sum))]
    },
    sends_on: |_| 0,
    over_mqrpmt: Some(OverMqrpmt {
        transfer: Some(|deal, n_x| {
            let rows = transfer(n_x, deal.terms.modulus.bits() as usize / 8, Some(FRAME));
            // The result answers the rows; without rows it is sent with the end of the setup.
            let rounds = rows.rounds + usize::from(n_x > 0);
            Transfer { step: rows.step.sends(framed(1, 1, RESULT_BYTES), 0), rounds, ..rows }
        }),
        // A mask and a term for each OT of a frame; the sender's take the place of its row.
        held: |_, _, n_x| [32 * n_x.min(FRAME), 0],
        run: |test, task, cx, n| {
            let Task { set, values, ref terms, .. } = *task;
            Ok(match task.role {
                Role::Receiver => receiver(test, cx, set, n, terms)?.map(Learned::Matches),
                Role::Sender => sender(test, cx, set, values, n, terms)?.map(Learned::Sum),
            })
        },
    }),
    over_sigma: None,
    over_union: None,
};

/// Runs the receiver with set `y`; the sender's set has `n_x` items. Returns the number of matches.
pub(crate) fn receiver<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    y: &HashedSet,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, u64>> {
    // 1. P1 obtains the bits e.
    let e = protocol.server(cx, y, n_x)?;
    let count = e.iter().filter(|&&e| e).count().min(y.len()) as u64;
    // 2. P1 uses the bits as choices and adds up the values it obtains: S' = sum of r_i + e_i v_i mod q.
    cx.ch.stage("summing", Unit::Items, n_x);
    let mut ot = extension::Receiver::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
    // As in a transfer, the pads are queued until the sender answers.
    let ((), sum) = cx.ch.duplex_with_queue(
        AHEAD,
        |tx, pads| e.chunks(FRAME).try_for_each(|choices| pads.put(ot.pads(tx, choices)?)),
        |rx, queue| {
            let (mut sum, mut at) = (0u128, 0);
            for choices in e.chunks(FRAME) {
                let d: Vec<u128> = match terms.modulus {
                    Modulus::Bits64 => rx.recv(D_64, choices.len())?.iter().map(|d| number(d)).collect(),
                    Modulus::Bits128 => rx.recv(D_128, choices.len())?.iter().map(|d| number(d)).collect(),
                };
                for ((mask, d), &e) in masks(at, &queue.take()?).iter().zip(d).zip(choices) {
                    // No branch on e: the time must not reveal the bits.
                    sum = sum.wrapping_add(*mask).wrapping_add(d & u128::from(e).wrapping_neg());
                }
                at += choices.len();
            }
            Ok(sum)
        },
    )?;
    // P1 sends S' and the number of matches to P2, or zeros if there are too few matches.
    let mut result = [0u8; RESULT_BYTES];
    if count >= terms.min_count {
        result[0] = 1;
        result[1..9].copy_from_slice(&count.to_le_bytes());
        result[9..].copy_from_slice(&terms.modulus.reduce(sum).to_le_bytes());
    }
    cx.ch.tx.send(RESULT, &[result])?;
    let n_y = y.len();
    Ok(Sealed::new(move || Ok(matches(&e, n_y)? as u64)))
}

/// Runs the sender with set `x` and a value per item; dummies have none and count as 0. The receiver's set has `n_y` items.
/// Returns `None` if there were fewer matches than the agreed minimum.
///
/// # Errors
/// The errors of the protocol, [`Error::Peer`] for a result that is impossible for these sizes and terms, and [`Error::Bug`]
/// if there is not exactly one value per item, or the values do not fit the modulus. Whether the sum is possible for the
/// values is sealed.
pub(crate) fn sender<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    x: &HashedSet,
    values: &'a [i128],
    n_y: usize,
    terms: &Terms,
) -> Result<Sealed<'a, Option<Sum>>> {
    if values.len() != x.items().len() || !fits(terms.modulus, x.len(), values) {
        return Err(Error::Bug("the values do not belong to the items, or do not fit the modulus".into()));
    }
    // 0. and 1. X and V in the same random order; P2 obtains nothing.
    let order = protocol.client(cx, x, n_y)?;
    cx.ch.stage("summing", Unit::Items, x.len());
    let mut ot = extension::Sender::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
    // 2. P2 takes the mask of the first pad as r_i, uniform modulo q; r' = sum of r_i.
    let mut total = Zeroizing::new(0u128);
    let mut at = 0;
    for n in frames(x.len(), FRAME) {
        let pads = ot.pads(&mut cx.ch.rx, n)?;
        let [first, second] = [false, true].map(|choice| masks(at, &pads.of(choice)));
        let d: Vec<u128> = first
            .iter()
            .zip(second.iter())
            .zip(&order[at..at + n])
            .map(|((r, other), &i)| {
                *total = total.wrapping_add(*r);
                // Where e_i = 1 the receiver has the other mask, and adds this to obtain r_i + v_i.
                r.wrapping_add(values.get(i as usize).copied().unwrap_or(0) as u128).wrapping_sub(*other)
            })
            .collect();
        match terms.modulus {
            Modulus::Bits64 => {
                cx.ch.tx.send(D_64, &d.iter().map(|d| (*d as u64).to_le_bytes()).collect::<Vec<_>>())?
            }
            Modulus::Bits128 => {
                cx.ch.tx.send(D_128, &d.iter().map(|d| d.to_le_bytes()).collect::<Vec<_>>())?
            }
        }
        at += n;
    }
    // P2 computes S = S' - r' mod q.
    let result = cx.ch.rx.recv(RESULT, 1)?;
    let result = result.first().ok_or_else(|| Error::Bug("a message of one element was empty".into()))?;
    let (matches, masked) = (number(&result[1..9]) as u64, number(&result[9..25]));
    let sum = terms.modulus.signed(masked.wrapping_sub(*total));
    let possible = matches >= terms.min_count
        && matches <= x.len().min(n_y) as u64
        && terms.modulus.reduce(masked) == masked;
    match result[0] {
        0 if result[1..] == [0; 24] && terms.min_count > 0 => Ok(Sealed::new(|| Ok(None))),
        // The receiver must not learn whether these values can have this sum. Otherwise it could shift the sum until they
        // cannot.
        1 if possible => Ok(Sealed::new(move || match can_be(sum, matches, values) {
            true => Ok(Some(Sum { matches, sum })),
            false => Err(Error::misbehaves_unseen(format!("{matches} matches cannot have the sum it sent"))),
        })),
        _ => Err(Error::misbehaves(format!(
            "its result ({matches} matches) is not possible for these sets and terms"
        ))),
    }
}

/// Whether this sum is within the [`bounds`] on the sums of up to `matches` of these values.
fn can_be(sum: i128, matches: u64, values: &[i128]) -> bool {
    let (above, below) = bounds(matches, values);
    let farthest = if sum < 0 { below } else { above };
    farthest.is_none_or(|farthest| sum.unsigned_abs() <= farthest)
}

/// Decodes a little-endian number.
fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |n, &b| n << 8 | u128::from(b))
}

#[cfg(test)]
#[path = "sum_tests.rs"]
mod tests;
