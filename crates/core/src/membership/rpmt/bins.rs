//! The bins: the coin toss for the hash function, simple hashing of the items, and padding and permuting the
//! sender's bins.

use super::{BOTTOM, Binning};
use crate::channel::Message;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId};
use crate::hashing::SimpleTable;
use crate::oprf::Input;
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;

/// The number of attempts to hash the items into bins. Each fails with probability at most 2^-40.
const TRIES: usize = 3;

const COMMITMENT: Message<[u8; 32]> = Message::new(0xa1, "R->S  commitment to a share of the bin hash");
const SHARE: Message<[u8; 32]> = Message::new(0xa2, "S->R  share of the bin hash");
const OPENING: Message<[u8; 32]> = Message::new(0xa3, "R->S  the share that was committed to");
const FIT: Message<[u8; 1]> = Message::new(0xa4, "both  whether the items fit into the bins");

/// Hashes our items into bins with a function from a coin toss, and with another one if either party's items do
/// not fit.
pub(super) fn hash_into_bins(
    cx: &mut Context,
    plan: &Binning,
    is_receiver: bool,
    items: &[Input],
) -> Result<SimpleTable> {
    let threads = cx.threads;
    agree(cx, is_receiver, |function| {
        let table = threads.run(|| SimpleTable::new(function, items, plan.bins.number));
        let fits = match is_receiver {
            true => table.fullest(1) <= plan.bins.receiver && table.fullest(plan.per_frame) <= plan.in_frame,
            false => table.fullest(1) <= plan.bins.sender,
        };
        fits.then_some(table)
    })
}

/// Calls `make` with a function from a coin toss, and with another one if either party's items do not fit. Returns its result.
pub(in crate::membership) fn agree<T>(
    cx: &mut Context,
    is_receiver: bool,
    mut make: impl FnMut(&Domain) -> Option<T>,
) -> Result<T> {
    for attempt in 0..TRIES {
        let function = match is_receiver {
            true => toss_first(cx, attempt)?,
            false => toss_second(cx, attempt)?,
        };
        let made = make(&function);
        cx.ch.tx.send(FIT, &[[u8::from(made.is_some())]])?;
        let theirs = match cx.ch.rx.recv(FIT, 1)?[..] {
            [[0]] => false,
            [[1]] => true,
            _ => {
                return Err(Error::misbehaves(
                    "it answered neither yes nor no on whether its items fit into the bins",
                ));
            }
        };
        match (made, theirs) {
            (Some(made), true) => return Ok(made),
            (None, _) if attempt + 1 == TRIES => {
                return Err(Error::bug(format!("our items did not fit into the bins {TRIES} times")));
            }
            _ => (),
        }
    }
    Err(Error::misbehaves(format!(
        "its items did not fit into the bins {TRIES} times; each time has a probability of at most 2^-40"
    )))
}

/// R's part of the coin toss for the bin hash.
fn toss_first(cx: &mut Context, attempt: usize) -> Result<Domain> {
    let ours = cx.rng.bytes();
    cx.ch.tx.send(COMMITMENT, &[commitment(&cx.session, attempt, &ours)])?;
    let theirs = cx.ch.rx.recv(SHARE, 1)?;
    cx.ch.tx.send(OPENING, &[ours])?;
    Ok(tossed(&cx.session, attempt, &ours, &theirs[0]))
}

/// S's part of the coin toss for the bin hash. R's share must not be used before it is checked against the commitment.
fn toss_second(cx: &mut Context, attempt: usize) -> Result<Domain> {
    let committed = cx.ch.rx.recv(COMMITMENT, 1)?;
    let ours = cx.rng.bytes();
    cx.ch.tx.send(SHARE, &[ours])?;
    let theirs = cx.ch.rx.recv(OPENING, 1)?;
    match commitment(&cx.session, attempt, &theirs[0]) == committed[0] {
        true => Ok(tossed(&cx.session, attempt, &theirs[0], &ours)),
        false => Err(Error::misbehaves("its share of the bin hash is not the one that it committed to")),
    }
}

/// A commitment to the share: hiding, because the share is as long as a key, and binding.
fn commitment(session: &SessionId, attempt: usize, share: &[u8; 32]) -> [u8; 32] {
    let domain = Domain::new(session, "RPMT commitment to a share of the bin hash");
    domain.hash(&[&(attempt as u64).to_le_bytes(), share])
}

fn tossed(session: &SessionId, attempt: usize, first: &[u8; 32], second: &[u8; 32]) -> Domain {
    let domain = Domain::new(session, "RPMT coin toss for the bin hash");
    let tossed = domain.hash(&[&(attempt as u64).to_le_bytes(), first, second]);
    Domain::new(&SessionId::of(tossed), "RPMT bin hash")
}

/// The contents of the slots of all bins. Each bin of S is padded with the bottom item and permuted, so that the
/// positions of the bits reveal nothing.
pub(super) fn fill_and_permute(plan: &Binning, table: &SimpleTable, rng: &mut Prng) -> Secrets<u32> {
    let mut order = Secrets::from(vec![BOTTOM; plan.slots()]);
    let rng = rng.split();
    order.par_chunks_mut(plan.slots_of_bin()).enumerate().for_each(|(bin, slots)| {
        let places = rng.fork(bin as u64).permutation(slots.len());
        table.bin(bin).iter().zip(places.iter()).for_each(|(&item, &place)| slots[place as usize] = item);
    });
    order
}

#[cfg(test)]
#[path = "bins_tests.rs"]
mod tests;
