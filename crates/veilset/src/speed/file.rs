//! The file with a machine's speeds.

use super::{Speeds, this_machine};
use crate::error::{Error, Result};
use crate::json;
use crate::places;
use crate::spelling::command;
use crate::work::Primitive;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Maximum length of a file in bytes.
const MOST_BYTES: u64 = 1 << 16;
/// The version of the measurement. A program with debug assertions is slower, and measures less.
pub(super) const VERSION: &str = match cfg!(debug_assertions) {
    true => concat!(env!("CARGO_PKG_VERSION"), " (not optimised)"),
    false => env!("CARGO_PKG_VERSION"),
};

/// The description of a file that has no speeds.
const DAMAGED: &str = "damaged";

/// The contents of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Speed {
    /// The [`VERSION`] of the program that measured.
    version: String,
    machine: Machine,
    /// The time of each primitive on one thread, in picoseconds.
    picoseconds: BTreeMap<String, u64>,
}

/// The machine that the speeds were measured on.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Machine {
    processor: String,
    /// The best path of the curve, which determines the kind of vectors the program used.
    path: String,
}

impl Machine {
    fn this() -> Machine {
        Machine { processor: this_machine(), path: format!("{:?}", Speeds::path()) }
    }
}

/// Reads the speeds in the file at `path`; `None` if there is no file.
///
/// # Errors
/// A sentence that explains why the file cannot be used: it is damaged, or from another machine, version or build.
pub fn load(path: &Path, threads: usize) -> Result<Option<Speeds>, String> {
    let unusable = |what: &str| {
        let next = if what == DAMAGED { "delete the file, and run" } else { "run" };
        Err(format!("the speeds in {} are {what}: {next} {}", path.display(), command!("calibrate")))
    };
    match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(facts) if facts.len() > MOST_BYTES || !facts.is_file() => return unusable(DAMAGED),
        _ => {}
    }
    let Ok(text) = std::fs::read_to_string(path) else { return unusable("unreadable") };
    let Ok(Speed { version, machine, picoseconds }) = serde_json::from_str(&text) else {
        return unusable(DAMAGED);
    };
    if version != VERSION {
        return unusable("of another version or build");
    }
    if machine != Machine::this() {
        return unusable("of another machine");
    }
    let all = Primitive::ALL.map(|primitive| picoseconds.get(primitive.name()).copied().unwrap_or(0));
    match (picoseconds.len() == all.len(), Speeds::new(all, threads)) {
        (true, Ok(speeds)) => Ok(Some(speeds)),
        _ => unusable(DAMAGED),
    }
}

/// Writes the speeds of this machine.
///
/// # Errors
/// [`Error::Output`] if the file cannot be written; an earlier one then stays as it was.
pub fn save(path: &Path, speeds: &Speeds) -> Result<()> {
    let picoseconds = speeds.named().collect();
    let speed = Speed { version: VERSION.into(), machine: Machine::this(), picoseconds };
    let text = json::made("a file of speeds", serde_json::to_string_pretty(&speed))?;
    let written = places::private_parent(path).and_then(|()| {
        let mut new = places::beside(path)?;
        writeln!(new, "{text}")?;
        new.persist(path).map_err(|e| e.error)?;
        places::sync_parent(path)
    });
    written.map_err(|e| unwritable(path, &e))
}

/// Checks in advance, as far as possible, whether [`save`] can succeed. Creates the folder of the file.
///
/// # Errors
/// [`Error::Output`] if the file cannot be written; [`Error::Usage`] for a file without speeds, whose contents would be lost.
pub fn check_place(path: &Path) -> Result<()> {
    if path.is_file() && !has_speeds(path) {
        let path = path.display();
        return Err(Error::usage(format!(
            "{path} is no file of speeds, or a damaged one. Name another file, or delete it"
        )));
    }
    let found = places::private_parent(path).and_then(|()| {
        places::beside(path)?;
        if path.is_dir() { Err(ErrorKind::IsADirectory.into()) } else { Ok(()) }
    });
    found.map_err(|e| unwritable(path, &e))
}

/// Whether this is a file of speeds, from any version and machine. An empty file counts, as it has nothing to lose.
fn has_speeds(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Any {
        #[serde(rename = "version")]
        _version: String,
        #[serde(rename = "machine")]
        _machine: serde_json::Map<String, serde_json::Value>,
        #[serde(rename = "picoseconds")]
        _picoseconds: BTreeMap<String, u64>,
    }
    let text = match std::fs::metadata(path) {
        Ok(facts) if facts.len() <= MOST_BYTES => std::fs::read_to_string(path),
        _ => return false,
    };
    text.is_ok_and(|text| text.is_empty() || serde_json::from_str::<Any>(&text).is_ok())
}

fn unwritable(path: &Path, e: &io::Error) -> Error {
    let path = path.display();
    Error::output(format!(
        "the speeds cannot be written to {path}: {e}. Make it writable, or name another file"
    ))
    .because(e)
}
