//! Private set operations.
#![forbid(unsafe_code)]

pub mod channel;
pub mod compact_set;
pub mod error;
pub mod group;
pub mod hash;
pub mod item;
pub mod membership;
pub mod operations;
pub mod ot;
pub mod params;
pub mod rng;
pub mod secret;
pub mod session;
pub mod table;
#[cfg(test)]
mod testing;
