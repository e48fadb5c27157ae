//! A party: one side of a run, from the input table to the result.
//!
//! A [`PartySpec`] states the computation, the table, and the destination of the result. A front end fills it in (the program
//! does this from its arguments) and takes the following steps in order:
//!
//! 1. [`PartySpec::check`] refuses contradictory settings, without looking at the data.
//! 2. [`PartySpec::load`] reads the table, and makes and checks the keyed set, payloads and values.
//! 3. [`Data::prepare`] pads the set, or opens a prepared half or a filter.
//! 4. [`PartySpec::create_output`] opens the destination. Up to this step, the peer is not contacted.
//! 5. [`run()`] runs over the front end's connection, if the [`Gate`] allows it, and returns the outcome and a report.
//! 6. [`Data::write`] writes the result, and [`Destination::commit`] then gives the file its name.
//!
//! Long steps report their progress and can be stopped ([`Watch`]). Displaying progress and handling signals is up to
//! the front end.
//!
//! ```
//! use veilset::channel::{Channel, WireCount};
//! use veilset::party::{self, InputTable, PartySpec, Watch};
//! use veilset::net::Connection;
//! use veilset::operations::{INTERSECT, Role};
//! use veilset::rng::Prng;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let [ours, theirs, result] = ["ours.csv", "theirs.csv", "result.csv"].map(|name| folder.path().join(name));
//! # std::fs::write(&ours, "email,city\nann@a.org,Rome\nbob@b.org,Oslo\n")?;
//! # std::fs::write(&theirs, "mail\nbob@b.org\ncleo@c.org\n")?;
//! let run = |party: &PartySpec, connection| -> veilset::error::Result<_> {
//!     party.check()?;
//!     let data = party.load(&Watch::NONE)?;
//!     let mut rng = Prng::from_os()?;
//!     let prepared = data.prepare(None, &Watch::NONE, &mut rng)?;
//!     let output = party.create_output()?;
//!     // A real program passes a gate, which enforces a policy and keeps a log.
//!     let ran = party::run(connection, prepared, None, &mut rng)?;
//!     if let Some(mut output) = output {
//!         data.write(&ran.outcome, &mut output)?;
//!         output.commit()?;
//!     }
//!     Ok(ran.report)
//! };
//! let mut receives = PartySpec::new(&INTERSECT, Role::Receiver, InputTable::new(&ours, ["email"]));
//! receives.output = Some(result.clone());
//! let sends = PartySpec::new(&INTERSECT, Role::Sender, InputTable::new(&theirs, ["mail"]));
//! // Over a network, net::establish makes the connections.
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

pub(crate) mod data;

pub use crate::sharded::keep::InFolder;
pub use data::{Data, KeyedTable, TableFacts};

use crate::error::{Error, Result};
use crate::governance::gate::Gate;
use crate::governance::review::Columns;
use crate::item::ItemSet;
use crate::net::Connected;
use crate::operations::{Operation, Role, Shape};
use crate::paths::{Paths, Use};
use crate::rng::Prng;
use crate::session::report::Report;
use crate::session::run::{Prepared, RunOutcome, run_if};
use crate::session::{Approval, Local, Spec};
use crate::spelling::{
    self, DUPLICATES, FORMAT, IDS, JOB, MAP, NO_HEADER, OUTPUT, OUTPUT_FORMAT, RECEIVE_COLUMNS, RESUME, ROLE,
    SHARDS, VALUES, setting,
};
use crate::table::{
    Destination, Duplicates, EmptyKeys, Format, Normalise, Quoting, ReadOptions, SHARE_COLUMNS, input_files,
    name_of, quoted,
};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The source of our items, how to read them, and the size to which they are padded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InputTable {
    /// The files, which are read one after another, or folders of files ([`Table::read_all`](crate::table::Table::read_all));
    /// `-` is standard input.
    pub inputs: Vec<PathBuf>,
    /// How to read the files.
    pub read: ReadOptions,
    /// The names of the columns whose cells are compared.
    pub key: Vec<String>,
    /// How to normalise those cells before they are compared, as agreed with the other parties.
    pub normalise: Normalise,
    /// How to treat rows with an empty key.
    pub empty_keys: EmptyKeys,
    /// How to treat rows whose key occurred before. If `None`, they are an error if the keys have values, because some values
    /// would be left out. Otherwise they are counted and left out.
    pub duplicates: Option<Duplicates>,
    /// The size to which the set is padded with dummies; `None` for no padding.
    pub pad_to: Option<usize>,
}

impl InputTable {
    /// Returns a source that is one file, read in the format that its name suggests. Keys are compared as they are, and empty
    /// keys are an error.
    pub fn new<S: Into<String>>(input: impl Into<PathBuf>, key: impl IntoIterator<Item = S>) -> InputTable {
        InputTable {
            inputs: vec![input.into()],
            read: ReadOptions::default(),
            key: key.into_iter().map(Into::into).collect(),
            normalise: Normalise::default(),
            empty_keys: EmptyKeys::default(),
            duplicates: None,
            pad_to: None,
        }
    }

    /// Returns the format of the files: the given format, or the first file's, or the default if no file is found.
    pub fn format(&self) -> Format {
        self.read.format.unwrap_or_else(|| {
            let files = input_files(&self.inputs).unwrap_or_default();
            files.first().map(|file| self.read.format_of(file)).unwrap_or_default()
        })
    }

    /// Returns the name of all inputs together, for messages.
    pub fn name(&self) -> String {
        name_of(&self.inputs)
    }

    /// Returns the files that are read, and those folders that were named as inputs.
    ///
    /// # Errors
    /// The errors of [`input_files`].
    pub fn paths(&self) -> Result<Paths> {
        let files = input_files(&self.inputs)?;
        let folders = self.inputs.iter().filter(|input| input.is_dir());
        let all = folders.chain(&files);
        Ok(all.fold(Paths::default(), |all, input| all.with("the input", Use::Read, Some(input))))
    }

    /// Returns how to treat rows whose key occurred before; `valued` tells whether the keys have values.
    pub fn duplicates(&self, valued: bool) -> Duplicates {
        self.duplicates.unwrap_or(if valued { Duplicates::Error } else { Duplicates::First })
    }

    /// Refuses contradictory settings, without looking at the data; `valued` tells whether the keys have values.
    ///
    /// # Errors
    /// [`Error::Usage`], which states the contradiction.
    pub fn check(&self, valued: bool) -> Result<()> {
        if self.read.headerless && self.format() != Format::Csv {
            return wrong(format!(
                "{NO_HEADER} is for CSV, but the input is read as {}. Omit it, or use {}",
                self.format(),
                FORMAT.with("csv")
            ));
        }
        let of_csv = [
            (self.read.quoting == Quoting::Ordinary, setting!(no_quotes)),
            (matches!(self.read.quoting, Quoting::Escaped(_)), setting!(escape)),
            (self.read.multiline_keys, setting!(multiline_keys)),
        ];
        if let Some((_, option)) = of_csv.iter().find(|(given, _)| *given && self.format() != Format::Csv) {
            return wrong(format!(
                "{option} is for CSV, but the input is read as {}. Omit it",
                self.format()
            ));
        }
        match self.duplicates {
            Some(Duplicates::Add) if !valued => wrong(format!(
                "{} is for a sender with values, which are added. Use first or error",
                DUPLICATES.with("add")
            )),
            _ => Ok(()),
        }
    }
}

/// The default name of the column of identifiers.
pub const ID_COLUMN: &str = "veilset_id";

/// The computation of one side, its input, and the destination of its result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartySpec {
    /// The computation.
    pub spec: Spec,
    /// The settings that our side decides for itself.
    pub local: Local,
    /// The source of our items.
    pub source: InputTable,
    /// For the sender of sum: the column of values. For the sender of share, if the terms say that values are shared instead
    /// of keys: the column of these values.
    pub values: Option<String>,
    /// For the receiver of columns that the sender sends: their names in our result, in the same order.
    pub received_as: Vec<String>,
    /// For id: the name of the column of identifiers in our result.
    pub id_column: String,
    /// For id: the destination of the list of all identifiers, if it is wanted; `-` is standard output.
    pub ids: Option<PathBuf>,
    /// For the sender of share: the destination of the map from its rows to share rows, if it is wanted; `-` is standard
    /// output.
    pub map: Option<PathBuf>,
    /// The file of a prepared half, and its ledger.
    pub prepared: Option<(PathBuf, PathBuf)>,
    /// The file of a filter made in advance: for the receiver its own filter, and for the sender the public part of the
    /// receiver's.
    pub filter: Option<PathBuf>,
    /// For a run in shards (`terms.shards`): the folder that keeps the results of the shards until the run is complete.
    /// Without a folder they are kept in memory, and a run that breaks off has to begin again.
    pub folder: Option<PathBuf>,
    /// Whether to resume the run in that folder.
    pub resume: bool,
    /// The destination of the result; `None` is standard output, unless `in_memory` is set.
    pub output: Option<PathBuf>,
    /// Whether the result stays in memory ([`Data::batches`]) instead.
    pub in_memory: bool,
    /// The format of the result. If `None`, the name of the output decides; if it does not, the format is text like the
    /// input.
    pub output_format: Option<Format>,
    /// Whether to escape cells that a spreadsheet would take for formulas; for CSV only.
    pub for_spreadsheets: bool,
    /// Whether the result, the list of identifiers and the map may replace existing files.
    pub force: bool,
}

impl PartySpec {
    /// Returns the settings of a plain run of two parties: the default protocol, without sent columns, values, a prepared
    /// half or a filter, and without sending the result on to the sender. A result goes to standard output. Rows have at most
    /// 64 bytes, and a peer's set of any supported size is accepted.
    pub fn new(operation: &'static Operation, role: Role, source: InputTable) -> PartySpec {
        PartySpec {
            spec: Spec::new(operation, role),
            local: Local::default(),
            source,
            values: None,
            received_as: Vec::new(),
            id_column: ID_COLUMN.into(),
            ids: None,
            map: None,
            prepared: None,
            filter: None,
            folder: None,
            resume: false,
            output: None,
            in_memory: false,
            output_format: None,
            for_spreadsheets: false,
            force: false,
        }
    }

    /// Refuses contradictory settings, without looking at the data.
    ///
    /// # Errors
    /// [`Error::Usage`], which states the contradiction; the errors of [`PartySpec::paths`]; and [`Error::Bug`] for a role
    /// that does not match our place in the list of parties.
    pub fn check(&self) -> Result<()> {
        self.source.check(self.has_values())?;
        if self.source.duplicates == Some(Duplicates::All) && self.shape() != Shape::OwnRows {
            return wrong(format!(
                "{} is for a result of our matching rows, of the receiver of intersect. Use first or \
                 error",
                DUPLICATES.with("all")
            ));
        }
        let Spec { operation, role, .. } = self.spec;
        match (self.has_values(), &self.values) {
            (true, None) => {
                return wrong(format!(
                    "{VALUES} is missing: the sender of {operation} names the column of its values with {}",
                    VALUES.with("COL")
                ));
            }
            (false, Some(_)) => {
                return wrong(format!(
                    "{VALUES} is for the sender: the {role} of {operation} has no values. Omit it, or use {}",
                    ROLE.with("sender")
                ));
            }
            _ => {}
        }
        let (nothing, compared) = (ItemSet::default(), self.compared());
        let request = self.request(&nothing, &compared);
        request.check()?;
        if self.prepared.is_some() {
            request.check_prepared()?;
        }
        if self.filter.is_some() {
            request.check_filter()?;
        }
        match (self.spec.terms.shards, &self.folder) {
            (0, Some(_)) => {
                return wrong(format!(
                    "{JOB} is the folder of a job in shards. Give their number with {SHARDS}, or omit {JOB}"
                ));
            }
            _ if self.resume && self.folder.is_none() => {
                return wrong(format!(
                    "{RESUME} is for a job in shards. Name its folder with {JOB}, or omit {RESUME}"
                ));
            }
            _ => {}
        }
        self.check_columns()?;
        self.paths()?.check()
    }

    /// Returns the files and folders of this side. A front end adds its own, and checks them all together ([`Paths::check`]).
    ///
    /// # Errors
    /// The errors of [`InputTable::paths`].
    pub fn paths(&self) -> Result<Paths> {
        let output = self.output.as_deref().unwrap_or(Path::new("-"));
        let (half, ledger) = self.prepared.as_ref().map(|(half, ledger)| (&**half, &**ledger)).unzip();
        let written = [
            (setting!(output), Some(output).filter(|_| self.has_result() && !self.in_memory)),
            (setting!(ids), self.ids.as_deref()),
            (setting!(map), self.map.as_deref()),
            (setting!(prepared), half),
            (setting!(prepared_ledger), ledger),
        ];
        let read = self.source.paths()?;
        let all = written.into_iter().fold(read, |all, (what, path)| all.with(what, Use::Written, path));
        let all = all.with(setting!(filter), Use::Read, self.filter.as_deref());
        Ok(all.with(setting!(job), Use::Folder, self.folder.as_deref()))
    }

    /// Refuses columns that cannot be sent together or would be confused in the result, a list or a map that the result does
    /// not have, and a list format for a result of several columns.
    fn check_columns(&self) -> Result<()> {
        let Spec { operation, role, ref sent_columns, .. } = self.spec;
        let receives = role == Role::Receiver;
        let option = if receives { setting!(receive_columns) } else { setting!(send_columns) };
        if let Some(name) = repeated(sent_columns) {
            return wrong(format!("{option} names the column \"{}\" twice. Name it once", name));
        }
        let expected = if receives { sent_columns.len() } else { 0 };
        if self.received_as.len() != expected {
            return wrong(format!(
                "there are {} names for {expected} columns of the sender. Give one name to each column that \
                 the receiver gets",
                self.received_as.len()
            ));
        }
        if let Some(name) = repeated(&self.received_as) {
            return wrong(format!(
                "two columns of the sender would have the name \"{}\" in our result. Give one of them another \
                 name with {}",
                name,
                RECEIVE_COLUMNS.with("COL=NAME")
            ));
        }
        if self.map.is_some() && !self.shares_ours() {
            return wrong(format!("{MAP} is for the sender of share, whose rows are shared. Omit it"));
        }
        if self.ids.is_some() && !self.has_identifiers() {
            return wrong(format!("{IDS} is for id: the result of {operation} has no identifiers. Omit it"));
        }
        let columns = match self.shape() {
            Shape::Shares => SHARE_COLUMNS.len(),
            _ => self.source.key.len() + self.added().len(),
        };
        if self.shape().has_items()
            && columns > 1
            && self.written_as(self.source.format(), columns) == Format::List
        {
            return wrong(format!(
                "the result has {columns} columns or more, but a list has one. Use {} or \
                 {}, or give {OUTPUT} another name",
                OUTPUT_FORMAT.with("csv"),
                OUTPUT_FORMAT.with("parquet")
            ));
        }
        Ok(())
    }

    /// Whether the keys of our side have values.
    pub fn has_values(&self) -> bool {
        self.spec.has_values()
    }

    /// Returns the form of our side's result.
    pub fn shape(&self) -> Shape {
        self.spec.shape()
    }

    /// Whether our side has a result to write.
    pub fn has_result(&self) -> bool {
        self.shape() != Shape::Nothing
    }

    /// Whether the result consists of identifiers, so that a list of all identifiers can be written.
    pub fn has_identifiers(&self) -> bool {
        self.shape() == Shape::Identifiers
    }

    /// Whether our rows are shared, so that a map from them to share rows can be written.
    pub fn shares_ours(&self) -> bool {
        self.shape() == Shape::Shares && self.spec.role == Role::Sender
    }

    /// Returns the names of the columns that the result has in addition to ours.
    fn added(&self) -> &[String] {
        match self.shape() {
            Shape::Identifiers => std::slice::from_ref(&self.id_column),
            _ => &self.received_as,
        }
    }

    /// Returns the format of a result with this many columns, unless it is a line of numbers.
    fn written_as(&self, input: Format, columns: usize) -> Format {
        match self.in_memory {
            true => Format::Arrow,
            false => self
                .output_format
                .unwrap_or_else(|| Format::of_output(self.output.as_deref(), input, columns)),
        }
    }

    /// Returns the columns that the record of a check lists ([`Review`](crate::governance::review::Review)).
    pub fn reviewed_columns(&self) -> Columns {
        Columns { key: self.source.key.clone(), values: self.values.clone() }
    }

    /// Refuses names of the result, the list of identifiers and the map that the `create` methods would refuse, without
    /// creating files.
    ///
    /// # Errors
    /// The errors of [`Destination::check`].
    pub fn check_output(&self) -> Result<()> {
        Destination::check(self.output.as_deref().filter(|_| self.has_result()), self.force)?;
        Destination::check(self.ids.as_deref(), self.force)?;
        Destination::check(self.map.as_deref(), self.force)
    }

    /// Opens the destination of the result; `None` if our side has no result.
    ///
    /// # Errors
    /// The errors of [`Destination::create`].
    pub fn create_output(&self) -> Result<Option<Destination>> {
        let create = || Destination::create("result", self.output.as_deref(), self.force);
        self.has_result().then(create).transpose()
    }

    /// Opens the destination of the list of identifiers; `None` if it is not wanted.
    ///
    /// # Errors
    /// The errors of [`Destination::create`].
    pub fn create_ids(&self) -> Result<Option<Destination>> {
        let create = |path| Destination::create("list of identifiers", Some(path), self.force);
        self.ids.as_deref().map(create).transpose()
    }

    /// Opens the destination of the map from our rows to share rows; `None` if it is not wanted.
    ///
    /// # Errors
    /// The errors of [`Destination::create`].
    pub fn create_map(&self) -> Result<Option<Destination>> {
        let create = |path| Destination::create("map", Some(path), self.force);
        self.map.as_deref().map(create).transpose()
    }

    /// Reads and checks all data that this side needs. For a run in shards whose inputs are all regular files, only the set
    /// is kept, on disk, and the files are read again for the result. All other data stays in memory.
    ///
    /// # Errors
    /// [`Error::Input`] for a defect of the table; [`Error::Usage`] for settings that the table does not fit;
    /// [`Error::Output`] if the set cannot be written to disk; and the errors of [`Watch::read`].
    pub fn load(&self, watch: &Watch<'_>) -> Result<Data<'_>> {
        match self.in_pieces() {
            true => Data::in_pieces(self, watch),
            false => Data::of(self, self.read(watch)?, watch),
        }
    }

    /// Refuses additional columns that would have the same name as one of our columns.
    fn check_names(&self, header: &[String]) -> Result<()> {
        if self.shape() == Shape::Identifiers && header.contains(&self.id_column) {
            return wrong(format!(
                "our table has a column \"{}\" already, and the identifiers would be in another one of that name. \
                 Give theirs another name with {}",
                self.id_column,
                spelling::ID_COLUMN.with("NAME")
            ));
        }
        let mut names = self.spec.sent_columns.iter().zip(&self.received_as);
        match names.find(|(_, ours)| header.contains(ours)) {
            Some((theirs, ours)) => wrong(format!(
                "the sender's column \"{}\" would be called \"{}\" in the result, like one of our \
                 columns. Give it another name with {}",
                theirs,
                ours,
                RECEIVE_COLUMNS.with(format_args!("{}=NAME", quoted(theirs))),
            )),
            None => Ok(()),
        }
    }
}

/// The steps before connecting to the peer that may take a long time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Reading the table.
    Reading,
    /// Normalising and hashing the keys, and making a set of them.
    Sorting,
    /// Padding the set, writing it to disk, or opening a prepared half or a filter.
    Preparing,
}

/// Callbacks that follow the steps of this side, and may stop it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Called regularly with the number of bytes of the table read so far. An error from it stops the reading.
    pub read: &'a dyn Fn(u64) -> Result<()>,
    /// Called when a phase begins.
    pub begins: &'a dyn Fn(Phase),
}

impl Watch<'static> {
    /// No callbacks.
    pub const NONE: Watch<'static> = Watch { read: &|_| Ok(()), begins: &|_| () };
}

/// A completed run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ran {
    /// The outcome, including the result.
    pub outcome: RunOutcome,
    /// The report of the run. [`Data::complete`] adds the facts about our table.
    pub report: Report,
    /// The error, if the end of the run could not be logged. It is no reason to discard the result.
    pub logged: Result<()>,
}

/// Runs our side if the gate allows it, and has the gate log how the run ends. Without a gate, every run is allowed and
/// nothing is logged.
///
/// # Errors
/// The errors of [`run_if`]. The gate logs them as [`Gate::end`] describes, or gives a warning if it cannot. Also
/// [`Error::Bug`] if no report can be made.
pub fn run(
    connected: impl Into<Connected>,
    prepared: Prepared<'_>,
    mut gate: Option<&mut Gate<'_>>,
    rng: &mut Prng,
) -> Result<Ran> {
    let start = Instant::now();
    let request = prepared.request().clone();
    let result = match &mut gate {
        Some(gate) => run_if(connected, prepared, &mut **gate, rng),
        None => run_if(connected, prepared, &mut (), rng),
    };
    let seconds = start.elapsed().as_secs_f64();
    let outcome = match (result, &mut gate) {
        (Ok(outcome), _) => outcome,
        (Err(error), gate) => {
            // The error of the run matters more than the error of the log.
            if let Some(gate) = gate
                && let Err(unlogged) = gate.end(Err(&error), seconds)
            {
                gate.warn(&unlogged.marked());
            }
            return Err(error);
        }
    };
    let report = Report::new(&request, &outcome, seconds)?;
    let logged = gate.map_or(Ok(()), |gate| gate.end(Ok(&report), seconds));
    Ok(Ran { outcome, report, logged })
}

/// Writes a report as JSON. A file appears complete or not at all.
///
/// # Errors
/// [`Error::Output`], and the errors of the step that watches the destination ([`Destination::watched`]).
pub fn write_report(report: &Report, mut file: Destination) -> Result<()> {
    let json = report.to_json()?;
    writeln!(file.writer(), "{json}").map_err(|e| file.unwritable(&e))?;
    file.commit()
}

fn wrong<T>(what: String) -> Result<T> {
    Err(Error::usage(what))
}

/// Returns the first name that repeats an earlier one.
fn repeated(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)).map(|(_, name)| name)
}

/// Returns a file's name, for reports.
fn name(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
