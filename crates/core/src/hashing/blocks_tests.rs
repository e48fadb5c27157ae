//! Sizes are tested against their bounds, each computed in another way, and against simulations.

use super::*;
use crate::hash::{Domain, ItemHash};
use crate::hashing::cuckoo::{CuckooTable, Functions};

/// Cost in bytes, approximately as the union that uses these tables computes it.
fn cost(blocks: &Blocks) -> u64 {
    (blocks.all_bins() * (26 + 11 * (2 * blocks.levels as usize - 1) / 2) + 50 * blocks.all_items()) as u64
}

fn best(n: usize) -> Blocks {
    Blocks::best(40, n, cost)
}

/// ln of Pr[Binomial(n, 1 / blocks) > most], by Chernoff's bound.
fn chernoff(n: usize, blocks: usize, most: usize) -> f64 {
    let (p, q) = (1.0 / blocks as f64, (most + 1) as f64 / n as f64);
    match q {
        q if q <= p => 0.0,
        q if q > 1.0 => f64::NEG_INFINITY,
        q => {
            -(n as f64)
                * (q * (q / p).ln() + if q < 1.0 { (1.0 - q) * ((1.0 - q) / (1.0 - p)).ln() } else { 0.0 })
        }
    }
}

/// ln of C(n, k).
fn ln_choose(n: usize, k: usize) -> f64 {
    (0..k).map(|i| ((n - i) as f64).ln() - ((i + 1) as f64).ln()).sum()
}

/// The expected number of obstructions of 3 to 10 bins: k + 1 items of one block with all their bins among k.
fn few(n: usize, blocks: &Blocks) -> f64 {
    let bins = blocks.bins();
    let term = |k: usize| {
        let inside = ln_choose(k, 3) - ln_choose(bins, 3);
        let in_one_block = k as f64 * (blocks.number as f64).ln();
        (ln_choose(n, k + 1) - in_one_block + ln_choose(bins, k) + (k + 1) as f64 * inside).exp()
    };
    (3..=10).filter(|k| *k < n).map(term).sum()
}

#[test]
fn all_bounds_are_kept_at_all_sizes() {
    let limit = (-42f64).exp2();
    for n in
        [0, 1, 2, 3, 10, 100, 511, 513, 1000, 5000, 1 << 14, 100_000, 1 << 20, 3_000_000, 1 << 24, 1 << 28]
    {
        let blocks = best(n);
        assert!(few(n, &blocks) <= limit, "{n}: {blocks:?}");
        assert!(blocks.items >= 1 && blocks.bins() >= CHOICES);
        if blocks.number == 1 {
            assert!(blocks.items == n.max(1) && blocks.bins() >= number(42, n), "{n}: {blocks:?}");
            continue;
        }
        // The fit for the items of a full block.
        let exponent = 42.0 + (blocks.number as f64).log2();
        let items = blocks.items as f64;
        assert!(items >= 512.0 && items * (exponent + 256.0 + items.log2()) <= 240.0 * blocks.bins() as f64);
        // Chernoff's bound is weaker than the exact tail, here by less than 2^5.
        let overflow = (chernoff(n, blocks.number, blocks.items) + (blocks.number as f64).ln()).exp();
        assert!(overflow <= limit * 32.0, "{n}: {blocks:?} {overflow}");
    }
}

/// The example of the design, where 394 blocks add nine bits to the exponent, and tables that its condition on few
/// items rejects.
#[test]
fn sizes_of_the_design() {
    let of = |n, levels| Blocks::several(42, n, levels);
    let example = of(1 << 20, 12).unwrap();
    assert_eq!((example.number, example.items), (394, 3085));
    assert_eq!((example.all_bins(), example.all_items()), (1_613_824, 1_215_490));
    assert!(of(1 << 17, 10).is_some() && of(1 << 18, 10).is_none());
    assert!(of(1 << 22, 11).is_some() && of(1 << 24, 11).is_none());
    assert!(of(1 << 26, 12).is_some());
}

/// One block fewer, or one more item in each, violates a bound.
#[test]
fn there_are_as_few_blocks_as_the_bounds_allow() {
    for (n, levels) in [(20_000, 10), (1 << 20, 12), (1 << 22, 14)] {
        let blocks = Blocks::several(42, n, levels).unwrap();
        let fits = |number: usize, items| fit(42 + ceil_log2(number), items) <= 1 << levels;
        assert!(fits(blocks.number, blocks.items) && !fits(blocks.number, blocks.items + 1));
        assert!(bound(42, n, blocks.number) <= blocks.items);
        let less = blocks.number - 1;
        assert!(!fits(less, bound(42, n, less)));
    }
}

/// At a small exponent failures can be counted, and their number is within the bound. Blocks have the fewest bins.
#[test]
fn placements_fail_no_more_often_than_promised() {
    let (n, exponent, runs) = (6000, 3, 60);
    let blocks = Blocks::several(exponent, n, 10).unwrap();
    let hashes: Vec<ItemHash> = (0..n as u64).map(|i| ItemHash::of_item(&i.to_le_bytes())).collect();
    let failures = (0..runs).filter(|&run| {
        let domain = Domain::without_session("blocks").numbered(run);
        let functions = Functions::in_blocks(domain, blocks.number, blocks.bins()).unwrap();
        let Some(table) = CuckooTable::new(&functions, &hashes) else { return true };
        let full = |block: usize| {
            let bins = block * blocks.bins()..(block + 1) * blocks.bins();
            bins.filter(|&bin| table.item(bin).is_some()).count()
        };
        (0..blocks.number).any(|block| full(block) > blocks.items)
    });
    // At most 22 are expected, from three kinds of failure at 2^-3 each; the limit is six standard deviations higher.
    assert!(failures.count() <= 45);
}

/// An item's bins are three different bins of one block, and blocks are equally full.
#[test]
fn items_spread_over_blocks_and_bins() {
    let (blocks, bins, n) = (50, 16, 20_000);
    let domain = Domain::without_session("blocks");
    let functions = Functions::in_blocks(domain, blocks, bins).unwrap();
    assert_eq!(functions.bins(), 800);
    let hashes: Vec<ItemHash> = (0..n as u64).map(|i| ItemHash::of_item(&i.to_le_bytes())).collect();
    let mut in_block = vec![0; blocks];
    let mut in_bin = vec![0; blocks * bins];
    for own in functions.bins_of(&hashes).iter() {
        let [block, others @ ..] = own.map(|bin| bin as usize / bins);
        assert!(others == [block; 2] && own[0] != own[1] && own[1] != own[2] && own[0] != own[2]);
        in_block[block] += 1;
        own.iter().for_each(|&bin| in_bin[bin as usize] += 1);
    }
    // Seven standard deviations.
    assert!(in_block.iter().all(|&count: &i32| (count - 400).abs() <= 140), "{in_block:?}");
    assert!(in_bin.iter().all(|&count: &i32| (count - 75).abs() <= 61), "{in_bin:?}");
    for (blocks, bins) in [(0, 16), (1, 2), (1 << 20, 1 << 13)] {
        assert!(Functions::in_blocks(Domain::without_session("blocks"), blocks, bins).is_err());
    }
}

/// The fit of the number of bins holds from [`EXACT`] items on. With 2^10 bins, the minimum, it allows 780 or more, so
/// no table with a small enough failure probability has blocks of fewer items; the condition in `several` guards
/// against smaller blocks in the future.
#[test]
fn no_block_is_for_fewer_items_than_the_fit_holds_for() {
    let mut found = 0;
    for levels in LEVELS {
        for n in (1..60).map(|step| 40 * step).chain([1 << 14, 1 << 18]) {
            if let Some(blocks) = Blocks::several(42, n, levels) {
                assert!(blocks.items >= EXACT && blocks.all_items() >= n, "{n}: {blocks:?}");
                found += 1;
            }
        }
    }
    assert!(found > 10, "{found}");
}
