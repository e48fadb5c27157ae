//! `dh`: mqRPMT from a commutative weak PRF, and OT extension (CZZDL 5.3).

use super::{Offer, Protocol, SEMI_HONEST, groups};
use crate::channel::HEADER;
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::error::{Error, Result};
use crate::group::curve25519::Curve25519;
use crate::membership::cwprf::{self, CwPrf, GolombTags};
use crate::operations::cost::{Cost, Deal, Work, framed};
use crate::operations::{COUNT, INTERSECT, Operation, OverMqrpmt, SUM, UNION};
use crate::ot::extension;

/// mqRPMT from a commutative weak PRF, and OT extension ([`crate::membership::cwprf`]).
pub static CWPRF: Protocol = Protocol {
    name: "dh",
    summary: "membership tests from Diffie-Hellman, and oblivious transfer of rows",
    groups: &[groups::CURVE25519],
    offers: &[
        Offer { prepares: true, ..Offer::of(&INTERSECT) },
        Offer { prepares: true, preferred: true, inserts_list: true, ..Offer::of(&UNION) },
        Offer { prepares: true, preferred: true, ..Offer::of(&COUNT) },
        Offer { prepares: true, preferred: true, ..Offer::of(&SUM) },
    ],
    assumptions: |_| {
        vec![
            SEMI_HONEST,
            "decisional Diffie-Hellman on Curve25519 and ristretto255",
            "BLAKE3 as a random oracle, AES-128 as an ideal cipher",
        ]
    },
    // Matching and comparing; then what is transferred.
    stages: |operation, _| {
        let transfers = operation.over_mqrpmt.as_ref().is_some_and(|over| over.transfer.is_some());
        2 + usize::from(transfers)
    },
    cost,
    run: |task, cx, n| match task.group {
        groups::CURVE25519 => (over_mqrpmt(task.operation)?.run)(&CwPrf(Curve25519, GolombTags), task, cx, n),
        _ => Err(CWPRF.refuse_group(task.group)),
    },
};

/// The membership protocol, and the transfer that follows it: a row for each item of the sender.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = CWPRF.sizes(deal);
    let omega = Golomb::new(cwprf::EXPONENT, n_x, n_y)?;
    let mut traffic = deal.sent_on();
    traffic.to_sender += framed(n_y, cwprf::FRAME, 32);
    traffic.to_receiver +=
        framed(n_x, cwprf::FRAME, 32) + (omega.bytes() + HEADER * n_y.div_ceil(golomb::FRAME)) as u64;
    // Each side raises each of its own items and each of the peer's once.
    let work = Work { multiplications: n_y + n_x, ..Work::default() };
    let Some(transfer) = over_mqrpmt(deal.operation)?.transfer else {
        return Ok(Cost { traffic, receiver: work, sender: work });
    };
    traffic += transfer(deal, n_x);
    let work = Work { base_ots: extension::WIDTH, ..work };
    Ok(Cost { traffic, receiver: work, sender: work })
}

/// How an operation that is offered is computed from the test.
fn over_mqrpmt(operation: &Operation) -> Result<&OverMqrpmt> {
    let none = || Error::Bug(format!("{operation} over an mqRPMT"));
    operation.over_mqrpmt.as_ref().ok_or_else(none)
}
