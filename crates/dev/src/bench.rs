//! `veilset-dev bench`: runs all parties as child processes on this machine, over TLS and, with `--net`, an emulated
//! network, on random items.
//!
//! With `--one-sided` each party runs once more, alone against a recording of its received messages, so that two
//! parties do not share the threads of one core. A replay needs the randomness of the recorded run, so the
//! generator of a benchmark is seeded; it never touches real data. Recordings are made above TLS, so one-sided
//! CPU seconds exclude it.

mod plot;
mod several;
mod tables;

use crate::args::{BenchArgs, BenchCommand, BenchPartyArgs, BenchTask, Who};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use veilset::channel::{Recording, Timeouts, WireCount, replay};
use veilset::error::{Error, Result};
use veilset::item::{ItemSet, encode_key, hashes_of};
use veilset::net::{Connection, Endpoint, Identity, Listener, Protection, establish};
use veilset::operations::share::Beside;
use veilset::operations::{Learned, Role, Terms};
use veilset::protocols::{self, Choice};
use veilset::rng::Prng;
use veilset::session::run::{self, Request};
use veilset::threads::Threads;
use veilset_app::BUG;
use veilset_app::front::start_threads;
use veilset_app::parties::only_for_two;
use veilset_cli::{print, signals, unwatched};
use veilset_core::hazmat::seeded;

/// These are long, because the parent process notices a party that ends early.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(600), idle: Duration::from_secs(600) };
/// The interval at which the parent checks its parties.
const LOOK: Duration = Duration::from_millis(10);

/// The figures that a party prints when it is done.
#[derive(Serialize, Deserialize)]
struct Figures {
    threads: usize,
    seconds: f64,
    cpu_seconds: f64,
    sent: u64,
    received: u64,
    peak_rss_mb: f64,
}

/// Runs a single benchmark, or the measurement of tables.
pub fn run(a: &BenchCommand) -> Result<()> {
    match a {
        BenchCommand { task: Some(BenchTask::Tables(a)), .. } => tables::run(a),
        BenchCommand { single: Some(a), .. } => single(a),
        // Clap ensures that there is one of them.
        BenchCommand { task: None, single: None } => Err(Error::Bug("a benchmark of nothing".into())),
    }
}

/// Runs one benchmark and prints its figures.
fn single(a: &BenchArgs) -> Result<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in signals() {
        signal_hook::flag::register(signal, interrupted.clone()).map_err(unwatched)?;
    }
    let folder = tempfile::tempdir().map_err(unusable)?;
    if let Some(parties) = a.parties {
        return several::run(a, parties, folder.path(), &interrupted);
    }
    only_for_two(a.protocol)?;
    for role in [Role::Receiver, Role::Sender] {
        Identity::generate()?.save(folder.path().join(role.name()))?;
    }
    let seed = u128::from_le_bytes(Prng::from_os()?.bytes()).to_string();
    let start = |role: Role, more: &[&str]| Party::start(folder.path(), role.name(), &seed, more);

    let mut receiver = start(Role::Receiver, &[])?;
    let port = receiver.line()?;
    let mut parties = vec![receiver];
    // A receiver without a port has failed; `wait` will report it.
    if !port.is_empty() {
        parties.push(start(Role::Sender, &["--port", &port])?);
    }
    let figures = wait(parties, &interrupted)?;
    let [r, s] = &figures[..] else { return Err(Error::Bug("the receiver named no port".into())) };
    let mut result = json!({
        "op": a.op.name,
        "protocol": a.protocol().name,
        "group": a.group(),
        "malicious_sender": a.malicious_sender,
        "n_receiver": a.n,
        "n_sender": a.n_sender(),
        "item_bytes": a.item_bytes,
        "overlap": a.overlap,
        "threads": r.threads,
        "net": a.net.typed,
        "seconds": r.seconds.max(s.seconds),
        "receiver_cpu_seconds": r.cpu_seconds,
        "sender_cpu_seconds": s.cpu_seconds,
        "bytes_receiver_to_sender": r.sent,
        "bytes_sender_to_receiver": r.received,
        "peak_rss_mb": r.peak_rss_mb.max(s.peak_rss_mb),
        "one_sided": a.one_sided,
        "version": env!("CARGO_PKG_VERSION"),
    });
    for role in [Role::Receiver, Role::Sender].into_iter().filter(|_| a.one_sided) {
        for alone in wait(vec![start(role, &["--alone"])?], &interrupted)? {
            result[format!("two_sided_{role}_cpu_seconds")] = result[format!("{role}_cpu_seconds")].take();
            result[format!("{role}_cpu_seconds")] = alone.cpu_seconds.into();
            result[format!("one_sided_{role}_seconds")] = alone.seconds.into();
        }
    }
    show(a.json, &result)
}

/// Prints the figures: one JSON object, or a line for each figure.
fn show(json: bool, result: &Value) -> Result<()> {
    match (json, result.as_object()) {
        (false, Some(object)) => object.iter().try_for_each(|(name, value)| match value.as_array() {
            Some(list) => list.iter().try_for_each(|value| print(format!("{name:32} {value}"))),
            None => print(format!("{name:32} {value}")),
        }),
        _ => print(result),
    }
}

/// Prints all combinations of operation, protocol and group for two parties, without protection from a malicious sender and,
/// where it is offered, with it. The keys are the names of the options.
pub fn kinds() -> Result<()> {
    let kinds = protocols::ALL.into_iter().flat_map(|protocol| {
        protocol.offers.iter().flat_map(move |offer| {
            let against: &[bool] = if offer.malicious_sender { &[false, true] } else { &[false] };
            protocol.groups.iter().flat_map(move |group| {
                against.iter().map(move |against| {
                    let (op, protocol) = (offer.operation.name, protocol.name);
                    json!({"op": op, "protocol": protocol, "group": group, "malicious_sender": against})
                })
            })
        })
    });
    print(json!(kinds.collect::<Vec<_>>()))
}

/// A party's process; killed on drop.
struct Party {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Party {
    fn start(folder: &Path, who: &str, seed: &str, more: &[&str]) -> Result<Party> {
        let program = std::env::current_exe().map_err(unable)?;
        let mut command = Command::new(program);
        command.arg("bench-party").arg(folder).args(["--who", who, "--seed", seed]).args(more);
        // All arguments of `veilset-dev bench`. The parent handles Ctrl-C, so the party has a process group of its
        // own.
        command.args(std::env::args_os().skip(2)).process_group(0);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(unable)?;
        match process.stdout.take() {
            Some(out) => Ok(Party { process, out: BufReader::new(out) }),
            None => Err(Error::Bug("a party has no standard output".into())),
        }
    }

    /// Reads the next line of its output; empty if the process has ended.
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.out.read_line(&mut line).map_err(unable)?;
        Ok(line.trim_end().into())
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits for the parties to print their figures and to end. If one fails, the others are killed.
fn wait(mut parties: Vec<Party>, interrupted: &AtomicBool) -> Result<Vec<Figures>> {
    loop {
        if interrupted.load(Ordering::SeqCst) {
            return Err(Error::Cancelled);
        }
        let ended = |p: &mut Party| p.process.try_wait().map_err(unable);
        let ended = parties.iter_mut().map(ended).collect::<Result<Vec<_>>>()?;
        if let Some(status) = ended.iter().flatten().find(|status| !status.success()) {
            return Err(failed(*status));
        }
        if ended.iter().all(Option::is_some) {
            break;
        }
        std::thread::sleep(LOOK);
    }
    let figures = |party: &mut Party| {
        let line = party.line()?;
        serde_json::from_str(&line).map_err(|e| Error::bug(format!("a party's figures: {e}")))
    };
    parties.iter_mut().map(figures).collect()
}

/// Returns the error for a failed party, which has reported its own error unless it was killed.
fn failed(status: ExitStatus) -> Error {
    match status.code() {
        Some(code) if code == i32::from(BUG) => Error::Bug("a party of the benchmark failed".into()),
        _ => Error::usage(format!(
            "a party of the benchmark ended with {status}. If memory or space in the temporary folder ran \
             out, use a smaller --n, or set TMPDIR to another folder"
        )),
    }
}

fn unable(e: std::io::Error) -> Error {
    Error::bug(format!("the benchmark cannot run its parties: {e}"))
}

fn unusable(e: std::io::Error) -> Error {
    Error::output(format!(
        "the temporary folder cannot be used: {e}. Free space in it, or set TMPDIR to another folder"
    ))
}

/// Runs one party of a benchmark.
pub fn party(a: &BenchPartyArgs) -> Result<()> {
    match a.who {
        Who::Role(role) => party_of_two(a, role),
        Who::Number(number) => several::party(a, number),
    }
}

fn party_of_two(a: &BenchPartyArgs, role: Role) -> Result<()> {
    let b = &a.bench;
    protocols::allow_short_moduli();
    let threads = start_threads(b.threads.map_or(0, usize::from))?;
    // The other party starts once the port is known.
    let listener = match (role, a.alone) {
        (Role::Receiver, false) => {
            let listener = Listener::bind("127.0.0.1:0")?;
            print(listener.local_addr().port())?;
            Some(listener)
        }
        _ => None,
    };
    let seed = whole(a.seed);
    let common = (b.n.min(b.n_sender()) as f64 * b.overlap).round() as usize;
    // The common items come last in the receiver's set and first in the sender's.
    let (first, n) = match role {
        Role::Receiver => (0, b.n),
        Role::Sender => (b.n - common, b.n_sender()),
    };
    let stream = seeded(&seed).fork(0);
    let set: ItemSet = (first..first + n).map(|i| item(&stream, i, b.item_bytes)).collect();
    let values: Vec<i128> = match (b.op.uses.values, role) {
        (true, Role::Sender) => (0..set.len() as i128).map(|i| i % 1000).collect(),
        _ => Vec::new(),
    };
    let max_row = item(&stream, 0, b.item_bytes).len();
    let request = Request::new(b.op, role, &set).with(|r| {
        r.spec.candidates = Choice { protocol: b.protocol(), group: b.group() }.into();
        r.input.values = &values;
        r.local.threads = threads.clone();
        r.spec.terms = Terms { max_row, ..b.terms() };
    });
    let mut connection = connect(a, role, listener)?;
    if b.one_sided && !a.alone {
        std::fs::write(file(a, role, "exporter"), *connection.exporter).map_err(unusable)?;
        let recording = File::create(file(a, role, "recording")).map_err(unusable)?;
        connection.channel.record(Recording::to_writer(BufWriter::with_capacity(BUFFER, recording)));
    }
    if let (Some(link), false) = (b.net.link, a.alone) {
        connection.channel = connection.channel.emulate(link)?;
    }
    let mut rng = seeded(&seed).fork(1 + role as u64);
    let running = Running::begin()?;
    hash(&threads, &set);
    let outcome = run::run(connection, &request, &mut rng)?;
    let figures = running.end(threads.count(), outcome.bytes)?;
    let right = match &outcome.learned {
        Learned::Nothing => true,
        Learned::Matching(m) => m.positions.len() == common,
        Learned::New(new) => new.items.len() == b.n_sender() - common,
        Learned::Union(_) => false,
        Learned::Matches(n) => *n == common as u64,
        Learned::Sum(s) => s.is_some_and(|s| s.matches == common as u64),
        Learned::Shares(shares) => match shares.beside {
            Beside::Matches(n) => n == common as u64,
            Beside::Order(_) => shares.shares.len() == shares.width * b.n_sender(),
        },
        Learned::Identifiers(ids) => ids.all.len() == b.n + b.n_sender() - common,
    };
    conclude(right, figures)
}

/// Prints the figures of a party if its result is right.
fn conclude(right: bool, figures: Figures) -> Result<()> {
    match right {
        true => print(json!(figures)),
        false => Err(Error::Bug("the benchmark's result is wrong".into())),
    }
}

/// A run in progress: its start, and the CPU seconds before it.
struct Running(Instant, f64);

impl Running {
    fn begin() -> Result<Running> {
        Ok(Running(Instant::now(), cpu_seconds()?))
    }

    fn end(&self, threads: usize, bytes: (u64, u64)) -> Result<Figures> {
        let seconds = self.0.elapsed().as_secs_f64();
        let cpu_seconds = cpu_seconds()? - self.1;
        let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| Error::bug(e.to_string()))?;
        let peak_rss_mb = usage.max_rss() as f64 * 1024.0 / 1e6;
        Ok(Figures { threads, seconds, cpu_seconds, sent: bytes.0, received: bytes.1, peak_rss_mb })
    }
}

/// The bytes of a recording that are read or written at once.
const BUFFER: usize = 1 << 18;

/// Returns the path of a party's file in the folder.
fn file(a: &BenchPartyArgs, role: Role, name: &str) -> PathBuf {
    a.folder.join(format!("{role}.{name}"))
}

/// Returns the seed of a benchmark's generator.
fn whole(seed: u128) -> [u8; 32] {
    let mut whole = [0; 32];
    whole[..16].copy_from_slice(&seed.to_le_bytes());
    whole
}

fn connect(a: &BenchPartyArgs, role: Role, listener: Option<Listener>) -> Result<Connection> {
    let identity = |role: Role| Identity::load(a.folder.join(role.name()));
    let (own, peer) = (identity(role)?, identity(role.other())?.fingerprint());
    let (ours, security) = (own.fingerprint(), Protection::Tls { identity: Arc::new(own), peer });
    match (listener, a.port) {
        (Some(listener), _) => listener.accept(&security, TIMEOUTS, &|| false, &|_| ()),
        (None, Some(port)) => {
            let endpoint = Endpoint::connect(format!("127.0.0.1:{port}"));
            establish(&endpoint, &security, TIMEOUTS, &|| false, &|_| ())
        }
        // This party runs alone. The session id is derived from the fingerprints and the exporter, as in the recorded run.
        (None, None) => {
            let exporter = std::fs::read(file(a, role, "exporter")).map_err(unusable)?;
            let recording = File::open(file(a, role, "recording")).map_err(unusable)?;
            let channel = replay(BufReader::with_capacity(BUFFER, recording));
            let mut connection = Connection::unprotected(channel, WireCount::default());
            (connection.peer, connection.our) = (Some(peer), Some(ours));
            *connection.exporter = exporter.try_into().map_err(|_| Error::Bug("a short exporter".into()))?;
            Ok(connection)
        }
    }
}

/// Hashes a set again. A run takes the hashes for granted, but a user waits for them, and the plan includes them.
fn hash(threads: &Threads, set: &ItemSet) {
    drop(std::hint::black_box(threads.run(|| hashes_of(set))));
}

/// Returns item `i` of the benchmark's stream.
fn item(stream: &Prng, i: usize, bytes: usize) -> Vec<u8> {
    let mut raw = vec![0; bytes];
    stream.fork(i as u64).fill(&mut raw);
    let mut item = Vec::new();
    encode_key([raw.as_slice()], &mut item);
    item
}

fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| Error::bug(e.to_string()))?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
