//! Additively homomorphic encryption: whoever has the public key can compute an encryption of a linear combination of
//! messages from encryptions of them. This file says what it is, the others how it is done.
//!
//! - Messages are elements of a ring, and constants and weights are too;
//! - *combine*: a **fresh** encryption of `constant + sum of weight * message`. Its randomness is that of an encryption
//!   made with the public key alone, of full range, whatever the randomness of the ciphertexts was. Their owner knows
//!   that, and could otherwise test guesses of the weights. So encrypting, adding, multiplying and re-randomising are
//!   one function here, and none of them without fresh randomness;
//! - the owner of the secret key decrypts, or, where an instance cannot, finds out whether a message is 0.
//!
//! Where several parties have a key each ([`joint`]), a message is an element of a group, and nothing is combined:
//! ciphertexts are re-randomised, decrypted by one party after the other, and shuffled on the way ([`shuffle`]).
//!
//! [`Cipher`] is the same for lists. The owner encrypts bits in bulk. Whoever has the public key adds some of them up and
//! answers with combinations of the sums, and the owner opens the answers.

pub mod elgamal;
pub mod joint;
#[cfg(feature = "paillier")]
pub mod paillier;
pub mod shuffle;

use crate::hash::SessionId;
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::work::Primitive;
pub use elgamal::{FirstMalformed, Malformed};

/// What an owner opens a message to. Whoever chose the message can compute it too: 32 bytes that only the two know, if the
/// message is uniform.
pub type Name = [u8; 32];

/// Additively homomorphic encryption of lists, of bits above all. Messages are integers modulo a number M that has no
/// factor below 2^16.
///
/// Security: IND-CPA. Answers are distributed as fresh encryptions of their messages, also to the owner who knows the
/// randomness of all that they are made from, if its key was made as it should be.
///
/// All functions compute on the pool of the thread that they are called on. They are constant-time in messages, weights
/// and keys. Which ciphertexts are loaded, added and selected shows in the addresses that they touch.
pub trait Cipher: Send + Sync {
    /// The secret key, which encrypts faster than the public one.
    type Owner: Send + Sync;
    /// The public key.
    type Key: Send + Sync;
    /// A list of ciphertexts to compute with.
    type List: Send + Sync;
    /// A list of numbers modulo M: messages and weights.
    type Numbers: Send + Sync;
    /// A list of messages, as far as the owner can tell them.
    type Opened: Send + Sync;

    /// Bytes of a public key.
    const KEY: usize;
    /// Bytes of an encrypted bit.
    const CELL: usize;
    /// Bytes of any other ciphertext.
    const CIPHERTEXT: usize;
    /// Bytes of a secret key that is kept.
    const SECRET: usize;
    /// What is wrong with malformed ciphertexts and keys, as the end of a sentence.
    const UNFIT: &'static str;
    /// About how much work it is.
    const EFFORT: Effort;
    /// Bytes of memory.
    const ROOM: Room;

    /// Draws a fresh key.
    fn generate(rng: &mut Prng) -> Self::Owner;

    /// The secret key, to be kept.
    fn save(owner: &Self::Owner) -> Secrets<u8>;

    /// The secret key that was kept; `None` for other bytes, as far as can be seen.
    fn restore(secret: &[u8]) -> Option<Self::Owner>;

    /// The public key, encoded, with a proof that it was made as it should be, if one is needed. Proofs are random, and for
    /// one purpose: lists with this seed.
    fn public(owner: &Self::Owner, seed: &SessionId, rng: &mut Prng) -> Vec<u8>;

    /// The peer's public key.
    ///
    /// # Errors
    /// If it is malformed, or not proven for this purpose.
    fn key(encoding: &[u8], seed: &SessionId) -> Result<Self::Key, Malformed>;

    /// Encrypts bits, each with fresh randomness; the first is number `first` of the list with this seed. A seed may be
    /// used for one list under one key.
    fn encrypt(owner: &Self::Owner, seed: &SessionId, first: u64, bits: &[bool], rng: &mut Prng) -> Vec<u8>;

    /// Checks encrypted bits as far as that is cheap, all that have come, whichever of them are loaded.
    ///
    /// # Errors
    /// The position of the first malformed one.
    fn check(key: &Self::Key, cells: &[u8]) -> Result<(), Malformed>;

    /// Encrypted bits, those with these numbers in the list with this seed. In place of a malformed one stands an
    /// encryption of 0. Also returns where the first one is: who sent them must not learn it, as it shows which ones are
    /// loaded.
    fn load(seed: &SessionId, numbers: &[u32], cells: &[u8]) -> (Self::List, FirstMalformed);

    /// So many encryptions of 0, without randomness.
    fn zeros(n: usize) -> Self::List;

    /// The length of a list.
    fn len(list: &Self::List) -> usize;

    /// Adds cells to sums: for each pair of positions, in ascending order, to the first the second.
    fn add(key: &Self::Key, sums: &mut Self::List, cells: &Self::List, pairs: &[(u32, u32)]);

    /// The ciphertexts at these positions, or encryptions of 0 in their place for positions from `n` on.
    fn select(list: &Self::List, positions: &[u32], n: usize) -> Self::List;

    /// Uniform numbers.
    fn uniform(key: &Self::Key, n: usize, rng: &mut Prng) -> Self::Numbers;

    /// Uniform numbers that are coprime to M.
    fn units(key: &Self::Key, n: usize, rng: &mut Prng) -> Self::Numbers;

    /// Fresh encryptions of constant + weight * message; without constants they are 0, and without weights 1.
    fn combine(
        key: &Self::Key,
        constants: Option<&Self::Numbers>,
        weights: Option<&Self::Numbers>,
        list: &Self::List,
        rng: &mut Prng,
    ) -> Vec<u8>;

    /// What the owner opens encryptions of these numbers to.
    fn names(numbers: &Self::Numbers) -> Secrets<Name>;

    /// Opens ciphertexts.
    ///
    /// # Errors
    /// The position of the first malformed one.
    fn open(owner: &Self::Owner, ciphertexts: &[u8]) -> Result<Self::Opened, Malformed>;

    /// Whether each message is 0.
    fn are_zero(opened: &Self::Opened) -> Secrets<bool>;

    /// The names of messages.
    fn opened_names(opened: &Self::Opened) -> Secrets<Name>;

    /// The names of the quotients of two lists of messages, where the divisors should be at most `most`; and what each
    /// divisor is, or more than `most`. Of a quotient by 0 or by more than `most` the name is of no use.
    fn quotients(
        owner: &Self::Owner,
        dividends: &Self::Opened,
        divisors: &Self::Opened,
        most: u32,
    ) -> (Secrets<Name>, Secrets<u32>);
}

/// About how much work a cipher takes: primitives, each times 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// What is counted.
    pub primitive: Primitive,
    /// To encrypt a bit.
    pub encrypt: usize,
    /// To check and load an encrypted bit.
    pub load: usize,
    /// To add it to a sum.
    pub add: usize,
    /// To combine.
    pub combine: usize,
    /// To open.
    pub open: usize,
}

/// Bytes of memory that a cipher takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For a ciphertext of a list.
    pub listed: usize,
    /// For an answer while it is opened.
    pub opened: usize,
    /// For an answer while it is made.
    pub answered: usize,
    /// For each thread.
    pub thread: usize,
    /// For the owner's tables.
    pub owner: usize,
}

#[cfg(test)]
mod tests;
