//! The connection to the other party.

use super::Options;
use crate::channel::{ByteStream, Channel, WireCount, over};
use crate::error::{Error, Result};
use crate::net::{Connected, Connection, Endpoint, Fingerprint, Identity, Protection, establish};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// The other party, and how to connect to it. The operation prepares our keys, in a time that depends on them, before it
/// connects.
///
/// Over TLS 1.3 each side proves its [`Identity`], and only the party with the given [`Fingerprint`] is accepted. Which side
/// listens is independent of the roles.
///
/// ```no_run
/// use veilset::{Identity, Keys, Options, Peer, Role};
///
/// let identity = Identity::load("identity.pem")?;               // `veilset identity new` makes one
/// let fingerprint = "a5dwh-2s9e4-w3tmf-xa39z-z8ttd-ch6ws-jjk7s-2y6j3".parse()?;
/// let peer = Peer::connect("host.example:7000", identity, fingerprint);
/// let ours = Keys::new(["ann@a.org", "bob@b.org"])?;
/// let outcome = veilset::count(peer, Role::Receiver, &ours, &Options::new())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Peer(How);

enum How {
    /// Over TLS.
    Reached { endpoint: Endpoint, identity: Arc<Identity>, peer: Fingerprint },
    /// Over the caller's streams.
    Streams(Streams, Authenticated),
    /// Within this program.
    Here(Channel),
}

struct Streams {
    read: Box<dyn Read + Send>,
    write: Box<dyn Write + Send>,
    finish: Finish,
}

/// What ends our direction of a caller's connection, at the latest when it is dropped.
struct Finish(Option<Box<dyn FnOnce() + Send>>);

impl Drop for Finish {
    fn drop(&mut self) {
        if let Some(finish) = self.0.take() {
            finish();
        }
    }
}

impl Peer {
    /// Listens for the peer at this local address, HOST:PORT, for instance `0.0.0.0:7000`.
    pub fn listen(address: impl Into<String>, identity: impl Into<Arc<Identity>>, peer: Fingerprint) -> Peer {
        Peer(How::Reached { endpoint: Endpoint::listen(address), identity: identity.into(), peer })
    }

    /// Connects to the peer at this address, HOST:PORT, and retries until it listens or the time is up
    /// ([`Options::connect_timeout`]).
    pub fn connect(
        address: impl Into<String>,
        identity: impl Into<Arc<Identity>>,
        peer: Fingerprint,
    ) -> Peer {
        Peer(How::Reached { endpoint: Endpoint::connect(address), identity: identity.into(), peer })
    }

    /// Connects through the HTTP proxy at this address, HOST:PORT, which resolves the peer's name. The proxy sees the peer's
    /// address, and otherwise no more than an observer of the traffic does. Has no effect unless we
    /// [`connect`](Peer::connect).
    #[must_use]
    pub fn through_proxy(mut self, address: impl Into<String>) -> Peer {
        if let How::Reached { endpoint: Endpoint::Connect { proxy, .. }, .. } = &mut self.0 {
            *proxy = Some(address.into());
        }
        self
    }

    /// Returns two parties in this program, each the other's peer, for tests and examples. Their messages do not leave the
    /// program.
    pub fn pair() -> (Peer, Peer) {
        let (here, there) = Channel::pair();
        (Peer(How::Here(here)), Peer(How::Here(there)))
    }

    /// Runs over any connection that is already authenticated, confidential and in order, for instance one of a service mesh.
    ///
    /// `read` and `write` may block. When everything is written, or the run has failed, `write` is dropped and `finish` is
    /// called. `finish` must end our direction, so that the peer's reads end. An error before the connection is used, for
    /// instance in the options, does the same. `read` is dropped once it has ended, or returns data
    /// after the run. The run gives up on a peer that is silent for [`Options::idle_timeout`].
    ///
    /// The guarantees of TLS hold only as far as this connection provides them. Anyone who can read it learns everything that
    /// protocols send in the clear, including the keys of a union, and anyone who can write to it acts as the peer.
    ///
    /// ```no_run
    /// use std::net::Shutdown;
    /// use std::os::unix::net::UnixStream;
    /// use veilset::{Authenticated, Identity, Keys, Options, Peer, Role};
    ///
    /// let stream = UnixStream::connect("/run/mesh/hospital-b.sock")?;
    /// # let exporter = || [0; 32];
    /// let by = Authenticated {
    ///     ours: Identity::load("identity.pem")?.fingerprint(),
    ///     peer: "a5dwh-2s9e4-w3tmf-xa39z-z8ttd-ch6ws-jjk7s-2y6j3".parse()?,
    ///     exporter: exporter(),          // from the connection's keys
    /// };
    /// let (read, write) = (stream.try_clone()?, stream.try_clone()?);
    /// let peer = Peer::over(read, write, move || drop(stream.shutdown(Shutdown::Write)), by);
    /// let keys = Keys::new(["ann@a.org", "bob@b.org"])?;
    /// let outcome = veilset::count(peer, Role::Receiver, &keys, &Options::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn over(
        read: impl Read + Send + 'static,
        write: impl Write + Send + 'static,
        finish: impl FnOnce() + Send + 'static,
        by: Authenticated,
    ) -> Peer {
        let streams =
            Streams { read: Box::new(read), write: Box::new(write), finish: Finish(Some(Box::new(finish))) };
        Peer(How::Streams(streams, by))
    }

    /// Our identity, if the run uses one.
    pub(super) fn identity(&self) -> Option<Arc<Identity>> {
        match &self.0 {
            How::Reached { identity, .. } => Some(identity.clone()),
            How::Streams(..) | How::Here(_) => None,
        }
    }

    /// Refuses malformed addresses and, over the caller's streams, our own fingerprint as that of the peer. Over TLS,
    /// [`establish`] refuses that.
    pub(super) fn check(&self) -> Result<()> {
        match &self.0 {
            How::Reached { endpoint, .. } => endpoint.check(),
            How::Streams(_, by) if by.ours == by.peer => {
                Err(Error::Usage("the peer has our own fingerprint. Give that of the other party".into()))
            }
            How::Streams(..) | How::Here(_) => Ok(()),
        }
    }

    /// Connects.
    pub(super) fn meet(self, options: &Options) -> Result<Connected> {
        let stop = options.stop.clone().unwrap_or_default();
        let connection = match self.0 {
            How::Reached { endpoint, identity, peer } => {
                let security = Protection::Tls { identity, peer };
                let notice = |line: &str| options.say(line);
                establish(&endpoint, &security, options.timeouts, &|| stop.is_stopped(), &notice)?
            }
            How::Streams(Streams { read, write, finish }, by) => {
                let wire = WireCount::default();
                let finish = move || drop(finish);
                let channel = over(ByteStream::blocking(read, write, finish, &wire)?, options.timeouts)?;
                Connection {
                    peer: Some(by.peer),
                    our: Some(by.ours),
                    exporter: Zeroizing::new(by.exporter),
                    ..Connection::unprotected(channel, wire)
                }
            }
            How::Here(channel) => Connection::unprotected(channel, WireCount::default()),
        };
        let connected = Connected::from(connection);
        stop.watch(connected.canceller());
        Ok(connected)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            How::Reached { endpoint, peer, .. } => write!(f, "Peer({peer}, {endpoint:?})"),
            How::Streams(_, by) => write!(f, "Peer({})", by.peer),
            How::Here(_) => f.write_str("Peer(in this program)"),
        }
    }
}

/// The authenticated facts about a connection of the caller, for [`Peer::over`]. Its secret is zeroed on drop.
#[derive(Clone)]
pub struct Authenticated {
    /// Our fingerprint, as the peer knows it.
    pub ours: Fingerprint,
    /// The fingerprint of the party at the other end.
    pub peer: Fingerprint,
    /// A secret of this connection that only its two ends know, for instance from a TLS exporter (RFC 5705). It is the same on
    /// both sides, and different for each connection. It binds the run to the connection.
    pub exporter: [u8; 32],
}

impl Drop for Authenticated {
    fn drop(&mut self) {
        self.exporter.zeroize();
    }
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authenticated({} and {})", self.ours, self.peer)
    }
}
