//! The number of bins is tested against another computation and against simulations, placements against exhaustive
//! search.

use super::*;
use crate::hash::SessionId;
use crate::rng::Prng;

fn functions(name: u64, bins: usize) -> Functions {
    Functions::new(Domain::without_session("cuckoo").numbered(name), bins).unwrap()
}

fn hashes(n: usize) -> Vec<ItemHash> {
    (0..n as u64).map(|i| ItemHash::of_item(&i.to_le_bytes())).collect()
}

/// Bins of random items.
fn random(n: usize, bins: usize, rng: &mut Prng) -> Vec<[u32; CHOICES]> {
    let functions = functions(0, bins);
    let number = |_| u64::from_le_bytes(rng.bytes());
    let numbers: Vec<u64> = (0..(CHOICES + 1) * n).map(number).collect();
    numbers.as_chunks().0.iter().map(|numbers| functions.different(*numbers)).collect()
}

/// The sum with each binomial coefficient computed separately, in logarithms.
fn slow_sum(n: usize, bins: usize, most: usize) -> f64 {
    let choose = |n: usize, k: usize| -> f64 {
        (0..k).map(|i| ((n - i) as f64).ln() - ((i + 1) as f64).ln()).sum::<f64>()
    };
    let term = |k: usize| {
        let inside = choose(k, 3) - choose(bins, 3);
        (choose(n, k + 1) + choose(bins, k) + (k + 1) as f64 * inside).exp()
    };
    // Smallest terms first.
    let mut terms: Vec<f64> = (3..=most.min(bins)).filter(|k| *k < n).map(term).collect();
    terms.sort_by(f64::total_cmp);
    terms.iter().sum()
}

#[test]
fn the_sum_is_that_of_the_formula() {
    for (n, bins, most) in [
        (4, 4, 4),
        (4, 41, 4),
        (5, 5, 5),
        (9, 60, 9),
        (40, 60, 40),
        (100, 160, 100),
        (300, 500, 300),
        (512, 547, 512),
        (512, 850, 512),
        (1000, 1300, 10),
        (1 << 28, 1 << 29, 10),
    ] {
        let (found, expected) = (obstructed(n, bins, most), slow_sum(n, bins, most));
        assert!((found / expected - 1.0).abs() < 1e-9, "{n} {bins} {most}: {found} {expected}");
    }
    // Four items in three bins, and too few items for an obstruction.
    assert!((obstructed(4, 3, 4) - 1.0).abs() < 1e-12);
    assert!([0, 1, 2, 3].iter().all(|&n| obstructed(n, 3, n) == 0.0));
}

/// Small sizes, sizes around the switch between the bounds, and large sizes.
const SIZES: [usize; 19] =
    [0, 1, 2, 3, 4, 5, 6, 8, 20, 60, 180, 300, 511, 512, 513, 700, 1000, 1 << 20, 1 << 28];

#[test]
fn numbers_keep_both_bounds_and_are_the_smallest() {
    for exponent in [4, 40, 44, 60] {
        for n in SIZES {
            let bins = number(exponent, n);
            let e = (f64::from(exponent) + 256.0 + (n.max(1) as f64).log2()) / 240.0;
            let fit = (e * n as f64).max(3.0);
            let sum = |bins| slow_sum(n.min(EXACT), bins, EXACT).max(slow_sum(n, bins, SMALL));
            let limit = (-f64::from(exponent)).exp2();
            assert!(sum(bins) <= limit && bins as f64 >= fit, "{exponent} {n}: {bins}");
            // One bin fewer violates a bound. The fit's logarithm is rounded up.
            let less = bins as f64 - 1.0 < fit * (1.0 + 1e-5) || sum(bins - 1) > limit * (1.0 - 2.0 * MARGIN);
            assert!(bins == CHOICES || less, "{exponent} {n}: {bins}");
        }
    }
}

#[test]
fn numbers_of_the_published_fit() {
    for (n, bins) in [(1 << 10, 1306), (1 << 12, 5257), (1 << 16, 85197), (1 << 20, 1380626)] {
        assert_eq!(number(40, n), bins, "{n}");
    }
    // Three bins hold three items. Among 40 bins, four items have the same three too often: C(40, 3)^-3 > 2^-40.
    assert_eq!([0, 1, 2, 3, 4].map(|n| number(40, n)), [3, 3, 3, 4, 41]);
}

#[test]
fn numbers_grow_with_the_size_and_with_the_exponent() {
    let mut sizes: Vec<usize> = (0..40).chain((40..720).step_by(40)).chain(SIZES).collect();
    sizes.sort_unstable();
    let numbers: Vec<usize> = sizes.iter().map(|&n| number(40, n)).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert!(numbers.iter().zip(&sizes).all(|(bins, n)| bins >= n));
    for n in SIZES {
        assert!([0, 1, 8, 40, 41, 80, 256].map(|exponent| number(exponent, n)).is_sorted(), "{n}");
    }
    // Larger exponents are treated as 256, so that the search terminates.
    assert_eq!(number(u32::MAX, 5), number(256, 5));
}

#[test]
fn logarithms_are_rounded_up() {
    for n in (1..100).chain([1 << 10, (1 << 10) + 1, (1 << 28) - 1, 1 << 28, usize::MAX >> 8]) {
        let (found, exact) = (log2_up(n) as f64 / 1024.0, (n as f64).log2());
        assert!(found >= exact - 1e-12 && found < exact + 1.001 / 1024.0, "{n}: {found} {exact}");
    }
    assert_eq!([0, 1, 2, 4, 1 << 40].map(log2_up), [0, 0, 1024, 2048, 40 << 10]);
}

/// Tested at exponents at which failures can be counted.
#[test]
fn placements_fail_no_more_often_than_the_numbers_promise() {
    let mut rng = Prng::from_seed(&[1; 32]);
    for (exponent, n, runs) in [
        (4, 1, 500),
        (4, 4, 8000),
        (4, 6, 8000),
        (4, 12, 4000),
        (5, 30, 3000),
        (6, 60, 2000),
        (4, 150, 1000),
        (4, 400, 400),
        (4, 600, 300),
        (8, 1200, 200),
    ] {
        let bins = number(exponent, n);
        let fails = (0..runs).filter(|_| placed(&random(n, bins, &mut rng), bins).is_none()).count();
        let (rate, bound) = (fails as f64 / f64::from(runs), (-f64::from(exponent)).exp2());
        // Four standard deviations of the count.
        assert!(rate <= bound + 4.0 * (bound / f64::from(runs)).sqrt(), "{exponent} {n} {bins}: {rate}");
    }
}

/// Tested where the sum is exact, and where it is a tight bound.
#[test]
fn the_sum_is_near_the_rate_of_failures() {
    let mut rng = Prng::from_seed(&[2; 32]);
    let runs = 8000;
    for (n, bins) in [(4, 4), (4, 5), (5, 6), (6, 8)] {
        let fails = (0..runs).filter(|_| placed(&random(n, bins, &mut rng), bins).is_none()).count();
        let (rate, bound) = (fails as f64 / f64::from(runs), obstructed(n, bins, n));
        let deviation = (bound / f64::from(runs)).sqrt();
        assert!(rate <= bound + 4.0 * deviation, "{n} {bins}: {rate} {bound}");
        let least = if n == 4 { bound - 4.0 * deviation } else { bound / 8.0 };
        assert!(rate >= least, "{n} {bins}: {rate} {bound}");
    }
}

fn is_a_placement(table: &CuckooTable, choices: &[[u32; CHOICES]]) {
    let mut found = vec![0; choices.len()];
    for bin in 0..table.bins() {
        if let Some(item) = table.item(bin) {
            assert!(choices[item].contains(&(bin as u32)), "item {item} is in bin {bin}");
            found[item] += 1;
        }
    }
    assert!(found.iter().all(|&times| times == 1), "{found:?}");
}

#[test]
fn every_item_is_in_exactly_one_of_its_bins() {
    for n in [0, 1, 2, 3, 4, 50, 513, 5000] {
        let (functions, hashes) = (functions(1, number(40, n)), hashes(n));
        let table = CuckooTable::new(&functions, &hashes).unwrap();
        assert_eq!(table.bins(), functions.bins());
        is_a_placement(&table, &functions.bins_of(&hashes));
    }
}

/// Whether each item can have its own bin, found by exhaustive search.
fn fits(choices: &[[u32; CHOICES]], taken: &mut Vec<u32>) -> bool {
    let Some((own, others)) = choices.split_first() else { return true };
    own.iter().any(|bin| {
        !taken.contains(bin) && {
            taken.push(*bin);
            let fits = fits(others, taken);
            taken.pop();
            fits
        }
    })
}

#[test]
fn a_placement_is_found_exactly_if_there_is_one() {
    let mut rng = Prng::from_seed(&[3; 32]);
    let mut seen = [0; 2];
    for (n, bins) in [(3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (7, 8), (8, 8), (9, 9)] {
        for _ in 0..300 {
            let choices = random(n, bins, &mut rng);
            let (table, fits) = (placed(&choices, bins), fits(&choices, &mut Vec::new()));
            assert_eq!(table.is_some(), fits, "{choices:?}");
            table.iter().for_each(|table| is_a_placement(table, &choices));
            seen[usize::from(fits)] += 1;
        }
    }
    assert!(seen.iter().all(|&times| times > 100), "{seen:?}");
    // Long paths: 92 of 100 bins.
    let found = (0..100).filter_map(|_| {
        let choices = random(92, 100, &mut rng);
        placed(&choices, 100).inspect(|table| is_a_placement(table, &choices))
    });
    assert!((1..100).contains(&found.count()));
}

#[test]
fn items_without_a_placement_have_none() {
    assert!(placed(&[[0, 1, 2], [2, 0, 1], [1, 2, 0]], 10).is_some());
    assert!(placed(&[[0, 1, 2], [2, 0, 1], [5, 6, 7], [1, 2, 0], [0, 2, 1]], 10).is_none());
    assert!(CuckooTable::new(&functions(1, 3), &hashes(3)).is_some());
    assert!(CuckooTable::new(&functions(1, 3), &hashes(4)).is_none());
    // An item given twice counts as two items; four times is too many.
    assert!(CuckooTable::new(&functions(1, 50), &[hashes(1)[0]; 4]).is_none());
    // Each function is a separate try: four items in four bins.
    let tries = (0..2000).filter(|&name| CuckooTable::new(&functions(name, 4), &hashes(4)).is_none()).count();
    assert!((5..80).contains(&tries), "{tries}");
    for bins in [0, 1, 2, EMPTY as usize] {
        let e = Functions::new(Domain::without_session("cuckoo"), bins).err();
        assert!(matches!(e, Some(Error::Bug(_))), "{bins}");
    }
}

#[test]
fn the_three_bins_are_different_and_all_triples_equally_likely() {
    let (bins, n) = (5, 24_000);
    let mut seen = std::collections::HashMap::new();
    for triple in functions(1, bins).bins_of(&hashes(n)).iter() {
        assert!(triple.iter().all(|bin| (*bin as usize) < bins));
        assert!(triple[0] != triple[1] && triple[1] != triple[2] && triple[0] != triple[2], "{triple:?}");
        *seen.entry(*triple).or_insert(0u32) += 1;
    }
    assert_eq!(seen.len(), 60);
    // With 59 degrees of freedom, a value above 130 has a probability below 1e-6.
    let mean = n as f64 / 60.0;
    let chi2: f64 = seen.values().map(|&c| (f64::from(c) - mean).powi(2) / mean).sum();
    assert!(chi2 < 130.0, "chi-squared {chi2}");
    // With very many bins, each is equally likely too: 187.5 on average, five standard deviations.
    let mut ends = [0; 16];
    functions(1, 1 << 20)
        .bins_of(&hashes(1000))
        .as_flattened()
        .iter()
        .for_each(|bin| ends[*bin as usize % 16] += 1);
    assert!(ends.iter().all(|n| (120..256).contains(n)), "{ends:?}");
}

#[test]
fn bins_follow_from_the_function_and_the_item() {
    let hashes = hashes(BATCH + 3);
    let of = |session: u8| {
        let domain = Domain::new(&SessionId::of([session; 32]), "cuckoo");
        Functions::new(domain, 1 << 20).unwrap().bins_of(&hashes)
    };
    let all = [of(1).to_vec(), of(2).to_vec()].concat();
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 2 * hashes.len());
    // Computed from the definition, and so equal for each item alone.
    let domain = Domain::new(&SessionId::of([1; 32]), "cuckoo");
    for (hash, bins) in hashes.iter().zip(&all) {
        let numbers: [u8; 32] = domain.hash(&[hash]);
        let first = u64::from_le_bytes(*numbers.first_chunk().unwrap());
        assert_eq!(bins[0], (first >> 44) as u32);
    }
}
