//! `veilset demo`: both parties on this machine, over TLS, on data that ships with the program.

use crate::print;
use std::sync::Arc;
use std::time::{Duration, Instant};
use veilset::channel::Timeouts;
use veilset::error::{Error, Result};
use veilset::item::decode_key;
use veilset::net::{Connection, Endpoint, Identity, Listener, Security, establish};
use veilset::operations::{self, Learned, Operation, Role};
use veilset::rng::Prng;
use veilset::session::report::Report;
use veilset::session::run::{self, Request};
use veilset::table::{Duplicates, EmptyKeys, KeyedSet, Normalise, ReadOptions, Table, keyed_set, values};

const NORTH: &str = include_str!("../data/north.csv");
const SOUTH: &str = include_str!("../data/south.csv");
const SCALE: u32 = 2;

struct Party {
    table: Table,
    keyed: KeyedSet,
    values: Vec<i128>,
    identity: Arc<Identity>,
}

impl Party {
    fn new(name: &str, csv: &str, key: &str, values_column: Option<&str>) -> Result<Party> {
        let table = Table::from_reader(name, csv.as_bytes(), &ReadOptions::default(), None)?;
        let keyed = keyed_set(
            &table,
            &table.columns(&[key.into()])?,
            Normalise::default(),
            EmptyKeys::Error,
            Duplicates::Error,
        )?;
        let values = match values_column {
            Some(column) => {
                let at = table.columns(&[column.into()])?;
                at.first().map_or(Ok(Vec::new()), |&at| values(&table, &keyed, at, SCALE))?
            }
            None => Vec::new(),
        };
        Ok(Party { table, keyed, values, identity: Arc::new(Identity::generate()?) })
    }

    fn run(
        &self,
        operation: &'static Operation,
        role: Role,
        connection: Connection,
    ) -> Result<(Report, Learned)> {
        let start = Instant::now();
        let request = Request {
            values: if operation.uses.values { &self.values } else { &[] },
            value_scale: SCALE,
            ..Request::new(operation, role, &self.keyed.set)
        };
        let peer = connection.peer.map(|f| f.to_string());
        let outcome = run::run(connection, &request, &mut Prng::from_os()?)?;
        let report = Report::new(&request, &outcome, start.elapsed().as_secs_f64(), peer)?;
        Ok((report, outcome.learned))
    }

    fn show(&self) -> Result<()> {
        print(format!("{}:\n  {}", self.table.name(), self.table.header().join(", ")))?;
        for row in 0..self.table.rows() {
            let cells =
                (0..self.table.header().len()).map(|c| String::from_utf8_lossy(self.table.cell(row, c)));
            print(format!("  {}", cells.collect::<Vec<_>>().join(", ")))?;
        }
        Ok(())
    }

    /// The keys in a result.
    fn keys(&self, learned: &Learned) -> Vec<String> {
        let key = |item: &[u8]| {
            let columns = decode_key(item, 1).unwrap_or_default();
            columns.iter().map(|c| String::from_utf8_lossy(c)).collect::<String>()
        };
        let mut keys: Vec<String> = match learned {
            Learned::Matching(m) => {
                m.positions.iter().map(|&i| key(self.keyed.set.get(i as usize))).collect()
            }
            Learned::New(new) => new.items.iter().map(key).collect(),
            _ => Vec::new(),
        };
        keys.sort();
        keys
    }
}

/// Runs all operations between two parties and shows what each had and learned.
pub fn run() -> Result<()> {
    let north = Party::new("North hospital (receiver)", NORTH, "email", None)?;
    let south = Party::new("South hospital (sender)", SOUTH, "mail", Some("cost"))?;
    north.show()?;
    south.show()?;
    for operation in operations::ALL {
        let [r, s] = both(&north, &south, operation)?;
        let bytes = r.0.bytes.sent + r.0.bytes.received;
        print(format!("\n{operation}: {:.2} seconds, {bytes} bytes both ways", r.0.seconds))?;
        for (name, (report, learned), party) in [("North", r, &north), ("South", s, &south)] {
            print(format!("  {name}: {}", report.learned.first().map_or("", String::as_str)))?;
            let keys = party.keys(&learned);
            if !keys.is_empty() {
                print(format!("         {}", keys.join(", ")))?;
            }
        }
    }
    Ok(())
}

fn both(north: &Party, south: &Party, operation: &'static Operation) -> Result<[(Report, Learned); 2]> {
    let ten = Duration::from_secs(10);
    let timeouts = Timeouts { connect: ten, idle: ten };
    let security = |own: &Party, peer: &Party| Security::Tls {
        identity: own.identity.clone(),
        peer: peer.identity.fingerprint(),
    };
    let listener = Listener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let endpoint = Endpoint::Connect(address);
            let connection = establish(&endpoint, &security(south, north), timeouts, &|| false, &|_| ())?;
            south.run(operation, Role::Sender, connection)
        });
        let connection = listener.accept(&security(north, south), timeouts, &|| false, &|_| ())?;
        let receiver = north.run(operation, Role::Receiver, connection);
        let sender = sender.join().map_err(|_| Error::Bug("the sender of the demo panicked".into()))?;
        Ok([receiver?, sender?])
    })
}
