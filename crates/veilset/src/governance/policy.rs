//! What our side takes part in, decided in advance by whoever answers for the data, not by whoever starts the
//! run. What is not said is allowed.

use crate::error::{Error, Result};
use crate::net::Fingerprint;
use crate::operations::{Operation, Role};
use crate::session::run::Request;
use crate::session::{Hello, Proposal};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

/// Rules, for all peers or for one. The names of the fields, with hyphens, are the keys of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Rules {
    /// The operations that may be run.
    #[serde(deserialize_with = "names")]
    pub operations: Option<Vec<&'static Operation>>,
    /// The parts that we may have in them.
    #[serde(deserialize_with = "names")]
    pub roles: Option<Vec<Role>>,
    /// The peers that we run with, by name or by fingerprint. Not in the rules for one peer.
    pub peers: Option<Vec<String>>,
    /// The least number of items of our set: each of a few is easily told.
    pub min_our_size: Option<usize>,
    /// The least number of items of the peer's set: a small one may be made to ask about a few people.
    pub min_peer_size: Option<usize>,
    /// The largest set of the peer.
    pub max_peer_items: Option<usize>,
    /// The least `min_count` of sum where we are the receiver: below it the sender learns nothing.
    pub min_count: Option<u64>,
    /// Whether a connection without protection may be used.
    pub insecure_plaintext: Option<bool>,
    /// The columns of ours that may be sent along with matching rows; an empty list allows none.
    pub allowed_send_columns: Option<Vec<String>>,
    /// Whether the result may be given to both sides.
    pub both: Option<bool>,
    /// What to do when the sets changed since an earlier run with the same peer.
    pub repeats: Option<Repeats>,
    /// Rules for single peers, by name or by fingerprint; what they say counts instead.
    pub peer: BTreeMap<String, Rules>,
}

/// What to do about another run of the same operation with the same peer, if the sets changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeats {
    /// Nothing.
    Allow,
    /// Say what it reveals.
    #[default]
    Warn,
    /// Refuse the run.
    Refuse,
}

/// What our side was asked to do, as far as it is known before the peer is.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    /// The operation.
    pub operation: &'static Operation,
    /// Our part.
    pub role: Role,
    /// For sum, the agreed minimum count.
    pub min_count: u64,
    /// Our columns that are sent along.
    pub send_columns: &'a [String],
    /// Whether both sides get the result.
    pub both: bool,
}

impl<'a> Intent<'a> {
    /// What a request asks our side to do.
    pub fn of(request: &Request<'a>) -> Intent<'a> {
        Intent {
            operation: request.operation,
            role: request.role,
            min_count: request.terms.min_count,
            send_columns: if request.role == Role::Sender { request.sent_columns } else { &[] },
            both: request.terms.both,
        }
    }

    /// What was agreed with the peer.
    pub(super) fn agreed(hello: &'a Hello) -> Intent<'a> {
        Intent {
            operation: hello.operation,
            role: hello.role,
            min_count: hello.terms.min_count,
            send_columns: if hello.role == Role::Sender { &hello.sent_columns } else { &[] },
            both: hello.terms.both,
        }
    }
}

/// The rules that hold for one peer.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Rules,
    /// Whether there are none at all, for nobody.
    empty: bool,
    /// Where they are from, for messages; empty if there are none.
    source: String,
    peer: Option<Fingerprint>,
    /// Whether the peer is one of those allowed.
    listed: bool,
}

/// A list of names of things that are read from their names.
fn names<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<Option<Vec<T>>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    names.iter().map(|name| name.parse().map_err(de::Error::custom)).collect::<Result<_, _>>().map(Some)
}

impl Policy {
    /// The policy where there is none: everything is allowed, repeated runs are warned of.
    pub fn none() -> Policy {
        Policy { rules: Rules::default(), empty: true, source: String::new(), peer: None, listed: true }
    }

    /// What `rules`, which come from the file `source`, say about this peer; none on a connection without
    /// protection. `named` finds the fingerprint of a name of the address book.
    ///
    /// # Errors
    /// [`Error::Usage`] if the rules name somebody the address book does not have: whoever wrote them meant
    /// something by it.
    pub fn new(
        mut rules: Rules,
        source: &str,
        peer: Option<Fingerprint>,
        named: &dyn Fn(&str) -> Option<Fingerprint>,
    ) -> Result<Policy> {
        let wrong = |what: String| Error::Usage(format!("the policy {source}: {what}"));
        let who = |name: &str| {
            let found = named(name).or_else(|| name.parse().ok());
            found.ok_or_else(|| {
                wrong(format!(
                    "\"{name}\" is neither a peer of the address book nor a fingerprint. Add it with `veilset peer \
                     add`, or correct the policy"
                ))
            })
        };
        // Before the rules for other peers are put aside: those of them do count.
        let empty = rules == Rules::default();
        let mut own = Rules::default();
        let mut found: Option<String> = None;
        for (name, special) in std::mem::take(&mut rules.peer) {
            for (key, nested) in [("peers", special.peers.is_some()), ("peer", !special.peer.is_empty())] {
                if nested {
                    return Err(wrong(format!(
                        "\"{key}\" cannot be in [peer.{name}], whose rules are for one peer. Move it above the \
                         first [peer...] table"
                    )));
                }
            }
            if Some(who(&name)?) == peer {
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
            listed |= Some(who(name)?) == peer;
        }
        Ok(Policy { rules: own.over(rules), empty, source: source.into(), peer, listed })
    }

    /// Whether these are the rules for this peer: they are, or there are none for anybody.
    pub fn is_for(&self, peer: Option<Fingerprint>) -> bool {
        self.peer == peer || self.empty
    }

    /// What to do about repeated runs.
    pub fn repeats(&self) -> Repeats {
        self.rules.repeats.unwrap_or_default()
    }

    /// Whether the run is allowed, as far as that can be said before the peer is there.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn permits(&self, intent: &Intent<'_>) -> Result<()> {
        let rules = &self.rules;
        if self.peer.is_none() && rules.insecure_plaintext == Some(false) {
            return self.refuses("insecure-plaintext", "a connection without protection is not allowed");
        }
        if !self.listed {
            return self.refuses(
                "peers",
                match self.peer {
                    Some(peer) => format!("the peer {peer} is not among those allowed"),
                    None => "without TLS nobody knows who the peer is".into(),
                },
            );
        }
        if let Some(allowed) = rules.operations.as_ref().filter(|all| !all.contains(&intent.operation)) {
            return self.refuses(
                "operations",
                format!("{} is not among those allowed ({})", intent.operation, list(allowed)),
            );
        }
        if let Some(allowed) = rules.roles.as_ref().filter(|all| !all.contains(&intent.role)) {
            return self.refuses(
                "roles",
                format!("to be the {} is not allowed, only {}", intent.role, list(allowed)),
            );
        }
        if let (true, Role::Receiver, Some(least)) =
            (intent.operation.uses.values, intent.role, rules.min_count)
            && intent.min_count < least
        {
            let given = intent.min_count;
            return self.refuses(
                "min-count",
                format!(
                    "`min_count` is {given}, it must be at least {least} for {} where we are the receiver",
                    intent.operation
                ),
            );
        }
        if let Some(allowed) = &rules.allowed_send_columns
            && let Some(column) = intent.send_columns.iter().find(|column| !allowed.contains(column))
        {
            return self.refuses(
                "allowed-send-columns",
                format!("the column \"{column}\" may not be sent to the peer"),
            );
        }
        if intent.both && rules.both == Some(false) {
            return self.refuses("both", "the result may not be given to both sides");
        }
        Ok(())
    }

    /// Whether a set of ours of this size may be used.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn permits_our_size(&self, items: usize) -> Result<()> {
        match self.rules.min_our_size {
            Some(least) if items < least => {
                self.refuses("min-our-size", format!("our set has {items} items, fewer than {least}"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a peer's set of the proposed size is allowed.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub fn permits_their_size(&self, proposal: &Proposal) -> Result<()> {
        let items = proposal.their_size;
        match (self.rules.min_peer_size, self.rules.max_peer_items) {
            (Some(least), _) if proposal.they_pad => self.refuses(
                "min-peer-size",
                format!("the peer pads its set, so that it may have fewer than {least} items"),
            ),
            (Some(least), _) if items < least => {
                self.refuses("min-peer-size", format!("the peer's set has {items} items, fewer than {least}"))
            }
            (_, Some(most)) if items > most => {
                self.refuses("max-peer-items", format!("the peer's set has {items} items, more than {most}"))
            }
            _ => Ok(()),
        }
    }

    /// The error of a run that `key` of the policy does not allow.
    pub fn refuses(&self, key: &str, what: impl Display) -> Result<()> {
        let source = match self.source.as_str() {
            "" => String::new(),
            source => format!(" ({source})"),
        };
        Err(Error::Refused(format!(
            "our policy{source} refuses this run by \"{key}\": {what}. Change what is run, or have the policy changed \
             by whoever answers for the data"
        )))
    }
}

fn list(names: &[impl Display]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Rules {
    /// These, and where they say nothing, `base`. A new field does not compile until it is here.
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
            repeats,
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
            repeats: repeats.or(base.repeats),
            peer,
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
