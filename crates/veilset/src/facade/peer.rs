//! How the other party is met.

use super::Options;
use crate::channel::{ByteStream, Channel, WireCount, over};
use crate::error::{Error, Result};
use crate::net::{Connected, Connection, Endpoint, Fingerprint, Identity, Protection, establish};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// The other party, and how it is met. It is connected to inside the operation, after everything that takes a time that
/// depends on our data.
///
/// Over TLS 1.3 each side proves its [`Identity`], and nobody else is accepted than the party with the [`Fingerprint`] that we
/// name. Which side listens has nothing to do with the roles.
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
    /// Over streams of the caller.
    Streams(Streams, Authenticated),
    /// In this program.
    Here(Channel),
}

struct Streams {
    read: Box<dyn Read + Send>,
    write: Box<dyn Write + Send>,
    finish: Box<dyn FnOnce() + Send>,
}

impl Peer {
    /// Listen for it at this address of ours, HOST:PORT, for instance `0.0.0.0:7000`.
    pub fn listen(address: impl Into<String>, identity: impl Into<Arc<Identity>>, peer: Fingerprint) -> Peer {
        Peer(How::Reached { endpoint: Endpoint::listen(address), identity: identity.into(), peer })
    }

    /// Connect to it at this address, HOST:PORT, again and again until it listens or the time is up
    /// ([`Options::connect_timeout`]).
    pub fn connect(
        address: impl Into<String>,
        identity: impl Into<Arc<Identity>>,
        peer: Fingerprint,
    ) -> Peer {
        Peer(How::Reached { endpoint: Endpoint::connect(address), identity: identity.into(), peer })
    }

    /// Connect through the HTTP proxy at this address, HOST:PORT, which resolves the name of the peer. It sees what anybody who
    /// observes the traffic sees. Has no effect unless we [`connect`](Peer::connect).
    #[must_use]
    pub fn through_proxy(mut self, address: impl Into<String>) -> Peer {
        if let How::Reached { endpoint: Endpoint::Connect { proxy, .. }, .. } = &mut self.0 {
            *proxy = Some(address.into());
        }
        self
    }

    /// Two parties in this program, each the other's peer, for tests and examples. What they exchange does not leave the
    /// program.
    pub fn pair() -> (Peer, Peer) {
        let (here, there) = Channel::pair();
        (Peer(How::Here(here)), Peer(How::Here(there)))
    }

    /// Over any connection that is already authenticated, confidential and in order, for instance that of a service mesh.
    ///
    /// `read` and `write` may block. When everything is written, or the run has failed, `write` is dropped and `finish` called: it
    /// ends our direction, so that the peer comes to an end when it reads. `read` is dropped when it has come to its end. A peer
    /// that sends nothing is given up after [`Options::idle_timeout`].
    ///
    /// What holds over TLS holds here as far as this connection provides it: whoever can read it learns what protocols send in the
    /// clear, the keys of a union among them, and whoever can write to it is the peer.
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
        let streams = Streams { read: Box::new(read), write: Box::new(write), finish: Box::new(finish) };
        Peer(How::Streams(streams, by))
    }

    /// Our identity, if the run has one.
    pub(super) fn identity(&self) -> Option<Arc<Identity>> {
        match &self.0 {
            How::Reached { identity, .. } => Some(identity.clone()),
            How::Streams(..) | How::Here(_) => None,
        }
    }

    /// Refuses addresses that are malformed.
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

/// What a connection of the caller has proven: [`Peer::over`]. Its secret is zeroed when it is dropped.
#[derive(Clone)]
pub struct Authenticated {
    /// Our fingerprint, as the other end knows it.
    pub ours: Fingerprint,
    /// The fingerprint of the party at the other end.
    pub peer: Fingerprint,
    /// A secret of this connection that only its two ends know, for instance by a TLS exporter (RFC 5705); the same on both
    /// sides, and another one for each connection. It binds the run to the connection.
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
