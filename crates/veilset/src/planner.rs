//! Chooses the best protocol for a run from the predicted seconds, bytes and dollars of each that computes the operation.
//!
//! A protocol's entry lists its steps, with the computation and the messages of both parties in each ([`crate::work::Step`]).
//! The parties go through a step in parallel, so it takes as long as the slowest among the two parties and the two directions
//! of the link. Only the first frame must be computed before it is sent. Between steps, messages take the latency of the link
//! once per round. The speed of the primitives is known for each machine ([`crate::speed`]).
//!
//! Predictions have errors, and measurements of a link are noisy. So time decides only where it matters ([`best`]). Among
//! protocols that take under a second, or that predictions cannot tell apart, the fixed order of the offers decides
//! ([`order`](protocols::Offer::order)).

use crate::channel::Network;
use crate::course::Course;
use crate::error::{Error, Result};
use crate::operations::cost::{Cost, Deal, PartyCost};
use crate::operations::{Announced, Operation, Role, Terms, multiparty};
use crate::params::shards;
use crate::protocols::{self, Assumption, Attachment, Choice};
use crate::speed::Speeds;
use crate::spelling::{ASSUME, GROUP};
use crate::work::{Primitive, Step, Traffic, Work};
use std::fmt;
use std::str::FromStr;

/// Messages before and after a protocol that wait for each other: versions, hellos, sizes, the permission to run, and the end.
const AROUND: usize = 5;
/// Seconds that a run takes in addition to all counted work: starting its threads, and mapping its first pages.
const START: f64 = 0.003;
/// Seconds that a round takes in addition to the latency of the link: threads wake each other.
const ROUND: f64 = 0.0003;
/// Bytes of a step that are computed before the first of them is sent: a frame of points.
const FIRST: f64 = 262_144.0;
/// The factor by which TLS lengthens messages: 22 bytes for each record of 16 KiB.
const TLS: f64 = 1.0 + 22.0 / 16_384.0;

/// Prices of machines and networks, in dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Dollars per hour of one party's machine.
    pub hour: f64,
    /// Dollars per gigabyte that a party sends.
    pub gigabyte: f64,
}

impl Default for Prices {
    /// The prices of CM20, section 5.2: a machine with two cores, and outgoing traffic to the internet.
    fn default() -> Prices {
        Prices { hour: 0.096, gigabyte: 0.09 }
    }
}

/// The quantity to minimise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preference {
    /// Seconds of the run.
    #[default]
    Time,
    /// Bytes in both directions together.
    Bytes,
    /// Dollars of all parties together.
    Dollars,
}

impl Preference {
    /// All preferences.
    pub const ALL: [Preference; 3] = [Preference::Time, Preference::Bytes, Preference::Dollars];

    /// Returns the name as typed by the user.
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

/// The machines of both parties, and the link between them.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The speeds of the receiver and of the sender.
    pub speeds: [Speeds; 2],
    /// The link between them.
    pub link: Network,
    /// The prices that they pay.
    pub prices: Prices,
    /// The cores that both parties share, if they are on one machine.
    pub shared: Option<usize>,
}

/// The predicted cost of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Seconds from the connection to the end.
    pub seconds: f64,
    /// Bytes in each direction, including TLS.
    pub traffic: Traffic,
    /// Number of messages that wait for each other.
    pub rounds: usize,
    /// The most bytes that the receiver and the sender hold, not counting their sets.
    pub memory: [u64; 2],
    /// Dollars of all parties together.
    pub dollars: f64,
}

impl Prediction {
    /// Predicts a run of this cost, or a job of `shards` shards, each of this cost.
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

    /// Predicts a run of several parties, all of which compute at the receiver's speed and have links of their own. How they
    /// wait for each other depends on the protocol; only rounds are counted as waiting. Traffic is the leader's. Memory is the
    /// leader's, and the most among the others.
    pub fn of_several(cost: &multiparty::MultipartyCost, setting: &Setting) -> Prediction {
        let Setting { speeds: [speeds, _], link, prices, .. } = setting;
        let parties = cost.parties.len();
        let rounds = cost.rounds + AROUND;
        let computing = cost.parties.iter().map(|party| speeds.seconds(&party.work));
        let moving = cost
            .parties
            .iter()
            .map(|party| party.sent.max(party.received) as f64 * TLS * 8.0 / link.bandwidth);
        let most = |all: &mut dyn Iterator<Item = f64>| all.fold(0.0, f64::max);
        let seconds = START + most(&mut computing.chain(moving)) + waiting(rounds, setting);
        let held = |party: &PartyCost| party.memory.on(speeds.threads) + party.in_flight;
        let (leader, others) = (&cost.parties[0], &cost.parties[1..]);
        let whole = |bytes: u64| (bytes as f64 * TLS) as u64;
        let moved: u64 = cost.parties.iter().map(|party| whole(party.sent)).sum();
        Prediction {
            seconds,
            traffic: Traffic { to_sender: whole(leader.sent), to_receiver: whole(leader.received) },
            rounds,
            memory: [held(leader), others.iter().map(held).max().unwrap_or(0)],
            dollars: parties as f64 * seconds / 3600.0 * prices.hour + moved as f64 / 1e9 * prices.gigabyte,
        }
    }

    /// Returns the quantity that this preference minimises.
    pub fn by(&self, preference: Preference) -> f64 {
        match preference {
            Preference::Time => self.seconds,
            Preference::Bytes => (self.traffic.to_sender + self.traffic.to_receiver) as f64,
            Preference::Dollars => self.dollars,
        }
    }
}

/// Predicts the course of a run of this cost.
pub fn course(cost: &Cost, setting: &Setting) -> Course {
    let bytes = |Traffic { to_sender, to_receiver }| to_sender + to_receiver;
    Course::new(cost.steps.iter().map(|step| (seconds(step, setting), bytes(step.traffic))))
}

/// The duration in seconds of this number of messages that wait for each other.
fn waiting(rounds: usize, setting: &Setting) -> f64 {
    rounds as f64 * (ROUND + setting.link.round_trip.as_secs_f64() / 2.0)
}

/// The duration of a step in seconds.
fn seconds(step: &Step, Setting { speeds, link, shared, .. }: &Setting) -> f64 {
    let Traffic { to_sender, to_receiver } = step.traffic;
    let kilobytes = Work::of(Primitive::Kilobyte, ((to_sender + to_receiver) / 1000) as usize);
    let work = step.work.map(|work| work + kilobytes);
    let computing = [0, 1].map(|i| speeds[i].seconds(&work[i]));
    let on_one_thread = [0, 1].map(|i| speeds[i].on(1).seconds(&work[i]));
    let together = shared.map_or(0.0, |cores| on_one_thread.iter().sum::<f64>() / cores as f64);
    let computing = computing.into_iter().fold(together, f64::max);
    // All but the first frame is sent while the next one is computed.
    let bytes = to_sender.max(to_receiver) as f64;
    let sending = bytes * TLS * 8.0 / link.bandwidth;
    let first = (FIRST / bytes.max(1.0)).min(1.0);
    computing.max(sending) + first * computing.min(sending)
}

/// Seconds below which runs count as equally fast.
pub const SOON: f64 = 1.0;
/// The factor by which a run may exceed its prediction, from the benchmarks. Times within this factor count as equal.
pub const ERROR: f64 = 1.4;

/// Returns the best of these choices. For time, this is the first in the order of the offers among those that take under a
/// [second](SOON) or are within the [error](ERROR) of the fastest. Otherwise it is the one with the least cost, and among
/// equals the first in order.
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

/// Returns the choices that may be picked where the user named no protocol. If none of them may be, returns all, because then
/// nothing else meets the request.
pub fn unasked(all: Vec<Choice>, operation: &Operation, terms: &Terms) -> Vec<Choice> {
    let may =
        |choice: &Choice| choice.protocol.offer(operation).is_some_and(|offer| offer.may_be_picked(terms));
    match all.iter().any(may) {
        true => all.into_iter().filter(may).collect(),
        false => all,
    }
}

/// At least one choice, from which one is picked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices {
    /// The first choice, which is preferred.
    pub first: Choice,
    /// The other choices, in order of preference.
    pub others: Vec<Choice>,
}

impl Choices {
    /// All choices, in order of preference.
    pub fn iter(&self) -> impl Iterator<Item = Choice> + '_ {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// Whether this choice is among them.
    pub fn contains(&self, choice: Choice) -> bool {
        self.iter().any(|one| one == choice)
    }

    /// The choices that `keep` keeps, if there are any.
    pub fn kept(&self, keep: impl FnMut(&Choice) -> bool) -> Option<Choices> {
        let mut all = self.iter().filter(keep);
        all.next().map(|first| Choices { first, others: all.collect() })
    }
}

/// A single choice.
impl From<Choice> for Choices {
    fn from(first: Choice) -> Choices {
        Choices { first, others: Vec::new() }
    }
}

/// Returns the permitted choices that may be picked where the user named no protocol; or all permitted choices if none of them
/// may be, because then nothing else meets the request. `None` if there were no choices; [`nothing`] explains why.
///
/// # Errors
/// If none is permitted: the reason why the first is not.
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

/// The error if nothing is acceptable. `all` is the list of choices that would be acceptable if everything could be assumed.
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

/// A computation that a user wants, and the conditions on it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The operation to compute.
    pub operation: &'static Operation,
    /// The terms. Terms about a malicious sender, about revealing the count to the sender, or about shards narrow the list.
    pub terms: Terms,
    /// The group, if one was requested.
    pub group: Option<&'static str>,
    /// The permitted assumptions, if not all are.
    pub assume: Option<&'a [Assumption]>,
    /// The sizes that the receiver and the sender announce.
    pub sizes: [Announced; 2],
}

impl Wanted<'_> {
    /// The deal with this choice.
    fn deal(&self, choice: Choice) -> Deal {
        let part = |whole: Announced| match self.terms.shards {
            0 => whole,
            shards => Announced { size: shards::bound(whole.size, shards), padded: true },
        };
        let [receiver, sender] = self.sizes.map(part);
        Deal { operation: self.operation, terms: self.terms, group: choice.group, receiver, sender }
    }

    /// Returns all acceptable choices that compute the operation, in the order of the offers.
    pub fn acceptable(&self) -> Vec<Choice> {
        acceptable(self.operation, &self.terms, self.group, self.assume)
    }

    /// Predicts the run of a choice; `None` if the sets are too large for it.
    pub fn predict(&self, choice: Choice, setting: &Setting) -> Option<Prediction> {
        let cost = choice.protocol.cost(&self.deal(choice)).ok()?;
        Some(Prediction::of(&cost, self.terms.shards, setting))
    }

    /// Returns the choices for which there is a prediction, with it, in ascending order of what this preference minimises. By
    /// time, the first is not always the [`best`].
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

/// Returns all acceptable choices that compute the operation, in the order of the offers: in the group requested, or in each
/// protocol's first. None of them falls below the security that the terms require, or reveals more. [`unasked`] returns
/// those that may be picked where the user named none.
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
            && (terms.shards == 0 || offer.takes_with(Attachment::Shards))
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
