//! What a run of several parties costs.

use super::union::Public;
use crate::error::{Error, Result};
use crate::operations::cost::PartyCost;

/// What a run of several parties costs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Bytes of frames from each party to each other: `traffic[from][to]`.
    pub traffic: Vec<Vec<u64>>,
    /// The number of messages on the longest chain.
    pub rounds: usize,
    /// The cost of each party.
    pub parties: Vec<PartyCost>,
}

pub(crate) fn union(_: &Public) -> Result<Cost> {
    Err(Error::Bug("no cost".into()))
}
pub(crate) fn count(_: &[usize]) -> Result<Cost> {
    Err(Error::Bug("no cost".into()))
}
pub(crate) fn intersect(_: &[usize]) -> Result<Cost> {
    Err(Error::Bug("no cost".into()))
}
