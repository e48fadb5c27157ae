//! What a run costs, from public sizes: bytes on the wire by the tables of messages, and work in primitive operations.

use super::intersect::tags;
use super::row::Layout;
use super::{Announced, Operation, Terms};
use crate::channel::{HEADER, frames};
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
pub struct Cost {
    /// The frames of the protocol, each exactly except for coded tags, whose length depends a little on the data.
    pub traffic: Traffic,
    /// What the receiver computes.
    pub receiver: Work,
    /// What the sender computes.
    pub sender: Work,
}

/// Bytes on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From the receiver to the sender.
    pub to_sender: u64,
    /// From the sender to the receiver.
    pub to_receiver: u64,
}

/// What a party computes, in primitive operations of each kind. What goes with them is proportional to one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// OTs of `n` rows of this width, so many rows in a frame or as many as fit: extension.rs, transfer.rs.
pub(crate) fn transfer(n: usize, width: usize, per_frame: Option<usize>) -> Traffic {
    let (to_sender, to_receiver) = extension::setup_bytes(extension::DEFAULT_K, Security::SemiHonest);
    let mut all = Traffic { to_sender: to_sender as u64, to_receiver: to_receiver as u64 };
    let per_frame = per_frame.unwrap_or(ot::rows_per_frame(width));
    for n in frames(n, extension::FRAME) {
        all.to_sender +=
            (extension::correction_bytes(n, extension::DEFAULT_K, Security::SemiHonest) + HEADER) as u64;
        all.to_receiver += framed(n, per_frame, width);
    }
    all
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
