//! An encrypted, inverted Bloom filter (DC17 2.2, Definitions 2 and 3; 3.1, steps 1 to 4). Its owner sends it. The other
//! party adds up, for each of its own items, the cells at the item's positions. That sum is 0 if the owner has the item,
//! and otherwise the number of the item's positions that are empty in the owner's filter, at most k.
//!
//! Security: that of the encryption; nothing binds the owner to a set, and a filter that holds only zeros matches every
//! item. Leakage: none but the sizes. Cost: B ciphertexts. Memory: for the owner, a bit per cell, and a frame of cells;
//! for the other party, a ciphertext and 8 k bytes per item, and a frame.
//!
//! Timing: cells are added as they pass, a frame at a time. How long a frame takes shows how many positions of all items
//! together are in it: a sum of as many random numbers as there are items. Many items hide each other. Of a single one, an
//! owner that measures every frame can learn in which frames it has positions, and test guesses of it.
//!
//! Departures from the paper: B and k keep the error of the whole run ([`crate::params::filter`]). The positions of an
//! item are the first k numbers of one stream of hash, each uniform up to 2^-32. In place of a malformed cell stands a 0,
//! and the other party tells its own user at the end: which cells it looks at depends on its items.

use crate::ahe::{Cipher, FirstMalformed};
use crate::channel::{HEADER, Message, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash, SessionId};
use crate::hashed::Hashed;
use crate::params::filter::Filter;
use crate::secret::Secrets;
use rayon::prelude::*;
use zeroize::Zeroizing;

const SEED: Message<[u8; 32]> = Message::new(0xf0, "R->S  seed of the filter");
const KEY: Message<[u8]> = Message::new(0xf4, "R->S  public key");
const CELLS: Message<[u8]> = Message::new(0xf1, "R->S  encrypted cells");

/// Bytes of a frame of cells, at most: 256 KiB.
const FRAME_BYTES: usize = 1 << 18;
/// Items hashed at a time.
const BATCH: usize = 1 << 10;
/// The most positions of an item.
const MOST: usize = 72;
/// The most items that a filter can have: up to here, a position is a number of 32 bits.
pub const MOST_ITEMS: usize = 1 << 24;

/// Cells of a frame.
pub(crate) const fn frame<C: Cipher>() -> usize {
    FRAME_BYTES / C::CELL
}

/// Bytes of the messages before the cells.
pub(crate) const fn head<C: Cipher>() -> usize {
    32 + C::KEY + 2 * HEADER
}

/// The positions of an item in the filter with this seed.
fn positions(seed: &SessionId, filter: Filter) -> impl Fn(&ItemHash, &mut [u32]) + Sync + use<> {
    let domain = Domain::new(seed, "positions of an item in a filter");
    move |item, out| {
        let stream: Zeroizing<[u8; 8 * MOST]> = Zeroizing::new(domain.hash(&[item.as_bytes()]));
        for (position, number) in out.iter_mut().zip(stream.as_chunks::<8>().0) {
            let product = u128::from(u64::from_le_bytes(*number)) * u128::from(filter.cells);
            *position = (product >> 64) as u32;
        }
    }
}

/// A set of positions, a bit each.
struct Bits(Secrets<u64>);

impl Bits {
    /// The positions of these items.
    fn of(items: &[ItemHash], seed: &SessionId, filter: Filter) -> Bits {
        let (positions, k) = (positions(seed, filter), filter.positions as usize);
        let mut bits = Secrets::zeros((filter.cells as usize).div_ceil(64));
        for items in items.chunks(BATCH) {
            let mut places = Secrets::<u32>::zeros(k * items.len());
            places.par_chunks_mut(k).zip(items).for_each(|(places, item)| positions(item, places));
            places.iter().for_each(|&at| bits[at as usize / 64] |= 1 << (at % 64));
        }
        Bits(bits)
    }

    fn is_set(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }
}

/// What positions and first parts follow from: the owner's seed, and the session. So cells and answers are of no use in
/// another one.
pub(crate) fn bound(session: &SessionId, seed: &[u8; 32]) -> SessionId {
    SessionId::of(Domain::new(session, "seed of an encrypted filter").hash(&[seed]))
}

fn check(filter: Filter) -> Result<()> {
    match filter.cells <= 1 << 32 && filter.positions as usize <= MOST {
        true => Ok(()),
        false => Err(Error::Bug(format!("{filter:?} is too large"))),
    }
}

/// Sends the filter of our items and dummies, encrypted under a fresh key, which opens what comes back.
///
/// # Errors
/// Those of the channel, and [`Error::Bug`] for a filter of more than 2^32 cells or 72 positions.
pub fn send<C: Cipher>(cx: &mut Context, y: &Hashed, filter: Filter) -> Result<C::Owner> {
    check(filter)?;
    let owner = C::generate(cx.rng);
    let seed = cx.rng.bytes();
    cx.ch.tx.send(SEED, &[seed])?;
    cx.ch.tx.send_bytes(KEY, &C::public(&owner))?;
    let seed = bound(&cx.session, &seed);
    // 1. BF, inverted.
    let bits = cx.threads.run(|| Bits::of(y.own(), &seed, filter));
    let cells = filter.cells as usize;
    cx.ch.stage("filter", Unit::Bytes, cells * C::CELL);
    // 2. Each cell encrypted: EIBF.
    let mut first = 0;
    for n in frames(cells, frame::<C>()) {
        let inverted = Secrets::from((first..first + n).map(|at| !bits.is_set(at)).collect::<Vec<_>>());
        let bytes = cx.threads.run(|| C::encrypt(&owner, &seed, first as u64, &inverted, cx.rng));
        cx.ch.tx.send_bytes(CELLS, &bytes)?;
        first += n;
    }
    Ok(owner)
}

/// What the other party has of a filter.
pub struct Sums<C: Cipher> {
    /// The owner's public key.
    pub key: C::Key,
    /// For each of our items and dummies, the sum of its cells.
    pub list: C::List,
    /// Whether no cell that we used was malformed. The owner must not see it.
    pub well_formed: bool,
}

/// Receives the filter, and adds up the cells of each of our items and dummies.
///
/// # Errors
/// Those of [`send`], and [`Error::Peer`] for a malformed key, or for a malformed cell that the cipher finds without
/// regard to our items. Any other malformed cell shows in [`Sums::well_formed`] only.
pub fn receive<C: Cipher>(cx: &mut Context, x: &Hashed, filter: Filter) -> Result<Sums<C>> {
    check(filter)?;
    let seed = bound(&cx.session, &cx.ch.rx.recv(SEED, 1)?[0]);
    let key = C::key(&cx.ch.rx.recv_bytes(KEY, C::KEY)?);
    let key = key.map_err(|_| Error::misbehaves(format_args!("its public key is {}", C::UNFIT)))?;
    // 3. The positions of all items, ordered: (position, item).
    let k = filter.positions as usize;
    let mut places = Secrets::<(u32, u32)>::zeros(k * x.len());
    cx.threads.run(|| {
        let positions = positions(&seed, filter);
        places.par_chunks_mut(k).zip(x.own()).enumerate().for_each(|(item, (places, hash))| {
            let mut at = Zeroizing::new([0; MOST]);
            positions(hash, &mut at[..k]);
            places.iter_mut().zip(at.iter()).for_each(|(place, at)| *place = (*at, item as u32));
        });
        places.par_sort_unstable();
    });
    let (mut list, mut rest, mut first) = (C::zeros(x.len()), &places[..], 0);
    let (cells, mut malformed) = (filter.cells as usize, FirstMalformed::NONE);
    cx.ch.stage("filter", Unit::Bytes, cells * C::CELL);
    for n in frames(cells, frame::<C>()) {
        let bytes = cx.ch.rx.recv_bytes(CELLS, n * C::CELL)?;
        let malformed_cell = |_| Error::misbehaves(format_args!("a cell of its filter is {}", C::UNFIT));
        cx.threads.run(|| C::check(&key, &bytes)).map_err(malformed_cell)?;
        let here = rest.partition_point(|(at, _)| (*at as usize) < first + n);
        let (here, later) = rest.split_at(here);
        // 4. c_j := C_1 + .. + C_k, as far as these cells go.
        malformed = malformed.or(cx.threads.run(|| add::<C>(&seed, &key, &mut list, here, (first, &bytes))));
        (rest, first) = (later, first + n);
    }
    Ok(Sums { key, list, well_formed: malformed == FirstMalformed::NONE })
}

/// Adds the cells of a frame, of which the first has number `first`, to the sums that they belong to. Returns where the
/// first malformed one of those stands.
fn add<C: Cipher>(
    seed: &SessionId,
    key: &C::Key,
    sums: &mut C::List,
    places: &[(u32, u32)],
    (first, cells): (usize, &[u8]),
) -> FirstMalformed {
    // Each cell is decoded once, and only if it is needed.
    let mut numbers = Secrets::<u32>::with_capacity(places.len());
    let mut chosen = Secrets::<u8>::with_capacity(places.len() * C::CELL);
    let mut pairs = Secrets::<(u32, u32)>::with_capacity(places.len());
    for &(at, item) in places {
        if numbers.last() != Some(&at) {
            numbers.extend(&[at]);
            chosen.extend(&cells[(at as usize - first) * C::CELL..][..C::CELL]);
        }
        pairs.extend(&[(item, numbers.len() as u32 - 1)]);
    }
    pairs.par_sort_unstable();
    let (cells, malformed) = C::load(seed, &numbers, &chosen);
    C::add(key, sums, &cells, &pairs);
    malformed
}

#[cfg(test)]
#[path = "encrypted_filter_tests.rs"]
mod tests;
