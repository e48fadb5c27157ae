//! Count of several parties: the leader learns how many items all have. Nobody learns more, except the bounds on all sets.
//!
//! 1. All parties agree on hash functions and a joint key (`setup.rs`).
//! 2. P_1 places its items in a cuckoo table. With each other party it runs a membership test with shared output for
//!    each bin ([`crate::membership::shared`]).
//! 3. P_1 encrypts 0 for each bin with an item, and the generator G for any other. For j = 2, ..., n: a membership OT
//!    ([`crate::membership::mot`]) hands P_j the ciphertext if it has the item, and a fresh encryption of G if not. P_j
//!    re-randomises the received ciphertext and returns it; P_1 re-randomises it again. Malformed ciphertexts become
//!    encryptions of 0 on the way (`rows.rs`).
//! 4. Shuffle&Decrypt ([`crate::ahe::shuffle`]), in which each of P_2 to P_n also multiplies both parts by a fresh
//!    scalar. P_1 counts the rows that hold 0.
//!
//! Security: semi-honest, against any coalition of n - 1 parties, under the assumptions of the parts. The scalars protect
//! against one deviation of P_1: if it offers different elements instead of G, it would otherwise see which party was the last
//! to lack an item. They do not protect against others: P_1 chooses what is counted, for instance its matches with one party.
//!
//! Leakage: the bounds on all sets. P_1 learns the number of items that all have. Cost for beta bins of P_1: with each other
//! party a membership test of beta bins, a membership OT with rows of one ciphertext, and beta ciphertexts back; then beta
//! ciphertexts to each party in turn.
//!
//! Source: not in GNT23, which has the union only.

use super::rows::{accept, forged, give_back, offer, opened, take_back};
use super::setup::Setup;
use super::{Hop, relay};
use crate::ahe::elgamal::{Ciphertext, FirstMalformed, PublicKey};
use crate::ahe::shuffle::ShuffleShape;
use crate::context::Context;
use crate::error::{Error, Result, Seat};
use crate::group::ristretto255::Element;
use crate::hashed::HashedSet;
use crate::hashing::cuckoo::Functions;
use crate::many::Many;
use crate::membership::mot::MembershipOt;
use crate::membership::shared::{Batch, Sizes, Sspmt};
use crate::operations::Sealed;
use crate::oprf::Input;
use crate::params::LAMBDA;
use crate::secret::Secrets;

/// The protocol over a membership test with shared output and a membership OT.
pub struct Count<T, M> {
    /// The membership test with shared output.
    pub tests: T,
    /// The membership OT.
    pub transfer: M,
}

/// The state of a party before Shuffle&Decrypt.
pub(super) struct Listed {
    pub(super) setup: Setup,
    /// The leader's list; empty for all others.
    pub(super) list: Vec<Ciphertext>,
    /// The position of the first malformed ciphertext that the leader offered us.
    malformed: FirstMalformed,
}

/// The state shared by all steps of a party.
struct Party<'r> {
    me: usize,
    setup: &'r Setup,
    joint: &'r PublicKey,
    /// The number of our items. Any hashes after theirs are hashes of dummies.
    items: usize,
    hashes: &'r [Input],
    bounds: &'r [usize],
}

impl Party<'_> {
    /// The common parameters of P_1 and this holder for their tests.
    fn batch(&self, functions: Functions, holder: usize) -> Batch {
        let Sizes { most, exponent, comparisons, .. } = sizes(self.bounds, holder);
        Batch { functions, most, exponent, comparisons }
    }
}

/// The number of bins of P_1, which has the only table.
pub(super) fn bins(bounds: &[usize]) -> usize {
    super::bins(bounds[0], 1)
}

/// The sizes of the tests of P_1 with this holder. The bins of P_1 are tested with each other party.
pub(super) fn sizes(bounds: &[usize], holder: usize) -> Sizes {
    let bins = bins(bounds);
    Sizes { bins, most: bounds[holder], exponent: LAMBDA, comparisons: (bounds.len() - 1) * bins }
}

impl<T: Sspmt + Sync, M: MembershipOt + Sync> Count<T, M> {
    /// Runs one party with its set, which is at most as large as its entry in `bounds`. Returns the number to the leader, and
    /// `None` to the others.
    ///
    /// # Errors
    /// [`Error::Usage`] for sets that are too large for the number of parties, and the errors of [`crate::operations`].
    pub fn run<'a>(
        &self,
        many: &mut Many,
        set: &HashedSet,
        bounds: &[usize],
    ) -> Result<Sealed<'a, Option<u64>>> {
        let Listed { setup, list, malformed } = self.list(many, set, bounds)?;
        // 4. Shuffle&Decrypt.
        let (bound, mut all) = (bounds[0] as u64, 0);
        let list = (ShuffleShape::blinded(bins(bounds)), &list[..]);
        let identities = |elements: &[Element]| {
            all += elements.iter().filter(|element| element.equals(&Element::IDENTITY)).count() as u64;
            Ok(())
        };
        // P_1 has made all ciphertexts of its list, so none is malformed.
        opened(many, setup, list, identities)?;
        let me = many.me;
        Ok(Sealed::new(move || match me {
            _ if malformed.position().is_some() => Err(forged(0)),
            0 if all > bound => {
                Err(Error::misbehaves_unseen("it made more matches than we have items").by(Seat::SOMEBODY))
            }
            0 => Ok(Some(all)),
            _ => Ok(None),
        }))
    }

    /// Steps 1 to 3: the agreement and the leader's list.
    pub(super) fn list(&self, many: &mut Many, set: &HashedSet, bounds: &[usize]) -> Result<Listed> {
        super::check(many, bounds)?;
        let me = many.me;
        let hashes = super::hashed(many, set);
        // 1. Functions and keys.
        let setup = Setup::agree(many)?;
        let items = set.items().len();
        let party = &Party { me, setup: &setup, joint: &setup.joint, items, hashes: &hashes, bounds };
        let (list, malformed) = match me {
            0 => (self.own(many, party)?, FirstMalformed::NONE),
            _ => {
                let malformed = many.each_with(vec![(0, ())], |_, (), cx| self.visited(cx, party))?;
                (Vec::new(), malformed.into_iter().fold(FirstMalformed::NONE, FirstMalformed::or))
            }
        };
        Ok(Listed { setup, list, malformed })
    }

    /// P_1's steps with all others.
    fn own(&self, many: &mut Many, party: &Party) -> Result<Vec<Ciphertext>> {
        let joint = party.joint;
        // 2. P_1 places its items in a table, and 3. encrypts a mark that distinguishes full bins from empty ones.
        let bins = bins(party.bounds);
        let table = || party.setup.table(0, bins, party.hashes);
        let (table, number) = many.threads.run(table)?;
        let full = (0..table.bins()).map(|bin| table.item(bin).is_some_and(|item| item < party.items));
        let full = Secrets::from(full.collect::<Vec<_>>());
        let marks = full.iter().map(|full| Element::GENERATOR.or_identity(!full));
        let marks = Secrets::from(marks.collect::<Vec<_>>());
        let rng = &mut many.rng.split();
        let rows = many.threads.run(|| joint.encrypt(&marks, rng));
        let (mut hops, end) = relay(rows, 1..many.parties())?;
        let steps = many.others().map(|party| (party, hops.remove(&party))).collect();
        many.each_with(steps, |other, hop, cx| {
            let hop: Hop<Vec<Ciphertext>> = hop.ok_or_else(|| Error::Bug("a party without a step".into()))?;
            // 2. Shares of whether P_j has the item of each bin.
            cx.ch.tx.send(super::TRY, &[number])?;
            let functions = party.setup.functions(0, bins, number)?;
            let batch = party.batch(functions, other);
            let shares = self.tests.querier(cx, &batch, &table, party.hashes)?;
            // 3. The rows, or the generator, freshly encrypted for each row and each offer.
            let rows = hop.from.take()?;
            let lacking = Secrets::from(vec![Element::GENERATOR; rows.len()]);
            let lacking = cx.threads.run(|| joint.encrypt(&lacking, cx.rng));
            offer(cx, &self.transfer, shares, [&rows, &lacking])?;
            hop.to.put(take_back(cx, joint, rows.len())?)
        })?;
        end.take()
    }

    /// P_j's step with P_1. Returns the position of the first malformed row.
    fn visited(&self, cx: &mut Context, party: &Party) -> Result<FirstMalformed> {
        let number = cx.ch.rx.recv(super::TRY, 1)?[0];
        let functions = party.setup.announced(0, bins(party.bounds), number)?;
        let shares = self.tests.holder(cx, &party.batch(functions, party.me), party.hashes)?;
        let rows = accept(cx, &self.transfer, shares, 1)?;
        give_back(cx, party.joint, &rows)
    }
}
