use super::*;
use crate::channel::Recording;
use crate::error::Fault;
use crate::item::ItemSet;
use crate::many::seat;
use crate::net::{Connected, Me, in_memory};
use crate::operations::{self, COUNT, INTERSECT, Learned, Operation, SUM, UNION};
use crate::protocols::{self, MPSI, MPSU};
use crate::session::run::{Prepared, Request, check, run, run_if};
use crate::session::stages::{COMPUTING, CONFIRMING, OPENING, SETUP};
use crate::testing::{Shared, parties, split_frames};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Runs all parties; the n-th gets its number.
fn all<T: Send>(n: usize, party: impl Fn(usize, Connected) -> T + Sync) -> Vec<T> {
    let connections = in_memory(parties(n)[0].roster());
    std::thread::scope(|scope| {
        let runs = connections.into_iter().enumerate().map(|(me, connections)| {
            let party = &party;
            scope.spawn(move || party(me, connections.into()))
        });
        let runs: Vec<_> = runs.collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

fn request<'a>(operation: &'static Operation, me: &'a Me, set: &'a ItemSet) -> Request<'a> {
    Request::new(operation, Role::Receiver, set).with(|r| r.spec = r.spec.clone().among(me.clone()))
}

fn rng(me: usize) -> Prng {
    Prng::from_seed(&[me as u8 + 1; 32])
}

/// The errors of all in a count by three, of which the third party does what `cheat` does.
fn with_a_cheat(cheat: impl Fn(&mut Handshake, Hello) -> Result<()> + Sync) -> Vec<Error> {
    let (mes, set) = (parties(3), ["a", "b"].iter().collect::<ItemSet>());
    all(3, |me, connected| {
        let request = request(&COUNT, &mes[me], &set);
        if me < 2 {
            return run(connected, &request, &mut rng(me)).unwrap_err();
        }
        let mut handshake = Handshake::new(connected, &request.spec).unwrap();
        let ended = cheat(&mut handshake, request.hello(false));
        handshake.mesh.finish(ended).unwrap_err()
    })
}

/// Sets of these sizes, of which all have the items below 2, and neighbours some more.
fn sets(sizes: &[usize]) -> Vec<ItemSet> {
    let item = |party: usize, i: usize| match i {
        0 | 1 => format!("all {i}"),
        i if i % 2 == 0 => format!("some {i}"),
        i => format!("{party} {i}"),
    };
    sizes.iter().enumerate().map(|(party, n)| (0..*n).map(|i| item(party, i)).collect()).collect()
}

#[test]
fn the_leader_learns_the_result_and_all_others_learn_nothing() {
    for (operation, sizes) in [
        (&UNION, vec![3, 4, 0]),
        (&INTERSECT, vec![5, 3, 2, 6]),
        (&COUNT, vec![4, 7, 3]),
        (&COUNT, vec![4, 7]),
        (&UNION, vec![4, 7]),
        (&INTERSECT, vec![4, 7]),
    ] {
        let (sets, mes) = (sets(&sizes), parties(sizes.len()));
        let outcomes = all(sizes.len(), |me, connected| {
            // One in two pads.
            let pad_to = (me % 2 == 1).then_some(9);
            let request = request(operation, &mes[me], &sets[me]).with(|r| r.input.pad_to = pad_to);
            run(connected, &request, &mut rng(me)).unwrap()
        });
        let sessions: BTreeSet<_> = outcomes.iter().map(|o| *o.session_id.as_bytes()).collect();
        assert_eq!(sessions.len(), 1);
        let in_all = |item: &[u8]| sets.iter().all(|set| set.iter().any(|other| other == item));
        let of_all = sets[0].iter().filter(|item| in_all(item)).count();
        match &outcomes[0].learned {
            Learned::New(new) => {
                let ours: BTreeSet<_> = sets[0].iter().collect();
                let all: BTreeSet<_> = sets.iter().flat_map(|set| set.iter()).collect();
                let expected: Vec<_> = all.difference(&ours).copied().collect();
                assert_eq!(
                    new.items.iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
                    expected
                );
            }
            Learned::Matching(m) => {
                assert!(m.positions.iter().all(|&i| in_all(sets[0].get(i as usize))));
                assert_eq!(m.positions.len(), of_all);
            }
            Learned::Matches(n) => assert_eq!(*n as usize, of_all),
            other => panic!("{other:?}"),
        }
        // All that is sent is received.
        let sum = |way: fn(&crate::channel::MessageBytes) -> u64| {
            outcomes.iter().flat_map(|outcome| &outcome.messages).map(way).sum::<u64>()
        };
        assert!(sum(|m| m.sent) > 0);
        assert_eq!(sum(|m| m.sent), sum(|m| m.received));
        for (me, outcome) in outcomes.iter().enumerate() {
            let stages: Vec<_> = outcome.stages.iter().map(|stage| stage.name).collect();
            let computing = if sizes.len() > 2 { COMPUTING } else { SETUP };
            assert_eq!(stages[..2], [AGREEING, computing]);
            assert_eq!(stages[stages.len() - 2..], [CONFIRMING, OPENING]);
            assert!(sizes.len() == 2 || stages.len() == 4, "{stages:?}");
            assert_eq!(me > 0, outcome.learned == Learned::Nothing);
            let told: Vec<_> =
                outcome.parties.iter().map(|p| (p.announced.size, p.announced.padded)).collect();
            let others = (0..sizes.len()).filter(|other| *other != me);
            let expected = others.map(|i| if i % 2 == 1 { (9, true) } else { (sizes[i], false) });
            assert_eq!(told, expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn items_of_the_leader_may_be_longer_than_a_row() {
    let sets: [ItemSet; 3] = ["x".repeat(90), "y".into(), "y".into()].map(|item| [item].iter().collect());
    let mes = parties(3);
    let outcomes = all(3, |me, connected| {
        let mut request = request(&UNION, &mes[me], &sets[me]);
        request.spec.terms.max_row = 4;
        run(connected, &request, &mut rng(me)).unwrap()
    });
    assert!(matches!(&outcomes[0].learned, Learned::New(new) if new.items.get(0) == b"y"));
}

/// Nobody gets a session of its own, and two runs share none.
#[test]
fn sessions_follow_from_what_all_have_said_and_from_the_secrets_of_the_connections() {
    let choice = Choice::of(&MPSI);
    let of = |hellos: [&[u8]; 2], sizes: [usize; 2]| {
        let all = hellos.into_iter().zip(sizes).map(|(hello, size)| Said { hello, fingerprint: None, size });
        session_of_all(all.collect::<Vec<_>>().into_iter(), choice)
    };
    let base = of([b"a", b"b"], [1, 2]);
    let others = [of([b"b", b"a"], [1, 2]), of([b"ab", b""], [1, 2]), of([b"a", b"b"], [2, 1])];
    assert!(others.iter().all(|other| other.as_bytes() != base.as_bytes()));
    let pair = |exporter, a: usize, b: usize| *session_of_pair(&base, &[exporter; 32], [a, b]).as_bytes();
    assert_eq!(pair(1, 0, 1), pair(1, 1, 0));
    let of_another = *session_of_pair(&others[0], &[1; 32], [0, 1]).as_bytes();
    let all = [pair(1, 0, 1), pair(2, 0, 1), pair(1, 0, 2), pair(1, 1, 2), of_another, *base.as_bytes()];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

/// Each part of what a session of several binds, changed alone: of each party what it has said, who it is, its size and
/// its place; how many they are, and what was chosen.
#[test]
fn a_session_of_several_binds_who_the_parties_are_and_what_was_chosen() {
    type Told = (&'static [u8], Option<Fingerprint>, usize);
    fn print(key: &[u8]) -> Option<Fingerprint> {
        Some(Fingerprint::of_public_key(key))
    }
    let of = |told: &[Told], choice: Choice| {
        let all = told.iter().map(|&(hello, fingerprint, size)| Said { hello, fingerprint, size });
        *session_of_all(all, choice).as_bytes()
    };
    let base: [Told; 2] = [(&b"a"[..], print(b"1"), 1), (&b"b"[..], print(b"2"), 2)];
    let choice = Choice::of(&MPSI);
    let mut all = vec![of(&base, choice)];
    assert_eq!(all[0], of(&base, choice));
    let changes: [fn(&mut Told); 4] =
        [|told| told.0 = &b"c"[..], |told| told.1 = print(b"3"), |told| told.1 = None, |told| told.2 = 3];
    for (party, change) in [0, 1].into_iter().flat_map(|party| changes.map(|change| (party, change))) {
        let mut told = base;
        change(&mut told[party]);
        all.push(of(&told, choice));
    }
    let [first, second] = base;
    all.push(of(&[second, first], choice));
    all.push(of(&[(first.0, second.1, first.2), (second.0, first.1, second.2)], choice));
    all.push(of(&[first, second, (&b"c"[..], print(b"3"), 3)], choice));
    all.push(of(&base, Choice { protocol: &MPSU, ..choice }));
    all.push(of(&base, Choice { group: "another", ..choice }));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

/// Connections in another order, too few of them, or one to somebody with another key.
#[test]
fn connections_that_are_not_those_to_the_parties_are_a_bug() {
    let (mes, set) = (parties(3), ItemSet::default());
    let refused = |change: fn(&mut Vec<Connection>)| {
        let mut connections = in_memory(mes[0].roster()).swap_remove(0);
        change(&mut connections);
        Handshake::new(connections.into(), &request(&COUNT, &mes[0], &set).spec).err()
    };
    let listed: fn(&mut Vec<Connection>) =
        |connections| connections[0].peer = Some(Fingerprint::of_public_key(&[1]));
    assert!(refused(|_| ()).is_none() && refused(listed).is_none());
    let wrong: [fn(&mut Vec<Connection>); 5] = [
        |connections| connections.swap(0, 1),
        |connections| connections.truncate(1),
        |connections| connections.clear(),
        |connections| connections[1].seat = seat(0),
        |connections| connections[0].peer = Some(Fingerprint::of_public_key(&[2])),
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        match refused(change) {
            Some(Error::Bug(what)) => assert!(what.contains("not those to the parties"), "{number}: {what}"),
            other => panic!("{number}: {other:?}"),
        }
    }
}

/// A party that says that it leads, where the list has another leader, is named before anything else is said.
#[test]
fn a_role_that_is_not_that_of_the_place_in_the_list_is_refused() {
    let errors = with_a_cheat(|handshake, mut lie| {
        lie.spec.role = Role::multiparty(true);
        let said = WireHello::new(&lie, [9; 32]).to_bytes()?;
        handshake.mesh.each(|_, channel| hellos(channel, &said).map(drop))?;
        // It waits for what the others say to it.
        handshake.mesh.each(|_, channel| exchange_sizes(channel, 2)).map(drop)
    });
    for error in &errors[..2] {
        assert!(error.fault().is_some(), "{error}");
    }
    let named = |error: &Error| {
        error.seat() == Some(seat(2)) && error.to_string().contains("not that of its place in the list")
    };
    assert!(errors[..2].iter().any(named), "{errors:?}");
}

/// The list of parties is a term like all others: who has another one is named, and nothing else is said.
#[test]
fn another_list_or_another_term_is_a_difference_with_the_party_that_has_it() {
    let set: ItemSet = ["a"].iter().collect();
    let (mes, others) = (parties(3), crate::testing::parties_called(3, "other"));
    type Change = fn(&mut Request<'_>);
    let cases: [(Option<Change>, &str); 3] = [
        (None, "hash of the list of parties (`parties`)"),
        (Some(|request| request.input.key_columns = 2), "number of key columns"),
        (Some(|request| request.spec.terms.max_row = 99), "`max_row`"),
    ];
    for (change, words) in cases {
        let errors = all(3, |me, connected| {
            let who = if me == 2 && change.is_none() { &others[2] } else { &mes[me] };
            let mut request = request(&UNION, who, &set);
            if let (2, Some(change)) = (me, change) {
                change(&mut request);
            }
            run(connected, &request, &mut rng(me)).unwrap_err()
        });
        // Everybody sees it, and nobody only hears of it: no party gives up before it has heard all others.
        for error in &errors[..2] {
            let said = error.to_string();
            assert!(said.contains(words) && said.contains("party 3's is"), "{said}");
            assert_eq!(error.seat(), Some(seat(2)), "{said}");
            assert!(matches!(error, Error::Disagreement(_)), "{said}");
        }
        let said = errors[2].to_string();
        assert!(said.contains(words) && said.contains("that of party 1 and party 2 is"), "{said}");
        assert_eq!((errors[2].seat(), errors[2].seats()), (None, vec![seat(0), seat(1)]));
        assert!(
            said.ends_with("Settle with all parties which value it should be; nothing of the data was sent.")
        );
    }
}

/// One party tells two others different things: its size, for instance.
#[test]
fn a_party_that_tells_the_others_different_things_ends_the_run() {
    let errors = with_a_cheat(|handshake, hello| {
        let said = WireHello::new(&hello, [9; 32]).to_bytes()?;
        let step = |who, channel: &mut Channel| {
            hellos(channel, &said)?;
            exchange_sizes(channel, if who == seat(0) { 2 } else { 3 })
        };
        handshake.mesh.each(step)?;
        // It agrees with each, so only the two honest ones can notice that they were told different things.
        let echo = |_, channel: &mut Channel| {
            let theirs = channel.rx.recv(TRANSCRIPT, 1)?;
            channel.tx.send(TRANSCRIPT, &theirs)
        };
        handshake.mesh.each(echo)?;
        handshake.mesh.each(|_, channel| go(channel)).map(drop)
    });
    // Neither of the honest ones blames the other: any of the others may be the liar.
    for error in &errors[..2] {
        assert!(error.fault().is_some() && !error.to_string().contains("our messages wrong"), "{error}");
    }
    let saw = |e: &&Error| e.to_string().contains("tells the others different things");
    let seen: Vec<_> = errors[..2].iter().filter(saw).map(Error::seat).collect();
    assert!(!seen.is_empty() && seen.iter().all(|seat| *seat == Some(Seat::SOMEBODY)), "{errors:?}");
}

/// A list of two is for a run of two, whose other party is the peer in every error. It meets no party without a list.
#[test]
fn a_list_of_two_is_for_a_run_of_two_and_meets_no_party_without_one() {
    let sets: [ItemSet; 2] = [["a", "b"].iter().collect(), ["b", "c"].iter().collect()];
    let mes = parties(2);
    let both = |r: &mut Request<'_>| r.spec.terms.both = true;
    let outcomes = all(2, |me, connected| {
        run(connected, &request(&UNION, &mes[me], &sets[me]).with(both), &mut rng(me)).unwrap()
    });
    assert!(outcomes.iter().all(|o| o.session_id == outcomes[0].session_id));
    assert!(
        outcomes
            .iter()
            .all(|o| o.parties.peer().seat == Seat::PEER && !matches!(o.learned, Learned::Nothing))
    );
    // A wrong value and a wrong frame are both the peer's.
    for tag in [3, 200] {
        let errors = all(2, |me, connected| {
            let request = request(&UNION, &mes[me], &sets[me]);
            if me == 0 {
                return run(connected, &request, &mut rng(me)).err();
            }
            let mut handshake = Handshake::new(connected, &request.spec).unwrap();
            let (hello, ours) = (request.hello(false), request.input.announced());
            handshake.meet(hello, ours, &mut rng(me)).unwrap();
            let lie = |_, channel: &mut Channel| {
                channel.tx.send(Message::<u64>::new(tag, "lie"), &[u64::MAX])?;
                exchange_sizes(channel, 1)?;
                // It stays until the other party gives up.
                channel.rx.recv(Message::<u64>::new(201, "never"), 1)
            };
            let lied = handshake.mesh.each(lie);
            handshake.mesh.finish(lied).err()
        });
        let seen = errors[0].as_ref().unwrap();
        assert_eq!((seen.seat(), seen.fault()), (Some(Seat::PEER), Some(Fault::Misbehaved)), "{seen}");
    }
    // One side has the list, the other none: both see which.
    let errors = all(2, |me, connected| {
        let mut request = request(&UNION, &mes[me], &sets[me]);
        if me == 0 {
            let Connected::Peer(mut connection) = connected else { panic!() };
            return crate::net::greeted(&mut connection.channel, mes[me].roster()).unwrap_err();
        }
        request.spec.parties = None;
        let Connected::Peer(mut connection) = connected else { panic!() };
        connection.seat = Seat::PEER;
        run(*connection, &request, &mut rng(me)).unwrap_err()
    });
    for (error, words) in errors.iter().zip(["ours is a list", "ours is none"]) {
        assert!(matches!(error, Error::Disagreement(_)) && error.to_string().contains(words), "{error}");
    }
}

/// Both sides of a run that one refuses, once the sizes are said, log it under one name.
#[test]
fn a_run_that_is_refused_has_one_name_for_all() {
    struct Names<'h>(&'h Mutex<Vec<SessionId>>);
    impl Approval for Names<'_> {
        fn approve(&mut self, proposal: &Proposal) -> Result<()> {
            self.0.lock().unwrap().push(proposal.session_id);
            Ok(())
        }
        fn refused(&mut self, proposal: &Proposal, _: &Error) {
            self.0.lock().unwrap().push(proposal.session_id);
        }
    }
    for n in [2, 3] {
        let (mes, sets, names) = (parties(n), sets(&[2, 5, 4]), Mutex::new(Vec::new()));
        all(n, |me, connected| {
            let max_peer_items = if me == 0 { 3 } else { MAX_SET };
            let change = |r: &mut Request<'_>| r.local.max_peer_items = max_peer_items;
            let request = request(&COUNT, &mes[me], &sets[me]).with(change);
            let rng = &mut rng(me);
            let prepared = request.prepare(rng).unwrap();
            run_if(connected, prepared, &mut Names(&names), rng).unwrap_err();
        });
        let names = names.into_inner().unwrap();
        assert!(names.len() > 1 && names.iter().all(|name| *name == names[0]), "{n}");
    }
}

/// A confirmation of one pair is worth nothing to another: no party can pass one on in place of its own.
#[test]
fn each_pair_confirms_the_end_of_a_session_of_its_own() {
    let (sets, mes) = (sets(&[3, 4, 2]), parties(3));
    let seen = all(3, |me, connected| {
        let Connected::Parties(mut connections) = connected else { panic!() };
        let seen: Vec<Shared> = connections.iter().map(|_| Shared::default()).collect();
        for (connection, seen) in connections.iter_mut().zip(&seen) {
            connection.channel.record(Recording::to_writer(seen.clone()));
        }
        run(Connected::Parties(connections), &request(&INTERSECT, &mes[me], &sets[me]), &mut rng(me))
            .unwrap();
        seen.iter().map(Shared::bytes).collect::<Vec<_>>()
    });
    // What each party received at the end, from the others in their order.
    let end = |view: &Vec<u8>| split_frames(view).into_iter().rfind(|(tag, _)| *tag == 4).unwrap().1;
    let ends: Vec<Vec<_>> = seen.iter().map(|views| views.iter().map(end).collect()).collect();
    assert_eq!([&ends[0][0], &ends[0][1], &ends[1][1]], [&ends[1][0], &ends[2][0], &ends[2][1]]);
    let pairs: BTreeSet<_> = ends.iter().flatten().collect();
    assert_eq!(pairs.len(), 3, "one for each pair");
}

/// Hears of runs, and refuses them if it is told to.
struct Hears<'h> {
    refuses: bool,
    heard: &'h Mutex<Vec<(usize, String)>>,
    me: usize,
}

impl Approval for Hears<'_> {
    fn approve(&mut self, proposal: &Proposal) -> Result<()> {
        let sizes: Vec<_> = proposal.parties.iter().map(|p| p.announced.size.to_string()).collect();
        self.heard.lock().unwrap().push((self.me, format!("asked {}", sizes.join(" "))));
        if self.refuses { Err(Error::Refused("no".into())) } else { Ok(()) }
    }
    fn refused(&mut self, _: &Proposal, error: &Error) {
        self.heard.lock().unwrap().push((self.me, error.kind().into()));
    }
    fn begins(&mut self, _: &Proposal) -> Result<()> {
        self.heard.lock().unwrap().push((self.me, "begins".into()));
        Ok(())
    }
}

#[test]
fn all_parties_have_to_allow_a_run_and_nobody_begins_before() {
    let (mes, sets) = (parties(3), sets(&[2, 3, 4]));
    for refusing in [None, Some(1)] {
        let heard = Mutex::new(Vec::new());
        let results = all(3, |me, connected| {
            let mut approval = Hears { refuses: refusing == Some(me), heard: &heard, me };
            let request = request(&INTERSECT, &mes[me], &sets[me]);
            let rng = &mut rng(me);
            let prepared: Prepared<'_> = request.prepare(rng).unwrap();
            run_if(connected, prepared, &mut approval, rng)
        });
        let mut heard = heard.into_inner().unwrap();
        heard.sort();
        let said = |begins: bool| {
            let asked = ["3 4", "2 4", "2 3"].map(|sizes| format!("asked {sizes}"));
            let all = asked.into_iter().enumerate();
            all.flat_map(|(me, asked)| {
                [(me, asked)].into_iter().chain(begins.then(|| (me, "begins".to_string())))
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(heard, said(refusing.is_none()));
        assert_eq!(results.iter().filter(|r| r.is_ok()).count(), if refusing.is_none() { 3 } else { 0 });
        if refusing.is_some() {
            assert!(matches!(results[1], Err(Error::Refused(_))));
            for error in [&results[0], &results[2]].map(|r| r.as_ref().unwrap_err()) {
                assert_eq!((error.seat(), error.fault()), (Some(seat(1)), Some(Fault::GaveUp)), "{error}");
            }
        }
    }
}

#[test]
fn a_set_that_is_too_large_is_refused_by_who_limits_it_with_the_party_that_has_it() {
    let (mes, sets) = (parties(3), sets(&[2, 3, 4]));
    let results = all(3, |me, connected| {
        let max_peer_items = if me == 0 { 3 } else { MAX_SET };
        let request = request(&COUNT, &mes[me], &sets[me]).with(|r| r.local.max_peer_items = max_peer_items);
        run(connected, &request, &mut rng(me)).unwrap_err()
    });
    assert!(matches!(&results[0], Error::Refused(why) if why.starts_with("party 3's set has 4 items")));
}

/// A log lists every party that may know our size. So it hears of a run that ends at the sizes, too.
#[test]
fn a_size_that_is_refused_is_heard_of_without_being_asked() {
    let (mes, sets) = (parties(3), sets(&[2, 3, 4]));
    let heard = Mutex::new(Vec::new());
    all(3, |me, connected| {
        let mut approval = Hears { refuses: false, heard: &heard, me };
        let max_peer_items = if me == 0 { 3 } else { MAX_SET };
        let request = request(&COUNT, &mes[me], &sets[me]).with(|r| r.local.max_peer_items = max_peer_items);
        let rng = &mut rng(me);
        let prepared: Prepared<'_> = request.prepare(rng).unwrap();
        run_if(connected, prepared, &mut approval, rng).unwrap_err()
    });
    let heard = heard.into_inner().unwrap();
    let of_the_first: Vec<&str> =
        heard.iter().filter(|(me, _)| *me == 0).map(|(_, what)| what.as_str()).collect();
    assert_eq!(of_the_first, ["refused"]);
}

#[test]
fn a_check_agrees_and_exchanges_predictions_and_nothing_else() {
    let (mes, sets) = (parties(3), sets(&[2, 3, 4]));
    let checked = all(3, |me, connected| {
        let request = request(&UNION, &mes[me], &sets[me]);
        let prepared = request.prepare(&mut rng(me)).unwrap();
        check(connected, &prepared, &mut (), &|_| Ok(10 * me as u64), &mut rng(me)).unwrap()
    });
    let predicted: Vec<_> = checked.iter().map(|c| c.their_milliseconds.clone()).collect();
    assert_eq!(predicted, [vec![10, 20], vec![0, 20], vec![0, 10]]);
    let said = super::super::estimate::would_learn(&checked[0].proposal).join(" ");
    assert!(said.contains("every item that only the others have"), "{said}");
    let said = super::super::estimate::would_learn(&checked[1].proposal).join(" ");
    assert!(said.contains("except the leader, party 1 (a), which would learn every item"), "{said}");
}

#[test]
fn what_is_not_for_several_parties_is_refused_with_the_reason() {
    let set: ItemSet = ["a"].iter().collect();
    let mes = parties(3);
    let base = |me: usize| request(&UNION, &mes[me], &set);
    let columns = ["c".to_string()];
    let both = operations::Terms { both: true, ..base(0).spec.terms };
    let refused = [
        (base(0).with(|r| r.spec.operation = &SUM), "sum is for two parties only"),
        (base(0).with(|r| r.spec.terms = both), "`both` is for two parties"),
        (
            base(0).with(|r| r.spec.sent_columns = columns.to_vec()),
            "columns are sent between two parties only",
        ),
        (base(0).with(|r| r.spec.candidates = Choice::of(&protocols::CWPRF).into()), "computed by mpsu only"),
        (base(0).with(|r| r.spec.parties = None), "`protocol=mpsu` is for several parties"),
    ];
    for (request, words) in refused {
        let said = request.check().unwrap_err();
        assert!(matches!(&said, Error::Usage(what) if what.contains(words)), "{said}");
    }
    assert!(matches!(base(0).with(|r| r.spec.role = Role::Sender).check(), Err(Error::Bug(_))));
    base(0).check().unwrap();
    base(1).check().unwrap();
}
