//! A job: one side of a run, from its table to its result.
//!
//! A [`Job`] says what is to be computed on which table, and where the result goes. A front end fills it in (the program
//! from its arguments) and takes the steps in their order, each of which needs what the one before it gave:
//!
//! 1. [`Job::check`] refuses what contradicts itself, whatever the data.
//! 2. [`Job::load`] reads the table, makes the keyed set, payloads and values, and checks them.
//! 3. [`Data::prepare`] hashes the keys, or opens a half that was prepared before.
//! 4. [`Job::create_output`] opens the destination. So far the peer has not heard of us.
//! 5. [`run()`] runs over a connection that the front end brings, by leave of a
//!    [`Gate`], and gives what came of it, with a report.
//! 6. [`Data::write`] writes the result, after which [`Destination::commit`] gives the file its name.
//!
//! What takes long can be watched and ended ([`Watch`]); showing it, and hearing signals, is the front end's affair.
//!
//! ```
//! use veilset::channel::{Channel, WireCount};
//! use veilset::job::{self, Job, InputTable, Watch};
//! use veilset::net::Connection;
//! use veilset::operations::{INTERSECT, Role};
//! use veilset::rng::Prng;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let [ours, theirs, result] = ["ours.csv", "theirs.csv", "result.csv"].map(|name| folder.path().join(name));
//! # std::fs::write(&ours, "email,city\nann@a.org,Rome\nbob@b.org,Oslo\n")?;
//! # std::fs::write(&theirs, "mail\nbob@b.org\ncleo@c.org\n")?;
//! let run = |job: &Job, connection| -> veilset::error::Result<_> {
//!     job.check()?;
//!     let data = job.load(&Watch::NONE)?;
//!     let mut rng = Prng::from_os()?;
//!     let prepared = data.prepare(None, &Watch::NONE, &mut rng)?;
//!     let output = job.create_output()?;
//!     // Whoever answers for the data gives a gate, which asks a policy and keeps a log.
//!     let ran = job::run(connection, prepared, None, &mut rng)?;
//!     if let Some(mut output) = output {
//!         data.write(&ran.outcome, &mut output)?;
//!         output.commit()?;
//!     }
//!     Ok(ran.report)
//! };
//! let mut receives = Job::new(&INTERSECT, Role::Receiver, InputTable::new(&ours, ["email"]));
//! receives.output = Some(result.clone());
//! let sends = Job::new(&INTERSECT, Role::Sender, InputTable::new(&theirs, ["mail"]));
//! // Over a network the connections are made by net::establish.
//! let (here, there) = Channel::pair();
//! let [here, there] = [here, there].map(|channel| Connection::unprotected(channel, WireCount::default()));
//! let report = std::thread::scope(|s| {
//!     let peer = s.spawn(|| run(&sends, there));
//!     let report = run(&receives, here)?;
//!     peer.join().unwrap().map(|_| report)
//! })?;
//! assert_eq!(report.result.matches, Some(1));
//! assert_eq!(std::fs::read_to_string(&result)?, "email,city\nbob@b.org,Oslo\n");
//! # Ok(())
//! # }
//! ```

mod data;

pub use data::{Data, Keys};

use crate::error::{Error, Result};
use crate::governance::gate::Gate;
use crate::item::ItemSet;
use crate::net::Connection;
use crate::operations::{Operation, Role, Shape, Terms};
use crate::params::MAX_SET;
use crate::protocols::{self, Protocol};
use crate::rng::Prng;
use crate::session::Approval;
use crate::session::report::Report;
use crate::session::run::{Outcome, Prepared, Request, run_if};
use crate::table::{Destination, Duplicates, EmptyKeys, Format, Normalise, ReadOptions, quoted};
use crate::threads::Threads;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where our items are, how they are read, and how many the peer is told.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InputTable {
    /// The file; `-` is standard input.
    pub input: PathBuf,
    /// How it is read.
    pub read: ReadOptions,
    /// The columns whose values are compared.
    pub key: Vec<String>,
    /// What is done to them first, as agreed with the peer.
    pub normalise: Normalise,
    /// What becomes of rows with an empty key.
    pub empty_keys: EmptyKeys,
    /// What becomes of rows whose key occurred before. If `None`, they are an error where the keys have values, of which
    /// some would be missing in the sum, and are counted and take no part otherwise.
    pub duplicates: Option<Duplicates>,
    /// The size that the set is filled up to with dummies.
    pub pad_to: Option<usize>,
}

impl InputTable {
    /// A file read as its name says, keys compared as they are, empty keys an error.
    pub fn new<S: Into<String>>(input: impl Into<PathBuf>, key: impl IntoIterator<Item = S>) -> InputTable {
        InputTable {
            input: input.into(),
            read: ReadOptions::default(),
            key: key.into_iter().map(Into::into).collect(),
            normalise: Normalise::default(),
            empty_keys: EmptyKeys::default(),
            duplicates: None,
            pad_to: None,
        }
    }

    /// What the file is.
    pub fn format(&self) -> Format {
        self.read.format.unwrap_or_else(|| Format::of_input(&self.input))
    }

    /// What becomes of rows whose key occurred before; `valued` if the keys have values.
    pub fn duplicates(&self, valued: bool) -> Duplicates {
        self.duplicates.unwrap_or(if valued { Duplicates::Error } else { Duplicates::First })
    }

    /// Refuses what contradicts itself, whatever the data; `valued` if the keys have values.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check(&self, valued: bool) -> Result<()> {
        match self.duplicates {
            Some(Duplicates::Add) if !valued => wrong(
                "`duplicates=add` is for the sender of sum, which has values to add. Use first or error"
                    .into(),
            ),
            _ => Ok(()),
        }
    }
}

/// What one side is to do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Job {
    /// What is computed.
    pub operation: &'static Operation,
    /// Our part in it.
    pub role: Role,
    /// How it is computed.
    pub protocol: &'static Protocol,
    /// Our items.
    pub source: InputTable,
    /// For the sender of sum: the column of values.
    pub values: Option<String>,
    /// For sum: the decimal places of the values.
    pub value_scale: u32,
    /// What else must be the same on both sides. `payload` follows from `sent_columns`.
    pub terms: Terms,
    /// For intersect and union: the columns that the sender sends with its keys, by the sender's names.
    pub sent_columns: Vec<String>,
    /// For the receiver of such columns: the same, by their names in our result.
    pub received_as: Vec<String>,
    /// A half that was prepared, and the ledger for it.
    pub prepared: Option<(PathBuf, PathBuf)>,
    /// The largest set of the peer that we take part with.
    pub max_peer_items: usize,
    /// Where the result goes; `None` is standard output.
    pub output: Option<PathBuf>,
    /// What it is written as. If `None`, what the name of the output says, and otherwise text like the input.
    pub output_format: Option<Format>,
    /// Whether cells that a spreadsheet would compute are written so that it does not; for CSV.
    pub for_spreadsheets: bool,
    /// Whether a file is replaced by the result.
    pub force: bool,
    /// What our side computes on.
    pub threads: Threads,
}

impl Job {
    /// A plain job: the protocol of choice, no columns, values or prepared half, the result for the receiver only and to
    /// standard output, rows of 64 bytes, any size of the peer's set.
    pub fn new(operation: &'static Operation, role: Role, source: InputTable) -> Job {
        Job {
            operation,
            role,
            protocol: protocols::default_for(operation, false),
            source,
            values: None,
            value_scale: 0,
            terms: Terms { max_row: 64, ..Terms::default() },
            sent_columns: Vec::new(),
            received_as: Vec::new(),
            prepared: None,
            max_peer_items: MAX_SET,
            output: None,
            output_format: None,
            for_spreadsheets: false,
            force: false,
            threads: Threads::global().clone(),
        }
    }

    /// Refuses what contradicts itself, whatever the data.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check(&self) -> Result<()> {
        self.source.check(self.has_values())?;
        let operation = self.operation;
        match (self.has_values(), &self.values) {
            (true, None) => {
                return wrong(format!(
                    "`values` is missing: the sender of {operation} names the column of its values with `values=COL`"
                ));
            }
            (false, Some(_)) => {
                return wrong(format!(
                    "`values` is for the sender: the {} of {operation} has no values. Omit it, or use `role=sender`",
                    self.role
                ));
            }
            _ => {}
        }
        let nothing = ItemSet::default();
        let request = Request {
            protocol: self.protocol,
            pad_to: self.source.pad_to,
            sent_columns: &self.sent_columns,
            terms: self.terms,
            ..Request::new(self.operation, self.role, &nothing)
        };
        request.check()?;
        if self.prepared.is_some() {
            request.check_prepared()?;
        }
        self.check_columns()
    }

    /// Refuses columns that cannot travel together, or not be told apart in the result.
    fn check_columns(&self) -> Result<()> {
        let receives = self.role == Role::Receiver;
        let option = if receives { "`receive_columns`" } else { "`send_columns`" };
        if let Some(name) = repeated(&self.sent_columns) {
            return wrong(format!("{option} names the column \"{name}\" twice. Name it once"));
        }
        let expected = if receives { self.sent_columns.len() } else { 0 };
        if self.received_as.len() != expected {
            return wrong(format!(
                "{} names for {expected} columns of the sender. Give a name to each that the receiver gets",
                self.received_as.len()
            ));
        }
        if let Some(name) = repeated(&self.received_as) {
            return wrong(format!(
                "two columns of the sender would have the name \"{name}\" in our result. Give one of them another \
                 name with `receive_columns=COL=NAME`"
            ));
        }
        let columns = self.source.key.len() + self.received_as.len();
        if self.shape().has_items()
            && columns > 1
            && self.written_as(self.source.format(), columns) == Format::List
        {
            return wrong(format!(
                "the result has {columns} columns or more, and a list has one. Use `output_format=csv` or `output_format=parquet`, or \
                 give `output` another name"
            ));
        }
        Ok(())
    }

    /// Whether our keys have values.
    pub fn has_values(&self) -> bool {
        self.operation.uses.values && self.role == Role::Sender
    }

    /// How many stages the run has, for whoever shows how far it is ([`Observer`](crate::channel::Observer)).
    pub fn stages(&self) -> usize {
        let terms = Terms { payload: !self.sent_columns.is_empty(), ..self.terms };
        (self.protocol.stages)(self.operation, &terms)
    }

    /// The form of our side's result.
    pub fn shape(&self) -> Shape {
        (self.operation.result)(self.role, &self.terms)
    }

    /// Whether our side has a result to write.
    pub fn has_result(&self) -> bool {
        self.shape() != Shape::Nothing
    }

    /// The format of a result of as many columns, if it is not one of numbers.
    fn written_as(&self, input: Format, columns: usize) -> Format {
        self.output_format.unwrap_or_else(|| Format::of_output(self.output.as_deref(), input, columns))
    }

    /// Refuses what [`Job::create_output`] would refuse for the name alone, and makes no file.
    ///
    /// # Errors
    /// [`Error::Output`] and [`Error::Usage`], as those of [`Destination::check`].
    pub fn check_output(&self) -> Result<()> {
        Destination::check(self.output.as_deref().filter(|_| self.has_result()), self.force)
    }

    /// Opens the destination of the result, if our side has one.
    ///
    /// # Errors
    /// Those of [`Destination::create`].
    pub fn create_output(&self) -> Result<Option<Destination>> {
        let create = || Destination::create("result", self.output.as_deref(), self.force);
        self.has_result().then(create).transpose()
    }

    /// Reads and checks all that the job needs.
    ///
    /// # Errors
    /// [`Error::Input`] for the table, with file, row and column; [`Error::Usage`] for terms that it does not fit; those of
    /// the watch.
    pub fn load(&self, watch: &Watch<'_>) -> Result<Data<'_>> {
        Data::load(self, watch)
    }

    /// Refuses columns of the sender that would have the name of a column of ours.
    fn check_names(&self, header: &[String]) -> Result<()> {
        let mut names = self.sent_columns.iter().zip(&self.received_as);
        match names.find(|(_, ours)| header.contains(ours)) {
            Some((theirs, ours)) => wrong(format!(
                "the sender's column \"{theirs}\" would be called \"{ours}\" in the result, like a column of ours. Give \
                 it another name with `receive_columns={}=NAME`",
                quoted(theirs)
            )),
            None => Ok(()),
        }
    }
}

/// What may take long before the peer is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The table is read.
    Reading,
    /// Its keys are normalised and made a set.
    Sorting,
    /// They are hashed, or a prepared half is read.
    Hashing,
}

/// Who watches a job, and may end it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Hears again and again how many bytes of the table were read. An error of it ends the job.
    pub read: &'a dyn Fn(u64) -> Result<()>,
    /// Hears what begins.
    pub begins: &'a dyn Fn(Phase),
}

impl Watch<'static> {
    /// Nobody.
    pub const NONE: Watch<'static> = Watch { read: &|_| Ok(()), begins: &|_| () };
}

/// What came of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ran {
    /// What we learned.
    pub outcome: Outcome,
    /// The same for people and programs; [`Data::complete`] adds what is known of our table.
    pub report: Report,
    /// Whether the log says how the run ended. If it does not, that is no reason to give up the result.
    pub logged: Result<()>,
}

/// Runs our side, if the gate allows it, and has it log how the run ends. Without a gate all is allowed and nothing is
/// logged.
///
/// # Errors
/// Those of [`run_if`]. The gate was told; what cannot be logged then is a warning of it.
pub fn run(
    connection: Connection,
    prepared: Prepared<'_>,
    mut gate: Option<&mut Gate<'_>>,
    rng: &mut Prng,
) -> Result<Ran> {
    let start = Instant::now();
    let request = *prepared.request();
    let result = match &mut gate {
        Some(gate) => run_if(connection, prepared, &mut **gate, rng),
        None => run_if(connection, prepared, &mut (), rng),
    };
    let seconds = start.elapsed().as_secs_f64();
    let outcome = match (result, &mut gate) {
        (Ok(outcome), _) => outcome,
        (Err(error), gate) => {
            // The error of the run matters more.
            if let Some(gate) = gate
                && let Err(unlogged) = gate.end(Err(&error), seconds)
            {
                gate.warn(&unlogged.to_string());
            }
            return Err(error);
        }
    };
    let report = Report::new(&request, &outcome, seconds)?;
    let logged = gate.map_or(Ok(()), |gate| gate.end(Ok(&report), seconds));
    Ok(Ran { outcome, report, logged })
}

/// Writes a report as JSON to a file that appears complete or not at all.
///
/// # Errors
/// [`Error::Output`].
pub fn write_report(report: &Report, mut file: Destination) -> Result<()> {
    let json = report.to_json()?;
    writeln!(file.writer(), "{json}").map_err(|e| file.unwritable(&e))?;
    file.commit()
}

fn wrong<T>(what: String) -> Result<T> {
    Err(Error::Usage(what))
}

/// The first name that is there twice.
fn repeated(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)).map(|(_, name)| name)
}

/// The name of a file, for reports.
fn name(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
