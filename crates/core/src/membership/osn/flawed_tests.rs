//! Simpler variants, and what R learns from each: the bin of a row, how many items of a block match, or items that are not in
//! X.

use super::observed_tests::{Clear, Kept, Parts, Run, functions_of, in_blocks, real, sets};
use super::*;
use crate::okvs::BandRows;
use crate::oprf::bins;
use crate::testing::parts;
use std::collections::HashSet;

const N: usize = 1200;
const NUMBER: usize = 3;

fn plan() -> Plan {
    in_blocks(N, N, NUMBER)
}

/// R's attack on the bins of new rows, given the values that S compared: for each new item, returns those of its bins whose
/// value is the one compared in the item's slot.
fn found(run: &Run, keys: &impl BinKeys, x: &[Input], compared: &[Vec<u8>]) -> Vec<Vec<u32>> {
    let functions = functions_of(run);
    let (plan, s) = (&run.plan, run.s());
    let seed = parts(&run.views.0[1], 0xc1, 16)[0][..].try_into().unwrap();
    let hint = parts(&run.views.0[1], 0xc2, plan.bytes);
    let hint: Vec<Value> =
        hint.iter().map(|first| std::array::from_fn(|i| first.get(i).copied().unwrap_or(0))).collect();
    let new = (0..plan.slots()).filter(|&i| !run.bits[i]);
    new.map(|i| {
        // R got this item in the row of slot i.
        let item = &x[run.order[i] as usize];
        let own = functions.bins_of(&[*item])[0];
        own.into_iter()
            .filter(|&bin| {
                let point = BinPoint { bin, query: query(item) };
                let f = keys.evaluate(1, |_| point).unwrap()[0];
                let key = crate::oprf::programmable::key(&point);
                let decoded = BandRows::new(&seed, &[key], hint.len()).unwrap().decode(&hint).unwrap()[0];
                // w + s + B of this bin and slot, where S has w + D, and D + B is s of the bin it came from.
                let value: Value =
                    std::array::from_fn(|at| f[at] ^ decoded[at] ^ s[bin as usize][at] ^ run.seen.b[i][at]);
                value[..plan.bytes] == compared[i][..]
            })
            .collect()
    })
    .collect()
}

/// Compared in the clear, each new row shows its bin. Compared through an OPRF, it does not.
#[test]
fn values_in_the_clear_show_the_bins_of_new_rows() {
    let (y, x) = sets(N, N, N / 2);
    let attack = |oprf_is_clear: bool| {
        let kept = Kept::default();
        let keys = kept.0.clone();
        let opprf = Programmed(kept);
        let run = match oprf_is_clear {
            true => Run::new(Parts { opprf, oprf: Clear, bottoms: true }, plan(), (&y, &x), [1, 2]),
            false => Run::new(Parts { opprf, oprf: bins::Ideal, bottoms: true }, plan(), (&y, &x), [1, 2]),
        };
        let compared = parts(&run.views.0[0], 0xad, run.plan.bytes);
        let keys = keys.lock().unwrap().clone().unwrap();
        let table = CuckooTable::new(&functions_of(&run), &x).unwrap();
        let found = found(&run, &keys, &x, &compared);
        assert_eq!(found.len(), N / 2);
        let new = (0..run.plan.slots()).filter(|&i| !run.bits[i]).map(|i| run.order[i] as usize);
        new.zip(found)
            .filter(|(item, bins)| matches!(bins[..], [bin] if table.item(bin as usize) == Some(*item)))
            .count()
    };
    assert_eq!(attack(true), N / 2);
    assert_eq!(attack(false), 0);
}

/// The number of ones in each block.
fn ones(run: &Run) -> Vec<usize> {
    run.blocks().map(|(_, slots)| run.bits[slots].iter().filter(|&&bit| bit).count()).collect()
}

/// Where empty bins do not match, the number of ones in a block is that of its matches. Where empty bins match, it follows from
/// the new items.
#[test]
fn empty_bins_that_do_not_match_show_the_matches_of_a_block() {
    // The same new items and the same number of matches, but different matches.
    let (y, _) = sets(N, N, 0);
    let new = super::tests::items(N, N / 2);
    let worlds = [&y[..N / 2], &y[N / 2..]].map(|matching| [matching, &new].concat());
    let [real_ones, flawed] = [true, false].map(|bottoms| {
        worlds.each_ref().map(|x| ones(&Run::new(Parts { bottoms, ..real() }, plan(), (&y, x), [1, 2])))
    });
    assert_eq!(real_ones[0], real_ones[1]);
    assert_ne!(flawed[0], flawed[1]);
    // They count the matches of each block.
    let run = Run::new(Parts { bottoms: false, ..real() }, plan(), (&y, &worlds[0]), [1, 2]);
    let functions = functions_of(&run);
    let mut matches = vec![0; NUMBER];
    functions
        .bins_of(&worlds[0][..N / 2])
        .iter()
        .for_each(|own| matches[own[0] as usize / run.plan.blocks.bins()] += 1);
    assert_eq!(ones(&run), matches);
}

/// R's conclusion where it sees which bins have new rows, under a function that it knows only at its own items: an item whose
/// bins all have new rows is not in X.
fn excluded(taken: &HashSet<u32>, functions: &Functions, y: &[Input]) -> Vec<usize> {
    let own = functions.bins_of(y);
    (0..y.len()).filter(|&i| own[i].iter().all(|bin| taken.contains(bin))).collect()
}

/// Hiding the function would not replace the secret order: in the order of the bins, new rows rule out other items. In the
/// secret order they do not: a conclusion is then wrong as often as for any item.
#[test]
fn full_bins_exclude_items_where_their_order_shows() {
    let (n_y, n_x, common) = (60_000, N, N / 10);
    let (y, x) = sets(n_y, n_x, common);
    let functions = plan().functions(Domain::without_session("keyed by S")).unwrap();
    let table = CuckooTable::new(&functions, &x).unwrap();
    let is_new = |bin: usize| table.item(bin).is_some_and(|item| item >= common);
    let matching = n_y - common..n_y;
    let taken: HashSet<u32> = (0..table.bins()).filter(|&bin| is_new(bin)).map(|bin| bin as u32).collect();
    let certain = excluded(&taken, &functions, &y);
    assert!(certain.len() > 100, "{}", certain.len());
    assert!(certain.iter().all(|item| !matching.contains(item)));
    // R's view: new rows at the places of a secret order, taken for bins.
    let network = plan().network().unwrap();
    let mut wrong = 0;
    for seed in 0..40 {
        let picked = plan().pick(&network, &table, &mut Prng::from_seed(&[seed; 32])).unwrap();
        let (items, bins) = (plan().blocks.items, plan().blocks.bins());
        let place = |slot: usize| (slot / items * bins + slot % items * bins / items) as u32;
        let slots = picked.from.iter().enumerate().filter(|(_, bin)| is_new(**bin as usize));
        let taken: HashSet<u32> = slots.map(|(slot, _)| place(slot)).collect();
        wrong += excluded(&taken, &functions, &y).iter().filter(|item| matching.contains(item)).count();
    }
    assert!(wrong > 20, "{wrong}");
}
