//! Multi-key ElGamal over ristretto255: decryption takes all parties whose keys form the joint key (GNT23 2.6).
//!
//! Each party has a key pair of [`super::elgamal`]. The joint key of a group of parties is the sum of their public
//! keys, and a message M, an element of the group, is encrypted under it as (r G, r PK + M). A party takes its own key
//! off, with fresh randomness under the joint key of the rest: (c1 + r G, c2 - sk c1 + r PK_rest). The last one
//! decrypts: c2 - sk c1.
//!
//! Output: all owners of a joint key together learn the messages, and fewer learn nothing. The ciphertexts of
//! [`PublicKey::rerandomise`] and [`SecretKey::partially_decrypt`] are distributed as fresh encryptions of the
//! messages, even to the parties that made the inputs. Each ciphertext has independent randomness, also within a row.
//!
//! Security: semi-honest, against all owners of a joint key but one; IND-CPA under DDH on ristretto255. Keys carry no
//! proof of possession. A malicious party that chooses its key last can choose X - (the sum of the others), and then
//! decrypts alone, with the secret key of X. So keys must be fixed before any is shown: each party first sends a
//! commitment, and compares all commitments with the keys. The callers must ensure this
//! (operations/multiparty/setup.rs), and that all parties receive the same keys. A key chosen in view of others is then
//! refused.
//!
//! Cost: 64 bytes per ciphertext. Encrypting takes two multiplications with tables, of the generator and of the joint
//! key, and two encodings; re-randomising, two more decodings; decrypting partially, one more multiplication, of c1,
//! and three if blinded. Memory: a table of 60 KiB per joint key, 96 bytes per new ciphertext or 128 if blinded, 160
//! per decrypted message, and 250 KiB per thread.
//!
//! Departures from the paper:
//! - scalars are of the group's full range. Scalars of 128 bits, as in the paper, would be found in 2^64 steps;
//! - messages are elements, including the identity. Strings become elements in [`crate::group::encoding`];
//! - non-canonical encodings are rejected, and so is the identity: as a key, as the sum of keys, and as a part of a
//!   ciphertext. Both parts of an honest ciphertext are uniform at every stage, so an honest rejection has probability
//!   2^-252. Only [`PublicKey::rerandomise_any`] continues.

use super::elgamal::{
    Ciphertext, FirstMalformed, Malformed, PublicKey, SecretKey, decoded, decoded_or_nothing, multiples, unit,
};
use crate::group::ristretto255::{BATCH, Element, Encoding, Scalars, add, decode, encode, subtract};
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use subtle::{Choice, ConditionallySelectable};
use veilset_kernels::ristretto255::{Table, multiply, multiply_all};

impl PublicKey {
    /// Returns the joint key of the owners of these keys.
    ///
    /// # Errors
    /// The position of the first key that is not a canonical encoding; if there is none, of the first that encodes the
    /// identity; or the number of keys if they add up to the identity.
    pub fn joint(keys: &[Encoding]) -> Result<PublicKey, Malformed> {
        let elements = decode(keys).map_err(Malformed)?;
        let mut sum = [Element::IDENTITY];
        elements.chunks(1).for_each(|key| add(&mut sum, key));
        match sum[0].equals(&Element::IDENTITY) {
            false => Ok(PublicKey { table: Table::new(&sum[0]) }),
            true => Err(Malformed(keys.len())),
        }
    }

    /// Returns the joint key of party 0 and all parties after this one: those that have yet to decrypt when parties 1 to
    /// `party` have done so. For party 0, which decrypts last, it is the joint key of all.
    ///
    /// # Errors
    /// The errors of [`PublicKey::joint`] for the list of `keys[0]` and `keys[party + 1..]`; positions count in that list.
    ///
    /// # Panics
    /// If there is no such party, which is an error of the caller.
    pub fn remaining(keys: &[Encoding], party: usize) -> Result<PublicKey, Malformed> {
        PublicKey::joint(&[&keys[..1], &keys[party + 1..]].concat())
    }

    /// Returns r G and r PK.
    fn masks(&self, r: &[Encoding]) -> [Secrets<Element>; 2] {
        [Table::generator(), &self.table].map(|table| multiples(table, r))
    }

    /// Encrypts elements, each with fresh randomness.
    pub fn encrypt(&self, messages: &[Element], rng: &mut Prng) -> Vec<Ciphertext> {
        let r = Scalars::random(messages.len(), rng);
        let mut out = vec![Ciphertext::default(); messages.len()];
        let batches = out.par_chunks_mut(BATCH).zip(messages.par_chunks(BATCH));
        batches.zip(r.as_bytes().par_chunks(BATCH)).for_each(|((out, messages), r)| {
            let [first, mut second] = self.masks(r);
            add(&mut second, messages);
            put([first, second], out);
        });
        out
    }

    /// Returns `n` encryptions of the identity, each with fresh randomness.
    pub fn encrypt_zero(&self, n: usize, rng: &mut Prng) -> Vec<Ciphertext> {
        let r = Scalars::random(n, rng);
        let mut out = vec![Ciphertext::default(); n];
        let batches = out.par_chunks_mut(BATCH).zip(r.as_bytes().par_chunks(BATCH));
        batches.for_each(|(out, r)| put(self.masks(r), out));
        out
    }

    /// Returns fresh encryptions, under this key, of the same messages.
    ///
    /// # Errors
    /// The position of the first malformed ciphertext.
    pub fn rerandomise(
        &self,
        ciphertexts: &[Ciphertext],
        rng: &mut Prng,
    ) -> Result<Vec<Ciphertext>, Malformed> {
        let (fresh, first) = self.rerandomise_any(ciphertexts, rng);
        first.position().map_or(Ok(fresh), |at| Err(Malformed(at)))
    }

    /// Re-randomises ciphertexts that may be malformed: a fresh encryption of the identity replaces each malformed one.
    /// Also returns the position of the first malformed one. Constant-time in which ciphertexts are malformed.
    pub fn rerandomise_any(
        &self,
        ciphertexts: &[Ciphertext],
        rng: &mut Prng,
    ) -> (Vec<Ciphertext>, FirstMalformed) {
        let FirstMalformed(none) = FirstMalformed::NONE;
        let r = Scalars::random(ciphertexts.len(), rng);
        let mut out = vec![Ciphertext::default(); ciphertexts.len()];
        let first = AtomicU64::new(none);
        let batches = out.par_chunks_mut(BATCH).zip(ciphertexts.par_chunks(BATCH));
        let batches = batches.zip(r.as_bytes().par_chunks(BATCH)).enumerate();
        batches.for_each(|(batch, ((out, ciphertexts), r))| {
            let (parts, malformed) = decoded_or_nothing(ciphertexts);
            put(masked(parts, self.masks(r)), out);
            let places = (batch * BATCH..).zip(malformed.iter());
            let earliest = places.fold(none, |earliest, (at, malformed)| {
                let at = u64::conditional_select(&none, &(at as u64), Choice::from(u8::from(*malformed)));
                earliest.min(at)
            });
            first.fetch_min(earliest, Ordering::Relaxed);
        });
        (out, FirstMalformed(first.into_inner()))
    }
}

impl SecretKey {
    /// Removes this key: returns fresh encryptions of the messages under the joint key of the remaining parties.
    ///
    /// # Errors
    /// The position of a malformed ciphertext, not always the first.
    pub fn partially_decrypt(
        &self,
        ciphertexts: &[Ciphertext],
        rest: &PublicKey,
        rng: &mut Prng,
    ) -> Result<Vec<Ciphertext>, Malformed> {
        let r = Scalars::random(ciphertexts.len(), rng);
        let mut out = vec![Ciphertext::default(); ciphertexts.len()];
        in_batches(&mut out, |at, out| {
            let parts = self.taken_off(&ciphertexts[at.clone()])?;
            put(masked(parts, rest.masks(&r.as_bytes()[at])), out);
            Ok(())
        })?;
        Ok(out)
    }

    /// Removes this key and multiplies each message by a fresh random scalar: the identity stays the identity, and any
    /// other element becomes a uniform element other than the identity.
    ///
    /// # Errors
    /// The position of a malformed ciphertext, not always the first.
    pub fn partially_decrypt_blinded(
        &self,
        ciphertexts: &[Ciphertext],
        rest: &PublicKey,
        rng: &mut Prng,
    ) -> Result<Vec<Ciphertext>, Malformed> {
        let r = Scalars::random(ciphertexts.len(), rng);
        // Not 0, which would make every message the identity.
        let factors = ciphertexts.iter().map(|_| unit(rng).to_bytes());
        let factors = Secrets::from(factors.collect::<Vec<Encoding>>());
        let mut out = vec![Ciphertext::default(); ciphertexts.len()];
        in_batches(&mut out, |at, out| {
            let mut parts = self.taken_off(&ciphertexts[at.clone()])?;
            parts.iter_mut().for_each(|part| multiply(part, &factors[at.clone()]));
            put(masked(parts, rest.masks(&r.as_bytes()[at])), out);
            Ok(())
        })?;
        Ok(out)
    }

    /// Decrypts ciphertexts under this key alone.
    ///
    /// # Errors
    /// The position of a malformed ciphertext, not always the first.
    pub fn decrypt(&self, ciphertexts: &[Ciphertext]) -> Result<Secrets<Element>, Malformed> {
        let mut out = Secrets::zeros(ciphertexts.len());
        in_batches(&mut out, |at, out| {
            let [_, messages] = self.taken_off(&ciphertexts[at])?;
            out.copy_from_slice(&messages);
            Ok(())
        })?;
        Ok(out)
    }

    /// Returns c1, and c2 - sk c1.
    fn taken_off(&self, ciphertexts: &[Ciphertext]) -> Result<[Secrets<Element>; 2], Malformed> {
        let [first, mut second] = decoded(ciphertexts)?;
        let mut shared = first.clone();
        multiply_all(&mut shared, self.0.as_bytes());
        subtract(&mut second, &shared);
        Ok([first, second])
    }
}

/// Adds a fresh encryption of the identity to each ciphertext.
fn masked(mut parts: [Secrets<Element>; 2], masks: [Secrets<Element>; 2]) -> [Secrets<Element>; 2] {
    parts.iter_mut().zip(&masks).for_each(|(part, mask)| add(part, mask));
    parts
}

/// Writes the ciphertexts with these parts to `out`.
fn put([first, second]: [Secrets<Element>; 2], out: &mut [Ciphertext]) {
    let (first, second) = (encode(&first), encode(&second));
    let parts = first.iter().zip(second.iter());
    out.iter_mut().zip(parts).for_each(|(out, (first, second))| *out = Ciphertext([*first, *second]));
}

/// Computes all of `out` in batches, and passes `work` the range of each. Reports the error of the first batch that has
/// one.
fn in_batches<T: Send>(
    out: &mut [T],
    work: impl Fn(Range<usize>, &mut [T]) -> Result<(), Malformed> + Sync,
) -> Result<(), Malformed> {
    let wrong = out.par_chunks_mut(BATCH).enumerate().filter_map(|(batch, out)| {
        let first = batch * BATCH;
        Some(first + work(first..first + out.len(), out).err()?.0)
    });
    wrong.min().map_or(Ok(()), |at| Err(Malformed(at)))
}

#[cfg(test)]
#[path = "joint_tests.rs"]
mod tests;
