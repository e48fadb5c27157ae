//! Numbers, moduli and primality tests with aws-lc's arithmetic. All foreign calls of this kernel are in this file.
//!
//! A number has the width with which it was set, or the width of the modulus by which it was last reduced, for any
//! value: the library keeps leading zeros. `BN_mod_mul_montgomery` takes the same steps for all values if both factors
//! have the width of the modulus. `BN_mod_exp_mont_consttime` reads all words of an exponent, in windows at fixed
//! positions, and all of its table for each. Freed memory is wiped, including a context's.

use aws_lc_sys::{
    BIGNUM, BN_CTX, BN_CTX_free, BN_CTX_new, BN_MONT_CTX, BN_MONT_CTX_free, BN_MONT_CTX_new_consttime,
    BN_bn2le_padded, BN_clear_bit, BN_clear_free, BN_cmp, BN_exp, BN_from_montgomery, BN_gcd, BN_is_one,
    BN_le2bn, BN_mod_exp_mont_consttime, BN_mod_mul_montgomery, BN_new, BN_primality_test,
    BN_prime_checks_for_generation, BN_prime_checks_for_validation, BN_set_bit, BN_set_word,
    BN_to_montgomery,
};
use std::ffi::c_int;
use std::ptr::null_mut;
use zeroize::Zeroizing;

/// Ends the process on failure: with the arguments used in this file, the library fails only if memory runs out.
fn require(done: bool) {
    if !done {
        veilset_memory::exit("a number for Paillier's encryption cannot be had");
    }
}

/// A number, whose memory is wiped on drop.
pub(super) struct Number(*mut BIGNUM);

// SAFETY: a number is its own allocation, which the library changes only through a pointer that is not const.
unsafe impl Send for Number {}
// SAFETY: as for `Send`.
unsafe impl Sync for Number {}

impl Number {
    /// Returns zero.
    pub(super) fn zero() -> Number {
        // SAFETY: no conditions.
        let number = unsafe { BN_new() };
        require(!number.is_null());
        Number(number)
    }

    /// Makes a number from bytes, the least significant first.
    pub(super) fn new(bytes: &[u8]) -> Number {
        let mut number = Number::zero();
        number.set(bytes);
        number
    }

    /// Sets the number to these bytes, and its width to their length.
    pub(super) fn set(&mut self, bytes: &[u8]) {
        // SAFETY: `bytes` is read for its length; our access to the number is exclusive.
        require(unsafe { !BN_le2bn(bytes.as_ptr(), bytes.len(), self.0).is_null() });
    }

    /// Writes the number to `out`, with zeros up to its length, in which it must fit.
    pub(super) fn get(&self, out: &mut [u8]) {
        // SAFETY: `out` is written within its length.
        let fits = unsafe { BN_bn2le_padded(out.as_mut_ptr(), out.len(), self.0) } == 1;
        assert!(fits, "a number is read in its width");
    }

    /// Returns whether the greatest common divisor with another number is 1. If one of the two is odd, only their
    /// widths, the result and the width of the divisor are revealed.
    pub(super) fn is_coprime_to(&self, other: &Number, scratch: &mut Scratch) -> bool {
        let divisor = Number::zero();
        // SAFETY: all pointers are valid, and our access to written numbers is exclusive.
        unsafe {
            require(BN_gcd(divisor.0, self.0, other.0, scratch.0) == 1);
            BN_is_one(divisor.0) == 1
        }
    }

    /// Returns whether the number is prime, with the Miller-Rabin test and witnesses from the library's generator. A
    /// composite number is revealed; a prime reveals only its width, and sometimes that a witness was drawn again.
    ///
    /// `random` states whether it was drawn at random. In that case few rounds suffice: a composite number of 1024 bits passes
    /// with probability at most 2^-112, the security of a key of two such primes. A maliciously chosen composite number passes
    /// with probability at most 2^-128.
    pub(super) fn is_prime(&self, random: bool, scratch: &mut Scratch) -> bool {
        let rounds = if random { BN_prime_checks_for_generation } else { BN_prime_checks_for_validation };
        let mut prime: c_int = 0;
        // SAFETY: all pointers are valid; there is no callback.
        require(unsafe { BN_primality_test(&mut prime, self.0, rounds, scratch.0, 0, null_mut()) } == 1);
        prime == 1
    }

    /// Returns whether a number of `bits` bits is a power of an integer with this exponent. Not constant-time.
    pub(super) fn vartime_is_power(&self, exponent: u32, bits: u32, scratch: &mut Scratch) -> bool {
        let (root, power, times) = (Number::zero(), Number::zero(), Number::zero());
        // SAFETY: all pointers are valid, and our access to written numbers is exclusive.
        unsafe {
            require(BN_set_word(times.0, exponent.into()) == 1);
            // The greatest root whose power does not exceed the number, from its top bit down.
            for bit in (0..=bits / exponent).rev() {
                let bit = bit as c_int;
                require(BN_set_bit(root.0, bit) == 1);
                require(BN_exp(power.0, root.0, times.0, scratch.0) == 1);
                match BN_cmp(power.0, self.0) {
                    0 => return true,
                    above if above > 0 => require(BN_clear_bit(root.0, bit) == 1),
                    _ => {}
                }
            }
        }
        false
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `zero`, and freed once.
        unsafe { BN_clear_free(self.0) }
    }
}

/// Scratch space for the library's intermediate results. Each call or batch has its own.
pub(super) struct Scratch(*mut BN_CTX);

impl Scratch {
    pub(super) fn new() -> Scratch {
        // SAFETY: no conditions.
        let context = unsafe { BN_CTX_new() };
        require(!context.is_null());
        Scratch(context)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `new`, and freed once.
        unsafe { BN_CTX_free(self.0) }
    }
}

/// An odd modulus with Montgomery's representation: x R mod m stands for x, where R is 2 to the width of m in bits.
pub(super) struct Modulus {
    montgomery: *mut BN_MONT_CTX,
    number: Number,
}

// SAFETY: the library only reads a Montgomery context after its creation.
unsafe impl Send for Modulus {}
// SAFETY: as for `Send`.
unsafe impl Sync for Modulus {}

impl Modulus {
    /// Makes a modulus from bytes, the least significant first, in whole words of which the last is not 0. Only the
    /// length is revealed.
    pub(super) fn new(bytes: &[u8], scratch: &mut Scratch) -> Modulus {
        let number = Number::new(bytes);
        // SAFETY: both pointers are valid.
        let montgomery = unsafe { BN_MONT_CTX_new_consttime(number.0, scratch.0) };
        require(!montgomery.is_null());
        Modulus { montgomery, number }
    }

    /// Returns the modulus itself.
    pub(super) fn number(&self) -> &Number {
        &self.number
    }

    /// Returns the bytes of 1 in Montgomery's representation. `width` is the length of the modulus in bytes.
    pub(super) fn one(&self, scratch: &mut Scratch, width: usize) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; width]);
        bytes[0] = 1;
        let mut one = Number::new(&bytes);
        self.enter(&mut one, scratch);
        one.get(&mut bytes);
        bytes
    }

    /// Replaces a with a b / R mod m. One of the two must be below m, the other below R; both have the width of m.
    pub(super) fn multiply(&self, a: &mut Number, b: &Number, scratch: &mut Scratch) {
        // SAFETY: all pointers are valid, our access to `a` is exclusive, and the library allows it as input and
        // output.
        require(unsafe { BN_mod_mul_montgomery(a.0, a.0, b.0, self.montgomery, scratch.0) } == 1);
    }

    /// Replaces a with a a / R mod m, for a below m.
    pub(super) fn square(&self, a: &mut Number, scratch: &mut Scratch) {
        // SAFETY: as in `multiply`.
        require(unsafe { BN_mod_mul_montgomery(a.0, a.0, a.0, self.montgomery, scratch.0) } == 1);
    }

    /// Replaces a with a R mod m, for any a of the width of m.
    pub(super) fn enter(&self, a: &mut Number, scratch: &mut Scratch) {
        // SAFETY: as in `multiply`.
        require(unsafe { BN_to_montgomery(a.0, a.0, self.montgomery, scratch.0) } == 1);
    }

    /// Replaces a with a / R mod m, for any a below m R of at most twice the width.
    pub(super) fn leave(&self, a: &mut Number, scratch: &mut Scratch) {
        // SAFETY: as in `multiply`.
        require(unsafe { BN_from_montgomery(a.0, a.0, self.montgomery, scratch.0) } == 1);
    }

    /// Replaces the base with base^exponent, not in Montgomery's representation. The base is below m.
    pub(super) fn power(&self, base: &mut Number, exponent: &Number, scratch: &mut Scratch) {
        // SAFETY: as in `multiply`; the context belongs to the modulus.
        let done = unsafe {
            BN_mod_exp_mont_consttime(base.0, base.0, exponent.0, self.number.0, scratch.0, self.montgomery)
        };
        require(done == 1);
    }
}

impl Drop for Modulus {
    fn drop(&mut self) {
        // SAFETY: the pointer is from `new`, and freed once.
        unsafe { BN_MONT_CTX_free(self.montgomery) }
    }
}
