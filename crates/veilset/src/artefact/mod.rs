//! Artefacts: files computed in advance, before connecting to the peer. Each is of a stated kind and sealed under our identity,
//! and a ledger records the uses of those that have a limited number.
//!
//! `sealed` is the encrypted file format; a file's `Kind` says how many runs may use it. A [`Ledger`] has a line for each use,
//! and a file with limited uses is not used without it. One run may use the offline half of a session ([`prepare`], [`open`]).
//! Any number of runs may use an encrypted filter ([`filter`]), without a ledger. A run in shards keeps its state in such files
//! until it is complete.

pub mod filter;
mod half;
mod ledger;
pub(crate) mod sealed;

pub use half::{Basis, Half, check_size, open, prepare};
pub use ledger::Ledger;

/// The version of the heads of these files, behind that of a kind's own format. It is not the protocol's: partners hold public
/// filters, which are not made anew for a new protocol. (It was, up to version 3 of both.)
const HEADS: u16 = 3;

/// A kind for tests.
#[cfg(test)]
const ANY_KIND: sealed::Kind = sealed::Kind {
    damaged: None,
    name: "thing of a test",
    made_by: crate::spelling::command!("test"),
    format: 7,
    domain: "test of a kind",
    uses: Some(1),
};
