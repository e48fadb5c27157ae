//! The agreement of both sides before anything about the data is sent, and the confirmation at the end.
//!
//! ```text
//! both  preamble        "veilset" 0, version of the protocol
//! both  hello           what each was asked to do, the protocols it allows, and a nonce
//! both  size            number of items
//! R->S  choice          which of the protocols that both allow; not sent if there is only one (`choosing.rs`)
//! both  go              our side allows the run at these sizes
//!       ...             the protocol
//! both  confirmation    a value that only this session has
//! ```
//!
//! Each side sends its message before it reads the peer's, so that both see every difference. After the hellos both
//! sides know the common candidates: the receiver's candidates that the sender has too, in the receiver's order.

use super::Spec;
use super::choosing::first;
use crate::artefact::filter::{FilterFacts, Head, owner};
use crate::channel::{Channel, Message, PROTOCOL_VERSION, versions};
use crate::error::{Difference, Error, Fault, Result, Seat, shown};
use crate::hash::SessionId;
use crate::net::{Connection, Fingerprint};
use crate::operations::{Role, Terms};
use crate::params::MAX_SET;
use crate::params::filter::{Agreed, Contents};
use crate::planner::Choices;
use crate::protocols::Choice;
use crate::rng::Prng;
use crate::speed::Speeds;
use crate::spelling::{FILTER, INSECURE_PLAINTEXT, command, setting};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

const HELLO: Message<[u8]> = Message::new(2, "hello: JSON");
const SIZE: Message<u64> = Message::new(3, "size of the set");
const GO: Message<[u8]> = Message::new(8, "go: the run is allowed");
const NONCE: Message<[u8; 32]> = Message::new(10, "nonce for the session id");
const PREDICTION: Message<u64> = Message::new(9, "milliseconds of work, as one side expects");

/// The terms that may differ merely because the operations differ; they are not reported then.
const OF_OPERATION: [&str; 6] =
    [MAX_ROW, "min_count", "value_scale", "modulus_bits", "malicious_sender", REVEAL_COUNT];
const MAX_ROW: &str = "max_row";
const SENT_COLUMNS: &str = "sent_columns";
const REVEAL_COUNT: &str = "reveal_count_to_sender";
const SHARDS: &str = "shards";
/// The value of a number that does not apply.
const NONE: &str = "0";

/// A hint for failures on a connection without TLS.
const BOTH_PLAIN: &str = concat!("Were both sides run with ", setting!(insecure_plaintext), "?");
/// Maximum length of a hello in bytes. Ours has about 1200, plus the names of the columns that are sent.
const MAX_HELLO: usize = 1 << 14;

/// A term of the run, which must be the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Term {
    /// Its key for programs, stable across versions: "max_row".
    pub key: &'static str,
    /// Its name in messages: one of our settings ([`crate::spelling`]), or a description.
    pub words: &'static str,
    /// The value requested on our side.
    pub value: String,
}

/// What our side was asked to do. Both sides must have the same, except where [`Spec`] says so, and that each side decides on
/// padding for itself. In a run of several parties all must have the same.
///
/// [`Request::hello`](super::run::Request::hello) makes it from a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hello {
    /// What to compute. Terms that the operation does not use are 0 or "none" on both sides.
    pub spec: Spec,
    /// Whether this is only a check: the agreement and nothing more.
    pub check: bool,
    /// Number of key columns.
    pub key_columns: usize,
    /// How keys are normalised before they are compared, for instance "none".
    pub normalisation: String,
    /// Whether our set is padded, so that its announced size is only an upper bound. Each side decides for itself.
    pub padded: bool,
    /// A filter that was made in advance, if we have it: the receiver its own, the sender that of the receiver. A sender
    /// that has none gets the receiver's.
    pub filter: Option<FilterFacts>,
    /// The job that is resumed: the id of the session that it began in.
    pub job: Option<SessionId>,
    /// Whether workers run the shards of the job ([`crate::sharded::workers`]).
    pub workers: bool,
    /// How fast our side computes, if the receiver is to plan with it ([`crate::planner`]).
    pub speeds: Option<Speeds>,
}

impl Hello {
    /// All terms that must be the same on both sides. This is the only list: a new field of [`Terms`] does not compile
    /// until it is here.
    pub fn terms(&self) -> Vec<Term> {
        let Terms {
            payload: _,
            max_row,
            both,
            modulus,
            min_count,
            malicious_sender,
            reveal_count,
            shared_values: _,
            several: _,
            bare: _,
            // Told by `filter` below, which only one of the parties needs to know before.
            filter: _,
            shards,
        } = self.spec.terms;
        let Spec { operation, ref sent_columns, value_scale, ref parties, .. } = self.spec;
        let list = parties.as_ref().map_or_else(|| "none".into(), |me| hexadecimal(&me.roster().digest()));
        let modulus_bits = if operation.uses.values { modulus.bits() } else { 0 };
        let by = if self.workers { ", run by workers" } else { "" };
        let job = match (shards, &self.job) {
            (0, _) => NONE.into(),
            (_, None) => format!("a new one{by}"),
            (_, Some(session)) => hexadecimal(session.as_bytes()) + by,
        };
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_string();
        let terms = [
            ("operation", "operation", operation.name.into()),
            (
                "purpose",
                concat!("check or run (", command!("check"), ")"),
                if self.check { "check" } else { "run" }.into(),
            ),
            ("parties", concat!("hash of the list of parties (", setting!(parties), ")"), list),
            (
                "output",
                concat!("who gets the result (", setting!(both), ")"),
                if both { "both" } else { "receiver" }.into(),
            ),
            (
                "key_columns",
                concat!("number of key columns (", setting!(key), ")"),
                self.key_columns.to_string(),
            ),
            ("normalisation", "normalisation of keys", self.normalisation.clone()),
            (MAX_ROW, setting!(max_row), max_row.to_string()),
            (
                SENT_COLUMNS,
                concat!("columns sent (", setting!(send_columns), ", ", setting!(receive_columns), ")"),
                listed(sent_columns),
            ),
            ("min_count", setting!(min_count), min_count.to_string()),
            (
                "value_scale",
                concat!("decimal places of the values (", setting!(scale), ")"),
                value_scale.to_string(),
            ),
            (
                "modulus_bits",
                concat!("bits of the sum's modulus (", setting!(modulus), ")"),
                modulus_bits.to_string(),
            ),
            ("malicious_sender", setting!(malicious_sender), yes(malicious_sender)),
            (REVEAL_COUNT, setting!(reveal_count_to_sender), yes(reveal_count)),
            (SHARDS, setting!(shards), shards.to_string()),
            ("job", concat!("the job that goes on (", setting!(resume), ")"), job),
        ];
        terms.into_iter().map(|(key, words, value)| Term { key, words, value }).collect()
    }
}

/// The result of an agreement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreement {
    /// The session's id, which enters every hash. Both sides have the same, and no two sessions share one.
    pub session_id: SessionId,
    /// How the operation is computed.
    pub choice: Choice,
    /// Number of items in the peer's set, at most [`MAX_SET`].
    pub their_size: usize,
    /// Whether the peer's set is padded, so that some items may be dummies.
    pub they_pad: bool,
    /// In share: whether values are shared and not items, as the sender said.
    pub shared_values: bool,
}

/// Agrees with the peer on everything in `hello`, exchanges the sizes of the sets, and chooses one of the candidates.
///
/// Fails with [`Error::Disagreement`] on both sides if they were asked to do different things or allow no common
/// protocol. Nothing about the data has been sent then.
pub fn agree(
    connection: &mut Connection,
    hello: &Hello,
    our_size: usize,
    rng: &mut Prng,
) -> Result<Agreement> {
    let met = meet(connection, hello, our_size, rng)?;
    let their_size = exchange_sizes(&mut connection.channel, our_size)?;
    let choice = first(&mut connection.channel, hello.spec.role, &met)?;
    let (session_id, they_pad) = (met.session_id(choice), met.they_pad);
    Ok(Agreement { session_id, choice, their_size, they_pad, shared_values: met.shared_values })
}

/// What is known after the hellos.
pub(super) struct Met {
    /// The common candidates, in the receiver's order of preference.
    pub common: Choices,
    /// The peer's candidates.
    pub theirs: Choices,
    /// Whether the peer pads its set.
    pub they_pad: bool,
    /// In share: whether values are shared, as the sender decided.
    pub shared_values: bool,
    /// The receiver's filter, if it was made in advance.
    pub filter: Option<(FilterFacts, Agreed)>,
    /// How fast the receiver and the sender compute, as they say.
    pub speeds: [Option<Speeds>; 2],
    /// From our first message to the answer to it.
    pub round_trip: Duration,
    /// Everything that the session id binds, except the choice.
    transcript: blake3::Hasher,
}

impl Met {
    /// The session's id if this choice is made.
    pub(super) fn session_id(&self, choice: Choice) -> SessionId {
        let mut hasher = self.transcript.clone();
        part(&mut hasher, choice.protocol.name.as_bytes());
        part(&mut hasher, choice.group.as_bytes());
        SessionId::of(*hasher.finalize().as_bytes())
    }
}

/// Agrees on everything in `hello`. `our_size` is only checked, not sent.
pub(super) fn meet(
    connection: &mut Connection,
    hello: &Hello,
    our_size: usize,
    rng: &mut Prng,
) -> Result<Met> {
    if our_size > MAX_SET {
        return Err(Error::usage(format!(
            "our set of {our_size} items is more than this version supports ({MAX_SET}). Split it"
        )));
    }
    let ours = WireHello::new(hello, rng.bytes());
    let our_bytes = ours.to_bytes()?;
    let channel = &mut connection.channel;
    let start = Instant::now();

    // 1. Versions: two different ones understand nothing else of each other.
    // Without TLS these are the first bytes that show which protocol the peer speaks.
    versions(channel).map_err(|e| if connection.peer.is_none() { e.and(BOTH_PLAIN) } else { e })?;

    // 2. Hellos.
    // Theirs answers our version, which it waited for.
    let (their_bytes, theirs) = hellos(channel, &our_bytes)?;
    let round_trip = start.elapsed();
    let their_candidates = theirs.candidates()?;
    let speeds = match (hello.spec.role, hello.speeds, theirs.speeds()?) {
        (Role::Receiver, ours, theirs) => [ours, theirs],
        (Role::Sender, ours, theirs) => [theirs, ours],
    };
    let (receiver, sender) = match hello.spec.role {
        Role::Receiver => (&hello.spec.candidates, &their_candidates),
        Role::Sender => (&their_candidates, &hello.spec.candidates),
    };
    let common = receiver.kept(|choice| sender.contains(*choice));
    let differences =
        differences(hello, &theirs, &their_candidates, common.is_none(), hello.spec.role.other())?;
    let Some(common) = common.filter(|_| differences.is_empty()) else {
        return Err(Error::Disagreement(differences));
    };

    // 3. The session id. The roles are opposite, so both sides put the receiver first.
    let us = Side { hello: &our_bytes, fingerprint: connection.our };
    let peer = Side { hello: &their_bytes, fingerprint: connection.peer };
    let transcript = match hello.spec.role {
        Role::Receiver => transcript(&us, &peer, &connection.exporter),
        Role::Sender => transcript(&peer, &us, &connection.exporter),
    };
    if theirs.shared_values && !(hello.spec.operation.uses.shares && hello.spec.role == Role::Receiver) {
        return Err(Error::misbehaves(
            "its hello has values to be shared, which only the sender of share has",
        ));
    }
    let shared_values = hello.spec.terms.shared_values || theirs.shared_values;
    let filter = filter(connection, hello, &theirs, receiver)?;
    let they_pad = theirs.padded;
    let theirs = their_candidates;
    Ok(Met { common, theirs, they_pad, shared_values, filter, speeds, round_trip, transcript })
}

/// The receiver's filter, if it was made in advance. Its candidates are then those that can use it.
fn filter(
    connection: &Connection,
    hello: &Hello,
    theirs: &WireHello,
    candidates: &Choices,
) -> Result<Option<(FilterFacts, Agreed)>> {
    let theirs = theirs.filter()?;
    let (receiver, sender, fingerprint) = match hello.spec.role {
        Role::Receiver => (&hello.filter, &theirs, connection.our),
        Role::Sender => (&theirs, &hello.filter, connection.peer),
    };
    // A filter of the sender alone is a difference, and was refused.
    let Some(facts) = receiver else { return Ok(None) };
    let Choice { protocol, group } = candidates.first;
    let offer = protocol.offer(hello.spec.operation).filter(|_| candidates.others.is_empty());
    let uses = offer.is_some_and(|offer| offer.filters);
    let filter = facts.filter().map_err(|what| Error::misbehaves(format!("its hello has {what}")))?;
    match fingerprint {
        Some(fingerprint) if uses => {
            let keys = (&*hello.normalisation, hello.key_columns);
            let purpose = Head::of_facts((fingerprint, group), keys, facts).purpose();
            let contents = Some(Contents { purpose, digest: facts.digest });
            let owner = Some(owner(&fingerprint));
            Ok(Some((facts.clone(), Agreed { filter, owner, contents, held: sender.is_some() })))
        }
        None if uses => Err(Error::usage(format!(
            "a filter that was made in advance is bound to the identity of its owner, and this run has no TLS. Omit \
             {FILTER}, or {INSECURE_PLAINTEXT}"
        ))),
        _ => Err(Error::misbehaves("its hello has a filter and a protocol that uses none")),
    }
}

/// Exchanges the hellos. Returns the other one as it came, and as it reads.
pub(super) fn hellos(channel: &mut Channel, ours: &[u8]) -> Result<(Vec<u8>, WireHello)> {
    channel.tx.send_bytes(HELLO, ours)?;
    let bytes = channel.rx.recv_bounded(HELLO, MAX_HELLO)?;
    let theirs = WireHello::from_bytes(&bytes)?;
    Ok((bytes, theirs))
}

/// Sends our size, the first fact about our data, and returns the peer's.
pub(super) fn exchange_sizes(channel: &mut Channel, our_size: usize) -> Result<usize> {
    channel.tx.send(SIZE, &[our_size as u64])?;
    let their_size = channel.rx.recv(SIZE, 1)?[0];
    match usize::try_from(their_size) {
        Ok(their_size) if their_size <= MAX_SET => Ok(their_size),
        _ => {
            let what = format!(
                "its set of {their_size} items is more than this version supports ({MAX_SET}). Ask that party to split \
                 it"
            );
            Err(Error::peer(Fault::Misbehaved, what))
        }
    }
}

/// Makes a session id on the caller's channel, for running a protocol of this library without [`agree`]. Each side
/// sends 32 random bytes, and the id is a hash of both, the receiver's first. The id does not bind the peer's identity
/// or its request; that is up to the caller.
///
/// If we run two sessions with one peer at once, in opposite roles, the peer can reflect our nonces and give both
/// sessions the same id. Keys are fresh in every run, so only domain separation is lost. [`agree`] is not affected: it
/// also hashes a secret of the TLS connection.
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

/// Tells the peer that our side allows the run, and waits until the peer allows it too. No further message about the
/// data is sent before that.
pub(super) fn go(channel: &mut Channel) -> Result<()> {
    channel.tx.send_bytes(GO, &[])?;
    channel.rx.recv_bytes(GO, 0)?;
    Ok(())
}

/// Tells the peer how many milliseconds of work our side expects, and returns the peer's number.
pub(super) fn predict(channel: &mut Channel, ours: u64) -> Result<u64> {
    channel.tx.send(PREDICTION, &[ours])?;
    Ok(channel.rx.recv(PREDICTION, 1)?.first().copied().unwrap_or(0))
}

/// A hello as it is sent. Terms are sent as text, as they are displayed: they are only compared for equality.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireHello {
    role: String,
    pub(super) padded: bool,
    /// In share, of the sender: whether it shares values and not items.
    shared_values: bool,
    /// Pairs of a protocol's and a group's name.
    candidates: Vec<(String, String)>,
    /// Keys and values.
    terms: Vec<(String, String)>,
    /// Digest in 64 hexadecimal digits, capacity, and queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<(String, u64, u64)>,
    /// Threads, and pairs of a primitive's name and picoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speeds: Option<(u64, Vec<(String, u64)>)>,
    /// 64 hexadecimal digits.
    nonce: String,
}

impl WireHello {
    pub(super) fn new(hello: &Hello, nonce: [u8; 32]) -> WireHello {
        let name = |choice: Choice| (choice.protocol.name.into(), choice.group.into());
        WireHello {
            role: hello.spec.role.name().into(),
            padded: hello.padded,
            shared_values: hello.spec.terms.shared_values,
            candidates: hello.spec.candidates.iter().map(name).collect(),
            terms: hello.terms().into_iter().map(|term| (term.key.into(), term.value)).collect(),
            filter: hello
                .filter
                .as_ref()
                .map(|facts| (hexadecimal(&facts.digest), facts.capacity as u64, facts.queries as u64)),
            speeds: hello.speeds.as_ref().map(|speeds| (speeds.threads as u64, speeds.named().collect())),
            nonce: hexadecimal(&nonce),
        }
    }

    /// The speeds that it tells. Primitives that this version does not know are ignored.
    fn speeds(&self) -> Result<Option<Speeds>> {
        let Some((threads, times)) = &self.speeds else { return Ok(None) };
        let wrong =
            |what: String| Error::misbehaves(format!("its hello has speeds that no machine has: {what}"));
        let threads = usize::try_from(*threads).unwrap_or(usize::MAX);
        Speeds::of_named(times, threads).map(Some).map_err(wrong)
    }

    /// Its candidates: at least one, each a known protocol over one of its groups, without repetition. So their number
    /// is bounded.
    pub(super) fn candidates(&self) -> Result<Choices> {
        let mut all = Vec::new();
        for (protocol, group) in &self.candidates {
            let choice = Choice::named(protocol, group).map_err(|_| {
                let (protocol, group) = (shown(protocol), shown(group));
                Error::misbehaves(format!(
                    "its hello has the candidate \"{protocol}\" over \"{group}\", which this version does not know"
                ))
            })?;
            if all.contains(&choice) {
                return Err(Error::misbehaves(format!("its hello has the candidate {choice} twice")));
            }
            all.push(choice);
        }
        match all.split_first() {
            Some((first, others)) => Ok(Choices { first: *first, others: others.to_vec() }),
            None => Err(Error::misbehaves("its hello has no candidates")),
        }
    }

    /// The filter that it names.
    fn filter(&self) -> Result<Option<FilterFacts>> {
        let Some((digest, capacity, queries)) = &self.filter else { return Ok(None) };
        let digest = blake3::Hash::from_hex(digest);
        let digest = digest.map_err(|_| Error::misbehaves("its hello has a filter without a digest"))?;
        let [capacity, queries] = [capacity, queries].map(|n| usize::try_from(*n).unwrap_or(usize::MAX));
        Ok(Some(FilterFacts { digest: *digest.as_bytes(), capacity, queries }))
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let bytes = serde_json::to_vec(self).map_err(|e| Error::bug(format!("a hello is not JSON: {e}")))?;
        match bytes.len() <= MAX_HELLO {
            true => Ok(bytes),
            false => Err(Error::Usage(
                "the names of the columns to be sent are too long for the agreement. Send fewer columns, or \
                 rename them in the file"
                    .into(),
            )),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<WireHello> {
        let wrong =
            |what: &str| Error::misbehaves(format!("its hello does not fit this version ({})", shown(what)));
        let wire: WireHello = serde_json::from_slice(bytes).map_err(|e| wrong(&e.to_string()))?;
        let digits = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        match wire.nonce.len() == 64 && wire.nonce.bytes().all(digits) {
            true => Ok(wire),
            false => Err(wrong("the nonce is not 64 hexadecimal digits")),
        }
    }
}

/// The terms in which the two hellos differ but must not. `role` is the one that the other party must have.
pub(super) fn differences(
    ours: &Hello,
    theirs: &WireHello,
    their_candidates: &Choices,
    nothing_common: bool,
    role: Role,
) -> Result<Vec<Difference>> {
    let who = Seat::PEER;
    let mut differences = Vec::new();
    // In a run of several the role follows from the list.
    if theirs.role != role.name() && ours.spec.parties.is_none() {
        differences.push(Difference::new(
            who,
            "role",
            setting!(role),
            ours.spec.role.name().into(),
            format!("{} (one side must be the receiver, the other the sender)", shown(&theirs.role)),
        ));
    }
    let terms = ours.terms();
    let same_keys = terms.iter().map(|term| term.key).eq(theirs.terms.iter().map(|(key, _)| key.as_str()));
    if !same_keys {
        return Err(Error::misbehaves("its hello does not have the terms of this version"));
    }
    let differ = |key: &str| {
        let found = terms.iter().zip(&theirs.terms).find(|(term, _)| term.key == key);
        found.is_some_and(|(term, (_, value))| term.value != *value)
    };
    // A difference that only follows from another would name options that nobody typed.
    let operation = differ("operation");
    for (term, (_, theirs)) in terms.iter().zip(&theirs.terms) {
        let of_one = term.value == NONE || theirs == NONE;
        // Where one side has no rows, or no job.
        let lacks = match term.key {
            MAX_ROW => of_one && differ(SENT_COLUMNS),
            "job" => of_one && differ(SHARDS),
            _ => false,
        };
        let follows = lacks || operation && OF_OPERATION.contains(&term.key);
        if term.value != *theirs && !follows {
            let Term { key, words, value } = term.clone();
            differences.push(Difference::new(who, key, words, value, shown(theirs)));
        }
    }
    // A protocol either tells the sender the count or does not, so no list has one for both.
    if nothing_common && !operation && !differ(REVEAL_COUNT) {
        let list = |all: &Choices| all.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ");
        let grouped = |choice: Choice| choice.group != choice.protocol.group();
        let what = match ours.spec.candidates.iter().chain(their_candidates.iter()).any(grouped) {
            true => concat!(setting!(protocol), " and ", setting!(group)),
            false => setting!(protocol),
        };
        let (ours, theirs) = (list(&ours.spec.candidates), list(their_candidates));
        differences.push(Difference::new(who, "protocol", what, ours, theirs));
    }
    let filter = theirs.filter()?;
    if ours.spec.parties.is_some() && filter.is_some() {
        return Err(Error::misbehaves("its hello has a filter, in a run of several parties"));
    }
    let (receiver, sender) =
        if ours.spec.role == Role::Receiver { (&ours.filter, &filter) } else { (&filter, &ours.filter) };
    if sender.is_some() && sender != receiver && differences.is_empty() {
        let words =
            |facts: &Option<FilterFacts>| facts.as_ref().map_or("none".into(), FilterFacts::to_string);
        let (ours, theirs) = (words(&ours.filter), words(&filter));
        let what = concat!("the receiver's filter (", setting!(filter), ")");
        differences.push(Difference::new(who, "filter", what, ours, theirs));
    }
    if differences.is_empty() && theirs.role != role.name() {
        return Err(Error::misbehaves("its role is not that of its place in the list of parties"));
    }
    Ok(differences)
}

fn hexadecimal(bytes: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*bytes).to_hex().to_string()
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", "),
    }
}

struct Side<'a> {
    /// The bytes exactly as sent.
    hello: &'a [u8],
    fingerprint: Option<Fingerprint>,
}

/// BLAKE3 over everything that identifies this session, before the choice. Each part is prefixed with its length, so
/// that no two different sessions give the same input.
fn transcript(receiver: &Side<'_>, sender: &Side<'_>, exporter: &[u8; 32]) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_derive_key("veilset 2026-11 session id");
    part(&mut hasher, &PROTOCOL_VERSION.to_le_bytes());
    for party in [receiver, sender] {
        part(&mut hasher, party.hello);
        part(&mut hasher, party.fingerprint.as_ref().map_or(&[], |f| &f.as_bytes()[..]));
    }
    part(&mut hasher, exporter);
    hasher
}

pub(super) fn part(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
