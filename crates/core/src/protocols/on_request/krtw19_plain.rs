//! `krtw19-plain`: the tests of `krtw19`, compared in the clear.

use crate::membership::rpmt::Comparison;
use crate::operations::{ID, UNION};
use crate::protocols::krtw19::{ASSUMPTIONS, DEVIATING, cost, run, stages};
use crate::protocols::{Assumption, Offer, Protocol, Runs, Unasked, deviating, groups};

/// Membership tests in bins, compared in the clear ([`crate::operations::union::bins`]).
pub static KRTW19_PLAIN: Protocol = Protocol {
    name: "krtw19-plain",
    summary: "the same without private equality tests: not for runs that may break off",
    when: "the same with a little less traffic; never picked, read its section below first",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[
        Offer { unasked: Unasked::No, ..Offer::of(&UNION, 7, PLAIN) },
        Offer { unasked: Unasked::No, ..Offer::of(&ID, 4, deviating::ID) },
    ],
    rests_on: |_| &[Assumption::Ddh],
    probes: &[],
    assumptions: |_, _| {
        let broken_off = "the run is not broken off before the rows: the receiver would be left with values on which \
                          it can test guesses of the sender's items";
        [&ASSUMPTIONS[..], &[broken_off]].concat()
    },
    runs: Runs::Two {
        stages,
        cost: |deal| cost(&KRTW19_PLAIN, Comparison::Plain, deal),
        run: |task, cx, n| run(Comparison::Plain, task, cx, n),
    },
};

const PLAIN: [&str; 2] = [
    "get the whole intersection, ask for every row, and test guesses without limit when the run breaks off",
    DEVIATING[1],
];
