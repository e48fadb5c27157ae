//! One party's run, from its file to its result.

use crate::check;
use crate::data::Data;
use crate::plan::{Plan, Protection};
use crate::progress::Progress;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use veilset::channel::Canceller;
use veilset::error::{Error, Result};
use veilset::rng::Prng;
use veilset::session::gate::{Gate, Setup};
use veilset::session::offline::Ledger;
use veilset::session::report::{LeftOut, Report};
use veilset::session::run::run_if;
use veilset::session::{Identity, Security, establish};
use veilset::table::Output;

/// What the plan is carried out for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// For its result.
    Run,
    /// To see whether it could be, and at what cost.
    Check,
}

/// Carries the plan out.
pub fn run(plan: &Plan, purpose: Purpose) -> Result<()> {
    start_threads(plan.threads)?;
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
    let data = Data::load(plan)?;
    data.tell(plan, &say);
    let request = data.request(plan);
    let mut rng = Prng::from_os()?;
    // Before the connection: how long it takes depends on our data.
    let prepared = match (&plan.prepared, &identity) {
        (Some((half, ledger)), Some(identity)) => {
            request.prepare_with(half, &Ledger::at(ledger), identity)?
        }
        _ => request.prepare(&mut rng)?,
    };
    // Not for --quiet to hide: who runs this every night must hear of it.
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
    let interrupt = Interrupt::install()?;
    let output = match plan.has_result() {
        true => Some(Output::create("result", plan.output.as_deref(), plan.force)?),
        false => None,
    };
    let report_file =
        plan.report.as_deref().map(|path| Output::create("report", Some(path), plan.force)).transpose()?;

    let mut connection = establish(&plan.endpoint, &security, plan.timeouts, &|| interrupt.happened(), &say)?;
    let start = Instant::now();
    interrupt.stops(connection.channel.canceller());
    if purpose == Purpose::Check {
        return check::run(plan, connection, &request, &mut gate);
    }
    let progress = Arc::new(Progress::new());
    if !plan.quiet {
        connection.channel.observe(progress.clone());
    }
    let peer = connection.peer.map(|f| f.to_string());
    let result = run_if(connection, prepared, &mut gate, &mut rng);
    progress.end();
    let seconds = start.elapsed().as_secs_f64();
    let outcome = result.inspect_err(|e| {
        // What went wrong with the run matters more.
        if let Err(e) = gate.end(Err(e), seconds) {
            say(&format!("warning: {e}"));
        }
    })?;
    let mut report = Report::new(&request, &outcome, seconds, peer)?;
    // A result that is there is not given up because the log does not say so.
    let logged = gate.end(Ok(&report), seconds);
    // How long this takes depends on the result; the peer has left.
    if let Some(mut output) = output {
        data.write(plan, &outcome, &mut output)?;
        output.commit()?;
    }
    let name = |path: &Path| path.display().to_string();
    report.peer_name = plan.peer_name.clone();
    report.input = Some(name(&plan.source.input));
    report.output = plan.has_result().then(|| plan.output.as_deref().map_or_else(|| "-".into(), name));
    report.left_out = LeftOut { duplicates: data.keyed.duplicates, skipped: data.keyed.skipped };
    if let Some(mut file) = report_file {
        let json = report.to_json()?;
        writeln!(file.writer(), "{json}").map_err(|e| file.unwritable(&e))?;
        file.commit()?;
    }
    say(report.to_text().trim_end());
    logged.map_err(|e| Error::Output(format!("the run is done and its result written, but {e}")))
}

/// Starts the threads that all computing is done on.
pub fn start_threads(threads: usize) -> Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global()
        .map_err(|e| Error::Usage(format!("cannot start {threads} threads: {e}. Use fewer --threads")))
}

/// What says a line to the user, unless it is to be quiet.
pub fn sayer(quiet: bool) -> impl Fn(&str) {
    move |line| {
        if !quiet {
            // That nobody reads it is no reason to end a run.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

pub fn load_identity(path: Option<&Path>) -> Result<Identity> {
    Identity::load(&path.map_or_else(Identity::default_path, |path| Ok(path.into()))?)
}

/// Ctrl-C and termination: the run ends in good order and the peer is told.
#[derive(Default)]
pub struct Interrupt {
    happened: Arc<AtomicBool>,
    canceller: Arc<Mutex<Option<Canceller>>>,
}

impl Interrupt {
    pub fn install() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        let (happened, canceller) = (interrupt.happened.clone(), interrupt.canceller.clone());
        let handler = move || {
            happened.store(true, Ordering::SeqCst);
            if let Some(canceller) = &*canceller.lock().unwrap_or_else(PoisonError::into_inner) {
                canceller.cancel();
            }
        };
        ctrlc::set_handler(handler).map_err(|e| Error::Bug(format!("cannot watch for Ctrl-C: {e}")))?;
        Ok(interrupt)
    }

    pub fn happened(&self) -> bool {
        self.happened.load(Ordering::SeqCst)
    }

    fn stops(&self, canceller: Canceller) {
        *self.canceller.lock().unwrap_or_else(PoisonError::into_inner) = Some(canceller.clone());
        if self.happened() {
            canceller.cancel();
        }
    }
}
