//! Compares the bits with plain membership; checks that everything that hides a value is random, fresh and in a secret order.

use super::observed_tests::{Off, Parts, Run, functions_of, in_blocks, real, s_of_two, sets, tossed};
use super::*;
use crate::error::Fault;
use crate::hash::SessionId;
use crate::hashing::blocks::Blocks;
use crate::hashing::bound;
use crate::params::share;
use crate::testing::{Views, every_bit_is_random, parts, run_pair, sizes, with_frames};
use crate::vole::Ideal;
use std::collections::{HashMap, HashSet};

pub(super) const SESSION: SessionId = SessionId::of([8; 32]);

pub(super) fn items(from: usize, n: usize) -> Vec<Input> {
    (from..from + n).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

fn run(plan: Plan, y: &[Input], x: &[Input], real: usize) -> (Secrets<bool>, Secrets<u32>, Views) {
    let tests = Osn::new(plan);
    let ((bits, order), views) =
        run_pair(&SESSION, |cx| tests.receiver(cx, y), |cx| tests.sender(cx, x, real));
    assert_eq!([bits.len(), order.len()], [plan.slots(); 2]);
    (bits, order, views)
}

/// One bit per item of X, in order. Also checks the contents of the slots.
fn by_item(bits: &[bool], order: &[u32], n_x: usize) -> Vec<bool> {
    let mut by_item = vec![None; n_x];
    for (&item, &bit) in order.iter().zip(bits) {
        match item {
            BOTTOM => assert!(bit, "the bottom item is in every bin"),
            item => assert!(by_item[item as usize].replace(bit).is_none()),
        }
    }
    by_item.into_iter().map(Option::unwrap).collect()
}

#[test]
fn the_bits_are_those_of_the_plain_computation() {
    let others = vec![(57, 33), (57, 33), (2, 1), (255, 256), (900, 3), (3, 5000)];
    for (i, (n_y, n_x)) in [sizes(40), others].concat().into_iter().enumerate() {
        // All or some items in common.
        let common = n_y.min(n_x) / (1 + i % 2);
        let (y, x) = sets(n_y, n_x, common);
        let (bits, order, _) = run(Plan::new(40, n_y, n_x, 20), &y, &x, n_x);
        let bits = by_item(&bits, &order, n_x);
        assert!(bits.iter().enumerate().all(|(i, bit)| *bit == (i < common)), "{n_y} {n_x} {common}");
    }
}

/// Several blocks, and values of nine bytes.
#[test]
fn many_blocks_and_long_values() {
    let (n_y, n_x, common) = (3000, 4000, 1700);
    let (y, x) = sets(n_y, n_x, common);
    let plan = in_blocks(n_y, n_x, 12);
    for plan in [plan, Plan { bytes: 9, ..plan }] {
        let run = Run::new(real(), plan, (&y, &x), [1, 2]);
        let bits = by_item(&run.bits, &run.order, n_x);
        assert!(bits.iter().enumerate().all(|(i, bit)| *bit == (i < common)));
    }
}

/// Dummies of the sender take bins like items, but count as the bottom item, even if the receiver has their hashes.
#[test]
fn dummies_count_as_the_bottom_item_and_do_not_show() {
    let (y, x) = (items(0, 40), items(30, 20));
    let mut lengths = HashSet::new();
    for real in [0, 5, 20] {
        let (bits, order, views) = run(Plan::new(40, 40, 20, 20), &y, &x, real);
        for (&item, &bit) in order.iter().zip(bits.iter()) {
            assert_eq!(bit, item as usize >= real || item < 10, "{item}");
        }
        assert_eq!(order.iter().filter(|&&item| item != BOTTOM).count(), 20);
        lengths.insert([views.frames(0), views.frames(1)]);
    }
    assert_eq!(lengths.len(), 1);
}

#[test]
fn queries_are_those_of_items_or_of_the_bottom_item() {
    let x = items(0, 30);
    let functions = Functions::new(Domain::without_session("test"), 64).unwrap();
    let table = CuckooTable::new(&functions, &x).unwrap();
    for (bin, of_bin) in queries(&table, &x, 20).iter().enumerate() {
        let expected = table.item(bin).filter(|&item| item < 20).map_or(bottom(), |item| query(&x[item]));
        assert_eq!(*of_bin, expected);
    }
    assert!(x.iter().all(|item| query(item) != bottom()));
}

/// In worlds in which all, none or some items match, and in several runs: w is s where the bin matches and random elsewhere; s,
/// w, B and z are random, and no two of them are equal unless they must be.
#[test]
fn values_are_fresh_in_every_bin_and_every_run() {
    let (n, number) = (1200, 3);
    let mut all = HashSet::new();
    let mut count = 0;
    for (run, common) in [0, n / 3, n, n].into_iter().enumerate() {
        let (y, x) = sets(n, n, common);
        let run = Run::new(real(), in_blocks(n, n, number), (&y, &x), [1 + run as u8, 10 + run as u8]);
        let bytes = run.plan.bytes;
        let cut = |value: &Value| run.plan.cut(value);
        let s: Vec<Value> = run.s().iter().map(cut).collect();
        let known: HashMap<Query, usize> = y.iter().enumerate().map(|(i, y)| (query(y), i)).collect();
        let mut others = Vec::new();
        for (bin, (w, of_bin)) in run.seen.w.iter().zip(&run.seen.queries).enumerate() {
            let matches = *of_bin == bottom() || known.contains_key(of_bin);
            assert_eq!(cut(w) == s[bin], matches, "{bin}");
            others.extend((!matches).then_some(cut(w)));
        }
        // z is B exactly where the bit is 1.
        let Run { seen, bits, .. } = &run;
        for (i, bit) in bits.iter().enumerate() {
            assert_eq!(seen.z[i] == seen.b[i], *bit);
            others.extend((!bit).then_some(seen.z[i]));
        }
        assert_eq!(others.len(), 2 * (n - common));
        for list in [&s, &seen.b, &seen.z] {
            every_bit_is_random(list, 8 * bytes);
        }
        if common < n {
            every_bit_is_random(&others, 8 * bytes);
        }
        for value in s.iter().chain(&seen.b).chain(&others) {
            all.insert(*value);
            count += 1;
        }
    }
    assert_eq!(all.len(), count, "values that are equal");
}

/// The messages to each party are random, and different in another run on the same sets.
#[test]
fn messages_are_random_and_others_in_every_run() {
    let (y, x) = sets(1500, 1500, 700);
    let plan = in_blocks(1500, 1500, 4);
    let both = [1, 2].map(|seed| Run::new(real(), plan, (&y, &x), [seed, 10 + seed]));
    // Queries of both OPRFs, the hint, differences of switches, tags.
    let of_values = [(1, 0xc2), (1, 0xe8), (0, 0xad)].map(|(party, tag)| (party, tag, plan.bytes));
    for (party, tag, size) in [(0, 0xc0, 16), (1, 0xc0, 16)].into_iter().chain(of_values) {
        let [first, second] = [0, 1].map(|i: usize| parts(&both[i].views.0[party], tag, size));
        assert!(first.len() == second.len() && first.len() >= plan.slots());
        every_bit_is_random(&first, 8 * size);
        let distinct: HashSet<_> = first.iter().chain(&second).collect();
        assert_eq!(distinct.len(), first.len() + second.len(), "{tag:#x}");
    }
    // No tag is a B or a z in the clear.
    let tags = parts(&both[0].views.0[0], 0xad, plan.bytes);
    let known: HashSet<&[u8]> =
        both[0].seen.b.iter().chain(&both[0].seen.z).map(|v| &v[..plan.bytes]).collect();
    assert!(tags.iter().all(|tag| !known.contains(&tag[..])));
}

/// The lengths of frames do not depend on the matches.
#[test]
fn lengths_follow_from_the_sizes() {
    let mut lengths = HashSet::new();
    for common in [0, 100, 300] {
        let (y, x) = sets(300, 300, common);
        let (_, _, views) = run(Plan::new(40, 300, 300, 20), &y, &x, 300);
        lengths.insert([views.frames(0), views.frames(1)]);
    }
    assert_eq!(lengths.len(), 1);
}

/// All full bins and random empty ones are picked, and each is at a random one of the first `items` places.
#[test]
fn bins_are_picked_at_random_and_stand_in_random_order() {
    let (bins, items, runs) = (16, 10, 6000);
    let full: Vec<bool> = (0..bins).map(|bin| bin % 4 == 1).collect();
    let mut rng = Prng::from_seed(&[1; 32]);
    let (mut at, mut followed) = (vec![vec![0; bins]; bins], vec![vec![0; bins]; bins]);
    for _ in 0..runs {
        let order = picked(&full, items, &mut rng);
        let distinct: HashSet<u32> = order.iter().copied().collect();
        assert!(distinct.len() == bins && order.len() == bins);
        assert_eq!(order[..items].iter().filter(|&&bin| full[bin as usize]).count(), 4);
        order[..items].iter().enumerate().for_each(|(place, &bin)| at[bin as usize][place] += 1);
        order[..items].windows(2).for_each(|w| followed[w[0] as usize][w[1] as usize] += 1);
    }
    for bin in 0..bins {
        // A full bin is always picked, an empty one in half of the runs.
        let expected = if full[bin] { runs / items } else { runs / 2 / items };
        let near =
            |count: i32, expected: i32| (count - expected).abs() <= 7 * f64::from(expected).sqrt() as i32;
        let expected = expected as i32;
        assert!(at[bin][..items].iter().all(|&count| near(count, expected)), "{bin}: {:?}", at[bin]);
        // Any other bin may follow.
        for other in (0..bins).filter(|other| *other != bin) {
            let both = match (full[bin], full[other]) {
                (true, true) => 600,
                // 6 of 12 empty bins are picked; any two of them are both picked in 5/22 of all runs.
                (false, false) => 600 * 5 / 22,
                _ => 300,
            };
            assert!(near(followed[bin][other], both), "{bin} {other}: {}", followed[bin][other]);
        }
    }
}

/// The order of the slots differs in each run on the same sets, and is neither that of the bins nor that of the items.
#[test]
fn the_order_of_slots_is_fresh() {
    let (y, x) = sets(1200, 1200, 600);
    let plan = in_blocks(1200, 1200, 3);
    // R has the same generator in both runs; S draws its share of the coin toss, and then the order, with another one.
    let first = Run::new(real(), plan, (&y, &x), [1, 2]);
    let again = Run::new(real(), plan, (&y, &x), [1, 3]);
    let place_in_block = |run: &Run| -> Vec<usize> {
        let items = run.plan.blocks.items;
        let mut places = vec![0; x.len()];
        for (place, &item) in run.order.iter().enumerate().filter(|(_, item)| **item != BOTTOM) {
            places[item as usize] = place % items;
        }
        places
    };
    let (a, b) = (place_in_block(&first), place_in_block(&again));
    let same = a.iter().zip(&b).filter(|(a, b)| a == b).count();
    assert!(same <= 12, "{same}");
    // In no block is it the order of the bins, or of the items.
    let sorted = |run: &Run, by: &dyn Fn(u32) -> u32| -> bool {
        run.blocks().any(|(_, slots)| {
            let contents: Vec<u32> =
                run.order[slots].iter().filter(|i| **i != BOTTOM).map(|i| by(*i)).collect();
            contents.is_sorted()
        })
    };
    let table = CuckooTable::new(&functions_of(&first), &x).unwrap();
    let bin_of: HashMap<u32, u32> =
        (0..table.bins()).filter_map(|b| Some((table.item(b)? as u32, b as u32))).collect();
    assert!(!sorted(&first, &|item| item) && !sorted(&first, &|item| bin_of[&item]));
}

/// Two successive runs with one generator have no s in common.
#[test]
fn runs_with_one_generator_share_no_s() {
    let (y, x) = sets(600, 600, 300);
    let [first, second] = s_of_two(in_blocks(600, 600, 2), (&y, &x));
    let all: HashSet<_> = first.iter().chain(&second).collect();
    assert_eq!(all.len(), first.len() + second.len());
}

/// Both parties place items with the function from the coin toss of this run.
#[test]
fn bins_follow_from_the_coin_toss() {
    let (y, x) = sets(300, 300, 100);
    let plan = in_blocks(300, 300, 2);
    let run = Run::new(real(), plan, (&y, &x), [1, 2]);
    let functions = Functions::in_blocks(tossed(&run), 2, plan.blocks.bins()).unwrap();
    let expected = Threefold::new(&functions, &y);
    for (i, (point, _)) in run.seen.programmed[..expected.count()].iter().enumerate() {
        let expected = expected.point(i);
        assert_eq!((point.bin, point.query), (expected.bin, expected.query));
    }
    let of_x = functions.bins_of(&x);
    for (bins, item) in of_x.iter().zip(&x) {
        assert!(bins.iter().any(|bin| run.seen.queries[*bin as usize] == query(item)));
    }
}

/// Two blocks with the same full bins have different orders, as do two runs with the same table.
#[test]
fn blocks_and_runs_have_orders_of_their_own() {
    let plan = Plan { blocks: Blocks { number: 2, levels: 6, items: 40 }, n_y: 1, bytes: 8 };
    let functions = plan.functions(Domain::without_session("test")).unwrap();
    let table = CuckooTable::new(&functions, &[]).unwrap();
    let pick = |seed| {
        let picked = plan.pick(&plan.network().unwrap(), &table, &mut Prng::from_seed(&[seed; 32]));
        picked.unwrap().from
    };
    assert_ne!(*pick(1), *pick(2));
    // Nor does one generator give the same order twice.
    let mut rng = Prng::from_seed(&[1; 32]);
    let [one, next] = [(); 2].map(|()| plan.pick(&plan.network().unwrap(), &table, &mut rng).unwrap().from);
    assert_ne!(*one, *next);
    let picked = pick(1);
    let (first, second) = picked.split_at(40);
    assert!(first.iter().zip(second).any(|(a, b)| *b != a + 64));
}

/// For any number of blocks, each has its own order.
#[test]
fn no_order_comes_again_in_a_later_block() {
    let plan = Plan { blocks: Blocks { number: 5, levels: 6, items: 40 }, n_y: 1, bytes: 8 };
    let functions = plan.functions(Domain::without_session("test")).unwrap();
    let table = CuckooTable::new(&functions, &[]).unwrap();
    let picked = plan.pick(&plan.network().unwrap(), &table, &mut Prng::from_seed(&[1; 32])).unwrap().from;
    let orders: HashSet<Vec<u32>> =
        picked.chunks(40).map(|block| block.iter().map(|bin| bin % 64).collect()).collect();
    assert_eq!(orders.len(), 5);
}

/// More tests than tags in a frame.
#[test]
fn comparisons_of_all_frames_have_instances_of_their_own() {
    let (y, x) = sets(20, 10, 5);
    let plan = Plan { blocks: Blocks { number: 17, levels: 9, items: 500 }, ..Plan::new(40, 20, 10, 20) };
    assert!(plan.slots() > FRAME);
    let run = Run::new(real(), plan, (&y, &x), [1, 2]);
    assert_eq!(by_item(&run.bits, &run.order, 10), [[true; 5], [false; 5]].concat());
}

#[test]
fn sizes_that_differ_are_refused() {
    let plan = |items| Plan { blocks: Blocks { number: 1, levels: 6, items }, n_y: 20, bytes: 8 };
    for theirs in [[1u64, 64, 21], [2, 64, 20], [1, 128, 20]] {
        let bytes = theirs.map(u64::to_le_bytes);
        let e = with_frames(&[(0xac, bytes.as_flattened())], |cx| {
            Osn::new(plan(20)).sender(cx, &items(0, 20), 20)
        });
        let [number, bins, items] = theirs;
        let sizes = format!(
            "it has {number} blocks of {bins} bins for {items} items each, where we have 1 of 64 for 20"
        );
        match e.map(drop) {
            Err(Error::Peer { fault: Fault::Misbehaved, what, .. }) => {
                assert!(what.contains(&sizes), "{what}")
            }
            other => panic!("{other:?}"),
        }
    }
    let e = with_frames(&[], |cx| Osn::new(plan(20)).receiver(cx, &items(0, 19)));
    assert!(matches!(e.map(drop), Err(Error::Bug(_))));
}

/// Values are long enough for both kinds of undetected errors, over all items of the sender.
#[test]
fn values_are_as_long_as_the_errors_need() {
    for (exponent, n_x, bytes) in [
        (40, 1, 6),
        (40, 1 << 7, 6),
        (40, (1 << 7) + 1, 7),
        (40, 1 << 23, 8),
        (40, (1 << 23) + 1, 9),
        (48, 1 << 20, 9),
    ] {
        assert_eq!(Plan::new(exponent, 10, n_x, 20).bytes, bytes, "{exponent} {n_x}");
    }
}

/// The number and the size of blocks are such that any block gets too many items with at most a third of the error probability.
#[test]
fn blocks_are_those_of_the_error() {
    for exponent in [40, 46] {
        let blocks = Plan::new(exponent, 10, 1 << 20, 20).blocks;
        assert!(blocks.number > 1);
        assert!(bound(share(exponent, 3), 1 << 20, blocks.number) <= blocks.items, "{exponent}: {blocks:?}");
    }
}

/// A block with more items than its bound does not fit.
#[test]
fn a_block_that_overflows_does_not_fit() {
    let x = items(0, 40);
    let plan = |items| Plan { blocks: Blocks { number: 4, levels: 6, items }, n_y: 1, bytes: 8 };
    let functions = plan(1).functions(Domain::without_session("test")).unwrap();
    let table = CuckooTable::new(&functions, &x).unwrap();
    let most =
        (0..4).map(|block| (64 * block..64 * (block + 1)).filter(|&b| table.item(b).is_some()).count()).max();
    let most = most.unwrap();
    assert!(most > 10 && plan(most).fits(&table) && !plan(most - 1).fits(&table));
    // Nor are bins picked from it.
    let pick = |plan: Plan| plan.pick(&plan.network().unwrap(), &table, &mut Prng::from_seed(&[1; 32]));
    assert!(pick(plan(most)).is_ok());
    assert!(matches!(pick(plan(most - 1)).map(drop), Err(Error::Bug(_))));
}

/// A tag that differs in one byte only, the first, the last or one between, is no match; a byte after its length does not
/// count.
#[test]
fn tags_are_compared_to_the_last_byte() {
    let (y, x) = sets(60, 60, 60);
    let plan = Plan { bytes: 7, ..Plan::new(40, 60, 60, 20) };
    for byte in 0..8 {
        let parts = Parts { opprf: Programmed(FromVole::new(Ideal)), oprf: Off(byte), bottoms: true };
        let run = Run::new(parts, plan, (&y, &x), [1, 2]);
        assert!(run.bits.iter().all(|&bit| bit == (byte == 7)), "{byte}");
    }
}
