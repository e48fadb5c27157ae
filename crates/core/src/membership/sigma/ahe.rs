//! Sigma-mqPMT from additively homomorphic encryption (CZZDL B.2, Figure 15 and the paragraph after it).
//!
//! P2 sends its public key, and for each item x encryptions of the powers x^1 to x^n_y in Z_l, where l is the order of
//! ristretto255. P1 computes the polynomial f whose roots are its items. It responds to each query with a fresh encryption of
//! r f(x), with r uniform and nonzero. The plaintext is 0 if x is in Y, and a uniform nonzero value otherwise: a response
//! depends on its bit only (locality). No first message is sent (order invariance), and the test needs only the secret key.
//!
//! Security: semi-honest, DDH on ristretto255 (IND-CPA of ElGamal), with the hash of the items as a random oracle. Leakage: the
//! sizes; the client's bits are the output. Cost: n_x n_y ciphertexts of 64 bytes to the server and n_x back. The client does 2
//! n_x n_y + n_x + 1 scalar multiplications, the server n_x (2 n_y + 3). So the sets are bounded: n_y by [`MOST_Y`], n_x by
//! [`MOST_X`]. Memory: two frames of 256 KiB, and for the server the responses; for the client, half a KiB for each response of
//! a frame while it tests them; per thread, half a KiB for each ciphertext of the query that it works on.
//!
//! P1 cannot check that a query holds powers of one item, or that two queries are of different items, so it refuses nothing on
//! these grounds ([`SigmaMqpmt::repeats`]). A client that deviates in this way still learns only which responses hold 0, or,
//! where P1 permutes them ([`crate::membership::permuted`]), only how many. But there it chooses what is counted: if it repeats
//! its items 1, 2, 4, ... times, the count shows for 12 of them which match; and a query can hold sums of several items.
//! Nothing ties a response to its query either: a server that deviates can evaluate any polynomials of its degree, and several
//! of them on one query.
//!
//! Departures from the paper, and points that must not change:
//! - each response adds a fresh encryption of 0 under the public key, with randomness of full range. The client knows the
//!   randomness of its queries. Without this encryption, the first part of a response is r times a value that the client can
//!   compute for a guessed Y, and the second part then shows whether the guess is right;
//! - r is nonzero. The paper draws it from the whole field, and r = 0 would give a false match;
//! - items are hashed to Z_l in a domain of the session. A false match needs a collision there, of probability
//!   n_x n_y 2^-252;
//! - an empty Y has f = 1, and counts as one item in the queries: each holds one power, on which the response does not depend.
//!   So no query is empty. Without queries no key is sent.

use super::{SigmaMqpmt, Sizes};
use crate::ahe::elgamal::{Ciphertext, Malformed, PublicKey, Scalar, SecretKey, reduced, unit};
use crate::channel::{Message, Rx, Tx};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::ristretto255::Encoding;
use crate::hash::{Domain, ItemHash};
use crate::hashed::HashedSet;
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::threads::Threads;
use rayon::prelude::*;
use zeroize::Zeroizing;

/// The maximum number of items and dummies of the server.
pub const MOST_Y: usize = 1 << 8;
/// The maximum number of queries.
pub const MOST_X: usize = 1 << 12;

const KEY: Message<Encoding> = Message::new(0x19, "client to server  public key");

/// The Sigma-mqPMT over ristretto255.
pub struct SigmaAhe;

/// The state of P1: the coefficients of f, the constant one first, and P2's key if there are queries.
pub struct Server {
    f: Secrets<Scalar>,
    key: Option<PublicKey>,
}

/// The state of P2: its secret key, the randomness of its queries, and its set.
pub struct Client<'s> {
    key: SecretKey,
    rng: Prng,
    x: &'s HashedSet<'s>,
    powers: usize,
    domain: Domain,
}

/// The number of ciphertexts in a query, where the server has `n_y` items and dummies.
pub(crate) const fn powers(n_y: usize) -> usize {
    if n_y > 0 { n_y } else { 1 }
}

fn domain(cx: &Context) -> Domain {
    Domain::new(&cx.session, "Sigma-mqPMT from AHE, an item as a scalar")
}

fn scalars(domain: &Domain, hashes: &[ItemHash]) -> Secrets<Scalar> {
    let scalar = |hash: &ItemHash| *reduced(&Zeroizing::new(domain.hash(&[hash.as_bytes()])));
    Secrets::from(hashes.par_iter().map(scalar).collect::<Vec<_>>())
}

/// The coefficients of the polynomial with these roots, the constant one first; those above its degree are 0.
fn with_roots(roots: &[Scalar]) -> Secrets<Scalar> {
    let mut f = Secrets::zeros(powers(roots.len()) + 1);
    f[0] = Scalar::ONE;
    for (degree, root) in roots.iter().enumerate() {
        // f := f (X - root)
        for i in (0..=degree + 1).rev() {
            let below = if i > 0 { f[i - 1] } else { Scalar::ZERO };
            f[i] = below - f[i] * root;
        }
    }
    f
}

fn check(of: Sizes) -> Result<()> {
    match of.n_y <= MOST_Y && of.n_x <= MOST_X {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "membership tests by AHE take sets of at most {MOST_Y} and {MOST_X} items, not {} and {}",
            of.n_y, of.n_x
        ))),
    }
}

impl SigmaMqpmt for SigmaAhe {
    type Server<'s> = Server;
    type Client<'s> = Client<'s>;
    type Encoding = ();
    type Query = Ciphertext;
    type Response = Ciphertext;
    type Opened = bool;

    const QUERIES: Message<Ciphertext> = Message::new(0x1a, "client to server  Enc(x^1), ..., Enc(x^n)");
    const RESPONSES: Message<Ciphertext> = Message::new(0x1b, "server to client  Enc(r f(x))");

    fn units(of: Sizes) -> usize {
        powers(of.n_y)
    }

    fn server<'s>(&self, cx: &mut Context, y: &'s HashedSet<'s>, of: Sizes) -> Result<Server> {
        check(of)?;
        let all: Vec<u32> = (0..y.len() as u32).collect();
        // f(X) = (X - y_1) ... (X - y_n)
        let domain = domain(cx);
        let f = cx.threads.run(|| with_roots(&scalars(&domain, &y.hashes(&all))));
        let mut key = None;
        if of.n_x > 0 {
            let wrong =
                |_| Error::misbehaves("its public key is not an element of ristretto255, or its identity");
            key = Some(PublicKey::of(&cx.ch.rx.recv(KEY, 1)?[0]).map_err(wrong)?);
        }
        Ok(Server { f, key })
    }

    fn client<'s>(&self, cx: &mut Context, x: &'s HashedSet<'s>, of: Sizes) -> Result<Client<'s>> {
        check(of)?;
        let key = SecretKey::random(cx.rng);
        if of.n_x > 0 {
            cx.ch.tx.send(KEY, &[key.public()])?;
        }
        Ok(Client { key, rng: cx.rng.split(), x, powers: powers(of.n_y), domain: domain(cx) })
    }

    fn send_encoding(&self, _: &Server, _: &mut Tx, _: &Threads, _: Sizes) -> Result<()> {
        Ok(())
    }

    fn receive_encoding(&self, _: &mut Rx, _: Sizes) -> Result<()> {
        Ok(())
    }

    fn queries(&self, client: &Client<'_>, positions: &[u32]) -> Result<Vec<Ciphertext>> {
        let items = scalars(&client.domain, &client.x.hashes(positions));
        let mut out = vec![Ciphertext::default(); positions.len() * client.powers];
        let each = out.par_chunks_mut(client.powers).zip(items.par_iter()).zip(positions);
        each.for_each(|((out, x), &i)| {
            // q_i = (Enc(x_i), Enc(x_i^2), ...)
            let mut powers = Secrets::<Scalar>::zeros(client.powers);
            let mut power = Zeroizing::new(Scalar::ONE);
            for to in powers.iter_mut() {
                *power *= x;
                *to = *power;
            }
            // The randomness of a query depends on its position only, not on the other queries.
            out.copy_from_slice(&client.key.encrypt(&powers, &mut client.rng.fork(i.into())));
        });
        Ok(out)
    }

    fn respond(&self, server: &Server, rng: &mut Prng, queries: &[Ciphertext]) -> Result<Vec<Ciphertext>> {
        let none = || Error::Bug("queries before a public key".into());
        let key = server.key.as_ref().ok_or_else(none)?;
        let rng = rng.split();
        let powers = server.f.len() - 1;
        if !queries.len().is_multiple_of(powers) {
            return Err(Error::Bug("a part of a query".into()));
        }
        // In place: a list that grows would leave behind copies of the responses in the order of the queries.
        let mut responses = Zeroizing::new(vec![Ciphertext::default(); queries.len() / powers]);
        let respond = |(i, (response, query)): (usize, (&mut Ciphertext, &[Ciphertext]))| {
            let rng = &mut rng.fork(i as u64);
            // z_i = Enc(r_i f(x_i)), r_i uniform and not 0,
            let r = unit(rng);
            let weights = Secrets::from(server.f.iter().map(|c| *c * *r).collect::<Vec<_>>());
            // with fresh randomness of its own.
            *response = key.combine(&weights[0], &weights[1..], query, rng)?;
            Ok(())
        };
        let each = responses.par_iter_mut().zip(queries.par_chunks_exact(powers)).enumerate();
        each.try_for_each(respond).map_err(|_: Malformed| malformed("query"))?;
        Ok(std::mem::take(&mut *responses))
    }

    fn repeats(&self, _: &[Zeroizing<Vec<Ciphertext>>]) -> bool {
        // Queries hide their items from P1.
        false
    }

    fn open(&self, client: &Client<'_>, responses: &[Ciphertext]) -> Result<Secrets<bool>> {
        // e_i = 1 if z_i decrypts to 0.
        client.key.are_zero(responses).map_err(|_| malformed("response"))
    }

    fn test(&self, (): &(), opened: &[bool], _: &Threads) -> Result<Secrets<bool>> {
        Ok(Secrets::from(opened.to_vec()))
    }
}

fn malformed(what: &str) -> Error {
    Error::misbehaves(format_args!("a {what} holds what is not an element of ristretto255, or its identity"))
}

#[cfg(test)]
#[path = "ahe_tests.rs"]
mod tests;
