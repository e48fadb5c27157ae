use super::*;
use crate::channel::{Sink, Source};
use crate::testing::{Views, run_pair, sizes, split_frames};
use std::collections::HashSet;

const SESSION: SessionId = SessionId::of([8; 32]);
const COMPARISONS: [Comparison; 2] = [Comparison::Private, Comparison::Plain];

fn items(from: usize, n: usize) -> Vec<Input> {
    (from..from + n).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

/// A bit for each item of X, in order, by the tests; also checks what is in the slots.
fn bits_by_item(plan: &Plan, y: &[Input], x: &[Input]) -> (Vec<bool>, Views) {
    let ((bits, order), views) = run_pair(
        |ch, rng| receiver(ch, &SESSION, plan, y, rng),
        |ch, rng| sender(ch, &SESSION, plan, x, x.len(), rng),
    );
    assert_eq!([bits.len(), order.len()], [plan.slots(); 2]);
    let mut by_item = vec![None; x.len()];
    for (&item, &bit) in order.iter().zip(bits.iter()) {
        match item {
            BOTTOM => assert!(bit, "the bottom item is in every bin"),
            item => assert!(by_item[item as usize].replace(bit).is_none()),
        }
    }
    (by_item.into_iter().map(Option::unwrap).collect(), views)
}

#[test]
fn the_bits_are_those_of_the_plain_computation() {
    let others = vec![(57, 33), (57, 33), (2, 1), (255, 256), (900, 3), (3, 5000)];
    for (i, (n_y, n_x)) in [sizes(40), others].concat().into_iter().enumerate() {
        // All of it or a part is in common, one or the other comparison.
        let common = n_y.min(n_x) / (1 + i / 2 % 2);
        let (y, x) = (items(0, n_y), items(n_y - common, n_x));
        let plan = Plan::new(COMPARISONS[i % 2], n_y, n_x, 20).unwrap();
        let (bits, _) = bits_by_item(&plan, &y, &x);
        assert!(bits.iter().enumerate().all(|(i, bit)| *bit == (i < common)), "{n_y} {n_x} {common}");
    }
}

/// Dummies of the sender take slots like items, and are the bottom item, even if the receiver has their hashes.
#[test]
fn dummies_count_as_the_bottom_item() {
    let (y, x) = (items(0, 40), items(30, 20));
    for real in [0, 5, 20] {
        let plan = Plan::new(Comparison::Private, 40, 20, 20).unwrap();
        let ((bits, order), _) = run_pair(
            |ch, rng| receiver(ch, &SESSION, &plan, &y, rng),
            |ch, rng| sender(ch, &SESSION, &plan, &x, real, rng),
        );
        for (&item, &bit) in order.iter().zip(bits.iter()) {
            assert_eq!(bit, item as usize >= real || item < 10, "{item}");
        }
        assert_eq!(order.iter().filter(|&&item| item != BOTTOM).count(), 20);
    }
}

/// Values that a sender would know again from another run would tell it which of its slots matched.
#[test]
fn a_second_run_under_the_same_generator_has_other_values() {
    let (y, x) = (items(0, 40), items(30, 20));
    let plan = Plan::new(Comparison::Plain, 40, 20, 20).unwrap();
    let (_, views) = run_pair(
        |ch, rng| {
            [(); 2].map(|()| receiver(ch, &SESSION, &plan, &y, rng)).into_iter().collect::<Result<Vec<_>>>()
        },
        |ch, rng| {
            let both = [(); 2].map(|()| sender(ch, &SESSION, &plan, &x, x.len(), rng));
            both.into_iter().collect::<Result<Vec<_>>>()
        },
    );
    let answers =
        split_frames(&views.0[0]).into_iter().filter(|frame| frame.0 == 0xa7).flat_map(|frame| frame.1);
    let answers: Vec<u8> = answers.collect();
    let values: HashSet<&[u8]> = answers.chunks_exact(plan.tag).collect();
    assert_eq!(values.len(), 2 * plan.slots());
}

/// More bins than a frame holds, several frames more than are under way, and a last one that is not full.
#[test]
fn several_frames() {
    for comparison in COMPARISONS {
        let bins = Bins { number: 21, receiver: 9, sender: 7 };
        let plan = Plan { per_frame: 3, in_frame: 20, ..Plan::of(comparison, (30, 40), bins).unwrap() };
        assert_eq!(plan.frames().len(), AHEAD + 3);
        let (bits, _) = bits_by_item(&plan, &items(0, 30), &items(20, 40));
        assert!(bits.iter().enumerate().all(|(i, bit)| *bit == (i < 10)));
    }
}

#[test]
fn lengths_and_bytes_follow_from_the_sizes() {
    for comparison in COMPARISONS {
        for (n_y, n_x) in [(0, 0), (700, 90)] {
            let plan = Plan::new(comparison, n_y, n_x, 20).unwrap();
            let mut seen = HashSet::new();
            for (common, seed) in [(0, 0), (n_y.min(n_x), 9000)] {
                let (y, x) = (items(seed, n_y), items(seed + n_y - common, n_x));
                let views = bits_by_item(&plan, &y, &x).1;
                let bytes = (views.0[1].len() as u64, views.0[0].len() as u64);
                assert_eq!(bytes, plan.traffic(), "{n_y} {n_x}");
                seen.insert([views.frames(0), views.frames(1)]);
            }
            assert_eq!(seen.len(), 1);
        }
    }
}

/// Pr[Binomial(n, p) > bound], term by term from the logarithm of the first.
fn above(n: usize, p: f64, bound: usize) -> f64 {
    if bound >= n {
        return 0.0;
    }
    let first = bound + 1;
    let binomial: f64 = (1..=first).map(|j| ((n - first + j) as f64 / j as f64).ln()).sum();
    let mut term = (binomial + first as f64 * p.ln() + (n - first) as f64 * (-p).ln_1p()).exp();
    let mut sum = term;
    for i in first..n {
        term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
        sum += term;
    }
    sum
}

#[test]
fn plans_keep_the_budget() {
    for (n_r, n_s) in [(0, 0), (1, 1), (1 << 8, 1 << 8), (1 << 20, 1 << 20), (1 << 20, 50), (50, 1 << 20)] {
        for comparison in COMPARISONS {
            let plan = Plan::new(comparison, n_r, n_s, 20).unwrap();
            let events = if comparison == Comparison::Private { 2.0 } else { 1.0 };
            let (slots, length) = (plan.slots() as f64, (plan.bins.receiver + 1) as f64);
            let budget = (-40f64).exp2();
            // A slot right by chance, or one of its items lost to another one.
            let polynomial = slots * length * (-f64::from(plan.field.bits())).exp2();
            assert!(polynomial * events <= budget, "{n_r} {n_s}");
            if comparison == Comparison::Private {
                assert!(slots * (-8.0 * plan.tag as f64).exp2() * events <= budget);
            }
            // The codes of two inputs that differ in less than 128 places: an item or the bottom item of a bin of R
            // against each slot of it, and s against s*.
            let Bins { number, receiver, sender } = plan.bins;
            let close = |width: usize| above(width, 0.5, width - 128);
            let pairs = (sender + 1) * (n_r + number);
            assert!(close(plan.width) * pairs as f64 * events <= budget, "{n_r} {n_s}: {}", plan.width);
            assert_eq!(plan.peqt.is_some(), comparison == Comparison::Private);
            assert!(plan.peqt.is_none_or(|peqt| close(peqt) * slots * events <= budget), "{n_r} {n_s}");
            // A bin of R, one of S or a frame of R that is too full.
            let (bins, frames) = (number as f64, plan.frames().len() as f64);
            let fullest = [
                bins * above(n_r, 1.0 / bins, receiver),
                bins * above(n_s, 1.0 / bins, sender),
                frames * above(n_r, plan.per_frame as f64 / bins, plan.in_frame),
            ];
            assert!(fullest.iter().sum::<f64>() <= budget, "{n_r} {n_s}: {fullest:?}");
            assert!(plan.per_frame * plan.in_bin() <= kkrt::FRAME);
            assert!(plan.polynomial() * kkrt::FRAME < 1 << 24);
        }
    }
    // Both sides of 2^20 items with rows of 19 bytes: within what a run may send (2.9 and 2.6 GB).
    let bytes = |comparison| {
        let plan = Plan::new(comparison, 1 << 20, 1 << 20, 22).unwrap();
        let (to_sender, to_receiver) = plan.traffic();
        to_sender + to_receiver + plan.slots() as u64 * 22
    };
    assert!(bytes(Comparison::Private) < 2_900_000_000, "{}", bytes(Comparison::Private));
    assert!(bytes(Comparison::Plain) < 2_600_000_000, "{}", bytes(Comparison::Plain));
}

// ---- The polynomial. ----

/// What S does with a polynomial: the roots in the field of P - P(q*).
fn roots(field: Field, p: &[u128], point: u128) -> usize {
    let mut p = p.to_vec();
    p[0] ^= value(field, &p, point);
    Poly(field).roots(p)
}

fn value(field: Field, p: &[u128], x: u128) -> u128 {
    p.iter().rev().fold(0, |sum, c| Poly(field).mul(sum, x) ^ c)
}

/// Polynomials over the field, the lowest coefficient first, without zeros at the end. A product a b comes from the
/// kernel, as the value of b x at a.
struct Poly(Field);

impl Poly {
    fn mul(&self, a: u128, b: u128) -> u128 {
        let bytes = self.0.bytes();
        let mut p = vec![0; 2 * bytes];
        p[bytes..].copy_from_slice(&b.to_le_bytes()[..bytes]);
        let mut out = [0];
        polynomial::evaluate(self.0, 2, &p, &[a], &mut out);
        out[0]
    }

    fn inverse(&self, a: u128) -> u128 {
        // The product of a^(2^i), i from 1 on.
        let mut square = a;
        (1..self.0.bits()).fold(1, |product, _| {
            square = self.mul(square, square);
            self.mul(product, square)
        })
    }

    fn trim(mut p: Vec<u128>) -> Vec<u128> {
        while p.last() == Some(&0) {
            p.pop();
        }
        p
    }

    fn remainder(&self, mut a: Vec<u128>, b: &[u128]) -> Vec<u128> {
        let scale = self.inverse(*b.last().unwrap());
        while a.len() >= b.len() {
            let factor = self.mul(*a.last().unwrap(), scale);
            let shift = a.len() - b.len();
            for (i, b) in b.iter().enumerate() {
                a[shift + i] ^= self.mul(factor, *b);
            }
            a.pop();
            a = Self::trim(a);
        }
        a
    }

    /// The degree of the common divisor with x^(2^bits) - x, the product of all x - root.
    fn roots(&self, p: Vec<u128>) -> usize {
        let p = Self::trim(p);
        let mut power = self.remainder(vec![0, 1], &p);
        for _ in 0..self.0.bits() {
            let mut square = vec![0; (2 * power.len()).saturating_sub(1)];
            power.iter().enumerate().for_each(|(i, c)| square[2 * i] = self.mul(*c, *c));
            power = self.remainder(Self::trim(square), &p);
        }
        power.resize(power.len().max(2), 0);
        power[1] ^= 1;
        let (mut a, mut b) = (p, Self::trim(power));
        while !b.is_empty() {
            (a, b) = (b.clone(), self.remainder(a, &b));
        }
        a.len() - 1
    }

    fn product(&self, a: &[u128], b: &[u128]) -> Vec<u128> {
        let mut out = vec![0; a.len() + b.len() - 1];
        for (i, a) in a.iter().enumerate() {
            b.iter().enumerate().for_each(|(j, b)| out[i + j] ^= self.mul(*a, *b));
        }
        out
    }
}

/// How R makes its polynomial, for a slot.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Variant {
    /// Figure 6: s + prod (x - q_i), with random roots in place of the items that are missing.
    Printed,
    /// 5.3: s + prod (x - q_i) over the real items, times a random polynomial.
    RandomFactor,
    /// What is used.
    Corrected,
}

/// The mean number of roots that S finds, over many slots, in polynomials of 7 coefficients through 4 real points.
fn mean_roots(variant: Variant, member: bool) -> f64 {
    let (field, slots, length, real) = (Field::Bits64, 60, 7, 4);
    let mut rng = Prng::from_seed(&[9; 32]);
    let mut number = || u128::from_le_bytes(rng.bytes()) & field.mask();
    let outputs: Vec<Output> = (0..real * slots)
        .map(|_| <[u8; 32]>::try_from([number().to_le_bytes(), number().to_le_bytes()].concat()).unwrap())
        .collect();
    let poly = Poly(field);
    let mut out = vec![0; slots * length * field.bytes()];
    let mut s = vec![0; slots];
    opprf(field, &outputs, real, &mut s, &mut out, &mut Prng::from_seed(&[10; 32]));
    let found = (0..slots).map(|slot| {
        let q: Vec<u128> = (0..real).map(|i| halves(&outputs[i * slots + slot]).0 & field.mask()).collect();
        let times_root = |p: Vec<u128>, root: &u128| poly.product(&p, &[*root, 1]);
        let p: Vec<u128> = match variant {
            Variant::Printed => {
                let padding: Vec<u128> = (real + 1..length).map(|_| number()).collect();
                q.iter().chain(&padding).fold(vec![1], times_root)
            }
            Variant::RandomFactor => {
                let factor: Vec<u128> = (real..length).map(|_| number()).collect();
                poly.product(&q.iter().fold(vec![1], times_root), &factor)
            }
            Variant::Corrected => {
                let of_slot = &out[slot * length * 8..][..length * 8];
                of_slot.chunks(8).map(|c| u128::from(u64::from_le_bytes(c.try_into().unwrap()))).collect()
            }
        };
        assert_eq!(p.len(), length);
        let point = if member { q[1] } else { number() };
        // s of the printed variants changes nothing in P - P(q*).
        roots(field, &p, point) as f64
    });
    found.sum::<f64>() / slots as f64
}

#[test]
fn the_printed_polynomial_shows_whether_the_item_matches_and_the_corrected_one_does_not() {
    // All 6 roots, or the 4 real ones and about one more, against q* and about one more.
    for (variant, least) in [(Variant::Printed, 5.9), (Variant::RandomFactor, 4.5)] {
        let (member, other) = (mean_roots(variant, true), mean_roots(variant, false));
        assert!(member > least && other < 2.6, "{variant:?}: {member}, {other}");
    }
    // q* and about one more, each of variance 1: six standard deviations of the mean of 60.
    for member in [true, false] {
        let mean = mean_roots(Variant::Corrected, member);
        assert!((mean - 2.0).abs() < 6.0 / 60f64.sqrt(), "{member}: {mean}");
    }
}

#[test]
fn polynomials_have_the_values_and_points_that_meet_are_no_harm() {
    for field in Field::ALL {
        let mut rng = Prng::from_seed(&[3; 32]);
        let (slots, length, points, real) = (5, 9, 6, 4);
        let mut outputs: Vec<Output> = (0..points * slots).map(|_| rng.bytes()).collect();
        // In slot 3 the second and the fourth point are one: the fourth is lost.
        let (q, t) = (outputs[slots + 3], outputs[3 * slots + 3]);
        outputs[3 * slots + 3][..16].copy_from_slice(&q[..16]);
        outputs[3 * slots + 3][16..].copy_from_slice(&t[16..]);
        let mut out = vec![0; slots * length * field.bytes()];
        let mut s = vec![0; slots];
        opprf(field, &outputs, real, &mut s, &mut out, &mut rng);
        assert_eq!(s.iter().collect::<HashSet<_>>().len(), slots);
        for (i, output) in outputs.iter().enumerate() {
            let (q, t) = halves(output);
            let slot = i % slots;
            let size = length * field.bytes();
            let mut value = [0];
            polynomial::evaluate(field, length, &out[slot * size..][..size], &[q], &mut value);
            let right = value[0] == (s[slot] ^ t) & field.mask();
            assert_eq!(right, i / slots < real && (i / slots, slot) != (3, 3), "{field:?} {i}");
        }
    }
}

/// R of the polynomial: without it the high coefficients are zeros, and show how many items the bin has.
#[test]
fn polynomials_have_full_length_whatever_the_number_of_points() {
    let (slots, length) = (400, 9);
    for field in Field::ALL {
        // One item, without random points and with some; many, and as many as there is room for.
        for (real, points) in [(1, 1), (1, 6), (6, 6), (6, 8), (9, 9)] {
            let mut rng = Prng::from_seed(&[4; 32]);
            let outputs: Vec<Output> = (0..points * slots).map(|_| rng.bytes()).collect();
            let mut out = vec![0; slots * length * field.bytes()];
            opprf(field, &outputs, real, &mut vec![0; slots], &mut out, &mut rng);
            let coefficients: HashSet<&[u8]> = out.chunks(field.bytes()).collect();
            assert_eq!(coefficients.len(), slots * length, "{field:?} {real} {points}");
            assert!(!coefficients.contains(&vec![0; field.bytes()][..]), "{field:?} {real} {points}");
        }
    }
}

#[test]
fn bins_are_filled_up_evenly_to_one_number_of_points() {
    let mut rng = Prng::from_seed(&[5; 32]);
    let random = (0..1000).map(|_| 1 + rng.below(40) as usize).collect();
    let lists = [vec![1; 64], vec![40, 1, 1, 1], vec![1, 2, 3, 4, 5], vec![7, 1, 7, 30], vec![12], random];
    for needed in lists {
        let least: usize = needed.iter().sum();
        for more in [0, 1, 2, needed.len() - 1, needed.len(), 3 * needed.len() + 1, 500] {
            let points = filled_up(needed.clone().into(), least + more);
            assert_eq!(points.iter().sum::<usize>(), least + more);
            // As even as it can be: a bin that got points has at most one more than any other.
            let lowest = points.iter().min().unwrap();
            for (points, needed) in points.iter().zip(&needed) {
                assert!(points >= needed && (points == needed || *points <= lowest + 1), "{more} {needed:?}");
            }
        }
    }
}

// ---- Peers that lie. ----

/// Replaces the bodies of the frames with a tag.
struct Forge {
    sink: Box<dyn Sink>,
    tag: u8,
    change: fn(&mut Vec<u8>),
}

impl Sink for Forge {
    fn send(&mut self, mut frame: Vec<u8>) -> Result<()> {
        if frame[0] == self.tag && frame[1] == 0 {
            let mut body = frame.split_off(6);
            (self.change)(&mut body);
            frame[2..6].copy_from_slice(&(body.len() as u32).to_le_bytes());
            frame.extend(body);
        }
        self.sink.send(frame)
    }
}

fn forging(ch: &mut Channel, tag: u8, change: fn(&mut Vec<u8>)) -> Channel {
    let (sink, source): (_, Box<dyn Source>) = std::mem::replace(ch, Channel::pair().0).into_halves();
    Channel::from_halves(Box::new(Forge { sink, tag, change }), source)
}

#[test]
fn forged_messages_are_errors_that_name_them() {
    let longer = |body: &mut Vec<u8>| body.push(0);
    let shorter = |body: &mut Vec<u8>| body.truncate(body.len() - 1);
    let flip = |body: &mut Vec<u8>| body[0] ^= 1;
    let two = |body: &mut Vec<u8>| body[0] = 2;
    let coefficient = |body: &mut Vec<u8>| body.truncate(body.len() - 9);
    // Who forges, which message, how, and what the other one says.
    type Row = (bool, u8, fn(&mut Vec<u8>), &'static str);
    let table: [Row; 11] = [
        (true, 0xa1, flip, "is not the one that it committed itself to"),
        (true, 0xa1, shorter, "commitment to a share"),
        (true, 0xa3, flip, "is not the one that it committed itself to"),
        (true, 0xa3, longer, "share that was committed"),
        (false, 0xa2, shorter, "share of the bin hash"),
        (true, 0xa4, two, "neither that its items fit"),
        (false, 0xa4, two, "neither that its items fit"),
        (true, 0xa5, longer, "RPMT polynomials"),
        (true, 0xa5, coefficient, "RPMT polynomials"),
        (false, 0xa6, shorter, "RPMT tags"),
        (false, 0xa7, longer, "RPMT s*"),
    ];
    for (by_receiver, tag, change, words) in table {
        let comparison = if tag == 0xa7 { Comparison::Plain } else { Comparison::Private };
        let plan = Plan::new(comparison, 30, 20, 20).unwrap();
        let (y, x) = (items(0, 30), items(20, 20));
        let ((r, s), _) = run_pair(
            |ch, rng| {
                let mut forging = by_receiver.then(|| forging(ch, tag, change));
                Ok(receiver(forging.as_mut().unwrap_or(ch), &SESSION, &plan, &y, rng).err())
            },
            |ch, rng| {
                let mut forging = (!by_receiver).then(|| forging(ch, tag, change));
                Ok(sender(forging.as_mut().unwrap_or(ch), &SESSION, &plan, &x, x.len(), rng).err())
            },
        );
        match if by_receiver { s } else { r } {
            Some(Error::Peer(text)) => assert!(text.contains(words), "{tag:#x}: {text}"),
            other => panic!("{tag:#x}: {other:?}"),
        }
    }
}

#[test]
fn items_that_do_not_fit_are_thrown_again() {
    // Bins so small that the first throws fail with some seeds.
    let bins = Bins { number: 6, receiver: 2, sender: 2 };
    let plan = Plan { in_frame: 6, ..Plan::of(Comparison::Plain, (6, 6), bins).unwrap() };
    let (y, x) = (items(0, 6), items(3, 6));
    let tries = |seed: u8| {
        let (mut a, mut b) = Channel::pair();
        std::thread::scope(|s| {
            let r = s.spawn(|| {
                let rng = &mut Prng::from_seed(&[seed; 32]);
                let table = throw(&mut a, &SESSION, &plan, true, &y, rng);
                (table.map(|_| ()), a.bytes_sent())
            });
            let rng = &mut Prng::from_seed(&[seed + 100; 32]);
            let theirs = throw(&mut b, &SESSION, &plan, false, &x, rng).map(|_| ());
            let (ours, bytes) = r.join().unwrap();
            assert_eq!(ours.is_ok(), theirs.is_ok());
            if let (Err(a), Err(b)) = (&ours, &theirs) {
                let blamed = [a, b].map(|e| matches!(e, Error::Peer(_)));
                assert!(blamed != [true, true], "{a} {b}");
            }
            (ours.is_ok(), bytes as usize / (2 * 38 + 7))
        })
    };
    let all: HashSet<(bool, usize)> = (0..60).map(tries).collect();
    assert!(all.contains(&(true, 1)) && all.contains(&(true, 2)) && all.contains(&(false, TRIES)), "{all:?}");
}
