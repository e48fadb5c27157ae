//! `veilset demo --parties N`.

use super::{TIMEOUTS, cause, keys};
use crate::print;
use std::sync::Arc;
use veilset::error::Result;
use veilset::net::{Connection, Identity, Me};
use veilset::operations::{self, Operation, Role};
use veilset::party::{self, Data, InputTable, PartySpec, Watch};
use veilset::protocols;
use veilset::rng::Prng;
use veilset::session::report::Report;
use veilset::table::{ReadOptions, Table};
use veilset_app::parties::{on_this_machine, together};

/// The patients of 8 hospitals, one row per hospital and patient.
const HOSPITALS: &str = include_str!("../../data/hospitals.csv");
const KEY: &str = "email";

/// The name of a hospital, and its list as CSV.
type Hospital = (&'static str, String);

/// Returns the first `parties` hospitals of the data.
fn hospitals(parties: usize) -> Vec<Hospital> {
    let mut all: Vec<Hospital> = Vec::new();
    for (name, patient) in HOSPITALS.lines().skip(1).filter_map(|line| line.split_once(',')) {
        if all.last().is_none_or(|(last, _)| *last != name) {
            all.push((name, format!("{KEY}\n")));
        }
        if let Some((_, list)) = all.last_mut() {
            *list += &format!("{patient}\n");
        }
    }
    all.truncate(parties);
    all
}

/// Runs all operations for several parties, with the first as the leader.
pub fn run(parties: usize) -> Result<()> {
    let hospitals = hospitals(parties);
    for (i, (name, list)) in hospitals.iter().enumerate() {
        let leader = if i == 0 { " (leader)" } else { "" };
        print(format!("{name}{leader}: {}", list.lines().skip(1).collect::<Vec<_>>().join(", ")))?;
    }
    let identify = |_: &Hospital| Ok(Arc::new(Identity::generate()?));
    let identities = hospitals.iter().map(identify).collect::<Result<Vec<_>>>()?;
    let identified: Vec<_> = hospitals.iter().map(|(name, _)| name.to_string()).zip(identities).collect();
    for operation in operations::ALL.into_iter().filter(|o| protocols::multiparty_for(o).is_some()) {
        let one = |me: Me, connections| party(operation, &hospitals, me, connections);
        let (_, parties) = on_this_machine(&identified, "the demo")?;
        let results = together(parties, TIMEOUTS, one);
        let (done, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        let mut failed = failed.into_iter().filter_map(Result::err);
        if let Some(first) = failed.next() {
            return Err(cause(first, failed));
        }
        let results: Vec<_> = done.into_iter().flatten().collect();
        let seconds = results.iter().map(|(report, _)| report.seconds).fold(0.0, f64::max);
        let bytes: u64 = results.iter().map(|(report, _)| report.bytes.sent).sum();
        print(format!("\n{operation}: {seconds:.2} seconds, {bytes} bytes between all parties"))?;
        for ((name, _), (report, keys)) in hospitals.iter().zip(results) {
            print(format!("  {name}: {}", report.learned.first().map_or("", String::as_str)))?;
            if !keys.is_empty() {
                print(format!("    {}", keys.join(", ")))?;
            }
        }
    }
    Ok(())
}

/// Runs one party; also returns the keys in its result.
fn party(
    operation: &'static Operation,
    hospitals: &[Hospital],
    me: Me,
    connections: Vec<Connection>,
) -> Result<(Report, Vec<String>)> {
    let name = me.own().name().to_string();
    let list = hospitals.iter().find(|(other, _)| *other == name).map_or("", |(_, list)| list);
    let mut party = PartySpec::new(operation, Role::Sender, InputTable::new(&name, [KEY]));
    party.spec = party.spec.among(me);
    party.check()?;
    let table = Table::from_reader(&name, list.as_bytes(), &ReadOptions::default(), None)?;
    let data = Data::of(&party, table, &Watch::NONE)?;
    let mut rng = Prng::from_os()?;
    let prepared = data.prepare(None, &Watch::NONE, &mut rng)?;
    let ran = party::run(connections, prepared, None, &mut rng)?;
    Ok((ran.report, keys(&ran.outcome.learned, data.keys().map(|keys| &keys.keyed.set))))
}
