//! What a party wants computed, and with which data.

mod checks;
mod prepared;

pub(super) use prepared::Ours;
pub use prepared::Prepared;

use super::{Hello, Planning, Proposal};
use crate::artefact::Basis;
use crate::artefact::filter;
use crate::error::{Error, Result};
use crate::hashed::{Dummies, HashedSet};
use crate::item::Items;
use crate::net::Me;
use crate::operations::{Announced, Operation, Role, Rows, Task, Terms, Uses};
use crate::params::{MAX_SET, SMALL_SET};
use crate::protocols::{self, Choice, Protocol};
use crate::sharded::disk::Form;
use crate::sharded::run as shards;
use crate::sharded::set::Set;
use crate::threads::Threads;

/// A request: what to compute, and our data.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The operation to compute.
    pub operation: &'static Operation,
    /// Our role in it.
    pub role: Role,
    /// The protocol that we prefer.
    pub protocol: &'static Protocol,
    /// The group that the protocol works in; `None` stands for the protocol's first.
    pub group: Option<&'static str>,
    /// Further choices that we allow, in order of preference. The receiver's order decides, unless it plans.
    pub alternatives: &'a [Choice],
    /// How the receiver picks one of those that both allow, and how fast our side is; `None` for the first of them.
    pub planning: Option<Planning>,
    /// Our set. A job in shards may have it on disk; then its payloads are there too.
    pub set: Set<'a>,
    /// Number of key columns that make up an item.
    pub key_columns: usize,
    /// How keys were normalised and encoded, as a description that must be the same on both sides.
    pub normalisation: &'a str,
    /// The largest size of the peer's set that we accept: it determines our time and memory.
    pub max_peer_items: usize,
    /// The size to which our set is padded with dummies, so that the peer learns this size instead of the real one.
    pub pad_to: Option<usize>,
    /// For intersect and union: the columns sent with the sender's items, by the sender's names.
    pub sent_columns: &'a [String],
    /// For the sender of such columns: their cells for each item, encoded like a key. Otherwise empty.
    pub payloads: &'a Items,
    /// For a sender with values (sum, and share if it shares them): a value for each item, in units of 10^-`value_scale`.
    /// Otherwise empty.
    pub values: &'a [i128],
    /// For sum and share: the decimal places of the values.
    pub value_scale: u32,
    /// The other terms that must be the same on both sides. `payload` follows from `sent_columns`.
    pub terms: Terms,
    /// The parties of a run of several, and which we are; `None` in a run of two. The leader has the role of receiver, and
    /// all others that of sender.
    pub parties: Option<&'a Me>,
    /// The threads that our side computes on, before and during the run. The peer is not told.
    pub threads: &'a Threads,
}

impl<'a> Request<'a> {
    /// A plain request: keys of one column, compared as they are, without payload, values or padding. Rows have at most
    /// 64 bytes. It uses the default protocol and all threads of the program, and accepts any size of the peer's set.
    pub fn new(operation: &'static Operation, role: Role, set: impl Into<Set<'a>>) -> Self {
        Request {
            operation,
            role,
            protocol: protocols::default_for(operation, &Terms::default()),
            group: None,
            alternatives: &[],
            planning: None,
            set: set.into(),
            key_columns: 1,
            normalisation: "none",
            max_peer_items: MAX_SET,
            pad_to: None,
            sent_columns: &[],
            payloads: const { &Items::new() },
            values: &[],
            value_scale: 0,
            terms: Terms { max_row: 64, ..Terms::default() },
            parties: None,
            threads: Threads::global(),
        }
    }

    /// The group that the protocol works in.
    pub fn group(&self) -> &'static str {
        self.group.unwrap_or(self.protocol.group())
    }

    /// The size that we announce to the peer.
    pub fn announced(&self) -> usize {
        self.pad_to.unwrap_or(self.set.len())
    }

    /// What we announce, if that is a small set and we learn something of the other party's rows: many refuse it.
    pub(super) fn announces_few(&self) -> Option<Announced> {
        let announced = Announced { size: self.announced(), padded: self.pad_to.is_some() };
        let learns = self.operation.shows(self.role, &self.terms());
        (announced.size < SMALL_SET && learns).then_some(announced)
    }

    /// Whether our items have payloads.
    pub(crate) fn sends_payloads(&self) -> bool {
        self.role == Role::Sender && !self.sent_columns.is_empty()
    }

    /// What a set on disk has of each item, for a job in shards.
    pub fn form(&self) -> Form {
        let terms = self.terms();
        let items = self.operation.uses.items_in_rows(self.role, &terms);
        Form { items, row: (items || self.sends_payloads()).then_some(terms.max_row) }
    }

    /// What determines our set and its padding.
    ///
    /// # Errors
    /// [`Error::Bug`] for a set on disk.
    pub fn basis(&self) -> Result<Basis<'a>> {
        let Set::Memory(set) = self.set else {
            return Err(Error::Bug("a set that is not in memory is for a job in shards".into()));
        };
        Ok(Basis {
            set,
            key_columns: self.key_columns,
            normalisation: self.normalisation,
            pad_to: self.pad_to,
            // Among several parties no dummy has a row.
            dummies: match self.parties {
                None => self.operation.dummies(self.role),
                Some(_) => Dummies::Random,
            },
            group: self.group(),
            threads: self.threads,
        })
    }

    /// The terms, with those that the operation does not use set to 0 or their default.
    pub(super) fn terms(&self) -> Terms {
        let Terms {
            max_row, both, modulus, min_count, malicious_sender, reveal_count, shared_values, ..
        } = self.terms;
        let payload = !self.sent_columns.is_empty();
        let Uses { rows, values, shares, .. } = self.operation.uses;
        let rows = rows == Rows::Items || payload || shares;
        Terms {
            payload,
            max_row: if rows { max_row } else { 0 },
            both,
            modulus: if values { modulus } else { Default::default() },
            min_count: if values { min_count } else { 0 },
            malicious_sender,
            reveal_count,
            shared_values: shares && shared_values && self.role == Role::Sender,
            several: self.parties.is_some(),
            bare: false,
            filter: self.terms.filter,
            shards: self.terms.shards,
        }
    }

    /// All choices that we allow, in order of preference, without repetition.
    pub fn candidates(&self) -> Vec<Choice> {
        let mut all = vec![Choice { protocol: self.protocol, group: self.group() }];
        self.alternatives.iter().for_each(|choice| {
            if !all.contains(choice) {
                all.push(*choice);
            }
        });
        if self.planning.is_some() {
            // What is not for a set of our size is not picked; if nothing is left, the first says why.
            let ours = match self.terms.shards {
                0 => self.announced(),
                number => shards::bound(self.announced(), number),
            };
            let sizes = if self.role == Role::Receiver { [ours, 0] } else { [0, ours] };
            let takes = |choice: &Choice| {
                choice.protocol.offer(self.operation).is_none_or(|offer| offer.takes(sizes))
            };
            if all.iter().any(takes) {
                all.retain(takes);
            }
        }
        all
    }

    /// What is computed with this set, by what all have agreed on.
    pub(super) fn task<'s>(
        &'s self,
        proposal: &Proposal,
        set: &'s HashedSet<'s>,
        filter: Option<&'s filter::Opened>,
    ) -> Task<'s> {
        Task {
            operation: self.operation,
            role: self.role,
            group: proposal.choice.group,
            set,
            values: self.values,
            payloads: self.payloads,
            terms: proposal.hello.terms,
            filter: filter.map(|filter| &filter.stored),
        }
    }

    /// What the other side must have been asked for too. With `check`, both only find out whether a run is possible.
    /// Terms that the operation does not use are 0.
    pub fn hello(&self, check: bool) -> Hello {
        Hello {
            operation: self.operation,
            role: self.role,
            check,
            candidates: self.candidates(),
            key_columns: self.key_columns as u32,
            normalisation: self.normalisation.into(),
            sent_columns: self.sent_columns.to_vec(),
            value_scale: if self.operation.uses.values || self.operation.uses.shares {
                self.value_scale
            } else {
                0
            },
            terms: self.terms(),
            padded: self.pad_to.is_some(),
            list: self.parties.map(|me| me.roster().digest()),
            filter: None,
            job: None,
            workers: matches!(self.set, Set::Remote(_)),
            speeds: self.planning.filter(|_| self.parties.is_none()).map(|planning| planning.speeds),
        }
    }
}
