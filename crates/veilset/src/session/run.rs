//! One party's side of a run: agree, compute, confirm, and open the result.

pub use super::request::{Prepared, Request};

use super::Term;
use super::agreement::{exchange_sizes, go, meet, predict};
use super::choosing::choose;
use super::request::Ours;
use super::stages::{AGREEING, CONFIRMING, OPENING, SETUP};
use super::{Approval, Hello, Parties, Party, Proposal, confirm, several};
use crate::artefact::filter::FilterFacts;
use crate::channel::{Account, MessageBytes, Network, StageTime};
use crate::context::Context;
use crate::course::Course;
use crate::error::{Error, Reason, Result};
use crate::hash::SessionId;
use crate::net::{Connected, Connection, Fingerprint};
use crate::operations::{Announced, Confirmed, Learned, Role, Sealed, Task};
use crate::params::{MAX_SET, SMALL_SET};
use crate::planner::{self, Prices, Setting};
use crate::protocols::{self, Choice, Protocol};
use crate::rng::Prng;
use crate::sharded::run::{self as shards, Begun, InMemory, Keep, ShardedRun};
use crate::sharded::workers;
use crate::speed::Speeds;
use crate::spelling::{ALLOW_SMALL, CAPACITY, FILTER, FOR, MAX_PEER_ITEMS, PAD_TO};
use std::sync::Mutex;
use std::time::SystemTime;

/// The outcome of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunOutcome {
    /// What we learned.
    pub learned: Learned,
    /// The session's id.
    pub session_id: SessionId,
    /// How it was computed.
    pub choice: Choice,
    /// Why by this choice, if a planner picked it of several.
    pub why: Option<String>,
    /// When the run began, by this machine's clock.
    pub began: SystemTime,
    /// Our fingerprint; `None` without TLS.
    pub our: Option<Fingerprint>,
    /// The terms that were agreed on.
    pub terms: Vec<Term>,
    /// The other parties, and what they announced.
    pub parties: Parties,
    /// Whether our offline half was prepared in advance.
    pub prepared: bool,
    /// Bytes sent and received on the wire, everything included. Those that workers exchange are not.
    pub bytes: (u64, u64),
    /// The bytes of each message, without TLS, heartbeats and words of parting.
    pub messages: Vec<MessageBytes>,
    /// The time of each stage, as our side saw it.
    pub stages: Vec<StageTime>,
}

/// Prepares and runs our side ([`run_if`]); everything is allowed. If the time before the first message must reveal
/// nothing, prepare before connecting instead.
///
/// # Errors
/// Those of [`Request::prepare`] and [`run_if`].
pub fn run(connected: impl Into<Connected>, request: &Request, rng: &mut Prng) -> Result<RunOutcome> {
    let prepared = request.prepare(rng)?;
    run_if(connected, prepared, &mut (), rng)
}

/// Runs our side, if `approval` allows it once the sizes are known. The result is opened after the connection is
/// closed, so the peer sees neither an error in it nor the time that takes.
///
/// # Errors
/// Any failure before both sides have confirmed the end is reported to the peer, without details of our side. Of an
/// error of `approval` the peer is told only the kind.
pub fn run_if(
    connected: impl Into<Connected>,
    prepared: Prepared,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<RunOutcome> {
    let few = prepared.request().announces_few();
    let ran = match connected.into() {
        Connected::Peer(connection) => run_of_two(*connection, prepared, approval, rng),
        Connected::Parties(connections) => several::run_if(connections, prepared, approval, rng),
    };
    ran.map_err(|error| explained(error, few))
}

/// The error, with what may be the cause on our side if another party refuses the run: that we have announced so `few`.
fn explained(error: Error, few: Option<Announced>) -> Error {
    match few {
        Some(few) if error.reason() == Some(Reason::Refused) => error.and(&format!(
            "We announced a set of {}, which may be the cause: sets of fewer than {SMALL_SET} are refused unless that party \
             gives {ALLOW_SMALL}, or has a lower \"min-peer-size\" in its policy",
            few.words()
        )),
        _ => error,
    }
}

fn run_of_two(
    mut connection: Connection,
    prepared: Prepared,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<RunOutcome> {
    let began = SystemTime::now();
    let (wire, account, our) =
        (connection.wire.clone(), connection.channel.account().clone(), connection.our);
    account.begin(AGREEING);
    let hello = prepared.hello(false);
    let Prepared { request, mut set, half, filter, keep } = prepared;
    let in_memory = InMemory::default();
    let keep = keep.unwrap_or(&in_memory);
    let prepared = half.is_some() || filter.is_some() && request.spec.role == Role::Receiver;
    let owner = filter.as_ref().map(|filter| filter.head.owner);
    let proposed = approved(&mut connection, (&request, hello), (owner, keep.begun()), approval, rng)
        .and_then(|proposal| {
            approval.begins(&proposal)?;
            // No message of the protocol has been sent yet, and none is sent unless this succeeds.
            if let (Some(half), Ours::Whole(set)) = (half, &mut set) {
                set.take_over(half.spend(&|| connection.channel.alive(), &mut |text| approval.warn(text))?);
            }
            Ok(proposal)
        });
    let proposal = match proposed {
        Ok(proposal) => proposal,
        Err(error) => return finish(connection, Err(error)),
    };
    let stages = proposal.choice.protocol.stages(proposal.hello.spec.operation, &proposal.hello.spec.terms);
    let runs = match proposal.hello.spec.terms.shards as usize {
        0 => 1,
        all => all
            .saturating_sub(keep.begun().map_or(0, |begun| begun.kept.iter().filter(|kept| **kept).count())),
    };
    // Workers have connections of their own.
    let course =
        if let Ours::Remote(_) = set { Course::default() } else { expected(&proposal, &request, runs) };
    connection.channel.begins(stages * runs, &course);
    account.begin(SETUP);
    let theirs = proposal.parties.peer().announced;
    if let (Role::Receiver, Ours::Whole(set)) = (request.spec.role, &mut set) {
        set.insert_listed(proposal.choice.protocol.inserted(request.spec.operation, theirs));
    }
    let seat = proposal.parties.peer().seat;
    let wrong = Mutex::default();
    let job = ShardedRun { request: &request, proposal: &proposal, keep, wrong: &wrong };
    let computed = match &set {
        Ours::Disk(set) => job.run(set, connection, rng),
        Ours::Remote(set) => workers::run(&job, set, connection, rng),
        Ours::Whole(set) => {
            let task = request.task(&proposal, set, filter.as_ref());
            let mut cx = Context {
                ch: &mut connection.channel,
                session: proposal.session_id,
                rng,
                exponent: task.terms.exponent(),
                threads: &request.local.threads,
            };
            let computed = compute(proposal.choice.protocol, &task, &mut cx, theirs);
            finish(connection, computed)
        }
    };
    // What is wrong with a result matters more than how the job broke off after that.
    let (sealed, confirmed) = computed.map_err(|error| shards::locked(&wrong).take().unwrap_or(error))?;
    account.begin(OPENING);
    let learned = sealed.open(confirmed).map_err(|e| e.by(seat))?;
    let (session_id, terms) = (proposal.name(), proposal.terms());
    let Proposal { choice, why, parties, .. } = proposal;
    let bytes = (wire.sent(), wire.received());
    let (messages, stages) = (Account::messages([&account]), account.stages());
    Ok(RunOutcome {
        learned,
        session_id,
        choice,
        why,
        began,
        our,
        terms,
        parties,
        prepared,
        bytes,
        messages,
        stages,
    })
}

/// The expected course of this many runs of the proposal, with our speeds on both sides and no link. [`crate::course::Left`] corrects
/// it while they go on.
fn expected(proposal: &Proposal, request: &Request, runs: usize) -> Course {
    let (protocol, deal) = proposal.deal();
    let local = &request.local;
    let speeds = local.planning.map_or_else(|| Speeds::built_in(local.threads.count()), |by| by.speeds);
    let setting =
        Setting { speeds: [speeds; 2], link: Network::NONE, prices: Prices::default(), shared: None };
    let one = protocol.cost(&deal).map(|cost| planner::course(&cost, &setting));
    one.map_or_else(|_| Course::default(), |one| one.repeated(runs))
}

fn compute<'a>(
    protocol: &'static Protocol,
    task: &Task<'a>,
    cx: &mut Context,
    theirs: Announced,
) -> Result<(Sealed<'a, Learned>, Confirmed)> {
    let sealed = protocols::run(protocol, task, cx, theirs)?;
    cx.ch.account().begin(CONFIRMING);
    Ok((sealed, confirm(cx.ch, &cx.session)?))
}

/// The outcome of a check.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// What all parties agreed on and allow.
    pub proposal: Proposal,
    /// How long each of the other parties expects to compute, in milliseconds, at its own speed, in their order.
    pub their_milliseconds: Vec<u64>,
}

/// Agrees with a peer that also runs a check, asks `approval`, and ends. `milliseconds` returns how long our side
/// expects to compute.
///
/// # Errors
/// Those of [`run_if`]. Nothing about the data but the sizes was sent.
pub fn check(
    connected: impl Into<Connected>,
    prepared: &Prepared,
    approval: &mut dyn Approval,
    milliseconds: &dyn Fn(&Proposal) -> Result<u64>,
    rng: &mut Prng,
) -> Result<Checked> {
    let request = prepared.request();
    let checked = match connected.into() {
        Connected::Peer(connection) => check_of_two(*connection, prepared, approval, milliseconds, rng),
        Connected::Parties(connections) => several::check(connections, request, approval, milliseconds, rng),
    };
    checked.map_err(|error| explained(error, request.announces_few()))
}

fn check_of_two(
    mut connection: Connection,
    prepared: &Prepared,
    approval: &mut dyn Approval,
    milliseconds: &dyn Fn(&Proposal) -> Result<u64>,
    rng: &mut Prng,
) -> Result<Checked> {
    let request = prepared.request();
    let hello = prepared.hello(true);
    let owner = prepared.filter.as_ref().map(|filter| filter.head.owner);
    let begun = prepared.keep.and_then(Keep::begun);
    let checked =
        approved(&mut connection, (request, hello), (owner, begun), approval, rng).and_then(|proposal| {
            let theirs = predict(&mut connection.channel, milliseconds(&proposal)?)?;
            Ok(Checked { proposal, their_milliseconds: vec![theirs] })
        });
    finish(connection, checked)
}

/// Closes the connection, after telling the peer if something went wrong.
pub(crate) fn finish<T>(mut connection: Connection, result: Result<T>) -> Result<T> {
    let result = result.map_err(|error| {
        let error = connection.channel.explain(error).by(connection.seat);
        connection.channel.abort(&error);
        error
    });
    connection.channel.close();
    result
}

/// Agrees on the run, and returns when both sides allow it. `owner` is that of the filter that we have, if we have one, and
/// `begun` the job that is resumed.
fn approved(
    connection: &mut Connection,
    (request, hello): (&Request, Hello),
    (owner, begun): (Option<Fingerprint>, Option<&Begun>),
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<Proposal> {
    request.check()?;
    if request.spec.parties.is_some() {
        return Err(Error::Bug("a run of several parties over one connection".into()));
    }
    let ours = request.input.announced();
    let met = meet(connection, &hello, ours.size, rng)?;
    let peer = Party {
        seat: connection.seat,
        fingerprint: connection.peer,
        name: connection.peer_name.clone(),
        announced: Announced { size: 0, padded: met.they_pad },
    };
    // A placeholder until the receiver has chosen; there is at least one.
    let choice = met.common.first;
    let (facts, agreed) = met.filter.clone().unzip();
    let mut hello = Hello { filter: facts, ..hello };
    hello.spec.terms.shared_values = met.shared_values;
    hello.spec.terms.filter = agreed.or(hello.spec.terms.filter);
    match (owner, request.spec.role) {
        (Some(owner), Role::Receiver) if connection.our != Some(owner) => {
            return Err(Error::usage(format!("{FILTER} was made under another identity than this run has")));
        }
        // It showed the digest of the filter that we have, which is of somebody else.
        (Some(owner), Role::Sender) if connection.peer != Some(owner) => {
            return Err(Error::misbehaves("its filter is of another identity than its own"));
        }
        _ => {}
    }
    let session_id = met.session_id(choice);
    let (why, parties) = (None, peer.into());
    let theirs = met.theirs.clone();
    let mut proposal = Proposal { session_id, hello, choice, theirs, why, ours, parties };
    let channel = &mut connection.channel;
    let sized = exchange_sizes(channel, ours.size).and_then(|their_size| {
        let peer = proposal.parties.peer_mut();
        peer.announced.size = their_size;
        // What comes to us, and what we look up, follows from the capacity.
        let capacity = met.filter.as_ref().filter(|(_, agreed)| !agreed.held).map(|(facts, _)| facts.capacity);
        if let Some(capacity) = capacity.filter(|n| request.spec.role == Role::Sender && *n > request.local.max_peer_items) {
            return Err(Error::refused(format!(
                "the peer's filter is for {capacity} items, but {MAX_PEER_ITEMS} is {}. Raise it if you want to spend the \
                 time",
                request.local.max_peer_items
            )));
        }
        if their_size > request.local.max_peer_items {
            return Err(too_large(peer, request));
        }
        begun.map_or(Ok(()), |begun| begun.check(peer))?;
        shards::check_peer(peer, request)?;
        let picked = choose(channel, &proposal, &met, request.local.planning.as_ref())?;
        (proposal.choice, proposal.why) = (picked.choice, picked.why);
        proposal.session_id = met.session_id(proposal.choice);
        within_limits(&proposal)
    });
    // A log must list every peer that may know our size.
    if let Err(error) = sized {
        approval.refused(&proposal, &error);
        return Err(error);
    }
    approval.approve(&proposal)?;
    go(&mut connection.channel)?;
    Ok(proposal)
}

/// This party's set is larger than we accept.
pub(super) fn too_large(party: &Party, request: &Request) -> Error {
    Error::refused(format!(
        "{}'s set has {} items, but {MAX_PEER_ITEMS} is {}. Raise it if you want to spend the time and \
         memory",
        party.seat, party.announced.size, request.local.max_peer_items
    ))
}

/// Refuses sets that are larger than this version or the protocol supports, counting the dummies that the protocol inserts.
fn within_limits(proposal: &Proposal) -> Result<()> {
    let (protocol, deal) = proposal.deal();
    let (n_receiver, n_sender) = protocol.sizes(&deal);
    if n_receiver.max(n_sender) > MAX_SET {
        return Err(Error::refused(format!(
            "with dummies the sets have {n_receiver} and {n_sender} items, more than this version supports \
             ({MAX_SET}). Agree on smaller values for {PAD_TO}"
        )));
    }
    protocol.check_sizes(deal.operation, [n_receiver, n_sender]).map_err(Error::refused)?;
    let Some(FilterFacts { capacity, queries, .. }) = proposal.hello.filter else { return Ok(()) };
    if n_receiver > capacity {
        return Err(Error::refused(format!(
            "the receiver has {n_receiver} items, and its filter is for {capacity}. Use a filter that was made with a \
             larger {CAPACITY}"
        )));
    }
    if n_sender > queries {
        return Err(Error::refused(format!(
            "the sender has {n_sender} items, and the receiver's filter is for {queries}. Use a filter that was made with \
             a larger {FOR}"
        )));
    }
    Ok(())
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "padding_tests.rs"]
mod padding_tests;
