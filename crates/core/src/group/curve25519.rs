//! Curve25519 with x-coordinates only: the commutative weak PRF `F_k(H(x))` of CZZDL 5.2.
//!
//! Security: DDH on Curve25519, `H` a random oracle into the points of the curve. An item is hashed to 32 uniform
//! bytes, reduced modulo p (bias 2^-250), and mapped with x-only Elligator2. Its outputs are half of the abscissae on
//! the curve and none on the twist.
//!
//! CZZDL 9.5 calls X25519 on the hash itself instead. Half of all hashes are then on the twist, and stay there, so
//! `F_k` reveals one bit of x to any party that can hash.
//!
//! Scalars are clamped multiples of 8: the first multiplication lands in the prime-order subgroup, and the
//! second stays there. P and -P share an abscissa, so its 2^252 points give about 2^251 values of F_k. For the
//! consequence for equal tags see [`crate::params::tag_bits`].

use super::{Group, Unfit};
use crate::hash::ItemHash;
use crate::rng::Prng;
use crate::secret::Secret;
use crate::work::Primitive;
use curve25519_dalek::Scalar;
use rayon::prelude::*;
use veilset_kernels::curve25519 as kernel;
use zeroize::{Zeroize, Zeroizing};

/// Points per kernel call: enough to share an inversion, few enough to distribute over threads.
const BATCH: usize = 256;

/// Curve25519 as a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Curve25519;

impl Group for Curve25519 {
    const NAME: &'static str = "curve25519";
    const ASSUMPTION: &'static str = "decisional Diffie-Hellman on Curve25519";
    const MULTIPLICATION: Primitive = Primitive::Curve25519;
    const ROOM: usize = 0;
    const UNFIT: &'static str = "a point of low order";
    type Key = Key;
    type Point = Point;

    fn map_and_raise(hashes: &[ItemHash], key: &Key) -> Result<Vec<Point>, Unfit> {
        map_and_raise(hashes, key)
    }

    fn raise(points: &[Point], key: &Key) -> Result<Vec<Point>, Unfit> {
        raise(points, key)
    }
}

/// The abscissa of a point: canonical and not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Zeroize)]
pub struct Point([u8; 32]);

impl Point {
    /// Returns the abscissa's bytes, little-endian.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

encoded!(Point, 32);

impl Point {
    fn received(bytes: [u8; 32]) -> Result<Point, &'static str> {
        if !kernel::is_canonical(&bytes) {
            return Err("not a canonical abscissa");
        }
        match bytes == [0; 32] {
            false => Ok(Point(bytes)),
            true => Err("the point of order 2"),
        }
    }
}

/// A key of the PRF: a scalar, clamped by the kernel.
pub struct Key(Secret<[u8; 32]>);

impl Key {
    /// Draws a fresh key.
    pub fn random(rng: &mut Prng) -> Key {
        Key(Secret::new(rng.bytes()))
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Draws a fresh key and its inverse. Applying both leaves a point of the prime-order subgroup unchanged;
    /// F_k(H(x)) is in that subgroup for every k.
    ///
    /// Only keys whose inverse modulo the order can be clamped too are drawn. So the key is uniform on a set of about
    /// half of all keys, which is closed under inversion. This is sufficient. By the
    /// generic argument for weak PRFs, a bound of eps on the advantage for all keys gives one of sqrt(2 eps) for half
    /// of them. No attack is known that benefits.
    pub fn with_inverse(rng: &mut Prng) -> (Key, Key) {
        loop {
            let key = Secret::new(kernel::clamp(rng.bytes()));
            let inverse = Zeroizing::new(Zeroizing::new(Scalar::from_bytes_mod_order(*key)).invert());
            // The only s = inverse + k l with 0 <= k < 8 that is a multiple of 8; l = 5 modulo 8, and 5 * 5 = 1.
            let k = ((8 - (inverse.as_bytes()[0] & 7)) * 5) & 7;
            let mut s = Zeroizing::new(*inverse.as_bytes());
            let mut carry = 0u16;
            for (s, l) in s.iter_mut().zip(ORDER) {
                carry += u16::from(*s) + u16::from(k) * u16::from(l);
                *s = carry as u8;
                carry >>= 8;
            }
            // The rejection of a draw reveals nothing about the next one.
            if carry == 0 && kernel::clamp(*s) == *s {
                return (Key(key), Key(Secret::new(*s)));
            }
        }
    }
}

impl super::Key for Key {
    const BYTES: usize = 32;

    fn random(rng: &mut Prng) -> Key {
        Key::random(rng)
    }

    fn with_inverse(rng: &mut Prng) -> (Key, Key) {
        Key::with_inverse(rng)
    }

    fn as_bytes(&self) -> &[u8] {
        &self.0[..]
    }

    fn of_ours(bytes: &[u8]) -> Option<Key> {
        bytes.try_into().ok().map(|bytes| Key(Secret::new(bytes)))
    }
}

/// l = 2^252 + 27742317777372353535851937790883648493, the order of the prime-order subgroup, little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// Returns `F_k(H(x))` for the hash of each item or dummy.
///
/// # Errors
/// If an item hashes to a point of low order, which for each item happens with a probability below 2^-250.
pub fn map_and_raise(hashes: &[ItemHash], key: &Key) -> Result<Vec<Point>, Unfit> {
    let mut points: Vec<[u8; 32]> = hashes.iter().map(|hash| *hash.as_bytes()).collect();
    points.par_chunks_mut(BATCH).for_each(|batch| {
        let mut mapped = [[0u8; 32]; BATCH];
        let mapped = &mut mapped[..batch.len()];
        kernel::elligator2(batch, mapped);
        batch.copy_from_slice(mapped);
    });
    raise_bytes(points, key)
}

/// Returns `F_k(P)` for each point.
///
/// # Errors
/// If a point has low order: the result would be the identity.
pub fn raise(points: &[Point], key: &Key) -> Result<Vec<Point>, Unfit> {
    raise_bytes(points.iter().map(|p| p.0).collect(), key)
}

fn raise_bytes(mut points: Vec<[u8; 32]>, key: &Key) -> Result<Vec<Point>, Unfit> {
    points.par_chunks_mut(BATCH).for_each(|batch| kernel::ladder(&key.0, batch));
    // Whether a point has low order is public: such values are rejected, not used.
    match points.contains(&[0; 32]) {
        false => Ok(points.into_iter().map(Point).collect()),
        true => {
            points.zeroize();
            Err(Unfit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Wire;
    use crate::testing::every_bit_is_random;
    use curve25519_dalek::montgomery::MontgomeryPoint;

    fn items(n: usize) -> Vec<Vec<u8>> {
        (0..n).map(|i| format!("item {i}").into_bytes()).collect()
    }

    fn hash(items: &[Vec<u8>]) -> Vec<ItemHash> {
        items.iter().map(|item| ItemHash::of_item(item)).collect()
    }

    fn on_curve(p: &[u8; 32]) -> bool {
        MontgomeryPoint(*p).to_edwards(0).is_some()
    }

    #[test]
    fn the_prf_commutes_and_agrees_with_a_reference_ladder() {
        let mut rng = Prng::from_seed(&[1; 32]);
        for n in [0, 1, BATCH - 1, BATCH, BATCH + 1] {
            let items = items(n);
            let (a, b) = (Key::random(&mut rng), Key::random(&mut rng));
            let hashes = hash(&items);
            let hashed = |k| map_and_raise(&hashes, k).unwrap();
            let ab = raise(&hashed(&a), &b).unwrap();
            assert_eq!(ab, raise(&hashed(&b), &a).unwrap());
            for (p, q) in hashed(&a).iter().zip(&ab) {
                assert_eq!(MontgomeryPoint(p.0).mul_clamped(*b.0).0, q.0);
            }
        }
    }

    #[test]
    fn an_inverse_takes_its_key_off() {
        let mut rng = Prng::from_seed(&[4; 32]);
        assert_eq!(Scalar::from_canonical_bytes(ORDER).is_some().unwrap_u8(), 0);
        let mut below = ORDER;
        below[0] -= 1;
        assert_eq!(Scalar::from_canonical_bytes(below).unwrap(), -Scalar::ONE);
        let items = items(3);
        let hashes = hash(&items);
        for _ in 0..40 {
            let (k, inverse) = Key::with_inverse(&mut rng);
            let other = Key::random(&mut rng);
            let both = raise(&map_and_raise(&hashes, &k).unwrap(), &other).unwrap();
            assert_eq!(raise(&both, &inverse).unwrap(), map_and_raise(&hashes, &other).unwrap());
            assert_eq!((kernel::clamp(*k.0), kernel::clamp(*inverse.0)), (*k.0, *inverse.0));
        }
    }

    /// Finding a 128-bit key takes 2^64 steps.
    #[test]
    fn keys_are_of_full_width() {
        let mut rng = Prng::from_seed(&[5; 32]);
        let keys: Vec<[u8; 32]> = (0..400).map(|_| *Key::random(&mut rng).as_bytes()).collect();
        every_bit_is_random(&keys, 256);
        // Without the fixed bits, which are the lowest three and the highest two.
        let free = |key: &Key| {
            let mut bytes = *key.as_bytes();
            (0..31).for_each(|i| bytes[i] = bytes[i] >> 3 | bytes[i + 1] << 5);
            bytes[31] >>= 3;
            bytes
        };
        let pairs: Vec<(Key, Key)> = (0..400).map(|_| Key::with_inverse(&mut rng)).collect();
        every_bit_is_random(&pairs.iter().map(|pair| free(&pair.0)).collect::<Vec<_>>(), 251);
        every_bit_is_random(&pairs.iter().map(|pair| free(&pair.1)).collect::<Vec<_>>(), 251);
    }

    #[test]
    fn a_point_of_low_order_is_found_wherever_it_stands() {
        let key = Key::random(&mut Prng::from_seed(&[3; 32]));
        let good = map_and_raise(&hash(&items(2 * BATCH + 3)), &key).unwrap();
        assert!(raise(&good, &key).is_ok());
        let mut one = [0; 32];
        one[0] = 1;
        for at in [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 2] {
            let mut points = good.clone();
            points[at] = Point(one);
            assert_eq!(raise(&points, &key), Err(Unfit), "{at}");
        }
    }

    #[test]
    fn every_hash_is_on_the_curve_where_the_printed_one_is_half_the_time_on_the_twist() {
        let key = Key::random(&mut Prng::from_seed(&[2; 32]));
        let items = items(500);
        let ours = map_and_raise(&hash(&items), &key).unwrap();
        assert!(ours.iter().all(|p| on_curve(p.as_bytes())));
        // CZZDL 9.5 as printed: X25519 on the hash itself. The key preserves the bit.
        let printed: Vec<[u8; 32]> = items
            .iter()
            .map(|x| {
                let mut hash = *blake3::hash(x).as_bytes();
                hash[31] &= 0x7f;
                hash
            })
            .collect();
        let mut raised = printed.clone();
        kernel::ladder(&key.0, &mut raised);
        let on = raised.iter().filter(|p| on_curve(p)).count();
        assert!((150..350).contains(&on), "{on} of 500");
        assert!(printed.iter().zip(&raised).all(|(p, r)| on_curve(p) == on_curve(r)));
    }

    #[test]
    fn wire_values_that_are_not_canonical_or_zero_are_refused() {
        let mut p = [0xffu8; 32];
        p[0] = 0xed;
        p[31] = 0x7f;
        // (bytes, accepted): p, p - 1, p + 1, a top bit, 0, 1
        let minus = {
            let mut q = p;
            q[0] -= 1;
            q
        };
        let plus = {
            let mut q = p;
            q[0] += 1;
            q
        };
        let (mut top, mut one) = ([0u8; 32], [0u8; 32]);
        (top[31], one[0]) = (0x80, 1);
        for (bytes, accepted) in
            [(p, false), (minus, true), (plus, false), (top, false), ([0; 32], false), (one, true)]
        {
            assert_eq!(Point::get(&bytes).is_ok(), accepted, "{bytes:?}");
        }
        // Low order but not 0: detected by the multiplication.
        let key = Key::random(&mut Prng::from_seed(&[3; 32]));
        assert_eq!(raise(&[Point(one)], &key), Err(Unfit));
        assert_eq!(raise(&[Point(minus)], &key), Err(Unfit));
    }
}
