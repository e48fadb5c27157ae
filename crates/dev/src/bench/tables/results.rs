//! The file of a table's results. It is rewritten and renamed into place after each run of a point.

use super::machine::Machine;
use super::papers::{Paper, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{File, Permissions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use veilset::error::{Error, Result};

/// The program's version, to which results belong. A build for tests is slower.
pub const VERSION: &str = match cfg!(debug_assertions) {
    true => concat!(env!("CARGO_PKG_VERSION"), " (not optimised)"),
    false => env!("CARGO_PKG_VERSION"),
};
const FORMAT: u32 = 1;

/// The results of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    format: u32,
    pub paper: String,
    pub table: String,
    pub source: String,
    /// The version of the program.
    version: String,
    pub machine: Machine,
    pub points: Vec<Measured>,
}

/// A measured point, identified by its command, without the program's name, and by `beside`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    pub command: String,
    /// The name of the other program; `None` for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// The least seconds of all runs.
    pub seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper_megabytes: Option<f64>,
    pub runs: Vec<Run>,
}

/// A run, as `bench` reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub date: String,
    pub figures: Value,
}

/// Returns the path of a table's file.
pub fn file(folder: &Path, paper: &Paper, table: &Table) -> PathBuf {
    folder.join(format!("{}-{}.json", paper.name, table.name))
}

impl Results {
    pub fn new(paper: &Paper, table: &Table, machine: &Machine) -> Results {
        Results {
            format: FORMAT,
            paper: paper.name.clone(),
            table: table.name.clone(),
            source: table.source.clone(),
            version: VERSION.into(),
            machine: machine.clone(),
            points: Vec::new(),
        }
    }

    /// Reads the results from the file; empty if it does not exist.
    pub fn load(folder: &Path, paper: &Paper, table: &Table, machine: &Machine) -> Result<Results> {
        let path = file(folder, paper, table);
        let refused = |why: String| {
            Err(Error::usage(format!(
                "{}: {why}. Name another folder with --out, or move the file away and measure anew",
                path.display()
            )))
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Results::new(paper, table, machine)),
            Err(e) => return refused(format!("the results cannot be read: {e}")),
        };
        let loaded: Results = match serde_json::from_str(&text) {
            Ok(loaded) => loaded,
            Err(e) => {
                return refused(format!("these results are damaged, or of another version of veilset: {e}"));
            }
        };
        if !loaded.machine.is(machine) {
            return refused(format!(
                "these results are of another machine, {}, and this one is {}; one file has one machine's",
                loaded.machine.text(),
                machine.text()
            ));
        }
        if (loaded.format, loaded.version.as_str()) != (FORMAT, VERSION) {
            return refused(format!(
                "these results are of veilset {}, and this is {VERSION}",
                loaded.version
            ));
        }
        if (&loaded.paper, &loaded.table) != (&paper.name, &table.name) {
            return refused(format!("these are results of {}, table {}", loaded.paper, loaded.table));
        }
        Ok(loaded)
    }

    /// Returns the measurement of a command, with this program or with the other one.
    pub fn find(&self, command: &str, beside: Option<&str>) -> Option<&Measured> {
        self.points.iter().find(|point| point.command == command && point.beside.as_deref() == beside)
    }

    /// Removes a point.
    pub fn forget(&mut self, command: &str, beside: Option<&str>) {
        self.points.retain(|point| point.command != command || point.beside.as_deref() != beside);
    }

    /// Adds a run of a point.
    pub fn add(&mut self, point: Measured, run: Run) {
        let known = |one: &&mut Measured| (&one.command, &one.beside) == (&point.command, &point.beside);
        if let Some(known) = self.points.iter_mut().find(known) {
            known.runs.push(run);
            known.seconds = known.least("seconds").unwrap_or(known.seconds);
            return;
        }
        let mut point = Measured { runs: vec![run], ..point };
        point.seconds = point.least("seconds").unwrap_or(0.0);
        self.points.push(point);
    }

    /// Writes the file. On failure, an earlier file stays unchanged.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let path = folder.join(format!("{}-{}.json", self.paper, self.table));
        let text =
            serde_json::to_string_pretty(self).map_err(|e| Error::bug(format!("results as JSON: {e}")))?;
        write(&path, &text)
    }
}

/// Writes a file that appears complete or not at all.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = file_in(folder).and_then(|mut new| {
        writeln!(new, "{}", text.trim_end())?;
        new.as_file().sync_all()?;
        new.persist(path).map_err(|e| e.error).map(|_| ())
    });
    written.map_err(|e| unwritable(path, &e))
}

/// Creates the folder and checks that files can be created in it, before anything is measured. The returned handle keeps other
/// runs out of the folder: each would write the tables as it knows them.
pub fn prepare(folder: &Path) -> Result<File> {
    let made =
        std::fs::create_dir_all(folder).and_then(|()| file_in(folder)).and_then(|_| File::open(folder));
    let made = made.map_err(|e| unwritable(folder, &e))?;
    match made.try_lock() {
        Ok(()) => Ok(made),
        Err(TryLockError::WouldBlock) => Err(Error::usage(format!(
            "another run of veilset-dev measures into {}. Wait for its end, or name another folder with --out",
            folder.display()
        ))),
        Err(TryLockError::Error(e)) => Err(unwritable(folder, &e)),
    }
}

/// Creates a file without a final name, with the permissions of ordinary new files.
fn file_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
}

fn unwritable(path: &Path, e: &std::io::Error) -> Error {
    Error::output(format!(
        "the results cannot be written to {}: {e}. Make the folder writable, or name another with --out",
        path.display()
    ))
}

impl Measured {
    /// Returns the least value of a figure over all runs.
    pub fn least(&self, name: &str) -> Option<f64> {
        self.runs.iter().filter_map(|run| run.figures[name].as_f64()).reduce(f64::min)
    }

    /// Returns the figures of each party in the first run, if there are several parties.
    pub fn parties(&self) -> Option<&Vec<Value>> {
        self.runs.first()?.figures["parties"].as_array()
    }

    /// Returns the megabytes both ways; with several parties, the average that a party sends and receives.
    pub fn megabytes(&self) -> Option<f64> {
        let sum = |value: &Value, names: [&str; 2]| {
            names.iter().filter_map(|name| value[*name].as_f64()).sum::<f64>()
        };
        match self.parties() {
            Some(each) => {
                let moved: f64 = each.iter().map(|party| sum(party, ["sent", "received"])).sum();
                Some(moved / 1e6 / each.len() as f64)
            }
            None => {
                let figures = &self.runs.first()?.figures;
                Some(sum(figures, ["bytes_receiver_to_sender", "bytes_sender_to_receiver"]) / 1e6)
            }
        }
    }
}
