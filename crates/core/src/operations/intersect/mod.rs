//! Intersect: the receiver learns which of its items the sender has, and their payload if the sender agreed to
//! send one. The sender learns nothing, unless both get the result.

pub mod dh_psi;
pub mod mqrpmt;
pub mod oprf;
pub(crate) mod rows;
pub(crate) mod tags;

use super::both::BITS_FRAME;
use super::cost::{Deal, Transfer, framed, grown, transfer};
use super::{Fact, Learned, Operation, OverMqrpmt, Role, Rows, Sealed, Shape, Task, Uses};
use crate::error::{Error, Result};
use crate::hashed::Dummies;
use crate::item::{ItemSet, Items};
use crate::secret::Secrets;

/// The receiver learns which of its items the sender has.
pub static INTERSECT: Operation = Operation {
    name: "intersect",
    summary: "The receiver learns which of its rows the sender has",
    about: "The receiver learns which of its keys the sender has too. The result is the receiver's rows with these keys; \
            of several rows with the same key, the first.",
    uses: Uses { rows: Rows::Payloads, both: true, values: false, shares: false },
    sender_dummies: Dummies::Random,
    learns: |role, terms| match (role, terms.both) {
        (Role::Receiver, _) | (Role::Sender, true) => vec![Fact::WhichMatch],
        (Role::Sender, false) => vec![],
    },
    result: |role, terms| match (role, terms.both) {
        (Role::Receiver, _) | (Role::Sender, true) => Shape::OwnRows,
        (Role::Sender, false) => Shape::Nothing,
    },
    plain: |data| {
        let matching = |own: &ItemSet, other: &ItemSet| -> Vec<u32> {
            (0..own.len() as u32).filter(|&i| other.iter().any(|item| item == own.get(i as usize))).collect()
        };
        let ours = matching(data.y, data.x);
        let place = |i: &u32| data.x.iter().position(|item| item == data.y.get(*i as usize));
        let payloads = ours.iter().filter_map(|i| data.payload(place(i)?)).collect();
        let theirs = Matching { positions: matching(data.x, data.y), payloads: Items::new() };
        let ours = Matching { positions: ours, payloads };
        [Learned::Matching(ours), data.sent_on(Learned::Matching(theirs))]
    },
    // One bit per query.
    sends_on: |deal| framed(deal.sender.size.div_ceil(8), BITS_FRAME / 8, 1),
    over_mqrpmt: Some(OverMqrpmt {
        transfer: Some(|deal, n_x| {
            let rows = transfer(n_x, rows::width(&deal.terms), None);
            // The receiver sends the bits on, if there are any.
            Transfer { rounds: rows.rounds + usize::from(deal.terms.both && n_x > 0), ..rows }
        }),
        // Receiver: digests and payloads of the matches, then digests of all items. Sender: the matches' positions in order.
        held,
        run: |test, task, cx, n| {
            let Task { set, payloads, ref terms, .. } = *task;
            Ok(match task.role {
                Role::Receiver => mqrpmt::receiver(test, cx, set, n, terms)?.map(Learned::Matching),
                Role::Sender => {
                    let found = mqrpmt::sender(test, cx, set, payloads, n, terms)?;
                    Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching)))
                }
            })
        },
    }),
    over_sigma: None,
    over_union: None,
};

/// Bytes that the receiver holds for digests and payloads of the matches and then for digests of all items, and that the
/// sender holds for the matches' positions in order.
pub(crate) fn held(deal: &Deal, n_y: usize, n_x: usize) -> [usize; 2] {
    let payload = if deal.terms.payload { deal.terms.max_row + 8 } else { 0 };
    let found = 20 * n_y + grown(n_y.min(n_x), rows::DIGEST + payload);
    [found, usize::from(deal.terms.both) * 5 * n_x]
}

/// The result of a party of an intersection.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Matching {
    /// The positions of the matching items in the party's set, ascending.
    pub positions: Vec<u32>,
    /// For the receiver, the sender's payload of each matching item; empty if none was agreed.
    pub payloads: Items,
}

/// Sorts matches by position. `positions` is `None` if the sender's rows were malformed; a position of `n` or
/// more would be a dummy. There are as many payloads as matches, or none.
fn sort(positions: Option<Vec<u32>>, payloads: &Items, n: usize) -> Result<Matching> {
    let inconsistent = || {
        Error::misbehaves_unseen(
            "a row it sent does not belong to the match it stands for (by chance this happens with probability \
             2^-40)",
        )
    };
    let positions = positions.ok_or_else(inconsistent)?;
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_unstable_by_key(|&i| positions[i]);
    let sorted: Vec<u32> = order.iter().map(|&i| positions[i]).collect();
    if sorted.windows(2).any(|w| w[0] == w[1]) || sorted.last().is_some_and(|&last| last as usize >= n) {
        return Err(inconsistent());
    }
    let payloads = match payloads.is_empty() {
        true => Items::new(),
        false => order.iter().map(|&i| payloads.get(i)).collect(),
    };
    Ok(Matching { positions: sorted, payloads })
}

/// The matches that the receiver sent on, as positions in our set of `n` items. Query j was the item or dummy at
/// `order[j]`.
pub(crate) fn sent_on<'a>(order: Secrets<u32>, e: Secrets<bool>, n: usize) -> Sealed<'a, Matching> {
    Sealed::new(move || {
        let positions = order.iter().zip(e.iter()).filter(|(_, e)| **e).map(|(&i, _)| i).collect();
        sort(Some(positions), &Items::new(), n)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;

    #[test]
    fn matches_are_sorted_and_those_that_cannot_be_are_refused() {
        let payloads: Items = ["c", "a", "b"].iter().collect();
        let sorted = |positions: Option<&[u32]>| sort(positions.map(<[u32]>::to_vec), &payloads, 5);
        let good = sorted(Some(&[4, 0, 2])).ok().unwrap();
        assert!(good.positions == [0, 2, 4] && good.payloads == ["a", "b", "c"].iter().collect());
        // A repeated position, a dummy, and malformed rows.
        for positions in [Some(&[4, 0, 4][..]), Some(&[4, 0, 5]), None] {
            assert!(
                matches!(sorted(positions), Err(Error::Peer { fault: Fault::Misbehaved, .. })),
                "{positions:?}"
            );
        }
    }
}
