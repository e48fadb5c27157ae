//! Private set operations: two parties combine lists without showing them to each other.
//!
//! The public interface is:
//!
//! - [`session`]: a whole run between two connected parties: [`session::run::run`], [`session::report`], and what it
//!   will cost: [`session::estimate`];
//! - [`net`]: the connection to a peer whose fingerprint is known, over TLS: [`net::establish`]; or those to all parties
//!   of a list: [`net::assemble`];
//! - [`artefact`]: what is computed before the peer is met, in sealed files with a ledger of their uses;
//! - [`governance`]: whether a run is allowed, and a log of it: [`governance::gate`] with [`governance::policy`] and
//!   [`governance::audit`];
//! - [`job`]: one side of a run, from its table to its result;
//! - [`table`]: CSV, Parquet, Arrow and lists in, item sets, values and payloads out of them, results back;
//! - [`operations`]: what can be computed, one entry each; [`protocols`]: how, one entry each, over a channel that the
//!   caller provides;
//! - [`membership`], [`oprf`], [`equality`], [`switching`], [`vole`], [`okvs`], [`hashing`], [`ot`], [`compact_set`],
//!   [`ahe`], [`group`]: the building blocks, each usable by itself;
//! - [`channel`]: typed frames between two parties, in memory, over sockets, recorded, slowed down; the channels of one
//!   party to several others, which end together;
//! - [`context`]: what the functions of a run share: channel, session, generator, and the [`threads`] it computes on;
//!   [`many`]: the same for a run of several parties;
//! - [`item`], [`hashed`], [`stored`], [`params`], [`rng`], [`hash`], [`secret`], [`places`], [`error`], [`spelling`]: the ground floor;
//! - [`hazmat`]: what the benchmark needs and real runs must not use.
//!
//! Every operation is secure against semi-honest parties, one also against a malicious sender; the files say what each
//! party learns, and the repository's SECURITY.md what is not protected.
//!
//! Set `AWS_LC_SYS_NO_JITTER_ENTROPY=1` when you build a program with this library, for instance under `[env]` in its
//! `.cargo/config.toml`. Otherwise the first TLS connection of each process takes 31 ms of CPU, in which aws-lc measures the
//! jitter of the processor to seed a generator that the operating system seeds as well (SECURITY.md, "Randomness").
//!
//! CZZDL, in the files' headers: Yu Chen, Min Zhang, Cong Zhang, Minglang Dong, Weiran Liu, "Private Set Operations
//! from Multi-Query Reverse Private Membership Test", PKC 2024. KRTW19: Vladimir Kolesnikov, Mike Rosulek, Ni Trieu,
//! Xiao Wang, "Scalable Private Set Union from Symmetric-Key Techniques", ASIACRYPT 2019. CM20: Melissa Chase, Peihan
//! Miao, "Private Set Intersection in the Internet Setting From Lightweight Oblivious PRF", CRYPTO 2020. RR22:
//! Srinivasan Raghuraman, Peter Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE", CCS 2022. Where a
//! paper leaks or fails as printed, the code departs from it. The header says so, and the repository's
//! docs/corrections.md gives each departure with its reason and its test.
//!
//! ```
//! use veilset::channel::Channel;
//! use veilset::context::Context;
//! use veilset::hashed::Hashed;
//! use veilset::item::{ItemSet, Items};
//! use veilset::operations::{Announced, COUNT, Learned, Role, Task, Terms};
//! use veilset::protocols::{CWPRF, run};
//! use veilset::rng::Prng;
//! use veilset::session::{confirm, introduce};
//!
//! # fn main() -> veilset::error::Result<()> {
//! let ours: ItemSet = ["ann", "bob", "cleo"].iter().collect();
//! let theirs: ItemSet = ["bob", "cleo", "dan", "eve"].iter().collect();
//! let (ours, theirs) = (Hashed::new(&ours), Hashed::new(&theirs));
//! // Over a network this is a channel of net::establish, and the id comes from session::agree.
//! let (mut here, mut there) = Channel::pair();
//! let none = Items::new(); // no payload travels
//! let task = |role, set| Task {
//!     operation: &COUNT,
//!     role,
//!     group: CWPRF.group(),
//!     set,
//!     values: &[],
//!     payloads: &none,
//!     terms: Terms::default(), // only the receiver gets the result
//!     filter: None,
//! };
//! let learned = std::thread::scope(|s| {
//!     s.spawn(|| {
//!         let mut rng = Prng::from_os()?;
//!         let session = introduce(&mut there, Role::Sender, &mut rng)?;
//!         let peer = Announced { size: 3, padded: false };
//!         let mut cx = Context::new(&mut there, &session, &mut rng);
//!         run(&CWPRF, &task(Role::Sender, &theirs), &mut cx, peer)?;
//!         confirm(&mut there, &session)
//!     });
//!     let mut rng = Prng::from_os()?;
//!     let session = introduce(&mut here, Role::Receiver, &mut rng)?;
//!     let peer = Announced { size: 4, padded: false };
//!     let mut cx = Context::new(&mut here, &session, &mut rng);
//!     let sealed = run(&CWPRF, &task(Role::Receiver, &ours), &mut cx, peer)?;
//!     sealed.open(confirm(&mut here, &session)?)
//! })?;
//! assert!(learned == Learned::Matches(2));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod ahe;
pub mod artefact;
pub mod assumption;
pub mod channel;
pub mod compact_set;
pub mod context;
pub mod equality;
pub mod error;
pub mod governance;
pub mod group;
pub mod hash;
pub mod hashed;
pub mod hashing;
pub mod hazmat;
pub mod item;
pub mod job;
pub mod many;
pub mod membership;
pub mod net;
pub mod okvs;
pub mod operations;
pub mod oprf;
pub mod ot;
pub mod params;
pub mod paths;
pub mod places;
pub mod planner;
pub mod protocols;
pub mod rng;
pub mod secret;
pub mod session;
pub mod speed;
pub mod spelling;
pub mod stored;
pub mod switching;
pub mod table;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod vole;
pub mod work;
