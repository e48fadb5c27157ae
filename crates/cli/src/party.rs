//! One party's run, from its file to its result.

use crate::interrupt::Interrupt;
use crate::print;
use crate::terminal::Terminal;
use std::io::Write;
use veilset::error::{Error, Result};
use veilset::party::{PartySpec, Ran};
use veilset_app::check_text;
use veilset_app::front::{Files, Purpose, Ready, going_on, ready};
use veilset_app::plan::PartyPlan;
use veilset_app::words::{about, as_options};

/// Carries out the plan.
pub fn run(plan: PartyPlan, purpose: Purpose) -> Result<()> {
    let me = plan.party.spec.parties.clone();
    carry_out(plan, purpose).inspect_err(|error| {
        for about in me.iter().flat_map(|me| about(me, error)) {
            let _ = writeln!(std::io::stderr(), "{about}");
        }
    })
}

fn carry_out(mut plan: PartyPlan, purpose: Purpose) -> Result<()> {
    // This comes first: from here on, a signal ends the program gracefully.
    let interrupt = Interrupt::install(plan.quiet)?;
    plan.begin(purpose)?;
    let party = &plan.party;
    let terminal = Terminal::new(plan.quiet, Some(&party.source), &interrupt);
    ready(&plan, PartySpec::load, &terminal, |party| {
        // Created before any other party is contacted.
        let files = party.files()?;
        match purpose {
            Purpose::Run => finish(party, files, &interrupt),
            Purpose::Check => {
                let (checked, estimate) = party.check()?;
                print(as_options(&check_text(&checked, &estimate, &plan)))
            }
        }
    })
}

/// Runs the protocol, and writes the result.
fn finish(ready: Ready<'_>, files: Files, interrupt: &Interrupt) -> Result<()> {
    let (plan, data, kept) = (ready.plan, ready.data, ready.kept);
    let party = &plan.party;
    let say = printer(plan.quiet);
    let Ran { outcome, mut report, logged, .. } = ready.run()?;
    let there = || match (&plan.report, &logged) {
        (None, Ok(())) => interrupt.done(0, done(party)),
        _ => interrupt
            .done(7, format!("{}, but its report or its line in the log may be missing", done(party))),
    };
    // The time for writing depends on the result, so the result is written after the peer has left.
    match files.output {
        Some(mut output) => {
            let write = || -> Result<()> {
                data.write(&outcome, &mut output)?;
                if let Some(mut ids) = files.ids {
                    data.write_beside(&outcome, &mut ids)?;
                    ids.commit()?;
                }
                if let Some(mut map) = files.map {
                    data.write_beside(&outcome, &mut map)?;
                    map.commit()?;
                }
                output.commit_telling(there)
            };
            write().map_err(|error| going_on(kept, error))?;
        }
        None => there(),
    }
    data.complete(&mut report);
    let reported = plan.write_report(&report, files.report);
    if reported.is_ok() && logged.is_ok() {
        interrupt.done(0, done(party));
    }
    say(report.marked_text().trim_end());
    if let Some(path) = party.output.as_deref().filter(|_| party.has_result()) {
        say(&format!("  The result is in {}.", path.display()));
    }
    if let Some(path) = &party.map {
        say(&format!("  Which share belongs to which of our rows is in {}.", path.display()));
    }
    if let Some(path) = &party.ids {
        say(&format!("  The list of all identifiers is in {}.", path.display()));
    }
    let cleared = match (kept, &party.folder) {
        (Some(kept), _) if party.has_result() => kept.leftover().delete().map(|left| {
            left.iter().for_each(|left| say(&format!("  {left}.")));
        }),
        (Some(_), Some(folder)) => {
            say(&format!(
                "  The job's folder, {}, can be deleted when the other party has its result.",
                folder.display()
            ));
            Ok(())
        }
        _ => Ok(()),
    };
    // A failure after the result was written must not look as if there were no result.
    [reported, logged, cleared].into_iter().collect::<Result<()>>().map_err(|e| match e {
        Error::Output(what) => Error::output(format!("{}, but {}", done(party), what.marked())),
        e => {
            let _ = writeln!(std::io::stderr(), "veilset: {}", done(party));
            e
        }
    })
}

/// Returns the message that the run is done, with the location of its result.
fn done(party: &PartySpec) -> String {
    match (party.has_result(), &party.output) {
        (false, _) => "the run is done".into(),
        (true, None) => "the run is done and its result written to standard output".into(),
        (true, Some(path)) => format!("the run is done and its result is in {}", path.display()),
    }
}

/// Returns a function that prints a line for the user, unless the program is quiet.
pub fn printer(quiet: bool) -> impl Fn(&str) {
    move |line| {
        if !quiet {
            // A run continues even if this cannot be printed.
            let _ = writeln!(std::io::stderr(), "{}", as_options(line));
        }
    }
}
