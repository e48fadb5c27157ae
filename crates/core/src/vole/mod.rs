//! Vector oblivious linear evaluation (VOLE). This module defines the interface; its submodules implement it.
//!
//! The receiver gets vectors A and C, the sender Delta and a vector B. A and Delta are uniform. The sender learns
//! nothing about A, the receiver nothing about Delta. An element of A is a [`VoleScalar`], in one of two fields:
//!
//! - [`Element`]: GF(2^128) ([`veilset_kernels::gf128`]), and C_i = Delta A_i + B_i;
//! - [`Half`]: GF(2^64) ([`veilset_kernels::gf64`]). Delta, B and C then have two lanes in this field, and C_i = Delta
//!   A_i + B_i in each lane (the subfield VOLE of RR22). The lanes of Delta are independent: 128 bits unknown to the
//!   receiver, as above. A takes half the space.
//!
//! One setup gives any number of vectors, of any lengths, all under one Delta. To save memory, generate a long vector
//! in parts and hold one part at a time.

mod code;
mod gilboa;
mod scalar;
pub mod silent;
mod tree;

use crate::context::Context;
use crate::error::Result;
#[cfg(any(test, feature = "test-util"))]
use crate::secret::Secret;
use crate::secret::Secrets;

pub use scalar::{Half, VoleScalar};

/// An element of GF(2^128), or of GF(2^64) in each of two lanes.
pub type Element = [u8; 16];

/// Adds `b` to `a`.
pub(crate) fn add(a: &mut Element, b: &Element) {
    *a = (u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b)).to_le_bytes();
}

/// A protocol for random VOLE.
pub trait Vole {
    /// The receiver's state after the setup.
    type Receiver: Receiver;
    /// The sender's state after the setup.
    type Sender: Sender;

    /// Runs the receiver's setup, at most once per session and purpose (see [`crate::ot`]).
    fn receiver(&self, cx: &mut Context, purpose: &'static str) -> Result<Self::Receiver>;

    /// Runs the sender's setup, at most once per session and purpose (see [`crate::ot`]).
    fn sender(&self, cx: &mut Context, purpose: &'static str) -> Result<Self::Sender>;
}

/// The receiver of a VOLE.
pub trait Receiver {
    /// Generates the next `n` elements, while the sender runs [`Sender::next`] with the same `n` and field. Passes A to
    /// `take`, then returns C, so A need not be held while C is computed. `take` may send to the sender, but not
    /// receive from it: messages of the VOLE may still arrive.
    fn next<S: VoleScalar>(
        &mut self,
        cx: &mut Context,
        n: usize,
        take: impl FnOnce(&mut Context, Secrets<S>) -> Result<()>,
    ) -> Result<Secrets<Element>>;
}

/// The sender of a VOLE.
pub trait Sender {
    /// Returns Delta, which is the same for all elements.
    fn delta(&self) -> &Element;

    /// Generates the next `n` elements of B, while the receiver runs [`Receiver::next`] with the same `n` and field.
    fn next<S: VoleScalar>(&mut self, cx: &mut Context, n: usize) -> Result<Secrets<Element>>;
}

/// The ideal functionality, for tests of its users: the sender sends the receiver its output.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const A: crate::channel::Message<[u8]> = crate::channel::Message::new(0x7003, "S->R  ideal VOLE, A");
#[cfg(any(test, feature = "test-util"))]
const C: crate::channel::Message<Element> = crate::channel::Message::new(0x7016, "S->R  ideal VOLE, C");

#[cfg(any(test, feature = "test-util"))]
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

#[cfg(any(test, feature = "test-util"))]
#[allow(clippy::unwrap_used)]
impl Receiver for Ideal {
    fn next<S: VoleScalar>(
        &mut self,
        cx: &mut Context,
        n: usize,
        take: impl FnOnce(&mut Context, Secrets<S>) -> Result<()>,
    ) -> Result<Secrets<Element>> {
        let (a, c) = (cx.ch.rx.recv_bytes(A, n * S::SIZE)?, cx.ch.rx.recv(C, n)?);
        let a = a.chunks_exact(S::SIZE).map(|a| S::get(a).unwrap()).collect::<Vec<S>>();
        take(cx, Secrets::from(a))?;
        Ok(Secrets::from(c))
    }
}

#[cfg(any(test, feature = "test-util"))]
impl Sender for Secret<Element> {
    fn delta(&self) -> &Element {
        self
    }

    fn next<S: VoleScalar>(&mut self, cx: &mut Context, n: usize) -> Result<Secrets<Element>> {
        let a = S::random(n, cx.rng);
        let mut b = Secrets::<Element>::zeros(n);
        cx.rng.fill(b.as_flattened_mut());
        let mut bytes = Vec::new();
        a.iter().for_each(|a| a.put(&mut bytes));
        cx.ch.tx.send_bytes(A, &bytes)?;
        let mut c = b.clone();
        S::add_multiple(self, &a, &mut c);
        cx.ch.tx.send(C, &c)?;
        Ok(b)
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
pub(crate) mod tests;
