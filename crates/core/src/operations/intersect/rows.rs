//! Rows of an intersection in which the receiver gets only the rows of the matches: a digest of the item and, if agreed, the
//! payload.
//!
//! R looks the digest up in its own set. Hence items may have any length, no length is revealed, and an accidental match is
//! detected. Digests of different items collide with probability n_x n_y 2^-128, and only matter where there is an accidental
//! match too.

use super::{Matching, sort};
use crate::context::Context;
use crate::error::Result;
use crate::hash::{Domain, SessionId};
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::operations::row::Layout;
use crate::operations::{Sealed, Terms};
use rayon::prelude::*;

/// Bytes of a digest.
pub(crate) const DIGEST: usize = 16;

/// The digest of an item, from its hash. Dummies have digests too; otherwise timing would reveal their number.
fn digests<'a>(
    session: &SessionId,
    purpose: &'static str,
    set: &'a HashedSet,
) -> impl Fn(usize) -> [u8; DIGEST] + Send + Sync + use<'a> {
    let domain = Domain::new(session, purpose);
    move |i| domain.hash(&[set.hash(i)])
}

fn layout(terms: &Terms) -> Option<Layout<1>> {
    terms.payload.then(|| Layout::<1>::new(terms.max_row))
}

/// Bytes of a row.
pub(crate) fn width(terms: &Terms) -> usize {
    DIGEST + layout(terms).map_or(0, Layout::width)
}

/// The sender's rows.
pub(crate) struct Rows<'a, D> {
    digest: D,
    layout: Option<Layout<1>>,
    payloads: &'a Items,
}

impl<'a> Rows<'a, ()> {
    /// Returns the rows of a set, with these payloads if agreed, and with digests for this purpose.
    ///
    /// # Errors
    /// [`crate::error::Error::Bug`] if a payload is longer than a row.
    pub(crate) fn new(
        session: &SessionId,
        purpose: &'static str,
        (x, payloads): (&'a HashedSet, &'a Items),
        terms: &Terms,
    ) -> Result<Rows<'a, impl Fn(usize) -> [u8; DIGEST] + Send + Sync + use<'a>>> {
        let layout = layout(terms);
        if let Some(layout) = layout {
            layout.check(payloads.iter().map(|payload| [payload.len()]))?;
        }
        Ok(Rows { digest: digests(session, purpose, x), layout, payloads })
    }
}

impl<D: Fn(usize) -> [u8; DIGEST]> Rows<'_, D> {
    /// Writes the row of an item or a dummy into a row of zeros.
    pub(crate) fn write(&self, at: usize, row: &mut [u8]) {
        let (place, rest) = row.split_at_mut(DIGEST);
        place.copy_from_slice(&(self.digest)(at));
        // A dummy has no payload. A receiver that follows the protocol does not read its row.
        if let Some(layout) = self.layout {
            layout.write_item([self.payloads], at, at, rest);
        }
    }
}

/// The rows that the receiver obtained.
pub(crate) struct Found {
    layout: Option<Layout<1>>,
    digests: Vec<[u8; DIGEST]>,
    payloads: Items,
    intact: bool,
}

impl Found {
    /// Returns an empty list of rows.
    pub(crate) fn new(terms: &Terms) -> Found {
        Found { layout: layout(terms), digests: Vec::new(), payloads: Items::new(), intact: true }
    }

    /// Keeps a row if it is wanted. An unwanted row takes the same work.
    pub(crate) fn take(&mut self, wanted: bool, row: &[u8]) {
        let (digest, rest) = row.split_at(DIGEST);
        let n = self.digests.len();
        self.digests.extend(<[u8; DIGEST]>::try_from(digest));
        self.digests.truncate(n + usize::from(wanted));
        if let Some(layout) = self.layout {
            let parts = layout.read(rest);
            let (from, length) = parts.get(0);
            self.payloads.push_if(wanted, from, length);
            self.intact &= !wanted | parts.well_formed;
        }
    }

    /// Returns the matches in our own set, found by the digests of the rows.
    pub(crate) fn places<'a>(
        self,
        cx: &Context,
        purpose: &'static str,
        y: &'a HashedSet<'a>,
    ) -> Sealed<'a, Matching> {
        let digest = digests(&cx.session, purpose, y);
        let threads = cx.threads.clone();
        Sealed::new(move || {
            let n = y.items().len();
            let own = threads.run(|| {
                let mut own: Vec<([u8; DIGEST], u32)> =
                    (0..n as u32).into_par_iter().map(|i| (digest(i as usize), i)).collect();
                own.par_sort_unstable();
                own
            });
            let position = |d| own.binary_search_by_key(d, |o| o.0).ok().map(|at| own[at].1);
            let positions = self.digests.iter().map(position);
            let positions = positions.collect::<Option<Vec<u32>>>().filter(|_| self.intact);
            sort(positions, &self.payloads, n)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::overlapping;
    use std::collections::HashSet;

    #[test]
    fn digests_are_of_session_and_purpose_and_no_part_of_the_hash() {
        let set = overlapping(20, 0, 0.0).0;
        let set = HashedSet::new(&set);
        let mut all: HashSet<_> = set.own().iter().flat_map(|hash| hash.as_chunks().0.to_vec()).collect();
        for (session, purpose) in [(1, "one"), (2, "one"), (2, "two")] {
            let digest = digests(&SessionId::of([session; 32]), purpose, &set);
            all.extend((0..20).map(digest));
        }
        assert_eq!(all.len(), 20 * 5);
    }
}
