//! The developers' program, as they run it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod common;
mod soak;
