//! Reaching the peer: one side listens, the other connects, in whichever order they start.

use super::tls::{Failure, Keys, Limits, Secured};
use super::{Fingerprint, Identity, Listener};
use crate::channel::{ByteStream, Channel, Timeouts, WireCount, over};
use crate::error::{Error, Result, Seat};
use std::cell::Cell;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one handshake may take.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the connecting side rests between two tries.
const RETRY: Duration = Duration::from_millis(200);
/// How long we wait before we say what may be the matter.
const LONG: Duration = Duration::from_secs(30);
/// How long it waits for one address to answer, and how long at least.
const ANSWER: Duration = Duration::from_secs(3);
const BRIEFLY: Duration = Duration::from_millis(20);

/// Which side of the connection we are. Addresses are HOST:PORT, an IPv6 address in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Wait for the peer at this address of ours.
    Listen(String),
    /// Go to the peer's address.
    Connect(String),
}

impl Endpoint {
    /// Whether its address can be one, as far as that is to be seen without asking for the host.
    ///
    /// # Errors
    /// [`Error::Usage`] if not.
    pub fn check(&self) -> Result<()> {
        match self {
            Endpoint::Listen(address) => Address::parse(address).map(drop),
            Endpoint::Connect(address) => Address::parse_peer(address).map(drop),
        }
    }
}

/// How the connection is protected.
#[derive(Debug, Clone)]
pub enum Protection {
    /// TLS 1.3; each side proves its identity.
    Tls {
        /// Our identity.
        identity: Arc<Identity>,
        /// The fingerprint of the one peer that is let in.
        peer: Fingerprint,
    },
    /// Nothing is encrypted and nobody is authenticated; loopback addresses only.
    InsecurePlaintext,
}

/// A connection to the peer, before anything is agreed.
#[non_exhaustive]
pub struct Connection {
    /// For frames.
    pub channel: Channel,
    /// The peer's seat in the run: [`Seat::PEER`], unless the run has more than two parties.
    pub seat: Seat,
    /// The peer's fingerprint, proven; none without TLS.
    pub peer: Option<Fingerprint>,
    /// What our side calls the peer, for the log and the report; none unless the front end fills it in. The peer does not
    /// hear of it.
    pub peer_name: Option<String>,
    /// Our fingerprint; none without TLS.
    pub our: Option<Fingerprint>,
    /// A secret that only the two ends of this TLS connection know; zeros without TLS.
    pub exporter: [u8; 32],
    /// Bytes on the socket, TLS and its handshake included.
    pub wire: WireCount,
}

impl Connection {
    /// A connection that nothing protects, over a channel that is there already.
    pub fn unprotected(channel: Channel, wire: WireCount) -> Connection {
        Connection {
            channel,
            seat: Seat::PEER,
            peer: None,
            peer_name: None,
            our: None,
            exporter: [0; 32],
            wire,
        }
    }

    pub(super) fn plain(socket: TcpStream, timeouts: Timeouts) -> Result<Connection> {
        let wire = WireCount::default();
        Ok(Self::unprotected(over(ByteStream::plain(socket, &wire)?, timeouts)?, wire))
    }

    pub(super) fn secured(secured: Secured, keys: &Keys, timeouts: Timeouts) -> Result<Connection> {
        let (exporter, wire) = (secured.exporter()?, secured.wire());
        Ok(Connection {
            peer: Some(keys.peer),
            our: Some(keys.ours),
            exporter,
            ..Self::unprotected(over(secured.into_stream()?, timeouts)?, wire)
        })
    }
}

/// Connects to the peer, or lets it connect, within the connect time-out.
///
/// `cancelled` is asked whether to give up, several times a second unless the system is at work on a
/// name or on an address that does not answer. `notice` gets single lines for the
/// user: where we listen, which strangers were turned away, why connecting does not work yet.
pub fn establish(
    endpoint: &Endpoint,
    security: &Protection,
    timeouts: Timeouts,
    cancelled: &dyn Fn() -> bool,
    notice: &dyn Fn(&str),
) -> Result<Connection> {
    let watch = Watch::new(timeouts, cancelled, notice);
    match endpoint {
        Endpoint::Listen(address) => {
            let addresses = Address::parse(address)?.resolve_own()?;
            security.allows(address, &addresses)?;
            let listener = Listener::bind_all(address, &addresses)?;
            notice(&format!("listening on {}", listener.local_addr()?));
            listener.run(security, &watch)
        }
        Endpoint::Connect(address) => connect(address, security, &watch),
    }
}

/// When to give up, whom to tell.
pub(super) struct Watch<'a> {
    pub(super) deadline: Instant,
    pub(super) timeouts: Timeouts,
    pub(super) cancelled: &'a dyn Fn() -> bool,
    pub(super) notice: &'a dyn Fn(&str),
    /// When to say what may be the matter, unless it was said.
    pub(super) hint: Cell<Option<Instant>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(timeouts: Timeouts, cancelled: &'a dyn Fn() -> bool, notice: &'a dyn Fn(&str)) -> Self {
        let hint = Cell::new(Some(after(LONG)));
        Watch { deadline: after(timeouts.connect), timeouts, cancelled, notice, hint }
    }

    /// Gives the user a hint, once, if we have waited long.
    pub(super) fn hint(&self, words: impl FnOnce() -> String) {
        if self.hint.get().is_some_and(|at| Instant::now() >= at) {
            self.hint.set(None);
            (self.notice)(&words());
        }
    }

    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(super) fn check(&self) -> Result<()> {
        if (self.cancelled)() { Err(Error::Cancelled) } else { Ok(()) }
    }

    pub(super) fn within(&self) -> String {
        let seconds = self.timeouts.connect.as_secs_f64();
        format!("within {seconds} second{} (--connect-timeout)", if seconds == 1.0 { "" } else { "s" })
    }
}

/// Now and so much; an absurd time-out is as good as none.
pub(super) fn after(time: Duration) -> Instant {
    const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);
    Instant::now() + time.min(FOREVER)
}

/// HOST:PORT, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    host: &'a str,
    port: u16,
}

impl<'a> Address<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let wrong = |what: &str| {
            Err(Error::Usage(format!(
                "\"{text}\" is not an address: {what}. Write HOST:PORT, for instance 192.0.2.1:7000, \
                 example.org:7000 or [2001:db8::1]:7000"
            )))
        };
        if let Some((scheme, _)) = text.split_once("://") {
            return wrong(&format!("give HOST:PORT without {scheme}://"));
        }
        let Some((host, port)) = text.rsplit_once(':') else {
            return wrong("the port is missing");
        };
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return wrong("an IPv6 address needs brackets, and a port after them");
        }
        let host = bare.unwrap_or(host);
        if host.is_empty() {
            return wrong("the host is missing (0.0.0.0 is every address of this machine)");
        }
        match port.parse() {
            Ok(port) if !text.contains('+') => Ok(Address { host, port }),
            _ => wrong("the port is not a number from 0 to 65535"),
        }
    }

    /// An address to connect to.
    fn parse_peer(text: &'a str) -> Result<Self> {
        match Self::parse(text)? {
            Address { port: 0, .. } => Err(Error::Usage(format!(
                "\"{text}\" is not the peer's address: nobody listens at port 0. Ask the other party for the port"
            ))),
            address => Ok(address),
        }
    }

    /// The addresses to listen at.
    pub(super) fn resolve_own(&self) -> Result<Vec<SocketAddr>> {
        self.resolve().map_err(|e| Error::Usage(format!("{e}. Name one of this machine's addresses")))
    }

    fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        let failed = |e: std::io::Error| format!("cannot find the address of {}: {e}", self.host);
        let mut addresses: Vec<_> = (self.host, self.port).to_socket_addrs().map_err(failed)?.collect();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(format!("{} has no address", self.host));
        }
        Ok(addresses)
    }
}

impl Protection {
    /// Without encryption nothing may leave this machine.
    pub(super) fn allows(&self, text: &str, addresses: &[SocketAddr]) -> Result<()> {
        let outside = addresses.iter().find(|a| !a.ip().to_canonical().is_loopback());
        match (self, outside) {
            (Protection::InsecurePlaintext, Some(outside)) => Err(Error::Usage(format!(
                "--insecure-plaintext is for this machine only, and {text} ({}) is not a loopback address. Use \
                 127.0.0.1, or omit the option and give the peer's fingerprint with --peer",
                outside.ip()
            ))),
            _ => Ok(()),
        }
    }

    pub(super) fn keys(&self) -> Result<Option<Keys>> {
        match self {
            Protection::InsecurePlaintext => Ok(None),
            Protection::Tls { identity, peer } if identity.fingerprint() == *peer => Err(Error::Usage(
                "--peer is our own fingerprint. Give the one that `veilset identity show` prints on the other \
                 party's side; two parties on one machine need an identity each (--identity)"
                    .into(),
            )),
            Protection::Tls { identity, peer } => Ok(Some(Keys::new(identity, *peer))),
        }
    }
}

/// What may be the matter if the peer is not there. What else to ask may follow.
pub(super) const ABSENT: &str = "Its program may have stopped before it was ready (a defect in its input or options): \
                      ask the other party what it printed";

/// What to do about an unexpected key.
pub(super) const COMPARE: &str = "Ask the other party, by a way that you trust, what `veilset identity show` prints on its \
                       side: if it is the first, give that one with --peer; if not, somebody else is in between";

/// Tries all addresses in turn until one is the peer or the time is over.
pub(super) fn connect(text: &str, security: &Protection, watch: &Watch<'_>) -> Result<Connection> {
    let address = Address::parse_peer(text)?;
    let keys = security.keys()?;
    let mut last = String::new();
    // Who was there that is not the peer: worth more than that nobody is there any more.
    let mut stranger = None;
    loop {
        // A name may come into being only when the peer starts.
        let causes = match address.resolve() {
            Err(cause) if matches!(security, Protection::InsecurePlaintext) => {
                return Err(Error::Usage(format!(
                    "{cause}. --insecure-plaintext is for this machine only: use 127.0.0.1"
                )));
            }
            Err(cause) => vec![cause],
            Ok(addresses) => {
                security.allows(text, &addresses)?;
                let mut causes = Vec::new();
                for at in addresses {
                    watch.check()?;
                    match attempt(at, keys.as_ref(), watch)? {
                        Ok(connection) => return Ok(connection),
                        Err(failure) => {
                            let cause = format!("{at}: {failure}");
                            if let Failure::Tls(_) = failure {
                                stranger = Some(cause.clone());
                            }
                            causes.push(cause);
                        }
                    }
                }
                causes
            }
        };
        let cause = causes.join("; ");
        if cause != last {
            (watch.notice)(&format!("the peer cannot be reached yet ({cause}); trying on"));
        }
        last = cause;
        watch.check()?;
        watch.hint(|| {
            format!(
                "the peer has not been reached at {text} yet; trying on. {ABSENT}, and whether it listens there. Check the \
                 address and firewalls"
            )
        });
        std::thread::sleep(RETRY.min(watch.left()));
        if watch.left().is_zero() {
            let before = stranger.filter(|s| !last.contains(s)).map(|s| format!("; before that, {s}"));
            return Err(Error::Network(format!(
                "cannot reach the peer at {text} {}: {last}{}. {ABSENT}, and whether it listens there. Check the \
                 address and firewalls, then run again",
                watch.within(),
                before.unwrap_or_default()
            )));
        }
    }
}

/// One try at one address. The inner error may pass; the outer one is final.
fn attempt(at: SocketAddr, keys: Option<&Keys>, watch: &Watch<'_>) -> Result<Result<Connection, Failure>> {
    let socket = match TcpStream::connect_timeout(&at, ANSWER.min(watch.left()).max(BRIEFLY)) {
        Ok(socket) => socket,
        Err(e) => return Ok(Err(Failure::Unreachable(e.to_string()))),
    };
    // Where nobody listens, the system may connect a socket to itself.
    if socket.local_addr().is_ok_and(|local| local == at) {
        return Ok(Err(Failure::Unreachable("nobody listens there".into())));
    }
    let Some(keys) = keys else {
        return Connection::plain(socket, watch.timeouts).map(Ok);
    };
    let limits = Limits { deadline: after(HANDSHAKE).min(watch.deadline), stop: watch.cancelled };
    match keys.connect(socket, &limits) {
        Ok(secured) => Connection::secured(secured, keys, watch.timeouts).map(Ok),
        Err(Failure::WrongKey(presented)) => Err(Error::stranger(format_args!(
            "the program at {at} shows the fingerprint {presented}, which proves nothing; expected is {}. {COMPARE}",
            keys.peer
        ))),
        Err(Failure::Refused) => Err(Error::stranger(format_args!(
            "it is at {at} and has the expected fingerprint, {}, but it expects another one than ours, {ours}. Ask \
             the other party to run with --peer {ours}",
            keys.peer,
            ours = keys.ours
        ))),
        Err(Failure::Stopped) => Err(Error::Cancelled),
        Err(failure) => Ok(Err(failure)),
    }
}
