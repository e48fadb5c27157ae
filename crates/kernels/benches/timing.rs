//! Statistical test of whether the time of the map and of the ladder depends on secrets (Reparaz, Balasch and
//! Verbauwhede, "Dude, is my code constant time?"): `cargo bench -p veilset-kernels --bench timing -- [SECONDS]`.
//!
//! Inputs of two classes, fixed and random, are timed in random order. Welch's t is the number of standard errors by
//! which the means of the classes differ; a value above 4.5 is unlikely to be chance. Too few measurements hide a small
//! difference: t grows with the square root of their number. The tests of constant time (`tests/constant_time`) look at
//! the code instead.

use std::hint::black_box;
use std::time::{Duration, Instant};

use veilset_kernels::{Backend, curve25519};

/// The value of t above which a difference is unlikely to be chance.
const THRESHOLD: f64 = 4.5;

/// Number of measurements whose inputs are made at once.
const BLOCK: usize = 256;

/// Number of points of one measurement: at least a vector of every path.
const POINTS: usize = 8;

#[derive(Clone)]
struct Input {
    scalar: [u8; 32],
    points: [[u8; 32]; POINTS],
}

/// The generator SplitMix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn fill(&mut self, out: &mut [u8; 32]) {
        for bytes in out.as_chunks_mut::<8>().0 {
            *bytes = self.word().to_le_bytes();
        }
    }

    fn input(&mut self) -> Input {
        let mut input = Input { scalar: [0; 32], points: [[0; 32]; POINTS] };
        self.fill(&mut input.scalar);
        input.points.iter_mut().for_each(|p| self.fill(p));
        input
    }
}

/// Times of random and of fixed inputs in nanoseconds.
type Times = [Vec<f64>; 2];

/// Times `f` for this long. `fix` turns a random input into one of the fixed class.
fn measure(time: Duration, fix: impl Fn(&mut Input), mut f: impl FnMut(&mut Input)) -> Times {
    let mut random = Random(1);
    let (mut times, start) = (Times::default(), Instant::now());
    let mut work = random.input();
    while start.elapsed() < time {
        // All inputs are made in advance, contiguous in memory, so that the cache favours neither class.
        let block: Vec<(bool, Input)> = (0..BLOCK)
            .map(|_| {
                let (fixed, mut input) = (random.word() & 1 == 1, random.input());
                if fixed {
                    fix(&mut input);
                }
                (fixed, input)
            })
            .collect();
        for (fixed, input) in &block {
            work.clone_from(input);
            let t = Instant::now();
            f(black_box(&mut work));
            times[usize::from(*fixed)].push(t.elapsed().as_nanos() as f64);
        }
    }
    times
}

/// Computes Welch's t.
fn welch(times: &[&[f64]; 2]) -> f64 {
    let [(m0, e0), (m1, e1)] = times.map(|x| {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n)
    });
    if e0 + e1 == 0.0 { 0.0 } else { (m1 - m0) / (e0 + e1).sqrt() }
}

/// Prints t for all measurements, and without the slowest 1, 10 and 50 %, which include interruptions.
fn report(name: &str, mut times: Times) {
    times.iter_mut().for_each(|x| x.sort_by(f64::total_cmp));
    let mut all = times.concat();
    all.sort_by(f64::total_cmp);
    let mut worst = 0f64;
    print!("{name:48} {:8} {:9.0}", all.len(), all[all.len() / 2]);
    for percent in [100, 99, 90, 50] {
        // The limit is the same for both classes.
        let limit = all[(all.len() * percent / 100).min(all.len() - 1)];
        let t = welch(&times.each_ref().map(|x| &x[..x.partition_point(|x| *x <= limit)]));
        worst = worst.max(t.abs());
        print!(" {t:9.2}");
    }
    println!("  {}", if worst > THRESHOLD { "DIFFERENT" } else { "no difference seen" });
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let time = Duration::from_secs_f64(seconds);
    println!("Welch's t of fixed against random inputs, without the slowest; the threshold is {THRESHOLD}.");
    println!(
        "{:48} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "measured", "median ns", "t, all", "99%", "90%", "50%"
    );

    // 0, 1, p - 1, p, p + 1, all ones, a point of order 8, and a small number.
    let mut points = [[0; 32]; POINTS];
    points[1][0] = 1;
    for (point, low) in points[2..].iter_mut().zip([0xec, 0xed, 0xee]) {
        *point = [0xff; 32];
        (point[0], point[31]) = (low, 0x7f);
    }
    points[5] = [0xff; 32];
    points[6] = [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda,
        0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ];
    points[7][0] = 9;
    let mut out = [[0; 32]; POINTS];

    for backend in curve25519::BACKENDS.iter().copied().filter(|b| b.is_available()) {
        // Exactly one vector, to minimise the time of everything else.
        let n = match backend {
            Backend::Portable => 1,
            Backend::Fma => 4,
            _ => POINTS,
        };
        let mut ladder = |i: &mut Input| {
            curve25519::ladder_with(backend, &i.scalar, &mut i.points[..n]);
        };
        for (name, scalar) in [("all 0", [0; 32]), ("all 1", [0xff; 32])] {
            let times = measure(time, |i| i.scalar = scalar, &mut ladder);
            report(&format!("ladder {backend:?}, bits of the scalar {name}"), times);
        }
        for (name, from) in [("0, 1, p - 1, ...", 0), ("order 8, 9, 0, 1, ...", 6)] {
            let fix = |i: &mut Input| i.points = std::array::from_fn(|k| points[(from + k) % POINTS]);
            report(&format!("ladder {backend:?}, points {name}"), measure(time, fix, &mut ladder));
            let map = |i: &mut Input| {
                curve25519::elligator2_with(backend, &i.points[..n], &mut out[..n]);
            };
            report(&format!("elligator2 {backend:?}, numbers {name}"), measure(time, fix, map));
        }
    }

    // A comparison that stops at the first difference, where fixed inputs are equal to the secret.
    let secret = Random(7).input();
    let times = measure(
        time,
        |i| i.points = secret.points,
        |i| {
            for (a, b) in i.points.iter().zip(&secret.points) {
                black_box(a.iter().zip(b).all(|(a, b)| black_box(a) == black_box(b)));
            }
        },
    );
    report("control: early exit, must be different", times);
}
