//! Builds the scratch copy and runs tests in it with one mutant switched on.

use crate::Result;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A test, or the tests of a module, that take longer hang. In the table that does not count as noticing.
const PATIENCE: Duration = Duration::from_secs(180);
/// The same for all unit tests of a crate, which take about a minute.
const LONG_PATIENCE: Duration = Duration::from_secs(600);
/// Address space of a test program, in KiB: several times what any test takes.
const MEMORY: u64 = 8 << 20;
/// What tests other than these notice, is noticed.
const SNAPSHOTS: &str = "wire_bytes_are_those_of_the_snapshot";

/// What came of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It did not notice.
    Passed,
    /// It noticed.
    Failed,
    /// It did not end.
    Hangs,
    /// There is no such test.
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

/// The compiler's complaint.
pub struct CompileError {
    pub rendered: String,
    /// Files of the copy, and the bytes in them.
    pub places: Vec<(String, usize)>,
}

/// The test programs by the packages and targets that the table names.
pub struct Built {
    programs: BTreeMap<String, Program>,
}

struct Program {
    executable: PathBuf,
    /// Where cargo starts its tests.
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

/// Builds the unit tests of all crates, and the other tests that are among `packages`. The inner error is the
/// compiler's.
pub fn build(tree: &Path, packages: &[&str]) -> Result<Result<Built, Vec<CompileError>>> {
    let mut command = Command::new("cargo");
    command.current_dir(tree).args(["test", "--workspace", "--lib", "--no-run", "--message-format=json"]);
    // Optional protocols have mutants too.
    command.args(["--features", "veilset/fhe"]);
    // Whoever works on the table builds often; a debugger is of no use here.
    command.env("CARGO_TARGET_DIR", tree.with_file_name("target")).env("CARGO_PROFILE_DEV_DEBUG", "0");
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
            let places = message.spans.into_iter().map(|span| (span.file_name, span.byte_start));
            errors.push(CompileError {
                rendered: message.rendered.unwrap_or_default(),
                places: places.collect(),
            });
        }
        if let ("compiler-artifact", Some(manifest), Some(target), Some(executable)) =
            (line.reason.as_str(), line.manifest_path, line.target, line.executable)
        {
            let folder = manifest.parent().unwrap_or(tree).to_path_buf();
            let package = package_name(&manifest)?;
            let name = match target.kind.iter().any(|kind| kind == "test") {
                true => format!("{package} --test {}", target.name),
                false => package,
            };
            programs.insert(name, Program { executable, folder });
        }
    }
    if output.status.success() {
        return Ok(Ok(Built { programs }));
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
    /// Runs one test with a mutant on; 0 is none.
    pub fn test(&self, package: &str, test: &str, mutant: usize) -> Verdict {
        match self.run(package, &["--exact", test], mutant, PATIENCE) {
            Some((_, text)) if !text.contains("running 1 test") => Verdict::Missing,
            Some((true, _)) => Verdict::Passed,
            Some((false, _)) => Verdict::Failed,
            None => Verdict::Hangs,
        }
    }

    /// Runs the tests of a module with a mutant on; "" is the whole crate.
    pub fn module(&self, package: &str, module: &str, mutant: usize) -> Verdict {
        let most = if module.is_empty() { LONG_PATIENCE } else { PATIENCE };
        match self.run(package, &[module, "--skip", SNAPSHOTS], mutant, most) {
            Some((true, _)) => Verdict::Passed,
            Some((false, _)) => Verdict::Failed,
            None => Verdict::Hangs,
        }
    }

    /// The tests that notice a mutant.
    pub fn survey(&self, package: &str, mutant: usize, module: &str) -> Result<Vec<String>> {
        let ran = self.run(package, &[module, "--skip", SNAPSHOTS], mutant, LONG_PATIENCE);
        let (_, text) = ran.ok_or("the tests hang")?;
        let failed = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
        Ok(failed.map(Into::into).collect())
    }

    /// Whether the tests passed, and what they printed; nothing if they took too long.
    fn run(
        &self,
        package: &str,
        arguments: &[&str],
        mutant: usize,
        most: Duration,
    ) -> Option<(bool, String)> {
        let Some(program) = self.programs.get(package) else { return Some((true, String::new())) };
        // A mutant may take all the memory there is.
        let child = Command::new("sh")
            .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")])
            .arg(&program.executable)
            .args(arguments)
            .current_dir(&program.folder)
            .env("VEILSET_MUTANT", mutant.to_string())
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

    /// `work` of each element, some at a time; the results in their order.
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
