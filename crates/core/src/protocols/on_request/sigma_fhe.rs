//! `sigma-fhe`: mqRPMT from fully homomorphic encryption, and OT extension (CZZDL B.2). With the feature `fhe` only.

use crate::error::Result;
use crate::membership::sigma::fhe::{self, FRAME, FromFhe};
use crate::operations::cost::{Cost, Deal, Memory, framed};
use crate::operations::{COUNT, INTERSECT, Role, SHARE, SUM, UNION};
use crate::params::bfv::{Budget, DEGREE, LARGEST, MODULI};
use crate::protocols::cwprf::{Test, over_mqrpmt, transferred};
use crate::protocols::{
    Assumption, BASE_OTS, Offer, Probe, Protocol, Runs, SEMI_HONEST, Unasked, deviating, groups,
};
use crate::work::{Primitive, Step, Work};

/// mqRPMT from fully homomorphic encryption, and OT extension ([`crate::membership::sigma::fhe`]).
pub static SIGMA_FHE: Protocol = Protocol {
    name: "sigma-fhe",
    summary: "membership tests from homomorphic encryption, for a receiver with at most 256 items",
    when: "a receiver with at most 256 keys, and no assumption on curves except for a few transfers",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[
        Offer { unasked: Unasked::No, largest: LARGEST, ..Offer::of(&INTERSECT, 5, deviating::INTERSECT) },
        Offer {
            unasked: Unasked::No,
            largest: LARGEST,
            inserts_list: true,
            ..Offer::of(&UNION, 6, deviating::UNION)
        },
        Offer { unasked: Unasked::No, largest: LARGEST, ..Offer::of(&COUNT, 2, deviating::COUNT) },
        Offer { unasked: Unasked::No, largest: LARGEST, ..Offer::of(&SUM, 2, deviating::SUM) },
        Offer { unasked: Unasked::No, largest: LARGEST, ..Offer::of(&SHARE, 2, deviating::SHARE) },
    ],
    rests_on: |_| &[Assumption::Ddh, Assumption::Lpn, Assumption::Rlwe],
    probes: &[Probe {
        primitive: Primitive::Bfv,
        operation: &UNION,
        group: groups::RISTRETTO255,
        items: 64,
        role: Role::Receiver,
    }],
    assumptions: |_, _| {
        vec![
            SEMI_HONEST,
            BASE_OTS,
            "ring learning with errors, for 8192 coefficients and a modulus of 168 bits (128-bit security)",
            "AES-128 as an ideal cipher, BLAKE3 as a random oracle; above some thousand items of the sender learning \
             parity with noise, for an expand-convolute code with regular noise over GF(2^64)",
        ]
    },
    runs: Runs::Two {
        // Matching and comparing, then the transfer.
        stages: |operation, _| {
            let transfers = operation.over_mqrpmt.as_ref().is_some_and(|over| over.transfer.is_some());
            2 + usize::from(transfers)
        },
        cost,
        run: |task, cx, n| match task.group {
            groups::RISTRETTO255 => (over_mqrpmt(task.operation)?.run)(&FromFhe, task, cx, n),
            _ => Err(SIGMA_FHE.refuse_group(task.group)),
        },
    },
};

/// Bytes of a polynomial in memory.
const POLYNOMIAL: usize = 8 * MODULI.len() * DEGREE;
/// Bytes of the tables of both rings.
const TABLES: usize = 3 << 20;

/// The cost of the membership protocol, and of the transfer that follows it, with a row for each of the sender's items.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = SIGMA_FHE.sizes(deal);
    let budget = Budget::new(n_y, n_x)?;
    let runs = usize::from(n_y > 0 && n_x > 0);
    let (_, oprf) = fhe::comparison(n_x);
    let [to_sender, to_receiver] = fhe::sends(n_y, n_x);
    let ciphertexts = Work::of(Primitive::Bfv, runs * (n_y + 1) * budget.batches);
    let mut steps = vec![Step::both(ciphertexts).sends(to_sender as u64, to_receiver as u64)];
    if runs > 0 {
        steps.extend(&oprf.steps);
    }
    steps.push(
        Step::both(Work::of(Primitive::Tag, n_x)).sends(0, runs as u64 * framed(n_x, FRAME, budget.tag)),
    );
    // For each batch, the server holds two polynomials as sent. Both parties hold the masks or values and their inputs.
    let pairs = 16 * n_x;
    let values = pairs + 64 * n_x;
    let held = [
        TABLES + 6 * POLYNOMIAL + budget.batches * 2 * POLYNOMIAL + values + 48 * n_y,
        TABLES + 6 * POLYNOMIAL + pairs + values,
    ];
    let held = [0, 1].map(|i| runs * held[i].max(values + oprf.held[i]) + 4 * n_x);
    let test = Test { steps, held };
    // The queries, the responses, and the OPRF, in which the receiver sends the last message; then the tags.
    let before = runs * (2 + oprf.rounds);
    let over = over_mqrpmt(deal.operation)?;
    let mut cost = match over.transfer {
        // The sender's first message of the base OTs is sent with its tags.
        Some(_) => transferred(deal, (n_y, n_x), over, before, test)?,
        None => {
            let rounds = before + runs + usize::from(deal.terms.both);
            let steps = [test.steps, vec![deal.sent_on()]].concat();
            Cost { steps, rounds, memory: test.held.map(Memory::held) }
        }
    };
    for (memory, each_thread) in cost.memory.iter_mut().zip(oprf.each_thread) {
        memory.each_thread = (runs * (EACH_THREAD + each_thread)) as u64;
    }
    Ok(cost)
}

/// Bytes of the polynomials that a thread works on at a time, in all their forms.
const EACH_THREAD: usize = 16 * POLYNOMIAL;
