//! `veilset-dev bench --parties N`.

use super::{Party, Running, TIMEOUTS, conclude, hash, item, show, unusable, wait, whole};
use crate::args::{BenchArgs, BenchPartyArgs};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use veilset::error::{Error, Result};
use veilset::item::ItemSet;
use veilset::net::{Identity, ListenAt, assemble};
use veilset::operations::{Learned, Role, Terms};
use veilset::protocols::Choice;
use veilset::rng::Prng;
use veilset::session::run::{self, Request};
use veilset_app::front::start_threads;
use veilset_app::parties::{self, on_this_machine, written};
use veilset_core::hazmat::seeded;

/// The list of parties, in the folder of the benchmark.
const LIST: &str = "parties.toml";

/// Runs the benchmark and prints its figures.
pub fn run(a: &BenchArgs, parties: u8, folder: &Path, interrupted: &AtomicBool) -> Result<()> {
    refuse(a)?;
    let protocol = parties::protocol(a.op, a.protocol)?;
    let numbers: Vec<String> = (1..=parties).map(|number| number.to_string()).collect();
    let identify = |number: &String| {
        let identity = Identity::generate()?;
        identity.save(identity_of(folder, number))?;
        Ok((number.clone(), Arc::new(identity)))
    };
    let identified = numbers.iter().map(identify).collect::<Result<Vec<_>>>()?;
    // The parties are separate processes: each listens at its port when it starts.
    let (roster, _) = on_this_machine(&identified, LIST)?;
    std::fs::write(folder.join(LIST), written(&roster)).map_err(unusable)?;
    let seed = u128::from_le_bytes(Prng::from_os()?.bytes()).to_string();
    // If one cannot be started, the ones before it are killed.
    let children = numbers.iter().map(|number| Party::start(folder, number, &seed, &[]));
    let figures = wait(children.collect::<Result<Vec<_>>>()?, interrupted)?;
    let each = figures.iter().zip(1..).map(|(f, number)| {
        json!({
            "number": number,
            "seconds": f.seconds,
            "cpu_seconds": f.cpu_seconds,
            "sent": f.sent,
            "received": f.received,
            "peak_rss_mb": f.peak_rss_mb,
        })
    });
    let result = json!({
        "op": a.op.name,
        "protocol": protocol.name,
        "n": a.n,
        "item_bytes": a.item_bytes,
        "overlap": a.overlap,
        "threads": figures.first().map(|f| f.threads),
        "net": a.net.typed,
        "seconds": figures.iter().map(|f| f.seconds).fold(0.0, f64::max),
        "parties": each.collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
    });
    show(a.json, &result)
}

/// Refuses options that are for two parties.
fn refuse(a: &BenchArgs) -> Result<()> {
    let given = [
        ("--one-sided", a.one_sided, "a recording is of one connection"),
        ("--n-sender", a.n_sender.is_some(), "all parties have as many items, which --n says"),
        ("--group", a.group.is_some(), "each protocol for several parties works in one group"),
        ("--cipher", a.cipher.is_some(), "no protocol for several parties has filters"),
        ("--filter-of-paper", a.filter_of_paper, "no protocol for several parties has filters"),
        (
            "--malicious-sender",
            a.malicious_sender,
            "no protocol for several parties withstands a party that does not follow it",
        ),
    ];
    match given.into_iter().find(|(_, given, _)| *given) {
        Some((option, _, reason)) => {
            Err(Error::usage(format!("{option} does not go with --parties: {reason}. Omit {option}")))
        }
        None => Ok(()),
    }
}

fn identity_of(folder: &Path, number: &str) -> PathBuf {
    folder.join(number)
}

/// Returns the range of a party's own items in the benchmark's stream. The items that all parties have come first.
fn own_items(b: &BenchArgs, common: usize, number: u8) -> std::ops::Range<usize> {
    let own = b.n - common;
    let first = common + (usize::from(number) - 1) * own;
    first..first + own
}

/// Runs one party of the benchmark.
pub fn party(a: &BenchPartyArgs, number: u8) -> Result<()> {
    let b = &a.bench;
    let parties = usize::from(b.parties.unwrap_or_default());
    let threads = start_threads(b.threads.map_or(0, usize::from))?;
    // The list is in the benchmark's own folder.
    let me = parties::load(&a.folder.join(LIST), &number.to_string(), &mut Vec::new())?;
    let identity = Arc::new(Identity::load(identity_of(&a.folder, &number.to_string()))?);
    let seed = whole(a.seed);
    let common = (b.n as f64 * b.overlap).round() as usize;
    let stream = seeded(&seed).fork(0);
    let set: ItemSet =
        (0..common).chain(own_items(b, common, number)).map(|i| item(&stream, i, b.item_bytes)).collect();
    let max_row = item(&stream, 0, b.item_bytes).len();
    let role = Role::multiparty(me.leads());
    let protocol = parties::protocol(b.op, b.protocol)?;
    let request = Request::new(b.op, role, &set).with(|r| {
        r.spec.candidates = Choice::of(protocol).into();
        r.spec.parties = Some(me.clone());
        r.local.threads = threads.clone();
        r.spec.terms = Terms { max_row, ..Terms::default() };
    });
    let connections = assemble(&me, &identity, ListenAt::Listed, TIMEOUTS, &|| false, &|_| ())?;
    let emulated = connections.into_iter().map(|mut connection| {
        if let Some(link) = b.net.link {
            connection.channel = connection.channel.emulate(link)?;
        }
        Ok(connection)
    });
    let connections = emulated.collect::<Result<Vec<_>>>()?;
    let mut rng = seeded(&seed).fork(u64::from(number));
    let running = Running::begin()?;
    hash(&threads, &set);
    let outcome = run::run(connections, &request, &mut rng)?;
    let figures = running.end(threads.count(), outcome.bytes)?;
    let right = match &outcome.learned {
        Learned::Nothing => !me.leads(),
        Learned::Matching(m) => m.positions.len() == common,
        Learned::New(new) => new.items.len() == (parties - 1) * (b.n - common),
        Learned::Matches(n) => *n == common as u64,
        Learned::Union(_) | Learned::Sum(_) | Learned::Shares(_) | Learned::Identifiers(_) => false,
    };
    conclude(right, figures)
}
