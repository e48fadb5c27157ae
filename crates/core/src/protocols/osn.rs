//! `osn`: membership tests in cuckoo bins, from VOLE and oblivious switching.

use super::krtw19::over_bins;
use super::{Assumption, Attachment, BASE_OTS, Offer, Probe, Protocol, Runs, SEMI_HONEST, deviating, groups};
use crate::error::Result;
use crate::membership::osn::{Osn, Plan};
use crate::operations::cost::{Cost, Deal, Memory, transfer};
use crate::operations::union::{self, bins};
use crate::operations::{ID, Role, Terms, UNION};
use crate::work::Primitive;

const DEVIATING: [&str; 2] = [
    "ask for every row, count the sender's keys in spite of padding, and test guesses",
    "omit or replace rows, and learn from a union that it gets which of its keys match",
];

/// Membership tests in cuckoo bins, permuted by oblivious switching ([`crate::membership::osn`]).
pub static OSN: Protocol = Protocol {
    name: "osn",
    summary: "union from membership tests in bins, by vector OLE and oblivious switching: the fastest on fast networks",
    when: "large sets on fast networks",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[
        Offer { attachments: &[Attachment::Shards], ..Offer::of(&UNION, 2, DEVIATING) },
        Offer::of(&ID, 2, deviating::ID),
    ],
    rests_on: |_| &[Assumption::Ddh, Assumption::Lpn],
    probes: &[Probe {
        primitive: Primitive::Switch,
        operation: &UNION,
        group: groups::RISTRETTO255,
        items: 1 << 14,
        role: Role::Receiver,
    }],
    assumptions: |_, _| {
        vec![
            SEMI_HONEST,
            BASE_OTS,
            "AES-128 as an ideal cipher, BLAKE3 as a random oracle",
            "learning parity with noise, for an expand-convolute code with regular noise over GF(2^128)",
        ]
    },
    runs: Runs::Two {
        // Matching, switching, then the transfer of rows.
        stages: |_, _| 3,
        cost,
        run: |task, cx, n| over_bins(task, cx, n, |n_y, n_x| Ok(Osn::new(plan(&task.terms, n_y, n_x)))),
    },
};

fn plan(terms: &Terms, n_y: usize, n_x: usize) -> Plan {
    Plan::new(terms.exponent(), n_y, n_x, bins::beside(terms))
}

/// The cost of the tests and of a row for each.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = OSN.sizes(deal);
    let plan = plan(&deal.terms, n_y, n_x);
    let tests = plan.cost()?;
    let rows = transfer(plan.slots(), union::rows::width(&deal.terms), None);
    // The first message of the base OTs for the rows is sent with the tags.
    let rounds = tests.rounds + rows.rounds - 1 + usize::from(deal.terms.both);
    let result = union::held(deal, n_y, n_x);
    let receiver = tests.held[0].max(rows.held[0] + result[0]);
    let sender = tests.held[1].max(rows.held[1]).max(result[1]);
    let steps = [tests.steps, vec![rows.step, deal.sent_on()]].concat();
    Ok(Cost { steps, rounds, memory: [receiver, sender].map(Memory::held) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of many runs has a share of the error, and so longer values.
    #[test]
    fn the_plan_follows_the_error_of_the_run() {
        let of = |shards| plan(&Terms { shards, ..Terms::default() }, 1000, 1 << 20);
        let terms = Terms { shards: 64, ..Terms::default() };
        assert_eq!(of(64), Plan::new(46, 1000, 1 << 20, bins::beside(&terms)));
        assert_ne!(of(64), of(0));
    }
}
