//! Signals. The first ends the program in good order, at its next step; the second ends it at once.
//!
//! SIGINT, SIGTERM and SIGHUP set a flag and cancel the run with the peer. The flag is looked at before every 64 KiB that
//! are read or written, before every frame of a half that is prepared, and while the peer is waited for.
//!
//! A system call that does not return has no next step: a write to a pipe that nobody reads, anything on a file system
//! that hangs. Polling would help with pipes only. So a thread watches: if the program has not ended a while after the
//! first signal, it is ended from outside. Nothing is lost by that: a result gets its name when it is complete
//! ([`veilset::table::Output`]), and a prepared half is spent before it is used.
//!
//! Handlers run on a thread of their own and may lock, remove files and exit. That thread never writes and never waits,
//! so a second signal is always heard.

use crate::party::sayer;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::Builder;
use std::time::Duration;
use veilset::channel::Canceller;
use veilset::error::{Error, Result};
use veilset::table::remove_unfinished;

/// What asks a program to stop.
pub const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The exit code of a program that was stopped.
pub const STOPPED: u8 = 130;

/// How long a program that was stopped may go on: alone, when a step takes milliseconds, and
const ALONE: Duration = Duration::from_secs(1);
/// with the peer, who is told, after which the log is written.
const WITH_PEER: Duration = Duration::from_secs(10);
/// When a program that was stopped and still runs says so.
const SLOW: Duration = Duration::from_millis(300);

/// Makes a limit on the size of files (`ulimit -f`) an error of the write that meets it, instead of the end by SIGXFSZ.
pub fn survive_file_limits() -> Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ()).map_err(unwatched)
}

pub fn unwatched(e: std::io::Error) -> Error {
    Error::Bug(format!("cannot watch for signals: {e}"))
}

/// Whether somebody asked the program to stop.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    happened: AtomicBool,
    /// The run with the peer, while there is one.
    run: Mutex<Option<Canceller>>,
}

impl Interrupt {
    /// Watches for signals from now on.
    pub fn install(quiet: bool) -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        let mut signals = Signals::new(SIGNALS).map_err(unwatched)?;
        let heard = interrupt.clone();
        let listen = move || {
            for (before, _) in signals.forever().enumerate() {
                match before {
                    0 => heard.first(quiet),
                    _ => leave("stopped at once, by a second signal"),
                }
            }
        };
        std::thread::spawn(listen);
        Ok(interrupt)
    }

    /// Whether it happened.
    pub fn happened(&self) -> bool {
        self.0.happened.load(Ordering::SeqCst)
    }

    /// A step: an error if it happened.
    pub fn check(&self) -> Result<()> {
        if self.happened() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// A run with the peer begins, which a signal cancels.
    pub fn run_begins(&self, canceller: Canceller) {
        *self.0.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(canceller.clone());
        if self.happened() {
            canceller.cancel();
        }
    }

    /// It is over.
    pub fn run_ends(&self) {
        *self.0.run.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn first(&self, quiet: bool) {
        self.0.happened.store(true, Ordering::SeqCst);
        let state = self.0.clone();
        let watch = move || {
            let run = state.run.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let patience = if run.is_some() { WITH_PEER } else { ALONE };
            run.inspect(Canceller::cancel);
            std::thread::sleep(SLOW);
            sayer(quiet)("veilset: stopping; a second signal stops at once");
            std::thread::sleep(patience - SLOW);
            leave("stopped on request, in the middle of something that does not end");
        };
        if Builder::new().name("stopping".into()).spawn(watch).is_err() {
            leave("stopped on request");
        }
    }
}

/// Ends the process from outside, whatever it is doing.
fn leave(why: &'static str) -> ! {
    let (done, wait) = mpsc::channel();
    // The file system may be what hangs, and nobody may read standard error.
    let last = Builder::new().spawn(move || {
        remove_unfinished();
        let _ = writeln!(std::io::stderr(), "veilset: {why}");
        let _ = done.send(());
    });
    if last.is_ok() {
        let _ = wait.recv_timeout(ALONE);
    }
    std::process::exit(STOPPED.into())
}
