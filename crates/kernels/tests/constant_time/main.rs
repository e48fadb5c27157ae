//! Tests whether branches and addresses of the kernels depend on secrets, in the compiled code: `cargo test -p
//! veilset-kernels --release --test constant_time`.
//!
//! * [`memcheck`] marks secrets as undefined and runs every path that valgrind supports under it. It reports each
//!   branch and each address that depends on them. It tracks every bit, so the choice of inputs does not matter.
//! * valgrind supports neither AVX-512 nor VAES and VPCLMULQDQ. For those paths [`trace`] steps through the function
//!   with different secrets and compares every instruction and every address. On the curve's AVX-512 path,
//!   [`disassembly`] looks for instructions that lead from vectors to flags or addresses. Both also check that no
//!   kernel divides, because the time of a division depends on the values.
//! * Multiplication in P-256 ([`FOREIGN`]) is traced too, and so is Paillier's encryption ([`LARGE`]) with `--
//!   --ignored paillier`, which takes minutes. aws-lc computes both. memcheck would report branches on facts that do
//!   not depend on the secret, such as the result being on the curve.
//!
//! Each check is run on a function that leaks, and fails if it does not detect the leak. None measures time;
//! `benches/timing.rs` does.
//!
//! Debug assertions read field elements, so debug builds have none of these tests. `scripts/nightly` runs them.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(debug_assertions)))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod disassembly;
mod memcheck;
mod trace;

use std::hint::black_box;
use std::sync::OnceLock;

use veilset_kernels::paillier::SecretKey;
use veilset_kernels::polynomial::{self, Field};
use veilset_kernels::ristretto255::{self, Element, Table};
use veilset_kernels::{Backend, aes, band, curve25519, gf64, gf128, hash, p256, transpose};

/// Returns whether a path has instructions that valgrind does not support. Such paths are traced.
fn is_unknown_to_valgrind(backend: Backend) -> bool {
    backend.needs_avx512() || [Backend::Clmul256, Backend::Vaes256].contains(&backend)
}

/// A function from a key and data to output of the same length; returns the path that ran.
type Run = fn(Backend, &[u8; 32], &[[u8; 32]], &mut [[u8; 32]]) -> Backend;

/// A kernel whose inputs are secrets.
struct Subject {
    name: &'static str,
    backends: &'static [Backend],
    /// Whether the output depends on the key.
    keyed: bool,
    run: Run,
}

/// The maximum amount of data for a subject, in elements of 32 bytes: more than a batch of the ladder on every path
/// without AVX-512, and a partial vector.
const MOST: usize = 64 * 4 + 3;

const SUBJECTS: [Subject; 15] = [
    Subject { name: "ladder", backends: curve25519::BACKENDS, keyed: true, run: ladder },
    Subject { name: "elligator2", backends: curve25519::BACKENDS, keyed: false, run: elligator2 },
    Subject { name: "P-256 map", backends: &[Backend::Portable], keyed: true, run: p256_map },
    Subject { name: "is_canonical", backends: &[Backend::Portable], keyed: false, run: is_canonical },
    Subject { name: "ristretto255", backends: ristretto255::BACKENDS, keyed: true, run: ristretto255 },
    Subject {
        name: "ristretto255 map",
        backends: ristretto255::BACKENDS,
        keyed: false,
        run: ristretto255_map,
    },
    Subject { name: "aes", backends: aes::BACKENDS, keyed: true, run: aes },
    Subject { name: "gf64", backends: gf64::BACKENDS, keyed: true, run: gf64 },
    Subject { name: "gf128", backends: gf128::BACKENDS, keyed: true, run: gf128 },
    Subject { name: "band", backends: band::BACKENDS, keyed: false, run: band },
    Subject { name: "hash", backends: hash::BACKENDS, keyed: true, run: hash },
    Subject {
        name: "polynomial of 64 bits",
        backends: polynomial::BACKENDS,
        keyed: false,
        run: |backend, _, data, out| polynomial(Field::Bits64, backend, data, out),
    },
    Subject {
        name: "polynomial of 72 bits",
        backends: polynomial::BACKENDS,
        keyed: false,
        run: |backend, _, data, out| polynomial(Field::Bits72, backend, data, out),
    },
    Subject {
        name: "polynomial of 80 bits",
        backends: polynomial::BACKENDS,
        keyed: false,
        run: |backend, _, data, out| polynomial(Field::Bits80, backend, data, out),
    },
    Subject { name: "transpose", backends: transpose::BACKENDS, keyed: false, run: transpose },
];

/// Subjects that are traced on any processor.
const FOREIGN: [Subject; 1] =
    [Subject { name: "P-256 multiply", backends: &[Backend::Portable], keyed: true, run: p256_multiply }];

/// Subjects of millions of instructions, which are traced on any processor by a test that runs only on request.
const LARGE: [Subject; 3] = [
    Subject { name: "Paillier combine", backends: &[Backend::Portable], keyed: true, run: paillier_combine },
    Subject { name: "Paillier encrypt", backends: &[Backend::Portable], keyed: true, run: paillier_encrypt },
    Subject { name: "Paillier decrypt", backends: &[Backend::Portable], keyed: true, run: paillier_decrypt },
];

fn ladder(backend: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    out.copy_from_slice(data);
    curve25519::ladder_with(backend, key, out)
}

fn elligator2(backend: Backend, _: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    curve25519::elligator2_with(backend, data, out)
}

/// The points to which numbers derived from the data and the key map.
fn p256_points(key: &[u8; 32], data: &[[u8; 32]]) -> Vec<p256::Point> {
    let number =
        |data: &[u8; 32]| std::array::from_fn(|i| if i < 32 { data[i] ^ key[31 - i] } else { key[i - 32] });
    let (uniform, mut points): (Vec<[u8; 48]>, _) =
        (data.iter().map(number).collect(), vec![[0; 64]; data.len()]);
    p256::map(&uniform, &mut points);
    points
}

/// The map, and the inverse of a scalar.
fn p256_map(_: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let inverse = p256::inverse(key);
    for (out, point) in out.iter_mut().zip(p256_points(key, data)) {
        *out = std::array::from_fn(|i| point[i] ^ point[63 - i] ^ inverse[i]);
    }
    Backend::Portable
}

/// Multiples, by the key, of the points to which the data map; few enough to step through.
fn p256_multiply(_: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let mut points = p256_points(key, &data[..2.min(data.len())]);
    // Odd and below 2^255: always a scalar, and 1 or 2^255 - 1 for the special keys.
    let mut scalar = *key;
    scalar[0] &= 0x7f;
    scalar[31] |= 1;
    assert_eq!(p256::multiply(&scalar, &mut points), Ok(()));
    out.iter_mut().zip(&points).for_each(|(out, point)| out.copy_from_slice(&point[..32]));
    Backend::Portable
}

/// A key of 512 bits, made before a trace begins.
fn paillier_key() -> &'static SecretKey {
    static KEY: OnceLock<SecretKey> = OnceLock::new();
    KEY.get_or_init(|| {
        let mut seed = 0;
        SecretKey::generate(512, &mut |out: &mut [u8]| {
            let mut bytes = [[0; 32]];
            random(seed, &mut bytes);
            out.copy_from_slice(&bytes[0]);
            seed += 1;
        })
    })
}

/// `N` bytes that repeat the key and the data.
fn paillier_bytes<const N: usize>(key: &[u8; 32], data: &[[u8; 32]]) -> [u8; N] {
    let mut bytes = data.as_flattened().iter().chain(key).cycle();
    std::array::from_fn(|_| bytes.next().map_or(0, |byte| *byte))
}

/// Constant, weight and randomness are secret; so is the ciphertext here. The result is multiplied once more.
fn paillier_combine(_: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let (numbers, mut result) = (paillier_bytes::<336>(key, data), [0; 128]);
    let (constant, rest) = numbers.split_at(64);
    let (weight, rest) = rest.split_at(64);
    let (ciphertext, random) = rest.split_at(128);
    paillier_key().public().combine(constant, weight, ciphertext, random, &mut result);
    paillier_key().public().multiply(&mut result, ciphertext);
    out.iter_mut().zip(result.as_chunks().0).for_each(|(out, result)| *out = *result);
    Backend::Portable
}

/// Messages and randomness are secret.
fn paillier_encrypt(_: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let (mut result, mut used) = ([0; 128 * 5], 0);
    let messages: [bool; 5] = std::array::from_fn(|i| key[i] & 1 == 1);
    let bytes = paillier_bytes::<480>(key, data);
    let mut fill = |random: &mut [u8]| {
        random.copy_from_slice(&bytes[used..][..random.len()]);
        used += random.len();
    };
    paillier_key().encrypt(&messages, &mut fill, &mut result);
    out.iter_mut().zip(result.as_chunks().0).for_each(|(out, result)| *out = *result);
    Backend::Portable
}

/// Ciphertexts, and so messages, are secret, under one key.
fn paillier_decrypt(_: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let mut result = [0; 64];
    paillier_key().decrypt(&paillier_bytes::<128>(key, data), &mut result);
    out.iter_mut().zip(result.as_chunks().0).for_each(|(out, result)| *out = *result);
    Backend::Portable
}

fn is_canonical(_: Backend, _: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    out.copy_from_slice(data);
    for (out, u) in out.iter_mut().zip(data) {
        out[0] = u8::from(curve25519::is_canonical(u));
    }
    Backend::Portable
}

/// Hashing to the group, multiples by one scalar each and of the generator, sums, encoding and comparisons. Decoded
/// elements come from a peer, and their validity is public.
fn ristretto255(backend: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let n = data.len();
    let (mut uniform, mut elements, mut fixed) =
        (vec![[0; 64]; n], vec![Element::IDENTITY; n], vec![Element::IDENTITY; n]);
    for (uniform, data) in uniform.iter_mut().zip(data) {
        *uniform = std::array::from_fn(|i| if i < 32 { data[i] } else { data[i - 32] ^ key[i - 32] });
    }
    let ran = ristretto255::map_with(backend, &uniform, &mut elements);
    assert_eq!(ristretto255::multiply_with(backend, &mut elements, data), ran);
    assert_eq!(Table::generator().multiply_with(backend, data, &mut fixed), ran);
    ristretto255::add(&mut elements, &fixed);
    assert_eq!(ristretto255::encode_with(backend, &elements, out), ran);
    for ((out, element), other) in out.iter_mut().zip(&elements).zip(&fixed) {
        out[0] ^= u8::from(element.equals(other));
    }
    ran
}

/// The single map, and all preimages of its elements, whether they exist or not.
fn ristretto255_map(backend: Backend, _: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let n = data.len();
    let (mut elements, mut preimages) = (vec![Element::IDENTITY; n], vec![[[0; 32]; 8]; n]);
    let ran = ristretto255::map_one_with(backend, data, &mut elements);
    assert_eq!(ristretto255::unmap_with(backend, &elements, &mut preimages), ran);
    for ((out, preimages), data) in out.iter_mut().zip(&preimages).zip(data) {
        *out = *data;
        preimages.iter().for_each(|number| out.iter_mut().zip(number).for_each(|(out, byte)| *out ^= byte));
    }
    ran
}

/// The key schedule, blocks, counter mode, the hash, and blocks whose keys are data.
fn aes(backend: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let cipher = aes::Aes128::new(key.first_chunk().unwrap());
    out.copy_from_slice(data);
    let blocks = out.as_flattened_mut().as_chunks_mut().0;
    assert_eq!(cipher.encrypt_with(backend, blocks), cipher.tcr_hash_with(backend, 7, blocks));
    // Not a whole number of blocks.
    let mut stream = vec![0; 32 * data.len() - 3];
    let ran = cipher.ctr_with(backend, 3, &mut stream);
    let keys = data.as_flattened().as_chunks().0;
    assert_eq!(aes::encrypt_each_with(backend, keys, out.as_flattened_mut().as_chunks_mut().0), ran);
    out.as_flattened_mut().iter_mut().zip(&stream).for_each(|(out, stream)| *out ^= *stream);
    ran
}

/// Multiples by the key, and the sum of products of neighbours.
fn gf128(backend: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let elements = data.as_flattened().as_chunks::<16>().0;
    let sums = out.as_flattened_mut().as_chunks_mut::<16>().0;
    sums.fill([0x35; 16]);
    let ran = gf128::add_multiple_with(backend, key.first_chunk().unwrap(), elements, sums);
    let (also, sum) = gf128::sum_of_products_with(backend, elements, sums);
    assert_eq!(also, ran);
    sums[0] = sum;
    ran
}

/// Multiples by the key, and the sum of products of elements and pairs.
fn gf64(backend: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let sums = out.as_flattened_mut().as_chunks_mut::<16>().0;
    let elements = &data.as_flattened().as_chunks::<8>().0[..sums.len()];
    sums.fill([0x35; 16]);
    let ran = gf64::add_multiple_with(backend, key.first_chunk().unwrap(), elements, sums);
    let (also, sum) = gf64::sum_of_products_with(backend, elements, sums);
    assert_eq!(also, ran);
    sums[0] = sum;
    ran
}

/// Messages of half a block.
fn hash(backend: Backend, key: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let mut messages = [[0; hash::BLOCK]; MOST];
    messages.iter_mut().zip(data).for_each(|(message, data)| message[..32].copy_from_slice(data));
    hash::keyed_hash_with(backend, key, &[32; MOST][..data.len()], &messages[..data.len()], out)
}

/// Sums under rows, both from the data, then a substitution.
fn band(backend: Backend, _: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let (n, mut bits, mut vector) = (data.len(), [0; MOST], [[0; 16]; MOST + band::WIDTH - 1]);
    for ((bits, element), data) in bits.iter_mut().zip(&mut vector).zip(data) {
        (*bits, *element) = (u128::from_le_bytes(*data.first_chunk().unwrap()), *data.last_chunk().unwrap());
    }
    let (bits, vector) = (&bits[..n], &mut vector[..n + band::WIDTH - 1]);
    let starts: [u32; MOST] = std::array::from_fn(|i| i as u32 / 2);
    let (sums, rest) = out.as_flattened_mut().as_chunks_mut::<16>().0.split_at_mut(n);
    let ran = band::select_with(backend, &starts[..n], bits, vector, sums);
    assert_eq!(band::substitute_with(backend, bits, vector), ran);
    rest.copy_from_slice(&vector[..n]);
    ran
}

/// Interpolation and evaluation, with enough coefficients to fill the output with the values, in vectors of which the
/// last is partial. With the special data, which has period 7, all points of an instance are the same; only this fact
/// may become public.
fn polynomial(field: Field, backend: Backend, data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let (instances, points, length) = (7, data.len() / 7, data.len() * 4 / 7);
    let shape = polynomial::Shape { instances, points, free: length - points };
    let numbers = |half: usize, n| -> Vec<u128> {
        let halves = data.iter().map(|data| data.as_chunks().0[half]);
        halves.cycle().take(n).map(u128::from_le_bytes).collect()
    };
    let (q, v) = (numbers(0, instances * points), numbers(1, instances * points));
    let random = numbers(1, instances * shape.free);
    let (mut p, mut values) = (vec![0; instances * length * field.bytes()], vec![0; instances]);
    let (ran, done) = polynomial::interpolate_with(backend, field, &shape, &q, &v, &random, &mut p);
    assert_eq!(polynomial::evaluate_with(backend, field, length, &p, &v[..instances], &mut values), ran);
    let values = values.into_iter().flat_map(|value| value.to_le_bytes().into_iter().take(field.bytes()));
    out.as_flattened_mut().iter_mut().zip(values.chain(p)).for_each(|(out, byte)| *out = byte);
    // Without a branch, which would appear in the trace.
    out[0][0] ^= u8::from(memcheck::declassify(done).is_err());
    ran
}

/// As many rows as the data provide, a multiple of 128.
fn transpose(backend: Backend, _: &[u8; 32], data: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    out.copy_from_slice(data);
    let rows = &mut out.as_flattened_mut().as_chunks_mut().0[..data.len() / 64 * 128];
    let stride = rows.len() / 8;
    transpose::transpose_128_with(backend, data.as_flattened(), stride, rows)
}

/// Different bytes for different seeds (SplitMix64).
fn random(seed: u64, out: &mut [[u8; 32]]) {
    let mut state = seed << 32;
    for word in out.as_flattened_mut().as_chunks_mut::<8>().0 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        *word = (z ^ z >> 31).to_le_bytes();
    }
}

// ---- Leaks that the checks must detect. ----

const LEAKS: [Subject; 2] = [
    Subject { name: "leaking branch", backends: &[Backend::Portable], keyed: true, run: leaking_branch },
    Subject { name: "leaking look-up", backends: &[Backend::Portable], keyed: true, run: leaking_look_up },
];

#[inline(never)]
fn leaking_branch(_: Backend, key: &[u8; 32], _: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    #[inline(never)]
    fn set(out: &mut [[u8; 32]]) {
        black_box(out)[0][0] = 1;
    }
    if black_box(key)[0] & 1 == 1 {
        set(out);
    }
    Backend::Portable
}

#[inline(never)]
fn leaking_look_up(_: Backend, key: &[u8; 32], _: &[[u8; 32]], out: &mut [[u8; 32]]) -> Backend {
    let table = black_box([7u8; 256]);
    out[0][0] = table[usize::from(key[0])];
    Backend::Portable
}
