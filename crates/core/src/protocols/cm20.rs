//! `cm20`: a multi-point OPRF from oblivious transfer (CM20).

use super::{Assumption, BASE_OTS, Offer, Probe, Protocol, Runs, SEMI_HONEST, groups};
use crate::operations::{INTERSECT, Role, Terms};
use crate::oprf::multi_point::MultiPoint;
use crate::spelling::setting;
use crate::work::Primitive;

const DEVIATING: [&str; 2] = [
    "test any number of guesses, and get the columns of those that are right",
    "omit or replace tags and rows; nothing is claimed about what else",
];

/// A multi-point OPRF from oblivious transfer ([`crate::oprf::multi_point`]).
pub static CM20: Protocol = Protocol {
    name: "cm20",
    summary: "private set intersection from oblivious transfer, on request against a malicious sender",
    when: concat!(
        "not to rest on learning parity with noise; with ",
        setting!(malicious_sender),
        ", against a sender that deviates"
    ),
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[Offer { malicious_sender: true, ..Offer::of(&INTERSECT, 2, DEVIATING) }],
    rests_on: |_| &[Assumption::Ddh],
    probes: &[Probe {
        primitive: Primitive::MatrixBit,
        operation: &INTERSECT,
        group: groups::RISTRETTO255,
        items: 1 << 14,
        role: Role::Receiver,
    }],
    assumptions: |terms, _| {
        let mut all = vec![
            SEMI_HONEST,
            BASE_OTS,
            "AES-128 as a pseudorandom permutation, BLAKE3 as a random oracle (so that it is 128-Hamming correlation \
             robust)",
            "an item of the sender's is hidden by fewer than 128 secret bits with probability at most 2^-40 over all of \
             them",
        ];
        if terms.malicious_sender {
            all[0] = "the receiver follows the protocol (semi-honest); a sender that deviates (malicious) learns no \
                      more, if it evaluates BLAKE3 at most 2^64 times, and nothing binds it to its true set";
        }
        all
    },
    runs: Runs::Two {
        // Matching, comparing, and then the columns, if they are sent.
        stages: |_, terms| 2 + usize::from(terms.payload),
        cost: |deal| {
            let (n_y, n_x) = CM20.sizes(deal);
            let oprf = protocol(&deal.terms).cost(deal.terms.exponent(), n_y, n_x);
            super::cost_over_oprf(deal, (n_y, n_x), oprf)
        },
        run: |task, cx, n| {
            let (oprf, ours) = (protocol(&task.terms), task.set.len());
            let (unit, total) = match task.role {
                Role::Receiver => oprf.cost(cx.exponent, ours, n).progress,
                Role::Sender => oprf.cost(cx.exponent, n, ours).progress,
            };
            cx.ch.stage("matching", unit, total);
            super::over_oprf(task, &oprf, cx, n)
        },
    },
};

/// Returns the OPRF under these terms.
fn protocol(terms: &Terms) -> MultiPoint {
    MultiPoint { malicious_sender: terms.malicious_sender }
}
