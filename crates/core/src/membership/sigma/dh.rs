//! Sigma-mqPMT from a commutative weak PRP in a group (CZZDL B.1, Figure 14).
//!
//! Security: semi-honest, DDH, with `H` and the hash of the values as random oracles. Leakage: the sizes; the client's bits are
//! the output. Cost: n_x points each way (32 bytes over Curve25519), and n_y tags (about 62 bits each at 2^20 items per side).
//! The server does n_y + n_x scalar multiplications, the client 2 n_x. Memory: in addition to the hashed set, the server holds
//! 20 bytes per item of its own, a point per query, and up to 48 bytes per query while it looks for repeated ones; the client,
//! up to 48 bytes per item of the server and per query.
//!
//! A query is H(x)^s, the response H(x)^sk, and a has F_k(y) = H(y)^k for all of Y. P2 removes s and looks the result up in a.
//! So a response for an item outside Y is H(x)^sk, which looks random (locality), and a is a set of random-looking values that
//! includes the matches (order invariance).
//!
//! Departures from the figure, and points that must not change:
//! - a holds tags of digests of F_k(y), in a compact set that is sorted as a whole. In the figure the first message is in the
//!   order of Y, which would show P2 which items of Y match;
//! - one s serves all queries. With a mask per query, P2 would have to know which query a response answers, and the test would
//!   not be stateless;
//! - invalid points and points of low order are rejected, as in [`crate::membership::cwprf`]. So a key of 0, whose results are
//!   the identity, is noticed.

use super::{EXPONENT, SigmaMqpmt, Sizes};
use crate::channel::{Message, Rx, Tx};
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::context::Context;
use crate::error::Result;
use crate::group::raised::{Raised, forged, unlucky};
use crate::group::{Group, Point};
use crate::hash::Domain;
use crate::hashed::HashedSet;
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::threads::Threads;
use rayon::prelude::*;
use zeroize::Zeroizing;

/// The number of points raised and hashed at a time.
const BATCH: usize = 1 << 13;

/// The Sigma-mqPMT over a group.
pub struct SigmaDh<G>(pub G);

/// The state of P1: k and its set.
pub struct Server<'s, G: Group> {
    own: Raised<'s, G>,
    n: usize,
    domain: Domain,
}

/// The state of P2: s, its inverse, and its set.
pub struct Client<'s, G: Group> {
    own: Raised<'s, G>,
    unmask: G::Key,
    domain: Domain,
}

/// The first message: tags of F_k(y).
pub struct EncodedTags(golomb::Tags);

fn domain(cx: &Context) -> Domain {
    Domain::new(&cx.session, "Sigma-mqPMT from DDH, digest of H(y)^k")
}

fn digests<P: Point>(domain: &Domain, points: &[P]) -> Secrets<u128> {
    let digest = |point: &P| u128::from_be_bytes(domain.hash(&[point.as_ref()]));
    Secrets::from(points.par_iter().map(digest).collect::<Vec<_>>())
}

impl<G: Group> SigmaMqpmt for SigmaDh<G> {
    type Server<'s> = Server<'s, G>;
    type Client<'s> = Client<'s, G>;
    type Encoding = EncodedTags;
    type Query = G::Point;
    type Response = G::Point;
    type Opened = u128;

    const QUERIES: Message<G::Point> = Message::new(0x16, "client to server  H(x)^s");
    const RESPONSES: Message<G::Point> = Message::new(0x17, "server to client  H(x)^sk");

    fn server<'s>(&self, cx: &mut Context, y: &'s HashedSet<'s>, _: Sizes) -> Result<Server<'s, G>> {
        // 1. P1 picks k,
        Ok(Server { own: Raised::new(y, cx.rng)?, n: y.len(), domain: domain(cx) })
    }

    fn client<'s>(&self, cx: &mut Context, x: &'s HashedSet<'s>, _: Sizes) -> Result<Client<'s, G>> {
        // 2. P2 picks s,
        let (own, unmask) = Raised::with_inverse(x, cx.rng)?;
        Ok(Client { own, unmask, domain: domain(cx) })
    }

    fn send_encoding(&self, server: &Server<'_, G>, tx: &mut Tx, threads: &Threads, of: Sizes) -> Result<()> {
        let a = Golomb::new(EXPONENT, of.n_x, of.n_y)?;
        // and sends F_k(y_j) for all j,
        let all: Vec<u32> = (0..server.n as u32).collect();
        let mut values = Secrets::with_capacity(server.n);
        for positions in all.chunks(BATCH) {
            let points = threads.run(|| server.own.points(positions)).map(Zeroizing::new).map_err(unlucky)?;
            values.extend(&threads.run(|| digests(&server.domain, &points)));
        }
        // a is sorted, so its order shows nothing.
        a.send(tx, threads, values)
    }

    fn receive_encoding(&self, rx: &mut Rx, of: Sizes) -> Result<EncodedTags> {
        Ok(EncodedTags(Golomb::new(EXPONENT, of.n_x, of.n_y)?.receive(rx)?))
    }

    fn queries(&self, client: &Client<'_, G>, positions: &[u32]) -> Result<Vec<G::Point>> {
        // and sends q_i = F_s(x_i).
        client.own.points(positions).map_err(unlucky)
    }

    fn respond(&self, server: &Server<'_, G>, _: &mut Prng, queries: &[G::Point]) -> Result<Vec<G::Point>> {
        // 3. P1 sends z_i = F_k(q_i).
        G::raise(queries, server.own.key()).map_err(forged::<G>)
    }

    fn repeats(&self, responses: &[Zeroizing<Vec<G::Point>>]) -> bool {
        // Compares responses, not queries: two queries that differ by a point of low order have the same response.
        let domain = Domain::without_session("Sigma-mqPMT from DDH, equal responses");
        let mut sorted = Secrets::zeros(0);
        responses.iter().for_each(|some| sorted.extend(&digests(&domain, some)));
        sorted.par_sort_unstable();
        sorted.windows(2).any(|w| w[0] == w[1])
    }

    fn open(&self, client: &Client<'_, G>, responses: &[G::Point]) -> Result<Secrets<u128>> {
        // Test(a, z_i): P2 removes s,
        let points = Zeroizing::new(G::raise(responses, &client.unmask).map_err(forged::<G>)?);
        Ok(digests(&client.domain, &points))
    }

    fn test(&self, a: &EncodedTags, opened: &[u128], threads: &Threads) -> Result<Secrets<bool>> {
        // and looks F_k(x_i) up in a.
        a.0.test(threads, opened)
    }
}

#[cfg(test)]
#[path = "dh_tests.rs"]
mod tests;
