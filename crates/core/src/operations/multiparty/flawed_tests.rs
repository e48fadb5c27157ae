//! Flawed variants of the protocols: GNT23 as printed, and cheaper variants. The checks of `checked_tests.rs` distinguish each
//! of them from the real protocol.

use super::checked_tests::{Check, count_is_private, intersection_is_private, of_pair, union_is_private};
use super::coalition_tests::{in_all_worlds, worlds};
use super::count::{Count, Listed, bins};
use super::observed_tests::{
    AGAIN, BOUND, Log, New, Observed, Parts, Run, Tests, filled, generator, intersect, run, union_of,
};
use super::rows::opened;
use crate::ahe::shuffle::ShuffleShape;
use crate::channel::Message;
use crate::context::Context;
use crate::error::Result;
use crate::group::ristretto255::{Element, Key, Ristretto255};
use crate::group::{Group, Key as _};
use crate::hash::{ItemHash, part};
use crate::hashed::HashedSet;
use crate::hashing::cuckoo::CuckooTable;
use crate::item::ItemSet;
use crate::many::Many;
use crate::membership::conditional::{ConditionalOprf, FromMot};
use crate::membership::mot::{FromOt, MembershipOt};
use crate::membership::shared::{Batch, Sspmt};
use crate::okvs::Value;
use crate::oprf::Input;
use crate::oprf::programmable::{Bounds, Opprf};
use crate::secret::Secrets;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::{RistrettoPoint, Scalar};
use std::sync::{Arc, Mutex};

/// Asserts that a check fails with this finding.
fn fails(check: Check, at: &str) {
    let why = check.unwrap_err();
    assert!(why.contains(at), "{why}");
}

// ---- Encryptions of nothing.

/// A membership OT that changes its sender's offers.
struct Changed<F>(Observed<FromOt>, F);

impl<F: Fn(&mut Context, &mut [Vec<Vec<u8>>; 2])> MembershipOt for Changed<F> {
    fn sender(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        fill: impl Fn(usize, &mut [u8], &mut [u8]) + Sync,
    ) -> Result<()> {
        let mut offers = filled(shares.len(), width, fill);
        self.1(cx, &mut offers);
        self.0.sender(cx, shares, width, |i, v_0, v_1| {
            v_0.copy_from_slice(&offers[0][i]);
            v_1.copy_from_slice(&offers[1][i]);
        })
    }

    fn receiver(
        &self,
        cx: &mut Context,
        shares: Secrets<bool>,
        width: usize,
        take: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.0.receiver(cx, shares, width, take)
    }
}

/// Unions in which each owner changes its offers.
fn union_offering<F: Fn(&mut Context, &mut [Vec<Vec<u8>>; 2]) + Sync>(
    coalition: (usize, usize),
    change: impl Fn() -> F + Sync,
) -> Vec<Run<Option<New>>> {
    in_all_worlds(coalition, |number, sets| {
        run(number, sets, |many, set, parts| {
            let transfer = Changed(parts.transfer, change());
            union_of(many, set, (parts.tests, transfer))
        })
    })
}

/// A flaw of public code: a party that gets the dummy twice knows that it has both items.
#[test]
fn one_dummy_for_all_bins_shows_the_matches() {
    let one_dummy = || {
        |_: &mut Context, offers: &mut [Vec<Vec<u8>>; 2]| {
            let first = offers[0][0].clone();
            offers[0].fill(first);
        }
    };
    for honest in [1, 2] {
        // The result is correct.
        let runs = union_offering((3, honest), one_dummy);
        assert!(runs.iter().all(|run| run.leader.as_ref().unwrap().is_ok()));
        fails(union_is_private(&runs, honest), "equal: parts of ciphertexts");
    }
}

/// Two parties that both get the dummy of a bin know that both have its item, without knowing the item.
#[test]
fn one_dummy_for_all_offers_of_a_bin_shows_the_matches_of_two() {
    let one_for_all_offers = || {
        let dummies = Mutex::new(None);
        move |_: &mut Context, offers: &mut [Vec<Vec<u8>>; 2]| {
            let mut dummies = dummies.lock().unwrap();
            offers[0] = dummies.get_or_insert_with(|| offers[0].clone()).clone();
        }
    };
    let runs = union_offering((3, 2), one_for_all_offers);
    fails(union_is_private(&runs, 2), "equal: parts of ciphertexts");
}

// ---- GNT23 as printed.

/// Steps 3(c) and 3(d) of Figure 8 between two clients. P_t gets from P_i a value for the item of each bin through a
/// conditional OPRF under P_i's one key. P_t then uses this value as its keyword, and P_i the values of its items as its set.
struct AsPrinted {
    me: usize,
    tests: Tests,
    key: Key,
}

impl AsPrinted {
    /// Runs another test, with other items, in a session of its own.
    fn again<T>(
        &self,
        cx: &mut Context,
        which: usize,
        test: impl FnOnce(&mut Context) -> Result<T>,
    ) -> Result<T> {
        let session = cx.session;
        cx.session = part(&session, AGAIN[which]);
        let done = test(cx);
        cx.session = session;
        done
    }
}

impl Sspmt for AsPrinted {
    fn querier(
        &self,
        cx: &mut Context,
        batch: &Batch,
        table: &CuckooTable,
        items: &[Input],
    ) -> Result<Secrets<bool>> {
        let peer = self.tests.log.peer(cx);
        if peer == 0 {
            return self.tests.querier(cx, batch, table, items);
        }
        // 3(c). The printed condition, and a value for each bin.
        let shares = self.again(cx, 0, |cx| self.tests.querier(cx, batch, table, items))?;
        let query = |bin: usize, cx: &mut Context| match table.item(bin) {
            Some(item) => items[item],
            None => ItemHash::random(cx.rng),
        };
        let queries: Vec<ItemHash> = (0..table.bins()).map(|bin| query(bin, cx)).collect();
        let values = FromMot(FromOt::default()).receiver(cx, &queries, shares)?;
        self.tests.log.note(|notes| notes.evaluated.push((peer, values.to_vec())));
        // 3(d).
        let mut keywords = items.to_vec();
        for bin in 0..table.bins() {
            if let Some(item) = table.item(bin) {
                keywords[item] = ItemHash::of_item(&values[bin]);
            }
        }
        self.again(cx, 1, |cx| self.tests.querier(cx, batch, table, &keywords))
    }

    fn holder(&self, cx: &mut Context, batch: &Batch, set: &[Input]) -> Result<Secrets<bool>> {
        if self.me == 0 {
            return self.tests.holder(cx, batch, set);
        }
        // 3(c).
        let shares = self.again(cx, 0, |cx| self.tests.holder(cx, batch, set))?;
        FromMot(FromOt::default()).sender(cx, &self.key, shares)?;
        // 3(d).
        let values = Ristretto255::map_and_raise(set, &self.key).unwrap();
        let values: Vec<Input> = values.iter().map(|value| ItemHash::of_item(value.as_bytes())).collect();
        self.again(cx, 1, |cx| self.tests.holder(cx, batch, &values))
    }
}

fn union_as_printed(number: u8, sets: &[ItemSet]) -> Run<Option<New>> {
    run(number, sets, |many, set, parts| {
        let key = Key::random(&mut generator(number, 100 + many.me));
        let tests = AsPrinted { me: many.me, tests: parts.tests, key };
        union_of(many, set, (tests, parts.transfer))
    })
}

/// Step 3(c): two clients that hold the same item see whether a third has it.
#[test]
fn values_under_one_key_show_two_clients_what_a_third_has() {
    let runs = in_all_worlds((4, 1), union_as_printed);
    fails(union_is_private(&runs, 1), "equal: values of an honest party's function");
    // The number of equal values is the number of items that the two have and the third lacks.
    for run in &runs {
        let has = |party: usize, item: &[u8]| run.sets[party].iter().any(|own| own == item);
        let lacking = run.sets[2].iter().filter(|item| has(3, item) && !has(1, item)).count();
        let values =
            |party: usize| &run.notes[party].evaluated.iter().find(|(peer, _)| *peer == 1).unwrap().1;
        let equal = values(2).iter().filter(|value| values(3).contains(value)).count();
        assert_eq!(equal, lacking);
    }
}

/// Step 3(d): the keyword is in no set, so no row is ever replaced there, and the leader sees how many clients have an item.
#[test]
fn keywords_of_the_conditional_oprf_leave_every_row() {
    let runs = in_all_worlds((3, 2), union_as_printed);
    fails(union_is_private(&runs, 2), "rows: ");
    // In the worlds in which both clients have items that the leader lacks, these items appear twice.
    for run in &runs[1..] {
        let why = run.leader.as_ref().unwrap().as_ref().unwrap_err();
        assert!(why.contains("a row that should not be left"), "{why}");
    }
}

// ---- Shares that one party knows.

/// Tests whose holder reveals its shares: the querier has the bits, and the holder zeros.
struct InTheClear(Tests);

const SHOWN: Message<[u8; 1]> = Message::new(0x7021, "H->Q  shares of a test");

impl Sspmt for InTheClear {
    fn querier(
        &self,
        cx: &mut Context,
        batch: &Batch,
        table: &CuckooTable,
        items: &[Input],
    ) -> Result<Secrets<bool>> {
        let ours = self.0.querier(cx, batch, table, items)?;
        let theirs = cx.ch.rx.recv(SHOWN, ours.len())?;
        let bits = ours.iter().zip(&theirs).map(|(ours, theirs)| ours ^ (theirs[0] == 1));
        Ok(self.0.noted(cx, bits.collect()))
    }

    fn holder(&self, cx: &mut Context, batch: &Batch, set: &[Input]) -> Result<Secrets<bool>> {
        let ours = self.0.holder(cx, batch, set)?;
        cx.ch.tx.send(SHOWN, &ours.iter().map(|share| [u8::from(*share)]).collect::<Vec<_>>())?;
        Ok(self.0.noted(cx, vec![false; ours.len()]))
    }
}

#[test]
fn shares_that_are_not_random_are_found() {
    let runs = in_all_worlds((3, 1), |number, sets| {
        run(number, sets, |many, set, parts| union_of(many, set, (InTheClear(parts.tests), parts.transfer)))
    });
    assert!(runs.iter().all(|run| run.leader.as_ref().unwrap().is_ok()));
    fails(union_is_private(&runs, 1), "frequency: ");
}

// ---- Intersection over a star.

/// The cheaper intersection: a client's share of zero at x is the sum of the values of its pairs' keys at x, so one
/// programmable OPRF with the leader suffices.
fn star(many: &mut Many, set: &HashedSet, parts: Parts) -> Result<Option<Vec<bool>>> {
    const PAIR: Message<[u8; 32]> = Message::new(0x7020, "a key of a pair of clients");
    let me = many.me;
    let items = set.hashes(&(0..set.items().len() as u32).collect::<Vec<_>>());
    let keys = many.each(|other, cx| match (me, other) {
        (0, _) | (_, 0) => Ok(None),
        _ if me < other => {
            let key = cx.rng.bytes();
            cx.ch.tx.send(PAIR, &[key])?;
            Ok(Some((other, key)))
        }
        _ => Ok(Some((other, cx.ch.rx.recv(PAIR, 1)?[0]))),
    })?;
    let keys: Vec<(usize, [u8; 32])> = keys.into_iter().flatten().collect();
    parts.log.note(|notes| notes.keys.clone_from(&keys));
    let bounds = Bounds { receiver: BOUND, sender: BOUND, bytes: size_of::<Value>() };
    let sum = |values: &mut dyn Iterator<Item = Value>| {
        values.fold(Value::default(), |sum, value| std::array::from_fn(|i| sum[i] ^ value[i]))
    };
    if me > 0 {
        let share = |i: usize| sum(&mut keys.iter().map(|(_, key)| of_pair(key, &items[i])));
        many.each_with(vec![(0, ())], |_, (), cx| parts.opprf.sender(cx, &items, share, bounds))?;
        return Ok(None);
    }
    let values = many.each(|_, cx| parts.opprf.receiver(cx, &items, bounds))?;
    let total = |i: usize| sum(&mut values.iter().map(|values| values[i]));
    Ok(Some((0..items.len()).map(|i| total(i) == Value::default()).collect()))
}

/// The leader and a client see whether an item that the client lacks is in the honest party's set.
#[test]
fn zero_shares_of_pairs_show_what_a_client_lacks() {
    for (n, honest) in [(3, 1), (3, 2), (4, 3)] {
        let runs = in_all_worlds((n, honest), |number, sets| run(number, sets, star));
        // The result is correct.
        let real = intersect(9, &worlds(n, honest)[0]);
        assert_eq!(runs[0].leader, real.leader);
        fails(intersection_is_private(&runs, honest), "sums: ");
    }
    // If the leader is honest, the coalition of clients sees nothing.
    let runs = in_all_worlds((3, 0), |number, sets| run(number, sets, star));
    assert_eq!(intersection_is_private(&runs, 0), Ok(()));
}

// ---- A count for a leader that deviates.

/// The element that represents "lacks the item" in the test with this party, for this bin.
fn mark(party: usize, bin: usize) -> RistrettoPoint {
    G * Scalar::from(1 + 1000 * party as u64 + bin as u64)
}

/// A count whose leader offers another multiple of G in each test and bin, under Shuffle&Decrypt of this shape.
fn count_with_marks(number: u8, sets: &[ItemSet], shape: ShuffleShape) -> Run<Option<u64>> {
    run(number, sets, |many, set, parts| {
        let log: Arc<Log> = parts.log;
        let marked = |cx: &mut Context, offers: &mut [Vec<Vec<u8>>; 2]| {
            let peer = log.peer(cx);
            for (bin, row) in offers[1].iter_mut().enumerate() {
                let part = CompressedRistretto(row[32..].try_into().unwrap()).decompress().unwrap();
                row[32..].copy_from_slice((part + mark(peer, bin) - G).compress().as_bytes());
            }
        };
        let plain = |_: &mut Context, _: &mut [Vec<Vec<u8>>; 2]| ();
        let (transfer, tests) = (parts.transfer, parts.tests);
        let bounds = vec![BOUND; many.parties()];
        let Listed { setup, list, .. } = match many.me {
            0 => Count { tests, transfer: Changed(transfer, marked) }.list(many, set, &bounds)?,
            _ => Count { tests, transfer: Changed(transfer, plain) }.list(many, set, &bounds)?,
        };
        // Step 4, with this shape.
        let mut all = 0;
        let identities = |elements: &[Element]| {
            all += elements.iter().filter(|element| element.equals(&Element::IDENTITY)).count() as u64;
            Ok(())
        };
        opened(many, setup, (shape, &list), identities)?;
        Ok((many.me == 0).then_some(all))
    })
}

/// With fresh scalars, a leader recognises only the identities, even if it offers other elements. Without them it sees which
/// party was the last to lack each item.
#[test]
fn without_fresh_scalars_a_leader_that_deviates_sees_who_was_last_to_lack_an_item() {
    let known: Vec<[u8; 32]> =
        (1..3).flat_map(|party| (0..bins(&[BOUND])).map(move |bin| mark(party, bin).compress().0)).collect();
    let of =
        |shape: ShuffleShape| in_all_worlds((3, 2), |number, sets| count_with_marks(number, sets, shape));
    let blinded = of(ShuffleShape::blinded(bins(&[BOUND])));
    assert!(blinded.iter().all(|run| run.leader == Some(4)));
    assert_eq!(count_is_private(&blinded, 2, &known), Ok(()));
    let plain = of(ShuffleShape::new(bins(&[BOUND]), 1));
    assert!(plain.iter().all(|run| run.leader == Some(4)));
    fails(count_is_private(&plain, 2, &known), "equal: opened elements");
}
