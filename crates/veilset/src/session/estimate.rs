//! The expected cost of a run, and what each side will learn. Bytes, rounds, memory and work come from the protocol's entry,
//! and times from the speeds of a machine ([`crate::speed`]).

use super::Proposal;
use super::words::Learning;
use crate::error::Result;
use crate::group;
use crate::operations::cost::PartyCost;
use crate::speed::Speeds;
use std::time::Duration;

/// TLS adds 22 bytes to each record of 16 KiB.
const RECORD: (u64, u64) = (22, 1 << 14);
/// Approximate bytes of the TLS handshake, the agreement and the confirmation, in each direction of a connection.
const AROUND: u64 = 3000;
/// The expected cost of a run for our side.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Estimate {
    /// Bytes that we send to all other parties together, including TLS and the agreement. Accurate to about 1%, unless the
    /// run sends little.
    pub sent: u64,
    /// Bytes that we receive from all other parties together, with the same additions and accuracy.
    pub received: u64,
    /// The number of messages on the longest chain of the protocol in which each waits for the one before
    /// ([`crate::operations::cost::Cost::rounds`]).
    pub rounds: usize,
    /// The most bytes that our side holds in addition to its set.
    pub memory: u64,
    /// The time that our side computes.
    pub work: Duration,
}

impl Estimate {
    /// Returns the estimate for this run at these speeds; `prepared` tells whether our half was prepared in advance.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) for sets that are too large for the protocol.
    pub fn of(proposal: &Proposal, prepared: bool, speeds: &Speeds) -> Result<Estimate> {
        let PartyCost { sent, received, rounds, work, memory, in_flight } = proposal.cost()?;
        let runs = proposal.hello.spec.terms.shards.max(1);
        // A half has all points under its first key, except the points of the dummies that the receiver of a union inserts.
        let ready = if prepared { proposal.ours.size } else { 0 };
        let multiplication = group::facts(proposal.choice.group).map(|facts| facts.multiplication);
        let work = multiplication.map_or(work, |primitive| work.without(primitive, ready));
        // Added once for each connection.
        let around = AROUND * proposal.parties.count() as u64;
        let whole = |bytes: u64| bytes + bytes * RECORD.0 / RECORD.1 + around;
        Ok(Estimate {
            sent: whole(u64::from(runs) * sent),
            received: whole(u64::from(runs) * received),
            rounds: runs as usize * rounds,
            memory: memory.on(speeds.threads) + in_flight,
            work: runs * Duration::from_secs_f64(speeds.seconds(&work)),
        })
    }

    /// Returns the bytes of the larger direction, which determines the time on a full-duplex link.
    pub fn larger(&self) -> u64 {
        self.sent.max(self.received)
    }
}

/// Returns sentences that state what this party and the others would learn.
pub fn would_learn(proposal: &Proposal) -> Vec<String> {
    let learning = Learning { spec: &proposal.hello.spec, ours: proposal.ours, parties: &proposal.parties };
    learning.sentences("would learn", [None; 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Channel, HEADER, Recording};
    use crate::item::{ItemSet, Items};
    use crate::net::Connection;
    use crate::operations::{COUNT, INTERSECT, Role, UNION};
    use crate::protocols::Choice;
    use crate::rng::Prng;
    use crate::session::run::{Request, run};
    use crate::testing::{SEEDS, Shared, peer, proposal, split_frames};
    use crate::testing::{fitting, is_krtw19, kinds};
    use veilset_testing::Draw;

    fn set(from: usize, n: usize) -> ItemSet {
        (from..from + n).map(|i| format!("\u{6}{i:06}")).collect()
    }

    #[test]
    fn a_check_says_what_the_sender_would_learn_and_hides_what_would_not_show() {
        let y = set(0, 3);
        for operation in [&INTERSECT, &UNION, &COUNT] {
            for (role, both) in Role::ALL.into_iter().flat_map(|role| [(role, false), (role, true)]) {
                let mut request = Request::new(operation, role, &y);
                request.spec.terms.both = both;
                let proposal = |padded: bool| {
                    let pad_to = padded.then_some(3);
                    let hello = request.with(|r| r.input.pad_to = pad_to).hello(true);
                    proposal(hello, 3, peer(5, padded))
                };
                let said = would_learn(&proposal(false));
                let of_sender = &said[if role == Role::Sender { 0 } else { 1 }];
                assert_eq!(
                    !of_sender.ends_with("and nothing else."),
                    both,
                    "{operation} {role}: {of_sender}"
                );
                // The size of a padded set is only a bound, and then a union does not show how many items match.
                for (open, padded) in said.iter().zip(would_learn(&proposal(true))) {
                    assert!(padded.contains("has at most ") && !open.contains("at most"), "{padded}");
                    assert!(operation != &UNION || !padded.contains("how many"), "{padded}");
                }
            }
        }
    }

    #[test]
    fn bytes_are_as_measured() {
        // Few items, sizes just above a power of two, and several frames. The first tier of tests draws one of these for each
        // protocol, group and operation.
        let sizes = [[0, 0], [1, 3], [700, 70], [1100, 3000], [8193, 100]];
        let mut draw = Draw::new("bytes of a run");
        // The choices that take the most time.
        let slow = |choice: &Choice| is_krtw19(choice.protocol) || choice.group != choice.protocol.group();
        let kinds = kinds().into_iter().filter(|(_, c, terms)| !slow(c) || terms.payload == terms.both);
        let kinds = draw
            .of_each(1, kinds, |(operation, choice, _)| (operation.name, choice.protocol.name, choice.group));
        for kind in kinds {
            // In the whole tier, all groups take part in runs of several frames.
            let most =
                if is_krtw19(kind.1.protocol) || slow(&kind.1) && !draw.is_whole() { 2000 } else { 9000 };
            for sizes in draw.some(1, sizes.into_iter().filter(|[n, _]| *n <= most)) {
                let ([n_r, n_s], (operation, Choice { protocol, group }, terms)) =
                    (fitting(&kind, sizes), kind);
                let (y, x) = (set(0, n_r), set(n_r / 2, n_s));
                let values = vec![1; if operation.uses.has_values(Role::Sender, &terms) { n_s } else { 0 }];
                let payloads: Items = (0..if terms.payload { n_s } else { 0 }).map(|_| "payload").collect();
                let columns = ["note".to_string()];
                let request = |role, set| {
                    Request::new(operation, role, set).with(|r| {
                        r.spec.candidates = Choice { protocol, group }.into();
                        r.spec.terms = terms;
                        r.spec.sent_columns = if terms.payload { columns.to_vec() } else { vec![] };
                    })
                };
                let mut receiver = request(Role::Receiver, &y);
                let mut sender = request(Role::Sender, &x).with(|r| {
                    r.input.values = &values;
                    r.input.payloads = &payloads;
                });
                let pads = sizes[0] < 100;
                (receiver.input.pad_to, sender.input.pad_to) =
                    (pads.then_some(n_r + 9), pads.then_some(n_s + 5));
                let (mut a, mut b) = Channel::pair();
                let seen = [Shared::default(), Shared::default()];
                a.record(Recording::to_writer(seen[0].clone()));
                b.record(Recording::to_writer(seen[1].clone()));
                let connection = |channel| Connection::unprotected(channel, Default::default());
                std::thread::scope(|s| {
                    s.spawn(|| run(connection(b), &sender, &mut Prng::from_seed(&SEEDS[1])).unwrap());
                    run(connection(a), &receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap();
                });
                // The messages of the session itself have the lowest tags.
                let of_protocol = |view: &[u8]| -> u64 {
                    let frames = split_frames(view).into_iter().filter(|(tag, _)| *tag > 0x10);
                    frames.map(|(_, body)| (HEADER + body.len()) as u64).sum()
                };
                let [to_receiver, to_sender] = [&seen[0], &seen[1]].map(|seen| of_protocol(&seen.bytes()));
                let proposal = |request: &Request<'_>, theirs| {
                    let mut hello = request.hello(false);
                    // As the sender's hello would state.
                    hello.spec.terms.shared_values = terms.shared_values;
                    proposal(hello, request.announced(), peer(theirs, pads))
                };
                let traffic = |proposal: Proposal| {
                    let (protocol, deal) = proposal.deal();
                    protocol.cost(&deal).unwrap().traffic()
                };
                let expected = traffic(proposal(&receiver, sender.announced()));
                assert_eq!(expected, traffic(proposal(&sender, receiver.announced())));
                let directions = [(expected.to_receiver, to_receiver), (expected.to_sender, to_sender)];
                for ((expected, took), view) in directions.into_iter().zip(&seen) {
                    // The length of coded tags varies.
                    let coded = split_frames(&view.bytes()).iter().any(|(tag, _)| *tag == 0x21);
                    let off = if coded { took / 200 + 4 } else { 0 };
                    assert!(
                        expected.abs_diff(took) <= off,
                        "{operation} {protocol} {n_r} {n_s}: expected {expected}, took {took}"
                    );
                }
            }
        }
    }
}
