//! Conditional OPRF (cOPRF; GNT23 3.2, Figures 4 and 5; GNT23 as in [`super::mot`]).
//!
//! The sender S has a key k and a set X, the receiver R has queries q. For each query R gets F(k, q) = H(q)^k if q is
//! *not* in X, and otherwise a random element. It does not learn which of the two it got. S learns nothing.
//!
//! F is the PRF of ristretto255 as a [`crate::group::Group`]. A secret-shared private membership test (SS-PMT) has already
//! determined which queries are in X; both parties have shares of its result ([`super::mot`]).
//!
//! 1. R draws alpha and a random element v_0 for each query, and computes v_1 = H(q)^alpha.
//! 2. In an mOT with R as the sender, S gets v_0 if q is in X, and v_1 otherwise.
//! 3. S returns w = v^k.
//! 4. R outputs w^(1/alpha).
//!
//! Security: semi-honest, DDH on ristretto255, H a random oracle, and the security of the mOT. Leakage: the number of queries.
//! To S, v is a uniform element in either case. To R, v_0^k is a random element under DDH, and so is its output. R knows v_0,
//! which must therefore be fresh for each query: two queries with the same v_0 would have equal w if and only if both are in X.
//!
//! Cost: the mOT with rows of 32 bytes, and 32 bytes from S to R per query. Per query, R does two scalar multiplications and
//! maps two elements, and S does one multiplication. Memory: 97 bytes per query for R and 65 for S, and the memory of the mOT.
//!
//! **Why no operation uses it.** GNT23 builds its union of many sets from cOPRFs. There the clients query the cOPRF of one
//! party, under one key. If two clients collude and both hold x, they compare their values for x, which are equal if and only
//! if x is not in X. A union must not reveal that. A test shows the attack. A union needs mOT on the items themselves. (One
//! client that queries x twice learns it too, so queries must be distinct.)
//!
//! Departures from Figure 5: alpha and k are scalars of full range. The paper takes 128 bits, at which a discrete logarithm
//! takes only 2^64 steps. v_0 is an element, where the paper takes bytes, which cannot be raised to k unless they
//! encode an element. Values from the peer must encode elements other than the identity. The values that S receives depend on
//! X, so if one is malformed, S stops with an error that the peer must not learn of.

use super::mot::MembershipOt;
use crate::channel::Message;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::raised::forged;
use crate::group::ristretto255::{
    Element, Encoding, Key, Point, Ristretto255, Scalars, decode, encode, hash_to_group, map, multiply,
};
use crate::group::{Group, Point as _, Unfit};
use crate::hash::ItemHash;
use crate::rng::Prng;
use crate::secret::Secrets;
use zeroize::Zeroizing;

/// Queries per frame: 8192, or 256 KiB. Each party computes on one frame at a time.
const FRAME: usize = 1 << 13;

const W: Message<Point> = Message::new(0xe3, "S->R  conditional OPRF, w = v^k");

/// A protocol for cOPRF, from the shares of an SS-PMT of the queries. Both parties pass the same number of shares.
///
/// A session runs it once. To run it again, pass `part(session, ..)` ([`crate::hash::part`]) with a different name each
/// time.
pub trait ConditionalOprf {
    /// Runs R. Returns a value for each query, in their order. Queries must be distinct: from two equal ones, R would see
    /// whether they are in X.
    fn receiver(
        &self,
        cx: &mut Context,
        queries: &[ItemHash],
        shares: Secrets<bool>,
    ) -> Result<Secrets<Encoding>>;

    /// Runs S.
    fn sender(&self, cx: &mut Context, key: &Key, shares: Secrets<bool>) -> Result<()>;
}

/// The protocol of Figure 5 over an mOT.
pub struct FromMot<M>(pub M);

impl<M: MembershipOt> ConditionalOprf for FromMot<M> {
    fn receiver(
        &self,
        cx: &mut Context,
        queries: &[ItemHash],
        shares: Secrets<bool>,
    ) -> Result<Secrets<Encoding>> {
        if shares.len() != queries.len() {
            return Err(Error::bug(format!("{} shares of {} queries", shares.len(), queries.len())));
        }
        // 1. R draws alpha and v_0, and computes v_1.
        let (mut alphas, mut rows) = (Vec::new(), Secrets::with_capacity(queries.len()));
        for queries in queries.chunks(FRAME) {
            let alpha = Scalars::random(queries.len(), cx.rng);
            let v_0 = random_elements(queries.len(), cx.rng);
            rows.extend(&cx.threads.run(|| offered(&v_0, hash_to_group(queries), &alpha))?);
            alphas.push(alpha);
        }
        // 2. R is the sender of the mOT.
        self.0.sender(cx, shares, size_of::<Encoding>(), |i, v_0, v_1| {
            let [of_members, of_others] = &rows[i];
            v_0.copy_from_slice(of_members);
            v_1.copy_from_slice(of_others);
        })?;
        drop(rows);
        // 4. R removes alpha.
        let mut values = Secrets::with_capacity(queries.len());
        for alpha in &alphas {
            let w: Vec<Encoding> = cx.ch.rx.recv(W, alpha.len())?.iter().map(|w| *w.as_bytes()).collect();
            let without = || -> Result<Secrets<Encoding>> {
                let mut elements = decode(&w).map_err(|_| forged::<Ristretto255>(Unfit))?;
                multiply(&mut elements, &alpha.inverses());
                Ok(encode(&elements))
            };
            values.extend(&cx.threads.run(without)?);
        }
        Ok(values)
    }

    fn sender(&self, cx: &mut Context, key: &Key, shares: Secrets<bool>) -> Result<()> {
        // 2. S gets v.
        let mut v = Zeroizing::new(Vec::with_capacity(shares.len()));
        self.0.receiver(cx, shares, size_of::<Encoding>(), |row| v.extend(Point::of_ours(row)))?;
        // 3. S returns v^k. It returns nothing until all elements have been checked.
        let raised = v.chunks(FRAME).map(|v| cx.threads.run(|| Ristretto255::raise(v, key)));
        let w = raised.collect::<Result<Vec<_>, Unfit>>().map_err(unseen)?;
        w.iter().try_for_each(|w| cx.ch.tx.send(W, w))
    }
}

/// The error for an unfit point that S received in the mOT, one of the two that R offered.
fn unseen(_: Unfit) -> Error {
    Error::misbehaves_unseen(format_args!("it offered {}", Ristretto255::UNFIT))
}

/// Bytes that map to `n` uniform elements with unknown logarithms.
fn random_elements(n: usize, rng: &mut Prng) -> Zeroizing<Vec<[u8; 64]>> {
    Zeroizing::new((0..n).map(|_| rng.bytes()).collect::<Vec<_>>())
}

/// v_0 and v_1 of queries, from the bytes that map to v_0, the elements H(q), and alpha.
fn offered(
    v_0: &[[u8; 64]],
    mut hashed: Secrets<Element>,
    alpha: &Scalars,
) -> Result<Secrets<[Encoding; 2]>> {
    multiply(&mut hashed, alpha);
    let (v_0, v_1) = (encode(&map(v_0)), encode(&hashed));
    if v_0.iter().chain(v_1.iter()).any(|element| *element == [0; 32]) {
        return Err(Error::Bug("a conditional OPRF met the identity, which has probability 2^-250".into()));
    }
    Ok(Secrets::from(v_0.iter().zip(v_1.iter()).map(|(v_0, v_1)| [*v_0, *v_1]).collect::<Vec<_>>()))
}

/// The ideal functionality, for testing its callers: the sender sends its shares and key in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const KEY: Message<[u8; 32]> = Message::new(0x70e2, "S->R  ideal conditional OPRF, the key");
#[cfg(any(test, feature = "test-util"))]
const SHARES: Message<[u8; 1]> = Message::new(0x70e3, "S->R  ideal conditional OPRF, shares");

#[cfg(any(test, feature = "test-util"))]
#[allow(clippy::unwrap_used)]
impl ConditionalOprf for Ideal {
    fn receiver(
        &self,
        cx: &mut Context,
        queries: &[ItemHash],
        shares: Secrets<bool>,
    ) -> Result<Secrets<Encoding>> {
        use crate::group::Key as _;
        let key = Key::of_ours(&cx.ch.rx.recv(KEY, 1)?[0]).unwrap();
        let theirs = cx.ch.rx.recv(SHARES, shares.len())?;
        let of_others = Ristretto255::map_and_raise(queries, &key).map_err(forged::<Ristretto255>)?;
        let of_members = encode(&map(&random_elements(queries.len(), cx.rng)));
        let is_member = theirs.iter().zip(shares.iter()).map(|(theirs, ours)| (theirs[0] == 1) ^ ours);
        let both = of_members.iter().zip(&of_others).zip(is_member);
        let value = both.map(|((random, value), is)| if is { *random } else { *value.as_bytes() });
        Ok(Secrets::from(value.collect::<Vec<_>>()))
    }

    fn sender(&self, cx: &mut Context, key: &Key, shares: Secrets<bool>) -> Result<()> {
        use crate::group::Key as _;
        cx.ch.tx.send(KEY, &[*key.as_bytes().first_chunk().unwrap()])?;
        cx.ch.tx.send(SHARES, &shares.iter().map(|share| [u8::from(*share)]).collect::<Vec<_>>())
    }
}

#[cfg(test)]
#[path = "conditional_tests.rs"]
mod tests;
