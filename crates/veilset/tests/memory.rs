//! A run holds no more memory than its protocol's entry states. It holds at least a third of the memory stated for the parties,
//! or a quarter in a run of several.
//!
//! This is the only test in its file, because it counts the allocations of the whole process. The first tier draws one case for
//! each two-party protocol and one of those for several; the whole tier runs all of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread;
use veilset::channel::{Channel, Mesh};
use veilset::context::Context;
use veilset::hashed::HashedSet;
use veilset::item::{ItemSet, Items};
use veilset::many::Many;
use veilset::operations::cost::Deal;
use veilset::operations::{Announced, INTERSECT, Operation, Role, Rows, Task, Terms};
use veilset::params::LAMBDA;
use veilset::protocols::{self, Choice, Protocol};
use veilset::session::confirm;
use veilset::threads::Threads;
use veilset_core::hazmat;
use veilset_memory::Counting;
use veilset_testing::Draw;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Bytes of a key and of a payload. Rows are full, since otherwise the worst case would not be reached.
const KEY: usize = 16;
const PAYLOAD: usize = 48;

/// Number of threads of each party.
const THREADS: usize = 2;

#[derive(Debug, Clone, Copy)]
struct Case {
    operation: &'static Operation,
    choice: Choice,
    terms: Terms,
    sizes: [usize; 2],
    /// Number of items that both parties have.
    common: usize,
}

impl Case {
    fn announced(&self) -> [Announced; 2] {
        self.sizes.map(|size| Announced { size, padded: false })
    }

    /// The memory that the entry states for both parties, and for the channel that they share.
    fn stated(&self) -> [usize; 2] {
        let Case { operation, choice: Choice { protocol, group }, terms, .. } = *self;
        let [receiver, sender] = self.announced();
        let cost = protocol.cost(&Deal { operation, terms, group, receiver, sender }).unwrap();
        let parties = Role::ALL.map(|role| cost.memory(role).on(THREADS)).iter().sum::<u64>();
        [parties as usize, cost.in_flight() as usize]
    }

    /// The peak memory of both parties, not counting their sets.
    fn measured(&self, threads: &[Threads; 2]) -> usize {
        let Case { operation, choice: Choice { protocol, group }, terms, sizes: [n_y, n_x], common } = *self;
        let set = |from: usize, n| -> ItemSet { (from..from + n).map(|i| format!("{i:0KEY$}")).collect() };
        let sets = [set(0, n_y), set(n_y - common, n_x)];
        let sets = [0, 1].map(|i| threads[i].run(|| HashedSet::new(&sets[i])));
        let payloads: Items = (0..if terms.payload { n_x } else { 0 }).map(|_| [b'x'; PAYLOAD]).collect();
        let values = vec![1; if operation.uses.has_values(Role::Sender, &terms) { n_x } else { 0 }];
        let none = Items::new();
        let (a, b) = Channel::pair();
        let before = ALLOCATOR.restart();
        let party = |(i, mut ch): (usize, Channel)| {
            let role = Role::ALL[i];
            let sends = role == Role::Sender;
            let task = Task {
                operation,
                role,
                group,
                set: &sets[i],
                values: if sends { &values } else { &[] },
                payloads: if sends { &payloads } else { &none },
                terms,
                filter: None,
            };
            let (rng, session) = (&mut hazmat::seeded(&[i as u8; 32]), hazmat::session_id([1; 32]));
            let mut cx = Context { ch: &mut ch, session, rng, exponent: LAMBDA, threads: &threads[i] };
            let sealed = protocols::run(protocol, &task, &mut cx, self.announced()[1 - i]).unwrap();
            let confirmed = confirm(&mut ch, &session).unwrap();
            sealed.open(confirmed).unwrap()
        };
        thread::scope(|s| {
            let party = &party;
            let parties = [(0, a), (1, b)].map(|side| s.spawn(move || party(side)));
            parties.into_iter().for_each(|party| drop(party.join().unwrap()));
        });
        ALLOCATOR.most() - before
    }
}

/// The memory stated for all parties of a run of several, and for the channels among them.
fn stated_of_several(protocol: &Protocol, terms: &Terms, sizes: &[usize]) -> [usize; 2] {
    let cost = protocol.multiparty_cost(terms, sizes).unwrap();
    let parties = cost.parties.iter().map(|party| party.memory.on(THREADS)).sum::<u64>();
    // Each channel is shared by two parties.
    let channels = cost.parties.iter().map(|party| party.in_flight).sum::<u64>() / 2;
    [parties as usize, channels as usize]
}

/// The peak memory of all parties of a run of several, not counting their sets. Half of the items of each are in all sets.
fn measured_of_several(
    protocol: &'static Protocol,
    terms: Terms,
    sizes: &[usize],
    threads: &[Threads],
) -> usize {
    let set = |me: usize| -> ItemSet {
        let from = me * sizes[0] / 4;
        (from..from + sizes[me]).map(|i| format!("{i:0KEY$}")).collect()
    };
    let sets: Vec<_> = (0..sizes.len()).map(set).collect();
    let sets = sets.iter().zip(threads).map(|(set, threads)| threads.run(|| HashedSet::new(set)));
    let sets: Vec<_> = sets.collect();
    let meshes = Mesh::in_memory(sizes.len());
    let (session, none) = (hazmat::session_id([1; 32]), Items::new());
    let before = ALLOCATOR.restart();
    let party = |me: usize, mut mesh: Mesh| {
        let task = Task {
            operation: protocol.offers[0].operation,
            role: if me == 0 { Role::Receiver } else { Role::Sender },
            group: protocol.group(),
            set: &sets[me],
            values: &[],
            payloads: &none,
            terms,
            filter: None,
        };
        let (rng, threads) = (&mut hazmat::seeded(&[me as u8; 32]), &threads[me]);
        let pairs = vec![session; sizes.len()];
        let exponent = LAMBDA;
        let many = &mut Many { me, mesh: &mut mesh, pairs, session, rng, exponent, threads };
        let sizes: Vec<_> = sizes.iter().map(|&size| Announced { size, padded: false }).collect();
        let sealed = protocols::run_among(protocol, &task, many, &sizes).unwrap();
        let confirmed = mesh.each(|_, channel| confirm(channel, &session)).unwrap();
        sealed.open(confirmed.into_iter().next().unwrap()).unwrap()
    };
    thread::scope(|s| {
        let party = &party;
        let parties: Vec<_> =
            meshes.into_iter().enumerate().map(|(me, mesh)| s.spawn(move || party(me, mesh))).collect();
        parties.into_iter().for_each(|party| drop(party.join().unwrap()));
    });
    ALLOCATOR.most() - before
}

/// The violations of the stated memory in runs of several parties.
fn wrong_of_several(draw: &mut Draw) -> Vec<String> {
    let threads = [(); 3].map(|()| Threads::new(THREADS).unwrap());
    let mut wrong = Vec::new();
    for protocol in draw.some(1, protocols::MULTIPARTY) {
        let large = if protocol.computes(&INTERSECT) { 1 << 14 } else { 1 << 12 } + 100;
        for sizes in draw.some(1, [[large; 3], [large / 4, large / 4, large]]) {
            let max_row = if protocol.offers[0].operation.uses.rows == Rows::Items { KEY } else { 0 };
            let terms = Terms { max_row, several: true, ..Terms::default() };
            let [parties, channels] = stated_of_several(protocol, &terms, &sizes);
            let mut measured = 0;
            // The stated memory of a party assumes that all its steps with others hold the most at the same time. The steps of
            // a union follow each other, as a row goes from party to party; on a busy machine, all others may do so too.
            for _ in 0..5 {
                if parties > 4 * measured {
                    measured = measured.max(measured_of_several(protocol, terms, &sizes, &threads));
                }
            }
            let line = format!(
                "{protocol} {sizes:?}: stated {parties} and {channels}, measured {measured}, {:.2}",
                parties as f64 / measured as f64
            );
            if measured > parties + channels || parties > 4 * measured {
                wrong.push(line);
            }
        }
    }
    wrong
}

/// Every protocol of every operation, over every group, with few and many items, and with payloads or a result for both parties
/// where these are supported.
fn cases() -> Vec<Case> {
    // Just above powers of two, where lists have just grown, so they are largest.
    let (small, large) = ((1 << 12) + 100, (1 << 15) + 100);
    let mut cases = Vec::new();
    for operation in veilset::operations::ALL {
        let protocols = protocols::ALL.into_iter().filter(|p| p.computes(operation));
        for choice in protocols.flat_map(Protocol::choices) {
            let slow = ["krtw19", "krtw19-plain", "dc17"].contains(&choice.protocol.name)
                || choice.group != choice.protocol.group();
            let offer = choice.protocol.offer(operation).unwrap();
            let sizes = match offer.largest.iter().min() {
                // The protocol is for small sets only.
                Some(most) if *most < large => vec![offer.largest.map(|most| most / 2)],
                _ if slow => vec![[small, small], [small, 2 * small]],
                _ => vec![[small, small], [large, large], [small, large], [large, small]],
            };
            for sizes in sizes {
                let reveal_count = offer.reveals_count;
                for (payload, both) in [(false, false), (true, false), (false, true)] {
                    let offered = (!payload || operation.uses.rows != Rows::None)
                        && (!both || operation.uses.both && !reveal_count);
                    if !offered || slow && payload || both && sizes != [small, small] {
                        continue;
                    }
                    let max_row = match operation.uses.rows {
                        Rows::Items => KEY + if payload { PAYLOAD } else { 0 },
                        Rows::Payloads | Rows::None => PAYLOAD,
                    };
                    let terms = Terms { payload, both, reveal_count, max_row, ..Terms::default() };
                    // The case that needs most: all items match, or none do if the result is new items.
                    let common = if operation.uses.rows == Rows::Items { 0 } else { sizes[0].min(sizes[1]) };
                    cases.push(Case { operation, choice, terms, sizes, common });
                }
            }
        }
    }
    cases
}

#[test]
fn a_run_holds_what_is_stated() {
    let threads = [(); 2].map(|()| Threads::new(THREADS).unwrap());
    let mut draw = Draw::new("memory");
    // Measured in the same test, as no other test may run at the same time.
    let mut wrong = wrong_of_several(&mut draw);
    let all = cases();
    assert!(all.len() > 100, "{}", all.len());
    for case in draw.of_each(1, all, |case| case.choice.protocol.name) {
        let Case { operation, choice, sizes, terms, .. } = case;
        let ([parties, channel], mut measured) = (case.stated(), case.measured(&threads));
        // On a busy machine the parties may not hold the most at the same time.
        for _ in 0..4 {
            if parties > 3 * measured {
                measured = measured.max(case.measured(&threads));
            }
        }
        // The memory in flight depends on which party is faster, so it has no lower bound.
        if measured > parties + channel || parties > 3 * measured {
            wrong.push(format!(
                "{operation} by {choice} {sizes:?} {} {}: stated {parties} and {channel}, measured {measured}, {:.2}",
                terms.payload,
                terms.both,
                parties as f64 / measured as f64
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
