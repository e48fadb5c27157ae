//! The two tiers of the tests.
//!
//! `cargo test --workspace` runs the first tier, which checks a change in minutes. A test with more cases than that allows
//! draws some of them with this crate. `scripts/nightly` sets `VEILSET_TESTS=whole`, which runs all cases.
//!
//! The draws follow from `VEILSET_TEST_SEED` and the name of the test. If the variable is not set, the seed is the day (UTC),
//! so the first tier reaches every case in time, and a test draws the same cases all day. Each failure of a test that draws
//! shows the seed.

#![allow(clippy::panic, clippy::unwrap_used)]

#[cfg(unix)]
pub mod program;

use std::collections::BTreeMap;
use std::env;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The environment variable with the seed, which is any text.
pub const SEED: &str = "VEILSET_TEST_SEED";

/// The environment variable that chooses the tier: `whole`, or unset or empty for the first.
pub const TESTS: &str = "VEILSET_TESTS";

/// Whether the whole tier is chosen, which leaves out no case.
///
/// # Panics
/// If `VEILSET_TESTS` is set, not empty and not `whole`: a misspelt tier must not pass for the first one.
pub fn whole() -> bool {
    static WHOLE: LazyLock<bool> = LazyLock::new(|| match env::var(TESTS).as_deref() {
        Ok("whole") => true,
        Ok("") | Err(_) => false,
        Ok(other) => panic!("{TESTS} is {other:?}. Set it to whole, or not at all"),
    });
    *WHOLE
}

/// Returns the seed: `VEILSET_TEST_SEED`, or the number of the day since 1970-01-01 (UTC).
pub fn seed() -> &'static str {
    static SEED_TEXT: LazyLock<String> = LazyLock::new(|| {
        let given = env::var(SEED).ok().filter(|text| !text.is_empty());
        given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (now.as_secs() / (24 * 60 * 60)).to_string()
        })
    });
    &SEED_TEXT
}

/// Returns an address of this machine on which nobody listens, and on which no other test will. On Linux the whole network 127
/// leads to the machine itself, so each call draws its own address there; elsewhere only the port is drawn.
///
/// # Panics
/// If no port is free.
pub fn free_address() -> String {
    let [.., a, b, c] = RandomState::new().hash_one(0).to_le_bytes();
    // Neither the network's own address nor 127.0.0.1, of which the system gives ports to connections.
    let drawn = Ipv4Addr::new(127, a | 1, b, c.clamp(1, 254));
    let address = if cfg!(target_os = "linux") { drawn } else { Ipv4Addr::LOCALHOST };
    TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().to_string()
}

/// A generator for the draws of a test. Not for secrets.
#[derive(Debug, Clone)]
pub struct Draw {
    state: u64,
    whole: bool,
}

impl Draw {
    /// Makes the generator of the test with this name. Prints the seed, which the test runner shows if the test fails.
    pub fn new(test: &str) -> Draw {
        println!("{SEED}={} {}", seed(), if whole() { "(whole)" } else { "" });
        Draw::with(seed(), test, whole())
    }

    fn with(seed: &str, test: &str, whole: bool) -> Draw {
        // FNV-1a.
        let bytes = seed.bytes().chain([0]).chain(test.bytes());
        let state = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Draw { state, whole }
    }

    /// Whether the whole tier is chosen, which leaves out no case.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns the next 64 bits of SplitMix64.
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which must not be 0. Its bias is below n / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.word()) * n as u128) >> 64) as usize
    }

    /// Draws `n` of the cases, and returns them in their order. Returns all if there are fewer, and in the whole tier.
    pub fn some<T>(&mut self, n: usize, cases: impl IntoIterator<Item = T>) -> Vec<T> {
        self.of_each(n, cases, |_| ())
    }

    /// Draws `n` of the cases of each kind, and returns them in the order of the cases. Returns all of a kind if there are
    /// fewer, and all cases in the whole tier.
    pub fn of_each<T, K: Ord>(
        &mut self,
        n: usize,
        cases: impl IntoIterator<Item = T>,
        kind: impl Fn(&T) -> K,
    ) -> Vec<T> {
        let cases: Vec<T> = cases.into_iter().collect();
        if self.whole {
            return cases;
        }
        let mut kinds: BTreeMap<K, Vec<usize>> = BTreeMap::new();
        for (i, case) in cases.iter().enumerate() {
            kinds.entry(kind(case)).or_default().push(i);
        }
        let mut drawn = vec![false; cases.len()];
        for mut places in kinds.into_values() {
            for _ in 0..n.min(places.len()) {
                drawn[places.swap_remove(self.below(places.len()))] = true;
            }
        }
        let mut drawn = drawn.into_iter();
        cases.into_iter().filter(|_| drawn.next().unwrap_or(false)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_seed_and_test_draw_the_same_and_others_do_not() {
        let words = |seed, test| Draw::with(seed, test, false).word();
        assert_eq!(words("1", "a"), words("1", "a"));
        let all = [words("1", "a"), words("2", "a"), words("1", "b"), words("1a", ""), words("", "1a")];
        assert_eq!(BTreeSet::from(all).len(), 5);
    }

    #[test]
    fn so_many_of_each_kind_are_drawn_in_order() {
        let cases = || (0..100).map(|i| (i % 7, i));
        let mut draw = Draw::with("1", "a", false);
        let drawn = draw.of_each(3, cases(), |case| case.0);
        assert_eq!(drawn.len(), 21);
        assert!(drawn.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert!((0..7).all(|kind| drawn.iter().filter(|case| case.0 == kind).count() == 3));
        assert_eq!(draw.some(200, cases()).len(), 100);
        assert!(draw.some(0, cases()).is_empty());
        assert_eq!(Draw::with("1", "a", true).some(3, cases()).len(), 100);
    }

    #[test]
    fn every_case_is_drawn_in_time() {
        let mut seen = BTreeSet::new();
        for day in 0..100 {
            seen.extend(Draw::with(&day.to_string(), "a", false).some(5, 0..50));
        }
        assert_eq!(seen.len(), 50);
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut draw = Draw::with("1", "a", false);
        let mut counts = [0; 10];
        (0..10_000).for_each(|_| counts[draw.below(10)] += 1);
        assert!(counts.iter().all(|&n| (850..1150).contains(&n)), "{counts:?}");
    }
}
