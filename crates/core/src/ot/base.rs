//! Base OTs over ristretto255: endemic OT (MR19: "Endemic Oblivious Transfer", Masny and Rindal, CCS 2019), with
//! Diffie-Hellman key agreement.
//!
//! Security: malicious receivers and senders, DDH, random oracles into the group and into keys. Leakage: none. The
//! paper's parties may send at the same time, and each may influence its own output ("endemic"). The sender sends b G
//! only after r_0 and r_1 have arrived: a receiver that knew it could try values of r_0 until it gets a pad of its
//! choice. CM20 relies on this order; OT extension does not.
//!
//! Cost: 96 bytes and 5 scalar multiplications per OT in total, batched over all OTs. One of the five makes the
//! sender's fresh key pair per OT (128 in total for OT extension), which avoids an assumption.
//!
//! The two keys are r_0 + H_0(r_1) and r_1 + H_1(r_0). The receiver picks one of the two elements uniformly, and computes
//! the other such that the key of its choice is a G. Each key includes a hash of the other key's element. So the
//! receiver can know the discrete logarithm of at most one key.

use super::Pad;
use crate::channel::Message;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::ristretto255::{Element, Scalars, Table, add, decode, encode, map, multiply, subtract};
use crate::hash::{Domain, SessionId, part};
use crate::rng::Prng;
use crate::secret::Secrets;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

const R: Message<[u8; 64]> = Message::new(0x31, "R->S  base OT r_0, r_1");
const B: Message<[u8; 32]> = Message::new(0x32, "S->R  base OT b G");

/// The encoding of a group element.
type Bytes = [u8; 32];

/// The pair r_0, r_1.
type Pair = [Bytes; 2];

/// The random oracles of one batch.
struct Oracles {
    point: Domain,
    key: Domain,
}

impl Oracles {
    fn new(session: &SessionId, purpose: &'static str) -> Self {
        let part = part(session, purpose);
        Oracles { point: Domain::new(&part, "base OT point"), key: Domain::new(&part, "base OT key") }
    }

    /// The uniform bytes that map to H_0(r) or H_1(r), as `branch` says, of OT `i`.
    fn uniform(&self, i: usize, branch: u8, r: &Bytes) -> [u8; 64] {
        self.point.hash(&[&(i as u64).to_le_bytes(), &[branch], r])
    }

    /// The pad of branch `branch` of OT `i`, from the shared element and the transcript.
    fn pad(&self, i: usize, branch: u8, shared: &Bytes, r: &Pair, b: &Bytes) -> Pad {
        let i = (i as u64).to_le_bytes();
        self.key.hash(&[&i, &[branch], &r[0], &r[1], b, shared])
    }
}

/// Runs the receiver, with one OT per choice. Returns the chosen pads. For `purpose` see [`super`].
pub fn receiver(cx: &mut Context, purpose: &'static str, choices: &[bool]) -> Result<Secrets<Pad>> {
    let oracles = Oracles::new(&cx.session, purpose);
    // 1. r_(1-c) is uniform, r_c = a G - H_c(r_(1-c)). Computed for both values of c, so that the time does not
    //    reveal the choice.
    let n = choices.len();
    let a = Scalars::random(n, cx.rng);
    let other = cx.threads.run(|| encode(&map(&unpicked(n, cx.rng))));
    let a_g = Table::generator().multiply(&a);
    let choose = |branch| {
        // Zeroized, because it would reveal which of r_0 and r_1 was picked uniformly.
        let uniform = other.iter().enumerate().map(|(i, r)| oracles.uniform(i, branch, r));
        let uniform = Zeroizing::new(uniform.collect::<Vec<_>>());
        let mut chosen = a_g.clone();
        subtract(&mut chosen, &map(&uniform));
        encode(&chosen)
    };
    let chosen = cx.threads.run(|| [0, 1].map(choose));
    let pair = |i: usize| {
        let c = Choice::from(u8::from(choices[i]));
        [
            Bytes::conditional_select(&chosen[0][i], &other[i], c),
            Bytes::conditional_select(&other[i], &chosen[1][i], c),
        ]
    };
    let sent: Vec<Pair> = (0..n).map(pair).collect();
    cx.ch.tx.send(R, &sent.iter().map(joined).collect::<Vec<_>>())?;
    // 3. The chosen pad is derived from a (b G).
    let answers = cx.ch.rx.recv(B, n)?;
    let shared = cx.threads.run(|| {
        let mut shared = group_elements(&answers)?;
        multiply(&mut shared, &a);
        Ok(encode(&shared))
    })?;
    let pad = |i: usize| oracles.pad(i, u8::from(choices[i]), &shared[i], &sent[i], &answers[i]);
    Ok(Secrets::from((0..n).map(pad).collect::<Vec<_>>()))
}

/// The uniform bytes that map to the elements r_(1-c).
fn unpicked(n: usize, rng: &mut Prng) -> Zeroizing<Vec<[u8; 64]>> {
    Zeroizing::new((0..n).map(|_| rng.bytes()).collect::<Vec<_>>())
}

/// Runs the sender for `n` OTs. Returns both pads of each. For `purpose` see [`super`].
pub fn sender(cx: &mut Context, purpose: &'static str, n: usize) -> Result<Secrets<[Pad; 2]>> {
    let oracles = Oracles::new(&cx.session, purpose);
    // 2. b G, computed while the receiver computes. It is sent once the receiver can no longer choose r_0 and r_1, and
    //    before the pads are computed, so that both parties compute them in parallel.
    let b = Scalars::random(n, cx.rng);
    let answers = cx.threads.run(|| encode(&Table::generator().multiply(&b)));
    let received: Vec<Pair> = cx.ch.rx.recv(R, n)?.iter().map(split).collect();
    cx.ch.tx.send(B, &answers)?;
    // 3. The pads are derived from b (r_0 + H_0(r_1)) and b (r_1 + H_1(r_0)).
    let r = cx.threads.run(|| group_elements(received.as_flattened()))?;
    let branches = || (0..n).flat_map(|i| [(i, 0), (i, 1)]);
    let uniform: Vec<_> = branches()
        .map(|(i, branch)| oracles.uniform(i, branch, &received[i][usize::from(1 - branch)]))
        .collect();
    let mut shared = r;
    let shared = cx.threads.run(|| {
        add(&mut shared, &map(&uniform));
        multiply(&mut shared, &b.twice_each());
        encode(&shared)
    });
    let mut pads = Secrets::<[Pad; 2]>::zeros(n);
    for ((i, branch), shared) in branches().zip(shared.iter()) {
        pads[i][usize::from(branch)] = oracles.pad(i, branch, shared, &received[i], &answers[i]);
    }
    Ok(pads)
}

/// Decodes the peer's elements, none of which may be the identity.
fn group_elements(bytes: &[Bytes]) -> Result<Secrets<Element>> {
    decode(bytes)
        .map_err(|i| Error::misbehaves(format_args!("element {i} of its base OTs is not one of the group")))
}

fn joined(pair: &Pair) -> [u8; 64] {
    let mut joined = [0; 64];
    joined.as_chunks_mut::<32>().0.copy_from_slice(pair);
    joined
}

fn split(joined: &[u8; 64]) -> Pair {
    let (first, second) = joined.split_at(32);
    let mut pair = [[0; 32]; 2];
    pair[0].copy_from_slice(first);
    pair[1].copy_from_slice(second);
    pair
}

#[cfg(test)]
#[path = "base_tests.rs"]
mod tests;
