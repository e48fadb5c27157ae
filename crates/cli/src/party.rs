//! One party's run, from its file to its result.

use crate::check;
use crate::front::{Files, Ready, going_on, ready};
use crate::interrupt::Interrupt;
use crate::plan::PartyPlan;
use crate::terminal::Terminal;
use crate::{as_options, print};
use std::io::Write;
use std::path::Path;
use veilset::error::{Error, Result};
use veilset::job::{Facts, Job, Phase, Ran};
use veilset::net::{Identity, Me};
use veilset::spelling::THREADS;
use veilset::table::Profile;
use veilset::threads::Threads;

/// Why a plan is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// For its result.
    Run,
    /// To see whether it can be carried out, and at what cost.
    Check,
}

/// Carries out the plan.
pub fn run(plan: PartyPlan, purpose: Purpose) -> Result<()> {
    let me = plan.job.parties.clone();
    carry_out(plan, purpose).inspect_err(|error| {
        for about in me.iter().flat_map(|me| about(me, error)) {
            let _ = writeln!(std::io::stderr(), "{about}");
        }
    })
}

/// Says which parties of the list an error is about, unless it says that itself.
pub fn about(me: &Me, error: &Error) -> Vec<String> {
    let (text, seats) = (error.to_string(), error.seats());
    // What differs may have the name too, and not as that of the party.
    let says = |name: &str| !matches!(error, Error::Disagreement(_)) && text.contains(name);
    let parties = me.others().filter(|party| seats.contains(&party.seat()) && !says(party.name()));
    parties.map(|party| format!("{} of {} is {}", party.seat(), me.roster().source(), party.name())).collect()
}

fn carry_out(mut plan: PartyPlan, purpose: Purpose) -> Result<()> {
    // First of all: from here on a signal ends the program gracefully.
    let interrupt = Interrupt::install(plan.quiet)?;
    plan.begin(purpose)?;
    let job = &plan.job;
    let terminal = Terminal::new(plan.quiet, Some(&job.source), &interrupt);
    ready(&plan, Job::load, &terminal, |party| {
        // Before anybody else hears from us.
        let files = party.files()?;
        match purpose {
            Purpose::Run => finish(party, files, &interrupt),
            Purpose::Check => {
                let (checked, estimate) = party.check()?;
                print(as_options(&check::text(&checked, &estimate, &plan)))
            }
        }
    })
}

/// Runs, and writes the result.
fn finish(party: Ready<'_>, files: Files, interrupt: &Interrupt) -> Result<()> {
    let (plan, data, kept) = (party.plan, party.data, party.kept);
    let job = &plan.job;
    let say = sayer(plan.quiet);
    let Ran { outcome, mut report, logged, .. } = party.run()?;
    let there = || match (&plan.report, &logged) {
        (None, Ok(())) => interrupt.done(0, done(job)),
        _ => {
            interrupt.done(7, format!("{}, but its report or its line in the log may be missing", done(job)))
        }
    };
    // The time that this takes depends on the result, so it happens after the peer has left.
    match files.output {
        Some(mut output) => {
            let write = || -> Result<()> {
                data.write(&outcome, &mut output)?;
                if let Some(mut ids) = files.ids {
                    data.write_ids(&outcome, &mut ids)?;
                    ids.commit()?;
                }
                if let Some(mut map) = files.map {
                    data.write_map(&outcome, &mut map)?;
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
        interrupt.done(0, done(job));
    }
    say(report.marked_text().trim_end());
    if let Some(path) = job.output.as_deref().filter(|_| job.has_result()) {
        say(&format!("  The result is in {}.", path.display()));
    }
    if let Some(path) = &job.map {
        say(&format!("  Which share belongs to which of our rows is in {}.", path.display()));
    }
    if let Some(path) = &job.ids {
        say(&format!("  The list of all identifiers is in {}.", path.display()));
    }
    let cleared = match (kept, &job.folder) {
        (Some(kept), _) if job.has_result() => kept.leftover().delete().map(|left| {
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
        Error::Output(what) => Error::output(format!("{}, but {}", done(job), what.marked())),
        e => {
            let _ = writeln!(std::io::stderr(), "veilset: {}", done(job));
            e
        }
    })
}

/// The message that the run is done, and where its result is.
fn done(job: &Job) -> String {
    match (job.has_result(), &job.output) {
        (false, _) => "the run is done".into(),
        (true, None) => "the run is done and its result written to standard output".into(),
        (true, Some(path)) => format!("the run is done and its result is in {}", path.display()),
    }
}

/// The current phase, in words.
pub fn words(phase: Phase, input: &str) -> String {
    match phase {
        Phase::Sorting => format!("sorting the keys of {input}"),
        Phase::Preparing => format!("preparing the keys of {input}"),
        _ => format!("reading {input}"),
    }
}

/// Reports what was read; `repeated` says what becomes of rows with a repeated key.
pub fn tell(facts: &Facts<'_>, repeated: &str, say: &dyn Fn(&str), warn: &dyn Fn(&str)) {
    let s = |n: u64| if n == 1 { "" } else { "s" };
    let &Facts { name: file, rows, items, duplicates, skipped, found, notes, profile, .. } = facts;
    let columns = match found.to_string() {
        none if none.is_empty() => none,
        columns => columns + ", ",
    };
    let mut line = format!("{file}: {columns}{rows} row{}, {items} item{}", s(rows), s(items));
    if duplicates > 0 {
        line += &format!(", {duplicates} row{} with a repeated key {repeated}", s(duplicates));
    }
    if skipped > 0 {
        line += &format!(", {skipped} row{} with an empty key omitted", s(skipped));
    }
    say(&line);
    notes.iter().for_each(|note| warn(&note.text()));
    if let Some(may_cost) = profile.and_then(Profile::text) {
        say(&format!("{file}: {may_cost}"));
    }
}

/// Says which columns the result will lack.
pub fn tell_unread(facts: &Facts<'_>, warn: &dyn Fn(&str)) {
    for unread in facts.unread {
        let (file, name) = (facts.name, &unread.name);
        warn(&format!(
            "{file}, column \"{name}\": it will be missing from the result, because {}",
            unread.what
        ));
    }
}

/// Starts the threads on which everything is computed.
pub fn start_threads(threads: usize) -> Result<Threads> {
    Threads::new(threads).map_err(|e| Error::usage(format!("{e} ({THREADS})")))
}

/// A function that prints a line for the user, unless the program is quiet.
pub fn sayer(quiet: bool) -> impl Fn(&str) {
    move |line| {
        if !quiet {
            // A run continues even if nobody reads this.
            let _ = writeln!(std::io::stderr(), "{}", as_options(line));
        }
    }
}

/// Loads the identity; the default one if none is named. `warn` hears who could replace it.
pub fn load_identity(path: Option<&Path>, warn: &dyn Fn(&str)) -> Result<Identity> {
    let path = path.map_or_else(Identity::default_path, |path| Ok(path.into()))?;
    let identity = Identity::load(&path)?;
    identity.warning().into_iter().for_each(warn);
    Ok(identity)
}
