//! The protocols, each described by one static entry. The modules of [`crate::operations`] and of the building blocks describe
//! how they work.
//!
//! An entry states the operations, assumptions and cost of a protocol, and how to run it. All other code consults the entry
//! and never asks which protocol it is. To add a protocol, add a file here and a line to [`ALL`]; `docs/architecture.md` lists
//! all steps.
//!
//! All protocols run through [`run_among`], or [`run`] over one channel, which check that the parts of a task belong together.
//! The roles themselves are not public: with the wrong dummies in a set, they would silently give wrong results.
//!
//! All protocols return the same errors. [`Error::Peer`]: a message is not the expected one, or the peer gave up.
//! [`Error::Network`]: the connection ended or stalled. [`Error::Cancelled`]: we were stopped. [`Error::Usage`]: the system
//! starts no thread. [`Error::Input`]: a filter made in advance is damaged. [`Error::Bug`]: arguments do not belong
//! together. [`Sealed`] holds the errors that depend on the result.

mod cm20;
pub(crate) mod cwprf;
mod deviating;
pub(crate) mod dh_psi;
mod krtw19;
mod multiparty;
mod offer;
mod on_request;
mod osn;
mod vole;

pub use crate::assumption::Assumption;
pub use cm20::CM20;
pub use cwprf::CWPRF;
pub use dh_psi::DH_PSI;
pub use krtw19::KRTW19;
pub use multiparty::{MPSI, MPSI_CA, MPSU};
pub use offer::{Attachment, Choice, Offer, Unasked};
#[cfg(feature = "fhe")]
pub use on_request::SIGMA_FHE;
pub use on_request::{DC17, KRTW19_PLAIN, POPRF, SIGMA_AHE, SIGMA_DH, allow_short_moduli, under_cipher};
pub use osn::OSN;
pub use vole::VOLE;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::group::{self, InGroup};
use crate::hashed::Dummies;
use crate::many::Many;
use crate::operations::cost::{Among, Cost, Deal, Memory, PartyCost, held_for_tags, tags_and_rows};
use crate::operations::multiparty::MultipartyCost;
use crate::operations::{Announced, Learned, Operation, Role, Sealed, Task, Terms, UNION, intersect};
use crate::oprf::Oprf;
use crate::params::MAX_SET;
use crate::spelling::{GROUP, PAD_TO, PROTOCOL};
use crate::work::{Primitive, Step, Work};
use std::fmt;

/// All protocols of two parties that this program is built with, in the order shown to users.
pub static ALL: [&Protocol; BUILT] = [
    &CWPRF,
    &DH_PSI,
    &CM20,
    &VOLE,
    &KRTW19,
    &KRTW19_PLAIN,
    &OSN,
    &POPRF,
    &SIGMA_DH,
    &SIGMA_AHE,
    #[cfg(feature = "fhe")]
    &SIGMA_FHE,
    &DC17,
];

const BUILT: usize = 11 + cfg!(feature = "fhe") as usize;

/// All protocols of several parties, one for each operation that they compute.
pub static MULTIPARTY: [&Protocol; 3] = [&MPSU, &MPSI, &MPSI_CA];

/// Protocols that this program is not built with, and the feature that enables each.
const NOT_BUILT: &[(&str, &str)] = &[
    #[cfg(not(feature = "fhe"))]
    ("sigma-fhe", "fhe"),
];

/// The names of the groups that protocols work in, and of the encryptions that take the place of a group.
pub mod groups {
    use crate::group::Group;
    use crate::group::curve25519::Curve25519;
    use crate::group::ristretto255::Ristretto255;

    /// Curve25519, abscissae only ([`crate::group::curve25519`]).
    pub const CURVE25519: &str = Curve25519::NAME;
    /// P-256, points of 64 bytes (`group/p256.rs`, with the feature `p256`).
    #[cfg(feature = "p256")]
    pub const P256: &str = crate::group::p256::P256::NAME;
    /// P-256, abscissae of 32 bytes.
    #[cfg(feature = "p256")]
    pub const P256_COMPRESSED: &str = crate::group::p256::P256Compressed::NAME;
    /// ristretto255 ([`crate::group::ristretto255`]).
    pub const RISTRETTO255: &str = Ristretto255::NAME;

    /// Paillier's encryption with moduli of 1024 bits. For benchmarks only ([`super::allow_short_moduli`]).
    pub const PAILLIER_1024: &str = "paillier1024";
    /// Paillier's encryption with moduli of 2048 bits, in place of a group (`ahe/paillier.rs`, with the feature `paillier`).
    pub const PAILLIER_2048: &str = "paillier2048";
    /// Paillier's encryption with moduli of 3072 bits, in place of a group (with the feature `paillier`).
    pub const PAILLIER_3072: &str = "paillier3072";

    /// All groups, in the order shown to users.
    pub const ALL: &[&str] = &[
        CURVE25519,
        #[cfg(feature = "p256")]
        P256,
        #[cfg(feature = "p256")]
        P256_COMPRESSED,
        RISTRETTO255,
    ];

    /// Returns the constant of the group with this name.
    ///
    /// # Errors
    /// A sentence that lists the known names, if this one is unknown.
    pub fn named(name: &str) -> Result<&'static str, String> {
        let none = || format!("\"{name}\" is not a group: {}", ALL.join(", "));
        ALL.iter().copied().find(|group| *group == name).ok_or_else(none)
    }

    /// The encryptions of `dc17`, in the order shown to users: the name as typed, and the corresponding entry of
    /// [`super::Protocol::works_in`].
    pub const CIPHERS: &[(&str, &str)] = &[
        ("elgamal", RISTRETTO255),
        #[cfg(feature = "paillier")]
        (PAILLIER_2048, PAILLIER_2048),
        #[cfg(feature = "paillier")]
        (PAILLIER_3072, PAILLIER_3072),
    ];

    /// Returns the encryption with this name.
    ///
    /// # Errors
    /// A sentence that lists the known names, if this one is unknown.
    pub fn cipher(name: &str) -> Result<&'static str, String> {
        let none = || {
            format!(
                "\"{name}\" is not an encryption: {}",
                CIPHERS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
            )
        };
        CIPHERS.iter().find(|(typed, _)| *typed == name).map(|(_, group)| *group).ok_or_else(none)
    }

    /// Returns the groups in which halves of runs can be prepared.
    pub fn prepared() -> Vec<&'static str> {
        let prepares = |group: &str| {
            super::ALL.iter().any(|p| {
                p.groups.contains(&group)
                    && p.offers.iter().any(|offer| offer.takes_with(super::Attachment::Half))
            })
        };
        ALL.iter().copied().filter(|group| prepares(group)).collect()
    }
}

/// A way to compute operations. Two protocols are equal if their names are equal.
pub struct Protocol {
    /// The name as typed.
    pub name: &'static str,
    /// Its construction, in one line.
    pub summary: &'static str,
    /// When to use it, in a few words.
    pub when: &'static str,
    /// The groups it can work in, the default first. Protocols from OT extension use the group for the base OTs only.
    pub groups: &'static [&'static str],
    /// Further choices in place of a group: encryptions that need none, but are slower.
    pub ciphers: &'static [&'static str],
    /// The operations it computes, each once.
    pub offers: &'static [Offer],
    /// The hard problems that it rests on in the named group.
    rests_on: fn(&str) -> &'static [Assumption],
    /// Runs that measure the speed of a machine (`veilset::speed`).
    pub probes: &'static [Probe],
    /// The assumptions behind the secrecy under these terms, in the named group, in sentences. [`Protocol::assumes`] adds the
    /// operation's own.
    assumptions: fn(&Terms, &str) -> Vec<&'static str>,
    /// Its implementation and cost.
    runs: Runs,
}

/// A run that times a primitive, given the times of all primitives before it in [`Primitive::ALL`].
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// The primitive that is timed.
    pub primitive: Primitive,
    /// The operation that is run.
    pub operation: &'static Operation,
    /// The name of the group that the run works in.
    pub group: &'static str,
    /// The number of items of each party.
    pub items: usize,
    /// The role of the party that is timed.
    pub role: Role,
}

/// How a protocol runs.
enum Runs {
    /// Between two parties.
    Two {
        /// [`Protocol::stages`], except for an operation over a union.
        stages: fn(&Operation, &Terms) -> usize,
        /// [`Protocol::cost`], except for an operation over a union.
        cost: fn(&Deal) -> Result<Cost>,
        /// Runs one party of an offered operation, except for one over a union. The last argument is the size of the
        /// peer's set in the protocol.
        run: Run,
    },
    /// Among several parties. The leader is the receiver, and all others are senders. The last argument of each function
    /// lists the bounds on all sets, in the order of the parties.
    Multiparty {
        /// [`Protocol::multiparty_cost`].
        cost: fn(&Terms, &[usize]) -> Result<MultipartyCost>,
        /// Runs one party.
        run: RunMultiparty,
    },
}

type Run = for<'a> fn(&Task<'a>, &mut Context, usize) -> Result<Sealed<'a, Learned>>;
type RunMultiparty = for<'a> fn(&Task<'a>, &mut Many, &[usize]) -> Result<Sealed<'a, Learned>>;

/// Returns the protocol with this name.
///
/// # Errors
/// A sentence that lists the known names, if this one is unknown.
pub fn named(name: &str) -> Result<&'static Protocol, String> {
    let found = ALL.into_iter().chain(MULTIPARTY).find(|p| p.name == name);
    found.ok_or_else(|| match NOT_BUILT.iter().find(|(other, _)| *other == name) {
        Some((_, feature)) => {
            format!("this program is built without {name}: build it with the feature {feature}, or use another protocol")
        }
        None => {
            let several = MULTIPARTY.map(|p| p.name).join(", ");
            format!("\"{name}\" is not a protocol: {}; of several parties: {several}", names(|_| true))
        }
    })
}

/// The names of the protocols that this program is not built with. The error of [`named`] states the feature that each needs.
pub fn not_built() -> impl Iterator<Item = &'static str> {
    NOT_BUILT.iter().map(|(name, _)| *name)
}

/// Returns the default protocol if the user named none; a planner may pick another. If the terms ask for it, it withstands a
/// malicious sender, or reveals the count to the sender; otherwise it is the first in order. For intersect that is dh-psi: it
/// computes as much as dh, but sends less, and a receiver that deviates can test fewer guesses.
pub fn default_for(operation: &Operation, terms: &Terms) -> &'static Protocol {
    let first = |wanted: fn(&Offer) -> bool| ALL.into_iter().find(|p| p.offer(operation).is_some_and(wanted));
    let withstands = if terms.malicious_sender { first(|offer| offer.malicious_sender) } else { None };
    let reveals = if terms.reveal_count { first(|offer| offer.reveals_count) } else { None };
    // A test checks that each operation has one.
    withstands.or(reveals).or_else(|| first(|offer| offer.order == 0)).unwrap_or(&CWPRF)
}

/// Returns the protocol that computes the operation from a filter made in advance, if there is one.
pub fn filtering(operation: &Operation) -> Option<&'static Protocol> {
    ALL.into_iter().find(|p| p.attaches(operation, Attachment::Filter))
}

/// Returns the protocol of several parties that computes the operation, if there is one.
pub fn multiparty_for(operation: &Operation) -> Option<&'static Protocol> {
    MULTIPARTY.into_iter().find(|p| p.computes(operation))
}

/// The names of the protocols of two parties for which `wanted` holds.
pub fn names(wanted: impl Fn(&Protocol) -> bool) -> String {
    let names: Vec<&str> = ALL.into_iter().filter(|p| wanted(p)).map(|p| p.name).collect();
    names.join(", ")
}

impl Protocol {
    /// Returns its offer for the operation, if there is one.
    pub fn offer(&self, operation: &Operation) -> Option<&'static Offer> {
        self.offers.iter().find(|offer| offer.operation == operation)
    }

    /// The assumptions behind the secrecy of an operation under these terms, in the named group, in sentences.
    pub fn assumes(&self, operation: &Operation, terms: &Terms, group: &str) -> Vec<&'static str> {
        let mut all = (self.assumptions)(terms, group);
        all.extend(operation.over_union.iter().flat_map(|over| over.assumptions));
        all
    }

    /// Whether it is for several parties, as opposed to two.
    pub const fn is_multiparty(&self) -> bool {
        matches!(self.runs, Runs::Multiparty { .. })
    }

    /// The number of stages that either party of a run of two announces to a [`crate::channel::Observer`].
    pub fn stages(&self, operation: &Operation, terms: &Terms) -> usize {
        match (&self.runs, &operation.over_union) {
            (Runs::Two { stages, .. }, Some(over)) => over.stages + stages(&UNION, terms),
            (Runs::Two { stages, .. }, None) => stages(operation, terms),
            (Runs::Multiparty { .. }, _) => 0,
        }
    }

    /// The cost of a run of two parties.
    ///
    /// # Errors
    /// [`Error::Usage`] for sets that are too large for the protocol, and for a group that it does not work in. [`Error::Bug`]
    /// for a protocol of several parties.
    pub fn cost(&self, deal: &Deal) -> Result<Cost> {
        let Runs::Two { cost, .. } = self.runs else { return Err(self.not_of(2)) };
        let (receiver, sender) = self.sizes(deal);
        self.check_sizes(deal.operation, [receiver, sender]).map_err(Error::usage)?;
        let mut cost = match &deal.operation.over_union {
            Some(over) => (over.cost)(deal, cost(&(over.union)(deal))?),
            None => cost(deal)?,
        };
        // Both parties hash their items first.
        if let Some(first) = cost.steps.first_mut() {
            let own = [deal.receiver, deal.sender].map(|all| Work::of(Primitive::Item, all.size));
            first.work = [0, 1].map(|i| first.work[i] + own[i]);
        }
        Ok(cost)
    }

    /// The cost for the party with this number, given the announcements of all parties, in their order.
    ///
    /// # Errors
    /// The errors of [`Protocol::cost`]; [`Error::Bug`] for other parties than the protocol is for.
    pub fn party_cost(&self, me: usize, deal: &Among) -> Result<PartyCost> {
        let Among { operation, terms, group, sizes } = *deal;
        let of = match (&self.runs, sizes) {
            (Runs::Two { .. }, &[receiver, sender]) => {
                let cost = self.cost(&Deal { operation, terms, group, receiver, sender })?;
                Role::ALL.get(me).map(|role| cost.of(*role))
            }
            (Runs::Two { .. }, _) => None,
            (Runs::Multiparty { .. }, _) => {
                let bounds: Vec<_> = sizes.iter().map(|set| set.size).collect();
                self.multiparty_cost(&terms, &bounds)?.parties.get(me).copied()
            }
        };
        of.ok_or_else(|| self.not_of(sizes.len()))
    }

    /// The cost of a run of several parties, given the bounds on their sets.
    ///
    /// # Errors
    /// [`Error::Usage`] for sets that are too large for the protocol. [`Error::Bug`] for fewer than two parties, and for a
    /// protocol of two.
    pub fn multiparty_cost(&self, terms: &Terms, bounds: &[usize]) -> Result<MultipartyCost> {
        match self.runs {
            Runs::Multiparty { cost, .. } => cost(terms, bounds),
            Runs::Two { .. } => Err(self.not_of(bounds.len())),
        }
    }

    fn not_of(&self, parties: usize) -> Error {
        Error::bug(format!("{self} in a run of {parties} parties"))
    }

    /// Whether it computes the operation, and a run of it can use such an attachment.
    pub fn attaches(&self, operation: &Operation, attachment: Attachment) -> bool {
        self.offer(operation).is_some_and(|offer| offer.takes_with(attachment))
    }

    /// Whether it computes the operation.
    pub fn computes(&self, operation: &Operation) -> bool {
        self.offer(operation).is_some()
    }

    /// The group it works in by default.
    pub const fn group(&self) -> &'static str {
        self.groups[0]
    }

    /// The groups and then the ciphers it can work in, the default first.
    pub fn works_in(&self) -> impl Iterator<Item = &'static str> {
        let for_benchmarks = !self.ciphers.is_empty() && on_request::short_moduli();
        let short = for_benchmarks.then_some(groups::PAILLIER_1024);
        self.groups.iter().chain(self.ciphers).copied().chain(short)
    }

    /// Its choices of a group, the default first.
    pub fn choices(&'static self) -> impl Iterator<Item = Choice> {
        self.groups.iter().map(move |group| Choice { protocol: self, group })
    }

    /// The public facts about one of its groups.
    ///
    /// # Errors
    /// [`Error::Usage`] for a group that it does not work in.
    fn facts(&self, group: &str) -> Result<group::Facts> {
        let found = self.groups.iter().find(|name| **name == group).and_then(|name| group::facts(name));
        found.ok_or_else(|| self.refuse_group(group))
    }

    /// Does `work` in one of its groups.
    ///
    /// # Errors
    /// The errors of the work, and [`Error::Usage`] for a group that it does not work in.
    fn within<T, W: InGroup<Output = Result<T>>>(&self, group: &str, work: W) -> Result<T> {
        self.facts(group)?;
        group::with(group, work).unwrap_or_else(|| Err(self.refuse_group(group)))
    }

    /// The error for a group that it does not work in.
    pub fn refuse_group(&self, group: &str) -> Error {
        Error::usage(format!(
            "{self} does not work in {group}. Omit {GROUP}, or use one of its own: {}",
            self.works_in().collect::<Vec<_>>().join(", ")
        ))
    }

    /// Checks that the receiver's and the sender's set are no larger than its offer for the operation allows.
    ///
    /// # Errors
    /// A sentence that states the limits, and the protocols that take these sizes.
    pub fn check_sizes(&self, operation: &Operation, sizes: [usize; 2]) -> Result<(), String> {
        let Some(offer) = self.offer(operation) else { return Ok(()) };
        // Sets that are too large for every protocol are refused elsewhere.
        if offer.takes(sizes) || offer.largest == [MAX_SET; 2] {
            return Ok(());
        }
        let instead = names(|protocol| {
            let other = protocol.offer(operation);
            other.is_some_and(|other| other.reveals_count == offer.reveals_count && other.takes(sizes))
        });
        let [of_receiver, of_sender] = offer.largest;
        let all = ["receiver", "sender"].into_iter().zip(sizes).zip(offer.largest);
        let over = all
            .filter(|((_, size), most)| size > most)
            .map(|((who, size), _)| format!("the {who} has {size}"));
        Err(format!(
            "{operation} by {self} is for at most {of_receiver} items of the receiver and {of_sender} of the sender, and \
             {}; dummies count, and those that the receiver inserts. Use another {PROTOCOL} ({instead}) or smaller values \
             for {PAD_TO}",
            over.collect::<Vec<_>>().join(" and ")
        ))
    }

    /// The sizes of the receiver's and the sender's set in the protocol: the announced sizes, plus the dummies that the
    /// receiver inserts.
    pub fn sizes(&self, deal: &Deal) -> (usize, usize) {
        (deal.receiver.size + self.inserted(deal.operation, deal.sender), deal.sender.size)
    }

    /// The number of listed dummies that the receiver inserts into its set: as many as the sender's set can have, if
    /// that set is padded and this protocol requires them; otherwise none.
    pub fn inserted(&self, operation: &Operation, sender: Announced) -> usize {
        let inserts = self.offer(operation).is_some_and(|offer| offer.inserts_list);
        if inserts && sender.padded { sender.size } else { 0 }
    }
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Runs one party. `peer` is the peer's announcement about its set.
///
/// # Errors
/// In addition to the errors of all protocols, [`Error::Usage`] for sets larger than [`MAX_SET`] or than the protocol takes,
/// and for a group that is not one of the protocol's. [`Error::Bug`] for a set that is padded with dummies of the wrong kind,
/// or lacks the listed ones that the peer's set requires ([`Protocol::inserted`]).
pub fn run<'a>(
    protocol: &'static Protocol,
    task: &Task<'a>,
    cx: &mut Context,
    peer: Announced,
) -> Result<Sealed<'a, Learned>> {
    let Runs::Two { run, .. } = &protocol.runs else { return Err(protocol.not_of(2)) };
    let n = protocol.check(task, peer)?;
    match &task.operation.over_union {
        Some(over) => (over.run)(run, task, cx, n),
        None => run(task, cx, n),
    }
}

/// Runs one of two or several parties. `sizes` are the announcements of all, in their order. Among several, the set of the task
/// has at most as many items as its party announced, including dummies, which must be random.
///
/// # Errors
/// The errors of [`run`]. Among several, in addition to the errors of all protocols, [`Error::Usage`] for sizes larger than
/// [`MAX_SET`], and for a group that is not the protocol's; [`Error::Bug`] for a task whose parts do not belong together.
pub fn run_among<'a>(
    protocol: &'static Protocol,
    task: &Task<'a>,
    many: &mut Many,
    sizes: &[Announced],
) -> Result<Sealed<'a, Learned>> {
    let run = match (&protocol.runs, sizes) {
        (Runs::Multiparty { run, .. }, _) => run,
        (Runs::Two { .. }, [receiver, sender]) if many.parties() == 2 => {
            let peer = if task.role == Role::Receiver { *sender } else { *receiver };
            return many.with_peer(|cx| self::run(protocol, task, cx, peer));
        }
        (Runs::Two { .. }, _) => return Err(protocol.not_of(sizes.len())),
    };
    let bounds: &[usize] = &sizes.iter().map(|set| set.size).collect::<Vec<_>>();
    let Task { operation, role, group, set, terms, .. } = *task;
    if let Some(largest) = bounds.iter().find(|bound| **bound > MAX_SET) {
        return Err(Error::usage(format!("a set of {largest} items: {MAX_SET} is the most")));
    }
    if !protocol.groups.contains(&group) {
        return Err(protocol.refuse_group(group));
    }
    let fits = bounds.get(many.me).is_some_and(|bound| set.len() <= *bound)
        && bounds.len() == many.parties()
        && set.dummies().is_none_or(|dummies| dummies == Dummies::Random)
        && (role == Role::Receiver) == (many.me == 0)
        && terms.several
        && protocol.computes(operation);
    match fits {
        true => run(task, many, bounds),
        false => Err(Error::bug(format!("{operation} by {protocol} as the {role}, party {}", many.me + 1))),
    }
}

impl Protocol {
    /// Rejects a task whose parts do not belong together. Returns the size of the peer's set in the protocol.
    fn check(&self, task: &Task, peer: Announced) -> Result<usize> {
        let Some(offer) = self.offer(task.operation) else {
            return Err(Error::bug(format!("{} by {self}", task.operation)));
        };
        if !self.works_in().any(|name| name == task.group) {
            return Err(self.refuse_group(task.group));
        }
        self.check_dummies(task, peer)?;
        let ours = Announced { size: task.set.announced(), padded: task.set.dummies().is_some() };
        let inserted = if task.role == Role::Sender { self.inserted(task.operation, ours) } else { 0 };
        let n = peer.size + inserted;
        let largest = n.max(task.set.len());
        if largest > MAX_SET {
            return Err(Error::usage(format!("a set of {largest} items: {MAX_SET} is the most")));
        }
        let sizes = if task.role == Role::Receiver { [task.set.len(), n] } else { [n, task.set.len()] };
        self.check_sizes(task.operation, sizes).map_err(Error::usage)?;
        let payloads =
            if task.terms.payload && task.role == Role::Sender { task.set.items().len() } else { 0 };
        if task.terms.malicious_sender && !offer.malicious_sender {
            return Err(Error::bug(format!("{self} against a malicious sender")));
        }
        if task.terms.reveal_count != offer.reveals_count {
            return Err(Error::bug(format!(
                "{} by {self}, in which the sender {} how many items match",
                task.operation,
                if offer.reveals_count { "would learn unasked" } else { "cannot learn" }
            )));
        }
        match task.payloads.len() == payloads {
            true => Ok(n),
            false => Err(Error::Bug("payloads that do not belong to the items".into())),
        }
    }

    /// Rejects dummies that would give wrong results. The receiver of a union must have the sender's dummies if the protocol
    /// requires it, or they would be among the new items; in all other operations dummies must not match.
    fn check_dummies(&self, task: &Task, peer: Announced) -> Result<()> {
        let Task { operation, role, set, .. } = *task;
        let (kind, due) = (operation.dummies(role), self.inserted(operation, peer));
        let due = if role == Role::Receiver { due } else { 0 };
        if set.dummies().is_some_and(|dummies| dummies != kind) {
            return Err(Error::bug(format!(
                "the {role} of {operation} by {self} pads with dummies of another kind: {}",
                match kind {
                    Dummies::Random => "random ones (HashedSet::padded)",
                    Dummies::Listed => "those of the public list (HashedSet::padded_from_list)",
                }
            )));
        }
        match set.inserted() == due {
            true => Ok(()),
            false => Err(Error::bug(format!(
                "the {role} of {operation} by {self} inserts {due} listed dummies for a peer's set of {} \
                 (HashedSet::insert_listed, Protocol::inserted), not {}",
                peer.size,
                set.inserted()
            ))),
        }
    }
}

/// Runs one party of an intersection over an OPRF. The peer's set has `n` items in the protocol.
fn over_oprf<'a>(
    task: &Task<'a>,
    protocol: &impl Oprf,
    cx: &mut Context,
    n: usize,
) -> Result<Sealed<'a, Learned>> {
    let Task { set, payloads, ref terms, .. } = *task;
    Ok(match task.role {
        Role::Receiver => intersect::oprf::receiver(protocol, cx, set, n, terms)?.map(Learned::Matching),
        Role::Sender => {
            let found = intersect::oprf::sender(protocol, cx, set, payloads, n, terms)?;
            Sealed::sent_on(found.map(|sealed| sealed.map(Learned::Matching)))
        }
    })
}

/// The cost of an intersection over an OPRF of this cost. The tags follow the OPRF, and the bits if both get the result.
fn cost_over_oprf(deal: &Deal, (n_y, n_x): (usize, usize), oprf: crate::oprf::OprfCost) -> Result<Cost> {
    let coding = intersect::oprf::coding(&deal.terms, n_x, n_y)?;
    let tags = Step::both(Work::of(Primitive::Tag, n_x)).sends(0, tags_and_rows(deal, n_x, coding));
    let rounds = oprf.rounds + usize::from(n_x > 0) * (1 + usize::from(deal.terms.both));
    let for_tags = held_for_tags(deal, (n_y, n_x), coding);
    let values = [n_y, n_x].map(|n| 32 * n);
    let memory = [0, 1].map(|i| Memory {
        held: oprf.held[i].max(values[i] + for_tags[i]) as u64,
        each_thread: oprf.each_thread[i] as u64,
    });
    let steps = [oprf.steps, vec![tags, deal.sent_on()]].concat();
    Ok(Cost { steps, rounds, memory })
}

/// An assumption of all protocols of two parties, unless they are run against a malicious sender.
const SEMI_HONEST: &str =
    "both parties follow the protocol (semi-honest): nothing binds a party to its true set or choices";
/// An assumption of all protocols from OT.
const BASE_OTS: &str = "decisional Diffie-Hellman on ristretto255, for the base OTs";

/// The assumption behind a PRF in the named group.
fn in_group(group: &str) -> &'static str {
    group::facts(group).map_or("decisional Diffie-Hellman in the group", |facts| facts.assumption)
}

#[cfg(test)]
mod tests;
