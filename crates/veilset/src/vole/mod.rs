//! Vector oblivious linear evaluation (VOLE): what it is. The files beside this one say how.
//!
//! Over GF(2^128) ([`veilset_kernels::gf128`]), random: the receiver gets vectors A and C, the sender Delta and a
//! vector B, with C_i = Delta A_i + B_i. A and Delta are uniform, and the sender learns nothing of A, the receiver
//! nothing of Delta.

mod code;
mod gilboa;
pub mod silent;
mod tree;

use crate::channel::Channel;
use crate::error::Result;
use crate::hash::SessionId;
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};

/// An element of GF(2^128).
pub type Element = [u8; 16];

/// Adds `b` to `a`.
pub(crate) fn add(a: &mut Element, b: &Element) {
    *a = (u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b)).to_le_bytes();
}

/// What the receiver gets.
pub struct Received {
    /// A.
    pub a: Secrets<Element>,
    /// C = Delta A + B.
    pub c: Secrets<Element>,
}

/// What the sender gets.
pub struct Sent {
    /// Delta.
    pub delta: Secret<Element>,
    /// B.
    pub b: Secrets<Element>,
}

/// A protocol for random VOLE. A party runs it once with a session and a purpose (see [`crate::ot`]).
pub trait Vole {
    /// The receiver's part, for vectors of `n` elements.
    fn receiver(
        &self,
        ch: &mut Channel,
        session: &SessionId,
        purpose: &'static str,
        n: usize,
        rng: &mut Prng,
    ) -> Result<Received>;

    /// The sender's part, for vectors of `n` elements.
    fn sender(
        &self,
        ch: &mut Channel,
        session: &SessionId,
        purpose: &'static str,
        n: usize,
        rng: &mut Prng,
    ) -> Result<Sent>;
}

/// The ideal functionality, for tests of what is built on it: the sender sends what the receiver gets.
#[cfg(test)]
pub(crate) struct Ideal;

#[cfg(test)]
const ALL: crate::channel::Message<Element> =
    crate::channel::Message::new(0x7003, "S->R  ideal VOLE, A and C");

#[cfg(test)]
impl Vole for Ideal {
    fn receiver(
        &self,
        ch: &mut Channel,
        _: &SessionId,
        _: &'static str,
        n: usize,
        _: &mut Prng,
    ) -> Result<Received> {
        let (a, c) = (ch.rx.recv(ALL, n)?, ch.rx.recv(ALL, n)?);
        Ok(Received { a: Secrets::from(a), c: Secrets::from(c) })
    }

    fn sender(
        &self,
        ch: &mut Channel,
        _: &SessionId,
        _: &'static str,
        n: usize,
        rng: &mut Prng,
    ) -> Result<Sent> {
        let delta = rng.bytes();
        let (mut a, mut b) = (Secrets::<Element>::zeros(n), Secrets::<Element>::zeros(n));
        rng.fill(a.as_flattened_mut());
        rng.fill(b.as_flattened_mut());
        ch.tx.send(ALL, &a)?;
        let mut c = b.clone();
        veilset_kernels::gf128::add_multiple(&delta, &a, &mut c);
        ch.tx.send(ALL, &c)?;
        Ok(Sent { delta: Secret::new(delta), b })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{Views, run_pair};
    use std::collections::HashSet;
    use veilset_kernels::gf128::add_multiple;

    /// That the parties' vectors are a VOLE by the definition, of random elements.
    pub(crate) fn is_a_vole(protocol: &(impl Vole + Sync), n: usize) -> (Received, Sent, Views) {
        let session = SessionId::of([6; 32]);
        let ((received, sent), views) = run_pair(
            |ch, rng| protocol.receiver(ch, &session, "a", n, rng),
            |ch, rng| protocol.sender(ch, &session, "a", n, rng),
        );
        assert_eq!((received.a.len(), received.c.len(), sent.b.len()), (n, n, n));
        let mut expected = sent.b.clone();
        add_multiple(&sent.delta, &received.a, &mut expected);
        assert_eq!(*received.c, *expected, "{n}");
        let all: HashSet<Element> =
            received.a.iter().chain(received.c.iter()).chain(sent.b.iter()).copied().collect();
        assert_eq!(all.len(), 3 * n, "elements that are equal");
        (received, sent, views)
    }

    #[test]
    fn the_ideal_functionality_is_one() {
        for n in [0, 1, 100] {
            is_a_vole(&Ideal, n);
        }
    }
}
