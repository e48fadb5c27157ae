//! Private set operations.
#![forbid(unsafe_code)]

pub mod channel;
pub mod error;
pub mod item;
pub mod operations;
pub mod rng;
pub mod secret;
pub mod session;
