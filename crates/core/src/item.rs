//! Items: the byte strings that are compared, and sets of them.
//!
//! An item is the injective encoding of a row's key columns: each column is preceded by its length, so `("a", "bc")`
//! differs from `("ab", "c")`. The length is a LEB128 varint in its shortest form, which makes the encoding unique:
//! [`encode_key`] and [`decode_key`] are inverses of each other.

use crate::hash::ItemHash;
use crate::secret::{Secrets, wipe};
use rayon::prelude::*;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Maximum length of an encoded item in bytes: 64 KiB.
pub const MAX_ITEM: usize = 1 << 16;

/// A list of byte strings stored end to end: each takes 8 bytes more than its own length. They are a party's data, so
/// `Debug` shows only their number, and they are zeroized on drop. A list that grows, or that frees memory
/// ([`Items::shrink_to_fit`]), leaves copies behind, so reserve capacity.
#[derive(Clone, PartialEq, Eq)]
pub struct Items {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Drop for Items {
    fn drop(&mut self) {
        wipe(&mut self.bytes);
    }
}

impl ZeroizeOnDrop for Items {}

impl Default for Items {
    fn default() -> Self {
        Self::new()
    }
}

impl Items {
    /// Returns an empty list.
    pub const fn new() -> Self {
        Items { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Returns an empty list with room for `n` items of `bytes` bytes in total.
    pub fn with_capacity(n: usize, bytes: usize) -> Self {
        Items { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(n) }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends an item.
    pub fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len() as u64);
    }

    /// Appends the first `len` bytes of `padded` if `keep`, and takes the same time otherwise.
    pub fn push_if(&mut self, keep: bool, padded: &[u8], len: usize) {
        let (start, n) = (self.bytes.len(), self.len());
        self.bytes.extend_from_slice(padded);
        self.bytes.truncate(start + if keep { len.min(padded.len()) } else { 0 });
        self.ends.push(self.bytes.len() as u64);
        self.ends.truncate(n + usize::from(keep));
    }

    /// Appends the item that `write` writes to the end of the given buffer.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u64);
    }

    /// Keeps the items whose positions `keep` accepts, in place.
    fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let (mut start, mut end, mut kept) = (0, 0, 0);
        for i in 0..self.ends.len() {
            let next = self.ends[i] as usize;
            if keep(i as u32) {
                self.bytes.copy_within(start..next, end);
                end += next - start;
                self.ends[kept] = end as u64;
                kept += 1;
            }
            start = next;
        }
        self.bytes[end..].zeroize();
        self.bytes.truncate(end);
        self.ends.truncate(kept);
    }

    /// Frees the memory reserved for further items, without zeroizing it.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Returns the item at position `i`, which must be below `len()`.
    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// Returns the items in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Returns the items at these positions, in the given order.
    pub fn chosen(&self, positions: &[u32]) -> Items {
        let bytes = positions.iter().map(|&i| self.get(i as usize).len()).sum();
        let mut chosen = Items::with_capacity(positions.len(), bytes);
        positions.iter().for_each(|&i| chosen.push(self.get(i as usize)));
        chosen
    }

    /// Returns the length of the longest item, or 0 if there are no items.
    pub fn longest(&self) -> usize {
        self.iter().map(<[u8]>::len).max().unwrap_or(0)
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Items({})", self.len())
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Items {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let mut items = Items::new();
        iter.into_iter().for_each(|item| items.push(item.as_ref()));
        items
    }
}

/// A set: distinct items, in a fixed order, and their hashes, which take 32 bytes of memory each and are zeroized on
/// drop. Unless it is empty, created only with [`ItemSet::keep_first`]. Two sets are equal if they have the same items in
/// the same order.
#[derive(Clone)]
pub struct ItemSet {
    items: Items,
    hashes: Secrets<ItemHash>,
}

/// The result of [`ItemSet::keep_first`].
#[derive(PartialEq, Eq)]
pub struct Distinct {
    /// The distinct items, in order of first appearance.
    pub set: ItemSet,
    /// For each item of the set, its position in the list.
    pub positions: Vec<u32>,
    /// For each repeated item of the list: its position, and the position of its first appearance.
    pub duplicates: Vec<(u32, u32)>,
}

/// Number of items that a task hashes.
const BATCH: usize = 1 << 9;

/// Returns the hash of each of these items, which protocols use in its place. The hashes are computed in batches, on
/// the threads of the caller's pool.
pub fn hashes_of(items: &Items) -> Secrets<ItemHash> {
    let mut hashes = Secrets::zeros(items.len());
    hashes.par_chunks_mut(BATCH).enumerate().for_each(|(batch, hashes)| {
        let first = batch * BATCH;
        ItemHash::of_items((first..).map(|i| items.get(i)).take(hashes.len()), hashes);
    });
    hashes
}

impl ItemSet {
    /// Returns the hashes of the items in order, computed when the set was made.
    pub fn hashes(&self) -> &[ItemHash] {
        &self.hashes
    }

    /// Returns the items and their hashes.
    pub(crate) fn into_parts(self) -> (Items, Secrets<ItemHash>) {
        (self.items, self.hashes)
    }

    /// Removes duplicates from a list of fewer than 2^32 items, and hashes each item once. It takes up to 48 bytes of
    /// memory per item and 24 per duplicate while it runs; the result takes 36 to 68 per distinct item and 8 to 16 per
    /// duplicate.
    pub fn keep_first(mut items: Items) -> Distinct {
        // Sorting by the hash finds equal items without a table whose shape an attacker could choose. The sort key is
        // 32 bits of the hash above the position; items that share these bits are compared.
        let mut hashes = hashes_of(&items);
        let bits = |hash: &ItemHash| u32::from_le_bytes(hash.as_bytes().as_chunks().0[0]);
        let key = |(i, hash)| u64::from(bits(hash)) << 32 | i as u64;
        let mut order = Secrets::from(hashes.par_iter().enumerate().map(key).collect::<Vec<u64>>());
        order.par_sort_unstable();
        let mut duplicates = Vec::new();
        for run in order.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|run| run.len() > 1) {
            let item = |&i: &u64| items.get(i as u32 as usize);
            run.sort_unstable_by(|a, b| item(a).cmp(item(b)).then(a.cmp(b)));
            for equal in run.chunk_by(|a, b| item(a) == item(b)) {
                if let [first, again @ ..] = equal {
                    duplicates.extend(again.iter().map(|&i| (i as u32, *first as u32)));
                }
            }
        }
        drop(order);
        duplicates.sort_unstable();
        let mut again = duplicates.iter().map(|d| d.0).peekable();
        let mut positions = Vec::with_capacity(items.len() - duplicates.len());
        items.retain(|i| {
            let new = again.next_if_eq(&i).is_none();
            if new {
                hashes[positions.len()] = hashes[i as usize];
                positions.push(i);
            }
            new
        });
        items.shrink_to_fit();
        hashes.truncate(positions.len());
        hashes.shrink();
        Distinct { set: ItemSet { items, hashes }, positions, duplicates }
    }
}

impl PartialEq for ItemSet {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl Eq for ItemSet {}

impl Default for ItemSet {
    fn default() -> Self {
        ItemSet { items: Items::new(), hashes: Secrets::zeros(0) }
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for ItemSet {
    /// Duplicates are dropped.
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        ItemSet::keep_first(iter.into_iter().collect()).set
    }
}

impl fmt::Debug for ItemSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ItemSet({})", self.len())
    }
}

impl fmt::Debug for Distinct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Distinct({}, {} duplicates)", self.set.len(), self.duplicates.len())
    }
}

impl std::ops::Deref for ItemSet {
    type Target = Items;
    fn deref(&self) -> &Items {
        &self.items
    }
}

/// Appends the encoding of a row's key columns to `out`.
pub fn encode_key<'a>(columns: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    for column in columns {
        let mut n = column.len();
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out.extend_from_slice(column);
    }
}

/// Returns the columns of an encoded key; `None` unless it is exactly the encoding of `columns` columns.
pub fn decode_key(mut item: &[u8], columns: usize) -> Option<Vec<&[u8]>> {
    let mut out = Vec::with_capacity(columns.min(item.len()));
    for _ in 0..columns {
        let (mut n, mut shift) = (0usize, 0);
        loop {
            let (&byte, rest) = item.split_first()?;
            item = rest;
            n |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                // The shortest form does not end in a zero byte, unless it is the only byte.
                if byte == 0 && shift > 0 {
                    return None;
                }
                break;
            }
            shift += 7;
            if shift > 21 {
                return None;
            }
        }
        let (column, rest) = item.split_at_checked(n)?;
        item = rest;
        out.push(column);
    }
    item.is_empty().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Prng;

    #[test]
    fn keys_survive_encoding_and_different_keys_differ() {
        let long = vec![7u8; 40_000];
        let keys: Vec<Vec<&[u8]>> = vec![
            vec![b"a", b"bc"],
            vec![b"ab", b"c"],
            vec![b"abc", b""],
            vec![b"", b"abc"],
            vec![b"\0", b"\xff"],
            vec![&long, b"x"],
            vec![&long[..127], &long[..128]],
        ];
        let encoded: Vec<Vec<u8>> = keys
            .iter()
            .map(|k| {
                let mut out = Vec::new();
                encode_key(k.iter().copied(), &mut out);
                out
            })
            .collect();
        for (key, item) in keys.iter().zip(&encoded) {
            assert_eq!(decode_key(item, 2).as_ref(), Some(key));
            assert_eq!(decode_key(item, 1), None);
            assert_eq!(decode_key(item, 3), None);
        }
        assert_eq!(encoded.iter().collect::<ItemSet>().len(), keys.len());
    }

    #[test]
    fn malformed_encodings_are_refused() {
        // (bytes, reason)
        let cases: [(&[u8], &str); 6] = [
            (b"", "nothing"),
            (b"\x02a", "column cut off"),
            (b"\x01ab", "leftover"),
            (b"\x81\x00a", "length not in its shortest form"),
            (b"\xff\xff\xff\xff\x01", "length too long"),
            (b"\x80", "length cut off"),
        ];
        for (bytes, why) in cases {
            assert_eq!(decode_key(bytes, 1), None, "{why}");
        }
    }

    /// Compares `keep_first` with a plain computation, and its hashes with the hash of each item alone.
    fn check(list: &[Vec<u8>]) {
        let d = ItemSet::keep_first(list.iter().collect());
        let (mut set, mut duplicates) = (Vec::<usize>::new(), Vec::new());
        for i in 0..list.len() {
            match set.iter().find(|&&j| list[j] == list[i]) {
                Some(&j) => duplicates.push((i as u32, j as u32)),
                None => set.push(i),
            }
        }
        assert_eq!(d.duplicates, duplicates);
        assert_eq!(d.positions, set.iter().map(|&i| i as u32).collect::<Vec<_>>());
        assert!(d.set.iter().eq(set.iter().map(|&i| list[i].as_slice())));
        assert_eq!(d.set.hashes(), d.set.iter().map(ItemHash::of_item).collect::<Vec<_>>());
    }

    #[test]
    fn keep_first_agrees_with_the_plain_computation() {
        let mut rng = Prng::from_seed(&[1; 32]);
        for n in [0usize, 1, 2, 3, 50, 1000] {
            let mut length = || rng.below(3) as usize + rng.below(n as u64) as usize;
            check(&(0..n).map(|_| vec![b'x'; length()]).collect::<Vec<_>>());
        }
    }

    /// Sizes around the 64 messages that are hashed at once and around the items of a task; lengths around a block and
    /// a chunk of BLAKE3. Items are distinct but for the empty ones, or each occurs twice, or a few occur many times.
    #[test]
    fn keep_first_agrees_around_batches_blocks_and_chunks() {
        const LENGTHS: [usize; 8] = [0, 63, 64, 65, 1023, 1024, 1025, 5000];
        for n in [1, 63, 64, 65, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 65] {
            for different in [n, n.div_ceil(2), 9] {
                let item = |i: usize| {
                    let number = (i % different) as u16;
                    number.to_le_bytes().into_iter().cycle().take(LENGTHS[i % different % LENGTHS.len()])
                };
                check(&(0..n).map(|i| item(i).collect()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn items_that_share_the_bits_they_are_sorted_by_are_told_apart() {
        // Among this many items some share these bits.
        let many: Items = (0..1u32 << 18).map(u32::to_le_bytes).collect();
        let bits = |hash: &ItemHash| u32::from_le_bytes(hash.as_bytes().as_chunks().0[0]);
        let mut order: Vec<(u32, usize)> = hashes_of(&many).iter().map(bits).zip(0..).collect();
        order.sort_unstable();
        let two = order.windows(2).find(|two| two[0].0 == two[1].0).unwrap();
        let [a, b] = [two[0].1, two[1].1].map(|i| many.get(i).to_vec());
        check(&[&a, &b, &b, &a, &b].map(Clone::clone));
        check(&[&b, &a].map(Clone::clone));
    }

    #[test]
    fn sets_are_equal_if_their_items_are() {
        let set = |items: &[&str]| items.iter().collect::<ItemSet>();
        assert!(set(&["a", "b", "a"]) == set(&["a", "b"]) && set(&[]) == ItemSet::default());
        assert!(set(&["a", "b"]) != set(&["b", "a"]) && set(&["a"]) != set(&["a", "b"]));
    }

    #[test]
    fn push_if_appends_or_leaves_the_list_as_it_was() {
        let mut items: Items = ["a"].iter().collect();
        items.push_if(true, b"bcd", 2);
        items.push_if(false, b"xyz", 3);
        items.push_if(true, b"", 0);
        items.push_if(true, b"ef", 9);
        assert!(items == ["a", "bc", "", "ef"].iter().collect());
    }

    #[test]
    fn debug_shows_numbers_only() {
        let items: Items = ["secret", "secret", "secret too"].iter().collect();
        assert_eq!(format!("{items:?}"), "Items(3)");
        let distinct = ItemSet::keep_first(items);
        assert_eq!(format!("{:?}", distinct.set), "ItemSet(2)");
        assert_eq!(format!("{distinct:?}"), "Distinct(2, 1 duplicates)");
    }
}
