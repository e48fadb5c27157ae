use super::*;
use crate::channel::{Mesh, Message};
use crate::error::{Fault, Seat};
use crate::net::tests::{identity, seconds};
use crate::net::tls::Limits;
use crate::net::{Listed, ListedParty, Roster};
use crate::rng::Prng;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use veilset_testing::free_address;

const NUMBERS: Message<u64> = Message::new(100, "numbers");
const NAMES: [&str; 8] = ["north", "east", "south", "west", "up", "down", "left", "right"];

/// Parties, and the list that they all have.
struct Cast {
    identities: Vec<Arc<Identity>>,
    listed: Listed,
}

/// Parties with addresses, except one that only connects.
fn cast(n: usize, silent: Option<usize>) -> Cast {
    let mut identities: Vec<_> = (0..n).map(|_| identity()).collect();
    // Of two parties, the first listens.
    identities.sort_by_key(|identity| *identity.fingerprint().as_bytes());
    let party = |(i, identity): (usize, &Arc<Identity>)| ListedParty {
        name: NAMES[i].into(),
        fingerprint: identity.fingerprint(),
        address: (silent != Some(i)).then(free_address),
    };
    let party = identities.iter().enumerate().map(party).collect();
    Cast { identities, listed: Listed { leader: NAMES[0].into(), party } }
}

/// The lines that a user received.
#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl Notices {
    fn has(&self, words: &str) -> bool {
        self.0.lock().unwrap().iter().any(|notice| notice.contains(words))
    }

    fn wait_for(&self, words: &str) {
        for _ in 0..10_000 {
            if self.has(words) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("no {words:?}: {:?}", self.0.lock().unwrap());
    }
}

impl Cast {
    fn roster(&self) -> Roster {
        Roster::new(self.listed.clone(), "parties.toml").unwrap()
    }

    /// Runs one party.
    fn play(&self, i: usize, timeouts: Timeouts) -> Result<Vec<Connection>> {
        self.play_with(i, timeouts, None, &|| false, &Notices::default())
    }

    fn play_with(
        &self,
        i: usize,
        timeouts: Timeouts,
        listen: Option<&str>,
        cancelled: &dyn Fn() -> bool,
        notices: &Notices,
    ) -> Result<Vec<Connection>> {
        let notice = |text: &str| notices.0.lock().unwrap().push(text.to_owned());
        let listen = listen.map_or(ListenAt::Listed, ListenAt::Address);
        assemble(&self.me(i), &self.identities[i], listen, timeouts, cancelled, &notice)
    }

    fn me(&self, i: usize) -> Me {
        self.roster().me(NAMES[i]).unwrap()
    }

    /// The mesh of one party, made of its connections.
    fn mesh(&self, i: usize, links: Vec<Connection>) -> Mesh {
        let links = links.into_iter().map(|link| (link.seat, link.channel));
        Mesh::new(self.me(i).own().seat(), links.collect()).unwrap()
    }

    /// Connects party `i` to party `to`, which listens, and exchanges lists.
    fn call(&self, i: usize, to: usize) -> Result<Connection, Failure> {
        let me = self.me(i);
        let to_whom = &me.roster().members()[to];
        let connection = self.call_silently(i, to)?;
        let Greeted { connection, lists, .. } = greeted(&me, to_whom, connection, true, &Meeting::default());
        assert!(matches!(lists, Some(Ok(()))));
        Ok(connection)
    }

    /// Connects party `i` to party `to` without sending anything.
    fn call_silently(&self, i: usize, to: usize) -> Result<Connection, Failure> {
        let keys = Keys::new(&self.identities[i], self.identities[to].fingerprint());
        let limits = Limits { deadline: Instant::now() + Duration::from_secs(20), stop: &|| false };
        let address = self.listed.party[to].address.as_deref().unwrap();
        let socket = (0..1000).find_map(|_| TcpStream::connect(address).ok().or_else(pause));
        let secured = keys.connect(socket.unwrap(), &limits)?;
        Ok(Connection::secured(secured, &keys, seconds(20)).unwrap())
    }
}

/// Party `i` has connections with all others. It sends its number to all others, and receives theirs from their seats.
fn talk(cast: &Cast, i: usize, links: Vec<Connection>) -> Mesh {
    let me = cast.me(i);
    assert_eq!(links.len(), me.others().count());
    for (link, member) in links.iter().zip(me.others()) {
        assert_eq!((link.seat, link.peer), (member.seat(), Some(member.fingerprint())));
        assert_eq!(link.peer_name.as_deref(), Some(member.name()));
    }
    let mut mesh = cast.mesh(i, links);
    let ours: u64 = me.own().number().get().into();
    let heard = mesh.each(|seat, ch| {
        ch.tx.send(NUMBERS, &[ours])?;
        Ok((seat, ch.rx.recv(NUMBERS, 1)?[0]))
    });
    let others: Vec<_> = me.others().map(|other| (other.seat(), other.number().get().into())).collect();
    assert_eq!(heard.unwrap(), others);
    mesh
}

fn pause<T>() -> Option<T> {
    thread::sleep(Duration::from_millis(5));
    None
}

fn seat(number: u8) -> Seat {
    Seat::numbered(NonZeroU8::new(number).unwrap())
}

fn error<T>(result: Result<T>) -> Error {
    result.err().unwrap()
}

#[test]
fn all_find_each_other_in_whatever_order_they_start() {
    let mut rng = Prng::from_seed(&[7; 32]);
    for (n, silent) in [(2, None), (2, Some(1)), (3, Some(0)), (4, Some(2)), (8, Some(5))] {
        let cast = cast(n, silent);
        let waits: Vec<u64> = (0..n).map(|_| rng.below(100)).collect();
        let parties: Vec<(Vec<[u8; 32]>, Mesh)> = thread::scope(|scope| {
            let play = |(i, wait): (usize, u64)| {
                let cast = &cast;
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(wait));
                    let links = cast.play(i, seconds(60)).unwrap();
                    (links.iter().map(|link| *link.exporter).collect(), talk(cast, i, links))
                })
            };
            let parties: Vec<_> = waits.into_iter().enumerate().map(play).collect();
            parties.into_iter().map(|party| party.join().unwrap()).collect()
        });
        // Both ends of a connection have the same secret, and no two connections share one.
        let mut secrets = std::collections::HashMap::new();
        for exporter in parties.iter().flat_map(|(exporters, _)| exporters) {
            *secrets.entry(*exporter).or_insert(0) += 1;
        }
        assert_eq!(secrets.len(), n * (n - 1) / 2);
        assert!(secrets.values().all(|ends| *ends == 2));
        thread::scope(|scope| {
            parties.into_iter().for_each(|(_, mesh)| drop(scope.spawn(move || mesh.finish(Ok(())).unwrap())));
        });
    }
}

#[test]
fn who_does_not_come_is_named_by_all_others() {
    // Party 3 connects to the others; the others connect to party 1.
    thread::scope(|scope| {
        for (absent, words) in [(2, "did not connect to 127."), (0, "could not be reached at 127.")] {
            scope.spawn(move || {
                let cast = cast(3, None);
                let who = format!("party {} ({})", absent + 1, NAMES[absent]);
                let errors: Vec<String> = thread::scope(|scope| {
                    let play = |i| {
                        let cast = &cast;
                        scope.spawn(move || error(cast.play(i, seconds(1))).to_string())
                    };
                    let parties: Vec<_> = (0..3).filter(|i| *i != absent).map(play).collect();
                    parties.into_iter().map(|party| party.join().unwrap()).collect()
                });
                assert!(errors.iter().all(|e| e.contains(&who)), "{errors:?}");
                // One party reports this first; the other may have learned it from that party.
                let first = format!("{who} {words}");
                let timed_out =
                    |e: &&String| e.contains(&first) && e.contains("within 1 second (`connect_timeout`)");
                let first = errors.iter().find(timed_out).unwrap_or_else(|| panic!("{errors:?}"));
                assert_eq!(first.matches("(north)").count() + first.matches("(south)").count(), 1, "{first}");
                assert!(!first.contains("(east)"), "{first}");
                assert!(first.contains("then run again") && first.contains("parties.toml"), "{first}");
            });
        }
    });
}

#[test]
fn everybody_who_is_missing_is_named() {
    let cast = cast(5, Some(3));
    // Party 2 is the only one present.
    let e = error(cast.play(1, seconds(1))).to_string();
    for words in [
        "party 3 (south), party 4 (west) and party 5 (up) did not connect to 127.",
        "party 1 (north) could not be reached at 127.",
    ] {
        assert!(e.contains(words), "{e}");
    }
    let members = cast.roster().members().to_vec();
    assert_eq!(together(&[&members[0]]), "party 1 (north)");
    assert_eq!(together(&[&members[0], &members[2]]), "party 1 (north) and party 3 (south)");
}

#[test]
fn the_shortest_time_out_ends_it_for_all() {
    let cast = cast(4, None);
    let start = Instant::now();
    let errors = thread::scope(|scope| {
        let play = |(i, connect): (usize, u64)| {
            let (cast, timeouts) =
                (&cast, Timeouts { connect: Duration::from_millis(connect), ..seconds(1) });
            scope.spawn(move || error(cast.play(i, timeouts)).to_string())
        };
        let parties = [(0, 300_000), (1, 1_500), (2, 200_000)].map(play);
        parties.map(|party| party.join().unwrap())
    });
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(errors.iter().all(|e| e.contains("party 4 (west)")), "{errors:?}");
    assert!(errors[1].contains("party 4 (west) did not connect to"), "{errors:?}");
    for told in [&errors[0], &errors[2]] {
        assert!(told.contains(" gave up because ") && told.contains("it says"), "{told}");
    }
}

/// The same parties, but one of them has an identity that the others do not expect, in its own list too.
fn with_an_impostor(cast: &Cast, which: usize) -> Cast {
    let Cast { mut identities, mut listed } =
        Cast { identities: cast.identities.clone(), listed: cast.listed.clone() };
    // The directions of connections stay the same.
    let key = |identity: &Arc<Identity>| *identity.fingerprint().as_bytes();
    let fits = |new: &Arc<Identity>| {
        let mut all = cast.identities.clone();
        all[which] = new.clone();
        all.is_sorted_by_key(key)
    };
    identities[which] = std::iter::repeat_with(identity).find(fits).unwrap();
    listed.party[which].fingerprint = identities[which].fingerprint();
    Cast { identities, listed }
}

#[test]
fn who_has_another_key_is_not_let_in_and_is_named() {
    // The last party connects to all others.
    thread::scope(|scope| {
        for n in [2, 3] {
            scope.spawn(move || {
                let cast = cast(n, None);
                let other = with_an_impostor(&cast, n - 1);
                let (theirs, ours) = thread::scope(|scope| {
                    let last = scope.spawn(|| error(other.play(n - 1, seconds(20))));
                    let play = |i| {
                        let cast = &cast;
                        scope.spawn(move || error(cast.play(i, seconds(1))).to_string())
                    };
                    let others: Vec<_> = (0..n - 1).map(play).collect();
                    let others: Vec<_> = others.into_iter().map(|party| party.join().unwrap()).collect();
                    (last.join().unwrap(), others)
                });
                assert_eq!(theirs.fault(), Some(Fault::Stranger), "{theirs:?}");
                assert!([Some(seat(1)), Some(seat(2))].contains(&theirs.seat()), "{theirs}");
                let words = "to compare its list of parties with ours, parties.toml";
                assert!(theirs.to_string().contains(words), "{theirs}");
                let who = format!("party {n} ({})", NAMES[n - 1]);
                assert!(ours.iter().all(|e| e.contains(&who)), "{ours:?}");
                let presented = other.identities[n - 1].fingerprint();
                let words =
                    format!("was turned away: it shows the fingerprint {presented}, which proves nothing");
                // Among several parties, it may have connected to only one.
                assert!(n > 2 || ours[0].contains(&words), "{ours:?}");
            });
        }
    });
}

#[test]
fn a_listener_with_another_key_ends_it() {
    let cast = cast(3, None);
    let other = with_an_impostor(&cast, 0);
    let done = AtomicBool::new(false);
    let until = || done.load(Ordering::Relaxed);
    let errors = thread::scope(|scope| {
        scope.spawn(|| error(other.play_with(0, seconds(60), None, &until, &Notices::default())));
        let play = |i| {
            let cast = &cast;
            scope.spawn(move || error(cast.play(i, seconds(60))))
        };
        let errors = [1, 2].map(play).map(|party| party.join().unwrap());
        done.store(true, Ordering::Relaxed);
        errors
    });
    // Both notice it, unless the other one was faster and sent the reason.
    let found = errors.iter().find(|error| error.fault() == Some(Fault::Stranger));
    let found = found.unwrap_or_else(|| panic!("{errors:?}"));
    assert_eq!(found.seat(), Some(seat(1)));
    for words in
        ["the address of north, shows the fingerprint", "correct its \"fingerprint\" in parties.toml"]
    {
        assert!(found.to_string().contains(words), "{found}");
    }
    // A party that leaves while a connection to it is being made cannot send the reason yet.
    let cut_off = |error: &Error| matches!(error, Error::Network(what) if what.contains(" closed the connection before the run was complete"));
    assert!(errors.iter().all(|e| e.to_string().contains("party 1") || cut_off(e)), "{errors:?}");
}

/// The errors of parties 1 and 2 if party 3 leaves in this way once the three are connected. Party 4 never comes.
fn left_by(leave: impl FnOnce(&Cast, [&Notices; 2])) -> [String; 2] {
    let cast = cast(4, None);
    let notices = [Notices::default(), Notices::default()];
    thread::scope(|scope| {
        let play = |i: usize| {
            let (cast, notices) = (&cast, &notices[i]);
            scope.spawn(move || error(cast.play_with(i, seconds(20), None, &|| false, notices)).to_string())
        };
        let parties = [0, 1].map(play);
        notices[0].wait_for("party 2 (east) is connected");
        leave(&cast, notices.each_ref());
        parties.map(|party| party.join().unwrap())
    })
}

#[test]
fn who_leaves_before_all_are_here_is_named_by_all_others() {
    let politely = left_by(|cast, notices| {
        let cancelled = || notices.iter().all(|notices| notices.has("party 3 (south) is connected"));
        let stopped = cast.play_with(2, seconds(60), None, &cancelled, &Notices::default());
        assert_eq!(error(stopped), Error::Cancelled);
    });
    for error in politely {
        assert!(error.starts_with("party 3: south was stopped on request"), "{error}");
    }
    // Only party 1 notices that.
    let [one, two] = left_by(|cast, _| drop(cast.call_silently(2, 0).unwrap()));
    assert!(one.contains("party 3 (south) closed the connection"), "{one}");
    assert!(
        two.starts_with("party 1: north gave up because it has no connection with party 3 (south)"),
        "{two}"
    );
}

#[test]
fn who_dies_right_after_the_handshake_is_named_by_all_others() {
    let cast = cast(3, None);
    let errors = thread::scope(|scope| {
        let parties = [(0, 2), (1, 3)].map(|(i, from)| {
            let cast = &cast;
            scope.spawn(move || {
                let mut mesh = match cast.play(i, seconds(60)) {
                    Ok(links) => cast.mesh(i, links),
                    Err(error) => return error,
                };
                let heard = mesh.with(seat(from), |ch| ch.rx.recv(NUMBERS, 1));
                mesh.finish(heard).unwrap_err()
            })
        });
        drop(cast.play(2, seconds(60)).unwrap());
        parties.map(|party| party.join().unwrap().to_string())
    });
    assert!(errors.iter().all(|e| e.contains("party 3 (south) closed the connection")), "{errors:?}");
}

#[test]
fn of_each_party_the_first_connection_is_taken_and_strangers_are_turned_away() {
    let cast = cast(3, None);
    let notices = Notices::default();
    let mut mesh = thread::scope(|scope| {
        let one = scope.spawn(|| cast.play_with(0, seconds(60), None, &|| false, &notices).unwrap());
        notices.wait_for("listening on 127.");
        let address = cast.listed.party[0].address.as_deref().unwrap();
        // A stranger whose key is not expected, and one without TLS.
        let keys = Keys::new(&identity(), cast.identities[0].fingerprint());
        let limits = Limits { deadline: Instant::now() + Duration::from_secs(20), stop: &|| false };
        let stranger = keys.connect(TcpStream::connect(address).unwrap(), &limits);
        assert_eq!(stranger.err(), Some(Failure::Refused));
        TcpStream::connect(address).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        notices.wait_for("which proves nothing (it is none of the 2 that are expected)");
        notices.wait_for("does not speak veilset's TLS");
        // Party 3 comes before party 2, and again.
        let mut three = cast.call(2, 0).unwrap();
        for _ in 0..2 {
            assert_eq!(cast.call(2, 0).err(), Some(Failure::Taken));
        }
        notices.wait_for(&format!("{}, whose party is connected already", cast.identities[2].fingerprint()));
        let mut two = cast.call(1, 0).unwrap();
        three.channel.tx.send(NUMBERS, &[3]).unwrap();
        two.channel.tx.send(NUMBERS, &[2]).unwrap();
        let mut mesh = cast.mesh(0, one.join().unwrap());
        let heard = mesh.each(|seat, ch| Ok((seat, ch.rx.recv(NUMBERS, 1)?[0])));
        assert_eq!(heard.unwrap(), [(seat(2), 2), (seat(3), 3)]);
        mesh
    });
    talk_no_more(&mut mesh);
    // The listener is closed.
    assert!(TcpStream::connect(cast.listed.party[0].address.as_deref().unwrap()).is_err());
}

/// Asserts that all others have left.
fn talk_no_more(mesh: &mut Mesh) {
    let error = mesh.each(|_, ch| ch.rx.recv(NUMBERS, 1)).unwrap_err().to_string();
    assert!(error.contains("closed the connection"), "{error}");
}

#[test]
fn where_we_listen_can_differ_from_the_address_in_the_list() {
    let cast = cast(2, None);
    // Behind a router, whose address does not belong to this machine.
    let mut listed = cast.listed.clone();
    listed.party[0].address = Some("192.0.2.1:7000".into());
    let outside = Cast { identities: cast.identities.clone(), listed };
    let e = error(outside.play(0, seconds(1)));
    assert!(matches!(e, Error::Usage(_)), "{e:?}");
    for words in ["cannot listen on 192.0.2.1:7000", "our \"address\" in parties.toml", "`listen`"] {
        assert!(e.to_string().contains(words), "{e}");
    }
    let port = cast.listed.party[0].address.as_deref().unwrap().rsplit(':').next().unwrap().to_string();
    let here = format!("0.0.0.0:{port}");
    let notices = [Notices::default(), Notices::default()];
    thread::scope(|scope| {
        let one = scope.spawn(|| {
            let links = cast.play_with(0, seconds(60), Some(&here), &|| false, &notices[0]).unwrap();
            talk(&cast, 0, links)
        });
        // No party connects to party 2.
        let links = cast.play_with(1, seconds(60), Some("127.0.0.1:0"), &|| false, &notices[1]).unwrap();
        talk(&cast, 1, links);
        one.join().unwrap();
    });
    assert!(notices[0].has(&format!("listening on {here}")));
    assert!(
        notices[1].has(&format!("{} is not used", crate::spelling::LISTEN))
            && !notices[1].has("listening on")
    );
}

#[test]
fn waiting_can_be_cancelled() {
    let cast = cast(3, None);
    // Party 1 only listens, party 3 only connects, and party 2 does both.
    for i in 0..3 {
        let looked = std::cell::Cell::new(0);
        let cancelled = || {
            looked.set(looked.get() + 1);
            looked.get() > 3
        };
        assert_eq!(
            error(cast.play_with(i, seconds(60), None, &cancelled, &Notices::default())),
            Error::Cancelled
        );
    }
}

#[test]
fn who_waits_long_is_told_once_who_is_missing() {
    let cast = cast(3, None);
    let (me, identity) = (cast.me(0), &cast.identities[0]);
    let notices = Notices::default();
    let notice = |text: &str| notices.0.lock().unwrap().push(text.to_owned());
    let watch = Watch::new(seconds(1), &|| false, &notice);
    watch.hint.set(Some(Instant::now()));
    let keys = Keys::accepting(identity, me.listens_for().map(Member::fingerprint).collect());
    let listener = listener(&me, ListenAt::Listed, &notice).unwrap().unwrap();
    let entrance = Entrance::open(listener, &keys, 2, &watch).unwrap();
    let (tell, events) = mpsc::channel();
    let mut assembly = Assembly::new(&me, &keys, &watch, Some(entrance), tell, events);
    assert!(assembly.meet().is_ok());
    let words = "still waiting for party 2 (east) and party 3 (south) to connect to 127.";
    assert_eq!(notices.0.lock().unwrap().iter().filter(|notice| notice.contains(words)).count(), 1);
}

#[test]
fn the_identity_is_the_one_of_our_entry() {
    let cast = cast(2, None);
    // An error comes before any notice: either it cannot listen there, or `listen` is unused.
    let told = |line: &str| panic!("{line}");
    let (me, other) = (cast.me(0), &cast.identities[1]);
    let open = Listener::bind("127.0.0.1:0").unwrap();
    for listen in [ListenAt::Listed, ListenAt::Address("192.0.2.1:1"), ListenAt::Open(open)] {
        let e = error(assemble(&me, other, listen, seconds(1), &|| false, &told));
        assert!(matches!(e, Error::Usage(_)) && e.to_string().contains("which is that of \"east\""), "{e}");
    }
}

/// The errors of three parties, the last of which has its own list.
fn with_lists(cast: &Cast, own: impl FnOnce(&mut Listed)) -> [Error; 3] {
    let mut listed = cast.listed.clone();
    own(&mut listed);
    let differing = Cast { identities: cast.identities.clone(), listed };
    let start = Instant::now();
    let errors = thread::scope(|scope| {
        let play = |i| {
            let cast = if i == 2 { &differing } else { cast };
            scope.spawn(move || error(cast.play(i, seconds(300))))
        };
        [0, 1, 2].map(play).map(|party| party.join().unwrap())
    });
    assert!(start.elapsed() < Duration::from_secs(60), "{errors:?}");
    errors
}

/// Swaps the fingerprints of the first two parties.
fn swap_keys(listed: &mut Listed) {
    let [one, two, _] = &mut listed.party[..] else { panic!() };
    std::mem::swap(&mut one.fingerprint, &mut two.fingerprint);
}

/// This holds also if the parties disagree on which of them connects.
#[test]
fn whose_list_differs_is_named_by_all_and_soon() {
    type Change = fn(&mut Listed);
    // (the change, the difference, how many of the others connect with party 3 and notice it)
    let cases: [(Change, &str, usize); 6] = [
        (|l| l.leader = "south".into(), "leader in the list", 2),
        (|l| l.party.swap(1, 2), "order of the list", 2),
        (|l| l.party[0].address = Some("127.0.0.1:1".into()), "address in the list", 1),
        (|l| l.party[2].address = Some("127.0.0.1:1".into()), "address in the list", 1),
        (|l| l.party[1].name = "eastern".into(), "name in the list", 2),
        (swap_keys, "name in the list", 2),
    ];
    thread::scope(|scope| {
        for silent in [None, Some(0), Some(2)] {
            for (change, what, see) in cases {
                scope.spawn(move || {
                    let cast = cast(3, silent);
                    let errors = with_lists(&cast, change);
                    let differs =
                        |e: &&Error| matches!(e, Error::Disagreement(_)) && e.to_string().contains(what);
                    let seen = errors[..2].iter().filter(differs).count();
                    assert!(seen >= see, "{what} {silent:?}: {errors:?}");
                    assert!(differs(&&errors[2]), "{what} {silent:?}: {errors:?}");
                    for error in &errors[..2] {
                        let said = error.to_string();
                        assert!(said.contains("party 3"), "{what} {silent:?}: {said}");
                        assert!(
                            differs(&error) || said.contains("different lists"),
                            "{what} {silent:?}: {said}"
                        );
                    }
                });
            }
        }
    });
}

/// The addresses of the list lead to the wrong parties, as behind a misconfigured router: the lists are the same.
#[test]
fn who_is_where_another_party_should_be_is_named() {
    let cast = cast(3, None);
    let mut listed = cast.listed.clone();
    let [one, two, _] = &mut listed.party[..] else { panic!() };
    std::mem::swap(&mut one.address, &mut two.address);
    let crossed = Cast { identities: cast.identities.clone(), listed };
    let errors = thread::scope(|scope| {
        let play = |i: usize| {
            let (crossed, cast) = (&crossed, &cast);
            let listen = cast.listed.party[i].address.as_deref();
            scope.spawn(move || {
                error(crossed.play_with(i, seconds(20), listen, &|| false, &Notices::default()))
            })
        };
        [0, 1, 2].map(play).map(|party| party.join().unwrap())
    });
    let said = errors[2].to_string();
    assert_eq!(errors[2].fault(), Some(Fault::Stranger), "{said}");
    // The words do not depend on which address it tries first.
    for words in ["the address of ", " by its identity. Correct the addresses of both in parties.toml"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(errors[1].fault().is_some(), "{errors:?}");
    // No party that reaches party 1 meant to call it: party 3 notifies it, or it reports at the end what it noticed itself.
    // On a machine under load, party 3 may be gone before it has told it.
    let found = ["we called party 2 (east) at 127.", "party 3 (south) closed the connection"];
    let found = found.iter().any(|words| errors[0].to_string().contains(words));
    assert!(errors[0].fault().is_some() || found, "{errors:?}");
}

/// Other programs at the address of party 3, which only connects: one with another key, and one with party 3's key that expects
/// another peer.
fn strangers(cast: &Cast) -> [(Arc<Identity>, crate::net::Fingerprint); 2] {
    let nobody = identity().fingerprint();
    [(identity(), cast.identities[0].fingerprint()), (cast.identities[2].clone(), nobody)]
}

/// Has a program listen at the address of party 3 while `step` runs, and returns how many connections it refused.
fn with_a_stranger(
    cast: &Cast,
    (identity, peer): (Arc<Identity>, crate::net::Fingerprint),
    step: impl FnOnce(),
) -> usize {
    let (done, turned_away) = (AtomicBool::new(false), Notices::default());
    thread::scope(|scope| {
        let listener = Listener::bind(cast.listed.party[2].address.as_deref().unwrap()).unwrap();
        let (done, turned_away) = (&done, &turned_away);
        scope.spawn(move || {
            let security = Protection::Tls { identity, peer };
            let cancelled = || done.load(Ordering::Relaxed);
            let notice = |text: &str| turned_away.0.lock().unwrap().push(text.to_owned());
            let met = listener.accept(&security, seconds(60), &cancelled, &notice);
            assert_eq!(error(met), Error::Cancelled);
        });
        // Stop the listener even if `step` panics.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(step));
        done.store(true, Ordering::Relaxed);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let notices = turned_away.0.into_inner().unwrap();
    notices.iter().filter(|notice| notice.contains("was turned away")).count()
}

/// A delay that is longer than [`LATE`].
const LATER: Duration = Duration::from_millis(3500);

/// Party 1 calls party 3 after a while, and finds another program. The run goes on, whichever of the other two is late.
#[test]
fn a_stranger_at_the_address_of_a_party_that_calls_us_does_not_end_the_run() {
    thread::scope(|scope| {
        for (late, stranger) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            scope.spawn(move || {
                let cast = cast(3, None);
                let turned_away = with_a_stranger(&cast, strangers(&cast)[stranger].clone(), || {
                    thread::scope(|scope| {
                        let play = |i| {
                            let cast = &cast;
                            scope.spawn(move || {
                                thread::sleep(if i == late { LATER } else { Duration::ZERO });
                                let notices = Notices::default();
                                let links =
                                    cast.play_with(i, seconds(60), None, &|| false, &notices).unwrap();
                                assert!(!notices.has("the run cannot begin"));
                                talk(cast, i, links)
                            })
                        };
                        let meshes = [0, 1, 2].map(play).map(|party| party.join().unwrap());
                        meshes
                            .into_iter()
                            .for_each(|mesh| drop(scope.spawn(move || mesh.finish(Ok(())).unwrap())));
                    });
                });
                // A connected party is not called.
                assert_eq!(turned_away == 0, late == 1, "{turned_away}");
            });
        }
    });
}

#[test]
fn a_stranger_at_the_address_of_a_party_that_does_not_come_is_named_at_the_end() {
    let cast = cast(3, None);
    for (stranger, words) in strangers(&cast)
        .into_iter()
        .zip(["the address of south, shows the fingerprint", "but it expects a fingerprint other than ours"])
    {
        with_a_stranger(&cast, stranger, || {
            let e = error(cast.play(0, seconds(4)));
            assert!(matches!(e, Error::Network(_)), "{e:?}");
            let e = e.to_string();
            for words in [
                "party 2 (east) and party 3 (south) did not connect to 127.",
                "; our call to party 3 (south) at 127.",
                words,
            ] {
                assert!(e.contains(words), "{e}");
            }
        });
    }
}

#[test]
fn who_is_seated_is_known_by_its_number() {
    let meeting = Meeting::default();
    let number = |n| NonZeroU8::new(n).unwrap();
    meeting.seat(number(3));
    meeting.seat(number(32));
    let seated: Vec<u8> = (1..=32).filter(|n| meeting.is_seated(number(*n))).collect();
    assert_eq!(seated, [3, 32]);
}

#[path = "assembly_greeting_tests.rs"]
mod greeting;
