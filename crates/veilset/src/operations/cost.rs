//! What a run costs, from public sizes: bytes on the wire by the tables of messages, rounds by what waits for what, work
//! in primitive operations, and memory by the largest lists that are held at once.
//!
//! A test runs every protocol and compares: bytes (`session/estimate.rs`), rounds (`protocols/rounds_tests.rs`), memory
//! (`tests/memory.rs`).

use super::intersect::tags;
use super::row::Layout;
use super::{Announced, Operation, Role, Terms};
use crate::channel::{self, HEADER, frames};
use crate::ot::{Security, extension, transfer as ot};
use std::ops::{Add, AddAssign};

/// What is to be computed, as far as the cost depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Deal {
    /// What is computed.
    pub operation: &'static Operation,
    /// What was agreed.
    pub terms: Terms,
    /// What the receiver announced.
    pub receiver: Announced,
    /// What the sender announced.
    pub sender: Announced,
}

impl Deal {
    /// What the receiver sends on, if both get the result.
    pub(crate) fn sent_on(&self) -> Traffic {
        let to_sender = if self.terms.both { (self.operation.sends_on)(self) } else { 0 };
        Traffic { to_sender, to_receiver: 0 }
    }
}

/// What a run costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// The frames of the protocol, each exactly except for coded tags, whose length depends a little on the data.
    pub traffic: Traffic,
    /// Messages that must follow each other, one way, from the protocol's first to its last: how often the latency of a
    /// link is waited for. Frames of a message that do not wait for each other count once, and so do messages that cross.
    pub rounds: usize,
    /// What it costs the receiver.
    pub receiver: PartyCost,
    /// What it costs the sender.
    pub sender: PartyCost,
}

impl Cost {
    /// What it costs a party.
    pub fn of(&self, role: Role) -> &PartyCost {
        match role {
            Role::Receiver => &self.receiver,
            Role::Sender => &self.sender,
        }
    }

    /// Bytes under way that the channel holds at most, both ways together: all of them where they are few.
    pub fn under_way(&self) -> u64 {
        let Traffic { to_sender, to_receiver } = self.traffic;
        [to_sender, to_receiver].map(|bytes| bytes.min(channel::CAPACITY as u64)).iter().sum()
    }
}

/// What a run costs one party.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartyCost {
    /// What it computes.
    pub work: Work,
    /// What it holds.
    pub memory: Memory,
}

/// Bytes that a party holds at most, in addition to the set that it is given, hashed, and to what the channel holds
/// ([`Cost::under_way`]). It is at least what is measured, and at most three times as much where sets have some thousand
/// items: lists that grow may have twice the room they need, and the largest moments of the two parties may not coincide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// However many threads it computes on.
    pub held: u64,
    /// For each thread that it computes on.
    pub each_thread: u64,
}

impl Memory {
    /// So many bytes, however many threads there are.
    pub(crate) fn held(bytes: usize) -> Memory {
        Memory { held: bytes as u64, each_thread: 0 }
    }

    /// Bytes on so many threads.
    pub fn on(&self, threads: usize) -> u64 {
        self.held + self.each_thread * threads as u64
    }
}

/// Bytes on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// From the receiver to the sender.
    pub to_sender: u64,
    /// From the sender to the receiver.
    pub to_receiver: u64,
}

/// What a party computes, in primitive operations of each kind. What goes with them is proportional to one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Work {
    /// Multiplications of points of Curve25519.
    pub multiplications: usize,
    /// Base OTs.
    pub base_ots: usize,
    /// Bits of a matrix of CM20 that are transposed, masked and hashed.
    pub matrix_bits: usize,
    /// Items of either side in an OPRF from VOLE.
    pub vole_items: usize,
    /// Items of either side in the bins of KRTW19.
    pub binned_items: usize,
}

impl Traffic {
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

/// OTs of `n` rows, and what goes with them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) traffic: Traffic,
    /// Rounds, the first of which is that of the message that the sender sent before, if it did.
    pub(crate) rounds: usize,
    /// Bytes that the receiver and the sender hold.
    pub(crate) held: [usize; 2],
}

/// Bytes that the setup of an OT extension takes: base OTs, and 22 trees of 64 ciphers.
pub(crate) const SETUP: usize = 5 << 16;
/// Bytes that an OT of a frame takes while it is made: 16 for its bits of the columns, its row and its pad each.
pub(crate) const OT: usize = 48;

/// OTs of `n` rows of this width, so many rows in a frame or as many as fit: extension.rs, transfer.rs.
pub(crate) fn transfer(n: usize, width: usize, per_frame: Option<usize>) -> Transfer {
    let (to_sender, to_receiver) = extension::setup_bytes(extension::DEFAULT_K, Security::SemiHonest);
    let mut traffic = Traffic { to_sender: to_sender as u64, to_receiver: to_receiver as u64 };
    let per_frame = per_frame.unwrap_or(ot::rows_per_frame(width));
    for n in frames(n, extension::FRAME) {
        traffic.to_sender +=
            (extension::correction_bytes(n, extension::DEFAULT_K, Security::SemiHonest) + HEADER) as u64;
        traffic.to_receiver += framed(n, per_frame, width);
    }
    // The base OTs there and back, with the corrections, then the rows.
    let rounds = 2 + usize::from(n > 0);
    let in_frame = SETUP + n.min(extension::FRAME) * OT + n.min(per_frame) * width;
    // A bit for each row, and the pads that wait for theirs; an order of the rows.
    let waiting = 16 * n.min(ot::AHEAD * extension::FRAME);
    // What came is held twice, as it came and as it is read.
    let came = n.min(per_frame) * width;
    Transfer { traffic, rounds, held: [in_frame + came + n + waiting, in_frame + 4 * n] }
}

/// Bytes of a list of `n` items of this length that grows while it is made.
pub(crate) fn grown(n: usize, bytes: usize) -> usize {
    // The list that it leaves has half the room of the one that it moves to.
    3 * n * bytes
}

/// Bytes that each party holds for the end of an intersection by tags, keys of rows included if rows travel: tags.rs.
pub(crate) fn held_for_tags(deal: &Deal, n_y: usize, n_x: usize) -> [usize; 2] {
    let payload = usize::from(deal.terms.payload);
    let width = payload * Layout::<1>::new(deal.terms.max_row).width();
    let frame = n_x.min(tags::FRAME) * 2 * tags::LONGEST + 2 * n_x.min(ot::rows_per_frame(width)) * width;
    let found = grown(n_x, 5) + payload * grown(n_y.min(n_x), deal.terms.max_row + 8);
    [frame + n_y * (21 + 16 * payload) + found, frame + n_x * (25 + 16 * payload)]
}

/// The end of an intersection by tags, and the rows that travel: tags.rs.
pub(crate) fn tags_and_rows(deal: &Deal, n_x: usize, tag_bytes: usize) -> u64 {
    let width = Layout::<1>::new(deal.terms.max_row).width();
    let rows = if deal.terms.payload { framed(n_x, ot::rows_per_frame(width), width) } else { 0 };
    framed(n_x, tags::FRAME, tag_bytes) + rows
}

/// Bytes of `n` elements of `size` bytes in frames of `frame` elements.
pub(crate) fn framed(n: usize, frame: usize, size: usize) -> u64 {
    (n * size + n.div_ceil(frame) * HEADER) as u64
}
