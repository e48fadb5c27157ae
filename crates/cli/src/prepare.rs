//! `veilset prepare`: the offline half of a run.

use crate::data;
use crate::party::{Interrupt, load_identity, sayer, start_threads};
use crate::plan::PreparePlan;
use veilset::error::Result;
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
        listed: plan.union_sender,
    };
    let ledger = Ledger::at(&plan.ledger);
    let stop = || interrupt.happened();
    offline::prepare(&basis, &ledger, &identity, &mut output, &stop, &mut Prng::from_os()?)?;
    output.commit()?;
    say(&format!("made {}, for one run with the same input and --prepared {0}", plan.output.display()));
    Ok(())
}
