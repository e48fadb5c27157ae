//! `poprf`: mqRPMT from a permuted OPRF, and OT extension (CZZDL 6).

use crate::error::Result;
use crate::group::ristretto255::Ristretto255;
use crate::membership::lookup::{self, Tags};
use crate::membership::poprf::FromPermutedOprf;
use crate::operations::cost::{Cost, Deal, framed, grown};
use crate::operations::{COUNT, ID, INTERSECT, SHARE, SUM, UNION};
use crate::oprf::permuted;
use crate::protocols::cwprf::{Test, over_mqrpmt, with_transfer};
use crate::protocols::{
    Assumption, Attachment, Offer, Protocol, Runs, SEMI_HONEST, Unasked, deviating, groups,
};
use crate::work::{Primitive, Step, Work};

/// mqRPMT from a permuted OPRF, and OT extension ([`crate::membership::poprf`]).
pub static POPRF: Protocol = Protocol {
    name: "poprf",
    summary: "membership tests from a permuted OPRF, and oblivious transfer of rows",
    when: "not to rest on Curve25519: ristretto255 only",
    groups: &[groups::RISTRETTO255],
    ciphers: &[],
    offers: &[
        Offer {
            unasked: Unasked::No,
            attachments: &[Attachment::Half, Attachment::Shards],
            ..Offer::of(&INTERSECT, 4, deviating::INTERSECT)
        },
        Offer {
            unasked: Unasked::No,
            attachments: &[Attachment::Half, Attachment::Shards],
            inserts_list: true,
            ..Offer::of(&UNION, 1, deviating::UNION)
        },
        Offer {
            unasked: Unasked::No,
            attachments: &[Attachment::Half],
            ..Offer::of(&COUNT, 1, deviating::COUNT)
        },
        Offer {
            unasked: Unasked::No,
            attachments: &[Attachment::Half],
            ..Offer::of(&SUM, 1, deviating::SUM)
        },
        Offer {
            unasked: Unasked::No,
            attachments: &[Attachment::Half],
            ..Offer::of(&SHARE, 1, deviating::SHARE)
        },
        Offer { unasked: Unasked::No, ..Offer::of(&ID, 1, deviating::ID) },
    ],
    rests_on: |_| &[Assumption::Ddh],
    probes: &[],
    assumptions: |_, _| {
        vec![
            SEMI_HONEST,
            "decisional Diffie-Hellman on ristretto255",
            "BLAKE3 as a random oracle, AES-128 as an ideal cipher",
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
            groups::RISTRETTO255 => {
                (over_mqrpmt(task.operation)?.run)(&FromPermutedOprf(Ristretto255), task, cx, n)
            }
            _ => Err(POPRF.refuse_group(task.group)),
        },
    },
};

/// The cost of the membership protocol, and of the transfer that follows it, with a row for each of the sender's items.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = POPRF.sizes(deal);
    let tags = Tags::new(deal.terms.exponent(), n_x, n_y)?;
    let points = framed(n_y, permuted::FRAME, 32);
    // Each side raises each of the receiver's items once. The receiver raises it again to unmask it, and the sender also
    // raises its own items.
    let raised = |n: usize| Work::of(Primitive::Ristretto255, n);
    let tag = Work::of(Primitive::Tag, n_x);
    let first = n_y.min(permuted::FRAME);
    let steps = vec![
        Step::of(raised(n_y), Work::default()).sends(points, 0),
        // The receiver is idle until the first frame returns.
        Step::of(Work::default(), raised(first)),
        Step::of(raised(n_y), raised(n_y - first)).sends(0, points),
        Step::of(tag, raised(n_x) + tag).sends(0, framed(n_x, lookup::FRAME, tags.bytes)),
    ];
    with_transfer(deal, (n_y, n_x), Test { steps, held: held_for_test(n_y, n_x) })
}

/// Bytes that each party holds during the test. The receiver holds a permutation of its own items, their values in a growing
/// list, and the queries in another. The sender holds two permutations, and all points of the receiver. Each also holds one
/// frame: 160 bytes for an element, and up to five forms of 32 bytes before and after it.
fn held_for_test(n_y: usize, n_x: usize) -> [usize; 2] {
    let frame = |n: usize| 320 * n.min(permuted::FRAME);
    [frame(n_y) + 4 * n_y + grown(n_y, 16) + grown(n_x, 16), frame(n_y.max(n_x)) + 36 * n_y + 4 * n_x]
}
