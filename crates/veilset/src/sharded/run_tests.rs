use super::*;
use crate::channel::{Recording, WireCount};
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::Golomb;
use crate::error::Fault;
use crate::item::ItemSet;
use crate::net::Connection;
use crate::operations::union::rows::New;
use crate::operations::{self, INTERSECT, SUM, Terms, UNION};
use crate::protocols::{Attachment, CWPRF, VOLE};
use crate::session::run::{RunOutcome, run, run_if};
use crate::session::stages::{AGREEING, CONFIRMING, OPENING};
use crate::testing::{ANY_SESSION, Garble, SEEDS, Shared, overlapping, run_pair, split_frames, with_frames};
use crate::threads::Threads;
use std::collections::BTreeSet;
use std::time::Duration;
use veilset_testing::Draw;

const SHARDS: u32 = 3;
const MAX_ROW: usize = 3010;

fn request<'a>(
    (operation, protocol): (&'static Operation, &'static Protocol),
    role: Role,
    set: &'a ItemSet,
    both: bool,
) -> Request<'a> {
    let terms = Terms { max_row: MAX_ROW, shards: SHARDS, both, ..Terms::default() };
    Request::new(operation, role, set).with(|r| {
        r.spec.candidates = Choice::of(protocol).into();
        r.spec.terms = terms;
    })
}

/// The set as it is cut.
fn stored(set: &ItemSet) -> DiskSet {
    let (folder, form) = (std::env::temp_dir(), crate::sharded::disk::Form::default());
    let distinct = crate::sharded::disk::Distinct::of(set, &Items::new(), &folder, form).unwrap();
    distinct.padded(set.len(), &mut Prng::from_seed(&SEEDS[0])).unwrap()
}

fn connection(channel: Channel) -> Connection {
    Connection { exporter: [3u8; 32].into(), ..Connection::unprotected(channel, WireCount::default()) }
}

fn run_both(receiver: &Request, sender: &Request) -> [RunOutcome; 2] {
    let (ours, theirs) = Channel::pair();
    thread::scope(|s| {
        let theirs = s.spawn(|| run(connection(theirs), sender, &mut Prng::from_seed(&SEEDS[1])).unwrap());
        let ours = run(connection(ours), receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap();
        [ours, theirs.join().unwrap()]
    })
}

/// Everything that can be cut.
fn cut() -> Vec<(&'static Operation, &'static Protocol)> {
    let all = operations::ALL.into_iter().flat_map(|operation| {
        let cuts = move |p: &&'static Protocol| p.attaches(operation, Attachment::Shards);
        protocols::ALL.into_iter().filter(cuts).map(move |protocol| (operation, protocol))
    });
    let all: Vec<_> = all.collect();
    assert!(all.contains(&(&INTERSECT, &VOLE)) && all.contains(&(&UNION, &CWPRF)));
    all
}

fn payload_of(item: &[u8]) -> Vec<u8> {
    blake3::hash(item).as_bytes()[..9].to_vec()
}

#[test]
fn a_job_gives_what_the_plain_computation_gives() {
    let mut draw = Draw::new("jobs");
    let sets = [(0, 0, 0.0), (0, 3, 0.0), (4, 0, 0.0), (1, 1, 1.0), (70, 45, 0.5), (20, 90, 1.0)];
    for (n_y, n_x, overlap) in draw.of_each(2, sets, |(n_y, n_x, _)| n_y + n_x > 10) {
        let (y, x) = overlapping(n_y, n_x, overlap);
        let (in_y, in_x): (BTreeSet<&[u8]>, BTreeSet<&[u8]>) = (y.iter().collect(), x.iter().collect());
        for of in cut() {
            for (payload, both) in draw.some(1, [(false, false), (true, true)]) {
                let what = format!("{} {} {n_y} {n_x} {payload}", of.0, of.1);
                let columns = if payload { vec!["note".to_string()] } else { vec![] };
                let payloads: Items = x.iter().filter(|_| payload).map(payload_of).collect();
                let [receiver, sender] = [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| {
                    request(of, role, set, both).with(|r| r.spec.sent_columns = columns.to_vec())
                });
                let sender = sender.with(|r| r.input.payloads = &payloads);
                let [r, s] = run_both(&receiver, &sender);
                assert_eq!(r.session_id.as_bytes(), s.session_id.as_bytes());
                for outcome in [&r, &s] {
                    let stages: Vec<_> = outcome.stages.iter().map(|stage| stage.name).collect();
                    // Each once, however many shards there are.
                    assert_eq!(stages[..3], [AGREEING, SETUP, CUTTING], "{what}");
                    let between = stages.iter().position(|name| *name == BETWEEN);
                    assert!(between.is_some_and(|at| at > 3), "the protocol's own: {what} {stages:?}");
                    assert_eq!(stages[stages.len() - 2..], [CONFIRMING, OPENING], "{what}");
                    assert_eq!(stages.iter().collect::<BTreeSet<_>>().len(), stages.len(), "{what}");
                }
                match r.learned {
                    Learned::Matching(m) => {
                        let expected = (0..n_y).filter(|&i| in_x.contains(y.get(i)));
                        assert!(m.positions.iter().map(|&i| i as usize).eq(expected), "{what}");
                        let notes =
                            m.positions.iter().filter(|_| payload).map(|&i| payload_of(y.get(i as usize)));
                        assert!(m.payloads.iter().map(<[u8]>::to_vec).eq(notes), "{what}");
                    }
                    Learned::New(new) => {
                        let got: BTreeSet<&[u8]> = new.items.iter().collect();
                        assert_eq!(got.len(), new.items.len(), "{what}");
                        assert!(got == in_x.difference(&in_y).copied().collect(), "{what}");
                        let notes = new.items.iter().filter(|_| payload).map(payload_of);
                        assert!(new.payloads.iter().map(<[u8]>::to_vec).eq(notes), "{what}");
                    }
                    other => panic!("{what}: {other:?}"),
                }
                match s.learned {
                    Learned::Nothing => assert!(!both, "{what}"),
                    Learned::Matching(m) => {
                        let expected = (0..n_x).filter(|&i| in_y.contains(x.get(i)));
                        assert!(both && m.positions.iter().map(|&i| i as usize).eq(expected), "{what}");
                    }
                    Learned::Union(all) => {
                        assert!(both && all.iter().eq(in_x.union(&in_y).copied()), "{what}")
                    }
                    other => panic!("{what}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn what_a_party_receives_follows_from_the_announced_sizes() {
    // Other keys, and with them shards of other sizes, for each set and seed.
    let frames = |of, (n_y, n_x, overlap): (usize, usize, f64), seed: u8| {
        let (y, x) = overlapping(n_y, n_x, overlap);
        let [receiver, sender] = [(Role::Receiver, &y), (Role::Sender, &x)]
            .map(|(role, set)| request(of, role, set, false).with(|r| r.input.pad_to = Some(60)));
        let seen = [Shared::default(), Shared::default()];
        let (mut ours, mut theirs) = Channel::pair();
        ours.record(Recording::to_writer(seen[0].clone()));
        theirs.record(Recording::to_writer(seen[1].clone()));
        thread::scope(|s| {
            s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&[seed; 32])).unwrap());
            run(connection(ours), &receiver, &mut Prng::from_seed(&[seed + 1; 32])).unwrap();
        });
        // The tags' coded length varies with the keys.
        seen.map(|s| {
            let frames = split_frames(&s.bytes()).into_iter().filter(|f| f.0 != 0x21);
            frames.map(|(tag, body)| (tag, body.len())).collect::<Vec<_>>()
        })
    };
    let mut draw = Draw::new("frames of jobs");
    for of in cut() {
        let full = frames(of, (60, 60, 0.0), 1);
        let others = [((60, 60, 1.0), 3), ((60, 60, 0.0), 5), ((0, 0, 0.0), 7), ((3, 40, 0.5), 9)];
        for (sets, seed) in draw.some(2, others) {
            assert_eq!(frames(of, sets, seed), full, "{} {} {sets:?}", of.0, of.1);
        }
    }
}

#[test]
fn a_job_costs_what_its_entry_says_for_each_shard() {
    let (y, x) = overlapping(300, 200, 0.5);
    for of in cut() {
        let [receiver, sender] =
            [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| request(of, role, set, false));
        let seen = Shared::default();
        let (ours, mut theirs) = Channel::pair();
        theirs.record(Recording::to_writer(seen.clone()));
        thread::scope(|s| {
            s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])).unwrap());
            run(connection(ours), &receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap();
        });
        let (peer, hello) = (crate::testing::peer(200, false), receiver.hello(false));
        let (protocol, deal) = crate::testing::proposal(hello, 300, peer).deal();
        assert_eq!(deal.receiver, Announced { size: bound(300, SHARDS), padded: true });
        let expected = u64::from(SHARDS) * protocol.cost(&deal).unwrap().traffic().to_sender;
        let frames = split_frames(&seen.bytes()).into_iter().filter(|(tag, _)| *tag > 0x10);
        let took: u64 = frames.map(|(_, body)| (crate::channel::HEADER + body.len()) as u64).sum();
        assert_eq!(took, expected, "{} {}", of.0, of.1);
    }
}

/// Each run has its shard's part of the error: the tags of the answer are as long as that asks for.
#[test]
fn tags_of_a_job_are_those_of_its_shards() {
    let (y, x) = overlapping(300, 200, 0.5);
    let [receiver, sender] = [(Role::Receiver, &y), (Role::Sender, &x)]
        .map(|(role, set)| request((&INTERSECT, &CWPRF), role, set, false));
    let seen = Shared::default();
    let (mut ours, theirs) = Channel::pair();
    ours.record(Recording::to_writer(seen.clone()));
    thread::scope(|s| {
        s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])).unwrap());
        run(connection(ours), &receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap();
    });
    let tags = split_frames(&seen.bytes()).into_iter().filter(|(tag, _)| *tag == 0x21);
    let took: usize = tags.map(|(_, body)| body.len()).sum();
    let [n_y, n_x] = [300, 200].map(|n| bound(n, SHARDS));
    let expected = |exponent| SHARDS as usize * Golomb::new(exponent, n_x, n_y).unwrap().bytes();
    // About two bits more for each item than in a run of its own: the lengths themselves vary by a few bytes.
    assert!(expected(42) > expected(40) + 70);
    assert!(took.abs_diff(expected(42)) < 35, "{took}, {}", expected(42));
}

#[test]
fn each_item_is_in_one_shard_and_nobody_can_say_before_in_which() {
    let set: ItemSet = (0..3000).map(|i| format!("item {i}")).collect();
    let set = stored(&set);
    let mut parts = Vec::new();
    for key in [[1; 32], [2; 32]] {
        let key = Key::of(key);
        let cut = set.cut(Threads::global(), 5, |items, of| key.shards(items, 5, of)).unwrap();
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        for shard in 0..5 {
            let part = cut.part(shard).unwrap().positions;
            assert!(part.is_sorted() && part.len() <= bound(3000, 5), "{}", part.len());
            // Further from the mean than five deviations with a probability of 2^-20.
            assert!((490..710).contains(&part.len()), "{}", part.len());
            seen.extend(part);
        }
        assert!(seen.into_iter().eq(0..3000));
        parts.push(cut.part(0).unwrap().positions);
    }
    let both = parts[0].iter().filter(|i| parts[1].contains(i)).count();
    assert!((60..190).contains(&both), "{both}: the key does not matter");
}

#[test]
fn both_sides_draw_the_same_key_and_neither_decides_it() {
    let session = &ANY_SESSION;
    let draw_by = |seeds: [u8; 2]| {
        let mut rngs = seeds.map(|seed| Prng::from_seed(&[seed; 32]));
        let [first, second] = &mut rngs;
        let ((ours, theirs), views) = run_pair(
            session,
            |cx| draw(cx.ch, Role::Receiver, session, first),
            |cx| draw(cx.ch, Role::Sender, session, second),
        );
        assert_eq!(ours.bytes(), theirs.bytes());
        // The sender's first message comes when the receiver's seed is fixed, and the receiver's seed is the last.
        assert_eq!(views.frames(0), [(13, 32)]);
        assert_eq!(views.frames(1), [(12, 32), (13, 32)]);
        (*ours.bytes(), views.0[1].clone())
    };
    let (key, view) = draw_by([1, 2]);
    assert!(draw_by([1, 3]).0 != key && draw_by([4, 2]).0 != key);
    // The commitment hides the seed, and is another in another session.
    let [(_, commitment), (_, seed)] = &split_frames(&view)[..] else { panic!() };
    assert!(commitment != seed && blake3::hash(seed).as_bytes()[..] != commitment[..]);
    let other = Domain::new(&SessionId::of([9; 32]), "job, commitment to a seed").hash::<32>(&[seed]);
    assert_ne!(other[..], commitment[..]);

    let draw_as = |frames: &[(u16, &[u8])]| {
        let mut rng = Prng::from_seed(&[1; 32]);
        with_frames(frames, |cx| draw(cx.ch, Role::Sender, session, &mut rng)).map(|_| ())
    };
    assert_eq!(draw_as(&[(12, commitment), (13, seed)]), Ok(()));
    let changed: Vec<u8> = seed.iter().map(|byte| byte ^ 1).collect();
    let error = draw_as(&[(12, commitment), (13, &changed)]).unwrap_err();
    assert_eq!(error.fault(), Some(Fault::Misbehaved));
}

/// A shard of a set of 6, all of whose items are in shard 1, in a run with a set of 5.
fn loaded(request: &Request<'_>, set: &ItemSet, shard: u32, dummies: &Prng) -> Loaded {
    let proposal = crate::testing::proposal(request.hello(false), 6, crate::testing::peer(5, false));
    let cut = stored(set).cut(Threads::global(), SHARDS, |_, of| of.fill(1)).unwrap();
    let shards = Shards {
        request,
        proposal: &proposal,
        results: &InMemory::default(),
        wrong: &Mutex::default(),
        source: &cut,
        key: &Key::of([3; 32]),
        numbers: &[],
    };
    Loaded::new(&shards, shard, dummies).unwrap()
}

#[test]
fn items_of_another_shard_and_more_than_were_announced_are_refused() {
    let (y, _) = overlapping(6, 0, 0.0);
    let key = Key::of([3; 32]);
    let request = request((&UNION, &CWPRF), Role::Receiver, &y, false);
    let shard = loaded(&request, &y, 1, &Prng::from_seed(&[1; 32]));
    let of = |shard: u32| -> Vec<String> {
        let all = (0..40).map(|i| format!("item {i}"));
        let of = |item: &String| {
            let mut shard = [0];
            key.shards(&[ItemHash::of_item(item.as_bytes())], SHARDS, &mut shard);
            shard[0]
        };
        all.filter(|item| of(item) == shard).collect()
    };
    let new = |items: &[String]| Learned::New(New { items: items.iter().collect(), payloads: Items::new() });
    let union = |items: &[String]| Learned::Union(items.iter().collect());
    for form in [&new as &dyn Fn(&[String]) -> Learned, &union] {
        assert!(shard.in_whole(form(&of(1)), &key).is_ok());
        // Among the first that are hashed at a time, and after these.
        for times in [1, BATCH] {
            let mixed = [vec![of(1); times].concat(), of(0)[..1].to_vec()].concat();
            let refused = shard.in_whole(form(&mixed), &key).unwrap_err();
            assert!(refused.to_string().contains("do not tell any other party"), "{refused}");
        }
    }
    // The union finds out itself that an item is ours, though only the hash of ours is here.
    assert!(shard.set.items().get(0) != y.get(0) && shard.set.all_new(&["other"].iter().collect()));
    assert!(!shard.set.all_new(&[y.get(0)].iter().collect()));
    let all = |ours, theirs| merged((0..SHARDS).map(|shard| Ok(new(&of(shard)))), [ours, theirs]).map(|_| ());
    assert_eq!(all(0, 40), Ok(()));
    assert!(all(100, 39).unwrap_err().to_string().contains("40 of them"));
    let all =
        |ours, theirs| merged((0..SHARDS).map(|shard| Ok(union(&of(shard)))), [ours, theirs]).map(|_| ());
    assert_eq!((all(20, 20), all(20, 19).is_err()), (Ok(()), true));
    let matching =
        |positions: Vec<u32>| Ok(Learned::Matching(Matching { positions, payloads: Items::new() }));
    assert!(merged([matching(vec![1]), matching(vec![0, 2])].into_iter(), [9, 2]).is_err());
}

#[test]
fn the_shards_of_a_job_share_its_error() {
    let exponent = |shards| Terms { shards, ..Terms::default() }.exponent();
    assert_eq!([0, 2, 3, 64, 65].map(exponent), [40, 41, 42, 46, 47]);
}

#[test]
fn the_dummies_of_shards_are_others_in_each() {
    let (y, _) = overlapping(6, 0, 0.0);
    let request = request((&INTERSECT, &VOLE), Role::Receiver, &y, false);
    let dummies = |seed: u8| {
        let rng = Prng::from_seed(&[seed; 32]);
        [0, 2].map(|shard| loaded(&request, &y, shard, &rng).set.own().to_vec())
    };
    let all: std::collections::HashSet<_> = [1, 2].iter().flat_map(|&seed| dummies(seed)).flatten().collect();
    assert_eq!(all.len(), 4 * bound(6, SHARDS));
}

#[test]
fn shards_are_sessions_of_their_own() {
    let mut seen: BTreeSet<[u8; 32]> =
        (0..100).map(|shard| *session_of(&ANY_SESSION, shard).as_bytes()).collect();
    seen.extend((0..100).map(|shard| *session_of(&SessionId::of([9; 32]), shard).as_bytes()));
    assert!(seen.len() == 200 && !seen.contains(ANY_SESSION.as_bytes()));
}

/// Session, key, choice, and what the peer announced.
type Began = (SessionId, [u8; 32], Choice, Announced);

/// Keeps results like a file: across sessions. It fails when it has kept so many.
#[derive(Default)]
struct Kept {
    begun: Option<Begun>,
    session: Mutex<Option<Began>>,
    results: Mutex<BTreeMap<u32, Result<Learned>>>,
    attempts: Mutex<Vec<u32>>,
    breaks_at: Option<u32>,
    /// Keeps the first result when as many shards as possible have begun.
    slow: bool,
}

impl Results for Kept {
    fn attempt(&self, shard: u32) -> Result<()> {
        self.attempts.lock().unwrap().push(shard);
        if self.breaks_at == Some(shard) { Err(Error::Cancelled) } else { Ok(()) }
    }
    fn keep(&self, shard: u32, learned: Result<Learned>) -> Result<()> {
        if self.slow && shard == 0 {
            let (begun, began) = (|| self.attempts.lock().unwrap().len(), Instant::now());
            while begun() <= AT_ONCE && began.elapsed() < Duration::from_secs(30) {
                thread::sleep(Duration::from_millis(10));
            }
            thread::sleep(Duration::from_millis(200));
            assert_eq!(begun(), AT_ONCE + 1);
        }
        self.results.lock().unwrap().insert(shard, learned);
        Ok(())
    }
}

impl Keep for Kept {
    fn begun(&self) -> Option<&Begun> {
        self.begun.as_ref()
    }
    fn begin(&self, proposal: &Proposal, key: &Key) -> Result<()> {
        let theirs = proposal.parties.peer().announced;
        *self.session.lock().unwrap() = Some((proposal.session_id, *key.bytes(), proposal.choice, theirs));
        Ok(())
    }
    fn take(&self, shard: u32) -> Result<Learned> {
        self.results.lock().unwrap().remove(&shard).unwrap()
    }
}

impl Kept {
    /// The job as it goes on.
    fn again(self) -> Kept {
        let (session, key, choice, theirs) = self.session.into_inner().unwrap().unwrap();
        let results = self.results.into_inner().unwrap();
        let kept = (0..SHARDS).map(|shard| results.contains_key(&shard)).collect();
        let begun = Some(Begun { session, key: Key::of(key), peer: None, choice, theirs, kept });
        Kept { begun, results: results.into(), ..Kept::default() }
    }
}

fn run_kept(requests: [&Request; 2], kept: [&Kept; 2], seed: u8) -> [Result<RunOutcome>; 2] {
    let (ours, theirs) = Channel::pair();
    let side = |channel, request: &Request, kept, seed: u8| {
        let mut rng = Prng::from_seed(&[seed; 32]);
        let prepared = request.prepare(&mut rng)?.keeping(kept);
        run_if(connection(channel), prepared, &mut (), &mut rng)
    };
    thread::scope(|s| {
        let theirs = s.spawn(|| side(theirs, requests[1], kept[1], seed));
        let ours = side(ours, requests[0], kept[0], seed + 1);
        [ours, theirs.join().unwrap()]
    })
}

#[test]
fn a_job_that_broke_off_goes_on_at_the_shard() {
    let (y, x) = overlapping(60, 50, 0.6);
    for of in [(&INTERSECT, &VOLE), (&UNION, &CWPRF)] {
        for breaks in 0..SHARDS {
            for side in [0, 1] {
                let (receiver, sender) =
                    (request(of, Role::Receiver, &y, false), request(of, Role::Sender, &x, false));
                let mut kept = [Kept::default(), Kept::default()];
                kept[side].breaks_at = Some(breaks);
                let ended = run_kept([&receiver, &sender], [&kept[0], &kept[1]], 1);
                assert_eq!(ended[side].as_ref().err(), Some(&Error::Cancelled));
                assert!(ended[1 - side].is_err());
                // The last result may be missing where the peer left first.
                let done: Vec<usize> = kept.iter().map(|kept| kept.results.lock().unwrap().len()).collect();
                assert!(done.iter().all(|&n| n == breaks as usize), "{done:?}");
                let kept = kept.map(Kept::again);
                // One that is kept on one side only runs again.
                let lost = (breaks > 0).then(|| kept[side].results.lock().unwrap().remove(&0));
                let mut kept = kept;
                if lost.is_some() {
                    kept[side].begun.as_mut().unwrap().kept[0] = false;
                }
                let began = kept[0].begun.as_ref().unwrap().session;
                let [r, s] = run_kept([&receiver, &sender], [&kept[0], &kept[1]], 7).map(Result::unwrap);
                for kept in &kept {
                    let expected = (0..SHARDS).filter(|&shard| shard >= breaks || shard == 0);
                    assert!(kept.attempts.lock().unwrap().iter().copied().eq(expected));
                }
                assert!(
                    r.session_id.as_bytes() == began.as_bytes()
                        && s.session_id.as_bytes() == began.as_bytes()
                );
                let [plain, _] = run_both(&receiver, &sender);
                let sorted = |learned: &Learned| match learned {
                    Learned::New(new) => new.items.iter().map(<[u8]>::to_vec).collect::<BTreeSet<_>>(),
                    Learned::Matching(m) => m.positions.iter().map(|i| i.to_le_bytes().to_vec()).collect(),
                    other => panic!("{other:?}"),
                };
                assert_eq!(sorted(&r.learned), sorted(&plain.learned));
            }
        }
    }
}

#[test]
fn a_job_goes_on_with_the_same_job_of_the_same_peer_only() {
    let (y, x) = overlapping(60, 50, 0.6);
    let of = (&INTERSECT, &VOLE);
    let (receiver, sender) = (request(of, Role::Receiver, &y, false), request(of, Role::Sender, &x, false));
    let broken = || {
        let kept = [Kept { breaks_at: Some(1), ..Kept::default() }, Kept::default()];
        assert!(run_kept([&receiver, &sender], [&kept[0], &kept[1]], 1).iter().all(Result::is_err));
        kept.map(Kept::again)
    };
    // Only one side goes on.
    let [ours, _] = broken();
    for ended in run_kept([&receiver, &sender], [&ours, &Kept::default()], 3) {
        let Err(Error::Disagreement(differences)) = ended else { panic!("{ended:?}") };
        assert_eq!(differences.iter().map(|d| d.term).collect::<Vec<_>>(), ["job"]);
    }
    // The peer's set has another size, or its job is another.
    let [ours, theirs] = broken();
    let larger = overlapping(60, 51, 0.6).1;
    let other = request(of, Role::Sender, &larger, false);
    let [ended, _] = run_kept([&receiver, &other], [&ours, &theirs], 3);
    assert!(matches!(&ended, Err(Error::Refused(m)) if m.contains("50") && m.contains("51")), "{ended:?}");
    let [_, mut theirs] = broken();
    theirs.begun.as_mut().unwrap().session = ANY_SESSION;
    let [ended, _] = run_kept([&receiver, &sender], [&ours, &theirs], 3);
    assert!(matches!(ended, Err(Error::Disagreement(_))), "{ended:?}");
    // Nothing of these ran.
    assert!(ours.attempts.lock().unwrap().is_empty() && theirs.attempts.lock().unwrap().is_empty());
    for wrong in [&[2u8, 0, 0][..], &[0, 0], &[0, 0, 0, 0]] {
        assert!(with_frames(&[(14, wrong)], |cx| exchange_kept(cx.ch, &[false; 3])).is_err(), "{wrong:?}");
    }
    let told = with_frames(&[(14, &[1, 1, 0, 0])], |cx| exchange_kept(cx.ch, &[true, false, true, false]));
    assert_eq!(told, Ok(vec![true, false, false, false]));
}

#[test]
fn a_result_is_kept_while_the_next_shards_run_and_only_so_many_wait() {
    let (y, x) = overlapping(30, 30, 0.5);
    for slow in [0, 1] {
        let [receiver, sender] = [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| {
            let request = request((&INTERSECT, &VOLE), role, set, false);
            request.with(|r| r.spec.terms.shards = 2 * AT_ONCE as u32)
        });
        let mut kept = [Kept::default(), Kept::default()];
        kept[slow].slow = true;
        let ended = run_kept([&receiver, &sender], [&kept[0], &kept[1]], 1);
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    }
}

#[test]
fn a_lie_in_a_shard_comes_to_light_when_the_peer_has_left() {
    // More than are under way at once.
    const MANY: u32 = 2 * AT_ONCE as u32;
    let (y, x) = overlapping(30, 30, 0.5);
    let columns = ["note".to_string()];
    let payloads: Items = x.iter().map(payload_of).collect();
    let [receiver, sender] = [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| {
        let request = request((&INTERSECT, &VOLE), role, set, false);
        let terms = Terms { shards: MANY, ..request.spec.terms };
        request.with(|r| {
            r.spec.sent_columns = columns.to_vec();
            r.spec.terms = terms;
        })
    });
    let sender = sender.with(|r| r.input.payloads = &payloads);
    let run_with = |at: Option<usize>| {
        let (ours, theirs) = Channel::pair();
        let seen = Shared::default();
        let kept = Kept::default();
        let (honest, cheat) = thread::scope(|s| {
            let cheat = s.spawn(|| {
                let (sink, source) = theirs.into_halves();
                let mut channel = Channel::from_halves(Box::new(Garble { sink, tag: 0x65, at }), source);
                channel.record(Recording::to_writer(seen.clone()));
                let mut rng = Prng::from_seed(&SEEDS[1]);
                run(connection(channel), &sender, &mut rng).map(|_| ())
            });
            let mut rng = Prng::from_seed(&SEEDS[0]);
            let prepared = receiver.prepare(&mut rng).unwrap().keeping(&kept);
            let honest = run_if(connection(ours), prepared, &mut (), &mut rng);
            (honest, cheat.join().unwrap())
        });
        assert_eq!(cheat, Ok(()));
        assert!(kept.attempts.lock().unwrap().iter().copied().eq(0..MANY));
        (honest.map(|_| ()), seen.bytes())
    };
    let (honest, seen) = run_with(None);
    assert_eq!(honest, Ok(()));
    let mut lies = 0;
    // The length of a payload. Half of the items match.
    for row in 0..bound(30, MANY) {
        let (honest, view) = run_with(Some(row * (MAX_ROW + 2) + 1));
        assert!(view == seen, "the cheat sees a difference");
        if let Err(error) = honest {
            assert!(error.to_string().contains("do not tell any other party"), "{error}");
            lies += 1;
        }
    }
    assert!(lies >= 5, "{lies}");
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let set = overlapping(4, 0, 0.0).0;
    let check = |operation, protocol, shards| {
        let request = request((operation, protocol), Role::Receiver, &set, false);
        request.with(|r| r.spec.terms = Terms { shards, ..request.spec.terms }).check()
    };
    for shards in [2, 3, MAX_SHARDS] {
        assert_eq!(check(&INTERSECT, &VOLE, shards), Ok(()));
    }
    for (operation, protocol, shards, word) in [
        (&INTERSECT, &VOLE, 1, "Use 2 to"),
        (&INTERSECT, &VOLE, MAX_SHARDS + 1, "Use 2 to"),
        (&INTERSECT, &protocols::CM20, 2, "vole"),
        (&UNION, &protocols::KRTW19, 2, "dh"),
        (&operations::COUNT, &CWPRF, 2, "would show a number"),
        (&SUM, &CWPRF, 2, "would show a number"),
        (&operations::ID, &CWPRF, 2, "Omit"),
    ] {
        let refused = check(operation, protocol, shards);
        assert!(
            matches!(&refused, Err(Error::Usage(m)) if m.contains(word)),
            "{operation} {protocol}: {refused:?}"
        );
    }
}

#[test]
fn a_set_on_disk_is_padded_as_it_is_announced() {
    let (y, _) = overlapping(6, 0, 0.0);
    let set = stored(&y).into();
    let of_memory = request((&INTERSECT, &VOLE), Role::Receiver, &y, false);
    let check = |pad_to| {
        of_memory
            .with(|r| {
                r.input.set = crate::sharded::set::Set::Disk(&set);
                r.input.pad_to = pad_to;
            })
            .check()
    };
    assert_eq!(check(None), Ok(()));
    assert_eq!(check(Some(6)), Ok(()));
    assert!(matches!(check(Some(7)), Err(Error::Bug(m)) if m.contains("padded")));
}
