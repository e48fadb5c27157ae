//! The cost of a run, computed from public sizes: bytes on the wire, rounds, work in primitive operations, and memory.
//!
//! Tests compare it with runs of every protocol: bytes (`session/estimate.rs`), rounds (`protocols/rounds_tests.rs`), memory
//! (`tests/memory.rs`).

use super::intersect::tags::{self, Coding};
use super::row::Layout;
use super::{Announced, Operation, Role, Terms};
use crate::channel::{self, HEADER, frames};
use crate::ot::{Security, extension, transfer as ot};
use crate::work::{Primitive, Step, Traffic, Work, traffic};

/// The parameters of a run that its cost depends on.
#[derive(Debug, Clone, Copy)]
pub struct Deal {
    /// The operation that is computed.
    pub operation: &'static Operation,
    /// The agreed terms.
    pub terms: Terms,
    /// The group that the protocol works in.
    pub group: &'static str,
    /// The receiver's announcement.
    pub receiver: Announced,
    /// The sender's announcement.
    pub sender: Announced,
}

impl Deal {
    /// The step in which the receiver sends the result on, if both get it.
    pub(crate) fn sent_on(&self) -> Step {
        Step::default().sends(if self.terms.both { (self.operation.sends_on)(self) } else { 0 }, 0)
    }
}

/// The parameters of a run of two or several parties that its cost depends on.
#[derive(Debug, Clone, Copy)]
pub struct Among<'a> {
    /// The operation that is computed.
    pub operation: &'static Operation,
    /// The agreed terms.
    pub terms: Terms,
    /// The group that the protocol works in.
    pub group: &'static str,
    /// The announcements of all parties, in their order: the receiver's first.
    pub sizes: &'a [Announced],
}

/// The cost of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The parts of the run, in order.
    pub steps: Vec<Step>,
    /// The number of messages on the longest chain in which each waits for the one before, that is, how often a run pays the
    /// one-way latency of the link. Frames of one message that do not wait for each other count once, as do messages that
    /// cross.
    pub rounds: usize,
    /// The memory of the receiver and of the sender.
    pub memory: [Memory; 2],
}

impl Cost {
    /// The bytes that a whole run sends.
    pub fn traffic(&self) -> Traffic {
        traffic(&self.steps)
    }

    /// The cost for the party in this role.
    pub fn of(&self, role: Role) -> PartyCost {
        let Traffic { to_sender, to_receiver } = self.traffic();
        let [sent, received] = match role {
            Role::Receiver => [to_sender, to_receiver],
            Role::Sender => [to_receiver, to_sender],
        };
        let (work, memory) = (self.work(role), self.memory(role));
        PartyCost { sent, received, rounds: self.rounds, work, memory, in_flight: self.in_flight() }
    }

    /// The work of a party in the whole run.
    pub fn work(&self, role: Role) -> Work {
        self.steps.iter().map(|step| step.work[role as usize]).sum()
    }

    /// The memory of a party.
    pub fn memory(&self, role: Role) -> Memory {
        self.memory[role as usize]
    }

    /// The most bytes in flight that the channel holds, in both directions together; all bytes of the run, if they are few.
    pub fn in_flight(&self) -> u64 {
        let Traffic { to_sender, to_receiver } = self.traffic();
        [to_sender, to_receiver].map(|bytes| bytes.min(channel::CAPACITY as u64)).iter().sum()
    }
}

/// The cost of a run for one of its parties, of two or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartyCost {
    /// The bytes that the party sends to all others.
    pub sent: u64,
    /// The bytes that the party receives from all others.
    pub received: u64,
    /// The most messages on a chain in which each waits for the one before ([`Cost::rounds`]).
    pub rounds: usize,
    /// The work of the party.
    pub work: Work,
    /// The memory of the party, without its hashed set and the bytes in flight.
    pub memory: Memory,
    /// The most bytes in flight that the party's channels hold, in both directions together.
    pub in_flight: u64,
}

/// The most bytes that a party holds, in addition to its hashed set and to the channel's bytes in flight
/// ([`Cost::in_flight`]).
///
/// For sets of a few thousand items or more, the memory stated for all parties together is at least the measured peak, and at most
/// three times as much; in a run of several, four times. Growing lists may allocate twice the room they need, and the peaks of
/// the parties may not coincide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes held on any number of threads.
    pub held: u64,
    /// Bytes held in addition for each thread that the party computes on.
    pub each_thread: u64,
}

impl Memory {
    /// Returns a memory of this many bytes on any number of threads.
    pub fn held(bytes: usize) -> Memory {
        Memory { held: bytes as u64, each_thread: 0 }
    }

    /// The bytes held on this number of threads.
    pub fn on(&self, threads: usize) -> u64 {
        self.held + self.each_thread * threads as u64
    }
}

/// The cost of OTs of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) step: Step,
    /// The number of rounds. If the sender sent a message just before, the first round is shared with it.
    pub(crate) rounds: usize,
    /// Bytes held by the receiver and by the sender.
    pub(crate) held: [usize; 2],
}

/// Bytes held for an OT of the current frame: 16 each for its bits of the columns, its row and its pad.
pub(crate) const OT: usize = 48;

/// The cost of OTs of `n` rows of this width, with `per_frame` rows in a frame, or as many as fit (extension.rs,
/// transfer.rs).
pub(crate) fn transfer(n: usize, width: usize, per_frame: Option<usize>) -> Transfer {
    let (to_sender, to_receiver) = extension::setup_bytes(extension::DEFAULT_K, Security::SemiHonest);
    let mut traffic = Traffic { to_sender: to_sender as u64, to_receiver: to_receiver as u64 };
    let per_frame = per_frame.unwrap_or(ot::rows_per_frame(width));
    for n in frames(n, extension::FRAME) {
        traffic.to_sender +=
            (extension::correction_bytes(n, extension::DEFAULT_K, Security::SemiHonest) + HEADER) as u64;
        traffic.to_receiver += framed(n, per_frame, width);
    }
    // The base OTs in both directions, the corrections with the second of these messages, then the rows.
    let rounds = 2 + usize::from(n > 0);
    let in_frame = extension::SETUP_HELD + n.min(extension::FRAME) * OT + n.min(per_frame) * width;
    // A bit per row, the pads that wait for their rows, and a permutation of the rows.
    let waiting = 16 * n.min(ot::AHEAD * extension::FRAME);
    // A received frame is held twice, as received and as parsed.
    let came = n.min(per_frame) * width;
    let ots = Work::of(Primitive::BaseOt, extension::WIDTH) + Work::of(Primitive::Ot, n);
    let step = Step::both(ots).sends(traffic.to_sender, traffic.to_receiver);
    Transfer { step, rounds, held: [in_frame + came + n + waiting, in_frame + 4 * n] }
}

/// Bytes of a growing list of `n` items of this length.
pub(crate) fn grown(n: usize, bytes: usize) -> usize {
    // While the list is reallocated, both the old one and the new one, which has twice the room, exist.
    3 * n * bytes
}

/// Bytes that each party holds at the end of an intersection with tags, including the keys of rows if rows are sent
/// (tags.rs).
pub(crate) fn held_for_tags(deal: &Deal, (n_y, n_x): (usize, usize), coding: Coding) -> [usize; 2] {
    let payload = usize::from(deal.terms.payload);
    let width = payload * Layout::<1>::new(deal.terms.max_row).width();
    // Tags as received and as numbers, and their places among the receiver's own tags.
    let frame = n_x.min(tags::FRAME) * 56 + 2 * n_x.min(ot::rows_per_frame(width)) * width;
    let found = grown(n_x, 5) + payload * grown(n_y.min(n_x), deal.terms.max_row + 8);
    let own = coding.held() + 16 * payload;
    [frame + n_y * own + found, frame + n_x * (own + 4)]
}

/// Bytes of the tags of an intersection, and of the rows that are sent with them (tags.rs).
pub(crate) fn tags_and_rows(deal: &Deal, n_x: usize, coding: Coding) -> u64 {
    let width = Layout::<1>::new(deal.terms.max_row).width();
    let rows = if deal.terms.payload { framed(n_x, ot::rows_per_frame(width), width) } else { 0 };
    coding.bytes(n_x) as u64 + rows
}

/// Bytes of `n` elements of `size` bytes in frames of `frame` elements.
pub(crate) fn framed(n: usize, frame: usize, size: usize) -> u64 {
    (n * size + n.div_ceil(frame) * HEADER) as u64
}
