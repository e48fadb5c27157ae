//! `veilset prepare`: the offline half of a run.

use crate::data;
use crate::party::{Interrupt, load_identity, sayer, start_threads};
use crate::plan::PreparePlan;
use crate::progress::Progress;
use veilset::channel::{Observer, Unit};
use veilset::error::{Error, Result};
use veilset::hashed::Dummies;
use veilset::rng::Prng;
use veilset::session::offline::{self, Basis, Ledger};
use veilset::table::{Output, Table};

pub fn run(plan: &PreparePlan) -> Result<()> {
    start_threads(plan.threads)?;
    let say = sayer(plan.quiet);
    let source = &plan.source;
    let identity = load_identity(plan.identity.as_deref())?;
    let table = Table::read(&source.input, &source.read, Some(&source.key))?;
    let (key, keyed) = data::keys(&table, source)?;
    data::tell(&table, &keyed, source, &say);
    let interrupt = Interrupt::install()?;
    let mut output = Output::create("prepared half", Some(&plan.output), plan.force)?;
    let basis = Basis {
        set: &keyed.set,
        key_columns: key.len(),
        normalisation: &source.normalise.name(source.read.encoding),
        pad_to: source.pad_to,
        dummies: if plan.union_sender { Dummies::Listed } else { Dummies::Random },
    };
    let progress = (!plan.quiet).then(Progress::new);
    progress.iter().for_each(|progress| progress.stage("preparing", Unit::Items, basis.announced()));
    let step = |points| {
        progress.iter().for_each(|progress| progress.advance(Unit::Items, points));
        if interrupt.happened() { Err(Error::Cancelled) } else { Ok(()) }
    };
    let ledger = Ledger::at(&plan.ledger);
    let done = offline::prepare(&basis, &ledger, &identity, &mut output, &step, &mut Prng::from_os()?);
    progress.iter().for_each(Progress::end);
    done?;
    output.commit()?;
    say(&format!("made {}, for one run with the same input and --prepared {0}", plan.output.display()));
    Ok(())
}
