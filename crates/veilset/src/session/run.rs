//! One party's side of a run: agree, compute, confirm, open the result.

use super::{Connection, Hello, agree, confirm};
use crate::error::Result;
use crate::item::ItemSet;
use crate::membership::cwprf::{CwPrf, GolombTags};
use crate::operations::sum::Terms;
use crate::operations::{self, Learned, Operation, Role, Sealed, Task};
use crate::params;
use crate::rng::Prng;

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
    /// A wrong result has probability at most 2^-`failure_bits`.
    pub failure_bits: u32,
    /// Bytes on the wire, sent and received, everything included.
    pub bytes: (u64, u64),
}

impl Request<'_> {
    /// What the other side must have been asked for too. What does not matter to the operation is 0.
    fn hello(&self) -> Hello {
        let only = |operation, value: u64| if self.operation == operation { value } else { 0 };
        Hello {
            operation: self.operation,
            role: self.role,
            protocol: "dh".into(),
            group: "curve25519".into(),
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
pub fn run(mut connection: Connection, request: &Request, rng: &mut Prng) -> Result<Outcome> {
    match steps(&mut connection, request, rng) {
        Ok((sealed, their_size)) => {
            let wire = connection.wire.clone();
            connection.channel.close();
            let sizes = match request.role {
                Role::Receiver => (their_size, request.set.len()),
                Role::Sender => (request.set.len(), their_size),
            };
            Ok(Outcome {
                learned: sealed.open()?,
                their_size,
                failure_bits: failure_bits(sizes.0, sizes.1)?,
                bytes: (wire.sent(), wire.received()),
            })
        }
        Err(error) => {
            let error = connection.channel.explain(error);
            connection.channel.abort(&error);
            connection.channel.close();
            Err(error)
        }
    }
}

fn steps<'a>(
    connection: &mut Connection,
    request: &Request<'a>,
    rng: &mut Prng,
) -> Result<(Sealed<'a, Learned>, usize)> {
    let agreement = agree(connection, &request.hello(), request.set.len(), rng)?;
    let Request { operation, role, set, values, max_row, terms, .. } = *request;
    let task = Task { operation, role, set, values, max_row, terms };
    let channel = &mut connection.channel;
    let protocol = CwPrf(GolombTags);
    let sealed =
        operations::run(&task, &protocol, channel, &agreement.session_id, agreement.their_size, rng)?;
    confirm(channel, &agreement.session_id)?;
    Ok((sealed, agreement.their_size))
}

/// The exponent of the probability of a wrong result: of the one kind of event there is, equal tags of
/// different items.
fn failure_bits(queries: usize, elements: usize) -> Result<u32> {
    let bits = params::tag_bits(params::LAMBDA, queries, elements)?;
    Ok(bits - params::ceil_log2(queries) - params::ceil_log2(elements))
}
