//! Domain-separated hashing (BLAKE3).
//!
//! Nearly every hash in a protocol has a domain: its own name and the session id. So a value of one session or purpose is
//! meaningless in another. Hashes without a session ([`Domain::without_session`]) are exceptions, above all the hash of
//! items ([`crate::item`]): a party can hash, and compute `F_k(H(x))`, before it meets its peer (`veilset::artefact`).
//! There the key separates sessions, on one condition: a key, and all values computed under it, are used in one session
//! only, and discarded even if that session fails. If a key were used twice, the messages of both sessions could be
//! linked item by item.

use crate::rng::Prng;
use crate::secret::{Secret, Secrets};
use std::fmt;
use std::ops::Deref;
use veilset_kernels::hash::keyed_hash;
use zeroize::{Zeroize, optimization_barrier};

/// Identifies a session. It is not secret, but no two sessions may share one, so no party chooses its bytes.
/// `veilset::session` derives that of a run from what all parties said, who they are, and the chosen protocol; that of
/// two parties also from the secret of their connection. `veilset::session::introduce`, on a channel that the caller
/// provides, derives one from random bytes of both sides. Where a protocol runs more than once, [`part`] derives the id
/// of each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId([u8; 32]);

impl SessionId {
    /// Returns the id with this hash of data that is unique to the session.
    pub const fn of(hash: [u8; 32]) -> SessionId {
        SessionId(hash)
    }

    /// Returns the bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Returns the id of a part of a session, whose domains are separate from its other parts' domains. `name` is a
/// constant that is unique within the program.
pub fn part(session: &SessionId, name: &'static str) -> SessionId {
    SessionId(Domain::new(session, name).hash(&[]))
}

/// The hash of an item or of a dummy, 32 uniform bytes, which protocols use instead of the item.
///
/// Outside this crate, bytes become a hash only by [`ItemHash::from_bytes`], which is for the bytes of earlier hashes:
/// bytes chosen by an item's owner are never taken for a hash. Three kinds are not uniform: `Default`, the zeros of a
/// list before it is filled; the inputs of the private comparison of `krtw19`, an element and zeros; and the keys of a
/// programmable OPRF in bins, half a hash and the number of a bin. `Debug` shows nothing, because the hash suffices to
/// test guesses of the item.
#[derive(Clone, Copy, Default)]
#[cfg_attr(any(test, feature = "test-util"), derive(PartialEq, Eq, Hash))]
pub struct ItemHash([u8; 32]);

impl ItemHash {
    /// Returns the hash of an item.
    pub fn of_item(item: &[u8]) -> ItemHash {
        ItemHash(Self::of_items_domain().hash(&[item]))
    }

    /// Computes the hashes of items, of which there must be at least as many as elements of `out`.
    ///
    /// # Panics
    ///
    /// If there are fewer items, which is an error of the caller.
    pub fn of_items<'i>(items: impl Iterator<Item = &'i [u8]>, out: &mut [ItemHash]) {
        let mut hashes = Secrets::zeros(out.len());
        Self::of_items_domain().hash_all(items, &mut hashes);
        out.iter_mut().zip(hashes.iter()).for_each(|(out, hash)| out.0 = *hash);
    }

    fn of_items_domain() -> Domain {
        Domain::without_session("an item, BLAKE3-256, to be hashed to a group")
    }

    /// Returns the random hash of a dummy that matches nothing.
    pub fn random(rng: &mut Prng) -> ItemHash {
        ItemHash(rng.bytes())
    }

    /// Returns the function from the position of a dummy in the public list to its hash.
    pub fn listed() -> impl Fn(usize) -> ItemHash + Sync + Send {
        let domain = Domain::without_session("a dummy of the public list");
        move |i| ItemHash(domain.hash(&[&(i as u64).to_le_bytes()]))
    }

    /// Returns the hash with these bytes, which are uniform except for the kinds listed above.
    pub const fn from_bytes(bytes: [u8; 32]) -> ItemHash {
        ItemHash(bytes)
    }

    /// Returns the bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Deref for ItemHash {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for ItemHash {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ItemHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ItemHash(..)")
    }
}

/// A hash function for one purpose, in one session unless it was made without one.
#[derive(Clone)]
pub struct Domain {
    key: [u8; 32],
}

impl Zeroize for Domain {
    fn zeroize(&mut self) {
        self.key.zeroize();
    }
}

/// Maximum length of a message that is hashed without a `blake3::Hasher`, whose state is much larger. Nearly all
/// messages are this short.
const SHORT: usize = 192;
/// Number of messages hashed at once.
const BATCH: usize = 64;
/// Number of item hashes that are passed to a hash at once: 64 KiB.
const RUN: usize = 1 << 11;

impl Domain {
    /// Returns the hash function for `purpose`, a constant that is unique within the program.
    pub fn new(session: &SessionId, purpose: &'static str) -> Self {
        let mut key = blake3::Hasher::new_derive_key("veilset 1 domain");
        key.update(&session.0);
        key.update(purpose.as_bytes());
        Domain { key: *key.finalize().as_bytes() }
    }

    /// Returns a hash function without a session. For the hashes of items, the module's documentation states when this is
    /// secure. Any other use states why its values may be the same in two sessions.
    pub fn without_session(purpose: &'static str) -> Self {
        Domain { key: blake3::derive_key("veilset 1 domain without session", purpose.as_bytes()) }
    }

    /// Returns the hash function under a key that is used for one purpose only.
    pub fn under(key: &[u8; 32]) -> Secret<Self> {
        Secret::new(Domain { key: *key })
    }

    /// Returns a separate hash function for part `number` of this one's purpose.
    pub fn numbered(&self, number: u64) -> Self {
        Domain { key: self.hash(&[&number.to_le_bytes()]) }
    }

    /// Computes the hashes of the first `length` bytes of blocks whose other bytes are zero, in a third of the time of
    /// [`Domain::hash`] or less.
    ///
    /// # Panics
    ///
    /// If `length` is more than 64, or a batch of 64 blocks has more or fewer elements of `out`, which are errors of
    /// the caller.
    pub fn hash_blocks(&self, length: u8, blocks: &[[u8; 64]], out: &mut [[u8; 32]]) {
        let lengths = [length; BATCH];
        for (blocks, out) in blocks.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            keyed_hash(&self.key, &lengths[..blocks.len()], blocks, out);
        }
    }

    /// Computes the hashes of messages of any length, one for each element of `out`. Messages of up to 64 bytes take a
    /// third of the time of [`Domain::hash`] or less.
    ///
    /// # Panics
    ///
    /// If there are fewer messages than elements of `out`, which is an error of the caller.
    pub fn hash_all<'m>(&self, mut messages: impl Iterator<Item = &'m [u8]>, out: &mut [[u8; 32]]) {
        let (mut blocks, mut lengths) = (Secrets::<[[u8; 16]; 4]>::zeros(BATCH.min(out.len())), [0; BATCH]);
        for out in out.chunks_mut(BATCH) {
            let (mut long, mut found) = (Vec::new(), 0);
            let blocks = blocks[..out.len()].as_flattened_mut().as_flattened_mut().as_chunks_mut::<64>().0;
            for (i, (block, message)) in blocks.iter_mut().zip(&mut messages).enumerate() {
                let (start, rest) = block.split_at_mut(message.len().min(64));
                start.copy_from_slice(&message[..start.len()]);
                rest.fill(0);
                lengths[i] = start.len() as u8;
                found += 1;
                if message.len() > start.len() {
                    long.push((i, message));
                }
            }
            assert_eq!(found, out.len(), "hash_all: as many hashes as messages");
            keyed_hash(&self.key, &lengths[..out.len()], blocks, out);
            long.into_iter().for_each(|(i, message)| out[i] = self.hash(&[message]));
        }
    }

    /// Returns the hash of the concatenation of many hashes of items.
    pub fn hash_items(&self, items: &[ItemHash]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        let mut bytes = Secrets::<[u8; 32]>::zeros(RUN.min(items.len()));
        for items in items.chunks(RUN) {
            bytes.iter_mut().zip(items).for_each(|(bytes, item)| *bytes = item.0);
            hasher.update(bytes[..items.len()].as_flattened());
        }
        let hash = *hasher.finalize().as_bytes();
        hasher.zeroize();
        hash
    }

    /// Returns `N` bytes of the hash of the concatenated parts. The purpose fixes the length of every part except the
    /// last.
    pub fn hash<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        let mut out = [0u8; N];
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        if N <= blake3::OUT_LEN && length <= SHORT {
            let mut short = [0u8; SHORT];
            let mut rest = &mut short[..];
            for part in parts {
                let (here, behind) = rest.split_at_mut(part.len());
                here.copy_from_slice(part);
                rest = behind;
            }
            out.copy_from_slice(&blake3::keyed_hash(&self.key, &short[..length]).as_bytes()[..N]);
            short = [0; SHORT];
            optimization_barrier(&short);
        } else {
            let mut hasher = blake3::Hasher::new_keyed(&self.key);
            for part in parts {
                hasher.update(part);
            }
            let mut reader = hasher.finalize_xof();
            reader.fill(&mut out);
            // They hold the last part of the hashed data.
            hasher.zeroize();
            reader.zeroize();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_purposes_and_data_separate() {
        let hash = |session: u8, purpose, data: &[u8]| {
            Domain::new(&SessionId([session; 32]), purpose).hash::<16>(&[data])
        };
        let all = [
            hash(1, "a", b"x"),
            hash(2, "a", b"x"),
            hash(1, "b", b"x"),
            hash(1, "a", b"y"),
            Domain::without_session("a").hash(&[b"x"]),
            Domain::new(&part(&SessionId([1; 32]), "p"), "a").hash(&[b"x"]),
            Domain::new(&part(&SessionId([1; 32]), "q"), "a").hash(&[b"x"]),
            Domain::new(&part(&SessionId([2; 32]), "p"), "a").hash(&[b"x"]),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        assert_eq!(hash(1, "a", b"xy"), Domain::new(&SessionId([1; 32]), "a").hash(&[b"x", b"y"]));
    }

    #[test]
    fn numbers_separate_and_blocks_are_hashed_as_anything_else() {
        let domain = Domain::new(&SessionId([1; 32]), "a");
        let blocks: Vec<[u8; 64]> = (0..70).map(|i| [i; 64]).collect();
        for n in [0, 1, 15, 16, 17, 70] {
            let mut out = vec![[0; 32]; n];
            domain.numbered(3).hash_blocks(64, &blocks[..n], &mut out);
            for (block, out) in blocks.iter().zip(&out) {
                assert_eq!(*out, domain.numbered(3).hash::<32>(&[block]));
                assert_ne!(*out, domain.numbered(4).hash::<32>(&[block]));
                assert_ne!(*out, domain.hash::<32>(&[block]));
            }
        }
    }

    #[test]
    fn parts_of_a_session_separate() {
        let session = SessionId([1; 32]);
        let all = [
            session,
            SessionId([2; 32]),
            part(&session, "a"),
            part(&session, "b"),
            part(&SessionId([2; 32]), "a"),
            part(&part(&session, "a"), "a"),
        ];
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), all.len());
    }

    /// Without separate domains, an item of eight bytes could be a dummy.
    #[test]
    fn no_item_is_a_dummy_of_the_list() {
        let listed = ItemHash::listed();
        assert!((0..100).all(|i| listed(i) != ItemHash::of_item(&(i as u64).to_le_bytes())));
    }

    #[test]
    fn hashes_of_items_are_those_of_each_alone_and_do_not_show() {
        for n in [0, 1, RUN - 1, RUN, 2 * RUN + 3] {
            let items: Vec<Vec<u8>> = (0..n).map(|i| vec![i as u8; i * 7 % 130]).collect();
            let mut hashes = vec![ItemHash::default(); n];
            ItemHash::of_items(items.iter().map(Vec::as_slice), &mut hashes);
            assert!(items.iter().zip(&hashes).all(|(item, hash)| ItemHash::of_item(item) == *hash));
            let domain = Domain::without_session("a");
            let bytes: Vec<[u8; 32]> = hashes.iter().map(|hash| *hash.as_bytes()).collect();
            assert_eq!(domain.hash_items(&hashes), domain.hash::<32>(&[bytes.as_flattened()]));
        }
        assert_eq!(format!("{:?}", ItemHash::from_bytes([7; 32])), "ItemHash(..)");
    }

    #[test]
    fn all_are_hashed_as_each_alone() {
        let domain = Domain::new(&SessionId([1; 32]), "a");
        for n in [0, 1, BATCH - 1, BATCH, 2 * BATCH + 3] {
            let messages: Vec<Vec<u8>> = (0..n).map(|i| vec![i as u8; i * 7 % 130]).collect();
            let mut out = vec![[0; 32]; n];
            domain.hash_all(messages.iter().map(Vec::as_slice), &mut out);
            for (message, hash) in messages.iter().zip(&out) {
                assert_eq!(domain.hash::<32>(&[message]), *hash, "{}", message.len());
            }
        }
    }

    /// With fewer items, blocks of earlier messages would be hashed again.
    #[test]
    #[should_panic(expected = "as many hashes as messages")]
    fn fewer_items_than_hashes_are_refused() {
        let mut out = [ItemHash::default(); BATCH + 2];
        ItemHash::of_items([&b"a"[..]; BATCH + 1].into_iter(), &mut out);
    }

    #[test]
    fn short_and_long_are_the_same_function() {
        let domain = Domain::new(&SessionId([1; 32]), "a");
        for length in [0, 1, 31, 64, 65, SHORT - 1, SHORT, SHORT + 1, 1024, 1025, 5000] {
            let data: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let (first, second) = data.split_at(length / 3);
            let long: [u8; 64] = domain.hash(&[first, second]);
            let mut hasher = blake3::Hasher::new_keyed(&domain.key);
            let mut expected = [0; 64];
            hasher.update(&data).finalize_xof().fill(&mut expected);
            assert_eq!(long, expected);
            assert_eq!(domain.hash::<32>(&[first, second]), expected[..32]);
            assert_eq!(domain.hash::<16>(&[first, &[], second]), expected[..16]);
        }
    }
}
