//! The specification of the field: one element, as a number. The integer multiplier multiplies words without carries:
//! it takes every fifth bit of each, and sums of 13 products do not reach the next such bit.

use super::algorithm::Lanes;

#[derive(Clone, Copy)]
pub(super) struct One(u128);

/// Every fifth bit, from bit 0 to bit 125.
const FIFTH: u128 = (1 << 125) | (((1 << 125) - 1) / 31);

/// Returns the carry-less product.
#[inline(always)]
fn clmul(a: u64, b: u64) -> u128 {
    let class = |x: u64, i: u32| u128::from(x & (FIFTH as u64) << i);
    // The product of bits in the classes i and j modulo 5 is in the class i + j.
    (0..5).fold(0, |product, sum| {
        let products = (0..5).fold(0, |products, i| products ^ (class(a, i) * class(b, (sum + 5 - i) % 5)));
        product | products & FIFTH << sum
    })
}

/// Returns h times the residue of x^BITS.
#[inline(always)]
fn times_tail<const BITS: u32>(h: u128) -> u128 {
    (0..16).filter(|i| tail::<BITS>() >> i & 1 == 1).fold(0, |sum, i| sum ^ h << i)
}

/// The residue of x^BITS.
#[inline(always)]
pub(super) const fn tail<const BITS: u32>() -> u64 {
    match BITS {
        64 => 1 << 4 | 1 << 3 | 1 << 1 | 1,
        72 => 1 << 10 | 1 << 9 | 1 << 3 | 1,
        _ => 1 << 9 | 1 << 4 | 1 << 2 | 1,
    }
}

impl Lanes for One {
    const LANES: usize = 1;
    /// Terms with the weights 1, x^64 and x^128.
    type Wide = [u128; 3];

    #[inline(always)]
    fn splat(bits: u128) -> Self {
        One(bits)
    }
    #[inline(always)]
    fn load<const BITS: u32>(from: &[u128]) -> Self {
        One(from[0] & ((1 << BITS) - 1))
    }
    #[inline(always)]
    fn store(self, to: &mut [u128]) {
        to[0] = self.0;
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        One(self.0 ^ b.0)
    }
    #[inline(always)]
    fn widen(self) -> [u128; 3] {
        [self.0, 0, 0]
    }

    #[inline(always)]
    fn multiply_add<const BITS: u32>([s0, s1, s2]: [u128; 3], a: Self, b: Self) -> [u128; 3] {
        let (a0, a1, b0, b1) = (a.0 as u64, (a.0 >> 64) as u64, b.0 as u64, (b.0 >> 64) as u64);
        match BITS {
            64 => [s0 ^ clmul(a0, b0), s1, s2],
            _ => [s0 ^ clmul(a0, b0), s1 ^ clmul(a0, b1) ^ clmul(a1, b0), s2 ^ clmul(a1, b1)],
        }
    }

    #[inline(always)]
    fn reduce<const BITS: u32>([s0, s1, s2]: [u128; 3]) -> Self {
        let low = s0 ^ s1 << 64;
        let high = s0 >> BITS ^ s1 >> (BITS - 64) ^ s2 << (128 - BITS);
        let sum = low & ((1 << BITS) - 1) ^ times_tail::<BITS>(high);
        // The tail has at most 11 bits, so at most 11 bits overflow again.
        One(sum & ((1 << BITS) - 1) ^ times_tail::<BITS>(sum >> BITS))
    }
}
