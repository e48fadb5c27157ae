use super::*;
use crate::artefact::filter::FilterFacts;
use crate::channel::{Channel, Recording, WireCount};
use crate::context::Context;
use crate::error::{Fault, Seat};
use crate::hashed::HashedSet;
use crate::item::{ItemSet, Items, encode_key};
use crate::net::Connection;
use crate::operations::{COUNT, INTERSECT, Operation, Role, SUM, Terms, UNION};
use crate::params::MAX_SET;
use crate::protocols::{self, CM20, CWPRF, DH_PSI, Protocol, SIGMA_AHE, SIGMA_DH, VOLE};
use crate::session::agreement::exchange_sizes;
use crate::session::handshake::within_limits;
use crate::session::stages::AGREEING;
use crate::session::{Hello, Party};

use crate::testing::{Garble, SEEDS, Shared, overlapping, split_frames};

pub(super) const MAX_ROW: usize = 3000;

fn request<'a>(
    operation: &'static Operation,
    role: Role,
    set: &'a ItemSet,
    values: &'a [i128],
) -> Request<'a> {
    let terms = Terms { max_row: MAX_ROW, ..Terms::default() };
    Request::new(operation, role, set).with(|r| {
        r.spec.candidates = Choice::of(&CWPRF).into();
        r.local.max_peer_items = 100;
        r.input.values = values;
        r.spec.terms = terms;
    })
}

pub(super) fn connection(channel: Channel) -> Connection {
    Connection { exporter: [3u8; 32].into(), ..Connection::unprotected(channel, WireCount::default()) }
}

/// How a run ends, and what the other side says after that.
fn run_to_the_end(connection: Connection, request: &Request, rng: &mut Prng) -> String {
    let mut prepared = request.prepare(rng).unwrap();
    let mut handshake = Handshake::new(connection.into(), &request.spec).unwrap();
    let agreed = handshake.approved(&prepared, false, &mut (), rng).and_then(|proposal| {
        prepared.begin(&proposal, &mut handshake.mesh, &mut ())?;
        Ok(proposal)
    });
    let Handshake { mut mesh, pairs, clock, .. } = handshake;
    let Ours::Whole(set, _) = &prepared.ours else { panic!("not in one piece") };
    let end = agreed.and_then(|proposal| {
        let whole = Whole { request, proposal: &proposal, set, attachment: None };
        whole.run(&mut mesh, pairs, &clock, rng).map(drop)
    });
    let last = mesh.only().unwrap().explain(Error::Network("it left without a word".into()));
    format!("{end:?}, {last}")
}

#[test]
fn a_group_that_the_protocol_does_not_work_in_is_refused() {
    let set = overlapping(3, 0, 0.0).0;
    for protocol in protocols::ALL {
        let operation = protocol.offers[0].operation;
        let request = Request::new(operation, Role::Receiver, &set).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.spec.terms = Terms { reveal_count: protocol.offers[0].reveals_count, ..Terms::default() };
        });
        let request = request.with(|r| r.spec.terms = Terms { max_row: MAX_ROW, ..request.spec.terms });
        assert_eq!(
            (request.spec.candidates.first.group, request.check()),
            (protocol.groups[0], Ok(())),
            "{protocol}"
        );
        for group in [protocols::groups::CURVE25519, protocols::groups::RISTRETTO255, "p384"] {
            let request = request.with(|r| r.spec.candidates.first.group = group);
            let works = protocol.groups.contains(&group);
            assert_eq!(request.check().is_ok(), works, "{protocol} {group}");
            assert_eq!(request.hello(false).spec.candidates, Choice { protocol, group }.into());
            let set = HashedSet::new(&set);
            let task = Task {
                operation,
                role: Role::Receiver,
                group,
                set: &set,
                values: &[],
                payloads: const { &Items::new() },
                terms: request.spec.agreed_terms(),
                filter: None,
            };
            let (mut ch, _) = Channel::pair();
            let rng = &mut Prng::from_seed(&[1; 32]);
            let mut cx = Context::new(&mut ch, &crate::testing::ANY_SESSION, rng);
            let run = protocols::run(protocol, &task, &mut cx, Announced { size: 0, padded: false });
            let refused = run.err().is_some_and(|e| matches!(e, Error::Usage(_)));
            assert_eq!(refused, !works, "{protocol} {group}");
        }
    }
}

/// Runs both sides; the cheat flips a bit of one frame. Returns how the run ends for the honest side, and all
/// that the cheat sees: every byte it receives and how the run ends for it.
fn run_with(
    honest: &Request,
    cheat: &Request,
    tag: u8,
    at: Option<usize>,
) -> (Result<RunOutcome>, (Vec<u8>, String)) {
    let (ours, theirs) = Channel::pair();
    let sees = Shared::default();
    std::thread::scope(|s| {
        let cheat = s.spawn(|| {
            let (sink, source) = theirs.into_halves();
            let mut channel = Channel::from_halves(Box::new(Garble { sink, tag, at }), source);
            channel.record(Recording::to_writer(sees.clone()));
            run_to_the_end(connection(channel), cheat, &mut Prng::from_seed(&SEEDS[1]))
        });
        let result = run(connection(ours), honest, &mut Prng::from_seed(&SEEDS[0]));
        let end = cheat.join().unwrap();
        (result, (sees.bytes(), end))
    })
}

/// Runs in which the cheat flips a bit at each of these places. Some of them give the honest side no result, but the
/// cheat sees no difference. Returns how many were detected.
fn unseen(honest: &Request, cheat: &Request, tag: u8, places: impl Iterator<Item = Option<usize>>) -> usize {
    let runs: Vec<_> = places.map(|at| run_with(honest, cheat, tag, at)).collect();
    let what = format!("{} {} {}", honest.spec.operation, honest.spec.candidates.first, honest.spec.role);
    assert!(runs.iter().all(|(_, sees)| *sees == runs[0].1), "{what}");
    assert_eq!(runs[0].1.1, "Ok(()), network: it left without a word", "{what}");
    let lies = runs.iter().filter_map(|(result, _)| result.as_ref().err());
    lies.inspect(|e| assert!(e.to_string().contains("do not tell any other party"), "{what}: {e}")).count()
}

#[test]
fn a_cheat_does_not_see_whether_its_lie_came_to_light() {
    let (n_y, n_x) = (7, 8);
    let (y, x) = overlapping(n_y, n_x, 0.6);
    let values = [1000; 8];
    // Four of the eight items match. A changed row is detected if it is read, and a changed sum if the values cannot
    // have it. In union the second byte of a row's length becomes too large; in sum a byte of the masked sum changes.
    let rows = |width: usize| (0..n_x).map(|row| Some(row * width + 1)).collect::<Vec<_>>();
    for (operation, honest, tag, places, lies) in [
        (&INTERSECT, Role::Receiver, 0x41, rows(16), 4),
        (&UNION, Role::Receiver, 0x41, rows(MAX_ROW + 2), 4),
        (&SUM, Role::Sender, 0x53, vec![None, Some(11), Some(16)], 2),
        // The union that the receiver sends on: bytes of rows that are the sender's own, and of others.
        (&UNION, Role::Sender, 0x73, (0..9).map(|row| Some(row * (MAX_ROW + 2) + 3)).collect(), 6),
    ] {
        let mut receiver = request(operation, Role::Receiver, &y, &[]);
        let mut sender = request(operation, Role::Sender, &x, &values);
        (receiver.spec.terms.both, sender.spec.terms.both) = (tag == 0x73, tag == 0x73);
        let (honest, cheat) =
            if honest == Role::Receiver { (&receiver, &sender) } else { (&sender, &receiver) };
        assert_eq!(unseen(honest, cheat, tag, places.into_iter()), lies, "{operation}");
    }
    // Nor if it was told the number of matches.
    let revealed = |role, set| {
        let request = request(&UNION, role, set, &[]);
        request.with(|r| {
            r.spec.candidates = Choice::of(&SIGMA_DH).into();
            r.spec.terms = Terms { reveal_count: true, ..request.spec.terms };
        })
    };
    let (receiver, sender) = (revealed(Role::Receiver, &y), revealed(Role::Sender, &x));
    assert_eq!(unseen(&receiver, &sender, 0x41, rows(MAX_ROW + 2).into_iter()), 4);
    let columns = ["note".to_string()];
    let payloads: Items = (0..n_x).map(|i| [i as u8; 5]).collect();
    let by = |protocol, role, set| {
        request(&INTERSECT, role, set, &[]).with(|r| r.spec.candidates = Choice::of(protocol).into())
    };
    for protocol in [&CWPRF, &DH_PSI, &CM20, &VOLE] {
        // Rows with a digest by OT, or under keys that the receiver has for its own items: the length of a payload.
        let (tag, digest) = if protocol == &CWPRF { (0x41, 16) } else { (0x65, 0) };
        let lengths = (0..n_x).map(|row| Some(row * (digest + MAX_ROW + 2) + digest + 1));
        let sent = |role, set| by(protocol, role, set).with(|r| r.spec.sent_columns = columns.to_vec());
        let (receiver, sender) = (sent(Role::Receiver, &y), sent(Role::Sender, &x));
        let sender = sender.with(|r| r.input.payloads = &payloads);
        assert_eq!(unseen(&receiver, &sender, tag, lengths), 4, "{protocol}");
    }
    for protocol in [&CWPRF, &DH_PSI] {
        // The match bit of one of the sender's queries or tags, most of which are dummies.
        let both = |role, set, pad_to| {
            let request = by(protocol, role, set);
            request.with(|r| {
                r.input.pad_to = pad_to;
                r.spec.terms = Terms { both: true, ..request.spec.terms };
            })
        };
        let (receiver, sender) = (both(Role::Receiver, &y, None), both(Role::Sender, &x, Some(64)));
        let lies = unseen(&sender, &receiver, 0x72, std::iter::once(None).chain((0..8).map(Some)));
        assert!((1..=8).contains(&lies), "{protocol}: {lies}");
    }
}

#[test]
fn a_peer_with_more_items_than_we_want_is_refused() {
    let (y, x) = overlapping(3, 5, 0.5);
    let mut receiver = request(&COUNT, Role::Receiver, &y, &[]);
    let sender = request(&COUNT, Role::Sender, &x, &[]);
    for (most, ok) in [(5, true), (4, false)] {
        receiver.local.max_peer_items = most;
        assert_eq!(run_with(&receiver, &sender, 0, None).0.is_ok(), ok, "{most}");
    }
}

/// Records the runs that it is told ended before it was asked.
#[derive(Default)]
struct Hears(Vec<(usize, &'static str)>);

impl Approval for Hears {
    fn approve(&mut self, _: &Proposal) -> Result<()> {
        Err(Error::Refused("asked".into()))
    }
    fn refused(&mut self, proposal: &Proposal, error: &Error) {
        self.0.push((proposal.parties.peer().announced.size, error.kind()));
    }
}

#[test]
fn of_every_run_that_ends_after_our_size_was_sent_somebody_hears() {
    let (y, x) = overlapping(3, 5, 0.5);
    let receiver = request(&UNION, Role::Receiver, &y, &[]).with(|r| r.local.max_peer_items = MAX_SET);
    let sender = request(&UNION, Role::Sender, &x, &[]);
    let hello = Hello { padded: true, ..sender.hello(false) };
    // (the size that the peer sends, if it sends one; our limit; what is heard)
    let cases = [
        (Some(101), 100, Some((101, "refused"))),
        // Too many with the dummies that union inserts.
        (Some(MAX_SET), MAX_SET, Some((MAX_SET, "refused"))),
        (Some(MAX_SET + 1), MAX_SET, Some((0, "peer"))),
        (None, MAX_SET, Some((0, "network"))),
        // It is asked about this one.
        (Some(100), 100, None),
    ];
    for (size, max_peer_items, heard) in cases {
        let (ours, theirs) = Channel::pair();
        let mut hears = Hears::default();
        let request = receiver.with(|r| r.local.max_peer_items = max_peer_items);
        std::thread::scope(|s| {
            s.spawn(|| {
                let mut peer = Handshake::new(connection(theirs).into(), &hello.spec).unwrap();
                let ours = Announced { size: 5, padded: true };
                peer.meet(hello.clone(), ours, &mut Prng::from_seed(&SEEDS[1])).unwrap();
                if let Some(size) = size {
                    let _ = peer.mesh.each(|_, channel| exchange_sizes(channel, size));
                }
            });
            let rng = &mut Prng::from_seed(&SEEDS[0]);
            run_if(connection(ours), request.prepare(rng).unwrap(), &mut hears, rng).unwrap_err();
        });
        assert_eq!(hears.0, heard.into_iter().collect::<Vec<_>>(), "{size:?}");
    }
}

pub(super) fn encoded(key: &str) -> Vec<u8> {
    let mut item = Vec::new();
    encode_key([key.as_bytes()], &mut item);
    item
}

/// Two sets of encoded keys, `common` of them shared: 0..n_y and n_y - common...
pub(super) fn keys(n_y: usize, n_x: usize, common: usize) -> (ItemSet, ItemSet) {
    let set = |from, n| (from..from + n).map(|i| encoded(&format!("{i:03}"))).collect();
    (set(0, n_y), set(n_y - common, n_x))
}

/// Both sides know the sizes before either sends anything else about its set.
#[test]
fn sets_that_are_too_large_together_are_refused_by_both_sides() {
    let (y, x) = keys(5, 4, 2);
    let request = |role, set, pad| {
        let request = Request::new(&UNION, role, set).with(|r| {
            r.spec.candidates = Choice::of(&SIGMA_AHE).into();
            r.input.pad_to = Some(pad);
        });
        request.with(|r| r.spec.terms = Terms { reveal_count: true, ..request.spec.terms })
    };
    for (pads, refused) in [([200, 56], false), ([200, 57], true)] {
        let receiver = request(Role::Receiver, &y, pads[0]);
        let sender = request(Role::Sender, &x, pads[1]);
        let (ours, theirs) = Channel::pair();
        let ends = std::thread::scope(|s| {
            let theirs = s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])));
            [run(connection(ours), &receiver, &mut Prng::from_seed(&SEEDS[0])), theirs.join().unwrap()]
        });
        for end in ends {
            match end {
                Ok(outcome) => assert!(!refused && outcome.parties.peer().announced.padded),
                Err(Error::Refused(what)) => {
                    assert!(refused && what.contains("the receiver has 257;"), "{what}")
                }
                Err(Error::Peer { .. }) => assert!(refused),
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_before_the_peer_hears_of_us() {
    let (y, _) = keys(5, 0, 0);
    let good = Request::new(&UNION, Role::Sender, &y);
    let columns = ["a".to_string()];
    let (large, terms) = ([1i128 << 61; 5], good.spec.terms);
    let both = Terms { both: true, max_row: 3, ..terms };
    let revealed = Terms { reveal_count: true, ..terms };
    let intersect = Request::new(&INTERSECT, Role::Receiver, &y);
    let other = Request::new(&COUNT, Role::Receiver, &y);
    let cases = [
        (good.with(|r| r.input.pad_to = Some(4)), "`pad_to=4`"),
        (good.with(|r| r.input.pad_to = Some(1 << 29)), "supports"),
        (
            good.with(|r| {
                r.input.pad_to = Some(9);
                r.spec.terms = Terms { max_row: 3, ..terms };
            }),
            "`max_row`",
        ),
        // The receiver sends its own items on.
        (
            good.with(|r| {
                r.spec.role = Role::Receiver;
                r.spec.terms = both;
            }),
            "`max_row`",
        ),
        (good.with(|r| r.spec.terms = Terms { malicious_sender: true, ..terms }), "`malicious_sender`"),
        (
            good.with(|r| r.spec.terms = revealed),
            "`reveal_count_to_sender` requires `protocol=sigma-dh, sigma-ahe`",
        ),
        (
            intersect.with(|r| {
                r.spec.candidates = Choice::of(&CM20).into();
                r.spec.terms = revealed;
            }),
            "`reveal_count_to_sender` is not for intersect",
        ),
        (
            good.with(|r| r.spec.candidates = Choice::of(&SIGMA_DH).into()),
            "the sender of union learns how many items match",
        ),
        (
            good.with(|r| {
                r.spec.candidates = Choice::of(&SIGMA_AHE).into();
                r.spec.terms = revealed;
                r.input.pad_to = Some(4097);
            }),
            "at most 256 items of the receiver and 4096 of the sender",
        ),
        (
            good.with(|r| {
                r.spec.candidates = Choice::of(&SIGMA_DH).into();
                r.spec.terms = Terms { both: true, ..revealed };
            }),
            "is pointless with `both`",
        ),
        (good.with(|r| r.spec.candidates = Choice::of(&DH_PSI).into()), "`protocol=dh-psi`"),
        (Request::new(&COUNT, Role::Sender, &y).with(|r| r.spec.sent_columns = columns.to_vec()), "columns"),
        (
            Request::new(&SUM, Role::Sender, &y).with(|r| r.spec.terms = Terms { both: true, ..terms }),
            "`both`",
        ),
        (
            Request::new(&SUM, Role::Sender, &y).with(|r| {
                r.input.values = &large;
                r.input.pad_to = Some(9);
            }),
            "overflow",
        ),
    ];
    good.check().unwrap();
    for (request, what) in cases {
        let Err(Error::Usage(message)) = request.check() else { panic!("{what}") };
        assert!(message.contains(what), "{message}");
        // Before the connection is made.
        let rng = &mut Prng::from_seed(&SEEDS[0]);
        assert_eq!(request.prepare(rng).err(), Some(Error::Usage(message.clone())));
        // Once more before anything is sent: a filter and a job that goes on change what was prepared.
        for checks in [false, true] {
            let (ours, mut theirs) = Channel::pair();
            let hears = Shared::default();
            theirs.record(Recording::to_writer(hears.clone()));
            let prepared = Prepared { request: request.clone(), ..good.prepare(rng).unwrap() };
            let (end, peer) = std::thread::scope(|s| {
                let peer = s.spawn(|| run(connection(theirs), &other, &mut Prng::from_seed(&SEEDS[1])));
                let end = match checks {
                    true => check(connection(ours), &prepared, &mut (), &|_| Ok(1), rng).map(|_| ()),
                    false => run_if(connection(ours), prepared, &mut (), rng).map(|_| ()),
                };
                (end, peer.join().unwrap())
            });
            assert_eq!(end, Err(Error::Usage(message.clone())));
            assert!(matches!(peer, Err(Error::Peer { fault: Fault::GaveUp, .. })), "{peer:?}");
            assert!(split_frames(&hears.bytes()).is_empty(), "{what}");
        }
    }
    // Payloads that do not belong to the items are a defect on our side.
    let payloads: Items = ["a"].iter().collect();
    let wrong = good.with(|r| {
        r.spec.sent_columns = columns.to_vec();
        r.input.payloads = &payloads;
    });
    assert!(matches!(wrong.check(), Err(Error::Bug(_))));
}

#[test]
fn what_was_asked_for_is_what_is_run() {
    let (y, x) = overlapping(7, 8, 0.6);
    let values = [5; 8];
    // Four items match.
    for (min_count, told) in [(4, true), (5, false)] {
        let requests = [(Role::Receiver, &y, &[][..]), (Role::Sender, &x, &values[..])];
        let [receiver, sender] = requests.map(|(role, set, values)| {
            let request = request(&SUM, role, set, values);
            request.with(|r| r.spec.terms = Terms { min_count, ..request.spec.terms })
        });
        let (ours, theirs) = Channel::pair();
        let learned = std::thread::scope(|s| {
            s.spawn(|| run(connection(ours), &receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap());
            run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])).unwrap().learned
        });
        assert!(matches!(learned, Learned::Sum(sum) if sum.is_some() == told), "{min_count}");
    }
    for malicious_sender in [false, true] {
        let request = Request::new(&INTERSECT, Role::Receiver, &y).with(|r| {
            r.spec.candidates = Choice::of(&CM20).into();
            r.spec.terms = Terms { malicious_sender, ..Terms::default() };
        });
        assert_eq!(request.spec.agreed_terms().malicious_sender, malicious_sender);
        assert_eq!(request.hello(false).spec.terms.malicious_sender, malicious_sender);
    }
    for reveal_count in [false, true] {
        let request = Request::new(&UNION, Role::Receiver, &y);
        let request = request.with(|r| r.spec.terms = Terms { reveal_count, ..request.spec.terms });
        assert_eq!(request.spec.agreed_terms().reveal_count, reveal_count);
        assert_eq!(request.hello(false).spec.terms.reveal_count, reveal_count);
    }
}

/// The party's identity comes from the connection, and reaches the approval, the log and the report. Its seat reaches
/// errors about it.
#[test]
fn the_party_of_a_run_is_that_of_its_connection() {
    let (y, x) = overlapping(3, 5, 0.5);
    let receiver = request(&COUNT, Role::Receiver, &y, &[]);
    let sender = request(&COUNT, Role::Sender, &x, &[]).with(|r| r.input.pad_to = Some(9));
    let run_against = |approval: &mut (dyn Approval + Send)| {
        let (ours, theirs) = Channel::pair();
        let ours = Connection { peer_name: Some("south".into()), ..connection(ours) };
        std::thread::scope(|s| {
            s.spawn(|| {
                let rng = &mut Prng::from_seed(&SEEDS[1]);
                run_if(connection(theirs), sender.prepare(rng).unwrap(), approval, rng).is_ok()
            });
            run(ours, &receiver, &mut Prng::from_seed(&SEEDS[0]))
        })
    };
    let announced = Announced { size: 9, padded: true };
    let expected = Party { seat: Seat::PEER, fingerprint: None, name: Some("south".into()), announced };
    assert!(run_against(&mut ()).unwrap().parties.iter().eq([&expected]));
    let error = run_against(&mut Hears::default()).unwrap_err();
    assert_eq!(error.seat(), Some(Seat::PEER), "{error}");
}

/// Says no before or after both sides have said yes, and counts how often it was asked.
#[derive(Default)]
struct No {
    at: usize,
    asked: usize,
}

impl No {
    fn answer(&mut self) -> Result<()> {
        self.asked += 1;
        if self.asked == self.at { Err(Error::Refused("no".into())) } else { Ok(()) }
    }
}

impl Approval for No {
    fn approve(&mut self, proposal: &Proposal) -> Result<()> {
        assert_eq!((proposal.ours.size, proposal.parties.peer().announced.size), (3, 5));
        self.answer()
    }
    fn begins(&mut self, _: &Proposal) -> Result<()> {
        self.answer()
    }
}

#[test]
fn a_refusal_ends_both_sides_and_nothing_of_our_data_goes_out() {
    let (y, x) = overlapping(3, 5, 0.5);
    let receiver = request(&COUNT, Role::Receiver, &y, &[]);
    let sender = request(&COUNT, Role::Sender, &x, &[]);
    for (at, asked) in [(1, 1), (2, 2), (3, 2)] {
        let (ours, mut theirs) = Channel::pair();
        let sees = Shared::default();
        theirs.record(Recording::to_writer(sees.clone()));
        let mut approval = No { at, asked: 0 };
        std::thread::scope(|s| {
            let peer = s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])));
            let rng = &mut Prng::from_seed(&SEEDS[0]);
            let end = run_if(connection(ours), receiver.prepare(rng).unwrap(), &mut approval, rng);
            let peer = peer.join().unwrap();
            if at > 2 {
                assert!(end.is_ok() && peer.is_ok());
                return;
            }
            assert_eq!(end.unwrap_err(), Error::Refused("no".into()));
            let Error::Peer { fault: Fault::GaveUp, what: said, .. } = peer.unwrap_err() else {
                panic!("not the peer")
            };
            assert!(said.contains("its policy refuses this run"), "{said}");
            // Everything that the peer received: preamble, hello, size, and a go if we said yes at first.
            let tags: Vec<u16> = split_frames(&sees.bytes()).into_iter().map(|(tag, _)| tag).collect();
            assert_eq!(tags, [1, 2, 3, 8][..2 + at], "{at}");
        });
        assert_eq!(approval.asked, asked);
    }
}

/// Says no at once.
struct Never;

impl Approval for Never {
    fn approve(&mut self, _: &Proposal) -> Result<()> {
        Err(Error::Refused("no".into()))
    }
}

/// Whoever is refused hears what its own side knows of the cause: that its set is small, where it would learn something.
#[test]
fn a_small_set_is_named_if_the_peer_refuses() {
    let (y, x) = overlapping(3, 10, 0.5);
    let [few, enough] = [&y, &x].map(|set| request(&COUNT, Role::Receiver, set, &[]));
    let cases = [
        (few.clone(), Some("a set of 3,")),
        (few.with(|r| r.input.pad_to = Some(9)), Some("a set of at most 9,")),
        (few.with(|r| r.input.pad_to = Some(10)), None),
        (enough.clone(), None),
        // It learns nothing but a size.
        (few.with(|r| r.spec.role = Role::Sender), None),
    ];
    for (ours, said) in cases {
        let theirs = enough.with(|r| r.spec.role = ours.spec.role.other());
        for checks in [false, true] {
            let (here, there) = Channel::pair();
            let refused = std::thread::scope(|s| {
                let theirs = &theirs;
                s.spawn(move || {
                    let rng = &mut Prng::from_seed(&SEEDS[1]);
                    let prepared = theirs.prepare(rng).unwrap();
                    match checks {
                        true => check(connection(there), &prepared, &mut Never, &|_| Ok(1), rng).map(drop),
                        false => run_if(connection(there), prepared, &mut Never, rng).map(drop),
                    }
                });
                let rng = &mut Prng::from_seed(&SEEDS[0]);
                let prepared = ours.prepare(rng).unwrap();
                match checks {
                    true => check(connection(here), &prepared, &mut (), &|_| Ok(1), rng).map(drop),
                    false => run_if(connection(here), prepared, &mut (), rng).map(drop),
                }
            });
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("its policy refuses this run"), "{text}");
            assert_eq!(text.contains("`allow_small`"), said.is_some(), "{text}");
            assert!(text.contains(said.unwrap_or_default()), "{text}");
        }
    }
    // Of other errors it is not the cause.
    let other = Error::gave_up(None, "it was stopped on request");
    assert_eq!(explained(other.clone(), few.announces_few()), other);
}

#[test]
fn a_check_tells_both_sides_the_sizes_and_how_long_the_other_takes() {
    let (y, x) = overlapping(3, 5, 0.5);
    let receiver = request(&UNION, Role::Receiver, &y, &[]);
    let sender = request(&UNION, Role::Sender, &x, &[]);
    let (ours, theirs) = Channel::pair();
    let check_with = |channel, request: &Request<'_>, milliseconds, seed| {
        let rng = &mut Prng::from_seed(seed);
        let prepared = request.prepare(rng)?;
        check(connection(channel), &prepared, &mut (), &|_| Ok(milliseconds), rng)
    };
    let (here, there) = std::thread::scope(|s| {
        let there = s.spawn(|| check_with(theirs, &sender, 7, &SEEDS[1]));
        (check_with(ours, &receiver, 5, &SEEDS[0]).unwrap(), there.join().unwrap().unwrap())
    });
    for (side, size, milliseconds) in [(&here, 5, 7), (&there, 3, 5)] {
        let theirs = side.proposal.parties.peer().announced.size;
        assert_eq!((theirs, &side.their_milliseconds[..]), (size, &[milliseconds][..]));
    }
    assert!(here.proposal.hello.check);

    // Against a side that runs, it is a disagreement.
    let (ours, theirs) = Channel::pair();
    std::thread::scope(|s| {
        let there = s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])));
        let here = check_with(ours, &receiver, 5, &SEEDS[0]).unwrap_err();
        for e in [here, there.join().unwrap().unwrap_err()] {
            assert!(matches!(&e, Error::Disagreement(d) if d[0].what.contains("veilset check")), "{e}");
        }
    });
}

/// With more than one protocol in common the receiver's order decides, and both sides say what was chosen.
#[test]
fn the_receiver_chooses_among_several_protocols() {
    let (y, x) = keys(40, 30, 11);
    let [dh, vole, cm20] = [&CWPRF, &VOLE, &CM20].map(Choice::of);
    fn by<'a>(
        protocol: &'static Protocol,
        alternatives: &'a [Choice],
        role: Role,
        set: &'a ItemSet,
    ) -> Request<'a> {
        request(&INTERSECT, role, set, &[]).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.spec.candidates.others = alternatives.to_vec();
        })
    }
    for (pads, alternatives, chosen) in [(None, [vole, dh], vole), (Some(60), [cm20, dh], dh)] {
        let theirs = [vole];
        let receiver = by(&DH_PSI, &alternatives, Role::Receiver, &y).with(|r| r.input.pad_to = pads);
        let sender = by(&CWPRF, &theirs, Role::Sender, &x).with(|r| r.input.pad_to = pads);
        let (a, b) = Channel::pair();
        let [ours, there] = std::thread::scope(|s| {
            let there = s.spawn(|| run(connection(b), &sender, &mut Prng::from_seed(&SEEDS[1])).unwrap());
            [run(connection(a), &receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap(), there.join().unwrap()]
        });
        let Learned::Matching(matching) = &ours.learned else { panic!("{:?}", ours.learned) };
        assert_eq!(matching.positions, (29..40).collect::<Vec<u32>>());
        for (request, outcome) in [(&receiver, &ours), (&sender, &there)] {
            assert_eq!(outcome.choice, chosen);
            let report = crate::session::report::Report::new(request, outcome, 0.1).unwrap();
            assert_eq!((report.protocol, report.group), (chosen.protocol.name, chosen.group));
        }
        assert_eq!(ours.session_id, there.session_id);
        // What one sends, the other receives.
        let mirrored = |outcome: &RunOutcome| {
            let all = outcome.messages.iter().map(|m| (m.name, m.sent, m.received));
            all.collect::<std::collections::BTreeSet<_>>()
        };
        let back = mirrored(&there).into_iter().map(|(name, sent, received)| (name, received, sent));
        assert_eq!(mirrored(&ours), back.collect());
        for outcome in [&ours, &there] {
            let stages: Vec<_> = outcome.stages.iter().map(|stage| stage.name).collect();
            assert_eq!(stages[..2], [AGREEING, SETUP], "{stages:?}");
            assert!(stages.contains(&"comparing"), "{stages:?}");
            assert_eq!(stages[stages.len() - 2..], [CONFIRMING, OPENING], "{stages:?}");
        }
    }
}

/// Each of them must be able to run the request.
#[test]
fn every_candidate_is_checked() {
    let (y, _) = keys(4, 4, 0);
    let krtw19 = [Choice::of(&crate::protocols::KRTW19)];
    let request =
        Request::new(&INTERSECT, Role::Receiver, &y).with(|r| r.spec.candidates.others = krtw19.to_vec());
    assert!(
        matches!(request.check(), Err(Error::Usage(m)) if m.contains("`protocol=krtw19` cannot compute intersect"))
    );
    let dh = [Choice::of(&CWPRF)];
    let mut request = Request::new(&INTERSECT, Role::Sender, &y).with(|r| {
        r.spec.candidates = Choice::of(&CM20).into();
        r.spec.candidates.others = dh.to_vec();
    });
    assert!(request.check().is_ok() && request.check_prepared().is_err());
    request.spec.terms.malicious_sender = true;
    assert!(matches!(request.check(), Err(Error::Usage(m)) if m.contains("does not work with dh")));
}

/// With more items than a filter is for, it would err more often.
#[test]
fn sets_that_are_larger_than_the_filter_is_for_are_refused() {
    let limits = |n_y: usize, n_x: usize, role: Role| {
        let facts = FilterFacts { digest: [7; 32], capacity: 10, queries: 20 };
        let hello = Hello { filter: Some(facts), ..crate::testing::hello(&COUNT, role) };
        let (ours, theirs) = if role == Role::Receiver { (n_y, n_x) } else { (n_x, n_y) };
        let proposal = crate::testing::proposal(hello, ours, crate::testing::peer(theirs, false));
        within_limits(&Proposal { choice: Choice::of(&crate::protocols::DC17), ..proposal })
    };
    for role in Role::ALL {
        assert_eq!(limits(10, 20, role), Ok(()));
        let cases = [
            ((11, 20), "the receiver has 11 items, and its filter is for 10."),
            ((10, 21), "the sender has 21 items, and the receiver's filter is for 20."),
        ];
        for ((n_y, n_x), said) in cases {
            let error = limits(n_y, n_x, role).unwrap_err();
            assert!(matches!(&error, Error::Refused(what) if what.contains(said)), "{role}: {error}");
        }
    }
}
