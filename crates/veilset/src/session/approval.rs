//! The point where our side decides whether to allow a run. By then both sides have agreed on the terms and know the
//! sizes; nothing else about the data has been sent.

use super::{Hello, Parties, Spec, Term};
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::operations::cost::{Among, Deal, PartyCost};
use crate::operations::{Announced, Role};
use crate::planner::Choices;
use crate::protocols::{Choice, Protocol};
use crate::sharded::run::bound;
use crate::spelling::setting;

/// What both sides agreed on, for our side to allow or refuse.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Proposal {
    /// All terms, as requested on our side; the peer requested the same.
    pub hello: Hello,
    /// How the operation is computed: one of the choices that both sides allow.
    pub choice: Choice,
    /// Why this one, if a planner picked it of several.
    pub why: Option<String>,
    /// The choices that the peer allows, in its order; in a run of several, the only one that all have.
    pub theirs: Choices,
    /// The session's id.
    pub session_id: SessionId,
    /// What our side announced.
    pub ours: Announced,
    /// The other parties, and what they announced.
    pub parties: Parties,
}

impl Proposal {
    /// What the run is called: the session that its job began in, or its own.
    pub fn name(&self) -> SessionId {
        self.hello.job.unwrap_or(self.session_id)
    }

    /// The protocol, and what its cost depends on, in a run of two, or in each of the shards of a job.
    pub fn deal(&self) -> (&'static Protocol, Deal) {
        let [ours, theirs] = [self.ours, self.parties.peer().announced].map(|whole| self.part(whole));
        let (receiver, sender) = match self.hello.spec.role {
            Role::Receiver => (ours, theirs),
            Role::Sender => (theirs, ours),
        };
        let Spec { operation, terms, .. } = self.hello.spec;
        let Choice { protocol, group } = self.choice;
        (protocol, Deal { operation, terms, group, receiver, sender })
    }

    /// The announcements of all parties, by number.
    pub(super) fn sizes(&self) -> Vec<Announced> {
        let mut all: Vec<_> = self.parties.iter().map(|party| party.announced).collect();
        all.insert(self.hello.spec.number().min(all.len()), self.ours);
        all
    }

    /// The cost of the run for our side, or that of each of its shards.
    pub(super) fn cost(&self) -> Result<PartyCost> {
        let Spec { operation, terms, .. } = self.hello.spec;
        let Choice { protocol, group } = self.choice;
        let sizes: Vec<_> = self.sizes().into_iter().map(|whole| self.part(whole)).collect();
        protocol.party_cost(self.hello.spec.number(), &Among { operation, terms, group, sizes: &sizes })
    }

    /// The announcement of a set in each of the shards, or that of the whole.
    fn part(&self, whole: Announced) -> Announced {
        match self.hello.spec.terms.shards {
            0 => whole,
            shards => Announced { size: bound(whole.size, shards), padded: true },
        }
    }

    /// All terms that both sides agreed on, with the chosen protocol and group inserted after the operation and the
    /// purpose.
    pub fn terms(&self) -> Vec<Term> {
        let mut terms = self.hello.terms();
        let Choice { protocol, group } = self.choice;
        let chosen =
            [("protocol", setting!(protocol), protocol.name), ("group", "group of the protocol", group)];
        let chosen = chosen.map(|(key, words, value)| Term { key, words, value: value.into() });
        terms.splice(2..2, chosen);
        if let Some(facts) = &self.hello.filter {
            let value = facts.to_string();
            terms.push(Term {
                key: "filter",
                words: concat!("the receiver's filter (", setting!(filter), ")"),
                value,
            });
        }
        if self.hello.spec.operation.uses.shares {
            let value = if self.hello.spec.terms.shared_values { "values" } else { "keys" };
            terms.push(Term {
                key: "shared",
                words: concat!("what is shared (", setting!(values), " of the sender)"),
                value: value.into(),
            });
        }
        terms
    }
}

/// Decides whether a run is allowed. `()` allows every run.
pub trait Approval {
    /// Decides whether our side allows the run; the peer waits for the answer. Refuse with
    /// [`Error::Refused`](crate::error::Error::Refused). Whatever the error, the peer is told only its kind.
    fn approve(&mut self, proposal: &Proposal) -> Result<()>;

    /// The run ended before our side was asked, and the peer may know our size. Either our own limits refused the run,
    /// or the peer left or sent an impossible size. The peer's size is 0 if it sent none.
    fn refused(&mut self, _: &Proposal, _: &Error) {}

    /// Both sides have allowed the run. Messages about the data are sent once this returns; on an error, none of ours
    /// is sent. Not called for a check.
    fn begins(&mut self, _: &Proposal) -> Result<()> {
        Ok(())
    }

    /// Reports a problem that does not stop the run.
    fn warn(&mut self, _: &str) {}
}

impl Approval for () {
    fn approve(&mut self, _: &Proposal) -> Result<()> {
        Ok(())
    }
}
