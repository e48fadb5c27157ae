//! Truncated tags, sorted over the whole set and Golomb-Rice coded.
//!
//! A tag is the highest t bits of a digest. Gaps between sorted tags are written as the quotient by 2^b in unary (ones,
//! then a zero) and b bits of remainder, least significant bit first. With b = t - ceil(log2 n) a set takes about 61.6
//! bits per item at 2^20 items per side, against 86.6 for a Bloom filter of equal strength. Equal tags are legal. The
//! length varies a little with the tags, so each frame carries it. The decoder enforces a bound: floor(2^t / 2^b) bits
//! for the unary parts of all frames together, in addition to n(b+1) for the rest.
//!
//! `operations::intersect::tags` also sends the tags of an intersection in this code.

use super::CompactSet;
use crate::channel::{Message, Rx, Tx, frames};
use crate::error::{Error, Result};
use crate::params::{ceil_log2, tag_bits};
use crate::secret::Secrets;
use crate::threads::Threads;
use rayon::prelude::*;

/// Number of tags per frame: 8192, about 64 KiB.
pub(crate) const FRAME: usize = 1 << 13;
const TAGS: Message<[u8]> = Message::new(0x21, "tags of a set, sorted, Golomb-Rice coded");

/// Parameters of a set of tags; they follow from public sizes.
#[derive(Debug, Clone, Copy)]
pub struct Golomb {
    elements: usize,
    /// Length of a tag in bits, at most 96.
    tag_bits: u32,
    /// The number b of remainder bits.
    rice_bits: u32,
}

impl Golomb {
    /// A set of `elements` elements in which any of `queries` queries is found wrongly with probability at most
    /// 2^-`exponent`.
    pub fn new(exponent: u32, queries: usize, elements: usize) -> Result<Self> {
        Ok(Golomb::of(elements, tag_bits(exponent, queries, elements)?))
    }

    /// A set of `elements` elements as tags of `tag_bits` bits: at least ceil(log2 elements), at most 96.
    pub(crate) const fn of(elements: usize, tag_bits: u32) -> Self {
        Golomb { elements, tag_bits, rice_bits: tag_bits - ceil_log2(elements) }
    }

    fn tag(&self, digest: u128) -> u128 {
        // A tag may have no bits at all: one element, one query and an exponent of 0.
        digest.checked_shr(128 - self.tag_bits).unwrap_or(0)
    }

    /// Returns the length of a tag in bits.
    #[cfg(test)]
    pub(crate) const fn tag_bits(&self) -> u32 {
        self.tag_bits
    }

    /// The tag of a digest, of at most 96 bits, above a position of 32 bits.
    pub(crate) fn word(&self, digest: u128, position: u32) -> u128 {
        self.tag(digest) << 32 | u128::from(position)
    }

    /// Returns for each query whether it is among the tags that `tags` passes on in ascending order.
    fn find(
        &self,
        threads: &Threads,
        queries: &[u128],
        tags: impl FnOnce(&mut dyn FnMut(u128)) -> Result<()>,
    ) -> Result<Secrets<bool>> {
        let sorted = threads.run(|| {
            let words =
                queries.par_iter().enumerate().map(|(i, &q)| self.word(q, i as u32)).collect::<Vec<_>>();
            let mut sorted = Secrets::from(words);
            sorted.par_sort_unstable();
            sorted
        });
        let mut waiting = sorted.iter().peekable();
        let mut found = Secrets::zeros(queries.len());
        tags(&mut |tag| {
            // The work does not depend on whether a query is found, because the peer can observe the time.
            while let Some(w) = waiting.next_if(|&&w| w >> 32 <= tag) {
                found[(w & 0xffff_ffff) as usize] = w >> 32 == tag;
            }
        })?;
        Ok(found)
    }

    /// Receives the tags of a set one by one, in ascending order.
    fn each(&self, rx: &mut Rx, take: &mut dyn FnMut(u128)) -> Result<()> {
        let mut gaps = Gaps::new(*self);
        for n in frames(self.elements, FRAME) {
            gaps.receive(rx, n)?.into_iter().for_each(&mut *take);
        }
        Ok(())
    }

    /// Receives the tags, in ascending order, of a set that is sent before the queries are known.
    pub(crate) fn receive(&self, rx: &mut Rx) -> Result<Tags> {
        // Memory grows with the received tags.
        let mut tags = Secrets::zeros(0);
        self.each(rx, &mut |tag| tags.extend(&[tag]))?;
        Ok(Tags { of: *self, tags })
    }

    /// floor(2^t / 2^b): a bound on the sum of the quotients of all gaps.
    fn unary_budget(&self) -> u64 {
        1 << (self.tag_bits - self.rice_bits)
    }
}

impl CompactSet for Golomb {
    fn bytes(&self) -> usize {
        // Gaps are about exponential, with a mean of 1 to 2 units of the quotient.
        let mean = (1u64 << ceil_log2(self.elements)) as f64 / self.elements.max(1) as f64;
        let quotient = 1.0 / (1.0 / mean).exp_m1();
        (self.elements as f64 * (f64::from(self.rice_bits + 1) + quotient) / 8.0) as usize
    }

    fn send(&self, tx: &mut Tx, threads: &Threads, mut digests: Secrets<u128>) -> Result<()> {
        // Sorting over the whole set hides the order in which the digests came.
        threads.run(|| {
            digests.par_iter_mut().for_each(|d| *d = self.tag(*d));
            digests.par_sort_unstable();
        });
        let mut gaps = Gaps::new(*self);
        digests.chunks(FRAME).try_for_each(|tags| gaps.send(tx, tags.iter().copied()))
    }

    fn test(&self, rx: &mut Rx, threads: &Threads, queries: &[u128]) -> Result<Secrets<bool>> {
        self.find(threads, queries, |take| self.each(rx, take))
    }
}

/// State of the sender or the receiver within a set of tags.
pub(crate) struct Gaps {
    of: Golomb,
    /// The previous tag.
    last: u128,
    /// The remaining budget for the sum of quotients.
    budget: u64,
}

impl Gaps {
    /// The state before the first tag.
    pub(crate) fn new(of: Golomb) -> Self {
        Gaps { of, last: 0, budget: of.unary_budget() }
    }

    /// Sends the next frame: tags in ascending order.
    pub(crate) fn send(&mut self, tx: &mut Tx, tags: impl Iterator<Item = u128>) -> Result<()> {
        let mut bits = BitWriter::default();
        for tag in tags {
            bits.gap(tag - self.last, self.of.rice_bits);
            self.last = tag;
        }
        tx.send_bytes(TAGS, &bits.finish())
    }

    /// Receives the next frame, of `n` tags.
    pub(crate) fn receive(&mut self, rx: &mut Rx, n: usize) -> Result<Vec<u128>> {
        let Golomb { tag_bits, rice_bits, .. } = self.of;
        let most_bits = n as u64 * u64::from(rice_bits + 1) + self.budget;
        let frame = rx.recv_bounded(TAGS, most_bits.div_ceil(8) as usize)?;
        let mut bits = BitReader::new(&frame);
        let mut tags = Vec::with_capacity(n);
        for _ in 0..n {
            self.last += bits.gap(rice_bits, &mut self.budget)?;
            if self.last >> tag_bits != 0 {
                return Err(bad("a tag is longer than agreed"));
            }
            tags.push(self.last);
        }
        bits.finish()?;
        Ok(tags)
    }
}

/// The tags of a received set.
pub(crate) struct Tags {
    of: Golomb,
    tags: Secrets<u128>,
}

impl Tags {
    /// Returns for each query whether it is in the set.
    pub(crate) fn test(&self, threads: &Threads, queries: &[u128]) -> Result<Secrets<bool>> {
        self.of.find(threads, queries, |take| {
            self.tags.iter().for_each(|tag| take(*tag));
            Ok(())
        })
    }
}

fn bad(what: &str) -> Error {
    Error::misbehaves(format!("in its message of sorted tags {what}"))
}

/// Writes bits, least significant first.
#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    /// The bits not yet in `bytes`, fewer than 8.
    rest: u128,
    held: u32,
}

impl BitWriter {
    fn gap(&mut self, gap: u128, rice_bits: u32) {
        let mut ones = gap >> rice_bits;
        while ones > 0 {
            let n = ones.min(64) as u32;
            self.push((1 << n) - 1, n);
            ones -= u128::from(n);
        }
        self.push(0, 1);
        self.push(gap & ((1 << rice_bits) - 1), rice_bits);
    }

    /// Appends the `n <= 96` low bits of `bits`, whose other bits are 0.
    fn push(&mut self, bits: u128, n: u32) {
        self.rest |= bits << self.held;
        self.held += n;
        let whole = self.held / 8;
        self.bytes.extend_from_slice(&self.rest.to_le_bytes()[..whole as usize]);
        self.rest = self.rest.checked_shr(8 * whole).unwrap_or(0);
        self.held %= 8;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.held > 0 {
            self.bytes.push(self.rest as u8);
        }
        self.bytes
    }
}

/// Reads bits, least significant first.
struct BitReader<'a> {
    bytes: &'a [u8],
    rest: u128,
    held: u32,
}

impl<'a> BitReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, rest: 0, held: 0 }
    }

    /// Reads bytes until more than 120 bits are held or no bytes are left.
    fn refill(&mut self) {
        while self.held <= 120 {
            let Some((&byte, bytes)) = self.bytes.split_first() else { return };
            self.rest |= u128::from(byte) << self.held;
            self.held += 8;
            self.bytes = bytes;
        }
    }

    fn take(&mut self, n: u32) -> Result<u128> {
        if self.held < n {
            self.refill();
            if self.held < n {
                return Err(bad("a frame ends in the middle of a tag"));
            }
        }
        let bits = self.rest & ((1 << n) - 1);
        self.rest >>= n;
        self.held -= n;
        Ok(bits)
    }

    fn gap(&mut self, rice_bits: u32, budget: &mut u64) -> Result<u128> {
        let mut quotient = 0u128;
        loop {
            self.refill();
            if self.held == 0 {
                return Err(bad("a frame ends in the middle of a tag"));
            }
            let ones = self.rest.trailing_ones().min(self.held).min(64);
            *budget = budget
                .checked_sub(u64::from(ones))
                .ok_or_else(|| bad("the gaps add up to more than is possible"))?;
            quotient += u128::from(ones);
            self.take(ones)?;
            if ones < 64 && self.held > 0 {
                break;
            }
        }
        self.take(1)?;
        Ok(quotient << rice_bits | self.take(rice_bits)?)
    }

    fn finish(mut self) -> Result<()> {
        self.refill();
        match self.held < 8 && self.rest == 0 {
            true => Ok(()),
            false => Err(bad("a frame is longer than its tags")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use crate::error::Fault;
    use crate::params::LAMBDA;
    use crate::rng::Prng;

    fn decode(set: Golomb, frame: &[u8]) -> Result<Secrets<bool>> {
        let (mut a, mut b) = Channel::pair();
        a.tx.send_bytes(TAGS, frame).unwrap();
        drop(a);
        set.test(&mut b.rx, Threads::global(), &[])
    }

    fn encode(set: Golomb, tags: &[u128]) -> Vec<u8> {
        let (mut bits, mut previous) = (BitWriter::default(), 0);
        for &tag in tags {
            bits.gap(tag - previous, set.rice_bits);
            previous = tag;
        }
        bits.finish()
    }

    #[test]
    fn extreme_and_equal_tags_survive() {
        for n in [1usize, 2, 3, 4, 5, 8, 100] {
            let set = Golomb::new(LAMBDA, 7, n).unwrap();
            let top = (1u128 << set.tag_bits) - 1;
            let cases = [vec![0; n], vec![top; n], {
                let mut mixed = vec![0; n];
                mixed[n - 1] = top;
                mixed
            }];
            for tags in cases {
                let queries: Vec<u128> = [0, 1, top].iter().map(|t| t << (128 - set.tag_bits)).collect();
                let (mut a, mut b) = Channel::pair();
                let digests: Vec<u128> = tags.iter().map(|t| t << (128 - set.tag_bits)).collect();
                set.send(&mut a.tx, Threads::global(), digests.into()).unwrap();
                let found = set.test(&mut b.rx, Threads::global(), &queries).unwrap();
                assert_eq!(*found, [tags.contains(&0), false, tags.contains(&top)], "{n}");
            }
        }
    }

    #[test]
    fn tags_of_no_bits_are_all_equal() {
        let set = Golomb::new(0, 1, 1).unwrap();
        let (mut a, mut b) = Channel::pair();
        set.send(&mut a.tx, Threads::global(), vec![u128::MAX].into()).unwrap();
        assert_eq!(*set.test(&mut b.rx, Threads::global(), &[1]).unwrap(), [true]);
    }

    #[test]
    fn forged_frames_are_refused() {
        let set = Golomb::new(LAMBDA, 4, 3).unwrap(); // t = 44, b = 42, 4 units of unary
        let good = encode(set, &[1, 2, 3]);
        assert!(decode(set, &good).is_ok());
        let over = |tags: &[u128]| encode(set, tags);
        let mut dirty = good.clone();
        *dirty.last_mut().unwrap() |= 0x80;
        let cases: [(&str, Vec<u8>, &str); 6] = [
            ("nothing", vec![], "in the middle"),
            ("cut", good[..good.len() - 1].to_vec(), "in the middle"),
            ("dirty padding", dirty, "longer than its tags"),
            ("only ones", vec![0xff; 12], "more than is possible"),
            ("too many units", over(&[5 << 42, 5 << 42, 5 << 42]), "more than is possible"),
            ("over the top", over(&[3 << 42, 3 << 42 | 9, 4 << 42]), "longer than agreed"),
        ];
        for (name, frame, words) in cases {
            let e = decode(set, &frame).unwrap_err();
            assert!(
                matches!(e, Error::Peer { fault: Fault::Misbehaved, .. }) && e.to_string().contains(words),
                "{name}: {e}"
            );
        }
        // One byte too many, within the bound.
        let sixteen = Golomb::new(LAMBDA, 4, 16).unwrap();
        let longer = [&encode(sixteen, &[5; 16])[..], &[0]].concat();
        assert!(decode(sixteen, &longer).unwrap_err().to_string().contains("longer than its tags"));
        assert!(decode(sixteen, &longer[..longer.len() - 1]).is_ok());
        // Longer than any set of these sizes, and so refused by its header alone.
        let e = decode(set, &[0; 18]).unwrap_err();
        assert!(e.to_string().contains("0 to 17 bytes"), "{e}");
    }

    #[test]
    fn a_million_items_a_side_take_62_bits_each() {
        let n = 1 << 20;
        let set = Golomb::new(LAMBDA, n, n).unwrap();
        let mut rng = Prng::from_seed(&[1; 32]);
        let digests: Vec<u128> = (0..n).map(|_| u128::from_le_bytes(rng.bytes())).collect();
        let (mut a, mut b) = Channel::pair();
        std::thread::scope(|s| {
            s.spawn(|| set.test(&mut b.rx, Threads::global(), &[]).unwrap());
            set.send(&mut a.tx, Threads::global(), digests.into()).unwrap();
        });
        let bits = 8.0 * a.bytes_sent() as f64 / n as f64;
        assert!((61.0..62.0).contains(&bits), "{bits}");
    }
}
