//! A programmable OPRF (OPPRF; KMPRT17: Kolesnikov, Matania, Pinkas, Rosulek and Trieu, "Practical Multi-party Private
//! Set Intersection from Symmetric-Key Techniques", CCS 2017): an OPRF whose values the sender chooses at some inputs.
//! At an input that the sender has, the receiver gets the value that the sender programmed there; at all others, a
//! random value. It does not learn which is the case, unless the values tell.
//!
//! The parties run an OPRF F. The sender encodes key -> F(key) + value in a key-value store ([`crate::okvs`]), the
//! *hint*, and sends it. The receiver's value at x is F(x) + Decode(hint, x). F is a multi-point OPRF ([`Opprf`]) or
//! has one query in each bin ([`BinOpprf`]).
//!
//! **The hint reveals nothing else.** To the receiver F(key) is random at every key that it does not query. If the
//! value is random too at each key that it does query, all encoded values are random, and so is the hint: its free
//! elements are random. Where a value is not random to the receiver, its query shows that the sender has the key:
//! this is then what the OPPRF is for. A value serves one run only. Where several keys have the same value, the
//! receiver can query only one of them.
//!
//! The number of encoded keys is the bound that both know. A sender with fewer fills up with random keys and values.
//!
//! Security: semi-honest; that of F, and of the store. Leakage: the bounds. Cost: that of F, 16 bytes, and a store for
//! the bound on the sender's keys: 16 bytes times 1.22 for each of a million keys, from sender to receiver.
//!
//! Memory: sender, 110 bytes for each key up to the bound while it encodes; receiver, 90 bytes for each input, and the
//! hint, which grows with what was received. In addition, what F takes.

use super::bins::{BinOprf, Keys, Point, Query};
use super::{Input, Oprf};
use crate::channel::{Message, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::okvs::{self, Encoded, Key, Rows, Seed, Value};
use crate::secret::Secrets;
use crate::vole::add;

/// Elements per frame: 128 KiB.
pub(crate) const FRAME: usize = 1 << 13;

const SEED: Message<Seed> = Message::new(0xc1, "S->R  seed of the hint");
const HINT: Message<Value> = Message::new(0xc2, "S->R  hint of the programmable OPRF");

/// Bounds on the numbers of inputs, known to both parties. All messages have the lengths that they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The most inputs of the receiver; in bins, the number of bins.
    pub receiver: usize,
    /// The most inputs of the sender; in bins, the most points.
    pub sender: usize,
}

/// A programmable OPRF on items.
///
/// A session runs it once. To run it again, pass `part(session, ..)` ([`crate::hash::part`]) with a different name each
/// time.
pub trait Opprf {
    /// Runs the receiver. Returns the values at its inputs, which must be distinct, in their order.
    fn receiver(&self, cx: &mut Context, inputs: &[Input], bounds: Bounds) -> Result<Secrets<Value>>;

    /// Runs the sender, which programs `value(i)` at number i of its inputs. They must be distinct.
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
/// For `purpose` see [`BinOprf`].
pub trait BinOpprf {
    /// Runs the receiver, with the query of each bin. Returns the value of each bin. The sender has at most `points`
    /// points.
    fn receiver(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        queries: &[Query],
        points: usize,
    ) -> Result<Secrets<Value>>;

    /// Runs the sender, which programs `value(i)` at number i of its points. They must be distinct.
    fn sender(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        points: &[Point],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()>;
}

/// The protocol over an OPRF: of many points, or in bins.
pub struct Programmed<F>(pub F);

impl<F: Oprf> Opprf for Programmed<F> {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], bounds: Bounds) -> Result<Secrets<Value>> {
        // 1. F at our inputs, and at random ones up to the bound.
        let all = filled(cx, inputs, bounds.receiver)?;
        let mut f = halves(&self.0.receiver(cx, &all, bounds.sender)?);
        // 2. The hint.
        f.truncate(inputs.len());
        receive_hint(cx, inputs, f, bounds.sender)
    }

    fn sender(
        &self,
        cx: &mut Context,
        inputs: &[Input],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        // 1. F at our inputs, and at random ones up to the bound. To R these have random values.
        let all = filled(cx, inputs, bounds.sender)?;
        let mut values = halves(&self.0.sender(cx, &all, bounds.receiver)?);
        // 2. The hint.
        values.iter_mut().take(inputs.len()).enumerate().for_each(|(i, f)| add(f, &value(i)));
        send_hint(cx, all, values, bounds.sender)
    }
}

impl<F: BinOprf> BinOpprf for Programmed<F> {
    fn receiver(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        queries: &[Query],
        points: usize,
    ) -> Result<Secrets<Value>> {
        // 1. F_j at the query of each bin.
        let f = self.0.receiver(cx, purpose, queries)?;
        // 2. The hint.
        receive_hint(cx, &keys_of(queries), f, points)
    }

    fn sender(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        points: &[Point],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        // 1. F_j at our points.
        let keys = self.0.sender(cx, purpose, bounds.receiver)?;
        let mut values = cx.threads.run(|| keys.evaluate(points.len(), |i| points[i]))?;
        drop(keys);
        // 2. The hint.
        values.iter_mut().enumerate().for_each(|(i, f)| add(f, &value(i)));
        let keys = Secrets::from(points.iter().map(key).collect::<Vec<_>>());
        send_hint(cx, keys, values, bounds.sender)
    }
}

/// The inputs and random ones, `most` together.
fn filled(cx: &mut Context, inputs: &[Input], most: usize) -> Result<Secrets<Input>> {
    let mut all = Secrets::with_capacity(most);
    all.extend(inputs);
    fill_up(cx, &mut all, most)?;
    Ok(all)
}

/// Appends random keys up to `most`.
fn fill_up(cx: &mut Context, keys: &mut Secrets<Key>, most: usize) -> Result<()> {
    let missing = most.checked_sub(keys.len()).ok_or_else(|| too_many(keys.len(), most))?;
    keys.extend(&Secrets::from((0..missing).map(|_| Key::random(cx.rng)).collect::<Vec<_>>()));
    Ok(())
}

fn too_many(n: usize, most: usize) -> Error {
    Error::Bug(format!("a programmable OPRF of {n} keys where {most} were announced"))
}

/// The first halves of values of F.
fn halves(outputs: &[super::Output]) -> Secrets<Value> {
    Secrets::from(outputs.iter().map(|output| output.as_chunks().0[0]).collect::<Vec<_>>())
}

/// The key of a point: the query, the number of the bin, and zeros.
fn key(point: &Point) -> Key {
    let mut bytes = [0; 32];
    let (query, bin) = bytes.split_at_mut(16);
    query.copy_from_slice(&point.query);
    bin[..4].copy_from_slice(&point.bin.to_le_bytes());
    Key::from_bytes(bytes)
}

/// The keys of the queries of all bins.
fn keys_of(queries: &[Query]) -> Secrets<Key> {
    let key = |(bin, &query): (usize, &Query)| key(&Point { bin: bin as u32, query });
    Secrets::from(queries.iter().enumerate().map(key).collect::<Vec<_>>())
}

/// Sends the hint for values that are random to the receiver. The keys must be distinct, at most `most`; random ones
/// are added up to this number.
///
/// # Errors
/// Those of the channel, and [`Error::Bug`] for more keys, for keys that are equal, or if there are not as many values.
pub fn send_hint(
    cx: &mut Context,
    mut keys: Secrets<Key>,
    mut values: Secrets<Value>,
    most: usize,
) -> Result<()> {
    if keys.len() != values.len() {
        return Err(Error::Bug(format!("{} values for {} keys", values.len(), keys.len())));
    }
    fill_up(cx, &mut keys, most)?;
    let mut more = Secrets::<Value>::zeros(most - values.len());
    cx.rng.fill(more.as_flattened_mut());
    values.extend(&more);
    let encode = || okvs::encode(&keys, |i| values[i], cx.rng);
    let Encoded { seed, vector, .. } = cx.threads.run(encode)?;
    cx.ch.tx.send(SEED, &[seed])?;
    vector.chunks(FRAME).try_for_each(|hint| cx.ch.tx.send(HINT, hint))
}

/// Receives the hint of a sender of at most `most` keys. Returns f + Decode(hint, key) for all keys.
///
/// # Errors
/// Those of the channel, and [`Error::Bug`] if there are not as many values `f` as keys.
pub fn receive_hint(
    cx: &mut Context,
    keys: &[Key],
    mut f: Secrets<Value>,
    most: usize,
) -> Result<Secrets<Value>> {
    if keys.len() != f.len() {
        return Err(Error::Bug(format!("{} values for {} keys", f.len(), keys.len())));
    }
    let size = okvs::size(most);
    let seed = cx.ch.rx.recv(SEED, 1)?[0];
    let rows = cx.threads.run(|| Rows::new(&seed, keys, size))?;
    let mut hint = Secrets::zeros(0);
    for n in frames(size, FRAME) {
        hint.extend(&cx.ch.rx.recv(HINT, n)?);
    }
    let decoded = cx.threads.run(|| rows.decode_last(hint))?;
    f.iter_mut().zip(decoded.iter()).for_each(|(f, decoded)| add(f, decoded));
    Ok(f)
}

/// The ideal functionality, for tests of its users: the sender sends what it programs in the clear.
#[cfg(test)]
pub(crate) struct Ideal;

#[cfg(test)]
const ALL: Message<[u8; 48]> = Message::new(0x7013, "S->R  ideal programmable OPRF, keys and values");

#[cfg(test)]
impl Ideal {
    fn send(cx: &mut Context, keys: &[Key], value: impl Fn(usize) -> Value, most: usize) -> Result<()> {
        let mut all = vec![[0; 48]; most];
        cx.rng.fill(all.as_flattened_mut());
        for (i, (all, key)) in all.iter_mut().zip(keys).enumerate() {
            all[..32].copy_from_slice(key);
            all[32..].copy_from_slice(&value(i));
        }
        all.chunks(FRAME).try_for_each(|all| cx.ch.tx.send(ALL, all))
    }

    fn receive(cx: &mut Context, keys: &[Key], most: usize) -> Result<Secrets<Value>> {
        let mut all = std::collections::HashMap::new();
        for n in frames(most, FRAME) {
            let halves = |all: &[u8; 48]| (all[..32].to_vec(), Value::try_from(&all[32..]).unwrap());
            all.extend(cx.ch.rx.recv(ALL, n)?.iter().map(halves));
        }
        let values = keys.iter().map(|key| all.get(&key[..]).copied().unwrap_or_else(|| cx.rng.bytes()));
        Ok(Secrets::from(values.collect::<Vec<Value>>()))
    }
}

#[cfg(test)]
impl Opprf for Ideal {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], bounds: Bounds) -> Result<Secrets<Value>> {
        Ideal::receive(cx, inputs, bounds.sender)
    }

    fn sender(
        &self,
        cx: &mut Context,
        inputs: &[Input],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        Ideal::send(cx, inputs, value, bounds.sender)
    }
}

#[cfg(test)]
impl BinOpprf for Ideal {
    fn receiver(
        &self,
        cx: &mut Context,
        _: &'static str,
        queries: &[Query],
        points: usize,
    ) -> Result<Secrets<Value>> {
        Ideal::receive(cx, &keys_of(queries), points)
    }

    fn sender(
        &self,
        cx: &mut Context,
        _: &'static str,
        points: &[Point],
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        Ideal::send(cx, &points.iter().map(key).collect::<Vec<_>>(), value, bounds.sender)
    }
}

#[cfg(test)]
#[path = "programmable_tests.rs"]
mod tests;
