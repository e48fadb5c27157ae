//! `dh`: mqRPMT from a commutative weak PRF, and OT extension (CZZDL 5.3).

use super::{Offer, Protocol, SEMI_HONEST, groups};
use crate::channel::HEADER;
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::error::{Error, Result};
use crate::group::curve25519::Curve25519;
use crate::membership::cwprf::{self, CwPrf, GolombTags};
use crate::operations::cost::{Cost, Deal, Memory, PartyCost, Work, framed, grown};
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
    // Matching and comparing, then the transfer.
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

/// The membership protocol, and the transfer that follows it, with a row for each of the sender's items.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = CWPRF.sizes(deal);
    let omega = Golomb::new(cwprf::EXPONENT, n_x, n_y)?;
    let mut traffic = deal.sent_on();
    traffic.to_sender += framed(n_y, cwprf::FRAME, 32);
    traffic.to_receiver +=
        framed(n_x, cwprf::FRAME, 32) + (omega.bytes() + HEADER * n_y.div_ceil(golomb::FRAME)) as u64;
    // Each side raises each of its own items and each of the peer's once.
    let work = Work { multiplications: n_y + n_x, ..Work::default() };
    let over = over_mqrpmt(deal.operation)?;
    let test = held_for_test(n_y, n_x);
    let result = (over.held)(deal, n_y, n_x);
    let Some(transfer) = over.transfer.map(|transfer| transfer(deal, n_x)) else {
        // The points cross; then come the tags of the receiver's points, then the result for the sender.
        let points = if n_y > 0 { 2 } else { usize::from(n_x > 0) };
        let party = |i| PartyCost { work, memory: Memory::held(test[i]) };
        let rounds = points + usize::from(deal.terms.both);
        return Ok(Cost { traffic, rounds, receiver: party(0), sender: party(1) });
    };
    traffic += transfer.traffic;
    let work = Work { base_ots: extension::WIDTH, ..work };
    // The sender's first message of the base OTs travels with the set of tags, or with the points if there is no such
    // set.
    let rounds = usize::from(n_y > 0) + transfer.rounds;
    let receiver = test[0].max(transfer.held[0] + result[0]);
    let sender = test[1].max(transfer.held[1]).max(result[1]);
    let party = |bytes| PartyCost { work, memory: Memory::held(bytes) };
    Ok(Cost { traffic, rounds, receiver: party(receiver), sender: party(sender) })
}

/// Bytes that each party holds during the test: a permutation of its own items, and digests of the peer's in a
/// growing list, of which the receiver sorts a copy. Each also holds one frame of points each way, in two forms of 32
/// bytes.
fn held_for_test(n_y: usize, n_x: usize) -> [usize; 2] {
    let frames = 64 * (n_y.min(cwprf::FRAME) + n_x.min(cwprf::FRAME));
    [frames + 4 * n_y + grown(n_x, 16), frames + 4 * n_x + grown(n_y, 16)]
}

/// How an offered operation is computed from the test.
fn over_mqrpmt(operation: &Operation) -> Result<&OverMqrpmt> {
    let none = || Error::Bug(format!("{operation} over an mqRPMT"));
    operation.over_mqrpmt.as_ref().ok_or_else(none)
}
