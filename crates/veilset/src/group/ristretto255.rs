//! ristretto255 (RFC 9496), a group of prime order, in batches: where inverses or sums are needed.
//!
//! Security: DDH. Elements that a peer sends are canonical encodings of one, and not the identity.

use crate::rng::Prng;
use crate::secret::Secrets;
use veilset_kernels::ristretto255 as kernel;
pub use veilset_kernels::ristretto255::{Element, add, subtract};

/// Secret scalars.
pub struct Scalars(Secrets<[u8; 32]>);

impl Scalars {
    /// `n` random ones: 255 random bits, of which all residues modulo the order have eight but for a part below
    /// 2^-124, which have seven.
    pub fn random(n: usize, rng: &mut Prng) -> Scalars {
        let mut scalars = Secrets::zeros(n);
        rng.fill(scalars.as_flattened_mut());
        Scalars(scalars)
    }

    /// Each of them twice, one after the other.
    pub fn twice_each(&self) -> Scalars {
        Scalars(Secrets::from(self.0.iter().flat_map(|s| [*s; 2]).collect::<Vec<_>>()))
    }
}

/// Multiples of one element, prepared for many scalars.
pub struct Table(&'static kernel::Table);

impl Table {
    /// Those of the generator.
    pub fn generator() -> Table {
        Table(kernel::Table::generator())
    }

    /// The multiples by these scalars.
    pub fn multiply(&self, scalars: &Scalars) -> Secrets<Element> {
        let mut out = Secrets::zeros(scalars.0.len());
        self.0.multiply(&scalars.0, &mut out);
        out
    }
}

/// Multiplies each element by its scalar.
///
/// # Panics
/// If there are not as many of both.
pub fn multiply(elements: &mut [Element], scalars: &Scalars) {
    kernel::multiply(elements, &scalars.0);
}

/// The encodings of the elements.
pub fn encode(elements: &[Element]) -> Secrets<[u8; 32]> {
    let mut out = Secrets::zeros(elements.len());
    kernel::encode(elements, &mut out);
    out
}

/// The elements of these encodings.
///
/// # Errors
/// With the position of the first that is not a canonical encoding, or if all are, of the first that is the identity's.
pub fn decode(bytes: &[[u8; 32]]) -> Result<Secrets<Element>, usize> {
    let mut out = Secrets::zeros(bytes.len());
    kernel::decode(bytes, &mut out)?;
    // The identity has one canonical encoding.
    match bytes.iter().position(|b| *b == [0; 32]) {
        None => Ok(out),
        Some(position) => Err(position),
    }
}

/// Hashes to the group: the elements that these uniform bytes stand for.
pub fn map(uniform: &[[u8; 64]]) -> Secrets<Element> {
    let mut out = Secrets::zeros(uniform.len());
    kernel::map(uniform, &mut out);
    out
}
