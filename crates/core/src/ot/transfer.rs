//! Transfer of rows with OT. *One-sided*: the receiver has one choice bit per row, and gets the row if and only if the
//! bit has the agreed value (CZZDL 3.1). *1-of-2*: it gets the row of its choice from each pair of rows.
//!
//! Security and leakage: those of the underlying OT, in the semi-honest and in the malicious form. Cost: the OTs, and one
//! or two rows per OT. Each row is encrypted under its own single-use pad with AES-128 in counter mode. The counter
//! depends on the number of the OT, so that an attacker must try a key on the rows of each OT separately. All rows have
//! the same public width, so lengths reveal nothing. Rows have no MAC: TLS authenticates, and a malicious sender could
//! offer other rows anyway.

use super::Pad;
use super::extension::{FRAME, Receiver, Sender};
use crate::channel::{Channel, Message, Unit, frames};
use crate::error::{Error, Result};
use crate::secret::Secrets;
use rayon::prelude::*;
use subtle::{Choice, ConditionallySelectable};
use veilset_kernels::aes::Aes128;

/// Maximum size of the rows of a frame in bytes. A longer row gets its own frame.
const ROW_BYTES: usize = 1 << 18;
/// Number of frames of OTs whose pads may wait for rows, in addition to the current one: 2^20 OTs, 16 MiB of pads. The
/// limit is reached only if bandwidth times round-trip time is at least their 2.9 MB of corrections (k = 6): 290 Mbit/s at
/// 80 ms. With rows of 66 bytes it is 69 MB, or 6.9 Gbit/s at 80 ms. Below that the limit costs no time.
pub(crate) const AHEAD: usize = 1 << 7;
const ROWS: Message<[u8]> = Message::new(0x41, "S->R  rows, encrypted");
const PAIRS: Message<[u8]> =
    Message::new(0x37, "S->R  both rows of each pair, encrypted: the first ones, the second ones");

pub(crate) fn rows_per_frame(width: usize) -> usize {
    (ROW_BYTES / width.max(1)).clamp(1, FRAME)
}

pub(crate) fn check(width: usize) -> Result<()> {
    match width {
        0 => Err(Error::Bug("a transfer of rows of no bytes".into())),
        _ => Ok(()),
    }
}

/// Encrypts or decrypts rows, numbered from `first`, each under its single-use pad. Calls `prepare(i, row)` on each row i
/// before that.
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

/// Offers `n` rows of `width` bytes for the choice `wanted`; `fill(i, row)` writes row i into a zeroed buffer.
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
            ot.threads().run(|| crypt(&mut bytes, width, at, pads, &fill));
            ch.tx.send_bytes(ROWS, &bytes)?;
            at += pads.len();
        }
        first += count;
    }
    Ok(())
}

/// Receives the rows whose choice is `wanted`. Calls `take(is_wanted, row)` for every row, in order; unwanted rows are
/// noise. `take` cannot fail, since an error would reveal to the sender that the row was read.
pub fn receive(
    ch: &mut Channel,
    ot: &mut Receiver,
    choices: &[bool],
    wanted: bool,
    width: usize,
    mut take: impl FnMut(bool, &[u8]),
) -> Result<()> {
    check(width)?;
    let threads = ot.threads().clone();
    begin(ch, ot, choices, width);
    receive_frames(ch, ot, choices, ROWS, width, |first, choices, pads, rows| {
        // All rows are decrypted, unwanted ones to noise, because the sender can time us.
        threads.run(|| crypt(rows, width, first, pads, |_, _| ()));
        for (row, &choice) in rows.chunks_exact(width).zip(choices) {
            take(choice == wanted, row);
        }
    })
}

/// Offers `n` pairs of rows of `width` bytes. `fill(i, choice, row)` writes the row of pair i for this choice into a
/// zeroed buffer.
pub fn send_pairs(
    ch: &mut Channel,
    ot: &mut Sender,
    n: usize,
    width: usize,
    fill: impl Fn(usize, bool, &mut [u8]) + Sync,
) -> Result<()> {
    check(width)?;
    ch.stage("sending", Unit::Bytes, 2 * n * width + ot.correction_bytes(n));
    let mut first = 0;
    for count in frames(n, FRAME) {
        let pairs = ot.pads(&mut ch.rx, count)?;
        let (zeros, ones) = (pairs.of(false), pairs.of(true));
        let per_frame = rows_per_frame(2 * width);
        for (zeros, ones) in zeros.chunks(per_frame).zip(ones.chunks(per_frame)) {
            let mut bytes = vec![0u8; 2 * zeros.len() * width];
            let (row_0, row_1) = bytes.split_at_mut(zeros.len() * width);
            ot.threads().run(|| {
                crypt(row_0, width, first, zeros, |i, row| fill(i, false, row));
                crypt(row_1, width, first, ones, |i, row| fill(i, true, row));
            });
            ch.tx.send_bytes(PAIRS, &bytes)?;
            first += zeros.len();
        }
    }
    Ok(())
}

/// Receives the chosen row of each pair. Calls `take(row)` for each, in order.
pub fn receive_chosen(
    ch: &mut Channel,
    ot: &mut Receiver,
    choices: &[bool],
    width: usize,
    mut take: impl FnMut(&[u8]),
) -> Result<()> {
    check(width)?;
    let threads = ot.threads().clone();
    begin(ch, ot, choices, 2 * width);
    receive_frames(ch, ot, choices, PAIRS, 2 * width, |first, choices, pads, bytes| {
        let (rows, ones) = bytes.split_at_mut(choices.len() * width);
        // Both rows are read, and no address depends on the choice.
        for ((row, one), &choice) in rows.chunks_exact_mut(width).zip(ones.chunks_exact(width)).zip(choices) {
            let choice = Choice::from(u8::from(choice));
            row.iter_mut().zip(one).for_each(|(row, one)| row.conditional_assign(one, choice));
        }
        threads.run(|| crypt(rows, width, first, pads, |_, _| ()));
        rows.chunks_exact(width).for_each(&mut take);
    })
}

/// Announces the stage of a transfer with `width` bytes per OT.
fn begin(ch: &Channel, ot: &Receiver, choices: &[bool], width: usize) {
    ch.stage("receiving", Unit::Bytes, choices.len() * width + ot.correction_bytes(choices.len()));
}

/// Sends the corrections and receives the answering frames, with `width` bytes per OT. Calls `open(first, choices,
/// pads, bytes)` for each.
pub(crate) fn receive_frames(
    ch: &mut Channel,
    ot: &mut Receiver,
    choices: &[bool],
    message: Message<[u8]>,
    width: usize,
    mut open: impl FnMut(usize, &[bool], &[Pad], &mut [u8]),
) -> Result<()> {
    // The sender answers each frame of corrections with rows, so both directions flow at once. The pads are queued. Once the
    // queue is full, a sender that withholds rows gets no more corrections. So the queue bounds the memory that it can make
    // us hold.
    ch.duplex_with_queue(
        AHEAD,
        |tx, pads| choices.chunks(FRAME).try_for_each(|choices| pads.put(ot.pads(tx, choices)?)),
        |rx, queue| {
            let mut at = 0;
            for count in frames(choices.len(), FRAME) {
                let mut pads: Option<Secrets<Pad>> = None;
                let per_frame = rows_per_frame(width);
                for (f, n) in frames(count, per_frame).enumerate() {
                    let mut bytes = Secrets::from(rx.recv_bytes(message, n * width)?);
                    let pads = match &pads {
                        Some(pads) => pads,
                        None => pads.insert(queue.take()?),
                    };
                    let pads = pads.get(f * per_frame..f * per_frame + n);
                    let pads = pads.ok_or_else(|| Error::Bug("fewer pads than rows".into()))?;
                    open(at, &choices[at..at + n], pads, &mut bytes);
                    at += n;
                }
            }
            Ok(())
        },
    )?;
    Ok(())
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
