//! A set of which workers have a part each, and the engine that runs them, for instance Dask or Spark.

use crate::error::Result;
use crate::secret::Secret;
use crate::sharded::set::Sum;

/// A set of which workers have a part each: what is known of the whole.
pub struct RemoteSet {
    /// The number of its items.
    pub items: usize,
    /// The sums of its items ([`Set::sum`](crate::sharded::set::Set::sum)), with the keys that they are under.
    pub sums: Vec<(Secret<[u8; 32]>, Sum)>,
    /// Who has it.
    pub workers: Box<dyn Workers>,
}

/// The workers of one side of a job.
pub trait Workers: Send + Sync {
    /// Takes the key of the shards, once, when both have drawn it: it says to which shard an item belongs
    /// ([`shards_of`](crate::sharded::elsewhere::shards_of)).
    ///
    /// # Errors
    /// Whatever keeps the set from being cut.
    fn cut(&self, key: &[u8; 32]) -> Result<()>;

    /// How many of them can run shards at the same time, and where.
    fn lanes(&self) -> Lanes;

    /// Has a worker carry out each of these tickets, all at the same time, and returns when all have ended: for each, what
    /// went wrong if it did not complete. `keep` takes the result of each shard as it comes.
    ///
    /// # Errors
    /// Those of `keep`; [`Error::Cancelled`](crate::error::Error::Cancelled).
    fn run(&self, tickets: &[Secret<Vec<u8>>], keep: &Kept<'_>) -> Result<Vec<Option<String>>>;

    /// Takes the result of a shard when the job is complete, and the other party has left.
    ///
    /// # Errors
    /// Whatever keeps it from being written.
    fn result(&self, shard: u32, learned: &[u8]) -> Result<()>;
}

/// How many workers can run shards at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes {
    /// So many.
    pub at_once: usize,
    /// The numbers of the lanes that they can run, below [`Lanes::MOST`]: those that have a place where a worker listens. `None`
    /// for workers that connect to whatever place is there.
    pub places: Option<Vec<u16>>,
}

impl Lanes {
    /// The most lanes of a job.
    pub const MOST: usize = 1 << 10;
}

/// Keeps the result of a shard.
pub type Kept<'k> = dyn Fn(u32, &[u8]) -> Result<()> + Sync + 'k;
