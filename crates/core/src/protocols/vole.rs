//! `vole`: a multi-point OPRF from vector OLE (RR22).

use super::{Assumption, Attachment, BASE_OTS, Offer, Probe, Protocol, Runs, SEMI_HONEST, groups};
use crate::operations::{INTERSECT, Role};
use crate::oprf::vole::Rr22;
use crate::vole::silent::Silent;
use crate::work::Primitive;

const DEVIATING: [&str; 2] = [
    "test more guesses than it announced keys, and get the columns of those that are right",
    "omit or replace tags and rows; nothing is claimed about what else",
];

/// A multi-point OPRF from vector OLE ([`crate::oprf::vole`]).
pub static VOLE: Protocol = Protocol {
    name: "vole",
    summary: "private set intersection from vector oblivious linear evaluation, the fastest for large sets",
    when: "large sets: the least time and traffic",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[Offer { attachments: &[Attachment::Shards], ..Offer::of(&INTERSECT, 1, DEVIATING) }],
    rests_on: |_| &[Assumption::Ddh, Assumption::Lpn],
    probes: &[Probe {
        primitive: Primitive::Tag,
        operation: &INTERSECT,
        group: groups::RISTRETTO255,
        items: 1 << 19,
        role: Role::Receiver,
    }],
    assumptions: |_, _| {
        vec![
            SEMI_HONEST,
            BASE_OTS,
            "AES-128 as an ideal cipher, BLAKE3 as a random oracle",
            "learning parity with noise, for an expand-convolute code with regular noise over GF(2^64), or over GF(2^128) for \
             a sender of more than 16,777,216 items",
        ]
    },
    runs: Runs::Two {
        // Comparing, and then the columns, if they are sent; matching is not a stage.
        stages: |_, terms| 1 + usize::from(terms.payload),
        cost: |deal| {
            let (n_y, n_x) = VOLE.sizes(deal);
            let oprf = Rr22::new(Silent::default()).cost(deal.terms.exponent(), n_y, n_x);
            super::cost_over_oprf(deal, (n_y, n_x), oprf)
        },
        run: |task, cx, n| super::over_oprf(task, &Rr22::new(Silent::default()), cx, n),
    },
};
