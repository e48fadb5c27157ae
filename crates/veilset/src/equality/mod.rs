//! Equality with shared output: two parties have a list of short strings each, and get shares of the bits that say where
//! the lists agree. This file says what it is, the others how it is done.
//!
//! Neither party learns where they agree: its share of each bit is uniform by itself.

use crate::context::Context;
use crate::error::Result;
use crate::secret::Secrets;

/// Strings of at most this many bits.
pub const MAX_BITS: u32 = 64;

/// A protocol for equality with shared output.
///
/// Both pass as many strings, in one order, each in the low `bits` bits of a word; the other bits are ignored. The two
/// shares of a string add up (exclusive-or) to 1 if the strings agree, and to 0 otherwise.
pub trait Equality {
    /// Runs the party that is the receiver of the OTs underneath.
    fn receiver(&self, cx: &mut Context, strings: &[u64], bits: u32) -> Result<Secrets<bool>>;

    /// Runs the party that is the sender of the OTs underneath.
    fn sender(&self, cx: &mut Context, strings: &[u64], bits: u32) -> Result<Secrets<bool>>;
}

/// The ideal functionality, for tests of its users: the receiver sends its strings and its shares in the clear.
#[cfg(test)]
pub(crate) struct Ideal;

#[cfg(test)]
const ALL: crate::channel::Message<[u8; 9]> =
    crate::channel::Message::new(0x7011, "R->S  ideal equality, strings and shares");

#[cfg(test)]
impl Equality for Ideal {
    fn receiver(&self, cx: &mut Context, strings: &[u64], _: u32) -> Result<Secrets<bool>> {
        let shares = Secrets::from(strings.iter().map(|_| cx.rng.below(2) == 1).collect::<Vec<_>>());
        let mut all = Secrets::<[u8; 9]>::zeros(strings.len());
        for ((all, string), share) in all.iter_mut().zip(strings).zip(shares.iter()) {
            all[..8].copy_from_slice(&string.to_le_bytes());
            all[8] = u8::from(*share);
        }
        cx.ch.tx.send(ALL, &all)?;
        Ok(shares)
    }

    fn sender(&self, cx: &mut Context, strings: &[u64], bits: u32) -> Result<Secrets<bool>> {
        let theirs = cx.ch.rx.recv(ALL, strings.len())?;
        let share = |(all, string): (&[u8; 9], &u64)| {
            let theirs = u64::from_le_bytes(std::array::from_fn(|i| all[i]));
            let equal = (theirs ^ string) << (MAX_BITS - bits) == 0;
            equal ^ (all[8] == 1)
        };
        Ok(Secrets::from(theirs.iter().zip(strings).map(share).collect::<Vec<_>>()))
    }
}
