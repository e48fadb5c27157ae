//! Compares every path with sums computed element by element.

use proptest::prelude::*;

use super::*;

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

/// A sum computed from the definition.
fn sum(bits: u128, vector: &[[u8; 16]], start: usize) -> [u8; 16] {
    let mut sum = [0; 16];
    for j in (0..WIDTH).filter(|j| bits >> j & 1 == 1) {
        sum.iter_mut().zip(vector[start + j]).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

fn vector(n: usize) -> Vec<[u8; 16]> {
    (1..=n as u128).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834).to_le_bytes()).collect()
}

fn check(starts: &[u32], bits: &[u128], vector: &[[u8; 16]]) {
    let expected: Vec<_> = starts.iter().zip(bits).map(|(&s, &bits)| sum(bits, vector, s as usize)).collect();
    let mut solved = vector.to_vec();
    let rows = &bits[..bits.len().min(vector.len() + 1 - WIDTH)];
    solved.truncate(rows.len() + WIDTH - 1);
    let given = solved.clone();
    for i in (0..rows.len()).rev() {
        solved[i] = sum(rows[i] | 1, &solved, i);
    }
    for path in paths() {
        let mut sums = vec![[0xaa; 16]; starts.len()];
        assert_eq!(select_with(path, starts, bits, vector, &mut sums), path, "the forced path ran");
        assert_eq!(sums, expected);
        let mut vector = given.clone();
        assert_eq!(substitute_with(path, rows, &mut vector), path, "the forced path ran");
        assert_eq!(vector, solved);
    }
}

/// Each bit alone, so that an error cannot be hidden by another one; no bits and all bits.
#[test]
fn single_bits() {
    let bits: Vec<u128> = (0..128).map(|j| 1 << j).chain([0, u128::MAX]).collect();
    for start in [0, 1, 3] {
        check(&vec![start; bits.len()], &bits, &vector(131));
    }
}

/// No rows, one, and several up to the end of the vector.
#[test]
fn rows_anywhere() {
    check(&[], &[], &vector(127));
    check(&[0], &[u128::MAX / 3], &vector(128));
    check(&[400, 0, 372, 1, 9], &[u128::MAX / 5, 1, u128::MAX / 7, 1 << 127, 6], &vector(528));
}

#[test]
#[should_panic(expected = "within the vector")]
fn a_row_that_ends_behind_the_vector() {
    select(&[1], &[0], &[[0; 16]; 128], &mut [[0; 16]]);
}

#[test]
#[should_panic(expected = "within the vector")]
fn a_row_that_starts_behind_the_vector() {
    select(&[u32::MAX], &[0], &[[0; 16]; 128], &mut [[0; 16]]);
}

#[test]
#[should_panic(expected = "as many starts")]
fn sums_of_another_length() {
    select(&[0], &[0], &[[0; 16]; 128], &mut [[0; 16]; 2]);
}

#[test]
#[should_panic(expected = "127 elements behind")]
fn a_vector_of_another_length() {
    substitute(&[0], &mut [[0; 16]; 127]);
}

proptest! {
    #[test]
    fn random_rows(rows in proptest::collection::vec((0..300u32, any::<u128>()), 0..40)) {
        let (starts, bits): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        check(&starts, &bits, &vector(427));
    }
}
