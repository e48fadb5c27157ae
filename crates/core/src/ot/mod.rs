//! Oblivious transfer (CZZDL 3.1, Figure 3). This module defines the interface; its submodules implement it.
//!
//! - *Random* OT: the sender gets two random pads, the receiver the pad of its choice. The sender learns nothing about
//!   the choice, the receiver nothing about the other pad. [`extension`] makes any number of them from 128 [`base`]
//!   OTs: `pads`, or `random` if the choices are random too. If only a few are needed, use [`base`].
//! - *Correlated* OT: the sender gets a random row q, the receiver q + choice Delta, with one secret Delta of the
//!   sender for all OTs. The function is `correlated`; the pads of random OT are hashes of its rows. Delta must stay
//!   secret as long as any secret depends on it.
//! - *1-of-2* OT of chosen messages: the sender has two rows, and the receiver gets the row of its choice. [`transfer`]
//!   encrypts them under the pads of a random OT.
//! - *One-sided* OT: the sender has one row, which the receiver gets if and only if its choice bit has the agreed
//!   value. See [`transfer`], too.
//! - *Shares* of rows: the sender has one row, and the parties get shares that add up to it if the receiver's choice
//!   bit is 1, and to zero otherwise. See [`shares`].
//!
//! All variants have the [`Security`] of the extension's setup. A malicious receiver may pick the pads that it gets; to
//! it, the other pads are uniform.
//!
//! A batch of OTs has a purpose: a constant that no other batch of the session uses, including batches with the
//! roles swapped. The purpose is in the domain of every oracle, so that no two batches share one.

pub mod base;
mod check;
pub mod extension;
pub(crate) mod masks;
pub mod shares;
pub mod transfer;

/// A pad of a random OT, used as a key.
pub type Pad = [u8; 16];

/// The parties against which OT extension is secure; both agree on it. For the difference see [`extension`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Parties that follow the protocol and try to learn from their views.
    SemiHonest,
    /// Parties that may send arbitrary messages.
    Malicious,
}
