//! ristretto255 (RFC 9496), the group of prime order over edwards25519, in batches.
//!
//! Each operation applies to all elements of a slice: [`decode`], [`encode`], [`map`] (hashing to the group),
//! [`map_one`] and its inverse [`unmap`] (numbers as elements), [`add`], [`subtract`], [`multiply`] (a scalar per
//! element), [`multiply_all`] (one scalar for all), and [`Table::multiply`] (many scalars, one base).
//!
//! A scalar is a little-endian number below 2^255, reduced modulo the order of the group or not; bit 255 is ignored.
//! Scalar arithmetic is not included.
//!
//! All functions are constant-time in elements and scalars, and in which encodings are valid. They reveal only the
//! number of elements, and [`decode`] its result.

mod edwards;
mod encoding;
mod table;

#[cfg(test)]
mod map_tests;
#[cfg(test)]
mod tests;

use core::fmt;
use core::hint::black_box;
use zeroize::Zeroizing;

use crate::Backend;
use crate::field::pair::Pair;
use crate::field::portable::mask;
use crate::field::{Fe, Field, Kernel, MAX_LANES, run_on};
use edwards::Extended;
pub use table::Table;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = crate::field::BACKENDS;

/// An element of the group.
#[derive(Clone, Copy)]
pub struct Element([Fe; 4]);

impl Element {
    /// The identity.
    pub const IDENTITY: Element = Element([Fe::ZERO, Fe::ONE, Fe::ONE, Fe::ZERO]);

    /// The generator of RFC 9496, section 4.
    pub const GENERATOR: Element = Element([
        Fe([1738742601995546, 1146398526822698, 2070867633025821, 562264141797630, 587772402128613]),
        Fe([1801439850948184, 1351079888211148, 450359962737049, 900719925474099, 1801439850948198]),
        Fe::ONE,
        Fe([1841354044333475, 16398895984059, 755974180946558, 900171276175154, 1821297809914039]),
    ]);

    /// Returns whether the two are the same element. Constant-time.
    pub fn equals(&self, other: &Element) -> bool {
        // X Y' = Y X' or Y Y' = X X' (RFC 9496, section 4.3.3).
        let ([x, y, ..], [x2, y2, ..]) = (self.0, other.0);
        let zero = |a: Fe, b: Fe| <Fe as Field>::sub(a, b).zero_mask();
        (zero(x.mul(y2), y.mul(x2)) | zero(y.mul(y2), x.mul(x2))) != 0
    }

    /// Returns the element, or the identity if `keep` is false. Constant-time.
    #[must_use]
    pub fn or_identity(&self, keep: bool) -> Element {
        let (keep, none) = (mask(u64::from(keep)), Element::IDENTITY.0);
        Element(std::array::from_fn(|i| none[i].select(self.0[i], keep)))
    }
}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Element(..)")
    }
}

/// The identity, which is also used to wipe elements.
impl Default for Element {
    fn default() -> Self {
        Element::IDENTITY
    }
}

#[inline(always)]
fn load<F: Field>(elements: &[Element]) -> Extended<F> {
    let mut limbs = [[Fe::ZERO; MAX_LANES]; 4];
    for (lane, element) in elements.iter().enumerate() {
        for (limbs, coordinate) in limbs.iter_mut().zip(element.0) {
            limbs[lane] = coordinate;
        }
    }
    let n = elements.len();
    Extended {
        x: F::load(&limbs[0][..n]),
        y: F::load(&limbs[1][..n]),
        z: F::load(&limbs[2][..n]),
        t: F::load(&limbs[3][..n]),
    }
}

#[inline(always)]
fn store<F: Field>(p: Extended<F>, elements: &mut [Element]) {
    let mut limbs = [[Fe::ZERO; MAX_LANES]; 4];
    p.x.store(&mut limbs[0]);
    p.y.store(&mut limbs[1]);
    p.z.store(&mut limbs[2]);
    p.t.store(&mut limbs[3]);
    for (lane, element) in elements.iter_mut().enumerate() {
        *element = Element(limbs.map(|coordinate| coordinate[lane]));
    }
}

/// Decodes each element. An invalid encoding is decoded to the identity.
///
/// # Errors
///
/// The position of the first invalid encoding.
///
/// # Panics
///
/// If the slices differ in length.
pub fn decode(bytes: &[[u8; 32]], out: &mut [Element]) -> Result<(), usize> {
    decode_with(Backend::best(BACKENDS), bytes, out).1
}

/// [`decode`] on the requested path; also returns the path that ran.
///
/// # Panics
///
/// Panics as [`decode`] does.
pub fn decode_with(
    backend: Backend,
    bytes: &[[u8; 32]],
    out: &mut [Element],
) -> (Backend, Result<(), usize>) {
    struct Decode<'a>(&'a [[u8; 32]], &'a mut [Element], &'a mut u64);
    impl Kernel for Decode<'_> {
        #[inline(always)]
        fn run<F: Field>(self) {
            // Two vectors side by side, because a root is a long chain of squarings.
            let lanes = Pair::<F>::LANES;
            let chunks = self.0.chunks(lanes).zip(self.1.chunks_mut(lanes));
            for (chunk, (bytes, out)) in chunks.enumerate() {
                let mut s = [Fe::ZERO; MAX_LANES];
                for (s, bytes) in s.iter_mut().zip(bytes) {
                    *s = Fe::from_bytes(bytes);
                }
                let (valid, p) = encoding::decode(Pair::<F>::load(&s));
                store(p, out);
                for (lane, ((bytes, valid), out)) in bytes.iter().zip(valid).zip(out).enumerate() {
                    let valid = (valid != 0) & crate::curve25519::is_canonical(bytes) & (bytes[0] & 1 == 0);
                    *out = out.or_identity(valid);
                    let at = (chunk * lanes + lane) as u64 | mask(u64::from(valid));
                    *self.2 = at.min(*self.2);
                }
            }
        }
    }
    assert_eq!(bytes.len(), out.len(), "decode: as many outputs as inputs");
    let mut first = u64::MAX;
    let ran = run_on(backend, Decode(bytes, out, &mut first));
    (ran, if first == u64::MAX { Ok(()) } else { Err(first as usize) })
}

/// Writes the canonical encoding of each element.
///
/// # Panics
///
/// If the slices differ in length.
pub fn encode(elements: &[Element], out: &mut [[u8; 32]]) {
    encode_with(Backend::best(BACKENDS), elements, out);
}

/// [`encode`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`encode`] does.
pub fn encode_with(backend: Backend, elements: &[Element], out: &mut [[u8; 32]]) -> Backend {
    struct Encode<'a>(&'a [Element], &'a mut [[u8; 32]]);
    impl Kernel for Encode<'_> {
        #[inline(always)]
        fn run<F: Field>(self) {
            let lanes = Pair::<F>::LANES;
            for (elements, out) in self.0.chunks(lanes).zip(self.1.chunks_mut(lanes)) {
                let mut s = [Fe::ZERO; MAX_LANES];
                encoding::encode(load::<Pair<F>>(elements)).store(&mut s);
                for (out, s) in out.iter_mut().zip(s) {
                    *out = s.to_bytes();
                }
            }
        }
    }
    assert_eq!(elements.len(), out.len(), "encode: as many outputs as inputs");
    run_on(backend, Encode(elements, out))
}

/// Maps each string of 64 uniform bytes to a uniform element: the element derivation function of RFC 9496, section 4.3.4.
///
/// # Panics
///
/// If the slices differ in length.
pub fn map(uniform: &[[u8; 64]], out: &mut [Element]) {
    map_with(Backend::best(BACKENDS), uniform, out);
}

/// [`map`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`map`] does.
pub fn map_with(backend: Backend, uniform: &[[u8; 64]], out: &mut [Element]) -> Backend {
    struct Map<'a>(&'a [[u8; 64]], &'a mut [Element]);
    impl Kernel for Map<'_> {
        #[inline(always)]
        fn run<F: Field>(self) {
            for (uniform, out) in self.0.chunks(F::LANES).zip(self.1.chunks_mut(F::LANES)) {
                // Copied to memory, so that no gather is needed.
                let mut halves = [[[0; 32]; MAX_LANES]; 2];
                for (lane, uniform) in uniform.iter().enumerate() {
                    for (half, bytes) in halves.iter_mut().zip(uniform.as_chunks::<32>().0) {
                        half[lane] = *bytes;
                        half[lane][31] &= 0x7f;
                    }
                }
                // One map after the other, in a loop, so that the compiler makes a single copy of it.
                let mut sum = Extended::<F>::identity();
                for half in &black_box(halves) {
                    // One at a time, as the compiler may otherwise gather the words of all elements from a vector of
                    // their addresses.
                    let t = half.each_ref().map(|bytes| black_box(Fe::from_bytes(bytes)));
                    sum = sum.plus(&encoding::map(F::load(&t)).cached());
                }
                store(sum, out);
            }
        }
    }
    assert_eq!(uniform.len(), out.len(), "map: as many outputs as inputs");
    run_on(backend, Map(uniform, out))
}

/// Maps each number to an element: the map of RFC 9496, section 4.3.4, of which [`map`] adds up two.
///
/// Numbers are little-endian and taken modulo p; bit 255 is ignored. The elements are not uniform: up to eight numbers
/// and their negatives map to one.
///
/// # Panics
///
/// If the slices differ in length.
pub fn map_one(numbers: &[[u8; 32]], out: &mut [Element]) {
    map_one_with(Backend::best(BACKENDS), numbers, out);
}

/// [`map_one`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`map_one`] does.
pub fn map_one_with(backend: Backend, numbers: &[[u8; 32]], out: &mut [Element]) -> Backend {
    struct MapOne<'a>(&'a [[u8; 32]], &'a mut [Element]);
    impl Kernel for MapOne<'_> {
        #[inline(always)]
        fn run<F: Field>(self) {
            let lanes = Pair::<F>::LANES;
            for (numbers, out) in self.0.chunks(lanes).zip(self.1.chunks_mut(lanes)) {
                let mut t = [Fe::ZERO; MAX_LANES];
                for (t, number) in t.iter_mut().zip(numbers) {
                    let mut number = *number;
                    number[31] &= 0x7f;
                    *t = Fe::from_bytes(&number);
                }
                store(encoding::map(Pair::<F>::load(&t)), out);
            }
        }
    }
    assert_eq!(numbers.len(), out.len(), "map_one: as many outputs as inputs");
    run_on(backend, MapOne(numbers, out))
}

/// The result of [`unmap`] for an element: numbers, or [`NONE`].
pub type Preimages = [[u8; 32]; 8];

/// The placeholder for a preimage that does not exist.
pub const NONE: [u8; 32] = [0xff; 32];

/// Finds the numbers that [`map_one`] maps to each element: all that are canonical and not negative, that is, below p
/// and even, at any of the eight positions. The other positions are [`NONE`]. Unless a number is 0, p minus it maps to
/// the same element.
///
/// For the identity all positions are [`NONE`], although 0 and a few more numbers map to it.
///
/// # Panics
///
/// If the slices differ in length.
pub fn unmap(elements: &[Element], out: &mut [Preimages]) {
    unmap_with(Backend::best(BACKENDS), elements, out);
}

/// [`unmap`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`unmap`] does.
pub fn unmap_with(backend: Backend, elements: &[Element], out: &mut [Preimages]) -> Backend {
    struct Unmap<'a>(&'a [Element], &'a mut [Preimages]);
    impl Kernel for Unmap<'_> {
        #[inline(always)]
        fn run<F: Field>(self) {
            for (elements, out) in self.0.chunks(F::LANES).zip(self.1.chunks_mut(F::LANES)) {
                let pairs = encoding::pairs(load::<F>(elements));
                // One after the other, in a loop, so that the compiler makes a single copy.
                for (j, pair) in black_box(&pairs[..]).iter().enumerate() {
                    let (exists, t) = encoding::preimages(*pair);
                    let mut numbers = [Fe::ZERO; MAX_LANES];
                    t.store(&mut numbers);
                    for (lane, out) in out.iter_mut().enumerate() {
                        for twin in 0..2 {
                            let at = twin * F::LANES + lane;
                            let missing = !exists[at].to_le_bytes()[0];
                            out[2 * j + twin] = numbers[at].to_bytes().map(|byte| byte | missing);
                        }
                    }
                }
            }
        }
    }
    assert_eq!(elements.len(), out.len(), "unmap: as many outputs as inputs");
    run_on(backend, Unmap(elements, out))
}

/// Adds each of `others` to its element.
///
/// # Panics
///
/// If the slices differ in length.
pub fn add(elements: &mut [Element], others: &[Element]) {
    combine_with(Backend::best(BACKENDS), elements, others, 0);
}

/// Subtracts each of `others` from its element.
///
/// # Panics
///
/// If the slices differ in length.
pub fn subtract(elements: &mut [Element], others: &[Element]) {
    combine_with(Backend::best(BACKENDS), elements, others, u64::MAX);
}

/// Adds on the requested path, or subtracts if `negate` is all ones; returns the path that ran.
fn combine_with(backend: Backend, elements: &mut [Element], others: &[Element], negate: u64) -> Backend {
    struct Combine<'a>(&'a mut [Element], &'a [Element], u64);
    impl Kernel for Combine<'_> {
        #[inline(always)]
        fn run<F: Field>(self) {
            for (elements, others) in self.0.chunks_mut(F::LANES).zip(self.1.chunks(F::LANES)) {
                let other = load::<F>(others).cached().negate(F::mask_all(self.2));
                store(load::<F>(elements).plus(&other), elements);
            }
        }
    }
    assert_eq!(elements.len(), others.len(), "as many elements on both sides");
    run_on(backend, Combine(elements, others, negate))
}

/// Multiplies each element by its scalar.
///
/// # Panics
///
/// If the slices differ in length.
pub fn multiply(elements: &mut [Element], scalars: &[[u8; 32]]) {
    multiply_with(Backend::best(BACKENDS), elements, scalars);
}

/// [`multiply`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`multiply`] does.
pub fn multiply_with(backend: Backend, elements: &mut [Element], scalars: &[[u8; 32]]) -> Backend {
    assert_eq!(elements.len(), scalars.len(), "multiply: as many scalars as elements");
    run_on(backend, Multiply(elements, scalars))
}

/// Multiplies each element by the same scalar.
pub fn multiply_all(elements: &mut [Element], scalar: &[u8; 32]) {
    multiply_all_with(Backend::best(BACKENDS), elements, scalar);
}

/// [`multiply_all`] on the requested path; returns the path that ran.
pub fn multiply_all_with(backend: Backend, elements: &mut [Element], scalar: &[u8; 32]) -> Backend {
    run_on(backend, Multiply(elements, core::slice::from_ref(scalar)))
}

/// Multiplication by a scalar per element, or by one for all.
struct Multiply<'a>(&'a mut [Element], &'a [[u8; 32]]);

impl Kernel for Multiply<'_> {
    #[inline(always)]
    fn run<F: Field>(self) {
        let mut scalars = self.1.iter().cycle();
        for elements in self.0.chunks_mut(F::LANES) {
            let mut digits = Zeroizing::new([[0; 64]; edwards::LANES]);
            for (digits, scalar) in digits.iter_mut().zip((&mut scalars).take(elements.len())) {
                edwards::digits(scalar, digits);
            }
            store(edwards::multiply(load::<F>(elements), &*digits), elements);
        }
    }
}
