//! A set that workers have, each of them a part, and the engine that runs them, for instance Dask or Spark.

use crate::error::Result;
use crate::secret::Secret;
use crate::sharded::set::Sum;

/// A set of which each worker has a part.
pub struct RemoteSet {
    /// The number of its items.
    pub items: usize,
    /// The keys and the sums of its items under them ([`Set::sum`](crate::sharded::set::Set::sum)).
    pub sums: Vec<(Secret<[u8; 32]>, Sum)>,
    /// The workers.
    pub workers: Box<dyn Workers>,
}

/// The workers of a party.
pub trait Workers: Send + Sync {
    /// Takes the key that puts items into shards ([`shards_of`](crate::sharded::elsewhere::shards_of)), once, when both parties
    /// have drawn it.
    ///
    /// # Errors
    /// An error if the set cannot be cut.
    fn cut(&self, key: &[u8; 32]) -> Result<()>;

    /// The number of workers that can run shards at the same time, and their lanes.
    fn lanes(&self) -> Lanes;

    /// Has workers carry out these tickets, all at the same time, and returns when all have ended: for each, the reason if it did
    /// not complete. `keep` takes the result of each shard as it comes.
    ///
    /// # Errors
    /// The errors of `keep`; [`Error::Cancelled`](crate::error::Error::Cancelled).
    fn run(&self, tickets: &[Secret<Vec<u8>>], keep: &Kept<'_>) -> Result<Vec<Option<String>>>;

    /// Takes the result of a shard when the run is complete, and the other party has left.
    ///
    /// # Errors
    /// An error if it cannot be written.
    fn result(&self, shard: u32, learned: &[u8]) -> Result<()>;
}

/// The lanes that a party's workers can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes {
    /// The number of workers that can run shards at the same time.
    pub at_once: usize,
    /// The numbers of the lanes with a place where a worker listens, below [`Lanes::MOST`]. `None` for workers that connect: they
    /// can run any lane.
    pub places: Option<Vec<u16>>,
}

impl Lanes {
    /// The maximum number of lanes.
    pub const MOST: usize = 1 << 10;
}

/// Keeps the result of a shard.
pub type Kept<'k> = dyn Fn(u32, &[u8]) -> Result<()> + Sync + 'k;
