//! The cells of a table, without an allocation for each row and without a large one that moves when it grows.

/// A chunk is closed when its cells take this many bytes, so that the start of each of its rows fits in 32 bits.
const CHUNK: usize = 1 << 20;

/// The rows of a table, each of the same number of cells. A cell is bytes, or null.
///
/// It costs the bytes of the cells, 4 bytes for each row, and 1 byte for each cell (2 if it is longer than 126
/// bytes, 3 if longer than 16382, and so on).
#[derive(Default)]
pub(super) struct Rows {
    chunks: Vec<Chunk>,
    rows: usize,
    /// Bytes in all chunks.
    bytes: u64,
}

#[derive(Default)]
struct Chunk {
    /// The number of the first row.
    first: usize,
    /// Where each row starts.
    starts: Vec<u32>,
    /// The cells, each after its length plus 1 as a LEB128 varint; 0 is null.
    bytes: Vec<u8>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// All cells, as they are stored.
    pub(super) fn stored(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().map(|chunk| &chunk.bytes[..])
    }

    /// Bytes that the cells take.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn push<'a>(&mut self, cells: impl Iterator<Item = Option<&'a [u8]>>) {
        let full = |chunk: &Chunk| chunk.bytes.len() >= CHUNK;
        if self.chunks.last().is_none_or(full) {
            self.finish();
            self.chunks.push(Chunk { first: self.rows, ..Chunk::default() });
        }
        let Some(chunk) = self.chunks.last_mut() else { return };
        let before = chunk.bytes.len();
        chunk.starts.push(before as u32);
        for cell in cells {
            let mut n = cell.map_or(0, |cell| cell.len() as u64 + 1);
            while n >= 0x80 {
                chunk.bytes.push(n as u8 | 0x80);
                n >>= 7;
            }
            chunk.bytes.push(n as u8);
            chunk.bytes.extend_from_slice(cell.unwrap_or_default());
        }
        self.bytes += (chunk.bytes.len() - before) as u64;
        self.rows += 1;
    }

    /// Adds the rows of another table, which have as many cells.
    pub(super) fn append(&mut self, further: Rows) {
        let chunks =
            further.chunks.into_iter().map(|chunk| Chunk { first: self.rows + chunk.first, ..chunk });
        self.chunks.extend(chunks);
        self.rows += further.rows;
        self.bytes += further.bytes;
    }

    /// The same rows of so many cells with further ones that have no value, up to `to`.
    pub(super) fn widened(&self, from: usize, to: usize) -> Rows {
        let mut rows = Rows::default();
        for row in 0..self.rows {
            rows.push(self.row(row).take(from).chain((from..to).map(|_| None)));
        }
        rows
    }

    /// Frees the unused room of the last chunk.
    pub(super) fn finish(&mut self) {
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.bytes.shrink_to_fit();
            chunk.starts.shrink_to_fit();
        }
    }

    /// The cells of an existing row. The iterator may go on after the row's last cell.
    pub(super) fn row(&self, row: usize) -> Cells<'_> {
        let chunk = &self.chunks[self.chunks.partition_point(|c| c.first <= row) - 1];
        Cells(&chunk.bytes[chunk.starts[row - chunk.first] as usize..])
    }
}

/// The cells of a row, and then those of the rows behind it.
pub(super) struct Cells<'a>(&'a [u8]);

impl<'a> Iterator for Cells<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut n, mut shift) = (0u64, 0);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            n |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let Some(len) = n.checked_sub(1) else { return Some(None) };
        let (cell, rest) = self.0.split_at_checked(len as usize)?;
        self.0 = rest;
        Some(Some(cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_over_chunk_borders_and_at_every_length() {
        let lengths = [0, 1, 126, 127, 128, 16382, 16383, 16384, CHUNK - 1, CHUNK, 3 * CHUNK, 0, 5];
        let cell = |i: usize, j: usize| {
            (!(i + j).is_multiple_of(4))
                .then(|| vec![(i * 3 + j) as u8; lengths[(i + 5 * j) % lengths.len()]])
        };
        let mut rows = Rows::default();
        for i in 0..60 {
            let cells = [cell(i, 0), cell(i, 1), cell(i, 2)];
            rows.push(cells.iter().map(Option::as_deref));
        }
        rows.finish();
        assert!(rows.chunks.len() > 10);
        assert_eq!(rows.len(), 60);
        for i in 0..60 {
            let got: Vec<_> = rows.row(i).take(3).map(|c| c.map(<[u8]>::to_vec)).collect();
            assert!(got == [cell(i, 0), cell(i, 1), cell(i, 2)], "row {i}");
        }
    }

    #[test]
    fn a_table_of_no_columns_has_rows() {
        let mut rows = Rows::default();
        (0..3).for_each(|_| rows.push(std::iter::empty()));
        assert_eq!((rows.len(), rows.bytes(), rows.row(2).count()), (3, 0, 0));
    }
}
