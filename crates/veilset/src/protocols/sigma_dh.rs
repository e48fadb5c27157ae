//! `sigma-dh`: permute, then test, over a Sigma-mqPMT from DDH (CZZDL 7, B.1), and OT extension.

use super::cwprf::{Test, over_mqrpmt, transferred};
use super::{Offer, Protocol, SEMI_HONEST, groups};
use crate::channel::HEADER;
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::curve25519::Curve25519;
use crate::group::ristretto255::Ristretto255;
use crate::group::{Facts, Group};
use crate::membership::permuted::{self, PermuteThenTest};
use crate::membership::sigma::{EXPONENT, FRAME};
use crate::membership::sigma_dh::SigmaDh;
use crate::operations::cost::{Cost, Deal, Memory, PartyCost, Traffic, Work, framed, grown};
use crate::operations::{COUNT, Learned, Operation, OverSigma, Sealed, Task, UNION};

/// Permute, then test, over a Sigma-mqPMT from DDH, and OT extension ([`crate::membership::permuted`]).
pub static SIGMA_DH: Protocol = Protocol {
    name: "sigma-dh",
    summary: "membership tests in three moves, which tell the party that asks how many of its items match",
    groups: &[groups::CURVE25519, groups::RISTRETTO255],
    offers: &[Offer { reveals_count: true, inserts_list: true, ..Offer::of(&UNION) }, Offer::of(&COUNT)],
    assumptions: |_, _| {
        vec![
            SEMI_HONEST,
            "decisional Diffie-Hellman in the group (and, for a union, on ristretto255)",
            "BLAKE3 as a random oracle, AES-128 as an ideal cipher",
        ]
    },
    // Matching; in a union the bits, then the transfer.
    stages: |operation, _| match operation.over_sigma {
        Some(OverSigma::Star(_)) => 3,
        Some(OverSigma::Permuted(_)) | None => 1,
    },
    largest: None,
    cost,
    run: |task, cx, n| match task.group {
        groups::CURVE25519 => run(Curve25519, task, cx, n),
        groups::RISTRETTO255 => run(Ristretto255, task, cx, n),
        _ => Err(SIGMA_DH.refuse_group(task.group)),
    },
};

/// How an offered operation is computed.
fn over_sigma(operation: &Operation) -> Result<&OverSigma> {
    operation.over_sigma.as_ref().ok_or_else(|| Error::Bug(format!("{operation} over a Sigma-mqPMT")))
}

fn run<'a, G: Group>(group: G, task: &Task<'a>, cx: &mut Context, n: usize) -> Result<Sealed<'a, Learned>> {
    let test = PermuteThenTest(SigmaDh(group));
    match over_sigma(task.operation)? {
        OverSigma::Permuted(run) => run(&test, task, cx, n),
        OverSigma::Star(run) => run(&test, task, cx, n),
    }
}

/// The three moves, and what follows them.
fn cost(deal: &Deal) -> Result<Cost> {
    let (receiver, sender) = SIGMA_DH.sizes(deal);
    match over_sigma(deal.operation)? {
        OverSigma::Permuted(_) => {
            // The sender is the server. Its first message does not wait for the queries, but its responses do.
            let moves = Moves::of(deal.group, sender, receiver)?;
            let traffic =
                deal.sent_on() + Traffic { to_sender: moves.to_server, to_receiver: moves.to_client };
            let rounds = moves.rounds() + usize::from(deal.terms.both);
            let party = |i: usize| PartyCost { work: moves.work[i], memory: Memory::held(moves.held[i]) };
            Ok(Cost { traffic, rounds, receiver: party(1), sender: party(0) })
        }
        OverSigma::Star(_) => {
            let moves = Moves::of(deal.group, receiver, sender)?;
            let bits = sender.div_ceil(8) + HEADER * sender.div_ceil(permuted::BITS);
            let traffic = Traffic { to_sender: moves.to_client, to_receiver: moves.to_server + bits as u64 };
            // The bits, which the receiver restores the order of.
            let held = [moves.held[0].max(moves.order + 2 * sender), moves.held[1]];
            let over = over_mqrpmt(deal.operation)?;
            let test = Test { traffic, work: moves.work, held };
            transferred(deal, (receiver, sender), over, moves.rounds(), test)
        }
    }
}

/// What the three moves cost. Of two numbers, the first is the server's.
struct Moves {
    to_server: u64,
    to_client: u64,
    n_y: usize,
    n_x: usize,
    work: [Work; 2],
    held: [usize; 2],
    /// Bytes of the permutation that each keeps.
    order: usize,
}

impl Moves {
    fn of(group: &str, n_y: usize, n_x: usize) -> Result<Moves> {
        let Facts { point, room, .. } = SIGMA_DH.facts(group)?;
        let a = Golomb::new(EXPONENT, n_x, n_y)?;
        let points = framed(n_x, FRAME, point);
        // The server raises its own items and each query once; the client each query, and the response to unmask it.
        let work = [n_y + n_x, 2 * n_x].map(|multiplications| Work { multiplications, ..Work::default() });
        let order = 4 * n_x;
        // A frame of points each way in two forms. The server: positions and digests of its own items, and all
        // responses, with a sorted copy of their digests. The client: tags, its order, and opened responses with a
        // sorted copy.
        let frame = |n: usize| (2 * point + room) * n.min(FRAME);
        let held = [
            frame(n_y.max(n_x)) + frame(n_x) + 20 * n_y + 32 * n_x + grown(n_x, 16) + order,
            2 * frame(n_x) + grown(n_y, 16) + grown(n_x, 16) + order,
        ];
        let to_client = points + (a.bytes() + HEADER * n_y.div_ceil(golomb::FRAME)) as u64;
        Ok(Moves { to_server: points, to_client, n_y, n_x, work, held, order })
    }

    /// The queries and the responses; without queries the first message.
    fn rounds(&self) -> usize {
        if self.n_x > 0 { 2 } else { usize::from(self.n_y > 0) }
    }
}
