//! An OPRF in bins (a batched OPRF, bOPRF), from a VOLE: in each bin the receiver has one query x_j and learns F_j(x_j); the
//! sender can evaluate every F_j anywhere. The construction is RR22's ([`super::vole`]), with one element per bin instead of a
//! key-value store.
//!
//! The VOLE gives C = Delta A + B. The receiver sends d_j = x_j + a_j. With F_j(y) = H(j, b_j + Delta (d_j + y)), the
//! receiver's value is F_j(x_j) = H(j, c_j). At any other y of the bin, c_j is offset by Delta (x_j + y), which is
//! not 0.
//!
//! A query is the first half of the hash of an item, so two items have the same query with probability 2^-128. Where a bin has
//! no item, its query is random, or one that both parties know. A value of F has 16 bytes.
//!
//! Security: semi-honest, like the VOLE, with H correlation robust (BLAKE3). To the receiver, F_j(y) is random for all y other
//! than x_j; the bins share Delta, but a bin's number is part of the hash input. To the sender, the d_j are random, as A is. If
//! the assumption of the VOLE's code fails, A is not random, and the sender could test guesses of the queries.
//!
//! Leakage: the number of bins. Cost: a VOLE of one element per bin, and 16 bytes per bin from receiver to sender (56 in KKRT,
//! [`super::kkrt`]); one hash per bin and per evaluation.
//!
//! Memory: the VOLE of one part; per bin one element (of R's values or S's keys, the latter twice where there are several
//! parts); 16 bytes per point that S evaluates; and the frames. The keys grow part by part with the d_j received, not with
//! the number of bins announced.

use super::vole::whole;
use super::{Input, OprfCost};
use crate::channel::{HEADER, Message, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId, part};
use crate::okvs::Value;
use crate::ot::extension;
use crate::secret::{Secret, Secrets};
use crate::vole::silent::Silent;
use crate::vole::{Element, Receiver, Sender, Vole, add};
use crate::work::Primitive::{BaseOt, StoreValue};
use crate::work::{Step, Work};
use rayon::prelude::*;
use veilset_kernels::gf128::add_multiple;

/// Elements per frame: 8192, or 128 KiB.
pub(crate) const FRAME: usize = 1 << 13;
/// Points evaluated at once: 8 KiB of values.
const BATCH: usize = 1 << 9;
/// The number of elements in a part of the VOLE, as in [`super::vole`]: a multiple of [`FRAME`], and more than a million items
/// need.
const PART: usize = 1 << 21;

const D: Message<Element> = Message::new(0xc0, "R->S  queries of bins, x + a");

/// A query: the [`query`] of an item; in a bin without one, 16 bytes that are random or known to both parties.
pub type Query = [u8; 16];

/// The query of an item: the first half of its hash.
pub fn query(input: &Input) -> Query {
    input.as_chunks().0[0]
}

/// A query in a bin.
#[derive(Clone, Copy, Default)]
pub struct BinPoint {
    /// The number of the bin.
    pub bin: u32,
    /// The query.
    pub query: Query,
}

/// An OPRF with one query in each bin.
///
/// Both parties know the number of bins. A session, or a part of one, runs it at most once for each `purpose`, a constant that
/// nothing else in it uses (see [`crate::ot`]). Where one purpose occurs several times, as between several pairs of parties,
/// each use has its own part of the session ([`crate::hash::part`]).
pub trait BinOprf {
    /// The sender's keys.
    type Keys: BinKeys;

    /// Runs the receiver, with the query of each bin. Returns F_j at the query of bin j, for all bins.
    fn receiver(&self, cx: &mut Context, purpose: &'static str, queries: &[Query]) -> Result<Secrets<Value>>;

    /// Runs the sender for this number of bins. Returns the keys of all F_j.
    fn sender(&self, cx: &mut Context, purpose: &'static str, bins: usize) -> Result<Self::Keys>;
}

/// The keys of the F_j.
pub trait BinKeys: Sync {
    /// Returns F at `n` points; `point(i)` is number i.
    ///
    /// # Errors
    /// [`Error::Bug`] for a bin that does not exist.
    fn evaluate(&self, n: usize, point: impl Fn(usize) -> BinPoint + Sync) -> Result<Secrets<Value>>;
}

/// The OPRF in bins over any VOLE.
pub struct FromVole<V> {
    vole: V,
    /// [`PART`]; smaller in tests.
    part: usize,
}

impl<V> FromVole<V> {
    /// The protocol over this VOLE.
    pub fn new(vole: V) -> FromVole<V> {
        FromVole { vole, part: PART }
    }
}

impl FromVole<Silent> {
    /// The cost for this number of bins, and for the sender's values at this number of points.
    pub(crate) fn cost(&self, bins: usize, points: usize) -> OprfCost {
        let parts = || frames(bins, self.part);
        let (there, back) = self.vole.traffic::<Element>(parts());
        let [vole_r, vole_s] = self.vole.held::<Element>(parts());
        // K of all parts, twice while they are concatenated.
        let k = if bins > self.part { 16 * bins } else { 0 };
        let receiver = 16 * bins + vole_r;
        let queries = size_of::<Element>() * bins + HEADER * bins.div_ceil(FRAME);
        let sender = (k + vole_s).max(2 * k).max(16 * bins + 16 * points);
        OprfCost {
            steps: vec![
                Step::both(Work::of(BaseOt, extension::WIDTH) + self.vole.work::<Element>(parts()))
                    .sends((there + queries) as u64, back as u64),
                Step::of(Work::default(), Work::of(StoreValue, points)),
            ],
            // The base OTs, with a message in each direction, and the further rounds of the VOLE.
            rounds: 2 + self.vole.rounds(parts()),
            answered: self.vole.answers(parts()),
            held: [receiver, sender].map(|bytes| extension::SETUP_HELD + bytes),
            each_thread: [0; 2],
            progress: (Unit::Items, bins),
        }
    }
}

/// The sender's keys: Delta, and b_j + Delta d_j of each bin; and H.
pub struct VoleKeys {
    h: Domain,
    delta: Secret<Element>,
    k: Secrets<Element>,
}

/// H of a session and purpose.
fn oracle(session: &SessionId, purpose: &'static str) -> Domain {
    Domain::new(&part(session, purpose), "value of an OPRF in bins")
}

/// H(j, value) for a batch of values with the numbers j of their bins.
fn hash(h: &Domain, values: impl Iterator<Item = (usize, Element)>, outputs: &mut [Value]) {
    let mut blocks = Secrets::<[[u8; 16]; 4]>::zeros(outputs.len());
    for (block, (bin, value)) in blocks.iter_mut().zip(values) {
        block[0] = value;
        block[1][..8].copy_from_slice(&(bin as u64).to_le_bytes());
    }
    let mut hashes = Secrets::<[u8; 32]>::zeros(outputs.len());
    h.hash_blocks(24, blocks.as_flattened().as_flattened().as_chunks().0, &mut hashes);
    outputs.iter_mut().zip(hashes.iter()).for_each(|(output, hash)| *output = hash.as_chunks().0[0]);
}

impl<V: Vole> BinOprf for FromVole<V> {
    type Keys = VoleKeys;

    fn receiver(&self, cx: &mut Context, purpose: &'static str, queries: &[Query]) -> Result<Secrets<Value>> {
        let mut vole = self.vole.receiver(cx, purpose)?;
        let h = oracle(&cx.session, purpose);
        let mut values = Secrets::<Value>::zeros(queries.len());
        let parts = queries.chunks(self.part).zip(values.chunks_mut(self.part)).enumerate();
        for (number, (queries, values)) in parts {
            // 1. The VOLE, and d_j = x_j + a_j to S.
            let send = |cx: &mut Context, mut a: Secrets<Element>| {
                a.iter_mut().zip(queries).for_each(|(a, x)| add(a, x));
                a.chunks(FRAME).try_for_each(|d| cx.ch.tx.send(D, d))
            };
            let c = vole.next(cx, queries.len(), send)?;
            // 2. F_j(x_j) = H(j, c_j).
            let first = number * self.part;
            cx.threads.run(|| {
                let batches = values.par_chunks_mut(BATCH).zip(c.par_chunks(BATCH)).enumerate();
                batches.for_each(|(batch, (values, c))| {
                    hash(&h, (first + batch * BATCH..).zip(c.iter().copied()), values);
                });
            });
        }
        Ok(values)
    }

    fn sender(&self, cx: &mut Context, purpose: &'static str, bins: usize) -> Result<VoleKeys> {
        let mut vole = self.vole.sender(cx, purpose)?;
        let delta = Secret::new(*vole.delta());
        let mut parts = Vec::new();
        for part in frames(bins, self.part) {
            // 1. The VOLE, and b_j + Delta d_j.
            let mut b = vole.next::<Element>(cx, part)?;
            for (n, b) in frames(part, FRAME).zip(b.chunks_mut(FRAME)) {
                add_multiple(&delta, &cx.ch.rx.recv(D, n)?, b);
            }
            parts.push(b);
        }
        Ok(VoleKeys { h: oracle(&cx.session, purpose), delta, k: whole(parts) })
    }
}

impl BinKeys for VoleKeys {
    fn evaluate(&self, n: usize, point: impl Fn(usize) -> BinPoint + Sync) -> Result<Secrets<Value>> {
        let mut outputs = Secrets::<Value>::zeros(n);
        let batches = outputs.par_chunks_mut(BATCH).enumerate();
        batches.try_for_each(|(batch, outputs)| -> Result<()> {
            let points = (batch * BATCH..).take(outputs.len()).map(&point).collect::<Vec<_>>();
            let points = Secrets::from(points);
            let queries = Secrets::from(points.iter().map(|point| point.query).collect::<Vec<_>>());
            // F_j(y) = H(j, b_j + Delta (d_j + y)).
            let mut values = Secrets::<Element>::zeros(points.len());
            for (value, point) in values.iter_mut().zip(points.iter()) {
                *value = *self.k.get(point.bin as usize).ok_or_else(|| no_bin(point.bin))?;
            }
            add_multiple(&self.delta, &queries, &mut values);
            let bins = points.iter().map(|point| point.bin as usize);
            hash(&self.h, bins.zip(values.iter().copied()), outputs);
            Ok(())
        })?;
        Ok(outputs)
    }
}

fn no_bin(bin: u32) -> Error {
    Error::bug(format!("there is no bin {bin}"))
}

/// The ideal functionality, for testing its callers: the sender sends its key in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const KEY: Message<[u8; 32]> = Message::new(0x7012, "S->R  ideal OPRF in bins, the key");

/// The sender's key, and the number of bins.
#[cfg(any(test, feature = "test-util"))]
#[derive(Clone)]
pub struct IdealKeys([u8; 32], usize);

#[cfg(any(test, feature = "test-util"))]
impl BinOprf for Ideal {
    type Keys = IdealKeys;

    fn receiver(&self, cx: &mut Context, _: &'static str, queries: &[Query]) -> Result<Secrets<Value>> {
        let keys = IdealKeys(cx.ch.rx.recv(KEY, 1)?[0], queries.len());
        keys.evaluate(queries.len(), |i| BinPoint { bin: i as u32, query: queries[i] })
    }

    fn sender(&self, cx: &mut Context, _: &'static str, bins: usize) -> Result<IdealKeys> {
        let key = cx.rng.bytes();
        cx.ch.tx.send(KEY, &[key])?;
        Ok(IdealKeys(key, bins))
    }
}

#[cfg(any(test, feature = "test-util"))]
impl BinKeys for IdealKeys {
    fn evaluate(&self, n: usize, point: impl Fn(usize) -> BinPoint + Sync) -> Result<Secrets<Value>> {
        let f = |point: BinPoint| match (point.bin as usize) < self.1 {
            true => {
                let input = [&point.bin.to_le_bytes()[..], &point.query].concat();
                Ok(blake3::keyed_hash(&self.0, &input).as_bytes().as_chunks().0[0])
            }
            false => Err(no_bin(point.bin)),
        };
        Ok(Secrets::from((0..n).map(|i| f(point(i))).collect::<Result<Vec<Value>>>()?))
    }
}

#[cfg(test)]
#[path = "bins_tests.rs"]
mod tests;
