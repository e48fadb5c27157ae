//! Groups in which the protocols work.

pub mod curve25519;
pub mod ristretto255;
