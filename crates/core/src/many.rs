//! What one party of a run of several works with: a channel to each other party.
//!
//! Parties have numbers from 0, the same for all. Number 0 is the leader, P_1 of the papers; number i is P_(i+1).
//!
//! What a party does with all others at once, it does on a thread for each of them ([`Many::each`]). Such a thread
//! waits for its channel, and computes on the threads of the run. Each has a generator of its own, so what it sends
//! does not depend on which of them is faster. All steps go through the [`Mesh`]: the first that fails ends all
//! channels, so that no other waits for ever, and all parties learn whose failure it was.

use crate::channel::{Channel, Mesh, Rx, Tx};
use crate::context::Context;
use crate::error::{Error, Result, Seat};
use crate::hash::SessionId;
use crate::params::LAMBDA;
use crate::rng::Prng;
use crate::threads::Threads;
use std::num::NonZeroU8;

/// One party's view of a run of several.
pub struct Many<'a> {
    /// Our number.
    pub me: usize,
    /// The channels to the others, each at its [`seat`].
    pub mesh: &'a mut Mesh,
    /// Names by number what we do with each other party: it is in the domain of every hash of the two. At our own
    /// number it is the session of the run.
    pub pairs: Vec<SessionId>,
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

impl Many<'_> {
    /// The number of parties.
    pub fn parties(&self) -> usize {
        self.pairs.len()
    }

    /// The numbers of all others.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.parties()).filter(move |&party| party != me)
    }

    /// A step with this party.
    ///
    /// # Errors
    /// Those of [`Mesh::with`].
    pub fn with<T>(&mut self, party: usize, step: impl FnOnce(&mut Channel) -> Result<T>) -> Result<T> {
        self.mesh.with(seat(party), step)
    }

    /// A step that receives from one party and sends to another, or to the same.
    ///
    /// # Errors
    /// Those of [`Mesh::between`].
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
    /// Those of [`Mesh::each_with`].
    pub fn each_with<I: Send, T: Send>(
        &mut self,
        inputs: Vec<(usize, I)>,
        step: impl Fn(usize, I, &mut Context) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (rng, threads, pairs) = (self.rng.split(), self.threads, &self.pairs);
        let inputs = inputs.into_iter().map(|(party, input)| {
            let session = pairs.get(party).copied();
            let session = session.ok_or_else(|| Error::bug(format!("a step with {}", seat(party))))?;
            Ok((seat(party), (party, input, session, rng.fork(party as u64))))
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        self.mesh.each_with(inputs, |_, (party, input, session, mut rng), ch| {
            step(party, input, &mut Context { ch, session, rng: &mut rng, exponent: LAMBDA, threads })
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
