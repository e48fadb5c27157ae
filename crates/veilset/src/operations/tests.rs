use super::sum::{Modulus, Sum, Terms};
use super::*;
use crate::channel::Message;
use crate::error::Error;
use crate::membership::Ideal;
use crate::membership::cwprf::{BloomFilter, CwPrf, GolombTags};
use crate::testing::{Garble, Views, overlapping, run_pair, sizes, split_frames};
use std::collections::HashSet;

const SESSION: SessionId = [6; 32];
const TERMS: Terms = Terms { modulus: Modulus::Bits64, min_count: 0 };
/// Large enough for the items of `overlapping`.
const MAX_ROW: usize = 3000;

fn values_of(x: &ItemSet) -> Vec<i128> {
    (0..x.len() as i128).map(|i| (i * 7919 - 3000) * if i % 3 == 0 { -1 } else { 1 }).collect()
}

fn tasks<'a>(operation: Operation, y: &'a ItemSet, x: &'a ItemSet, values: &'a [i128]) -> [Task<'a>; 2] {
    let task = |role, set, values| Task { operation, role, set, values, max_row: MAX_ROW, terms: TERMS };
    [task(Role::Receiver, y, &[]), task(Role::Sender, x, values)]
}

fn run_tasks(protocol: &(impl Mqrpmt + Sync), [r, s]: [Task; 2]) -> ((Learned, Learned), Views) {
    run_pair(
        |ch, rng| run(&r, protocol, ch, &SESSION, s.set.len(), rng)?.open(Confirmed(())),
        |ch, rng| run(&s, protocol, ch, &SESSION, r.set.len(), rng)?.open(Confirmed(())),
    )
}

/// The oracle: the operation on both sets in the clear.
fn plain(operation: Operation, y: &ItemSet, x: &ItemSet, values: &[i128]) -> (Learned, Learned) {
    let (in_y, in_x): (HashSet<&[u8]>, HashSet<&[u8]>) = (y.iter().collect(), x.iter().collect());
    let matches = in_y.intersection(&in_x).count();
    match operation {
        Operation::Intersect => {
            let matching = (0..y.len() as u32).filter(|&i| in_x.contains(y.get(i as usize))).collect();
            (Learned::Matching(matching), Learned::Nothing)
        }
        Operation::Union => {
            let mut new: Vec<&[u8]> = x.iter().filter(|i| !in_y.contains(i)).collect();
            new.sort_unstable();
            (Learned::New(new.iter().collect()), Learned::Nothing)
        }
        Operation::Count => {
            let count = count::Count { matches, union_size: in_y.union(&in_x).count() };
            (Learned::Count(count), Learned::Nothing)
        }
        Operation::Sum => {
            let sum = x.iter().zip(values).filter(|(i, _)| in_y.contains(i)).map(|(_, v)| v).sum();
            (Learned::Matches(matches as u64), Learned::Sum(Some(Sum { matches: matches as u64, sum })))
        }
    }
}

/// The order of new items is the sender's secret: compare them sorted.
fn sorted(learned: Learned) -> Learned {
    match learned {
        Learned::New(items) => {
            let mut items: Vec<&[u8]> = items.iter().collect();
            items.sort_unstable();
            Learned::New(items.iter().collect())
        }
        other => other,
    }
}

fn check(protocol: &(impl Mqrpmt + Sync), y: &ItemSet, x: &ItemSet, what: &str) {
    let values = values_of(x);
    for operation in Operation::ALL {
        let (r, s) = run_tasks(protocol, tasks(operation, y, x, &values)).0;
        assert!((sorted(r), s) == plain(operation, y, x, &values), "{operation}, {what}");
    }
}

#[test]
fn results_are_those_of_the_plain_computation() {
    for (n_y, n_x) in sizes(crate::ot::extension::FRAME) {
        for overlap in [0.0, 0.5, 1.0] {
            let (y, x) = overlapping(n_y, n_x, overlap);
            check(&Ideal, &y, &x, &format!("ideal, {n_y}, {n_x}, {overlap}"));
            if n_y < 100 && n_x < 100 {
                check(&CwPrf(GolombTags), &y, &x, &format!("cwprf, {n_y}, {n_x}, {overlap}"));
                check(&CwPrf(BloomFilter), &y, &x, &format!("bloom, {n_y}, {n_x}, {overlap}"));
            }
        }
    }
    let (y, x) = overlapping(crate::ot::extension::FRAME + 1, 300, 0.5);
    check(&CwPrf(GolombTags), &y, &x, "cwprf, more than a frame");
}

#[test]
fn sums_of_extreme_values_are_exact() {
    let (y, x) = overlapping(4, 3, 1.0);
    for (modulus, most) in [(Modulus::Bits64, i128::from(i64::MAX) / 3), (Modulus::Bits128, i128::MAX / 3)] {
        for values in [[most; 3], [-most; 3], [most, -most, 0], [0; 3]] {
            let terms = Terms { modulus, min_count: 3 };
            let [mut r, mut s] = tasks(Operation::Sum, &y, &x, &values);
            (r.terms, s.terms) = (terms, terms);
            let (_, learned) = run_tasks(&Ideal, [r, s]).0;
            assert_eq!(learned, Learned::Sum(Some(Sum { matches: 3, sum: values.iter().sum() })));
        }
        let too_much = most + 1;
        assert!(!sum::fits(modulus, 3, &[too_much]) && !sum::fits(modulus, 3, &[-too_much]));
        assert!(sum::fits(modulus, 3, &[most]) && sum::fits(modulus, 0, &[]));
    }
    assert!(!sum::fits(Modulus::Bits128, 2, &[i128::MIN]));
}

#[test]
fn below_the_minimum_count_the_sender_learns_nothing() {
    let (y, x) = overlapping(9, 5, 0.6);
    let values = [1; 5];
    for (min_count, told) in [(3, true), (4, false)] {
        let terms = Terms { min_count, ..TERMS };
        let [mut r, mut s] = tasks(Operation::Sum, &y, &x, &values);
        (r.terms, s.terms) = (terms, terms);
        let ((r, s), views) = run_tasks(&Ideal, [r, s]);
        assert_eq!(r, Learned::Matches(3));
        assert_eq!(s, Learned::Sum(told.then_some(Sum { matches: 3, sum: 3 })));
        let last = split_frames(&views.0[1]).pop().unwrap();
        assert_eq!((last.0, last.1.len()), (0x53, 25));
        assert_eq!(last.1 == [0; 25], !told);
    }
}

#[test]
fn message_sizes_depend_on_public_sizes_only() {
    let (n_y, n_x) = (40, 70);
    for operation in Operation::ALL {
        let mut seen = HashSet::new();
        // Overlap, lengths and values differ; the tags are looked at in membership::cwprf.
        for (overlap, stretch) in [(0.0, 0), (0.5, 0), (1.0, 0), (0.5, 2000)] {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let longer = |s: &ItemSet| -> ItemSet {
                s.iter().map(|i| [&i[..i.len().min(40)], &vec![1; stretch][..]].concat()).collect()
            };
            let (y, x) = (longer(&y), longer(&x));
            let values = vec![stretch as i128; n_x];
            let (_, views) = run_tasks(&CwPrf(GolombTags), tasks(operation, &y, &x, &values));
            let frames =
                [0, 1].map(|p| views.frames(p).into_iter().filter(|f| f.0 != 0x21).collect::<Vec<_>>());
            seen.insert(frames);
        }
        assert_eq!(seen.len(), 1, "{operation}");
    }
}

#[test]
fn byte_counts_are_those_of_the_formula() {
    let (n_y, n_x) = (300, 200);
    let (y, x) = overlapping(n_y, n_x, 0.5);
    let ot_setup = [128 * 64 + 6, 128 * 32 + 6 + 128 * 32 + 6];
    // Corrections: 22 trees, 256 rows.
    let corrections = 22 * 256 / 8 + 6;
    // At most 256 KiB of rows a frame.
    let rows = |width: usize| n_x * width + 6 * n_x.div_ceil((1 << 18) / width);
    for operation in Operation::ALL {
        let (_, views) = run_tasks(&CwPrf(GolombTags), tasks(operation, &y, &x, &values_of(&x)));
        let tags: usize = views.frames(0).iter().filter(|f| f.0 == 0x21).map(|f| f.1 + 6).sum();
        let to_sender = n_y * 32 + 6;
        let to_receiver = n_x * 32 + 6 + tags;
        let (more_to_receiver, more_to_sender) = match operation {
            Operation::Count => (0, 0),
            Operation::Intersect => (ot_setup[0] + rows(16), ot_setup[1] + corrections),
            Operation::Union => (ot_setup[0] + rows(MAX_ROW + 2), ot_setup[1] + corrections),
            Operation::Sum => (ot_setup[0] + n_x * 8 + 6, ot_setup[1] + corrections + 25 + 6),
        };
        assert_eq!(views.0[0].len(), to_receiver + more_to_receiver, "{operation} to receiver");
        assert_eq!(views.0[1].len(), to_sender + more_to_sender, "{operation} to sender");
        // t = 40 + 9 + 8 bits, 48 of them remainder.
        assert!((n_y * 49 / 8..n_y * 52 / 8).contains(&tags), "{tags}");
    }
}

#[test]
fn a_row_that_is_not_transferred_cannot_be_read() {
    // Union, everything in common: the receiver gets no row. What it sees of the rows has no run of zeros
    // where the padding is, and another run of the same sets shows other bytes.
    let (y, x) = overlapping(50, 50, 1.0);
    let rows = |seed: u8| {
        let [r, s] = tasks(Operation::Union, &y, &x, &[]);
        let (_, views) = run_pair(
            |ch, _| run(&r, &Ideal, ch, &SESSION, 50, &mut Prng::from_seed(&[seed; 32]))?.open(Confirmed(())),
            |ch, _| {
                run(&s, &Ideal, ch, &SESSION, 50, &mut Prng::from_seed(&[seed + 1; 32]))?.open(Confirmed(()))
            },
        );
        let frames = split_frames(&views.0[0]);
        frames.into_iter().filter(|f| f.0 == 0x41).flat_map(|f| f.1).collect::<Vec<u8>>()
    };
    let bytes = rows(1);
    assert_eq!(bytes.len(), 50 * (MAX_ROW + 2));
    let ones: u32 = bytes.iter().map(|b| b.count_ones()).sum();
    let mean = bytes.len() as f64 * 4.0;
    assert!((f64::from(ones) - mean).abs() < 6.0 * (mean / 2.0).sqrt(), "{ones} of {mean}");
    assert_ne!(bytes, rows(3));
}

#[test]
fn wire_bytes_are_those_of_the_snapshot() {
    let (y, x) = overlapping(130, 70, 0.5);
    let mut text = String::from(
        "# What each party receives under fixed seeds (130 and 70 items, half in common): frames as tag:length, \
         BLAKE3 of all bytes.\n# Written by VEILSET_BLESS=1 cargo test -p veilset wire_bytes; a change is a new \
         protocol version.\n",
    );
    for operation in Operation::ALL {
        let (_, views) = run_tasks(&CwPrf(GolombTags), tasks(operation, &y, &x, &values_of(&x)));
        for (party, role) in [Role::Receiver, Role::Sender].into_iter().enumerate() {
            let frames: Vec<String> =
                views.frames(party).iter().map(|(t, n)| format!("{t:#x}:{n}")).collect();
            let hash = blake3::hash(&views.0[party]);
            text += &format!("{operation} {role}: {} {hash}\n", frames.join(" "));
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/wire.txt");
    if std::env::var_os("VEILSET_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}

#[test]
fn more_matches_than_items_are_refused() {
    assert_eq!(matches(&[true, false, true], 2), Ok(2));
    assert!(matches!(matches(&[true, false, true], 1), Err(Error::Peer(_))));
    // A client that asks for the same item again and again.
    let (y, _) = overlapping(3, 0, 0.0);
    let repeat = |ch: &mut Channel| {
        let ask = Message::<[u8]>::new(0x7001, "ideal query");
        (0..5).try_for_each(|_| ch.tx.send_bytes(ask, y.get(0)))
    };
    let [task, _] = tasks(Operation::Count, &y, &y, &[]);
    let ((result, ()), _) = run_pair(
        |ch, rng| Ok(run(&task, &Ideal, ch, &SESSION, 5, rng)?.open(Confirmed(()))),
        |ch, _| repeat(ch),
    );
    assert!(matches!(result, Err(Error::Peer(_))), "{result:?}");
}

#[test]
fn a_sum_that_no_matches_can_have_is_refused() {
    let (y, x) = overlapping(9, 5, 0.6);
    let [r, s] = tasks(Operation::Sum, &y, &x, &[1000; 5]);
    // 3 matches of 1000 make 3000; from byte 10 on the masked sum changes by 2^15 and more.
    for at in [10, 16, 17, 24] {
        let ((_, result), _) = run_pair(
            |ch, rng| {
                let (sink, source) = std::mem::replace(ch, Channel::pair().0).into_halves();
                let garble = Garble { sink, tag: 0x53, at: Some(at) };
                run(&r, &Ideal, &mut Channel::from_halves(Box::new(garble), source), &SESSION, 5, rng)?
                    .open(Confirmed(()))
            },
            |ch, rng| Ok(run(&s, &Ideal, ch, &SESSION, 9, rng).and_then(|sealed| sealed.open(Confirmed(())))),
        );
        assert!(matches!(result, Err(Error::Peer(_))), "byte {at}: {result:?}");
    }
}
