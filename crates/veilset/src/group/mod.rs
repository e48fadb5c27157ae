//! The groups in which the protocols work: this file defines what they provide, the others how.

pub mod curve25519;
pub mod raised;
pub mod ristretto255;

use crate::channel::Wire;
use crate::hash::ItemHash;
use crate::rng::Prng;
use zeroize::Zeroize;

/// A group with a hash of items into it, and the commutative weak PRF F_k(H(x)) = H(x)^k (CZZDL 5.2). Functions
/// take batches: the kernels work on many points at once, and threads share them.
///
/// Security: decisional Diffie-Hellman in the group, H a random oracle into it.
pub trait Group: Copy + Send + Sync + 'static {
    /// The name as typed.
    const NAME: &'static str;
    /// A description of the points that [`Group::raise`] rejects.
    const UNFIT: &'static str;
    /// A key of the PRF.
    type Key: Key;
    /// A value of the PRF.
    type Point: Point;

    /// F_k(H(x)) for the hash of each item or dummy.
    ///
    /// # Errors
    /// If an item hashes to an unfit point, which happens with negligible probability.
    fn map_and_raise(hashes: &[ItemHash], key: &Self::Key) -> Result<Vec<Self::Point>, Unfit>;

    /// F_k(P) for each point.
    ///
    /// # Errors
    /// If a point is unfit: its multiples would reveal nothing about the key, or it is not an element of the
    /// group. Whether a point is unfit is public.
    fn raise(points: &[Self::Point], key: &Self::Key) -> Result<Vec<Self::Point>, Unfit>;
}

/// A key of a PRF: secret, and zeroed on drop.
pub trait Key: Sized + Send + Sync {
    /// Its length in bytes.
    const BYTES: usize;

    /// Draws a fresh key.
    fn random(rng: &mut Prng) -> Self;

    /// Draws a fresh key and its inverse. Applying both leaves a value of the PRF unchanged.
    fn with_inverse(rng: &mut Prng) -> (Self, Self);

    /// The key's bytes. Keep them where nobody else can read them.
    fn as_bytes(&self) -> &[u8];

    /// Restores one of our keys from its bytes; `None` if the length is wrong.
    fn of_ours(bytes: &[u8]) -> Option<Self>;
}

/// A point as it is sent. Its length is given by [`Wire`], and equal points have equal encodings.
pub trait Point: Wire + AsRef<[u8]> + Copy + Eq + Zeroize + Send + Sync {
    /// Restores one of our points from its bytes; `None` if the length is wrong.
    fn of_ours(bytes: &[u8]) -> Option<Self>;
}

/// A point that no honest party sends ([`Group::UNFIT`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit;

#[cfg(test)]
pub(crate) mod tests {
    use super::curve25519::Curve25519;
    use super::ristretto255::Ristretto255;
    use super::*;
    use crate::testing::every_bit_is_random;
    use std::collections::HashSet;

    /// More than two batches of a kernel.
    const MANY: usize = 600;

    fn is_a_group<G: Group>() {
        let mut rng = Prng::from_seed(&[7; 32]);
        let all: Vec<ItemHash> = (0..MANY).map(|_| ItemHash::random(&mut rng)).collect();
        for n in [0, 1, 255, 256, 257, MANY] {
            let hashes = &all[..n];
            let (a, inverse) = G::Key::with_inverse(&mut rng);
            let b = G::Key::random(&mut rng);
            let [under_a, under_b] = [&a, &b].map(|key| G::map_and_raise(hashes, key).unwrap());
            // The PRF commutes, and a key can be removed.
            let under_ab = G::raise(&under_a, &b).unwrap();
            assert!(under_ab == G::raise(&under_b, &a).unwrap(), "{n}");
            assert!(under_b == G::raise(&under_ab, &inverse).unwrap(), "{n}");
            // Values depend on the item and on the key.
            let values: HashSet<&[u8]> =
                [&under_a, &under_b, &under_ab].into_iter().flatten().map(|p| p.as_ref()).collect();
            assert_eq!(values.len(), 3 * n);
            // What is stored or sent can be restored.
            let again = G::Key::of_ours(b.as_bytes()).unwrap();
            assert!(G::raise(&under_a, &again).unwrap() == under_ab && b.as_bytes().len() == G::Key::BYTES);
            for point in &under_a {
                let mut sent = Vec::new();
                point.put(&mut sent);
                assert!(sent.len() == G::Point::SIZE && sent == point.as_ref());
                assert!(G::Point::get(&sent) == Ok(*point) && G::Point::of_ours(&sent) == Some(*point));
            }
        }
        assert!(G::Key::of_ours(&[1; 3]).is_none() && G::Point::of_ours(&[1; 3]).is_none());
        let keys: Vec<Vec<u8>> = (0..400).map(|_| G::Key::random(&mut rng).as_bytes().to_vec()).collect();
        every_bit_is_random(&keys, 252);
    }

    #[test]
    fn each_is_a_group_with_a_commutative_prf() {
        is_a_group::<Curve25519>();
        is_a_group::<Ristretto255>();
    }

    #[test]
    fn unfit_points_are_refused_wherever_they_stand() {
        fn refuses<G: Group>(forged: &[[u8; 32]]) {
            let mut rng = Prng::from_seed(&[8; 32]);
            let hashes: Vec<ItemHash> = (0..MANY).map(|_| ItemHash::random(&mut rng)).collect();
            let key = G::Key::random(&mut rng);
            let good = G::map_and_raise(&hashes, &key).unwrap();
            for bytes in forged {
                for at in [0, 255, 256, MANY - 1] {
                    let mut points = good.clone();
                    // Some are already rejected when they are decoded.
                    let Ok(point) = G::Point::get(bytes) else { continue };
                    points[at] = point;
                    assert!(G::raise(&points, &key) == Err(Unfit), "{} {bytes:?} {at}", G::NAME);
                }
            }
        }
        let (mut one, mut two) = ([0; 32], [0; 32]);
        (one[0], two[0]) = (1, 2);
        refuses::<Curve25519>(&[one]);
        // The identity, a negative element, a non-square, and one that is not reduced.
        refuses::<Ristretto255>(&[[0; 32], one, two, [0xff; 32]]);
        assert!(super::ristretto255::Point::get(&[0; 32]).is_ok());
    }
}
