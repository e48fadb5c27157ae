//! The documentation: every veilset command in it is run as printed, and its output is compared.
//!
//! A block of code is run by a test, here or elsewhere, or is marked with the reason why not:
//!
//! - `console`: a session, run here. A line that begins with `$ ` or `NAME$ ` is a command of the party NAME ("you" if it is
//!   not named), and continues after a `\`. Other lines are the output of the preceding command, with `...` for any lines.
//!   The party's folder is its home. The last command of a `console,meanwhile` runs at the same time as the next session;
//!   `console,exit=8` gives the exit code of the last command of the block, instead of 0.
//! - `toml,file=NAME/veilset.toml`, and other languages with such a path: a file that a session reads; with `*` in place of
//!   NAME, a file for all parties of the page.
//! - `rust` and `python`: run by the tests of the library and of the Python package, on the pages that those tests list.
//! - `text,not-run=the-reason`: not run.
//!
//! A comment from `<!-- sh NAME` to `-->` is a hidden script that prepares files.
//!
//! Output is compared by patterns ([`PATTERNS`]). A fingerprint in the text represents a real one from the first time that it
//! is printed. `NAME.example:7000`, which is `0.0.0.0:7000` where NAME listens, is a free port of this machine.
//! `VEILSET_BLESS=1` writes the actual output into the pages.

use crate::common::veilset;
use regex_lite::{Captures, Regex};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use veilset_testing::free_address;

/// Patterns for output that differs from run to run, and their replacement on both sides of a comparison.
const PATTERNS: [(&str, &str); 6] = [
    (r"\b\d+(\.\d+)? (seconds?|s|ms|minutes?|bytes|kB|MB|GB|Mbit/s|received)\b", "# $2"),
    (r#""(seconds|sent|received|peak)": ?[0-9.]+"#, r#""$1": #"#),
    (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", "TIME"),
    // Session ids, digests, identifiers and shares.
    (r"\b[0-9a-f]{16,}\b", "HEX"),
    (r"veilset \d+\.\d+\.\d+", "veilset VERSION"),
    // The addresses of connecting parties.
    (REAL, "127.0.0.1:#"),
];

const FINGERPRINT: &str = r"\b([0-9a-z]{5}-){7}[0-9a-z]{5}\b";
const ADDRESS: &str = r"\b([a-z0-9-]+)\.example:(\d+)\b|\b0\.0\.0\.0:(\d+)\b";
const REAL: &str = r"127(\.\d+){3}:\d+\b";

/// Pages whose blocks of these languages are run by other tests.
const ELSEWHERE: [(&str, &[&str]); 2] = [
    // crates/veilset/src/lib.rs
    ("rust", &["README.md", "docs/guide/rust.md"]),
    // crates/python/tests/test_documents.py
    ("python", &["README.md", "docs/guide/python.md", "crates/python/README.md"]),
];

/// A time that no session reaches.
const PATIENCE: Duration = Duration::from_secs(120);

/// A part of a page that has an effect.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Writes a file.
    File { of: String, name: String, text: String },
    /// Runs a script.
    Script { of: String, text: String, line: usize },
    /// Runs a session.
    Session { commands: Vec<Typed>, meanwhile: bool, exit: i32 },
}

/// A command as printed on the page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Typed {
    /// The party that runs it.
    of: String,
    text: String,
    /// The lines of its output; `line` is the number of the first of them, from 1.
    printed: Vec<String>,
    line: usize,
}

/// Returns the steps of a page, or why the page is wrong.
fn parse(page: &str, text: &str) -> Result<Vec<Step>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut steps = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (line, first) = (lines[at], at + 1);
        at += 1;
        let body = |end: &str| {
            let n = lines[first..].iter().position(|line| line.trim_end() == end);
            n.map(|n| lines[first..first + n].to_vec())
                .ok_or_else(|| format!("{page}:{first}: it does not end"))
        };
        if let Some(of) = line.strip_prefix("<!-- sh") {
            let script = body("-->")?;
            at = first + script.len() + 1;
            let of = if of.trim().is_empty() { "you" } else { of.trim() }.to_string();
            steps.push(Step::Script { of, text: script.join("\n"), line: first });
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let block = body(&format!("{}```", &line[..indent]))?;
        at = first + block.len() + 1;
        let block: Vec<&str> = block.iter().map(|line| line.get(indent..).unwrap_or_default()).collect();
        let mut words = info.split(',');
        let language = words.next().unwrap_or_default();
        let (mut meanwhile, mut exit, mut file, mut marked) = (false, 0, None, false);
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("meanwhile", "") => meanwhile = true,
                ("exit", code) => exit = code.parse().map_err(|_| format!("{page}:{first}: exit={code}"))?,
                ("file", path) => file = path.split_once('/'),
                ("not-run", reason) if !reason.is_empty() => marked = true,
                _ if language == "rust" => {}
                _ => return Err(format!("{page}:{first}: {word} means nothing")),
            }
        }
        let elsewhere = ELSEWHERE.iter().any(|(other, pages)| *other == language && pages.contains(&page));
        match (language, file) {
            _ if marked || elsewhere => {}
            ("console", None) => {
                steps.push(Step::Session { commands: session(page, first, &block)?, meanwhile, exit });
            }
            (_, Some((of, name))) if language != "console" => {
                let text = block.iter().map(|line| format!("{line}\n")).collect();
                steps.push(Step::File { of: of.into(), name: name.into(), text });
            }
            _ => {
                return Err(format!(
                    "{page}:{first}: no test runs this block. Make it a session (console), a file of one, or mark it with a \
                     reason (not-run=...)"
                ));
            }
        }
    }
    Ok(steps)
}

/// Returns the commands of a session that begins after this line.
fn session(page: &str, first: usize, block: &[&str]) -> Result<Vec<Typed>, String> {
    let prompt = Regex::new(r"^([a-z][a-z0-9-]*)?\$ ").unwrap();
    let mut commands: Vec<Typed> = Vec::new();
    let mut goes_on = false;
    for (line, number) in block.iter().zip(first + 1..) {
        if goes_on {
            let command = commands.last_mut().unwrap();
            command.text += &format!("\n{line}");
            command.line = number + 1;
        } else if let Some(found) = prompt.captures(line) {
            let of = found.get(1).map_or("you", |name| name.as_str()).to_string();
            let text = line[found[0].len()..].to_string();
            commands.push(Typed { of, text, printed: Vec::new(), line: number + 1 });
        } else {
            let command =
                commands.last_mut().ok_or_else(|| format!("{page}:{number}: output of no command"))?;
            command.printed.push(line.to_string());
            continue;
        }
        goes_on = line.ends_with('\\');
    }
    Ok(commands)
}

/// The folders of a page's parties, and the real values for names in the text.
struct World {
    folder: tempfile::TempDir,
    /// The real fingerprint for each one in the text, and the reverse map.
    fingerprints: BTreeMap<String, String>,
    printed: BTreeMap<String, String>,
    /// The real address for each party's port in the text.
    addresses: BTreeMap<(String, String), String>,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        World { folder, fingerprints: BTreeMap::new(), printed: BTreeMap::new(), addresses: BTreeMap::new() }
    }

    fn home(&self, of: &str) -> PathBuf {
        let home = self.folder.path().join(of);
        fs::create_dir_all(&home).unwrap();
        home
    }

    /// Replaces the names in a text that a party writes by their real values.
    fn real(&mut self, of: &str, text: &str) -> String {
        let text = Regex::new(ADDRESS).unwrap().replace_all(text, |found: &Captures<'_>| {
            let (who, port) = match (found.get(1), found.get(2), found.get(3)) {
                (Some(who), Some(port), _) => (who.as_str(), port.as_str()),
                (.., port) => (of, port.unwrap().as_str()),
            };
            self.addresses.entry((who.into(), port.into())).or_insert_with(free_address).clone()
        });
        let real = |found: &Captures<'_>| {
            self.fingerprints.get(&found[0]).cloned().unwrap_or_else(|| found[0].into())
        };
        Regex::new(FINGERPRINT).unwrap().replace_all(&text, real).into_owned()
    }

    /// Replaces the real values in a party's output by the names in the text.
    fn shown(&self, of: &str, printed: &str) -> String {
        let printed = printed.replace(self.home(of).to_str().unwrap(), "~");
        let printed = Regex::new(REAL).unwrap().replace_all(&printed, |found: &Captures<'_>| {
            match self.addresses.iter().find(|(_, real)| **real == found[0]) {
                Some(((who, port), _)) if who == of => format!("0.0.0.0:{port}"),
                Some(((who, port), _)) => format!("{who}.example:{port}"),
                None => found[0].into(),
            }
        });
        let shown =
            |found: &Captures<'_>| self.printed.get(&found[0]).cloned().unwrap_or_else(|| found[0].into());
        Regex::new(FINGERPRINT).unwrap().replace_all(&printed, shown).into_owned()
    }

    /// Runs a command of a party in a thread. Returns its exit code and its output.
    fn start(&mut self, of: &str, text: &str) -> JoinHandle<(Option<i32>, String)> {
        let text = format!("exec 2>&1\n{}", self.real(of, text));
        let mut command = Command::new("sh");
        command.arg("-c").arg(text).current_dir(self.home(of)).env("HOME", self.home(of));
        for unset in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "https_proxy", "HTTPS_PROXY"] {
            command.env_remove(unset);
        }
        let program = veilset();
        let folder = Path::new(program.get_program()).parent().unwrap().to_path_buf();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).unwrap();
        command.env("PATH", path).env("LC_ALL", "C.UTF-8").env("TZ", "UTC").env("COLUMNS", "100");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        thread::spawn(move || {
            let mut child = command.spawn().unwrap();
            let mut out = child.stdout.take().unwrap();
            let reading = thread::spawn(move || {
                let mut bytes = Vec::new();
                out.read_to_end(&mut bytes).unwrap();
                String::from_utf8(bytes).unwrap()
            });
            let begun = Instant::now();
            while child.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            (child.wait().unwrap().code(), reading.join().unwrap())
        })
    }

    /// Binds fingerprints in the text to those that were printed at the same place.
    fn bind(&mut self, text: &[String], printed: &[String]) {
        let pattern = Regex::new(FINGERPRINT).unwrap();
        for (text, printed) in text.iter().zip(printed) {
            for (text, printed) in pattern.find_iter(text).zip(pattern.find_iter(printed)) {
                let (text, printed) = (text.as_str().to_string(), printed.as_str().to_string());
                if !self.fingerprints.contains_key(&text) && !self.printed.contains_key(&printed) {
                    self.fingerprints.insert(text.clone(), printed.clone());
                    self.printed.insert(printed, text);
                }
            }
        }
    }
}

/// Normalises a line: replaces everything that differs from run to run.
fn plain(line: &str) -> String {
    static PATTERNS_MADE: LazyLock<Vec<(Regex, &str)>> =
        LazyLock::new(|| PATTERNS.map(|(pattern, with)| (Regex::new(pattern).unwrap(), with)).into());
    let line = line.trim_end().to_string();
    PATTERNS_MADE.iter().fold(line, |line, (pattern, with)| pattern.replace_all(&line, *with).into_owned())
}

/// Returns whether the printed lines agree with the text, where `...` matches any lines.
fn agree(text: &[String], printed: &[String]) -> bool {
    match (text.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((line, text)), _) if line == "..." => (0..=printed.len()).any(|n| agree(text, &printed[n..])),
        (Some((line, text)), Some((other, printed))) => plain(line) == plain(other) && agree(text, printed),
        _ => false,
    }
}

/// A run of a page: its disagreements, and the corrected page.
struct Ran {
    wrong: Vec<String>,
    text: String,
}

fn run(page: &str, text: &str) -> Ran {
    let steps = match parse(page, text) {
        Ok(steps) => steps,
        Err(wrong) => return Ran { wrong: vec![wrong], text: text.into() },
    };
    let names: BTreeSet<String> = steps.iter().flat_map(names_of).filter(|name| name != "*").collect();
    let (mut world, mut wrong) = (World::new(), Vec::new());
    // The new text for ranges of lines.
    let mut blessed: BTreeMap<usize, (usize, Vec<String>)> = BTreeMap::new();
    let mut waiting: Vec<JoinHandle<Finished>> = Vec::new();
    for step in steps {
        match step {
            Step::File { of, name, text } => {
                let all = if of == "*" { names.iter().cloned().collect() } else { vec![of] };
                for of in all {
                    let (home, text) = (world.home(&of), world.real(&of, &text));
                    fs::write(home.join(&name), text).unwrap();
                }
            }
            Step::Script { of, text, line } => {
                let (code, printed) = world.start(&of, &format!("set -e\n{text}")).join().unwrap();
                if code != Some(0) {
                    wrong.push(format!("{page}:{line}: the script ended with {code:?}: {printed}"));
                }
            }
            Step::Session { commands, meanwhile, exit } => {
                let last = commands.len();
                for (command, number) in commands.into_iter().zip(1..) {
                    let code = if number == last { exit } else { 0 };
                    let running = world.start(&command.of, &command.text);
                    waiting.push(thread::spawn(move || {
                        let (ended, printed) = running.join().unwrap();
                        Finished { command, code, ended, printed }
                    }));
                    if meanwhile && number == last {
                        // The listening party must start first.
                        thread::sleep(Duration::from_millis(100));
                        continue;
                    }
                    for Finished { command, code, ended, printed } in
                        waiting.drain(..).map(|one| one.join().unwrap())
                    {
                        let printed: Vec<String> = printed.trim_end().lines().map(str::to_string).collect();
                        world.bind(&command.printed, &printed);
                        let shown: Vec<String> =
                            printed.iter().map(|line| world.shown(&command.of, line)).collect();
                        if ended != Some(code) {
                            wrong.push(format!(
                                "{page}:{}: {} ended with {ended:?} and not with {code}:\n{}",
                                command.line,
                                command.text,
                                shown.join("\n")
                            ));
                        } else if !agree(&command.printed, &shown) {
                            wrong.push(format!(
                                "{page}:{}: {} printed:\n{}",
                                command.line,
                                command.text,
                                shown.join("\n")
                            ));
                            if !command.printed.iter().any(|line| line == "...") {
                                blessed.insert(command.line, (command.printed.len(), shown));
                            }
                        }
                    }
                }
            }
        }
    }
    if !waiting.is_empty() {
        wrong.push(format!("{page}: a session goes on, and no other one follows"));
    }
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for (line, (count, with)) in blessed.into_iter().rev() {
        lines.splice(line - 1..line - 1 + count, with);
    }
    Ran { wrong, text: lines.iter().map(|line| format!("{line}\n")).collect() }
}

/// A command that has ended.
struct Finished {
    command: Typed,
    code: i32,
    ended: Option<i32>,
    printed: String,
}

fn names_of(step: &Step) -> Vec<String> {
    match step {
        Step::File { of, .. } | Step::Script { of, .. } => vec![of.clone()],
        Step::Session { commands, .. } => commands.iter().map(|command| command.of.clone()).collect(),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check(page: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let ran = run(page, &text);
    if std::env::var_os("VEILSET_BLESS").is_some() && ran.text != text {
        fs::write(&path, &ran.text).unwrap();
    }
    assert!(ran.wrong.is_empty(), "{}", ran.wrong.join("\n\n"));
}

macro_rules! pages {
    ($($name:ident $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(#[test]
        fn $name() {
            check($page);
        })*
    };
}

pages! {
    readme "README.md",
    security "SECURITY.md",
    changelog "CHANGELOG.md",
    benchmarks "bench/README.md",
    core "crates/core/README.md",
    kernels "crates/kernels/README.md",
    python_package "crates/python/README.md",
    fuzzing "fuzz/README.md",
    proxy_in_front "examples/proxy/README.md",
    memory "crates/memory/README.md",
    mutants "mutants/README.md",
    contributing "CONTRIBUTING.md",
    contents "docs/README.md",
    summary "docs/SUMMARY.md",
    corrections "docs/corrections.md",
    protocols "docs/protocols.md",
    architecture "docs/architecture.md",
    first_run "docs/guide/first-run.md",
    data "docs/guide/data.md",
    operations "docs/guide/operations.md",
    several_parties "docs/guide/several-parties.md",
    policy_and_audit "docs/guide/policy-and-audit.md",
    prepare_and_filters "docs/guide/prepare-and-filters.md",
    large_runs "docs/guide/large-runs.md",
    firewalls "docs/guide/firewalls.md",
    refused "docs/guide/refused.md",
    python "docs/guide/python.md",
    rust "docs/guide/rust.md",
    command_line "docs/reference/command-line.md",
    run_file "docs/reference/run-file.md",
    policy "docs/reference/policy.md",
    report "docs/reference/report.md",
    audit_log "docs/reference/audit-log.md",
    exit_codes "docs/reference/exit-codes.md",
    share_files "docs/reference/share-files.md",
    wire_protocol "docs/reference/wire-protocol.md",
    malicious_peer "docs/security/malicious-peer.md",
    jobs "docs/security/jobs.md",
    prepared_halves "docs/security/prepared-halves.md",
    proxies "docs/security/proxies.md",
    results "docs/security/results.md",
    assumptions "docs/security/assumptions.md",
    timing "docs/security/timing.md",
}

/// No page is omitted, except the tables that `veilset-dev bench tables` writes.
#[test]
fn all_pages_are_run() {
    let there: BTreeSet<String> = pages_in(&root(), "").collect();
    assert_eq!(there, PAGES.iter().map(|page| page.to_string()).collect());
}

/// Returns all pages in a folder, by their paths from the root.
fn pages_in(folder: &Path, prefix: &str) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        let is_built =
            name.starts_with('.') || name == "target" || ["dist", "bench/results"].contains(&&path[..]);
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && !is_built => all.extend(pages_in(&entry.path(), &format!("{path}/"))),
            kind if kind.is_file() && name.ends_with(".md") => all.push(path),
            _ => {}
        }
    }
    all.into_iter()
}

/// Returns the anchors of a page, as GitHub and mdBook derive them from headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut all = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !fenced) else { continue };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        // A link in a heading is replaced by its text.
        let heading = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap().replace_all(&heading, "$1").into_owned();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|n| format!("{anchor}-{n}")).find(|other| !all.contains(other)).unwrap();
        all.insert(if all.contains(&anchor) { again } else { anchor });
    }
    all
}

/// Returns the dead links of a page.
fn dead_links(page: &Path, text: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let folder = page.parent().unwrap();
    let mut dead = Vec::new();
    for found in link.captures_iter(text) {
        let to = found[1].to_string();
        if to.starts_with("https://") {
            continue;
        }
        let (file, anchor) = to.split_once('#').unwrap_or((&to, ""));
        let path = if file.is_empty() { page.to_path_buf() } else { folder.join(file) };
        let there = match (path.exists(), anchor) {
            (false, _) => false,
            (true, "") => true,
            (true, anchor) => fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(anchor)),
        };
        if !there {
            dead.push(to);
        }
    }
    dead
}

#[test]
fn links_lead_somewhere() {
    for page in PAGES {
        let path = root().join(page);
        let dead = dead_links(&path, &fs::read_to_string(&path).unwrap());
        assert!(dead.is_empty(), "{page}: {dead:?}");
    }
    let text = "# A `b`, c!\n## d\n## d\n[x](README.md) [y](#a-b-c) [z](#d-1) [u](#d-2) [v](nowhere.md) [w](README.md#nowhere)";
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("README.md");
    fs::write(&page, text).unwrap();
    assert_eq!(dead_links(&page, text), ["#d-2", "nowhere.md", "README.md#nowhere"]);
}

#[test]
fn the_version_of_the_protocol_is_the_one_of_the_library() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let library = read("crates/core/src/channel/mod.rs");
    let (_, version) = library.split_once("pub const PROTOCOL_VERSION: u16 = ").unwrap();
    let (version, _) = version.split_once(';').unwrap();
    let page = read("docs/reference/wire-protocol.md");
    assert!(page.contains(&format!("The protocol version is **{version}**;")), "{version}");
}

/// Returns a page with a single block.
fn page(info: &str, lines: &[&str]) -> String {
    format!("```{info}\n{}\n```\n", lines.join("\n"))
}

#[test]
fn a_session_that_is_printed_wrongly_is_noticed() {
    let good = |text: &str| run("page", text).wrong;
    let hello = ["$ echo hello; echo 5 bytes >&2; echo 127.0.0.1:1", "hello", "7 bytes", "127.0.0.1:1"];
    assert_eq!(good(&page("console", &hello)), [""; 0]);
    assert_eq!(good(&page("console", &["$ seq 9", "1", "...", "8", "9"])), [""; 0]);
    assert_eq!(good(&page("console,exit=3", &["$ true", "$ exit 3"])), [""; 0]);
    let meanwhile =
        page("console,meanwhile", &["a$ while ! [ -e ../b/there ]; do sleep 0.1; done; echo a", "a"]);
    assert_eq!(good(&format!("{meanwhile}{}", page("console", &["b$ touch there"]))), [""; 0]);
    let files = format!("{}<!-- sh b\necho 2 >two\n-->\n", page("toml,file=*/one", &["1"]));
    assert_eq!(
        good(&format!(
            "{files}{}",
            page("console", &["b$ cat one \\", "    two", "1", "2", "a$ cat one", "1"])
        )),
        [""; 0]
    );
    // (page, words)
    let bad = [
        (page("console", &["$ echo hello", "hallo"]), "printed:\nhello"),
        (page("console", &["$ echo hello", "hello", "hello"]), "printed:\nhello"),
        (page("console", &["$ echo hello"]), "printed:\nhello"),
        (page("console", &["$ echo 5 bytes", "5 bits"]), "printed:\n5 bytes"),
        (page("console", &["$ seq 9", "1", "...", "10"]), "printed:"),
        (page("console", &["$ exit 3"]), "ended with Some(3) and not with 0"),
        (page("console,exit=3", &["$ true"]), "ended with Some(0) and not with 3"),
        (page("console", &["hello"]), "output of no command"),
        (meanwhile, "no other one follows"),
        (page("console,later", &["$ true"]), "later means nothing"),
        (page("toml", &["a = 1"]), "no test runs this block"),
        (page("", &["$ true"]), "no test runs this block"),
        (page("text,not-run=", &["$ true"]), "not-run= means nothing"),
        (page("rust", &["fn main() {}"]), "no test runs this block"),
        ("```console\n$ true\n".into(), "it does not end"),
        ("<!-- sh\nfalse\n-->\n".into(), "the script ended with Some(1)"),
    ];
    for (page, words) in bad {
        let wrong = good(&page).join("\n");
        assert!(wrong.contains(words), "{words:?} is not in {wrong:?}: {page}");
    }
}

#[test]
fn names_of_a_page_stand_for_real_ones() {
    let [a, b] = ["a", "b"].map(|c| vec![c.repeat(5); 8].join("-"));
    let lines = [
        "north$ veilset identity new 2>/dev/null",
        a.as_str(),
        "south$ veilset identity new 2>/dev/null",
        b.as_str(),
        &format!("north$ echo {b} south.example:7000 0.0.0.0:7000"),
        &format!("{b} south.example:7000 0.0.0.0:7000"),
        "south$ echo 0.0.0.0:7000 north.example:7000 $HOME/x",
        "0.0.0.0:7000 north.example:7000 ~/x",
    ];
    let ran = run("page", &page("console", &lines));
    assert!(ran.wrong.is_empty(), "{:?}", ran.wrong);
    // Blessing restores the original text, with the names of the page.
    let mut wrong = lines;
    (wrong[5], wrong[7]) = ("x", "y");
    let blessed = run("page", &page("console", &wrong));
    assert_eq!((blessed.wrong.len(), blessed.text), (2, page("console", &lines)));
}
