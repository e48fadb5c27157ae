//! Tests of the search for our tags, and helpers for other tests.

use super::*;
use crate::channel::Channel;
use crate::rng::Prng;
use crate::testing::{parts, split_frames};

impl Coding {
    /// Bits of a head and bytes of a tail.
    pub(in crate::operations::intersect) fn lengths(&self) -> (u32, usize) {
        (self.heads.tag_bits(), self.tail)
    }

    fn tag(&self, head: u128, tail: &[u8]) -> Vec<u8> {
        [&(head << (HEAD - self.heads.tag_bits())).to_be_bytes()[4..], tail].concat()
    }

    /// The bytes of the `n` tags that a party received; short tags are padded with zeros.
    pub(in crate::operations::intersect) fn received(&self, view: &[u8], n: usize) -> Vec<Vec<u8>> {
        let (mut peer, mut ch) = Channel::pair();
        for (_, body) in split_frames(view).iter().filter(|frame| frame.0 == 0x21) {
            peer.tx.send_bytes(Message::new(0x21, "tags"), body).unwrap();
        }
        let mut gaps = Gaps::new(self.heads);
        let heads = frames(n, FRAME).flat_map(|n| gaps.receive(&mut ch.rx, n).unwrap()).collect::<Vec<_>>();
        let tails = if self.tail > 0 { parts(view, 0x64, self.tail) } else { vec![vec![]; n] };
        assert!(heads.len() == n && tails.len() == n);
        heads.iter().zip(tails).map(|(head, tail)| self.tag(*head, &tail)).collect()
    }

    /// The body of a frame that holds these heads.
    pub(in crate::operations::intersect) fn frame(&self, heads: &[u128]) -> Vec<u8> {
        let (mut peer, mut ch) = Channel::pair();
        Gaps::new(self.heads).send(&mut peer.tx, heads.iter().copied()).unwrap();
        ch.rx.recv_bounded(Message::new(0x21, "tags"), 1 << 16).unwrap()
    }
}

impl Tags {
    /// The bytes of all tags, by position unless they are sorted.
    pub(in crate::operations::intersect) fn bytes(&self) -> Vec<Vec<u8>> {
        self.words.iter().map(|word| self.coding.tag(word >> 32, self.tail(position(*word)))).collect()
    }
}

/// The result must equal a plain comparison of all tags. Heads are so short that many are equal and only tails differ.
#[test]
fn own_tags_are_found_by_head_and_tail() {
    let mut rng = Prng::from_seed(&[1; 32]);
    for (n_y, n_x) in [(0, 5), (5, 0), (1, 1), (1, 40), (40, 1), (60, 300), (300, 60)] {
        // Heads of 9 bits, tails of 1 byte of which 2 bits are not 0.
        let coding = Coding { heads: Golomb::of(n_x, 9), tail: 1 };
        let mut random = |n: usize| -> Vec<Output> {
            let value = |_| {
                let mut value: Output = rng.bytes();
                value[12] &= 3;
                value
            };
            (0..n).map(value).collect()
        };
        let (y, x) = (random(n_y), random(n_x));
        let both = [&y, &x].map(|values| {
            let mut tags = Tags::new(coding, values.len());
            tags.fill(0, values);
            tags.words.sort_unstable();
            tags
        });
        let [own, other] = &both;
        let heads: Vec<u128> = other.words.iter().map(|word| word >> 32).collect();
        let mut places = vec![(0, false); n_x];
        own.find(&heads, |i| other.tail(position(other.words[i])), &mut places);
        let mine = own.bytes();
        for (i, (tag, (at, equal))) in other.bytes().iter().zip(places).enumerate() {
            // Our first tag with this head or a higher one, or else our last.
            let next = own.words.partition_point(|word| word >> 32 < heads[i]).min(n_y.saturating_sub(1));
            assert_eq!(at, own.words.get(next).map_or(0, |word| position(*word)));
            assert_eq!(equal, mine.get(next) == Some(tag));
        }
    }
}
