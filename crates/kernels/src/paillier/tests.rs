//! Compares the kernel with slow big-integer oracles, written from the formulas.

use num_bigint::BigUint;
use sha2::{Digest, Sha256};
use std::iter::zip;

use super::table::{Masks, Row, digit, digits};
use super::*;
use crate::Backend;
use crate::oracle::int;

/// Bytes that are determined by the seed.
pub(super) fn stream(seed: u32) -> impl FnMut(&mut [u8]) {
    let mut count = 0u32;
    move |out| {
        for chunk in out.chunks_mut(32) {
            let hash =
                Sha256::new().chain_update(seed.to_le_bytes()).chain_update(count.to_le_bytes()).finalize();
            chunk.copy_from_slice(&hash[..chunk.len()]);
            count += 1;
        }
    }
}

pub(super) fn draw(seed: u32, length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    stream(seed)(&mut out);
    out
}

pub(super) fn key(bits: usize) -> SecretKey {
    SecretKey::generate(bits, &mut stream(bits as u32))
}

pub(super) fn big(bytes: &[u8]) -> BigUint {
    BigUint::from_bytes_le(bytes)
}

pub(super) fn bytes(number: &BigUint, width: usize) -> Vec<u8> {
    let mut out = number.to_bytes_le();
    assert!(out.len() <= width || *number == int(0));
    out.resize(width, 0);
    out
}

/// The primes p and q.
pub(super) fn primes(key: &SecretKey) -> [BigUint; 2] {
    let bytes = key.to_bytes();
    let (p, q) = bytes.split_at(bytes.len() / 2);
    [big(p), big(q)]
}

/// The message of a ciphertext: L(c^lambda mod N^2) / L((1 + N)^lambda mod N^2) mod N, with lambda = (p - 1) (q - 1).
fn decrypted(key: &SecretKey, ciphertext: &[u8]) -> BigUint {
    let [p, q] = primes(key);
    let (n, lambda) = (&p * &q, (&p - 1u8) * (&q - 1u8));
    let l = |c: &BigUint| (c.modpow(&lambda, &(&n * &n)) - 1u8) / &n;
    l(&big(ciphertext)) * l(&(&n + 1u8)).modinv(&n).unwrap() % &n
}

/// Ciphertexts of these messages, computed with the formula.
fn encrypted(public: &PublicKey, messages: &[BigUint], seed: u32) -> Vec<u8> {
    let n = big(public.n());
    let encrypt = |(i, m): (usize, &BigUint)| {
        let s = big(&draw(seed + i as u32, public.bits() / 8));
        bytes(&((m * &n + 1u8) * s.modpow(&n, &(&n * &n)) % (&n * &n)), public.width())
    };
    messages.iter().enumerate().flat_map(encrypt).collect()
}

// ---- Words. ----

#[test]
fn words_agree_with_the_oracle() {
    for (i, length) in (1..=9).chain([16, 17, 33]).enumerate() {
        for special in [None, Some(0u8), Some(0xff), Some(1)] {
            let number = |seed: u32, words: usize| {
                let mut bytes = draw(100 * i as u32 + seed, 8 * words);
                if let Some(special) = special {
                    bytes[..8 * words - 1].fill(special);
                }
                bytes
            };
            let (a, b, mut m) = (number(0, length), number(1, length), number(2, length));
            let range = big(&[&vec![0; 8 * length][..], &[1]].concat());
            m[8 * length - 1] |= 0x80;
            let [a_words, b_words, m_words] = [&a, &b, &m].map(|bytes| words::load(bytes));
            let [a, b, m] = [a, b, m].map(|bytes| big(&bytes));
            let number = |words: &[u64]| big(&words::bytes(words));
            assert_eq!(number(&words::multiply_add(&m_words, &a_words, &b_words)), &a * &b + &m);
            assert_eq!(number(&words::low_product(&a_words, &b_words)), &a * &b % &range);
            let mut difference = a_words.clone();
            assert_eq!(words::subtract(&mut difference, &b_words), a < b);
            assert_eq!(number(&difference), (&range + &a - &b) % &range);
            let mut next = a_words.clone();
            words::increment(&mut next);
            assert_eq!(number(&next), (&a + 1u8) % &range);
            let (long, [a, b]) = (words::multiply_add(&m_words, &a_words, &b_words), [&a % &m, &b % &m]);
            assert_eq!(number(&words::remainder(&long, &m_words)), number(&long) % &m);
            let [a_words, b_words] = [&a, &b].map(|n| words::load(&bytes(n, 8 * length)));
            assert_eq!(number(&words::difference(&a_words, &b_words, &m_words)), (&m + &a - &b) % &m);
            for bits in [1, 3, 63] {
                let mut shifted = a_words.clone();
                words::shift_right(&mut shifted, bits);
                assert_eq!(number(&shifted), &a >> bits);
            }
            assert_eq!((words::differ(&a_words, &b_words), words::differ(&a_words, &a_words)), (1, 0));
            for bit in [0, 63, 64 * length - 1] {
                let mut near = a_words.clone();
                near[bit / 64] ^= 1 << (bit % 64);
                assert_eq!(words::differ(&a_words, &near), 1);
            }
            let mut odd = m_words.clone();
            odd[0] |= 1;
            assert_eq!(number(&words::inverse(&odd)) * number(&odd) % &range, int(1));
            for d in [2, 3, 5, 255, 257, 4093, 65521, 65535] {
                assert_eq!(int(Divisor::new(d).remainder(&long).into()), number(&long) % d);
            }
        }
    }
}

#[test]
fn only_zero_becomes_one() {
    for (number, expected) in
        [([0, 0], [1, 0]), ([1, 0], [1, 0]), ([0, 1], [0, 1]), ([6, 1 << 63], [6, 1 << 63])]
    {
        let mut words = number;
        words::zero_to_one(&mut words);
        assert_eq!(words, expected);
    }
}

#[test]
fn every_number_of_a_row_can_be_chosen_on_every_path() {
    for (length, width) in [(2, 32), (32, 64), (64, 48), (128, 128), (128, 272)] {
        let numbers: Vec<Vec<u8>> = (0..length).map(|i| draw(i, width)).collect();
        let (mut row, mut masks) = (Row::new(length as usize, width), Masks::default());
        numbers.iter().enumerate().for_each(|(i, number)| row.set(i, number));
        for (i, number) in numbers.iter().enumerate() {
            let mut out = vec![7; width];
            row.get(i, &mut out);
            assert_eq!(out, *number);
        }
        // Full groups, and remainders.
        for count in [0, 1, 2, 4, 5, 11, length as usize] {
            let places: Vec<usize> = (0..count).map(|i| (i * 7 + count) % length as usize).collect();
            let expected: Vec<u8> = places.iter().flat_map(|&place| numbers[place].clone()).collect();
            for &backend in table::BACKENDS {
                let mut out = vec![7; count * width];
                let ran = row.choose_with(backend, &places, &mut masks, &mut out);
                assert_eq!(ran, if backend.is_available() { backend } else { Backend::Portable });
                assert_eq!(out, expected);
            }
        }
    }
}

#[test]
fn digits_make_up_the_number() {
    fn check<const BITS: usize>(bytes: &[u8]) {
        let (words, bits) = (words::load(bytes), 8 * bytes.len());
        let digits = (0..digits::<BITS>(bits)).map(|i| int(digit::<BITS>(&words, i) as u32) << (BITS * i));
        assert_eq!(digits.sum::<BigUint>(), big(bytes));
    }
    for bytes in [draw(1, 64), draw(2, 40), vec![0xff; 24]] {
        check::<1>(&bytes);
        check::<5>(&bytes);
        check::<6>(&bytes);
        check::<8>(&bytes);
    }
}

#[test]
fn small_primes_are_those_below_2_to_the_16() {
    assert_eq!(small_primes().len(), 6542);
    let values: Vec<u16> = small_primes().iter().map(|prime| prime.value).collect();
    assert_eq!((&values[..5], values.last()), (&[2, 3, 5, 7, 11][..], Some(&65521)));
}

// ---- Keys. ----

#[test]
fn keys_have_primes_of_their_length_that_differ() {
    for bits in [256, 384, 512, 1024] {
        let key = key(bits);
        let (public, [p, q]) = (key.public(), primes(&key));
        assert_eq!((public.bits(), public.width(), public.randomness()), (bits, bits / 4, bits / 8 + 16));
        assert_eq!(big(public.n()), &p * &q);
        let mut scratch = Scratch::new();
        for prime in [&p, &q] {
            assert_eq!(prime.bits(), bits as u64 / 2);
            assert!(prime.bit(bits as u64 / 2 - 2), "the second bit is set");
            assert_eq!(prime % 4u8, int(3));
            // Fermat's test, and the library's test with the most rounds.
            assert_eq!(int(3).modpow(&(prime - 1u8), prime), int(1));
            assert!(Number::new(&bytes(prime, bits / 16)).is_prime(false, &mut scratch));
        }
        assert!(p > q && (&p - &q).bits() > bits as u64 / 2 - 64);
        let order = (&p - 1u8) * (&q - 1u8);
        assert!(order.modinv(&big(public.n())).is_some(), "N and its order are coprime");
    }
}

#[test]
fn a_key_depends_on_all_that_is_drawn_and_on_nothing_else() {
    let generate = |seed| SecretKey::generate(256, &mut stream(seed)).to_bytes();
    assert_eq!(generate(1), generate(1));
    assert_ne!(generate(1), generate(2));
    // A prime is the first prime candidate among the draws, with four bits set: all other bits come from the draw.
    let mut drawn = Vec::new();
    let key = SecretKey::generate(256, &mut |out: &mut [u8]| {
        stream(drawn.len() as u32)(out);
        drawn.push(big(out) | int(3) | int(3) << 126u32);
    });
    assert!(primes(&key).iter().all(|prime| drawn.contains(prime)));
    assert_eq!(primes(&key).iter().filter(|prime| *prime == drawn.last().unwrap()).count(), 1);
}

#[test]
fn a_key_is_read_as_it_was_written_and_nothing_else_is() {
    let key = key(256);
    let bytes = key.to_bytes();
    let read = SecretKey::from_bytes(&bytes).unwrap();
    assert_eq!((read.to_bytes(), read.public().n()), (bytes.clone(), key.public().n()));
    let (p, q) = bytes.split_at(16);
    assert!(SecretKey::from_bytes(&[q, p].concat()).is_none(), "the greater is first");
    assert!(SecretKey::from_bytes(&[p, p].concat()).is_none(), "they differ");
    for length in [0, 1, 16, 24, 31] {
        assert!(SecretKey::from_bytes(&bytes[..length]).is_none());
    }
    for at in [0, 16] {
        let mut wrong = bytes.clone();
        wrong[at] ^= 1;
        assert!(SecretKey::from_bytes(&wrong).is_none(), "an even number is no prime");
        let mut wrong = bytes.clone();
        wrong[at + 15] &= 0xbf;
        assert!(SecretKey::from_bytes(&wrong).is_none(), "two bits are set");
    }
    // A prime of the right length at a sufficient distance, but 1 modulo 4.
    let mut scratch = Scratch::new();
    for (class, is_read) in [(1u8, false), (3, true)] {
        let mut other = (big(q) ^ int(1) << 120u32) - (big(q) % 4u8) + class;
        while !Number::new(&other.to_bytes_le()).is_prime(false, &mut scratch) {
            other += 4u8;
        }
        let mut both = [other, big(q)];
        both.sort();
        let [lesser, greater] = both.map(|prime| prime.to_bytes_le());
        assert_eq!(SecretKey::from_bytes(&[greater, lesser].concat()).is_some(), is_read, "{class} modulo 4");
    }
    // The next prime is too close.
    let mut near = big(q) + 4u8;
    while !Number::new(&near.to_bytes_le()).is_prime(false, &mut scratch) {
        near += 4u8;
    }
    assert!(SecretKey::from_bytes(&[&near.to_bytes_le(), q].concat()).is_none(), "they differ by much");
    assert!(SecretKey::from_bytes(&[0; 32]).is_none());
    assert!(SecretKey::from_bytes(&[0xff; 32]).is_none());
}

#[test]
fn what_is_printed_of_a_key_is_its_length() {
    assert_eq!(format!("{:?}", key(256)), "SecretKey { bits: 256, .. }");
}

/// A prime of this many bits whose top bits are set, near the drawn number, as for a candidate.
fn prime(bits: u32, seed: u32) -> BigUint {
    let mut candidate = (big(&draw(seed, bits as usize / 8)) | (int(15) << (bits - 4))) | int(1);
    let mut scratch = Scratch::new();
    while !Number::new(&candidate.to_bytes_le()).is_prime(false, &mut scratch) {
        candidate += 2u8;
    }
    candidate
}

#[test]
fn unsound_moduli_are_refused_for_what_is_wrong_with_them() {
    let unsound = |n: &BigUint| PublicKey::new(&bytes(n, (n.bits() as usize).div_ceil(8))).err();
    let sound = key(256);
    let n = big(sound.public().n());
    assert_eq!(unsound(&n), None);
    for length in [0, 1, 16, 24, 31, 33, 40, 1024 + 16] {
        assert_eq!(PublicKey::new(&vec![0xff; length]).err(), Some(Unsound::Length), "{length}");
    }
    assert_eq!(PublicKey::new(&bytes(&(&n >> 1), 32)).err(), Some(Unsound::Length), "the top bit is not set");
    assert_eq!(PublicKey::new(&[0; 32]).err(), Some(Unsound::Length));
    assert_eq!(unsound(&(&n - 1u8)), Some(Unsound::Even));
    for small in [3u32, 5, 251, 257, 65521] {
        let multiple = ((&n / small) | int(1)) * small;
        assert_eq!(unsound(&multiple), Some(Unsound::SmallFactor), "{small}");
    }
    assert_eq!(unsound(&prime(256, 1)), Some(Unsound::Prime));
    assert_eq!(unsound(&prime(128, 2).pow(2)), Some(Unsound::Power));
    assert_eq!(unsound(&(prime(64, 3) * prime(64, 4)).pow(2)), Some(Unsound::Power));
    assert_eq!(unsound(&(prime(64, 5).pow(4))), Some(Unsound::Power));
    assert_eq!(unsound(&prime(128, 6).pow(3)), Some(Unsound::Power));
    assert_eq!(unsound(&prime(128, 6).pow(5)), Some(Unsound::Power));
    // Close to the greatest exponent: 104999 is a prime of 17 bits.
    assert_eq!(unsound(&int(104_999).pow(23)), Some(Unsound::Power));
    // 65537 is above the bound, so this modulus is accepted.
    assert_eq!(unsound(&(int(65537) * prime(240, 7))), None);
}

// ---- Ciphertexts. ----

#[test]
fn what_is_not_a_ciphertext_is_found_wherever_it_stands() {
    let key = key(256);
    let (public, [p, q], n) = (key.public(), primes(&key), big(key.public().n()));
    let square = &n * &n;
    let all = encrypted(public, &(0..9).map(int).collect::<Vec<_>>(), 1);
    assert_eq!(public.check(&all), Ok(()));
    assert_eq!(public.check(&[]), Ok(()));
    for good in [int(1), &square - 1u8, &n + 1u8, &p - 1u8] {
        assert_eq!(public.check(&bytes(&good, 64)), Ok(()));
    }
    let most = (int(1) << 512u32) - 1u8;
    let bad = [
        int(0),
        square.clone(),
        &square + 1u8,
        most,
        n.clone(),
        p.clone(),
        q.clone(),
        &p * 7u8,
        &square - &q,
        &p * &p,
    ];
    for bad in bad {
        for at in 0..9 {
            let mut some = all.clone();
            some[64 * at..][..64].copy_from_slice(&bytes(&bad, 64));
            assert_eq!(public.check(&some), Err(at), "{bad}");
            // A later invalid one of any kind does not hide it.
            for later in [&p, &square] {
                some[64 * 8..].copy_from_slice(&bytes(later, 64));
                assert_eq!(public.check(&some), Err(at), "{bad}");
            }
        }
    }
    // Multiples of p and of q at two positions.
    let mut some = all.clone();
    some[64..128].copy_from_slice(&bytes(&q, 64));
    some[64 * 5..][..64].copy_from_slice(&bytes(&p, 64));
    assert_eq!(public.check(&some), Err(1));
}

#[test]
fn products_agree_with_the_oracle() {
    for bits in [256, 512, 2048] {
        let key = key(bits);
        let (public, width, n) = (key.public(), bits / 4, big(key.public().n()));
        let mut a = draw(1, 4 * width);
        let mut b = draw(2, 4 * width);
        // Also above N^2.
        a[..width].fill(0xff);
        b[..width].fill(0xff);
        b[width..2 * width].fill(0);
        let product = |(a, b): (&[u8], &[u8])| bytes(&(big(a) * big(b) % (&n * &n)), width);
        let expected: Vec<u8> = zip(a.chunks(width), b.chunks(width)).flat_map(product).collect();
        public.multiply(&mut a, &b);
        assert_eq!(a, expected);
    }
    let messages = [int(3), int(4)];
    let key = key(256);
    let mut sum = encrypted(key.public(), &messages, 1);
    let (sum, by) = sum.split_at_mut(64);
    key.public().multiply(sum, by);
    assert_eq!(decrypted(&key, sum), int(7));
}

#[test]
fn products_of_numbers_agree_with_the_oracle() {
    for bits in [256, 1024] {
        let key = key(bits);
        let (public, width, n) = (key.public(), bits / 8, big(key.public().n()));
        let mut a = draw(1, 5 * width);
        let mut b = draw(2, 5 * width);
        a[..width].fill(0xff);
        b[..width].fill(0xff);
        b[width..2 * width].fill(0);
        a[2 * width..3 * width].copy_from_slice(public.n());
        let product = |(a, b): (&[u8], &[u8])| bytes(&(big(a) * big(b) % &n), width);
        let expected: Vec<u8> = zip(a.chunks(width), b.chunks(width)).flat_map(product).collect();
        public.multiply_numbers(&mut a, &b);
        assert_eq!(a, expected);
    }
}

#[test]
fn combinations_agree_with_the_oracle() {
    for bits in [256, 512, 2048] {
        let key = key(bits);
        let (public, n) = (key.public(), big(key.public().n()));
        let (number, width, random) = (bits / 8, bits / 4, public.randomness());
        let count = if bits == 2048 { 2 } else { 7 };
        let (mut constants, mut weights) = (draw(1, count * number), draw(2, count * number));
        let (mut ciphertexts, randomness) = (draw(3, count * width), draw(4, count * random));
        // The greatest numbers, then, if there are more, 0 and 1.
        constants[..number].fill(0xff);
        weights[..number].fill(0xff);
        ciphertexts[..width].fill(0xff);
        if count > 2 {
            for (at, first) in [(2, 0), (3, 1)] {
                for number in [&mut constants[at * number..][..number], &mut weights[at * number..][..number]]
                {
                    number.fill(0);
                    number[0] = first;
                }
            }
            ciphertexts[3 * width..4 * width].copy_from_slice(&bytes(&int(1), width));
        }
        let mut out = vec![0; count * width];
        public.combine(&constants, &weights, &ciphertexts, &randomness, &mut out);
        for (i, out) in out.chunks(width).enumerate() {
            let [k, w] = [&constants, &weights].map(|all| big(&all[i * number..][..number]));
            let (c, s) =
                (big(&ciphertexts[i * width..][..width]), big(&randomness[i * random..][..random]) % &n);
            let square = &n * &n;
            let expected = (k * &n + 1u8) * c.modpow(&w, &square) * s.modpow(&n, &square) % &square;
            assert_eq!(big(out), expected, "{bits} {i}");
        }
    }
}

#[test]
fn a_combination_has_the_message_that_it_should() {
    let key = key(512);
    let (public, n) = (key.public(), big(key.public().n()));
    let ciphertexts = encrypted(public, &[int(5), &n - 1u8, int(0)], 1);
    let (k, w) = (draw(2, 3 * 64), draw(3, 3 * 64));
    let (mut out, mut messages) = (vec![0; 3 * 128], vec![0; 3 * 64]);
    public.combine(&k, &w, &ciphertexts, &draw(4, 3 * 80), &mut out);
    assert_eq!(public.check(&out), Ok(()));
    key.decrypt(&out, &mut messages);
    for (i, m) in [int(5), &n - 1u8, int(0)].iter().enumerate() {
        let [k, w] = [&k, &w].map(|all| big(&all[64 * i..][..64]));
        assert_eq!(big(&messages[64 * i..][..64]), (k + w * m) % &n);
        assert_eq!(big(&messages[64 * i..][..64]), decrypted(&key, &out[128 * i..][..128]));
    }
}

/// Each byte of the randomness affects the residue, not only the ciphertext as a whole.
#[test]
fn all_randomness_of_a_combination_counts() {
    let key = key(256);
    let (public, [p, q]) = (key.public(), primes(&key));
    let combine = |random: &[u8]| {
        let mut out = vec![0; 64];
        public.combine(&[0; 32], &[0; 32], &bytes(&int(1), 64), random, &mut out);
        [&p, &q].map(|prime| big(&out) % (prime * prime))
    };
    let random = draw(1, public.randomness());
    let one = combine(&random);
    for i in 0..random.len() {
        for bit in [1, 0x80] {
            let mut other = random.clone();
            other[i] ^= bit;
            assert!(zip(&one, combine(&other)).all(|(a, b)| *a != b), "byte {i}");
        }
    }
    // 0 is replaced with 1.
    assert_eq!(combine(&[0; 48]), [int(1), int(1)]);
}

#[test]
fn decryption_agrees_with_the_oracle() {
    for bits in [256, 512, 1024, 2048] {
        let key = key(bits);
        let (n, width) = (big(key.public().n()), bits / 4);
        let messages = [int(0), int(1), &n - 1u8, big(&draw(1, bits / 8)) % &n, primes(&key)[0].clone()];
        let count = if bits == 2048 { 3 } else { 5 };
        let ciphertexts = encrypted(key.public(), &messages[..count], 2);
        let mut out = vec![0; count * bits / 8];
        key.decrypt(&ciphertexts, &mut out);
        for (i, (out, message)) in zip(out.chunks(bits / 8), &messages).enumerate() {
            assert_eq!(big(out), *message, "{bits}");
            assert_eq!(decrypted(&key, &ciphertexts[i * width..][..width]), *message, "{bits}");
        }
    }
}

#[test]
fn what_is_not_a_ciphertext_is_decrypted_to_something() {
    let key = key(256);
    let ([p, q], n, one) = (primes(&key), big(key.public().n()), encrypted(key.public(), &[int(9)], 1));
    let most = (int(1) << 512u32) - 1u8;
    for bad in [int(0), most, n.clone(), p.clone(), q.clone(), &n * &n, &p * &p, &q * &q, &p * &p * &q] {
        let mut out = [0; 32];
        key.decrypt(&bytes(&bad, 64), &mut out);
    }
    // A number above N^2 is equivalent to its value modulo N^2.
    let above = big(&one) + &n * &n;
    if above.bits() <= 512 {
        let mut out = [0; 32];
        key.decrypt(&bytes(&above, 64), &mut out);
        assert_eq!(big(&out), int(9));
    }
}

#[test]
fn encryptions_have_their_messages() {
    // More than a block, and a partial block.
    for (bits, count) in [(256, 37), (512, 16), (1024, 3), (2048, 2)] {
        let key = key(bits);
        let messages: Vec<bool> = (0..count).map(|i| i % 3 == 1).collect();
        let (mut out, mut numbers) = (vec![0; count * bits / 4], vec![0; count * bits / 8]);
        key.encrypt(&messages, &mut stream(1), &mut out);
        assert_eq!(key.public().check(&out), Ok(()));
        key.decrypt(&out, &mut numbers);
        for (i, message) in messages.iter().enumerate() {
            assert_eq!(big(&numbers[i * bits / 8..][..bits / 8]), int((*message).into()));
            if i < 4 {
                assert_eq!(decrypted(&key, &out[i * bits / 4..][..bits / 4]), int((*message).into()));
            }
        }
    }
}

/// h modulo p^2 as documented, with the exponents from `fill`.
#[test]
fn encryptions_agree_with_the_oracle() {
    let key = key(256);
    let (n, mut out) = (big(key.public().n()), vec![0; 3 * 64]);
    let messages = [false, true, true];
    key.encrypt(&messages, &mut stream(7), &mut out);
    let mut fill = stream(7);
    for (out, message) in zip(out.chunks(64), messages) {
        for prime in primes(&key) {
            let order = &prime - 1u8;
            let divisors: Vec<u16> =
                small_primes().iter().map(|l| l.value).filter(|&l| &order % l == int(0)).collect();
            let generates =
                |g: &u32| divisors.iter().all(|&l| int(*g).modpow(&(&order / l), &prime) != int(1));
            let g = (2..).find(generates).unwrap();
            let square = &prime * &prime;
            let h = int(g).modpow(&prime, &square);
            assert_eq!(h.modpow(&order, &square), int(1), "h is an N-th residue");
            let mut exponent = vec![0; 32];
            fill(&mut exponent);
            let residue = h.modpow(&(big(&exponent) % order), &square);
            assert_eq!(big(out) % &square, (&n * u8::from(message) + 1u8) * residue % &square);
        }
    }
}

/// Each drawn byte affects the residue modulo the square of its prime, and only this one.
#[test]
fn all_randomness_of_an_encryption_counts() {
    let key = key(256);
    let squares = primes(&key).map(|prime| &prime * &prime);
    let random = draw(1, key.randomness());
    let encrypt = |random: &[u8]| {
        let (mut out, mut rest) = (vec![0; 64], random);
        key.encrypt(
            &[true],
            &mut |out: &mut [u8]| out.copy_from_slice(rest.split_off(..out.len()).unwrap()),
            &mut out,
        );
        assert!(rest.is_empty(), "all that is drawn is said to be");
        squares.each_ref().map(|square| big(&out) % square)
    };
    let one = encrypt(&random);
    for i in 0..random.len() {
        for bit in [1, 0x80] {
            let mut other = random.clone();
            other[i] ^= bit;
            let changed = encrypt(&other);
            assert_eq!((one[0] != changed[0], one[1] != changed[1]), (i < 32, i >= 32), "byte {i}");
        }
    }
}

#[test]
fn encryptions_of_one_message_differ_modulo_each_square() {
    let key = key(256);
    let mut out = vec![0; 40 * 64];
    for message in [false, true] {
        key.encrypt(&[message; 40], &mut stream(3), &mut out);
        for prime in primes(&key) {
            let mut residues: Vec<BigUint> = out.chunks(64).map(|c| big(c) % (&prime * &prime)).collect();
            residues.sort();
            residues.dedup();
            assert_eq!(residues.len(), 40);
        }
    }
}

#[test]
fn batches_may_be_empty() {
    let key = key(256);
    key.encrypt(&[], &mut |_: &mut [u8]| unreachable!("nothing is drawn"), &mut []);
    key.decrypt(&[], &mut []);
    key.public().multiply(&mut [], &[]);
    key.public().multiply_numbers(&mut [], &[]);
    key.public().combine(&[], &[], &[], &[], &mut []);
}

#[test]
fn slices_of_other_lengths_are_refused() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let key = key(256);
    let public = key.public();
    let refused = |call: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(call)).is_err();
    assert!(refused(&mut || assert_eq!(public.check(&[1; 63]), Ok(()))));
    assert!(refused(&mut || public.multiply(&mut [1; 64], &[1; 128])));
    assert!(refused(&mut || public.multiply(&mut [1; 63], &[1; 63])));
    assert!(refused(&mut || public.multiply_numbers(&mut [1; 32], &[1; 64])));
    assert!(refused(&mut || public.multiply_numbers(&mut [1; 31], &[1; 31])));
    assert!(refused(&mut || key.encrypt(&[true], &mut stream(1), &mut [0; 63])));
    assert!(refused(&mut || key.decrypt(&[1; 64], &mut [0; 31])));
    assert!(refused(&mut || key.decrypt(&[1; 62], &mut [0; 31])));
    let lengths = [32, 32, 64, 48, 64];
    for wrong in 0..5 {
        let mut given = lengths;
        given[wrong] -= 1;
        let [k, w, c, s, out] = given.map(|length| vec![1; length]);
        let mut out = out;
        assert!(refused(&mut || public.combine(&k, &w, &c, &s, &mut out)), "{wrong}");
    }
    assert!(refused(&mut || drop(SecretKey::generate(128, &mut stream(1)))));
    assert!(refused(&mut || drop(SecretKey::generate(320, &mut stream(1)))));
}

#[test]
fn keys_can_be_used_by_several_threads() {
    let key = key(256);
    let encrypt = |seed| {
        let mut out = vec![0; 20 * 64];
        key.encrypt(&[true; 20], &mut stream(seed), &mut out);
        out
    };
    let there: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let encrypt = &encrypt;
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || encrypt(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(there, (0..4).map(encrypt).collect::<Vec<_>>());
}
