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
//! twentieth of the bytes and of the time that the run takes in any case. Otherwise the receiver takes the candidate that is
//! at worst the fewest times slower than the best one, over all bandwidths.
//!
//! A half that was prepared takes the same multiplications off all candidates that can use it, so it is not counted.
//!
//! Speeds and the times of these messages say nothing about the data.

use super::Proposal;
use super::agreement::Met;
use crate::channel::{Channel, Message, Network, frames};
use crate::error::{Error, Result};
use crate::operations::Role;
use crate::planner::{Prediction, Preference, Prices, Setting};
use crate::protocols::Choice;
use crate::speed::Speeds;
use std::time::{Duration, Instant};

const CHOICE: Message<u64> = Message::new(5, "R->S  which of the common candidates");
const PROBE: Message<u64> = Message::new(6, "R->S  bytes that measure the link");
const FILLER: Message<[u8]> = Message::new(7, "bytes that measure the link");

/// The most bytes that measure the link, each way.
const MOST: usize = 1 << 20;
/// Fewer show nothing.
const LEAST: usize = 1 << 12;
const FRAME: usize = 1 << 16;
/// What a measurement may take of a run.
const SHARE: f64 = 0.05;
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

/// What was picked, and why, as far as we know.
pub(super) struct Picked {
    pub(super) choice: Choice,
    pub(super) why: Option<String>,
}

/// Settles on the first of the common candidates.
pub(super) fn first(channel: &mut Channel, role: Role, met: &Met) -> Result<Choice> {
    let planned = met.speeds[0].is_some();
    match (&met.common[..], role) {
        ([choice], _) => Ok(*choice),
        (common, Role::Receiver) => {
            if planned {
                channel.tx.send(PROBE, &[0])?;
            }
            channel.tx.send(CHOICE, &[0])?;
            Ok(common[0])
        }
        (common, Role::Sender) => {
            if planned {
                answer(channel)?;
            }
            receive(channel, common)
        }
    }
}

/// Settles on one of the common candidates.
pub(super) fn choose(
    channel: &mut Channel,
    proposal: &Proposal,
    met: &Met,
    planning: Option<&Planning>,
) -> Result<Picked> {
    let role = proposal.hello.role;
    let [receiver, sender] = met.speeds;
    let several = met.common.len() > 1;
    let (Some(planning), Some(ours), Role::Receiver, true) = (planning, receiver, role, several) else {
        let choice = first(channel, role, met)?;
        let planned = several && receiver.is_some();
        return Ok(Picked { choice, why: planned.then(|| "the receiver's planner chose it".into()) });
    };
    let speeds = [ours, sender.unwrap_or(Speeds::built_in(1))];
    let plan = Plan { proposal, common: &met.common, speeds, prefer: planning.prefer };
    let picked = plan.pick(channel, met.round_trip)?;
    let index = met.common.iter().position(|one| *one == picked.choice);
    let index = index.ok_or_else(|| Error::Bug("a choice that is not on the list".into()))?;
    channel.tx.send(CHOICE, &[index as u64])?;
    Ok(picked)
}

/// Receives the receiver's choice, which must be on the list.
pub(super) fn receive(channel: &mut Channel, common: &[Choice]) -> Result<Choice> {
    let index = channel.rx.recv(CHOICE, 1)?[0];
    let chosen = usize::try_from(index).ok().and_then(|index| common.get(index));
    let none = || Error::misbehaves(format!("it chose candidate {index} of {}", common.len()));
    chosen.copied().ok_or_else(none)
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
    common: &'a [Choice],
    speeds: [Speeds; 2],
    prefer: Preference,
}

impl Plan<'_> {
    /// Picks the best. Always sends the probe.
    fn pick(&self, channel: &mut Channel, round_trip: Duration) -> Result<Picked> {
        let at = |bandwidth| Network { bandwidth, round_trip };
        // At each bandwidth, what is expected of each candidate.
        let all: Vec<Vec<(Choice, Prediction)>> = BANDWIDTHS.map(|bits| self.predicted(at(bits))).into();
        let best = |row: &[(Choice, Prediction)]| {
            let least = row.iter().min_by(|(_, a), (_, b)| a.by(self.prefer).total_cmp(&b.by(self.prefer)));
            least.map(|(choice, run)| (*choice, *run))
        };
        let winners: Vec<(Choice, Prediction)> = all.iter().filter_map(|row| best(row)).collect();
        let Some((first, _)) = winners.first().copied() else {
            // None of them takes such sets: what is wrong with the first is said by those who check it.
            channel.tx.send(PROBE, &[0])?;
            return Ok(Picked { choice: self.common[0], why: None });
        };
        if winners.iter().all(|(choice, _)| *choice == first) {
            channel.tx.send(PROBE, &[0])?;
            return Ok(Picked {
                choice: first,
                why: Some(format!("the best for {} on any link", self.prefer)),
            });
        }
        let shortest = winners.iter().map(|(_, run)| run.seconds).fold(f64::INFINITY, f64::min);
        let fewest = winners.iter().map(|(_, run)| run.by(Preference::Bytes)).fold(f64::INFINITY, f64::min);
        let bytes = ((fewest * SHARE / 2.0) as usize).min(MOST);
        if bytes < LEAST || round_trip.as_secs_f64() > SHARE * shortest {
            channel.tx.send(PROBE, &[0])?;
            let choice = steadiest(&all, self.prefer).unwrap_or(first);
            let why = format!("for {}, never far from the best on any link", self.prefer);
            return Ok(Picked { choice, why: Some(why) });
        }
        let network = at(measured(channel, bytes, round_trip)?);
        let (choice, run) = best(&self.predicted(network)).unwrap_or(winners[0]);
        let why = format!(
            "the best for {} at {:.0} Mbit/s and {:.1} ms, where it is expected to take {:.2} seconds",
            self.prefer,
            network.bandwidth / 1e6,
            round_trip.as_secs_f64() * 1e3,
            run.seconds
        );
        Ok(Picked { choice, why: Some(why) })
    }

    /// What is expected of each candidate that takes such sets.
    fn predicted(&self, link: Network) -> Vec<(Choice, Prediction)> {
        let setting = Setting { speeds: self.speeds, link, prices: Prices::default(), shared: None };
        let predict = |&choice: &Choice| {
            let proposal = Proposal { choice, ..self.proposal.clone() };
            let (protocol, deal) = proposal.deal();
            Some((choice, Prediction::of(&protocol.cost(&deal).ok()?, deal.terms.shards, &setting)))
        };
        self.common.iter().filter_map(predict).collect()
    }
}

/// The candidate that is at worst the fewest times as much as the best.
fn steadiest(all: &[Vec<(Choice, Prediction)>], prefer: Preference) -> Option<Choice> {
    let worst = |choice: Choice| {
        let times = all.iter().filter_map(|row| {
            let best = row.iter().map(|(_, run)| run.by(prefer)).fold(f64::INFINITY, f64::min);
            let (_, own) = row.iter().find(|(other, _)| *other == choice)?;
            Some(own.by(prefer) / best)
        });
        times.fold(0.0, f64::max)
    };
    let candidates = all.first()?.iter().map(|(choice, _)| *choice);
    candidates.min_by(|a, b| worst(*a).total_cmp(&worst(*b)))
}

/// Bits per second, by this many bytes there and back.
fn measured(channel: &mut Channel, bytes: usize, round_trip: Duration) -> Result<f64> {
    let start = Instant::now();
    channel.tx.send(PROBE, &[bytes as u64])?;
    frames(bytes, FRAME).try_for_each(|n| channel.tx.send_bytes(FILLER, &vec![0; n]))?;
    frames(bytes, FRAME).try_for_each(|n| channel.rx.recv_bytes(FILLER, n).map(drop))?;
    let moving = start.elapsed().saturating_sub(round_trip).max(Duration::from_micros(1));
    Ok(2.0 * 8.0 * bytes as f64 / moving.as_secs_f64())
}

#[cfg(test)]
#[path = "choosing_tests.rs"]
mod tests;
