//! Programs that a test runs. A test fails if one of them hangs for a minute, and kills those that still run at its end.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than anything takes unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments, or words that a message must contain.
pub type Words<'a> = &'a [&'a str];

/// How a process ended, and what it wrote.
pub struct Ended {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output; empty if that went elsewhere ([`Running::start_into`]).
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

impl Ended {
    /// Returns the standard output of a process that ended with code 0.
    ///
    /// # Panics
    /// If it ended otherwise.
    pub fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// Checks that the process ended with this code, and that its standard error contains all these words.
    ///
    /// # Panics
    /// If it ended otherwise, or words are missing.
    pub fn bad(&self, code: i32, words: Words) {
        assert_eq!(self.code, Some(code), "{}", self.err);
        for words in words {
            assert!(self.err.contains(words), "{words:?} is not in: {}", self.err);
        }
    }
}

/// A running process, which is killed on drop.
pub struct Running {
    child: Child,
    said: Receiver<String>,
    heard: String,
    out: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Starts the command.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Running {
        Running::start_into(command, Stdio::piped())
    }

    /// Starts the command with `out` as its standard output.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_into(command: &mut Command, out: impl Into<Stdio>) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (child.stdout.take(), child.stderr.take().unwrap());
        let (tell, said) = channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(err).lines();
            while lines.next().is_some_and(|line| tell.send(line.unwrap()).is_ok()) {}
        });
        let out = thread::spawn(move || {
            let mut bytes = Vec::new();
            out.map(|mut out| out.read_to_end(&mut bytes).unwrap());
            bytes
        });
        Running { child, said, heard: String::new(), out: Some(out) }
    }

    /// Writes this text to the standard input of the process, and closes it.
    pub fn feed(&mut self, text: &str) {
        self.child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Returns the standard input of the process, which stays open until the caller drops it.
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Waits until the process writes these words to standard error. Returns the rest of that line.
    ///
    /// # Panics
    /// If no line comes for a minute, or standard error is closed before the words come.
    pub fn until(&mut self, words: &str) -> String {
        loop {
            let Ok(line) = self.said.recv_timeout(PATIENCE) else { panic!("no {words:?}: {}", self.heard) };
            self.heard += &format!("{line}\n");
            if let Some((_, rest)) = line.split_once(words) {
                return rest.to_string();
            }
        }
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends the process a signal, for instance INT.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Closes the standard input of the process, and waits until it ends. Then waits, without a limit, until its output is
    /// closed: a process that it started may still hold it.
    ///
    /// # Panics
    /// If it does not end within a minute.
    pub fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > PATIENCE {
                self.said.try_iter().for_each(|line| self.heard += &format!("{line}\n"));
                panic!("it hangs: {}", self.heard);
            }
            thread::sleep(Duration::from_millis(5));
        };
        while let Ok(line) = self.said.recv() {
            self.heard += &format!("{line}\n");
        }
        Ended {
            code: status.code(),
            out: String::from_utf8_lossy(&self.out.take().unwrap().join().unwrap()).into_owned(),
            err: std::mem::take(&mut self.heard),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end, with an empty standard input.
///
/// # Panics
/// If it cannot be started, or takes more than a minute.
pub fn run(command: &mut Command) -> Ended {
    Running::start(command).end()
}

/// Sends a signal, for instance INT, to a process.
///
/// # Panics
/// If there is no such signal or process, or it may not be signalled.
pub fn signal(process: u32, name: &str) {
    assert!(signalled(process, name));
}

/// Sends a signal to a process. Returns whether that succeeded: there is such a process, and it may be signalled.
///
/// # Panics
/// If there is no such signal.
pub fn signalled(process: u32, name: &str) -> bool {
    let signal: Signal = format!("SIG{name}").parse().unwrap();
    kill(Pid::from_raw(process as i32), signal).is_ok()
}
