//! The context that the functions of a run share: the channel, the session, the generator, and the threads.
//!
//! The fields are public and plain, so that the two halves of a duplex step can each borrow their own.

use crate::channel::Channel;
use crate::hash::SessionId;
use crate::params::LAMBDA;
use crate::rng::Prng;
use crate::threads::Threads;

/// The context of one party in a run.
pub struct Context<'a> {
    /// The connection to the peer.
    pub ch: &'a mut Channel,
    /// The id of the session, which is in the domain of its hashes.
    pub session: SessionId,
    /// The source of all secrets.
    pub rng: &'a mut Prng,
    /// The exponent of the statistical error, 2^-`exponent`, of each kind: [`LAMBDA`], or more for one of the shards of
    /// a job ([`crate::operations::Terms::exponent`]).
    pub exponent: u32,
    /// The threads for all multi-threaded computation.
    pub threads: &'a Threads,
}

impl<'a> Context<'a> {
    /// Returns the context of a session on all threads of the program ([`Threads::global`]).
    pub fn new(ch: &'a mut Channel, session: &SessionId, rng: &'a mut Prng) -> Context<'a> {
        Context { ch, session: *session, rng, exponent: LAMBDA, threads: Threads::global() }
    }
}
