//! An encrypted, inverted Bloom filter of B cells, in which an item has k positions (DC17 2.2, Definitions 2 and 3; 3.1, steps
//! 1 to 4). Its owner sends it. The other party adds up, for each of its own items, the cells at the item's positions. That sum
//! is 0 if the owner has the item, and otherwise the number of the item's positions that are empty in the owner's filter, at
//! most k.
//!
//! A filter is made for one session, or in advance for many ([`Stored`], `veilset::artefact::filter`). A filter made in advance
//! is sent like any other, unless the other party has it already.
//!
//! Security: that of the encryption; nothing binds the owner to a set, and a filter that holds only zeros matches every item.
//! Leakage: the sizes. Cost: B ciphertexts, unless the other party has the filter. Memory: for the owner, a frame of cells and,
//! unless the filter was made in advance, a bit per cell and the cipher's tables; for the other party, a ciphertext and 8 k
//! bytes per item, a frame, and a ciphertext for each cell of the frame that it uses.
//!
//! Timing: cells are added as they arrive, a frame at a time. The time for a frame shows how many positions all items together
//! have in it, a sum with one random term per item. Many items hide each other. With a single item, an owner that measures
//! every frame can learn which frames hold its positions, and test guesses of it.
//!
//! Departures from the paper: B and k meet the error bound of the whole run ([`crate::params::filter`]). The positions of an
//! item are the first k numbers of one hash stream, each uniform up to 2^-32. A malformed cell that [`Cipher::check`] does not
//! refuse counts as 0. The other party reports it, if it used it, to its own user only, and at the end, because the cells that
//! it uses depend on its items.

use crate::ahe::{Cipher, FirstMalformed};
use crate::channel::{HEADER, Message, Unit, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash, SessionId};
use crate::hashed::HashedSet;
use crate::params::filter::{Agreed, Contents, Filter};
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;
use std::sync::Mutex;
use zeroize::Zeroizing;

const SEED: Message<[u8; 32]> = Message::new(0xf0, "R->S  seed of the filter");
const KEY: Message<[u8]> = Message::new(0xf4, "R->S  public key");
const CELLS: Message<[u8]> = Message::new(0xf1, "R->S  encrypted cells");

/// The maximum size of a frame of cells: 256 KiB.
const FRAME_BYTES: usize = 1 << 18;
/// The number of items hashed at a time.
const BATCH: usize = 1 << 10;
/// The maximum number of positions of an item.
const MOST: usize = 72;
/// The maximum number of items in a filter: up to this number, positions fit into 32 bits.
pub const MOST_ITEMS: usize = 1 << 24;

/// The number of cells per frame.
pub const fn frame<C: Cipher>() -> usize {
    FRAME_BYTES / C::CELL
}

/// Bytes of the messages before the cells.
pub(crate) const fn head<C: Cipher>() -> usize {
    32 + C::KEY + 2 * HEADER
}

/// Begins the digest of the public part of a filter made in advance, with the purpose, the seed and the key. The caller adds
/// the cells.
pub fn digest(contents: &Contents, seed: &[u8; 32], key: &[u8]) -> blake3::Hasher {
    let mut hasher =
        blake3::Hasher::new_derive_key("veilset 2026-11 encrypted filter, digest of the public part");
    hasher.update(&contents.purpose).update(seed).update(key);
    hasher
}

/// The seeds of the positions of items and of the first parts of cells.
#[derive(Debug, Clone, Copy)]
pub struct Seeds {
    /// The seed of the positions of items.
    pub positions: SessionId,
    /// The seed of the first parts of ciphertexts.
    pub first_parts: SessionId,
}

impl Seeds {
    /// The seeds of a filter for one session: its cells, and the answers to them, are useless in another session.
    pub(crate) fn of_session(session: &SessionId, seed: &[u8; 32]) -> Seeds {
        let bound = SessionId::of(Domain::new(session, "seed of an encrypted filter").hash(&[seed]));
        Seeds { positions: bound, first_parts: bound }
    }

    /// The seeds of a filter for many sessions. It is useless to another party that presents it as its own, because with that
    /// party as the owner items have other positions. Cells under another key have their own first parts, even where the
    /// positions are the same.
    pub fn of_owner(owner: &[u8; 32], seed: &[u8; 32], key: &[u8]) -> Seeds {
        let domain = |purpose| Domain::without_session(purpose);
        Seeds {
            positions: SessionId::of(domain("seed of a prepared filter, positions").hash(&[owner, seed])),
            first_parts: SessionId::of(
                domain("seed of a prepared filter, first parts").hash(&[owner, seed, key]),
            ),
        }
    }
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

/// A set of positions, one bit each: a Bloom filter that is not inverted.
pub struct Bits(Secrets<u64>);

impl Bits {
    /// The empty set of positions of this filter.
    pub fn none(filter: Filter) -> Bits {
        Bits(Secrets::zeros((filter.cells as usize).div_ceil(64)))
    }

    /// The positions of these items.
    fn of(items: &[ItemHash], seeds: &Seeds, filter: Filter) -> Bits {
        let mut bits = Bits::none(filter);
        bits.insert(items, seeds, filter);
        bits
    }

    /// Adds the positions of these items. Returns for each item whether its positions were all set already. They are if the
    /// item is in the set or occurs earlier in `items`, and otherwise with the error probability of the filter.
    pub fn insert(&mut self, items: &[ItemHash], seeds: &Seeds, filter: Filter) -> Secrets<bool> {
        let (positions, k) = (positions(&seeds.positions, filter), filter.positions as usize);
        let mut known = Secrets::with_capacity(items.len());
        for items in items.chunks(BATCH) {
            let mut places = Secrets::<u32>::zeros(k * items.len());
            places.par_chunks_mut(k).zip(items).for_each(|(places, item)| positions(item, places));
            for places in places.chunks_exact(k) {
                known.extend(&[places.iter().all(|at| self.is_set(*at as usize))]);
                places.iter().for_each(|&at| self.0[at as usize / 64] |= 1 << (at % 64));
            }
        }
        known
    }

    fn is_set(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    /// The words of the set: 64 positions per word, the first in the lowest bit.
    pub fn words(&mut self) -> &mut [u64] {
        &mut self.0
    }

    /// Returns `n` cells from number `first` on, inverted and encrypted (EIBF).
    pub fn encrypted<C: Cipher>(
        &self,
        owner: &C::Owner,
        seeds: &Seeds,
        (first, n): (usize, usize),
        rng: &mut Prng,
    ) -> Vec<u8> {
        let inverted = Secrets::from((first..first + n).map(|at| !self.is_set(at)).collect::<Vec<_>>());
        C::encrypt(owner, &seeds.first_parts, first as u64, &inverted, rng)
    }
}

/// A filter made in advance, as one of the parties stores it.
pub struct Stored {
    pub(crate) seed: [u8; 32],
    /// The public key, encoded.
    pub(crate) key: Vec<u8>,
    /// The secret key, if the party is the owner.
    pub(crate) secret: Option<Secrets<u8>>,
    /// The cells, until a run takes them.
    cells: Mutex<Option<Box<dyn Cells>>>,
}

/// Encrypted cells in a file, to be read from the first to the last.
pub trait Cells: Send {
    /// Reads the next cells into `out`.
    ///
    /// # Errors
    /// [`Error::Input`] if the file is damaged.
    fn read(&mut self, out: &mut [u8]) -> Result<()>;

    /// Checks, after the last cell, that the cells read belong to the filter.
    ///
    /// # Errors
    /// [`Error::Input`] if the file is damaged.
    fn end(self: Box<Self>) -> Result<()>;
}

impl Stored {
    /// Builds a filter from its parts: the seed, the public key, the secret key if the filter is ours, and the cells.
    pub fn new(seed: [u8; 32], key: Vec<u8>, secret: Option<Secrets<u8>>, cells: Box<dyn Cells>) -> Stored {
        Stored { seed, key, secret, cells: Mutex::new(Some(cells)) }
    }

    /// Takes the cells, which can be read once.
    pub fn cells(&self) -> Result<Box<dyn Cells>> {
        let cells = self.cells.lock().ok().and_then(|mut cells| cells.take());
        cells.ok_or_else(|| Error::Bug("the cells of a filter are read twice".into()))
    }

    /// The owner's key.
    fn owner<C: Cipher>(&self) -> Result<C::Owner> {
        let owner = self.secret.as_ref().and_then(|secret| C::restore(secret));
        owner.ok_or_else(|| Error::Bug("a filter without a secret key of its cipher".into()))
    }
}

fn check(filter: Filter) -> Result<()> {
    match filter.cells <= 1 << 32 && filter.positions as usize <= MOST {
        true => Ok(()),
        false => Err(Error::bug(format!("{filter:?} is too large"))),
    }
}

/// Sends the filter of our items and dummies, encrypted under a fresh key, or the filter made in advance unless the other party
/// has it already. Returns the key that decrypts the answers.
///
/// # Errors
/// The errors of the channel and of the file, and [`Error::Bug`] for a filter of more than 2^32 cells or 72 positions, for one
/// without a secret key of this cipher, or if its cells were taken before.
pub fn send<C: Cipher>(
    cx: &mut Context,
    y: &HashedSet,
    stored: Option<&Stored>,
    agreed: Agreed,
) -> Result<C::Owner> {
    check(agreed.filter)?;
    let Some(stored) = stored else { return send_fresh::<C>(cx, y, agreed.filter) };
    let owner = cx.threads.run(|| stored.owner::<C>())?;
    if agreed.held {
        return Ok(owner);
    }
    let mut from = stored.cells()?;
    send_all::<C>(cx, agreed.filter, (&stored.seed, &stored.key), |_, (_, n)| {
        let mut bytes = vec![0; n * C::CELL];
        from.read(&mut bytes).map(|()| bytes)
    })?;
    from.end()?;
    Ok(owner)
}

fn send_fresh<C: Cipher>(cx: &mut Context, y: &HashedSet, filter: Filter) -> Result<C::Owner> {
    let owner = C::generate(cx.rng);
    let seed = cx.rng.bytes();
    let seeds = Seeds::of_session(&cx.session, &seed);
    let public = cx.threads.run(|| C::public(&owner, &seeds.positions, cx.rng));
    // 1. BF, not yet inverted.
    let bits = cx.threads.run(|| Bits::of(y.own(), &seeds, filter));
    // 2. Each cell inverted and encrypted: EIBF.
    send_all::<C>(cx, filter, (&seed, &public), |cx, cells| {
        Ok(cx.threads.run(|| bits.encrypted::<C>(&owner, &seeds, cells, cx.rng)))
    })?;
    Ok(owner)
}

fn send_all<C: Cipher>(
    cx: &mut Context,
    filter: Filter,
    (seed, key): (&[u8; 32], &[u8]),
    mut next: impl FnMut(&mut Context, (usize, usize)) -> Result<Vec<u8>>,
) -> Result<()> {
    cx.ch.tx.send(SEED, &[*seed])?;
    cx.ch.tx.send_bytes(KEY, key)?;
    let (cells, mut first) = (filter.cells as usize, 0);
    cx.ch.stage("filter", Unit::Bytes, cells * C::CELL);
    for n in frames(cells, frame::<C>()) {
        let bytes = next(cx, (first, n))?;
        cx.ch.tx.send_bytes(CELLS, &bytes)?;
        first += n;
    }
    Ok(())
}

/// The other party's results from a filter.
pub struct Sums<C: Cipher> {
    /// The owner's public key.
    pub key: C::Key,
    /// The sum of the cells of each of our items and dummies.
    pub list: C::List,
    /// Whether all cells that we used were well-formed. The owner must not learn this.
    pub well_formed: bool,
}

/// Receives the filter, or reads our copy of it, and adds up the cells of each of our items and dummies.
///
/// # Errors
/// The errors of the channel and of the file; [`Error::Bug`] for a filter of more than 2^32 cells or 72 positions, or if its
/// cells were taken before; and [`Error::Peer`] for a malformed key, for a filter other than the one agreed, or for a malformed
/// cell that the cipher detects regardless of our items. Any other malformed cell shows only in [`Sums::well_formed`], and
/// only if we use it.
pub fn receive<C: Cipher>(
    cx: &mut Context,
    x: &HashedSet,
    stored: Option<&Stored>,
    agreed: Agreed,
) -> Result<Sums<C>> {
    let filter = agreed.filter;
    check(filter)?;
    let (seed, key, mut from) = match (stored, agreed.held) {
        (Some(stored), true) => (stored.seed, stored.key.clone(), Some(stored.cells()?)),
        _ => (cx.ch.rx.recv(SEED, 1)?[0], cx.ch.rx.recv_bytes(KEY, C::KEY)?, None),
    };
    let seeds = match &agreed.owner {
        Some(owner) => Seeds::of_owner(owner, &seed, &key),
        None => Seeds::of_session(&cx.session, &seed),
    };
    let mut digest = agreed.contents.filter(|_| !agreed.held).map(|contents| digest(&contents, &seed, &key));
    let key = cx.threads.run(|| C::key(&key, &seeds.positions));
    let key = key.map_err(|_| Error::misbehaves(format_args!("its public key is {}", C::UNFIT)))?;
    // 3. The positions of all items, ordered: (position, item).
    let k = filter.positions as usize;
    let mut places = Secrets::<(u32, u32)>::zeros(k * x.len());
    cx.threads.run(|| {
        let positions = positions(&seeds.positions, filter);
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
        let bytes = match &mut from {
            None => {
                let bytes = cx.ch.rx.recv_bytes(CELLS, n * C::CELL)?;
                digest.iter_mut().for_each(|digest| _ = digest.update(&bytes));
                bytes
            }
            Some(from) => {
                let mut bytes = vec![0; n * C::CELL];
                from.read(&mut bytes)?;
                bytes
            }
        };
        let malformed_cell = |_| Error::misbehaves(format_args!("a cell of its filter is {}", C::UNFIT));
        cx.threads.run(|| C::check(&key, &bytes)).map_err(malformed_cell)?;
        let here = rest.partition_point(|(at, _)| (*at as usize) < first + n);
        let (here, later) = rest.split_at(here);
        // 4. c_j := C_1 + .. + C_k, for the cells of this frame.
        let seed = &seeds.first_parts;
        malformed = malformed.or(cx.threads.run(|| add::<C>(seed, &key, &mut list, here, (first, &bytes))));
        (rest, first) = (later, first + n);
    }
    from.map_or(Ok(()), |from| from.end())?;
    if digest.zip(agreed.contents).is_some_and(|(digest, contents)| digest.finalize() != contents.digest) {
        return Err(Error::misbehaves("its filter is not the one that its hello named"));
    }
    Ok(Sums { key, list, well_formed: malformed == FirstMalformed::NONE })
}

/// Adds the cells of a frame, whose first cell has number `first`, to the sums of their items. Returns the first malformed cell
/// among the cells used.
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
