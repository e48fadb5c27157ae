//! A party's run as every front end (the program, and packages for other languages) carries it out.

use crate::plan::{NamedProtection, Others, PartyPlan};
use crate::report;
use crate::speeds::speeds;
use crate::words::{tell, tell_unread};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use veilset::channel::{Canceller, Observer};
use veilset::error::{Error, Result};
use veilset::governance::gate::{Gate, Setup, permits_filter};
use veilset::governance::review::Review;
use veilset::net::{Connected, Endpoint, Identity, ListenAt, Me, Protection, assemble, establish};
use veilset::operations::{Role, Shape};
use veilset::party::{self, Data, InFolder, PartySpec, Phase, Ran, Watch};
use veilset::protocols::{Attachment, Choice};
use veilset::rng::Prng;
use veilset::session::estimate::Estimate;
use veilset::session::report::{Report, wrong_clock};
use veilset::session::run::{self, Checked, Prepared};
use veilset::session::{Proposal, Spec};
use veilset::speed::Speeds;
use veilset::spelling::{CHECKED, RESUME, THREADS};
use veilset::table::{Destination, Duplicates};
use veilset::threads::Threads;

/// The display of a party's run, and the request to stop it.
pub trait Front {
    /// Returns a function that tells whether the run is to stop.
    fn stop(&self) -> Arc<dyn Fn() -> bool + Send + Sync>;
    /// Shows a phase before the run begins; `None` once all are over.
    fn phase(&self, phase: Option<Phase>);
    /// Called with the number of bytes of the table read so far.
    fn read(&self, bytes: u64);
    /// Shows a message to the user.
    fn say(&self, line: &str);
    /// Shows a warning that the user must not miss.
    fn warn(&self, line: &str);
    /// Called when the run starts to wait for the others.
    fn waits(&self) {}
    /// Called when the others are connected. From now on, this canceller stops the run.
    fn begins(&self, canceller: Canceller);
    /// Returns the observer of the stages of a run of two, or of work in advance.
    fn observer(&self) -> Option<Arc<dyn Observer>>;
    /// Called when a run of several parties, with this number of others, begins. Steps with different parties overlap.
    fn together(&self, others: usize);
    /// Called when a run or a step of work in advance ends; `all` tells whether it completed.
    fn ends(&self, all: bool);
    /// Called when a file made in advance has its final name. The file remains even if a later step fails.
    fn done(&self, _what: String) {}
}

/// Returns an error if the front end requests a stop.
pub(crate) fn go_on(stop: &(dyn Fn() -> bool + Send + Sync)) -> Result<()> {
    if stop() { Err(Error::Cancelled) } else { Ok(()) }
}

/// The purpose of carrying out a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To obtain the result.
    Run,
    /// To find out whether it can be carried out, and at what cost.
    Check,
}

/// Starts the threads for all computation.
pub fn start_threads(threads: usize) -> Result<Threads> {
    Threads::new(threads).map_err(|e| Error::usage(format!("{e} ({THREADS})")))
}

/// Loads the identity; the default one if none is named. `warn` receives a warning if others could replace it.
pub fn load_identity(path: Option<&Path>, warn: &mut dyn FnMut(&str)) -> Result<Identity> {
    let path = path.map_or_else(Identity::default_path, |path| Ok(path.into()))?;
    let identity = Identity::load(&path)?;
    identity.warning().into_iter().for_each(warn);
    Ok(identity)
}

impl PartyPlan {
    /// Starts the threads, and refuses files that cannot be written. No data is read or written yet. A run that is held to a
    /// check uses the protocol of the check from here on.
    ///
    /// # Errors
    /// [`Error::Usage`], [`Error::Output`] and [`Error::Refused`].
    pub fn begin(&mut self, purpose: Purpose) -> Result<()> {
        self.party.local.threads = start_threads(self.threads)?;
        self.party.check_output()?;
        match (purpose, &self.checked) {
            // A check may have been reviewed, so it is not replaced, even with `--force`.
            (Purpose::Check, Some(path)) if path.symlink_metadata().is_ok() => {
                return Err(Error::output(format!(
                    "{} exists, and a check is not replaced. Delete it, or give another name",
                    path.display()
                )));
            }
            (Purpose::Check, checked) => Destination::check(checked.as_deref(), false)?,
            (Purpose::Run, Some(path)) => {
                let review = Review::load(path)?;
                self.warnings.extend(review.warning().map(String::from));
                let checked = review.choice()?;
                review.permits_columns(path, &self.party.reviewed_columns())?;
                // A filter determines the encryption, unless it was named; the gate compares it.
                let of_filter = self.party.filter.is_some() && !self.party.spec.candidates.others.is_empty();
                let same =
                    |choice: Choice| choice == checked || of_filter && choice.protocol == checked.protocol;
                self.party.spec.restrict(|choice| match same(choice) {
                    true => Ok(()),
                    false => Err(Error::refused(format!(
                        "the run was checked by {checked} ({CHECKED}, {}), which its options or the policy do not allow now. \
                         Run it as it was checked, or check it again",
                        path.display()
                    ))),
                })?;
                self.review = Some(review);
            }
            (Purpose::Run, None) => {}
        }
        self.spare_filters()?;
        Destination::check(self.report.as_deref(), self.party.force)
    }

    /// Excludes the protocols with which we would answer the peer's filter where that is not permitted ([`permits_filter`]),
    /// if there is another candidate.
    fn spare_filters(&mut self) -> Result<()> {
        let PartyPlan { party, policy, audit_log, others, notes, .. } = self;
        let Spec { operation, role, ref terms, ref candidates, .. } = party.spec;
        let answers = !party.spec.several() && (role == Role::Sender || terms.both);
        if !answers || candidates.others.is_empty() {
            return Ok(());
        }
        party.spec.restrict(|choice| match choice.protocol.offer(operation) {
            Some(offer) if offer.takes_with(Attachment::Filter) => {
                permits_filter(policy, audit_log.as_deref(), others.peer())
                    .inspect_err(|why| notes.push(format!("{choice} is left out: {why}")))
            }
            _ => Ok(()),
        })
    }

    /// Writes the report of the run, if one is wanted, in the form that the extension of its file implies.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn write_report(&self, report: &Report, file: Option<Destination>) -> Result<()> {
        match (&self.report, file) {
            (Some(path), Some(file)) => report::write(report, path, file),
            _ => Ok(()),
        }
    }
}

/// The files that a run writes.
pub struct Files {
    /// The result, if there is one and it is not kept in memory.
    pub output: Option<Destination>,
    /// The list of identifiers.
    pub ids: Option<Destination>,
    /// The map from share rows to our rows.
    pub map: Option<Destination>,
    /// The report.
    pub report: Option<Destination>,
}

/// A party whose own side is ready: data, identity and policy are checked. No other party has been contacted.
pub struct Ready<'a> {
    /// The plan of the run.
    pub plan: &'a PartyPlan,
    /// The data for the plan's computation.
    pub data: &'a Data<'a>,
    /// The folder that keeps the results of the shards, if the run is a job.
    pub kept: Option<&'a InFolder<'a>>,
    prepared: Prepared<'a>,
    gate: Gate<'a>,
    reach: Reach<'a>,
    rng: Prng,
    front: &'a dyn Front,
}

/// How to reach the other parties, with our identity where one is needed.
enum Reach<'a> {
    /// The peer in a run of two.
    Peer { endpoint: &'a Endpoint, protection: Protection, name: &'a Option<String> },
    /// The parties of a list.
    Parties { me: &'a Me, listen: Option<&'a str>, identity: Arc<Identity> },
}

impl<'a> Reach<'a> {
    /// Loads our identity if one is needed, and refuses malformed addresses.
    fn new(others: &'a Others, front: &dyn Front) -> Result<Reach<'a>> {
        let load = |path: &Option<PathBuf>| {
            load_identity(path.as_deref(), &mut |line| front.warn(line)).map(Arc::new)
        };
        let reach = match others {
            Others::Peer { endpoint, protection, name } => {
                let protection = match protection {
                    NamedProtection::Tls { identity, peer } => {
                        Protection::Tls { identity: load(identity)?, peer: *peer }
                    }
                    NamedProtection::InsecurePlaintext => Protection::InsecurePlaintext,
                };
                Reach::Peer { endpoint, protection, name }
            }
            Others::Parties { me, listen, identity } => {
                let identity = load(identity)?;
                me.check_identity(&identity.fingerprint())?;
                Reach::Parties { me, listen: listen.as_deref(), identity }
            }
        };
        others.check().map(|()| reach)
    }

    /// Our identity; `None` without TLS.
    fn identity(&self) -> Option<Arc<Identity>> {
        match self {
            Reach::Peer { protection, .. } => protection.identity().cloned(),
            Reach::Parties { identity, .. } => Some(identity.clone()),
        }
    }
}

/// Prepares a party and calls `then` with it. `load` reads the data for its computation.
///
/// # Errors
/// The errors of our own side (identity, addresses, data, gate), and the errors of `then`.
pub fn ready<T>(
    plan: &PartyPlan,
    load: impl for<'j> FnOnce(&'j PartySpec, &Watch<'_>) -> Result<Data<'j>>,
    front: &dyn Front,
    then: impl FnOnce(Ready<'_>) -> Result<T>,
) -> Result<T> {
    let party = &plan.party;
    plan.warnings.iter().for_each(|warning| front.warn(warning));
    plan.notes.iter().for_each(|note| front.say(note));
    if let Some(wrong) = wrong_clock(SystemTime::now()) {
        front.warn(&wrong);
    }
    let reach = Reach::new(&plan.others, front)?;
    let identity = reach.identity();
    let stop = front.stop();
    let read = |bytes| {
        front.read(bytes);
        go_on(&*stop)
    };
    let watch = Watch { read: &read, begins: &|phase| front.phase(Some(phase)) };
    let data = load(party, &watch)?;
    let mut rng = Prng::from_os()?;
    let prepared = data.prepare(identity.as_deref(), &watch, &mut rng)?;
    let kept = data.keep(identity.as_deref(), plan.others.peer(), &mut rng)?;
    let prepared = match &kept {
        Some(kept) => prepared.keeping(kept),
        None => prepared,
    };
    front.phase(None);
    let repeated = match (party.shape(), party.source.duplicates(party.has_values())) {
        (Shape::Identifiers, _) => "with the identifier of the first",
        (_, Duplicates::Add) => "added to the first",
        (_, Duplicates::All) => "kept with it",
        _ => "omitted",
    };
    tell(&data.facts(), repeated, &|line| front.say(line), &|line| front.warn(line));
    tell_unread(&data.facts(), &|line| front.warn(line));
    if let Some((kept, all)) = kept.as_ref().and_then(InFolder::progress) {
        front.say(&format!("the job goes on: {kept} of its {all} shards are complete on our side"));
    }
    let warn = |text: &str| front.warn(text);
    let setup = Setup {
        policy: &plan.policy,
        audit_log: plan.audit_log.as_deref(),
        identity: identity.as_deref(),
        prepared: party.prepared.is_some(),
        allow_small: plan.allow_small,
        checked: plan.review.as_ref().zip(plan.checked.as_deref()),
        warn: &warn,
    };
    let gate = Gate::new(prepared.request(), setup)?;
    then(Ready { plan, data: &data, kept: kept.as_ref(), prepared, gate, reach, rng, front })
}

impl Ready<'_> {
    /// Creates the files that the run writes.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn files(&self) -> Result<Files> {
        let party = &self.plan.party;
        let watched = |output: Destination| {
            let stop = self.front.stop();
            output.watched(move || go_on(&*stop))
        };
        // The report is not watched: once the result exists, a request to stop must not make the run look stopped.
        let report = |path| Destination::create("report", Some(path), party.force);
        let output = if party.in_memory { None } else { party.create_output()? };
        Ok(Files {
            output: output.map(watched),
            ids: party.create_ids()?.map(watched),
            map: party.create_map()?.map(watched),
            report: self.plan.report.as_deref().map(report).transpose()?,
        })
    }

    /// Connects, and runs the protocol.
    ///
    /// # Errors
    /// The errors of the connection, and of [`party::run`].
    pub fn run(mut self) -> Result<Ran> {
        let mut connected = self.connect().map_err(|error| going_on(self.kept, error))?;
        let (party, front) = (&self.plan.party, self.front);
        front.begins(connected.canceller());
        if let Connected::Peer(connection) = &mut connected
            && let Some(observer) = front.observer()
        {
            connection.channel.observe(observer);
        }
        if let Some(me) = &party.spec.parties
            && party.spec.several()
        {
            front.together(me.others().count());
        }
        let ran = party::run(connected, self.prepared, Some(&mut self.gate), &mut self.rng);
        front.ends(ran.is_ok());
        if let (Err(Error::Cancelled), Some(kept)) = (&ran, self.kept)
            && kept.has_begun()
        {
            front.say(&format!("{}.", kept_shards()));
        }
        ran.map_err(|error| going_on(self.kept, error))
    }

    /// Connects, and agrees with the others without computing anything. Returns the agreement, and the cost of the run for our
    /// side.
    ///
    /// # Errors
    /// The errors of the connection, and of [`run::check`]; [`Error::Output`] if the check cannot be written.
    pub fn check(mut self) -> Result<(Checked, Estimate)> {
        let path = self.plan.checked.as_deref();
        // Created before we contact any other party.
        let file = path.map(|path| Destination::create("check", Some(path), false)).transpose()?;
        let connected = self.connect()?;
        self.front.begins(connected.canceller());
        let half = self.plan.party.prepared.is_some();
        let speeds = self.speeds();
        let estimate = |proposal: &Proposal| Estimate::of(proposal, half, &speeds);
        let milliseconds = |proposal: &Proposal| Ok(estimate(proposal)?.work.as_millis() as u64);
        let checked = run::check(connected, &self.prepared, &mut self.gate, &milliseconds, &mut self.rng)?;
        let ours = estimate(&checked.proposal)?;
        if let Some(mut file) = file {
            let our = self.reach.identity().map(|identity| identity.fingerprint());
            let line = Review::of(our, self.plan.party.reviewed_columns(), &checked.proposal).to_line()?;
            writeln!(file.writer(), "{line}").map_err(|e| file.unwritable(&e))?;
            file.commit()?;
        }
        Ok((checked, ours))
    }

    /// Returns the speeds of this machine.
    fn speeds(&self) -> Speeds {
        speeds(None, self.prepared.request().local.threads.count(), &mut |line| self.front.say(line))
    }

    /// Connects to all other parties.
    fn connect(&self) -> Result<Connected> {
        self.front.waits();
        let (stop, timeouts) = (self.front.stop(), self.plan.timeouts);
        let cancelled = || stop();
        let say = |line: &str| self.front.say(line);
        match &self.reach {
            Reach::Peer { endpoint, protection, name } => {
                let mut connection = establish(endpoint, protection, timeouts, &cancelled, &say)?;
                connection.peer_name.clone_from(name);
                Ok(connection.into())
            }
            Reach::Parties { me, listen, identity } => {
                let listen = listen.map_or(ListenAt::Listed, ListenAt::Address);
                let others = assemble(me, identity, listen, timeouts, &cancelled, &say)?;
                Ok(others.into())
            }
        }
    }
}

/// Returns the note on how an interrupted job continues.
fn kept_shards() -> String {
    format!("The job keeps the shards that are done: both sides go on with {RESUME}")
}

/// Adds to the error of a run how to continue, if this folder keeps its job.
pub fn going_on(kept: Option<&InFolder>, error: Error) -> Error {
    let said = error.marked().contains(RESUME.marked());
    match kept {
        Some(kept) if kept.has_begun() && !said => error.and(&kept_shards()),
        _ => error,
    }
}
