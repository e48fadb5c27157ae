//! Compares every path with the portable one, and the portable one with known products.

use proptest::prelude::*;

use super::*;

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

fn element(n: u128) -> [u8; 16] {
    n.to_le_bytes()
}

/// The product, on all paths.
fn product(a: u128, b: u128) -> u128 {
    let mut all = paths().map(|path| {
        let (ran, sum) = sum_of_products_with(path, &[element(a)], &[element(b)]);
        assert_eq!(ran, path, "the forced path ran");
        u128::from_le_bytes(sum)
    });
    let first = all.next().unwrap();
    assert!(all.all(|other| other == first), "{a:x} {b:x}");
    first
}

/// Products of small degree have no reduction; x^127 x is the modulus without x^128.
#[test]
fn products_known_by_hand() {
    assert_eq!(product(0b11, 0b101), 0b1111);
    assert_eq!(product(1 << 127, 2), 0x87);
    assert_eq!(product(1 << 64, 1 << 64), 0x87);
    // x^254 = x^126 (x^7 + x^2 + x + 1) = x^133 + x^128 + x^127 + x^126, and x^133 = x^5 (x^7 + x^2 + x + 1).
    assert_eq!(product(1 << 127, 1 << 127), 0x87 << 5 ^ 0x87 ^ 1 << 127 ^ 1 << 126);
    for a in [0, 1, u128::MAX, 1 << 127] {
        assert_eq!((product(a, 0), product(a, 1)), (0, a));
    }
}

/// The first product of the GHASH of test case 2 of the GCM specification (McGrew and Viega, 2004), in which the bits
/// of an element are in reverse order.
#[test]
fn a_product_of_the_gcm_specification() {
    let element = |n: u128| n.reverse_bits();
    let h = element(0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
    let x = element(0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78);
    assert_eq!(product(h, x), element(0x5e2e_c746_9170_6288_2c85_b068_5353_deb7));
}

/// x^(2^128) = x, and for no smaller exponent 2^k: the modulus has no factor of a degree that divides 64.
#[test]
fn the_modulus_is_irreducible() {
    let mut power = 2;
    for i in 1..=128 {
        power = product(power, power);
        assert_eq!(power == 2, i == 128, "{i}");
    }
    // gcd(x^(2^64) - x, modulus) = 1, or x^(2^64) - x would have no inverse: a^(2^128 - 2) a = 1.
    let a = (0..64).fold(2, |power, _| product(power, power)) ^ 2;
    let (mut inverse, mut square) = (1, a);
    for _ in 1..128 {
        square = product(square, square);
        inverse = product(inverse, square);
    }
    assert_eq!(product(a, inverse), 1);
}

/// None, one, a register and its neighbours, several.
#[test]
fn every_length_on_every_path() {
    for n in [0, 1, 3, 4, 5, 8, 31] {
        let list = |seed: u128| -> Vec<[u8; 16]> {
            (1..=n).map(|i| element(seed.wrapping_mul(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c))).collect()
        };
        let (a, b, factor) = (list(u128::MAX / 7), list(u128::MAX / 11), element(u128::MAX / 13));
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
    add_multiple(&[0; 16], &[[0; 16]; 2], &mut [[0; 16]; 3]);
}

#[test]
#[should_panic(expected = "as many of both")]
fn factors_of_another_length() {
    sum_of_products(&[[0; 16]; 2], &[[0; 16]; 3]);
}

proptest! {
    #[test]
    fn products_form_a_field(a: u128, b: u128, c: u128) {
        prop_assert_eq!(product(a, b), product(b, a));
        prop_assert_eq!(product(product(a, b), c), product(a, product(b, c)));
        prop_assert_eq!(product(a ^ b, c), product(a, c) ^ product(b, c));
    }
}
