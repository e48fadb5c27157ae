//! Encoding of rows of bytes as elements of ristretto255, and decoding.
//!
//! A row of a public width is cut into pieces of [`PIECE`] bytes, the last one padded with zeros. A number made of each
//! piece and its checksum is mapped to an element with the single map of RFC 9496. So equal rows have equal elements,
//! and all rows of a width have the same number of elements ([`points`]). Decoding finds all even numbers below p that map
//! to an element other than the identity, at most eight, and takes the one with the correct checksum. A row of identities is
//! *empty*; no piece maps to the identity.
//!
//! The number, little-endian, consists of ten bytes of checksum, of which bit 0 is 0, the piece, and six bits of
//! checksum. So it is even and below 2^254, and thus one of the numbers that decoding finds.
//!
//! Security: none. A party that has an element can decode it, or test guesses of its piece; elements are sent
//! encrypted. The pieces of a row are not bound to each other. All rows have the length of the longest; the caller
//! encodes true lengths inside. The encoding time does not depend on the rows, nor on which are empty. Neither does the
//! decoding time, until [`DecodedRows::get`] distinguishes them.
//!
//! Error: an element is decoded wrongly if another of its at most eight numbers has the right checksum too. The
//! probability is 2^-85 for each of them, with the checksum a random oracle ([`error_exponent`]). In that case neither
//! number is taken. Finding two pieces with the same element takes about 2^83 trials.
//!
//! Cost: encoding an element takes a square root and a hash, and decoding it nine square roots and eight hashes. Memory:
//! 32 bytes per element while it is encoded, and the element; 23 bytes once it is decoded; and 320 KiB per thread.

use super::ristretto255::{BATCH, Element, map_one};
use crate::hash::Domain;
use crate::params::ceil_log2;
use crate::secret::Secrets;
use rayon::prelude::*;
use std::ops::Range;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use veilset_kernels::ristretto255::{Preimages, unmap};

/// Number of bytes of a row that an element holds.
pub const PIECE: usize = 21;

/// Length of the checksum in bits.
pub const CHECKSUM: u32 = 85;

/// The maximum number of other even numbers below p that map to the same element.
const OTHERS: usize = 7;

type Number = [u8; 32];

/// The position of the piece in a number.
const PLACE: Range<usize> = 10..10 + PIECE;

/// Returns the number of elements of a row of `width` bytes, at least one.
pub const fn points(width: usize) -> usize {
    if width > PIECE { width.div_ceil(PIECE) } else { 1 }
}

/// Returns an e such that the probability that any of `elements` elements is decoded wrongly is at most 2^-e.
pub fn error_exponent(elements: usize) -> u32 {
    CHECKSUM.saturating_sub(ceil_log2(OTHERS.saturating_mul(elements)))
}

fn domain() -> Domain {
    // Without a session: the checksum hides nothing, and the encryption already separates sessions.
    Domain::without_session("a piece of a row as an element of ristretto255, checksum")
}

/// Sets the checksum of each number's piece.
fn seal(domain: &Domain, numbers: &mut [Number]) {
    let mut blocks = Secrets::<[[u8; 16]; 4]>::zeros(numbers.len());
    for (block, number) in blocks.iter_mut().zip(numbers.iter()) {
        block.as_flattened_mut()[..PIECE].copy_from_slice(&number[PLACE]);
    }
    let mut sums = Secrets::<Number>::zeros(numbers.len());
    domain.hash_blocks(PIECE as u8, blocks.as_flattened().as_flattened().as_chunks().0, &mut sums);
    for (number, sum) in numbers.iter_mut().zip(sums.iter()) {
        number[..PLACE.start].copy_from_slice(&sum[..PLACE.start]);
        number[PLACE.end..].copy_from_slice(&sum[PLACE.end..]);
        number[0] &= 0xfe;
        number[31] &= 0x3f;
    }
}

/// Encodes rows of `width` bytes, concatenated; rows that are not `full` are encoded as empty, and their bytes ignored.
///
/// # Panics
/// If the number of rows differs from the number of flags, which is an error of the caller.
pub fn encode(rows: &[u8], width: usize, full: &[bool]) -> Secrets<Element> {
    assert_eq!(rows.len(), width * full.len(), "encode: rows of this width");
    let (k, domain) = (points(width), domain());
    let mut numbers = Secrets::<Number>::zeros(k * full.len());
    numbers.par_chunks_mut(k).enumerate().for_each(|(i, numbers)| {
        let pieces = rows[width * i..][..width].chunks(PIECE);
        let each = numbers.iter_mut().zip(pieces);
        each.for_each(|(number, piece)| number[PLACE][..piece.len()].copy_from_slice(piece));
    });
    numbers.par_chunks_mut(BATCH).for_each(|numbers| seal(&domain, numbers));
    let mut elements = map_one(&numbers);
    let rows = elements.par_chunks_mut(k).zip(full);
    rows.for_each(|(row, full)| row.iter_mut().for_each(|element| *element = element.or_identity(*full)));
    elements
}

/// A decoded row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row<'a> {
    /// The empty row.
    Empty,
    /// A full row of the common width.
    Bytes(&'a [u8]),
}

/// Decoded rows, accessed with [`DecodedRows::get`].
pub struct DecodedRows {
    width: usize,
    pieces: Secrets<[u8; PIECE]>,
    kinds: Secrets<Kind>,
}

/// Whether an element is the identity, and whether it is a piece. One that is neither belongs to no row.
#[derive(Clone, Copy, Default)]
struct Kind {
    identity: bool,
    piece: bool,
}

/// Decodes elements to rows of `width` bytes.
///
/// # Panics
/// If the elements do not form whole rows, which is an error of the caller.
pub fn decode(elements: &[Element], width: usize) -> DecodedRows {
    assert!(elements.len().is_multiple_of(points(width)), "decode: whole rows");
    let (n, domain) = (elements.len(), domain());
    let mut rows = DecodedRows { width, pieces: Secrets::zeros(n), kinds: Secrets::zeros(n) };
    let found = rows.pieces.par_chunks_mut(BATCH).zip(rows.kinds.par_chunks_mut(BATCH));
    let batches = elements.par_chunks(BATCH).zip(found);
    batches.for_each(|(elements, (pieces, kinds))| open(&domain, elements, pieces, kinds));
    rows
}

fn open(domain: &Domain, elements: &[Element], pieces: &mut [[u8; PIECE]], kinds: &mut [Kind]) {
    let mut numbers = Secrets::<Preimages>::zeros(elements.len());
    unmap(elements, &mut numbers);
    let mut sealed = numbers.clone();
    seal(domain, sealed.as_flattened_mut());
    for (i, (numbers, sealed)) in numbers.iter().zip(sealed.iter()).enumerate() {
        let mut fitting = 0;
        for (number, sealed) in numbers.iter().zip(sealed) {
            let fits = number.ct_eq(sealed);
            for (to, byte) in pieces[i].iter_mut().zip(&number[PLACE]) {
                to.conditional_assign(byte, fits);
            }
            fitting += fits.unwrap_u8();
        }
        kinds[i] = Kind { identity: elements[i].equals(&Element::IDENTITY), piece: fitting == 1 };
    }
}

impl DecodedRows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.kinds.len() / points(self.width)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns row `i`, below [`DecodedRows::len`]; `None` if its elements do not encode a row.
    pub fn get(&self, i: usize) -> Option<Row<'_>> {
        let k = points(self.width);
        let (kinds, bytes) = (&self.kinds[k * i..][..k], self.pieces[k * i..][..k].as_flattened());
        let (row, padding) = bytes.split_at(self.width);
        if kinds.iter().all(|kind| kind.identity) {
            return Some(Row::Empty);
        }
        let whole = kinds.iter().all(|kind| kind.piece) && padding.iter().all(|byte| *byte == 0);
        whole.then_some(Row::Bytes(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::ristretto255;
    use crate::rng::Prng;
    use crate::testing::every_bit_is_random;
    use std::collections::HashSet;

    fn random(n: usize) -> Vec<u8> {
        let mut bytes = vec![0; n];
        Prng::from_seed(&[9; 32]).fill(&mut bytes);
        bytes
    }

    /// The sealed number of a piece.
    fn number(piece: &[u8]) -> Number {
        let mut number = [0; 32];
        number[PLACE][..piece.len()].copy_from_slice(piece);
        seal(&domain(), std::slice::from_mut(&mut number));
        number
    }

    #[test]
    fn rows_come_back_full_and_empty() {
        for width in [0, 1, 20, 21, 22, 42, 43, 100] {
            for n in [0, 1, 7, BATCH / points(width), BATCH + 1] {
                let (bytes, full) = (random(n * width), random(n));
                let full: Vec<bool> = full.iter().map(|byte| byte % 3 > 0).collect();
                let elements = encode(&bytes, width, &full);
                assert_eq!(elements.len(), n * points(width));
                let rows = decode(&elements, width);
                assert_eq!((rows.len(), rows.is_empty()), (n, n == 0));
                for (i, full) in full.iter().enumerate() {
                    let row = &bytes[width * i..][..width];
                    let expected = if *full { Row::Bytes(row) } else { Row::Empty };
                    assert_eq!(rows.get(i), Some(expected), "{width} {n} {i}");
                }
            }
        }
        assert_eq!([0, 1, 21, 22, 42, 43, 64].map(points), [1, 1, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn equal_rows_have_equal_elements_and_others_do_not() {
        let rows = random(100 * PIECE);
        let [once, again] = [0, 1].map(|_| ristretto255::encode(&encode(&rows, PIECE, &[true; 100])));
        assert_eq!(*once, *again);
        assert_eq!(once.iter().collect::<HashSet<_>>().len(), 100);
        // A change of any one bit gives another element.
        let first = &once[0];
        for bit in 0..8 * PIECE {
            let mut row = rows[..PIECE].to_vec();
            row[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(ristretto255::encode(&encode(&row, PIECE, &[true]))[0], *first);
        }
    }

    #[test]
    fn a_number_is_the_piece_with_a_checksum_of_full_width() {
        let pieces: Vec<[u8; 8]> = (0..400u64).map(u64::to_le_bytes).collect();
        let numbers: Vec<Number> = pieces.iter().map(|piece| number(piece)).collect();
        for (number, piece) in numbers.iter().zip(&pieces) {
            assert!(number[PLACE][..8] == *piece && number[PLACE][8..].iter().all(|byte| *byte == 0));
            assert!(number[0] & 1 == 0 && number[31] < 1 << 6);
        }
        // The checksum alone, from its lowest bit on.
        let sums = numbers.iter().map(|number| {
            let low =
                number[..PLACE.start].iter().rev().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
            ((low >> 1) | u128::from(number[31]) << 79).to_le_bytes()
        });
        every_bit_is_random(&sums.collect::<Vec<_>>(), CHECKSUM as usize);
    }

    #[test]
    fn every_bit_of_the_checksum_and_of_the_padding_counts() {
        let good = number(b"a piece of 21 bytes..");
        let (kept, row) = (decode(&map_one(&[good]), PIECE), b"a piece of 21 bytes..");
        assert_eq!(kept.get(0), Some(Row::Bytes(row)));
        for bit in (1..8 * PLACE.start).chain(8 * PLACE.end..8 * PLACE.end + 6) {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&map_one(&[bad]), PIECE).get(0), None, "bit {bit}");
        }
        // Decoded as a row of 18 bytes: the last three bytes of the piece are padding.
        for at in 17..PIECE {
            let mut piece = [7; PIECE];
            piece[18..].fill(0);
            piece[at] = 1;
            let rows = decode(&map_one(&[number(&piece)]), 18);
            assert_eq!(rows.get(0).is_some(), at < 18, "{at}");
        }
    }

    #[test]
    fn what_is_no_row_is_none() {
        let uniform: Vec<[u8; 64]> = random(64 * 200).as_chunks().0.to_vec();
        let others = ristretto255::map(&uniform);
        let rows = decode(&others, PIECE);
        assert!((0..200).all(|i| rows.get(i).is_none()));
        // A misplaced piece or identity, at each position of a row.
        let full = encode(&random(60), 60, &[true]);
        for at in 0..3 {
            for wrong in [Element::IDENTITY, others[0]] {
                let mut row = full.to_vec();
                row[at] = wrong;
                assert_eq!(decode(&row, 60).get(0), None);
                let mut row = vec![wrong; 3];
                row[at] = full[at];
                assert_eq!(decode(&row, 60).get(0), None);
            }
        }
    }

    /// All even numbers below p that map to the identity, as a test of the kernel finds them; the number of a piece is even.
    #[test]
    fn no_piece_becomes_the_identity() {
        let all = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "068c5b499d860a72cba9a67991e93e203e07f2cecac35ff78ba286490a9d647f",
            "2a6382d98d9b4fe0526bf32f2e36b1c6fb594edaadaa30f35a29566c59adfe4c",
            "40256ac5e4c73af6057c6d5120f90c4362ab4ad9015bc365598daca048bac400",
            "a2ce3011a78ef573098dfffa7c6319a2973184a23f8c7e4fb28a95abee32615f",
            "a81b5c4acb2a3075aa6dea0e2da9bccd156eeb739954347597eb7bf45855b305",
            "bced0d08ab13994b901f939d3d6f164d7d1f1b7860d5ccdbca27c4b705f23d02",
        ];
        for text in all {
            let t: Number = std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap());
            assert!(map_one(&[t])[0].equals(&Element::IDENTITY));
            assert_ne!(number(&t[PLACE]), t);
        }
    }

    #[test]
    fn the_exponent_covers_all_other_numbers_of_all_elements() {
        for elements in [1, 2, 1000, 1 << 20, (1 << 20) + 1, 1 << 32] {
            // log2(7 * elements * 2^-85).
            let log2 = (7.0 * elements as f64).log2() - 85.0;
            let e = f64::from(error_exponent(elements));
            assert!(log2 <= -e && -e < log2 + 1.0, "{elements}");
        }
        assert_eq!((error_exponent(0), error_exponent(1 << 32), error_exponent(usize::MAX)), (85, 50, 21));
    }
}
