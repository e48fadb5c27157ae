//! Units in which the computation and communication of parties are counted. A primitive is an operation with a
//! machine-dependent speed (`veilset::speed`).

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Defines the primitives, each with its name.
macro_rules! primitives {
    ($($(#[doc = $doc:literal])+ $primitive:ident = $name:literal,)+) => {
        /// A primitive, with the operations that accompany it in protocols: hashing, copying, wiping.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Primitive {
            $($(#[doc = $doc])+ $primitive,)+
        }

        impl Primitive {
            /// All primitives.
            pub const ALL: [Primitive; [$($name),+].len()] = [$(Primitive::$primitive),+];

            /// Returns its name in files, in reports and on the wire, stable across versions.
            pub fn name(self) -> &'static str {
                match self {
                    $(Primitive::$primitive => $name,)+
                }
            }
        }
    };
}

primitives! {
    /// The hash of an item.
    Item = "hashed item",
    /// A multiplication of a point of Curve25519, given by its abscissa.
    Curve25519 = "multiplication in curve25519",
    /// A multiplication of a point of P-256.
    P256 = "multiplication in p256",
    /// A multiplication of a point of P-256, sent as its abscissa.
    P256Compressed = "multiplication in p256-compressed",
    /// A multiplication of an element of ristretto255.
    Ristretto255 = "multiplication in ristretto255",
    /// A base OT, computed by either party.
    BaseOt = "base OT",
    /// An OT from OT extension, with its row.
    Ot = "OT of a row",
    /// A correlated OT from OT extension, whose messages differ by Delta, for a VOLE.
    CorrelatedOt = "correlated OT",
    /// An element made with the code of a VOLE, with its leaves of the trees.
    VoleElement = "VOLE element",
    /// The solution of an equation of a key-value store.
    StoreRow = "row of a key-value store",
    /// An evaluation of a key-value store, or of an OPRF from VOLE that reads a store.
    StoreValue = "value of a key-value store",
    /// A tag that is computed, sorted and looked up.
    Tag = "tag",
    /// A bit of CM20's matrix.
    MatrixBit = "bit of a matrix",
    /// A slot of a bin of KRTW19 that is programmed by interpolating its polynomial.
    Programmed = "programmed slot",
    /// A test of a slot of a bin of KRTW19.
    Tested = "tested slot",
    /// A switch of a permutation network, with its OT.
    Switch = "switch",
    /// A comparison of two strings whose result is shared by the parties.
    Compared = "comparison with shared outcome",
    /// An encryption or multiplication of a BFV ciphertext.
    Bfv = "BFV ciphertext",
    /// An encryption of a bit with Paillier's scheme and a modulus of 2048 bits.
    Paillier = "bit under Paillier",
    /// A kilobyte that is sent or received over TLS.
    Kilobyte = "kilobyte under TLS",
}

impl Primitive {
    /// Returns whether more threads do not help, because the operations are sequential or too few.
    pub fn is_serial(self) -> bool {
        matches!(self, Primitive::StoreRow | Primitive::BaseOt)
    }
}

/// A count for each primitive.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Work([u64; Primitive::ALL.len()]);

impl Work {
    /// Returns `n` of a primitive.
    pub fn of(primitive: Primitive, n: usize) -> Work {
        let mut work = Work::default();
        work.0[primitive as usize] = n as u64;
        work
    }

    /// Removes `n` of a primitive, or all if there are fewer.
    pub fn without(mut self, primitive: Primitive, n: usize) -> Work {
        let count = &mut self.0[primitive as usize];
        *count = count.saturating_sub(n as u64);
        self
    }

    /// Returns the count of a primitive.
    pub fn count(&self, primitive: Primitive) -> u64 {
        self.0[primitive as usize]
    }

    /// Returns each primitive with a count other than 0, and the count.
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

/// Numbers of bytes on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes from the receiver to the sender.
    pub to_sender: u64,
    /// Bytes from the sender to the receiver.
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

/// A step of a run: the work and traffic of both parties in parallel, before either can go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// The work of the receiver and of the sender.
    pub work: [Work; 2],
    /// The bytes of the protocol's frames: exact, except for coded tags, whose length depends slightly on the data.
    pub traffic: Traffic,
}

impl Step {
    /// Returns a step with the same work for both parties.
    pub(crate) fn both(work: Work) -> Step {
        Step { work: [work; 2], traffic: Traffic::default() }
    }

    /// Returns a step with this work of the receiver and of the sender.
    pub fn of(receiver: Work, sender: Work) -> Step {
        Step { work: [receiver, sender], traffic: Traffic::default() }
    }

    /// Adds these bytes to the sender and to the receiver.
    pub fn sends(self, to_sender: u64, to_receiver: u64) -> Step {
        Step { traffic: self.traffic + Traffic { to_sender, to_receiver }, ..self }
    }

    /// Exchanges the roles.
    pub(crate) fn swapped(self) -> Step {
        let [receiver, sender] = self.work;
        let Traffic { to_sender, to_receiver } = self.traffic;
        Step { work: [sender, receiver], traffic: Traffic { to_sender: to_receiver, to_receiver: to_sender } }
    }
}

/// Returns the traffic of all steps.
pub(crate) fn traffic(steps: &[Step]) -> Traffic {
    steps.iter().fold(Traffic::default(), |sum, step| sum + step.traffic)
}
