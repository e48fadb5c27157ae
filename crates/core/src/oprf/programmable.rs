//! A programmable OPRF (OPPRF; KMPRT17: Kolesnikov, Matania, Pinkas, Rosulek and Trieu, "Practical Multi-party Private Set
//! Intersection from Symmetric-Key Techniques", CCS 2017): an OPRF whose values the sender chooses at some inputs. At an input
//! that the sender has, the receiver gets the value that the sender programmed there; at all others, a random value. It does
//! not learn which is the case, unless the values show it.
//!
//! The parties run an OPRF F. The sender encodes key -> F(key) + value in a key-value store ([`crate::okvs`]), the
//! *hint*, and sends it. The receiver's value at x is F(x) + Decode(hint, x). F is a multi-point OPRF ([`Opprf`]) or
//! has one query in each bin ([`BinOpprf`]).
//!
//! **The hint reveals nothing else.** To the receiver, F(key) is random at every key that it does not query. If the value at
//! each key that it does query is random too, all encoded values are random, and so is the hint: its free elements are random.
//! Where a value is not random to the receiver, its query shows that the sender has the key, which is then the purpose of the
//! OPPRF. A value serves one run only. Several keys may have the same value only if the receiver can query at most one of
//! them.
//!
//! The number of encoded keys is the bound known to both parties. A sender with fewer keys adds random keys and values.
//!
//! **Values of w bytes.** The callers know how long a value must be for their error: an unprogrammed value equals another one
//! with probability 2^-8w. The store is linear over GF(2), so the first w bytes of the elements are a store of the first w
//! bytes of F(key) + value, and the rest is not sent. This shows the receiver less than the whole hint. Values are passed as 16
//! bytes; bytes after the first w are 0, or do not count.
//!
//! Security: semi-honest, like F and the store. Leakage: the bounds. Cost: F, 16 bytes, and a store for the bound on the
//! sender's keys: about 1.21 w bytes for each of a million keys, from sender to receiver (`Bounds::traffic`).
//!
//! Memory for the hint, in addition to the keys (`Bounds::held`): in the sender, about 82 bytes per key up to the bound
//! while it encodes; in the receiver, 40 bytes per input and at most 48 per element received while the hint arrives, then
//! 72 and 32. In both, the memory of F before that.

use super::bins::{BinKeys, BinOprf, BinPoint, Query, query};
use super::vole::Rr22;
use super::{Input, Oprf, OprfCost};
use crate::channel::{HEADER, Message, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::ItemHash;
use crate::hashing::cuckoo::{CHOICES, Functions};
use crate::okvs::{self, BandRows, Encoded, Seed, Value};
use crate::secret::Secrets;
use crate::vole::add;
use crate::vole::silent::Silent;
use crate::work::{Primitive, Step, Work};

/// Elements per frame: at most 128 KiB.
pub(crate) const FRAME: usize = 1 << 13;

const SEED: Message<Seed> = Message::new(0xc1, "S->R  seed of the hint");
const HINT: Message<[u8]> = Message::new(0xc2, "S->R  hint of the programmable OPRF");

/// Bounds on the numbers of inputs, and the length of values, known to both parties. They determine the lengths of all
/// messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum number of inputs of the receiver; in bins, the number of bins.
    pub receiver: usize,
    /// The maximum number of inputs of the sender; in bins, of its points.
    pub sender: usize,
    /// The length of a value in bytes, from 1 to 16.
    pub bytes: usize,
}

impl Bounds {
    /// Bytes of the hint, including frame headers.
    pub(crate) fn traffic(self) -> usize {
        let size = okvs::size(self.sender);
        size_of::<Seed>() + self.bytes * size + HEADER * (1 + size.div_ceil(FRAME))
    }

    /// The steps of the hint: the sender encodes it, and the receiver evaluates it.
    pub(crate) fn steps(self) -> Vec<Step> {
        vec![
            Step::of(Work::default(), Work::of(Primitive::StoreRow, self.sender)),
            Step::of(Work::of(Primitive::StoreValue, self.receiver), Work::default())
                .sends(0, self.traffic() as u64),
        ]
    }

    /// The maximum number of bytes that the receiver and the sender hold for the hint, including their values but not the keys.
    pub(crate) fn held(self) -> [usize; 2] {
        let Bounds { receiver, sender, .. } = self;
        let (size, frame) = (okvs::size(sender), FRAME * (self.bytes + size_of::<Value>()));
        // F and the rows, while the rows are made; then the hint too, which may have twice the capacity that it needs, and is
        // copied while it grows; then the sums and the values.
        let (f, rows, value) = (16 * receiver, 24 * receiver, 16 * receiver);
        let of_receiver =
            (f + 2 * rows).max(f + rows + 48 * size + frame).max(f + rows + 32 * size + 2 * value);
        // Values, the rows, and in elimination the leading rows, the elements and the free elements.
        let of_sender =
            16 * sender + (48 * sender).max(24 * sender + 32 * size + 16 * (size - sender)) + frame;
        [of_receiver, of_sender]
    }

    /// Refuses lengths of values that are not from 1 to 16 bytes.
    fn check(self) -> Result<()> {
        match (1..=size_of::<Value>()).contains(&self.bytes) {
            true => Ok(()),
            false => Err(Error::bug(format!("a programmable OPRF with values of {} bytes", self.bytes))),
        }
    }

    /// The bytes of a value that count.
    fn first(self, value: &Value) -> &[u8] {
        value.get(..self.bytes).unwrap_or(value)
    }

    /// A value with zeros after the bytes that count.
    fn cut(self, value: &Value) -> Value {
        widened(self.first(value))
    }
}

/// A value of these bytes, followed by zeros.
fn widened(first: &[u8]) -> Value {
    let mut value = [0; 16];
    value.iter_mut().zip(first).for_each(|(to, from)| *to = *from);
    value
}

/// A programmable OPRF on items.
///
/// A session runs it once. To run it again, pass `part(session, ..)` ([`crate::hash::part`]) with a different name each
/// time.
pub trait Opprf {
    /// Runs the receiver. Returns the values at its inputs, which must be distinct, in their order. Bytes after the length of
    /// values are 0.
    fn receiver(&self, cx: &mut Context, inputs: &[Input], bounds: Bounds) -> Result<Secrets<Value>>;

    /// Runs the sender, which programs `value(i)` at number i of its inputs, cut to the length of values. The inputs must be
    /// distinct.
    fn sender(
        &self,
        cx: &mut Context,
        inputs: &[Input],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()>;
}

/// A programmable OPRF with one query in each bin.
///
/// The `purpose` is as in [`BinOprf`].
pub trait BinOpprf {
    /// Runs the receiver with the query of each bin, as many as the bound. Returns the value of each bin. Bytes after the
    /// length of values are 0.
    fn receiver(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        queries: &[Query],
        bounds: Bounds,
    ) -> Result<Secrets<Value>>;

    /// Runs the sender, which programs `value(i)` at number i of its points, cut to the length of values. The points must be
    /// distinct.
    fn sender(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        points: &(impl Points + ?Sized),
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()>;
}

/// A list of points. Points that follow from smaller data need not all be held in memory.
pub trait Points: Sync {
    /// The number of points.
    fn count(&self) -> usize;

    /// The point with number `i`, below [`Points::count`].
    fn point(&self, i: usize) -> BinPoint;
}

impl Points for [BinPoint] {
    fn count(&self) -> usize {
        self.len()
    }

    fn point(&self, i: usize) -> BinPoint {
        self[i]
    }
}

/// The points of items with three bins each ([`crate::hashing::cuckoo`]), item by item.
pub struct Threefold<'a> {
    items: &'a [Input],
    bins: Secrets<[u32; CHOICES]>,
}

impl<'a> Threefold<'a> {
    /// The points of these items under these functions.
    pub fn new(functions: &Functions, items: &'a [Input]) -> Threefold<'a> {
        Threefold { items, bins: functions.bins_of(items) }
    }
}

impl Points for Threefold<'_> {
    fn count(&self) -> usize {
        CHOICES * self.items.len()
    }

    fn point(&self, i: usize) -> BinPoint {
        BinPoint { bin: self.bins[i / CHOICES][i % CHOICES], query: query(&self.items[i / CHOICES]) }
    }
}

/// The programmable OPRF over an OPRF, which is multi-point or in bins.
pub struct Programmed<F>(pub F);

impl<F: Oprf> Opprf for Programmed<F> {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], bounds: Bounds) -> Result<Secrets<Value>> {
        // 1. F at our inputs, and at random ones up to the bound.
        let all = filled(cx, inputs, bounds.receiver)?;
        let mut f = halves(&self.0.receiver(cx, &all, bounds.sender)?);
        // 2. The hint.
        f.truncate(inputs.len());
        receive_hint(cx, inputs, f, bounds)
    }

    fn sender(
        &self,
        cx: &mut Context,
        inputs: &[Input],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        // 1. F at our inputs, and at random ones up to the bound. To R the latter have random values.
        let all = filled(cx, inputs, bounds.sender)?;
        let mut values = halves(&self.0.sender(cx, &all, bounds.receiver)?);
        // 2. The hint.
        values.iter_mut().take(inputs.len()).enumerate().for_each(|(i, f)| add(f, &value(i)));
        send_hint(cx, &all, values, bounds)
    }
}

impl<F: BinOprf> BinOpprf for Programmed<F> {
    fn receiver(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        queries: &[Query],
        bounds: Bounds,
    ) -> Result<Secrets<Value>> {
        if queries.len() != bounds.receiver {
            return Err(Error::bug(format!("{} queries for {} bins", queries.len(), bounds.receiver)));
        }
        // 1. F_j at the query of each bin.
        let f = self.0.receiver(cx, purpose, queries)?;
        // 2. The hint.
        receive_hint(cx, &keys_of(queries), f, bounds)
    }

    fn sender(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        points: &(impl Points + ?Sized),
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        // 1. F_j at our points.
        let keys = self.0.sender(cx, purpose, bounds.receiver)?;
        let mut values = cx.threads.run(|| keys.evaluate(points.count(), |i| points.point(i)))?;
        drop(keys);
        // 2. The hint.
        values.iter_mut().enumerate().for_each(|(i, f)| add(f, &value(i)));
        send_hint_of(cx, points.count(), |i| key(&points.point(i)), values, bounds)
    }
}

impl Programmed<Rr22<Silent>> {
    /// The cost for these bounds, with an error of 2^-`exponent`.
    pub(crate) fn cost(&self, exponent: u32, bounds: Bounds) -> OprfCost {
        let Bounds { receiver, sender, .. } = bounds;
        let oprf = self.0.cost(exponent, receiver, sender);
        let hint = bounds.held();
        // All inputs; with them F, or its values and their first halves, or the hint.
        let held = [(0, receiver), (1, sender)].map(|(i, n)| 32 * n + oprf.held[i].max(48 * n).max(hint[i]));
        OprfCost {
            steps: [oprf.steps, bounds.steps()].concat(),
            // The hint follows F.
            rounds: oprf.rounds + 1,
            held,
            ..oprf
        }
    }
}

/// The inputs, filled up to `most` with random ones.
fn filled(cx: &mut Context, inputs: &[Input], most: usize) -> Result<Secrets<Input>> {
    let missing = most.checked_sub(inputs.len()).ok_or_else(|| too_many(inputs.len(), most))?;
    let mut all = Secrets::with_capacity(most);
    all.extend(inputs);
    all.extend(&Secrets::from((0..missing).map(|_| Input::random(cx.rng)).collect::<Vec<_>>()));
    Ok(all)
}

fn too_many(n: usize, most: usize) -> Error {
    Error::bug(format!("a programmable OPRF of {n} keys where {most} were announced"))
}

/// The first halves of values of F.
fn halves(outputs: &[super::Output]) -> Secrets<Value> {
    Secrets::from(outputs.iter().map(|output| output.as_chunks().0[0]).collect::<Vec<_>>())
}

/// The key of a point: the query, the number of the bin, and zeros.
pub(crate) fn key(point: &BinPoint) -> ItemHash {
    let mut bytes = [0; 32];
    let (query, bin) = bytes.split_at_mut(16);
    query.copy_from_slice(&point.query);
    bin[..4].copy_from_slice(&point.bin.to_le_bytes());
    ItemHash::from_bytes(bytes)
}

/// The keys of the queries of all bins.
fn keys_of(queries: &[Query]) -> Secrets<ItemHash> {
    let key = |(bin, &query): (usize, &Query)| key(&BinPoint { bin: bin as u32, query });
    Secrets::from(queries.iter().enumerate().map(key).collect::<Vec<_>>())
}

/// Sends the hint for values that are random to the receiver. The keys must be distinct, and no more than the sender's bound;
/// random ones are added up to the bound.
///
/// # Errors
/// The errors of the channel, and [`Error::Bug`] for a wrong length of values, for too many keys, for equal keys, or if the
/// numbers of keys and values differ.
pub fn send_hint(cx: &mut Context, keys: &[ItemHash], values: Secrets<Value>, bounds: Bounds) -> Result<()> {
    send_hint_of(cx, keys.len(), |i| keys[i], values, bounds)
}

/// Sends a hint like [`send_hint`] for `n` keys. Key i is `key(i)`, computed when it is needed.
fn send_hint_of(
    cx: &mut Context,
    n: usize,
    key: impl Fn(usize) -> ItemHash + Sync,
    mut values: Secrets<Value>,
    bounds: Bounds,
) -> Result<()> {
    bounds.check()?;
    if n != values.len() {
        return Err(Error::bug(format!("{} values for {n} keys", values.len())));
    }
    let missing = bounds.sender.checked_sub(n).ok_or_else(|| too_many(n, bounds.sender))?;
    let keys = Secrets::from((0..missing).map(|_| ItemHash::random(cx.rng)).collect::<Vec<_>>());
    let mut more = Secrets::<Value>::zeros(missing);
    cx.rng.fill(more.as_flattened_mut());
    values.extend(&more);
    let key = |i| if i < n { key(i) } else { keys[i - n] };
    let encode = || okvs::encode_of(bounds.sender, key, |i| values[i], cx.rng);
    let Encoded { seed, vector, .. } = cx.threads.run(encode)?;
    cx.ch.tx.send(SEED, &[seed])?;
    vector.chunks(FRAME).try_for_each(|hint| {
        let mut frame = Vec::with_capacity(bounds.bytes * hint.len());
        hint.iter().for_each(|element| frame.extend_from_slice(bounds.first(element)));
        cx.ch.tx.send_bytes(HINT, &frame)
    })
}

/// Receives the hint of a sender. Returns f + Decode(hint, key) for all keys, with zeros after the length of values.
///
/// # Errors
/// The errors of the channel, and [`Error::Bug`] for a wrong length of values, or if the numbers of values `f` and of keys
/// differ.
pub fn receive_hint(
    cx: &mut Context,
    keys: &[ItemHash],
    mut f: Secrets<Value>,
    bounds: Bounds,
) -> Result<Secrets<Value>> {
    bounds.check()?;
    if keys.len() != f.len() {
        return Err(Error::bug(format!("{} values for {} keys", f.len(), keys.len())));
    }
    let size = okvs::size(bounds.sender);
    let seed = cx.ch.rx.recv(SEED, 1)?[0];
    let rows = cx.threads.run(|| BandRows::new(&seed, keys, size))?;
    let mut hint = Secrets::zeros(0);
    for n in frames(size, FRAME) {
        let frame = cx.ch.rx.recv_bytes(HINT, bounds.bytes * n)?;
        hint.extend(&frame.chunks_exact(bounds.bytes).map(widened).collect::<Vec<_>>());
    }
    let decoded = cx.threads.run(|| rows.decode_last(hint))?;
    for (f, decoded) in f.iter_mut().zip(decoded.iter()) {
        add(f, decoded);
        *f = bounds.cut(f);
    }
    Ok(f)
}

/// The ideal functionality, for testing its callers: the sender sends its keys and values in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const ALL: Message<[u8; 48]> = Message::new(0x7013, "S->R  ideal programmable OPRF, keys and values");

#[cfg(any(test, feature = "test-util"))]
#[allow(clippy::unwrap_used)]
impl Ideal {
    fn send(
        cx: &mut Context,
        keys: &[ItemHash],
        value: impl Fn(usize) -> Value,
        bounds: Bounds,
    ) -> Result<()> {
        let mut all = vec![[0; 48]; bounds.sender];
        cx.rng.fill(all.as_flattened_mut());
        for (i, (all, key)) in all.iter_mut().zip(keys).enumerate() {
            all[..32].copy_from_slice(key);
            all[32..].copy_from_slice(&bounds.cut(&value(i)));
        }
        all.chunks(FRAME).try_for_each(|all| cx.ch.tx.send(ALL, all))
    }

    fn receive(cx: &mut Context, keys: &[ItemHash], bounds: Bounds) -> Result<Secrets<Value>> {
        let mut all = std::collections::HashMap::new();
        for n in frames(bounds.sender, FRAME) {
            let halves = |all: &[u8; 48]| (all[..32].to_vec(), Value::try_from(&all[32..]).unwrap());
            all.extend(cx.ch.rx.recv(ALL, n)?.iter().map(halves));
        }
        let value =
            |key: &ItemHash| all.get(&key[..]).copied().unwrap_or_else(|| bounds.cut(&cx.rng.bytes()));
        let values = keys.iter().map(value);
        Ok(Secrets::from(values.collect::<Vec<Value>>()))
    }
}

#[cfg(any(test, feature = "test-util"))]
impl Opprf for Ideal {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], bounds: Bounds) -> Result<Secrets<Value>> {
        Ideal::receive(cx, inputs, bounds)
    }

    fn sender(
        &self,
        cx: &mut Context,
        inputs: &[Input],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        Ideal::send(cx, inputs, value, bounds)
    }
}

#[cfg(any(test, feature = "test-util"))]
impl BinOpprf for Ideal {
    fn receiver(
        &self,
        cx: &mut Context,
        _: &'static str,
        queries: &[Query],
        bounds: Bounds,
    ) -> Result<Secrets<Value>> {
        Ideal::receive(cx, &keys_of(queries), bounds)
    }

    fn sender(
        &self,
        cx: &mut Context,
        _: &'static str,
        points: &(impl Points + ?Sized),
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        let keys = (0..points.count()).map(|i| key(&points.point(i))).collect::<Vec<_>>();
        Ideal::send(cx, &keys, value, bounds)
    }
}

#[cfg(test)]
#[path = "programmable_tests.rs"]
mod tests;
