//! Where our side is asked whether a run may take place: after both agreed on the terms and know the sizes,
//! before anything else about the data is said.

use super::{Hello, Parties, Term};
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::operations::cost::Deal;
use crate::operations::{Announced, Role};
use crate::protocols::{Choice, Protocol};

/// What both sides agreed on, to be allowed or refused.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Proposal {
    /// All terms, as our side asked for them; the peer asked for the same.
    pub hello: Hello,
    /// How the operation is computed: chosen among what both allow.
    pub choice: Choice,
    /// Names this session.
    pub session_id: SessionId,
    /// What our side announced.
    pub ours: Announced,
    /// The other parties, and what they announced.
    pub parties: Parties,
}

impl Proposal {
    /// What the cost depends on, and the protocol, in a run of two.
    pub fn deal(&self) -> (&'static Protocol, Deal) {
        let (ours, theirs) = (self.ours, self.parties.peer().announced);
        let (receiver, sender) = match self.hello.role {
            Role::Receiver => (ours, theirs),
            Role::Sender => (theirs, ours),
        };
        let Hello { operation, terms, .. } = self.hello;
        (self.choice.protocol, Deal { operation, terms, receiver, sender })
    }

    /// All that both sides agreed on, the choice behind the operation and the purpose.
    pub fn terms(&self) -> Vec<Term> {
        let mut terms = self.hello.terms();
        let Choice { protocol, group } = self.choice;
        let chosen = [("protocol", "`protocol`", protocol.name), ("group", "group of the protocol", group)];
        let chosen = chosen.map(|(key, words, value)| Term { key, words, value: value.into() });
        terms.splice(2..2, chosen);
        terms
    }
}

/// Decides about a run. `()` allows everything.
pub trait Approval {
    /// Whether our side allows it. The peer waits for the answer. Best refused with
    /// [`Error::Refused`](crate::error::Error::Refused): of any error the peer is told the kind only.
    fn approve(&mut self, proposal: &Proposal) -> Result<()>;

    /// The run ends before our side is asked, and the peer may know our size: our own limits refused it, or the peer
    /// left, or it sent no size that can be. Its size is 0 if it sent none.
    fn refused(&mut self, _: &Proposal, _: &Error) {}

    /// Both sides have allowed it; when this returns, messages about the data go out. An error still keeps ours
    /// from being sent. It is not called for a check.
    fn begins(&mut self, _: &Proposal) -> Result<()> {
        Ok(())
    }

    /// Something that does not keep the run from going on, and that somebody should hear of.
    fn warn(&mut self, _: &str) {}
}

impl Approval for () {
    fn approve(&mut self, _: &Proposal) -> Result<()> {
        Ok(())
    }
}
