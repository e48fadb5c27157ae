//! Compares every path with the portable one, and the portable one with products computed by hand.

use proptest::prelude::*;

use super::*;

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

fn pair(low: u64, high: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

/// The product, computed on all paths and in both elements of a pair.
fn product(a: u64, b: u64) -> u64 {
    let mut all = paths().flat_map(|path| {
        [(b, 0), (0, b)].map(|(low, high)| {
            let (ran, sum) = sum_of_products_with(path, &[a.to_le_bytes()], &[pair(low, high)]);
            assert_eq!(ran, path, "the forced path ran");
            let sum = u128::from_le_bytes(sum);
            if high == 0 { (sum as u64, (sum >> 64) as u64) } else { ((sum >> 64) as u64, sum as u64) }
        })
    });
    let first = all.next().unwrap();
    assert!(all.all(|other| other.0 == first.0 && (other.1 == 0 || b == 0)), "{a:x} {b:x}");
    first.0
}

/// Products of small degree have no reduction; x^63 x is the modulus without x^64.
#[test]
fn products_known_by_hand() {
    assert_eq!(product(0b11, 0b101), 0b1111);
    assert_eq!(product(1 << 63, 2), 0x1b);
    assert_eq!(product(1 << 32, 1 << 32), 0x1b);
    // x^126 = x^62 (x^4 + x^3 + x + 1) = x^66 + x^65 + x^63 + x^62, and x^65 = x (x^4 + x^3 + x + 1).
    assert_eq!(product(1 << 63, 1 << 63), 0x1b << 2 ^ 0x1b << 1 ^ 1 << 63 ^ 1 << 62);
    for a in [0, 1, u64::MAX, 1 << 63] {
        assert_eq!((product(a, 0), product(a, 1)), (0, a));
        assert_eq!(multiply(&a.to_le_bytes(), &2u64.to_le_bytes()), product(a, 2).to_le_bytes());
    }
}

/// x^(2^64) = x, and for no smaller exponent 2^k: the modulus has no factor of a degree that divides 32.
#[test]
fn the_modulus_is_irreducible() {
    let mut power = 2;
    for i in 1..=64 {
        power = product(power, power);
        assert_eq!(power == 2, i == 64, "{i}");
    }
    // gcd(x^(2^32) - x, modulus) = 1, or x^(2^32) - x would have no inverse: a^(2^64 - 2) a = 1.
    let a = (0..32).fold(2, |power, _| product(power, power)) ^ 2;
    let (mut inverse, mut square) = (1, a);
    for _ in 1..64 {
        square = product(square, square);
        inverse = product(inverse, square);
    }
    assert_eq!(product(a, inverse), 1);
}

/// None, one, a register and its neighbours, several.
#[test]
fn every_length_on_every_path() {
    for n in [0, 1, 3, 4, 5, 8, 31] {
        let word = |seed: u64, i: u64| seed.wrapping_mul(2 * i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let a: Vec<[u8; 8]> = (0..n).map(|i| word(u64::MAX / 7, i).to_le_bytes()).collect();
        let b: Vec<[u8; 16]> = (0..n).map(|i| pair(word(u64::MAX / 11, i), word(u64::MAX / 13, i))).collect();
        let factor = pair(u64::MAX / 5, u64::MAX / 17);
        let mut expected = (b.clone(), [0; 16]);
        portable::add_multiple(&factor, &a, &mut expected.0);
        expected.1 = portable::sum_of_products(&a, &b);
        for path in paths() {
            let mut sums = b.clone();
            assert_eq!(add_multiple_with(path, &factor, &a, &mut sums), path, "the forced path ran");
            assert_eq!((sums, sum_of_products_with(path, &a, &b)), (expected.0.clone(), (path, expected.1)));
        }
    }
}

#[test]
#[should_panic(expected = "as many sums")]
fn sums_of_another_length() {
    add_multiple(&[0; 16], &[[0; 8]; 2], &mut [[0; 16]; 3]);
}

#[test]
#[should_panic(expected = "as many of both")]
fn factors_of_another_length() {
    sum_of_products(&[[0; 8]; 2], &[[0; 16]; 3]);
}

proptest! {
    #[test]
    fn products_form_a_field(a: u64, b: u64, c: u64) {
        prop_assert_eq!(product(a, b), product(b, a));
        prop_assert_eq!(product(product(a, b), c), product(a, product(b, c)));
        prop_assert_eq!(product(a ^ b, c), product(a, c) ^ product(b, c));
    }
}
