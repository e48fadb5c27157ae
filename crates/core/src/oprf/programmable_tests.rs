//! Compares the values with their definition, over ideal and real OPRFs; checks what a hint shows, and the refusals.

use super::*;
use crate::error::Fault;
use crate::oprf::bins::{self, FromVole, query};
use crate::oprf::vole::Rr22;
use crate::rng::Prng;
use crate::testing::{ANY_SESSION, SEEDS, Views, every_bit_is_random, parts, run_pair, sizes, with_frames};
use crate::vole::{self, silent::Silent};
use std::collections::HashSet;

/// Bounds on values of full length.
fn whole(receiver: usize, sender: usize) -> Bounds {
    Bounds { receiver, sender, bytes: 16 }
}

fn inputs(n: usize) -> Vec<Input> {
    (0..n as u64).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

/// The value programmed at number i.
fn programmed(i: usize) -> Value {
    *blake3::hash(&i.to_le_bytes()).as_bytes().first_chunk().unwrap()
}

fn is_random(values: &HashSet<Value>) {
    if values.len() >= 200 {
        every_bit_is_random(&values.iter().collect::<Vec<_>>(), 128);
    }
}

fn run(protocol: &(impl Opprf + Sync), y: &[Input], x: &[Input], bounds: Bounds) -> (Secrets<Value>, Views) {
    let ((values, ()), views) = run_pair(
        &ANY_SESSION,
        |cx| protocol.receiver(cx, y, bounds),
        |cx| protocol.sender(cx, x, programmed, bounds),
    );
    (values, views)
}

/// Checks that the receiver has the programmed values, random ones elsewhere, and that lengths of messages depend on
/// the bounds only. Every programmable OPRF must pass it.
fn is_an_opprf(protocol: &(impl Opprf + Sync), frame: usize) {
    for (n_y, n_x) in sizes(frame) {
        let mut lengths = Vec::new();
        let bounds = whole(n_y, n_x);
        let (some_y, some_x) = (n_y - n_y / 3, n_x - n_x / 2);
        for (n_y, n_x, common) in
            [(n_y, n_x, 0), (n_y, n_x, n_y.min(n_x)), (some_y, some_x, some_y.min(some_x) / 2)]
        {
            let all = inputs(n_y + n_x - common);
            let (values, views) = run(protocol, &all[..n_y], &all[n_y - common..], bounds);
            assert_eq!(values.len(), n_y);
            let (others, matches) = values.split_at(n_y - common);
            assert!(matches.iter().enumerate().all(|(i, value)| *value == programmed(i)), "{n_y} {n_x}");
            let others: HashSet<Value> = others.iter().copied().collect();
            assert_eq!(others.len(), n_y - common, "{n_y} {n_x} {common}: values that are equal");
            assert!((0..n_x).all(|i| !others.contains(&programmed(i))), "{n_y} {n_x} {common}");
            is_random(&others);
            lengths.push([views.frames(0), views.frames(1)]);
        }
        assert!(lengths.iter().all(|l| *l == lengths[0]), "lengths that depend on more than the bounds");
    }
}

#[test]
fn the_ideal_functionality_is_one() {
    is_an_opprf(&Ideal, 100);
}

#[test]
fn it_is_a_programmable_oprf_over_any_oprf() {
    is_an_opprf(&Programmed(crate::oprf::Ideal), FRAME / 2);
    is_an_opprf(&Programmed(Rr22::new(vole::Ideal)), 100);
}

/// A few inputs, as each run has its own base OTs.
#[test]
fn it_is_a_programmable_oprf_over_silent_vole() {
    is_an_opprf(&Programmed(Rr22::new(Silent { k: 2 })), 60);
}

fn run_in_bins(
    protocol: &(impl BinOpprf + Sync),
    queries: &[Query],
    points: &[BinPoint],
    most: usize,
) -> (Secrets<Value>, Views) {
    let bounds = whole(queries.len(), most);
    let ((values, ()), views) = run_pair(
        &ANY_SESSION,
        |cx| protocol.receiver(cx, "points", queries, bounds),
        |cx| protocol.sender(cx, "points", points, programmed, bounds),
    );
    (values, views)
}

/// Checks a programmable OPRF in bins as [`is_an_opprf`] does. Query i of bin i is programmed if `has(i)`; another query is
/// programmed in bin i, and query i in the next bin.
fn is_an_opprf_in_bins(protocol: &(impl BinOpprf + Sync), sizes: &[usize]) {
    for &bins in sizes {
        let queries: Vec<Query> = inputs(2 * bins).iter().map(query).collect();
        let (queries, others) = queries.split_at(bins);
        let mut lengths = Vec::new();
        for has in [|_: usize| false, |_: usize| true, |i: usize| i.is_multiple_of(3)] {
            let mut points: Vec<BinPoint> = Vec::new();
            for i in 0..bins {
                let (bin, next) = (i as u32, ((i + 1) % bins) as u32);
                points.push(BinPoint { bin, query: others[i] });
                if next != bin {
                    points.push(BinPoint { bin: next, query: queries[i] });
                }
                if has(i) {
                    points.push(BinPoint { bin, query: queries[i] });
                }
            }
            let (values, views) = run_in_bins(protocol, queries, &points, 3 * bins + 5);
            assert_eq!(values.len(), bins);
            let mut random = HashSet::new();
            for (i, value) in values.iter().enumerate() {
                let is = |point: &BinPoint| point.bin as usize == i && point.query == queries[i];
                match points.iter().position(is) {
                    Some(place) => assert_eq!(*value, programmed(place), "{bins} {i}"),
                    None => assert!(random.insert(*value)),
                }
            }
            assert!((0..points.len()).all(|i| !random.contains(&programmed(i))), "{bins}");
            is_random(&random);
            lengths.push([views.frames(0), views.frames(1)]);
        }
        assert!(lengths.iter().all(|l| *l == lengths[0]), "lengths that depend on more than the bounds");
    }
}

#[test]
fn the_ideal_functionality_in_bins_is_one() {
    is_an_opprf_in_bins(&Ideal, &[0, 1, 2, 300]);
}

#[test]
fn it_is_a_programmable_oprf_in_bins_over_any_oprf() {
    is_an_opprf_in_bins(&Programmed(bins::Ideal), &[0, 1, 2, 300]);
    is_an_opprf_in_bins(&Programmed(FromVole::new(vole::Ideal)), &[0, 1, 2, 300]);
    is_an_opprf_in_bins(&Programmed(FromVole::new(Silent { k: 2 })), &[40]);
}

#[test]
fn keys_of_points_are_different() {
    let mut points = vec![BinPoint { bin: 0, query: [0; 16] }];
    points.extend((0..32).map(|bit| BinPoint { bin: 1 << bit, query: [0; 16] }));
    points.extend((0..128).map(|bit| BinPoint { bin: 0, query: (1u128 << bit).to_le_bytes() }));
    assert_eq!(points.iter().map(key).collect::<HashSet<_>>().len(), points.len());
    let queries = [[1; 16], [2; 16]];
    let second = BinPoint { bin: 1, query: [2; 16] };
    assert_eq!(keys_of(&queries)[1], key(&second));
}

/// The seed and the hint that the receiver got.
fn hint(views: &Views) -> (Vec<u8>, Vec<Vec<u8>>) {
    (parts(&views.0[0], 0xc1, 16).concat(), parts(&views.0[0], 0xc2, 16))
}

/// Hints for few of many keys, for all and for none, for equal values, with and without matches. No element of a hint equals
/// another, is constant, or occurs in another run.
#[test]
fn hints_of_different_keys_look_alike() {
    let all = inputs(400);
    let bounds = whole(200, 200);
    let protocol = Programmed(Rr22::new(vole::Ideal));
    let run = |x: &[Input], seed: u8, value: fn(usize) -> Value| {
        let (_, views) = run_pair(
            &ANY_SESSION,
            |cx| protocol.receiver(cx, &all[..200], bounds),
            |cx| protocol.sender(cx.under(Prng::from_seed(&[seed; 32])), x, value, bounds),
        );
        hint(&views)
    };
    // All match; none does; none does and all values are equal; three match and three do not; no keys; then the first again.
    let (matches, none) = (&all[..200], &all[200..]);
    let hints = [
        run(matches, 1, programmed),
        run(none, 2, programmed),
        run(none, 3, |_| [0; 16]),
        run(&all[197..203], 4, programmed),
        run(&[], 5, programmed),
        run(matches, 6, programmed),
    ];
    let mut seen = HashSet::new();
    for (seed, hint) in &hints {
        assert_eq!(hint.len(), okvs::size(200));
        every_bit_is_random(hint, 128);
        assert!(seen.insert(seed.clone()) && hint.iter().all(|element| seen.insert(element.clone())));
    }
    let zero = vec![0; 16];
    assert!(!seen.contains(&zero));
}

/// A receiver that knows a key and did not query it learns nothing from the hint: neither the key's value, nor that it has one.
#[test]
fn values_at_keys_that_are_not_queried_are_masked() {
    let (y, x) = (inputs(1), inputs(301));
    let bounds = whole(1, 300);
    let (_, views) = run_pair(
        &ANY_SESSION,
        |cx| Programmed(Rr22::new(vole::Ideal)).receiver(cx, &y, bounds),
        |cx| Programmed(Rr22::new(vole::Ideal)).sender(cx, &x[1..], |_| [0; 16], bounds),
    );
    let points: Vec<BinPoint> = (0..300).map(|i| BinPoint { bin: i, query: [1; 16] }).collect();
    let bounds = whole(300, 300);
    let (_, in_bins) = run_pair(
        &ANY_SESSION,
        |cx| Programmed(FromVole::new(vole::Ideal)).receiver(cx, "points", &[[2; 16]; 300], bounds),
        |cx| Programmed(FromVole::new(vole::Ideal)).sender(cx, "points", &points[..], |_| [0; 16], bounds),
    );
    for (views, keys) in [(views, x[1..].to_vec()), (in_bins, points.iter().map(key).collect())] {
        let (seed, hint) = hint(&views);
        let hint: Vec<Value> = hint.iter().map(|element| element[..].try_into().unwrap()).collect();
        let rows = BandRows::new(&seed[..].try_into().unwrap(), &keys, hint.len()).unwrap();
        let decoded = rows.decode(&hint).unwrap();
        every_bit_is_random(&decoded, 128);
        assert_eq!(decoded.iter().collect::<HashSet<_>>().len(), 300);
    }
}

/// The random keys and values up to the bound come from the sender's generator, each drawn by itself.
#[test]
fn hints_are_filled_up_with_random_keys_and_values() {
    let (few, most) = (5, 300);
    let mut keys = inputs(few);
    let mut values: Vec<Value> = (0..few).map(programmed).collect();
    let (first_keys, first_values) = (keys.clone(), values.clone());
    let ((decoded, ()), views) = run_pair(
        &ANY_SESSION,
        |cx| receive_hint(cx, &inputs(few), Secrets::zeros(few), whole(few, most)),
        |cx| send_hint(cx, &first_keys, first_values.into(), whole(few, most)),
    );
    assert_eq!(*decoded, *values);
    // The keys and values drawn to fill up the hint.
    let rng = &mut Prng::from_seed(&SEEDS[1]);
    keys.extend((few..most).map(|_| ItemHash::random(rng)));
    let mut more = vec![[0; 16]; most - few];
    rng.fill(more.as_flattened_mut());
    values.extend(more);
    every_bit_is_random(&values, 128);
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), most);
    let (seed, hint) = hint(&views);
    let hint: Vec<Value> = hint.iter().map(|element| element[..].try_into().unwrap()).collect();
    let rows = BandRows::new(&seed[..].try_into().unwrap(), &keys, hint.len()).unwrap();
    assert_eq!(*rows.decode(&hint).unwrap(), *values);
}

/// Compares the receiver's values where the sender does not have the key, with equal randomness of the receiver.
#[test]
fn values_that_are_not_programmed_are_fresh_in_every_run() {
    let (y, x) = (inputs(300), inputs(310));
    let bounds = whole(300, 10);
    let values = |seed: u8| {
        let protocol = Programmed(Rr22::new(Silent { k: 2 }));
        let ((values, ()), _) = run_pair(
            &ANY_SESSION,
            |cx| protocol.receiver(cx, &y, bounds),
            |cx| protocol.sender(cx.under(Prng::from_seed(&[seed; 32])), &x[300..], programmed, bounds),
        );
        values
    };
    let all = [values(1).to_vec(), values(2).to_vec()].concat();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 600);
    every_bit_is_random(&all, 128);
}

#[test]
fn messages_have_the_stated_lengths() {
    for (bins, most, bytes) in [(3, 0, 16), (40, 7, 1), (3, 10_000, 8), (5, 10, 9)] {
        let queries = vec![[1; 16]; bins];
        let bounds = Bounds { bytes, ..whole(bins, most) };
        let (_, views) = run_pair(
            &ANY_SESSION,
            |cx| Programmed(bins::Ideal).receiver(cx, "points", &queries, bounds),
            |cx| Programmed(bins::Ideal).sender(cx, "points", &[][..], programmed, bounds),
        );
        let hint: Vec<(u16, usize)> = frames(okvs::size(most), FRAME).map(|n| (0xc2, bytes * n)).collect();
        assert_eq!(views.frames(0), [&[(0x7012, 32), (0xc1, 16)][..], &hint].concat());
        assert_eq!(views.0[0].len() - HEADER - 32, bounds.traffic());
        assert!(views.frames(1).is_empty());
    }
}

/// An unprogrammed value is random in all of its bytes, with nothing after them. So it equals another one by chance as often as
/// its length implies.
#[test]
fn values_are_as_long_as_is_asked_for() {
    let (n, n_x) = (3000, 250);
    let all = inputs(n);
    for bytes in [1, 5, 8, 9, 16] {
        let bounds = Bounds { bytes, ..whole(n, n_x) };
        let on_items = Programmed(Rr22::new(vole::Ideal));
        let ((values, ()), views) = run_pair(
            &ANY_SESSION,
            |cx| on_items.receiver(cx, &all, bounds),
            |cx| on_items.sender(cx, &all[..n_x], programmed, bounds),
        );
        let points: Vec<BinPoint> =
            (0..n_x).map(|i| BinPoint { bin: i as u32, query: query(&all[i]) }).collect();
        let queries: Vec<Query> = all.iter().map(query).collect();
        let in_bins = Programmed(FromVole::new(vole::Ideal));
        let ((others, ()), _) = run_pair(
            &ANY_SESSION,
            |cx| in_bins.receiver(cx, "points", &queries, bounds),
            |cx| in_bins.sender(cx, "points", &points[..], programmed, bounds),
        );
        for values in [values, others] {
            assert!(values.iter().all(|value| value[bytes..].iter().all(|byte| *byte == 0)), "{bytes}");
            let right = |i: usize| values[i][..bytes] == programmed(i)[..bytes];
            assert!((0..n_x).all(right), "{bytes}");
            every_bit_is_random(&values[n_x..], 8 * bytes);
            // 2750 values of one byte: 11 are right by chance, with a standard deviation of 3.3.
            let chance = (n_x..n).filter(|&i| values[i][0] == programmed(0)[0]).count();
            assert!((1..40).contains(&chance), "{chance}");
            let zeros = (n_x..n).filter(|&i| values[i] == [0; 16]).count();
            assert!(zeros == 0 || bytes == 1 && zeros < 40, "{bytes}: {zeros} zeros");
        }
        every_bit_is_random(&parts(&views.0[0], 0xc2, bytes), 8 * bytes);
    }
}

#[test]
fn the_ideal_functionality_has_values_of_all_lengths() {
    let (all, bounds) = (inputs(500), Bounds { bytes: 3, ..whole(500, 200) });
    let ((values, ()), _) = run_pair(
        &ANY_SESSION,
        |cx| Opprf::receiver(&Ideal, cx, &all, bounds),
        |cx| Opprf::sender(&Ideal, cx, &all[..200], programmed, bounds),
    );
    assert!(values.iter().all(|value| value[3..] == [0; 13]));
    assert!((0..200).all(|i| values[i][..3] == programmed(i)[..3]));
    every_bit_is_random(&values[200..], 24);
}

/// They are refused before any message.
#[test]
fn more_keys_than_announced_are_a_bug() {
    let bug = |e: Option<Error>| assert!(matches!(e, Some(Error::Bug(_))), "{e:?}");
    let protocol = Programmed(crate::oprf::Ideal);
    let bounds = whole(2, 2);
    bug(with_frames(&[], |cx| Opprf::sender(&protocol, cx, &inputs(3), programmed, bounds)).err());
    bug(with_frames(&[], |cx| Opprf::receiver(&protocol, cx, &inputs(3), bounds)).err());
    let keys = |n| Secrets::from(inputs(n));
    bug(with_frames(&[], |cx| send_hint(cx, &keys(3), Secrets::zeros(3), bounds)).err());
    bug(with_frames(&[], |cx| send_hint(cx, &keys(3), Secrets::zeros(2), whole(3, 3))).err());
    bug(with_frames(&[], |cx| receive_hint(cx, &inputs(3), Secrets::zeros(2), whole(3, 3))).err());
    // More queries than bins.
    let in_bins = Programmed(bins::Ideal);
    bug(with_frames(&[], |cx| BinOpprf::receiver(&in_bins, cx, "points", &[[0; 16]; 3], bounds)).err());
    // Values of length 0, and of more than 16 bytes.
    for bytes in [0, 17] {
        let bounds = Bounds { bytes, ..whole(3, 3) };
        bug(with_frames(&[], |cx| send_hint(cx, &keys(3), Secrets::zeros(3), bounds)).err());
        bug(with_frames(&[], |cx| receive_hint(cx, &inputs(3), Secrets::zeros(3), bounds)).err());
    }
    // Equal keys.
    let equal = Secrets::from([inputs(1), inputs(1)].concat());
    bug(with_frames(&[], |cx| send_hint(cx, &equal, Secrets::from(vec![[1; 16], [2; 16]]), bounds)).err());
}

#[test]
fn messages_of_another_length_or_kind_are_refused() {
    let bounds = Bounds { bytes: 7, ..whole(3, 200) };
    let bytes = 7 * okvs::size(200);
    let good = [(0xc1, vec![7; 16]), (0xc2, vec![7; bytes])];
    for (i, name) in [(0, "seed of the hint"), (1, "hint of the programmable OPRF")] {
        let length = good[i].1.len();
        let mut forgeries: Vec<(u16, usize)> = [0, length - 1, length + 1, length + 7, length / 7 * 16]
            .map(|length| (good[i].0, length))
            .to_vec();
        forgeries.push((0x80, length));
        for (tag, length) in forgeries {
            let mut forged = good.clone();
            forged[i] = (tag, vec![7; length]);
            let forged: Vec<(u16, &[u8])> = forged.iter().map(|(tag, body)| (*tag, &body[..])).collect();
            let e = with_frames(&forged, |cx| receive_hint(cx, &inputs(3), Secrets::zeros(3), bounds))
                .err()
                .unwrap();
            let named = e.to_string().contains(name);
            assert!(matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }) && named, "{name}: {e}");
        }
    }
}
