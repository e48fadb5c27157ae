//! A request: the computation that a party wants, and the data for it.

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

/// A request: the computation, our data, and the settings that our side decides for itself.
#[derive(Clone)]
pub struct Request<'a> {
    /// The computation.
    pub spec: Spec,
    /// Our data.
    pub input: Input<'a>,
    /// The settings that our side decides for itself.
    pub local: Local,
}

/// The data of one party.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Our set. In a run in shards it may be on disk or with workers, and then its payloads are there too.
    pub set: Set<'a>,
    /// The number of key columns that make up an item.
    pub key_columns: usize,
    /// A description of how keys were normalised and encoded. It must be the same on both sides.
    pub normalisation: &'a str,
    /// The size to which our set is padded with dummies, so that other parties learn this size instead of the real one.
    pub pad_to: Option<usize>,
    /// For the sender of columns, if its set is in memory: the cells of each item in these columns, encoded like a key.
    /// Otherwise empty.
    pub payloads: &'a Items,
    /// For a sender with values (in sum, and in share if it shares values): a value for each item, in units of
    /// 10^-`value_scale`. Otherwise empty.
    pub values: &'a [i128],
}

/// The settings that each side decides for itself. Other parties are told only the speeds.
#[derive(Debug, Clone)]
pub struct Local {
    /// The speed of our side, and the receiver's preference among the candidates that both sides allow; `None` to take the
    /// first.
    pub planning: Option<Planning>,
    /// The largest set of another party that we accept. Its size determines the time and memory that our side needs.
    pub max_peer_items: usize,
    /// The threads that our side computes on, before and during the run.
    pub threads: Threads,
}

impl Default for Local {
    /// Accepts any supported size of another party's set, does not plan, and uses all threads of the program.
    fn default() -> Local {
        Local { planning: None, max_peer_items: MAX_SET, threads: Threads::global().clone() }
    }
}

impl<'a> From<Set<'a>> for Input<'a> {
    /// Makes an input with keys of one column, compared as they are, without payloads, values or padding.
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
    /// Returns our announcement about the set.
    pub fn announced(&self) -> Announced {
        Announced { size: self.pad_to.unwrap_or(self.set.len()), padded: self.pad_to.is_some() }
    }
}

impl<'a> Request<'a> {
    /// Makes a plain request ([`Spec::new`]) with this data.
    pub fn new(operation: &'static Operation, role: Role, input: impl Into<Input<'a>>) -> Self {
        Request { spec: Spec::new(operation, role), input: input.into(), local: Local::default() }
    }

    /// Returns a copy with these changes.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut request = self.clone();
        change(&mut request);
        request
    }

    /// Returns the size that we announce to the other parties.
    pub fn announced(&self) -> usize {
        self.input.announced().size
    }

    /// Returns our announcement if it is of a small set and we learn something about the items of others. Many parties refuse
    /// that.
    pub(super) fn announces_few(&self) -> Option<Announced> {
        let announced = self.input.announced();
        let learns = self.spec.operation.shows(self.spec.role, &self.spec.agreed_terms());
        (announced.size < SMALL_SET && learns).then_some(announced)
    }

    /// Returns our set, if it is in memory.
    ///
    /// # Errors
    /// [`Error::Bug`] if it is not in memory, which is only possible in a run in shards.
    pub fn whole(&self) -> Result<&'a ItemSet> {
        match self.input.set {
            Set::Memory(set) => Ok(set),
            Set::Disk(_) | Set::Workers(_) => {
                Err(Error::Bug("a set that is not in memory is for a run in shards".into()))
            }
        }
    }

    /// Returns everything that determines our set and its padding.
    ///
    /// # Errors
    /// The errors of [`Request::whole`].
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
            // Among several parties, dummies have no rows.
            dummies: match self.spec.several() {
                false => self.spec.operation.dummies(self.spec.role),
                true => Dummies::Random,
            },
            group: self.spec.candidates.first.group,
            threads: self.local.threads.clone(),
        }
    }

    /// Returns the choices that we allow, in order of preference, without repetition. If our side plans, choices that do not
    /// take a set of our size are left out, unless no other is left.
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
        // A choice that does not take a set of our size must not be picked. If none is left, the check of the first states
        // the reason.
        let ours = match terms.shards {
            0 => self.announced(),
            number => shards::bound(self.announced(), number),
        };
        let sizes = if *role == Role::Receiver { [ours, 0] } else { [0, ours] };
        let takes = |choice: &Choice| choice.protocol.offer(operation).is_none_or(|offer| offer.takes(sizes));
        all.kept(takes).unwrap_or(all)
    }

    /// Returns the hello for this request. With `check`, the parties only find out whether a run is possible. The hello names
    /// no filter and no earlier job.
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
