//! Secret bits, 64 to a word, so that operations on all strings of a list run word by word.

use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;
use std::ops::{BitAnd, BitXor};

/// The number of bits in a word.
const WORD: usize = 64;

/// Secret bits. Bit 0 is the lowest bit of the first word. The bits of the last word after the end are 0.
#[derive(Debug, Clone)]
pub(super) struct Bits {
    words: Secrets<u64>,
    len: usize,
}

impl Bits {
    /// `len` zeros.
    pub(super) fn zeros(len: usize) -> Bits {
        Bits { words: Secrets::zeros(len.div_ceil(WORD)), len }
    }

    /// Uniform bits.
    pub(super) fn random(len: usize, rng: &mut Prng) -> Bits {
        let mut bytes = Secrets::<[u8; 8]>::zeros(len.div_ceil(WORD));
        rng.fill(bytes.as_flattened_mut());
        Bits::of(bytes.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>(), len)
    }

    /// Bit i is `bit(i)`, computed in parallel.
    pub(super) fn from_fn(len: usize, bit: impl Fn(usize) -> bool + Sync) -> Bits {
        let word = |w: usize| {
            let bits = w * WORD..len.min((w + 1) * WORD);
            bits.rev().fold(0, |word, i| word << 1 | u64::from(bit(i)))
        };
        Bits::of((0..len.div_ceil(WORD)).into_par_iter().map(word).collect::<Vec<_>>(), len)
    }

    /// The first `len` bits of these words.
    fn of(words: Vec<u64>, len: usize) -> Bits {
        let mut words = Secrets::from(words);
        if let (Some(last), 1..) = (words.last_mut(), len % WORD) {
            *last &= (1 << (len % WORD)) - 1;
        }
        Bits { words, len }
    }

    /// The number of bits.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bit `i`.
    pub(super) fn bit(&self, i: usize) -> bool {
        self.words[i / WORD] >> (i % WORD) & 1 == 1
    }

    /// The `len` bits from `at` on.
    pub(super) fn range(&self, at: usize, len: usize) -> Bits {
        let (first, shift) = (at / WORD, at % WORD);
        let word = |i: usize| self.words.get(first + i).copied().unwrap_or_default();
        let shifted = |i: usize| word(i) >> shift | word(i + 1) << 1 << (WORD - 1 - shift);
        Bits::of((0..len.div_ceil(WORD)).map(shifted).collect::<Vec<_>>(), len)
    }

    /// Replaces zeros from `at` on with `bits`, which must fit.
    pub(super) fn put(&mut self, at: usize, bits: &Bits) {
        let (first, shift) = (at / WORD, at % WORD);
        for (i, word) in bits.words.iter().enumerate() {
            self.words[first + i] |= word << shift;
            if let Some(next) = self.words.get_mut(first + i + 1) {
                *next |= word >> 1 >> (WORD - 1 - shift);
            }
        }
    }

    /// These bits, followed by `more`.
    pub(super) fn followed_by(&self, more: &Bits) -> Bits {
        let mut both = Bits::zeros(self.len + more.len);
        both.put(0, self);
        both.put(self.len, more);
        both
    }

    /// The bits as they are sent: eight per byte, with zeros after the end.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes());
        bytes.take(self.len.div_ceil(8)).collect()
    }

    /// The inverse of [`Bits::to_bytes`]; `None` if a bit after the end is set.
    pub(super) fn from_bytes(bytes: &[u8], len: usize) -> Option<Bits> {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let words: Vec<u64> = bytes.chunks(8).map(word).collect();
        let sent = words.last().copied();
        let bits = Bits::of(words, len);
        (bits.words.last().copied() == sent).then_some(bits)
    }

    /// The bits one by one.
    pub(super) fn to_bools(&self) -> Secrets<bool> {
        Secrets::from((0..self.len).map(|i| self.bit(i)).collect::<Vec<_>>())
    }

    fn with(&self, other: &Bits, f: impl Fn(u64, u64) -> u64) -> Bits {
        let words = self.words.iter().zip(other.words.iter()).map(|(a, b)| f(*a, *b));
        Bits { words: Secrets::from(words.collect::<Vec<_>>()), len: self.len }
    }
}

impl BitXor for &Bits {
    type Output = Bits;
    fn bitxor(self, other: Self) -> Bits {
        self.with(other, |a, b| a ^ b)
    }
}

impl BitAnd for &Bits {
    type Output = Bits;
    fn bitand(self, other: Self) -> Bits {
        self.with(other, |a, b| a & b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::every_bit_is_random;

    const LENGTHS: [usize; 8] = [0, 1, 7, 8, 63, 64, 65, 200];

    fn some(len: usize, seed: u8) -> Bits {
        Bits::random(len, &mut Prng::from_seed(&[seed; 32]))
    }

    fn plain(bits: &Bits) -> Vec<bool> {
        // All bits after the end are 0.
        assert!((bits.len..bits.words.len() * WORD).all(|i| !bits.bit(i)));
        bits.to_bools().to_vec()
    }

    #[test]
    fn ranges_and_puts_are_those_of_plain_bits() {
        for len in LENGTHS {
            let bits = some(200, 1);
            for at in [0, 1, 63, 64, 65, 130] {
                let len = len.min(200 - at);
                let range = bits.range(at, len);
                assert_eq!(plain(&range), plain(&bits)[at..at + len], "{at} {len}");
                let mut all = Bits::zeros(200);
                all.put(at, &range);
                let mut expected = vec![false; 200];
                expected[at..at + len].copy_from_slice(&plain(&range));
                assert_eq!(plain(&all), expected, "{at} {len}");
                assert_eq!(plain(&range.followed_by(&bits)), [plain(&range), plain(&bits)].concat());
            }
        }
    }

    #[test]
    fn bits_are_computed_and_combined_one_by_one() {
        for len in LENGTHS {
            let (a, b) = (some(len, 1), some(len, 2));
            assert_eq!(a.len(), len);
            let each =
                |f: fn(bool, bool) -> bool| (0..len).map(|i| f(a.bit(i), b.bit(i))).collect::<Vec<_>>();
            assert_eq!(plain(&(&a ^ &b)), each(|a, b| a ^ b));
            assert_eq!(plain(&(&a & &b)), each(|a, b| a & b));
            assert_eq!(plain(&Bits::from_fn(len, |i| a.bit(i) ^ (i % 3 == 0))), {
                (0..len).map(|i| a.bit(i) ^ (i % 3 == 0)).collect::<Vec<_>>()
            });
        }
    }

    #[test]
    fn bytes_are_the_bits_and_nothing_more() {
        for len in LENGTHS {
            let bits = some(len, 1);
            let bytes = bits.to_bytes();
            assert_eq!(bytes.len(), len.div_ceil(8));
            let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1 == 1;
            assert_eq!(plain(&bits), (0..len).map(bit).collect::<Vec<_>>());
            assert_eq!(plain(&Bits::from_bytes(&bytes, len).unwrap()), plain(&bits));
            for at in len..bytes.len() * 8 {
                let mut longer = bytes.clone();
                longer[at / 8] |= 1 << (at % 8);
                assert!(Bits::from_bytes(&longer, len).is_none(), "{len} {at}");
            }
        }
    }

    #[test]
    fn random_bits_are_random_in_all_places() {
        let rng = &mut Prng::from_seed(&[1; 32]);
        let all: Vec<Vec<u8>> = (0..300).map(|_| Bits::random(130, rng).to_bytes()).collect();
        every_bit_is_random(&all, 130);
    }
}
