//! Powers of one number, in Montgomery's representation, and the choice of one of them by a secret.

use super::aws_lc::{Modulus, Number, Scratch};
use super::words::Words;
use std::hint::black_box;
use zeroize::Zeroizing;

/// The powers of a number with the exponents 0 to 2^bits - 1.
pub(super) struct Powers {
    width: usize,
    bits: usize,
    powers: Zeroizing<Vec<u8>>,
}

impl Powers {
    /// Room for as many powers, each as wide as the modulus is in bytes.
    pub(super) fn new(width: usize, bits: usize) -> Powers {
        Powers { width, bits, powers: Zeroizing::new(vec![0; width << bits]) }
    }

    /// Computes the powers of a base. `one` and the base are in Montgomery's representation; the base is replaced by
    /// its power with the exponent 2^bits.
    pub(super) fn fill(&mut self, modulus: &Modulus, one: &[u8], base: &mut Number, scratch: &mut Scratch) {
        let (mut power, width) = (Number::new(one), self.width);
        for i in 0..1 << self.bits {
            power.get(&mut self.powers[i * width..][..width]);
            modulus.multiply(&mut power, base, scratch);
        }
        std::mem::swap(base, &mut power);
    }

    /// The power with a secret exponent. Reads all of them.
    pub(super) fn choose(&self, exponent: usize, out: &mut [u8]) {
        choose(&self.powers, exponent, out)
    }

    /// The power with an exponent that everyone knows.
    pub(super) fn power(&self, exponent: usize) -> &[u8] {
        &self.powers[exponent * self.width..][..self.width]
    }
}

/// The entry of a table at a secret place. Reads all of them.
pub(super) fn choose(table: &[u8], place: usize, out: &mut [u8]) {
    out.fill(0);
    let (mut rest, mut at) = (table, 0u64);
    while let Some(entry) = rest.split_off(..out.len()) {
        // All ones where the difference is 0, which alone has a top bit one below it.
        let difference = at ^ place as u64;
        let mask = black_box((difference.wrapping_sub(1) >> 63).wrapping_neg()) as u8;
        out.iter_mut().zip(entry).for_each(|(out, byte)| *out |= byte & mask);
        at += 1;
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
pub(super) struct Table(Vec<Powers>);

impl Table {
    /// Bits of a window.
    const BITS: usize = 6;

    /// For exponents of this many bits. `one` and the base are in Montgomery's representation.
    pub(super) fn new(
        modulus: &Modulus,
        one: &[u8],
        base: &mut Number,
        bits: usize,
        scratch: &mut Scratch,
    ) -> Table {
        let mut windows = Vec::new();
        for _ in 0..digits::<{ Table::BITS }>(bits) {
            let mut powers = Powers::new(one.len(), Table::BITS);
            powers.fill(modulus, one, base, scratch);
            windows.push(powers);
        }
        Table(windows)
    }

    /// Multiplies each number by the power of the base with its exponent. The numbers are not in Montgomery's
    /// representation, before and after.
    ///
    /// Goes over all numbers window by window, so that the powers of a window stay in the cache.
    pub(super) fn multiply(&self, modulus: &Modulus, numbers: &mut [Number], exponents: &[Words]) {
        let (mut scratch, mut factor) = (Scratch::new(), Number::zero());
        for (place, window) in self.0.iter().enumerate() {
            let mut power = Zeroizing::new(vec![0; window.width]);
            for (number, exponent) in numbers.iter_mut().zip(exponents) {
                window.choose(digit::<{ Table::BITS }>(exponent, place), &mut power);
                factor.set(&power);
                modulus.multiply(number, &factor, &mut scratch);
            }
        }
    }
}
