//! The protocols of veilset and their building blocks, over a channel that the caller provides.
//!
//! The crate opens no files or sockets: a [`channel::Channel`] carries frames over any byte stream, or within the
//! process. Most programs want the crate `veilset`, which adds tables, files, connections over TLS, and sessions in
//! which both sides agree on the computation. This crate provides the parts that research and other protocols need:
//!
//! - [`operations`]: the operations, with an entry for each; [`protocols`]: the protocols, with an entry for each;
//! - [`membership`], [`oprf`], [`equality`], [`switching`], [`vole`], [`okvs`], [`hashing`], [`ot`], [`compact_set`],
//!   [`ahe`], [`group`]: the building blocks, each usable on its own;
//! - [`channel`]: typed frames between two parties, in memory, over streams, recorded or delayed; and the channels of
//!   one party to several others, which end together;
//! - [`context`]: the context that the functions of a run share: channel, session, generator, and the [`threads`] it
//!   computes on; [`many`]: the same for one party and its channels to all others;
//! - [`item`], [`hashed`], [`params`], [`course`], [`work`], [`rng`], [`hash`], [`secret`], [`assumption`], [`error`],
//!   [`spelling`]: the foundations.
//!
//! The interface is for the crates of this repository, which share its version, and may change in any version.
//!
//! # Features
//!
//! - `p256`, `paillier` (default): the group P-256, and Paillier's encryption for `dc17`. Both link aws-lc, a C
//!   library. Without them the crate compiles for `wasm32-unknown-unknown`.
//! - `fhe`: the protocol `sigma-fhe`, whose ring arithmetic is not audited.
//! - `hazmat`: generators with a fixed seed, and sessions of the caller's choice, for benchmarks. Do not enable it for
//!   real runs.
//! - `test-util`: utilities for the tests of other crates: pairs of parties, their views, ideal functionalities. It includes
//!   `hazmat`.
//! - `unstable`: documents what is public only for the other crates of this repository.
//!
//! The modules' documentation cites these papers by abbreviation. CZZDL: Yu Chen, Min Zhang, Cong Zhang, Minglang Dong,
//! Weiran Liu, "Private Set Operations from Multi-Query Reverse Private Membership Test", PKC 2024. KRTW19: Vladimir
//! Kolesnikov, Mike Rosulek, Ni Trieu, Xiao Wang, "Scalable Private Set Union from Symmetric-Key Techniques", ASIACRYPT
//! 2019. CM20: Melissa Chase, Peihan Miao, "Private Set Intersection in the Internet Setting From Lightweight Oblivious
//! PRF", CRYPTO 2020. RR22: Srinivasan Raghuraman, Peter Rindal, "Blazing Fast PSI from Improved OKVS and Subfield
//! VOLE", CCS 2022. DC17: Alex Davidson, Carlos Cid, "An Efficient Toolkit for Computing Private Set Operations", ACISP
//! 2017. GNT23: Jiahui Gao, Son Nguyen, Ni Trieu, "Toward A Practical Multi-party Private Set Union", PoPETs 2024. Where
//! a paper leaks or fails as printed, the code departs from it. The module's documentation says so, and the repository's
//! docs/corrections.md gives each departure with its reason and its test.
#![forbid(unsafe_code)]

pub mod ahe;
pub mod assumption;
pub mod channel;
pub mod compact_set;
pub mod context;
pub mod course;
pub mod equality;
pub mod error;
pub mod group;
pub mod hash;
pub mod hashed;
pub mod hashing;
#[cfg(any(test, feature = "hazmat"))]
pub mod hazmat;
pub mod item;
pub mod many;
pub mod membership;
pub mod okvs;
pub mod operations;
pub mod oprf;
pub mod ot;
pub mod params;
pub mod protocols;
pub mod rng;
pub mod secret;
pub mod spelling;
pub mod switching;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
pub mod threads;
pub mod vole;
pub mod work;
