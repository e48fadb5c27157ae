//! The only generator of randomness: ChaCha20, seeded by the operating system.
//!
//! It is passed as an argument wherever randomness is needed. Parallel work forks it by index, not by thread, so that
//! results do not depend on the number of threads.

use crate::error::{Error, Result};
use crate::secret::{Secret, Secrets};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use zeroize::Zeroizing;

/// A cryptographic generator, whose state is zeroized on drop.
pub struct Prng {
    stream: ChaCha20Rng,
    fork_key: Secret<[u8; 32]>,
}

impl Prng {
    /// Returns a generator seeded by the operating system; the only constructor for real runs.
    pub fn from_os() -> Result<Self> {
        Ok(Self::from_seed(&*system_seed()?))
    }

    /// Returns a generator with a fixed seed, for forks and tests; see `hazmat::seeded`.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        let derive = |what: &str| blake3::derive_key(what, seed);
        let stream = Zeroizing::new(derive("veilset 2026-11 Prng stream"));
        Prng {
            stream: ChaCha20Rng::from_seed(*stream),
            fork_key: Secret::new(derive("veilset 2026-11 Prng fork")),
        }
    }

    /// Returns an independent generator for part `index` of a piece of work. An index always gives the same generator,
    /// so use each index once.
    pub fn fork(&self, index: u64) -> Prng {
        let seed = Zeroizing::new(*blake3::keyed_hash(&self.fork_key, &index.to_le_bytes()).as_bytes());
        Self::from_seed(&seed)
    }

    /// Returns an independent generator, seeded with the next bytes of this one and so different on each call.
    pub fn split(&mut self) -> Prng {
        let seed = Zeroizing::new(self.bytes());
        Self::from_seed(&seed)
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        self.stream.fill_bytes(out);
    }

    /// Returns an array of random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0u8; N];
        self.fill(&mut out);
        out
    }

    /// Returns a uniform number below `bound`, which is at least 1 (0 is treated as 1).
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's method: the high half of a 128-bit product, unless the low half is below 2^64 mod `bound`.
        let threshold = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.stream.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a uniform permutation of `0..n` (Fisher-Yates). Every use states its purpose.
    pub fn permutation(&mut self, n: usize) -> Secrets<u32> {
        let mut p = Secrets::from((0..n as u32).collect::<Vec<_>>());
        for i in (1..n).rev() {
            p.swap(i, self.below(i as u64 + 1) as usize);
        }
        p
    }
}

/// A seed from the operating system.
fn system_seed() -> Result<Zeroizing<[u8; 32]>> {
    let mut seed = Zeroizing::new([0u8; 32]);
    getrandom::fill(seed.as_mut_slice())
        .map_err(|e| Error::bug(format!("the operating system gave no random bytes: {e}")))?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::every_bit_is_random;
    use std::collections::HashSet;

    #[test]
    fn forks_differ_and_are_repeatable() {
        let rng = Prng::from_seed(&[1; 32]);
        let a: [u8; 32] = rng.fork(0).bytes();
        assert_eq!(a, rng.fork(0).bytes());
        assert_ne!(a, rng.fork(1).bytes::<32>());
        assert_ne!(a, Prng::from_seed(&[2; 32]).fork(0).bytes::<32>());
    }

    #[test]
    fn what_is_split_off_is_another_one_each_time() {
        let mut rng = Prng::from_seed(&[1; 32]);
        let all = [rng.split(), rng.split(), rng.fork(0), rng].map(|mut rng| rng.bytes::<32>());
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 4);
        assert_eq!(all[0], Prng::from_seed(&[1; 32]).split().bytes());
        assert_ne!(all[0], Prng::from_seed(&[2; 32]).split().bytes());
    }

    #[test]
    fn two_generators_from_the_system_differ() {
        assert_ne!(Prng::from_os().unwrap().bytes::<32>(), Prng::from_os().unwrap().bytes::<32>());
    }

    #[test]
    fn a_permutation_holds_every_number_once() {
        let mut rng = Prng::from_seed(&[3; 32]);
        for n in [0, 1, 2, 3, 1000] {
            let mut p = rng.permutation(n);
            p.sort_unstable();
            assert!(p.iter().enumerate().all(|(i, &v)| i == v as usize));
            assert_eq!(p.len(), n);
        }
    }

    #[test]
    fn every_permutation_of_four_is_about_equally_likely() {
        let mut rng = Prng::from_seed(&[4; 32]);
        let mut seen = std::collections::HashMap::new();
        for _ in 0..24_000 {
            *seen.entry(rng.permutation(4).to_vec()).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 24);
        // 23 degrees of freedom: a value above 70 has probability 1e-6.
        let chi2: f64 = seen.values().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 70.0, "chi-squared {chi2}");
    }

    #[test]
    fn below_is_in_range() {
        let mut rng = Prng::from_seed(&[5; 32]);
        for bound in [1, 2, 3, 7, 1 << 40, u64::MAX] {
            for _ in 0..100 {
                assert!(rng.below(bound) < bound);
            }
        }
    }

    #[test]
    fn seeds_are_of_full_width_and_every_byte_of_them_counts() {
        let seeds: Vec<[u8; 32]> = (0..400).map(|_| *system_seed().unwrap()).collect();
        every_bit_is_random(&seeds, 256);
        let mut all = HashSet::new();
        for at in 0..=32 {
            let mut seed = [7; 32];
            seed.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1);
            let mut rng = Prng::from_seed(&seed);
            all.extend([rng.bytes::<32>(), rng.fork(0).bytes()]);
        }
        assert_eq!(all.len(), 2 * 33);
    }

    /// There can be many parts, such as bins or runs of a test.
    #[test]
    fn every_byte_of_an_index_counts() {
        let rng = Prng::from_seed(&[1; 32]);
        let indices = (0..64).map(|bit| 1 << bit).chain([0]);
        let all: HashSet<[u8; 32]> = indices.map(|index| rng.fork(index).bytes()).collect();
        assert_eq!(all.len(), 65);
    }

    /// Random bytes that become visible are part of the stream, and must not reveal any fork.
    #[test]
    fn forks_do_not_follow_from_the_stream() {
        let mut rng = Prng::from_seed(&[1; 32]);
        let mut of_fork_key = [0; 32];
        ChaCha20Rng::from_seed(*rng.fork_key).fill_bytes(&mut of_fork_key);
        assert_ne!(rng.bytes::<32>(), of_fork_key);
    }

    /// Without rejection, a word w would give floor(3 w / 4): half of the numbers would be divisible by three.
    #[test]
    fn numbers_below_a_large_bound_are_equally_likely() {
        let mut rng = Prng::from_seed(&[6; 32]);
        let divisible = (0..3000).filter(|_| rng.below(3 << 62).is_multiple_of(3)).count();
        // 1000 expected, with a standard deviation of 26.
        assert!(divisible.abs_diff(1000) < 160, "{divisible}");
    }
}
