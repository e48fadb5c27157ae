//! Oblivious transfer (CZZDL 3.1, Figure 3): what it is. The files beside this one say how.
//!
//! In a *random* OT the sender gets two random pads and the receiver the one of its choice; the sender does
//! not learn the choice, the receiver nothing of the other pad. [`extension`] makes any number of them from
//! 128 [`base`] OTs. [`transfer`] turns pads into transfers of rows, one-sided: the receiver gets a row
//! exactly where its choice bit is the agreed one.
//!
//! A batch of OTs has a purpose: a constant that no other batch of the session has, also not one in which
//! the parties have the other roles. It is in the domain of every oracle, so that no two batches share one.

pub mod base;
pub mod extension;
pub mod transfer;

/// A pad: a key of one random OT.
pub type Pad = [u8; 16];
