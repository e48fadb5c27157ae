//! `dc17`: an encrypted, inverted Bloom filter (DC17).

use crate::ahe::elgamal::lists::ElGamal;
#[cfg(feature = "paillier")]
use crate::ahe::paillier::Paillier;
use crate::ahe::{Cipher, Effort, Room};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::membership::encrypted_filter::{MOST_ITEMS, frame, head};
use crate::operations::cost::{Cost, Deal, Memory, framed};
use crate::operations::dc17::{Shape, count, filter, intersect, union};
use crate::operations::{self, COUNT, INTERSECT, Learned, Operation, Sealed, Task, Terms, UNION};
use crate::protocols::{Assumption, Offer, Probe, Protocol, Runs, SEMI_HONEST, Unasked, groups};
use crate::work::{Step, Work};
use std::sync::atomic::{AtomicBool, Ordering};
use under_cipher::{UnderCipher, with_cipher};

/// An encrypted Bloom filter ([`crate::operations::dc17`]).
pub static DC17: Protocol = Protocol {
    name: "dc17",
    summary: "the receiver's encrypted Bloom filter, and homomorphic answers to it",
    when: "a receiver that encrypts its set once, for many partners",
    groups: &[groups::RISTRETTO255],
    ciphers: &[
        #[cfg(feature = "paillier")]
        groups::PAILLIER_2048,
        #[cfg(feature = "paillier")]
        groups::PAILLIER_3072,
    ],
    offers: &[
        offer(
            &INTERSECT,
            6,
            "ask for every key: it gets a digest of each, against which it can test guesses, and all columns that are sent",
        ),
        offer(&UNION, 8, "get the whole set of the sender"),
        offer(&COUNT, 5, "count by another filter in each run, and so test guesses"),
    ],
    rests_on: |group| match group {
        groups::RISTRETTO255 => &[Assumption::Ddh],
        _ => &[Assumption::Dcr],
    },
    probes: PROBES,
    assumptions: |_, group| {
        let of_cipher = match group {
            groups::PAILLIER_2048 => {
                "decisional composite residuosity for moduli of 2048 bits (112-bit security)"
            }
            groups::PAILLIER_3072 => "decisional composite residuosity for moduli of 3072 bits",
            _ => "decisional Diffie-Hellman on ristretto255",
        };
        vec![SEMI_HONEST, of_cipher, "BLAKE3 as a random oracle, AES-128"]
    },
    runs: Runs::Two {
        stages: |_, _| 2,
        cost: |deal| with_cipher(deal.group, CostOf(deal)),
        run: |task, cx, n| with_cipher(task.group, RunOf { task, cx, n }),
    },
};

#[cfg(feature = "paillier")]
const PROBES: &[Probe] = &[Probe {
    primitive: crate::work::Primitive::Paillier,
    operation: &COUNT,
    group: groups::PAILLIER_2048,
    items: 8,
    role: operations::Role::Receiver,
}];
#[cfg(not(feature = "paillier"))]
const PROBES: &[Probe] = &[];

static SHORT_MODULI: AtomicBool = AtomicBool::new(false);

/// Lets this program use moduli of 1024 bits ([`groups::PAILLIER_1024`]), which are too short to be secure. Only for the
/// benchmark, which compares with the paper.
pub fn allow_short_moduli() {
    SHORT_MODULI.store(true, Ordering::Relaxed);
}

/// Whether moduli of 1024 bits are allowed.
pub(in crate::protocols) fn short_moduli() -> bool {
    SHORT_MODULI.load(Ordering::Relaxed)
}

const fn offer(operation: &'static Operation, order: u8, receiver: &'static str) -> Offer {
    const SENDER: &str =
        "answer with anything, and where both get the result test a guess for each key that it announced";
    Offer {
        unasked: Unasked::No,
        largest: [MOST_ITEMS; 2],
        filters: true,
        ..Offer::of(operation, order, [receiver, SENDER])
    }
}

/// Selection of a cipher by its name.
pub mod under_cipher {
    use super::*;

    /// A computation that is generic in the cipher.
    pub trait UnderCipher {
        /// The result of the computation.
        type Output;
        /// Runs the computation under cipher `C`.
        fn run<C: Cipher>(self) -> Result<Self::Output>;
    }

    /// Runs `work` under the cipher with this name.
    ///
    /// # Errors
    /// The errors of the work, and [`Error::Usage`] for an unknown name.
    pub fn with_cipher<W: UnderCipher>(name: &str, work: W) -> Result<W::Output> {
        match name {
            groups::RISTRETTO255 => work.run::<ElGamal>(),
            #[cfg(feature = "paillier")]
            groups::PAILLIER_1024 => work.run::<Paillier<1024>>(),
            #[cfg(feature = "paillier")]
            groups::PAILLIER_2048 => work.run::<Paillier<2048>>(),
            #[cfg(feature = "paillier")]
            groups::PAILLIER_3072 => work.run::<Paillier<3072>>(),
            _ => Err(DC17.refuse_group(name)),
        }
    }
}

struct CostOf<'d>(&'d Deal);

impl UnderCipher for CostOf<'_> {
    type Output = Cost;
    fn run<C: Cipher>(self) -> Result<Cost> {
        cost::<C>(self.0)
    }
}

struct RunOf<'t, 'a, 'c, 'x> {
    task: &'t Task<'a>,
    cx: &'c mut Context<'x>,
    n: usize,
}

impl<'a> UnderCipher for RunOf<'_, 'a, '_, '_> {
    type Output = Sealed<'a, Learned>;
    fn run<C: Cipher>(self) -> Result<Sealed<'a, Learned>> {
        (part::<C>(self.task.operation)?.run)(self.task, self.cx, self.n)
    }
}

/// The implementation of an operation by this protocol.
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
    found.ok_or_else(|| Error::bug(format!("{operation} by {DC17}")))
}

fn cost<C: Cipher>(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = DC17.sizes(deal);
    let Part { shape, held, .. } = part::<C>(deal.operation)?;
    let (shape, agreed) = (shape(&deal.terms), filter(&deal.terms, n_y, n_x));
    let (cells, positions) = (agreed.filter.cells as usize, n_x * agreed.filter.positions as usize);
    let (stored, sent) = (agreed.owner.is_some(), n_x > 0 && !agreed.held);
    let of_answers = if n_x > 0 { shape.bytes::<C>(n_x) } else { 0 };
    let of_filter = if sent { head::<C>() as u64 + framed(cells, frame::<C>(), C::CELL) } else { 0 };
    // The filter, then the answers, then the result that is sent on.
    let sends_on = deal.terms.both && deal.sent_on().traffic.to_sender > 0;
    let rounds = usize::from(sent) + usize::from(n_x > 0) + usize::from(sends_on);
    let (result, Room { listed, opened, answered, thread, owner }) = (held(deal, n_y, n_x), C::ROOM);
    let in_frame = n_x.min(shape.per_frame::<C>());
    let frame_of_answers = in_frame * (shape.ciphertexts * C::CIPHERTEXT + shape.width);
    let cells_in_frame = cells.min(frame::<C>());
    let chosen = cells_in_frame.min(positions);
    let receiver = if stored { 0 } else { cells / 8 + owner } + 2 * cells_in_frame * (C::CELL + 1) + n_x;
    let while_opened = 2 * frame_of_answers + in_frame * opened;
    let sender = n_x * listed
        + (8 * positions + cells_in_frame * C::CELL + chosen * (C::CELL + listed + 12))
            .max(2 * frame_of_answers + in_frame * answered);
    let Effort { primitive, encrypt, load, add, combine, open } = C::EFFORT;
    let effort = |effort: usize| Work::of(primitive, effort / 100);
    let (made, used) = (if sent && !stored { cells } else { 0 }, cells.min(positions));
    let answers = shape.ciphertexts * n_x;
    let steps = vec![
        Step::of(effort(made * encrypt), effort(used * load + positions * add)).sends(of_filter, 0),
        Step::of(effort(answers * open), effort(answers * combine)).sends(0, of_answers),
        deal.sent_on(),
    ];
    let held = [receiver.max(n_x + while_opened + result[0]), sender + 4 * n_x + result[1]];
    let each_thread = 2 * thread as u64;
    Ok(Cost { steps, rounds, memory: held.map(|held| Memory { held: held as u64, each_thread }) })
}
