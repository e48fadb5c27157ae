//! What the functions of a run pass on to each other: the channel, the session, the generator, and the threads.
//!
//! The fields are public and plain, so that the two halves of a duplex step can borrow one each.

use crate::channel::Channel;
use crate::hash::SessionId;
use crate::params::LAMBDA;
use crate::rng::Prng;
use crate::threads::Threads;

/// What one party's part of a run works with.
pub struct Context<'a> {
    /// The connection to the peer.
    pub ch: &'a mut Channel,
    /// Names the session: it is in the domain of every hash.
    pub session: SessionId,
    /// The source of all secrets.
    pub rng: &'a mut Prng,
    /// The statistical error, 2^-`exponent`, of each of its kinds: [`LAMBDA`], or more if it is one
    /// of the shards of a job ([`crate::operations::Terms::exponent`]).
    pub exponent: u32,
    /// Where everything that takes more than one thread is computed.
    pub threads: &'a Threads,
}

impl<'a> Context<'a> {
    /// The context of a session, on all threads of the program ([`Threads::global`]).
    pub fn new(ch: &'a mut Channel, session: &SessionId, rng: &'a mut Prng) -> Context<'a> {
        Context { ch, session: *session, rng, exponent: LAMBDA, threads: Threads::global() }
    }
}
