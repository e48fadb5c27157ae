//! Private set operations.
#![forbid(unsafe_code)]

pub mod error;
pub mod item;
pub mod rng;
pub mod secret;
pub mod table;
