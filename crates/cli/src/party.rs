//! One party's run, from its file to its result.

use crate::as_options;
use crate::check;
use crate::interrupt::Interrupt;
use crate::plan::{NamedProtection, Others, PartyPlan};
use crate::progress::{Life, Progress};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use veilset::error::{Error, Result};
use veilset::governance::gate::{Gate, Setup};
use veilset::job::{self, InputTable, Job, Keys, Phase, Ran, Watch, write_report};
use veilset::net::{Connected, Identity, Me, Protection, assemble, establish};
use veilset::operations::Shape;
use veilset::rng::Prng;
use veilset::table::{Destination, Duplicates};
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
        if let Some(about) = me.as_ref().and_then(|me| about(me, error)) {
            let _ = writeln!(std::io::stderr(), "{about}");
        }
    })
}

/// Says which party of the list an error is about, unless it says that itself.
fn about(me: &Me, error: &Error) -> Option<String> {
    let seat = error.seat()?;
    let party = me.others().find(|party| party.seat() == seat)?;
    let named = error.to_string().contains(party.name());
    (!named).then(|| format!("{seat} of {} is {}", me.roster().source(), party.name()))
}

fn carry_out(mut plan: PartyPlan, purpose: Purpose) -> Result<()> {
    // First of all: from here on a signal ends the program gracefully.
    let interrupt = Interrupt::install(plan.quiet)?;
    plan.job.threads = start_threads(plan.threads)?;
    let plan = &plan;
    let say = sayer(plan.quiet);
    let identity = match &plan.others {
        Others::Peer { protection: NamedProtection::InsecurePlaintext, .. } => None,
        Others::Peer { protection: NamedProtection::Tls { identity, .. }, .. }
        | Others::Parties { identity, .. } => Some(Arc::new(load_identity(identity.as_deref())?)),
    };
    if let (Others::Parties { me, .. }, Some(identity)) = (&plan.others, &identity) {
        me.check_identity(&identity.fingerprint())?;
    }

    // Errors on our side are found before anybody else hears from us.
    plan.others.check()?;
    let job = &plan.job;
    job.check_output()?;
    Destination::check(plan.report.as_deref(), job.force)?;
    let life = Life::begin(plan.quiet, words(Phase::Reading, &job.source));
    let read = |bytes| {
        life.read(bytes);
        interrupt.check()
    };
    let watch = Watch { read: &read, begins: &|phase| life.next(words(phase, &job.source)) };
    let data = job.load(&watch)?;
    let mut rng = Prng::from_os()?;
    let prepared = data.prepare(identity.as_deref(), &watch, &mut rng)?;
    drop(life);
    let repeated = match (job.shape(), job.source.duplicates(job.has_values())) {
        (Shape::Identifiers, _) => "with the identifier of the first",
        (_, Duplicates::Add) => "added to the first",
        _ => "omitted",
    };
    tell(data.keys(), repeated, &say);
    // Printed even with --quiet, so that unattended runs show it.
    let warn = |text: &str| {
        let _ = writeln!(std::io::stderr(), "warning: {}", as_options(text));
    };
    let setup = Setup {
        policy: &plan.policy,
        audit_log: plan.audit_log.as_deref(),
        identity: identity.as_deref(),
        prepared: job.prepared.is_some(),
        warn: &warn,
    };
    let mut gate = Gate::new(prepared.request(), setup)?;
    let stop = interrupt.clone();
    let watched = |output: Destination| {
        let stop = stop.clone();
        output.watched(move || stop.check())
    };
    let output = job.create_output()?.map(watched);
    let (ids, map) = (job.create_ids()?.map(watched), job.create_map()?.map(watched));
    // Not watched: once the result exists, a signal must not make the run look stopped.
    let open = |path| Destination::create("report", Some(path), job.force);
    let report_file = plan.report.as_deref().map(open).transpose()?;

    let mut connected = connect(plan, identity.as_ref(), &|| interrupt.happened(), &say)?;
    interrupt.run_begins(connected.canceller());
    if purpose == Purpose::Check {
        return check::run(plan, connected, &prepared, &mut gate);
    }
    let progress = Arc::new(Progress::new(job.stages()));
    if let (Connected::Peer(connection), false) = (&mut connected, plan.quiet) {
        connection.channel.observe(progress.clone());
    }
    // With several parties, the steps with one go on during those with another.
    let computing = |me: &Me| Life::begin(plan.quiet, computing_with(me.others().count()));
    let life = job.parties.as_ref().map(computing);
    let ran = job::run(connected, prepared, Some(&mut gate), &mut rng);
    drop(life);
    progress.end(ran.is_ok());
    let Ran { outcome, mut report, logged, .. } = ran?;
    interrupt.run_ends();
    let there = || match (&plan.report, &logged) {
        (None, Ok(())) => interrupt.done(0, done(job)),
        _ => {
            interrupt.done(7, format!("{}, but its report or its line in the log may be missing", done(job)))
        }
    };
    // The time that this takes depends on the result, so it happens after the peer has left.
    match output {
        Some(mut output) => {
            data.write(&outcome, &mut output)?;
            if let Some(mut ids) = ids {
                data.write_ids(&outcome, &mut ids)?;
                ids.commit()?;
            }
            if let Some(mut map) = map {
                data.write_map(&outcome, &mut map)?;
                map.commit()?;
            }
            output.commit_telling(there)?;
        }
        None => there(),
    }
    data.complete(&mut report);
    let reported = report_file.map_or(Ok(()), |file| write_report(&report, file));
    if reported.is_ok() && logged.is_ok() {
        interrupt.done(0, done(job));
    }
    say(report.to_text().trim_end());
    if let Some(path) = job.output.as_deref().filter(|_| job.has_result()) {
        say(&format!("  The result is in {}.", path.display()));
    }
    if let Some(path) = &job.map {
        say(&format!("  Which share belongs to which of our rows is in {}.", path.display()));
    }
    if let Some(path) = &job.ids {
        say(&format!("  The list of all identifiers is in {}.", path.display()));
    }
    // A failure after the result was written must not look as if there were no result.
    [reported, logged].into_iter().collect::<Result<()>>().map_err(|e| match e {
        Error::Output(what) => Error::Output(format!("{}, but {what}", done(job))),
        e => {
            let _ = writeln!(std::io::stderr(), "veilset: {}", done(job));
            e
        }
    })
}

/// Connects to all other parties.
fn connect(
    plan: &PartyPlan,
    identity: Option<&Arc<Identity>>,
    cancelled: &dyn Fn() -> bool,
    say: &dyn Fn(&str),
) -> Result<Connected> {
    match (&plan.others, identity) {
        (Others::Peer { endpoint, protection, name }, identity) => {
            let security = match (protection, identity) {
                (NamedProtection::Tls { peer, .. }, Some(identity)) => {
                    Protection::Tls { identity: identity.clone(), peer: *peer }
                }
                (NamedProtection::InsecurePlaintext, _) => Protection::InsecurePlaintext,
                (NamedProtection::Tls { .. }, None) => {
                    return Err(Error::Bug("TLS without an identity".into()));
                }
            };
            let mut connection = establish(endpoint, &security, plan.timeouts, cancelled, say)?;
            connection.peer_name.clone_from(name);
            Ok(connection.into())
        }
        (Others::Parties { me, listen, .. }, Some(identity)) => {
            let others = assemble(me, identity, listen.as_deref(), plan.timeouts, cancelled, say)?;
            Ok(others.into())
        }
        (Others::Parties { .. }, None) => {
            Err(Error::Bug("a run of several parties without an identity".into()))
        }
    }
}

/// What a run of several parties does, in words.
fn computing_with(others: usize) -> String {
    format!("computing with {others} other part{}", if others == 1 { "y" } else { "ies" })
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
pub fn words(phase: Phase, source: &InputTable) -> String {
    let input = source.input.display();
    match phase {
        Phase::Sorting => format!("sorting the keys of {input}"),
        Phase::Hashing => format!("hashing the keys of {input}"),
        _ => format!("reading {input}"),
    }
}

/// Reports what was read; `repeated` says what becomes of rows with a repeated key.
pub fn tell(keys: &Keys, repeated: &str, say: &dyn Fn(&str)) {
    let s = |n: u64| if n == 1 { "" } else { "s" };
    let (table, keyed) = (&keys.table, &keys.keyed);
    let (rows, items) = (table.rows() as u64, keyed.set.len() as u64);
    let (duplicates, skipped) = (keyed.duplicates, keyed.skipped);
    let mut line = format!("{}: {rows} row{}, {items} item{}", table.name(), s(rows), s(items));
    if duplicates > 0 {
        line += &format!(", {duplicates} row{} with a repeated key {repeated}", s(duplicates));
    }
    if skipped > 0 {
        line += &format!(", {skipped} row{} with an empty key omitted", s(skipped));
    }
    say(&line);
    for unread in table.unread() {
        let (file, name) = (table.name(), &unread.name);
        say(&format!(
            "warning: {file}, column \"{name}\": it will be missing from the result, because {}",
            unread.what
        ));
    }
}

/// Starts the threads on which everything is computed.
pub fn start_threads(threads: usize) -> Result<Threads> {
    Threads::new(threads).map_err(|e| Error::Usage(format!("{e} (--threads)")))
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

pub fn load_identity(path: Option<&Path>) -> Result<Identity> {
    Identity::load(&path.map_or_else(Identity::default_path, |path| Ok(path.into()))?)
}
