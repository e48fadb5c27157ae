//! What the targets share: a peer that is a string of bytes, the requests that are run against it, and a bound
//! on memory.

use cap::Cap;
use std::alloc::System;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Instant;
use veilset::channel::{Channel, Sink, Source, WireCount};
use veilset::error::{Error, Result};
use veilset::hazmat;
use veilset::item::{ItemSet, Items};
use veilset::net::Connection;
use veilset::operations::sum::Modulus;
use veilset::operations::{Learned, Operation, Role, Rows, Terms};
use veilset::protocols::{self, Protocol};
use veilset::session::run::{Request, run};

/// What no input of the sizes here may make us allocate.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 256 << 20);

/// Takes the first byte; 0 if there is none.
pub fn byte(data: &mut &[u8]) -> u8 {
    match data.split_first() {
        Some((&first, rest)) => {
            *data = rest;
            first
        }
        None => 0,
    }
}

/// A peer that has said these bytes and closed, and takes whatever is sent.
pub fn peer(says: &[u8]) -> Channel {
    Channel::from_halves(Box::new(Drain), Box::new(Bytes(says.to_vec(), 0)))
}

struct Drain;

impl Sink for Drain {
    fn send(&mut self, _: Vec<u8>) -> Result<()> {
        Ok(())
    }
}

struct Bytes(Vec<u8>, usize);

impl Source for Bytes {
    fn recv(&mut self, out: &mut [u8], _: Option<Instant>) -> Result<()> {
        let Some(bytes) = self.0.get(self.1..).and_then(|rest| rest.get(..out.len())) else {
            self.1 = self.0.len();
            return Err(Error::Network("the bytes are at their end".into()));
        };
        out.copy_from_slice(bytes);
        self.1 += bytes.len();
        Ok(())
    }
}

/// Whether a run may end so because of what a peer says.
pub fn check(error: &Error) {
    match error {
        Error::Peer { .. } | Error::Network(_) | Error::Disagreement(_) | Error::Refused(_) => {}
        _ => panic!("{error:?}"),
    }
    // The peer's words are shown to a user.
    assert!(error.to_string().chars().all(|c| c == '\n' || !c.is_control()), "{error:?}");
}

/// What requests borrow.
pub struct Data {
    sets: [ItemSet; 2],
    values: Vec<i128>,
    columns: [String; 1],
    payloads: Items,
}

impl Default for Data {
    fn default() -> Self {
        let sets = [["a", "b", "longer"].iter().collect(), ["b", "", "longer", "c"].iter().collect()];
        let payloads = ["1", "two", "", "4"].iter().collect();
        Data { sets, values: vec![5, -7, 1 << 40, 0], columns: ["note".into()], payloads }
    }
}

/// What is run.
#[derive(Clone, Copy)]
pub struct Scenario {
    operation: &'static Operation,
    protocol: &'static Protocol,
    /// Whether with everything that can be asked for.
    all: bool,
}

/// All of them, of all protocols.
pub static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let offers = protocols::ALL
        .into_iter()
        .flat_map(|protocol| protocol.offers.iter().map(move |offer| (offer.operation, protocol)));
    let both = offers
        .flat_map(|(operation, protocol)| [false, true].map(|all| Scenario { operation, protocol, all }));
    let scenarios: Vec<Scenario> = both.collect();
    let ids: BTreeSet<[u8; 2]> = scenarios.iter().map(Scenario::id).collect();
    assert_eq!(ids.len(), scenarios.len(), "two scenarios have one id: lengthen it");
    scenarios
});

impl Scenario {
    /// Its name: the operation, the protocol, and what is asked for.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.operation, self.protocol, if self.all { "all" } else { "bare" })
    }

    /// What an input begins with. It follows from the name, so that an input stays what it is when protocols are added.
    pub fn id(&self) -> [u8; 2] {
        // FNV-1a, folded.
        let hash = self
            .name()
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        ((hash >> 16) as u16 ^ hash as u16).to_le_bytes()
    }

    /// The scenario with this id. An id that is none chooses one too, so that every input says something.
    fn with(id: [u8; 2]) -> Scenario {
        let found = SCENARIOS.iter().find(|scenario| scenario.id() == id);
        *found.unwrap_or(&SCENARIOS[usize::from(u16::from_le_bytes(id)) % SCENARIOS.len()])
    }
}

impl Data {
    /// What `role` is asked for in a scenario.
    pub fn request(&self, scenario: Scenario, role: Role) -> Request<'_> {
        let Scenario { operation, protocol, all } = scenario;
        let sender = role == Role::Sender;
        let sum = operation.uses.values;
        let columns = all && operation.uses.rows != Rows::None;
        let reveal_count = protocol.offer(operation).is_some_and(|offer| offer.reveals_count);
        let terms = match all {
            false => Terms {
                max_row: 16,
                min_count: 2,
                reveal_count,
                malicious_sender: protocol.offer(operation).is_some_and(|offer| offer.malicious_sender),
                ..Terms::default()
            },
            true => Terms {
                max_row: 300,
                both: operation.uses.both && !reveal_count,
                reveal_count,
                modulus: Modulus::Bits128,
                ..Terms::default()
            },
        };
        let mut request = Request {
            protocol,
            max_peer_items: 50,
            pad_to: all.then_some(6),
            terms,
            ..Request::new(operation, role, &self.sets[usize::from(sender)])
        };
        if columns {
            request.sent_columns = &self.columns;
        }
        if columns && sender {
            request.payloads = &self.payloads;
        }
        request.terms.shared_values = all && operation.uses.shares && sender;
        if (sum || request.terms.shared_values) && sender {
            request.values = &self.values;
        }
        request
    }

    /// Runs one party under a fixed seed.
    pub fn run(&self, scenario: Scenario, role: Role, channel: Channel) -> Result<Learned> {
        let connection = Connection::unprotected(channel, WireCount::default());
        let seed = [1 + role as u8; 32];
        run(connection, &self.request(scenario, role), &mut hazmat::seeded(&seed)).map(|o| o.learned)
    }

    /// `role` against a peer that says these bytes, of which the first two choose the scenario.
    pub fn against(&self, role: Role, mut says: &[u8]) {
        let scenario = Scenario::with([byte(&mut says), byte(&mut says)]);
        let ours = self.request(scenario, role);
        let learned = match self.run(scenario, role, peer(says)) {
            Err(e) => return check(&e),
            Ok(learned) => learned,
        };
        match learned {
            Learned::Nothing => assert_eq!(role, Role::Sender),
            Learned::Matching(found) => {
                let (rows, payloads) = (&found.positions, found.payloads.len());
                assert!(rows.windows(2).all(|w| w[0] < w[1]));
                assert!(rows.iter().all(|&row| (row as usize) < ours.set.len()));
                assert!(payloads == 0 || payloads == rows.len());
            }
            Learned::New(new) => {
                let (items, payloads) = (&new.items, new.payloads.len());
                let distinct: ItemSet = items.iter().collect();
                assert!(distinct.len() == items.len() && items.len() <= 50);
                assert!(payloads == 0 || payloads == items.len());
                assert!(items.iter().all(|item| item.len() <= ours.terms.max_row));
                assert!(items.iter().all(|item| ours.set.iter().all(|own| own != item)));
            }
            Learned::Union(items) => assert!(items.iter().zip(items.iter().skip(1)).all(|(a, b)| a < b)),
            Learned::Matches(matches) => assert!(matches <= ours.set.len() as u64),
            Learned::Shares(shares) => assert!(shares.shares.len() % shares.width == 0),
            Learned::Identifiers(ids) => {
                assert!(ids.own.len() == ours.set.len() && ids.all.is_sorted());
                assert!(ids.own.iter().all(|id| ids.all.binary_search(id).is_ok()));
            }
            Learned::Sum(sum) => {
                let sum = sum.map(|s| (s.matches, s.sum.unsigned_abs()));
                assert!(sum.is_none_or(|(n, sum)| n <= 4 && sum <= u128::from(n) << 40));
            }
        }
    }

    /// What the peer of `role` says in an honest run.
    pub fn recorded(&self, scenario: Scenario, role: Role) -> Vec<u8> {
        let (a, b) = Channel::pair();
        let said = Arc::<Mutex<Vec<u8>>>::default();
        let (sink, source) = b.into_halves();
        let b = Channel::from_halves(Box::new(Tap(sink, said.clone())), source);
        std::thread::scope(|s| {
            s.spawn(|| self.run(scenario, role.other(), b).unwrap());
            self.run(scenario, role, a).unwrap();
        });
        let said = said.lock().unwrap().clone();
        [&scenario.id()[..], &said].concat()
    }
}

/// Keeps what is sent.
struct Tap(Box<dyn Sink>, Arc<Mutex<Vec<u8>>>);

impl Sink for Tap {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        self.1.lock().unwrap().extend(&frame);
        self.0.send(frame)
    }
}
