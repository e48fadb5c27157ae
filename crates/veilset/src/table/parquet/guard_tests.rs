//! Sizes in Parquet files that are and that cannot be.

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
            let check = |size| check_pages(|at| bytes.get(at as usize..), size, 4, false).is_ok();
            assert_eq!(check(bytes.len() as u64), good, "{unpacked} {packed}");
            assert!(!check(bytes.len() as u64 - 1) && !check(bytes.len() as u64 + 1));
        }
    }
}

#[test]
fn numbers_that_the_decoder_would_cut_are_refused() {
    // The packed size, 4 and 2^32 + 4.
    let header = |packed: &[u8]| [&[0x15, 0, 0x15, 8, 0x15], packed, &[0]].concat();
    for (packed, good) in [(&[8][..], true), (&[0x88, 0x80, 0x80, 0x80, 0x20], false)] {
        let bytes = header(packed);
        let size = bytes.len() as u64 + if good { 4 } else { (1 << 32) + 4 };
        assert_eq!(check_pages(|at| bytes.get(at as usize..), size, 1, false).is_ok(), good);
    }
}

#[test]
fn brotli_that_unpacks_to_more_than_it_says_is_refused() {
    let mut packed = Vec::new();
    let mut writer = brotli::CompressorWriter::new(&mut packed, 1 << 12, 5, 22);
    std::io::Write::write_all(&mut writer, &[0; 100_000]).unwrap();
    drop(writer);
    let length = packed.len() as i32;
    let header = |unpacked, length: i32| {
        let mut header = page(unpacked, length, 0);
        header.truncate(header.len() - length as usize);
        header
    };
    for (unpacked, good) in [(100_000, true), (100_001, true), (99_999, false), (0, false)] {
        let bytes = [header(unpacked, length), packed.clone()].concat();
        let check = |brotli| check_pages(|at| bytes.get(at as usize..), bytes.len() as u64, 1, brotli);
        assert_eq!((check(true).is_ok(), check(false).is_ok()), (good, true), "{unpacked}");
    }
    // What is no Brotli is not judged here.
    let bytes = [header(3, 3), vec![0xff; 3]].concat();
    assert!(check_pages(|at| bytes.get(at as usize..), bytes.len() as u64, 1, true).is_ok());
}

#[test]
fn schemas_are_trees_of_bounded_size() {
    let check = |elements: &[(i64, u64)]| {
        let elements = elements.iter().map(|&(children, name)| SchemaElement { children, name });
        check_schema(&elements.collect::<Vec<_>>()).is_ok()
    };
    let chain = |n: usize| [vec![(1, 1); n], vec![(0, 1)]].concat();
    let wide = |n: usize, name| [vec![(n as i64, 1)], vec![(0, name); n]].concat();
    for good in [
        &[][..],
        &[(0, 5)],
        &[(2, 5), (0, 1), (0, 1)],
        &[(2, 5), (1, 1), (0, 1), (0, 1)],
        &chain(MAX_GROUPS - 1),
        &wide(10_000, 50),
    ] {
        assert!(check(good), "{} elements", good.len());
    }
    let many_paths = [vec![(1, 1), (20_000, 200_000)], vec![(0, 1); 20_000]].concat();
    for bad in [
        // Too few elements, too many, fewer than none, more than there are.
        &[(2, 5), (0, 1)][..],
        &[(1, 5), (0, 1), (0, 1)],
        &[(0, 5), (0, 1)],
        &[(1, 5), (-1, 1)],
        &[(i64::from(i32::MAX), 5), (0, 1)],
        &chain(MAX_GROUPS),
        &many_paths,
        &wide(10, u64::MAX),
    ] {
        assert!(!check(bad), "{} elements", bad.len());
    }
}

#[test]
fn footers_with_impossible_lengths_are_refused() {
    // (bytes, good)
    let cases: [(&[u8], bool); 20] = [
        (&[0], true),
        (&[], false),
        (&[0x15, 2, 0], true),
        // A list of 2^28 structs, of 2 bytes, of as many bytes as there are.
        (&[0xa9, 0xfc, 0x80, 0x80, 0x80, 0x80, 1, 0], false),
        (&[0xa9, 0x23, 1, 1, 0], true),
        (&[0xa9, 0x43, 1, 1, 0], false),
        // A string of 5 bytes, and of too many.
        (&[0xa8, 5, 1, 2, 3, 4, 5, 0], true),
        (&[0xa8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], false),
        (&[0xab, 0, 0], false),
        // Lists of booleans; of none, whose type may be any.
        (&[0xa9, 0x11, 1, 0], false),
        (&[0xa9, 0x12, 2, 0], false),
        (&[0xa9, 0x01, 0], true),
        // A field of the format, which is an integer, as a string, and the first with another number for it.
        (&[0x18, 1, 7, 0], false),
        (&[0x05, 2, 2, 0], true),
        (&[0x05, 0, 2, 0], false),
        (&[0x05, 1, 2, 0], false),
        (&[0x05, 0x82, 0x80, 8, 2, 0], false),
        // The list of the schema: of structs with a name, of structs whose name is a number, of numbers.
        (&[0x29, 0x1c, 0x48, 1, 7, 0, 0], true),
        (&[0x29, 0x1c, 0x45, 7, 0, 0], false),
        (&[0x29, 0x15, 7, 0], false),
    ];
    for (bytes, good) in cases {
        assert_eq!(check_footer(bytes).is_ok(), good, "{bytes:?}");
    }
    assert!(check_footer(&[0xac; 1000]).is_err());
    assert!(check_footer(&[[0xa9, 0x19].repeat(500), vec![0]].concat()).is_err());
}
