//! One party's run, from its file to its result.

use crate::check;
use crate::gate::Gate;
use crate::plan::{Plan, Protection};
use crate::progress::Progress;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use veilset::channel::Canceller;
use veilset::error::{Error, Result};
use veilset::operations::{Learned, Operation, Role};
use veilset::params::MAX_SET;
use veilset::rng::Prng;
use veilset::session::report::{LeftOut, Report, decimal};
use veilset::session::run::{Request, run_if};
use veilset::session::{Identity, Security, establish};
use veilset::table::{
    Duplicates, Encoding, KeyedSet, Output, Table, check_max_row, check_sum_bound, keyed_set, values,
    write_rows, write_union,
};

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
    let pool = rayon::ThreadPoolBuilder::new().num_threads(plan.threads);
    pool.build_global().map_err(|e| {
        Error::Usage(format!("cannot start {} threads: {e}. Use fewer --threads", plan.threads))
    })?;
    let say = |line: &str| {
        if !plan.quiet {
            // That nobody reads it is no reason to end a run.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    };
    let identity = match &plan.protection {
        Protection::InsecurePlaintext => None,
        Protection::Tls { identity, .. } => {
            let path = identity.clone().map_or_else(Identity::default_path, Ok)?;
            Some(Arc::new(Identity::load(&path)?))
        }
    };
    let security = match (&plan.protection, &identity) {
        (Protection::Tls { peer, .. }, Some(identity)) => {
            Security::Tls { identity: identity.clone(), peer: *peer }
        }
        _ => Security::InsecurePlaintext,
    };

    // Everything that can be wrong with our side is found before the peer hears of us.
    let data = Data::load(plan)?;
    data.tell(plan, &say);
    plan.policy.permits_our_size(data.keyed.set.len())?;
    let mut gate = Gate::new(plan, identity.as_deref(), &data.keyed.set, &data.values, &say)?;
    let interrupt = Interrupt::install()?;
    let output = match (plan.operation, plan.role) {
        (Operation::Sum, _) | (_, Role::Receiver) => {
            Some(Output::create("result", plan.output.as_deref(), plan.force)?)
        }
        (_, Role::Sender) => None,
    };
    let report_file =
        plan.report.as_deref().map(|path| Output::create("report", Some(path), plan.force)).transpose()?;

    let mut connection = establish(&plan.endpoint, &security, plan.timeouts, &|| interrupt.happened(), &say)?;
    let start = Instant::now();
    interrupt.stops(connection.channel.canceller());
    let request = data.request(plan);
    if purpose == Purpose::Check {
        return check::run(plan, connection, &request, &mut gate);
    }
    let progress = Arc::new(Progress::new());
    if !plan.quiet {
        connection.channel.observe(progress.clone());
    }
    let peer = connection.peer.map(|f| f.to_string());
    let result = run_if(connection, &request, &mut gate, &mut Prng::from_os()?);
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
    let logged = gate.end(Ok((&outcome, &report)), seconds);
    // How long this takes depends on the result; the peer has left.
    if let Some(mut output) = output {
        data.write(plan, &outcome.learned, &mut output)?;
        output.commit()?;
    }
    report.left_out = LeftOut { duplicates: data.keyed.duplicates, skipped: data.keyed.skipped };
    if let Some(mut file) = report_file {
        let json = report.to_json()?;
        writeln!(file.writer(), "{json}").map_err(|e| file.unwritable(&e))?;
        file.commit()?;
    }
    say(report.to_text().trim_end());
    logged.map_err(|e| Error::Output(format!("the run is done and its result written, but {e}")))
}

/// Our side's data, checked.
struct Data {
    table: Table,
    key: Vec<usize>,
    keyed: KeyedSet,
    values: Vec<i128>,
}

impl Data {
    fn load(plan: &Plan) -> Result<Data> {
        let table = Table::read_csv(&plan.input, &plan.csv)?;
        let key = table.columns(&plan.key)?;
        let values_column = match &plan.values {
            Some(name) => table.columns(std::slice::from_ref(name))?.first().copied(),
            None => None,
        };
        let keyed = keyed_set(&table, &key, plan.empty_keys, plan.duplicates)?;
        if keyed.set.len() > MAX_SET {
            let what = format!("{} keys are more than this version supports ({MAX_SET})", keyed.set.len());
            return Err(Error::input(&plan.input, what, "Split the file"));
        }
        if plan.operation == Operation::Union && plan.role == Role::Sender {
            check_max_row(&table, &keyed, plan.max_row)?;
        }
        let values = match values_column {
            Some(column) => {
                let values = values(&table, &keyed, column, plan.value_scale)?;
                check_sum_bound(&table, column, &values, plan.terms.modulus)?;
                values
            }
            None => Vec::new(),
        };
        Ok(Data { table, key, keyed, values })
    }

    fn tell(&self, plan: &Plan, say: &dyn Fn(&str)) {
        let KeyedSet { set, duplicates, skipped, .. } = &self.keyed;
        let mut line = format!("{}: {} rows, {} items", self.table.name(), self.table.rows(), set.len());
        if *duplicates > 0 {
            line += &match plan.duplicates {
                Duplicates::Add => format!(", {duplicates} rows whose key came before added to it"),
                _ => format!(", {duplicates} rows whose key came before left out"),
            };
        }
        if *skipped > 0 {
            line += &format!(", {skipped} rows with an empty key left out");
        }
        say(&line);
    }

    fn request(&self, plan: &Plan) -> Request<'_> {
        Request {
            operation: plan.operation,
            role: plan.role,
            set: &self.keyed.set,
            key_columns: self.key.len(),
            normalisation: match plan.csv.encoding {
                Encoding::Utf8 => "none (--encoding utf8)",
                Encoding::Bytes => "none (--encoding bytes)",
            },
            max_peer_items: plan.max_peer_items,
            max_row: plan.max_row,
            values: &self.values,
            value_scale: plan.value_scale,
            terms: plan.terms,
        }
    }

    fn write(&self, plan: &Plan, learned: &Learned, output: &mut Output) -> Result<()> {
        let numbers = |output: &mut Output, header: &str, row: String| {
            writeln!(output.writer(), "{header}\n{row}").map_err(|e| output.unwritable(&e))
        };
        match learned {
            Learned::Nothing => Ok(()),
            Learned::Matching(positions) => {
                let mut rows: Vec<usize> =
                    positions.iter().map(|&i| self.keyed.rows[i as usize] as usize).collect();
                rows.sort_unstable();
                write_rows(&self.table, rows.into_iter(), output.writer())
            }
            Learned::New(items) => write_union(&self.table, &self.key, &self.keyed, items, output.writer()),
            Learned::Count(c) => {
                numbers(output, "matches,union_size", format!("{},{}", c.matches, c.union_size))
            }
            Learned::Matches(n) => numbers(output, "matches", n.to_string()),
            Learned::Sum(None) => numbers(output, "matches,sum", "below minimum,below minimum".into()),
            Learned::Sum(Some(s)) => {
                numbers(output, "matches,sum", format!("{},{}", s.matches, decimal(s.sum, plan.value_scale)))
            }
        }
    }
}

/// Ctrl-C and termination: the run ends in good order and the peer is told.
#[derive(Default)]
struct Interrupt {
    happened: Arc<AtomicBool>,
    canceller: Arc<Mutex<Option<Canceller>>>,
}

impl Interrupt {
    fn install() -> Result<Interrupt> {
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

    fn happened(&self) -> bool {
        self.happened.load(Ordering::SeqCst)
    }

    fn stops(&self, canceller: Canceller) {
        *self.canceller.lock().unwrap_or_else(PoisonError::into_inner) = Some(canceller.clone());
        if self.happened() {
            canceller.cancel();
        }
    }
}
