//! Items: the byte strings that are compared, and sets of them.
//!
//! An item is the injective encoding of a row's key columns: each column is preceded by its length, so
//! `("a", "bc")` differs from `("ab", "c")`. The length is a LEB128 varint in its shortest form, which
//! makes the encoding unique: [`encode_key`] and [`decode_key`] are inverse to each other.

use crate::secret::wipe;
use rayon::prelude::*;
use std::fmt;
use zeroize::ZeroizeOnDrop;

/// The longest item, in bytes of its encoding: 64 KiB.
pub const MAX_ITEM: usize = 1 << 16;

/// A list of byte strings in one allocation: an item takes 8 bytes in addition to its own. They are a party's data, so `Debug`
/// shows only their number, and they are zeroed when dropped. A list that grows leaves copies: give it room.
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
    /// An empty list.
    pub const fn new() -> Self {
        Items { bytes: Vec::new(), ends: Vec::new() }
    }

    /// An empty list with room for `n` items of `bytes` bytes in all.
    pub fn with_capacity(n: usize, bytes: usize) -> Self {
        Items { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(n) }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends an item.
    pub fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len() as u64);
    }

    /// Appends the first `len` bytes of `padded` if `keep`, and takes as long otherwise.
    pub fn push_if(&mut self, keep: bool, padded: &[u8], len: usize) {
        let (start, n) = (self.bytes.len(), self.len());
        self.bytes.extend_from_slice(padded);
        self.bytes.truncate(start + if keep { len.min(padded.len()) } else { 0 });
        self.ends.push(self.bytes.len() as u64);
        self.ends.truncate(n + usize::from(keep));
    }

    /// Appends the item that `write` appends to the buffer it is given.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u64);
    }

    /// Keeps the items whose position `keep` accepts, in place.
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
        self.bytes.truncate(end);
        self.ends.truncate(kept);
    }

    /// Frees the memory reserved for further items.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// The item at position `i`, which must be below `len()`.
    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// The items in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The items at these positions, in their order.
    pub fn chosen(&self, positions: &[u32]) -> Items {
        let bytes = positions.iter().map(|&i| self.get(i as usize).len()).sum();
        let mut chosen = Items::with_capacity(positions.len(), bytes);
        positions.iter().for_each(|&i| chosen.push(self.get(i as usize)));
        chosen
    }

    /// The length of the longest item, 0 if there is none.
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

/// A set: distinct items, in a fixed order. Only [`ItemSet::keep_first`] makes one, and `ItemSet::of_distinct` of what is left of one.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ItemSet(Items);

/// What [`ItemSet::keep_first`] made of a list.
#[derive(PartialEq, Eq)]
pub struct Distinct {
    /// The distinct items, in order of first appearance.
    pub set: ItemSet,
    /// For each item of the set, its position in the list.
    pub positions: Vec<u32>,
    /// For each repeated item of the list: its position, and the position of its first appearance.
    pub duplicates: Vec<(u32, u32)>,
}

impl ItemSet {
    /// Its items, in order.
    pub fn into_items(self) -> Items {
        self.0
    }

    /// The set of these items, which are known to be different.
    pub(crate) fn of_distinct(items: Items) -> ItemSet {
        ItemSet(items)
    }

    /// The distinct items of a list of fewer than 2^32. While it runs it takes 8 bytes of memory for each item; it
    /// leaves 4 for each distinct item and 8 for each duplicate.
    pub fn keep_first(mut items: Items) -> Distinct {
        // Sorting by a hash finds equal items without a table whose shape an attacker could choose. The sort key is
        // 32 bits of hash above the position; items that share these bits are compared.
        let mut order: Vec<u64> = (0..items.len() as u32)
            .into_par_iter()
            .map(|i| {
                let [a, b, c, d, ..] = *blake3::hash(items.get(i as usize)).as_bytes();
                u64::from(u32::from_le_bytes([a, b, c, d])) << 32 | u64::from(i)
            })
            .collect();
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
                positions.push(i);
            }
            new
        });
        items.shrink_to_fit();
        Distinct { set: ItemSet(items), positions, duplicates }
    }
}

/// Whether the sets have an item in common, by 128 bits of hash. Takes 16 bytes for each item of `a`.
pub fn intersects(a: &ItemSet, b: &ItemSet) -> bool {
    let hash = |item: &[u8]| {
        let mut word = [0u8; 16];
        blake3::Hasher::new().update(item).finalize_xof().fill(&mut word);
        u128::from_le_bytes(word)
    };
    let mut hashes: Vec<u128> = (0..a.len()).into_par_iter().map(|i| hash(a.get(i))).collect();
    hashes.par_sort_unstable();
    (0..b.len()).into_par_iter().any(|i| hashes.binary_search(&hash(b.get(i))).is_ok())
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
        &self.0
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

/// The columns of an encoded key. `None` unless it is exactly the encoding of `columns` columns.
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
        // (bytes, why)
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

    #[test]
    fn keep_first_agrees_with_the_plain_computation() {
        let mut rng = Prng::from_seed(&[1; 32]);
        for n in [0usize, 1, 2, 3, 50, 1000] {
            let list: Vec<Vec<u8>> =
                (0..n).map(|_| vec![b'x'; rng.below(3) as usize + rng.below(n as u64) as usize]).collect();
            let d = ItemSet::keep_first(list.iter().collect());
            let (mut set, mut duplicates) = (Vec::<usize>::new(), Vec::new());
            for i in 0..n {
                match set.iter().find(|&&j| list[j] == list[i]) {
                    Some(&j) => duplicates.push((i as u32, j as u32)),
                    None => set.push(i),
                }
            }
            assert_eq!(d.duplicates, duplicates);
            assert_eq!(d.positions, set.iter().map(|&i| i as u32).collect::<Vec<_>>());
            assert!(d.set.iter().eq(set.iter().map(|&i| list[i].as_slice())));
        }
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
    fn sets_intersect_if_they_share_an_item() {
        let set = |items: &[&str]| items.iter().collect::<ItemSet>();
        assert!(intersects(&set(&["a", "b"]), &set(&["c", "b", "d"])));
        assert!(!intersects(&set(&["a", "b"]), &set(&["c", "ab", ""])));
        assert!(!intersects(&set(&[]), &set(&["c"])) && !intersects(&set(&[]), &set(&[])));
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
