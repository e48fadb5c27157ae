//! Control over runs: which ones are allowed, and what is logged about them.
//!
//! A [`policy`] states which runs are allowed with which peers. [`audit`] keeps a log of runs. [`gate`] enforces the
//! policy and writes the log, and holds a run to an earlier check of it ([`review`]); the program uses it as its
//! [`crate::session::Approval`].

pub mod audit;
pub mod gate;
pub mod policy;
pub mod review;
