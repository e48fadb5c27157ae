//! A bounded queue of byte chunks between two threads. Every connection is built from these.

use super::{Sink, Source};
use crate::error::{Error, Result};
use crate::spelling::IDLE_TIMEOUT;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

/// Bytes that a pipe holds before a writer blocks: 1 MiB, or one frame if that is larger.
pub(crate) const CAPACITY: usize = 1 << 20;
/// The overhead charged per chunk, so that a peer cannot multiply our memory with single bytes.
const PER_CHUNK: usize = 64;
/// The default patience.
const FOREVER: Duration = Duration::from_secs(1 << 31);

/// Why a pipe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// A half of the pipe was dropped. To the user of a channel: the other side closed the connection.
    Closed,
    /// Nothing was received for this long.
    Idle(Duration),
    /// The connection broke; the message of the operating system or of TLS.
    Broken(String),
    /// The peer is alive but made no progress for this long.
    Stalled(Duration),
    /// We were stopped on request.
    Cancelled,
    /// We gave up because of another error, which is reported instead of this.
    GaveUp,
}

impl End {
    /// The error of a connection to `who` that ended for this reason.
    pub(crate) fn error(&self, who: &Who) -> Error {
        let whom = who.0.get().map_or("the other party", String::as_str);
        match self {
            End::Closed => Error::network(format!(
                "{who} closed the connection before the run was complete. Ask {whom} what its program reported, then \
                 run again"
            ))
            .because(&io::ErrorKind::UnexpectedEof.into()),
            End::Idle(time) => Error::network(format!(
                "nothing came from {who} for {} seconds ({IDLE_TIMEOUT}). Ask {whom} whether its \
                 program still runs and check the network, then run again",
                time.as_secs_f64()
            ))
            .because(&io::ErrorKind::TimedOut.into()),
            End::Stalled(time) => Error::network(format!(
                "{who} is alive but did nothing for the run for {} seconds (the limit here; as a rule it is \
                 ten times {IDLE_TIMEOUT}). Ask {whom} \
                 what its program does, then run again",
                time.as_secs_f64()
            ))
            .because(&io::ErrorKind::TimedOut.into()),
            End::Broken(why) => {
                let with = who.0.get().map(|name| format!(" with {name}")).unwrap_or_default();
                Error::network(format!(
                    "the connection{with} broke ({why}). Check the network, then run again"
                ))
                .because(&io::Error::other(why.clone()))
            }
            End::Cancelled => Error::Cancelled,
            End::GaveUp => Error::Network("the connection was given up".into()),
        }
    }
}

/// The name of the party at the other end in messages: "the peer", unless another name was set. Clones share the name.
#[derive(Clone, Default)]
pub(crate) struct Who(Arc<OnceLock<String>>);

impl Who {
    /// Sets the name, unless one was set before.
    pub(crate) fn set(&self, name: String) {
        let _ = self.0.set(name);
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get().map_or("the peer", String::as_str))
    }
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Vec<u8>>,
    held: usize,
    end: Option<End>,
    patience: Option<Duration>,
}

/// A bounded queue of chunks, shared through `Arc` by the thread that pushes and the thread that pops.
#[derive(Default)]
pub(crate) struct Pipe {
    state: Mutex<State>,
    changed: Condvar,
}

/// The result of [`Pipe::pop`].
pub(crate) enum Popped {
    Chunk(Vec<u8>),
    /// Nothing arrived in the time allowed.
    Nothing,
    /// The pipe is empty and has ended.
    End(End),
}

impl Pipe {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid even after a panic under the lock: chunks are never partly queued.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a chunk; blocks while the pipe is full, for at most its patience ([`Pipe::set_patience`]).
    pub(crate) fn push(&self, chunk: Vec<u8>) -> Result<(), End> {
        let mut state = self.lock();
        let start = Instant::now();
        loop {
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            if state.held == 0 || state.held + cost(&chunk) <= CAPACITY {
                break;
            }
            let patience = state.patience.unwrap_or(FOREVER);
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(End::Stalled(patience));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.held += cost(&chunk);
        state.chunks.push_back(chunk);
        self.changed.notify_all();
        Ok(())
    }

    /// Returns the next chunk; blocks at most until `deadline` (forever without one).
    pub(crate) fn pop(&self, deadline: Option<Instant>) -> Popped {
        let mut state = self.lock();
        loop {
            if let Some(chunk) = state.chunks.pop_front() {
                state.held -= cost(&chunk);
                self.changed.notify_all();
                return Popped::Chunk(chunk);
            }
            if let Some(end) = &state.end {
                return Popped::End(end.clone());
            }
            match deadline {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Popped::Nothing;
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Sets how long a push may block. [`PipeSource`] reports this time, too, when it fails at a deadline.
    pub(crate) fn set_patience(&self, patience: Duration) {
        self.lock().patience = Some(patience);
    }

    fn patience(&self) -> Duration {
        self.lock().patience.unwrap_or(FOREVER)
    }

    /// Returns why the pipe has ended, if it has.
    pub(crate) fn ended(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// Ends the pipe: queued chunks can still be taken, but none can be added. The first reason is kept.
    pub(crate) fn end(&self, why: End) {
        self.end_with(why, None);
    }

    /// Ends the pipe, unless it has ended, after one last chunk, which is added even if the pipe is full.
    pub(crate) fn end_with(&self, why: End, last: Option<Vec<u8>>) {
        let mut state = self.lock();
        if state.end.is_none() {
            if let Some(chunk) = last {
                state.held += cost(&chunk);
                state.chunks.push_back(chunk);
            }
            state.end = Some(why);
        }
        self.changed.notify_all();
    }
}

fn cost(chunk: &[u8]) -> usize {
    chunk.len() + PER_CHUNK
}

/// The writing half of a pipe; dropping it closes the pipe.
pub(crate) struct PipeSink {
    pub(crate) pipe: Arc<Pipe>,
    pub(crate) who: Who,
}

impl Sink for PipeSink {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        self.pipe.push(frame).map_err(|end| end.error(&self.who))
    }
}

impl Drop for PipeSink {
    fn drop(&mut self) {
        self.pipe.end(End::Closed);
    }
}

/// The reading half of a pipe; dropping it closes the pipe.
pub(crate) struct PipeSource {
    pipe: Arc<Pipe>,
    who: Who,
    chunk: Vec<u8>,
    at: usize,
}

impl PipeSource {
    pub(crate) fn new(pipe: Arc<Pipe>, who: Who) -> Self {
        PipeSource { pipe, who, chunk: Vec::new(), at: 0 }
    }
}

impl Source for PipeSource {
    fn recv(&mut self, mut out: &mut [u8], deadline: Option<Instant>) -> Result<()> {
        while !out.is_empty() {
            if self.at == self.chunk.len() {
                match self.pipe.pop(deadline) {
                    Popped::Chunk(chunk) => (self.chunk, self.at) = (chunk, 0),
                    Popped::End(end) => return Err(end.error(&self.who)),
                    Popped::Nothing => return Err(End::Stalled(self.pipe.patience()).error(&self.who)),
                }
            }
            let n = out.len().min(self.chunk.len() - self.at);
            let (now, later) = out.split_at_mut(n);
            now.copy_from_slice(&self.chunk[self.at..self.at + n]);
            self.at += n;
            out = later;
        }
        Ok(())
    }
}

impl Drop for PipeSource {
    fn drop(&mut self) {
        self.pipe.end(End::Closed);
    }
}
