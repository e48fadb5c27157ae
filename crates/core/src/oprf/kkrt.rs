//! A batch of single-point OPRF instances with related keys: KKRT16 ("Efficient Batched Oblivious PRF with
//! Applications to Private Set Intersection", Kolesnikov, Kumaresan, Rosulek, Trieu, CCS 2016; KRTW19 3.2).
//!
//! In instance j the receiver has one input x_j and learns F_j(x_j). The sender learns the key of F_j, with
//! which it can evaluate F_j anywhere.
//!
//! Security: semi-honest, AES a pseudorandom function, H Hamming-correlation robust, the base OTs secure. The keys of all
//! instances share the secret s. To the receiver, F_j(x) is random if the code of x differs from the code of x_j in at least
//! 128 places. [`width`] makes the codes long enough for that to hold for all pairs of inputs that occur. The code is public,
//! so the inputs must not be chosen to fit it; semi-honest parties do not do so.
//!
//! Leakage: the number of instances. Cost: `width` bits per instance from receiver to sender, `width` base OTs,
//! and one hash per evaluation on both sides.
//!
//! The sender has a secret s of `width` bits. For each bit i the receiver knows two seeds, with the streams t0_i
//! and t1_i; the sender knows the one that s_i selects. C(x) is the pseudorandom code of x. The receiver sends
//! the columns u_i = t0_i + t1_i + C(.)_i. From them the sender computes the rows q_j = t0_j + (C(x_j) & s).
//! With F_j(x) = H(j, q_j + (C(x) & s)), the receiver's value is F_j(x_j) = H(j, t0_j).
//!
//! Departures: H is BLAKE3 with a key per frame, instead of AES under a fixed key (docs/corrections.md).
//! Instances are numbered within their frame, so that row and number fit into the one block that BLAKE3
//! compresses. C is the function F of CM20 4.2, because an input has 32 bytes.

use super::{Input, Output};
use crate::channel::{Message, Rx, Tx};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::{Domain, SessionId, part};
use crate::ot::base;
use crate::secret::{Secret, Secrets};
use crate::threads::Threads;
use rayon::prelude::*;
use veilset_kernels::aes::Aes128;
use veilset_kernels::bytes::xor;
use veilset_kernels::transpose::transpose_128;
use zeroize::Zeroizing;

/// Instances per frame: 4096. At a width of 448 the receiver sends 224 KiB for them and holds 1.1 MiB meanwhile.
/// The sender holds 0.8 MiB, of which the [`Keys`] are 256 KiB.
pub const FRAME: usize = 1 << 12;
/// The maximum width of a code. The last 4 bytes of the hashed block hold the number of the instance.
pub const MAX_WIDTH: usize = 480;
/// The minimum number of places in which the codes of two inputs differ, and so of bits of s to guess.
const DISTANCE: usize = 128;
/// Columns per group; a group is transposed at once.
const GROUP: usize = 128;
/// Groups of columns. Columns from the width on are zeros.
const GROUPS: usize = 4;
/// Columns per parallel task.
const TASK: usize = 32;
/// Inputs, or rows, hashed at once.
const BATCH: usize = 256;

const CORRECTIONS: Message<[u8]> = Message::new(0x75, "R->S  KKRT t0_i + t1_i + codes");

/// The pseudorandom code of an input: 512 bits, of which an OPRF uses the first `width`.
pub type Code = [[u8; 16]; GROUPS];

/// A row of the matrix, with zeros from the width on.
type Row = [[u8; 16]; GROUPS];

/// The smallest sufficient width, a multiple of 8, for `pairs` pairs of different inputs. A pair is the
/// receiver's input of an instance and an input at which the sender evaluates it. Except with probability
/// 2^-`exponent`, the codes of every pair differ in at least 128 places.
///
/// The codes of two inputs are random, so the number of places in which they differ is binomially distributed:
/// pairs * Pr[Binomial(width, 1/2) < 128] <= 2^-exponent.
///
/// # Errors
/// If the width would exceed [`MAX_WIDTH`], which does not happen for up to 2^43 pairs at exponent 40.
pub fn width(exponent: u32, pairs: usize) -> Result<usize> {
    // The margin of 1e-9 covers rounding errors.
    let most = (-f64::from(exponent)).exp2() / pairs.max(1) as f64 * (1.0 - 1e-9);
    let widths = (DISTANCE..=MAX_WIDTH).step_by(8);
    widths.into_iter().find(|&width| close(width) <= most).ok_or_else(|| {
        Error::usage(format!(
            "{pairs} pairs at an error of 2^-{exponent} need codes of more than {MAX_WIDTH} bits"
        ))
    })
}

/// Pr[Binomial(width, 1/2) < 128]
fn close(width: usize) -> f64 {
    let mut term = (-(width as f64)).exp2();
    let mut sum = 0.0;
    for k in 0..DISTANCE {
        sum += term;
        term *= (width - k) as f64 / (k + 1) as f64;
    }
    sum
}

fn check(width: usize) -> Result<()> {
    match width.is_multiple_of(8) && (DISTANCE..=MAX_WIDTH).contains(&width) {
        true => Ok(()),
        false => Err(Error::bug(format!("KKRT with codes of {width} bits"))),
    }
}

/// Computes codes: once per input, however many instances use it.
pub struct Coder {
    first: Aes128,
    others: [Aes128; GROUPS],
}

impl Coder {
    /// The code of a session; both parties have the same. For `purpose` see [`crate::ot`].
    pub fn new(session: &SessionId, purpose: &'static str) -> Coder {
        let keys: [u8; 80] = Domain::new(&part(session, purpose), "KKRT keys of the code").hash(&[]);
        let key = |i: usize| {
            let mut key = [0; 16];
            key.copy_from_slice(&keys[16 * i..][..16]);
            Aes128::new(&key)
        };
        Coder { first: key(0), others: [key(1), key(2), key(3), key(4)] }
    }

    /// Returns the codes of these inputs.
    pub fn codes(&self, inputs: &[Input]) -> Secrets<Code> {
        let mut codes = Secrets::<Code>::zeros(inputs.len());
        let batches = codes.par_chunks_mut(BATCH).zip(inputs.par_chunks(BATCH));
        batches.for_each_init(
            || (Secrets::zeros(BATCH), Secrets::zeros(BATCH)),
            |(macs, blocks): &mut (Secrets<[u8; 16]>, Secrets<[u8; 16]>), (codes, inputs)| {
                let (macs, blocks) = (&mut macs[..inputs.len()], &mut blocks[..inputs.len()]);
                // G_k0(x_0) + x_1
                macs.iter_mut().zip(inputs).for_each(|(mac, x)| mac.copy_from_slice(&x[..16]));
                self.first.encrypt(macs);
                macs.iter_mut().zip(inputs).for_each(|(mac, x)| xor(mac, &x[16..]));
                // Then G_k1, ..., G_k4 of the result, concatenated.
                for (g, cipher) in self.others.iter().enumerate() {
                    blocks.copy_from_slice(macs);
                    cipher.encrypt(blocks);
                    codes.iter_mut().zip(blocks.iter()).for_each(|(code, block)| code[g] = *block);
                }
            },
        );
        codes
    }
}

/// Bytes of a column of `n` instances.
fn column_bytes(n: usize) -> usize {
    n.next_multiple_of(GROUP) / 8
}

/// The counter of block `first` of column `i`. No two columns share a counter, so an attacker must try a key on each
/// of them separately.
fn counter(i: usize, first: u128) -> u128 {
    ((i as u128) << 64) + first
}

/// The first `n` rows of the columns.
fn rows(columns: &[u8], n: usize) -> Secrets<Row> {
    let bytes = column_bytes(n);
    let mut rows = Secrets::<Row>::zeros(n);
    let mut group = Secrets::<[u8; 16]>::zeros(8 * bytes);
    for (g, columns) in columns.chunks_exact((GROUP * bytes).max(1)).enumerate() {
        transpose_128(columns, bytes, &mut group);
        rows.iter_mut().zip(group.iter()).for_each(|(row, part)| row[g] = *part);
    }
    rows
}

/// The bits of the codes by columns, 128 codes at a time: element 512 b + i is column i of codes 128 b to 128
/// b + 127. Missing codes at the end count as zeros.
fn code_columns(codes: &[Code]) -> Secrets<[u8; 16]> {
    let blocks = codes.len().div_ceil(GROUP);
    let mut columns = Secrets::zeros(blocks * GROUPS * GROUP);
    let mut block = Secrets::<Code>::zeros(GROUP);
    for (columns, codes) in columns.chunks_exact_mut(GROUPS * GROUP).zip(codes.chunks(GROUP)) {
        block[..codes.len()].copy_from_slice(codes);
        block[codes.len()..].fill(Code::default());
        transpose_128(block.as_flattened().as_flattened(), size_of::<Code>(), columns);
    }
    columns
}

/// The counters that both sides advance in step, and H.
struct Common {
    /// The first unused block of the streams.
    block: u128,
    frame: u64,
    hash: Domain,
    /// The threads of the context in which this was set up.
    threads: Threads,
}

impl Common {
    fn new(session: &SessionId, purpose: &'static str, threads: &Threads) -> Common {
        let hash = Domain::new(&part(session, purpose), "KKRT output");
        Common { block: 0, frame: 0, hash, threads: threads.clone() }
    }

    /// The first block of the streams for a frame of `n` instances, and its hash function.
    fn next(&mut self, n: usize) -> (u128, Domain) {
        let now = (self.block, self.hash.numbered(self.frame));
        self.block += (column_bytes(n) / 16) as u128;
        self.frame += 1;
        now
    }
}

/// The input of H: a row, with the number of the instance at its end.
fn block(row: &Row, instance: usize) -> Row {
    let mut block = *row;
    block[GROUPS - 1][12..].copy_from_slice(&(instance as u32).to_le_bytes());
    block
}

/// Hashes the blocks in order.
fn hashed(hash: &Domain, out: &mut [Output], mut blocks: impl Iterator<Item = Row>) {
    let mut batch = Secrets::<Row>::zeros(out.len().min(BATCH));
    for out in out.chunks_mut(BATCH) {
        let batch = &mut batch[..out.len()];
        batch.iter_mut().zip(&mut blocks).for_each(|(to, block)| *to = block);
        hash.hash_blocks(64, batch.as_flattened().as_flattened().as_chunks().0, out);
    }
}

/// The receiver: one input per instance.
pub struct Receiver {
    streams: Vec<[Aes128; 2]>,
    common: Common,
}

impl Receiver {
    /// Runs the base OTs, as their sender. For `purpose` see [`crate::ot`].
    pub fn setup(cx: &mut Context, purpose: &'static str, width: usize) -> Result<Receiver> {
        check(width)?;
        let pads = base::sender(cx, purpose, width)?;
        let streams = pads.iter().map(|pair| [Aes128::new(&pair[0]), Aes128::new(&pair[1])]).collect();
        Ok(Receiver { streams, common: Common::new(&cx.session, purpose, cx.threads) })
    }

    /// Bytes of the corrections for `n` instances, excluding the frame header.
    pub fn correction_bytes(&self, n: usize) -> usize {
        self.streams.len() * column_bytes(n)
    }

    /// Evaluates the next instances, at most a [`FRAME`] of them, on inputs with these codes. Sends the
    /// corrections and returns F_j(x_j).
    pub fn evaluate(&mut self, tx: &mut Tx, codes: &[Code]) -> Result<Secrets<Output>> {
        let (n, bytes) = (codes.len(), column_bytes(codes.len()));
        let (first, hash) = self.common.next(n);
        let code_columns = code_columns(codes);
        let mut columns = Secrets::zeros(GROUPS * GROUP * bytes);
        let mut corrections = vec![0; self.correction_bytes(n)];
        // u_i = t0_i + t1_i + C(.)_i
        let pairs =
            corrections.par_chunks_exact_mut(bytes.max(1)).zip(columns.par_chunks_exact_mut(bytes.max(1)));
        let by_column = pairs.zip(&self.streams).enumerate().with_min_len(TASK);
        self.common.threads.run(|| {
            by_column.for_each(|(i, ((u, t0), streams))| {
                streams[0].ctr(counter(i, first), t0);
                streams[1].ctr(counter(i, first), u);
                xor(u, t0);
                for (u, codes) in u.chunks_exact_mut(16).zip(code_columns.chunks_exact(GROUPS * GROUP)) {
                    xor(u, &codes[i]);
                }
            })
        });
        tx.send_bytes(CORRECTIONS, &corrections)?;
        let rows = rows(&columns, n);
        let mut out = Secrets::zeros(n);
        let batches = out.par_chunks_mut(BATCH).zip(rows.par_chunks(BATCH)).enumerate();
        self.common.threads.run(|| {
            batches.for_each(|(b, (out, rows))| {
                hashed(&hash, out, rows.iter().enumerate().map(|(j, row)| block(row, b * BATCH + j)));
            })
        });
        Ok(out)
    }
}

/// The sender: the keys of all instances.
pub struct Sender {
    streams: Vec<Aes128>,
    /// Zeros from the width on.
    s: Secret<Row>,
    common: Common,
}

impl Sender {
    /// Picks s and runs the base OTs, as their receiver. For `purpose` see [`crate::ot`].
    pub fn setup(cx: &mut Context, purpose: &'static str, width: usize) -> Result<Sender> {
        check(width)?;
        let mut s = Zeroizing::new(Row::default());
        cx.rng.fill(&mut s.as_flattened_mut()[..width / 8]);
        let bits: Secrets<bool> = (0..width).map(|i| bit(&s, i) == 1).collect::<Vec<_>>().into();
        let pads = base::receiver(cx, purpose, &bits)?;
        let streams = pads.iter().map(Aes128::new).collect();
        Ok(Sender { streams, s: Secret::new(*s), common: Common::new(&cx.session, purpose, cx.threads) })
    }

    /// Bytes of the corrections for `n` instances, excluding the frame header.
    pub fn correction_bytes(&self, n: usize) -> usize {
        self.streams.len() * column_bytes(n)
    }

    /// Receives the corrections of the next `n` instances, at most a [`FRAME`] of them, and returns their keys.
    pub fn keys(&mut self, rx: &mut Rx, n: usize) -> Result<Keys> {
        let bytes = column_bytes(n);
        let corrections = rx.recv_bytes(CORRECTIONS, self.correction_bytes(n))?;
        let (first, hash) = self.common.next(n);
        // Column i of q is the stream that the sender knows, plus u_i where s_i = 1.
        let mut columns = Secrets::zeros(GROUPS * GROUP * bytes);
        let pairs =
            columns.par_chunks_exact_mut(bytes.max(1)).zip(corrections.par_chunks_exact(bytes.max(1)));
        let by_column = pairs.zip(&self.streams).enumerate().with_min_len(TASK);
        self.common.threads.run(|| {
            by_column.for_each(|(i, ((q, u), stream))| {
                stream.ctr(counter(i, first), q);
                let mask = bit(&self.s, i).wrapping_neg();
                q.iter_mut().zip(u).for_each(|(q, u)| *q ^= u & mask);
            })
        });
        Ok(Keys { rows: rows(&columns, n), s: Secret::new(*self.s), hash })
    }
}

fn bit(row: &Row, i: usize) -> u8 {
    row.as_flattened()[i / 8] >> (i % 8) & 1
}

/// The keys of a frame of instances.
pub struct Keys {
    rows: Secrets<Row>,
    s: Secret<Row>,
    hash: Domain,
}

impl Keys {
    /// F_j of the input with this code; j is the number of the instance within the frame.
    ///
    /// # Panics
    /// If there is no such instance.
    pub fn evaluate(&self, instance: usize, code: &Code) -> Output {
        let mut out = [Output::default()];
        hashed(&self.hash, &mut out, std::iter::once(self.block(instance, code)));
        out[0]
    }

    /// F_j(x) for each pair of an instance number within the frame and a code. Timing may reveal which instances
    /// and codes are evaluated.
    ///
    /// # Panics
    /// If there is no such instance.
    pub fn evaluate_all<'c>(&self, at: impl ExactSizeIterator<Item = (usize, &'c Code)>) -> Secrets<Output> {
        let mut out = Secrets::zeros(at.len());
        hashed(&self.hash, &mut out, at.map(|(instance, code)| self.block(instance, code)));
        out
    }

    /// q_j + (C(x) & s), with the number of the instance.
    fn block(&self, instance: usize, code: &Code) -> Row {
        let mut row = self.rows[instance];
        let bytes = row.as_flattened_mut().iter_mut();
        let masked = code.as_flattened().iter().zip(self.s.as_flattened()).map(|(c, s)| c & s);
        bytes.zip(masked).for_each(|(q, c)| *q ^= c);
        block(&row, instance)
    }
}

#[cfg(test)]
#[path = "kkrt_tests.rs"]
mod tests;
