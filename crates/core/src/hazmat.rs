//! What real runs must not use.

use crate::hash::SessionId;
use crate::rng::Prng;

/// A generator with a fixed seed, for the benchmark, which runs a party again on a recording. Whoever knows
/// the seed knows every secret of the run.
pub fn seeded(seed: &[u8; 32]) -> Prng {
    Prng::from_seed(seed)
}

/// A session id of the caller's choice, for benchmarks and fuzz targets that run one part of a protocol. Two sessions
/// that share an id share every hash function of the protocols.
pub const fn session_id(bytes: [u8; 32]) -> SessionId {
    SessionId::of(bytes)
}
