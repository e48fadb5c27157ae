//! Padding hides the size of a set, and changes no result.

use super::tests::{MAX_ROW, connection, encoded, keys};
use super::*;
use crate::channel::{Channel, Recording};
use crate::item::{ItemSet, Items};
use crate::operations::share::Beside;
use crate::operations::{self, INTERSECT, Operation, Role, Rows, SUM, Terms};
use crate::protocols::Protocol;
use crate::testing::is_krtw19;
use crate::testing::{SEEDS, Shared, split_frames};
use veilset_testing::Draw;

/// What a whole session with padding gives on both sides.
fn padded(
    operation: &'static Operation,
    protocol: &'static Protocol,
    (y, x): (&ItemSet, &ItemSet),
    pad: [Option<usize>; 2],
    (payload, both): (bool, bool),
) -> [RunOutcome; 2] {
    let columns = ["note".to_string()];
    let values = vec![5; x.len()];
    let payloads: Items = (0..x.len()).map(|i| encoded(&format!("note {i}"))).collect();
    let reveal_count = protocol.offer(operation).is_some_and(|offer| offer.reveals_count);
    let request = |role, set, pad_to| {
        Request::new(operation, role, set).with(|r| {
            r.spec.candidates = Choice::of(protocol).into();
            r.input.pad_to = pad_to;
            r.spec.sent_columns = if payload { columns.to_vec() } else { vec![] };
            r.spec.terms =
                Terms { max_row: MAX_ROW, both: both && !reveal_count, reveal_count, ..Terms::default() };
        })
    };
    let mut sender = request(Role::Sender, x, pad[1]);
    if payload {
        sender.input.payloads = &payloads;
    }
    if operation == &SUM {
        sender.input.values = &values;
    }
    let receiver = request(Role::Receiver, y, pad[0]);
    let (ours, theirs) = Channel::pair();
    std::thread::scope(|s| {
        let theirs = s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[1])).unwrap());
        let ours = run(connection(ours), &receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap();
        [ours, theirs.join().unwrap()]
    })
}

#[test]
fn padding_changes_the_sizes_and_not_the_results() {
    // The first tier draws paddings at each pair of sizes, and a protocol for each operation under each of them.
    let mut draw = Draw::new("padding");
    for (n_y, n_x, common) in [(0, 0, 0), (0, 3, 0), (5, 0, 0), (4, 6, 4), (9, 7, 3)] {
        let (y, x) = keys(n_y, n_x, common);
        for pad in draw.some(2, [[None, None], [Some(12), None], [None, Some(10)], [Some(9), Some(11)]]) {
            for (payload, both) in [(false, false), (true, true)] {
                for operation in operations::ALL {
                    let rows = operation.uses.rows != Rows::None;
                    if (payload && !rows) || (both && !operation.uses.both) {
                        continue;
                    }
                    // About a thousand base OTs a run.
                    let too_many = common == 0 || (both && pad.contains(&None));
                    let offers = protocols::ALL.into_iter().filter(|p| p.computes(operation));
                    let offers = offers.filter(|p| !(too_many && is_krtw19(p)));
                    for protocol in draw.some(1, offers) {
                        let [r, s] = padded(operation, protocol, (&y, &x), pad, (payload, both));
                        let what = format!("{operation} {protocol} {n_y} {n_x} {pad:?} {payload}");
                        for (outcome, pad, n) in [(&r, pad[1], n_x), (&s, pad[0], n_y)] {
                            let announced = Announced { size: pad.unwrap_or(n), padded: pad.is_some() };
                            assert_eq!(outcome.parties.peer().announced, announced, "{what}");
                        }
                        let first = (n_y - common) as u32;
                        match r.learned {
                            Learned::Matching(m) => {
                                assert!(m.positions.iter().copied().eq(first..n_y as u32), "{what}");
                                assert_eq!(m.payloads.len(), if payload { common } else { 0 });
                                assert!(
                                    m.payloads.iter().eq(payload_list(0..m.payloads.len()).iter()),
                                    "{what}"
                                );
                            }
                            Learned::New(new) => {
                                let mut items: Vec<_> = new.items.iter().enumerate().collect();
                                items.sort_unstable_by_key(|i| i.1);
                                assert!(items.iter().map(|i| i.1).eq(x.iter().skip(common)), "{what}");
                                let sent = items.iter().filter(|_| payload).map(|i| new.payloads.get(i.0));
                                let expected = payload_list(if payload { common..n_x } else { 0..0 });
                                assert!(sent.eq(expected.iter()), "{what}");
                            }
                            Learned::Matches(m) => assert_eq!(m, common as u64, "{what}"),
                            Learned::Shares(shares) => {
                                let n = shares.shares.len() / shares.width;
                                assert!(shares.beside == Beside::Matches(common as u64), "{what}");
                                assert_eq!(n, pad[1].unwrap_or(n_x), "{what}");
                            }
                            Learned::Identifiers(ids) => {
                                let all = pad[0].unwrap_or(n_y) + pad[1].unwrap_or(n_x) - common;
                                assert_eq!((ids.own.len(), ids.all.len()), (n_y, all), "{what}");
                            }
                            other => panic!("{what}: {other:?}"),
                        }
                        match s.learned {
                            Learned::Nothing => assert!(!both),
                            Learned::Matching(m) => {
                                assert!(both && m.positions.iter().copied().eq(0..common as u32), "{what}");
                            }
                            Learned::Union(all) => {
                                assert!(
                                    both && all.iter().eq(y.iter().chain(x.iter().skip(common))),
                                    "{what}"
                                );
                            }
                            // Dummies are not counted.
                            Learned::Matches(m) => {
                                let offer = protocol.offer(operation).unwrap();
                                let learns = both || offer.reveals_count;
                                assert!(learns && m == common as u64, "{what}");
                            }
                            Learned::Sum(sum) => assert_eq!(sum.unwrap().sum, 5 * common as i128, "{what}"),
                            Learned::Identifiers(ids) => assert_eq!(ids.own.len(), n_x, "{what}"),
                            Learned::Shares(shares) => {
                                let n = shares.shares.len() / shares.width;
                                assert_eq!(n, pad[1].unwrap_or(n_x), "{what}");
                            }
                            other => panic!("{what}: {other:?}"),
                        }
                    }
                }
            }
        }
    }
}

fn payload_list(range: std::ops::Range<usize>) -> Items {
    range.map(|i| encoded(&format!("note {i}"))).collect()
}

#[test]
fn random_dummies_are_others_in_each_run() {
    let (y, _) = keys(3, 0, 0);
    let request = Request::new(&INTERSECT, Role::Receiver, &y).with(|r| r.input.pad_to = Some(30));
    let rng = &mut Prng::from_seed(&SEEDS[0]);
    let runs = [(); 2].map(|()| match request.prepare(rng).unwrap().ours {
        Ours::Whole(set, _) => set.own()[3..].to_vec(),
        Ours::Sharded(..) => panic!("not in one piece"),
    });
    let dummies: std::collections::HashSet<_> = runs.iter().flatten().collect();
    assert_eq!(dummies.len(), 2 * 27);
}

#[test]
fn what_a_party_receives_does_not_depend_on_the_size_behind_the_padding() {
    let frames = |n_y, n_x, operation, protocol: &'static Protocol, seed: usize| {
        let (y, x) = keys(n_y, n_x, 0);
        let reveal_count = protocol.offer(operation).is_some_and(|offer| offer.reveals_count);
        let request = |role, set| {
            let request = Request::new(operation, role, set).with(|r| {
                r.spec.candidates = Choice::of(protocol).into();
                r.input.pad_to = Some(20);
            });
            request.with(|r| r.spec.terms = Terms { reveal_count, ..request.spec.terms })
        };
        let (receiver, mut sender) = (request(Role::Receiver, &y), request(Role::Sender, &x));
        let values = vec![1; x.len()];
        sender.input.values = &values;
        let seen = [Shared::default(), Shared::default()];
        let (mut ours, mut theirs) = Channel::pair();
        ours.record(Recording::to_writer(seen[0].clone()));
        theirs.record(Recording::to_writer(seen[1].clone()));
        std::thread::scope(|s| {
            s.spawn(|| run(connection(theirs), &sender, &mut Prng::from_seed(&SEEDS[seed])).unwrap());
            run(connection(ours), &receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap();
        });
        // The tags' coded length varies with the keys.
        seen.map(|s| {
            let frames = split_frames(&s.bytes()).into_iter().filter(|f| f.0 != 0x21);
            frames.map(|(tag, body)| (tag, body.len())).collect::<Vec<_>>()
        })
    };
    let mut draw = Draw::new("frames behind the padding");
    for operation in operations::ALL {
        for protocol in draw.some(3, protocols::ALL.into_iter().filter(|p| p.computes(operation))) {
            let full = frames(20, 20, operation, protocol, 1);
            for (n_y, n_x) in [(0, 0), (1, 19), (20, 3)] {
                assert_eq!(frames(n_y, n_x, operation, protocol, 1), full, "{operation} {protocol}");
            }
        }
    }
}
