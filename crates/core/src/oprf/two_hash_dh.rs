//! The Diffie-Hellman OPRF over ristretto255: RFC 9497 ("Oblivious Pseudorandom Functions (OPRFs) Using
//! Prime-Order Groups"), base mode, ciphersuite ristretto255-SHA512; and the multi-point OPRF built from it.
//!
//! Security: semi-honest; the one-more gap Diffie-Hellman assumption, SHA-512 a random oracle. In base mode a
//! sender can use a different key for every element without being detected. A malicious receiver gets values of
//! F at as many inputs as it sends elements, and no more. Leakage: the number of inputs. Cost: per input of the
//! receiver, 64 bytes and three scalar multiplications, two of them its own; per input of the sender, one.
//!
//! The functions of the RFC ([`blind`], [`blind_evaluate`], [`finalize`], [`evaluate`], [`OprfKey::derive`]) process
//! batches under one key. [`TwoHashDh`] draws a fresh key, and its outputs are hashes of the RFC's outputs, in a
//! domain of the session.

use super::{Input, Oprf, Output};
use crate::channel::{Message, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::ristretto255::{
    Element, Encoding, Scalar, Scalars, decode, encode, map, multiply, multiply_all,
};
use crate::hash::{Domain, SessionId};
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

/// Inputs per frame: 4096, whose elements take 128 KiB. A party holds up to 1.5 MiB for each frame that it works on; the
/// receiver works on two at once, and also holds up to 8 MiB of blinds.
pub const FRAME: usize = 1 << 12;
/// Frames whose blinds may wait for answers, in addition to the current one: 2^18 inputs, 8 MiB of blinds. They cover a
/// bandwidth times round-trip time of up to 8 MiB: 840 Mbit/s at 80 ms. Smaller in tests.
const AHEAD: usize = if cfg!(test) { 2 } else { 1 << 6 };

const BLINDED: Message<Encoding> = Message::new(0xb1, "R->S  DH OPRF, blinded elements");
const EVALUATED: Message<Encoding> = Message::new(0xb2, "S->R  DH OPRF, evaluated elements");

/// contextString of base mode, preceded by the name of the function.
const HASH_TO_GROUP: &[u8] = b"HashToGroup-OPRFV1-\x00-ristretto255-SHA512";
const DERIVE_KEY_PAIR: &[u8] = b"DeriveKeyPairOPRFV1-\x00-ristretto255-SHA512";

/// The block size of SHA-512.
const BLOCK: usize = 128;

/// An output of the RFC's function.
pub type Hash = [u8; 64];

/// A key of the function: skS. In base mode its public key is not used.
pub struct OprfKey(Scalar);

impl OprfKey {
    /// Draws a fresh key.
    pub fn random(rng: &mut Prng) -> OprfKey {
        OprfKey(Scalar::random(rng))
    }

    /// The RFC's DeriveKeyPair: derives the key from a secret seed, for the purpose that `info` names.
    ///
    /// # Errors
    /// If `info` is longer than 65,535 bytes, and with negligible probability if no key can be derived.
    pub fn derive(seed: &[u8; 32], info: &[u8]) -> Result<OprfKey> {
        let length = length(info)?;
        for counter in 0..=u8::MAX {
            let uniform = expand(&[seed, &length, info, &[counter]], DERIVE_KEY_PAIR);
            let scalar = Scalar::reduced(&uniform);
            // The scalar is 0 with probability 2^-252.
            if !scalar.is_zero() {
                return Ok(OprfKey(scalar));
            }
        }
        Err(Error::Bug("no key can be derived from this seed".into()))
    }
}

/// The blinds of a batch of inputs.
pub struct Blinds(Scalars);

/// The RFC's Blind. Returns fresh blinds, and the elements that the receiver sends.
///
/// # Errors
/// If an input is longer than 65,535 bytes, and with negligible probability if an element is the identity.
pub fn blind(inputs: &[impl AsRef<[u8]> + Sync], rng: &mut Prng) -> Result<(Blinds, Vec<Encoding>)> {
    blind_with(inputs, Scalars::random(inputs.len(), rng))
}

fn blind_with(inputs: &[impl AsRef<[u8]> + Sync], blinds: Scalars) -> Result<(Blinds, Vec<Encoding>)> {
    inputs.iter().try_for_each(|input| length(input.as_ref()).map(drop))?;
    let mut elements = hash_to_group(inputs);
    multiply(&mut elements, &blinds);
    let blinded = not_the_identity(encode(&elements))?;
    Ok((Blinds(blinds), blinded.to_vec()))
}

/// The RFC's BlindEvaluate. Returns the elements with which the sender answers.
///
/// # Errors
/// If an element is not canonically encoded, or is the identity.
pub fn blind_evaluate(key: &OprfKey, blinded: &[Encoding]) -> Result<Vec<Encoding>> {
    let mut elements = received(blinded, "blinded")?;
    multiply_all(&mut elements, &key.0);
    Ok(encode(&elements).to_vec())
}

/// The RFC's Finalize. Returns the outputs at the inputs.
///
/// # Errors
/// If an answer is not the canonical encoding of an element, or is the identity; if the numbers of inputs, blinds
/// and answers differ; or if an input is longer than 65,535 bytes.
pub fn finalize(
    inputs: &[impl AsRef<[u8]> + Sync],
    blinds: &Blinds,
    evaluated: &[Encoding],
) -> Result<Zeroizing<Vec<Hash>>> {
    let inverses = blinds.0.inverses();
    if inputs.len() != evaluated.len() || inverses.len() != evaluated.len() {
        return Err(Error::Bug("a DH OPRF with answers to other inputs".into()));
    }
    let mut elements = received(evaluated, "evaluated")?;
    multiply(&mut elements, &inverses);
    hashes(inputs, &encode(&elements))
}

/// The RFC's Evaluate. Returns the outputs at the inputs, given the key.
///
/// # Errors
/// If an input is longer than 65,535 bytes, and with negligible probability if an element is the identity.
pub fn evaluate(key: &OprfKey, inputs: &[impl AsRef<[u8]> + Sync]) -> Result<Zeroizing<Vec<Hash>>> {
    let mut elements = hash_to_group(inputs);
    multiply_all(&mut elements, &key.0);
    hashes(inputs, &not_the_identity(encode(&elements))?)
}

/// Decodes elements from the peer.
fn received(bytes: &[Encoding], what: &str) -> Result<Secrets<Element>> {
    decode(bytes).map_err(|i| {
        Error::misbehaves(format_args!(
            "{what} element {i} of its DH OPRF is not one of the group, or its identity"
        ))
    })
}

/// Refuses the identity. An input that hashes to it, and a blind or a key of 0, each have probability 2^-252.
fn not_the_identity(encodings: Secrets<Encoding>) -> Result<Secrets<Encoding>> {
    match encodings.contains(&[0; 32]) {
        false => Ok(encodings),
        true => Err(Error::Bug("the DH OPRF met the identity of its group".into())),
    }
}

/// I2OSP(len(bytes), 2)
fn length(bytes: &[u8]) -> Result<[u8; 2]> {
    let length = u16::try_from(bytes.len());
    length.map(u16::to_be_bytes).map_err(|_| {
        Error::usage(format!("the DH OPRF takes inputs of 65,535 bytes at most, not {}", bytes.len()))
    })
}

/// expand_message_xmd of RFC 9380 5.3.1 with SHA-512, to 64 bytes: the output of one hash.
fn expand(message: &[&[u8]], dst: &[u8]) -> Zeroizing<Hash> {
    let dst_length = [dst.len() as u8];
    // b_0 = H(Z_pad || msg || I2OSP(64, 2) || 0 || DST_prime)
    let mut hasher = Sha512::new_with_prefix([0; BLOCK]);
    message.iter().for_each(|part| hasher.update(part));
    for part in [&[0, 64, 0], dst, &dst_length] {
        hasher.update(part);
    }
    let b_0 = Zeroizing::new(Hash::from(hasher.finalize()));
    // b_1 = H(b_0 || 1 || DST_prime)
    let mut hasher = Sha512::new_with_prefix(*b_0);
    for part in [&[1], dst, &dst_length] {
        hasher.update(part);
    }
    Zeroizing::new(hasher.finalize().into())
}

/// HashToGroup: hash_to_ristretto255 of RFC 9380.
fn hash_to_group(inputs: &[impl AsRef<[u8]> + Sync]) -> Secrets<Element> {
    let mut uniform = Zeroizing::new(vec![[0; 64]; inputs.len()]);
    uniform
        .par_iter_mut()
        .zip(inputs)
        .for_each(|(uniform, input)| *uniform = *expand(&[input.as_ref()], HASH_TO_GROUP));
    map(&uniform)
}

/// The last step of Finalize and Evaluate: hashes the inputs with their elements.
fn hashes(inputs: &[impl AsRef<[u8]> + Sync], elements: &[Encoding]) -> Result<Zeroizing<Vec<Hash>>> {
    let mut out = Zeroizing::new(vec![[0; 64]; inputs.len()]);
    out.par_iter_mut().zip(inputs).zip(elements).try_for_each(|((out, input), element)| {
        let input = input.as_ref();
        let mut hasher = Sha512::new_with_prefix(length(input)?);
        for part in [input, &[0, 32], element, b"Finalize"] {
            hasher.update(part);
        }
        *out = hasher.finalize().into();
        Ok::<_, Error>(())
    })?;
    Ok(out)
}

/// The multi-point OPRF: the sender answers every element of the receiver under one fresh key.
pub struct TwoHashDh;

impl TwoHashDh {
    fn outputs(session: &SessionId, hashes: &[Hash]) -> Secrets<Output> {
        let domain = Domain::new(session, "DH OPRF output");
        Secrets::from(hashes.iter().map(|hash| domain.hash(&[hash])).collect::<Vec<_>>())
    }
}

impl Oprf for TwoHashDh {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], _: usize) -> Result<Secrets<Output>> {
        cx.ch.stage("evaluating", Unit::Items, 2 * inputs.len());
        // The sender answers each frame, so both directions flow at once. The blinds are queued.
        let ((), outputs) = cx.ch.duplex_with_queue(
            AHEAD,
            |tx, queue| {
                for inputs in inputs.chunks(FRAME) {
                    // 1. R sends r_i H(y_i).
                    let (blinds, blinded) = cx.threads.run(|| blind(inputs, cx.rng))?;
                    tx.send(BLINDED, &blinded)?;
                    queue.put(blinds)?;
                }
                Ok(())
            },
            |rx, queue| {
                let mut outputs = Secrets::zeros(0);
                for inputs in inputs.chunks(FRAME) {
                    // 3. R removes r_i.
                    let evaluated = rx.recv(EVALUATED, inputs.len())?;
                    let blinds = queue.take()?;
                    let hashes = cx.threads.run(|| finalize(inputs, &blinds, &evaluated))?;
                    outputs.extend(&TwoHashDh::outputs(&cx.session, &hashes));
                }
                Ok(outputs)
            },
        )?;
        Ok(outputs)
    }

    fn sender(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>> {
        cx.ch.stage("evaluating", Unit::Items, 2 * n_y);
        let key = OprfKey::random(cx.rng);
        // 2. S answers k r_i H(y_i).
        for n in frames(n_y, FRAME) {
            let blinded = cx.ch.rx.recv(BLINDED, n)?;
            cx.ch.tx.send(EVALUATED, &cx.threads.run(|| blind_evaluate(&key, &blinded))?)?;
        }
        let mut outputs = Secrets::zeros(0);
        for inputs in inputs.chunks(FRAME) {
            outputs.extend(&TwoHashDh::outputs(&cx.session, &cx.threads.run(|| evaluate(&key, inputs))?));
        }
        Ok(outputs)
    }
}

#[cfg(test)]
#[path = "two_hash_dh_tests.rs"]
mod tests;
