//! Keyed BLAKE3 of many short messages at once.
//!
//! Protocols hash tens of millions of messages of one block under one key. The crate `blake3` vectorises within a long
//! message; here each lane of a vector has its own message. Constant-time in key and messages.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

use crate::Backend;
use crate::backend::on_path;

/// The paths of this kernel, best first.
pub const BACKENDS: &[Backend] = &[Backend::Avx512, Backend::Avx2, Backend::Portable];

/// Maximum length of a message in bytes: one block.
pub const BLOCK: usize = 64;

/// Writes the keyed hash of the first `lengths[i]` bytes of `messages[i]` to `out[i]`. The other bytes must be zeros,
/// or the hash is wrong.
///
/// # Panics
///
/// If a length is more than [`BLOCK`], or the slices differ in length. These are errors of the caller, not of a peer.
pub fn keyed_hash(key: &[u8; 32], lengths: &[u8], messages: &[[u8; BLOCK]], out: &mut [[u8; 32]]) {
    keyed_hash_with(Backend::best(BACKENDS), key, lengths, messages, out);
}

/// [`keyed_hash`] on the requested path; returns the path that ran.
///
/// # Panics
///
/// Panics as [`keyed_hash`] does.
pub fn keyed_hash_with(
    backend: Backend,
    key: &[u8; 32],
    lengths: &[u8],
    messages: &[[u8; BLOCK]],
    out: &mut [[u8; 32]],
) -> Backend {
    let fits = lengths.iter().all(|&length| usize::from(length) <= BLOCK);
    assert!(fits, "keyed_hash: a message fits into a block");
    let same = messages.len() == out.len() && messages.len() == lengths.len();
    assert!(same, "keyed_hash: as many hashes as messages and lengths");
    on_path!(backend, keyed_hash(key, lengths, messages, out), { Avx512 => wide, Avx2 => narrow }).0
}
