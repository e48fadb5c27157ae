//! Oblivious key-value stores (OKVS): a vector that maps keys to values and, where the values are random, hides the
//! keys it was made for. This one is based on a random band matrix (BPSY23: Bienstock, Patel, Seo and Yeo,
//! "Near-Optimal Oblivious Key-Value Stores for Efficient PSI, PSU and Volume-Hiding Multi-Maps", USENIX Security 2023;
//! the matrix of Dillinger and Walzer's ribbon filters, 2021).
//!
//! Keys are hashes, which have a fixed length. Each key has a row: a start and [`WIDTH`] random bits. Its value is the
//! sum of the elements of the vector at the set bits, counted from the start. Encoding solves these equations. It
//! eliminates rows in the order of their starts, in one pass over memory, and then finds the elements from the last to
//! the first. Elements that the equations leave free are random, so the vector is uniform among the solutions. If the
//! values are uniform too, so is the vector.
//!
//! Rows are bits, so a store is linear over GF(2), and each bit of the values is encoded separately with the same rows.
//! The first bytes of all elements are a store of the first bytes of all values, uniform among its solutions if the
//! whole is. So for values of w bytes, w bytes per element are sent. The bound on failure depends on the rows alone.
//!
//! The band matrix replaces the clusters of sparse rows of RR22. It is as cache-friendly and needs less memory, and the
//! bound on failure ([`failure`]) is proven rather than extrapolated from simulations.
//!
//! Security: rows come from a PRF (AES) under a seed that the encoder picks after its keys are fixed. A party that
//! picks keys after seeing the seed can make encoding fail. Semi-honest only: a vector can hold more keys than were
//! encoded ("OKVS overfitting", Asiacrypt 2024). Leakage: the size. The time of encoding, and the addresses that
//! encoding and decoding read, depend on the rows and so on the keys and the seed. Cost: `size(n)` elements, 1.215 n at
//! a million keys; decoding reads 2 KiB per key.

use crate::error::{Error, Result};
use crate::hash::{Domain, ItemHash};
use crate::rng::Prng;
use crate::secret::Secrets;
use rayon::prelude::*;
use veilset_kernels::aes::Aes128;
use veilset_kernels::band;
use veilset_kernels::bytes::xor;

/// A value, and an element of the vector: an element of GF(2^128), or any 16 bytes added with exclusive-or.
pub type Value = [u8; 16];

/// The seed of the rows, which accompanies the vector.
pub type Seed = [u8; 16];

/// Number of bits in a row. With twice as many, a vector for a million keys would be 9% shorter, but decoding would
/// take twice as long.
pub const WIDTH: usize = band::WIDTH;

/// Encoding fails with probability at most 2^-40, and is then retried.
const EXPONENT: i32 = 40;
/// Number of tries; if all of them fail, it is a bug.
const TRIES: usize = 4;
/// Number of keys whose rows are computed at once: 16 KiB of blocks.
const BATCH: usize = 1 << 9;

/// Returns the length of the vector for `n` keys: the smallest one, up to 0.2%, at which [`failure`] is at most 2^-40.
pub fn size(n: usize) -> usize {
    // Sizes are on a grid, so that two machines that round logarithms differently get the same result: between
    // neighbours the bound changes by much more than rounding does.
    let grid = 1 << (usize::BITS - n.leading_zeros()).saturating_sub(10);
    let good = |size: usize| failure(n, size, WIDTH) <= f64::from(-EXPONENT).exp2();
    let (mut low, mut high) = (0, 1);
    while !good(WIDTH + high * grid) {
        (low, high) = (high, 2 * high);
    }
    if good(WIDTH) {
        return WIDTH;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match good(WIDTH + middle * grid) {
            true => high = middle,
            false => low = middle,
        }
    }
    WIDTH + high * grid
}

/// Returns a bound on the probability that `n` keys cannot be encoded in a vector of `size` elements with rows of
/// `width` bits.
///
/// Encoding fails if and only if some rows add up to zero. Take a smallest set of such rows. The intervals that it
/// covers are connected, or each part would be such a set: together they are a window of some length l >= width, and
/// the rows are entirely inside. Given the starts, each of the l columns is covered by a row of the set. So the sum of
/// its rows is uniform in GF(2)^l, and zero with probability 2^-l. If R rows lie inside the window, there are at most
/// 2^R such sets. So a set with this window exists with probability at most E[min(1, 2^(R-l))], and there are `size -
/// l + 1` windows of length l. R is binomial: each of `n` rows is inside with probability p = (l - width + 1) / (size -
/// width + 1). By Chernoff, for every z from 1 to 2, min(1, 2^(R-l)) <= z^(R-l). So the mean is at most z^-l (1 + p
/// (z - 1))^n, for the best z. Lengths are grouped in blocks of a 512th of their length. Each block takes its smallest
/// l and its largest p, which bounds its terms from above.
///
/// A start is the upper part of a 64-bit number times the number of starts. So it is more likely than 1 / (size -
/// width + 1) by a factor of at most 1 + size / 2^64, and an outcome of n starts by at most e^(n size / 2^64). The
/// result includes this factor, or 1.01 where that is more, as it is up to 2^28 keys.
pub fn failure(n: usize, size: usize, width: usize) -> f64 {
    if size < width || size < n {
        return 1.0;
    }
    let (rows, starts) = (n as f64, (size - width + 1) as f64);
    let (mut total, mut length) = (0.0, width);
    while length <= size {
        let last = (length + (length / 512).max(1) - 1).min(size);
        let (l, p) = (length as f64, ((last - width + 1) as f64 / starts).min(1.0));
        let best = if l < rows { l * (1.0 - p) / (p * (rows - l)) } else { 2.0 };
        let z = best.clamp(1.0, 2.0);
        let mean = (rows * (p * (z - 1.0)).ln_1p() - l * z.ln()).min(0.0).exp();
        total += ((last - length + 1) * (size - length + 1)) as f64 * mean;
        length = last + 1;
    }
    let likelier = (rows * size as f64 * (-64f64).exp2()).exp().max(1.01);
    (likelier * total).min(1.0)
}

/// The rows of some keys under a seed, in the order of their starts. Reading a vector of a million elements takes 22 ns
/// per row in this order; in random order, 270.
pub struct BandRows {
    starts: Secrets<u32>,
    bits: Secrets<u128>,
    /// The key of each row.
    keys: Secrets<u32>,
}

impl BandRows {
    /// Returns the rows of `keys` in a vector of `size` elements.
    ///
    /// # Errors
    /// [`Error::Bug`] if the vector is shorter than a row, or has 2^32 elements or more.
    pub fn new(seed: &Seed, keys: &[ItemHash], size: usize) -> Result<BandRows> {
        BandRows::of(seed, keys.len(), |i| keys[i], size)
    }

    /// Returns the rows of `n` keys, where `key(i)` makes key number i on demand.
    fn of(seed: &Seed, n: usize, key: impl Fn(usize) -> ItemHash + Sync, size: usize) -> Result<BandRows> {
        if size < WIDTH || u32::try_from(size).is_err() {
            return Err(Error::bug(format!("a key-value store of {size} elements")));
        }
        let starts = (size - WIDTH + 1) as u128;
        let [first, second]: [[u8; 16]; 2] = {
            let keys: [u8; 32] = Domain::without_session("rows of a key-value store").hash(&[seed]);
            let (first, second) = keys.split_at(16);
            [std::array::from_fn(|i| first[i]), std::array::from_fn(|i| second[i])]
        };
        let ciphers = [Aes128::new(&first), Aes128::new(&second)];
        // A start and a key in one word, for sorting.
        let mut order = Secrets::<u64>::zeros(n);
        let mut bits = Secrets::<u128>::zeros(n);
        let batches = order.par_chunks_mut(BATCH).zip(bits.par_chunks_mut(BATCH));
        batches.enumerate().for_each(|(batch, (order, bits))| {
            let keys = (batch * BATCH..).take(bits.len()).map(&key).collect::<Vec<_>>();
            let blocks = prf(&ciphers, &Secrets::from(keys));
            for (i, [start, row]) in blocks.as_chunks().0.iter().enumerate() {
                let start = (u128::from_le_bytes(*start) as u64 as u128 * starts) >> 64;
                order[i] = (start as u64) << 32 | (batch * BATCH + i) as u64;
                bits[i] = u128::from_le_bytes(*row);
            }
        });
        let order = sorted(order, size);
        let mut rows =
            BandRows { starts: Secrets::zeros(n), bits: Secrets::zeros(n), keys: Secrets::zeros(n) };
        for (i, &word) in order.iter().enumerate() {
            (rows.starts[i], rows.keys[i]) = ((word >> 32) as u32, word as u32);
            rows.bits[i] = bits[word as u32 as usize];
        }
        Ok(rows)
    }

    /// Returns the values that `vector` holds for the keys, in their order.
    ///
    /// # Errors
    /// [`Error::Bug`] if the vector is too short for the rows.
    pub fn decode(&self, vector: &[Value]) -> Result<Secrets<Value>> {
        Ok(in_order(&self.keys, &self.sums(vector)?))
    }

    /// Decodes as [`BandRows::decode`] does, and frees the vector and the rows before it puts the values in order.
    ///
    /// # Errors
    /// [`Error::Bug`] if the vector is too short for the rows.
    pub fn decode_last(self, vector: Secrets<Value>) -> Result<Secrets<Value>> {
        let sums = self.sums(&vector)?;
        drop((vector, self.starts, self.bits));
        Ok(in_order(&self.keys, &sums))
    }

    /// The values in the order of the rows.
    fn sums(&self, vector: &[Value]) -> Result<Secrets<Value>> {
        if self.starts.last().is_some_and(|&last| last as usize + WIDTH > vector.len()) {
            return Err(Error::Bug("a vector that is shorter than the rows were made for".into()));
        }
        let mut sums = Secrets::zeros(self.keys.len());
        let rows = self.starts.par_chunks(BATCH).zip(self.bits.par_chunks(BATCH));
        rows.zip(sums.par_chunks_mut(BATCH))
            .for_each(|((starts, bits), sums)| band::select(starts, bits, vector, sums));
        Ok(sums)
    }

    /// A random vector of `size` elements with these values, in the order of the keys; `None` if the rows are linearly
    /// dependent.
    fn encode(&self, value: impl Fn(usize) -> Value, size: usize, rng: &mut Prng) -> Option<Secrets<Value>> {
        let rows = self.starts.iter().zip(self.bits.iter()).zip(self.keys.iter());
        let rows = rows.map(|((&start, &bits), &key)| (start, bits, value(key as usize)));
        let (leading, mut vector) = eliminate(rows, size)?;
        // Elements that lead no row are free, and so random.
        let mut free = Secrets::<Value>::zeros(size - self.keys.len());
        rng.fill(free.as_flattened_mut());
        let free_places = vector.iter_mut().zip(leading.iter()).filter(|(_, bits)| **bits == 0);
        free_places.zip(free.iter()).for_each(|((element, _), free)| *element = *free);
        band::substitute(&leading, &mut vector);
        vector.truncate(size);
        Some(vector)
    }
}

/// The values of rows in the order of their keys.
fn in_order(keys: &[u32], sums: &[Value]) -> Secrets<Value> {
    let mut values = Secrets::zeros(sums.len());
    for (&key, value) in keys.iter().zip(sums) {
        values[key as usize] = *value;
    }
    values
}

/// Two blocks for each key: AES in counter mode from the CBC-MAC of the key under another AES key (CM20 4.2 has a similar
/// construction).
fn prf([mac, counter]: &[Aes128; 2], keys: &[ItemHash]) -> Secrets<[u8; 16]> {
    let mut blocks = Secrets::<[u8; 16]>::zeros(2 * keys.len());
    let (states, _) = blocks.split_at_mut(keys.len());
    states.iter_mut().zip(keys).for_each(|(state, key)| xor(state, &key[..16]));
    mac.encrypt(states);
    states.iter_mut().zip(keys).for_each(|(state, key)| xor(state, &key[16..]));
    mac.encrypt(states);
    for i in (0..keys.len()).rev() {
        let state = u128::from_le_bytes(blocks[i]);
        (blocks[2 * i], blocks[2 * i + 1]) = (state.to_le_bytes(), (state ^ 1).to_le_bytes());
    }
    counter.encrypt(&mut blocks);
    blocks
}

/// Sorts words by their upper halves, which are below `bound`: a radix sort with digits of 11 bits. It is stable, so
/// words with equal upper halves keep their order.
fn sorted(mut words: Secrets<u64>, bound: usize) -> Secrets<u64> {
    const DIGIT: u32 = 11;
    let mut other = Secrets::zeros(words.len());
    for shift in (32..32 + usize::BITS - bound.leading_zeros()).step_by(DIGIT as usize) {
        let digit = |word: u64| (word >> shift) as usize % (1 << DIGIT);
        let mut places = Secrets::<usize>::zeros(1 << DIGIT);
        words.iter().for_each(|&word| places[digit(word)] += 1);
        let mut before = 0;
        places.iter_mut().for_each(|place| (before, *place) = (before + *place, before));
        for &word in words.iter() {
            let place = &mut places[digit(word)];
            other[*place] = word;
            *place += 1;
        }
        (words, other) = (other, words);
    }
    words
}

/// Gaussian elimination of rows (start, bits, value) of a vector of `size` elements. Returns for each element the row
/// that it leads: its bits from the element on, 0 if there is no row, and its value. The values have 127 additional
/// elements. `None` if the rows are linearly dependent.
fn eliminate(
    rows: impl Iterator<Item = (u32, u128, Value)>,
    size: usize,
) -> Option<(Secrets<u128>, Secrets<Value>)> {
    let (mut leading, mut values) = (Secrets::zeros(size), Secrets::<Value>::zeros(size + WIDTH - 1));
    for (start, mut bits, value) in rows {
        let (mut at, mut value) = (start as usize, u128::from_le_bytes(value));
        loop {
            if bits == 0 {
                return None;
            }
            let zeros = bits.trailing_zeros();
            (at, bits) = (at + zeros as usize, bits >> zeros);
            if leading[at] == 0 {
                (leading[at], values[at]) = (bits, value.to_le_bytes());
                break;
            }
            bits ^= leading[at];
            value ^= u128::from_le_bytes(values[at]);
        }
    }
    Some((leading, values))
}

/// An encoded store: the vector, the seed of its rows, and the rows of its keys.
pub struct Encoded {
    /// The seed of the rows.
    pub seed: Seed,
    /// The vector. It may be sent only if the values are random, or masked.
    pub vector: Secrets<Value>,
    /// The rows of the keys, for decoding other vectors with them.
    pub rows: BandRows,
}

/// Encodes `value(i)` for key number i of `keys`, which must be distinct, in a vector of [`size`] elements.
///
/// # Errors
/// [`Error::Bug`] if encoding fails, which has negligible probability unless keys are equal, or if the vector would have 2^32
/// elements or more.
pub fn encode(keys: &[ItemHash], value: impl Fn(usize) -> Value, rng: &mut Prng) -> Result<Encoded> {
    encode_of(keys.len(), |i| keys[i], value, rng)
}

/// Encodes `value(i)` for each of `n` distinct keys, where `key(i)` makes key number i on demand, in a vector of
/// [`size`] elements.
///
/// # Errors
/// The errors of [`encode`].
pub fn encode_of(
    n: usize,
    key: impl Fn(usize) -> ItemHash + Sync,
    value: impl Fn(usize) -> Value,
    rng: &mut Prng,
) -> Result<Encoded> {
    encode_in([size(n), n], key, value, rng)
}

fn encode_in(
    [size, n]: [usize; 2],
    key: impl Fn(usize) -> ItemHash + Sync,
    value: impl Fn(usize) -> Value,
    rng: &mut Prng,
) -> Result<Encoded> {
    for _ in 0..TRIES {
        let seed = rng.bytes();
        let rows = BandRows::of(&seed, n, &key, size)?;
        if let Some(vector) = rows.encode(&value, size, rng) {
            return Ok(Encoded { seed, vector, rows });
        }
    }
    Err(Error::bug(format!("{n} keys could not be encoded in {TRIES} tries; are they distinct?")))
}

#[cfg(test)]
#[path = "okvs_tests.rs"]
mod tests;
