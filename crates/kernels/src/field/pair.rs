//! Pairs of vectors: twice the lanes, and twice the work between two dependent operations, which long chains of
//! squarings need.

use super::{Fe, Field};

/// A pair of values of an implementation.
#[derive(Clone, Copy)]
pub(crate) struct Pair<F>(F, F);

impl<F> Pair<F> {
    /// Returns the pair, with the lanes of `first` before the lanes of `second`.
    #[inline(always)]
    pub(crate) fn of(first: F, second: F) -> Self {
        Pair(first, second)
    }
}

impl<F: Field> Field for Pair<F> {
    const LANES: usize = 2 * F::LANES;
    type Raw = (F::Raw, F::Raw);
    type Mask = (F::Mask, F::Mask);

    #[inline(always)]
    fn splat(a: &Fe) -> Self {
        Pair(F::splat(a), F::splat(a))
    }

    #[inline(always)]
    fn load(from: &[Fe]) -> Self {
        let (first, second) = from.split_at(F::LANES.min(from.len()));
        Pair(F::load(first), F::load(second))
    }

    #[inline(always)]
    fn store(self, to: &mut [Fe]) {
        let (first, second) = to.split_at_mut(F::LANES.min(to.len()));
        self.0.store(first);
        self.1.store(second);
    }

    #[inline(always)]
    fn mul(self, b: Self) -> Self::Raw {
        (self.0.mul(b.0), self.1.mul(b.1))
    }

    #[inline(always)]
    fn square(self) -> Self::Raw {
        (self.0.square(), self.1.square())
    }

    #[inline(always)]
    fn mul_small(self, k: u32) -> Self::Raw {
        (self.0.mul_small(k), self.1.mul_small(k))
    }

    #[inline(always)]
    fn widen(self) -> Self::Raw {
        (self.0.widen(), self.1.widen())
    }

    #[inline(always)]
    fn add(a: Self::Raw, b: Self::Raw) -> Self::Raw {
        (F::add(a.0, b.0), F::add(a.1, b.1))
    }

    #[inline(always)]
    fn sub(a: Self::Raw, b: Self::Raw) -> Self::Raw {
        (F::sub(a.0, b.0), F::sub(a.1, b.1))
    }

    #[inline(always)]
    fn carry(a: Self::Raw) -> Self {
        Pair(F::carry(a.0), F::carry(a.1))
    }

    #[inline(always)]
    fn mask(words: &[u64]) -> Self::Mask {
        let (first, second) = words.split_at(F::LANES.min(words.len()));
        (F::mask(first), F::mask(second))
    }

    #[inline(always)]
    fn mask_all(word: u64) -> Self::Mask {
        (F::mask_all(word), F::mask_all(word))
    }

    #[inline(always)]
    fn select(self, b: Self, mask: Self::Mask) -> Self {
        Pair(self.0.select(b.0, mask.0), self.1.select(b.1, mask.1))
    }

    #[cfg(test)]
    const LIMB: (i64, i64) = F::LIMB;
    #[cfg(test)]
    const UNIT: i64 = F::UNIT;
    #[cfg(test)]
    #[inline(always)]
    fn from_limbs(lanes: &[[i64; 5]]) -> Self {
        Pair(F::from_limbs(&lanes[..F::LANES]), F::from_limbs(&lanes[F::LANES..]))
    }
    #[cfg(test)]
    #[inline(always)]
    fn limbs(self) -> Vec<[i64; 5]> {
        [self.0.limbs(), self.1.limbs()].concat()
    }
    #[cfg(test)]
    #[inline(always)]
    fn columns(a: Self::Raw) -> Vec<[i64; 5]> {
        [F::columns(a.0), F::columns(a.1)].concat()
    }
}
