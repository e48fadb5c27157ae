//! The connection between the parties over TLS 1.3, and the authentication of the peer.
//!
//! Each party has an [`Identity`] and knows the [`Fingerprint`] of its one peer, as with SSH. [`establish`] returns a
//! [`Connection`] to that peer only.
//!
//! A run of several parties has a list of them, a [`Roster`], and a mesh of connections, one for each pair of parties.
//! [`assemble`] makes the connections of one party; their channels end together ([`crate::channel::Mesh`]). The following holds
//! for each pair of parties.
//!
//! **What is protected.** Anyone who observes or alters the traffic learns the two addresses, the times and the amounts of
//! data, and can cut the connection; nothing else. Anyone who connects without the expected key is refused before sending or
//! receiving a frame, and cannot keep the peer out by being slow. To a side that still lacks data, a truncated run never looks
//! like a complete one: each side waits for the other's confirmation ([`crate::session::confirm`]).
//!
//! **What is not protected.** Our fingerprint: the listener shows its public key to anyone who connects; the connecting side
//! shows its own only to the expected peer. The sizes of the sets: the peer learns them, and so does anyone who measures the
//! traffic. Availability under a flood of connections. Trust in the peer: it is authenticated, and the protocols determine
//! which information it may learn. The key file is only as safe as the account that owns it.
//!
//! The connecting side can go through an HTTP proxy, which sees the same as an observer, and the peer's address. If the two
//! sides want one, a [`Label`] in the first message tells proxies which of several listeners is meant; anyone on the path can
//! read it.
//!
//! With [`Protection::InsecurePlaintext`] none of this holds. So it is limited to connections within this
//! machine, where any local program can still pose as the peer.

mod assembly;
mod call;
mod connect;
mod fingerprint;
mod greeting;
mod identity;
mod label;
mod listen;
mod proxy;
mod room;
mod roster;
mod tls;

pub use assembly::{ListenAt, assemble, in_memory};
pub use connect::{Connected, Connection, Endpoint, Protection, establish};
pub use fingerprint::Fingerprint;
#[cfg(test)]
pub(crate) use greeting::greet as greeted;
pub(crate) use greeting::has_list;
pub use identity::Identity;
pub use label::Label;
pub use listen::Listener;
pub use roster::{Listed, ListedParty, Me, Member, Roster};

#[cfg(test)]
pub(crate) mod tests;
