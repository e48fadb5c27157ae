//! The threads that a run computes on.
//!
//! A party's part of a run is straight-line code that waits for its peer, so it runs on threads of its own: those of a
//! pool must never wait for anything but each other. What it computes in parallel, it hands to its pool
//! ([`Threads::run`]). The functions on slices that do the work know no pool: they use [`rayon`], which takes that of
//! the thread that it is called on. Called on any other thread they would use the pool that all of the program shares.

use crate::error::{Error, Result};
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// The most that a party computes on: as many as rayon has in a pool.
pub const MOST: usize = 0xffff;

/// Starts a thread of a scope, where [`Scope::spawn`] would panic if the system gives us none.
///
/// # Errors
/// [`Error::Usage`], which says what to do.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    builder()?.spawn_scoped(scope, work).map_err(|e| none(&e))
}

/// What starts a thread. In tests it may fail, as if the system gave us none.
fn builder() -> Result<Builder> {
    #[cfg(test)]
    if refused::next() {
        return Err(none(&io::Error::from(io::ErrorKind::WouldBlock)));
    }
    Ok(Builder::new())
}

/// The error if the system gives us no thread.
pub fn none(e: &io::Error) -> Error {
    Error::usage(format!(
        "no thread can be started: {e}. Allow more threads (ulimit -u), or more memory, then run again"
    ))
    .because(e)
}

/// Threads that the system does not give, in tests.
#[cfg(test)]
pub(crate) mod refused {
    use std::cell::Cell;

    thread_local! {
        static AFTER: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// From now on, this thread can start so many threads, and then none.
    pub(crate) fn after(some: Option<usize>) {
        AFTER.set(some);
    }

    pub(super) fn next() -> bool {
        let left = AFTER.get();
        AFTER.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    }
}

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
        if n > MOST {
            return Err(Error::usage(format!(
                "{n} threads are more than a party can have. Use at most {MOST}"
            )));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
        let pool = pool.map_err(|e| {
            Error::usage(format!("{n} threads cannot be started: {e}. Use fewer, or allow more (ulimit -u)"))
        })?;
        Ok(Threads(Some(Arc::new(pool))))
    }

    /// The threads that all of the program shares: rayon's global pool.
    pub fn global() -> &'static Threads {
        &GLOBAL
    }

    /// Starts those that all of the program shares, if these are they. Without this, the first use starts them, and panics if the
    /// system does not give us so many.
    ///
    /// # Errors
    /// [`Error::Usage`] if it does not, now or at an earlier call.
    pub fn check(&self) -> Result<()> {
        static FAILED: OnceLock<Option<String>> = OnceLock::new();
        if self.0.is_some() {
            return Ok(());
        }
        let failed = FAILED.get_or_init(|| {
            let started = rayon::ThreadPoolBuilder::new().build_global();
            // Without a cause, somebody else has started them.
            started.err().filter(|e| std::error::Error::source(e).is_some()).map(|e| e.to_string())
        });
        match failed {
            None => Ok(()),
            Some(e) => Err(Error::usage(format!(
                "the threads to compute on cannot be started: {e}. Allow more threads (ulimit -u), or use fewer"
            ))),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.run(rayon::current_num_threads)
    }

    /// Computes on these threads, and waits for the result. Whoever has not made them with [`Threads::new`] calls
    /// [`Threads::check`] before. `work` waits for nothing: no channel, no lock, no file.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Channel, Message};
    use std::thread;

    const BYTES: Message<[u8]> = Message::new(1, "bytes");

    #[test]
    fn a_thread_that_cannot_be_had_is_an_error_that_says_what_to_do() {
        refused::after(Some(1));
        let started =
            thread::scope(|scope| [(); 3].map(|()| start(scope, || 7).map(|thread| thread.join().unwrap())));
        refused::after(None);
        let [Ok(7), Err(Error::Usage(what)), Err(_)] = started else { panic!("{started:?}") };
        assert!(what.to_string().contains("ulimit -u"), "{what}");
        assert_eq!(thread::scope(|scope| start(scope, || 8).unwrap().join().unwrap()), 8);
    }

    #[test]
    fn a_step_in_both_directions_ends_without_a_thread_and_so_does_the_other_side() {
        let (mut a, mut b) = Channel::pair();
        refused::after(Some(0));
        let step = |channel: &mut Channel| {
            channel.duplex(|tx| tx.send_bytes(BYTES, &[1]), |rx| rx.recv_bytes(BYTES, 1).map(drop))
        };
        let ours = step(&mut a);
        refused::after(None);
        assert!(matches!(ours, Err(Error::Usage(_))), "{ours:?}");
        drop(a);
        assert!(step(&mut b).is_err());
    }

    #[test]
    fn more_threads_than_a_pool_can_have_are_refused() {
        assert!(matches!(Threads::new(MOST + 1), Err(Error::Usage(_))));
        Threads::global().check().unwrap();
        assert!(Threads::global().count() > 0);
    }
}
