//! Reverse private membership tests of many items in cuckoo bins, from VOLE and oblivious switching. They are safe only in a
//! union: see below.
//!
//! The receiver R holds a set Y, the sender S a set X. S places X in a cuckoo table whose bins are grouped into blocks. In each
//! block it picks as many bins as the bound on the block's items: all full bins, and empty bins, which hold the bottom item.
//! The picked bins are in a secret random order, and R learns one bit per bin: whether its content is in Y or is the bottom
//! item. S learns nothing.
//!
//! 1. S compares R's sizes of the table with its own. They toss coins for the function that maps an item to its block and its
//!    three bins.
//! 2. S places its items, picks bins and routes the network of each block.
//! 3. An OPRF F in bins: S queries the content x_j of each bin and gets F_j(x_j). R sends a *hint* that programs F_j(y) + s_j
//!    for each y and each of its three bins j, and F_j(bottom) + s_j for every bin, with random s_j. So S has w_j, which is s_j
//!    if x_j is in Y or the bottom item, and random otherwise.
//! 4. Switching: R has the masks s_j, S the permutation pi. S gets D_i and R gets B_i with D_i + B_i = s_pi(i).
//! 5. An OPRF F' in bins in the other direction: R queries B_i. S has z_i = w_pi(i) + D_i, which is B_i if its bin matches, and
//!    sends a tag of F'_i(z_i). R compares it with its tag of F'_i(B_i).
//!
//! The design is ours. It combines padded bins (KRTW19), the OPRF of RR22 ([`crate::oprf::bins`]), the comparison of KRTW19,
//! and switching ([`crate::switching`]), which unions use since Garimella, Mohassel, Rosulek, Sadeghian and Singh ("Private Set
//! Operations from Oblivious Switching", PKC 2021).
//!
//! **Why all of this is needed.** R must learn neither the bin of an item of X nor how many items match in a group of bins.
//! - If R saw w_pi(i) + D_i + B_i, or z_i, it could compute w in the three bins of an item that is not in Y, which it gets in a
//!   union, and find the item's bin.
//! - If the empty bins of a block did not match, R would learn how many items of the block match.
//! - Hiding the function from R would not replace the secret order: if R saw which bins have items that are not in Y, it would
//!   know that an item of Y whose bins are all among these is not in X.
//!
//! `flawed_tests.rs` implements each of these variants and shows its leakage.
//!
//! **Only for a union.** The bits of a block show how many of its items do not match. R gets these items, and their block is
//! public, so a union reveals that number anyway. A count or an intersection does not.
//!
//! Security: semi-honest, like the OPRFs and the OT. The hint is random to S except at S's own points; there it is masked by
//! the s_j, of which S has only masked sums. S's queries are random to R. A tag equals R's own where the bit is 1, and is
//! random elsewhere, because R lacks F' there. The bits are at random places in the block. Leakage: the sizes; and, with
//! probability 2^-40, that items had to be placed again.
//!
//! Cost, with |X| = |Y| from some thousand items on: per bin a query, 3.2 to 3.8 values of the hint, and 8 to 11 switches;
//! per tested bin a query and a tag. Memory: about 90 bytes in R for each of 3 |Y| + T programmed points, where T is the
//! number of bins. Even if the sender announces too many items, R holds this only once 16 T bytes of queries have arrived,
//! and before that 100 MB for a part of the VOLE.
//!
//! **Timing.** The following is not hidden:
//! - S places its items between R's opening of the coin toss and its own message that they fit. It picks bins and routes before
//!   it sends its queries. The time and the memory addresses of all three depend on X.
//! - S decodes the hint at addresses that depend on X and on R's seed, before it answers the base OTs of the switches.
//! - S looks up w and the contents of slots in its secret order.
//! - R's time to solve for the hint depends slightly on Y.

mod plan;

pub use plan::Plan;

use super::rpmt::bins::agree;
use super::{BOTTOM, InBins};
use crate::channel::{Message, frames};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::Domain;
use crate::hashing::cuckoo::{CuckooTable, Functions};
use crate::okvs::Value;
use crate::oprf::Input;
use crate::oprf::bins::{BinKeys, BinOprf, BinPoint, FromVole, Query, query};
use crate::oprf::programmable::{BinOpprf, Points, Programmed, Threefold};
use crate::ot::{Security, extension};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::switching::BenesNetwork;
use crate::vole::silent::Silent;
use rayon::prelude::*;
use std::sync::LazyLock;
use subtle::{Choice, ConditionallySelectable};

/// Tags per frame.
const FRAME: usize = 1 << 13;
/// The depth of the OT extension's trees for the switches, chosen for fast networks: less work and more traffic than the
/// default.
const K: usize = 5;

const SIZES: Message<[u8; 24]> = Message::new(0xac, "R->S  sizes of the cuckoo table in blocks");
const TAGS: Message<[u8]> = Message::new(0xad, "S->R  tags of z, to be compared");

const OPPRF: &str = "switched tests, OPRF of the bins";
const SWITCHING: &str = "switched tests, OTs of the switches";
const COMPARISON: &str = "switched tests, OPRF of the comparison";

/// The tests of a plan, over a programmable OPRF and an OPRF in bins.
pub struct Osn<P, F> {
    plan: Plan,
    opprf: P,
    oprf: F,
}

impl Osn<Programmed<FromVole<Silent>>, FromVole<Silent>> {
    /// The tests of this plan over VOLE.
    pub fn new(plan: Plan) -> Self {
        let vole = || FromVole::new(Silent::default());
        Osn { plan, opprf: Programmed(vole()), oprf: vole() }
    }
}

impl<P: BinOpprf, F: BinOprf> InBins for Osn<P, F> {
    fn receiver(&self, cx: &mut Context, y: &[Input]) -> Result<Secrets<bool>> {
        let plan = &self.plan;
        if y.len() != plan.n_y {
            return Err(Error::bug(format!("{} items of {}", y.len(), plan.n_y)));
        }
        plan.announce(cx.ch);
        // 1. The function.
        cx.ch.tx.send(SIZES, &[plan.sizes()])?;
        let function = agree(cx, true, |function| Some(function.clone()))?;
        let functions = plan.functions(function)?;
        // 3. The hint, with s_j of all bins, drawn once S has sent the data of its bins.
        let mut rng = cx.rng.split();
        let s = LazyLock::new(move || {
            let mut s = Secrets::<Value>::zeros(plan.blocks.all_bins());
            rng.fill(s.as_flattened_mut());
            s
        });
        let points = cx.threads.run(|| Programming {
            items: Threefold::new(&functions, y),
            bottom: bottom(),
            bins: functions.bins(),
        });
        self.opprf.sender(cx, OPPRF, &points, |i| s[points.point(i).bin as usize], plan.bounds())?;
        drop(points);
        // 4. B.
        let mut ot = extension::Sender::setup(cx, SWITCHING, K, Security::SemiHonest)?;
        let mut b = plan.switching()?.masker(cx.ch, &mut ot, &s)?;
        drop((ot, s));
        // 5. The comparison.
        b.iter_mut().for_each(|value| *value = plan.cut(value));
        let own = self.oprf.receiver(cx, COMPARISON, &b)?;
        let mut bits = Secrets::with_capacity(own.len());
        for own in own.chunks(FRAME) {
            let tags = cx.ch.rx.recv_bytes(TAGS, plan.bytes * own.len())?;
            let differ = |(tag, own): (&[u8], &Value)| tag.iter().zip(own).fold(0, |d, (a, b)| d | (a ^ b));
            let equal = tags.chunks_exact(plan.bytes).zip(own).map(|pair| differ(pair) == 0);
            bits.extend(&Secrets::from(equal.collect::<Vec<_>>()));
        }
        Ok(bits)
    }

    fn sender(&self, cx: &mut Context, x: &[Input], real: usize) -> Result<Secrets<u32>> {
        let plan = &self.plan;
        plan.announce(cx.ch);
        // 1. The function, and 2. a placement by it.
        plan.compare(&cx.ch.rx.recv(SIZES, 1)?[0])?;
        let threads = cx.threads;
        let table = agree(cx, false, |function| {
            let functions = plan.functions(function.clone()).ok()?;
            threads.run(|| CuckooTable::new(&functions, x)).filter(|table| plan.fits(table))
        })?;
        // 2. The picked bins, in order, and the choices of all switches that bring their contents into this order.
        let network = plan.network()?;
        let Picked { from, choices } = threads.run(|| plan.pick(&network, &table, cx.rng))?;
        // 3. w.
        let queries = queries(&table, x, real);
        let w = self.opprf.receiver(cx, OPPRF, &queries, plan.bounds())?;
        drop(queries);
        // 4. D.
        let mut ot = extension::Receiver::setup(cx, SWITCHING, K, Security::SemiHonest)?;
        let mut z = plan.switching()?.permuter(cx.ch, &mut ot, &choices)?;
        drop((ot, choices));
        // 5. z, and the tags.
        for (z, &bin) in z.iter_mut().zip(from.iter()) {
            z.iter_mut().zip(w[bin as usize]).for_each(|(z, w)| *z ^= w);
            *z = plan.cut(z);
        }
        drop(w);
        let keys = self.oprf.sender(cx, COMPARISON, z.len())?;
        let mut first = 0;
        for n in frames(z.len(), FRAME) {
            let z = &z[first..first + n];
            let point = |i: usize| BinPoint { bin: (first + i) as u32, query: z[i] };
            let values = threads.run(|| keys.evaluate(n, point))?;
            let mut tags = Secrets::zeros(plan.bytes * n);
            let both = tags.chunks_exact_mut(plan.bytes).zip(values.iter());
            both.for_each(|(tag, value)| tag.copy_from_slice(&value[..plan.bytes]));
            cx.ch.tx.send_bytes(TAGS, &tags)?;
            first += n;
        }
        let content = |&bin: &u32| table.item(bin as usize).map_or(BOTTOM, |item| item as u32);
        Ok(Secrets::from(from.iter().map(content).collect::<Vec<_>>()))
    }
}

impl Plan {
    /// 1. R's sizes, for S to compare: they come from floating-point arithmetic, which may differ between machines.
    fn sizes(&self) -> [u8; 24] {
        let all =
            [self.blocks.number, self.blocks.bins(), self.blocks.items].map(|n| (n as u64).to_le_bytes());
        std::array::from_fn(|i| all[i / 8][i % 8])
    }

    /// Compares R's sizes with ours.
    fn compare(&self, theirs: &[u8; 24]) -> Result<()> {
        if *theirs == self.sizes() {
            return Ok(());
        }
        let [number, bins, items] = [0, 1, 2].map(|i| u64::from_le_bytes(theirs.as_chunks().0[i]));
        Err(Error::misbehaves(format!(
            "it has {number} blocks of {bins} bins for {items} items each, where we have {} of {} for {}",
            self.blocks.number,
            self.blocks.bins(),
            self.blocks.items
        )))
    }

    /// The functions that map an item to its block and its three bins.
    fn functions(&self, function: Domain) -> Result<Functions> {
        Functions::in_blocks(function, self.blocks.number, self.blocks.bins())
    }

    /// Whether no block has more items than its bound.
    fn fits(&self, table: &CuckooTable) -> bool {
        (0..self.blocks.number).all(|block| {
            let bins = block * self.blocks.bins()..(block + 1) * self.blocks.bins();
            bins.filter(|&bin| table.item(bin).is_some()).count() <= self.blocks.items
        })
    }

    /// 2. Picks as many bins in each block as the bound on its items, in a secret order.
    ///
    /// # Errors
    /// [`Error::Bug`] for a block with more items than the bound, some of which would be lost.
    fn pick(&self, network: &BenesNetwork, table: &CuckooTable, rng: &mut Prng) -> Result<Picked> {
        if !self.fits(table) {
            return Err(Error::Bug("a block with more items than its bound".into()));
        }
        let (bins, items) = (self.blocks.bins(), self.blocks.items);
        let mut from = Secrets::<u32>::zeros(self.blocks.all_items());
        let mut choices = Secrets::<bool>::zeros(self.blocks.number * network.switches());
        let rng = rng.split();
        let blocks = from
            .par_chunks_exact_mut(items)
            .zip(choices.par_chunks_exact_mut(network.switches()))
            .enumerate();
        blocks.try_for_each(|(block, (from, choices))| -> Result<()> {
            let mut rng = rng.fork(block as u64);
            let full = (0..bins).map(|bin| table.item(block * bins + bin).is_some()).collect::<Vec<_>>();
            let order = picked(&Secrets::from(full), items, &mut rng);
            choices.copy_from_slice(&network.route(&order)?);
            from.iter_mut().zip(order.iter()).for_each(|(from, bin)| *from = (block * bins) as u32 + bin);
            Ok(())
        })?;
        Ok(Picked { from, choices })
    }
}

/// The picked bins, in order, and the choices of all switches that bring their contents into this order.
struct Picked {
    from: Secrets<u32>,
    choices: Secrets<bool>,
}

/// A permutation of the bins of a block. The first `items` are all full bins and random empty ones, in random order.
fn picked(full: &[bool], items: usize, rng: &mut Prng) -> Secrets<u32> {
    // The full bins in random order, and then the empty ones.
    let random = rng.permutation(full.len());
    let are = |is_full| random.iter().copied().filter(move |&bin| full[bin as usize] == is_full);
    let mut order = Secrets::<u32>::zeros(full.len());
    order.iter_mut().zip(are(true).chain(are(false))).for_each(|(place, bin)| *place = bin);
    // The first `items` are shuffled, so that a full bin is equally likely at any of these places.
    let places = rng.permutation(items);
    let first = Secrets::from(order[..items].to_vec());
    places.iter().zip(first.iter()).for_each(|(&place, &bin)| order[place as usize] = bin);
    order
}

/// The query of the content of each bin. From number `real` on, items are dummies and count as the bottom item.
fn queries(table: &CuckooTable, x: &[Input], real: usize) -> Secrets<Query> {
    let of_bottom = bottom();
    let of_bin = |bin| match table.item(bin) {
        None => of_bottom,
        // No branch depends on whether the item is a dummy.
        Some(item) => {
            Query::conditional_select(&query(&x[item]), &of_bottom, Choice::from(u8::from(item >= real)))
        }
    };
    Secrets::from((0..table.bins()).map(of_bin).collect::<Vec<_>>())
}

/// The points that R programs: each item in its three bins, and the bottom item in all bins.
struct Programming<'a> {
    items: Threefold<'a>,
    bottom: Query,
    bins: usize,
}

impl Points for Programming<'_> {
    fn count(&self) -> usize {
        self.items.count() + self.bins
    }

    fn point(&self, i: usize) -> BinPoint {
        match i.checked_sub(self.items.count()) {
            None => self.items.point(i),
            Some(bin) => BinPoint { bin: bin as u32, query: self.bottom },
        }
    }
}

/// The query of the bottom item.
fn bottom() -> Query {
    query(&Input::from_bytes(Domain::without_session("the bottom item of switched tests").hash(&[])))
}

#[cfg(test)]
mod flawed_tests;
#[cfg(test)]
mod observed_tests;
#[cfg(test)]
mod tests;
