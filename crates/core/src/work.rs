//! What parties compute and send: the units in which costs are counted. A primitive is an operation that a machine does at
//! a speed of its own (`veilset::speed`).

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A primitive, with all that comes with it where protocols use it: hashing, copying, wiping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Primitive {
    /// An item is hashed.
    Item,
    /// A point of Curve25519 is multiplied, by its abscissa.
    Curve25519,
    /// A point of P-256 is multiplied.
    P256,
    /// A point of P-256 is multiplied, and travels by its abscissa.
    P256Compressed,
    /// An element of ristretto255 is multiplied.
    Ristretto255,
    /// A base OT, by either party.
    BaseOt,
    /// An OT by extension, with its row.
    Ot,
    /// An OT by extension whose messages differ by Delta, of a VOLE.
    CorrelatedOt,
    /// An element that the code of a VOLE makes, with its leaves of the trees.
    VoleElement,
    /// An equation of a key-value store is solved.
    StoreRow,
    /// A key-value store is evaluated, or an OPRF from VOLE where its store is read.
    StoreValue,
    /// A tag is made, sorted and looked up.
    Tag,
    /// A bit of CM20's matrix.
    MatrixBit,
    /// A slot of a bin of KRTW19 is programmed: its polynomial is interpolated.
    Programmed,
    /// A slot of a bin of KRTW19 is tested.
    Tested,
    /// A switch of a permutation network, with its OT.
    Switch,
    /// A string is compared, and the parties have shares of the outcome.
    Compared,
    /// A ciphertext of BFV is encrypted or multiplied.
    Bfv,
    /// A bit is encrypted by Paillier's encryption with 2048 bits.
    Paillier,
    /// A kilobyte is sent or received under TLS.
    Kilobyte,
}

impl Primitive {
    /// All primitives. Speeds travel in this order.
    pub const ALL: [Primitive; 20] = {
        use Primitive::*;
        [
            Item,
            Curve25519,
            P256,
            P256Compressed,
            Ristretto255,
            BaseOt,
            Ot,
            CorrelatedOt,
            VoleElement,
            StoreRow,
            StoreValue,
            Tag,
            MatrixBit,
            Programmed,
            Tested,
            Switch,
            Compared,
            Bfv,
            Paillier,
            Kilobyte,
        ]
    };

    /// Its name in files and for readers, stable across versions.
    pub fn name(self) -> &'static str {
        match self {
            Primitive::Item => "hashed item",
            Primitive::Curve25519 => "multiplication in curve25519",
            Primitive::P256 => "multiplication in p256",
            Primitive::P256Compressed => "multiplication in p256-compressed",
            Primitive::Ristretto255 => "multiplication in ristretto255",
            Primitive::BaseOt => "base OT",
            Primitive::Ot => "OT of a row",
            Primitive::CorrelatedOt => "correlated OT",
            Primitive::VoleElement => "VOLE element",
            Primitive::StoreRow => "row of a key-value store",
            Primitive::StoreValue => "value of a key-value store",
            Primitive::Tag => "tag",
            Primitive::MatrixBit => "bit of a matrix",
            Primitive::Programmed => "programmed slot",
            Primitive::Tested => "tested slot",
            Primitive::Switch => "switch",
            Primitive::Compared => "comparison with shared outcome",
            Primitive::Bfv => "BFV ciphertext",
            Primitive::Paillier => "bit under Paillier",
            Primitive::Kilobyte => "kilobyte under TLS",
        }
    }

    /// Whether further threads do not help: each depends on the one before, or they are too few.
    pub fn is_serial(self) -> bool {
        matches!(self, Primitive::StoreRow | Primitive::BaseOt)
    }
}

/// Primitives, and how many of each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Work([u64; Primitive::ALL.len()]);

impl Work {
    /// This many of a primitive.
    pub fn of(primitive: Primitive, n: usize) -> Work {
        let mut work = Work::default();
        work.0[primitive as usize] = n as u64;
        work
    }

    /// The same without this many of a primitive, or without any if there are fewer.
    pub fn without(mut self, primitive: Primitive, n: usize) -> Work {
        let count = &mut self.0[primitive as usize];
        *count = count.saturating_sub(n as u64);
        self
    }

    /// How many there are of a primitive.
    pub fn count(&self, primitive: Primitive) -> u64 {
        self.0[primitive as usize]
    }

    /// Each primitive of which there are any, and how many.
    pub fn counts(&self) -> impl Iterator<Item = (Primitive, u64)> {
        let all = Primitive::ALL.map(|primitive| (primitive, self.count(primitive)));
        all.into_iter().filter(|(_, n)| *n > 0)
    }
}

impl Add for Work {
    type Output = Work;
    fn add(self, other: Work) -> Work {
        Work(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        *self = *self + other;
    }
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Work>>(all: I) -> Work {
        all.fold(Work::default(), Add::add)
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.counts()).finish()
    }
}

/// Bytes on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From the receiver to the sender.
    pub to_sender: u64,
    /// From the sender to the receiver.
    pub to_receiver: u64,
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

/// A part of a run: what both parties compute and send side by side, before either can go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// What the receiver and the sender compute.
    pub work: [Work; 2],
    /// The frames of the protocol. Exact, except for coded tags, whose length depends slightly on the data.
    pub traffic: Traffic,
}

impl Step {
    /// Both compute the same.
    pub(crate) fn both(work: Work) -> Step {
        Step { work: [work; 2], traffic: Traffic::default() }
    }

    /// The receiver and the sender compute this.
    pub fn of(receiver: Work, sender: Work) -> Step {
        Step { work: [receiver, sender], traffic: Traffic::default() }
    }

    /// The same, with these bytes to the sender and to the receiver.
    pub fn sends(self, to_sender: u64, to_receiver: u64) -> Step {
        Step { traffic: self.traffic + Traffic { to_sender, to_receiver }, ..self }
    }

    /// The same with the roles exchanged.
    pub(crate) fn swapped(self) -> Step {
        let [receiver, sender] = self.work;
        let Traffic { to_sender, to_receiver } = self.traffic;
        Step { work: [sender, receiver], traffic: Traffic { to_sender: to_receiver, to_receiver: to_sender } }
    }
}

/// The traffic of all steps.
pub(crate) fn traffic(steps: &[Step]) -> Traffic {
    steps.iter().fold(Traffic::default(), |sum, step| sum + step.traffic)
}
