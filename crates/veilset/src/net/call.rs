//! The connecting side: tries the addresses of the peer, or of a proxy, until one of them leads to the peer.

use super::Label;
use super::connect::{ABSENT, Address, Connection, HANDSHAKE, Protection, Watch, after};
use super::listen::LOOK;
use super::proxy::{Proxy, Target};
use super::tls::{Failure, Keys, Limits};
use crate::error::{Error, Result};
use crate::spelling::{INSECURE_PLAINTEXT, PROXY, setting};
use crate::threads;
use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long the connecting side pauses before it tries all addresses again.
const RETRY: Duration = Duration::from_millis(200);
/// The maximum time that the connecting side waits for an address to answer.
const ANSWER: Duration = Duration::from_secs(3);
/// The minimum time that it waits, however little time is left.
const BRIEFLY: Duration = Duration::from_millis(20);

/// The way to the party we connect to.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) address: &'a str,
    pub(super) proxy: Option<&'a str>,
    pub(super) label: Option<&'a Label>,
}

impl<'a> Way<'a> {
    /// A way without proxy or label.
    pub(super) fn direct(address: &'a str) -> Way<'a> {
        Way { address, proxy: None, label: None }
    }
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Way { address, proxy, .. } = self;
        match proxy {
            None => f.write_str(address),
            Some(proxy) => write!(f, "{address} through the proxy {proxy}"),
        }
    }
}

/// Connects to the peer, which is expected at the address of `way`.
pub(super) fn connect(way: Way<'_>, security: &Protection, watch: &Watch<'_>) -> Result<Connection> {
    reach(way, security, watch)?.map_err(|cause| {
        let proxy = if way.proxy.is_some() { concat!(", ", setting!(proxy)) } else { "" };
        Error::network(format!(
            "cannot reach the peer at {way} {}: {cause}. {ABSENT}, and whether it listens there. Check the \
             address{proxy} and firewalls, then run again",
            watch.within()
        ))
        .because(&std::io::ErrorKind::TimedOut.into())
    })
}

/// Tries all addresses in turn until one of them leads to the peer or the time is up. If the time is up, the inner error is the
/// cause; the outer error is final.
pub(super) fn reach(
    way: Way<'_>,
    security: &Protection,
    watch: &Watch<'_>,
) -> Result<Result<Connection, String>> {
    reach_by(way, security, security.keys(way.label)?, watch)
}

/// Does the work of [`reach`] with these keys.
pub(super) fn reach_by(
    way: Way<'_>,
    security: &Protection,
    keys: Option<Keys>,
    watch: &Watch<'_>,
) -> Result<Result<Connection, String>> {
    let (whom, text) = (watch.whom, way.address);
    let caller = Caller::new(way, keys.as_ref(), watch)?;
    let mut last = String::new();
    // A stranger found in place of the peer. It is more informative than a later failure to connect.
    let mut stranger = None;
    loop {
        // The name may only become resolvable when the peer starts.
        let causes = match caller.resolve()? {
            Err(cause) if matches!(security, Protection::InsecurePlaintext) => {
                return Err(Error::usage(format!(
                    "{cause}. {INSECURE_PLAINTEXT} is for this machine only: use 127.0.0.1"
                )));
            }
            Err(cause) => vec![cause],
            Ok(addresses) => {
                security.allows(text, &addresses)?;
                match caller.try_all(&addresses)? {
                    Ok(connection) => return Ok(Ok(connection)),
                    Err(tried) => {
                        stranger = tried.stranger.or(stranger);
                        tried.causes
                    }
                }
            }
        };
        let cause = causes.join("; ");
        if cause != last {
            (watch.notice)(&format!("{whom} cannot be reached yet ({cause}); still trying"));
        }
        last = cause;
        watch.check()?;
        watch.hint(|| {
            format!(
                "{whom} has not been reached at {way} yet; still trying. {ABSENT}, and whether it listens there. Check the \
                 address and firewalls"
            )
        });
        std::thread::sleep(RETRY.min(watch.left()));
        if watch.left().is_zero() {
            let before = stranger.filter(|s| !last.contains(s)).map(|s| format!("; before that, {s}"));
            return Ok(Err(last + &before.unwrap_or_default()));
        }
    }
}

/// The outcome of trying addresses, none of which led to the peer.
struct Tried {
    /// The cause for each address.
    causes: Vec<String>,
    /// The stranger at one of them, if any.
    stranger: Option<String>,
}

/// The connecting side of an attempt, directly or through a proxy.
struct Caller<'a> {
    address: Address<'a>,
    /// The proxy, and the target it is asked for.
    proxy: Option<(Proxy<'a>, Target)>,
    label: Option<&'a Label>,
    keys: Option<&'a Keys>,
    watch: &'a Watch<'a>,
}

impl<'a> Caller<'a> {
    fn new(way: Way<'a>, keys: Option<&'a Keys>, watch: &'a Watch<'a>) -> Result<Self> {
        let address = Address::parse_peer(way.address)?;
        let proxy = way.proxy.map(|proxy| Ok((Proxy::parse(proxy)?, Target::of(&address)?))).transpose()?;
        if proxy.is_some() && keys.is_none() {
            return Err(Error::usage(format!(
                "{INSECURE_PLAINTEXT} is for this machine only, and {PROXY} leads elsewhere. Omit one of them"
            )));
        }
        Ok(Caller { address, proxy, label: way.label, keys, watch })
    }

    /// Resolves the addresses of the peer, or of the proxy.
    fn resolve(&self) -> Result<Result<Vec<SocketAddr>, String>> {
        let address = self.proxy.as_ref().map_or(&self.address, |(proxy, _)| &proxy.address);
        let (host, port) = (address.host.to_owned(), address.port);
        let found = self.wait(move || Address { host: &host, port }.resolve())?;
        Ok(found.map_err(|e| match &self.proxy {
            None => e,
            Some((proxy, _)) => format!("{proxy}: {e}"),
        }))
    }

    /// Runs work that cannot be interrupted, and gives up on it when we are to stop, leaving its thread to finish alone.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Usage`] if no thread can be started; [`Error::Bug`] if the work panics.
    fn wait<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (done, result) = mpsc::channel();
        let work = move || drop(done.send(work()));
        let begun = thread::Builder::new().name("dial".into()).spawn(work);
        begun.map_err(|e| threads::none(&e))?;
        loop {
            self.watch.check()?;
            match result.recv_timeout(LOOK) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Bug("a thread that connects panicked".into()));
                }
            }
        }
    }

    /// This address, or the target reached through the proxy there, for messages.
    fn place(&self, at: SocketAddr) -> String {
        match &self.proxy {
            None => at.to_string(),
            Some((proxy, to)) => format!("{to} through {proxy}"),
        }
    }

    fn cause(&self, at: SocketAddr, failure: &Failure) -> String {
        match (failure, self.label) {
            (Failure::Proxy(why), _) => why.clone(),
            // A proxy that forwards by labels has no other way to report an unknown one.
            (Failure::Closed, Some(label)) => {
                format!("{}: {failure}; is \"{label}\" served there?", self.place(at))
            }
            (failure, _) => format!("{}: {failure}", self.place(at)),
        }
    }

    /// Makes one attempt at each address in turn, until one leads to the peer. Each has an equal share of the time left, so
    /// that one without an answer does not keep us from the others.
    fn try_all(&self, addresses: &[SocketAddr]) -> Result<Result<Connection, Tried>> {
        let (mut causes, mut stranger, mut last) = (Vec::new(), None, None);
        for (i, &at) in addresses.iter().enumerate() {
            self.watch.check()?;
            let share = self.watch.left() / (addresses.len() - i) as u32;
            match self.attempt(at, share) {
                Ok(Ok(connection)) => return Ok(Ok(connection)),
                Ok(Err(failure)) => {
                    let cause = self.cause(at, &failure);
                    if let Failure::Tls(_) | Failure::NotServed(_) = failure {
                        stranger = Some(cause.clone());
                    }
                    causes.push(cause);
                }
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                // The peer may be at another address.
                Err(e) => last = last.or(Some(e)),
            }
        }
        match last {
            Some(e) => Err(e),
            None => Ok(Err(Tried { causes, stranger })),
        }
    }

    /// Makes one attempt at one address within this share of the time. The inner error may be temporary; the outer one is
    /// final for this address.
    fn attempt(&self, at: SocketAddr, share: Duration) -> Result<Result<Connection, Failure>> {
        let (watch, whom) = (self.watch, self.watch.whom);
        let until = after(HANDSHAKE.min(share)).min(watch.deadline);
        let limits = || Limits { deadline: until, stop: watch.cancelled };
        let socket = match self.open(at, share)? {
            Ok(socket) => socket,
            Err(failure) => return Ok(Err(failure)),
        };
        if let Some((proxy, to)) = &self.proxy
            && let Err(failure) = proxy.tunnel(&socket, to, &limits())?
        {
            return Ok(Err(failure));
        }
        let Some(keys) = self.keys else {
            return Connection::plain(socket, watch.timeouts).map(Ok);
        };
        match keys.connect(socket, &limits()) {
            Ok(secured) => Connection::secured(secured, keys, watch.timeouts).map(Ok),
            Err(Failure::WrongKey(presented)) => Err(whom.stranger(format!(
                "the program at {} shows the fingerprint {presented}, which proves nothing; expected is {}. {}",
                whom.at(&self.place(at)),
                whom.expected(keys),
                whom.compare()
            ))),
            Err(Failure::Refused) => Err(whom.stranger(format!(
                "it is at {} and has the expected fingerprint, {}, but it expects a fingerprint other than \
                 ours, {}. {}",
                whom.at(&self.place(at)),
                whom.expected(keys),
                keys.ours,
                whom.expect(keys.ours)
            ))),
            Err(Failure::Taken) => Err(whom.taken(&self.place(at), keys.ours)),
            Err(Failure::Stopped) => Err(Error::Cancelled),
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Opens a connection to this address, of the peer or of the proxy.
    fn open(&self, at: SocketAddr, share: Duration) -> Result<Result<TcpStream, Failure>> {
        let unreachable = |why: String| match &self.proxy {
            None => Failure::Unreachable(why),
            Some((proxy, _)) => proxy.unreachable(at, why),
        };
        let patience = ANSWER.min(share).max(BRIEFLY);
        let socket = self.wait(move || TcpStream::connect_timeout(&at, patience))?;
        Ok(match socket {
            Err(e) => Err(unreachable(e.to_string())),
            // If no program listens there, the system may connect the socket to itself.
            Ok(socket) if socket.local_addr().is_ok_and(|local| local == at) => {
                Err(unreachable("nobody listens there".into()))
            }
            Ok(socket) => Ok(socket),
        })
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
