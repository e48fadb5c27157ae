//! `veilset prepare`: the offline half of a run.

use crate::front::go_on;
use crate::make::{Own, Work};
use crate::options::PrepareArgs;
use crate::plan::{identity_path, source, threads};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use veilset::artefact::{self, Basis, Ledger};
use veilset::error::{Error, Result};
use veilset::hashed::Dummies;
use veilset::party::{InputTable, Watch};
use veilset::paths::Use;
use veilset::rng::Prng;
use veilset::spelling::{IDENTITY, OUTPUT, PREPARED, PREPARED_LEDGER};
use veilset::table::{Destination, Table};

/// A half to be prepared.
#[derive(Debug)]
pub(crate) struct HalfPlan {
    pub source: InputTable,
    ledger: PathBuf,
    output: PathBuf,
    force: bool,
    dummies: Dummies,
    group: &'static str,
}

impl HalfPlan {
    pub(crate) fn of(a: PrepareArgs) -> Result<(HalfPlan, Own)> {
        let source = source(a.input, false)?;
        if a.output == Path::new("-") {
            return Err(Error::usage(format!(
                "a prepared half is deleted when it is used, so it must be a file. Give {OUTPUT} a file name"
            )));
        }
        let ledger = a.prepared_ledger.map_or_else(Ledger::default_path, Ok)?;
        let paths = source.paths()?.with(OUTPUT.marked(), Use::Written, Some(&a.output));
        let paths = paths.with(PREPARED_LEDGER.marked(), Use::Written, Some(&ledger));
        paths.with(IDENTITY.marked(), Use::Read, identity_path(a.identity.as_deref()).as_deref()).check()?;
        let dummies = if a.union_sender { Dummies::Listed } else { Dummies::Random };
        let plan = HalfPlan { source, ledger, output: a.output, force: a.force, dummies, group: a.group };
        Ok((plan, Own { identity: a.identity, threads: threads(a.threads), quiet: a.quiet }))
    }

    pub(crate) fn make(
        &self,
        work: &Work<'_>,
        table: impl FnOnce(&InputTable, Option<&[String]>, &Watch<'_>) -> Result<Table>,
    ) -> Result<()> {
        let HalfPlan { source, output, force, .. } = self;
        Destination::check(Some(output), *force)?;
        let identity = work.identity()?;
        let keys = work.keys(source, table)?;
        let stop = work.stop.clone();
        let mut to =
            Destination::create("prepared half", Some(output), *force)?.watched(move || go_on(&*stop));
        let basis = Basis {
            set: &keys.keyed.set,
            key_columns: keys.columns.len(),
            normalisation: &keys.compared,
            pad_to: source.pad_to,
            dummies: self.dummies,
            group: self.group,
            threads: work.threads.clone(),
        };
        let ledger = Ledger::at(&self.ledger);
        work.shown("preparing", |step| {
            let all = basis.announced() as u64;
            let done = Cell::new(0);
            let step = |points| {
                done.set(done.get() + points as u64);
                step(done.get(), all)
            };
            step(0)?;
            artefact::prepare(&basis, &ledger, &identity, &mut to, &step, &mut Prng::from_os()?)
        })?;
        let made = format!("made {}, for one run with the same input and {PREPARED} {0}", output.display());
        to.commit_telling(|| work.front.done(made.clone()))?;
        work.front.say(&made);
        Ok(())
    }
}
