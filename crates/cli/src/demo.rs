//! `veilset demo`: all parties on this machine, over TLS, on data that ships with the program.

mod several;

use crate::args::DemoArgs;
use crate::print;
use std::sync::Arc;
use std::time::Duration;
use veilset::channel::Timeouts;
use veilset::error::{Error, Result};
use veilset::item::{ItemSet, decode_key};
use veilset::net::{Connection, Endpoint, Identity, Listener, Protection, establish};
use veilset::operations::{self, Learned, Operation, Role};
use veilset::party::{self, Data, InputTable, PartySpec, Watch};
use veilset::rng::Prng;
use veilset::session::report::Report;
use veilset::table::{ReadOptions, Table};
use veilset::threads::{joined, start};

const NORTH: &str = include_str!("../data/north.csv");
const SOUTH: &str = include_str!("../data/south.csv");
const SCALE: u32 = 2;
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(10), idle: Duration::from_secs(10) };

struct Party {
    name: &'static str,
    csv: &'static str,
    key: &'static str,
    values: Option<&'static str>,
    identity: Arc<Identity>,
}

impl Party {
    fn table(&self) -> Result<Table> {
        Table::from_reader(self.name, self.csv.as_bytes(), &ReadOptions::default(), None)
    }

    /// Runs one party; also returns the keys in its result.
    fn run(
        &self,
        operation: &'static Operation,
        role: Role,
        connection: Connection,
    ) -> Result<(Report, Vec<String>)> {
        let mut party = PartySpec::new(operation, role, InputTable::new(self.name, [self.key]));
        if party.has_values() {
            party.values = self.values.map(Into::into);
        }
        party.spec.value_scale = SCALE;
        party.check()?;
        let data = Data::of(&party, self.table()?, &Watch::NONE)?;
        let mut rng = Prng::from_os()?;
        let prepared = data.prepare(None, &Watch::NONE, &mut rng)?;
        let ran = party::run(connection, prepared, None, &mut rng)?;
        Ok((ran.report, keys(&ran.outcome.learned, data.keys().map(|keys| &keys.keyed.set))))
    }

    fn show(&self) -> Result<()> {
        let table = self.table()?;
        print(format!("{}:\n  {}", table.name(), table.header().join(", ")))?;
        for row in 0..table.rows() {
            let cells =
                (0..table.header().len()).map(|c| String::from_utf8_lossy(&table.cell(row, c)).into_owned());
            print(format!("  {}", cells.collect::<Vec<_>>().join(", ")))?;
        }
        Ok(())
    }
}

/// Returns the keys in a result.
fn keys(learned: &Learned, ours: Option<&ItemSet>) -> Vec<String> {
    let key = |item: &[u8]| {
        let columns = decode_key(item, 1).unwrap_or_default();
        columns.iter().map(|c| String::from_utf8_lossy(c)).collect::<String>()
    };
    let mut keys: Vec<String> = match learned {
        Learned::Matching(m) => {
            let ours = |&i: &u32| ours.map(|ours| key(ours.get(i as usize)));
            m.positions.iter().filter_map(ours).collect()
        }
        Learned::New(new) => new.items.iter().map(key).collect(),
        _ => Vec::new(),
    };
    keys.sort();
    keys
}

/// Shows each party's data and result.
pub fn run(a: &DemoArgs) -> Result<()> {
    match a.parties {
        Some(parties) => several::run(parties),
        None => of_two(),
    }?;
    print(SMALL_SETS)
}

/// The note on runs in which parties do not know each other's data.
const SMALL_SETS: &str = "\nSo few keys ask about each of them: in a run of your own, a party with fewer than 10 that learns something of the \
                          others' rows is\nrefused, unless --allow-small or a policy says otherwise.";

/// Runs all operations between two parties.
fn of_two() -> Result<()> {
    let party = |name, csv, key, values| {
        Result::Ok(Party { name, csv, key, values, identity: Arc::new(Identity::generate()?) })
    };
    let north = party("North hospital (receiver)", NORTH, "email", None)?;
    let south = party("South hospital (sender)", SOUTH, "mail", Some("cost"))?;
    north.show()?;
    south.show()?;
    for operation in operations::ALL {
        let [r, s] = both(&north, &south, operation)?;
        let bytes = r.0.bytes.sent + r.0.bytes.received;
        print(format!("\n{operation}: {:.2} seconds, {bytes} bytes in both directions", r.0.seconds))?;
        for (name, (report, keys)) in [("North", r), ("South", s)] {
            print(format!("  {name}: {}", report.learned.first().map_or("", String::as_str)))?;
            if !keys.is_empty() {
                print(format!("         {}", keys.join(", ")))?;
            }
        }
    }
    Ok(())
}

fn both(north: &Party, south: &Party, operation: &'static Operation) -> Result<[(Report, Vec<String>); 2]> {
    let security = |own: &Party, peer: &Party| Protection::Tls {
        identity: own.identity.clone(),
        peer: peer.identity.fingerprint(),
    };
    let listener = Listener::bind("127.0.0.1:0")?;
    let address = listener.local_addr().to_string();
    std::thread::scope(|scope| {
        let sender = start(scope, || {
            let endpoint = Endpoint::connect(address);
            let connection = establish(&endpoint, &security(south, north), TIMEOUTS, &|| false, &|_| ())?;
            south.run(operation, Role::Sender, connection)
        })?;
        let accepted = listener.accept(&security(north, south), TIMEOUTS, &|| false, &|_| ());
        let receiver = accepted.and_then(|connection| north.run(operation, Role::Receiver, connection));
        let sender = joined(sender.join());
        match (receiver, sender) {
            (Ok(receiver), Ok(sender)) => Ok([receiver, sender]),
            (Err(one), Err(other)) => Err(cause(one, [other])),
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        }
    })
}

/// Returns the original cause among the errors of parties on this machine: errors that follow from another party's failure come
/// last.
fn cause(first: Error, others: impl IntoIterator<Item = Error>) -> Error {
    let follows = |error: &Error| match error {
        Error::Cancelled => 2,
        Error::Network(_) | Error::Peer { .. } => 1,
        _ => 0,
    };
    let earlier = |one, other| if follows(&other) < follows(&one) { other } else { one };
    others.into_iter().fold(first, earlier)
}
