//! Connections whose handshakes are under way, and who leaves when there are too many.

use crate::rng::Prng;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Handshakes at once. Each has a thread, a file descriptor and at most about 200 KB, most of it for a message that
/// its other side began: 25 MB in all.
///
/// A flood of silent connections fills the room, so one of them leaves for each that comes. It is one from the host
/// that has most of them here, so a flood from elsewhere does not cut the peer off. If the peer's address is the
/// flood's (or the flood has more addresses than there is room), chance decides: with 66 new connections during the
/// peer's handshake (330 a second, 200 ms), it goes through with probability (1 - 1/128)^66 = 60%, and it tries again.
pub(super) const HANDSHAKES: usize = 128;

/// Those who are here, each with what belongs to it.
pub(super) struct Room<T> {
    comers: Vec<Comer<T>>,
    most: usize,
    /// How many there were so far.
    count: u64,
    rng: Prng,
}

struct Comer<T> {
    id: u64,
    from: SocketAddr,
    what: T,
}

impl<T> Room<T> {
    /// With place for so many.
    pub(super) fn new(most: usize, rng: Prng) -> Room<T> {
        Room { comers: Vec::new(), most, count: 0, rng }
    }

    /// Lets one more in, under an id that is new; who left for it.
    pub(super) fn enter(&mut self, from: SocketAddr, what: T) -> (u64, Option<(SocketAddr, T)>) {
        let displaced = if self.comers.len() >= self.most { self.displace() } else { None };
        self.count += 1;
        self.comers.push(Comer { id: self.count, from, what });
        (self.count, displaced)
    }

    /// Takes one out, if it is still here.
    pub(super) fn leave(&mut self, id: u64) -> Option<(SocketAddr, T)> {
        let at = self.comers.iter().position(|comer| comer.id == id)?;
        let Comer { from, what, .. } = self.comers.swap_remove(at);
        Some((from, what))
    }

    /// Takes out one of those from the host that has most of them here. Any of them is as likely: who knew which,
    /// could see to it that it is the peer.
    pub(super) fn displace(&mut self) -> Option<(SocketAddr, T)> {
        let mut hosts: HashMap<IpAddr, usize> = HashMap::new();
        for comer in &self.comers {
            *hosts.entry(host(comer.from)).or_default() += 1;
        }
        let most = hosts.values().max().copied()?;
        let busiest = |comer: &Comer<T>| hosts.get(&host(comer.from)) == Some(&most);
        let victims: Vec<u64> =
            self.comers.iter().filter(|comer| busiest(comer)).map(|comer| comer.id).collect();
        let victim = self.rng.below(victims.len() as u64) as usize;
        self.leave(*victims.get(victim)?)
    }
}

/// What stands for the host at an address: of IPv6 a /64, of which one host has all addresses.
fn host(from: SocketAddr) -> IpAddr {
    match from.ip().to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
