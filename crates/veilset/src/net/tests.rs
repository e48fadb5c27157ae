//! Two parties, and strangers, over real sockets.

use super::*;
use crate::channel::{Message, Timeouts, WireCount};
use crate::error::{Error, Fault, Result};
use crate::spelling::plain;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use veilset_testing::{Draw, free_address};

const NUMBERS: Message<u64> = Message::new(100, "numbers");

pub(crate) fn seconds(connect: u64) -> Timeouts {
    Timeouts { connect: Duration::from_secs(connect), idle: Duration::from_secs(20) }
}

pub(crate) fn identity() -> Arc<Identity> {
    Arc::new(Identity::generate().unwrap())
}

pub(crate) fn tls(identity: &Arc<Identity>, peer: &Identity) -> Protection {
    Protection::Tls { identity: identity.clone(), peer: peer.fingerprint() }
}

/// The lines that the user received.
#[derive(Clone, Default)]
pub(super) struct Notices(pub(super) Arc<Mutex<Vec<String>>>);

impl Notices {
    pub(super) fn count(&self, words: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|n| plain(n).contains(words)).count()
    }
    pub(super) fn wait_for(&self, words: &str, count: usize) {
        for _ in 0..10_000 {
            if self.count(words) >= count {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("no {words:?}: {:?}", self.0.lock().unwrap());
    }
}

pub(super) fn start(
    endpoint: Endpoint,
    security: Protection,
    timeouts: Timeouts,
) -> (JoinHandle<Result<Connection>>, Notices) {
    let notices = Notices::default();
    let told = notices.clone();
    let run = move || {
        let notice = |n: &str| told.0.lock().unwrap().push(n.to_owned());
        establish(&endpoint, &security, timeouts, &|| false, &notice)
    };
    (thread::spawn(run), notices)
}

pub(crate) struct Listening {
    pub(crate) address: String,
    pub(crate) run: JoinHandle<Result<Connection>>,
    notices: Notices,
}

pub(crate) fn listen(security: Protection, timeouts: Timeouts) -> Listening {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().to_string();
    let notices = Notices::default();
    let told = notices.clone();
    let run = thread::spawn(move || {
        let notice = |n: &str| told.0.lock().unwrap().push(n.to_owned());
        listener.accept(&security, timeouts, &|| false, &notice)
    });
    Listening { address, run, notices }
}

pub(crate) fn connect(address: &str, security: &Protection, timeouts: Timeouts) -> Result<Connection> {
    establish(&Endpoint::connect(address), security, timeouts, &|| false, &|_| ())
}

pub(super) fn failed(result: Result<Connection>) -> Error {
    result.err().unwrap()
}

/// Sends numbers both ways.
pub(super) fn talk(a: Connection, b: Connection) {
    let ends = [a, b].map(|mut c| {
        thread::spawn(move || {
            c.channel.tx.send(NUMBERS, &[1, 2, 3]).unwrap();
            assert_eq!(c.channel.rx.recv(NUMBERS, 3).unwrap(), [1, 2, 3]);
            c
        })
    });
    let [a, mut b] = ends.map(|end| end.join().unwrap());
    // Every byte that one side counts as sent, including its close_notify, the other side counts as received.
    a.channel.close();
    let e = b.channel.rx.recv(NUMBERS, 1).unwrap_err();
    assert!(e.to_string().contains("closed the connection"), "{e}");
    assert_eq!(a.wire.sent(), b.wire.received());
}

#[test]
fn the_right_peers_talk() {
    let (a, b) = (identity(), identity());
    let listening = listen(tls(&a, &b), seconds(20));
    let there = connect(&listening.address, &tls(&b, &a), seconds(20)).unwrap();
    let here = listening.run.join().unwrap().unwrap();
    assert_eq!((here.our, here.peer), (Some(a.fingerprint()), Some(b.fingerprint())));
    assert_eq!((there.our, there.peer), (Some(b.fingerprint()), Some(a.fingerprint())));
    assert!(here.exporter == there.exporter && *here.exporter != [0; 32]);
    fn is_zeroed_when_dropped(_: &impl zeroize::ZeroizeOnDrop) {}
    is_zeroed_when_dropped(&here.exporter);
    talk(here, there);
}

#[test]
fn plaintext_talks_on_loopback_and_proves_nothing() {
    let listening = listen(Protection::InsecurePlaintext, seconds(20));
    let there = connect(&listening.address, &Protection::InsecurePlaintext, seconds(20)).unwrap();
    let here = listening.run.join().unwrap().unwrap();
    for c in [&here, &there] {
        assert_eq!((c.our, c.peer, *c.exporter), (None, None, [0; 32]));
    }
    talk(here, there);
}

#[test]
fn plaintext_is_refused_off_this_machine() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7000", "[2001:db8::1]:7000", "[::ffff:192.0.2.1]:7000"]
    {
        for endpoint in [Endpoint::listen(address), Endpoint::connect(address.replace(":0", ":7000"))] {
            let e = failed(start(endpoint, Protection::InsecurePlaintext, seconds(1)).0.join().unwrap());
            assert!(matches!(e, Error::Usage(_)), "{e:?}");
            assert!(e.to_string().contains("`insecure_plaintext` is for this machine only"), "{e}");
        }
    }
    let everywhere = Listener::bind("0.0.0.0:0").unwrap();
    let refused = everywhere.accept(&Protection::InsecurePlaintext, seconds(1), &|| false, &|_| ());
    assert!(matches!(failed(refused), Error::Usage(_)));
}

#[test]
fn another_key_is_refused_and_both_sides_name_both_fingerprints() {
    let (a, b, other) = (identity(), identity(), identity());
    // The wrong expectation is the listener's, the connecting side's, or that of both.
    thread::scope(|scope| {
        for (by_a, by_b) in [(&other, &a), (&b, &other), (&other, &other)] {
            let (a, b, other) = (&a, &b, &other);
            scope.spawn(move || mismatch(a, b, other, by_a, by_b));
        }
    });
}

/// `a` listens and expects `by_a`, `b` connects and expects `by_b`.
fn mismatch(a: &Arc<Identity>, b: &Arc<Identity>, other: &Identity, by_a: &Identity, by_b: &Identity) {
    let listening = listen(tls(a, by_a), seconds(3));
    let e = failed(connect(&listening.address, &tls(b, by_b), seconds(20)));
    let there = e.to_string();
    assert!(matches!(e, Error::Peer { fault: Fault::Stranger, .. }), "{e:?}");
    let e = failed(listening.run.join().unwrap());
    let here = e.to_string();
    assert!(matches!(e, Error::Peer { fault: Fault::Stranger, .. }), "{e:?}");

    // The connecting side checks the listener's key first.
    if by_b.fingerprint() == other.fingerprint() {
        assert!(
            there.contains(&format!("shows the fingerprint {}, which proves nothing", a.fingerprint())),
            "{there}"
        );
        assert!(there.contains(&format!("expected is {}", other.fingerprint())), "{there}");
        assert!(here.contains(&format!("a fingerprint other than ours, {}", a.fingerprint())), "{here}");
        assert!(here.contains(&by_a.fingerprint().to_string()), "{here}");
        assert_eq!(listening.notices.count("expects a fingerprint other than ours"), 1);
        // It shows its own key only to the expected peer.
        assert!(
            !here.contains(&b.fingerprint().to_string()) || by_a.fingerprint() == b.fingerprint(),
            "{here}"
        );
        assert_eq!(listening.notices.count(&b.fingerprint().to_string()), 0);
    } else {
        assert!(
            here.contains(&format!("shows the fingerprint {}, which proves nothing", b.fingerprint())),
            "{here}"
        );
        assert!(here.contains(&format!("expected is {}", other.fingerprint())), "{here}");
        assert!(there.contains(&format!("expected fingerprint, {}", a.fingerprint())), "{there}");
        assert!(there.contains(&format!("`peer={}`", b.fingerprint())), "{there}");
        assert_eq!(listening.notices.count(&b.fingerprint().to_string()), 1);
    }
    assert!(here.contains("`peer") && there.contains("`peer"), "{here}\n{there}");
}

#[test]
fn our_own_fingerprint_is_not_the_peers() {
    let a = identity();
    for endpoint in [Endpoint::listen("127.0.0.1:0"), Endpoint::connect("127.0.0.1:7")] {
        let e = failed(start(endpoint, tls(&a, &a), seconds(20)).0.join().unwrap());
        assert!(e.to_string().contains("`peer` is our own fingerprint"), "{e}");
    }
}

#[test]
fn strangers_neither_end_nor_delay_the_run() {
    let (a, b, other) = (identity(), identity(), identity());
    // Slow strangers may occupy a handshake for 10 seconds. All of this takes less time if they cause no delay.
    let listening = listen(tls(&a, &b), seconds(60));
    let Listening { address, notices, .. } = &listening;
    let visit = |say: &[u8]| {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(say).unwrap();
        socket
    };
    // A port scan, a browser, garbage, a record that never arrives in full, another TLS, another key, no TLS.
    drop(TcpStream::connect(address).unwrap());
    notices.wait_for("it closed the connection", 1);
    let _browser = visit(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    notices.wait_for("does not speak veilset's TLS", 1);
    let _garbage = visit(&[0xff; 5000]);
    notices.wait_for("does not speak veilset's TLS", 2);
    let _half_a_record = visit(&[22, 3, 1, 0x40, 0]);
    let mut hello_and_nonsense = visit(&[22, 3, 1, 0, 5, 1, 0, 0, 1, 0]);
    notices.wait_for("does not speak veilset's TLS", 3);
    let mut answer = Vec::new();
    hello_and_nonsense.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.first(), Some(&21), "an alert");
    failed(connect(address, &tls(&other, &a), seconds(20)));
    notices.wait_for(&other.fingerprint().to_string(), 1);
    let mut plain = connect(address, &Protection::InsecurePlaintext, seconds(20)).unwrap();
    plain.channel.tx.send(NUMBERS, &[1]).unwrap();
    assert!(plain.channel.rx.recv(NUMBERS, 1).is_err());
    notices.wait_for("does not speak veilset's TLS", 4);
    // More silent connections than there are concurrent handshakes.
    let _silent: Vec<_> = (0..room::HANDSHAKES + 4).map(|_| visit(&[])).collect();
    notices.wait_for("dropped to make room", 4);

    let there = connect(address, &tls(&b, &a), seconds(60)).unwrap();
    let here = listening.run.join().unwrap().unwrap();
    assert!(
        listening.notices.0.lock().unwrap().iter().all(|n| !n.contains('\n') && n.contains("127.0.0.1:"))
    );
    talk(here, there);
}

#[test]
fn a_scan_does_not_flood_the_terminal() {
    let (a, b) = (identity(), identity());
    let listening = listen(tls(&a, &b), seconds(60));
    for _ in 0..100 {
        drop(TcpStream::connect(&listening.address).unwrap());
    }
    listening.notices.wait_for("are not reported", 1);
    connect(&listening.address, &tls(&b, &a), seconds(60)).unwrap();
    listening.run.join().unwrap().unwrap();
    assert_eq!(listening.notices.0.lock().unwrap().len(), 21);
}

#[test]
fn either_side_may_start_first() {
    let (a, b) = (identity(), identity());
    let address = free_address();
    let (there, notices) = start(Endpoint::connect(address.clone()), tls(&b, &a), seconds(20));
    notices.wait_for("cannot be reached yet", 1);
    let (here, told) = start(Endpoint::listen(address.clone()), tls(&a, &b), seconds(20));
    talk(here.join().unwrap().unwrap(), there.join().unwrap().unwrap());
    assert_eq!(told.count(&format!("listening on {address}")), 1);
    assert_eq!(notices.0.lock().unwrap().len(), 1, "one line, however often it tries");
}

#[test]
fn a_listener_that_goes_away_in_the_handshake_is_tried_again() {
    let (a, b) = (identity(), identity());
    let address = free_address();
    let leaving = TcpListener::bind(&address).unwrap();
    let (there, notices) = start(Endpoint::connect(address.clone()), tls(&b, &a), seconds(20));
    drop(leaving.accept().unwrap());
    notices.wait_for("cannot be reached yet", 1);
    drop(leaving);
    let (here, _) = start(Endpoint::listen(address), tls(&a, &b), seconds(20));
    talk(here.join().unwrap().unwrap(), there.join().unwrap().unwrap());
}

/// The first message of a connecting party with these keys: its ClientHello.
fn client_hello(security: &Protection) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (run, _) = start(Endpoint::connect(address), security.clone(), seconds(1));
    let mut socket = listener.accept().unwrap().0;
    let mut record = vec![0; 5];
    socket.read_exact(&mut record).unwrap();
    record.resize(5 + usize::from(u16::from_be_bytes([record[3], record[4]])), 0);
    socket.read_exact(&mut record[5..]).unwrap();
    drop((socket, listener));
    failed(run.join().unwrap());
    record
}

/// Anyone can read the first message.
#[test]
fn what_is_said_first_names_nobody() {
    let (a, b) = (identity(), identity());
    let hello = client_hello(&tls(&b, &a));
    let [ours, theirs] = [&b, &a].map(|identity| identity.key().cert[0].to_vec());
    // The keys without their common prefix.
    for name in [b"veilset", &ours[12..], &theirs[12..]] as [&[u8]; 3] {
        assert!(!hello.windows(name.len()).any(|part| part == name), "{name:?}");
    }
}

#[test]
fn strangers_that_hang_inside_a_handshake_do_not_keep_the_peer_out() {
    let (a, b) = (identity(), identity());
    let listening = listen(tls(&a, &b), seconds(60));
    // A replay of the peer's own first message, followed by nothing, by the end of the stream, or by something
    // that is not TLS.
    let hello = client_hello(&tls(&b, &a));
    let visit = |then: &[u8]| {
        let mut socket = TcpStream::connect(&listening.address).unwrap();
        socket.write_all(&hello).unwrap();
        socket.read_exact(&mut [0; 5]).unwrap();
        socket.write_all(then).unwrap();
        socket
    };
    let _hanging: Vec<_> = (0..12).map(|_| visit(&[])).collect();
    drop(visit(&[]));
    listening.notices.wait_for("it closed the connection", 1);
    let _plain = visit(b"veilset\0");
    // A record for the end of the handshake that is not encrypted under its keys.
    let _forged = visit(&[&[23, 3, 3, 0, 40][..], &[7; 40]].concat());
    listening.notices.wait_for("does not speak veilset's TLS", 2);
    let there = connect(&listening.address, &tls(&b, &a), seconds(60)).unwrap();
    talk(listening.run.join().unwrap().unwrap(), there);
}

#[test]
fn a_listener_that_is_not_the_peer_is_tried_again_until_it_is() {
    let (a, b) = (identity(), identity());
    let security = tls(&b, &a);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (there, notices) = start(Endpoint::connect(address.clone()), security, seconds(60));
    let preamble = [1, 0, 10, 0, 0, 0, b'v', b'e', b'i', b'l', b's', b'e', b't', 0, 1, 0];
    let half_a_server_hello = [22, 3, 3, 0, 90, 2, 0, 0, 86, 3, 3];
    let answers: [&[u8]; 5] =
        [&[], b"HTTP/1.1 400 Bad Request\r\n\r\n", &[0xff; 5000], &preamble, &half_a_server_hello];
    for (i, answer) in answers.into_iter().enumerate() {
        let mut socket = listener.accept().unwrap().0;
        socket.read_exact(&mut [0; 5]).unwrap();
        socket.write_all(answer).unwrap();
        // Unread data would reset the connection, and the answer would be lost.
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        while socket.read(&mut [0; 1000]).is_ok_and(|n| n > 0) {}
        assert!(!there.is_finished(), "{i}");
    }
    drop(listener);
    let (here, _) = start(Endpoint::listen(address), tls(&a, &b), seconds(60));
    talk(here.join().unwrap().unwrap(), there.join().unwrap().unwrap());
    assert!(notices.count("cannot be reached yet") >= 2, "{:?}", notices.0.lock().unwrap());
}

#[test]
fn an_alert_that_proves_nothing_does_not_end_the_run() {
    let (a, b) = (identity(), identity());
    // Not even the alert that the peer would send to reject our key.
    let alerts = [[21, 3, 3, 0, 2, 2, 49], [21, 3, 3, 0, 2, 2, 40], [21, 3, 1, 0, 2, 1, 0]];
    let answer = |listener: &TcpListener, there: &JoinHandle<_>, alert: &[u8]| {
        listener.set_nonblocking(true).unwrap();
        let mut socket = loop {
            assert!(!there.is_finished(), "it does not try on");
            match listener.accept() {
                Ok((socket, _)) => break socket,
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        };
        socket.set_nonblocking(false).unwrap();
        socket.read_exact(&mut [0; 5]).unwrap();
        socket.write_all(alert).unwrap();
        // Unread data would reset the connection, and the alert would be lost.
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        while socket.read(&mut [0; 1000]).is_ok_and(|n| n > 0) {}
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (there, notices) = start(Endpoint::connect(address.clone()), tls(&b, &a), seconds(60));
    for alert in &alerts {
        answer(&listener, &there, alert);
    }
    notices.wait_for("nothing was proven", 1);
    drop(listener);
    let (here, _) = start(Endpoint::listen(address), tls(&a, &b), seconds(60));
    talk(here.join().unwrap().unwrap(), there.join().unwrap().unwrap());

    // No stranger connects.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (there, _) = start(Endpoint::connect(address), tls(&b, &a), seconds(1));
    answer(&listener, &there, &alerts[0]);
    drop(listener);
    let e = failed(there.join().unwrap());
    assert!(matches!(e, Error::Network(_)), "{e:?}");
    assert!(e.to_string().contains("nothing was proven"), "{e}");
    assert!(!e.to_string().contains("expected fingerprint"), "{e}");
}

#[test]
fn who_waits_long_is_told_once_what_may_be_the_matter() {
    let (a, b) = (identity(), identity());
    let short = Timeouts { connect: Duration::from_millis(700), ..seconds(0) };
    let cases = [(tls(&a, &b), false), (tls(&a, &b), true), (Protection::InsecurePlaintext, false)];
    for (security, stranger) in Draw::new("who waits long").some(1, cases) {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().to_string();
        let _stranger = stranger.then(|| TcpStream::connect(&address).unwrap());
        let told = Notices::default();
        let notice = |n: &str| told.0.lock().unwrap().push(n.to_owned());
        let watch = connect::Watch::new(short, &|| false, &notice);
        watch.hint.set(Some(std::time::Instant::now()));
        failed(listener.run(&security, None, &watch));
        assert_eq!(told.count("has not connected to 127.0.0.1:"), 1);
        assert_eq!(told.count("ask the other party what it printed"), 1);
    }
    let told = Notices::default();
    let notice = |n: &str| told.0.lock().unwrap().push(n.to_owned());
    let watch = connect::Watch::new(short, &|| false, &notice);
    watch.hint.set(Some(std::time::Instant::now()));
    let nobody = free_address();
    failed(call::connect(call::Way::direct(&nobody), &tls(&a, &b), &watch));
    assert_eq!(told.count("has not been reached at 127."), 1);
    assert_eq!(told.count("ask the other party what it printed"), 1);
    // A party that waits a shorter time gets no hint.
    let (run, notices) = start(Endpoint::connect(nobody), tls(&a, &b), short);
    failed(run.join().unwrap());
    assert_eq!(notices.count("ask the other party"), 0);
}

#[test]
fn nobody_there_is_an_error_after_the_time_out() {
    let (a, b) = (identity(), identity());
    let short = Timeouts { connect: Duration::from_millis(300), ..seconds(0) };
    let address = free_address();
    for security in [tls(&a, &b), Protection::InsecurePlaintext] {
        let listening = failed(listen(security.clone(), short).run.join().unwrap());
        let connecting = failed(connect(&address, &security, short));
        for e in [listening, connecting] {
            assert!(matches!(e, Error::Network(_)), "{e:?}");
            assert!(e.to_string().contains("within 0.3 seconds (`connect_timeout`)"), "{e}");
            assert!(e.to_string().contains("then run again"), "{e}");
            assert!(e.to_string().contains("Its program may have stopped before it was ready"), "{e}");
        }
    }
    let e = failed(connect("no-such-host.invalid:7000", &tls(&a, &b), short));
    assert!(e.to_string().contains("cannot find the address of no-such-host.invalid"), "{e}");
    // A stranger accepts the connection, but sends nothing.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let e = failed(connect(&mute.local_addr().unwrap().to_string(), &tls(&a, &b), short));
    assert!(e.to_string().contains("did not complete the TLS handshake in time"), "{e}");
    // Only a stranger connected.
    let listening = listen(tls(&a, &b), short);
    let _silent = TcpStream::connect(&listening.address).unwrap();
    let e = failed(listening.run.join().unwrap());
    assert!(matches!(e, Error::Network(_)), "{e:?}");
}

#[test]
fn waiting_can_be_cancelled() {
    let (a, b) = (identity(), identity());
    for security in [tls(&a, &b), Protection::InsecurePlaintext] {
        for endpoint in [Endpoint::listen("127.0.0.1:0"), Endpoint::connect(free_address())] {
            let looked = std::cell::Cell::new(0);
            let cancelled = || {
                looked.set(looked.get() + 1);
                looked.get() > 3
            };
            let e = failed(establish(&endpoint, &security, seconds(60), &cancelled, &|_| ()));
            assert_eq!(e, Error::Cancelled);
        }
    }
}

#[test]
fn a_place_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let cases =
        [(address.as_str(), "choose another port"), ("192.0.2.1:7000", "one of this machine's addresses")];
    for (address, next) in cases {
        let e = Listener::bind(address).err().unwrap();
        assert!(matches!(e, Error::Usage(_)), "{e:?}");
        assert!(e.to_string().contains(&format!("cannot listen on {address}")), "{e}");
        assert!(e.to_string().contains(next), "{e}");
    }
}

#[test]
fn what_is_not_an_address_is_explained() {
    let cases = [
        ("", "the port is missing"),
        ("localhost", "the port is missing"),
        (":7000", "the host is missing"),
        ("[]:7000", "the host is missing"),
        ("localhost:", "not a number"),
        ("localhost:seven", "not a number"),
        ("localhost:70000", "not a number"),
        ("localhost:+7000", "not a number"),
        ("::1:7000", "needs brackets"),
        ("[::1]7000", "needs brackets"),
        ("[::1]", "needs brackets"),
        ("http://example.org:7000", "give HOST:PORT without http://"),
        ("https://example.org/path", "give HOST:PORT without https://"),
    ];
    for (address, words) in cases {
        for endpoint in [Endpoint::listen(address), Endpoint::connect(address)] {
            let e = failed(start(endpoint, Protection::InsecurePlaintext, seconds(1)).0.join().unwrap());
            assert!(matches!(e, Error::Usage(_)), "{e:?}");
            assert!(e.to_string().contains(words) && e.to_string().contains("HOST:PORT"), "{e}");
        }
    }
    let e = failed(connect("127.0.0.1:0", &Protection::InsecurePlaintext, seconds(1)));
    assert!(e.to_string().contains("port 0"), "{e}");
}

#[test]
fn a_connection_over_a_given_channel_proves_nothing() {
    let (a, b) = crate::channel::Channel::pair();
    let [a, b] = [a, b].map(|c| Connection::unprotected(c, WireCount::default()));
    talk(a, b);
}
