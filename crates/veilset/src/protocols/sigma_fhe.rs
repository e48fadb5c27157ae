//! `sigma-fhe`: mqRPMT from fully homomorphic encryption, and OT extension (CZZDL B.2). With the feature `fhe` only.

use super::cwprf::{Test, over_mqrpmt, transferred};
use super::{BASE_OTS, Offer, Protocol, Runs, SEMI_HONEST, groups};
use crate::error::Result;
use crate::membership::sigma_fhe::{self, FRAME, FromFhe};
use crate::operations::cost::{Cost, Deal, Memory, PartyCost, Traffic, Work, framed};
use crate::operations::{COUNT, INTERSECT, SHARE, SUM, UNION};
use crate::params::bfv::{Budget, DEGREE, LARGEST, MODULI};

/// mqRPMT from fully homomorphic encryption, and OT extension ([`crate::membership::sigma_fhe`]).
pub static SIGMA_FHE: Protocol = Protocol {
    name: "sigma-fhe",
    summary: "membership tests from homomorphic encryption, for a receiver with at most 256 items",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[
        Offer { largest: LARGEST, ..Offer::of(&INTERSECT) },
        Offer { largest: LARGEST, inserts_list: true, ..Offer::of(&UNION) },
        Offer { largest: LARGEST, ..Offer::of(&COUNT) },
        Offer { largest: LARGEST, ..Offer::of(&SUM) },
        Offer { largest: LARGEST, ..Offer::of(&SHARE) },
    ],
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

/// A polynomial in memory.
const POLYNOMIAL: usize = 8 * MODULI.len() * DEGREE;
/// The tables of both rings.
const TABLES: usize = 3 << 20;

/// The membership protocol, and the transfer that follows it, with a row for each of the sender's items.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = SIGMA_FHE.sizes(deal);
    let budget = Budget::new(n_y, n_x)?;
    let runs = usize::from(n_y > 0 && n_x > 0);
    let (_, oprf) = sigma_fhe::comparison(n_x);
    let [to_sender, to_receiver] = sigma_fhe::sends(n_y, n_x);
    let mut traffic = deal.sent_on();
    traffic += Traffic {
        to_sender: (to_sender + runs * oprf.sends[0]) as u64,
        to_receiver: (to_receiver + runs * oprf.sends[1]) as u64
            + runs as u64 * framed(n_x, FRAME, budget.tag),
    };
    let ciphertexts = runs * (n_y + 1) * budget.batches;
    let work = [0, 1].map(|i| Work {
        ciphertexts,
        matrix_bits: runs * oprf.matrix_bits[i],
        vole_items: runs * oprf.vole_items,
        ..Work::default()
    });
    // Of each batch the server has two polynomials as they are sent, and both the masks or values and their inputs.
    let pairs = 16 * n_x;
    let values = pairs + 64 * n_x;
    let held = [
        TABLES + 6 * POLYNOMIAL + budget.batches * 2 * POLYNOMIAL + values + 48 * n_y,
        TABLES + 6 * POLYNOMIAL + pairs + values,
    ];
    let held = [0, 1].map(|i| runs * held[i].max(values + oprf.held[i]) + 4 * n_x);
    let test = Test { traffic, work, held };
    // The queries, the responses, and the OPRF, in which the receiver has the last word; then the tags.
    let before = runs * (2 + oprf.rounds);
    let over = over_mqrpmt(deal.operation)?;
    let mut cost = match over.transfer {
        // The sender's first message of the base OTs travels with its tags.
        Some(_) => transferred(deal, (n_y, n_x), over, before, test)?,
        None => {
            let party = |i: usize| PartyCost { work: test.work[i], memory: Memory::held(test.held[i]) };
            let rounds = before + runs + usize::from(deal.terms.both);
            Cost { traffic: test.traffic, rounds, receiver: party(0), sender: party(1) }
        }
    };
    for (i, party) in [&mut cost.receiver, &mut cost.sender].into_iter().enumerate() {
        party.work.base_ots += runs * oprf.base_ots;
        party.memory.each_thread = (runs * (EACH_THREAD + oprf.each_thread[i])) as u64;
    }
    Ok(cost)
}

/// Polynomials that a thread works on at a time, in all their forms.
const EACH_THREAD: usize = 16 * POLYNOMIAL;
