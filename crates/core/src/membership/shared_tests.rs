//! Compares shares with plain membership; checks the compared strings and the parties' views in worlds that differ in matches;
//! checks what is refused.

use super::*;
use crate::equality;
use crate::hash::Domain;
use crate::hashing::cuckoo::number;
use crate::oprf::bins::{self, FromVole};
use crate::oprf::programmable::Programmed;
use crate::rng::Prng;
use crate::testing::{ANY_SESSION, Views, every_bit_is_random, parts, run_pair, with_frames};
use crate::vole::{self, silent::Silent};
use crate::{okvs, oprf};
use std::collections::HashSet;
use std::sync::Mutex;

fn inputs(n: usize) -> Vec<Input> {
    (0..n as u64).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

/// A batch for a table of up to `n_y` items, and a set of up to `most`.
fn batch(n_y: usize, most: usize) -> Batch {
    let functions = Functions::new(Domain::without_session("tests"), number(40, n_y)).unwrap();
    Batch { comparisons: functions.bins(), functions, most, exponent: 40 }
}

/// Shares of the querier and of the holder.
type Shares = [Secrets<bool>; 2];

/// Runs both parties, with generators of these seeds.
fn run(
    protocol: &(impl Sspmt + Sync),
    batch: &Batch,
    (y, x): (&[Input], &[Input]),
    seeds: [u8; 2],
) -> (Shares, Views) {
    let table = CuckooTable::new(&batch.functions, y).unwrap();
    let ((ours, theirs), views) = run_pair(
        &ANY_SESSION,
        |cx| protocol.querier(cx.under(Prng::from_seed(&[seeds[0]; 32])), batch, &table, y),
        |cx| protocol.holder(cx.under(Prng::from_seed(&[seeds[1]; 32])), batch, x),
    );
    ([ours, theirs], views)
}

/// Whether the item of each bin is in the set.
fn plain(batch: &Batch, y: &[Input], x: &[Input]) -> Vec<bool> {
    let table = CuckooTable::new(&batch.functions, y).unwrap();
    (0..table.bins()).map(|bin| table.item(bin).is_some_and(|item| x.contains(&y[item]))).collect()
}

/// Checks shares of sets of all kinds against plain membership, and that lengths depend on the bounds only. Every
/// protocol must pass it.
fn is_an_sspmt(protocol: &(impl Sspmt + Sync), sizes: &[(usize, usize)]) {
    for &(n_y, n_x) in sizes {
        let (batch, mut lengths) = (batch(n_y, n_x), Vec::new());
        for (some_y, some_x, common) in [
            (n_y, n_x, 0),
            (n_y, n_x, n_y.min(n_x)),
            (n_y, n_x, n_y.min(n_x) / 2),
            (n_y / 2, n_x, n_x.min(n_y / 2)),
            (n_y, n_x / 3, n_y.min(n_x / 3)),
            (0, n_x, 0),
            (n_y, 0, 0),
        ] {
            let all = inputs(some_y + some_x - common);
            let (y, x) = (&all[..some_y], &all[some_y - common..]);
            let ([ours, theirs], views) = run(protocol, &batch, (y, x), [1, 2]);
            let found: Vec<bool> = ours.iter().zip(theirs.iter()).map(|(a, b)| a ^ b).collect();
            assert_eq!(found, plain(&batch, y, x), "{n_y} {n_x}: {some_y} {some_x} {common}");
            assert_eq!(found.iter().filter(|is| **is).count(), common);
            lengths.push([views.frames(0), views.frames(1)]);
        }
        assert!(lengths.iter().all(|l| *l == lengths[0]), "lengths that depend on more than the bounds");
    }
}

const SIZES: [(usize, usize); 7] = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 40), (57, 33), (20, 300)];

#[test]
fn the_ideal_functionality_is_one() {
    is_an_sspmt(&Ideal, &SIZES);
}

#[test]
fn it_is_a_membership_test_with_shared_output() {
    let opprf = oprf::programmable::Ideal;
    is_an_sspmt(&Compared { opprf, equality: equality::Ideal }, &SIZES);
    let opprf = Programmed(FromVole::new(vole::Ideal));
    is_an_sspmt(&Compared { opprf, equality: equality::Ideal }, &SIZES);
}

/// Few runs, as each has its own base OTs.
#[test]
fn it_is_one_over_silent_vole() {
    let opprf = Programmed(FromVole::new(Silent { k: 2 }));
    is_an_sspmt(&Compared { opprf, equality: equality::Ideal }, &[(60, 50)]);
}

/// Enough bins and points for several frames.
#[test]
fn many_bins_are_tested_at_once() {
    let opprf = Programmed(FromVole::new(vole::Ideal));
    let protocol = Compared { opprf, equality: equality::Ideal };
    let (batch, all) = (batch(7000, 6000), inputs(10_000));
    let (y, x) = (&all[..7000], &all[4000..]);
    let ([ours, theirs], _) = run(&protocol, &batch, (y, x), [1, 2]);
    let table = CuckooTable::new(&batch.functions, y).unwrap();
    for bin in 0..table.bins() {
        let is = table.item(bin).is_some_and(|item| item >= 4000);
        assert_eq!(ours[bin] ^ theirs[bin], is, "{bin}");
    }
}

/// An equality protocol that records its inputs: the strings of the querier and of the holder, and their length.
#[derive(Default)]
struct Noting(Mutex<[(Vec<u128>, u32); 2]>);

impl Equality for Noting {
    fn receiver(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>> {
        self.0.lock().unwrap()[0] = (strings.to_vec(), bits);
        equality::Ideal.receiver(cx, strings, bits)
    }

    fn sender(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>> {
        self.0.lock().unwrap()[1] = (strings.to_vec(), bits);
        equality::Ideal.sender(cx, strings, bits)
    }
}

/// The querier's values and the holder's targets, cut to the compared bits, and the views of a run over this programmable OPRF.
fn compared<P: BinOpprf + Sync>(
    opprf: P,
    batch: &Batch,
    sets: (&[Input], &[Input]),
    seeds: [u8; 2],
) -> ([Vec<u128>; 2], Views) {
    let protocol = Compared { opprf, equality: Noting::default() };
    let (_, views) = run(&protocol, batch, sets, seeds);
    let noted = protocol.equality.0.into_inner().unwrap();
    assert!(noted.iter().all(|(_, bits)| *bits == batch.bits().unwrap()));
    let compared = |s: u128| s & (u128::MAX >> (128 - batch.bits().unwrap()));
    (noted.map(|(strings, _)| strings.into_iter().map(compared).collect()), views)
}

fn random(strings: &[u128], bits: u32) {
    every_bit_is_random(&strings.iter().map(|s| s.to_le_bytes()).collect::<Vec<_>>(), bits as usize);
}

fn different<T: Eq + std::hash::Hash>(list: &[T]) -> bool {
    list.iter().collect::<HashSet<_>>().len() == list.len()
}

/// In worlds in which all, none or some items match, or there are no items, and in several runs: the querier's values are the
/// targets at matches and random elsewhere, no two are equal in any bin or run, and the same holds for the targets.
#[test]
fn targets_and_values_are_fresh_in_every_bin_and_every_run() {
    let (batch, all) = (batch(400, 400), inputs(800));
    let random = |strings: &[u128]| random(strings, batch.bits().unwrap());
    let worlds = [(0, 0), (0, 400), (400, 800), (200, 600)].map(|(from, to)| &all[from..to]);
    let (mut targets, mut others) = (Vec::new(), Vec::new());
    for (number, x) in worlds.into_iter().chain([worlds[1]]).enumerate() {
        let opprf = Programmed(FromVole::new(vole::Ideal));
        let ([w, s], _) = compared(opprf, &batch, (&all[..400], x), [1, 10 + number as u8]);
        let is = plain(&batch, &all[..400], x);
        for (bin, is) in is.into_iter().enumerate() {
            assert_eq!(w[bin] == s[bin], is, "{number} {bin}");
        }
        // The values and the targets, each by themselves.
        random(&w);
        random(&s);
        assert!(different(&w), "values that are equal");
        others.extend(w.iter().zip(&s).filter(|(w, s)| w != s).map(|(w, _)| *w));
        targets.extend(s);
    }
    random(&others);
    let both = [targets, others].concat();
    assert!(different(&both), "targets or values that are equal");
}

/// A programmable OPRF whose sender programs the same value everywhere.
struct OneTarget<P>(P);

impl<P: BinOpprf> BinOpprf for OneTarget<P> {
    fn receiver(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        queries: &[Query],
        bounds: Bounds,
    ) -> Result<Secrets<Value>> {
        self.0.receiver(cx, purpose, queries, bounds)
    }

    fn sender(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        points: &(impl Points + ?Sized),
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        self.0.sender(cx, purpose, points, |_| value(0), bounds)
    }
}

/// Shows the flaw of one target for all bins: the querier's own values reveal the matches. The test above notices it.
#[test]
fn one_target_for_all_bins_would_show_the_matches() {
    let (batch, all) = (batch(100, 100), inputs(150));
    let sets = (&all[..100], &all[50..]);
    let equal =
        |w: Vec<u128>| (0..w.len()).map(|i| w.iter().filter(|other| **other == w[i]).count() > 1).collect();
    let ([w, _], _) = compared(OneTarget(Programmed(bins::Ideal)), &batch, sets, [1, 2]);
    let seen: Vec<bool> = equal(w);
    assert_eq!(seen, plain(&batch, sets.0, sets.1));
    let ([w, _], _) = compared(Programmed(bins::Ideal), &batch, sets, [1, 2]);
    let seen: Vec<bool> = equal(w);
    assert!(seen.iter().all(|seen| !seen));
}

#[test]
fn each_share_is_random_whatever_matches() {
    let (batch, all) = (batch(400, 400), inputs(800));
    for x in [&all[..400], &all[400..]] {
        let opprf = Programmed(FromVole::new(vole::Ideal));
        let protocol = Compared { opprf, equality: equality::Ideal };
        let (shares, _) = run(&protocol, &batch, (&all[..400], x), [1, 2]);
        for shares in &shares {
            every_bit_is_random(&shares.iter().map(|share| [u8::from(*share)]).collect::<Vec<_>>(), 1);
        }
        // Other shares in another run.
        let (again, _) = run(&protocol, &batch, (&all[..400], x), [3, 4]);
        for (shares, again) in shares.iter().zip(&again) {
            let equal = shares.iter().zip(again.iter()).map(|(a, b)| [u8::from(a == b)]).collect::<Vec<_>>();
            every_bit_is_random(&equal, 1);
        }
    }
}

/// The messages of both parties, in worlds with and without items, with and without matches, and in a second run of the first
/// world.
#[test]
fn messages_look_alike_and_are_fresh_in_every_run() {
    let (batch, all) = (batch(150, 150), inputs(300));
    let opprf = || Programmed(FromVole::new(Silent { k: 2 }));
    let (y, none) = (&all[..150], &all[..0]);
    let bytes = batch.bits().unwrap().div_ceil(8) as usize;
    let (mut seen, mut hints) = (HashSet::new(), HashSet::new());
    for (number, sets) in [(y, y), (y, &all[150..]), (y, none), (none, y), (y, y)].into_iter().enumerate() {
        let (_, views) = compared(opprf(), &batch, sets, [2 * number as u8, 2 * number as u8 + 1]);
        let hint = parts(&views.0[0], 0xc2, bytes);
        let d = parts(&views.0[1], 0xc0, 16);
        assert_eq!((d.len(), hint.len()), (batch.functions.bins(), okvs::size(450)));
        assert!(hint.into_iter().all(|element| hints.insert(element)), "{number}");
        for message in [parts(&views.0[0], 0xc1, 16), d] {
            assert!(message.into_iter().all(|element| seen.insert(element)), "{number}");
        }
    }
    every_bit_is_random(&hints.into_iter().collect::<Vec<_>>(), 8 * bytes);
    every_bit_is_random(&seen.into_iter().collect::<Vec<_>>(), 128);
}

#[test]
fn messages_have_the_stated_lengths() {
    let batch = batch(10, 2700);
    let protocol = Compared { opprf: Programmed(bins::Ideal), equality: equality::Ideal };
    let (_, views) = run(&protocol, &batch, (&inputs(3), &inputs(5)), [1, 2]);
    let (hint, strings) = (okvs::size(3 * 2700), (0x7011, 16 * batch.functions.bins()));
    // 40 bits and the logarithm of the number of bins, in whole nibbles.
    assert_eq!(batch.bits(), Ok(48));
    assert_eq!(
        views.frames(0),
        [(0x7012, 32), (0xc1, 16), (0xc2, 6 << 13), (0xc2, 6 * (hint - (1 << 13))), strings]
    );
    assert_eq!(views.frames(1), [strings]);
}

/// The query of a bin without an item is random, and the other bins have the queries of their items.
#[test]
fn queries_of_empty_bins_are_random() {
    let (batch, items) = (batch(300, 1), inputs(40));
    let table = CuckooTable::new(&batch.functions, &items).unwrap();
    let of = |seed: u8| {
        let random =
            |cx: &mut Context| queries(cx.under(Prng::from_seed(&[seed; 32])), &batch, &table, &items);
        with_frames(&[], random).unwrap().to_vec()
    };
    let (one, other) = (of(1), of(2));
    let mut random = Vec::new();
    for bin in 0..table.bins() {
        match table.item(bin) {
            Some(item) => assert_eq!([one[bin], other[bin]], [query(&items[item]); 2]),
            None => random.extend([one[bin], other[bin]]),
        }
    }
    assert_eq!(random.len(), 2 * (table.bins() - 40));
    assert!(different(&random));
    every_bit_is_random(&random, 128);
}

#[test]
fn each_item_has_a_point_in_each_of_its_bins() {
    let (batch, items) = (batch(100, 700), inputs(700));
    let points = Threefold::new(&batch.functions, &items);
    let points: Vec<_> = (0..points.count()).map(|i| points.point(i)).collect();
    assert_eq!(points.len(), 2100);
    let bins = batch.functions.bins_of(&items);
    let expected = items.iter().zip(bins.iter()).flat_map(|(item, bins)| {
        let query = query(item);
        bins.map(|bin| (bin, query))
    });
    assert!(points.iter().map(|point| (point.bin, point.query)).eq(expected));
    assert!(different(&points.iter().map(|point| (point.bin, point.query)).collect::<Vec<_>>()));
}

#[test]
fn strings_are_as_long_as_the_errors_of_all_tests_need() {
    let of = |exponent, comparisons, bins| {
        let functions = Functions::new(Domain::without_session("tests"), bins).unwrap();
        Batch { functions, most: 1, exponent, comparisons }
    };
    for (exponent, comparisons, bins, bits) in [
        (40, 3, 3, 44),
        (40, 16, 3, 44),
        (40, 17, 3, 48),
        (41, 1 << 20, 1 << 20, 64),
        (40, (1 << 20) + 1, 1 << 20, 64),
        (40, 1 << 24, 3, 64),
        (40, (1 << 24) + 1, 3, 68),
        (126, 3, 3, 128),
        // The comparisons of the batch itself are the minimum.
        (40, 0, 1 << 20, 60),
    ] {
        assert_eq!(of(exponent, comparisons, bins).bits().unwrap(), bits, "{exponent} {comparisons} {bins}");
    }
    for (exponent, comparisons) in [(127, 3), (u32::MAX, 3)] {
        let batch = of(exponent, comparisons, 3);
        let e = batch.bits().unwrap_err();
        let named = e.to_string().contains(&format!("{comparisons} comparisons"));
        assert!(matches!(e, Error::Usage(_)) && named, "{e}");
        // The check comes before anything else.
        let protocol = Compared { opprf: Programmed(bins::Ideal), equality: equality::Ideal };
        let table = CuckooTable::new(&batch.functions, &[]).unwrap();
        assert_eq!(with_frames(&[], |cx| protocol.querier(cx, &batch, &table, &[])).err().as_ref(), Some(&e));
        assert_eq!(with_frames(&[], |cx| protocol.holder(cx, &batch, &[])).err(), Some(e));
    }
}

#[test]
fn what_is_not_as_announced_is_a_bug() {
    let bug = |e: Option<Error>| assert!(matches!(e, Some(Error::Bug(_))), "{e:?}");
    let protocol = Compared { opprf: Programmed(bins::Ideal), equality: equality::Ideal };
    let (batch_of, items) = (batch(10, 4), inputs(5));
    bug(with_frames(&[], |cx| protocol.holder(cx, &batch_of, &items)).err());
    let table = CuckooTable::new(&batch(20, 4).functions, &items).unwrap();
    bug(with_frames(&[], |cx| protocol.querier(cx, &batch_of, &table, &items)).err());
    let table = CuckooTable::new(&batch_of.functions, &items).unwrap();
    bug(with_frames(&[], |cx| protocol.querier(cx, &batch_of, &table, &items[..4])).err());
}
