//! One party's side of a run: agree, compute, confirm, open the result.

use super::agreement::{go, predict};
use super::{Approval, Connection, Hello, Proposal, agree, confirm};
use crate::error::{Error, Result};
use crate::item::ItemSet;
use crate::membership::cwprf::{CwPrf, GolombTags};
use crate::operations::sum::Terms;
use crate::operations::{self, Confirmed, Learned, Operation, Role, Sealed, Task};
use crate::rng::Prng;

/// The protocol by which all operations are done, as typed.
pub const PROTOCOL: &str = "dh";
/// The group it works in, as typed.
pub const GROUP: &str = "curve25519";

/// What we want to compute, with our data.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What is computed.
    pub operation: Operation,
    /// Our part in it.
    pub role: Role,
    /// Our set.
    pub set: &'a ItemSet,
    /// Number of key columns an item is made of.
    pub key_columns: usize,
    /// How the bytes of a key came to be, in words that both sides must share.
    pub normalisation: &'a str,
    /// The largest set of the peer that we take part with: its size decides about our time and memory.
    pub max_peer_items: usize,
    /// For union: the agreed width of a row in bytes.
    pub max_row: usize,
    /// For the sender of sum: a value for each item, in units of 10^-`value_scale`. Otherwise empty.
    pub values: &'a [i128],
    /// For sum: the decimal places of the values.
    pub value_scale: u32,
    /// For sum: modulus and least number of matches.
    pub terms: Terms,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What we learned.
    pub learned: Learned,
    /// The size of the peer's set.
    pub their_size: usize,
    /// Bytes on the wire, sent and received, everything included.
    pub bytes: (u64, u64),
}

impl Request<'_> {
    /// What the other side must have been asked for too. What does not matter to the operation is 0.
    pub(super) fn hello(&self, check: bool) -> Hello {
        let only = |operation, value: u64| if self.operation == operation { value } else { 0 };
        Hello {
            operation: self.operation,
            role: self.role,
            check,
            protocol: PROTOCOL.into(),
            group: GROUP.into(),
            output: "receiver".into(),
            key_columns: self.key_columns as u32,
            normalisation: self.normalisation.into(),
            max_row: only(Operation::Union, self.max_row as u64) as u32,
            payload_width: 0,
            min_count: only(Operation::Sum, self.terms.min_count),
            value_scale: only(Operation::Sum, u64::from(self.value_scale)) as u32,
            modulus_bits: only(Operation::Sum, u64::from(self.terms.modulus.bits())) as u32,
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
    let steps = steps(&mut connection, request, approval, rng);
    let wire = connection.wire.clone();
    let (sealed, confirmed, their_size) = finish(connection, steps)?;
    Ok(Outcome { learned: sealed.open(confirmed)?, their_size, bytes: (wire.sent(), wire.received()) })
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
    let hello = request.hello(check);
    let agreement = agree(connection, &hello, request.set.len(), rng)?;
    let proposal = Proposal {
        hello,
        session_id: agreement.session_id,
        peer: connection.peer,
        our_size: request.set.len(),
        their_size: agreement.their_size,
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

fn steps<'a>(
    connection: &mut Connection,
    request: &Request<'a>,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<(Sealed<'a, Learned>, Confirmed, usize)> {
    let proposal = approved(connection, request, false, approval, rng)?;
    approval.begins(&proposal)?;
    let Request { operation, role, set, values, max_row, terms, .. } = *request;
    let task = Task { operation, role, set, values, max_row, terms };
    let channel = &mut connection.channel;
    let protocol = CwPrf(GolombTags);
    let Proposal { session_id, their_size, .. } = proposal;
    let sealed = operations::run(&task, &protocol, channel, &session_id, their_size, rng)?;
    let confirmed = confirm(channel, &session_id)?;
    Ok((sealed, confirmed, their_size))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
