//! One party's side of a run: it agrees, computes, confirms, and opens the result.

pub use super::request::{Prepared, Request};

use super::agreement::predict;
use super::estimate::Estimate;
use super::handshake::Handshake;
use super::request::{Attached, Ours};
use super::stages::{COMPUTING, CONFIRMING, OPENING, SETUP};
use super::{Approval, Parties, Proposal, Term, confirm};
use crate::channel::{Account, Mesh, MessageBytes, Network, StageTime, WireCount};
use crate::course::Course;
use crate::error::{Error, Reason, Result, Seat};
use crate::hash::SessionId;
use crate::hashed::HashedSet;
use crate::many::Many;
use crate::net::{Connected, Fingerprint};
use crate::operations::{Announced, Confirmed, Learned, Sealed, Task};
use crate::params::SMALL_SET;
use crate::planner::{self, Prices, Setting};
use crate::protocols::{self, Choice};
use crate::rng::Prng;
use crate::sharded::run::{self as shards, Begun, InMemory, ShardedRun};
use crate::sharded::set::CutSet;
use crate::sharded::workers;
use crate::speed::Speeds;
use crate::spelling::ALLOW_SMALL;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// Among several, we wait for a party that is alive but makes no progress at least this many times as long as our own work
/// is expected to take, but a week at most. That party may itself be waiting for others that are slower than we are.
const PATIENCE: u32 = 20;

/// The outcome of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The result of our side.
    pub learned: Learned,
    /// The session's id; for a resumed job, the id of the session in which it began.
    pub session_id: SessionId,
    /// The protocol and its group.
    pub choice: Choice,
    /// The reason for this choice, if several were common; `None` if it was the only one.
    pub why: Option<String>,
    /// When the run began, by this machine's clock.
    pub began: SystemTime,
    /// Our fingerprint; `None` without TLS.
    pub our: Option<Fingerprint>,
    /// The terms that were agreed on.
    pub terms: Vec<Term>,
    /// The other parties, and their announcements.
    pub parties: Parties,
    /// Whether work of the protocol was done in advance on our side: a prepared half, or as the receiver a filter.
    pub prepared: bool,
    /// Bytes sent and received on the wire, including TLS and its handshake, but not the bytes that workers exchange.
    pub bytes: (u64, u64),
    /// The bytes of each message, without TLS, heartbeats and abort messages.
    pub messages: Vec<MessageBytes>,
    /// The time of each stage, as our side saw it.
    pub stages: Vec<StageTime>,
}

/// Prepares and runs our side ([`run_if`]), and allows every run. If the time before the first message must reveal nothing,
/// prepare before connecting instead.
///
/// # Errors
/// The errors of [`Request::prepare`] and [`run_if`].
pub fn run(connected: impl Into<Connected>, request: &Request, rng: &mut Prng) -> Result<RunOutcome> {
    let prepared = request.prepare(rng)?;
    run_if(connected, prepared, &mut (), rng)
}

/// Runs our side, if `approval` allows it once the sizes are known. The result is opened after the connection is closed, so
/// the peer learns neither whether opening it fails nor how long that takes. The results of shards are opened while further
/// shards run, as [`crate::sharded::run`] describes.
///
/// # Errors
/// The errors of [`Request::check`], of `approval` and of all operations ([`crate::operations`]).
/// [`Error::Disagreement`] if the parties were asked for different things. [`Error::Refused`] for sets, filters or jobs that
/// our side does not accept. [`Error::Input`] or [`Error::Output`] for a half that cannot be spent. [`Error::Bug`] for
/// connections to other parties than the request's.
///
/// Of a failure before the end is confirmed, the other parties are told only
/// the kind and, among several, the party at fault.
pub fn run_if(
    connected: impl Into<Connected>,
    prepared: Prepared,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<RunOutcome> {
    let few = prepared.request().announces_few();
    our_side(connected.into(), prepared, approval, rng).map_err(|error| explained(error, few))
}

/// Returns the error. If another party refuses the run and we announced a small set, that possible cause is added.
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

fn our_side(
    connected: Connected,
    mut prepared: Prepared,
    approval: &mut dyn Approval,
    rng: &mut Prng,
) -> Result<RunOutcome> {
    let (began, in_advance) = (SystemTime::now(), prepared.in_advance());
    let mut handshake = Handshake::new(connected, &prepared.request().spec)?;
    let agreed = handshake.approved(&prepared, false, approval, rng).and_then(|proposal| {
        approval.begins(&proposal)?;
        prepared.begin(&proposal, &mut handshake.mesh, approval)?;
        Ok(proposal)
    });
    let Handshake { mut mesh, ends, our, pairs, clock, .. } = handshake;
    let proposal =
        match agreed.and_then(|proposal| expect(&mut mesh, &proposal, &prepared).map(|()| proposal)) {
            Ok(proposal) => proposal,
            Err(error) => return mesh.finish(Err(error)),
        };
    let (Prepared { request, ours }, seat) = (prepared, proposal.parties.seat());
    clock.begin(if request.spec.several() { COMPUTING } else { SETUP });
    let (wrong, in_memory) = (Mutex::default(), InMemory::default());
    let learned = match &ours {
        Ours::Whole(set, attachment) => {
            let whole =
                Whole { request: &request, proposal: &proposal, set, attachment: attachment.as_ref() };
            let computed = whole.run(&mut mesh, pairs, &clock, rng);
            let (sealed, confirmed) = mesh.finish(computed)?;
            clock.begin(OPENING);
            sealed.open(confirmed)
        }
        Ours::Sharded(set, keep) => {
            let keep = keep.unwrap_or(&in_memory);
            let job = ShardedRun { request: &request, proposal: &proposal, keep, wrong: &wrong };
            let computed = match set {
                CutSet::Memory(never) => match *never {},
                CutSet::Disk(set) => job.run(set, mesh, rng),
                CutSet::Workers(set) => workers::run(&job, set, mesh, rng),
            };
            // An error in a result matters more than the later end of the run.
            let (sealed, confirmed) =
                computed.map_err(|error| shards::locked(&wrong).take().unwrap_or(error))?;
            clock.begin(OPENING);
            sealed.open(confirmed)
        }
    };
    // Opening the result blames the peer for malformed rows. Among several, nobody knows which party sent them.
    let learned = learned.map_err(|e| if e.seat() == Some(Seat::PEER) { e.by(seat) } else { e })?;
    let (session_id, terms) = (proposal.name(), proposal.terms());
    let Proposal { choice, why, parties, .. } = proposal;
    let wires = ends.iter().map(|end| &end.wire);
    let bytes = (wires.clone().map(WireCount::sent).sum(), wires.map(WireCount::received).sum());
    let (messages, stages) = (Account::messages(ends.iter().map(|end| &end.account)), clock.stages());
    Ok(RunOutcome {
        learned,
        session_id,
        choice,
        why,
        began,
        our,
        terms,
        parties,
        prepared: in_advance,
        bytes,
        messages,
        stages,
    })
}

/// Prepares our channels for the run. In a run of two, the channel tells its observer what to expect; among several, each
/// channel gets enough patience for the duration of the run.
fn expect(mesh: &mut Mesh, proposal: &Proposal, prepared: &Prepared) -> Result<()> {
    let local = &prepared.request().local;
    let speeds = || Speeds::built_in(local.threads.count());
    let Some(channel) = mesh.only() else {
        let work = Estimate::of(proposal, false, &speeds())?.work;
        mesh.be_patient(work.saturating_mul(PATIENCE).min(Duration::from_secs(7 * 24 * 3600)));
        return Ok(());
    };
    let (protocol, deal) = proposal.deal();
    let kept = |begun: &Begun| begun.kept.iter().filter(|kept| **kept).count();
    let runs = match deal.terms.shards as usize {
        0 => 1,
        all => all.saturating_sub(prepared.begun().map_or(0, kept)),
    };
    // The shards of workers run over other connections.
    let course = match (&prepared.ours, protocol.cost(&deal)) {
        (Ours::Sharded(CutSet::Workers(_), _), _) | (_, Err(_)) => Course::default(),
        (_, Ok(cost)) => {
            // Predicts with our speeds on both sides and without a link. The remaining time is corrected during the run.
            let speeds = [local.planning.map_or_else(speeds, |by| by.speeds); 2];
            let setting = Setting { speeds, link: Network::NONE, prices: Prices::default(), shared: None };
            planner::course(&cost, &setting).repeated(runs)
        }
    };
    channel.begins(protocol.stages(deal.operation, &deal.terms) * runs, &course);
    Ok(())
}

/// A run in one piece that all parties have allowed.
struct Whole<'a> {
    request: &'a Request<'a>,
    proposal: &'a Proposal,
    set: &'a HashedSet<'a>,
    attachment: Option<&'a Attached>,
}

impl<'a> Whole<'a> {
    /// Computes the result, and confirms the end with all other parties. `pairs` are the sessions with them, by number, and
    /// at our own number the session of the run.
    fn run(
        &self,
        mesh: &mut Mesh,
        pairs: Vec<SessionId>,
        clock: &Account,
        rng: &mut Prng,
    ) -> Result<(Sealed<'a, Learned>, Confirmed)> {
        let Whole { request, proposal, set, attachment } = *self;
        let (me, terms) = (proposal.hello.spec.number(), proposal.hello.spec.terms);
        let others = (0..).zip(&pairs).filter(|(number, _)| *number != me).map(|(_, session)| *session);
        let sessions: Vec<_> = mesh.seats().zip(others).collect();
        let task = Task {
            operation: request.spec.operation,
            role: request.spec.role,
            group: proposal.choice.group,
            set,
            values: request.input.values,
            payloads: request.input.payloads,
            terms,
            filter: attachment.and_then(Attached::filter),
        };
        let (session, exponent, threads) = (proposal.session_id, terms.exponent(), &request.local.threads);
        let mut many = Many { me, mesh, pairs, session, rng, exponent, threads };
        let sealed = protocols::run_among(proposal.choice.protocol, &task, &mut many, &proposal.sizes())?;
        clock.begin(CONFIRMING);
        let confirmed = mesh.each_with(sessions, |_, session, channel| confirm(channel, &session))?;
        let confirmed = confirmed.into_iter().next();
        Ok((sealed, confirmed.ok_or_else(|| Error::Bug("a run without other parties".into()))?))
    }
}

/// The outcome of a check.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// The terms that all parties agreed on and allow.
    pub proposal: Proposal,
    /// The milliseconds that each of the other parties expects to compute, at its own speed, ordered by seat.
    pub their_milliseconds: Vec<u64>,
}

/// Agrees with parties that also run a check, asks `approval`, and ends. `milliseconds` returns the time that our side
/// expects to compute.
///
/// # Errors
/// The errors of [`run_if`] up to the permission to run, and of `milliseconds`. About the data, no more than the announced
/// sizes, the expected times, and the digest and the size of a filter made in advance was sent.
pub fn check(
    connected: impl Into<Connected>,
    prepared: &Prepared,
    approval: &mut dyn Approval,
    milliseconds: &dyn Fn(&Proposal) -> Result<u64>,
    rng: &mut Prng,
) -> Result<Checked> {
    let request = prepared.request();
    let mut handshake = Handshake::new(connected.into(), &request.spec)?;
    let checked = handshake.approved(prepared, true, approval, rng).and_then(|proposal| {
        let ours = milliseconds(&proposal)?;
        let their_milliseconds = handshake.mesh.each(|_, channel| predict(channel, ours))?;
        Ok(Checked { proposal, their_milliseconds })
    });
    handshake.mesh.finish(checked).map_err(|error| explained(error, request.announces_few()))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "padding_tests.rs"]
mod padding_tests;
