//! `veilset-dev soak`: random runs of all parties, each compared with the plain computation.
//!
//! The parameters of a run (operation, options, files of every format, sizes, overlap) are derived from the seed, the run's
//! number and `--max-items`. So a failed run can be repeated with `--seed`, `--first` and the same `--max-items`. The
//! protocols' own randomness comes from the operating system, as always, and the parties' choice of protocol depends on the
//! speeds stored for this machine and on the link.

mod case;
mod cells;
mod expected;
mod how;
mod several;

use crate::args::SoakArgs;
use case::Case;
use expected::Expected;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use veilset::channel::{Canceller, Channel, Observer, Timeouts, WireCount};
use veilset::error::{Error, Result};
use veilset::net::{Connected, Connection, Endpoint, Identity, Listener, Protection, establish};
use veilset::party::{self, InputTable, PartySpec, Phase, Watch};
use veilset::rng::Prng;
use veilset::threads;
use veilset_app::front::Front;
use veilset_app::make::{MakePlan, make};
use veilset_app::options::{Typed, Wanted};
use veilset_app::plan::PartyPlan;
use veilset_cli::print;
use veilset_core::hazmat::seeded;

/// One run of two parties in this many goes over TLS and a socket; the others use memory channels, to save time. All runs of
/// several go over TLS.
const OVER_TLS: u64 = 8;
/// One run in this many is a run of several parties.
const SEVERAL: u64 = 8;
/// The largest number of parties in a run of several.
const MOST_PARTIES: usize = 5;
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(30), idle: Duration::from_secs(60) };
/// The time that a party waits for a frame during the other's computation, as over TLS.
const PATIENCE: Duration = Duration::from_secs(600);
/// The interval between progress lines.
const TELL: Duration = Duration::from_secs(10);

/// The identities of the parties.
struct People {
    identities: Vec<Arc<Identity>>,
    /// The identity files, for repeating a run by hand.
    files: Vec<PathBuf>,
}

impl People {
    /// Creates the identities, with files in this folder.
    fn new(folder: &Path) -> Result<People> {
        let identities = (0..MOST_PARTIES).map(|_| Ok(Arc::new(Identity::generate()?)));
        let identities = identities.collect::<Result<Vec<_>>>()?;
        let files: Vec<_> = (0..MOST_PARTIES).map(|i| folder.join(format!("party-{i}.pem"))).collect();
        identities.iter().zip(&files).try_for_each(|(identity, file)| identity.save(file))?;
        Ok(People { identities, files })
    }
}

/// Runs until a run fails, a result is wrong, or all runs are done.
pub fn run(a: &SoakArgs) -> Result<()> {
    let seed = a.seed.map_or_else(|| Ok(u64::from_le_bytes(Prng::from_os()?.bytes())), Ok)?;
    let folder = tempfile::tempdir()
        .map_err(|e| Error::output(format!("cannot make a temporary folder: {e}. Set TMPDIR to another")))?;
    let people = People::new(folder.path())?;
    let (next, wrong) = (AtomicU64::new(a.first), AtomicBool::new(false));
    let kinds: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let (start, told) = (Instant::now(), Mutex::new(Instant::now()));
    let end = a.first.saturating_add(a.runs);
    let work = |worker: usize| -> Result<()> {
        while !wrong.load(Ordering::Relaxed) {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= end {
                break;
            }
            let folder = folder.path().join(worker.to_string());
            let kind = one(&folder, seed, run, a.max_items, &people).inspect_err(|_| {
                wrong.store(true, Ordering::Relaxed);
            })?;
            *kinds.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.elapsed() > TELL {
                *told = Instant::now();
                eprintln!("{} of {} runs", run - a.first, a.runs);
            }
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let results: Vec<Result<()>> = std::thread::scope(|s| {
        let workers: Vec<_> = (0..workers).map(|w| threads::start(s, move || work(w))).collect();
        let panicked = || Err(Error::Bug("a run of the soak panicked".into()));
        workers.into_iter().map(|w| w?.join().unwrap_or_else(|_| panicked())).collect()
    });
    if let Some(error) = results.into_iter().find_map(Result::err) {
        let kept = folder.keep();
        let what = match error {
            Error::Bug(what) => what.to_string(),
            other => other.to_string(),
        };
        return Err(Error::bug(format!("{what}\nThe files of the run are in {}", kept.display())));
    }
    for (kind, runs) in kinds.into_inner().unwrap_or_else(PoisonError::into_inner) {
        print(format!("{runs:>8} {kind}"))?;
    }
    print(format!(
        "{:>8} runs in {:.0} seconds, every result equal to the plain computation; seed {seed}",
        a.runs,
        start.elapsed().as_secs_f64()
    ))
}

/// Performs a random run, and returns its category.
fn one(folder: &Path, seed: u64, run: u64, max_items: usize, people: &People) -> Result<String> {
    let mut whole = [0; 32];
    whole[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = seeded(&whole).fork(run);
    // The folder may be left over from an earlier run.
    let _ = std::fs::remove_dir_all(folder);
    let unusable = |e: std::io::Error| Error::output(format!("cannot write {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(unusable)?;
    let said_wrong = |what: String, lines: &[Vec<String>]| {
        let lines = lines.iter().map(|words| format!("\n  veilset {}", typed(words)));
        Error::bug(format!("run {run} of seed {seed} is wrong: {what}{}", lines.collect::<String>()))
    };
    if rng.below(SEVERAL) == 0 {
        let mut case = several::MultipartyCase::random(&mut rng, folder, max_items, people)?;
        return case.run().map_err(|what| said_wrong(what, &case.words)).map(|()| case.kind);
    }
    let over_tls = run.is_multiple_of(OVER_TLS);
    let case = Case::random(&mut rng, folder, max_items, people, over_tls)?;
    let ran = of_two(&case, people, over_tls);
    let picked = ran.map_err(|what| {
        let lines: Vec<_> = case.prepare.iter().flatten().chain(&case.words).cloned().collect();
        said_wrong(what, &lines)
    })?;
    Ok(case.kind + &picked)
}

/// Formats the words for a shell.
fn typed(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=/.,:@%+".contains(c);
    let quoted = |word: &String| match word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Runs both parties, and compares their results with the expected ones. Returns a colon and the protocol that they picked, if
/// they named none; otherwise an empty text.
fn of_two(case: &Case, people: &People, over_tls: bool) -> Result<String, String> {
    let [receiver, sender] = case.words.each_ref().map(|words| spec(words).map_err(|e| e.to_string()));
    let (receiver, sender) = (receiver?, sender?);
    let connections = match over_tls {
        true => connections_over_tls([&people.identities[0], &people.identities[1]]),
        false => {
            let (a, b) = Channel::pair();
            Ok([a, b].map(|mut channel| {
                // If the parties wait for each other for ever, the run reports it.
                channel.set_patience(PATIENCE);
                Connection::unprotected(channel, WireCount::default())
            }))
        }
    };
    let [ours, theirs] = connections.map_err(|e| e.to_string())?;
    let side = |who: usize, spec, connection: Connection| {
        if let Some(words) = &case.prepare[who] {
            make(&MakePlan::of(command(words)?)?, InputTable::table, &Silent)?;
        }
        party(spec, connection, Some(&people.identities[who]))
    };
    let results = std::thread::scope(|s| {
        let parties =
            [threads::start(s, || side(0, receiver, ours)), threads::start(s, || side(1, sender, theirs))];
        parties.map(|party| party?.join().unwrap_or_else(|_| Err(Error::Bug("it panicked".into()))))
    });
    let ended = results.iter().zip(["receiver", "sender"]);
    let failed = ended
        .filter_map(|(result, role)| result.as_ref().err().map(|e| format!("the {role} ended with: {e}")));
    let failed: Vec<_> = failed.collect();
    let [Ok(ours), Ok(theirs)] = results else { return Err(failed.join("; ")) };
    let mut names = Names::default();
    for (i, files) in [&ours, &theirs].into_iter().enumerate() {
        compare(files, &case.expected[i], &mut names)
            .map_err(|e| format!("the {}'s result: {e}", ["receiver", "sender"][i]))?;
        if files.spent == Some(false) {
            return Err(format!("the {}'s half is still there", ["receiver", "sender"][i]));
        }
    }
    compare_lists([ours.ids.as_deref(), theirs.ids.as_deref()], &case.expected[0], &names)?;
    if let Expected::Shared { rows, all } = &case.expected[0] {
        compare_shares([&ours, &theirs], rows, *all)?;
    }
    if ours.choice != theirs.choice {
        return Err(format!("the receiver ran {}, and the sender {}", ours.choice, theirs.choice));
    }
    Ok(if case.picks { format!(": {}", ours.choice) } else { String::new() })
}

/// Parses these words as typed.
fn command(words: &[String]) -> Result<Wanted> {
    let words = std::iter::once("veilset".into()).chain(words.iter().map(Into::into));
    Typed::parsed(words).map_err(|e| Error::bug(e.to_string()))
}

/// Returns a party's computation, parsed as if it had been typed.
fn spec(words: &[String]) -> Result<PartySpec> {
    PartyPlan::of(command(words)?, false).map(|plan| plan.party)
}

/// Runs one party in full, and returns the paths of its files.
fn party(spec: PartySpec, connected: impl Into<Connected>, identity: Option<&Identity>) -> Result<Files> {
    let mut rng = Prng::from_os()?;
    let data = spec.load(&Watch::NONE)?;
    let prepared = data.prepare(identity, &Watch::NONE, &mut rng)?;
    let (output, ids, map) = (spec.create_output()?, spec.create_ids()?, spec.create_map()?);
    let ran = party::run(connected, prepared, None, &mut rng)?;
    ran.report.to_json()?;
    let spent = spec.prepared.as_ref().map(|(half, _)| ran.report.prepared && !half.exists());
    let mut files = Files { choice: ran.outcome.choice.to_string(), spent, ..Files::default() };
    if let Some(mut output) = output {
        data.write(&ran.outcome, &mut output)?;
        output.commit()?;
        files.result.clone_from(&spec.output);
    }
    if let Some(mut ids) = ids {
        data.write_beside(&ran.outcome, &mut ids)?;
        ids.commit()?;
        files.ids.clone_from(&spec.ids);
    }
    if let Some(mut map) = map {
        data.write_beside(&ran.outcome, &mut map)?;
        map.commit()?;
        files.map.clone_from(&spec.map);
    }
    Ok(files)
}

/// A front end that shows nothing and never stops a run.
struct Silent;

impl Front for Silent {
    fn stop(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        Arc::new(|| false)
    }
    fn phase(&self, _: Option<Phase>) {}
    fn read(&self, _: u64) {}
    fn say(&self, _: &str) {}
    fn warn(&self, _: &str) {}
    fn begins(&self, _: Canceller) {}
    fn observer(&self) -> Option<Arc<dyn Observer>> {
        None
    }
    fn together(&self, _: usize) {}
    fn ends(&self, _: bool) {}
}

fn connections_over_tls([a, b]: [&Arc<Identity>; 2]) -> Result<[Connection; 2]> {
    let security = |own: &Arc<Identity>, peer: &Arc<Identity>| Protection::Tls {
        identity: own.clone(),
        peer: peer.fingerprint(),
    };
    let listener = Listener::bind("127.0.0.1:0")?;
    let endpoint = Endpoint::connect(listener.local_addr().to_string());
    std::thread::scope(|s| {
        let there =
            threads::start(s, || establish(&endpoint, &security(b, a), TIMEOUTS, &|| false, &|_| ()))?;
        let here = listener.accept(&security(a, b), TIMEOUTS, &|| false, &|_| ())?;
        let there = there.join().map_err(|_| Error::Bug("a connection panicked".into()))?;
        Ok([here, there?])
    })
}

/// A party's files in the end: its result, its list of identifiers, and its map of shares.
#[derive(Default)]
struct Files {
    /// The protocol and group of the run.
    choice: String,
    /// Whether its half, if it had one, was used and deleted.
    spent: Option<bool>,
    result: Option<PathBuf>,
    ids: Option<PathBuf>,
    map: Option<PathBuf>,
}

/// The identifiers of both parties, each with its counterpart in the plain computation.
#[derive(Default)]
struct Names(BTreeMap<Vec<u8>, Vec<u8>>);

impl Names {
    /// Returns whether neither this identifier nor that plain one has another counterpart. If so, the two are a pair from here
    /// on.
    fn stands_for(&mut self, identifier: &[u8], plain: &[u8]) -> bool {
        let known = self.0.iter().find(|(_, other)| *other == plain).map(|(known, _)| known);
        known.is_none_or(|known| known == identifier)
            && *self.0.entry(identifier.to_vec()).or_insert_with(|| plain.to_vec()) == plain
    }
}

/// Compares a party's result with the expected one, except for shares. The same `names` are passed for both parties.
fn compare(files: &Files, expected: &Expected, names: &mut Names) -> Result<(), String> {
    let (path, rows) = match (&files.result, expected) {
        (None, Expected::Nothing) | (Some(_), Expected::Shared { .. }) => return Ok(()),
        (Some(path), Expected::Rows(rows) | Expected::Identified { rows, .. }) => (path, rows),
        _ => return Err("there is an unexpected result, or an expected one is missing".into()),
    };
    let mut got = cells::read(path)?;
    let mut rows = rows.clone();
    if got.first() != rows.first() {
        return Err(format!("the header is {:?} instead of {:?}", got.first(), rows.first()));
    }
    if let Expected::Identified { .. } = expected {
        for (got, row) in got.iter_mut().zip(&rows).skip(1) {
            if let (Some(identifier), Some(plain)) = (got.last_mut(), row.last()) {
                if identifier.len() != 32 || !names.stands_for(identifier, plain) {
                    return Err("an identifier is not that of its key, or not one".into());
                }
                identifier.clone_from(plain);
            }
        }
    }
    // Only the set of rows matters here. The tests of the tables check that our rows keep their order.
    got.sort();
    rows.sort();
    match got == rows {
        true => Ok(()),
        false => {
            Err(format!("{} rows where {} were expected, or other cells", got.len() - 1, rows.len() - 1))
        }
    }
}

/// Compares both parties' lists of identifiers with each other and with the identifiers of their rows.
fn compare_lists(lists: [Option<&Path>; 2], expected: &Expected, names: &Names) -> Result<(), String> {
    let (lists, all) = match (lists, expected) {
        ([None, None], Expected::Nothing | Expected::Rows(_) | Expected::Shared { .. }) => return Ok(()),
        ([Some(a), Some(b)], Expected::Identified { all, .. }) => ([a, b], *all),
        _ => return Err("there is an unexpected list of identifiers, or an expected one is missing".into()),
    };
    let [ours, theirs] = lists.map(|path| cells::read(path).map(|rows| rows[1..].concat()));
    let (ours, theirs) = (ours?, theirs?);
    let sorted = ours.windows(2).all(|pair| pair[0] < pair[1]);
    match ours == theirs && sorted && ours.len() == all && names.0.keys().all(|name| ours.contains(name)) {
        true => Ok(()),
        false => Err(format!(
            "the lists of {} and {} identifiers, where {all} were expected",
            ours.len(),
            theirs.len()
        )),
    }
}

/// Compares the sums of both parties' shares with the expected ones, in the order of the sender's map.
fn compare_shares([ours, theirs]: [&Files; 2], rows: &[String], all: usize) -> Result<(), String> {
    let read = |path: &Option<PathBuf>| cells::read(path.as_deref().ok_or("a file is missing")?);
    let (ours, theirs, map) = (read(&ours.result)?, read(&theirs.result)?, read(&theirs.map)?);
    let numbered = |file: &cells::Rows| {
        let mut rows = file.iter().skip(1).enumerate();
        file.len() == all + 1 && rows.all(|(i, row)| row[0] == i.to_string().as_bytes())
    };
    if !numbered(&ours) || !numbered(&theirs) || map.len() != rows.len() + 1 {
        return Err(format!("{} and {} shares, where {all} were expected", ours.len() - 1, theirs.len() - 1));
    }
    let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
    let mut sums: Vec<String> = Vec::new();
    for (ours, theirs) in ours.iter().zip(&theirs).skip(1) {
        sums.push(sum_of_shares(&text(&ours[1]), &text(&theirs[1])).ok_or("a share is not hexadecimal")?);
    }
    for (row, expected) in map.iter().skip(1).zip(rows) {
        let at = row.last().and_then(|cell| text(cell).parse::<usize>().ok());
        let sum = at.and_then(|at| sums.get_mut(at)).ok_or("the map names a row that there is not")?;
        if std::mem::take(sum) != *expected {
            return Err("shares do not add up to what they should".into());
        }
    }
    // The remaining sums belong to dummies.
    match sums.iter().all(|sum| sum.bytes().all(|digit| digit == b'0')) {
        true => Ok(()),
        false => Err("the shares of a dummy do not add up to zero".into()),
    }
}

/// Adds two shares: modulo 2^64 if they have 16 digits, otherwise bit by bit modulo 2.
fn sum_of_shares(a: &str, b: &str) -> Option<String> {
    let byte = |text: &str, i: usize| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok();
    match (a.len(), b.len()) {
        (16, 16) => {
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some(format!("{:016x}", number(a)?.wrapping_add(number(b)?)))
        }
        (n, m) if n == m => (0..n / 2).map(|i| Some(format!("{:02x}", byte(a, i)? ^ byte(b, i)?))).collect(),
        _ => None,
    }
}
