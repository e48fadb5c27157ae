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

/// What asks a program to stop, unless it was started to ignore it, as `nohup` does.
pub fn signals() -> Vec<i32> {
    let ignored = ignored_from(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// The signals that are ignored, the lowest bit being signal 1, by the status of a process under Linux; elsewhere none.
fn ignored_from(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

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
    /// Once the result is there: with which exit code, and saying what, the program is ended from outside.
    done: Mutex<Option<(u8, String)>>,
}

impl Interrupt {
    /// Watches for signals from now on.
    pub fn install(quiet: bool) -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        let mut signals = Signals::new(signals()).map_err(unwatched)?;
        let heard = interrupt.clone();
        let listen = move || {
            for (before, _) in signals.forever().enumerate() {
                match before {
                    0 => heard.first(quiet),
                    _ => heard.leave("stopped at once, by a second signal"),
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

    /// The result is there: from now on a signal no longer means that there is none. If the program must be ended from
    /// outside all the same, it ends with this code and says this.
    pub fn done(&self, code: u8, what: String) {
        *self.0.done.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, what));
    }

    fn first(&self, quiet: bool) {
        self.0.happened.store(true, Ordering::SeqCst);
        let this = self.clone();
        let watch = move || {
            let run = this.0.run.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let patience = if run.is_some() { WITH_PEER } else { ALONE };
            run.inspect(Canceller::cancel);
            std::thread::sleep(SLOW);
            // On a thread of its own: standard error may be what hangs.
            let say = move || sayer(quiet)("veilset: stopping; a second signal stops at once");
            let _ = Builder::new().spawn(say);
            std::thread::sleep(patience - SLOW);
            this.leave("stopped on request, in the middle of something that does not end");
        };
        if Builder::new().name("stopping".into()).spawn(watch).is_err() {
            self.leave("stopped on request");
        }
    }

    /// Ends the process from outside, whatever it is doing.
    fn leave(&self, why: &str) -> ! {
        let (code, line) = self.last_words(why);
        let (written, wait) = mpsc::channel();
        // The file system may be what hangs, and nobody may read standard error.
        let last = Builder::new().spawn(move || {
            remove_unfinished();
            let _ = writeln!(std::io::stderr(), "{line}");
            let _ = written.send(());
        });
        if last.is_ok() {
            let _ = wait.recv_timeout(ALONE);
        }
        std::process::exit(code.into())
    }

    /// With which exit code the program is ended from outside, and what it says.
    fn last_words(&self, why: &str) -> (u8, String) {
        match &*self.0.done.lock().unwrap_or_else(PoisonError::into_inner) {
            None => (STOPPED, format!("veilset: {why}")),
            Some((code, what)) => (*code, format!("veilset: {why}: {what}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_the_result_is_there_the_end_from_outside_does_not_deny_it() {
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.last_words("stopped"), (130, "veilset: stopped".into()));
        interrupt.done(7, "the result is in out.csv".into());
        let (code, line) = interrupt.last_words("stopped");
        assert_eq!((code, &line[..]), (7, "veilset: stopped: the result is in out.csv"));
    }

    #[test]
    fn ignored_signals_are_read_from_the_status_of_the_process() {
        let status = "Name:\tveilset\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored_from(status), 1 << (SIGHUP - 1) | 1 << 12);
        assert_eq!((ignored_from(""), ignored_from("SigIgn: x")), (0, 0));
    }
}
