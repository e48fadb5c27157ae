//! A look at a Parquet file before it is decoded: its sizes and counts must be possible.
//!
//! The decoder allocates by some of the numbers in a file: the count of row groups, the unpacked size of a page, the
//! number of values of a dictionary. It descends into the groups of the schema by recursion. A damaged or hostile
//! file could ask for more memory or more stack than there is, which no program survives. So the footer and the page
//! headers, structs in the Thrift compact protocol, are walked here first. This takes constant memory, plus 16 bytes
//! for each element of the schema, which takes at least one byte in the file.
//!
//! The decoder recognises a field by its number and ignores the type written before it, so it can go on in the middle
//! of a value. It skips a list of booleans without reading a byte for each: ten bytes keep it busy for seconds,
//! nested lists for ever. So every field of the format must have its type ([`FILE`], [`PAGE_HEADER`]), and lists of
//! booleans, which the format does not have here, are refused. Then decoder and walker read the same.

use std::io::Read;

/// Levels of nesting of structs and lists; the format needs about 8.
const MAX_DEPTH: usize = 32;
/// Levels of nesting of groups in the schema, into which the decoder recurses.
const MAX_GROUPS: usize = 100;
/// Bytes that the names of all elements of the schema may take, each together with the names of its groups.
const NAMES: u64 = 64 << 20;
/// What a name takes in addition to its bytes.
const NAME: u64 = 24;
/// The largest unpacked page that needs no further justification. Pages are usually 1 MiB.
const PAGE: i64 = 64 << 20;
/// The largest compression ratio of a larger page: deflate's limit is 1032.
const RATIO: i64 = 1100;

/// What a field is.
enum Shape {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Bytes,
    Struct(Fields),
    List(&'static Shape),
}

/// The fields of a struct or union by number; others may be anything.
type Fields = &'static [(i64, Shape)];

use Shape::{Bool, Byte, Bytes, Double, I16, I32, I64, List, Struct};

const EMPTY: Shape = Struct(&[]);
const STATISTICS: Shape =
    Struct(&[(1, Bytes), (2, Bytes), (3, I64), (4, I64), (5, Bytes), (6, Bytes), (7, Bool), (8, Bool)]);
const PAGE_HEADER: Fields = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, Struct(&[(1, I32), (2, I32), (3, I32), (4, I32), (5, STATISTICS)])),
    (6, EMPTY),
    (7, Struct(&[(1, I32), (2, I32), (3, Bool)])),
    (8, Struct(&[(1, I32), (2, I32), (3, I32), (4, I32), (5, I32), (6, I32), (7, Bool), (8, STATISTICS)])),
];
const TIME: Shape = Struct(&[(1, Bool), (2, Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);
const LOGICAL_TYPE: Shape = Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, I32), (2, I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Bytes)])),
    (18, Struct(&[(1, Bytes), (2, I32)])),
]);
const SCHEMA_ELEMENT: Shape = Struct(&[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, Bytes),
    (5, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, LOGICAL_TYPE),
]);
const KEY_VALUE: Shape = Struct(&[(1, Bytes), (2, Bytes)]);
const BOX: Shape = Struct(&[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
]);
const COLUMN_METADATA: Shape = Struct(&[
    (1, I32),
    (2, List(&I32)),
    (3, List(&Bytes)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (8, List(&KEY_VALUE)),
    (9, I64),
    (10, I64),
    (11, I64),
    (12, STATISTICS),
    (13, List(&Struct(&[(1, I32), (2, I32), (3, I32)]))),
    (14, I64),
    (15, I32),
    (16, Struct(&[(1, I64), (2, List(&I64)), (3, List(&I64))])),
    (17, Struct(&[(1, BOX), (2, List(&I32))])),
]);
const COLUMN_CHUNK: Shape = Struct(&[
    (1, Bytes),
    (2, I64),
    (3, COLUMN_METADATA),
    (4, I64),
    (5, I32),
    (6, I64),
    (7, I32),
    (8, Struct(&[(1, EMPTY), (2, Struct(&[(1, List(&Bytes)), (2, Bytes)]))])),
    (9, Bytes),
]);
const ROW_GROUP: Shape = Struct(&[
    (1, List(&COLUMN_CHUNK)),
    (2, I64),
    (3, I64),
    (4, List(&Struct(&[(1, I32), (2, Bool), (3, Bool)]))),
    (5, I64),
    (6, I64),
    (7, I16),
]);
const CIPHER: Shape = Struct(&[(1, Bytes), (2, Bytes), (3, Bool)]);
const FILE: Fields = &[
    (1, I32),
    (2, List(&SCHEMA_ELEMENT)),
    (3, I64),
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Bytes),
    (7, List(&Struct(&[(1, EMPTY)]))),
    (8, Struct(&[(1, CIPHER), (2, CIPHER)])),
    (9, Bytes),
];

impl Shape {
    /// Whether this is the type that is written as `kind`.
    fn fits(&self, kind: u8) -> bool {
        match self {
            Bool => matches!(kind, 1 | 2),
            Byte => kind == 3,
            I16 | I32 | I64 => matches!(kind, 4..=6),
            Double => kind == 7,
            Bytes => kind == 8,
            List(_) => kind == 9,
            Struct(_) => kind == 12,
        }
    }

    /// Whether the decoder can hold this number; it would truncate a larger one.
    fn holds(&self, n: i64) -> bool {
        match self {
            I16 => i16::try_from(n).is_ok(),
            I32 => i32::try_from(n).is_ok(),
            _ => true,
        }
    }
}

/// Something impossible.
pub(super) struct Impossible;

/// Checks all types and lengths in the footer, and that the schema is a tree. What a later version of the format has, and the
/// decoder does not know, is told in words.
pub(super) fn check_footer(footer: &[u8]) -> Result<Option<String>, Impossible> {
    let (mut schema, mut element) = (Vec::new(), SchemaElement::default());
    let (mut column, mut newer) = (1, None);
    let mut known = |known: bool, what: &str, n: i64, column: i32| {
        if !known && newer.is_none() {
            newer = Some(format!("{what} {n} of the format, in column {column}"));
        }
    };
    Walker { left: footer.len() as u64, input: footer }.structure(FILE, &mut |path, n| match path {
        [2, 1] => known((0..8).contains(&n), "physical type", n, schema.len() as i32),
        [2, 4] => element.name = n.unsigned_abs(),
        [2, 5] => element.children = n,
        [2, END] => schema.push(std::mem::take(&mut element)),
        [4, 1, 3, 2] => known(n == 0 || (2..10).contains(&n), "encoding", n, column),
        [4, 1, 3, 4] => known((0..8).contains(&n), "compression", n, column),
        [4, 1, END] => column += 1,
        [4, END] => column = 1,
        _ => {}
    })?;
    check_schema(&schema)?;
    Ok(newer)
}

/// The parts of a schema element that matter here.
#[derive(Default)]
struct SchemaElement {
    children: i64,
    /// The length of its name.
    name: u64,
}

/// Checks that the elements are a tree in depth-first order, of bounded depth and with bounded names.
fn check_schema(elements: &[SchemaElement]) -> Result<(), Impossible> {
    // For each open group: how many children are to come, and the length of the names down to it.
    let mut open: Vec<(u64, u64)> = vec![(1, 0)];
    let mut names = 0u64;
    for (i, element) in elements.iter().enumerate() {
        while open.pop_if(|(children, _)| *children == 0).is_some() {}
        let depth = open.len();
        let (left, above) = open.last_mut().ok_or(Impossible)?;
        *left -= 1;
        let name = above.saturating_add(element.name).saturating_add(NAME);
        names = names.saturating_add(name);
        let children = u64::try_from(element.children).map_err(|_| Impossible)?;
        if depth > MAX_GROUPS || names > NAMES || children > (elements.len() - i - 1) as u64 {
            return Err(Impossible);
        }
        open.push((children, name));
    }
    // The root is missing where a footer has no schema; the decoder says so.
    match elements.is_empty() || open.iter().all(|(children, _)| *children == 0) {
        true => Ok(()),
        false => Err(Impossible),
    }
}

/// Checks the page headers of a column chunk of `size` bytes; `open` gives its bytes from a position on. `width` is
/// the least size in bytes of a value of its dictionary. Pages that are compressed by Brotli are decompressed, because that
/// has no largest ratio and the decoder does not stop at the unpacked size; nothing is kept.
pub(super) fn check_pages<R: Read>(
    open: impl Fn(u64) -> Option<R>,
    size: u64,
    width: i64,
    brotli: bool,
) -> Result<(), Impossible> {
    let mut at = 0;
    while at < size {
        let mut walker = Walker { left: size - at, input: open(at).ok_or(Impossible)? };
        let (mut unpacked, mut packed, mut values, mut entries, mut levels) = (None, None, 0, 0, 0);
        walker.structure(PAGE_HEADER, &mut |path, n| match path {
            [2] => unpacked = Some(n),
            [3] => packed = Some(n),
            [5, 1] | [8, 1] => values = n,
            [7, 1] => entries = n,
            [8, 5 | 6] => levels += n.clamp(0, i64::from(i32::MAX)),
            _ => {}
        })?;
        let (Some(unpacked), Some(packed)) = (unpacked, packed) else { return Err(Impossible) };
        let unpacked_fits = (0..=PAGE.max(packed.saturating_mul(RATIO))).contains(&unpacked);
        let entries_fit = entries >= 0 && entries.saturating_mul(width) <= unpacked;
        if !unpacked_fits || !entries_fit || values < 0 {
            return Err(Impossible);
        }
        let packed = u64::try_from(packed).map_err(|_| Impossible)?;
        if brotli {
            // The levels of a data page of version 2 come first, and are not compressed.
            let mut body = walker.input.by_ref().take(packed);
            let skipped = std::io::copy(&mut body.by_ref().take(levels as u64), &mut std::io::sink());
            skipped.map_err(|_| Impossible)?;
            check_brotli(body, unpacked as u64)?;
        }
        at = size - walker.left.checked_sub(packed).ok_or(Impossible)?;
    }
    Ok(())
}

/// Decompresses what fits in so many bytes. What is no Brotli is the decoder's to refuse.
fn check_brotli(packed: impl Read, most: u64) -> Result<(), Impossible> {
    let unpacked = brotli::Decompressor::new(packed, 1 << 12).take(most + 1);
    let mut counted = Counted(0);
    // An error ends the decoder at the same place.
    let _ = std::io::copy(&mut { unpacked }, &mut counted);
    if counted.0 > most { Err(Impossible) } else { Ok(()) }
}

/// Counts what is written, and keeps nothing.
struct Counted(u64);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Stands for a field's number at the end of a struct.
const END: i64 = 0;

/// Called with the field numbers that lead to a value, and the value.
type Told<'a> = dyn FnMut(&[i64], i64) + 'a;

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

    /// Walks a struct. `told` is called for integers, for lengths of strings and at the [`END`] of each struct, with
    /// the field numbers that lead there.
    fn structure(&mut self, shapes: Fields, told: &mut Told) -> Result<(), Impossible> {
        self.fields(0, shapes, &mut [0; MAX_DEPTH], told)
    }

    fn fields(
        &mut self,
        depth: usize,
        shapes: Fields,
        path: &mut [i64; MAX_DEPTH],
        told: &mut Told,
    ) -> Result<(), Impossible> {
        if depth >= MAX_DEPTH {
            return Err(Impossible);
        }
        let mut field = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                path[depth] = END;
                told(&path[..=depth], 0);
                return Ok(());
            }
            field = match head >> 4 {
                0 => zigzag(self.varint()?),
                delta => field + i64::from(delta),
            };
            // The decoder keeps 16 bits of it, and would take a larger number for another field.
            if !(1..=i64::from(i16::MAX)).contains(&field) {
                return Err(Impossible);
            }
            path[depth] = field;
            let shape = shapes.iter().find(|(known, _)| *known == field).map(|(_, shape)| shape);
            match head & 15 {
                // Booleans are in the header.
                1 | 2 if shape.is_none_or(|shape| shape.fits(1)) => {}
                kind => self.value(kind, shape, depth, path, told)?,
            }
        }
    }

    /// Walks a value, at a path of so many numbers after the first.
    fn value(
        &mut self,
        kind: u8,
        shape: Option<&Shape>,
        depth: usize,
        path: &mut [i64; MAX_DEPTH],
        told: &mut Told,
    ) -> Result<(), Impossible> {
        if shape.is_some_and(|shape| !shape.fits(kind)) {
            return Err(Impossible);
        }
        match kind {
            3 => self.skip(1),
            4..=6 => {
                let n = zigzag(self.varint()?);
                if shape.is_some_and(|shape| !shape.holds(n)) {
                    return Err(Impossible);
                }
                told(&path[..=depth], n);
                Ok(())
            }
            7 => self.skip(8),
            8 => {
                let n = self.varint()?;
                told(&path[..=depth], i64::try_from(n).map_err(|_| Impossible)?);
                self.skip(n)
            }
            9 | 10 => self.list(shape, depth, path, told),
            12 => {
                let shapes = match shape {
                    Some(Struct(shapes)) => shapes,
                    _ => &[][..],
                };
                self.fields(depth + 1, shapes, path, told)
            }
            13 => self.skip(16),
            // Neither maps nor booleans outside of structs occur in the format.
            _ => Err(Impossible),
        }
    }

    fn list(
        &mut self,
        shape: Option<&Shape>,
        depth: usize,
        path: &mut [i64; MAX_DEPTH],
        told: &mut Told,
    ) -> Result<(), Impossible> {
        let head = self.byte()?;
        let n = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let element = match shape {
            Some(List(element)) => Some(*element),
            _ => None,
        };
        // Every element takes a byte. Lists in lists, which the format does not have, count as levels too.
        let deeper = matches!(head & 15, 9 | 10);
        if n > self.left || depth + 1 >= MAX_DEPTH {
            return Err(Impossible);
        }
        path[depth + 1] = END;
        (0..n).try_for_each(|_| self.value(head & 15, element, depth + usize::from(deeper), path, told))
    }
}

fn zigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
