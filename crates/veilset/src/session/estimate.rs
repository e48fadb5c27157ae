//! What a run will cost, from its terms and sizes: bytes by the tables of messages, time by trying how fast this
//! machine is. And what each side will learn, in sentences.

use super::{Hello, Proposal};
use crate::channel::{HEADER, frames};
use crate::compact_set::CompactSet;
use crate::compact_set::golomb::{self, Golomb};
use crate::error::{Error, Result};
use crate::group::curve25519::{Key, Point, map_and_raise, raise};
use crate::hash::ItemHash;
use crate::membership::cwprf;
use crate::membership::rpmt::Comparison;
use crate::okvs;
use crate::operations::intersect::{self, dh, oprf, tags};
use crate::operations::row::Layout;
use crate::operations::{Operation, Protocol, Role, Terms, both, union};
use crate::oprf::multi_point::{MultiPoint, column_frames};
use crate::oprf::vole;
use crate::ot::{Security, extension, transfer};
use crate::rng::Prng;
use crate::vole::silent::Silent;
use std::ops::{Add, AddAssign};
use std::time::{Duration, Instant};

/// TLS adds 22 bytes to each 16 KiB it encrypts at once.
const RECORD: (u64, u64) = (22, 1 << 14);
/// About what the handshake, the agreement and its end take, either way.
const AROUND: u64 = 3000;
/// How long the speed of this machine is tried.
const TRY: Duration = Duration::from_millis(20);
/// Points per try and thread: enough for the kernel to be at its best.
const POINTS: usize = 512;
/// Everything beside a point (hashing, sorting, transfers) takes about this, on one thread.
const BESIDE: Duration = Duration::from_nanos(700);
/// By VOLE an item of either side takes about this, on one thread.
const VOLE: Duration = Duration::from_nanos(300);
/// By KRTW19 an item takes about this, on one thread: nearly all of it the tests of its bin.
const KRTW19: Duration = Duration::from_micros(8);
/// Base OTs and what goes with them.
const BASE_OTS: Duration = Duration::from_millis(10);
/// The same for those of cm20, which are up to 700.
const WIDE_BASE_OTS: Duration = Duration::from_millis(60);
/// A bit of the matrix of cm20 for an item of ours, on one thread.
const CELL: Duration = Duration::from_nanos(3);

/// Bytes on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From the receiver to the sender.
    pub to_sender: u64,
    /// From the sender to the receiver.
    pub to_receiver: u64,
}

impl Traffic {
    /// What such a run takes, TLS and agreement included, to about 1 in 100.
    ///
    /// # Errors
    /// As those of the protocol, for sets that are too large for it.
    pub fn of(proposal: &Proposal) -> Result<Traffic> {
        let frames = Self::of_protocol(proposal)?;
        let whole = |bytes: u64| bytes + bytes * RECORD.0 / RECORD.1 + AROUND;
        Ok(Traffic { to_sender: whole(frames.to_sender), to_receiver: whole(frames.to_receiver) })
    }

    /// The frames of the protocol alone, each exactly but for the coded tags, whose length depends a little on
    /// the data.
    fn of_protocol(proposal: &Proposal) -> Result<Traffic> {
        let hello = &proposal.hello;
        let (n_y, n_x) = proposal.sizes();
        let max_row = hello.max_row as usize;
        let (payload, for_both) = (!hello.sent_columns.is_empty(), hello.output == "both");
        let mut all = Traffic::default();
        if for_both {
            all.to_sender += match hello.operation {
                Operation::Intersect => framed(n_x.div_ceil(8), both::BITS_FRAME / 8, 1),
                Operation::Union => {
                    let width = Layout::<1>::new(max_row).width();
                    let most = proposal.our_size + proposal.their_size;
                    framed(1, 1, 8) + framed(most, both::rows_per_frame(width), width)
                }
                Operation::Count | Operation::Sum => framed(1, 1, 8),
            };
        }
        all += match protocol(hello)? {
            Protocol::Dh => Self::over_mqrpmt(hello, n_y, n_x)?,
            Protocol::DhPsi => {
                let points = framed(n_y, dh::FRAME, 32);
                let tags = tags_and_rows(n_x, dh::tag_bytes(payload, n_x, n_y)?, payload, max_row);
                Traffic { to_sender: points, to_receiver: points + tags }
            }
            Protocol::Cm20 => {
                let terms = Terms { payload, malicious_sender: hello.malicious_sender, ..Terms::default() };
                let tags = tags_and_rows(n_x, oprf::tag_bytes(&terms, n_x, n_y)?, payload, max_row);
                Traffic { to_sender: 0, to_receiver: tags } + Self::of_columns(hello, n_y, n_x)
            }
            Protocol::Vole => {
                let terms = Terms { payload, ..Terms::default() };
                let tags = tags_and_rows(n_x, oprf::tag_bytes(&terms, n_x, n_y)?, payload, max_row);
                // The VOLE, then the seed and A + P: silent.rs, vole.rs.
                let m = okvs::size(n_y);
                let (there, back) = Silent::default().traffic(vole::parts(m));
                let store = framed(1, 1, size_of::<okvs::Seed>()) + framed(m, vole::FRAME, 16);
                Traffic { to_sender: there as u64 + store, to_receiver: back as u64 + tags }
            }
            protocol @ (Protocol::Krtw19 | Protocol::Krtw19Plain) => {
                let terms = Terms { payload, max_row, both: for_both, ..Terms::default() };
                let plan = union::krtw19::plan(Comparison::of(protocol), n_y, n_x, &terms)?;
                let (to_sender, to_receiver) = plan.traffic();
                let rows = transfer_of(plan.slots(), union::krtw19::row_width(&terms), None);
                Traffic { to_sender, to_receiver } + rows
            }
        };
        Ok(all)
    }

    /// The membership protocol, cwprf.rs, and the transfer that follows it: a row for each item of the sender.
    fn over_mqrpmt(hello: &Hello, n_y: usize, n_x: usize) -> Result<Traffic> {
        let omega = Golomb::new(cwprf::EXPONENT, n_x, n_y)?;
        let mut all = Traffic {
            to_sender: framed(n_y, cwprf::FRAME, 32),
            to_receiver: framed(n_x, cwprf::FRAME, 32)
                + (omega.bytes() + HEADER * n_y.div_ceil(golomb::FRAME)) as u64,
        };
        let (payload, max_row) = (!hello.sent_columns.is_empty(), hello.max_row as usize);
        let width = match (hello.operation, payload) {
            (Operation::Count, _) => return Ok(all),
            (Operation::Intersect, false) => intersect::mqrpmt::DIGEST,
            (Operation::Intersect, true) => intersect::mqrpmt::DIGEST + Layout::<1>::new(max_row).width(),
            (Operation::Union, false) => Layout::<1>::new(max_row).width(),
            (Operation::Union, true) => Layout::<2>::new(max_row).width(),
            (Operation::Sum, _) => hello.modulus_bits as usize / 8,
        };
        all += transfer_of(n_x, width, (hello.operation == Operation::Sum).then_some(extension::FRAME));
        if hello.operation == Operation::Sum {
            all.to_sender += (25 + HEADER) as u64;
        }
        Ok(all)
    }

    /// Base OTs, the key and the columns of CM20: base.rs, multi_point.rs.
    fn of_columns(hello: &Hello, n_y: usize, n_x: usize) -> Traffic {
        if n_y == 0 || n_x == 0 {
            return Traffic::default();
        }
        let matrix = MultiPoint { malicious_sender: hello.malicious_sender }.matrix(n_x, n_y);
        let columns = column_frames(&matrix).map(|bytes| (bytes + HEADER) as u64).sum::<u64>();
        Traffic {
            to_sender: framed(1, 1, matrix.width * 32) + framed(1, 1, 16) + columns,
            to_receiver: framed(1, 1, matrix.width * 64),
        }
    }

    /// The larger direction, by which a link is measured whose directions do not share it.
    pub fn larger(&self) -> u64 {
        self.to_sender.max(self.to_receiver)
    }
}

impl Add for Traffic {
    type Output = Traffic;
    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            to_sender: self.to_sender + other.to_sender,
            to_receiver: self.to_receiver + other.to_receiver,
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        *self = *self + other;
    }
}

/// OTs of `n` rows of this width: extension.rs, transfer.rs.
fn transfer_of(n: usize, width: usize, per_frame: Option<usize>) -> Traffic {
    let (to_sender, to_receiver) = extension::setup_bytes(extension::DEFAULT_K, Security::SemiHonest);
    let mut all = Traffic { to_sender: to_sender as u64, to_receiver: to_receiver as u64 };
    let per_frame = per_frame.unwrap_or(transfer::rows_per_frame(width));
    for n in frames(n, extension::FRAME) {
        all.to_sender +=
            (extension::correction_bytes(n, extension::DEFAULT_K, Security::SemiHonest) + HEADER) as u64;
        all.to_receiver += framed(n, per_frame, width);
    }
    all
}

/// The protocol of a hello of ours.
fn protocol(hello: &Hello) -> Result<Protocol> {
    hello.protocol.parse().map_err(Error::Bug)
}

/// The end of an intersection by tags: tags.rs.
fn tags_and_rows(n_x: usize, tag_bytes: usize, payload: bool, max_row: usize) -> u64 {
    let width = Layout::<1>::new(max_row).width();
    let rows = if payload { framed(n_x, transfer::rows_per_frame(width), width) } else { 0 };
    framed(n_x, tags::FRAME, tag_bytes) + rows
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
        let hashes = (0..POINTS * rayon::current_num_threads()).map(|_| ItemHash::random(&mut rng));
        // No point is of low order, but with probability 2^-250. The first call wakes the threads.
        let points: Vec<Point> = map_and_raise(&hashes.collect::<Vec<_>>(), &key).unwrap_or_default();
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < TRY {
            done += raise(&points, &key).map_or(1, |raised| raised.len().max(1));
        }
        Ok(Speed { points: done as f64 / start.elapsed().as_secs_f64() })
    }

    /// How long our side is at work, whose offline half may be `prepared`.
    pub fn work(&self, proposal: &Proposal, prepared: bool) -> Duration {
        let hello = &proposal.hello;
        let (n_y, n_x) = proposal.sizes();
        let threads = rayon::current_num_threads() as f64;
        let by_items =
            |n: usize, item: Duration| Duration::from_secs_f64(n as f64 * item.as_secs_f64() / threads);
        let protocol = protocol(hello).unwrap_or(Protocol::Dh);
        let classic = match protocol {
            Protocol::Dh => false,
            Protocol::DhPsi => true,
            Protocol::Cm20 => {
                let matrix = MultiPoint { malicious_sender: hello.malicious_sender }.matrix(n_x, n_y);
                return by_items(proposal.our_size * matrix.width, CELL) + WIDE_BASE_OTS;
            }
            Protocol::Vole => return by_items(n_y + n_x, VOLE) + BASE_OTS,
            Protocol::Krtw19 | Protocol::Krtw19Plain => return by_items(n_y + n_x, KRTW19) + 8 * BASE_OTS,
        };
        let points = match (classic, hello.role) {
            (true, Role::Receiver) => 2 * n_y,
            // Otherwise each side raises each of its own items and each of the peer's once.
            _ => n_y + n_x,
        };
        // The points under the first key; not those of dummies that the receiver of a union inserts.
        let points = points - if prepared { proposal.our_size } else { 0 };
        let beside = BESIDE.as_secs_f64() / threads;
        let seconds = points as f64 * (1.0 / self.points.max(1.0) + beside);
        let around = match hello.operation {
            Operation::Count => Duration::ZERO,
            _ if classic => Duration::ZERO,
            _ => BASE_OTS,
        };
        Duration::from_secs_f64(seconds) + around
    }
}

/// What this party and what the peer would learn by the run, in sentences.
pub fn would_learn(proposal: &Proposal) -> Vec<String> {
    let hello = &proposal.hello;
    let for_both = hello.output == "both";
    let columns = match hello.sent_columns.as_slice() {
        [] => String::new(),
        names => format!(", with the columns {}", names.join(", ")),
    };
    let share = "how many items the two share, but not which";
    // Who gets a union knows the number of matches only with the size of the other's set.
    let ours_shows = if hello.padded { String::new() } else { format!(", and so {share}") };
    let theirs_shows = if proposal.they_pad { String::new() } else { format!(", and so {share}") };
    let receiver = |ours: &str, theirs: &str, shows: &str| match hello.operation {
        Operation::Intersect => format!("which of {ours} items {theirs} has too{columns}"),
        Operation::Union => {
            format!("every item that only {theirs} has, in the clear{columns}{shows}")
        }
        Operation::Count => share.into(),
        Operation::Sum => format!("{share}, and no value and no sum"),
    };
    let sender = |values: &str, theirs: &str, shows: &str| match (hello.operation, hello.min_count) {
        (Operation::Sum, 0) => format!("how many items match, and the sum of {values} values over them"),
        (Operation::Sum, least) => format!(
            "how many items match, and the sum of {values} values over them, or only that fewer than {least} match"
        ),
        (Operation::Intersect, _) if for_both => format!("which of {values} items {theirs} has too"),
        (Operation::Union, _) if for_both => {
            format!("every item that only {theirs} has, in the clear{shows}")
        }
        (Operation::Count, _) if for_both => share.into(),
        _ => "nothing more".into(),
    };
    let bound = |n: usize, padded| if padded { format!("at most {n}") } else { n.to_string() };
    let (n, m) = (bound(proposal.our_size, hello.padded), bound(proposal.their_size, proposal.they_pad));
    let (here, there) = match hello.role {
        Role::Receiver => {
            (receiver("its", "the peer", &theirs_shows), sender("its", "this party", &ours_shows))
        }
        Role::Sender => {
            (sender("its", "the peer", &theirs_shows), receiver("its", "this party", &ours_shows))
        }
    };
    vec![
        format!("This party would learn that the peer's set has {m} items, and {here}."),
        format!("The peer would learn that this party's set has {n} items, and {there}."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Channel, Recording};
    use crate::item::{ItemSet, Items};
    use crate::operations::tests::{is_krtw19, kinds};
    use crate::session::Connection;
    use crate::session::run::{Request, run};
    use crate::testing::{SEEDS, Shared, split_frames};

    fn set(from: usize, n: usize) -> ItemSet {
        (from..from + n).map(|i| format!("\u{6}{i:06}")).collect()
    }

    #[test]
    fn a_check_says_what_the_sender_would_learn_and_hides_what_would_not_show() {
        let y = set(0, 3);
        for operation in [Operation::Intersect, Operation::Union, Operation::Count] {
            for (role, both) in Role::ALL.into_iter().flat_map(|role| [(role, false), (role, true)]) {
                let mut request = Request::new(operation, role, &y);
                request.terms.both = both;
                let proposal = |padded| Proposal {
                    hello: Hello { padded, ..request.hello(true) },
                    session_id: crate::hash::SessionId::of([0; 32]),
                    peer: None,
                    our_size: 3,
                    their_size: 5,
                    they_pad: padded,
                };
                let said = would_learn(&proposal(false));
                let of_sender = &said[if role == Role::Sender { 0 } else { 1 }];
                assert_eq!(
                    !of_sender.ends_with("and nothing more."),
                    both,
                    "{operation} {role}: {of_sender}"
                );
                // A padded set is of at most so many items, and a union does not show how many match.
                for (open, padded) in said.iter().zip(would_learn(&proposal(true))) {
                    assert!(padded.contains("has at most ") && !open.contains("at most"), "{padded}");
                    assert!(operation != Operation::Union || !padded.contains("share"), "{padded}");
                }
            }
        }
    }

    #[test]
    fn bytes_are_as_measured() {
        // Few items, sizes just above a power of two, several frames.
        for (n_r, n_s) in [(0, 0), (1, 3), (700, 70), (1100, 3000), (8193, 100)] {
            for (operation, protocol, terms) in kinds() {
                if is_krtw19(protocol) && (n_r > 2000 || terms.payload != terms.both) {
                    continue;
                }
                let (y, x) = (set(0, n_r), set(n_r / 2, n_s));
                let values = vec![1; if operation == Operation::Sum { n_s } else { 0 }];
                let payloads: Items = (0..if terms.payload { n_s } else { 0 }).map(|_| "payload").collect();
                let columns = ["note".to_string()];
                let request = |role, set| Request {
                    protocol,
                    terms,
                    sent_columns: if terms.payload { &columns } else { &[] },
                    ..Request::new(operation, role, set)
                };
                let mut receiver = request(Role::Receiver, &y);
                let mut sender =
                    Request { values: &values, payloads: &payloads, ..request(Role::Sender, &x) };
                let pads = n_r < 100;
                (receiver.pad_to, sender.pad_to) = (pads.then_some(n_r + 9), pads.then_some(n_s + 5));
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
                let proposal = |request: &Request<'_>, theirs| Proposal {
                    hello: request.hello(false),
                    session_id: crate::hash::SessionId::of([0; 32]),
                    peer: None,
                    our_size: request.announced(),
                    their_size: theirs,
                    they_pad: pads,
                };
                let expected = Traffic::of_protocol(&proposal(&receiver, sender.announced())).unwrap();
                assert_eq!(expected, Traffic::of_protocol(&proposal(&sender, receiver.announced())).unwrap());
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
