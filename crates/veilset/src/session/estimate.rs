//! What a run will cost, from its terms and sizes: bytes by the tables of messages, time by trying how fast this
//! machine is. And what each side will learn, in sentences.

use super::{Hello, Proposal};
use crate::channel::{HEADER, frames};
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::error::Result;
use crate::group::curve25519::{Key, Point, map_and_raise, raise};
use crate::membership::cwprf;
use crate::operations::union::mqrpmt::length_bytes;
use crate::operations::{Operation, Role, intersect};
use crate::ot::{extension, transfer};
use crate::rng::Prng;
use std::time::{Duration, Instant};

/// TLS adds 22 bytes to each 16 KiB it encrypts at once.
const RECORD: (u64, u64) = (22, 1 << 14);
/// About what the handshake, the agreement and its end take, either way.
const AROUND: u64 = 3000;
/// How long the speed of this machine is tried.
const TRY: Duration = Duration::from_millis(20);
/// Points per try and thread: enough for the kernel to be at its best.
const POINTS: usize = 512;
/// Everything beside the points (hashing, sorting, transfers) takes about this part of their time.
const BESIDE: f64 = 0.08;
/// Base OTs and what goes with them.
const BASE_OTS: Duration = Duration::from_millis(40);

/// Bytes on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From the receiver to the sender.
    pub to_sender: u64,
    /// From the sender to the receiver.
    pub to_receiver: u64,
}

impl Traffic {
    /// What a run with these terms takes, TLS and agreement included, to about 1 in 100.
    ///
    /// # Errors
    /// As those of the protocol, for sets that are too large for it.
    pub fn of(hello: &Hello, n_receiver: usize, n_sender: usize) -> Result<Traffic> {
        let frames = Self::of_protocol(hello, n_receiver, n_sender)?;
        let whole = |bytes: u64| bytes + bytes * RECORD.0 / RECORD.1 + AROUND;
        Ok(Traffic { to_sender: whole(frames.to_sender), to_receiver: whole(frames.to_receiver) })
    }

    /// The frames of the protocol alone, each exactly but for the coded tags, whose length depends a little on
    /// the data.
    fn of_protocol(hello: &Hello, n_y: usize, n_x: usize) -> Result<Traffic> {
        let mut all = Traffic::default();
        // The membership protocol: cwprf.rs.
        all.to_sender += framed(n_y, cwprf::FRAME, 32);
        all.to_receiver += framed(n_x, cwprf::FRAME, 32);
        let omega = Golomb::new(cwprf::EXPONENT, n_x, n_y)?;
        all.to_receiver += (omega.bytes() + HEADER * n_y.div_ceil(golomb::FRAME)) as u64;
        // The transfer that follows it: a row for each item of the sender.
        let width = match hello.operation {
            Operation::Count => return Ok(all),
            Operation::Intersect => intersect::mqrpmt::WIDTH,
            Operation::Union => length_bytes(hello.max_row as usize) + hello.max_row as usize,
            Operation::Sum => hello.modulus_bits as usize / 8,
        } + hello.payload_width as usize;
        // Base OTs in the other direction, and the sums of the trees: base.rs, extension.rs.
        all.to_receiver += (extension::WIDTH * 64 + HEADER) as u64;
        all.to_sender += (2 * (extension::WIDTH * 32 + HEADER)) as u64;
        for n in frames(n_x, extension::FRAME) {
            all.to_sender += (extension::correction_bytes(n, extension::DEFAULT_K) + HEADER) as u64;
            let per_frame = match hello.operation {
                Operation::Sum => extension::FRAME,
                _ => transfer::rows_per_frame(width),
            };
            all.to_receiver += framed(n, per_frame, width);
        }
        if hello.operation == Operation::Sum {
            all.to_sender += (25 + HEADER) as u64;
        }
        Ok(all)
    }

    /// The larger direction, by which a link is measured whose directions do not share it.
    pub fn larger(&self) -> u64 {
        self.to_sender.max(self.to_receiver)
    }
}

/// Bytes of `n` elements of `size` bytes in frames of `frame` elements.
fn framed(n: usize, frame: usize, size: usize) -> u64 {
    (n * size + n.div_ceil(frame) * HEADER) as u64
}

/// How fast this machine is.
#[derive(Debug, Clone, Copy)]
pub struct Speed {
    /// Multiplications of the ladder a second, all threads together.
    pub points: f64,
}

impl Speed {
    /// Tries it for a few milliseconds, on the threads of the current pool.
    pub fn measure() -> Result<Speed> {
        let mut rng = Prng::from_os()?;
        let key = Key::random(&mut rng);
        let hashes: Vec<[u8; 32]> = (0..POINTS * rayon::current_num_threads()).map(|_| rng.bytes()).collect();
        // No point is of low order, but with probability 2^-250. The first call wakes the threads.
        let points: Vec<Point> = map_and_raise(&hashes, &key).unwrap_or_default();
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < TRY {
            done += raise(&points, &key).map_or(1, |raised| raised.len().max(1));
        }
        Ok(Speed { points: done as f64 / start.elapsed().as_secs_f64() })
    }

    /// How long our side is at work: it raises each of its own items and each of the peer's once.
    pub fn work(&self, proposal: &Proposal) -> Duration {
        let points = (proposal.our_size + proposal.their_size) as f64;
        let seconds = points / self.points.max(1.0) * (1.0 + BESIDE);
        let around = match proposal.hello.operation {
            Operation::Count => Duration::ZERO,
            _ => BASE_OTS,
        };
        Duration::from_secs_f64(seconds) + around
    }
}

/// What this party and what the peer would learn by the run, in sentences.
pub fn would_learn(proposal: &Proposal) -> Vec<String> {
    let receiver = |we: &str, ours: &str, theirs: &str| match proposal.hello.operation {
        Operation::Intersect => format!("which of {ours} items {theirs} has too"),
        Operation::Union => {
            format!(
                "every item that only {theirs} has, in the clear, and so how many {we} share, but not which"
            )
        }
        Operation::Count => format!("how many items {we} share, but not which"),
        Operation::Sum => format!("how many items {we} share, but not which, and no value and no sum"),
    };
    let sender = |values: &str| match (proposal.hello.operation, proposal.hello.min_count) {
        (Operation::Sum, 0) => format!("how many items match, and the sum of {values} values over them"),
        (Operation::Sum, least) => format!(
            "how many items match, and the sum of {values} values over them, or only that fewer than {least} match"
        ),
        _ => "nothing more".into(),
    };
    let (n, m) = (proposal.our_size, proposal.their_size);
    let (here, there) = match proposal.hello.role {
        Role::Receiver => (receiver("the two", "its", "the peer"), sender("its")),
        Role::Sender => (sender("its"), receiver("the two", "its", "this party")),
    };
    let mut sentences = vec![
        format!("This party would learn that the peer's set has {m} items, and {here}."),
        format!("The peer would learn that this party's set has {n} items, and {there}."),
    ];
    if proposal.hello.output != "receiver" {
        sentences.push(format!("Who gets the result: {}.", proposal.hello.output));
    }
    if proposal.hello.payload_width > 0 {
        sentences.push(format!(
            "With each row that the receiver gets come up to {} bytes of other columns.",
            proposal.hello.payload_width
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Channel, Recording};
    use crate::item::ItemSet;
    use crate::operations::sum::{Modulus, Terms};
    use crate::session::Connection;
    use crate::session::run::{Request, run};
    use crate::testing::{SEEDS, Shared, split_frames};

    fn set(from: usize, n: usize) -> ItemSet {
        (from..from + n).map(|i| format!("item {i}")).collect()
    }

    fn request<'a>(operation: Operation, role: Role, set: &'a ItemSet, values: &'a [i128]) -> Request<'a> {
        Request {
            operation,
            role,
            set,
            key_columns: 1,
            normalisation: "none",
            max_peer_items: 1 << 20,
            max_row: 300,
            values,
            value_scale: 0,
            terms: Terms { modulus: Modulus::Bits128, min_count: 0 },
        }
    }

    #[test]
    fn bytes_are_as_measured() {
        // Few items, sizes just above a power of two, several frames.
        for (n_r, n_s) in [(0, 0), (1, 3), (700, 70), (1100, 9000), (8193, 100), (20_000, 20_000)] {
            for operation in Operation::ALL {
                let (y, x) = (set(0, n_r), set(n_r / 2, n_s));
                let values = vec![1; if operation == Operation::Sum { n_s } else { 0 }];
                let receiver = request(operation, Role::Receiver, &y, &[]);
                let sender = request(operation, Role::Sender, &x, &values);
                let (mut a, mut b) = Channel::pair();
                let seen = [Shared::default(), Shared::default()];
                a.record(Recording::to_writer(seen[0].clone()));
                b.record(Recording::to_writer(seen[1].clone()));
                let connection = |channel| Connection::unprotected(channel, Default::default());
                std::thread::scope(|s| {
                    s.spawn(|| run(connection(b), &sender, &mut Prng::from_seed(&SEEDS[1])).unwrap());
                    run(connection(a), &receiver, &mut Prng::from_seed(&SEEDS[0])).unwrap();
                });
                // The session's own messages have the lowest tags.
                let of_protocol = |view: &[u8]| -> u64 {
                    let frames = split_frames(view).into_iter().filter(|(tag, _)| *tag > 0x10);
                    frames.map(|(_, body)| (HEADER + body.len()) as u64).sum()
                };
                let [to_receiver, to_sender] = seen.map(|seen| of_protocol(&seen.bytes()));
                let expected = Traffic::of_protocol(&receiver.hello(false), n_r, n_s).unwrap();
                assert_eq!(expected.to_sender, to_sender, "{operation} {n_r} {n_s}");
                // In this direction are the coded tags.
                let off = expected.to_receiver.abs_diff(to_receiver);
                assert!(
                    off <= to_receiver / 200 + 4,
                    "{operation} {n_r} {n_s}: expected {expected:?}, took {to_receiver}"
                );
            }
        }
    }
}
