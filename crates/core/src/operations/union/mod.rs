//! Union: the receiver learns the items of both sets, but nothing about which of its own items the sender has.
//! The sender learns nothing, unless both get the result.
//!
//! If the parties agree to reveal the count ([`Terms::reveal_count`]), this is union* (CZZDL 7, Figure 2): the sender
//! learns how many items match.

pub mod bins;
pub mod mqrpmt;
pub mod rows;
pub mod star;

use super::both::rows_per_frame;
use super::cost::{Deal, Transfer, framed, grown, transfer};
use super::row::Layout;
use super::{Fact, Learned, Operation, OverMqrpmt, OverSigma, Role, Rows, Sealed, Shape, Task, Terms, Uses};
use crate::hashed::Dummies;
use rows::New;
use std::collections::BTreeSet;

/// The receiver learns all items of both sets.
pub static UNION: Operation = Operation {
    name: "union",
    summary: "The receiver learns all keys of both sides",
    about: "The receiver learns every key that only the sender has, in the clear, and so how many match. It does not \
            learn which of its own keys the sender has too. The result is the receiver's rows (of several rows with \
            the same key, the first), then a row for each new key with the other cells empty.",
    uses: Uses { rows: Rows::Items, both: true, values: false, shares: false },
    sender_dummies: Dummies::Listed,
    learns: |role, terms| match (role, terms.both, terms.reveal_count) {
        (Role::Receiver, ..) | (Role::Sender, true, _) => vec![Fact::NewItems],
        (Role::Sender, false, true) => vec![Fact::HowManyMatch],
        (Role::Sender, false, false) => vec![],
    },
    result: |role, terms| match (role, terms.both, terms.reveal_count) {
        (Role::Receiver, ..) => Shape::AllRows,
        (Role::Sender, true, _) => Shape::Items,
        (Role::Sender, false, true) => Shape::Matches,
        (Role::Sender, false, false) => Shape::Nothing,
    },
    plain: |data| {
        let new = || (0..data.x.len()).filter(|&i| !data.in_y(data.x.get(i)));
        let items = new().map(|i| data.x.get(i)).collect();
        let payloads = new().filter_map(|i| data.payload(i)).collect();
        let all: BTreeSet<&[u8]> = data.y.iter().chain(data.x.iter()).collect();
        let sender = match data.terms.reveal_count {
            true => Learned::Matches(data.matches()),
            false => data.sent_on(Learned::Union(all.into_iter().collect())),
        };
        [Learned::New(New { items, payloads }), sender]
    },
    sends_on: |deal| {
        let width = Layout::<1>::of(&deal.terms).width();
        let most = deal.receiver.size + deal.sender.size;
        framed(1, 1, 8) + framed(most, rows_per_frame(width), width)
    },
    over_mqrpmt: Some(OverMqrpmt {
        transfer: Some(|deal, n_x| {
            let rows = transfer(n_x, rows::width(&deal.terms), None);
            let last = usize::from(deal.terms.both && n_x > 0);
            Transfer { rounds: rows.rounds + last, ..rows }
        }),
        held,
        run: |test, task, cx, n| {
            let Task { set, payloads, ref terms, .. } = *task;
            Ok(match task.role {
                Role::Receiver => mqrpmt::receiver(test, cx, set, n, terms)?.map(Learned::New),
                Role::Sender => {
                    let union = mqrpmt::sender(test, cx, set, payloads, n, terms)?;
                    Sealed::sent_on(union.map(|sealed| sealed.map(Learned::Union)))
                }
            })
        },
    }),
    over_sigma: Some(OverSigma::Star(|test, task, cx, n| {
        let Task { set, payloads, ref terms, .. } = *task;
        Ok(match task.role {
            Role::Receiver => star::receiver(test, cx, set, n, terms)?.map(Learned::New),
            Role::Sender => star::sender(test, cx, set, payloads, n, terms)?.map(Learned::Matches),
        })
    })),
    over_union: None,
};

/// Bytes of the new rows, of the hashes used to find duplicates, and of the union and its frames if both get it.
pub(crate) fn held(deal: &Deal, n_y: usize, n_x: usize) -> [usize; 2] {
    let Terms { max_row, both, .. } = deal.terms;
    let (both, all) = (usize::from(both), n_y + n_x);
    let frame = rows_per_frame(max_row + 8).min(all) * (max_row + 8);
    let new = grown(n_x, max_row + 8) + 32 * n_x;
    [new + both * (16 * all + frame), both * (grown(all, max_row + 8) + 16 * n_x + frame)]
}
