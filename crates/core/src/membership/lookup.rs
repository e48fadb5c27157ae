//! Tags of values, sent in the order of the queries, and the lookup of these tags among a party's elements.
//!
//! A tag is the first t bits of a value of 128 bits, rounded up to whole bytes. Tags of different values are equal with
//! probability at most 2^-t. For n queries and m elements, t = L + ceil(log2 n) + ceil(log2 max(n, m)). Then any query of the
//! run is found wrongly with probability at most 2^-L, and two different queries have equal tags with at most half that
//! probability.

use crate::channel::{Message, Rx, Tx, frames};
use crate::error::{Error, Result};
use crate::params::tag_bits;
use crate::secret::Secrets;
use crate::threads::Threads;
use rayon::prelude::*;

/// Tags per frame: 8192, at most 96 KiB.
pub(crate) const FRAME: usize = 1 << 13;

/// The length of the tags. It follows from public sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tags {
    /// Bytes of a tag.
    pub(crate) bytes: usize,
}

impl Tags {
    /// Tags so long that any of `queries` queries is found wrongly among `elements` with probability at most 2^-`exponent`, and
    /// two different queries collide with at most half that probability.
    pub(crate) fn new(exponent: u32, queries: usize, elements: usize) -> Result<Tags> {
        let bits = tag_bits(exponent, queries, elements.max(queries))?;
        Ok(Tags { bytes: bits.div_ceil(8) as usize })
    }

    fn tag(self, value: u128) -> u128 {
        value >> (128 - 8 * self.bytes)
    }

    /// Sends the tags of these values in one frame, in their order.
    pub(crate) fn send(self, tx: &mut Tx, message: Message<[u8]>, values: &[u128]) -> Result<()> {
        let tags = values.iter().flat_map(|value| value.to_be_bytes().into_iter().take(self.bytes));
        tx.send_bytes(message, &tags.collect::<Vec<u8>>())
    }

    /// Receives `n` tags, and returns for each whether it is the tag of one of `elements`. The work is the same in both cases,
    /// because the peer sees the time.
    ///
    /// # Errors
    /// [`Error::Peer`] if two tags are equal. The outcome depends on the tags only.
    pub(crate) fn test(
        self,
        rx: &mut Rx,
        message: Message<[u8]>,
        n: usize,
        elements: Secrets<u128>,
        threads: &Threads,
    ) -> Result<Secrets<bool>> {
        // Tag and position in one word: at most 96 and 32 bits.
        let mut queries = Secrets::zeros(0);
        for n in frames(n, FRAME) {
            let first = queries.len();
            let bytes = rx.recv_bytes(message, n * self.bytes)?;
            let word = |(i, tag): (usize, &[u8])| {
                tag.iter().fold(0, |word, byte| word << 8 | u128::from(*byte)) << 32 | (first + i) as u128
            };
            let words = bytes.chunks_exact(self.bytes).enumerate().map(word).collect::<Vec<u128>>();
            queries.extend(&Secrets::from(words));
        }
        threads.run(|| self.find(elements, queries))
    }

    /// Returns for each query, given by tag and position in `queries`, whether its tag is the tag of one of `elements`.
    fn find(self, mut elements: Secrets<u128>, mut queries: Secrets<u128>) -> Result<Secrets<bool>> {
        elements.par_iter_mut().for_each(|value| *value = self.tag(*value));
        elements.par_sort_unstable();
        queries.par_sort_unstable();
        if queries.windows(2).any(|w| w[0] >> 32 == w[1] >> 32) {
            return Err(Error::misbehaves("it asked for the same item twice"));
        }
        let mut found = Secrets::zeros(queries.len());
        let mut waiting = queries.iter().peekable();
        for &tag in elements.iter() {
            while let Some(w) = waiting.next_if(|&&w| w >> 32 <= tag) {
                found[(w & 0xffff_ffff) as usize] = w >> 32 == tag;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use crate::rng::Prng;
    use std::collections::HashSet;

    const SENT: Message<[u8]> = Message::new(0x7004, "tags");

    fn found(tags: Tags, elements: &[u128], queries: &[u128]) -> Result<Vec<bool>> {
        let (mut a, mut b) = Channel::pair();
        std::thread::scope(|s| {
            s.spawn(move || queries.chunks(FRAME).for_each(|some| tags.send(&mut a.tx, SENT, some).unwrap()));
            let elements = Secrets::from(elements.to_vec());
            let bits = tags.test(&mut b.rx, SENT, queries.len(), elements, Threads::global())?;
            Ok(bits.to_vec())
        })
    }

    #[test]
    fn the_bits_are_those_of_the_plain_computation() {
        let mut rng = Prng::from_seed(&[1; 32]);
        for (n, q) in [(0, 0), (0, 3), (3, 0), (1, 1), (1000, 5), (5, FRAME + 1), (700, 2 * FRAME)] {
            let mut some = |n: usize| (0..n).map(|_| u128::from_le_bytes(rng.bytes())).collect::<Vec<_>>();
            let (mut elements, queries) = (some(n), some(q));
            // Some elements are among the last queries, which are in other frames.
            let common = n.min(q) / 2;
            elements[..common].copy_from_slice(&queries[q - common..]);
            let plain: HashSet<u128> = elements.iter().copied().collect();
            let expected: Vec<bool> = queries.iter().map(|query| plain.contains(query)).collect();
            assert_eq!(found(Tags::new(40, q, n).unwrap(), &elements, &queries), Ok(expected), "{n} {q}");
        }
    }

    #[test]
    fn tags_have_the_bits_that_both_kinds_of_collision_take() {
        for (queries, elements, bytes) in [
            (0, 0, 5),
            (1, 1, 5),
            (1 << 20, 1 << 20, 10),
            (1 << 20, 1, 10),
            (1, 1 << 20, 8),
            (1 << 28, 1 << 28, 12),
        ] {
            assert_eq!(Tags::new(40, queries, elements).unwrap().bytes, bytes, "{queries} {elements}");
        }
        assert!(Tags::new(41, 1 << 28, 1 << 28).is_err());
    }

    #[test]
    fn tags_that_differ_in_their_last_bit_are_told_apart_and_what_is_behind_does_not_count() {
        let tags = Tags { bytes: 5 };
        let last = 1 << 88;
        assert_eq!(
            found(tags, &[7 * last, 9 * last], &[7 * last + 5, 8 * last, 9 * last]),
            Ok(vec![true, false, true])
        );
        assert_eq!(found(tags, &[], &[0, last]), Ok(vec![false; 2]));
        assert!(found(tags, &[], &[last, 3 * last, last + 1]).is_err());
    }
}
