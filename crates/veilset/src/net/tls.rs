//! TLS 1.3 in which both sides present a raw public key (RFC 7250), and each accepts only the fingerprints it expects. In a run
//! of two this is one fingerprint; in a mesh they are those of all other parties.
//!
//! Signatures are Ed25519. The only key exchange is X25519 with ML-KEM-768, so that traffic recorded today stays
//! confidential against a future quantum computer. Identities are not safe from a quantum computer that exists
//! at the time of the run. No resumption, no tickets, no early data, no TLS 1.2, no certificates.
//!
//! **What each step proves.**
//!
//! 1. Until our side's handshake ends, nothing is proven. The key exchange alone gives keys shared with an unknown party, and
//!    an alert may even be plaintext. So anyone can cause a failure here, and the connecting side keeps trying. There is one
//!    exception: an unexpected key ends the connecting side's run, unless another of the peer's addresses leads to the peer. It
//!    proves nothing, as anyone can present a public key, but it usually means a wrong `--peer`. An impostor in the listener's
//!    place can prevent the run in any case. A listener that does not serve the [`Label`] in the first message leaves here,
//!    with the alert `unrecognized_name`, before it shows its key.
//! 2. The connecting side's handshake ends when it has checked three things: the listener's key against the fingerprint, the
//!    listener's signature over all messages so far, and its Finished. All later data is the listener's. Our own key is on its
//!    way, and has not been checked yet.
//! 3. The listening side's handshake ends when it has made the same checks for the connecting side. If it rejects that key, it
//!    sends the alert `access_denied`. To the connecting side this is proven, as it comes after 2. The reverse does not hold: a
//!    connecting side that rejects the listener's key leaves before it has proven its own.
//! 4. The listener sends [`WELCOME`] on the one connection it accepts from each party, and in a mesh [`TAKEN`] on any further
//!    one. Only these tell the connecting side that its key was accepted.

use super::{Fingerprint, Identity, Label};
use crate::channel::{ByteStream, Counted, TICK, WireCount};
use crate::error::{Error, Result, shown};
use crate::spelling::INSECURE_PLAINTEXT;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct,
    DistinguishedName, ServerConfig, ServerConnection, SignatureScheme,
};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The byte that the listener sends, under TLS, on the connection it accepts.
const WELCOME: u8 = 1;
/// The byte that the listener of a mesh sends, under TLS, to a party that is connected already.
pub(super) const TAKEN: u8 = 2;
const EXPORTER: &[u8] = b"EXPORTER-veilset-1";
/// The alert for a name that is not served (RFC 6066, 3). The library would send another one.
const UNRECOGNISED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
/// How long a failed connection is kept open at most, so that the other side can read why.
const LINGER: Duration = Duration::from_millis(500);
/// Bytes of plaintext that are encrypted at a time, under the lock that reading needs too: four records.
const CHUNK: usize = 1 << 16;

/// The keys of both parties, as far as we know them.
#[derive(Clone)]
pub(super) struct Keys {
    provider: Arc<CryptoProvider>,
    key: Arc<CertifiedKey>,
    /// Our fingerprint.
    pub(super) ours: Fingerprint,
    /// The fingerprints that we accept: the expected peer's, or several parties'.
    expected: Arc<[Fingerprint]>,
    /// The label that the connecting side asks for.
    label: Option<Label>,
}

impl Keys {
    /// Our keys, for a connection to this peer.
    pub(super) fn new(identity: &Identity, peer: Fingerprint) -> Keys {
        Self::accepting(identity, [peer].into())
    }

    /// Our keys, for connections with any of these parties.
    pub(super) fn accepting(identity: &Identity, expected: Arc<[Fingerprint]>) -> Keys {
        let mut provider = aws_lc_rs::default_provider();
        provider.kx_groups = vec![aws_lc_rs::kx_group::X25519MLKEM768];
        Keys {
            provider: Arc::new(provider),
            key: identity.key(),
            ours: identity.fingerprint(),
            expected,
            label: None,
        }
    }

    /// These keys, for a connection with this label.
    pub(super) fn by(self, label: Option<&Label>) -> Keys {
        Keys { label: label.cloned(), ..self }
    }

    /// The fingerprints that we accept.
    pub(super) fn expected(&self) -> &[Fingerprint] {
        &self.expected
    }

    fn pinned(&self) -> Arc<Pinned> {
        Arc::new(Pinned {
            expected: self.expected.clone(),
            presented: OnceLock::new(),
            label: self.label.clone(),
            misled: OnceLock::new(),
            algorithms: self.provider.signature_verification_algorithms,
        })
    }

    fn client(&self, pinned: Arc<Pinned>) -> Result<rustls::Connection, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .dangerous() // no certificate authorities: the fingerprint decides
            .with_custom_certificate_verifier(pinned)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(self.key.clone())));
        config.resumption = Resumption::disabled();
        config.enable_sni = self.label.is_some();
        // The library requires a name; without a label it is neither sent nor checked.
        let name = self.label.as_ref().map_or("veilset", Label::as_str).to_string();
        let name = ServerName::try_from(name).map_err(|e| rustls::Error::General(e.to_string()))?;
        Ok(ClientConnection::new(Arc::new(config), name)?.into())
    }

    fn server(&self, pinned: Arc<Pinned>) -> Result<rustls::Connection, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(pinned.clone())
            .with_cert_resolver(Arc::new(Served { key: self.key.clone(), pinned }));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(ServerConnection::new(Arc::new(config))?.into())
    }

    /// The connecting side's handshake, including the listener's welcome.
    pub(super) fn connect(
        &self,
        socket: impl Into<Arc<TcpStream>>,
        limits: &Limits<'_>,
    ) -> Result<Secured, Failure> {
        let pinned = self.pinned();
        let client = self.client(pinned.clone());
        Secured::new(client, socket)?.shake_hands(&pinned, limits, |tls| {
            if tls.is_handshaking() {
                return Ok(false);
            }
            let mut word = [0u8];
            match tls.reader().read(&mut word) {
                Ok(1) if word == [WELCOME] => Ok(true),
                Ok(1) if word == [TAKEN] => Err(Failure::Taken),
                Ok(1) => Err(Failure::Tls("it is the expected peer but runs another program".into())),
                Ok(_) => Err(Failure::Closed),
                Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
                Err(e) => Err(Failure::Io(e.to_string())),
            }
        })
    }

    /// The listening side's handshake. [`Secured::welcome`] accepts the connection.
    pub(super) fn accept(
        &self,
        socket: impl Into<Arc<TcpStream>>,
        limits: &Limits<'_>,
    ) -> Result<Secured, Failure> {
        let pinned = self.pinned();
        let server = self.server(pinned.clone());
        Secured::new(server, socket)?.shake_hands(&pinned, limits, |tls| Ok(!tls.is_handshaking()))
    }
}

/// When to give up on a handshake.
pub(super) struct Limits<'a> {
    pub(super) deadline: Instant,
    pub(super) stop: &'a dyn Fn() -> bool,
}

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The other side presented this key instead of an expected one, and proved nothing.
    WrongKey(Fingerprint),
    /// The other side has proven the key of a party that is connected already.
    Again(Fingerprint),
    /// The expected peer, which has proven its key, reports that our key's party is connected already.
    Taken,
    /// The expected peer, which has proven its key, rejects ours.
    Refused,
    /// A client that has proven nothing rejects our key.
    Unwanted,
    /// We cut the connection off because there were too many.
    Displaced,
    /// The other side closed the connection.
    Closed,
    /// The handshake took too long.
    Slow,
    /// We were asked to stop, or the result is no longer needed.
    Stopped,
    /// A connection asks for the first of these labels or names, but we serve the second.
    Misled(Option<String>, Option<Label>),
    /// No listener there serves this label, or connections without one; nothing was proven.
    NotServed(Option<Label>),
    /// The other side does not speak our TLS.
    Tls(String),
    /// The proxy cannot be reached, or does not reach the other side. The text names it.
    Proxy(String),
    /// No connection was made.
    Unreachable(String),
    /// The connection broke.
    Io(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::WrongKey(presented) => {
                write!(f, "it shows the fingerprint {presented}, which proves nothing")
            }
            Failure::Again(proven) => {
                write!(f, "it has the fingerprint {proven}, whose party is connected already")
            }
            Failure::Taken => f.write_str("it says that our party is connected already"),
            Failure::Refused => f.write_str("it expects a fingerprint other than ours"),
            Failure::Unwanted => f.write_str("it says that it expects a fingerprint other than ours"),
            Failure::Displaced => f.write_str(
                "it was dropped to make room: too many handshakes were in \
                 progress",
            ),
            Failure::Closed => f.write_str("it closed the connection"),
            Failure::Slow => f.write_str("it did not complete the TLS handshake in time"),
            Failure::Stopped => f.write_str("we stopped"),
            Failure::Misled(asked, served) => {
                match asked {
                    Some(name) => write!(f, "it asks for \"{}\", but ", name)?,
                    None => f.write_str("it asks for no label, but ")?,
                }
                match served {
                    Some(label) => write!(f, "\"{label}\" is served here")?,
                    None => f.write_str("no label is served here")?,
                }
                f.write_str(". Compare where the proxy leads, and the word of the route on both sides")
            }
            Failure::NotServed(label) => {
                match label {
                    Some(label) => write!(f, "it says, without proof, that it does not serve \"{label}\"")?,
                    None => {
                        f.write_str("it says, without proof, that it serves only who asks for its label")?
                    }
                }
                f.write_str(". Compare where the proxy leads, and the word of the route on both sides")
            }
            Failure::Tls(why) => write!(
                f,
                "it does not speak veilset's TLS ({}): is it another program, or run with {INSECURE_PLAINTEXT}?",
                shown(why)
            ),
            Failure::Unreachable(why) | Failure::Proxy(why) => f.write_str(why),
            Failure::Io(why) => write!(f, "the connection broke ({why})"),
        }
    }
}

/// The error if TLS does not give what every complete handshake has.
fn incomplete(without: impl fmt::Display) -> Error {
    Error::bug(format!("a TLS handshake ended without {without}"))
}

fn io_failure(e: &io::Error) -> Failure {
    match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::Slow,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Failure::Closed,
        _ => Failure::Io(e.to_string()),
    }
}

/// Accepts the expected keys. Remembers any other key that is presented, and another name that is asked for, for the
/// report.
#[derive(Debug)]
struct Pinned {
    expected: Arc<[Fingerprint]>,
    presented: OnceLock<Fingerprint>,
    label: Option<Label>,
    misled: OnceLock<Option<String>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn compare(&self, spki: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        let presented = Fingerprint::of_public_key(spki);
        if self.expected.iter().any(|expected| presented.is(expected)) {
            return Ok(());
        }
        let _ = self.presented.set(presented);
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
        verify_tls13_signature_with_raw_key(message, &spki, signature, &self.algorithms)
    }
}

/// How both sides verify signatures: with raw Ed25519 keys, in TLS 1.3 only.
macro_rules! verify_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(rustls::Error::General("TLS 1.2 is not supported".into()))
        }
        fn verify_tls13_signature(
            &self,
            message: &[u8],
            key: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            self.verify(message, key, signature)
        }
        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }
        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.compare(key).map(|()| ServerCertVerified::assertion())
    }
    verify_signatures!();
}

impl ClientCertVerifier for Pinned {
    fn client_auth_mandatory(&self) -> bool {
        true
    }
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.compare(key).map(|()| ClientCertVerified::assertion())
    }
    verify_signatures!();
}

/// Shows our key only to clients that ask for our label or, if we have none, for no label.
#[derive(Debug)]
struct Served {
    key: Arc<CertifiedKey>,
    pinned: Arc<Pinned>,
}

impl ResolvesServerCert for Served {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        if Label::is_asked_for(self.pinned.label.as_ref(), name) {
            return Some(self.key.clone());
        }
        let _ = self.pinned.misled.set(name.map(shown));
        None
    }
    fn only_raw_public_keys(&self) -> bool {
        true
    }
}

/// A connection whose handshake is in progress or complete.
pub(super) struct Secured {
    tls: rustls::Connection,
    socket: Counted<Socket>,
}

/// A socket whose owners share one file descriptor.
#[derive(Clone)]
struct Socket(Arc<TcpStream>);

impl std::ops::Deref for Socket {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.0
    }
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(out)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

impl Secured {
    fn new(
        tls: Result<rustls::Connection, rustls::Error>,
        socket: impl Into<Arc<TcpStream>>,
    ) -> Result<Self, Failure> {
        let mut tls = tls.map_err(|e| Failure::Io(format!("TLS cannot be set up: {e}")))?;
        tls.set_buffer_limit(None); // records are taken out as soon as they are made
        Ok(Secured { tls, socket: Counted(Socket(socket.into()), WireCount::default()) })
    }

    fn shake_hands(
        mut self,
        pinned: &Pinned,
        limits: &Limits<'_>,
        done: impl Fn(&mut rustls::Connection) -> Result<bool, Failure>,
    ) -> Result<Self, Failure> {
        let socket = &self.socket.0;
        let left = limits.deadline.saturating_duration_since(Instant::now()).max(TICK);
        let setup = socket.set_nodelay(true).and_then(|()| {
            socket.set_read_timeout(Some(TICK))?;
            socket.set_write_timeout(Some(left))
        });
        setup.map_err(|e| io_failure(&e))?;
        loop {
            self.flush().map_err(|e| io_failure(&e))?;
            if done(&mut self.tls)? {
                self.socket.0.set_write_timeout(None).map_err(|e| io_failure(&e))?;
                return Ok(self);
            }
            if (limits.stop)() {
                return Err(Failure::Stopped);
            }
            if Instant::now() >= limits.deadline {
                return Err(Failure::Slow);
            }
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => return Err(Failure::Closed),
                Ok(_) => {
                    if let Err(e) = self.tls.process_new_packets() {
                        let failure = self.explain(&e, pinned);
                        self.part(&failure, limits);
                        return Err(failure);
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(io_failure(&e)),
            }
        }
    }

    fn explain(&self, e: &rustls::Error, pinned: &Pinned) -> Failure {
        const DENIED: rustls::Error = rustls::Error::AlertReceived(AlertDescription::AccessDenied);
        const UNKNOWN: rustls::Error = rustls::Error::AlertReceived(AlertDescription::UnrecognisedName);
        if let Some(asked) = pinned.misled.get() {
            return Failure::Misled(asked.clone(), pinned.label.clone());
        }
        match (pinned.presented.get(), &self.tls) {
            (Some(&presented), _) => Failure::WrongKey(presented),
            (None, rustls::Connection::Server(_)) if *e == DENIED => Failure::Unwanted,
            (None, rustls::Connection::Client(tls)) if *e == DENIED && !tls.is_handshaking() => {
                Failure::Refused
            }
            (None, rustls::Connection::Client(tls)) if *e == UNKNOWN && tls.is_handshaking() => {
                Failure::NotServed(pinned.label.clone())
            }
            // Before the end of the handshake, anyone can send an alert.
            _ if matches!(e, rustls::Error::AlertReceived(_)) && self.tls.is_handshaking() => {
                Failure::Tls(format!("{e}, and nothing was proven"))
            }
            _ => Failure::Tls(e.to_string()),
        }
    }

    /// Sends the reason for leaving, and gives the other side a moment to read it. Closing the socket at once would reset the
    /// connection, and the alert could be lost.
    fn part(&mut self, failure: &Failure, limits: &Limits<'_>) {
        let until = (Instant::now() + LINGER).min(limits.deadline);
        let mut waste = [0u8; 4096];
        let _ = match failure {
            Failure::Misled(..) => self.socket.write_all(&UNRECOGNISED_NAME),
            _ => self.flush(),
        };
        let _ = self.socket.0.shutdown(Shutdown::Write);
        while Instant::now() < until && !(limits.stop)() {
            match self.socket.read(&mut waste) {
                Ok(0) => return,
                Err(e) if !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
                _ => {}
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// Confirms to the connecting side that we accept its connection.
    pub(super) fn welcome(&mut self) -> Result<(), Failure> {
        self.say(WELCOME)
    }

    /// Sends this byte on a connection whose handshake is complete.
    pub(super) fn say(&mut self, word: u8) -> Result<(), Failure> {
        self.tls.writer().write_all(&[word]).and_then(|()| self.flush()).map_err(|e| io_failure(&e))
    }

    /// The fingerprint of the key that the other side has proven.
    pub(super) fn peer(&self) -> Result<Fingerprint> {
        let key = self.tls.peer_certificates().and_then(<[_]>::first);
        let key = key.ok_or_else(|| incomplete("a key"))?;
        Ok(Fingerprint::of_public_key(key))
    }

    /// 32 bytes that only the two ends of this connection know (RFC 8446, 7.5).
    pub(super) fn exporter(&self) -> Result<Zeroizing<[u8; 32]>> {
        let exported = self.tls.export_keying_material(Zeroizing::new([0u8; 32]), EXPORTER, None);
        exported.map_err(|e| incomplete(format_args!("an exported key: {e}")))
    }

    /// The count of TLS's bytes on the socket, including the handshake's, but not those exchanged with a proxy before.
    pub(super) fn wire(&self) -> WireCount {
        self.socket.1.clone()
    }

    /// Turns the connection into a stream of bytes that two threads use at once.
    pub(super) fn into_stream(self) -> Result<ByteStream> {
        let Secured { tls, socket: Counted(socket, count) } = self;
        let to_shut_down = socket.try_clone().map_err(|e| {
            Error::network(format!(
                "cannot share the socket: {e}. Allow more open files (ulimit -n), then run again"
            ))
            .because(&e)
        })?;
        let tls = Arc::new(Mutex::new(tls));
        let read = Reader {
            tls: tls.clone(),
            socket: Counted(socket.clone(), count.clone()),
            sealed: vec![0; CHUNK],
            unread: 0..0,
        };
        let write = Writer { tls, socket: Arc::new(Mutex::new(Counted(socket, count))) };
        let last = write.clone();
        let goodbye = move || {
            let _ = last.send(|tls| {
                tls.send_close_notify();
                Ok(())
            });
        };
        Ok(ByteStream {
            read: Box::new(read),
            write: Box::new(write),
            finish: Box::new(goodbye),
            socket: Some(to_shut_down),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while holding one of these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reading half. It waits on the socket without holding the lock, and never writes: TLS's replies go out
/// with the next frame or heartbeat. So neither half ever waits for the other's input or output.
struct Reader {
    tls: Arc<Mutex<rustls::Connection>>,
    socket: Counted<Socket>,
    /// Bytes from the socket; those in `unread` are yet to be decrypted.
    sealed: Vec<u8>,
    unread: std::ops::Range<usize>,
}

impl Reader {
    /// Decrypts available data into `out` until it is full.
    fn open(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut tls = lock(&self.tls);
        let mut n = 0;
        loop {
            match tls.reader().read(&mut out[n..]) {
                Ok(0) => return Ok(n), // `out` is full, or the peer sent its close_notify
                Ok(more) => n += more,
                Err(e) if e.kind() == ErrorKind::WouldBlock && !self.unread.is_empty() => {
                    let mut sealed = &self.sealed[self.unread.clone()];
                    self.unread.start += tls.read_tls(&mut sealed)?;
                    if let Err(e) = tls.process_new_packets() {
                        return Err(io::Error::new(ErrorKind::InvalidData, e));
                    }
                }
                Err(e) if n == 0 => return Err(e),
                Err(_) => return Ok(n),
            }
        }
    }
}

impl Read for Reader {
    /// Fails with `WouldBlock` after each read from the socket that gave no plaintext. So a peer that sends a record byte by
    /// byte without completing it counts as silent.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        match self.open(out) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            done => return done,
        }
        let n = self.socket.read(&mut self.sealed)?;
        self.unread = 0..n;
        if n == 0 {
            // From now on TLS distinguishes a close_notify (0 bytes) from a truncated connection (an error).
            lock(&self.tls).read_tls(&mut io::empty())?;
        }
        self.open(out)
    }
}

/// The writing half. The socket's lock keeps records in the order in which they were encrypted. The lock on the
/// connection is not held while the socket blocks.
#[derive(Clone)]
struct Writer {
    tls: Arc<Mutex<rustls::Connection>>,
    socket: Arc<Mutex<Counted<Socket>>>,
}

impl Writer {
    fn send<T>(&self, put: impl FnOnce(&mut rustls::Connection) -> io::Result<T>) -> io::Result<T> {
        let mut socket = lock(&self.socket);
        let mut sealed = Vec::with_capacity(CHUNK + CHUNK / 64);
        let mut tls = lock(&self.tls);
        let done = put(&mut tls)?;
        while tls.wants_write() {
            tls.write_tls(&mut sealed)?;
        }
        drop(tls);
        socket.write_all(&sealed)?;
        Ok(done)
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(CHUNK)];
        self.send(|tls| tls.writer().write(bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
