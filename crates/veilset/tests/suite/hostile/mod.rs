//! A hostile peer against whole runs. In every operation and both roles, every frame is tampered with in every way of
//! `tamper.rs`. Our side must end with the right kind of error, in time, without a panic and within a bound on memory.
//!
//! The messages of each party in an honest run are recorded. Under fixed seeds a party that is run again sends and expects the
//! same messages, so the peer is a script: its recording with one frame tampered with. Only the table of [`EXCEPTIONS`] knows
//! the messages of protocols: a new scenario in [`scenarios`] brings its messages with it. Runs of several parties are in
//! `several.rs`.
//!
//! The first tier draws cases. It covers every message of every protocol with one tampering, and every message with all kinds;
//! the whole tier runs all cases.

mod several;
mod tamper;

use cap::Cap;
use std::alloc::System;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tamper::{Aborts, Act, Case, tag, tamper};
use veilset::channel::{Canceller, Channel, Message, Sink, WireCount};
use veilset::context::Context;
use veilset::error::{Error, Fault, Result};
use veilset::group::curve25519::Curve25519;
use veilset::group::ristretto255::Ristretto255;
use veilset::hash::ItemHash;
use veilset::hashed::HashedSet;
use veilset::item::{ItemSet, Items};
use veilset::membership::cwprf::{CwPrf, GolombTags};
use veilset::membership::osn::{Osn, Plan};
use veilset::membership::permuted::{MqrpmtStar, PermuteThenTest};
use veilset::membership::poprf::FromPermutedOprf;
use veilset::membership::sigma::dh::SigmaDh;
use veilset::membership::{InBins, Mqrpmt};
use veilset::net::Connection;
use veilset::operations::sum::Modulus;
use veilset::operations::{COUNT, INTERSECT, Learned, Operation, Role, Rows, Terms, UNION};
use veilset::oprf::{Oprf, multi_point::MultiPoint, vole::Rr22};
use veilset::ot::base;
use veilset::params::{LAMBDA, matrix::Matrix};
use veilset::planner::Preference;
use veilset::protocols::{self, CM20, CWPRF, Choice, DH_PSI, VOLE};
use veilset::session::run::{Request, RunOutcome, run};
use veilset::session::{Planning, Spec};
use veilset::speed::Speeds;
use veilset::vole::{Half, Receiver, Vole, silent::Silent};
use veilset_core::hazmat;
use veilset_testing::Draw;

/// The limit on the allocations of all concurrent cases together, below the length of a frame that a header can claim.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 1 << 30);

/// How long our side waits for a frame from a peer that stalls. After that it looks for a final message from the peer for 3
/// seconds.
const PATIENCE: Duration = Duration::from_millis(500);
/// The maximum time of a run, generous because the machine may be busy.
const IN_TIME: Duration = Duration::from_secs(30);
/// Number of concurrent cases: most slow cases do nothing but wait.
const WORKERS: usize = 48;

/// The alternatives of a receiver that picks a protocol.
const ALTERNATIVES: [Choice; 3] = [Choice::of(&DH_PSI), Choice::of(&CM20), Choice::of(&VOLE)];

/// Held by the tests that run many cases, to limit their memory and time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const HEADER: usize = 6;
const HEARTBEAT: [u8; HEADER] = [0, 0xff, 0, 0, 0, 0];
const ABORT: u16 = 0xff01;

/// The requests of the receiver and the sender in an operation that the peer attacks.
struct Scenario<'a> {
    name: String,
    requests: [Request<'a>; 2],
    /// The messages to tamper with; all of them if empty.
    only: &'static [u16],
}

/// The data that requests borrow.
struct Data {
    y: ItemSet,
    x: ItemSet,
    none: ItemSet,
    values: Vec<i128>,
    columns: [String; 1],
    payloads: Items,
}

impl Data {
    fn new() -> Data {
        let items = |range: std::ops::Range<usize>| -> ItemSet {
            range.map(|i| format!("item {i} {}", "x".repeat(3 * i)).into_bytes()).collect()
        };
        let (y, x) = (items(0..7), items(3..11));
        let values = (0..x.len() as i128).map(|i| 1000 - 300 * i).collect();
        let payloads = (0..x.len()).map(|i| "p".repeat(i)).collect();
        Data { y, x, none: items(0..0), values, columns: ["note".into()], payloads }
    }
}

/// The requests with other terms.
fn with(requests: [Request<'_>; 2], terms: Terms) -> [Request<'_>; 2] {
    requests.map(|r| r.with(|r| r.spec.terms = terms))
}

/// The requests with every supported option.
fn everything<'a>(data: &'a Data, requests: [Request<'a>; 2]) -> [Request<'a>; 2] {
    let (uses, terms) = (requests[0].spec.operation.uses, requests[0].spec.terms);
    let terms = match uses.values {
        // Without a minimum, which would hide changes of the sum.
        true => Terms { modulus: Modulus::Bits128, min_count: 0, ..terms },
        false => Terms { both: uses.both && !terms.reveal_count, ..terms },
    };
    let [receiver, sender] = with(requests, terms).map(|r| r.with(|r| r.input.pad_to = Some(12)));
    let sent_columns: &[String] = if uses.rows == Rows::None { &[] } else { &data.columns };
    let payloads = if uses.rows == Rows::None { sender.input.payloads } else { &data.payloads };
    let terms = Terms { shared_values: uses.shares, ..sender.spec.terms };
    let values = if uses.shares { &data.values } else { sender.input.values };
    [
        receiver.with(|r| r.spec.sent_columns = sent_columns.to_vec()),
        sender.with(|r| {
            r.spec.sent_columns = sent_columns.to_vec();
            r.input.payloads = payloads;
            r.spec.terms = terms;
            r.input.values = values;
        }),
    ]
}

/// Each operation of each protocol, plain and with every supported option, and options that few of them have.
fn scenarios(data: &Data) -> Vec<Scenario<'_>> {
    let Data { y, x, none, values, .. } = data;
    let terms = Terms { max_row: 64, min_count: 2, ..Terms::default() };
    let request = |operation, protocol, role, set| {
        Request::new(operation, role, set).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.local.max_peer_items = 100;
            r.spec.terms = terms;
        })
    };
    let pair = |operation: &'static Operation, protocol, y, x| {
        let sender = request(operation, protocol, Role::Sender, x);
        let values: &[i128] = if operation.uses.values { values } else { &[] };
        [request(operation, protocol, Role::Receiver, y), sender.with(|r| r.input.values = values)]
    };
    let scenario = |name: String, requests| Scenario { name, requests, only: &[] };
    let mut all = Vec::new();
    for protocol in protocols::ALL {
        for offer in protocol.offers {
            let operation = offer.operation;
            let terms = Terms { reveal_count: offer.reveals_count, ..terms };
            let requests = with(pair(operation, protocol, y, x), terms);
            let name = |what: &str| format!("{operation} by {protocol}{what}");
            all.push(scenario(name(""), requests.clone()));
            all.push(scenario(name(" with everything"), everything(data, requests.clone())));
            if offer.malicious_sender {
                let terms = Terms { malicious_sender: true, ..terms };
                all.push(scenario(name(", malicious sender"), with(requests, terms)));
            }
        }
    }
    // In other groups only the points differ.
    for Choice { protocol, group } in protocols::ALL.into_iter().flat_map(|p| p.choices().skip(1)) {
        let offer = &protocol.offers[0];
        let (operation, terms) = (offer.operation, Terms { reveal_count: offer.reveals_count, ..terms });
        let requests = with(pair(operation, protocol, y, x), terms);
        let requests = requests.map(|r| r.with(|r| r.spec.candidates.first.group = group));
        let name = format!("{operation} by {protocol} over {group}");
        all.push(Scenario { name, requests, only: &[0x11, 0x12, 0x16, 0x17, 0x61, 0x62] });
    }
    // Enough items that the VOLE uses its code. Other messages are as in the small scenarios.
    let many = pair(&INTERSECT, &VOLE, y, x);
    let many = many.map(|r| {
        r.with(|r| {
            r.input.pad_to = Some(4000);
            r.local.max_peer_items = 4000;
        })
    });
    let many = Scenario { name: "intersect of many items".into(), requests: many, only: &[0x91, 0x92] };
    // Three rows fit in a frame, so the rows take several frames.
    let wide = with(pair(&UNION, &CWPRF, y, x), Terms { max_row: 65_000, ..terms });
    // The job's messages, in addition to the protocols' own.
    for (operation, protocol) in [(&INTERSECT, &VOLE), (&UNION, &CWPRF)] {
        let requests = with(pair(operation, protocol, y, x), Terms { shards: 3, ..terms });
        all.push(Scenario {
            name: format!("{operation} in shards"),
            requests,
            only: &[0x0c, 0x0d, 0x0e, 0x41],
        });
    }
    // Which protocol takes the fewest bytes does not depend on the link, so the receiver picks the same one in each run, and
    // does not measure the link.
    let picked = pair(&INTERSECT, &CWPRF, y, x).map(|r| {
        let planning = Some(Planning { speeds: Speeds::built_in(1), prefer: Preference::Bytes });
        r.with(|r| {
            r.spec.candidates.others = ALTERNATIVES.to_vec();
            r.local.planning = planning;
        })
    });
    all.push(Scenario {
        name: "intersect by what is picked".into(),
        requests: picked,
        only: &[0x02, 0x05, 0x06],
    });
    // First, as these cases take longest.
    all.insert(0, many);
    all.push(scenario("union of wide rows".into(), wide));
    all.push(scenario("intersect, no items here".into(), pair(&INTERSECT, &CWPRF, none, x)));
    all.push(scenario("count, no items there".into(), pair(&COUNT, &CWPRF, y, none)));
    all
}

/// How a run can end for our side. It must never end in a defect of ours, or as if it had been stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Done,
    Refused,
    Disagreement,
    Misbehaved,
    GaveUp,
    Network,
    Never,
}
use End::*;

impl End {
    fn of(result: &Result<RunOutcome>) -> End {
        match result {
            Ok(_) => Done,
            Err(Error::Refused(_)) => Refused,
            Err(Error::Disagreement(_)) => Disagreement,
            Err(Error::Peer { fault: Fault::Misbehaved, .. }) => Misbehaved,
            Err(Error::Peer { fault: Fault::GaveUp, .. }) => GaveUp,
            Err(Error::Network(_)) => Network,
            Err(_) => Never,
        }
    }
}

/// A kind of tampering with a frame, by its noticeable effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The run goes on as if nothing had happened.
    Harmless,
    /// The frames are not the ones that both sides expect: a wrong tag, length, number or order.
    Structure,
    /// The peer announces that it stops.
    Abort,
    /// The connection ends too early, or nothing comes.
    Silence,
    /// The frame has other bytes, which may mean another legal value.
    Value,
    /// The frame has elements that no honest party sends.
    Illegal,
    /// The frame has elements that are of low order on Curve25519; in another group they may be legal.
    LowOrder,
}

impl Kind {
    /// The permitted ends of the run, without exceptions.
    fn ends(self) -> &'static [End] {
        match self {
            Kind::Harmless => &[Done],
            Kind::Structure | Kind::Value | Kind::Illegal | Kind::LowOrder => &[Misbehaved],
            Kind::Abort => &[GaveUp],
            Kind::Silence => &[Network],
        }
    }
}

/// The tag of a message, the kinds of tampering, the further permitted ends of the run, and the reason.
type Exception = (u16, &'static [Kind], &'static [End], &'static str);

/// The cases in which a run may end differently.
const EXCEPTIONS: &[Exception] = {
    use Kind::{Illegal, LowOrder, Structure, Value};
    const POINT: &str = "a point is as random as any other: whose it is, only the honest know";
    const NOISE: &str = "every string is a ciphertext: what is not read, or masks what is, is not noticed";
    &[
        (0x01, &[Structure, Value], &[Disagreement], "another version is no misbehaviour"),
        (0x02, &[Value, Illegal], &[Disagreement], "other terms are no misbehaviour"),
        (0x03, &[Value], &[Refused], "whether to work for so large a set is for the user to say"),
        (0x04, &[Structure], &[Done], "nothing is read behind the confirmation"),
        (0x0d, &[Value, Illegal, LowOrder], &[Done], "any seed is one, unless it was committed to"),
        (0x0e, &[Value, Illegal, LowOrder], &[Done], "whether the peer has a shard is for it to say"),
        (0x11, &[Value], &[Done], POINT),
        (0x12, &[Value], &[Done], POINT),
        (0x13, &[Value, LowOrder], &[Done], POINT),
        (0x14, &[Value, LowOrder], &[Done], POINT),
        (0x15, &[Value, Illegal, LowOrder], &[Done], "a tag is as random as any other, if all differ"),
        (0x16, &[Value], &[Done], POINT),
        (0x17, &[Value], &[Done], POINT),
        (0x18, &[Value], &[Done], "other bits are possible: nothing binds the sender to the truth"),
        (0x19, &[Value, LowOrder], &[Done], POINT),
        (0x1a, &[Value, LowOrder], &[Done], POINT),
        (0x1b, &[Value, LowOrder], &[Done], POINT),
        (0x21, &[Value, Illegal, LowOrder], &[Done], "a tag is as random as any other"),
        (0x31, &[Value, LowOrder], &[Done], POINT),
        (0x32, &[Value, LowOrder], &[Done], POINT),
        (0x33, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0x34, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0x38, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0x41, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0x51, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0x52, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (
            0x53,
            &[Value, Illegal, LowOrder],
            &[Done],
            "other sums are possible, and the count may be below the minimum",
        ),
        (0x61, &[Value], &[Done], POINT),
        (0x62, &[Value], &[Done], POINT),
        (0x64, &[Value, Illegal, LowOrder], &[Done], "a tail is as random as any other"),
        (0x65, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0x71, &[Value], &[Done], "another number is possible: nothing binds the receiver to the truth"),
        (0x72, &[Value], &[Done], "other matches are possible: nothing binds the receiver to the truth"),
        (0x73, &[Value], &[Done], "another union is possible, if ours is part of it"),
        (0x75, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0x81, &[Value, Illegal, LowOrder], &[Done], "every string is a key"),
        (0x82, &[Value, Illegal, LowOrder], &[Done], "a column is as random as any other"),
        (0x91, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0x92, &[Value, Illegal, LowOrder], &[Done], "a sum is as random as any other"),
        (0x98, &[Value, Illegal, LowOrder], &[Done], "every string is a seed"),
        (0x99, &[Value, Illegal, LowOrder], &[Done], "every vector is a store, of whatever"),
        (0xa2, &[Value, Illegal, LowOrder], &[Done], "any share of a coin toss is as good as another"),
        (0xa5, &[Value, Illegal, LowOrder], &[Done], "every string is a polynomial"),
        (0xa6, &[Value, Illegal, LowOrder], &[Done], "a tag is as random as any other"),
        (0xa7, &[Value, Illegal, LowOrder], &[Done], "a value is as random as any other"),
        (0xad, &[Value, Illegal, LowOrder], &[Done], "a tag is as random as any other"),
        (0xc0, &[Value, Illegal, LowOrder], &[Done], "every string is a query"),
        (0xc1, &[Value, Illegal, LowOrder], &[Done], "every string is a seed"),
        (0xc2, &[Value, Illegal, LowOrder], &[Done], "every vector is a store, of whatever"),
        (0xe8, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0xf0, &[Value, Illegal, LowOrder], &[Done], "every string is a seed"),
        (0xf1, &[Value, Illegal, LowOrder], &[Done], "only cells of our own items are looked at"),
        (0xf2, &[Value, LowOrder], &[Done], POINT),
        (0xf3, &[Value, Illegal, LowOrder], &[Done], NOISE),
        (0xf4, &[Value, LowOrder], &[Done], POINT),
    ]
};

/// Runs our side against a script.
fn against(request: &Request, seed: u8, case: &Case) -> (Result<RunOutcome>, Duration) {
    let (mut ours, theirs) = Channel::pair();
    ours.set_patience(case.patience());
    let canceller = ours.canceller();
    let connection = Connection::unprotected(ours, WireCount::default());
    let run = || run(connection, request, &mut hazmat::seeded(&[seed; 32]));
    ended(vec![(theirs, case.acts.clone())], canceller, run)
}

/// The result of our side against these scripts, and the time it took.
fn ended(
    scripts: Vec<(Channel, Vec<Act>)>,
    canceller: Canceller,
    run: impl FnOnce() -> Result<RunOutcome>,
) -> (Result<RunOutcome>, Duration) {
    let over = Arc::new(AtomicUsize::new(0));
    thread::scope(|s| {
        for (channel, acts) in scripts {
            let (sink, mut source) = channel.into_halves();
            let (leave, left) = mpsc::channel();
            // Our messages are accepted until the peer leaves or we close.
            s.spawn(move || {
                let mut byte = [0u8; 1 << 10];
                let soon = || Some(Instant::now() + Duration::from_millis(20));
                while left.try_recv().is_err() {
                    match source.recv(&mut byte, soon()) {
                        Err(e) if !e.to_string().contains("did nothing for the run") => break,
                        _ => {}
                    }
                }
            });
            let over = over.clone();
            s.spawn(move || play(acts, sink, &leave, &over));
        }
        let (done, finished) = mpsc::channel::<()>();
        s.spawn(move || {
            if finished.recv_timeout(IN_TIME) == Err(mpsc::RecvTimeoutError::Timeout) {
                canceller.cancel();
            }
        });
        let start = Instant::now();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        over.store(1, Ordering::Relaxed);
        drop(done);
        (result.unwrap_or_else(|_| Err(Error::Bug("it panicked".into()))), start.elapsed())
    })
}

/// Plays a script. `over` is 1 once our side has ended.
fn play(acts: Vec<Act>, mut sink: Box<dyn Sink>, leave: &mpsc::Sender<()>, over: &AtomicUsize) {
    for act in acts {
        let went = match act {
            Act::Send(frame) => sink.send(frame.into_owned()),
            Act::Repeat(start, unit, times) => sink.send([start, unit.repeat(times)].concat()),
            Act::Leave => leave.send(()).map_err(|_| Error::Cancelled),
            Act::Live | Act::Stall => {
                while over.load(Ordering::Relaxed) == 0 {
                    if matches!(act, Act::Live) && sink.send(HEARTBEAT.to_vec()).is_err() {
                        break;
                    }
                    thread::sleep(Duration::from_millis(10));
                }
                Ok(())
            }
        };
        if went.is_err() {
            break;
        }
    }
}

/// Records the frames that are sent.
struct Tap(Box<dyn Sink>, Arc<Mutex<Vec<Vec<u8>>>>);

impl Sink for Tap {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        self.1.lock().unwrap().push(frame.clone());
        self.0.send(frame)
    }
}

/// The messages of the receiver and the sender in an honest run, and their results.
fn record([r, s]: &[Request; 2]) -> ([Vec<Vec<u8>>; 2], [Learned; 2]) {
    let (a, b) = Channel::pair();
    let sent = [(); 2].map(|()| Arc::<Mutex<Vec<Vec<u8>>>>::default());
    let party = |channel: Channel, request: &Request, i: usize| {
        let (sink, source) = channel.into_halves();
        let channel = Channel::from_halves(Box::new(Tap(sink, sent[i].clone())), source);
        let connection = Connection::unprotected(channel, WireCount::default());
        run(connection, request, &mut hazmat::seeded(&[i as u8; 32])).unwrap().learned
    };
    let party = &party;
    let learned = thread::scope(|scope| {
        let there = scope.spawn(move || party(b, s, 1));
        [party(a, r, 0), there.join().unwrap()]
    });
    (sent.clone().map(|s| s.lock().unwrap().clone()), learned)
}

impl Case<'_> {
    /// The time that our side waits. If no message is missing, a busy machine must not look like a peer that stalls.
    fn patience(&self) -> Duration {
        if self.kind == Kind::Silence { PATIENCE } else { 2 * IN_TIME }
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Checks the end of a case; the error says why it is not permitted.
fn verdict(
    case: &Case,
    tag: u16,
    result: &Result<RunOutcome>,
    learned: &Learned,
    exceptions: &[Exception],
) -> Result<(), String> {
    let end = End::of(result);
    let excused = exceptions
        .iter()
        .any(|(t, kinds, ends, _)| *t == tag && kinds.contains(&case.kind) && ends.contains(&end));
    if end == Never || !(excused || case.kind.ends().contains(&end)) {
        return Err(format!("{:?} ended in {:?}", case.kind, result.as_ref().map(|o| &o.learned)));
    }
    match result {
        Ok(outcome) if case.kind == Kind::Harmless && outcome.learned != *learned => {
            Err("another result".into())
        }
        Err(e) if !e.to_string().chars().all(|c| c == '\n' || !c.is_control()) => Err(format!("{e:?}")),
        _ => Ok(()),
    }
}

fn in_time(time: Duration) -> Result<(), String> {
    if time < IN_TIME { Ok(()) } else { Err(format!("took {time:?}")) }
}

/// The indices of the cases to run: one for each message, and one for each kind of tampering with it.
fn drawn<M: Ord, K: Ord>(
    parties: &str,
    cases: usize,
    message: impl Fn(&usize) -> M,
    kind: impl Fn(&usize) -> K,
) -> BTreeSet<usize> {
    let mut draw = Draw::new(&format!("hostile, {parties}"));
    let of_messages = draw.of_each(1, 0..cases, message);
    of_messages.into_iter().chain(draw.of_each(1, 0..cases, kind)).collect()
}

/// Runs the cases, as many at a time as there are workers, and returns the reasons for failures.
fn each<T: Sync>(cases: &[T], case: impl Fn(&T) -> Result<(), String> + Sync) -> Vec<String> {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|s| {
        for _ in 0..WORKERS {
            s.spawn(|| {
                while let Some(one) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = case(one) {
                        failures.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    failures.into_inner().unwrap()
}

/// Asserts that none of the cases has failed.
fn none(failures: &[String], cases: usize) {
    let shown = &failures[..failures.len().min(20)];
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), shown.join("\n"));
}

/// A receiver announces 100 million items, for which the VOLE would take 4 GB, does its part for the first two million and
/// leaves. Our side has held only the memory for these, or the cap above would have ended it.
#[test]
fn a_peer_that_announces_much_and_sends_little_does_not_cost_its_announcement() {
    let (mut ours, mut theirs) = Channel::pair();
    let session = hazmat::session_id([1; 32]);
    let result = thread::scope(|s| {
        s.spawn(move || {
            let rng = &mut hazmat::seeded(&[1; 32]);
            let mut cx = Context::new(&mut theirs, &session, rng);
            let mut vole = Silent { k: 2 }.receiver(&mut cx, "RR22").unwrap();
            let seed = |cx: &mut Context, _| cx.ch.tx.send(Message::new(0x98, "seed"), &[[7u8; 16]]);
            vole.next::<Half>(&mut cx, 1 << 21, seed).map(drop).unwrap();
        });
        let rng = &mut hazmat::seeded(&[2; 32]);
        let mut cx = Context::new(&mut ours, &session, rng);
        Rr22::new(Silent { k: 2 }).sender(&mut cx, &[ItemHash::of_item(b"x")], 100_000_000).map(drop)
    });
    assert!(matches!(result, Err(Error::Network(_))), "{result:?}");
}

/// The peer announces the largest set, for which digests would take 4 GB, and sends none of it.
#[test]
fn a_peer_that_announces_a_set_and_leaves_does_not_cost_its_announcement() {
    let session = hazmat::session_id([1; 32]);
    // A server without items waits for no message but the queries.
    let sets = [["x"].iter().collect(), ItemSet::default()];
    let protocols: [&dyn Mqrpmt; 2] = [&CwPrf(Curve25519, GolombTags), &FromPermutedOprf(Ristretto255)];
    for (set, protocol) in sets.iter().flat_map(|set| protocols.map(|protocol| (set, protocol))) {
        for server in [true, false] {
            let (mut ours, rng) = (Channel::pair().0, &mut hazmat::seeded(&[2; 32]));
            let (set, mut cx) = (HashedSet::new(set), Context::new(&mut ours, &session, rng));
            let result = match server {
                true => protocol.server(&mut cx, &set, 1 << 28).map(drop),
                false => protocol.client(&mut cx, &set, 1 << 28).map(drop),
            };
            assert!(matches!(result, Err(Error::Network(_))), "{result:?}");
        }
    }
    // The first message, queries and responses of another protocol.
    let sigma = PermuteThenTest(SigmaDh(Curve25519));
    for server in [true, false] {
        let (mut ours, rng) = (Channel::pair().0, &mut hazmat::seeded(&[2; 32]));
        let (set, mut cx) = (HashedSet::new(&sets[0]), Context::new(&mut ours, &session, rng));
        let result = match server {
            true => MqrpmtStar::server(&sigma, &mut cx, &set, 1 << 28).map(drop),
            false => MqrpmtStar::client(&sigma, &mut cx, &set, 1 << 28).map(drop),
        };
        assert!(matches!(result, Err(Error::Network(_))), "{result:?}");
    }
}

/// The peer announces the columns of the multi-point OPRF, which would take 20 GB, and leaves.
#[test]
fn a_peer_that_announces_columns_and_leaves_does_not_cost_its_announcement() {
    let (mut ours, mut theirs) = Channel::pair();
    let session = hazmat::session_id([1; 32]);
    let result = thread::scope(|s| {
        s.spawn(move || {
            let width = Matrix::new(LAMBDA, 1, 1 << 28, false).width;
            let purpose = "multi-point OPRF, columns of A and B";
            let rng = &mut hazmat::seeded(&[1; 32]);
            let mut cx = Context::new(&mut theirs, &session, rng);
            base::sender(&mut cx, purpose, width).unwrap();
            cx.ch.tx.send(Message::new(0x81, "key"), &[[7u8; 16]]).unwrap();
        });
        let (item, rng) = ([ItemHash::of_item(b"x")], &mut hazmat::seeded(&[2; 32]));
        let mut cx = Context::new(&mut ours, &session, rng);
        MultiPoint::default().sender(&mut cx, &item, 1 << 28).map(drop)
    });
    assert!(matches!(result, Err(Error::Network(_))), "{result:?}");
}

/// The peer announces tests in bins, for which the points to program would take 40 GB. A sender with the largest set tosses
/// coins, claims that its items fit, and leaves. So does a receiver that announces as much.
#[test]
fn a_peer_that_announces_bins_and_leaves_does_not_cost_its_announcement() {
    let (session, item) = (hazmat::session_id([1; 32]), [ItemHash::of_item(b"x")]);
    for receives in [true, false] {
        let (mut ours, mut theirs) = Channel::pair();
        theirs.tx.send(Message::new(0xa2, "share"), &[[7u8; 32]]).unwrap();
        theirs.tx.send(Message::new(0xa4, "fit"), &[[1u8]]).unwrap();
        drop(theirs);
        let rng = &mut hazmat::seeded(&[2; 32]);
        let mut cx = Context::new(&mut ours, &session, rng);
        let result = match receives {
            true => Osn::new(Plan::new(LAMBDA, 1, 1 << 28, 20)).receiver(&mut cx, &item).map(drop),
            false => Osn::new(Plan::new(LAMBDA, 1 << 28, 1, 20)).sender(&mut cx, &item, 1).map(drop),
        };
        match (receives, result) {
            (true, Err(Error::Network(_))) => (),
            // The sender receives this instead of sizes.
            (false, Err(Error::Peer { fault: Fault::Misbehaved, .. })) => (),
            (_, other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn whatever_the_peer_does_to_a_frame_we_end_as_the_table_says() {
    let _alone = ONE_AT_A_TIME.lock();
    let data = Data::new();
    let scenarios = scenarios(&data);
    let recorded: Vec<_> = scenarios.iter().map(|s| record(&s.requests)).collect();
    let mut cases = Vec::new();
    let (mut tags, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for (scenario, (sent, learned)) in scenarios.iter().zip(&recorded) {
        for cheat in [0, 1] {
            for (at, now) in sent[cheat].iter().enumerate() {
                tags.insert(tag(now));
                if !scenario.only.is_empty() && !scenario.only.contains(&tag(now)) {
                    continue;
                }
                // Frames that a scenario has in common with another one of the same operation are tampered with once.
                let Spec { operation, ref candidates, .. } = scenario.requests[0].spec;
                let Choice { protocol, group } = candidates.first;
                let group = Some(group).filter(|group| *group != protocol.group());
                if !seen.insert((operation.name, group, cheat, at, tag(now), now.len())) {
                    continue;
                }
                for case in tamper(&sent[cheat], at, group, &Aborts::of_two()) {
                    cases.push((scenario, 1 - cheat, &learned[1 - cheat], tag(now), at, case));
                }
            }
        }
    }
    let made = cases.len();
    let protocol = |c: &usize| cases[*c].0.requests[0].spec.candidates.first.protocol.name;
    let message = |c: &usize| (protocol(c), cases[*c].1, cases[*c].3);
    let kind = |c: &usize| (cases[*c].3, cases[*c].5.kind);
    let drawn = drawn("two parties", made, message, kind);
    let mut cases: Vec<_> =
        cases.into_iter().enumerate().filter(|(i, _)| drawn.contains(i)).map(|(_, c)| c).collect();
    // Cases that wait go first, and wait in parallel with the others.
    cases.sort_by_key(|c| c.5.kind != Kind::Silence);
    let failures = each(&cases, |(scenario, us, learned, tag, at, case)| {
        let request = &scenario.requests[*us];
        let (result, time) = against(request, *us as u8, case);
        let verdict = in_time(time).and_then(|()| verdict(case, *tag, &result, learned, EXCEPTIONS));
        let (name, role) = (&scenario.name, request.spec.role);
        verdict.map_err(|why| format!("{name}, our {role}, frame {at} (tag {tag:#x}) {case}: {why}"))
    });
    println!("{} of {made} cases, {} frames", cases.len(), seen.len());
    none(&failures, cases.len());
    assert!(made > 4000, "{made}");
    // A message that no longer exists must not remain in the table.
    for (tag, _, _, why) in EXCEPTIONS {
        assert!(tags.contains(tag), "{tag:#x}: {why}");
    }
}
