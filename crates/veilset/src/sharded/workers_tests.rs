use super::*;
use crate::channel::WireCount;
use crate::hash::ItemHash;
use crate::item::{ItemSet, Items};
use crate::net::Connection;
use crate::operations::{INTERSECT, Operation, Role, Terms, UNION};
use crate::protocols::{CWPRF, DH_PSI, Protocol, VOLE};
use crate::session::run::{RunOutcome, run, run_if};
use crate::session::stages::{AGREEING, OPENING, SETUP};
use crate::sharded::disk::Part;
use crate::sharded::engine::Workers;
use crate::sharded::set::Set;
use crate::testing::overlapping;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use veilset_testing::{Draw, free_address};

const SHARDS: u32 = 6;
const QUICK: Timeouts = Timeouts { connect: Duration::from_secs(5), idle: Duration::from_secs(5) };
/// For what is to be over.
const SHORT: Timeouts = Timeouts { connect: Duration::from_millis(1500), ..QUICK };

/// How the workers of one side reach those of the other, by lane.
fn places(lanes: usize) -> [Vec<Endpoint>; 2] {
    let addresses: Vec<String> = (0..lanes).map(|_| free_address()).collect();
    [
        addresses.iter().cloned().map(Endpoint::listen).collect(),
        addresses.into_iter().map(Endpoint::connect).collect(),
    ]
}

/// What a worker does in place of its work.
type Mischief = dyn Fn(usize, &mut Ticket) -> Option<String> + Send + Sync;

/// The workers of a side: threads.
struct Crew {
    of: (&'static Operation, &'static Protocol),
    role: Role,
    set: ItemSet,
    columns: Vec<String>,
    payloads: Items,
    pad_to: Option<usize>,
    places: Vec<Endpoint>,
    /// The lanes that have a place.
    lanes: Vec<u16>,
    rounds: AtomicUsize,
    mischief: Box<Mischief>,
    /// Whether a worker has all items in each shard.
    crowded: bool,
    timeouts: Timeouts,
    /// What was learned in each shard.
    learned: Arc<Mutex<Vec<(u32, Learned)>>>,
    /// The tickets that were given.
    given: Arc<Mutex<Vec<Secret<Vec<u8>>>>>,
    /// The key of the shards.
    key: Arc<Mutex<[u8; 32]>>,
}

impl Crew {
    fn new(
        of: (&'static Operation, &'static Protocol),
        role: Role,
        set: ItemSet,
        places: Vec<Endpoint>,
    ) -> Crew {
        Crew {
            of,
            role,
            set,
            columns: Vec::new(),
            payloads: Items::new(),
            pad_to: None,
            lanes: (0..places.len() as u16).collect(),
            places,
            rounds: AtomicUsize::new(0),
            mischief: Box::new(|_, _| None),
            crowded: false,
            timeouts: QUICK,
            learned: Arc::default(),
            given: Arc::default(),
            key: Arc::default(),
        }
    }

    fn request<'a>(&'a self, set: impl Into<Set<'a>>) -> Request<'a> {
        let (operation, protocol) = self.of;
        let terms = Terms { max_row: 3010, shards: SHARDS, ..Terms::default() };
        Request::new(operation, self.role, set.into()).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.spec.terms = terms;
            r.input.pad_to = self.pad_to;
            r.spec.sent_columns = self.columns.to_vec();
        })
    }

    /// The items of a shard, in the order of the set, and their payloads.
    fn shard(&self, shard: u32) -> (ItemSet, Items) {
        let mut of = vec![0; self.set.len()];
        let hashes: Vec<ItemHash> = self.set.iter().map(ItemHash::of_item).collect();
        Key::of(*locked(&self.key)).shards(&hashes, SHARDS, &mut of);
        let here = || (0..self.set.len()).filter(|&i| of[i] == shard || self.crowded);
        let payloads = here().filter(|_| !self.payloads.is_empty()).map(|i| self.payloads.get(i)).collect();
        (here().map(|i| self.set.get(i)).collect(), payloads)
    }

    fn work(&self, ticket: &Ticket, keep: &crate::sharded::engine::Kept<'_>) -> Result<()> {
        struct From<'a>(&'a Crew);
        impl Source for From<'_> {
            fn part(&self, part: u32) -> Result<Part> {
                let (set, payloads) = self.0.shard(part);
                let form = self.0.request(&set).spec.form();
                Ok(Part::of(&set, &payloads, form))
            }
        }
        let nothing = ItemSet::default();
        Lane {
            request: self.request(&nothing),
            source: &From(self),
            keep,
            endpoint: &self.places[usize::from(ticket.lane())],
            timeouts: self.timeouts,
            cancelled: &|| false,
            notice: &|_| (),
        }
        .run(ticket)
    }
}

impl Workers for Arc<Crew> {
    fn cut(&self, key: &[u8; 32]) -> Result<()> {
        *locked(&self.key) = *key;
        Ok(())
    }

    fn lanes(&self) -> Lanes {
        Lanes {
            at_once: self.places.len(),
            places: (self.role == Role::Receiver).then(|| self.lanes.clone()),
        }
    }

    fn run(
        &self,
        tickets: &[Secret<Vec<u8>>],
        keep: &crate::sharded::engine::Kept<'_>,
    ) -> Result<Vec<Option<String>>> {
        let round = self.rounds.fetch_add(1, Ordering::SeqCst);
        locked(&self.given).extend(tickets.iter().map(|ticket| Secret::new(ticket.to_vec())));
        Ok(thread::scope(|scope| {
            let lanes: Vec<_> = tickets
                .iter()
                .map(|ticket| {
                    scope.spawn(move || {
                        let mut ticket = Ticket::of_bytes(ticket).unwrap();
                        match (self.mischief)(round, &mut ticket) {
                            Some(failed) => Some(failed),
                            None => self.work(&ticket, keep).err().map(|e| e.to_string()),
                        }
                    })
                })
                .collect();
            lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
        }))
    }

    fn result(&self, shard: u32, bytes: &[u8]) -> Result<()> {
        locked(&self.learned).push((shard, learned::of_bytes(bytes)?.unwrap()));
        Ok(())
    }
}

/// Those who agreed, over TLS.
fn coordinate(crews: [&Arc<Crew>; 2]) -> [Result<RunOutcome>; 2] {
    let identities = [(); 2].map(|()| Arc::new(Identity::generate().unwrap()));
    let [listens, connects] = places(1).map(|mut places| places.remove(0));
    let side = |crew: &Arc<Crew>, endpoint: Endpoint, own: usize| {
        let security =
            Protection::Tls { identity: identities[own].clone(), peer: identities[1 - own].fingerprint() };
        let connection = establish(&endpoint, &security, QUICK, &|| false, &|_| ()).unwrap();
        let spread = RemoteSet { items: crew.set.len(), sums: Vec::new(), workers: Box::new(crew.clone()) };
        let rng = &mut Prng::from_os().unwrap();
        let request = crew.request(Set::Workers(&spread));
        request.prepare(rng).and_then(|prepared| run_if(connection, prepared, &mut (), rng))
    };
    thread::scope(|scope| {
        let there = scope.spawn(|| side(crews[1], connects, 1));
        [side(crews[0], listens, 0), there.join().unwrap()]
    })
}

fn payload_of(item: &[u8]) -> Vec<u8> {
    blake3::hash(item).as_bytes()[..9].to_vec()
}

/// The items that the receiver learned, from all shards, and their payloads.
fn learned_items(crew: &Crew) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for (shard, learned) in locked(&crew.learned).iter() {
        assert!(seen.insert(*shard));
        let (items, payloads): (Vec<Vec<u8>>, _) = match learned {
            Learned::Matching(matching) => {
                let (set, _) = crew.shard(*shard);
                let items = matching.positions.iter().map(|&i| set.get(i as usize).to_vec());
                (items.collect(), &matching.payloads)
            }
            Learned::New(new) => (new.items.iter().map(<[u8]>::to_vec).collect(), &new.payloads),
            other => panic!("{other:?}"),
        };
        for (i, item) in items.into_iter().enumerate() {
            let payload = if payloads.is_empty() { Vec::new() } else { payloads.get(i).to_vec() };
            all.push((item, payload));
        }
    }
    assert_eq!(seen.len(), SHARDS as usize);
    all.sort();
    all
}

fn expected(receiver: &Crew, sender: &Crew) -> Vec<(Vec<u8>, Vec<u8>)> {
    let ours: BTreeSet<&[u8]> = receiver.set.iter().collect();
    let wanted = receiver.of.0 == &INTERSECT;
    let of = |item: &[u8]| if sender.payloads.is_empty() { Vec::new() } else { payload_of(item) };
    let mut all: Vec<_> = sender.set.iter().filter(|item| ours.contains(item) == wanted).collect();
    all.sort_unstable();
    all.into_iter().map(|item| (item.to_vec(), of(item))).collect()
}

#[test]
fn workers_give_what_the_plain_computation_gives() {
    let cases = [
        ((&INTERSECT, &VOLE), false),
        ((&INTERSECT, &VOLE), true),
        ((&INTERSECT, &DH_PSI), false),
        ((&UNION, &CWPRF), true),
    ];
    for (of, payload) in cases {
        for ((n_y, n_x, overlap), lanes) in [((90, 70, 0.5), [2, 3]), ((0, 5, 0.0), [1, 1])] {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let payloads: Items = x.iter().filter(|_| payload).map(payload_of).collect();
            let [listen, connect] = places(lanes[0].max(lanes[1]));
            let mut receiver = Crew::new(of, Role::Receiver, y, listen[..lanes[0]].to_vec());
            let mut sender = Crew::new(of, Role::Sender, x, connect[..lanes[1]].to_vec());
            sender.payloads = payloads;
            for crew in [&mut receiver, &mut sender] {
                crew.columns = if payload { vec!["note".into()] } else { vec![] };
                crew.pad_to = Some(100);
            }
            let [receiver, sender] = [receiver, sender].map(Arc::new);
            let [r, s] = coordinate([&receiver, &sender]).map(Result::unwrap);
            assert_eq!(r.session_id, s.session_id);
            for outcome in [&r, &s] {
                let stages: Vec<_> = outcome.stages.iter().map(|stage| stage.name).collect();
                assert_eq!(stages, [AGREEING, SETUP, WORKERS, CONFIRMING, OPENING]);
            }
            assert_eq!(learned_items(&receiver), expected(&receiver, &sender), "{} {} {n_y}", of.0, of.1);
            assert!(locked(&sender.learned).iter().all(|(_, learned)| matches!(learned, Learned::Nothing)));
            let rounds = [&receiver, &sender].map(|crew| crew.rounds.load(Ordering::SeqCst));
            assert_eq!(rounds, [1, 1]);
            assert_eq!(locked(&receiver.given).len(), lanes[0].min(lanes[1]));
        }
    }
}

fn crews(lanes: usize) -> [Crew; 2] {
    let (y, x) = overlapping(60, 50, 0.5);
    let [listen, connect] = places(lanes);
    let of = (&INTERSECT, &VOLE);
    [Crew::new(of, Role::Receiver, y, listen), Crew::new(of, Role::Sender, x, connect)]
}

#[test]
fn a_worker_that_dies_loses_its_lane_only() {
    for dies in Draw::new("workers that die").some(1, 0..2) {
        let [mut receiver, mut sender] = crews(2);
        let crew = if dies == 0 { &mut receiver } else { &mut sender };
        crew.mischief =
            Box::new(|round, ticket| (round == 0 && ticket.lane() == 1).then(|| "it died".into()));
        let [receiver, sender] = [receiver, sender].map(Arc::new);
        let outcomes = coordinate([&receiver, &sender]);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(learned_items(&receiver), expected(&receiver, &sender));
        let given = locked(&receiver.given);
        let tickets: Vec<Ticket> = given.iter().map(|bytes| Ticket::of_bytes(bytes).unwrap()).collect();
        // The second round has the shards of the lane that failed, and no others; and other keys and sessions.
        let shards: Vec<&[u32]> = tickets.iter().map(Ticket::shards).collect();
        assert_eq!(shards, [&[0, 2, 4][..], &[1, 3, 5], &[1, 5], &[3]]);
        let of = |value: fn(&Ticket) -> [u8; 32]| tickets.iter().map(value).collect::<BTreeSet<_>>().len();
        assert_eq!([of(|t| t.seed), of(|t| t.session), of(|t| t.key)], [4, 4, 1]);
        assert_eq!(tickets.iter().map(|t| &t.peer).collect::<BTreeSet<_>>().len(), 4);
    }
}

#[test]
fn lanes_are_those_that_both_sides_can_run() {
    let of = |at_once, places: Option<&[u16]>| words(&Lanes { at_once, places: places.map(<[u16]>::to_vec) });
    let some = of(3, Some(&[1, 64, 1023, 5000]));
    assert_eq!(common(&some, &of(9, None)), [1, 64, 1023]);
    assert_eq!(common(&some, &of(2, None)), [1, 64]);
    assert_eq!(common(&of(2, Some(&[0, 1])), &some), [1]);
    assert_eq!(common(&of(2, Some(&[0])), &some), [] as [u16; 0]);
    assert_eq!(common(&of(0, None), &some), [] as [u16; 0]);
    assert_eq!(common(&of(usize::MAX, None), &of(usize::MAX, None)).len(), Lanes::MOST);

    // A lane whose worker is gone is not run.
    let [mut receiver, sender] = crews(3);
    receiver.lanes = vec![0, 2];
    let [receiver, sender] = [receiver, sender].map(Arc::new);
    assert!(coordinate([&receiver, &sender]).iter().all(Result::is_ok));
    let given = locked(&receiver.given);
    let lanes = given.iter().map(|ticket| Ticket::of_bytes(ticket).unwrap().lane());
    assert_eq!(lanes.collect::<Vec<_>>(), [0, 2]);
    drop(given);
    assert_eq!(learned_items(&receiver), expected(&receiver, &sender));
}

#[test]
fn workers_that_all_fail_end_the_job() {
    let [mut receiver, mut sender] = crews(2);
    receiver.mischief = Box::new(|_, _| Some("no memory".into()));
    // It waits for workers that do not come.
    sender.timeouts = SHORT;
    let [r, s] = coordinate([&Arc::new(receiver), &Arc::new(sender)]);
    let r = r.unwrap_err().to_string();
    assert!(r.contains("no worker completed a shard") && r.contains("no memory"), "{r}");
    assert!(s.is_err());
}

#[test]
fn a_worker_meets_the_worker_that_was_named_only() {
    // Another key than the one that was told; a key of the lane beside; one that has expired.
    type Change = fn(&mut Ticket);
    let cases: [(&str, Change); 4] = [
        ("other options", |ticket| ticket.terms[0] ^= 1),
        ("fingerprint", |ticket| ticket.seed[0] ^= 1),
        ("fingerprint", |ticket| ticket.peer = Identity::generate().unwrap().fingerprint().to_string()),
        ("expired", |ticket| ticket.until = 1),
    ];
    // Each waits until the time is over.
    for (words, change) in Draw::new("workers that meet").some(1, cases) {
        let [mut receiver, mut sender] = crews(1);
        // A sender that calls must find it.
        if words != "fingerprint" {
            receiver.timeouts = SHORT;
        }
        sender.mischief = Box::new(move |_, ticket| {
            change(ticket);
            None
        });
        let [r, s] = coordinate([&Arc::new(receiver), &Arc::new(sender)]);
        let s = s.unwrap_err().to_string();
        assert!(r.is_err() && s.contains(words), "{s}");
    }
}

#[test]
fn workers_that_compute_something_else_are_told_apart() {
    type Change = fn(&mut Ticket);
    let changes: [Change; 6] = [
        |ticket| ticket.shards.reverse(),
        |ticket| ticket.session[0] ^= 1,
        |ticket| ticket.key[0] ^= 1,
        |ticket| ticket.number += 1,
        |ticket| ticket.choice = (DH_PSI.name.into(), DH_PSI.group().into()),
        |ticket| ticket.announced.iter_mut().for_each(|(size, _)| *size += 1),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let [receiver, mut sender] = crews(1);
        sender.mischief = Box::new(move |_, ticket| {
            change(ticket);
            None
        });
        let [r, s] = coordinate([&Arc::new(receiver), &Arc::new(sender)]);
        let [r, s] = [r, s].map(|ended| ended.unwrap_err().to_string());
        assert!([r, s].iter().any(|said| said.contains("compute something else")), "{at}");
    }
}

#[test]
fn a_worker_can_be_stopped() {
    let [receiver, sender] = crews(1);
    let (stop, begun) = (AtomicBool::new(false), AtomicBool::new(false));
    let seeds = [[1; 32], [2; 32]];
    let prints = seeds.map(|seed| Identity::of_seed(&seed).unwrap().fingerprint().to_string());
    let ticket = |own: usize| Ticket {
        session: [9; 32],
        lane: 0,
        key: [8; 32],
        number: SHARDS,
        shards: (0..SHARDS).collect(),
        seed: seeds[own],
        peer: prints[1 - own].clone(),
        choice: (VOLE.name.into(), VOLE.group().into()),
        terms: hash_of_terms(&receiver.request(&ItemSet::default()).hello(false)),
        announced: [(60, false), (50, false)],
        until: u64::MAX,
    };
    // The other side connects, and says nothing more.
    let silent = || {
        let protection = ticket(1).protection().unwrap();
        let connection = establish(&sender.places[0], &protection, QUICK, &|| false, &|_| ()).unwrap();
        begun.store(true, Ordering::SeqCst);
        while !stop.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(Duration::from_secs(1));
        drop(connection);
    };
    struct None;
    impl Source for None {
        fn part(&self, _: u32) -> Result<Part> {
            Err(Error::Bug("no part is needed".into()))
        }
    }
    let nothing = ItemSet::default();
    let lane = Lane {
        request: receiver.request(&nothing),
        source: &None,
        keep: &|_, _| Ok(()),
        endpoint: &receiver.places[0],
        timeouts: Timeouts { connect: Duration::from_secs(5), idle: Duration::from_secs(60) },
        cancelled: &|| begun.load(Ordering::SeqCst) && !stop.swap(true, Ordering::SeqCst),
        notice: &|_| (),
    };
    thread::scope(|scope| {
        scope.spawn(silent);
        let ended = lane.run(&ticket(0));
        stop.store(true, Ordering::SeqCst);
        assert_eq!(ended, Err(Error::Cancelled));
    });
}

#[test]
fn workers_need_tls_and_workers_on_the_other_side() {
    let crews = crews(1).map(Arc::new);
    let spreads = crews.each_ref().map(|crew| RemoteSet {
        items: crew.set.len(),
        sums: Vec::new(),
        workers: Box::new(crew.clone()),
    });
    let errors = |sets: [Set<'_>; 2]| {
        let (ours, theirs) = Channel::pair();
        let side = |crew: &Arc<Crew>, set, channel| {
            let connection = Connection::unprotected(channel, WireCount::default());
            let request = crew.request(set);
            run(connection, &request, &mut Prng::from_os().unwrap()).unwrap_err().to_string()
        };
        thread::scope(|scope| {
            let there = scope.spawn(|| side(&crews[1], sets[1], theirs));
            [side(&crews[0], sets[0], ours), there.join().unwrap()]
        })
    };
    let plain = errors([Set::Workers(&spreads[0]), Set::Workers(&spreads[1])]);
    assert!(plain[0].contains("workers need TLS"), "{plain:?}");
    let different = errors([Set::Workers(&spreads[0]), Set::Memory(&crews[1].set)]);
    let words = "ours is a new one, run by workers, the peer's is a new one";
    assert!(different[0].contains(words), "{different:?}");
}

#[test]
fn a_shard_is_begun_five_times_at_most() {
    // A shard is completed in each round, so the last of six would be begun six times.
    let crews = crews(1).map(|mut crew| {
        crew.mischief = Box::new(|_, ticket| {
            ticket.shards.truncate(1);
            None
        });
        Arc::new(crew)
    });
    let ended = coordinate([&crews[0], &crews[1]]);
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
    assert_eq!(crews.map(|crew| crew.rounds.load(Ordering::SeqCst)), [5, 5]);
    let said = ended.map(|ended| ended.unwrap_err().to_string());
    assert!(said.iter().any(|said| said.contains("shard 5 was begun 5 times")), "{said:?}");
}

#[test]
fn a_peer_that_takes_back_a_shard_is_refused() {
    let of = |kept: [u8; 3]| kept.map(|kept| kept == 1);
    assert_eq!(grown(&of([1, 0, 0]), &of([1, 0, 1])), Ok(true));
    assert_eq!(grown(&of([1, 0, 0]), &of([1, 0, 0])), Ok(false));
    for taken_back in [[0, 0, 0], [0, 1, 1]] {
        let error = grown(&of([1, 0, 0]), &of(taken_back)).unwrap_err();
        assert!(error.to_string().contains("does not have the result of a shard any more"), "{error}");
    }
}

#[test]
fn sessions_are_of_one_job_and_one_connection() {
    let of = |ticket: u8, exporter: u8| *session_of([ticket; 32], &[exporter; 32]).as_bytes();
    assert_eq!([of(1, 1), of(1, 2), of(2, 1)].iter().collect::<BTreeSet<_>>().len(), 3);
    let sessions = || {
        let crews = crews(1).map(Arc::new);
        assert!(coordinate([&crews[0], &crews[1]]).iter().all(Result::is_ok));
        let given = crews.map(|crew| Ticket::of_bytes(&locked(&crew.given)[0]).unwrap().session);
        assert_eq!(given[0], given[1]);
        given[0]
    };
    assert_ne!(sessions(), sessions());
}

#[test]
fn a_shard_that_is_larger_than_its_bound_is_refused() {
    for crowded in 0..2 {
        let mut crews = crews(1);
        crews[crowded].crowded = true;
        let crews = crews.map(Arc::new);
        let ended = coordinate([&crews[0], &crews[1]]);
        assert!(ended.iter().all(Result::is_err), "{ended:?}");
        let said = ended[crowded].as_ref().unwrap_err().to_string();
        assert!(
            said.contains("no worker completed a shard") && said.contains("larger than its bound"),
            "{said}"
        );
    }
}
