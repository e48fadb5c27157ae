//! The fuzz targets, and their shared parts: a peer that is a string of bytes, the requests that are run against it, and a
//! bound on memory.

mod inputs;
mod seeds;
mod targets;

pub use inputs::{Input, inputs, keep, target};
pub use targets::{TARGETS, Target};

use cap::Cap;
use std::alloc::System;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Instant;
use veilset::channel::{Channel, Recording, Sink, Source, WireCount};
use veilset::error::{Error, Result};
use veilset::item::{ItemSet, Items};
use veilset::many::seat;
use veilset::net::{Connected, Connection, Fingerprint, Listed, ListedParty, Me, Roster, in_memory};
use veilset::operations::sum::Modulus;
use veilset::operations::{Learned, Operation, Role, Rows, Terms};
use veilset::protocols::{self, Attachment, Choice, Protocol};
use veilset::session::run::{Request, run};
use veilset::sharded::set::Set;
use veilset_core::hazmat;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Limits allocations to this many bytes: from now on, the process ends if they exceed the limit.
///
/// # Panics
/// If more is allocated already.
pub fn limit_memory(bytes: usize) {
    MEMORY.set_limit(bytes).unwrap();
}

/// Takes the first byte of `data`; returns 0 if it is empty.
pub fn byte(data: &mut &[u8]) -> u8 {
    match data.split_first() {
        Some((&first, rest)) => {
            *data = rest;
            first
        }
        None => 0,
    }
}

/// A peer that has sent these bytes and closed the connection, and accepts all messages.
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

/// Asserts that a peer's messages may cause this error, and that it is safe to display.
pub fn check(error: &Error) {
    match error {
        Error::Peer { .. } | Error::Network(_) | Error::Disagreement(_) | Error::Refused(_) => {}
        _ => panic!("{error:?}"),
    }
    // Text from the peer is shown to a user.
    assert!(error.to_string().chars().all(|c| c == '\n' || !c.is_control()), "{error:?}");
}

/// The data that requests borrow.
pub struct Data {
    /// The sets by party: those of the receiver and the sender in a run of two, or those of all parties in a run of several.
    sets: [ItemSet; 3],
    /// The entries of several parties in their list.
    mes: Vec<Me>,
    /// The messages of several parties in honest runs, by scenario.
    honest: Mutex<BTreeMap<[u8; 2], Arc<Sent>>>,
    values: Vec<i128>,
    columns: [String; 1],
    payloads: Items,
}

impl Default for Data {
    fn default() -> Self {
        let sets = [&["a", "b", "longer"][..], &["b", "", "longer", "c"], &["longer", "d"]];
        let sets = sets.map(|items| items.iter().collect());
        let payloads = ["1", "two", "", "4"].iter().collect();
        let (mes, honest) = (parties(), Mutex::default());
        Data { sets, mes, honest, values: vec![5, -7, 1 << 40, 0], columns: ["note".into()], payloads }
    }
}

/// The bytes that each of several parties sends to each: `sent[from][to]`.
type Sent = Vec<Vec<Vec<u8>>>;

/// A fingerprint that belongs to no key, with the right check letters.
fn fingerprint(party: usize) -> Fingerprint {
    format!("{:0>40}", "zx".to_owned() + &"0".repeat(party + 1)).parse().unwrap()
}

/// Several parties, each with its entry in the list.
fn parties() -> Vec<Me> {
    let names = ["a", "b", "c"];
    let party = |(i, name): (usize, &&str)| ListedParty {
        name: name.to_string(),
        fingerprint: fingerprint(i),
        address: Some(format!("{name}.example.org:7000")),
    };
    let listed = Listed { leader: names[0].into(), party: names.iter().enumerate().map(party).collect() };
    let roster = Roster::new(listed, "parties.toml").unwrap();
    names.iter().map(|name| roster.clone().me(name).unwrap()).collect()
}

/// In a run of several parties, the indices of our party and of the party that sends the input. The third party sends recorded
/// messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cast {
    us: usize,
    cheat: usize,
}

impl Cast {
    /// All casts in which we have this role.
    fn all(role: Role) -> &'static [Cast] {
        match role {
            Role::Receiver => &[Cast { us: 0, cheat: 1 }, Cast { us: 0, cheat: 2 }],
            Role::Sender => &[
                Cast { us: 1, cheat: 0 },
                Cast { us: 1, cheat: 2 },
                Cast { us: 2, cheat: 0 },
                Cast { us: 2, cheat: 1 },
            ],
        }
    }
}

/// An operation and a protocol to run.
#[derive(Clone, Copy)]
pub struct Scenario {
    operation: &'static Operation,
    protocol: &'static Protocol,
    /// Whether every supported option is used.
    all: bool,
}

/// The scenarios of all protocols.
pub static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let offers = protocols::ALL
        .into_iter()
        .chain(protocols::MULTIPARTY)
        .flat_map(|protocol| protocol.offers.iter().map(move |offer| (offer.operation, protocol)));
    let both = offers
        .flat_map(|(operation, protocol)| [false, true].map(|all| Scenario { operation, protocol, all }));
    let scenarios: Vec<Scenario> = both.collect();
    let ids: BTreeSet<[u8; 2]> = scenarios.iter().map(Scenario::id).collect();
    assert_eq!(ids.len(), scenarios.len(), "two scenarios have one id: lengthen it");
    scenarios
});

impl Scenario {
    /// Returns the name: the operation, the protocol, and `all` or `bare` for the options.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.operation, self.protocol, if self.all { "all" } else { "bare" })
    }

    /// Returns the first two bytes of an input for this scenario. They follow from the name, so that inputs stay valid when
    /// protocols are added.
    pub fn id(&self) -> [u8; 2] {
        // FNV-1a, folded.
        let hash = self
            .name()
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        ((hash >> 16) as u16 ^ hash as u16).to_le_bytes()
    }

    /// Whether the scenario has several parties.
    pub fn of_several(&self) -> bool {
        self.protocol.is_multiparty()
    }

    /// The scenario with this id. Other ids choose one too, so that every input is meaningful.
    fn with(id: [u8; 2]) -> Scenario {
        let found = SCENARIOS.iter().find(|scenario| scenario.id() == id);
        *found.unwrap_or(&SCENARIOS[usize::from(u16::from_le_bytes(id)) % SCENARIOS.len()])
    }
}

impl Data {
    /// Returns the request of `role` in a scenario of two.
    pub fn request(&self, scenario: Scenario, role: Role) -> Request<'_> {
        let Scenario { operation, protocol, all } = scenario;
        let sender = role == Role::Sender;
        let sum = operation.uses.values;
        let columns = all && operation.uses.rows != Rows::None;
        let reveal_count = protocol.offer(operation).is_some_and(|offer| offer.reveals_count);
        let cuts = operation.name == "intersect" && protocol.attaches(operation, Attachment::Shards);
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
                shards: if cuts { 2 } else { 0 },
                ..Terms::default()
            },
        };
        let mut request = Request::new(operation, role, &self.sets[usize::from(sender)]).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.local.max_peer_items = 50;
            r.input.pad_to = all.then_some(6);
            r.spec.terms = terms;
        });
        if columns {
            request.spec.sent_columns = self.columns.to_vec();
        }
        if columns && sender {
            request.input.payloads = &self.payloads;
        }
        request.spec.terms.shared_values = all && operation.uses.shares && sender;
        if (sum || request.spec.terms.shared_values) && sender {
            request.input.values = &self.values;
        }
        request
    }

    /// The request of party `us` in a scenario of several.
    fn request_of_several(&self, scenario: Scenario, us: usize) -> Request<'_> {
        let Scenario { operation, protocol, all } = scenario;
        let role = if us == 0 { Role::Receiver } else { Role::Sender };
        Request::new(operation, role, &self.sets[us]).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.spec.parties = Some(self.mes[us].clone());
            r.local.max_peer_items = 50;
            r.input.pad_to = all.then_some(6);
            r.spec.terms = Terms { max_row: if all { 40 } else { 10 }, ..Terms::default() };
        })
    }

    /// Runs one of several parties under a fixed seed.
    fn run_of_several(
        &self,
        scenario: Scenario,
        us: usize,
        connected: impl Into<Connected>,
    ) -> Result<Learned> {
        let seed = [1 + us as u8; 32];
        run(connected, &self.request_of_several(scenario, us), &mut hazmat::seeded(&seed)).map(|o| o.learned)
    }

    /// The messages of all parties in an honest run.
    fn honest(&self, scenario: Scenario) -> Arc<Sent> {
        let mut known = self.honest.lock().unwrap();
        known.entry(scenario.id()).or_insert_with(|| Arc::new(self.recorded_of_several(scenario))).clone()
    }

    fn recorded_of_several(&self, scenario: Scenario) -> Sent {
        let n = self.mes.len();
        let tapes = (0..n).map(|_| (0..n).map(|_| Tape::default()).collect());
        let tapes: Vec<Vec<Tape>> = tapes.collect();
        let mut all = in_memory(self.mes[0].roster());
        for (to, connections) in all.iter_mut().enumerate() {
            for connection in connections {
                let from = (0..n).find(|&from| seat(from) == connection.seat).unwrap();
                connection.channel.record(Recording::to_writer(tapes[from][to].clone()));
            }
        }
        std::thread::scope(|s| {
            for (us, connections) in all.into_iter().enumerate() {
                s.spawn(move || self.run_of_several(scenario, us, connections).unwrap());
            }
        });
        let bytes = |tape: &Tape| tape.0.lock().unwrap().clone();
        tapes.iter().map(|row| row.iter().map(bytes).collect()).collect()
    }

    /// Runs one of several parties against a cheat that sends these bytes. The third one sends the messages of an honest run.
    fn run_against_one(&self, scenario: Scenario, Cast { us, cheat }: Cast, says: &[u8]) -> Result<Learned> {
        let honest = self.honest(scenario);
        let others = (0..self.mes.len()).filter(|&other| other != us);
        let connections = others.map(|other| {
            let says = if other == cheat { says } else { &honest[other][us] };
            let mut connection = Connection::unprotected(peer(says), WireCount::default());
            connection.seat = seat(other);
            connection
        });
        self.run_of_several(scenario, us, connections.collect::<Vec<_>>())
    }

    /// Runs one party of two under a fixed seed.
    pub fn run(&self, scenario: Scenario, role: Role, channel: Channel) -> Result<Learned> {
        let connection = Connection::unprotected(channel, WireCount::default());
        let seed = [1 + role as u8; 32];
        run(connection, &self.request(scenario, role), &mut hazmat::seeded(&seed)).map(|o| o.learned)
    }

    /// Runs `role` against a peer that sends these bytes. The first two choose the scenario; with several parties, a third one
    /// chooses our party and the one that sends them.
    pub fn against(&self, role: Role, mut says: &[u8]) {
        let scenario = Scenario::with([byte(&mut says), byte(&mut says)]);
        let (ours, learned, most) = if scenario.of_several() {
            let all = Cast::all(role);
            let cast = all[usize::from(byte(&mut says)) % all.len()];
            let learned = self.run_against_one(scenario, cast, says);
            // As many as the others' rows: nothing limits these to the announced sizes.
            (self.request_of_several(scenario, cast.us), learned, 1000)
        } else {
            (self.request(scenario, role), self.run(scenario, role, peer(says)), 50)
        };
        let learned = match learned {
            Err(e) => return check(&e),
            Ok(learned) => learned,
        };
        match learned {
            Learned::Nothing => assert_eq!(role, Role::Sender),
            Learned::Matching(found) => {
                let (rows, payloads) = (&found.positions, found.payloads.len());
                assert!(rows.windows(2).all(|w| w[0] < w[1]));
                assert!(rows.iter().all(|&row| (row as usize) < ours.input.set.len()));
                assert!(payloads == 0 || payloads == rows.len());
            }
            Learned::New(new) => {
                let (items, payloads) = (&new.items, new.payloads.len());
                let distinct: ItemSet = items.iter().collect();
                assert!(distinct.len() == items.len() && items.len() <= most);
                assert!(payloads == 0 || payloads == items.len());
                assert!(items.iter().all(|item| item.len() <= ours.spec.terms.max_row));
                let Set::Memory(set) = ours.input.set else { panic!("a set on disk") };
                assert!(items.iter().all(|item| set.iter().all(|own| own != item)));
            }
            Learned::Union(items) => assert!(items.iter().zip(items.iter().skip(1)).all(|(a, b)| a < b)),
            Learned::Matches(matches) => assert!(matches <= ours.input.set.len() as u64),
            Learned::Shares(shares) => assert!(shares.shares.len() % shares.width == 0),
            Learned::Identifiers(ids) => {
                assert!(ids.own.len() == ours.input.set.len() && ids.all.is_sorted());
                assert!(ids.own.iter().all(|id| ids.all.binary_search(id).is_ok()));
            }
            Learned::Sum(sum) => {
                let sum = sum.map(|s| (s.matches, s.sum.unsigned_abs()));
                assert!(sum.is_none_or(|(n, sum)| n <= 4 && sum <= u128::from(n) << 40));
            }
        }
    }

    /// Returns inputs that are honest runs against `role`, and suffixes to the scenario's name for them.
    pub fn recordings(&self, scenario: Scenario, role: Role) -> Vec<(String, Vec<u8>)> {
        if !scenario.of_several() {
            return vec![(String::new(), self.recorded(scenario, role))];
        }
        let honest = self.honest(scenario);
        let casts = (0u8..).zip(Cast::all(role));
        let casts = casts.map(|(i, &Cast { us, cheat })| {
            let input = [&scenario.id()[..], &[i], &honest[cheat][us]].concat();
            (format!("-{}-to-{}", cheat + 1, us + 1), input)
        });
        casts.collect()
    }

    /// Returns an input for a run of two: the messages of the peer of `role` in an honest run.
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

/// Records the received bytes.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Records the bytes that are sent.
struct Tap(Box<dyn Sink>, Arc<Mutex<Vec<u8>>>);

impl Sink for Tap {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        self.1.lock().unwrap().extend(&frame);
        self.0.send(frame)
    }
}
