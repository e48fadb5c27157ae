//! Connections whose handshakes are in progress, and which of them is evicted when there are too many.

use crate::rng::Prng;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Maximum number of concurrent handshakes. Each needs a thread, a file descriptor and at most about 200 KB, most of it for a
/// message that the other side began: 25 MB in total.
///
/// A flood of silent connections fills the room, so each new connection evicts another. The victim comes from
/// the host with the most connections here, so a flood from elsewhere does not cut the peer off.
///
/// If the flood comes from the peer's address, or from more addresses than there is room for, chance decides. With 66 new
/// connections during the peer's handshake (330 a second, 200 ms), the handshake completes with probability (1 - 1/128)^66 =
/// 60%, and the peer tries again if it does not.
pub(super) const HANDSHAKES: usize = 128;

/// The connections in the room, each with its associated data.
pub(super) struct Room<T> {
    comers: Vec<Comer<T>>,
    most: usize,
    /// Number of connections so far.
    count: u64,
    rng: Prng,
}

struct Comer<T> {
    id: u64,
    from: SocketAddr,
    what: T,
}

impl<T> Room<T> {
    /// Creates a room for `most` connections.
    pub(super) fn new(most: usize, rng: Prng) -> Room<T> {
        Room { comers: Vec::new(), most, count: 0, rng }
    }

    /// Adds a connection under a new id. Returns the id, and the connection that was evicted for it, if any.
    pub(super) fn enter(&mut self, from: SocketAddr, what: T) -> (u64, Option<(SocketAddr, T)>) {
        let displaced = if self.comers.len() >= self.most { self.displace() } else { None };
        self.count += 1;
        self.comers.push(Comer { id: self.count, from, what });
        (self.count, displaced)
    }

    /// Removes a connection if it is still here.
    pub(super) fn leave(&mut self, id: u64) -> Option<(SocketAddr, T)> {
        let at = self.comers.iter().position(|comer| comer.id == id)?;
        let Comer { from, what, .. } = self.comers.swap_remove(at);
        Some((from, what))
    }

    /// Evicts a random connection of the host with the most connections here. An attacker who could predict the choice could
    /// have the peer evicted.
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

/// Identifies the host at an address. For IPv6 it is the /64, since one host can use all its addresses.
fn host(from: SocketAddr) -> IpAddr {
    match from.ip().to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
