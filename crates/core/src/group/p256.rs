//! P-256 (FIPS 186), a group of prime order, whose points are sent as both coordinates or as abscissae alone.
//!
//! Security: DDH on P-256, `H` a random oracle into the image of the map below. An item's hash is expanded to 48 bytes,
//! reduced modulo p, and mapped once with the simplified SWU map of RFC 9380 (as in its NU suites). 32 bytes would not
//! suffice. Since 2^256 = p + 2^224 - ..., one field element in 2^32 would come up twice as often as the others. With
//! 48 bytes the distance from uniform is below 2^-128, as the RFC asks.
//!
//! The image of a single map covers part of the curve, and not uniformly: at most four field elements map to the same
//! point. This is sufficient. The map is easily inverted, so a simulator that needs H(x) = P for a random P finds an
//! element for it, or draws another P. Every output is on the curve, never on its twist.
//!
//! The order is prime, so every point but the identity generates the group. Neither encoding represents the identity.
//!
//! **Abscissae.** P and -P share an abscissa, and the abscissa of k P depends only on the abscissa of P. So abscissae
//! commute like points, as on Curve25519, and equal items have equal values. 32 bytes carry the same information as the
//! 33 bytes of SEC 1, except for a sign that no protocol uses. Half of the numbers below p are not abscissae of the
//! curve but of its twist, and are refused. The check takes a square root, about an eighth of a multiplication.

use super::{Group, Unfit};
use crate::hash::{Domain, ItemHash};
use crate::rng::Prng;
use crate::secret::Secret;
use crate::work::Primitive;
use rayon::prelude::*;
use veilset_kernels::p256 as kernel;
use zeroize::{Zeroize, Zeroizing};

/// Points per kernel call: enough to share an inversion, few enough to distribute over threads.
const BATCH: usize = 256;

/// P-256 with points of 64 bytes: both coordinates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct P256;

/// P-256 with points of 32 bytes: the abscissa.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct P256Compressed;

/// The coordinates x and y, 32 bytes each, big-endian: the uncompressed form of SEC 1 without its constant first byte.
/// [`Group::raise`] rejects points from a peer that are not on the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Zeroize)]
pub struct Point([u8; 64]);

/// The abscissa of a point, big-endian. [`Group::raise`] rejects numbers from a peer that are not abscissae.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Zeroize)]
pub struct Abscissa([u8; 32]);

/// A form in which points are sent.
trait Form: super::Point {
    /// Encodes a point in this form.
    fn of(point: &kernel::Point) -> Self;
    /// Decodes points; `Err` for an abscissa that is not one of the curve. Whether [`Point`]s are on the curve is not
    /// checked here.
    fn points(sent: &[Self]) -> Result<Zeroizing<Vec<kernel::Point>>, Unfit>;
}

impl Form for Point {
    fn of(point: &kernel::Point) -> Point {
        Point(*point)
    }

    fn points(sent: &[Point]) -> Result<Zeroizing<Vec<kernel::Point>>, Unfit> {
        // The multiplication checks that they are on the curve.
        Ok(Zeroizing::new(sent.iter().map(|point| point.0).collect()))
    }
}

impl Form for Abscissa {
    fn of(point: &kernel::Point) -> Abscissa {
        let [x, _] = halves(point);
        Abscissa(*x)
    }

    fn points(sent: &[Abscissa]) -> Result<Zeroizing<Vec<kernel::Point>>, Unfit> {
        let mut points = Zeroizing::new(vec![[0; 64]; sent.len()]);
        let batches = sent.par_chunks(BATCH).zip(points.par_chunks_mut(BATCH));
        batches.try_for_each(|(sent, points)| {
            let mut x = Zeroizing::new([[0; 32]; BATCH]);
            x.iter_mut().zip(sent).for_each(|(x, sent)| *x = sent.0);
            kernel::lift(&x[..sent.len()], points).map_err(|_| Unfit)
        })?;
        Ok(points)
    }
}

/// The coordinates of a point.
fn halves(point: &kernel::Point) -> [&[u8; 32]; 2] {
    let [x, y] = point.as_chunks().0 else { return [&[0; 32]; 2] };
    [x, y]
}

/// A key of the PRF: a scalar, big-endian, at least 1 and below the order.
pub struct Key(Secret<[u8; 32]>);

impl Key {
    /// The first draw that is a valid key, as all but one in 2^32 are. The rejection of a draw reveals nothing about
    /// the next one.
    fn drawn(mut draw: impl FnMut() -> [u8; 32]) -> Key {
        loop {
            let key = Secret::new(draw());
            if kernel::is_scalar(&key) {
                return Key(key);
            }
        }
    }
}

impl super::Key for Key {
    const BYTES: usize = 32;

    fn random(rng: &mut Prng) -> Key {
        Key::drawn(|| rng.bytes())
    }

    fn with_inverse(rng: &mut Prng) -> (Key, Key) {
        let key = Key::random(rng);
        let inverse = Secret::new(kernel::inverse(&key.0));
        (key, Key(inverse))
    }

    fn as_bytes(&self) -> &[u8] {
        &self.0[..]
    }

    fn of_ours(bytes: &[u8]) -> Option<Key> {
        let bytes = Secret::new(bytes.try_into().ok()?);
        kernel::is_scalar(&bytes).then_some(Key(bytes))
    }
}

impl Group for P256 {
    const NAME: &'static str = "p256";
    const ASSUMPTION: &'static str = "decisional Diffie-Hellman on P-256";
    const MULTIPLICATION: Primitive = Primitive::P256;
    const ROOM: usize = size_of::<kernel::Point>();
    const UNFIT: &'static str = "a point that is not on P-256";
    type Key = Key;
    type Point = Point;

    fn map_and_raise(hashes: &[ItemHash], key: &Key) -> Result<Vec<Point>, Unfit> {
        map_and_raise(hashes, key)
    }

    fn raise(points: &[Point], key: &Key) -> Result<Vec<Point>, Unfit> {
        raise(points, key)
    }
}

impl Group for P256Compressed {
    const NAME: &'static str = "p256-compressed";
    const ASSUMPTION: &'static str = "decisional Diffie-Hellman on P-256";
    const MULTIPLICATION: Primitive = Primitive::P256Compressed;
    const ROOM: usize = size_of::<kernel::Point>();
    const UNFIT: &'static str = "a number that is not the abscissa of a point of P-256";
    type Key = Key;
    type Point = Abscissa;

    fn map_and_raise(hashes: &[ItemHash], key: &Key) -> Result<Vec<Abscissa>, Unfit> {
        map_and_raise(hashes, key)
    }

    fn raise(points: &[Abscissa], key: &Key) -> Result<Vec<Abscissa>, Unfit> {
        raise(points, key)
    }
}

fn map_and_raise<F: Form>(hashes: &[ItemHash], key: &Key) -> Result<Vec<F>, Unfit> {
    let domain = Domain::without_session("a field element of P-256, from the hash of an item");
    let mut points = Zeroizing::new(vec![[0; 64]; hashes.len()]);
    points.par_chunks_mut(BATCH).zip(hashes.par_chunks(BATCH)).for_each(|(points, hashes)| {
        let mut uniform = Zeroizing::new([[0; 48]; BATCH]);
        let each = uniform.iter_mut().zip(hashes);
        each.for_each(|(uniform, hash)| *uniform = domain.hash(&[hash.as_bytes()]));
        kernel::map(&uniform[..hashes.len()], points);
    });
    multiplied(points, key)
}

fn raise<F: Form>(points: &[F], key: &Key) -> Result<Vec<F>, Unfit> {
    multiplied(F::points(points)?, key)
}

fn multiplied<F: Form>(mut points: Zeroizing<Vec<kernel::Point>>, key: &Key) -> Result<Vec<F>, Unfit> {
    // Whether a point is on the curve is public.
    let batches = points.par_chunks_mut(BATCH);
    batches.try_for_each(|batch| kernel::multiply(&key.0, batch).map_err(|_| Unfit))?;
    Ok(points.iter().map(F::of).collect())
}

encoded!(Point, 64);

impl Point {
    fn received(bytes: [u8; 64]) -> Result<Point, &'static str> {
        match halves(&bytes).into_iter().all(kernel::is_canonical) {
            true => Ok(Point(bytes)),
            false => Err("a point with a coordinate that is not canonical"),
        }
    }
}

encoded!(Abscissa, 32);

impl Abscissa {
    fn received(bytes: [u8; 32]) -> Result<Abscissa, &'static str> {
        match kernel::is_canonical(&bytes) {
            true => Ok(Abscissa(bytes)),
            false => Err("not a canonical abscissa"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Key as _;
    use super::*;
    use crate::channel::Wire;
    use crate::testing::every_bit_is_random;

    fn hashes(n: u32) -> Vec<ItemHash> {
        (0..n).map(|i| ItemHash::of_item(&i.to_le_bytes())).collect()
    }

    /// The key 1, which leaves points unchanged.
    fn one() -> Key {
        let mut bytes = [0; 32];
        bytes[31] = 1;
        Key::of_ours(&bytes).unwrap()
    }

    #[test]
    fn abscissae_are_those_of_the_points() {
        let rng = &mut Prng::from_seed(&[1; 32]);
        let (a, b) = (Key::random(rng), Key::random(rng));
        let hashes = hashes(3 * BATCH as u32 + 1);
        let points = P256::map_and_raise(&hashes, &a).unwrap();
        let abscissae = P256Compressed::map_and_raise(&hashes, &a).unwrap();
        let again = (P256::raise(&points, &b).unwrap(), P256Compressed::raise(&abscissae, &b).unwrap());
        for (points, abscissae) in [(points, abscissae), again] {
            assert!(points.iter().zip(&abscissae).all(|(p, x)| p.0[..32] == x.0));
        }
    }

    /// Anyone who knows the domain and the map can compute H(x).
    #[test]
    fn items_are_hashed_to_48_bytes_of_their_own_domain() {
        let hashes = hashes(400);
        let own = Domain::without_session("a field element of P-256, from the hash of an item");
        let uniform: Vec<[u8; 48]> = hashes.iter().map(|hash| own.hash(&[hash.as_bytes()])).collect();
        every_bit_is_random(&uniform, 8 * 48);
        let mut expected = vec![[0; 64]; hashes.len()];
        kernel::map(&uniform, &mut expected);
        let points: Vec<_> = expected.iter().map(|point| Point(*point)).collect();
        assert_eq!(P256::map_and_raise(&hashes, &one()), Ok(points.clone()));
        assert_eq!(P256::raise(&points, &one()), Ok(points));
    }

    /// Finding a 128-bit key takes 2^64 steps. An inverse equal to the key would not remove it.
    #[test]
    fn keys_and_inverses_are_fresh_and_of_full_width() {
        let rng = &mut Prng::from_seed(&[2; 32]);
        let keys: Vec<[u8; 32]> = (0..400).map(|_| *Key::random(rng).0).collect();
        every_bit_is_random(&keys, 256);
        let pairs: Vec<(Key, Key)> = (0..400).map(|_| Key::with_inverse(rng)).collect();
        every_bit_is_random(&pairs.iter().map(|(key, _)| *key.0).collect::<Vec<_>>(), 256);
        every_bit_is_random(&pairs.iter().map(|(_, inverse)| *inverse.0).collect::<Vec<_>>(), 256);
        assert!(pairs.iter().all(|(key, inverse)| *key.0 != *inverse.0));
    }

    #[test]
    fn keys_are_between_0_and_the_order() {
        let mut order = [0xff; 32];
        order[4..8].fill(0);
        order[16..].copy_from_slice(&0xbce6_faad_a717_9e84_f3b9_cac2_fc63_2551_u128.to_be_bytes());
        let mut below = order;
        below[31] -= 1;
        for (bytes, is_key) in [([0; 32], false), (order, false), ([0xff; 32], false), (below, true)] {
            assert_eq!(Key::of_ours(&bytes).is_some(), is_key, "{bytes:?}");
        }
        assert!(Key::of_ours(&[1; 31]).is_none());
        // The generator's first draw is not a key.
        let mut draws = [[0xff; 32], [7; 32]].into_iter();
        assert_eq!(*Key::drawn(|| draws.next().unwrap()).0, [7; 32]);
    }

    /// Other encodings represent the identity as a string of zeros. Here that string is the abscissa of an ordinary point.
    #[test]
    fn the_abscissa_0_is_of_a_point() {
        let (zero, key) = (Abscissa::get(&[0; 32]).unwrap(), Key::random(&mut Prng::from_seed(&[3; 32])));
        let raised = P256Compressed::raise(&[zero], &key).unwrap();
        assert!(raised[0] != zero && P256Compressed::raise(&[zero], &one()) == Ok(vec![zero]));
    }
}
