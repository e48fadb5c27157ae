//! Sharded runs: where their sets are, how shards run, and where their results are kept.
//!
//! | module | contents |
//! |---|---|
//! | [`set`] | the set of a run: in memory, on disk or with workers |
//! | [`disk`] | a set on disk, which is cut into shards |
//! | [`engine`] | a set whose parts workers hold, and the interface to the engine that runs the workers |
//! | [`learned`], [`folder`] | the encoding of a shard's result, and the folder of a job (`--job`) |
//! | [`run`] | runs shards one after another over one connection |
//! | [`workers`] | has workers on both sides run the shards |
//! | [`keep`] | keeps the results of a job's shards in its folder, and resumes the job |
//! | [`on_disk`], [`elsewhere`] | a party's table whose set is on disk, or whose pieces workers hold |
//!
//! The modules are on several floors of the map of modules (`tests/suite/layers.rs`), so they name each other by full paths.

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
