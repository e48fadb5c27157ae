//! The speed of a machine: the time of each primitive in which costs are counted ([`crate::work`]).
//!
//! Times are built in for three kinds of processors. [`measure()`] measures this machine.

mod file;
mod measure;

pub use file::{check_place, load, save};
pub use measure::{measure, this_machine};

use crate::threads::MOST as MOST_THREADS;
use crate::work::{Primitive, Work};
use veilset_kernels::{Backend, curve25519};

/// The number of primitives.
const COUNT: usize = Primitive::ALL.len();
/// The longest plausible time of a primitive: a hundred seconds, in picoseconds.
const MOST: u64 = 100_000_000_000_000;

/// The maximum factor by which another machine is taken to be faster or slower than ours.
const FARTHEST: f64 = 8.0;

/// The time of each primitive on one thread, in picoseconds, and the number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speeds {
    picoseconds: [u64; COUNT],
    /// Number of threads that compute.
    pub threads: usize,
}

impl Speeds {
    /// Returns the built-in speeds for a processor like this one.
    pub fn built_in(threads: usize) -> Speeds {
        Speeds::of_kind(Speeds::path(), threads)
    }

    /// Returns the built-in speeds for a processor whose best path is this one.
    pub fn of_kind(path: Backend, threads: usize) -> Speeds {
        let of = match path {
            Backend::Ifma512 => AVX512,
            Backend::Fma => AVX2,
            _ => PORTABLE,
        };
        Speeds { picoseconds: of.map(|nanoseconds| (nanoseconds * 1000.0) as u64), threads }
    }

    /// The best path of the curve, which determines the kind of vectors that this program uses.
    fn path() -> Backend {
        let mut paths = curve25519::BACKENDS.iter().copied();
        paths.find(|path| path.is_available()).unwrap_or(Backend::Portable)
    }

    /// Makes speeds from times in picoseconds, in the order of [`Primitive::ALL`].
    ///
    /// # Errors
    /// A text that names a time that is 0 or more than a hundred seconds, or says that there are no threads, or more than a
    /// pool can have.
    pub fn new(picoseconds: [u64; COUNT], threads: usize) -> Result<Speeds, String> {
        let all = Primitive::ALL.into_iter().zip(picoseconds);
        match all.into_iter().find(|(_, time)| !(1..=MOST).contains(time)) {
            Some((primitive, time)) => Err(format!("a time of {time} picoseconds for {}", primitive.name())),
            None if threads == 0 => Err("no threads".into()),
            None if threads > MOST_THREADS => Err(format!("{threads} threads; the most are {MOST_THREADS}")),
            None => Ok(Speeds { picoseconds, threads }),
        }
    }

    /// The name of each primitive and its time in picoseconds.
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        Primitive::ALL.into_iter().map(|primitive| (primitive.name().into(), self.picoseconds(primitive)))
    }

    /// Makes speeds from pairs of a primitive's name and picoseconds. Unknown names are ignored; what is missing takes the
    /// built-in time of a processor like this one.
    ///
    /// # Errors
    /// As [`Speeds::new`], or a text that names a primitive that occurs twice.
    pub fn of_named(times: &[(String, u64)], threads: usize) -> Result<Speeds, String> {
        let mut picoseconds = Speeds::built_in(1).picoseconds;
        for primitive in Primitive::ALL {
            let mut of = times.iter().filter(|(name, _)| name == primitive.name());
            match (of.next(), of.next()) {
                (Some((name, _)), Some(_)) => return Err(format!("two times for {name}")),
                (Some((_, time)), None) => picoseconds[primitive as usize] = *time,
                (None, _) => {}
            }
        }
        Speeds::new(picoseconds, threads)
    }

    /// Returns the speeds of the same machine on this many threads.
    #[must_use]
    pub fn on(self, threads: usize) -> Speeds {
        Speeds { threads, ..self }
    }

    /// These speeds with all times multiplied by one factor, so that they are like the other machine's. The factor is the
    /// median, over all primitives, of the ratios of the times on all threads, but at most [`FARTHEST`] and at least its
    /// inverse.
    pub(crate) fn like(self, other: &Speeds) -> Speeds {
        let on_all =
            |speeds: &Speeds, at: usize| speeds.picoseconds[at] as f64 / speeds.threads.max(1) as f64;
        let mut times: [f64; COUNT] = std::array::from_fn(|at| on_all(other, at) / on_all(&self, at));
        times.sort_by(f64::total_cmp);
        let times = times[COUNT / 2].clamp(1.0 / FARTHEST, FARTHEST);
        let picoseconds = self.picoseconds.map(|one| ((one as f64 * times) as u64).clamp(1, MOST));
        Speeds { picoseconds, ..self }
    }

    /// Returns the time of a primitive on one thread, in picoseconds.
    pub fn picoseconds(&self, primitive: Primitive) -> u64 {
        self.picoseconds[primitive as usize]
    }

    /// Returns the time of this work in seconds: on all threads, but on one for primitives that are serial.
    pub fn seconds(&self, work: &Work) -> f64 {
        let time = |(primitive, n): (Primitive, u64)| {
            let threads = if primitive.is_serial() { 1 } else { self.threads };
            n as f64 * self.picoseconds(primitive) as f64 / 1e12 / threads as f64
        };
        work.counts().map(time).sum()
    }
}

/// Nanoseconds on an AMD EPYC with Zen 5, in the order of [`Primitive::ALL`], as measured there. The time of a correlated OT is
/// scaled from its ratio to other OTs on an Intel Xeon.
const AVX512: [f64; COUNT] = [
    80.0, 2400.0, 30_000.0, 31_500.0, 3600.0, 20_000.0, 60.0, 25.0, 56.0, 120.0, 60.0, 60.0, 2.0, 400.0,
    60.0, 20.0, 2000.0, 4e6, 370_000.0, 700.0,
];
/// Nanoseconds on the same processor without AVX-512.
const AVX2: [f64; COUNT] = [
    100.0, 7500.0, 30_000.0, 31_500.0, 12_500.0, 40_000.0, 70.0, 30.0, 66.0, 130.0, 80.0, 60.0, 2.2, 700.0,
    70.0, 22.0, 2300.0, 4e6, 370_000.0, 700.0,
];
/// Nanoseconds without vector instructions of the program's own, as on other processors.
const PORTABLE: [f64; COUNT] = [
    200.0, 31_000.0, 30_000.0, 31_500.0, 48_000.0, 80_000.0, 300.0, 125.0, 280.0, 300.0, 300.0, 60.0, 8.0,
    5000.0, 300.0, 100.0, 8000.0, 8e6, 400_000.0, 1500.0,
];

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
