//! The parameters of BFV for [`crate::membership::sigma::fhe`], and bounds on its noise and its errors.
//!
//! All bounds are for the worst case over all secrets, errors and coefficients; none is measured. So a response always
//! decrypts to the right values.
//!
//! With N = 8192 the tables of homomorphicencryption.org allow a modulus of 218 bits for 128-bit security, even with
//! ternary secrets; our secrets have the distribution of the errors, with standard deviation 3.2. Our modulus has 168
//! bits, which suffices for the bounds below. So the ring is harder than the tables require, and ciphertexts are a
//! quarter shorter.

use super::{LAMBDA, ceil_log2, share};
use crate::error::{Error, Result};
use std::fmt;

/// Number of coefficients of a polynomial.
pub const DEGREE: usize = 1 << 13;
/// Number of components of a query: independent hashes of its item, modulo t.
pub const COMPONENTS: usize = 2;
/// Number of queries in a ciphertext.
pub const QUERIES: usize = DEGREE / COMPONENTS;
/// The plaintext modulus t: the largest prime below 2^40 that is 1 modulo 2N.
pub const PLAIN: u64 = 0xff_fffd_c001;
/// The primes whose product is the ciphertext modulus q: the three largest below 2^56 that are 1 modulo 2N.
pub const MODULI: [u64; 3] = [0xff_ffff_fffb_4001, 0xff_ffff_fff7_8001, 0xff_ffff_fff7_0001];
/// Length of a residue modulo one of these primes in bytes.
pub const RESIDUE: usize = 7;
/// The largest absolute value of a coefficient of a secret or an error, which is the difference of two sums of this many
/// random bits. Its variance is half this number.
pub const LARGEST_SMALL: u64 = 20;
/// Number of non-zero coefficients of a plaintext by which a ciphertext is multiplied.
pub const SPARSE: u64 = 2;
/// The maximum sizes of the server's and the client's set, including dummies.
pub const LARGEST: [usize; 2] = [1 << 8, 1 << 20];
/// The exponent of the probability that the responses of a run reveal anything about the noise of the computation to
/// the client.
pub const FLOOD: u32 = 40;

/// Bounds on the noise and the errors of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Number of ciphertexts of the client's queries for each power.
    pub batches: usize,
    /// A bound on the noise of a response before it is flooded.
    pub computed: u128,
    /// Each coefficient of the flooding noise is uniform from -2^`flood` up to 2^`flood` - 1.
    pub flood: u32,
    /// A response decrypts to the right values if its noise is below 2^`room`.
    pub room: u32,
    /// The probability that each component of some query is also that of a different item of the server, be it one item or
    /// two, is at most 2^-`alike`.
    pub alike: u32,
    /// Length in bytes of the tags that the last step compares.
    pub tag: usize,
}

impl Budget {
    /// Returns the budget for `n_y` items of the server and `n_x` queries.
    ///
    /// # Errors
    /// [`Error::Usage`] for sets larger than [`LARGEST`]. [`Error::Bug`] if the parameters do not suffice, which does not
    /// happen for other sets.
    pub fn new(n_y: usize, n_x: usize) -> Result<Budget> {
        if n_y > LARGEST[0] || n_x > LARGEST[1] {
            return Err(Error::usage(format!(
                "sigma-fhe takes at most {} items of the receiver and {} of the sender, dummies included, not {n_y} \
                 and {n_x}. Use dh or poprf",
                LARGEST[0], LARGEST[1]
            )));
        }
        let batches = n_x.div_ceil(QUERIES);
        let computed = computed(n_y);
        let coefficients = DEGREE * batches.max(1);
        // Two kinds of error are possible: different items with equal components, and different values with equal tags.
        // Decryption to a wrong response is not one, because it cannot happen.
        let each = share(LAMBDA, 2);
        let budget = Budget {
            batches,
            computed,
            flood: (u128::BITS - computed.leading_zeros()) + FLOOD + ceil_log2(coefficients),
            room: room(),
            // t is above 2^39.
            alike: COMPONENTS as u32 * (39 - ceil_log2(n_y)) - ceil_log2(n_x),
            tag: (each + ceil_log2(n_x)).div_ceil(8) as usize,
        };
        match budget.flood + 1 < budget.room && budget.alike >= each {
            true => Ok(budget),
            false => Err(Error::bug(format!("parameters of sigma-fhe that are too small: {budget}"))),
        }
    }
}

/// A bound on the noise of a response to `n_y` ciphertexts before it is flooded.
///
/// A fresh ciphertext has the noise of its error, and less than 1 from rounding q m / t. In a product with a plaintext,
/// each of its non-zero coefficients, of absolute value at most t / 2, multiplies this noise. The sum also has the rounding of
/// the masks, and the noise of an encryption of 0: u e + e_1 + e_2 s, in which the products have N terms per
/// coefficient.
fn computed(n_y: usize) -> u128 {
    let small = LARGEST_SMALL as u128;
    let product = SPARSE as u128 * (PLAIN as u128 / 2) * (small + 1);
    let zero = 2 * DEGREE as u128 * small * small + small;
    n_y as u128 * product + 1 + zero
}

/// A b with 2^b <= q / 4t, at most one less than the largest: half of the noise that would round wrongly, so that the
/// arithmetic of the rounding need not be exact.
const fn room() -> u32 {
    let two = MODULI[0] as u128 * MODULI[1] as u128;
    // The high part of the product of all three: all but the last 64 bits, rounded down.
    let high = (two >> 64) * MODULI[2] as u128;
    high.ilog2() + 64 - 2 - (PLAIN.ilog2() + 1)
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::BITS - self.computed.leading_zeros();
        write!(
            f,
            "noise below 2^{bits}, flooded by 2^{}, of 2^{} that decrypt; different items are alike with probability \
             2^-{}, tags have {} bytes",
            self.flood, self.room, self.alike, self.tag
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_sets_fit_with_room() {
        let [n_y, n_x] = LARGEST;
        let budget = Budget::new(n_y, n_x).unwrap();
        assert_eq!(
            budget.to_string(),
            "noise below 2^53, flooded by 2^114, of 2^125 that decrypt; different items are alike with probability \
             2^-42, tags have 8 bytes"
        );
        for (n_y, n_x) in [(n_y + 1, 1), (1, n_x + 1), (usize::MAX, usize::MAX)] {
            let said = Budget::new(n_y, n_x).unwrap_err().to_string();
            assert!(said.contains("at most 256 items of the receiver and 1048576 of the sender"), "{said}");
            assert!(said.contains("Use dh"), "{said}");
        }
    }

    /// The flood hides the noise of all coefficients of a run, and does not make decryption fail.
    #[test]
    fn the_flood_is_large_enough_and_not_too_large_at_all_sizes() {
        for n_y in [0, 1, 2, 3, 100, 255, 256] {
            for n_x in [0, 1, QUERIES, QUERIES + 1, 3 * QUERIES, 1 << 16, 1 << 20] {
                let budget = Budget::new(n_y, n_x).unwrap();
                let shift = (budget.computed as f64).log2();
                let coefficients = ((DEGREE * budget.batches.max(1)) as f64).log2();
                // Uniform noise of width 2^(flood + 1), shifted by the computed noise, in this many coefficients.
                let distance = shift + coefficients - f64::from(budget.flood + 1);
                assert!(distance <= -f64::from(FLOOD), "{n_y} {n_x}: 2^{distance}");
                assert!(budget.flood + 1 < budget.room, "{n_y} {n_x}");
                let alike =
                    (n_x.max(1) as f64).log2() + 2.0 * ((n_y.max(1) as f64).log2() - (PLAIN as f64).log2());
                let equal = (n_x.max(1) as f64).log2() - 8.0 * budget.tag as f64;
                assert!(alike <= -f64::from(budget.alike) && alike <= -41.0, "{n_y} {n_x}: 2^{alike}");
                assert!(equal <= -41.0, "{n_y} {n_x}: 2^{equal}");
            }
        }
    }

    #[test]
    fn the_moduli_are_distinct_and_have_roots_of_unity() {
        for p in MODULI.into_iter().chain([PLAIN]) {
            assert_eq!((p - 1) % (2 * DEGREE as u64), 0, "{p}");
        }
        assert!(MODULI.windows(2).all(|w| w[0] > w[1]) && MODULI.iter().all(|q| *q < 1 << (8 * RESIDUE)));
        let bits: f64 = MODULI.iter().map(|q| (*q as f64).log2()).sum();
        assert!(bits <= 218.0, "{bits} bits are not 128-bit secure");
        // 2^room is below q / 4t, but close to it.
        let exact = bits - 2.0 - (PLAIN as f64).log2();
        assert!((0.0..1.5).contains(&(exact - f64::from(room()))), "{exact} {}", room());
        const { assert!(PLAIN > 1 << 39) };
    }
}
