//! The code of the silent VOLE: expand-convolute (RRT23: Raghuraman, Rindal and Tanguy, "Expand-Convolute Codes for
//! Pseudorandom Correlation Generators from LPN", CRYPTO 2023), systematic, with rate 1/2, over GF(2^128) or GF(2^64).
//!
//! It maps a noise vector e of n + n' elements, few of which are not 0, to n elements that look random (dual
//! LPN). Output i is e_i plus [`WEIGHT`] elements of the convolution y of the second half e':
//!
//! y_i = e'_i + x y_(i-1) + (random bits times y_(i-2) to y_(i-23)) + y_(i-24).
//!
//! Output i takes one random element from each of [`WEIGHT`] equal regions of y (a regular expander). So no output has
//! all its places near the beginning of y, where few elements have accumulated, and one pass is enough. Bits and places
//! are public; they are derived from the session.
//!
//! # Why not a binary code
//!
//! RRT23's matrix is binary, even if the noise is over GF(2^128). Then the 128 bits of the elements are 128 syndromes
//! of one binary code, for noise vectors *at the same places*. These places are easy to find. If at most 128 elements
//! of the noise differ from 0, the 128 syndromes span the columns of the matrix at their places, and linear algebra
//! finds these one by one. (Metzner and Kapturowski, "A General Decoding Technique Applicable to Replicated File
//! Disagreement Location and Concatenated Code Decoding", IEEE Transactions on Information Theory 1990.) With t above
//! 128 it is enough to guess half of the columns such that at most 127 of the t places lie outside. At t = 400, one
//! guess in about 2^43 is right, not one in 2^400. The bias of linear tests (below) does not reveal this attack: the
//! test is chosen among 2^128, by linear algebra after the syndrome is known.
//!
//! So the code must not be equivalent to one over a subfield. The factor x, which generates the field, ensures that:
//! after k steps, a noise element contributes a polynomial in x of degree k. The factor 1 before y_(i-24) makes each
//! state of the convolution a bijective function of the previous one, so a contribution cannot die out.
//!
//! Over GF(2^64) an element is 64 syndromes instead of 128. Fewer noise elements are then enough against this attack,
//! and against its variants below. x also generates this field.
//!
//! # How much noise
//!
//! The noise has t elements, one at a random place in each of t blocks, with random values: [`noise`]. The estimate
//! follows the linear test framework (Couteau, Rindal and Raghuraman, CRYPTO 2021). A linear combination of the outputs
//! is a linear combination of the noise, whose coefficients are a word of the code that the matrix generates. It is
//! zero, and so not random, only if all noise misses the places where the word is not 0. If at least a share delta of
//! the places is not 0, then over a large field, with equal blocks, this has probability at most (1 - delta)^t.
//! [`strength`] handles unequal blocks. t is chosen to make this at most 2^-128. delta is an **estimate**,
//! [`distance`], the smaller of two:
//!
//! * 0.15, which libOTe assumed until June 2025 for the smaller of its two expanders (see below), without a proof.
//! * A low-weight word that can be found. Take an interval of a share f of each region. About n f^WEIGHT outputs have
//!   all their places inside. Take combinations of them, over the field, whose convolution (transposed, it runs
//!   backwards) ends at the lower ends of the intervals. An interval at the upper end of a region continues in one at
//!   the lower end of the next, and the first one ends with the vector. That makes WEIGHT / 2 ends, with 24 linear
//!   conditions each. So n f^WEIGHT = 24 (WEIGHT / 2) + 1, and the weight of the word is about f n'. The attacker
//!   chooses the length of each interval. So we take [`CHOICE`] times this f, as if the attacker could try all choices
//!   and find the best one. As vectors grow, f falls slowly: a fixed WEIGHT is not enough for unbounded n (in RRT23 it
//!   grows as log n).
//!
//! Other attacks, at rate 1/2, are:
//!
//! * The remainder of the attack on binary codes. The matrix begins with the identity, and the expander is binary. So
//!   some words have bits in the first half. The attack works if they meet at most 127 noise elements there, and none
//!   in the second half. By linear algebra, such words can be 0 on a share s of the first half and 1 - s of the second.
//!   With t/2 noise elements in each half, the attack works with probability Pr[Bin(t/2, 1 - s) <= 127] (1 - s)^(t/2).
//!   At t = 546 this is at most 2^-189 for any s. At t = 400, which would suffice for delta = 0.2, it would be 2^-88.
//! * The same attack after a change of basis. The convolution's inverse is banded, with entries 0, 1 and x. Multiply by
//!   it and by the expander's inverse (up to a few words, the expander is square). The outputs are then given by the
//!   identity and a matrix B_0 + x B_1 with binary parts. A noise element in one half adds at most two dimensions over
//!   GF(2), and one in the other half adds one. So 128 syndromes span at most 1.5 t dimensions, and t up to 84 would
//!   give no security at all. Let words be 0 on shares s_1 and s_2 of the two halves, with 2 s_1 + s_2 <= 1. The guess
//!   is right with probability Pr[2 Bin(t/2, 1 - s_1) + Bin(t/2, 1 - s_2) <= 127]: at best about 2^-400 at t = 546,
//!   less than above. Before t is ever lowered, x must become a random element of the field for each step.
//! * Information-set decoding over the field, which must guess n columns that contain all the noise: 2^-t.
//! * For regular noise, the algebraic attacks of Briaud and Øygarden (EUROCRYPT 2023) and the estimates of Liu, Wang,
//!   Yang and Yu (EUROCRYPT 2024). They are not evaluated here; libOTe, at the same rate, takes t = 128.
//!
//! # libOTe for comparison
//!
//! As of August 2026 (commit a0871f6), its two expand-convolute codes are systematic, of rate 1/2, with a memory of 24
//! and regular expanders of weight 7 and 21. They convolve twice, and wrap around the end, so that noise near the end
//! counts too. Since 2024, over GF(2^128), they multiply by a constant of the field in each step, against "a splitting
//! attack" on binary codes. Since June 2025 they are assigned a "pseudo minimum distance" of 0.25 (0.15 and 0.2
//! before). The default is now another code, BlkAcc3x32 (accumulators, permutations and a block-diagonal matrix), with
//! the same 0.25. This gives t = 128, with the bound for noise over GF(2): (1 - 2 * 0.25)^128 = 2^-128. Our criterion
//! is stricter: over a large field, at distance 0.25, 128 noise elements are worth 53 bits, and our distance is 0.15.

use crate::secret::Secrets;
use rayon::prelude::*;
use veilset_kernels::aes::Aes128;

/// Number of places added to each output.
const WEIGHT: usize = 11;
/// Number of earlier elements that the convolution adds to each element.
const MEMORY: usize = 24;
/// Number of outputs expanded at once: 16 KiB of places.
const BATCH: usize = 1 << 12;
/// The security level of the noise, as an exponent.
const KAPPA: f64 = 128.0;

/// The factor by which the best choice of intervals shortens them. Each interval has one end at a border of regions. So
/// for a given sum of lengths there are fewer than (n / WEIGHT)^(WEIGHT - 1) choices, 2^245 at 2^28 outputs. If they
/// were independent, one of them would contain 121 outputs where the mean is 12. The probability that a Poisson
/// variable deviates that far is e^-(121 ln(121 / 12) - 121 + 12) = 2^-246. The 11th root of 12 / 121 is 0.81; for
/// fewer outputs it is larger.
const CHOICE: f64 = 0.8;

/// The estimated minimum share of places at which a word of the code for `n` outputs is not 0. Derived in the module's
/// documentation.
fn distance(n: usize) -> f64 {
    let conditions = (MEMORY * (WEIGHT / 2) + 1) as f64;
    let interval = CHOICE * (conditions / n.max(1) as f64).powf(1.0 / WEIGHT as f64);
    (interval / 2.0).min(0.15)
}

/// The strength of `t` noise elements for `n` outputs, in bits: -log2 of the probability that they all miss the
/// worst word. Block lengths differ by at most one. The worst word leaves (1 - delta) N / t places of each block
/// free, so the probability is the product of these shares.
fn strength(n: usize, t: usize) -> f64 {
    let places = n + parity(n);
    let (short, longer) = ((places / t).max(1), places % t);
    let lengths = longer as f64 * ((short + 1) as f64).log2() + (t - longer) as f64 * (short as f64).log2();
    lengths - t as f64 * ((1.0 - distance(n)) * places as f64 / t as f64).log2()
}

/// The number of noise elements that `n` outputs need: 546 to 548 for 4097 to five million outputs, and more for fewer,
/// for which no code is used. Derived in the module's documentation.
pub(super) fn noise(n: usize) -> usize {
    let least = (KAPPA / -(1.0 - distance(n)).log2()) as usize;
    (least..).find(|&t| strength(n, t) >= KAPPA).unwrap_or(usize::MAX)
}

/// Number of elements per region of the code for `n` outputs.
fn region(n: usize) -> usize {
    n.div_ceil(WEIGHT).max(1)
}

/// n', the length of the convolved part for `n` outputs.
pub(super) fn parity(n: usize) -> usize {
    WEIGHT * region(n)
}

/// A symbol of the code: bytes that are added with exclusive-or.
pub trait Symbol: Copy + Default + Send + Sync {
    /// Adds `other` to this symbol.
    fn add(&mut self, other: &Self);

    /// Returns the symbol if bit 0 of `bits` is set, and 0 otherwise.
    fn masked(self, bits: u32) -> Self;
}

impl Symbol for [u8; 16] {
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        *self = (u128::from_le_bytes(*self) ^ u128::from_le_bytes(*other)).to_le_bytes();
    }

    #[inline(always)]
    fn masked(self, bits: u32) -> Self {
        (u128::from_le_bytes(self) & u128::from(bits & 1).wrapping_neg()).to_le_bytes()
    }
}

impl Symbol for [u8; 8] {
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        *self = (u64::from_le_bytes(*self) ^ u64::from_le_bytes(*other)).to_le_bytes();
    }

    #[inline(always)]
    fn masked(self, bits: u32) -> Self {
        (u64::from_le_bytes(self) & u64::from(bits & 1).wrapping_neg()).to_le_bytes()
    }
}

/// The code for a given number of outputs.
pub(super) struct Code {
    /// Number of elements per region.
    region: usize,
    bits: Aes128,
    places: Aes128,
}

impl Code {
    /// The code for `n` outputs that is derived from these 32 random bytes.
    pub(super) fn new(n: usize, seed: &[u8; 32]) -> Code {
        let [bits, places] = [0, 1].map(|i| Aes128::new(&seed.as_chunks().0[i]));
        Code { region: region(n), bits, places }
    }

    /// Replaces e' by y. `times_x` multiplies by x in the field of the elements.
    pub(super) fn convolve<T: Symbol>(&self, e: &mut [T], times_x: impl Fn(T) -> T) {
        let mut bits = vec![[0; 4]; BATCH];
        // Zeros precede the first elements.
        let mut first = Secrets::<T>::zeros(2 * MEMORY);
        let head = e.len().min(MEMORY);
        for start in (0..e.len()).step_by(BATCH) {
            self.bits.ctr((start / 4) as u128, bits.as_flattened_mut());
            if start == 0 {
                first[MEMORY..][..head].copy_from_slice(&e[..head]);
                (0..head).for_each(|i| step(&mut first, MEMORY + i, bits[i], &times_x));
                e[..head].copy_from_slice(&first[MEMORY..][..head]);
            }
            let end = e.len().min(start + BATCH);
            (start.max(head)..end).for_each(|i| step(e, i, bits[i - start], &times_x));
        }
    }

    /// Adds to each output the elements of y at its places.
    pub(super) fn expand<T: Symbol>(&self, y: &[T], outputs: &mut [T]) {
        // Region by region, to keep the random reads within the cache.
        for (r, region) in y.chunks_exact(self.region).enumerate() {
            outputs.par_chunks_mut(BATCH).enumerate().for_each(|(batch, outputs)| {
                let mut places = vec![[0; 4]; BATCH];
                self.places.ctr((r as u128) << 64 | (batch * BATCH / 4) as u128, places.as_flattened_mut());
                for (output, place) in outputs.iter_mut().zip(&places) {
                    let place = (u64::from(u32::from_le_bytes(*place)) * region.len() as u64) >> 32;
                    output.add(&region[place as usize]);
                }
            });
        }
    }
}

/// A step of the convolution: computes element `i` from the previous ones.
#[inline(always)]
fn step<T: Symbol>(e: &mut [T], i: usize, bits: [u8; 4], times_x: &impl Fn(T) -> T) {
    let (before, here) = e.split_at_mut(i);
    let (Some(before), Some(here)) = (before.last_chunk::<MEMORY>(), here.first_mut()) else {
        return;
    };
    let (mut sum, mut bits) = (before[0], u32::from_le_bytes(bits));
    for element in &before[1..MEMORY - 1] {
        sum.add(&element.masked(bits));
        bits >>= 1;
    }
    // Done last, because the preceding element has only just been computed.
    here.add(&sum);
    here.add(&times_x(before[MEMORY - 1]));
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
