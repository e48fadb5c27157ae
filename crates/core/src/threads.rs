//! The threads that a run computes on.
//!
//! A party's side of a run is straight-line code that waits for its peer, so it runs on its own threads: the threads of
//! a pool must wait only for each other. It passes parallel computation to its pool ([`Threads::run`]). The functions
//! on slices that do the work are independent of the pool: they use [`rayon`], which takes the pool of the calling
//! thread. Called on any other thread, they would use the program's global pool.

use crate::error::{Error, Result};
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// The maximum number of threads in a pool, which is rayon's limit.
pub const MOST: usize = 0xffff;

/// Starts a thread of a scope, where [`Scope::spawn`] would panic if the system cannot start one.
///
/// # Errors
/// [`Error::Usage`], which includes the remedy.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    builder()?.spawn_scoped(scope, work).map_err(|e| none(&e))
}

/// Returns the value of a thread that was joined. If it panicked, its panic goes on in this thread.
pub fn joined<T>(ended: std::thread::Result<T>) -> T {
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns a thread builder. In tests it may fail, as if the system could not start a thread.
fn builder() -> Result<Builder> {
    #[cfg(test)]
    if refused::next() {
        return Err(none(&io::Error::from(io::ErrorKind::WouldBlock)));
    }
    Ok(Builder::new())
}

/// Returns the error for a thread that the system could not start.
pub fn none(e: &io::Error) -> Error {
    Error::usage(format!(
        "no thread can be started: {e}. Allow more threads (ulimit -u), or more memory, then run again"
    ))
    .because(e)
}

/// Simulates, in tests, a system that starts no more threads.
#[cfg(test)]
pub(crate) mod refused {
    use std::cell::Cell;

    thread_local! {
        static AFTER: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// From now on, this thread can start `some` threads, and then none; with `None`, any number.
    pub(crate) fn after(some: Option<usize>) {
        AFTER.set(some);
    }

    pub(super) fn next() -> bool {
        let left = AFTER.get();
        AFTER.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    }
}

/// A pool of threads to compute on. Clones share it.
#[derive(Clone)]
pub struct Threads(Option<Arc<rayon::ThreadPool>>);

static GLOBAL: Threads = Threads(None);

impl Threads {
    /// Returns a pool of `n` threads of its own. If `n` is 0, rayon picks the number: by default, one per processor that
    /// the program may use.
    ///
    /// # Errors
    /// [`Error::Usage`] if `n` is more than [`MOST`], or the system cannot start this many.
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

    /// Returns the threads that the whole program shares: rayon's global pool.
    pub fn global() -> &'static Threads {
        &GLOBAL
    }

    /// Starts the global pool, if this is it. Without this call, its first use starts it, and panics if the system
    /// cannot start this many threads.
    ///
    /// # Errors
    /// [`Error::Usage`] if the threads cannot be started, now or in an earlier call.
    pub fn check(&self) -> Result<()> {
        static FAILED: OnceLock<Option<String>> = OnceLock::new();
        if self.0.is_some() {
            return Ok(());
        }
        let failed = FAILED.get_or_init(|| {
            let started = rayon::ThreadPoolBuilder::new().build_global();
            // An error without a cause means that the pool was already started elsewhere.
            started.err().filter(|e| std::error::Error::source(e).is_some()).map(|e| e.to_string())
        });
        match failed {
            None => Ok(()),
            Some(e) => Err(Error::usage(format!(
                "the threads to compute on cannot be started: {e}. Allow more threads (ulimit -u), or use fewer"
            ))),
        }
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.run(rayon::current_num_threads)
    }

    /// Computes on these threads, and waits for the result. With the global pool, `work` itself runs on the calling
    /// thread, and only its parallel parts run on the pool. Call [`Threads::check`] first, unless the threads were made
    /// with [`Threads::new`]. `work` must not wait for anything: no channel, lock or file.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let Some(pool) = &self.0 else { return work() };
        let (mut work, mut result) = (Some(work), None);
        install(pool, &mut || result = work.take().map(|work| work()));
        let Some(result) = result else { unreachable!("the pool has run the work") };
        result
    }
}

/// Compiled once: rayon's generic code would take a second of compilation for every ten callers.
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
    fn the_panic_of_a_joined_thread_goes_on() {
        let caught = thread::scope(|scope| {
            let thread = start(scope, || panic!("the first")).unwrap();
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| joined::<()>(thread.join())))
        });
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"the first"));
        assert_eq!(joined(thread::spawn(|| 7).join()), 7);
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
