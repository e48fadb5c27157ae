//! A random run of 3 to 5 parties: a file and a command line for each, and the leader's result from the plain computation.

use super::cells::{self, Rows};
use super::{Expected, Files, MOST_PARTIES, Names, People, TIMEOUTS, compare, party, spec};
use std::collections::BTreeSet;
use std::path::Path;
use veilset::error::{Error, Result};
use veilset::operations::{self, Operation, Shape};
use veilset::protocols;
use veilset::rng::Prng;
use veilset::table::{Encoding, Format};
use veilset_app::parties::{Local, on_this_machine, together, written};

/// The largest number of items of a party: a union of several parties takes long per item.
const MOST_ITEMS: usize = 60;
/// The bytes of a row, more than the longest key needs.
const MAX_ROW: usize = 200;

/// A run to perform. The leader comes first.
pub struct MultipartyCase {
    /// The parties, until they run.
    parties: Vec<Local>,
    /// The words after `veilset`.
    pub words: Vec<Vec<String>>,
    /// The leader's result.
    expected: Rows,
    /// The category under which the run is counted.
    pub kind: String,
}

/// Returns the key with this number; some are long.
fn key(number: usize) -> Vec<u8> {
    let style = ["", "x", "\u{e9}", "a,b", "\"q\"", "\u{65e5}\u{672c}"][number % 6];
    let long = if number % 7 == 3 { "long".repeat(30) } else { String::new() };
    format!("{number}{style}{long}").into_bytes()
}

/// Returns random numbers of keys, each of which also determines the extra column of its row.
fn numbers(rng: &mut Prng, most: usize) -> Vec<usize> {
    let most = [0, 1, 5, 20, most][rng.below(5) as usize].min(most);
    let size = rng.below(most as u64 + 1) as usize;
    // The numbers come from a small range, so that parties have keys in common.
    let all = rng.permutation(2 * most + 3);
    all.iter().take(size).map(|&number| number as usize).collect()
}

impl MultipartyCase {
    /// Writes the files of a random run to the folder.
    pub fn random(rng: &mut Prng, folder: &Path, most: usize, people: &People) -> Result<MultipartyCase> {
        let parties = 3 + rng.below(MOST_PARTIES as u64 - 2) as usize;
        let offered: Vec<_> =
            operations::ALL.into_iter().filter(|o| protocols::multiparty_for(o).is_some()).collect();
        let operation = offered[rng.below(offered.len() as u64) as usize];
        let named = people.identities.iter().take(parties).enumerate();
        let named: Vec<_> = named.map(|(i, identity)| (format!("party-{i}"), identity.clone())).collect();
        let (roster, locals) = on_this_machine(&named, "a soak")?;
        let unusable =
            |e: std::io::Error| Error::output(format!("cannot write in {}: {e}", folder.display()));
        std::fs::write(folder.join("parties.toml"), written(&roster)).map_err(unusable)?;
        for file in ["none.toml", "policy.toml"] {
            std::fs::write(folder.join(file), "").map_err(unusable)?;
        }
        let sets: Vec<_> = (0..parties).map(|_| numbers(rng, most.min(MOST_ITEMS))).collect();
        let mut pads = false;
        let mut words = Vec::new();
        let mut ours = Rows::new();
        for (i, (set, (name, _))) in sets.iter().zip(&named).enumerate() {
            let terms = operations::Terms { several: true, ..Default::default() };
            let role = operations::Role::multiparty(i == 0);
            let has_items = (operation.result)(role, &terms).has_items();
            // A file of JSON lines without any line names no columns, so it is for parties that need only their keys.
            let readable = |format: &Format| *format != Format::JsonLines || !set.is_empty() || !has_items;
            let formats: Vec<Format> = Format::ALL.iter().copied().filter(readable).collect();
            let format = formats[rng.below(formats.len() as u64) as usize];
            let (column, extension) = match format {
                Format::Csv => ("k", "csv"),
                Format::Parquet => ("k", "parquet"),
                Format::Arrow => ("k", "arrow"),
                Format::JsonLines => ("k", "jsonl"),
                Format::List => ("item", "txt"),
            };
            let more = format != Format::List && rng.below(2) == 0;
            let row = |cell: Vec<u8>, other: String| match more {
                true => vec![cell, other.into_bytes()],
                false => vec![cell],
            };
            let rows = set.iter().map(|number| row(key(*number), format!("row {number} of {name}")));
            let rows: Rows = std::iter::once(row(column.into(), "more".into())).chain(rows).collect();
            let path = folder.join(format!("{name}.{extension}"));
            cells::write(rng, &path, format, Encoding::Utf8, &rows)?;
            let file = |name: &str| folder.join(name).display().to_string();
            let mut all = vec![
                operation.name.to_string(),
                path.display().to_string(),
                format!("--parties={}", file("parties.toml")),
                format!("--me={name}"),
                format!("--identity={}", people.files[i].display()),
                format!("--book={}", file("none.toml")),
                format!("--policy={}", file("policy.toml")),
                "--audit-log=none".into(),
            ];
            if format != Format::List {
                all.push(format!("--key={column}"));
            }
            if format == Format::Csv {
                all.push("--multiline-keys".into());
            }
            if operation.uses.rows != operations::Rows::None {
                all.push(format!("--max-row={MAX_ROW}"));
            }
            if rng.below(3) == 0 {
                pads = true;
                all.push(format!("--pad-to={}", set.len() + rng.below(20) as usize));
            }
            if i == 0 {
                // Numbers are written as CSV, and JSON lines are never written.
                let written = has_items && Format::WRITTEN.contains(&format);
                let extension = if written { extension } else { "csv" };
                all.push(format!("--output={}", file(&format!("result.{extension}"))));
                ours = rows;
            }
            words.push(all);
        }
        let expected = expected(operation, &ours, &sets)?;
        let kind = format!("{operation} of {parties}{}", if pads { " padded" } else { "" });
        Ok(MultipartyCase { parties: locals, words, expected, kind })
    }

    /// Runs all parties. Returns an error that describes a wrong result.
    pub fn run(&mut self) -> Result<(), String> {
        let jobs = self.words.iter().map(|words| spec(words)).collect::<Result<Vec<_>>>();
        let jobs = jobs.map_err(|e| e.to_string())?;
        let parties = std::mem::take(&mut self.parties);
        let results = together(parties, TIMEOUTS, |me, connections| {
            let at = usize::from(me.own().number().get()) - 1;
            let spec = jobs.get(at).ok_or_else(|| Error::Bug("a party without a job".into()))?;
            party(spec.clone(), connections, None)
        });
        let failed = results.iter().zip(1..).filter_map(|(result, number)| match result {
            Ok(_) => None,
            Err(e) => Some(format!("party {number} ended with: {e}")),
        });
        let failed: Vec<_> = failed.collect();
        if !failed.is_empty() {
            return Err(failed.join("; "));
        }
        let files: Vec<Files> = results.into_iter().flatten().collect();
        for (i, files) in files.iter().enumerate() {
            let expected = if i == 0 { Expected::Rows(self.expected.clone()) } else { Expected::Nothing };
            compare(files, &expected, &mut Names::default())
                .map_err(|e| format!("the result of party {}: {e}", i + 1))?;
        }
        Ok(())
    }
}

/// Returns the leader's result, given its file and the keys of all parties.
fn expected(operation: &Operation, ours: &Rows, sets: &[Vec<usize>]) -> Result<Rows> {
    let [own, others @ ..] = sets else { return Err(Error::Bug("a run without parties".into())) };
    let terms = operations::Terms { several: true, ..Default::default() };
    let in_all = |number: &usize| others.iter().all(|set| set.contains(number));
    let header = ours.first().cloned().unwrap_or_default();
    let rows = ours.iter().skip(1).cloned();
    Ok(match (operation.result)(operations::Role::Receiver, &terms) {
        Shape::OwnRows => {
            let matching = rows.zip(own).filter(|(_, number)| in_all(number)).map(|(row, _)| row);
            std::iter::once(header).chain(matching).collect()
        }
        Shape::AllRows => {
            let new: BTreeSet<usize> =
                others.iter().flatten().copied().filter(|number| !own.contains(number)).collect();
            let columns = header.len();
            let new = new.into_iter().map(|number| {
                let mut row = vec![key(number)];
                row.resize(columns, Vec::new());
                row
            });
            std::iter::once(header).chain(rows).chain(new).collect()
        }
        Shape::Matches => {
            let matches = own.iter().filter(|number| in_all(number)).count();
            vec![vec![b"matches".to_vec()], vec![matches.to_string().into_bytes()]]
        }
        other => return Err(Error::bug(format!("a result of several parties that is {other:?}"))),
    })
}
