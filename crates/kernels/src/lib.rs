//! Batch kernels of veilset: the inner loops that determine how long a run takes.
//!
//! The public interface is:
//!
//! * [`curve25519`]: x-only Elligator2 and the Montgomery ladder, in batches.
//! * [`ristretto255`]: the group of RFC 9496, in batches.
//! * `p256`: the map of RFC 9380 to P-256, and multiplication with aws-lc, in batches.
//! * `paillier`: Paillier's encryption with aws-lc's big integers, in batches.
//! * [`aes`]: AES-128: blocks, counter mode and a tweakable correlation-robust hash under one key; blocks with a key
//!   each.
//! * [`gf128`] and [`gf64`]: products in GF(2^128) and GF(2^64).
//! * [`bytes`]: sums of byte strings.
//! * [`band`]: sums over rows of a band matrix, for oblivious key-value stores.
//! * [`hash`]: BLAKE3 of many short messages.
//! * [`polynomial`]: interpolation and evaluation of polynomials over GF(2^64), GF(2^72) and GF(2^80), in batches.
//! * [`transpose`]: transposition of a 128-column bit matrix, for oblivious-transfer extension.
//! * [`Backend`]: the code path that runs, and its selection in tests.
//!
//! Every function works on the calling thread, and most of them on slices; callers split their batches over threads. Each
//! kernel that lists `BACKENDS`, or its field, has a `portable` module as its specification, and paths for x86-64 that
//! are tested against it. The `unsafe` code of the workspace is here, apart from an allocator (veilset-memory) and Arrow's
//! C interface in Python.
//!
//! The features `p256` and `paillier`, which are on by default, link aws-lc. Without them only Rust is compiled, and what
//! the crate `blake3` has in assembly or C.
//!
//! # Constant time
//!
//! No branch and no memory address depends on a scalar, a point, a field element, a message, an AES key or the data
//! under it; only lengths are revealed, and by `p256` which points are valid. Where the rows of [`band`] start is public.
//! `paillier` lists what it reveals. Multiplication of words, and of doubles that are 0 or have an absolute value of at
//! least 1, is assumed to be constant-time, as it is on current processors. The tests in
//! `tests/constant_time` look for secret-dependent branches and addresses in the compiled code, including aws-lc's code
//! for P-256 and for Paillier's encryption.
//!
//! # Limitations
//!
//! * Copies that the compiler leaves in registers and in stack slots are not wiped. Scalars and key schedules are
//!   wiped; points of curves and intermediate elements of their fields are not.
//! * There is no protection from power, radiation and fault attacks, or from processors that speculate past a wiped
//!   value.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod aes;
mod backend;
pub mod band;
pub mod bytes;
#[cfg(target_arch = "x86_64")]
mod clmul;
pub mod curve25519;
mod field;
pub mod gf128;
pub mod gf64;
pub mod hash;
#[cfg(test)]
mod oracle;
#[cfg(feature = "p256")]
pub mod p256;
#[cfg(feature = "paillier")]
pub mod paillier;
pub mod polynomial;
#[cfg(target_arch = "x86_64")]
mod registers;
pub mod ristretto255;
pub mod transpose;

pub use backend::Backend;
