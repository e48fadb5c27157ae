use super::*;
use crate::channel::Timeouts;
use crate::net::tests::{failed, identity, listen, seconds, start, talk, tls};
use crate::net::{Connection, Endpoint, Protection, establish};
use std::net::{Shutdown, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use veilset_testing::{Draw, free_address};

/// The peer's address for the proxy. No other resolver knows this name.
const PEER: &str = "peer.invalid:7000";

/// A proxy's reaction to a connection.
#[derive(Clone)]
enum Turn {
    /// Answers, and waits for the other side to leave.
    Say(Vec<u8>),
    /// Answers one byte at a time, without end.
    Drip,
    /// Sends nothing.
    Silence,
    /// Closes the connection.
    Leave,
    /// Opens the tunnel, to this listener.
    Open(String),
}

fn say(answer: &str) -> Turn {
    Turn::Say(answer.into())
}

/// A proxy that accepts as many connections as it has turns. Returns its address, and a thread that returns the requests it
/// received.
fn proxy(turns: Vec<Turn>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let run = move || turns.into_iter().map(|turn| serve(listener.accept().unwrap().0, turn)).collect();
    (address, thread::spawn(run))
}

fn serve(mut socket: TcpStream, turn: Turn) -> String {
    let (mut asked, mut byte) = (Vec::new(), [0]);
    while !asked.ends_with(b"\r\n\r\n") && socket.read(&mut byte).is_ok_and(|n| n == 1) {
        asked.push(byte[0]);
    }
    match turn {
        Turn::Say(answer) => {
            let _ = socket.write_all(&answer);
            while socket.read(&mut [0; 1000]).is_ok_and(|n| n > 0) {}
        }
        Turn::Drip => {
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\n");
            while socket.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        }
        Turn::Silence => while socket.read(&mut byte).is_ok_and(|n| n > 0) {},
        Turn::Leave => {}
        Turn::Open(to) => {
            let onward = TcpStream::connect(to).unwrap();
            socket.write_all(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n").unwrap();
            for (mut from, mut to) in
                [(socket.try_clone().unwrap(), onward.try_clone().unwrap()), (onward, socket)]
            {
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    }
    String::from_utf8(asked).unwrap()
}

fn through(proxy: &str) -> Endpoint {
    Endpoint::Connect { address: PEER.into(), proxy: Some(proxy.into()), label: None }
}

/// Connects through a proxy that only takes this turn.
fn by(turn: Turn, timeouts: Timeouts) -> (Result<Connection>, String) {
    let (a, b) = (identity(), identity());
    let (address, proxy) = proxy(vec![turn]);
    let ended = establish(&through(&address), &tls(&b, &a), timeouts, &|| false, &|_| ());
    proxy.join().unwrap();
    (ended, address)
}

#[test]
fn through_a_proxy_the_peers_talk_and_it_alone_resolves_the_name() {
    let (a, b) = (identity(), identity());
    let listening = listen(tls(&a, &b), seconds(20));
    let (address, proxy) = proxy(vec![Turn::Open(listening.address.clone())]);
    let there = start(through(&address), tls(&b, &a), seconds(20)).0.join().unwrap().unwrap();
    let here = listening.run.join().unwrap().unwrap();
    assert_eq!((here.peer, there.peer), (Some(b.fingerprint()), Some(a.fingerprint())));
    assert!(here.exporter == there.exporter);
    talk(here, there);
    let asked = proxy.join().unwrap();
    assert_eq!(asked, [format!("CONNECT {PEER} HTTP/1.1\r\nHost: {PEER}\r\n\r\n")]);
}

#[test]
fn a_proxy_that_does_not_reach_the_peer_yet_is_asked_again() {
    let (a, b) = (identity(), identity());
    let listening = listen(tls(&a, &b), seconds(60));
    let turns = vec![
        say("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nno\n"),
        say("HTTP/1.0 503 Service Unavailable\n\n"),
        say("HTTP/1.1 504 \r\n\r\n"),
        Turn::Leave,
        Turn::Open(listening.address.clone()),
    ];
    let (address, proxy) = proxy(turns);
    let (there, notices) = start(through(&address), tls(&b, &a), seconds(60));
    talk(listening.run.join().unwrap().unwrap(), there.join().unwrap().unwrap());
    assert_eq!(proxy.join().unwrap().len(), 5);
    for status in ["502 Bad Gateway", "503 Service Unavailable", "504"] {
        let words = format!("the proxy {address} does not reach {PEER}, it says ({status})); still trying");
        assert_eq!(notices.count(&words), 1, "{status}: {:?}", notices.0);
    }
    assert_eq!(notices.count("closed the connection before it answered CONNECT"), 1);
}

#[test]
fn a_proxy_that_refuses_ends_the_run_at_once() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(LONGEST));
    for (answer, words) in [
        ("HTTP/1.1 403 Forbidden\r\n\r\n<html>", "forbids connections to peer.invalid:7000 (403 Forbidden)"),
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",
            "wants a user's name and a password (407 Proxy Authentication Required), which is not supported",
        ),
        ("HTTP/1.1 405 Method Not Allowed\r\n\r\n", "refuses to connect to peer.invalid:7000 (405 Method"),
        ("HTTP/1.1 302 Found\r\nLocation: http://login.example\r\n\r\n", "(302 Found)"),
        ("HTTP/1.1 501 Not Implemented\r\n\r\n", "(501 Not Implemented)"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "(100 Continue)"),
        ("HTTP/1.1 999 \u{1b}[2J\r\n\r\n", "(999 \\u{1b}[2J)"),
        ("HTTP/1.1 200 OK\r\n\r\nSSH-2.0-OpenSSH\r\n", "sends more than its answer to CONNECT (200 OK)"),
        ("SSH-2.0-OpenSSH\r\n", "does not answer as an HTTP proxy does, but with \"SSH-2.0-OpenSSH\""),
        ("\u{1b}[2J", "but with \"\\u{1b}[2J\""),
        ("H\u{15}\u{3}", "does not answer as an HTTP proxy does"),
        ("HTTP/2 200\r\n\r\n", "does not answer as an HTTP proxy does"),
        ("HTTP/1.10 200 OK\r\n\r\n", "does not answer as an HTTP proxy does"),
        ("HTTP/1.1 20 OK\r\n\r\n", "does not answer as an HTTP proxy does"),
        ("HTTP/1.1 2000 OK\r\n\r\n", "does not answer as an HTTP proxy does"),
        ("HTTP/1.1 +20 OK\r\n\r\n", "does not answer as an HTTP proxy does"),
        ("HTTP/1.1\r\n\r\n", "does not answer as an HTTP proxy does"),
        (&long, "with a header of more than 8192 bytes"),
    ] {
        let (ended, address) = by(say(answer), seconds(60));
        let e = failed(ended);
        assert!(matches!(e, Error::Network(_)), "{e:?}");
        let e = e.to_string();
        assert!(e.contains(&format!("the proxy {address} ")) && e.contains("`proxy`"), "{e}");
        assert!(e.contains(words) && !e.contains(['\u{1b}', '\n']), "{words}: {e}");
    }
}

#[test]
fn an_answer_of_the_greatest_length_is_read_and_no_longer_one() {
    let header = |bytes: usize| {
        let (start, end) = ("HTTP/1.1 403 Forbidden\r\nX: ", "\r\n\r\n");
        format!("{start}{}{end}", "a".repeat(bytes - start.len() - end.len()))
    };
    for (bytes, words) in [(LONGEST, "(403 Forbidden)"), (LONGEST + 1, "more than 8192 bytes")] {
        let e = failed(by(say(&header(bytes)), seconds(60)).0).to_string();
        assert!(e.contains(words), "{e}");
    }
}

#[test]
fn a_proxy_that_does_not_answer_is_given_up_when_the_time_is_over() {
    let short = Timeouts { connect: Duration::from_millis(600), ..seconds(0) };
    for turn in Draw::new("silent proxies").some(1, [Turn::Silence, Turn::Drip, say("HTTP/1.1 2")]) {
        let (ended, address) = by(turn, short);
        let e = failed(ended);
        assert!(matches!(e, Error::Network(_)), "{e:?}");
        let way = format!("cannot reach the peer at {PEER} through the proxy {address} within 0.6 seconds");
        let cause = format!("the proxy {address} did not answer CONNECT in time");
        assert!(e.to_string().contains(&way) && e.to_string().contains(&cause), "{e}");
    }
    // The tunnel is open, and its other end is silent.
    let e = failed(by(say("HTTP/1.1 200 OK\r\n\r\n"), short).0).to_string();
    assert!(e.contains("did not complete the TLS handshake in time"), "{e}");

    let (a, b) = (identity(), identity());
    let (address, silent) = proxy(vec![Turn::Silence]);
    let looked = std::cell::Cell::new(0);
    let cancelled = || looked.replace(looked.get() + 1) > 3;
    let e = failed(establish(&through(&address), &tls(&b, &a), seconds(60), &cancelled, &|_| ()));
    assert_eq!(e, Error::Cancelled);
    silent.join().unwrap();
}

#[test]
fn a_proxy_that_is_not_there_is_named() {
    let (a, b) = (identity(), identity());
    let short = Timeouts { connect: Duration::from_millis(300), ..seconds(0) };
    for (address, words) in [
        (free_address(), "cannot be reached (127."),
        ("no-such-proxy.invalid:3128".into(), "cannot find the address of no-such-proxy.invalid"),
    ] {
        let e = failed(start(through(&address), tls(&b, &a), short).0.join().unwrap());
        assert!(matches!(e, Error::Network(_)), "{e:?}");
        let e = e.to_string();
        assert!(e.contains(&format!("the proxy {address}")) && e.contains(words), "{e}");
        assert!(e.contains("Check the address, `proxy` and firewalls"), "{e}");
    }
}

#[test]
fn behind_a_proxy_the_peer_proves_its_key_as_ever() {
    let (a, b, other) = (identity(), identity(), identity());
    let listening = listen(tls(&other, &b), seconds(20));
    let (address, proxy) = proxy(vec![Turn::Open(listening.address.clone())]);
    let e = failed(start(through(&address), tls(&b, &a), seconds(20)).0.join().unwrap());
    assert!(matches!(e, Error::Peer { .. }), "{e:?}");
    let at = format!("the program at {PEER} through the proxy {address} shows the fingerprint");
    assert!(e.to_string().contains(&at), "{e}");
    proxy.join().unwrap();
    let there = start(Endpoint::connect(&*listening.address), tls(&b, &other), seconds(20)).0;
    talk(listening.run.join().unwrap().unwrap(), there.join().unwrap().unwrap());
}

#[test]
fn what_no_proxy_can_be_or_be_told_is_refused_before_anything_is_sent() {
    let endpoint = |address: &str, proxy: &str| Endpoint::Connect {
        address: address.into(),
        proxy: Some(proxy.into()),
        label: None,
    };
    let (a, b) = (identity(), identity());
    for (address, proxy, words) in [
        (PEER, "proxy.example", "the port is missing"),
        (PEER, "http://proxy.example:3128", "give HOST:PORT without http://"),
        (PEER, "proxy.example:0", "nobody listens at port 0"),
        (PEER, "user:secret@proxy.example:3128", "a user's name or a password"),
        (PEER, "http://user:secret@proxy.example:3128", "a user's name or a password"),
        ("peer.example\r\nX:7000", "127.0.0.1:7", "cannot be told the host"),
        ("a peer:7000", "127.0.0.1:7", "cannot be told the host"),
        ("p\u{e9}er.example:7000", "127.0.0.1:7", "xn--"),
        ("peer.example:0", "127.0.0.1:7", "not the peer's address"),
    ] {
        let endpoint = endpoint(address, proxy);
        let run = start(endpoint.clone(), tls(&b, &a), seconds(20)).0;
        for e in [endpoint.check().unwrap_err(), failed(run.join().unwrap())] {
            assert!(matches!(e, Error::Usage(_)) && e.to_string().contains(words), "{proxy}: {e:?}");
            assert!(!e.to_string().contains("secret"), "{e}");
        }
    }
    endpoint("[2001:db8::1]:7000", "[2001:db8::2]:3128").check().unwrap();
    let here = endpoint("127.0.0.1:7", "127.0.0.1:7");
    let e = failed(start(here, Protection::InsecurePlaintext, seconds(20)).0.join().unwrap());
    assert!(e.to_string().contains("`insecure_plaintext`") && e.to_string().contains("`proxy`"), "{e}");
}

#[test]
fn a_target_is_written_as_a_proxy_reads_it() {
    for (text, written) in [
        ("host.example:7000", "host.example:7000"),
        ("192.0.2.1:1", "192.0.2.1:1"),
        ("[2001:db8::1]:7000", "[2001:db8::1]:7000"),
    ] {
        assert_eq!(Target::of(&Address::parse(text).unwrap()).unwrap().to_string(), written);
    }
}
