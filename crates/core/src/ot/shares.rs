//! Shares of rows with OT: for each row of S, the parties get shares that add up to the row if R's choice bit is 1, and
//! to zero otherwise (CZZDL 8.1, Figure 12, "card-secret-sharing").
//!
//! Security and leakage: those of the underlying OT. To each party its own share is random: S's share is minus the key
//! stream G(K_0) of its first pad; R's is the key stream of its pad, plus, if its choice is 1, a correction that depends
//! on the other pad.
//!
//! Cost: the OTs, and one row per OT.
//!
//! Departure from the figure, in which S sends r_i and r_i + x_i under the two pads: here r_i = G(K_0), and S sends
//! only the correction G(K_0) + x_i - G(K_1): half the traffic, and the same distribution.

use super::extension::{FRAME, Receiver, Sender};
use super::transfer::{check, crypt, receive_frames, rows_per_frame};
use crate::channel::{Channel, Message, Unit, frames};
use crate::error::Result;
use crate::secret::Secrets;
use rayon::prelude::*;

const CORRECTIONS: Message<[u8]> = Message::new(0x38, "S->R  corrections of shares, G(K_0) + x - G(K_1)");

/// The addition of shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Bitwise addition, modulo 2. Rows have any width.
    Xor,
    /// Addition of little-endian numbers modulo 2^64. Rows have 8 bytes.
    Additive,
}

impl Sharing {
    /// a := a + b
    fn add(self, a: &mut [u8], b: &[u8]) {
        match self {
            Sharing::Xor => a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b),
            Sharing::Additive => on_words(a, b, u64::wrapping_add),
        }
    }

    /// a := a - b
    fn subtract(self, a: &mut [u8], b: &[u8]) {
        match self {
            Sharing::Xor => self.add(a, b),
            Sharing::Additive => on_words(a, b, u64::wrapping_sub),
        }
    }
}

fn on_words(a: &mut [u8], b: &[u8], combine: fn(u64, u64) -> u64) {
    for (a, b) in a.as_chunks_mut().0.iter_mut().zip(b.as_chunks().0) {
        *a = combine(u64::from_le_bytes(*a), u64::from_le_bytes(*b)).to_le_bytes();
    }
}

/// Shares `n` rows of `width` bytes; `fill(i, row)` writes row i into a zeroed buffer. Calls `take(shares)` with our shares
/// of the rows of each frame, in order.
///
/// # Errors
/// The errors of the OT and of the channel, and [`crate::error::Error::Bug`] for rows of no bytes.
pub fn send(
    ch: &mut Channel,
    ot: &mut Sender,
    n: usize,
    (sharing, width): (Sharing, usize),
    fill: impl Fn(usize, &mut [u8]) + Sync,
    mut take: impl FnMut(&[u8]),
) -> Result<()> {
    check(width)?;
    ch.stage("sharing", Unit::Bytes, n * width + ot.correction_bytes(n));
    let mut first = 0;
    for count in frames(n, FRAME) {
        let pads = ot.pads(&mut ch.rx, count)?;
        let (zeros, ones) = (pads.of(false), pads.of(true));
        let per_frame = rows_per_frame(width);
        for (zeros, ones) in zeros.chunks(per_frame).zip(ones.chunks(per_frame)) {
            let mut ours = Secrets::<u8>::zeros(zeros.len() * width);
            let mut others = Secrets::<u8>::zeros(zeros.len() * width);
            let mut corrections = vec![0; zeros.len() * width];
            ot.threads().run(|| {
                crypt(&mut ours, width, first, zeros, |_, _| ());
                crypt(&mut others, width, first, ones, |_, _| ());
                let rows = corrections.par_chunks_exact_mut(width).zip(ours.par_chunks_exact_mut(width));
                let rows = rows.zip(others.par_chunks_exact(width)).enumerate();
                rows.for_each(|(j, ((row, ours), other))| {
                    fill(first + j, row);
                    sharing.add(row, ours);
                    sharing.subtract(row, other);
                    // R has r + x, so our share is -r.
                    let mut share = Secrets::<u8>::zeros(width);
                    sharing.subtract(&mut share, ours);
                    ours.copy_from_slice(&share);
                });
            });
            ch.tx.send_bytes(CORRECTIONS, &corrections)?;
            take(&ours);
            first += zeros.len();
        }
    }
    Ok(())
}

/// Receives shares of one row of `width` bytes per choice bit. Calls `take(shares)` with our shares of the rows of each
/// frame, in order.
///
/// # Errors
/// The errors of the OT and of the channel, and [`crate::error::Error::Bug`] for rows of no bytes.
pub fn receive(
    ch: &mut Channel,
    ot: &mut Receiver,
    choices: &[bool],
    (sharing, width): (Sharing, usize),
    mut take: impl FnMut(&[u8]),
) -> Result<()> {
    check(width)?;
    ch.stage("sharing", Unit::Bytes, choices.len() * width + ot.correction_bytes(choices.len()));
    let threads = ot.threads().clone();
    receive_frames(ch, ot, choices, CORRECTIONS, width, |first, choices, pads, corrections| {
        threads.run(|| {
            // Every correction is read, and masked with the choice, because S can time us.
            corrections.par_chunks_exact_mut(width).zip(choices).for_each(|(correction, &choice)| {
                let mask = u8::from(choice).wrapping_neg();
                correction.iter_mut().for_each(|byte| *byte &= mask);
            });
            let mut streams = Secrets::<u8>::zeros(corrections.len());
            crypt(&mut streams, width, first, pads, |_, _| ());
            let shares = corrections.par_chunks_exact_mut(width).zip(streams.par_chunks_exact(width));
            shares.for_each(|(share, stream)| sharing.add(share, stream));
        });
        take(corrections);
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Security, extension};
    use super::*;
    use crate::hash::SessionId;
    use crate::testing::{Views, every_bit_is_random, run_pair};

    /// The shares of S and R for rows that all equal `row`.
    fn shared(choices: &[bool], row: &[u8], sharing: Sharing, session: u8) -> ([Vec<Vec<u8>>; 2], Views) {
        let (n, width) = (choices.len(), row.len());
        let rows = |bytes: &[u8]| bytes.chunks(width).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let ((s, r), views) = run_pair(
            &SessionId::of([session; 32]),
            |cx| {
                let mut ot =
                    extension::Sender::setup(cx, "test", extension::DEFAULT_K, Security::SemiHonest)?;
                let mut shares = Vec::new();
                let fill = |_: usize, to: &mut [u8]| to.copy_from_slice(row);
                send(cx.ch, &mut ot, n, (sharing, width), fill, |s| shares.extend(rows(s)))?;
                Ok(shares)
            },
            |cx| {
                let mut ot =
                    extension::Receiver::setup(cx, "test", extension::DEFAULT_K, Security::SemiHonest)?;
                let mut shares = Vec::new();
                receive(cx.ch, &mut ot, choices, (sharing, width), |s| shares.extend(rows(s)))?;
                Ok(shares)
            },
        );
        ([s, r], views)
    }

    #[test]
    fn shares_add_up_to_the_row_or_to_zero() {
        for n in [0, 1, 5, FRAME + 3] {
            let choices: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
            let value = (-7i64).to_le_bytes();
            for (sharing, row) in [(Sharing::Xor, &b"\x03abc\0"[..]), (Sharing::Additive, &value)] {
                let ([s, r], _) = shared(&choices, row, sharing, 1);
                assert_eq!((s.len(), r.len()), (n, n));
                for ((mut s, r), &choice) in s.into_iter().zip(r).zip(&choices) {
                    sharing.add(&mut s, &r);
                    assert_eq!(s, if choice { row.to_vec() } else { vec![0; row.len()] });
                }
            }
        }
    }

    /// For any choice, each party's share is random on its own, in each row and in each session, and so are S's
    /// messages.
    #[test]
    fn each_share_is_random() {
        let choices = vec![[true, false]; 300].concat();
        for sharing in [Sharing::Xor, Sharing::Additive] {
            for session in [1, 2] {
                let ([s, r], views) = shared(&choices, &[1; 8], sharing, session);
                let sent = crate::testing::parts(&views.0[1], 0x38, 8);
                for list in [s, r, sent] {
                    for choice in [0, 1] {
                        let rows: Vec<_> = list.iter().skip(choice).step_by(2).collect();
                        every_bit_is_random(&rows, 64);
                    }
                    assert_eq!(list.iter().collect::<std::collections::HashSet<_>>().len(), list.len());
                }
            }
        }
    }
}
