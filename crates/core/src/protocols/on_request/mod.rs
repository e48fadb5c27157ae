//! The entries of the protocols that are used on request only: none of their offers may be picked if the user named no protocol
//! ([`super::Unasked::No`]), unless nothing else meets the given terms.
//!
//! They are for special cases and for comparison. `poprf` works in ristretto255 only; `sigma-dh` computes a union whose sender
//! learns how many items match, and `sigma-ahe` the same from homomorphic encryption; `sigma-fhe` is for a receiver with very
//! few items; `krtw19-plain` saves a little traffic where runs do not break off; with `dc17` the receiver encrypts its set
//! once, for many partners. Their entries are kept apart from those that a new reader needs. Callers find all entries in
//! [`super`].

mod dc17;
mod krtw19_plain;
mod poprf;
mod sigma;
mod sigma_ahe;
mod sigma_dh;
#[cfg(feature = "fhe")]
mod sigma_fhe;

pub(super) use dc17::short_moduli;
pub use dc17::{DC17, allow_short_moduli, under_cipher};
pub use krtw19_plain::KRTW19_PLAIN;
pub use poprf::POPRF;
pub use sigma_ahe::SIGMA_AHE;
pub use sigma_dh::SIGMA_DH;
#[cfg(feature = "fhe")]
pub use sigma_fhe::SIGMA_FHE;
