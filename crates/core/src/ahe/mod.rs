//! Additively homomorphic encryption: a holder of the public key can compute an encryption of a linear combination of
//! messages from encryptions of them. This file defines the interface; `elgamal` and `paillier` implement it.
//!
//! - Messages, constants and weights are elements of a ring;
//! - *combine* makes a **fresh** encryption of `constant + sum of weight * message`. Its randomness has full range and is
//!   distributed as in an encryption under the public key alone, independent of the randomness of the inputs. The owner
//!   of the secret key knows the latter, and could otherwise test guesses of the weights. So a holder of the
//!   public key sends only what *combine* returns; sums that were only added up ([`Cipher::add`]) are never sent;
//! - the owner of the secret key decrypts or, where an instance cannot, tests whether a message is 0.
//!
//! Where several parties have a key each ([`joint`]), messages are group elements and cannot be combined: ciphertexts
//! are re-randomised, decrypted by one party after the other, and shuffled on the way ([`shuffle`]).
//!
//! [`Cipher`] is the interface for lists. The owner encrypts bits in bulk. A holder of the public key adds up some of
//! them and answers with combinations of the sums, and the owner opens the answers.

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

/// A 32-byte fingerprint to which the owner opens a message, and which the party that chose the message can compute
/// too. Only these two know it if the message is uniform.
pub type Name = [u8; 32];

/// Additively homomorphic encryption of lists, mainly of bits. Messages are integers modulo a number M that has no
/// factor below 2^16.
///
/// Security: IND-CPA. Answers are distributed as fresh encryptions of their messages, even to the owner, who knows the
/// randomness of all inputs, provided its key was generated correctly.
///
/// All functions compute on the pool of the calling thread. They are constant-time in messages, weights and keys, except
/// that making a Paillier key, and encrypting with it for the first time, reveal a little about its primes
/// (`veilset_kernels::paillier`). The memory addresses reveal which ciphertexts are loaded, added and selected.
pub trait Cipher: Send + Sync {
    /// The secret key, which encrypts faster than the public key.
    type Owner: Send + Sync;
    /// The public key, for computing on ciphertexts.
    type Key: Send + Sync;
    /// A list of ciphertexts to compute with.
    type List: Send + Sync;
    /// A list of numbers modulo M: messages and weights.
    type Numbers: Send + Sync;
    /// A list of decrypted messages, as far as the owner can recover them.
    type Opened: Send + Sync;

    /// Length of an encoded public key in bytes, with its proof if it has one.
    const KEY: usize;
    /// Length of an encrypted bit in bytes.
    const CELL: usize;
    /// Length of any other ciphertext in bytes.
    const CIPHERTEXT: usize;
    /// Length of a saved secret key in bytes.
    const SECRET: usize;
    /// A description of malformed ciphertexts and keys, for the end of an error message.
    const UNFIT: &'static str;
    /// Approximate work of each operation.
    const EFFORT: Effort;
    /// Memory of each kind of object, in bytes.
    const ROOM: Room;

    /// Generates a fresh key.
    fn generate(rng: &mut Prng) -> Self::Owner;

    /// Encodes the secret key for storage.
    fn save(owner: &Self::Owner) -> Secrets<u8>;

    /// Decodes a stored secret key; `None` for bytes that are detectably not one.
    fn restore(secret: &[u8]) -> Option<Self::Owner>;

    /// Returns the encoded public key, with a proof that it was generated correctly if the cipher needs one. Proofs are
    /// random, and valid only for lists with this seed.
    fn public(owner: &Self::Owner, seed: &SessionId, rng: &mut Prng) -> Vec<u8>;

    /// Decodes and verifies the peer's public key.
    ///
    /// # Errors
    /// [`Malformed`] if the key is malformed, or its proof does not hold for this seed.
    fn key(encoding: &[u8], seed: &SessionId) -> Result<Self::Key, Malformed>;

    /// Encrypts bits, each with randomness of its own, which is drawn, or derived from the seed and the bit's number; the first
    /// is number `first` of the list with this seed. A seed may be used for only one list under one key.
    fn encrypt(owner: &Self::Owner, seed: &SessionId, first: u64, bits: &[bool], rng: &mut Prng) -> Vec<u8>;

    /// Checks all received encrypted bits as far as that is cheap, whichever of them will be loaded.
    ///
    /// # Errors
    /// The position of the first malformed ciphertext.
    fn check(key: &Self::Key, cells: &[u8]) -> Result<(), Malformed>;

    /// Loads the encrypted bits with these numbers in the list with this seed, after [`Cipher::check`]. An encryption of 0
    /// replaces each malformed one that the check does not find. Also returns the position of the first of these. The
    /// owner of the key, which sent the ciphertexts, must not learn this position, as it reveals which bits are loaded.
    fn load(seed: &SessionId, numbers: &[u32], cells: &[u8]) -> (Self::List, FirstMalformed);

    /// Returns `n` encryptions of 0 without randomness.
    fn zeros(n: usize) -> Self::List;

    /// Returns the length of a list.
    fn len(list: &Self::List) -> usize;

    /// Adds cells to sums: for each pair (i, j) of positions, in ascending order, cell j to sum i.
    fn add(key: &Self::Key, sums: &mut Self::List, cells: &Self::List, pairs: &[(u32, u32)]);

    /// Returns the ciphertexts at these positions, with encryptions of 0 for positions from `n` on.
    fn select(list: &Self::List, positions: &[u32], n: usize) -> Self::List;

    /// Draws uniform numbers modulo M.
    fn uniform(key: &Self::Key, n: usize, rng: &mut Prng) -> Self::Numbers;

    /// Draws uniform numbers that are coprime to M.
    fn units(key: &Self::Key, n: usize, rng: &mut Prng) -> Self::Numbers;

    /// Returns fresh encryptions of constant + weight * message. Constants default to 0 and weights to 1.
    fn combine(
        key: &Self::Key,
        constants: Option<&Self::Numbers>,
        weights: Option<&Self::Numbers>,
        list: &Self::List,
        rng: &mut Prng,
    ) -> Vec<u8>;

    /// Returns the names to which the owner opens encryptions of these numbers.
    fn names(numbers: &Self::Numbers) -> Secrets<Name>;

    /// Opens ciphertexts.
    ///
    /// # Errors
    /// The position of a malformed ciphertext, not always the first.
    fn open(owner: &Self::Owner, ciphertexts: &[u8]) -> Result<Self::Opened, Malformed>;

    /// Returns whether each message is 0.
    fn are_zero(opened: &Self::Opened) -> Secrets<bool>;

    /// Returns the names of the opened messages.
    fn opened_names(opened: &Self::Opened) -> Secrets<Name>;

    /// Returns the names of the quotients of two lists of messages, and the value of each divisor, or `most + 1` if it
    /// is greater. The name is meaningless if the divisor is 0 or exceeds `most`.
    fn quotients(
        owner: &Self::Owner,
        dividends: &Self::Opened,
        divisors: &Self::Opened,
        most: u32,
    ) -> (Secrets<Name>, Secrets<u32>);
}

/// Approximate work of a cipher's operations, in hundredths of a primitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// The primitive that is counted.
    pub primitive: Primitive,
    /// Work to encrypt a bit.
    pub encrypt: usize,
    /// Work to check and load an encrypted bit.
    pub load: usize,
    /// Work to add an encrypted bit to a sum.
    pub add: usize,
    /// Work to combine ciphertexts into an answer.
    pub combine: usize,
    /// Work to open an answer.
    pub open: usize,
}

/// Memory that a cipher takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes per ciphertext of a list.
    pub listed: usize,
    /// Bytes per answer while it is opened.
    pub opened: usize,
    /// Bytes per answer while it is made.
    pub answered: usize,
    /// Bytes per thread.
    pub thread: usize,
    /// Bytes of the owner's tables.
    pub owner: usize,
}

#[cfg(test)]
mod tests;
