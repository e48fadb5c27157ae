//! One-sided transfer of rows: for each row the receiver has a choice bit, and it gets the row exactly
//! where the bit is the agreed one (CZZDL 3.1).
//!
//! Security and leakage: as the OT underneath. Cost: that of the OTs and one row each. Each row is encrypted
//! under its own single-use pad (AES-128 in counter mode, the counter starting at the row's number, so that no
//! two rows share a block even if an attacker tries one key on all of them). Rows have one public width, so
//! lengths do not show. There is no MAC: TLS authenticates, and the operation is semi-honest anyway.

use super::Pad;
use super::extension::{FRAME, Receiver, Sender};
use crate::channel::{Channel, Message, Unit, frames};
use crate::error::{Error, Result};
use crate::secret::Secrets;
use rayon::prelude::*;
use std::sync::mpsc;
use veilset_kernels::aes::Aes128;

/// Bytes of rows per frame, at most (or one row, if it is longer).
const ROW_BYTES: usize = 1 << 18;
const ROWS: Message<[u8]> = Message::new(0x41, "S->R  rows, encrypted");

pub(crate) fn rows_per_frame(width: usize) -> usize {
    (ROW_BYTES / width.max(1)).clamp(1, FRAME)
}

fn check(width: usize) -> Result<()> {
    match width {
        0 => Err(Error::Bug("a transfer of rows of no bytes".into())),
        _ => Ok(()),
    }
}

/// Encrypts or decrypts the rows from row `first` on, each under its pad, which is used for nothing else; before
/// that, `prepare(i, row)` is called for row i.
pub(crate) fn crypt(
    bytes: &mut [u8],
    width: usize,
    first: usize,
    pads: &[Pad],
    prepare: impl Fn(usize, &mut [u8]) + Sync,
) {
    let rows = bytes.par_chunks_exact_mut(width).zip(pads).enumerate();
    rows.for_each_init(
        || Secrets::zeros(width),
        |stream, (j, (row, pad))| {
            prepare(first + j, row);
            Aes128::new(pad).ctr(((first + j) as u128) << 64, stream);
            row.iter_mut().zip(stream.iter()).for_each(|(b, s)| *b ^= s);
        },
    );
}

/// Offers `n` rows of `width` bytes; `fill(i, row)` writes row i into a zeroed buffer.
pub fn send(
    ch: &mut Channel,
    ot: &mut Sender,
    n: usize,
    wanted: bool,
    width: usize,
    fill: impl Fn(usize, &mut [u8]) + Sync,
) -> Result<()> {
    check(width)?;
    ch.stage("sending", Unit::Bytes, n * width + ot.correction_bytes(n));
    let mut first = 0;
    for count in frames(n, FRAME) {
        let pads = ot.pads(&mut ch.rx, count)?.of(wanted);
        let mut at = first;
        for pads in pads.chunks(rows_per_frame(width)) {
            let mut bytes = vec![0u8; pads.len() * width];
            crypt(&mut bytes, width, at, pads, &fill);
            ch.tx.send_bytes(ROWS, &bytes)?;
            at += pads.len();
        }
        first += count;
    }
    Ok(())
}

/// Receives the rows whose choice is `wanted`: `take(is_wanted, row)` is called for every row, in order; rows
/// that are not wanted are noise. It cannot fail: an error in a row would tell the sender that it was read.
pub fn receive(
    ch: &mut Channel,
    ot: &mut Receiver,
    choices: &[bool],
    wanted: bool,
    width: usize,
    mut take: impl FnMut(bool, &[u8]),
) -> Result<()> {
    check(width)?;
    let n = choices.len();
    ch.stage("receiving", Unit::Bytes, n * width + ot.correction_bytes(n));
    // The sender answers each frame of corrections with rows, so both directions flow at once. The pads
    // wait in a queue, 16 bytes a row.
    let (pads_in, pads_out) = mpsc::channel();
    ch.duplex(
        |tx| {
            for choices in choices.chunks(FRAME) {
                // If the other half has failed, its error is the one that counts.
                let _ = pads_in.send(ot.pads(tx, choices)?);
            }
            drop(pads_in);
            Ok(())
        },
        |rx| {
            let mut at = 0;
            for count in frames(choices.len(), FRAME) {
                let mut pads: Option<Secrets<Pad>> = None;
                let per_frame = rows_per_frame(width);
                for (f, n) in frames(count, per_frame).enumerate() {
                    let mut bytes = rx.recv_bytes(ROWS, n * width)?;
                    let pads = match &pads {
                        Some(pads) => pads,
                        None => pads.insert(pads_out.recv().map_err(|_| gone())?),
                    };
                    let pads = pads.get(f * per_frame..f * per_frame + n).ok_or_else(gone)?;
                    // All rows are decrypted, the others to garbage: the sender sees how long we take.
                    let choices_here = &choices[at..at + n];
                    crypt(&mut bytes, width, at, pads, |_, _| ());
                    for (row, &choice) in bytes.chunks_exact(width).zip(choices_here) {
                        take(choice == wanted, row);
                    }
                    at += n;
                }
            }
            Ok(())
        },
    )?;
    Ok(())
}

fn gone() -> Error {
    Error::Network("sending the choices failed".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Prng;

    #[test]
    fn exactly_the_wanted_rows_arrive_and_the_others_are_noise() {
        let mut rng = Prng::from_seed(&[1; 32]);
        // Widths of less and more than a block, and one of which a frame holds only a few.
        for (n, width) in [(0, 5), (1, 1), (FRAME - 1, 3), (FRAME + 1, 17), (2 * FRAME + 5, 2), (9, 65_539)] {
            for wanted in [false, true] {
                let choices: Vec<bool> = (0..n).map(|_| rng.below(2) == 1).collect();
                let row = |i: usize| (0..width).map(|b| (i + 7 * b) as u8).collect::<Vec<u8>>();
                let (mut a, mut b) = Channel::pair();
                let session = [4; 32];
                let (mut got, mut noise, mut alike) = (Vec::new(), 0, 0u64);
                std::thread::scope(|s| {
                    s.spawn(|| {
                        let mut ot =
                            Sender::setup(&mut a, &session, "a", 6, &mut Prng::from_seed(&[1; 32])).unwrap();
                        send(&mut a, &mut ot, n, wanted, width, |i, out| out.copy_from_slice(&row(i)))
                            .unwrap();
                    });
                    let mut ot =
                        Receiver::setup(&mut b, &session, "a", 6, &mut Prng::from_seed(&[2; 32])).unwrap();
                    let mut i = 0;
                    receive(&mut b, &mut ot, &choices, wanted, width, |is_wanted, bytes| {
                        match is_wanted {
                            true => got.push(bytes.to_vec()),
                            false => {
                                noise += width as u64;
                                alike += bytes.iter().zip(row(i)).filter(|(a, b)| **a == *b).count() as u64;
                            }
                        }
                        i += 1;
                    })
                    .unwrap();
                });
                let expected: Vec<_> = (0..n).filter(|&i| choices[i] == wanted).map(row).collect();
                assert!(got == expected, "{n} {width} {wanted}");
                // A byte is right by chance with probability 1/256: six standard deviations above the mean.
                let mean = noise as f64 / 256.0;
                assert!(
                    alike as f64 <= mean + 6.0 * mean.sqrt() + 6.0,
                    "{n} {width} {wanted}: {alike} of {noise}"
                );
            }
        }
    }
}
