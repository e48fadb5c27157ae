//! Compares every path with the crate `blake3`, which is tested against the vectors of the specification.

use proptest::prelude::*;

use super::*;

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

/// Hashes prefixes of these messages, whose lengths begin with `length` and differ by `step`.
fn check(key: &[u8; 32], length: usize, step: usize, messages: &[[u8; BLOCK]]) {
    let lengths: Vec<u8> = (0..messages.len()).map(|i| ((length + i * step) % (BLOCK + 1)) as u8).collect();
    let mut messages = messages.to_vec();
    messages.iter_mut().zip(&lengths).for_each(|(m, &length)| m[length.into()..].fill(0));
    let (messages, lengths) = (&messages[..], &lengths[..]);
    let pairs = messages.iter().zip(lengths);
    let expected: Vec<[u8; 32]> =
        pairs.map(|(m, &length)| *blake3::keyed_hash(key, &m[..length.into()]).as_bytes()).collect();
    for path in paths() {
        let mut out = vec![[0xaa; 32]; messages.len()];
        assert_eq!(keyed_hash_with(path, key, lengths, messages, &mut out), path, "the forced path ran");
        assert_eq!(out, expected, "{path:?} {length} {step}");
    }
    let mut out = vec![[0xaa; 32]; messages.len()];
    keyed_hash(key, lengths, messages, &mut out);
    assert_eq!(out, expected);
}

/// Every length of a message; none, one, a vector of either kind and its neighbours, several.
#[test]
fn every_length() {
    let message = |i: usize| std::array::from_fn(|b| (i * 89 + b * b * 7 + 1) as u8);
    for length in 0..=BLOCK {
        check(&[length as u8; 32], length, 0, &[message(length), message(length + 1)]);
    }
    for n in [0, 1, 7, 8, 9, 15, 16, 17, 33] {
        let messages: Vec<[u8; BLOCK]> = (0..n).map(message).collect();
        check(&[9; 32], BLOCK, 0, &messages);
        check(&[9; 32], 37, 7, &messages);
    }
}

/// The first case of the vectors of BLAKE3: the empty message under the key "whats the Elvish word for friend".
#[test]
fn a_published_vector() {
    let mut out = [[0; 32]];
    keyed_hash(b"whats the Elvish word for friend", &[0], &[[0; BLOCK]], &mut out);
    assert_eq!(out[0][..8], [0x92, 0xb2, 0xb7, 0x56, 0x04, 0xed, 0x3c, 0x76]);
}

#[test]
#[should_panic(expected = "fits into a block")]
fn messages_that_are_too_long() {
    keyed_hash(&[0; 32], &[BLOCK as u8 + 1], &[[0; BLOCK]], &mut [[0; 32]]);
}

#[test]
#[should_panic(expected = "as many hashes")]
fn too_few_hashes() {
    keyed_hash(&[0; 32], &[5; 2], &[[0; BLOCK]; 2], &mut [[0; 32]]);
}

proptest! {
    #[test]
    fn random_messages(key: [u8; 32], length in 0..=BLOCK, step in 0..9usize, seed: u64, n in 0..40usize) {
        let mut x = seed;
        let mut byte = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 56) as u8
        };
        let messages: Vec<[u8; BLOCK]> = (0..n).map(|_| std::array::from_fn(|_| byte())).collect();
        check(&key, length, step, &messages);
    }
}
