//! The multi-point OPRF of CM20 (Chase and Miao, "Private Set Intersection in the Internet Setting From
//! Lightweight Oblivious PRF", CRYPTO 2020, Figures 3 and 4, without the final comparison). The paper's P_1 is
//! the sender S with set X, its P_2 the receiver R with set Y.
//!
//! R has a matrix D of ones, in which the code F_k(y) of each input y clears one bit per column. A is random,
//! and B = A + D. By OT, S obtains its choice of A_i or B_i for each column i; these are the columns of C. Where
//! the code of an input selects zeros of D, A and C agree. Elsewhere the choices s decide. The value at x is
//! `H_2(C_1[v_1] .. C_w[v_w])` with v = F_k(x).
//!
//! Security: semi-honest. The base OTs are secure against malicious parties ([`crate::ot::base`]), AES is a
//! pseudorandom permutation, H_2 is 128-Hamming correlation robust. With [`MultiPoint::malicious_sender`] it is also
//! secure against a malicious sender, if BLAKE3 (which is H_1, computing inputs from items, and H_2) is a random
//! oracle. The inputs of S that R does not have all hit at least 128 ones of D, except with probability at most
//! 2^-40 in total, or this run's share of it ([`Context::exponent`]).
//!
//! Leakage: the sizes. Cost: w (m / 8 + 96) bytes with m and w from [`Matrix::new`], about 78 bytes per input of
//! R at a million each. For each input, R computes 3w / 8 AES blocks, reads w bits and clears as many; S does
//! the same without clearing.
//!
//! The positions that are read and written depend on F_k of secret inputs. A program on the same machine that observes the
//! caches could learn something about them, since both parties know k. The peer cannot: the number of positions and the order
//! of all messages follow from the sizes. It sees only the time of whole groups of columns.
//!
//! A malicious receiver whose D is all zeros knows F everywhere, regardless of the sender's choices. It can then test any
//! number of guesses against the sender's later messages. The sender cannot detect this.
//!
//! Limits of a malicious sender:
//! - It cannot choose s after learning k, because k is sent from `Seeds`, which exist only after the OTs. With k
//!   it could search for items that have the same row.
//! - It cannot choose its columns. A receiver of base OTs may be able to influence its pads, but here R's
//!   message comes second and is hashed into them.
//!
//! Departures from the paper:
//! - 3(c) is read as v = F_k(H_1(y)), not F_k(y);
//! - m is a power of two, so that a number below m is log2 m bits of F, and never a remainder. The width is
//!   computed for sets of any sizes;
//! - the base OTs give the columns of A directly, through AES in counter mode, instead of by OT extension;
//! - k is sent after the base OTs and before the columns (as in the paper's implementation, 4.2);
//! - H_2 is BLAKE3 over 160-bit pieces of a row, chained by including the previous value. This is as good as
//!   hashing the whole row, since all rows have the same number of pieces, and it stores 20 bytes per input
//!   instead of 78.
//!
//! If either set is empty, nothing is sent: values that the other party never evaluates are random.

use super::{Input, Oprf, OprfCost, Output};
use crate::channel::queue::{Put, Take, queue};
use crate::channel::{HEADER, Message, Rx, Tx, Unit, frames};
use crate::context::Context;
use crate::error::Result;
use crate::hash::{Domain, SessionId};
use crate::ot::{Pad, base};
use crate::params::matrix::Matrix;
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::threads::Threads;
use crate::work::{Primitive, Step, Work};
use rayon::prelude::*;
use veilset_kernels::aes::Aes128;

const KEY: Message<[u8; 16]> = Message::new(0x81, "R->S  key k of F");
const DELTAS: Message<[u8]> = Message::new(0x82, "R->S  columns Delta_i");
/// Maximum bytes of columns per frame.
const FRAME: usize = 1 << 18;
const PURPOSE: &str = "multi-point OPRF, columns of A and B";

/// Columns that are computed, sent and read together: one byte of a row. R holds (4 t + 1) m bytes for them with t
/// threads, and S (3 t + 2) m.
const GROUP: usize = 8;
/// Columns covered by one block of F, with 32 bits each.
const LANES: usize = 4;
/// Groups that H_2 takes at a time, so that with the number of the piece and the previous value they fit into one block
/// of BLAKE3. Both parties hold 20 bytes of rows per input in addition to its value of 32 bytes: 55 MB for a million
/// inputs.
const PIECE: usize = 20;
/// Inputs whose rows are hashed at once.
const BATCH: usize = 1 << 8;
/// Inputs processed at a time. Their blocks of F take 256 KiB: few enough for the second-level cache, and enough
/// to amortise fetching a column.
const CHUNK: usize = 1 << 14;
/// Bytes that a base OT takes while it is computed.
const SETUP: usize = 1 << 10;

/// The multi-point OPRF of CM20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MultiPoint {
    /// Whether the matrix is sized to withstand a malicious sender. Both parties must agree on this.
    pub malicious_sender: bool,
}

impl MultiPoint {
    /// The matrix for `n_x` inputs of the sender and `n_y` of the receiver, in a run with error 2^-`exponent`.
    pub(crate) fn matrix(self, exponent: u32, n_x: usize, n_y: usize) -> Matrix {
        Matrix::new(exponent, n_x, n_y, self.malicious_sender)
    }

    /// The cost for `n_y` inputs of the receiver and `n_x` of the sender: the base OTs, the key of F and the columns.
    pub(crate) fn cost(self, exponent: u32, n_y: usize, n_x: usize) -> OprfCost {
        let matrix = self.matrix(exponent, n_x, n_y);
        let runs = usize::from(n_y > 0 && n_x > 0);
        let columns: usize = column_frames(&matrix).map(|bytes| bytes + HEADER).sum();
        let to_sender = 32 * matrix.width + HEADER + 16 + HEADER + columns;
        let to_receiver = 64 * matrix.width + HEADER;
        let both = [n_y, n_x];
        let work = |n| {
            Work::of(Primitive::BaseOt, runs * matrix.width)
                + Work::of(Primitive::MatrixBit, runs * n * matrix.width)
        };
        // A group of columns has a byte per row in each of its forms. For each thread R holds A, D and Delta, S
        // Delta and C, and both a group in the queue, and the blocks of a chunk.
        let group = |forms, n: usize| forms * matrix.height + 32 * n.min(CHUNK);
        // The half with the connection holds one group more, and S's half another one while the queue is full.
        let connection = [1, 2].map(|groups| groups * matrix.height);
        OprfCost {
            steps: vec![
                Step::of(work(n_y), work(n_x)).sends((runs * to_sender) as u64, (runs * to_receiver) as u64),
            ],
            // The columns travel with the answer to the base OTs.
            rounds: 2 * runs,
            answered: false,
            // Values of 32 bytes, and the pieces of their rows.
            held: [0, 1].map(|i| SETUP * matrix.width + (32 + PIECE) * both[i] + runs * connection[i]),
            each_thread: [group(4, n_y), group(3, n_x)].map(|bytes| runs * bytes),
            progress: (Unit::Bytes, runs * matrix.width * (matrix.height / 8)),
        }
    }
}

/// The sizes of the frames of columns. Frame boundaries need not match column boundaries.
fn column_frames(matrix: &Matrix) -> impl Iterator<Item = usize> + use<> {
    frames(matrix.width * (matrix.height / 8), FRAME)
}

impl Oprf for MultiPoint {
    fn receiver(&self, cx: &mut Context, inputs: &[Input], n_x: usize) -> Result<Secrets<Output>> {
        if inputs.is_empty() || n_x == 0 {
            return Ok(random_values(inputs.len(), cx.rng));
        }
        let matrix = self.matrix(cx.exponent, n_x, inputs.len());
        // 2. Random OTs with R as the sender, and
        let seeds = Seeds::agree(cx, &matrix)?;
        // 1(b), 3(a). then the key of F.
        let f = seeds.send_key(&mut cx.ch.tx, &matrix, cx.rng)?;
        offer(cx, &matrix, &seeds, &f, inputs)
    }

    fn sender(&self, cx: &mut Context, inputs: &[Input], n_y: usize) -> Result<Secrets<Output>> {
        if inputs.is_empty() || n_y == 0 {
            return Ok(random_values(inputs.len(), cx.rng));
        }
        let matrix = self.matrix(cx.exponent, inputs.len(), n_y);
        // 1. S picks s and 2. uses it as its choices.
        let choices = random_choices(matrix.width, cx.rng);
        let pads = base::receiver(cx, PURPOSE, &choices)?;
        let f = Code::new(&cx.ch.rx.recv(KEY, 1)?[0], &matrix);
        take(cx, &matrix, &choices, &pads, &f, inputs)
    }
}

/// Values of a function that the other party never evaluates.
fn random_values(n: usize, rng: &mut Prng) -> Secrets<Output> {
    let mut values = Secrets::<Output>::zeros(n);
    rng.fill(values.as_flattened_mut());
    values
}

/// S's choices s, one per column.
fn random_choices(width: usize, rng: &mut Prng) -> Secrets<bool> {
    let mut random = Secrets::<u8>::zeros(width);
    rng.fill(&mut random);
    Secrets::from(random.iter().map(|byte| byte & 1 == 1).collect::<Vec<_>>())
}

/// R's seeds of the columns r^(0), r^(1). Their existence proves that S has made its choices.
struct Seeds(Secrets<[Pad; 2]>);

impl Seeds {
    /// Runs the base OTs.
    fn agree(cx: &mut Context, matrix: &Matrix) -> Result<Seeds> {
        base::sender(cx, PURPOSE, matrix.width).map(Seeds)
    }

    /// Picks the key of F and sends it.
    fn send_key(&self, tx: &mut Tx, matrix: &Matrix, rng: &mut Prng) -> Result<Code> {
        let k = rng.bytes();
        tx.send(KEY, &[k])?;
        Ok(Code::new(&k, matrix))
    }
}

/// F_k (4.2): G_(k_1)(z) G_(k_2)(z) .. with z = G_(k_0)(x_0) + x_1, where G is AES and the keys are a stream
/// generated from k.
struct Code {
    first: Aes128,
    /// One per [`LANES`] columns.
    others: Vec<Aes128>,
    /// Positions per column.
    height: usize,
}

impl Code {
    fn new(k: &[u8; 16], matrix: &Matrix) -> Code {
        let mut keys = Secrets::<[u8; 16]>::zeros(1 + matrix.width.div_ceil(LANES));
        Aes128::new(k).ctr(0, keys.as_flattened_mut());
        let others = keys[1..].iter().map(Aes128::new).collect();
        Code { first: Aes128::new(&keys[0]), others, height: matrix.height }
    }

    /// Sets each element of `z` to z = G_(k_0)(x_0) + x_1 of its input.
    fn absorb(&self, inputs: &[Input], z: &mut [[u8; 16]]) {
        let halves = |input: &Input| -> [[u8; 16]; 2] {
            let (halves, _) = input.as_chunks();
            [halves[0], halves[1]]
        };
        z.iter_mut().zip(inputs).for_each(|(z, input)| *z = halves(input)[0]);
        self.first.encrypt(z);
        for (z, input) in z.iter_mut().zip(inputs) {
            *z = (u128::from_ne_bytes(*z) ^ u128::from_ne_bytes(halves(input)[1])).to_ne_bytes();
        }
    }

    /// Visits the position of each input in each column of a group. `columns` holds the columns one after the
    /// other, with one element per 8 positions. `visit` gets that element and the position within it (0 to 7).
    /// It returns the bit to be set in the input's byte of its row.
    fn visit<T>(
        &self,
        group: usize,
        inputs: &[Input],
        columns: &mut [T],
        row: &mut [u8],
        visit: impl Fn(&mut T, u32) -> u8,
    ) {
        let n = CHUNK.min(inputs.len());
        let (mut all_z, mut all_blocks) = (Secrets::<[u8; 16]>::zeros(n), Secrets::<[u8; 16]>::zeros(n));
        let bytes = self.height / 8;
        for (inputs, row) in inputs.chunks(CHUNK).zip(row.chunks_mut(CHUNK)) {
            let (z, blocks) = (&mut all_z[..inputs.len()], &mut all_blocks[..inputs.len()]);
            self.absorb(inputs, z);
            let keys = &self.others[group * (GROUP / LANES)..];
            for ((i, columns), key) in columns.chunks_mut(LANES * bytes).enumerate().zip(keys) {
                blocks.copy_from_slice(z);
                key.encrypt(blocks);
                for (lane, column) in columns.chunks_exact_mut(bytes).enumerate() {
                    // The length is a power of two, so masking with `last` reduces modulo the length, and no
                    // index is out of range.
                    let last = column.len() - 1;
                    for (byte, block) in row.iter_mut().zip(blocks.iter()) {
                        let v = u32::from_le_bytes(block.as_chunks().0[lane]);
                        let bit = visit(&mut column[(v >> 3) as usize & last], v & 7);
                        *byte |= bit << (i * LANES + lane);
                    }
                }
            }
        }
    }
}

/// 2(a) and Figure 4, step 2: for each column, A_i = r^(0), B_i = A_i + D_i, and R sends Delta_i = B_i + r^(1). Returns the
/// values of the inputs in A. Columns are computed while earlier ones are sent: on a slow link, sending a group can take as
/// long as computing it. With many inputs, a group is more than the connection buffers.
fn offer(
    cx: &mut Context,
    matrix: &Matrix,
    seeds: &Seeds,
    f: &Code,
    inputs: &[Input],
) -> Result<Secrets<Output>> {
    let (height, threads, session) = (matrix.height, cx.threads, &cx.session);
    let (put, take) = queue(threads.count());
    let compute = move |first: usize, rows: &mut [u8], n: usize| {
        let deltas = rows.par_chunks_exact_mut(n).enumerate().map(|(g, row)| {
            let group = first + g;
            let seeds = seeds.0.chunks(GROUP).nth(group).unwrap_or_default();
            let mut delta = vec![0u8; seeds.len() * (height / 8)];
            stream(group, seeds.iter().map(|pair| &pair[0]), &mut delta);
            // A byte of A and one of D are adjacent, since they are read together.
            let mut columns = Secrets::from(delta.iter().map(|&a| [a, 0xff]).collect::<Vec<[u8; 2]>>());
            f.visit(group, inputs, &mut columns, row, |[a, d], at| {
                *d &= !(1 << at);
                *a >> at & 1
            });
            stream(group, seeds.iter().map(|pair| &pair[1]), &mut delta);
            delta.iter_mut().zip(columns.iter()).for_each(|(delta, [a, d])| *delta ^= a ^ d);
            delta
        });
        threads.run(|| deltas.collect::<Vec<_>>()).into_iter().try_for_each(|delta| put.put(delta))
    };
    let send = |tx: &mut Tx, take: Take<Vec<u8>>| {
        let mut ready = Vec::new();
        for _ in seeds.0.chunks(GROUP) {
            ready.extend(take.take()?);
            let whole = ready.len() - ready.len() % FRAME;
            ready[..whole].chunks(FRAME).try_for_each(|part| tx.send_bytes(DELTAS, part))?;
            ready.drain(..whole);
        }
        if ready.is_empty() { Ok(()) } else { tx.send_bytes(DELTAS, &ready) }
    };
    let n = inputs.len();
    let ((), values) =
        cx.ch.duplex(|tx| send(tx, take), |_| in_groups(threads, session, matrix, n, compute))?;
    Ok(values)
}

/// Figure 4, step 3: C_i = r_i + s_i Delta_i. Returns the values of the inputs in C. The next columns are received
/// while these are read.
fn take(
    cx: &mut Context,
    matrix: &Matrix,
    choices: &[bool],
    pads: &[Pad],
    f: &Code,
    inputs: &[Input],
) -> Result<Secrets<Output>> {
    let (height, threads, session) = (matrix.height, cx.threads, &cx.session);
    let (put, take) = queue::<Vec<u8>>(threads.count());
    let receive = |rx: &mut Rx, put: Put<Vec<u8>>| {
        let mut come = Vec::new();
        let mut coming = column_frames(matrix).peekable();
        for choices in choices.chunks(GROUP) {
            // Memory grows with the columns received, not with the size announced.
            let bytes = choices.len() * (height / 8);
            while let Some(frame) = coming.next_if(|_| come.len() < bytes) {
                come.extend(rx.recv_bytes(DELTAS, frame)?);
            }
            put.put(come.drain(..bytes).collect())?;
        }
        Ok(())
    };
    let compute = move |first: usize, rows: &mut [u8], n: usize| {
        let groups = choices.chunks(GROUP).zip(pads.chunks(GROUP)).enumerate();
        let mut received = Vec::new();
        for (group, (choices, pads)) in groups.skip(first).take(rows.len() / n) {
            received.push((group, choices, pads, take.take()?));
        }
        let work = received.into_par_iter().zip(rows.par_chunks_exact_mut(n));
        threads.run(|| {
            work.for_each(|((group, choices, pads, deltas), row)| {
                let mut columns = Secrets::<u8>::zeros(deltas.len());
                stream(group, pads.iter(), &mut columns);
                let bytes = columns.chunks_exact_mut(height / 8).zip(deltas.chunks_exact(height / 8));
                for ((column, delta), &choice) in bytes.zip(choices) {
                    let mask = u8::from(choice).wrapping_neg();
                    column.iter_mut().zip(delta).for_each(|(c, delta)| *c ^= delta & mask);
                }
                f.visit(group, inputs, &mut columns, row, |c, at| *c >> at & 1);
            })
        });
        Ok(())
    };
    let n = inputs.len();
    let (values, ()) =
        cx.ch.duplex(|_| in_groups(threads, session, matrix, n, compute), |rx| receive(rx, put))?;
    Ok(values)
}

/// Splits `columns`, the columns of one group, into equal parts and fills them with the streams of the seeds. No two columns
/// share a counter, so an attacker must try a key on each of them separately.
fn stream<'a>(group: usize, seeds: impl ExactSizeIterator<Item = &'a Pad>, columns: &mut [u8]) {
    let bytes = columns.len() / seeds.len().max(1);
    let columns = columns.chunks_exact_mut(bytes.max(1)).zip(seeds).enumerate();
    columns.for_each(|(i, (column, seed))| {
        Aes128::new(seed).ctr(((group * GROUP + i) as u128) << 64, column);
    });
}

/// The values of `n` inputs, at least one. `collect(g, rows, n)` fills `rows` with the row bytes of the groups
/// from g on, as many groups as fit, `n` bytes each. Then H_2 hashes one piece of the rows at a time.
fn in_groups(
    threads: &Threads,
    session: &SessionId,
    matrix: &Matrix,
    n: usize,
    mut collect: impl FnMut(usize, &mut [u8], usize) -> Result<()>,
) -> Result<Secrets<Output>> {
    let domain = Domain::new(session, "multi-point OPRF, H_2");
    let mut values = Secrets::<Output>::zeros(n);
    let mut rows = Secrets::<u8>::zeros(PIECE.min(matrix.width.div_ceil(GROUP)) * n);
    for (piece, groups) in frames(matrix.width.div_ceil(GROUP), PIECE).enumerate() {
        rows.fill(0);
        // One group per thread: otherwise a single thread would hold as much memory as many threads do.
        for (at, rows) in rows[..groups * n].chunks_mut(threads.count() * n).enumerate() {
            collect(piece * PIECE + at * threads.count(), rows, n)?;
        }
        let number = (piece as u64).to_le_bytes();
        threads.run(|| {
            values.par_chunks_mut(BATCH).enumerate().for_each(|(batch, values)| {
                let mut blocks = Secrets::<[[u8; 16]; 4]>::zeros(values.len());
                for (j, (block, value)) in blocks.iter_mut().zip(values.iter()).enumerate() {
                    let block = block.as_flattened_mut();
                    block[..8].copy_from_slice(&number);
                    block[8..40].copy_from_slice(value);
                    let part = rows.iter().skip(batch * BATCH + j).step_by(n);
                    block[40..60].iter_mut().zip(part).for_each(|(to, from)| *to = *from);
                }
                domain.hash_blocks(60, blocks.as_flattened().as_flattened().as_chunks().0, values);
            })
        });
    }
    Ok(values)
}

#[cfg(test)]
#[path = "multi_point_tests.rs"]
mod tests;
