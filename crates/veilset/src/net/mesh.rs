//! The connections of one party of a mesh to all others, which end together.
//!
//! When a step with one party fails, [`Mesh`] gives up on all others: it tells each the kind of the reason, and the
//! number of the party whose failure it is. So everybody stops soon, and names the same party.
//!
//! **Whom we name.** A party that gives up can accuse anybody. So the error says who accuses whom, and what we see
//! ourselves takes precedence: if the party accused has left too, its own last words are the error, or else the end of
//! its connection. We wait for them for half a second, because the accusation may be faster than the news. If nothing
//! comes, the error is the accusation: "party 2: east gave up because it has no connection with party 3 (south), it says".
//! In either case the accused is the party that we name to the others. They are told whether we saw or only heard it.

use super::Connection;
use super::roster::Roster;
use crate::channel::{Canceller, Channel, Link, Names, Stopper, WireCount, caught};
use crate::error::{Error, Fault, Result, Seat};
use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long we wait for our own view of a party that was accused.
const GRACE: Duration = Duration::from_millis(500);

/// Our connections to all other parties of a run.
pub struct Mesh {
    ours: Seat,
    /// Ordered by seat.
    links: Vec<Connection>,
}

impl Mesh {
    /// Holds the connections of the party at the seat `ours`, as [`super::assemble`] returns them.
    ///
    /// # Errors
    /// [`Error::Bug`] if they are not ordered by seat, or not of a mesh.
    pub fn new(ours: Seat, connections: Vec<Connection>) -> Result<Mesh> {
        let seats: Vec<_> = connections.iter().map(|link| link.seat).collect();
        let numbered = seats.iter().chain([&ours]).all(|seat| seat.number().is_some());
        match numbered && seats.is_sorted_by(|a, b| a < b) && !seats.contains(&ours) {
            true => Ok(Mesh { ours, links: connections }),
            false => Err(Error::Bug("connections that are not those of one party of a mesh".into())),
        }
    }

    /// Meshes of all parties within this process, without protection: for tests and benchmarks. The channels are those
    /// of [`Channel::pair`]. There are at most [`Roster::MOST`] parties.
    pub fn in_memory(parties: usize) -> Vec<Mesh> {
        let numbers: Vec<_> =
            (1..=u8::MAX).filter_map(NonZeroU8::new).take(parties.min(Roster::MOST)).collect();
        let names: Names = numbers.iter().map(|_| String::new()).collect();
        let empty = |&number: &NonZeroU8| Mesh { ours: Seat::numbered(number), links: Vec::new() };
        let mut meshes: Vec<_> = numbers.iter().map(empty).collect();
        for (at, &number) in numbers.iter().enumerate() {
            let (earlier, rest) = meshes.split_at_mut(at);
            let Some(own) = rest.first_mut() else { break };
            for (other, &peer) in earlier.iter_mut().zip(&numbers) {
                let (here, there) = Channel::pair();
                let end = |mesh: &mut Mesh, mut channel: Channel, peer: NonZeroU8, ours: NonZeroU8| {
                    channel.join(Link { peer, ours, names: names.clone() });
                    let connection = Connection::unprotected(channel, WireCount::default());
                    mesh.links.push(Connection { seat: Seat::numbered(peer), ..connection });
                };
                end(own, here, peer, number);
                end(other, there, number, peer);
            }
        }
        meshes
    }

    /// Our own seat.
    pub fn ours(&self) -> Seat {
        self.ours
    }

    /// The connections, ordered by seat. Only [`Mesh::with`] and [`Mesh::each`] use them.
    pub fn links(&self) -> &[Connection] {
        &self.links
    }

    /// Stops the run from outside: tells all others, and makes every step return [`Error::Cancelled`].
    pub fn canceller(&self) -> Canceller {
        self.links.iter().map(|link| link.channel.canceller()).collect()
    }

    /// A step with one other party. If it fails, the run has failed: all others are told.
    ///
    /// # Errors
    /// The step's, which names the party that caused it, as far as we know. [`Error::Bug`] if nobody has this seat.
    pub fn with<T>(&mut self, seat: Seat, step: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let Some(at) = self.links.iter().position(|link| link.seat == seat) else {
            return Err(Error::Bug(format!("a step with {seat}, to which there is no connection")));
        };
        let link = &mut self.links[at];
        let result = step(link).map_err(|error| Cause::of(link, error));
        result.map_err(|cause| self.fail(BTreeMap::from([(at, cause)]), at))
    }

    /// Steps with all other parties at once, each on a thread of its own. Returns their results, ordered by seat. If
    /// one fails, the run has failed: all others are told, and their steps end.
    ///
    /// # Errors
    /// That of the step which failed first, like [`Mesh::with`].
    pub fn each<T: Send>(&mut self, step: impl Fn(&mut Connection) -> Result<T> + Sync) -> Result<Vec<T>> {
        let running = self.links.iter().map(|link| (link.seat, link.channel.stopper())).enumerate().collect();
        let (report, reports) = mpsc::channel();
        let (results, causes) = (BTreeMap::new(), BTreeMap::new());
        let mut steps = Steps { running, reports, results, causes, first: None };
        thread::scope(|scope| {
            for (at, link) in self.links.iter_mut().enumerate() {
                let (step, done, refused) = (&step, report.clone(), report.clone());
                let run = move || {
                    let result = caught("a step with another party", || step(link));
                    // The receiver waits for all reports.
                    let _ = done.send((at, result.map_err(|error| Cause::of(link, error))));
                };
                if let Err(e) = thread::Builder::new().spawn_scoped(scope, run) {
                    let _ = refused.send((at, Err(Cause::from(no_thread(&e)))));
                }
            }
            drop(report);
            steps.watch();
        });
        match steps.first {
            None => Ok(steps.results.into_values().collect()),
            Some(first) => Err(self.fail(steps.causes, first)),
        }
    }

    /// Ends the run: tells all others if it has failed for a reason of our own, and closes the connections, within
    /// little more than 3 seconds.
    ///
    /// # Errors
    /// That of `result`.
    pub fn finish<T>(self, result: Result<T>) -> Result<T> {
        // If a step has failed, they were told already, and this tells nobody.
        let cause = result.as_ref().err().map(|error| Cause::from(error.clone()));
        leave(self.links, cause.as_ref());
        result
    }

    /// Gives up on everybody, because steps with these links have failed, the one with `first` before all others.
    fn fail(&mut self, causes: BTreeMap<usize, Cause>, first: usize) -> Error {
        let cause = Cause::find(&mut self.links, causes, first);
        cause.tell(&self.links);
        cause.error
    }
}

/// The error if the system gives us no thread.
pub(super) fn no_thread(e: &std::io::Error) -> Error {
    Error::Usage(format!(
        "no thread can be started for a connection: {e}. Allow more of them, then run again"
    ))
}

/// Several steps at once.
struct Steps<T> {
    /// The steps that have neither ended nor been stopped: whom they are with, and what stops them.
    running: BTreeMap<usize, (Seat, Stopper)>,
    /// How each ended.
    reports: Receiver<(usize, Result<T, Cause>)>,
    results: BTreeMap<usize, T>,
    /// Why those failed that we did not stop.
    causes: BTreeMap<usize, Cause>,
    /// Which failed first.
    first: Option<usize>,
}

impl<T> Steps<T> {
    /// Waits until all have ended. The first error stops the others. If it is an accusation, the step with the accused
    /// party may go on for a moment: what it says takes precedence.
    fn watch(&mut self) {
        let mut until: Option<Instant> = None;
        loop {
            let report = match until {
                None => self.reports.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => self.reports.recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match report {
                Ok((at, result)) => {
                    if self.note(at, result) {
                        until = Some(Instant::now() + GRACE);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.stop(None);
                    until = None;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Notes how a step ended. Returns whether it is the first to fail.
    fn note(&mut self, at: usize, result: Result<T, Cause>) -> bool {
        let stopped = self.running.remove(&at).is_none();
        match result {
            Ok(value) => {
                self.results.insert(at, value);
                false
            }
            // Our stop is the reason.
            Err(_) if stopped => false,
            Err(cause) => {
                let accused = cause.accused();
                self.causes.insert(at, cause);
                let first = self.first.is_none();
                if first {
                    self.first = Some(at);
                    self.stop(accused);
                }
                first
            }
        }
    }

    /// Stops all but the step with the party that was accused. They learn of the first error.
    fn stop(&mut self, accused: Option<NonZeroU8>) {
        let Some(cause) = self.first.and_then(|first| self.causes.get(&first)) else { return };
        self.running.retain(|_, (seat, stopper)| {
            let stays = accused.is_some() && seat.number() == accused;
            if !stays {
                stopper.give_up(&cause.error, cause.culprit);
            }
            stays
        });
    }
}

/// Why a run ends.
pub(super) struct Cause {
    pub(super) error: Error,
    /// The number of the party whose failure it is; `None` if it is our own.
    culprit: Option<NonZeroU8>,
    /// Whether all that we know is that another party accused it.
    heard: bool,
}

impl From<Error> for Cause {
    fn from(error: Error) -> Cause {
        let culprit = error.seat().and_then(Seat::number);
        Cause { error, culprit, heard: false }
    }
}

impl Cause {
    /// An error that is the failure of the party with this number.
    pub(super) fn failure_of(number: NonZeroU8, error: Error) -> Cause {
        Cause { error, culprit: Some(number), heard: false }
    }

    /// The cause of an error in a step with this link, as far as the link shows it.
    pub(super) fn of(link: &mut Connection, error: Error) -> Cause {
        let error = link.channel.explain(error);
        let error = if error.seat() == Some(Seat::PEER) { error.by(link.seat) } else { error };
        let gave_up = error.fault() == Some(Fault::GaveUp);
        let accused = link.channel.accuses().filter(|_| gave_up);
        let own = match &error {
            Error::Network(_) => link.seat.number(),
            error => error.seat().and_then(Seat::number),
        };
        Cause { error, culprit: accused.or(own), heard: accused.is_some() }
    }

    /// The cause behind these failures, of which that of the link `first` came first: from the party that accuses to
    /// the one that it accuses, as long as that one has failed us or has left as well. Who only accuses back says
    /// nothing new: a party that we were told of has often heard that from the same party.
    pub(super) fn find(links: &mut [Connection], mut causes: BTreeMap<usize, Cause>, first: usize) -> Cause {
        let until = Instant::now() + GRACE;
        let mut found = Cause::from(Error::Bug("a step failed without an error".into()));
        let (mut next, mut asked) = (Some(first), Vec::new());
        while let Some(at) = next {
            asked.push(at);
            let link = &mut links[at];
            let seen = causes.remove(&at);
            let seen = seen.or_else(|| link.channel.departed(until).map(|error| Cause::of(link, error)));
            let Some(cause) = seen else { break };
            let accused = cause.accused();
            next =
                accused.and_then(|number| links.iter().position(|link| link.seat.number() == Some(number)));
            if next.is_some_and(|next| asked.contains(&next)) {
                break;
            }
            found = cause;
        }
        found
    }

    /// The number of the party that another one accuses, if that is all we know.
    fn accused(&self) -> Option<NonZeroU8> {
        self.culprit.filter(|_| self.heard)
    }

    /// Gives up on all of these.
    pub(super) fn tell(&self, links: &[Connection]) {
        links.iter().for_each(|link| link.channel.stopper().give_up(&self.error, self.culprit));
    }
}

/// Closes the connections, all at once, after telling the cause, if any.
pub(super) fn leave(links: Vec<Connection>, cause: Option<&Cause>) {
    if let Some(cause) = cause {
        cause.tell(&links);
    }
    thread::scope(|scope| {
        for link in links {
            // Without a thread the connection ends at once.
            let _ = thread::Builder::new().spawn_scoped(scope, move || link.channel.close());
        }
    });
}

#[cfg(test)]
#[path = "mesh_tests.rs"]
mod tests;
