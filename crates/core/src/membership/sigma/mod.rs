//! Sigma-mqPMT: multi-query membership tests in three moves (CZZDL 7.1, Figure 10).
//!
//! P1, the server, holds Y and sends a first message a, an encoding of Y. P2, the client, holds X and sends a query
//! q_i for each of its items; P1 responds with z_i. From a and z_i, P2 learns whether x_i is in Y. P1 learns nothing.
//!
//! Run as it is, a Sigma-mqPMT is a PSI whose client gets the result. If P1 permutes the responses, it gives the
//! client the number of matches, or the server the bits: [`super::permuted`]. The following properties allow that:
//!
//! - **Reusable**: P1 sends the first message once, and it serves all queries of the run. (It serves no other run: each run has
//!   its own key);
//! - **Context-independent**: a query depends on its item and P2's randomness (in the paper also on a, but here queries
//!   are sent before a has arrived), and on no other query or response. So all queries can be sent at once;
//! - **Stateless**: the test of a response uses neither its item nor its query. So it works on responses in an order
//!   that P2 does not know.
//!
//! The proof of mqRPMT* requires two more. A simulated response depends only on its bit and on its own coins (*locality*). The
//! message a can be simulated from bits and coins in any order (*order invariance*), so it must not show the order of Y.
//!
//! P2 may send a public key before its queries. A query may consist of several ciphertexts ([`SigmaMqpmt::units`]).
//!
//! Security: semi-honest. Every secret serves one run only.
//!
//! The submodules implement it from DDH and from additively homomorphic encryption. Another one has the mqRPMT from fully
//! homomorphic encryption, which the paper derives from a Sigma-mqPMT.

pub mod ahe;
pub mod dh;
#[cfg(feature = "fhe")]
pub mod fhe;

use crate::channel::{Message, Rx, Tx, Unit, Wire, frames};
use crate::context::Context;
use crate::error::Result;
use crate::hashed::HashedSet;
use crate::params::{LAMBDA, share};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::threads::Threads;
use zeroize::{Zeroize, Zeroizing};

/// The exponent of the error probability. A query wrongly found in Y is the only kind of undetected error.
pub(crate) const EXPONENT: u32 = share(LAMBDA, 1);
/// The number of 32-byte points per frame: queries or responses of the DDH instance.
pub(crate) const FRAME: usize = per_frame(32);

/// The number of values of `bytes` bytes per frame of queries or responses: as many as fit into 256 KiB, and at least 1.
pub(crate) const fn per_frame(bytes: usize) -> usize {
    let n = (1 << 18) / bytes;
    if n > 0 { n } else { 1 }
}

/// The public sizes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The number of items and dummies of the server.
    pub n_y: usize,
    /// The number of queries.
    pub n_x: usize,
}

/// A Sigma-mqPMT: the three moves, and the test.
///
/// The signatures enforce two of the properties. [`SigmaMqpmt::respond`] only reads P1's state, so the first message serves any
/// number of queries. [`SigmaMqpmt::open`] and [`SigmaMqpmt::test`] get responses, but are not told which query each answers.
pub trait SigmaMqpmt: Sync {
    /// The state of P1: its set, and the randomness of its first message.
    type Server<'s>: Sync;
    /// The state of P2: its set, and one secret for all queries.
    type Client<'s>: Sync;
    /// The first message, as P2 keeps it.
    type Encoding;
    /// A query, or one of the units that it consists of ([`SigmaMqpmt::units`]).
    type Query: Wire + Send + Sync;
    /// A response.
    type Response: Wire + Copy + Zeroize + Send + Sync;
    /// A response without P2's mask.
    type Opened: Copy + Default + Send;

    /// The message of the second move.
    const QUERIES: Message<Self::Query>;
    /// The message of the third move.
    const RESPONSES: Message<Self::Response>;

    /// The number of [`SigmaMqpmt::Query`] values in one query, at least 1.
    fn units(_: Sizes) -> usize {
        1
    }

    /// P1 draws its randomness, and receives P2's public key, if there is one.
    ///
    /// # Errors
    /// [`crate::error::Error::Bug`] if the set's precomputation does not belong to it; [`crate::error::Error::Usage`] for sets
    /// that are too large; and the errors of receiving a key.
    fn server<'s>(&self, cx: &mut Context, y: &'s HashedSet<'s>, of: Sizes) -> Result<Self::Server<'s>>;

    /// P2 draws its randomness, and sends its public key, if there is one.
    ///
    /// # Errors
    /// [`crate::error::Error::Bug`] if the set's precomputation does not belong to it; [`crate::error::Error::Usage`] for sets
    /// that are too large; and the errors of sending a key.
    fn client<'s>(&self, cx: &mut Context, x: &'s HashedSet<'s>, of: Sizes) -> Result<Self::Client<'s>>;

    /// Move 1: P1 sends a.
    ///
    /// # Errors
    /// [`crate::error::Error::Usage`] for sets that are too large; [`crate::error::Error::Bug`], with negligible probability;
    /// and the errors of sending.
    fn send_encoding(
        &self,
        server: &Self::Server<'_>,
        tx: &mut Tx,
        threads: &Threads,
        of: Sizes,
    ) -> Result<()>;

    /// P2 receives a.
    ///
    /// # Errors
    /// [`crate::error::Error::Peer`] if it is malformed; [`crate::error::Error::Usage`] for sets that are too large; and the
    /// errors of receiving.
    fn receive_encoding(&self, rx: &mut Rx, of: Sizes) -> Result<Self::Encoding>;

    /// Move 2: the queries for P2's items and dummies at these positions, concatenated.
    ///
    /// # Errors
    /// [`crate::error::Error::Bug`], with negligible probability.
    fn queries(&self, client: &Self::Client<'_>, positions: &[u32]) -> Result<Vec<Self::Query>>;

    /// Move 3: P1's responses to these queries, in their order.
    ///
    /// # Errors
    /// [`crate::error::Error::Peer`] for queries that no honest client sends; [`crate::error::Error::Bug`] for a part of a
    /// query, or if the key that the queries need has not been received.
    fn respond(
        &self,
        server: &Self::Server<'_>,
        rng: &mut Prng,
        queries: &[Self::Query],
    ) -> Result<Vec<Self::Response>>;

    /// Whether two of these responses answer the same item, as far as P1 can detect it.
    fn repeats(&self, responses: &[Zeroizing<Vec<Self::Response>>]) -> bool;

    /// First half of Test(a, z_i): P2 removes its mask from responses.
    ///
    /// # Errors
    /// [`crate::error::Error::Peer`] for responses that no honest server sends.
    fn open(&self, client: &Self::Client<'_>, responses: &[Self::Response]) -> Result<Secrets<Self::Opened>>;

    /// Second half of Test(a, z_i): for each response, whether its item is in Y.
    ///
    /// # Errors
    /// The errors of the implementation; those of this crate return none.
    fn test(&self, a: &Self::Encoding, opened: &[Self::Opened], threads: &Threads) -> Result<Secrets<bool>>;
}

/// Queries per frame.
fn queries_per_frame<S: SigmaMqpmt>(of: Sizes) -> usize {
    per_frame(S::units(of) * S::Query::SIZE)
}

/// Responses per frame.
fn responses_per_frame<S: SigmaMqpmt>() -> usize {
    per_frame(S::Response::SIZE)
}

/// Responses to all queries of a client, one part per frame of queries.
pub(super) struct Responses<S: SigmaMqpmt> {
    pub(super) parts: Vec<Zeroizing<Vec<S::Response>>>,
    /// The number of responses in every part but the last.
    part: usize,
}

impl<S: SigmaMqpmt> Responses<S> {
    /// Sends the responses to these queries, in this order.
    pub(super) fn send(&self, tx: &mut Tx, order: &[u32]) -> Result<()> {
        order.chunks(responses_per_frame::<S>()).try_for_each(|queries| {
            let response = |&i: &u32| self.parts[i as usize / self.part][i as usize % self.part];
            let responses: Vec<S::Response> = queries.iter().map(response).collect();
            tx.send(S::RESPONSES, &responses)
        })
    }
}

/// Runs P1 up to its responses, which the caller sends. The first message goes out while the queries come in.
pub(super) fn answer<S: SigmaMqpmt>(
    sigma: &S,
    cx: &mut Context,
    y: &HashedSet,
    n_x: usize,
) -> Result<Responses<S>> {
    let of = Sizes { n_y: y.len(), n_x };
    let (units, part) = (S::units(of), queries_per_frame::<S>(of));
    cx.ch.stage("matching", Unit::Items, (units + 1) * n_x);
    let server = sigma.server(cx, y, of)?;
    let ((), parts) = cx.ch.duplex(
        // 1. P1 sends a, once for all queries.
        |tx| sigma.send_encoding(&server, tx, cx.threads, of),
        // 3. For each query P1 computes z_i. It sends none before it has all queries.
        |rx| {
            let respond = |n| {
                let queries = rx.recv(S::QUERIES, n * units)?;
                cx.threads.run(|| sigma.respond(&server, cx.rng, &queries)).map(Zeroizing::new)
            };
            frames(n_x, part).map(respond).collect()
        },
    )?;
    Ok(Responses { parts, part })
}

/// Runs P2 with its items at these positions as queries, in this order. Returns one bit per response.
pub(super) fn ask<S: SigmaMqpmt>(
    sigma: &S,
    cx: &mut Context,
    x: &HashedSet,
    n_y: usize,
    positions: &[u32],
) -> Result<Secrets<bool>> {
    let of = Sizes { n_y, n_x: positions.len() };
    cx.ch.stage("matching", Unit::Items, (S::units(of) + 1) * positions.len());
    let client = sigma.client(cx, x, of)?;
    let ((), a) = cx.ch.duplex(
        // 2. P2 sends q_i for each of its items.
        |tx| {
            positions.chunks(queries_per_frame::<S>(of)).try_for_each(|positions| {
                let queries = cx.threads.run(|| sigma.queries(&client, positions))?;
                tx.send(S::QUERIES, &queries)
            })
        },
        |rx| sigma.receive_encoding(rx, of),
    )?;
    // e_i = Test(a, z_i)
    let mut opened = Secrets::zeros(0);
    for n in frames(positions.len(), responses_per_frame::<S>()) {
        let z = Zeroizing::new(cx.ch.rx.recv(S::RESPONSES, n)?);
        opened.extend(&cx.threads.run(|| sigma.open(&client, &z))?);
    }
    sigma.test(&a, &opened, cx.threads)
}

/// Runs the server of the mqPMT. It learns nothing.
///
/// # Errors
/// The errors of the moves and of the channel.
pub fn server<S: SigmaMqpmt>(sigma: &S, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<()> {
    // The responses are in the order of the queries.
    answer(sigma, cx, y, n_x)?.send(&mut cx.ch.tx, &(0..n_x as u32).collect::<Vec<_>>())
}

/// Runs the client of the mqPMT. The server's set has `n_y` items. Returns for each item and dummy of X whether it is in the
/// server's set.
///
/// # Errors
/// The errors of the moves and of the channel.
pub fn client<S: SigmaMqpmt>(
    sigma: &S,
    cx: &mut Context,
    x: &HashedSet,
    n_y: usize,
) -> Result<Secrets<bool>> {
    let in_order: Vec<u32> = (0..x.len() as u32).collect();
    ask(sigma, cx, x, n_y, &in_order)
}

#[cfg(test)]
pub(crate) mod tests;
