//! ristretto255 (RFC 9496), a group of prime order, in batches. Used where elements are added or each has a factor of its
//! own that is taken off again, and by protocols that offer it as a [`Group`].
//!
//! Security: DDH; [`crate::oprf::two_hash_dh`] states what it needs in addition. Elements from a peer must be canonical
//! encodings, and not the identity. [`decode_or_identity`] leaves the check to its caller.

use super::{Group, Unfit};
use crate::hash::{Domain, ItemHash};
use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use crate::work::Primitive;
use curve25519_dalek::Scalar as Reduced;
use rayon::prelude::*;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use veilset_kernels::ristretto255 as kernel;
pub use veilset_kernels::ristretto255::{Element, add, subtract};
use zeroize::{Zeroize, Zeroizing};

/// The encoding of an element.
pub type Encoding = [u8; 32];

/// Elements per kernel call: few enough to distribute over threads.
pub(crate) const BATCH: usize = 256;

/// A secret scalar.
pub struct Scalar(Secret<[u8; 32]>);

impl Scalar {
    /// Draws a random scalar; each value, including 0, has probability about 2^-252.
    pub fn random(rng: &mut Prng) -> Scalar {
        Scalar::reduced(&Zeroizing::new(rng.bytes()))
    }

    /// Reduces this little-endian number modulo the order of the group.
    pub fn reduced(number: &[u8; 64]) -> Scalar {
        let reduced = Zeroizing::new(Reduced::from_bytes_mod_order_wide(number));
        Scalar(Secret::new(reduced.to_bytes()))
    }

    /// Returns whether the scalar is 0.
    pub fn is_zero(&self) -> bool {
        self.0.ct_eq(&[0; 32]).into()
    }

    /// Returns the encoding, little-endian.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A list of secret scalars.
pub struct Scalars(Secrets<[u8; 32]>);

impl Scalars {
    /// Draws `n` random scalars of 255 bits. All residues modulo the order have eight representations, except
    /// for a fraction below 2^-124 that has seven.
    pub fn random(n: usize, rng: &mut Prng) -> Scalars {
        let mut scalars = Secrets::zeros(n);
        rng.fill(scalars.as_flattened_mut());
        Scalars(scalars)
    }

    /// Returns the inverses modulo the order, with 1 for scalars without an inverse.
    pub fn inverses(&self) -> Scalars {
        let mut inverses = Secrets::zeros(self.0.len());
        inverses.par_chunks_mut(BATCH).zip(self.0.par_chunks(BATCH)).for_each(|(inverses, scalars)| {
            let mut batch = Zeroizing::new([Reduced::ONE; BATCH]);
            for (to, scalar) in batch.iter_mut().zip(scalars) {
                let mut bytes = Zeroizing::new(*scalar);
                bytes[31] &= 0x7f;
                let reduced = Zeroizing::new(Reduced::from_bytes_mod_order(*bytes));
                // A single 0 would make all of them 0.
                to.conditional_assign(&reduced, !reduced.ct_eq(&Reduced::ZERO));
            }
            Zeroizing::new(Reduced::invert_batch(&mut batch));
            inverses.iter_mut().zip(batch.iter()).for_each(|(to, inverse)| *to = inverse.to_bytes());
        });
        Scalars(inverses)
    }

    /// Returns the number of scalars.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no scalars.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes of the scalars, little-endian; bit 255 is ignored.
    pub fn as_bytes(&self) -> &[[u8; 32]] {
        &self.0
    }

    /// Returns each scalar twice in a row.
    pub fn twice_each(&self) -> Scalars {
        Scalars(Secrets::from(self.0.iter().flat_map(|s| [*s; 2]).collect::<Vec<_>>()))
    }
}

/// Multiples of one element, precomputed for many scalars.
pub struct Table(&'static kernel::Table);

impl Table {
    /// Returns the table of the generator.
    pub fn generator() -> Table {
        Table(kernel::Table::generator())
    }

    /// Returns the multiples of the element by these scalars.
    pub fn multiply(&self, scalars: &Scalars) -> Secrets<Element> {
        let mut out = Secrets::zeros(scalars.0.len());
        self.0.multiply(&scalars.0, &mut out);
        out
    }
}

/// Little-endian numbers; bit 255 is ignored.
impl From<Secrets<[u8; 32]>> for Scalars {
    fn from(numbers: Secrets<[u8; 32]>) -> Scalars {
        Scalars(numbers)
    }
}

/// Multiplies each element by its scalar.
///
/// # Panics
/// If the numbers of elements and scalars differ.
pub fn multiply(elements: &mut [Element], scalars: &Scalars) {
    assert_eq!(elements.len(), scalars.0.len(), "multiply: as many scalars as elements");
    let batches = elements.par_chunks_mut(BATCH).zip(scalars.0.par_chunks(BATCH));
    batches.for_each(|(elements, scalars)| kernel::multiply(elements, scalars));
}

/// Multiplies all elements by one scalar.
pub fn multiply_all(elements: &mut [Element], scalar: &Scalar) {
    elements.par_chunks_mut(BATCH).for_each(|elements| kernel::multiply_all(elements, &scalar.0));
}

/// Returns the canonical encodings of the elements.
pub fn encode(elements: &[Element]) -> Secrets<Encoding> {
    let mut out = Secrets::zeros(elements.len());
    let batches = elements.par_chunks(BATCH).zip(out.par_chunks_mut(BATCH));
    batches.for_each(|(elements, out)| kernel::encode(elements, out));
    out
}

/// Decodes elements.
///
/// # Errors
/// The position of the first bytes that are not the canonical encoding of an element. If there are none, the position of the
/// first encoding of the identity.
pub fn decode(bytes: &[[u8; 32]]) -> Result<Secrets<Element>, usize> {
    let mut out = Secrets::zeros(bytes.len());
    let batches = bytes.par_chunks(BATCH).zip(out.par_chunks_mut(BATCH)).enumerate();
    let wrong =
        batches.filter_map(|(b, (bytes, out))| Some(b * BATCH + kernel::decode(bytes, out).err()?)).min();
    // The identity has a single canonical encoding.
    match wrong.or_else(|| bytes.iter().position(|b| *b == [0; 32])) {
        None => Ok(out),
        Some(position) => Err(position),
    }
}

/// Decodes elements; bytes that are not the canonical encoding of one give the identity. Constant-time in which these are.
pub fn decode_or_identity(bytes: &[[u8; 32]]) -> Secrets<Element> {
    let mut out = Secrets::zeros(bytes.len());
    bytes.par_chunks(BATCH).zip(out.par_chunks_mut(BATCH)).for_each(|(bytes, out)| {
        // The position of the first is not needed.
        let _ = kernel::decode(bytes, out);
    });
    out
}

/// Maps uniform bytes to elements, which is the last step of hashing to the group.
pub fn map(uniform: &[[u8; 64]]) -> Secrets<Element> {
    let mut out = Secrets::zeros(uniform.len());
    let batches = uniform.par_chunks(BATCH).zip(out.par_chunks_mut(BATCH));
    batches.for_each(|(uniform, out)| kernel::map(uniform, out));
    out
}

/// Maps each number to an element with the single map ([`kernel::map_one`]).
pub fn map_one(numbers: &[[u8; 32]]) -> Secrets<Element> {
    let mut out = Secrets::zeros(numbers.len());
    let batches = numbers.par_chunks(BATCH).zip(out.par_chunks_mut(BATCH));
    batches.for_each(|(numbers, out)| kernel::map_one(numbers, out));
    out
}

/// ristretto255 as a group with a PRF: H(x) is the element to which 64 bytes of BLAKE3 are mapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ristretto255;

/// The encoding of an element. [`Group::raise`] rejects encodings from a peer that do not represent an element, or
/// represent the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Zeroize)]
pub struct Point([u8; 32]);

impl Point {
    /// Returns the bytes of the encoding.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A key of the PRF.
pub struct Key(Scalar);

impl Group for Ristretto255 {
    const NAME: &'static str = "ristretto255";
    const ASSUMPTION: &'static str = "decisional Diffie-Hellman on ristretto255";
    const MULTIPLICATION: Primitive = Primitive::Ristretto255;
    const ROOM: usize = 224;
    const UNFIT: &'static str = "a point that is not an element of ristretto255, or is its identity";
    type Key = Key;
    type Point = Point;

    fn map_and_raise(hashes: &[ItemHash], key: &Key) -> Result<Vec<Point>, Unfit> {
        raised(hash_to_group(hashes), key)
    }

    fn raise(points: &[Point], key: &Key) -> Result<Vec<Point>, Unfit> {
        let bytes: Vec<[u8; 32]> = points.iter().map(|point| point.0).collect();
        raised(decode(&bytes).map_err(|_| Unfit)?, key)
    }
}

/// Returns H(x) for the hash of each item or dummy.
pub fn hash_to_group(hashes: &[ItemHash]) -> Secrets<Element> {
    let domain = Domain::without_session("an element of ristretto255, from the hash of an item");
    let mut uniform = Zeroizing::new(vec![[0; 64]; hashes.len()]);
    let each = uniform.par_iter_mut().zip(hashes);
    each.for_each(|(uniform, hash)| *uniform = domain.hash(&[hash.as_bytes()]));
    map(&uniform)
}

fn raised(mut elements: Secrets<Element>, key: &Key) -> Result<Vec<Point>, Unfit> {
    multiply_all(&mut elements, &key.0);
    let encodings = encode(&elements);
    // Unless the key is 0, only the identity has a multiple that is the identity.
    match encodings.contains(&[0; 32]) {
        false => Ok(encodings.iter().map(|bytes| Point(*bytes)).collect()),
        true => Err(Unfit),
    }
}

encoded!(Point, 32);

impl Point {
    fn received(bytes: [u8; 32]) -> Result<Point, &'static str> {
        Ok(Point(bytes))
    }
}

impl super::Key for Key {
    const BYTES: usize = 32;

    fn random(rng: &mut Prng) -> Key {
        Key(Scalar::random(rng))
    }

    fn with_inverse(rng: &mut Prng) -> (Key, Key) {
        let key = Scalar::random(rng);
        let reduced = Zeroizing::new(Reduced::from_bytes_mod_order(*key.0));
        let inverse = Zeroizing::new(reduced.invert());
        (Key(key), Key(Scalar(Secret::new(inverse.to_bytes()))))
    }

    fn as_bytes(&self) -> &[u8] {
        &self.0.as_bytes()[..]
    }

    fn of_ours(bytes: &[u8]) -> Option<Key> {
        bytes.try_into().ok().map(|bytes| Key(Scalar(Secret::new(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::every_bit_is_random;

    fn generators(n: usize) -> Secrets<Element> {
        Secrets::from(vec![Element::GENERATOR; n])
    }

    #[test]
    fn inverses_take_scalars_off() {
        let rng = &mut Prng::from_seed(&[1; 32]);
        for n in [0, 1, BATCH, BATCH + 1] {
            let scalars = Scalars::random(n, rng);
            let mut elements = generators(n);
            multiply(&mut elements, &scalars);
            assert!(elements.iter().all(|e| !e.equals(&Element::GENERATOR)));
            multiply(&mut elements, &scalars.inverses());
            assert!(elements.iter().all(|e| e.equals(&Element::GENERATOR)), "{n}");
        }
    }

    #[test]
    fn what_has_no_inverse_spoils_no_other_and_bit_255_is_ignored() {
        let mut order = Reduced::ZERO - Reduced::ONE;
        let mut l = order.to_bytes();
        l[0] += 1;
        order += Reduced::ONE;
        let (mut two, mut top) = ([0; 32], [0; 32]);
        (two[0], top[0], top[31]) = (2, 2, 0x80);
        let scalars = Scalars::from(Secrets::from(vec![two, order.to_bytes(), l, top]));
        let inverses = scalars.inverses();
        let half = Reduced::from(2u8).invert().to_bytes();
        assert_eq!(*inverses.0, [half, Reduced::ONE.to_bytes(), Reduced::ONE.to_bytes(), half]);
        let mut elements = generators(4);
        multiply(&mut elements, &scalars);
        assert!(elements[0].equals(&elements[3]) && elements[1].equals(&Element::IDENTITY));
    }

    /// Finding a 128-bit scalar as a discrete logarithm takes 2^64 steps.
    #[test]
    fn random_scalars_are_of_full_width() {
        let rng = &mut Prng::from_seed(&[3; 32]);
        every_bit_is_random(&Scalars::random(400, rng).0, 255);
        let single: Vec<[u8; 32]> = (0..400).map(|_| *Scalar::random(rng).as_bytes()).collect();
        every_bit_is_random(&single, 252);
    }

    #[test]
    fn one_scalar_for_all_is_that_scalar_for_each() {
        let rng = &mut Prng::from_seed(&[2; 32]);
        let scalar = Scalar::random(rng);
        let (mut all, mut each) = (generators(BATCH + 1), generators(BATCH + 1));
        multiply_all(&mut all, &scalar);
        multiply(&mut each, &Scalars::from(Secrets::from(vec![*scalar.as_bytes(); BATCH + 1])));
        assert_eq!(*encode(&all), *encode(&each));
        let mut number = [0; 64];
        assert!(Scalar::reduced(&number).is_zero() && !scalar.is_zero());
        // 2^256 modulo the order.
        number[32] = 1;
        let power = (0..256).fold(Reduced::ONE, |power, _| power + power);
        assert_eq!(*Scalar::reduced(&number).as_bytes(), power.to_bytes());
    }

    #[test]
    fn the_first_wrong_encoding_of_all_batches_is_named() {
        let good = *encode(&generators(1)).first().unwrap();
        let mut bytes = vec![good; 3 * BATCH];
        assert_eq!(decode(&bytes).unwrap().len(), 3 * BATCH);
        bytes[3] = [0; 32];
        assert_eq!(decode(&bytes).err(), Some(3));
        bytes[2 * BATCH + 5] = [0xff; 32];
        assert_eq!(decode(&bytes).err(), Some(2 * BATCH + 5));
        bytes[BATCH + 9] = [0xff; 32];
        assert_eq!(decode(&bytes).err(), Some(BATCH + 9));
    }
}
