//! `krtw19`: membership tests in bins, from OT extension (KRTW19). `krtw19-plain` shares its cost and its run.

use super::{Assumption, BASE_OTS, Offer, Probe, Protocol, Runs, SEMI_HONEST, deviating, groups};
use crate::context::Context;
use crate::error::Result;
use crate::membership::InBins;
use crate::membership::rpmt::{Binning, Comparison};
use crate::operations::cost::{Cost, Deal, Memory, transfer};
use crate::operations::union::{self, bins};
use crate::operations::{ID, Learned, Operation, Role, Sealed, Task, Terms, UNION};
use crate::work::{Primitive, Step, Work};

/// Membership tests in bins, with private equality tests ([`crate::operations::union::bins`]).
pub static KRTW19: Protocol = Protocol {
    name: "krtw19",
    summary: "union from membership tests in bins, by oblivious transfer",
    when: "unions without learning parity with noise; costs far more",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[Offer::of(&UNION, 3, DEVIATING), Offer::of(&ID, 3, deviating::ID)],
    rests_on: |_| &[Assumption::Ddh],
    probes: &[
        Probe {
            primitive: Primitive::Programmed,
            operation: &UNION,
            group: groups::RISTRETTO255,
            items: 1 << 11,
            role: Role::Receiver,
        },
        Probe {
            primitive: Primitive::Tested,
            operation: &UNION,
            group: groups::RISTRETTO255,
            items: 1 << 11,
            role: Role::Sender,
        },
    ],
    assumptions: |_, _| ASSUMPTIONS.into(),
    runs: Runs::Two {
        stages,
        cost: |deal| cost(&KRTW19, Comparison::Private, deal),
        run: |task, cx, n| run(Comparison::Private, task, cx, n),
    },
};

pub(super) const DEVIATING: [&str; 2] = [
    "ask for every row, count the sender's keys in spite of padding, and test guesses",
    "omit or replace rows, and learn from a union that it gets which of its keys match",
];

pub(super) const ASSUMPTIONS: [&str; 4] = [
    SEMI_HONEST,
    BASE_OTS,
    "BLAKE3 as a random oracle, AES-128 as an ideal cipher; items do not fit the pseudorandom code of KKRT16",
    "an item is hidden by fewer than 128 secret bits with probability at most 2^-40 over all of them",
];

/// The number of stages: matching, then the transfer of rows.
pub(super) fn stages(_: &Operation, _: &Terms) -> usize {
    2
}

/// The cost of the tests and of a row for each.
pub(super) fn cost(protocol: &Protocol, comparison: Comparison, deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = protocol.sizes(deal);
    let plan = Binning::new(comparison, n_y, n_x, bins::beside(&deal.terms))?;
    let (to_sender, to_receiver) = plan.traffic();
    let rows = transfer(plan.slots(), union::rows::width(&deal.terms), None);
    let base = Work::of(Primitive::BaseOt, plan.base_ots());
    let [receiver, sender] =
        [Primitive::Programmed, Primitive::Tested].map(|slot| base + Work::of(slot, plan.slots()));
    let tests = Step::of(receiver, sender).sends(to_sender, to_receiver);
    // The first message of the base OTs for the rows is sent with the last answers.
    let rounds = plan.rounds() + rows.rounds - 1 + usize::from(deal.terms.both);
    let (test, result) = (plan.held(n_y, n_x), union::held(deal, n_y, n_x));
    let receiver = test[0].max(rows.held[0] + result[0]);
    let sender = test[1].max(rows.held[1]).max(result[1]);
    let steps = vec![tests, rows.step, deal.sent_on()];
    Ok(Cost { steps, rounds, memory: [receiver, sender].map(Memory::held) })
}

/// Runs one party of a union over these tests. The peer's set has `n` items in the protocol.
pub(super) fn run<'a>(
    comparison: Comparison,
    task: &Task<'a>,
    cx: &mut Context,
    n: usize,
) -> Result<Sealed<'a, Learned>> {
    let plan = |n_y, n_x| Binning::new(comparison, n_y, n_x, bins::beside(&task.terms));
    over_bins(task, cx, n, plan)
}

/// Runs one party of a union over membership tests in bins. `plan` returns the tests for the sizes of both sets. The peer's
/// set has `n` items in the protocol.
pub(super) fn over_bins<'a, T: InBins>(
    task: &Task<'a>,
    cx: &mut Context,
    n: usize,
    plan: impl FnOnce(usize, usize) -> Result<T>,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, payloads, ref terms, .. } = *task;
    match task.role {
        Role::Receiver => {
            let tests = plan(set.len(), n)?;
            Ok(bins::receiver(&tests, cx, set, n, terms)?.map(Learned::New))
        }
        Role::Sender => {
            let tests = plan(n, set.len())?;
            let union = bins::sender(&tests, cx, set, payloads, n, terms)?;
            Ok(Sealed::sent_on(union.map(|sealed| sealed.map(Learned::Union))))
        }
    }
}
