//! Tables of numbers from which a secret selects one, and powers of one base in such tables.

use super::aws_lc::{Modulus, Number, Scratch};
use super::words::Words;
#[cfg(target_arch = "x86_64")]
use super::x86;
use crate::Backend;
use std::hint::black_box;
use zeroize::Zeroizing;

/// The paths of the selection, best first.
pub(super) const BACKENDS: &[Backend] = &[Backend::Avx512, Backend::Avx2, Backend::Portable];

/// Maximum number of numbers in a row.
const ENTRIES: usize = 1 << 7;

/// Number of numbers that are selected at once.
const GROUP: usize = 4;

/// The part of a number that is selected at once.
pub(super) type Column = [u32; 16];
const COLUMN: usize = size_of::<Column>();

/// Numbers of one width, at most [`ENTRIES`], wiped on drop.
pub(super) struct Row {
    width: usize,
    length: usize,
    /// The first columns of all numbers, then the second columns, so that a selection reads memory in order. The last
    /// columns end with zeros.
    columns: Zeroizing<Vec<Column>>,
}

impl Row {
    /// Returns a row of `length` zeros, of `width` bytes each.
    pub(super) fn new(length: usize, width: usize) -> Row {
        assert!(length <= ENTRIES, "a row is no longer");
        let columns = Zeroizing::new(vec![Column::default(); length * width.div_ceil(COLUMN)]);
        Row { width, length, columns }
    }

    /// Overwrites the number at a position, as far as `number` reaches. Its length is a multiple of 4 bytes.
    pub(super) fn set(&mut self, place: usize, number: &[u8]) {
        let mut at = place;
        for bytes in number.chunks(COLUMN) {
            let words = self.columns[at].iter_mut().zip(bytes.as_chunks().0);
            words.for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
            at += self.length;
        }
    }

    /// Writes the number at a public position to `out`.
    pub(super) fn get(&self, place: usize, out: &mut [u8]) {
        let mut at = place;
        for bytes in out.chunks_mut(COLUMN) {
            let words = bytes.as_chunks_mut().0.iter_mut().zip(&self.columns[at]);
            words.for_each(|(bytes, word)| *bytes = word.to_le_bytes());
            at += self.length;
        }
    }

    /// Writes the numbers at secret positions, concatenated, to `out`. Reads all numbers of the row, whatever the positions.
    pub(super) fn choose(&self, places: &[usize], masks: &mut Masks, out: &mut [u8]) {
        self.choose_with(Backend::best(BACKENDS), places, masks, out);
    }

    /// [`Row::choose`] on the requested path; returns the path that ran.
    ///
    /// Works column by column, so that a column of all numbers stays in the cache.
    pub(super) fn choose_with(
        &self,
        backend: Backend,
        places: &[usize],
        masks: &mut Masks,
        out: &mut [u8],
    ) -> Backend {
        let runs = BACKENDS.contains(&backend) && backend.is_available();
        let backend = if runs { backend } else { Backend::Portable };
        let masks = masks.of(places);
        let (mut columns, mut start) = (&self.columns[..], 0);
        while let Some(column) = columns.split_off(..self.length) {
            let mut at = start;
            for masks in masks {
                let mut sums = Sums::default();
                match backend {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: is_available has just confirmed that the processor supports AVX-512.
                    Backend::Avx512 => unsafe { x86::sum_avx512(column, masks, &mut sums) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: is_available has just confirmed that the processor supports AVX2.
                    Backend::Avx2 => unsafe { x86::sum_avx2(column, masks, &mut sums) },
                    _ => sum(column, masks, &mut sums),
                }
                for sum in &sums {
                    // The last group may have fewer positions.
                    let end = at + COLUMN.min(self.width - start);
                    let Some(bytes) = out.get_mut(at..end) else { break };
                    let words = bytes.as_chunks_mut().0.iter_mut().zip(sum);
                    words.for_each(|(bytes, word)| *bytes = word.to_le_bytes());
                    at += self.width;
                }
            }
            start += COLUMN;
        }
        backend
    }

    /// Sets the numbers to the powers of a base, from exponent 0 on, and the base to the next power. `one` and the base
    /// are in Montgomery's representation.
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

/// For each number of a row, a mask for each position of a group: all ones if it selects the number.
pub(super) type Group = [[u32; GROUP]; ENTRIES];

/// The selected numbers of a group of positions, in one column.
pub(super) type Sums = [Column; GROUP];

/// Masks for groups of positions, whose memory is reused for each selection.
#[derive(Default)]
pub(super) struct Masks(Zeroizing<Vec<Group>>);

impl Masks {
    /// Returns masks for the positions in groups, of which the last is padded with position 0.
    fn of(&mut self, places: &[usize]) -> &[Group] {
        self.0.clear();
        for places in places.chunks(GROUP) {
            let mut group = [0; GROUP];
            group.iter_mut().zip(places).for_each(|(out, place)| *out = *place as u32);
            let mut masks = [[0; GROUP]; ENTRIES];
            for (masks, at) in masks.iter_mut().zip(0..) {
                // Only for 0 does subtracting 1 set the top bit.
                *masks = group.map(|place| ((at ^ place).wrapping_sub(1) >> 31).wrapping_neg());
            }
            self.0.push(masks);
        }
        // Prevents the compiler from deriving the positions from the masks.
        black_box(&self.0)
    }
}

/// Adds the masked parts to the sums.
fn sum(column: &[Column], masks: &Group, sums: &mut Sums) {
    for (part, masks) in column.iter().zip(masks) {
        for (sum, mask) in sums.iter_mut().zip(masks) {
            sum.iter_mut().zip(part).for_each(|(sum, word)| *sum |= word & mask);
        }
    }
}

/// Returns the digit of `BITS` bits at a position, counted from the least significant.
pub(super) fn digit<const BITS: usize>(exponent: &[u64], place: usize) -> usize {
    let (word, shift) = (place * BITS / 64, place * BITS % 64);
    let above = exponent.get(word + 1).copied().unwrap_or(0);
    let both = u128::from(exponent[word]) | u128::from(above) << 64;
    (both >> shift) as usize & ((1 << BITS) - 1)
}

/// Returns the number of digits of `BITS` bits in an exponent of `bits` bits.
pub(super) const fn digits<const BITS: usize>(bits: usize) -> usize {
    bits.div_ceil(BITS)
}

/// Powers of one base for fixed windows of an exponent. If the exponent has the digits d_0, d_1, ... of `BITS` bits,
/// its power is the product of base^(d_i 2^(BITS i)).
pub(super) struct Table {
    width: usize,
    rows: Vec<Row>,
}

impl Table {
    /// Length of a window in bits.
    const BITS: usize = 7;

    /// Returns the table for exponents of this many bits. `one` and the base are in Montgomery's representation.
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
    /// representation, either before or after.
    ///
    /// Processes all numbers window by window, so that the powers of a window stay in the cache.
    pub(super) fn multiply(
        &self,
        modulus: &Modulus,
        numbers: &mut [Number],
        exponents: &[Words],
        scratch: &mut Scratch,
    ) {
        let (mut factor, mut masks) = (Number::zero(), Masks::default());
        let mut powers = Zeroizing::new(vec![0; numbers.len() * self.width]);
        let mut chosen = Zeroizing::new(vec![0; exponents.len()]);
        for (place, row) in self.rows.iter().enumerate() {
            for (here, exponent) in chosen.iter_mut().zip(exponents) {
                *here = digit::<{ Table::BITS }>(exponent, place);
            }
            row.choose(&chosen, &mut masks, &mut powers);
            for (i, number) in numbers.iter_mut().enumerate() {
                factor.set(&powers[i * self.width..][..self.width]);
                modulus.multiply(number, &factor, scratch);
            }
        }
    }
}
