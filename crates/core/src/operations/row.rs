//! Rows of a public width that hold byte strings of secret lengths.

use super::Terms;
use crate::error::{Error, Result};
use crate::item::Items;
use subtle::{Choice, ConditionallySelectable};

/// A row of `N` byte strings with at most `max` bytes in total: their lengths, the strings, then zeros. Its
/// width depends only on `N` and `max`.
///
/// A bare row is a single byte string of `max` bytes without its length.
#[derive(Clone, Copy)]
pub(crate) struct Layout<const N: usize> {
    max: usize,
    bare: bool,
}

/// The parts of a row. If the row is noise, they have arbitrary lengths and content.
pub(crate) struct Parts<'a, const N: usize> {
    /// For each part, the bytes from its start to the end of the row, and the part's length.
    parts: [(&'a [u8], usize); N],
    /// Whether the lengths fit and only zeros follow the last part.
    pub(crate) well_formed: bool,
}

impl<'a, const N: usize> Parts<'a, N> {
    /// Returns the row from the start of part `i` on, and the length of that part.
    pub(crate) fn get(&self, i: usize) -> (&'a [u8], usize) {
        self.parts[i]
    }
}

impl<const N: usize> Layout<N> {
    pub(crate) const fn new(max: usize) -> Self {
        Layout { max, bare: false }
    }

    /// Returns the layout of rows of items under these terms.
    pub(crate) const fn of(terms: &Terms) -> Self {
        Layout { max: terms.max_row, bare: terms.bare && N == 1 }
    }

    /// Bytes of one length prefix.
    const fn prefix(self) -> usize {
        match self.max {
            _ if self.bare => 0,
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 3,
        }
    }

    /// Bytes of a row.
    pub(crate) const fn width(self) -> usize {
        N * self.prefix() + self.max
    }

    /// Rejects parts that do not fit. Each element of `lengths` holds the lengths of one row's parts.
    pub(crate) fn check(self, mut lengths: impl Iterator<Item = [usize; N]>) -> Result<()> {
        let fits = |length| if self.bare { length == self.max } else { length <= self.max };
        match self.max < 1 << 24 && lengths.all(|l| fits(l.iter().sum::<usize>())) {
            true => Ok(()),
            false => Err(Error::Bug("an item or its payload is longer than the agreed row".into())),
        }
    }

    /// Writes the parts, which must fit, into a row of zeros.
    pub(crate) fn write(self, parts: [&[u8]; N], row: &mut [u8]) {
        let (mut lengths, mut rest) = row.split_at_mut(N * self.prefix());
        for part in parts {
            let (length, next) = lengths.split_at_mut(self.prefix());
            length.copy_from_slice(&part.len().to_le_bytes()[..length.len()]);
            let (here, behind) = rest.split_at_mut(part.len());
            here.copy_from_slice(part);
            (lengths, rest) = (next, behind);
        }
    }

    /// Writes the parts of the item at this place into a row of zeros, and leaves zeros for a dummy, that is, for any place
    /// after the items. For a dummy, it writes an item chosen by `number` and wipes it, so that the row takes as much time as
    /// an item's.
    pub(crate) fn write_item(self, lists: [&Items; N], at: usize, number: usize, row: &mut [u8]) {
        let n = lists[0].len();
        if n == 0 {
            return;
        }
        // Consecutive numbers lead to items far apart, as in a random order.
        let apart = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let other = ((u128::from(apart) * n as u128) >> 64) as u64;
        let is_item = Choice::from(u8::from(at < n));
        let chosen = u64::conditional_select(&other, &(at as u64), is_item) as usize;
        self.write(lists.map(|list| list.get(chosen)), row);
        let keep = u8::conditional_select(&0, &0xff, is_item);
        row.iter_mut().for_each(|byte| *byte &= keep);
    }

    /// Reads a row of the right width. The time does not depend on whether the row is noise.
    pub(crate) fn read(self, row: &[u8]) -> Parts<'_, N> {
        let (lengths, body) = row.split_at(N * self.prefix());
        if self.bare {
            return Parts { parts: [(body, body.len()); N], well_formed: true };
        }
        let mut start = 0usize;
        let mut parts = [(body, 0); N];
        for (part, length) in parts.iter_mut().zip(lengths.chunks_exact(self.prefix())) {
            let length = length.iter().rev().fold(0usize, |n, &b| n << 8 | usize::from(b));
            *part = (&body[start.min(body.len())..], length);
            start += length;
        }
        let behind = |(i, &b): (usize, &u8)| b & u8::from(i >= start).wrapping_neg();
        let padding = body.iter().enumerate().map(behind).fold(0, |all, b| all | b);
        Parts { parts, well_formed: (start <= self.max) & (padding == 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_row_is_the_item_alone() {
        let layout = Layout::<1>::of(&Terms { max_row: 5, bare: true, ..Terms::default() });
        assert_eq!(layout.width(), 5);
        let mut row = [0; 5];
        layout.write([b"abcde"], &mut row);
        assert_eq!(row, *b"abcde");
        let parts = layout.read(&row);
        assert!(parts.well_formed && parts.get(0) == (b"abcde", 5));
        for (length, fits) in [(4, false), (5, true), (6, false)] {
            assert_eq!(layout.check([[length]].into_iter()).is_ok(), fits, "{length}");
        }
    }

    /// Rows of items hold the items, and rows of dummies hold zeros, for any place and number.
    #[test]
    fn rows_of_dummies_are_zeros() {
        let layout = Layout::<2>::new(9);
        let first: Items = (1..6u8).map(|i| vec![i; usize::from(i)]).collect();
        let second: Items = (1..6u8).map(|i| vec![0xf0 | i; 3]).collect();
        for number in [0, 1, 77, usize::MAX] {
            for at in [0, 2, 4, 5, 6, u32::MAX as usize] {
                let (mut row, mut expected) = (vec![0; layout.width()], vec![0; layout.width()]);
                layout.write_item([&first, &second], at, number, &mut row);
                if at < 5 {
                    layout.write([first.get(at), second.get(at)], &mut expected);
                    assert!(expected.iter().any(|byte| *byte != 0));
                }
                assert_eq!(row, expected, "{at} {number}");
            }
        }
        // A set that has only dummies.
        let (none, mut row) = (Items::new(), vec![0; layout.width()]);
        layout.write_item([&none, &none], 0, 0, &mut row);
        assert!(row.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn parts_come_back_and_what_is_no_row_is_noticed() {
        for max in [0usize, 1, 9, 255, 256, 70_000] {
            let layout = Layout::<2>::new(max);
            for first in [0, 1, max / 2, max] {
                let second = (max - first.min(max)).min(3);
                let (a, b) = (vec![7u8; first.min(max)], vec![9u8; second]);
                let mut row = vec![0; layout.width()];
                layout.check([[a.len(), b.len()]].into_iter()).unwrap();
                layout.write([&a, &b], &mut row);
                let parts = layout.read(&row);
                assert!(parts.well_formed);
                for (i, part) in [&a, &b].into_iter().enumerate() {
                    let (from, length) = parts.get(i);
                    assert_eq!(&from[..length], &part[..]);
                }
                // Bytes after the last part.
                if a.len() + b.len() < max {
                    *row.last_mut().unwrap() = 1;
                    assert!(!layout.read(&row).well_formed);
                }
                row.fill(0xff);
                assert!(!layout.read(&row).well_formed);
            }
            assert!(layout.check([[max, 1]].into_iter()).is_err());
        }
    }
}
