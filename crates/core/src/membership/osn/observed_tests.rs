//! Runs that record everything a party computes, for the tests of leakage.

use super::tests::{SESSION, items};
use super::*;
use crate::hash::SessionId;
use crate::oprf::bins::{self, IdealKeys};
use crate::oprf::programmable::Bounds;
use crate::testing::{Views, run_pair};
use crate::vole;
use std::sync::{Arc, Mutex};

/// The record of a run.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// S: the query of each bin and w.
    pub(super) queries: Vec<Query>,
    pub(super) w: Vec<Value>,
    /// R: the value programmed at each point.
    pub(super) programmed: Vec<(BinPoint, Value)>,
    /// R's B and S's z, as they enter the comparison.
    pub(super) b: Vec<Query>,
    pub(super) z: Vec<Query>,
}

type Notes = Arc<Mutex<Seen>>;

/// An OPRF, programmable or not, that records its inputs and outputs. Without `bottoms`, it does not program the points of the
/// bottom item.
pub(super) struct Noting<F> {
    inner: F,
    notes: Notes,
    bottoms: bool,
}

/// The points before the bottom item's points.
struct Fewer<'a, P: ?Sized>(&'a P, usize);

impl<P: Points + ?Sized> Points for Fewer<'_, P> {
    fn count(&self) -> usize {
        self.1
    }

    fn point(&self, i: usize) -> BinPoint {
        self.0.point(i)
    }
}

impl<P: BinOpprf> BinOpprf for Noting<P> {
    fn receiver(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        queries: &[Query],
        bounds: Bounds,
    ) -> Result<Secrets<Value>> {
        let w = self.inner.receiver(cx, purpose, queries, bounds)?;
        let mut notes = self.notes.lock().unwrap();
        (notes.queries, notes.w) = (queries.to_vec(), w.to_vec());
        Ok(w)
    }

    fn sender(
        &self,
        cx: &mut Context,
        purpose: &'static str,
        points: &(impl Points + ?Sized),
        value: impl Fn(usize) -> Value + Sync,
        bounds: Bounds,
    ) -> Result<()> {
        let bottoms = if self.bottoms { 0 } else { bounds.receiver };
        let points = Fewer(points, points.count() - bottoms);
        let programmed = Mutex::new(vec![None; points.count()]);
        let noting = |i: usize| {
            let value = value(i);
            programmed.lock().unwrap()[i] = Some((points.point(i), value));
            value
        };
        self.inner.sender(cx, purpose, &points, noting, bounds)?;
        let programmed = programmed.into_inner().unwrap();
        self.notes.lock().unwrap().programmed = programmed.into_iter().map(Option::unwrap).collect();
        Ok(())
    }
}

pub(super) struct NotedKeys<K>(K, Notes);

impl<F: BinOprf> BinOprf for Noting<F> {
    type Keys = NotedKeys<F::Keys>;

    fn receiver(&self, cx: &mut Context, purpose: &'static str, queries: &[Query]) -> Result<Secrets<Value>> {
        self.notes.lock().unwrap().b = queries.to_vec();
        self.inner.receiver(cx, purpose, queries)
    }

    fn sender(&self, cx: &mut Context, purpose: &'static str, bins: usize) -> Result<Self::Keys> {
        Ok(NotedKeys(self.inner.sender(cx, purpose, bins)?, self.notes.clone()))
    }
}

impl<K: BinKeys> BinKeys for NotedKeys<K> {
    fn evaluate(&self, n: usize, point: impl Fn(usize) -> BinPoint + Sync) -> Result<Secrets<Value>> {
        let points: Vec<BinPoint> = (0..n).map(&point).collect();
        let mut notes = self.1.lock().unwrap();
        for at in &points {
            assert_eq!(at.bin as usize, notes.z.len(), "each z in the instance of its place");
            notes.z.push(at.query);
        }
        self.0.evaluate(n, point)
    }
}

/// An OPRF that hides nothing: the value is the query. If the comparison uses it, z goes to R in the clear.
pub(super) struct Clear;

impl BinOprf for Clear {
    type Keys = Clear;

    fn receiver(&self, _: &mut Context, _: &'static str, queries: &[Query]) -> Result<Secrets<Value>> {
        Ok(Secrets::from(queries.to_vec()))
    }

    fn sender(&self, _: &mut Context, _: &'static str, _: usize) -> Result<Clear> {
        Ok(Clear)
    }
}

impl BinKeys for Clear {
    fn evaluate(&self, n: usize, point: impl Fn(usize) -> BinPoint + Sync) -> Result<Secrets<Value>> {
        Ok(Secrets::from((0..n).map(|i| point(i).query).collect::<Vec<_>>()))
    }
}

/// Like [`Clear`], but the sender's values differ in the byte at this place.
pub(super) struct Off(pub(super) usize);

impl BinOprf for Off {
    type Keys = Off;

    fn receiver(&self, _: &mut Context, _: &'static str, queries: &[Query]) -> Result<Secrets<Value>> {
        Ok(Secrets::from(queries.to_vec()))
    }

    fn sender(&self, _: &mut Context, _: &'static str, _: usize) -> Result<Off> {
        Ok(Off(self.0))
    }
}

impl BinKeys for Off {
    fn evaluate(&self, n: usize, point: impl Fn(usize) -> BinPoint + Sync) -> Result<Secrets<Value>> {
        let mut values = Clear.evaluate(n, point)?;
        values.iter_mut().for_each(|value| value[self.0] ^= 1);
        Ok(values)
    }
}

/// An ideal OPRF in bins whose sender's key is kept.
#[derive(Default)]
pub(super) struct Kept(pub(super) Arc<Mutex<Option<IdealKeys>>>);

impl BinOprf for Kept {
    type Keys = IdealKeys;

    fn receiver(&self, cx: &mut Context, purpose: &'static str, queries: &[Query]) -> Result<Secrets<Value>> {
        bins::Ideal.receiver(cx, purpose, queries)
    }

    fn sender(&self, cx: &mut Context, purpose: &'static str, bins: usize) -> Result<IdealKeys> {
        let keys = bins::Ideal.sender(cx, purpose, bins)?;
        *self.0.lock().unwrap() = Some(keys.clone());
        Ok(keys)
    }
}

/// A run and its record.
pub(super) struct Run {
    pub(super) plan: Plan,
    pub(super) seen: Seen,
    pub(super) bits: Vec<bool>,
    pub(super) order: Vec<u32>,
    pub(super) views: Views,
}

/// The parts of a run.
pub(super) struct Parts<P, F> {
    pub(super) opprf: P,
    pub(super) oprf: F,
    /// Whether R programs the bottom item.
    pub(super) bottoms: bool,
}

/// The parts of the real protocol, over an ideal VOLE.
pub(super) fn real() -> Parts<Programmed<FromVole<vole::Ideal>>, FromVole<vole::Ideal>> {
    Parts { opprf: Programmed(FromVole::new(vole::Ideal)), oprf: FromVole::new(vole::Ideal), bottoms: true }
}

/// s of a run, and of the next run with the same generators.
pub(super) fn s_of_two(plan: Plan, (y, x): (&[Input], &[Input])) -> [Vec<Value>; 2] {
    let tests = [(); 2].map(|()| {
        let notes = Notes::default();
        let Parts { opprf, oprf, bottoms } = real();
        let opprf = Noting { inner: opprf, notes: notes.clone(), bottoms };
        (Osn { plan, opprf, oprf }, notes)
    });
    run_pair(
        &SESSION,
        |cx| tests.iter().try_for_each(|(tests, _)| tests.receiver(cx, y).map(drop)),
        |cx| tests.iter().try_for_each(|(tests, _)| tests.sender(cx, x, x.len()).map(drop)),
    );
    tests.map(|(_, notes)| s(&plan, &notes.lock().unwrap()))
}

/// s of each bin.
fn s(plan: &Plan, seen: &Seen) -> Vec<Value> {
    let mut s = vec![[0; 16]; plan.blocks.all_bins()];
    seen.programmed.iter().for_each(|(point, value)| s[point.bin as usize] = *value);
    s
}

impl Run {
    /// Runs both parties on these items, with generators of these seeds.
    pub(super) fn new<P: BinOpprf + Sync, F: BinOprf + Sync>(
        parts: Parts<P, F>,
        plan: Plan,
        (y, x): (&[Input], &[Input]),
        seeds: [u8; 2],
    ) -> Run {
        let notes = Notes::default();
        let Parts { opprf, oprf, bottoms } = parts;
        let opprf = Noting { inner: opprf, notes: notes.clone(), bottoms };
        let oprf = Noting { inner: oprf, notes: notes.clone(), bottoms };
        let tests = Osn { plan, opprf, oprf };
        let ((bits, order), views) = run_pair(
            &SESSION,
            |cx| tests.receiver(cx.under(Prng::from_seed(&[seeds[0]; 32])), y),
            |cx| tests.sender(cx.under(Prng::from_seed(&[seeds[1]; 32])), x, x.len()),
        );
        let seen = notes.lock().unwrap().clone();
        Run { plan, seen, bits: bits.to_vec(), order: order.to_vec(), views }
    }

    /// The blocks of the slots, with their numbers.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let items = self.plan.blocks.items;
        (0..self.plan.blocks.number).map(move |block| (block, block * items..(block + 1) * items))
    }

    /// s of each bin.
    pub(super) fn s(&self) -> Vec<Value> {
        s(&self.plan, &self.seen)
    }
}

/// The oracle that the coin toss of a run gave.
pub(super) fn tossed(run: &Run) -> Domain {
    let part = |party: usize, tag: u16| -> [u8; 32] {
        crate::testing::parts(&run.views.0[party], tag, 32)[0][..].try_into().unwrap()
    };
    // As in rpmt/bins.rs.
    let (of_r, of_s) = (part(1, 0xa3), part(0, 0xa2));
    let domain = Domain::new(&SESSION, "RPMT coin toss for the bin hash");
    let tossed = domain.hash(&[&0u64.to_le_bytes(), &of_r, &of_s]);
    Domain::new(&SessionId::of(tossed), "RPMT bin hash")
}

/// The functions that the coin toss of a run gave.
pub(super) fn functions_of(run: &Run) -> Functions {
    run.plan.functions(tossed(run)).unwrap()
}

/// A plan of several blocks for these sizes, at any cost.
pub(super) fn in_blocks(n_y: usize, n_x: usize, number: usize) -> Plan {
    let plan = Plan::new(40, n_y, n_x, 20);
    let blocks = crate::hashing::blocks::Blocks { number, levels: 10, items: 700.min(n_x * 2 / number + 60) };
    Plan { blocks, ..plan }
}

/// Sets of numbers as items, with `common` of them in both.
pub(super) fn sets(n_y: usize, n_x: usize, common: usize) -> (Vec<Input>, Vec<Input>) {
    (items(0, n_y), items(n_y - common, n_x))
}
