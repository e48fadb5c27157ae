//! Count: the receiver learns how many items the two sets share, and hence the size of the union (CZZDL 8.1,
//! Figure 12, "cardinality").
//!
//! Security: the mqRPMT's. Leakage: |X| and |X n Y| to the receiver, |Y| to the sender; |X n Y| to both if both get the
//! result. Cost: the mqRPMT's.
//!
//! Over permuted mqPMT the client learns the number (CZZDL Remark 7.1), so the receiver is the client.

use super::cost::framed;
use super::{
    Fact, Learned, Operation, OverMqrpmt, OverSigma, Role, Rows, Sealed, Shape, Task, Uses, both, matches,
};
use crate::context::Context;
use crate::error::Result;
use crate::hashed::{Dummies, HashedSet};
use crate::membership::Mqrpmt;
use crate::membership::permuted::{PermutedMqpmt, cardinality};

/// The receiver learns how many items match.
pub static COUNT: Operation = Operation {
    name: "count",
    summary: "The receiver learns how many keys both sides have",
    about: "The receiver learns the number of matches, and so the size of the union.",
    uses: Uses { rows: Rows::None, both: true, values: false, shares: false },
    sender_dummies: Dummies::Random,
    learns: |role, terms| match (role, terms.both) {
        (Role::Receiver, _) | (Role::Sender, true) => vec![Fact::HowManyMatch],
        (Role::Sender, false) => vec![],
    },
    result: |role, terms| match (role, terms.both) {
        // In a run of several parties, the size of the union is a different function.
        (Role::Receiver, _) if terms.several => Shape::Matches,
        (Role::Receiver, _) | (Role::Sender, true) => Shape::MatchesAndUnion,
        (Role::Sender, false) => Shape::Nothing,
    },
    plain: |data| {
        let matches = Learned::Matches(data.matches());
        [matches.clone(), data.sent_on(matches)]
    },
    sends_on: |_| framed(1, 1, 8),
    over_mqrpmt: Some(OverMqrpmt {
        transfer: None,
        held: |_, _, _| [0; 2],
        run: |test, task, cx, n| {
            let Task { set, terms, .. } = *task;
            Ok(match task.role {
                Role::Receiver => receiver(test, cx, set, n, terms.both)?.map(Learned::Matches),
                Role::Sender => {
                    let matches = sender(test, cx, set, n, terms.both)?;
                    Sealed::new(move || Ok(matches.map_or(Learned::Nothing, Learned::Matches)))
                }
            })
        },
    }),
    over_sigma: Some(OverSigma::Permuted(|test, task, cx, n| {
        let Task { set, terms, .. } = *task;
        match task.role {
            Role::Receiver => Ok(asking_receiver(test, cx, set, n, terms.both)?.map(Learned::Matches)),
            Role::Sender => {
                test.server(cx, set, n)?;
                let matches = sent_on(cx, set, n, terms.both)?;
                Ok(Sealed::new(move || Ok(matches.map_or(Learned::Nothing, Learned::Matches))))
            }
        }
    })),
    over_union: None,
};

/// Runs the receiver with set `y`; the sender's set has `n_x` items. Returns the number of matches, and sends it
/// on if `both` is set.
pub(crate) fn receiver<'a>(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    y: &HashedSet,
    n_x: usize,
    both: bool,
) -> Result<Sealed<'a, u64>> {
    // 1. P1 learns the bits; their Hamming weight is the cardinality.
    let bits = protocol.server(cx, y, n_x)?;
    if both {
        // Capped at |Y|: S must not see how often a repeated query matches.
        both::send_count(cx.ch, bits.iter().filter(|&&bit| bit).count().min(y.len()))?;
    }
    let n_y = y.len();
    Ok(Sealed::new(move || Ok(matches(&bits, n_y)? as u64)))
}

/// Runs the sender with set `x`; the receiver's set has `n_y` items. Returns the number of matches if `both` is
/// set.
pub(crate) fn sender(
    protocol: &dyn Mqrpmt,
    cx: &mut Context,
    x: &HashedSet,
    n_y: usize,
    both: bool,
) -> Result<Option<u64>> {
    protocol.client(cx, x, n_y)?;
    sent_on(cx, x, n_y, both)
}

/// Runs the receiver as the client with set `y`; the sender's set has `n_x` items. Otherwise identical to [`receiver`].
pub(crate) fn asking_receiver<'a>(
    protocol: &dyn PermutedMqpmt,
    cx: &mut Context,
    y: &HashedSet,
    n_x: usize,
    both: bool,
) -> Result<Sealed<'a, u64>> {
    let bits = protocol.client(cx, y, n_x)?;
    if both {
        // Capped at |X|: S must not see how often a repeated response matches.
        both::send_count(cx.ch, bits.iter().filter(|&&bit| bit).count().min(n_x))?;
    }
    Ok(Sealed::new(move || Ok(cardinality(&bits, n_x)? as u64)))
}

/// The number of matches that the receiver sends on to the sender with set `x`, if `both` is set.
fn sent_on(cx: &mut Context, x: &HashedSet, n_y: usize, both: bool) -> Result<Option<u64>> {
    match both {
        true => Ok(Some(both::recv_count(cx.ch, x.len().min(n_y))?)),
        false => Ok(None),
    }
}
