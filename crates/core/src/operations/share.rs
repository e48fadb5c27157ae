//! Shares: for each item of the sender, the two parties get shares that add up to the item if it matches, and to zero
//! otherwise (CZZDL 8.1, Figure 12, "card-secret-sharing"). They are the input of a further secure computation.
//!
//! ```text
//! 0. and 1.  mqRPMT on X in a secret random order pi: R learns e_j, whether X_pi(j) is in Y
//! 2.         shares by OT with choices e_j: R gets z_j, S gets s_j, and s_j + z_j = e_j X_pi(j)
//! ```
//!
//! The shared value is a row: the item and its length, padded to the agreed width ([`Sharing::Xor`]). So lengths are hidden,
//! and a match is never all zero, since no encoded key is empty. If the sender has values, its values are shared instead,
//! modulo 2^64 ([`Sharing::Additive`]); a value of 0 that matches then looks like no match.
//!
//! Security: that of the semi-honest mqRPMT and OT; nothing binds the receiver's choices to its bits. Leakage: |X| and the
//! number of matches to the receiver, and e_j for each position of the sender's secret order; |Y| to the sender. Both results
//! have all positions. A receiver that drops, marks or publishes positions according to their bits breaks the secrecy of the
//! shares.
//!
//! Cost in addition to the mqRPMT, per item: ceil(128 / k) / 8 bytes (for the k of [`crate::ot::extension`]) and one row.

use super::cost::{Deal, Transfer, transfer};
use super::row::Layout;
use super::{Fact, Learned, Operation, OverMqrpmt, Role, Rows, Sealed, Shape, Task, Terms, Uses, matches};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::Dummies;
use crate::membership::Mqrpmt;
use crate::ot::shares::{self, Sharing};
use crate::ot::{Security, extension};

const PURPOSE: &str = "shares by mqRPMT, OT of rows";
/// Bytes of a share of a value.
pub const VALUE: usize = 8;

/// The result of a party of `share`. It is secret, so it has no `Debug`; [`Learned`] shows only its kind.
#[derive(Clone, PartialEq, Eq)]
pub struct Shares {
    /// Bytes of a share.
    pub width: usize,
    /// The shares, in the sender's secret order of its items and dummies. The shares of the two parties are in the same
    /// order.
    pub shares: Vec<u8>,
    /// The way in which the shares add up.
    pub sharing: Sharing,
    /// The party's result in addition to its shares.
    pub beside: Beside,
}

/// The result of a party of `share` in addition to its shares.
#[derive(Clone, PartialEq, Eq)]
pub enum Beside {
    /// The receiver: the number of matches.
    Matches(u64),
    /// The sender: for each share, the position of the item in its set, or of a dummy after its items.
    Order(Vec<u32>),
}

/// Both get shares of the sender's items or values. The shares of a match add up to its item or value, all others to zero.
pub static SHARE: Operation = Operation {
    name: "share",
    summary: "Both get secret shares of the sender's keys or values that match",
    about: "Each party gets a share for each key of the sender, in a secret order. By itself a share is random. The two \
            shares of a key add up to the key if the receiver has it too, and to zero otherwise. If the sender names a \
            column of values, these are shared instead of the keys. Shares are for a further secure computation. The \
            receiver learns the number of matches, and which shares are of matches, but not of which keys.",
    uses: Uses { rows: Rows::None, both: false, values: false, shares: true },
    sender_dummies: Dummies::Random,
    learns: |role, _| match role {
        Role::Receiver => vec![Fact::HowManyMatch, Fact::Shares { own: false }],
        Role::Sender => vec![Fact::Shares { own: true }],
    },
    result: |_, _| Shape::Shares,
    plain: |data| {
        // The receiver's shares are the rows themselves, in the order of the set.
        let (sharing, width) = kind(&data.terms);
        let mut rows = vec![0; data.x.len() * width];
        for (i, row) in rows.chunks_exact_mut(width).enumerate() {
            if data.in_y(data.x.get(i)) {
                fill(&data.terms, data.x.get(i), data.values.get(i), row);
            }
        }
        let zeros = vec![0; rows.len()];
        let order = (0..data.x.len() as u32).collect();
        let ours = Shares { width, shares: rows, sharing, beside: Beside::Matches(data.matches()) };
        let theirs = Shares { width, shares: zeros, sharing, beside: Beside::Order(order) };
        [ours, theirs].map(Learned::Shares)
    },
    sends_on: |_| 0,
    over_mqrpmt: Some(OverMqrpmt {
        transfer: Some(|deal, n_x| {
            let (_, width) = kind(&deal.terms);
            let rows = transfer(n_x, width, None);
            // In addition to the rows of a frame: two key streams, and the shares.
            Transfer { held: rows.held.map(|held| held + in_frame(deal, n_x)), ..rows }
        }),
        held: |deal, _, n_x| [0, 4 * n_x].map(|order| order + 2 * n_x * kind(&deal.terms).1),
        run: |test, task, cx, n| match task.role {
            Role::Receiver => receiver(test, task, cx, n),
            Role::Sender => sender(test, task, cx, n),
        },
    }),
    over_sigma: None,
    over_union: None,
};

/// Returns the kind of sharing under these terms, and the width of a row.
fn kind(terms: &Terms) -> (Sharing, usize) {
    match terms.shared_values {
        true => (Sharing::Additive, VALUE),
        false => (Sharing::Xor, Layout::<1>::of(terms).width()),
    }
}

/// Bytes of the key streams of a frame, and of all shares. What their list takes in addition while it grows is in
/// [`OverMqrpmt::held`].
fn in_frame(deal: &Deal, n_x: usize) -> usize {
    let (_, width) = kind(&deal.terms);
    2 * n_x.min(crate::ot::transfer::rows_per_frame(width)) * width + n_x * width
}

/// Writes the shared value of an item into a row of zeros.
fn fill(terms: &Terms, item: &[u8], value: Option<&i128>, row: &mut [u8]) {
    match terms.shared_values {
        // Modulo 2^64. Values fit: `sender` checks them.
        true => row.copy_from_slice(&(value.copied().unwrap_or(0) as u64).to_le_bytes()),
        false => Layout::<1>::of(terms).write([item], row),
    }
}

/// Runs the receiver. The sender's set has `n_x` items.
fn receiver<'a>(
    protocol: &dyn Mqrpmt,
    task: &Task<'a>,
    cx: &mut Context,
    n_x: usize,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, ref terms, .. } = *task;
    // 1. R obtains the bits e.
    let e = protocol.server(cx, set, n_x)?;
    // 2. R uses the bits as choices: its share is z_j = e_j X_pi(j) - s_j.
    let (sharing, width) = kind(terms);
    let mut ot = extension::Receiver::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
    // The list grows with the received shares.
    let mut shares = Vec::new();
    shares::receive(cx.ch, &mut ot, &e, (sharing, width), |frame| shares.extend_from_slice(frame))?;
    let n_y = set.len();
    Ok(Sealed::new(move || {
        let beside = Beside::Matches(matches(&e, n_y)? as u64);
        Ok(Learned::Shares(Shares { width, shares, sharing, beside }))
    }))
}

/// Whether a value can be shared modulo 2^64 and distinguished from all others: -2^63 <= v < 2^63.
pub fn fits(value: i128) -> bool {
    i64::try_from(value).is_ok()
}

/// Runs the sender. The receiver's set has `n_y` items.
fn sender<'a>(
    protocol: &dyn Mqrpmt,
    task: &Task<'a>,
    cx: &mut Context,
    n_y: usize,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, values, ref terms, .. } = *task;
    let (sharing, width) = kind(terms);
    let items = set.items();
    match terms.shared_values {
        true if values.len() != items.len() || !values.iter().all(|v| fits(*v)) => {
            return Err(Error::Bug("the values do not belong to the items, or do not fit 64 bits".into()));
        }
        true => {}
        false => Layout::<1>::of(terms).check(items.iter().map(|item| [item.len()]))?,
    }
    // 0. and 1. X in random order; S obtains nothing.
    let order = protocol.client(cx, set, n_y)?;
    // 2. S's share is s_j. A dummy matches nothing, so its row is never read.
    let mut ot = extension::Sender::setup(cx, PURPOSE, extension::DEFAULT_K, Security::SemiHonest)?;
    let row = |i: usize, row: &mut [u8]| {
        let at = order[i] as usize;
        if at < items.len() {
            fill(terms, items.get(at), values.get(at), row);
        }
    };
    let mut shares = Vec::with_capacity(set.len() * width);
    shares::send(cx.ch, &mut ot, set.len(), (sharing, width), row, |frame| shares.extend_from_slice(frame))?;
    let order = order.to_vec();
    Ok(Sealed::new(move || {
        Ok(Learned::Shares(Shares { width, shares, sharing, beside: Beside::Order(order) }))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::SessionId;
    use crate::hashed::HashedSet;
    use crate::item::{ItemSet, Items};
    use crate::membership::Ideal;
    use crate::operations::Confirmed;
    use crate::rng::Prng;
    use crate::testing::{every_bit_is_random, overlapping, run_pair};
    use std::collections::HashSet;

    /// Returns the shares of the receiver and of the sender, over the ideal membership test.
    fn run_with(y: &ItemSet, x: &ItemSet, terms: Terms, seeds: [u8; 2]) -> [Shares; 2] {
        let values: Vec<i128> = (0..x.len() as i128).map(|i| 3 - i).collect();
        let party = |role, set: &ItemSet, n, cx: &mut Context| {
            let task = Task {
                operation: &SHARE,
                role,
                group: "any",
                set: &HashedSet::new(set),
                values: if role == Role::Sender && terms.shared_values { &values } else { &[] },
                payloads: &Items::new(),
                terms,
                filter: None,
            };
            let run = SHARE.over_mqrpmt.as_ref().unwrap().run;
            match run(&Ideal, &task, cx, n)?.open(Confirmed::for_tests()) {
                Ok(Learned::Shares(shares)) => Ok(shares),
                other => panic!("{other:?}"),
            }
        };
        let [r, s] = seeds.map(|seed| Prng::from_seed(&[seed; 32]));
        let ((ours, theirs), _) = run_pair(
            &SessionId::of([5; 32]),
            |cx| party(Role::Receiver, y, x.len(), cx.under(r)),
            |cx| party(Role::Sender, x, y.len(), cx.under(s)),
        );
        [ours, theirs]
    }

    /// The sender's order hides from the receiver which of the sender's items match, so it must be secret and fresh.
    #[test]
    fn shares_are_random_and_stand_in_an_order_that_is_another_in_each_run() {
        let (y, x) = overlapping(300, 400, 0.5);
        for terms in
            [Terms { max_row: 3050, ..Terms::default() }, Terms { shared_values: true, ..Terms::default() }]
        {
            let runs = [[1, 2], [3, 4]].map(|seeds| run_with(&y, &x, terms, seeds));
            let order = |shares: &Shares| match &shares.beside {
                Beside::Order(order) => order.clone(),
                Beside::Matches(_) => panic!("the receiver has the order"),
            };
            let orders = [order(&runs[0][1]), order(&runs[1][1])];
            let sorted: Vec<u32> = (0..400).collect();
            assert!(orders[0] != orders[1] && orders.iter().all(|order| *order != sorted));
            for [ours, theirs] in &runs {
                assert!(ours.beside == Beside::Matches(150));
                for shares in [ours, theirs] {
                    let first: Vec<&[u8]> = shares.shares.chunks(shares.width).map(|row| &row[..8]).collect();
                    every_bit_is_random(&first, 64);
                }
            }
            for party in [0, 1] {
                let all = runs.iter().flat_map(|run| run[party].shares.chunks(run[party].width));
                assert_eq!(all.collect::<HashSet<_>>().len(), 2 * 400);
            }
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let set: ItemSet = ["a", "b"].iter().collect();
        let hashed = HashedSet::new(&set);
        let (mut channel, peer) = crate::channel::Channel::pair();
        drop(peer);
        for (values, fit) in [
            (vec![i128::from(i64::MAX), i128::from(i64::MIN)], true),
            (vec![0, 1 << 63], false),
            (vec![0], false),
        ] {
            let terms = Terms { shared_values: true, ..Terms::default() };
            let task = Task {
                operation: &SHARE,
                role: Role::Sender,
                group: "any",
                set: &hashed,
                values: &values,
                payloads: &Items::new(),
                terms,
                filter: None,
            };
            let mut rng = Prng::from_seed(&[1; 32]);
            let mut cx = Context::new(&mut channel, &SessionId::of([5; 32]), &mut rng);
            let end = sender(&Ideal, &task, &mut cx, 2).map(|_| ());
            assert_eq!(!matches!(end, Err(Error::Bug(_))), fit, "{values:?}: {end:?}");
        }
    }

    /// The row of a match is never all zero, unless the item is empty.
    #[test]
    fn a_match_is_never_all_zero_and_its_length_does_not_show() {
        let set: ItemSet = [&b""[..], b"\0", b"\0\0\0", b"abc"].into_iter().collect();
        let terms = Terms { max_row: 5, ..Terms::default() };
        let [ours, theirs] = run_with(&set, &set, terms, [1, 2]);
        let Beside::Order(order) = &theirs.beside else { panic!("no order") };
        let opened = ours.shares.iter().zip(&theirs.shares).map(|(a, b)| a ^ b).collect::<Vec<u8>>();
        for (row, &at) in opened.chunks(ours.width).zip(order) {
            let item = set.get(at as usize);
            assert_eq!(row.len(), 6);
            // The empty item is the exception of this layout: encoded keys are never empty.
            assert_eq!(row.iter().any(|&byte| byte != 0), !item.is_empty());
            assert_eq!((row[0] as usize, &row[1..1 + item.len()]), (item.len(), item));
        }
    }
}
