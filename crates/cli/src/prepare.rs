//! `veilset prepare`: the offline half of a run.

use crate::interrupt::Interrupt;
use crate::party::{load_identity, sayer, start_threads, tell, words};
use crate::plan::PreparePlan;
use crate::progress::{Life, Progress};
use veilset::artefact::{self, Basis, Ledger};
use veilset::channel::{Observer, Unit};
use veilset::error::Result;
use veilset::hashed::Dummies;
use veilset::job::{Phase, Watch};
use veilset::rng::Prng;
use veilset::table::Destination;

pub fn run(plan: &PreparePlan) -> Result<()> {
    let interrupt = Interrupt::install(plan.quiet)?;
    let threads = start_threads(plan.threads)?;
    Destination::check(Some(&plan.output), plan.force)?;
    let say = sayer(plan.quiet);
    let source = &plan.source;
    let identity = load_identity(plan.identity.as_deref())?;
    let life = Life::begin(plan.quiet, words(Phase::Reading, source));
    let read = |bytes| {
        life.read(bytes);
        interrupt.check()
    };
    let keys =
        source.load(&Watch { read: &read, begins: &|phase| life.next(words(phase, source)) }, &threads)?;
    drop(life);
    tell(&keys, "omitted", &say);
    let stop = interrupt.clone();
    let mut output =
        Destination::create("prepared half", Some(&plan.output), plan.force)?.watched(move || stop.check());
    let basis = Basis {
        set: &keys.keyed.set,
        key_columns: keys.columns.len(),
        normalisation: &keys.compared,
        pad_to: source.pad_to,
        dummies: if plan.union_sender { Dummies::Listed } else { Dummies::Random },
        group: plan.group,
        threads: &threads,
    };
    let progress = (!plan.quiet).then(|| Progress::new(1));
    progress.iter().for_each(|progress| progress.stage("preparing", Unit::Items, basis.announced()));
    let step = |points| {
        progress.iter().for_each(|progress| progress.advance(Unit::Items, points));
        interrupt.check()
    };
    let ledger = Ledger::at(&plan.ledger);
    let done = artefact::prepare(&basis, &ledger, &identity, &mut output, &step, &mut Prng::from_os()?);
    progress.iter().for_each(|progress| progress.end(done.is_ok()));
    done?;
    let made = format!("made {}, for one run with the same input and --prepared {0}", plan.output.display());
    output.commit_telling(|| interrupt.done(0, made.clone()))?;
    say(&made);
    Ok(())
}
