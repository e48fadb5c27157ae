//! Tables: so far, where a result is written.

mod output;

pub use output::Output;
