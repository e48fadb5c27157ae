//! The point at which our side decides whether to allow a run. By then all parties have agreed on the terms and know the
//! announced sizes. Nothing else about the data has been sent, except the digest and the size of a filter made in advance.

use super::{Hello, Parties, Spec, Term};
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::operations::cost::{Among, Deal, PartyCost};
use crate::operations::{Announced, Role};
use crate::planner::Choices;
use crate::protocols::{Choice, Protocol};
use crate::sharded::run::bound;
use crate::spelling::setting;

/// The terms that all parties agreed on, for our side to allow or refuse.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Proposal {
    /// All terms as our side requested them; the other parties requested the same. The receiver's filter, and whether values
    /// are shared, are as agreed.
    pub hello: Hello,
    /// The protocol and its group: one of the choices that all parties allow.
    pub choice: Choice,
    /// The reason for this choice, if several were common; `None` if it was the only one.
    pub why: Option<String>,
    /// The choices that the peer allows, in its order; in a run of several, the only choice, which all have in common.
    pub theirs: Choices,
    /// The session's id.
    pub session_id: SessionId,
    /// What our side announced.
    pub ours: Announced,
    /// The other parties, and what they announced.
    pub parties: Parties,
}

impl Proposal {
    /// Returns the name of the run: the session in which its job began, or otherwise its own session.
    pub fn name(&self) -> SessionId {
        self.hello.job.unwrap_or(self.session_id)
    }

    /// Returns the protocol, and the parameters that its cost depends on: of a run of two, or of one shard of a job.
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

    /// Returns the announcements of all parties, ordered by number.
    pub(super) fn sizes(&self) -> Vec<Announced> {
        let mut all: Vec<_> = self.parties.iter().map(|party| party.announced).collect();
        all.insert(self.hello.spec.number().min(all.len()), self.ours);
        all
    }

    /// Returns the cost for our side: of the run, or of one shard of a job.
    pub(super) fn cost(&self) -> Result<PartyCost> {
        let Spec { operation, terms, .. } = self.hello.spec;
        let Choice { protocol, group } = self.choice;
        let sizes: Vec<_> = self.sizes().into_iter().map(|whole| self.part(whole)).collect();
        protocol.party_cost(self.hello.spec.number(), &Among { operation, terms, group, sizes: &sizes })
    }

    /// Returns the announcement of one shard of a set, or of the whole set if the run is in one piece.
    fn part(&self, whole: Announced) -> Announced {
        match self.hello.spec.terms.shards {
            0 => whole,
            shards => Announced { size: bound(whole.size, shards), padded: true },
        }
    }

    /// Returns all terms that the parties agreed on. The chosen protocol and group follow the operation and the purpose. A
    /// filter made in advance, and what is shared, come last.
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
    /// Decides whether our side allows the run; the other parties wait for the answer. To refuse, return
    /// [`Error::Refused`](crate::error::Error::Refused). Other parties are told only the kind of an error.
    fn approve(&mut self, proposal: &Proposal) -> Result<()>;

    /// The run ended with this error before our side was asked, when the other parties may already know our size. Our own
    /// limits may have refused the run, another party may have left or sent an invalid message, or our side may have been
    /// stopped. The sizes of the other parties are 0 unless all have arrived.
    fn refused(&mut self, _: &Proposal, _: &Error) {}

    /// All parties have allowed the run. Further messages about the data are sent after this returns; on an error, our side
    /// sends none. Not called for a check.
    fn begins(&mut self, _: &Proposal) -> Result<()> {
        Ok(())
    }

    /// Reports to the user a problem that does not stop the run.
    fn warn(&mut self, _: &str) {}
}

impl Approval for () {
    fn approve(&mut self, _: &Proposal) -> Result<()> {
        Ok(())
    }
}
