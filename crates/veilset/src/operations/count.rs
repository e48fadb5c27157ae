//! Count: the receiver learns how many items the two sets share, and so the size of the union
//! (CZZDL 8.1, Figure 12, "cardinality").
//!
//! Security: that of the mqRPMT. Leakage: |X| and |X n Y| to the receiver, |Y| to the sender. Cost: that of
//! the mqRPMT.

use super::{Sealed, matches};
use crate::channel::Channel;
use crate::error::Result;
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::membership::Mqrpmt;
use crate::rng::Prng;

/// What the receiver of count learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Items in both sets.
    pub matches: usize,
    /// Items in at least one of them.
    pub union_size: usize,
}

/// The receiver, with set `y`; the sender's has `n_x` items.
pub fn receiver<'a>(
    protocol: &impl Mqrpmt,
    ch: &mut Channel,
    session: &SessionId,
    y: &'a ItemSet,
    n_x: usize,
    rng: &mut Prng,
) -> Result<Sealed<'a, Count>> {
    // 1. P1 learns the bits; their Hamming weight is the cardinality.
    let bits = protocol.server(ch, session, y, n_x, rng)?;
    Ok(Sealed::new(move || {
        let matches = matches(&bits, y.len())?;
        Ok(Count { matches, union_size: y.len() + n_x - matches })
    }))
}

/// The sender, with set `x`; the receiver's has `n_y` items.
pub fn sender(
    protocol: &impl Mqrpmt,
    ch: &mut Channel,
    session: &SessionId,
    x: &ItemSet,
    n_y: usize,
    rng: &mut Prng,
) -> Result<()> {
    protocol.client(ch, session, x, n_y, rng)?;
    Ok(())
}
