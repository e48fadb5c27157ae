//! `dh`: mqRPMT from a commutative weak PRF, and OT extension (CZZDL 5.3).

use super::{
    Assumption, Attachment, BASE_OTS, Offer, Protocol, Runs, SEMI_HONEST, Unasked, deviating, groups,
    in_group,
};
use crate::channel::HEADER;
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::{Facts, Group, InGroup};
use crate::membership::cwprf::{self, CwPrf, GolombTags};
use crate::operations::cost::{Cost, Deal, Memory, framed, grown};
use crate::operations::{
    COUNT, ID, INTERSECT, Learned, Operation, OverMqrpmt, SHARE, SUM, Sealed, Task, UNION,
};
use crate::work::{Primitive, Step, Work};

/// mqRPMT from a commutative weak PRF, and OT extension ([`crate::membership::cwprf`]).
pub static CWPRF: Protocol = Protocol {
    name: "dh",
    summary: "membership tests from Diffie-Hellman, and oblivious transfer of rows",
    when: "all operations on slow networks; can be prepared",
    groups: &[
        groups::CURVE25519,
        #[cfg(feature = "p256")]
        groups::P256,
        #[cfg(feature = "p256")]
        groups::P256_COMPRESSED,
    ],
    ciphers: &[],
    offers: &[
        Offer {
            unasked: Unasked::WithoutColumns,
            attachments: &[Attachment::Half, Attachment::Shards],
            ..Offer::of(&INTERSECT, 3, deviating::INTERSECT)
        },
        Offer {
            attachments: &[Attachment::Half, Attachment::Shards],
            inserts_list: true,
            ..Offer::of(&UNION, 0, deviating::UNION)
        },
        Offer { attachments: &[Attachment::Half], ..Offer::of(&COUNT, 0, deviating::COUNT) },
        Offer { attachments: &[Attachment::Half], ..Offer::of(&SUM, 0, deviating::SUM) },
        Offer { attachments: &[Attachment::Half], ..Offer::of(&SHARE, 0, deviating::SHARE) },
        Offer::of(&ID, 0, deviating::ID),
    ],
    rests_on: |_| &[Assumption::Ddh],
    probes: &[],
    assumptions: |_, group| {
        vec![SEMI_HONEST, in_group(group), BASE_OTS, "BLAKE3 as a random oracle, AES-128 as an ideal cipher"]
    },
    runs: Runs::Two {
        // Matching and comparing, then the transfer.
        stages: |operation, _| {
            let transfers = operation.over_mqrpmt.as_ref().is_some_and(|over| over.transfer.is_some());
            2 + usize::from(transfers)
        },
        cost,
        run: |task, cx, n| CWPRF.within(task.group, Run { task, cx, n }),
    },
};

/// One party of a run. The peer's set has `n` items in the protocol.
struct Run<'r, 'a, 'c> {
    task: &'r Task<'a>,
    cx: &'r mut Context<'c>,
    n: usize,
}

impl<'a> InGroup for Run<'_, 'a, '_> {
    type Output = Result<Sealed<'a, Learned>>;
    fn run<G: Group>(self) -> Self::Output {
        let Run { task, cx, n } = self;
        (over_mqrpmt(task.operation)?.run)(&CwPrf(G::default(), GolombTags), task, cx, n)
    }
}

/// The cost of the membership protocol, and of the transfer that follows it, with a row for each of the sender's items.
fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = CWPRF.sizes(deal);
    let Facts { point, room, multiplication, .. } = CWPRF.facts(deal.group)?;
    let omega = Golomb::new(deal.terms.exponent(), n_x, n_y)?;
    // Both sides raise each of their own items and each of the peer's once, at the same time.
    let raised = Work::of(multiplication, n_y + n_x);
    let found = |n: usize| Work::of(Primitive::Tag, n);
    let tags = (omega.bytes() + HEADER * n_y.div_ceil(golomb::FRAME)) as u64;
    let steps = vec![
        Step::both(raised).sends(framed(n_y, cwprf::FRAME, point), framed(n_x, cwprf::FRAME, point)),
        Step::of(found(n_x), found(n_y)).sends(0, tags),
    ];
    with_transfer(deal, (n_y, n_x), Test { steps, held: held_for_test(2 * point + room, n_y, n_x) })
}

/// The cost of an mqRPMT. For [`with_transfer`], it is one message from the receiver, if it has items, then the sender's.
pub(super) struct Test {
    /// Its parts, without the result that the receiver sends on.
    pub(super) steps: Vec<Step>,
    /// Bytes that the receiver and the sender hold.
    pub(super) held: [usize; 2],
}

/// The cost of an mqRPMT, and of the transfer that follows it if the operation has one. The sizes are those in the protocol.
pub(super) fn with_transfer(deal: &Deal, (n_y, n_x): (usize, usize), test: Test) -> Result<Cost> {
    let over = over_mqrpmt(deal.operation)?;
    if over.transfer.is_some() {
        // The sender's first message of the base OTs is sent with its answer.
        return transferred(deal, (n_y, n_x), over, usize::from(n_y > 0), test);
    }
    let Test { mut steps, held } = test;
    // The receiver's points and the sender's answer; then the result for the sender.
    let messages = if n_y > 0 { 2 } else { usize::from(n_x > 0) };
    let rounds = messages + usize::from(deal.terms.both);
    steps.push(deal.sent_on());
    Ok(Cost { steps, rounds, memory: held.map(Memory::held) })
}

/// The cost of a test, and of the transfer that follows it. `before` is the number of rounds before the sender's last message
/// of the test, or before it may begin the transfer.
pub(super) fn transferred(
    deal: &Deal,
    (n_y, n_x): (usize, usize),
    over: &OverMqrpmt,
    before: usize,
    test: Test,
) -> Result<Cost> {
    let Test { mut steps, held: test } = test;
    let none = || Error::bug(format!("{} without a transfer", deal.operation));
    let transfer = over.transfer.ok_or_else(none)?(deal, n_x);
    let result = (over.held)(deal, n_y, n_x);
    steps.extend([transfer.step, deal.sent_on()]);
    let rounds = before + transfer.rounds;
    let receiver = test[0].max(transfer.held[0] + result[0]);
    let sender = test[1].max(transfer.held[1]).max(result[1]);
    Ok(Cost { steps, rounds, memory: [receiver, sender].map(Memory::held) })
}

/// Bytes that each party holds during the test: a permutation of its own items, and digests of the peer's in a growing list,
/// of which the receiver sorts a copy. Each also holds one frame of points in each direction, with `forms` bytes for all
/// forms of a point.
fn held_for_test(forms: usize, n_y: usize, n_x: usize) -> [usize; 2] {
    let frames = forms * (n_y.min(cwprf::FRAME) + n_x.min(cwprf::FRAME));
    [frames + 4 * n_y + grown(n_x, 16), frames + 4 * n_x + grown(n_y, 16)]
}

/// Returns how an offered operation is computed from the test.
pub(super) fn over_mqrpmt(operation: &Operation) -> Result<&OverMqrpmt> {
    let none = || Error::bug(format!("{operation} over an mqRPMT"));
    operation.over_mqrpmt.as_ref().ok_or_else(none)
}
