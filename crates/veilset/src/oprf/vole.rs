//! The OPRF of RR22 (Raghuraman and Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE", CCS 2022): a VOLE
//! and a key-value store ([`crate::okvs`]).
//!
//! With C = Delta A + B and a vector P with Decode(P, y) = H_B(y) at all inputs of the receiver, who sends A + P, the
//! sender has K = B + Delta (A + P) = C + Delta P. Decoding is linear, so F(x) = H(Decode(K, x) + Delta H_B(x), x) is
//! H(Decode(C, y), y) at the inputs of the receiver, and at others under Delta times a difference that is not 0.
//!
//! Departures: H_B(x) is the first half of the input, which is a hash ([`super::Input`]); the key-value store is
//! another, with rows from a seed that the receiver picks after its inputs are fixed, as there.
//!
//! Security: semi-honest, that of the VOLE, H correlation robust (BLAKE3). A malicious receiver can encode more inputs
//! in P than it says ("OKVS overfitting", Asiacrypt 2024), how many more is not worked out: no malicious mode. Should
//! the code's assumption fall, A is not random, and S could test guesses of Y against A + P; X would still be hidden.
//! Leakage: |Y| to S, |X| to R. How long R takes to solve for P depends a little on Y and on the seed, which S knows
//! later. Cost: that of a VOLE of m = `okvs::size(|Y|)` elements, and 16 m bytes from receiver to sender: 20.4 MB at
//! 2^20. One thread of a Zen 4 processor takes 0.6 to 0.7 s for 2^20 inputs a side as the receiver and 0.4 s as the
//! sender, of which the VOLE 0.24 and 0.11, the rows 0.07, solving for P 0.12, decoding 0.04. Memory: that of the VOLE,
//! then both hold about 3 m elements, the store's rows and the frames.

use super::{Input, Oprf, Output};
use crate::channel::{Channel, Message, frames};
use crate::error::Result;
use crate::hash::{Domain, SessionId};
use crate::okvs::{self, Rows, Seed, Value};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::vole::{Received, Sent, Vole, add};
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

/// The protocol over any VOLE.
#[derive(Default)]
pub struct Rr22<V>(pub V);

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
    fn receiver(
        &self,
        ch: &mut Channel,
        session: &SessionId,
        inputs: &[Input],
        _: usize,
        rng: &mut Prng,
    ) -> Result<Secrets<Output>> {
        // 1. The VOLE.
        let Received { mut a, c } = self.0.receiver(ch, session, PURPOSE, okvs::size(inputs.len()), rng)?;
        // 2. P, and A + P to S.
        let targets = Secrets::from(inputs.iter().map(target).collect::<Vec<_>>());
        let p = okvs::encode(inputs, &targets, rng)?;
        ch.tx.send(SEED, &[p.seed])?;
        a.iter_mut().zip(p.vector.iter()).for_each(|(a, p)| add(a, p));
        for a_p in a.chunks(FRAME) {
            ch.tx.send(A_P, a_p)?;
        }
        // 3. F(y) = H(Decode(C, y), y).
        Ok(hashed(session, p.rows.decode(&c)?, inputs, |_, _| ()))
    }

    fn sender(
        &self,
        ch: &mut Channel,
        session: &SessionId,
        inputs: &[Input],
        n_y: usize,
        rng: &mut Prng,
    ) -> Result<Secrets<Output>> {
        let m = okvs::size(n_y);
        // 1. The VOLE.
        let Sent { delta, b: mut k } = self.0.sender(ch, session, PURPOSE, m, rng)?;
        // 2. K = B + Delta (A + P).
        let rows = Rows::new(&ch.rx.recv(SEED, 1)?[0], inputs, m)?;
        for (n, k) in frames(m, FRAME).zip(k.chunks_mut(FRAME)) {
            add_multiple(&delta, &ch.rx.recv(A_P, n)?, k);
        }
        // 3. F(x) = H(Decode(K, x) + Delta H_B(x), x).
        Ok(hashed(session, rows.decode(&k)?, inputs, |values, inputs| {
            let targets = Secrets::from(inputs.iter().map(target).collect::<Vec<_>>());
            add_multiple(&delta, &targets, values);
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::oprf::tests::is_an_oprf;
    use crate::testing::{run_pair, split_frames};
    use crate::vole::{Ideal, silent::Silent};

    fn inputs(n: usize) -> Vec<Input> {
        (0..n as u64).map(|i| Input::of_item(&i.to_le_bytes())).collect()
    }

    #[test]
    fn it_is_an_oprf() {
        is_an_oprf(&Rr22(Ideal), FRAME);
    }

    /// Frames of a few inputs, as each run has its base OTs.
    #[test]
    fn it_is_an_oprf_over_silent_vole() {
        is_an_oprf(&Rr22(Silent { k: 2 }), 100);
    }

    /// So many that the VOLE needs its code.
    #[test]
    fn both_have_the_same_function_over_the_code() {
        let (protocol, all) = (Rr22(Silent::default()), inputs(6000));
        let (y, x) = (&all[..5000], &all[2000..]);
        let ((f_y, f_x), _) = run_pair(
            |ch, rng| protocol.receiver(ch, &SessionId::of([1; 32]), y, x.len(), rng),
            |ch, rng| protocol.sender(ch, &SessionId::of([1; 32]), x, y.len(), rng),
        );
        assert_eq!(f_y[2000..], f_x[..3000]);
    }

    /// By the definition, from what the sender of the ideal VOLE makes and from the messages.
    #[test]
    fn outputs_and_messages_are_those_of_the_definition() {
        let (all, session) = (inputs(60), SessionId::of([2; 32]));
        let (y, x) = (&all[..40], &all[30..]);
        let protocol = Rr22(Ideal);
        let ((f_y, f_x), views) = run_pair(
            |ch, rng| protocol.receiver(ch, &session, y, x.len(), rng),
            |ch, rng| protocol.sender(ch, &session, x, y.len(), rng),
        );
        let m = okvs::size(y.len());
        assert_eq!(views.frames(1), [(0x98, 16), (0x99, 16 * m)]);
        let frames = split_frames(&views.0[1]);
        let seed: Seed = frames[0].1[..].try_into().unwrap();
        let a_p = frames[1].1.as_chunks::<16>().0;
        let rng = &mut Prng::from_seed(&crate::testing::SEEDS[1]);
        let delta: Value = rng.bytes();
        let (mut a, mut b) = (vec![[0; 16]; m], vec![[0; 16]; m]);
        rng.fill(a.as_flattened_mut());
        rng.fill(b.as_flattened_mut());
        let mut p = a_p.to_vec();
        p.iter_mut().zip(&a).for_each(|(p, a)| add(p, a));
        let (mut c, mut k) = (b.clone(), b);
        add_multiple(&delta, &a, &mut c);
        add_multiple(&delta, a_p, &mut k);
        let h = Domain::new(&session, "RR22 OPRF value");
        let decode = |vector: &[Value], input: &Input| {
            Rows::new(&seed, &[*input], m).unwrap().decode(vector).unwrap()[0]
        };
        for (y, f) in y.iter().zip(f_y.iter()) {
            assert_eq!(decode(&p, y), target(y));
            assert_eq!(*f, h.hash::<32>(&[&decode(&c, y), y]));
        }
        for (x, f) in x.iter().zip(f_x.iter()) {
            let mut value = [decode(&k, x)];
            add_multiple(&delta, &[target(x)], &mut value);
            assert_eq!(*f, h.hash::<32>(&[&value[0], x]));
        }
    }

    #[test]
    fn messages_of_another_length_or_kind_are_refused() {
        // A receiver that has run the ideal VOLE sends these instead of its seed and A + P.
        let m = okvs::size(200);
        let good = [(0x98, vec![7; 16]), (0x99, vec![7; 16 * m])];
        let mut forgeries = Vec::new();
        for (i, name) in [(0, "seed of the key-value store"), (1, "A + P")] {
            let bytes = good[i].1.len();
            for length in [0, bytes - 1, bytes - 16, bytes + 1, bytes + 16] {
                let mut forged = good.clone();
                forged[i].1.resize(length, 7);
                forgeries.push((forged, name));
            }
            let mut forged = good.clone();
            forged[i].0 ^= 0x40;
            forgeries.push((forged, name));
        }
        for (forged, name) in forgeries {
            let (mut a, mut b) = Channel::pair();
            let result = std::thread::scope(|s| {
                s.spawn(move || {
                    let rng = &mut Prng::from_seed(&[1; 32]);
                    Ideal.receiver(&mut a, &SessionId::of([0; 32]), PURPOSE, m, rng).unwrap();
                    for (tag, bytes) in &forged {
                        // The other side may have left.
                        let _ = a.tx.send_bytes(Message::new(*tag, "forged"), bytes);
                    }
                });
                Rr22(Ideal).sender(
                    &mut b,
                    &SessionId::of([0; 32]),
                    &inputs(3),
                    200,
                    &mut Prng::from_seed(&[2; 32]),
                )
            });
            let e = result.err().unwrap();
            assert!(matches!(e, Error::Peer(_)) && e.to_string().contains(name), "{name}: {e}");
        }
    }
}
