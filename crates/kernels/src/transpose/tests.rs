//! Compares every path with a bit-by-bit transposition.

use proptest::prelude::*;

use super::*;

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

/// The transposition computed from the definition.
fn oracle(columns: &[u8], stride: usize, rows: usize) -> Vec<[u8; 16]> {
    let mut out = vec![[0; 16]; rows];
    for (j, row) in out.iter_mut().enumerate() {
        for c in 0..COLUMNS {
            let bit = columns[c * stride + j / 8] >> (j % 8) & 1;
            row[c / 8] |= bit << (c % 8);
        }
    }
    out
}

fn check(columns: &[u8], stride: usize, rows: usize) {
    let expected = oracle(columns, stride, rows);
    for b in paths() {
        let mut out = vec![[0xaa; 16]; rows];
        assert_eq!(transpose_128_with(b, columns, stride, &mut out), b, "the forced path ran");
        assert_eq!(out, expected);
    }
    let mut out = vec![[0xaa; 16]; rows];
    transpose_128(columns, stride, &mut out);
    assert_eq!(out, expected);
}

/// Zero, one, two and several squares; columns back to back, with a gap, and at an odd stride; the last column without
/// its gap.
#[test]
fn sizes_and_strides() {
    for rows in [0, 128, 256, 1152] {
        for gap in [0, 1, 16, 64] {
            let stride = rows / 8 + gap;
            let len = if rows == 0 { 0 } else { stride * (COLUMNS - 1) + rows / 8 };
            let columns: Vec<u8> = (0..len).map(|i| (i * i * 31 + i / 7) as u8).collect();
            check(&columns, stride, rows);
        }
    }
}

/// One bit at a time, so that an error cannot be hidden by another one.
#[test]
fn single_bits() {
    for c in [0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 127] {
        for j in 0..128 {
            let mut columns = vec![0; 16 * COLUMNS];
            columns[16 * c + j / 8] = 1 << (j % 8);
            check(&columns, 16, 128);
        }
    }
}

#[test]
#[should_panic(expected = "multiple of 128")]
fn rows_that_are_no_multiple() {
    transpose_128(&[0; 4096], 32, &mut [[0; 16]; 129]);
}

#[test]
#[should_panic(expected = "fits into the stride")]
fn columns_that_overlap() {
    transpose_128(&[0; 4096], 15, &mut [[0; 16]; 128]);
}

#[test]
#[should_panic(expected = "128 columns")]
fn too_few_columns() {
    transpose_128(&[0; 2047], 16, &mut [[0; 16]; 128]);
}

proptest! {
    #[test]
    fn random_bits(columns in proptest::collection::vec(any::<u8>(), 32 * COLUMNS)) {
        check(&columns, 32, 256);
    }
}
