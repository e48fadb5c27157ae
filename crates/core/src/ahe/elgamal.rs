//! Exponential ElGamal over ristretto255: additively homomorphic, with a test for zero instead of decryption.
//!
//! A message m of Z_l, where l is the order of the group, is encrypted as (r G, r PK + m G) with r uniform in Z_l. m is 0
//! if and only if the second part is sk times the first. Recovering any other m takes a discrete logarithm, which is never
//! needed here.
//!
//! Security: IND-CPA under DDH on ristretto255. A ciphertext made by [`PublicKey::combine`] is distributed as a fresh
//! encryption of its message, even given the secret key and the randomness of all inputs. Leakage: none. Cost: 64 bytes
//! per ciphertext. The owner encrypts with two multiplications of the generator, because r PK + m G = (r sk + m) G; the
//! test takes one multiplication. A combination of n ciphertexts takes 2 n + 3.
//!
//! Non-canonical encodings from a peer are rejected, and so is the identity, in keys and in both parts of ciphertexts.
//! An honest party sends it with probability 2^-252. [`FirstMalformed`] is for ciphertexts that must not be rejected at
//! once.

pub mod lists;

use crate::channel::Wire;
use crate::group::ristretto255::{
    Element, Encoding, Scalar as SecretScalar, Scalars, add, decode, decode_or_identity, encode, multiply,
    multiply_all,
};
use crate::rng::Prng;
use crate::secret::Secrets;
pub use curve25519_dalek::Scalar;
use veilset_kernels::ristretto255::Table;
use zeroize::{Zeroize, Zeroizing};

/// Multiplications of points for a combination, in addition to two per ciphertext in it.
pub const FRESH: usize = 3;

/// The position of a malformed input. For this cipher, that is one that does not encode a group element, or encodes the
/// identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub usize);

/// The position of the first malformed ciphertext of a list, if there is one. Which ciphertexts we hold can depend on
/// our secrets. In that case nothing observable, timing included, may depend on this value until the others have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstMalformed(pub(super) u64);

impl FirstMalformed {
    /// The value for a list without malformed ciphertexts.
    pub const NONE: FirstMalformed = FirstMalformed(u64::MAX);

    /// The value for a longer list, in which `others` ciphertexts precede these.
    #[must_use]
    pub const fn after(self, others: usize) -> FirstMalformed {
        FirstMalformed(self.0.saturating_add(others as u64))
    }

    /// The first malformed position of two results for the same list.
    #[must_use]
    pub fn or(self, other: FirstMalformed) -> FirstMalformed {
        FirstMalformed(self.0.min(other.0))
    }

    /// The position of the first malformed ciphertext; `None` if there is none.
    pub fn position(self) -> Option<usize> {
        (self != FirstMalformed::NONE).then_some(self.0 as usize)
    }
}

/// A ciphertext in transit, which is validated only when it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Zeroize)]
pub struct Ciphertext(pub(super) [Encoding; 2]);

/// The secret key, which is not 0 and is zeroized on drop.
pub struct SecretKey(pub(super) SecretScalar);

/// The public key PK of a peer, or a joint key.
pub struct PublicKey {
    /// A table of multiples of PK.
    pub(super) table: Table,
}

/// Draws a uniform element of Z_l.
pub fn uniform(rng: &mut Prng) -> Zeroizing<Scalar> {
    reduced(&Zeroizing::new(rng.bytes()))
}

/// Draws a uniform element of Z_l other than 0.
pub fn unit(rng: &mut Prng) -> Zeroizing<Scalar> {
    first_unit(|| Zeroizing::new(rng.bytes()))
}

fn first_unit(mut draw: impl FnMut() -> Zeroizing<[u8; 64]>) -> Zeroizing<Scalar> {
    loop {
        let scalar = reduced(&draw());
        // Redrawn with probability 2^-252.
        if *scalar != Scalar::ZERO {
            return scalar;
        }
    }
}

/// Returns this number modulo l, which is uniform if the bytes are.
pub fn reduced(number: &[u8; 64]) -> Zeroizing<Scalar> {
    Zeroizing::new(Scalar::from_bytes_mod_order_wide(number))
}

impl SecretKey {
    /// Draws a fresh secret key.
    pub fn random(rng: &mut Prng) -> SecretKey {
        let mut wide = Zeroizing::new([0; 64]);
        wide[..32].copy_from_slice(unit(rng).as_bytes());
        SecretKey(SecretScalar::reduced(&wide))
    }

    pub(super) fn scalar(&self) -> Zeroizing<Scalar> {
        Zeroizing::new(Scalar::from_bytes_mod_order(*self.0.as_bytes()))
    }

    /// Returns the encoding of PK = sk G.
    pub fn public(&self) -> Encoding {
        encode(&multiples(Table::generator(), &[*self.0.as_bytes()]))[0]
    }

    /// Encrypts messages, each with fresh randomness. The ciphertexts are distributed as if made with the public key.
    pub fn encrypt(&self, messages: &[Scalar], rng: &mut Prng) -> Vec<Ciphertext> {
        let key = self.scalar();
        let mut exponents = Secrets::zeros(2 * messages.len());
        for (pair, message) in exponents.as_chunks_mut::<2>().0.iter_mut().zip(messages) {
            let r = uniform(rng);
            // r G, and r PK + m G.
            *pair = [r.to_bytes(), (*r * *key + message).to_bytes()];
        }
        let parts = encode(&multiples(Table::generator(), &exponents));
        parts.as_chunks::<2>().0.iter().map(|parts| Ciphertext(*parts)).collect()
    }

    /// Returns whether each message is 0.
    ///
    /// # Errors
    /// The position of a malformed ciphertext, not always the first.
    pub fn are_zero(&self, ciphertexts: &[Ciphertext]) -> Result<Secrets<bool>, Malformed> {
        let [mut first, second] = decoded(ciphertexts)?;
        multiply_all(&mut first, &self.0);
        Ok(Secrets::from(first.iter().zip(second.iter()).map(|(a, b)| a.equals(b)).collect::<Vec<_>>()))
    }
}

impl PublicKey {
    /// Decodes the peer's public key.
    ///
    /// # Errors
    /// [`Malformed`] if the encoding is not canonical, or is the identity.
    pub fn of(encoding: &Encoding) -> Result<PublicKey, Malformed> {
        let elements = decode(&[*encoding]).map_err(Malformed)?;
        Ok(PublicKey { table: Table::new(&elements[0]) })
    }

    /// Returns a fresh encryption of `constant` plus the weighted sum of the messages of these ciphertexts.
    /// Constant-time in constant and weights.
    ///
    /// # Errors
    /// The position of a malformed ciphertext, not always the first.
    ///
    /// # Panics
    /// If the numbers of weights and ciphertexts differ.
    pub fn combine(
        &self,
        constant: &Scalar,
        weights: &[Scalar],
        ciphertexts: &[Ciphertext],
        rng: &mut Prng,
    ) -> Result<Ciphertext, Malformed> {
        let parts: Vec<Encoding> = ciphertexts.iter().flat_map(|c| c.0).collect();
        let mut products = decode(&parts).map_err(|at| Malformed(at / 2))?;
        let twice = weights.iter().flat_map(|weight| [weight.to_bytes(); 2]).collect::<Vec<_>>();
        multiply(&mut products, &Scalars::from(Secrets::from(twice)));
        // The fresh encryption: (t G, t PK + constant G), with t uniform in Z_l.
        let exponents = Zeroizing::new([uniform(rng).to_bytes(), constant.to_bytes()]);
        let mut sum = multiples(Table::generator(), &*exponents);
        add(&mut sum[1..], &multiples(&self.table, &exponents[..1]));
        if let Some(products) = total(&mut products) {
            add(&mut sum, products);
        }
        let parts = encode(&sum);
        Ok(Ciphertext([parts[0], parts[1]]))
    }
}

/// Decodes the first parts of ciphertexts, then the second parts. The error is the position of a malformed ciphertext,
/// not always the first.
pub(super) fn decoded(ciphertexts: &[Ciphertext]) -> Result<[Secrets<Element>; 2], Malformed> {
    let part = |i: usize| decode(&ciphertexts.iter().map(|c| c.0[i]).collect::<Vec<_>>()).map_err(Malformed);
    Ok([part(0)?, part(1)?])
}

/// Decodes as [`decoded`] does, with the identity for both parts of a malformed ciphertext; also returns which are
/// malformed. Constant-time in which they are.
pub(super) fn decoded_or_nothing(ciphertexts: &[Ciphertext]) -> ([Secrets<Element>; 2], Secrets<bool>) {
    let part = |i: usize| decode_or_identity(&ciphertexts.iter().map(|c| c.0[i]).collect::<Vec<_>>());
    let mut parts = [part(0), part(1)];
    let [first, second] = &mut parts;
    let malformed = first.iter_mut().zip(second.iter_mut()).map(|(first, second)| {
        let malformed = first.equals(&Element::IDENTITY) | second.equals(&Element::IDENTITY);
        *first = first.or_identity(!malformed);
        *second = second.or_identity(!malformed);
        malformed
    });
    let malformed = Secrets::from(malformed.collect::<Vec<_>>());
    (parts, malformed)
}

/// The multiples of an element by these secret scalars.
pub(super) fn multiples(table: &Table, scalars: &[Encoding]) -> Secrets<Element> {
    let mut out = Secrets::zeros(scalars.len());
    table.multiply(scalars, &mut out);
    out
}

/// Adds up the pairs of elements in place; `None` if there are none.
fn total(mut pairs: &mut [Element]) -> Option<&[Element]> {
    while pairs.len() > 2 {
        // Adds the last half to the first; if the number is odd, the pair in the middle stays.
        let half = pairs.len() / 4 * 2;
        let (first, last) = pairs.split_at_mut(pairs.len() - half);
        add(&mut first[..half], last);
        pairs = first;
    }
    if pairs.is_empty() { None } else { Some(pairs) }
}

impl AsRef<[u8]> for Ciphertext {
    fn as_ref(&self) -> &[u8] {
        self.0.as_flattened()
    }
}

impl Wire for Ciphertext {
    const SIZE: usize = 64;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_ref());
    }
    fn get(bytes: &[u8]) -> Result<Self, &'static str> {
        let whole: &[u8; 64] = bytes.try_into().map_err(|_| "of the wrong size")?;
        whole.as_chunks::<32>().0.try_into().map(Ciphertext).map_err(|_| "of the wrong size")
    }
}

#[cfg(test)]
#[path = "elgamal_tests.rs"]
mod tests;
