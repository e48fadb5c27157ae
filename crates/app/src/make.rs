//! Preparation that our side does alone, shared by all front ends: prepared halves, and encrypted filters.

use crate::filter::FilterPlan;
use crate::front::{Front, go_on, load_identity, start_threads};
use crate::options::Wanted;
use crate::prepare::HalfPlan;
use crate::words::tell;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use veilset::artefact::filter::About;
use veilset::channel::Unit;
use veilset::error::{Error, Result};
use veilset::net::Identity;
use veilset::party::{InputTable, KeyedTable, Watch};
use veilset::table::Table;
use veilset::threads::Threads;

/// Something to make, or a filter to inspect.
#[derive(Debug)]
pub struct MakePlan {
    what: What,
    own: Own,
}

#[derive(Debug)]
enum What {
    Half(HalfPlan),
    Filter(FilterPlan),
}

/// The settings of our side: identity, threads, and output.
#[derive(Debug)]
pub(crate) struct Own {
    pub identity: Option<PathBuf>,
    pub threads: usize,
    pub quiet: bool,
}

/// The result of a [`MakePlan`].
#[derive(Debug)]
pub enum Made {
    /// A half, a filter, or the public part of one.
    File,
    /// A filter, with the number of items inserted.
    Inserted(usize),
    /// The parameters of a filter, and their description in words.
    About(Box<About>, String),
}

impl MakePlan {
    /// Plans `prepare`, or a command of `filter`.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn of(wanted: Wanted) -> Result<MakePlan> {
        match wanted {
            Wanted::Prepare(a) => HalfPlan::of(a).map(|(plan, own)| MakePlan { what: What::Half(plan), own }),
            Wanted::Filter(command) => {
                FilterPlan::of(command).map(|(plan, own)| MakePlan { what: What::Filter(plan), own })
            }
            Wanted::Operation(_) => {
                Err(Error::Usage("this makes nothing in advance. Use prepare or filter".into()))
            }
        }
    }

    /// Returns whether only errors are printed.
    pub fn is_quiet(&self) -> bool {
        self.own.quiet
    }

    /// Returns the source table; `None` if the plan works on an existing filter.
    pub fn source(&self) -> Option<&InputTable> {
        match &self.what {
            What::Half(plan) => Some(&plan.source),
            What::Filter(plan) => plan.source(),
        }
    }
}

/// Carries out the plan. `table` reads the source's table; its second argument names the columns that are needed.
///
/// # Errors
/// [`Error::Usage`], [`Error::Input`] and [`Error::Output`]; [`Error::Cancelled`] if the front end requests a stop.
pub fn make(
    plan: &MakePlan,
    table: impl FnOnce(&InputTable, Option<&[String]>, &Watch<'_>) -> Result<Table>,
    front: &dyn Front,
) -> Result<Made> {
    let own = &plan.own;
    let work = Work { own, threads: start_threads(own.threads)?, front, stop: front.stop() };
    match &plan.what {
        What::Half(plan) => plan.make(&work, table).map(|()| Made::File),
        What::Filter(plan) => plan.make(&work, table),
    }
}

/// The resources for carrying out a plan.
pub(crate) struct Work<'w> {
    own: &'w Own,
    pub threads: Threads,
    pub front: &'w dyn Front,
    pub stop: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Work<'_> {
    /// Called at each step: returns an error if the work is to stop.
    pub(crate) fn go_on(&self) -> Result<()> {
        go_on(&*self.stop)
    }

    pub(crate) fn identity(&self) -> Result<Identity> {
        load_identity(self.own.identity.as_deref(), &mut |line| self.front.warn(line))
    }

    /// Reads the keys of a source.
    pub(crate) fn keys(
        &self,
        source: &InputTable,
        table: impl FnOnce(&InputTable, Option<&[String]>, &Watch<'_>) -> Result<Table>,
    ) -> Result<KeyedTable> {
        let read = |bytes| {
            self.front.read(bytes);
            self.go_on()
        };
        let watch = Watch { read: &read, begins: &|phase| self.front.phase(Some(phase)) };
        let keys = source.keys_of(table(source, Some(&source.key), &watch)?, &watch, &self.threads);
        self.front.phase(None);
        let keys = keys?;
        tell(&keys.facts(), "omitted", &|line| self.front.say(line), &|line| self.front.warn(line));
        Ok(keys)
    }

    /// Shows the progress of a long step: `make` reports the items that are done, and their total.
    pub(crate) fn shown<T>(
        &self,
        name: &'static str,
        make: impl FnOnce(&dyn Fn(u64, u64) -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        let observer = self.front.observer();
        let before = Cell::new(None);
        let step = |done: u64, of: u64| {
            if let Some(observer) = &observer {
                if before.get().is_none() {
                    observer.stage(name, Unit::Items, of as usize);
                }
                let earlier: u64 = before.replace(Some(done)).unwrap_or_default();
                observer.advance(Unit::Items, (done - earlier) as usize, 0);
            }
            self.go_on()
        };
        let made = make(&step);
        self.front.ends(made.is_ok());
        made
    }
}
