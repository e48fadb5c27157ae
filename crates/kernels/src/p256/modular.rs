//! Arithmetic modulo the prime of P-256, and modulo the order of its group.
//!
//! A residue r is kept in Montgomery form: r 2^256 mod m, below m, in four words, least significant first. The functions
//! of [`Residue`] take and return such residues unless they say otherwise. No branch and no address depends on a value.

use std::marker::PhantomData;
use zeroize::Zeroize;

/// An odd modulus above 2^255.
pub(super) trait Modulus: Copy {
    /// The modulus m.
    const M: [u64; 4];
    /// -1/m modulo 2^64.
    const FACTOR: u64 = minus_inverse(Self::M[0]);
    /// 2^256 modulo m.
    const ONE: [u64; 4] = power_of_two(256, Self::M);
    /// 2^512 modulo m.
    const SQUARE: [u64; 4] = power_of_two(512, Self::M);
    /// 2^768 modulo m.
    const CUBE: [u64; 4] = power_of_two(768, Self::M);

    /// Adds the multiple of m that makes the lowest word 0, and `carry` to the highest word. Returns the words above
    /// the lowest, and the carry.
    #[inline(always)]
    fn cancel(t: [u64; 5], carry: u64) -> ([u64; 4], u64) {
        let factor = t[0].wrapping_mul(Self::FACTOR);
        let (_, c) = mac(t[0], factor, Self::M[0], 0);
        let (t1, c) = mac(t[1], factor, Self::M[1], c);
        let (t2, c) = mac(t[2], factor, Self::M[2], c);
        let (t3, c) = mac(t[3], factor, Self::M[3], c);
        let (t4, carry) = add(t[4], c, carry);
        ([t1, t2, t3, t4], carry)
    }
}

/// The field: p = 2^256 - 2^224 + 2^192 + 2^96 - 1.
#[derive(Clone, Copy)]
pub(super) struct Prime;

impl Modulus for Prime {
    const M: [u64; 4] = [u64::MAX, 0xffff_ffff, 0, 0xffff_ffff_0000_0001];

    /// -1/p is 1 modulo 2^64, so the factor is the lowest word. Only the highest word of p needs a multiplication.
    #[inline(always)]
    fn cancel(t: [u64; 5], carry: u64) -> ([u64; 4], u64) {
        let factor = t[0];
        // factor (2^96 - 1): the lowest word cancels.
        let (t1, c) = add(t[1], factor << 32, 0);
        let (t2, c) = add(t[2], factor >> 32, c);
        let (t3, c) = mac(t[3], factor, Self::M[3], c);
        let (t4, carry) = add(t[4], c, carry);
        ([t1, t2, t3, t4], carry)
    }
}

/// The order of the group, a prime.
#[derive(Clone, Copy)]
pub(super) struct Order;

impl Modulus for Order {
    const M: [u64; 4] = [0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, u64::MAX, 0xffff_ffff_0000_0000];
}

/// Returns the low and the high word of a + b c + carry.
#[inline(always)]
const fn mac(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let t = a as u128 + b as u128 * c as u128 + carry as u128;
    (t as u64, (t >> 64) as u64)
}

/// Returns the low word of a + b + carry, and the carry.
#[inline(always)]
const fn add(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let t = a as u128 + b as u128 + carry as u128;
    (t as u64, (t >> 64) as u64)
}

/// Returns the low word of a - b - borrow, and the borrow, 0 or 1.
#[inline(always)]
const fn sub(a: u64, b: u64, borrow: u64) -> (u64, u64) {
    let t = (a as u128).wrapping_sub(b as u128 + borrow as u128);
    (t as u64, (t >> 127) as u64)
}

/// Returns a - b, and the borrow.
#[inline(always)]
const fn subtract(a: [u64; 4], b: [u64; 4]) -> ([u64; 4], u64) {
    let (d0, borrow) = sub(a[0], b[0], 0);
    let (d1, borrow) = sub(a[1], b[1], borrow);
    let (d2, borrow) = sub(a[2], b[2], borrow);
    let (d3, borrow) = sub(a[3], b[3], borrow);
    ([d0, d1, d2, d3], borrow)
}

/// Returns all ones for 1 and zeros for 0, in a form that the compiler does not turn into a branch.
#[inline(always)]
pub(super) fn mask(bit: u64) -> u64 {
    std::hint::black_box(bit).wrapping_neg()
}

/// Returns `b` where the mask is ones, `a` where it is zeros.
#[inline(always)]
fn select(a: [u64; 4], b: [u64; 4], mask: u64) -> [u64; 4] {
    std::array::from_fn(|i| a[i] ^ (mask & (a[i] ^ b[i])))
}

const fn minus_inverse(m: u64) -> u64 {
    // Each step doubles the number of correct bits; m is its own inverse modulo 8.
    let (mut inverse, mut i) = (m, 0);
    while i < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(m.wrapping_mul(inverse)));
        i += 1;
    }
    inverse.wrapping_neg()
}

/// Returns 2^n modulo m, for constants.
const fn power_of_two(n: u32, m: [u64; 4]) -> [u64; 4] {
    let (mut power, mut i) = ([1, 0, 0, 0], 0);
    while i < n {
        let top = power[3] >> 63;
        let doubled = [
            power[0] << 1,
            power[1] << 1 | power[0] >> 63,
            power[2] << 1 | power[1] >> 63,
            power[3] << 1 | power[2] >> 63,
        ];
        let (reduced, borrow) = subtract(doubled, m);
        power = if top == 1 || borrow == 0 { reduced } else { doubled };
        i += 1;
    }
    power
}

/// Returns the words of a big-endian number, least significant first.
#[inline(always)]
fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let [w3, w2, w1, w0] =
        [0, 8, 16, 24].map(|at| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i])));
    [w0, w1, w2, w3]
}

/// Returns whether a big-endian number is below the modulus. Constant-time.
pub(super) fn is_below<M: Modulus>(bytes: &[u8; 32]) -> bool {
    subtract(words(bytes), M::M).1 == 1
}

/// A residue modulo `M`.
#[derive(Clone, Copy)]
pub(super) struct Residue<M>([u64; 4], PhantomData<M>);

impl<M> Zeroize for Residue<M> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl<M: Modulus> Residue<M> {
    pub(super) const ZERO: Self = Self::of([0; 4]);
    pub(super) const ONE: Self = Self::of(M::ONE);

    const fn of(words: [u64; 4]) -> Self {
        Residue(words, PhantomData)
    }

    /// Returns the constant with these words.
    pub(super) fn constant(words: [u64; 4]) -> Self {
        Self::of(words).mul(Self::of(M::SQUARE))
    }

    /// Reduces a big-endian number of 256 bits.
    #[inline(always)]
    pub(super) fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self::of(words(bytes)).mul(Self::of(M::SQUARE))
    }

    /// Reduces a big-endian number of 384 bits.
    #[inline(always)]
    pub(super) fn from_wide(bytes: &[u8; 48]) -> Self {
        let (mut high, mut low) = ([0; 32], [0; 32]);
        high[16..].copy_from_slice(&bytes[..16]);
        low.copy_from_slice(&bytes[16..]);
        // The high part has weight 2^256.
        Self::of(words(&high)).mul(Self::of(M::CUBE)).add(Self::from_bytes(&low))
    }

    /// Returns the number below the modulus, in words.
    #[inline(always)]
    fn number(self) -> [u64; 4] {
        let [w0, w1, w2, w3] = self.0;
        Self::reduce([w0, w1, w2, w3, 0, 0, 0, 0]).0
    }

    /// Returns the number below the modulus, big-endian.
    #[inline(always)]
    pub(super) fn to_bytes(self) -> [u8; 32] {
        let mut out = [0; 32];
        for (bytes, word) in out.as_chunks_mut::<8>().0.iter_mut().rev().zip(self.number()) {
            *bytes = word.to_be_bytes();
        }
        out
    }

    /// Returns the lowest bit of the number, which RFC 9380 calls its sign.
    #[inline(always)]
    pub(super) fn sign(self) -> u64 {
        self.number()[0] & 1
    }

    /// Divides a number below 2^256 m by 2^256, modulo m.
    #[inline(always)]
    fn reduce(t: [u64; 8]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7] = t;
        let ([t1, t2, t3, t4], carry) = M::cancel([t0, t1, t2, t3, t4], 0);
        let ([t2, t3, t4, t5], carry) = M::cancel([t1, t2, t3, t4, t5], carry);
        let ([t3, t4, t5, t6], carry) = M::cancel([t2, t3, t4, t5, t6], carry);
        let (t, carry) = M::cancel([t3, t4, t5, t6, t7], carry);
        // Below 2 m: at most (2^256 m + 2^256 m) / 2^256.
        Self::once(t, carry)
    }

    /// Subtracts m from a number below 2 m, with fifth word `carry`, unless it is below m.
    #[inline(always)]
    fn once(t: [u64; 4], carry: u64) -> Self {
        let (reduced, borrow) = subtract(t, M::M);
        // The number is below m if the subtraction borrows more than the carry.
        Self::of(select(reduced, t, mask(borrow & (carry ^ 1))))
    }

    /// Returns the product. One factor may be any number of 256 bits.
    #[inline(always)]
    pub(super) fn mul(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        let mut t = [0; 8];
        for i in 0..4 {
            let mut carry = 0;
            for j in 0..4 {
                (t[i + j], carry) = mac(t[i + j], a[i], b[j], carry);
            }
            t[i + 4] = carry;
        }
        Self::reduce(t)
    }

    /// Returns the square.
    #[inline(always)]
    pub(super) fn square(self) -> Self {
        let a = self.0;
        // The products of different words,
        let (t1, c) = mac(0, a[0], a[1], 0);
        let (t2, c) = mac(0, a[0], a[2], c);
        let (t3, t4) = mac(0, a[0], a[3], c);
        let (t3, c) = mac(t3, a[1], a[2], 0);
        let (t4, t5) = mac(t4, a[1], a[3], c);
        let (t5, t6) = mac(t5, a[2], a[3], 0);
        // twice,
        let (t7, t6, t5) = (t6 >> 63, t6 << 1 | t5 >> 63, t5 << 1 | t4 >> 63);
        let (t4, t3, t2, t1) = (t4 << 1 | t3 >> 63, t3 << 1 | t2 >> 63, t2 << 1 | t1 >> 63, t1 << 1);
        // and the squares.
        let (t0, c) = mac(0, a[0], a[0], 0);
        let (t1, c) = add(t1, c, 0);
        let (t2, c) = mac(t2, a[1], a[1], c);
        let (t3, c) = add(t3, c, 0);
        let (t4, c) = mac(t4, a[2], a[2], c);
        let (t5, c) = add(t5, c, 0);
        let (t6, c) = mac(t6, a[3], a[3], c);
        let (t7, _) = add(t7, c, 0);
        Self::reduce([t0, t1, t2, t3, t4, t5, t6, t7])
    }

    /// Returns the sum.
    #[inline(always)]
    pub(super) fn add(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        let (t0, c) = add(a[0], b[0], 0);
        let (t1, c) = add(a[1], b[1], c);
        let (t2, c) = add(a[2], b[2], c);
        let (t3, c) = add(a[3], b[3], c);
        Self::once([t0, t1, t2, t3], c)
    }

    /// Returns the negative.
    #[inline(always)]
    pub(super) fn negative(self) -> Self {
        let (negative, _) = subtract(M::M, self.0);
        // 0 stays 0.
        Self::once(negative, 0)
    }

    /// Returns 1 if the two are equal, 0 otherwise.
    #[inline(always)]
    pub(super) fn equals(self, other: Self) -> u64 {
        let any = self.0.iter().zip(other.0).fold(0, |any, (a, b)| any | (a ^ b));
        // The top bit of any | -any is set if and only if any is not 0.
        ((any | any.wrapping_neg()) >> 63) ^ 1
    }

    /// Returns `other` if the bit is 1, `self` if it is 0.
    #[inline(always)]
    pub(super) fn or(self, other: Self, bit: u64) -> Self {
        Self::of(select(self.0, other.0, mask(bit)))
    }
}

/// Returns the inverse modulo the order, computed with Fermat's theorem; 0 for 0. Slow: meant for a key, not for
/// points.
pub(super) fn inverse_of_scalar(scalar: &[u8; 32]) -> [u8; 32] {
    let mut base = Residue::<Order>::from_bytes(scalar);
    let mut power = Residue::<Order>::ONE;
    // The exponent is public.
    let (exponent, _) = subtract(Order::M, [2, 0, 0, 0]);
    for i in (0..256).rev() {
        power = power.square();
        if exponent[i / 64] >> (i % 64) & 1 == 1 {
            power = power.mul(base);
        }
    }
    let inverse = power.to_bytes();
    base.zeroize();
    power.zeroize();
    inverse
}
