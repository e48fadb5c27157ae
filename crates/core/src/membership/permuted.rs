//! Permuted mqPMT and mqRPMT* by "permute, then test" over any Sigma-mqPMT (CZZDL 3.2, 7.2, Figure 11, Remark 7.1).
//!
//! **Permuted mqPMT**: the client learns one bit per query, in a random order that only the server knows. So it learns
//! how many of its items match ([`cardinality`], the PSI-card of Remark 7.1), and nothing else. The server learns
//! nothing.
//!
//! **mqRPMT***: the client sends the bits on, and the server restores their order. The server learns the bits, as in an mqRPMT.
//! **But the client learns the number of matches**, so this is not an [`super::Mqrpmt`]: an intersection, a union or a count
//! built on it would show its sender how many items match.
//!
//! The parties' views, in addition to the sizes:
//!
//! | | permuted mqPMT | mqRPMT* |
//! |---|---|---|
//! | server | the queries, which look random | the queries, and its output |
//! | client | the first message a, and the responses in random order, which give its output | the same |
//!
//! Security: semi-honest, like the Sigma-mqPMT, if that has locality and order invariance ([`super::sigma`]). Nothing binds the
//! client to the bits that it sends. Cost: that of the Sigma-mqPMT, and for mqRPMT* a bit per query; 2 messages in sequence, or
//! 3 for mqRPMT*. Memory: that of the Sigma-mqPMT, and 4 bytes per query for each party.
//!
//! P1 is the server and P2 the client. In a count the client is the receiver. Where the server computes its result from the
//! bits, the server is the receiver.
//!
//! Departures from the figure:
//! - the permutation is over the whole set, and P1 sends no response before it has all queries. A permutation within frames
//!   would show P2 which part of its set a match is in;
//! - P2 permutes its queries before the first message. In mqRPMT* the positions of the bits would otherwise reveal to
//!   P1 which items match;
//! - queries that repeat an item are refused, as far as P1 can detect it: otherwise the number of matches would show whether
//!   that item is in Y.

use super::sigma::{self, SigmaMqpmt};
use crate::channel::{Message, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::HashedSet;
use crate::secret::Secrets;

/// Bits of e* per frame: 64 KiB.
pub(crate) const BITS: usize = 1 << 19;
const E: Message<[u8]> = Message::new(0x18, "client to server  e*, a bit per response");

/// Permuted mqPMT: the client learns which responses match, but not which queries.
pub trait PermutedMqpmt {
    /// Runs the server, for `n_x` queries.
    ///
    /// # Errors
    /// [`Error::Peer`] for queries that no honest client sends; [`Error::Usage`] for sets that are too large; [`Error::Bug`] if
    /// the set's precomputation does not belong to it; and the errors of the channel.
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<()>;

    /// Runs the client; the server's set has `n_y` items. Returns a bit for each item and dummy of X, in an order that the
    /// client does not know.
    ///
    /// # Errors
    /// [`Error::Peer`] for messages that no honest server sends; [`Error::Usage`] for sets that are too large; [`Error::Bug`] if
    /// the set's precomputation does not belong to it; and the errors of the channel.
    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<bool>>;
}

/// mqRPMT*: an mqRPMT whose client also learns the number of matches.
pub trait MqrpmtStar {
    /// Runs the server, for `n_x` queries. Returns one bit per query.
    ///
    /// # Errors
    /// [`Error::Peer`] for messages that no honest client sends; [`Error::Usage`] for sets that are too large; [`Error::Bug`] if
    /// the set's precomputation does not belong to it; and the errors of the channel.
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>>;

    /// Runs the client; the server's set has `n_y` items. Returns the order of the queries, as in an mqRPMT, and the number of
    /// matches. Query j was the item at position `order[j]` of X. The number exceeds `n_y` only if the server deviates; any
    /// reaction to that must wait until the run is confirmed.
    ///
    /// # Errors
    /// [`Error::Peer`] for messages that no honest server sends; [`Error::Usage`] for sets that are too large; [`Error::Bug`] if
    /// the set's precomputation does not belong to it; and the errors of the channel.
    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<(Secrets<u32>, usize)>;
}

/// Counts the matches in the bits of a permuted mqPMT against a set of `n_y` items (Remark 7.1).
///
/// # Errors
/// [`Error::Peer`] if there are more than `n_y` matches. This error depends on the result, so the peer must not learn of it.
pub fn cardinality(bits: &[bool], n_y: usize) -> Result<usize> {
    let matches = bits.iter().filter(|bit| **bit).count();
    match matches <= n_y {
        true => Ok(matches),
        false => Err(Error::misbehaves_unseen(format!("{matches} of our items match its {n_y}"))),
    }
}

/// Permute, then test: both functionalities over a Sigma-mqPMT.
pub struct PermuteThenTest<S>(pub S);

impl<S: SigmaMqpmt> PermuteThenTest<S> {
    /// Runs P1 until it has sent its responses. Returns π.
    fn respond(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<u32>> {
        // 1. to 3. P1 and P2 run the Sigma-mqPMT up to z_i.
        let z = sigma::answer(&self.0, cx, y, n_x)?;
        if cx.threads.run(|| self.0.repeats(&z.parts)) {
            return Err(Error::misbehaves("it asked for the same item twice"));
        }
        // 4. P1 picks π over all queries, and sends z*_i = z_π(i).
        let order = cx.rng.permutation(n_x);
        z.send(&mut cx.ch.tx, &order)?;
        Ok(order)
    }

    /// Runs P2 with its queries in random order. Returns this order and e*.
    fn ask(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<(Secrets<u32>, Secrets<bool>)> {
        // 0. P2 permutes its queries.
        let order = cx.rng.permutation(x.len());
        // 5. e*_i = Test(a, z*_i)
        let bits = sigma::ask(&self.0, cx, x, n_y, &order)?;
        Ok((order, bits))
    }
}

impl<S: SigmaMqpmt> PermutedMqpmt for PermuteThenTest<S> {
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<()> {
        self.respond(cx, y, n_x).map(drop)
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<bool>> {
        self.ask(cx, x, n_y).map(|(_, bits)| bits)
    }
}

impl<S: SigmaMqpmt> MqrpmtStar for PermuteThenTest<S> {
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>> {
        let order = self.respond(cx, y, n_x)?;
        cx.ch.stage("comparing", Unit::Bytes, n_x.div_ceil(8));
        // 6. P1 receives e* and sets e_π(i) = e*_i.
        let (mut e, mut at) = (Secrets::zeros(n_x), 0);
        for n in frames(n_x, BITS) {
            let bytes = cx.ch.rx.recv_bytes(E, n.div_ceil(8))?;
            let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1 == 1;
            if (n..8 * bytes.len()).any(bit) {
                return Err(Error::misbehaves("it sent more bits than there are queries"));
            }
            order[at..at + n].iter().enumerate().for_each(|(i, &query)| e[query as usize] = bit(i));
            at += n;
        }
        Ok(e)
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<(Secrets<u32>, usize)> {
        let (order, bits) = self.ask(cx, x, n_y)?;
        cx.ch.stage("comparing", Unit::Bytes, x.len().div_ceil(8));
        // 6. P2 sends e*.
        for bits in bits.chunks(BITS) {
            let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
            cx.ch.tx.send_bytes(E, &bits.chunks(8).map(byte).collect::<Vec<u8>>())?;
        }
        Ok((order, bits.iter().filter(|bit| **bit).count()))
    }
}

/// The ideal functionalities, for testing their callers: the client sends its queries in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const BACK: Message<[u8]> = Message::new(0x7005, "ideal bit");

#[cfg(any(test, feature = "test-util"))]
impl Ideal {
    fn bits(cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>> {
        super::Mqrpmt::server(&super::Ideal, cx, y, n_x)
    }
}

#[cfg(any(test, feature = "test-util"))]
impl PermutedMqpmt for Ideal {
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<()> {
        let bits = Ideal::bits(cx, y, n_x)?;
        let order = cx.rng.permutation(bits.len());
        order.iter().try_for_each(|&i| cx.ch.tx.send_bytes(BACK, &[u8::from(bits[i as usize])]))
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<bool>> {
        super::Mqrpmt::client(&super::Ideal, cx, x, n_y)?;
        let bits = (0..x.len()).map(|_| Ok(cx.ch.rx.recv_bytes(BACK, 1)?[0] == 1));
        Ok(Secrets::from(bits.collect::<Result<Vec<bool>>>()?))
    }
}

#[cfg(any(test, feature = "test-util"))]
#[allow(clippy::unwrap_used)]
impl MqrpmtStar for Ideal {
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>> {
        let bits = Ideal::bits(cx, y, n_x)?;
        cx.ch.tx.send_bytes(BACK, &(bits.iter().filter(|bit| **bit).count() as u64).to_le_bytes())?;
        Ok(bits)
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<(Secrets<u32>, usize)> {
        let order = super::Mqrpmt::client(&super::Ideal, cx, x, n_y)?;
        let count = cx.ch.rx.recv_bytes(BACK, 8)?;
        Ok((order, u64::from_le_bytes(count.try_into().unwrap()) as usize))
    }
}

#[cfg(test)]
#[path = "permuted_tests.rs"]
mod tests;
