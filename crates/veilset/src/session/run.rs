//! One party's side of a run: agree, compute, confirm, open the result.

use super::agreement::{go, predict};
use super::padding::{self, pad};
use super::{Approval, Connection, Hello, Proposal, agree, confirm};
use crate::error::{Error, Result};
use crate::item::{ItemSet, Items, is_dummy};
use crate::operations::sum::fits;
use crate::operations::{self, Confirmed, Learned, Operation, Protocol, Role, Sealed, Task, Terms};
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
    pub(super) fn hello(&self, check: bool) -> Hello {
        let (terms, sum) = (self.terms(), self.operation == Operation::Sum);
        Hello {
            operation: self.operation,
            role: self.role,
            check,
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
pub fn run(connection: Connection, request: &Request, rng: &mut Prng) -> Result<Outcome> {
    run_if(connection, request, &mut (), rng)
}

/// The same, if `approval` allows it once the sizes are known.
///
/// # Errors
/// Those of [`run`] and those of `approval`, of which the peer is told the kind only.
pub fn run_if(
    mut connection: Connection,
    request: &Request,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<Outcome> {
    let wire = connection.wire.clone();
    let proposed = approved(&mut connection, request, false, approval, rng).and_then(|proposal| {
        approval.begins(&proposal)?;
        let ours = pad(request, proposal.their_size, proposal.they_pad, rng)?;
        Ok((proposal, ours))
    });
    let (proposal, ours) = match proposed {
        Ok(proposed) => proposed,
        Err(error) => return finish(connection, Err(error)),
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
    let computed = compute(&task, &mut connection, &proposal, ours.theirs, rng);
    let (sealed, confirmed) = finish(connection, computed)?;
    let learned = sealed.open(confirmed)?;
    let Proposal { their_size, they_pad, .. } = proposal;
    if (they_pad || request.pad_to.is_some()) && shows_dummies(&learned, request.set.len()) {
        return Err(Error::misbehaves_unseen("a dummy is in the result"));
    }
    Ok(Outcome { learned, their_size, they_pad, bytes: (wire.sent(), wire.received()) })
}

fn compute<'a>(
    task: &Task<'a>,
    connection: &mut Connection,
    proposal: &Proposal,
    theirs: usize,
    rng: &mut Prng,
) -> Result<(Sealed<'a, Learned>, Confirmed)> {
    let (channel, session) = (&mut connection.channel, &proposal.session_id);
    let sealed = operations::run(task, channel, session, theirs, rng)?;
    Ok((sealed, confirm(channel, session)?))
}

/// What came of a check.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What both sides agreed on and allow.
    pub proposal: Proposal,
    /// How long the peer expects to be at work, in milliseconds, by its own speed.
    pub their_milliseconds: u64,
}

/// Agrees with a peer that checks too, asks for `approval`, and ends. `milliseconds` is asked how long our side
/// expects to be at work.
///
/// # Errors
/// As those of [`run_if`]; nothing about the data but the sizes was sent.
pub fn check(
    mut connection: Connection,
    request: &Request,
    approval: &mut dyn Approval,
    milliseconds: &dyn Fn(&Proposal) -> u64,
    rng: &mut Prng,
) -> Result<Checked> {
    let checked = approved(&mut connection, request, true, approval, rng).and_then(|proposal| {
        let their_milliseconds = predict(&mut connection.channel, milliseconds(&proposal))?;
        Ok(Checked { proposal, their_milliseconds })
    });
    finish(connection, checked)
}

/// Closes the connection; if something went wrong, the peer is told first.
fn finish<T>(mut connection: Connection, result: Result<T>) -> Result<T> {
    let result = result.map_err(|error| {
        let error = connection.channel.explain(error);
        connection.channel.abort(&error);
        error
    });
    connection.channel.close();
    result
}

/// Agrees on the run, and returns when both sides allow it.
fn approved(
    connection: &mut Connection,
    request: &Request,
    check: bool,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<Proposal> {
    request.check()?;
    let hello = request.hello(check);
    let agreement = agree(connection, &hello, request.announced(), rng)?;
    let proposal = Proposal {
        hello,
        session_id: agreement.session_id,
        peer: connection.peer,
        our_size: request.announced(),
        their_size: agreement.their_size,
        they_pad: agreement.they_pad,
    };
    if proposal.their_size > request.max_peer_items {
        return Err(Error::Refused(format!(
            "the peer's set has {} items, and --max-peer-items is {}. Give it a larger number if you want to spend \
             the time and memory",
            proposal.their_size, request.max_peer_items
        )));
    }
    approval.approve(&proposal)?;
    go(&mut connection.channel)?;
    Ok(proposal)
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
