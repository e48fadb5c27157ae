//! Count from an encrypted Bloom filter (DC17 4.2): the receiver learns how many answers are 0.

use super::{Shape, answer, receive, send_filter, unless_malformed};
use crate::ahe::Cipher;
use crate::context::Context;
use crate::error::Result;
use crate::operations::{Learned, Role, Sealed, Task, both, matches};
use crate::rng::Prng;
use crate::secret::Secrets;

/// The answer for each item.
pub(crate) const SHAPE: Shape = Shape { ciphertexts: 1, width: 0 };

/// Runs one party. The peer's set has `n` items in the protocol.
pub(crate) fn run<'a, C: Cipher>(task: &Task<'a>, cx: &mut Context, n: usize) -> Result<Sealed<'a, Learned>> {
    let (set, both) = (task.set, task.terms.both);
    match task.role {
        Role::Receiver => {
            let mut bits = Secrets::zeros(0);
            if n > 0 {
                let owner = send_filter::<C>(task, cx, n)?;
                // 5. D(c_j) = 0 if R has x_j.
                bits = receive::<C>(cx, &owner, n, SHAPE, |[c, _]| (C::are_zero(&c), None), |_, _| ())?;
            }
            if both {
                // Capped at |Y|: S must not see how often a repeated item matches.
                both::send_count(cx.ch, bits.iter().filter(|&&bit| bit).count().min(set.len()))?;
            }
            let n_y = set.len();
            Ok(Sealed::new(move || Ok(Learned::Matches(matches(&bits, n_y)? as u64))))
        }
        Role::Sender => {
            let (n_x, mut sums) = (set.len(), None);
            if n_x > 0 {
                let sums = sums.insert(super::sums::<C>(task, cx, n)?);
                // A dummy is answered as an item that R lacks.
                answer(cx, sums, (n_x, n_x), SHAPE, combine::<C>, |_, _| ())?;
            }
            let matches = if both { Some(both::recv_count(cx.ch, n_x.min(n))?) } else { None };
            let learned = matches.map_or(Learned::Nothing, Learned::Matches);
            Ok(unless_malformed(sums, Sealed::new(move || Ok(learned))))
        }
    }
}

/// Step 4: ReRand(r' c_j).
pub(super) fn combine<C: Cipher>(key: &C::Key, c: &C::List, rng: &mut Prng) -> (Vec<u8>, Option<C::Numbers>) {
    let units = C::units(key, C::len(c), rng);
    (C::combine(key, None, Some(&units), c, rng), None)
}
