//! What one party of a run of several works with: a channel to each other party.
//!
//! Parties have numbers from 0, the same for all. Number 0 is the leader, P_1 of the papers; number i is P_(i+1).
//!
//! What a party does with all others at once, it does on a thread for each of them ([`Many::each`]). Such a thread
//! waits for its channel, and computes on the threads of the run. Each has a generator of its own, so what it sends
//! does not depend on which of them is faster. The first step that fails ends all channels, so that no other waits
//! for ever.

use crate::channel::queue::weight;
use crate::channel::{Channel, Stopper, caught};
use crate::context::Context;
use crate::error::{Error, Result, Seat};
use crate::hash::SessionId;
use crate::rng::Prng;
use crate::threads::Threads;
use std::num::NonZeroU8;
use std::sync::{Mutex, PoisonError};

/// The connection to one other party.
pub struct Link<'a> {
    /// The channel.
    pub ch: &'a mut Channel,
    /// Names what these two parties do in the run: it is in the domain of every hash of the two.
    pub session: SessionId,
}

/// One party's view of a run of several.
pub struct Many<'a> {
    /// Our number.
    pub me: usize,
    /// The connections by number; `None` at our own.
    pub links: Vec<Option<Link<'a>>>,
    /// Names the run: it is in the domain of every hash of all parties together.
    pub session: SessionId,
    /// The source of all secrets.
    pub rng: &'a mut Prng,
    /// Where everything that takes more than one thread is computed.
    pub threads: &'a Threads,
}

/// The seat of the party with this number.
pub fn seat(party: usize) -> Seat {
    let number = u8::try_from(party + 1).ok().and_then(NonZeroU8::new);
    number.map_or(Seat::PEER, Seat::numbered)
}

impl<'a> Many<'a> {
    /// The number of parties.
    pub fn parties(&self) -> usize {
        self.links.len()
    }

    /// The numbers of all others.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.parties()).filter(move |&party| party != me)
    }

    /// The connection to this party.
    ///
    /// # Errors
    /// [`Error::Bug`] if there is none.
    pub fn link(&mut self, party: usize) -> Result<&mut Link<'a>> {
        let link = self.links.get_mut(party).and_then(Option::as_mut);
        link.ok_or_else(|| Error::Bug(format!("no connection to party {}", party + 1)))
    }

    /// The connections to two different parties.
    ///
    /// # Errors
    /// [`Error::Bug`] if there are none.
    pub fn two(&mut self, one: usize, other: usize) -> Result<[&mut Link<'a>; 2]> {
        match self.links.get_disjoint_mut([one, other]) {
            Ok([Some(one), Some(other)]) => Ok([one, other]),
            _ => Err(Error::Bug(format!("no connections to parties {} and {}", one + 1, other + 1))),
        }
    }

    /// Runs `step` with each other party, all at once. Returns the results in the order of the parties.
    ///
    /// # Errors
    /// Those of [`Many::each_with`].
    pub fn each<T: Send>(
        &mut self,
        step: impl Fn(usize, &mut Context) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let inputs = self.others().map(|party| (party, ())).collect();
        self.each_with(inputs, |party, (), cx| step(party, cx))
    }

    /// Runs `step` with each of these parties and what there is for it, all at once. Returns the results in the order
    /// of the inputs.
    ///
    /// # Errors
    /// That of the step that failed first, attributed to the party it was with. [`Error::Bug`] for a party that is
    /// ours, unknown, or there twice.
    pub fn each_with<I: Send, T: Send>(
        &mut self,
        inputs: Vec<(usize, I)>,
        step: impl Fn(usize, I, &mut Context) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (rng, threads, step) = (self.rng.split(), self.threads, &step);
        let fence = &Fence::around(&self.links);
        let mut links: Vec<Option<&mut Link>> = self.links.iter_mut().map(Option::as_mut).collect();
        let steps = inputs.into_iter().map(|(party, input)| {
            let link = links.get_mut(party).and_then(Option::take);
            Ok((party, input, link.ok_or_else(|| Error::Bug(format!("a step with party {}", party + 1)))?))
        });
        let steps = steps.collect::<Result<Vec<_>>>()?;
        std::thread::scope(|scope| {
            let steps = steps.into_iter().map(|(party, input, link)| {
                let mut rng = rng.fork(party as u64);
                scope.spawn(move || {
                    let mut cx = Context { ch: link.ch, session: link.session, rng: &mut rng, threads };
                    let done = caught("a step with one of several parties", || step(party, input, &mut cx));
                    done.map_err(|error| fence.note(party, cx.ch.explain(error))).ok()
                })
            });
            let steps: Vec<_> = steps.collect();
            let results =
                steps.into_iter().map(|step| step.join().ok().flatten()).collect::<Option<Vec<_>>>();
            results.ok_or_else(|| fence.error())
        })
    }
}

/// What ends all channels when a step fails.
struct Fence {
    stoppers: Vec<Stopper>,
    first: Mutex<Option<Error>>,
}

impl Fence {
    fn around(links: &[Option<Link>]) -> Fence {
        let stoppers = links.iter().flatten().map(|link| link.ch.stopper()).collect();
        Fence { stoppers, first: Mutex::new(None) }
    }

    /// The step with this party has failed.
    fn note(&self, party: usize, error: Error) {
        let error = match error {
            // The peer of this step is this party.
            Error::Peer { who: Seat::PEER, .. } => error.by(seat(party)),
            error => error,
        };
        let culprit = match &error {
            Error::Network(_) => seat(party).number(),
            error => error.seat().and_then(Seat::number),
        };
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if weight(&error) > 0 {
            self.stoppers.iter().for_each(|stopper| stopper.give_up(&error, culprit));
        }
        if first.as_ref().is_none_or(|first| weight(first) < weight(&error)) {
            *first = Some(error);
        }
    }

    fn error(&self) -> Error {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(|| Error::Bug("a step failed silently".into()))
    }
}
