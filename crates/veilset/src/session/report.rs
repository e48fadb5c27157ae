//! The report of a run, for people and as JSON with stable names.

use super::run::{Outcome, Request};
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::operations::{self, Learned, Role, Shape, View};
use crate::params::LAMBDA;
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a run did. The names of the fields are stable.
#[derive(Debug, Serialize)]
pub struct Report {
    /// When the run began, by this machine's clock: RFC 3339, UTC.
    pub time: String,
    /// The session's name, the same on both sides and in the audit logs.
    pub session: String,
    /// intersect, union, count or sum.
    pub operation: &'static str,
    /// How it was computed.
    pub protocol: &'static str,
    /// The group the protocol worked in.
    pub group: &'static str,
    /// Our part.
    pub role: &'static str,
    /// Items of both sets.
    pub sizes: Sizes,
    /// Whether this party's offline half was prepared before.
    pub prepared: bool,
    /// Whether both parties get the result.
    pub both: bool,
    /// The columns that travelled with the sender's items, as the sender calls them.
    pub sent_columns: Vec<String>,
    /// Rows of ours that took no part.
    pub left_out: LeftOut,
    /// What this party learned, in numbers.
    pub result: Numbers,
    /// From the connection to the confirmed end.
    pub seconds: f64,
    /// On the wire, TLS and its handshake included.
    pub bytes: Bytes,
    /// What each party learned, in sentences.
    pub learned: Vec<String>,
    /// What the secrecy rests on.
    pub assumptions: Vec<&'static str>,
    /// The probability of a wrong result is at most this.
    pub failure_bound: String,
    /// The peer's fingerprint; none on a connection without protection.
    pub peer: Option<String>,
    /// The peer's name in our address book; for the front end to fill in.
    pub peer_name: Option<String>,
    /// Our data, as the front end calls it: the name of a file, or - for standard input.
    pub input: Option<String>,
    /// Where our result is, as the front end calls it: the name of a file, or - for standard output. None if we have
    /// no result.
    pub output: Option<String>,
    /// veilset's version.
    pub version: &'static str,
    /// The result in one line, and what may be the matter with it.
    #[serde(skip)]
    summary: String,
    #[serde(skip)]
    hint: Option<&'static str>,
}

/// Items of both sets.
#[derive(Debug, Serialize)]
pub struct Sizes {
    /// In ours.
    pub ours: usize,
    /// What the peer was told: more, if ours is padded.
    pub announced: usize,
    /// In the peer's; a bound, if it is padded.
    pub peer: usize,
    /// Whether it is.
    pub peer_padded: bool,
}

/// Rows of our table that are not items of their own.
#[derive(Debug, Default, Serialize)]
pub struct LeftOut {
    /// Rows that repeat a key: they were omitted, or their values added to those of the first row.
    pub duplicates: u64,
    /// Their key is empty.
    pub skipped: u64,
}

/// Bytes both ways.
#[derive(Debug, Serialize)]
pub struct Bytes {
    /// To the peer.
    pub sent: u64,
    /// From the peer.
    pub received: u64,
}

/// What this party learned, in numbers; what it did not learn is absent.
#[derive(Debug, Default, Serialize)]
pub struct Numbers {
    /// Items in both sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<usize>,
    /// Items in at least one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub union_size: Option<usize>,
    /// The sum, a number with exactly the agreed decimal places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<Box<RawValue>>,
    /// For the sender of sum: whether there were fewer matches than agreed, so that count and sum were withheld.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_minimum: Option<bool>,
}

impl Report {
    /// The report of `request`, which had this outcome after so many seconds.
    pub fn new(request: &Request, outcome: &Outcome, seconds: f64, peer: Option<String>) -> Result<Report> {
        let result = numbers(request, outcome)?;
        Ok(Report {
            time: rfc3339(outcome.began),
            session: name_of(&outcome.session_id),
            operation: request.operation.name,
            protocol: outcome.choice.protocol.name,
            group: outcome.choice.group,
            role: request.role.name(),
            sizes: Sizes {
                ours: request.set.len(),
                announced: request.announced(),
                peer: outcome.their_size,
                peer_padded: outcome.they_pad,
            },
            prepared: outcome.prepared,
            both: request.terms.both,
            sent_columns: request.sent_columns.to_vec(),
            left_out: LeftOut::default(),
            learned: sentences(request, outcome, &result),
            summary: summary(request, outcome, &result),
            hint: hint(request, outcome, &result),
            result,
            seconds,
            bytes: Bytes { sent: outcome.bytes.0, received: outcome.bytes.1 },
            assumptions: (outcome.choice.protocol.assumptions)(&request.terms()),
            failure_bound: format!("2^-{LAMBDA}"),
            peer,
            peer_name: None,
            input: None,
            output: None,
            version: env!("CARGO_PKG_VERSION"),
        })
    }

    /// The report as JSON, one object over several lines.
    pub fn to_json(&self) -> Result<String> {
        let json = serde_json::to_string_pretty(self);
        json.map_err(|e| Error::Bug(format!("a report is not JSON: {e}")))
    }

    /// The report in a few lines, for people; the first is the result.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{}\n  {} as {}, protocol {} over {}: {} items here, {} on the peer's side\n",
            self.summary,
            self.operation,
            self.role,
            self.protocol,
            self.group,
            self.sizes.ours,
            self.sizes.peer
        );
        for sentence in &self.learned {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {sentence}");
        }
        let prepared = if self.prepared { " after an offline half that was prepared" } else { "" };
        let _ = writeln!(
            text,
            "  {:.1} seconds{prepared}, {} bytes sent, {} received; a wrong result has probability at most {}",
            self.seconds, self.bytes.sent, self.bytes.received, self.failure_bound
        );
        if let Some(hint) = self.hint {
            let _ = writeln!(text, "  {hint}");
        }
        text
    }
}

fn numbers(request: &Request, outcome: &Outcome) -> Result<Numbers> {
    let none = Numbers::default();
    let (ours, theirs) = (request.set.len(), outcome.their_size);
    // What follows from the size of the peer's set is not known where it is padded.
    let known = |n: usize| (!outcome.they_pad).then_some(n);
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
            let shape = (request.operation.result)(request.role, &request.terms());
            let union_size = union_size.filter(|_| shape == Shape::MatchesAndUnion);
            Numbers { matches: Some(matches), union_size, ..none }
        }
        // Stated either way, so that nobody takes a sum that is absent for one that was not asked for.
        Learned::Sum(None) => Numbers { below_minimum: Some(true), ..none },
        Learned::Sum(Some(s)) => {
            let text = decimal(s.sum, request.value_scale);
            let raw =
                RawValue::from_string(text).map_err(|e| Error::Bug(format!("a sum is no number: {e}")))?;
            Numbers { matches: Some(s.matches as usize), sum: Some(raw), below_minimum: Some(false), ..none }
        }
    })
}

/// What this party learned, in one line.
fn summary(request: &Request, outcome: &Outcome, result: &Numbers) -> String {
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let ours = request.set.len();
    let matches = result.matches.unwrap_or(0);
    match (&outcome.learned, result.union_size, &result.sum) {
        (Learned::Nothing, ..) => "Done: the receiver has the result".into(),
        (Learned::New(_) | Learned::Union(_), size, _) => {
            let size = size.unwrap_or(ours);
            let new = size.saturating_sub(ours);
            format!("New: {new} item{} that only the peer has; the union has {size}", s(new))
        }
        (Learned::Sum(_), _, Some(sum)) => {
            format!("Sum: {sum}, over {matches} match{}", if matches == 1 { "" } else { "es" })
        }
        (Learned::Sum(_), ..) => {
            format!("Sum: withheld, because fewer than {} match", request.terms.min_count)
        }
        (Learned::Matches(_), Some(size), _) => {
            format!("Matches: {matches} of our {ours}; the union has {size}")
        }
        (Learned::Matching(_) | Learned::Matches(_), ..) => format!("Matches: {matches} of our {ours}"),
    }
}

/// What may be the matter if nothing matches, where something could.
fn hint(request: &Request, outcome: &Outcome, result: &Numbers) -> Option<&'static str> {
    let possible = !request.set.is_empty() && outcome.their_size > 0;
    // The names of text that is compared as it is.
    let as_it_is = ["none", "utf8"].contains(&request.normalisation);
    (possible && as_it_is && result.matches == Some(0)).then_some(
        "Hint: nothing matches. Keys are compared byte by byte: if they differ in upper and lower case or in white space, \
         use `normalize=trim,casefold` on both sides. Check too that both sides name the same key columns in the same order",
    )
}

/// What each party learned, in sentences.
fn sentences(request: &Request, outcome: &Outcome, result: &Numbers) -> Vec<String> {
    let terms = request.terms();
    let bound = |n: usize, padded| if padded { format!("at most {n}") } else { n.to_string() };
    let columns = request.sent_columns.join(", ");
    let learned = |role, other, other_pads, numbers| {
        let columns = if role == Role::Receiver { columns.as_str() } else { "" };
        let view = View { other, other_pads: Some(other_pads), columns, numbers: Some(numbers) };
        view.say(&(request.operation.learns)(role, &terms))
    };
    let ours = operations::Numbers {
        matches: result.matches,
        new: result.union_size.map(|size| size.saturating_sub(request.set.len())),
        sum: result.sum.as_ref().map(|sum| sum.get()),
        below_minimum: result.below_minimum,
    };
    // What matches is the same number for both.
    let below_minimum = result.matches.map(|matches| (matches as u64) < terms.min_count);
    let theirs = operations::Numbers { matches: result.matches, below_minimum, ..Default::default() };
    vec![
        format!(
            "This party learned that the peer's set has {} items, and {}.",
            bound(outcome.their_size, outcome.they_pad),
            learned(request.role, "the peer", outcome.they_pad, ours)
        ),
        format!(
            "The peer learned that this party's set has {} items, and {}.",
            bound(request.announced(), request.pad_to.is_some()),
            learned(request.role.other(), "this party", request.pad_to.is_some(), theirs)
        ),
    ]
}

/// The name of a session in logs and reports: 64 hexadecimal digits, the same on both sides.
pub(crate) fn name_of(session_id: &SessionId) -> String {
    blake3::Hash::from_bytes(*session_id.as_bytes()).to_hex().to_string()
}

/// The time in UTC, to the second.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    // A clock that stands before 1970 is wrong anyway.
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day last; 400 of them have 146,097 days, 5 months 153.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
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

/// `units` of 10^-`scale`, exactly.
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
