//! A Bloom filter, as CZZDL 5.3 proposes, but sized so that the false positives of all queries together stay within the
//! budget. The paper's 1.44 lambda n bits suffice for one query.

use super::CompactSet;
use crate::channel::{Message, Rx, Tx, frames};
use crate::error::Result;
use crate::params::{self, share};
use crate::secret::Secrets;
use crate::threads::Threads;
use rayon::prelude::*;

/// Bytes of the filter per frame.
const FRAME: usize = 1 << 16;
const FILTER: Message<[u8]> = Message::new(0x22, "S->R  Bloom filter of H(y)^k1k2");

/// Parameters of a filter; they follow from public sizes.
#[derive(Debug, Clone, Copy)]
pub struct Bloom(params::BloomSize);

impl Bloom {
    /// A filter for `elements` elements with which any of `queries` queries is a false positive with probability at
    /// most 2^-`exponent`: half of it for the filter, half for equal digests.
    pub fn new(exponent: u32, queries: usize, elements: usize) -> Self {
        Bloom(params::bloom(share(exponent, 2), queries, elements))
    }

    /// The positions of a digest: independent, each uniform up to a distance of 2^-64 times the filter's number of bits.
    fn positions(&self, digest: u128) -> impl Iterator<Item = u64> {
        let mut xof = blake3::Hasher::new().update(&digest.to_le_bytes()).finalize_xof();
        let bits = self.0.bits;
        (0..self.0.hashes).map(move |_| {
            let mut word = [0u8; 8];
            xof.fill(&mut word);
            ((u128::from(u64::from_le_bytes(word)) * u128::from(bits)) >> 64) as u64
        })
    }
}

impl CompactSet for Bloom {
    fn bytes(&self) -> usize {
        (self.0.bits / 8) as usize
    }

    fn send(&self, tx: &mut Tx, _: &Threads, digests: Secrets<u128>) -> Result<()> {
        let mut filter = vec![0u8; (self.0.bits / 8) as usize];
        for &digest in digests.iter() {
            self.positions(digest).for_each(|p| filter[(p / 8) as usize] |= 1 << (p % 8));
        }
        filter.chunks(FRAME).try_for_each(|frame| tx.send_bytes(FILTER, frame))
    }

    fn test(&self, rx: &mut Rx, threads: &Threads, queries: &[u128]) -> Result<Secrets<bool>> {
        let mut filter = Vec::new();
        for n in frames((self.0.bits / 8) as usize, FRAME) {
            filter.extend(rx.recv_bytes(FILTER, n)?);
        }
        let is_set = |p: u64| filter[(p / 8) as usize] >> (p % 8) & 1 == 1;
        let found = queries.par_iter().map(|&q| self.positions(q).all(is_set));
        Ok(Secrets::from(threads.run(|| found.collect::<Vec<_>>())))
    }
}
