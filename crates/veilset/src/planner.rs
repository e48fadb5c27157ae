//! Which protocol is best for a run: what each that computes it would take, in seconds, bytes and dollars.
//!
//! A protocol's entry says what its steps are, and what both parties compute and send in each
//! ([`crate::work::Step`]). Both go through a step side by side, so it takes as long as the slowest of the two
//! parties and the two directions of the link; but the first frame is computed before it is sent. Between the steps,
//! messages take the latency of the link, once for each round. What primitives take is known for each machine
//! ([`crate::speed`]).
//!
//! Predictions have errors, and those of a link are noisy. So time decides only where it matters ([`best`]): among protocols
//! that take under a second, or that predictions cannot tell apart, the fixed order of the offers does ([`order`](protocols::Offer::order)).

use crate::channel::Network;
use crate::course::Course;
use crate::error::{Error, Result};
use crate::operations::cost::{Cost, Deal};
use crate::operations::{Announced, Operation, Role, Terms, multiparty};
use crate::params::shards;
use crate::protocols::{self, Assumption, Choice};
use crate::speed::Speeds;
use crate::spelling::{ASSUME, GROUP};
use crate::work::{Primitive, Step, Traffic, Work};
use std::fmt;
use std::str::FromStr;

/// Messages before and after a protocol that wait for each other: versions, hellos, sizes, that the run is allowed, and the
/// end.
const AROUND: usize = 5;
/// Seconds that a run takes beside all that is counted: its threads start, and its first pages are made.
const START: f64 = 0.003;
/// Seconds that a round takes beside the link: threads wake each other.
const ROUND: f64 = 0.0003;
/// Bytes of a step that are computed before the first of them is sent: a frame of points.
const FIRST: f64 = 262_144.0;
/// Bytes that TLS adds to each kilobyte.
const TLS: f64 = 1.0 + 22.0 / 16_384.0;

/// What machines and networks cost, in dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// An hour of a party's machine.
    pub hour: f64,
    /// A gigabyte that a party sends.
    pub gigabyte: f64,
}

impl Default for Prices {
    /// Those of CM20, section 5.2: a machine with two cores, and what leaves it for the internet.
    fn default() -> Prices {
        Prices { hour: 0.096, gigabyte: 0.09 }
    }
}

/// What matters most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preference {
    /// Seconds.
    #[default]
    Time,
    /// Bytes, both ways together.
    Bytes,
    /// Dollars of both parties together.
    Dollars,
}

impl Preference {
    /// All of them.
    pub const ALL: [Preference; 3] = [Preference::Time, Preference::Bytes, Preference::Dollars];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Preference::Time => "time",
            Preference::Bytes => "bytes",
            Preference::Dollars => "dollars",
        }
    }
}

impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preference {
    type Err = String;
    fn from_str(name: &str) -> Result<Preference, String> {
        let found = Preference::ALL.into_iter().find(|preference| preference.name() == name);
        found.ok_or_else(|| format!("\"{name}\" is none of time, bytes, dollars"))
    }
}

/// What both parties have.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The speeds of the receiver and of the sender.
    pub speeds: [Speeds; 2],
    /// The link between them.
    pub link: Network,
    /// What they pay.
    pub prices: Prices,
    /// The cores that both parties share, if they are on one machine.
    pub shared: Option<usize>,
}

/// What a run is expected to take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// From the connection to the end.
    pub seconds: f64,
    /// Bytes each way, including TLS.
    pub traffic: Traffic,
    /// Messages that wait for each other.
    pub rounds: usize,
    /// The most bytes that the receiver and the sender hold, in addition to their sets.
    pub memory: [u64; 2],
    /// Of both parties together.
    pub dollars: f64,
}

impl Prediction {
    /// What is expected of a run of this cost, or of a job of so many shards, each of this cost.
    pub fn of(cost: &Cost, shards: u32, setting: &Setting) -> Prediction {
        let Setting { speeds, prices, .. } = setting;
        let runs = shards.max(1);
        let steps: f64 = cost.steps.iter().map(|step| seconds(step, setting)).sum();
        let rounds = cost.rounds * runs as usize + AROUND;
        let seconds = START + f64::from(runs) * steps + waiting(rounds, setting);
        let whole = |bytes: u64| (f64::from(runs) * bytes as f64 * TLS) as u64;
        let Traffic { to_sender, to_receiver } = cost.traffic();
        let traffic = Traffic { to_sender: whole(to_sender), to_receiver: whole(to_receiver) };
        let moved = (traffic.to_sender + traffic.to_receiver) as f64;
        Prediction {
            seconds,
            traffic,
            rounds,
            memory: Role::ALL
                .map(|role| cost.memory(role).on(speeds[role as usize].threads) + cost.in_flight()),
            dollars: 2.0 * seconds / 3600.0 * prices.hour + moved / 1e9 * prices.gigabyte,
        }
    }

    /// What is expected of a run of several parties, all of which compute at the receiver's speed and have links of their
    /// own. They wait for each other in ways that depend on the protocol; it is counted as if none did, except for rounds.
    /// Traffic is the leader's, memory that of the leader and the most of any other.
    pub fn of_several(cost: &multiparty::Cost, setting: &Setting) -> Prediction {
        let Setting { speeds: [speeds, _], link, prices, .. } = setting;
        let parties = cost.parties.len();
        let rounds = cost.rounds + AROUND;
        let computing = cost.parties.iter().map(|party| speeds.seconds(&party.work));
        let moving =
            (0..parties).map(|i| cost.sent(i).max(cost.received(i)) as f64 * TLS * 8.0 / link.bandwidth);
        let most = |all: &mut dyn Iterator<Item = f64>| all.fold(0.0, f64::max);
        let seconds = START + most(&mut computing.chain(moving)) + waiting(rounds, setting);
        let held = |i: usize| cost.parties[i].memory.on(speeds.threads) + cost.in_flight(i);
        let whole = |bytes: u64| (bytes as f64 * TLS) as u64;
        let moved: u64 = (0..parties).map(|i| whole(cost.sent(i))).sum();
        Prediction {
            seconds,
            traffic: Traffic { to_sender: whole(cost.sent(0)), to_receiver: whole(cost.received(0)) },
            rounds,
            memory: [held(0), (1..parties).map(held).max().unwrap_or(0)],
            dollars: parties as f64 * seconds / 3600.0 * prices.hour + moved as f64 / 1e9 * prices.gigabyte,
        }
    }

    /// What is to be small.
    pub fn by(&self, preference: Preference) -> f64 {
        match preference {
            Preference::Time => self.seconds,
            Preference::Bytes => (self.traffic.to_sender + self.traffic.to_receiver) as f64,
            Preference::Dollars => self.dollars,
        }
    }
}

/// The expected course of a run of this cost.
pub fn course(cost: &Cost, setting: &Setting) -> Course {
    let bytes = |Traffic { to_sender, to_receiver }| to_sender + to_receiver;
    Course::new(cost.steps.iter().map(|step| (seconds(step, setting), bytes(step.traffic))))
}

/// What messages that wait for each other take.
fn waiting(rounds: usize, setting: &Setting) -> f64 {
    rounds as f64 * (ROUND + setting.link.round_trip.as_secs_f64() / 2.0)
}

/// How long a step takes.
fn seconds(step: &Step, Setting { speeds, link, shared, .. }: &Setting) -> f64 {
    let Traffic { to_sender, to_receiver } = step.traffic;
    let kilobytes = Work::of(Primitive::Kilobyte, ((to_sender + to_receiver) / 1000) as usize);
    let work = step.work.map(|work| work + kilobytes);
    let computing = [0, 1].map(|i| speeds[i].seconds(&work[i]));
    let on_one_thread = [0, 1].map(|i| speeds[i].on(1).seconds(&work[i]));
    let together = shared.map_or(0.0, |cores| on_one_thread.iter().sum::<f64>() / cores as f64);
    let computing = computing.into_iter().fold(together, f64::max);
    // What is not the first frame is sent while the next one is computed.
    let bytes = to_sender.max(to_receiver) as f64;
    let sending = bytes * TLS * 8.0 / link.bandwidth;
    let first = (FIRST / bytes.max(1.0)).min(1.0);
    computing.max(sending) + first * computing.min(sending)
}

/// In seconds. Of runs that take less, none is better for being faster.
pub const SOON: f64 = 1.0;
/// How many times as long as predicted a run may take, by the benchmarks. Up to this factor no run counts as the faster one.
pub const ERROR: f64 = 1.4;

/// The best of these. If time counts, the first in the order of the offers among those that take under a [second](SOON) or are
/// within the [error](ERROR) of the fastest. Otherwise the one that takes least, and of equals the first in order.
pub fn best(
    all: &[(Choice, Prediction)],
    operation: &Operation,
    preference: Preference,
) -> Option<(Choice, Prediction)> {
    let least = all.iter().map(|(_, run)| run.by(preference)).fold(f64::INFINITY, f64::min);
    let bar = if preference == Preference::Time { (least * ERROR).max(SOON) } else { least };
    let order = |choice: &Choice| choice.protocol.offer(operation).map_or(u8::MAX, |offer| offer.order);
    let good = all.iter().filter(|(_, run)| run.by(preference) <= bar);
    good.min_by_key(|(choice, _)| order(choice)).copied()
}

/// Those of these choices that may be picked where the user named no protocol: all, if none of them may, because then nothing else
/// meets what was asked for.
pub fn unasked(all: Vec<Choice>, operation: &Operation, terms: &Terms) -> Vec<Choice> {
    let may =
        |choice: &Choice| choice.protocol.offer(operation).is_some_and(|offer| offer.may_be_picked(terms));
    match all.iter().any(may) {
        true => all.into_iter().filter(may).collect(),
        false => all,
    }
}

/// Choices of which one is picked: there is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices {
    /// The first, in the order of the offers.
    pub first: Choice,
    /// The others, in their order.
    pub others: Vec<Choice>,
}

/// Those of these choices that may be picked where the user named no protocol: all that are permitted and may be picked unasked; or
/// all that are permitted, if none of them may be, because then nothing else meets what was asked for. `None` if there were no
/// choices: [`nothing`] says what they lack.
///
/// # Errors
/// If none is permitted: why the first is not.
pub fn pickable(
    mut all: Vec<Choice>,
    operation: &Operation,
    terms: &Terms,
    permits: &dyn Fn(Choice) -> Result<()>,
) -> Result<Option<Choices>> {
    let mut forbidden = None;
    all.retain(|choice| match permits(*choice) {
        Ok(()) => true,
        Err(why) => {
            forbidden.get_or_insert(why);
            false
        }
    });
    match unasked(all, operation, terms).split_first() {
        Some((first, others)) => Ok(Some(Choices { first: *first, others: others.to_vec() })),
        None => forbidden.map_or(Ok(None), Err),
    }
}

/// The error where nothing is acceptable. `all` is what would be acceptable if everything might be assumed.
pub fn nothing(all: &[Choice], operation: &Operation, assume: Option<&[Assumption]>) -> Error {
    let mut lacking: Vec<(String, Vec<String>)> = Vec::new();
    for choice in all {
        let mut rests = choice.rests_on(operation);
        rests.retain(|one| assume.is_some_and(|allowed| !allowed.contains(one)));
        let rests = rests.into_iter().map(Assumption::name).collect::<Vec<_>>().join(" and ");
        if rests.is_empty() {
            continue;
        }
        match lacking.iter_mut().find(|(same, _)| *same == rests) {
            Some((_, choices)) => choices.push(choice.to_string()),
            None => lacking.push((rests, vec![choice.to_string()])),
        }
    }
    Error::usage(if lacking.is_empty() {
        format!("no protocol computes {operation} under these terms. Relax them, or {GROUP}")
    } else {
        let lacking = lacking.iter().map(|(rests, choices)| format!("by {} on {rests}", choices.join(", ")));
        format!(
            "no protocol computes {operation} by what {ASSUME} allows. It leaves out what {operation} rests on: {}. Add to \
             {ASSUME} what one of them needs, or relax {GROUP} or the terms",
            lacking.collect::<Vec<_>>().join("; ")
        )
    })
}

/// What a user wants computed, and accepts.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// What is computed.
    pub operation: &'static Operation,
    /// The terms. Those about a malicious sender, and about what is revealed to the sender, narrow the list.
    pub terms: Terms,
    /// The group, if it is asked for.
    pub group: Option<&'static str>,
    /// What may be assumed, if not everything may.
    pub assume: Option<&'a [Assumption]>,
    /// What the receiver and the sender announce.
    pub sizes: [Announced; 2],
}

impl Wanted<'_> {
    /// The deal by a choice.
    fn deal(&self, choice: Choice) -> Deal {
        let part = |whole: Announced| match self.terms.shards {
            0 => whole,
            shards => Announced { size: shards::bound(whole.size, shards), padded: true },
        };
        let [receiver, sender] = self.sizes.map(part);
        Deal { operation: self.operation, terms: self.terms, group: choice.group, receiver, sender }
    }

    /// All choices that compute it and are acceptable, in the order of the offers.
    pub fn acceptable(&self) -> Vec<Choice> {
        acceptable(self.operation, &self.terms, self.group, self.assume)
    }

    /// What is expected of the choice; `None` for sets that are too large for it.
    pub fn predict(&self, choice: Choice, setting: &Setting) -> Option<Prediction> {
        let cost = choice.protocol.cost(&self.deal(choice)).ok()?;
        Some(Prediction::of(&cost, self.terms.shards, setting))
    }

    /// These choices with what is expected of them, the best first.
    pub fn ranked(
        &self,
        choices: &[Choice],
        setting: &Setting,
        preference: Preference,
    ) -> Vec<(Choice, Prediction)> {
        let predicted = choices.iter().filter_map(|&choice| Some((choice, self.predict(choice, setting)?)));
        let mut all: Vec<_> = predicted.collect();
        all.sort_by(|(_, a), (_, b)| a.by(preference).total_cmp(&b.by(preference)));
        all
    }
}

/// All choices that compute the operation and are acceptable, in the order of the offers: in the group that is asked for,
/// or in each protocol's first. None of them may fall below the security that the terms ask for, nor reveal more. Which of them may
/// be picked where none is named, [`unasked`] says.
pub fn acceptable(
    operation: &Operation,
    terms: &Terms,
    group: Option<&'static str>,
    assume: Option<&[Assumption]>,
) -> Vec<Choice> {
    let choice = |protocol: &'static protocols::Protocol| {
        let offer = protocol.offer(operation)?;
        let group = match group {
            Some(group) => protocol.works_in().find(|name| *name == group)?,
            None => protocol.group(),
        };
        let choice = Choice { protocol, group };
        let fits = offer.malicious_sender >= terms.malicious_sender
            && offer.reveals_count == terms.reveal_count
            && (terms.shards == 0 || offer.shards)
            && choice.beyond(operation, assume).is_none();
        fits.then_some((offer.order, choice))
    };
    let mut all: Vec<(u8, Choice)> = protocols::ALL.into_iter().filter_map(choice).collect();
    all.sort_by_key(|(order, _)| *order);
    all.into_iter().map(|(_, choice)| choice).collect()
}

#[cfg(test)]
#[path = "planner_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "planner_course_tests.rs"]
mod course_tests;
