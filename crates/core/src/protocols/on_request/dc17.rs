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
use crate::protocols::{Assumption, Attachment, Offer, Probe, Protocol, Runs, SEMI_HONEST, Unasked, groups};
use crate::work::{Step, Traffic, Work};
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
        attachments: &[Attachment::Filter],
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

/// The receiver encrypts its filter, and the sender adds up the cells of its items. Then the sender makes the answers, and the
/// receiver opens them. The memory is that of both steps together, with full frames.
fn cost<C: Cipher>(deal: &Deal) -> Result<Cost> {
    let (n_y, n_x) = DC17.sizes(deal);
    let part = part::<C>(deal.operation)?;
    let (shape, agreed) = ((part.shape)(&deal.terms), filter(&deal.terms, n_y, n_x));
    let (cells, positions) = (agreed.filter.cells as usize, n_x * agreed.filter.positions as usize);
    let sent = n_x > 0 && !agreed.held;
    // The cells of a filter made in advance are encrypted already.
    let made = if sent && agreed.owner.is_none() { cells } else { 0 };
    let of_filter = if sent { head::<C>() as u64 + framed(cells, frame::<C>(), C::CELL) } else { 0 };

    let Effort { primitive, encrypt, load, add, combine, open } = C::EFFORT;
    let work = |hundredths: usize| Work::of(primitive, hundredths / 100);
    let answers = n_x * shape.ciphertexts;
    let steps = vec![
        // Cells that several items share are loaded once.
        Step::of(work(made * encrypt), work(cells.min(positions) * load + positions * add))
            .sends(of_filter, 0),
        Step::of(work(answers * open), work(answers * combine)).sends(0, shape.bytes::<C>(n_x)),
        deal.sent_on(),
    ];
    // Each of them waits for the one before.
    let rounds = steps.iter().filter(|step| step.traffic != Traffic::default()).count();

    let Room { listed, opened, answered, thread, owner } = C::ROOM;
    let (cells_in_frame, in_frame) = (frame::<C>(), shape.per_frame::<C>());
    // A frame is held as it was made and as it is sent, or as it came and as it is parsed.
    let frames = 2 * cells_in_frame * C::CELL + 2 * in_frame * shape.answer::<C>();
    let result = (part.held)(deal, n_y, n_x);
    // The bits of the filter, and a bit per answer.
    let tables = if made > 0 { owner } else { 0 };
    let receiver = made / 8 + tables + frames + in_frame * opened + n_x + result[0];
    // The sums, the positions and the order of the items; the cells that were loaded, with their numbers and items.
    let sender = n_x * (listed + 4) + 8 * positions + frames + in_frame * answered + result[1];
    let sender = sender + cells_in_frame * (listed + 12);
    let memory = [receiver, sender].map(|held| Memory { held: held as u64, each_thread: 2 * thread as u64 });
    Ok(Cost { steps, rounds, memory })
}
