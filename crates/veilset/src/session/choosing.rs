//! The choice of one of the protocols that both sides allow.
//!
//! ```text
//! R->S  probe      the number of bytes of filler that follow, which may be 0; only if the receiver plans
//! R->S  filler     that many bytes
//! S->R  filler     the same number of bytes
//! R->S  choice     which of the common candidates
//! ```
//!
//! If only one candidate is common, none of these messages is sent. Otherwise the receiver chooses, and the sender checks
//! that the choice is on the list, so it is always one that both sides allow. A receiver that does not plan takes its first
//! common candidate. A receiver that plans takes the one that the planner predicts to be best, given the sizes, the stated
//! speeds, and the link ([`crate::planner`]). For a sender that states no speed, built-in speeds count.
//!
//! The round trip was timed with the hellos. The bandwidth is measured only if the choice depends on it, and the measurement
//! takes at most a tenth of the bytes that the run sends in any case. If the run sends too little for that, a common
//! bandwidth is assumed. Whether the bandwidth is measured depends only on the terms, the sizes, the speeds, the receiver's
//! preference and the round trip.
//!
//! The peer's statements, and its influence on the link, count within bounds. Only one number is derived from its stated
//! speeds: the factor by which it is faster or slower than we are, limited to eight. So it cannot make one protocol look
//! better than another by lying about the primitives of that protocol.
//!
//! A prepared half saves the same multiplications for all candidates that can use it, so it is not taken into account.
//!
//! Speeds and the times of these messages reveal nothing about the data.

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

/// The maximum number of bytes of a measurement, in each direction.
const MOST: usize = 1 << 20;
/// The minimum number of bytes of a measurement, in each direction: fewer show nothing.
const LEAST: usize = 1 << 16;
const FRAME: usize = 1 << 12;
/// The share of a run's bytes that a measurement may add.
const SHARE: f64 = 0.1;
/// The bandwidth that is assumed if none is measured, in bits per second.
const COMMON: f64 = 1e8;
/// The longest round trip that is believed.
const FARTHEST: Duration = Duration::from_secs(1);
/// A run that takes at least this many times as long as with a peer like us counts as slow, and the reason for the choice
/// says so.
const SLOW: f64 = 10.0;
/// The bandwidths, in bits per second, at which candidates are compared.
const BANDWIDTHS: [f64; 6] = [1e6, 1e7, 1e8, 1e9, 1e10, f64::INFINITY];

/// How our side takes part in the choice of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planning {
    /// How fast our side computes.
    pub speeds: Speeds,
    /// The quantity that our side minimises as the receiver.
    pub prefer: Preference,
}

/// The chosen candidate, and the reason; `None` if no candidate takes sets of these sizes.
pub(super) struct Picked {
    pub(super) choice: Choice,
    pub(super) why: Option<String>,
}

/// Settles on one of the common candidates, of which there must be at least two.
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

/// Answers the probe: receives the filler, and sends the same number of bytes back.
fn answer(channel: &mut Channel) -> Result<()> {
    let n = channel.rx.recv(PROBE, 1)?[0];
    let Some(n) = usize::try_from(n).ok().filter(|n| *n <= MOST) else {
        return Err(Error::misbehaves(format!("it measures the link by {n} bytes: {MOST} are the most")));
    };
    frames(n, FRAME).try_for_each(|n| channel.rx.recv_bytes(FILLER, n).map(drop))?;
    frames(n, FRAME).try_for_each(|n| channel.tx.send_bytes(FILLER, &vec![0; n]))
}

/// The basis of the receiver's plan.
struct Plan<'a> {
    proposal: &'a Proposal,
    common: &'a Choices,
    /// Our speeds.
    ours: Speeds,
    /// The speeds that the peer stated, or built-in ones.
    told: Speeds,
    prefer: Preference,
}

impl Plan<'_> {
    /// Picks the best candidate. Always sends a probe, because the sender waits for it.
    fn pick(&self, channel: &mut Channel, round_trip: Duration) -> Result<Picked> {
        let at = |bandwidth| Network { bandwidth, round_trip };
        let speeds = [self.ours, self.ours.like(&self.told)];
        let costs = self.costs();
        let predicted = |speeds, link| predicted(&costs, speeds, link);
        // The best candidate at each bandwidth.
        let best =
            |link| planner::best(&predicted(speeds, link), self.proposal.hello.spec.operation, self.prefer);
        let winners: Vec<(Choice, Prediction)> =
            BANDWIDTHS.iter().filter_map(|&bits| best(at(bits))).collect();
        let Some((first, _)) = winners.first().copied() else {
            // No candidate takes sets of these sizes. A later check refuses the first one with a reason.
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

    /// Returns the cost of each candidate that takes sets of these sizes, and the number of shards.
    fn costs(&self) -> Vec<(Choice, Cost, u32)> {
        let cost = |choice: Choice| {
            let proposal = Proposal { choice, ..self.proposal.clone() };
            let (protocol, deal) = proposal.deal();
            Some((choice, protocol.cost(&deal).ok()?, deal.terms.shards))
        };
        self.common.iter().filter_map(cost).collect()
    }
}

/// Returns the predictions for candidates of these costs.
fn predicted(costs: &[(Choice, Cost, u32)], speeds: [Speeds; 2], link: Network) -> Vec<(Choice, Prediction)> {
    let setting = Setting { speeds, link, prices: Prices::default(), shared: None };
    costs.iter().map(|(choice, cost, shards)| (*choice, Prediction::of(cost, *shards, &setting))).collect()
}

/// Measures the link with this number of bytes in each direction, and returns bits per second: the median over three parts of
/// the bytes that come back. A machine that stalls for a moment, as any does under load, spoils only one part.
fn measured(channel: &mut Channel, bytes: usize) -> Result<f64> {
    channel.tx.send(PROBE, &[bytes as u64])?;
    frames(bytes, FRAME).try_for_each(|n| channel.tx.send_bytes(FILLER, &vec![0; n]))?;
    let mut came = Vec::new();
    for n in frames(bytes, FRAME) {
        channel.rx.recv_bytes(FILLER, n)?;
        came.push(Instant::now());
    }
    // Timing starts when the first frame has arrived, so that frame does not count.
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
