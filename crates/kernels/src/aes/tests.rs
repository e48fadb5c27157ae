//! Compares every path with FIPS 197, and with formulas that are written out block by block.

use super::*;

/// Lengths in blocks around the group of the vector path (32) and the portable chunk (128), and several of each with a
/// remainder.
const LENGTHS: [usize; 11] = [0, 1, 2, 31, 32, 33, 127, 128, 129, 160, 300];

/// The paths that can run here. A requested path that does not run fails the test.
fn paths() -> impl Iterator<Item = Backend> {
    BACKENDS.iter().copied().filter(|b| b.is_available())
}

/// One block, computed with the `aes` crate alone.
fn pi(key: &[u8; 16], x: u128) -> u128 {
    use ::aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    let mut block = Array(x.to_le_bytes());
    ::aes::Aes128::new(&Array(*key)).encrypt_block(&mut block);
    u128::from_le_bytes(block.0)
}

fn samples(n: usize) -> Vec<u128> {
    (0..n as u128).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)).collect()
}

fn blocks(x: &[u128]) -> Vec<[u8; 16]> {
    x.iter().map(|x| x.to_le_bytes()).collect()
}

fn hex(s: &str) -> [u8; 16] {
    std::array::from_fn(|i| u8::from_str_radix(&s[2 * i..2 * i + 2], 16).unwrap())
}

/// First counters: small, a carry into the high word in the first group and after it, and wrapping around.
const FIRST: [u128; 5] =
    [0, (1 << 64) - 20, (1 << 64) - 32, (7 << 64) | 0xffff_ffff_ffff_ff00, u128::MAX - 40];

#[test]
fn fips_197() {
    let vectors = [
        // Appendix B.
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "3243f6a8885a308d313198a2e0370734",
            "3925841d02dc09fbdc118597196a0b32",
        ),
        // Appendix C.1.
        (
            "000102030405060708090a0b0c0d0e0f",
            "00112233445566778899aabbccddeeff",
            "69c4e0d86a7b0430d8cdb78070b4c55a",
        ),
    ];
    for b in paths() {
        for (key, plain, cipher) in vectors {
            // 33 blocks, so that both the groups and the remainder of the vector path contain the vector.
            let mut x = [hex(plain); 33];
            assert_eq!(Aes128::new(&hex(key)).encrypt_with(b, &mut x), b);
            assert_eq!(x, [hex(cipher); 33]);
        }
    }
}

#[test]
fn blocks_agree() {
    let key = [0x3c; 16];
    for b in paths() {
        for n in LENGTHS {
            let x = samples(n);
            let mut out = blocks(&x);
            assert_eq!(Aes128::new(&key).encrypt_with(b, &mut out), b);
            assert_eq!(out, blocks(&x.iter().map(|x| pi(&key, *x)).collect::<Vec<_>>()));
        }
    }
}

#[test]
fn counter_mode_agrees() {
    let key = [0x11; 16];
    for b in paths() {
        for first in FIRST {
            for n in LENGTHS {
                let expected: Vec<u8> =
                    (0..=n as u128).flat_map(|i| pi(&key, first.wrapping_add(i)).to_le_bytes()).collect();
                // A remainder of zero bytes, one byte, and all but one.
                for rest in [0, 1, 15] {
                    let mut out = vec![0; 16 * n + rest];
                    assert_eq!(Aes128::new(&key).ctr_with(b, first, &mut out), b);
                    assert_eq!(out, expected[..out.len()]);
                }
            }
        }
    }
}

#[test]
fn hash_agrees_with_the_formula() {
    let key = [0x77; 16];
    for b in paths() {
        for first in FIRST {
            for n in LENGTHS {
                let x = samples(n);
                let mut out = blocks(&x);
                assert_eq!(Aes128::new(&key).tcr_hash_with(b, first, &mut out), b);
                let expected: Vec<u128> = (0..n)
                    .map(|i| {
                        let inner = pi(&key, x[i]);
                        pi(&key, inner ^ first.wrapping_add(i as u128)) ^ inner
                    })
                    .collect();
                assert_eq!(out, blocks(&expected));
            }
        }
    }
}

/// Distinct keys and blocks, and the vector of appendix B, which uses all round constants.
#[test]
fn blocks_under_keys_of_their_own_agree() {
    for b in paths() {
        for n in LENGTHS {
            let (keys, x) = (blocks(&samples(2 * n)[n..]), samples(n));
            let mut out = blocks(&x);
            assert_eq!(encrypt_each_with(b, &keys, &mut out), b);
            let expected: Vec<u128> = keys.iter().zip(&x).map(|(key, x)| pi(key, *x)).collect();
            assert_eq!(out, blocks(&expected));
        }
    }
    let mut x = [hex("3243f6a8885a308d313198a2e0370734")];
    encrypt_each(&[hex("2b7e151628aed2a6abf7158809cf4f3c")], &mut x);
    assert_eq!(x, [hex("3925841d02dc09fbdc118597196a0b32")]);
}

#[test]
#[should_panic(expected = "as many blocks as keys")]
fn fewer_keys_than_blocks_are_refused() {
    encrypt_each(&[[1; 16]; 2], &mut [[2; 16]; 3]);
}

#[test]
fn default_path_gives_the_same() {
    let aes = Aes128::new(&[5; 16]);
    let (mut a, mut b) = (blocks(&samples(70)), blocks(&samples(70)));
    aes.encrypt(&mut a);
    aes.encrypt_with(Backend::Portable, &mut b);
    assert_eq!(a, b);
    aes.tcr_hash(9, &mut a);
    aes.tcr_hash_with(Backend::Portable, 9, &mut b);
    assert_eq!(a, b);
    aes.ctr(9, a.as_flattened_mut());
    aes.ctr_with(Backend::Portable, 9, b.as_flattened_mut());
    assert_eq!(a, b);
}

/// The key schedules of both paths.
#[test]
fn a_key_schedule_is_wiped_when_it_is_dropped() {
    fn on_drop<T: zeroize::ZeroizeOnDrop>() {}
    on_drop::<::aes::Aes128Enc>();
    #[cfg(target_arch = "x86_64")]
    if Backend::AesNi.is_available() {
        // SAFETY: is_available has confirmed that the processor supports the instructions of `expand`.
        let mut keys = std::mem::ManuallyDrop::new(unsafe { x86::expand(&[0x41; 16]) });
        let place = (&raw mut *keys).cast::<[[u8; 16]; 11]>();
        // SAFETY: round keys consist of exactly these bytes; their memory remains ours after the drop, which frees
        // nothing.
        let [before, after] = unsafe {
            let before = place.read_volatile();
            std::mem::ManuallyDrop::drop(&mut keys);
            [before, place.read_volatile()]
        };
        assert!(before[0] == [0x41; 16] && after == [[0; 16]; 11]);
    }
}

#[test]
fn debug_shows_no_key() {
    assert_eq!(format!("{:?}", Aes128::new(&[0x41; 16])), "Aes128 { .. }");
}
