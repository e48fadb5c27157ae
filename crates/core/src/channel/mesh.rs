//! The channels of one party of a run to all others, which end together: one channel in a run of two, a mesh in a larger run.
//!
//! When a step with one party fails, [`Mesh`] gives up on all others: it sends each the kind of the reason, and the
//! number of the party at fault. So all parties stop soon, and name the same one.
//!
//! **Which party we name.** A party that gives up can accuse any other. So the error names accuser and accused, and our
//! own observations take precedence: if the accused has left too, its own abort message is the error, or else the end
//! of its connection. We wait for these for half a second, because the accusation may arrive first. If nothing arrives,
//! the error is the accusation: "party 2: east gave up because it has no connection with party 3 (south), it says". In
//! either case we name the accused to the others, and report whether we observed the failure or were told.

use super::clock::Moment;
use super::{Canceller, Channel, Link, Names, Rx, Stopper, Tx, caught, queue};
use crate::error::{Error, Fault, Result, Seat};
use crate::threads;
use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Time to wait for our own observation of an accused party.
const GRACE: Duration = Duration::from_millis(500);

/// Our channels to all other parties of a run, which fail and end together.
pub struct Mesh {
    ours: Seat,
    /// Channels, ordered by seat.
    links: Vec<(Seat, Channel)>,
}

impl Mesh {
    /// The maximum number of parties.
    pub const MOST: usize = 32;

    /// Wraps the channels of the party at seat `ours`, ordered by seat, as `veilset::net::assemble` returns them; or, if `ours`
    /// is [`Seat::PEER`], the channel to the other party of a run of two.
    ///
    /// # Errors
    /// [`Error::Bug`] if the channels are not ordered by seat, or do not belong to a run.
    pub fn new(ours: Seat, links: Vec<(Seat, Channel)>) -> Result<Mesh> {
        let seats: Vec<_> = links.iter().map(|(seat, _)| *seat).collect();
        let numbered = seats.iter().chain([&ours]).all(|seat| seat.number().is_some());
        let of_list = numbered && seats.is_sorted_by(|a, b| a < b) && !seats.contains(&ours);
        match of_list || ours == Seat::PEER && seats == [Seat::PEER] {
            true => Ok(Mesh { ours, links }),
            false => Err(Error::Bug("channels that are not those of one party of a run".into())),
        }
    }

    /// Wraps the channel to the other party of a run of two.
    pub fn of_two(channel: Channel) -> Mesh {
        Mesh { ours: Seat::PEER, links: vec![(Seat::PEER, channel)] }
    }

    /// Returns the meshes of all parties within this process, unprotected, for tests and benchmarks. They use
    /// [`Channel::pair`]. `parties` is at most [`Mesh::MOST`].
    pub fn in_memory(parties: usize) -> Vec<Mesh> {
        let names: Names = (0..parties.min(Mesh::MOST)).map(|_| String::new()).collect();
        let parties = numbers().map(Seat::numbered).zip(channels_among(names));
        parties.map(|(ours, links)| Mesh { ours, links }).collect()
    }

    /// Waits at least this long for a party that is alive but makes no progress.
    pub fn be_patient(&mut self, at_least: Duration) {
        self.links.iter_mut().for_each(|(_, channel)| channel.be_patient(at_least));
    }

    /// Returns our own seat.
    pub fn ours(&self) -> Seat {
        self.ours
    }

    /// Returns the seats of all other parties, in order.
    pub fn seats(&self) -> impl Iterator<Item = Seat> {
        self.links.iter().map(|(seat, _)| *seat)
    }

    /// Returns the channel to this party, for uses that affect no other: observing, recording, counting. Steps of the
    /// run need [`Mesh::with`] or a similar method.
    pub fn channel(&mut self, seat: Seat) -> Option<&mut Channel> {
        self.links.iter_mut().find(|(other, _)| *other == seat).map(|(_, channel)| channel)
    }

    /// Returns a handle that stops the run from outside: it notifies all others, and makes every step return
    /// [`Error::Cancelled`].
    pub fn canceller(&self) -> Canceller {
        self.links.iter().map(|(_, channel)| channel.canceller()).collect()
    }

    /// Returns the channel of a run of two; `None` among several.
    pub fn only(&mut self) -> Option<&mut Channel> {
        match &mut self.links[..] {
            [(_, channel)] => Some(channel),
            _ => None,
        }
    }

    /// Runs a step with one other party. If it fails, the run fails, and all others are notified.
    ///
    /// # Errors
    /// The step's error, which names the party that caused it, as far as known; [`Error::Bug`] if there is no party at
    /// this seat.
    pub fn with<T>(&mut self, seat: Seat, step: impl FnOnce(&mut Channel) -> Result<T>) -> Result<T> {
        let at = self.place(seat)?;
        step(&mut self.links[at].1).map_err(|error| self.fail_at(at, error))
    }

    /// Runs a step that receives from one party and sends to another, or to the same one. An invalid message is its
    /// sender's fault.
    ///
    /// # Errors
    /// The errors of [`Mesh::with`].
    pub fn between<T>(
        &mut self,
        from: Seat,
        to: Seat,
        step: impl FnOnce(&mut Rx, &mut Tx) -> Result<T>,
    ) -> Result<T> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let result = match self.links.get_disjoint_mut([from, to]) {
            Ok([(_, from), (_, to)]) => step(&mut from.rx, &mut to.tx),
            // The two parties are the same.
            Err(_) => {
                let channel = &mut self.links[from].1;
                step(&mut channel.rx, &mut channel.tx)
            }
        };
        result.map_err(|error| {
            let unsent = matches!(error, Error::Network(_)) && self.links[to].1.tx.failed;
            self.fail_at(if unsent { to } else { from }, error)
        })
    }

    /// Runs a step with each other party at once, each on its own thread, or on this one in a run of two. Returns the
    /// results, ordered by seat. If one fails, the run fails: all others are notified, and their steps end.
    ///
    /// # Errors
    /// The errors of [`Mesh::each_with`].
    pub fn each<T: Send>(&mut self, step: impl Fn(Seat, &mut Channel) -> Result<T> + Sync) -> Result<Vec<T>> {
        let inputs = self.seats().map(|seat| (seat, ())).collect();
        self.each_with(inputs, |seat, (), channel| step(seat, channel))
    }

    /// Runs a step with each of these parties and its input at once, each on its own thread, or on this one in a run of two.
    /// Returns the results in the order of the inputs. If one fails, the run fails: all parties are notified, including those
    /// without a step, and the other steps end.
    ///
    /// Steps may wait for each other at queues. An error about a queue that ended early never hides its cause.
    ///
    /// # Errors
    /// The error of the first step to fail, as from [`Mesh::with`]; [`Error::Bug`] for a seat without a party, or given
    /// twice.
    pub fn each_with<I: Send, T: Send>(
        &mut self,
        inputs: Vec<(Seat, I)>,
        step: impl Fn(Seat, I, &mut Channel) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        self.steps(inputs, &step)
    }

    /// [`Mesh::each_with`], compiled once for each kind of input and result.
    fn steps<I: Send, T: Send>(
        &mut self,
        inputs: Vec<(Seat, I)>,
        step: &(dyn Fn(Seat, I, &mut Channel) -> Result<T> + Sync),
    ) -> Result<Vec<T>> {
        let (mut order, mut waiting) = (Vec::new(), BTreeMap::new());
        let inputs = match (self.links.len(), <[_; 1]>::try_from(inputs)) {
            (1, Ok([(seat, input)])) => {
                return self.with(seat, |channel| step(seat, input, channel)).map(|result| vec![result]);
            }
            (_, Ok(one)) => one.into(),
            (_, Err(inputs)) => inputs,
        };
        for (seat, input) in inputs {
            let at = self.place(seat)?;
            order.push(at);
            if waiting.insert(at, input).is_some() {
                return Err(Error::bug(format!("two steps with {seat} at once")));
            }
        }
        let stoppers = self.links.iter().map(|(seat, channel)| (*seat, channel.stopper()));
        let (report, reports) = mpsc::channel();
        let mut steps = Steps {
            running: stoppers.enumerate().collect(),
            reports,
            results: BTreeMap::new(),
            causes: BTreeMap::new(),
            first: None,
            follows: None,
        };
        let begins = Moment::now();
        thread::scope(|scope| {
            for (at, (seat, channel)) in self.links.iter_mut().enumerate() {
                let Some(input) = waiting.remove(&at) else { continue };
                let seat = *seat;
                let (done, refused) = (report.clone(), report.clone());
                let run = move || {
                    begins.reach();
                    let result = caught("a step with another party", || step(seat, input, channel));
                    let result = result.map(|result| (result, Moment::now()));
                    // The receiver waits for all reports.
                    let _ = done.send((at, result.map_err(|error| Cause::of(seat, channel, error))));
                };
                if let Err(e) = threads::start(scope, run) {
                    let _ = refused.send((at, Err(Cause::from(e))));
                }
            }
            drop(report);
            steps.watch();
        });
        let Steps { mut results, causes, first, .. } = steps;
        match first {
            None => {
                let result = |at| {
                    let (result, ends): (T, Moment) = results.remove(at)?;
                    ends.reach();
                    Some(result)
                };
                let results = order.iter().map(result).collect::<Option<Vec<_>>>();
                results.ok_or_else(|| Error::Bug("a step ended without a result".into()))
            }
            Some(first) => Err(self.fail(causes, first)),
        }
    }

    /// Ends the run: if it failed, and no failed step has notified the others yet, notifies them; then closes the channels,
    /// within little more than 3 seconds.
    ///
    /// # Errors
    /// The error of `result`.
    pub fn finish<T>(self, result: Result<T>) -> Result<T> {
        // If a step has failed, the others were already notified, and this sends nothing.
        let cause = result.as_ref().err().map(|error| Cause::from(error.clone()));
        leave(self.links.into_iter().map(|(_, channel)| channel).collect(), cause.as_ref());
        result
    }

    /// The index of the channel to this party.
    fn place(&self, seat: Seat) -> Result<usize> {
        let place = self.seats().position(|other| other == seat);
        place.ok_or_else(|| Error::bug(format!("a step with {seat}, to which there is no connection")))
    }

    /// Gives up on all parties, because a step with this link failed.
    fn fail_at(&mut self, at: usize, error: Error) -> Error {
        let (seat, channel) = &mut self.links[at];
        let cause = Cause::of(*seat, channel, error);
        self.fail(BTreeMap::from([(at, cause)]), at)
    }

    /// Gives up on all parties, because steps with these links failed, the one with `first` before all others.
    fn fail(&mut self, causes: BTreeMap<usize, Cause>, first: usize) -> Error {
        let mut links: Vec<_> = self.links.iter_mut().map(|(seat, channel)| (*seat, channel)).collect();
        let cause = Cause::find(&mut links, causes, first);
        cause.tell(self.links.iter().map(|(_, channel)| channel));
        cause.error
    }
}

/// The party numbers, in ascending order.
fn numbers() -> impl Iterator<Item = NonZeroU8> {
    (1..=u8::MAX).filter_map(NonZeroU8::new)
}

/// Returns channels within this process among parties with these names, at most [`Mesh::MOST`]: for each party its
/// channels to all others, ordered by seat.
pub fn channels_among(names: Names) -> Vec<Vec<(Seat, Channel)>> {
    let mut all: Vec<Vec<(Seat, Channel)>> = (0..names.count()).map(|_| Vec::new()).collect();
    for (at, number) in (0..all.len()).zip(numbers()) {
        let (earlier, rest) = all.split_at_mut(at);
        let Some(own) = rest.first_mut() else { break };
        for (other, peer) in earlier.iter_mut().zip(numbers()) {
            let (here, there) = Channel::pair();
            let end = |links: &mut Vec<_>, mut channel: Channel, peer, ours| {
                channel.join(Link { peer, ours, names: names.clone() });
                links.push((Seat::numbered(peer), channel));
            };
            end(own, here, peer, number);
            end(other, there, number, peer);
        }
    }
    all
}

/// Concurrent steps with several parties.
struct Steps<T> {
    /// The links whose steps are still running, and links without a step that were not notified: the seat, and a handle
    /// to stop it.
    running: BTreeMap<usize, (Seat, Stopper)>,
    /// Receives the result of each step.
    reports: Receiver<(usize, Result<T, Cause>)>,
    results: BTreeMap<usize, T>,
    /// The causes of the steps that failed without being stopped by us.
    causes: BTreeMap<usize, Cause>,
    /// The first link to fail.
    first: Option<usize>,
    /// The first failure that was only a consequence of another step's end.
    follows: Option<(usize, Cause)>,
}

impl<T> Steps<T> {
    /// Waits until all steps have ended. The first error stops the others. If it is an accusation, the step with the
    /// accused may run a little longer, and its error takes precedence.
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
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // Without any other cause, it is a bug.
        if self.first.is_none()
            && let Some((at, cause)) = self.follows.take()
        {
            self.first = Some(at);
            self.causes.insert(at, cause);
        }
    }

    /// Records how a step ended. Returns whether it is the first to fail.
    fn note(&mut self, at: usize, result: Result<T, Cause>) -> bool {
        let stopped = self.running.remove(&at).is_none();
        match result {
            Ok(value) => {
                self.results.insert(at, value);
                false
            }
            // The step failed because we stopped it.
            Err(_) if stopped => false,
            // The cause is in another step.
            Err(cause) if queue::weight(&cause.error) == 0 => {
                self.follows.get_or_insert((at, cause));
                false
            }
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

    /// Gives up on all but the accused party, and sends them the first error.
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

/// The cause of a run's failure.
pub struct Cause {
    /// The error of the run.
    pub error: Error,
    /// The number of the party at fault; `None` if the fault is ours or nobody's, if the party is unknown, and in a run of two,
    /// which has no numbers.
    pub culprit: Option<NonZeroU8>,
    /// Whether the failure is known only from another party's accusation.
    reported: bool,
}

impl From<Error> for Cause {
    fn from(error: Error) -> Cause {
        let culprit = error.seat().and_then(Seat::number);
        Cause { error, culprit, reported: false }
    }
}

impl Cause {
    /// The cause for an error that is the fault of the party with this number.
    pub fn failure_of(number: NonZeroU8, error: Error) -> Cause {
        Cause { error, culprit: Some(number), reported: false }
    }

    /// The cause of an error in a step with the party at this seat, as far as its channel shows it.
    pub fn of(seat: Seat, channel: &mut Channel, error: Error) -> Cause {
        let error = channel.explain(error);
        // In a run of two, from a list too, every error is about the peer.
        let about_peer = error.seat() == Some(Seat::PEER) || seat == Seat::PEER;
        let error = if about_peer { error.by(seat) } else { error };
        let gave_up = error.fault() == Some(Fault::GaveUp);
        let accused = channel.accuses().filter(|_| gave_up);
        let own = match &error {
            Error::Network(_) => seat.number(),
            error => error.seat().and_then(Seat::number),
        };
        Cause { error, culprit: accused.or(own), reported: accused.is_some() }
    }

    /// The root cause of these failures, of which the one of link `first` came first: follows accusations from accuser
    /// to accused, as long as the accused has failed us or has left too. It stops at a party that it has
    /// followed already: a counter-accusation adds no information, because the accused often gives up only since its accuser
    /// gave up on it.
    pub fn find(
        links: &mut [(Seat, &mut Channel)],
        mut causes: BTreeMap<usize, Cause>,
        first: usize,
    ) -> Cause {
        let until = Instant::now() + GRACE;
        let mut found = Cause::from(Error::Bug("a step failed without an error".into()));
        let (mut next, mut asked) = (Some(first), Vec::new());
        while let Some(at) = next {
            asked.push(at);
            let (seat, channel) = &mut links[at];
            let seen = causes.remove(&at);
            let seen = seen.or_else(|| channel.departed(until).map(|error| Cause::of(*seat, channel, error)));
            let Some(cause) = seen else { break };
            let accused = cause.accused();
            next =
                accused.and_then(|number| links.iter().position(|(seat, _)| seat.number() == Some(number)));
            if next.is_some_and(|next| asked.contains(&next)) {
                break;
            }
            found = cause;
        }
        found
    }

    /// The number of the accused party, if an accusation is all that is known.
    fn accused(&self) -> Option<NonZeroU8> {
        self.culprit.filter(|_| self.reported)
    }

    /// Gives up on all of these channels.
    fn tell<'a>(&self, channels: impl IntoIterator<Item = &'a Channel>) {
        let stoppers = channels.into_iter().map(Channel::stopper);
        stoppers.for_each(|stopper| stopper.give_up(&self.error, self.culprit));
    }
}

/// Closes the channels, all at once, after sending the cause, if any.
pub fn leave(mut channels: Vec<Channel>, cause: Option<&Cause>) {
    if let Some(cause) = cause {
        cause.tell(&channels);
    }
    let last = channels.pop();
    thread::scope(|scope| {
        for channel in channels {
            // Without a thread the connection ends at once.
            let _ = thread::Builder::new().spawn_scoped(scope, move || channel.close());
        }
        last.into_iter().for_each(Channel::close);
    });
}

#[cfg(test)]
#[path = "mesh_tests.rs"]
mod tests;
