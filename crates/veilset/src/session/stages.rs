//! The names of the stages of a run in addition to the stages that its protocol announces. Reports show them.

/// From the start of the agreement until the protocol begins.
pub(crate) const AGREEING: &str = "agreeing";
/// The steps of the protocol before the first stage that it announces.
pub(crate) const SETUP: &str = "setup";
/// The whole protocol of several parties: its steps with one party overlap its steps with another.
pub(crate) const COMPUTING: &str = "computing";
/// Cutting our set into the shards of a job.
pub(crate) const CUTTING: &str = "cutting";
/// Between two shards of a job.
pub(crate) const BETWEEN: &str = "waiting for the next shard";
/// All work of the workers of a job.
pub(crate) const WORKERS: &str = "workers";
/// Waiting until all parties confirm the end, and closing the connections.
pub(crate) const CONFIRMING: &str = "confirming";
/// Opening the result.
pub(crate) const OPENING: &str = "opening the result";
