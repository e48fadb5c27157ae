//! Oblivious pseudorandom functions. This file defines the multi-point OPRF; the submodules implement it, and define others.
//!
//! In an *OPRF* the sender holds the key of a pseudorandom function F, and the receiver learns F at its own
//! inputs. The sender does not learn these inputs. The receiver learns nothing about F at any other input.

pub mod bins;
pub mod distributed;
pub mod kkrt;
pub mod multi_point;
pub mod permuted;
pub mod programmable;
pub mod two_hash_dh;
pub mod vole;

use crate::channel::Unit;
use crate::context::Context;
use crate::error::Result;
use crate::secret::Secrets;
use crate::work::{Step, Traffic, Work, traffic};

/// An input: the hash of an item or of a dummy, 32 uniform bytes ([`crate::hashed`]).
pub type Input = crate::hash::ItemHash;

/// A value of F. Any part of it looks random to a party that must not know it.
pub type Output = [u8; 32];

/// A multi-point OPRF: the parties evaluate F under one key, each at all of its own inputs.
///
/// Each party knows the other's number of inputs. The sender uses the key for this evaluation only: a session needs F on both
/// sets, once. F is random to the receiver at every input of the sender that the receiver does not have.
///
/// A session runs it once. To run it again, pass `part(session, ..)` ([`crate::hash::part`]) with a different
/// name each time.
pub trait Oprf {
    /// Runs the receiver. Returns F at its inputs, which must be distinct, in their order. The sender has `n_x`
    /// inputs.
    fn receiver(&self, cx: &mut Context, inputs: &[Input], n_x: usize) -> Result<Secrets<Output>>;

    /// Runs the sender. Returns F at its inputs, which must be distinct, in their order. The receiver has `n_y`
    /// inputs.
    fn sender(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>>;
}

/// The cost of an evaluation, computed from the numbers of inputs. Pairs are for the receiver and the sender.
#[derive(Debug, Clone)]
pub struct OprfCost {
    /// The steps of the evaluation, in order. The bytes include frame headers.
    pub(crate) steps: Vec<Step>,
    /// The number of rounds, from the sender's first message to the receiver's last, or to the hint of a programmable OPRF.
    pub(crate) rounds: usize,
    /// Whether the sender answers the receiver's last message, and the receiver waits for the answer. If so, the receiver's
    /// next message comes two rounds later, and the sender's next message travels with its answer.
    pub(crate) answered: bool,
    /// The maximum number of bytes that each party holds, including its values.
    pub(crate) held: [usize; 2],
    /// The number of bytes that each party holds in addition for each thread.
    pub(crate) each_thread: [usize; 2],
    /// The unit and the total of the progress shown to users, which covers most of the receiver's traffic.
    pub(crate) progress: (Unit, usize),
}

impl OprfCost {
    /// Bytes that each party sends.
    pub(crate) fn sends(&self) -> [usize; 2] {
        let Traffic { to_sender, to_receiver } = traffic(&self.steps);
        [to_sender, to_receiver].map(|bytes| bytes as usize)
    }

    /// The work of each party.
    pub fn work(&self) -> [Work; 2] {
        [0, 1].map(|i| self.steps.iter().map(|step| step.work[i]).sum())
    }
}

/// The ideal functionality, for testing its callers: the sender sends its key in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const KEY: crate::channel::Message<[u8; 32]> =
    crate::channel::Message::new(0x7002, "S->R  ideal OPRF, the key");

#[cfg(any(test, feature = "test-util"))]
impl Oprf for Ideal {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], _: usize) -> Result<Secrets<Output>> {
        let key = cx.ch.rx.recv(KEY, 1)?[0];
        Ok(Secrets::from(inputs.iter().map(|x| *blake3::keyed_hash(&key, x).as_bytes()).collect::<Vec<_>>()))
    }

    fn sender(&self, cx: &mut Context, inputs: &[Input], _: usize) -> Result<Secrets<Output>> {
        let key = cx.rng.bytes();
        cx.ch.tx.send(KEY, &[key])?;
        Ok(Secrets::from(inputs.iter().map(|x| *blake3::keyed_hash(&key, x).as_bytes()).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::hash::SessionId;
    use crate::testing::{every_bit_is_random, run_pair, sizes};
    use std::collections::HashSet;

    /// Checks that both parties evaluate the same function, that it is random elsewhere, and that message
    /// lengths depend on the sizes only. Every multi-point OPRF must pass it.
    pub(crate) fn is_an_oprf(protocol: &(impl Oprf + Sync), frame: usize) {
        let session = SessionId::of([5; 32]);
        let mut lengths = Vec::new();
        for (n_y, n_x) in sizes(frame) {
            for common in [0, n_y.min(n_x) / 2, n_y.min(n_x)] {
                let input = |i: usize| Input::of_item(&i.to_le_bytes());
                let y: Vec<Input> = (0..n_y).map(input).collect();
                let x: Vec<Input> = (n_y - common..n_y - common + n_x).map(input).collect();
                let ((f_y, f_x), views) = run_pair(
                    &session,
                    |cx| protocol.receiver(cx, &y, n_x),
                    |cx| protocol.sender(cx, &x, n_y),
                );
                assert_eq!((f_y.len(), f_x.len()), (n_y, n_x));
                for i in 0..common {
                    assert_eq!(f_y[n_y - common + i], f_x[i], "{n_y} {n_x} {common} {i}");
                }
                let all: HashSet<Output> = f_y.iter().chain(&f_x[common..]).copied().collect();
                assert_eq!(all.len(), n_y + n_x - common, "{n_y} {n_x} {common}: values that are equal");
                if all.len() >= 200 {
                    every_bit_is_random(&all.into_iter().collect::<Vec<_>>(), 256);
                }
                lengths.push(((n_y, n_x), [views.frames(0), views.frames(1)]));
            }
        }
        for same in lengths.chunks(3) {
            assert!(same.iter().all(|l| *l == same[0]), "lengths that depend on the matches");
        }
    }

    #[test]
    fn the_ideal_functionality_is_one() {
        is_an_oprf(&Ideal, 100);
    }
}
