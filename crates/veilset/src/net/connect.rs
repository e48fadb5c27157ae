//! Connecting the parties: one side listens, the other connects, in whichever order they start.

use super::call::{Way, connect};
use super::proxy::{Proxy, Target};
use super::roster::{Member, Roster};
use super::tls::{Keys, Secured};
use super::{Fingerprint, Identity, Label, Listener};
use crate::channel::{ByteStream, Canceller, Channel, Timeouts, WireCount, over};
use crate::error::{Error, Result, Seat};
use crate::spelling::{CONNECT_TIMEOUT, IDENTITY, INSECURE_PLAINTEXT, PEER, command, setting};
use std::cell::Cell;
use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The maximum time of one handshake.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long we wait before we suggest a possible cause.
const LONG: Duration = Duration::from_secs(30);

/// Our side of the connection. Addresses are HOST:PORT, with IPv6 addresses in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Listen for the peer.
    Listen {
        /// The local address to listen at.
        address: String,
        /// The name that the peer's connection must ask for, if any.
        label: Option<Label>,
    },
    /// Connect to the peer.
    Connect {
        /// The peer's address.
        address: String,
        /// The address of the HTTP proxy to connect through, if any. The proxy resolves the peer's name.
        proxy: Option<String>,
        /// The name that we ask for, if any.
        label: Option<Label>,
    },
}

impl Endpoint {
    /// Listens for the peer at this local address.
    pub fn listen(address: impl Into<String>) -> Endpoint {
        Endpoint::Listen { address: address.into(), label: None }
    }

    /// Connects to the peer at this address.
    pub fn connect(address: impl Into<String>) -> Endpoint {
        Endpoint::Connect { address: address.into(), proxy: None, label: None }
    }

    /// Checks that the addresses are well formed, without resolving the hosts.
    ///
    /// # Errors
    /// [`Error::Usage`] if an address is malformed.
    pub fn check(&self) -> Result<()> {
        match self {
            Endpoint::Listen { address, .. } => Address::parse(address).map(drop),
            Endpoint::Connect { address, proxy: None, .. } => Address::parse_peer(address).map(drop),
            Endpoint::Connect { address, proxy: Some(proxy), .. } => {
                Target::of(&Address::parse_peer(address)?)?;
                Proxy::parse(proxy).map(drop)
            }
        }
    }
}

/// The protection of the connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Protection {
    /// TLS 1.3; each side proves its identity.
    Tls {
        /// Our identity.
        identity: Arc<Identity>,
        /// The fingerprint of the one peer that is accepted.
        peer: Fingerprint,
    },
    /// No encryption and no authentication; loopback addresses only.
    InsecurePlaintext,
}

/// A connection to the peer, before anything is agreed.
#[non_exhaustive]
pub struct Connection {
    /// The channel, for frames.
    pub channel: Channel,
    /// The peer's seat: its number in the list of the parties, if there is a list ([`super::assemble`]), or else
    /// [`Seat::PEER`].
    pub seat: Seat,
    /// The peer's fingerprint, proven; `None` on an unprotected connection.
    pub peer: Option<Fingerprint>,
    /// The peer's name on our side, for the log and the report: its name in the list of the parties, if there is a list;
    /// otherwise the front end sets it, or it is `None`. It is never sent.
    pub peer_name: Option<String>,
    /// Our fingerprint; `None` on an unprotected connection.
    pub our: Option<Fingerprint>,
    /// A secret that only the two ends of this connection know; all zeros on an unprotected one.
    pub exporter: Zeroizing<[u8; 32]>,
    /// Bytes on the socket, including TLS and its handshake.
    pub wire: WireCount,
}

impl Connection {
    /// An unprotected connection over an existing channel.
    pub fn unprotected(channel: Channel, wire: WireCount) -> Connection {
        Connection {
            channel,
            seat: Seat::PEER,
            peer: None,
            peer_name: None,
            our: None,
            exporter: Zeroizing::default(),
            wire,
        }
    }

    pub(super) fn plain(socket: TcpStream, timeouts: Timeouts) -> Result<Connection> {
        let wire = WireCount::default();
        Ok(Self::unprotected(over(ByteStream::plain(socket, &wire)?, timeouts)?, wire))
    }

    pub(super) fn secured(secured: Secured, keys: &Keys, timeouts: Timeouts) -> Result<Connection> {
        let (exporter, wire, peer) = (secured.exporter()?, secured.wire(), secured.peer()?);
        Ok(Connection {
            peer: Some(peer),
            our: Some(keys.ours),
            exporter,
            ..Self::unprotected(over(secured.into_stream()?, timeouts)?, wire)
        })
    }
}

/// All connections of one party of a run.
#[non_exhaustive]
pub enum Connected {
    /// The connection to the other party of a run of two.
    Peer(Box<Connection>),
    /// The connections to all others in a run of several, ordered by seat, as [`super::assemble`] returns them. That of a list
    /// of two is a `Peer`.
    Parties(Vec<Connection>),
}

impl Connected {
    /// Returns a handle that stops the run from outside.
    pub fn canceller(&self) -> Canceller {
        match self {
            Connected::Peer(connection) => connection.channel.canceller(),
            Connected::Parties(connections) => connections.iter().map(|c| c.channel.canceller()).collect(),
        }
    }
}

impl From<Connection> for Connected {
    fn from(connection: Connection) -> Connected {
        Connected::Peer(Box::new(connection))
    }
}

impl From<Vec<Connection>> for Connected {
    fn from(connections: Vec<Connection>) -> Connected {
        match <[_; 1]>::try_from(connections) {
            Ok([peer]) => peer.into(),
            Err(connections) => Connected::Parties(connections),
        }
    }
}

/// Connects to the peer, or accepts its connection, within the connect time-out.
///
/// `cancelled` is called several times a second and tells whether to give up. It is not called while the system resolves the
/// name of an address to listen at. The time-out does not interrupt the system while it resolves a name. `notice` receives
/// single lines for the user: our listening address, refused strangers, and why the peer cannot be reached yet.
pub fn establish(
    endpoint: &Endpoint,
    security: &Protection,
    timeouts: Timeouts,
    cancelled: &dyn Fn() -> bool,
    notice: &dyn Fn(&str),
) -> Result<Connection> {
    let watch = Watch::new(timeouts, cancelled, notice);
    match endpoint {
        Endpoint::Listen { address, label } => {
            let addresses = Address::parse(address)?.resolve_own()?;
            security.allows(address, &addresses)?;
            let listener = Listener::bind_all(address, &addresses)?;
            notice(&format!("listening on {}", listener.local_addr()));
            listener.run(security, label.as_ref(), &watch)
        }
        Endpoint::Connect { address, proxy, label } => {
            let way = Way { address, proxy: proxy.as_deref(), label: label.as_ref() };
            connect(way, security, &watch)
        }
    }
}

/// When to give up, and where to send notices.
pub(super) struct Watch<'a> {
    pub(super) deadline: Instant,
    pub(super) timeouts: Timeouts,
    pub(super) cancelled: &'a dyn Fn() -> bool,
    pub(super) notice: &'a dyn Fn(&str),
    /// When to suggest a possible cause; `None` once that was done.
    pub(super) hint: Cell<Option<Instant>>,
    /// The party we connect to.
    pub(super) whom: Whom<'a>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(timeouts: Timeouts, cancelled: &'a dyn Fn() -> bool, notice: &'a dyn Fn(&str)) -> Self {
        let hint = Cell::new(Some(after(LONG)));
        Watch { deadline: after(timeouts.connect), timeouts, cancelled, notice, hint, whom: Whom::Peer }
    }

    /// Gives the user a hint, once, after a long wait.
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
        format!("within {seconds} second{} ({CONNECT_TIMEOUT})", if seconds == 1.0 { "" } else { "s" })
    }
}

/// The party we connect to, for messages.
#[derive(Clone, Copy)]
pub(super) enum Whom<'a> {
    /// The other party of a run of two.
    Peer,
    /// A party of a mesh, and the list of the parties.
    Member(&'a Member, &'a Roster),
}

impl fmt::Display for Whom<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whom::Peer => f.write_str("the peer"),
            Whom::Member(member, _) => member.fmt(f),
        }
    }
}

impl Whom<'_> {
    /// The error if the party there is not the expected one, or does not expect us.
    pub(super) fn stranger(&self, what: String) -> Error {
        let seat = match self {
            Whom::Peer => Seat::PEER,
            Whom::Member(member, _) => member.seat(),
        };
        Error::stranger(what).by(seat)
    }

    /// The address that we tried and, in a mesh, the party it belongs to.
    pub(super) fn at(&self, at: &str) -> String {
        match self {
            Whom::Peer => at.to_string(),
            Whom::Member(member, _) => format!("{at}, the address of {},", member.name()),
        }
    }

    /// The fingerprint that we expect at the address.
    pub(super) fn expected(&self, keys: &Keys) -> String {
        match self {
            Whom::Peer => listed(keys.expected()),
            Whom::Member(member, _) => member.fingerprint().to_string(),
        }
    }

    /// The advice about an unexpected key.
    pub(super) fn compare(&self) -> String {
        match self {
            Whom::Peer => COMPARE.into(),
            Whom::Member(member, roster) => format!(
                "Ask {}, over a channel that you trust, what {} prints on its side. If it is the \
                 first fingerprint, correct its \"fingerprint\" in {}, for all parties; if not, its \"address\" there may \
                 be that of another program, or somebody else is in between",
                member.name(),
                command!("identity show"),
                roster.source()
            ),
        }
    }

    /// The error if a party with our identity is connected there already.
    pub(super) fn taken(&self, at: &str, ours: Fingerprint) -> Error {
        Error::usage(format!(
            "the party at {} is connected already with one that has our identity, {ours}. If our program runs twice, stop \
             one of them, wait until it has ended, and run again. If it is another party, it needs an identity of its own. \
             Otherwise two addresses of the list lead to one party: correct them, for all parties",
            self.at(at)
        ))
    }

    /// The advice if the party does not expect our key.
    pub(super) fn expect(&self, ours: Fingerprint) -> String {
        match self {
            Whom::Peer => format!("Ask the other party to run with {}", PEER.with(ours)),
            Whom::Member(member, roster) => format!(
                "Ask {} to compare its list of parties with ours, {}: they must be the same",
                member.name(),
                roster.source()
            ),
        }
    }
}

/// The current time plus `time`, or plus ten years if that is less.
pub(super) fn after(time: Duration) -> Instant {
    const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);
    Instant::now() + time.min(FOREVER)
}

/// A parsed HOST:PORT.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
}

impl<'a> Address<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let wrong = |what: &str| {
            Err(Error::usage(format!(
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
    pub(super) fn parse_peer(text: &'a str) -> Result<Self> {
        Self::parse_of(text, "the peer's", "the other party")
    }

    /// Parses an address to connect to. For messages, `whose` names its owner and `whom` the party to ask for it.
    pub(super) fn parse_of(text: &'a str, whose: &str, whom: &str) -> Result<Self> {
        match Self::parse(text)? {
            Address { port: 0, .. } => Err(Error::usage(format!(
                "\"{text}\" is not {whose} address: nobody listens at port 0. Ask {whom} for the port"
            ))),
            address => Ok(address),
        }
    }

    /// The addresses to listen at.
    pub(super) fn resolve_own(&self) -> Result<Vec<SocketAddr>> {
        self.resolve().map_err(|e| Error::usage(format!("{e}. Name one of this machine's addresses")))
    }

    pub(super) fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        let failed = |e: std::io::Error| format!("cannot find the address of {}: {e}", self.host);
        // The order of the system: as a rule, IPv6 before IPv4.
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in (self.host, self.port).to_socket_addrs().map_err(failed)? {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(format!("{} has no address", self.host));
        }
        Ok(addresses)
    }
}

impl Protection {
    /// Our identity; `None` without TLS.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        match self {
            Protection::Tls { identity, .. } => Some(identity),
            Protection::InsecurePlaintext => None,
        }
    }

    /// Refuses addresses of other machines without TLS: unencrypted data must not leave this machine.
    pub(super) fn allows(&self, text: &str, addresses: &[SocketAddr]) -> Result<()> {
        let outside = addresses.iter().find(|a| !a.ip().to_canonical().is_loopback());
        match (self, outside) {
            (Protection::InsecurePlaintext, Some(outside)) => Err(Error::usage(format!(
                "{INSECURE_PLAINTEXT} is for this machine only, and {text} ({}) is not a loopback address. Use \
                 127.0.0.1, or omit the option and give the peer's fingerprint with {PEER}",
                outside.ip()
            ))),
            _ => Ok(()),
        }
    }

    /// Our keys, for a connection with this label; `None` without TLS.
    pub(super) fn keys(&self, label: Option<&Label>) -> Result<Option<Keys>> {
        match self {
            Protection::InsecurePlaintext if label.is_some() => Err(Error::usage(format!(
                "a label is for connections over TLS. Omit it, or omit {INSECURE_PLAINTEXT}"
            ))),
            Protection::InsecurePlaintext => Ok(None),
            Protection::Tls { identity, peer } if identity.fingerprint() == *peer => {
                Err(Error::usage(format!(
                    "{PEER} is our own fingerprint. Give the one that {} prints on the \
                 other party's side; two parties on one machine need separate identities ({IDENTITY})",
                    command!("identity show")
                )))
            }
            Protection::Tls { identity, peer } => Ok(Some(Keys::new(identity, *peer).by(label))),
        }
    }
}

/// A possible cause if the peer is absent. Further questions may follow it in a message.
pub(super) const ABSENT: &str = "Its program may have stopped before it was ready (because of its input or \
                      options, say): ask the other party what it printed";

/// The advice about an unexpected key.
pub(super) const COMPARE: &str = concat!(
    "Ask the other party, over a channel that you trust, what ",
    command!("identity show"),
    " prints on its side. If it is the first fingerprint, give that one with ",
    setting!(peer),
    "; if not, \
                       somebody else is in between"
);

/// Fingerprints in a message.
pub(super) fn listed(fingerprints: &[Fingerprint]) -> String {
    fingerprints.iter().map(Fingerprint::to_string).collect::<Vec<_>>().join(", ")
}
