//! Intersection from an encrypted Bloom filter (DC17 4.1, Figure 2): kappa opens the rows of the matches.

use super::{Shape, answer, receive, send_filter, unless_malformed};
use crate::ahe::Cipher;
use crate::context::Context;
use crate::error::Result;
use crate::operations::intersect::rows::{self, Found, Rows};
use crate::operations::intersect::sent_on;
use crate::operations::{Learned, Role, Sealed, Task, Terms, both};
use crate::rng::Prng;
use crate::secret::Secrets;

const DIGESTS: &str = "intersection by an encrypted filter, digest of an item";

/// The answer for each item.
pub(crate) fn shape(terms: &Terms) -> Shape {
    Shape { ciphertexts: 2, width: rows::width(terms) }
}

/// Runs one party. The peer's set has `n` items in the protocol.
pub(crate) fn run<'a, C: Cipher>(task: &Task<'a>, cx: &mut Context, n: usize) -> Result<Sealed<'a, Learned>> {
    let Task { set, payloads, ref terms, .. } = *task;
    let shape = shape(terms);
    match task.role {
        Role::Receiver => {
            let (mut found, mut e) = (Found::new(terms), Secrets::zeros(0));
            if n > 0 {
                let owner = send_filter::<C>(task, cx, n)?;
                // 5. and 6. If D(c_j) = 0, then D(p_j) = kappa.
                let judge = |[p, c]: [C::Opened; 2]| (C::are_zero(&c), Some(C::opened_names(&p)));
                e = receive::<C>(cx, &owner, n, shape, judge, |wanted, row| found.take(wanted, row))?;
            }
            if terms.both {
                both::send_bits(cx.ch, &e)?;
            }
            Ok(found.places(cx, DIGESTS, set).map(Learned::Matching))
        }
        Role::Sender => {
            let rows = Rows::new(&cx.session, DIGESTS, (set, payloads), terms)?;
            let (n_x, mut sums, mut order) = (set.len(), None, Secrets::zeros(0));
            if n_x > 0 {
                let sums = sums.insert(super::sums::<C>(task, cx, n)?);
                // A dummy is answered as an item that R lacks.
                let write = |at: usize, row: &mut [u8]| rows.write(at, row);
                order = answer(cx, sums, (n_x, n_x), shape, combine::<C>, write)?;
            }
            let found = match terms.both {
                true => Some(sent_on(order, both::recv_bits(cx.ch, n_x, n)?, set.items().len())),
                false => None,
            };
            let learned = Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching)));
            Ok(unless_malformed(sums, learned))
        }
    }
}

/// Step 4: (ReRand(r c_j + kappa), ReRand(r' c_j)).
pub(super) fn combine<C: Cipher>(key: &C::Key, c: &C::List, rng: &mut Prng) -> (Vec<u8>, Option<C::Numbers>) {
    let [kappa, r] = [(); 2].map(|()| C::uniform(key, C::len(c), rng));
    let units = C::units(key, C::len(c), rng);
    let mut answers = C::combine(key, Some(&kappa), Some(&r), c, rng);
    answers.extend(C::combine(key, None, Some(&units), c, rng));
    (answers, Some(kappa))
}
