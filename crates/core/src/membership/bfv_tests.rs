use super::*;
use crate::error::Fault;
use crate::params::bfv::{Budget, LARGEST_SMALL, SPARSE};

impl Bfv {
    /// The phase c0 + c1 s of a ciphertext. Multiplying it by t / q and rounding gives the plaintext.
    pub(crate) fn phase(&self, key: &SecretKey, [c0, c1]: &Pair) -> Element {
        let mut phase = self.product(c1, &key.0);
        *phase += &**c0;
        phase
    }
}

/// The noise of a ciphertext in coefficient form: the largest absolute coefficient of the difference between its phase and
/// (q m - r) / t, for the plaintext m with these slots.
pub(crate) fn noise(bfv: &Bfv, key: &SecretKey, c: &Pair, slots: &[u64]) -> u128 {
    let mut rest = bfv.phase(key, c);
    *rest -= &*bfv.scaled(slots).unwrap();
    largest(bfv, &rest)
}

/// The largest absolute value of a coefficient, or 2^128 - 1 if it is larger.
pub(crate) fn largest(bfv: &Bfv, p: &Element) -> u128 {
    let q = bfv.q.modulus();
    let number = |n| u128::try_from(n).unwrap_or(u128::MAX);
    lifted(p, q).into_iter().map(|c| number(q - &c).min(number(c))).max().unwrap()
}

/// The coefficients as integers of the type of `_like`, which belongs to a foreign crate.
fn lifted<B>(p: &Element, _like: &B) -> Vec<B>
where
    for<'a> Vec<B>: From<&'a Poly>,
{
    Vec::from(&**p)
}

fn rng(seed: u8) -> Prng {
    Prng::from_seed(&[seed; 32])
}

/// The polynomial with coefficient `c` everywhere.
fn everywhere(bfv: &Bfv, c: u128) -> Element {
    let q = bfv.q.moduli_operators();
    bfv.element(q.iter().flat_map(|q| vec![q.reduce_u128(c); DEGREE]).collect()).unwrap()
}

fn random_slots(rng: &mut Prng) -> Secrets<u64> {
    Secrets::from((0..DEGREE).map(|_| rng.below(PLAIN)).collect::<Vec<_>>())
}

fn encrypted(bfv: &Bfv, key: &SecretKey, slots: &[u64], number: u64, rng: &mut Prng) -> Pair {
    let a = bfv.uniform(&[9; 32], number).unwrap();
    [bfv.encrypt(key, slots, &a, rng).unwrap(), a]
}

fn public(bfv: &Bfv, key: &SecretKey, rng: &mut Prng) -> Pair {
    let a = bfv.uniform(&[9; 32], 0).unwrap();
    [bfv.public_key(key, &a, rng).unwrap(), a]
}

#[test]
fn what_is_encrypted_evaluated_and_sent_is_what_is_decrypted() {
    let (bfv, rng) = (Bfv::new().unwrap(), &mut rng(1));
    let key = bfv.secret_key(rng).unwrap();
    let public_key = public(&bfv, &key, rng);
    let (t, [x, masks]) = (bfv.plain(), [0; 2].map(|_| random_slots(rng)));
    let fresh = encrypted(&bfv, &key, &x, 1, rng);
    assert_eq!(*bfv.decrypt(&key, &fresh).unwrap(), *x);
    let constants = [3, PLAIN - 1];
    let constant = bfv.constant(constants).unwrap();
    let product = fresh.map(|half| bfv.multiply(half, &constant));
    let flood = Budget::new(256, 1 << 20).unwrap().flood;
    let sent = bfv.finish(product, &masks, &public_key, flood, rng).unwrap();
    let expected: Vec<u64> =
        (0..DEGREE).map(|i| t.add(t.mul(x[i], constants[i / QUERIES]), masks[i])).collect();
    assert_eq!(*bfv.decrypt(&key, &sent).unwrap(), expected);
    // The same ciphertext, written and read again.
    let sent = sent.map(|half| bfv.read("response", &bfv.write(&half)).unwrap());
    assert_eq!(*bfv.decrypt(&key, &sent).unwrap(), expected);
    // Another key decrypts to unrelated values.
    let other = bfv.decrypt(&bfv.secret_key(rng).unwrap(), &sent).unwrap();
    assert!(other.iter().zip(&expected).filter(|(a, b)| a == b).count() < 3);
}

#[test]
fn a_constant_has_two_small_coefficients() {
    let (bfv, rng) = (Bfv::new().unwrap(), &mut rng(2));
    for _ in 0..5 {
        let mut p = bfv.constant([rng.below(PLAIN), rng.below(PLAIN)]).unwrap();
        p.change_representation(Representation::PowerBasis);
        let coefficients = coefficients(&p);
        let others: Vec<usize> = (0..DEGREE).filter(|&i| coefficients[i] != 0).collect();
        assert_eq!(others, [0, DEGREE / 2]);
        assert_eq!(others.len() as u64, SPARSE);
        assert!(largest(&bfv, &p) <= u128::from(PLAIN / 2));
    }
}

#[test]
fn small_coefficients_are_bounded_centered_and_fresh() {
    let rng = &mut rng(3);
    let [first, second] = [0; 2].map(|_| small(rng));
    assert!(first.iter().zip(&*second).filter(|(a, b)| a == b).count() < DEGREE / 5);
    let all: Vec<i64> = (0..20).flat_map(|_| small(rng).to_vec()).collect();
    assert!(all.iter().all(|c| c.unsigned_abs() <= LARGEST_SMALL));
    let n = all.len() as f64;
    let mean = all.iter().sum::<i64>() as f64 / n;
    let variance = all.iter().map(|c| (c * c) as f64).sum::<f64>() / n;
    // The standard deviations of the two are 0.008 and 0.035.
    assert!(mean.abs() < 0.06 && (variance - 10.0).abs() < 0.25, "{mean} {variance}");
}

/// Even with the largest errors and coefficients, all of one sign, the noise is at most its bound.
#[test]
fn the_noise_keeps_to_its_bound_at_the_extremes() {
    let (bfv, rng) = (Bfv::new().unwrap(), &mut rng(4));
    let (t, key) = (bfv.plain(), bfv.secret_key(rng).unwrap());
    // Both coefficients of the constant are (t - 1) / 2. The slots hold this number plus or minus a root of -1 times it.
    let half = PLAIN / 2;
    let root = t.mul(t.inv(bfv.halves[1]).unwrap(), t.inv(2).unwrap());
    let constants = [t.add(half, t.mul(half, root)), t.sub(half, t.mul(half, root))];
    let constant = bfv.constant(constants).unwrap();
    let x = random_slots(rng);
    let n_y = 256;
    let mut sum = [bfv.nothing(), bfv.nothing()];
    for k in 0..n_y {
        let a = bfv.uniform(&[9; 32], k).unwrap();
        // c0 = (q m - r) / t + e - a s, with e at its largest.
        let mut c0 = bfv.scaled(&x).unwrap();
        *c0 += &*everywhere(&bfv, LARGEST_SMALL.into());
        *c0 -= &*bfv.product(&a, &key.0);
        for (sum, half) in sum.iter_mut().zip([c0, a]) {
            **sum += &*bfv.multiply(half, &constant);
        }
    }
    sum.iter_mut().for_each(|half| half.change_representation(Representation::PowerBasis));
    let expected: Vec<u64> = (0..DEGREE).map(|i| t.mul(t.mul(x[i], constants[i / QUERIES]), n_y)).collect();
    assert_eq!(*bfv.decrypt(&key, &sum).unwrap(), expected);
    let (measured, bound) =
        (noise(&bfv, &key, &sum, &expected), Budget::new(n_y as usize, 1).unwrap().computed);
    assert!(measured <= bound, "{measured} is above {bound}");
    assert!(measured > bound / 10 * 9, "{measured}: not the extreme of {bound}");

    // It still decrypts with the largest flood, and with all the noise that the budget allows besides.
    let budget = Budget::new(256, 1 << 20).unwrap();
    for noise in [1 << budget.flood, (1 << budget.room) - (1 << budget.flood)] {
        for sign in [1, PLAIN - 1] {
            let mut c = sum.clone();
            match sign {
                1 => *c[0] += &*everywhere(&bfv, noise),
                _ => *c[0] -= &*everywhere(&bfv, noise),
            }
            assert_eq!(*bfv.decrypt(&key, &c).unwrap(), expected, "{noise}");
        }
    }
    // Eight times the room is too much, so the stated room is not so small as to hide a mistake.
    let mut c = sum.clone();
    (0..8).for_each(|_| *c[0] += &*everywhere(&bfv, 1 << budget.room));
    assert_ne!(*bfv.decrypt(&key, &c).unwrap(), expected);
}

/// Without the encryption of 0, or with one whose randomness is not fresh, the client could distinguish c1 from a uniform
/// polynomial.
#[test]
fn what_is_sent_has_a_fresh_encryption_of_zero_and_is_flooded() {
    let (bfv, rng) = (Bfv::new().unwrap(), &mut rng(5));
    let key = bfv.secret_key(rng).unwrap();
    let public_key = public(&bfv, &key, rng);
    let masks = random_slots(rng);
    let flood = 100;
    let [first, second] = [0; 2].map(|_| {
        let nothing = [bfv.nothing(), bfv.nothing()];
        bfv.finish(nothing, &masks, &public_key, flood, rng).unwrap()
    });
    for sent in [&first, &second] {
        assert_eq!(*bfv.decrypt(&key, sent).unwrap(), *masks);
        // a u is as large as the modulus, so it is neither 0 nor an error.
        assert_eq!(largest(&bfv, &sent[1]), u128::MAX, "no encryption of 0");
        let noise = noise(&bfv, &key, sent, &masks);
        let most = (1 << flood) + Budget::new(0, 1).unwrap().computed;
        assert!((1 << (flood - 1)..=most).contains(&noise), "{noise}: not flooded");
    }
    let mut between = second[1].clone();
    *between -= &*first[1];
    assert_eq!(largest(&bfv, &between), u128::MAX, "the encryption of 0 is not fresh");
    // Under a key of zeros only the errors remain, in c1 as in c0.
    let zeros = [0; 2].map(|_| everywhere(&bfv, 0));
    let nothing = [bfv.nothing(), bfv.nothing()];
    let [c0, c1] = bfv.finish(nothing, &slots(&[]), &zeros, 0, rng).unwrap();
    assert!((1..=u128::from(LARGEST_SMALL)).contains(&largest(&bfv, &c1)), "no e_2");
    // The flood alone is at most 1.
    assert!((3..=u128::from(LARGEST_SMALL) + 1).contains(&largest(&bfv, &c0)), "no e_1");
}

#[test]
fn errors_of_encryptions_of_zero_are_fresh_in_each_half_and_in_each_response() {
    let (bfv, rng) = (Bfv::new().unwrap(), &mut rng(8));
    // Under a key of zeros only the errors remain, and in the first halves a flood of one bit.
    let zeros = [0; 2].map(|_| everywhere(&bfv, 0));
    let [[one, two], [three, four]] = [0; 2].map(|_| {
        let nothing = [bfv.nothing(), bfv.nothing()];
        bfv.finish(nothing, &slots(&[]), &zeros, 0, rng).unwrap()
    });
    let halves = [one, two, three, four];
    for (i, half) in halves.iter().enumerate() {
        for other in &halves[..i] {
            let mut between = half.clone();
            *between -= &**other;
            assert!(largest(&bfv, &between) > 2, "half {i}");
        }
    }
}

#[test]
fn the_flood_is_uniform() {
    let (bfv, rng) = (Bfv::new().unwrap(), &mut rng(6));
    for bits in [1, 63, 64, 114] {
        let flood = bfv.flood(bits, rng).unwrap();
        let most = largest(&bfv, &flood);
        assert!(most <= 1 << bits && most > (1 << bits) / 10 * 9, "{bits}: {most}");
        let q = bfv.q.modulus();
        let (mut negative, mut large) = (0, 0);
        for c in lifted(&flood, q) {
            let (up, down) = (u128::try_from(c.clone()), u128::try_from(q - &c));
            negative += usize::from(up.is_err());
            large += usize::from(up.or(down).unwrap() >= 1 << (bits - 1));
        }
        // 4096 of each are expected, with a standard deviation of 45; with few values, more are large.
        assert!(negative.abs_diff(DEGREE / 2) < 320 || bits == 1, "{bits}: {negative}");
        assert!(large.abs_diff(DEGREE / 2) < 320 || bits == 1, "{bits}: {large}");
    }
}

#[test]
fn second_halves_are_uniform_and_differ_by_seed_and_number() {
    let bfv = Bfv::new().unwrap();
    let all = [([1; 32], 0), ([1; 32], 1), ([1; 32], 1 << 32), ([2; 32], 0)];
    let all = all.map(|(seed, number)| coefficients(&bfv.uniform(&seed, number).unwrap()));
    for (i, one) in all.iter().enumerate() {
        for (residues, q) in one.chunks(DEGREE).zip(MODULI) {
            let low = residues.iter().filter(|r| **r < q / 2).count();
            assert!(low.abs_diff(DEGREE / 2) < 320, "{low}");
        }
        for other in &all[..i] {
            assert!(one.iter().zip(&**other).all(|(a, b)| a != b));
        }
    }
}

#[test]
fn forged_polynomials_are_refused() {
    let bfv = Bfv::new().unwrap();
    let good = bfv.write(&bfv.uniform(&[1; 32], 0).unwrap());
    assert_eq!(good.len(), POLYNOMIAL);
    let refused = |bytes: &[u8]| {
        let e = bfv.read("query", bytes).map(|_| ()).unwrap_err();
        assert_eq!(e.fault(), Some(Fault::Misbehaved), "{e}");
        e.to_string()
    };
    for length in [0, 1, POLYNOMIAL - 1, POLYNOMIAL - RESIDUE, POLYNOMIAL + 1, 2 * POLYNOMIAL] {
        let said = refused(&vec![0; length]);
        assert!(said.contains(&format!("a polynomial of {length} bytes, not of 172032")), "{said}");
    }
    for (i, q) in MODULI.into_iter().enumerate() {
        for at in [i * DEGREE, (i + 1) * DEGREE - 1] {
            let with = |residue: u64| {
                let mut bytes = good.clone();
                bytes[at * RESIDUE..][..RESIDUE].copy_from_slice(&residue.to_le_bytes()[..RESIDUE]);
                bytes
            };
            assert_eq!(bfv.write(&bfv.read("query", &with(q - 1)).unwrap()), with(q - 1));
            for residue in [q, (1 << (8 * RESIDUE)) - 1] {
                let said = refused(&with(residue));
                assert!(said.contains(&format!("expected at most {}, received {residue}", q - 1)), "{said}");
            }
        }
    }
}

#[test]
fn errors_and_keys_are_fresh() {
    let (bfv, rng) = (Bfv::new().unwrap(), &mut rng(7));
    let [one, two] = [0; 2].map(|_| bfv.secret_key(rng).unwrap());
    assert_ne!(*one.0, *two.0);
    let x = random_slots(rng);
    let [first, second] = [0; 2].map(|_| encrypted(&bfv, &one, &x, 1, rng));
    let mut between = first[0].clone();
    *between -= &*second[0];
    // The slots and second halves are the same, so only the errors differ.
    assert!((1..=2 * u128::from(LARGEST_SMALL)).contains(&largest(&bfv, &between)));
}
