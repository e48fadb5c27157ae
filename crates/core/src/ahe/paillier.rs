//! Paillier's encryption (Paillier, "Public-key cryptosystems based on composite degree residuosity classes",
//! EUROCRYPT 1999) for lists ([`Cipher`]), as used in the paper DC17.
//!
//! A message m modulo N is encrypted as (1 + m N) s^N modulo N^2. The owner, who knows the factors of N, encrypts with
//! fixed bases and randomness of full entropy; other parties combine with a fresh s of full range.
//!
//! Security: IND-CPA under the decisional composite residuosity assumption. A modulus of 3072 bits gives 128-bit
//! security, and 2048 bits give 112; shorter ones are for tests and for the paper's tables. Cost: 2 log2 N bits per
//! ciphertext; combining takes two exponentiations modulo N^2 with exponents of log2 N bits. Memory: the
//! ciphertexts, four times their size while answers are made or opened, room for 80 per thread, and the owner's
//! tables (`ROOM`).
//!
//! A modulus from a peer comes with a proof that it is the product of two primes and that gcd(N, phi(N)) = 1
//! ([`PublicKey::proven`]). Without it, N could be p q with q dividing p - 1, or have many prime factors of 17 bits. A
//! cell could then hold more than one number, and the random weight that hides a sum would not hide their ratio. A count
//! would then show which items match. The proof holds for one list: only the owner can make one for another list, so
//! other parties cannot present the owner's cells as their own. **The limit of the proof:** an owner that deviates may
//! encode one filter modulo p and another modulo q in the same cells. It then learns the result for two sets at once,
//! item by item.
//!
//! All received cells are checked, so the checks do not reveal which of them are used.

use super::{Cipher, Effort, FirstMalformed, Malformed, Name, Room};
use crate::hash::{Domain, SessionId};
use crate::rng::Prng;
use crate::secret::Secrets;
use crate::work::Primitive;
use rayon::prelude::*;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use veilset_kernels::paillier::proof_length;
pub use veilset_kernels::paillier::{PublicKey, SecretKey};

/// Paillier's encryption with a modulus of `BITS` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paillier<const BITS: usize>;

/// Ciphertexts per task, each of which takes milliseconds.
const TASK: usize = 4;
/// Cells, sums or quotients per task that encrypts, checks or multiplies them, which takes less.
const CELLS: usize = 64;

impl<const BITS: usize> Paillier<BITS> {
    /// Length of a number modulo N in bytes.
    const NUMBER: usize = BITS / 8;
    /// The factor by which work grows with the modulus, cubic in its length; 100, one [`Primitive::Paillier`], at 2048 bits.
    const POWER: usize = BITS * BITS / 2048 * BITS / 2048 * 100 / 2048;

    /// Returns `n` times the number 1, each in this many bytes.
    fn ones(n: usize, width: usize) -> Secrets<u8> {
        let mut ones = Secrets::zeros(n * width);
        ones.chunks_exact_mut(width).for_each(|number| number[0] = 1);
        ones
    }

    fn hashed(numbers: &[u8]) -> Secrets<Name> {
        let domain = Domain::without_session("name of a message of Paillier's encryption");
        let name = |number: &[u8]| domain.hash(&[number]);
        Secrets::from(numbers.par_chunks(Self::NUMBER).map(name).collect::<Vec<Name>>())
    }
}

/// Returns whether a number is less than another of the same length, and reveals only that.
fn is_below(a: &[u8], b: &[u8]) -> bool {
    let borrow = |borrow, (a, b): (&u8, &u8)| (i16::from(*a) - i16::from(*b) + borrow) >> 8;
    a.iter().zip(b).fold(0, borrow) < 0
}

/// Returns 1 / `divisor` modulo an odd number coprime to it: (t N + 1) / divisor for the t that makes this an integer.
fn inverse(n: &[u8], divisor: u32) -> Vec<u8> {
    let divisor = u64::from(divisor);
    let remainder = n.iter().rev().fold(0, |rest, byte| (rest << 8 | u64::from(*byte)) % divisor);
    let t = (0..divisor).find(|t| (t * remainder + 1) % divisor == 0).unwrap_or_default();
    let mut carry = 1;
    let mut product: Vec<u8> = Vec::with_capacity(n.len() + 4);
    for byte in n.iter().copied().chain([0; 4]) {
        carry += t * u64::from(byte);
        product.push(carry as u8);
        carry >>= 8;
    }
    let mut rest = 0;
    for byte in product.iter_mut().rev() {
        rest = rest << 8 | u64::from(*byte);
        *byte = (rest / divisor) as u8;
        rest %= divisor;
    }
    product.truncate(n.len());
    product
}

impl<const BITS: usize> Cipher for Paillier<BITS> {
    type Owner = SecretKey;
    type Key = PublicKey;
    type List = Secrets<u8>;
    type Numbers = Secrets<u8>;
    type Opened = Secrets<u8>;

    const KEY: usize = Self::NUMBER + proof_length(Self::NUMBER);
    const CELL: usize = BITS / 4;
    const CIPHERTEXT: usize = BITS / 4;
    const SECRET: usize = BITS / 8;
    const UNFIT: &'static str = "not sound for Paillier's encryption";
    // As measured at 2048 bits.
    const EFFORT: Effort = Effort {
        primitive: Primitive::Paillier,
        encrypt: Self::POWER,
        load: 3 * Self::POWER / 100,
        add: 3 * Self::POWER / 100,
        combine: 25 * Self::POWER,
        open: 5 * Self::POWER,
    };
    const ROOM: Room = Room {
        listed: Self::CIPHERTEXT,
        opened: 4 * Self::CIPHERTEXT,
        answered: 4 * Self::CIPHERTEXT,
        thread: 80 * Self::CIPHERTEXT,
        owner: 20_000 * Self::CIPHERTEXT,
    };

    fn generate(rng: &mut Prng) -> SecretKey {
        SecretKey::generate(BITS, &mut |out| rng.fill(out))
    }

    fn save(owner: &SecretKey) -> Secrets<u8> {
        Secrets::from(owner.to_bytes().to_vec())
    }

    fn restore(secret: &[u8]) -> Option<SecretKey> {
        if secret.len() == Self::SECRET { SecretKey::from_bytes(secret) } else { None }
    }

    fn public(owner: &SecretKey, seed: &SessionId, rng: &mut Prng) -> Vec<u8> {
        let mut public = owner.public().n().to_vec();
        public.extend(owner.prove(seed.as_bytes(), &mut |out| rng.fill(out)));
        public
    }

    fn key(encoding: &[u8], seed: &SessionId) -> Result<PublicKey, Malformed> {
        let (n, proof) = encoding.split_at_checked(Self::NUMBER).ok_or(Malformed(0))?;
        PublicKey::proven(n, seed.as_bytes(), proof).map_err(|_| Malformed(0))
    }

    fn encrypt(owner: &SecretKey, _: &SessionId, _: u64, bits: &[bool], rng: &mut Prng) -> Vec<u8> {
        let rng = rng.split();
        let mut out = vec![0; Self::CELL * bits.len()];
        let tasks = out.par_chunks_mut(CELLS * Self::CELL).zip(bits.par_chunks(CELLS)).enumerate();
        tasks.for_each(|(task, (out, bits))| {
            let mut rng = rng.fork(task as u64);
            owner.encrypt(bits, &mut |bytes| rng.fill(bytes), out);
        });
        out
    }

    fn check(key: &PublicKey, cells: &[u8]) -> Result<(), Malformed> {
        let tasks = cells.par_chunks(CELLS * Self::CELL).enumerate();
        let first = tasks.filter_map(|(task, cells)| Some(task * CELLS + key.check(cells).err()?)).min();
        first.map_or(Ok(()), |at| Err(Malformed(at)))
    }

    fn load(_: &SessionId, _: &[u32], cells: &[u8]) -> (Secrets<u8>, FirstMalformed) {
        (Secrets::from(cells.to_vec()), FirstMalformed::NONE)
    }

    fn zeros(n: usize) -> Secrets<u8> {
        // 1 is an encryption of 0.
        Self::ones(n, Self::CIPHERTEXT)
    }

    fn len(list: &Secrets<u8>) -> usize {
        list.len() / Self::CIPHERTEXT
    }

    fn add(key: &PublicKey, sums: &mut Secrets<u8>, cells: &Secrets<u8>, pairs: &[(u32, u32)]) {
        let tasks = sums.par_chunks_mut(CELLS * Self::CIPHERTEXT).enumerate();
        tasks.for_each(|(task, sums)| {
            let before = |item: usize| pairs.partition_point(|(at, _)| (*at as usize) < item);
            for (item, cell) in &pairs[before(task * CELLS)..before((task + 1) * CELLS)] {
                let sum = &mut sums[(*item as usize - task * CELLS) * Self::CIPHERTEXT..][..Self::CIPHERTEXT];
                key.multiply(sum, &cells[*cell as usize * Self::CELL..][..Self::CELL]);
            }
        });
    }

    fn select(list: &Secrets<u8>, positions: &[u32], n: usize) -> Secrets<u8> {
        let mut selected = Self::zeros(positions.len());
        for (to, &at) in selected.chunks_exact_mut(Self::CIPHERTEXT).zip(positions) {
            let keep = Choice::from(u8::from((at as usize) < n));
            let from = &list[at as usize * Self::CIPHERTEXT..][..Self::CIPHERTEXT];
            to.iter_mut().zip(from).for_each(|(to, from)| to.conditional_assign(from, keep));
        }
        selected
    }

    fn uniform(key: &PublicKey, n: usize, rng: &mut Prng) -> Secrets<u8> {
        let mut numbers = Secrets::zeros(n * Self::NUMBER);
        for number in numbers.chunks_exact_mut(Self::NUMBER) {
            // N has its top bit set, so at least one in two numbers is below it.
            rng.fill(number);
            while !is_below(number, key.n()) {
                rng.fill(number);
            }
        }
        numbers
    }

    fn units(key: &PublicKey, n: usize, rng: &mut Prng) -> Secrets<u8> {
        // Drawing 0 or a multiple of a factor of N is as unlikely as guessing a factor.
        Self::uniform(key, n, rng)
    }

    fn combine(
        key: &PublicKey,
        constants: Option<&Secrets<u8>>,
        weights: Option<&Secrets<u8>>,
        list: &Secrets<u8>,
        rng: &mut Prng,
    ) -> Vec<u8> {
        let rng = rng.split();
        let mut out = vec![0; list.len()];
        let tasks = out.par_chunks_mut(TASK * Self::CIPHERTEXT).zip(list.par_chunks(TASK * Self::CIPHERTEXT));
        tasks.enumerate().for_each(|(task, (out, list))| {
            let n = list.len() / Self::CIPHERTEXT;
            let of = |numbers: &'_ Secrets<u8>| {
                Secrets::from(numbers[task * TASK * Self::NUMBER..][..n * Self::NUMBER].to_vec())
            };
            let constants = constants.map_or_else(|| Secrets::zeros(n * Self::NUMBER), of);
            let weights = weights.map_or_else(|| Self::ones(n, Self::NUMBER), of);
            let mut randomness = Secrets::zeros(n * key.randomness());
            rng.fork(task as u64).fill(&mut randomness);
            key.combine(&constants, &weights, list, &randomness, out);
        });
        out
    }

    fn names(numbers: &Secrets<u8>) -> Secrets<Name> {
        Self::hashed(numbers)
    }

    fn open(owner: &SecretKey, ciphertexts: &[u8]) -> Result<Secrets<u8>, Malformed> {
        Self::check(owner.public(), ciphertexts)?;
        let mut opened = Secrets::zeros(ciphertexts.len() / 2);
        let tasks = opened.par_chunks_mut(TASK * Self::NUMBER);
        tasks.zip(ciphertexts.par_chunks(TASK * Self::CIPHERTEXT)).for_each(|(out, ciphertexts)| {
            owner.decrypt(ciphertexts, out);
        });
        Ok(opened)
    }

    fn are_zero(opened: &Secrets<u8>) -> Secrets<bool> {
        let zero = |number: &[u8]| number.iter().fold(0, |all, byte| all | byte) == 0;
        Secrets::from(opened.chunks_exact(Self::NUMBER).map(zero).collect::<Vec<_>>())
    }

    fn opened_names(opened: &Secrets<u8>) -> Secrets<Name> {
        Self::hashed(opened)
    }

    fn quotients(
        owner: &SecretKey,
        dividends: &Secrets<u8>,
        divisors: &Secrets<u8>,
        most: u32,
    ) -> (Secrets<Name>, Secrets<u32>) {
        let inverses: Vec<Vec<u8>> = (1..=most).map(|n| inverse(owner.public().n(), n)).collect();
        let mut factors = Secrets::<u8>::zeros(divisors.len());
        let mut found = Secrets::<u32>::zeros(divisors.len() / Self::NUMBER);
        let each = factors.par_chunks_mut(Self::NUMBER).zip(divisors.par_chunks(Self::NUMBER));
        each.zip(found.par_iter_mut()).for_each(|((factor, divisor), found)| {
            let (low, high) = divisor.split_at(4);
            let low = low.iter().rev().fold(0, |low, byte| low << 8 | u32::from(*byte));
            let small = high.iter().fold(0, |all, byte| all | byte).ct_eq(&0);
            *found = most + 1;
            found.conditional_assign(&0, low.ct_eq(&0) & small);
            for (n, inverse) in (1..).zip(&inverses) {
                let same = low.ct_eq(&n) & small;
                found.conditional_assign(&n, same);
                factor.iter_mut().zip(inverse).for_each(|(to, from)| to.conditional_assign(from, same));
            }
        });
        let mut quotients = dividends.clone();
        let tasks = quotients.par_chunks_mut(CELLS * Self::NUMBER);
        tasks.zip(factors.par_chunks(CELLS * Self::NUMBER)).for_each(|(quotients, factors)| {
            owner.public().multiply_numbers(quotients, factors);
        });
        (Self::hashed(&quotients), found)
    }
}
