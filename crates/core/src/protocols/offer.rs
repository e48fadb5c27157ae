//! Offers, the operations that a protocol computes, and choices of a protocol and a group.

use super::{Assumption, Protocol, deviating, named};
use crate::operations::{Operation, Role, Terms};
use crate::params::MAX_SET;
use std::fmt;

/// An operation that a protocol computes, and the properties of this combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The operation.
    pub operation: &'static Operation,
    /// Its rank among the offers for the operation, from 0. The offer that reveals least to a party that deviates comes
    /// first, and of two that reveal equally much, the one that sends less. The rank decides where time does not
    /// (`veilset::planner::best`); rank 0 is the default.
    pub order: u8,
    /// Whether it may be picked if the user named no protocol.
    pub unasked: Unasked,
    /// Whether it can be made secure against a malicious sender ([`Terms::malicious_sender`]). Otherwise both parties
    /// are assumed to be semi-honest.
    pub malicious_sender: bool,
    /// Whether it shows the sender how many items match. It is used only if the parties agreed on that
    /// ([`Terms::reveal_count`]).
    pub reveals_count: bool,
    /// Whether the receiver inserts the listed dummies that the sender's set may have ([`Operation::dummies`]), so that
    /// they match. Otherwise the protocol itself makes sure that they are not delivered.
    pub inserts_list: bool,
    /// What a run can use in addition to the sets.
    pub attachments: &'static [Attachment],
    /// The ends of the sentences "a receiver that deviates can ..." and "a sender that deviates can ...", unless the protocol
    /// is made secure against that sender. With several parties, the ends for the leader and for any other party.
    pub deviations: [&'static str; 2],
    /// The most items that the receiver's and the sender's set can have in the protocol ([`Protocol::sizes`]).
    pub largest: [usize; 2],
}

/// Whether a protocol may be picked if the user named none. Otherwise it is picked only if nothing else meets the given terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// Always.
    Yes,
    /// Only in runs that send no columns: a receiver that deviates would get all of them.
    WithoutColumns,
    /// Never.
    No,
}

/// What a run can use in addition to the sets of the parties, if its offer says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// Preprocessing: half of a party's work, done before it meets the peer (`veilset::artefact`).
    Half,
    /// The receiver's filter, made in advance for many runs (`veilset::artefact::filter`).
    Filter,
    /// Shards, whose results show no more than the result of one run (`veilset::sharded::run`). The error of the protocol follows
    /// from [`Terms::exponent`], and it hides which of the sender's rows are dummies. A key-value store that had to be encoded
    /// again shows only in time, with probability 2^-40 per shard.
    Shards,
}

impl Offer {
    /// Whether a run by this offer can use such an attachment.
    pub fn takes_with(&self, attachment: Attachment) -> bool {
        self.attachments.contains(&attachment)
    }

    /// Whether it may be picked under these terms if the user named none.
    pub fn may_be_picked(&self, terms: &Terms) -> bool {
        match self.unasked {
            Unasked::Yes => true,
            Unasked::WithoutColumns => !terms.payload,
            Unasked::No => false,
        }
    }

    /// Returns a sentence on the possible deviations of a party in this role.
    pub fn deviating(&self, terms: &Terms, role: Role) -> String {
        let who = match (terms.several, role) {
            (false, role) => role.name(),
            (true, Role::Receiver) => "leader",
            (true, Role::Sender) => "party other than the leader",
        };
        let can = match (role, terms.malicious_sender && self.malicious_sender) {
            (Role::Sender, true) => deviating::WITHSTOOD,
            (Role::Receiver | Role::Sender, _) => self.deviations[role as usize],
        };
        format!("A {who} that deviates can {can}.")
    }

    /// Whether sets of these sizes in the protocol, the receiver's first, are not too large.
    pub fn takes(&self, sizes: [usize; 2]) -> bool {
        sizes.iter().zip(self.largest).all(|(size, largest)| *size <= largest)
    }

    /// Returns an offer against semi-honest parties that may always be picked, shows no count, inserts no dummies and has no
    /// attachments.
    pub(super) const fn of(operation: &'static Operation, order: u8, deviations: [&'static str; 2]) -> Offer {
        Offer {
            operation,
            deviations,
            order,
            unasked: Unasked::Yes,
            malicious_sender: false,
            reveals_count: false,
            inserts_list: false,
            attachments: &[],
            largest: [MAX_SET; 2],
        }
    }
}

/// A way to compute an operation: a protocol, and the group it works in, or the encryption in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The protocol.
    pub protocol: &'static Protocol,
    /// One of the names of [`Protocol::works_in`].
    pub group: &'static str,
}

impl Choice {
    /// Returns the protocol in its default group.
    pub const fn of(protocol: &'static Protocol) -> Choice {
        Choice { protocol, group: protocol.group() }
    }

    /// Returns the protocol and the group with these names.
    ///
    /// # Errors
    /// A sentence that states the unknown name and the names of the protocols, or of the protocol's groups, or says how to
    /// build the program with this protocol.
    pub fn named(protocol: &str, group: &str) -> Result<Choice, String> {
        let protocol = named(protocol)?;
        let found = protocol.works_in().find(|name| *name == group);
        let none = || {
            let those: Vec<_> = protocol.works_in().collect();
            format!("\"{group}\" is not a group of {protocol}: {}", those.join(", "))
        };
        Ok(Choice { protocol, group: found.ok_or_else(none)? })
    }

    /// The hard problems that an operation rests on if it is computed with this choice.
    pub fn rests_on(self, operation: &Operation) -> Vec<Assumption> {
        let over = operation.over_union.iter().flat_map(|over| over.rests_on);
        let mut all: Vec<Assumption> =
            (self.protocol.rests_on)(self.group).iter().chain(over).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the first of the problems of [`Choice::rests_on`] that is not in `allowed`, if any. If `allowed` is `None`, all
    /// are allowed.
    pub fn beyond(self, operation: &Operation, allowed: Option<&[Assumption]>) -> Option<Assumption> {
        self.rests_on(operation).into_iter().find(|one| allowed.is_some_and(|allowed| !allowed.contains(one)))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group == self.protocol.group() {
            true => f.write_str(self.protocol.name),
            false => write!(f, "{} over {}", self.protocol, self.group),
        }
    }
}
