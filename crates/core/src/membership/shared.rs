//! Private membership tests with shared output, in bins (batched SS-PMT; GNT23, Figure 11, for all bins of a table at once; the
//! construction is from circuit PSI: Pinkas, Schneider, Tkachenko and Yanai, "Efficient Circuit-Based PSI with Linear
//! Communication", EUROCRYPT 2019).
//!
//! The querier has its items in a cuckoo table ([`crate::hashing::cuckoo`]), and the holder has a set. For each bin they get
//! shares of one bit: whether the bin's item is in the holder's set. For an empty bin the bit is 0.
//!
//! 1. The holder draws a random target s_b for each bin b.
//! 2. With a programmable OPRF in bins ([`crate::oprf::programmable`]), the holder programs s_b at each of its items, in each
//!    of the item's three bins. The querier gets w_b at the item of each bin, or at a random query if the bin is empty. w_b is
//!    s_b if the holder has the item, and random otherwise.
//! 3. The parties run equality with shared output ([`crate::equality`]) on the first l bits of w_b and s_b.
//!
//! Security: semi-honest, like the programmable OPRF and the equality protocol. The querier sees w_b, which is random either
//! way: s_b is fresh, serves one bin, and the querier has one query there. The holder sees only the messages of both parts.
//! Each share of a bit is random by itself.
//!
//! A test errs if w_b equals s_b by chance (2^-l), or if two items have the same query (2^-128). So l is the error exponent
//! plus the logarithm of the number of tests in the run, rounded up to a multiple of 4 ([`Batch::bits`]). Targets and their
//! masks are cut to l bits, rounded up to bytes.
//!
//! Leakage: the number of bins, and the bound on the holder's set. The bins of an item are distinct, so the holder programs
//! exactly three points per item; where it has fewer items than the bound, it adds random points. The holder's memory
//! addresses, which depend on its items, are not protected.
//!
//! Cost for beta bins and m items: a VOLE of beta elements, 16 beta bytes to the holder; a store for 3 m keys, 3.6 m bytes to
//! the querier for each byte of a target; and equality of beta strings (`Compared::cost`). Memory: that of these parts; in
//! addition, for the querier up to 48 bytes per bin, and for the holder up to 32 per bin and 12 for each of the m items.

use crate::context::Context;
use crate::equality::nibbles::Nibbles;
use crate::equality::{Equality, MAX_BITS};
use crate::error::{Error, Result};
use crate::hashing::cuckoo::{CHOICES, CuckooTable, Functions};
use crate::okvs::Value;
use crate::oprf::Input;
use crate::oprf::bins::{FromVole, Query, query};
use crate::oprf::programmable::{BinOpprf, Bounds, Points, Programmed, Threefold};
use crate::ot::extension::WIDTH as BASE_OTS;
use crate::params::value_bits;
use crate::secret::Secrets;
use crate::vole::silent::Silent;
use crate::work::{Primitive, Step, Work};
use std::sync::LazyLock;

/// The purpose of the programmable OPRF.
const PURPOSE: &str = "SS-PMT in bins";

/// The public parameters of a batch of tests.
#[derive(Clone)]
pub struct Batch {
    /// The hash functions of the querier's table, and so the number of its bins. They must be chosen after both sets are fixed.
    pub functions: Functions,
    /// The maximum number of items of the holder.
    pub most: usize,
    /// The error exponent: the probability that any test of the run errs is at most 2^-`exponent`.
    pub exponent: u32,
    /// The number of tests in the run, in this batch and in others.
    pub comparisons: usize,
}

impl Batch {
    /// The length in bits of the strings compared, a multiple of 4.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are too many tests for the longest strings.
    pub fn bits(&self) -> Result<u32> {
        self.sizes().bits()
    }

    fn sizes(&self) -> Sizes {
        let Batch { ref functions, most, exponent, comparisons } = *self;
        Sizes { bins: functions.bins(), most, exponent, comparisons }
    }
}

/// The sizes of a batch, which determine its cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// The number of bins.
    pub(crate) bins: usize,
    /// The maximum number of items of the holder.
    pub(crate) most: usize,
    pub(crate) exponent: u32,
    pub(crate) comparisons: usize,
}

impl Sizes {
    /// The length in bits of the strings compared, as in [`Batch::bits`].
    fn bits(self) -> Result<u32> {
        let comparisons = self.comparisons.max(self.bins);
        let bits = value_bits(self.exponent, comparisons);
        match bits <= MAX_BITS {
            true => Ok(bits.next_multiple_of(4)),
            false => Err(Error::usage(format!(
                "{comparisons} comparisons at an error of 2^-{} need strings of {bits} bits, more than the maximum of \
                 {MAX_BITS}. Use smaller sets, or fewer parties",
                self.exponent
            ))),
        }
    }

    /// The bounds of the programmable OPRF: a query for each bin, and three points for each item of the holder.
    fn bounds(self) -> Result<Bounds> {
        let bytes = self.bits()?.div_ceil(8) as usize;
        Ok(Bounds { receiver: self.bins, sender: CHOICES * self.most, bytes })
    }
}

/// The cost of a batch. Pairs are for the querier and the holder.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    /// The steps of the batch, in order. The bytes include frame headers.
    pub(crate) steps: Vec<Step>,
    /// The number of rounds. The holder begins.
    pub(crate) rounds: usize,
    /// The maximum number of bytes that each party holds, including its shares.
    pub(crate) held: [usize; 2],
}

/// A protocol for batches of membership tests with shared output.
///
/// A session runs it once. To run it again, pass `part(session, ..)` ([`crate::hash::part`]) with a different name each
/// time.
pub trait Sspmt {
    /// Runs the querier. `table` holds `items` in bins, placed with the functions of the batch. Returns one share for each bin.
    fn querier(
        &self,
        cx: &mut Context,
        batch: &Batch,
        table: &CuckooTable,
        items: &[Input],
    ) -> Result<Secrets<bool>>;

    /// Runs the holder of `set`, whose items are distinct. Returns one share for each bin.
    fn holder(&self, cx: &mut Context, batch: &Batch, set: &[Input]) -> Result<Secrets<bool>>;
}

/// The protocol over a programmable OPRF in bins and a protocol for equality.
pub struct Compared<P, E> {
    /// The programmable OPRF.
    pub opprf: P,
    /// The equality protocol; the querier is its receiver.
    pub equality: E,
}

impl<P: BinOpprf, E: Equality> Sspmt for Compared<P, E> {
    fn querier(
        &self,
        cx: &mut Context,
        batch: &Batch,
        table: &CuckooTable,
        items: &[Input],
    ) -> Result<Secrets<bool>> {
        let bits = batch.bits()?;
        let queries = queries(cx, batch, table, items)?;
        // 2. w_b.
        let w = self.opprf.receiver(cx, PURPOSE, &queries, batch.sizes().bounds()?)?;
        // 3. Shares of whether it is s_b.
        self.equality.receiver(cx, &strings(&w), bits)
    }

    fn holder(&self, cx: &mut Context, batch: &Batch, set: &[Input]) -> Result<Secrets<bool>> {
        let bits = batch.bits()?;
        if set.len() > batch.most {
            return Err(Error::bug(format!(
                "a set of {} items where {} were announced",
                set.len(),
                batch.most
            )));
        }
        let bins = batch.functions.bins();
        // 1. s_b, drawn once the querier has sent the data of its bins.
        let mut rng = cx.rng.split();
        let s = LazyLock::new(move || {
            let mut s = Secrets::<Value>::zeros(bins);
            rng.fill(s.as_flattened_mut());
            s
        });
        // 2. The hint, with s_b at all points of bin b.
        let points = cx.threads.run(|| Threefold::new(&batch.functions, set));
        let bounds = batch.sizes().bounds()?;
        self.opprf.sender(cx, PURPOSE, &points, |i| s[points.point(i).bin as usize], bounds)?;
        drop(points);
        // 3. Shares of whether w_b is s_b.
        self.equality.sender(cx, &strings(&s), bits)
    }
}

impl Compared<Programmed<FromVole<Silent>>, Nibbles> {
    /// The cost of a batch of these sizes.
    pub(crate) fn cost(&self, sizes: Sizes) -> Result<Cost> {
        let (bits, bounds) = (sizes.bits()?, sizes.bounds()?);
        let Sizes { bins, most, .. } = sizes;
        let oprf = self.opprf.0.cost(bins, bounds.sender);
        let (there, back) = self.equality.traffic(bins, bits);
        let [w, hint] = bounds.held();
        let equality = self.equality.held(bins, bits);
        // The queries; then the maximum of the VOLE, of their keys and the hint, and of w twice during the comparison.
        let querier = 16 * bins + oprf.held[0].max(32 * bins + w).max(32 * bins + equality);
        // s; then the maximum of the bins of all items with the VOLE or with the hint, and of a second s during the comparison.
        let points = 12 * most + oprf.held[1].max(hint);
        let holder = 16 * bins + points.max(16 * bins + equality);
        let compared = Work::of(Primitive::BaseOt, BASE_OTS) + Work::of(Primitive::Compared, bins);
        let compared = Step::both(compared).sends(there as u64, back as u64);
        Ok(Cost {
            steps: [oprf.steps, bounds.steps(), vec![compared]].concat(),
            // The holder's first message of the comparison follows the hint.
            rounds: oprf.rounds + self.equality.rounds(bins, bits),
            held: [querier, holder],
        })
    }
}

/// The query of each bin: its item's query, or a random one if the bin is empty.
fn queries(cx: &mut Context, batch: &Batch, table: &CuckooTable, items: &[Input]) -> Result<Secrets<Query>> {
    let bins = batch.functions.bins();
    if table.bins() != bins {
        return Err(Error::bug(format!("a table of {} bins where {bins} were announced", table.bins())));
    }
    let mut queries = Secrets::<Query>::zeros(bins);
    cx.rng.fill(queries.as_flattened_mut());
    for (bin, own) in queries.iter_mut().enumerate() {
        if let Some(item) = table.item(bin) {
            *own = query(items.get(item).ok_or_else(|| Error::bug(format!("a table without item {item}")))?);
        }
    }
    Ok(queries)
}

/// The strings to compare, in the low bits of numbers.
fn strings(values: &[Value]) -> Secrets<u128> {
    Secrets::from(values.iter().map(|value| u128::from_le_bytes(*value)).collect::<Vec<_>>())
}

/// The ideal functionality, for testing its callers: the holder sends its set and its shares in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const SET: crate::channel::Message<[u8; 32]> =
    crate::channel::Message::new(0x7014, "H->Q  ideal SS-PMT, the set");
#[cfg(any(test, feature = "test-util"))]
const SHARES: crate::channel::Message<[u8; 1]> =
    crate::channel::Message::new(0x7015, "H->Q  ideal SS-PMT, the holder's shares");

#[cfg(any(test, feature = "test-util"))]
impl Sspmt for Ideal {
    fn querier(
        &self,
        cx: &mut Context,
        batch: &Batch,
        table: &CuckooTable,
        items: &[Input],
    ) -> Result<Secrets<bool>> {
        let set: std::collections::HashSet<[u8; 32]> = cx.ch.rx.recv(SET, batch.most)?.into_iter().collect();
        let shares = cx.ch.rx.recv(SHARES, batch.functions.bins())?;
        let is = |bin: usize| table.item(bin).is_some_and(|item| set.contains(items[item].as_bytes()));
        let own = shares.iter().enumerate().map(|(bin, theirs)| is(bin) ^ (theirs[0] == 1));
        Ok(Secrets::from(own.collect::<Vec<_>>()))
    }

    fn holder(&self, cx: &mut Context, batch: &Batch, set: &[Input]) -> Result<Secrets<bool>> {
        let mut all: Vec<[u8; 32]> = set.iter().map(|item| *item.as_bytes()).collect();
        all.resize_with(batch.most, || cx.rng.bytes());
        cx.ch.tx.send(SET, &all)?;
        let shares: Vec<bool> = (0..batch.functions.bins()).map(|_| cx.rng.below(2) == 1).collect();
        cx.ch.tx.send(SHARES, &shares.iter().map(|share| [u8::from(*share)]).collect::<Vec<_>>())?;
        Ok(Secrets::from(shares))
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
