//! The protocols of veilset, and what they are built from, over a channel that the caller provides.
//!
//! No file, no socket, no table: a [`channel::Channel`] carries frames over any stream of bytes, or within the process. The crate
//! `veilset` adds connections over TLS, sessions in which both sides agree on what is computed, tables and files; most programs want
//! that one. Here is what research and other protocols need by itself:
//!
//! - [`operations`]: what can be computed, one entry each; [`protocols`]: how, one entry each;
//! - [`membership`], [`oprf`], [`equality`], [`switching`], [`vole`], [`okvs`], [`hashing`], [`ot`], [`compact_set`], [`ahe`],
//!   [`group`]: the building blocks, each usable by itself;
//! - [`channel`]: typed frames between two parties, in memory, over streams, recorded, slowed down; the channels of one party to several
//!   others, which end together;
//! - [`context`]: what the functions of a run share: channel, session, generator, and the [`threads`] it computes on; [`many`]: the same
//!   for a run of several parties;
//! - [`item`], [`hashed`], [`params`], [`course`], [`work`], [`rng`], [`hash`], [`secret`], [`assumption`], [`error`], [`spelling`]: the
//!   ground floor.
//!
//! Its interface is for the crates of this repository, which have the same version. It may change in any version.
//!
//! # Features
//!
//! - `p256`, `paillier` (default): the group P-256, and Paillier's encryption for `dc17`. Both link aws-lc, which is C. Without them the
//!   crate compiles for `wasm32-unknown-unknown`.
//! - `fhe`: the protocol `sigma-fhe`, whose ring arithmetic is not audited.
//! - `hazmat`: generators with a fixed seed, and sessions of the caller's choice, for benchmarks. Real runs must not have it.
//! - `test-util`: what the tests of other crates use: pairs of parties, what each saw, ideal functionalities.
//!
//! CZZDL, in the files' headers: Yu Chen, Min Zhang, Cong Zhang, Minglang Dong, Weiran Liu, "Private Set Operations
//! from Multi-Query Reverse Private Membership Test", PKC 2024. KRTW19: Vladimir Kolesnikov, Mike Rosulek, Ni Trieu,
//! Xiao Wang, "Scalable Private Set Union from Symmetric-Key Techniques", ASIACRYPT 2019. CM20: Melissa Chase, Peihan
//! Miao, "Private Set Intersection in the Internet Setting From Lightweight Oblivious PRF", CRYPTO 2020. RR22:
//! Srinivasan Raghuraman, Peter Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE", CCS 2022. Where a
//! paper leaks or fails as printed, the code departs from it. The header says so, and the repository's
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
