use super::super::handshake::Handshake;
use super::*;
use crate::artefact::filter::owner;
use crate::channel::{PREAMBLE, Recording, WireCount, preamble};
use crate::error::Fault;
use crate::net::tests::{connect, identity, listen, seconds, tls};
use crate::net::{Connection, Fingerprint};
use crate::operations::Announced;
use crate::operations::sum::Modulus;
use crate::operations::{COUNT, INTERSECT, SHARE, SUM, UNION};
use crate::protocols::{CM20, CWPRF, DC17, DH_PSI, Protocol, SIGMA_DH, VOLE};
use crate::session::Proposal;
use crate::testing::{self, Shared, split_frames, with_frames};
use std::thread;

#[path = "agreement_choice_tests.rs"]
mod choice;

fn hello(role: Role) -> Hello {
    testing::hello(&UNION, role)
}

fn fingerprint(name: &str) -> Fingerprint {
    Fingerprint::of_public_key(name.as_bytes())
}

/// The two ends of one connection, as if TLS had been there.
fn connections() -> [Connection; 2] {
    let (a, b) = Channel::pair();
    let end = |channel, our: &str, peer: &str| Connection {
        our: Some(fingerprint(our)),
        peer: Some(fingerprint(peer)),
        exporter: [7u8; 32].into(),
        ..Connection::unprotected(channel, WireCount::default())
    };
    [end(a, "a", "b"), end(b, "b", "a")]
}

/// Agrees with the peer over this connection, without asking anybody.
fn agree(
    connection: Connection,
    hello: &Hello,
    size: usize,
    rng: &mut Prng,
) -> Result<(Handshake, Proposal)> {
    let mut handshake = Handshake::new(connection.into(), &testing::hello(&UNION, Role::Receiver).spec)?;
    let ours = Announced { size, padded: hello.padded };
    let agreed = handshake.meet(hello.clone(), ours, rng).and_then(|(met, mut proposal)| {
        handshake.sized(&met, &mut proposal, &|_| Ok(()), None)?;
        Ok(proposal)
    });
    match agreed {
        Ok(proposal) => Ok((handshake, proposal)),
        // The first side to notice leaves immediately.
        Err(error) => handshake.mesh.finish(Err(error)),
    }
}

/// Runs both sides to the end, each on its connection.
fn both(ours: &Hello, theirs: &Hello, seeds: [u8; 2], connections: [Connection; 2]) -> [Result<Proposal>; 2] {
    let [a, b] = connections;
    thread::scope(|scope| {
        let a = scope.spawn(|| agree(a, ours, 3, &mut Prng::from_seed(&[seeds[0]; 32])));
        let b = agree(b, theirs, 5, &mut Prng::from_seed(&[seeds[1]; 32]));
        [a.join().unwrap(), b].map(|agreed| agreed.map(|(_, proposal)| proposal))
    })
}

fn agreed(seeds: [u8; 2], connections: [Connection; 2]) -> SessionId {
    let [a, b] = both(&hello(Role::Receiver), &hello(Role::Sender), seeds, connections).map(Result::unwrap);
    assert_eq!([&a, &b].map(|proposal| proposal.parties.peer().announced.size), [5, 3]);
    assert_eq!(a.session_id, b.session_id);
    a.session_id
}

/// The error of `agree` against a peer that sends these frames and then closes its sending half.
fn against(script: Vec<(Message<[u8]>, Vec<u8>)>) -> Error {
    let [us, forger] = connections();
    let Channel { mut tx, rx, .. } = forger.channel;
    for (message, bytes) in script {
        tx.send_bytes(message, &bytes).unwrap();
    }
    drop(tx);
    let e = agree(us, &hello(Role::Receiver), 3, &mut Prng::from_seed(&[1; 32])).err().unwrap();
    drop(rx); // what we send can always be sent, so that only its lies are at fault
    e
}

#[test]
fn both_sides_get_the_same_id_and_each_others_size() {
    agreed([1, 2], connections());
}

#[test]
fn the_id_depends_on_everything() {
    let mut seen = vec![agreed([1, 2], connections())];
    assert_eq!(seen[0], agreed([1, 2], connections()), "and on nothing else");
    // The receiver's nonce, the sender's, swapped ones.
    seen.extend([[3, 2], [1, 3], [2, 1]].map(|seeds| agreed(seeds, connections())));
    // The exporter.
    let mut other = connections();
    other.iter_mut().for_each(|c| c.exporter = [8u8; 32].into());
    seen.push(agreed([1, 2], other));
    // Fingerprints: each one, swapped ones, none.
    for (a, b) in [(Some("c"), Some("b")), (Some("a"), Some("c")), (Some("b"), Some("a")), (None, None)] {
        let [mut x, mut y] = connections();
        (x.our, x.peer) = (a.map(fingerprint), b.map(fingerprint));
        (y.our, y.peer) = (x.peer, x.our);
        seen.push(agreed([1, 2], [x, y]));
    }
    // The agreed terms.
    let mut terms = [hello(Role::Receiver), hello(Role::Sender)];
    terms.iter_mut().for_each(|h| h.spec.terms.max_row = 65);
    let [receiver, _] = both(&terms[0], &terms[1], [1, 2], connections()).map(Result::unwrap);
    seen.push(receiver.session_id);
    let different: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(different.len(), seen.len());
}

#[test]
fn the_id_binds_the_sizes() {
    let id = |sizes: [usize; 2]| {
        let hellos = Role::ALL.map(hello);
        thread::scope(|scope| {
            let ends = connections().into_iter().zip(&hellos).zip(sizes).zip(1..);
            let ends = ends.map(|(((end, hello), size), seed)| {
                scope.spawn(move || agree(end, hello, size, &mut Prng::from_seed(&[seed; 32])).unwrap().1)
            });
            let ends: Vec<_> = ends.collect();
            let ids: Vec<_> =
                ends.into_iter().map(|end| *end.join().unwrap().session_id.as_bytes()).collect();
            assert_eq!(ids[0], ids[1]);
            ids[0]
        })
    };
    let ids = [id([3, 5]), id([4, 5]), id([3, 6])];
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
    assert_eq!(ids[0], id([3, 5]));
}

#[test]
fn two_ends_of_different_connections_do_not_share_an_id() {
    // Somebody in between, with a TLS connection to each: the exporters differ.
    let [a, mut b] = connections();
    b.exporter = [8u8; 32].into();
    let [a, b] = both(&hello(Role::Receiver), &hello(Role::Sender), [1, 2], [a, b]).map(Result::unwrap);
    assert_ne!(a.session_id, b.session_id);
}

#[test]
fn only_the_sender_of_share_says_what_is_shared() {
    let hello = |operation, role, shared_values| {
        let mut hello = hello(role);
        hello.spec.operation = operation;
        hello.spec.terms.shared_values = shared_values;
        hello
    };
    let hellos = |operation, said: [bool; 2]| [0, 1].map(|i| hello(operation, Role::ALL[i], said[i]));
    for said in [false, true] {
        let [ours, theirs] = hellos(&SHARE, [false, said]);
        for agreement in both(&ours, &theirs, [1, 2], connections()) {
            assert_eq!(agreement.unwrap().hello.spec.terms.shared_values, said);
        }
    }
    // The receiver, and the sender of another operation.
    for (operation, said, who) in [(&SHARE, [true, false], 1), (&COUNT, [false, true], 0)] {
        let refused = &agree_both(connections(), hellos(operation, said))[who];
        assert!(matches!(refused, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{refused:?}");
    }
}

#[test]
fn every_term_that_differs_is_reported_on_both_sides_with_both_values() {
    type Change<'a> = (&'static str, &'static str, fn(&mut Hello), &'a str, &'a str);
    let list = testing::parties(2).pop().map(|me| hexadecimal(&me.roster().digest()));
    let other_list: &str = list.as_ref().unwrap();
    let changes: [Change; 14] = [
        ("operation", "operation", |h| h.spec.operation = &COUNT, "sum", "count"),
        ("purpose", "check or run (`veilset check`)", |h| h.check = true, "run", "check"),
        (
            "parties",
            "hash of the list of parties (`parties`)",
            |h| h.spec.parties = testing::parties(2).pop(),
            "none",
            other_list,
        ),
        ("output", "who gets the result (`both`)", |h| h.spec.terms.both = true, "receiver", "both"),
        ("key_columns", "number of key columns (`key`)", |h| h.key_columns = 2, "1", "2"),
        ("normalisation", "normalisation of keys", |h| h.normalisation = "trim".into(), "none", "trim"),
        ("max_row", "`max_row`", |h| h.spec.terms.max_row = 128, "64", "128"),
        (
            "sent_columns",
            "columns sent (`send_columns`, `receive_columns`)",
            |h| h.spec.sent_columns = vec!["a".into(), "b".into()],
            "none",
            r#""a", "b""#,
        ),
        ("min_count", "`min_count`", |h| h.spec.terms.min_count = u64::MAX, "0", "18446744073709551615"),
        ("value_scale", "decimal places of the values (`scale`)", |h| h.spec.value_scale = 2, "0", "2"),
        (
            "modulus_bits",
            "bits of the sum's modulus (`modulus`)",
            |h| h.spec.terms.modulus = Modulus::Bits128,
            "64",
            "128",
        ),
        ("malicious_sender", "`malicious_sender`", |h| h.spec.terms.malicious_sender = true, "no", "yes"),
        (
            "reveal_count_to_sender",
            "`reveal_count_to_sender`",
            |h| h.spec.terms.reveal_count = true,
            "no",
            "yes",
        ),
        // That there is no job without shards follows.
        ("shards", "`shards`", |h| h.spec.terms.shards = 4, "0", "4"),
    ];
    let base = |role| {
        let mut hello = hello(role);
        hello.spec.operation = &SUM;
        hello
    };
    // What the table lacks has a test of its own.
    let all_terms = base(Role::Receiver).terms().into_iter().map(|term| term.key);
    assert!(all_terms.eq(changes.iter().map(|c| c.0).chain(["job"])));
    let receiver = base(Role::Receiver);
    let mut all = base(Role::Sender);
    for (term, what, change, ours, theirs) in changes {
        let mut sender = base(Role::Sender);
        change(&mut sender);
        change(&mut all);
        let difference = |ours: &str, theirs: &str| {
            let (ours, theirs) = (ours.into(), theirs.into());
            Error::Disagreement(vec![Difference::new(Seat::PEER, term, what, ours, theirs)])
        };
        let [a, b] = both(&receiver, &sender, [1, 2], connections()).map(Result::unwrap_err);
        let [a, b] = [a, b].map(|e| match e {
            Error::Disagreement(mut differences) => {
                // As users of the library see it.
                let shown = crate::spelling::plain(differences[0].what);
                assert_eq!(shown, what);
                differences[0].what = what;
                Error::Disagreement(differences)
            }
            e => e,
        });
        assert_eq!((a, b), (difference(ours, theirs), difference(theirs, ours)));
    }
    // Several differences are all reported, in the order of the table, except those that follow from the operation.
    let reported = |all: &Hello| {
        both(&receiver, all, [1, 2], connections()).map(|e| match e.unwrap_err() {
            Error::Disagreement(differences) => differences.iter().map(|d| d.term).collect::<Vec<_>>(),
            e => panic!("{e:?}"),
        })
    };
    let names = changes.iter().map(|c| c.0);
    assert_eq!(
        reported(&all),
        [(); 2].map(|()| names.clone().filter(|n| !OF_OPERATION.contains(n)).collect::<Vec<_>>())
    );
    all.spec.operation = receiver.spec.operation;
    assert_eq!(reported(&all), [(); 2].map(|()| names.clone().skip(1).collect::<Vec<_>>()));
    // The row width is not reported if it differs only because one side sends columns.
    let (mut none, mut some) = (base(Role::Receiver), base(Role::Sender));
    (none.spec.terms.max_row, some.spec.sent_columns) = (0, vec!["a".into()]);
    for e in both(&none, &some, [1, 2], connections()).map(Result::unwrap_err) {
        assert!(matches!(&e, Error::Disagreement(d) if d.len() == 1 && d[0].term == "sent_columns"), "{e}");
    }
}

/// A job of one side only has one cause, the shards; where both have shards, the job is a difference of its own.
#[test]
fn a_job_that_differs_is_reported_unless_one_side_has_no_shards() {
    let begun = |shards, begun: Option<u8>, workers| {
        let job = begun.map(|byte| SessionId::of([byte; 32]));
        move |role| {
            let mut hello = Hello { job, workers, ..hello(role) };
            hello.spec.terms.shards = shards;
            hello
        }
    };
    let new = |shards| begun(shards, None, false);
    let cases = [
        (new(4), new(0), &["shards"][..]),
        (begun(4, Some(1), false), new(0), &["shards"]),
        (begun(4, None, true), new(0), &["shards"]),
        (new(4), new(8), &["shards"]),
        (begun(4, Some(1), false), new(4), &["job"]),
        (begun(4, Some(1), false), begun(4, Some(2), false), &["job"]),
        (begun(4, None, true), new(4), &["job"]),
        (begun(4, Some(1), false), new(8), &["shards", "job"]),
    ];
    for (ours, theirs, expected) in cases {
        let [receiver, sender] = [ours(Role::Receiver), theirs(Role::Sender)];
        for e in both(&receiver, &sender, [1, 2], connections()).map(Result::unwrap_err) {
            let Error::Disagreement(differences) = e else { panic!("{e:?}") };
            assert_eq!(differences.iter().map(|d| d.term).collect::<Vec<_>>(), expected);
        }
    }
}

/// No protocol is for both, so which ones the two sides allow says nothing more.
#[test]
fn the_protocols_are_not_reported_if_only_one_side_reveals_the_count() {
    let hello = |role, reveal_count, protocol: &'static Protocol| {
        let mut hello = hello(role);
        hello.spec.candidates = Choice::of(protocol).into();
        hello.spec.terms.reveal_count = reveal_count;
        hello
    };
    for (reveals, expected) in [(true, "reveal_count_to_sender"), (false, "protocol")] {
        let hellos = [hello(Role::Receiver, reveals, &SIGMA_DH), hello(Role::Sender, false, &CWPRF)];
        for e in both(&hellos[0], &hellos[1], [1, 2], connections()).map(Result::unwrap_err) {
            let Error::Disagreement(differences) = e else { panic!("{e:?}") };
            assert_eq!(differences.iter().map(|d| d.term).collect::<Vec<_>>(), [expected]);
        }
    }
}

#[test]
fn the_same_role_twice_is_reported_on_both_sides() {
    for role in [Role::Receiver, Role::Sender] {
        for e in both(&hello(role), &hello(role), [1, 2], connections()).map(Result::unwrap_err) {
            let Error::Disagreement(differences) = e else { panic!("{e:?}") };
            assert_eq!(differences.len(), 1);
            assert_eq!((differences[0].term, differences[0].what), ("role", crate::spelling::ROLE.marked()));
            assert_eq!(differences[0].ours, role.name());
            assert!(differences[0].theirs.starts_with(role.name()));
            assert!(differences[0].theirs.contains("one side must be the receiver"));
        }
    }
}

#[test]
fn another_version_is_reported_as_such() {
    for version in [0, 1, PROTOCOL_VERSION + 1, 256, u16::MAX] {
        let e = against(vec![(PREAMBLE, preamble(version))]);
        assert!(matches!(e, Error::Disagreement(_)), "{e:?}");
        assert!(
            e.to_string().contains(&format!("ours is {PROTOCOL_VERSION}, the peer's is {version}")),
            "{e}"
        );
    }
}

/// The hello that veilset 0.2.0 sent does not matter: both versions are named.
#[test]
fn a_peer_of_the_last_version_is_refused_with_both_versions() {
    let hello = include_str!("../../vectors/hello-3.json").trim_end();
    let e = against(vec![(PREAMBLE, preamble(3)), (HELLO, hello.into())]).to_string();
    assert!(e.contains("ours is 4, the peer's is 3") && e.contains("version of the protocol"), "{e}");
    // As this version reads it, it has speeds without names.
    let e = WireHello::from_bytes(hello.as_bytes()).err().unwrap().to_string();
    assert!(e.contains("does not fit this version"), "{e}");
}

#[test]
fn what_is_not_veilset_is_reported_as_such() {
    let frame = |bytes: &[u8]| (PREAMBLE, bytes.to_vec());
    let cases = [
        (frame(b"VEILSET\0\x01\0"), "not veilset"),
        (frame(b"veilset \x01\0"), "not veilset"),
        (frame(&preamble(PROTOCOL_VERSION)[..9]), "of 10 bytes was expected"),
        (frame(b"veilset\0\x01\0\0"), "of 10 bytes was expected"),
        ((HELLO, preamble(PROTOCOL_VERSION)), "of 10 bytes was expected"),
    ];
    for (frame, words) in cases {
        let e = against(vec![frame]);
        assert!(
            matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }) && e.to_string().contains(words),
            "{e}"
        );
    }
}

#[test]
fn a_hello_that_is_not_one_is_the_peers_fault() {
    let good = String::from_utf8(WireHello::new(&hello(Role::Sender), [9; 32]).to_bytes().unwrap()).unwrap();
    let with = |from: &str, to: &str| {
        assert_ne!(good, good.replacen(from, to, 1), "{from}");
        good.replacen(from, to, 1).into_bytes()
    };
    let nonce = "09".repeat(32);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", vec![]),
        ("not JSON", b"hello".to_vec()),
        ("not an object", b"[]".to_vec()),
        ("null", b"null".to_vec()),
        ("fields missing", b"{}".to_vec()),
        ("half of it", good.as_bytes()[..good.len() / 2].to_vec()),
        ("something behind it", [good.as_bytes(), b"{}"].concat()),
        (
            "not UTF-8",
            with("\"none\"", "\"nonX\"").iter().map(|&b| if b == b'X' { 0xff } else { b }).collect(),
        ),
        ("half a surrogate pair", with("\"none\"", r#""\ud800""#)),
        ("an unknown field", with("{", r#"{"colour":"red","#)),
        ("an unknown field with escapes", with("{", r#"{"\u001b[2J":1,"#)),
        ("a field twice", with("{", r#"{"role":"sender","#)),
        ("another type", with("\"none\"", "7")),
        ("padding that is neither yes nor no", with("\"padded\":false", "\"padded\":0")),
        ("a term missing", with("[\"operation\",\"union\"],", "")),
        ("a term twice", with("[\"operation\",", "[\"operation\",\"union\"],[\"operation\",")),
        ("an unknown term", with("\"operation\"", "\"colour\"")),
        (
            "terms in another order",
            with(
                "[\"operation\",\"union\"],[\"purpose\",\"run\"]",
                "[\"purpose\",\"run\"],[\"operation\",\"union\"]",
            ),
        ),
        ("a term of three words", with("\"operation\",", "\"operation\",\"x\",")),
        ("no candidates", with(DH_ALONE, "[]")),
        ("a candidate twice", with(DH_ALONE, "[[\"dh\",\"curve25519\"],[\"dh\",\"curve25519\"]]")),
        ("an unknown protocol", with("\"dh\"", "\"poprf\"")),
        ("an unknown group", with("\"curve25519\"", "\"p257\"")),
        ("a group of another protocol", with("\"curve25519\"", "\"ristretto255\"")),
        ("hundreds of candidates", with(DH_ALONE, &format!("[{}]", [DH_NAMED; 600].join(",")))),
        ("thousands of candidates", with(DH_ALONE, &format!("[{}]", [DH_NAMED; 6000].join(",")))),
        ("a filter without a digest", with("{", r#"{"filter":["zz",1,1],"#)),
        ("a filter of two words", with("{", r#"{"filter":["zz",1],"#)),
        ("a filter of less than nothing", with("{", &format!(r#"{{"filter":["{nonce}",-1,1],"#))),
        ("a short nonce", with(&nonce, &nonce[2..])),
        ("a long nonce", with(&nonce, &format!("{nonce}00"))),
        ("a nonce of other letters", with(&nonce, &nonce.replace('9', "g"))),
        ("a nonce in capitals", with(&nonce, &nonce.replace('9', "A"))),
        ("deep nesting", with("\"none\"", &"[".repeat(3000))),
        ("too long", with("\"none\"", &format!("\"{}\"", "x".repeat(MAX_HELLO)))),
    ];
    for (name, bytes) in cases {
        let e = against(vec![(PREAMBLE, preamble(PROTOCOL_VERSION)), (HELLO, bytes)]);
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{name}: {e:?}");
        let text = e.to_string();
        assert!(text.contains("hello") && text.contains("misbehaves"), "{name}: {text}");
        assert!(text.len() < 400 && !text.contains('\u{1b}'), "{name}: {text}");
    }
}

/// The candidates of a hello as they are sent.
const DH_ALONE: &str = r#"[["dh","curve25519"]]"#;
const DH_NAMED: &str = r#"["dh","curve25519"]"#;

/// What is sent after the hellos, by tags.
fn tags_after_hello(connections: &mut [Connection; 2]) -> [Shared; 2] {
    let seen = [Shared::default(), Shared::default()];
    for (connection, seen) in connections.iter_mut().zip(&seen) {
        connection.channel.record(Recording::to_writer(seen.clone()));
    }
    seen
}

fn tags(seen: &Shared) -> Vec<u16> {
    split_frames(&seen.bytes()).into_iter().map(|(tag, _)| tag).collect()
}

#[test]
fn sizes_before_an_agreement_are_refused() {
    let size = (Message::new(3, "size"), vec![0; 32]);
    let hello = WireHello::new(&hello(Role::Sender), [9; 32]).to_bytes().unwrap();
    for script in [
        vec![size.clone()],
        vec![(PREAMBLE, preamble(PROTOCOL_VERSION)), size.clone()],
        // A choice instead of the size, although there is nothing to choose.
        vec![(PREAMBLE, preamble(PROTOCOL_VERSION)), (HELLO, hello), (Message::new(5, "choice"), vec![0; 8])],
    ] {
        let e = against(script);
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e:?}");
    }
}

#[test]
fn the_peers_words_do_no_harm_to_a_terminal() {
    let mut wire = WireHello::new(&hello(Role::Sender), [9; 32]);
    wire.terms[0].1 = format!("\u{1b}[2J\n\u{202e}{}", "x".repeat(2000));
    wire.role = "\u{7}king".into();
    let e = against(vec![(PREAMBLE, preamble(PROTOCOL_VERSION)), (HELLO, wire.to_bytes().unwrap())]);
    let Error::Disagreement(differences) = &e else { panic!("{e:?}") };
    assert!(differences.len() == 2 && differences.iter().all(|d| d.theirs.len() < 300), "{e}");
    assert!(differences.iter().all(|d| d.theirs.chars().all(|c| c.is_ascii_graphic() || c == ' ')), "{e}");
}

#[test]
fn sizes_beyond_the_limit_are_refused_on_either_side() {
    let good = WireHello::new(&hello(Role::Sender), [9; 32]).to_bytes().unwrap();
    let size = |n: u64| (Message::new(3, "size"), n.to_le_bytes().to_vec());
    for n in [MAX_SET as u64 + 1, u64::MAX] {
        let e = against(vec![(PREAMBLE, preamble(PROTOCOL_VERSION)), (HELLO, good.clone()), size(n)]);
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{e:?}");
        assert!(e.to_string().contains(&format!("its set of {n} items is more than this version")), "{e}");
    }
    let [us, mut peer] = connections();
    let e = agree(us, &hello(Role::Receiver), MAX_SET + 1, &mut Prng::from_seed(&[1; 32])).err().unwrap();
    assert!(matches!(e, Error::Usage(_)), "{e:?}");
    assert!(peer.channel.rx.recv_bytes(PREAMBLE, 10).is_err(), "nothing was sent");
}

#[test]
fn a_peer_that_leaves_or_repeats_us_is_an_error() {
    let good = WireHello::new(&hello(Role::Sender), [9; 32]).to_bytes().unwrap();
    let ours = WireHello::new(&hello(Role::Receiver), [9; 32]).to_bytes().unwrap();
    let script = [(PREAMBLE, preamble(PROTOCOL_VERSION)), (HELLO, good)];
    for n in 0..script.len() {
        let e = against(script[..n].to_vec());
        assert!(matches!(e, Error::Network(_)), "{n}: {e:?}");
    }
    let e = against(vec![(PREAMBLE, preamble(PROTOCOL_VERSION)), (HELLO, ours)]);
    assert!(matches!(e, Error::Disagreement(_)), "{e:?}");
}

#[test]
fn an_introduction_gives_both_sides_one_id_and_every_pair_of_nonces_another() {
    let meet = |receiver: u8, sender: u8| {
        let (mut a, mut b) = Channel::pair();
        let there = thread::spawn(move || {
            introduce(&mut b, Role::Sender, &mut Prng::from_seed(&[sender; 32])).unwrap()
        });
        let ours = introduce(&mut a, Role::Receiver, &mut Prng::from_seed(&[receiver; 32])).unwrap();
        assert_eq!(ours, there.join().unwrap());
        ours
    };
    let all = [meet(1, 2), meet(1, 3), meet(3, 2), meet(2, 1)];
    assert!(all.iter().enumerate().all(|(i, a)| all[i + 1..].iter().all(|b| a != b)));
}

/// Runs the agreement on both sides.
fn agree_both(connections: [Connection; 2], hellos: [Hello; 2]) -> [Result<(SessionId, usize)>; 2] {
    let mut parties = connections.into_iter().zip(hellos).enumerate().map(|(i, (connection, hello))| {
        thread::spawn(move || {
            let mut rng = Prng::from_os()?;
            let (handshake, proposal) = agree(connection, &hello, i + 1, &mut rng)?;
            let Handshake { mut mesh, .. } = handshake;
            let confirmed = mesh.each(|_, channel| crate::operations::confirm(channel, &proposal.session_id));
            mesh.finish(confirmed)?;
            Ok((proposal.session_id, proposal.parties.peer().announced.size))
        })
    });
    let [a, b] = [parties.next().unwrap(), parties.next().unwrap()];
    [a.join().unwrap(), b.join().unwrap()]
}

#[test]
fn a_session_over_tls_from_hello_to_confirmation_or_disagreement() {
    let hello = |role, max_row| Hello {
        spec: Spec {
            candidates: Choice::of(&CWPRF).into(),
            terms: Terms { max_row, ..Terms::default() },
            ..Spec::new(&INTERSECT, role)
        },
        check: false,
        key_columns: 1,
        normalisation: "none".into(),
        filter: None,
        job: None,
        workers: false,
        speeds: None,
        padded: false,
    };
    let (a, b) = (identity(), identity());
    let meet = || {
        let listening = listen(tls(&a, &b), seconds(60));
        let there = connect(&listening.address, &tls(&b, &a), seconds(60)).unwrap();
        [listening.run.join().unwrap().unwrap(), there]
    };
    let mut ids = std::collections::HashSet::new();
    for _ in 0..5 {
        let ends = agree_both(meet(), [hello(Role::Receiver, 64), hello(Role::Sender, 64)]);
        let [(here, its_size), (there, our_size)] = ends.map(Result::unwrap);
        assert_eq!((its_size, our_size), (2, 1));
        assert!(here == there && ids.insert(here));

        let ends = agree_both(meet(), [hello(Role::Receiver, 64), hello(Role::Sender, 65)]);
        for e in ends.map(Result::unwrap_err) {
            assert!(matches!(e, Error::Disagreement(_)), "{e:?}");
        }
    }
}

/// The receiver's filter: its size is bounded, and it comes with a protocol that uses one.
#[test]
fn a_filter_that_cannot_be_is_the_peers_fault() {
    let facts = |capacity, queries| FilterFacts { digest: [7; 32], capacity, queries };
    let say = |protocols: &[&'static Protocol], facts: FilterFacts| {
        let candidates: Vec<_> = protocols.iter().map(|protocol| Choice::of(protocol)).collect();
        let mut ours = testing::hello(&COUNT, Role::Sender);
        ours.spec.candidates = testing::choices(&candidates);
        let mut theirs = Hello { filter: Some(facts), ..ours.clone() };
        theirs.spec.role = Role::Receiver;
        let [us, peer] = connections();
        let Channel { mut tx, rx, .. } = peer.channel;
        tx.send_bytes(PREAMBLE, &preamble(PROTOCOL_VERSION)).unwrap();
        tx.send_bytes(HELLO, &WireHello::new(&theirs, [9; 32]).to_bytes().unwrap()).unwrap();
        drop(tx);
        let mut handshake = Handshake::new(us.into(), &ours.spec)?;
        let ours = (ours, Announced { size: 5, padded: false });
        let met = handshake.meet(ours.0, ours.1, &mut Prng::from_seed(&[1; 32]));
        drop(rx);
        met.map(|(_, Proposal { hello, .. })| hello.filter.zip(hello.spec.terms.filter))
    };
    let most = crate::membership::encrypted_filter::MOST_ITEMS;
    for (protocols, facts) in [
        (&[&DC17][..], facts(0, 1)),
        (&[&DC17], facts(1, 0)),
        (&[&DC17], facts(most + 1, 1)),
        (&[&DC17], facts(1, usize::MAX)),
        (&[&CWPRF], facts(1, 1)),
        (&[&DC17, &CWPRF], facts(1, 1)),
    ] {
        let error = say(protocols, facts).unwrap_err();
        assert!(matches!(&error, Error::Peer { fault: Fault::Misbehaved, .. }), "{error}");
    }
    let (said, agreed) = say(&[&DC17], facts(most, most)).unwrap().unwrap();
    assert_eq!((said, agreed.held, agreed.owner), (facts(most, most), false, Some(owner(&fingerprint("b")))));
}

/// Speeds that no machine has end the agreement; those that one may have are told.
#[test]
fn absurd_speeds_are_refused() {
    type Change = dyn Fn(&mut (u64, Vec<(String, u64)>));
    const COUNT: usize = crate::work::Primitive::ALL.len();
    let good = Hello { speeds: Some(Speeds::built_in(2)), ..hello(Role::Sender) };
    let wire = |change: &Change| {
        let mut wire = WireHello::new(&good, [9; 32]);
        change(wire.speeds.as_mut().unwrap());
        wire
    };
    assert_eq!(wire(&|_| ()).speeds().unwrap(), good.speeds);
    assert_eq!(WireHello::new(&hello(Role::Sender), [9; 32]).speeds().unwrap(), None);
    let most = wire(&|speeds| speeds.0 = 0xffff).speeds().unwrap();
    assert_eq!(most.map(|speeds| speeds.threads), Some(0xffff));
    // A later version may have more primitives, or fewer.
    let more = wire(&|speeds| speeds.1.insert(0, ("of tomorrow".into(), 0))).speeds().unwrap();
    assert_eq!(more, good.speeds);
    let doubled = |speeds: &mut (u64, Vec<(String, u64)>)| {
        speeds.1.iter_mut().for_each(|(_, time)| *time *= 2);
        speeds.1.remove(7);
    };
    let (fewer, ours) = (wire(&doubled).speeds().unwrap().unwrap(), Speeds::built_in(2));
    for (at, primitive) in crate::work::Primitive::ALL.into_iter().enumerate() {
        let times = if at == 7 { 1 } else { 2 };
        assert_eq!(fewer.picoseconds(primitive), times * ours.picoseconds(primitive), "{primitive:?}");
    }
    let changes: [&Change; 6] = [
        &|speeds| speeds.0 = 0,
        // More than a party can have; they are factors and divisors in estimates.
        &|speeds| speeds.0 = 0x1_0000,
        &|speeds| speeds.0 = u64::MAX,
        &|speeds| speeds.1[3].1 = 0,
        &|speeds| speeds.1[COUNT - 1].1 = u64::MAX,
        &|speeds| speeds.1[0].0 = speeds.1[1].0.clone(),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let script = vec![(PREAMBLE, preamble(PROTOCOL_VERSION)), (HELLO, wire(change).to_bytes().unwrap())];
        let e = against(script);
        assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }), "{i}: {e:?}");
        assert!(e.to_string().contains("speeds that no machine has"), "{i}: {e}");
    }
}

/// A parser that reads what the peer sent names fields in backquotes, which are no settings of ours.
#[test]
fn what_a_peer_made_a_parser_say_is_spelled_by_no_front_end() {
    let mut hello: serde_json::Value =
        serde_json::from_slice(&WireHello::new(&hello(Role::Sender), [0; 32]).to_bytes().unwrap()).unwrap();
    hello.as_object_mut().unwrap().remove("role");
    let e = WireHello::from_bytes(&serde_json::to_vec(&hello).unwrap()).err().unwrap();
    let spelled = crate::spelling::spell(&e.marked(), |named| format!("<{named:?}>"));
    assert!(spelled.contains("(missing field `role`"), "{spelled}");
    // A name that is marked as only ours are.
    let mut forged = WireHello::new(&self::hello(Role::Sender), [0; 32]);
    forged.candidates = vec![(crate::spelling::KEY.to_string(), "`key`".into())];
    let e = forged.candidates().err().unwrap();
    let spelled = crate::spelling::spell(&e.marked(), |named| format!("<{named:?}>"));
    assert!(spelled.contains("\"\\u{fdd0}key\\u{fdd1}\" over \"`key`\""), "{spelled}");
}
