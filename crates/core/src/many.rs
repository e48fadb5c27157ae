//! The environment of one party in a run: a channel to each other party.
//!
//! Parties are numbered from 0, in the same way for all. Of two, the receiver is number 0. Of several, number 0 is the leader,
//! P_1 of the papers; number i is P_(i+1).
//!
//! A party interacts with all others at once, on a thread for each if there are several ([`Many::each`]). Such a thread waits
//! for its channel, and computes on the threads of the run. Each has its own generator, so its messages do not depend on which
//! thread is faster. All steps go through the [`Mesh`]: the first that fails ends all channels, so that no other waits forever,
//! and tells all parties whose failure it was, if that is known.

use crate::channel::{Channel, Mesh, Rx, Tx};
use crate::context::Context;
use crate::error::{Error, Result, Seat};
use crate::hash::SessionId;
use crate::rng::Prng;
use crate::threads::Threads;
use std::num::NonZeroU8;

/// One party's view of a run.
pub struct Many<'a> {
    /// The number of this party.
    pub me: usize,
    /// The channels to the other parties, each at its [`seat`]; or that of a run of two at [`Seat::PEER`], where steps need
    /// [`Many::with_peer`].
    pub mesh: &'a mut Mesh,
    /// The session with each other party, by number: it is in the domain of every hash of the two parties. At our own number
    /// it is the session of the run.
    pub pairs: Vec<SessionId>,
    /// The session of the run: it is in the domain of every hash that all parties share.
    pub session: SessionId,
    /// The source of all secrets.
    pub rng: &'a mut Prng,
    /// The exponent of the statistical error ([`Context::exponent`]).
    pub exponent: u32,
    /// The threads for all parallel computation.
    pub threads: &'a Threads,
}

/// Returns the seat of the party with this number in a run of several.
pub fn seat(party: usize) -> Seat {
    let number = u8::try_from(party + 1).ok().and_then(NonZeroU8::new);
    number.map_or(Seat::PEER, Seat::numbered)
}

impl Many<'_> {
    /// Returns the number of parties.
    pub fn parties(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the numbers of all other parties.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.parties()).filter(move |&party| party != me)
    }

    /// Runs the step of a protocol of two with the first other party.
    ///
    /// # Errors
    /// [`Error::Bug`] in a run of one, and the errors of [`Mesh::with`].
    pub fn with_peer<T>(&mut self, step: impl FnOnce(&mut Context) -> Result<T>) -> Result<T> {
        let peer = self.others().next().and_then(|party| self.pairs.get(party).copied());
        let (Some(session), Some(seat)) = (peer, self.mesh.seats().next()) else {
            return Err(Error::Bug("a run of one".into()));
        };
        let Many { mesh, rng, threads, exponent, .. } = self;
        mesh.with(seat, |ch| step(&mut Context { ch, session, rng, exponent: *exponent, threads }))
    }

    /// Runs a step with one other party.
    ///
    /// # Errors
    /// The errors of [`Mesh::with`].
    pub fn with<T>(&mut self, party: usize, step: impl FnOnce(&mut Channel) -> Result<T>) -> Result<T> {
        self.mesh.with(seat(party), step)
    }

    /// Runs a step that receives from one party and sends to another, or to the same.
    ///
    /// # Errors
    /// The errors of [`Mesh::between`].
    pub fn between<T>(
        &mut self,
        from: usize,
        to: usize,
        step: impl FnOnce(&mut Rx, &mut Tx) -> Result<T>,
    ) -> Result<T> {
        self.mesh.between(seat(from), seat(to), step)
    }

    /// Runs `step` with each other party, all at once. Returns the results in the order of the parties.
    ///
    /// # Errors
    /// The errors of [`Many::each_with`].
    pub fn each<T: Send>(
        &mut self,
        step: impl Fn(usize, &mut Context) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let inputs = self.others().map(|party| (party, ())).collect();
        self.each_with(inputs, |party, (), cx| step(party, cx))
    }

    /// Runs `step` with each of these parties and its input, all at once. Returns the results in the order of the inputs.
    ///
    /// # Errors
    /// [`Error::Bug`] for a party that is not in the run, and the errors of [`Mesh::each_with`].
    pub fn each_with<I: Send, T: Send>(
        &mut self,
        inputs: Vec<(usize, I)>,
        step: impl Fn(usize, I, &mut Context) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (rng, threads, exponent) = (self.rng.split(), self.threads, self.exponent);
        let pairs = &self.pairs;
        let inputs = inputs.into_iter().map(|(party, input)| {
            let session = pairs.get(party).copied();
            let session = session.ok_or_else(|| Error::bug(format!("a step with {}", seat(party))))?;
            Ok((seat(party), (party, input, session, rng.fork(party as u64))))
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        self.mesh.each_with(inputs, |_, (party, input, session, mut rng), ch| {
            step(party, input, &mut Context { ch, session, rng: &mut rng, exponent, threads })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_many;

    #[test]
    fn a_step_has_the_session_and_the_generator_of_its_pair() {
        let (drawn, _) = run_many(3, 1, |many| {
            let inputs =
                (0..3).rev().filter(|party| *party != many.me).map(|party| (party, 10 * party)).collect();
            many.each_with(inputs, |party, input, cx| {
                assert_eq!(input, 10 * party);
                Ok((party, cx.session, cx.rng.bytes::<16>()))
            })
        });
        let mut seen = std::collections::HashSet::new();
        for (me, steps) in drawn.iter().enumerate() {
            // In the order of the inputs.
            let parties: Vec<usize> = steps.iter().map(|(party, ..)| *party).collect();
            assert_eq!(parties, (0..3).rev().filter(|party| *party != me).collect::<Vec<_>>());
            for (party, session, random) in steps {
                let theirs = drawn[*party].iter().find(|(other, ..)| *other == me).unwrap();
                assert!(*session == theirs.1);
                assert!(seen.insert(*random));
            }
        }
    }

    #[test]
    fn nobody_has_a_step_with_itself_or_a_stranger() {
        run_many(2, 1, |many| {
            for party in [many.me, 2, 300] {
                let refused = many.each_with(vec![(party, ())], |_, (), _| Ok(())).unwrap_err();
                assert!(matches!(refused, Error::Bug(_)), "{refused:?}");
                assert!(matches!(many.with(party, |_| Ok(())), Err(Error::Bug(_))));
                assert!(matches!(many.between(party, 0, |_, _| Ok(())), Err(Error::Bug(_))));
            }
            Ok(())
        });
    }
}
