//! One party's run, from its file to its result.

use crate::plan::{Plan, Protection};
use crate::progress::Progress;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use veilset::channel::Canceller;
use veilset::error::{Error, Result};
use veilset::item::{Items, decode_key};
use veilset::operations::{Learned, Operation, Role};
use veilset::rng::Prng;
use veilset::session::report::{Report, decimal};
use veilset::session::run::Request;
use veilset::session::{Identity, Security, establish};
use veilset::table::{
    Encoding, KeyedSet, Output, Table, check_max_row, check_sum_bound, keyed_set, values, write_rows,
    write_union,
};

/// Carries the plan out.
pub fn run(plan: Result<Plan>) -> Result<()> {
    let plan = plan?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(plan.threads);
    pool.build_global().map_err(|e| Error::Bug(format!("no threads to compute with: {e}")))?;
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
    data.tell(&say);
    let interrupt = Interrupt::install()?;
    let output = match (plan.operation, plan.role) {
        (Operation::Sum, _) | (_, Role::Receiver) => {
            Some(Output::create(plan.output.as_deref(), plan.force)?)
        }
        (_, Role::Sender) => None,
    };
    let report_file =
        plan.report.as_deref().map(|path| Output::create(Some(path), plan.force)).transpose()?;

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
        data.write(&plan, &outcome.learned, output.writer())?;
        output.commit()?;
    }
    let report = Report::new(&request, &outcome, seconds, peer)?;
    if let Some(mut file) = report_file {
        let failed = |e| {
            Error::Output(format!(
                "cannot write the report: {e}. The result is complete; make room for the report"
            ))
        };
        writeln!(file.writer(), "{}", report.to_json()?).map_err(failed)?;
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
        if plan.operation == Operation::Union && plan.role == Role::Sender {
            check_max_row(&table, &keyed, plan.max_row)?;
        }
        let values = match values_column {
            Some(column) => {
                let values = values(&table, &keyed, column, plan.value_scale)?;
                check_sum_bound(&table, column, &values, plan.terms.modulus.bits())?;
                values
            }
            None => Vec::new(),
        };
        Ok(Data { table, key, keyed, values })
    }

    fn tell(&self, say: &dyn Fn(&str)) {
        let KeyedSet { set, duplicates, skipped, .. } = &self.keyed;
        let mut line = format!("{}: {} rows, {} items", self.table.name(), self.table.rows(), set.len());
        if *duplicates > 0 {
            line += &format!(", {duplicates} rows whose key came before");
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
            max_row: plan.max_row,
            values: &self.values,
            value_scale: plan.value_scale,
            terms: plan.terms,
        }
    }

    /// The peer's items must be what both sides agreed that keys are.
    fn check(&self, plan: &Plan, learned: &Learned) -> Result<()> {
        let Learned::New(items) = learned else { return Ok(()) };
        let utf8 = |columns: Vec<&[u8]>| columns.iter().all(|c| std::str::from_utf8(c).is_ok());
        let good = |item: &[u8]| match decode_key(item, self.key.len()) {
            Some(columns) => plan.csv.encoding == Encoding::Bytes || utf8(columns),
            None => false,
        };
        match items.iter().all(good) {
            true => Ok(()),
            false => {
                Err(Error::misbehaves("an item it sent is not made of as many columns of text as agreed"))
            }
        }
    }

    fn write(&self, plan: &Plan, learned: &Learned, out: &mut dyn Write) -> Result<()> {
        self.check(plan, learned)?;
        let numbers = |out: &mut dyn Write, header: &str, row: String| {
            writeln!(out, "{header}\n{row}")
                .map_err(|e| Error::Output(format!("cannot write the result: {e}. Make room and run again")))
        };
        match learned {
            Learned::Nothing => Ok(()),
            Learned::Matching(positions) => {
                let mut rows: Vec<usize> =
                    positions.iter().map(|&i| self.keyed.rows[i as usize] as usize).collect();
                rows.sort_unstable();
                write_rows(&self.table, rows.into_iter(), out)
            }
            Learned::New(items) => {
                // The order they came in is random; sorted, two runs give the same file.
                let mut sorted: Vec<&[u8]> = items.iter().collect();
                sorted.sort_unstable();
                let sorted: Items = sorted.into_iter().collect();
                write_union(&self.table, &self.key, &self.keyed, &sorted, out)
            }
            Learned::Count(c) => {
                numbers(out, "matches,union_size", format!("{},{}", c.matches, c.union_size))
            }
            Learned::Matches(n) => numbers(out, "matches", n.to_string()),
            Learned::Sum(None) => numbers(out, "matches,sum", "below minimum,below minimum".into()),
            Learned::Sum(Some(s)) => {
                numbers(out, "matches,sum", format!("{},{}", s.matches, decimal(s.sum, plan.value_scale)))
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
