//! The groups of the protocols. This file defines their interface; `curve25519`, `p256` and `ristretto255` implement it.

/// Implements [`Point`] for an array of this many bytes. The type's `received` checks what a peer sends.
macro_rules! encoded {
    ($point:ident, $size:literal) => {
        impl AsRef<[u8]> for $point {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl $crate::group::Point for $point {
            fn of_ours(bytes: &[u8]) -> Option<$point> {
                bytes.try_into().ok().map($point)
            }
        }

        impl $crate::channel::Wire for $point {
            const SIZE: usize = $size;
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0);
            }
            fn get(bytes: &[u8]) -> Result<Self, &'static str> {
                $point::received(bytes.try_into().map_err(|_| "of the wrong size")?)
            }
        }
    };
}
pub mod curve25519;
pub mod encoding;
#[cfg(feature = "p256")]
pub mod p256;
pub mod raised;
pub mod ristretto255;

use crate::channel::Wire;
use crate::hash::ItemHash;
use crate::rng::Prng;
use crate::work::Primitive;
use curve25519::Curve25519;
#[cfg(feature = "p256")]
use p256::{P256, P256Compressed};
use ristretto255::Ristretto255;
use zeroize::Zeroize;

/// A group with a hash to the group for items, and the commutative weak PRF F_k(H(x)) = H(x)^k (CZZDL 5.2). Functions
/// take batches: the kernels work on many points at once, and threads share them.
///
/// Security: decisional Diffie-Hellman in the group, H a random oracle into it.
pub trait Group: Copy + Default + Send + Sync + 'static {
    /// The name as typed by users.
    const NAME: &'static str;
    /// The assumption of the PRF, for reports.
    const ASSUMPTION: &'static str;
    /// Number of bytes that [`Group::map_and_raise`] and [`Group::raise`] hold per point, in addition to arguments and
    /// results.
    const ROOM: usize;
    /// The primitive as which a multiplication is counted.
    const MULTIPLICATION: Primitive;
    /// A description of the points that [`Group::raise`] rejects.
    const UNFIT: &'static str;
    /// A key of the PRF.
    type Key: Key;
    /// A value of the PRF.
    type Point: Point;

    /// Returns F_k(H(x)) for the hash of each item or dummy.
    ///
    /// # Errors
    /// If an item hashes to an unfit point, which happens with negligible probability.
    fn map_and_raise(hashes: &[ItemHash], key: &Self::Key) -> Result<Vec<Self::Point>, Unfit>;

    /// Returns F_k(P) for each point.
    ///
    /// # Errors
    /// If a point is unfit ([`Group::UNFIT`]), for instance because its multiple would be the same for all keys. Whether a
    /// point is unfit is public.
    fn raise(points: &[Self::Point], key: &Self::Key) -> Result<Vec<Self::Point>, Unfit>;
}

/// A secret key of a PRF, zeroized on drop.
pub trait Key: Sized + Send + Sync {
    /// Length of a key in bytes.
    const BYTES: usize;

    /// Draws a fresh key.
    fn random(rng: &mut Prng) -> Self;

    /// Draws a fresh key and its inverse. Applying both leaves a value of the PRF unchanged.
    fn with_inverse(rng: &mut Prng) -> (Self, Self);

    /// Returns the key's bytes, which must be kept secret.
    fn as_bytes(&self) -> &[u8];

    /// Restores one of our keys from its bytes; `None` for bytes that are detectably not one.
    fn of_ours(bytes: &[u8]) -> Option<Self>;
}

/// An encoded point. [`Wire`] gives its length, and equal points have equal encodings.
pub trait Point: Wire + AsRef<[u8]> + Copy + Eq + Zeroize + Send + Sync {
    /// Restores one of our points from its bytes; `None` if the length is wrong.
    fn of_ours(bytes: &[u8]) -> Option<Self>;
}

/// The error for a point that an honest party never sends ([`Group::UNFIT`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit;

/// A computation in a group of which only the name is known ([`with`]).
pub trait InGroup {
    /// The result of the computation.
    type Output;
    /// Runs the computation in the group `G`.
    fn run<G: Group>(self) -> Self::Output;
}

/// Runs `work` in the group of this name, if there is one. This is where names become types, for all groups.
pub fn with<W: InGroup>(name: &str, work: W) -> Option<W::Output> {
    Some(match name {
        Curve25519::NAME => work.run::<Curve25519>(),
        #[cfg(feature = "p256")]
        P256::NAME => work.run::<P256>(),
        #[cfg(feature = "p256")]
        P256Compressed::NAME => work.run::<P256Compressed>(),
        Ristretto255::NAME => work.run::<Ristretto255>(),
        _ => return None,
    })
}

/// Public parameters of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The group's name ([`Group::NAME`]).
    pub name: &'static str,
    /// The length of a key in bytes.
    pub key: usize,
    /// The length of a point in bytes.
    pub point: usize,
    /// Number of bytes held per point during computation ([`Group::ROOM`]).
    pub room: usize,
    /// The group's assumption ([`Group::ASSUMPTION`]).
    pub assumption: &'static str,
    /// The primitive as which a multiplication is counted ([`Group::MULTIPLICATION`]).
    pub multiplication: Primitive,
}

/// Returns the public parameters of the group of this name, if there is one.
pub fn facts(name: &str) -> Option<Facts> {
    struct Read;
    impl InGroup for Read {
        type Output = Facts;
        fn run<G: Group>(self) -> Facts {
            let (key, point) = (G::Key::BYTES, G::Point::SIZE);
            Facts {
                name: G::NAME,
                key,
                point,
                room: G::ROOM,
                assumption: G::ASSUMPTION,
                multiplication: G::MULTIPLICATION,
            }
        }
    }
    with(name, Read)
}

#[cfg(test)]
pub(crate) mod tests;
