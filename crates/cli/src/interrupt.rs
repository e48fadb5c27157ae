//! Signals. The first signal ends the program gracefully at its next step; the second ends it at once.
//!
//! SIGINT, SIGTERM and SIGHUP set a flag and cancel the run with the peer. The program checks the flag before
//! every 64 KiB that it reads or writes, at every step of preparing a half or a filter, and while it waits for
//! the peer.
//!
//! A system call that does not return has no next step: a write to a pipe that is never read, or any access to a file system
//! that hangs. Polling would help only with pipes. So a watchdog thread ends the program if it is still running some time after
//! the first signal. This is safe: a result gets its name only when it is complete ([`veilset::table::Destination`]), and a
//! prepared half is spent before it is used, so never twice.
//!
//! Handlers run on their own thread, and may lock, remove files and exit. That thread never writes, and waits
//! only to exit, so it always notices a second signal.

use crate::party::printer;
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
use veilset::threads::none;
use veilset_app::STOPPED;

/// Returns the signals that ask a program to stop, except those that were already ignored when it started, for instance
/// because of `nohup`.
pub fn signals() -> Vec<i32> {
    let ignored = ignored_from(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// Parses the ignored signals from a Linux process status, lowest bit for signal 1; none on other systems.
fn ignored_from(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The time that a program asked to stop has left if there is no peer. Reading and writing react within milliseconds; hashing,
/// sorting or padding a large set does not look at the flag, and is cut off.
const ALONE: Duration = Duration::from_secs(1);
/// The time that a program asked to stop has left with a peer, which must be notified before the log is written.
const WITH_PEER: Duration = Duration::from_secs(10);
/// The time after which a program that was asked to stop, and still runs, says so.
const SLOW: Duration = Duration::from_millis(300);

/// Turns a write beyond the limit on file sizes (`ulimit -f`) into an error, instead of death by SIGXFSZ.
pub fn survive_file_limits() -> Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ()).map_err(unwatched)
}

/// Returns the error for signals that cannot be watched for.
pub fn unwatched(e: std::io::Error) -> Error {
    Error::bug(format!("cannot watch for signals: {e}"))
}

/// Records whether the program was asked to stop.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    happened: AtomicBool,
    /// The canceller of the run with the peer, during that run.
    run: Mutex<Option<Canceller>>,
    /// The exit code and the message of a forced exit once the result is complete.
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
        Builder::new().name("signals".into()).spawn(listen).map_err(|e| none(&e))?;
        Ok(interrupt)
    }

    /// Returns whether the program was asked to stop.
    pub fn happened(&self) -> bool {
        self.0.happened.load(Ordering::SeqCst)
    }

    /// Marks the start of the run with the peer. A signal cancels the run.
    pub fn run_begins(&self, canceller: Canceller) {
        *self.0.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(canceller.clone());
        if self.happened() {
            canceller.cancel();
        }
    }

    /// Marks the end of the run with the peer.
    pub fn run_ends(&self) {
        *self.0.run.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Marks the result as complete, so that a signal no longer means that there is no result. A forced exit after this has
    /// this code, and `what` follows the reason in its message.
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
            // This runs on its own thread, because standard error may hang.
            let say = move || printer(quiet)("veilset: stopping; a second signal stops at once");
            let _ = Builder::new().spawn(say);
            std::thread::sleep(patience - SLOW);
            this.leave("stopped on request, during a call that did not return");
        };
        if Builder::new().name("stopping".into()).spawn(watch).is_err() {
            self.leave("stopped on request");
        }
    }

    /// Ends the process, even during a system call that does not return.
    fn leave(&self, why: &str) -> ! {
        let (code, line) = self.ending(why);
        let (written, wait) = mpsc::channel();
        // The file system may hang, and standard error may have no reader.
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

    /// Returns the exit code and the message of a forced exit.
    fn ending(&self, why: &str) -> (u8, String) {
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
        assert_eq!(interrupt.ending("stopped"), (130, "veilset: stopped".into()));
        interrupt.done(7, "the result is in out.csv".into());
        let (code, line) = interrupt.ending("stopped");
        assert_eq!((code, &line[..]), (7, "veilset: stopped: the result is in out.csv"));
    }

    #[test]
    fn ignored_signals_are_read_from_the_status_of_the_process() {
        let status = "Name:\tveilset\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored_from(status), 1 << (SIGHUP - 1) | 1 << 12);
        assert_eq!((ignored_from(""), ignored_from("SigIgn: x")), (0, 0));
    }
}
