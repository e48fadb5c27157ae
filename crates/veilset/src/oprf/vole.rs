//! The OPRF of RR22 (Raghuraman and Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE", CCS 2022): a VOLE
//! and a key-value store ([`crate::okvs`]).
//!
//! With C = Delta A + B and a vector P with Decode(P, y) = H_B(y) at all inputs of the receiver, who sends A + P, the
//! sender has K = B + Delta (A + P) = C + Delta P. Decoding is linear, so F(x) = H(Decode(K, x) + Delta H_B(x), x) is
//! H(Decode(C, y), y) at the inputs of the receiver, and at others under Delta times a difference that is not 0.
//!
//! Departures: H_B(x) is the first half of the input, which is a hash ([`super::Input`]); the key-value store is
//! another, with rows from a seed that the receiver picks after its inputs are fixed, as there; the VOLE is made in
//! parts, under one Delta, and A + P of a part is sent before the next part is made.
//!
//! Security: semi-honest, that of the VOLE, H correlation robust (BLAKE3). A malicious receiver can encode more inputs
//! in P than it says ("OKVS overfitting", Asiacrypt 2024), how many more is not worked out: no malicious mode. Should
//! the code's assumption fall, A is not random, and S could test guesses of Y against A + P; X would still be hidden.
//! Leakage: |Y| to S, |X| to R. How long R takes to solve for P depends a little on Y and on the seed, which S knows
//! later. S can time it: R solves between S's first message of the OTs and its own answer.
//! Cost: that of a VOLE of m = `okvs::size(|Y|)` elements, and 16 m bytes from receiver to sender: 20.4 MB at 2^20. One
//! thread of a Zen 4 processor takes 0.6 to 0.7 s for 2^20 inputs a side as the receiver and 0.4 s as the sender, of
//! which the VOLE 0.24 and 0.11, the rows 0.07, solving for P 0.12, decoding 0.04. Memory: that of the VOLE for a part;
//! then at most 3 m elements (R: P, C, and A of a part; S: K, which doubles when it grows), the store's rows and the
//! frames. A receiver that announces any number of inputs and sends little makes the sender hold 100 MB, for the VOLE of
//! a part of 2^21 elements, and at most 3 bytes for each byte of A + P that has come.

use super::{Input, Oprf, Output};
use crate::channel::{Message, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId};
use crate::okvs::{self, Rows, Seed, Value};
use crate::secret::{Secret, Secrets};
use crate::vole::{Received, Receiver, Sender, Vole, add};
use rayon::prelude::*;
use veilset_kernels::gf128::add_multiple;

/// Elements per frame: 128 KiB.
pub(crate) const FRAME: usize = 1 << 13;
/// Inputs that are hashed at once: 8 KiB of values.
const BATCH: usize = 1 << 9;

const SEED: Message<Seed> = Message::new(0x98, "R->S  seed of the key-value store");
const A_P: Message<Value> = Message::new(0x99, "R->S  A + P");

/// The purpose of the VOLE.
const PURPOSE: &str = "RR22";

/// Elements of a part of the VOLE: a multiple of [`FRAME`], and more than 2^20 inputs need, which so take one part. A
/// further one is half a megabyte and a round trip.
pub(crate) const PART: usize = 1 << 21;

/// The protocol over any VOLE.
pub struct Rr22<V> {
    vole: V,
    /// [`PART`], and less in tests.
    part: usize,
}

impl<V> Rr22<V> {
    /// The protocol over this VOLE.
    pub fn new(vole: V) -> Rr22<V> {
        Rr22 { vole, part: PART }
    }
}

/// The lengths of the parts of the VOLE, of `m` elements.
pub(crate) fn parts(m: usize) -> impl Iterator<Item = usize> {
    frames(m, PART)
}

/// H_B.
fn target(input: &Input) -> Value {
    input.as_chunks().0[0]
}

/// H(value, input) for all inputs; `prepare` is called on the values of a batch before.
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

impl<V: Vole> Oprf for Rr22<V> {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], _: usize) -> Result<Secrets<Output>> {
        // 1. P.
        let targets = Secrets::from(inputs.iter().map(target).collect::<Vec<_>>());
        let p = cx.threads.run(|| okvs::encode(inputs, &targets, cx.rng))?;
        let mut vole = self.vole.receiver(cx, PURPOSE)?;
        cx.ch.tx.send(SEED, &[p.seed])?;
        // One part is taken over as it is; several are put together in place.
        let m = p.vector.len();
        let mut c = Secrets::with_capacity(if m > self.part { m } else { 0 });
        for p in p.vector.chunks(self.part) {
            // 2. The VOLE, and A + P to S.
            let Received { mut a, c: part } = vole.next(cx, p.len())?;
            a.iter_mut().zip(p).for_each(|(a, p)| add(a, p));
            for a_p in a.chunks(FRAME) {
                cx.ch.tx.send(A_P, a_p)?;
            }
            drop(a);
            c.append(part);
        }
        // 3. F(y) = H(Decode(C, y), y).
        cx.threads.run(|| Ok(hashed(&cx.session, p.rows.decode(&c)?, inputs, |_, _| ())))
    }

    fn sender(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>> {
        let m = okvs::size(n_y);
        let mut vole = self.vole.sender(cx, PURPOSE)?;
        let delta = Secret::new(*vole.delta());
        // 1. The rows of P.
        let seed = cx.ch.rx.recv(SEED, 1)?[0];
        let (mut k, mut rows) = (Secrets::<Value>::zeros(0), None);
        for part in frames(m, self.part) {
            // 2. The VOLE, and K = B + Delta (A + P). K grows with what has come, not with what was announced.
            let mut b = vole.next(cx, part)?;
            // Here, since R takes longer for its part of the VOLE.
            if rows.is_none() {
                rows = Some(cx.threads.run(|| Rows::new(&seed, inputs, m))?);
            }
            for (n, b) in frames(part, FRAME).zip(b.chunks_mut(FRAME)) {
                add_multiple(&delta, &cx.ch.rx.recv(A_P, n)?, b);
            }
            k.append(b);
        }
        let rows = rows.ok_or_else(|| Error::Bug("a key-value store without elements".into()))?;
        // 3. F(x) = H(Decode(K, x) + Delta H_B(x), x).
        let add_targets = |values: &mut [Value], inputs: &[Input]| {
            let targets = Secrets::from(inputs.iter().map(target).collect::<Vec<_>>());
            add_multiple(&delta, &targets, values);
        };
        cx.threads.run(|| Ok(hashed(&cx.session, rows.decode(&k)?, inputs, add_targets)))
    }
}

#[cfg(test)]
#[path = "vole_tests.rs"]
mod tests;
