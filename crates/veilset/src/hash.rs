//! Domain-separated hashing (BLAKE3).
//!
//! Every use of a hash has a domain: a name of its own and the session id, so that a value of one session
//! or purpose means nothing in another. The one exception is the hash of items ([`crate::hashed`]), whose tag holds
//! the protocol version but no session id: a party may then hash, and compute `F_k(H(x))`, before it meets its peer
//! ([`crate::session::offline`]). The key separates sessions instead, on one condition: a key, and everything
//! computed under it, is used in one session only, and thrown away even if that one fails. Used twice, what two sessions
//! show could be joined item by item.

/// Identifies a session: a hash of everything the two sides agreed on, of both identities and of the TLS
/// connection. It is not secret.
pub type SessionId = [u8; 32];

/// The id of a part of a session that may stand beside other parts of the same kind: domains made from it
/// are not those of the other parts. `name` is a constant that is unique within the program.
pub fn part(session: &SessionId, name: &'static str) -> SessionId {
    Domain::new(session, name).hash(&[])
}

/// A hash function of its own for one purpose in one session.
#[derive(Clone)]
pub struct Domain(blake3::Hasher);

impl Domain {
    /// The hash function of `purpose`, a constant that is unique within the program.
    pub fn new(session: &SessionId, purpose: &'static str) -> Self {
        let mut key = blake3::Hasher::new_derive_key("veilset 1 domain");
        key.update(session);
        key.update(purpose.as_bytes());
        Domain(blake3::Hasher::new_keyed(key.finalize().as_bytes()))
    }

    /// A hash function without a session. See the module's documentation for when this is right.
    pub fn without_session(purpose: &'static str) -> Self {
        Domain(blake3::Hasher::new_keyed(&blake3::derive_key(
            "veilset 1 domain without session",
            purpose.as_bytes(),
        )))
    }

    /// `N` bytes of hash of the parts, of which all but the last have a length that the purpose fixes.
    pub fn hash<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        let mut hasher = self.0.clone();
        for part in parts {
            hasher.update(part);
        }
        let mut out = [0u8; N];
        hasher.finalize_xof().fill(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_purposes_and_data_separate() {
        let hash =
            |session: u8, purpose, data: &[u8]| Domain::new(&[session; 32], purpose).hash::<16>(&[data]);
        let all = [
            hash(1, "a", b"x"),
            hash(2, "a", b"x"),
            hash(1, "b", b"x"),
            hash(1, "a", b"y"),
            Domain::without_session("a").hash(&[b"x"]),
            Domain::new(&part(&[1; 32], "p"), "a").hash(&[b"x"]),
            Domain::new(&part(&[1; 32], "q"), "a").hash(&[b"x"]),
            Domain::new(&part(&[2; 32], "p"), "a").hash(&[b"x"]),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
        assert_eq!(hash(1, "a", b"xy"), Domain::new(&[1; 32], "a").hash(&[b"x", b"y"]));
    }
}
