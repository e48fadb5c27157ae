//! Vector oblivious linear evaluation (VOLE): this file defines what it is, the others how.
//!
//! Random VOLE over GF(2^128) ([`veilset_kernels::gf128`]): the receiver gets vectors A and C, the sender Delta
//! and a vector B, with C_i = Delta A_i + B_i. A and Delta are uniform. The sender learns nothing about A, the
//! receiver nothing about Delta. One setup gives as many vectors as the parties ask for, of any lengths, all
//! under one Delta. To save memory, generate a long vector in parts and hold one part at a time.

mod code;
mod gilboa;
pub mod silent;
mod tree;

use crate::context::Context;
use crate::error::Result;
#[cfg(test)]
use crate::secret::Secret;
use crate::secret::Secrets;

/// An element of GF(2^128).
pub type Element = [u8; 16];

/// Adds `b` to `a`.
pub(crate) fn add(a: &mut Element, b: &Element) {
    *a = (u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b)).to_le_bytes();
}

/// The receiver's output.
pub struct Received {
    /// A.
    pub a: Secrets<Element>,
    /// C = Delta A + B.
    pub c: Secrets<Element>,
}

/// A protocol for random VOLE.
pub trait Vole {
    /// The receiver after the setup.
    type Receiver: Receiver;
    /// The sender after the setup.
    type Sender: Sender;

    /// Runs the receiver's setup, at most once per session and purpose (see [`crate::ot`]).
    fn receiver(&self, cx: &mut Context, purpose: &'static str) -> Result<Self::Receiver>;

    /// Runs the sender's setup.
    fn sender(&self, cx: &mut Context, purpose: &'static str) -> Result<Self::Sender>;
}

/// The receiver of a VOLE.
pub trait Receiver {
    /// The next `n` elements of A and C, while the sender runs [`Sender::next`] with the same `n`.
    fn next(&mut self, cx: &mut Context, n: usize) -> Result<Received>;
}

/// The sender of a VOLE.
pub trait Sender {
    /// Delta, the same for all elements.
    fn delta(&self) -> &Element;

    /// The next `n` elements of B, while the receiver runs [`Receiver::next`] with the same `n`.
    fn next(&mut self, cx: &mut Context, n: usize) -> Result<Secrets<Element>>;
}

/// The ideal functionality, for tests of its users: the sender sends the receiver's output.
#[cfg(test)]
pub(crate) struct Ideal;

#[cfg(test)]
const ALL: crate::channel::Message<Element> =
    crate::channel::Message::new(0x7003, "S->R  ideal VOLE, A and C");

#[cfg(test)]
impl Vole for Ideal {
    type Receiver = Ideal;
    type Sender = Secret<Element>;

    fn receiver(&self, _: &mut Context, _: &'static str) -> Result<Ideal> {
        Ok(Ideal)
    }

    fn sender(&self, cx: &mut Context, _: &'static str) -> Result<Secret<Element>> {
        Ok(Secret::new(cx.rng.bytes()))
    }
}

#[cfg(test)]
impl Receiver for Ideal {
    fn next(&mut self, cx: &mut Context, n: usize) -> Result<Received> {
        let (a, c) = (cx.ch.rx.recv(ALL, n)?, cx.ch.rx.recv(ALL, n)?);
        Ok(Received { a: Secrets::from(a), c: Secrets::from(c) })
    }
}

#[cfg(test)]
impl Sender for Secret<Element> {
    fn delta(&self) -> &Element {
        self
    }

    fn next(&mut self, cx: &mut Context, n: usize) -> Result<Secrets<Element>> {
        let (mut a, mut b) = (Secrets::<Element>::zeros(n), Secrets::<Element>::zeros(n));
        cx.rng.fill(a.as_flattened_mut());
        cx.rng.fill(b.as_flattened_mut());
        cx.ch.tx.send(ALL, &a)?;
        let mut c = b.clone();
        veilset_kernels::gf128::add_multiple(self, &a, &mut c);
        cx.ch.tx.send(ALL, &c)?;
        Ok(b)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::hash::SessionId;
    use crate::testing::{Views, every_bit_is_random, run_pair};
    use std::collections::HashSet;
    use veilset_kernels::gf128::add_multiple;

    /// The sender's output.
    pub(crate) struct SenderOutput {
        pub(crate) delta: Element,
        pub(crate) b: Secrets<Element>,
    }

    /// Generates vectors of these lengths in sequence, with parties seeded as in [`run_pair`].
    pub(crate) fn run_vole(
        protocol: &(impl Vole + Sync),
        session: &SessionId,
        purpose: &'static str,
        lengths: &[usize],
    ) -> (Vec<(Received, SenderOutput)>, Views) {
        let ((received, sent), views) = run_pair(
            session,
            |cx| {
                let mut receiver = protocol.receiver(cx, purpose)?;
                lengths.iter().map(|&n| receiver.next(cx, n)).collect::<Result<Vec<_>>>()
            },
            |cx| {
                let mut sender = protocol.sender(cx, purpose)?;
                let sent = |&n: &usize| Ok(SenderOutput { b: sender.next(cx, n)?, delta: *sender.delta() });
                lengths.iter().map(sent).collect::<Result<Vec<_>>>()
            },
        );
        (received.into_iter().zip(sent).collect(), views)
    }

    /// Asserts that the parties' vectors are a VOLE by definition, with random elements and a single Delta.
    pub(crate) fn is_a_vole(protocol: &(impl Vole + Sync), lengths: &[usize]) -> Views {
        let (vectors, views) = run_vole(protocol, &SessionId::of([6; 32]), "a", lengths);
        let mut all = HashSet::new();
        for ((received, sent), &n) in vectors.iter().zip(lengths) {
            assert_eq!((received.a.len(), received.c.len(), sent.b.len()), (n, n, n));
            let mut expected = sent.b.clone();
            add_multiple(&sent.delta, &received.a, &mut expected);
            assert_eq!(*received.c, *expected, "{n}");
            assert_eq!(sent.delta, vectors[0].1.delta);
            if n >= 200 {
                [&received.a, &received.c, &sent.b].iter().for_each(|list| every_bit_is_random(list, 128));
            }
            all.extend(received.a.iter().chain(received.c.iter()).chain(sent.b.iter()).copied());
        }
        assert_eq!(all.len(), 3 * lengths.iter().sum::<usize>(), "elements that are equal");
        views
    }

    #[test]
    fn the_ideal_functionality_is_one() {
        for lengths in [&[0][..], &[1], &[100, 7]] {
            is_a_vole(&Ideal, lengths);
        }
    }
}
