//! Whether a run may take place once the sizes are known, by policy and history, and what the audit log is told.

use crate::plan::Plan;
use veilset::error::{Error, Result};
use veilset::hash::SessionId;
use veilset::item::ItemSet;
use veilset::session::audit::{AuditLog, End, Entry, Event, Run, digest};
use veilset::session::policy::Repeats;
use veilset::session::report::Report;
use veilset::session::run::Outcome;
use veilset::session::{Approval, Fingerprint, Identity, Proposal};

/// What stands between the agreement and the protocol.
pub struct Gate<'a> {
    plan: &'a Plan,
    log: Option<AuditLog>,
    our: Option<Fingerprint>,
    /// Our set's digest.
    set: Option<String>,
    /// That of the set with its values, if it has any.
    values: Option<String>,
    warn: &'a dyn Fn(&str),
    /// What our side has allowed.
    allowed: Option<(SessionId, Run)>,
    /// The session that started.
    begun: Option<SessionId>,
}

impl<'a> Gate<'a> {
    /// Opens the log: if it cannot be written, that is best known before the peer hears of us.
    pub fn new(
        plan: &'a Plan,
        identity: Option<&Identity>,
        set: &ItemSet,
        values: &[i128],
        warn: &'a dyn Fn(&str),
    ) -> Result<Gate<'a>> {
        let log = plan.audit_log.as_deref().map(AuditLog::open).transpose()?;
        if log.is_none() && plan.policy.repeats() == Repeats::Refuse {
            plan.policy
                .refuses("repeats", "without the audit log (--audit-log none) no repeated run is noticed")?;
        }
        let digest_with = |values| log.as_ref().and(identity).map(|identity| digest(identity, set, values));
        let with_values = if values.is_empty() { None } else { digest_with(values) };
        let set = digest_with(&[]);
        Ok(Gate {
            plan,
            log,
            our: identity.map(Identity::fingerprint),
            set,
            values: with_values,
            warn,
            allowed: None,
            begun: None,
        })
    }

    fn run(&self, proposal: &Proposal) -> Run {
        Run::new(
            proposal,
            self.our,
            self.plan.peer_name.as_deref(),
            self.set.as_deref(),
            self.values.as_deref(),
            self.plan.prepared.is_some(),
        )
    }

    /// Compares the run with earlier ones. Of changed sets it warns, or it refuses them.
    fn repeats(&self, log: &AuditLog, run: &Run, say: &dyn Fn(&str)) -> Result<()> {
        let repeats = self.plan.policy.repeats();
        if repeats == Repeats::Allow {
            return Ok(());
        }
        let history = log.history(run)?;
        let foreign = (!history.foreign.is_empty()).then(|| {
            let lines: Vec<_> = history.foreign.iter().take(10).map(ToString::to_string).collect();
            let more = if history.foreign.len() > 10 { ", ..." } else { "" };
            format!(
                "the audit log has lines that are no entries (line {}{more}), which may hide an earlier run: look what \
                 became of it",
                lines.join(", ")
            )
        });
        let peer = run.peer_name.as_deref().or(run.peer.as_deref()).unwrap_or("somebody without TLS");
        let repeat = history.warning(peer);
        for warning in foreign.into_iter().chain(repeat) {
            match repeats {
                Repeats::Refuse => self.plan.policy.refuses("repeats", warning)?,
                _ => say(&format!("warning: {warning}")),
            }
        }
        Ok(())
    }

    /// Notes how a run ended. One that did not start has nothing to end, but the peer may know our size.
    pub fn end(&self, outcome: Result<(&Outcome, &Report), &Error>, seconds: f64) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let Some(session) = &self.begun else {
            return match &self.allowed {
                Some((session, run)) => log.append(&Entry::now(session, Event::Declined(run.clone()))),
                None => Ok(()),
            };
        };
        let end = match outcome {
            Ok((outcome, report)) => {
                End { outcome: "done".into(), result: numbers(report)?, bytes: Some(outcome.bytes), seconds }
            }
            Err(e) => End { outcome: e.kind().into(), result: serde_json::json!({}), bytes: None, seconds },
        };
        log.append(&Entry::now(session, Event::End(end)))
    }
}

/// The numbers of a report. The sum is text: as a number it would lose digits.
fn numbers(report: &Report) -> Result<serde_json::Value> {
    let mut numbers =
        serde_json::to_value(&report.result).map_err(|e| Error::Bug(format!("a result is not JSON: {e}")))?;
    if let Some(sum) = &report.result.sum {
        numbers["sum"] = sum.get().into();
    }
    Ok(numbers)
}

impl Approval for Gate<'_> {
    fn approve(&mut self, proposal: &Proposal) -> Result<()> {
        let run = self.run(proposal);
        let sizes = self.plan.policy.permits_their_size(proposal);
        let decided = sizes.and_then(|()| match &self.log {
            Some(log) => self.repeats(log, &run, self.warn),
            None => Ok(()),
        });
        let Some(log) = &self.log else { return decided };
        let entry = |event| Entry::now(&proposal.session_id, event);
        match decided {
            // What is refused stays refused if the log cannot say so.
            Err(e) => {
                let _ = log.append(&entry(Event::Refused(run)));
                Err(e)
            }
            Ok(()) if proposal.hello.check => log.append(&entry(Event::Check(run))),
            Ok(()) => {
                self.allowed = Some((proposal.session_id, run));
                Ok(())
            }
        }
    }

    fn begins(&mut self, proposal: &Proposal) -> Result<()> {
        if let Some(log) = &self.log {
            let run = self.run(proposal);
            let entry = Entry::now(&proposal.session_id, Event::Start(run.clone()));
            // Another run may have started since we were asked; of it we have not been warned.
            log.append_if(&entry, |log| match self.plan.policy.repeats() {
                Repeats::Refuse => self.repeats(log, &run, &|_| ()),
                _ => Ok(()),
            })?;
        }
        self.begun = Some(proposal.session_id);
        Ok(())
    }

    fn warn(&mut self, text: &str) {
        (self.warn)(&format!("warning: {text}"));
    }
}
