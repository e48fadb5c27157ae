//! The OPRF of RR22 (Raghuraman and Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE", CCS 2022),
//! from a VOLE and an OKVS ([`crate::okvs`]).
//!
//! The VOLE gives C = Delta A + B. The receiver encodes a vector P with Decode(P, y) = H_B(y) at all of its
//! inputs, and sends A + P. The sender computes K = B + Delta (A + P) = C + Delta P.
//!
//! F(x) = H(Decode(K, x) + Delta H_B(x), x). Decoding is linear, so at the receiver's inputs F(y) = H(Decode(C,
//! y), y). At other inputs, Decode(C, x) is offset by Delta times a difference that is not 0.
//!
//! A, P and H_B are in GF(2^64) where the number of the sender's inputs allows it (`halved`), and otherwise in GF(2^128).
//! Delta, B, C and K have 128 bits in either case; with GF(2^64), these are two lanes ([`crate::vole`]). At an input x that R
//! does not have, Decode(P, x) is H_B(x) with probability 2^-64 in the smaller field. R could then compute F(x) from a guess of
//! x, and so test it. Over all inputs of the sender this has probability at most 2^-40.
//!
//! Departures: H_B(x) is the first part of the input, which is already a hash ([`super::Input`]). The OKVS is a
//! different one; as in the paper, the receiver picks the seed of its rows after its inputs are fixed. The VOLE
//! is generated in parts under one Delta, and A + P of a part is sent before the next part is generated.
//!
//! Security: semi-honest, like the VOLE, with H correlation robust (BLAKE3). A malicious mode is not provided: a malicious
//! receiver can encode more inputs in P than it announces ("OKVS overfitting", Asiacrypt 2024), and we have no bound on how
//! many. It can also pick the seed once it knows C. If the code's assumption fails, A is not random, and S could test guesses
//! of Y against A + P; X would still be hidden.
//!
//! Leakage: |Y| to S, |X| to R. The time that R takes to solve for P depends slightly on Y and on the seed,
//! which S learns later. S can measure it: R solves between its last message of the VOLE's setup and its first corrections.
//!
//! Cost: a VOLE of m = `okvs::size(|Y|)` elements, and 8 or 16 m bytes from receiver to sender: 10.2 MB at 2^20. With 2^20
//! inputs per side, one thread of a Zen 5 processor takes 0.4 s as the receiver and 0.3 s as the sender of a whole
//! intersection.
//!
//! Memory: the VOLE of one part; m elements (in R of P, which C replaces part by part; in S of K, twice where there are several
//! parts); the rows of the OKVS (24 bytes per input); and the frames. Then 32 bytes per value. A receiver that announces many
//! inputs and sends little makes the sender hold 67 MB for the VOLE of a part of 2^21 elements. In addition, until all of A + P
//! has arrived, the sender holds at most 2 bytes per byte of it received.

use super::{Input, Oprf, OprfCost, Output};
use crate::channel::{HEADER, Message, Rx, Tx, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId};
use crate::okvs::{self, BandRows, Encoded, Seed, Value};
use crate::ot::extension;
use crate::params::ceil_log2;
use crate::secret::{Secret, Secrets};
use crate::vole::silent::Silent;
use crate::vole::{Element, Half, Receiver, Sender, Vole, VoleScalar};
use crate::work::Primitive::{BaseOt, StoreRow, StoreValue};
use crate::work::{Step, Work};
use rayon::prelude::*;

/// Elements per frame: 8192, which take at most 128 KiB.
pub(crate) const FRAME: usize = 1 << 13;
/// Inputs hashed at once: 8 KiB of values.
const BATCH: usize = 1 << 9;

const SEED: Message<Seed> = Message::new(0x98, "R->S  seed of the key-value store");
const A_P: Message<[u8]> = Message::new(0x99, "R->S  A + P");

/// The purpose of the VOLE.
const PURPOSE: &str = "RR22";

/// The number of elements in a part of the VOLE: a multiple of [`FRAME`], and more than 2^20 inputs need, which thus take a
/// single part. Each further part costs up to half a megabyte and a round trip.
const PART: usize = 1 << 21;

/// RR22 over any VOLE.
pub struct Rr22<V> {
    vole: V,
    /// [`PART`]; smaller in tests.
    part: usize,
}

impl<V> Rr22<V> {
    /// The protocol over this VOLE.
    pub fn new(vole: V) -> Rr22<V> {
        Rr22 { vole, part: PART }
    }

    /// The protocol with parts of an eighth of the default length. The VOLE of a part then takes 8 MB instead of 67. Each
    /// further part costs up to half a megabyte and a round trip.
    pub fn in_small_parts(vole: V) -> Rr22<V> {
        Rr22 { vole, part: PART / 8 }
    }
}

/// Whether A and P are in GF(2^64), where the sender has `n_x` inputs. An input that R does not have then passes for one of R's
/// with probability 2^-64.
fn halved(exponent: u32, n_x: usize) -> bool {
    exponent + ceil_log2(n_x) <= Half::BITS as u32
}

impl Rr22<Silent> {
    /// The cost for `n_y` inputs of the receiver and `n_x` of the sender: the VOLE, the seed and A + P.
    pub fn cost(&self, exponent: u32, n_y: usize, n_x: usize) -> OprfCost {
        match halved(exponent, n_x) {
            true => self.cost_over::<Half>(n_y, n_x),
            false => self.cost_over::<Element>(n_y, n_x),
        }
    }

    fn cost_over<S: VoleScalar>(&self, n_y: usize, n_x: usize) -> OprfCost {
        let m = okvs::size(n_y);
        let parts = || frames(m, self.part);
        let (there, back) = self.vole.traffic::<S>(parts());
        let store = size_of::<Seed>() + HEADER + S::SIZE * m + HEADER * m.div_ceil(FRAME);
        let [vole_r, vole_s] = self.vole.held::<S>(parts());
        let base_ots = Work::of(BaseOt, extension::WIDTH);
        // The receiver's P and the rows of its inputs during the VOLE, or the equations before; then C, the rows and the
        // values, or the values and their hashes.
        let receiver =
            (16 * m + 24 * n_y + vole_r).max(32 * m + 24 * n_y).max(16 * m + 40 * n_y).max(48 * n_y);
        // K of all parts, twice while they are concatenated.
        let k = if m > self.part { 16 * m } else { 0 };
        let sender = (24 * n_x + k + vole_s).max(24 * n_x + 2 * k).max(16 * m + 40 * n_x).max(48 * n_x);
        OprfCost {
            // The base OTs and the store, the VOLE with A + P, and the values of both.
            steps: vec![
                Step::of(base_ots + Work::of(StoreRow, n_y), base_ots),
                Step::both(self.vole.work::<S>(parts())).sends((there + store) as u64, back as u64),
                Step::of(Work::of(StoreValue, n_y), Work::of(StoreValue, n_x)),
            ],
            // The base OTs, with a message in each direction, and the further rounds of the VOLE.
            rounds: 2 + self.vole.rounds(parts()),
            answered: self.vole.answers(parts()),
            held: [receiver, sender].map(|bytes| extension::SETUP_HELD + bytes),
            each_thread: [0; 2],
            // All but a few messages of the VOLE is sent as bytes.
            progress: (Unit::Bytes, there + back + store),
        }
    }
}

/// H_B at this input.
fn target(input: &Input) -> Value {
    input.as_chunks().0[0]
}

/// H(value, input) for all inputs. `prepare` is called on the values of a batch first.
fn hashed(
    session: &SessionId,
    mut values: Secrets<Value>,
    inputs: &[Input],
    prepare: impl Fn(&mut [Value], &[Input]) + Sync,
) -> Secrets<Output> {
    let h = Domain::new(session, "RR22 OPRF value");
    let mut outputs = Secrets::<Output>::zeros(inputs.len());
    let batches =
        values.par_chunks_mut(BATCH).zip(inputs.par_chunks(BATCH)).zip(outputs.par_chunks_mut(BATCH));
    batches.for_each(|((values, inputs), outputs)| {
        prepare(values, inputs);
        let mut blocks = Secrets::<[[u8; 16]; 4]>::zeros(inputs.len());
        for ((block, value), input) in blocks.iter_mut().zip(values).zip(inputs) {
            block[0] = *value;
            block.as_flattened_mut()[16..48].copy_from_slice(input);
        }
        h.hash_blocks(48, blocks.as_flattened().as_flattened().as_chunks().0, outputs);
    });
    outputs
}

/// The parts as one list. A single part is not copied.
pub(super) fn whole(mut parts: Vec<Secrets<Value>>) -> Secrets<Value> {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut all = Secrets::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| all.extend(part));
    all
}

impl<V: Vole> Oprf for Rr22<V> {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], n_x: usize) -> Result<Secrets<Output>> {
        match halved(cx.exponent, n_x) {
            true => self.receive::<Half>(cx, inputs),
            false => self.receive::<Element>(cx, inputs),
        }
    }

    fn sender(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>> {
        match halved(cx.exponent, inputs.len()) {
            true => self.send::<Half>(cx, inputs, n_y),
            false => self.send::<Element>(cx, inputs, n_y),
        }
    }
}

impl<V: Vole> Rr22<V> {
    fn receive<S: VoleScalar>(&self, cx: &mut Context, inputs: &[Input]) -> Result<Secrets<Output>> {
        // First, so that S can begin its part of the VOLE.
        let mut vole = self.vole.receiver(cx, PURPOSE)?;
        // 1. P. Where A's elements are shorter than P's, only the first bytes of P's count: the store is linear over GF(2).
        let encode = || okvs::encode(inputs, |i| target(&inputs[i]), cx.rng);
        let Encoded { seed, mut vector, rows } = cx.threads.run(encode)?;
        // C of a part takes the place of P of this part.
        let mut seed = Some(seed);
        for p in vector.chunks_mut(self.part) {
            // 2. The VOLE, and A + P to S, after the seed.
            let send = |cx: &mut Context, mut a: Secrets<S>| {
                seed.take().map_or(Ok(()), |seed| cx.ch.tx.send(SEED, &[seed]))?;
                a.iter_mut().zip(p.iter()).for_each(|(a, p)| a.add(&S::first(p)));
                a.chunks(FRAME).try_for_each(|a_p| send_scalars(&mut cx.ch.tx, a_p))
            };
            let c = vole.next(cx, p.len(), send)?;
            p.copy_from_slice(&c);
        }
        drop(vole);
        // 3. F(y) = H(Decode(C, y), y).
        cx.threads.run(|| Ok(hashed(&cx.session, rows.decode_last(vector)?, inputs, |_, _| ())))
    }

    fn send<S: VoleScalar>(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>> {
        let m = okvs::size(n_y);
        let mut vole = self.vole.sender(cx, PURPOSE)?;
        let delta = Secret::new(*vole.delta());
        let (mut parts, mut rows) = (Vec::new(), None);
        for part in frames(m, self.part) {
            // 2. The VOLE, and K = B + Delta (A + P). K grows with the data received, not with the number announced.
            let mut b = vole.next::<S>(cx, part)?;
            let seed = if rows.is_none() { Some(cx.ch.rx.recv(SEED, 1)?[0]) } else { None };
            for (n, b) in frames(part, FRAME).zip(b.chunks_mut(FRAME)) {
                S::add_multiple(&delta, &recv_scalars::<S>(&mut cx.ch.rx, n)?, b);
            }
            parts.push(b);
            // The rows of our inputs, as soon as R no longer waits for us: it now computes its C.
            if let Some(seed) = seed {
                rows = Some(cx.threads.run(|| BandRows::new(&seed, inputs, m))?);
            }
        }
        drop(vole);
        let rows = rows.ok_or_else(|| Error::Bug("a key-value store without elements".into()))?;
        let k = whole(parts);
        // 3. F(x) = H(Decode(K, x) + Delta H_B(x), x).
        let add_targets = |values: &mut [Value], inputs: &[Input]| {
            let targets = inputs.iter().map(|input| S::first(&target(input)));
            S::add_multiple(&delta, &Secrets::from(targets.collect::<Vec<_>>()), values);
        };
        cx.threads.run(|| Ok(hashed(&cx.session, rows.decode_last(k)?, inputs, add_targets)))
    }
}

/// Sends a frame of A + P.
fn send_scalars<S: VoleScalar>(tx: &mut Tx, scalars: &[S]) -> Result<()> {
    let mut frame = Vec::with_capacity(S::SIZE * scalars.len());
    scalars.iter().for_each(|scalar| scalar.put(&mut frame));
    tx.send_bytes(A_P, &frame)
}

/// Receives a frame of A + P, of `n` elements.
fn recv_scalars<S: VoleScalar>(rx: &mut Rx, n: usize) -> Result<Secrets<S>> {
    let frame = rx.recv_bytes(A_P, S::SIZE * n)?;
    let scalar = |bytes| S::get(bytes).map_err(|what| Error::Bug(what.into()));
    Ok(Secrets::from(frame.chunks_exact(S::SIZE).map(scalar).collect::<Result<Vec<S>>>()?))
}

#[cfg(test)]
#[path = "vole_tests.rs"]
mod tests;
