//! Control over runs: whether they are allowed, and how they are logged.
//!
//! A [`policy`] states which runs are allowed with which peers. [`audit`] keeps a log of runs. [`gate`] enforces the policy,
//! writes the log, and compares a run with an earlier check of it ([`review`]). The program uses it as its
//! [`crate::session::Approval`].

/// Serialises a seat in files as a number, or none for the other party of a run of two.
mod as_number {
    use crate::error::Seat;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::num::NonZeroU8;

    pub(super) fn serialize<S: Serializer>(seat: &Seat, to: S) -> Result<S::Ok, S::Error> {
        seat.number().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Seat, D::Error> {
        Option::<NonZeroU8>::deserialize(from).map(Seat::from)
    }

    /// The default if there is no number.
    pub(super) fn peer() -> Seat {
        Seat::PEER
    }
}
pub mod audit;
pub mod gate;
pub mod policy;
pub mod review;
