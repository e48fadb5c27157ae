//! One party's run, from its file to its result.

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
use veilset::session::run::Request;
use veilset::session::{Identity, Security, establish};
use veilset::table::{
    Duplicates, Format, KeyedSet, Output, Table, check_max_row, check_output, check_sum_bound, keyed_set,
    values, write_rows, write_union,
};

/// Carries the plan out.
pub fn run(plan: Result<Plan>) -> Result<()> {
    let plan = plan?;
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
    let security = match &plan.protection {
        Protection::InsecurePlaintext => Security::InsecurePlaintext,
        Protection::Tls { identity, peer } => {
            let path = identity.clone().map_or_else(Identity::default_path, Ok)?;
            Security::Tls { identity: Arc::new(Identity::load(&path)?), peer: *peer }
        }
    };

    // Everything that can be wrong with our side is found before the peer hears of us.
    let data = Data::load(&plan)?;
    data.tell(&plan, &say);
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
    let progress = Arc::new(Progress::new());
    if !plan.quiet {
        connection.channel.observe(progress.clone());
    }
    let peer = connection.peer.map(|f| f.to_string());
    let request = data.request(&plan);
    let result = veilset::session::run::run(connection, &request, &mut Prng::from_os()?);
    progress.end();
    let outcome = result?;
    let seconds = start.elapsed().as_secs_f64();
    // How long this takes depends on the result; the peer has left.
    if let Some(mut output) = output {
        data.write(&plan, &outcome.learned, &mut output)?;
        output.commit()?;
    }
    let mut report = Report::new(&request, &outcome, seconds, peer)?;
    report.left_out = LeftOut { duplicates: data.keyed.duplicates, skipped: data.keyed.skipped };
    if let Some(mut file) = report_file {
        let json = report.to_json()?;
        writeln!(file.writer(), "{json}").map_err(|e| file.unwritable(&e))?;
        file.commit()?;
    }
    say(report.to_text().trim_end());
    Ok(())
}

/// Our side's data, checked.
struct Data {
    table: Table,
    key: Vec<usize>,
    keyed: KeyedSet,
    values: Vec<i128>,
    /// What is compared, for the agreement.
    compared: String,
    /// What rows of a result are written as.
    output_format: Format,
}

impl Data {
    fn load(plan: &Plan) -> Result<Data> {
        // A result of rows has all our columns; everything else needs few.
        let rows =
            plan.role == Role::Receiver && matches!(plan.operation, Operation::Intersect | Operation::Union);
        let needed: Vec<String> = plan.key.iter().chain(&plan.values).cloned().collect();
        let table = Table::read(&plan.input, &plan.read, if rows { None } else { Some(&needed) })?;
        let columns = table.header().len();
        let output_format = plan
            .output_format
            .unwrap_or_else(|| Format::of_output(plan.output.as_deref(), table.format(), columns));
        if rows {
            check_output(&table, &[], output_format)?;
        }
        let key = table.columns(&plan.key)?;
        let values_column = match &plan.values {
            Some(name) => table.columns(std::slice::from_ref(name))?.first().copied(),
            None => None,
        };
        let keyed = keyed_set(&table, &key, plan.normalise, plan.empty_keys, plan.duplicates)?;
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
        let compared = plan.normalise.name(plan.read.encoding);
        Ok(Data { table, key, keyed, values, compared, output_format })
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
            normalisation: &self.compared,
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
                write_rows(&self.table, &rows, None, self.output_format, output.writer())
            }
            Learned::New(items) => {
                let format = self.output_format;
                write_union(&self.table, &self.key, &self.keyed, items, None, format, output.writer())
            }
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
