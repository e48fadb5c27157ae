//! One party's run, from its file to its result.

use crate::check;
use crate::data::Data;
use crate::interrupt::Interrupt;
use crate::plan::{Plan, Protection};
use crate::progress::{Life, Progress};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use veilset::artefact::Ledger;
use veilset::error::{Error, Result};
use veilset::governance::gate::{Gate, Setup};
use veilset::net::{Identity, Security, establish};
use veilset::rng::Prng;
use veilset::session::report::{LeftOut, Report};
use veilset::session::run::{Request, run_if};
use veilset::table::Output;
use veilset::threads::Threads;

/// What a plan is carried out for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// For its result.
    Run,
    /// To see whether it can be, and at what cost.
    Check,
}

/// Carries out the plan.
pub fn run(plan: &Plan, purpose: Purpose) -> Result<()> {
    // First of all: from here on a signal ends the program in good order.
    let interrupt = Interrupt::install(plan.quiet)?;
    let threads = start_threads(plan.threads)?;
    let say = sayer(plan.quiet);
    let identity = match &plan.protection {
        Protection::InsecurePlaintext => None,
        Protection::Tls { identity, .. } => Some(Arc::new(load_identity(identity.as_deref())?)),
    };
    let security = match (&plan.protection, &identity) {
        (Protection::Tls { peer, .. }, Some(identity)) => {
            Security::Tls { identity: identity.clone(), peer: *peer }
        }
        _ => Security::InsecurePlaintext,
    };

    // Everything that can be wrong with our side is found before the peer hears of us.
    plan.endpoint.check()?;
    let output_path = plan.output.as_deref().filter(|_| plan.has_result());
    for path in [output_path, plan.report.as_deref()] {
        Output::check(path, plan.force)?;
    }
    let input = plan.source.input.display();
    let life = Life::begin(plan.quiet, format!("reading {input}"));
    let step = |bytes| {
        life.read(bytes);
        interrupt.check()
    };
    let data = Data::load(plan, &threads, &step, &|what| life.next(what))?;
    let request = Request { threads: &threads, ..data.request(plan) };
    let mut rng = Prng::from_os()?;
    life.next(format!("hashing the keys of {input}"));
    // Before the connection: how long it takes depends on our data.
    let prepared = match (&plan.prepared, &identity) {
        (Some((half, ledger)), Some(identity)) => {
            request.prepare_with(half, &Ledger::at(ledger), identity)?
        }
        _ => request.prepare(&mut rng)?,
    };
    drop(life);
    data.tell(plan, &say);
    // Printed with --quiet too: whoever runs this every night must hear of it.
    let warn = |text: &str| {
        let _ = writeln!(std::io::stderr(), "warning: {text}");
    };
    let setup = Setup {
        policy: &plan.policy,
        audit_log: plan.audit_log.as_deref(),
        identity: identity.as_deref(),
        peer_name: plan.peer_name.as_deref(),
        prepared: plan.prepared.is_some(),
        warn: &warn,
    };
    let mut gate = Gate::new(&request, setup)?;
    let open = |what, path| Output::create(what, path, plan.force);
    let stop = interrupt.clone();
    let output = plan.has_result().then(|| open("result", plan.output.as_deref())).transpose()?;
    let output = output.map(|output| output.watched(move || stop.check()));
    // Not watched: once the result is there, a signal does not make the run one that was stopped.
    let report_file = plan.report.as_deref().map(|path| open("report", Some(path))).transpose()?;

    let mut connection = establish(&plan.endpoint, &security, plan.timeouts, &|| interrupt.happened(), &say)?;
    let start = Instant::now();
    interrupt.run_begins(connection.channel.canceller());
    if purpose == Purpose::Check {
        return check::run(plan, connection, &request, &mut gate);
    }
    let progress = Arc::new(Progress::new((plan.protocol.stages)(plan.operation, &plan.terms)));
    if !plan.quiet {
        connection.channel.observe(progress.clone());
    }
    let peer = connection.peer.map(|f| f.to_string());
    let result = run_if(connection, prepared, &mut gate, &mut rng);
    progress.end(result.is_ok());
    let seconds = start.elapsed().as_secs_f64();
    let outcome = result.inspect_err(|e| {
        // The error of the run matters more.
        if let Err(e) = gate.end(Err(e), seconds) {
            say(&format!("warning: {e}"));
        }
    })?;
    let mut report = Report::new(&request, &outcome, seconds, peer)?;
    // A log that cannot be written is no reason to give up the result.
    let logged = gate.end(Ok(&report), seconds);
    interrupt.run_ends();
    let there = || match (&plan.report, &logged) {
        (None, Ok(())) => interrupt.done(0, done(plan)),
        _ => {
            interrupt.done(7, format!("{}, but its report or its line in the log may be missing", done(plan)))
        }
    };
    // How long this takes depends on the result, so it waits until the peer has left.
    match output {
        Some(mut output) => {
            data.write(plan, &outcome, &mut output)?;
            output.commit_telling(there)?;
        }
        None => there(),
    }
    let name = |path: &Path| path.display().to_string();
    report.peer_name = plan.peer_name.clone();
    report.input = Some(name(&plan.source.input));
    report.output = plan.has_result().then(|| plan.output.as_deref().map_or_else(|| "-".into(), name));
    report.left_out = LeftOut { duplicates: data.keyed.duplicates, skipped: data.keyed.skipped };
    let reported = report_file.map_or(Ok(()), |file| write_report(&report, file));
    if reported.is_ok() && logged.is_ok() {
        interrupt.done(0, done(plan));
    }
    say(report.to_text().trim_end());
    if let Some(path) = output_path {
        say(&format!("  The result is in {}.", path.display()));
    }
    // What fails after the result was written must not look as if there were none.
    [reported, logged].into_iter().collect::<Result<()>>().map_err(|e| match e {
        Error::Output(what) => Error::Output(format!("{}, but {what}", done(plan))),
        e => {
            let _ = writeln!(std::io::stderr(), "veilset: {}", done(plan));
            e
        }
    })
}

fn write_report(report: &Report, mut file: Output) -> Result<()> {
    let json = report.to_json()?;
    writeln!(file.writer(), "{json}").map_err(|e| file.unwritable(&e))?;
    file.commit()
}

/// That the run is done, and where its result is.
fn done(plan: &Plan) -> String {
    match (plan.has_result(), &plan.output) {
        (false, _) => "the run is done".into(),
        (true, None) => "the run is done and its result written to standard output".into(),
        (true, Some(path)) => format!("the run is done and its result is in {}", path.display()),
    }
}

/// Starts the threads that all computing is done on.
pub fn start_threads(threads: usize) -> Result<Threads> {
    Threads::new(threads).map_err(|e| Error::Usage(format!("{e} (--threads)")))
}

/// What says a line to the user, unless the program is to be quiet.
pub fn sayer(quiet: bool) -> impl Fn(&str) {
    move |line| {
        if !quiet {
            // A run goes on if nobody reads this.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

pub fn load_identity(path: Option<&Path>) -> Result<Identity> {
    Identity::load(&path.map_or_else(Identity::default_path, |path| Ok(path.into()))?)
}
