//! Tests of the whole library that can share a process: each executable links everything, which takes longer than most tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod facade;
mod hostile;
mod layers;
#[cfg(not(feature = "fhe"))]
mod tables;
