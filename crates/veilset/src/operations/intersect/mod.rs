//! Intersect: the receiver learns which of its items the sender has, and the payload of these if the sender
//! agreed to send one; the sender learns nothing, unless both get the result.

pub mod dh;
pub mod mqrpmt;

use crate::error::{Error, Result};
use crate::item::Items;

/// What the receiver of an intersection learns.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Matching {
    /// The positions in its set of the items that match, ascending.
    pub positions: Vec<u32>,
    /// The sender's payload of each of them; none if none was agreed.
    pub payloads: Items,
}

/// Puts matches into ascending order. There are none if the sender's rows made no sense; of payloads there are
/// as many as matches, or none.
fn sort(positions: Option<Vec<u32>>, payloads: &Items) -> Result<Matching> {
    let inconsistent = || {
        Error::misbehaves_unseen(
            "a row it sent does not belong to the match it stands for (by chance this happens with probability \
             2^-40)",
        )
    };
    let positions = positions.ok_or_else(inconsistent)?;
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_unstable_by_key(|&i| positions[i]);
    if order.windows(2).any(|w| positions[w[0]] == positions[w[1]]) {
        return Err(inconsistent());
    }
    let sorted = order.iter().map(|&i| positions[i]).collect();
    let payloads = match payloads.is_empty() {
        true => Items::new(),
        false => order.iter().map(|&i| payloads.get(i)).collect(),
    };
    Ok(Matching { positions: sorted, payloads })
}
