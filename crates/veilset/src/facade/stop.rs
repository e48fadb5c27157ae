//! Stopping a run from another thread.

use crate::channel::Canceller;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Stops runs from another thread, for instance on Ctrl-C. Pass a clone to [`Options::stop`](crate::Options::stop).
///
/// The peer is notified, and the operation returns [`Error::Cancelled`](crate::Error::Cancelled), even while it waits for the
/// peer. A run that begins later ends at once.
#[derive(Clone, Default)]
pub struct Stop(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    stopped: bool,
    running: Vec<Canceller>,
}

impl Stop {
    /// Returns a handle that is not stopped yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Stops all runs that have a clone of this handle.
    pub fn stop(&self) {
        let running = self.with(|state| {
            state.stopped = true;
            std::mem::take(&mut state.running)
        });
        running.iter().for_each(Canceller::cancel);
    }

    /// Whether this handle was stopped.
    pub fn is_stopped(&self) -> bool {
        self.with(|state| state.stopped)
    }

    /// Stops this run too, immediately if the handle was stopped before.
    pub(super) fn watch(&self, run: Canceller) {
        let stopped = self.with(|state| {
            if !state.stopped {
                state.running.push(run.clone());
            }
            state.stopped
        });
        if stopped {
            run.cancel();
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        // Nothing panics under the lock.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stop({})", self.is_stopped())
    }
}
