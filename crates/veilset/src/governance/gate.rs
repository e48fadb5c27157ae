//! Allows or refuses a run, according to policy and history, and writes the audit log. Both the program and users of the
//! library use it.
//!
//! A [`Gate`] is an [`Approval`] for [`run_if`](crate::session::run::run_if) and [`check`](crate::session::run::check). Before
//! connecting to the peer, [`Gate::new`] refuses a run that the policy forbids in any case, or that could not be logged. Once
//! the sizes are known, the gate decides again. It compares the run with earlier ones that have a party in common with it, and
//! logs the start of the run. [`Gate::end`] logs its end.
//!
//! ```
//! use veilset::channel::{Channel, WireCount};
//! use veilset::error::Seat;
//! use veilset::item::ItemSet;
//! use veilset::operations::{COUNT, Role};
//! use veilset::rng::Prng;
//! use veilset::net::Connection;
//! use veilset::governance::gate::{Gate, Setup};
//! use veilset::governance::policy::{Policy, Rules};
//! use veilset::session::report::Report;
//! use veilset::session::run::{Request, run, run_if};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("audit.jsonl");
//! let ours: ItemSet = ["ann", "bob", "cleo"].iter().collect();
//! // The peer's fingerprint is that of the connection: none where there is no TLS.
//! let rules = Rules { min_peer_size: Some(3), ..Rules::default() };
//! let policy = Policy::new(rules, "our rules", &[(Seat::PEER, None)], &|_name| None)?;
//!
//! let request = Request::new(&COUNT, Role::Receiver, &ours);
//! let warn = |text: &str| eprintln!("warning: {text}");
//! let setup = Setup { audit_log: Some(&path), ..Setup::new(&policy, &warn) };
//! let mut gate = Gate::new(&request, setup)?;
//! let mut rng = Prng::from_os()?;
//! let prepared = request.prepare(&mut rng)?;
//!
//! // Over a network the connection is made by net::establish.
//! let (here, there) = Channel::pair();
//! let here = Connection::unprotected(here, WireCount::default());
//! let peer = std::thread::spawn(|| {
//!     let theirs: ItemSet = ["bob", "cleo", "dan", "eve"].iter().collect();
//!     let request = Request::new(&COUNT, Role::Sender, &theirs);
//!     run(Connection::unprotected(there, WireCount::default()), &request, &mut Prng::from_os()?)
//! });
//! let begun = std::time::Instant::now();
//! let result = run_if(here, prepared, &mut gate, &mut rng);
//! let seconds = begun.elapsed().as_secs_f64();
//! match result {
//!     Ok(outcome) => gate.end(Ok(&Report::new(&request, &outcome, seconds)?), seconds)?,
//!     Err(error) => gate.end(Err(&error), seconds)?,
//! }
//! # peer.join().map_err(|_| "the peer panicked")??;
//! # let log = std::fs::read_to_string(&path)?;
//! # assert!(log.lines().count() == 2 && log.contains(r#""matches":2"#), "{log}");
//! # Ok(())
//! # }
//! ```

use super::audit::{AuditLog, End, Entry, Event, Run, digest};
use super::policy::{Policy, Repeats};
use super::review::Review;
use crate::error::{Error, Result, Seat};
use crate::hash::SessionId;
use crate::json;
use crate::net::{Fingerprint, Identity};
use crate::operations::{Operation, Role};
use crate::params::SMALL_SET;
use crate::session::report::Report;
use crate::session::run::Request;
use crate::session::{Approval, Party, Proposal, Spec};
use crate::spelling::{ALLOW_SMALL, MIN_COUNT, setting};
use std::io;
use std::path::Path;

/// The basis of a gate's decisions, and the receiver of its warnings.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The policy, made for the other parties of the run.
    pub policy: &'a Policy,
    /// The audit log; without one, repeated runs go unnoticed.
    pub audit_log: Option<&'a Path>,
    /// Our identity, which keys the digest of our set; `None` on an unprotected connection, or one that
    /// the caller made.
    pub identity: Option<&'a Identity>,
    /// Whether our offline half was prepared in advance.
    pub prepared: bool,
    /// Whether our rows may be revealed to a party that announces fewer than [`SMALL_SET`] items, if no rule of the policy
    /// decides this.
    pub allow_small: bool,
    /// The check that the run must match ([`Review`]), and its name in messages.
    pub checked: Option<(&'a Review, &'a Path)>,
    /// Receives warnings: problems that do not stop the run, but that the person responsible for the data should see.
    pub warn: &'a dyn Fn(&str),
}

impl<'a> Setup<'a> {
    /// A policy alone: no log, no identity, no prepared half, no check, and no small sets of others.
    pub fn new(policy: &'a Policy, warn: &'a dyn Fn(&str)) -> Setup<'a> {
        Setup {
            policy,
            audit_log: None,
            identity: None,
            prepared: false,
            allow_small: false,
            checked: None,
            warn,
        }
    }
}

const MAX_FILTER_RUNS: &str = "max-filter-runs";

/// The gate between the agreement and the protocol.
pub struct Gate<'a> {
    setup: Setup<'a>,
    log: Option<AuditLog>,
    /// The operation and the role that our side was asked for.
    asked: (&'static Operation, Role),
    our: Option<Fingerprint>,
    /// The digest of our set, if there are a log and an identity.
    set: Option<String>,
    /// The digest of our set with its values, if it has any, under the same conditions.
    values: Option<String>,
    /// The run that our side has allowed.
    allowed: Option<(SessionId, Run)>,
    /// The session, once it has started.
    begun: Option<SessionId>,
}

impl<'a> Gate<'a> {
    /// Makes the checks that need no peer, and opens the log, so that an unwritable log is noticed before contacting the peer.
    /// The time this takes depends on our data.
    ///
    /// # Errors
    /// [`Error::Refused`] if the policy forbids the run, and [`Error::Output`] for a log that cannot be used, or a set on disk
    /// that cannot be read.
    pub fn new(request: &Request<'_>, setup: Setup<'a>) -> Result<Gate<'a>> {
        let Setup { policy, audit_log, identity, .. } = setup;
        let Request { spec, input, local } = request;
        policy.permits(spec)?;
        request.candidates().iter().try_for_each(|choice| policy.permits_choice(spec.operation, choice))?;
        policy.permits_our_size(input.set.len())?;
        if let Some(text) = single_value(spec, policy) {
            (setup.warn)(&text);
        }
        let log = audit_log.map(AuditLog::open).transpose()?;
        if let Some(warning) = log.as_ref().and_then(AuditLog::warning) {
            (setup.warn)(&warning);
        }
        if log.is_none() && policy.repeats() == Repeats::Refuse {
            policy.refuses(
                "repeats",
                concat!(
                    "without the audit log (",
                    setting!(audit_log, "none"),
                    ") repeated runs go unnoticed"
                ),
            )?;
        }
        let digest_with = |values| {
            let digest = |identity| digest(identity, input.set, values, &local.threads);
            log.as_ref().and(identity).map(digest).transpose()
        };
        let values = if input.values.is_empty() { None } else { digest_with(input.values)? };
        let set = digest_with(&[])?;
        let our = identity.map(Identity::fingerprint);
        let asked = (spec.operation, spec.role);
        Ok(Gate { setup, log, asked, our, set, values, allowed: None, begun: None })
    }

    /// Logs how a run ended, `seconds` after the connection was made. If our side had allowed a run that never started, logs
    /// [`Event::Declined`] instead, since the peer may know our size.
    ///
    /// # Errors
    /// [`Error::Output`] if the log could not be written. That does not change the outcome of the run.
    pub fn end(&self, outcome: Result<&Report, &Error>, seconds: f64) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let Some(session) = &self.begun else {
            return match &self.allowed {
                Some((session, run)) => log.append(&Entry::now(session, Event::Declined(run.clone()))),
                None => Ok(()),
            };
        };
        let end = match outcome {
            Ok(report) => {
                let bytes = Some((report.bytes.sent, report.bytes.received));
                let outcome = "done".into();
                End { outcome, fault: None, party: None, result: numbers(report)?, bytes, seconds }
            }
            Err(e) => {
                let fault = e.fault().map(|fault| fault.name().into());
                let party = e.seat().and_then(Seat::number);
                let (outcome, result) = (e.kind().into(), serde_json::json!({}));
                End { outcome, fault, party, result, bytes: None, seconds }
            }
        };
        log.append(&Entry::now(session, Event::End(end)))
    }

    fn run(&self, proposal: &Proposal) -> Run {
        let (set, values) = (self.set.as_deref(), self.values.as_deref());
        let checked = self.setup.checked.is_some();
        Run { checked, ..Run::new(proposal, self.our, set, values, self.setup.prepared) }
    }

    /// The run, once all sizes are known.
    fn sized(&self, proposal: &Proposal) -> Run {
        Run { allow_small: self.setup.allow_small && self.small(proposal).is_some(), ..self.run(proposal) }
    }

    fn decide(&self, proposal: &Proposal, run: &Run) -> Result<()> {
        let policy = self.setup.policy;
        let Some(applied) = policy.applied(proposal) else {
            return Err(Error::Usage(
                "the policy was made for a peer other than the connected one. Make it for the connected peer"
                    .into(),
            ));
        };
        // The peer relies on the agreement, not on the gate's request.
        if (proposal.hello.spec.operation, proposal.hello.spec.role) != self.asked {
            return Err(Error::Bug("the run is not the one that its gate was made for".into()));
        }
        policy.permits(&proposal.hello.spec)?;
        applied.permits_their_sizes()?;
        self.permits_small(proposal)?;
        self.setup.checked.map_or(Ok(()), |(checked, name)| checked.permits(name, self.our, proposal))?;
        match &self.log {
            // The run was compared and counted when it began.
            Some(log) if self.goes_on(log, proposal, run)? => Ok(()),
            Some(log) => {
                self.budget(log, run)?;
                self.repeats(log, run, self.setup.warn)
            }
            None if run.answers_to_filter() && policy.max_filter_runs().is_some() => uncounted(policy),
            None => Ok(()),
        }
    }

    /// The party that learns something about our rows, if its set is small and no rule decides about its size.
    fn small<'p>(&self, proposal: &'p Proposal) -> Option<&'p Party> {
        let unruled = |party: &Party| self.setup.policy.min_peer_size(party.seat).is_none();
        learner(proposal).filter(|party| unruled(party) && party.announced.size < SMALL_SET)
    }

    /// Refuses a small set of a party that learns something about our rows, unless small sets are allowed.
    fn permits_small(&self, proposal: &Proposal) -> Result<()> {
        match self.small(proposal) {
            Some(party) if !self.setup.allow_small => Err(Error::refused(format!(
                "{} announces a set of {}, and sets of fewer than {SMALL_SET} are refused unless you allow it: so few ask about each \
                 of them. If that is meant, give {ALLOW_SMALL}, or have \"min-peer-size\" in the policy, which can be lower or \
                 higher; it refuses sets that are padded, unless it is 0",
                party.seat,
                party.announced.words()
            ))),
            _ => Ok(()),
        }
    }

    /// Whether this is a resumed job whose start is in the log.
    fn goes_on(&self, log: &AuditLog, proposal: &Proposal, run: &Run) -> Result<bool> {
        proposal.hello.job.map_or(Ok(false), |job| log.has_start(&job, run))
    }

    /// Refuses more answers to the peer's filter than our policy allows.
    fn budget(&self, log: &AuditLog, run: &Run) -> Result<()> {
        let policy = self.setup.policy;
        let Some(most) = policy.max_filter_runs().filter(|_| run.answers_to_filter()) else {
            return Ok(());
        };
        let parties = run.parties.iter().map(|party| &party.peer);
        spared(policy, most, log, &parties.cloned().collect::<Vec<_>>(), &run.others())
    }

    /// If the policy can refuse the run because of earlier ones, reads the log again before it starts: another run may have
    /// started since our side was asked. `unlocked` is the error if the log could not be locked.
    fn second_look(&self, log: &AuditLog, run: &Run, unlocked: Option<&io::Error>) -> Result<()> {
        let policy = self.setup.policy;
        if policy.max_filter_runs().is_some() && run.answers_to_filter() {
            if let Some(e) = unlocked {
                policy.refuses(MAX_FILTER_RUNS, not_locked(e))?;
            }
            self.budget(log, run)?;
        }
        match (policy.repeats(), unlocked) {
            (Repeats::Allow | Repeats::Warn, _) => Ok(()),
            (Repeats::Refuse, Some(e)) => policy.refuses("repeats", not_locked(e)),
            (Repeats::Refuse, None) => self.repeats(log, run, &|_| ()),
        }
    }

    /// Compares the run with earlier ones. If sets have, or may have, changed, or the log has lines that are not entries, warns
    /// or refuses, as the policy says.
    fn repeats(&self, log: &AuditLog, run: &Run, say: &dyn Fn(&str)) -> Result<()> {
        let policy = self.setup.policy;
        if policy.repeats() == Repeats::Allow {
            return Ok(());
        }
        let history = log.history(run)?;
        let foreign = (!history.foreign.is_empty()).then(|| {
            let lines: Vec<_> = history.foreign.iter().take(10).map(ToString::to_string).collect();
            let more = if history.foreign.len() > 10 { ", ..." } else { "" };
            format!(
                "the audit log has lines that are not entries (line {}{more}), which may hide an earlier \
                 run: find out what happened to them",
                lines.join(", ")
            )
        });
        let repeat = history.warning(&run.others());
        match (policy.repeats(), foreign, repeat) {
            (Repeats::Refuse, Some(why), _) | (Repeats::Refuse, None, Some(why)) => {
                policy.refuses("repeats", why)?;
            }
            (Repeats::Warn, foreign, repeat) => {
                let news = repeat.filter(|_| history.is_news());
                foreign.into_iter().chain(news).for_each(|text| say(&text));
            }
            (Repeats::Refuse, None, None) | (Repeats::Allow, ..) => {}
        }
        Ok(())
    }
}

/// If the policy limits answers to a filter of this peer, refuses another one once the limit is reached. Also refuses it if
/// there is no log to count them, or the log has lines that are not entries. The [`Gate`] decides the same later; this function
/// lets a planner know in advance.
///
/// # Errors
/// [`Error::Refused`], and [`Error::Output`] for a log that cannot be used.
pub fn permits_filter(policy: &Policy, audit_log: Option<&Path>, peer: Option<Fingerprint>) -> Result<()> {
    let Some(most) = policy.max_filter_runs() else { return Ok(()) };
    let Some(path) = audit_log else { return uncounted(policy) };
    let peer = peer.map(|peer| peer.to_string());
    let name = peer.clone().unwrap_or_else(|| "somebody without TLS".into());
    match path.exists() {
        true => spared(policy, most, &AuditLog::open(path)?, &[peer], &name),
        false if most == 0 => spent(policy, most, 0, &name),
        false => Ok(()),
    }
}

/// Refuses another answer to a filter of these parties, unless the limit leaves room for it and all lines are entries.
fn spared(policy: &Policy, most: u64, log: &AuditLog, peers: &[Option<String>], name: &str) -> Result<()> {
    match log.filter_runs(peers)? {
        (_, Some(line)) => policy.refuses(
            MAX_FILTER_RUNS,
            format!("the audit log has lines that are not entries (line {line}), which may hide a run"),
        ),
        (runs, None) if runs < most => Ok(()),
        (runs, None) => spent(policy, most, runs, name),
    }
}

fn spent(policy: &Policy, most: u64, runs: u64, name: &str) -> Result<()> {
    policy.refuses(
        MAX_FILTER_RUNS,
        format!("we have answered to filters of {name} in {runs} runs, and {most} are allowed"),
    )
}

fn uncounted(policy: &Policy) -> Result<()> {
    policy.refuses(
        MAX_FILTER_RUNS,
        concat!("without the audit log (", setting!(audit_log, "none"), ") nobody counts the runs"),
    )
}

/// The warning for the receiver of a sum if the sender would learn the sum over a single match. This is one of the sender's own
/// values, which tells it the matching item. `None` if the policy sets a minimum of matches.
fn single_value(spec: &Spec, policy: &Policy) -> Option<String> {
    let Spec { operation, role, ref terms, .. } = *spec;
    let shown = operation.uses.values && role == Role::Receiver && terms.min_count <= 1;
    (shown && policy.min_count().is_none()).then(|| {
        format!(
            "{MIN_COUNT} is {}, so the peer learns the sum even if a single item matches, and can tell which. Give a larger one on \
             both sides, {} for instance, or have \"min-count\" in the policy",
            terms.min_count
        , MIN_COUNT.with(10))
    })
}

/// Returns the other party that learns something about our rows, if any: the peer, or the leader of several parties.
pub fn learner(proposal: &Proposal) -> Option<&Party> {
    let Spec { operation, role, terms, .. } = &proposal.hello.spec;
    // The leader of several parties has the lowest seat.
    Some(proposal.parties.peer()).filter(|_| operation.shows(role.other(), terms))
}

/// The reason to refuse a run if the log cannot be locked.
fn not_locked(e: &io::Error) -> String {
    format!(
        "the audit log cannot be locked ({e}), so a run that starts at the same time may go unnoticed. Put the log on a \
         file system that supports locks"
    )
}

/// The numbers of a report. The sum is written as text: as a number it would lose digits.
fn numbers(report: &Report) -> Result<serde_json::Value> {
    let mut numbers = json::made("a result", serde_json::to_value(&report.result))?;
    if let Some(sum) = &report.result.sum {
        numbers["sum"] = sum.get().into();
    }
    Ok(numbers)
}

impl Approval for Gate<'_> {
    fn approve(&mut self, proposal: &Proposal) -> Result<()> {
        let run = self.sized(proposal);
        let decided = self.decide(proposal, &run);
        let Some(log) = &self.log else { return decided };
        let entry = |event| Entry::now(&proposal.name(), event);
        match decided {
            // A refusal stands even if it cannot be logged.
            Err(e) => {
                let _ = log.append(&entry(Event::Refused(run)));
                Err(e)
            }
            Ok(()) if proposal.hello.check => log.append(&entry(Event::Check(run))),
            Ok(()) => {
                self.allowed = Some((proposal.name(), run));
                Ok(())
            }
        }
    }

    fn refused(&mut self, proposal: &Proposal, error: &Error) {
        let event: fn(Run) -> Event =
            if matches!(error, Error::Refused(_)) { Event::Refused } else { Event::Declined };
        if let Some(log) = &self.log {
            // The run is over, whether or not that can be logged.
            let _ = log.append(&Entry::now(&proposal.name(), event(self.run(proposal))));
        }
    }

    fn begins(&mut self, proposal: &Proposal) -> Result<()> {
        if let Some(mut log) = self.log.take() {
            let run = self.sized(proposal);
            let entry = |event| Entry::now(&proposal.name(), event);
            let started = self.goes_on(&log, proposal, &run).and_then(|goes_on| match goes_on {
                true => log.append(&entry(Event::Resume(run.clone()))),
                false => log.append_if(&entry(Event::Start(run.clone())), |log, unlocked| {
                    self.second_look(log, &run, unlocked)
                }),
            });
            if started.is_err() {
                // Our side ended the run after all, not the peer.
                self.allowed = None;
                let _ = log.append(&entry(Event::Refused(run)));
            }
            self.log = Some(log);
            started?;
        }
        self.begun = Some(proposal.name());
        Ok(())
    }

    fn warn(&mut self, text: &str) {
        (self.setup.warn)(text);
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "small_tests.rs"]
mod small_tests;
