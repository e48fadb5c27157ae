//! Oblivious transfer (CZZDL 3.1, Figure 3): this file defines what it is, the others how.
//!
//! - *Random* OT: the sender gets two random pads, the receiver the one of its choice. The sender does not learn
//!   the choice, the receiver nothing about the other pad. [`extension`] makes any number of them from 128
//!   [`base`] OTs: `pads`, or `random` if the choices are random too. If only a few are needed, use [`base`].
//! - *Correlated* OT: the sender gets a random row q, the receiver q + choice Delta, with one secret Delta of
//!   the sender for all. The function is `correlated`; the pads of random OT are hashes of its rows. Delta must
//!   stay secret as long as any secret depends on it.
//! - *1-of-2* OT of chosen messages: the sender has two rows, the receiver gets the one of its choice.
//!   [`transfer`] encrypts them under the pads of a random OT.
//! - *One-sided* OT: the sender has one row, the receiver gets it exactly if its choice bit is the agreed one.
//!   See [`transfer`], too.
//! - *Shares* of rows: the sender has one row, and both get shares that add up to it exactly if the receiver's choice
//!   bit is 1. See [`shares`].
//!
//! All of them are as secure as the extension was set up to be: [`Security`]. A malicious receiver may pick the
//! pads that it gets; the others are uniform to it.
//!
//! A batch of OTs has a purpose: a constant that no other batch of the session uses, including batches with the
//! roles swapped. It is in the domain of every oracle, so that no two batches share one.

pub mod base;
mod check;
pub mod extension;
pub(crate) mod masks;
pub mod shares;
pub mod transfer;

/// A pad: a key of one random OT.
pub type Pad = [u8; 16];

/// The parties against which OT extension is secure; both agree on it. For the difference see [`extension`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Parties that follow the protocol and try to learn from what they see.
    SemiHonest,
    /// Parties that may send anything.
    Malicious,
}
