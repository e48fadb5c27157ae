//! Results that stay hidden until both sides have confirmed the end of a run.

use super::Learned;
use crate::channel::{Channel, Message};
use crate::error::{Error, Result};
use crate::hash::SessionId;
use subtle::ConstantTimeEq;

/// A result that stays hidden from the peer until the run is confirmed.
///
/// Whether the rows that we chose to read are well formed, and the time to look them up, depend on bits that the peer must
/// not learn. So this verdict and this work are deferred until both sides have confirmed the end. An error from
/// [`Sealed::open`] is for us only and must not be sent to the peer.
pub struct Sealed<'a, T>(Box<dyn FnOnce() -> Result<T> + Send + 'a>);

impl<'a, T> Sealed<'a, T> {
    /// Seals the result of `work`, which runs later.
    pub fn new(work: impl FnOnce() -> Result<T> + Send + 'a) -> Self {
        Sealed(Box::new(work))
    }

    /// Runs the deferred work.
    ///
    /// # Errors
    /// [`Error::Peer`] if the peer cannot have followed the protocol. The peer must not learn of this error.
    pub fn open(self, _: Confirmed) -> Result<T> {
        (self.0)()
    }

    /// Applies `f`, which may fail, to the result once it is opened.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Result<U> + Send + 'a) -> Sealed<'a, U>
    where
        T: 'a,
    {
        Sealed::new(move || (self.0)().and_then(f))
    }

    /// Applies `f` to the result once it is opened.
    pub fn map<U>(self, f: impl FnOnce(T) -> U + Send + 'a) -> Sealed<'a, U>
    where
        T: 'a,
    {
        Sealed::new(move || (self.0)().map(f))
    }
}

impl<'a> Sealed<'a, Learned> {
    /// Returns the result that the receiver sent on, or [`Learned::Nothing`] if only the receiver gets it.
    pub fn sent_on(result: Option<Self>) -> Self {
        result.unwrap_or(Sealed::new(|| Ok(Learned::Nothing)))
    }
}

/// The message that ends a run.
pub const CONFIRMATION: Message<[u8]> = Message::new(4, "confirmation of the end");

/// Proof that both sides have confirmed the end; [`confirm`] returns it.
#[derive(Debug)]
pub struct Confirmed(());

impl Confirmed {
    /// Returns the proof without a confirmation, for tests of one part of a protocol.
    #[cfg(any(test, feature = "test-util"))]
    pub fn for_tests() -> Confirmed {
        Confirmed(())
    }
}

/// Tells the peer that we are done, and waits until the peer is done too. A result may be opened only after this.
///
/// # Errors
/// [`Error::Peer`] if the peer confirms another session. [`Error::Network`] if the connection ends.
pub fn confirm(channel: &mut Channel, session_id: &SessionId) -> Result<Confirmed> {
    let ours = blake3::derive_key("veilset 2026-11 confirmation of the end", session_id.as_bytes());
    channel.tx.send_bytes(CONFIRMATION, &ours)?;
    let theirs = channel.rx.recv_bytes(CONFIRMATION, ours.len())?;
    match bool::from(ours[..].ct_eq(&theirs)) {
        true => Ok(Confirmed(())),
        false => Err(Error::misbehaves(
            "it confirmed the end of a different session; do not use this run's output",
        )),
    }
}

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
