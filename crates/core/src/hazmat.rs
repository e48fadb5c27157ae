//! Functions that real runs must not use.

use crate::hash::SessionId;
use crate::rng::Prng;

/// Returns a generator with a fixed seed, for the benchmark, which reruns a party on a recording. The seed reveals
/// every secret of the run.
pub fn seeded(seed: &[u8; 32]) -> Prng {
    Prng::from_seed(seed)
}

/// Returns a session id of the caller's choice, for benchmarks and fuzz targets that run one part of a protocol. Two
/// sessions with the same id share every hash function of the protocols.
pub const fn session_id(bytes: [u8; 32]) -> SessionId {
    SessionId::of(bytes)
}
