//! Numbers of which one is chosen by a secret, and powers of one base in such tables.

use super::aws_lc::{Modulus, Number, Scratch};
use super::words::Words;
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::Backend;
use std::hint::black_box;
use zeroize::Zeroizing;

/// The paths of the choice, best first.
pub(super) const BACKENDS: &[Backend] = &[Backend::Avx512, Backend::Avx2, Backend::Portable];

/// The most numbers of a row.
const ENTRIES: usize = 1 << 7;

/// Numbers that are chosen at once.
const GROUP: usize = 4;

/// As much of a number as is chosen at once.
pub(super) type Column = [u32; 16];
const COLUMN: usize = size_of::<Column>();

/// Numbers of one width, at most [`ENTRIES`]. Wiped when it is dropped.
pub(super) struct Row {
    width: usize,
    length: usize,
    /// The first columns of all numbers, then the second, so that a choice reads memory in order. The last columns end
    /// with zeros.
    columns: Zeroizing<Vec<Column>>,
}

impl Row {
    /// As many zeros, of as many bytes each.
    pub(super) fn new(length: usize, width: usize) -> Row {
        assert!(length <= ENTRIES, "a row is no longer");
        let columns = Zeroizing::new(vec![Column::default(); length * width.div_ceil(COLUMN)]);
        Row { width, length, columns }
    }

    /// Replaces the number at a place.
    pub(super) fn set(&mut self, place: usize, number: &[u8]) {
        let mut at = place;
        for bytes in number.chunks(COLUMN) {
            let words = self.columns[at].iter_mut().zip(bytes.as_chunks().0);
            words.for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
            at += self.length;
        }
    }

    /// Writes the number at a place that everyone may know.
    pub(super) fn get(&self, place: usize, out: &mut [u8]) {
        let mut at = place;
        for bytes in out.chunks_mut(COLUMN) {
            let words = bytes.as_chunks_mut().0.iter_mut().zip(&self.columns[at]);
            words.for_each(|(bytes, word)| *bytes = word.to_le_bytes());
            at += self.length;
        }
    }

    /// Writes the numbers at secret places one after the other. Reads all numbers of the row for each.
    pub(super) fn choose(&self, places: &[usize], out: &mut [u8]) {
        self.choose_with(Backend::best(BACKENDS), places, out);
    }

    /// [`Row::choose`] on the path asked for; returns the path that ran.
    pub(super) fn choose_with(&self, backend: Backend, places: &[usize], out: &mut [u8]) -> Backend {
        let runs = BACKENDS.contains(&backend) && backend.is_available();
        let backend = if runs { backend } else { Backend::Portable };
        let (groups, rest) = places.as_chunks::<GROUP>();
        let (start, end) = out.split_at_mut(groups.len() * GROUP * self.width);
        self.choose_groups(backend, groups, start);
        self.choose_groups(backend, rest.as_chunks::<1>().0, end);
        backend
    }

    /// Column by column, so that a column of all numbers stays in the cache. The processor has the path.
    fn choose_groups<const N: usize>(&self, backend: Backend, groups: &[[usize; N]], out: &mut [u8]) {
        let masks: Vec<[[u32; N]; ENTRIES]> = groups.iter().map(|places| masks(places)).collect();
        let masks = black_box(&masks);
        let (mut columns, mut start) = (&self.columns[..], 0);
        while let Some(column) = columns.split_off(..self.length) {
            let mut at = start;
            for masks in masks {
                let mut sums = [Column::default(); N];
                match backend {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: the processor has AVX-512.
                    Backend::Avx512 => unsafe { x86::sum_avx512(column, masks, &mut sums) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: the processor has AVX2.
                    Backend::Avx2 => unsafe { x86::sum_avx2(column, masks, &mut sums) },
                    _ => sum(column, masks, &mut sums),
                }
                for sum in &sums {
                    let bytes = &mut out[at..][..COLUMN.min(self.width - start)];
                    let words = bytes.as_chunks_mut().0.iter_mut().zip(sum);
                    words.for_each(|(bytes, word)| *bytes = word.to_le_bytes());
                    at += self.width;
                }
            }
            start += COLUMN;
        }
    }

    /// Sets the numbers to the powers of a base, from the exponent 0 on, and the base to the next one. `one` and the
    /// base are in Montgomery's representation.
    pub(super) fn set_powers(
        &mut self,
        modulus: &Modulus,
        one: &[u8],
        base: &mut Number,
        scratch: &mut Scratch,
    ) {
        let (mut power, mut bytes) = (Number::new(one), Zeroizing::new(one.to_vec()));
        for place in 0..self.length {
            self.set(place, &bytes);
            modulus.multiply(&mut power, base, scratch);
            power.get(&mut bytes);
        }
        std::mem::swap(base, &mut power);
    }
}

/// For each number of a row, all ones for the places where it is.
fn masks<const N: usize>(places: &[usize; N]) -> [[u32; N]; ENTRIES] {
    let mut masks = [[0; N]; ENTRIES];
    for (masks, at) in masks.iter_mut().zip(0u32..) {
        // 0 alone has a top bit one below it.
        let equal = |place: &usize| ((at ^ *place as u32).wrapping_sub(1) >> 31).wrapping_neg();
        *masks = places.each_ref().map(equal);
    }
    masks
}

/// For each place, the sum of the parts under its masks.
fn sum<const N: usize>(column: &[Column], masks: &[[u32; N]], sums: &mut [Column; N]) {
    for (part, masks) in column.iter().zip(masks) {
        for (sum, mask) in sums.iter_mut().zip(masks) {
            sum.iter_mut().zip(part).for_each(|(sum, word)| *sum |= word & mask);
        }
    }
}

/// The digit of this many bits at a place, the least significant first.
pub(super) fn digit<const BITS: usize>(exponent: &[u64], place: usize) -> usize {
    let (word, shift) = (place * BITS / 64, place * BITS % 64);
    let above = exponent.get(word + 1).copied().unwrap_or(0);
    let both = u128::from(exponent[word]) | u128::from(above) << 64;
    (both >> shift) as usize & ((1 << BITS) - 1)
}

/// How many digits of this many bits an exponent has.
pub(super) const fn digits<const BITS: usize>(bits: usize) -> usize {
    bits.div_ceil(BITS)
}

/// Powers of one base for fixed windows of an exponent: with the digits d_0, d_1, ... of `BITS` bits, its power is the
/// product of base^(d_i 2^(BITS i)).
pub(super) struct Table {
    width: usize,
    rows: Vec<Row>,
}

impl Table {
    /// Bits of a window.
    const BITS: usize = 7;

    /// For exponents of this many bits. `one` and the base are in Montgomery's representation.
    pub(super) fn new(
        modulus: &Modulus,
        one: &[u8],
        base: &mut Number,
        bits: usize,
        scratch: &mut Scratch,
    ) -> Table {
        let mut rows = Vec::new();
        for _ in 0..digits::<{ Table::BITS }>(bits) {
            let mut row = Row::new(1 << Table::BITS, one.len());
            row.set_powers(modulus, one, base, scratch);
            rows.push(row);
        }
        Table { width: one.len(), rows }
    }

    /// Multiplies each number by the power of the base with its exponent. The numbers are not in Montgomery's
    /// representation, before and after.
    ///
    /// Goes over all numbers window by window, so that the powers of a window stay in the cache.
    pub(super) fn multiply(
        &self,
        modulus: &Modulus,
        numbers: &mut [Number],
        exponents: &[Words],
        scratch: &mut Scratch,
    ) {
        let mut factor = Number::zero();
        let mut powers = Zeroizing::new(vec![0; numbers.len() * self.width]);
        let mut chosen = Zeroizing::new(vec![0; exponents.len()]);
        for (place, row) in self.rows.iter().enumerate() {
            for (here, exponent) in chosen.iter_mut().zip(exponents) {
                *here = digit::<{ Table::BITS }>(exponent, place);
            }
            row.choose(&chosen, &mut powers);
            for (i, number) in numbers.iter_mut().enumerate() {
                factor.set(&powers[i * self.width..][..self.width]);
                modulus.multiply(number, &factor, scratch);
            }
        }
    }
}
