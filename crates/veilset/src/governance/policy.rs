//! The runs that our side allows. The person responsible for the data decides this in advance, not the user who starts a run.
//! Anything that no rule mentions is allowed, except a small set of another party ([`crate::params::SMALL_SET`]).

use crate::error::{Error, Result, Seat};
use crate::net::Fingerprint;
use crate::operations::{Announced, Operation, Role};
use crate::protocols::{self, Assumption, Choice, Protocol};
use crate::session::{Proposal, Spec};
use crate::spelling::{MALICIOUS_SENDER, MIN_COUNT, command, setting};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

/// Rules for all peers, or for one. The keys in the policy file are the names of the fields, with hyphens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Rules {
    /// The operations that are allowed.
    #[serde(deserialize_with = "names")]
    pub operations: Option<Vec<&'static Operation>>,
    /// The roles that we may have in the allowed operations.
    #[serde(deserialize_with = "names")]
    pub roles: Option<Vec<Role>>,
    /// The peers that are allowed, by name or fingerprint. Not permitted in the rules for one peer.
    pub peers: Option<Vec<String>>,
    /// The minimum size of our set: a result on few items reveals much about each of them.
    pub min_our_size: Option<usize>,
    /// The minimum size of the peer's set: a small set may be chosen to ask about a few people. Unless it is 0, a padded set is
    /// refused.
    pub min_peer_size: Option<usize>,
    /// The maximum size of the peer's set; if we are the sender, also the maximum capacity of the peer's filter.
    pub max_peer_items: Option<usize>,
    /// The minimum `min_count` for sum if we are the receiver. With fewer matches than `min_count`, the sender learns
    /// neither count nor sum.
    pub min_count: Option<u64>,
    /// Whether an unprotected connection is allowed.
    pub insecure_plaintext: Option<bool>,
    /// Our columns that may be sent with our items; an empty list allows none.
    pub allowed_send_columns: Option<Vec<String>>,
    /// Whether the result may be given to both sides. If not, a union may not reveal the number of matches to its sender,
    /// either.
    pub both: Option<bool>,
    /// The hard problems that a protocol may assume ([`Assumption`]).
    #[serde(deserialize_with = "names")]
    pub assumptions: Option<Vec<Assumption>>,
    /// The protocols that may run.
    #[serde(deserialize_with = "protocols")]
    pub protocols: Option<Vec<&'static Protocol>>,
    /// Whether as the receiver we must be secure against a malicious sender.
    pub malicious_sender: Option<bool>,
    /// The reaction if the sets have, or may have, changed since an earlier run with the same peer.
    pub repeats: Option<Repeats>,
    /// The maximum number of runs in which we answer to the filter of one peer (dc17): as the sender, and as the receiver if
    /// both get the result. The information that these runs reveal to the peer adds up.
    pub max_filter_runs: Option<u64>,
    /// Rules for single peers, by name or fingerprint. They override the general rules, field by field.
    pub peer: BTreeMap<String, Rules>,
}

/// The reaction to another run with the same peer if the sets have, or may have, changed. Stricter values are greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Repeats {
    /// Allow the run without a warning.
    Allow,
    /// Warn about the information it reveals.
    #[default]
    Warn,
    /// Refuse the run.
    Refuse,
}

/// The rules for the other parties of a run. The run is allowed if it is allowed with each of them.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The parties, ordered by seat; empty if there is no policy.
    parties: Vec<PartyRules>,
    /// Whether there are no rules for any party.
    empty: bool,
    /// The source of the rules, for messages; empty if there are none.
    source: String,
}

/// A policy, and a run with the parties that it was made for.
pub struct Applied<'p> {
    policy: &'p Policy,
    proposal: &'p Proposal,
}

/// The rules for one party.
#[derive(Debug, Clone)]
struct PartyRules {
    seat: Seat,
    fingerprint: Option<Fingerprint>,
    rules: Rules,
    /// Whether the party is among the allowed peers.
    listed: bool,
}

/// Deserializes a list of values that are parsed from their names.
fn names<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<Option<Vec<T>>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    names.iter().map(|name| name.parse().map_err(de::Error::custom)).collect::<Result<_, _>>().map(Some)
}

/// Deserializes a list of protocols, both for two parties and for several.
fn protocols<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<&'static Protocol>>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    // A protocol that this program is built without cannot run, whether it is allowed or not.
    let built = names.iter().filter(|name| protocols::not_built().all(|other| other != *name));
    built.map(|name| protocols::named(name).map_err(de::Error::custom)).collect::<Result<_, _>>().map(Some)
}

impl Policy {
    /// The policy without rules: everything is allowed, with a warning about repeated runs.
    pub fn none() -> Policy {
        Policy { parties: Vec::new(), empty: true, source: String::new() }
    }

    /// Applies `rules`, read from the file `source`, to `parties`: all other parties of the run, ordered by seat. A
    /// party on an unprotected connection has no fingerprint. `named` looks up a fingerprint by name in the address
    /// book. Rules for no parties are rules for no run.
    ///
    /// # Errors
    /// [`Error::Usage`] if the rules name a peer that is neither in the address book nor a fingerprint: ignoring such a
    /// rule could allow what its author meant to forbid. [`Error::Usage`] also if the rules for one peer have `peers` or
    /// `peer`, or two tables are for the same one of the parties.
    pub fn new(
        rules: Rules,
        source: &str,
        parties: &[(Seat, Option<Fingerprint>)],
        named: &dyn Fn(&str) -> Option<Fingerprint>,
    ) -> Result<Policy> {
        // Rules for other peers also count here, so check before they are set aside.
        let empty = rules == Rules::default();
        let of = |&(seat, fingerprint)| PartyRules::new(&rules, source, seat, fingerprint, named);
        let parties = parties.iter().map(of).collect::<Result<_>>()?;
        Ok(Policy { parties, empty, source: source.into() })
    }

    /// Applies the policy to this run, if it was made for its parties or has no rules at all.
    pub fn applied<'p>(&'p self, proposal: &'p Proposal) -> Option<Applied<'p>> {
        let known = self.parties.iter().map(|party| (party.seat, party.fingerprint));
        let parties = proposal.parties.iter().map(|party| (party.seat, party.fingerprint));
        (known.eq(parties) || self.empty).then_some(Applied { policy: self, proposal })
    }

    /// Returns the reaction to repeated runs: the strictest rule of any party.
    pub fn repeats(&self) -> Repeats {
        let repeats = self.parties.iter().map(|party| party.rules.repeats.unwrap_or_default());
        repeats.max().unwrap_or_default()
    }

    /// Checks the other parties, the operation, our role, the terms and the columns to send.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn permits(&self, spec: &Spec) -> Result<()> {
        self.parties.iter().try_for_each(|party| self.judged(party, party.permits(spec)))
    }

    /// Checks whether the operation may be computed with this choice.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn permits_choice(&self, operation: &Operation, choice: Choice) -> Result<()> {
        self.parties.iter().try_for_each(|party| {
            let allowed = party.rules.assumptions.as_deref();
            if let Some(all) = party.rules.protocols.as_ref().filter(|all| !all.contains(&choice.protocol)) {
                let what = format!("{} is not among the allowed protocols ({})", choice.protocol, list(all));
                return self.judged(party, no("protocols", what));
            }
            self.judged(
                party,
                match (choice.beyond(operation, allowed), allowed) {
                    (Some(one), Some(allowed)) => no(
                        "assumptions",
                        format!(
                            "{operation} by {choice} rests on {one}, which is not among the allowed assumptions ({})",
                            list(allowed)
                        ),
                    ),
                    _ => Ok(()),
                },
            )
        })
    }

    /// Checks whether our set may have this size.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn permits_our_size(&self, items: usize) -> Result<()> {
        self.parties.iter().try_for_each(|party| self.judged(party, party.permits_our_size(items)))
    }

    /// The minimum size of another party's set, if the rules have one for it.
    pub fn min_peer_size(&self, seat: Seat) -> Option<usize> {
        self.parties.iter().find(|party| party.seat == seat).and_then(|party| party.rules.min_peer_size)
    }

    /// Returns the minimum number of matches for the sender of a sum to learn it, if a rule sets one.
    pub fn min_count(&self) -> Option<u64> {
        self.parties.iter().filter_map(|party| party.rules.min_count).max()
    }

    /// Returns the limit on the number of runs in which we answer to the filter of the peer of a run of two, if there is one.
    pub fn max_filter_runs(&self) -> Option<u64> {
        self.parties.iter().filter_map(|party| party.rules.max_filter_runs).min()
    }

    /// Returns the error of a run that the rule `key` forbids; `what` is the reason. The error names no party.
    pub fn refuses(&self, key: &str, what: impl Display) -> Result<()> {
        self.refuses_with("", key, what)
    }

    /// Turns the judgement of one party's rules into the policy's result.
    fn judged(&self, party: &PartyRules, said: Judgement) -> Result<()> {
        let with = match party.seat {
            Seat::PEER => String::new(),
            seat => format!(" with {seat}"),
        };
        said.or_else(|(key, what)| self.refuses_with(&with, key, what))
    }

    fn refuses_with(&self, with: &str, key: &str, what: impl Display) -> Result<()> {
        let source = match self.source.as_str() {
            "" => String::new(),
            source => format!(" ({source})"),
        };
        Err(Error::refused(format!(
            "our policy{source} refuses this run{with} by \"{key}\": {what}. Change the run, or ask the \
             person responsible for the data to change the policy"
        )))
    }
}

impl Applied<'_> {
    /// Checks whether the other parties' sets may have the proposed sizes.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn permits_their_sizes(&self) -> Result<()> {
        let Applied { policy, proposal } = self;
        // A filter that was made in advance may hold more items than its owner announces.
        let of_peer = proposal.hello.filter.as_ref().filter(|_| proposal.hello.spec.role == Role::Sender);
        let capacity = of_peer.map_or(0, |facts| facts.capacity);
        // A policy without any rules may have been made for other parties. It allows every size.
        policy.parties.iter().zip(proposal.parties.iter()).try_for_each(|(rules, party)| {
            policy.judged(rules, rules.permits_size(party.announced, capacity))
        })
    }
}

/// Whether one party's rules allow something. If not, the key of the rule that forbids it, and the reason.
type Judgement = Result<(), (&'static str, String)>;

fn no(key: &'static str, what: impl Into<String>) -> Judgement {
    Err((key, what.into()))
}

impl PartyRules {
    /// Applies `rules` to this party.
    fn new(
        rules: &Rules,
        source: &str,
        seat: Seat,
        fingerprint: Option<Fingerprint>,
        named: &dyn Fn(&str) -> Option<Fingerprint>,
    ) -> Result<PartyRules> {
        let wrong = |what: String| Error::usage(format!("the policy {source}: {what}"));
        let who = |name: &str| {
            let found = named(name).or_else(|| name.parse().ok());
            found.ok_or_else(|| {
                wrong(format!(
                    "\"{name}\" is neither a peer in the address book nor a fingerprint. Add it with \
                     {}, or correct the policy",
                    command!("peer add")
                ))
            })
        };
        let mut rules = rules.clone();
        let mut own = Rules::default();
        let mut found: Option<String> = None;
        for (name, special) in std::mem::take(&mut rules.peer) {
            for (key, nested) in [("peers", special.peers.is_some()), ("peer", !special.peer.is_empty())] {
                if nested {
                    return Err(wrong(format!(
                        "\"{key}\" cannot be in [peer.{name}], whose rules are for a single peer. Move it \
                         above the first [peer...] table"
                    )));
                }
            }
            if Some(who(&name)?) == fingerprint {
                if let Some(other) = &found {
                    return Err(wrong(format!(
                        "[peer.{other}] and [peer.{name}] are the same peer. Put their rules in one table"
                    )));
                }
                found = Some(name);
                own = special;
            }
        }
        let mut listed = rules.peers.is_none();
        for name in rules.peers.iter().flatten() {
            listed |= Some(who(name)?) == fingerprint;
        }
        Ok(PartyRules { seat, fingerprint, rules: own.over(rules), listed })
    }

    fn permits(&self, spec: &Spec) -> Judgement {
        let PartyRules { seat, fingerprint, rules, listed } = self;
        if fingerprint.is_none() && rules.insecure_plaintext == Some(false) {
            return no("insecure-plaintext", "an unprotected connection is not allowed");
        }
        if !listed {
            return no(
                "peers",
                match fingerprint {
                    Some(fingerprint) => format!("{seat} {fingerprint} is not among the allowed peers"),
                    None => format!("without TLS {seat} cannot be identified"),
                },
            );
        }
        if let Some(allowed) = rules.operations.as_ref().filter(|all| !all.contains(&spec.operation)) {
            return no(
                "operations",
                format!("{} is not among the allowed operations ({})", spec.operation, list(allowed)),
            );
        }
        if let Some(allowed) = rules.roles.as_ref().filter(|all| !all.contains(&spec.role)) {
            return no("roles", format!("the role of {} is not allowed, only {}", spec.role, list(allowed)));
        }
        if let (true, Role::Receiver, Some(least)) = (spec.operation.uses.values, spec.role, rules.min_count)
            && spec.terms.min_count < least
        {
            let given = spec.terms.min_count;
            return no(
                "min-count",
                format!(
                    "{MIN_COUNT} is {given}, but must be at least {least} for {} if we are the receiver",
                    spec.operation
                ),
            );
        }
        if let Some(allowed) = &rules.allowed_send_columns
            && let Some(column) = spec.sends().iter().find(|column| !allowed.contains(column))
        {
            return no("allowed-send-columns", format!("the column \"{column}\" may not be sent to {seat}"));
        }
        let secure = spec.role == Role::Sender || spec.terms.malicious_sender;
        if rules.malicious_sender == Some(true) && !secure {
            return no(
                "malicious-sender",
                format!(
                    "as the receiver of {} we must be secure against a malicious sender ({MALICIOUS_SENDER})",
                    spec.operation
                ),
            );
        }
        if spec.terms.both && rules.both == Some(false) {
            return no("both", "the result may not be given to both sides");
        }
        if spec.terms.reveal_count && rules.both == Some(false) {
            return no(
                "both",
                concat!(
                    "the sender may not be told how many items match (",
                    setting!(reveal_count_to_sender),
                    ")"
                ),
            );
        }
        Ok(())
    }

    fn permits_our_size(&self, items: usize) -> Judgement {
        match self.rules.min_our_size {
            Some(least) if items < least => {
                no("min-our-size", format!("our set has {items} items, fewer than {least}"))
            }
            _ => Ok(()),
        }
    }

    fn permits_size(&self, announced: Announced, capacity: usize) -> Judgement {
        let (seat, items) = (self.seat, announced.size);
        match (self.rules.min_peer_size, self.rules.max_peer_items) {
            (Some(least), _) if announced.padded && least > 0 => no(
                "min-peer-size",
                format!("{seat} pads its set, which may therefore have fewer than {least} items"),
            ),
            (Some(least), _) if items < least => {
                no("min-peer-size", format!("{seat}'s set has {items} items, fewer than {least}"))
            }
            (_, Some(most)) if capacity > most => {
                no("max-peer-items", format!("{seat}'s filter is for {capacity} items, more than {most}"))
            }
            (_, Some(most)) if items > most => {
                no("max-peer-items", format!("{seat}'s set has {items} items, more than {most}"))
            }
            _ => Ok(()),
        }
    }
}

fn list(names: &[impl Display]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Rules {
    /// These rules, with missing fields taken from `base`. With a new field this does not compile until it is added here.
    fn over(self, base: Rules) -> Rules {
        let Rules {
            operations,
            roles,
            peers,
            min_our_size,
            min_peer_size,
            max_peer_items,
            min_count,
            insecure_plaintext,
            allowed_send_columns,
            both,
            assumptions,
            protocols,
            malicious_sender,
            repeats,
            max_filter_runs,
            peer,
        } = self;
        Rules {
            operations: operations.or(base.operations),
            roles: roles.or(base.roles),
            peers: peers.or(base.peers),
            min_our_size: min_our_size.or(base.min_our_size),
            min_peer_size: min_peer_size.or(base.min_peer_size),
            max_peer_items: max_peer_items.or(base.max_peer_items),
            min_count: min_count.or(base.min_count),
            insecure_plaintext: insecure_plaintext.or(base.insecure_plaintext),
            allowed_send_columns: allowed_send_columns.or(base.allowed_send_columns),
            both: both.or(base.both),
            assumptions: assumptions.or(base.assumptions),
            protocols: protocols.or(base.protocols),
            malicious_sender: malicious_sender.or(base.malicious_sender),
            repeats: repeats.or(base.repeats),
            max_filter_runs: max_filter_runs.or(base.max_filter_runs),
            peer,
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
