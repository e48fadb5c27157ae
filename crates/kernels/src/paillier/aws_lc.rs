//! Numbers, moduli and tests of primality by aws-lc's arithmetic. All foreign calls of this kernel are in this file.
//!
//! A number has the width that it was set with, or that of the modulus that it was last reduced by, whatever its value:
//! the library keeps leading zeros. `BN_mod_mul_montgomery` takes the same steps for all values where both factors have
//! the width of the modulus, and `BN_mod_exp_mont_consttime` reads all words of an exponent, in windows of fixed
//! position, and all of its table for each. Freed memory is wiped, also that of a context.

use crate::memory;
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

/// Ends the process: with the arguments that this file gives, the library fails only where memory runs out.
fn require(done: bool) {
    if !done {
        memory::exit("a number for Paillier's encryption cannot be had");
    }
}

/// A number. Its memory is wiped when it is dropped.
pub(super) struct Number(*mut BIGNUM);

// SAFETY: a number is memory of its own, which the library changes only through a pointer that is not const.
unsafe impl Send for Number {}
// SAFETY: as above.
unsafe impl Sync for Number {}

impl Number {
    /// Zero.
    pub(super) fn zero() -> Number {
        // SAFETY: no conditions.
        let number = unsafe { BN_new() };
        require(!number.is_null());
        Number(number)
    }

    /// From bytes, the least significant first.
    pub(super) fn new(bytes: &[u8]) -> Number {
        let mut number = Number::zero();
        number.set(bytes);
        number
    }

    /// Replaces the number, and its width by the length of the bytes.
    pub(super) fn set(&mut self, bytes: &[u8]) {
        // SAFETY: `bytes` is read for its length; the number is ours exclusively.
        require(unsafe { !BN_le2bn(bytes.as_ptr(), bytes.len(), self.0).is_null() });
    }

    /// Writes the number, with zeros up to the length of `out`, in which it must fit.
    pub(super) fn get(&self, out: &mut [u8]) {
        // SAFETY: `out` is written within its length.
        let fits = unsafe { BN_bn2le_padded(out.as_mut_ptr(), out.len(), self.0) } == 1;
        assert!(fits, "a number is read in its width");
    }

    /// Replaces the number by its greatest common divisor with another, and says whether that is 1. Only the widths
    /// and the result show.
    pub(super) fn is_coprime_to(&self, other: &Number, scratch: &mut Scratch) -> bool {
        let divisor = Number::zero();
        // SAFETY: all pointers are valid, and what is written is ours exclusively.
        unsafe {
            require(BN_gcd(divisor.0, self.0, other.0, scratch.0) == 1);
            BN_is_one(divisor.0) == 1
        }
    }

    /// Whether it is prime, by the test of Miller and Rabin with witnesses from the library's generator. A composite
    /// number shows; of a prime only the width does, and sometimes that a witness was drawn once more.
    ///
    /// `random`: whether it was drawn at random. Then fewer rounds make an error as unlikely, 2^-128; a number that
    /// someone chose passes with 2^-128 too.
    pub(super) fn is_prime(&self, random: bool, scratch: &mut Scratch) -> bool {
        let rounds = if random { BN_prime_checks_for_generation } else { BN_prime_checks_for_validation };
        let mut prime: c_int = 0;
        // SAFETY: all pointers are valid; there is no callback.
        require(unsafe { BN_primality_test(&mut prime, self.0, rounds, scratch.0, 0, null_mut()) } == 1);
        prime == 1
    }

    /// Whether a number of this many bits is the power of an integer with this exponent. Not constant-time.
    pub(super) fn vartime_is_power(&self, exponent: u32, bits: u32, scratch: &mut Scratch) -> bool {
        let (root, power, times) = (Number::zero(), Number::zero(), Number::zero());
        // SAFETY: all pointers are valid, and what is written is ours exclusively.
        unsafe {
            require(BN_set_word(times.0, exponent.into()) == 1);
            // The greatest root whose power is not above the number, from its top bit down.
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
        // SAFETY: it is from `zero`, and freed once.
        unsafe { BN_clear_free(self.0) }
    }
}

/// Room for what the library computes on the way. Each call or batch has its own.
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
        // SAFETY: it is from `new`, and freed once.
        unsafe { BN_CTX_free(self.0) }
    }
}

/// An odd modulus with Montgomery's representation: a number x is x R mod m, where R is 2 to the width of m in bits.
pub(super) struct Modulus {
    montgomery: *mut BN_MONT_CTX,
    number: Number,
}

// SAFETY: the library only reads a context of Montgomery's multiplication once it is made.
unsafe impl Send for Modulus {}
// SAFETY: as above.
unsafe impl Sync for Modulus {}

impl Modulus {
    /// From bytes, the least significant first, in whole words of which the last is not 0. Only the length shows.
    pub(super) fn new(bytes: &[u8], scratch: &mut Scratch) -> Modulus {
        let number = Number::new(bytes);
        // SAFETY: both pointers are valid.
        let montgomery = unsafe { BN_MONT_CTX_new_consttime(number.0, scratch.0) };
        require(!montgomery.is_null());
        Modulus { montgomery, number }
    }

    /// The modulus itself.
    pub(super) fn number(&self) -> &Number {
        &self.number
    }

    /// 1 in Montgomery's representation, in as many bytes as the modulus has.
    pub(super) fn one(&self, scratch: &mut Scratch, width: usize) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; width]);
        bytes[0] = 1;
        let mut one = Number::new(&bytes);
        self.enter(&mut one, scratch);
        one.get(&mut bytes);
        bytes
    }

    /// a b / R, in place of a. One of the two must be below m, the other below R; both of the width of m.
    pub(super) fn multiply(&self, a: &mut Number, b: &Number, scratch: &mut Scratch) {
        // SAFETY: all pointers are valid, `a` is ours exclusively, and the library allows it as input and output.
        require(unsafe { BN_mod_mul_montgomery(a.0, a.0, b.0, self.montgomery, scratch.0) } == 1);
    }

    /// a a / R, in place, for a below m.
    pub(super) fn square(&self, a: &mut Number, scratch: &mut Scratch) {
        // SAFETY: as in `multiply`.
        require(unsafe { BN_mod_mul_montgomery(a.0, a.0, a.0, self.montgomery, scratch.0) } == 1);
    }

    /// a R mod m, in place, for any a of the width of m.
    pub(super) fn enter(&self, a: &mut Number, scratch: &mut Scratch) {
        // SAFETY: as in `multiply`.
        require(unsafe { BN_to_montgomery(a.0, a.0, self.montgomery, scratch.0) } == 1);
    }

    /// a / R mod m, in place, for any a below m R of at most twice the width.
    pub(super) fn leave(&self, a: &mut Number, scratch: &mut Scratch) {
        // SAFETY: as in `multiply`.
        require(unsafe { BN_from_montgomery(a.0, a.0, self.montgomery, scratch.0) } == 1);
    }

    /// base^exponent, in place of the base, not in Montgomery's representation. The base is below m.
    pub(super) fn power(&self, base: &mut Number, exponent: &Number, scratch: &mut Scratch) {
        // SAFETY: as in `multiply`; the context is that of the modulus.
        let done = unsafe {
            BN_mod_exp_mont_consttime(base.0, base.0, exponent.0, self.number.0, scratch.0, self.montgomery)
        };
        require(done == 1);
    }
}

impl Drop for Modulus {
    fn drop(&mut self) {
        // SAFETY: it is from `new`, and freed once.
        unsafe { BN_MONT_CTX_free(self.montgomery) }
    }
}
