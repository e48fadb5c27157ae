//! `veilset-dev bench tables`: measures the tables of the papers again.
//!
//! Each point is a run of this program as a child, `veilset-dev bench ... --json`. It is written to the file of its table as
//! soon as it is measured; a later run measures only missing points. A folder holds the results of one machine and one version.

mod drawings;
mod machine;
mod papers;
mod point;
mod report;
mod results;

use super::unable;
use crate::args::TablesArgs;
use machine::Machine;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use papers::{Paper, Row, Table};
use point::Point;
use results::{Measured, Results, Run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use veilset::error::{Error, Result};
use veilset::speed::Speeds;
use veilset_app::STOPPED;
use veilset_app::speeds::speeds;
use veilset_cli::{print, printer, signals, unwatched};

/// The expected duration, in seconds, above which `--quick` omits a point.
const QUICK_SECONDS: f64 = 10.0;

/// Measures the missing points among those requested, and writes the pages.
pub fn run(a: &TablesArgs) -> Result<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in signals() {
        signal_hook::flag::register(signal, interrupted.clone()).map_err(unwatched)?;
    }
    let papers = papers::all()?;
    let machine = Machine::this();
    refuse_unknown(a, &papers)?;
    let _ours = results::prepare(&a.out)?;
    let programs = programs(a.beside.as_deref())?;
    // All existing files are checked before any time is spent on measurements.
    let mut all = load(&a.out, &papers, &machine)?;
    let say = printer(a.quiet);
    let speeds = speeds(None, 1, &mut &say);
    let planned = Planned::of(a, &all, &speeds, &programs);
    let mut count = Count { left_out: planned.too_long, ..Count::default() };
    let total = planned.tasks.len();
    for (i, task) in planned.tasks.iter().enumerate() {
        let (paper, table, results) = &mut all[task.table];
        let beside = programs[task.program].beside.as_deref();
        let done = results.find(&task.point.command, beside).map_or(0, |point| point.runs.len());
        if done >= a.runs && !a.again {
            count.there += 1;
            continue;
        }
        if a.again {
            results.forget(&task.point.command, beside);
        }
        for run in if a.again { 0 } else { done }..a.runs {
            say(&format!("{}/{total} {} table {}: {}", i + 1, paper.name, table.name, task.point.command));
            let program = &programs[task.program];
            match measure(program, &task.point.command, &interrupted)? {
                Some(figures) => {
                    let point = Measured { beside: program.beside.clone(), ..task.point.clone() };
                    results.add(point, Run { date: machine::today(), figures });
                    results.save(&a.out)?;
                    count.measured += usize::from(run + 1 == a.runs);
                }
                None => {
                    count.failed.push(task.point.command.clone());
                    break;
                }
            }
        }
    }
    let shown = report::Report { machine: &machine, speeds: &speeds, tables: &all };
    conclude(&a.out, &shown, &count)
}

/// A table with its known results.
type Known<'a> = (&'a Paper, &'a Table, Results);

fn load<'a>(folder: &Path, papers: &'a [Paper], machine: &Machine) -> Result<Vec<Known<'a>>> {
    let tables = papers.iter().flat_map(|paper| paper.tables.iter().map(move |table| (paper, table)));
    tables.map(|(paper, table)| Ok((paper, table, Results::load(folder, paper, table, machine)?))).collect()
}

/// The numbers of points by outcome.
#[derive(Default)]
struct Count {
    measured: usize,
    there: usize,
    left_out: usize,
    failed: Vec<String>,
}

fn conclude(folder: &Path, report: &report::Report<'_>, count: &Count) -> Result<()> {
    let pages = [("tables.md", report.markdown()), ("tables.html", report.html())];
    for (name, text) in pages {
        results::write(&folder.join(name), &text)?;
    }
    let Count { measured, there, left_out, failed } = count;
    print(format!(
        "{measured} measured, {there} were there, {left_out} left out as they are expected to take too long"
    ))?;
    print(format!("written: {0}/tables.md, {0}/tables.html", folder.display()))?;
    match failed.first() {
        Some(first) => Err(Error::usage(format!(
            "{} could not be measured, the first of them by veilset-dev {first}. The message above says why. What was \
             measured is kept; the same command measures the rest",
            failed.len()
        ))),
        None => Ok(()),
    }
}

/// A program to measure.
struct Program {
    path: OsString,
    /// The program's name and version; `None` for this program.
    beside: Option<String>,
}

fn programs(beside: Option<&Path>) -> Result<Vec<Program>> {
    let this = std::env::current_exe().map_err(unable)?;
    let mut all = vec![Program { path: this.into(), beside: None }];
    if let Some(path) = beside {
        let said = Command::new(path).arg("--version").stdin(Stdio::null()).output();
        let said = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
        match said {
            Ok(version) if version.starts_with("veilset-dev ") => {
                all.push(Program {
                    path: path.into(),
                    beside: Some(format!("{} ({version})", path.display())),
                });
            }
            Ok(_) => {
                return Err(Error::usage(format!(
                    "--beside {}: this is no veilset-dev. Name one, for instance target/avx2/release/veilset-dev",
                    path.display()
                )));
            }
            Err(e) => {
                return Err(Error::usage(format!(
                    "--beside {}: the program cannot be started: {e}. Name a program by its path",
                    path.display()
                )));
            }
        }
    }
    Ok(all)
}

/// The requested points.
struct Planned {
    tasks: Vec<Task>,
    /// The number of points that are expected to take too long.
    too_long: usize,
}

/// A point to measure with a program, without figures yet.
struct Task {
    table: usize,
    program: usize,
    point: Measured,
}

impl Planned {
    fn of(a: &TablesArgs, all: &[Known<'_>], speeds: &Speeds, programs: &[Program]) -> Planned {
        let most = a.most_seconds.or(a.quick.then_some(QUICK_SECONDS)).unwrap_or(f64::INFINITY);
        let mut planned = Planned { tasks: Vec::new(), too_long: 0 };
        for (i, (paper, table, _)) in
            all.iter().enumerate().filter(|(_, (paper, table, _))| wants(a, paper, table))
        {
            // Rows that differ only in the paper's threads may be a single point here.
            let mut seen = BTreeSet::new();
            for point in points(paper, table, a.threads).filter(|point| wants_point(a, point)) {
                let command = point.words().join(" ");
                if !seen.insert(command.clone()) {
                    continue;
                }
                let predicted = point.predicted(speeds, cores());
                if predicted.is_some_and(|seconds| seconds > most) {
                    planned.too_long += 1;
                    continue;
                }
                let (paper_seconds, paper_megabytes) =
                    table.figures(point.row, point.log_n, &point.network.name);
                let predicted_seconds = predicted;
                let point = Measured {
                    command,
                    predicted_seconds,
                    paper_seconds,
                    paper_megabytes,
                    ..Measured::default()
                };
                let tasks =
                    (0..programs.len()).map(|program| Task { table: i, program, point: point.clone() });
                planned.tasks.extend(tasks);
            }
        }
        planned
    }
}

/// Returns all points of a table.
fn points<'a>(paper: &'a Paper, table: &'a Table, threads: Option<u16>) -> impl Iterator<Item = Point<'a>> {
    table.rows.iter().flat_map(move |row| {
        table.sizes(row).iter().flat_map(move |&log_n| {
            let threads = ours(row, threads);
            table.networks(paper).iter().map(move |network| Point { table, row, network, log_n, threads })
        })
    })
}

/// Returns the threads of a party here: the paper's, but at most the requested number, by default the number of cores.
fn ours(row: &Row, threads: Option<u16>) -> u16 {
    row.threads.min(threads.unwrap_or(u16::try_from(cores()).unwrap_or(u16::MAX)))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn listed<T: PartialEq>(list: &[T], one: &T) -> bool {
    list.is_empty() || list.contains(one)
}

fn wants(a: &TablesArgs, paper: &Paper, table: &Table) -> bool {
    listed(&a.paper, &paper.name) && listed(&a.table, &table.name)
}

fn wants_point(a: &TablesArgs, point: &Point<'_>) -> bool {
    let Point { table, row, network, log_n, .. } = point;
    (!a.quick || table.is_quick(row, *log_n))
        && listed(&a.log_n, log_n)
        && listed(&a.net, &network.name)
        && listed(&a.parties, &row.parties.unwrap_or(2))
        && (a.op.is_empty() || a.op.iter().any(|op| op.name == row.op))
}

/// Refuses selections that no table has, and empty ones.
fn refuse_unknown(a: &TablesArgs, papers: &[Paper]) -> Result<()> {
    let tables: Vec<(&Paper, &Table)> = papers
        .iter()
        .filter(|paper| listed(&a.paper, &paper.name))
        .flat_map(|paper| paper.tables.iter().map(move |table| (paper, table)))
        .collect();
    let names: Vec<&str> = tables.iter().map(|(_, table)| table.name.as_str()).collect();
    if let Some(unknown) = a.table.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(Error::usage(format!(
            "there is no table {unknown}. These are there: {}",
            names.join(", ")
        )));
    }
    let chosen = tables.iter().filter(|(paper, table)| wants(a, paper, table));
    let any = chosen
        .clone()
        .any(|(paper, table)| points(paper, table, a.threads).any(|point| wants_point(a, &point)));
    if any {
        return Ok(());
    }
    let networks: BTreeSet<&str> = chosen
        .clone()
        .flat_map(|(paper, table)| table.networks(paper))
        .map(|network| network.name.as_str())
        .collect();
    let sizes: BTreeSet<u32> =
        chosen.flat_map(|(_, table)| table.rows.iter().flat_map(|row| table.sizes(row))).copied().collect();
    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
    Err(Error::usage(format!(
        "no table has such a point. Their sizes are --log-n {}, their networks --net {}; omit one of the options",
        sizes.join(","),
        networks.into_iter().collect::<Vec<_>>().join(",")
    )))
}

/// Runs the benchmark; `None` if it fails, after it has printed its error.
fn measure(program: &Program, command: &str, interrupted: &AtomicBool) -> Result<Option<Value>> {
    if interrupted.load(Ordering::SeqCst) {
        return Err(Error::Cancelled);
    }
    let mut child = Command::new(&program.path);
    // The child has its own process group, so that only we forward Ctrl-C to it.
    child.args(command.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = child.spawn().map_err(unable)?;
    let mut told = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(unable)? {
            break status;
        }
        if interrupted.load(Ordering::SeqCst) && !told {
            // The child kills its parties.
            told = true;
            let id = i32::try_from(child.id()).map_err(|_| Error::Bug("the number of a process".into()))?;
            kill(Pid::from_raw(id), Signal::SIGTERM).map_err(|e| unable(e.into()))?;
        }
        std::thread::sleep(super::LOOK);
    };
    if told || status.code() == Some(i32::from(STOPPED)) {
        return Err(Error::Cancelled);
    }
    let mut text = String::new();
    if let Some(out) = &mut child.stdout {
        out.read_to_string(&mut text).map_err(unable)?;
    }
    match (status.success(), serde_json::from_str(&text)) {
        (true, Ok(figures)) => Ok(Some(figures)),
        (true, Err(e)) => Err(Error::bug(format!("the figures of a benchmark: {e}"))),
        (false, _) => Ok(None),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
