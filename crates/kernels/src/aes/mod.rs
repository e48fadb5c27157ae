//! AES-128 under one expanded key: blocks, counter mode, and a tweakable correlation-robust hash; and blocks with a
//! separate key each.
//!
//! Blocks are 16 bytes; counters and tweaks are little-endian 128-bit numbers that wrap around. Every path is
//! constant-time in keys, blocks, counters and tweaks.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::Backend;
use crate::backend::on_path;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = &[Backend::Vaes512, Backend::Vaes256, Backend::AesNi, Backend::Portable];

/// Runs a function under the cipher's key on the requested path, or else on the portable one, for which the key is expanded
/// again if its schedule is that of another path. Returns the path that ran.
macro_rules! on_own_path {
    ($cipher:ident, $backend:ident, $function:ident($($argument:ident),+)) => {
        match &$cipher.0 {
            Schedule::Portable(cipher) => {
                cipher.$function($($argument),+);
                Backend::Portable
            }
            #[cfg(target_arch = "x86_64")]
            Schedule::Own(keys) => on_path!(
                $backend,
                $function(keys, $($argument),+),
                { Vaes512 => four, Vaes256 => two, AesNi => one },
                portable::Cipher::new(keys.key()).$function($($argument),+)
            )
            .0,
        }
    };
}

/// AES-128 with its key schedule, which is wiped on drop.
pub struct Aes128(Schedule);

/// The key schedule of the path that runs here.
enum Schedule {
    Portable(portable::Cipher),
    /// Used only if the processor can run the AES-NI path.
    #[cfg(target_arch = "x86_64")]
    Own(x86::RoundKeys),
}

impl fmt::Debug for Aes128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aes128").finish_non_exhaustive()
    }
}

impl Aes128 {
    /// Expands a key.
    pub fn new(key: &[u8; 16]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if Backend::AesNi.is_available() {
            // SAFETY: is_available has confirmed that the processor supports the instructions of `expand`.
            return Aes128(Schedule::Own(unsafe { x86::expand(key) }));
        }
        Aes128(Schedule::Portable(portable::Cipher::new(key)))
    }

    /// Replaces each block with its encryption.
    pub fn encrypt(&self, blocks: &mut [[u8; 16]]) {
        self.encrypt_with(Backend::best(BACKENDS), blocks);
    }

    /// Writes the key stream of counter mode: the encryptions of `first`, `first + 1`, …, the last truncated to fit.
    pub fn ctr(&self, first: u128, out: &mut [u8]) {
        self.ctr_with(Backend::best(BACKENDS), first, out);
    }

    /// Applies the tweakable correlation-robust hash TMMO of Guo, Katz, Wang and Yu (S&P 2020, section 7.4): where pi
    /// is this cipher and t = `first_tweak` + i, block i = x becomes pi(pi(x) ^ t) ^ pi(x).
    ///
    /// The key may be public. Under one key, tweaks must not repeat for related inputs. pi is modelled as a random
    /// permutation. This is no substitute for a hash function if the peer chooses the key.
    pub fn tcr_hash(&self, first_tweak: u128, x: &mut [[u8; 16]]) {
        self.tcr_hash_with(Backend::best(BACKENDS), first_tweak, x);
    }

    /// [`Aes128::encrypt`] on the requested path; returns the path that ran.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    pub fn encrypt_with(&self, backend: Backend, blocks: &mut [[u8; 16]]) -> Backend {
        on_own_path!(self, backend, encrypt(blocks))
    }

    /// [`Aes128::ctr`] on the requested path; returns the path that ran.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    pub fn ctr_with(&self, backend: Backend, first: u128, out: &mut [u8]) -> Backend {
        on_own_path!(self, backend, ctr(first, out))
    }

    /// [`Aes128::tcr_hash`] on the requested path; returns the path that ran.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    pub fn tcr_hash_with(&self, backend: Backend, first_tweak: u128, x: &mut [[u8; 16]]) -> Backend {
        on_own_path!(self, backend, tcr_hash(first_tweak, x))
    }
}

/// Encrypts each block under its own key. Except on the portable path, many key schedules are computed at once, on the fly,
/// and not stored.
///
/// # Panics
///
/// If the numbers of blocks and keys differ, which is an error of the caller.
pub fn encrypt_each(keys: &[[u8; 16]], blocks: &mut [[u8; 16]]) {
    encrypt_each_with(Backend::best(BACKENDS), keys, blocks);
}

/// [`encrypt_each`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`encrypt_each`] does.
pub fn encrypt_each_with(backend: Backend, keys: &[[u8; 16]], blocks: &mut [[u8; 16]]) -> Backend {
    assert_eq!(keys.len(), blocks.len(), "encrypt_each: as many blocks as keys");
    on_path!(backend, encrypt_each(keys, blocks), { Vaes512 => four, Vaes256 => two, AesNi => one }).0
}
