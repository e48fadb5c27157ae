//! A run computes on the threads that it was given, and on no others.
//!
//! The program's own pool is a trap here: its threads never run. Parallel computation outside `Threads::run` waits for them,
//! and the watchdog names the case.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;
use veilset::artefact::{self, Ledger};
use veilset::channel::{Channel, WireCount};
use veilset::context::Context;
use veilset::equality::{Equality, nibbles::Nibbles};
use veilset::error::{Result, Seat};
use veilset::governance::gate::{Gate, Setup};
use veilset::governance::policy::{Policy, Rules};
use veilset::group::curve25519::Curve25519;
use veilset::group::{Key as _, ristretto255};
use veilset::hashed::HashedSet;
use veilset::item::{ItemSet, Items};
use veilset::membership::Mqrpmt;
use veilset::membership::conditional::{ConditionalOprf, FromMot};
use veilset::membership::cwprf::{BloomFilter, CwPrf};
use veilset::membership::mot::FromOt;
use veilset::net::{Connection, Fingerprint, Identity, Listed, ListedParty, Roster, in_memory};
use veilset::operations::share::{Beside, Shares};
use veilset::operations::{INTERSECT, Learned, Operation, Role, Rows, SUM, Terms, UNION};
use veilset::oprf::{Input, Oprf, two_hash_dh::TwoHashDh};
use veilset::ot::extension::{DEFAULT_K, Receiver, Sender};
use veilset::ot::{Security, transfer};
use veilset::params::LAMBDA;
use veilset::protocols::{self, Choice, Protocol};
use veilset::rng::Prng;
use veilset::secret::Secrets;
use veilset::session::run::{Prepared, Request, run_if};
use veilset::speed;
use veilset::table::Destination;
use veilset::threads::Threads;
use veilset_core::hazmat;
use veilset_testing::Draw;

/// Number of items of a side: more than a frame of points, tags, rows or OTs, and more than are sorted on one thread.
const MANY: usize = 9000;
/// Number of items for slow protocols: several frames of bins, or of the cells of a filter.
const FEWER: usize = 3000;
/// Number of items of each of several parties that forward ciphertexts, which fill several frames.
const OF_SEVERAL: usize = 2000;
/// The maximum time of a case: generous because the machine may be busy, but less than the minute or more after which a mutant
/// counts as hanging.
const IN_TIME: Duration = Duration::from_secs(40);
/// Number of dummies of a side that pads, given its number of items.
fn padding(n: usize) -> usize {
    n.min(1000)
}
/// Number of threads in the pool that never runs.
const TRAP: usize = 3;

/// Builds the program's pool of threads that never run.
fn set_the_trap() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (began, begins) = mpsc::channel();
        // Waits for the threads to start, which never happens.
        thread::spawn(move || {
            rayon::ThreadPoolBuilder::new()
                .num_threads(TRAP)
                .spawn_handler(|thread| {
                    let _ = began.send(());
                    std::mem::forget(thread);
                    Ok(())
                })
                .build_global()
        });
        begins.recv().unwrap();
    });
    // Waits until the trap is the program's pool.
    assert_eq!(rayon::current_num_threads(), TRAP);
}

/// Runs a case that ends soon, unless it waits for the program's pool.
fn in_time<T: Send + 'static>(what: &str, case: impl FnOnce() -> T + Send + 'static) -> T {
    set_the_trap();
    let (done, ends) = mpsc::channel();
    thread::spawn(move || done.send(case()));
    ends.recv_timeout(IN_TIME)
        .unwrap_or_else(|e| panic!("{what}: {e:?}: something is computed on threads that were not given"))
}

#[test]
fn what_is_computed_on_the_programs_threads_waits_for_ever() {
    set_the_trap();
    let (done, ends) = mpsc::channel();
    thread::spawn(move || done.send(rayon::join(|| 1, || 2)));
    assert!(ends.recv_timeout(Duration::from_millis(300)).is_err());
    let threads = Threads::new(1).unwrap();
    assert_eq!(in_time("given threads", move || threads.run(|| rayon::join(|| 1, || 2))), (1, 2));
}

#[test]
fn there_are_as_many_as_asked_for() {
    set_the_trap();
    assert_eq!([1, 3].map(|n| Threads::new(n).unwrap().count()), [1, 3]);
    assert!(Threads::new(0).unwrap().count() >= 1 && Threads::global().count() == TRAP);
}

/// Checking that all items are different takes threads too.
fn set(range: std::ops::Range<usize>, threads: &Threads) -> ItemSet {
    threads.run(|| range.map(|i| format!("item {i}").into_bytes()).collect())
}

/// The requests of the two parties of a run. Half of the items of each are in both sets.
#[derive(Debug, Clone, Copy)]
struct Case {
    operation: &'static Operation,
    choice: Choice,
    n: usize,
    terms: Terms,
    pads: bool,
}

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

impl Case {
    /// The request of a party, on threads of its own: one for the receiver, two for the sender.
    fn request(self, role: Role) -> Request<'static> {
        let Case { operation, choice: Choice { protocol, group }, n, terms, pads } = self;
        let sends = role == Role::Sender;
        let from = if sends { n / 2 } else { 0 };
        let threads = leaked(Threads::new(1 + role as usize).unwrap());
        let columns = if terms.payload { vec!["note".to_string()] } else { vec![] };
        let payloads: Items = (0..if sends && terms.payload { n } else { 0 }).map(|_| "note").collect();
        Request::new(operation, role, leaked(set(from..from + n, threads))).with(|r| {
            r.spec.candidates = Choice { protocol, group }.into();
            r.spec.terms = terms;
            r.spec.sent_columns = leaked(columns).to_vec();
            r.input.payloads = leaked(payloads);
            r.input.values = leaked(vec![1; if sends && operation.uses.values { n } else { 0 }]);
            r.input.pad_to = pads.then_some(n + padding(n));
            r.local.threads = threads.clone();
        })
    }
}

/// Runs one party, from its items to its result.
fn party(
    request: Request<'static>,
    channel: Channel,
    prepare: impl Fn(&Request<'static>, &mut Prng) -> Result<Prepared<'static>>,
) -> Learned {
    let rng = &mut hazmat::seeded(&[request.spec.role as u8; 32]);
    let prepared = prepare(&request, rng).unwrap();
    run_if(Connection::unprotected(channel, WireCount::default()), prepared, &mut (), rng).unwrap().learned
}

/// Runs both parties, and returns the number of matches that the receiver learned, or of new items.
fn run(
    case: Case,
    prepare: impl Fn(&Request<'static>, &mut Prng) -> Result<Prepared<'static>> + Sync,
) -> usize {
    let (here, there) = Channel::pair();
    let learned = thread::scope(|s| {
        s.spawn(|| party(case.request(Role::Sender), there, &prepare));
        party(case.request(Role::Receiver), here, &prepare)
    });
    match learned {
        Learned::Matching(matching) => matching.positions.len(),
        Learned::New(new) => new.items.len(),
        Learned::Matches(matches) => matches as usize,
        Learned::Shares(Shares { beside: Beside::Matches(matches), .. }) => matches as usize,
        Learned::Identifiers(ids) => {
            2 * (case.n + if case.pads { padding(case.n) } else { 0 }) - ids.all.len()
        }
        other => panic!("{other:?}"),
    }
}

/// Each protocol, in each operation that it offers, over each group, with every supported option and without. The first tier
/// draws one case for each protocol.
#[test]
fn whole_runs_keep_to_their_threads() {
    let mut cases = Vec::new();
    for protocol in protocols::ALL {
        for offer in protocol.offers {
            let operation = offer.operation;
            let n = |choice: Choice| {
                let takes_long = ["krtw19", "dc17"].iter().any(|name| protocol.name.starts_with(name));
                let slow = takes_long || choice.group != protocol.group();
                // Protocols for small sets only have frames of few queries.
                let most = offer.largest.iter().min().unwrap() / 4;
                most.min(if slow { FEWER } else { MANY })
            };
            let rows = operation.uses.rows != Rows::None;
            let reveal_count = offer.reveals_count;
            let terms = Terms { max_row: 24, reveal_count, ..Terms::default() };
            let least = Terms { malicious_sender: offer.malicious_sender, ..terms };
            let most = Terms { payload: rows, both: operation.uses.both && !reveal_count, ..terms };
            for (terms, pads) in [(least, false), (most, true)] {
                let case = |choice| Case { operation, choice, n: n(choice), terms, pads };
                cases.extend(protocol.choices().map(case));
            }
        }
    }
    let mut draw = Draw::new("threads");
    for case in draw.of_each(1, cases, |case| case.choice.protocol.name) {
        // The `payload` term of a request follows from its columns.
        let found = in_time(&format!("{case:?}"), move || run(case, |request, rng| request.prepare(rng)));
        assert_eq!(found, case.n / 2, "{case:?}");
    }
}

/// A fingerprint that belongs to no key, with the right check letters.
fn fingerprint(party: usize) -> Fingerprint {
    format!("{:0>40}", "zx".to_owned() + &"0".repeat(party + 1)).parse().unwrap()
}

/// Runs several parties, each on the given number of threads. Half of the items of each are in all sets.
fn of_several(protocol: &'static Protocol, n: usize, threads: [usize; 3]) -> Vec<Learned> {
    let names = ["a", "b", "c"];
    let party = |(i, name): (usize, &&str)| ListedParty {
        name: name.to_string(),
        fingerprint: fingerprint(i),
        address: Some(format!("{name}.example.org:7000")),
    };
    let listed = Listed { leader: "a".into(), party: names.iter().enumerate().map(party).collect() };
    let roster = Roster::new(listed, "parties.toml").unwrap();
    let all = in_memory(&roster);
    let party = |me: usize, connections: Vec<Connection>| {
        let own = leaked(Threads::new(threads[me]).unwrap());
        let from = me * n / 4;
        let request = Request::new(
            protocol.offers[0].operation,
            if me == 0 { Role::Receiver } else { Role::Sender },
            leaked(set(from..from + n, own)),
        )
        .with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.spec.parties = Some(leaked(roster.clone().me(names[me]).unwrap()).clone());
            r.spec.terms = Terms { max_row: 24, ..Terms::default() };
            r.local.threads = own.clone();
        });
        let rng = &mut hazmat::seeded(&[me as u8; 32]);
        let prepared = request.prepare(rng).unwrap();
        run_if(connections, prepared, &mut (), rng).unwrap().learned
    };
    thread::scope(|s| {
        let party = &party;
        let runs: Vec<_> =
            all.into_iter().enumerate().map(|(me, links)| s.spawn(move || party(me, links))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

/// Results depend on the seeds alone, including their order.
#[test]
fn runs_of_several_keep_to_their_threads_and_give_the_same_on_any_number() {
    for protocol in Draw::new("threads of several").some(1, protocols::MULTIPARTY) {
        let n = if protocol.computes(&INTERSECT) { MANY } else { OF_SEVERAL };
        let [one, more] = [[1, 1, 1], [1, 2, 3]].map(|threads| {
            in_time(&format!("{protocol} on {threads:?}"), move || of_several(protocol, n, threads))
        });
        let found = match &one[0] {
            Learned::Matching(matching) => matching.positions.len(),
            Learned::New(new) => new.items.len(),
            Learned::Matches(matches) => *matches as usize,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, n / 2, "{protocol}");
        assert!(one == more, "{protocol}");
    }
}

#[test]
fn halves_logs_and_estimates_keep_to_their_threads() {
    let folder = leaked(tempfile::tempdir().unwrap());
    let identity = leaked(Identity::generate().unwrap());
    for (operation, protocol, pads) in
        [(&INTERSECT, &protocols::DH_PSI, false), (&UNION, &protocols::CWPRF, true)]
    {
        let choice = Choice::of(protocol);
        let case = Case { operation, choice, n: MANY, terms: Terms::default(), pads };
        let case = Case { terms: Terms { max_row: 24, ..case.terms }, ..case };
        let half = move |request: &Request<'static>, rng: &mut Prng| {
            let path = folder.path().join(format!("{operation} {}", request.spec.role));
            let ledger = Ledger::at(folder.path().join(format!("{operation} {} ledger", request.spec.role)));
            let mut file = Destination::create("prepared half", Some(&path), false)?;
            artefact::prepare(&request.basis()?, &ledger, identity, &mut file, &|_| Ok(()), rng)?;
            file.commit()?;
            request.prepare_with(&path, &ledger, identity)
        };
        let found = in_time(&format!("half for {operation}"), move || run(case, half));
        assert_eq!(found, MANY / 2);
    }
    in_time("log", move || {
        let log = folder.path().join("audit.jsonl");
        let policy = Policy::new(Rules::default(), "no rules", &[(Seat::PEER, None)], &|_| None).unwrap();
        let warn = |_: &str| ();
        let setup = Setup { audit_log: Some(&log), identity: Some(identity), ..Setup::new(&policy, &warn) };
        let terms = Terms::default();
        let choice = Choice::of(&protocols::CWPRF);
        let case = Case { operation: &SUM, choice, n: MANY, terms, pads: false };
        let request = case.request(Role::Sender);
        Gate::new(&request, setup).unwrap();
    });
}

/// Ignored in the first tier, where `veilset calibrate` and a unit test also measure.
#[test]
#[ignore = "nightly: it measures for ten seconds"]
fn measurements_keep_to_their_threads() {
    in_time("measurement", || {
        assert_eq!(speed::measure(2, &mut |_| ()).unwrap().threads, 2);
    });
}

/// Runs both roles of a building block that no protocol of the program uses.
fn pair<A: Send + 'static, B: Send + 'static>(
    what: &str,
    first: impl FnOnce(&mut Context) -> Result<A> + Send + 'static,
    second: impl FnOnce(&mut Context) -> Result<B> + Send + 'static,
) -> (A, B) {
    in_time(what, move || {
        let (mut a, mut b) = Channel::pair();
        let session = hazmat::session_id([1; 32]);
        let threads = [1, 2].map(|n| Threads::new(n).unwrap());
        thread::scope(|s| {
            let [here, there] = &threads;
            let first = s.spawn(move || {
                let rng = &mut hazmat::seeded(&[1; 32]);
                first(&mut Context { ch: &mut a, session, rng, exponent: LAMBDA, threads: here }).unwrap()
            });
            let rng = &mut hazmat::seeded(&[2; 32]);
            let second =
                second(&mut Context { ch: &mut b, session, rng, exponent: LAMBDA, threads: there }).unwrap();
            (first.join().unwrap(), second)
        })
    })
}

#[test]
fn other_building_blocks_keep_to_their_threads() {
    let inputs =
        |from: usize| (from..from + MANY).map(|i| Input::of_item(&i.to_le_bytes())).collect::<Vec<_>>();
    let (f_y, f_x) = pair(
        "OPRF from Diffie-Hellman",
        move |cx| TwoHashDh.receiver(cx, &inputs(0), MANY),
        move |cx| TwoHashDh.sender(cx, &inputs(1), MANY),
    );
    assert!(f_y[1..] == f_x[..MANY - 1]);

    let one = Threads::new(1).unwrap();
    let hashed = move |from| {
        let set = leaked(set(from..from + MANY, &one));
        one.run(|| HashedSet::new(set))
    };
    let (y, x) = (hashed(0), hashed(1));
    let (bits, _) = pair(
        "mqRPMT with a Bloom filter",
        move |cx| CwPrf(Curve25519, BloomFilter).server(cx, &y, MANY),
        move |cx| CwPrf(Curve25519, BloomFilter).client(cx, &x, MANY),
    );
    assert_eq!(bits.iter().filter(|&&bit| bit).count(), MANY - 1);

    const PURPOSE: &str = "a test of threads";
    let (rows, ()) = pair(
        "transfer of pairs",
        |cx| {
            let mut ot = Receiver::setup(cx, PURPOSE, DEFAULT_K, Security::Malicious)?;
            let mut sum = 0;
            let choices: Vec<bool> = (0..MANY).map(|i| i % 2 == 1).collect();
            transfer::receive_chosen(cx.ch, &mut ot, &choices, 4, |row| sum += usize::from(row[0]))?;
            Ok(sum)
        },
        |cx| {
            let mut ot = Sender::setup(cx, PURPOSE, DEFAULT_K, Security::Malicious)?;
            transfer::send_pairs(cx.ch, &mut ot, MANY, 4, |_, choice, row| row[0] = u8::from(choice))
        },
    );
    assert_eq!(rows, MANY / 2);

    let strings = |step: u128| (0..MANY as u128).map(|i| i * step).collect::<Vec<_>>();
    let (r, s) = pair(
        "equality",
        move |cx| Nibbles::default().receiver(cx, &strings(1), 16),
        move |cx| Nibbles::default().sender(cx, &strings(2), 16),
    );
    assert_eq!(r.iter().zip(s.iter()).filter(|(r, s)| r != s).count(), 1);

    let (values, ()) = pair(
        "conditional OPRF",
        move |cx| FromMot(FromOt::default()).receiver(cx, &inputs(0), Secrets::zeros(MANY)),
        |cx| {
            let key = ristretto255::Key::random(cx.rng);
            FromMot(FromOt::default()).sender(cx, &key, Secrets::zeros(MANY))
        },
    );
    assert_eq!(values.len(), MANY);
}
