//! `dc17`: an encrypted, inverted Bloom filter (DC17).

use super::{Offer, Protocol, Runs, SEMI_HONEST, groups};
use crate::ahe::Cipher;
use crate::ahe::elgamal::lists::ElGamal;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::membership::encrypted_filter::{MOST_ITEMS, frame, head};
use crate::operations::cost::{Cost, Deal, Memory, PartyCost, Traffic, Work, framed};
use crate::operations::dc17::{Shape, count, filter, intersect, union};
use crate::operations::{self, COUNT, INTERSECT, Learned, Operation, Sealed, Task, Terms, UNION};

/// An encrypted Bloom filter ([`crate::operations::dc17`]).
pub static DC17: Protocol = Protocol {
    name: "dc17",
    summary: "the receiver's encrypted Bloom filter, and homomorphic answers to it",
    groups: &[groups::RISTRETTO255],
    offers: &[offer(&INTERSECT), offer(&UNION), offer(&COUNT)],
    assumptions: |_, _| {
        vec![SEMI_HONEST, "decisional Diffie-Hellman on ristretto255", "BLAKE3 as a random oracle, AES-128"]
    },
    runs: Runs::Two { stages: |_, _| 2, cost: cost::<ElGamal>, run: run::<ElGamal> },
};

const fn offer(operation: &'static Operation) -> Offer {
    Offer { largest: [MOST_ITEMS; 2], ..Offer::of(operation) }
}

/// What this protocol does for an operation.
struct Part {
    operation: &'static Operation,
    shape: fn(&Terms) -> Shape,
    /// Bytes that the receiver and the sender hold for the result.
    held: fn(&Deal, usize, usize) -> [usize; 2],
    run: for<'a> fn(&Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>,
}

fn part<C: Cipher>(operation: &Operation) -> Result<Part> {
    let all = [
        Part {
            operation: &INTERSECT,
            shape: intersect::shape,
            held: operations::intersect::held,
            run: intersect::run::<C>,
        },
        Part { operation: &UNION, shape: union::shape, held: operations::union::held, run: union::run::<C> },
        Part { operation: &COUNT, shape: |_| count::SHAPE, held: |_, _, _| [0; 2], run: count::run::<C> },
    ];
    let found = all.into_iter().find(|part| part.operation == operation);
    found.ok_or_else(|| Error::Bug(format!("{operation} by {DC17}")))
}

fn run<'a, C: Cipher>(task: &Task<'a>, cx: &mut Context, n: usize) -> Result<Sealed<'a, Learned>> {
    (part::<C>(task.operation)?.run)(task, cx, n)
}

fn cost<C: Cipher>(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = DC17.sizes(deal);
    let Part { shape, held, .. } = part::<C>(deal.operation)?;
    let (shape, filter) = (shape(&deal.terms), filter(n_y, n_x));
    let (cells, positions) = (filter.cells as usize, n_x * filter.positions as usize);
    let mut traffic = deal.sent_on();
    if n_x > 0 {
        let to_sender = head::<C>() as u64 + framed(cells, frame::<C>(), C::CELL);
        traffic += Traffic { to_sender, to_receiver: shape.bytes::<C>(n_x) };
    }
    // The filter, then the answers, then what is sent on.
    let sends_on = deal.terms.both && deal.sent_on().to_sender > 0;
    let rounds = if n_x > 0 { 2 } else { 0 } + usize::from(sends_on);
    let result = held(deal, n_y, n_x);
    let in_frame = n_x.min(shape.per_frame::<C>());
    let frame_of_answers = in_frame * (shape.ciphertexts * C::CIPHERTEXT + shape.width);
    let cells_in_frame = cells.min(frame::<C>());
    let chosen = cells_in_frame.min(positions);
    let receiver = cells / 8 + 2 * cells_in_frame * (C::CELL + 1) + n_x;
    let opened = 2 * frame_of_answers + in_frame * OPENED;
    let sender = n_x * LISTED
        + (8 * positions + cells_in_frame * C::CELL + chosen * (C::CELL + LISTED + 12))
            .max(2 * frame_of_answers + in_frame * ANSWERED);
    let party = |multiplications, held, each| PartyCost {
        work: Work { multiplications, ..Work::default() },
        memory: Memory { held: held as u64, each_thread: each as u64 },
    };
    // Estimated, in multiplications of points: a cell takes one, an answer two to open and three to make; a cell to decode
    // takes a third, and one to add a twentieth.
    let (decoded, answers) = (cells.min(positions), shape.ciphertexts * n_x);
    Ok(Cost {
        traffic,
        rounds,
        receiver: party(
            if n_x > 0 { cells } else { 0 } + 2 * answers,
            receiver.max(n_x + opened + result[0]),
            2 * BATCH,
        ),
        sender: party(decoded / 3 + positions / 20 + 3 * answers, sender + 4 * n_x + result[1], 2 * BATCH),
    })
}

/// Bytes of a ciphertext in a list.
const LISTED: usize = 2 * 160;
/// Bytes of an answer while it is opened: its elements, their encodings, and what is in them.
const OPENED: usize = 4 * 160 + 4 * 32;
/// Bytes of an answer while it is made.
const ANSWERED: usize = LISTED + 4 * 32;
/// Bytes of a batch of elements in four forms.
const BATCH: usize = 256 * (4 * 160);
