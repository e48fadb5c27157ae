//! Equality with shared output: two parties each have a list of short strings, and get shares of the bits that show where the
//! lists agree. This module defines the functionality; [`nibbles`] implements it.
//!
//! Neither party learns where they agree: its share of each bit is uniform by itself.

mod bits;
pub mod nibbles;

use crate::context::Context;
use crate::error::Result;
use crate::secret::Secrets;

/// The maximum length of a string in bits.
pub const MAX_BITS: u32 = u128::BITS;

/// A protocol for equality with shared output.
///
/// Both parties pass the same number of strings, in the same order, each in the low `bits` bits of a word; the other bits are
/// ignored. The two shares of a pair add up (exclusive-or) to 1 if its strings agree, and to 0 otherwise.
pub trait Equality {
    /// Runs the party that is the receiver of the underlying OTs.
    fn receiver(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>>;

    /// Runs the party that is the sender of the underlying OTs.
    fn sender(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>>;
}

/// The ideal functionality, for testing its callers: the receiver sends its strings in the clear.
#[cfg(any(test, feature = "test-util"))]
pub struct Ideal;

#[cfg(any(test, feature = "test-util"))]
const STRINGS: crate::channel::Message<[u8; 16]> =
    crate::channel::Message::new(0x7011, "ideal equality, the strings there and the shares back");

#[cfg(any(test, feature = "test-util"))]
impl Equality for Ideal {
    fn receiver(&self, cx: &mut Context, strings: &[u128], _: u32) -> Result<Secrets<bool>> {
        cx.ch.tx.send(STRINGS, &strings.iter().map(|string| string.to_le_bytes()).collect::<Vec<_>>())?;
        let shares = cx.ch.rx.recv(STRINGS, strings.len())?;
        Ok(Secrets::from(shares.iter().map(|share| share[0] == 1).collect::<Vec<_>>()))
    }

    fn sender(&self, cx: &mut Context, strings: &[u128], bits: u32) -> Result<Secrets<bool>> {
        let theirs = cx.ch.rx.recv(STRINGS, strings.len())?;
        let ours: Vec<bool> = strings.iter().map(|_| cx.rng.below(2) == 1).collect();
        let agree = |(a, b): (&u128, &[u8; 16])| (a ^ u128::from_le_bytes(*b)) << (MAX_BITS - bits) == 0;
        let pairs = strings.iter().zip(&theirs).zip(&ours);
        let shares: Vec<[u8; 16]> = pairs.map(|(pair, ours)| [u8::from(agree(pair) ^ ours); 16]).collect();
        cx.ch.tx.send(STRINGS, &shares)?;
        Ok(Secrets::from(ours))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::rng::Prng;
    use crate::testing::{ANY_SESSION, every_bit_is_random, run_pair};

    /// Two lists of strings of `bits` bits. A third of them agree, a third differ in one bit (each bit in turn), and the others
    /// are independent. The bits above the strings are independent in all pairs.
    pub(crate) fn lists(n: usize, bits: u32) -> [Vec<u128>; 2] {
        let mut rng = Prng::from_seed(&[u8::try_from(bits).unwrap(); 32]);
        let mut word = || u128::from_le_bytes(rng.bytes());
        let ours: Vec<u128> = (0..n).map(|_| word()).collect();
        let noise = |word: u128| if bits < MAX_BITS { word << bits } else { 0 };
        let other = |(j, string): (usize, &u128)| match j % 3 {
            0 => string ^ noise(word()),
            1 => string ^ noise(word()) ^ 1 << (j / 3 % bits as usize),
            _ => word(),
        };
        let theirs = ours.iter().enumerate().map(other).collect();
        [ours, theirs]
    }

    /// Whether the strings of each pair agree.
    pub(crate) fn agree([ours, theirs]: &[Vec<u128>; 2], bits: u32) -> Vec<bool> {
        ours.iter().zip(theirs).map(|(a, b)| (0..bits).all(|bit| (a ^ b) >> bit & 1 == 0)).collect()
    }

    /// Checks that the shares add up to the plain result, that each is random by itself, and that lengths depend on the sizes
    /// only. Every protocol must pass it. `batch` is a number of strings at which a new batch or frame begins.
    pub(crate) fn is_an_equality(protocol: &(impl Equality + Sync), batch: usize) {
        let around = [0, 1, batch - 1, batch, batch + 1].map(|n| (n, 17));
        let widths = [1, 3, 4, 5, 17, 40, 63, 64, 65, 68, 127, 128].map(|bits| (630, bits));
        for (n, bits) in around.into_iter().chain(widths) {
            let pair = lists(n, bits);
            let [ours, theirs] = &pair;
            let run = |theirs: &[u128]| {
                run_pair(
                    &ANY_SESSION,
                    |cx| protocol.receiver(cx, ours, bits),
                    |cx| protocol.sender(cx, theirs, bits),
                )
            };
            let ((r, s), views) = run(theirs);
            assert_eq!((r.len(), s.len()), (n, n));
            let expected = agree(&pair, bits);
            let sums: Vec<bool> = r.iter().zip(s.iter()).map(|(r, s)| r ^ s).collect();
            assert_eq!(sums, expected, "{n} strings of {bits} bits");
            for (shares, agreeing) in [(&r, true), (&r, false), (&s, true), (&s, false)] {
                let of = shares.iter().zip(&expected).filter(|(_, agree)| **agree == agreeing);
                let of: Vec<[u8; 1]> = of.map(|(share, _)| [u8::from(*share)]).collect();
                if n >= 600 {
                    every_bit_is_random(&of, 1);
                }
            }
            if n > 0 && n < 600 {
                let (_, others) = run(ours);
                assert!([0, 1].iter().all(|&party| views.frames(party) == others.frames(party)));
            }
        }
    }

    #[test]
    fn the_ideal_functionality_is_one() {
        is_an_equality(&Ideal, 100);
    }
}
