//! The session: what two connected parties agree on, and one party's side of a run.
//!
//! [`agree`] makes sure that both were asked to do the same thing, [`run`] computes it, and [`confirm`] makes sure that
//! both came to the end. [`report`] says what was learned, and [`estimate`] what a run would cost and show.

mod agreement;
mod approval;
pub mod estimate;
mod party;
pub mod report;
pub mod run;

pub use agreement::{Agreement, Hello, Term, agree, confirm, introduce};
pub use approval::{Approval, Proposal};
pub use party::{Parties, Party};
