//! Times every kernel on every path that this processor supports: `cargo bench -p veilset-kernels --bench speed`.

use std::hint::black_box;
use std::time::Instant;

use veilset_kernels::ristretto255::{self, Element, Table};
use veilset_kernels::{Backend, aes, band, curve25519, gf64, gf128, hash, p256, polynomial, transpose};

/// Minimum time of one call in nanoseconds, over at least five calls and 0.2 seconds.
fn time(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    let (mut best, mut calls) = (f64::INFINITY, 0);
    while calls < 5 || start.elapsed().as_secs_f64() < 0.2 {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_secs_f64() * 1e9);
        calls += 1;
    }
    best
}

/// The paths of a kernel that can run here.
fn paths(list: &[Backend]) -> impl Iterator<Item = Backend> + '_ {
    list.iter().copied().filter(|b| b.is_available())
}

fn main() {
    for b in paths(curve25519::BACKENDS) {
        for n in [4, 64, 1024] {
            let r: Vec<[u8; 32]> = (0..n).map(|i| [i as u8; 32]).collect();
            let mut p = r.clone();
            let ns = time(|| {
                curve25519::elligator2_with(b, black_box(&r), &mut p);
            });
            println!("elligator2 {b:?} batch {n:4}: {:8.0} ns/point", ns / n as f64);
            let ns = time(|| {
                curve25519::ladder_with(b, black_box(&[0x5a; 32]), &mut p);
            });
            println!("ladder     {b:?} batch {n:4}: {:8.0} ns/point", ns / n as f64);
        }
    }

    for b in paths(ristretto255::BACKENDS) {
        let n = 256;
        let uniform: Vec<[u8; 64]> = (0..n).map(|i| [i as u8; 64]).collect();
        let scalars: Vec<[u8; 32]> = (0..n).map(|i| [i as u8 / 2; 32]).collect();
        let (mut elements, mut bytes) = (vec![Element::IDENTITY; n], vec![[0; 32]; n]);
        let show = |what: &str, ns: f64| println!("{what} {b:?} batch {n}: {:8.0} ns/element", ns / n as f64);
        let ns = time(|| {
            ristretto255::map_with(b, black_box(&uniform), &mut elements);
        });
        show("ristretto255 map        ", ns);
        let ns = time(|| {
            ristretto255::map_one_with(b, black_box(&scalars), &mut elements);
        });
        show("ristretto255 map one    ", ns);
        let mut preimages = vec![[[0; 32]; 8]; n];
        let ns = time(|| {
            ristretto255::unmap_with(b, black_box(&elements), &mut preimages);
        });
        show("ristretto255 unmap      ", ns);
        let ns = time(|| {
            ristretto255::encode_with(b, black_box(&elements), &mut bytes);
        });
        show("ristretto255 encode     ", ns);
        let ns = time(|| {
            let (_, result) = ristretto255::decode_with(b, black_box(&bytes), &mut elements);
            assert_eq!(result, Ok(()));
        });
        show("ristretto255 decode     ", ns);
        let ns = time(|| {
            ristretto255::multiply_with(b, black_box(&mut elements), &scalars);
        });
        show("ristretto255 multiply   ", ns);
        let ns = time(|| {
            ristretto255::multiply_all_with(b, black_box(&mut elements), &scalars[77]);
        });
        show("ristretto255 by one     ", ns);
        let ns = time(|| {
            Table::generator().multiply_with(b, black_box(&scalars), &mut elements);
        });
        show("ristretto255 fixed base ", ns);
    }

    {
        let n = 256;
        let uniform: Vec<[u8; 48]> = (0..n).map(|i| [i as u8; 48]).collect();
        let mut points = vec![[0; 64]; n];
        let show = |what: &str, ns: f64| println!("{what} batch {n}: {:8.0} ns/point", ns / n as f64);
        show("P-256 map     ", time(|| p256::map(black_box(&uniform), &mut points)));
        let x: Vec<[u8; 32]> = points.iter().filter_map(|point| point.first_chunk().copied()).collect();
        let mut lifted = points.clone();
        show("P-256 lift    ", time(|| assert_eq!(p256::lift(black_box(&x), &mut lifted), Ok(()))));
        show(
            "P-256 multiply",
            time(|| assert_eq!(p256::multiply(black_box(&[0x5a; 32]), &mut points), Ok(()))),
        );
    }

    for b in paths(aes::BACKENDS) {
        let cipher = aes::Aes128::new(&[7; 16]);
        for n in [16, 1024] {
            let mut x = vec![[1; 16]; n];
            let per_block = |ns: f64| ns / n as f64;
            let ns = time(|| {
                cipher.encrypt_with(b, black_box(&mut x));
            });
            println!("aes        {b:?} batch {n:4}: {:8.3} ns/block", per_block(ns));
            let ns = time(|| {
                cipher.ctr_with(b, 0, black_box(x.as_flattened_mut()));
            });
            println!("aes ctr    {b:?} batch {n:4}: {:8.3} ns/block", per_block(ns));
            let ns = time(|| {
                cipher.tcr_hash_with(b, 0, black_box(&mut x));
            });
            println!("aes tcr    {b:?} batch {n:4}: {:8.3} ns/block", per_block(ns));
            let keys = vec![[3; 16]; n];
            let ns = time(|| {
                aes::encrypt_each_with(b, black_box(&keys), &mut x);
            });
            println!("aes each   {b:?} batch {n:4}: {:8.3} ns/block", per_block(ns));
        }
    }

    for b in paths(gf128::BACKENDS) {
        let n = 1024;
        let (x, mut sums) = (vec![[0x35; 16]; n], vec![[0x53; 16]; n]);
        let ns = time(|| {
            gf128::add_multiple_with(b, &[7; 16], black_box(&x), &mut sums);
        });
        println!("gf128 add multiple    {b:?}: {:8.3} ns/element", ns / n as f64);
        let ns = time(|| {
            black_box(gf128::sum_of_products_with(b, black_box(&x), &sums));
        });
        println!("gf128 sum of products {b:?}: {:8.3} ns/element", ns / n as f64);
    }

    for b in paths(gf64::BACKENDS) {
        let n = 1024;
        let (x, mut sums) = (vec![[0x35; 8]; n], vec![[0x53; 16]; n]);
        let ns = time(|| {
            gf64::add_multiple_with(b, &[7; 16], black_box(&x), &mut sums);
        });
        println!("gf64 add multiple     {b:?}: {:8.3} ns/element", ns / n as f64);
        let ns = time(|| {
            black_box(gf64::sum_of_products_with(b, black_box(&x), &sums));
        });
        println!("gf64 sum of products  {b:?}: {:8.3} ns/element", ns / n as f64);
    }

    for b in paths(hash::BACKENDS) {
        let n = 1024;
        let (messages, mut out) = (vec![[0x35; 64]; n], vec![[0; 32]; n]);
        let ns = time(|| {
            hash::keyed_hash_with(b, &[7; 32], &[64; 1024], black_box(&messages), &mut out);
        });
        println!("hash of a block {b:?}: {:8.2} ns", ns / n as f64);
    }

    for b in paths(band::BACKENDS) {
        // One row per element, sorted by start or not, in a vector that fits into the second-level cache and in one
        // that exceeds the third-level cache.
        for n in [1 << 14, 1 << 21] {
            let bits: Vec<u128> =
                (1..=n as u128).map(|i| i.wrapping_mul(u128::MAX / 0x1_2345_6789)).collect();
            let (mut vector, mut sums) = (vec![[0x35; 16]; n + band::WIDTH - 1], vec![[0; 16]; n]);
            for (order, factor) in [("sorted", 1), ("random", 0x9e37_79b1)] {
                let starts: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(factor) % n as u32).collect();
                let ns = time(|| {
                    band::select_with(b, black_box(&starts), &bits, &vector, &mut sums);
                });
                println!("band select {order} {b:?} of {n:7}: {:6.1} ns/row", ns / n as f64);
            }
            let ns = time(|| {
                band::substitute_with(b, black_box(&bits), &mut vector);
            });
            println!("band substitute    {b:?} of {n:7}: {:6.1} ns/row", ns / n as f64);
        }
    }

    // A bin of KRTW19 at 2^20 items: 62 instances of 62 coefficients, with 18 points each.
    for b in paths(polynomial::BACKENDS) {
        for field in polynomial::Field::ALL {
            let shape = polynomial::Shape { instances: 62, points: 18, free: 44 };
            let (instances, length) = (shape.instances, shape.points + shape.free);
            let number = |i: usize| (i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            let points: Vec<u128> = (0..shape.points * instances).map(number).collect();
            let random: Vec<u128> = (0..shape.free * instances).map(number).collect();
            let mut p = vec![0; length * instances * field.bytes()];
            let ns = time(|| {
                let (_, done) = polynomial::interpolate_with(
                    b,
                    field,
                    &shape,
                    black_box(&points),
                    &points,
                    &random,
                    &mut p,
                );
                assert_eq!(done, Ok(()));
            });
            println!("interpolate {b:?} {field:?}: {:8.0} ns/polynomial", ns / instances as f64);
            let mut values = vec![0; instances];
            let ns = time(|| {
                polynomial::evaluate_with(b, field, length, black_box(&p), &points[..instances], &mut values);
            });
            println!("evaluate    {b:?} {field:?}: {:8.0} ns/polynomial", ns / instances as f64);
        }
    }

    for b in paths(transpose::BACKENDS) {
        // A stride that is a power of two puts all columns of a square into one cache set; adding 64 avoids this.
        for (rows, gap) in [(8192, 0), (8192, 64), (1 << 18, 0), (1 << 18, 64)] {
            let stride = rows / 8 + gap;
            let columns = vec![0x35; 128 * stride];
            let mut out = vec![[0; 16]; rows];
            let ns = time(|| {
                transpose::transpose_128_with(b, black_box(&columns), stride, &mut out);
            });
            println!("transpose  {b:?} {rows:6} rows, gap {gap:2}: {:6.2} GB/s", 16.0 * rows as f64 / ns);
        }
    }
}
