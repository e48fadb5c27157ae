//! A set of which each worker holds a part, and the interface to the engine that runs the workers, for instance Dask or Spark.

use crate::error::Result;
use crate::secret::Secret;
use crate::sharded::set::Sum;

/// A set of which each worker holds a part.
pub struct RemoteSet {
    /// The number of items of the set.
    pub items: usize,
    /// Some keys, and the sum of the items under each ([`Set::sum`](crate::sharded::set::Set::sum)).
    pub sums: Vec<(Secret<[u8; 32]>, Sum)>,
    /// The workers that hold it.
    pub workers: Box<dyn Workers>,
}

/// The workers of a party.
pub trait Workers: Send + Sync {
    /// Takes the key that puts items into shards ([`shards_of`](crate::sharded::elsewhere::shards_of)). Called once in each
    /// run, before any ticket is made; a resumed run has the same key as before.
    ///
    /// # Errors
    /// An error if the set cannot be cut.
    fn cut(&self, key: &[u8; 32]) -> Result<()>;

    /// Returns the lanes that the workers can run now.
    fn lanes(&self) -> Lanes;

    /// Has workers carry out these tickets, all at the same time, and passes the result of each shard to `keep` as it arrives.
    /// Returns, when all workers have ended, the reason for each ticket that was not completed. Completed tickets may be left
    /// out, or be `None`.
    ///
    /// # Errors
    /// The errors of `keep`; [`Error::Cancelled`](crate::error::Error::Cancelled); an error if no worker can be used.
    fn run(&self, tickets: &[Secret<Vec<u8>>], keep: &Kept<'_>) -> Result<Vec<Option<String>>>;

    /// Takes the result of a shard, when the run is complete and the other party has left. Called for all shards in order.
    ///
    /// # Errors
    /// An error if the result cannot be handed over.
    fn result(&self, shard: u32, learned: &[u8]) -> Result<()>;
}

/// The lanes that a party's workers can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes {
    /// The number of workers that can run shards at the same time.
    pub at_once: usize,
    /// The numbers, below [`Lanes::MOST`], of the lanes for which a worker has an address to listen at. `None` for workers that
    /// connect: they can run any lane.
    pub places: Option<Vec<u16>>,
}

impl Lanes {
    /// The maximum number of lanes of a run.
    pub const MOST: usize = 1 << 10;
}

/// Keeps the result of a shard, given the shard's number and the encoded result ([`learned`](crate::sharded::learned)).
pub type Kept<'k> = dyn Fn(u32, &[u8]) -> Result<()> + Sync + 'k;
