//! A look at a Parquet file before it is decoded: its sizes and counts must be possible.
//!
//! The decoder trusts some of the numbers in a file with allocations: a count of row groups, the unpacked size
//! of a page, the number of values of a dictionary. A damaged or hostile file could ask for more memory than
//! there is, which no program survives. So footer and page headers, which are structs in the Thrift compact
//! protocol, are walked here first, in constant memory.

use std::io::Read;

/// Levels of nesting of structs and lists; the format needs about 8.
const MAX_DEPTH: usize = 32;
/// The largest unpacked page that needs no further justification. Pages are usually 1 MiB.
const PAGE: i64 = 64 << 20;
/// How much smaller compression makes a page that is larger than that: deflate's limit is 1032.
const RATIO: i64 = 1100;

/// Something that cannot be.
pub(super) struct Impossible;

/// Checks the lengths of all lists and strings of the footer.
pub(super) fn check_footer(footer: &[u8]) -> Result<(), Impossible> {
    Walker { left: footer.len() as u64, input: footer }.structure(0, &mut |_, _| ())
}

/// Checks the page headers of a column chunk of `size` bytes; `open` gives its bytes from a position on. `width`
/// is the least number of bytes that a value of its dictionary takes.
pub(super) fn check_pages<R: Read>(
    open: impl Fn(u64) -> Option<R>,
    size: u64,
    width: i64,
) -> Result<(), Impossible> {
    let mut at = 0;
    while at < size {
        let mut walker = Walker { left: size - at, input: open(at).ok_or(Impossible)? };
        let (mut unpacked, mut packed, mut values, mut entries) = (None, None, 0, 0);
        walker.structure(0, &mut |path, n| match path {
            [2] => unpacked = Some(n),
            [3] => packed = Some(n),
            [5, 1] | [8, 1] => values = n,
            [7, 1] => entries = n,
            _ => {}
        })?;
        let (Some(unpacked), Some(packed)) = (unpacked, packed) else { return Err(Impossible) };
        let unpacked_fits = (0..=PAGE.max(packed.saturating_mul(RATIO))).contains(&unpacked);
        let entries_fit = entries >= 0 && entries.saturating_mul(width) <= unpacked;
        if !unpacked_fits || !entries_fit || values < 0 {
            return Err(Impossible);
        }
        let packed = u64::try_from(packed).map_err(|_| Impossible)?;
        at = size - walker.left.checked_sub(packed).ok_or(Impossible)?;
    }
    Ok(())
}

struct Walker<R> {
    input: R,
    /// Bytes that may still be read.
    left: u64,
}

impl<R: Read> Walker<R> {
    fn byte(&mut self) -> Result<u8, Impossible> {
        self.left = self.left.checked_sub(1).ok_or(Impossible)?;
        let mut byte = [0];
        self.input.read_exact(&mut byte).map_err(|_| Impossible)?;
        Ok(byte[0])
    }

    fn varint(&mut self) -> Result<u64, Impossible> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(Impossible)
    }

    fn skip(&mut self, mut n: u64) -> Result<(), Impossible> {
        self.left = self.left.checked_sub(n).ok_or(Impossible)?;
        let skipped = std::io::copy(&mut self.input.by_ref().take(n), &mut std::io::sink());
        n -= skipped.map_err(|_| Impossible)?;
        if n == 0 { Ok(()) } else { Err(Impossible) }
    }

    /// Walks a struct; `integer` is told of its integers and those of structs in it, with the field numbers
    /// that lead there.
    fn structure(&mut self, depth: usize, integer: &mut dyn FnMut(&[i64], i64)) -> Result<(), Impossible> {
        let mut path = [0; MAX_DEPTH];
        self.fields(depth, &mut path, integer)
    }

    fn fields(
        &mut self,
        depth: usize,
        path: &mut [i64; MAX_DEPTH],
        integer: &mut dyn FnMut(&[i64], i64),
    ) -> Result<(), Impossible> {
        if depth >= MAX_DEPTH {
            return Err(Impossible);
        }
        let mut field = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            field = match head >> 4 {
                0 => zigzag(self.varint()?),
                delta => field + i64::from(delta),
            };
            path[depth] = field;
            match head & 15 {
                // Booleans are in the header.
                1 | 2 => {}
                4..=6 => {
                    let n = zigzag(self.varint()?);
                    integer(&path[..=depth], n);
                }
                12 => self.fields(depth + 1, path, integer)?,
                other => self.value(other, depth + 1)?,
            }
        }
    }

    /// Walks a value of which nothing is of interest.
    fn value(&mut self, kind: u8, depth: usize) -> Result<(), Impossible> {
        if depth >= MAX_DEPTH {
            return Err(Impossible);
        }
        match kind {
            1..=3 => self.skip(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let n = self.varint()?;
                self.skip(n)
            }
            9 | 10 => {
                let head = self.byte()?;
                let n = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                // Every element takes a byte.
                if n > self.left {
                    return Err(Impossible);
                }
                (0..n).try_for_each(|_| self.value(head & 15, depth + 1))
            }
            12 => self.structure(depth, &mut |_, _| ()),
            13 => self.skip(16),
            // Maps do not occur in the format.
            _ => Err(Impossible),
        }
    }
}

fn zigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page header of a type, sizes, and the number of values of a dictionary.
    fn page(unpacked: i32, packed: i32, entries: i32) -> Vec<u8> {
        let int = |n: i32| {
            let (mut n, mut out) = (((n << 1) ^ (n >> 31)) as u32, Vec::new());
            while n >= 0x80 {
                out.push(n as u8 | 0x80);
                n >>= 7;
            }
            out.push(n as u8);
            out
        };
        let mut out = vec![0x15, 4];
        for n in [unpacked, packed] {
            out.push(0x15);
            out.extend(int(n));
        }
        // Field 7: a dictionary page header, whose field 1 is the number of values.
        out.extend([0x4c, 0x15]);
        out.extend(int(entries));
        out.extend([0, 0]);
        out.extend(vec![7; packed.max(0) as usize]);
        out
    }

    #[test]
    fn pages_that_cannot_be_are_refused() {
        // (unpacked, packed, entries, good)
        let cases = [
            (100, 50, 25, true),
            (100, 50, 26, false),
            (0, 0, 0, true),
            (64 << 20, 10, 0, true),
            ((64 << 20) + 1, 10, 0, false),
            (70 << 20, 70 << 10, 1000, true),
            (-1, 10, 0, false),
            (10, -1, 0, false),
            (100, 50, -1, false),
            (i32::MAX, 10, i32::MAX, false),
        ];
        for (unpacked, packed, entries, good) in cases {
            let one = page(unpacked, packed, entries);
            let two = [page(9, 9, 2), one.clone()].concat();
            for bytes in [&one, &two] {
                let check = |size| check_pages(|at| bytes.get(at as usize..), size, 4).is_ok();
                assert_eq!(check(bytes.len() as u64), good, "{unpacked} {packed}");
                assert!(!check(bytes.len() as u64 - 1) && !check(bytes.len() as u64 + 1));
            }
        }
    }

    #[test]
    fn footers_with_impossible_lengths_are_refused() {
        // (bytes, good)
        let cases: [(&[u8], bool); 9] = [
            (&[0], true),
            (&[], false),
            (&[0x15, 2, 0], true),
            // A list of 2^28 structs, of 2 bytes, of as many bytes as there are.
            (&[0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 1, 0], false),
            (&[0x19, 0x23, 1, 1, 0], true),
            (&[0x19, 0x43, 1, 1, 0], false),
            // A string of 5 bytes, and of too many.
            (&[0x18, 5, 1, 2, 3, 4, 5, 0], true),
            (&[0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], false),
            (&[0x1b, 0, 0], false),
        ];
        for (bytes, good) in cases {
            assert_eq!(check_footer(bytes).is_ok(), good, "{bytes:?}");
        }
        assert!(check_footer(&[0x1c; 1000]).is_err());
        assert!(check_footer(&[[0x19, 0x19].repeat(500), vec![0]].concat()).is_err());
    }
}
