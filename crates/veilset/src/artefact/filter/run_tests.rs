//! Whole runs with filters that were made in advance.

use super::*;
use crate::channel::{Channel, Recording};
use crate::error::Fault;
use crate::net::Connection;
use crate::operations::{COUNT, INTERSECT, Learned, Operation, Role, Terms, UNION};
use crate::protocols::{CWPRF, Choice, DC17};
use crate::session::estimate::Estimate;
use crate::session::run::{Prepared, Request, RunOutcome, check, run_if};
use crate::speed::Speeds;
use crate::testing::{SEEDS, Shared, split_frames};
use crate::work::Primitive;
use veilset_testing::Draw;

static PEER: LazyLock<Identity> = LazyLock::new(|| Identity::generate().unwrap());

/// Tags and lengths of the frames that a party received.
type Frames = Vec<(u16, usize)>;

/// The ends of a connection between us, the receiver, and the peer, and the frames that each receives.
fn ends(fingerprints: [&Identity; 2]) -> ([Connection; 2], [Shared; 2]) {
    let (mut ours, mut theirs) = Channel::pair();
    let seen = [Shared::default(), Shared::default()];
    ours.record(Recording::to_writer(seen[0].clone()));
    theirs.record(Recording::to_writer(seen[1].clone()));
    let connection = |channel, own: usize| {
        let mut connection = Connection::unprotected(channel, Default::default());
        connection.our = Some(fingerprints[own].fingerprint());
        connection.peer = Some(fingerprints[1 - own].fingerprint());
        connection
    };
    ([connection(ours, 0), connection(theirs, 1)], seen)
}

fn frames(seen: Shared) -> Frames {
    split_frames(&seen.bytes()).into_iter().map(|(tag, body)| (tag, body.len())).collect()
}

/// Runs the prepared requests of both sides, receiver first.
fn run_both(prepared: [Prepared<'_>; 2]) -> ([Result<RunOutcome>; 2], [Frames; 2]) {
    let ([ours, theirs], seen) = ends([&IDENTITY, &PEER]);
    let [receiver, sender] = prepared;
    let run = |end, prepared, i: usize| run_if(end, prepared, &mut (), &mut Prng::from_seed(&SEEDS[i]));
    let done = std::thread::scope(|s| {
        let theirs = s.spawn(|| run(theirs, sender, 1));
        [run(ours, receiver, 0), theirs.join().unwrap()]
    });
    (done, seen.map(frames))
}

fn prepared<'a>(request: &Request<'a>, filter: Option<&Path>) -> Result<Prepared<'a>> {
    let rng = &mut Prng::from_os().unwrap();
    let identity = if request.spec.role == Role::Receiver { &*IDENTITY } else { &*PEER };
    match filter {
        Some(path) => request.prepare_with_filter(path, identity, rng),
        None => request.prepare(rng),
    }
}

fn request<'a>(operation: &'static Operation, role: Role, set: &'a ItemSet, both: bool) -> Request<'a> {
    let terms = Terms { max_row: 40, both, ..Terms::default() };
    Request::new(operation, role, set).with(|r| {
        r.spec.candidates = Choice::of(&DC17).into();
        r.spec.terms = terms;
    })
}

/// The result in comparable form.
fn words(outcome: &RunOutcome) -> String {
    match &outcome.learned {
        Learned::Nothing => String::new(),
        Learned::Matching(m) => format!("{:?}", m.positions),
        Learned::New(new) => {
            let mut items: Vec<_> = new.items.iter().collect();
            items.sort_unstable();
            format!("{items:?}")
        }
        Learned::Union(items) => format!("{:?}", items.iter().collect::<Vec<_>>()),
        Learned::Matches(n) => n.to_string(),
        _ => panic!("not by dc17"),
    }
}

/// The tag of a frame of cells.
const CELLS: u16 = 0xf1;

#[test]
fn one_filter_serves_many_runs_and_need_not_travel() {
    let place = Place::new();
    let y = items(0, 20);
    let path = place.build("f", &y, [25, 40]);
    let public = place.export(&path, "public");
    let before = std::fs::read(&path).unwrap();
    // Ten runs in a row, and then all operations with partners of other sizes. The first tier draws two of each.
    let mut draw = Draw::new("runs with one filter");
    let mut runs = draw.some(2, (0..10).map(|i| (&COUNT, 7 + i, 10 + i, false)));
    for operation in [&INTERSECT, &UNION, &COUNT] {
        let partners = [(0, 0, false), (20, 1, false), (19, 1, true), (10, 40, true)];
        let partners = draw.some(2, partners);
        runs.extend(partners.into_iter().map(|(first, n_x, both)| (operation, first, n_x, both)));
    }
    for (i, (operation, first, n_x, both)) in runs.into_iter().enumerate() {
        let x = items(first, n_x);
        let [receiver, sender] =
            [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| request(operation, role, set, both));
        let (plain, _) = run_both([&receiver, &sender].map(|request| prepared(request, None).unwrap()));
        for held in [true, false] {
            let with = [(&receiver, Some(&*path)), (&sender, held.then_some(&*public))];
            let (ends, frames) = run_both(with.map(|(request, filter)| prepared(request, filter).unwrap()));
            let what = format!("run {i}: {operation} {first} {n_x} {both} {held}");
            for (end, plain) in ends.iter().zip(&plain) {
                let (end, plain) = (end.as_ref().unwrap(), plain.as_ref().unwrap());
                assert_eq!(words(end), words(plain), "{what}");
            }
            let ends = ends.map(Result::unwrap);
            assert_eq!([ends[0].prepared, ends[1].prepared], [true, false]);
            let travels = frames[1].iter().any(|(tag, _)| *tag == CELLS);
            assert_eq!(travels, n_x > 0 && !held, "{what}");
        }
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn filters_and_runs_under_paillier_give_the_same() {
    let (place, y, x) = (Place::new(), items(0, 4), items(2, 3));
    for cipher in Draw::new("filters under Paillier").some(1, [groups::PAILLIER_2048, groups::PAILLIER_3072])
    {
        let path = place.path(cipher);
        let rng = &mut Prng::from_os().unwrap();
        build(
            &draft(&y),
            Size { cipher, ..of([4, 3]) },
            &IDENTITY,
            FilterFile { path: &path, force: false },
            &|_, _| Ok(()),
            rng,
        )
        .unwrap();
        let public = place.export(&path, "public");
        assert_eq!(about(&public).unwrap().head.cipher, cipher);
        for operation in [&INTERSECT, &UNION, &COUNT] {
            let [receiver, sender] = [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| {
                request(operation, role, set, false).with(|r| r.spec.candidates.first.group = cipher)
            });
            let [with, held] = [[Some(&*path), Some(&*public)], [None, None]].map(|filters| {
                let prepared = [prepared(&receiver, filters[0]), prepared(&sender, filters[1])];
                let ends = run_both(prepared.map(Result::unwrap)).0.map(Result::unwrap);
                assert_eq!(ends[0].choice, Choice { protocol: &DC17, group: cipher });
                ends.each_ref().map(words)
            });
            assert_eq!(with, held, "{cipher} {operation}");
            let expected = if operation == &COUNT { "2" } else { &*with[0] };
            assert_eq!(with[0], expected);
        }
    }
}

#[test]
fn padded_sets_have_filters_too() {
    let (place, y, x) = (Place::new(), items(0, 4), items(2, 3));
    let path = place.build("f", &y, [9, 9]);
    for operation in [&INTERSECT, &UNION, &COUNT] {
        let [receiver, sender] = [(Role::Receiver, &y), (Role::Sender, &x)]
            .map(|(role, set)| request(operation, role, set, false).with(|r| r.input.pad_to = Some(8)));
        let (plain, _) = run_both([&receiver, &sender].map(|request| prepared(request, None).unwrap()));
        let both = [prepared(&receiver, Some(&path)), prepared(&sender, None)].map(Result::unwrap);
        let (ends, _) = run_both(both);
        for (end, plain) in ends.into_iter().zip(plain) {
            assert_eq!(words(&end.unwrap()), words(&plain.unwrap()), "{operation}");
        }
    }
}

#[test]
fn the_cost_is_what_is_sent() {
    let (place, y, x) = (Place::new(), items(0, 20), items(9, 30));
    let path = place.build("f", &y, [25, 40]);
    let public = place.export(&path, "public");
    let [receiver, sender] =
        [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| request(&COUNT, role, set, false));
    for held in [true, false] {
        let both = || {
            [prepared(&receiver, Some(&path)), prepared(&sender, held.then_some(&*public))]
                .map(Result::unwrap)
        };
        let ([ours, theirs], _) = ends([&IDENTITY, &PEER]);
        let [a, b] = both();
        let checked = std::thread::scope(|s| {
            let there =
                s.spawn(|| check(theirs, &b, &mut (), &|_| Ok(1), &mut Prng::from_os().unwrap()).map(drop));
            let here = check(ours, &a, &mut (), &|_| Ok(1), &mut Prng::from_os().unwrap());
            there.join().unwrap().unwrap();
            here.unwrap().proposal
        });
        let (protocol, deal) = checked.deal();
        // The peer is told a filter's capacity, not its number of items.
        assert_eq!((checked.ours.size, checked.ours.padded), (25, true));
        let cost = protocol.cost(&deal).unwrap();
        assert!(checked.terms().iter().any(|term| term.key == "filter"));
        let agreed = deal.terms.filter.unwrap();
        assert_eq!((agreed.held, agreed.filter), (held, Filter::new(40, 25, 40)));
        Estimate::of(&checked, false, &Speeds::built_in(1)).unwrap();
        // No cell is encrypted, and the traffic is as predicted.
        assert!(cost.work(Role::Receiver).count(Primitive::Ristretto255) < 100, "{cost:?}");
        let (ends, frames) = run_both(both());
        assert!(ends.iter().all(Result::is_ok));
        let bytes = |frames: &Frames| -> u64 {
            frames.iter().filter(|(tag, _)| *tag >= 0xf0).map(|(_, length)| *length as u64 + 6).sum()
        };
        assert_eq!(cost.traffic().to_receiver, bytes(&frames[0]));
        assert_eq!(cost.traffic().to_sender, bytes(&frames[1]));
        assert_eq!(cost.rounds, if held { 1 } else { 2 });
    }
}

/// The errors of a run that is refused because of one side's filter, before any message of the protocol is sent.
fn refused_by(prepared: [Prepared<'_>; 2], identities: [&Identity; 2]) -> [Error; 2] {
    let ([ours, theirs], seen) = ends(identities);
    let [receiver, sender] = prepared;
    let run = |end, prepared| run_if(end, prepared, &mut (), &mut Prng::from_os().unwrap()).unwrap_err();
    let errors = std::thread::scope(|s| {
        let theirs = s.spawn(|| run(theirs, sender));
        [run(ours, receiver), theirs.join().unwrap()]
    });
    assert!(seen.map(frames).iter().flatten().all(|(tag, _)| *tag < 0xf0));
    errors
}

#[test]
fn filters_that_differ_end_the_run_for_both() {
    let (place, y, x) = (Place::new(), items(0, 4), items(2, 3));
    let path = place.build("f", &y, [4, 9]);
    let public = place.export(&path, "public");
    let [receiver, sender] =
        [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| request(&COUNT, role, set, false));
    // The sender has an older filter, or the receiver has none at all.
    place.update(&path, &items(0, 0)).unwrap();
    for filter in [Some(&*path), None] {
        let both = [prepared(&receiver, filter), prepared(&sender, Some(&public))].map(Result::unwrap);
        for error in refused_by(both, [&IDENTITY, &PEER]) {
            let Error::Disagreement(differences) = error else { panic!("{error}") };
            assert_eq!(differences.len(), 1);
            assert_eq!(differences[0].term, "filter");
        }
    }
    // A peer that shows another party's filter.
    let public = place.export(&path, "public");
    let both = [prepared(&receiver, Some(&path)), prepared(&sender, Some(&public))].map(Result::unwrap);
    let stranger = Identity::generate().unwrap();
    let [_, theirs] = refused_by(both, [&stranger, &PEER]);
    assert!(matches!(&theirs, Error::Peer { fault: Fault::Misbehaved, .. }), "{theirs}");
    assert!(theirs.to_string().contains("another identity"), "{theirs}");
    // More items than the filter is for; only the owner's side can tell beforehand.
    let many = items(0, 10);
    let sender = request(&COUNT, Role::Sender, &many, false);
    let both = [prepared(&receiver, Some(&path)), prepared(&sender, None)].map(Result::unwrap);
    let errors = refused_by(both, [&IDENTITY, &PEER]);
    let says = |error: &Error| {
        matches!(error, Error::Refused(_)) && error.to_string().contains("the sender has 10 items")
    };
    assert!(errors.iter().any(says), "{errors:?}");
    // A filter whose capacity is more than the sender accepts.
    let sender = request(&COUNT, Role::Sender, &x, false).with(|r| r.local.max_peer_items = 3);
    let fewer = items(0, 2);
    let small = place.build("small", &fewer, [4, 9]);
    let receiver = request(&COUNT, Role::Receiver, &fewer, false);
    let both = [prepared(&receiver, Some(&small)), prepared(&sender, None)].map(Result::unwrap);
    let [_, theirs] = refused_by(both, [&IDENTITY, &PEER]);
    assert!(matches!(&theirs, Error::Refused(said) if said.contains("filter is for 4 items")), "{theirs}");
    // Our own filter, under an identity other than the connection's, is not the peer's fault.
    let both = [prepared(&receiver, Some(&small)), prepared(&request(&COUNT, Role::Sender, &x, false), None)];
    let [ours, _] = refused_by(both.map(Result::unwrap), [&stranger, &PEER]);
    assert!(matches!(&ours, Error::Usage(said) if said.contains("another identity")), "{ours}");
}

#[test]
fn what_a_filter_cannot_do_is_refused_before_the_peer_is_met() {
    let (place, y, x) = (Place::new(), items(0, 4), items(2, 3));
    let path = place.build("f", &y, [5, 2]);
    let public = place.export(&path, "public");
    let receiver = request(&COUNT, Role::Receiver, &y, false);
    let sender = request(&COUNT, Role::Sender, &x, false);
    let choices = [Choice::of(&CWPRF)];
    for (request, filter, words) in [
        (
            receiver.with(|r| r.spec.candidates = Choice::of(&CWPRF).into()),
            &path,
            "`filter` is for dc17 only",
        ),
        (
            receiver.with(|r| r.spec.candidates.others = choices.to_vec()),
            &path,
            "no other protocol may be allowed",
        ),
        (
            receiver.with(|r| r.spec.candidates.first.group = groups::PAILLIER_2048),
            &path,
            "encrypted by ristretto255",
        ),
        (
            receiver.with(|r| r.input.pad_to = Some(6)),
            &path,
            "at most 5 items on our side, and this run has 6",
        ),
        (sender.clone(), &public, "at most 2 items on our side, and this run has 3"),
        (sender.with(|r| r.input.normalisation = "trim"), &public, "normalised as none"),
        (sender.with(|r| r.input.key_columns = 2), &public, "1 key columns"),
        (sender.clone(), &path, "not a public filter"),
        (receiver, &public, "it is a public filter"),
    ] {
        let error = prepared(&request, Some(filter)).err().unwrap();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// A party without TLS has no identity to bind a filter to.
#[test]
fn a_filter_needs_an_identity_on_the_wire() {
    let (place, y, x) = (Place::new(), items(0, 4), items(2, 3));
    let path = place.build("f", &y, [4, 9]);
    let [receiver, sender] =
        [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| request(&COUNT, role, set, false));
    let (ours, theirs) = Channel::pair();
    let run = |channel, prepared| {
        let connection = Connection::unprotected(channel, Default::default());
        run_if(connection, prepared, &mut (), &mut Prng::from_os().unwrap()).unwrap_err()
    };
    let (a, b) = (prepared(&receiver, Some(&path)).unwrap(), prepared(&sender, None).unwrap());
    let [here, there] = std::thread::scope(|s| {
        let there = s.spawn(|| run(theirs, b));
        [run(ours, a), there.join().unwrap()]
    });
    for error in [here, there] {
        assert!(matches!(&error, Error::Usage(_) | Error::Peer { .. }), "{error}");
    }
}

/// A public part whose cells were changed is detected before anything is answered.
#[test]
fn changed_cells_are_found_before_answers_are_sent() {
    let (place, y, x) = (Place::new(), items(0, 4), items(2, 3));
    let path = place.build("f", &y, [4, 9]);
    let public = place.export(&path, "public");
    let [receiver, sender] =
        [(Role::Receiver, &y), (Role::Sender, &x)].map(|(role, set)| request(&COUNT, role, set, false));
    let both = [prepared(&receiver, Some(&path)), prepared(&sender, Some(&public))].map(Result::unwrap);
    // Changed after it was opened.
    let mut bytes = std::fs::read(&public).unwrap();
    let at = bytes.len() - 40;
    bytes[at] ^= 1;
    std::fs::write(&public, bytes).unwrap();
    let (ends, frames) = run_both(both);
    let [_, theirs] = ends;
    let said = refused(theirs.map(drop), &public);
    assert!(said.contains("is damaged, or was changed"), "{said}");
    assert!(frames[0].iter().all(|(tag, _)| *tag != 0xf2));
}
