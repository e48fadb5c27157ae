//! What both sides must agree on before anything about the data is said, and what each says at the end.
//!
//! ```text
//! both  preamble        "veilset" 0, version of the protocol
//! both  hello           what each was asked to do, and a nonce
//! both  size            number of items
//! both  go              our side allows the run at these sizes
//!       ...             the protocol
//! both  confirmation    a value that only this session has
//! ```
//!
//! Each side sends its message before it reads the peer's, so that both see every difference.

use crate::channel::{Channel, Message, PROTOCOL_VERSION};
use crate::error::{Difference, Error, Fault, Result, shown};
use crate::hash::SessionId;
use crate::net::{Connection, Fingerprint};
use crate::operations::sum::Modulus;
use crate::operations::{Confirmed, Operation, Role, Terms};
use crate::params::MAX_SET;
use crate::rng::Prng;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// This frame is the same in all versions: they recognise each other by it.
const PREAMBLE: Message<[u8]> = Message::new(1, "preamble: magic, version");
const HELLO: Message<[u8]> = Message::new(2, "hello: JSON");
const SIZE: Message<u64> = Message::new(3, "size of the set");
const CONFIRMATION: Message<[u8]> = Message::new(4, "confirmation of the end");
const GO: Message<[u8]> = Message::new(8, "go: the run is allowed");
const NONCE: Message<[u8; 32]> = Message::new(10, "nonce for the session id");
const PREDICTION: Message<u64> = Message::new(9, "milliseconds of work, as one side expects");

/// The terms that are others, or 0, where the operation is another one.
const OF_OPERATION: [&str; 6] =
    ["protocol", MAX_ROW, "min_count", "value_scale", "modulus_bits", "malicious_sender"];
const MAX_ROW: &str = "max_row";

/// Who gets the result, if not the receiver alone.
pub(super) const BOTH: &str = "both";

const MAGIC: &[u8; 8] = b"veilset\0";
/// What to look at if a connection without TLS yields nothing.
const BOTH_PLAIN: &str = "Were both sides run with --insecure-plaintext?";
/// Bytes of the longest hello; ours has about 400 and the names of the columns that are sent.
const MAX_HELLO: usize = 1 << 14;

/// A point that both sides must have been asked for alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Its name for programs, which stays the same from version to version: "max_row".
    pub key: &'static str,
    /// Its name for the users of the command line: "--max-row".
    pub words: &'static str,
    /// What we were asked for.
    pub value: String,
}

/// What we were asked to do. All of it but the role must be the same on both sides; what does not
/// matter to an operation is 0 or "none" on both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// What is computed.
    pub operation: &'static Operation,
    /// Our part in it; the peer has the other one.
    pub role: Role,
    /// Whether this is a check only: the agreement and nothing more.
    pub check: bool,
    /// How it is computed, as typed: "dh".
    pub protocol: String,
    /// The group, as typed: "curve25519".
    pub group: String,
    /// Who gets the result: "receiver" or "both".
    pub output: String,
    /// Number of key columns.
    pub key_columns: u32,
    /// What is done to keys before they are compared: "none".
    pub normalisation: String,
    /// Bytes of the longest row that is transferred.
    pub max_row: u32,
    /// The columns that travel with the sender's items, as the sender calls them.
    pub sent_columns: Vec<String>,
    /// Number of matches below which nothing is disclosed.
    pub min_count: u64,
    /// Decimal places of the values to be added.
    pub value_scale: u32,
    /// Bits of the modulus of the sum.
    pub modulus_bits: u32,
    /// Whether the protocol is to withstand a sender that deviates.
    pub malicious_sender: bool,
    /// Whether our set is padded, so that its size is only a bound. Each side decides for itself.
    pub padded: bool,
}

impl Hello {
    /// All that both sides must have been asked for alike.
    pub fn terms(&self) -> impl Iterator<Item = Term> {
        Letter::new(self, [0; 32]).terms().into_iter()
    }

    /// What it says of the operation.
    pub(super) fn operation_terms(&self) -> Terms {
        Terms {
            payload: !self.sent_columns.is_empty(),
            max_row: self.max_row as usize,
            both: self.output == BOTH,
            modulus: if self.modulus_bits == 128 { Modulus::Bits128 } else { Modulus::Bits64 },
            min_count: self.min_count,
            malicious_sender: self.malicious_sender,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// Names this session in every hash: no two sessions share it, and both sides have the same.
    pub session_id: SessionId,
    /// Number of items in the peer's set, at most [`MAX_SET`].
    pub their_size: usize,
    /// Whether some of them are dummies.
    pub they_pad: bool,
}

/// Agrees with the peer on everything in `hello`, then exchanges the sizes of the sets.
///
/// Fails with [`Error::Disagreement`] on both sides if they were asked to do different things; then
/// nothing about the data was sent.
pub fn agree(
    connection: &mut Connection,
    hello: &Hello,
    our_size: usize,
    rng: &mut Prng,
) -> Result<Agreement> {
    let (session_id, they_pad) = meet(connection, hello, our_size, rng)?;
    let their_size = tell_size(&mut connection.channel, our_size)?;
    Ok(Agreement { session_id, their_size, they_pad })
}

/// Agrees on everything in `hello`: the session's name, and whether the peer pads its set. Of `our_size` the peer
/// hears nothing.
pub(super) fn meet(
    connection: &mut Connection,
    hello: &Hello,
    our_size: usize,
    rng: &mut Prng,
) -> Result<(SessionId, bool)> {
    if our_size > MAX_SET {
        return Err(Error::Usage(format!(
            "our set of {our_size} items is more than this version supports ({MAX_SET}). Split it"
        )));
    }
    let ours = Letter::new(hello, rng.bytes());
    let our_bytes = ours.to_bytes()?;
    let channel = &mut connection.channel;

    // 1. Versions: nothing else is understood between two of them.
    channel.tx.send_bytes(PREAMBLE, &preamble(PROTOCOL_VERSION))?;
    let theirs = channel.rx.recv_bytes(PREAMBLE, MAGIC.len() + 2);
    // Without TLS these are the first bytes that show what the peer speaks.
    let theirs = theirs.map_err(|e| match (e, connection.peer) {
        (Error::Peer { who, fault, what }, None) => {
            Error::Peer { who, fault, what: format!("{what}. {BOTH_PLAIN}") }
        }
        (Error::Network(what), None) => Error::Network(format!("{what}. {BOTH_PLAIN}")),
        (e, _) => e,
    })?;
    same_version(&theirs)?;

    // 2. Hellos.
    channel.tx.send_bytes(HELLO, &our_bytes)?;
    let their_bytes = channel.rx.recv_bounded(HELLO, MAX_HELLO)?;
    let theirs = Letter::from_bytes(&their_bytes)?;
    let differences = ours.differences(&theirs);
    if !differences.is_empty() {
        return Err(Error::Disagreement(differences));
    }

    // 3. The session's name. The roles are opposite, so both sides put the receiver first.
    let us = Party { hello: &our_bytes, fingerprint: connection.our };
    let peer = Party { hello: &their_bytes, fingerprint: connection.peer };
    let session_id = match hello.role {
        Role::Receiver => session_id(&us, &peer, &connection.exporter),
        Role::Sender => session_id(&peer, &us, &connection.exporter),
    };
    Ok((session_id, theirs.padded))
}

/// Says something about the data for the first time: our size. Gives the peer's.
pub(super) fn tell_size(channel: &mut Channel, our_size: usize) -> Result<usize> {
    channel.tx.send(SIZE, &[our_size as u64])?;
    let their_size = channel.rx.recv(SIZE, 1)?.first().copied().unwrap_or(0);
    match usize::try_from(their_size) {
        Ok(their_size) if their_size <= MAX_SET => Ok(their_size),
        _ => {
            let what = format!(
                "its set of {their_size} items is more than this version supports ({MAX_SET}). Ask the other party to \
                 split it"
            );
            Err(Error::peer(Fault::Misbehaved, what))
        }
    }
}

/// Names a session on a channel that the caller brings, for whoever runs a protocol of this library without [`agree`]:
/// each side sends 32 random bytes, and the id is a hash of both, the receiver's first. It says nothing about who the
/// peer is or what it was asked to do; that is the caller's affair.
///
/// A peer with which we run two sessions at once, in opposite roles, can send our nonces back and so give both one id.
/// Keys are fresh in every run, so only the separation by domain is lost. [`agree`] hashes the TLS connection too and
/// is not affected.
///
/// # Errors
/// Those of the channel.
pub fn introduce(channel: &mut Channel, role: Role, rng: &mut Prng) -> Result<SessionId> {
    let ours: [u8; 32] = rng.bytes();
    channel.tx.send(NONCE, &[ours])?;
    let theirs = channel.rx.recv(NONCE, 1)?[0];
    let (receiver, sender) = match role {
        Role::Receiver => (ours, theirs),
        Role::Sender => (theirs, ours),
    };
    let mut hasher = blake3::Hasher::new_derive_key("veilset 2026-11 session id, no agreement");
    hasher.update(&PROTOCOL_VERSION.to_le_bytes()).update(&receiver).update(&sender);
    Ok(SessionId::of(*hasher.finalize().as_bytes()))
}

/// Tells the peer that our side allows the run, and waits for it to allow it too: no message about the data
/// goes out before both have.
pub(super) fn go(channel: &mut Channel) -> Result<()> {
    channel.tx.send_bytes(GO, &[])?;
    channel.rx.recv_bytes(GO, 0)?;
    Ok(())
}

/// Tells the peer how many milliseconds of work our side expects, and is told its number.
pub(super) fn predict(channel: &mut Channel, ours: u64) -> Result<u64> {
    channel.tx.send(PREDICTION, &[ours])?;
    Ok(channel.rx.recv(PREDICTION, 1)?.first().copied().unwrap_or(0))
}

/// Tells the peer that we are done, and waits for it to be done too: a result may be opened only after this.
pub fn confirm(channel: &mut Channel, session_id: &SessionId) -> Result<Confirmed> {
    let ours = blake3::derive_key("veilset 2026-11 confirmation of the end", session_id.as_bytes());
    channel.tx.send_bytes(CONFIRMATION, &ours)?;
    let theirs = channel.rx.recv_bytes(CONFIRMATION, ours.len())?;
    match bool::from(ours[..].ct_eq(&theirs)) {
        true => Ok(Confirmed(())),
        false => Err(Error::misbehaves(
            "it confirmed the end of another session than ours; do not use this run's output",
        )),
    }
}

fn preamble(version: u16) -> Vec<u8> {
    [&MAGIC[..], &version.to_le_bytes()].concat()
}

fn same_version(theirs: &[u8]) -> Result<()> {
    let version = match theirs.strip_prefix(MAGIC) {
        Some(&[a, b]) => u16::from_le_bytes([a, b]),
        _ => {
            let what = "it is not veilset. Check the address and the port";
            return Err(Error::peer(Fault::Misbehaved, what));
        }
    };
    match version == PROTOCOL_VERSION {
        true => Ok(()),
        false => Err(Error::Disagreement(vec![Difference {
            term: "protocol_version",
            what: "version of the protocol (the older side needs a newer veilset)",
            ours: PROTOCOL_VERSION.to_string(),
            theirs: version.to_string(),
        }])),
    }
}

/// A hello as it is sent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Letter {
    operation: String,
    role: String,
    /// "run" or "check".
    purpose: String,
    protocol: String,
    group: String,
    output: String,
    key_columns: u32,
    normalisation: String,
    max_row: u32,
    sent_columns: Vec<String>,
    min_count: u64,
    value_scale: u32,
    modulus_bits: u32,
    malicious_sender: bool,
    padded: bool,
    /// 64 hexadecimal digits.
    nonce: String,
}

impl Letter {
    fn new(hello: &Hello, nonce: [u8; 32]) -> Letter {
        Letter {
            operation: hello.operation.name.into(),
            role: hello.role.name().into(),
            purpose: if hello.check { "check" } else { "run" }.into(),
            protocol: hello.protocol.clone(),
            group: hello.group.clone(),
            output: hello.output.clone(),
            key_columns: hello.key_columns,
            normalisation: hello.normalisation.clone(),
            max_row: hello.max_row,
            sent_columns: hello.sent_columns.clone(),
            min_count: hello.min_count,
            value_scale: hello.value_scale,
            modulus_bits: hello.modulus_bits,
            malicious_sender: hello.malicious_sender,
            padded: hello.padded,
            nonce: blake3::Hash::from_bytes(nonce).to_hex().to_string(),
        }
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        let bytes = serde_json::to_vec(self).map_err(|e| Error::Bug(format!("a hello is not JSON: {e}")))?;
        match bytes.len() <= MAX_HELLO {
            true => Ok(bytes),
            false => Err(Error::Usage(
                "the names of the columns to be sent are too long to agree on. Send fewer, or rename them in the file"
                    .into(),
            )),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<Letter> {
        let wrong =
            |what: &str| Error::misbehaves(format!("its hello is not one of this version ({})", shown(what)));
        let letter: Letter = serde_json::from_slice(bytes).map_err(|e| wrong(&e.to_string()))?;
        let digits = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        match letter.nonce.len() == 64 && letter.nonce.bytes().all(digits) {
            true => Ok(letter),
            false => Err(wrong("the nonce is not 64 hexadecimal digits")),
        }
    }

    /// All that must be the same on both sides. A new field does not compile until it is here.
    fn terms(&self) -> [Term; 13] {
        let Letter {
            operation,
            role: _,
            purpose,
            protocol,
            group,
            output,
            key_columns,
            normalisation,
            max_row,
            sent_columns,
            min_count,
            value_scale,
            modulus_bits,
            malicious_sender,
            padded: _,
            nonce: _,
        } = self;
        [
            ("operation", "operation", operation.clone()),
            ("purpose", "check or run (`veilset check`)", purpose.clone()),
            ("protocol", "--protocol", protocol.clone()),
            ("group", "group of the protocol", group.clone()),
            ("output", "who gets the result (--both)", output.clone()),
            ("key_columns", "number of key columns (--key)", key_columns.to_string()),
            ("normalisation", "normalisation of keys", normalisation.clone()),
            (MAX_ROW, "--max-row", max_row.to_string()),
            ("sent_columns", "columns sent (--send-columns, --receive-columns)", listed(sent_columns)),
            ("min_count", "--min-count", min_count.to_string()),
            ("value_scale", "decimal places of the values (--scale)", value_scale.to_string()),
            ("modulus_bits", "bits of the sum's modulus (--modulus)", modulus_bits.to_string()),
            ("malicious_sender", "--malicious-sender", if *malicious_sender { "yes" } else { "no" }.into()),
        ]
        .map(|(key, words, value)| Term { key, words, value })
    }

    fn differences(&self, theirs: &Letter) -> Vec<Difference> {
        let mut differences = Vec::new();
        let expected = match self.role == Role::Receiver.name() {
            true => Role::Sender,
            false => Role::Receiver,
        };
        if theirs.role != expected.name() {
            differences.push(Difference {
                term: "role",
                what: "--role",
                ours: self.role.clone(),
                theirs: format!(
                    "{} (one side must be the receiver, the other the sender)",
                    shown(&theirs.role)
                ),
            });
        }
        // What only follows from another difference would name options that nobody typed.
        let operation = self.operation != theirs.operation;
        let width = self.sent_columns != theirs.sent_columns && (self.max_row == 0 || theirs.max_row == 0);
        for (ours, theirs) in self.terms().into_iter().zip(theirs.terms()) {
            let Term { key, words, value } = ours;
            let follows = operation && OF_OPERATION.contains(&key) || width && key == MAX_ROW;
            if value != theirs.value && !follows {
                let theirs = shown(&theirs.value);
                differences.push(Difference { term: key, what: words, ours: value, theirs });
            }
        }
        differences
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", "),
    }
}

struct Party<'a> {
    /// Exactly as it went over the wire.
    hello: &'a [u8],
    fingerprint: Option<Fingerprint>,
}

/// BLAKE3 over everything that makes this session this one. Each part stands behind its length, so
/// that no two different sessions are hashed alike.
fn session_id(receiver: &Party<'_>, sender: &Party<'_>, exporter: &[u8; 32]) -> SessionId {
    let mut hasher = blake3::Hasher::new_derive_key("veilset 2026-11 session id");
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(&PROTOCOL_VERSION.to_le_bytes());
    for party in [receiver, sender] {
        part(party.hello);
        part(party.fingerprint.as_ref().map_or(&[], |f| &f.as_bytes()[..]));
    }
    part(exporter);
    SessionId::of(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests;
