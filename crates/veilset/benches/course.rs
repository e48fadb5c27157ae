//! Records the progress of runs of each operation, for the test of the estimates of the remaining time
//! (`src/planner_course_tests.rs`): `cargo bench -p veilset --bench course`, on a machine that does nothing else. Each party
//! computes on one thread.

use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use veilset::channel::{Channel, Network, Observer, Unit, WireCount};
use veilset::error::{Error, Result};
use veilset::item::ItemSet;
use veilset::net::Connection;
use veilset::operations::cost::Deal;
use veilset::operations::{Announced, COUNT, ID, INTERSECT, Operation, Role, SHARE, SUM, Terms, UNION};
use veilset::planner::{Prediction, Prices, Setting};
use veilset::protocols::{self, CM20, CWPRF, Choice, DH_PSI, OSN, Protocol, VOLE};
use veilset::rng::Prng;
use veilset::session::run::{Request, run};
use veilset::speed::Speeds;
use veilset::threads::Threads;

/// A recorded run. Its progress is a list of milliseconds since its start, each with the bytes moved by then.
#[derive(Serialize)]
struct Recorded {
    operation: &'static str,
    protocol: &'static str,
    /// Number of items of each party.
    items: usize,
    /// The link, as `--net` takes it.
    link: &'static str,
    progress: Vec<(u64, u64)>,
}

/// The runs to record: each operation by the protocols that are picked for it, and two of them over a link that is slower than
/// their computation.
fn pairs() -> Vec<(&'static Operation, &'static Protocol, &'static str)> {
    let first = |operation| protocols::default_for(operation, &Terms::default());
    vec![
        (&INTERSECT, &DH_PSI, ""),
        (&INTERSECT, &CM20, ""),
        (&INTERSECT, &VOLE, ""),
        (&UNION, &CWPRF, ""),
        (&UNION, &OSN, ""),
        (&COUNT, first(&COUNT), ""),
        (&SUM, first(&SUM), ""),
        (&SHARE, first(&SHARE), ""),
        (&ID, first(&ID), ""),
        (&INTERSECT, &VOLE, "100Mbps,10ms"),
        (&UNION, &OSN, "200Mbps,10ms"),
    ]
}

/// Returns the expected duration in seconds of a run with `items` items on each side.
fn expected(operation: &'static Operation, protocol: &'static Protocol, items: usize) -> f64 {
    let size = Announced { size: items, padded: false };
    let terms = Terms { max_row: 64, ..Terms::default() };
    let deal = Deal { operation, terms, group: protocol.group(), receiver: size, sender: size };
    let setting = Setting {
        speeds: [Speeds::built_in(1); 2],
        link: Network::NONE,
        prices: Prices::default(),
        shared: None,
    };
    protocol.cost(&deal).map_or(f64::INFINITY, |cost| Prediction::of(&cost, 0, &setting).seconds)
}

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/course_recorded.json");

struct Record {
    began: Instant,
    progress: Mutex<Vec<(u64, u64)>>,
}

impl Observer for Record {
    fn stage(&self, _: &'static str, _: Unit, _: usize) {}
    fn advance(&self, _: Unit, _: usize, bytes: usize) {
        let now = self.began.elapsed().as_millis() as u64;
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = progress.last().map_or(0, |(_, moved)| *moved) + bytes as u64;
        match progress.last_mut() {
            Some(last) if now < last.0 + 20 => last.1 = moved,
            _ => progress.push((now, moved)),
        }
    }
}

fn main() -> Result<()> {
    let mut all = Vec::new();
    let least = std::env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(3.0);
    for (operation, protocol, link) in pairs() {
        let mut items = 1 << 12;
        while expected(operation, protocol, items) < least {
            items *= 2;
        }
        let recorded = recorded(operation, protocol, items, link)?;
        let took = recorded.progress.last().map_or(0, |(at, _)| *at);
        println!("{operation} {protocol} {items} {link} {took} ms");
        all.push(recorded);
    }
    let lines = all.iter().map(|one| serde_json::to_string(one).map_err(|e| Error::bug(e.to_string())));
    let lines = lines.collect::<Result<Vec<_>>>()?;
    let written = std::fs::write(FILE, format!("[{}]\n", lines.join(",\n")));
    written.map_err(|e| Error::output(format!("{FILE} cannot be written: {e}")))
}

fn recorded(
    operation: &'static Operation,
    protocol: &'static Protocol,
    items: usize,
    link: &'static str,
) -> Result<Recorded> {
    let (mut a, mut b) = Channel::pair();
    if !link.is_empty() {
        let link: Network = link.parse().map_err(Error::usage)?;
        [a, b] = [a.emulate(link)?, b.emulate(link)?];
    }
    let set = |of: &str| -> ItemSet { (0..items).map(|i| format!("{of}{i}").into_bytes()).collect() };
    let sets = [set("a"), set("b")];
    let values = vec![1; items];
    let record = Arc::new(Record { began: Instant::now(), progress: Mutex::default() });
    a.observe(record.clone());
    let party = |channel, role: Role| {
        let threads = Threads::new(1)?;
        let has_values = role == Role::Sender && *operation == SUM;
        let request = Request::new(operation, role, &sets[role as usize]).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.input.values = if has_values { &values } else { &[] };
            r.local.threads = threads.clone();
        });
        let connection = Connection::unprotected(channel, WireCount::default());
        run(connection, &request, &mut Prng::from_os()?).map(drop)
    };
    std::thread::scope(|s| {
        let other = s.spawn(|| party(b, Role::Sender));
        party(a, Role::Receiver)?;
        other.join().unwrap_or_else(|_| Err(Error::bug("a party panicked")))
    })?;
    let all = record.progress.lock().unwrap_or_else(PoisonError::into_inner);
    // Keeps a few hundred of them, with both ends of each gap.
    let step = all.last().map_or(0, |(at, _)| at / 200);
    let mut progress: Vec<(u64, u64)> = Vec::new();
    for (i, at) in all.iter().enumerate() {
        let last = progress.last().map_or(0, |last| last.0);
        if progress.is_empty()
            || at.0 >= last + step
            || all.get(i + 1).is_none_or(|next| next.0 >= at.0 + 2 * step)
        {
            progress.push(*at);
        }
    }
    Ok(Recorded { operation: operation.name, protocol: protocol.name, items, link, progress })
}
