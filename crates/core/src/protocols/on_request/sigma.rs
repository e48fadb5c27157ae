//! Common parts of all protocols over a Sigma-mqPMT: permute, then test (CZZDL 7.2), and OT extension.

use crate::channel::HEADER;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::membership::permuted::{self, PermuteThenTest};
use crate::membership::sigma::{SigmaMqpmt, Sizes};
use crate::operations::cost::{Cost, Deal, Memory};
use crate::operations::{Learned, Operation, OverSigma, Sealed, Task, Terms};
use crate::protocols::Protocol;
use crate::protocols::cwprf::{Test, over_mqrpmt, transferred};
use crate::work::Step;

/// Returns how an offered operation is computed.
fn over_sigma(operation: &Operation) -> Result<&OverSigma> {
    operation.over_sigma.as_ref().ok_or_else(|| Error::bug(format!("{operation} over a Sigma-mqPMT")))
}

/// Runs one party of an offered operation. The peer's set has `n` items in the protocol.
pub(super) fn run<'a, S: SigmaMqpmt>(
    sigma: S,
    task: &Task<'a>,
    cx: &mut Context,
    n: usize,
) -> Result<Sealed<'a, Learned>> {
    let test = PermuteThenTest(sigma);
    match over_sigma(task.operation)? {
        OverSigma::Permuted(run) => run(&test, task, cx, n),
        OverSigma::Star(run) => run(&test, task, cx, n),
    }
}

/// The number of stages: matching; in a union also the bits, then the transfer.
pub(super) fn stages(operation: &Operation, _: &Terms) -> usize {
    match operation.over_sigma {
        Some(OverSigma::Star(_)) => 3,
        Some(OverSigma::Permuted(_)) | None => 1,
    }
}

/// The cost of the three moves. In each pair the server comes first, so a step has the server in place of the receiver.
pub(super) struct Moves {
    pub(super) steps: Vec<Step>,
    /// The number of messages that wait for each other.
    pub(super) rounds: usize,
    pub(super) held: [usize; 2],
    /// Bytes that each thread holds.
    pub(super) each_thread: [usize; 2],
    /// Bytes of the permutation that each party keeps.
    pub(super) order: usize,
}

/// The cost of the three moves and of the steps after them.
pub(super) fn cost(
    protocol: &Protocol,
    deal: &Deal,
    moves: fn(&'static str, Sizes) -> Result<Moves>,
) -> Result<Cost> {
    let (receiver, sender) = protocol.sizes(deal);
    match over_sigma(deal.operation)? {
        OverSigma::Permuted(_) => {
            // The sender is the server. Its first message does not wait for the queries, but its responses do.
            let moves = moves(deal.group, Sizes { n_y: sender, n_x: receiver })?;
            let steps = moves.steps.into_iter().map(Step::swapped).chain([deal.sent_on()]).collect();
            let rounds = moves.rounds + usize::from(deal.terms.both);
            let memory = [1, 0]
                .map(|i| Memory { held: moves.held[i] as u64, each_thread: moves.each_thread[i] as u64 });
            Ok(Cost { steps, rounds, memory })
        }
        OverSigma::Star(_) => {
            let moves = moves(deal.group, Sizes { n_y: receiver, n_x: sender })?;
            let bits = sender.div_ceil(8) + HEADER * sender.div_ceil(permuted::BITS);
            let steps = [moves.steps, vec![Step::default().sends(0, bits as u64)]].concat();
            // The bits, whose order the receiver restores.
            let held = [moves.held[0].max(moves.order + 2 * sender), moves.held[1]];
            let test = Test { steps, held };
            let over = over_mqrpmt(deal.operation)?;
            let mut cost = transferred(deal, (receiver, sender), over, moves.rounds, test)?;
            cost.memory.iter_mut().zip(moves.each_thread).for_each(|(m, each)| m.each_thread += each as u64);
            Ok(cost)
        }
    }
}
