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

pub mod elgamal;
pub mod joint;
pub mod shuffle;
