//! `dh`: mqRPMT from a commutative weak PRF, and OT extension (CZZDL 5.3).

use super::cost::{Cost, Deal, Work, both, framed, transfer};
use super::{Offer, Protocol, SEMI_HONEST, Task, groups};
use crate::channel::HEADER;
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::context::Context;
use crate::error::Result;
use crate::group::curve25519::Curve25519;
use crate::membership::Mqrpmt;
use crate::membership::cwprf::{self, CwPrf, GolombTags};
use crate::operations::row::Layout;
use crate::operations::{Learned, Operation, Role, Sealed, count, intersect, sum, union};
use crate::ot::extension;

/// mqRPMT from a commutative weak PRF, and OT extension ([`crate::membership::cwprf`]).
pub static DH: Protocol = Protocol {
    name: "dh",
    summary: "membership tests from Diffie-Hellman, and oblivious transfer of rows",
    groups: &[groups::CURVE25519],
    offers: &[
        Offer { prepares: true, ..Offer::of(Operation::Intersect) },
        Offer { prepares: true, preferred: true, inserts_list: true, ..Offer::of(Operation::Union) },
        Offer { prepares: true, preferred: true, ..Offer::of(Operation::Count) },
        Offer { prepares: true, preferred: true, ..Offer::of(Operation::Sum) },
    ],
    assumptions: |_| {
        vec![
            SEMI_HONEST,
            "decisional Diffie-Hellman on Curve25519 and ristretto255",
            "BLAKE3 as a random oracle, AES-128 as an ideal cipher",
        ]
    },
    // Matching and comparing; then rows are transferred or values summed.
    stages: |operation, _| if operation == Operation::Count { 2 } else { 3 },
    cost,
    run: |task, cx, n| match task.group {
        groups::CURVE25519 => over_mqrpmt(task, &CwPrf(Curve25519, GolombTags), cx, n),
        _ => Err(task.in_no_such_group()),
    },
};

/// The membership protocol, and the transfer that follows it: a row for each item of the sender.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = deal.sizes(&DH);
    let omega = Golomb::new(cwprf::EXPONENT, n_x, n_y)?;
    let mut traffic = both(deal);
    traffic.to_sender += framed(n_y, cwprf::FRAME, 32);
    traffic.to_receiver +=
        framed(n_x, cwprf::FRAME, 32) + (omega.bytes() + HEADER * n_y.div_ceil(golomb::FRAME)) as u64;
    // Each side raises each of its own items and each of the peer's once.
    let work = Work { multiplications: n_y + n_x, ..Work::default() };
    let (payload, max_row) = (deal.terms.payload, deal.terms.max_row);
    let width = match (deal.operation, payload) {
        (Operation::Count, _) => return Ok(Cost { traffic, receiver: work, sender: work }),
        (Operation::Intersect, false) => intersect::mqrpmt::DIGEST,
        (Operation::Intersect, true) => intersect::mqrpmt::DIGEST + Layout::<1>::new(max_row).width(),
        (Operation::Union, false) => Layout::<1>::new(max_row).width(),
        (Operation::Union, true) => Layout::<2>::new(max_row).width(),
        (Operation::Sum, _) => deal.terms.modulus.bits() as usize / 8,
    };
    let adds = deal.operation == Operation::Sum;
    traffic += transfer(n_x, width, adds.then_some(extension::FRAME));
    if adds {
        traffic.to_sender += framed(1, 1, sum::RESULT_BYTES);
    }
    let work = Work { base_ots: extension::WIDTH, ..work };
    Ok(Cost { traffic, receiver: work, sender: work })
}

/// Runs one party's part over an mqRPMT. The peer's set has `n` items in the protocol.
pub(crate) fn over_mqrpmt<'a>(
    task: &Task<'a>,
    protocol: &impl Mqrpmt,
    cx: &mut Context,
    n: usize,
) -> Result<Sealed<'a, Learned>> {
    let Task { operation, role, set, values, payloads, ref terms, .. } = *task;
    Ok(match (operation, role) {
        (Operation::Intersect, Role::Receiver) => {
            intersect::mqrpmt::receiver(protocol, cx, set, n, terms)?.map(Learned::Matching)
        }
        (Operation::Intersect, Role::Sender) => {
            let found = intersect::mqrpmt::sender(protocol, cx, set, payloads, n, terms)?;
            Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching)))
        }
        (Operation::Union, Role::Receiver) => {
            union::mqrpmt::receiver(protocol, cx, set, n, terms)?.map(Learned::New)
        }
        (Operation::Union, Role::Sender) => {
            let union = union::mqrpmt::sender(protocol, cx, set, payloads, n, terms)?;
            Sealed::sent_on(union.map(|sealed| sealed.map(Learned::Union)))
        }
        (Operation::Count, Role::Receiver) => {
            count::receiver(protocol, cx, set, n, terms.both)?.map(Learned::Matches)
        }
        (Operation::Count, Role::Sender) => {
            let matches = count::sender(protocol, cx, set, n, terms.both)?;
            Sealed::new(move || Ok(matches.map_or(Learned::Nothing, Learned::Matches)))
        }
        (Operation::Sum, Role::Receiver) => sum::receiver(protocol, cx, set, n, terms)?.map(Learned::Matches),
        (Operation::Sum, Role::Sender) => sum::sender(protocol, cx, set, values, n, terms)?.map(Learned::Sum),
    })
}
