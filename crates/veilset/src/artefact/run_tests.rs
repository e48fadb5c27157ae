//! Whole runs with halves.

use super::*;
use crate::channel::{Canceller, Channel, Recording, Sink};
use crate::error::Fault;
use crate::group::curve25519::Curve25519;
use crate::hash::SessionId;
use crate::item::Items;
use crate::membership::Mqrpmt;
use crate::membership::cwprf::{CwPrf, GolombTags};
use crate::net::Connection;
use crate::operations::intersect::dh_psi;
use crate::operations::{COUNT, INTERSECT, Learned, Operation, Role, Rows, SUM, Terms};
use crate::protocols::{self, Attachment, CM20, Choice, VOLE};
use crate::session::run::{Request, RunOutcome, check, run, run_if};
use crate::session::{Approval, Proposal};
use crate::testing::{SEEDS, Shared, dh_psi_receiver, dh_psi_sender, run_pair, split_frames, under};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use veilset_testing::Draw;

fn connection(channel: Channel) -> Connection {
    Connection::unprotected(channel, Default::default())
}

/// The outcome of a run for both sides, and the tags and lengths of the frames that each received.
type Ends = ([Result<RunOutcome>; 2], [Vec<(u16, usize)>; 2]);

/// Runs both sides, receiver first, with their halves if any.
fn run_with(place: &Place, requests: [&Request; 2], halves: [Option<&Path>; 2]) -> Ends {
    run_approved(place, requests, halves, &mut ())
}

fn run_approved(
    place: &Place,
    requests: [&Request; 2],
    halves: [Option<&Path>; 2],
    approval: &mut (dyn Approval + Send),
) -> Ends {
    let (mut ours, mut theirs) = Channel::pair();
    let seen = [Shared::default(), Shared::default()];
    ours.record(Recording::to_writer(seen[0].clone()));
    theirs.record(Recording::to_writer(seen[1].clone()));
    let side = |i: usize, channel, approval: &mut dyn Approval| {
        let rng = &mut Prng::from_seed(&SEEDS[i]);
        let prepared = match halves[i] {
            Some(half) => requests[i].prepare_with(half, &place.ledger(), &IDENTITY),
            None => requests[i].prepare(rng),
        };
        run_if(connection(channel), prepared?, approval, rng)
    };
    let ends = std::thread::scope(|s| {
        let theirs = s.spawn(|| side(1, theirs, &mut ()));
        [side(0, ours, approval), theirs.join().unwrap()]
    });
    let frames =
        |seen: Shared| split_frames(&seen.bytes()).into_iter().map(|(tag, body)| (tag, body.len())).collect();
    (ends, seen.map(frames))
}

/// The result in comparable form. New items, which arrive in the order of the queries, are sorted.
fn words(outcome: &RunOutcome) -> String {
    match &outcome.learned {
        Learned::Nothing => String::new(),
        Learned::Matching(m) => format!("{:?} {:?}", m.positions, m.payloads.iter().collect::<Vec<_>>()),
        Learned::New(new) => {
            let mut rows: Vec<_> =
                new.items.iter().enumerate().map(|(i, item)| (item, new.payloads.iter().nth(i))).collect();
            rows.sort_unstable();
            format!("{rows:?}")
        }
        Learned::Union(items) => format!("{:?}", items.iter().collect::<Vec<_>>()),
        Learned::Matches(n) => n.to_string(),
        // Shares are random, so only their number is compared.
        Learned::Shares(shares) => format!("{}", shares.shares.len()),
        Learned::Identifiers(_) => panic!("there is no half to prepare for id"),
        Learned::Sum(sum) => format!("{:?}", sum.as_ref().map(|s| (s.matches, s.sum))),
    }
}

#[test]
fn results_and_messages_are_those_of_a_run_without() {
    let place = Place::new();
    let columns = ["note".to_string()];
    let mut runs = 0;
    // Each combination of sizes with each padding.
    let mut draw = Draw::new("runs with halves");
    for (n_y, n_x, common) in [(0, 0, 0), (0, 3, 0), (1, 0, 0), (1, 1, 1), (9, 7, 3)] {
        let (y, x) = (items(0, n_y), items(n_y - common, n_x));
        let payloads: Items = (0..n_x).map(|i| format!("\u{6}note{i:02}")).collect();
        let values = vec![5; n_x];
        for pads in [[None, None], [Some(n_y + 4), None], [Some(n_y), Some(n_x + 3)]] {
            for (operation, Choice { protocol, group }) in draw.some(2, kinds()) {
                let rows = operation.uses.rows != Rows::None;
                let both = operation.uses.both && n_y == 9;
                let request = |role, set, pad_to| {
                    Request::new(operation, role, set).with(|r| {
                        r.spec.candidates = Choice { protocol, group }.into();
                        r.input.pad_to = pad_to;
                        r.spec.sent_columns = if rows { columns.to_vec() } else { vec![] };
                        r.spec.terms = Terms { max_row: 100, both, ..Terms::default() };
                    })
                };
                let receiver = request(Role::Receiver, &y, pads[0]);
                let mut sender = request(Role::Sender, &x, pads[1]);
                if rows {
                    sender.input.payloads = &payloads;
                }
                if operation == &SUM {
                    sender.input.values = &values;
                }
                let (plain, frames) = run_with(&place, [&receiver, &sender], [None, None]);
                for prepared in [[true, false], [false, true], [true, true]] {
                    runs += 1;
                    let name = |i| format!("{runs} {i}");
                    let halves = [(0, &receiver), (1, &sender)].map(|(i, request)| {
                        prepared[i].then(|| place.prepare(&name(i), &request.basis().unwrap()))
                    });
                    let halves = [halves[0].as_deref(), halves[1].as_deref()];
                    let what = format!("{operation} {protocol} {group} {n_y} {n_x} {pads:?} {prepared:?}");
                    let (ends, seen) = run_with(&place, [&receiver, &sender], halves);
                    for i in 0..2 {
                        let (with, without) = (ends[i].as_ref().unwrap(), plain[i].as_ref().unwrap());
                        assert_eq!(words(with), words(without), "{what}");
                        assert_eq!((with.prepared, without.prepared), (prepared[i], false));
                        // The tags' coded length varies with the keys.
                        let lengths = |frames: &[(u16, usize)]| -> Vec<_> {
                            frames.iter().filter(|f| f.0 != 0x21).copied().collect()
                        };
                        assert_eq!(lengths(&seen[i]), lengths(&frames[i]), "{what}");
                    }
                    assert!(halves.iter().flatten().all(|half| !half.exists()), "{what}");
                }
            }
        }
    }
}

/// The operations, and the protocols in their groups, that can use a prepared half.
fn kinds() -> Vec<(&'static Operation, Choice)> {
    let offers = protocols::ALL.into_iter().flat_map(|p| p.offers.iter().map(move |offer| (offer, p)));
    let prepares = offers.filter(|(offer, _)| offer.takes_with(Attachment::Half));
    prepares.flat_map(|(offer, p)| p.choices().map(|choice| (offer.operation, choice))).collect()
}

#[test]
fn under_the_same_key_all_bytes_are_the_same() {
    let key = |rng: &mut Prng| (Key::random(rng), Key::random(&mut Prng::from_seed(&[9; 32])));
    // The generator after the permutation, for a protocol that draws that first.
    let later = |seed, n| {
        let mut rng = Prng::from_seed(seed);
        rng.permutation(n);
        rng
    };
    let bytes = |n_y: usize, n_x: usize, inserted, prepared: bool| {
        let (y, x) = (items(0, n_y), items(n_y / 2, n_x));
        let (mut y, mut x) = (HashedSet::new(&y), HashedSet::padded_from_list(&x, n_x + 2));
        y.insert_listed(inserted);
        let (protocol, n_y, n_x) = (CwPrf(Curve25519, GolombTags), y.len(), x.len());
        run_pair(
            &SessionId::of([5; 32]),
            |cx| {
                if prepared {
                    under(&mut y, key(cx.rng));
                }
                protocol.server(cx, &y, n_x).map(|bits| bits.to_vec())
            },
            |cx| {
                if prepared {
                    under(&mut x, key(&mut later(&SEEDS[1], n_x)));
                }
                protocol.client(cx, &x, n_y)
            },
        )
    };
    let classic = |n_y, n_x, prepared: bool| {
        let (y, x) = (items(0, n_y), items(n_y / 2, n_x));
        let (mut y, mut x) = (HashedSet::new(&y), HashedSet::new(&x));
        let payloads: Items = (0..n_x).map(|_| "payload").collect();
        let terms = Terms { payload: true, max_row: 9, ..Terms::default() };
        run_pair(
            &SessionId::of([5; 32]),
            |cx| {
                if prepared {
                    under(&mut y, Key::with_inverse(&mut later(&SEEDS[0], n_y)));
                }
                dh_psi_receiver(cx, &y, n_x, &terms)
            },
            |cx| {
                if prepared {
                    under(&mut x, key(cx.rng));
                }
                dh_psi_sender(cx, &x, &payloads, n_y, &terms)
            },
        )
    };
    for (n_y, n_x) in [(0, 0), (0, 3), (3, 0), (1, 1), (dh_psi::FRAME + 1, 5)] {
        for inserted in [0, 4] {
            let [with, without] = [true, false].map(|prepared| bytes(n_y, n_x, inserted, prepared));
            assert_eq!(with.0.0, without.0.0);
            assert!(with.1.0 == without.1.0, "{n_y} {n_x} {inserted}");
        }
        let [with, without] = [true, false].map(|prepared| classic(n_y, n_x, prepared));
        assert_eq!(with.0.0, without.0.0);
        assert!(with.1.0 == without.1.0, "{n_y} {n_x}");
    }
}

/// Refuses when asked if `true`, and otherwise when the run begins.
struct No(bool);

impl Approval for No {
    fn approve(&mut self, _: &Proposal) -> Result<()> {
        if self.0 { Err(Error::Refused("no".into())) } else { Ok(()) }
    }
    fn begins(&mut self, _: &Proposal) -> Result<()> {
        Err(Error::Refused("no".into()))
    }
}

#[test]
fn a_run_that_is_refused_or_only_checked_leaves_the_half() {
    let (place, y, x) = (Place::new(), items(0, 3), items(1, 5));
    let receiver = Request::new(&COUNT, Role::Receiver, &y);
    let sender = Request::new(&COUNT, Role::Sender, &x);
    let halves =
        [place.prepare("r", &receiver.basis().unwrap()), place.prepare("s", &sender.basis().unwrap())];
    let halves = [Some(halves[0].as_path()), Some(halves[1].as_path())];
    let refused = |(ends, _): Ends| assert!(ends.iter().all(Result::is_err));
    // The receiver refuses; the sender is notified before the run begins on its side.
    refused(run_approved(&place, [&receiver, &sender], halves, &mut No(true)));
    // Too many items for the sender.
    let few = sender.with(|r| r.local.max_peer_items = 2);
    refused(run_with(&place, [&receiver, &few], halves));
    // The parties disagree.
    let other = sender.with(|r| r.input.key_columns = 2);
    refused(run_with(&place, [&receiver, &other], [halves[0], None]));
    // The receiver stops the run at its beginning; on the sender's side it has begun.
    refused(run_approved(&place, [&receiver, &sender], [halves[0], None], &mut No(false)));
    // A check uses no half.
    let (ours, theirs) = Channel::pair();
    let check_with = |channel, request: &Request| {
        let rng = &mut Prng::from_os().unwrap();
        let prepared = request.prepare(rng).unwrap();
        check(connection(channel), &prepared, &mut (), &|_| Ok(1), rng).unwrap()
    };
    std::thread::scope(|s| {
        s.spawn(|| check_with(theirs, &sender));
        check_with(ours, &receiver);
    });
    assert!(halves.iter().flatten().all(|half| half.exists()));
    assert!(run_with(&place, [&receiver, &sender], halves).0.iter().all(Result::is_ok));
}

/// Checks the half and the ledger whenever a message of the protocol is sent.
struct Looks {
    sink: Box<dyn Sink>,
    place: PathBuf,
    messages: Arc<AtomicUsize>,
}

impl Sink for Looks {
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        // The session's own messages have lower tags, the channel's higher ones.
        if (0x11..0xff00).contains(&u16::from_le_bytes([frame[0], frame[1]])) {
            self.messages.fetch_add(1, Ordering::Relaxed);
            assert!(!self.place.join("half").exists());
            assert_eq!(std::fs::metadata(self.place.join("state/ledger")).unwrap().len(), 58 + 41);
        }
        self.sink.send(frame)
    }
}

#[test]
fn the_half_is_gone_before_the_first_message_of_the_protocol() {
    for (operation, Choice { protocol, group }) in kinds() {
        for role in Role::ALL {
            let (place, set) = (Place::new(), items(0, 3));
            let values = [1; 3];
            let request = |role| {
                Request::new(operation, role, &set).with(|r| {
                    r.spec.candidates = Choice { protocol, group }.into();
                    r.input.values = if operation == &SUM && role == Role::Sender { &values } else { &[] };
                })
            };
            let half = place.prepare("half", &request(role).basis().unwrap());
            let (ours, theirs) = Channel::pair();
            let (sink, source) = ours.into_halves();
            let messages = Arc::new(AtomicUsize::new(0));
            let looks = Looks { sink, place: place.0.path().into(), messages: messages.clone() };
            let ours = Channel::from_halves(Box::new(looks), source);
            let other = request(role.other());
            std::thread::scope(|s| {
                s.spawn(|| run(connection(theirs), &other, &mut Prng::from_os().unwrap()).unwrap());
                let prepared = request(role).prepare_with(&half, &place.ledger(), &IDENTITY).unwrap();
                run_if(connection(ours), prepared, &mut (), &mut Prng::from_os().unwrap()).unwrap();
            });
            assert!(messages.load(Ordering::Relaxed) > 0);
        }
    }
}

#[test]
fn a_run_that_is_stopped_once_it_has_begun_leaves_the_half() {
    let (place, y, x) = (Place::new(), items(0, 3), items(1, 5));
    let receiver = Request::new(&COUNT, Role::Receiver, &y);
    let sender = Request::new(&COUNT, Role::Sender, &x);
    let half = place.prepare("half", &receiver.basis().unwrap());
    /// Stops the run, as Ctrl-C does.
    struct Stops(Canceller);
    impl Approval for Stops {
        fn approve(&mut self, _: &Proposal) -> Result<()> {
            Ok(())
        }
        fn begins(&mut self, _: &Proposal) -> Result<()> {
            self.0.cancel();
            Ok(())
        }
    }
    let (ours, theirs) = Channel::pair();
    let mut stops = Stops(ours.canceller());
    std::thread::scope(|s| {
        s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_os().unwrap()).unwrap_err());
        let prepared = receiver.prepare_with(&half, &place.ledger(), &IDENTITY).unwrap();
        let ended = run_if(connection(ours), prepared, &mut stops, &mut Prng::from_os().unwrap());
        assert_eq!(ended.unwrap_err(), Error::Cancelled);
    });
    spend(place.open(&half, &receiver.basis().unwrap()).unwrap().1).unwrap();
}

#[test]
fn a_half_that_was_replaced_meanwhile_is_used_and_somebody_hears_of_it() {
    let (place, y, x) = (Place::new(), items(0, 3), items(1, 5));
    let receiver = Request::new(&COUNT, Role::Receiver, &y);
    let sender = Request::new(&COUNT, Role::Sender, &x);
    let half = place.prepare("half", &receiver.basis().unwrap());
    let next = place.prepare("next", &receiver.basis().unwrap());
    struct Replaces<'a>([&'a Path; 2], String);
    impl Approval for Replaces<'_> {
        fn approve(&mut self, _: &Proposal) -> Result<()> {
            std::fs::rename(self.0[0], self.0[1]).unwrap();
            Ok(())
        }
        fn warn(&mut self, text: &str) {
            self.1 += text;
        }
    }
    let mut replaces = Replaces([&next, &half], String::new());
    let (ends, _) = run_approved(&place, [&receiver, &sender], [Some(&half), None], &mut replaces);
    assert!(ends.iter().all(Result::is_ok) && replaces.1.contains("replaced after it was read"));
    spend(place.open(&half, &receiver.basis().unwrap()).unwrap().1).unwrap();
}

#[test]
fn nothing_of_the_protocol_is_sent_with_a_half_that_is_spent_meanwhile() {
    let (place, y, x) = (Place::new(), items(0, 3), items(1, 5));
    let receiver = Request::new(&COUNT, Role::Receiver, &y);
    let sender = Request::new(&COUNT, Role::Sender, &x);
    let half = place.prepare("half", &receiver.basis().unwrap());
    /// Spends the half when the run begins, as another process may.
    struct Meanwhile(Option<Half>);
    impl Approval for Meanwhile {
        fn approve(&mut self, _: &Proposal) -> Result<()> {
            Ok(())
        }
        fn begins(&mut self, _: &Proposal) -> Result<()> {
            spend(self.0.take().unwrap()).map(|_| ())
        }
    }
    let copy = place.path("copy");
    std::fs::copy(&half, &copy).unwrap();
    let mut meanwhile = Meanwhile(Some(place.open(&copy, &receiver.basis().unwrap()).unwrap().1));
    let (ends, seen) = run_approved(&place, [&receiver, &sender], [Some(&half), None], &mut meanwhile);
    let [ours, theirs] = ends.map(Result::unwrap_err);
    assert!(ours.to_string().contains("it was used before"), "{ours}");
    assert!(matches!(theirs, Error::Peer { fault: Fault::GaveUp, .. }), "{theirs}");
    // All messages that the peer received: preamble, hello, size and a go.
    assert!(seen[1].iter().map(|frame| frame.0).eq([1, 2, 3, 8]), "{:?}", seen[1]);
}

#[test]
fn a_protocol_that_has_no_use_for_a_half_does_not_take_it() {
    let (place, set) = (Place::new(), items(0, 3));
    let request = Request::new(&INTERSECT, Role::Receiver, &set);
    let half = place.prepare("half", &request.basis().unwrap());
    for protocol in [&VOLE, &CM20] {
        let request = request.with(|r| r.spec.candidates = Choice::of(protocol).into());
        let refused = request.prepare_with(&half, &place.ledger(), &IDENTITY).err();
        assert!(matches!(refused, Some(Error::Usage(text)) if text.contains("cannot use a prepared half")));
    }
    request.prepare_with(&half, &place.ledger(), &IDENTITY).unwrap();
}
