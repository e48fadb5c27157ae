//! Breaks veilset on purpose, one property at a time, and records which test notices.
//!
//! A *mutant* is a named change of the source. All mutants are put into a scratch copy of the repository as branches on a
//! run-time switch, so that one build serves all; then each is switched on for the tests that it must make fail. The wire
//! snapshot is never among these tests: it is blessed again at every change of a protocol. The tests leave nothing out
//! ([`veilset_testing::whole`]), and must first pass without a mutant.
//!
//! - The *table* (`mutants/*.toml`) has mutants that break a security property. Each names the tests that must notice.
//! - *Drawn* mutants are made from the syntax: an operator replaced, a statement deleted, a function that returns at
//!   once. Survivors are judged by people, once, in `mutants/judged.toml`.

mod drawn;
mod patch;
mod run;
mod table;

use run::Case;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// The result type of this program; an error is a sentence for its user.
type Result<T, E = String> = std::result::Result<T, E>;

const HELP: &str = "scripts/mutants [OPTIONS] [NAME...]

Runs the mutants of mutants/*.toml, or those named (a name that ends in - or * stands for all that begin so), and
prints those that no test noticed. Exit code 1 if there are any.

  --check           only see whether every change finds its place in the source, and its tests
  --sample N        N of them, drawn by the seed
  --survey          run all unit tests against each mutant and print which notice it, instead of those named
  --drawn N         draw N mutants from the syntax of the files given with --file, instead of the table
  --file PATTERN    only in files whose path contains this; may be repeated
  --seed S          another draw, any text [default: VEILSET_TEST_SEED, or the day]
  --jobs N          tests at a time [default: one per core]
  --root DIR        the repository [default: the one that this was started in]";

#[derive(Default)]
struct Options {
    check: bool,
    sample: Option<usize>,
    survey: bool,
    drawn: Option<usize>,
    files: Vec<String>,
    seed: String,
    jobs: usize,
    root: PathBuf,
    names: Vec<String>,
}

impl Options {
    fn parse() -> Result<Option<Options>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let seed = veilset_testing::seed().to_string();
        let mut options = Options { seed, jobs: cores, root: repository()?, ..Options::default() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} takes a value"));
            let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is not a number"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--check" => options.check = true,
                "--sample" => options.sample = Some(number(value()?)? as usize),
                "--survey" => options.survey = true,
                "--drawn" => options.drawn = Some(number(value()?)? as usize),
                "--file" => options.files.push(value()?),
                "--seed" => options.seed = value()?,
                "--jobs" => options.jobs = number(value()?)?.max(1) as usize,
                "--root" => options.root = PathBuf::from(value()?),
                other if other.starts_with('-') => {
                    return Err(format!("{other} is not an option; see --help"));
                }
                name => options.names.push(name.to_string()),
            }
        }
        if options.drawn.is_some() && (options.sample.is_some() || !options.names.is_empty()) {
            return Err("--drawn is not for mutants of the table".into());
        }
        options.root = options.root.canonicalize().map_err(|e| format!("--root: {e}"))?;
        Ok(Some(options))
    }
}

impl Options {
    /// Returns the settings for running tests.
    fn tier(&self, sources: &patch::Sources) -> run::Tier {
        run::Tier { seed: self.seed.clone(), skipped: run::of_scripts(sources) }
    }
}

fn repository() -> Result<PathBuf> {
    let output = Command::new("git").args(["rev-parse", "--show-toplevel"]).output();
    let output = output.map_err(|e| format!("cannot run git: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(if text.trim().is_empty() { PathBuf::from(".") } else { PathBuf::from(text.trim()) })
}

fn main() -> ExitCode {
    let done = Options::parse().and_then(|options| match options {
        None => {
            println!("{HELP}");
            Ok(true)
        }
        Some(options) if options.drawn.is_some() => drawn(&options),
        Some(options) => from_table(&options),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("mutants: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs the table. Returns whether every mutant was noticed.
fn from_table(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let mut mutants = table::load(&options.root, &options.names)?;
    mutants.retain(|mutant| mutant.is_in(&options.files));
    if let Some(n) = options.sample {
        let of = mutants.len();
        mutants = table::sample(mutants, n, &options.seed);
        println!("{} of {of} mutants, drawn by {}={}", mutants.len(), veilset_testing::SEED, options.seed);
    }
    let sources = patch::sources(&options.root)?;
    let (mut edits, mut cases, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for (i, mutant) in mutants.iter().enumerate() {
        match mutant.edits(i + 1, &sources) {
            Ok(own) => edits.extend(own),
            Err(why) => lost.push(why),
        }
        match mutant.cases(&sources) {
            Ok(own) => cases.extend(own.into_iter().map(|case| (i, case))),
            Err(why) => lost.push(why),
        }
    }
    if !lost.is_empty() {
        return Err(lost.join("\n"));
    }
    patch::check(&edits)?;
    patch::parse(&sources, &edits)?;
    if options.check {
        println!("{} mutants, each with its place in the source and its tests", mutants.len());
        return Ok(true);
    }
    let copy = patch::write(&options.root, &sources, &edits)?;
    let packages: Vec<&str> = mutants.iter().filter_map(|mutant| mutant.package.as_deref()).collect();
    let fhe = patch::of_fhe(&sources);
    let fhe = mutants.iter().any(|mutant| mutant.is_of(&fhe));
    let built = run::build(&copy, &packages, fhe, options.tier(&sources))?;
    let mut built = built.map_err(|errors| {
        errors.iter().fold("a mutant does not compile:\n".to_string(), |text, e| text + &e.rendered)
    })?;
    println!("{} mutants, built after {} s", mutants.len(), start.elapsed().as_secs());
    if options.survey {
        built.baseline(options.jobs, mutants.iter().flat_map(table::Mutant::wide).collect())?;
        for (i, mutant) in mutants.iter().enumerate() {
            let mut noticed = Vec::new();
            for case in mutant.wide() {
                noticed.extend(built.survey(&case, i + 1)?);
            }
            let names = noticed.iter().take(6).cloned().collect::<Vec<_>>().join(" ");
            println!("{}: {} tests notice: {names}", mutant.name, noticed.len());
        }
        return Ok(true);
    }
    let tests = built.baseline(options.jobs, cases.iter().map(|(_, case)| case.clone()).collect())?;
    let verdicts = built.in_parallel(options.jobs, &cases, |(i, case)| built.verdict(case, i + 1));
    let mut survivors = String::new();
    let mut alive = std::collections::BTreeSet::new();
    for ((i, case), verdict) in cases.iter().zip(&verdicts) {
        if *verdict != run::Verdict::Failed {
            alive.insert(i);
            let table::Mutant { name, property, .. } = &mutants[*i];
            let _ = writeln!(survivors, "  {name} ({property}): {verdict} by {case}");
        }
    }
    if !survivors.is_empty() {
        print!("survivors:\n{survivors}");
    }
    println!(
        "{} mutants, {tests} tests, {} s\n{} passed, {} failed",
        mutants.len(),
        start.elapsed().as_secs(),
        mutants.len() - alive.len(),
        alive.len()
    );
    Ok(alive.is_empty())
}

/// Runs drawn mutants, each with the tests of its module, and survivors with all unit tests of their crate and of the crates
/// built on it. Returns whether all survivors were judged before.
fn drawn(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let judged = table::judged(&options.root)?;
    let sources = patch::sources(&options.root)?;
    let all = drawn::candidates(&sources, &options.files)?;
    let of = all.len();
    let mut mutants = drawn::draw(all, options.drawn.unwrap_or_default(), &options.seed);
    let fhe = patch::of_fhe(&sources);
    let fhe = mutants.iter().any(|mutant| fhe.iter().any(|of| patch::module(mutant.file()).starts_with(of)));
    let mut built = loop {
        let edits: Vec<patch::Edit> = mutants.iter().enumerate().map(|(i, m)| m.edit(i + 1)).collect();
        let copy = patch::write(&options.root, &sources, &edits)?;
        match run::build(&copy, &[], fhe, options.tier(&sources))? {
            Ok(built) => break built,
            // A change that does not compile is no mutant.
            Err(errors) => {
                let before = mutants.len();
                let broken = patch::culprits(&sources, &edits, &errors);
                let mut i = 0;
                mutants.retain(|_| {
                    i += 1;
                    !broken.contains(&i)
                });
                if mutants.len() == before {
                    let text: String = errors.iter().map(|e| e.rendered.as_str()).collect();
                    return Err(format!("the copy does not compile:\n{text}"));
                }
            }
        }
    };
    println!(
        "{} mutants drawn of {of} places by {}={}, built after {} s",
        mutants.len(),
        veilset_testing::SEED,
        options.seed,
        start.elapsed().as_secs()
    );
    // A change in one crate may be noticed in a crate built on it.
    let cases = |mutant: &drawn::Candidate| {
        let module = Case::module(&patch::package(mutant.file()), &mutant.module());
        let whole = patch::noticing(mutant.file()).into_iter().map(|package| Case::module(&package, ""));
        std::iter::once(module).chain(whole).collect::<Vec<_>>()
    };
    built.baseline(options.jobs, mutants.iter().flat_map(cases).collect())?;
    let numbers: Vec<usize> = (1..=mutants.len()).collect();
    let verdicts = built.in_parallel(options.jobs, &numbers, |&k| {
        let mutant = &mutants[k - 1];
        let cases = cases(mutant);
        let own = built.verdict(&cases[0], k);
        let mut all = own;
        for case in &cases[1..] {
            if all == run::Verdict::Passed {
                all = built.verdict(case, k);
            }
        }
        if all == run::Verdict::Passed && !judged.iter().any(|judged| mutant.is(judged)) {
            println!("survivor: {}", mutant.describe());
        }
        (own, all)
    });
    // Tests that do not end count as noticing too, since a person would notice the wait.
    let (mut by_module, mut survived, mut known) = (0, 0, 0);
    for (mutant, (own, all)) in mutants.iter().zip(verdicts) {
        by_module += usize::from(own != run::Verdict::Passed);
        if all == run::Verdict::Passed {
            survived += 1;
            known += usize::from(judged.iter().any(|judged| mutant.is(judged)));
        }
    }
    println!(
        "{} mutants: {by_module} noticed by the tests of their module, {} by others; {survived} survivors, {known} of \
         them judged before; {} s\n{} passed, {} failed",
        mutants.len(),
        mutants.len() - by_module - survived,
        start.elapsed().as_secs(),
        mutants.len() - survived + known,
        survived - known
    );
    Ok(survived == known)
}

/// Reads a file of the repository.
fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}
