use super::*;
use crate::channel::{Message, Timeouts, over};
use rustls::client::ResolvesClientCert;
use rustls::crypto::SupportedKxGroup;
use std::net::TcpListener;
use std::thread;

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

fn keys() -> (Keys, Keys) {
    let (a, b) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    (Keys::new(&a, b.fingerprint()), Keys::new(&b, a.fingerprint()))
}

fn limits() -> Limits<'static> {
    Limits { deadline: Instant::now() + Duration::from_secs(20), stop: &|| false }
}

/// Both ends of one connection: the connecting side and the listening side.
fn secured() -> (Secured, Secured) {
    let ((a, b), (near, far)) = (keys(), sockets());
    let listening = thread::spawn(move || {
        let mut secured = b.accept(far, &limits()).unwrap();
        secured.welcome().unwrap();
        secured
    });
    (a.connect(near, &limits()).unwrap(), listening.join().unwrap())
}

fn read(from: &mut dyn Read, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(out) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            done => return done,
        }
    }
}

#[test]
fn both_ends_export_the_same_key_and_no_two_connections_do() {
    let (a, b) = secured();
    assert!(a.exporter().unwrap() == b.exporter().unwrap());
    assert!(a.exporter().unwrap() != secured().0.exporter().unwrap());
    assert_eq!(a.tls.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    assert_eq!(a.tls.handshake_kind(), Some(rustls::HandshakeKind::Full));
    // Nor can another connection be resumed with the keys of this one.
    let rustls::Connection::Client(client) = &a.tls else { panic!("the connecting side is the client") };
    assert_eq!(client.tls13_tickets_received(), 0);
}

/// Keys that offer only these groups for the key exchange.
fn offering(keys: &Keys, groups: Vec<&'static dyn SupportedKxGroup>) -> Keys {
    let provider = CryptoProvider { kx_groups: groups, ..(*keys.provider).clone() };
    Keys { provider: Arc::new(provider), ..keys.clone() }
}

#[test]
fn the_key_exchange_is_the_hybrid_one_and_no_peer_gets_another() {
    use super::aws_lc_rs::kx_group::{SECP256R1, X25519, X25519MLKEM768};
    let (a, b) = secured();
    for end in [&a, &b] {
        let group = end.tls.negotiated_key_exchange_group().unwrap();
        assert_eq!(group.name(), rustls::NamedGroup::X25519MLKEM768);
    }
    for groups in [vec![X25519], vec![SECP256R1], vec![X25519, SECP256R1]] {
        for listens in [false, true] {
            let ((mut a, mut b), (near, far)) = (keys(), sockets());
            let weak = if listens { &mut b } else { &mut a };
            *weak = offering(weak, groups.clone());
            let listening = thread::spawn(move || b.accept(far, &limits()).err());
            let failures = [a.connect(near, &limits()).err(), listening.join().unwrap()];
            assert!(failures.iter().all(|f| matches!(f, Some(Failure::Tls(_)))), "{failures:?}");
        }
    }
    // A party that offers both groups does not get the weak one.
    let ((a, b), (near, far)) = (keys(), sockets());
    let a = offering(&a, vec![X25519, X25519MLKEM768]);
    let listening = thread::spawn(move || b.accept(far, &limits()).unwrap().welcome().unwrap());
    let end = a.connect(near, &limits()).unwrap();
    let group = end.tls.negotiated_key_exchange_group().unwrap();
    assert_eq!(group.name(), rustls::NamedGroup::X25519MLKEM768);
    listening.join().unwrap();
}

#[test]
fn only_the_welcome_is_one() {
    for word in [None, Some(0), Some(TAKEN), Some(TAKEN + 1), Some(b'v')] {
        let ((a, b), (near, far)) = (keys(), sockets());
        let listening = thread::spawn(move || {
            let mut secured = b.accept(far, &limits()).unwrap();
            secured.tls.writer().write_all(&Vec::from_iter(word)).unwrap();
            secured.tls.send_close_notify();
            secured.flush().unwrap();
            secured
        });
        let failure = a.connect(near, &limits()).err();
        match word {
            None => assert_eq!(failure, Some(Failure::Closed)),
            Some(TAKEN) => assert_eq!(failure, Some(Failure::Taken)),
            Some(_) => assert!(matches!(failure, Some(Failure::Tls(_))), "{failure:?}"),
        }
        listening.join().unwrap();
    }
}

#[test]
fn words_of_strangers_do_no_harm_to_a_terminal() {
    let shown = crate::spelling::plain(&Failure::Tls("\u{1b}[2J\u{202e}\n".into()).to_string());
    assert!(shown.chars().all(|c| c.is_ascii_graphic() || c == ' '), "{shown}");
}

#[test]
fn fifty_megabytes_each_way_at_once_arrive_unchanged_and_are_counted() {
    const LEN: usize = 50_000_000;
    let (a, b) = secured();
    let wires = [a.wire(), b.wire()];
    // A pattern whose period matches no record length, with a different one for each direction.
    let pattern = |at: usize, seed: u8| (at % 251) as u8 ^ seed;
    let ends: Vec<_> = [(a, 1u8), (b, 2u8)]
        .into_iter()
        .map(|(secured, seed)| {
            let ByteStream { read: mut from, write: mut to, finish, socket } = secured.into_stream().unwrap();
            let writing = thread::spawn(move || {
                let mut chunk = vec![0; 300_000];
                for at in (0..LEN).step_by(chunk.len()) {
                    let n = chunk.len().min(LEN - at);
                    (0..n).for_each(|i| chunk[i] = pattern(at + i, seed));
                    to.write_all(&chunk[..n]).unwrap();
                }
                finish();
                to
            });
            let reading = thread::spawn(move || {
                let (mut at, mut buffer) = (0, vec![0; 65_537]);
                loop {
                    let n = read(from.as_mut(), &mut buffer).unwrap();
                    if n == 0 {
                        return at;
                    }
                    assert!((0..n).all(|i| buffer[i] == pattern(at + i, 3 - seed)));
                    at += n;
                }
            });
            (writing, reading, socket)
        })
        .collect();
    for (writing, reading, _socket) in ends {
        assert_eq!(reading.join().unwrap(), LEN);
        writing.join().unwrap();
    }
    let [a, b] = wires;
    assert_eq!((a.sent(), a.received()), (b.received(), b.sent()));
    for sent in [a.sent(), b.sent()] {
        assert!(sent > LEN as u64 && sent < LEN as u64 / 100 * 101, "{sent}");
    }
}

#[test]
fn a_goodbye_is_an_end_and_a_cut_is_an_error() {
    for polite in [true, false] {
        let (a, b) = secured();
        let (mut a, mut b) = (a.into_stream().unwrap(), b.into_stream().unwrap());
        a.write.write_all(b"last").unwrap();
        if polite {
            (a.finish)();
        }
        a.socket.unwrap().shutdown(Shutdown::Both).unwrap();
        let mut out = [0; 10];
        assert_eq!(read(b.read.as_mut(), &mut out).unwrap(), 4);
        match read(b.read.as_mut(), &mut out) {
            Ok(n) => assert!(polite && n == 0),
            Err(e) => assert!(!polite && e.kind() == ErrorKind::UnexpectedEof, "{e}"),
        }
    }
}

#[test]
fn a_changed_byte_is_an_error() {
    let (mut a, b) = secured();
    let mut b = b.into_stream().unwrap();
    let mut record = Vec::new();
    a.tls.writer().write_all(b"frame").unwrap();
    a.tls.write_tls(&mut record).unwrap();
    record[7] ^= 1;
    a.socket.write_all(&record).unwrap();
    let e = read(b.read.as_mut(), &mut [0; 10]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidData, "{e}");
}

#[test]
fn a_peer_that_stalls_inside_a_frame_or_drips_a_record_is_given_up() {
    const FRAME: Message<[u8]> = Message::new(9, "frame");
    let idle = Timeouts { idle: Duration::from_secs(1), ..Timeouts::default() };
    for drip in [false, true] {
        let (mut a, b) = secured();
        let mut b = over(b.into_stream().unwrap(), idle).unwrap();
        a.tls.writer().write_all(&[9, 0, 100, 0, 0, 0, 1, 2, 3]).unwrap(); // 3 of 100 bytes
        if !drip {
            a.flush().unwrap();
        }
        let dripping = thread::spawn(move || {
            // A record that is never completed, sent a byte at a time: bytes arrive, but no data.
            let mut record = Vec::new();
            a.tls.writer().write_all(&[0; 10_000]).unwrap();
            while a.tls.wants_write() {
                a.tls.write_tls(&mut record).unwrap();
            }
            for byte in record[..9_000].chunks(1) {
                thread::sleep(Duration::from_millis(20));
                if drip && a.socket.write_all(byte).is_err()
                    || a.socket.read(&mut [0; 999]).is_ok_and(|n| n == 0)
                {
                    break;
                }
            }
        });
        let e = b.rx.recv_bytes(FRAME, 100).unwrap_err();
        assert!(e.to_string().contains("`idle_timeout`"), "{e}");
        drop(b);
        dripping.join().unwrap();
    }
}

#[test]
fn the_last_frame_and_the_goodbye_arrive_although_bytes_of_the_peer_were_not_read() {
    const FRAME: Message<[u8]> = Message::new(9, "frame");
    let (a, b) = secured();
    let mut a = over(a.into_stream().unwrap(), Timeouts::default()).unwrap();
    let ByteStream { read: mut from, write: mut to, socket, .. } = b.into_stream().unwrap();
    // Heartbeats, as fast as possible.
    let flooding = thread::spawn(move || while to.write_all(&[0, 0xff, 0, 0, 0, 0].repeat(1000)).is_ok() {});
    let closing = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        a.tx.send_bytes(FRAME, &[7; 1_000_000]).unwrap();
        a.close();
    });
    thread::sleep(Duration::from_millis(800));
    let (mut got, mut buffer) = (Vec::new(), [0; 10_000]);
    loop {
        match read(from.as_mut(), &mut buffer).unwrap() {
            0 => break,
            n => got.extend(&buffer[..n]),
        }
    }
    assert!(got.ends_with(&[7; 1_000_000]), "{}", got.len());
    socket.unwrap().shutdown(Shutdown::Both).unwrap();
    closing.join().unwrap();
    flooding.join().unwrap();
}

/// A client without a key to present, or with something that is not one.
#[derive(Debug)]
struct Shows(Option<Arc<CertifiedKey>>, bool);

impl ResolvesClientCert for Shows {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
    fn only_raw_public_keys(&self) -> bool {
        self.1
    }
    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

#[test]
fn a_client_without_a_key_or_with_a_certificate_or_anothers_key_is_refused() {
    let thief = Identity::generate().unwrap().key();
    for case in ["no key", "raw keys, but none", "certificate", "another's key", "no extension"] {
        let ((a, b), (near, far)) = (keys(), sockets());
        let builder = ClientConfig::builder_with_provider(a.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(a.pinned());
        let shows = |key: Option<&Arc<CertifiedKey>>, raw| Arc::new(Shows(key.cloned(), raw));
        // The peer's public key, with signatures by the thief's own key.
        let stolen = Arc::new(CertifiedKey::new(a.key.cert.clone(), thief.key.clone()));
        let config = match case {
            "no key" => builder.with_no_client_auth(),
            "raw keys, but none" => builder.with_client_cert_resolver(shows(None, true)),
            "certificate" => builder.with_client_cert_resolver(shows(Some(&a.key), false)),
            "another's key" => builder.with_client_cert_resolver(shows(Some(&stolen), true)),
            _ => ClientConfig::builder_with_provider(a.provider.clone())
                .with_protocol_versions(&[&TLS13])
                .unwrap()
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth(),
        };
        let name = ServerName::try_from("veilset").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap().into();
        let listening = thread::spawn(move || b.accept(far, &limits()).err());
        let stranger = Secured::new(Ok(client), near).unwrap();
        let _ = stranger.shake_hands(&a.pinned(), &limits(), |_| Ok(false));
        let failure = listening.join().unwrap();
        assert!(matches!(failure, Some(Failure::Tls(_))), "{case}: {failure:?}");
    }
}

#[test]
fn a_server_with_a_stolen_public_key_is_refused() {
    let ((a, mut b), (near, far)) = (keys(), sockets());
    let thief = Identity::generate().unwrap().key();
    b.key = Arc::new(CertifiedKey::new(b.key.cert.clone(), thief.key.clone()));
    let listening = thread::spawn(move || b.accept(far, &limits()).is_ok());
    let failure = a.connect(near, &limits()).err();
    assert!(matches!(failure, Some(Failure::Tls(_))), "{failure:?}");
    assert!(!listening.join().unwrap());
}

#[test]
fn a_handshake_ends_when_its_time_is_over_or_nobody_wants_it() {
    let (a, _) = keys();
    for (listens, stopped) in [(false, false), (false, true), (true, false), (true, true)] {
        let (near, _silent) = sockets();
        let stop = move || stopped;
        let limits = Limits { deadline: Instant::now() + Duration::from_millis(300), stop: &stop };
        let failure = if listens { a.accept(near, &limits) } else { a.connect(near, &limits) }.err();
        assert_eq!(failure, Some(if stopped { Failure::Stopped } else { Failure::Slow }));
    }
}
