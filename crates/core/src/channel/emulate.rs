//! An emulated network: frames are delayed as on a link with the given bandwidth and latency.

use super::pipe::{Pipe, PipeSink, Popped};
use super::{Channel, Ends};
use crate::error::Result;
use crate::threads;
use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A network link with equal properties in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// Bandwidth in bits per second.
    pub bandwidth: f64,
    /// Round-trip time; each direction delays by half of it.
    pub round_trip: Duration,
}

impl Network {
    /// A local network: 10 Gbit/s, 0.1 ms.
    pub const LAN: Network = Network { bandwidth: 10e9, round_trip: Duration::from_micros(100) };
    /// A network without delay.
    pub const NONE: Network = Network { bandwidth: f64::INFINITY, round_trip: Duration::ZERO };
    /// A wide-area network: 50 Mbit/s, 80 ms.
    pub const WAN: Network = Network { bandwidth: 50e6, round_trip: Duration::from_millis(80) };

    fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.bandwidth)
    }
}

impl FromStr for Network {
    type Err = String;

    /// Parses `lan`, `wan`, or `BANDWIDTH,RTT` such as `400Mbps,80ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "lan" => return Ok(Network::LAN),
            "wan" => return Ok(Network::WAN),
            _ => {}
        }
        let parse = || {
            let (bandwidth, round_trip) = text.split_once(',')?;
            let number = |text: &str, units: &[(&str, f64)]| {
                let (unit, factor) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
                let n: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
                (n.is_finite() && n > 0.0).then_some(n * factor)
            };
            Some(Network {
                bandwidth: number(bandwidth.trim(), &[("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3)])?,
                round_trip: Duration::try_from_secs_f64(number(
                    round_trip.trim(),
                    &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)],
                )?)
                .ok()?,
            })
        };
        // Within these bounds, no time computation overflows.
        let sane = |n: &Network| n.bandwidth >= 1.0 && n.round_trip <= Duration::from_secs(3600);
        parse()
            .filter(sane)
            .ok_or_else(|| format!("\"{text}\" is not a network: lan, wan, or like 400Mbps,80ms"))
    }
}

impl Channel {
    /// Delays all *sent* frames of the channel according to `network`, and returns it. The peer must do the same.
    ///
    /// # Errors
    /// [`crate::error::Error::Usage`] if the system cannot start a thread.
    pub fn emulate(mut self, network: Network) -> Result<Channel> {
        let near = Pipe::new();
        let sink = std::mem::replace(
            &mut self.tx.sink,
            Box::new(PipeSink { pipe: near.clone(), who: self.rx.who.clone() }),
        );
        let ends = Ends { outgoing: Some(near.clone()), ..self.ends.clone() };
        let inner = std::mem::replace(&mut self.ends, ends).outgoing;
        let delays = move || delay(&near, sink, network, inner);
        self.pumps.insert(0, std::thread::Builder::new().spawn(delays).map_err(|e| threads::none(&e))?);
        Ok(self)
    }
}

/// Takes frames from `near` and passes each on at the time at which the link would deliver it. Holds at most one
/// bandwidth-delay product and the capacity of a pipe.
fn delay(near: &Pipe, mut sink: Box<dyn super::Sink>, network: Network, inner: Option<Arc<Pipe>>) {
    let in_flight = network.time_of(super::pipe::CAPACITY) + network.round_trip / 2;
    let mut free_at = Instant::now();
    let mut line: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    loop {
        while line.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let sent = line.pop_front().map_or(Ok(()), |(_, frame)| sink.send(frame));
            if sent.is_err() {
                near.end(inner.and_then(|inner| inner.ended()).unwrap_or(super::End::Closed));
                return;
            }
        }
        let next = line.front().map(|(due, _)| *due);
        if let Some(due) = next.filter(|_| free_at > Instant::now() + in_flight) {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            continue;
        }
        match near.pop(next) {
            Popped::Chunk(frame) => {
                free_at = free_at.max(Instant::now()) + network.time_of(frame.len());
                line.push_back((free_at + network.round_trip / 2, frame));
            }
            Popped::Nothing => {}
            Popped::End(why) => {
                for (due, frame) in line {
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    if sink.send(frame).is_err() {
                        return;
                    }
                }
                if let Some(inner) = inner {
                    inner.end(why);
                }
                return;
            }
        }
    }
}
