//! Exponential ElGamal over ristretto255 for lists: [`Cipher`].
//!
//! The first part of encrypted bit number i is A_i, an element hashed from i and the seed of the list; only the second
//! part, sk A_i + b_i G, is sent. With r_i the unknown discrete logarithm of A_i, this is the ciphertext (r_i G, r_i
//! PK + b_i G). So a bit takes 32 bytes instead of 64.
//!
//! Security: IND-CPA under DDH on ristretto255, with the hash to the group a random oracle. Each seed must be used for
//! one list only: the second parts of two lists with the same first parts differ by (b_i - b'_i) G.
//!
//! Cost: encrypting a bit takes a hash to the group, a multiplication and an encoding; loading it, a hash to the group
//! and a decoding; combining, two multiplications and two or three with tables; opening, one multiplication. Memory:
//! 320 bytes for each ciphertext of a list, 160 for an opened one.

use super::{FirstMalformed, Malformed, PublicKey, SecretKey, SecretScalar, decoded, multiples, unit};
use crate::ahe::{Cipher, Effort, Name, Room};
use crate::channel::Wire;
use crate::group::ristretto255::{
    BATCH, Element, Scalars, add, decode_or_identity, encode, map, multiply, multiply_all,
};
use crate::hash::{Domain, SessionId};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::work::Primitive;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use veilset_kernels::ristretto255::{Table, subtract};
use zeroize::Zeroizing;

/// Exponential ElGamal over ristretto255, as a cipher for lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElGamal;

/// The first parts of ciphertexts, and the second parts.
pub struct List([Secrets<Element>; 2]);

/// Number of sums that a task adds to.
const PART: usize = 1 << 8;

/// The first parts of the encrypted bits with these numbers.
fn first_parts(seed: &SessionId, numbers: impl Iterator<Item = u64>) -> Secrets<Element> {
    let domain = Domain::new(seed, "first part of an encrypted bit, by its number");
    // The set of loaded bits is secret.
    let uniform: Vec<[u8; 64]> = numbers.map(|number| domain.hash(&[&number.to_le_bytes()])).collect();
    map(&Zeroizing::new(uniform))
}

impl Cipher for ElGamal {
    type Owner = SecretKey;
    type Key = PublicKey;
    type List = List;
    type Numbers = Scalars;
    type Opened = Secrets<Element>;

    const KEY: usize = 32;
    const CELL: usize = 32;
    const CIPHERTEXT: usize = 64;
    const SECRET: usize = 32;
    const UNFIT: &'static str = "not an element of ristretto255, or its identity";
    // In multiplications: a cell takes one to encrypt and a third to decode, an answer takes two to open and three to
    // make, and an addition takes a twentieth.
    const EFFORT: Effort = Effort {
        primitive: Primitive::Ristretto255,
        encrypt: 100,
        load: 33,
        add: 5,
        combine: 300,
        open: 200,
    };
    // Elements take 160 bytes and their encodings 32; a batch holds elements in four forms.
    const ROOM: Room = Room {
        listed: 2 * 160,
        opened: 4 * 160 + 4 * 32,
        answered: 2 * 160 + 4 * 32,
        thread: BATCH * (4 * 160),
        owner: 0,
    };

    fn generate(rng: &mut Prng) -> SecretKey {
        SecretKey::random(rng)
    }

    fn save(owner: &SecretKey) -> Secrets<u8> {
        Secrets::from(owner.0.as_bytes().to_vec())
    }

    fn restore(secret: &[u8]) -> Option<SecretKey> {
        let mut wide = Zeroizing::new([0; 64]);
        wide[..32].copy_from_slice(secret.get(..32)?);
        let scalar = SecretScalar::reduced(&wide);
        let same = secret.len() == 32 && bool::from(scalar.as_bytes()[..].ct_eq(secret));
        (same && !scalar.is_zero()).then_some(SecretKey(scalar))
    }

    fn public(owner: &SecretKey, _: &SessionId, _: &mut Prng) -> Vec<u8> {
        SecretKey::public(owner).to_vec()
    }

    fn key(encoding: &[u8], _: &SessionId) -> Result<PublicKey, Malformed> {
        PublicKey::of(encoding.try_into().map_err(|_| Malformed(0))?)
    }

    fn encrypt(owner: &SecretKey, seed: &SessionId, first: u64, bits: &[bool], _: &mut Prng) -> Vec<u8> {
        let mut out = vec![0; 32 * bits.len()];
        let batches = out.as_chunks_mut::<32>().0.par_chunks_mut(BATCH).zip(bits.par_chunks(BATCH));
        batches.enumerate().for_each(|(batch, (out, bits))| {
            let mut second = first_parts(seed, (first + (batch * BATCH) as u64..).take(bits.len()));
            multiply_all(&mut second, &owner.0);
            let ones: Vec<_> = bits.iter().map(|bit| Element::GENERATOR.or_identity(*bit)).collect();
            add(&mut second, &Secrets::from(ones));
            out.copy_from_slice(&encode(&second));
        });
        out
    }

    fn check(_: &PublicKey, _: &[u8]) -> Result<(), Malformed> {
        // Decoding is most of the cost of a cell, so cells are decoded only when loaded.
        Ok(())
    }

    fn load(seed: &SessionId, numbers: &[u32], cells: &[u8]) -> (List, FirstMalformed) {
        let (cells, _) = cells.as_chunks::<32>();
        let first = AtomicU64::new(FirstMalformed::NONE.0);
        let mut parts = [Secrets::zeros(cells.len()), Secrets::zeros(cells.len())];
        let [a, b] = &mut parts;
        let batches = a.par_chunks_mut(BATCH).zip(b.par_chunks_mut(BATCH));
        let batches = batches.zip(cells.par_chunks(BATCH)).zip(numbers.par_chunks(BATCH)).enumerate();
        batches.for_each(|(batch, (((a, b), cells), numbers))| {
            b.copy_from_slice(&decode_or_identity(cells));
            a.copy_from_slice(&first_parts(seed, numbers.iter().map(|number| u64::from(*number))));
            for (i, (a, b)) in a.iter_mut().zip(b).enumerate() {
                let malformed = b.equals(&Element::IDENTITY);
                *a = a.or_identity(!malformed);
                let (none, at) = (FirstMalformed::NONE.0, (batch * BATCH + i) as u64);
                let at = u64::conditional_select(&none, &at, Choice::from(u8::from(malformed)));
                first.fetch_min(at, Ordering::Relaxed);
            }
        });
        (List(parts), FirstMalformed(first.into_inner()))
    }

    fn zeros(n: usize) -> List {
        List([Secrets::zeros(n), Secrets::zeros(n)])
    }

    fn len(list: &List) -> usize {
        list.0[0].len()
    }

    fn add(_: &PublicKey, sums: &mut List, cells: &List, pairs: &[(u32, u32)]) {
        let before = |item: usize| pairs.partition_point(|(at, _)| (*at as usize) < item);
        let [a, b] = &mut sums.0;
        let parts = a.par_chunks_mut(PART).zip(b.par_chunks_mut(PART)).enumerate();
        parts.for_each(|(part, sums)| {
            let first = part * PART;
            let pairs = &pairs[before(first)..before(first + PART)];
            // The first cell of each sum, then the second, and so on: each sum occurs once in a round.
            let round = |i: usize| i - pairs.partition_point(|(at, _)| *at < pairs[i].0);
            let mut sizes = vec![];
            for round in (0..pairs.len()).map(round) {
                sizes.resize(sizes.len().max(round + 1), 0);
                sizes[round] += 1;
            }
            // Allocated at full size at once: moving them would leave a copy behind.
            let rounds: Vec<Vec<(usize, usize)>> = sizes.into_iter().map(Vec::with_capacity).collect();
            let mut rounds = Zeroizing::new(rounds);
            for (i, (item, cell)) in pairs.iter().enumerate() {
                rounds[round(i)].push((*item as usize - first, *cell as usize));
            }
            for round in rounds.iter() {
                for (sums, cells) in [&mut *sums.0, &mut *sums.1].into_iter().zip(&cells.0) {
                    let gathered = |of: &[Element], at: fn(&(usize, usize)) -> usize| {
                        Secrets::from(round.iter().map(|pair| of[at(pair)]).collect::<Vec<_>>())
                    };
                    let mut current = gathered(sums, |pair| pair.0);
                    add(&mut current, &gathered(cells, |pair| pair.1));
                    round.iter().zip(current.iter()).for_each(|(pair, sum)| sums[pair.0] = *sum);
                }
            }
        });
    }

    fn select(list: &List, positions: &[u32], n: usize) -> List {
        let of = |part: &Secrets<Element>| {
            let one = |&at: &u32| part[at as usize].or_identity((at as usize) < n);
            Secrets::from(positions.iter().map(one).collect::<Vec<_>>())
        };
        List(list.0.each_ref().map(of))
    }

    fn uniform(_: &PublicKey, n: usize, rng: &mut Prng) -> Scalars {
        Scalars::random(n, rng)
    }

    fn units(_: &PublicKey, n: usize, rng: &mut Prng) -> Scalars {
        let mut units = Secrets::zeros(n);
        units.iter_mut().for_each(|to| *to = unit(rng).to_bytes());
        Scalars::from(units)
    }

    fn combine(
        key: &PublicKey,
        constants: Option<&Scalars>,
        weights: Option<&Scalars>,
        list: &List,
        rng: &mut Prng,
    ) -> Vec<u8> {
        let [a, b] = &list.0;
        let t = Scalars::random(a.len(), rng);
        let mut out = vec![0; 64 * a.len()];
        let batches = out.par_chunks_mut(64 * BATCH).zip(a.par_chunks(BATCH)).zip(b.par_chunks(BATCH));
        batches.zip(t.as_bytes().par_chunks(BATCH)).enumerate().for_each(|(batch, (((out, a), b), t))| {
            let of = |numbers: &Scalars| {
                Scalars::from(Secrets::from(numbers.as_bytes()[batch * BATCH..][..a.len()].to_vec()))
            };
            let mut parts = [Secrets::from(a.to_vec()), Secrets::from(b.to_vec())];
            if let Some(weights) = weights.map(of) {
                parts.iter_mut().for_each(|part| multiply(part, &weights));
            }
            // The fresh encryption: (t G, t PK + constant G), with t uniform in Z_l.
            add(&mut parts[0], &multiples(Table::generator(), t));
            add(&mut parts[1], &multiples(&key.table, t));
            if let Some(constants) = constants.map(of) {
                add(&mut parts[1], &multiples(Table::generator(), constants.as_bytes()));
            }
            let parts = parts.map(|part| encode(&part));
            for (i, out) in out.chunks_exact_mut(64).enumerate() {
                out[..32].copy_from_slice(&parts[0][i]);
                out[32..].copy_from_slice(&parts[1][i]);
            }
        });
        out
    }

    fn names(numbers: &Scalars) -> Secrets<Name> {
        let mut names = Secrets::zeros(numbers.len());
        let batches = names.par_chunks_mut(BATCH).zip(numbers.as_bytes().par_chunks(BATCH));
        batches.for_each(|(names, numbers)| {
            names.copy_from_slice(&encode(&multiples(Table::generator(), numbers)));
        });
        names
    }

    fn open(owner: &SecretKey, ciphertexts: &[u8]) -> Result<Secrets<Element>, Malformed> {
        let ciphertexts = ciphertexts.chunks_exact(64).map(super::Ciphertext::get);
        let ciphertexts = ciphertexts.collect::<Result<Vec<_>, _>>().map_err(|_| Malformed(0))?;
        let [mut first, mut second] = decoded(&ciphertexts)?;
        multiply_all(&mut first, &owner.0);
        subtract(&mut second, &first);
        Ok(second)
    }

    fn are_zero(opened: &Secrets<Element>) -> Secrets<bool> {
        Secrets::from(opened.iter().map(|message| message.equals(&Element::IDENTITY)).collect::<Vec<_>>())
    }

    fn opened_names(opened: &Secrets<Element>) -> Secrets<Name> {
        encode(opened)
    }

    fn quotients(
        _: &SecretKey,
        dividends: &Secrets<Element>,
        divisors: &Secrets<Element>,
        most: u32,
    ) -> (Secrets<Name>, Secrets<u32>) {
        // The multiples of G for the possible divisors, and their inverses; the inverse of 0 is not used.
        let small: Vec<[u8; 32]> = (0..=most).map(|n| super::Scalar::from(n).to_bytes()).collect();
        let small = Scalars::from(Secrets::from(small));
        let (known, inverses) = (ElGamal::names(&small), small.inverses());
        let encodings = encode(divisors);
        let (mut factors, mut found) =
            (Secrets::<[u8; 32]>::zeros(encodings.len()), Secrets::<u32>::zeros(encodings.len()));
        let each = factors.par_iter_mut().zip(found.par_iter_mut()).zip(encodings.par_iter());
        each.for_each(|((factor, found), encoding)| {
            *found = most + 1;
            for (n, (known, inverse)) in known.iter().zip(inverses.as_bytes()).enumerate() {
                let same = known.ct_eq(encoding);
                found.conditional_assign(&(n as u32), same);
                factor.conditional_assign(inverse, same);
            }
        });
        let mut quotients = dividends.clone();
        multiply(&mut quotients, &Scalars::from(factors));
        (encode(&quotients), found)
    }
}

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
