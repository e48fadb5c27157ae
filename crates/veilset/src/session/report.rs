//! The report of a run, for people and as JSON with stable names.

use super::run::{Request, RunOutcome};
use super::words::Learning;
use super::{Parties, Party, Spec, Term};
use crate::channel::{MessageBytes, StageTime};
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::json;
use crate::net::Fingerprint;
use crate::operations::share::Beside;
use crate::operations::{self, Fact, Learned, Role, Shape};
use crate::params::LAMBDA;
use crate::spelling::{plain, setting};
use crate::table::Duplicates;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroU8;
use std::time::{SystemTime, UNIX_EPOCH};

/// The report of a run. The names of its fields in JSON are stable. In a run of two, the peer's fields are `peer` and
/// `peer_name`, and within `sizes` also `peer` and `peer_padded`. In a larger run, there is a list `parties` instead.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// When the run began, by this machine's clock: RFC 3339, UTC.
    pub time: String,
    /// The session's id, which is the same for all parties and in the audit logs; for a resumed job, the id of the session in
    /// which it began.
    pub session: String,
    /// The name of the operation.
    pub operation: &'static str,
    /// The protocol that computed it.
    pub protocol: &'static str,
    /// The group in which the protocol worked.
    pub group: &'static str,
    /// The reason for this protocol, if it was chosen among several; `None` if it was the only one.
    pub picked: Option<String>,
    /// Our role.
    pub role: &'static str,
    /// The sizes of our set.
    pub sizes: Sizes,
    /// Whether work of the protocol was done in advance on our side: a prepared half, or as the receiver a filter.
    pub prepared: bool,
    /// The number of shards of a job, at least 2; 0 for a run in one piece.
    pub shards: u32,
    /// Whether both parties get the result.
    pub both: bool,
    /// The columns that are sent with the sender's items, under the sender's names.
    pub sent_columns: Vec<String>,
    /// The names of our key columns; empty unless the front end added them.
    pub key_columns: Vec<String>,
    /// The terms that all parties agreed on, as in the audit log.
    pub terms: Vec<Term>,
    /// Rows of our table that were left out.
    pub left_out: LeftOut,
    /// The numbers that this party learned.
    pub result: Numbers,
    /// Seconds that the run took, from the start of the agreement until our result was opened.
    pub seconds: f64,
    /// Bytes on the wire, including TLS and its handshake, but not the bytes that workers exchange.
    pub bytes: Bytes,
    /// The time of each stage, ordered by the first start of each. The times of a stage that occurs several times are added
    /// up. There are no gaps between stages. In a job of workers, the stages of their runs are not included.
    pub stages: Vec<StageTime>,
    /// The bytes of each message, over all connections of the run. The last entry is for everything else, so that all entries
    /// add up to `bytes`. That entry is missing if the transport does not count bytes, like one within a program.
    pub messages: Vec<MessageBytes>,
    /// Sentences that state what each party learned.
    pub learned: Vec<String>,
    /// Sentences about rows that were left out or merged, and about keys that a result has in their normalised spelling.
    /// Numbers are only given for our own rows.
    pub notes: Vec<String>,
    /// The assumptions that the security rests on.
    pub assumptions: Vec<&'static str>,
    /// An upper bound on the probability of a wrong result.
    pub failure_bound: String,
    /// Our fingerprint; `None` on an unprotected connection.
    pub our: Option<Fingerprint>,
    /// The other parties, and their announcements.
    pub parties: Parties,
    /// The name of our input: a file name, or `-` for standard input. `None` unless the front end added it.
    pub input: Option<String>,
    /// The destination of our result: a file name, or `-` if there is no file. `None` if we have no result, or the front end
    /// did not add it.
    pub output: Option<String>,
    /// veilset's version.
    pub version: &'static str,
    /// The result in one line.
    summary: String,
    hint: Option<&'static str>,
    shape: Shape,
    /// Whether the receiver gets items of others.
    new_items: bool,
}

/// The sizes of our set: actual and announced.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sizes {
    /// The number of items.
    pub ours: usize,
    /// The size that the other parties were told. If our set is padded, this is the size to which it is padded.
    pub announced: usize,
}

/// The numbers of rows of our table that did not become items of their own.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Rows that repeat a key, unless the result has them all. They were left out, or their values were added to the first
    /// row's.
    pub duplicates: u64,
    /// Rows with an empty key.
    pub skipped: u64,
}

/// Bytes in both directions.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Bytes {
    /// Bytes sent to all other parties together.
    pub sent: u64,
    /// Bytes received from all other parties together.
    pub received: u64,
}

/// The numbers that this party learned. A number that it did not learn is absent.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Numbers {
    /// The number of items in the sets of all parties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<usize>,
    /// The number of items in at least one of the sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub union_size: Option<usize>,
    /// The sum, with exactly the agreed number of decimal places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Box<RawValue>>,
    /// For the sender of sum: whether there were fewer matches than the agreed minimum, so that the count and the sum were
    /// withheld.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_minimum: Option<bool>,
}

impl Report {
    /// Makes the report of a run of `request`, given its outcome and its duration in seconds. The facts about our table are
    /// missing; [`Data::complete`](crate::party::Data::complete) adds them.
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn new(request: &Request, outcome: &RunOutcome, seconds: f64) -> Result<Report> {
        let result = numbers(request, outcome)?;
        let Spec { operation, role, ref sent_columns, .. } = request.spec;
        let terms = request.spec.agreed_terms();
        let mut report = Report {
            time: rfc3339(outcome.began),
            session: name_of(&outcome.session_id),
            operation: operation.name,
            protocol: outcome.choice.protocol.name,
            group: outcome.choice.group,
            picked: outcome.why.clone(),
            role: role.name(),
            sizes: Sizes { ours: request.input.set.len(), announced: request.announced() },
            prepared: outcome.prepared,
            shards: terms.shards,
            both: terms.both,
            sent_columns: sent_columns.clone(),
            key_columns: Vec::new(),
            terms: outcome.terms.clone(),
            left_out: LeftOut::default(),
            notes: Vec::new(),
            our: outcome.our,
            learned: sentences(request, outcome, &result),
            summary: summary(request, outcome, &result),
            hint: hint(request, outcome, &result),
            result,
            seconds,
            bytes: Bytes { sent: outcome.bytes.0, received: outcome.bytes.1 },
            stages: outcome.stages.clone(),
            messages: all_bytes(outcome),
            assumptions: outcome.choice.protocol.assumes(operation, &terms, outcome.choice.group),
            failure_bound: format!("2^-{LAMBDA}"),
            parties: outcome.parties.clone(),
            input: None,
            output: None,
            version: env!("CARGO_PKG_VERSION"),
            shape: (operation.result)(role, &terms),
            new_items: (operation.learns)(Role::Receiver, &terms).contains(&Fact::NewItems),
        };
        report.leave_out(LeftOut::default(), Duplicates::First);
        Ok(report)
    }

    /// Records which rows of our table did not become items of their own, and how rows that repeat a key were treated.
    pub(crate) fn leave_out(&mut self, left_out: LeftOut, treated: Duplicates) {
        self.left_out = left_out;
        self.notes = self.losses(treated);
    }

    /// Returns the notes: which rows were left out or merged, and which keys a result has in their normalised spelling. They
    /// state only numbers of our own rows, because no party learns such numbers of others.
    fn losses(&self, treated: Duplicates) -> Vec<String> {
        let &LeftOut { duplicates: repeated, skipped } = &self.left_out;
        let sends = !self.sent_columns.is_empty();
        let receives = self.role == Role::Receiver.name();
        let mut all = Vec::new();
        if repeated > 0 {
            let what = match (treated, self.shape) {
                (Duplicates::Add, _) => "their values were added to those of the first row of each key",
                (_, Shape::OwnRows | Shape::AllRows) => "the result has only the first row of each key",
                (_, Shape::Items) => "the result has each key once",
                _ => "each key counts once, with its first row",
            };
            let repeat = if repeated == 1 { "repeats" } else { "repeat" };
            let sent = if sends && !receives { "; the columns of only that row were sent" } else { "" };
            all.push(format!("{repeated} of our rows {repeat} a key: {what}{sent}."));
        }
        if skipped > 0 {
            let (have, take) = if skipped == 1 { ("has", "takes") } else { ("have", "take") };
            all.push(format!("{skipped} of our rows {have} an empty key and {take} no part."));
        }
        if sends && receives {
            all.push(
                "Of the sender's rows that repeat a key, only the first is sent. Only the sender learns how many it has."
                    .into(),
            );
        }
        let normalised = self.terms.iter().find(|term| term.key == "normalisation");
        // A normalisation that changes keys lists its steps after the encoding, separated by commas.
        let normalised = normalised.filter(|term| term.value.contains(", "));
        if let (Some(Term { value, .. }), true) = (normalised, self.new_items) {
            let (others, leader) = match self.parties.count() {
                1 => ("the other party", "receiver"),
                _ => ("the other parties", "leader"),
            };
            let spelling = format!("in the spelling in which they were compared ({value})");
            match self.shape {
                Shape::Items => all.push(format!("All keys of the result are {spelling}.")),
                Shape::AllRows => all.push(format!("New keys are {spelling}, and not in that of {others}.")),
                _ => {}
            }
            if !receives || self.both {
                let who = if receives { "sender" } else { leader };
                all.push(format!("The {who} gets our keys {spelling}, and not in ours."));
            }
        }
        all
    }

    /// Returns the result in one line.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns the reason for this protocol, in words.
    pub fn why(&self) -> &str {
        self.picked.as_deref().unwrap_or("the only one that all parties allow")
    }

    /// Returns the report as pretty-printed JSON: one object.
    pub fn to_json(&self) -> Result<String> {
        json::made("a report", serde_json::to_string_pretty(self))
    }

    /// Returns the report as a few lines for people; the first line states the result.
    pub fn to_text(&self) -> String {
        plain(&self.marked_text())
    }

    /// Returns [`Report::to_text`] with marks around the names of settings, for front ends ([`crate::spelling`]).
    #[cfg_attr(not(feature = "unstable"), doc(hidden))]
    pub fn marked_text(&self) -> String {
        let side = |party: &Party| format!("{} on {party}'s side", party.announced.size);
        let theirs: Vec<String> = self.parties.iter().map(side).collect();
        let mut text = format!(
            "{}\n  {} as {}, protocol {} over {}: {} items here, {}\n",
            self.summary,
            self.operation,
            self.role,
            self.protocol,
            self.group,
            self.sizes.ours,
            theirs.join(", ")
        );
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}: {}", self.protocol, self.why());
        for sentence in self.learned.iter().chain(&self.notes) {
            let _ = writeln!(text, "  {sentence}");
        }
        let prepared = if self.prepared { " with a prepared offline half" } else { "" };
        let shards = if self.shards > 0 { format!(" in {} shards", self.shards) } else { String::new() };
        let _ = writeln!(
            text,
            "  {:.1} seconds{prepared}{shards}, {} bytes sent, {} received; a wrong result has probability at most {}",
            self.seconds, self.bytes.sent, self.bytes.received, self.failure_bound
        );
        if let Some(hint) = self.hint {
            let _ = writeln!(text, "  {hint}");
        }
        text
    }
}

/// A new field of the report does not compile until it is handled here.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Report {
            time,
            session,
            operation,
            protocol,
            group,
            picked,
            role,
            sizes,
            prepared,
            shards,
            both,
            sent_columns,
            key_columns,
            terms,
            left_out,
            result,
            seconds,
            bytes,
            stages,
            messages,
            learned,
            notes,
            assumptions,
            failure_bound,
            our,
            parties,
            input,
            output,
            version,
            summary: _,
            hint: _,
            shape: _,
            new_items: _,
        } = self;
        let parties: Vec<PartyFields<'_>> = parties.iter().map(PartyFields::of).collect();
        // In a run of two, the peer has no number.
        let peer = parties.iter().find(|party| party.party.is_none());
        let mut to = to.serialize_struct("Report", 30)?;
        to.serialize_field("time", time)?;
        to.serialize_field("session", session)?;
        to.serialize_field("operation", operation)?;
        to.serialize_field("protocol", protocol)?;
        to.serialize_field("group", group)?;
        to.serialize_field("picked", &picked.as_deref().map(plain))?;
        to.serialize_field("role", role)?;
        to.serialize_field("sizes", &SizeFields::of(*sizes, peer))?;
        to.serialize_field("prepared", prepared)?;
        to.serialize_field("shards", shards)?;
        to.serialize_field("both", both)?;
        to.serialize_field("sent_columns", sent_columns)?;
        to.serialize_field("key_columns", key_columns)?;
        let terms: BTreeMap<_, _> = terms.iter().map(|term| (term.key, &term.value)).collect();
        to.serialize_field("terms", &terms)?;
        to.serialize_field("left_out", left_out)?;
        to.serialize_field("result", result)?;
        to.serialize_field("seconds", seconds)?;
        to.serialize_field("bytes", bytes)?;
        let stages: Vec<_> =
            stages.iter().map(|stage| StageFields { name: stage.name, seconds: stage.seconds }).collect();
        to.serialize_field("stages", &stages)?;
        let of_message =
            |m: &MessageBytes| MessageFields { name: m.name, sent: m.sent, received: m.received };
        to.serialize_field("messages", &messages.iter().map(of_message).collect::<Vec<_>>())?;
        to.serialize_field("learned", &plain_all(learned))?;
        to.serialize_field("notes", &plain_all(notes))?;
        to.serialize_field("assumptions", assumptions)?;
        to.serialize_field("failure_bound", failure_bound)?;
        to.serialize_field("our", &our.map(|our| our.to_string()))?;
        match peer {
            Some(PartyFields { peer, peer_name, .. }) => {
                to.serialize_field("peer", peer)?;
                to.serialize_field("peer_name", peer_name)?;
            }
            None => to.serialize_field("parties", &parties)?,
        }
        to.serialize_field("input", input)?;
        to.serialize_field("output", output)?;
        to.serialize_field("version", version)?;
        to.end()
    }
}

/// Returns these sentences without marks, for JSON.
fn plain_all(sentences: &[String]) -> Vec<String> {
    sentences.iter().map(|sentence| plain(sentence)).collect()
}

/// The sizes as they are in JSON.
#[derive(Serialize)]
struct SizeFields {
    ours: usize,
    announced: usize,
    /// The size of the peer's set, in a run of two; an upper bound if that set is padded.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<usize>,
    /// Whether the peer's set is padded, in a run of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_padded: Option<bool>,
}

impl SizeFields {
    fn of(Sizes { ours, announced }: Sizes, peer: Option<&PartyFields<'_>>) -> SizeFields {
        let (peer, peer_padded) = (peer.map(|peer| peer.items), peer.map(|peer| peer.padded));
        SizeFields { ours, announced, peer, peer_padded }
    }
}

/// Another party as it is in JSON.
#[derive(Serialize)]
struct PartyFields<'a> {
    /// Its number, in a run of three or more parties.
    party: Option<NonZeroU8>,
    /// Its fingerprint; `None` on an unprotected connection.
    peer: Option<String>,
    /// Its name: from the list of parties, if there is a list; otherwise our own name for it, if any.
    peer_name: Option<&'a str>,
    /// The size of its set; an upper bound if the set is padded.
    items: usize,
    /// Whether its set is padded.
    padded: bool,
}

impl PartyFields<'_> {
    fn of(party: &Party) -> PartyFields<'_> {
        PartyFields {
            party: party.seat.number(),
            peer: party.fingerprint.map(|fingerprint| fingerprint.to_string()),
            peer_name: party.name.as_deref(),
            items: party.announced.size,
            padded: party.announced.padded,
        }
    }
}

#[derive(Serialize)]
struct StageFields {
    name: &'static str,
    seconds: f64,
}

#[derive(Serialize)]
struct MessageFields {
    name: &'static str,
    sent: u64,
    received: u64,
}

/// The name of the entry for bytes that belong to no message.
const EVERYTHING_ELSE: &str = "everything else: TLS and its handshake, heartbeats";

/// Returns the bytes of all messages, and the bytes that belong to none, if the transport counts bytes.
fn all_bytes(outcome: &RunOutcome) -> Vec<MessageBytes> {
    let mut all = outcome.messages.clone();
    let (sent, received) = outcome.bytes;
    let left = |all_bytes: u64, of: fn(&MessageBytes) -> u64| all_bytes.checked_sub(all.iter().map(of).sum());
    if let (Some(sent), Some(received)) = (left(sent, |m| m.sent), left(received, |m| m.received)) {
        all.push(MessageBytes::new(EVERYTHING_ELSE, (sent, received)));
    }
    all
}

/// Returns the numbers that this party learned.
fn numbers(request: &Request, outcome: &RunOutcome) -> Result<Numbers> {
    let none = Numbers::default();
    let peer = outcome.parties.peer().announced;
    let (ours, theirs) = (request.input.set.len(), peer.size);
    // Numbers that follow from the size of the peer's set are unknown if that set is padded, or if there are several other
    // parties.
    let known = |n: usize| (!peer.padded && outcome.parties.count() == 1).then_some(n);
    Ok(match &outcome.learned {
        Learned::Nothing => none,
        Learned::Matching(m) => Numbers { matches: Some(m.positions.len()), ..none },
        Learned::New(new) => Numbers {
            matches: known(theirs.saturating_sub(new.items.len())),
            union_size: Some(ours + new.items.len()),
            ..none
        },
        Learned::Union(items) => Numbers {
            matches: known((ours + theirs).saturating_sub(items.len())),
            union_size: Some(items.len()),
            ..none
        },
        Learned::Matches(n) => {
            let matches = *n as usize;
            let union_size = known((ours + theirs).saturating_sub(matches));
            let shape = (request.spec.operation.result)(request.spec.role, &request.spec.agreed_terms());
            let union_size = union_size.filter(|_| shape == Shape::MatchesAndUnion);
            Numbers { matches: Some(matches), union_size, ..none }
        }
        Learned::Shares(shares) => match shares.beside {
            Beside::Matches(n) => Numbers { matches: Some(n as usize), ..none },
            Beside::Order(_) => none,
        },
        Learned::Identifiers(identifiers) => {
            // The list also has the identifiers of dummies, ours included.
            let all = identifiers.all.len();
            Numbers {
                matches: Some((request.announced() + theirs).saturating_sub(all)),
                union_size: known((all + ours).saturating_sub(request.announced())),
                ..none
            }
        }
        // Stated in both cases, so that a withheld sum is not mistaken for a sum that was not requested.
        Learned::Sum(None) => Numbers { below_minimum: Some(true), ..none },
        Learned::Sum(Some(s)) => {
            let text = decimal(s.sum, request.spec.value_scale);
            let raw =
                RawValue::from_string(text).map_err(|e| Error::bug(format!("a sum is not a number: {e}")))?;
            Numbers { matches: Some(s.matches as usize), sum: Some(raw), below_minimum: Some(false), ..none }
        }
    })
}

/// Returns the result in one line.
fn summary(request: &Request, outcome: &RunOutcome, result: &Numbers) -> String {
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let ours = request.input.set.len();
    let matches = result.matches.unwrap_or(0);
    let several = outcome.parties.count() > 1;
    match (&outcome.learned, result.union_size, &result.sum) {
        (Learned::Nothing, ..) if several => "Done: the leader has the result".into(),
        (Learned::Nothing, ..) => "Done: the receiver has the result".into(),
        (Learned::New(_) | Learned::Union(_), size, _) => {
            let size = size.unwrap_or(ours);
            let new = size.saturating_sub(ours);
            let others = if several { "only others have" } else { "only the peer has" };
            format!("New: {new} item{} that {others}; the union has {size}", s(new))
        }
        (Learned::Shares(shares), ..) => {
            let n = shares.shares.len() / shares.width;
            match &shares.beside {
                Beside::Matches(_) => format!("Shares: {n} rows, of which {matches} are of matches"),
                Beside::Order(_) => format!("Shares: {n} rows; the peer has the other shares"),
            }
        }
        (Learned::Identifiers(identifiers), ..) => {
            let all = identifiers.all.len();
            format!("Identifiers: one for each of our {ours} items; the list has {all}, and {matches} match")
        }
        (Learned::Sum(_), _, Some(sum)) => {
            format!("Sum: {sum}, over {matches} match{}", if matches == 1 { "" } else { "es" })
        }
        (Learned::Sum(_), ..) => {
            format!("Sum: withheld, because fewer than {} match", request.spec.terms.min_count)
        }
        (Learned::Matches(_), Some(size), _) => {
            format!("Matches: {matches} of our {ours}; the union has {size}")
        }
        (Learned::Matching(_) | Learned::Matches(_), ..) => format!("Matches: {matches} of our {ours}"),
    }
}

/// Returns a hint for a result without matches, if matches were possible and keys were compared without normalisation.
fn hint(request: &Request, outcome: &RunOutcome, result: &Numbers) -> Option<&'static str> {
    let possible =
        !request.input.set.is_empty() && outcome.parties.iter().all(|party| party.announced.size > 0);
    // The normalisations that leave text as it is.
    let as_it_is = ["none", "utf8"].contains(&request.input.normalisation);
    let hint = match outcome.parties.count() {
        1 => {
            concat!(
                "Hint: nothing matches. Keys are compared byte by byte: if they differ in case or white space, use \
             ",
                setting!(normalize, "trim,casefold"),
                " on both sides. Also check that both sides name the same key columns in the same order"
            )
        }
        _ => {
            concat!(
                "Hint: nothing matches. Keys are compared byte by byte: if they differ in case or white space, all parties use \
             ",
                setting!(normalize, "trim,casefold"),
                ". Also check that all name the same key columns in the same order"
            )
        }
    };
    (possible && as_it_is && result.matches == Some(0)).then_some(hint)
}

/// Returns sentences that state what each party learned.
fn sentences(request: &Request, outcome: &RunOutcome, result: &Numbers) -> Vec<String> {
    let spec = &Spec { terms: request.spec.agreed_terms(), ..request.spec.clone() };
    let ours = operations::Numbers {
        matches: result.matches,
        new: result.union_size.map(|size| size.saturating_sub(request.input.set.len())),
        sum: result.sum.as_ref().map(|sum| sum.get()),
        below_minimum: result.below_minimum,
    };
    // The number of matches is the same for both parties.
    let below_minimum = result.matches.map(|matches| (matches as u64) < spec.terms.min_count);
    let theirs = operations::Numbers { matches: result.matches, below_minimum, ..Default::default() };
    let learning = Learning { spec, ours: request.input.announced(), parties: &outcome.parties };
    learning.sentences("learned", [Some(ours), Some(theirs)])
}

/// Returns a session's id as written in logs and reports: 64 hexadecimal digits, the same on all sides.
pub(crate) fn name_of(session_id: &SessionId) -> String {
    blake3::Hash::from_bytes(*session_id.as_bytes()).to_hex().to_string()
}

/// Returns a sentence about this machine's clock if it is set before 1970.
pub fn wrong_clock(time: SystemTime) -> Option<String> {
    time.duration_since(UNIX_EPOCH).is_err().then(|| {
        format!(
            "this machine's clock says {}. Set it: the report and the audit log have its times",
            rfc3339(time)
        )
    })
}

/// Returns the time in UTC as RFC 3339, to the second.
pub fn rfc3339(time: SystemTime) -> String {
    // A clock that is set before 1970 is shown as it is, so that readers see the mistake.
    let seconds = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_secs() as i64,
        Err(e) => -(e.duration().as_secs() as i64) - i64::from(e.duration().subsec_nanos() > 0),
    };
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // If years begin in March, the leap day comes last. 400 such years have 146,097 days, and any 5 months from March or
    // August have 153.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year_of_era, month + 3),
        _ => (era * 400 + year_of_era + 1, month - 9),
    };
    format!("{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Returns `units` times 10^-`scale` as an exact decimal number.
pub fn decimal(units: i128, scale: u32) -> String {
    let digits = units.unsigned_abs().to_string();
    let sign = if units < 0 { "-" } else { "" };
    let scale = scale as usize;
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
