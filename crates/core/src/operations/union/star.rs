//! Union* from mqRPMT* and one-sided OT: the receiver learns the union, the sender the number of matches (CZZDL 7,
//! Figure 2).
//!
//! Security: that of the semi-honest mqRPMT* and OT; nothing binds the sender to the bits that it sends, or the receiver's
//! choices to them. Leakage: |X| and X \\ Y to the receiver; |Y| and |X n Y| to the sender. Cost: the mqRPMT*, and the transfer
//! of rows of the union from mqRPMT ([`super::mqrpmt`]).
//!
//! The sender's dummies match, because the receiver inserts them. The sender subtracts its own from the number of
//! matches. The receiver's dummies match nothing.

use super::mqrpmt::{receive, without_inserted};
use super::rows::{New, check_rows, offer_rows};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hashed::HashedSet;
use crate::item::Items;
use crate::membership::permuted::MqrpmtStar;
use crate::operations::{Sealed, Terms};

const PURPOSE: &str = "union* by mqRPMT*, OT of rows";

/// Runs the receiver with set `y`; the sender's set has `n_x` items.
pub(crate) fn receiver<'a>(
    protocol: &dyn MqrpmtStar,
    cx: &mut Context,
    y: &'a HashedSet<'a>,
    n_x: usize,
    terms: &Terms,
) -> Result<Sealed<'a, New>> {
    // 1. P1 obtains the bits e.
    let e = protocol.server(cx, y, n_x)?;
    // 2. One-sided OTs.
    receive(cx, PURPOSE, y, e, terms)
}

/// Runs the sender with set `x` and, if agreed, a payload per item; item and payload together fit into a row.
/// The receiver's set has `n_y` items. Returns the number of matches.
pub(crate) fn sender<'a>(
    protocol: &dyn MqrpmtStar,
    cx: &mut Context,
    x: &HashedSet,
    payloads: &Items,
    n_y: usize,
    terms: &Terms,
) -> Result<Sealed<'a, u64>> {
    check_rows(x, payloads, terms)?;
    // 0. and 1. X in random order; P2 obtains the number of matches.
    let (order, matches) = protocol.client(cx, x, n_y)?;
    // 2. One-sided OTs.
    offer_rows(cx, PURPOSE, (x, payloads), &order, terms)?;
    let dummies = x.len() - x.items().len();
    let most = without_inserted(x, n_y);
    // No verdict yet: it depends on which of our items match.
    Ok(Sealed::new(move || real_matches(matches, dummies, most)))
}

/// Returns the number of matches without our dummies, all of which the receiver has. It has at most `most` other items.
fn real_matches(matches: usize, dummies: usize, most: usize) -> Result<u64> {
    match matches.checked_sub(dummies) {
        Some(real) if real <= most => Ok(real as u64),
        Some(real) => {
            Err(Error::misbehaves_unseen(format!("{real} of our items match, more than its {most}")))
        }
        None => Err(Error::misbehaves_unseen("its set lacks dummies that it has to insert")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::SessionId;
    use crate::item::ItemSet;
    use crate::membership::permuted::Ideal;
    use crate::operations::Confirmed;
    use crate::secret::Secrets;
    use crate::testing::run_pair;

    const TERMS: Terms = Terms { max_row: 9, ..crate::testing::TERMS };

    /// A test that finds nothing new, and returns this number to the client.
    struct Says(usize);

    impl MqrpmtStar for Says {
        fn server(&self, _: &mut Context, _: &HashedSet, n_x: usize) -> Result<Secrets<bool>> {
            Ok(Secrets::from(vec![true; n_x]))
        }

        fn client(&self, _: &mut Context, x: &HashedSet, _: usize) -> Result<(Secrets<u32>, usize)> {
            Ok((Secrets::from((0..x.len() as u32).collect::<Vec<_>>()), self.0))
        }
    }

    /// Returns the sender's result with this test, for sets of these sizes, padded if requested.
    fn learned(test: &(impl MqrpmtStar + Sync), n: [usize; 2], pads: [Option<usize>; 2]) -> Result<u64> {
        let [y, x] = n.map(|n| (0..n).map(|i| i.to_string()).collect::<ItemSet>());
        let rng = &mut crate::rng::Prng::from_seed(&[3; 32]);
        let mut y = pads[0].map_or(HashedSet::new(&y), |size| HashedSet::padded(&y, size, rng));
        let x = pads[1].map_or(HashedSet::new(&x), |size| HashedSet::padded_from_list(&x, size));
        y.insert_listed(pads[1].unwrap_or(0));
        let none = Items::new();
        let ((_, learned), _) = run_pair(
            &SessionId::of([1; 32]),
            |cx| Ok(receiver(test, cx, &y, x.len(), &TERMS)?.open(Confirmed::for_tests()).is_ok()),
            // The verdict comes after the transfer.
            |cx| Ok(sender(test, cx, &x, &none, y.len(), &TERMS)?.open(Confirmed::for_tests())),
        );
        learned
    }

    #[test]
    fn the_sender_learns_how_many_items_match_without_dummies() {
        for n in [[0, 0], [0, 3], [3, 0], [1, 1], [5, 2], [2, 5]] {
            let most = n[0].min(n[1]) as u64;
            for pads in [[None, None], [Some(9), None], [None, Some(7)], [Some(9), Some(7)], [None, Some(5)]]
            {
                assert_eq!(learned(&Ideal, n, pads), Ok(most), "{n:?} {pads:?}");
            }
        }
    }

    #[test]
    fn numbers_that_no_honest_receiver_shows_are_refused_unseen() {
        // (sizes, padding, number from the test, sender's result)
        for (n, pads, told, result) in [
            ([2, 5], [None, None], 2, Ok(2)),
            ([2, 5], [None, None], 3, Err("more than its 2")),
            ([2, 3], [None, Some(6)], 3, Ok(0)),
            ([2, 3], [None, Some(6)], 5, Ok(2)),
            ([2, 3], [None, Some(6)], 6, Err("more than its 2")),
            ([2, 3], [None, Some(6)], 2, Err("lacks dummies")),
            // A padded set may have as many matches as its bound.
            ([2, 3], [Some(4), Some(6)], 6, Ok(3)),
        ] {
            match (learned(&Says(told), n, pads), result) {
                (Ok(learned), Ok(expected)) => assert_eq!(learned, expected, "{told}"),
                (Err(Error::Peer { what, .. }), Err(words)) => assert!(what.contains(words), "{what}"),
                (other, _) => panic!("{n:?} {pads:?} {told}: {other:?}"),
            }
        }
    }
}
