//! `dh-psi`: classic Diffie-Hellman PSI.

use super::{Assumption, Attachment, Offer, Protocol, Runs, SEMI_HONEST, groups, in_group};
use crate::context::Context;
use crate::error::Result;
use crate::group::{Facts, Group, InGroup};
use crate::operations::cost::{Cost, Deal, Memory, framed, held_for_tags, tags_and_rows};
use crate::operations::intersect::dh_psi;
use crate::operations::{INTERSECT, Learned, Role, Sealed, Task};
use crate::work::{Primitive, Step, Work};

const DEVIATING: [&str; 2] = [
    "test as many guesses as it announced keys, and get the columns of those that are right",
    "omit or replace tags and rows, and where both get the result learn which of its keys match",
];

/// Classic Diffie-Hellman PSI ([`crate::operations::intersect::dh_psi`]).
pub static DH_PSI: Protocol = Protocol {
    name: "dh-psi",
    summary: "classic Diffie-Hellman private set intersection",
    when: "small sets, slow networks; can be prepared",
    groups: &[
        groups::CURVE25519,
        #[cfg(feature = "p256")]
        groups::P256,
        #[cfg(feature = "p256")]
        groups::P256_COMPRESSED,
    ],
    ciphers: &[],
    offers: &[Offer {
        attachments: &[Attachment::Half, Attachment::Shards],
        ..Offer::of(&INTERSECT, 0, DEVIATING)
    }],
    rests_on: |_| &[Assumption::Ddh],
    probes: &[],
    assumptions: |_, group| vec![SEMI_HONEST, in_group(group), "BLAKE3 as a random oracle, AES-128"],
    runs: Runs::Two {
        // Matching, comparing, and then the columns, if they are sent.
        stages: |_, terms| 2 + usize::from(terms.payload),
        cost,
        run: |task, cx, n| DH_PSI.within(task.group, Run { task, cx, n }),
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
        run::<G>(self.task, self.cx, self.n)
    }
}

/// Runs one party in a group. The peer's set has `n` items in the protocol.
pub(crate) fn run<'a, G: Group>(task: &Task<'a>, cx: &mut Context, n: usize) -> Result<Sealed<'a, Learned>> {
    match task.role {
        Role::Receiver => {
            let sealed = dh_psi::receiver::<G>(cx, task.set, n, &task.terms)?;
            Ok(sealed.map(Learned::Matching))
        }
        Role::Sender => {
            let found = dh_psi::sender::<G>(cx, task.set, task.payloads, n, &task.terms)?;
            Ok(Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching))))
        }
    }
}

fn cost(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = DH_PSI.sizes(deal);
    let Facts { point, room, multiplication, .. } = DH_PSI.facts(deal.group)?;
    let points = framed(n_y, dh_psi::FRAME, point);
    let coding = dh_psi::coding(&deal.terms, n_x, n_y)?;
    let tags = tags_and_rows(deal, n_x, coding);
    // The receiver raises its own points to its key, and later to the inverse.
    let raised = |n: usize| Work::of(multiplication, n);
    let tag = Work::of(Primitive::Tag, n_x);
    // The receiver is idle until the first frame returns.
    let first = n_y.min(dh_psi::FRAME);
    let steps = vec![
        Step::of(raised(n_y), raised(n_x)).sends(points, 0),
        Step::of(Work::default(), raised(first)),
        Step::of(raised(n_y) + tag, raised(n_y - first) + tag).sends(0, points + tags),
        deal.sent_on(),
    ];
    // The receiver's points, then the answer followed by the tags (only the tags if there are no points), then the bits.
    let rounds = if n_y > 0 { 2 } else { usize::from(n_x > 0) } + usize::from(deal.terms.both && n_x > 0);
    // First, tags and keys of each party's own items are computed from frames of points, in three forms and more.
    // Meanwhile the receiver holds a permutation of its items, and the sender the receiver's points and the positions
    // of its own items. Then tags are compared.
    let [for_tags, to_make_tags] = held_for_tags(deal, (n_y, n_x), coding);
    let own = |n: usize| n * (coding.held() + if deal.terms.payload { 16 } else { 0 });
    let frame = |n: usize| (3 * point + 32 + room) * n.min(dh_psi::FRAME);
    let receiver = 4 * n_y + for_tags.max(own(n_y) + frame(n_y));
    let sender = to_make_tags.max(own(n_x) + 4 * n_x + point * n_y + frame(n_x.max(n_y)));
    Ok(Cost { steps, rounds, memory: [receiver, sender].map(Memory::held) })
}
