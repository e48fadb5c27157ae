//! Union from an encrypted Bloom filter (DC17 3.1, Figure 1): kappa opens the rows of the new items.
//!
//! A dummy of the sender is answered like a match, and its row is empty.

use super::{Shape, answer, filter, receive, send_filter, unless_malformed};
use crate::ahe::Cipher;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::item::Items;
use crate::operations::row::Layout;
use crate::operations::union::rows::{Came, check_rows, width};
use crate::operations::{Learned, Role, Sealed, Task, Terms, both};
use crate::rng::Prng;
use crate::secret::Secrets;

/// The answer for each item.
pub(crate) fn shape(terms: &Terms) -> Shape {
    Shape { ciphertexts: 2, width: width(terms) }
}

/// Runs one party. The peer's set has `n` items in the protocol.
pub(crate) fn run<'a, C: Cipher>(task: &Task<'a>, cx: &mut Context, n: usize) -> Result<Sealed<'a, Learned>> {
    let Task { set, payloads, ref terms, .. } = *task;
    match (task.role, terms.payload) {
        (Role::Receiver, true) => receiver::<C, 2>(task, cx, n),
        (Role::Receiver, false) => receiver::<C, 1>(task, cx, n),
        (Role::Sender, true) => sender::<C, 2>([set.items(), payloads], task, cx, n),
        (Role::Sender, false) => sender::<C, 1>([set.items()], task, cx, n),
    }
}

fn receiver<'a, C: Cipher, const N: usize>(
    task: &Task<'a>,
    cx: &mut Context,
    n: usize,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, ref terms, .. } = *task;
    let (mut came, mut sound) = (Came::<N>::new(terms), true);
    if n > 0 {
        let owner = send_filter::<C>(task, cx, n)?;
        let most = filter(terms, set.len(), n).filter.positions;
        let judge = |[p, c]: [C::Opened; 2]| {
            // 5. and 6. If D(c_j) = q_j is not 0, then kappa = D(p_j) / q_j.
            let (names, q) = C::quotients(&owner, &p, &c, most);
            sound &= q.iter().fold(true, |sound, q| sound & (*q <= most));
            (Secrets::from(q.iter().map(|q| *q != 0).collect::<Vec<_>>()), Some(names))
        };
        receive::<C>(cx, &owner, n, shape(terms), judge, |wanted, row| came.take(wanted, row))?;
    }
    let verdict = move || match sound {
        true => Ok(()),
        false => Err(Error::misbehaves_unseen("an answer holds more empty positions than an item has")),
    };
    // 7. S_1 and V.
    Ok(came.end(cx, (set, n), verdict, terms)?.map(Learned::New))
}

fn sender<'a, C: Cipher, const N: usize>(
    parts: [&Items; N],
    task: &Task<'a>,
    cx: &mut Context,
    n: usize,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, payloads, ref terms, .. } = *task;
    check_rows(set, payloads, terms)?;
    let (n_x, layout, mut sums) = (set.len(), Layout::<N>::of(terms), None);
    if n_x > 0 {
        let sums = sums.insert(super::sums::<C>(task, cx, n)?);
        let write = |at: usize, row: &mut [u8]| {
            layout.write_item(parts, at, at, row);
        };
        answer(cx, sums, (n_x, set.items().len()), shape(terms), combine::<C>, write)?;
    }
    let union = match terms.both {
        true => Some(both::recv_union(cx.ch, set.items(), n + n_x, terms)?),
        false => None,
    };
    Ok(unless_malformed(sums, Sealed::sent_on(union.map(|sealed| sealed.map(Learned::Union)))))
}

/// Step 4: (ReRand(kappa c_j), ReRand(c_j)).
pub(super) fn combine<C: Cipher>(key: &C::Key, c: &C::List, rng: &mut Prng) -> (Vec<u8>, Option<C::Numbers>) {
    let kappa = C::uniform(key, C::len(c), rng);
    let mut answers = C::combine(key, None, Some(&kappa), c, rng);
    answers.extend(C::combine(key, None, None, c, rng));
    (answers, Some(kappa))
}
