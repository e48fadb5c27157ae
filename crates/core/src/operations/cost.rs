//! What a run costs, computed from public sizes: bytes on the wire, rounds, work in primitive operations, and memory.
//!
//! A test runs every protocol and compares: bytes (`session/estimate.rs`), rounds (`protocols/rounds_tests.rs`), memory
//! (`tests/memory.rs`).

use super::intersect::tags::{self, Coding};
use super::row::Layout;
use super::{Announced, Operation, Role, Terms};
use crate::channel::{self, HEADER, frames};
use crate::ot::{Security, extension, transfer as ot};
use crate::work::{Primitive, Step, Traffic, Work, traffic};

/// What is computed, as far as the cost depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Deal {
    /// What is computed.
    pub operation: &'static Operation,
    /// The agreed terms.
    pub terms: Terms,
    /// The group that the protocol works in.
    pub group: &'static str,
    /// What the receiver announced.
    pub receiver: Announced,
    /// What the sender announced.
    pub sender: Announced,
}

impl Deal {
    /// The result that the receiver sends on, if both get it.
    pub(crate) fn sent_on(&self) -> Step {
        Step::default().sends(if self.terms.both { (self.operation.sends_on)(self) } else { 0 }, 0)
    }
}

/// What a run costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The parts of the run, one after the other.
    pub steps: Vec<Step>,
    /// The number of messages on the longest chain in which each waits for the one before: how often a run pays the
    /// one-way latency of the link. Frames of one message that do not wait for each other count once, as do messages
    /// that cross.
    pub rounds: usize,
    /// What the receiver and the sender hold.
    pub memory: [Memory; 2],
}

impl Cost {
    /// The bytes of the whole run.
    pub fn traffic(&self) -> Traffic {
        traffic(&self.steps)
    }

    /// What a party computes in the whole run.
    pub fn work(&self, role: Role) -> Work {
        self.steps.iter().map(|step| step.work[role as usize]).sum()
    }

    /// What a party holds.
    pub fn memory(&self, role: Role) -> Memory {
        self.memory[role as usize]
    }

    /// The most bytes in flight that the channel holds, both ways together: all bytes of the run, if they are few.
    pub fn in_flight(&self) -> u64 {
        let Traffic { to_sender, to_receiver } = self.traffic();
        [to_sender, to_receiver].map(|bytes| bytes.min(channel::CAPACITY as u64)).iter().sum()
    }
}

/// The cost of a run of several for one party.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartyCost {
    /// What the party computes.
    pub work: Work,
    /// What the party holds.
    pub memory: Memory,
}

/// The most bytes that a party holds, in addition to its hashed set and to what the channel holds
/// ([`Cost::in_flight`]).
///
/// For sets of some thousand items or more, this is at least the measured peak and at most three times as much. Growing
/// lists may have twice the room they need, and the peaks of the two parties may not coincide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Independent of the number of threads.
    pub held: u64,
    /// In addition, for each thread that the party computes on.
    pub each_thread: u64,
}

impl Memory {
    /// This many bytes on any number of threads.
    pub fn held(bytes: usize) -> Memory {
        Memory { held: bytes as u64, each_thread: 0 }
    }

    /// The bytes on this number of threads.
    pub fn on(&self, threads: usize) -> u64 {
        self.held + self.each_thread * threads as u64
    }
}

/// What OTs of rows cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) step: Step,
    /// Rounds. The first one is shared with the message that the sender sent before, if it did.
    pub(crate) rounds: usize,
    /// Bytes held by the receiver and by the sender.
    pub(crate) held: [usize; 2],
}

/// Bytes held for an OT of the current frame: 16 each for its bits of the columns, its row and its pad.
pub(crate) const OT: usize = 48;

/// OTs of `n` rows of this width, with `per_frame` rows in a frame, or as many as fit (extension.rs, transfer.rs).
pub(crate) fn transfer(n: usize, width: usize, per_frame: Option<usize>) -> Transfer {
    let (to_sender, to_receiver) = extension::setup_bytes(extension::DEFAULT_K, Security::SemiHonest);
    let mut traffic = Traffic { to_sender: to_sender as u64, to_receiver: to_receiver as u64 };
    let per_frame = per_frame.unwrap_or(ot::rows_per_frame(width));
    for n in frames(n, extension::FRAME) {
        traffic.to_sender +=
            (extension::correction_bytes(n, extension::DEFAULT_K, Security::SemiHonest) + HEADER) as u64;
        traffic.to_receiver += framed(n, per_frame, width);
    }
    // The base OTs there and back, the corrections with the latter, then the rows.
    let rounds = 2 + usize::from(n > 0);
    let in_frame = extension::SETUP_HELD + n.min(extension::FRAME) * OT + n.min(per_frame) * width;
    // A bit for each row, the pads that wait for their rows, and a permutation of the rows.
    let waiting = 16 * n.min(ot::AHEAD * extension::FRAME);
    // A received frame is held twice, as received and as parsed.
    let came = n.min(per_frame) * width;
    let ots = Work::of(Primitive::BaseOt, extension::WIDTH) + Work::of(Primitive::Ot, n);
    let step = Step::both(ots).sends(traffic.to_sender, traffic.to_receiver);
    Transfer { step, rounds, held: [in_frame + came + n + waiting, in_frame + 4 * n] }
}

/// Bytes of a growing list of `n` items of this length.
pub(crate) fn grown(n: usize, bytes: usize) -> usize {
    // While it moves, the old list exists beside the new one, which has twice the room.
    3 * n * bytes
}

/// Bytes that each party holds at the end of an intersection by tags, with the keys of rows if rows are sent (tags.rs).
pub(crate) fn held_for_tags(deal: &Deal, (n_y, n_x): (usize, usize), coding: Coding) -> [usize; 2] {
    let payload = usize::from(deal.terms.payload);
    let width = payload * Layout::<1>::new(deal.terms.max_row).width();
    // Tags as they came and as numbers, and where they are among the own ones.
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
