//! mqRPMT from fully homomorphic encryption, for a server with a small set (CZZDL B.2, Figure 15, with masked slots).
//!
//! ```text
//! client   a key pair; for each query x, the powers 1 .. n_y of its components h_1(x), h_2(x) modulo t, encrypted:
//!          4096 queries in a ciphertext per power
//! server   f_j(X), the product of X - h_j(y) over its whole set, at the encrypted components, plus a random mask in each
//!          slot; with a fresh encryption of 0 and flooding noise
//! client   decrypts v = f(x) + mask
//! both     by an OPRF, the server learns for which queries the client's v is its mask
//! ```
//!
//! Security: semi-honest, ring learning with errors ([`crate::params::bfv`]), and the security of the OPRF. The parties' views:
//! - the server: ciphertexts; then for each query whether v is its mask, that is, whether f(x) is 0 in both components. The
//!   queries are in a secret order;
//! - the client: v, which is uniform because of the masks, and nothing about the comparison. From a response it also learns the
//!   noise, which is flooded, and c1. Without the encryption of 0, c1 would be a function of the queries and of f, against
//!   which a client could test guesses of Y. The public key must be well-formed: see below.
//!
//! Leakage: the sizes. Cost: n_y polynomials of 168 KiB for each 4096 queries, and two back; the OPRF on n_x inputs of each
//! party, and a tag of 6 to 8 bytes per query. If a set is empty, nothing is sent. The work is a dozen transforms per
//! polynomial. Memory: for the server, two polynomials for each 4096 queries; for both parties, 80 bytes per query and the
//! memory of the OPRF; a few polynomials per thread.
//!
//! Departures from the figure, and points that must not change:
//! - the figure's server multiplies f by a random r and the client learns whether r f(x) is 0. Here many queries share a
//!   ciphertext, and permuting slots is expensive. So each slot is masked and compared, which gives the server the bits. Then f
//!   needs no r;
//! - an item has two components modulo one prime, so that different items agree in both with probability at most 2^-41 per run.
//!   A query whose components match different items of Y counts as such an error. One component modulo a 40-bit prime would not
//!   suffice;
//! - all slots are masked, even slots without a query, with fresh masks for each response;
//! - the bound on the noise holds in the worst case, and the flood is 2^40 times the product of this bound and the number of
//!   all coefficients sent. No response decrypts wrongly;
//! - the client sends powers, so no ciphertexts are multiplied and no relinearization keys are needed;
//! - the client reads all responses before the comparison begins, and a key serves one run. A server that deviates can answer
//!   with any ciphertexts, and include one query in several of them. The comparison then acts as a decryption oracle that gives
//!   a bit per query and response, but the server cannot choose a ciphertext depending on earlier bits.
//!
//! A party that deviates learns more, and nothing here detects it:
//! - a client that adds 2^120 to the first half of its public key still decrypts correctly. But a response then reveals the u
//!   of the encryption of 0 and, with u, the coefficients of f in c1. So the client can test any number of guesses of Y. It can
//!   also query f at values of no item, or at one value twice;
//! - a server that evaluates the OPRF at inputs of its choice, as `cm20` and `vole` allow ([`crate::oprf::multi_point`],
//!   [`crate::oprf::vole`]), can test any number of guesses of a query against its tag: it knows f and the masks.

use crate::channel::{HEADER, Message, Rx, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash, part};
use crate::hashed::HashedSet;
use crate::membership::Mqrpmt;
use crate::membership::bfv::{Bfv, Element, POLYNOMIAL, Pair, SecretKey, slots};
use crate::oprf::multi_point::MultiPoint;
use crate::oprf::vole::Rr22;
use crate::oprf::{Input, Oprf, OprfCost};
use crate::params::bfv::{Budget, PLAIN, QUERIES};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::threads::Threads;
use crate::vole::silent::Silent;
use rayon::prelude::*;
use subtle::ConstantTimeEq;

const PUBLIC_KEY: Message<[u8]> =
    Message::new(0x2c, "client to server  seed of the second halves, public key");
const POWER: Message<[u8]> = Message::new(0x2d, "client to server  a power of the queries, encrypted");
const RESPONSE: Message<[u8]> = Message::new(0x2e, "server to client  f at the queries, masked, encrypted");
const TAGS: Message<[u8]> = Message::new(0x2f, "client to server  tags of the values of the responses");

/// Bytes of a public seed.
const SEED: usize = 32;
/// The number of polynomials per thread in a group.
const EACH: usize = 4;
/// Tags per frame.
pub(crate) const FRAME: usize = 1 << 14;

/// The two components of an item, or the two values of a query.
type Components = [u64; 2];

/// The mqRPMT from fully homomorphic encryption.
pub struct FromFhe;

impl Mqrpmt for FromFhe {
    fn server(&self, cx: &mut Context, y: &HashedSet, n_x: usize) -> Result<Secrets<bool>> {
        let budget = Budget::new(y.len(), n_x)?;
        if y.is_empty() || n_x == 0 {
            return Ok(Secrets::zeros(n_x));
        }
        cx.ch.stage("matching", Unit::Bytes, bytes(y.len(), budget.batches));
        let bfv = cx.threads.run(Bfv::new)?;
        let f = polynomial(&bfv, &components(cx, &bfv, y));
        // 2. P2's public key and its queries,
        let (seed, public_key) = receive_key(&bfv, &mut cx.ch.rx)?;
        // These grow with the queries received, not with the number announced.
        let (mut masks, mut responses) = (Secrets::zeros(0), Vec::new());
        for (batch, n) in frames(n_x, QUERIES).enumerate() {
            // at which P1 evaluates f,
            let sum = evaluate(&bfv, &mut cx.ch.rx, cx.threads, &seed, &f, batch)?;
            // masked in all slots.
            let rho = draw_masks(cx.rng);
            let masked: Vec<Components> =
                rho.iter().map(|rho| [0, 1].map(|j| bfv.plain().add(f[0][j], rho[j]))).collect();
            let masked = slots(&Secrets::from(masked));
            let [c0, c1] = bfv.finish(sum, &masked, &public_key, budget.flood, cx.rng)?;
            responses.push([bfv.write(&c0), bfv.write(&c1)].concat());
            masks.extend(&rho[..n]);
        }
        // 3. It sends no response before it has all queries.
        responses.iter().try_for_each(|z| cx.ch.tx.send_bytes(RESPONSE, z))?;
        drop(responses);
        compare(cx, &masks, budget.tag)
    }

    fn client(&self, cx: &mut Context, x: &HashedSet, n_y: usize) -> Result<Secrets<u32>> {
        let budget = Budget::new(n_y, x.len())?;
        // 0. P2 sends its queries in random order, so that the positions of the bits reveal nothing to P1.
        let order = cx.rng.permutation(x.len());
        if x.is_empty() || n_y == 0 {
            return Ok(order);
        }
        cx.ch.stage("matching", Unit::Bytes, bytes(n_y, budget.batches));
        let bfv = cx.threads.run(Bfv::new)?;
        let all = components(cx, &bfv, x);
        // 1. P2 draws its keys,
        let key = bfv.secret_key(cx.rng)?;
        let seed: [u8; SEED] = cx.rng.bytes();
        let b = bfv.public_key(&key, &bfv.uniform(&seed, 0)?, cx.rng)?;
        cx.ch.tx.send_bytes(PUBLIC_KEY, &[&seed[..], &bfv.write(&b)].concat())?;
        // 2. and sends the powers of its queries, encrypted.
        for (batch, positions) in order.chunks(QUERIES).enumerate() {
            let queries: Vec<Components> = positions.iter().map(|&i| all[i as usize]).collect();
            send_powers(cx, &bfv, (&key, &seed), &slots(&Secrets::from(queries)), n_y, batch)?;
        }
        // 4. It decrypts f(x_i) plus a mask, and lets P1 compare that to the mask.
        let mut values = Secrets::with_capacity(x.len());
        for n in frames(x.len(), QUERIES) {
            let z = cx.ch.rx.recv_bytes(RESPONSE, 2 * POLYNOMIAL)?;
            let (c0, c1) = z.split_at(POLYNOMIAL);
            let [c0, c1] = [c0, c1].map(|half| bfv.read("response", half));
            let v = bfv.decrypt(&key, &[c0?, c1?])?;
            let (first, second) = v.split_at(QUERIES);
            let pairs = first.iter().zip(second).take(n).map(|(first, second)| [*first, *second]);
            values.extend(&Secrets::from(pairs.collect::<Vec<Components>>()));
        }
        reveal(cx, &values, budget.tag)?;
        Ok(order)
    }
}

/// Bytes of all polynomials and of the key.
fn bytes(n_y: usize, batches: usize) -> usize {
    SEED + POLYNOMIAL + (n_y + 2) * batches * POLYNOMIAL
}

/// The bytes that the server and the client send before the comparison.
pub(crate) fn sends(n_y: usize, n_x: usize) -> [usize; 2] {
    if n_y == 0 || n_x == 0 {
        return [0; 2];
    }
    let batches = n_x.div_ceil(QUERIES);
    let [key, power, response] = [SEED + POLYNOMIAL, POLYNOMIAL, 2 * POLYNOMIAL].map(|bytes| bytes + HEADER);
    [batches * response, key + n_y * batches * power]
}

/// The components of all items of a set, in their order: independent hashes modulo t.
///
/// Each is a 128-bit hash modulo a 40-bit prime, so no residue has a probability above 1 / t + 2^-128.
fn components(cx: &Context, bfv: &Bfv, set: &HashedSet) -> Secrets<Components> {
    let domain = Domain::new(&cx.session, "Sigma-mqPMT from FHE, components of an item");
    let t = bfv.plain();
    let both = |hash: &ItemHash| {
        let bytes: [u8; 32] = domain.hash(&[hash.as_bytes()]);
        let [first, second] = [bytes.first_chunk(), bytes.last_chunk()];
        [first, second].map(|half| t.reduce_u128(u128::from_le_bytes(half.copied().unwrap_or_default())))
    };
    let mut all = Secrets::with_capacity(set.len());
    let positions: Vec<u32> = (0..set.len() as u32).collect();
    for positions in positions.chunks(QUERIES) {
        let hashes = set.hashes(positions);
        all.extend(&cx.threads.run(|| Secrets::from(hashes.par_iter().map(both).collect::<Vec<_>>())));
    }
    all
}

/// The coefficients of the product of X - y over all y, the constant one first, for each component.
fn polynomial(bfv: &Bfv, roots: &[Components]) -> Secrets<Components> {
    let t = bfv.plain();
    let mut f = Secrets::<Components>::zeros(roots.len() + 1);
    f[0] = [1; 2];
    for (degree, root) in roots.iter().enumerate() {
        for k in (0..=degree + 1).rev() {
            let below = if k > 0 { f[k - 1] } else { [0; 2] };
            f[k] = [0, 1].map(|j| t.sub(below[j], t.mul(f[k][j], root[j])));
        }
    }
    f
}

/// A mask for each slot of a response.
fn draw_masks(rng: &mut Prng) -> Secrets<Components> {
    Secrets::from((0..QUERIES).map(|_| [rng.below(PLAIN), rng.below(PLAIN)]).collect::<Vec<_>>())
}

/// The number of the second half of a ciphertext of the power `k` under the seed. The public key has number 0.
fn numbered(batch: usize, k: usize) -> u64 {
    (batch as u64) << 32 | k as u64
}

/// P2 sends the powers 1 to `n_y` of these slots.
fn send_powers(
    cx: &mut Context,
    bfv: &Bfv,
    (key, seed): (&SecretKey, &[u8; SEED]),
    queries: &Secrets<u64>,
    n_y: usize,
    batch: usize,
) -> Result<()> {
    let t = bfv.plain();
    let rng = cx.rng.split();
    let mut power = queries.clone();
    let mut next = 1;
    for n in frames(n_y, EACH * cx.threads.count()) {
        let mut group = Vec::with_capacity(n);
        for k in next..next + n {
            group.push((k, power.clone()));
            t.mul_vec(&mut power, queries);
        }
        next += n;
        let encrypt = |(k, slots): &(usize, Secrets<u64>)| {
            let a = bfv.uniform(seed, numbered(batch, *k))?;
            bfv.encrypt(key, slots, &a, &mut rng.fork(*k as u64)).map(|c| bfv.write(&c))
        };
        let sent = cx.threads.run(|| group.par_iter().map(encrypt).collect::<Result<Vec<_>>>())?;
        sent.iter().try_for_each(|c| cx.ch.tx.send_bytes(POWER, c))?;
    }
    Ok(())
}

/// P1 receives the seed and the public key.
fn receive_key(bfv: &Bfv, rx: &mut Rx) -> Result<([u8; SEED], Pair)> {
    let bytes = rx.recv_bytes(PUBLIC_KEY, SEED + POLYNOMIAL)?;
    let (seed, b) = bytes.split_first_chunk().ok_or_else(|| Error::Bug("a key without a seed".into()))?;
    let b = bfv.read("public key", b)?;
    Ok((*seed, [b, bfv.uniform(seed, 0)?]))
}

/// P1 receives the powers of a batch, and sums their products with the coefficients of f, except the constant one.
fn evaluate(
    bfv: &Bfv,
    rx: &mut Rx,
    threads: &Threads,
    seed: &[u8; SEED],
    f: &[Components],
    batch: usize,
) -> Result<Pair> {
    let mut sum = [bfv.nothing(), bfv.nothing()];
    let mut next = 1;
    for n in frames(f.len() - 1, EACH * threads.count()) {
        let received = (next..next + n).map(|k| Ok((k, rx.recv_bytes(POWER, POLYNOMIAL)?)));
        let received = received.collect::<Result<Vec<_>>>()?;
        next += n;
        let times = |(k, c0): &(usize, Vec<u8>)| {
            let coefficient = bfv.constant(f[*k])?;
            let times = |half: Element| bfv.multiply(half, &coefficient);
            Ok([times(bfv.read("query", c0)?), times(bfv.uniform(seed, numbered(batch, *k))?)])
        };
        for product in threads.run(|| received.par_iter().map(times).collect::<Result<Vec<Pair>>>())? {
            sum.iter_mut().zip(&product).for_each(|(sum, half)| **sum += &**half);
        }
    }
    Ok(sum)
}

/// Of the OPRFs of cm20 and vole the one with less traffic for a comparison of `n` inputs of each party, and its cost.
pub(crate) fn comparison(n: usize) -> (Box<dyn Oprf + Send + Sync>, OprfCost) {
    let (cm20, vole) = (MultiPoint::default(), Rr22::new(Silent::default()));
    let exponent = crate::params::LAMBDA;
    let costs = [cm20.cost(exponent, n, n), vole.cost(exponent, n, n)];
    let [few, many] = costs.each_ref().map(|cost| cost.sends().iter().sum::<usize>());
    let [of_cm20, of_vole] = costs;
    if few <= many { (Box::new(cm20), of_cm20) } else { (Box::new(vole), of_vole) }
}

/// The inputs of the OPRF: a hash of each pair and of its position, so that equal pairs become different inputs.
fn inputs(cx: &Context, pairs: &[Components]) -> Secrets<Input> {
    let domain = Domain::new(&cx.session, "Sigma-mqPMT from FHE, position and value of a query");
    let hash = |(i, [first, second]): (usize, &Components)| {
        let [i, first, second] = [i as u64, *first, *second].map(u64::to_le_bytes);
        Input::from_bytes(domain.hash(&[&i, &first, &second]))
    };
    cx.threads.run(|| Secrets::from(pairs.par_iter().enumerate().map(hash).collect::<Vec<_>>()))
}

/// The context of the OPRF, in a part of the session.
fn within<'c>(cx: &'c mut Context) -> Context<'c> {
    let session = part(&cx.session, "Sigma-mqPMT from FHE, comparison");
    Context { ch: cx.ch, session, rng: cx.rng, exponent: cx.exponent, threads: cx.threads }
}

/// Runs P1's side of the comparison. Returns for each mask whether it equals P2's value at the same position.
fn compare(cx: &mut Context, masks: &[Components], tag: usize) -> Result<Secrets<bool>> {
    let inputs = inputs(cx, masks);
    let (oprf, cost) = comparison(masks.len());
    cx.ch.stage("comparing", cost.progress.0, cost.progress.1);
    let outputs = oprf.receiver(&mut within(cx), &inputs, masks.len())?;
    let mut bits = Secrets::with_capacity(masks.len());
    for outputs in outputs.chunks(FRAME) {
        let tags = cx.ch.rx.recv_bytes(TAGS, outputs.len() * tag)?;
        let equal = |(output, theirs): (&[u8; 32], &[u8])| output[..tag].ct_eq(theirs).into();
        bits.extend(&Secrets::from(outputs.iter().zip(tags.chunks(tag)).map(equal).collect::<Vec<bool>>()));
    }
    Ok(bits)
}

/// Runs P2's side of the comparison.
fn reveal(cx: &mut Context, values: &[Components], tag: usize) -> Result<()> {
    let inputs = inputs(cx, values);
    let (oprf, cost) = comparison(values.len());
    cx.ch.stage("comparing", cost.progress.0, cost.progress.1);
    let outputs = oprf.sender(&mut within(cx), &inputs, values.len())?;
    outputs.chunks(FRAME).try_for_each(|outputs| {
        let tags: Vec<u8> = outputs.iter().flat_map(|output| output.iter().copied().take(tag)).collect();
        cx.ch.tx.send_bytes(TAGS, &tags)
    })
}

#[cfg(test)]
#[path = "fhe_tests.rs"]
mod tests;
