//! The listening side: any client may connect, but only the peer is accepted.

use super::connect::{ABSENT, Address, COMPARE, Connection, HANDSHAKE, Protection, Watch, after, listed};
use super::fingerprint::Fingerprint;
use super::label::Label;
use super::room::{HANDSHAKES, Room};
use super::tls::{Failure, Keys, Limits, Secured, TAKEN};
use crate::channel::Timeouts;
use crate::error::{Error, Result};
use crate::rng::Prng;
use crate::spelling::PEER;
use std::cell::Cell;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

/// Maximum number of reported strangers. A port scan must not flood the terminal.
const REPORTS: usize = 20;
/// The interval at which the listener polls.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// Files reserved for each awaited connection: clones of its socket, the log, and a few more.
pub(super) const SPARE: usize = 8;

/// The listening side in two steps, for callers that need to know the port before the peer connects.
pub struct Listener {
    /// The sockets; at least one.
    sockets: Vec<TcpListener>,
    /// The addresses of the sockets.
    addresses: Vec<SocketAddr>,
    /// The first of the addresses.
    at: SocketAddr,
    /// Whether the user was notified that the system refuses connections (for instance, because too many files are open).
    complained: Cell<bool>,
}

impl Listener {
    /// Listens at HOST:PORT; port 0 means any free port.
    pub fn bind(address: &str) -> Result<Listener> {
        let addresses = Address::parse(address)?.resolve_own()?;
        Self::bind_all(address, &addresses)
    }

    /// Listens at all of these addresses that this machine has; if the port is 0, at the first only. A name may have several
    /// (localhost is both 127.0.0.1 and ::1), and the peer may try any of them.
    pub(super) fn bind_all(text: &str, addresses: &[SocketAddr]) -> Result<Listener> {
        let (mut sockets, mut bound, mut failed) = (Vec::new(), Vec::new(), None);
        for &address in addresses {
            let socket = TcpListener::bind(address).and_then(|socket| {
                socket.set_nonblocking(true)?;
                Ok((socket.local_addr()?, socket))
            });
            match socket {
                Ok((at, socket)) => {
                    bound.push(at);
                    sockets.push(socket);
                }
                // Names can resolve to IPv6 addresses even on machines without IPv6.
                Err(e) if e.kind() == ErrorKind::AddrNotAvailable => failed = Some(e),
                Err(e) => return Err(cannot_listen(text, &e)),
            }
            if address.port() == 0 && !sockets.is_empty() {
                break;
            }
        }
        match bound.first() {
            Some(&at) => Ok(Listener { sockets, addresses: bound, at, complained: Cell::new(false) }),
            None => Err(cannot_listen(text, &failed.unwrap_or_else(|| ErrorKind::AddrNotAvailable.into()))),
        }
    }

    /// The address we listen at; the first if there are several.
    pub fn local_addr(&self) -> SocketAddr {
        self.at
    }

    /// Waits for the peer. Over TLS, strangers cannot end that: their handshakes run concurrently, each with a deadline.
    /// Only a flood of connections can delay it: one may displace that of the peer, which then tries again. The first
    /// connection to prove that it is the expected peer is accepted, and none after it. Without TLS, the first connection
    /// from this machine is accepted.
    pub fn accept(
        self,
        security: &Protection,
        timeouts: Timeouts,
        cancelled: &dyn Fn() -> bool,
        notice: &dyn Fn(&str),
    ) -> Result<Connection> {
        self.run(security, None, &Watch::new(timeouts, cancelled, notice))
    }

    pub(super) fn run(
        self,
        security: &Protection,
        label: Option<&Label>,
        watch: &Watch<'_>,
    ) -> Result<Connection> {
        security.allows("the address listened at", &self.addresses)?;
        match security.keys(label)? {
            Some(keys) => Reception::new(&keys, watch, self.at, HANDSHAKES)?.run(&self),
            None => self.first_comer(watch),
        }
    }

    /// Calls `each` with every waiting connection. If a connection cannot be accepted because too many files are open, calls it
    /// with `None`, and the connection stays in the queue.
    fn waiting(&self, notice: &dyn Fn(&str), mut each: impl FnMut(Option<(TcpStream, SocketAddr)>)) {
        for socket in &self.sockets {
            // A bound, so that a flood does not keep us from checking the time.
            for _ in 0..HANDSHAKES {
                match socket.accept() {
                    Ok((connection, from)) if connection.set_nonblocking(false).is_ok() => {
                        each(Some((connection, from)))
                    }
                    Ok(_) => {}
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => {
                        if too_many_files(&e) {
                            each(None);
                        }
                        if !self.complained.replace(true) {
                            notice(&format!("a connection could not be accepted: {e}"));
                        }
                        break;
                    }
                }
            }
        }
    }

    /// Returns files to keep open, so that strangers cannot use up the files needed for the connections of this many parties;
    /// fewer if no more can be opened.
    pub(super) fn spare(&self, parties: usize) -> Vec<TcpListener> {
        let sockets = self.sockets.iter().cycle().take(parties * SPARE);
        sockets.map_while(|socket| socket.try_clone().ok()).collect()
    }

    fn first_comer(&self, watch: &Watch<'_>) -> Result<Connection> {
        loop {
            watch.check()?;
            let mut first = None;
            self.waiting(watch.notice, |comer| {
                if let Some((socket, from)) = comer
                    && from.ip().to_canonical().is_loopback()
                {
                    first.get_or_insert(socket);
                }
            });
            if let Some(socket) = first {
                return Connection::plain(socket, watch.timeouts);
            }
            watch.hint(|| still_waiting(self.at));
            if watch.left().is_zero() {
                return Err(nobody_came(watch, self.at, ""));
            }
            std::thread::sleep(LOOK.min(watch.left()));
        }
    }
}

/// Whether the process or the system has reached its limit of open files.
fn too_many_files(e: &std::io::Error) -> bool {
    // ENFILE and EMFILE.
    cfg!(unix) && matches!(e.raw_os_error(), Some(23 | 24))
}

fn cannot_listen(text: &str, e: &std::io::Error) -> Error {
    let next = match e.kind() {
        ErrorKind::AddrInUse => "Another program listens there: stop it or choose another port",
        ErrorKind::PermissionDenied => "Choose a port above 1023",
        ErrorKind::AddrNotAvailable => {
            "Choose one of this machine's addresses; 0.0.0.0:PORT and [::]:PORT are all of them"
        }
        _ => "Choose another address or port",
    };
    Error::usage(format!("cannot listen on {text}: {e}. {next}")).because(e)
}

fn nobody_came(watch: &Watch<'_>, at: SocketAddr, last: &str) -> Error {
    Error::network(format!(
        "the peer did not connect to {at} {}{last}. {ABSENT}, and whether it connects to this machine's \
         address and port. Check firewalls, then run again",
        watch.within()
    ))
}

fn still_waiting(at: SocketAddr) -> String {
    format!(
        "the peer has not connected to {at} yet; still waiting. {ABSENT}, and whether it connects to this machine's \
         address and port. Check firewalls"
    )
}

/// A listener at work: runs handshakes with all clients until the awaited parties are connected.
pub(super) struct Reception<'a> {
    keys: &'a Keys,
    watch: &'a Watch<'a>,
    pub(super) at: SocketAddr,
    /// The fingerprints of the parties that have not been accepted yet.
    awaited: Vec<Fingerprint>,
    /// The sockets of the handshakes in progress.
    room: Room<Arc<TcpStream>>,
    reported: usize,
    /// The last connection that was refused because of a key, or else the last one that was refused, and its failure.
    pub(super) last: Option<(SocketAddr, Failure)>,
    /// The sender with which handshakes report their outcome, with the id of the connection.
    report: Sender<(u64, Outcome)>,
    outcomes: Receiver<(u64, Outcome)>,
    /// Whether the handshakes are no longer needed.
    over: Arc<AtomicBool>,
}

type Outcome = Result<Secured, Failure>;

impl<'a> Reception<'a> {
    pub(super) fn new(
        keys: &'a Keys,
        watch: &'a Watch<'a>,
        at: SocketAddr,
        handshakes: usize,
    ) -> Result<Self> {
        let (report, outcomes) = mpsc::channel();
        let room = Room::new(handshakes, Prng::from_os()?);
        Ok(Reception {
            keys,
            watch,
            at,
            awaited: keys.expected().to_vec(),
            room,
            reported: 0,
            last: None,
            report,
            outcomes,
            over: Arc::default(),
        })
    }

    fn run(mut self, listener: &Listener) -> Result<Connection> {
        let spare = listener.spare(1);
        loop {
            self.watch.check()?;
            if let Some(secured) = self.round(listener) {
                drop(spare);
                return Connection::secured(secured, self.keys, self.watch.timeouts);
            }
            self.watch.hint(|| still_waiting(self.at));
            if self.watch.left().is_zero() {
                return Err(self.nobody());
            }
        }
    }

    /// Starts handshakes with all waiting clients, and returns the connection of an awaited party, if one has completed.
    pub(super) fn round(&mut self, listener: &Listener) -> Option<Secured> {
        listener.waiting(self.watch.notice, |comer| match comer {
            Some((socket, from)) => self.receive(socket, from),
            None => self.make_room(),
        });
        self.peer()
    }

    /// Waits a moment for handshakes to end, and checks those that have, up to the first by an awaited party, whose connection
    /// it returns.
    fn peer(&mut self) -> Option<Secured> {
        let mut wait = LOOK.min(self.watch.left());
        loop {
            match self.outcomes.recv_timeout(wait) {
                Ok((id, outcome)) => {
                    if let Some(secured) = self.judge(id, outcome) {
                        return Some(secured);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
            wait = Duration::ZERO;
        }
    }

    /// Starts a handshake on a thread of its own.
    fn receive(&mut self, socket: TcpStream, from: SocketAddr) {
        let socket = Arc::new(socket);
        let (id, displaced) = self.room.enter(from, socket.clone());
        self.cut_off(displaced);
        let keys = self.keys.clone();
        let (over, report) = (self.over.clone(), self.report.clone());
        let deadline = after(HANDSHAKE).min(self.watch.deadline);
        let begun = std::thread::Builder::new().name("handshake".into()).spawn(move || {
            let stop = || over.load(Ordering::Relaxed);
            // The receiver is gone once the peer is found.
            let _ = report.send((id, keys.accept(socket, &Limits { deadline, stop: &stop })));
        });
        if let Err(e) = begun {
            self.room.leave(id);
            self.turned_away(from, Failure::Io(e.to_string()));
        }
    }

    /// Evicts one connection so that another can be accepted. Its thread closes the socket in a moment.
    fn make_room(&mut self) {
        let displaced = self.room.displace();
        self.cut_off(displaced);
    }

    fn cut_off(&mut self, displaced: Option<(SocketAddr, Arc<TcpStream>)>) {
        if let Some((from, socket)) = displaced {
            let _ = socket.shutdown(Shutdown::Both);
            self.turned_away(from, Failure::Displaced);
        }
    }

    /// Returns the connection if it is that of an awaited party and was not cut off.
    fn judge(&mut self, id: u64, outcome: Outcome) -> Option<Secured> {
        // A connection that is no longer in the room was cut off.
        let (from, _) = self.room.leave(id)?;
        let taken = outcome.and_then(|secured| self.admit(secured));
        taken.map_err(|failure| self.turned_away(from, failure)).ok()
    }

    /// Accepts the first connection of each awaited party, and none after it.
    fn admit(&mut self, mut secured: Secured) -> Result<Secured, Failure> {
        let proven = secured.peer().map_err(|e| Failure::Io(e.marked()))?;
        let Some(at) = self.awaited.iter().position(|awaited| proven.is(awaited)) else {
            secured.say(TAKEN)?;
            return Err(Failure::Again(proven));
        };
        secured.welcome()?;
        self.awaited.remove(at);
        Ok(secured)
    }

    fn turned_away(&mut self, from: SocketAddr, failure: Failure) {
        self.reported += 1;
        if self.reported <= REPORTS {
            let expected = match failure {
                Failure::WrongKey(_) => match self.keys.expected() {
                    [peer] => format!(" (expected is {peer})"),
                    several => format!(" (it is none of the {} that are expected)", several.len()),
                },
                Failure::Unwanted => format!(" ({})", self.keys.ours),
                _ => String::new(),
            };
            (self.watch.notice)(&format!("a connection from {from} was turned away: {failure}{expected}"));
        }
        if self.reported == REPORTS {
            (self.watch.notice)("further connections that are turned away are not reported");
        }
        let about_keys = |f: &Failure| matches!(f, Failure::WrongKey(_) | Failure::Unwanted);
        if about_keys(&failure) || !self.last.as_ref().is_some_and(|(_, f)| about_keys(f)) {
            self.last = Some((from, failure));
        }
    }

    fn nobody(&self) -> Error {
        let (ours, peer) = (self.keys.ours, listed(self.keys.expected()));
        match &self.last {
            Some((from, Failure::WrongKey(presented))) => Error::stranger(format_args!(
                "it did not connect to {} {}. A connection from {from} shows the fingerprint {presented}, \
                 which proves nothing; expected is {peer}. {COMPARE}",
                self.at,
                self.watch.within()
            )),
            Some((from, Failure::Unwanted)) => Error::stranger(format_args!(
                "it did not connect to {} {}. A connection from {from} says that it expects a fingerprint \
                 other than ours, {ours} (we expect {peer}). If that was the other party, ask it to \
                 run with {}",
                self.at,
                self.watch.within(),
                PEER.with(ours)
            )),
            Some((from, failure)) => {
                let last = format!("; the last connection, from {from}, was turned away: {failure}");
                nobody_came(self.watch, self.at, &last)
            }
            None => nobody_came(self.watch, self.at, ""),
        }
    }
}

impl Drop for Reception<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
