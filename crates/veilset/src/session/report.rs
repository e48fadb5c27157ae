//! The report of a run, for people and as JSON with stable names.

use super::run::{GROUP, Outcome, PROTOCOL, Request};
use crate::error::{Error, Result};
use crate::operations::{Learned, Operation, Role};
use crate::params::LAMBDA;
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt::Write as _;

/// What a run did. The names of the fields are stable.
#[derive(Debug, Serialize)]
pub struct Report {
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
    /// veilset's version.
    pub version: &'static str,
}

/// Items of both sets.
#[derive(Debug, Serialize)]
pub struct Sizes {
    /// In ours.
    pub ours: usize,
    /// In the peer's.
    pub peer: usize,
}

/// Rows of our table that are not items of their own.
#[derive(Debug, Default, Serialize)]
pub struct LeftOut {
    /// Their key came before: they were left out, or their values added to the first row's.
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
    /// Whether there were fewer matches than agreed, so that the sum was withheld.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_minimum: Option<bool>,
}

impl Report {
    /// The report of `request`, which had this outcome after so many seconds.
    pub fn new(request: &Request, outcome: &Outcome, seconds: f64, peer: Option<String>) -> Result<Report> {
        let result = numbers(request, outcome)?;
        Ok(Report {
            operation: request.operation.name(),
            protocol: PROTOCOL,
            group: GROUP,
            role: request.role.name(),
            sizes: Sizes { ours: request.set.len(), peer: outcome.their_size },
            left_out: LeftOut::default(),
            learned: sentences(request, outcome, &result),
            result,
            seconds,
            bytes: Bytes { sent: outcome.bytes.0, received: outcome.bytes.1 },
            assumptions: vec![
                "both parties follow the protocol (semi-honest): nothing binds a party to its true set or choices",
                "decisional Diffie-Hellman on Curve25519 and ristretto255",
                "BLAKE3 as a random oracle, AES-128 as an ideal cipher",
            ],
            failure_bound: format!("2^-{LAMBDA}"),
            peer,
            version: env!("CARGO_PKG_VERSION"),
        })
    }

    /// The report as JSON, one object over several lines.
    pub fn to_json(&self) -> Result<String> {
        let json = serde_json::to_string_pretty(self);
        json.map_err(|e| Error::Bug(format!("a report is not JSON: {e}")))
    }

    /// The report in a few lines, for people.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{} as {}, protocol {} over {}: {} items here, {} on the peer's side\n",
            self.operation, self.role, self.protocol, self.group, self.sizes.ours, self.sizes.peer
        );
        for sentence in &self.learned {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {sentence}");
        }
        let _ = writeln!(
            text,
            "  {:.1} seconds, {} bytes sent, {} received; a wrong result has probability at most {}",
            self.seconds, self.bytes.sent, self.bytes.received, self.failure_bound
        );
        text
    }
}

fn numbers(request: &Request, outcome: &Outcome) -> Result<Numbers> {
    let none = Numbers::default();
    Ok(match &outcome.learned {
        Learned::Nothing => none,
        Learned::Matching(rows) => Numbers { matches: Some(rows.len()), ..none },
        Learned::New(items) => Numbers {
            matches: Some(outcome.their_size.saturating_sub(items.len())),
            union_size: Some(request.set.len() + items.len()),
            ..none
        },
        Learned::Count(c) => Numbers { matches: Some(c.matches), union_size: Some(c.union_size), ..none },
        Learned::Matches(n) => Numbers { matches: Some(*n as usize), ..none },
        Learned::Sum(None) => Numbers { below_minimum: Some(true), ..none },
        Learned::Sum(Some(s)) => {
            let text = decimal(s.sum, request.value_scale);
            let raw =
                RawValue::from_string(text).map_err(|e| Error::Bug(format!("a sum is no number: {e}")))?;
            Numbers { matches: Some(s.matches as usize), sum: Some(raw), ..none }
        }
    })
}

/// What each party learned. SECURITY.md says the same at more length.
fn sentences(request: &Request, outcome: &Outcome, result: &Numbers) -> Vec<String> {
    let (ours, theirs) = (request.set.len(), outcome.their_size);
    let matches = result.matches.unwrap_or(0);
    let size_only = format!("The peer learned that this party's set has {ours} items, and nothing else.");
    match (request.operation, request.role) {
        (Operation::Intersect, Role::Receiver) => vec![
            format!(
                "This party learned which {matches} of its {ours} items the peer has, of the peer's {theirs}."
            ),
            size_only,
        ],
        (Operation::Union, Role::Receiver) => vec![
            format!(
                "This party learned the {} items that only the peer has, so that {matches} of the peer's {theirs} \
                 are also its own, but not which.",
                theirs - matches
            ),
            size_only,
        ],
        (Operation::Count, Role::Receiver) => vec![
            format!(
                "This party learned that {matches} of the peer's {theirs} items are also its own, but not which."
            ),
            size_only,
        ],
        (Operation::Sum, Role::Receiver) => vec![
            format!(
                "This party learned that {matches} of the peer's {theirs} items are also its own, but not which."
            ),
            match (matches as u64) < request.terms.min_count {
                true => format!(
                    "The peer learned that this party's set has {ours} items and that fewer than {} match, not the sum.",
                    request.terms.min_count
                ),
                false => format!(
                    "The peer learned that this party's set has {ours} items, that {matches} match, and the sum of \
                     its own values over them."
                ),
            },
        ],
        (Operation::Sum, Role::Sender) => vec![
            match &result.sum {
                Some(sum) => format!(
                    "This party learned that {matches} of its {ours} items are among the peer's {theirs}, and that \
                     its values over them add up to {sum}."
                ),
                None => format!(
                    "This party learned that fewer than {} of its {ours} items are among the peer's {theirs}, not \
                     the sum.",
                    request.terms.min_count
                ),
            },
            format!(
                "The peer learned that this party's set has {ours} items and how many match, no value and no sum."
            ),
        ],
        (operation, Role::Sender) => vec![
            format!("This party learned that the peer's set has {theirs} items, and nothing else."),
            match operation {
                Operation::Intersect => {
                    format!("The peer learned which of its items are among this party's {ours}.")
                }
                Operation::Union => {
                    format!(
                        "The peer learned those of this party's {ours} items that it did not have, and their number."
                    )
                }
                _ => format!(
                    "The peer learned how many of this party's {ours} items it has too, but not which."
                ),
            },
        ],
    }
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
mod tests {
    use super::*;
    use crate::item::ItemSet;
    use crate::operations::sum::{self, Modulus, Terms};

    #[test]
    fn decimals_are_exact() {
        for (units, scale, text) in [
            (0, 0, "0"),
            (5, 0, "5"),
            (-5, 2, "-0.05"),
            (123, 2, "1.23"),
            (100, 2, "1.00"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
            (-1234, 3, "-1.234"),
        ] {
            assert_eq!(decimal(units, scale), text);
        }
    }

    #[test]
    fn a_report_holds_only_what_this_party_learned() {
        let set: ItemSet = ["a", "b"].iter().collect();
        let request = |operation, role| Request {
            operation,
            role,
            set: &set,
            key_columns: 1,
            normalisation: "none",
            max_peer_items: 5,
            max_row: 64,
            values: &[],
            value_scale: 2,
            terms: Terms { modulus: Modulus::Bits64, min_count: 0 },
        };
        let json = |operation, role, learned| {
            let outcome = Outcome { learned, their_size: 5, bytes: (10, 20) };
            let request = request(operation, role);
            let report = Report::new(&request, &outcome, 0.5, None).unwrap();
            assert!(!report.to_text().is_empty());
            let value: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
            assert_eq!(value["failure_bound"], "2^-40");
            assert_eq!(value["learned"].as_array().unwrap().len(), 2);
            value["result"].to_string()
        };
        use {Operation::*, Role::*};
        for operation in [Intersect, Union, Count] {
            assert_eq!(json(operation, Sender, Learned::Nothing), "{}");
        }
        assert_eq!(json(Intersect, Receiver, Learned::Matching(vec![1])), r#"{"matches":1}"#);
        let new = Learned::New(["c", "d", "e"].iter().collect());
        assert_eq!(json(Union, Receiver, new), r#"{"matches":2,"union_size":5}"#);
        assert_eq!(json(Sum, Receiver, Learned::Matches(1)), r#"{"matches":1}"#);
        let sum = Learned::Sum(Some(sum::Sum { matches: 2, sum: -1234 }));
        assert_eq!(json(Sum, Sender, sum), r#"{"matches":2,"sum":-12.34}"#);
        assert_eq!(json(Sum, Sender, Learned::Sum(None)), r#"{"below_minimum":true}"#);
    }
}
