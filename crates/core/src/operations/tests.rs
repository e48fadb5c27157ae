use super::id::{Identifier, Identifiers};
use super::sum::{Modulus, Sum};
use super::union::rows::New;
use super::*;
use crate::channel::Channel;
use crate::error::{Error, Fault};
use crate::group::curve25519::Curve25519;
use crate::group::ristretto255::Ristretto255;
use crate::hash::SessionId;
use crate::hashed::HashedSet;
use crate::item::ItemSet;
use crate::membership::cwprf::{BloomFilter, CwPrf, GolombTags};
use crate::membership::{ASK, Ideal, Mqrpmt};
use crate::operations::{COUNT, INTERSECT, SUM, UNION};
use crate::protocols::dh_psi;
use crate::protocols::{
    CM20, CWPRF, Choice, DC17, DH_PSI, KRTW19, KRTW19_PLAIN, OSN, POPRF, SIGMA_AHE, SIGMA_DH, VOLE, run,
};
use crate::rng::Prng;
use crate::testing::{Garble, Views, overlapping, run_pair, sizes, split_frames};
pub(crate) use crate::testing::{Kind, MAX_ROW, TERMS, is_krtw19, is_optional, kinds};
use std::collections::{BTreeSet, HashMap, HashSet};
use veilset_testing::Draw;

#[path = "bytes_tests.rs"]
mod bytes;
#[path = "dummies_tests.rs"]
mod dummies;
#[path = "refused_tests.rs"]
mod refused;

const SESSION: SessionId = SessionId::of([6; 32]);
const NO_PAYLOADS: &Items = &Items::new();

fn values_of(x: &ItemSet) -> Vec<i128> {
    (0..x.len() as i128).map(|i| (i * 7919 - 3000) * if i % 3 == 0 { -1 } else { 1 }).collect()
}

fn tasks<'a>(
    operation: &'static Operation,
    y: &'a ItemSet,
    x: &'a ItemSet,
    values: &'a [i128],
) -> [Part<'a>; 2] {
    let task = |role, set, values| Part {
        operation,
        role,
        choice: Choice::of(&CWPRF),
        set,
        values,
        payloads: NO_PAYLOADS,
        terms: TERMS,
    };
    [task(Role::Receiver, y, &[]), task(Role::Sender, x, values)]
}

/// A task whose set is not yet hashed.
#[derive(Clone, Copy)]
struct Part<'a> {
    operation: &'static Operation,
    role: Role,
    choice: Choice,
    set: &'a ItemSet,
    values: &'a [i128],
    payloads: &'a Items,
    terms: Terms,
}

impl Part<'_> {
    fn run<T>(&self, run: impl FnOnce(&Task) -> Result<T>) -> Result<T> {
        let &Part { operation, role, choice: Choice { group, .. }, set, values, payloads, terms } = self;
        let set = HashedSet::new(set);
        run(&Task { operation, role, group, set: &set, values, payloads, terms, filter: None })
    }
}

/// The announcement of an unpadded set.
fn announced(set: &ItemSet) -> Announced {
    Announced { size: set.len(), padded: false }
}

/// Runs one party over a membership test.
fn over<'a>(task: &Task<'a>, test: &dyn Mqrpmt, cx: &mut Context, n: usize) -> Result<Sealed<'a, Learned>> {
    match &task.operation.over_union {
        Some(by_union) => {
            let union = |task: &Task<'a>, cx: &mut Context, n| over(task, test, cx, n);
            (by_union.run)(&union, task, cx, n)
        }
        None => (task.operation.over_mqrpmt.as_ref().unwrap().run)(test, task, cx, n),
    }
}

fn run_over(protocol: &(impl Mqrpmt + Sync), [r, s]: [Part; 2]) -> ((Learned, Learned), Views) {
    run_pair(
        &SESSION,
        |cx| r.run(|t| over(t, protocol, cx, s.set.len())?.open(Confirmed::for_tests())),
        |cx| s.run(|t| over(t, protocol, cx, r.set.len())?.open(Confirmed::for_tests())),
    )
}

fn run_tasks([r, s]: [Part; 2]) -> ((Learned, Learned), Views) {
    run_pair(
        &SESSION,
        |cx| r.run(|t| run(r.choice.protocol, t, cx, announced(s.set))?.open(Confirmed::for_tests())),
        |cx| s.run(|t| run(s.choice.protocol, t, cx, announced(r.set))?.open(Confirmed::for_tests())),
    )
}

/// Returns a payload per item, with lengths from 0 up, if the terms have payloads.
fn payloads_of(x: &Items, terms: &Terms) -> Items {
    let payload = |i: usize| vec![i as u8; (i * 7) % 50];
    (0..if terms.payload { x.len() } else { 0 }).map(payload).collect()
}

/// The order of new items is the sender's secret, so compare them sorted.
pub(super) fn sorted(learned: Learned) -> Learned {
    match learned {
        Learned::New(new) => {
            let mut order: Vec<usize> = (0..new.items.len()).collect();
            order.sort_unstable_by_key(|&i| new.items.get(i));
            let sorted =
                |list: &Items| order.iter().filter(|&&i| i < list.len()).map(|&i| list.get(i)).collect();
            Learned::New(New { items: sorted(&new.items), payloads: sorted(&new.payloads) })
        }
        other => other,
    }
}

/// Shares are random, so they are added up, in the order of the sender's items. The shares of dummies must add up to zero.
fn opened(got: [Learned; 2], plain: &Learned) -> [Learned; 2] {
    let [Learned::Shares(r), Learned::Shares(s)] = &got else { return got };
    let Learned::Shares(plain) = plain else { panic!("{plain:?}") };
    let share::Beside::Order(order) = &s.beside else { panic!("the sender does not know the order") };
    assert!(r.shares.len() == s.shares.len() && r.width == s.width && r.sharing == s.sharing);
    let mut rows = vec![0; plain.shares.len()];
    for ((r, s), &at) in r.shares.chunks(r.width).zip(s.shares.chunks(s.width)).zip(order) {
        let sum: Vec<u8> = match r.len() {
            share::VALUE => {
                let number = |share: &[u8]| u64::from_le_bytes(share.try_into().unwrap());
                number(r).wrapping_add(number(s)).to_le_bytes().to_vec()
            }
            _ => r.iter().zip(s).map(|(r, s)| r ^ s).collect(),
        };
        match rows.chunks_mut(r.len()).nth(at as usize) {
            Some(row) => row.copy_from_slice(&sum),
            None => assert!(sum.iter().all(|&byte| byte == 0)),
        }
    }
    let zeros = vec![0; rows.len()];
    let items = (rows.len() / r.width) as u32;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..order.len() as u32));
    [
        Learned::Shares(share::Shares { shares: rows, ..r.clone() }),
        Learned::Shares(share::Shares {
            shares: zeros,
            beside: share::Beside::Order((0..items).collect()),
            ..s.clone()
        }),
    ]
}

/// Identifiers are random, so each is replaced by the plain computation's for the same item. They must be distinct, and equal
/// for equal items of both parties. The list must also hold the identifiers of this many dummies.
fn named(got: [Learned; 2], plain: [&Learned; 2], dummies: usize) -> [Learned; 2] {
    let got = opened(got, plain[0]);
    let [Learned::Identifiers(r), Learned::Identifiers(s)] = &got else { return got };
    let mut names: HashMap<Identifier, Identifier> = HashMap::new();
    for (got, plain) in [r, s].into_iter().zip(plain) {
        let Learned::Identifiers(plain) = plain else { panic!("{plain:?}") };
        assert_eq!(got.own.len(), plain.own.len());
        for (got, plain) in got.own.iter().zip(&plain.own) {
            assert_eq!(names.insert(*got, *plain).unwrap_or(*plain), *plain);
        }
    }
    assert_eq!(names.values().collect::<HashSet<_>>().len(), names.len());
    assert!(r.all == s.all && r.all.is_sorted());
    assert_eq!(r.all.iter().filter(|id| !names.contains_key(*id)).count(), dummies);
    [r, s].map(|got| {
        let own = got.own.iter().map(|id| names[id]).collect();
        let mut all: Vec<Identifier> = got.all.iter().filter_map(|id| names.get(id)).copied().collect();
        all.sort_unstable();
        Learned::Identifiers(Identifiers { own, all })
    })
}

fn tasks_of<'a>(
    (operation, choice, terms): &Kind,
    y: &'a ItemSet,
    x: &'a ItemSet,
    values: &'a [i128],
    payloads: &'a Items,
) -> [Part<'a>; 2] {
    let [mut r, mut s] = tasks(operation, y, x, values);
    (r.choice, s.choice, r.terms, s.terms) = (*choice, *choice, *terms, *terms);
    s.payloads = payloads;
    [r, s]
}

fn check(
    run: impl Fn([Part; 2]) -> ((Learned, Learned), Views),
    kinds: &[Kind],
    y: &ItemSet,
    x: &ItemSet,
    what: &str,
) {
    let values = values_of(x);
    for kind in kinds {
        let payloads = payloads_of(x, &kind.2);
        let [r, s] = tasks_of(kind, y, x, &values, &payloads);
        let (got_r, got_s) = run([r, s]).0;
        let [expected_r, expected_s] =
            (r.operation.plain)(&Inputs { y, x, values: &values, payloads: &payloads, terms: r.terms });
        let [got_r, got_s] = named([got_r, got_s], [&expected_r, &expected_s], 0);
        assert!((sorted(got_r), got_s) == (sorted(expected_r), expected_s), "{kind:?}, {what}");
    }
}

/// Overlaps of nothing, half and all of the smaller set, without duplicates.
fn overlaps(n_y: usize, n_x: usize) -> Vec<f64> {
    let mut overlaps = vec![0.0, 0.5, 1.0];
    overlaps.dedup_by_key(|overlap| (n_y.min(n_x) as f64 * *overlap).round() as usize);
    overlaps
}

#[test]
fn results_are_those_of_the_plain_computation() {
    let mut all = kinds();
    all.retain(|k| !is_krtw19(k.1.protocol));
    let over_dh: Vec<_> = all.iter().filter(|k| k.1 == Choice::of(&CWPRF)).copied().collect();
    let plain: Vec<_> = over_dh.iter().filter(|k| !k.2.both && !k.2.payload).copied().collect();
    // The first tier draws overlaps at each pair of sizes, and runs of each protocol and of each operation at each of them.
    let mut draw = Draw::new("plain computation");
    let mut some = |kinds: &[Kind]| -> Vec<Kind> {
        let places = || 0..kinds.len();
        let of_protocols = draw.of_each(1, places(), |&k| kinds[k].1.protocol.name);
        let of_operations = draw.of_each(1, places(), |&k| kinds[k].0.name);
        let drawn = BTreeSet::from_iter(of_protocols.into_iter().chain(of_operations));
        drawn.into_iter().map(|k| kinds[k]).collect()
    };
    // The first tier draws a few runs of many items.
    let mut few = Draw::new("plain computation of many items");
    for (n_y, n_x) in sizes(crate::ot::extension::FRAME) {
        let small = n_y < 100 && n_x < 100;
        for overlap in few.some(if small { 2 } else { 1 }, overlaps(n_y, n_x)) {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let what = format!("{n_y}, {n_x}, {overlap}");
            // Long rows of many items: each operation once, except for one overlap.
            let ideal = if small || overlap == 0.5 { &over_dh } else { &plain };
            check(|tasks| run_over(&Ideal, tasks), &some(ideal), &y, &x, &format!("ideal, {what}"));
            if small {
                check(run_tasks, &some(&all), &y, &x, &what);
                let bloom = CwPrf(Curve25519, BloomFilter);
                check(|tasks| run_over(&bloom, tasks), &some(&plain), &y, &x, &format!("bloom, {what}"));
            }
        }
    }
    let (y, x) = overlapping(crate::ot::extension::FRAME + 1, 300, 0.5);
    check(run_tasks, &few.some(2, plain), &y, &x, "more than a frame");
    let in_groups: Vec<_> =
        all.iter().filter(|k| k.0 == &COUNT && k.1.protocol == &CWPRF && !k.2.both).collect();
    assert_eq!(in_groups.len(), CWPRF.groups.len());
    check(run_tasks, &few.some(1, in_groups.into_iter().copied()), &y, &x, "more than a frame");
    let sigma: Vec<_> = all.iter().filter(|k| k.1.protocol == &SIGMA_DH && !k.2.payload).copied().collect();
    let (y, x) = overlapping(crate::membership::sigma::FRAME + 1, 300, 0.5);
    check(run_tasks, &some(&sigma), &y, &x, "frames of queries in count");
    check(run_tasks, &some(&sigma), &x, &y, "frames of queries in union");
    // Intersections with tags, with payload: several frames of rows, tags and points.
    let (y, x) = overlapping(9000, 700, 0.5);
    let others = [&CWPRF, &POPRF, &SIGMA_DH, &DC17];
    let by_tags = |k: &Kind| !others.contains(&k.1.protocol) && k.2.payload && k.2.both;
    let of_any_size = |k: &Kind| k.1.protocol.offer(k.0).unwrap().takes([9000; 2]);
    let by_tags: Vec<_> = all.into_iter().filter(|k| by_tags(k) && of_any_size(k)).collect();
    for (y, x) in few.some(1, [(&y, &x), (&x, &y)]) {
        check(run_tasks, &some(&by_tags), y, x, "frames");
    }
}

/// Groups that the entries of the protocols do not offer yet.
#[test]
fn results_in_another_group_are_those_of_the_plain_computation() {
    let mut all = kinds();
    all.retain(|k| [&CWPRF, &DH_PSI].map(Choice::of).contains(&k.1));
    let (over_dh, classic): (Vec<_>, Vec<_>) = all.into_iter().partition(|k| k.1.protocol == &CWPRF);
    // The first tier draws a run of each operation at each pair of sizes and each overlap.
    let mut draw = Draw::new("results in another group");
    let mut some = |kinds: &[Kind]| draw.of_each(1, kinds.iter().copied(), |k| k.0.name);
    let protocol = CwPrf(Ristretto255, GolombTags);
    let by_dh_psi = |[r, s]: [Part; 2]| {
        run_pair(
            &SESSION,
            |cx| r.run(|t| dh_psi::run::<Ristretto255>(t, cx, s.set.len())?.open(Confirmed::for_tests())),
            |cx| s.run(|t| dh_psi::run::<Ristretto255>(t, cx, r.set.len())?.open(Confirmed::for_tests())),
        )
    };
    for (n_y, n_x) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 40), (57, 33), (300, 700)] {
        for overlap in overlaps(n_y, n_x) {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let what = format!("{n_y}, {n_x}, {overlap}");
            check(|tasks| run_over(&protocol, tasks), &some(&over_dh), &y, &x, &what);
            check(by_dh_psi, &some(&classic), &y, &x, &what);
        }
    }
    // More than one frame.
    let (y, x) = overlapping(crate::membership::cwprf::FRAME + 1, 300, 0.5);
    check(|tasks| run_over(&protocol, tasks), &over_dh[..1], &y, &x, "frames");
    check(by_dh_psi, &classic[..1], &y, &x, "frames");
}

#[test]
fn unions_by_krtw19_are_those_of_the_plain_computation() {
    let mut all = kinds();
    all.retain(|k| is_krtw19(k.1.protocol));
    assert_eq!(all.len(), 10);
    let (y, x) = overlapping(57, 33, 0.5);
    check(run_tasks, &all, &y, &x, "all kinds");
    all.retain(|k| k.2.payload && k.2.both);
    for (n_y, n_x, overlap) in
        [(0, 0, 0.0), (0, 3, 0.0), (3, 0, 0.0), (1, 1, 1.0), (1, 1, 0.0), (1, 40, 1.0), (700, 300, 0.4)]
    {
        let (y, x) = overlapping(n_y, n_x, overlap);
        check(run_tasks, &all, &y, &x, &format!("{n_y}, {n_x}, {overlap}"));
    }
}

/// Values in the clear let the receiver of an aborted run test guesses of the sender's items.
#[test]
fn unions_by_krtw19_compare_in_the_clear_only_if_so_asked() {
    const VALUES_IN_THE_CLEAR: u16 = 0xa7;
    let (y, x) = overlapping(5, 4, 0.5);
    for (protocol, clear) in [(&KRTW19, false), (&KRTW19_PLAIN, true)] {
        let kind = (&UNION, Choice::of(protocol), TERMS);
        let (_, views) = run_tasks(tasks_of(&kind, &y, &x, &[], NO_PAYLOADS));
        assert_eq!(views.frames(0).iter().any(|frame| frame.0 == VALUES_IN_THE_CLEAR), clear, "{protocol}");
    }
}

#[test]
fn sums_of_extreme_values_are_exact() {
    let (y, x) = overlapping(4, 3, 1.0);
    for (modulus, most) in [(Modulus::Bits64, i128::from(i64::MAX) / 3), (Modulus::Bits128, i128::MAX / 3)] {
        for values in [[most; 3], [-most; 3], [most, -most, 0], [0; 3]] {
            let terms = Terms { modulus, min_count: 3, ..TERMS };
            let [mut r, mut s] = tasks(&SUM, &y, &x, &values);
            (r.terms, s.terms) = (terms, terms);
            let (_, learned) = run_over(&Ideal, [r, s]).0;
            assert_eq!(learned, Learned::Sum(Some(Sum { matches: 3, sum: values.iter().sum() })));
        }
        let least = if modulus == Modulus::Bits64 { i128::from(i64::MIN) / 3 } else { i128::MIN / 3 };
        assert!(!sum::fits(modulus, 3, &[most + 1]) && !sum::fits(modulus, 3, &[least - 1]));
        assert!(sum::fits(modulus, 3, &[least]));
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
        let [mut r, mut s] = tasks(&SUM, &y, &x, &values);
        (r.terms, s.terms) = (terms, terms);
        let ((r, s), views) = run_over(&Ideal, [r, s]);
        assert_eq!(r, Learned::Matches(3));
        assert_eq!(s, Learned::Sum(told.then_some(Sum { matches: 3, sum: 3 })));
        let last = split_frames(&views.0[1]).pop().unwrap();
        assert_eq!((last.0, last.1.len()), (0x53, 25));
        assert_eq!(last.1 == [0; 25], !told);
    }
}

#[test]
fn a_row_that_is_not_transferred_cannot_be_read() {
    // Union of equal sets: the receiver gets no row. Its view of the rows has no run of zeros in place of the padding, and
    // another run on the same sets gives other bytes.
    let (y, x) = overlapping(50, 50, 1.0);
    let rows = |seed: u8| {
        let [r, s] = tasks(&UNION, &y, &x, &[]);
        let (_, views) = run_pair(
            &SESSION,
            |cx| {
                *cx.rng = Prng::from_seed(&[seed; 32]);
                r.run(|t| over(t, &Ideal, cx, 50)?.open(Confirmed::for_tests()))
            },
            |cx| {
                *cx.rng = Prng::from_seed(&[seed + 1; 32]);
                s.run(|t| over(t, &Ideal, cx, 50)?.open(Confirmed::for_tests()))
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
    let mut text = String::from(
        "# What each party receives under fixed seeds, half of the smaller set in common: items of receiver and \
         sender, frames as tag:length, BLAKE3 of all bytes.\n# Written by VEILSET_BLESS=1 cargo test -p veilset \
         wire_bytes; a change is a new protocol version.\n",
    );
    // Optional protocols have a test of their own.
    let small =
        kinds().into_iter().filter(|kind| !is_optional(kind.1.protocol)).map(|kind| (kind, (130, 70)));
    // Enough items for the VOLE to use its code.
    let large = [((&INTERSECT, Choice::of(&VOLE), TERMS), (4000, 70))];
    for (kind, (n_y, n_x)) in small.chain(large) {
        let (y, x) = overlapping(n_y, n_x, 0.5);
        let (operation, choice, terms) = kind;
        let payloads = payloads_of(&x, &terms);
        let (_, views) = run_tasks(tasks_of(&kind, &y, &x, &values_of(&x), &payloads));
        for (party, role) in [Role::Receiver, Role::Sender].into_iter().enumerate() {
            let frames: Vec<String> =
                views.frames(party).iter().map(|(t, n)| format!("{t:#x}:{n}")).collect();
            let hash = blake3::hash(&views.0[party]);
            let both = if terms.both { " both" } else { "" };
            let payload = if terms.payload { " payload" } else { "" };
            let malicious = if terms.malicious_sender { " malicious-sender" } else { "" };
            let revealed = if terms.reveal_count { " reveal-count-to-sender" } else { "" };
            let values = if terms.shared_values { " values" } else { "" };
            let malicious = [malicious, revealed, values].concat();
            let name = format!("{operation} {choice}{malicious}{both}{payload} {n_y} {n_x} {role}");
            text += &format!("{name}: {} {hash}\n", frames.join(" "));
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
    assert!(matches!(matches(&[true, false, true], 1), Err(Error::Peer { fault: Fault::Misbehaved, .. })));
    // A client that sends the same item again and again.
    let (y, _) = overlapping(3, 0, 0.0);
    let again = [*HashedSet::new(&y).hash(0).as_bytes()];
    let [task, _] = tasks(&COUNT, &y, &y, &[]);
    let ((result, ()), _) = run_pair(
        &SESSION,
        |cx| task.run(|t| Ok(over(t, &Ideal, cx, 5)?.open(Confirmed::for_tests()))),
        |cx| (0..5).try_for_each(|_| cx.ch.tx.send(ASK, &again)),
    );
    assert!(matches!(result, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "{result:?}");
}

#[test]
fn a_sum_that_no_matches_can_have_is_refused() {
    let (y, x) = overlapping(9, 5, 0.6);
    let [r, s] = tasks(&SUM, &y, &x, &[1000; 5]);
    // 3 matches of 1000 make 3000. From byte 10 on, the change to the masked sum is at least 2^15.
    for at in [10, 16, 17, 24] {
        let ((_, result), _) = run_pair(
            &SESSION,
            |cx| {
                let (sink, source) = std::mem::replace(cx.ch, Channel::pair().0).into_halves();
                let garble = Garble { sink, tag: 0x53, at: Some(at) };
                *cx.ch = Channel::from_halves(Box::new(garble), source);
                r.run(|t| over(t, &Ideal, cx, 5)?.open(Confirmed::for_tests()))
            },
            |cx| {
                let sealed = s.run(|t| over(t, &Ideal, cx, 9)?.open(Confirmed::for_tests()));
                Ok(sealed)
            },
        );
        assert!(matches!(result, Err(Error::Peer { fault: Fault::Misbehaved, .. })), "byte {at}: {result:?}");
    }
}
