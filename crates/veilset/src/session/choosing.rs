//! Which of the protocols that both sides allow is run.
//!
//! ```text
//! R->S  probe      how many bytes of filler follow; only if the receiver plans and more than one is allowed
//! R->S  filler     then as many come back
//! R->S  choice     which of the common candidates; not sent if there is only one
//! ```
//!
//! The receiver chooses, and the sender checks that the choice is on the list: so it is never one that either side does not
//! allow. A receiver that does not plan takes its first. One that plans takes what the planner expects to be best at the
//! sizes, the speeds that both told, and the link ([`crate::planner`]).
//!
//! The round trip was timed by the hellos. The bandwidth is timed only if the choice depends on it, and by no more than a
//! tenth of the bytes that the run takes in any case. Of a run that sends too little for that, a common bandwidth is assumed.
//! Whether something is measured depends on sizes and speeds only, not on measurements.
//!
//! What the peer says of itself, and does to the link, is believed within bounds. Of its speeds one number counts: how many times as
//! fast or slow it is as we are, at most eight times. So it cannot make one protocol look better than another by lying about what
//! that one computes.
//!
//! A half that was prepared takes the same multiplications off all candidates that can use it, so it is not counted.
//!
//! Speeds and the times of these messages say nothing about the data.

use super::Proposal;
use super::handshake::Met;
use crate::channel::{Channel, Message, Network, frames};
use crate::error::{Error, Result};
use crate::operations::Role;
use crate::operations::cost::Cost;
use crate::planner::{self, Choices, Prediction, Preference, Prices, Setting};
use crate::protocols::Choice;
use crate::speed::Speeds;
use std::time::{Duration, Instant};

const CHOICE: Message<u64> = Message::new(5, "R->S  which of the common candidates");
const PROBE: Message<u64> = Message::new(6, "R->S  bytes that measure the link");
const FILLER: Message<[u8]> = Message::new(7, "bytes that measure the link");

/// The most bytes that measure the link, each way.
const MOST: usize = 1 << 20;
/// Fewer show nothing.
const LEAST: usize = 1 << 16;
const FRAME: usize = 1 << 12;
/// What a measurement may take of the bytes of a run.
const SHARE: f64 = 0.1;
/// The bandwidth that is assumed where none is measured, in bits per second.
const COMMON: f64 = 1e8;
/// The longest round trip that is believed.
const FARTHEST: Duration = Duration::from_secs(1);
/// A run that takes so many times as long as it would with a peer like us is worth a word.
const SLOW: f64 = 10.0;
/// Bandwidths between which links are, in bits per second.
const BANDWIDTHS: [f64; 6] = [1e6, 1e7, 1e8, 1e9, 1e10, f64::INFINITY];

/// How one of several protocols is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planning {
    /// How fast our side computes.
    pub speeds: Speeds,
    /// What the receiver wants to be small.
    pub prefer: Preference,
}

/// What was picked, and why, if there was more than one.
pub(super) struct Picked {
    pub(super) choice: Choice,
    pub(super) why: Option<String>,
}

/// Settles on one of the common candidates, of which there are two or more.
pub(super) fn choose(
    channel: &mut Channel,
    proposal: &Proposal,
    met: &Met,
    planning: Option<&Planning>,
) -> Result<Picked> {
    let [receiver, sender] = met.speeds;
    let by_order = "the first that both parties allow, in the receiver's order";
    let picked = match (proposal.hello.spec.role, receiver, planning) {
        (Role::Sender, planned, _) => {
            if planned.is_some() {
                answer(channel)?;
            }
            let choice = receive(channel, &met.common)?;
            let why = if planned.is_some() { "the receiver's planner chose it" } else { by_order };
            return Ok(Picked { choice, why: Some(why.into()) });
        }
        (Role::Receiver, Some(ours), Some(planning)) => {
            let told = sender.unwrap_or(Speeds::built_in(1));
            let plan = Plan { proposal, common: &met.common, ours, told, prefer: planning.prefer };
            plan.pick(channel, met.round_trip.min(FARTHEST))?
        }
        (Role::Receiver, ..) => Picked { choice: met.common.first, why: Some(by_order.into()) },
    };
    let index = met.common.iter().position(|one| one == picked.choice);
    let index = index.ok_or_else(|| Error::Bug("a choice that is not on the list".into()))?;
    channel.tx.send(CHOICE, &[index as u64])?;
    Ok(picked)
}

/// Receives the receiver's choice, which must be on the list.
pub(super) fn receive(channel: &mut Channel, common: &Choices) -> Result<Choice> {
    let index = channel.rx.recv(CHOICE, 1)?[0];
    let chosen = usize::try_from(index).ok().and_then(|index| common.iter().nth(index));
    let none = || Error::misbehaves(format!("it chose candidate {index} of {}", common.iter().count()));
    chosen.ok_or_else(none)
}

/// Sends back as much filler as comes.
fn answer(channel: &mut Channel) -> Result<()> {
    let n = channel.rx.recv(PROBE, 1)?[0];
    let Some(n) = usize::try_from(n).ok().filter(|n| *n <= MOST) else {
        return Err(Error::misbehaves(format!("it measures the link by {n} bytes: {MOST} are the most")));
    };
    frames(n, FRAME).try_for_each(|n| channel.rx.recv_bytes(FILLER, n).map(drop))?;
    frames(n, FRAME).try_for_each(|n| channel.tx.send_bytes(FILLER, &vec![0; n]))
}

/// What the receiver plans with.
struct Plan<'a> {
    proposal: &'a Proposal,
    common: &'a Choices,
    /// Our speeds, and
    ours: Speeds,
    /// those that the peer told.
    told: Speeds,
    prefer: Preference,
}

impl Plan<'_> {
    /// Picks the best. Always sends the probe.
    fn pick(&self, channel: &mut Channel, round_trip: Duration) -> Result<Picked> {
        let at = |bandwidth| Network { bandwidth, round_trip };
        let speeds = [self.ours, self.ours.like(&self.told)];
        let costs = self.costs();
        let predicted = |speeds, link| predicted(&costs, speeds, link);
        // What is best at each bandwidth.
        let best =
            |link| planner::best(&predicted(speeds, link), self.proposal.hello.spec.operation, self.prefer);
        let winners: Vec<(Choice, Prediction)> =
            BANDWIDTHS.iter().filter_map(|&bits| best(at(bits))).collect();
        let Some((first, _)) = winners.first().copied() else {
            // None of them takes such sets: what is wrong with the first is said by those who check it.
            channel.tx.send(PROBE, &[0])?;
            return Ok(Picked { choice: self.common.first, why: None });
        };
        let everywhere = winners.iter().all(|(choice, _)| *choice == first);
        let (link, of_link) = if everywhere {
            channel.tx.send(PROBE, &[0])?;
            (at(COMMON), "on any link".to_string())
        } else {
            let fewest =
                winners.iter().map(|(_, run)| run.by(Preference::Bytes)).fold(f64::INFINITY, f64::min);
            let bytes = ((fewest * SHARE / 2.0) as usize).min(MOST);
            if bytes < LEAST {
                channel.tx.send(PROBE, &[0])?;
                (at(COMMON), format!("at {:.0} Mbit/s, as it sends too little to measure", COMMON / 1e6))
            } else {
                let [slowest, .., fastest, _] = BANDWIDTHS;
                let link = at(measured(channel, bytes)?.clamp(slowest, fastest));
                let (bits, trip) = (link.bandwidth / 1e6, round_trip.as_secs_f64() * 1e3);
                (link, format!("at {bits:.0} Mbit/s and {trip:.1} ms"))
            }
        };
        let (choice, run) = best(link).unwrap_or(winners[0]);
        let least =
            predicted(speeds, link).iter().all(|(_, other)| run.by(self.prefer) <= other.by(self.prefer));
        let mut why = match least {
            true => format!("the best for {} {of_link}", self.prefer),
            false => format!(
                "it shows least to a peer that deviates, of those that take under a second or as long as the fastest {of_link}"
            ),
        };
        if !everywhere {
            why += &format!(", where it is expected to take {:.2} seconds", run.seconds);
        }
        let taken = |told| {
            let of = predicted([self.ours, told], link);
            of.iter().find(|(other, _)| *other == choice).map_or(0.0, |(_, run)| run.seconds)
        };
        let times = taken(self.told) / taken(self.ours);
        if times >= SLOW {
            why += &format!(
                "; but by what the peer says of its speed, {times:.0} times as long as with a machine like ours"
            );
        }
        Ok(Picked { choice, why: Some(why) })
    }

    /// What each candidate that takes such sets costs, and in how many shards.
    fn costs(&self) -> Vec<(Choice, Cost, u32)> {
        let cost = |choice: Choice| {
            let proposal = Proposal { choice, ..self.proposal.clone() };
            let (protocol, deal) = proposal.deal();
            Some((choice, protocol.cost(&deal).ok()?, deal.terms.shards))
        };
        self.common.iter().filter_map(cost).collect()
    }
}

/// What is expected of candidates that cost this.
fn predicted(costs: &[(Choice, Cost, u32)], speeds: [Speeds; 2], link: Network) -> Vec<(Choice, Prediction)> {
    let setting = Setting { speeds, link, prices: Prices::default(), shared: None };
    costs.iter().map(|(choice, cost, shards)| (*choice, Prediction::of(cost, *shards, &setting))).collect()
}

/// Bits per second, by this many bytes there and back: the median of three parts of what comes back. A machine that stalls
/// meanwhile, as each does under load, spoils one of them.
fn measured(channel: &mut Channel, bytes: usize) -> Result<f64> {
    channel.tx.send(PROBE, &[bytes as u64])?;
    frames(bytes, FRAME).try_for_each(|n| channel.tx.send_bytes(FILLER, &vec![0; n]))?;
    let mut came = Vec::new();
    for n in frames(bytes, FRAME) {
        channel.rx.recv_bytes(FILLER, n)?;
        came.push(Instant::now());
    }
    // What came before the first was under way, too.
    let part = (came.len() - 1) / 3;
    let rate = |at: usize| {
        let time = came[(at + 1) * part].duration_since(came[at * part]).max(Duration::from_nanos(1));
        8.0 * (part * FRAME) as f64 / time.as_secs_f64()
    };
    let mut rates = [0, 1, 2].map(rate);
    rates.sort_by(f64::total_cmp);
    Ok(rates[1])
}

#[cfg(test)]
#[path = "choosing_tests.rs"]
mod tests;
