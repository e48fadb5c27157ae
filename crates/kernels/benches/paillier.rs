//! Times Paillier's encryption: `cargo bench -p veilset-kernels --bench paillier -- [BITS...]`.

use std::hint::black_box;
use std::time::Instant;

use veilset_kernels::paillier::{PublicKey, SecretKey};

/// Minimum time of one call in milliseconds, over at least three calls and half a second.
fn time(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    let (mut best, mut calls) = (f64::INFINITY, 0);
    while calls < 3 || start.elapsed().as_secs_f64() < 0.5 {
        let t = Instant::now();
        f();
        best = best.min(t.elapsed().as_secs_f64() * 1e3);
        calls += 1;
    }
    best
}

/// Bytes of SplitMix64, for timing only: no real keys may come from them.
fn random(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut state = seed << 32;
    move |out| {
        for byte in out {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = (z ^ z >> 31) as u8;
        }
    }
}

/// Number of ciphertexts per call.
const CELLS: usize = 128;

fn main() {
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|bits| bits.parse().ok()).collect();
    for bits in if asked.is_empty() { vec![1024, 2048, 3072] } else { asked } {
        let show = |what: &str, ms: f64| println!("{bits} {what}: {ms:9.4} ms");
        let (start, keys) = (Instant::now(), 10);
        for i in 0..keys {
            black_box(SecretKey::generate(bits, &mut random(i)));
        }
        show("generate, mean   ", start.elapsed().as_secs_f64() * 1e3 / keys as f64);
        let key = SecretKey::generate(bits, &mut random(1));
        show("public key       ", time(|| drop(black_box(PublicKey::new(key.public().n())))));
        let (public, n, mut fill) = (key.public(), bits / 8, random(2));
        let proof = key.prove(&[7; 32], &mut fill);
        show("prove            ", time(|| drop(black_box(key.prove(&[7; 32], &mut fill)))));
        show("proven           ", time(|| drop(black_box(PublicKey::proven(public.n(), &[7; 32], &proof)))));
        println!("{bits} proof            : {} bytes", proof.len());
        let mut ciphertexts = vec![0; CELLS * public.width()];
        let messages: Vec<bool> = (0..CELLS).map(|i| i % 3 == 0).collect();
        let start = Instant::now();
        key.encrypt(&messages[..1], &mut fill, &mut ciphertexts[..public.width()]);
        show("first encryption ", start.elapsed().as_secs_f64() * 1e3);
        let per = |ms: f64, cells: usize| ms / cells as f64;
        let ms = time(|| key.encrypt(black_box(&messages), &mut fill, &mut ciphertexts));
        show("encrypt          ", per(ms, CELLS));
        show(
            "check            ",
            per(time(|| assert_eq!(public.check(black_box(&ciphertexts)), Ok(()))), CELLS),
        );
        let mut products = ciphertexts.clone();
        show(
            "multiply         ",
            per(time(|| public.multiply(&mut products, black_box(&ciphertexts))), CELLS),
        );
        let cells = 8;
        let (mut numbers, mut randomness) = (vec![0; cells * n], vec![0; cells * public.randomness()]);
        fill(&mut numbers);
        fill(&mut randomness);
        let (ciphertexts, out) =
            (&ciphertexts[..cells * public.width()], &mut products[..cells * public.width()]);
        let ms = time(|| public.combine(&numbers, black_box(&numbers), ciphertexts, &randomness, out));
        show("combine          ", per(ms, cells));
        show("decrypt          ", per(time(|| key.decrypt(black_box(ciphertexts), &mut numbers)), cells));
    }
}
