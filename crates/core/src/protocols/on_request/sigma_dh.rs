//! `sigma-dh`: permute, then test, over a Sigma-mqPMT from DDH (CZZDL 7, B.1), and OT extension.

use super::sigma::{self, Moves};
use crate::channel::HEADER;
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::error::Result;
use crate::group::Facts;
use crate::group::curve25519::Curve25519;
use crate::group::ristretto255::Ristretto255;
use crate::membership::sigma::dh::SigmaDh;
use crate::membership::sigma::{EXPONENT, FRAME, Sizes};
use crate::operations::cost::{framed, grown};
use crate::operations::{COUNT, UNION};
use crate::protocols::{Assumption, Offer, Protocol, Runs, SEMI_HONEST, Unasked, deviating, groups};
use crate::spelling::setting;
use crate::work::{Primitive, Step, Work};

/// Permute, then test, over a Sigma-mqPMT from DDH, and OT extension ([`crate::membership::permuted`]).
pub static SIGMA_DH: Protocol = Protocol {
    name: "sigma-dh",
    summary: "membership tests in three moves, which tell the party that asks how many of its items match",
    when: concat!("a union whose sender learns how many keys match: ", setting!(reveal_count_to_sender)),
    groups: &[groups::CURVE25519, groups::RISTRETTO255],
    ciphers: &[],
    offers: &[
        Offer {
            unasked: Unasked::No,
            reveals_count: true,
            inserts_list: true,
            ..Offer::of(&UNION, 4, deviating::PERMUTED_UNION)
        },
        Offer { unasked: Unasked::No, ..Offer::of(&COUNT, 3, deviating::PERMUTED_COUNT) },
    ],
    rests_on: |_| &[Assumption::Ddh],
    probes: &[],
    assumptions: |_, _| {
        vec![
            SEMI_HONEST,
            "decisional Diffie-Hellman in the group (and, for a union, on ristretto255)",
            "BLAKE3 as a random oracle (and, for a union, AES-128 as an ideal cipher)",
        ]
    },
    runs: Runs::Two {
        stages: sigma::stages,
        cost: |deal| sigma::cost(&SIGMA_DH, deal, moves),
        run: |task, cx, n| match task.group {
            groups::CURVE25519 => sigma::run(SigmaDh(Curve25519), task, cx, n),
            groups::RISTRETTO255 => sigma::run(SigmaDh(Ristretto255), task, cx, n),
            _ => Err(SIGMA_DH.refuse_group(task.group)),
        },
    },
};

fn moves(group: &str, Sizes { n_y, n_x }: Sizes) -> Result<Moves> {
    let Facts { point, room, multiplication, .. } = SIGMA_DH.facts(group)?;
    let a = Golomb::new(EXPONENT, n_x, n_y)?;
    let points = framed(n_x, FRAME, point);
    // The server raises its own items and each query once. The client raises each query, and the response to unmask it.
    let raised = |n: usize| Work::of(multiplication, n);
    let tag = Work::of(Primitive::Tag, n_x);
    let encoding = (a.bytes() + HEADER * n_y.div_ceil(golomb::FRAME)) as u64;
    // The server sends no response before all are complete, since they are permuted.
    let steps = vec![
        Step::of(raised(n_y), raised(n_x)).sends(encoding, points),
        Step::of(raised(n_x), Work::default()),
        Step::of(Work::default(), raised(n_x) + tag).sends(points, 0),
    ];
    let order = 4 * n_x;
    // Frames of points in two forms: the server's for its own items and for queries; the client's for each direction. The
    // server also holds positions and digests of its own items, and all responses, with a sorted copy of their digests. The
    // client also holds tags, its order, and opened responses with a sorted copy.
    let frame = |n: usize| (2 * point + room) * n.min(FRAME);
    let held = [
        frame(n_y) + frame(n_x) + 20 * n_y + 32 * n_x + grown(n_x, 16) + order,
        2 * frame(n_x) + grown(n_y, 16) + grown(n_x, 16) + order,
    ];
    // The queries and the responses; without queries the first message.
    let rounds = if n_x > 0 { 2 } else { usize::from(n_y > 0) };
    Ok(Moves { steps, rounds, held, each_thread: [0; 2], order })
}
