//! The messages that the parties exchange before the protocol runs, and the terms that must be the same in them.
//! `handshake.rs` describes their order.

use super::Spec;
use crate::artefact::filter::FilterFacts;
use crate::channel::{Channel, Message, PROTOCOL_VERSION};
use crate::error::{Difference, Error, Fault, Result, Seat, shown};
use crate::hash::SessionId;
use crate::json;
use crate::net::has_list;
use crate::operations::{Role, Terms};
use crate::params::MAX_SET;
use crate::planner::Choices;
use crate::protocols::Choice;
use crate::rng::Prng;
use crate::speed::Speeds;
use crate::spelling::{command, setting};
use serde::{Deserialize, Serialize};

const HELLO: Message<[u8]> = Message::new(2, "hello: JSON");
const SIZE: Message<u64> = Message::new(3, "size of the set");
const GO: Message<[u8]> = Message::new(8, "go: the run is allowed");
const NONCE: Message<[u8; 32]> = Message::new(10, "nonce for the session id");
const PREDICTION: Message<u64> = Message::new(9, "milliseconds of work, as one side expects");

/// The terms that may differ merely because the operations differ. In that case they are not reported.
const OF_OPERATION: [&str; 6] =
    [MAX_ROW, "min_count", "value_scale", "modulus_bits", "malicious_sender", REVEAL_COUNT];
const MAX_ROW: &str = "max_row";
const SENT_COLUMNS: &str = "sent_columns";
const REVEAL_COUNT: &str = "reveal_count_to_sender";
const SHARDS: &str = "shards";
/// The value of a number that does not apply.
const NONE: &str = "0";

/// Maximum length of a hello in bytes. Ours has about 1200 bytes, plus the names of the columns that are sent.
const MAX_HELLO: usize = 1 << 14;

/// A term of the run, which must be the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Term {
    /// Its key for programs, stable across versions: "max_row".
    pub key: &'static str,
    /// Its name in messages to users: one of our settings ([`crate::spelling`]), or a description.
    pub words: &'static str,
    /// Our side's value.
    pub value: String,
}

/// The request of our side, as it is compared with the requests of the other parties. All must have the same values, except
/// where [`Spec`] or the description of a field states otherwise.
///
/// [`Request::hello`](super::run::Request::hello) makes it from a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hello {
    /// The computation. Terms that the operation does not use are 0 or "none" on all sides.
    pub spec: Spec,
    /// Whether this is only a check, which ends after the agreement.
    pub check: bool,
    /// Number of key columns.
    pub key_columns: usize,
    /// How keys are normalised before they are compared: "none", for instance.
    pub normalisation: String,
    /// Whether our set is padded, so that its announced size is only an upper bound. Each side decides this for itself.
    pub padded: bool,
    /// The receiver's filter, if it was made in advance and our side has it: as the receiver, our own; as the sender, the
    /// public part of the receiver's. A sender may lack it. In a [`Proposal`](super::Proposal) it is the receiver's filter in
    /// either case.
    pub filter: Option<FilterFacts>,
    /// The id of the session in which the job began, if a job is resumed.
    pub job: Option<SessionId>,
    /// Whether workers run the shards of the job ([`crate::sharded::workers`]).
    pub workers: bool,
    /// The speed of our side, if our side plans ([`crate::planner`]). The receiver plans if it states its own speed, whether
    /// or not the sender does.
    pub speeds: Option<Speeds>,
}

impl Hello {
    /// Returns all terms that must be the same on all sides. This is the only list of them: a new field of [`Terms`] does not
    /// compile until it is handled here.
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
            // Follows from [`Hello::filter`], which is compared separately because a sender may lack it.
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

/// The contents of another party's hello.
pub(super) struct Told {
    /// The hello as it arrived.
    pub(super) said: Vec<u8>,
    /// The hello, decoded.
    pub(super) hello: WireHello,
    pub(super) candidates: Choices,
    pub(super) speeds: Option<Speeds>,
    pub(super) filter: Option<FilterFacts>,
}

/// Exchanges hellos with another party.
pub(super) fn hellos(channel: &mut Channel, ours: &[u8]) -> Result<Told> {
    channel.tx.send_bytes(HELLO, ours)?;
    let said = channel.rx.recv_bounded(HELLO, MAX_HELLO).map_err(|error| has_list(channel, error))?;
    let hello = WireHello::from_bytes(&said)?;
    let (candidates, speeds, filter) = (hello.candidates()?, hello.speeds()?, hello.filter()?);
    Ok(Told { said, hello, candidates, speeds, filter })
}

/// Sends our announced size and returns the peer's. Refuses a size that this version does not support.
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

/// Makes a session id over the caller's channel, for running a protocol of this library without an agreement. Each side sends
/// 32 random bytes, and the id is a hash of both, the receiver's first. The id binds neither the peer's identity nor its
/// request; that is up to the caller.
///
/// If we run two sessions with one peer at once, in opposite roles, the peer can reflect our nonces and give both sessions
/// the same id. Keys are fresh in every run, so only domain separation is lost. Sessions that are agreed on over TLS are not
/// affected, because their ids are also hashes of a secret of the connection.
///
/// # Errors
/// The errors of the channel.
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

/// Tells the peer that our side allows the run, and waits until the peer allows it too. Until then, nothing else about the
/// data is sent.
pub(super) fn go(channel: &mut Channel) -> Result<()> {
    channel.tx.send_bytes(GO, &[])?;
    channel.rx.recv_bytes(GO, 0)?;
    Ok(())
}

/// Tells the peer how many milliseconds our side expects to compute, and returns the peer's number.
pub(super) fn predict(channel: &mut Channel, ours: u64) -> Result<u64> {
    channel.tx.send(PREDICTION, &[ours])?;
    Ok(channel.rx.recv(PREDICTION, 1)?.first().copied().unwrap_or(0))
}

/// A hello as it is sent. Terms are sent as the texts that are shown to users, since they are only compared for equality.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireHello {
    role: String,
    pub(super) padded: bool,
    /// In a hello of the sender of share: whether it shares values instead of items.
    pub(super) shared_values: bool,
    /// The candidates: pairs of the names of a protocol and a group.
    candidates: Vec<(String, String)>,
    /// The terms: pairs of key and value.
    terms: Vec<(String, String)>,
    /// The filter: its digest in 64 hexadecimal digits, its capacity, and the largest number of queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<(String, u64, u64)>,
    /// The speeds: the number of threads, and pairs of a primitive's name and its picoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speeds: Option<(u64, Vec<(String, u64)>)>,
    /// A nonce in 64 hexadecimal digits.
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

    /// Returns the speeds that the hello states. Ignores primitives that this version does not know.
    fn speeds(&self) -> Result<Option<Speeds>> {
        let Some((threads, times)) = &self.speeds else { return Ok(None) };
        let wrong =
            |what: String| Error::misbehaves(format!("its hello has speeds that no machine has: {what}"));
        let threads = usize::try_from(*threads).unwrap_or(usize::MAX);
        Speeds::of_named(times, threads).map(Some).map_err(wrong)
    }

    /// Returns the candidates of the hello: at least one, each a known protocol in one of its groups, without repetition. So
    /// their number is bounded.
    fn candidates(&self) -> Result<Choices> {
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

    /// Returns the facts about the filter that the hello names.
    fn filter(&self) -> Result<Option<FilterFacts>> {
        let Some((digest, capacity, queries)) = &self.filter else { return Ok(None) };
        let digest = blake3::Hash::from_hex(digest);
        let digest = digest.map_err(|_| Error::misbehaves("its hello has a filter without a digest"))?;
        let [capacity, queries] = [capacity, queries].map(|n| usize::try_from(*n).unwrap_or(usize::MAX));
        Ok(Some(FilterFacts { digest: *digest.as_bytes(), capacity, queries }))
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let bytes = json::made("a hello", serde_json::to_vec(self))?;
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

/// Returns the terms that must be the same but differ between our hello and the hello of the party at this seat. A hello that
/// no party of this version sends is an error.
pub(super) fn differences(ours: &Hello, theirs: &Told, who: Seat) -> Result<Vec<Difference>> {
    let Told { hello: theirs, candidates: their_candidates, filter, .. } = theirs;
    let nothing_common = !ours.spec.candidates.iter().any(|choice| their_candidates.contains(choice));
    let role = ours.spec.role_of(who);
    let mut differences = Vec::new();
    // If there is a list of parties, the role follows from it.
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
    // A difference that only follows from another one would name options that the user did not type.
    let operation = differ("operation");
    for (term, (_, theirs)) in terms.iter().zip(&theirs.terms) {
        let of_one = term.value == NONE || theirs == NONE;
        // One side has no rows, or does not cut its run into shards.
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
    // A protocol reveals the count to the sender either always or never, so sides that differ in this have no common
    // protocol.
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
    if ours.spec.several() && filter.is_some() {
        return Err(Error::misbehaves("its hello has a filter, in a run of several parties"));
    }
    let (receiver, sender) =
        if ours.spec.role == Role::Receiver { (&ours.filter, filter) } else { (filter, &ours.filter) };
    if sender.is_some() && sender != receiver && differences.is_empty() {
        let words =
            |facts: &Option<FilterFacts>| facts.as_ref().map_or("none".into(), FilterFacts::to_string);
        let (ours, theirs) = (words(&ours.filter), words(filter));
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

pub(super) fn part(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
