//! Compact sets: a set of digests, sent without revealing their order, against which the other party tests its own
//! digests (CZZDL 5.3).
//!
//! Digests have 128 bits and are pseudorandom to the receiver of the set.

pub mod bloom;
pub mod golomb;

use crate::channel::{Rx, Tx};
use crate::error::Result;
use crate::secret::Secrets;
use crate::threads::Threads;

/// An encoding of a set of digests. Its parameters follow from the public sizes and the error bound.
pub trait CompactSet {
    /// Approximate length of the encoding in bytes.
    fn bytes(&self) -> usize;

    /// Encodes the set of `digests`, which may be in any order, on these threads and sends it.
    fn send(&self, tx: &mut Tx, threads: &Threads, digests: Secrets<u128>) -> Result<()>;

    /// Receives a set and returns for each query whether it is in it.
    fn test(&self, rx: &mut Rx, threads: &Threads, queries: &[u128]) -> Result<Secrets<bool>>;
}

#[cfg(test)]
mod tests {
    use super::bloom::Bloom;
    use super::golomb::Golomb;
    use super::*;
    use crate::channel::Channel;
    use crate::params::LAMBDA;
    use crate::rng::Prng;
    use std::collections::HashSet;

    fn digests(n: usize, rng: &mut Prng) -> Vec<u128> {
        (0..n).map(|_| u128::from_le_bytes(rng.bytes())).collect()
    }

    fn agrees_with_the_plain_computation(make: impl Fn(usize, usize) -> Box<dyn CompactSet + Sync>) {
        let mut rng = Prng::from_seed(&[1; 32]);
        let frame = golomb::FRAME;
        for (n, q) in
            [(0, 0), (0, 3), (3, 0), (1, 1), (5, 1000), (frame - 1, 7), (frame, 7), (2 * frame + 1, 100)]
        {
            let (elements, mut queries) = (digests(n, &mut rng), digests(q, &mut rng));
            for i in 0..n.min(q) / 2 {
                queries[2 * i] = elements[n - 1 - i];
            }
            let plain: HashSet<u128> = elements.iter().copied().collect();
            let set = make(q, n);
            let (mut a, mut b) = Channel::pair();
            let (set, queries) = (&set, &queries);
            let bits = std::thread::scope(|s| {
                // The thread drops its end of the channel even if it fails.
                s.spawn(move || set.send(&mut a.tx, Threads::global(), elements.into()).unwrap());
                set.test(&mut b.rx, Threads::global(), queries).unwrap()
            });
            let expected: Vec<bool> = queries.iter().map(|q| plain.contains(q)).collect();
            assert_eq!(*bits, expected, "{n} elements, {q} queries");
        }
    }

    #[test]
    fn both_kinds_agree_with_the_plain_computation() {
        agrees_with_the_plain_computation(|q, n| Box::new(Golomb::new(LAMBDA, q, n).unwrap()));
        agrees_with_the_plain_computation(|q, n| Box::new(Bloom::new(LAMBDA, q, n)));
    }

    #[test]
    fn the_bytes_do_not_depend_on_the_order_of_the_elements() {
        let mut rng = Prng::from_seed(&[2; 32]);
        // More than one frame: an order within frames would reveal which elements came first.
        let n = golomb::FRAME + 1000;
        let elements = digests(n, &mut rng);
        let sent = |set: &dyn CompactSet, elements: Vec<u128>| {
            let (mut a, b) = Channel::pair();
            set.send(&mut a.tx, Threads::global(), elements.into()).unwrap();
            drop(a);
            let (_, mut source) = b.into_halves();
            let (mut bytes, mut byte) = (Vec::new(), [0u8]);
            while source.recv(&mut byte, None).is_ok() {
                bytes.push(byte[0]);
            }
            bytes
        };
        let shuffled: Vec<u128> = rng.permutation(n).iter().map(|&i| elements[i as usize]).collect();
        let sets: [Box<dyn CompactSet>; 2] =
            [Box::new(Golomb::new(LAMBDA, n, n).unwrap()), Box::new(Bloom::new(LAMBDA, n, n))];
        for set in sets {
            assert_eq!(sent(set.as_ref(), elements.clone()), sent(set.as_ref(), shuffled.clone()));
        }
    }
}
