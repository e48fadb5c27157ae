use super::*;

/// Pr[Binomial(n, p) = i] for all i, computed throw by throw.
fn binomial(n: usize, p: f64) -> Vec<f64> {
    let mut all = vec![0.0; n + 2];
    all[0] = 1.0;
    for _ in 0..n {
        for i in (0..=n).rev() {
            all[i] = all[i] * (1.0 - p) + if i > 0 { all[i - 1] * p } else { 0.0 };
        }
    }
    all
}

#[test]
fn bounds_are_the_smallest_by_the_exact_distribution() {
    for n in [0usize, 1, 2, 3, 7, 30, 64, 200] {
        for bins in [1usize, 2, 3, 8, 17, 200] {
            let probability = binomial(n, 1.0 / bins as f64);
            // Smallest terms first, to avoid rounding errors.
            let above = |m: usize| bins as f64 * probability[m + 1..].iter().rev().sum::<f64>();
            for exponent in [1, 20, 40, 42] {
                let bound = bound(exponent, n, bins);
                let most = (-f64::from(exponent)).exp2();
                assert!(above(bound) <= most, "{n} {bins} {exponent}: {bound}");
                // Except for the margin.
                let least = most * (1.0 - 2.0 * MARGIN);
                assert!(bound == 0 || above(bound - 1) > least, "{n} {bins} {exponent}: {bound}");
            }
        }
    }
}

/// Tested slightly above the mean against Loader's saddle-point form, which has no long sum.
#[test]
fn rounding_is_within_the_margin_at_the_largest_sizes() {
    let stirling = |x: f64| 1.0 / (12.0 * x) - 1.0 / (360.0 * x * x * x);
    let deviance = |x: f64, mean: f64| {
        let e = (x - mean) / mean;
        mean * ((1.0 + e) * e.ln_1p() - e)
    };
    // The largest set in few bins, and in sets of bins; a large set in sets of three bins.
    for (n, of, bins) in [(1usize << 28, 1usize, 8usize), (1 << 28, 1 << 12, 1 << 20), (1 << 20, 3, 1 << 12)]
    {
        let mean = n * of / bins;
        for i in [mean + 1, mean + mean / 100] {
            let [n, i, rest] = [n, i, n - i].map(|x| x as f64);
            let p = of as f64 / bins as f64;
            let expected = stirling(n)
                - stirling(i)
                - stirling(rest)
                - deviance(i, n * p)
                - deviance(rest, n * (1.0 - p))
                - (2.0 * std::f64::consts::PI * i * rest / n).ln() / 2.0;
            let found = term(n as usize, of, bins, i as usize).value();
            assert!((found - expected).abs() < MARGIN / 4.0, "{n} {of} {bins} {i}: {found} {expected}");
        }
    }
}

#[test]
fn bounds_of_sets_of_bins() {
    for (n, sets, of, bins) in [(60, 3, 4, 12), (60, 4, 4, 13), (9, 1, 5, 5), (100, 2, 3, 5)] {
        let probability = binomial(n, of as f64 / bins as f64);
        let above = |m: usize| sets as f64 * probability[m + 1..].iter().rev().sum::<f64>();
        let bound = bound_of(20, n, sets, of, bins);
        let most = (-20f64).exp2();
        assert!(above(bound) <= most && (bound == 0 || above(bound - 1) > most), "{n} {of} {bins}");
    }
}

/// KRTW19, Table 2: n, beta / n in thousandths, m. All rows agree with equation 2.
#[test]
fn table_2_of_the_paper() {
    for (n, thousandths, m) in [
        (1 << 8, 43, 63),
        (1 << 10, 55, 58),
        (1 << 12, 50, 63),
        (1 << 14, 53, 62),
        (1 << 16, 58, 60),
        (1 << 18, 52, 65),
        (1 << 20, 60, 61),
        (1 << 22, 51, 68),
    ] {
        assert_eq!(bound(40, n, (n * thousandths + 500) / 1000), m, "{n}");
    }
}

/// Approximate cost of a run.
fn cost(bins: &Bins) -> u64 {
    (bins.number * (bins.sender + 1) * (1100 + 72 * (bins.receiver + 1))) as u64
}

#[test]
fn the_best_bins_are_about_the_best_of_all() {
    for (n_r, n_s) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (5, 300), (300, 5), (256, 256), (1000, 70)] {
        let found = Bins::best(40, (n_r, n_s), (255, 4095), cost);
        let all = (1..=n_r.max(n_s).max(1)).map(|number| Bins {
            number,
            receiver: bound(41, n_r, number),
            sender: bound(41, n_s, number),
        });
        let best = all.filter(|b| b.receiver <= 255).min_by_key(cost).unwrap();
        assert!(cost(&found) <= cost(&best) + cost(&best) / 100, "{n_r} {n_s}: {found:?}, {best:?}");
        let alone = Bins {
            number: found.number,
            receiver: bound(41, n_r, found.number),
            sender: bound(41, n_s, found.number),
        };
        assert_eq!(found, alone);
    }
    // Epsilon (bins per item) is about 0.04 to 0.06; the paper's [0.4, 0.6] is too large by a factor of ten.
    for log in [12, 16, 20, 24] {
        let found = Bins::best(40, (1 << log, 1 << log), (255, 4095), cost);
        let epsilon = found.number as f64 / f64::from(1 << log);
        assert!((0.035..0.07).contains(&epsilon), "{log}: {found:?}, {epsilon}");
    }
    // A small set against a large one costs a fraction of two large ones.
    let (large, unequal) = (1 << 24, Bins::best(40, (1 << 24, 100), (255, 4095), cost));
    assert!(cost(&unequal) * 10 < cost(&Bins::best(40, (large, large), (255, 4095), cost)), "{unequal:?}");
    assert!(unequal.receiver <= 255);
}

#[test]
fn of_very_many_bins_each_is_as_likely() {
    let hashes: Vec<ItemHash> = (0..1000u32).map(|i| ItemHash::of_item(&i.to_le_bytes())).collect();
    let bins = 1 << 20;
    let table = SimpleTable::new(&Domain::without_session("bins"), &hashes, bins);
    let mut ends = [0; 16];
    (0..bins).for_each(|bin| ends[bin % 16] += table.bin(bin).len());
    // 62.5 on average: five standard deviations.
    assert!(ends.iter().all(|n| (25..101).contains(n)), "{ends:?}");
}

#[test]
fn every_item_is_in_its_bin() {
    let hashes: Vec<ItemHash> = (0..1000u32).map(|i| ItemHash::of_item(&i.to_le_bytes())).collect();
    let throw = |session: u8, hashes: &[ItemHash], bins| {
        let table =
            SimpleTable::new(&Domain::new(&crate::hash::SessionId::of([session; 32]), "bins"), hashes, bins);
        let loads: Vec<Vec<u32>> = (0..bins).map(|bin| table.bin(bin).to_vec()).collect();
        let mut all: Vec<u32> = loads.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..hashes.len() as u32));
        assert_eq!(table.fullest(1), loads.iter().map(Vec::len).max().unwrap());
        let sets = loads.chunks(7).map(|bins| bins.iter().map(Vec::len).sum::<usize>());
        assert_eq!(table.fullest(7), sets.max().unwrap());
        assert_eq!(table.fullest(bins), hashes.len());
        loads
    };
    for bins in [1, 2, 7, 50, 2000] {
        let loads = throw(1, &hashes, bins);
        // Another function gives other bins. A subset goes to the same bins as within the whole set.
        assert!(bins == 1 || loads != throw(2, &hashes, bins));
        for (part, whole) in throw(1, &hashes[..300], bins).iter().zip(&loads) {
            assert!(part.iter().all(|item| whole.contains(item)));
        }
        throw(1, &[], bins);
    }
    // 50 bins of 20: six standard deviations.
    assert!(throw(1, &hashes, 50).iter().all(|bin| bin.len() < 47));
}
