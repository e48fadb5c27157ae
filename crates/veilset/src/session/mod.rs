//! The session: the agreement between two or several connected parties, and one party's side of a run.
//!
//! `handshake.rs` ensures that all parties were asked for the same computation, [`run`] computes it, and [`confirm`] ensures
//! that all have completed it. [`report`] states what each party learned, and [`estimate`] what a run would cost and reveal.

mod agreement;
mod approval;
mod choosing;
pub mod estimate;
mod handshake;
mod party;
pub mod report;
mod request;
pub mod run;
mod spec;
pub(crate) mod stages;
mod words;

pub use crate::operations::confirm;
pub use agreement::{Hello, Term, introduce};
pub use approval::{Approval, Proposal};
pub use choosing::Planning;
pub use party::{Parties, Party};
pub use request::{Input, Local};
pub use spec::Spec;
