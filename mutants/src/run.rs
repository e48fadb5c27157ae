//! Builds the scratch copy and runs tests in it with one mutant switched on.

use crate::Result;
use crate::patch::{Copy, Sources};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The base time for a test, to which three times its duration without a mutant is added; a test that takes longer hangs. In
/// the table, that does not count as noticing.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time after which a test counts as hanging even without a mutant.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// The address space of a test program, in KiB: several times what any test uses.
const MEMORY: u64 = 8 << 20;
/// The snapshot test, which does not count as noticing.
const SNAPSHOTS: &str = "wire_bytes_are_those_of_the_snapshot";

/// The verdict of a test on a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The test did not notice.
    Passed,
    /// The test noticed.
    Failed,
    /// The test did not end.
    Hangs,
    /// The test does not exist.
    Missing,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Passed => "not noticed",
            Verdict::Failed => "fails",
            Verdict::Hangs => "hangs",
            Verdict::Missing => "no such test",
        })
    }
}

/// An error of the compiler.
pub struct CompileError {
    pub rendered: String,
    /// The places of the error: files of the copy, and byte offsets in them.
    pub places: Vec<(String, usize)>,
}

/// The tests of one call: a single test, or all tests with a common prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// A package, or a package and `--test NAME`.
    package: String,
    /// The test's full name, or the prefix of the names; "" is the whole package.
    name: String,
    exact: bool,
}

impl Case {
    /// Selects one test.
    pub fn test(package: &str, name: &str) -> Case {
        Case { package: package.into(), name: name.into(), exact: true }
    }

    /// Selects the tests of a module, except the snapshot.
    pub fn module(package: &str, module: &str) -> Case {
        Case { package: package.into(), name: module.into(), exact: false }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.exact, &self.name[..]) {
            (true, name) => f.write_str(name),
            (false, "") => write!(f, "the tests of {}", self.package),
            (false, name) => write!(f, "the tests of {name} in {}", self.package),
        }
    }
}

/// The settings for running tests.
pub struct Tier {
    /// The seed with which tests draw their cases.
    pub seed: String,
    /// The tests that need the setup of a separate script ([`of_scripts`]).
    pub skipped: Vec<String>,
}

/// Returns the tests that are ignored for a reason other than their duration.
pub fn of_scripts(sources: &Sources) -> Vec<String> {
    let ignored = sources.values().flat_map(|text| text.split("#[ignore").skip(1));
    let others = ignored.filter(|rest| !rest.starts_with(" = \"nightly"));
    let name = |rest: &str| Some(rest.split_once("fn ")?.1.split('(').next()?.to_string());
    others.filter_map(name).collect()
}

/// The test programs, by the packages and targets named in the table.
pub struct Built {
    programs: BTreeMap<String, Program>,
    tier: Tier,
    /// The time limit for each case.
    patience: BTreeMap<Case, Duration>,
}

/// The outcome of a case.
struct Ran {
    verdict: Verdict,
    /// The tests that failed.
    failed: Vec<String>,
    took: Duration,
}

struct Program {
    executable: PathBuf,
    /// The folder in which cargo starts the tests.
    folder: PathBuf,
}

#[derive(Deserialize)]
struct Line {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    executable: Option<PathBuf>,
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Message {
    level: String,
    rendered: Option<String>,
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
}

/// Builds the unit tests of all crates, and the other tests among `packages`, with the feature `fhe` if `fhe` is set. The inner
/// error comes from the compiler.
///
/// The dependencies are shared with the repository's own tests: the profile and the selection of packages, and with it the
/// features, are the same.
pub fn build(
    copy: &Copy,
    packages: &[&str],
    fhe: bool,
    tier: Tier,
) -> Result<Result<Built, Vec<CompileError>>> {
    let mut command = Command::new("cargo");
    command.current_dir(&copy.workspace);
    command.args(["test", "--workspace", "--lib", "--no-run", "--message-format=json"]);
    if fhe {
        command.args(["--features", "veilset/fhe"]);
    }
    // The programs, which have the same names as the repository's, stay separate.
    command.env("CARGO_BUILD_BUILD_DIR", &copy.build).env("CARGO_TARGET_DIR", copy.workspace.join("target"));
    // The table is built often while it is edited, and a debugger is of no use here. Dependencies are built without debug
    // information anyway.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    let mut others: Vec<&str> =
        packages.iter().filter_map(|p| p.split_once(" --test ")).map(|(_, t)| t).collect();
    others.sort_unstable();
    others.dedup();
    for other in others {
        command.args(["--test", other]);
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cannot run cargo: {e}"))?;
    let (mut programs, mut errors) = (BTreeMap::new(), Vec::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        if let Some(message) = line.message.filter(|message| message.level == "error") {
            let places = message.spans.into_iter().map(|span| (copy.file(span.file_name), span.byte_start));
            errors.push(CompileError {
                rendered: message.rendered.unwrap_or_default(),
                places: places.collect(),
            });
        }
        if let ("compiler-artifact", Some(manifest), Some(target), Some(executable)) =
            (line.reason.as_str(), line.manifest_path, line.target, line.executable)
        {
            let folder = manifest.parent().unwrap_or(&copy.workspace).to_path_buf();
            let package = package_name(&manifest)?;
            let name = match target.kind.iter().any(|kind| kind == "test") {
                true => format!("{package} --test {}", target.name),
                false => package,
            };
            programs.insert(name, Program { executable, folder });
        }
    }
    if output.status.success() {
        return Ok(Ok(Built { programs, tier, patience: BTreeMap::new() }));
    }
    match errors.is_empty() {
        true => Err("cargo could not build the copy".into()),
        false => Ok(Err(errors)),
    }
}

fn package_name(manifest: &Path) -> Result<String> {
    let table: toml::Table = toml::from_str(&crate::read(manifest)?).map_err(|e| e.to_string())?;
    let name = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
    name.map(Into::into).ok_or_else(|| format!("{} has no name", manifest.display()))
}

impl Built {
    /// Runs all cases without a mutant first. Refuses if any case fails, since it would notice every mutant.
    pub fn baseline(&mut self, jobs: usize, mut cases: Vec<Case>) -> Result<usize> {
        cases.sort();
        cases.dedup();
        let all = self.in_parallel(jobs, &cases, |case| self.run(case, 0, LONGEST));
        let mut unsound = Vec::new();
        for (case, Ran { verdict, failed, took }) in cases.iter().zip(all) {
            if verdict != Verdict::Passed {
                unsound.push(format!("{case}: {verdict} without a mutant {}", failed.join(" ")));
            }
            self.patience.insert(case.clone(), PATIENCE + 3 * took);
        }
        if unsound.is_empty() { Ok(cases.len()) } else { Err(unsound.join("\n")) }
    }

    /// Returns the verdict of a case of the baseline with a mutant on.
    pub fn verdict(&self, case: &Case, mutant: usize) -> Verdict {
        self.run(case, mutant, self.patience(case)).verdict
    }

    /// Returns the tests of a case that notice a mutant.
    pub fn survey(&self, case: &Case, mutant: usize) -> Result<Vec<String>> {
        let ran = self.run(case, mutant, self.patience(case));
        if ran.verdict == Verdict::Hangs { Err(format!("{case} hangs")) } else { Ok(ran.failed) }
    }

    fn patience(&self, case: &Case) -> Duration {
        self.patience.get(case).copied().unwrap_or(LONGEST)
    }

    /// Runs a case with a mutant on; 0 is none.
    fn run(&self, case: &Case, mutant: usize, most: Duration) -> Ran {
        let start = Instant::now();
        let (verdict, text) = match self.output(case, mutant, most) {
            _ if !self.programs.contains_key(&case.package) => (Verdict::Missing, String::new()),
            Some((_, text)) if case.exact && !text.contains("running 1 test\n") => (Verdict::Missing, text),
            Some((true, text)) => (Verdict::Passed, text),
            Some((false, text)) => (Verdict::Failed, text),
            None => (Verdict::Hangs, String::new()),
        };
        let failed = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
        Ran { verdict, failed: failed.map(Into::into).collect(), took: start.elapsed() }
    }

    /// Returns whether the tests passed, and their output; `None` if they took too long.
    fn output(&self, case: &Case, mutant: usize, most: Duration) -> Option<(bool, String)> {
        let Some(program) = self.programs.get(&case.package) else { return Some((false, String::new())) };
        // A mutant may use all memory.
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")]);
        command.arg(&program.executable).args([&case.name, "--include-ignored"]);
        if case.exact {
            command.arg("--exact");
        } else {
            let skipped = self.tier.skipped.iter().map(String::as_str);
            command.args(skipped.chain([SNAPSHOTS]).flat_map(|name| ["--skip", name]));
        }
        let child = command
            .current_dir(&program.folder)
            .env("VEILSET_MUTANT", mutant.to_string())
            .env(veilset_testing::TESTS, "whole")
            .env(veilset_testing::SEED, &self.tier.seed)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.ok()?;
        let mut stdout = child.stdout.take()?;
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stdout.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().ok()? {
                return Some((status.success(), reader.join().ok()?));
            }
            if start.elapsed() > most {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Applies `work` to each element, `jobs` at a time. Returns the results in order.
    pub fn in_parallel<T: Sync, R: Send>(
        &self,
        jobs: usize,
        list: &[T],
        work: impl Fn(&T) -> R + Sync,
    ) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let worker = || {
            let mut done = Vec::new();
            while let Some((i, element)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, list.get(i)?)))
            {
                done.push((i, work(element)));
            }
            done
        };
        let mut all: Vec<(usize, R)> = thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        });
        all.sort_by_key(|(i, _)| *i);
        all.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_the_night_are_run_and_those_of_scripts_are_not() {
        let text = "#[test]\n#[ignore = \"nightly: takes long\"]\nfn long() {}\n/// Words.\n#[test]\n\
                    #[ignore = \"needs a proxy: scripts/proxy-test\"]\nfn behind_a_proxy() {}\n#[test]\n\
                    #[ignore]\n#[should_panic]\nfn without_a_reason() {}\n";
        let sources = Sources::from([("crates/veilset/src/a.rs".to_string(), text.to_string())]);
        assert_eq!(of_scripts(&sources), ["behind_a_proxy", "without_a_reason"]);
    }
}
