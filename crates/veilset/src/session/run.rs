//! One party's side of a run: agree, compute, confirm, open the result.

use super::padding::{self, pad};
use super::{Agreement, Connection, Hello, agree, confirm};
use crate::error::{Error, Result};
use crate::item::{ItemSet, Items, is_dummy};
use crate::operations::sum::fits;
use crate::operations::{self, Learned, Operation, Protocol, Role, Task, Terms};
use crate::rng::Prng;

/// The group that all protocols work in, as typed.
pub const GROUP: &str = "curve25519";

/// What we want to compute, with our data.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What is computed.
    pub operation: Operation,
    /// Our part in it.
    pub role: Role,
    /// How it is computed.
    pub protocol: Protocol,
    /// Our set.
    pub set: &'a ItemSet,
    /// Number of key columns an item is made of.
    pub key_columns: usize,
    /// How the bytes of a key came to be, in words that both sides must share.
    pub normalisation: &'a str,
    /// The largest set of the peer that we take part with: its size decides about our time and memory.
    pub max_peer_items: usize,
    /// The size that our set is filled up to with dummies, so that the peer learns this instead of ours.
    pub pad_to: Option<usize>,
    /// For intersect and union: the columns that travel with the sender's items, as the sender calls them.
    pub sent_columns: &'a [String],
    /// For the sender of such columns: those of each item, encoded like a key. Otherwise empty.
    pub payloads: &'a Items,
    /// For the sender of sum: a value for each item, in units of 10^-`value_scale`. Otherwise empty.
    pub values: &'a [i128],
    /// For sum: the decimal places of the values.
    pub value_scale: u32,
    /// What else must be the same on both sides. `payload` follows from `sent_columns`.
    pub terms: Terms,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What we learned.
    pub learned: Learned,
    /// The size of the peer's set, or the bound it is padded to.
    pub their_size: usize,
    /// Whether the peer's set is padded.
    pub they_pad: bool,
    /// Bytes on the wire, sent and received, everything included.
    pub bytes: (u64, u64),
}

impl<'a> Request<'a> {
    /// A plain request: keys of one column, compared as they are, no payload, values or padding, rows of 64
    /// bytes, the protocol of choice, and any size of the peer's set.
    pub fn new(operation: Operation, role: Role, set: &'a ItemSet) -> Self {
        Request {
            operation,
            role,
            protocol: Protocol::of(operation),
            set,
            key_columns: 1,
            normalisation: "none",
            max_peer_items: crate::params::MAX_SET,
            pad_to: None,
            sent_columns: &[],
            payloads: const { &Items::new() },
            values: &[],
            value_scale: 0,
            terms: Terms { max_row: 64, ..Terms::default() },
        }
    }

    /// The size that the peer is told.
    pub fn announced(&self) -> usize {
        self.pad_to.unwrap_or(self.set.len())
    }

    /// What can be refused before the peer hears of us.
    ///
    /// # Errors
    /// [`Error::Usage`] for terms that do not go together, or that the data does not fit.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Usage(what));
        let Request { operation, protocol, ref terms, .. } = *self;
        let payload = !self.sent_columns.is_empty();
        if !protocol.computes(operation) {
            return wrong(format!("--protocol {protocol} is not for {operation}. Leave it away, or use dh"));
        }
        if terms.both && operation == Operation::Sum {
            return wrong("in sum each side has its own result: --both is not for it. Leave it away".into());
        }
        if payload && !matches!(operation, Operation::Intersect | Operation::Union) {
            return wrong(format!("columns travel in intersect and union only, not in {operation}"));
        }
        padding::check(self)?;
        match fits(terms.modulus, self.announced(), self.values) {
            true => Ok(()),
            false => wrong(format!(
                "with {} values, the dummies of --pad-to among them, the sum could overflow. Use --modulus 128 on \
                 both sides, or a smaller --scale",
                self.announced()
            )),
        }
    }

    /// What was agreed, without what does not matter to the operation.
    pub(super) fn terms(&self) -> Terms {
        let Terms { max_row, both, modulus, min_count, .. } = self.terms;
        let payload = !self.sent_columns.is_empty();
        let sum = self.operation == Operation::Sum;
        let rows = self.operation == Operation::Union || payload;
        Terms {
            payload,
            max_row: if rows { max_row } else { 0 },
            both,
            modulus: if sum { modulus } else { Default::default() },
            min_count: if sum { min_count } else { 0 },
        }
    }

    /// What the other side must have been asked for too. What does not matter to the operation is 0.
    fn hello(&self) -> Hello {
        let (terms, sum) = (self.terms(), self.operation == Operation::Sum);
        Hello {
            operation: self.operation,
            role: self.role,
            protocol: self.protocol.name().into(),
            group: GROUP.into(),
            output: if terms.both { "both" } else { "receiver" }.into(),
            key_columns: self.key_columns as u32,
            normalisation: self.normalisation.into(),
            max_row: terms.max_row as u32,
            sent_columns: self.sent_columns.to_vec(),
            min_count: terms.min_count,
            value_scale: if sum { self.value_scale } else { 0 },
            modulus_bits: if sum { terms.modulus.bits() } else { 0 },
            padded: self.pad_to.is_some(),
        }
    }
}

/// Runs our side. The result is looked at after the connection is closed, so neither an error in it nor the
/// time it takes shows to the peer.
///
/// # Errors
/// Whatever goes wrong before both sides have confirmed the end, the peer is told, except for details of
/// ours.
pub fn run(mut connection: Connection, request: &Request, rng: &mut Prng) -> Result<Outcome> {
    request.check()?;
    let mut work = || {
        let agreement = agree(&mut connection, &request.hello(), request.announced(), rng)?;
        let (theirs, they_pad) = (agreement.their_size, agreement.they_pad);
        if theirs > request.max_peer_items {
            return Err(Error::Usage(format!(
                "the peer's set has {theirs} items, and --max-peer-items is {}. Give it a larger number if you want \
                 to spend the time and memory",
                request.max_peer_items
            )));
        }
        let ours = pad(request, theirs, they_pad, rng)?;
        Ok((agreement, ours))
    };
    let (agreement, ours) = match work() {
        Ok(agreed) => agreed,
        Err(error) => return Err(give_up(connection, error)),
    };
    let task = Task {
        operation: request.operation,
        role: request.role,
        protocol: request.protocol,
        set: &ours.set,
        values: &ours.values,
        payloads: &ours.payloads,
        terms: request.terms(),
    };
    let channel = &mut connection.channel;
    let session = &agreement.session_id;
    let work = operations::run(&task, channel, session, ours.theirs, rng);
    match work.and_then(|sealed| Ok((sealed, confirm(channel, session)?))) {
        Ok((sealed, confirmed)) => {
            let wire = connection.wire.clone();
            connection.channel.close();
            let learned = sealed.open(confirmed)?;
            let padded = request.pad_to.is_some() || agreement.they_pad;
            if padded && shows_dummies(&learned, request.set.len()) {
                return Err(Error::misbehaves_unseen("a dummy is in the result"));
            }
            let Agreement { their_size, they_pad, .. } = agreement;
            Ok(Outcome { learned, their_size, they_pad, bytes: (wire.sent(), wire.received()) })
        }
        Err(error) => Err(give_up(connection, error)),
    }
}

/// Tells the peer that we give up.
fn give_up(mut connection: Connection, error: Error) -> Error {
    let error = connection.channel.explain(error);
    connection.channel.abort(&error);
    connection.channel.close();
    error
}

/// Whether a dummy, ours or the peer's, is part of a result; our set has `n` items besides.
fn shows_dummies(learned: &Learned, n: usize) -> bool {
    match learned {
        Learned::Matching(matching) => matching.positions.last().is_some_and(|&last| last as usize >= n),
        Learned::New(new) => new.items.iter().any(is_dummy),
        Learned::Union(items) => items.iter().any(is_dummy),
        Learned::Nothing | Learned::Matches(_) | Learned::Sum(_) => false,
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
