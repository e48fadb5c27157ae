//! Whether a run may take place, and what is written down about it.
//!
//! A [`policy`] says what each peer may be told. [`audit`] keeps a log of what was run. [`gate`] holds a run to the policy
//! and writes the log: it is the [`crate::session::Approval`] of the program.

pub mod audit;
pub mod gate;
pub mod policy;
