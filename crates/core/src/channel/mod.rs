//! The channel between two parties: typed frames over a duplex connection.
//!
//! A protocol declares its messages as constants ([`Message`]: tag, element type, a name for errors), and receives them
//! with a length computed from public parameters. A frame is its tag (2 bytes), the length of its body (4 bytes), both
//! little-endian, and the body. A frame with an unexpected tag or length is an error before its body is read: no value
//! sent by the peer sizes an allocation beyond the expected length, or bounds a loop.
//!
//! In a run of several parties each party has a channel to every other, and they end together ([`Mesh`]).
//!
//! Byte counts, progress and cancellation live here, so that protocols contain only arithmetic.

mod abort;
mod account;
pub(crate) mod clock;
mod emulate;
pub mod mesh;
mod pipe;
pub(crate) mod queue;
mod record;
mod stream;
mod version;
mod wire;

pub use account::Account;
pub use account::{MessageBytes, StageTime};
pub use emulate::Network;
pub use mesh::Mesh;
pub use record::{Recording, replay};
pub use stream::{ByteStream, Counted, TICK, Timeouts, WireCount, over};
pub use version::{PREAMBLE, preamble, versions};
pub use wire::Wire;

use crate::course::Course;
use crate::error::{Error, Fault, Reason, Result, Seat};
use crate::threads;
pub use abort::{Link, Names};
use clock::Moment;
pub(crate) use pipe::CAPACITY;
use pipe::{End, Pipe, PipeSink, PipeSource, Who};
use std::marker::PhantomData;
use std::num::NonZeroU8;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The version of everything sent over the wire. Only equal versions interoperate.
pub const PROTOCOL_VERSION: u16 = 4;

/// A message of a protocol: its tag on the wire, its element type, and its name in words. `Message<[u8]>` carries plain
/// bytes.
#[derive(Debug)]
pub struct Message<T: ?Sized> {
    tag: u16,
    name: &'static str,
    element: PhantomData<fn() -> Box<T>>,
}

impl<T: ?Sized> Clone for Message<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for Message<T> {}

impl<T: ?Sized> Message<T> {
    /// Declares a message. The tag is unique within the program, from 1 to 65,279.
    pub const fn new(tag: u16, name: &'static str) -> Self {
        Message { tag, name, element: PhantomData }
    }

    /// Its tag.
    pub const fn tag(self) -> u16 {
        self.tag
    }
}

/// Heartbeat frame: signals that the sender is alive. Empty; allowed between any two frames; not in the [`Account`].
const HEARTBEAT: u16 = 0xff00;
/// Heartbeats allowed beyond twice the number that is due; equivalent to nine hours. While this machine sleeps, its
/// clock may stop, and all of the peer's frames arrive at once when it wakes.
const HEARTBEATS_AT_ONCE: u128 = 1 << 16;
/// Abort frame: signals that the sender gives up. One byte, the reason; in a mesh a second one, the party at fault.
const ABORT: u16 = 0xff01;

/// Length of a frame's header in bytes: tag and body length.
pub const HEADER: usize = 6;

fn header(tag: u16, len: usize) -> Result<[u8; HEADER]> {
    let len = u32::try_from(len).map_err(|_| Error::bug(format!("a frame of {len} bytes")))?;
    let ([a, b], [c, d, e, f]) = (tag.to_le_bytes(), len.to_le_bytes());
    Ok([a, b, c, d, e, f])
}

/// The sending side of a transport.
pub trait Sink: Send {
    /// Sends one whole frame; blocks while the transport is full.
    fn send(&mut self, frame: Vec<u8>) -> Result<()>;
}

/// The receiving side of a transport.
pub trait Source: Send {
    /// Fills `out`. Blocks until it is full, and fails at the deadline if there is one.
    fn recv(&mut self, out: &mut [u8], deadline: Option<Instant>) -> Result<()>;
}

/// Receives the progress of a run. Its methods are called from several threads.
pub trait Observer: Send + Sync {
    /// Announces the number of stages and the expected course, once the operation is settled.
    fn begins(&self, _stages: usize, _course: &Course) {}
    /// Announces a stage that transfers about `total` units over the channel, counting both directions.
    fn stage(&self, name: &'static str, unit: Unit, total: usize);
    /// Reports the transfer of another `amount` of this unit, in a frame of `bytes` bytes. Ignore units other than the
    /// stage's.
    fn advance(&self, unit: Unit, amount: usize, bytes: usize);
}

/// The unit in which a stage's progress is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Elements of typed messages.
    Items,
    /// Bytes of plain messages.
    Bytes,
}

/// The sending half of a channel.
pub struct Tx {
    sink: Box<dyn Sink>,
    /// The account of the channel.
    account: Account,
    observer: Option<Arc<dyn Observer>>,
    /// Whether sending a frame has failed.
    failed: bool,
}

impl Tx {
    /// Sends a frame of elements.
    pub fn send<T: Wire>(&mut self, message: Message<T>, elements: &[T]) -> Result<()> {
        let mut frame = Vec::with_capacity(HEADER + elements.len() * T::SIZE);
        frame.extend_from_slice(&header(message.tag, elements.len() * T::SIZE)?);
        elements.iter().for_each(|e| e.put(&mut frame));
        self.send_frame((message.tag, message.name), frame, (Unit::Items, elements.len()))
    }

    /// Sends a frame of plain bytes.
    pub fn send_bytes(&mut self, message: Message<[u8]>, bytes: &[u8]) -> Result<()> {
        let mut frame = Vec::with_capacity(HEADER + bytes.len());
        frame.extend_from_slice(&header(message.tag, bytes.len())?);
        frame.extend_from_slice(bytes);
        self.send_frame((message.tag, message.name), frame, (Unit::Bytes, bytes.len()))
    }

    fn send_frame(
        &mut self,
        message: (u16, &'static str),
        frame: Vec<u8>,
        (unit, amount): (Unit, usize),
    ) -> Result<()> {
        let bytes = frame.len();
        self.account.sent(message, bytes);
        self.sink.send(frame).inspect_err(|_| self.failed = true)?;
        if let Some(observer) = &self.observer {
            observer.advance(unit, amount, bytes);
        }
        Ok(())
    }
}

/// The receiving half of a channel.
pub struct Rx {
    source: Box<dyn Source>,
    recording: Option<Recording>,
    /// Maximum wait for a frame from a peer that is alive.
    patience: Option<Duration>,
    /// The time of the channel's creation, and the number of heartbeats received since then.
    began: Instant,
    heartbeats: u64,
    /// The account of the channel.
    account: Account,
    observer: Option<Arc<dyn Observer>>,
    who: Who,
    /// The position of the channel in a mesh, if there is one.
    link: Option<Link>,
    /// The number of the party that the peer accused when it gave up; never its own or ours.
    accuses: Option<NonZeroU8>,
    /// See [`Rx::unexpected`].
    unexpected: Option<u16>,
}

impl Rx {
    /// Receives a frame of exactly `n` elements, where `n` follows from public parameters. A value that [`Wire::get`]
    /// rejects is an error. Whatever else makes a point or a ciphertext malformed is found only when it is used.
    pub fn recv<T: Wire>(&mut self, message: Message<T>, n: usize) -> Result<Vec<T>> {
        let body = self.recv_frame(message.tag, message.name, n * T::SIZE, n * T::SIZE)?;
        let mut elements = Vec::with_capacity(n);
        for (i, bytes) in body.chunks_exact(T::SIZE).enumerate() {
            elements.push(T::get(bytes).map_err(|what| {
                self.misbehaves(format!("element {i} of its message \"{}\" is {what}", message.name))
            })?);
        }
        if let Some(observer) = &self.observer {
            observer.advance(Unit::Items, n, HEADER + n * T::SIZE);
        }
        Ok(elements)
    }

    /// Receives a frame of exactly `len` bytes.
    pub fn recv_bytes(&mut self, message: Message<[u8]>, len: usize) -> Result<Vec<u8>> {
        self.recv_bytes_between(message, len, len)
    }

    /// Receives a frame of at most `max` bytes, where `max` follows from public parameters.
    pub fn recv_bounded(&mut self, message: Message<[u8]>, max: usize) -> Result<Vec<u8>> {
        self.recv_bytes_between(message, 0, max)
    }

    fn recv_bytes_between(&mut self, message: Message<[u8]>, min: usize, max: usize) -> Result<Vec<u8>> {
        let body = self.recv_frame(message.tag, message.name, min, max)?;
        if let Some(observer) = &self.observer {
            observer.advance(Unit::Bytes, body.len(), HEADER + body.len());
        }
        Ok(body)
    }

    /// The tag of the message that came last, if another one was expected.
    pub fn unexpected(&self) -> Option<u16> {
        self.unexpected
    }

    /// An error that is the peer's fault.
    fn misbehaves(&self, what: String) -> Error {
        let seat = self.link.as_ref().map_or(Seat::PEER, |link| Seat::numbered(link.peer));
        Error::misbehaves(what).by(seat)
    }

    /// Whether this is the length of the body of an abort frame in bytes: of a party with a list of the parties, 2. The other party
    /// may have a list where we have none, or none where we have one.
    fn is_abort(len: usize) -> bool {
        matches!(len, 1 | 2)
    }

    /// The error on our side for this abort message of the peer.
    fn abort_error(&mut self, body: [u8; 2]) -> Error {
        let Some(link) = &self.link else { return Reason::received(body[0]) };
        let (error, accuses) = link.received(body);
        self.accuses = accuses;
        error
    }

    /// Reads to the end of the stream, looking for an abort, at most until `until`.
    fn abort_frame(&mut self, until: Instant) -> Option<Error> {
        let mut waste = [0u8; 4096];
        while Instant::now() < until {
            let mut head = [0u8; HEADER];
            self.source.recv(&mut head, Some(until)).ok()?;
            let [a, b, c, d, e, f] = head;
            let mut left = u32::from_le_bytes([c, d, e, f]) as usize;
            if u16::from_le_bytes([a, b]) == ABORT && Rx::is_abort(left) {
                let mut body = [0u8; 2];
                self.source.recv(&mut body[..left], Some(until)).ok()?;
                return Some(self.abort_error(body));
            }
            // The peer chose this length: the time bounds the loop, even if data keeps arriving.
            while left > 0 && Instant::now() < until {
                let n = left.min(waste.len());
                self.source.recv(&mut waste[..n], Some(until)).ok()?;
                left -= n;
            }
        }
        None
    }

    /// Counts a heartbeat and fails if there are too many: a flood could otherwise keep us busy until our patience
    /// ends. The count starts with the channel, because heartbeats legitimately accumulate while we do not read.
    fn heartbeat(&mut self) -> Result<()> {
        self.heartbeats += 1;
        let time = self.began.elapsed();
        let due = time.as_millis() / stream::HEARTBEAT_EVERY.as_millis();
        match u128::from(self.heartbeats) <= HEARTBEATS_AT_ONCE + 2 * due {
            true => Ok(()),
            false => Err(self.misbehaves(format!(
                "it sent {} heartbeats in {} seconds, at most {due} were due",
                self.heartbeats,
                time.as_secs()
            ))),
        }
    }

    fn recv_frame(&mut self, tag: u16, name: &'static str, min: usize, max: usize) -> Result<Vec<u8>> {
        let mut head = [0u8; HEADER];
        // Heartbeats do not extend the deadline: a peer must make progress, not only be alive.
        let deadline = self.patience.and_then(|patience| Instant::now().checked_add(patience));
        let (got, len) = loop {
            self.source.recv(&mut head, deadline)?;
            let [a, b, c, d, e, f] = head;
            let (got, len) = (u16::from_le_bytes([a, b]), u32::from_le_bytes([c, d, e, f]) as usize);
            if got == HEARTBEAT && len == 0 {
                self.heartbeat()?;
                match (self.patience, deadline) {
                    (Some(patience), Some(deadline)) if Instant::now() > deadline => {
                        return Err(End::Stalled(patience).error(&self.who));
                    }
                    _ => continue,
                }
            }
            if got == ABORT && Rx::is_abort(len) {
                let mut body = [0u8; 2];
                self.source.recv(&mut body[..len], deadline)?;
                return Err(self.abort_error(body));
            }
            break (got, len);
        };
        let expected = || match min == max {
            true => format!("message {tag:#x} \"{name}\" of {max} bytes was expected"),
            false => format!("message {tag:#x} \"{name}\" of {min} to {max} bytes was expected"),
        };
        self.unexpected = (got != tag).then_some(got);
        if got != tag || len < min || len > max {
            return Err(self.misbehaves(format!("{}, message {got:#x} of {len} bytes came", expected())));
        }
        let mut body = vec![0u8; len];
        self.source.recv(&mut body, deadline)?;
        self.account.received((tag, name), HEADER + len);
        if let Some(recording) = &mut self.recording {
            recording.write(&head)?;
            recording.write(&body)?;
        }
        Ok(body)
    }
}

/// A connection to the peer.
pub struct Channel {
    /// The sending half.
    pub tx: Tx,
    /// The receiving half.
    pub rx: Rx,
    ends: Ends,
    /// Threads that must finish before the program may exit.
    pumps: Vec<std::thread::JoinHandle<()>>,
}

/// The two pipes of a channel, which allow ending it from outside, and whether that was requested.
#[derive(Clone, Default)]
struct Ends {
    incoming: Option<Arc<Pipe>>,
    outgoing: Option<Arc<Pipe>>,
    /// In a mesh, the number of the party at the other end.
    peer: Option<NonZeroU8>,
    /// Whether the run was stopped from this side. The pipes do not record it: each keeps the first reason for its end,
    /// and the peer may receive ours, and leave, before the second one has ended.
    cancelled: Arc<AtomicBool>,
}

impl Ends {
    /// Ends both pipes, after sending the peer the reason and, in a mesh, the party at fault.
    fn stop(&self, why: &End, reason: Reason, culprit: Option<NonZeroU8>) {
        if let Some(pipe) = &self.outgoing {
            let body = [reason.code(), culprit.map_or(0, NonZeroU8::get)];
            let body = if self.peer.is_some() { &body[..] } else { &body[..1] };
            let frame = header(ABORT, body.len()).map(|h| [&h[..], body].concat()).ok();
            pipe.end_with(why.clone(), frame);
        }
        if let Some(pipe) = &self.incoming {
            pipe.end(why.clone());
        }
    }

    /// Gives up because of this error.
    fn give_up(&self, error: &Error) {
        match self.peer {
            None => self.stop(&End::GaveUp, Reason::of(error), None),
            // An error about another party is about the one at the other end if it names none.
            Some(peer) => self.give_up_for(error, error.seat().map(|seat| seat.number().unwrap_or(peer))),
        }
    }

    /// Gives up because of this error, which in a mesh is the fault of this party.
    fn give_up_for(&self, error: &Error, culprit: Option<NonZeroU8>) {
        let reason = if self.peer.is_some() { Reason::in_mesh(error) } else { Reason::of(error) };
        self.stop(&End::GaveUp, reason, culprit);
    }
}

/// Stops a run from outside, for instance on Ctrl-C.
#[derive(Clone)]
pub struct Canceller(Vec<Ends>);

impl Canceller {
    /// Notifies the peer, and makes every blocked operation on the channel return [`Error::Cancelled`].
    pub fn cancel(&self) {
        // Set all flags first: in a mesh, a notified party can notify the others, and they can leave before we reach
        // them.
        self.0.iter().for_each(|ends| ends.cancelled.store(true, Ordering::SeqCst));
        self.0.iter().for_each(|ends| ends.stop(&End::Cancelled, Reason::Cancelled, None));
    }
}

/// Combines handles into one that stops all of their runs.
impl FromIterator<Canceller> for Canceller {
    fn from_iter<I: IntoIterator<Item = Canceller>>(all: I) -> Canceller {
        Canceller(all.into_iter().flat_map(|canceller| canceller.0).collect())
    }
}

/// Gives up on a channel while another thread uses it.
#[derive(Clone)]
pub struct Stopper(Ends);

impl Stopper {
    /// Notifies the peer that we give up because of `error`. `culprit` is the number of the party at fault; `None` if
    /// that is us. Afterwards nothing can be sent, and only frames that arrived before can be received.
    pub fn give_up(&self, error: &Error, culprit: Option<NonZeroU8>) {
        self.0.give_up_for(error, culprit);
    }
}

impl Channel {
    fn from_pipes(incoming: Arc<Pipe>, outgoing: Arc<Pipe>) -> Channel {
        let who = Who::default();
        let mut channel = Channel::from_halves(
            Box::new(PipeSink { pipe: outgoing.clone(), who: who.clone() }),
            Box::new(PipeSource::new(incoming.clone(), who.clone())),
        );
        channel.rx.who = who;
        channel.ends = Ends { incoming: Some(incoming), outgoing: Some(outgoing), ..Ends::default() };
        channel
    }

    /// Returns a channel over any transport, for replays and for tests. A cancellation does not interrupt its blocked
    /// operations, and the peer is not told why we give up.
    pub fn from_halves(sink: Box<dyn Sink>, source: Box<dyn Source>) -> Channel {
        let account = Account::default();
        Channel {
            tx: Tx { sink, account: account.clone(), observer: None, failed: false },
            rx: Rx {
                source,
                recording: None,
                patience: None,
                began: Instant::now(),
                heartbeats: 0,
                account,
                observer: None,
                who: Who::default(),
                link: None,
                accuses: None,
                unexpected: None,
            },
            ends: Ends::default(),
            pumps: Vec::new(),
        }
    }

    /// Returns two connected in-memory channels. Each direction holds at most 1 MiB, or one larger frame, so that a protocol
    /// that would deadlock over a network does so here.
    pub fn pair() -> (Channel, Channel) {
        let (a, b) = (Pipe::new(), Pipe::new());
        (Channel::from_pipes(a.clone(), b.clone()), Channel::from_pipes(b, a))
    }

    /// Returns the two halves of the transport, so that a test can interpose its own.
    pub fn into_halves(self) -> (Box<dyn Sink>, Box<dyn Source>) {
        (self.tx.sink, self.rx.source)
    }

    /// Makes this a channel of a mesh: messages name the party at its other end, and aborts name the party at fault.
    /// Both ends must do this before anything is sent.
    pub fn join(&mut self, link: Link) {
        self.rx.who.set(link.names.full(link.peer));
        self.ends.peer = Some(link.peer);
        self.rx.link = Some(link);
    }

    /// Gives up on a peer that is alive but sends or accepts no frame for this long.
    pub fn set_patience(&mut self, patience: Duration) {
        self.rx.patience = Some(patience);
        for pipe in [&self.ends.incoming, &self.ends.outgoing].into_iter().flatten() {
            pipe.set_patience(patience);
        }
    }

    /// Shortens the wait of [`Channel::set_patience`] to this time, if it was longer. Returns the previous one.
    pub fn limit_patience(&mut self, at_most: Duration) -> Duration {
        let before = self.rx.patience.unwrap_or(Duration::MAX);
        self.set_patience(before.min(at_most));
        before
    }

    /// Extends the wait of [`Channel::set_patience`] to at least this time, if it is not unlimited.
    pub(crate) fn be_patient(&mut self, at_least: Duration) {
        if let Some(patience) = self.rx.patience {
            self.set_patience(patience.max(at_least));
        }
    }

    /// Reports progress to `observer` from now on.
    pub fn observe(&mut self, observer: Arc<dyn Observer>) {
        self.tx.observer = Some(observer.clone());
        self.rx.observer = Some(observer);
    }

    /// Announces the number of stages and the expected course of the run to the observer.
    pub fn begins(&self, stages: usize, course: &Course) {
        if let Some(observer) = &self.tx.observer {
            observer.begins(stages, course);
        }
    }

    /// Announces a stage that transfers about `total` units over the channel, counting both directions.
    pub fn stage(&self, name: &'static str, unit: Unit, total: usize) {
        self.account().begin(name);
        if let Some(observer) = &self.tx.observer {
            observer.stage(name, unit, total);
        }
    }

    /// Returns the account of this channel: bytes of messages and times of stages.
    pub fn account(&self) -> &Account {
        &self.tx.account
    }

    /// Writes every frame received from now on to `recording`, except heartbeats and aborts.
    pub fn record(&mut self, recording: Recording) {
        self.rx.recording = Some(recording);
    }

    /// Returns the bytes of all messages sent, including the headers of their frames, but without heartbeats, aborts and
    /// the transport's overhead.
    pub fn bytes_sent(&self) -> u64 {
        self.account().bytes().0
    }

    /// Returns the bytes of all messages received, including the headers of their frames, but without heartbeats, aborts
    /// and the transport's overhead.
    pub fn bytes_received(&self) -> u64 {
        self.account().bytes().1
    }

    /// If we were stopped, replaces a network error, or the peer's giving up, with [`Error::Cancelled`]: the peer's
    /// departure does not change why we ended. Otherwise replaces a network error with the reason that the peer gave
    /// before it left, if any.
    pub fn explain(&mut self, error: Error) -> Error {
        let stopped = self.ends.cancelled.load(Ordering::SeqCst);
        match error {
            Error::Network(_) | Error::Peer { fault: Fault::GaveUp, .. } if stopped => Error::Cancelled,
            Error::Network(_) => {
                self.rx.abort_frame(Instant::now() + stream::EXPLAIN_WITHIN).unwrap_or(error)
            }
            _ => error,
        }
    }

    /// The number of the party of a mesh that the peer accused when it gave up; `None` if it accused nobody, itself or us.
    pub(crate) fn accuses(&self) -> Option<NonZeroU8> {
        self.rx.accuses
    }

    /// Returns why the peer has left, if it has: its abort message, or else how the connection ended. Waits at most
    /// until `until`, and discards all other frames.
    pub fn departed(&mut self, until: Instant) -> Option<Error> {
        let abort = self.rx.abort_frame(until);
        abort.or_else(|| match self.ends.incoming.as_ref()?.ended()? {
            end @ (End::Closed | End::Idle(_) | End::Broken(_)) => Some(end.error(&self.rx.who)),
            // Our side ended the connection.
            End::Stalled(_) | End::Cancelled | End::GaveUp => None,
        })
    }

    /// Returns a handle for stopping the run from another thread.
    pub fn canceller(&self) -> Canceller {
        Canceller(vec![self.ends.clone()])
    }

    /// Returns a handle for giving up on this channel of a mesh from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.ends.clone())
    }

    /// Fails if the channel has ended, so that nothing is committed to a run that cannot continue. On a channel from
    /// [`Channel::from_halves`] it notices only a cancellation.
    pub fn alive(&self) -> Result<()> {
        // A cancellation takes precedence over everything else.
        if self.ends.cancelled.load(Ordering::SeqCst) {
            return Err(Error::Cancelled);
        }
        let pipes = [&self.ends.outgoing, &self.ends.incoming];
        match pipes.into_iter().flatten().find_map(|pipe| pipe.ended()) {
            Some(end) => Err(end.error(&self.rx.who)),
            None => Ok(()),
        }
    }

    /// Notifies the peer that we give up because of `error`. Nothing can be sent afterwards.
    pub fn abort(&self, error: &Error) {
        self.ends.give_up(error);
    }

    /// Closes the channel gracefully: waits, for at most little more than 3 seconds, until all sent frames have left
    /// this program and the peer has closed too. The socket is closed on return.
    pub fn close(self) {
        let Channel { tx, rx, pumps, .. } = self;
        drop((tx, rx));
        // The threads give up on their own after 3 seconds, at most two ticks late.
        stream::wait(&pumps, Instant::now() + stream::CLOSE_WITHIN + 10 * stream::TICK);
    }

    /// Runs `produce` and `consume` concurrently, for steps in which both directions flow at once, or one flows while
    /// the other half computes. The first to fail or panic stops the other, except that `consume` goes on if `produce`
    /// fails because of the network: it may still read the peer's last messages. Returns the first error, unless that is,
    /// or may be, only a consequence of the other half's.
    pub fn duplex<A: Send, B>(
        &mut self,
        produce: impl FnOnce(&mut Tx) -> Result<A> + Send,
        consume: impl FnOnce(&mut Rx) -> Result<B>,
    ) -> Result<(A, B)> {
        let (mut produce, mut consume) = (Some(produce), Some(consume));
        let (mut a, mut b) = (None, None);
        self.halves(
            &mut |tx| {
                a = produce.take().map(|produce| produce(tx)).transpose()?;
                Ok(())
            },
            &mut |rx| {
                b = consume.take().map(|consume| consume(rx)).transpose()?;
                Ok(())
            },
        )?;
        a.zip(b).ok_or_else(|| Error::Bug("half of a duplex step has no result".into()))
    }

    /// [`Channel::duplex`], compiled once for all callers.
    fn halves(
        &mut self,
        produce: &mut (dyn FnMut(&mut Tx) -> Result<()> + Send),
        consume: &mut dyn FnMut(&mut Rx) -> Result<()>,
    ) -> Result<()> {
        let (tx, rx, ends) = (&mut self.tx, &mut self.rx, &self.ends);
        let first: Mutex<Option<Error>> = Mutex::new(None);
        let note = |error: Error, stop: bool| {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            let weight = queue::weight(&error);
            // A consequence means that the other half has ended, and its error is the reason to stop.
            if stop && weight > 0 {
                ends.give_up(&error);
            }
            if first.as_ref().is_none_or(|first| queue::weight(first) < weight) {
                *first = Some(error);
            }
        };
        let begins = Moment::now();
        let (sent, received) = std::thread::scope(|scope| -> Result<_> {
            // If sending fails because the peer has left, the other half may still read the peer's last messages.
            let producer = threads::start(scope, || {
                begins.reach();
                let sent = caught("half of a duplex step", || produce(tx)).map_err(|e| {
                    let stop = !matches!(e, Error::Network(_));
                    note(e, stop)
                });
                (sent, Moment::now())
            })?;
            let received = caught("half of a duplex step", || consume(rx)).map_err(|e| note(e, true));
            Ok((producer.join(), received))
        })?;
        match (sent, received) {
            (Ok((Ok(()), ends)), Ok(())) => {
                ends.reach();
                Ok(())
            }
            _ => Err(first
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)
                .unwrap_or_else(|| Error::Bug("half of a duplex step failed silently".into()))),
        }
    }
}

/// Runs a step, called `what` in messages. A panic becomes an ordinary error, so that it stops the steps that wait for
/// this one.
pub(crate) fn caught<T>(what: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    // Unwind-safe: the step leaves only channels behind, which are abandoned.
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::bug(format!("{what} panicked: {words}")))
    })
}

/// Splits `n` elements into frames of `frame` elements. Returns the number of elements of each frame.
pub fn frames(n: usize, frame: usize) -> impl ExactSizeIterator<Item = usize> {
    (0..n.div_ceil(frame)).map(move |i| frame.min(n - i * frame))
}

#[cfg(test)]
mod tests;
