//! Runs through an HTTP proxy.

use crate::common::{RECEIVER, Running, SENDER, World, csv, listen, run};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// The receiver's address as passed to the proxy. This name cannot be resolved anywhere else.
const PEER: &str = "peer.invalid:7000";

/// Starts a proxy for one connection: it opens the tunnel to this address, or refuses with this status. Returns its address,
/// and then the first line of the request.
fn proxy(answer: Result<String, &'static str>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = move || {
        let (mut socket, mut asked, mut byte) = (listener.accept().unwrap().0, Vec::new(), [0]);
        while !asked.ends_with(b"\r\n\r\n") {
            socket.read_exact(&mut byte).unwrap();
            asked.push(byte[0]);
        }
        match answer {
            Err(status) => write!(socket, "HTTP/1.1 {status}\r\n\r\n").unwrap(),
            Ok(to) => {
                let onward = TcpStream::connect(to).unwrap();
                write!(socket, "HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
                let back = [onward.try_clone().unwrap(), socket.try_clone().unwrap()];
                for [mut from, mut to] in [[socket, onward], back] {
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        }
        String::from_utf8(asked).unwrap().lines().next().unwrap().to_string()
    };
    (address, thread::spawn(serve))
}

#[test]
fn a_run_goes_through_a_proxy_that_is_typed_or_in_the_file() {
    let world = World::new();
    let [r, s] = [world.write("r.csv", csv(0..30)), world.write("s.csv", csv(20..50))];
    let file = format!(
        "operation = \"intersect\"\nkey = [\"id\"]\ninput = \"s.csv\"\nrole = \"sender\"\nidentity = \"s.pem\"\n\
         connect-timeout = 20\npeer = \"{}\"\nconnect = \"{PEER}\"\n",
        world.fingerprints[RECEIVER]
    );
    for typed in [true, false] {
        let (receiver, address) = listen(world.party(RECEIVER, "intersect", &r, &[]));
        let (at, proxy) = proxy(Ok(address));
        let mut sender = if typed {
            world.party(SENDER, "intersect", &s, &["--connect", PEER, "--proxy", &at])
        } else {
            world.write("s.toml", format!("{file}proxy = \"{at}\"\n"));
            let mut sender = world.veilset();
            sender.args(["run", "s.toml"]);
            sender
        };
        let sender = Running::start(&mut sender);
        assert_eq!(receiver.end().good().lines().count(), 11);
        sender.end().good();
        assert_eq!(proxy.join().unwrap(), format!("CONNECT {PEER} HTTP/1.1"));
    }
}

#[test]
fn a_proxy_that_refuses_is_named_with_its_status() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    for (status, words) in [
        ("403 Forbidden", "forbids connections to peer.invalid:7000 (403 Forbidden)"),
        ("407 Proxy Authentication Required", "which is not supported"),
    ] {
        let (at, proxy) = proxy(Err(status));
        let more = ["--connect", PEER, "--proxy", &at];
        run(&mut world.party(SENDER, "union", &file, &more)).bad(6, &[&at, status, words, "--proxy"]);
        proxy.join().unwrap();
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_refused() {
    let world = World::new();
    let file = world.write("f.csv", csv(0..3));
    for (more, words) in [
        (&["--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:7"][..], &["--listen", "--proxy"][..]),
        (
            &["--insecure-plaintext", "--connect", "127.0.0.1:7", "--proxy", "127.0.0.1:7"],
            &["--insecure-plaintext", "--proxy"],
        ),
        (
            &["--connect", PEER, "--proxy", "http://127.0.0.1:7"],
            &["--proxy", "give HOST:PORT without http://"],
        ),
        (&["--connect", PEER, "--proxy", "me:secret@127.0.0.1:7"], &["--proxy", "a password"]),
    ] {
        let ended = run(&mut world.party(SENDER, "union", &file, more));
        ended.bad(2, words);
        assert!(!ended.err.contains("secret"), "{}", ended.err);
    }
}
