//! Private set operations: two organisations combine lists without showing them to each other.
//!
//! Each party has [`Keys`] and runs the same operation in its [`Role`]: [`intersect`], [`union`](fn@union), [`count`], [`sum`],
//! [`share`] or [`id`]. An example with both parties in one program:
//!
//! ```
//! use veilset::{Keys, Options, Peer, Role};
//!
//! # fn main() -> veilset::Result<()> {
//! let options = Options::new().allow_small();                  // real lists have 10 keys or more
//! let (here, there) = Peer::pair();
//! let outcome = std::thread::scope(|s| {
//!     s.spawn(|| {
//!         let theirs = Keys::new(["bob@b.org", "dan@d.org"])?;
//!         veilset::intersect(there, Role::Sender, &theirs, &options)
//!     });
//!     let ours = Keys::new(["ann@a.org", "bob@b.org", "cleo@c.org"])?;
//!     veilset::intersect(here, Role::Receiver, &ours, &options)
//! })?;
//! assert_eq!(outcome.result.unwrap().rows, [1]);               // which of our keys the other side has too
//! println!("{}", outcome.report.to_text());                    // what each party learned, and what it took
//! # Ok(())
//! # }
//! ```
//!
//! Between two organisations, each has an [`Identity`] and knows the other's [`Fingerprint`], exchanged by phone for instance.
//! They connect over TLS 1.3 and accept no other peer:
//!
//! ```
//! use veilset::{Identity, Keys, Options, Peer, Role};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let [ours, theirs] = ["a.pem", "b.pem"].map(|name| folder.path().join(name));
//! # for path in [&ours, &theirs] { Identity::generate()?.save(path)?; }
//! # let [a, b] = [Identity::load(&ours)?.fingerprint(), Identity::load(&theirs)?.fingerprint()];
//! # let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
//! # let (listen_at, host) = (free.clone(), free);
//! # let other = std::thread::spawn(move || -> veilset::Result<_> {
//! #     let peer = Peer::listen(listen_at, Identity::load(&theirs)?, a);
//! #     veilset::count(peer, Role::Sender, &Keys::new(["bob@b.org"])?, &Options::new())
//! # });
//! # let their_fingerprint = b.to_string();
//! let identity = Identity::load(&ours)?;                       // `veilset identity new` makes one
//! let peer = Peer::connect(host, identity, their_fingerprint.parse()?);
//! let keys = Keys::new((0..20).map(|i| format!("user{i}@a.org")))?;
//! let outcome = veilset::count(peer, Role::Receiver, &keys, &Options::new())?;
//! assert_eq!(outcome.result, Some(0));
//! # other.join().unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! The other party may use this library, the program, or the Python package: all encode keys alike.
//!
//! Every operation is secure against semi-honest parties, which follow the protocol and try to learn more from the messages
//! they see. The report of a run states what each party learned; the repository's SECURITY.md lists the limits of the
//! protection. Errors are classified by whose fault they are ([`Error::culprit`]).
//!
//! # Features
//!
//! - `parquet` (default): Parquet files, for the crates of this repository.
//! - `fhe`: the protocol `sigma-fhe`, whose ring arithmetic is not audited.
//! - `unstable`: documents everything else that is public: protocols and their building blocks. It may change in any
//!   version.
//!
//! Set `AWS_LC_SYS_NO_JITTER_ENTROPY=1` when you build a program with this library, for instance under `[env]` in its
//! `.cargo/config.toml`. Otherwise the first TLS connection of each process takes 31 ms of CPU time, in which aws-lc measures
//! the jitter of the processor to seed a generator that the operating system also seeds (docs/security/assumptions.md,
//! "Randomness").
//!
//! # Internals
//!
//! The crates of this repository use the following modules; no other crate should rely on them:
//!
//! - [`session`]: a whole run between connected parties: [`session::run::run`], [`session::report`], and the estimate of
//!   its cost, [`session::estimate`];
//! - [`net`]: the connection over TLS to a peer whose fingerprint is known, [`net::establish`], or to all parties of a list,
//!   [`net::assemble`];
//! - [`artefact`]: results computed before connecting to the peer, in sealed files, with a ledger for those of limited use;
//! - [`governance`]: whether a run is allowed, and its audit log: [`governance::gate`] with [`governance::policy`] and
//!   [`governance::audit`];
//! - [`party`]: one side of a run, from its table to its result;
//! - [`planner`], [`speed`]: the choice of a protocol, and the speed of a machine;
//! - [`table`]: reads item sets, values and payloads from CSV, Parquet, Arrow and lists, and writes results back;
//! - [`sharded`]: runs in shards, with sets on disk and with workers;
//! - [`places`], [`trusted`], [`guarded`], [`paths`]: files on disk;
//! - the whole of the crate `veilset-core`, under the same names: [`operations`], [`protocols`] and their building blocks.
#![forbid(unsafe_code)]

#[doc(inline)]
pub use error::{Error, Result};
pub use facade::{
    Authenticated, Keys, KeysBuilder, Options, Outcome, Peer, Stop, count, id, intersect, outcome, share,
    sum, union,
};
#[doc(inline)]
pub use net::{Fingerprint, Identity};
#[doc(inline)]
pub use operations::Role;
#[doc(inline)]
pub use session::report::Report;

/// The parts of a [`Report`].
pub mod report {
    #[doc(inline)]
    pub use crate::channel::{MessageBytes, StageTime};
    #[doc(inline)]
    pub use crate::operations::Announced;
    #[doc(inline)]
    pub use crate::session::report::{Bytes, LeftOut, Numbers, Sizes};
    #[doc(inline)]
    pub use crate::session::{Parties, Party};
}

#[doc(inline)]
pub use veilset_core::error;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub use veilset_core::{
    ahe, assumption, channel, compact_set, context, course, equality, group, hash, hashed, hashing, item,
    many, membership, okvs, operations, oprf, ot, params, protocols, rng, secret, spelling, switching,
    threads, vole, work,
};

mod aead;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod artefact;
mod facade;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod governance;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod guarded;
mod json;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod net;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod party;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod paths;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod places;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod planner;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod session;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod sharded;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod speed;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod table;
#[cfg(test)]
mod testing;
#[cfg_attr(not(feature = "unstable"), doc(hidden))]
pub mod trusted;

/// The Rust code blocks in the documentation.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/rust.md")]
    struct Guide;
}
