//! Oblivious transfer (CZZDL 3.1, Figure 3): what it is. The files beside this one say how.
//!
//! - *Random* OT: the sender gets two random pads and the receiver the one of its choice; the sender does not
//!   learn the choice, the receiver nothing of the other pad. [`extension`] makes any number of them from
//!   128 [`base`] OTs: `pads`, and `random` where the choices are to be random too. Who needs only a few takes
//!   them from [`base`].
//! - *Correlated* OT: the sender gets a random row q and the receiver q + choice Delta, with one secret Delta
//!   of the sender for all: `correlated`, of which the pads of random OT are the hashes. Delta has to stay secret
//!   as long as anything hangs on it.
//! - *1-of-2* OT of chosen messages: the sender has two rows, the receiver gets the one of its choice.
//!   [`transfer`] encrypts them under the pads of a random OT.
//! - *One-sided* OT: the sender has one row, the receiver gets it exactly where its choice bit is the agreed
//!   one. [`transfer`] again.
//!
//! All of them are as secure as the extension is made: [`Security`]. A cheating receiver may pick the pads that
//! it gets; the others are uniform for it.
//!
//! A batch of OTs has a purpose: a constant that no other batch of the session has, also not one in which
//! the parties have the other roles. It is in the domain of every oracle, so that no two batches share one.

pub mod base;
mod check;
pub mod extension;
pub(crate) mod masks;
pub mod transfer;

/// A pad: a key of one random OT.
pub type Pad = [u8; 16];

/// Adds `b` to `a`, byte by byte.
pub(crate) fn xor(a: &mut [u8], b: &[u8]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
}

/// Against what parties OT extension is secure; both agree on it. What the difference is: [`extension`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Parties that keep to the protocol and try to learn from what they see.
    SemiHonest,
    /// Parties that send whatever they like.
    Malicious,
}
