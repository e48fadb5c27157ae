//! One party's side of a run: agree, compute, confirm, open the result.

use super::agreement::{choose, go, meet, predict, tell_size};
use super::{Approval, Hello, Parties, Party, Proposal, confirm};
use crate::artefact::{self, Basis, Half, Ledger};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::hash::SessionId;
use crate::hashed::Hashed;
use crate::item::{ItemSet, Items};
use crate::net::{Connection, Identity};
use crate::operations::sum::fits;
use crate::operations::{
    self, Announced, Confirmed, Learned, Operation, Role, Rows, Sealed, Task, Terms, Uses,
};
use crate::params::MAX_SET;
use crate::protocols::{self, Choice, Protocol};
use crate::rng::Prng;
use crate::threads::Threads;
use std::path::Path;
use std::time::SystemTime;

/// What we want to compute, with our data.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What is computed.
    pub operation: &'static Operation,
    /// Our part in it.
    pub role: Role,
    /// How it is computed, as we prefer.
    pub protocol: &'static Protocol,
    /// The group that it works in; without one, the protocol's first.
    pub group: Option<&'static str>,
    /// What we allow in addition, in the order of preference. The receiver's order counts.
    pub alternatives: &'a [Choice],
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
    /// What our side computes on, before and during the run. The peer does not hear of it.
    pub threads: &'a Threads,
}

/// What came of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// What we learned.
    pub learned: Learned,
    /// Names the session.
    pub session_id: SessionId,
    /// How it was computed.
    pub choice: Choice,
    /// When the run began, by this machine's clock.
    pub began: SystemTime,
    /// The other parties, and what they announced.
    pub parties: Parties,
    /// Whether our offline half was prepared before.
    pub prepared: bool,
    /// Bytes on the wire, sent and received, everything included.
    pub bytes: (u64, u64),
}

impl<'a> Request<'a> {
    /// A plain request: keys of one column, compared as they are, no payload, values or padding, rows of 64
    /// bytes, the protocol of choice, any size of the peer's set, and all threads of the program.
    pub fn new(operation: &'static Operation, role: Role, set: &'a ItemSet) -> Self {
        Request {
            operation,
            role,
            protocol: protocols::default_for(operation, false),
            group: None,
            alternatives: &[],
            set,
            key_columns: 1,
            normalisation: "none",
            max_peer_items: MAX_SET,
            pad_to: None,
            sent_columns: &[],
            payloads: const { &Items::new() },
            values: &[],
            value_scale: 0,
            terms: Terms { max_row: 64, ..Terms::default() },
            threads: Threads::global(),
        }
    }

    /// The group that the protocol works in.
    pub fn group(&self) -> &'static str {
        self.group.unwrap_or(self.protocol.group())
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
        let Request { operation, ref terms, .. } = *self;
        let payload = !self.sent_columns.is_empty();
        for Choice { protocol, group } in self.candidates() {
            if !protocol.groups.contains(&group) {
                return Err(protocol.refuse_group(group));
            }
            let Some(offer) = protocol.offer(operation) else {
                let those = protocols::names(|p| p.computes(operation));
                return wrong(format!(
                    "`protocol={protocol}` is not for {operation}. Omit it, or use one of {those}"
                ));
            };
            if terms.malicious_sender && !offer.malicious_sender {
                let those = protocols::names(|p| p.offers.iter().any(|offer| offer.malicious_sender));
                return wrong(format!(
                    "`malicious_sender` is for `protocol={those}`, and not for {protocol}. Omit `protocol`"
                ));
            }
        }
        if terms.both && !operation.uses.both {
            return wrong(format!(
                "`both` is not for {operation}, in which each side has its own result. Omit it"
            ));
        }
        if payload && operation.uses.rows == Rows::None {
            let those = operations::ALL.into_iter().filter(|o| o.uses.rows != Rows::None).map(|o| o.name);
            return wrong(format!(
                "columns travel in {} only, not in {operation}",
                those.collect::<Vec<_>>().join(" and ")
            ));
        }
        self.basis().check()?;
        self.check_rows()?;
        match fits(terms.modulus, self.announced(), self.values) {
            true => Ok(()),
            false => wrong(format!(
                "with {} values, the dummies of `pad_to` among them, the sum could overflow. Use `modulus=128` on \
                 both sides, or a smaller `scale`",
                self.announced()
            )),
        }
    }

    /// Refuses rows that are longer than the agreed width.
    fn check_rows(&self) -> Result<()> {
        let Terms { payload, max_row, both, .. } = self.terms();
        let keys_travel = self.operation.uses.items_travel(self.role, both);
        if payload && self.role == Role::Sender && self.payloads.len() != self.set.len() {
            return Err(Error::Bug("payloads that do not belong to the items".into()));
        }
        let key = |i| if keys_travel { self.set.get(i).len() } else { 0 };
        let sent = |i| if self.payloads.is_empty() { 0 } else { self.payloads.get(i).len() };
        match (0..self.set.len()).map(|i| key(i) + sent(i)).max() {
            Some(longest) if longest > max_row && (keys_travel || payload) => Err(Error::Usage(format!(
                "a row of ours takes {longest} bytes, and `max_row` is {max_row}. Use a larger one on both sides"
            ))),
            _ => Ok(()),
        }
    }

    /// Does what takes a time that depends on our data, or on how much of it is dummies: best before the peer is
    /// met. Takes 32 bytes for each item and dummy. By `vole`, solving for the key-value store is not among it: the
    /// receiver solves within the session, and the sender can time it ([`crate::oprf::vole`]).
    ///
    /// # Errors
    /// Those of [`Request::check`].
    pub fn prepare(&self, rng: &mut Prng) -> Result<Prepared<'a>> {
        self.check()?;
        Ok(Prepared { request: *self, set: self.basis().hashed(rng), half: None })
    }

    /// The same with a half that was prepared before ([`artefact::prepare`]). It is spent when both sides have allowed
    /// the run.
    ///
    /// # Errors
    /// Those of [`Request::check`] and [`artefact::open`].
    pub fn prepare_with(&self, half: &Path, ledger: &Ledger, identity: &Identity) -> Result<Prepared<'a>> {
        self.check()?;
        self.check_prepared()?;
        let (set, half) = artefact::open(half, ledger, identity, &self.basis())?;
        Ok(Prepared { request: *self, set, half: Some(half) })
    }

    /// Refuses a protocol that has no use for a half that was prepared.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check_prepared(&self) -> Result<()> {
        for Choice { protocol, group } in self.candidates() {
            if !protocol.offer(self.operation).is_some_and(|offer| offer.prepares) {
                return Err(Error::Usage(format!(
                    "`protocol={protocol}` has no use for a prepared half. Omit `prepared` or `protocol`"
                )));
            }
            // The half is points of one group.
            if group != self.group() {
                return Err(Error::Usage(format!(
                    "a half is prepared in one group, and the protocols allowed work in {} and {group}. Allow one",
                    self.group()
                )));
            }
        }
        Ok(())
    }

    /// What our set is made from.
    pub fn basis(&self) -> Basis<'a> {
        Basis {
            set: self.set,
            key_columns: self.key_columns,
            normalisation: self.normalisation,
            pad_to: self.pad_to,
            dummies: self.operation.dummies(self.role),
            group: self.group(),
            threads: self.threads,
        }
    }

    /// What was agreed, without what does not matter to the operation.
    pub(super) fn terms(&self) -> Terms {
        let Terms { max_row, both, modulus, min_count, malicious_sender, .. } = self.terms;
        let payload = !self.sent_columns.is_empty();
        let Uses { rows, values, .. } = self.operation.uses;
        let rows = rows == Rows::Items || payload;
        Terms {
            payload,
            max_row: if rows { max_row } else { 0 },
            both,
            modulus: if values { modulus } else { Default::default() },
            min_count: if values { min_count } else { 0 },
            malicious_sender,
        }
    }

    /// All that we allow, the one we prefer first, none twice.
    pub fn candidates(&self) -> Vec<Choice> {
        let mut all = vec![Choice { protocol: self.protocol, group: self.group() }];
        self.alternatives.iter().for_each(|choice| {
            if !all.contains(choice) {
                all.push(*choice);
            }
        });
        all
    }

    /// What the other side must have been asked for too; `check` if it is to see whether a run can be, and no more. What
    /// does not matter to the operation is 0.
    pub fn hello(&self, check: bool) -> Hello {
        Hello {
            operation: self.operation,
            role: self.role,
            check,
            candidates: self.candidates(),
            key_columns: self.key_columns as u32,
            normalisation: self.normalisation.into(),
            sent_columns: self.sent_columns.to_vec(),
            value_scale: if self.operation.uses.values { self.value_scale } else { 0 },
            terms: self.terms(),
            padded: self.pad_to.is_some(),
        }
    }
}

/// A request that was checked, with its set hashed and padded.
pub struct Prepared<'a> {
    request: Request<'a>,
    set: Hashed<'a>,
    half: Option<Half>,
}

impl<'a> Prepared<'a> {
    /// What it was made from.
    pub fn request(&self) -> &Request<'a> {
        &self.request
    }
}

/// Prepares and runs our side ([`run_if`]); everything is allowed. Where the time before the first message must
/// say nothing, prepare before the connection is made.
///
/// # Errors
/// Those of [`Request::prepare`] and [`run_if`].
pub fn run(connection: Connection, request: &Request, rng: &mut Prng) -> Result<Outcome> {
    let prepared = request.prepare(rng)?;
    run_if(connection, prepared, &mut (), rng)
}

/// Runs our side, if `approval` allows it once the sizes are known. The result is looked at after the connection is
/// closed, so neither an error in it nor the time it takes shows to the peer.
///
/// # Errors
/// Whatever goes wrong before both sides have confirmed the end, the peer is told, except for details of ours; of
/// an error of `approval` it is told the kind only.
pub fn run_if(
    mut connection: Connection,
    prepared: Prepared,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<Outcome> {
    let began = SystemTime::now();
    let wire = connection.wire.clone();
    let Prepared { request, mut set, half } = prepared;
    let prepared = half.is_some();
    let proposed = approved(&mut connection, &request, false, approval, rng).and_then(|proposal| {
        approval.begins(&proposal)?;
        // Nothing of the protocol was sent, and nothing is unless this succeeds.
        if let Some(half) = half {
            set.take_over(half.spend(&|| connection.channel.alive(), &mut |text| approval.warn(text))?);
        }
        Ok(proposal)
    });
    let proposal = match proposed {
        Ok(proposal) => proposal,
        Err(error) => return finish(connection, Err(error)),
    };
    let theirs = proposal.parties.peer().announced;
    if request.role == Role::Receiver {
        set.insert_listed(proposal.choice.protocol.inserted(request.operation, theirs));
    }
    let task = Task {
        operation: request.operation,
        role: request.role,
        group: proposal.choice.group,
        set: &set,
        values: request.values,
        payloads: request.payloads,
        terms: request.terms(),
    };
    let mut cx =
        Context { ch: &mut connection.channel, session: proposal.session_id, rng, threads: request.threads };
    let computed = compute(proposal.choice.protocol, &task, &mut cx, theirs);
    let (sealed, confirmed) = finish(connection, computed)?;
    let learned = sealed.open(confirmed).map_err(|e| e.by(proposal.parties.peer().seat))?;
    let Proposal { session_id, choice, parties, .. } = proposal;
    let bytes = (wire.sent(), wire.received());
    Ok(Outcome { learned, session_id, choice, began, parties, prepared, bytes })
}

fn compute<'a>(
    protocol: &'static Protocol,
    task: &Task<'a>,
    cx: &mut Context,
    theirs: Announced,
) -> Result<(Sealed<'a, Learned>, Confirmed)> {
    let sealed = protocols::run(protocol, task, cx, theirs)?;
    Ok((sealed, confirm(cx.ch, &cx.session)?))
}

/// What came of a check.
#[derive(Debug, Clone)]
#[non_exhaustive]
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
    milliseconds: &dyn Fn(&Proposal) -> Result<u64>,
    rng: &mut Prng,
) -> Result<Checked> {
    let checked = approved(&mut connection, request, true, approval, rng).and_then(|proposal| {
        let their_milliseconds = predict(&mut connection.channel, milliseconds(&proposal)?)?;
        Ok(Checked { proposal, their_milliseconds })
    });
    finish(connection, checked)
}

/// Closes the connection; if something went wrong, the peer is told first.
fn finish<T>(mut connection: Connection, result: Result<T>) -> Result<T> {
    let result = result.map_err(|error| {
        let error = connection.channel.explain(error).by(connection.seat);
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
    let ours = Announced { size: request.announced(), padded: hello.padded };
    let met = meet(connection, &hello, ours.size, rng)?;
    let peer = Party {
        seat: connection.seat,
        fingerprint: connection.peer,
        name: connection.peer_name.clone(),
        announced: Announced { size: 0, padded: met.they_pad },
    };
    // What it is before the receiver has chosen: there is at least one.
    let choice = met.common[0];
    let mut proposal =
        Proposal { session_id: met.session_id(choice), hello, choice, ours, parties: peer.into() };
    let channel = &mut connection.channel;
    let sized = tell_size(channel, ours.size).and_then(|their_size| {
        let peer = proposal.parties.peer_mut();
        peer.announced.size = their_size;
        if their_size > request.max_peer_items {
            return Err(too_large(peer, request));
        }
        proposal.choice = choose(channel, request.role, &met.common)?;
        proposal.session_id = met.session_id(proposal.choice);
        within_limits(&proposal)
    });
    // Whoever keeps a log hears of every peer that may know our size.
    if let Err(error) = sized {
        approval.refused(&proposal, &error);
        return Err(error);
    }
    approval.approve(&proposal)?;
    go(&mut connection.channel)?;
    Ok(proposal)
}

/// The set of this party is larger than we want.
fn too_large(party: &Party, request: &Request) -> Error {
    Error::Refused(format!(
        "{}'s set has {} items, and `max_peer_items` is {}. Give it a larger number if you want to spend \
         the time and memory",
        party.seat, party.announced.size, request.max_peer_items
    ))
}

/// Refuses sets that, with the dummies that are inserted, are larger than this version supports.
fn within_limits(proposal: &Proposal) -> Result<()> {
    let (protocol, deal) = proposal.deal();
    let (n_receiver, n_sender) = protocol.sizes(&deal);
    if n_receiver.max(n_sender) > MAX_SET {
        return Err(Error::Refused(format!(
            "with the dummies the sets have {n_receiver} and {n_sender} items, more than this version supports \
             ({MAX_SET}). Agree on smaller numbers for `pad_to`"
        )));
    }
    Ok(())
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
