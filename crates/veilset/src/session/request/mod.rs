//! What a party wants computed, and with which data.

mod checks;
mod prepared;

pub use prepared::Prepared;
pub(super) use prepared::{Attached, Ours};

use super::{Hello, Planning, Spec};
use crate::artefact::Basis;
use crate::error::{Error, Result};
use crate::hashed::Dummies;
use crate::item::{ItemSet, Items};
use crate::operations::{Announced, Operation, Role};
use crate::params::{MAX_SET, SMALL_SET};
use crate::planner::Choices;
use crate::protocols::Choice;
use crate::sharded::run as shards;
use crate::sharded::set::Set;
use crate::threads::Threads;

/// A request: what to compute, our data, and what our side decides for itself.
#[derive(Clone)]
pub struct Request<'a> {
    /// What to compute.
    pub spec: Spec,
    /// Our data.
    pub input: Input<'a>,
    /// What our side decides for itself.
    pub local: Local,
}

/// The data of one party.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Our set. A run in shards may have it on disk; then its payloads are there too.
    pub set: Set<'a>,
    /// Number of key columns that make up an item.
    pub key_columns: usize,
    /// How keys were normalised and encoded, as a description that must be the same on both sides.
    pub normalisation: &'a str,
    /// The size to which our set is padded with dummies, so that the peer learns this size instead of the real one.
    pub pad_to: Option<usize>,
    /// For the sender of columns: their cells for each item, encoded like a key. Otherwise empty.
    pub payloads: &'a Items,
    /// For a sender with values (sum, and share if it shares them): a value for each item, in units of 10^-`value_scale`.
    /// Otherwise empty.
    pub values: &'a [i128],
}

/// What each side decides for itself. Of this, the peer is told only the speeds.
#[derive(Debug, Clone)]
pub struct Local {
    /// How the receiver picks one of the candidates that both allow, and how fast our side is; `None` for the first of them.
    pub planning: Option<Planning>,
    /// The largest size of the peer's set that we accept: it determines our time and memory.
    pub max_peer_items: usize,
    /// The threads that our side computes on, before and during the run.
    pub threads: Threads,
}

impl Default for Local {
    /// Accepts any size of the peer's set, and uses all threads of the program.
    fn default() -> Local {
        Local { planning: None, max_peer_items: MAX_SET, threads: Threads::global().clone() }
    }
}

impl<'a> From<Set<'a>> for Input<'a> {
    /// Keys of one column, compared as they are, without payload, values or padding.
    fn from(set: Set<'a>) -> Input<'a> {
        let payloads = const { &Items::new() };
        Input { set, key_columns: 1, normalisation: "none", pad_to: None, payloads, values: &[] }
    }
}

impl<'a> From<&'a ItemSet> for Input<'a> {
    fn from(set: &'a ItemSet) -> Input<'a> {
        Set::from(set).into()
    }
}

impl Input<'_> {
    /// The announcement of our set.
    pub fn announced(&self) -> Announced {
        Announced { size: self.pad_to.unwrap_or(self.set.len()), padded: self.pad_to.is_some() }
    }
}

impl<'a> Request<'a> {
    /// A plain request ([`Spec::new`]) with this data.
    pub fn new(operation: &'static Operation, role: Role, input: impl Into<Input<'a>>) -> Self {
        Request { spec: Spec::new(operation, role), input: input.into(), local: Local::default() }
    }

    /// A copy with these changes.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut request = self.clone();
        change(&mut request);
        request
    }

    /// The size that we announce to the peer.
    pub fn announced(&self) -> usize {
        self.input.announced().size
    }

    /// What we announce, if that is a small set and we learn something of the other party's rows: many refuse it.
    pub(super) fn announces_few(&self) -> Option<Announced> {
        let announced = self.input.announced();
        let learns = self.spec.operation.shows(self.spec.role, &self.spec.agreed_terms());
        (announced.size < SMALL_SET && learns).then_some(announced)
    }

    /// Our set, if it is in memory.
    ///
    /// # Errors
    /// [`Error::Bug`] for one that is not, which is for a run in shards.
    pub fn whole(&self) -> Result<&'a ItemSet> {
        match self.input.set {
            Set::Memory(set) => Ok(set),
            Set::Disk(_) | Set::Workers(_) => {
                Err(Error::Bug("a set that is not in memory is for a run in shards".into()))
            }
        }
    }

    /// What determines our set and its padding.
    ///
    /// # Errors
    /// Those of [`Request::whole`].
    pub fn basis(&self) -> Result<Basis<'a>> {
        Ok(self.basis_of(self.whole()?))
    }

    fn basis_of(&self, set: &'a ItemSet) -> Basis<'a> {
        let Input { key_columns, normalisation, pad_to, .. } = self.input;
        Basis {
            set,
            key_columns,
            normalisation,
            pad_to,
            // Among several parties no dummy has a row.
            dummies: match self.spec.several() {
                false => self.spec.operation.dummies(self.spec.role),
                true => Dummies::Random,
            },
            group: self.spec.candidates.first.group,
            threads: self.local.threads.clone(),
        }
    }

    /// The choices that we allow at the size of our set, in order of preference, without repetition.
    pub fn candidates(&self) -> Choices {
        let Spec { operation, role, candidates, terms, .. } = &self.spec;
        let mut all = Choices::from(candidates.first);
        candidates.iter().for_each(|choice| {
            if !all.contains(choice) {
                all.others.push(choice);
            }
        });
        if self.local.planning.is_none() {
            return all;
        }
        // What is not for a set of our size is not picked; if nothing is left, the first says why.
        let ours = match terms.shards {
            0 => self.announced(),
            number => shards::bound(self.announced(), number),
        };
        let sizes = if *role == Role::Receiver { [ours, 0] } else { [0, ours] };
        let takes = |choice: &Choice| choice.protocol.offer(operation).is_none_or(|offer| offer.takes(sizes));
        all.kept(takes).unwrap_or(all)
    }

    /// What the other side must have been asked for too. With `check`, both only find out whether a run is possible.
    pub fn hello(&self, check: bool) -> Hello {
        let planning = self.local.planning.filter(|_| !self.spec.several());
        Hello {
            spec: Spec { candidates: self.candidates(), ..self.spec.agreed() },
            check,
            key_columns: self.input.key_columns,
            normalisation: self.input.normalisation.into(),
            padded: self.input.pad_to.is_some(),
            filter: None,
            job: None,
            workers: matches!(self.input.set, Set::Workers(_)),
            speeds: planning.map(|planning| planning.speeds),
        }
    }
}
