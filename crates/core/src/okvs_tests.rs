//! The store is tested against its definition, and the bound on failure against simulations and all cases.

use super::*;
use crate::testing::every_bit_is_random;

fn keys(n: usize, which: u64) -> Vec<ItemHash> {
    (0..n as u64).map(|i| ItemHash::of_item(&[which.to_le_bytes(), i.to_le_bytes()].concat())).collect()
}

fn values(n: usize) -> Vec<Value> {
    keys(n, 99).iter().map(|key| *key.first_chunk().unwrap()).collect()
}

/// A row computed from the definition: from the key and the seed, one block of AES at a time.
fn row(seed: &Seed, key: &ItemHash, size: usize) -> (usize, u128) {
    let keys: [u8; 32] = Domain::without_session("rows of a key-value store").hash(&[seed]);
    let encrypt = |key: &[u8], block: u128| {
        let mut block = [block.to_le_bytes()];
        Aes128::new(key.try_into().unwrap()).encrypt(&mut block);
        u128::from_le_bytes(block[0])
    };
    let half = |i: usize| u128::from_le_bytes(key[16 * i..][..16].try_into().unwrap());
    let state = encrypt(&keys[..16], encrypt(&keys[..16], half(0)) ^ half(1));
    let start = (u128::from(encrypt(&keys[16..], state) as u64) * (size - WIDTH + 1) as u128) >> 64;
    (start as usize, encrypt(&keys[16..], state ^ 1))
}

#[test]
fn every_key_has_its_value_by_the_definition() {
    for n in [0, 1, 2, 3, 40, 87, 88, 512, 513, 3000] {
        let (keys, values) = (keys(n, 1), values(n));
        let encoded = encode(&keys, |i| values[i], &mut Prng::from_seed(&[1; 32])).unwrap();
        assert_eq!(encoded.vector.len(), size(n));
        for (key, value) in keys.iter().zip(&values) {
            let (start, bits) = row(&encoded.seed, key, size(n));
            let window = &encoded.vector[start..start + WIDTH];
            let sum = window.iter().enumerate().fold(0, |sum, (j, element)| {
                sum ^ if bits >> j & 1 == 1 { u128::from_le_bytes(*element) } else { 0 }
            });
            assert_eq!(sum.to_le_bytes(), *value, "{n}");
        }
        // Decoded with newly made rows, and with the keys in another order.
        assert_eq!(*encoded.rows.decode(&encoded.vector).unwrap(), *values);
        let backwards: Vec<ItemHash> = keys.iter().rev().copied().collect();
        let rows = BandRows::new(&encoded.seed, &backwards, size(n)).unwrap();
        assert!(rows.decode(&encoded.vector).unwrap().iter().eq(values.iter().rev()));
    }
}

#[test]
fn decoding_is_linear() {
    let rows = BandRows::new(&[3; 16], &keys(50, 1), 200).unwrap();
    let (a, b) = (values(200), values(400)[200..].to_vec());
    let add = |a: &[Value], b: &[Value]| -> Vec<Value> {
        let sum =
            |(a, b): (&Value, &Value)| (u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b)).to_le_bytes();
        a.iter().zip(b).map(sum).collect()
    };
    let decoded = [&a, &b, &add(&a, &b)].map(|v| rows.decode(v).unwrap());
    assert_eq!(add(&decoded[0], &decoded[1]), *decoded[2]);
}

/// The first bytes of a vector are a vector of the first bytes of the values, independent of the other bytes.
#[test]
fn a_vector_holds_each_byte_of_its_values_by_itself() {
    let (keys, values) = (keys(300, 1), values(300));
    let encoded = encode(&keys, |i| values[i], &mut Prng::from_seed(&[1; 32])).unwrap();
    for bytes in [1, 8, 15] {
        let cut = |value: &Value| std::array::from_fn(|i| if i < bytes { value[i] } else { 0 });
        let vector: Vec<Value> = encoded.vector.iter().map(cut).collect();
        assert_eq!(*encoded.rows.decode(&vector).unwrap(), *values.iter().map(cut).collect::<Vec<_>>());
    }
}

/// A vector of random values is random for any keys: no element is biased, free or not.
#[test]
fn vectors_of_different_keys_look_alike() {
    let rng = Prng::from_seed(&[2; 32]);
    let (n, runs) = (150, 200);
    let size = size(n);
    let mut ones = [(); 2].map(|()| vec![0u32; size]);
    for run in 0..runs {
        for (set, ones) in ones.iter_mut().enumerate() {
            let mut rng = rng.fork(2 * run + set as u64);
            // Random, as are hashes of items that only the encoder knows.
            let values: Vec<Value> = (0..n).map(|_| rng.bytes()).collect();
            let vector =
                encode_in([size, n], |i| keys(n, set as u64)[i], |i| values[i], &mut rng).unwrap().vector;
            for (ones, element) in ones.iter_mut().zip(vector.iter()) {
                *ones += u128::from_le_bytes(*element).count_ones();
            }
        }
    }
    // 128 * 200 bits per element: 80 is a standard deviation, and more than six of them have probability 2e-9.
    let bits = 128 * runs as u32;
    for (at, &count) in ones.iter().flat_map(|ones| ones.iter().enumerate()) {
        assert!(count.abs_diff(bits / 2) < 6 * 80, "element {at}: {count} of {bits}");
    }
}

/// With the same keys, values and seed, the elements that the equations leave free differ.
#[test]
fn free_elements_are_random() {
    let (keys, values) = (keys(100, 1), values(100));
    let size = size(100);
    let rows = BandRows::new(&[1; 16], &keys, size).unwrap();
    let encode = |n| rows.encode(|i| values[i], size, &mut Prng::from_seed(&[n; 32])).unwrap();
    let (a, b) = (encode(1), encode(2));
    let equal = a.iter().zip(b.iter()).filter(|(a, b)| a == b).count();
    // All differ except those to which no free element contributes.
    assert!(equal < 3, "{equal} of {size} elements are equal");
    assert_eq!(*rows.decode(&a).unwrap(), *rows.decode(&b).unwrap());
}

/// Two runs with the same keys and values differ in their seeds and rows.
#[test]
fn seeds_and_rows_are_fresh_in_every_run() {
    let (keys, values) = (keys(100, 1), values(100));
    let [a, b] = [1, 2].map(|seed| encode(&keys, |i| values[i], &mut Prng::from_seed(&[seed; 32])).unwrap());
    assert_ne!(a.seed, b.seed);
    assert_ne!(a.seed, [0; 16]);
    let seeds: Vec<Seed> = (0..200)
        .map(|seed| encode(&keys[..1], |i| values[i], &mut Prng::from_seed(&[seed; 32])).unwrap().seed)
        .collect();
    every_bit_is_random(&seeds, 128);
    assert!(a.rows.bits.iter().all(|row| !b.rows.bits.contains(row)));
    assert_ne!(*a.rows.starts, *b.rows.starts);
    assert!(a.vector.iter().all(|element| !b.vector.contains(element)));
}

/// Two stores of the same keys and values, made consecutively with one generator.
#[test]
fn every_store_has_a_seed_and_free_elements_of_its_own() {
    let (keys, values, mut rng) = (keys(100, 1), values(100), Prng::from_seed(&[1; 32]));
    let seeds = [(); 2].map(|()| encode(&keys, |i| values[i], &mut rng).unwrap().seed);
    assert_ne!(seeds[0], seeds[1]);
    let size = size(100);
    let rows = BandRows::new(&[1; 16], &keys, size).unwrap();
    let [a, b] = [(); 2].map(|()| rows.encode(|i| values[i], size, &mut rng).unwrap());
    let equal = a.iter().zip(b.iter()).filter(|(a, b)| a == b).count();
    // All differ except those to which no free element contributes.
    assert!(equal < 3, "{equal} of {size} elements are equal");
}

#[test]
fn what_fails_is_tried_again_under_another_seed() {
    // 128 rows of 128 bits in a vector of 128 elements: solvable with probability 0.29.
    let (keys, values) = (keys(WIDTH, 1), values(WIDTH));
    let mut tries = Vec::new();
    for seed in 0..20 {
        let mut rng = Prng::from_seed(&[seed; 32]);
        match encode_in([WIDTH, WIDTH], |i| keys[i], |i| values[i], &mut rng) {
            Ok(encoded) => {
                assert_eq!(*encoded.rows.decode(&encoded.vector).unwrap(), *values);
                let mut seeds = Prng::from_seed(&[seed; 32]);
                tries.push((0..TRIES).position(|_| seeds.bytes() == encoded.seed).unwrap());
            }
            Err(e) => assert!(matches!(e, Error::Bug(_)), "{e}"),
        }
    }
    assert!(tries.contains(&0) && tries.iter().any(|&n| n > 0), "{tries:?}");
    // Equal keys always fail. So do vectors that are shorter than a row, or than the rows were made for.
    let equal = [ItemHash::of_item(b"a"); 2];
    let e = encode(&equal, |i| [i as u8; 16], &mut Prng::from_seed(&[1; 32])).err().unwrap();
    assert!(e.to_string().contains("distinct"), "{e}");
    assert!(BandRows::new(&[0; 16], &keys, WIDTH - 1).is_err());
    assert!(BandRows::new(&[0; 16], &keys, WIDTH).unwrap().decode(&values[1..]).is_err());
}

/// All starts and all bits of up to three rows.
#[test]
fn the_bound_holds_in_all_cases_of_small_matrices() {
    for (n, size, width) in [(1, 3, 2), (2, 4, 3), (2, 6, 2), (3, 5, 3), (3, 7, 2)] {
        let rows: Vec<(u32, u128, Value)> = (0..=(size - width) as u32)
            .flat_map(|start| (0..1 << width).map(move |bits| (start, bits, [0; 16])))
            .collect();
        let all = rows.len().pow(n);
        let fails = (0..all)
            .filter(|&i| {
                let mut chosen: Vec<_> = (0..n).map(|j| rows[i / rows.len().pow(j) % rows.len()]).collect();
                chosen.sort_by_key(|row| row.0);
                eliminate(chosen.into_iter(), size).is_none()
            })
            .count();
        let (exact, bound) = (fails as f64 / all as f64, failure(n as usize, size, width));
        assert!(exact <= bound, "{n} {size} {width}: {exact} {bound}");
    }
}

/// Tested at widths at which failures can be counted, where the bound is neither trivial nor loose.
#[test]
fn the_bound_holds_in_simulations_and_is_near() {
    let mut rng = Prng::from_seed(&[4; 32]);
    for (n, width, runs) in [(60, 12, 4000), (300, 16, 1500), (2000, 24, 150)] {
        // The smallest size at which the bound is at most 20%.
        let size = (n..).find(|&size| failure(n, size, width) <= 0.2).unwrap();
        let fails = (0..runs)
            .filter(|_| {
                let mut rows: Vec<(u32, u128, Value)> = (0..n)
                    .map(|_| {
                        let start = rng.below((size - width + 1) as u64) as u32;
                        (start, u128::from_le_bytes(rng.bytes()) & ((1 << width) - 1), [0; 16])
                    })
                    .collect();
                rows.sort_by_key(|row| row.0);
                eliminate(rows.into_iter(), size).is_none()
            })
            .count();
        let (rate, bound) = (fails as f64 / f64::from(runs), failure(n, size, width));
        // Four standard deviations of the count.
        assert!(rate <= bound + 4.0 * (bound / f64::from(runs)).sqrt(), "{n} {size} {width}: {rate} {bound}");
        assert!(rate > bound / 300.0, "{n} {size} {width}: {rate} {bound}");
    }
}

/// Blocks of lengths compared with each length separately, with the best z found by search.
#[test]
fn the_bound_is_that_of_the_formula() {
    for (n, size) in [(300, 500), (1000, 1400), (3000, 3900)] {
        let mut total = 0.0;
        for l in WIDTH..=size {
            let p = (l - WIDTH + 1) as f64 / (size - WIDTH + 1) as f64;
            let at = |z: f64| n as f64 * (1.0 + p * (z - 1.0)).ln() - l as f64 * z.ln();
            let best = (0..=1000).map(|i| at(1.0 + f64::from(i) / 1000.0)).fold(0.0, f64::min);
            total += (size - l + 1) as f64 * best.exp();
        }
        let bound = failure(n, size, WIDTH);
        assert!((0.98..2.0).contains(&(bound / total)), "{n} {size}: {bound} {total}");
    }
}

#[test]
fn sizes_keep_the_bound_and_are_as_small() {
    for n in [0, 1, 2, 87, 88, 90, 1000, 1 << 14, 1 << 20, 1 << 24, 1 << 28] {
        let size = size(n);
        let exponent = failure(n, size, WIDTH).log2();
        assert!(exponent <= -40.0, "{n}: {size}, 2^{exponent}");
        assert!(size == WIDTH || failure(n, size - size / 200 - 1, WIDTH).log2() > -40.0, "{n}: {size}");
    }
    assert_eq!([0, 1, 2, 87].map(size), [WIDTH; 4]);
    let per_key = size(1 << 20) as f64 / f64::from(1 << 20);
    assert!((1.15..1.25).contains(&per_key), "{per_key}");
}
