//! `veilset bench`: both parties as child processes on this machine, over TLS and an emulated network, on
//! random items.
//!
//! With `--one-sided` each party runs once more, alone against a recording of what it received, so that two
//! parties do not share the threads of one core. A replay needs the randomness of the recorded run, which is
//! why a benchmark's generator has a seed; nothing of it touches real data. Recordings are above TLS, so
//! one-sided CPU seconds are without it.

use crate::args::{BenchArgs, BenchPartyArgs};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use veilset::channel::{Network, Recording, Timeouts, WireCount, replay};
use veilset::error::{Error, Result};
use veilset::item::{ItemSet, encode_key};
use veilset::operations::sum::{Modulus, Terms};
use veilset::operations::{Learned, Operation, Role};
use veilset::rng::Prng;
use veilset::session::run::{self, Request};
use veilset::session::{Connection, Endpoint, Identity, Listener, Security, establish};

const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(60), idle: Duration::from_secs(600) };

fn bug(what: &str) -> impl Fn(std::io::Error) -> Error {
    let what = what.to_string();
    move |e| Error::Output(format!("{what}: {e}"))
}

/// Runs the benchmark and prints its figures.
pub fn run(a: &BenchArgs) -> Result<()> {
    if !(0.0..=1.0).contains(&a.overlap) {
        return Err(Error::Usage("--overlap is a fraction from 0 to 1".into()));
    }
    let folder = tempfile::tempdir().map_err(bug("cannot make a temporary folder"))?;
    for role in [Role::Receiver, Role::Sender] {
        Identity::generate()?.save(&folder.path().join(role.name()))?;
    }
    let seed: String = Prng::from_os()?.bytes::<32>().iter().map(|b| format!("{b:02x}")).collect();
    let child = |role: Role, port: Option<&str>, alone: bool| -> Result<Child> {
        let mut command = Command::new(std::env::current_exe().map_err(bug("cannot find this program"))?);
        command.arg("bench-party").arg(folder.path()).args(["--role", role.name(), "--seed", &seed]);
        command.args(["--op", &a.op, "--net", &a.net]);
        command.args(["--n", &a.n.to_string(), "--n-sender", &a.n_sender.unwrap_or(a.n).to_string()]);
        command.args(["--item-bytes", &a.item_bytes.to_string(), "--overlap", &a.overlap.to_string()]);
        command.args(["--threads", &a.threads.map_or(0, usize::from).to_string()]);
        command.args(port.map(|p| ["--port", p]).iter().flatten());
        if alone {
            command.arg("--alone");
        } else if a.one_sided {
            command.arg("--record");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(bug("cannot start a party"))
    };
    let mut receiver = child(Role::Receiver, None, false)?;
    let mut lines =
        BufReader::new(receiver.stdout.take().ok_or_else(|| Error::Bug("no standard output".into()))?);
    let mut port = String::new();
    lines.read_line(&mut port).map_err(bug("a party said nothing"))?;
    let sender = child(Role::Sender, Some(port.trim()), false);
    let sent = sender.and_then(|mut s| {
        let out = s.stdout.take();
        figures(s, out)
    });
    let received = figures(receiver, Some(lines));
    let (r, s) = (received?, sent?);
    let mut result = json!({
        "op": a.op,
        "protocol": a.protocol,
        "n_receiver": a.n,
        "n_sender": a.n_sender.unwrap_or(a.n),
        "item_bytes": a.item_bytes,
        "overlap": a.overlap,
        "threads": r["threads"],
        "net": a.net,
        "seconds": r["seconds"].as_f64().unwrap_or(0.0).max(s["seconds"].as_f64().unwrap_or(0.0)),
        "receiver_cpu_seconds": r["cpu_seconds"],
        "sender_cpu_seconds": s["cpu_seconds"],
        "bytes_receiver_to_sender": r["sent"],
        "bytes_sender_to_receiver": r["received"],
        "peak_rss_mb": r["peak_rss_mb"].as_f64().unwrap_or(0.0).max(s["peak_rss_mb"].as_f64().unwrap_or(0.0)),
        "one_sided": a.one_sided,
        "version": env!("CARGO_PKG_VERSION"),
    });
    if a.one_sided {
        for role in [Role::Receiver, Role::Sender] {
            let mut alone = child(role, None, true)?;
            let out = alone.stdout.take();
            let alone = figures(alone, out)?;
            let name = role.name();
            let two_sided = result[format!("{name}_cpu_seconds")].take();
            result[format!("two_sided_{name}_cpu_seconds")] = two_sided;
            result[format!("{name}_cpu_seconds")] = alone["cpu_seconds"].clone();
            result[format!("one_sided_{name}_seconds")] = alone["seconds"].clone();
        }
    }
    match (a.json, result.as_object()) {
        (false, Some(object)) => object.iter().for_each(|(name, value)| println!("{name:32} {value}")),
        _ => println!("{result}"),
    }
    Ok(())
}

/// Waits for a party and reads the figures it prints last.
fn figures(mut child: Child, out: Option<impl Read>) -> Result<Value> {
    let mut text = String::new();
    if let Some(mut out) = out {
        out.read_to_string(&mut text).map_err(bug("cannot read a party's figures"))?;
    }
    let status = child.wait().map_err(bug("cannot wait for a party"))?;
    let value = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    match value {
        Some(value) if status.success() => Ok(value),
        _ => Err(Error::Bug(format!("a party of the benchmark ended with {status}"))),
    }
}

/// One party of a benchmark.
pub fn party(a: &BenchPartyArgs) -> Result<()> {
    let operation: Operation = a.op.parse().map_err(Error::Usage)?;
    let role: Role = a.role.parse().map_err(Error::Usage)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(a.threads);
    pool.build_global().map_err(|e| Error::Bug(format!("no threads to compute with: {e}")))?;
    let seed = parse_seed(&a.seed);
    let common = (a.n.min(a.n_sender) as f64 * a.overlap).round() as usize;
    // The common items stand last in the receiver's set and first in the sender's.
    let (first, n) = match role {
        Role::Receiver => (0, a.n),
        Role::Sender => (a.n - common, a.n_sender),
    };
    let set = items(&seed, first, n, a.item_bytes);
    let values: Vec<i128> = match (operation, role) {
        (Operation::Sum, Role::Sender) => (0..set.len() as i128).map(|i| i % 1000).collect(),
        _ => Vec::new(),
    };
    let request = Request {
        operation,
        role,
        set: &set,
        key_columns: 1,
        normalisation: "none",
        max_row: a.item_bytes + if a.item_bytes < 128 { 1 } else { 2 },
        values: &values,
        value_scale: 0,
        terms: Terms { modulus: Modulus::Bits64, min_count: 0 },
    };
    let mut connection = connect(a, role)?;
    if a.record {
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(a.folder.join(name), bytes).map_err(bug("cannot write the recording"))
        };
        write(&format!("{role}.exporter"), &connection.exporter)?;
        connection.channel.record(Recording::to_file(&a.folder.join(format!("{role}.recording")))?);
    }
    let network: Option<Network> = match a.net.as_str() {
        "none" => None,
        net => Some(net.parse().map_err(Error::Usage)?),
    };
    if let (Some(network), false) = (network, a.alone) {
        connection.channel = connection.channel.emulate(network);
    }
    let mut rng = Prng::from_seed(&seed).fork(1 + role as u64);
    let (start, cpu) = (Instant::now(), cpu_seconds()?);
    let outcome = run::run(connection, &request, &mut rng)?;
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let right = match &outcome.learned {
        Learned::Nothing => true,
        Learned::Matching(rows) => rows.len() == common,
        Learned::New(items) => items.len() == a.n_sender - common,
        Learned::Count(c) => c.matches == common,
        Learned::Matches(n) => *n == common as u64,
        Learned::Sum(s) => s.is_some_and(|s| s.matches == common as u64),
    };
    if !right {
        return Err(Error::Bug("the benchmark's result is wrong".into()));
    }
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| Error::Bug(e.to_string()))?;
    println!(
        "{}",
        json!({
            "seconds": seconds,
            "cpu_seconds": cpu,
            "sent": outcome.bytes.0,
            "received": outcome.bytes.1,
            "peak_rss_mb": usage.max_rss() as f64 * 1024.0 / 1e6,
            "threads": rayon::current_num_threads(),
        })
    );
    Ok(())
}

fn connect(a: &BenchPartyArgs, role: Role) -> Result<Connection> {
    let identity = |role: Role| Identity::load(&a.folder.join(role.name()));
    let (own, peer) = (identity(role)?, identity(role.other())?.fingerprint());
    if a.alone {
        // The session id of the recorded run comes from its fingerprints and its exporter.
        let mut exporter = [0; 32];
        let bytes = std::fs::read(a.folder.join(format!("{role}.exporter"))).map_err(bug("no recording"))?;
        exporter.copy_from_slice(bytes.get(..32).ok_or_else(|| Error::Bug("a short exporter".into()))?);
        return Ok(Connection {
            channel: replay(&a.folder.join(format!("{role}.recording")))?,
            peer: Some(peer),
            our: Some(own.fingerprint()),
            exporter,
            wire: WireCount::default(),
        });
    }
    let security = Security::Tls { identity: Arc::new(own), peer };
    match a.port {
        None => {
            let listener = Listener::bind("127.0.0.1:0")?;
            println!("{}", listener.local_addr()?.port());
            listener.accept(&security, TIMEOUTS, &|| false, &|_| ())
        }
        Some(port) => {
            let endpoint = Endpoint::Connect(format!("127.0.0.1:{port}"));
            establish(&endpoint, &security, TIMEOUTS, &|| false, &|_| ())
        }
    }
}

fn parse_seed(hex: &str) -> [u8; 32] {
    let mut seed = [0; 32];
    let digits = hex
        .as_bytes()
        .chunks(2)
        .map(|d| std::str::from_utf8(d).ok().and_then(|d| u8::from_str_radix(d, 16).ok()));
    seed.iter_mut().zip(digits).for_each(|(s, d)| *s = d.unwrap_or(0));
    seed
}

/// Items `first..first + n` of the benchmark's stream.
fn items(seed: &[u8; 32], first: usize, n: usize, bytes: usize) -> ItemSet {
    let rng = Prng::from_seed(seed).fork(0);
    let item = |i: usize| {
        let mut raw = vec![0; bytes];
        rng.fork(i as u64).fill(&mut raw);
        let mut item = Vec::with_capacity(bytes + 2);
        encode_key([raw.as_slice()], &mut item);
        item
    };
    (first..first + n).map(item).collect()
}

fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| Error::Bug(e.to_string()))?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
