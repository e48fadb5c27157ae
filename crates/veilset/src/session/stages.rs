//! The stages of a run in addition to those that its protocol announces. Reports name them.

/// Hellos and sizes, until all allow the run.
pub(crate) const AGREEING: &str = "agreeing";
/// What the protocol does before the first stage that it announces.
pub(crate) const SETUP: &str = "setup";
/// In a run of several, all of the protocol: its steps with one party go on during those with another.
pub(crate) const COMPUTING: &str = "computing";
/// In a job in shards: our set is cut.
pub(crate) const CUTTING: &str = "cutting";
/// Between two shards of a job.
pub(crate) const BETWEEN: &str = "waiting for the next shard";
/// All that workers do.
pub(crate) const WORKERS: &str = "workers";
/// All confirm that they are done, and leave.
pub(crate) const CONFIRMING: &str = "confirming";
/// The result is opened.
pub(crate) const OPENING: &str = "opening the result";
