//! The threads that a run computes on.
//!
//! A party's part of a run is straight-line code that waits for its peer, so it runs on threads of its own: those of a
//! pool must never wait for anything but each other. What it computes in parallel, it hands to its pool
//! ([`Threads::run`]). The functions on slices that do the work know no pool: they use [`rayon`], which takes that of
//! the thread that it is called on. Called on any other thread they would use the pool that all of the program shares.

use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// Some threads to compute on. A clone has the same ones.
#[derive(Clone)]
pub struct Threads(Option<Arc<rayon::ThreadPool>>);

static GLOBAL: Threads = Threads(None);

impl Threads {
    /// `n` threads that compute nothing else; as many as the machine has processors, if it is 0.
    ///
    /// # Errors
    /// [`Error::Usage`] if the system does not give us so many.
    pub fn new(n: usize) -> Result<Threads> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
        let pool =
            pool.map_err(|e| Error::usage(format!("{n} threads cannot be started: {e}. Use fewer")))?;
        Ok(Threads(Some(Arc::new(pool))))
    }

    /// The threads that all of the program shares: rayon's global pool.
    pub fn global() -> &'static Threads {
        &GLOBAL
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.run(rayon::current_num_threads)
    }

    /// Computes on these threads, and waits for the result. `work` waits for nothing: no channel, no lock, no file.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let Some(pool) = &self.0 else { return work() };
        let (mut work, mut result) = (Some(work), None);
        install(pool, &mut || result = work.take().map(|work| work()));
        let Some(result) = result else { unreachable!("the pool has run the work") };
        result
    }
}

/// Compiled once: rayon's part of it would take a second of compilation for every ten callers.
fn install(pool: &rayon::ThreadPool, work: &mut (dyn FnMut() + Send)) {
    pool.install(work);
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}
