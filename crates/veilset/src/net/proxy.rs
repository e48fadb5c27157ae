//! Reaching the peer through an HTTP proxy: `CONNECT` (RFC 9110, 9.3.6), which opens a tunnel for our TLS.
//!
//! The proxy is trusted only about whether the tunnel is open. It can refuse, delay and cut the connection, like anyone between
//! the parties; behind it the peer proves its key as usual. The proxy resolves the peer's name.

use super::connect::Address;
use super::tls::{Failure, Limits};
use crate::channel::TICK;
use crate::error::{Error, Result, shown};
use crate::spelling::PROXY;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// Maximum length of the header of a proxy's answer, in bytes.
const LONGEST: usize = 8192;

/// An HTTP proxy.
pub(super) struct Proxy<'a> {
    text: &'a str,
    /// The address where it listens.
    pub(super) address: Address<'a>,
}

impl fmt::Display for Proxy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {}", self.text)
    }
}

impl<'a> Proxy<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Proxy<'a>> {
        // The address is not repeated, since it may contain a password.
        if text.contains('@') {
            return Err(Error::usage(format!(
                "{PROXY} has a user's name or a password in it, and proxies that want one are not supported. Give its \
                 HOST:PORT, and ask whoever runs it to let this connection through without"
            )));
        }
        let address = Address::parse_of(text, "a proxy's", "the other party").map_err(|e| {
            Error::usage(format!("{PROXY}: {}. The proxy is an HTTP proxy that allows CONNECT", e.marked()))
        })?;
        Ok(Proxy { text, address })
    }

    /// The failure if the proxy cannot be reached at one of its addresses.
    pub(super) fn unreachable(&self, at: SocketAddr, why: impl fmt::Display) -> Failure {
        Failure::Proxy(format!("{self} cannot be reached ({at}: {why})"))
    }

    /// Asks the proxy to connect to this address. The inner error may be temporary; the outer one is final.
    pub(super) fn tunnel(
        &self,
        socket: &TcpStream,
        to: &Target,
        limits: &Limits<'_>,
    ) -> Result<Result<(), Failure>> {
        let failed = |why: String| Ok(Err(Failure::Proxy(format!("{self} {why}"))));
        let left = limits.deadline.saturating_duration_since(Instant::now()).max(TICK);
        let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
        let sent = socket.set_read_timeout(Some(TICK)).and_then(|()| {
            socket.set_write_timeout(Some(left))?;
            (&*socket).write_all(request.as_bytes())
        });
        if let Err(e) = sent {
            return failed(format!("broke the connection ({e})"));
        }
        let (mut answer, mut n) = ([0u8; LONGEST], 0);
        loop {
            if (limits.stop)() {
                return Err(Error::Cancelled);
            }
            if Instant::now() >= limits.deadline {
                return failed("did not answer CONNECT in time: is it an HTTP proxy?".into());
            }
            match (&*socket).read(&mut answer[n..]) {
                Ok(0) => return failed("closed the connection before it answered CONNECT".into()),
                Ok(more) => n += more,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                Err(e) => return failed(format!("broke the connection ({e})")),
            }
            let said = &answer[..n];
            match end_of_header(said) {
                Some(end) => return self.judge(&said[..end], said.len() > end, to),
                None if !b"HTTP/1.".starts_with(&said[..n.min(7)]) => return Err(self.is_none(said)),
                None if n == LONGEST => {
                    return Err(Error::network(format!(
                        "{self} answers CONNECT with a header of more than {LONGEST} bytes. Check that {PROXY} is an \
                         HTTP proxy"
                    )));
                }
                None => {}
            }
        }
    }

    /// Interprets the header of the proxy's answer. `more` tells whether any data follows it.
    fn judge(&self, header: &[u8], more: bool, to: &Target) -> Result<Result<(), Failure>> {
        let Some((status, line)) = status(header) else { return Err(self.is_none(header)) };
        let line = shown(line);
        match status {
            // The peer does not speak first.
            200..=299 if more => Err(Error::network(format!(
                "{self} sends more than its answer to CONNECT ({line}). Check that {PROXY} is an HTTP proxy that allows \
                 CONNECT"
            ))),
            200..=299 => Ok(Ok(())),
            408 | 429 | 500 | 502..=504 => {
                Ok(Err(Failure::Proxy(format!("{self} does not reach {to}, it says ({line})"))))
            }
            407 => Err(Error::network(format!(
                "{self} wants a user's name and a password ({line}), which is not supported. Ask whoever runs it to let \
                 connections to {to} through without, or omit {PROXY}"
            ))),
            403 => Err(Error::network(format!(
                "{self} forbids connections to {to} ({line}). Ask whoever runs it to allow CONNECT to that address, or \
                 omit {PROXY}"
            ))),
            _ => Err(Error::network(format!(
                "{self} refuses to connect to {to} ({line}). Check that {PROXY} is an HTTP proxy that allows CONNECT to \
                 that address"
            ))),
        }
    }

    /// The error if the answer does not come from an HTTP proxy.
    fn is_none(&self, answer: &[u8]) -> Error {
        let first = answer.split(|&b| b == b'\n').next().unwrap_or_default();
        Error::network(format!(
            "{self} does not answer as an HTTP proxy does, but with \"{}\". Check {PROXY}: its host and port are those of \
             an HTTP proxy that allows CONNECT, reached without TLS",
            shown(String::from_utf8_lossy(first).trim_end())
        ))
    }
}

/// An address in the form that a proxy expects.
pub(super) struct Target(String);

impl Target {
    pub(super) fn of(Address { host, port }: &Address<'_>) -> Result<Target> {
        // Other characters could end the line of the request.
        if !host.chars().all(|c| c.is_ascii_graphic()) {
            return Err(Error::usage(format!(
                "a proxy cannot be told the host \"{}\": write its name with ASCII letters (xn--...), or its IP address",
                shown(host)
            )));
        }
        Ok(Target(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The end of the header: the position after the first empty line.
fn end_of_header(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find_map(|at| {
        let rest = &bytes[at..];
        [&b"\n\r\n"[..], b"\n\n"].into_iter().find(|end| rest.starts_with(end)).map(|end| at + end.len())
    })
}

/// The status code, and the rest of the first line including it: `403 Forbidden`.
fn status(header: &[u8]) -> Option<(u16, &str)> {
    let line = header.split(|&b| b == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let (version, rest) = line.split_once(' ')?;
    if !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return None;
    }
    let code = rest.split(' ').next()?;
    let digits = code.len() == 3 && code.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| code.parse().ok()).flatten().map(|code| (code, rest))
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
