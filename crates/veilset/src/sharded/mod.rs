//! Sharded runs: where their sets are, how shards run, and where their results are kept.
//!
//! | module | contents |
//! |---|---|
//! | [`set`] | the set of a run: in memory, on disk or with workers |
//! | [`disk`] | a set on disk, which is cut into shards |
//! | [`engine`] | a set that workers have, and the engine that runs the workers |
//! | [`learned`], [`folder`] | results of shards as bytes, and the folder (`--job`) that keeps them |
//! | [`run`] | runs shards one after another, with one peer |
//! | [`workers`] | runs them with workers on both sides |
//! | [`keep`] | keeps the results of a party's shards in a folder |
//! | [`on_disk`], [`elsewhere`] | a party's table whose set is on disk, or with workers |
//!
//! Each module is on the floor of its callers (`tests/suite/layers.rs`), so modules name each other by full paths.

pub mod disk;
pub mod elsewhere;
pub mod engine;
pub mod folder;
pub mod keep;
pub mod learned;
pub mod on_disk;
pub mod run;
pub mod set;
pub mod workers;
