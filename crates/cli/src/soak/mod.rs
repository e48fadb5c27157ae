//! `veilset soak`: random runs of both parties, each compared with the plain computation.
//!
//! The parameters of a run (operation, options, files of every format, sizes, overlap) are derived from the seed
//! and the run's number, so that a failed run can be repeated with `--first`. The protocols' own randomness
//! comes from the operating system, as always.

mod case;
mod cells;

use crate::args::{Arguments, SoakArgs};
use crate::plan::PartyPlan;
use crate::print;
use case::{Case, Expected};
use clap::Parser;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use veilset::artefact::{self, Ledger};
use veilset::channel::{Channel, Timeouts, WireCount};
use veilset::error::{Error, Result};
use veilset::hazmat::seeded;
use veilset::job::{self, Job, Watch};
use veilset::net::{Connection, Endpoint, Identity, Listener, Protection, establish};
use veilset::rng::Prng;
use veilset::table::Destination;

/// One run in this many goes over TLS and a socket. The others use memory channels, to save time.
const OVER_TLS: u64 = 8;
/// How often a progress line is printed.
const TELL: Duration = Duration::from_secs(10);

/// Runs until a result is wrong or all runs are done.
pub fn run(a: &SoakArgs) -> Result<()> {
    let seed = a.seed.map_or_else(|| Ok(u64::from_le_bytes(Prng::from_os()?.bytes())), Ok)?;
    let folder = tempfile::tempdir()
        .map_err(|e| Error::Output(format!("cannot make a temporary folder: {e}. Set TMPDIR to another")))?;
    let identities = [Arc::new(Identity::generate()?), Arc::new(Identity::generate()?)];
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
            let kind = one(&folder, seed, run, a.max_items, &identities).inspect_err(|_| {
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
        let workers: Vec<_> = (0..workers).map(|w| s.spawn(move || work(w))).collect();
        let panicked = || Err(Error::Bug("a run of the soak panicked".into()));
        workers.into_iter().map(|w| w.join().unwrap_or_else(|_| panicked())).collect()
    });
    if let Some(error) = results.into_iter().find_map(Result::err) {
        let kept = folder.keep();
        return Err(Error::Bug(format!("{error}\nThe files of the run are in {}", kept.display())));
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

/// Performs a random run. Returns its category.
fn one(
    folder: &Path,
    seed: u64,
    run: u64,
    max_items: usize,
    identities: &[Arc<Identity>; 2],
) -> Result<String> {
    let mut whole = [0; 32];
    whole[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = seeded(&whole).fork(run);
    // Left over from an earlier run.
    let _ = std::fs::remove_dir_all(folder);
    let unusable = |e: std::io::Error| Error::Output(format!("cannot write {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(unusable)?;
    let case = Case::random(&mut rng, folder, max_items)?;
    // Whether the receiver and the sender prepare their offline halves.
    let prepares = [rng.below(4) == 0, rng.below(4) == 0];
    let wrong = |what: String| {
        let lines = case.words.iter().map(|words| format!("\n  veilset {}", words.join(" ")));
        Error::Bug(format!("run {run} of seed {seed} is wrong: {what}{}", lines.collect::<String>()))
    };
    let [receiver, sender] = case.words.each_ref().map(|words| job(words));
    let (receiver, sender) =
        (receiver.map_err(|e| wrong(e.to_string()))?, sender.map_err(|e| wrong(e.to_string()))?);
    let [ours, theirs] = match run % OVER_TLS {
        0 => connections_over_tls(identities)?,
        _ => {
            let (a, b) = Channel::pair();
            [a, b].map(|channel| Connection::unprotected(channel, WireCount::default()))
        }
    };
    let offer = receiver.protocol.offer(receiver.operation);
    let prepares = prepares.map(|prepares| prepares && offer.is_some_and(|offer| offer.prepares));
    let half = |who: usize| prepares[who].then(|| (folder, &*identities[who]));
    let results = std::thread::scope(|s| {
        let sender = s.spawn(|| party(sender, theirs, half(1)));
        let receiver = party(receiver, ours, half(0));
        [receiver, sender.join().unwrap_or_else(|_| Err(Error::Bug("the sender panicked".into())))]
    });
    for (role, (result, expected)) in
        ["receiver", "sender"].into_iter().zip(results.into_iter().zip(&case.expected))
    {
        let result = result.map_err(|e| wrong(format!("the {role} ended with: {e}")))?;
        compare(result.as_deref(), expected).map_err(|e| wrong(format!("the {role}'s result: {e}")))?;
    }
    Ok(case.kind + if prepares == [false; 2] { "" } else { " prepared" })
}

/// A party's job, parsed as if it had been typed.
fn job(words: &[String]) -> Result<Job> {
    let words = std::iter::once("veilset").chain(words.iter().map(String::as_str));
    let arguments = Arguments::try_parse_from(words).map_err(|e| Error::Bug(e.to_string()))?;
    PartyPlan::of(arguments.command).map(|plan| plan.job)
}

/// Runs one party in full, with a prepared half if a folder and an identity are given. Returns the path of its
/// result, if it has one.
fn party(mut job: Job, connection: Connection, half: Option<(&Path, &Identity)>) -> Result<Option<PathBuf>> {
    let mut rng = Prng::from_os()?;
    if let Some((folder, identity)) = half {
        let (path, ledger) = (folder.join(format!("{}.half", job.role)), folder.join("ledger"));
        let data = job.load(&Watch::NONE)?;
        let mut output = Destination::create("prepared half", Some(&path), false)?;
        let (basis, at) = (data.request().basis(), Ledger::at(&ledger));
        artefact::prepare(&basis, &at, identity, &mut output, &|_| Ok(()), &mut rng)?;
        output.commit()?;
        job.prepared = Some((path, ledger));
    }
    let data = job.load(&Watch::NONE)?;
    let prepared = data.prepare(half.map(|half| half.1), &Watch::NONE, &mut rng)?;
    let output = job.create_output()?;
    let ran = job::run(connection, prepared, None, &mut rng)?;
    ran.report.to_json()?;
    let Some(mut output) = output else { return Ok(None) };
    data.write(&ran.outcome, &mut output)?;
    output.commit()?;
    Ok(job.output.clone())
}

fn connections_over_tls([a, b]: &[Arc<Identity>; 2]) -> Result<[Connection; 2]> {
    let timeouts = Timeouts { connect: Duration::from_secs(30), idle: Duration::from_secs(60) };
    let security = |own: &Arc<Identity>, peer: &Arc<Identity>| Protection::Tls {
        identity: own.clone(),
        peer: peer.fingerprint(),
    };
    let listener = Listener::bind("127.0.0.1:0")?;
    let endpoint = Endpoint::Connect(listener.local_addr()?.to_string());
    std::thread::scope(|s| {
        let there = s.spawn(|| establish(&endpoint, &security(b, a), timeouts, &|| false, &|_| ()));
        let here = listener.accept(&security(a, b), timeouts, &|| false, &|_| ())?;
        let there = there.join().map_err(|_| Error::Bug("a connection panicked".into()))?;
        Ok([here, there?])
    })
}

/// Compares the result at a path with the expected one.
fn compare(path: Option<&Path>, expected: &Expected) -> Result<(), String> {
    let (path, rows) = match (path, expected) {
        (None, Expected::Nothing) => return Ok(()),
        (Some(path), Expected::Rows(rows)) => (path, rows),
        _ => return Err("there is an unexpected result, or an expected one is missing".into()),
    };
    let mut got = cells::read(path)?;
    let mut rows = rows.clone();
    if got.first() != rows.first() {
        return Err(format!("the header is {:?} instead of {:?}", got.first(), rows.first()));
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
