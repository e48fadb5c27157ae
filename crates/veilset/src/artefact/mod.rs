//! What is computed before the peer is met and kept until then: files sealed under our identity, each of a stated kind,
//! and a ledger of their uses.
//!
//! `sealed` is the file: encrypted, of one `Kind`, which says how many runs may use it. [`Ledger`] has a line for
//! each use, and without it a file is not used. [`prepare`] and [`open`] are the one kind there is: the offline half of
//! a session, which one run may use.

mod half;
mod ledger;
mod sealed;

pub use half::{Basis, Half, open, prepare};
pub use ledger::Ledger;

/// A kind for tests.
#[cfg(test)]
const ANY_KIND: sealed::Kind = sealed::Kind {
    name: "thing of a test",
    made_by: "veilset test",
    format: 7,
    domain: "test of a kind",
    uses: 1,
};
