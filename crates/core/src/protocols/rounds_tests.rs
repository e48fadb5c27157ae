//! The rounds that the entries state are the rounds that protocols take.

use super::*;
use crate::hash::SessionId;
use crate::hashed::HashedSet;
use crate::item::{ItemSet, Items};
use crate::membership::rpmt::{Binning, Comparison};
use crate::operations::union::bins;
use crate::rng::Prng;
use crate::testing::{Rounds, SEEDS};
use crate::testing::{is_krtw19, kinds};
use veilset_testing::Draw;

/// A number of the sender's items whose bins take more frames than S may be ahead.
const MANY_FRAMES: usize = 17_000;

/// A run on sets of these sizes, the receiver's first.
#[derive(Debug, Clone, Copy)]
struct Case {
    operation: &'static Operation,
    choice: Choice,
    terms: Terms,
    sizes: [usize; 2],
}

impl Case {
    fn stated(&self) -> usize {
        let [receiver, sender] = self.sizes.map(|size| Announced { size, padded: false });
        let Case { operation, choice: Choice { protocol, group }, terms, .. } = *self;
        protocol.cost(&Deal { operation, terms, group, receiver, sender }).unwrap().rounds
    }

    fn taken(&self) -> usize {
        let Case { operation, choice: Choice { protocol, group }, terms, sizes: [n_y, n_x] } = *self;
        let (counted, channels) = Rounds::pair();
        let set = |range: std::ops::Range<usize>| -> ItemSet { range.map(|i| i.to_string()).collect() };
        let sets = [set(0..n_y), set(n_y / 2..n_y / 2 + n_x)];
        let payloads: Items = (0..if terms.payload { n_x } else { 0 }).map(|_| "payload").collect();
        let values = vec![1; if operation.uses.has_values(Role::Sender, &terms) { n_x } else { 0 }];
        let party = |(i, mut ch): (usize, crate::channel::Channel)| {
            let role = Role::ALL[i];
            let sends = role == Role::Sender;
            let task = Task {
                operation,
                role,
                group,
                set: &HashedSet::new(&sets[i]),
                values: if sends { &values } else { &[] },
                payloads: if sends { &payloads } else { const { &Items::new() } },
                terms,
                filter: None,
            };
            let mut rng = Prng::from_seed(&SEEDS[i]);
            let mut cx = Context::new(&mut ch, &SessionId::of([1; 32]), &mut rng);
            run(protocol, &task, &mut cx, Announced { size: self.sizes[1 - i], padded: false }).map(drop)
        };
        std::thread::scope(|s| {
            let party = &party;
            let parties = channels.into_iter().enumerate().map(|side| s.spawn(move || party(side)));
            let ends: Vec<_> = parties.collect::<Vec<_>>().into_iter().map(|t| t.join().unwrap()).collect();
            assert!(ends.iter().all(Result::is_ok), "{self:?}: {ends:?}");
        });
        counted.count()
    }

    /// Describes the difference between the stated and the taken rounds, if any.
    fn wrong(&self) -> Option<String> {
        let (stated, taken) = (self.stated(), self.taken());
        (taken != stated).then(|| format!("{self:?}: {stated} rounds are stated, it takes {taken}"))
    }
}

#[test]
fn rounds_are_as_counted() {
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for (operation, choice, terms) in kinds() {
        let (protocol, case) = (choice.protocol, |sizes| Case { operation, choice, terms, sizes });
        small.push(case([5, 4]));
        // Protocols in bins take longest, and have no message that an empty set omits.
        let plain = !terms.payload && !terms.malicious_sender;
        if plain && (!is_krtw19(protocol) || terms.both && protocol == &KRTW19) {
            small.extend([[0, 4], [5, 0], [0, 0]].map(case));
        }
        // Several frames of points, tags, rows and columns; with vole, the code instead of OTs alone; and more frames of bins
        // than S may be ahead.
        if plain && !terms.both {
            match is_krtw19(protocol) {
                true if protocol == &KRTW19 => large.push(case([100, MANY_FRAMES])),
                // Its distributed OPRF consists of two RR22 OPRFs with the code.
                false if operation == &ID && protocol == &CWPRF => large.push(case([9000, 8500])),
                false if operation == &INTERSECT || operation == &UNION && protocol == &OSN => {
                    let sizes = [9000, 8500];
                    let takes = protocol.offer(operation).unwrap().takes(sizes);
                    large.push(case(if takes { sizes } else { [20, 8500] }));
                }
                _ => {}
            }
        }
    }
    let beside = bins::beside(&large[0].terms);
    let in_bins = |n| Binning::new(Comparison::Private, 100, n, beside).unwrap().rounds();
    assert!(in_bins(MANY_FRAMES) > in_bins(4));
    // The first tier draws a case for each protocol of each operation and combination of empty sets, and some of many items.
    let mut draw = Draw::new("rounds");
    let small = draw.of_each(1, small, |Case { operation, choice, sizes, .. }| {
        (operation.name, choice.protocol.name, sizes.map(|n| n == 0))
    });
    let large = draw.some(2, large);
    let wrong: Vec<String> = small.iter().chain(&large).filter_map(Case::wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
