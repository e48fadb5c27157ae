//! The connection: who the peer is, and how the two are brought together over TLS 1.3.
//!
//! Each party has an [`Identity`] and knows the [`Fingerprint`] of its one peer, as with SSH. [`establish`] gives a
//! [`Connection`] to that peer and to nobody else.
//!
//! **What is protected.** Whoever watches or changes the traffic learns the two addresses, the times
//! and the amounts of data, and can cut the connection; nothing else. Whoever connects without the
//! expected key is turned away before it has sent or received a frame, and cannot keep the peer out by
//! being slow. To a side that misses anything a run that was cut off never looks like one that came to its
//! end: each waits for the other's confirmation ([`crate::session::confirm`]).
//!
//! **What is not.** Our fingerprint: anybody who connects to the listener is shown its public key; the
//! connecting side shows its own only to the expected peer. The sizes of the sets, from the peer or
//! from those who measure the traffic. Availability, against a flood of connections. The peer itself
//! is authenticated, not trusted: what it may learn is the protocols' affair. The key file is only as
//! safe as the account it lies in.
//!
//! With [`Protection::InsecurePlaintext`] none of this holds, so it is refused off this machine, where
//! every program on the machine can still be the peer.

mod connect;
mod fingerprint;
mod identity;
mod listen;
mod room;
mod tls;

pub use connect::{Connection, Endpoint, Protection, establish};
pub use fingerprint::Fingerprint;
pub use identity::Identity;
pub use listen::Listener;

#[cfg(test)]
pub(crate) mod tests;
