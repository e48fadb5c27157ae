//! Union of several parties: the leader learns the items of all parties, but not which or how many parties have them (GNT23
//! 4, Figure 8, corrected). GNT23: Jiahui Gao, Son Nguyen, Ni Trieu, "Toward A Practical Multi-party Private Set Union",
//! PoPETs 2024.
//!
//! Each row of a party P_i other than the leader travels from party to party as ciphertexts under a joint key. Each party
//! before P_i replaces it by an encryption of nothing if it has the item, without learning whether it does. So among the
//! parties that have an item, only the first keeps its row. Finally all parties remove their keys and permute.
//!
//! 1. All parties agree on hash functions and a joint key (`setup.rs`).
//! 2. P_i places its items in a cuckoo table. With each P_j before it, it runs a membership test with shared output
//!    for each bin ([`crate::membership::shared`]): P_i has the item of the bin, P_j its set.
//! 3. P_i encrypts the row of each bin, and "nothing" for an empty bin. For j = 2, ..., i - 1, and then 1: P_i re-randomises
//!    its rows, and a membership OT ([`crate::membership::mot`]) hands P_j either this row or, if P_j has the item, a fresh
//!    encryption of nothing. P_j, unless it is P_1, re-randomises the received row and returns it. Malformed ciphertexts
//!    become encryptions of nothing on the way (`rows.rs`).
//! 4. P_1 has the rows of all owners. All parties run Shuffle&Decrypt ([`crate::ahe::shuffle`]). P_1 adds the rows
//!    that are not empty to its own.
//!
//! Security: semi-honest, against any coalition of n - 1 parties, under the assumptions of the parts. Each ciphertext that
//! leaves a party has fresh randomness of that party, so none equals another that the receiver knows. A coalition without P_1
//! lacks a key. To a coalition with P_1, the list that an honest party passes on is a fresh one, of rows that follow from the
//! result.
//!
//! Leakage: the bounds on all sets. P_1 learns the union. Cost, for beta bins of P_i and k elements in a row: for each pair,
//! a membership test of beta bins and a membership OT of rows of 64 k bytes, and beta rows back from P_j unless it is P_1;
//! then beta rows from each party to the next.
//!
//! Departures from the paper, and properties that must be preserved (docs/corrections.md):
//! - tests are on the items themselves. The values of the paper's conditional OPRF show two clients with the same
//!   item whether a third has it;
//! - the paper offers the row under a keyword that is random exactly if the item is there, so it never replaces a
//!   row;
//! - the encryption of nothing is fresh for each row and each offer, also for the bins without an item. With one encryption
//!   for all, P_j would see equal ciphertexts exactly where it has the item;
//! - all ciphertexts of a row are replaced together, and the rows of all owners are shuffled as one list;
//! - equal items have equal rows: a row holds the item and its length, and nothing else.

use super::rows::{accept, forged, give_back, offer, opened, take_back};
use super::setup::Setup;
use super::{Hop, relay};
use crate::ahe::elgamal::{Ciphertext, FirstMalformed, PublicKey};
use crate::ahe::shuffle::ShuffleShape;
use crate::context::Context;
use crate::error::{Error, Result, Seat};
use crate::group::encoding::{self, DecodedRows, Row};
use crate::hashed::HashedSet;
use crate::hashing::cuckoo::{CuckooTable, Functions};
use crate::item::Items;
use crate::many::Many;
use crate::membership::mot::MembershipOt;
use crate::membership::shared::{Batch, Sizes, Sspmt};
use crate::operations::Sealed;
use crate::operations::row::Layout;
use crate::oprf::Input;
use crate::params::{LAMBDA, share};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::threads::Threads;

/// False tests and wrongly decoded rows share the error of the run.
const EXPONENT: u32 = share(LAMBDA, 2);

/// The public parameters of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Public {
    /// The bound on each party's set.
    bounds: Vec<usize>,
    /// The most bytes of an item.
    pub(super) max_row: usize,
    /// The number of bins of each party; 0 for P_1.
    bins: Vec<usize>,
}

impl Public {
    /// Returns the parameters for parties with these bounds on their sets, and items of up to `max_row` bytes.
    pub fn new(bounds: Vec<usize>, max_row: usize) -> Public {
        let owners = bounds.len().saturating_sub(1);
        let bins = bounds.iter().enumerate().map(|(party, bound)| match party {
            0 => 0,
            _ => super::bins(*bound, owners),
        });
        Public { max_row, bins: bins.collect(), bounds }
    }

    pub(super) fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    pub(super) fn layout(&self) -> Layout<1> {
        Layout::new(self.max_row)
    }

    /// The number of ciphertexts of a row.
    pub(super) fn k(&self) -> usize {
        encoding::points(self.layout().width())
    }

    /// The number of bins of a party other than P_1.
    pub(super) fn bins(&self, party: usize) -> usize {
        self.bins[party]
    }

    /// The number of rows of all parties other than P_1.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are more rows than can be permuted, or decoded within the error of the run.
    pub(super) fn rows(&self) -> Result<usize> {
        let rows = self.bins.iter().sum();
        let elements = usize::saturating_mul(rows, self.k());
        match u32::try_from(rows).is_ok() && encoding::error_exponent(elements) >= EXPONENT {
            true => Ok(rows),
            false => Err(Error::usage(format!(
                "the sets of all but the leader make {rows} rows, more than this version supports. Use smaller sets, or \
                 fewer parties"
            ))),
        }
    }

    /// Returns the end of each party's ciphertexts in P_1's list.
    fn ends(&self) -> Vec<usize> {
        let ends = self.bins.iter().scan(0, |end, bins| {
            *end += bins * self.k();
            Some(*end)
        });
        ends.collect()
    }

    /// The common parameters of the holder and the owner of these functions for their tests.
    fn batch(&self, functions: Functions, holder: usize) -> Batch {
        let comparisons = self.comparisons();
        Batch { functions, most: self.bounds[holder], exponent: EXPONENT, comparisons }
    }

    /// The number of tests of the run: each party's bins are tested with each party before it.
    fn comparisons(&self) -> usize {
        self.bins.iter().enumerate().map(|(party, bins)| party * bins).sum()
    }

    /// The sizes of the tests of these two parties.
    pub(super) fn sizes(&self, owner: usize, holder: usize) -> Sizes {
        let (bins, most) = (self.bins(owner), self.bounds[holder]);
        Sizes { bins, most, exponent: EXPONENT, comparisons: self.comparisons() }
    }
}

/// The protocol over a membership test with shared output and a membership OT.
pub struct Union<T, M> {
    /// The membership test with shared output.
    pub tests: T,
    /// The membership OT.
    pub transfer: M,
}

/// The initial state of a party other than P_1: its table, and the try at which it was made.
struct Owner {
    table: CuckooTable,
    number: u64,
}

/// The result of a step with another party.
struct Visit {
    /// The rows that P_1 keeps. Malformed ones are detected when it shuffles them.
    rows: Vec<Ciphertext>,
    /// The position of the first malformed ciphertext in the rows that we received and returned.
    malformed: FirstMalformed,
}

/// The state shared by all steps of a party.
struct Party<'r> {
    me: usize,
    setup: &'r Setup,
    joint: &'r PublicKey,
    hashes: &'r [Input],
    public: &'r Public,
}

impl<T: Sspmt + Sync, M: MembershipOt + Sync> Union<T, M> {
    /// Runs one party with its set, which is at most as large as its bound. Returns to the leader the items that only others
    /// have, and `None` to the others.
    ///
    /// # Errors
    /// [`Error::Usage`] for sets that are too large for the number of parties, and the errors of all operations.
    pub fn run<'a>(
        &self,
        many: &mut Many,
        set: &'a HashedSet<'a>,
        public: &Public,
    ) -> Result<Sealed<'a, Option<Items>>> {
        super::check(many, &public.bounds)?;
        let (me, items, all) = (many.me, set.items(), public.rows()?);
        // The leader's items are in no row.
        if me > 0 {
            public.layout().check(items.iter().map(|item| [item.len()]))?;
        }
        let hashes = super::hashed(many, set);
        // 1. Functions and keys.
        let setup = Setup::agree(many)?;
        let party = &Party { me, setup: &setup, joint: &setup.joint, hashes: &hashes, public };
        // 2. P_i places its items in a table, and 3. encrypts the row of each bin.
        let owner = match me {
            0 => None,
            _ => Some(many.threads.run(|| Owner::new(party))?),
        };
        let rows = owner.as_ref().map_or_else(Vec::new, |owner| {
            let rng = &mut many.rng.split();
            many.threads.run(|| party.encrypted(&owner.table, items, rng))
        });
        // The rows visit P_2 to P_(i-1), and then P_1.
        let (mut hops, _) = relay(rows, (1..me).chain((me > 0).then_some(0)))?;
        let steps = many.others().map(|party| (party, hops.remove(&party))).collect();
        let received = many.each_with(steps, |other, hop, cx| match (&owner, hop) {
            (Some(owner), Some(hop)) => self.offer(cx, party, owner, (other, hop)),
            _ => self.visited(cx, party, other),
        })?;
        // 4. Shuffle&Decrypt of all rows that P_1 has.
        let (threads, layout) = (many.threads, public.layout());
        let list: Vec<Ciphertext> = received.iter().flat_map(|visit| &visit.rows).copied().collect();
        let (mut frames, ends) = (Vec::new(), public.ends());
        let malformed = opened(many, setup, (ShuffleShape::new(all, public.k()), &list), |elements| {
            frames.push(threads.run(|| encoding::decode(elements, layout.width())));
            Ok(())
        })?;
        // Deferred, because the time to read the rows depends on how many are not empty, and so that time does not reveal
        // who forged one.
        let threads = threads.clone();
        let offered: Vec<_> = many.others().zip(received.iter().map(|visit| visit.malformed)).collect();
        Ok(Sealed::new(move || {
            let offered = offered.iter().find(|(_, malformed)| malformed.position().is_some());
            let listed = malformed.position().map(|at| ends.partition_point(|end| *end <= at));
            match offered.map(|(owner, _)| *owner).or(listed) {
                Some(owner) => Err(forged(owner)),
                None if me == 0 => read(&threads, &frames, layout, set).map(Some),
                None => Ok(None),
            }
        }))
    }

    /// P_i's step with a party before it.
    fn offer(
        &self,
        cx: &mut Context,
        party: &Party,
        owner: &Owner,
        (other, hop): (usize, Hop<Vec<Ciphertext>>),
    ) -> Result<Visit> {
        let joint = party.joint;
        // 2. Shares of whether P_j has the item of each bin.
        cx.ch.tx.send(super::TRY, &[owner.number])?;
        let functions = party.setup.functions(party.me, party.public.bins(party.me), owner.number)?;
        let batch = party.public.batch(functions, other);
        let shares = self.tests.querier(cx, &batch, &owner.table, party.hashes)?;
        // 3. The rows, with randomness that no party has seen, or a fresh encryption of nothing for each row and each offer.
        let rows = hop.from.take()?;
        let rng = &mut cx.rng.split();
        let nothing = cx.threads.run(|| joint.encrypt_zero(rows.len(), rng));
        offer(cx, &self.transfer, shares, [&nothing, &rows])?;
        // P_j returns them re-randomised, and P_i re-randomises them again before it passes them on.
        if other > 0 {
            hop.to.put(take_back(cx, joint, rows.len())?)?;
        }
        Ok(Visit { rows: Vec::new(), malformed: FirstMalformed::NONE })
    }

    /// P_j's step with an owner after it.
    fn visited(&self, cx: &mut Context, party: &Party, owner: usize) -> Result<Visit> {
        let Party { me, joint, public, .. } = *party;
        // 2. Shares of whether we have the item of each bin.
        let number = cx.ch.rx.recv(super::TRY, 1)?[0];
        let functions = party.setup.announced(owner, public.bins(owner), number)?;
        let shares = self.tests.holder(cx, &public.batch(functions, me), party.hashes)?;
        // 3. The row, or nothing if we have the item.
        let rows = accept(cx, &self.transfer, shares, public.k())?;
        if me > 0 {
            let malformed = give_back(cx, joint, &rows)?;
            return Ok(Visit { rows: Vec::new(), malformed });
        }
        Ok(Visit { rows, malformed: FirstMalformed::NONE })
    }
}

impl Owner {
    fn new(party: &Party) -> Result<Owner> {
        let Party { me, public, hashes, .. } = *party;
        let (table, number) = party.setup.table(me, public.bins(me), hashes)?;
        Ok(Owner { table, number })
    }
}

impl Party<'_> {
    /// Returns the encrypted row of each bin, or an encryption of nothing for an empty bin.
    fn encrypted(&self, table: &CuckooTable, items: &Items, rng: &mut Prng) -> Vec<Ciphertext> {
        let layout = self.public.layout();
        let width = layout.width();
        // A dummy has no row.
        let mut rows = Secrets::<u8>::zeros(table.bins() * width);
        let mut full = Secrets::<bool>::zeros(table.bins());
        for (bin, row) in rows.chunks_exact_mut(width).enumerate() {
            if let Some(item) = table.item(bin).filter(|item| *item < items.len()) {
                layout.write([items.get(item)], row);
                full[bin] = true;
            }
        }
        self.joint.encrypt(&encoding::encode(&rows, width, &full), rng)
    }
}

/// Returns the items that P_1 lacks: the decrypted ones, if all rows are intact.
fn read(threads: &Threads, frames: &[DecodedRows], layout: Layout<1>, set: &HashedSet) -> Result<Items> {
    let (mut new, mut intact) = (Items::new(), true);
    for row in frames.iter().flat_map(|rows| (0..rows.len()).map(|i| rows.get(i))) {
        match row {
            Some(Row::Empty) => {}
            Some(Row::Bytes(row)) => {
                let parts = layout.read(row);
                let (from, length) = parts.get(0);
                new.push_if(parts.well_formed, from, length);
                intact &= parts.well_formed;
            }
            None => intact = false,
        }
    }
    // The sender of a wrong row cannot be identified.
    let wrong = |what| Error::misbehaves_unseen(what).by(Seat::SOMEBODY);
    match (intact, threads.run(|| set.all_new(&new))) {
        (true, true) => Ok(new),
        (false, _) => Err(wrong("it sent a row that does not decrypt")),
        _ => Err(wrong("it sent a row that should not be left")),
    }
}
