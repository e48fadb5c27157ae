//! Channels over sockets: one thread reads, one writes, and heartbeats show that both sides are alive.
//!
//! The reading thread detects a dead peer: one that sends nothing, not even a heartbeat, for the idle time-out. A slow
//! but living peer, or one that waits for us, is not cut off unless it sends or accepts no frame for ten times as long.
//!
//! The side that closes first sends its last frames and its end of the stream. It then discards data, for a limited
//! time, until it sees the peer's end of the stream. The peer's reading thread has that sent even if the peer is busy,
//! as soon as its queue has room for our last frames.

use super::pipe::{End, Pipe, Popped};
use super::{Channel, HEARTBEAT, header};
use crate::error::{Error, Result};
use crate::threads;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The interval at which an idle party signals that it is alive.
pub(super) const HEARTBEAT_EVERY: Duration = Duration::from_millis(500);
/// The maximum time that the reading thread blocks on the socket.
pub const TICK: Duration = Duration::from_millis(100);
/// Maximum wait of [`Channel::close`] for the last frames to leave and for the peer to close too. Some tests wait that
/// long.
pub(super) const CLOSE_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 3 });
/// Maximum time that [`Channel::explain`] looks for the peer's reason. Many tests cut a connection without one.
pub(super) const EXPLAIN_WITHIN: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 3 });

/// The number of idle time-outs that a living peer may take for one frame.
const PATIENCE: u32 = 10;

/// The time-outs of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Maximum time to reach the peer, including the handshake.
    pub connect: Duration,
    /// Maximum silence of the peer. A shorter time than [`Timeouts::SHORTEST_IDLE`] counts as that.
    pub idle: Duration,
}

impl Timeouts {
    /// The shortest idle time-out that leaves room for two heartbeats.
    pub const SHORTEST_IDLE: Duration = Duration::from_secs(1);
}

impl Default for Timeouts {
    /// Returns ten minutes to connect, for two people who coordinate by telephone, and one minute of silence.
    fn default() -> Self {
        Timeouts { connect: Duration::from_secs(600), idle: Duration::from_secs(60) }
    }
}

/// Counts of the bytes on the wire, including heartbeats and everything below the frames, such as TLS records.
#[derive(Debug, Clone, Default)]
pub struct WireCount {
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
}

impl WireCount {
    /// Returns the number of bytes sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes received so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// A stream that counts the bytes that pass through it.
pub struct Counted<S>(pub S, pub WireCount);

impl<S: Read> Read for Counted<S> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.read(buf)?;
        self.1.received.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl<S: Write> Write for Counted<S> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let n = self.0.write(buf)?;
        self.1.sent.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// The two halves of a byte stream over `socket`. A read must return at least every [`TICK`], with `WouldBlock`
/// or `TimedOut` if nothing arrived.
pub struct ByteStream {
    /// The receiving side of the stream.
    pub read: Box<dyn Read + Send>,
    /// The sending side of the stream, which is flushed after each frame.
    pub write: Box<dyn Write + Send>,
    /// Ends the stream after the last frame, before the socket is closed. Not called if a frame could not be written.
    pub finish: Box<dyn FnOnce() + Send>,
    /// The underlying socket, for shutting it down; `None` if there is none.
    pub socket: Option<TcpStream>,
}

impl ByteStream {
    /// Returns a connection without encryption or authentication, for tests and `--insecure-plaintext`.
    pub fn plain(socket: TcpStream, count: &WireCount) -> Result<ByteStream> {
        let clone = || {
            socket
                .try_clone()
                .map_err(|e| Error::network(format!("cannot share the socket: {e}")).because(&e))
        };
        let (read, write) = (Counted(clone()?, count.clone()), Counted(clone()?, count.clone()));
        Ok(ByteStream {
            read: Box::new(read),
            write: Box::new(write),
            finish: Box::new(|| ()),
            socket: Some(socket),
        })
    }

    /// Returns a stream, without a socket to shut down, over a reader and a writer that may block. After the last
    /// write, `write` is dropped and `finish` called, which ends our direction; `read` is dropped when it ends, or when
    /// it returns data after our side has ended.
    ///
    /// # Errors
    /// [`Error::Usage`] if the system cannot start a thread.
    pub fn blocking(
        read: impl Read + Send + 'static,
        write: impl Write + Send + 'static,
        finish: impl FnOnce() + Send + 'static,
        count: &WireCount,
    ) -> Result<ByteStream> {
        ByteStream::blocking_on(Builder::new(), (read, write, finish), count)
    }

    /// [`ByteStream::blocking`] with the thread of this builder.
    fn blocking_on(
        thread: Builder,
        (read, write, finish): (
            impl Read + Send + 'static,
            impl Write + Send + 'static,
            impl FnOnce() + Send + 'static,
        ),
        count: &WireCount,
    ) -> Result<ByteStream> {
        // It is dropped, and so ended, on any failure.
        let write = Finished { write: Some(Counted(write, count.clone())), finish: Some(finish) };
        let (chunks, end) = (Pipe::new(), Arc::new(OnceLock::new()));
        let (mut read, to, why) = (Counted(read, count.clone()), chunks.clone(), end.clone());
        // The thread may wait for the peer forever, so it is never joined.
        let reads = move || {
            let mut buffer = vec![0u8; 1 << 16];
            let ended = loop {
                match read.read(&mut buffer) {
                    Ok(0) => break None,
                    Ok(n) if to.push(buffer[..n].to_vec()).is_err() => return,
                    Ok(_) => {}
                    Err(e) if passes(&e) => {}
                    Err(e) => break Some((e.kind(), e.to_string())),
                }
            };
            if let Some(ended) = ended {
                let _ = why.set(ended);
            }
            to.end(End::Closed);
        };
        thread.spawn(reads).map_err(|e| threads::none(&e))?;
        let read = Ticking { chunks, end, chunk: Vec::new(), at: 0 };
        Ok(ByteStream { read: Box::new(read), write: Box::new(write), finish: Box::new(|| ()), socket: None })
    }
}

/// A writer, and a function that is called once it is dropped.
struct Finished<W, F: FnOnce()> {
    write: Option<W>,
    finish: Option<F>,
}

impl<W: Write, F: FnOnce()> Finished<W, F> {
    fn get(&mut self) -> std::io::Result<&mut W> {
        self.write.as_mut().ok_or_else(|| ErrorKind::BrokenPipe.into())
    }
}

impl<W: Write, F: FnOnce()> Write for Finished<W, F> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.get()?.write(buf)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.get()?.flush()
    }
}

impl<W, F: FnOnce()> Drop for Finished<W, F> {
    fn drop(&mut self) {
        drop(self.write.take());
        if let Some(finish) = self.finish.take() {
            finish();
        }
    }
}

/// Reads the chunks of another thread, waiting at most [`TICK`].
struct Ticking {
    chunks: Arc<Pipe>,
    /// The error that ended the stream, if any.
    end: Arc<OnceLock<(ErrorKind, String)>>,
    /// The current chunk, whose bytes from `at` on are unread.
    chunk: Vec<u8>,
    at: usize,
}

impl Read for Ticking {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.chunk.len() {
            (self.chunk, self.at) = match self.chunks.pop(Some(Instant::now() + TICK)) {
                Popped::Chunk(chunk) => (chunk, 0),
                Popped::Nothing => return Err(ErrorKind::WouldBlock.into()),
                Popped::End(_) => match self.end.get() {
                    Some((kind, what)) => return Err(std::io::Error::new(*kind, what.clone())),
                    None => return Ok(0),
                },
            };
        }
        let n = buf.len().min(self.chunk.len() - self.at);
        buf[..n].copy_from_slice(&self.chunk[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.chunks.end(End::Closed);
    }
}

/// Returns a channel over a byte stream.
///
/// # Errors
/// [`Error::Network`] for a socket that cannot be set up, and [`Error::Usage`] if the system cannot start a thread.
pub fn over(stream: ByteStream, timeouts: Timeouts) -> Result<Channel> {
    over_on([Builder::new(), Builder::new()], stream, timeouts)
}

/// [`over`] with the threads of these builders, one to write and one to read.
fn over_on([writes, reads]: [Builder; 2], stream: ByteStream, timeouts: Timeouts) -> Result<Channel> {
    let ByteStream { mut read, mut write, finish, socket } = stream;
    let setup = || -> std::io::Result<_> {
        let Some(socket) = &socket else { return Ok((None, None)) };
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TICK))?;
        Ok((Some(socket.try_clone()?), Some(socket.try_clone()?)))
    };
    let (read_socket, write_socket) =
        setup().map_err(|e| Error::network(format!("cannot set the socket up: {e}")).because(&e))?;
    let (incoming, outgoing) = (Pipe::new(), Pipe::new());
    let mut channel = Channel::from_pipes(incoming.clone(), outgoing.clone());
    let idle = timeouts.idle.max(Timeouts::SHORTEST_IDLE);
    channel.set_patience(idle.saturating_mul(PATIENCE));

    let writer_outgoing = outgoing.clone();
    let writing = move || {
        let end = write_frames(write.as_mut(), &writer_outgoing);
        if let Some(why) = end {
            writer_outgoing.end(why);
        } else {
            finish();
        }
        if let Some(socket) = write_socket {
            let _ = socket.shutdown(Shutdown::Write);
        }
    };
    // Without the reading thread, the writing thread ends with the channel.
    let writer = writes.spawn(writing).map_err(|e| threads::none(&e))?;
    let reading = move || {
        let why = read_chunks(read.as_mut(), &incoming, idle);
        let until = match why {
            End::Idle(_) => Instant::now(), // The peer is dead.
            _ => Instant::now() + CLOSE_WITHIN,
        };
        if incoming.ended().is_some() {
            discard(read.as_mut(), until);
        }
        // A peer that has closed accepts no more data. Our side closes too, even if it is busy.
        outgoing.end(why.clone());
        incoming.end(why);
        let writer = [writer];
        wait(&writer, until);
        // Unblocks a pending write, which then fails. Without a socket the peer has to do so.
        if let Some(socket) = read_socket {
            let _ = socket.shutdown(Shutdown::Both);
            let _ = writer.map(JoinHandle::join);
        }
    };
    channel.pumps.push(reads.spawn(reading).map_err(|e| threads::none(&e))?);
    Ok(channel)
}

/// Waits until the threads are done or the time is up.
pub(super) fn wait(threads: &[JoinHandle<()>], until: Instant) {
    while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads on until the peer closes or the time is up. Closing a socket with unread bytes would reset the connection, and
/// the peer would lose our last messages.
fn discard(read: &mut dyn Read, until: Instant) {
    let mut waste = vec![0u8; 1 << 16];
    while Instant::now() < until {
        match read.read(&mut waste) {
            Ok(0) => return,
            Err(e) if !passes(&e) => return,
            _ => {}
        }
    }
}

/// Writes frames, and heartbeats when there is nothing to write. Returns why it failed, if it did.
fn write_frames(write: &mut dyn Write, outgoing: &Pipe) -> Option<End> {
    loop {
        let frame = match outgoing.pop(Some(Instant::now() + HEARTBEAT_EVERY)) {
            Popped::Chunk(frame) => frame,
            Popped::Nothing => header(HEARTBEAT, 0).map(|h| h.to_vec()).unwrap_or_default(),
            Popped::End(_) => return None,
        };
        if let Err(e) = write.write_all(&frame).and_then(|()| write.flush()) {
            return Some(broken(&e));
        }
    }
}

fn read_chunks(read: &mut dyn Read, incoming: &Pipe, idle: Duration) -> End {
    let mut buffer = vec![0u8; 1 << 16];
    let mut alive = Instant::now();
    loop {
        match read.read(&mut buffer) {
            Ok(0) => return End::Closed,
            Ok(n) => {
                if let Err(end) = incoming.push(buffer[..n].to_vec()) {
                    return end;
                }
                // The time spent waiting for our own side to take the chunk does not count as the peer's
                // silence.
                alive = Instant::now();
            }
            Err(e) if passes(&e) => {
                if alive.elapsed() > idle {
                    return End::Idle(idle);
                }
                if let Some(end) = incoming.ended() {
                    return end;
                }
            }
            Err(e) => return broken(&e),
        }
    }
}

/// Returns whether to go on reading after this error.
fn passes(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn broken(e: &std::io::Error) -> End {
    match e.kind() {
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe => End::Closed,
        _ => End::Broken(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{empty, sink};
    use std::sync::mpsc::{RecvTimeoutError, channel};

    /// A thread that cannot be started: its stack is larger than any address space.
    fn none() -> Builder {
        Builder::new().stack_size(1 << 56)
    }

    fn refused<T>(made: Result<T>) {
        let error = made.err().unwrap();
        assert!(matches!(&error, Error::Usage(what) if what.contains("no thread can be started")), "{error}");
    }

    /// There is no panic, and our direction ends, so the peer ends as if we had left.
    #[test]
    fn without_a_thread_there_is_an_error_and_the_stream_has_ended() {
        let count = WireCount::default();
        let ended = |made: &dyn Fn(Box<dyn FnOnce() + Send>)| {
            let (tell, over) = channel::<()>();
            made(Box::new(move || drop(tell)));
            assert_eq!(over.recv_timeout(Duration::from_secs(20)), Err(RecvTimeoutError::Disconnected));
        };
        ended(&|finish| refused(ByteStream::blocking_on(none(), (empty(), sink(), finish), &count)));
        let over = |threads: fn() -> [Builder; 2], finish: Box<dyn FnOnce() + Send>| {
            let stream = ByteStream::blocking(empty(), sink(), finish, &count).unwrap();
            refused(over_on(threads(), stream, Timeouts::default()));
        };
        ended(&|finish| over(|| [none(), Builder::new()], finish));
        ended(&|finish| over(|| [Builder::new(), none()], finish));
    }
}
